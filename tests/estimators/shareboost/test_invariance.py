"""What is chosen and predicted does not depend on units, origins, orders or names."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import is_classifier

from mixnorm import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.engines.greedy import choice, rules
from mixnorm.pools import Boxes, Stumps

RULES = ["joint", "l1", "l2", "line", "column", "exact"]
# Draws in which the two best gains are nearer than this are discarded: rounding decides there.
NEAR = 1e-6

seeds = st.integers(0, 2**32 - 1)


def drawn(seed, n=90, d=7, classes=3, dtype=np.float64):
    """Correlated columns, of which some matter, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.4 * rng.standard_normal((d, d)))
    scores = 1.5 * X[:, :4] @ rng.standard_normal((4, classes)) / np.sqrt(4)
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    assume(len(np.unique(y)) == classes)
    return X.astype(dtype), y, rng


class Ties:
    """Notes how far apart the two best candidates of every round are."""

    def __init__(self, monkeypatch):
        self.nearest = np.inf
        for rule, (cheap, gains) in list(rules.RULES.items()):
            kept = gains or rules.NORMS[rule]
            monkeypatch.setitem(rules.RULES, rule, (cheap, self.watched(kept)))
        monkeypatch.setattr(choice, "RULES", rules.RULES)

    def watched(self, gains):
        def noted(support, choices):
            found = gains(support, choices)
            best = sorted(found, reverse=True)[:2]
            if len(best) == 2 and best[0] > 0.0:
                self.nearest = min(self.nearest, 1.0 - best[1] / best[0])
            return found

        return noted


def fitted(X, y, rule="joint", weight=None, kind=ShareBoostClassifier, **options):
    """Return a model, unless two candidates were as good as each other."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        ties = Ties(monkeypatch)
        model = kind(4, **options).set_params(options__rule=rule).fit(X, y, sample_weight=weight)
    assume(ties.nearest > NEAR)
    return model


def scores_of(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def assert_same(model, X, other, X_other, tol, columns=None):
    chosen = model.selected_ if columns is None else columns[model.selected_]
    assert other.selected_.tolist() == np.asarray(chosen).tolist()
    one, two = scores_of(model, X), scores_of(other, X_other)
    np.testing.assert_allclose(two, one, atol=tol * np.abs(one).max(), rtol=0)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=8)
@given(seed=seeds)
def test_units_and_origins(rule, seed):
    X, y, rng = drawn(seed)
    factor = rng.choice([-1.0, 1.0], 7) * 10.0 ** rng.uniform(-6, 6, 7)
    shift = rng.uniform(-1000, 1000, 7) * X.std(axis=0) * np.abs(factor)
    Z = X * factor + shift
    assert_same(fitted(X, y, rule), X, fitted(Z, y, rule), Z, tol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=5)
@given(seed=seeds)
def test_units_and_origins_of_a_regression(rule, seed):
    X, labels, rng = drawn(seed)
    y = np.eye(3)[labels] + 0.1 * rng.standard_normal((len(X), 3))
    factor = rng.choice([-1.0, 1.0], 7) * 10.0 ** rng.uniform(-6, 6, 7)
    Z = X * factor + rng.uniform(-1000, 1000, 7) * X.std(axis=0) * np.abs(factor)
    kind = ShareBoostRegressor
    assert_same(fitted(X, y, rule, kind=kind), X, fitted(Z, y, rule, kind=kind), Z, tol=1e-6)


@settings(max_examples=12)
@given(seed=seeds)
def test_units_and_origins_in_single_precision(seed):
    X, y, rng = drawn(seed, dtype=np.float32)
    factor = 10.0 ** rng.uniform(-6, 6, 7)
    Z = (X * factor + rng.uniform(-10, 10, 7) * X.std(axis=0) * factor).astype(np.float32)
    assert_same(fitted(X, y), X, fitted(Z, y), Z, tol=1e-4)


@pytest.mark.parametrize("rule", ["joint", "l1", "exact"])
@settings(max_examples=5)
@given(seed=seeds)
def test_units_of_sparse_columns_and_dense_ones_alike(rule, seed):
    X, y, rng = drawn(seed, n=150)
    X[rng.random(X.shape) < 0.6] = 0.0
    factor = rng.choice([-1.0, 1.0], 7) * 10.0 ** rng.uniform(-6, 6, 7)
    dense = fitted(X, y, rule)
    for form in (sparse.csr_array, sparse.csc_array):
        assert_same(dense, X, fitted(form(X), y, rule), form(X), tol=1e-6)
        assert_same(dense, X, fitted(form(X * factor), y, rule), form(X * factor), tol=1e-6)


@settings(max_examples=10)
@given(seed=seeds)
def test_orders_and_names(seed):
    X, y, rng = drawn(seed)
    model = fitted(X, y)
    rows, columns = rng.permutation(len(X)), rng.permutation(7)
    assert_same(model, X, fitted(X[rows], y[rows]), X, tol=1e-6)
    shuffled = fitted(X[:, columns], y)
    assert columns[shuffled.selected_].tolist() == model.selected_.tolist()
    one, two = model.decision_function(X), shuffled.decision_function(X[:, columns])
    np.testing.assert_allclose(two, one, atol=1e-6 * np.abs(one).max())
    names = rng.permutation(3)
    renamed = fitted(X, names[y])
    assert renamed.selected_.tolist() == model.selected_.tolist()
    other = renamed.decision_function(X)[:, names]
    np.testing.assert_allclose(other, one, atol=1e-6 * np.abs(one).max())


@settings(max_examples=10)
@given(seed=seeds)
def test_rows_written_twice_at_half_their_weight(seed):
    X, y, rng = drawn(seed)
    weight = rng.uniform(0.5, 2.0, len(X))
    twice = np.concatenate([X, X]), np.concatenate([y, y])
    halves = 0.5 * np.concatenate([weight, weight])
    assert_same(fitted(X, y, weight=weight), X, fitted(*twice, weight=halves), X, tol=1e-6)
    # And a whole weight is a repeated row.
    counts = rng.integers(1, 4, len(X))
    repeated = fitted(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_same(repeated, X, fitted(X, y, weight=counts), X, tol=1e-6)


@pytest.mark.parametrize("pool", [Stumps(), Boxes()], ids=["stumps", "boxes"])
@settings(max_examples=6)
@given(seed=seeds)
def test_stumps_and_boxes_under_increasing_maps(pool, seed):
    X, y, _ = drawn(seed, n=60, d=4)
    Z = np.column_stack([np.exp(X[:, 0]), X[:, 1] ** 3, 5.0 * X[:, 2] + 1e3, np.arctan(X[:, 3])])
    model, other = fitted(X, y, pool=pool), fitted(Z, y, pool=pool)
    np.testing.assert_allclose(
        other.decision_function(Z), model.decision_function(X), rtol=0, atol=1e-8
    )


def test_a_shift_changes_nothing_that_was_penalised():
    """The penalty counts deviations, so that a year is as cheap as a year since 2000."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(2000, 2010, 300), rng.standard_normal((300, 3))])
    y = (X[:, 0] > 2004) + (rng.random(300) < 0.1)
    model = ShareBoostClassifier(2).fit(X, y)
    assert model.selected_[0] == 0
    shifted = ShareBoostClassifier(2).fit(X - [2000, 0, 0, 0], y)
    np.testing.assert_allclose(model.alpha_, shifted.alpha_)
    np.testing.assert_allclose(model.coef_, shifted.coef_, rtol=1e-7)
