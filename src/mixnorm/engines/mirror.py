"""Online mirror descent: learning from samples as they come, under the norms of the batch engines.

A learner holds ``theta``, minus the sum of the gradients so far, and plays the weights
``mirror(rate * theta)`` of a strongly convex norm, scaled into a ball where there is one. For mixed
norms of columns or entries that costs a pass over the sample's entries that are not zero
(:class:`RowLearner`); any other norm, the trace norm for one, has its weights computed once for a
block of samples (:class:`BlockLearner`). Both keep an account: what was lost, and what the theory
promises of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from mixnorm.engines import _mirror_jit as jit
from mixnorm.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    MarginSoftmax,
    MulticlassHinge,
    MultinomialLogistic,
    Squared,
    SquaredHinge,
    _row_jit,
)
from mixnorm.norms import MixedNorm, SchattenNorm

__all__ = [
    "PERCEPTRON",
    "RULES",
    "BlockLearner",
    "Learner",
    "NotFiniteError",
    "Plan",
    "RowLearner",
    "build",
    "by_blocks",
]

#: Step sizes: given, falling with the square root of the rounds, by the gradients seen, or by those
#: of each feature; perceptrons need none, as their predictions do not depend on it.
RULES = {
    "none": jit.NONE,
    "fixed": jit.FIXED,
    "anytime": jit.ANYTIME,
    "adaptive": jit.ADAPTIVE,
    "feature": jit.NONE,
}

#: The loss of perceptrons: one for a mistake.
PERCEPTRON = "perceptron"

_SCALAR: dict[type, int] = {
    Squared: _row_jit.SQUARED,
    Absolute: _row_jit.ABSOLUTE,
    Huber: _row_jit.HUBER,
    EpsilonInsensitive: _row_jit.EPSILON_INSENSITIVE,
    Hinge: _row_jit.HINGE,
    SquaredHinge: _row_jit.SQUARED_HINGE,
    Logistic: _row_jit.LOGISTIC,
}
_JOINT: dict[type, int] = {
    MulticlassHinge: _row_jit.MULTICLASS_HINGE,
    MarginSoftmax: _row_jit.SOFTMAX,
    MultinomialLogistic: _row_jit.SOFTMAX,
}


_SMALLER_SIDE = 256  # of matrices whose singular values come from a Gram matrix


class NotFiniteError(ValueError):
    """A sample holds NaN or infinity; those before it were learned from, and lost so much."""

    def __init__(
        self, row: int, losses: np.ndarray | None = None, wrong: np.ndarray | None = None
    ) -> None:
        self.losses = np.empty(0) if losses is None else losses[:row]
        self.wrong = np.empty(0, dtype=np.int64) if wrong is None else wrong[:row]
        super().__init__(
            f"Row {row} of X contains NaN or infinity; the {row} rows before it were learned from. "
            "Fill such values in (SimpleImputer), or leave the row out."
        )


@dataclass(frozen=True)
class Plan:
    """What a learner does, as opposed to what it has learned.

    Parameters
    ----------
    norm : Norm
        The norm, which must be strongly convex or have a smooth twin.
    losses : sequence
        One joint loss (or :data:`PERCEPTRON`) for labels, or a scalar loss for each output.
    rule : {"none", "fixed", "anytime", "adaptive", "feature"}
        How steps are chosen.
    rate : float
        The step size; the first of falling ones; for ``"adaptive"`` the radius of what is to be
        competed with; for ``"feature"`` about the most that a score moves in the first step.
    radius : float
        Largest norm of the weights.
    scaled : bool
        Divide inputs by the largest seen of their column.
    intercept : bool
        Have a column of ones.
    averaged : bool
        Keep the running average of the weights.
    quiet : float
        Learn only from samples whose derivative in a score exceeds this.
    block : int
        Samples that share their weights, for norms whose mirror map is dear.
    """

    norm: Any
    losses: Sequence[Any]
    rule: str = "adaptive"
    rate: float = 1.0
    radius: float = math.inf
    scaled: bool = False
    intercept: bool = False
    averaged: bool = False
    quiet: float = 0.0
    block: int = 1

    @property
    def joint(self) -> bool:
        """Whether samples bring a class label."""
        loss = self.losses[0]
        return loss == PERCEPTRON or bool(loss.is_classifier)

    def smooth(self, n_features: int, n_outputs: int) -> Any:
        """Return the strongly convex norm to work with, for weights of a shape."""
        norm = self.norm
        if hasattr(norm, "smooth_twin"):
            norm = norm.smooth_twin((n_features, n_outputs))
        if not hasattr(norm, "mirror"):
            raise TypeError(
                f"{self.norm!r} has no mirror map and no smooth twin, which online learning needs; "
                "the norms 'l1,1', 'l2,1', 'l2,2' and 'trace' have one."
            )
        return norm


class Learner(Protocol):
    """What estimators ask of a learner."""

    plan: Plan
    n_features: int
    n_outputs: int
    numbers: np.ndarray

    def learn(
        self, X: Any, labels: np.ndarray, targets: np.ndarray, importance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from samples one after the other; return each one's loss and mistakes."""
        ...

    def weights(self, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        ...

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Make room for more features and outputs, whose weights are zero."""
        ...


class _Account:
    """The numbers that a learner keeps about its rounds."""

    plan: Plan
    numbers: np.ndarray
    norm: Any

    @property
    def rounds(self) -> int:
        """Samples seen."""
        return int(self.numbers[jit.ROUNDS])

    @property
    def mistakes(self) -> int:
        """Samples (or tasks of samples) whose class was predicted wrong."""
        return int(self.numbers[jit.MISTAKES])

    @property
    def updates(self) -> int:
        """Samples that the weights were changed by."""
        return int(self.numbers[jit.UPDATES])

    @property
    def loss(self) -> float:
        """The losses of all samples, each before it was learned from."""
        return float(self.numbers[jit.LOSS])

    def _sums(self) -> np.ndarray:
        """Return minus the sum of gradients, ``(n_columns, n_outputs)``, intercept first."""
        raise NotImplementedError

    def _comparator(self, weights: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def regret(self, weights: np.ndarray) -> float:
        """Return how much more was lost than by fixed weights, at most.

        That is the sum of ``<v_t, w_t - u>`` over the rounds, which is not less than the
        difference of the losses.
        """
        self._check_rule()
        given = self._comparator(weights)
        return float(self.numbers[jit.LINEAR]) + float(np.sum(self._sums() * given))

    def regret_bound(self, weights: np.ndarray) -> float:
        """Return what the theory promises of :meth:`regret`, from the steps that were taken.

        That is ``f(u) / rate_T + sum_t rate_t |v_t|^2 / (2 beta)`` with ``f`` half the squared
        norm, and holds for weights in the ball.
        """
        self._check_rule()
        rate, steps = self._last_step()
        if not rate > 0.0:  # nothing was learned from so far
            return 0.0
        size = float(self.norm.value(self._comparator(weights)))
        return 0.5 * size * size / rate + steps

    def _last_step(self) -> tuple[float, float]:
        """Return the last step size, and the sum of ``rate_t |v_t|^2 / (2 beta)``."""
        return float(self.numbers[jit.LAST_RATE]), float(self.numbers[jit.STEPS])

    def mistake_bound(self, weights: np.ndarray) -> float:
        """Return how many mistakes a perceptron can have made, given weights to compare with.

        With ``a = |W| * max |X| / sqrt(beta)`` that is ``L + a sqrt(L) + a^2``, where ``L`` is what
        the weights lost on the mistakes (at most their hinge loss there).
        """
        if self.plan.losses[0] != PERCEPTRON:
            raise TypeError("Only perceptrons have a mistake bound; ask for the regret bound.")
        given, made = self._comparator(weights), float(self.numbers[jit.UPDATES])
        lost = max(0.0, made - float(np.sum(self._sums() * given)))
        size = float(self.norm.value(given)) * float(self.numbers[jit.LARGEST_GRADIENT])
        factor = size / math.sqrt(self.norm.strong_convexity())
        return lost + factor * math.sqrt(lost) + factor * factor

    def _check_averaged(self) -> None:
        if not self.plan.averaged:
            raise ValueError(
                "average=True was set after learning began, and no average was kept; set it back, "
                "or learn anew."
            )

    def _check_rule(self) -> None:
        if self.plan.rule in ("none", "feature"):
            raise TypeError(
                f"Steps by the rule {self.plan.rule!r} have no regret bound here; 'fixed', "
                "'anytime' and 'adaptive' ones have."
            )


class RowLearner(_Account):
    """A learner whose round costs the entries of the sample that are not zero.

    It takes mixed norms of columns, ``(2, q)``, or of entries, ``(q, q)``.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.norms import MixedNorm
    >>> learner = RowLearner(Plan(MixedNorm(2, 1), [PERCEPTRON], rule="none"), 3, 2)
    >>> X, y = np.eye(3), np.array([0, 1, 1])
    >>> _ = learner.learn(X, y, np.empty((3, 0)), np.ones(3))
    >>> learner.mistakes
    2
    """

    #: The arrays that make the state, with the plan and the sizes.
    stored = ("theta", "image", "total", "column", "outputs", "tree", "numbers")

    def __init__(self, plan: Plan, n_features: int, n_outputs: int) -> None:
        self.plan, self.n_features, self.n_outputs = plan, n_features, n_outputs
        self.norm = plan.smooth(n_features, n_outputs)
        power = self.norm.outer / (self.norm.outer - 1.0)
        kind = jit.ENTRIES if self.norm.inner == self.norm.outer != 2 else jit.COLUMNS
        if plan.rule == "feature":
            if power != 2.0:
                raise ValueError(
                    f"learning_rate='feature' goes with the norm 'l2,2' only, got {plan.norm!r}; "
                    "choose 'adaptive' for this norm."
                )
            if math.isfinite(plan.radius):
                raise ValueError(
                    "learning_rate='feature' has no ball; choose 'adaptive', or leave radius out."
                )
            kind = jit.FEATURES
        ball = math.isfinite(plan.radius)
        sized = kind != jit.FEATURES and plan.rule != "none" and (power != 2.0 or ball)
        self.codes = np.zeros(jit.N_CODES, dtype=np.int64)
        self.codes[jit.KIND], self.codes[jit.RULE] = kind, RULES[plan.rule]
        self.codes[jit.SCALED], self.codes[jit.INTERCEPT] = plan.scaled, plan.intercept
        self.codes[jit.AVERAGED], self.codes[jit.SIZED] = plan.averaged, sized
        self.constants = np.asarray(
            [power, plan.rate, plan.radius, self.norm.strong_convexity(), plan.quiet]
        )
        self.numbers = np.zeros(jit.N_NUMBERS)
        self.numbers[jit.UNIT] = 1.0
        columns = n_features + 1
        self.theta = np.zeros((n_outputs, 0 if kind == jit.FEATURES else columns))
        self.image = np.zeros((n_outputs, 0 if kind == jit.COLUMNS else columns))
        self.total = np.zeros((n_outputs, columns if plan.averaged else 0))
        self.column = self._fresh_columns(columns)
        self.outputs = _fresh_outputs(n_outputs)
        self._set_outputs()
        self._set_tree()

    def _fresh_columns(self, count: int) -> np.ndarray:
        column = np.zeros((jit.N_COLUMN, count))
        column[jit.INVERSE] = 0.0 if self.plan.scaled else 1.0
        column[jit.FACTOR] = 1.0 if self.constants[jit.POWER] == 2.0 else 0.0
        column[jit.SEEN] = self.numbers[jit.CLOCK]
        return column

    def _set_outputs(self) -> None:
        losses = self.plan.losses
        if losses[0] == PERCEPTRON:
            found = [(_row_jit.PERCEPTRON, 0.0)]
        else:
            found = [_compiled_loss(loss) for loss in losses]
        if len(found) == 1:
            found = found * self.n_outputs
        self.loss_codes = np.asarray([code for code, _ in found], dtype=np.int64)
        self.loss_constants = np.asarray([constant for _, constant in found], dtype=np.float64)
        self.codes[jit.OUTPUTS] = self.n_outputs

    def _set_tree(self) -> None:
        """Lay out the tree that sums the columns' powers, and fill it."""
        width = self.column.shape[1]
        levels = [0, width]
        while width > 1:
            width = -(-width // jit.BRANCHES)
            levels.append(levels[-1] + width)
        self.levels = np.asarray(levels, dtype=np.int64)
        self.tree = np.zeros(levels[-1])
        if self.theta.size and np.any(self.theta):
            scratch = np.empty((5, max(self.column.shape[1], self.n_outputs) + 1))
            jit.refresh(
                self.codes, self.constants, self.theta, self.image, self.total, self.column,
                self.tree, self.levels, self.numbers, scratch,
            )  # fmt: skip

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Make room for more features and outputs, whose weights are zero.

        The exponent of a smooth twin grows with them. All bounds go on to hold: a larger one makes
        dual norms smaller.
        """
        rows, columns = self.n_outputs, self.column.shape[1]
        if self.plan.averaged:
            nothing = np.empty(0, dtype=np.int64)
            jit.note_average(
                columns, nothing, self.codes, self.theta, self.image, self.total, self.column,
                self.numbers,
            )  # fmt: skip
        larger = RowLearner(self.plan, n_features, n_outputs)
        larger.numbers = self.numbers
        larger.column[jit.SEEN] = self.numbers[jit.CLOCK]
        larger.outputs[:, :rows] = self.outputs
        for place in (jit.TOP, jit.INVERSE, jit.ENERGY):
            larger.column[place, :columns] = self.column[place]
        names = ("total", "image") if self.plan.rule == "feature" else ("total", "theta")
        for name in names:
            if getattr(self, name).size:
                getattr(larger, name)[:rows, :columns] = getattr(self, name)
        larger._set_tree()
        larger.codes[jit.MODE] = self.codes[jit.MODE]
        self.__dict__.update(vars(larger))

    def learn(
        self, X: Any, labels: np.ndarray, targets: np.ndarray, importance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from samples one after the other; return each one's loss and mistakes.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.
        labels : array of int of shape (n_samples,), or of shape (0,)
            The class of each sample, or for scalar losses the output it speaks of; with none every
            sample speaks of all outputs.
        targets : array of shape (n_samples, n_outputs) or (n_samples, 1)
            The targets of scalar losses, NaN where there is none.
        importance : array of shape (n_samples,)
            What each sample's loss is multiplied by.
        """
        if self.plan.joint:
            self.codes[jit.MODE] = jit.LABELS
        else:
            self.codes[jit.MODE] = jit.TASKS if len(labels) else jit.TARGETS
        losses, wrong = np.empty(X.shape[0]), np.empty(X.shape[0], dtype=np.int64)
        step: Any = jit.learn
        targets = np.require(targets, requirements=["C", "W"])
        importance = np.require(importance, requirements=["C", "W"])
        done = step(*_samples(X), labels, targets, importance, *self.state(), losses, wrong)
        if done < X.shape[0]:
            raise NotFiniteError(done, losses, wrong)
        return losses, wrong

    def state(self) -> tuple[np.ndarray, ...]:
        """Return the arrays that the compiled loop works on."""
        return (
            self.codes, self.constants, self.loss_codes, self.loss_constants, self.theta,
            self.image, self.total, self.column, self.outputs, self.tree, self.levels, self.numbers,
        )  # fmt: skip

    def weights(self, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        matrix = self.theta * self.column[jit.FACTOR] if self.by_columns else self.image
        clock = float(self.numbers[jit.CLOCK])
        if averaged:
            self._check_averaged()
            matrix = self.total + (clock - self.column[jit.SEEN]) * matrix
            scale = 1.0 / max(float(self.numbers[jit.ROUNDS]), 1.0)
        else:
            rate = jit.rate_now(self.codes, self.constants, self.numbers)
            scale = jit.scale_now(rate, self.codes, self.constants, self.tree, self.numbers)
        matrix = matrix * (scale * self.column[jit.INVERSE])
        return matrix[:, 1:], matrix[:, 0] * self.codes[jit.INTERCEPT]

    @property
    def by_columns(self) -> bool:
        """Whether weights come from the sums of gradients by a factor for each column."""
        return bool(self.codes[jit.KIND] == jit.COLUMNS)

    def _sums(self) -> np.ndarray:
        return self.theta.T

    def _comparator(self, weights: np.ndarray) -> np.ndarray:
        """Return weights in units of scaled inputs, with a row for the intercept, which is zero."""
        weights = np.asarray(weights, dtype=np.float64).reshape(self.n_outputs, -1)
        missing = self.column.shape[1] - weights.shape[1]
        full = np.concatenate([np.zeros((self.n_outputs, missing)), weights], axis=1)
        tops = self.column[jit.TOP] if self.plan.scaled else np.ones(self.column.shape[1])
        return np.asarray((full * tops).T)


class BlockLearner(_Account):
    """A learner for any norm with a mirror map, whose weights are computed once for a block.

    The samples of a block are predicted by the same weights, and their gradients make one step: for
    the theory the block is a round whose loss is the sum of theirs.
    """

    #: The arrays that make the state, with the plan and the sizes.
    stored = ("theta", "top", "total", "pending", "waiting", "played", "numbers")

    def __init__(self, plan: Plan, n_features: int, n_outputs: int) -> None:
        if plan.rule == "feature":
            raise ValueError(
                f"learning_rate='feature' goes with the norm 'l2,2' only, got {plan.norm!r}; "
                "choose 'adaptive' for this norm."
            )
        self.plan, self.n_features, self.n_outputs = plan, n_features, n_outputs
        self.norm = _with_intercept(plan.smooth(n_features, n_outputs))
        self.numbers = np.zeros(jit.N_NUMBERS)
        self.theta = np.zeros((n_outputs, n_features + 1))
        self.top = np.zeros(n_features + 1)
        self.total = np.zeros((n_outputs, n_features + 1) if plan.averaged else (0, 0))
        self.pending = np.zeros_like(self.theta)
        self.waiting = np.zeros(1, dtype=np.int64)
        self.played = np.zeros_like(self.theta)

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Make room for more features and outputs, whose weights are zero."""
        more, others = n_features - self.n_features, n_outputs - self.n_outputs
        groups = getattr(self.norm, "groups", None)
        if groups is not None and not isinstance(groups, str) and (more or groups.ndim == 2):
            raise ValueError(
                f"{self.plan.norm!r} has a group for each feature it knows of, and there are new "
                "ones; give all classes and features in the first call."
            )
        for name in ("theta", "total", "pending", "played"):
            array = getattr(self, name)
            if array.size or name != "total":
                setattr(self, name, np.pad(array, ((0, others), (0, more))))
        self.top = np.pad(self.top, (0, more))
        self.n_features, self.n_outputs = n_features, n_outputs
        self.norm = _with_intercept(self.plan.smooth(n_features, n_outputs))

    def learn(
        self, X: Any, labels: np.ndarray, targets: np.ndarray, importance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from samples one after the other; see :meth:`RowLearner.learn`."""
        n_samples = X.shape[0]
        losses, wrong = np.empty(n_samples), np.zeros(n_samples, dtype=np.int64)
        start = 0
        while start < n_samples:
            stop = start + max(1, self.plan.block - int(self.waiting[0]))
            rows: Any = X[start:stop]
            rows = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, np.float64)
            count = self._alike(rows)
            if count == 0:
                raise NotFiniteError(start, losses, wrong)
            stop = start + count
            part = slice(start, stop)
            inputs = self._inputs(rows[:count])
            losses[part], wrong[part], gradient = self._suffer(
                inputs, labels[part] if len(labels) else labels, targets[part], importance[part]
            )
            self.pending += gradient
            self.waiting[0] += stop - start
            if int(self.waiting[0]) >= self.plan.block:
                self._step()
            start = stop
        return losses, wrong

    def learn_together(
        self, X: np.ndarray, targets: np.ndarray, importance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from samples that have an input for each output, ``(n_samples, n_outputs, d)``."""
        losses, wrong = np.empty(len(X)), np.zeros(len(X), dtype=np.int64)
        nothing = np.empty(0, dtype=np.int64)
        for i, rows in enumerate(X):
            if not np.all(np.isfinite(rows[~np.isnan(targets[i])])):
                raise NotFiniteError(i, losses, wrong)
            inputs = self._inputs(np.where(np.isnan(targets[i])[:, None], 0.0, rows))
            scores = np.einsum("rj,rj->r", inputs, self.played)[None, :]
            loss, missed, residual = self._judge(scores, nothing, targets[i : i + 1])
            residual = self._note(loss, missed, residual, scores, importance[i : i + 1])
            losses[i], wrong[i] = loss[0], missed[0]
            self.pending += residual.T * inputs
            self.waiting[0] += 1
            if int(self.waiting[0]) >= self.plan.block:
                self._step()
        return losses, wrong

    def _alike(self, rows: np.ndarray) -> int:
        """Return how many rows there are before one that is not finite, or changes the scale."""
        finite = np.all(np.isfinite(rows), axis=1)
        count = len(rows) if np.all(finite) else int(np.argmin(finite))
        if self.plan.scaled and count > 1:
            top = np.maximum(self.top[1:], np.abs(rows[0]))
            larger = np.any(np.abs(rows[1:count]) > top, axis=1)
            count = 1 + int(np.argmax(larger)) if np.any(larger) else count
        return count

    def _inputs(self, rows: np.ndarray) -> np.ndarray:
        """Return inputs with a column of ones, divided by the largest seen."""
        ones = np.full((len(rows), 1), float(self.plan.intercept))
        inputs = np.concatenate([ones, rows], axis=1)
        if not self.plan.scaled:
            return inputs
        largest = np.maximum(np.max(np.abs(inputs), axis=0), self.top)
        grown = (largest > self.top) & (self.top > 0.0)
        if np.any(grown):
            part = np.where(grown, self.top / np.where(largest > 0.0, largest, 1.0), 1.0)
            self.theta *= part
            self.pending *= part
            self.played = self._weights_now()
        self.top = largest
        return np.asarray(inputs / np.where(largest > 0.0, largest, 1.0))

    def _suffer(
        self, inputs: np.ndarray, labels: np.ndarray, targets: np.ndarray, importance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return losses, mistakes and the sum of gradients of samples, and note them."""
        scores = inputs @ self.played.T
        losses, wrong, residual = self._judge(scores, labels, targets)
        residual = self._note(losses, wrong, residual, scores, importance)
        return losses, wrong, residual.T @ inputs

    def _note(
        self,
        losses: np.ndarray,
        wrong: np.ndarray,
        residual: np.ndarray,
        scores: np.ndarray,
        importance: np.ndarray,
    ) -> np.ndarray:
        """Note what samples cost; return their derivatives, weighted."""
        residual = residual * importance[:, None]
        residual[np.max(np.abs(residual), axis=1, initial=0.0) <= self.plan.quiet] = 0.0
        numbers = self.numbers
        numbers[jit.ROUNDS] += len(losses)
        numbers[jit.MISTAKES] += int(np.sum(wrong))
        numbers[jit.LOSS] += float(np.sum(losses * importance))
        numbers[jit.UPDATES] += int(np.sum(np.any(residual != 0.0, axis=1)))
        numbers[jit.LINEAR] += float(np.sum(residual * scores))
        if self.plan.averaged:
            self.total += len(losses) * self.played
        return residual

    def _judge(
        self, scores: np.ndarray, labels: np.ndarray, targets: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return losses, mistakes and derivatives of samples, which are few, one by one."""
        n_samples = len(scores)
        losses, residual = np.zeros(n_samples), np.zeros_like(scores)
        wrong = np.zeros(n_samples, dtype=np.int64)
        joint = self.plan.joint
        code, constant = _joint_code(self.plan.losses[0]) if joint else (0, 0.0)
        for i in range(n_samples):
            if joint:
                wrong[i] = _row_jit.best_class(scores[i]) != labels[i]
                losses[i] = _row_jit.label_loss(code, constant, scores[i], labels[i], residual[i])
                continue
            outputs = range(self.n_outputs) if len(labels) == 0 else [int(labels[i])]
            for r in outputs:
                loss = self.plan.losses[r if len(self.plan.losses) > 1 else 0]
                target = float(targets[i, r if len(labels) == 0 else 0])
                if math.isnan(target):
                    continue
                code, constant = _compiled_loss(loss)
                own, residual[i, r] = _row_jit.number_loss(code, constant, scores[i, r], target)
                losses[i] += own
                if code >= _row_jit.HINGE:
                    wrong[i] += int(scores[i, r] * target <= 0.0)
        return losses, wrong, residual

    def step(self, gradient: np.ndarray) -> None:
        """Learn from a gradient of any kind, ``(n_outputs, n_features + 1)``."""
        self.pending += gradient
        self._step()

    def _last_step(self) -> tuple[float, float]:
        """Return step size and sum, with the step of a block that is not full."""
        rate, steps = super()._last_step()
        if not np.any(self.pending):
            return rate, steps
        size = _dual_norm(self.norm, self.pending)
        rate = self._rate(int(self.numbers[jit.INPUTS]), size)
        return rate, steps + rate * size * size / (2.0 * float(self.norm.strong_convexity()))

    def _step(self) -> None:
        numbers, pending = self.numbers, self.pending
        size = _dual_norm(self.norm, pending) if np.any(pending) else 0.0
        if size > 0.0:
            rate = self._rate(int(numbers[jit.INPUTS]), size)
            if numbers[jit.FIRST] == 0.0:
                numbers[jit.FIRST] = size * size
            convexity = float(self.norm.strong_convexity())
            numbers[jit.STEPS] += rate * size * size / (2.0 * convexity)
            numbers[jit.SQUARES] += size * size
            numbers[jit.LARGEST_GRADIENT] = max(numbers[jit.LARGEST_GRADIENT], size)
            numbers[jit.LAST_RATE] = rate
            self.theta -= pending
        numbers[jit.INPUTS] += 1.0  # steps, which is what rates go by
        self.pending = np.zeros_like(pending)
        self.waiting = np.zeros(1, dtype=np.int64)
        self.played = self._weights_now()

    def _rate(self, steps: int, size: float = 0.0) -> float:
        """Return the step size after so many steps; ``size`` is that of the gradient, if known."""
        plan, numbers = self.plan, self.numbers
        if plan.rule == "anytime":
            return plan.rate / math.sqrt(steps + 1.0)
        if plan.rule == "adaptive":
            seen = float((numbers[jit.FIRST] or size * size) + numbers[jit.SQUARES])
            if not seen > 0.0:
                return 0.0
            return plan.rate * math.sqrt(float(self.norm.strong_convexity()) / seen)
        return plan.rate

    def _weights_now(self) -> np.ndarray:
        """Return the weights of the next block, in units of scaled inputs."""
        if not np.any(self.theta):
            return np.zeros_like(self.theta)
        rate = self._rate(int(self.numbers[jit.INPUTS]))
        found = rate * _mirrored(self.norm, self.theta)
        if math.isfinite(self.plan.radius):
            size = float(self.norm.value(found.T))
            if size > self.plan.radius:
                found *= self.plan.radius / size
        return np.ascontiguousarray(found)

    def weights(self, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        matrix = self.played
        if averaged:
            self._check_averaged()
            matrix = self.total / max(float(self.numbers[jit.ROUNDS]), 1.0)
        if self.plan.scaled:
            matrix = np.where(self.top > 0.0, matrix / np.where(self.top > 0.0, self.top, 1.0), 0.0)
        return matrix[:, 1:], matrix[:, 0] * self.plan.intercept

    def _sums(self) -> np.ndarray:
        return (self.theta - self.pending).T

    def _comparator(self, weights: np.ndarray) -> np.ndarray:
        weights = np.asarray(weights, dtype=np.float64).reshape(self.n_outputs, -1)
        missing = self.theta.shape[1] - weights.shape[1]
        full = np.concatenate([np.zeros((self.n_outputs, missing)), weights], axis=1)
        return np.asarray((full * (self.top if self.plan.scaled else 1.0)).T)


def by_blocks(learner: RowLearner) -> BlockLearner:
    """Return a learner of the other kind that goes on where one by rows stopped."""
    if learner.plan.rule == "feature":
        raise ValueError(
            "learning_rate='feature' cannot go with an input for each task; choose 'adaptive'."
        )
    other = BlockLearner(learner.plan, learner.n_features, learner.n_outputs)
    other.norm, other.numbers = learner.norm, learner.numbers.copy()
    other.numbers[jit.INPUTS] = learner.numbers[jit.ROUNDS]
    other.theta, other.top = learner.theta.copy(), learner.column[jit.TOP].copy()
    if learner.plan.averaged:
        matrix = learner.theta * learner.column[jit.FACTOR] if learner.by_columns else learner.image
        passed = learner.numbers[jit.CLOCK] - learner.column[jit.SEEN]
        other.total = learner.total + passed * matrix
    other.played = other._weights_now()
    return other


def _mirrored(norm: Any, theta: np.ndarray) -> np.ndarray:
    """Return the mirror map of a matrix that has a row per output.

    For Schatten norms the singular values come from the Gram matrix of the smaller side: what that
    loses is singular values below 1e-8 of the largest, which count for nothing here.
    """
    if not isinstance(norm, SchattenNorm) or norm.q == 2 or min(theta.shape) > _SMALLER_SIDE:
        return np.asarray(norm.mirror(theta.T)).T
    wide = theta.shape[0] <= theta.shape[1]
    squares, vectors = np.linalg.eigh(theta @ theta.T if wide else theta.T @ theta)
    values = np.sqrt(np.maximum(squares, 0.0))
    power = norm.q / (norm.q - 1.0)
    top = float(values[-1])
    relative = values / top
    scale = float(np.sum(relative**power)) ** (2.0 / power - 1.0)
    turned = (vectors * (scale * relative ** (power - 2.0))) @ vectors.T
    return np.asarray(turned @ theta if wide else theta @ turned)


def _dual_norm(norm: Any, gradient: np.ndarray) -> float:
    """Return the dual norm of a matrix that has a row per output."""
    if not isinstance(norm, SchattenNorm) or norm.q == 2 or min(gradient.shape) > _SMALLER_SIDE:
        return float(norm.dual(gradient.T))
    wide = gradient.shape[0] <= gradient.shape[1]
    gram = gradient @ gradient.T if wide else gradient.T @ gradient
    squares = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    power, top = norm.q / (norm.q - 1.0), float(np.sqrt(squares[-1]))
    if not top > 0.0:
        return 0.0
    return float(top * np.sum((np.sqrt(squares) / top) ** power) ** (1.0 / power))


def _with_intercept(norm: Any) -> Any:
    """Return a norm with a group more, in front, where features have groups."""
    groups = getattr(norm, "groups", None)
    if groups is None or isinstance(groups, str):
        return norm
    labels = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(np.shape(groups))
    own = np.full((1, *labels.shape[1:]), int(np.max(labels, initial=-1)) + 1)
    return MixedNorm(norm.inner, norm.outer, np.concatenate([own, labels]))


def _fresh_outputs(count: int) -> np.ndarray:
    outputs = np.ones((jit.N_OUTPUTS, count))
    outputs[jit.SEEN_BEFORE] = 0.0
    return outputs


def build(plan: Plan, n_features: int, n_outputs: int) -> Any:
    """Return the learner for a plan: by rows where the norm allows it."""
    norm = plan.smooth(n_features, n_outputs)
    plain = isinstance(norm, MixedNorm) and norm.groups is None
    return (RowLearner if plain else BlockLearner)(plan, n_features, n_outputs)


def _samples(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return samples as the compiled loop takes them."""
    if sparse.issparse(X):
        rows: Any = X
        empty = np.empty((0, 0), dtype=rows.data.dtype)
        data = np.require(rows.data, requirements=["C", "W"])
        return empty, rows.indptr.astype(np.int64), rows.indices.astype(np.int64), data
    # Arrays that cannot be written to would have the loop compiled once more.
    dense = np.require(X, requirements=["C", "W"])
    nothing = np.zeros(1, dtype=np.int64)
    return dense, nothing, nothing[:0], np.empty(0, dtype=dense.dtype)


def _joint_code(loss: Any) -> tuple[int, float]:
    if loss == PERCEPTRON:
        return _row_jit.PERCEPTRON, 0.0
    return _compiled_loss(loss)


def _compiled_loss(loss: Any) -> tuple[int, float]:
    """Return the code of a loss, and its constant."""
    for kinds in (_SCALAR, _JOINT):
        for kind, code in kinds.items():
            if type(loss) is kind:  # a class derived from it may be another loss
                names = ("delta", "epsilon", "margin")
                constant = next((getattr(loss, name) for name in names if hasattr(loss, name)), 0.0)
                return code, float(constant)
    raise TypeError(
        f"{loss!r} is not known to online learning; choose one of "
        f"{sorted(kind.__name__ for kind in (*_SCALAR, *_JOINT))} of mixnorm.losses."
    )
