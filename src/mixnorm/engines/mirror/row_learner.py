"""Online learners whose rounds cost one pass over the entries of the sample that are not zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixnorm._array import to_dense
from mixnorm._chunks import chunks
from mixnorm.engines.mirror import layout, single_jit, sums_jit
from mixnorm.engines.mirror import rows_jit as jit
from mixnorm.engines.mirror.plan import (
    ORIGINS,
    RULES,
    OnlineLearner,
    Plan,
    Rows,
    make_plain,
    row_code,
    row_constants,
    rule_error,
)
from mixnorm.engines.mirror.vectors_jit import BRANCHES

# Operations of the compiled loop for each entry of a sample, with hundreds of outputs. A rough
# number is enough: it decides how many samples one call takes before an interrupt gets through.
_OPERATIONS_PER_ENTRY = 1 << 10
# Binary logarithm of the smallest unit: its inverse and its square must be normal numbers.
_LEAST_UNIT_EXPONENT = -500.0


class RowLearner(OnlineLearner):
    """A learner whose rounds cost one pass over the entries of the sample that are not zero.

    It works with mixed norms of columns, ``(2, q)``, or of entries, ``(q, q)``
    (:eq:`mirror-columns`).

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.engines.mirror import PERCEPTRON
    >>> from mixnorm.norms import MixedNorm
    >>> learner = RowLearner(Plan(MixedNorm(2, 1), [PERCEPTRON], rule="none"), 3, 2)
    >>> X, y = np.eye(3), np.array([0, 1, 1])
    >>> _ = learner.learn(X, y, np.empty((3, 0)), np.ones(3))
    >>> learner.mistakes
    2
    """

    stored = ("theta", "image", "total", "column", "outputs", "tree", "numbers")

    #: The arrays to learn from single rows with; None until the caller makes them.
    workspace: RowWorkspace | None = None

    def __init__(self, plan: Plan, n_features: int, n_outputs: int) -> None:
        self.plan, self.n_features, self.n_outputs = plan, n_features, n_outputs
        self.norm = plan.smooth(n_features, n_outputs)
        # The dual exponent p of :eq:`mirror-columns`. A norm (2, 2) is one of columns and of
        # entries; as one of columns its factors are all one and nothing has to be raised to a
        # power.
        power = self.norm.outer / (self.norm.outer - 1.0)
        kind = layout.ENTRIES if self.norm.inner == self.norm.outer != 2 else layout.COLUMNS
        if plan.rule == "feature":
            if power != 2.0:
                raise rule_error(plan.norm)
            if math.isfinite(plan.radius):
                raise ValueError(
                    "learning_rate='feature' has no ball; choose 'adaptive', or leave radius out."
                )
            kind = layout.FEATURES
        ball = math.isfinite(plan.radius)
        # The common factor of the weights needs the norm of all sums, kept in a tree. Perceptrons
        # do not need it, as it does not change which class is best; neither does p = 2 without a
        # ball.
        sized = kind != layout.FEATURES and plan.rule != "none" and (power != 2.0 or ball)
        self.codes = np.zeros(layout.N_CODES, dtype=np.int64)
        self.codes[layout.KIND], self.codes[layout.RULE] = kind, RULES[plan.rule]
        self.codes[layout.SCALED], self.codes[layout.INTERCEPT] = plan.scaled, plan.intercept
        self.codes[layout.AVERAGED], self.codes[layout.SIZED] = plan.averaged, sized
        self.codes[layout.ORIGIN] = ORIGINS[plan.origin] if plan.scaled else layout.ZERO
        self.constants = np.asarray(
            [power, plan.rate, plan.radius, self.norm.strong_convexity(), plan.quiet]
        )
        self.numbers = np.zeros(layout.N_NUMBERS)
        self.numbers[layout.UNIT] = 1.0
        # Arrays that a kind does not use have no columns. They must exist, as the loop takes them.
        columns = n_features + 1
        self.theta = np.zeros((n_outputs, 0 if kind == layout.FEATURES else columns))
        self.image = np.zeros((n_outputs, 0 if kind == layout.COLUMNS else columns))
        self.total = np.zeros((n_outputs, columns if plan.averaged else 0))
        self.column = np.zeros((layout.N_COLUMN, columns))
        self.column[layout.INVERSE] = 0.0 if plan.scaled else 1.0
        self.column[layout.TOP, 0] = self.column[layout.INVERSE, 0] = 1.0  # the intercept's
        self.column[layout.FACTOR] = 1.0 if power == 2.0 else 0.0
        self.outputs = np.zeros((layout.N_OUTPUTS, n_outputs))
        self.outputs[[layout.STEEPEST, layout.FARTHEST]] = 1.0
        # The loop looks the loss of an output up in a table, also where all are the same.
        losses = [*plan.losses] * (n_outputs if len(plan.losses) == 1 else 1)
        self.loss_codes = np.asarray([row_code(loss) for loss in losses], dtype=np.int64)
        self.loss_constants = np.array([row_constants(loss) for loss in losses], ndmin=2)
        self.codes[layout.OUTPUTS] = n_outputs
        self._set_tree()

    def _set_tree(self) -> None:
        """Make the tree that sums the powers of the columns, and fill it.

        Its levels lie one after the other in one array, the leaves first. ``levels`` has where each
        begins, and the last entry of the tree is the sum of all.
        """
        width = self.column.shape[1]
        levels = [0, width]
        while width > 1:
            width = -(-width // BRANCHES)
            levels.append(levels[-1] + width)
        self.levels = np.asarray(levels, dtype=np.int64)
        self.tree = np.zeros(levels[-1])
        if self.theta.size and np.any(self.theta):
            self._derive()

    def enlarge(self, n_features: int, n_outputs: int, losses: Sequence[Any] = ()) -> RowLearner:
        """Return the learner with room for more features and outputs, whose weights are zero.

        The exponent of a surrogate norm grows with them. All bounds still hold, because a larger
        exponent makes dual norms smaller. ``losses`` has a loss for each output if they differ.
        The learner itself must not be used afterwards.
        """
        columns = self.column.shape[1]
        # The average is brought up to date first: the factors of all columns change below.
        self._note_average()
        plan = replace(self.plan, losses=losses or self.plan.losses)
        larger = RowLearner(plan, n_features, n_outputs)
        larger.numbers = self.numbers  # shared, hence the warning above
        larger.column[layout.SEEN] = self.numbers[layout.CLOCK]
        for place in set(range(layout.N_COLUMN)) - {layout.FACTOR, layout.SEEN}:
            larger.column[place, :columns] = self.column[place]
        # Factors, images and the tree follow from the sums, under the new exponent.
        sums = "image" if plan.rule == "feature" else "theta"
        copy_corners(self, larger, ("total", "outputs", sums))
        larger._set_tree()
        larger.codes[layout.MODE] = self.codes[layout.MODE]
        return larger

    def _learn(self, X: Rows, order: np.ndarray | None, *samples: np.ndarray) -> int:
        if self.plan.joint:
            self.codes[layout.MODE] = layout.LABELS
        else:
            self.codes[layout.MODE] = layout.TASKS if len(samples[0]) else layout.TARGETS
        joint = True if self.plan.joint else None
        step: Any = jit.learn  # untyped, as compiled functions are
        index, scratch = self.room()
        arrays, place = (*self.arrays(), index, scratch), index[layout.I_PLACE]
        entries = X.size if isinstance(X, np.ndarray) else X.nnz
        for rows in chunks(X.shape[0], _OPERATIONS_PER_ENTRY * -(-entries // max(1, X.shape[0]))):
            labels, targets, importance, *found = (each[rows] for each in samples)
            block = self._samples(X[rows if order is None else order[rows]])
            given = (labels, joint, None if joint else targets, importance)
            place[:] = 0
            done: int = step(*block, *given, *arrays, *found)
            while place[layout.EVENT]:
                self.catch_up(place)
                done = step(*block, *given, *arrays, *found)
            if done < len(importance):
                return rows.start + done
        return X.shape[0]

    def _samples(self, X: Rows) -> tuple[np.ndarray, ...]:
        """Return a block of samples as the compiled loop takes them: one kind of array for all."""
        # numba compiles for each combination of types. Samples of the kind that is not in use are
        # empty arrays of the same type, so that the loop is compiled once. With means as the origin
        # a zero is a distance like any other, and sparse samples become dense.
        if not isinstance(X, np.ndarray) and self.codes[layout.ORIGIN] != layout.MEANS:
            ends, places = (make_plain(each, np.int64) for each in (X.indptr, X.indices))
            return np.empty((0, 0)), ends, places, make_plain(X.data, np.float64)
        whole = to_dense(X)
        nothing = np.zeros(1, dtype=np.int64)
        return make_plain(whole, np.float64), nothing, nothing[:0], np.empty(0)

    def catch_up(self, place: np.ndarray) -> None:
        """Do the rare work that the compiled loop waits for."""
        if place[layout.EVENT] == layout.OUTGROWN:
            self._derive()
        else:  # a clock that has run long would lose digits
            self._note_average()
            self.numbers[layout.CLOCK] = 0.0
            self.column[layout.SEEN] = 0.0
        place[layout.EVENT] = 0

    def _note_average(self) -> None:
        """Add the weights of all columns since their last change to the sums, if there are any."""
        if self.plan.averaged:
            sums_jit.note_average(
                self.column.shape[1], np.empty(0, dtype=np.int64), self.codes, self.matrix,
                self.total, self.column, self.numbers,
            )  # fmt: skip

    def _derive(self) -> None:
        """Compute all that is derived from the sums, in a unit of about their size."""
        self._note_average()
        largest, unit = float(np.max(np.abs(self.theta), initial=0.0)), self.numbers[layout.UNIT]
        if 0.0 < largest < math.inf:
            exponent = max(_LEAST_UNIT_EXPONENT, math.ceil(math.log2(largest)))
            self.numbers[layout.UNIT] = 2.0**exponent
            # Perceptrons leave the common factor out, so that their weights are in powers of the
            # unit. What was summed in the old one is carried over.
            if self.plan.averaged and self.plan.rule == "none":
                entries = self.codes[layout.KIND] == layout.ENTRIES
                lift = float(self.constants[layout.POWER]) - (1.0 if entries else 2.0)
                with np.errstate(over="ignore"):
                    part = (unit / self.numbers[layout.UNIT]) ** lift
                    # The part may be infinite, and times zero would be NaN.
                    np.multiply(self.total, part, out=self.total, where=self.total != 0.0)
        codes, constants, _, _, theta, image, _, _, _, column, _, *sizes = self.arrays()
        sums_jit.derive(
            column.shape[1], np.empty(0, dtype=np.int64), codes, constants, theta, image, column,
            *sizes, self.room()[1],
        )  # fmt: skip

    @property
    def matrix(self) -> np.ndarray:
        """The matrix that weights are a multiple of, but for factors of the columns."""
        return self.theta if self.codes[layout.KIND] == layout.COLUMNS else self.image

    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays that the compiled loop works on; None for those without a use."""
        kind, marked = self.codes[layout.KIND], self.codes[layout.ORIGIN] == layout.MARKED
        return (
            self.codes, self.constants, self.loss_codes, self.loss_constants,
            None if kind == layout.FEATURES else self.theta,
            None if kind == layout.COLUMNS else self.image,
            True if kind == layout.FEATURES else None,
            True if marked else None,
            self.total, self.column, self.outputs, self.tree, self.levels, self.numbers,
        )  # fmt: skip

    def room(self) -> tuple[np.ndarray, np.ndarray]:
        """Return arrays to work in, of whole numbers and of others."""
        columns = self.column.shape[1]
        return (
            np.zeros((layout.N_INDEX, columns + 4), dtype=np.int64),
            np.empty((layout.N_SCRATCH, max(columns, self.n_outputs) + 1)),
        )

    def weights(self, averaged: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return weights ``(n_outputs, n_features)`` and intercepts, in units of the inputs."""
        matrix = self.directions()
        clock = float(self.numbers[layout.CLOCK])
        if averaged:
            self._check_averaged()
            # Columns that have not changed since ``SEEN`` add their present weights for each round.
            matrix = self.total + (clock - self.column[layout.SEEN]) * matrix
            scale = 1.0 / (float(self.numbers[layout.WEIGHT]) or 1.0)
            offset = scale * self.outputs[layout.OFFSETS]
        else:
            rate = sums_jit.rate_now(self.codes, self.constants, self.numbers)
            offset = rate * self.outputs[layout.OFFSET]
            scale = 1.0
            if self.codes[layout.KIND] != layout.FEATURES:
                scale = sums_jit.scale_now(
                    rate, self.codes, self.constants, self.tree, self.numbers
                )
        matrix = matrix * (scale * self.column[layout.INVERSE])
        weights = matrix[:, 1:]
        intercept = matrix[:, 0] * self.codes[layout.INTERCEPT] + offset + self.outputs[layout.BASE]
        return weights, intercept - weights @ self.column[layout.MEAN, 1:]

    def directions(self) -> np.ndarray:
        """Return the weights of scaled inputs, up to a common factor."""
        if self.codes[layout.KIND] == layout.COLUMNS:
            return np.asarray(self.theta * self.column[layout.FACTOR])
        return self.image

    def mark(self, places: Sequence[int]) -> None:
        """Mark features whose value is unknown if a row does not have them (origin "marked")."""
        self.column[layout.MARK, np.asarray(places, dtype=np.int64) + 1] = 1.0

    def means_of_marked(self) -> np.ndarray:
        """Return the mean of each marked feature, and zero for the others."""
        return np.asarray(self.column[layout.MEAN, 1:] * self.column[layout.MARK, 1:])

    def _sums(self) -> np.ndarray:
        return self.theta.T


class RowWorkspace:
    """Arrays to predict and learn from one dense row at a time, made once.

    The caller writes to ``row`` and ``target``. Rows are learned from as the last samples were: by
    class, by task or with targets for all outputs.
    """

    def __init__(self, learner: RowLearner, n_targets: int) -> None:
        # The learner's own arrays, which the loop changes in place, are collected once: a short row
        # is learned from so fast that collecting them each time would show.
        self.row = np.zeros(learner.n_features)
        self.target = np.zeros((1, n_targets))
        self._scores, self._learner = np.zeros(learner.n_outputs), learner
        self._mode = int(learner.codes[layout.MODE])
        room = learner.room()
        self._place = room[0][layout.I_PLACE]
        arrays, joint = learner.arrays(), True if learner.plan.joint else None
        self._learning = (joint, None if joint else self.target, *arrays, *room)
        self._scoring = (
            learner.codes, learner.constants, arrays[4], learner.matrix, learner.column,
            learner.outputs, learner.tree, learner.numbers, *room, self._scores,
        )  # fmt: skip

    def learn(self, label: int) -> int:
        """Learn from the row, and return the number of rounds so far.

        The result is -1 if the row is not finite, and -2 if numbers have overflowed.
        """
        done: int = single_jit.learn_row(self.row, self._mode, label, *self._learning)
        while done == -3:
            self._learner.catch_up(self._place)
            done = single_jit.learn_row(self.row, self._mode, label, *self._learning)
        return done

    def scores(self) -> np.ndarray:
        """Return the scores of the row in an array that the next call overwrites."""
        single_jit.scores_of(self.row, *self._scoring)
        return self._scores


def copy_corners(smaller: OnlineLearner, larger: OnlineLearner, names: Sequence[str]) -> None:
    """Copy arrays of one learner into the first rows and columns of the arrays of another."""
    for name in names:
        array = getattr(smaller, name)
        getattr(larger, name)[tuple(map(slice, array.shape))] = array
