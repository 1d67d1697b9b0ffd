"""What the user does with JointBoost."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.callback import ProgressBar
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import mixnorm
from mixnorm import JointBoostClassifier
from mixnorm.datasets import load
from mixnorm.engines import boosting
from mixnorm.exceptions import (
    DatasetNotFoundError,
    FewerFeaturesWarning,
    InterruptedFitWarning,
    ModelFileError,
)
from mixnorm.models import ClassOutputs, Inputs, StumpPath
from mixnorm.storage import store


@pytest.fixture(scope="module")
def model(digits):
    return JointBoostClassifier(n_rounds=30).fit(*digits)


# --- the rounds and what is read off them


def test_path_has_a_row_per_round(model):
    frame = pd.DataFrame(model.path_)
    assert list(frame) == ["feature", "threshold", "n_classes", "error", "loss", "seconds"]
    assert len(frame) == len(model.rounds_) == 30
    assert frame["loss"].is_monotonic_decreasing
    assert frame["loss"][0] < model.null_loss_ == 1.0
    assert frame["n_classes"].tolist() == [len(step.subset) for step in model.rounds_]
    assert list(model.selected_) == list(dict.fromkeys(frame["feature"]))


def test_scores_are_the_sum_of_the_rounds(model, digits):
    X, _ = digits
    H = np.zeros((len(X), 10))
    for step in model.rounds_:
        h = np.tile(step.constants, (len(X), 1))
        h[:, step.subset] = step.a * (X[:, step.feature] > step.threshold)[:, None] + step.b
        H += h
        assert not step.constants[step.subset].any()
    assert model.decision_function(X) == pytest.approx(H)


def test_loss_is_that_of_the_scores(model, digits):
    X, y = digits
    Z = np.where(np.arange(10) == y[:, None], 1.0, -1.0)
    losses = [np.exp(-Z * scores).mean() for scores in model.staged_decision_function(X)]
    assert model.path_["loss"] == pytest.approx(losses, rel=1e-9)


def test_classes_share_stumps(model):
    sizes = model.path_["n_classes"]
    assert sizes.max() > 1
    assert sizes.min() >= 1
    assert sizes.max() <= 10


def test_truncate_is_staged_predict_is_a_shorter_fit(model, digits):
    X, y = digits
    stages = list(model.staged_predict(X))
    for size in (1, 7, 30):
        smaller = model.truncate(size)
        assert np.array_equal(smaller.predict(X), stages[size - 1])
        assert smaller.n_rounds == size == len(smaller.path_["loss"])
        direct = JointBoostClassifier(size).fit(X, y)
        assert np.array_equal(direct.decision_function(X), smaller.decision_function(X))
        assert np.array_equal(direct.selected_, smaller.selected_)
    assert len(model.rounds_) == 30


@pytest.mark.parametrize("size", [0, 31, -1])
def test_truncate_out_of_range(model, size):
    with pytest.raises(ValueError, match="1 to 30 rounds; fit with a larger n_rounds"):
        model.truncate(size)
    with pytest.raises(TypeError, match="whole number"):
        model.truncate(1.5)


def test_cost_counts_stumps_and_classes(model):
    stumps = {(step.feature, step.threshold) for step in model.rounds_}
    assert model.cost_.comparisons == len(stumps) <= 30
    assert model.cost_.multiply_adds <= sum(len(step.subset) for step in model.rounds_)
    assert model.truncate(1).cost_ == (len(model.rounds_[0].subset), 1)


def test_as_a_selector(model, digits):
    X, _ = digits
    assert np.array_equal(model.transform(X), X[:, np.sort(model.selected_)])
    assert model.get_support().sum() == len(model.selected_) <= 30


def test_it_learns(digits):
    X, X_test, y, y_test = train_test_split(*digits, random_state=0, stratify=digits[1])
    model = JointBoostClassifier(150).fit(X, y)
    assert model.score(X_test, y_test) > 0.93
    errors = [np.mean(found != y_test) for found in model.staged_predict(X_test)]
    assert errors[-1] < errors[20] < errors[2]


# --- probabilities and labels


def test_probabilities(model, digits):
    X, y = digits
    P = model.predict_proba(X)
    assert P.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(P)
    each = 1 / (1 + np.exp(-2 * model.decision_function(X)))
    assert each / each.sum(axis=1, keepdims=True) == pytest.approx(P)
    assert log_loss(y, P) < 1.0


def test_probabilities_of_extreme_scores():
    X = np.arange(6.0)[:, None]
    model = JointBoostClassifier(3000).fit(X, [0, 0, 1, 1, 2, 2])
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.predict(X).tolist() == [0, 0, 1, 1, 2, 2]


def test_two_classes_have_one_score():
    X, y = load_breast_cancer(return_X_y=True)
    model = JointBoostClassifier(30).fit(X, np.where(y == 1, "yes", "no"))
    scores = model.decision_function(X)
    assert scores.shape == (len(X),)
    assert np.array_equal(model.predict(X) == "yes", scores > 0)
    assert model.predict_proba(X)[:, 1] == pytest.approx(1 / (1 + np.exp(-2 * scores)))
    assert all(step.subset.tolist() == [0] for step in model.rounds_)
    assert model.score(X, np.where(y == 1, "yes", "no")) > 0.97


@pytest.mark.parametrize("labels", [["a", "b", "c"], [10, -3, 7], [True, False, True]])
def test_labels_of_any_type(labels):
    X, y = load_iris(return_X_y=True)
    named = np.asarray(labels)[y]
    assert JointBoostClassifier(10).fit(X, named).score(X, named) > 0.9


# --- data


FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "bytes": lambda X: X.astype(np.uint8),
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
}


@pytest.mark.parametrize("form", FORMS)
def test_data_of_any_form_give_the_same(model, digits, form):
    X, y = digits
    other = FORMS[form](X)
    found = JointBoostClassifier(30).fit(other, y)
    assert np.array_equal(found.decision_function(other), model.decision_function(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_are_on_their_side(dtype):
    # Thresholds lie between values of the data's own type, whatever is predicted on.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(dtype)
    X[:, 1] = np.float32(1.0) + np.arange(300) * np.finfo(dtype).eps
    y = (np.arange(300) // 37) % 3
    model = JointBoostClassifier(40, n_bins=None).fit(X, y)
    assert np.array_equal(model.predict(X), model.predict(X.astype(np.float64)))
    Z = np.where(np.arange(3) == y[:, None], 1.0, -1.0)
    assert model.path_["loss"][-1] == pytest.approx(np.exp(-Z * model.decision_function(X)).mean())


def test_names(digits):
    X, y = digits
    table = pd.DataFrame(X, columns=[f"pixel {column}" for column in range(64)])
    model = JointBoostClassifier(5).fit(table, y).set_output(transform="pandas")
    kept = [f"pixel {column}" for column in np.sort(model.selected_)]
    assert list(model.get_feature_names_out()) == kept == list(model.transform(table))


def test_sample_weight():
    X, y = load_wine(return_X_y=True)
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = JointBoostClassifier(15, n_bins=20).fit(X, y, sample_weight=counts)
    rows = np.repeat(np.arange(len(X)), counts)
    repeated = JointBoostClassifier(15, n_bins=20).fit(X[rows], y[rows])
    assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-9)
    huge = JointBoostClassifier(15, n_bins=20).fit(X, y, sample_weight=1e300 * counts)
    assert huge.decision_function(X) == pytest.approx(weighted.decision_function(X), abs=1e-9)


@pytest.mark.parametrize(
    ("weight", "message"),
    [(np.zeros(150), "zero for every row"), (-np.ones(150), "negative"), (np.ones(9), "per row")],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        JointBoostClassifier(2).fit(*load_iris(return_X_y=True), sample_weight=weight)


def test_a_class_without_weight():
    X, y = load_iris(return_X_y=True)
    model = JointBoostClassifier(5).fit(X, y, sample_weight=np.where(y == 2, 0.0, 1.0))
    assert set(model.predict(X)) == {0, 1}


def test_max_features_is_reproducible(digits):
    X, y = digits
    one, same, other = (
        JointBoostClassifier(10, max_features=0.2, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    )
    assert np.array_equal(one.path_["feature"], same.path_["feature"])
    assert not np.array_equal(one.path_["feature"], other.path_["feature"])


# --- mistakes


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_rounds": 0}, ValueError, "n_rounds=0 must be at least 1"),
        ({"n_rounds": 2.5}, TypeError, "n_rounds=2.5 must be a whole number"),
        ({"n_rounds": True}, TypeError, "whole number"),
        ({"n_rounds": None}, TypeError, "whole number"),
        ({"n_bins": 1}, ValueError, "n_bins=1 must be at least 2 or None"),
        ({"n_bins": "many"}, TypeError, "whole number or None"),
        ({"max_features": 0.0}, ValueError, "above 0 and at most 1"),
        ({"max_features": 1.5}, ValueError, "above 0 and at most 1"),
        ({"max_features": np.nan}, ValueError, "above 0 and at most 1"),
        ({"max_features": "sqrt"}, TypeError, "must be a number"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        JointBoostClassifier(**params).fit(*load_iris(return_X_y=True))


def test_one_class_and_no_fit():
    with pytest.raises(ValueError, match="at least 2 classes"):
        JointBoostClassifier().fit(np.eye(3), [1, 1, 1])
    with pytest.raises(NotFittedError):
        JointBoostClassifier().predict(np.eye(3))
    with pytest.raises(NotFittedError):
        JointBoostClassifier().truncate(1)


# --- how a fit ends


def test_nothing_more_to_gain():
    with pytest.warns(FewerFeaturesWarning, match="after 0 of 9 rounds: no stump lowers the loss"):
        model = JointBoostClassifier(9).fit([[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1])
    assert model.predict([[0.0]]).tolist() == [0]
    with pytest.raises(ValueError, match="no model with rounds"):
        model.truncate(1)


def test_an_interrupt_keeps_the_rounds_done(monkeypatch, digits):
    X, y = digits
    real, calls = boosting.engine._State.add, []

    def add(self, features):
        calls.append(features)
        if len(calls) in (4, 5):
            raise KeyboardInterrupt
        return real(self, features)

    monkeypatch.setattr(boosting.engine._State, "add", add)
    model = JointBoostClassifier(10)
    with pytest.warns(InterruptedFitWarning, match="after 3 of 10 rounds"):
        model.fit(X, y)
    assert len(model.rounds_) == 3
    before = model.predict(X)
    with pytest.raises(KeyboardInterrupt):  # in the first round
        model.fit(X, y % 2)
    assert np.array_equal(model.predict(X), before)


class Recorder:
    def __init__(self, stop_at=None):
        self.stop_at, self.ended, self.sizes = stop_at, [], []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended.append(context.task_name)
        if context.task_name == "round":
            self.sizes.append(len(fitted_estimator.rounds_))
            assert fitted_estimator.predict(X).shape == (len(X),)
        return len(self.sizes) == self.stop_at


def test_progress():
    recorder = Recorder()
    JointBoostClassifier(3).set_callbacks(recorder).fit(*load_iris(return_X_y=True))
    assert recorder.ended == ["round", "round", "round", "fit"]
    assert recorder.sizes == [1, 2, 3]


def test_a_callback_can_stop_the_fit():
    model = JointBoostClassifier(9).set_callbacks(Recorder(stop_at=2))
    assert len(model.fit(*load_iris(return_X_y=True)).rounds_) == 2


def test_progress_bar(capsys):
    JointBoostClassifier(3).set_callbacks(ProgressBar()).fit(*load_iris(return_X_y=True))
    assert "JointBoostClassifier" in capsys.readouterr().out


# --- model files


def again(model):
    return store._read(io.BytesIO(b"".join(store._pack_model(model))), "the file")


@pytest.mark.parametrize("labels", ["ten", "two"])
def test_stored_models(digits, labels, tmp_path):
    X, y = digits
    y = y if labels == "ten" else y > 4
    model = JointBoostClassifier(np.int64(12), max_features=0.5, random_state=0).fit(X, y)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    loaded = mixnorm.load(tmp_path / "model.mixnorm")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(loaded.path_["seconds"], model.path_["seconds"])
    assert loaded.cost_ == model.cost_
    assert np.array_equal(loaded.truncate(3).predict(X), model.truncate(3).predict(X))


@pytest.mark.filterwarnings("ignore")
def test_a_stored_model_without_rounds():
    model = JointBoostClassifier(9).fit([[0.0], [1.0]] * 2, [0, 0, 1, 1])
    assert again(model).predict([[0.0]]).tolist() == model.predict([[0.0]]).tolist()
    assert again(model).model_.path.exhausted


ROUND = {
    "another column": {"feature": 99},
    "a negative column": {"feature": -1},
    "an infinite threshold": {"threshold": np.inf},
    "shared by none": {"subset": np.zeros(0, dtype=np.intp)},
    "shared by another class": {"subset": np.array([3], dtype=np.intp)},
    "shared twice": {"subset": np.array([1, 1], dtype=np.intp)},
    "constants of those who share": {"constants": np.ones(3)},
    "another dtype": {"constants": np.zeros(3, dtype=np.float32)},
    "few constants": {"constants": np.zeros(2)},
    "no step": {"a": None},
}
MODEL = {
    "another kind of path": {"path": (1, 2)},
    "more scores": {"path": StumpPath((), 4)},
    "no flag": {"path": StumpPath((), 3, interrupted=1)},
    "other classes": {"outputs": ClassOutputs(np.arange(4))},
    "no classes": {"outputs": ClassOutputs("abc")},
    "no columns": {"inputs": Inputs(0)},
}


@pytest.mark.parametrize("damage", [*ROUND, *MODEL])
def test_a_damaged_model_is_refused(damage, tmp_path):
    estimator = JointBoostClassifier(4).fit(*load_iris(return_X_y=True))
    model = estimator.model_
    if damage in ROUND:
        first, *others = model.path.rounds
        path = replace(model.path, rounds=(replace(first, **ROUND[damage]), *others))
        estimator.model_ = replace(model, path=path)
    else:
        estimator.model_ = replace(model, **MODEL[damage])
    with pytest.raises(ModelFileError, match="could not be read again"):
        mixnorm.save(estimator, tmp_path / "model.mixnorm")


def test_a_broken_model_is_not_stored(tmp_path):
    model = JointBoostClassifier(4).fit(*load_iris(return_X_y=True))
    model.n_rounds = -1
    with pytest.raises(ModelFileError, match="n_rounds=-1 must be at least 1"):
        mixnorm.save(model, tmp_path / "model.mixnorm")


# --- data of the paper


@pytest.mark.parametrize(("name", "error"), [("pendigits", 0.16), ("satimage", 0.18)])
def test_on_the_data_of_the_paper(name, error):
    try:
        stored = load(name, download_if_missing=False)
    except DatasetNotFoundError as missing:
        pytest.skip(str(missing))
    model = JointBoostClassifier(60).fit(stored.X, stored.y)
    assert 1 - model.score(stored.X_test, stored.y_test) < error
