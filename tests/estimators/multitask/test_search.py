"""Many tasks under one norm: the penalty by cross-validation."""

import numpy as np
import pytest
from sklearn.linear_model import MultiTaskLassoCV
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
)

import mixnorm
from mixnorm.engines import proximal
from mixnorm.estimators import MultiTaskLearner, MultiTaskLearnerCV
from mixnorm.estimators.multitask.problem import build_problem
from mixnorm.estimators.multitask.search import fold_weights, split_tasks
from mixnorm.estimators.multitask.targets import TaskTargets, read_shared
from mixnorm.exceptions import InterruptedFitWarning

NAN = np.nan


@pytest.fixture(scope="module")
def table():
    """Four tasks on one X that share three features of twelve."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    W = np.zeros((12, 4))
    W[:3] = rng.normal(size=(3, 4))
    return X, X @ W + 0.8 * rng.normal(size=(80, 4)) + [1, 2, 3, 4]


@pytest.fixture(scope="module")
def apart():
    """Three tasks with data of their own: numbers, texts, truth values."""
    rng = np.random.default_rng(2)
    Xs = {name: rng.normal(size=(n, 8)) for name, n in (("cost", 30), ("kind", 50), ("late", 40))}
    score = {name: X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=len(X)) for name, X in Xs.items()}
    ys = {
        "cost": score["cost"] + 5.0,
        "kind": np.where(score["kind"] > 0, "b", "a"),
        "late": score["late"] > 0.2,
    }
    return Xs, ys, {"cost": "squared", "kind": "logistic", "late": "squared_hinge"}


def test_scores_are_those_of_separate_fits(table):
    X, Y = table
    alphas, splitter = [0.5, 0.2, 0.05], KFold(4)
    model = MultiTaskLearnerCV(alphas=alphas, cv=splitter, tol=1e-9).fit(X, Y)
    null = 0.5 * np.var(Y, axis=0)
    for fold, (train, test) in enumerate(splitter.split(X)):
        for position, alpha in enumerate(alphas):
            alone = MultiTaskLearner(alpha=alpha, tol=1e-9).fit(X[train], Y[train])
            losses = 0.5 * np.mean((Y[test] - alone.predict(X[test])) ** 2, axis=0)
            found = model.cv_results_[f"split{fold}_test_score"][position]
            assert found == pytest.approx(1.0 - np.mean(losses / null), abs=1e-6)


def test_with_own_losses_and_data_too(apart):
    Xs, ys, losses = apart
    alphas = [0.3, 0.1, 0.02]
    model = MultiTaskLearnerCV("l2,1", losses, alphas=alphas, cv=3, tol=1e-8).fit(Xs, ys)
    splits = {name: list(KFold(3).split(X)) for name, X in Xs.items()}
    kind, late = np.where(ys["kind"] == "b", 1, -1), np.where(ys["late"], 1, -1)
    formulas = {
        "cost": lambda z, rows: 0.5 * (z - ys["cost"][rows]) ** 2,
        "kind": lambda z, rows: np.logaddexp(0, -kind[rows] * z),
        "late": lambda z, rows: np.maximum(0, 1 - late[rows] * z) ** 2,
    }
    share = np.mean(kind > 0)
    null = {
        "cost": 0.5 * np.var(ys["cost"]),
        "kind": -share * np.log(share) - (1 - share) * np.log(1 - share),
    }
    mean = np.mean(late)  # for the squared hinge the best intercept is the mean of the signs
    null["late"] = np.mean(formulas["late"](mean, np.arange(40)))
    for fold in range(3):
        train = {name: splits[name][fold][0] for name in Xs}
        test = {name: splits[name][fold][1] for name in Xs}
        for position, alpha in enumerate(alphas):
            alone = MultiTaskLearner("l2,1", losses, alpha=alpha, tol=1e-8).fit(
                {name: Xs[name][train[name]] for name in Xs},
                {name: ys[name][train[name]] for name in Xs},
            )
            scores = alone.decision_function({name: Xs[name][test[name]] for name in Xs})
            parts = [np.mean(formulas[n](scores[n], test[n])) / null[n] for n in Xs]
            found = model.cv_results_[f"split{fold}_test_score"][position]
            assert found == pytest.approx(1.0 - np.mean(parts), abs=1e-4)


def test_the_final_model_is_a_fit_with_the_chosen_penalty(table):
    X, Y = table
    model = MultiTaskLearnerCV(alphas=15, one_standard_error=False, tol=1e-8).fit(X, Y)
    mean = model.cv_results_["mean_test_score"]
    assert model.alpha_ == model.alphas_[np.argmax(mean)]
    assert model.best_score_ == mean.max()
    assert model.alphas_[0] == model.alpha_max_
    assert model.alphas_[-1] == pytest.approx(0.01 * model.alpha_max_)
    plain = MultiTaskLearner(alpha=model.alpha_, tol=1e-8).fit(X, Y)
    assert model.coef_ == pytest.approx(plain.coef_, abs=1e-5)
    assert model.predict(X).shape == Y.shape
    small = MultiTaskLearnerCV(alphas=15, tol=1e-8).fit(X, Y)
    assert small.alpha_ >= model.alpha_
    best, error = mean.argmax(), model.cv_results_["standard_error"]
    assert small.alpha_ == model.alphas_[np.argmax(mean >= mean[best] - error[best])]
    assert set(small.support_) >= {0, 1, 2}


def test_scikit_learn_chooses_alike(table):
    X, Y = table
    peer = MultiTaskLassoCV(alphas=20, eps=0.01, cv=KFold(5), tol=1e-8).fit(X, Y)
    model = MultiTaskLearnerCV(
        alphas=peer.alphas_, cv=5, one_standard_error=False, tol=1e-8,
        scoring="neg_mean_squared_error",
    ).fit(X, Y)  # fmt: skip
    assert model.alpha_ == pytest.approx(peer.alpha_)
    assert -model.cv_results_["mean_test_score"] == pytest.approx(
        peer.mse_path_.mean(axis=1), rel=1e-4
    )
    assert model.coef_ == pytest.approx(peer.coef_, abs=1e-4)


def test_the_same_x_for_each_task_is_one_x(table):
    X, Y = table
    shared = MultiTaskLearnerCV(alphas=8, cv=4, tol=1e-9).fit(X, Y)
    separate = MultiTaskLearnerCV(alphas=8, cv=4, tol=1e-9).fit([X] * 4, list(Y.T))
    assert separate.alpha_ == pytest.approx(shared.alpha_)
    assert separate.cv_results_["mean_test_score"] == pytest.approx(
        shared.cv_results_["mean_test_score"], abs=1e-6
    )
    assert separate.coef_ == pytest.approx(shared.coef_, abs=1e-5)


def test_missing_labels_are_not_scored(table):
    X, Y = table
    Y = Y.copy()
    Y[::3, 1] = NAN
    alphas = [0.3, 0.1]
    model = MultiTaskLearnerCV(alphas=alphas, cv=2, tol=1e-9).fit(X, Y)
    (train, test), _ = KFold(2).split(X)
    alone = MultiTaskLearner(alpha=0.1, tol=1e-9).fit(X[train], Y[train])
    losses = 0.5 * np.nanmean((Y[test] - alone.predict(X[test])) ** 2, axis=0)
    expected = 1.0 - np.mean(losses / (0.5 * np.nanvar(Y, axis=0)))
    assert model.cv_results_["split0_test_score"][1] == pytest.approx(expected, abs=1e-6)


def test_weights_enter_fits_and_scores(table):
    X, Y = table
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    groups = np.arange(len(X)) % 3
    splits = list(LeaveOneGroupOut().split(X, groups=groups))
    repeated = np.repeat(groups, counts)
    again = list(LeaveOneGroupOut().split(repeated, groups=repeated))
    options = {"alphas": [0.3, 0.1, 0.03], "tol": 1e-10}
    weighted = MultiTaskLearnerCV(cv=splits, **options).fit(X, Y, sample_weight=counts)
    rows = np.repeat(np.arange(len(X)), counts)
    cut = MultiTaskLearnerCV(cv=again, **options).fit(X[rows], Y[rows])
    assert weighted.cv_results_["mean_test_score"] == pytest.approx(
        cut.cv_results_["mean_test_score"], abs=1e-7
    )
    assert weighted.coef_ == pytest.approx(cut.coef_, abs=1e-6)
    for scoring in ("r2", "score"):
        weighted.set_params(scoring=scoring).fit(X, Y, sample_weight=counts)
        cut.set_params(scoring=scoring).fit(X[rows], Y[rows])
        assert weighted.best_score_ == pytest.approx(cut.best_score_, abs=1e-7)


def test_scoring(table, apart):
    X, Y = table
    options = {"alphas": [0.3, 0.1], "cv": 3, "tol": 1e-8}
    by_name = MultiTaskLearnerCV(scoring="r2", **options).fit(X, Y)
    own = MultiTaskLearnerCV(scoring="score", **options).fit(X, Y)
    assert own.best_score_ == pytest.approx(by_name.best_score_)

    def error(model, X, y):
        return -mean_squared_error(y, model.predict(X))

    called = MultiTaskLearnerCV(scoring=error, **options).fit(X, Y)
    (train, test), *_ = KFold(3).split(X)
    alone = MultiTaskLearner(alpha=0.1, tol=1e-8).fit(X[train], Y[train])
    found = called.cv_results_["split0_test_score"][1]
    assert found == pytest.approx(-mean_squared_error(Y[test], alone.predict(X[test])), rel=1e-5)
    one = MultiTaskLearnerCV(scoring="r2", **options).fit(X, Y[:, 0])
    alone = MultiTaskLearner(alpha=0.1, tol=1e-8).fit(X[train], Y[train, 0])
    expected = r2_score(Y[test, 0], alone.predict(X[test]))
    assert one.cv_results_["split0_test_score"][1] == pytest.approx(expected, abs=1e-6)
    Xs, ys, losses = apart
    model = MultiTaskLearnerCV("l2,1", losses, scoring="score", **options).fit(Xs, ys)
    assert 0.5 < model.best_score_ < 1.0
    weight = {"kind": np.arange(50)}
    model.fit(Xs, ys, sample_weight=weight)
    assert 0.5 < model.best_score_ < 1.0


@pytest.mark.parametrize("splitter", [StratifiedKFold(3), KFold(3, shuffle=True, random_state=0)])
def test_splitters_split_each_task(apart, splitter):
    Xs, ys, _ = apart
    kinds = {"kind": Xs["kind"], "late": Xs["late"]}
    labels = {"kind": ys["kind"], "late": ys["late"]}
    model = MultiTaskLearnerCV("l2,1", "logistic", alphas=4, cv=splitter).fit(kinds, labels)
    assert "split2_test_score" in model.cv_results_
    assert model.score(kinds, labels) > 0.7


def test_groups_stay_together(table, apart):
    X, Y = table
    groups = np.arange(80) // 10
    model = MultiTaskLearnerCV(alphas=3, cv=GroupKFold(4)).fit(X, Y, groups=groups)
    assert "split3_test_score" in model.cv_results_
    Xs, ys, losses = apart
    groups = {name: np.arange(len(y)) // 5 for name, y in ys.items()}
    model = MultiTaskLearnerCV("l2,1", losses, alphas=3, cv=GroupKFold(2)).fit(
        Xs, ys, groups=groups
    )
    assert "split1_test_score" in model.cv_results_


def problem_of(sizes, losses="squared"):
    rng = np.random.default_rng(3)
    columns = [rng.normal(size=size) for size in sizes]
    targets = TaskTargets(list(range(len(sizes))), columns, "list")
    return build_problem([rng.normal(size=(size, 2)) for size in sizes], targets, losses)


def test_a_task_with_fewer_rows_than_folds_has_one_row_in_each_of_some():
    problem = problem_of([10, 3, 3, 1])
    folds = split_tasks(5, problem)
    held = np.array([[len(rows) for rows in test] for _, test in folds])
    assert held[:, 0].tolist() == [2] * 5
    assert held[:, 1].tolist() == [0, 1, 1, 1, 0]  # begins at the fold of its position
    assert held.sum(axis=0).tolist() == [10, 3, 3, 1]
    for train, test in folds:
        for task, size in enumerate([10, 3, 3, 1]):
            assert sorted([*train[task], *test[task]]) == list(range(size))


def test_a_task_that_would_have_nothing_to_learn_from_is_trained_on_whole():
    problem = problem_of([4, 1])
    for fold in split_tasks(2, problem):
        fitted, held = fold_weights(problem, fold)
        assert fitted.sum(axis=0) == pytest.approx([1.0, 1.0])
        assert fitted[0, 1] == 1.0
        assert not held[:, 1].any()
        assert held[:, 0].sum() == pytest.approx(1.0)


def test_a_task_keeps_both_its_labels():
    Y = np.column_stack([np.arange(6.0), [0, 0, 0, 0, 0, 1]])
    problem = build_problem([np.eye(6)], read_shared(Y), ["squared", "logistic"])
    weights = [fold_weights(problem, fold) for fold in split_tasks(3, problem)]
    scored = [held.any(axis=0).tolist() for _, held in weights]
    assert scored == [[True, True], [True, True], [True, False]]
    assert weights[2][0][:, 1] == pytest.approx(1 / 6)


def test_folds_of_one_table_keep_the_quick_case():
    Y = np.arange(12.0).reshape(6, 2)
    problem = build_problem([np.eye(6)], read_shared(Y), "squared")
    for fold in split_tasks(3, problem):
        fitted, held = fold_weights(problem, fold)
        assert fitted.shape == (6,)
        assert held.shape == (6, 2)


def test_small_tasks_and_tasks_that_do_not_vary():
    rng = np.random.default_rng(4)
    Xs = [rng.normal(size=(size, 5)) for size in (40, 3, 1, 20)]
    ys = [X[:, 0] + 0.1 * rng.normal(size=len(X)) for X in Xs]
    ys[3] = np.full(20, 0.1)
    model = MultiTaskLearnerCV("l2,1", alphas=8, one_standard_error=False).fit(Xs, ys)
    assert np.all(np.isfinite(model.cv_results_["mean_test_score"]))
    assert model.best_score_ > 0.5
    assert 0 in model.support_


def test_a_model_file(tmp_path, apart):
    Xs, ys, losses = apart
    model = MultiTaskLearnerCV("l2,1", losses, alphas=5, cv=KFold(3)).fit(Xs, ys)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    found = mixnorm.load(tmp_path / "model.mixnorm")
    assert (found.alpha_, found.best_score_) == (model.alpha_, model.best_score_)
    for name, predictions in model.predict(Xs).items():
        assert np.array_equal(found.predict(Xs)[name], predictions)


def test_an_interrupt_keeps_the_folds_that_are_done(table, monkeypatch):
    calls, real = [], proximal.path

    def interrupted(*args, **options):
        calls.append(1)
        for found in real(*args, **options):
            if len(calls) == 4:  # the first is that of the best intercepts
                object.__setattr__(found, "interrupted", True)
            yield found

    monkeypatch.setattr(proximal, "path", interrupted)
    with pytest.warns(InterruptedFitWarning, match="search over 3 folds"):
        model = MultiTaskLearnerCV(alphas=4, cv=3).fit(*table)
    assert len(calls) == 4
    assert model.n_splits_ == 2
    assert model.predict(table[0]).shape == table[1].shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": []}, "no folds"),
        ({"cv": 1}, "cv=1 is less than two folds"),
        ({"alphas": 0}, "alphas=0"),
        ({"alphas": [0.1, 0.2]}, "must fall"),
        ({"alpha_ratio": 2.0}, "alpha_ratio"),
        ({"scoring": "best"}, "best"),
        ({"losses": "hinges"}, "not known"),
    ],
)
def test_wrong_parameters(table, options, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskLearnerCV(**options).fit(*table)


def test_wrong_splits_of_tasks(apart):
    Xs, ys, losses = apart
    folds = list(KFold(3).split(np.ones(30)))
    with pytest.raises(ValueError, match="does not say how to split each task"):
        MultiTaskLearnerCV("l2,1", losses, cv=folds).fit(Xs, ys)
    with pytest.raises(ValueError, match="Task 'cost': .*"):
        MultiTaskLearnerCV("l2,1", losses, cv=StratifiedKFold(3)).fit(Xs, ys)
    groups = {name: np.arange(len(y)) % (3 + (name == "cost")) for name, y in ys.items()}
    with pytest.raises(ValueError, match="different numbers of folds"):
        MultiTaskLearnerCV("l2,1", losses, cv=LeaveOneGroupOut()).fit(Xs, ys, groups=groups)
    assert MultiTaskLearnerCV("l2,1", losses, cv=ShuffleSplit(2), alphas=2).fit(Xs, ys).alpha_ > 0


def test_nothing_to_score_is_an_error():
    with pytest.raises(ValueError, match="holds out no label of a task that keeps others"):
        MultiTaskLearnerCV(alphas=2).fit([np.eye(2)[:1]] * 2, [[1.0], [2.0]])
    with pytest.raises(ValueError, match="targets that do not vary"):
        MultiTaskLearnerCV(alphas=2).fit(np.eye(6), np.ones(6))
