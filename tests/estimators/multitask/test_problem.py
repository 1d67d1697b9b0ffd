"""The problem that tasks become."""

import numpy as np
import pandas as pd
import pytest

from mixnorm.engines.proximal import LossMixture, SeparateDesign, SharedDesign
from mixnorm.estimators.multitask.problem import build_problem, read_weights, task_losses
from mixnorm.estimators.multitask.targets import (
    TaskTargets,
    read_shared,
)
from mixnorm.losses import Hinge, Huber, MultinomialLogistic, Squared

X = np.arange(12.0).reshape(4, 3)
NAN = np.nan


def columns(n_tasks=2, form="table"):
    return TaskTargets(
        list(range(n_tasks)), [np.arange(4.0) + task for task in range(n_tasks)], form
    )


def test_missing_values_of_pandas():
    frame = pd.DataFrame({"a": pd.array([1, None, 3, 2], dtype="Int64"), "b": [1, 2, 3, 4]})
    problem = build_problem([X], read_shared(frame), "squared", None)
    assert problem.training.weight[:, 0].tolist() == [1 / 3, 0, 1 / 3, 1 / 3]


def test_losses_of_tasks():
    names = ["a", "b"]
    assert task_losses("hinge", names) == [Hinge(), Hinge()]
    assert task_losses(("hinge", Huber(2.0)), names) == [Hinge(), Huber(2.0)]
    assert task_losses({1: "hinge", "a": "squared"}, names) == [Squared(), Hinge()]


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ("margin", "'margin' is not known"),
        (MultinomialLogistic(), "not a loss of one score"),
        (["squared"], "differ in number: 1 and 2"),
        ({"a": "squared"}, "no loss for task 'b'"),
        ({"a": "squared", "c": "squared"}, "no task 'c'"),
        (None, "None is not known"),
    ],
)
def test_wrong_losses(losses, message):
    with pytest.raises(ValueError, match=message):
        task_losses(losses, ["a", "b"])


def test_one_matrix_with_all_labels_is_the_quick_case():
    problem = build_problem([X], columns(), "squared", None)
    assert isinstance(problem.training.design, SharedDesign)
    assert problem.training.loss == Squared()
    assert problem.training.weight.tolist() == [0.25] * 4
    weighted = build_problem([X], columns(), "squared", [2, 1, 1, 0])
    assert weighted.training.weight.tolist() == [0.5, 0.25, 0.25, 0.0]


def test_labels_missing_only_where_there_is_no_weight_is_the_quick_case_too():
    Y = np.column_stack([np.arange(4.0), [NAN, 1, 2, 3]])
    problem = build_problem([X], read_shared(Y), "squared", [0, 1, 1, 2])
    assert problem.training.weight.tolist() == [0.0, 0.25, 0.25, 0.5]
    assert np.all(np.isfinite(problem.y))


def test_weights_of_entries_without_labels_are_zero():
    Y = np.column_stack([np.arange(4.0), [NAN, 1, 2, 3]])
    problem = build_problem([X], read_shared(Y), "squared", [1, 1, 2, 0])
    assert problem.training.weight.T.tolist() == [[0.25, 0.25, 0.5, 0.0], [0.0, 1 / 3, 2 / 3, 0.0]]
    assert problem.training.loss == Squared()


def test_different_losses_are_a_mixture_with_a_weight_per_entry():
    problem = build_problem([X], columns(), ["squared", "absolute"], None)
    assert isinstance(problem.training.loss, LossMixture)
    assert problem.training.weight.shape == (4, 2)
    assert np.allclose(problem.training.weight.sum(axis=0), 1.0)


def test_smaller_tasks_are_padded():
    targets = TaskTargets(["a", "b"], [np.array([1.0, 2.0]), np.array([3, 4, 4, 3])], "dict")
    problem = build_problem([X[:2], X], targets, ["squared", "hinge"], {"b": [0, 1, 1, 2]})
    assert isinstance(problem.training.design, SeparateDesign)
    assert problem.training.weight.T.tolist() == [[0.5, 0.5, 0.0, 0.0], [0.0, 0.25, 0.25, 0.5]]
    assert problem.y.T.tolist() == [[1.0, 2.0, 1.5, 1.5], [1.0, 1.0, 1.0, -1.0]]


def test_float32_stays():
    problem = build_problem([X.astype(np.float32)], columns(), "squared", np.ones((4, 2)))
    assert problem.training.weight.dtype == problem.training.target.dtype == np.float32


def test_targets_are_shifted_and_scaled_where_that_changes_nothing():
    Y = np.column_stack([1e6 + np.arange(4.0), [NAN, 2e6, 2e6, 2e6 + 3]])
    training = build_problem([X], read_shared(Y), "squared").training
    assert training.frame.centre.tolist() == [1e6 + 1.5, 2e6 + 1]
    assert training.frame.unit == 2.0
    assert np.abs(training.target).max() == 1.0
    mixed = build_problem([X], read_shared(Y), ["squared", "absolute"]).training
    assert (mixed.frame.unit, mixed.frame.centre.tolist()) == (1.0, training.frame.centre.tolist())
    alike = build_problem([X], read_shared(Y), ["squared", Huber(4.0)])
    assert (alike.training.frame.unit, alike.training.frame.degree) == (2.0, 2)
    assert (alike.outputs.losses[1], alike.inside[1]) == (Huber(4.0), Huber(2.0))
    assert build_problem([X], read_shared(Y), "absolute").training.frame.degree == 1
    without = build_problem([X], read_shared(Y), "squared", fit_intercept=False).training
    assert without.frame.centre.tolist() == [0.0, 0.0]


def test_targets_too_large_for_float32():
    X32, y = X.astype(np.float32), np.array([1e300, -1e300, 0, 1])
    assert np.all(np.isfinite(build_problem([X], read_shared(y), "squared").training.target))
    for loss in ("squared", "huber"):  # whose weights would overflow
        with pytest.raises(ValueError, match="too large for float32; give X as float64"):
            build_problem([X32], read_shared(y), loss)
    with pytest.raises(ValueError, match="too small for float32; give X as float64, or divide y"):
        build_problem([X32], read_shared(y * 1e-200 * 1e-150), "squared")


def test_forms_of_weights():
    assert read_weights(None, columns()) is None
    assert read_weights(2.0, columns()).tolist() == [0.25] * 4
    table = np.array([[1.0, 0], [1, 0], [1, 1], [1, 3]])
    for given in (table, table.tolist(), {0: table[:, 0], 1: table[:, 1]}, {1: table[:, 1]}):
        found = read_weights(given, columns())
        assert [part.tolist() for part in found] == [[0.25] * 4, [0, 0, 0.25, 0.75]]
    found = read_weights([None, [0, 0, 1, 3]], columns(form="list"))
    assert [part.tolist() for part in found] == [[0.25] * 4, [0, 0, 0.25, 0.75]]
    assert len(read_weights(3.0, columns(form="list"))) == 2


@pytest.mark.parametrize(
    ("weight", "form", "message"),
    [
        (np.ones(3), "table", r"expected \(4,\)"),
        (np.ones((4, 3)), "table", r"shape \(4, 3\); give one weight per row, \(4,\), or"),
        (np.ones((2, 4)), "table", r"\(4, 2\)"),
        (np.ones((4, 2, 1)), "table", "1D array or scalar"),
        (-np.ones(4), "table", "negative"),
        ([NAN, 1, 1, 1], "table", "NaN"),
        (np.zeros(4), "table", "zero for every row"),
        (np.array([[1.0, 0]] * 4), "table", "Task 1: sample_weight is zero for every row"),
        ({"z": np.ones(4)}, "table", "no task 'z'"),
        (np.ones(4), "list", "list of 2 arrays"),
        ([np.ones(4)], "list", "list of 2 arrays"),
        ([np.ones(4), np.ones(3)], "list", "Task 1: .*expected"),
    ],
)
def test_wrong_weights(weight, form, message):
    with pytest.raises(ValueError, match=message):
        read_weights(weight, columns(form=form))


@pytest.mark.parametrize("form", ["table", "list"])
def test_weights_by_a_name(form):
    with pytest.raises(TypeError, match="sample_weight='balanced' is a name"):
        read_weights("balanced", columns(form=form))
    with pytest.raises(TypeError, match="Task 1: sample_weight='balanced' is a name"):
        read_weights({1: "balanced"}, columns(form=form))


@pytest.mark.parametrize(
    ("Y", "losses", "message"),
    [
        ([NAN] * 4, "squared", "Task 0 has no label with a positive weight"),
        ([[1, NAN]] * 4, "squared", "Task 1 has no label"),
        ([1, np.inf, 2, 3], "squared", "contains infinity .*task 0"),
        (["a", "b", "a", "b"], "squared", "not all numbers"),
        ([1, 1, 1, 1], "hinge", "needs two labels, but y holds 1"),
        ([1, 2, 3, 1], "logistic", "needs two labels, but y holds 3 .*: 1, 2, 3"),
        ([1j, 1, 1, 1], "squared", "Complex data not supported"),
        ([1, 2, 3], "squared", "inconsistent numbers of samples"),
        (np.ones((4, 1, 1)), "squared", "give a column"),
        (np.ones((4, 0)), "squared", "no columns"),
        ({}, "squared", "empty dictionary"),
        ({"a": np.ones((4, 2))}, "squared", "task 'a' have shape"),
        (pd.DataFrame(np.ones((4, 2)), columns=["a", "a"]), "squared", "several columns of one"),
    ],
)
def test_wrong_targets(Y, losses, message):
    with pytest.raises(ValueError, match=message):
        build_problem([X], read_shared(Y), losses, None)


def test_labels_of_several_types():
    with pytest.raises(TypeError, match=r"task 0 are of several types \(int, str\)"):
        build_problem([X], read_shared(np.array([1, "a", 1, "a"], dtype=object)), "hinge", None)


def test_rows_without_weight_may_hold_anything():
    weight = [1, 1, 1, 0]
    problem = build_problem([X], read_shared(["a", "b", "a", "c"]), "logistic", weight)
    assert problem.outputs.classes[0].tolist() == ["a", "b"]
    problem = build_problem([X], read_shared([1, 2, 3, np.inf]), "squared", weight)
    assert problem.y[3] == 2.0  # the mean, a shift of which is taken off
    with pytest.raises(ValueError, match="needs two labels, but y holds 1"):
        build_problem([X], read_shared([1, 1, 1, 2]), "hinge", weight)
