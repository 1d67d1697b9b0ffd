"""Patches of images: how strongly a small template matches near some place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, cast

import numpy as np

from mixnorm._array import Array, device_of, is_double, namespace, to_dense, to_numpy
from mixnorm._numbers import check_count, check_number
from mixnorm.pools.base import Cost, Pool, PoolData, working_dtype
from mixnorm.pools.patches.masks import Bells, Scale, grid_of, scale_of
from mixnorm.pools.patches.prepared import PreparedPatches
from mixnorm.pools.patches.responses import PatchParts, chosen_responses
from mixnorm.pools.patches.templates import learn_templates, sample_images
from mixnorm.pools.scorers import PoolScorer

Atom = tuple[int, int]


@dataclass(eq=False)
class Patches(Pool):
    r"""Small templates, each matched in some part of an image.

    The column of a template :math:`v` and a mask :math:`g` is :math:`\max(0, \max_p g_p
    \langle v, I_p \rangle)` over the patches :math:`I_p` of an image (:eq:`patch-response`).
    Templates are learned from the training images: they are the centres that k-means finds among
    patches of mean zero and length one. Masks are bell curves on a grid, zero far from their
    middle, so that a prediction visits few positions. An atom is a pair of the number of a template
    and that of a mask.

    Parameters
    ----------
    size : int or sequence of int, default=7
        Rows and columns of a template; with several, there are templates of each size.
    n_templates : int, default=1000
        Templates of each size.
    masks : int or pair of int, default=16
        Number of masks, a square, or rows and columns of their grid.
    spread : float, default=1.0
        Standard deviation of a mask, in steps of the grid.
    reach : float, default=1.5
        Distance from the middle of a mask to its end, in steps of the grid. The cost of a
        prediction grows with its square.
    shape : pair of int, optional
        Height and width of an image. By default that of the images; rows of a table are taken as
        square images.
    templates : array or sequence of arrays of shape (n_templates, size, size), optional
        Templates to use instead of learned ones; ``size`` and ``n_templates`` are then ignored. In
        the ``pool_`` of a fitted model these are the learned templates.
    max_gib : float, default=6.0
        Most memory for the responses of all atoms, in GiB. Responses that do not fit are rounded to
        one byte each (on a GPU, to half precision); the best atoms of a round are then computed
        exactly before one of them is chosen, and chosen ones are always exact.

    Notes
    -----
    ``random_state`` draws the patches that templates are learned from. With all scales but False,
    each column is divided by its largest magnitude: responses of all patches have the unit of the
    images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import ShareBoostClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> images = X.reshape(-1, 8, 8)
    >>> pool = Patches(size=3, n_templates=30, masks=9)
    >>> model = ShareBoostClassifier(20, pool=pool, random_state=0).fit(images[::2], y[::2])
    >>> bool(model.score(images[1::2], y[1::2]) > 0.92)
    True
    >>> model.cost_.multiply_adds < 5000
    True
    """

    size: int | Sequence[int] = 7
    n_templates: int = 1000
    masks: int | tuple[int, int] = 16
    spread: float = 1.0
    reach: float = 1.5
    shape: tuple[int, int] | None = None
    templates: Any = None
    max_gib: float = 6.0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Patches):
            return NotImplemented
        return self._get_values() == other._get_values()

    def _get_values(self) -> dict[str, Any]:
        """Return the parameters, with templates as lists of numbers."""
        given = self.templates is not None
        sets = [part.tolist() for part in self.template_sets()] if given else None
        return self.get_params(deep=False) | {"templates": sets}

    __hash__ = None  # type: ignore[assignment]  # mutable objects that compare by value have none

    array_api: ClassVar[bool] = True
    takes_images: ClassVar[bool] = True

    @property
    def learned(self) -> bool:  # type: ignore[override]  # it depends on the templates
        """Whether there are templates."""
        return self.templates is not None

    def for_images(self, shape: tuple[int, int]) -> Patches:
        """Return the pool for images of this shape."""
        shape = (int(shape[0]), int(shape[1]))
        if self.shape is None:
            return replace(self, shape=shape)
        if tuple(self.shape) != shape:
            raise ValueError(
                f"Patches(shape={self.shape!r}) is for other images than these of {shape[0]} x "
                f"{shape[1]} pixels; leave shape at None, or give it the images' shape."
            )
        return self

    def _bind(self, data: PoolData) -> PreparedPatches:
        """Learn templates and compute all responses."""
        X = to_dense(data.X)
        _check_rows(X)
        _check_pixels(X)
        learned = self.learn(X, weight=data.weight, random_state=data.random_state)
        return PreparedPatches(learned, learned.scales(X.shape[1]), replace(data, X=X))

    def learn(self, X: Array, *, weight: Array | None = None, random_state: Any = None) -> Patches:
        """Return the pool with templates learned from images, unless it has templates already.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, height * width)
            Images as rows, or as an array ``(n_samples, height, width)``.
        weight : array of shape (n_samples,), optional
            Weights of the images.
        random_state : int, RandomState instance or None
            Draws the patches, and starts k-means.
        """
        from sklearn.utils import check_random_state

        self._check()
        if getattr(X, "ndim", 2) == 3:
            rows = namespace(X).reshape(X, (X.shape[0], X.shape[1] * X.shape[2]))
            pool = self.for_images((X.shape[1], X.shape[2]))
            return pool.learn(rows, weight=weight, random_state=random_state)
        _check_rows(X)
        shape = self.shape_of(X.shape[1])
        if self.learned:
            return replace(self, shape=shape, templates=_freeze(self.template_sets()))
        for size in self._list_sizes():
            _check_fit(size, shape)
        # One generator for all sizes, in their order: templates do not depend on the masks.
        rng = check_random_state(random_state)
        rows, count = sample_images(X, None if weight is None else to_numpy(weight), rng)
        images = rows.reshape(-1, *shape)
        found = [
            learn_templates(images, count, size, self.n_templates, rng)
            for size in self._list_sizes()
        ]
        return replace(self, shape=shape, templates=_freeze(found))

    def _check(self) -> None:
        """Raise for a parameter out of its range."""
        sizes = self._list_sizes()
        if len(sizes) == 0:
            raise ValueError(f"Patches(size={self.size!r}) names no size; give one or more.")
        for size in sizes:
            check_count("Patches: size", size, least=2)
        check_count("Patches: n_templates", self.n_templates)
        grid_of(self.masks)
        for name in ("spread", "reach", "max_gib"):
            value = getattr(self, name)
            check_number(f"Patches: {name}", value)
            if not 0.0 < float(value) < math.inf:
                raise ValueError(f"Patches({name}={value!r}) must be positive and finite.")

    def _list_sizes(self) -> Sequence[int]:
        return self.size if isinstance(self.size, (tuple, list)) else (cast(int, self.size),)

    def shape_of(self, n_features: int) -> tuple[int, int]:
        """Return the height and width of images with this number of pixels."""
        if self.shape is None:
            side = math.isqrt(n_features)
            if side * side != n_features:
                raise ValueError(
                    f"Patches takes rows of {n_features} columns as images, but these are not "
                    "square; give the images as (n_samples, height, width), or "
                    "Patches(shape=(height, width))."
                )
            return side, side
        shape = tuple(self.shape) if isinstance(self.shape, (tuple, list)) else ()
        whole = [isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in shape]
        if len(shape) != 2 or not all(whole) or min(shape) < 1:
            raise ValueError(f"Patches(shape={self.shape!r}) must be rows and columns of an image.")
        if shape[0] * shape[1] != n_features:
            raise ValueError(
                f"Patches(shape={self.shape!r}) has {shape[0] * shape[1]} pixels, but X has "
                f"{n_features} columns; give the shape of an image."
            )
        return int(shape[0]), int(shape[1])

    def template_sets(self) -> list[np.ndarray]:
        """Return the templates, an array of shape (n_templates, size, size) for each size."""
        if self.templates is None:
            raise ValueError(
                "This Patches pool has no templates yet: they are learned in fit, and pool_ of the "
                "fitted model has them; or give templates=..."
            )
        given = self.templates
        single = getattr(given, "ndim", None) is not None
        if not single and not isinstance(given, Sequence):
            raise TypeError(
                f"Patches(templates={given!r}) must be an array of shape (n_templates, size, size),"
                " or a list of such arrays."
            )
        single = single or (len(given) > 0 and np.ndim(to_numpy(given[0])) == 2)
        sets = [to_numpy(part) for part in ([given] if single else given)]
        if not sets:
            raise ValueError("Patches(templates=...) has no templates; give some, or None.")
        for part in sets:
            square = part.ndim == 3 and part.shape[1] == part.shape[2] and part.shape[1] > 0
            if not square or part.dtype.kind not in "fiu" or not np.all(np.isfinite(part)):
                raise ValueError(
                    f"Patches(templates=...) has an array of shape {part.shape} and dtype "
                    f"{part.dtype}; give finite numbers of shape (n_templates, size, size)."
                )
        return sets

    def scales(self, n_features: int) -> list[Scale]:
        """Return the sizes of templates, each with its masks."""
        height, width = self.shape_of(n_features)
        (n_down, n_across), found, first = grid_of(self.masks), [], 0
        for part in self.template_sets():
            size = part.shape[1]
            _check_fit(size, (height, width))
            down = Bells(n_down, height - size + 1, self.spread, self.reach)
            across = Bells(n_across, width - size + 1, self.spread, self.reach)
            found.append(Scale(size, first, len(part), down, across))
            first += len(part)
        return found

    def template(self, atom: Atom) -> np.ndarray:
        """Return the template of an atom, of shape (size, size)."""
        templates = list(chain(*self.template_sets()))
        if not 0 <= atom[0] < len(templates):
            raise ValueError(f"atom {atom!r} has no template")
        return templates[atom[0]]

    def mask(self, atom: Atom, n_features: int) -> np.ndarray:
        """Return the mask of an atom as an image.

        Each pixel has the weight of the patch whose middle it is, zero outside the mask.
        """
        shape, scale = self.shape_of(n_features), self._find_scale(atom, n_features)
        top, bottom, left, right = scale.window(atom[1])
        down, across = scale.weights(atom[1])
        picture = np.zeros(shape)
        # Positions are upper left corners of patches; they are shown where the middle is.
        middle = scale.size // 2
        rows = slice(top + middle, bottom + middle)
        picture[rows, left + middle : right + middle] = down[:, None] * across
        return picture

    def _find_scale(self, atom: Atom, n_features: int) -> Scale:
        """Return the size of an atom's template, with its masks."""
        return scale_of(atom, self.scales(n_features))

    def evaluate(self, X: Array, atoms: Sequence[Atom]) -> Any:
        """Return the responses of ``atoms`` on new images: ``(n_samples, n_atoms)``."""
        X = to_dense(X)
        _check_rows(X)
        dtype = working_dtype(X)
        if not atoms:
            return namespace(X).zeros((X.shape[0], 0), dtype=dtype, device=device_of(X))
        parts = PatchParts(self, atoms, X.shape[1])
        return chosen_responses(X, parts, dtype)

    def scorer(
        self, atoms: Sequence[Atom], weights: np.ndarray, intercept: np.ndarray
    ) -> PatchScorer:
        """Return a scorer that takes the atoms apart once."""
        return PatchScorer(self, atoms, weights, intercept)

    def describe(self, atom: Atom, names: Sequence[str]) -> str:
        """Describe an atom in words."""
        scale = self._find_scale(atom, len(names))
        k, j = divmod(atom[1], scale.across.n_bells)
        half = 0.5 * (scale.size - 1)
        row, column = scale.down.middle(k) + half, scale.across.middle(j) + half
        size = f"{scale.size} x {scale.size}"
        return f"patch {atom[0]} ({size}) near row {row:.3g}, column {column:.3g}"

    def feature_indices(self, atoms: Sequence[Atom], n_features: int) -> np.ndarray:
        """Return the pixels that ``atoms`` read, in order."""
        scales = self.scales(n_features)
        parts = [scale_of(atom, scales).pixels(atom[1]) for atom in atoms]
        return np.concatenate([*parts, np.empty(0, dtype=np.intp)]).astype(np.intp)

    def cost(self, atom: Atom, n_features: int) -> Cost:
        """Return the operations that a response takes.

        Each position of the mask takes a product for each pixel of the patch, and one with the
        mask.
        """
        scale = self._find_scale(atom, n_features)
        positions = scale.n_positions(atom[1])
        return Cost(positions * (scale.size**2 + 1), positions)

    def n_columns(self, atom: Any, n_features: int) -> int:
        """Return 1; raise a ValueError for anything but an atom of such images."""
        good = type(atom) is tuple and len(atom) == 2 and all(type(n) is int for n in atom)
        if not good or min(cast(Atom, atom)) < 0:
            raise ValueError(
                f"atoms of a Patches pool are pairs of whole numbers, of a template and of a mask, "
                f"not {str(atom)[:100]}"
            )
        scale = self._find_scale(atom, n_features)
        if atom[1] >= scale.n_masks:
            raise ValueError(f"atom {atom!r} has no mask: there are {scale.n_masks}")
        return 1


@dataclass(eq=False)
class PatchScorer(PoolScorer):
    """Scorer for patches, which are taken apart once."""

    pool: Patches
    _parts: PatchParts | None = None

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of images: ``(n_samples, n_outputs)``."""
        if not self.atoms:
            return np.repeat(np.asarray(self.intercept)[None, :], X.shape[0], axis=0)
        if self._parts is None:
            self._parts = PatchParts(self.pool, self.atoms, X.shape[1])
        found = chosen_responses(X, self._parts, working_dtype(X))
        scores: np.ndarray = found @ self.weights + self.intercept
        return scores


def _check_rows(X: Array) -> None:
    """Raise unless images are rows of pixels."""
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            f"Patches takes images as rows here, and X has the shape {getattr(X, 'shape', None)}; "
            "give X.reshape(len(X), -1), and the shape of the images to Patches(shape=...)."
        )


def _check_fit(size: int, shape: tuple[int, int]) -> None:
    """Raise if templates are larger than images."""
    if size > min(shape):
        raise ValueError(
            f"Patches: templates of {size} x {size} pixels are larger than the images, which have "
            f"{shape[0]} x {shape[1]}; choose a smaller size."
        )


def _freeze(templates: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return templates as read-only arrays, copied where they could be changed."""
    kept = tuple(np.array(part) if part.flags.writeable else part for part in templates)
    for part in kept:
        part.flags.writeable = False
    return kept


def _check_pixels(X: Array) -> None:
    """Raise where a response could overflow."""
    xp = namespace(X)
    if 0 in X.shape or not xp.isdtype(X.dtype, "real floating"):
        return
    largest = max(abs(float(xp.min(X))), abs(float(xp.max(X))))
    limit = float(np.finfo(np.float64 if is_double(working_dtype(X)) else np.float32).max)
    # A response is a product of a patch with a template of length one; sums of squares of pixels
    # must be finite.
    if largest > limit**0.5:
        raise ValueError(
            f"X has pixels as large as {largest:.3g}, whose products overflow; divide the images "
            "by their largest pixel first."
        )
