"""The base classes: what a pool has without giving it, and objects without a base class."""

from dataclasses import dataclass

import numpy as np
import pytest

from mixnorm import ShareBoostClassifier
from mixnorm.engines.greedy import select
from mixnorm.losses import Squared
from mixnorm.pools import (
    Columns,
    Cost,
    Pool,
    PreparedPool,
    Union,
    as_pool,
    as_prepared,
    bind,
    working_dtype,
)
from mixnorm.testing import check_pool


@dataclass
class Squares(Pool):
    """Squares of columns, with what a subclass must give and no more."""

    def prepare(self, X, *, weight=None, random_state=None, **options):
        return PreparedSquares(self, X, working_dtype(X) if weight is None else weight.dtype)

    def evaluate(self, X, atoms):
        return X[:, list(atoms)].astype(working_dtype(X)) ** 2

    def feature_indices(self, atoms, n_features):
        return np.asarray(list(atoms), dtype=np.intp)

    def n_columns(self, atom, n_features):
        if type(atom) is not int or not 0 <= atom < n_features:
            raise ValueError(f"{atom!r} is no column")
        return 1


class PreparedSquares(PreparedPool):
    """Squares of columns, bound to data."""

    def __init__(self, pool, X, dtype):
        self._rows = [pool.evaluate(X, [j]).T.astype(dtype) for j in range(X.shape[1])]
        self.n_usable = X.shape[1]

    def top(self, residual, rule, m, exclude, inputs=None):
        allowed = set(range(self.n_usable)) if inputs is None else inputs
        gradients = {j: self._rows[j] @ residual for j in allowed - exclude}
        norm = {"l1": lambda g: np.abs(g).sum(), "l2": np.linalg.norm}[rule]
        scores = [(j, float(norm(gradient))) for j, gradient in gradients.items()]
        return sorted((pair for pair in scores if pair[1] > 0), key=lambda pair: -pair[1])[:m]

    def columns(self, atom):
        return self._rows[atom]

    def scale(self, atom):
        return np.ones(1, dtype=self._rows[atom].dtype)


class Own:
    """The same without base classes, one of which passes requests on."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("__") or name not in ("evaluate", "feature_indices", "n_columns"):
            raise AttributeError(name)
        return getattr(Squares(), name)

    def prepare(self, X, *, weight=None, **options):
        self.asked.append(options)
        prepared = Squares().prepare(X, weight=weight)

        class Prepared:
            n_usable, top = prepared.n_usable, prepared.top
            columns, scale = prepared.columns, prepared.scale

        return Prepared()


class Seeded(Own):
    """Takes a seed."""

    def prepare(self, X, *, weight=None, random_state, **options):
        self.seed = random_state
        return super().prepare(X, weight=weight, **options)


class Drawing(Own):
    """Says that it takes a seed."""

    draws = True


def table():
    return np.random.default_rng(0).standard_normal((60, 4))


def test_a_pool_that_gives_what_it_must():
    X = table()
    check_pool(Squares(), X)
    pool, prepared = Squares(), bind(Squares(), X)
    assert pool.labels([2, 1]) == [2, 1]
    assert pool.describe(2, list("abcd")) == "2"
    assert pool.total_cost([0, 3], 4, 5) == Cost(10, 0)
    assert prepared.inputs(3) == {3}
    assert prepared.price(3) == 1.0
    assert (prepared.priced, prepared.adjustable, prepared.takes_curvature) == (False,) * 3
    residual = X[:, :2]
    wanted = prepared.top(residual, "l1", 2, frozenset())
    assert prepared.shortlist(residual, "l1", 2, frozenset()) == wanted


@pytest.mark.parametrize("limits", [{}, {"max_inputs": 2}, {"options__rounds_per_input": 2}])
def test_objects_without_a_base_class_are_pools(limits):
    X = table()
    y = (X[:, 1] ** 2 + X[:, 3] ** 2 > 2).astype(int)
    models = [
        ShareBoostClassifier(2, pool=pool, alpha=1e-3).set_params(**limits).fit(X, y)
        for pool in (Squares(), Own(), Union([Own()]))
    ]
    scores = [model.decision_function(X) for model in models]
    assert sorted(models[0].selected_) == [1, 3]
    for model, found in zip(models, scores, strict=True):
        assert np.array_equal(found, scores[0])
        assert model.cost_ == models[0].cost_
    assert type(models[1].pool_) is Own
    assert models[1].predictor()(X[0]) == models[0].predict(X[:1])[0]


def test_seeds_go_to_who_takes_them():
    X = table()
    pools = Own(), Seeded(), Drawing()
    for pool in pools:
        bind(pool, X, scale="std", random_state=7)
    assert "random_state" not in pools[0].asked[0]
    assert pools[1].seed == 7
    assert pools[2].asked[0]["random_state"] == 7


def test_what_is_a_pool_stays_as_it_is():
    pool = Columns()
    prepared = pool.prepare(table())
    assert as_pool(pool) is pool
    assert as_prepared(prepared) is prepared
    assert bind(pool, table()).pool is pool
    own = Own()
    assert as_pool(as_pool(own)).given is own
    assert bind(own, table()).pool.given is own


@pytest.mark.parametrize("thing", [None, "columns", Columns, 3.0])
def test_what_is_no_pool(thing):
    with pytest.raises(TypeError, match="is not a pool; give an object of mixnorm.pools"):
        as_pool(thing)


def test_missing_methods_are_named():
    class Half:
        prepare = evaluate = feature_indices = None

    with pytest.raises(TypeError, match="Half has no method n_columns, which a pool needs"):
        as_pool(Half())
    with pytest.raises(TypeError, match="Half has no method top, which a pool bound to data"):
        as_prepared(Half())


@pytest.mark.parametrize(
    ("wish", "message"),
    [({"max_inputs": 2}, "no method inputs"), ({"budget": 2.0}, "no method price"),
     ({"tune": 1}, "no method adjust")],
)  # fmt: skip
def test_the_engine_names_what_an_object_lacks(wish, message):
    X, y, weight = table(), table()[:, :1], np.full(60, 1 / 60)
    with pytest.raises(TypeError, match=f"Prepared.*{message}|{message}"):
        select(Own().prepare(X), Squared(), y, n_atoms=2, n_outputs=1, weight=weight, **wish)
