"""Tuning by inner folds, and the methods that the test environment can run."""

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from benchmarks.harness import tuning
from benchmarks.harness.child import count_failures
from benchmarks.harness.methods import Point, Ridged
from benchmarks.harness.peers import PEERS, _Logistic
from benchmarks.shareboost import report
from benchmarks.shareboost.ours import OURS


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12)).astype(np.float32)
    y = np.argmax(X[:, :3] + 0.3 * rng.standard_normal((300, 3)), axis=1)
    return X, y


@dataclass(frozen=True)
class Known(Ridged):
    """Errs least with the value 1.0, and with 0.1 at size 5."""

    path: ClassVar[bool] = True

    def fit_at(self, X, y, size, value):
        return value

    def models(self, fitted, size):
        value = fitted

        def point(count):
            right = value == (0.1 if count == 5 else 1.0)
            return Point(count, count, lambda X: np.full(len(X), 0 if right else 9))

        return [point(count) for count in range(1, size + 1)]


class TestTuning:
    def test_rows_are_stratified_and_no_more_than_asked(self):
        y = np.repeat([0, 1, 2], [6000, 3000, 3])
        rows = tuning.draw_rows(y, 900)
        assert np.bincount(y[rows]).tolist() == [600, 300, 3]
        assert np.array_equal(rows, np.unique(rows))
        assert len(tuning.draw_rows(y[:800], 900)) == 800

    def test_folds_drop_columns_that_do_not_vary(self, rows):
        X, y = rows
        X[:, 4] = 1.0
        found = list(tuning.make_folds(X, y))
        assert [X_in.shape[1] for X_in, *_ in found] == [11] * 3
        assert sum(len(y_out) for *_, y_out in found) == 300
        assert all(X_out.shape[1] == 11 for *_, X_out, _ in found)

    def test_fewest_errors_and_the_later_of_equals(self):
        wrong = Counter({(5, 0): 3, (5, 1): 2, (5, 2): 2, (10, 0): 1, (10, 1): 2, (10, 2): 5})
        assert tuning.choose_best(wrong, (5, 10), ("a", "b", "c")) == [[5, "c"], [10, "a"]]

    def test_each_size_has_its_value(self, rows):
        X, y = rows
        method = Known(tuned=True)
        found = method.tune(X, np.zeros(len(y), dtype=int), 20)
        assert found == {"values": [[5, 0.1], [10, 1.0], [20, 1.0]]}
        fitted = method.fit(X, y, 20, **found)
        assert [sizes for sizes, *_ in fitted] == [[5], [10, 20]]
        points = method.points(fitted, 20)
        assert [point.size for point in points] == [5, 10, 20]
        assert all(point.predict(X)[0] == 0 for point in points)
        assert Known().tune(X, y, 20) == {}
        assert len(Known().points(Known().fit(X, y, 20), 20)) == 20


@pytest.mark.parametrize("method", [OURS["mixnorm-tuned"], PEERS["rfe-tuned"]], ids=["ours", "rfe"])
def test_tuned_methods_run(rows, method):
    X, y = rows
    tuned = method.tune(X, y, 10)
    assert {size for size, _ in tuned["values"]} == {5, 10}
    assert {value for _, value in tuned["values"]} <= set(tuning.GRID)
    points = method.points(method.fit(X, y, 10, **tuned), 10)
    assert [(point.size, point.features) for point in points] == [(5, 5), (10, 10)]
    assert all(np.mean(point.predict(X) != y) < 0.15 for point in points)
    assert all(0 < point.share <= 1 for point in points)


def test_elimination_keeps_columns_of_the_larger_model(rows):
    X, y = rows
    fitted = PEERS["rfe"].fit_at(X, y, 10, None)
    large, small = (set(chosen.tolist()) for chosen, *_ in fitted)
    assert small < large
    assert {0, 1, 2} <= small


def test_the_loss_that_skscope_is_given(rows):
    X, y = rows
    loss = _Logistic(X.astype(float), y, ridge=0.01)
    rng = np.random.default_rng(1)
    params = rng.standard_normal(13 * 3)
    direction = rng.standard_normal(params.size)
    step = 1e-6
    slope = (loss.value(params + step * direction) - loss.value(params - step * direction)) / 2e-6
    assert loss.gradient(params) @ direction == pytest.approx(slope, rel=1e-5)
    shifted = params.copy()
    shifted[:3] += 5.0  # the same intercept for every class changes nothing, ridge included
    assert loss.value(shifted) == pytest.approx(loss.value(params))


def test_fits_that_do_not_converge_are_counted():
    from sklearn.exceptions import ConvergenceWarning

    def call():
        warnings.warn("stopped", ConvergenceWarning, stacklevel=1)
        warnings.warn("stopped", ConvergenceWarning, stacklevel=1)
        warnings.warn("other", UserWarning, stacklevel=1)
        return 7

    assert count_failures(call) == (7, 2)


@pytest.mark.parametrize(("ratio", "text"), [(None, ""), (0.123, ">0.12"), (333.4, ">333")])
def test_ratios_in_words(ratio, text):
    assert report._format_times(">", ratio) == text
