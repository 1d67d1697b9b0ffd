"""The display, on a stand-in that has the attributes of a fitted ShareBoost."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError

from mixnorm import ShareBoostPathDisplay

pyplot = pytest.importorskip("matplotlib.pyplot", exc_type=ImportError)


class Fitted(BaseEstimator):
    """Four rounds; round t is right on the first t of four examples."""

    def fit(self, X, y):
        self.path_ = {"loss": np.array([2.0, 1.0, 0.5, 0.25])}
        self.y_ = np.asarray(y)
        return self

    def staged_predict(self, X):
        for t in range(1, 5):
            guess = self.y_ + 1
            guess[:t] -= 1
            yield guess


class FittedClassifier(ClassifierMixin, Fitted):
    pass


class FittedRegressor(RegressorMixin, Fitted):
    pass


class FittedCV(FittedClassifier):
    def __init__(self, scoring=None):
        self.scoring = scoring

    def fit(self, X, y):
        super().fit(X, y)
        self.n_features_to_select_ = 2
        self.cv_results_ = {
            "n_features": np.array([1, 2, 3]),
            "mean_test_score": np.array([0.5, 0.8, 0.75]),
            "std_test_score": np.array([0.1, 0.1, 0.05]),
        }
        return self


X, Y = np.zeros((4, 2)), np.array([0, 1, 2, 3])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def test_loss_alone():
    display = ShareBoostPathDisplay.from_estimator(FittedClassifier().fit(X, Y))
    assert display.error_line_ is None
    assert display.cv_line_ is None
    assert display.loss_ax_ is display.ax_
    np.testing.assert_array_equal(display.loss_line_.get_xdata(), [1, 2, 3, 4])
    np.testing.assert_array_equal(display.loss_line_.get_ydata(), [2, 1, 0.5, 0.25])
    assert display.ax_.get_ylabel() == "Training loss"
    assert display.chosen_line_.get_xdata()[0] == 4


def test_error_of_a_classifier():
    display = ShareBoostPathDisplay.from_estimator(FittedClassifier().fit(X, Y), X, Y)
    np.testing.assert_allclose(display.error_line_.get_ydata(), [0.75, 0.5, 0.25, 0])
    assert display.loss_ax_ is not display.ax_
    assert display.ax_.get_ylabel() == "Error rate"
    assert display.loss_ax_.get_ylabel() == "Training loss"
    assert display.figure_ is display.ax_.figure


def test_error_follows_sample_weight():
    weight = np.array([0, 0, 0, 1])
    model = FittedClassifier().fit(X, Y)
    display = ShareBoostPathDisplay.from_estimator(model, X, Y, sample_weight=weight)
    np.testing.assert_allclose(display.error, [1, 1, 1, 0])


def test_error_of_a_regressor_is_one_minus_r2():
    display = ShareBoostPathDisplay.from_estimator(FittedRegressor().fit(X, Y), X, Y)
    # Each wrong guess is off by one; the total sum of squares of 0..3 is 5.
    np.testing.assert_allclose(display.error, [0.6, 0.4, 0.2, 0], atol=1e-12)
    assert display.ax_.get_ylabel() == "1 − R²"


def test_cross_validated_curve_and_size():
    display = ShareBoostPathDisplay.from_estimator(FittedCV().fit(X, Y))
    np.testing.assert_array_equal(display.cv_line_.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(display.cv_line_.get_ydata(), [0.5, 0.2, 0.25])
    assert len(display.ax_.collections) == 1, "the band of one standard deviation"
    assert display.chosen_line_.get_xdata()[0] == 2
    assert display.chosen_line_.get_label() == "chosen: 2"


def test_other_scores_are_only_negated():
    display = ShareBoostPathDisplay.from_estimator(FittedCV("neg_log_loss").fit(X, Y))
    np.testing.assert_allclose(display.cv_error, [-0.5, -0.8, -0.75])
    assert "minus the score" in display.ax_.get_ylabel()


def test_legend_names_every_line():
    display = ShareBoostPathDisplay.from_estimator(FittedCV().fit(X, Y), X, Y)
    legend = display.ax_.get_legend()
    assert legend.get_title().get_text() == "FittedCV"
    assert len(legend.get_texts()) == 4


def test_given_axes_and_options():
    _, ax = pyplot.subplots()
    display = ShareBoostPathDisplay.from_estimator(
        FittedClassifier().fit(X, Y),
        X,
        Y,
        ax=ax,
        name="ours",
        error_kw={"color": "red"},
        loss_kw={"linewidth": 3},
        chosen_kw={"label": "here"},
    )
    assert display.ax_ is ax
    assert display.error_line_.get_color() == "red"
    assert display.loss_line_.get_linewidth() == 3
    assert display.chosen_line_.get_label() == "here"
    assert ax.get_legend().get_title().get_text() == "ours"


def test_plot_again():
    display = ShareBoostPathDisplay.from_estimator(FittedClassifier().fit(X, Y), X, Y)
    first = display.ax_
    assert display.plot(name="again") is display
    assert display.ax_ is not first
    assert display.ax_.get_legend().get_title().get_text() == "again"


@pytest.mark.parametrize("given", [{"X": X}, {"y": Y}])
def test_x_and_y_come_together(given):
    with pytest.raises(ValueError, match="both X and y"):
        ShareBoostPathDisplay.from_estimator(FittedClassifier().fit(X, Y), **given)


def test_unfitted_estimator():
    with pytest.raises(NotFittedError):
        ShareBoostPathDisplay.from_estimator(FittedClassifier())


def test_estimator_without_a_path():
    class Plain(BaseEstimator):
        def fit(self, X, y):
            self.coef_ = 0
            return self

    with pytest.raises(TypeError, match="Plain has no path"):
        ShareBoostPathDisplay.from_estimator(Plain().fit(X, Y))


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "mixnorm\[plot\]"'):
        ShareBoostPathDisplay.from_estimator(FittedClassifier().fit(X, Y))


def test_matplotlib_is_imported_late():
    code = "import sys, mixnorm.display; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
