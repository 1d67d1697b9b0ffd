"""Progress through scikit-learn's callbacks."""

import numpy as np
import pytest
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from mixnorm import ShareBoostClassifier, ShareBoostClassifierCV


class Recorder:
    """Keeps what the hooks are told, and may ask to stop."""

    def __init__(self, stop_at=None):
        self.stop_at, self.begun, self.ended, self.sizes = stop_at, [], [], []

    def setup(self, estimator, context):
        self.torn_down = False

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended.append(context.task_name)
        if context.task_name == "round":
            self.sizes.append(len(fitted_estimator.selected_))
            assert fitted_estimator.predict(X).shape == (len(X),)
        return self.stop_at is not None and len(self.sizes) == self.stop_at


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


def test_a_task_per_round(iris):
    recorder = Recorder()
    ShareBoostClassifier(3).set_callbacks(recorder).fit(*iris)
    assert recorder.begun == ["fit", "round", "round", "round"]
    assert recorder.ended == ["round", "round", "round", "fit"]
    assert recorder.sizes == [1, 2, 3]
    assert recorder.torn_down


def test_a_callback_can_stop_the_fit(iris):
    model = ShareBoostClassifier(4).set_callbacks(Recorder(stop_at=2)).fit(*iris)
    assert len(model.selected_) == 2


def test_folds_and_the_final_fit_are_tasks(iris):
    recorder = Recorder()
    model = ShareBoostClassifierCV(2, cv=3).set_callbacks(recorder).fit(*iris)
    assert recorder.begun[:10] == ["fit", *["fold", "candidate", "candidate"] * 3]
    assert recorder.begun.count("round") == model.n_features_to_select_
    assert recorder.ended[-2:] == ["refit", "fit"]


def test_a_warm_start_counts_only_new_rounds(iris):
    model = ShareBoostClassifier(2, warm_start=True).fit(*iris)
    recorder = Recorder()
    model.set_params(n_features_to_select=4).set_callbacks(recorder).fit(*iris)
    assert recorder.begun == ["fit", "round", "round"]


def test_scikit_learns_callbacks_work(iris, capsys):
    monitor = ScoringMonitor(scoring="accuracy")
    ShareBoostClassifier(3).set_callbacks(ProgressBar(), monitor).fit(*iris)
    assert "ShareBoostClassifier" in capsys.readouterr().out


def test_scikit_learns_callbacks_work_on_folds(iris):
    model = ShareBoostClassifierCV(2, cv=2)
    model.set_callbacks(ScoringMonitor(scoring="accuracy")).fit(*iris)
    assert len(model.selected_) >= 1


def test_under_a_grid_search(iris):
    search = GridSearchCV(ShareBoostClassifier(), {"n_features_to_select": [1, 2]}, cv=2)
    search.fit(*iris)
    assert np.isfinite(search.best_score_)
