"""Online learning of several tasks, given one at a time, together, or in turns."""

import numpy as np
import pytest
import scipy.sparse as sp

import mixnorm
from mixnorm import OnlineMultiTaskLearner
from mixnorm.engines.mirror import BlockLearner
from mixnorm.losses import Huber, Logistic, Squared

N, D, K = 200, 12, 4


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    Y = X[:, :1] * np.arange(1, K + 1) + 0.1 * rng.normal(size=(N, K))
    return X, Y, rng.integers(K, size=N)


def close(one, other, tolerance=1e-10):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=tolerance)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=0, atol=tolerance)
    assert one.loss_ == pytest.approx(other.loss_, rel=tolerance)
    assert (one.mistakes_, one.n_rounds_) == (other.mistakes_, other.n_rounds_)


@pytest.mark.parametrize("norm", ["l2,1", "l1,1", "l2,2", "trace"])
@pytest.mark.parametrize("average", [False, True])
def test_a_row_of_one_task_is_a_row_with_the_others_missing(data, norm, average):
    X, Y, task = data
    alone = np.full((N, K), np.nan)
    alone[np.arange(N), task] = Y[np.arange(N), task]
    models = [OnlineMultiTaskLearner(norm, average=average) for _ in range(4)]
    models[0].partial_fit(X[:1], Y[:1])
    for model in models[1:]:
        model.partial_fit(X[:1], Y[:1])
    models[0].partial_fit(X, Y[np.arange(N), task], task=task)
    models[1].partial_fit(X, alone)
    models[2].partial_fit(sp.csr_matrix(X), alone)
    # Inputs of tasks without a target do not count.
    models[3].partial_fit(np.where(np.isnan(alone)[:, :, None], np.nan, X[:, None]), alone)
    for other in models[1:]:
        close(models[0], other)


@pytest.mark.parametrize("norm", ["l2,1", "l1,1", "l2,2", "trace"])
def test_the_same_input_for_each_task(data, norm):
    X, Y, _ = data
    one = OnlineMultiTaskLearner(norm).partial_fit(X, Y)
    repeated = np.repeat(X[:, None], K, axis=1)
    other = OnlineMultiTaskLearner(norm).partial_fit(repeated, Y)
    close(one, other)
    np.testing.assert_allclose(other.predict(repeated), one.predict(X), atol=1e-9)
    assert isinstance(other._learner, BlockLearner)


@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_forms_in_turns(data, norm, tmp_path):
    """Task ids, shared inputs, inputs of their own, one row, a file: all go on from each other."""
    X, Y, task = data
    own = np.random.default_rng(1).normal(size=(N, K, D))
    model = OnlineMultiTaskLearner(norm, average=True)
    model.partial_fit(X, Y)
    model.learn_one(X[0], Y[0, 2], 2)
    model.learn_one(X[1], Y[1, 1], 1)
    model.partial_fit(X, Y)  # between two single rows
    model.learn_one(X[2], Y[2, 3], 3)
    model.partial_fit(own, Y)
    model.partial_fit(X, Y[np.arange(N), task], task=task)
    model.learn_one(X[0], 1.0, 0)
    mixnorm.save(model, tmp_path / "model")
    again = mixnorm.load(tmp_path / "model")
    for each in (model, again):
        each.partial_fit(own, Y).partial_fit(X, Y[:, 0], task=np.zeros(N, dtype=int))
    assert np.array_equal(model.coef_, again.coef_)
    assert model.n_rounds_ == 6 * N + 4
    curve = model.curve_
    assert np.all(np.diff(curve["rounds"]) > 0)
    assert curve["rounds"][-1] == model.n_rounds_ // curve["rounds"][0] * curve["rounds"][0]


def test_single_rows_between_shared_ones(data):
    """What a single row speaks of does not depend on what came between."""
    X, Y, task = data
    one, other = OnlineMultiTaskLearner(), OnlineMultiTaskLearner()
    for model in (one, other):
        model.partial_fit(X[:5], Y[:5])
    for i in range(N):
        one.learn_one(X[i], float(Y[i, task[i]]), int(task[i]))
        other.partial_fit(X[i : i + 1], Y[i, task[i]][None], task=task[i : i + 1])
        for model in (one, other):
            model.partial_fit(X[i : i + 1], Y[i : i + 1])
    close(one, other, 1e-14)


def test_it_learns(data):
    X, Y, task = data
    X = np.tile(X, (20, 1))
    Y, task = np.tile(Y, (20, 1)), np.tile(task, 20)
    model = OnlineMultiTaskLearner("l2,1").partial_fit(X, Y[np.arange(len(X)), task], task=task)
    error = model.predict(X, task=task) - Y[np.arange(len(X)), task]
    assert np.mean(error**2) < 0.1 * np.mean(Y**2)
    assert model.predict(X).shape == (len(X), K)
    assert np.array_equal(
        model.predict(X)[np.arange(len(X)), np.searchsorted(model.tasks_, task)],
        model.predict(X, task=task),
    )


# --- tasks


def test_new_tasks(data):
    X, Y, task = data
    names = np.array(["b", "a", "long name", "c"])[task]
    model = OnlineMultiTaskLearner()
    early = np.isin(names, ["a", "b"])
    y = Y[np.arange(N), task]
    model.partial_fit(X[early], y[early], task=names[early])
    assert model.tasks_.tolist() == ["a", "b"]
    model.partial_fit(X, y, task=names)
    assert model.tasks_.tolist() == ["a", "b", "c", "long name"]
    model.learn_one(X[0], 1.0, "another")
    model.learn_one(X[0], 1.0, "another")
    assert model.coef_.shape == (5, D)
    assert model.predict(X, task=names).shape == (N,)
    with pytest.raises(ValueError, match="'nobody' has not been seen"):
        model.predict(X, task=["nobody"] * N)
    with pytest.raises(ValueError, match="y has 2 tasks, and there are 5"):
        model.partial_fit(X, Y[:, :2])
    with pytest.raises(TypeError, match="another type"):
        model.partial_fit(X[:1], y[:1], task=[3])
    assert len(model.tasks_) == 5


def test_refusals(data):
    X, Y, task = data
    model = OnlineMultiTaskLearner()
    with pytest.raises(ValueError, match="task is missing"):
        model.partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="one task per row"):
        model.partial_fit(X, Y[:, 0], task=task[:-1])
    with pytest.raises(ValueError, match="one target per row"):
        model.partial_fit(X, Y[:-1, 0], task=task)
    with pytest.raises(ValueError, match="inf"):
        model.partial_fit(X, np.full((N, K), np.inf))
    own = np.repeat(X[:, None], K, axis=1)
    with pytest.raises(ValueError, match=r"give y of shape \(200, 4\)"):
        model.partial_fit(own, Y[:, :2])
    model.partial_fit(own, Y)
    with pytest.raises(ValueError, match="12 features"):
        model.partial_fit(own[:, :, :-1], Y)
    for wrong in (own[:, :, :-1], own[:, :-1]):
        with pytest.raises(ValueError, match=r"\(n_samples, 4, 12\)"):
            model.predict(wrong)
    own[7, 2, 3] = np.nan
    with pytest.raises(ValueError, match="Row 7 of X"):
        model.partial_fit(own, Y)
    assert model.n_rounds_ == N + 7
    steps = OnlineMultiTaskLearner("l2,2", learning_rate="feature")
    with pytest.raises(ValueError, match="choose 'adaptive'"):
        steps.partial_fit(np.zeros((3, K, D)), Y[:3])
    for wrong in (np.inf, np.nan):
        single = OnlineMultiTaskLearner().partial_fit(X, Y[:, 0], task=task)
        single.learn_one(X[0], 1.0, 0)
        before = single.coef_
        if np.isinf(wrong):
            with pytest.raises(ValueError, match="inf"):
                single.learn_one(X[0], wrong, 0)
        else:
            single.learn_one(X[0], wrong, 0)  # no target
        np.testing.assert_array_equal(single.coef_, before)


# --- losses


def classes(Y, low):
    return np.where(Y > 0.0, 1.0, low)


@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("form", ["list", "mapping", "objects"])
@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_losses_that_differ(data, low, form, norm, tmp_path):
    X, Y, task = data
    names = ["squared", "logistic", "huber", "hinge"]
    losses = {
        "list": names,
        "mapping": dict(enumerate(names)),
        "objects": [Squared(), Logistic(), Huber(), "hinge"],
    }[form]
    Y[:, [1, 3]] = classes(Y[:, [1, 3]], low)
    model = OnlineMultiTaskLearner(norm, losses).partial_fit(X, Y)
    model.partial_fit(X, Y[np.arange(N), task], task=task)
    found = model.predict(X)
    assert set(np.unique(found[:, [1, 3]])) == {low, 1.0}
    assert len(np.unique(found[:, 0])) > 2
    assert np.mean(found[:, 1] == Y[:, 1]) > 0.8
    assert np.array_equal(model.predict(X, task=task), found[np.arange(N), task])
    assert 0 < model.mistakes_ < N
    wrong = Y.copy()
    wrong[3, 1] = 2.0
    with pytest.raises(ValueError, match=r"Task 1 has two classes.*got 2"):
        model.partial_fit(X, wrong)
    wrong[3, 1] = -1.0 - low  # the other sign for the low class
    with pytest.raises(ValueError, match="classes -1, 0 and 1"):
        model.partial_fit(X, wrong)
    mixnorm.save(model, tmp_path / "model")
    assert np.array_equal(mixnorm.load(tmp_path / "model").predict(X), found)


def test_truth_values_are_classes(data):
    X, Y, task = data
    one = OnlineMultiTaskLearner(losses="logistic").partial_fit(X, Y[:, 0] > 0, task=task)
    other = OnlineMultiTaskLearner(losses="logistic")
    other.partial_fit(X, classes(Y[:, 0], -1.0), task=task)
    close(one, other, 1e-14)
    assert set(np.unique(one.predict(X, task=task))) == {0.0, 1.0}
    assert set(np.unique(other.predict(X, task=task))) == {-1.0, 1.0}
    for i in range(5):
        one.learn_one(X[i], bool(Y[i, 0] > 0), int(task[i]))
        other.learn_one(X[i], 1 if Y[i, 0] > 0 else -1, int(task[i]))
    close(one, other, 1e-14)


def test_a_task_without_a_loss_is_not_taken(data):
    X, Y, _ = data
    for losses in ({0: "squared", 1: "squared"}, ["squared", "squared"]):
        model = OnlineMultiTaskLearner(losses=losses)
        model.partial_fit(X, Y[:, 0], task=np.arange(N) % 2)
        with pytest.raises(ValueError, match="task 2"):
            model.partial_fit(X[:1], Y[:1, 0], task=[2])
        assert model.tasks_.tolist() == [0, 1]
        model.partial_fit(X, Y[:, 0], task=np.arange(N) % 2)
        assert model.predict(X).shape == (N, 2)


def test_tasks_are_checked(data):
    X, Y, _ = data
    for task, message in (
        ("a", "is a single task"),
        ([1.0, np.nan], "task contains NaN"),
        ([None, None], "task contains None"),
    ):
        with pytest.raises(ValueError, match=message):
            OnlineMultiTaskLearner().partial_fit(X[:2], Y[:2, 0], task=task)
    with pytest.raises(TypeError, match="several types"):
        OnlineMultiTaskLearner().partial_fit(X[:2], Y[:2, 0], task=["a", 1])
    with pytest.raises(ValueError, match="three dimensions"):
        OnlineMultiTaskLearner().partial_fit(X[:, None], Y[:, :1], task=[0] * N)


def test_inputs_for_each_task_after_dicts(data):
    model = OnlineMultiTaskLearner().partial_fit([{"a": 1.0}], [1.0], task=["t"])
    with pytest.raises(TypeError, match="rows of names"):
        model.partial_fit(np.ones((2, 1, 1)), np.ones((2, 1)))


def test_predict_one_is_predict():
    rng = np.random.default_rng(3)
    X, task = rng.standard_normal((60, 5)), rng.choice(["a", "b"], 60)
    model = OnlineMultiTaskLearner()
    assert model.predict_one(X[0], "a") is None
    model.partial_fit(X, X[:, 0], task=task)
    assert model.predict_one(X[0], "b") == model.predict(X[:1], task=["b"])[0]
    assert model.predict_one(X[0], "c") is None


def test_targets_are_required():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        OnlineMultiTaskLearner().fit(np.eye(2), None, task=["a", "b"])
