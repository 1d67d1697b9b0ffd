"""Columns in standard deviations: ``standardize=True`` of the estimators under a norm."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from mixnorm import (
    MixedNormClassifier,
    MixedNormClassifierCV,
    MixedNormRegressor,
    MixedNormRegressorCV,
    MultiTaskLearner,
    MultiTaskLearnerCV,
    storage,
)
from mixnorm.estimators.mixed_norm.training import standardize_columns

TIGHT = dict(tol=1e-12, max_iter=5000, standardize=True)


def table(seed=0, n=60, dtype=np.float64):
    """Columns of different sizes and origins, the last one constant, with weights of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [1.0, 50.0, 0.01, 1.0, 3.0, 0.0] + [0, 300, 5, 0, -2, 7]
    z = (X[:, :2] - [0, 300]) / [1.0, 50.0]
    y = z @ [[1.0, -1.0], [2.0, 0.5]] + 0.3 * rng.normal(size=(n, 2))
    return X.astype(dtype), y, rng.uniform(0.2, 2.0, n)


def labels(y):
    return np.asarray(["a", "b", "c"])[np.digitize(y[:, 0], [-1.0, 1.0])]


def cases(seed=0, dtype=np.float64):
    """Return estimators, their data, and how scores are asked for."""
    X, y, weight = table(seed, dtype=dtype)
    holes = np.where(np.arange(len(y))[:, None] % [3, 4] == 1, np.nan, y)
    return [
        (MixedNormClassifier(alpha=0.03), X, labels(y), weight, "decision_function"),
        (MixedNormRegressor(alpha=0.3), X, y, weight, "predict"),
        (MixedNormRegressor("l1,1", alpha=0.2), X, y[:, 0], weight, "predict"),
        (MixedNormRegressor("l2,2", radius=1.0), X, y, weight, "predict"),
        (MultiTaskLearner(alpha=0.3), X, holes, weight, "predict"),
    ]


CASES = range(len(cases()))


@pytest.mark.parametrize("case", CASES)
def test_same_as_a_scaler_before(case):
    model, X, y, weight, scores = cases()[case]
    used = weight
    if isinstance(model, MultiTaskLearner):
        shares = weight[:, None] * ~np.isnan(y)
        used = (shares / shares.sum(axis=0)).sum(axis=1)
    scaler = StandardScaler().fit(X[:, :5], sample_weight=used)
    Z = np.column_stack([scaler.transform(X[:, :5]), np.zeros(len(X))])
    model.set_params(**TIGHT)
    found = model.fit(X, y, weight)
    ours = (getattr(found, scores)(X), found.objective_, found.norm_value_, found.coef_)
    assert found.dual_gap_ <= 1e-11
    theirs = found.set_params(standardize=False).fit(Z, y, weight)
    assert np.allclose(ours[0], getattr(theirs, scores)(Z), rtol=0, atol=1e-7)
    assert np.allclose(ours[1:3], (theirs.objective_, theirs.norm_value_), rtol=1e-8)
    # The weights are for the columns as given, and a constant column has none.
    scales = np.append(scaler.scale_, np.inf)
    assert np.allclose(ours[3], theirs.coef_ / scales, rtol=1e-6, atol=1e-8)
    assert np.any(ours[3][..., 1] != 0.0)
    assert np.all(ours[3][..., 5] == 0.0)


@pytest.mark.parametrize("case", CASES)
def test_sparse_is_dense(case):
    model, X, y, weight, scores = cases(1)[case]
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, 0.0, X)
    model.set_params(**TIGHT)
    dense = getattr(model.fit(X, y, weight), scores)(X)
    kept = (model.objective_, model.norm_value_, model.dual_gap_)
    for form in (sp.csr_array, sp.csc_matrix):
        thin = form(X)
        found = getattr(model.fit(thin, y, weight), scores)(X)
        assert np.allclose(found, dense, rtol=0, atol=1e-7)
        assert np.allclose((model.objective_, model.norm_value_), kept[:2], rtol=1e-8)
        assert np.array_equal(thin.toarray(), X)


changes = st.tuples(st.floats(1e-3, 1e3), st.sampled_from([-1.0, 1.0]), st.floats(-1000.0, 1000.0))


@settings(max_examples=15)
@given(
    seed=st.integers(0, 999), column=st.integers(0, 4), change=changes, case=st.sampled_from(CASES)
)
def test_units_and_origins_do_not_matter(seed, column, change, case):
    size, sign, origin = change
    model, X, y, weight, scores = cases(seed)[case]
    model.set_params(**TIGHT)
    assume(len(np.unique(y[:, 0] if y.ndim == 2 else y)) > 1)
    other = X.copy()
    deviation = np.std(X[:, column])
    other[:, column] = sign * size * (X[:, column] + origin * deviation)
    first = getattr(model.fit(X, y, weight), scores)(X)
    kept = (model.support_, model.objective_, model.norm_value_)
    second = getattr(model.fit(other, y, weight), scores)(other)
    assert np.max(np.abs(second - first)) <= 1e-6 * np.max(np.abs(first))
    assert np.array_equal(model.support_, kept[0])
    assert np.allclose((model.objective_, model.norm_value_), kept[1:], rtol=1e-7)


def test_without_it_units_matter():
    model, X, y, weight, _ = cases()[1]
    first = model.fit(X, y, weight).predict(X)
    other = X * [1e-3, 1, 1, 1, 1, 1]
    assert np.max(np.abs(model.fit(other, y, weight).predict(other) - first)) > 0.1


@pytest.mark.parametrize("case", [0, 1, 4])
def test_float32(case):
    model, X, y, weight, scores = cases(dtype=np.float32)[case]
    model.set_params(standardize=True, tol=1e-5)
    exact = getattr(model.fit(X.astype(np.float64), y, weight), scores)(X.astype(np.float64))
    found = getattr(model.fit(X, y, weight), scores)(X)
    assert model.coef_.dtype == np.float32
    assert np.max(np.abs(found - exact)) <= 2e-2 * np.max(np.abs(exact))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_without_intercept_the_root_of_the_mean_square_counts(make):
    X, y, weight = table()
    model = MixedNormRegressor(alpha=0.3, fit_intercept=False, **TIGHT)
    found = model.fit(make(X), y, weight).predict(X)
    size = np.sqrt(np.average(X**2, axis=0, weights=weight))
    model.set_params(standardize=False)
    assert np.allclose(model.fit(X / size, y, weight).predict(X / size), found, atol=1e-7)
    assert np.all(model.intercept_ == 0.0)


def test_path_and_its_largest_penalty():
    X, y, weight = table()
    scaler = StandardScaler().fit(X, sample_weight=weight)
    Z = scaler.transform(X)
    Z[:, 5] = 0.0
    ours = MixedNormRegressor(**TIGHT).path(X, y, alphas=6, sample_weight=weight)
    plain = MixedNormRegressor(tol=1e-12).path(Z, y, alphas=6, sample_weight=weight)
    assert np.isclose(ours.alpha_max, plain.alpha_max, rtol=1e-10)
    assert np.allclose(ours.norm_values, plain.norm_values, rtol=1e-6, atol=1e-9)
    assert np.allclose(ours.decision_function(X), plain.decision_function(Z), atol=1e-7)
    assert np.all(ours.gaps <= 1e-11 * ours.scale)
    sparse = MixedNormRegressor(**TIGHT).path(sp.csc_array(X), y, alphas=6, sample_weight=weight)
    assert np.isclose(sparse.alpha_max, ours.alpha_max, rtol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_tasks_with_rows_of_their_own_are_pooled(make):
    X, y, weight = table()
    parts = [slice(0, 20), slice(20, 60)]
    Xs, ys = [make(X[part]) for part in parts], [y[part, 0] for part in parts]
    weights = [weight[part] for part in parts]
    model = MultiTaskLearner(alpha=0.2, **TIGHT)
    found = model.fit(Xs, ys, weights).predict(Xs)
    # Both tasks count alike, however many rows they have.
    used = np.concatenate([own / own.sum() for own in weights])
    scaler = StandardScaler().fit(X, sample_weight=used)
    Zs = [scaler.transform(X[part]) * [1, 1, 1, 1, 1, 0] for part in parts]
    model.set_params(standardize=False)
    other = model.fit(Zs, ys, weights).predict(Zs)
    for one, two in zip(found, other, strict=True):
        assert np.allclose(one, two, rtol=0, atol=1e-7)
    mixed = model.set_params(standardize=True).fit([X[parts[0]], Xs[1]], ys, weights)
    assert np.allclose(mixed.predict(X[parts[0]], task=0), found[0], rtol=0, atol=1e-7)


def test_warm_start_and_pickle_and_file(tmp_path):
    X, y, weight = table()
    model = MixedNormClassifier(alpha=0.03, warm_start=True, tol=1e-8, standardize=True)
    first = model.fit(X, labels(y), weight).decision_function(X)
    assert model.n_iter_ > 2
    again = model.fit(X, labels(y), weight)
    assert again.n_iter_ == 1
    assert np.allclose(again.decision_function(X), first, atol=1e-8)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    storage.save(model, tmp_path / "model.mixnorm")
    read = storage.load(tmp_path / "model.mixnorm")
    assert read.standardize is True
    assert np.array_equal(read.predict(X), model.predict(X))


SEARCHES = [
    (MixedNormClassifierCV, lambda y: labels(y), "decision_function"),
    (MixedNormRegressorCV, lambda y: y, "predict"),
    (MultiTaskLearnerCV, lambda y: y, "predict"),
]


@pytest.mark.parametrize(("kind", "target", "scores"), SEARCHES)
def test_searches_do_not_depend_on_units(kind, target, scores):
    X, y, weight = table()
    other = X * [1e3, -1.0, 7.0, 1.0, 1e-2, 1.0] + [0.0, 5.0, -3.0, 10.0, 0.0, 1.0]
    model = kind(alphas=5, cv=3, tol=1e-9, standardize=True)
    first = getattr(model.fit(X, target(y), weight), scores)(X)
    kept = (model.alpha_, model.alpha_max_, *model.cv_results_["mean_test_score"])
    second = getattr(model.fit(other, target(y), weight), scores)(other)
    assert np.allclose(second, first, atol=1e-4)
    new = (model.alpha_, model.alpha_max_, *model.cv_results_["mean_test_score"])
    assert np.allclose(new, kept, rtol=1e-5)


def test_folds_are_scaled_by_their_own_rows():
    X, y, _ = table(n=30)
    split = [(np.arange(20), np.arange(20, 30))]
    X[20:, 1] += 1e4  # which would swamp the deviation of the training rows
    search = MultiTaskLearnerCV(
        alphas=[0.2], cv=split, scoring="score", tol=1e-10, standardize=True
    ).fit(X, y)
    one = MixedNormRegressor(alpha=0.2, tol=1e-10, standardize=True).fit(X[:20], y[:20])
    assert np.isclose(search.best_score_, one.score(X[20:], y[20:]), rtol=1e-5)


def test_extreme_units():
    X, y, weight = table()
    model = MixedNormRegressor(alpha=0.3, tol=1e-8, standardize=True)
    first = model.fit(X, y, weight).predict(X)
    for size in (1e-150, 1e150):
        far = X * [size, 1.0, 1.0, 1.0, 1.0, 1.0]
        assert np.allclose(model.fit(far, y, weight).predict(far), first, atol=1e-4)


def test_rows_of_weight_zero_do_not_count():
    X, y, weight = table()
    weight[:10] = 0.0
    far = X.copy()
    far[:10] *= 1e3
    model = MultiTaskLearner(alpha=0.3, **TIGHT)
    first = model.fit(X, y, weight).coef_
    assert np.allclose(model.fit(far, y, weight).coef_, first, rtol=1e-6, atol=1e-12)


def test_only_true_or_false():
    with pytest.raises(TypeError, match="standardize='yes' must be True or False"):
        MixedNormRegressor(standardize="yes").fit(np.eye(4), np.arange(4.0))


def test_standardized_leaves_what_it_is_given():
    X = np.array([[1.0, 2.0], [3.0, 2.0]])
    inside, units = standardize_columns([X], [np.array([0.25, 0.75])], centred=True)
    assert np.array_equal(X, [[1.0, 2.0], [3.0, 2.0]])
    assert np.allclose(inside[0][:, 0], [-(3**0.5), 3**-0.5])
    assert np.allclose(units["columns"].centre, [2.5, 2.0])


def test_columns_of_scales_far_apart_all_count():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    y = 2.0 * X[:, 0] - X[:, 3]
    for dtype, power in ((np.float32, 20.0), (np.float64, 200.0)):
        Z = (X * 10.0 ** np.linspace(-power, power, 8)).astype(dtype)
        for A in (Z, sp.csr_array(Z)):
            model = MixedNormRegressor(alpha=1e-3, standardize=True).fit(A, y)
            assert model.score(A, y) > 0.99


def test_sparse_columns_far_from_zero_are_refused():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X[:, 1] += 1000.0
    y = X[:, 0]
    model = MixedNormRegressor(alpha=1e-3, standardize=True)
    with pytest.raises(ValueError, match="Column 1 of the sparse X has a mean of"):
        model.fit(sp.csr_array(X.astype(np.float32)), y)
    assert model.fit(X.astype(np.float32), y).score(X.astype(np.float32), y) > 0.99
    assert model.fit(sp.csr_array(X), y).score(sp.csr_array(X), y) > 0.99
