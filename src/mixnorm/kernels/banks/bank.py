"""Banks of kernels: several kernels, on all columns or on groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, as_generator
from mixnorm._memory import as_bytes
from mixnorm._numbers import check_count
from mixnorm._params import Parameters
from mixnorm.kernels.banks.build import as_precision, build
from mixnorm.kernels.banks.fitted import FittedBank
from mixnorm.kernels.banks.plan import EACH, make_plan
from mixnorm.kernels.banks.storage_plan import grams_within
from mixnorm.kernels.functions.kernels import GaussianKernel, WidthKernel
from mixnorm.kernels.functions.names import as_kernel
from mixnorm.kernels.grams.base import Grams

_NORMALIZE = (None, "trace", "unit", "tail")
_FACTORS = (None, "nystrom", "random")
_DEFAULT_WIDTHS = (0.1, 1.0, 10.0)


@dataclass(eq=False)
class KernelBank(Parameters):
    r"""Several kernels, on all columns of a table or on groups of them.

    Parameters
    ----------
    kernels : list or dict
        Kernels, or names and functions that :func:`as_kernel` takes; or a dictionary from names to
        these.
        Those in a list are parameters with their positions as names, such as ``kernel__0__tau``.
    columns : None, "each", list or dict, default=None
        The columns that kernels compare. None: all. ``"each"``: every kernel on every single
        column, as in :meth:`per_feature`. A list with one entry per kernel: None,
        positions, names, a slice or a mask. A dictionary from the names of groups to such entries:
        every group then has every kernel, or, if ``kernels`` is a dictionary from the names of
        groups to lists, its own.
    preprocess : None, transformer or dict, default=None
        Preparation of the columns. A transformer is cloned and fitted on the whole table, and
        ``columns`` chooses from its output: by position, or by name, where a name also means all
        outputs made from an input column or by a part of a ``ColumnTransformer``. A dictionary from
        the names of groups to transformers, or None, fits each on the columns of its group alone;
        if a group is one name, not a list, the transformer gets an array of one axis, as text
        vectorisers need it.
    normalize : None, "trace", "unit" or "tail", default="trace"
        ``"trace"``: kernels are divided by their mean diagonal over the training rows, so that
        they compete on equal terms; this does not change Gaussian and Laplacian kernels.
        ``"unit"``: every kernel is 1 between a row and itself, :math:`k(x, y) / \sqrt{k(x, x) k(y,
        y)}`; zero rows stay zero. ``"tail"``: kernels are divided by their tail sum, or by a
        hundredth of their mean diagonal if that is larger. None: kernels are not scaled, and large
        ones get most of the weight.
    tail : int, default=8
        The number of eigenvalues that tail sums leave out.
    factors : None, "nystrom" or "random", default=None
        ``"nystrom"``: kernels are replaced by their projections on the span of ``rank`` training
        rows, the same for all kernels. ``"random"``: Gaussian and Laplacian kernels are replaced by
        inner products of ``rank`` random waves.
    rank : int or None, default=None
        The number of training rows or waves; None for as many as ``memory`` allows, at most 256.
    memory : int or str, default=2**31
        Bytes for kernel matrices or factors, or a text such as ``"4 GiB"``. Matrices that do not
        fit are computed at every use. Learners also count the sum of the kernels and the memory of
        their machine; if all of that does not fit, or if computing takes minutes, they take
        ``factors="nystrom"`` and give a ``KernelMemoryWarning``.
    dtype : {"float32", "float64"}, default="float32"
        The dtype of kernel matrices. Distances and inner products are always computed in float64.
    random_state : int, None or generator, default=0
        Draws the training rows or the waves of ``factors``.

    Notes
    -----
    ``n`` training rows and ``M`` kernels take :math:`M n^2` numbers. Kernels that are functions of
    the same metric on the same columns share its computation.

    References
    ----------
    C. Williams, M. Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000.
    A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> bank = KernelBank(["linear", GaussianKernel(tau=0.5)], columns=[None, [1]])
    >>> bank.names
    ['linear', 'columns 1: gaussian(tau=0.5)']
    >>> bank.fit(X).grams()
    KernelStack(n_kernels=2, shape=(3, 3), dtype=float32)
    """

    kernels: Any
    columns: Any = None
    preprocess: Any = None
    normalize: str | None = "trace"
    tail: int = 8
    factors: str | None = None
    rank: int | None = None
    memory: int | str = 2**31
    dtype: Any = "float32"
    random_state: Any = 0

    _parts: ClassVar[str] = "kernels"

    @classmethod
    def from_columns(
        cls, preprocess: Any, groups: Mapping[str, Any], kernels: Any = None, **other: Any
    ) -> KernelBank:
        """Return a bank with kernels on named groups of columns.

        Parameters
        ----------
        preprocess : None, transformer or dict
            Preparation of the columns, as in the class.
        groups : dict
            From names to columns: positions, names, a slice or a mask.
        kernels : list or dict, optional
            The kernels of every group, or a dictionary from the names of groups to lists. One
            Gaussian kernel of relative width 1 by default.
        **other
            Further parameters of the bank.

        Examples
        --------
        >>> bank = KernelBank.from_columns(None, {"colour": [0, 1, 2], "size": [3]})
        >>> bank.names
        ['colour: gaussian(tau=1, relative)', 'size: gaussian(tau=1, relative)']
        """
        if not isinstance(groups, Mapping):
            raise TypeError(
                f"groups must be a dictionary from names to columns, got {type(groups).__name__}."
            )
        if kernels is None:
            kernels = [GaussianKernel(tau=1.0, relative=True)]
        return cls(kernels, columns=groups, preprocess=preprocess, **other)

    @classmethod
    def per_feature(
        cls,
        kernel: Any = "gaussian",
        widths: ArrayLike | None = None,
        *,
        relative: bool = True,
        **other: Any,
    ) -> KernelBank:
        """Return a bank with kernels on every single column, one per width.

        Parameters
        ----------
        kernel : str, Kernel or list, default="gaussian"
            ``"gaussian"`` (or ``"rbf"``) or ``"laplacian"``, which have widths; or any other
            kernels, without ``widths``.
        widths : float or list of float, optional
            The widths ``tau`` of the kernel; 0.1, 1 and 10 by default.
        relative : bool, default=True
            Whether widths are in units of the spread of a column, the mean (squared) distance of
            two of its values.
        **other
            Further parameters of the bank.

        Notes
        -----
        The number of kernels is the number of columns times the number of widths. Kernels are
        computed at use, so there may be thousands of them.

        Examples
        --------
        >>> import numpy as np
        >>> bank = KernelBank.per_feature(kernel="rbf", widths=[0.1, 1.0])
        >>> bank.fit(np.eye(3)[:, :2]).names[:2]
        ['column 0: gaussian(tau=0.1, relative)', 'column 0: gaussian(tau=1, relative)']
        """
        single = not isinstance(kernel, (list, tuple))
        found = [as_kernel(spec) for spec in ([kernel] if single else kernel)]
        if single and isinstance(kernel, str) and isinstance(found[0], WidthKernel):
            taus = _DEFAULT_WIDTHS if widths is None else widths
            kernels = make_width_kernels(type(found[0]), taus, relative, "widths")
            return cls(kernels, columns=EACH, **other)
        if widths is not None:
            raise ValueError(
                f"widths={widths!r} go with kernel='gaussian' or 'laplacian', by name; give "
                "kernels with their parameters and no widths instead."
            )
        return cls([kernel] if single else found, columns=EACH, **other)

    @property
    def names(self) -> list[str]:
        """Names of the kernels, all different; with ``columns="each"`` those of one column."""
        return make_plan(self.kernels, self.columns).names

    def check(self) -> None:
        """Raise a ValueError or TypeError for parameters that are not allowed."""
        for name, allowed in (("normalize", _NORMALIZE), ("factors", _FACTORS)):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value not in allowed:
                raise ValueError(f"{name}={value!r} is not known; choose one of {list(allowed)}.")
        check_count("tail", self.tail, least=0)
        if self.rank is not None:
            check_count("rank", self.rank, least=2 if self.factors == "random" else 1)
        as_bytes(self.memory)
        as_precision(self.dtype)
        as_generator(self.random_state)
        found = make_plan(self.kernels, self.columns)
        if not isinstance(self.preprocess, Mapping):
            return
        if not isinstance(self.columns, Mapping):
            raise ValueError(
                "preprocess is a dictionary of groups, but columns has no groups; give columns as "
                "a dictionary from the same names, or use KernelBank.from_columns."
            )
        stray = [label for label in self.preprocess if label not in found.labels]
        if stray:
            raise ValueError(
                f"preprocess has a transformer for the unknown group {stray[0]!r}; the groups are "
                f"{found.labels}."
            )

    def fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> FittedBank:
        """Bind the bank to training rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows. The bank keeps a copy.
        y : array of shape (n_samples,), optional
            Targets for the transformers.
        sample_weight : array of shape (n_samples,), optional
            Positive weights of the rows for widths, mean diagonals, tail sums, landmarks, and
            transformers that take ``sample_weight``. A row of weight two counts as two rows.
        """
        self.check()
        return build(self, X, y, sample_weight)

    def fit_within(
        self, X: MatrixLike, beside: int, sample_weight: np.ndarray | None = None
    ) -> tuple[FittedBank, Grams, str | None]:
        """Return a fitted bank, its Gram matrices, and a message for the user or None.

        Matrices, and the ``beside`` bytes that a machine needs with them, stay within ``memory``.
        Matrices that do not fit are computed at every use, if that is fast. Otherwise kernels are
        replaced by factors, and the message says so.
        """
        bank = self.fit(X, sample_weight=sample_weight)
        return grams_within(bank, beside, sample_weight, as_generator(self.random_state))


def gaussian_bank(
    tau: float | Sequence[float] | None = None, *, relative: bool = False, **other: Any
) -> KernelBank:
    """Return a bank of Gaussian kernels, one per width.

    Parameters
    ----------
    tau : float, list of float or None
        The widths. None for those from 1/64 to 16, by factors of two, relative to the mean squared
        distance of training rows.
    relative : bool, default=False
        Whether widths are relative to that distance.
    **other
        Further parameters of :class:`KernelBank`.

    Examples
    --------
    >>> gaussian_bank([0.5, 2.0]).names
    ['gaussian(tau=0.5)', 'gaussian(tau=2)']
    >>> len(gaussian_bank().names)
    11
    """
    if tau is None:
        # From far below to far above the mean distance. If the largest weight is at either end, try
        # wider or narrower kernels.
        tau, relative = (2.0 ** np.arange(-6, 5)).tolist(), True
    return KernelBank(make_width_kernels(GaussianKernel, tau, relative, "tau"), **other)


def make_width_kernels(
    kind: type[WidthKernel], widths: ArrayLike, relative: bool, name: str
) -> list[WidthKernel]:
    """Return valid kernels of one kind, one per width; ``name`` is that of the widths."""
    try:
        found = np.atleast_1d(np.asarray(widths, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"{name}={widths!r} must be a number or a list of numbers.") from None
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(f"{name}={widths!r} must be a number or a list of at least one.")
    kernels = [kind(tau, relative) for tau in found.tolist()]
    for kernel in kernels:
        kernel.check()
    return kernels
