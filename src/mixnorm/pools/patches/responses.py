"""Responses of templates under masks: compiled for NumPy, by array operations elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm._array import Array, device_of, follow, is_numpy, namespace
from mixnorm._chunks import blocks, run_loop
from mixnorm.pools.patches.masks import Scale, scale_of
from mixnorm.pools.scorers import for_compiled

if TYPE_CHECKING:
    from mixnorm.pools.patches.pool import Atom, Patches

# Below this number of images array operations are quicker than compiled code.
_FEWEST_COMPILED_IMAGES = 8
# Products of templates with patches that array operations make at a time.
_PRODUCTS_AT_A_TIME = 1 << 28


class PatchParts:
    """Chosen atoms taken apart: their templates, windows and weights.

    Attributes
    ----------
    shape : (int, int)
        Height and width of an image.
    taps : list of arrays of shape (size * size,)
        The templates.
    sizes : list of int
        Their rows and columns.
    masks : list of int
        The numbers of their masks.
    windows : list of (int, int, int, int)
        First row, end of rows, first column and end of columns of positions.
    weights : list of (array, array)
        The weights of the masks in their windows, by row and by column.
    """

    def __init__(self, pool: Patches, atoms: Sequence[Atom], n_features: int) -> None:
        scales, sets = pool.scales(n_features), pool.template_sets()
        self.shape = pool.shape_of(n_features)
        self.taps, self.sizes, self.windows, self.weights = [], [], [], []
        self.masks = [mask for _, mask in atoms]
        for atom in atoms:
            scale, (number, mask) = scale_of(atom, scales), atom
            self.taps.append(sets[scales.index(scale)][number - scale.first].reshape(-1))
            self.sizes.append(scale.size)
            self.windows.append(scale.window(mask))
            self.weights.append(scale.weights(mask))


def all_responses(
    X: Array, scale: Scale, templates: np.ndarray, steps: np.ndarray | None, out: Array
) -> None:
    """Write the responses of all templates of one size under all masks into ``out``.

    Parameters
    ----------
    X : array of shape (n_samples, height * width)
        The images.
    scale : Scale
        The size of the templates, and the masks.
    templates : ndarray of shape (n_templates, size, size)
        The templates.
    steps : ndarray of shape (n_atoms,) or None
        The size of one unit of rounded responses; None where they are not rounded.
    out : array of shape (n_atoms, n_samples)
        The array to write; its dtype may be narrower than that of the computation.
    """
    if not len(templates):
        return
    taps = templates.reshape(len(templates), -1)
    down, across = scale.down.weights, scale.across.weights
    if is_numpy(X):
        from mixnorm.pools.patches.patches_jit import LANES, respond

        dtype = out.dtype if steps is None else np.dtype(np.float32)
        masks = down.astype(dtype), across.astype(dtype)
        units = np.empty(0, dtype=dtype) if steps is None else steps.astype(dtype)
        images = for_compiled(np.ascontiguousarray(X))
        parts = images, scale.shape[1], taps.astype(dtype), scale.size, *masks, units, out
        each = down.shape[1] * across.shape[1] * (taps.size + len(taps) * len(across))
        # Compiled code does eight operations at once.
        run_loop(respond, *parts, items=-(-len(images) // LANES), operations=LANES * each // 8)
        return
    xp = namespace(X)
    dtype = out.dtype if xp.finfo(out.dtype).bits >= 32 else xp.float32
    weights = follow(taps, X, dtype)
    bells = [
        [
            (bells.window(b), follow(bells.weights[b, slice(*bells.window(b))], X, dtype))
            for b in range(bells.n_bells)
        ]
        for bells in (scale.down, scale.across)
    ]
    per_image = len(taps) * down.shape[1] * across.shape[1]
    for rows in _blocks(X.shape[0], per_image):
        images = xp.reshape(xp.astype(X[rows, :], dtype), (-1, *scale.shape))
        # With templates on the last axis, the operations below work on contiguous memory.
        found = xp.stack(_shift_images(images, scale.size), axis=-1) @ weights.T
        lines = [
            xp.max(found[:, :, left:right, :] * bell[:, None], axis=2)  # :eq:`patch-rows`
            for (left, right), bell in bells[1]
        ]
        best = [
            xp.max(line[:, top:bottom, :] * bell[:, None], axis=1)
            for (top, bottom), bell in bells[0]
            for line in lines
        ]
        # Below zero counts as zero: the sign of the largest is that of the weighted largest.
        stacked = xp.reshape(xp.permute_dims(xp.stack(best), (2, 0, 1)), (out.shape[0], -1))
        stacked = xp.clip(stacked, 0.0, None)
        if steps is not None:
            stacked = stacked / follow(steps, X, dtype)[:, None]
        out[:, rows] = xp.astype(stacked, out.dtype)


def chosen_responses(X: Array, parts: PatchParts, dtype: Any) -> Any:
    """Return the responses of chosen atoms: ``(n_samples, n_atoms)``.

    Compiled code visits the positions in the window of each mask only; array operations visit the
    positions in any of the windows, in one product of matrices.
    """
    if is_numpy(X) and X.shape[0] >= _FEWEST_COMPILED_IMAGES:
        return _compute_compiled(X, parts, dtype)
    xp, groups = namespace(X), by_size(parts)
    out = xp.empty((X.shape[0], len(parts.sizes)), dtype=dtype, device=device_of(X))
    first = 0
    for group in groups:
        columns = slice(first, first + len(group.places))
        for rows, _, products, _ in group.products(X, dtype):
            out[rows, columns] = xp.clip(xp.max(products, axis=2), 0.0, None)
        first = columns.stop
    # Groups by size come in another order than the atoms.
    order = np.argsort([place for group in groups for place in group.places])
    return xp.take(out, xp.asarray(order, device=device_of(X)), axis=1)


@dataclass(frozen=True)
class SameSize:
    """Atoms with templates of one size, by their places among all atoms; they share patches.

    ``box`` is the smallest window of positions that contains all of their windows.
    """

    parts: PatchParts
    places: list[int]

    @property
    def box(self) -> tuple[int, int, int, int]:
        """First row, end of rows, first column and end of columns."""
        top, bottom, left, right = np.transpose([self.parts.windows[p] for p in self.places])
        return int(top.min()), int(bottom.max()), int(left.min()), int(right.max())

    def masks(self) -> np.ndarray:
        """Return the weights of all positions in the box, zero outside an atom's own window."""
        first, end, start, stop = self.box
        masks = np.zeros((len(self.places), end - first, stop - start))
        for mask, place in zip(masks, self.places, strict=True):
            top, bottom, left, right = self.parts.windows[place]
            down, across = self.parts.weights[place]
            inside = mask[top - first : bottom - first, left - start : right - start]
            inside[...] = np.multiply.outer(down, across)
        return masks.reshape(len(masks), -1)

    def products(self, X: Array, dtype: Any) -> Iterator[tuple[slice, Any, Any, Any]]:
        """Yield blocks of images: rows, patches in the box, weighted products, and the masks.

        Patches have shape ``(n_images, size * size, n_positions)``, products ``(n_images, n_atoms,
        n_positions)``, masks ``(n_atoms, n_positions)``.
        """
        xp, size = namespace(X), self.parts.sizes[self.places[0]]
        top, bottom, left, right = self.box
        taps = follow(np.stack([self.parts.taps[place] for place in self.places]), X, dtype)
        masks = follow(self.masks(), X, dtype)
        for rows in _blocks(X.shape[0], 2 * (size * size + len(self.places)) * masks.shape[1]):
            images = xp.reshape(xp.astype(X[rows, :], dtype), (-1, *self.parts.shape))
            seen = images[:, top : bottom + size - 1, left : right + size - 1]
            views = _shift_images(seen, size)
            patches = xp.reshape(xp.stack(views, axis=1), (-1, size * size, masks.shape[1]))
            products = taps @ patches
            products *= masks
            yield rows, patches, products, masks


def by_size(parts: PatchParts) -> list[SameSize]:
    """Group atoms by the size of their templates."""
    sizes = sorted(set(parts.sizes))
    return [SameSize(parts, [p for p, s in enumerate(parts.sizes) if s == size]) for size in sizes]


def _compute_compiled(X: np.ndarray, parts: PatchParts, dtype: Any) -> np.ndarray:
    from mixnorm.pools.patches.patches_jit import LANES, respond_few

    lengths = [len(taps) for taps in parts.taps]
    starts = np.cumsum([0, *lengths[:-1]], dtype=np.intp)
    windows = np.asarray(parts.windows, dtype=np.intp)
    down = np.zeros((len(lengths), int(np.max(windows[:, 1] - windows[:, 0]))), dtype=dtype)
    across = np.zeros((len(lengths), int(np.max(windows[:, 3] - windows[:, 2]))), dtype=dtype)
    for atom, (rows, columns) in enumerate(parts.weights):
        down[atom, : len(rows)] = rows
        across[atom, : len(columns)] = columns
    out = np.empty((X.shape[0], len(lengths)), dtype=dtype)
    images = for_compiled(np.ascontiguousarray(X))
    templates = np.concatenate(parts.taps).astype(dtype)
    sizes = np.asarray(parts.sizes, dtype=np.intp)
    atoms = parts.shape[1], templates, starts, sizes, windows, down, across
    # Heights and widths of the windows.
    positions = np.prod(windows[:, 1::2] - windows[:, ::2], axis=1)
    each = LANES * int(positions @ sizes**2) // 8  # compiled code does eight operations at once
    run_loop(respond_few, images, *atoms, out, items=-(-len(images) // LANES), operations=each)
    return out


def _shift_images(images: Array, size: int) -> list[Any]:
    """Return for each pixel of a patch its values at all positions of the patch."""
    height, width = images.shape[1] - size + 1, images.shape[2] - size + 1
    return [
        images[:, dy : dy + height, dx : dx + width] for dy in range(size) for dx in range(size)
    ]


def _blocks(n_images: int, per_image: int) -> Iterator[slice]:
    """Yield blocks of images that need ``per_image`` numbers of working memory each."""
    return blocks(n_images, max(1, _PRODUCTS_AT_A_TIME // per_image))
