"""Folds of a table, and the errors of predictions for held-out rows."""

import numpy as np
import pytest

from mixnorm.cli.data import TrainingTable
from mixnorm.cli.held_out import (
    compute_null_error,
    error_spread,
    mean_error,
    measure_error,
    split_rows,
)
from mixnorm.tables import SparseEncoder


def data(task, y, weight=None):
    y, weight = np.asarray(y), None if weight is None else np.asarray(weight, float)
    return TrainingTable(
        "t", "y", task, np.zeros((len(y), 1)), y, weight, SparseEncoder([0], True), []
    )


ALL = np.arange(4)


def test_errors_and_their_spread():
    truth, guess = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])
    assert mean_error(truth, guess, None, "classification") == 0.25
    assert mean_error(truth, guess, np.array([1, 1, 2, 0]), "classification") == 0.5
    assert mean_error(truth, guess, None, "regression") == 0.5
    expected = np.sqrt(0.25 * 0.75 / 4)
    assert error_spread(truth, guess, None, "classification") == pytest.approx(expected)
    doubled = error_spread(truth, guess, np.full(4, 2.0), "classification")
    assert doubled == pytest.approx(expected)
    assert error_spread(truth, truth, None, "regression") == 0.0


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_squares_are_finite(unit):
    numbers = data("regression", [0.0, unit, 0.0, unit])
    assert measure_error(numbers, ALL, np.zeros(4)) == pytest.approx(unit * np.sqrt(0.5))
    assert error_spread(numbers.y, np.zeros(4), None, "regression") == pytest.approx(
        unit * np.sqrt(0.5) / 4
    )


def test_rows_without_any_weight_count_alike():
    labels = data("classification", [0, 1, 1, 0], [0, 0, 1, 3])
    assert measure_error(labels, ALL[:2], np.zeros(2)) == 0.5
    assert measure_error(labels, ALL[2:], np.zeros(2)) == 0.25


def test_the_best_constant():
    labels = data("classification", ["b", "b", "a", "a"], [1, 1, 1, 2])
    assert compute_null_error(labels, ALL, ALL[:2]) == 1.0
    assert compute_null_error(data("classification", ["b", "b", "a", "b"]), ALL, ALL) == 0.25
    numbers = data("regression", [0.0, 4.0, 2.0, 2.0], [3, 1, 1, 1])
    assert compute_null_error(numbers, ALL[:2], ALL[2:]) == 1.0


@pytest.mark.parametrize("often", [3, 12])
def test_classes_are_spread_over_folds(often):
    y = np.array([0] * often + [1] * (24 - often))
    splits = split_rows(y, "classification", 3, 0)
    assert [np.sum(y[test] == 0) for _, test in splits] == [often // 3] * 3
    assert len(split_rows(y[:2], "regression", 3, 0)) == 2
