"""The tree of errors and warnings."""

import pickle

import pytest

from mixnorm import exceptions


@pytest.mark.parametrize("name", exceptions.__all__)
def test_everything_hangs_on_one_of_two_bases(name):
    kind = getattr(exceptions, name)
    base = exceptions.MixnormWarning if issubclass(kind, Warning) else exceptions.MixnormError
    assert issubclass(kind, base)
    assert name in exceptions.__doc__, "the tree in the module docstring shows every class"


@pytest.mark.parametrize("name", exceptions.__all__)
def test_everything_survives_pickling(name):
    error = pickle.loads(pickle.dumps(getattr(exceptions, name)("what happened")))
    assert type(error).__name__ == name
    assert str(error) == "what happened"
