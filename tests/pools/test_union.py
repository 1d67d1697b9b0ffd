"""Several pools as one."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

import mixnorm
from mixnorm import ShareBoostClassifier
from mixnorm.pools import Boxes, Columns, Cost, Pieces, Products, Stumps, Union
from mixnorm.testing import check_pool

NONE = frozenset()


def table(n_samples=60, n_features=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n_samples, n_features))


def residual_for(n_samples, n_outputs=3, seed=1):
    residual = np.random.default_rng(seed).standard_normal((n_samples, n_outputs)) / n_samples
    return residual - residual.mean(axis=0)


POOLS = (Columns(groups=[0, 0, 1, 2]), Products(linear=False), Stumps(), Pieces(6, 3))


@pytest.mark.parametrize("rule", ["l1", "l2"])
@pytest.mark.parametrize("method", ["top", "shortlist"])
def test_offers_are_merged(rule, method):
    X, residual = table(), residual_for(60)
    together = Union(POOLS).prepare(X, random_state=0)
    apart = [pool.prepare(X, random_state=0) for pool in POOLS]
    assert together.n_usable == sum(pool.n_usable for pool in apart)
    offers = [
        ((number, atom), score)
        for number, pool in enumerate(apart)
        for atom, score in getattr(pool, method, pool.top)(residual, rule, 10, NONE)
    ]
    found = getattr(together, method)(residual, rule, 10, NONE)
    assert found[0] == max(offers, key=lambda offer: offer[1])
    if method == "top":
        assert found == sorted(offers, key=lambda offer: -offer[1])[:10]
    else:  # turn by turn
        for number in range(len(POOLS)):
            own = [offer for offer in found if offer[0][0] == number]
            assert len(own) in (2, 3)
            assert own == [offer for offer in offers if offer[0][0] == number][: len(own)]
    excluded = frozenset(atom for atom, _ in found[:4])
    left = together.top(residual, rule, 10, excluded)
    assert not excluded & {atom for atom, _ in left}
    for atom, _ in found:
        number, own = atom
        np.testing.assert_array_equal(together.columns(atom), apart[number].columns(own))
        np.testing.assert_array_equal(together.scale(atom), apart[number].scale(own))
        assert together.inputs(atom) == apart[number].inputs(own)


def test_evaluation_keeps_the_order():
    X, pool = table(), Union(POOLS)
    piece = ((0.0, 0.0, 0.0, 0.0), 2.0)
    atoms = [(1, (0, 2)), (0, 1), (3, piece), (0, 0), (2, (1, 0.25)), (1, (3, 3)), (3, piece)]
    parts = [POOLS[number].evaluate(X, [atom]) for number, atom in atoms]
    wanted = np.concatenate(parts, axis=1)
    np.testing.assert_array_equal(pool.evaluate(X, atoms), wanted)
    np.testing.assert_array_equal(pool.evaluate(sp.csr_array(X), atoms), wanted)
    assert pool.evaluate(X, []).shape == (60, 0)
    assert [pool.n_columns(atom, 4) for atom in atoms] == [part.shape[1] for part in parts]
    integers = np.round(10 * X).astype(np.int16)
    found = pool.evaluate(integers, [(0, 1), (1, (0, 2))])
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found[:, 1], integers[:, 0].astype(float) * integers[:, 2])


def test_ties_go_to_the_earlier_pool():
    same = Union((Columns(), Columns())).prepare(table()).top(residual_for(60), "l1", 4, NONE)
    assert [atom[0] for atom, _ in same] == [0, 1, 0, 1]


def test_prices():
    X, residual = table(), residual_for(60)
    free = Union((Columns(), Products(linear=False))).prepare(X)
    assert not free.priced
    dear = Columns(costs=[100.0, 0.5, 100.0, 2.0])
    pool = Union((dear, Products(linear=False)))
    prepared = pool.prepare(X)
    assert [prepared.price((0, j)) for j in range(4)] == [100.0, 0.5, 100.0, 2.0]
    assert prepared.price((1, (0, 1))) == 1.0
    found = prepared.top(residual, "l1", 99, NONE)
    assert len(found) == 14
    worth = [score / np.sqrt(prepared.price(atom)) for atom, score in found]
    assert worth == sorted(worth, reverse=True)
    for method in (prepared.top, prepared.shortlist):
        cheap = {atom for atom, _ in method(residual, "l1", 99, NONE, budget=1.0)}
        assert cheap == {atom for atom, _ in found if prepared.price(atom) <= 1.0}
        assert {a for a, _ in method(residual, "l1", 99, NONE, budget=0.7)} == {(0, 1)}
        inputs = method(residual, "l1", 99, NONE, frozenset({1, 3}))
        assert {a for a, _ in inputs} == {(0, 1), (0, 3), (1, (1, 1)), (1, (1, 3)), (1, (3, 3))}


def test_a_fit_equals_the_fit_on_materialised_columns():
    X = table(150)
    y = X[:, 0] + X[:, 1] * X[:, 2] > 0
    pool = Union((Columns(), Products(linear=False, squares=False)))
    model = ShareBoostClassifier(4, pool=pool, alpha=1e-4).fit(X, y)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    columns = np.column_stack([X, *(X[:, i] * X[:, j] for i, j in pairs)])
    other = ShareBoostClassifier(4, alpha=1e-4).fit(columns, y)
    atoms = [(0, j) for j in range(4)] + [(1, pair) for pair in pairs]
    assert model.path_["feature"].tolist() == [atoms[j] for j in other.path_["feature"]]
    np.testing.assert_allclose(model.path_["loss"], other.path_["loss"], rtol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(columns), rtol=1e-4, atol=1e-4
    )


def test_a_model_is_stored_and_read(tmp_path):
    X = table(100)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])
    model = ShareBoostClassifier(4, pool=Union([Columns(), Products()])).fit(X, y)
    mixnorm.save(model, tmp_path / "model")
    loaded = mixnorm.load(tmp_path / "model")
    assert loaded.pool == model.pool
    assert loaded.path_["feature"].tolist() == model.path_["feature"].tolist()
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_copies():
    pool = Union((Columns(), Union((Stumps(), Pieces(3, 2)))))
    for copy in (clone(pool), pickle.loads(pickle.dumps(pool))):
        assert copy == pool
        assert copy.pools[0] is not pool.pools[0]


def test_atoms_in_words_and_numbers():
    pool, names = Union((Columns(groups=["x", "x", "y", "z"]), Products())), list("abcd")
    assert pool.describe((0, 0), names) == "a, b"
    assert pool.describe((1, (0, 3)), names) == "a × d"
    assert pool.labels([(0, 1), (1, (0, 3))]) == [(0, "y"), (1, (0, 3))]
    assert pool.cost((1, (0, 3)), 4) == Cost(1, 0)
    assert pool.feature_indices([(1, (0, 3)), (0, 0)], 4).tolist() == [0, 3, 0, 1]
    assert pool.feature_indices([], 4).dtype.kind == "i"


@pytest.mark.parametrize(
    "atom", [(2, 0), (-1, 0), (0,), (0, 9), (0, (0, 1)), (1, 0), (True, 0), [0, 0], 0, None]
)
def test_strange_atoms(atom):
    with pytest.raises(ValueError, match=r"atom"):
        Union((Columns(), Products())).n_columns(atom, 4)


@pytest.mark.parametrize(
    "pools", [(), None, "Columns", Columns(), [Columns], [Columns(), None], {0: Columns()}]
)
def test_what_is_no_pool(pools):
    with pytest.raises(TypeError, match="Union"):
        Union(pools).prepare(table())
    with pytest.raises(TypeError, match="Union"):
        Union(pools).n_columns((0, 0), 4)


class Bare:
    """Columns with no more than the engine and prediction need, and without a base class."""

    evaluate = staticmethod(Columns().evaluate)
    feature_indices = staticmethod(Columns().feature_indices)
    n_columns = staticmethod(Columns().n_columns)

    def prepare(self, X, **options):
        inner = Columns().prepare(X, **options)

        class Prepared:
            top, columns, scale = inner.top, inner.columns, inner.scale
            n_usable = inner.n_usable

        return Prepared()


def test_members_need_not_tell_what_they_need_not_tell():
    X = np.random.default_rng(0).standard_normal((60, 4))
    y = X[:, 2] > 0
    pool = Union((Bare(), Stumps()))
    model = ShareBoostClassifier(3, pool=pool, max_inputs=2).fit(X, y)
    assert len(model.selected_) <= 2
    assert model.cost_.multiply_adds == 3
    assert pool.describe((0, 1), list("abcd")) == "1"
    assert pool.prepare(X).inputs((0, 1)) == {1}


def test_all_pools_are_on_a_shortlist():
    """Stumps have larger gradients than columns, and need not gain more for that."""
    X, y = load_digits(return_X_y=True)
    pool = Union((Columns(), Stumps()))
    X = X[:, X.std(axis=0) > 0]
    weight = np.full(len(X), 1 / len(X))
    prepared = pool.prepare(X, weight=weight)
    residual = (np.eye(10)[y] - 0.1) * weight[:, None]
    owners = [atom[0] for atom, _ in prepared.shortlist(residual, "l1", 8, frozenset())]
    assert sorted(owners) == [0] * 4 + [1] * 4
    assert len({atom[0] for atom, _ in prepared.top(residual, "l1", 8, frozenset())}) == 1
    both = ShareBoostClassifier(20, pool=pool, alpha=1e-4).fit(X[::2], y[::2])
    plain = ShareBoostClassifier(20, alpha=1e-4).fit(X[::2], y[::2])
    assert both.score(X[1::2], y[1::2]) > plain.score(X[1::2], y[1::2]) - 0.03


def test_a_pool_that_grows_among_them():
    X = np.random.default_rng(0).integers(-2, 3, size=(40, 5)).astype(float)
    check_pool(Union((Boxes(), Columns())), X)


def test_parts_are_searched_over():
    X, y = load_digits(return_X_y=True)
    model = ShareBoostClassifier(3, pool=Union([Columns(), Stumps()]))
    grid = {"pool__0": [Columns(), Products()], "pool__1__max_bins": [2, 8]}
    search = GridSearchCV(model, grid, cv=2).fit(X[:200], y[:200])
    assert len(search.cv_results_["params"]) == 4
    found = search.best_estimator_.pool.pools
    assert found[0] == search.best_params_["pool__0"]
    assert found[1].max_bins == search.best_params_["pool__1__max_bins"]
    assert model.pool == Union([Columns(), Stumps()])


def test_parts_of_parts():
    model = ShareBoostClassifier(pool=Union((Columns(), Union((Stumps(), Pieces(3, 2))))))
    copy = clone(model).set_params(pool__1__0__max_bins=5, pool__1__1=Boxes())
    assert copy.pool == Union((Columns(), Union((Stumps(max_bins=5), Boxes()))))
    assert model.pool.pools[1].pools[0] == Stumps()
    assert copy.get_params()["pool__1__0__max_bins"] == 5
