"""The loop over folds and candidates."""

from functools import partial

import numpy as np
import pytest

from mixnorm.losses import Squared
from mixnorm.models import NumberOutputs
from mixnorm.selection import Candidate, FixedScores, choose, search

OUTPUTS = NumberOutputs(True, 1.0, np.zeros(1), Squared())


class Means:
    """Predicts the mean of the training rows, times a factor; one chain per sign."""

    chains = (2, 3)

    def __init__(self, y, *, short=(), stop=None):
        self.y, self.short, self.stop, self.folds = y, short, stop, 0

    def fold(self, train, test):
        self.folds += 1
        return partial(self._chain, self.y[train].mean(), test, self.folds)

    def _chain(self, mean, test, fold, number):
        length = 1 if (fold, number) in self.short else self.chains[number]
        for place in range(length):
            if (fold, number, place) == self.stop:
                raise KeyboardInterrupt
            factor = (place + 1.0) * (-1.0) ** number
            scores = np.full((len(test), 1), factor * mean)
            model = FixedScores(scores, OUTPUTS)
            yield Candidate({"factor": factor}, test, scores, model, {"mean": mean})

    def error(self, candidate):
        found = candidate.model.outputs.labels(candidate.scores)
        return -float(np.mean((found - self.y[candidate.rows]) ** 2))


Y = np.arange(1.0, 7.0)
SPLITS = [(np.arange(6) % 3 != fold, np.flatnonzero(np.arange(6) % 3 == fold)) for fold in range(3)]


def run(problem, **options):
    return search(problem, SPLITS, scoring={"score": problem.error}, **options)


def test_every_candidate_of_every_chain_is_scored_on_every_fold():
    found = run(Means(Y))
    assert [row["factor"] for row in found.cv_results["params"]] == [1.0, 2.0, -1.0, -2.0, -3.0]
    assert found.chains.tolist() == [0, 0, 1, 1, 1]
    assert found.scores().shape == (3, 5)
    for fold, (train, test) in enumerate(SPLITS):
        expected = -np.mean((2.0 * Y[train].mean() - Y[test]) ** 2)
        assert found.scores()[fold, 1] == expected
        assert found.facts["mean"][fold, 1] == Y[train].mean()
    assert choose(found) == 0
    assert not found.interrupted


def test_workers_find_the_same():
    one, two = run(Means(Y)), run(Means(Y), n_jobs=2)
    assert np.array_equal(one.scores(), two.scores())
    assert one.cv_results["params"] == two.cv_results["params"]


def test_a_chain_that_ends_early_repeats_its_last_candidate():
    found = run(Means(Y, short={(2, 1)}))
    assert found.scores()[1, 2:].tolist() == [found.scores()[1, 2]] * 3
    assert [row["factor"] for row in found.cv_results["params"]] == [1.0, 2.0, -1.0, -2.0, -3.0]


def test_an_interrupt_keeps_whole_folds():
    found = run(Means(Y, stop=(3, 0, 1)))
    assert found.interrupted
    assert found.n_splits == 2
    assert np.array_equal(found.scores(), run(Means(Y)).scores()[:2])


def test_an_interrupt_in_the_first_fold_keeps_its_candidates():
    found = run(Means(Y, stop=(1, 1, 2)))
    assert found.interrupted
    assert [row["factor"] for row in found.cv_results["params"]] == [1.0, 2.0, -1.0, -2.0]


def test_an_interrupt_before_any_candidate_is_raised():
    with pytest.raises(KeyboardInterrupt):
        run(Means(Y, stop=(1, 0, 0)))


def test_rows_are_scored_together_where_no_fold_can_be():
    problem = Means(Y)
    splits = [(np.delete(np.arange(6), row), np.array([row])) for row in range(6)]

    def explained(candidate):
        y = Y[candidate.rows]
        if len(y) < 2:
            return np.nan
        return 1.0 - np.sum((candidate.scores[:, 0] - y) ** 2) / np.sum((y - y.mean()) ** 2)

    found = search(problem, splits, scoring={"score": explained})
    means = np.array([np.delete(Y, row).mean() for row in range(6)])
    expected = 1.0 - np.sum((means - Y) ** 2) / np.sum((Y - Y.mean()) ** 2)
    assert found.scores().shape == (1, 5)
    assert found.scores()[0, 0] == pytest.approx(expected)


def test_predictions_are_kept_on_request():
    found = run(Means(Y), keep_predictions=True)
    train, test = SPLITS[1]
    assert found.predictions[1][1].tolist() == [2.0 * Y[train].mean()] * len(test)
    assert run(Means(Y)).predictions[0][0] is None


def test_several_scores():
    problem = Means(Y)
    scoring = {"error": problem.error, "size": lambda candidate: -candidate.params["factor"]}
    found = search(problem, SPLITS, scoring=scoring)
    assert choose(found, metric="size") == 4
    assert choose(found, metric="error") == 0


class Recorder:
    """Notes the tasks that are begun and ended."""

    def __init__(self, notes=None, name="whole"):
        self.notes, self.name = [] if notes is None else notes, name

    def task(self, name, n_tasks=0):
        self.notes.append((f"begin {name}", n_tasks))
        return Recorder(self.notes, name)

    def end(self):
        self.notes.append((f"end {self.name}", 0))


def test_progress_has_a_task_per_fold_and_candidate():
    shown = Recorder()
    run(Means(Y), progress=shown)
    assert shown.notes[0] == ("begin fold", 5)
    assert [name for name, _ in shown.notes].count("end candidate") == 15
    assert [name for name, _ in shown.notes].count("end fold") == 3
