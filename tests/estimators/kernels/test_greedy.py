"""GreedyMKLRegressor and GreedyMKLClassifier: what users do with them."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm import GreedyMKLClassifier, GreedyMKLRegressor, ShareBoostPathDisplay
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    ModelFileError,
    NoKernelWarning,
    NotConvergedWarning,
)
from mixnorm.kernels import GaussianKernel, KernelBank, KernelStack, gaussian_bank
from mixnorm.losses import MultinomialLogistic
from mixnorm.models import ClassOutputs, Inputs

SMALL = gaussian_bank([0.1, 1.0], relative=True)
EACH = KernelBank.per_feature(widths=[0.1, 1.0, 10.0])
MODELS = [
    GreedyMKLRegressor(n_kernels=3),
    GreedyMKLRegressor(n_kernels=3, algorithm="l1", alpha=0.02),
    GreedyMKLRegressor(n_kernels=3, n_steps=7, algorithm="l2"),
    GreedyMKLRegressor(n_kernels=3, scan="factors"),
    GreedyMKLClassifier(n_kernels=3),
    GreedyMKLClassifier(n_kernels=3, loss="logistic", tol=1e-6),
    GreedyMKLClassifier(n_kernels=3, algorithm="l1", alpha=0.01),
    GreedyMKLClassifier(n_kernels=3, n_steps=6, algorithm="l2", loss="margin"),
]


def additive(n=150, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 / 2.0 + np.abs(X[:, 2]) + np.cos(X[:, 3])
    return X, y + 0.1 * rng.standard_normal(n)


def data_of(model, n=150):
    X, y = additive(n)
    if is_classifier(model):
        return X, np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, [0.33, 0.67]))]
    return X, y


def assert_same(one, other):
    if one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, atol=1e-9)
    else:  # scores may be tied but for rounding
        assert np.mean(one == other) > 0.95


def short(model):
    return str(model).replace("\n", "")


each_model = pytest.mark.parametrize("model", MODELS, ids=short)


@each_model
def test_weights_are_repeated_rows(model):
    X, y = data_of(model, 60)
    weight = np.random.default_rng(1).integers(0, 3, size=60)
    bank = KernelBank.per_feature(widths=[0.3, 3.0], relative=False, dtype="float64")
    model = clone(model).set_params(bank=bank, tol=1e-10)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    assert weighted.selected_kernels_.tolist() == repeated.selected_kernels_.tolist()
    np.testing.assert_allclose(weighted.path_["loss"], repeated.path_["loss"], rtol=1e-5)
    new, _ = additive(20, seed=9)
    scores = "decision_function" if is_classifier(model) else "predict"
    np.testing.assert_allclose(
        getattr(weighted, scores)(new), getattr(repeated, scores)(new), atol=1e-3
    )


# --- what is learned


def test_as_kernel_ridge():
    X, y = additive()
    bank = KernelBank.per_feature(widths=[1.0], relative=False, dtype="float64")
    model = GreedyMKLRegressor(bank, n_kernels=4, alpha=1e-3).fit(X, y)
    assert sorted(model.selected_kernels_) == [0, 1, 2, 3]

    def total(P, Q):
        return sum(GaussianKernel(1.0).between(P[:, [j]], Q[:, [j]]) for j in range(4))

    ridge = KernelRidge(alpha=1e-3 * len(y), kernel="precomputed")
    ridge.fit(total(X, X), y - y.mean())
    new, _ = additive(30, seed=1)
    wanted = ridge.predict(total(new, X)) + y.mean()
    np.testing.assert_allclose(model.predict(new), wanted, atol=1e-8)
    assert model.intercept_ == pytest.approx(y.mean())
    found = sum(
        K @ block
        for K, block in zip(model.bank_.between(new).matrices, model.dual_coef_, strict=True)
    )
    np.testing.assert_allclose(found[:, 0] + model.intercept_, wanted, atol=1e-6)


def test_additive_design():
    """The columns are found, and trees are beaten; the benchmark has more seeds and rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 40))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 / 2.0 + np.abs(X[:, 2]) + np.cos(X[:, 3])
    y += 0.1 * rng.standard_normal(900)
    model = GreedyMKLRegressor(EACH, n_kernels=6, alpha=1e-4).fit(X[:500], y[:500])
    features = list(dict.fromkeys((model.selected_kernels_ // 3).tolist()))
    assert set(features[:4]) == {0, 1, 2, 3}
    trees = GradientBoostingRegressor(random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > trees.score(X[500:], y[500:])


def test_classes():
    X, y = load_wine(return_X_y=True)
    model = GreedyMKLClassifier(n_kernels=6)
    assert cross_val_score(model, X, y, cv=5).mean() > 0.9
    logistic = GreedyMKLClassifier(n_kernels=4, loss="logistic", alpha=1e-4).fit(X, y)
    probabilities = logistic.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(logistic.classes_[probabilities.argmax(axis=1)] == y) > 0.97
    assert not hasattr(GreedyMKLClassifier(), "predict_proba")


def test_two_classes():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.array(["b", "a"])[y[50:] - 1]
    model = GreedyMKLClassifier(n_kernels=3).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (100,)
    assert np.array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])
    assert model.score(X, y) > 0.9


def test_class_weights():
    X, y = data_of(GreedyMKLClassifier())
    weights = {"low": 3.0, "mid": 1.0, "top": 0.5}
    by_class = GreedyMKLClassifier(EACH, n_kernels=3, class_weight=weights).fit(X, y)
    by_row = GreedyMKLClassifier(EACH, n_kernels=3)
    by_row.fit(X, y, sample_weight=[weights[label] for label in y])
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X))


@pytest.mark.parametrize("algorithm", ["gomp", "l1", "l2"])
@pytest.mark.parametrize("unit", [1e-30, 1e20])
def test_units_of_targets(algorithm, unit):
    X, y = additive()
    model = GreedyMKLRegressor(n_kernels=3, algorithm=algorithm, alpha=0.01).fit(X, y)
    alpha = 0.01 * (unit if algorithm == "l1" else 1.0)
    other = GreedyMKLRegressor(n_kernels=3, algorithm=algorithm, alpha=alpha).fit(X, unit * y)
    assert other.selected_kernels_.tolist() == model.selected_kernels_.tolist()
    np.testing.assert_allclose(other.predict(X), unit * model.predict(X), rtol=1e-5)
    for name in ("loss", "objective"):
        np.testing.assert_allclose(other.path_[name], unit**2 * model.path_[name], rtol=1e-6)


def test_many_outputs_share_kernels():
    X, y = additive()
    Y = np.stack([y, X[:, 5] ** 3], axis=1)
    model = GreedyMKLRegressor(n_kernels=5).fit(X, Y)
    assert model.predict(X).shape == (150, 2)
    assert model.dual_coef_.shape == (5, 150, 2)
    assert 5 in model.selected_kernels_ // 3


# --- the path


@each_model
def test_smaller_models(model):
    X, y = data_of(model)
    model = clone(model).set_params(bank=EACH).fit(X, y)
    size = len(model.path_["loss"])
    new, _ = additive(25, seed=3)
    staged = list(model.staged_predict(new))
    assert len(staged) == size
    assert_same(staged[-1], model.predict(new))
    for rounds, wanted in enumerate(staged, start=1):
        smaller = model.truncate(rounds)
        found = smaller.predict(new)
        if is_classifier(model):
            assert np.mean(found == wanted) > 0.95
        else:
            np.testing.assert_allclose(found, wanted, atol=1e-9)
        assert len(smaller.selected_kernels_) == model.path_["n_kernels"][rounds - 1]
        assert smaller.path_["loss"][-1] == model.path_["loss"][rounds - 1]
    assert model.truncate(2).truncate(1).selected_names_ == model.selected_names_[:1]
    assert len(model.selected_kernels_) == model.path_["n_kernels"][-1]
    assert model.cost_["kernels"] == len(model.selected_kernels_)
    for wrong, error in ((0, ValueError), (size + 1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="truncate"):
            model.truncate(wrong)


@each_model
def test_going_on(model):
    X, y = data_of(model)
    model = clone(model).set_params(bank=EACH, tol=1e-10, max_iter=5000)
    whole = clone(model).fit(X, y)
    first = clone(model).set_params(warm_start=True)
    first.set_params(n_kernels=2, n_steps=2).fit(X, y)
    first.set_params(n_kernels=3, n_steps=model.n_steps).fit(X, y)
    assert first.selected_kernels_.tolist() == whole.selected_kernels_.tolist()
    np.testing.assert_allclose(first.path_["loss"], whole.path_["loss"], rtol=1e-5)
    with pytest.raises(ValueError, match="algorithm, alpha or loss has changed"):
        first.set_params(alpha=0.5).fit(X, y)
    with pytest.raises(ValueError, match="Set warm_start=False"):
        first.set_params(alpha=model.alpha).fit(X[:50], y[:50])


def test_scans_agree():
    X, y = additive(200, 20)
    exact = GreedyMKLRegressor(n_kernels=6, scan="exact").fit(X, y)
    quick = GreedyMKLRegressor(n_kernels=6, scan="factors").fit(X, y)
    assert exact.selected_kernels_.tolist() == quick.selected_kernels_.tolist()
    np.testing.assert_allclose(exact.predict(X), quick.predict(X))


def test_the_optimum_ends_a_run():
    X, y = additive()
    model = GreedyMKLRegressor(n_kernels=24, algorithm="l1", alpha=0.1).fit(X, y)
    assert len(model.selected_kernels_) < 24
    assert 0.0 <= model.path_["gap"][-1] <= 1e-6 * model.path_["objective"][-1]


# --- warnings and errors


def test_no_kernel():
    X, y = additive()
    with pytest.warns(NoKernelWarning, match="Lower alpha"):
        model = GreedyMKLRegressor(algorithm="l1", alpha=1e3).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean())
    assert list(model.staged_predict(X)) == []
    with pytest.raises(ValueError, match="no smaller model"):
        model.truncate(1)
    with pytest.raises(ValueError, match="no kernels"):
        model.rates(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :3])


def test_more_kernels_than_there_are():
    X, y = additive()
    X = X[:, :1]
    with pytest.warns(FewerFeaturesWarning, match="more kernels than the 3"):
        model = GreedyMKLRegressor(n_kernels=10).fit(X, y)
    assert len(model.selected_kernels_) <= 3
    steps = GreedyMKLRegressor(n_kernels=10, algorithm="l2").fit(X, y)
    assert len(steps.path_["loss"]) == 10


def test_too_few_iterations():
    X, y = additive()
    with pytest.warns(NotConvergedWarning, match="max_iter=1 "):
        GreedyMKLRegressor(algorithm="l1", alpha=1e-3, max_iter=1, tol=1e-12).fit(X, y)


def test_interrupt(monkeypatch):
    X, y = additive()
    from mixnorm.engines.sparse_kernels import refit

    add, calls = refit.RidgeRefit.add, []

    def slow(self, kernel):
        calls.append(kernel)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return add(self, kernel)

    monkeypatch.setattr(refit.RidgeRefit, "add", slow)
    with pytest.warns(InterruptedFitWarning, match="after 2 of 5 rounds"):
        model = GreedyMKLRegressor(n_kernels=5).fit(X, y)
    assert len(model.selected_kernels_) == 2


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"n_kernels": 0}, ValueError, "n_kernels=0"),
        ({"n_kernels": 2.5}, TypeError, "n_kernels=2.5"),
        ({"algorithm": "omp"}, ValueError, "algorithm='omp' is not known"),
        ({"alpha": 0.0}, ValueError, "alpha=0.0 must be positive"),
        ({"alpha": -1.0}, ValueError, "alpha=-1.0"),
        ({"alpha": "much"}, TypeError, "alpha='much'"),
        ({"step": 1}, ValueError, "step=1 is not known"),
        ({"scan": "fast"}, ValueError, "scan='fast' is not known"),
        ({"n_steps": 0}, ValueError, "n_steps=0"),
        ({"rank": 0}, ValueError, "rank=0"),
        ({"tol": -1.0}, ValueError, "tol=-1.0"),
        ({"max_iter": 0}, ValueError, "max_iter=0"),
        ({"warm_start": "yes"}, TypeError, "warm_start='yes'"),
        ({"bank": "gaussian"}, TypeError, "is not a KernelBank"),
        ({"kernel": "rbf"}, ValueError, "kernel='rbf' is not known"),
    ],
)
@pytest.mark.parametrize("kind", [GreedyMKLRegressor, GreedyMKLClassifier])
def test_bad_parameters(kind, params, error, words):
    X, y = data_of(kind(), 30)
    with pytest.raises(error, match=words):
        kind(**params).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "huber", 3, "squared_hinge"])
def test_bad_losses(loss):
    X, y = data_of(GreedyMKLClassifier(), 30)
    with pytest.raises(ValueError, match="loss="):
        GreedyMKLClassifier(loss=loss).fit(X, y)


def test_bad_data():
    X, y = additive(30)
    broken = X.copy()
    broken[3, 1] = np.nan
    for model in (GreedyMKLRegressor(), GreedyMKLRegressor(EACH)):
        with pytest.raises(ValueError, match=r"NaN|missing"):
            model.fit(broken, y)
    with pytest.raises(ValueError, match="needs samples of at least 2 classes"):
        GreedyMKLClassifier().fit(X, np.ones(30))
    with pytest.raises(ValueError, match="out of the range"):
        GreedyMKLRegressor().fit(X, y * 1e300)
    constant = np.ones_like(X)
    with pytest.warns(NoKernelWarning):
        model = GreedyMKLRegressor().fit(constant, y)
    np.testing.assert_allclose(model.predict(constant), y.mean())
    with pytest.raises(ValueError, match="normalize='unit'"):
        GreedyMKLRegressor(KernelBank.per_feature("linear"), algorithm="l2", step="unit").fit(
            3.0 * X, y
        )


# --- kernels that are given, sparse rows, tables, banks with factors


@each_model
def test_given_matrices(model):
    X, y = data_of(model, 80)
    bank = KernelBank.per_feature(widths=[0.3, 3.0], dtype="float64").fit(X)
    new, _ = additive(20, seed=5)
    K, across = KernelStack(bank.grams().matrices), bank.between(new)
    there = clone(model).set_params(kernel="precomputed", scan="auto").fit(K, y)
    here = clone(model).set_params(
        bank=KernelBank.per_feature(widths=[0.3, 3.0], dtype="float64"), scan="exact"
    )
    here.fit(X, y)
    assert there.selected_kernels_.tolist() == here.selected_kernels_.tolist()
    assert_same(there.predict(across), here.predict(new))
    with pytest.raises(ValueError, match="this model was fitted on 16 kernels of 80"):
        there.predict(np.zeros((2, 3, 80)))
    assert there.bank_ is None
    assert there.cost_["kernels"] == len(there.selected_kernels_)


@each_model
def test_sparse_rows(model):
    X, y = data_of(model, 80)
    X[np.abs(X) < 0.5] = 0.0
    dense = clone(model).fit(X, y)
    sparse = clone(model).fit(sp.csr_array(X), y)
    assert dense.selected_kernels_.tolist() == sparse.selected_kernels_.tolist()
    assert_same(dense.predict(X), sparse.predict(sp.csr_array(X)))


def test_tables():
    X, y = additive()
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(8)])
    model = GreedyMKLRegressor(EACH, n_kernels=4).fit(table, y)
    assert {name.split(":")[0] for name in model.selected_names_} == {"x0", "x1", "x2", "x3"}
    np.testing.assert_allclose(
        model.predict(table), GreedyMKLRegressor(EACH, n_kernels=4).fit(X, y).predict(X)
    )
    scaled = make_pipeline(StandardScaler(), GreedyMKLRegressor(n_kernels=4)).fit(table, y)
    assert scaled.score(table, y) > 0.9


@pytest.mark.parametrize("factors", ["nystrom", "random"])
@each_model
def test_banks_with_factors(model, factors):
    X, y = data_of(model)
    bank = KernelBank.per_feature(widths=[1.0, 10.0], factors=factors, rank=30)
    model = clone(model).set_params(bank=bank).fit(X, y)
    least = 0.6 if is_classifier(model) else 0.3
    assert model.score(X, y) > least


def test_search():
    X, y = additive(90)
    grid = GridSearchCV(
        GreedyMKLRegressor(EACH), {"n_kernels": [1, 4], "alpha": [1e-3, 10.0]}, cv=3
    ).fit(X, y)
    assert grid.best_params_ == {"n_kernels": 4, "alpha": 1e-3}


def test_path_display():
    X, y = additive(80)
    model = GreedyMKLRegressor(n_kernels=4).fit(X, y)
    assert len(ShareBoostPathDisplay.from_estimator(model, X, y).error) == 4


# --- files


@each_model
@pytest.mark.parametrize("kind", ["rows", "sparse", "matrices", "nystrom"])
def test_files(model, kind, tmp_path):
    X, y = data_of(model, 60)
    given, model = X, clone(model)
    if kind == "sparse":
        given = sp.csr_array(X)
    elif kind == "matrices":
        given = KernelStack(SMALL.fit(X).grams().matrices)
        model.set_params(kernel="precomputed", n_kernels=2)
    elif kind == "nystrom":
        model.set_params(bank=KernelBank.per_feature(factors="nystrom", rank=8))
    model.fit(given, y)
    path = tmp_path / "model"
    mixnorm.save(model, path)
    loaded = mixnorm.load(path)
    assert np.array_equal(loaded.predict(given), model.predict(given))
    for name in ("selected_names_", "dual_coef_", "kernel_names_", "support_", "null_loss_"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name)), name
    assert loaded.n_iter_ == model.n_iter_
    assert np.array_equal(loaded.intercept_, model.intercept_)
    assert loaded.path_.keys() == model.path_.keys()
    smaller = loaded.truncate(1)
    assert np.array_equal(smaller.predict(given), model.truncate(1).predict(given))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(given), model.predict(given))


def test_a_file_that_goes_on(tmp_path):
    X, y = additive(60)
    model = GreedyMKLRegressor(n_kernels=2, warm_start=True).fit(X, y)
    mixnorm.save(model, tmp_path / "model")
    loaded = mixnorm.load(tmp_path / "model").set_params(n_kernels=4).fit(X, y)
    whole = GreedyMKLRegressor(n_kernels=4).fit(X, y)
    assert loaded.selected_kernels_.tolist() == whole.selected_kernels_.tolist()


def altered(path, place, **changes):
    """Return a path with one round changed."""
    rounds = [*path.rounds]
    rounds[place] = replace(rounds[place], **changes)
    return replace(path, rounds=tuple(rounds))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: dict(support=m.support[:5]), "support_"),
        (lambda m: dict(names=("a",)), "unknown kernels"),
        (lambda m: dict(names=3), "names must be"),
        (lambda m: dict(bank=m.bank.only([0])), "the bank must have 3"),
        (lambda m: dict(bank=m.bank.take(range(5))), "the bank must have 40 rows"),
        (lambda m: dict(bank=None, support=m.support + 10), "support_ must be .* below 8"),
        (lambda m: dict(inputs=Inputs(5)), "the bank is of 8"),
        (lambda m: dict(inputs=Inputs(0)), "n_features_in_"),
        (lambda m: dict(outputs=replace(m.outputs, unit=-1.0)), "unit"),
        (lambda m: dict(outputs=replace(m.outputs, single="yes")), "single must be"),
        (lambda m: dict(outputs=replace(m.outputs, loss=MultinomialLogistic())), "loss|outputs"),
        (lambda m: dict(outputs=ClassOutputs(np.array([0, 1]))), "outputs"),
        (lambda m: dict(path=replace(m.path, terms=m.path.terms[:1])), "terms"),
        (lambda m: dict(path=altered(m.path, 0, support=(99,))), "unknown kernels"),
        (lambda m: dict(path=altered(m.path, 1, loss="low")), "Round.loss"),
        (lambda m: dict(path=altered(m.path, 1, iterations=0.5)), "Round.iterations"),
    ],
)
def test_damaged_files(change, words, tmp_path):
    X, y = additive(40)
    model = GreedyMKLRegressor(n_kernels=3).fit(X, y)
    model.model_ = replace(model.model_, **change(model.model_))
    with pytest.raises(ModelFileError, match=words):  # a file is read before it is kept
        mixnorm.save(model, tmp_path / "model")


def test_damaged_classes(tmp_path):
    X, y = data_of(GreedyMKLClassifier(), 40)
    model = GreedyMKLClassifier(n_kernels=2).fit(X, y)
    model.model_ = replace(model.model_, outputs=ClassOutputs(model.classes_[:2]))
    with pytest.raises(ModelFileError, match="classes_"):
        mixnorm.save(model, tmp_path / "model")


# --- found by a reader


@pytest.mark.parametrize("algorithm", ["gomp", "l1", "l2"])
def test_all_kernels_of_a_bank(algorithm, tmp_path):
    """A bank that is whole, but in another order, stays as it is."""
    X = np.random.default_rng(0).standard_normal((100, 3))
    y = X[:, 0] + 3.0 * X[:, 1] + 2.0 * X[:, 2]
    bank = KernelBank.per_feature("linear")
    model = GreedyMKLRegressor(bank, n_kernels=3, n_steps=9, algorithm=algorithm).fit(X, y)
    assert model.selected_kernels_.tolist() == [1, 2, 0]
    mixnorm.save(model, tmp_path / "model")
    loaded = mixnorm.load(tmp_path / "model")
    size = len(model.path_["loss"])
    for other in (loaded, model.truncate(size), loaded.truncate(size).truncate(size)):
        assert other.bank_.names == model.selected_names_
        np.testing.assert_allclose(other.predict(X), model.predict(X))
    wanted = list(model.staged_predict(X))[1]
    np.testing.assert_allclose(loaded.truncate(2).predict(X), wanted, atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "margin"])
@pytest.mark.parametrize("alpha", [1e-4, 1e-5])
def test_small_penalties_of_logistic_losses(loss, alpha):
    X, y = load_wine(return_X_y=True)
    model = GreedyMKLClassifier(n_kernels=5, loss=loss, alpha=alpha, tol=1e-6).fit(X[::2], y[::2])
    assert np.all(np.diff(model.path_["loss"]) < 0.0)
    assert model.score(X[::2], y[::2]) == 1.0


def test_l1_of_a_logistic_loss_converges():
    X, y = load_wine(return_X_y=True)
    model = GreedyMKLClassifier(n_kernels=5, loss="logistic", algorithm="l1").fit(X[::2], y[::2])
    assert model.n_iter_ < 5000  # it took 17,815 without second derivatives
    assert np.all(np.diff(model.path_["objective"]) < 1e-8)


def test_the_path_has_the_losses_of_predictions():
    X, y = additive(80)
    for kernel, alpha in (("poly", 1e-3), ("poly", 1e-6), ("linear", 1e-9)):
        bank = KernelBank.per_feature(kernel, normalize="trace")
        model = GreedyMKLRegressor(bank, n_kernels=4, algorithm="l1", alpha=alpha).fit(10.0 * X, y)
        found = [0.5 * np.mean((p - y) ** 2) for p in model.staged_predict(10.0 * X)]
        np.testing.assert_allclose(found, model.path_["loss"], rtol=1e-5)
        assert np.all(model.path_["loss"] < model.null_loss_)


def test_going_on_with_other_data():
    X, y = additive(80)

    def begun(**params):
        return GreedyMKLRegressor(n_kernels=3, warm_start=True, **params).fit(X, y)

    with pytest.raises(ValueError, match="Start anew"):
        begun().fit(X, -y)
    with pytest.raises(ValueError, match="Start anew"):
        begun().fit(X[::-1].copy(), y)
    with pytest.raises(ValueError, match="kernels, or others"):
        begun().set_params(bank=KernelBank.per_feature("laplacian")).fit(X, y)
    weight = np.ones(80)
    weight[3] = 0.0
    other = np.roll(weight, 1)
    model = GreedyMKLRegressor(n_kernels=3, warm_start=True).fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="other rows have weight"):
        model.fit(X, y, sample_weight=other)


@pytest.mark.parametrize("kind", [sp.coo_array, sp.bsr_array, sp.csc_array])
def test_kinds_of_sparse_matrices(kind):
    X, y = additive(60)
    X[np.abs(X) < 0.5] = 0.0
    model = GreedyMKLRegressor(EACH, n_kernels=3).fit(kind(X), y)
    np.testing.assert_allclose(model.predict(kind(X)), model.predict(X))


@pytest.mark.parametrize("algorithm", ["gomp", "l1", "l2"])
def test_weights_next_to_nothing(algorithm):
    X, y = additive(60)
    weight = np.where(np.arange(60) < 20, 1e-310, 1.0)
    model = GreedyMKLRegressor(EACH, n_kernels=3, algorithm=algorithm).fit(X, y, weight)
    assert len(model.support_) == 40


def test_names_of_columns_without_a_bank():
    X, y = additive(60)
    table = pd.DataFrame(X, columns=list("abcdefgh"))
    plain = GreedyMKLRegressor(n_kernels=3).fit(table, y)
    named = GreedyMKLRegressor(EACH, n_kernels=3).fit(table, y)
    assert plain.selected_names_ == named.selected_names_
    one = GreedyMKLRegressor(n_kernels=1).fit(table[["c"]], y)
    assert one.selected_names_[0].startswith("c: ")


def test_a_loss_that_was_changed_after_the_fit():
    X, y = data_of(GreedyMKLClassifier(), 60)
    model = GreedyMKLClassifier(n_kernels=2).fit(X, y).set_params(loss="logistic")
    assert not hasattr(model, "predict_proba")
    model.rates(X, y)
    model = GreedyMKLClassifier(n_kernels=2, loss="logistic").fit(X, y)
    wanted = model.predict_proba(X)
    assert np.array_equal(model.set_params(loss="squared").predict_proba(X), wanted)


def test_kernels_beyond_all_measure():
    X, y = additive(60)
    X[3] = 1e12
    bank = KernelBank(["poly"], normalize=None, dtype="float64")
    with pytest.raises(ValueError, match="Raise alpha, or scale the kernels"):
        GreedyMKLRegressor(bank, n_kernels=1).fit(X, y)


def test_steps_along_kernels_whose_squares_overflow():
    X = np.random.default_rng(0).normal(size=(20, 2))
    bank = KernelBank(["linear"], normalize=None, dtype="float64")
    scores = []
    for unit in (1.0, 2.0**340):
        model = GreedyMKLClassifier(bank, algorithm="l2", n_kernels=1, n_steps=3)
        scores.append(model.fit(X * unit, X[:, 0] > 0.0).decision_function(X * unit))
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-9)
