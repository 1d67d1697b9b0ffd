"""Errors of a stream: of the learner, of guesses without features, and rises of the error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mixnorm.losses import SCALAR, Loss, as_loss

# Rows of the blocks whose errors are compared with those of earlier blocks of the same size.
_BLOCKS = (500, 5_000, 50_000)
_MOST_BLOCKS = 10
# Least number of earlier blocks: mistakes have a known spread, but that of losses is estimated.
_LEAST_BLOCKS = {"classification": 2, "regression": 8}
# Least size of a rise in standard errors. Half a million blocks show about one by chance.
_STANDARD_ERRORS_OF_RISE = 5.0
# Least ratio of the error to the earlier one.
_LEAST_RISE = {"classification": 1.1, "regression": 1.5}
# Number of blocks for which a rise must last.
_LASTING = {"classification": 1, "regression": 2}
_MOST_RISES_KEPT = 100
_NEW_LEVEL: dict[str, Any] = {"cost": 0.0, "rows": 0, "blocks": [], "worse": []}


@dataclass(frozen=True)
class Rise:
    """A rise of the error.

    Parameters
    ----------
    first, last : int
        First and last row with the larger error, counted from 1.
    before, after : float
        Mean cost of a row before the rise, and in these rows.
    """

    first: int
    last: int
    before: float
    after: float


def read_running_cost(estimator: BaseEstimator) -> float:
    """Return the mistakes of a classifier, or the loss of a regressor, so far."""
    if not has_started(estimator):
        return 0.0
    labels = get_task(estimator) == "classification"
    return float(estimator.mistakes_ if labels else estimator.loss_)


def has_started(estimator: BaseEstimator) -> bool:
    """Whether an online estimator has learned from anything."""
    return bool(estimator.__sklearn_is_fitted__())


def get_task(estimator: BaseEstimator) -> str:
    """Return whether an online estimator learns labels or numbers."""
    from sklearn.base import is_classifier

    return "classification" if is_classifier(estimator) else "regression"


def name_error(estimator: BaseEstimator) -> str:
    """Return the name of the error that is measured before each row is learned from."""
    if get_task(estimator) == "classification":
        return "error rate"
    return "RMSE" if estimator.loss == "squared" else f"mean {estimator.loss} loss"


def compute_mean_cost(word: str, rows: int, cost: float) -> float:
    """Return the error over a number of rows with this total cost."""
    if not rows:
        return math.nan
    # The squared loss is half the square.
    return math.sqrt(2.0 * cost / rows) if word == "RMSE" else cost / rows


class CommonestGuess:
    """A guesser of the commonest class so far.

    The first row does not count as a mistake, as it does not for a learner without classes.

    Examples
    --------
    >>> guess = CommonestGuess()
    >>> guess.cost(["a", "a", "b", "b", "b"])
    3.0
    >>> guess.cost(["b", "a"])
    1.0
    """

    def __init__(self, counts: dict[Any, int] | None = None) -> None:
        self.counts = dict(counts or {})
        # Of equally common classes, the first one to reach the count wins.
        self._best = max(self.counts, key=self.counts.__getitem__, default=None)

    def cost(self, labels: Sequence[Any]) -> float:
        """Return the mistakes on rows, each guessed before it counts."""
        wrong, counts, best = 0, self.counts, self._best
        for label in labels:
            wrong += best is not None and label != best
            count = counts[label] = counts.get(label, 0) + 1
            if best is None or count > counts[best]:
                best = label
        self._best = best
        return float(wrong)

    def to_dict(self) -> dict[str, Any]:
        """Return the state to resume from; the class to guess comes first."""
        names = sorted(self.counts, key=lambda label: label != self._best)
        return {"counts": {label: self.counts[label] for label in names}}


class MeanGuess:
    """A guesser of the mean target so far; the first row costs nothing, as for the estimator.

    Examples
    --------
    >>> MeanGuess("absolute").cost([4.0, 4.0, 1.0])
    3.0
    """

    def __init__(self, loss: str | Loss, mean: float = 0.0, rows: int = 0) -> None:
        self._loss: Any = as_loss(loss, SCALAR)
        self._mean, self._rows = mean, rows

    def cost(self, targets: Sequence[float]) -> float:
        """Return the loss on rows, each guessed before it counts."""
        guesses, mean, rows = [], self._mean, self._rows
        for target in targets:
            guesses.append(mean if rows else target)
            rows += 1
            mean += (target - mean) / rows
        self._mean, self._rows = mean, rows
        given = np.asarray(targets, dtype=np.float64)[:, None]
        each = np.ones(len(given))
        return float(self._loss.value_and_residual(np.asarray(guesses)[:, None], given, each)[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the state to resume from."""
        return {"mean": self._mean, "rows": self._rows}


class Rises:
    """A detector of rows from which the error is larger, because the data may have changed.

    Rows are cut into blocks of several sizes. The error of a block is compared with that of up to
    ten earlier blocks of its size, none older than the last rise. In regression a few rows may have
    most of the loss, so a rise must last for two blocks.

    Parameters
    ----------
    task : {"classification", "regression"}
        Whether costs are mistakes or losses.
    start : int
        Rows before the first block.

    Examples
    --------
    >>> rises = Rises("classification")
    >>> for rows in range(500, 5000, 500):
    ...     rises.add(rows, 25.0 if rows <= 3000 else 150.0)
    >>> rises.found
    [Rise(first=3001, last=3500, before=0.05, after=0.3)]
    """

    def __init__(
        self,
        task: str,
        start: int = 0,
        levels: list[dict[str, Any]] | None = None,
        found: list[Rise] | None = None,
    ) -> None:
        self._task, self._start = task, start
        self._levels = levels or [dict(_NEW_LEVEL) for _ in _BLOCKS]
        self.found = list(found or [])

    def after(self, rows: int) -> int:
        """Return the number of rows at the end of the next block."""
        return self._start + ((rows - self._start) // _BLOCKS[0] + 1) * _BLOCKS[0]

    def add(self, rows: int, cost: float) -> None:
        """Add the cost of the smallest block that ends at this number of rows."""
        for size, level in zip(_BLOCKS, self._levels, strict=True):
            level["cost"] += cost
            level["rows"] += _BLOCKS[0]
            if (rows - self._start) % size:
                continue
            new, whole = level["cost"], level["rows"] == size
            level["cost"], level["rows"] = 0.0, 0
            if whole:
                self._compare(rows, new, size, level)

    def _compare(self, rows: int, new: float, size: int, level: dict[str, Any]) -> None:
        """Compare the block that ends at this number of rows with earlier ones."""
        worse = [*level["worse"], new]
        if not self._is_worse(new, size, level["blocks"]):
            level["blocks"] = [*level["blocks"], *worse][-_MOST_BLOCKS:]
            level["worse"] = []
        elif len(worse) < _LASTING[self._task]:
            level["worse"] = worse
        else:
            count = size * len(worse)
            before = float(np.mean(level["blocks"])) / size
            self.found = [*self.found, Rise(rows - count + 1, rows, before, sum(worse) / count)]
            self.found = self.found[-_MOST_RISES_KEPT:]
            # Start anew, because larger blocks in progress have rows from before the rise.
            for each in self._levels:
                each.update(_NEW_LEVEL)
            level["blocks"] = worse

    def _is_worse(self, new: float, size: int, blocks: list[float]) -> bool:
        if len(blocks) < _LEAST_BLOCKS[self._task]:
            return False
        before = float(np.mean(blocks))
        if new <= _LEAST_RISE[self._task] * before:
            return False
        if self._task == "regression":
            return new > before + _STANDARD_ERRORS_OF_RISE * float(np.std(blocks, ddof=1))
        rows = size * len(blocks)
        share = (new + sum(blocks)) / (size + rows)
        spread = math.sqrt(share * (1.0 - share) * (1.0 / size + 1.0 / rows))
        return (new - before) / size > _STANDARD_ERRORS_OF_RISE * spread

    def to_dict(self) -> dict[str, Any]:
        """Return the state to resume from."""
        return {
            "start": self._start,
            "levels": [dict(level) for level in self._levels],
            "found": [asdict(rise) for rise in self.found],
        }


class StreamAccount:
    """The errors of a stream, each row predicted before it was learned from.

    Parameters
    ----------
    estimator : estimator
        The learner.
    stored : dict, optional
        The result of :meth:`to_dict` in an earlier run.

    Attributes
    ----------
    rows : int
        Number of rows learned from.
    cost : float
        Number of mistakes, or sum of losses.
    guess_rows, guess_cost : int, float
        Number of rows guessed without features, and the cost of these guesses.
    next : int
        Number of rows at which a call of :meth:`add` must end.
    """

    def __init__(self, estimator: BaseEstimator, stored: dict[str, Any] | None = None) -> None:
        self.word, self.task = name_error(estimator), get_task(estimator)
        rows = int(estimator.n_rounds_) if has_started(estimator) else 0
        stored = stored or {}
        self.rows = rows
        self.cost = float(stored.get("cost", read_running_cost(estimator)))
        self.guess_rows = int(stored.get("guess_rows", 0))
        self.guess_cost = float(stored.get("guess_cost", 0.0))
        self._block_cost = float(stored.get("block_cost", 0.0))
        guess = stored.get("guess", {})
        self._guess: Any
        if self.task == "classification":
            self._guess = CommonestGuess(guess.get("counts"))
        else:
            self._guess = MeanGuess(estimator.loss, **guess)
        rises = dict(stored.get("rises", {"start": rows}))
        rises["found"] = [Rise(**rise) for rise in rises.get("found", [])]
        self._rises = Rises(self.task, **rises)
        self.next = self._rises.after(rows)

    @property
    def guess_name(self) -> str:
        """The guess without features, in words."""
        return "commonest class so far" if self.task == "classification" else "mean so far"

    @property
    def rises(self) -> list[Rise]:
        """Rises of the error in the unit in which it is printed."""
        found = []
        for rise in self._rises.found:
            before, after = (compute_mean_cost(self.word, 1, x) for x in (rise.before, rise.after))
            found.append(Rise(rise.first, rise.last, before, after))
        return found

    @property
    def error(self) -> float:
        """The error so far."""
        return compute_mean_cost(self.word, self.rows, self.cost)

    @property
    def guess_error(self) -> float:
        """The error so far of guesses without features."""
        return compute_mean_cost(self.word, self.guess_rows, self.guess_cost)

    def add(self, targets: Sequence[Any], cost: float) -> None:
        """Add the targets of rows, and the cost of their predictions."""
        self.rows += len(targets)
        self.cost += cost
        self._block_cost += cost
        self.guess_rows += len(targets)
        self.guess_cost += self._guess.cost(targets)
        if self.rows == self.next:
            self._rises.add(self.rows, self._block_cost)
            self._block_cost = 0.0
            self.next = self._rises.after(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the state to resume from as plain values."""
        return {
            "cost": self.cost,
            "guess_rows": self.guess_rows,
            "guess_cost": self.guess_cost,
            "block_cost": self._block_cost,
            "guess": self._guess.to_dict(),
            "rises": self._rises.to_dict(),
        }
