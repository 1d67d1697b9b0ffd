"""Standard input as people give it, and what a stored stream has learned."""

import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import mixnorm as package


class Trickle:
    """Standard input that gives a line at a time, and may send a signal instead of one.

    With ``last`` the last line has no end.
    """

    def __init__(self, lines, number=None):
        self.lines, self.number, self.last = list(lines), number, False

    def read(self, size):
        if self.lines:
            line = self.lines.pop(0).encode()
            return line if self.last and not self.lines else line + b"\n"
        if self.number is not None:
            signal.raise_signal(self.number)
        return b""


@pytest.fixture
def stdin(monkeypatch):
    def put(lines, number=None):
        found = SimpleNamespace(buffer=Trickle(lines, number), isatty=lambda: False)
        monkeypatch.setattr(sys, "stdin", found)

    return put


def state(place):
    """Return all that a model has learned; losses on the curve are sums in another order."""
    model = package.load(place)
    estimator = model.estimator
    learner = estimator._resume.stored
    found = {name: array.tobytes() for name, array in learner.arrays.items()}
    found["classes"] = getattr(estimator, "classes_", np.empty(0)).tolist()
    found["names"] = list(estimator.vocabulary_.items())
    found["sizes"] = (learner.n_features, learner.n_outputs)
    found["curve"] = [estimator.curve_[name].tolist() for name in ("rounds", "mistakes")]
    np.testing.assert_allclose(estimator.curve_["loss"][-1], estimator.loss_, rtol=1e-12)
    return found
