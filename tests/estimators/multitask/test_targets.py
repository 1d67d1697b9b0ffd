"""Tasks in all forms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from mixnorm.estimators.multitask.problem import build_problem
from mixnorm.estimators.multitask.targets import (
    find_task,
    is_separate,
    read_matrices,
    read_separate,
    read_shared,
    stack_columns,
)

X = np.arange(12.0).reshape(4, 3)
NAN = np.nan


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (X, False),
        (X.tolist(), False),
        (list(X), False),
        (sparse.csr_array(X), False),
        (pd.DataFrame(X), False),
        ([], False),
        ([X, X], True),
        ((X, sparse.csr_array(X)), True),
        ([X.tolist(), X.tolist()], True),
        ([pd.DataFrame(X), X], True),
        ({"a": X}, True),
        ([X, X[0]], False),
    ],
)
def test_one_matrix_or_several(given, expected):
    assert is_separate(given) is expected


def test_targets_beside_one_matrix():
    Y = np.column_stack([np.arange(4.0), [0, 1, NAN, 1]])
    for given in (Y, Y.tolist(), {0: Y[:, 0], 1: Y[:, 1]}):
        targets = read_shared(given)
        assert targets.names == [0, 1]
        assert targets.form == ("frame" if isinstance(given, dict) else "table")
        assert np.array_equal(np.column_stack(targets.columns), Y, equal_nan=True)
    assert read_shared(Y[:, 0]).form == "column"
    assert read_shared([1, 2, 3]).columns[0].tolist() == [1, 2, 3]


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_of_a_frame_are_tasks(library):
    frame = library.DataFrame({"cost": [1.0, 2.0, None], "kind": ["a", None, "b"]})
    targets = read_shared(frame)
    assert targets.names == ["cost", "kind"]
    problem = build_problem([X[:3]], targets, {"cost": "squared", "kind": "hinge"}, None)
    assert np.array_equal(problem.training.weight, [[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])
    assert problem.outputs.classes[1].tolist() == ["a", "b"]
    assert problem.y[[0, 2], 1].tolist() == [-1.0, 1.0]


def test_numbers_beside_texts_stay_numbers():
    problem = build_problem(
        [X], read_shared([[1, "no"], [2, "yes"], [None, "yes"], [4, None]]),
        ["squared", "logistic"], None,
    )  # fmt: skip
    assert problem.y[[0, 1, 3], 0].tolist() == [1.0, 2.0, 4.0]
    assert problem.outputs.classes[1].dtype.kind == "U"


def test_targets_beside_several_matrices():
    names, matrices, form = read_matrices({"b": X, "a": X[:2]})
    assert (names, form) == (["b", "a"], "dict")
    targets = read_separate(names, form, {"a": [1, 2], "b": np.ones((4, 1))})
    assert [len(column) for column in targets.columns] == [4, 2]
    assert matrices[1].shape == (2, 3)
    assert read_matrices([X, X])[0] == [0, 1]


def test_names_and_positions_of_tasks():
    assert [find_task(task, ["a", "b"]) for task in ("b", 0, np.int64(1))] == [1, 0, 1]
    assert find_task(0, [5, 0]) == 1  # a name comes before a position
    for wrong in ("c", 2, -1, True, None):
        with pytest.raises(ValueError, match=r"no task .*; the tasks are 'a', 'b'"):
            find_task(wrong, ["a", "b"])
    with pytest.raises(ValueError, match="no task 1"):
        find_task(1, [5, 0])


@pytest.mark.parametrize(
    ("given", "y", "message"),
    [
        ([X, X], {0: [1] * 4}, "X is a list of tasks, but y is a dict"),
        ({"a": X}, [[1] * 4], "X is a dict of tasks, but y is a list"),
        ({"a": X}, {"b": [1] * 4}, "only one has 'a', 'b'"),
        ([X, X], [[1] * 4], "list of 2 tasks, but y has 1"),
        ([X, X], [[1] * 4, [1] * 3], "Task 1 has 4 rows in X and 3 in y"),
        ([X, X], [[1] * 4, np.ones((4, 2))], "task 1 have shape"),
    ],
)
def test_wrong_lists(given, y, message):
    names, matrices, form = read_matrices(given)
    with pytest.raises(ValueError, match=message):
        build_problem(matrices, read_separate(names, form, y), "squared", None)


def test_new_matrices_belong_to_known_tasks():
    assert read_matrices({"b": X}, ["a", "b"])[0] == ["b"]
    assert read_matrices([X, X], ["a", "b"])[0] == ["a", "b"]
    with pytest.raises(ValueError, match="1 tasks, but 2 were fitted"):
        read_matrices([X], ["a", "b"])
    with pytest.raises(ValueError, match="no task 'c'"):
        read_matrices({"c": X}, ["a", "b"])
    with pytest.raises(ValueError, match="empty dictionary"):
        read_matrices({})


def test_tables_of_predictions():
    number, text = np.array([1.5, 2.0]), np.array(["a", "bc"])
    assert stack_columns([number, np.array([1, 0])]).dtype == np.float64
    assert stack_columns([text, text]).dtype.kind == "U"
    mixed = stack_columns([number, text])
    assert mixed.tolist() == [[1.5, "a"], [2.0, "bc"]]
