"""What the harness asks of a method, ours or a peer's."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks._data import Matrix


@dataclass(frozen=True)
class Point:
    """One fitted model: the size asked for, the features it uses, and how it predicts.

    ``share`` is the share of the fit's seconds that had been spent when this model was ready; below
    one only for methods whose single fit gives several sizes.
    """

    size: int
    features: int
    predict: Callable[[Matrix], np.ndarray]
    share: float = 1.0


@dataclass(frozen=True)
class Method:
    """Base of all methods: stateless, so a name and its settings say everything.

    ``path`` methods give every size up to the one asked for in one fit. ``only`` names the
    datasets a method is run on (empty: all), ``largest`` the largest size per dataset, where more
    would take longer than the limit; ``once`` methods are run on all training rows only, not on
    resamplings.
    """

    needs: ClassVar[str] = ""
    path: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    ours: ClassVar[bool] = False

    only: tuple[str, ...] = ()
    largest: Mapping[str, int] = field(default_factory=dict)
    once: bool = False

    def available(self) -> bool:
        """Whether the library this method needs is installed."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None

    def setup(self) -> None:
        """Import what ``fit`` needs; timed as part of the first call's extra."""
        if self.needs:
            importlib.import_module(self.needs)

    def convert(self, X: Matrix) -> Matrix:
        """Give ``X`` the type and order the interface takes; not timed."""
        return X

    def most(self, X: Matrix) -> int:
        """Return the largest size that makes sense: one feature per column."""
        return int(X.shape[1])

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        """Find the settings that give ``size`` features; reported apart from the fit."""
        return {}

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        """Fit once; this is what is timed."""
        raise NotImplementedError

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        """Return the models of one fit; not timed."""
        raise NotImplementedError


def used_rows(coef: np.ndarray) -> int:
    """Number of features with any non-zero weight, ``coef`` having one row per feature."""
    return int(np.count_nonzero(np.any(coef != 0, axis=1)))


def bisect_penalty(
    count: Callable[[float], int], size: int, start: float, steps: int = 14
) -> float:
    """Return a penalty under which ``count`` is as large as possible without passing ``size``.

    ``count`` falls as its argument grows and is 0 at ``start``. A geometric search: tenths until
    too many features come in, then bisection of the exponent.
    """
    high, low = start, None
    best, best_count = start, 0
    for _ in range(steps):
        penalty = high / 10 if low is None else float(np.sqrt(high * low))
        found = count(penalty)
        if best_count < found <= size:
            best, best_count = penalty, found
        if found == size:
            break
        if found > size:
            low = penalty
        else:
            high = penalty
    return best
