"""Sums of shared stumps, as joint boosting finds them round by round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from mixnorm._array import Array, is_sparse
from mixnorm.models.checks import check_finite, check_whole
from mixnorm.models.inputs import Inputs
from mixnorm.models.outputs import ClassOutputs
from mixnorm.pools import Cost

# Rows scored at once, so that their scores stay in the cache between rounds.
_ROWS_SCORED = 2048


@dataclass(frozen=True, eq=False)
class StumpRound:
    """A shared stump, and a constant for every class that does not share it.

    Adds ``a 1[x > threshold] + b`` to the scores of the classes in ``subset``, where ``x`` is
    column ``feature``, and ``constants[c]`` to those of all other classes ``c``.

    Parameters
    ----------
    feature : int
        The column.
    threshold : float
        Where the column is cut.
    subset : ndarray of int
        The classes that share the stump, in ascending order.
    a, b : float
        Step and lower value of the stump.
    constants : ndarray of shape (n_outputs,)
        Scores of the other classes; zero for those in ``subset``.
    error : float
        Weighted squared error of this round's fit, of weights that sum to one.
    loss : float
        Mean exponential loss after the round.
    seconds : float
        Time it took.
    """

    feature: int
    threshold: float
    subset: np.ndarray
    a: float
    b: float
    constants: np.ndarray
    error: float
    loss: float
    seconds: float

    @property
    def values(self) -> np.ndarray:
        """Terms of the scores below (first row) and above the threshold: ``(2, n_outputs)``."""
        both = np.stack([self.constants, self.constants])
        # The classes that share the stump have two values, all others the same constant on both
        # sides.
        both[0, self.subset] = self.b
        both[1, self.subset] = self.b + self.a
        return both


@dataclass(frozen=True)
class StumpPath:
    """The rounds, and how the run ended."""

    rounds: tuple[StumpRound, ...]
    n_outputs: int
    null_loss: float = 1.0
    interrupted: bool = False
    exhausted: bool = False


@dataclass(frozen=True, eq=False)
class StumpModel:
    """A sum of stumps that classes share.

    Parameters
    ----------
    path : StumpPath
        The rounds.
    inputs : Inputs
        The columns.
    outputs : ClassOutputs
        The labels, without a loss: probabilities are those of the exponential one.
    """

    path: StumpPath
    inputs: Inputs
    outputs: ClassOutputs

    @property
    def size(self) -> int:
        """Number of rounds."""
        return len(self.path.rounds)

    @cached_property
    def selected(self) -> np.ndarray:
        """The columns that are read, in the order in which they were chosen."""
        features = dict.fromkeys(step.feature for step in self.path.rounds)
        return np.asarray(list(features), dtype=np.intp)

    @cached_property
    def curve(self) -> dict[str, np.ndarray]:
        """One row per round: the stump, how many classes share it, errors and seconds."""
        rounds = self.path.rounds
        return {
            "feature": np.asarray([step.feature for step in rounds], dtype=np.intp),
            "threshold": np.asarray([step.threshold for step in rounds], dtype=np.float64),
            "n_classes": np.asarray([len(step.subset) for step in rounds], dtype=np.intp),
            "error": np.asarray([step.error for step in rounds], dtype=np.float64),
            "loss": np.asarray([step.loss for step in rounds], dtype=np.float64),
            "seconds": np.asarray([step.seconds for step in rounds], dtype=np.float64),
        }

    def scores(self, X: Array) -> np.ndarray:
        """Return the scores of new rows after all rounds: ``(n_samples, n_scores)``.

        Rounds are added in order, so that these equal the last of :meth:`staged_scores` to the bit.
        """
        total = np.zeros((X.shape[0], self.path.n_outputs))
        columns = self._columns(X)
        steps = [(columns[step.feature], step.threshold, step.values) for step in self.path.rounds]
        # Rows in blocks and rounds inside: the scores of a block are read and written once per
        # round, and stay in the cache.
        for first in range(0, X.shape[0], _ROWS_SCORED):
            rows = slice(first, first + _ROWS_SCORED)
            for column, threshold, values in steps:
                # The truth value of the comparison is the row of the table: one look-up for all
                # classes.
                total[rows] += values[(column[rows] > threshold).astype(np.intp)]
        return total

    def staged_scores(self, X: Array) -> Iterator[np.ndarray]:
        """Yield the scores of new rows after 1, 2, ... rounds."""
        total = np.zeros((X.shape[0], self.path.n_outputs))
        columns = self._columns(X)
        for step in self.path.rounds:
            above = columns[step.feature] > step.threshold
            total += step.values[above.astype(np.intp)]
            # The sum goes on, and the caller may keep what it was given.
            yield total.copy()

    def _columns(self, X: Array) -> dict[int, np.ndarray]:
        return {feature: read_column(X, feature) for feature in self.selected.tolist()}

    def truncate(self, size: int) -> Self:
        """Return the model after ``size`` rounds."""
        return replace(self, path=replace(self.path, rounds=self.path.rounds[:size]))

    def cost(self) -> Cost:
        """Return the cost of a prediction, where rounds with the same stump count once."""
        # Rounds often repeat a stump; its values can be added up beforehand.
        stumps: dict[tuple[int, float], set[int]] = {}
        for step in self.path.rounds:
            stumps.setdefault((step.feature, step.threshold), set()).update(step.subset.tolist())
        return Cost(sum(map(len, stumps.values())), len(stumps))

    def check(self, max_bytes: int) -> None:
        """Raise unless ``scores`` can work with the parts, which may come from anybody's file."""
        self.inputs.check(1, max_bytes)
        self.outputs.check(self.path.n_outputs)
        for step in self.path.rounds:
            self._check_round(step)

    def _check_round(self, step: StumpRound) -> None:
        n_outputs, n_features = self.path.n_outputs, self.inputs.n_features
        check_finite(step.constants, (n_outputs,), np.float64, "constants")
        check_whole(step.subset, (len(step.subset),), n_outputs, "the classes of a round")
        if type(step.feature) is not int or not 0 <= step.feature < n_features:
            raise ValueError(f"a round uses a column outside the {n_features} columns")
        if len(step.subset) == 0 or step.subset.tolist() != sorted(set(step.subset.tolist())):
            raise ValueError("a round is shared by no class, or by one of them twice")
        if np.any(step.constants[step.subset] != 0.0):
            raise ValueError("a class that shares a stump has a constant too")
        numbers = (step.threshold, step.a, step.b, step.error, step.loss, step.seconds)
        if not np.all(np.isfinite(numbers)):
            raise ValueError("a round has numbers that are not finite")


def read_column(X: Array, index: int) -> np.ndarray:
    """Return a column of a matrix in double precision."""
    if is_sparse(X):
        return np.asarray(X[:, [index]].toarray(), dtype=np.float64)[:, 0]
    return np.ascontiguousarray(X[:, index], dtype=np.float64)
