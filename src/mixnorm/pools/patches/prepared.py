"""Patches bound to images: the responses of all atoms, which every round scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from mixnorm._array import (
    Array,
    device_of,
    follow,
    is_double,
    is_numpy,
    namespace,
    quick_products,
    to_numpy,
)
from mixnorm._chunks import blocks, run_loop
from mixnorm.pools.base import (
    Excluded,
    Inputs,
    Offers,
    PoolData,
    PreparedPool,
    Recent,
    best_of_each,
    best_places,
)
from mixnorm.pools.patches.responses import all_responses

if TYPE_CHECKING:
    from mixnorm.pools.patches.masks import Scale
    from mixnorm.pools.patches.pool import Atom, Patches
    from mixnorm.pools.patches.tuning import PatchAdjustment

_GIB = 1 << 30
# Images from which the unit of rounded responses is computed.
_IMAGES_FOR_UNITS = 2048
# Stored responses that are scanned at a time: by NumPy, and by other libraries, which convert them
# to floats.
_RESPONSES_TO_SCAN, _RESPONSES_TO_CONVERT = 1 << 24, 1 << 28
# Exact columns that a prepared pool keeps.
_RESPONSES_TO_KEEP = 64


class PreparedPatches(PreparedPool):
    """Patches bound to images.

    Parameters
    ----------
    pool : Patches
        The pool, with templates and shape.
    scales : list of Scale
        Its sizes and masks.
    data : PoolData
        The images, as rows. With all scales but False, columns are divided by their largest
        entries.

    Attributes
    ----------
    pool : Patches
        The pool that evaluates the atoms on other images.
    """

    adjustable: ClassVar[bool] = True
    pool: Patches

    def __init__(self, pool: Patches, scales: list[Scale], data: PoolData) -> None:
        X, weight, scale = data.X, data.weight, bool(data.scale)
        self.pool, self._X, self._scales = pool, X, scales
        self._plain, self._tuned = pool, dict[Any, Any]()
        self._dtype = data.dtype
        self._n_masks = scales[0].n_masks
        self._n_atoms = sum(part.n_templates for part in scales) * self._n_masks
        self._keep, self._sizes = scale, dict[Any, float]()
        self._recent = Recent(_RESPONSES_TO_KEEP)
        self._used = None
        if weight is not None and not bool(namespace(weight).all(weight > 0)):
            self._used = np.flatnonzero(data.used)
        self._steps: np.ndarray | None = None
        self._store = self._compute_responses()
        low, high = self._find_ranges()
        usable = high > (low if data.fit_intercept else 0.0)
        # The inverse of a smaller response would overflow.
        least = np.finfo(np.float64 if is_double(self._dtype) else np.float32).tiny
        self._usable = usable & (high > 4.0 * least)
        self.n_usable = int(np.count_nonzero(self._usable))
        self._largest = np.where(self._usable & scale, high, 1.0)
        # Stored responses times this are scaled columns; zero where an atom cannot be chosen.
        units = 1.0 if self._steps is None else self._steps
        self._inverse = follow(np.where(self._usable, units / self._largest, 0.0), X, self._dtype)
        with quick_products(self._store) as quick:
            self._rounded = quick or not self.exact

    @property
    def exact(self) -> bool:
        """Whether the responses of all atoms are stored without rounding."""
        return bool(self._store.dtype == self._dtype)

    def _compute_responses(self) -> Any:
        """Return the responses of all atoms, in a dtype that fits in the memory allowed."""
        X, entries = self._X, self._n_atoms * self._X.shape[0]
        xp, allowed = namespace(X), self.pool.max_gib * _GIB
        choices = self._list_dtypes()
        dtype, each = next((one for one in choices if entries * one[1] <= allowed), choices[-1])
        if entries * each > allowed:
            raise ValueError(
                f"{self._n_atoms} responses to {X.shape[0]} images take "
                f"{entries * each / _GIB:.3g} GiB even when rounded, and "
                f"Patches(max_gib={self.pool.max_gib:g}) allows less. "
                "Choose fewer templates or masks, give fewer images, or raise max_gib."
            )
        store = xp.empty((self._n_atoms, X.shape[0]), dtype=dtype, device=device_of(X))
        if dtype != self._dtype:
            # A byte counts up to 255; half precision has the same digits at any size.
            self._steps = self._find_units() / (255.0 if each == 1 else 1.0)
        for part, sets in zip(self._scales, self.pool.template_sets(), strict=True):
            rows = slice(part.first * self._n_masks, (part.first + len(sets)) * self._n_masks)
            units = None if self._steps is None else self._steps[rows]
            all_responses(X, part, sets, units, store[rows, :])
        return store

    def _list_dtypes(self) -> list[tuple[Any, int]]:
        """Return the dtypes that may store responses, with their bytes; the exact one first."""
        xp = namespace(self._X)
        wide = (self._dtype, xp.finfo(self._dtype).bits // 8)
        if is_numpy(self._X):
            return [wide, (np.dtype(np.uint8), 1)]
        half = getattr(xp, "float16", None)
        return [wide] if half is None else [wide, (half, 2)]

    def _find_units(self) -> np.ndarray:
        """Return the units of rounded responses: the largest responses to some images."""
        used = np.arange(self._X.shape[0]) if self._used is None else self._used
        if len(used) > _IMAGES_FOR_UNITS:
            used = np.sort(np.random.default_rng(0).choice(used, _IMAGES_FOR_UNITS, replace=False))
        xp = namespace(self._X)
        X = xp.take(self._X, xp.asarray(used, device=device_of(self._X)), axis=0)
        largest = []
        for part, sets in zip(self._scales, self.pool.template_sets(), strict=True):
            size = (len(sets) * self._n_masks, X.shape[0])
            found = xp.empty(size, dtype=self._dtype, device=device_of(X))
            all_responses(X, part, sets, None, found)
            largest.append(to_numpy(xp.max(found, axis=1)).astype(np.float64))
        # A tenth more than the largest of a sample: larger responses to other images are cut.
        units: np.ndarray = 1.1 * np.concatenate(largest)
        return np.where(units > 0.0, units, float(units.max(initial=0.0)) or 1.0)

    def _find_ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and largest responses of each atom, as stored."""
        store, xp = self._store, namespace(self._store)
        low, high = np.empty(self._n_atoms), np.empty(self._n_atoms)
        for rows in self._cut_atoms():
            part = self._take_used(store[rows, :])
            low[rows], high[rows] = to_numpy(xp.min(part, axis=1)), to_numpy(xp.max(part, axis=1))
        if self._steps is not None:
            low, high = low * self._steps, high * self._steps
        return low, high

    def _take_used(self, rows: Array) -> Any:
        """Return the responses to the images that count."""
        if self._used is None:
            return rows
        xp = namespace(rows)
        return xp.take(rows, xp.asarray(self._used, device=device_of(rows)), axis=1)

    def _cut_atoms(self) -> list[slice]:
        """Return blocks of atoms whose responses are scanned at once."""
        entries = _RESPONSES_TO_SCAN if is_numpy(self._store) else _RESPONSES_TO_CONVERT
        step = max(1, entries // max(1, self._store.shape[1]))
        return list(blocks(self._n_atoms, step))

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the ``m`` atoms with the largest gradients, with their scores, best first.

        Where responses or their products are rounded, the first ``2 m`` (at least eight) are scored
        exactly, and the best of them returned.
        """
        scores = self._compute_scores(residual, rule, exclude, inputs)
        places = best_places(scores, self._count_candidates(m))
        return self._rank(places, scores, residual, rule)[:m]

    def shortlist(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return the best atoms of the ``m`` best templates, best first."""
        scores = self._compute_scores(residual, rule, exclude, inputs).reshape(-1, self._n_masks)
        places = best_of_each(scores, self._count_candidates(m))
        return self._rank(places, scores.reshape(-1), residual, rule)[:m]

    def _count_candidates(self, m: int) -> int:
        """Return how many atoms to score exactly where ``m`` are wanted.

        Errors of rounded gradients are small (:eq:`patch-rounding`), so that the best atom is among
        the first ones.
        """
        return max(8, 2 * m) if self._rounded else m

    def _rank(self, places: list[int], scores: np.ndarray, residual: Array, rule: str) -> Offers:
        """Return atoms with their exact scores, best first."""
        atoms = [divmod(place, self._n_masks) for place in places]
        if not self._rounded or not atoms:
            return [(atom, float(scores[p])) for atom, p in zip(atoms, places, strict=True)]
        xp = namespace(residual)
        columns = [self.columns(atom) for atom in atoms] if self.exact else None
        gradient = xp.concat(columns or self._gather(atoms)) @ residual
        found = to_numpy(_compute_norms(gradient, rule)).tolist()
        ranked = sorted(zip(atoms, found, strict=True), key=lambda pair: -pair[1])
        return [(atom, score) for atom, score in ranked if score > 0.0]

    def _compute_scores(
        self, residual: Array, rule: str, exclude: Excluded, inputs: Inputs
    ) -> np.ndarray:
        """Return the scores of all atoms, zero for those that are excluded."""
        if not self._n_atoms:
            return np.zeros(0)
        gradient = self._compute_gradient(residual) * self._inverse[:, None]
        scores = to_numpy(_compute_norms(gradient, rule)).astype(np.float64)
        for atom in exclude:
            template, mask = cast("Atom", atom)
            if atom not in self._tuned:  # tuned atoms have no place among those that are stored
                scores[template * self._n_masks + mask] = 0.0
        if inputs is not None:
            self._drop_readers_of_others(scores.reshape(-1, self._n_masks), inputs)
        return scores

    def _compute_gradient(self, residual: Array) -> Any:
        """Return the products of all stored responses with the residual."""
        if self.exact:
            with quick_products(residual):
                return self._store @ residual
        xp = namespace(residual)
        if is_numpy(residual):
            from mixnorm.pools.patches.patches_jit import ATOMS, coded_gradient

            gradient = np.empty((self._n_atoms, residual.shape[1]), dtype=residual.dtype)
            by_output = np.ascontiguousarray(residual.T)
            # Compiled code does eight operations at once.
            each = ATOMS * by_output.size // 8
            groups = -(-self._n_atoms // ATOMS)
            parts = self._store, by_output, gradient
            run_loop(coded_gradient, *parts, items=groups, operations=each)
            return gradient
        parts = [
            xp.astype(self._store[rows, :], self._dtype) @ residual for rows in self._cut_atoms()
        ]
        return xp.concat(parts)

    def _drop_readers_of_others(self, scores: np.ndarray, inputs: frozenset[int]) -> None:
        """Set the scores of atoms that read other pixels than ``inputs`` to zero."""
        for part in self._scales:
            templates = slice(part.first, part.first + part.n_templates)
            for mask in range(self._n_masks):
                if not inputs.issuperset(part.pixels(mask).tolist()):
                    scores[templates, mask] = 0.0

    def columns(self, atom: Atom) -> Any:
        """Return the scaled column of ``atom``: ``(1, n_samples)``."""
        if atom in self._tuned:
            return self._tuned[atom]
        if self.exact:
            place = atom[0] * self._n_masks + atom[1]
            return self._store[place : place + 1, :] / float(self._largest[place])
        return self._gather([atom])[0]

    def _gather(self, atoms: list[Atom]) -> list[Any]:
        """Return the exact scaled columns of ``atoms``; one call computes those not kept."""
        return self._recent.gather(atoms, self._compute)

    def _compute(self, atoms: list[Atom]) -> list[Any]:
        """Return the exact scaled columns of ``atoms``, and remember their sizes."""
        xp = namespace(self._X)
        found = xp.astype(self.pool.evaluate(self._X, atoms), self._dtype).T
        sizes = self._find_sizes(found)
        self._sizes.update(zip(atoms, sizes.tolist(), strict=True))
        return [found[place : place + 1, :] / size for place, size in enumerate(sizes.tolist())]

    def _find_sizes(self, rows: Array) -> np.ndarray:
        """Return the divisor of each row: its largest entry."""
        if not self._keep:
            return np.ones(rows.shape[0])
        sizes = to_numpy(namespace(rows).max(self._take_used(rows), axis=1)).astype(np.float64)
        return np.where(sizes > 0.0, sizes, 1.0)

    def scale(self, atom: Atom) -> np.ndarray:
        """Return the divisor of the column of ``atom``."""
        if self.exact and atom not in self._tuned:
            size = self._largest[atom[0] * self._n_masks + atom[1]]
        else:
            if atom not in self._sizes:
                self._gather([atom])
            size = self._sizes[atom]
        return np.asarray([size], dtype=np.float64 if is_double(self._dtype) else np.float32)

    def adjust(self, atoms: Sequence[Atom], slopes: Array, bends: Array) -> PatchAdjustment:
        """Return steps of the templates of ``atoms`` that lower the loss.

        ``slopes`` and ``bends`` are the first and second derivatives of the loss in the scaled
        columns, an atom per row.
        """
        from mixnorm.pools.patches.tuning import PatchAdjustment

        return PatchAdjustment(self, atoms, self._X, slopes, bends)

    def take_on(
        self, templates: Sequence[np.ndarray], sizes: Sequence[int], masks: Sequence[int]
    ) -> list[Atom]:
        """Return atoms of new templates, which replace those of the previous call."""
        sets = list(self._plain.template_sets())
        numbers, first = [0] * len(templates), sum(map(len, sets))
        # A set of templates has one size; numbers go on behind the templates that were learned.
        for size in sorted(set(sizes)):
            places = [place for place, other in enumerate(sizes) if other == size]
            sets.append(np.stack([templates[place].reshape(size, size) for place in places]))
            for place in places:
                numbers[place], first = first, first + 1
        self.pool = replace(self._plain, templates=tuple(sets))
        atoms = list(zip(numbers, masks, strict=True))
        self._tuned = dict(zip(atoms, self._compute(atoms), strict=True))
        return atoms


def _compute_norms(gradient: Array, rule: str) -> Any:
    xp = namespace(gradient)
    if rule == "l1":
        return xp.sum(xp.abs(gradient), axis=1)
    return xp.sqrt(xp.sum(gradient * gradient, axis=1))
