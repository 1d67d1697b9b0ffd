"""What all estimators on the proximal engine share."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris

from mixnorm import (
    MixedNormClassifier,
    MixedNormClassifierCV,
    MixedNormRegressor,
    MultiTaskLearner,
)
from mixnorm.engines import proximal
from mixnorm.engines.proximal.row_solver import RowSolver
from mixnorm.estimators._common.units import Frame
from mixnorm.estimators.mixed_norm.base import (
    Training,
    check_dual_loss,
    drop_unweighted_rows,
    working_dtypes,
)
from mixnorm.estimators.mixed_norm.training import moderate
from mixnorm.exceptions import InterruptedFitWarning, MixnormWarning, NotConvergedWarning
from mixnorm.losses import Absolute, Loss, Squared
from mixnorm.norms import MixedNorm, SchattenNorm


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture
def interrupt_at(monkeypatch):
    """Raise KeyboardInterrupt at the given step of the engine, counted over all fits."""
    real, calls = RowSolver.step, []

    def arm(count):
        def step(self, *args):
            calls.append(count)
            if len(calls) == count:
                raise KeyboardInterrupt
            return real(self, *args)

        monkeypatch.setattr(RowSolver, "step", step)

    return arm


# --- parameters


WRONG = [
    (dict(norm="l3,1"), ValueError, "norm='l3,1' is not known; choose one of"),
    (dict(norm=2), ValueError, "norm=2 is not known"),
    (dict(norm=MixedNorm), ValueError, "is not known"),
    (dict(norm=MixedNorm(3, 1)), ValueError, "inner must be 1, 2, infinity or the same"),
    (dict(norm=SchattenNorm(1.5)), TypeError, "no method 'prox', .* q 1, 2 or infinity have it"),
    (dict(norm=SchattenNorm(1.5), radius=1.0), TypeError, "no method 'project', which a ball"),
    (dict(norm=MixedNorm(2, 1.5)), TypeError, "a penalty needs. Mixed norms with outer 1 or inf"),
    (dict(alpha=-1.0), ValueError, "alpha=-1.0 must be at least 0 and finite: it is the weight"),
    (dict(alpha=0), ValueError, "alpha=0 must be positive: .* Give a small alpha"),
    (dict(alpha=np.inf), ValueError, "alpha=inf must be at least 0 and finite"),
    (dict(alpha=np.nan), ValueError, "alpha=nan"),
    (dict(alpha="0.1"), TypeError, "alpha='0.1' must be a number"),
    (dict(alpha=True), TypeError, "alpha=True must be a number"),
    (dict(alpha=None), TypeError, "alpha=None must be a number"),
    (dict(radius=-1.0), ValueError, "radius=-1.0 must be at least 0"),
    (dict(radius=np.inf), ValueError, "radius=inf"),
    (dict(radius="a"), TypeError, "radius='a' must be a number"),
    (dict(tol=-1e-3), ValueError, "tol=-0.001"),
    (dict(tol="small"), TypeError, "tol='small'"),
    (dict(alpha=-7.0, radius=1.0), ValueError, "alpha=-7.0 must be at least 0 and finite"),
    (dict(alpha="a", radius=1.0), TypeError, "alpha='a' must be a number"),
    (dict(max_iter=0), ValueError, "max_iter=0 must be at least 1"),
    (dict(max_iter=1.5), TypeError, "max_iter=1.5 must be a whole number"),
    (dict(fit_intercept="yes"), TypeError, "fit_intercept='yes' must be True or False"),
    (dict(warm_start=1), TypeError, "warm_start=1 must be True or False"),
    (dict(loss="no"), ValueError, "loss='no' is not known; choose one of"),
]


@pytest.mark.parametrize(("params", "error", "message"), WRONG, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("kind", [MixedNormClassifier, MixedNormRegressor])
def test_wrong_parameters(iris, kind, params, error, message):
    model = kind(**params)
    with pytest.raises(error, match=message):
        model.fit(*iris)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(error, match=message):
        model.path(*iris, alphas=3) if "radius" not in params else model.fit(*iris)


def test_a_radius_replaces_alpha(iris):
    found = MixedNormClassifier(alpha=0.0, radius=1.0).fit(*iris)
    assert found.norm_value_ <= 1.0 + 1e-9
    assert np.array_equal(found.coef_, MixedNormClassifier(radius=1.0).fit(*iris).coef_)


def test_a_loss_needs_a_conjugate():
    class Bare(Squared):
        conjugate = None

    assert isinstance(Bare(), Loss)
    with pytest.raises(ValueError, match="has no conjugate, which the duality gap needs"):
        check_dual_loss(Bare(), {"squared": Squared})
    assert check_dual_loss(Absolute(), {}) == Absolute()


# --- dtypes, rows and units


def test_float32_stays_where_it_is_exact_enough(iris):
    X, y = iris
    assert np.float32 in working_dtypes(1e-5)
    assert working_dtypes(1e-6) is np.float64
    X32 = X.astype(np.float32)
    assert MixedNormClassifier().fit(X32, y).coef_.dtype == np.float32
    assert MixedNormClassifier(tol=1e-7).fit(X32, y).coef_.dtype == np.float64
    assert MixedNormClassifier().fit((10 * X).astype(int), y).coef_.dtype == np.float64


def test_rows_of_weight_zero_are_left_out():
    weight, X, y = drop_unweighted_rows(
        np.array([0.5, 0.0, 0.5]), sp.csc_array(np.eye(3)), np.arange(3)
    )
    assert X.shape == (2, 3)
    assert y.tolist() == [0, 2]
    assert weight.tolist() == [0.5, 0.5]
    X = np.eye(2)
    assert drop_unweighted_rows(np.ones(2), X)[1] is X


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(("dtype", "power"), [(np.float32, 60), (np.float64, 400)])
def test_extreme_sizes_are_made_moderate(make, dtype, power):
    for exponent in (-power, power):
        X = make(np.array([[3.0, 0.0], [1.0, -2.0]], dtype=dtype) * 2.0**exponent).astype(dtype)
        (found, again), told = moderate([X, X])
        assert abs(found - again).max() == 0.0
        assert found.dtype == dtype
        assert told == {"input_unit": 2.0 ** (exponent + 1), "largest_input": 1.5}
        assert abs(found).max() == 1.5
        assert abs(found * dtype(told["input_unit"]) - X).max() == 0.0
    plain = make(np.ones((2, 2), dtype=dtype))
    assert moderate([plain])[0][0] is plain
    nothing = {"input_unit": 1.0, "largest_input": 0.0}
    assert moderate([make(np.zeros((2, 2), dtype=dtype))])[1] == nothing


def test_units_go_in_and_out():
    design = proximal.SharedDesign(np.eye(2), 1)
    training = Training(
        design, Squared(), None, np.full(2, 0.5), Frame(np.array([3.0]), 10.0, 2), 4.0
    )
    weights, intercept = training.inward(np.array([[5.0], [0.0]]), np.array([23.0]))
    assert weights.tolist() == [[2.0], [0.0]]
    assert intercept.tolist() == [2.0]
    inside = proximal.Solution(
        weights=weights,
        intercept=intercept,
        alpha=0.5,
        radius=None,
        value=1.0,
        norm_value=2.0,
        objective=2.0,
        gap=0.1,
        scale=4.0,
        relative_gap=0.025,
        iterations=3,
        converged=True,
        history=(1.0, 0.1),
    )
    found = training.outward(inside)
    assert found.weights.tolist() == [[5.0], [0.0]]
    assert found.intercept.tolist() == [23.0]
    assert (found.value, found.objective, found.gap, found.scale) == (100.0, 200.0, 10.0, 400.0)
    assert (found.norm_value, found.relative_gap) == (5.0, 0.025)
    assert found.objective == pytest.approx(found.value + found.alpha * found.norm_value)


# --- warnings


def test_a_gap_that_is_not_reached_is_told(iris):
    with pytest.warns(NotConvergedWarning, match=r"after max_iter=1 with .* gap \d.*\(tol 1e-09\)"):
        model = MixedNormClassifier(alpha=1e-3, tol=1e-9, max_iter=1).fit(*iris)
    assert model.n_iter_ == 1
    assert model.dual_gap_ > 1e-9
    with pytest.warns(NotConvergedWarning, match="Raise max_iter, scale X, or lower radius"):
        MixedNormClassifier(radius=30.0, tol=1e-9, max_iter=1).fit(*iris)


def test_a_gap_that_hardly_falls_is_told(iris):
    X, y = iris
    told = r"after \d+ iterations, because the gap fell by less than one per cent in the last 60, "
    with pytest.warns(NotConvergedWarning, match=told + ".* Raise tol, scale X, or raise alpha"):
        MixedNormClassifier(tol=0.0).fit(X, y)
    with pytest.warns(NotConvergedWarning, match="Raise tol, give X as float64, scale X, or raise"):
        MixedNormClassifier(alpha=1e-4, tol=1e-5).fit((X + 1e4).astype(np.float32), y)


def test_a_ball_that_is_too_large_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * [1.0, 1e3, 1.0, 1.0, 1e-3, 1.0]  # far from scaled alike
    y = X[:, 0] + rng.normal(size=80)
    with pytest.warns(
        NotConvergedWarning, match="(fell by less|more effort) .* scale X, or lower radius"
    ) as all_:
        MixedNormRegressor(radius=1e8, tol=1e-8).fit(X, y)
    assert "rounding" not in str(all_[0].message)


@pytest.mark.parametrize("has", ["prox", "project"])
def test_a_norm_with_half_of_the_abilities(iris, has):
    class Half:
        def __init__(self):
            self.whole = MixedNorm(2, 1)
            self.value, self.dual = self.whole.value, self.whole.dual
            setattr(self, has, getattr(self.whole, has))

    right, wrong = ({}, {"radius": 1.0}) if has == "prox" else ({"radius": 1.0}, {})
    assert MixedNormClassifier(Half(), **right).fit(*iris).score(*iris) > 0.5
    remedy = "Or leave radius at None and give alpha" if has == "prox" else "Or give a radius"
    with pytest.raises(TypeError, match=f"give a norm of yours the method. {remedy}"):
        MixedNormClassifier(Half(), **wrong).fit(*iris)


# --- targets and weights of the wrong kind


@pytest.mark.parametrize(
    "kind", [MixedNormClassifier, MixedNormClassifierCV, MixedNormRegressor, MultiTaskLearner]
)
def test_sparse_targets(iris, kind):
    X, y = iris
    for make in (sp.csr_array, sp.csc_matrix):
        message = rf"y is a sparse matrix \({make.__name__}\).* Give y.toarray\(\).ravel\(\)"
        with pytest.raises(TypeError, match=message):
            kind().fit(X, make(y[:, None]))
    with pytest.raises(TypeError, match=r"Give y.toarray\(\)\."):
        kind().fit(X, sp.csr_array(np.c_[y, y]))


@pytest.mark.parametrize("make", [list, lambda y: np.asarray(y, dtype=object), pd.Series])
@pytest.mark.parametrize("kind", [MixedNormClassifier, MixedNormClassifierCV])
def test_labels_of_several_types(iris, kind, make):
    X, y = iris
    labels = make([int(label) if label else "none" for label in y])
    with pytest.raises(TypeError, match=r"of several types \(int, str\), .* labels of one type"):
        kind().fit(X, labels)


@pytest.mark.parametrize(
    "kind", [MixedNormClassifier, MixedNormClassifierCV, MixedNormRegressor, MultiTaskLearner]
)
def test_weights_by_a_name(iris, kind):
    with pytest.raises(TypeError, match=r"='balanced' is a name, .*compute_sample_weight\('bal"):
        kind().fit(*iris, sample_weight="balanced")


def test_a_path_warns_once(iris):
    with pytest.warns(MixnormWarning, match=r"For \d of 4 values of alpha the gap was") as told:
        MixedNormClassifier(tol=1e-9, max_iter=1).path(*iris, alphas=4)
    assert len(told) == 1


def test_what_overflows_is_an_error(iris, monkeypatch):
    X, y = iris
    real = proximal.engine._make_result

    def overflowed(*args):
        return replace(real(*args), objective=np.nan)

    monkeypatch.setattr(proximal.engine, "_make_result", overflowed)
    with pytest.raises(ValueError, match="The numbers overflowed: .* Scale them"):
        MixedNormClassifier().fit(X, y)
    with pytest.raises(ValueError, match="The numbers overflowed"):
        MixedNormClassifier().path(X, y, alphas=2)


# --- warm starts


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_warm_start_saves_iterations(iris, classes, norm):
    X, y = iris
    y = np.minimum(y, classes - 1)
    options = dict(norm=norm, alpha=3e-2, tol=1e-6)
    cold = MixedNormClassifier(**options).fit(X, y)
    warm = MixedNormClassifier(**options, warm_start=True).fit(X, y)
    assert warm.n_iter_ == cold.n_iter_ > 1
    warm.fit(X, y)
    assert warm.n_iter_ == 1
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-5)
    warm.set_params(alpha=2.9e-2).fit(X, y)
    near = MixedNormClassifier(**options | {"alpha": 2.9e-2}).fit(X, y)
    assert warm.n_iter_ < near.n_iter_
    assert warm.coef_ == pytest.approx(near.coef_, abs=1e-2)


def test_warm_start_in_a_ball_without_intercept(iris):
    X, y = iris
    model = MixedNormRegressor(radius=1.0, tol=1e-8, warm_start=True).fit(X, 5.0 * y)
    model.set_params(radius=0.5, fit_intercept=False).fit(X, 5.0 * y)
    fresh = MixedNormRegressor(radius=0.5, tol=1e-8, fit_intercept=False).fit(X, 5.0 * y)
    assert model.intercept_ == 0.0
    assert model.coef_ == pytest.approx(fresh.coef_, abs=1e-3)


def test_warm_start_refuses_other_shapes(iris):
    X, y = iris
    model = MixedNormRegressor(warm_start=True).fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="for 4 features and 1 outputs, but the data have 3 and 1"):
        model.fit(X[:, :3], y)
    assert np.array_equal(model.coef_, before)  # the earlier fit is whole
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="the data have 4 and 2"):
        model.fit(X, X[:, :2])


# --- interrupts


def test_an_interrupt_keeps_what_is_there(iris, interrupt_at):
    interrupt_at(3)
    with pytest.warns(InterruptedFitWarning, match=r"after 2 iterations with relative .* are kept"):
        model = MixedNormClassifier(alpha=1e-3, tol=1e-8, warm_start=True).fit(*iris)
    assert model.dual_gap_ > 1e-8
    assert model.score(*iris) > 0.9
    assert model.fit(*iris).dual_gap_ < 2e-8


def test_an_interrupt_keeps_the_finished_part_of_a_path(iris, interrupt_at):
    interrupt_at(4)
    with pytest.warns(InterruptedFitWarning, match=r"after \d of 50 values of alpha, which"):
        path = MixedNormClassifier().path(*iris)
    assert 1 <= len(path) < 50
    assert path.coefs.shape[0] == len(path)
    assert np.all(path.gaps <= 1e-4 * path.scale)


def test_an_interrupt_before_the_first_point(iris, interrupt_at):
    interrupt_at(1)
    with pytest.raises(KeyboardInterrupt):
        MixedNormClassifier(tol=1e-9).path(*iris, alphas=[0.01])


def test_an_interrupt_keeps_the_folds_that_are_done(iris, interrupt_at):
    model = MixedNormClassifierCV(alphas=5, cv=3)
    expected = model.fit(*iris).cv_results_["split0_test_score"]
    interrupt_at(12)
    with pytest.warns(InterruptedFitWarning, match="search over 3 folds"):
        model.fit(*iris)
    assert model.n_splits_ in (1, 2)
    known = model.cv_results_["split0_test_score"]
    assert known.tolist() == expected[: len(known)].tolist()
    assert model.coef_.shape == (3, 4)


# --- progress


class Recorder:
    """Keeps what the hooks are told, and may ask to stop."""

    def __init__(self, stop_at=None):
        self.stop_at, self.begun, self.ended = stop_at, [], []

    def setup(self, estimator, context):
        self.torn_down = False

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return self.ended.count("alpha") == self.stop_at


def test_a_task_per_iteration(iris):
    recorder = Recorder()
    model = MixedNormClassifier(alpha=1e-3, tol=1e-8).set_callbacks(recorder).fit(*iris)
    assert recorder.begun == ["fit", *["iteration"] * model.n_iter_]
    assert recorder.ended == ["iteration"] * model.n_iter_ + ["fit"]
    assert recorder.torn_down


def test_a_task_per_penalty(iris):
    recorder = Recorder()
    MixedNormClassifier().set_callbacks(recorder).path(*iris, alphas=4)
    assert recorder.begun == ["fit", *["alpha"] * 4]
    assert recorder.ended == [*["alpha"] * 4, "fit"]
    assert recorder.torn_down


def test_a_callback_can_stop_a_path(iris):
    path = MixedNormClassifier().set_callbacks(Recorder(stop_at=3)).path(*iris)
    assert len(path) == 3


def test_a_task_per_fold(iris):
    recorder = Recorder()
    MixedNormClassifierCV(alphas=4, cv=3).set_callbacks(recorder).fit(*iris)
    assert [name for name in recorder.begun if name != "iteration"] == [
        "fit",
        *["fold", *["candidate"] * 4] * 3,
        "refit",
    ]
    assert recorder.ended[-2:] == ["refit", "fit"]


def test_scikit_learns_callbacks_work(iris, capsys):
    callbacks = ProgressBar(), ScoringMonitor(scoring="accuracy")
    for model in (MixedNormClassifier(), MixedNormClassifierCV(alphas=3, cv=2)):
        model.set_callbacks(*callbacks).fit(*iris)
    MixedNormClassifier().set_callbacks(ProgressBar()).path(*iris, alphas=3)
    assert "MixedNormClassifier" in capsys.readouterr().out


# --- what is read off the weights


def test_rank_and_support(iris):
    X, _ = iris
    rng = np.random.default_rng(0)
    Y = X @ rng.normal(size=(4, 1)) @ rng.normal(size=(1, 5)) + 0.01 * rng.normal(size=(150, 5))
    low = MixedNormRegressor("trace", alpha=0.1).fit(X, Y)
    assert low.rank_ == 1
    assert len(low.support_) == 4
    full = MixedNormRegressor("l2,2", alpha=0.001).fit(X, Y)
    assert full.rank_ == 4
    nothing = MixedNormRegressor(alpha=1e3).fit(X, Y)
    assert nothing.rank_ == 0
    assert nothing.support_.shape == (0,)
    assert nothing.transform(X).shape == (150, 0)
    with pytest.raises(Exception, match="not fitted"):
        _ = clone(low).rank_


def test_as_a_selector(iris):
    X, y = iris
    model = MixedNormClassifier(alpha=0.2).fit(X, y)
    assert 0 < len(model.support_) < 4
    assert np.array_equal(model.get_support(indices=True), model.support_)
    assert np.array_equal(model.transform(X), X[:, model.support_])
    assert list(model.get_feature_names_out()) == [f"x{column}" for column in model.support_]


def test_predictions_by_all_columns_or_by_those_in_use(iris):
    X, _ = iris
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(150, 40))])
    model = MixedNormRegressor(alpha=0.3).fit(wide, X[:, :2])
    assert 0 < len(model.support_) < 11
    plain = wide @ model.coef_.T + model.intercept_
    assert model.predict(wide) == pytest.approx(plain)
    assert model.predict(sp.csr_array(wide)) == pytest.approx(plain)
