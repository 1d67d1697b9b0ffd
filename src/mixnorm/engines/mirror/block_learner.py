"""Online learners for any norm with a mirror map, computed once per block of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixnorm._array import to_dense
from mixnorm.engines.mirror import layout
from mixnorm.engines.mirror import rows_jit as jit
from mixnorm.engines.mirror.plan import OnlineLearner, Plan, Rows, row_loss, rule_error
from mixnorm.engines.mirror.row_learner import RowLearner, copy_corners
from mixnorm.norms import MixedNorm, Norm, SchattenNorm

# Smaller side of matrices whose singular values come from a Gram matrix, which is faster by far.
_LARGEST_GRAM_SIDE = 256
# Range of its trace in which squares neither overflow nor lose digits in underflow.
_LEAST_SQUARES, _MOST_SQUARES = 1e-200, 1e200


class BlockLearner(OnlineLearner):
    """A learner for any norm with a mirror map, whose weights are computed once for a block.

    The samples of a block are predicted with the same weights, and their gradients make one step.
    For the theory the block is one round, whose loss is the sum of the losses of its samples.
    """

    workspace = None  # that of :class:`RowLearner` is for single rows

    stored = (
        "theta", "top", "mean", "offset", "offsets", "base", "heard", "total", "pending",
        "waiting", "played", "numbers",
    )  # fmt: skip

    def __init__(self, plan: Plan, n_features: int, n_outputs: int) -> None:
        if plan.rule == "feature":
            raise rule_error(plan.norm)
        self.plan, self.n_features, self.n_outputs = plan, n_features, n_outputs
        self.norm = _add_intercept(plan.smooth(n_features, n_outputs))
        self.numbers = np.zeros(layout.N_NUMBERS)
        # Column 0 is the intercept's everywhere. Arrays are changed in place, never replaced: the
        # state of the learner (:class:`LearnerState`) shares them.
        self.theta = np.zeros((n_outputs, n_features + 1))
        self.top, self.mean = np.zeros(n_features + 1), np.zeros(n_features + 1)
        self.top[0] = 1.0  # the intercept's
        # What moving means have added to the intercepts, and its sum over the rounds; the means of
        # the targets, and the weight of the targets seen.
        self.offset, self.offsets = np.zeros(n_outputs), np.zeros(n_outputs)
        self.base, self.heard = np.zeros(n_outputs), np.zeros(n_outputs)
        self.total = np.zeros((n_outputs, n_features + 1) if plan.averaged else (0, 0))
        # The gradient of the block so far, the samples in it, and the weights that it is predicted
        # with. They are stored too, so that a stream may stop in the middle of a block.
        self.pending = np.zeros_like(self.theta)
        self.waiting = np.zeros(1, dtype=np.int64)
        self.played = np.zeros_like(self.theta)

    def enlarge(self, n_features: int, n_outputs: int, losses: Sequence[Any] = ()) -> BlockLearner:
        """Return the learner with more features and outputs; see :meth:`RowLearner.enlarge`."""
        groups = getattr(self.norm, "groups", None)
        grows = n_features > self.n_features
        if isinstance(groups, np.ndarray) and (grows or groups.ndim == 2):
            raise ValueError(
                f"{self.plan.norm!r} has a group for each feature of the first call, and there are "
                "new ones; give all classes and features in the first call."
            )
        plan = replace(self.plan, losses=losses or self.plan.losses)
        larger = BlockLearner(plan, n_features, n_outputs)
        copy_corners(self, larger, self.stored)
        return larger

    def _learn(self, X: Rows, order: np.ndarray | None, *samples: np.ndarray) -> int:
        if X.ndim == 3:  # an input for each output
            return self._learn_together(np.asarray(X), order, *samples)
        labels, targets, importance, losses, wrong = samples
        start = 0
        # Parts of the present block that can be computed by whole matrices.
        while start < len(losses):
            stop = start + max(1, self.plan.block - int(self.waiting[0]))
            given: Any = to_dense(X[start:stop] if order is None else X[order[start:stop]])
            rows = np.asarray(given, dtype=np.float64)
            count = self._count_together(rows, importance[start:stop])
            if count == 0:  # the first row is not finite
                break
            part = slice(start, start + count)
            losses[part], wrong[part], residual = self._count_losses(
                self._inputs(rows[:count]) @ self.played.T, labels[part], targets[part],
                importance[part],
            )  # fmt: skip
            self.pending += residual.T @ self._move_origin(rows[:count], importance[part])
            self._end_rows(count)
            start += count
        return start

    def _learn_together(self, X: np.ndarray, order: np.ndarray | None, *samples: np.ndarray) -> int:
        labels, targets, importance, losses, wrong = samples
        for i in range(len(X)):
            rows, part = X[i if order is None else order[i]], slice(i, i + 1)
            # A task without a target in this round has no input either, whatever its row holds.
            known = ~np.isnan(targets[i])
            if not np.all(np.isfinite(rows[known])):
                return i
            inputs = self._inputs(np.where(known[:, None], rows, 0.0))
            products = np.einsum("rj,rj->r", inputs, self.played)[None, :]
            losses[part], wrong[part], residual = self._count_losses(
                products, labels, targets[part], importance[part]
            )
            if np.any(known):
                inputs = self._move_origin(rows[known], importance[part])
                self.pending[known] += residual.T[known] * inputs
            self._end_rows(1)
        return len(X)

    def _count_together(self, rows: np.ndarray, weight: np.ndarray) -> int:
        """Return the number of rows before one that is not finite or makes a unit grow."""
        # Weights change when a unit grows (past gradients are in the old unit), so that rows can be
        # predicted together only as long as none does. A row that makes one grow goes alone.
        finite = np.all(np.isfinite(rows), axis=1)
        count = len(rows) if np.all(finite) else int(np.argmin(finite))
        if self.plan.scaled and count > 1:
            away = np.abs(self._away(rows[:count], weight)[0])
            larger = np.any(away > self.top[1:], axis=1)
            count = max(1, int(np.argmax(larger))) if np.any(larger) else count
        return count

    def _away(self, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances of rows from the means after each row, and the last means.

        If there is one weight for all rows, they move the means together.
        """
        if not (self.plan.scaled and self.plan.origin == "means"):
            return rows, self.mean
        # Row by row, and not by a cumulative mean: the result must not depend on how rows are put
        # together in calls.
        away, mean, seen = [], self.mean[1:], self.numbers[layout.WEIGHT]
        for part, own in zip(np.split(rows, len(weight)), weight, strict=True):
            seen = seen + own
            share = own / seen if seen > 0.0 else 0.0
            mean = mean + share * (np.mean(part, axis=0) - mean)
            away.append(part - mean)
        return np.concatenate(away), np.concatenate([[0.0], mean])

    def _inputs(self, rows: np.ndarray) -> np.ndarray:
        """Return the inputs of rows, measured by the means and units known so far."""
        if self.plan.scaled:
            rows = (rows - self.mean[1:]) * self._inverse_units()[1:]
        return self._add_ones(rows)

    def _add_ones(self, inputs: np.ndarray) -> np.ndarray:
        """Return inputs with the intercept's column in front: ones, or zeros without intercept."""
        ones = np.full((len(inputs), 1), float(self.plan.intercept))
        return np.concatenate([ones, inputs], axis=1)

    def _inverse_units(self) -> np.ndarray:
        """Return one over the units, and zero for columns whose unit is not known."""
        if not self.plan.scaled:
            return np.ones_like(self.top)
        # The inner ``where`` avoids a division by zero, whose result the outer one would drop.
        return np.where(self.top > 0.0, 1.0 / np.where(self.top > 0.0, self.top, 1.0), 0.0)

    def _move_origin(self, rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Update means and units with rows; return the inputs (:eq:`running-inputs`) in new units.

        The model stays the same function of rows when means move (:eq:`moving-intercept`). When the
        unit of a column grows, its past updates become what they would have been in the new unit.
        """
        away, mean = self._away(rows, weight)
        # A value beyond the unit says that the unit was not known, and neither was the weight: the
        # intercept does not follow that column's mean. Kept in units of the rate, so that it fades
        # as the weights that it comes from do.
        if self.plan.scaled:
            farther = np.concatenate([[False], np.any(np.abs(away) > self.top[1:], axis=0)])
            moved = np.where(farther, 0.0, (mean - self.mean) * self._inverse_units())
            self.offset += self.played @ moved / (self._rate() or 1.0)
        self.mean[:] = mean
        self.numbers[layout.WEIGHT] += float(np.sum(weight))
        if self.plan.scaled and np.any(weight):
            self._grow_units(np.max(np.abs(away), axis=0))
        return self._add_ones(away * self._inverse_units()[1:])

    def _grow_units(self, farthest: np.ndarray) -> None:
        """Let the units of columns reach to the farthest distances from the origin."""
        largest = np.concatenate([self.top[:1], np.maximum(farthest, self.top[1:])])
        larger = (largest > self.top) & (self.top > 0.0)
        # Inputs shrink by this part, and so would have all past gradients. Weights follow from the
        # sums, and the function played changes with them (see "Units" in the derivation).
        if np.any(larger):
            part = np.where(larger, self.top / np.where(largest > 0.0, largest, 1.0), 1.0)
            self.theta *= part
            self.pending *= part
            self.played[:] = self._weights_now()
        self.top[:] = largest

    def _count_losses(
        self, products: np.ndarray, labels: np.ndarray, targets: np.ndarray, importance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count losses and mistakes of samples; return them and the derivatives, weighted."""
        losses, wrong, residual = self._compute_losses(products, labels, targets, importance)
        numbers, losses = self.numbers, losses * importance
        residual[np.abs(residual) <= self.plan.quiet] = 0.0
        residual = residual * importance[:, None]
        # Steps of the first rows are short, while the units are not well known.
        if self.plan.scaled:
            seen = numbers[layout.WEIGHT] + np.cumsum(importance)
            residual *= (seen / (seen + jit.WARM))[:, None]
        numbers[layout.ROUNDS] += len(losses)
        numbers[layout.MISTAKES] += int(np.sum(wrong))
        numbers[layout.LOSS] += float(np.sum(losses))
        numbers[layout.UPDATES] += int(np.sum(np.any(residual != 0.0, axis=1)))
        numbers[layout.LINEAR] += float(np.sum(residual * products))
        if self.plan.averaged:
            self.total += np.sum(importance) * self.played
            self.offsets += np.sum(importance) * self._rate() * self.offset
        return losses, wrong, residual

    def _compute_losses(
        self, products: np.ndarray, labels: np.ndarray, targets: np.ndarray, importance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return losses, mistakes and derivatives of samples, one by one, as they are few."""
        # The compiled losses of single rows, where there are some: both kinds of learners then
        # count the same.
        n_samples, scores = len(products), products + self._rate() * self.offset
        losses, residual = np.zeros(n_samples), np.zeros_like(scores)
        wrong = np.zeros(n_samples, dtype=np.int64)
        row_losses = [row_loss(loss) for loss in self.plan.losses]
        if self.plan.joint:
            for i in range(n_samples):
                wrong[i] = np.argmax(scores[i]) != labels[i]
                losses[i], residual[i] = row_losses[0](scores[i], labels[i])
            return losses, wrong, residual
        for i in range(n_samples):
            outputs = range(self.n_outputs) if len(labels) == 0 else [int(labels[i])]
            for r in outputs:
                target = float(targets[i, r if len(labels) == 0 else 0])
                if math.isnan(target):
                    continue
                which = r if len(row_losses) > 1 else 0
                is_binary = self.plan.losses[which].is_binary
                score = scores[i, r : r + 1] + self.base[r]
                based = self.plan.scaled and self.plan.intercept and not is_binary
                # The first number only sets the base: nothing is known of its size yet.
                if not based or self.heard[r] > 0.0:
                    own, residual[i, r : r + 1] = row_losses[which](score, target)
                    losses[i] += own
                if is_binary:
                    wrong[i] += int(score[0] * target <= 0.0)
                elif based and importance[i] > 0.0:
                    self.heard[r] += importance[i]
                    self.base[r] += importance[i] / self.heard[r] * (target - self.base[r])
        return losses, wrong, residual

    def _pending_step(self) -> tuple[float, float, float]:
        """Return the dual norm of the pending gradient, its step size and its term in the bound."""
        if not np.any(self.pending):
            return 0.0, 0.0, 0.0
        size = _dual_norm(self.norm, self.pending)
        rate = self._rate(size)
        return size, rate, rate * size * size / (2.0 * float(self.norm.strong_convexity()))

    def _last_step(self) -> tuple[float, float]:
        """Return the step size and the sum, as if the last block were full."""
        last, steps = super()._last_step()
        size, rate, cost = self._pending_step()
        return (rate, steps + cost) if size > 0.0 else (last, steps)

    def _end_rows(self, count: int) -> None:
        """Count rows of the block, and take its step if it is full."""
        self.waiting[0] += count
        if int(self.waiting[0]) >= self.plan.block:
            self._step()

    def _step(self) -> None:
        numbers, pending = self.numbers, self.pending
        size, rate, cost = self._pending_step()
        # A gradient of zero is a round without a step: it must not set the first gradient, on which
        # the adaptive rate rests (:eq:`adaptive-rate`).
        if size > 0.0:
            if numbers[layout.FIRST] == 0.0:
                numbers[layout.FIRST] = size * size
            numbers[layout.STEPS] += cost
            numbers[layout.SQUARES] += size * size
            numbers[layout.LARGEST_GRADIENT] = max(numbers[layout.LARGEST_GRADIENT], size)
            numbers[layout.LAST_RATE] = rate
            self.theta -= pending
        numbers[layout.INPUTS] += 1.0  # the number of steps, on which rates depend
        pending[:] = 0.0
        self.waiting[:] = 0
        self.played[:] = self._weights_now()

    def _rate(self, size: float = 0.0) -> float:
        """Return the step size (:eq:`adaptive-rate`); ``size`` is the next gradient's dual norm."""
        plan, numbers = self.plan, self.numbers
        if plan.rule == "anytime":
            return plan.rate / math.sqrt(numbers[layout.INPUTS] + 1.0)
        if plan.rule == "adaptive":
            # The first gradient counts twice: a rate that is fixed before a gradient is seen must
            # not depend on it, and before the first one there is nothing else to go by.
            seen = float((numbers[layout.FIRST] or size * size) + numbers[layout.SQUARES])
            if not seen > 0.0:
                return 0.0
            return plan.rate * math.sqrt(float(self.norm.strong_convexity()) / seen)
        return plan.rate

    def _weights_now(self) -> np.ndarray:
        """Return the weights of the next block (:eq:`mirror-play`), for scaled inputs."""
        if not np.any(self.theta):
            return np.zeros_like(self.theta)
        found = self._rate() * _mirror(self.norm, self.theta)
        if math.isfinite(self.plan.radius):
            # Scaling gives the exact maximiser in the ball: the mirror map keeps norms.
            size = float(self.norm.value(found.T))
            if size > self.plan.radius:
                found *= self.plan.radius / size
        return found

    def weights(self, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        matrix, offset = self.played, self._rate() * self.offset
        if averaged:
            self._check_averaged()
            seen = float(self.numbers[layout.WEIGHT]) or 1.0
            matrix, offset = self.total / seen, self.offsets / seen
        # w (x - m) / s + b is (w / s) x + b - (w / s) m.
        matrix = matrix * self._inverse_units()
        intercept = matrix[:, 0] * self.plan.intercept + offset + self.base
        return matrix[:, 1:], intercept - matrix[:, 1:] @ self.mean[1:]

    def _sums(self) -> np.ndarray:
        # Gradients of a block that is not full count already: their losses do.
        return (self.theta - self.pending).T


def by_blocks(learner: RowLearner) -> BlockLearner:
    """Return a learner by blocks that continues where a learner by rows stopped."""
    if learner.plan.rule == "feature":
        raise ValueError(
            "learning_rate='feature' does not work with an input for each task; choose 'adaptive'."
        )
    other = BlockLearner(learner.plan, learner.n_features, learner.n_outputs)
    column, outputs = learner.column, learner.outputs
    other.numbers[:], other.theta[:] = learner.numbers, learner.theta
    other.numbers[layout.INPUTS] = learner.numbers[layout.ROUNDS]
    other.top[:], other.mean[:] = column[layout.TOP], column[layout.MEAN]
    other.offset[:], other.offsets[:] = outputs[layout.OFFSET], outputs[layout.OFFSETS]
    other.base[:], other.heard[:] = outputs[layout.BASE], outputs[layout.HEARD]
    if learner.plan.averaged:
        passed = learner.numbers[layout.CLOCK] - column[layout.SEEN]
        other.total[:] = learner.total + passed * learner.directions()
    other.played[:] = other._weights_now()
    return other


def _mirror(norm: Any, theta: np.ndarray) -> np.ndarray:
    """Return the mirror map of a matrix that has a row per output.

    It is :eq:`mirror-columns` with singular values in place of the norms of columns. For Schatten
    norms these come from the Gram matrix of the smaller side. Singular values below 1e-8 of the
    largest lose their digits there, but hardly change the map.
    """
    gram = _gram(norm, theta)
    if gram is None:
        return np.asarray(norm.mirror(theta.T)).T
    wide = theta.shape[0] <= theta.shape[1]
    squares, vectors = np.linalg.eigh(gram)
    values = np.sqrt(np.maximum(squares, 0.0))
    power = norm.q / (norm.q - 1.0)
    # Relative to the largest, because powers of large exponents overflow.
    top = float(values[-1])
    relative = values / top
    scale = float(np.sum(relative**power)) ** (2.0 / power - 1.0)
    inner = (vectors * (scale * relative ** (power - 2.0))) @ vectors.T
    return np.asarray(inner @ theta if wide else theta @ inner)


def _gram(norm: Norm, A: np.ndarray) -> np.ndarray | None:
    """Return the Gram matrix of the smaller side of ``A`` for Schatten norms, else None.

    The result is also None if the matrix is large, or if its squares overflow or vanish.
    """
    if not isinstance(norm, SchattenNorm) or norm.q == 2 or min(A.shape) > _LARGEST_GRAM_SIDE:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        gram = A @ A.T if A.shape[0] <= A.shape[1] else A.T @ A
    return gram if _LEAST_SQUARES < np.trace(gram) < _MOST_SQUARES else None


def _dual_norm(norm: Any, gradient: np.ndarray) -> float:
    """Return the dual norm of a matrix that has a row per output."""
    gram = _gram(norm, gradient)
    if gram is None:
        return float(norm.dual(gradient.T))
    squares = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    power, top = norm.q / (norm.q - 1.0), float(np.sqrt(squares[-1]))
    return float(top * np.sum((np.sqrt(squares) / top) ** power) ** (1.0 / power))


def _add_intercept(norm: Any) -> Any:
    """Return a norm whose groups, if any, have another one in front, for the intercept."""
    groups = getattr(norm, "groups", None)
    if groups is None or isinstance(groups, str):
        return norm
    labels = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(np.shape(groups))
    own = np.full((1, *labels.shape[1:]), int(np.max(labels, initial=-1)) + 1)
    return MixedNorm(norm.inner, norm.outer, np.concatenate([own, labels]))
