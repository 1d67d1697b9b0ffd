"""Boxes: conjunctions of a few stumps as one atom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np

from mixnorm._array import Array, to_dense
from mixnorm._chunks import run_loop
from mixnorm._numbers import check_count
from mixnorm.pools.base import (
    Cost,
    Excluded,
    Inputs,
    Offers,
    Pool,
    PoolData,
    working_dtype,
)
from mixnorm.pools.scorers import BoxScorer, Scorer, group_boxes
from mixnorm.pools.stumps import Binned, describe_side

# Best stumps of a round that may get another side.
_STUMPS_TO_REFINE = 8
# Features in which boxes get another side: those with the best stumps.
_FEATURES_TO_REFINE = 64

Side = tuple[int, Literal["<=", ">"], float]
Atom = tuple[Side, ...]
# Features that a box may read, and how many others.
Reach = tuple[frozenset[int], int]


@dataclass
class Boxes(Pool):
    """Indicators of boxes: at most ``depth`` comparisons, all of them true.

    A stump reads one feature; a box lets features interact, as a leaf of a small tree does. All
    outputs share it.

    Parameters
    ----------
    depth : int, default=2
        Most comparisons of a box. With 1, each is a stump.
    max_bins : int, default=255
        Most thresholds per feature: all between two of its values, or quantiles where these are
        more.
    beam : int, default=24
        Boxes that a round tries to refine.

    Notes
    -----
    An atom is a tuple of sides: ``((3, "<=", 2.5), (7, ">", 1.0))``.

    Every round scores all stumps. There are too many boxes to score them all: a round adds one
    comparison to the chosen boxes, to the other side of chosen stumps, and to either side of the
    eight best stumps, but only to the ``beam`` of these that hold most of the residual. The new
    comparison is in one of the 64 features with the best stumps, or in one that a chosen box reads.
    Each box costs a pass over the rows inside, for every such feature. The data are stored as bins
    of one byte per entry; many bins take two or four. ``scale`` and ``fit_intercept`` have no
    effect on indicators.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import GreedyOptions, ShareBoostClassifier
    >>> X = np.random.default_rng(0).uniform(size=(400, 3))
    >>> y = (X[:, 0] <= 0.6) & (X[:, 2] > 0.3)
    >>> options = GreedyOptions(rule="exact")
    >>> model = ShareBoostClassifier(1, pool=Boxes(), options=options).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    depth: int = 2
    max_bins: int = 255
    beam: int = 24

    #: Chosen boxes are refined.
    grows: ClassVar[bool] = True

    def _bind(self, data: PoolData) -> PreparedBoxes:
        """Find the thresholds, and sort rows into bins."""
        for name in ("depth", "max_bins", "beam"):
            check_count(f"Boxes: {name}", getattr(self, name))
        return PreparedBoxes(self, data)

    def evaluate(self, X: Array, atoms: Sequence[Atom]) -> np.ndarray:
        """Return the indicators of ``atoms`` on new data: ``(n_samples, n_atoms)``."""
        found = np.ones((X.shape[0], len(atoms)), dtype=working_dtype(X))
        for place, atom in enumerate(atoms):
            for column, kind, threshold in atom:
                values = to_dense(X[:, [column]])[:, 0]
                # One column at a time is made dense: sparse data may have very many.
                found[:, place] *= values <= threshold if kind == "<=" else values > threshold
        return found

    def scorer(self, atoms: Sequence[Atom], weights: np.ndarray, intercept: np.ndarray) -> Scorer:
        """Return a scorer that does not make the columns."""
        return BoxScorer(atoms, weights, intercept)

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Describe an atom in words, for features with these names.

        A name with methods ``below`` and ``above`` describes the values on either side of a
        threshold in its own units.
        """
        return " and ".join(describe_side(names[side[0]], *side[1:]) for side in atom)

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the features that ``atoms`` read, in order."""
        read = [column for atom in atoms for column in _columns(atom)]
        return np.asarray(read, dtype=np.intp)

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return the operations that an indicator takes: its comparisons."""
        return Cost(0, len(atom))

    def total_cost(self, atoms: Sequence[Atom], n_features: int, n_outputs: int) -> Cost:
        """Return the operations that scores take.

        The weights of boxes that read the same one or two features are added up beforehand, so that
        a binary search among the thresholds of each feature finds their sum. Other boxes are
        evaluated one by one.
        """
        groups, rest = group_boxes(atoms)
        tabled = {side for boxes in groups.values() for box in boxes for side in atoms[box]}
        counts = Counter(column for column, _ in {(side[0], side[2]) for side in tabled})
        searches = sum(count.bit_length() for count in counts.values())
        adds = n_outputs * (len(groups) + len(rest))
        return Cost(adds, searches + sum(len(atoms[box]) for box in rest))

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return 1; raise a ValueError for anything but a box of such data."""
        good = type(atom) is tuple and len(atom) > 0 and all(_is_side(s, n_features) for s in atom)
        # One side of a kind for each column, in order: every box has one name, so that a box which
        # is chosen is known again, however it was found.
        if not good or len({side[:2] for side in atom}) < len(atom) or list(atom) != sorted(atom):
            raise ValueError(
                f"atoms of a Boxes pool are sorted tuples of sides (column, '<=' or '>', "
                f"threshold) with columns below {n_features}, not {str(atom)[:100]}"
            )
        return 1


class PreparedBoxes(Binned):
    """Boxes bound to data.

    Parameters
    ----------
    pool : Boxes
        The parameters.
    data : PoolData
        The data.
    """

    counts_inputs: ClassVar[bool] = True

    def __init__(self, pool: Boxes, data: PoolData) -> None:
        super().__init__(data, pool.max_bins)
        self._pool, self._used = pool, data.used
        # With several comparisons, about the number of boxes: each takes one of two sides of any
        # threshold. Bounded, as it is only compared with the number of atoms wanted.
        for _ in range(min(pool.depth - 1, 31)):
            self.n_usable = min(2 * len(self._edges) * self.n_usable, 2**31 - 1)

    def top(
        self,
        residual: Array,
        rule: str,
        m: int,
        exclude: Excluded,
        inputs: Inputs = None,
        new_inputs: int = 0,
    ) -> Offers:
        """Return the best ``m`` boxes found, with their scores, best first.

        Of the sides that a box may get in one feature, only the best is offered. With ``inputs``, a
        box reads these features and at most ``new_inputs`` others.
        """
        residual = np.ascontiguousarray(residual)
        columns = np.arange(len(self._starts) - 1)
        # With room for a new input every column stays, and boxes that read too many are dropped.
        if inputs is not None and new_inputs == 0:
            columns = np.asarray(sorted(inputs))
        columns, chosen = columns.astype(np.int64), cast(frozenset[Atom], exclude)
        reach = None if inputs is None else (inputs, new_inputs)
        # The empty box holds all rows: its refinements are the stumps.
        stumps = self._refine([()], columns, residual, rule, chosen, m, reach)
        found = stumps
        if self._pool.depth > 1:
            parents = self._pick_parents(stumps, chosen, residual, reach)
            if len(columns) > _FEATURES_TO_REFINE:
                best = _pick_heaviest(stumps, _FEATURES_TO_REFINE)
                read = {column for atom in (*best, *chosen) for column in _columns(atom)}
                columns = np.asarray(sorted(read), dtype=np.int64)
            found = stumps | self._refine(parents, columns, residual, rule, chosen, m, reach)
        # Of equal scores the box with fewer sides goes first, then the order of atoms: fits repeat.
        ranked = sorted(found.items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
        return ranked[:m]

    def _pick_parents(
        self,
        stumps: dict[Atom, float],
        chosen: frozenset[Atom],
        residual: np.ndarray,
        reach: Reach | None,
    ) -> list[Atom]:
        """Return the boxes to which a round adds one comparison."""
        best = _pick_heaviest(stumps, _STUMPS_TO_REFINE)
        short = [atom for atom in chosen if len(atom) < self._pool.depth]
        short = [atom for atom in short if _is_within_reach(atom, reach)]
        singles = [*best, *(atom for atom in short if len(atom) == 1)]
        parents = {*short, *singles, *map(_flip_stump, singles)}
        # No box inside a parent has a gradient larger than the residual that the parent holds. This
        # bound is cheap, and ranks the parents that are worth a pass.
        mass = np.abs(residual).sum(axis=1)
        held = {atom: float(mass[self._inside(atom)].sum()) for atom in parents}
        return _pick_heaviest(held, self._pool.beam)

    def _refine(
        self,
        parents: list[Atom],
        columns: np.ndarray,
        residual: np.ndarray,
        rule: str,
        exclude: frozenset[Atom],
        m: int,
        reach: Reach | None = None,
    ) -> dict[Atom, float]:
        """Return the best ``m`` boxes that ``parents`` become by the best new side in each feature.

        At least ``_FEATURES_TO_REFINE`` are returned, where there are that many.
        """
        from mixnorm.pools.boxes_jit import best_sides, parent_sums

        rows = [np.flatnonzero(self._inside(atom) & self._used) for atom in parents]
        ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        together = np.concatenate([*rows, np.empty(0)], dtype=np.int64, casting="unsafe")
        best = np.zeros((len(parents), len(columns), 3))
        # Of all rows, the upper part has the gradient of the lower with the other sign.
        both = np.asarray([bool(atom) for atom in parents], dtype=bool)
        totals = np.empty((len(parents), residual.shape[1]))
        taken, squared = self._number_excluded(parents, exclude), rule == "l2"
        # The work of the largest parent, which bounds how long a compiled call can take.
        most = max(map(len, rows), default=0) * (1 + residual.shape[1])
        sums = together, ends, residual, totals
        run_loop(parent_sums, *sums, items=len(parents), operations=most)
        run_loop(
            best_sides, self._codes, self._modes, self._starts, columns, *sums, taken, both,
            squared, best, items=len(parents) * len(columns), operations=most,
        )  # fmt: skip
        found: dict[Atom, float] = {}
        scores = best[:, :, 0].reshape(-1)
        for place in np.argsort(-scores, kind="stable").tolist():
            parent, column = divmod(place, len(columns))
            if scores[place] <= 0.0 or len(found) >= max(m, _FEATURES_TO_REFINE):
                break
            number, upper = best[parent, column, 1:]  # numbers in an array of floats
            column = int(columns[column])
            threshold = float(self._edges[self._starts[column] + int(number)])
            atom = _add_side(parents[parent], (column, ">" if upper else "<=", threshold))
            if atom not in exclude and _is_within_reach(atom, reach):
                # Two parents may become the same box; the first has the larger score.
                found.setdefault(atom, float(scores[place]))
        return found

    def _number_excluded(self, parents: list[Atom], exclude: frozenset[Atom]) -> np.ndarray:
        """Return the sides that make an excluded box, by the numbers of ``best_sides``."""
        numbers = {atom: number for number, atom in enumerate(parents)}
        found = []
        for atom in exclude:
            # The box without one of its sides may be a parent, which must not get that side again.
            for place, side in enumerate(atom):
                number = numbers.get(atom[:place] + atom[place + 1 :])
                if number is not None:
                    upper = int(side[1] == ">")
                    place = self._place(side[0], side[2])
                    found.append((2 * number + upper) * len(self._edges) + place)
        return np.sort(np.asarray(found, dtype=np.int64))

    def _inside(self, atom: Atom) -> np.ndarray:
        """Tell which rows lie in a box."""
        inside = np.ones(self._codes.shape[1], dtype=bool)
        for column, kind, threshold in atom:
            below = self._below(column, threshold)
            inside &= below if kind == "<=" else ~below
        return inside

    def columns(self, atom: Atom) -> np.ndarray:
        """Return the indicator of ``atom`` as a row: ``(1, n_samples)``."""
        return np.asarray(self._inside(atom)[None, :], dtype=self._dtype)


def _pick_heaviest(atoms: dict[Atom, float], most: int) -> list[Atom]:
    """Return the atoms with the largest numbers, ties in the order of atoms."""
    return sorted(atoms, key=lambda atom: (-atoms[atom], atom))[:most]


def _columns(atom: Atom) -> Iterable[int]:
    """Return the features that a box reads, each once."""
    return dict.fromkeys(column for column, _, _ in atom)


def _is_within_reach(atom: Atom, reach: Reach | None) -> bool:
    """Tell whether a box reads no more features than it may."""
    return reach is None or len(set(_columns(atom)) - reach[0]) <= reach[1]


def _add_side(atom: Atom, side: Side) -> Atom:
    """Return a box with one more side, which replaces a looser one."""
    kept = [other for other in atom if other[:2] != side[:2]]
    return tuple(sorted([*kept, side]))


def _flip_stump(atom: Atom) -> Atom:
    """Return the other side of a stump."""
    ((column, kind, threshold),) = atom
    return ((column, ">" if kind == "<=" else "<=", threshold),)


def _is_side(side: Any, n_features: int) -> bool:
    good = type(side) is tuple and len(side) == 3 and type(side[0]) is int
    good = good and type(side[1]) is str and type(side[2]) is float
    good = good and side[1] in ("<=", ">") and math.isfinite(side[2])
    return bool(good and 0 <= side[0] < n_features)
