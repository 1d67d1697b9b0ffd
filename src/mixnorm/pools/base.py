"""Base classes of pools, and the values that pools exchange with the engine and the estimators."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mixnorm._array import Array, MatrixLike, is_numpy, is_sparse, namespace, tiny, to_numpy
from mixnorm._params import Parameters
from mixnorm.pools.scorers import PoolScorer

#: Atoms that are not to be offered, the only columns that atoms may read, and atoms with scores.
Excluded = frozenset[Hashable]
Inputs = frozenset[int] | None
Offers = list[tuple[Any, float]]


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
        """Both together."""
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
        The loss over the sum of all magnitudes of the residual, which shares it out.
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


def capped_gain(gains: Any, limits: Any) -> Any:
    """Add up gains over outputs (the first axis), none beyond its limit.

    Small gains are hardly changed, large ones approach their limits (:eq:`capped-gain`).

    Examples
    --------
    >>> import numpy as np
    >>> capped_gain(np.array([[1e-6, 1e6]]), np.array([[0.5, 0.5]])).round(6).tolist()
    [1e-06, 0.5]
    """
    xp = namespace(gains)
    return xp.sum(-xp.expm1(-gains / (limits + tiny(gains))) * limits, axis=0)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a pool is bound to: the arguments of :meth:`Pool.prepare`, and what they imply."""

    X: Any
    weight: Any
    scale: bool | str
    fit_intercept: bool
    random_state: Any

    @property
    def dtype(self) -> Any:
        """The dtype of the columns that are handed out: that of the weights."""
        return working_dtype(self.X) if self.weight is None else self.weight.dtype

    @cached_property
    def used(self) -> np.ndarray:
        """Which rows count: those of positive weight."""
        if self.weight is None:
            return np.ones(self.X.shape[0], dtype=bool)
        return np.asarray(to_numpy(self.weight) > 0)

    @cached_property
    def shares(self) -> np.ndarray | None:
        """The weights of the rows that count, which sum to one; None where all are alike."""
        if self.weight is None:
            return None
        kept = to_numpy(self.weight)[self.used].astype(np.float64)
        return None if len(kept) == 0 or np.all(kept == kept[0]) else kept / np.sum(kept)


class Pool(Parameters):
    """Base of pools: parameter objects that know what an atom is.

    A subclass is a dataclass, and gives ``prepare``, ``evaluate``, ``feature_indices`` and
    ``n_columns``. All else has a default.
    """

    #: The columns of an atom are columns of ``X``, in the order of ``feature_indices``.
    plain: ClassVar[bool] = False
    #: What is offered depends on the excluded atoms.
    grows: ClassVar[bool] = False
    #: Arrays of other libraries are taken as they are.
    array_api: ClassVar[bool] = False
    #: Data may be images, ``(n_samples, height, width)``.
    takes_images: ClassVar[bool] = False
    #: What the atoms stand for has been learned from data.
    learned: ClassVar[bool] = False
    #: Rows and columns of an image, where that is known.
    shape: tuple[int, int] | None = None

    @property
    def given(self) -> Any:
        """The object that the user gave: the pool itself, or what :func:`as_pool` has wrapped."""
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
            The data, which stay as they are. Arrays of other libraries than NumPy are for pools
            with a true ``array_api``.
        weight : array of shape (n_samples,), optional
            Weights of the rows; rows of weight zero do not count at all.
        scale : {"std", "max"} or bool
            Divide each column by its standard deviation (``"std"``, also True; without an intercept
            by the root of its mean square), by its largest magnitude (``"max"``), or by nothing
            (False). The notes of a pool say where it does otherwise.
        fit_intercept : bool
            With an intercept, constant columns are never chosen.
        random_state : int, RandomState instance or None
            For pools that draw at random.
        """
        if not self.array_api:
            check_numpy(X, type(self).__name__)
        prepared = self._bound(TrainingData(X, weight, scale, fit_intercept, random_state))
        prepared.made_by = self
        prepared.n_features = X.shape[1]
        return prepared

    def _bound(self, data: TrainingData) -> PreparedPool:
        """Bind the pool to data; for pools that leave ``prepare`` as it is."""
        raise NotImplementedError

    def evaluate(self, X: MatrixLike, atoms: Sequence[Any]) -> Any:
        """Return the unscaled columns of ``atoms`` on new data: ``(n_samples, total width)``."""
        raise NotImplementedError

    def feature_indices(self, atoms: Sequence[Any], n_features: int) -> np.ndarray:
        """Return the columns of the data that ``atoms`` read, in order."""
        raise NotImplementedError

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return how many columns ``atom`` has; raise a ValueError for what is no atom."""
        raise NotImplementedError

    def labels(self, atoms: Sequence[Any]) -> list[Any]:
        """Return how to name ``atoms``: by themselves."""
        return list(atoms)

    def describe(self, atom: Any, names: Sequence[str]) -> str:
        """Return an atom in words, for columns of these names."""
        return str(self.labels([atom])[0])

    def cost(self, atom: Any, n_features: int) -> Cost:
        """Return what a row costs before the weights."""
        return Cost(0, 0)

    def total_cost(self, atoms: Sequence[Any], n_features: int, n_outputs: int) -> Cost:
        """Return what a row costs: its atoms, and a weight for each of their columns and output."""
        costs = [self.cost(atom, n_features) for atom in atoms]
        widths = [self.n_columns(atom, n_features) for atom in atoms]
        adds = sum(cost.multiply_adds for cost in costs) + n_outputs * sum(widths)
        return Cost(adds, sum(cost.comparisons for cost in costs))

    def scorer(self, atoms: Sequence[Any], weights: np.ndarray, intercept: np.ndarray) -> Any:
        """Return what computes the scores of rows of NumPy arrays, ready to be called often."""
        return PoolScorer(self, atoms, weights, intercept)

    def for_images(self, shape: tuple[int, int]) -> Pool:
        """Return the pool for images of this shape."""
        return self

    def member(self, atom: Any) -> tuple[Pool, Any]:
        """Return the pool that an atom comes from, and what the atom is there."""
        return self, atom


class PreparedPool:
    """Base of pools bound to data: what the engine asks for atoms.

    A subclass gives ``n_usable``, the number of atoms that can be chosen, ``top``, ``columns`` and
    ``scale``. All else has a default.
    """

    #: ``top`` takes the keyword ``curvature``, and then goes by the gains of Newton steps.
    takes_curvature: ClassVar[bool] = False
    #: ``top`` takes the keyword ``new_inputs``: how many columns an atom may read beside
    #: those in ``inputs``.
    counts_inputs: ClassVar[bool] = False
    #: ``adjust`` finds steps of atoms that have parameters of their own.
    adjustable: ClassVar[bool] = False
    #: Number of atoms that can be chosen.
    n_usable: int
    #: What evaluates the atoms on other data. :func:`bind` sets it, unless the pool has learned
    #: from the data what its atoms are.
    pool: Any = None
    #: The pool that was bound, where that is one of this package.
    made_by: Pool | None = None
    #: Columns of the data.
    n_features: int | None = None

    @property
    def given(self) -> Any:
        """The object that answers: the pool itself, or what :func:`as_prepared` has wrapped."""
        return self

    @property
    def priced(self) -> bool:
        """Whether atoms have prices, and ``top`` takes the keyword ``budget``."""
        return False

    @property
    def tells_inputs(self) -> bool:
        """Whether it is known which columns of the data an atom reads."""
        return True

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return up to ``m`` atoms with their scores, best first, none of them excluded.

        Scores are norms of gradients, ``columns(atom) @ residual``: by the rule ``"l1"`` the sum of
        the magnitudes, by ``"l2"`` the root of the sum of the squares.

        With ``inputs``, only atoms that read no other columns of the data than these. A pool with
        prices goes by the score over the root of the price, and with ``budget`` offers no atom that
        costs more.
        """
        raise NotImplementedError

    def shortlist(self, *args: Any, **limits: Any) -> Offers:
        """Return ``m`` good atoms that differ from each other, the best one first.

        For rules that look at several. By default the best ones; the arguments are those of
        ``top``.
        """
        return self.top(*args, **limits)

    def columns(self, atom: Any) -> Any:
        """Return the scaled columns of ``atom``, one per row: ``(width, n_samples)``."""
        raise NotImplementedError

    def scale(self, atom: Any) -> Any:
        """Return what each column of ``atom`` was divided by."""
        raise NotImplementedError

    def inputs(self, atom: Any) -> frozenset[int]:
        """Return the columns of the data that ``atom`` reads."""
        pool = self.made_by if self.pool is None else self.pool
        if pool is None or self.n_features is None:
            raise TypeError(f"{type(self.given).__name__} is not bound by a pool that tells this.")
        return frozenset(to_numpy(pool.feature_indices([atom], self.n_features)).tolist())

    def price(self, atom: Any) -> float:
        """Return what ``atom`` costs, a positive number; gains are divided by it."""
        return 1.0

    def adjust(self, atoms: Sequence[Any], slopes: Any, bends: Any) -> Any:
        """Return steps of ``atoms`` that lower the loss, where they have parameters of their own.

        ``slopes`` and ``bends`` are its first and second derivatives in their scaled columns, an
        atom per row.
        """
        raise NotImplementedError


class Recent:
    """The columns of the atoms that were asked for last.

    A rule that looks at several candidates a round asks for many of them again in the next.

    Parameters
    ----------
    room : int
        How many are kept; all of those asked for together are, even if they are more.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._kept: dict[Hashable, Any] = {}

    def gather(self, atoms: Sequence[Any], make: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """Return the columns of ``atoms``; ``make`` makes those that are not at hand, at once.

        It is not kept: a pool that is reached from itself is freed late, and a GPU soon full.
        """
        kept = self._kept
        for atom in atoms:  # those at hand go to the end, out of the way of what is dropped below
            if atom in kept:
                kept[atom] = kept.pop(atom)
        missing = [atom for atom in atoms if atom not in kept]
        if missing:
            kept.update(zip(missing, make(missing), strict=True))
        while len(kept) > max(self._room, len(atoms)):
            del kept[next(iter(kept))]
        return [kept[atom] for atom in atoms]


def best_of_each(scores: np.ndarray, m: int) -> list[int]:
    """Return the place of the best score in each of the ``m`` best rows, largest first."""
    best = scores.argmax(axis=1)
    rows = best_places(scores.max(axis=1), m)
    return [row * scores.shape[1] + int(best[row]) for row in rows]


def best_places(worth: np.ndarray, m: int) -> list[int]:
    """Return where the ``m`` largest positive numbers lie, largest first, ties in order."""
    if m == 1:
        best = np.asarray([np.argmax(worth)]) if len(worth) else np.empty(0, dtype=np.intp)
    else:
        least = np.partition(worth, -m)[-m] if m < len(worth) else -np.inf
        near = np.flatnonzero(worth >= least)
        best = near[np.argsort(-worth[near], kind="stable")[:m]]
    return [int(place) for place in best if worth[place] > 0.0]


def working_dtype(X: Array) -> Any:
    """Return the dtype to compute in: float32 for data that it holds exactly, else float64."""
    if not is_sparse(X) and not isinstance(X, np.ndarray):
        xp = namespace(X)
        if xp.isdtype(X.dtype, "real floating"):
            return xp.float32 if xp.finfo(X.dtype).bits <= 32 else xp.float64
        small = xp.isdtype(X.dtype, "bool") or xp.iinfo(X.dtype).bits <= 16
        return xp.float32 if small else xp.float64
    narrow = X.dtype.kind in "fiub" and X.dtype.itemsize <= (4 if X.dtype.kind == "f" else 2)
    return np.dtype(np.float32 if narrow else np.float64)


def check_numpy(X: MatrixLike, name: str) -> None:
    """Raise for arrays of other libraries, naming what cannot take them."""
    if not is_sparse(X) and not is_numpy(X):
        raise TypeError(
            f"{name} takes NumPy arrays and sparse matrices, not {type(X).__name__}; "
            "convert X with numpy.asarray first."
        )


def check_whole(value: Any, name: str, least: int = 1, most: int | None = None) -> None:
    """Raise unless ``value`` is a whole number in its range; ``name`` is of class and parameter."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r}) must be a whole number.")
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name}={value!r}) must be {allowed}.")
