"""Errors of a stream: the learner's, those of guessing without features, and where they rise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Rows of the blocks whose errors are compared, each with the blocks of that size before it.
_BLOCKS = (500, 5_000, 50_000)
_MOST_BLOCKS = 10
# Blocks before one that is compared: mistakes have a known spread, losses show it by many.
_LEAST_BLOCKS = {"classification": 2, "regression": 8}
# Standard errors that a rise must have. Half a million blocks would show one such by chance.
_SURE = 5.0
# What a rise is at least, relative to the error before.
_LEAST_RISE = {"classification": 1.1, "regression": 1.5}
# Blocks for which a rise has to last.
_LASTING = {"classification": 1, "regression": 2}
_MOST_RISES = 100
_NEW_LEVEL: dict[str, Any] = {"cost": 0.0, "rows": 0, "blocks": [], "worse": []}


@dataclass(frozen=True)
class Rise:
    """A rise of the error.

    Parameters
    ----------
    first, last : int
        Rows of the block whose error is larger, counted from 1.
    before, after : float
        Mean cost of a row in the blocks before it, and in it.
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
    """Return what is measured before each row is learned from."""
    if get_task(estimator) == "classification":
        return "error rate"
    return "RMSE" if estimator.loss == "squared" else f"mean {estimator.loss} loss"


def compute_mean_cost(word: str, rows: int, cost: float) -> float:
    """Return the error over so many rows that cost so much."""
    if not rows:
        return math.nan
    return math.sqrt(2.0 * cost / rows) if word == "RMSE" else cost / rows  # half the square


class CommonestGuess:
    """Guesses the class that most rows so far have.

    The first row is no mistake, as it is none of a learner that knows of no other class.

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
        # Of classes that are as common, the one that was so first: a rival must be ahead.
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
        """Return what is needed to go on; the guess comes first."""
        names = sorted(self.counts, key=lambda label: label != self._best)
        return {"counts": {label: self.counts[label] for label in names}}


class MeanGuess:
    """Guesses the mean of the targets so far; the first costs nothing, as it does the estimator.

    Examples
    --------
    >>> MeanGuess("absolute").cost([4.0, 4.0, 1.0])
    3.0
    """

    def __init__(self, loss: Any, mean: float = 0.0, rows: int = 0) -> None:
        from mixnorm import losses

        self._loss: Any = losses.as_loss(loss, losses.SCALAR)
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
        """Return what is needed to go on."""
        return {"mean": self._mean, "rows": self._rows}


class Rises:
    """Finds rows from which on the error is larger than before: the rows may have changed.

    Rows are cut into blocks of several sizes. The error of a block is compared with that of the
    blocks of its size before it, ten at most, of which none is older than the last rise. A few
    rows may have most of the loss of numbers; there a rise has to last for two blocks.

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
        """Return the row at which the next block ends."""
        return self._start + ((rows - self._start) // _BLOCKS[0] + 1) * _BLOCKS[0]

    def add(self, rows: int, cost: float) -> None:
        """Add the cost of the block of the smallest size that ends at a row."""
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
        """Compare the block that ends at a row with those before."""
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
            self.found = self.found[-_MOST_RISES:]
            # Compare only with what comes: a larger block in progress has rows from before.
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
            return new > before + _SURE * float(np.std(blocks, ddof=1))
        rows = size * len(blocks)
        share = (new + sum(blocks)) / (size + rows)
        spread = math.sqrt(share * (1.0 - share) * (1.0 / size + 1.0 / rows))
        return (new - before) / size > _SURE * spread

    def to_dict(self) -> dict[str, Any]:
        """Return what is needed to go on."""
        return {
            "start": self._start,
            "levels": [dict(level) for level in self._levels],
            "found": [asdict(rise) for rise in self.found],
        }


class StreamAccount:
    """What rows cost, each predicted before it was learned from.

    Parameters
    ----------
    estimator : estimator
        What learns.
    stored : dict, optional
        What :meth:`to_dict` returned in an earlier run.

    Attributes
    ----------
    rows : int
        Rows learned from.
    cost : float
        Mistakes, or the sum of losses.
    guess_rows, guess_cost : int, float
        Rows that were guessed without features, and what that cost.
    next : int
        Row at which the rows given to :meth:`add` have to end.
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
        """What is guessed without features."""
        return "commonest class so far" if self.task == "classification" else "mean so far"

    @property
    def rises(self) -> list[Rise]:
        """Where the error rose, as it is printed."""
        return [
            replace(
                rise,
                before=compute_mean_cost(self.word, 1, rise.before),
                after=compute_mean_cost(self.word, 1, rise.after),
            )
            for rise in self._rises.found
        ]

    @property
    def error(self) -> float:
        """The error so far."""
        return compute_mean_cost(self.word, self.rows, self.cost)

    @property
    def guess_error(self) -> float:
        """The error so far of guessing without features."""
        return compute_mean_cost(self.word, self.guess_rows, self.guess_cost)

    def add(self, targets: Sequence[Any], cost: float) -> None:
        """Add rows and what they cost."""
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
        """Return what is needed to go on, as plain values."""
        return {
            "cost": self.cost,
            "guess_rows": self.guess_rows,
            "guess_cost": self.guess_cost,
            "block_cost": self._block_cost,
            "guess": self._guess.to_dict(),
            "rises": self._rises.to_dict(),
        }
