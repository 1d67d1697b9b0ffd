"""Online learners whose rounds cost the entries of the sample that are not zero."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from mixnorm.engines import _mirror_jit as jit
from mixnorm.engines._mirror_plan import (
    ORIGINS,
    PERCEPTRON,
    RULES,
    Account,
    NotFiniteError,
    Plan,
    compiled_loss,
)
from mixnorm.engines._vectors_jit import BRANCHES
from mixnorm.losses import _row_jit

_BLOCK = 1 << 16  # entries of samples that are handed to the compiled loop at once


class RowLearner(Account):
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
        self.codes[jit.ORIGIN] = ORIGINS[plan.origin] if plan.scaled else jit.ZERO
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
        column[jit.TOP, 0] = column[jit.INVERSE, 0] = 1.0  # the intercept's
        column[jit.FACTOR] = 1.0 if self.constants[jit.POWER] == 2.0 else 0.0
        column[jit.SEEN] = self.numbers[jit.CLOCK]
        return column

    def _set_outputs(self) -> None:
        losses = self.plan.losses
        if losses[0] == PERCEPTRON:
            found = [(_row_jit.PERCEPTRON, 0.0)]
        else:
            found = [compiled_loss(loss) for loss in losses]
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
            width = -(-width // BRANCHES)
            levels.append(levels[-1] + width)
        self.levels = np.asarray(levels, dtype=np.int64)
        self.tree = np.zeros(levels[-1])
        if self.theta.size and np.any(self.theta):
            scratch = np.empty((jit.N_SCRATCH, max(self.column.shape[1], self.n_outputs) + 1))
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
                columns, nothing, self.codes, self.sums, self.image, self.total, self.column,
                self.numbers,
            )  # fmt: skip
        larger = RowLearner(self.plan, n_features, n_outputs)
        larger.numbers = self.numbers
        larger.column[jit.SEEN] = self.numbers[jit.CLOCK]
        larger.outputs[:, :rows] = self.outputs
        kept = (jit.TOP, jit.INVERSE, jit.ENERGY, jit.MEAN, jit.MARK, jit.KNOWN, jit.PRESENT)
        for place in kept:
            larger.column[place, :columns] = self.column[place]
        names = ("total", "image") if self.plan.rule == "feature" else ("total", "theta")
        for name in names:
            if getattr(self, name).size:
                getattr(larger, name)[:rows, :columns] = getattr(self, name)
        larger._set_tree()
        larger.codes[jit.MODE] = self.codes[jit.MODE]
        self.__dict__.update(vars(larger))

    def learn(
        self,
        X: Any,
        labels: np.ndarray,
        targets: np.ndarray,
        importance: np.ndarray,
        order: np.ndarray | None = None,
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
            How many times each sample counts.
        order : array of int of shape (n_samples,), optional
            The order in which samples come.

        Returns
        -------
        losses, wrong : arrays of shape (n_samples,)
            Weighted losses, and mistakes, as samples came.
        """
        if self.plan.joint:
            self.codes[jit.MODE] = jit.LABELS
        else:
            self.codes[jit.MODE] = jit.TASKS if len(labels) else jit.TARGETS
        losses, wrong = np.zeros(X.shape[0]), np.zeros(X.shape[0], dtype=np.int64)
        labels, targets, importance = in_order(order, labels, targets, importance)
        step: Any = jit.learn
        for rows in _blocks(X):
            done = step(
                *self._samples(X[rows if order is None else order[rows]]), labels[rows],
                targets[rows], importance[rows], *self.state(), losses[rows], wrong[rows],
            )  # fmt: skip
            if done < len(losses[rows]):
                raise NotFiniteError(rows.start + done, losses, wrong, order)
        return losses, wrong

    def _samples(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return a block of samples as the compiled loop takes them: one kind of array for all."""
        if sparse.issparse(X) and self.codes[jit.ORIGIN] != jit.MEANS:
            rows: Any = X
            data = np.require(rows.data, np.float64, requirements=["C", "W", "E"])
            return np.empty((0, 0)), *(
                np.require(each, np.int64, requirements=["C", "W", "E"])
                for each in (rows.indptr, rows.indices)
            ), data  # fmt: skip
        whole: Any = X.toarray() if sparse.issparse(X) else X
        nothing = np.zeros(1, dtype=np.int64)
        dense = np.require(whole, np.float64, requirements=["C", "W", "E"])
        return dense, nothing, nothing[:0], np.empty(0)

    @property
    def sums(self) -> np.ndarray | None:
        """The sums of gradients, where weights come from them."""
        return None if self.codes[jit.KIND] == jit.FEATURES else self.theta

    def state(self) -> tuple[Any, ...]:
        """Return the arrays that the compiled loop works on."""
        return (
            self.codes, self.constants, self.loss_codes, self.loss_constants, self.sums,
            self.image, self.total, self.column, self.outputs, self.tree, self.levels, self.numbers,
        )  # fmt: skip

    def weights(self, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        matrix = self.theta * self.column[jit.FACTOR] if self.by_columns else self.image
        clock = float(self.numbers[jit.CLOCK])
        if averaged:
            self._check_averaged()
            matrix = self.total + (clock - self.column[jit.SEEN]) * matrix
            scale = 1.0 / (float(self.numbers[jit.WEIGHT]) or 1.0)
            offset = scale * self.outputs[jit.OFFSETS]
        else:
            offset = self.outputs[jit.OFFSET]
            rate = jit.rate_now(self.codes, self.constants, self.numbers)
            scale = jit.scale_now(rate, self.codes, self.constants, self.tree, self.numbers)
        matrix = matrix * (scale * self.column[jit.INVERSE])
        weights = matrix[:, 1:]
        intercept = matrix[:, 0] * self.codes[jit.INTERCEPT] + offset + self.outputs[jit.BASE]
        return weights, intercept - weights @ self.column[jit.MEAN, 1:]

    @property
    def by_columns(self) -> bool:
        """Whether weights come from the sums of gradients by a factor for each column."""
        return bool(self.codes[jit.KIND] == jit.COLUMNS)

    def _sums(self) -> np.ndarray:
        return self.theta.T


def _fresh_outputs(count: int) -> np.ndarray:
    outputs = np.zeros((jit.N_OUTPUTS, count))
    outputs[[jit.STEEPEST, jit.FARTHEST]] = 1.0
    return outputs


def in_order(order: np.ndarray | None, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return arrays of samples in an order, as the compiled loop takes them."""
    if order is not None:
        arrays = tuple(each[order] if len(each) else each for each in arrays)
    return [np.require(each, requirements=["C", "W", "E"]) for each in arrays]


def _blocks(X: Any) -> Iterator[slice]:
    """Yield the rows of blocks small enough that a copy of one does not matter."""
    n_samples = X.shape[0]
    entries = X.nnz if sparse.issparse(X) else X.size
    count = max(1, _BLOCK * n_samples // max(entries, 1))
    for start in range(0, n_samples, count):
        yield slice(start, min(start + count, n_samples))
