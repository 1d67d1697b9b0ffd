"""The interface of a method: mixnorm, or a library that it is compared with (a peer)."""

from __future__ import annotations

import importlib.util
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.splits import Matrix
from benchmarks.harness.tuning import GRID, Chosen, choose_best, list_sizes, make_folds


@dataclass(frozen=True)
class Point:
    """One fitted model: its requested size, the number of features it uses, and its predictor.

    ``share`` is the share of the fit's seconds up to this size. It is below one only for methods
    whose single fit gives several sizes.
    """

    size: int
    features: int
    predict: Callable[[Matrix], np.ndarray]
    share: float = 1.0


@dataclass(frozen=True)
class Method:
    """Base of all methods. Methods have no state, so a name and settings identify them.

    With ``path``, one fit gives all sizes up to the requested one. ``only`` names the datasets that
    the method runs on (empty: all). ``largest`` is the largest size by dataset, for datasets on
    which more would exceed the limit. With ``once``, the method runs on all training rows only, not
    on resamplings.
    """

    needs: ClassVar[str] = ""
    path: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    ours: ClassVar[bool] = False

    only: tuple[str, ...] = ()
    largest: Mapping[str, int] = field(default_factory=dict)
    once: bool = False

    def available(self) -> bool:
        """Return whether the library of this method is installed."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None

    def setup(self) -> None:
        """Import what ``fit`` needs; this counts as extra time of the first call."""
        if self.needs:
            importlib.import_module(self.needs)

    def convert(self, X: Matrix) -> Matrix:
        """Return ``X`` in the type and order that the library takes; not timed."""
        return X

    def most(self, X: Matrix) -> int:
        """Return the largest size that makes sense: one feature per column."""
        return int(X.shape[1])

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        """Find the settings that give ``size`` features; timed separately from the fit."""
        return {}

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        """Fit once; this call is timed."""
        raise NotImplementedError

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        """Return the models of one fit; not timed."""
        raise NotImplementedError


@dataclass(frozen=True)
class Ridged(Method):
    """A method with a ridge penalty: its default, or one chosen by inner folds (``tuned``).

    A tuned method chooses a value for each size. It fits one path for each chosen value, up to the
    largest size that needs this value.
    """

    tuned: bool = False

    def fit_at(self, X: Matrix, y: np.ndarray, size: int, value: float | None) -> Any:
        """Fit with a ridge on the scale of ``tuning``, or with the method's default (None)."""
        raise NotImplementedError

    def models(self, fitted: Any, size: int) -> Sequence[Point]:
        """Return the models of ``fit_at``."""
        raise NotImplementedError

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        if not self.tuned:
            return {}
        sizes = list_sizes(size) if self.path else [size]
        wrong: Counter[tuple[int, int]] = Counter()
        for X_in, y_in, X_out, y_out in make_folds(X, y):
            for place, value in enumerate(GRID):
                for point in self.models(self.fit_at(X_in, y_in, size, value), size):
                    if point.size in sizes:
                        wrong[point.size, place] += int(np.sum(point.predict(X_out) != y_out))
        return {"values": choose_best(wrong, sizes, GRID)}

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        values: Chosen = tuned.get("values") or [[size, None]]
        runs = []
        for value in dict.fromkeys(value for _, value in values):
            sizes = [each for each, chosen in values if chosen == value]
            began = time.process_time()
            fitted = self.fit_at(X, y, max(sizes), value)
            runs.append((sizes, fitted, time.process_time() - began))
        return runs

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        total = sum(seconds for *_, seconds in fitted) or 1.0
        found = []
        for sizes, model, seconds in fitted:
            part = seconds / total if len(fitted) > 1 else 1.0
            for point in self.models(model, max(sizes)):
                # If nothing was tuned, all sizes of the path are models.
                if not self.tuned or point.size in sizes:
                    share = part * point.share
                    found.append(Point(point.size, point.features, point.predict, share))
        return sorted(found, key=lambda point: point.size)


def count_rows(coef: np.ndarray) -> int:
    """Return the number of features with a non-zero weight; ``coef`` has one row per feature."""
    return int(np.count_nonzero(np.any(coef != 0, axis=1)))


def bisect_penalty(
    count: Callable[[float], int], size: int, start: float, steps: int = 14
) -> float:
    """Return a penalty under which ``count`` is as large as possible without passing ``size``.

    ``count`` falls as its argument grows, and is 0 at ``start``. The penalty is divided by ten
    until there are too many features; then its exponent is bisected.
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
