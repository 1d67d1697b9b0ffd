"""The chosen columns in memory, with the scores and the residual of their weights."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from mixnorm._array import Array, device_of, epsilon, namespace, tiny
from mixnorm.engines._core.correction import (
    Correction,
    CorrectionProblem,
    Outcome,
    shares_model,
)
from mixnorm.engines._core.curvature import CurvatureFactor
from mixnorm.engines._core.orthant import shrink
from mixnorm.pools import Curvature, PreparedPool

__all__ = ["CorrectionProblem", "Outcome", "Support"]


class Support(Correction):
    """The chosen columns and their weights, with the scores and the residual of these."""

    def __init__(self, problem: CorrectionProblem, fit_intercept: bool, capacity: int) -> None:
        self.problem = problem
        weight = problem.weight
        self._xp = xp = namespace(weight)
        self._options = {"dtype": weight.dtype, "device": device_of(weight)}
        self._epsilon, self._tiny = epsilon(weight), tiny(weight)
        n_samples, n_outputs = weight.shape[0], problem.n_outputs
        # A column of the data is a row here, so that a new one is written to memory in one piece.
        self._buffer = xp.empty((capacity + fit_intercept, n_samples), **self._options)
        #: The row of the first column: those before are of the intercept.
        self.first = self.size = int(fit_intercept)
        if fit_intercept:
            self._buffer[0, :] = 1.0
        self.has_intercept = fit_intercept
        self.weights = xp.zeros((self.size, n_outputs), **self._options)
        self.blocks: dict[Any, slice] = {}
        self._offsets = xp.zeros((self.size,), **self._options)
        self._factor: CurvatureFactor | None = None
        self._age = 0
        self._scanned: tuple[int, Any] | None = None
        self.rescore()
        #: Gradients below this are no larger than the rounding errors of the first residual.
        self.noise = 64.0 * self._epsilon * float(xp.sum(xp.abs(self.residual)))

    @property
    def design(self) -> Any:
        """The intercept, if there is one, and the chosen columns, one per row."""
        return self._buffer[: self.size, :]

    def rescore(self) -> None:
        """Compute the scores, the loss and the residual from the weights."""
        problem = self.problem
        # The transpose of a product, which lies output by output, as losses read scores. It is zero
        # if there are no rows.
        self.scores = (self.weights.T @ self.design).T
        self.value, self.residual = problem.loss.value_and_residual(
            self.scores, problem.target, problem.weight
        )

    def centre(self, rows: Array) -> tuple[Any, Any]:
        """Return ``rows`` less their weighted means, and the means.

        With a free intercept both forms have the same solutions. But a column whose mean is large
        beside its spread is nearly constant, and the solver would have to tell it from the
        intercept. Without an intercept the rows come back as they are, with zeros for means.
        """
        if not self.has_intercept:
            return rows, self._xp.zeros((rows.shape[0],), **self._options)
        means = rows @ self.problem.weight
        return rows - means[:, None], means

    def centred_residual(self) -> Any:
        """Return the residual less its sum, shared out among the rows by their weights.

        Its product with a column does not depend on the mean of the column. The plain residual
        does not sum to zero, as the intercept is solved to a tolerance only, and its sum times a
        large mean would look like a gradient.
        """
        if not self.has_intercept:
            return self.residual
        left = self._xp.sum(self.residual, axis=0)
        return self.residual - self.problem.weight[:, None] * left[None, :]

    def append(
        self, atom: Any, rows: Array, weights: Array | None = None, offset: Array | None = None
    ) -> None:
        """Add the columns of ``atom``, one per row of ``rows``.

        ``weights`` are zero by default, and so is ``offset``, which was subtracted from the rows.
        """
        xp, start = self._xp, self.size
        stop = start + rows.shape[0]
        # Growing by half each time copies every column a constant number of times in all.
        if stop > self._buffer.shape[0]:
            grown = xp.empty((max(stop, 3 * start // 2), self._buffer.shape[1]), **self._options)
            grown[:start, :] = self.design
            self._buffer = grown
        self._buffer[start:stop, :] = rows
        self.size = stop
        # A model of each output cannot be extended to one that all outputs share.
        if shares_model(stop) and not shares_model(start):
            self._factor = None
        if self._factor is not None:
            self._factor.extend(self.design, self.problem.new_ridge)
        self.blocks[atom] = slice(start, stop)
        if offset is None:
            offset = xp.zeros((rows.shape[0],), **self._options)
        self._offsets = xp.concat([self._offsets, offset])
        if weights is None:
            weights = xp.zeros((rows.shape[0], self.problem.n_outputs), **self._options)
        self.weights = xp.concat([self.weights, weights], axis=0)

    def columns(self, atom: Any) -> tuple[Any, Any]:
        """Return the centred columns of a chosen atom, and their means."""
        block = self.blocks[atom]
        return self._buffer[block, :], self._offsets[block]

    def branch(self, *, own_room: bool = False) -> Support:
        """Return a copy to go on with; this support stays as it is.

        The two share the memory of the columns, so that only one of them may grow. With
        ``own_room`` the copy has memory of its own.
        """
        # A shallow copy is enough: weights, scores and residual are replaced, never changed in
        # place. Blocks and the factor are changed in place, and are copied.
        other = copy.copy(self)
        other.blocks = dict(self.blocks)
        other._factor = copy.copy(self._factor)
        if own_room:
            other._buffer = self._xp.empty(self._buffer.shape, **self._options)
            other._buffer[: self.size, :] = self.design
        return other

    def without(self, atom: Any) -> Support:
        """Return a copy without ``atom``; the other weights are unchanged."""
        other = copy.copy(self)
        xp, gone = self._xp, self.blocks[atom]
        width = gone.stop - gone.start
        # The rows are moved together in memory of its own, as the original keeps all of them.
        other._buffer = xp.empty(self._buffer.shape, **self._options)
        other._buffer[: gone.start, :] = self._buffer[: gone.start, :]
        other._buffer[gone.start : self.size - width, :] = self._buffer[gone.stop : self.size, :]
        other.size = self.size - width
        other.weights = xp.concat([self.weights[: gone.start, :], self.weights[gone.stop :, :]])
        other._offsets = xp.concat([self._offsets[: gone.start], self._offsets[gone.stop :]])
        other.blocks = self._places_without(atom)
        # Removing rows from the middle of a Cholesky factor costs about as much as a new one.
        other._factor = None
        other.rescore()
        return other

    def _reach(self, rows: Array) -> float:
        """Return the sum of half the ranges of columns; without an intercept, of magnitudes."""
        xp = self._xp
        # Samples of weight zero do not count towards the range of a column. A zero in their place
        # can only widen it, which keeps the bound.
        used = xp.where(self.problem.weight > 0, rows, xp.zeros_like(rows[:, :1]))
        high, low = xp.max(used, axis=1), xp.min(used, axis=1)
        if not self.has_intercept:
            # Without an intercept the largest magnitude counts, which half of this range is.
            high, low = xp.maximum(xp.abs(high), xp.abs(low)), xp.zeros_like(low)
            high = 2.0 * high
        return 0.5 * float(xp.sum(high - low))

    def offer(self, pool: PreparedPool, atoms: list[Any]) -> list[tuple[Any, Any, Any]]:
        """Return for each atom its centred columns, the gradient in their weights, their means.

        All gradients come from one product.
        """
        parts = [pool.columns(atom) for atom in atoms]
        rows, offsets = self.centre(self._xp.concat(parts))
        slopes, start, found = self.slope_at_zero(rows), 0, []
        for part in parts:
            at = slice(start, start + part.shape[0])
            found.append((rows[at, :], slopes[at, :], offsets[at]))
            start = at.stop
        return found

    def read(self, pool: PreparedPool, atom: Any) -> tuple[Any, Any]:
        """Return the centred columns of an atom that is not chosen, and their means."""
        return self.centre(pool.columns(atom))

    def newton_gains(self, blocks: list[Any], slopes: list[Any]) -> Any:
        """Return by output the gain of each block of new rows over the chosen ones.

        See :meth:`CurvatureFactor.gains`.
        """
        ridge, left = self.problem.new_ridge, self.slope()
        return self.curvature().gains(self.design, blocks, slopes, ridge, left)

    def touched_loss(self, blocks: list[Any]) -> Any:
        """Return by output and block the loss on the samples that the rows of a block touch.

        The loss is shared out by the sizes ``e`` of the residuals. Of the loss of an output, a
        block with rows of sizes ``x`` touches the share ``(sum e x)^2 / (sum e) (sum e x^2)``: all
        of it where the block is equally large on all samples, little where it is large on few
        samples (:eq:`touched-loss`).
        """
        xp, errors = self._xp, self._xp.abs(self.residual)
        sizes = xp.stack([xp.sqrt(xp.sum(block * block, axis=0)) for block in blocks])
        touched = sizes @ errors
        squares = (sizes * sizes) @ errors + self._tiny
        return self.loss_per_error() * (touched * touched / squares).T

    def slope_at_zero(self, rows: Array) -> Any:
        """Return the same for the weights of new ``rows``, which are zero."""
        gradient, kink = rows @ self.residual, self.problem.kink
        return shrink(gradient, kink) if kink > 0.0 else gradient

    def scan_curvature(self) -> Curvature:
        """Return the second derivatives from which a pool estimates gains (:eq:`score-statistic`).

        They are computed again only when the number of atoms has doubled: they change slowly, and a
        pool that gets the same ones need not read its columns again.
        """
        problem, size = self.problem, len(self.blocks)
        if self._scanned is None or not self._scanned[0] <= size < 2 * max(1, self._scanned[0]):
            weights = problem.loss.curvature(self.residual, problem.target, problem.weight)
            self._scanned = (size, weights)
        return Curvature(
            weights=self._scanned[1],
            samples=problem.weight,
            loss_per_error=self.loss_per_error(),
            ridge=problem.new_ridge,
            intercept=self.has_intercept,
        )

    def loss_per_error(self) -> float:
        """Return the loss divided by the sum of the magnitudes of the residual."""
        # A perfect fit has neither; the smallest number keeps the division defined.
        return self.value / (float(self._xp.sum(self._xp.abs(self.residual))) + self._tiny)

    def _loss_gradient(self) -> Any:
        return self.design @ self.residual

    def _trial(self, step: Array, straight: bool) -> Callable[[Any, Any, float], tuple[float, Any]]:
        problem, along = self.problem, None

        def compute(weights: Array, move: Array, length: float) -> tuple[float, Any]:
            # One product with the columns serves all lengths of a straight path, along which the
            # scores move in proportion.
            nonlocal along
            if along is None or not straight:
                along = (step.T @ self.design if straight else move.T @ self.design).T
            scores = along * (-length if straight else 1.0)
            scores += self.scores
            value, residual = problem.loss.value_and_residual(
                scores, problem.target, problem.weight
            )
            return value, (scores, residual)

        return compute

    def _accept(self, found: Any) -> None:
        self.scores, self.residual = found

    def _make_factor(self) -> CurvatureFactor:
        problem = self.problem
        curvature = problem.loss.curvature(self.residual, problem.target, problem.weight)
        if shares_model(self.size):
            curvature = self._xp.mean(curvature, axis=1, keepdims=True)
        return CurvatureFactor(self.design, curvature, self._ridge)
