"""The tree of errors and warnings."""

import pickle
import subprocess
import sys

import pytest
from sklearn.exceptions import ConvergenceWarning

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


def test_what_scikit_learn_calls_it():
    assert issubclass(exceptions.NotConvergedWarning, ConvergenceWarning)
    # A thread that finds no class yet may be late: it must get that of the first thread.
    first = exceptions.NotConvergedWarning
    assert exceptions.__getattr__("NotConvergedWarning") is first
    assert set(exceptions.__all__) <= set(dir(exceptions))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = exceptions.nothing


def test_scikit_learn_is_imported_on_first_use():
    code = (
        "import sys; from mixnorm import exceptions; assert 'sklearn' not in sys.modules;"
        "exceptions.NotConvergedWarning; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
