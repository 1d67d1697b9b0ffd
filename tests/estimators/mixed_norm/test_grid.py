"""Paths of penalties."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import mixnorm
from mixnorm import MixedNormClassifier, MixedNormRegressor
from mixnorm.estimators import MixedNormPath
from mixnorm.estimators.mixed_norm.grid import alpha_grid, check_grid, grid_size


@pytest.fixture(scope="module")
def data():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.hstack([X, np.random.default_rng(0).normal(size=(150, 6))]), y


@pytest.mark.parametrize("norm", ["l1,1", "l2,1", "linf,1", "l2,2", "trace"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_path_is_separate_fits(data, norm, classes):
    X, y = data
    y = np.minimum(y, classes - 1)
    path = MixedNormClassifier(norm, tol=1e-6).path(X, y, alphas=4)
    assert len(path) == 4
    assert path.coefs.shape == (4, 1 if classes == 2 else 3, 10)
    assert path.intercepts.shape == path.coefs.shape[:2]
    for position, alpha in enumerate(path.alphas):
        single = MixedNormClassifier(norm, alpha, tol=1e-6).fit(X, y)
        assert path.coefs[position] == pytest.approx(single.coef_, abs=2e-2)
        assert path.intercepts[position] == pytest.approx(single.intercept_, abs=2e-2)
        gap = path.gaps[position] + single.dual_gap_
        assert path.objectives[position] == pytest.approx(single.objective_, abs=gap)
        assert path.norm_values[position] == pytest.approx(single.norm_value_, rel=1e-2)


def test_a_path_of_a_regressor(data):
    X, _ = data
    Y = 100.0 * X[:, :3] @ np.arange(6.0).reshape(3, 2) + 7.0
    path = MixedNormRegressor(tol=1e-8).path(X, Y, alphas=[50.0, 20.0, 5.0])
    assert path.alphas.tolist() == [50.0, 20.0, 5.0]
    for position, alpha in enumerate(path.alphas):
        single = MixedNormRegressor(alpha=alpha, tol=1e-8).fit(X, Y)
        assert path.coefs[position] == pytest.approx(single.coef_, abs=0.1)
        assert path.objectives[position] == pytest.approx(single.objective_, rel=1e-6)
    assert MixedNormRegressor().path(X, Y[:, 0], alphas=2).coefs.shape == (2, 1, 10)


def test_the_default_grid(data):
    path = MixedNormClassifier().path(*data)
    assert len(path) == 50
    assert path.alphas[0] == path.alpha_max
    assert path.alphas[-1] == pytest.approx(path.alpha_max / 100)
    assert np.diff(np.log(path.alphas)) == pytest.approx(np.full(49, np.log(0.01) / 49))
    assert path.scale == pytest.approx(np.log(3))
    assert np.all(path.gaps <= 1e-4 * path.scale)
    assert path.n_features[0] == 0 < path.n_features[1]
    assert np.all(np.diff(path.norm_values) > -1e-3)
    assert np.all(np.diff(path.objectives) < 1e-3)


def test_alpha_max_is_where_weights_begin(data):
    X, y = data
    largest = MixedNormClassifier().path(X, y, alphas=1).alpha_max
    assert len(MixedNormClassifier(alpha=largest, tol=1e-9).fit(X, y).support_) == 0
    assert len(MixedNormClassifier(alpha=0.99 * largest, tol=1e-9).fit(X, y).support_) > 0


def test_only_features_in_use_are_kept(data):
    X, y = data
    path = MixedNormClassifier().path(X, y, alphas=5)
    for position, support in enumerate(path.supports):
        full = path.coef(position)
        assert np.array_equal(full, path.coefs[position])
        assert np.array_equal(np.flatnonzero(full.any(axis=0)), support)
        assert path.weights[position].shape == (3, len(support))
    assert path.n_features.tolist() == [len(support) for support in path.supports]
    assert "supports" not in repr(path)
    with pytest.raises(dataclasses.FrozenInstanceError):
        path.scale = 1.0


def test_scores_for_every_penalty(data):
    X, y = data
    assert MixedNormPath is mixnorm.estimators.MixedNormPath
    for labels in (y, np.minimum(y, 1)):
        path = MixedNormClassifier(tol=1e-7).path(X, labels, alphas=3)
        assert isinstance(path, MixedNormPath)
        found = path.decision_function(X)
        assert found.shape == (3, 150, len(path.intercepts[0]))
        assert path.decision_function(sp.csr_array(X)) == pytest.approx(found)
        single = MixedNormClassifier(alpha=path.alphas[2], tol=1e-7).fit(X, labels)
        assert found[2] == pytest.approx(
            single.decision_function(X).reshape(found[2].shape), abs=2e-2
        )
    targets = 1e200 * X[:, :2] + 3e200
    regressor = MixedNormRegressor(tol=1e-7)
    found = regressor.path(X, targets, alphas=3).decision_function(X)[0]
    assert found == pytest.approx(np.broadcast_to(targets.mean(axis=0), (150, 2)))
    with pytest.raises(ValueError, match="X has 3 features, but the path was fitted with 10"):
        path.decision_function(X[:, :3])


def test_a_path_leaves_the_estimator_alone(data):
    X, y = data
    model = MixedNormClassifier(radius=1.0)
    before = vars(model).copy()
    model.path(X, y, alphas=3)
    assert vars(model) == before
    model.fit(X, y)
    before = vars(model).copy()
    model.path(X[:, :3], y > 0, alphas=3)
    assert vars(model) == before


def test_weights_of_samples(data):
    X, y = data
    weight = (np.arange(150) % 3).astype(float)
    repeated = np.repeat(np.arange(150), np.arange(150) % 3)
    ours = MixedNormClassifier(tol=1e-7).path(X, y, alphas=4, sample_weight=weight)
    theirs = MixedNormClassifier(tol=1e-7).path(X[repeated], y[repeated], alphas=4)
    assert ours.alpha_max == pytest.approx(theirs.alpha_max)
    assert ours.coefs == pytest.approx(theirs.coefs, abs=1e-2)


def test_where_nothing_helps():
    for X in (np.zeros((5, 2)), np.ones((5, 2)), np.full((5, 2), 1e30, dtype=np.float32)):
        path = MixedNormRegressor().path(X, [0.1, 0.7, 0.2, 0.9, 0.3], alphas=3)
        assert path.alpha_max == 0.0
        assert not path.coefs.any()


WRONG = [
    (0, 0.1, ValueError, "alphas=0 must be at least 1"),
    (True, 0.1, TypeError, "alphas=True must be a whole number"),
    ("many", 0.1, TypeError, "must be a whole number or a falling sequence"),
    (None, 0.1, ValueError, "alphas has shape"),
    (2.5, 0.1, ValueError, "alphas has shape"),
    ([], 0.1, ValueError, "alphas has shape"),
    ([[1.0]], 0.1, ValueError, "alphas has shape"),
    ([1.0, 2.0], 0.1, ValueError, "must fall: .* Sort them, the largest first"),
    ([1.0, 1.0], 0.1, ValueError, "must fall"),
    ([1.0, 0.0], 0.1, ValueError, "positive and finite"),
    ([1.0, -1.0], 0.1, ValueError, "positive and finite"),
    ([np.inf, 1.0], 0.1, ValueError, "positive and finite"),
    ([np.nan], 0.1, ValueError, "positive and finite"),
    (5, 0.0, ValueError, "alpha_ratio=0.0 must be above 0 and below 1"),
    (5, 1.0, ValueError, "alpha_ratio=1.0"),
    (5, "small", TypeError, "alpha_ratio='small' must be a number"),
]


@pytest.mark.parametrize(("alphas", "ratio", "error", "message"), WRONG)
def test_wrong_grids(data, alphas, ratio, error, message):
    with pytest.raises(error, match=message):
        check_grid(alphas, ratio)
    with pytest.raises(error, match=message):
        MixedNormClassifier().path(*data, alphas=alphas, alpha_ratio=ratio)


def test_grids():
    check_grid([0.5], "not used")
    assert alpha_grid(1, 0.1, 3.0).tolist() == [3.0]
    assert alpha_grid(np.int64(2), 0.1, 1.0).tolist() == [1.0, 0.1]
    assert (grid_size(7), grid_size([3.0, 2.0])) == (7, 2)
