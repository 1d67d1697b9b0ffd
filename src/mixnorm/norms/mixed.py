"""Mixed norms: one exponent inside blocks, another over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixnorm._array import Array, epsilon, float_limits, namespace, to_numpy
from mixnorm._params import Parameters
from mixnorm.norms import vectors
from mixnorm.norms.ability import ability
from mixnorm.norms.ball import find_common_cuts, find_row_cuts, project_magnitudes
from mixnorm.norms.base import check_exponent, check_level, check_matrix, conjugate
from mixnorm.norms.blocks import (
    BlockCache,
    Blocks,
    EntryBlocks,
    block_norms,
    count_blocks,
    groups_are_equal,
    has_row_blocks,
)

_INNER_EXPONENTS = (1.0, 2.0, math.inf)
# Values between these are safe: sums of many and products of two are far from overflow.
_LEAST_SAFE_VALUE, _LARGEST_SAFE_VALUE = 1e-100, 1e100

# Which norms have an ability, for errors.
_PROXIMAL_MIXED_NORMS = "mixed norms with outer 1 or infinity, or with inner = outer = 2, have one"
_CONVEX_MIXED_NORMS = "mixed norms with 1 < outer <= 2 and inner 2 or the same have one"
_SEPARABLE_MIXED_NORMS = "mixed norms with outer 1 and blocks of whole rows have them"


def _has_prox(norm: MixedNorm) -> bool:
    return norm.outer in (1, math.inf) or norm.inner == norm.outer == 2


def _is_strongly_convex(norm: MixedNorm) -> bool:
    return 1.0 < norm.outer <= 2.0 and norm.inner in (2, norm.outer)


def _has_surrogate(norm: MixedNorm) -> bool:
    return norm.outer == 1 and norm.inner in (1, 2)


def _is_separable(norm: MixedNorm) -> bool:
    return norm.outer == 1 and has_row_blocks(norm.groups)


@dataclass(eq=False)
class MixedNorm(Parameters):
    r"""A norm inside each block, and a norm of these norms.

    .. math:: \|W\|_{r,p} = \Bigl(\sum_b \|W_b\|_r^p\Bigr)^{1/p}

    It is the penalty or the ball of :eq:`penalty-and-ball`. Blocks are the rows of ``W``, one per
    feature, unless ``groups`` says otherwise. ``inner=2, outer=1`` sets whole rows to zero, and so
    does ``inner=inf, outer=1``; ``inner=1, outer=1`` sets single entries to zero.

    Parameters
    ----------
    inner : float, default=2
        The exponent :math:`r` inside a block: 1, 2 or infinity, or the same as ``outer``.
    outer : float, default=1
        The exponent :math:`p` over the blocks, from 1 to infinity.
    groups : None, "outputs" or array of int, default=None
        The blocks. None makes every row a block, ``"outputs"`` every column. With labels of shape
        ``(n_features,)`` the rows that share a label form a block, with labels of shape
        ``(n_features, n_outputs)`` the entries that share one. Labels are any whole numbers.

    Notes
    -----
    Methods depend on the exponents, and those that a norm lacks are absent (``hasattr`` is False):

    * ``prox`` and ``project``: ``outer`` 1 or infinity, and ``inner = outer = 2``;
    * ``mirror``, ``link``, ``strong_convexity``: ``1 < outer <= 2``, and ``inner`` 2 or the same;
    * ``surrogate``: ``outer=1`` with ``inner`` 1 or 2;
    * ``row_duals``, ``restrict``: ``outer=1``, and blocks of whole rows;
    * ``row_exponent``: ``outer=1``, and every row a block.

    All cost a few passes over the array. Two sort, ``project`` and the ``prox`` of ``inner=inf``,
    and cost a logarithm more. Labels are read once and kept, and compared with the kept ones at
    every use.

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari, "Regularization techniques for learning with
    matrices", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.asarray([[3.0, 4.0], [0.3, 0.4]])
    >>> norm = MixedNorm(inner=2, outer=1)
    >>> norm.value(W), norm.dual(W)
    (5.5, 5.0)
    >>> norm.prox(W, 1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    >>> MixedNorm(np.inf, 1).project(W, 1.0)
    array([[1., 1.],
           [0., 0.]])
    >>> hasattr(norm, "mirror"), norm.surrogate((1000, 5)).outer < 1.2
    (False, True)
    """

    inner: float = 2
    outer: float = 1
    groups: Any = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixedNorm) or type(other) is not type(self):
            return NotImplemented
        same = (self.inner, self.outer) == (other.inner, other.outer)
        return same and groups_are_equal(self.groups, other.groups)

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    def __getstate__(self) -> dict[str, Any]:
        return self.get_params(deep=False)

    @cached_property
    def _block_cache(self) -> BlockCache:
        return BlockCache()

    def check(self) -> None:
        """Raise a ValueError or TypeError for exponents that are not allowed."""
        inner = check_exponent(self.inner, "inner", self)
        outer = check_exponent(self.outer, "outer", self)
        if inner not in _INNER_EXPONENTS and inner != outer:
            raise ValueError(
                f"MixedNorm(inner={self.inner!r}, outer={self.outer!r}) is not offered; inner must "
                "be 1, 2, infinity or the same as outer. Set inner to one of these."
            )

    # --- values

    def value(self, W: Array) -> float:
        """Return the norm."""
        blocks = self._blocks(W)
        norms, unit = block_norms(blocks, W, float(self.inner))
        return unit * vectors.vector_norm(norms, float(self.outer))

    def dual(self, V: Array) -> float:
        """Return the dual norm: exponents conjugate to those of the norm, the same blocks."""
        blocks = self._blocks(V)
        norms, unit = block_norms(blocks, V, conjugate(float(self.inner)))
        return unit * vectors.vector_norm(norms, conjugate(float(self.outer)))

    def dual_norm(self) -> MixedNorm:
        """Return the dual norm as an object.

        Examples
        --------
        >>> MixedNorm(2, 1).dual_norm()
        MixedNorm(inner=2.0, outer=inf, groups=None)
        """
        self.check()
        outer = conjugate(float(self.outer))
        inner = outer if self.inner == self.outer else conjugate(float(self.inner))
        return MixedNorm(inner, outer, self.groups)

    # --- prox, projection, linear minimiser

    @ability(_has_prox, _PROXIMAL_MIXED_NORMS)
    def prox(self, W: Array, tau: float) -> Any:
        """Return the minimiser of ``tau * value(X) + ||X - W||^2 / 2``.

        See :eq:`block-prox`, :eq:`moreau` and, for ``inner=inf``, :eq:`common-cut`.
        """
        blocks, tau, xp = self._blocks(W), check_level(tau, "tau", W), namespace(W)
        if math.prod(W.shape) == 0:
            return xp.asarray(W, copy=True)
        if self.outer == math.inf:
            # The prox of a norm with outer=inf would be a search for a level; the projection on the
            # dual ball already is one (:eq:`moreau`).
            return W - self.dual_norm().project(W, tau)  # Moreau
        if self.inner == self.outer == 1:
            return vectors.soft_threshold(W, tau)
        if self.inner == math.inf:
            size = vectors.max_magnitude(W)
            # A sum of a whole block of the largest entries must not overflow; the factor 4 is for
            # rounding.
            large = float_limits(W).max / (4 * math.prod(W.shape)) < size < math.inf
            # The unit keeps the sums of a block from overflow.
            unit = vectors.power_of_two_below(size) if large else 1.0
            parts = blocks.to_rows(W / unit if large else W)
            cuts = vectors.concatenate([find_row_cuts(part, tau / unit) for part in parts])
            return vectors.clip(W, blocks.broadcast(vectors.rescale(cuts, unit)))
        if self.outer == 2:
            size = self.value(W)
            return W * (max(0.0, 1.0 - tau / size) if size > 0.0 else 1.0)
        norms, unit = block_norms(blocks, W, 2.0)
        # Both norms and tau are in units of ``unit``, whose quotient is the same. A block of zeros
        # gets the factor one, and stays zero without a division by zero.
        factors = 1.0 - vectors.divide_or_zero(tau / unit, norms)
        return W * blocks.broadcast(xp.maximum(factors, xp.zeros_like(factors)))

    @ability(_has_prox, _PROXIMAL_MIXED_NORMS)
    def project(self, W: Array, radius: float) -> Any:
        """Return the nearest point whose value is at most ``radius``.

        A point that meets this to rounding comes back as it is.
        """
        blocks, radius, xp = self._blocks(W), check_level(radius, "radius", W), namespace(W)
        norms, unit = block_norms(blocks, W, float(self.inner))
        value = unit * vectors.vector_norm(norms, float(self.outer))
        # Projecting a point on the boundary again would move it by rounding, and solvers that
        # compare iterates would never see them agree.
        if value <= radius * (1.0 + 16.0 * epsilon(W)):
            return xp.asarray(W, copy=True)
        size = vectors.max_magnitude(W) if not math.isfinite(value) else 0.0
        if not math.isfinite(size):
            return xp.full_like(W, math.nan)
        if radius == 0.0:
            return xp.zeros_like(W)
        if size > 0.0:  # the entries are finite, and their norm is not
            # A projection commutes with scaling, and a power of two changes no digit.
            unit = vectors.power_of_two_below(size)
            return self.project(W / unit, radius / unit) * unit
        if not _LEAST_SAFE_VALUE < value < _LARGEST_SAFE_VALUE:
            scale = vectors.power_of_two_below(value)
            W, radius = W / scale, radius / scale
            norms, unit = block_norms(blocks, W, float(self.inner))
            return self._project_outside_point(W, radius, blocks, norms, unit) * scale
        return self._project_outside_point(W, radius, blocks, norms, unit)

    def _project_outside_point(
        self, W: Array, radius: float, blocks: Blocks, norms: Array, unit: float
    ) -> Any:
        """Project a point from outside of the ball, whose sums are safe.

        ``norms`` are those of its blocks, in ``unit``.
        """
        xp = namespace(W)
        if self.inner == self.outer == math.inf:
            return vectors.clip(W, radius)
        if self.inner == self.outer == 2:
            return W * (radius / (unit * vectors.vector_norm(norms, 2.0)))
        if self.inner == self.outer:
            # inner = outer = 1: the projection of the magnitudes, with the old signs.
            return vectors.copy_signs(
                blocks.broadcast(project_magnitudes(xp.reshape(xp.abs(W), (-1,)), radius)), W
            )
        parts = blocks.to_rows(W)
        if self.inner == math.inf:
            return vectors.clip(W, blocks.broadcast(find_common_cuts(parts, radius)))
        if self.inner == 1:  # an l1 ball per block; the factors below mend what rounding left out
            cuts = vectors.concatenate([find_row_cuts(part, radius) for part in parts])
            W = vectors.soft_threshold(W, blocks.broadcast(cuts))
            norms, unit = block_norms(blocks, W, 1.0)
        sizes = radius / unit
        # Projecting the norms of the blocks and keeping their directions is the projection, because
        # a block is nearest to a ball of another radius along its own direction.
        if self.outer == 1:
            sizes = project_magnitudes(xp.asarray(norms, copy=True), sizes)
        # With outer=inf every block has the same ball. Factors are at most one: rounding must not
        # enlarge.
        factors = vectors.divide_or_zero(sizes, norms)
        return W * blocks.broadcast(xp.minimum(factors, xp.ones_like(factors)))

    def lmo(self, G: Array) -> Any:
        """Return a point of the unit ball with the least inner product with ``G``.

        That product is ``-dual(G)``. For ``outer=1`` the point is zero outside of one block, and
        for ``G = 0`` it is zero.
        """
        return -self._find_aligned(G, float(self.inner), float(self.outer))[0]

    # --- mirror maps

    @ability(_is_strongly_convex, _CONVEX_MIXED_NORMS)
    def mirror(self, theta: Array) -> Any:
        """Return the gradient of half the squared dual norm (:eq:`mirror-columns`)."""
        point, size, unit = self._find_aligned(theta, float(self.inner), float(self.outer))
        return vectors.rescale(point * size, unit)

    @ability(_is_strongly_convex, _CONVEX_MIXED_NORMS)
    def link(self, W: Array) -> Any:
        """Return the gradient of half the squared norm, the inverse of ``mirror``."""
        inner, outer = conjugate(float(self.inner)), conjugate(float(self.outer))
        point, size, unit = self._find_aligned(W, inner, outer)
        return vectors.rescale(point * size, unit)

    @ability(_is_strongly_convex, _CONVEX_MIXED_NORMS)
    def strong_convexity(self) -> float:
        """Return the constant of half the squared norm with respect to the norm itself.

        It is the outer exponent minus one (:eq:`bound-curvature`).
        """
        self.check()
        return float(self.outer) - 1.0

    @ability(_has_surrogate, "mixed norms with outer 1 and inner 1 or 2 have one")
    def surrogate(self, shape: tuple[int, int]) -> MixedNorm:
        r"""Return the strongly convex norm to use in place of this one, on arrays of a shape.

        Its outer exponent is :math:`q = p/(p - 1)` with :math:`p = \max(2, \ln D)`, and :math:`D`
        the number of blocks, or of entries where ``inner`` is 1 as well (:eq:`bound-twin`).
        """
        self.check()
        count = math.prod(shape) if self.inner == 1 else count_blocks(self.groups, shape)
        q = conjugate(max(2.0, math.log(max(count, 1))))
        return MixedNorm(q if self.inner == 1 else 2, q, self.groups)

    def _find_aligned(self, G: Array, inner: float, outer: float) -> tuple[Any, float, float]:
        """Return the point of a unit ball with the largest inner product with ``G``.

        See :eq:`aligned-point`. Also return the product, divided by a unit, and this unit.
        """
        blocks, xp = self._blocks(G), namespace(G)
        norms, unit = block_norms(blocks, G, conjugate(inner))
        weights = vectors.dual_vector(norms, outer, conjugate(outer))
        if inner == 2.0 != outer:
            # Divide one by one: the inverse of a norm may overflow.
            lengths = xp.where(norms > 0.0, norms, xp.ones_like(norms))
            point = (G / unit) / blocks.broadcast(lengths) * blocks.broadcast(weights)
        elif inner == 1.0 != outer and math.prod(G.shape) > 0:
            signs = blocks.from_rows([vectors.sign_largest(part) for part in blocks.to_rows(G)])
            point = signs * blocks.broadcast(weights)
        else:
            # The exponents agree, and every entry is a block; or inner is infinity, and every entry
            # of a block is as large as it may be.
            point = xp.sign(G) * blocks.broadcast(weights)
        return point, vectors.vector_norm(norms, conjugate(outer)), unit

    # --- rows

    @property
    def row_exponent(self) -> float:
        """The exponent inside a row, where the norm is a sum over rows; else absent."""
        if self.outer == 1 and self.groups is None:
            return float(self.inner)
        raise AttributeError(f"{self!r} has no row_exponent; norms with outer=1 and no groups do.")

    @ability(_is_separable, _SEPARABLE_MIXED_NORMS)
    def row_duals(self, V: Array) -> Any:
        """Return for each row the dual norm of its block, so that ``dual`` is their maximum."""
        self._blocks(V)
        blocks = self._block_cache.find(self.groups, V)
        norms, unit = block_norms(blocks, V, conjugate(float(self.inner)))
        return blocks.broadcast(vectors.rescale(norms, unit))[:, 0]

    @ability(_is_separable, _SEPARABLE_MIXED_NORMS)
    def restrict(self, rows: Array | Sequence[int]) -> MixedNorm:
        """Return the norm of the rows with these indices, which must be whole blocks."""
        self.check()
        if self.groups is None:
            return MixedNorm(self.inner, self.outer)
        labels, index = to_numpy(self.groups), np.atleast_1d(to_numpy(rows))
        # Rows may be given as a mask, as everywhere in NumPy.
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64)
        whole = np.count_nonzero(np.isin(labels, labels[index]))
        if not whole == len(index) == len(np.unique(index)):
            raise ValueError(
                "rows has only a part of a group, or a row twice; the norm can be restricted to "
                "whole groups. Add the other rows of the group."
            )
        return MixedNorm(self.inner, self.outer, labels[index])

    def _blocks(self, W: Array) -> Blocks:
        """Check array and exponents; return the blocks: entries where the exponents agree."""
        check_matrix(W, self)
        self.check()
        # With equal exponents the norm of norms is the norm of all entries, whatever the groups.
        if self.inner == self.outer:
            return EntryBlocks(tuple(W.shape))
        return self._block_cache.find(self.groups, W)
