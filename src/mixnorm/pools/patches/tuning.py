"""Tuning of templates: steps that lower the loss, for all chosen patches at once.

With the place of the largest response held fixed, the column of an atom is linear in its template:
``x = A v``, where ``A`` has the patches found, without their means, times the weights of the mask.
For first and second derivatives ``s`` and ``b`` of the loss in the column, a Newton step in the
template is ``(A^T diag(b) A + ridge)^{-1} A^T s`` (:eq:`patch-tuning`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm._array import Array, device_of, is_numpy, namespace, to_numpy
from mixnorm._chunks import run_loop
from mixnorm.pools.patches.responses import PatchParts, by_size
from mixnorm.pools.scorers import for_compiled

if TYPE_CHECKING:
    from mixnorm.pools.patches.pool import Atom
    from mixnorm.pools.patches.prepared import PreparedPatches

# Share of the mean curvature that is added to all: it keeps directions that images hardly show.
_TEMPLATE_RIDGE = 0.1


class PatchAdjustment:
    """Steps of the templates of some atoms (:eq:`patch-tuning`).

    Parameters
    ----------
    data : PreparedPatches
        The pool of the atoms.
    atoms : sequence of (int, int)
        The atoms.
    X : array of shape (n_samples, height * width)
        The images.
    slopes, bends : arrays of shape (n_atoms, n_samples)
        First and second derivatives of the loss in their scaled columns.

    Attributes
    ----------
    slope : float
        How fast the loss falls along the steps.
    """

    def __init__(
        self,
        data: PreparedPatches,
        atoms: Sequence[Atom],
        X: Array,
        slopes: Array,
        bends: Array,
    ) -> None:
        self._data, self._parts = data, PatchParts(data.pool, atoms, X.shape[1])
        self._sizes = [float(data.scale(atom)[0]) for atom in atoms]
        self._steps: list[np.ndarray] = [np.empty(0)] * len(atoms)
        self.slope = 0.0
        for place, gradient, curvature in _sums(X, self._parts, slopes, bends):
            size = self._sizes[place]
            # Sums are of responses; derivatives are in the scaled columns, responses over their
            # size.
            gradient, curvature = gradient / size, curvature / size / size
            ridge = (
                _TEMPLATE_RIDGE * np.trace(curvature) / len(gradient) + np.finfo(np.float64).tiny
            )
            step = np.linalg.solve(curvature + ridge * np.eye(len(gradient)), gradient)
            self._steps[place] = step
            self.slope += float(gradient @ step)

    def move(self, length: float) -> list[tuple[Atom, float]]:
        """Take a step of this length; return the new atoms, and the factors of their weights."""
        made, lengths = [], []
        for taps, step in zip(self._parts.taps, self._steps, strict=True):
            template = np.asarray(taps, dtype=np.float64) - length * step
            norm = float(np.linalg.norm(template))
            lengths.append(norm if norm > 0.0 else 1.0)
            made.append((template / lengths[-1]).astype(np.result_type(taps, np.float32)))
        atoms = self._data.take_on(made, self._parts.sizes, self._parts.masks)
        pairs = zip(atoms, self._sizes, lengths, strict=True)
        # The new column is the old one, divided by the template's new length and by another size.
        # The weight is multiplied by both, so that the scores are those of the step.
        return [
            (atom, norm * float(self._data.scale(atom)[0]) / size) for atom, size, norm in pairs
        ]


def _sums_compiled(
    X: np.ndarray, parts: PatchParts, slopes: np.ndarray, bends: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield ``A^T s`` and ``A^T diag(b) A`` for each atom."""
    from mixnorm.pools.patches.patches_jit import LANES, locate

    images, dtype = for_compiled(np.ascontiguousarray(X)), slopes.dtype
    best, places = np.empty((2, len(X)), dtype), np.empty(len(X), np.int64)
    for atom, (taps, size) in enumerate(zip(parts.taps, parts.sizes, strict=True)):
        window = np.asarray(parts.windows[atom], dtype=np.intp)
        down, across = (part.astype(dtype) for part in parts.weights[atom])
        fixed = images, parts.shape[1], taps.astype(dtype), size, window, down, across, best, places
        each = LANES * len(taps) * len(down) * len(across)
        # Compiled code does eight operations at once.
        run_loop(locate, *fixed, items=-(-len(images) // LANES), operations=each // 8)
        used = np.flatnonzero(best[0] > 0.0)
        offsets = (np.arange(size)[:, None] * parts.shape[1] + np.arange(size)).ravel()
        patches = images[used[:, None], places[used, None] + offsets].astype(dtype)
        # Without their means, so that the mean of a template stays zero; times the mask's weight.
        patches -= patches.mean(axis=1, keepdims=True)
        patches *= best[1, used, None]
        gradient = patches.T @ slopes[atom, used]
        curvature = (patches * bends[atom, used, None]).T @ patches
        yield atom, gradient.astype(np.float64), curvature.astype(np.float64)


def _sums(
    X: Array, parts: PatchParts, slopes: Array, bends: Array
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield ``A^T s`` and ``A^T diag(b) A`` for each atom, all atoms of one size at once."""
    if is_numpy(X) and is_numpy(slopes) and is_numpy(bends):
        yield from _sums_compiled(X, parts, slopes, bends)
        return
    xp, dtype = namespace(X), slopes.dtype
    for group in by_size(parts):
        places = xp.asarray(group.places, device=device_of(X))
        own_slopes, own_bends = xp.take(slopes, places, axis=0), xp.take(bends, places, axis=0)
        gradient: Any = 0.0
        curvature: Any = 0.0
        for rows, patches, found, masks in group.products(X, dtype):
            at = xp.argmax(found, axis=2)
            best = xp.take_along_axis(found, at[:, :, None], axis=2)[:, :, 0]
            weight = xp.take_along_axis(masks, at.T, axis=1)
            weight = xp.where(best.T > 0.0, weight, xp.zeros_like(weight))
            index = xp.broadcast_to(at[:, None, :], (*patches.shape[:2], at.shape[1]))
            chosen = xp.take_along_axis(patches, index, axis=2)
            chosen = chosen - xp.mean(chosen, axis=1, keepdims=True)
            by_atom = xp.permute_dims(chosen, (2, 1, 0))  # atoms, pixels of a patch, images
            by_atom = by_atom * weight[:, None, :]
            s, b = own_slopes[:, rows], own_bends[:, rows]
            gradient = gradient + (by_atom @ s[:, :, None])[:, :, 0]
            curvature = curvature + (by_atom * b[:, None, :]) @ xp.permute_dims(by_atom, (0, 2, 1))
        sums = to_numpy(gradient).astype(np.float64), to_numpy(curvature).astype(np.float64)
        for number, place in enumerate(group.places):
            yield place, sums[0][number], sums[1][number]
