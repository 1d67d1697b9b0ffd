"""Online learners for any norm with a mirror map, which is asked for once per block of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.engines.mirror import layout
from mixnorm.engines.mirror import rows_jit as jit
from mixnorm.engines.mirror.plan import Account, Array, NotFiniteError, Plan, row_loss
from mixnorm.engines.mirror.row_learner import RowLearner, copy_corners, in_order
from mixnorm.norms import MixedNorm, SchattenNorm

_SMALLER_SIDE = 256  # of matrices whose singular values come from a Gram matrix
_LEAST_SQUARES, _MOST_SQUARES = 1e-200, 1e200  # sums of squares that keep their digits there


class BlockLearner(Account):
    """A learner for any norm with a mirror map, whose weights are computed once for a block.

    The samples of a block are predicted by the same weights, and their gradients make one step: for
    the theory the block is a round whose loss is the sum of theirs.
    """

    workspace = None  # for single rows, which :class:`RowLearner` has

    stored = (
        "theta", "top", "mean", "offset", "offsets", "base", "heard", "total", "pending",
        "waiting", "played", "numbers",
    )  # fmt: skip

    def __init__(self, plan: Plan, n_features: int, n_outputs: int) -> None:
        if plan.rule == "feature":
            raise ValueError(
                f"learning_rate='feature' goes with the norm 'l2,2' only, got {plan.norm!r}; "
                "choose 'adaptive' for this norm."
            )
        self.plan, self.n_features, self.n_outputs = plan, n_features, n_outputs
        self.norm = _with_intercept(plan.smooth(n_features, n_outputs))
        self.numbers = np.zeros(layout.N_NUMBERS)
        self.theta = np.zeros((n_outputs, n_features + 1))
        self.top, self.mean = np.zeros(n_features + 1), np.zeros(n_features + 1)
        self.top[0] = 1.0  # the intercept's
        # What moving means have added to intercepts, its sum over the rounds, the means of
        # targets, and the weight of targets seen.
        self.offset, self.offsets = np.zeros(n_outputs), np.zeros(n_outputs)
        self.base, self.heard = np.zeros(n_outputs), np.zeros(n_outputs)
        self.total = np.zeros((n_outputs, n_features + 1) if plan.averaged else (0, 0))
        self.pending = np.zeros_like(self.theta)
        self.waiting = np.zeros(1, dtype=np.int64)
        self.played = np.zeros_like(self.theta)

    def grown(self, n_features: int, n_outputs: int, losses: Sequence[Any] = ()) -> BlockLearner:
        """Return the learner with more features and outputs; see :meth:`RowLearner.grown`."""
        groups = getattr(self.norm, "groups", None)
        grows = n_features > self.n_features
        if isinstance(groups, np.ndarray) and (grows or groups.ndim == 2):
            raise ValueError(
                f"{self.plan.norm!r} has a group for each feature it knows of, and there are new "
                "ones; give all classes and features in the first call."
            )
        plan = replace(self.plan, losses=losses or self.plan.losses)
        larger = BlockLearner(plan, n_features, n_outputs)
        copy_corners(self, larger, self.stored)
        return larger

    def learn(
        self, X: Any, labels: Array, targets: Array, importance: Array, order: Array | None = None
    ) -> tuple[Array, Array]:
        """Learn from samples one after the other; see :meth:`RowLearner.learn`.

        ``X`` of shape ``(n_samples, n_outputs, n_features)`` has an input for each output.
        """
        if X.ndim == 3:
            return self._learn_together(X, targets, importance, order)
        n_samples = X.shape[0]
        losses, wrong = np.empty(n_samples), np.zeros(n_samples, dtype=np.int64)
        labels, targets, importance = in_order(order, labels, targets, importance)
        start = 0
        while start < n_samples:
            stop = start + max(1, self.plan.block - int(self.waiting[0]))
            rows: Any = X[start:stop] if order is None else X[order[start:stop]]
            rows = rows.toarray() if is_sparse(rows) else np.asarray(rows, np.float64)
            count = self._alike(rows, importance[start:stop])
            if count == 0:
                raise NotFiniteError(start, losses, wrong, order)
            stop = start + count
            part = slice(start, stop)
            losses[part], wrong[part], residual = self._suffer(
                self._inputs(rows[:count]) @ self.played.T, labels[part], targets[part],
                importance[part],
            )  # fmt: skip
            self.pending += residual.T @ self._move_origin(rows[:count], importance[part])
            self.waiting[0] += stop - start
            if int(self.waiting[0]) >= self.plan.block:
                self._step()
            start = stop
        return losses, wrong

    def _learn_together(
        self, X: Array, targets: Array, importance: Array, order: Array | None
    ) -> tuple[Array, Array]:
        losses, wrong = np.empty(len(X)), np.zeros(len(X), dtype=np.int64)
        nothing = np.empty(0, dtype=np.int64)
        targets, importance = in_order(order, targets, importance)
        for i in range(len(X)):
            rows = X[i if order is None else order[i]]
            if not np.all(np.isfinite(rows[~np.isnan(targets[i])])):
                raise NotFiniteError(i, losses, wrong, order)
            known, part = ~np.isnan(targets[i]), slice(i, i + 1)
            inputs = self._inputs(np.where(known[:, None], rows, 0.0))
            products = np.einsum("rj,rj->r", inputs, self.played)[None, :]
            losses[part], wrong[part], residual = self._suffer(
                products, nothing, targets[part], importance[part]
            )
            if np.any(known):
                inputs = self._move_origin(rows[known], importance[part])
                self.pending[known] += residual.T[known] * inputs
            self.waiting[0] += 1
            if int(self.waiting[0]) >= self.plan.block:
                self._step()
        return losses, wrong

    def _alike(self, rows: Array, weight: Array) -> int:
        """Return how many rows there are before one that is not finite, or has a larger unit."""
        finite = np.all(np.isfinite(rows), axis=1)
        count = len(rows) if np.all(finite) else int(np.argmin(finite))
        if self.plan.scaled and count > 1:
            away = np.abs(self._away(rows[:count], weight)[0])
            larger = np.any(away > self.top[1:], axis=1)
            count = max(1, int(np.argmax(larger))) if np.any(larger) else count
        return count

    def _away(self, rows: Array, weight: Array) -> tuple[Array, Array]:
        """Return the distances of rows from the means that they move, and the last means.

        With one weight for all rows they move the means together.
        """
        if not self.centred:
            return rows, self.mean
        away, mean, seen = [], self.mean[1:], self.numbers[layout.WEIGHT]
        for part, own in zip(np.split(rows, len(weight)), weight, strict=True):
            seen = seen + own
            share = own / seen if seen > 0.0 else 0.0
            mean = mean + share * (np.mean(part, axis=0) - mean)
            away.append(part - mean)
        return np.concatenate(away), np.concatenate([[0.0], mean])

    @property
    def centred(self) -> bool:
        """Whether inputs are measured from the means of their columns."""
        return self.plan.scaled and self.plan.origin == "means"

    def _inputs(self, rows: Array) -> Array:
        """Return inputs with a column of ones, in the units known so far."""
        ones = np.full((len(rows), 1), float(self.plan.intercept))
        if not self.plan.scaled:
            return np.concatenate([ones, rows], axis=1)
        return np.concatenate([ones, (rows - self.mean[1:]) * self._inverse()[1:]], axis=1)

    def _inverse(self) -> Array:
        """Return what inputs are multiplied by."""
        if not self.plan.scaled:
            return np.ones_like(self.top)
        return np.where(self.top > 0.0, 1.0 / np.where(self.top > 0.0, self.top, 1.0), 0.0)

    def _move_origin(self, rows: Array, weight: Array) -> Array:
        """Let means and units learn from rows; return their inputs, in the new units.

        The model stays the same function of rows when means move. When the unit of a column
        grows, its past updates are made what they would have been in the new one.
        """
        away, mean = self._away(rows, weight)
        if self.plan.scaled:
            farther = np.concatenate([[False], np.any(np.abs(away) > self.top[1:], axis=0)])
            moved = np.where(farther, 0.0, (mean - self.mean) * self._inverse())
            self.offset += self.played @ moved / (self._rate() or 1.0)
        self.mean[:] = mean
        self.numbers[layout.WEIGHT] += float(np.sum(weight))
        ones = np.full((len(rows), 1), float(self.plan.intercept))
        if not self.plan.scaled or not np.any(weight):
            return np.concatenate([ones, away * self._inverse()[1:]], axis=1)
        largest = self.top.copy()
        largest[1:] = np.maximum(np.max(np.abs(away), axis=0), self.top[1:])
        grown = (largest > self.top) & (self.top > 0.0)
        if np.any(grown):
            part = np.where(grown, self.top / np.where(largest > 0.0, largest, 1.0), 1.0)
            self.theta *= part
            self.pending *= part
            self.played[:] = self._weights_now()
        self.top[:] = largest
        return np.concatenate([ones, away * self._inverse()[1:]], axis=1)

    def _suffer(
        self, products: Array, labels: Array, targets: Array, importance: Array
    ) -> tuple[Array, Array, Array]:
        """Note what samples cost; return losses, mistakes and derivatives, weighted."""
        losses, wrong, residual = self._judge(products, labels, targets, importance)
        numbers, losses = self.numbers, losses * importance
        residual[np.abs(residual) <= self.plan.quiet] = 0.0
        residual = residual * importance[:, None]
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

    def _judge(
        self, products: Array, labels: Array, targets: Array, importance: Array
    ) -> tuple[Array, Array, Array]:
        """Return losses, mistakes and derivatives of samples, which are few, one by one."""
        n_samples, scores = len(products), products + self._rate() * self.offset
        losses, residual = np.zeros(n_samples), np.zeros_like(scores)
        wrong = np.zeros(n_samples, dtype=np.int64)
        judges = [row_loss(loss) for loss in self.plan.losses]
        if self.plan.joint:
            for i in range(n_samples):
                wrong[i] = np.argmax(scores[i]) != labels[i]
                losses[i], residual[i] = judges[0](scores[i], labels[i])
            return losses, wrong, residual
        for i in range(n_samples):
            outputs = range(self.n_outputs) if len(labels) == 0 else [int(labels[i])]
            for r in outputs:
                target = float(targets[i, r if len(labels) == 0 else 0])
                if math.isnan(target):
                    continue
                which = r if len(judges) > 1 else 0
                is_binary = self.plan.losses[which].is_binary
                score = scores[i, r : r + 1] + self.base[r]
                based = self.plan.scaled and self.plan.intercept and not is_binary
                if not based or self.heard[r] > 0.0:  # else nothing is known of its size
                    own, residual[i, r : r + 1] = judges[which](score, target)
                    losses[i] += own
                if is_binary:
                    wrong[i] += int(score[0] * target <= 0.0)
                elif based and importance[i] > 0.0:
                    self._move_base(r, target, float(importance[i]))
        return losses, wrong, residual

    def _move_base(self, output: int, target: float, weight: float) -> None:
        """Move the mean of the targets of an output."""
        self.heard[output] += weight
        self.base[output] += weight / self.heard[output] * (target - self.base[output])

    def _last_step(self) -> tuple[float, float]:
        """Return step size and sum, with the step of a block that is not full."""
        rate, steps = super()._last_step()
        if not np.any(self.pending):
            return rate, steps
        size = _dual_norm(self.norm, self.pending)
        rate = self._rate(size)
        return rate, steps + rate * size * size / (2.0 * float(self.norm.strong_convexity()))

    def _step(self) -> None:
        numbers, pending = self.numbers, self.pending
        size = _dual_norm(self.norm, pending) if np.any(pending) else 0.0
        if size > 0.0:
            rate = self._rate(size)
            if numbers[layout.FIRST] == 0.0:
                numbers[layout.FIRST] = size * size
            convexity = float(self.norm.strong_convexity())
            numbers[layout.STEPS] += rate * size * size / (2.0 * convexity)
            numbers[layout.SQUARES] += size * size
            numbers[layout.LARGEST_GRADIENT] = max(numbers[layout.LARGEST_GRADIENT], size)
            numbers[layout.LAST_RATE] = rate
            self.theta -= pending
        numbers[layout.INPUTS] += 1.0  # steps, which is what rates go by
        pending[:] = 0.0
        self.waiting[:] = 0
        self.played[:] = self._weights_now()

    def _rate(self, size: float = 0.0) -> float:
        """Return the step size, which weights come from; ``size`` is that of a gradient to come."""
        plan, numbers = self.plan, self.numbers
        if plan.rule == "anytime":
            return plan.rate / math.sqrt(numbers[layout.INPUTS] + 1.0)
        if plan.rule == "adaptive":
            seen = float((numbers[layout.FIRST] or size * size) + numbers[layout.SQUARES])
            if not seen > 0.0:
                return 0.0
            return plan.rate * math.sqrt(float(self.norm.strong_convexity()) / seen)
        return plan.rate

    def _weights_now(self) -> Array:
        """Return the weights of the next block, in units of scaled inputs."""
        if not np.any(self.theta):
            return np.zeros_like(self.theta)
        found = self._rate() * _mirrored(self.norm, self.theta)
        if math.isfinite(self.plan.radius):
            size = float(self.norm.value(found.T))
            if size > self.plan.radius:
                found *= self.plan.radius / size
        return found

    def weights(self, averaged: bool = False) -> tuple[Array, Array]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        matrix, offset = self.played, self._rate() * self.offset
        if averaged:
            self._check_averaged()
            seen = float(self.numbers[layout.WEIGHT]) or 1.0
            matrix, offset = self.total / seen, self.offsets / seen
        matrix = matrix * self._inverse()
        intercept = matrix[:, 0] * self.plan.intercept + offset + self.base
        return matrix[:, 1:], intercept - matrix[:, 1:] @ self.mean[1:]

    def _sums(self) -> Array:
        return (self.theta - self.pending).T


def by_blocks(learner: RowLearner) -> BlockLearner:
    """Return a learner of the other kind that goes on where one by rows stopped."""
    if learner.plan.rule == "feature":
        raise ValueError(
            "learning_rate='feature' cannot go with an input for each task; choose 'adaptive'."
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


def _mirrored(norm: Any, theta: Array) -> Array:
    """Return the mirror map of a matrix that has a row per output.

    For Schatten norms the singular values come from the Gram matrix of the smaller side: what that
    loses is singular values below 1e-8 of the largest, which count for nothing here.
    """
    gram = _gram(norm, theta)
    if gram is None:
        return np.asarray(norm.mirror(theta.T)).T
    wide = theta.shape[0] <= theta.shape[1]
    squares, vectors = np.linalg.eigh(gram)
    values = np.sqrt(np.maximum(squares, 0.0))
    power = norm.q / (norm.q - 1.0)
    top = float(values[-1])
    relative = values / top
    scale = float(np.sum(relative**power)) ** (2.0 / power - 1.0)
    turned = (vectors * (scale * relative ** (power - 2.0))) @ vectors.T
    return np.asarray(turned @ theta if wide else theta @ turned)


def _gram(norm: Any, A: Array) -> Array | None:
    """Return the Gram matrix of the smaller side of ``A``, for Schatten norms.

    None for other norms, and where the matrix is large, or its squares overflow or vanish.
    """
    if not isinstance(norm, SchattenNorm) or norm.q == 2 or min(A.shape) > _SMALLER_SIDE:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        gram = A @ A.T if A.shape[0] <= A.shape[1] else A.T @ A
    return gram if _LEAST_SQUARES < np.trace(gram) < _MOST_SQUARES else None


def _dual_norm(norm: Any, gradient: Array) -> float:
    """Return the dual norm of a matrix that has a row per output."""
    gram = _gram(norm, gradient)
    if gram is None:
        return float(norm.dual(gradient.T))
    squares = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    power, top = norm.q / (norm.q - 1.0), float(np.sqrt(squares[-1]))
    return float(top * np.sum((np.sqrt(squares) / top) ** power) ** (1.0 / power))


def _with_intercept(norm: Any) -> Any:
    """Return a norm with a group more, in front, where features have groups."""
    groups = getattr(norm, "groups", None)
    if groups is None or isinstance(groups, str):
        return norm
    labels = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(np.shape(groups))
    own = np.full((1, *labels.shape[1:]), int(np.max(labels, initial=-1)) + 1)
    return MixedNorm(norm.inner, norm.outer, np.concatenate([own, labels]))
