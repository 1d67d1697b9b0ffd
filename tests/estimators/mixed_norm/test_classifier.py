"""What the user does with the classifier."""

import functools
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

import mixnorm
from mixnorm import MixedNormClassifier
from mixnorm.losses import JOINT, Logistic, MarginSoftmax, MulticlassHinge, Squared
from mixnorm.norms import MixedNorm, TraceNorm, as_norm

NORMS = ["l1,1", "l2,1", "l2,2", "linf,1", "trace"]


def draw():
    """Return iris, scaled, with six columns of noise."""
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.hstack([X, np.random.default_rng(0).normal(size=(150, 6))]), y


@pytest.fixture(scope="module")
def data():
    return draw()


@functools.cache
def fit_unscaled(norm):
    """Return a fit to the data as they are; tests must not change it."""
    return MixedNormClassifier(norm, 0.03, tol=1e-3).fit(*draw())


# --- the right solution


def test_few_features_shared_by_all_classes(digits):
    X, y = digits
    model = MixedNormClassifier("l2,1", alpha=0.05).fit(X / 16, y)
    used = np.any(model.coef_ != 0, axis=0)
    assert np.array_equal(np.flatnonzero(used), model.support_)
    assert np.all(model.coef_[:, used] != 0)
    assert 10 < used.sum() < 30
    assert model.score(X / 16, y) > 0.8
    assert model.dual_gap_ <= 1e-4 * np.log(10)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_conditions_of_the_optimum(data, norm, fit_intercept):
    """The gradient lies in alpha times the dual ball, on the face that the weights are on."""
    X, y = data
    alpha = 0.03
    model = MixedNormClassifier(norm, alpha, fit_intercept=fit_intercept, tol=1e-6).fit(X, y)
    theta = (model.predict_proba(X) - np.eye(3)[y]) / len(y)
    gradient, weights, norm = X.T @ theta, model.coef_.T, as_norm(norm)
    assert norm.dual(gradient) <= alpha * (1 + 1e-2)  # the root of the gap
    assert -np.sum(weights * gradient) == pytest.approx(alpha * model.norm_value_, rel=1e-2)
    assert model.norm_value_ == pytest.approx(norm.value(weights))
    if fit_intercept:
        assert theta.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-4)
        assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)
    else:
        assert np.array_equal(model.intercept_, np.zeros(3))
    loss = -np.mean(model.predict_log_proba(X)[np.arange(len(y)), y])
    assert model.objective_ == pytest.approx(loss + alpha * model.norm_value_)


@pytest.mark.parametrize("classes", [2, 3])
def test_like_scikit_learns_l1_penalty(data, classes):
    X, y = data
    y = np.minimum(y, classes - 1)
    ours = MixedNormClassifier("l1,1", alpha=0.02, tol=1e-8).fit(X, y)
    theirs = LogisticRegression(
        C=1 / (len(y) * 0.02), l1_ratio=1.0, solver="saga", tol=1e-7, max_iter=20_000
    ).fit(X, y)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=2e-3)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=2e-3)


@pytest.mark.parametrize(
    ("norm", "loss"), [(norm, "logistic") for norm in NORMS] + [("l2,1", "squared_hinge")]
)
def test_ball_and_penalty_meet(data, norm, loss):
    X, y = data
    penalised = MixedNormClassifier(norm, 0.1, loss=loss).fit(X, y)
    ball = MixedNormClassifier(norm, radius=penalised.norm_value_, loss=loss).fit(X, y)
    assert ball.norm_value_ <= penalised.norm_value_ * (1 + 1e-9)
    alone = penalised.objective_ - 0.1 * penalised.norm_value_
    assert ball.objective_ == pytest.approx(alone, abs=penalised.dual_gap_ + ball.dual_gap_)


@pytest.mark.parametrize("loss", sorted(JOINT))
def test_losses(data, loss):
    X, y = data
    model = MixedNormClassifier("l2,1", 0.02, loss=loss).fit(X, y)
    target = JOINT[loss]().encode(y, 3, X[:, 0])
    scores, weight = model.decision_function(X), np.full(150, 1 / 150)
    value, _ = JOINT[loss]().value_and_residual(scores, target, weight)
    assert model.objective_ == pytest.approx(value + 0.02 * model.norm_value_)
    assert model.score(X, y) > 0.9
    known = loss in ("logistic", "margin")
    assert hasattr(model, "predict_proba") == hasattr(model, "predict_log_proba") == known
    same = MixedNormClassifier("l2,1", 0.02, loss=JOINT[loss]()).fit(X, y)
    assert np.array_equal(same.coef_, model.coef_)


def test_why_there_are_no_probabilities():
    with pytest.raises(AttributeError) as told:
        MixedNormClassifier(loss="hinge").predict_proba([[0.0]])
    assert "probabilities" in str(told.value.__cause__)


def test_two_classes(data):
    X, y = data
    y = np.where(y == 1, "versicolor", "other")
    model = MixedNormClassifier("l2,1", 0.02, tol=1e-7).fit(X, y)
    assert model.coef_.shape == (1, 10)
    assert model.intercept_.shape == (1,)
    assert list(model.classes_) == ["other", "versicolor"]
    scores = model.decision_function(X)
    assert scores.shape == (150,)
    assert np.array_equal(model.predict(X) == "versicolor", scores > 0)
    proba = model.predict_proba(X)
    assert proba.sum(axis=1) == pytest.approx(np.ones(150))
    assert proba[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))
    # Of two columns, which are opposite.
    halves = np.stack([-0.5 * model.coef_[0], 0.5 * model.coef_[0]], axis=1)
    assert model.norm_value_ == pytest.approx(MixedNorm(2, 1).value(halves), rel=1e-5)


def test_groups_of_features(data):
    X, y = data
    groups = np.repeat([0, 1, 2, 3, 4], 2)
    model = MixedNormClassifier(MixedNorm(2, 1, groups=groups), 0.1).fit(X, y)
    used = np.isin(np.arange(10), model.support_).reshape(5, 2)
    assert np.array_equal(used[:, 0], used[:, 1])
    assert 0 < used[:, 0].sum() < 5
    with pytest.raises(ValueError, match="groups"):
        MixedNormClassifier(MixedNorm(2, 1, groups=groups[:8])).fit(X, y)


def test_labels_of_many_types(data):
    X, y = data
    for labels in (y > 0, np.array(["a", "b", "c"])[y], y.astype(np.uint8), y * 1.0, list(y)):
        model = MixedNormClassifier().fit(X, labels)
        assert np.mean(model.predict(X) == np.asarray(labels)) > 0.9


# --- data of all kinds


@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_weights_are_repeats(data, norm):
    X, y = data
    weight = np.random.default_rng(1).integers(0, 4, size=150)
    repeated = np.repeat(np.arange(150), weight)
    ours = MixedNormClassifier(norm, tol=1e-8).fit(X, y, sample_weight=weight)
    theirs = MixedNormClassifier(norm, tol=1e-8).fit(X[repeated], y[repeated])
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-7)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-3)
    scaled = MixedNormClassifier(norm, tol=1e-8).fit(X, y, sample_weight=weight * 1e-200)
    assert scaled.coef_ == pytest.approx(ours.coef_, abs=1e-3)


@pytest.mark.parametrize("loss", sorted(JOINT))
def test_a_class_without_weight_is_not_predicted(data, loss):
    X, y = data
    model = MixedNormClassifier("l2,1", loss=loss).fit(X, y, sample_weight=(y < 2) * 1.0)
    assert list(model.classes_) == [0, 1, 2]
    assert np.isfinite(model.intercept_).all()
    assert set(model.predict(X)) == {0, 1}


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_matrix])
@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_sparse_is_dense(data, make, norm):
    X, y = data
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = MixedNormClassifier(norm, tol=1e-7).fit(X, y)
    sparse = MixedNormClassifier(norm, tol=1e-7).fit(make(X), y)
    assert sparse.coef_ == pytest.approx(dense.coef_, abs=2e-3)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    assert sparse.predict(make(X)) == pytest.approx(dense.predict(X))
    assert sp.issparse(sparse.transform(make(X)))


@pytest.mark.parametrize("norm", NORMS)
def test_float32_is_close(data, norm):
    X, y = data
    narrow = MixedNormClassifier(norm, 0.03).fit(X.astype(np.float32), y)
    wide = MixedNormClassifier(norm, 0.03).fit(X, y)
    assert narrow.coef_.dtype == narrow.intercept_.dtype == np.float32
    assert narrow.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert narrow.objective_ == pytest.approx(wide.objective_, abs=2e-4)
    assert np.mean(narrow.predict(X.astype(np.float32)) == wide.predict(X)) > 0.97


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1e-10, 1e10, 1e30])
@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_the_size_of_X_does_not_matter(data, dtype, size, norm):
    X, y = data
    plain = fit_unscaled(norm)
    other = MixedNormClassifier(norm, 0.03 * size, tol=1e-3).fit((X * size).astype(dtype), y)
    assert other.objective_ == pytest.approx(plain.objective_, abs=2e-3)
    assert other.norm_value_ * size == pytest.approx(plain.norm_value_, rel=5e-2)
    ball = MixedNormClassifier(norm, radius=2 / size, tol=1e-3).fit((X * size).astype(dtype), y)
    assert ball.norm_value_ <= 2 / size * (1 + 1e-5)


def test_columns_that_do_not_vary(data):
    X, y = data
    X = np.hstack([X, np.zeros((150, 1)), np.full((150, 1), 7.0)])
    model = MixedNormClassifier(alpha=0.02).fit(X, y)
    assert not model.coef_[:, 10:].any()
    alone = MixedNormClassifier().fit(X[:, 10:], y)
    assert alone.support_.shape == (0,)
    assert alone.predict_proba(X[:, 10:]) == pytest.approx(np.full((150, 3), 1 / 3))


def test_nothing_is_changed_by_a_fit(data):
    X, y = data
    X, before = X.copy(), X.copy()
    X.flags.writeable = False
    MixedNormClassifier(MixedNorm()).fit(X, y)
    assert np.array_equal(X, before)


# --- bad input


def test_bad_data(data):
    X, y = data
    model = MixedNormClassifier()
    for bad in (np.nan, np.inf):
        Z = X.copy()
        Z[3, 2] = bad
        with pytest.raises(ValueError, match="NaN|infinity"):
            model.fit(Z, y)
    with pytest.raises(ValueError, match="at least 2 classes, but y holds only one class"):
        model.fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="only one class of positive weight"):
        model.fit(X, y, sample_weight=(y == 1) * 1.0)
    with pytest.raises(ValueError, match="zero for every row"):
        model.fit(X, y, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="negative"):
        model.fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(ValueError, match="expected \\(150,\\)"):
        model.fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X, y[:5])
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="0 feature"):
        model.fit(X[:, :0], y)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="1d array|shape"):
        model.fit(X, X[:, :2] > 0)
    with pytest.raises(ValueError, match="expecting 10 features"):
        model.fit(X, y).predict(X[:, :3])


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_losses_that_are_none_on_labels(data, loss):
    with pytest.raises(ValueError, match=r"is not a loss on labels; choose one of \['hinge'"):
        MixedNormClassifier(loss=loss).fit(*data)


def test_a_loss_that_sees_a_common_shift(data):
    class Shifting(MulticlassHinge):
        shift_invariant = False

    with pytest.raises(ValueError, match="where a constant is added to all scores"):
        MixedNormClassifier(loss=Shifting()).fit(*data)


def test_warm_start_refuses_other_classes(data):
    X, y = data
    model = MixedNormClassifier(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="y has other classes"):
        model.fit(X, y + 1)


# --- scikit-learn's habits


def test_clone_pickle_and_nested_parameters(data):
    X, y = data
    model = MixedNormClassifier(MixedNorm(2, 1), loss=MarginSoftmax()).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    other = clone(model).set_params(norm__inner=np.inf, loss__margin=0.5)
    assert model.norm.inner == 2
    assert other.norm == MixedNorm(np.inf, 1)
    assert not hasattr(other, "coef_")
    assert np.any(other.fit(X, y).coef_ != model.coef_)


def test_in_a_grid_search(data):
    pipeline = make_pipeline(StandardScaler(), MixedNormClassifier())
    grid = {
        "mixednormclassifier__norm": ["l2,1", TraceNorm()],
        "mixednormclassifier__alpha": [0.01, 0.1],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(*data)
    assert search.best_score_ > 0.9


def test_names_of_columns(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"c{column}" for column in range(10)])
    model = MixedNormClassifier(alpha=0.1).set_output(transform="pandas").fit(frame, y)
    assert list(model.transform(frame).columns) == [f"c{column}" for column in model.support_]
    assert list(model.feature_names_in_) == list(frame.columns)


def test_sample_weight_is_routed(data):
    X, y = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = MixedNormClassifier().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=(y < 2) * 1.0)
    assert set(pipeline.predict(X)) == {0, 1}


@pytest.mark.parametrize("classes", [2, 3])
def test_storage(tmp_path, data, classes):
    X, y = data
    norm = MixedNorm(2, 1, groups=tuple(range(10)))
    model = MixedNormClassifier(norm, 0.1, loss=MarginSoftmax(0.5)).fit(
        X, np.minimum(y, classes - 1)
    )
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.norm == norm
    assert (loaded.dual_gap_, loaded.rank_) == (model.dual_gap_, model.rank_)


# --- weights of classes


@pytest.mark.parametrize("given", ["balanced", {0: 1.0, 1: 5.0, 2: 0.5}, {1: 3.0}])
def test_class_weights_are_sample_weights(data, given):
    X, y = data
    X, y = X[:120], y[:120]  # of the last class there are few
    own = np.random.default_rng(0).integers(0, 3, size=120)
    counts = np.bincount(y, weights=own)
    by_class = own.sum() / (3 * counts) if given == "balanced" else None
    for weight, factors in [
        (None, compute_sample_weight(given, y)),
        (own, by_class[y] if given == "balanced" else compute_sample_weight(given, y)),
    ]:
        model = MixedNormClassifier(alpha=0.05, class_weight=given)
        model.fit(X, y, sample_weight=weight)
        total = factors if weight is None else factors * weight
        wanted = MixedNormClassifier(alpha=0.05).fit(X, y, sample_weight=total)
        assert model.coef_ == pytest.approx(wanted.coef_, abs=1e-9)
        assert model.intercept_ == pytest.approx(wanted.intercept_, abs=1e-9)
    path = MixedNormClassifier(class_weight=given).path(X, y, alphas=3)
    weight = compute_sample_weight(given, y)
    wanted = MixedNormClassifier().path(X, y, alphas=3, sample_weight=weight)
    assert path.coefs == pytest.approx(wanted.coefs, abs=1e-9)


def test_class_weights_of_texts_and_as_in_scikit_learn(data):
    X, y = data
    names = np.array(["a", "b", "c"])[y]
    given = {"a": 1.0, "b": 4.0, "c": 1.0}
    ours = MixedNormClassifier("l2,2", alpha=1e-4, tol=1e-8, class_weight=given).fit(X, names)
    same = MixedNormClassifier("l2,2", alpha=1e-4, tol=1e-8).fit(X, names, 1.0 + 3.0 * (y == 1))
    assert ours.coef_ == pytest.approx(same.coef_, abs=1e-6)
    two = np.where(y == 0, "few", "many")
    hinge = MixedNormClassifier(loss="hinge", class_weight="balanced").fit(X, two)
    assert hinge.classes_.tolist() == ["few", "many"]


def test_a_class_of_weight_zero_does_not_count(data):
    X, y = data
    model = MixedNormClassifier(class_weight={2: 0.0}).fit(X, y)
    assert set(model.predict(X)) == {0, 1}
    with pytest.raises(ValueError, match="only one class of positive weight"):
        MixedNormClassifier(class_weight={1: 0, 2: 0}).fit(X, y)
    weight = np.where(y == 2, 0.0, 1.0)
    balanced = MixedNormClassifier(class_weight="balanced").fit(X, y, sample_weight=weight)
    assert set(balanced.predict(X)) == {0, 1}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("even", ValueError, "class_weight='even' must be None, 'balanced', or a dictionary"),
        ([1, 2], TypeError, r"class_weight=\[1, 2\] must be None, 'balanced', or a dictionary"),
        ({0: -1.0}, ValueError, "class_weight has -1.0 for 0; give finite numbers of zero or"),
        ({0: "a"}, ValueError, "class_weight has 'a' for 0; give"),
        ({7: 2.0}, ValueError, r"are not in class_weight. Its keys are labels of y"),
    ],
)
def test_wrong_class_weights(data, given, error, message):
    with pytest.raises(error, match=message):
        MixedNormClassifier(class_weight=given).fit(*data)


def test_class_weights_are_stored(data, tmp_path):
    X, y = data
    model = MixedNormClassifier(class_weight={0: 2.0, 1: 1.0, 2: 1.0}).fit(X, y)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert loaded.class_weight == model.class_weight
    assert np.array_equal(loaded.predict(X), model.predict(X))
