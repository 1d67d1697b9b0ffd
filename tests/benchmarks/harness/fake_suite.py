"""Methods for the tests of the harness: no learning, known costs."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from benchmarks.harness.measure import read_cpu_seconds
from benchmarks.harness.methods import Method, Point


def burn(seconds):
    end = read_cpu_seconds() + seconds
    while read_cpu_seconds() < end:
        pass


@dataclass(frozen=True)
class Majority(Method):
    """Predicts the most frequent class after ``seconds`` of work and with ``mebibytes`` in hand."""

    path: ClassVar[bool] = True
    seconds: float = 0.0
    first: float = 0.0
    mebibytes: int = 0

    def fit(self, X, y, size, **tuned):
        calls = tuned["calls"]
        calls.append(1)
        burn(self.seconds + (self.first if len(calls) == 1 else 0))
        ballast = np.ones(self.mebibytes * 2**17)
        return int(np.bincount(y).argmax()), ballast.sum()

    def tune(self, X, y, size):
        return {"calls": []}

    def points(self, fitted, size):
        label, _ = fitted
        return [
            Point(count, count, lambda X: np.full(X.shape[0], label), count / size)
            for count in range(1, size + 1)
        ]


@dataclass(frozen=True)
class Failing(Method):
    def fit(self, X, y, size, **tuned):
        raise RuntimeError("no such luck")


@dataclass(frozen=True)
class SlowAgain(Majority):
    """Is quick once, then never finishes."""

    def fit(self, X, y, size, **tuned):
        if tuned["calls"]:
            burn(1000)
        return super().fit(X, y, size, **tuned)


METHODS = {
    "majority": Majority(),
    "extra": Majority(first=0.2),
    "heavy": Majority(mebibytes=64),
    "slow": Majority(seconds=1000),
    "slow-again": SlowAgain(),
    "failing": Failing(),
}
