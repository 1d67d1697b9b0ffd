"""Many tasks under one norm, against solutions found in other ways."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LogisticRegression, MultiTaskLasso
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm.estimators import MixedNormRegressor, MultiTaskLearner
from mixnorm.exceptions import ModelFileError, NotConvergedWarning
from mixnorm.losses import Huber
from mixnorm.norms import MixedNorm

NORMS = ["l1,1", "l2,1", "l2,2", "linf,1", "trace"]
TWO_NORMS = ["l2,1", "trace"]
TIGHT = {"tol": 1e-10, "max_iter": 5000}


# --- against other solutions


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_table_of_numbers_is_scikit_learns_multi_task_lasso(table, fit_intercept):
    X, Y = table
    model = MultiTaskLearner("l2,1", alpha=0.2, fit_intercept=fit_intercept, **TIGHT).fit(X, Y)
    peer = MultiTaskLasso(alpha=0.2, fit_intercept=fit_intercept, tol=1e-12, max_iter=100_000)
    peer.fit(X, Y)
    assert model.coef_ == pytest.approx(peer.coef_, abs=1e-6)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-6)
    assert model.support_.tolist() == np.flatnonzero(np.any(peer.coef_, axis=0)).tolist()
    assert model.score(X, Y) == pytest.approx(r2_score(Y, peer.predict(X)))


def test_orthogonal_columns_have_a_closed_form():
    # With XᵀX / n the unit matrix a row of weights is its least squares value, shrunk by alpha.
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.normal(size=(20, 5)))[0] * np.sqrt(20)
    Y = rng.normal(size=(20, 3))
    best = Q.T @ Y / 20
    sizes = np.linalg.norm(best, axis=1, keepdims=True)
    shrunk = best * np.maximum(0.0, 1.0 - 0.2 / sizes)
    model = MultiTaskLearner("l2,1", alpha=0.2, fit_intercept=False, **TIGHT).fit(Q, Y)
    assert model.coef_ == pytest.approx(shrunk.T, abs=1e-7)
    # And for the trace norm the singular values are.
    U, s, Vt = np.linalg.svd(best, full_matrices=False)
    low = U * np.maximum(0.0, s - 0.2) @ Vt
    model = MultiTaskLearner("trace", alpha=0.2, fit_intercept=False, **TIGHT).fit(Q, Y)
    assert model.coef_ == pytest.approx(low.T, abs=1e-5)
    assert model.rank_ == np.sum(s > 0.2)
    assert model.norm_value_ == pytest.approx(np.maximum(0.0, s - 0.2).sum(), abs=1e-6)


def test_under_l11_tasks_are_apart(holes):
    X, Y = holes
    model = MultiTaskLearner("l1,1", alpha=0.1, **TIGHT).fit(X, Y)
    for task in range(4):
        rows = ~np.isnan(Y[:, task])
        alone = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(X[rows], Y[rows, task])
        assert model.coef_[task] == pytest.approx(alone.coef_, abs=1e-6)
        assert model.intercept_[task] == pytest.approx(alone.intercept_, abs=1e-6)


def test_under_l11_labels_are_apart_too(table):
    X, Y = table
    labels = np.where(np.median(Y, axis=0) < Y, "high", "low").astype(object)
    labels[::7, 1] = None
    model = MultiTaskLearner("l1,1", "logistic", alpha=0.05, tol=1e-8).fit(X, labels)
    for task in range(4):
        rows = np.array([label is not None for label in labels[:, task]])
        C = 1 / (0.05 * rows.sum())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the name of this penalty is about to change
            alone = LogisticRegression(
                l1_ratio=1.0, penalty="l1", C=C, solver="saga", tol=1e-10, max_iter=100_000
            ).fit(X[rows], labels[rows, task].astype(str))
        assert model.coef_[task] == pytest.approx(alone.coef_[0], abs=1e-4)
        assert model.intercept_[task] == pytest.approx(alone.intercept_[0], abs=1e-3)
        assert model.classes_[task].tolist() == ["high", "low"]


def objective(model, Xs, ys, losses, norm):
    """The objective, written out."""
    formulas = {
        "squared": lambda z, y: 0.5 * (z - y) ** 2,
        "absolute": lambda z, y: np.abs(z - y),
        "logistic": lambda z, y: np.logaddexp(0.0, -y * z),
        "hinge": lambda z, y: np.maximum(0.0, 1.0 - y * z),
        "squared_hinge": lambda z, y: np.maximum(0.0, 1.0 - y * z) ** 2,
    }

    def value(flat):
        W, b = flat[: -len(Xs)].reshape(-1, len(Xs)), flat[-len(Xs) :]
        parts = [
            formulas[loss](X @ W[:, task] + b[task], y).mean()
            for task, (X, y, loss) in enumerate(zip(Xs, ys, losses, strict=True))
        ]
        return sum(parts) + model.alpha * norm.value(W)

    return value


@pytest.mark.parametrize("norm", TWO_NORMS)
def test_mixed_losses_reach_what_a_general_minimiser_reaches(apart, norm):
    Xs, ys, _ = apart
    losses = ["squared", "logistic", "squared_hinge"]
    matrices, signs = [X[:, :3] for X in Xs.values()], list(ys.values())
    model = MultiTaskLearner(norm, losses, alpha=0.1, **TIGHT).fit(matrices, signs)
    signs = [signs[0], np.where(signs[1] == "b", 1, -1), np.where(signs[2], 1, -1)]
    value = objective(model, matrices, signs, losses, mixnorm.norms.as_norm(norm))
    found = np.concatenate([model.coef_.T.reshape(-1), model.intercept_])
    assert value(found) == pytest.approx(model.objective_, rel=1e-9)
    best, start = np.inf, np.full(12, 0.1)
    for _ in range(3):  # a simplex stalls at kinks; begun anew it goes on
        peer = optimize.minimize(
            value, start, method="Nelder-Mead",
            options={"maxiter": 40_000, "maxfev": 40_000, "xatol": 1e-10, "fatol": 1e-13,
                     "adaptive": True},
        )  # fmt: skip
        best, start = min(best, peer.fun), peer.x
    peer = optimize.minimize(value, start, method="Powell", options={"xtol": 1e-9, "ftol": 1e-13})
    best = min(best, peer.fun)
    assert model.objective_ <= best + 1e-9
    assert model.objective_ == pytest.approx(best, rel=1e-4)
    assert model.objective_ - model.dual_gap_ <= best + 1e-12


@pytest.fixture(scope="module")
def fitted(apart):
    """A learner of all three tasks for each of two norms; tests must not change it."""
    Xs, ys, losses = apart
    options = {"alpha": 0.1, "tol": 1e-6, "max_iter": 5000}
    return {norm: MultiTaskLearner(norm, losses, **options).fit(Xs, ys) for norm in TWO_NORMS}


@pytest.mark.parametrize("norm", TWO_NORMS)
def test_no_change_nearby_is_better(apart, fitted, norm):
    Xs, ys, losses = apart
    model = fitted[norm]
    signs = [ys["cost"], np.where(ys["kind"] == "b", 1, -1), np.where(ys["late"], 1, -1)]
    value = objective(
        model, list(Xs.values()), signs, list(losses.values()), mixnorm.norms.as_norm(norm)
    )
    found = np.concatenate([model.coef_.T.reshape(-1), model.intercept_])
    assert value(found) == pytest.approx(model.objective_, rel=1e-9)
    rng = np.random.default_rng(4)
    for size in (1e-3, 1e-2, 1e-1, 1.0):
        for _ in range(100):
            moved = value(found + size * rng.normal(size=found.size))
            assert moved >= model.objective_ - model.dual_gap_ - 1e-12


def test_equal_losses_are_those_of_the_regressor(table):
    X, Y = table
    for norm in NORMS:
        one = MultiTaskLearner(norm, alpha=0.3, **TIGHT).fit(X, Y)
        other = MixedNormRegressor(norm, alpha=0.3, **TIGHT).fit(X, Y)
        assert one.coef_ == pytest.approx(other.coef_, abs=1e-6)
        assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)


@pytest.mark.parametrize(
    ("norm", "losses"),
    [(norm, "squared") for norm in NORMS] + [("l2,1", ["squared", "huber", "squared", "absolute"])],
)
def test_one_x_and_the_same_x_for_each_task(holes, norm, losses):
    X, Y = holes
    tol = 1e-8 if losses == "squared" else 1e-4  # kinks take long
    options = {"alpha": 0.2, "tol": tol, "max_iter": 5000}
    shared = MultiTaskLearner(norm, losses, **options).fit(X, Y)
    rows = [~np.isnan(Y[:, task]) for task in range(4)]
    separate = MultiTaskLearner(norm, losses, **options).fit(
        [X[own] for own in rows], [Y[own, task] for task, own in enumerate(rows)]
    )
    same = MultiTaskLearner(norm, losses, **options).fit([X] * 4, list(Y.T))
    for other in (separate, same):
        assert abs(other.objective_ - shared.objective_) <= shared.dual_gap_ + other.dual_gap_
        assert other.coef_ == pytest.approx(shared.coef_, abs=10 * np.sqrt(tol))


@pytest.mark.parametrize("norm", TWO_NORMS)
def test_whole_weights_are_repeated_rows(apart, norm):
    Xs, ys, losses = apart
    losses = {**losses, "late": "squared_hinge"}
    rng = np.random.default_rng(5)
    counts = {name: rng.integers(0, 4, len(X)) for name, X in Xs.items()}
    options = {"alpha": 0.1, "tol": 1e-9, "max_iter": 5000}
    weighted = MultiTaskLearner(norm, losses, **options).fit(Xs, ys, sample_weight=counts)
    repeated = MultiTaskLearner(norm, losses, **options).fit(
        {name: np.repeat(X, counts[name], axis=0) for name, X in Xs.items()},
        {name: np.repeat(y, counts[name]) for name, y in ys.items()},
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-3)


def test_weights_of_entries(table):
    X, Y = table
    counts = np.random.default_rng(6).integers(0, 3, Y.shape)
    weighted = MultiTaskLearner(alpha=0.2, **TIGHT).fit(X, Y, sample_weight=counts)
    missing = MultiTaskLearner(alpha=0.2, **TIGHT).fit(
        X, np.where(counts > 0, Y, np.nan), sample_weight=np.maximum(counts, 1)
    )
    repeated = MultiTaskLearner(alpha=0.2, **TIGHT).fit(
        [np.repeat(X, own, axis=0) for own in counts.T],
        [np.repeat(y, own) for y, own in zip(Y.T, counts.T, strict=True)],
    )
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-6)
    assert missing.coef_ == pytest.approx(repeated.coef_, abs=1e-6)
    rows = np.random.default_rng(7).integers(0, 3, len(X))
    one = MultiTaskLearner(alpha=0.2, **TIGHT).fit(X, Y, sample_weight=rows)
    two = MultiTaskLearner(alpha=0.2, **TIGHT).fit(X, Y, sample_weight=np.tile(rows, (4, 1)).T)
    assert one.coef_ == pytest.approx(two.coef_, abs=1e-9)


@pytest.mark.parametrize("norm", TWO_NORMS)
def test_tasks_in_another_order(apart, fitted, norm):
    Xs, ys, losses = apart
    model, order = fitted[norm], ["late", "cost", "kind"]
    turned = clone(model).set_params(losses=[losses[name] for name in order])
    turned.fit([Xs[name] for name in order], [ys[name] for name in order])
    assert turned.objective_ == pytest.approx(model.objective_, rel=2e-6)
    assert turned.coef_[[1, 2, 0]] == pytest.approx(model.coef_, abs=1e-2)


@pytest.mark.parametrize("norm", TWO_NORMS)
def test_ball_and_penalty_meet(apart, norm):
    Xs, ys, _ = apart
    losses = ["squared", "logistic", "squared_hinge"]
    options = {"tol": 1e-8, "max_iter": 5000}
    free = MultiTaskLearner(norm, losses, alpha=0.1, **options)
    free.fit(list(Xs.values()), list(ys.values()))
    ball = MultiTaskLearner(norm, losses, radius=free.norm_value_, **options)
    ball.fit(list(Xs.values()), list(ys.values()))
    assert ball.objective_ == pytest.approx(free.objective_ - 0.1 * free.norm_value_, rel=1e-6)
    assert ball.norm_value_ <= free.norm_value_ * (1 + 1e-9)


def test_a_path_is_the_fits_along_it(holes):
    X, Y = holes
    model = MultiTaskLearner("l2,1", **TIGHT)
    path = model.path(X, Y, alphas=6, alpha_ratio=0.05)
    assert not hasattr(model, "coef_")
    assert path.coefs.shape == (6, 4, 12)
    assert not path.coefs[0].any()
    for position, alpha in enumerate(path.alphas):
        alone = clone(model).set_params(alpha=alpha).fit(X, Y)
        assert path.coef(position) == pytest.approx(alone.coef_, abs=1e-5)
        assert path.intercepts[position] == pytest.approx(alone.intercept_, abs=1e-5)
    below = clone(model).set_params(alpha=0.99 * path.alpha_max).fit(X, Y)
    assert len(below.support_) > 0


# --- habits


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_targets_of_any_scale(table, scale):
    X, Y = table
    plain = MultiTaskLearner(alpha=0.2, **TIGHT).fit(X, Y)
    model = MultiTaskLearner(alpha=0.2 * scale, **TIGHT).fit(X, Y * scale)
    assert model.coef_ / scale == pytest.approx(plain.coef_, abs=1e-6)
    assert model.norm_value_ / scale == pytest.approx(plain.norm_value_)


def test_targets_and_columns_that_do_not_vary(table):
    X, Y = table
    X = np.column_stack([X, np.ones(60), np.zeros(60)])
    Y = np.column_stack([Y, np.full(60, 0.1)])
    model = MultiTaskLearner(alpha=0.1, tol=1e-8).fit(X, Y)
    assert not model.coef_[4].any() or np.abs(model.coef_[4]).max() < 1e-8
    assert model.intercept_[4] == pytest.approx(0.1)
    assert not model.coef_[:, 12:].any()
    still = MultiTaskLearner(alpha=0.1).fit(X, np.full(60, 0.1))
    assert still.predict(X) == pytest.approx(0.1)


def test_a_warm_start_begins_at_the_solution(apart):
    Xs, ys, _ = apart
    losses = ["squared", "logistic", "squared_hinge"]
    data = list(Xs.values()), list(ys.values())
    model = MultiTaskLearner("l2,1", losses, tol=1e-8, warm_start=True).fit(*data)
    first = model.objective_
    model.fit(*data)
    assert model.n_iter_ == 1
    assert model.objective_ == pytest.approx(first, rel=1e-7)
    with pytest.raises(ValueError, match="6 features and 3 outputs, but the data have 6 and 2"):
        model.set_params(losses="squared").fit([Xs["cost"]] * 2, [ys["cost"]] * 2)
    assert model.coef_.shape == (3, 6)


def test_clone_pickle_and_search(table):
    X, Y = table
    model = MultiTaskLearner(MixedNorm(2, 1), [Huber(0.5)] * 4, alpha=0.1)
    copy = pickle.loads(pickle.dumps(clone(model).fit(X, Y)))
    assert copy.predict(X) == pytest.approx(model.fit(X, Y).predict(X))
    pipeline = make_pipeline(StandardScaler(), MultiTaskLearner())
    grid = {"multitasklearner__alpha": [0.01, 0.1], "multitasklearner__norm": ["l2,1", "trace"]}
    assert GridSearchCV(pipeline, grid, cv=3).fit(X, Y).best_score_ > 0.8
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.8


def test_a_model_file(tmp_path, apart, holes):
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses, alpha=0.2).fit(Xs, ys)
    mixnorm.save(model, tmp_path / "model.mixnorm")
    found = mixnorm.load(tmp_path / "model.mixnorm")
    assert found.tasks_ == model.tasks_
    assert np.array_equal(found.coef_, model.coef_)
    for name, predictions in model.predict(Xs).items():
        assert np.array_equal(found.predict(Xs)[name], predictions)
    X, Y = holes
    model = MultiTaskLearner("trace", [Huber(2.0), "squared", "squared", "absolute"]).fit(X, Y)
    mixnorm.save(model, tmp_path / "other.mixnorm")
    found = mixnorm.load(tmp_path / "other.mixnorm")
    assert np.array_equal(found.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("names", ("cost", "kind")),
        ("names", ("cost", "cost", "late")),
        ("names", ["cost", "kind", "late"]),
        ("classes", (None, None, None)),
        ("classes", (None, np.array(["a", "b"]), np.array([0, 1, 2]))),
        ("losses", ("squared", "squared", "hinge")),
        ("single", True),
        ("single", 0),
    ],
)
def test_a_model_file_that_does_not_fit_is_refused(tmp_path, apart, name, value):
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses, alpha=0.2).fit(Xs, ys)
    outputs = replace(model.model_.outputs, **{name: value})
    model.model_ = replace(model.model_, outputs=outputs)
    with pytest.raises(ModelFileError, match="could not be read again"):
        mixnorm.save(model, tmp_path / "model.mixnorm")


def test_parameters_set_after_a_fit_change_nothing(apart):
    Xs, ys, _ = apart
    losses = {"cost": Huber(0.5), "kind": "logistic", "late": "hinge"}
    model = MultiTaskLearner("l2,1", losses, alpha=0.2).fit(Xs, ys)
    before = model.predict(Xs)
    losses["cost"].set_params(delta=9.0)
    assert model.model_.outputs.losses[0] == Huber(0.5)
    model.set_params(losses="squared")
    after = model.predict(Xs)
    assert all(np.array_equal(before[name], after[name]) for name in Xs)
    assert hasattr(model, "predict_proba")
    assert not hasattr(clone(model), "predict_proba")


def test_what_was_not_reached_is_said(apart):
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses, alpha=0.01, tol=1e-9, max_iter=1)
    with pytest.warns(NotConvergedWarning, match="max_iter=1 with relative duality gap"):
        model.fit(Xs, ys)
    assert model.dual_gap_ > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "l3,1"}, "'l3,1' is not known"),
        ({"alpha": -1.0}, "alpha=-1.0"),
        ({"alpha": 0.0}, "must be positive"),
        ({"radius": -1.0}, "radius"),
        ({"losses": "huge"}, "'huge' is not known"),
        ({"losses": ["squared"] * 3}, "differ in number: 3 and 4"),
        ({"norm": MixedNorm(2, 1, groups=(0, 1))}, "groups"),
    ],
)
def test_wrong_parameters(table, options, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskLearner(**options).fit(*table)


def test_wrong_data(table, apart):
    X, Y = table
    bad = X.copy()
    bad[0, 0] = np.nan
    Xs, ys, losses = apart
    model = MultiTaskLearner("l2,1", losses)
    with pytest.raises(ValueError, match="contains NaN"):
        MultiTaskLearner().fit(bad, Y)
    with pytest.raises(ValueError, match=r"Task 1: .*contains NaN"):
        MultiTaskLearner().fit([X, bad], [Y[:, 0], Y[:, 1]])
    with pytest.raises(ValueError, match=r"Task 1: X has 11 features.*12 features.*same features"):
        MultiTaskLearner().fit([X, X[:, 1:]], [Y[:, 0], Y[:, 1]])
    with pytest.raises(ValueError, match=r"Task 1: Found array with 0 sample"):
        MultiTaskLearner().fit([X, X[:0]], [Y[:, 0], []])
    with pytest.raises(ValueError, match="requires y to be passed"):
        MultiTaskLearner().fit(X, None)
    with pytest.raises(ValueError, match="X is a dict of tasks, but y is a ndarray"):
        model.fit(Xs, Y)
    with pytest.raises(ValueError, match="Found array with dim 3"):
        MultiTaskLearner().fit(np.stack([X, X]), Y[:, :2])
    with pytest.raises(NotFittedError):
        model.predict(Xs)
    model.fit(Xs, ys)
    with pytest.raises(ValueError, match="no task 'price'; the tasks are 'cost', 'kind', 'late'"):
        model.predict(Xs["cost"], task="price")
    with pytest.raises(ValueError, match="no task 'price'"):
        model.predict({"price": Xs["cost"]})
    with pytest.raises(ValueError, match="list of 2 tasks, but 3 were fitted"):
        model.predict([Xs["cost"]] * 2)
    with pytest.raises(ValueError, match="1 columns for 3 tasks"):
        model.score(Xs["cost"], ys["cost"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.score(Xs["cost"], {"cost": ys["cost"][1:]})
    with pytest.raises(ValueError, match="needs two labels"):
        model.fit(Xs, {**ys, "kind": ["a"] * 50})
    assert model.predict(Xs["cost"], task="kind").shape == (30,)  # the earlier fit is whole
