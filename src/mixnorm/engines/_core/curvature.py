"""A factored model of the Hessian on the chosen columns, one small factor per output.

The Hessian of a soft-max loss in the weights of the chosen columns ``B`` is
``sum_i w_i (diag p_i - p_i p_i^T) (x) x_i x_i^T``. Its diagonal blocks, one per output, are
weighted Gram matrices ``A_c = B diag(v_c) B^T`` (:eq:`curvature-blocks`). Their Cholesky factors
precondition the corrective step. Once the model is confident on most rows, this takes a third to a
tenth of the iterations that Böhning's uniform bound takes. The factors cost little, as they are
extended when columns come in. They only shape the steps, so that some of the samples are enough. A
loss whose curvature all outputs share (squared) needs one factor only.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mixnorm._array import Array, device_of, epsilon, is_numpy, namespace, tiny

# Entries of a weighted copy of a block of samples: few enough for the second-level cache, and for
# other libraries, mostly on a device, enough for few blocks that fit into its memory.
_ENTRIES_PER_WEIGHTED_BLOCK = 1 << 17
_ENTRIES_PER_WEIGHTED_BLOCK_ON_DEVICE = 1 << 26
# The steps of a model built on this many samples are as good as those of one built on all samples.
# Where there are at least twice as many, this many are drawn, the same ones in every fit.
_SAMPLES_PER_MODEL = 8192
# Multiples of the rounding error that are added to a diagonal: products of this many samples have
# lost about five bits.
_ROUNDING_OF_DIAGONAL = 32.0
# A row is seen badly if its curvature on all samples is more than this times that on those in use.
_UNSEEN = 2.0
# Attempts to factor a matrix, and the factor of what is added to its diagonal from each to the
# next.
_FACTOR_ATTEMPTS, _SHIFT_GROWTH = 8, 8.0


class CurvatureFactor:
    """Inverse Cholesky factors of the ridged, weighted Gram matrices of the chosen columns.

    Parameters
    ----------
    design : array of shape (n_rows, n_samples)
        The chosen columns, one per row.
    curvature : array of shape (n_samples, n_factors)
        Weights of the samples: one column per output, or a single column for all outputs.
    ridge : array of shape (n_rows,) or (n_outputs, n_rows)
        The second derivative of the penalty, zero for the intercept. It is added to the diagonal.
    whole : array of shape (n_factors, n_rows), optional
        Where the samples are some of many that the caller has: the curvature of each row on all of
        them. Rows are then held against it, as against all samples otherwise.
    """

    def __init__(
        self, design: Array, curvature: Array, ridge: Array, whole: Array | None = None
    ) -> None:
        size, n_samples = design.shape
        # A Gram matrix of more rows needs more samples to have full rank with room to spare, but
        # the time of the products must not grow as their square.
        used = max(_SAMPLES_PER_MODEL, min(32 * size, 2 * (_SAMPLES_PER_MODEL + size)))
        self._samples = _draw_samples(n_samples, used, design) if n_samples >= 2 * used else None
        self._curvature = curvature.T
        self._weights = self._take_samples(self._curvature)
        if self._samples is not None:
            # Sums over some samples stand for sums over all of them.
            self._weights = self._weights * (n_samples / used)
        sampled = self._take_samples(design)
        self._gram = _gram(sampled, self._weights, sampled)
        seen = namespace(design).linalg.diagonal(self._gram)
        self._unseen = self._unseen_curvature(design, seen, whole)
        self.set_ridge(ridge)

    @property
    def n_factors(self) -> int:
        """One, or one per output."""
        return int(self._inverse.shape[0])

    def set_ridge(self, ridge: Array) -> None:
        """Factor again for another penalty; the weighted Gram matrices are unchanged."""
        self._inverse = _inverse_cholesky(self._gram, ridge + self._unseen)

    def count_determined(self, ridge: Array) -> float:
        """Return the number of weights that the data determine, not the penalty.

        A weight counts as ``1 - s`` where the share ``s`` of its curvature comes from the penalty:
        the trace of ``A (A + R)^{-1}`` over the rows of positive ``ridge``, summed over the factors
        (:eq:`evidence-count`).
        """
        xp = namespace(self._inverse)
        # The diagonal of the inverse model is the sum of squares of each column of C^{-1}, with C
        # the Cholesky factor.
        held = ridge * xp.sum(self._inverse * self._inverse, axis=1)
        penalised = xp.broadcast_to(ridge > 0.0, held.shape)
        zero = xp.zeros_like(held)
        counts = xp.where(penalised, xp.maximum(1.0 - held, zero), zero)
        return float(xp.sum(counts))

    def solve(self, gradient: Array) -> Any:
        """Return the inverse model applied to ``gradient`` of shape ``(n_rows, n_outputs)``."""
        # Inverse factors in place of triangular solves: two products with full matrices, which
        # array libraries on a device do much faster.
        inverse = self._inverse
        if inverse.shape[0] == 1:
            return inverse[0, ...].T @ (inverse[0, ...] @ gradient)
        return (inverse.mT @ (inverse @ gradient.T[:, :, None]))[:, :, 0].T

    def extend(self, design: Array, ridge: float, whole: Array | None = None) -> None:
        """Extend the factors, which cover the first rows of ``design``, to all its rows.

        The new rows of a factor follow from the old ones (:eq:`cholesky-row`).
        """
        xp = namespace(design)
        size = self._inverse.shape[1]
        new = design[size:, :]
        cross, corner = self._cross(design[:size, :], new), self._cross(new, new)
        solved = self._inverse @ cross.mT
        seen = xp.linalg.diagonal(corner)
        unseen = self._unseen_curvature(new, seen, whole)
        # The scale of rounding is that of the products, not of what is left of them: a copy of a
        # chosen row leaves nothing but rounding.
        small = _inverse_cholesky(corner - solved.mT @ solved, ridge + unseen, seen)
        below = -(small @ solved.mT @ self._inverse)
        self._inverse = _assemble(self._inverse, xp.zeros_like(solved), below, small)
        self._gram = _assemble(self._gram, cross.mT, cross, corner)
        self._unseen = xp.concat([self._unseen, unseen], axis=1)

    def restrict(self, free: Array) -> CurvatureFactor:
        """Return the model for steps that move only the ``free`` weights, ``(n_outputs, n_rows)``.

        Its matrices are those of the free weights; ``solve`` returns zero for all others.
        """
        xp = namespace(self._inverse)
        used = xp.astype(free, self._inverse.dtype)
        # Rows and columns of weights that are held are replaced by those of the identity, so that
        # all outputs keep matrices of one shape and ones keep these regular.
        lower = xp.linalg.inv(self._inverse)
        gram = (lower @ lower.mT) * (used[:, :, None] * used[:, None, :])
        eye = xp.eye(gram.shape[-1], dtype=gram.dtype, device=device_of(gram))
        gram = gram + eye * (1.0 - used)[:, :, None]
        other = copy.copy(self)
        other._inverse = _inverse_cholesky(gram, 0.0) * used[:, None, :]
        return other

    def gains(
        self,
        design: Array,
        blocks: Sequence[Array],
        gradients: Sequence[Array],
        ridge: float,
        left: Array | None = None,
        wholes: Sequence[Array] | None = None,
    ) -> Any:
        """Return the gain of each block of new rows over the chosen ones, by output.

        The gains, ``(n_outputs, n_blocks)``, are ``1/2 g^T S^{-1} g`` (:eq:`joint-gain`). ``S`` is
        the Schur complement of the chosen rows: the curvature of the new rows when the chosen ones
        follow. ``g`` is the gradient of the new rows after a step on the chosen ones, whose own
        gradient ``left`` is not zero, as the corrective step ends earlier; None if it is zero. Both
        vanish for a copy of a chosen row. Blocks of a single row, the usual case, are computed all
        at once.
        """
        xp = namespace(design)
        if any(block.shape[0] > 1 for block in blocks):
            known: Sequence[Any] = wholes or [None] * len(blocks)
            parts = zip(blocks, gradients, known, strict=True)
            gains = [
                self._block_gain(design, block, slope, ridge, left, whole)
                for block, slope, whole in parts
            ]
            return xp.stack(gains, axis=1)
        new, gradient = xp.concat(blocks), xp.concat(gradients).T
        solved = self._inverse @ self._cross(design, new).mT
        if left is not None:
            gradient = gradient - self._explained_gradient(solved, left)
        part = self._take_samples(new)
        corner = self._weights @ (part * part).T
        # A difference of nearly equal numbers for a near copy of a chosen row. The floor is what
        # its rounding may amount to; the gradient of such a row vanishes too, and so does its gain.
        bend = corner - xp.sum(solved * solved, axis=1)
        floor = _ROUNDING_OF_DIAGONAL * epsilon(design) * corner + ridge + tiny(design)
        whole = None if wholes is None else xp.concat(wholes, axis=1)
        floor = floor + self._unseen_curvature(new, corner, whole)
        bend = xp.where(bend > 0.0, bend, xp.zeros_like(bend)) + floor
        return 0.5 * gradient * gradient / bend

    def bound_gains(
        self,
        design: Array,
        blocks: Sequence[Array],
        bounds: Sequence[Array],
        ridge: float,
        left: Array,
    ) -> Any:
        """Return bounds of the gains of blocks of rows, summed over outputs.

        Of their gradients only ``bounds`` of the magnitudes are known. See :meth:`gains`.
        """
        xp = namespace(design)
        found = []
        for block, bound in zip(blocks, bounds, strict=True):
            solved, corner = (
                self._inverse @ self._cross(design, block).mT,
                self._cross(block, block),
            )
            most = xp.abs(bound) + xp.abs(self._explained_gradient(solved, left).T)
            seen = xp.linalg.diagonal(corner)
            inverse = _inverse_cholesky(corner - solved.mT @ solved, ridge, seen)
            # Signs are not known: magnitudes of the factor bound the magnitudes of the step.
            step = xp.abs(inverse) @ most.T[:, :, None]
            found.append(0.5 * float(xp.sum(step * step)))
        return xp.asarray(found)

    def _explained_gradient(self, solved: Any, left: Array) -> Any:
        """Return by output how far the gradient of new rows falls in a step on the chosen ones."""
        return (solved.mT @ (self._inverse @ left.T[:, :, None]))[:, :, 0]

    def _block_gain(
        self,
        design: Array,
        new: Array,
        gradient: Array,
        ridge: float,
        left: Array | None,
        whole: Array | None,
    ) -> Any:
        """Return the gain of one block of new rows, by output."""
        xp = namespace(design)
        solved, corner = self._inverse @ self._cross(design, new).mT, self._cross(new, new)
        if left is not None:
            gradient = gradient - self._explained_gradient(solved, left).T
        seen = xp.linalg.diagonal(corner)
        unseen = self._unseen_curvature(new, seen, whole)
        inverse = _inverse_cholesky(corner - solved.mT @ solved, ridge + unseen, seen)
        step = inverse @ gradient.T[:, :, None]
        return 0.5 * xp.sum(step * step, axis=(1, 2))

    def _unseen_curvature(self, rows: Array, seen: Array, whole: Array | None = None) -> Any:
        """Return the curvature of ``rows`` that the samples in use do not show.

        It is zero for most rows. A row that is large on few samples only, most of which are not in
        use, would otherwise look flat and get a step without bound.
        """
        xp = namespace(rows)
        if whole is not None:
            return xp.where(whole > _UNSEEN * seen, whole - seen, xp.zeros_like(seen))
        if self._samples is None:
            return xp.zeros_like(seen)
        # First for the sum over all factors, a pass that costs one factor's. It is all that is
        # needed in the usual case.
        overall = _squares(rows, xp.sum(self._curvature, axis=0)[None, :])[0, :]
        if not bool(xp.any(overall > _UNSEEN * xp.sum(seen, axis=0))):
            return xp.zeros_like(seen)
        total = _squares(rows, self._curvature)
        return xp.where(total > _UNSEEN * seen, total - seen, xp.zeros_like(seen))

    def _take_samples(self, rows: Array) -> Any:
        """Return the entries of ``rows`` at the samples in use."""
        return rows if self._samples is None else namespace(rows).take(rows, self._samples, axis=1)

    def _cross(self, design: Array, new: Array) -> Any:
        """Return ``new diag(w_c) design^T`` for every factor."""
        return _gram(self._take_samples(design), self._weights, self._take_samples(new))

    def removal_cost(self, weights: Array, block: slice) -> float:
        """Return the predicted rise of the objective when the rows in ``block`` are dropped.

        With ``M`` the inverse model, dropping weights ``w`` and re-optimising the rest costs
        ``1/2 w^T (M_bb)^{-1} w``, the formula of the optimal brain surgeon (:eq:`removal-cost`).
        """
        xp = namespace(self._inverse)
        part = self._inverse[:, :, block]
        inner = part.mT @ part
        values = weights[block, :].T[:, :, None]
        try:
            return 0.5 * float(xp.sum(values * xp.linalg.solve(inner, values)))
        except np.linalg.LinAlgError:  # the curvature is beyond the range of floats
            return math.inf


def _draw_samples(n_samples: int, used: int, like: Array) -> Any:
    """Draw the numbers of some samples.

    They are random, since rows may have a periodic order, but the same in every fit.
    """
    chosen = np.sort(np.random.default_rng(0).choice(n_samples, used, replace=False))
    return namespace(like).asarray(chosen, device=device_of(like))


def _assemble(upper_left: Array, upper_right: Array, lower_left: Array, lower_right: Array) -> Any:
    """Return matrices made of four blocks each, ``(n_factors, n_rows, n_columns)``."""
    xp = namespace(upper_left)
    upper = xp.concat([upper_left, upper_right], axis=2)
    return xp.concat([upper, xp.concat([lower_left, lower_right], axis=2)], axis=1)


def _gram(design: Array, weights: Array, new: Array) -> Any:
    """Return ``new diag(w_c) design^T`` for every row ``w_c`` of ``weights``.

    All factors of a block of samples come from one product of the stacked weighted rows.
    """
    xp = namespace(design)
    width, factors = new.shape[0], weights.shape[0]
    shape = (factors * width, design.shape[0])
    total = xp.zeros(shape, dtype=design.dtype, device=device_of(design))
    # By blocks of samples: the weighted copy of all of them would be ``factors`` times the data.
    for part in _sample_blocks(design, width * factors):
        stacked = weights[:, None, part] * new[None, :, part]
        total += xp.reshape(stacked, (shape[0], part.stop - part.start)) @ design[:, part].T
    return xp.reshape(total, (factors, width, design.shape[0]))


def _squares(design: Array, weights: Array) -> Any:
    """Return the diagonals of ``_gram``, of shape ``(factors, size)``."""
    xp, shape = namespace(design), (weights.shape[0], design.shape[0])
    total = xp.zeros(shape, dtype=design.dtype, device=device_of(design))
    for part in _sample_blocks(design, design.shape[0]):
        block = design[:, part]
        total += weights[:, part] @ (block * block).T
    return total


def _sample_blocks(rows: Array, width: int) -> Iterator[slice]:
    """Yield ranges of the samples of ``rows``, for work on ``width`` entries per sample."""
    n_samples, on_host = rows.shape[1], is_numpy(rows)
    entries = _ENTRIES_PER_WEIGHTED_BLOCK if on_host else _ENTRIES_PER_WEIGHTED_BLOCK_ON_DEVICE
    step = max(128, entries // max(1, width))
    for start in range(0, n_samples, step):
        yield slice(start, min(start + step, n_samples))


def _inverse_cholesky(gram: Array, ridge: Array | float, scale: Array | None = None) -> Any:
    """Return the inverse of the lower Cholesky factor of ``gram + diag(ridge)``.

    A multiple of machine epsilon times the diagonal (``scale``) is added, so that copies of a
    column give a large but finite step instead of a failure.
    """
    xp = namespace(gram)
    diagonal = xp.linalg.diagonal(gram) if scale is None else scale
    shift = _ROUNDING_OF_DIAGONAL * epsilon(gram) * xp.abs(diagonal) + ridge + tiny(gram)
    # Most extensions are by one row, for which a square root is all that is needed.
    if gram.shape[-1] == 0:
        return gram
    if gram.shape[-1] == 1:
        return 1.0 / xp.sqrt(xp.maximum(gram, xp.zeros_like(gram)) + shift[..., None])
    eye = xp.eye(gram.shape[-1], dtype=gram.dtype, device=device_of(gram))
    for _ in range(_FACTOR_ATTEMPTS):
        lower = _try_cholesky(gram + eye * shift[..., None])
        if lower is not None:
            return xp.linalg.inv(lower)
        shift = shift * _SHIFT_GROWTH
    # A diagonal model still makes steps descend, if slowly.
    return eye / xp.sqrt(xp.abs(diagonal) + shift)[..., None]


def _try_cholesky(matrix: Array) -> Any | None:
    """Return the Cholesky factor, or None where rounding makes a matrix indefinite."""
    xp = namespace(matrix)
    try:
        lower = xp.linalg.cholesky(matrix)
    except Exception as error:  # each namespace has its own LinAlgError
        if "LinAlgError" not in type(error).__name__:
            raise
        return None
    # Some libraries return NaN where others raise.
    return lower if bool(xp.all(xp.isfinite(lower))) else None
