"""Many tasks under one norm: forms of the data in, forms of the predictions out."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, r2_score

from mixnorm.estimators import MultiTaskLearner, MultiTaskLearnerCV
from mixnorm.losses import Huber

NORMS = ["l1,1", "l2,1", "l2,2", "linf,1", "trace"]
TIGHT = {"tol": 1e-10, "max_iter": 5000}


def test_predictions_come_in_the_form_of_the_data(apart):
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses, alpha=0.02).fit(Xs, ys)
    assert model.tasks_ == ["cost", "kind", "late"]
    assert model.classes_[0] is None
    assert [labels.tolist() for labels in model.classes_[1:]] == [["a", "b"], [False, True]]
    found = model.predict(Xs)
    assert list(found) == model.tasks_
    assert set(found["kind"]) == {"a", "b"}
    assert found["late"].dtype == bool
    assert np.mean(found["kind"] == ys["kind"]) > 0.8
    some = model.predict({"late": Xs["late"]})
    assert list(some) == ["late"]
    assert np.array_equal(some["late"], found["late"])
    listed = model.predict(list(Xs.values()))
    assert isinstance(listed, list)
    assert np.array_equal(listed[1], found["kind"])
    for task in ("kind", 1):
        assert np.array_equal(model.predict(Xs["kind"], task=task), found["kind"])
    everything = model.predict(Xs["kind"])
    assert everything.shape == (50, 3)
    assert everything.dtype == object
    assert everything[:, 1].tolist() == found["kind"].tolist()
    scores = model.decision_function(Xs)
    assert np.array_equal(scores["kind"] >= 0, found["kind"] == "b")
    assert model.decision_function(Xs["kind"]).shape == (50, 3)
    assert np.array_equal(model.decision_function(Xs["late"], "late"), scores["late"])


def test_score_is_the_mean_of_r2_and_accuracies(apart):
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses, alpha=0.02).fit(Xs, ys)
    found = model.predict(Xs)
    expected = [
        r2_score(ys["cost"], found["cost"]),
        accuracy_score(ys["kind"], found["kind"]),
        accuracy_score(ys["late"], found["late"]),
    ]
    assert model.score(Xs, ys) == pytest.approx(np.mean(expected))
    assert model.score({"cost": Xs["cost"]}, {"cost": ys["cost"]}) == pytest.approx(expected[0])
    weight = {name: np.arange(len(y)) for name, y in ys.items()}
    expected = [
        r2_score(ys["cost"], found["cost"], sample_weight=weight["cost"]),
        *(accuracy_score(ys[n], found[n], sample_weight=weight[n]) for n in ("kind", "late")),
    ]
    assert model.score(Xs, ys, sample_weight=weight) == pytest.approx(np.mean(expected))


def test_score_leaves_out_what_has_no_label(holes):
    X, Y = holes
    model = MultiTaskLearner(alpha=0.1).fit(X, Y)
    expected = []
    for task in range(4):
        rows = ~np.isnan(Y[:, task])
        expected.append(r2_score(Y[rows, task], model.predict(X)[rows, task]))
    assert model.score(X, Y) == pytest.approx(np.mean(expected))
    few = np.full((2, 4), np.nan)
    few[:, 2] = Y[:2, 2] = [1.0, 2.0]
    few[0, 1] = 1.0  # no R² of one number
    assert model.score(X[:2], few) == r2_score([1.0, 2.0], model.predict(X[:2])[:, 2])
    assert model.score(X[:2], {2: [1.0, 2.0]}) == model.score(X[:2], few)
    with pytest.warns(UndefinedMetricWarning, match="No task has a label"):
        assert np.isnan(model.score(X[:1], few[:1]))
    constant = np.full((3, 4), 7.0)
    assert model.score(X[:3], constant) == 0.0


def test_columns_of_frames_are_names(table):
    X, Y = table
    frame = pd.DataFrame(X, columns=[f"f{column}" for column in range(12)])
    targets = pd.DataFrame(Y, columns=["a", "b", "c", "d"])
    targets["d"] = np.where(targets["d"] > targets["d"].median(), "big", "small")
    losses = {"a": "squared", "b": Huber(0.5), "c": "squared", "d": "hinge"}
    model = MultiTaskLearner("l2,1", losses).fit(frame, targets)
    assert model.tasks_ == ["a", "b", "c", "d"]
    assert model.feature_names_in_[0] == "f0"
    assert model.predict(frame).dtype == object
    assert model.score(frame, targets) > 0.7
    assert model.score(frame, targets[["d", "a"]]) > 0.7
    assert list(model.get_feature_names_out()) == [f"f{column}" for column in model.support_]
    assert model.transform(frame).shape == (60, len(model.support_))


def test_labels_that_are_numbers_give_numbers(table):
    X, Y = table
    Y = np.column_stack([Y[:, 0], np.where(Y[:, 1] > np.median(Y[:, 1]), 3.0, 7.0)])
    model = MultiTaskLearner("l2,1", ["squared", "logistic"]).fit(X, Y)
    found = model.predict(X)
    assert found.dtype == np.float64
    assert set(found[:, 1]) == {3.0, 7.0}


def test_one_column(table):
    X, Y = table
    model = MultiTaskLearner("l2,1").fit(X, Y[:, 0])
    assert model.coef_.shape == (1, 12)
    assert model.predict(X).shape == (60,)
    assert MultiTaskLearner("l2,1").fit(X, Y[:, :1]).predict(X).shape == (60, 1)
    labels = MultiTaskLearner("l2,1", "hinge").fit(X, Y[:, 0] > 3)
    assert labels.decision_function(X).shape == (60,)
    assert labels.predict(X).dtype == bool


def test_only_tasks_with_labels_have_a_decision_function(table):
    X, Y = table
    assert not hasattr(MultiTaskLearner(), "decision_function")
    assert not hasattr(MultiTaskLearner().fit(X, Y), "decision_function")
    assert hasattr(MultiTaskLearner(losses=["squared", "hinge"]), "decision_function")
    assert hasattr(MultiTaskLearner(losses={"a": "hinge"}), "decision_function")


def test_probabilities(apart):
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses | {"late": "logistic"}, alpha=0.02).fit(Xs, ys)
    scores = model.decision_function(Xs["late"], "late")
    found = model.predict_proba(Xs["late"], "late")
    assert found.shape == (40, 2)
    assert found[:, 1] == pytest.approx(1.0 / (1.0 + np.exp(-scores)))
    assert found.sum(axis=1) == pytest.approx(1.0)
    chosen = model.classes_[2][np.argmax(found, axis=1)]
    assert np.array_equal(chosen, model.predict(Xs["late"], "late"))
    some = model.predict_proba({"late": Xs["late"]})
    assert list(some) == ["late"]
    assert np.array_equal(some["late"], found)
    for given in (Xs, list(Xs.values()), Xs["cost"]):
        with pytest.raises(ValueError, match="Task 'cost' has the loss .*, which has no probabil"):
            model.predict_proba(given)


def test_probabilities_of_a_table(table):
    X, Y = table
    model = MultiTaskLearner("l2,1", "logistic").fit(X, Y - Y.mean(axis=0) > 0)
    found = model.predict_proba(X)
    assert [own.shape for own in found] == [(60, 2)] * 4
    assert np.array_equal(found[2], model.predict_proba(X, task=2))
    assert [own.shape for own in model.predict_proba([X] * 4)] == [(60, 2)] * 4
    single = MultiTaskLearner("l2,1", "logistic").fit(X, Y[:, 0] > 3)
    assert single.predict_proba(X).shape == (60, 2)
    chosen = MultiTaskLearnerCV("l2,1", "logistic", alphas=3, cv=2).fit(X, Y[:, 0] > 3)
    assert chosen.predict_proba(X).shape == (60, 2)


def test_only_some_losses_have_probabilities(table):
    X, Y = table
    assert not hasattr(MultiTaskLearner(), "predict_proba")
    assert not hasattr(MultiTaskLearner(losses=["squared", "hinge"]), "predict_proba")
    assert hasattr(MultiTaskLearner(losses={"a": "logistic", "b": "squared"}), "predict_proba")
    hinge = MultiTaskLearner(losses="hinge").fit(X, Y[:, 0] > 3)
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        hinge.predict_proba(X)
    assert "the loss 'logistic'" in str(caught.value.__cause__)


def test_transform_of_several_matrices(apart):
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses, alpha=0.1)
    found = model.fit_transform(Xs, ys)
    assert list(found) == list(Xs)
    assert np.array_equal(found["late"], Xs["late"][:, model.support_])
    assert len(model.transform(list(Xs.values()))) == 3


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_data(holes, apart, container):
    X, Y = holes
    X = np.where(X > 1.0, X, 0.0)
    dense = MultiTaskLearner(alpha=0.1, **TIGHT).fit(X, Y)
    thin = MultiTaskLearner(alpha=0.1, **TIGHT).fit(container(X), Y)
    assert thin.coef_ == pytest.approx(dense.coef_, abs=1e-6)
    assert thin.predict(container(X)) == pytest.approx(dense.predict(X), abs=1e-5)
    Xs, ys, losses = apart
    losses = {**losses, "late": "logistic"}
    dense = MultiTaskLearner("l2,1", losses, **TIGHT).fit(Xs, ys)
    mixed = {name: container(X) if name == "kind" else X for name, X in Xs.items()}
    thin = MultiTaskLearner("l2,1", losses, **TIGHT).fit(mixed, ys)
    assert thin.coef_ == pytest.approx(dense.coef_, abs=1e-5)
    assert thin.score(mixed, ys) == pytest.approx(dense.score(Xs, ys))


def test_float32_stays_where_it_is_exact_enough(holes, apart):
    X, Y = holes
    X32 = X.astype(np.float32)
    model = MultiTaskLearner(alpha=0.1).fit(X32, Y + 1e4)
    assert model.coef_.dtype == np.float32
    wide = MultiTaskLearner(alpha=0.1).fit(X, Y + 1e4)
    assert model.coef_ == pytest.approx(wide.coef_, abs=1e-2)
    assert model.score(X32, Y + 1e4) == pytest.approx(wide.score(X, Y + 1e4), abs=1e-3)
    assert MultiTaskLearner(alpha=0.1, tol=1e-8).fit(X32, Y).coef_.dtype == np.float64
    Xs, ys, losses = apart
    mixed = {name: X.astype(np.float32 if name == "cost" else float) for name, X in Xs.items()}
    assert MultiTaskLearner("l2,1", losses).fit(mixed, ys).coef_.dtype == np.float64
