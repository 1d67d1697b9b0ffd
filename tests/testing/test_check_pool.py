"""check_pool finds every kind of broken promise, and says which."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixnorm._params import Parameters
from mixnorm.exceptions import ContractError
from mixnorm.pools import Columns
from mixnorm.testing import check_pool


class Prepared:
    """A prepared pool with one method replaced."""

    def __init__(self, inner, **changed):
        self.inner = inner
        self.__dict__.update(changed)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@dataclass
class Broken(Parameters):
    """Columns, but for one fault."""

    fault: str = ""

    def prepare(self, X, *, weight=None, scale=True, fit_intercept=True):
        inner = Columns().prepare(X, weight=weight, scale=scale, fit_intercept=fit_intercept)
        change = getattr(self, self.fault, None)
        return inner if change is None else Prepared(inner, **change(inner, X))

    def evaluate(self, X, atoms):
        return Columns().evaluate(X, atoms) + (self.fault == "evaluation")

    def labels(self, atoms):
        return [] if self.fault == "names" else list(atoms)

    def scores(self, inner, X):
        def top(*args):
            return [(atom, 1.001 * score) for atom, score in inner.top(*args)]

        return {"top": top}

    def order(self, inner, X):
        return {"top": lambda *args: inner.top(*args)[::-1]}

    def exclusion(self, inner, X):
        def top(residual, rule, m, exclude):
            return inner.top(residual, rule, m, frozenset())

        return {"top": top}

    def number(self, inner, X):
        return {"top": lambda residual, rule, m, exclude: inner.top(residual, rule, 99, exclude)}

    def shape(self, inner, X):
        return {"columns": lambda atom: inner.columns(atom).T}

    def upcast(self, inner, X):
        return {"columns": lambda atom: inner.columns(atom).astype(np.float64)}

    def width(self, inner, X):
        return {"scale": lambda atom: np.ones(2)}

    def memory(self, inner, X):
        def top(residual, rule, m, exclude):
            shift[0] += 1
            return inner.top(residual, rule, m, exclude)[: 9 - shift[0]]

        shift = [0]
        return {"top": top}

    def vandal(self, inner, X):
        X[0, 0] += 1.0
        return {}


PROMISES = {
    "scores": "is the norm of its columns' gradient",
    "order": "best atom first",
    "exclusion": "excluded atoms are not offered",
    "number": "at most m atoms",
    "evaluation": "evaluate on the training data",
    "names": "labels names every atom",
    "shape": "has shape",
    "upcast": "dtype of the weights",
    "width": "scale has one entry per column",
    "memory": "breaks its contract",
    "vandal": "breaks its contract",
}


def table(dtype="float64"):
    return np.random.default_rng(0).standard_normal((30, 8)).astype(dtype)


@pytest.mark.parametrize("fault", PROMISES)
def test_broken_promises_are_found(fault):
    X = table("float32" if fault == "upcast" else "float64")
    with pytest.raises(ContractError, match=PROMISES[fault]):
        check_pool(Broken(fault), X, max_atoms=4 if fault == "number" else 50)


def test_a_sound_pool_passes():
    check_pool(Broken(), table())
    check_pool(Broken(), table("float32"), n_outputs=1)


def test_data_are_left_alone():
    X = table()
    check_pool(Columns(), X)
    np.testing.assert_array_equal(X, table())
