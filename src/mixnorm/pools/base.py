"""Base classes of pools, and the values that pools exchange with the engine and the estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from mixnorm._array import Array, MatrixLike, is_numpy, is_sparse, namespace, tiny, to_numpy
from mixnorm._params import Parameters
from mixnorm.pools.scorers import PoolScorer, Scorer

if TYPE_CHECKING:
    from mixnorm.pools.blocks.base import BlockData, BlockPool

#: Atoms that are not to be offered.
Excluded = frozenset[Hashable]
#: The only features that atoms may read; None allows all.
Inputs = frozenset[int] | None
#: Atoms with their scores.
Offers = list[tuple[Any, float]]

#: Shares of rows that differ by less than this are the same.
ROUNDING_OF_SHARES = 1e-9


class Cost(NamedTuple):
    """Operations per row.

    Parameters
    ----------
    multiply_adds : int
        Multiplications, each with an addition.
    comparisons : int
        Comparisons of two numbers.

    Examples
    --------
    >>> Cost(20, 3).total
    23
    """

    multiply_adds: int
    comparisons: int

    @property
    def total(self) -> int:
        """All operations together."""
        return self.multiply_adds + self.comparisons


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of a loss, from which a pool estimates the gains of Newton steps.

    Parameters
    ----------
    weights : array of shape (n_samples, n_outputs)
        Second derivatives in the scores, times the weights of the samples.
    samples : array of shape (n_samples,)
        The weights of the samples, which sum to one.
    loss_per_error : float
        The loss divided by the sum of all magnitudes of the residual.
    ridge : float
        Second derivative of the penalty in a weight.
    intercept : bool
        Whether an intercept follows every step.
    """

    weights: Any
    samples: Any
    loss_per_error: float
    ridge: float
    intercept: bool


def capped_gain(gains: Array, limits: Array) -> Any:
    """Return the sum of gains over outputs (the first axis), each bounded by its limit.

    Small gains hardly change, large ones approach their limits (:eq:`capped-gain`).

    Examples
    --------
    >>> import numpy as np
    >>> capped_gain(np.array([[1e-6, 1e6]]), np.array([[0.5, 0.5]])).round(6).tolist()
    [1e-06, 0.5]
    """
    xp = namespace(gains)
    # ``expm1``, since gains are often so far below their limits that ``1 - exp`` would be zero.
    return xp.sum(-xp.expm1(-gains / (limits + tiny(gains))) * limits, axis=0)


@dataclass(frozen=True, eq=False)
class PoolData:
    """The arguments of :meth:`Pool.prepare`, and what follows from them."""

    X: Array
    weight: Array | None
    scale: bool | str
    fit_intercept: bool
    random_state: Any

    def options(self) -> dict[str, Any]:
        """Return all but the data, as keywords of :meth:`Pool.prepare`."""
        names = ("weight", "scale", "fit_intercept", "random_state")
        return {name: getattr(self, name) for name in names}

    @property
    def dtype(self) -> Any:
        """The dtype of the columns that the pool returns: that of the weights."""
        return working_dtype(self.X) if self.weight is None else self.weight.dtype

    @cached_property
    def used(self) -> np.ndarray:
        """The rows that count, those of positive weight, as a mask."""
        if self.weight is None:
            return np.ones(self.X.shape[0], dtype=bool)
        return np.asarray(to_numpy(self.weight) > 0)

    @cached_property
    def shares(self) -> np.ndarray | None:
        """The weights of the rows that count, which sum to one; None where all are equal."""
        if self.weight is None:
            return None
        kept = to_numpy(self.weight)[self.used].astype(np.float64)
        # Equal weights take the path without weights, whose results have fewer roundings.
        return None if len(kept) == 0 or np.all(kept == kept[0]) else kept / np.sum(kept)


class Pool(Parameters):
    """Base of pools: parameter objects that say what an atom is.

    A subclass is a dataclass with ``prepare``, ``evaluate``, ``feature_indices`` and
    ``n_columns``. The rest has defaults.
    """

    #: The columns of an atom are columns of ``X``, in the order of ``feature_indices``.
    plain: ClassVar[bool] = False
    #: The atoms that are offered depend on those that are excluded.
    grows: ClassVar[bool] = False
    #: The pool accepts arrays of other libraries than NumPy.
    array_api: ClassVar[bool] = False
    #: Data may be images, ``(n_samples, height, width)``.
    takes_images: ClassVar[bool] = False
    #: The meaning of the atoms has been learned from data.
    learned: ClassVar[bool] = False
    #: Height and width of an image, where known.
    shape: tuple[int, int] | None = None

    @property
    def given(self) -> Any:
        """The object that the user gave: the pool itself, or the one that :func:`as_pool` wraps."""
        return self

    def prepare(
        self,
        X: Array,
        *,
        weight: Array | None = None,
        scale: bool | str = "std",
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> PreparedPool:
        """Bind the pool to data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The data, which are not changed. Pools with a true ``array_api`` accept arrays of other
            libraries than NumPy.
        weight : array of shape (n_samples,), optional
            Weights of the rows; rows of weight zero do not count at all.
        scale : {"std", "max"} or bool
            Divide each column by its standard deviation (``"std"``, also True; without an intercept
            by the root of its mean square), by its largest magnitude (``"max"``), or by nothing
            (False). The notes of a pool mention exceptions.
        fit_intercept : bool
            With an intercept, constant columns are never chosen.
        random_state : int, RandomState instance or None
            The seed of pools that draw at random.
        """
        if not self.array_api:
            check_numpy(X, type(self).__name__)
        prepared = self._bind(PoolData(X, weight, scale, fit_intercept, random_state))
        prepared.made_by = self
        prepared.n_features = X.shape[1]
        return prepared

    def _bind(self, data: PoolData) -> PreparedPool:
        """Bind the pool to data, for pools that inherit ``prepare``."""
        raise NotImplementedError

    def prepare_blocks(
        self, data: BlockData, *, scale: bool | str = "std", fit_intercept: bool = True
    ) -> BlockPool:
        """Bind the pool to a table of row blocks, which need not fit into memory.

        Parameters
        ----------
        data : BlockData
            The table, with what a survey of it has found.
        scale, fit_intercept
            As in :meth:`prepare`.
        """
        prepared = self.bind_blocks(data, scale, fit_intercept)
        prepared.made_by = prepared.pool = self
        prepared.n_features = data.table.shape[1]
        return prepared

    def bind_blocks(self, data: BlockData, scale: bool | str, fit_intercept: bool) -> BlockPool:
        """Bind the pool to a table of blocks, for pools that inherit ``prepare_blocks``."""
        raise TypeError(
            f"{type(self.given).__name__} takes arrays in memory, and not a table of row blocks. "
            "Use Columns, Products or Stumps, or fit on a sample of the rows (table.sample)."
        )

    def evaluate(self, X: Array, atoms: Sequence[Any]) -> Any:
        """Return the unscaled columns of ``atoms`` on new data: ``(n_samples, total width)``."""
        raise NotImplementedError

    def feature_indices(self, atoms: Sequence[Any], n_features: int) -> np.ndarray:
        """Return the features that ``atoms`` read, in order."""
        raise NotImplementedError

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return the number of columns of ``atom``; raise a ValueError for anything else."""
        raise NotImplementedError

    def labels(self, atoms: Sequence[Any]) -> list[Any]:
        """Return names of ``atoms``: by default the atoms themselves."""
        return list(atoms)

    def describe(self, atom: Any, names: Sequence[str]) -> str:
        """Describe an atom in words, for features with these names."""
        return str(self.labels([atom])[0])

    def cost(self, atom: Any, n_features: int) -> Cost:
        """Return the operations that the columns of an atom take."""
        return Cost(0, 0)

    def total_cost(self, atoms: Sequence[Any], n_features: int, n_outputs: int) -> Cost:
        """Return the operations that scores take: of atoms, and of the weights of their columns."""
        costs = [self.cost(atom, n_features) for atom in atoms]
        widths = [self.n_columns(atom, n_features) for atom in atoms]
        adds = sum(cost.multiply_adds for cost in costs) + n_outputs * sum(widths)
        return Cost(adds, sum(cost.comparisons for cost in costs))

    def scorer(self, atoms: Sequence[Any], weights: np.ndarray, intercept: np.ndarray) -> Scorer:
        """Return a function of rows of NumPy arrays that computes scores, fast for many calls."""
        return PoolScorer(self, atoms, weights, intercept)

    def for_images(self, shape: tuple[int, int]) -> Pool:
        """Return the pool for images of this shape."""
        return self

    def member(self, atom: Any) -> tuple[Pool, Any]:
        """Return the pool that an atom comes from, and its name for the atom."""
        return self, atom


class PreparedPool:
    """Base of pools bound to data, which the engine asks for atoms.

    A subclass has ``n_usable``, the number of atoms that can be chosen, ``top``, ``columns`` and
    ``scale``. The rest has defaults.
    """

    #: ``top`` takes the keyword ``curvature``, and then ranks atoms by the gains of Newton steps.
    takes_curvature: ClassVar[bool] = False
    #: ``top`` takes the keyword ``new_inputs``: the number of features that an atom may read beside
    #: those in ``inputs``.
    counts_inputs: ClassVar[bool] = False
    #: ``adjust`` finds steps of atoms that have parameters of their own.
    adjustable: ClassVar[bool] = False
    #: Number of atoms that can be chosen.
    n_usable: int
    #: The pool that evaluates the atoms on other data. :func:`bind` sets it, unless the pool has
    #: learned its atoms from the data.
    pool: Any = None
    #: The pool that was bound, where it is one of this package.
    made_by: Pool | None = None
    #: Number of features of the data.
    n_features: int | None = None

    @property
    def given(self) -> Any:
        """The pool itself, or the object that :func:`as_prepared` wraps."""
        return self

    @property
    def priced(self) -> bool:
        """Whether atoms have prices, and ``top`` takes the keyword ``budget``."""
        return False

    @property
    def tells_inputs(self) -> bool:
        """Whether the pool knows which features an atom reads."""
        return True

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return up to ``m`` atoms with their scores, best first, none of them excluded.

        Scores are norms of gradients, ``columns(atom) @ residual``: by the rule ``"l1"`` the sum of
        the magnitudes, by ``"l2"`` the root of the sum of the squares.

        With ``inputs``, atoms read these features only. A pool with prices ranks atoms by the score
        over the root of the price, and with ``budget`` offers no atom that costs more.
        """
        raise NotImplementedError

    def shortlist(self, *args: Any, **limits: Any) -> Offers:
        """Return ``m`` good atoms that differ from each other, the best one first.

        Rules that compare several candidates use it. The default is ``top``, with the same
        arguments.
        """
        return self.top(*args, **limits)

    def columns(self, atom: Any) -> Any:
        """Return the scaled columns of ``atom``, one per row: ``(width, n_samples)``."""
        raise NotImplementedError

    def scale(self, atom: Any) -> Any:
        """Return the divisor of each column of ``atom``."""
        raise NotImplementedError

    def inputs(self, atom: Any) -> frozenset[int]:
        """Return the features that ``atom`` reads."""
        pool = self.made_by if self.pool is None else self.pool
        if pool is None or self.n_features is None:
            raise TypeError(
                f"{type(self.given).__name__} does not know which features its atoms read; give it "
                "a method inputs(atom), or prepare it with mixnorm.pools.bind."
            )
        return frozenset(to_numpy(pool.feature_indices([atom], self.n_features)).tolist())

    def price(self, atom: Any) -> float:
        """Return the price of ``atom``, a positive number by which gains are divided."""
        return 1.0

    def open_offers(self, atom: Any) -> list[tuple[Any, np.ndarray, bool]]:
        """Return the atoms that might be better than a chosen one, for all that is known.

        A pool that ranks atoms on a sample of rows has such. Each comes with the largest magnitudes
        of its gradient, ``(width, n_outputs)``, and whether its score might be better than that of
        ``atom``.
        """
        return []

    def learn(self, residual: Any, atoms: Sequence[Any]) -> None:
        """Compute the gradients of atoms on all rows, where a pool ranks them on a sample."""

    def adjust(self, atoms: Sequence[Any], slopes: Array, bends: Array) -> Any:
        """Return steps of the parameters of ``atoms`` that lower the loss.

        ``slopes`` and ``bends`` are the first and second derivatives of the loss in the scaled
        columns, an atom per row.
        """
        raise NotImplementedError


class Recent:
    """The columns of the atoms that were requested last.

    A rule that compares several candidates a round requests many of them again in the next.

    Parameters
    ----------
    room : int
        Most atoms to keep; all atoms of one request are kept, even if they are more.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[Hashable, Any] = {}

    def gather(self, atoms: Sequence[Any], make: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """Return the columns of ``atoms``; one call of ``make`` makes those that are not kept.

        ``make`` is an argument because a pool that refers to itself is freed late, which soon
        fills a GPU.
        """
        kept = self._kept
        for atom in atoms:  # moved to the end: the first ones are dropped below
            if atom in kept:
                kept[atom] = kept.pop(atom)
        missing = [atom for atom in atoms if atom not in kept]
        if missing:
            kept.update(zip(missing, make(missing), strict=True))
        while len(kept) > max(self._room, len(atoms)):
            del kept[next(iter(kept))]
        return [kept[atom] for atom in atoms]


def best_of_each(scores: np.ndarray, m: int) -> list[int]:
    """Return the flat places of the best scores of the ``m`` best rows, largest score first."""
    best = scores.argmax(axis=1)
    rows = best_places(scores.max(axis=1), m)
    return [row * scores.shape[1] + int(best[row]) for row in rows]


def best_places(worth: np.ndarray, m: int) -> list[int]:
    """Return the places of the ``m`` largest positive numbers, largest first, ties in order."""
    if m == 1:
        best = np.asarray([np.argmax(worth)]) if len(worth) else np.empty(0, dtype=np.intp)
    else:
        # A partial sort finds the m-th largest in linear time. All ties with it are kept, so that
        # the stable sort below decides between them, and not the order that the partition leaves.
        least = np.partition(worth, -m)[-m] if m < len(worth) else -np.inf
        near = np.flatnonzero(worth >= least)
        best = near[np.argsort(-worth[near], kind="stable")[:m]]
    return [int(place) for place in best if worth[place] > 0.0]


def best_offers(scores: np.ndarray, m: int, atom_at: Callable[[int], Any]) -> Offers:
    """Return the atoms with the ``m`` largest positive scores, given the atom at each place."""
    return [(atom_at(place), float(scores[place])) for place in best_places(scores, m)]


def working_dtype(X: Array) -> Any:
    """Return the dtype to compute in: float32 where it holds the data exactly, else float64."""
    if not is_sparse(X) and not isinstance(X, np.ndarray):
        xp = namespace(X)
        if xp.isdtype(X.dtype, "real floating"):
            return xp.float32 if xp.finfo(X.dtype).bits <= 32 else xp.float64
        small = xp.isdtype(X.dtype, "bool") or xp.iinfo(X.dtype).bits <= 16
        return xp.float32 if small else xp.float64
    # float32 holds integers of two bytes and booleans exactly.
    narrow = X.dtype.kind in "fiub" and X.dtype.itemsize <= (4 if X.dtype.kind == "f" else 2)
    return np.dtype(np.float32 if narrow else np.float64)


def check_numpy(X: MatrixLike, name: str) -> None:
    """Raise for arrays of other libraries than NumPy, which ``name`` does not support."""
    if not is_sparse(X) and not is_numpy(X):
        raise TypeError(
            f"{name} takes NumPy arrays and sparse matrices, not {type(X).__name__}; "
            "convert X with numpy.asarray first."
        )


def cluster_centres(
    rows: np.ndarray, weight: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return the centres that k-means finds among weighted rows; some may be equal."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # A careful start costs more than all iterations, and so many centres do not need it.
    clusters = KMeans(n_clusters, init="random", n_init=1, max_iter=20, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than centres
        clusters.fit(np.ascontiguousarray(rows), sample_weight=weight)
    return np.asarray(clusters.cluster_centers_)
