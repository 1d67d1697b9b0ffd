"""What the tests of the greedy estimators share."""

import pytest

from mixnorm.engines import greedy


@pytest.fixture
def interrupt_at(monkeypatch):
    """Raise KeyboardInterrupt at the given choice of a feature, counted over all fits."""
    real, calls = greedy.engine.choose, []

    def arm(count):
        def choose(*args):
            calls.append(count)
            if len(calls) == count:
                raise KeyboardInterrupt
            return real(*args)

        monkeypatch.setattr(greedy.engine, "choose", choose)
        return calls

    return arm
