"""Curves of mistakes and losses."""

import numpy as np
import pytest

from mixnorm import (
    GroupPerceptron,
)
from mixnorm.engines.mirror import layout as layout
from mixnorm.estimators.online import curve as _online_curve

from .conftest import N, rows


@pytest.mark.parametrize("count", [999, 1000, 1001, 2000, 2001, 5000])
def test_curves_are_thinned(count, monkeypatch):
    X, y = np.tile(rows(), (count // N + 1, 1))[:count], np.arange(count) % 3
    monkeypatch.setattr(_online_curve, "_CURVE_SIZE", 1000)
    whole, parts = GroupPerceptron().partial_fit(X, y), GroupPerceptron()
    single = GroupPerceptron().partial_fit(X[:3], y[:3])
    for part in np.array_split(np.arange(count), 13):
        parts.partial_fit(X[part], y[part], classes=[0, 1, 2])
    for i in range(3, count):
        single.learn_one(X[i], int(y[i]))
    curve = whole.curve_
    stride = int(curve["rounds"][0])
    assert 450 < len(curve["rounds"]) <= 1000
    assert np.array_equal(curve["rounds"], stride * np.arange(1, count // stride + 1))
    assert curve["mistakes"][-1] <= whole.mistakes_
    assert np.array_equal(curve["mistakes"], curve["loss"])  # of a perceptron
    for other in (parts, single):
        for name in ("rounds", "mistakes", "loss"):
            assert np.array_equal(curve[name], other.curve_[name])
