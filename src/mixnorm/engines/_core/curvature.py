"""A factored model of the Hessian on the chosen columns, one small factor per output.

The Hessian of a soft-max loss in the weights of the chosen columns ``B`` is
``sum_i w_i (diag p_i - p_i p_i^T) (x) x_i x_i^T``. Its diagonal blocks, one per output, are
weighted Gram matrices ``A_c = B diag(v_c) B^T``. Their Cholesky factors precondition the corrective
step far better than Böhning's uniform bound once the model is confident on most rows (a third to a
tenth of the iterations), and cost little because they are extended as columns come. They only shape
the steps, so that a share of the samples is enough. A loss whose curvature is shared by all outputs
(squared) needs one factor only.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from mixnorm._array import Array, device_of, epsilon, is_numpy, namespace, tiny

# Weighted copies of a block of samples are sized to stay in the second-level cache; those of other
# libraries, mostly on a device, to be few and to fit in its memory.
_BLOCK_ENTRIES = 1 << 17
_BLOCK_ENTRIES_THERE = 1 << 26
# A model built on this many samples points as well as one built on all of them: with twice as many
# or more, that many are drawn, the same ones in every fit.
_SAMPLES = 8192


class CurvatureFactor:
    """Inverse Cholesky factors of the ridged, weighted Gram matrices of the chosen columns.

    Parameters
    ----------
    design : array of shape (n_rows, n_samples)
        The chosen columns, one per row.
    curvature : array of shape (n_samples, n_factors)
        Weights of the samples, one column per output or a single shared one.
    ridge : array of shape (n_rows,) or (n_outputs, n_rows)
        Added to the diagonal: the second derivative of the penalty, zero for the intercept.
    """

    def __init__(self, design: Any, curvature: Array, ridge: Any) -> None:
        size, n_samples = design.shape
        used = max(_SAMPLES, min(32 * size, 2 * (_SAMPLES + size)))
        self._samples = _drawn(n_samples, used, design) if n_samples >= 2 * used else None
        self._curvature = curvature.T
        self._weights = self._sampled(self._curvature)
        if self._samples is not None:
            self._weights = self._weights * (n_samples / used)
        gram = _gram(self._sampled(design), self._weights)
        self._gram = gram
        self._unseen = self._missed(design, namespace(gram).linalg.diagonal(gram))
        self.set_ridge(ridge)

    @property
    def n_factors(self) -> int:
        """One, or one per output."""
        return int(self._inverse.shape[0])

    def set_ridge(self, ridge: Any) -> None:
        """Factor anew for another penalty; the weighted Gram matrices stay as they are."""
        self._inverse = _inverse_cholesky(self._gram, ridge + self._unseen)

    def determined(self, ridge: Any) -> float:
        """Return how many weights the data determine, the others being held by the penalty.

        A weight with the share ``s`` of its curvature from the penalty counts as ``1 - s``: the
        trace of ``A (A + R)^{-1}`` over the rows of positive ``ridge``, summed over the factors
        (:eq:`evidence-count`).
        """
        xp = namespace(self._inverse)
        held = ridge * xp.sum(self._inverse * self._inverse, axis=1)
        penalised = xp.broadcast_to(ridge > 0.0, held.shape)
        zero = xp.zeros_like(held)
        counts = xp.where(penalised, xp.maximum(1.0 - held, zero), zero)
        return float(xp.sum(counts))

    def solve(self, gradient: Array) -> Any:
        """Return the inverse model applied to ``gradient`` of shape ``(n_rows, n_outputs)``."""
        inverse = self._inverse
        if inverse.shape[0] == 1:
            return inverse[0, ...].T @ (inverse[0, ...] @ gradient)
        return (inverse.mT @ (inverse @ gradient.T[:, :, None]))[:, :, 0].T

    def extend(self, design: Any, ridge: float) -> None:
        """Grow the factors to all rows of ``design``, whose first rows they cover already."""
        xp = namespace(design)
        size = self._inverse.shape[1]
        new = design[size:, :]
        cross, corner = self._cross(design[:size, :], new), self._cross(new, new)
        solved = self._inverse @ cross.mT
        factors, width = self._inverse.shape[0], corner.shape[1]
        options = {"dtype": design.dtype, "device": device_of(design)}
        seen = xp.linalg.diagonal(corner)
        unseen = self._missed(new, seen)
        small = _inverse_cholesky(corner - solved.mT @ solved, ridge + unseen, seen)
        grown = xp.zeros((factors, size + width, size + width), **options)
        grown[:, :size, :size] = self._inverse
        grown[:, size:, :size] = -(small @ solved.mT @ self._inverse)
        grown[:, size:, size:] = small
        self._inverse = grown
        gram = xp.zeros_like(grown)
        gram[:, :size, :size] = self._gram
        gram[:, size:, :size] = cross
        gram[:, :size, size:] = cross.mT
        gram[:, size:, size:] = corner
        self._gram = gram
        self._unseen = xp.concat([self._unseen, unseen], axis=1)

    def restricted(self, free: Any) -> CurvatureFactor:
        """Return the model for steps that move only the ``free`` weights, ``(n_outputs, n_rows)``.

        Its blocks are those of the free weights alone; ``solve`` gives zero for all others.
        """
        xp = namespace(self._inverse)
        used = xp.astype(free, self._inverse.dtype)
        lower = xp.linalg.inv(self._inverse)
        gram = (lower @ lower.mT) * (used[:, :, None] * used[:, None, :])
        eye = xp.eye(gram.shape[-1], dtype=gram.dtype, device=device_of(gram))
        gram = gram + eye * (1.0 - used)[:, :, None]  # ones keep the others apart and regular
        other = copy.copy(self)
        other._inverse = _inverse_cholesky(gram, 0.0) * used[:, None, :]
        return other

    def gains(
        self,
        design: Any,
        blocks: list[Any],
        gradients: list[Any],
        ridge: float,
        left: Any | None = None,
    ) -> Any:
        """Return what each block of new rows would gain beyond what the chosen ones still can.

        By output, ``(n_outputs, n_blocks)``. The gain is ``1/2 g^T S^{-1} g`` for the Schur
        complement ``S`` of the chosen rows, the curvature left to the new rows once the chosen ones
        follow, and the gradient ``g`` that is left to them once the chosen ones have taken theirs
        (``left``, which is not zero as the corrective step ends before; None if it is): a copy of a
        chosen row has neither. Single rows, the usual case, are done all at once.
        """
        xp = namespace(design)
        if any(block.shape[0] > 1 for block in blocks):
            pairs = zip(blocks, gradients, strict=True)
            return xp.stack(
                [self._block_gain(design, *pair, ridge, left) for pair in pairs], axis=1
            )
        new, gradient = xp.concat(blocks), xp.concat(gradients).T
        solved = self._inverse @ self._cross(design, new).mT
        if left is not None:
            gradient = gradient - self._taken(solved, left)
        part = self._sampled(new)
        corner = self._weights @ (part * part).T
        bend = corner - xp.sum(solved * solved, axis=1)
        floor = 32.0 * epsilon(design) * corner + ridge + tiny(design) + self._missed(new, corner)
        bend = xp.where(bend > 0.0, bend, xp.zeros_like(bend)) + floor
        return 0.5 * gradient * gradient / bend

    def _taken(self, solved: Any, left: Any) -> Any:
        """Return by output how the gradient in the new rows falls as the chosen ones follow."""
        return (solved.mT @ (self._inverse @ left.T[:, :, None]))[:, :, 0]

    def _block_gain(
        self, design: Any, new: Any, gradient: Array, ridge: float, left: Any | None
    ) -> Any:
        xp = namespace(design)
        solved, corner = self._inverse @ self._cross(design, new).mT, self._cross(new, new)
        if left is not None:
            gradient = gradient - self._taken(solved, left).T
        seen = xp.linalg.diagonal(corner)
        inverse = _inverse_cholesky(
            corner - solved.mT @ solved, ridge + self._missed(new, seen), seen
        )
        step = inverse @ gradient.T[:, :, None]
        return 0.5 * xp.sum(step * step, axis=(1, 2))

    def _missed(self, rows: Any, seen: Any) -> Any:
        """Return the curvature of ``rows`` that the samples in use fail to show.

        Zero for most rows. A row that is large on few samples, all or most of them skipped, would
        otherwise look flat and be given a step without bound.
        """
        xp = namespace(rows)
        if self._samples is None:
            return xp.zeros_like(seen)
        overall = _squares(rows, xp.sum(self._curvature, axis=0)[None, :])[0, :]
        if not bool(xp.any(overall > 2.0 * xp.sum(seen, axis=0))):  # the usual case, told cheaply
            return xp.zeros_like(seen)
        total = _squares(rows, self._curvature)
        return xp.where(total > 2.0 * seen, total - seen, xp.zeros_like(seen))

    def _sampled(self, rows: Any) -> Any:
        """Return the columns of ``rows`` that belong to the samples in use."""
        return rows if self._samples is None else namespace(rows).take(rows, self._samples, axis=1)

    def _cross(self, design: Any, new: Any) -> Any:
        """Return ``new diag(w_c) design^T`` for every factor."""
        return _gram(self._sampled(design), self._weights, self._sampled(new))

    def removal_cost(self, weights: Any, block: slice) -> float:
        """Return the predicted rise of the objective when the rows in ``block`` are dropped.

        With ``M`` the inverse model, dropping weights ``w`` and re-optimising the rest costs
        ``1/2 w^T (M_bb)^{-1} w`` (the optimal brain surgeon's formula).
        """
        xp = namespace(self._inverse)
        part = self._inverse[:, :, block]
        inner = part.mT @ part
        values = weights[block, :].T[:, :, None]
        if inner.shape[0] != values.shape[0]:
            inner = xp.broadcast_to(inner, (values.shape[0], *inner.shape[1:]))
        try:
            return 0.5 * float(xp.sum(values * xp.linalg.solve(inner, values)))
        except np.linalg.LinAlgError:  # curved beyond the range of floats: not to be dropped
            return math.inf


def _drawn(n_samples: int, used: int, like: Any) -> Any:
    """Draw sample numbers: at random, since rows may come in a periodic order; always the same."""
    chosen = np.sort(np.random.default_rng(0).choice(n_samples, used, replace=False))
    return namespace(like).asarray(chosen, device=device_of(like))


def _gram(design: Any, weights: Any, new: Any = None) -> Any:
    """Return ``new diag(w_c) design^T`` for every row ``w_c`` of ``weights``.

    ``new`` is ``design`` itself if not given. All factors of a block of samples come from one
    product of the stacked weighted rows.
    """
    xp = namespace(design)
    new = design if new is None else new
    n_samples, width, factors = design.shape[1], new.shape[0], weights.shape[0]
    step = _block(design, width * factors)
    shape = (factors * width, design.shape[0])
    total = xp.zeros(shape, dtype=design.dtype, device=device_of(design))
    for start in range(0, n_samples, step):
        stop = min(start + step, n_samples)
        stacked = weights[:, None, start:stop] * new[None, :, start:stop]
        total += xp.reshape(stacked, (factors * width, stop - start)) @ design[:, start:stop].T
    return xp.reshape(total, (factors, width, design.shape[0]))


def _squares(design: Any, weights: Any) -> Any:
    """Return the diagonals of ``_gram``, of shape ``(factors, size)``."""
    xp = namespace(design)
    size, n_samples = design.shape
    step = _block(design, size)
    total = xp.zeros((weights.shape[0], size), dtype=design.dtype, device=device_of(design))
    for start in range(0, n_samples, step):
        stop = min(start + step, n_samples)
        block = design[:, start:stop]
        total += weights[:, start:stop] @ (block * block).T
    return total


def _block(rows: Any, width: int) -> int:
    """Return how many samples to take at once, with ``width`` entries each."""
    entries = _BLOCK_ENTRIES if is_numpy(rows) else _BLOCK_ENTRIES_THERE
    return max(128, entries // max(1, width))


def _inverse_cholesky(gram: Any, ridge: Any, scale: Any | None = None) -> Any:
    """Return the inverse of the lower Cholesky factor of ``gram + diag(ridge)``.

    A multiple of machine epsilon times the diagonal (``scale``) is added too, so that duplicate
    columns give a large but finite step instead of a failure.
    """
    xp = namespace(gram)
    diagonal = xp.linalg.diagonal(gram) if scale is None else scale
    shift = 32.0 * epsilon(gram) * xp.abs(diagonal) + ridge + tiny(gram)
    if gram.shape[-1] == 0:
        return gram
    if gram.shape[-1] == 1:
        return 1.0 / xp.sqrt(xp.maximum(gram, xp.zeros_like(gram)) + shift[..., None])
    eye = xp.eye(gram.shape[-1], dtype=gram.dtype, device=device_of(gram))
    for _ in range(8):
        lower = _try_cholesky(gram + eye * shift[..., None])
        if lower is not None:
            return xp.linalg.inv(lower)
        shift = shift * 8.0
    return eye / xp.sqrt(xp.abs(diagonal) + shift)[..., None]


def _try_cholesky(matrix: Any) -> Any | None:
    """Return the Cholesky factor, or None where the matrix is not numerically positive."""
    xp = namespace(matrix)
    try:
        lower = xp.linalg.cholesky(matrix)
    except Exception as error:  # each namespace has its own LinAlgError
        if "LinAlgError" not in type(error).__name__:
            raise
        return None
    return lower if bool(xp.all(xp.isfinite(lower))) else None
