"""Folds of a table, and the errors of predictions for held-out rows."""

import numpy as np
import pytest

from mixnorm.cli.data import TrainingTable
from mixnorm.cli.held_out import (
    compute_error,
    compute_null_error,
    estimate_standard_error,
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


def repeat(rows, times):
    return [np.repeat(row, times) for row in rows]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_errors_and_their_spread(task):
    truth, guess = np.array([0, 1, 1, 0, 2]), np.array([0, 1, 0, 0, 5])
    each = [0, 0, 1, 0, 1] if task == "classification" else [0, 0, 1, 0, 9]
    mean, deviation = np.mean(each), np.std(each) / np.sqrt(5)
    if task == "regression":  # the error is a root, hence the derivative of one
        mean, deviation = np.sqrt(mean), deviation / (2 * np.sqrt(mean))
    assert compute_error(truth, guess, None, task) == pytest.approx(mean)
    assert estimate_standard_error(truth, guess, None, task) == pytest.approx(deviation)
    assert estimate_standard_error(truth, truth, None, task) == 0.0


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_weights_of_errors_and_their_spread(task):
    truth, guess = np.array([0, 1, 1, 0, 2]), np.array([0, 1, 0, 0, 5])
    weight = np.array([1, 2, 3, 1, 2])
    rows = repeat((truth, guess), weight)
    assert compute_error(truth, guess, weight, task) == pytest.approx(
        compute_error(*rows, None, task)
    )
    # A row that counts twice varies twice as much, unlike two rows: only zeros and units of weight
    # leave rows out without changing the others.
    kept = np.array([1, 0, 1, 0, 1])
    part = repeat((truth, guess), kept)
    for unit in (1.0, 7.0):
        spread = estimate_standard_error(truth, guess, unit * kept, task)
        assert spread == pytest.approx(estimate_standard_error(*part, None, task))
    share = weight / weight.sum()
    each = (truth != guess).astype(float)
    expected = np.sqrt(np.sum(share**2 * (each - share @ each) ** 2))
    assert estimate_standard_error(truth, guess, weight, "classification") == pytest.approx(
        expected
    )


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_squares_are_finite(unit):
    numbers = data("regression", [0.0, unit, 0.0, unit])
    assert measure_error(numbers, ALL, np.zeros(4)) == pytest.approx(unit * np.sqrt(0.5))
    assert estimate_standard_error(numbers.y, np.zeros(4), None, "regression") == pytest.approx(
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
