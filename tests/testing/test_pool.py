"""check_pool finds every kind of broken promise, and says which."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixnorm._params import Parameters
from mixnorm.exceptions import ContractError
from mixnorm.pools import Columns, Cost
from mixnorm.pools.scorers import PoolScorer
from mixnorm.testing import check_pool

NONE = frozenset()


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
        values = Columns().evaluate(X, atoms) + (self.fault == "evaluation")
        return values + (X[:, [7]] if self.fault == "reads" and self.other(X) else 0.0)

    @staticmethod
    def other(X):
        return not np.array_equal(X, table(X.dtype.name))

    def labels(self, atoms):
        return [] if self.fault == "names" else list(atoms)

    def feature_indices(self, atoms, n_features):
        index = Columns().feature_indices(atoms, n_features)
        if self.fault == "outside":
            return index + n_features
        return index.astype(float) if self.fault == "not whole" else index

    def n_columns(self, atom, n_features):
        if self.fault == "stranger" and atom == (-1,):
            return 1
        return Columns().n_columns(atom, n_features) + (self.fault == "breadth")

    def cost(self, atom, n_features):
        return Cost(-1 if self.fault == "operations" else 0, 0)

    def describe(self, atom, names):
        return "" if self.fault == "words" else names[atom]

    def scores(self, inner, X):
        def top(*args, inputs=None):
            return [(atom, 1.001 * score) for atom, score in inner.top(*args, inputs=inputs)]

        return {"top": top}

    def order(self, inner, X):
        return {"top": lambda *args, inputs=None: inner.top(*args)[::-1]}

    def exclusion(self, inner, X):
        def top(residual, rule, m, exclude, inputs=None):
            return inner.top(residual, rule, m, frozenset())

        return {"top": top}

    def number(self, inner, X):
        def top(residual, rule, m, exclude, inputs=None):
            return inner.top(residual, rule, 99, exclude)

        return {"top": top}

    def keyword(self, inner, X):
        return {"top": lambda *args: inner.top(*args)}

    def inputs(self, inner, X):
        return {"top": lambda *args, inputs=None: inner.top(*args)}

    def missing(self, inner, X):
        def top(*args, inputs=None):
            return inner.top(*args, inputs=inputs)[inputs is not None :]

        return {"top": top}

    def reading(self, inner, X):
        return {"inputs": lambda atom: frozenset([atom, atom + 1])}

    def kind(self, inner, X):
        def top(*args, inputs=None):
            return [(np.int64(atom), score) for atom, score in inner.top(*args, inputs=inputs)]

        return {"top": top}

    def price(self, inner, X):
        return {"price": lambda atom: 0.0 if atom == 3 else 1.0}

    def budget(self, inner, X):
        def top(residual, rule, m, exclude, inputs=None, budget=None):
            found = inner.top(residual, rule, 99, exclude, inputs)
            return sorted(found, key=lambda pair: -pair[1] / np.sqrt(1.0 + pair[0]))[:m]

        return {"price": lambda atom: 1.0 + atom, "top": top}

    def thrift(self, inner, X):
        def top(*args, inputs=None, budget=None):
            return inner.top(*args, inputs=inputs)[: 0 if budget else None]

        return {"price": lambda atom: 1.0, "top": top}

    def shortlisted(self, inner, X):
        return {"shortlist": lambda *args: inner.top(*args)[1:]}

    def shortlist_twice(self, inner, X):
        return {"shortlist": lambda *args: inner.top(*args)[:1] * 2}

    def shortlist_all(self, inner, X):
        return {"shortlist": lambda residual, rule, m, exclude: inner.top(residual, rule, 99, NONE)}

    def shortlist_again(self, inner, X):
        return {"shortlist": lambda residual, rule, m, exclude: inner.top(residual, rule, m, NONE)}

    def shape(self, inner, X):
        return {"columns": lambda atom: inner.columns(atom).T}

    def upcast(self, inner, X):
        return {"columns": lambda atom: inner.columns(atom).astype(np.float64)}

    def width(self, inner, X):
        return {"scale": lambda atom: np.ones(2)}

    def memory(self, inner, X):
        def top(residual, rule, m, exclude, inputs=None):
            shift[0] += 1
            return inner.top(residual, rule, m, exclude, inputs)[: 9 - shift[0]]

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
    "keyword": "takes the keyword inputs",
    "inputs": "only atoms that read these columns",
    "missing": "all atoms that read only these columns",
    "reads": "reads no columns but those of feature_indices",
    "reading": "are the columns of feature_indices",
    "outside": "are columns of the data",
    "not whole": "array of integers",
    "breadth": "is the number of its columns",
    "stranger": "raises a ValueError for",
    "kind": "made of numbers",
    "operations": "counts operations",
    "words": "one line of text",
    "price": "prices are positive",
    "budget": "no atom that costs more",
    "thrift": "offers all atoms within it",
    "shortlisted": "begins with the best atom",
    "shortlist_twice": "atoms of a shortlist differ",
    "shortlist_all": "shortlist returns at most m atoms",
    "shortlist_again": "are not on a shortlist",
}


def table(dtype="float64"):
    return np.random.default_rng(0).standard_normal((30, 9)).astype(dtype)


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


class Batchwise(Columns):
    """Looks at a batch of rows instead of each row: right on the training data only."""

    def evaluate(self, X, atoms):
        return super().evaluate(X, atoms) * (X.shape[0] / 30)


class Short(Columns):
    """Has a short cut for prediction that leads elsewhere."""

    plain = False

    def scorer(self, atoms, weights, intercept):
        return PoolScorer(self, atoms, 2.0 * weights, intercept)


class Costly(Columns):
    """Counts operations below zero."""

    def total_cost(self, atoms, n_features, n_outputs):
        return Cost(-1, 0)


class Impatient(Columns):
    """Wants all rows to have a weight."""

    def prepare(self, X, *, weight=None, **options):
        if weight is not None and (weight == 0).any():
            raise ContractError("no weight")
        return super().prepare(X, weight=weight, **options)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (Batchwise(), "evaluate depends on each row alone"),
        (Short(), "scorer gives the weighted sums"),
        (Costly(), "total_cost counts operations"),
        (Impatient(), "no weight"),
    ],
)
def test_what_prediction_relies_on(pool, message):
    X = np.random.default_rng(0).standard_normal((30, 4))
    with pytest.raises(ContractError, match=message):
        check_pool(pool, X)
