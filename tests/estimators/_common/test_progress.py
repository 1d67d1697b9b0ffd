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
    model = ShareBoostClassifier(3).set_callbacks(ProgressBar(), monitor).fit(*iris)
    assert "ShareBoostClassifier" in capsys.readouterr().out
    scores = [entry["accuracy"] for entry in monitor.get_logs().data]
    assert scores[1:] == [model.truncate(size).score(*iris) for size in (1, 2, 3)]
    assert scores[0] == model.score(*iris)


def test_scikit_learns_callbacks_work_on_folds(iris):
    monitor = ScoringMonitor(scoring="accuracy")
    model = ShareBoostClassifierCV(2, cv=2).set_callbacks(monitor).fit(*iris)
    fit = monitor.get_logs().data[0]
    assert (fit["task_name"], fit["accuracy"]) == ("fit", model.score(*iris))


def test_a_grid_search_shows_every_round_of_its_fits(iris):
    recorder, sizes = Recorder(), {"n_features_to_select": [1, 2]}
    model = ShareBoostClassifier().set_callbacks(recorder)
    search = GridSearchCV(model, sizes, cv=2, refit=False).fit(*iris)
    one, two = ["fit", "round"], ["fit", "round", "round"]
    assert recorder.begun == [*one, *one, *two, *two]
    assert recorder.sizes == [1, 1, 1, 2, 1, 2]
    plain = GridSearchCV(ShareBoostClassifier(), sizes, cv=2, refit=False).fit(*iris)
    wanted = plain.cv_results_["mean_test_score"]
    assert np.array_equal(search.cv_results_["mean_test_score"], wanted)
