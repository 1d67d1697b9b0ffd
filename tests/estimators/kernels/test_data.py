"""Labels, weights and tables of all kinds; degenerate problems; what prediction touches."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mixnorm import (
    ConvMKLClassifier,
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLRegressor,
    SMSDMKLClassifier,
    UFOMKLClassifier,
)
from mixnorm.engines.multikernel import machine as _machine
from mixnorm.exceptions import (
    InterruptedFitWarning,
    KernelMemoryWarning,
    NoKernelWarning,
    NotConvergedWarning,
)
from mixnorm.kernels import FunctionKernel, KernelBank, gaussian_bank
from mixnorm.kernels.banks import storage_plan

TAUS = [0.125, 0.5, 2.0]
BANK = gaussian_bank(TAUS, dtype="float64")
CLASSIFIERS = {
    "MKL": MKLClassifier(BANK),
    "Conv": ConvMKLClassifier(BANK, tail=2),
    "UFO": UFOMKLClassifier(BANK),
    "SMSD": SMSDMKLClassifier(BANK, tail=2),
    "mirror": UFOMKLClassifier(BANK, solver="mirror", random_state=0),
    "kernel": KernelMulticlassSVC(gamma=1.0),
    "linear": LinearMulticlassSVC(),
}
SEVERAL = ["MKL", "Conv", "UFO", "SMSD", "mirror"]
MODELS = CLASSIFIERS | {"squares": MKLRegressor(BANK)}
each_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
each_with_bank = pytest.mark.parametrize("name", SEVERAL)
each_model = pytest.mark.parametrize("name", MODELS)


def rows(n=60, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    return X, np.argmax(X[:, :n_classes] + 0.2 * rng.normal(size=(n, n_classes)), axis=1)


# Where nothing can be learned, a warning may say so.
alike = pytest.mark.filterwarnings("ignore:No kernel is left")


def scores(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


# --- labels and weights


@each_classifier
def test_two_classes(name):
    X, y = rows(n_classes=2)
    model = clone(CLASSIFIERS[name]).fit(X, y)
    found = model.decision_function(X)
    assert found.shape == (60,)
    assert np.array_equal(model.predict(X), (found > 0.0).astype(int))
    turned = clone(CLASSIFIERS[name]).fit(X, 1 - y)
    np.testing.assert_allclose(turned.decision_function(X), -found, atol=0.2)
    assert model.score(X, y) > 0.8


LABELS = {
    "texts": lambda y: np.array(["b", "a", "c"])[y],
    "objects": lambda y: np.array(["b", "a", "c"], dtype=object)[y],
    "negative": lambda y: 10 * y - 7,
    "category": lambda y: pd.Series(np.array(["b", "a", "c"])[y], dtype="category"),
    "floats": lambda y: y.astype(float),
    "list": lambda y: y.tolist(),
}


@pytest.mark.parametrize("kind", LABELS)
@each_classifier
def test_labels(name, kind):
    X, y = rows()
    labels = LABELS[kind](y)
    model = clone(CLASSIFIERS[name]).fit(X, labels)
    plain = clone(CLASSIFIERS[name]).fit(X, np.unique(np.asarray(labels), return_inverse=True)[1])
    assert np.array_equal(model.classes_, np.unique(np.asarray(labels)))
    assert np.array_equal(model.predict(X), model.classes_[plain.predict(X)])
    assert np.array_equal(model.decision_function(X), plain.decision_function(X))


@each_classifier
def test_weights_of_classes(name):
    X, y = rows()
    base = clone(CLASSIFIERS[name])
    factors = np.array([3.0, 1.0, 0.5])
    by_row = clone(base).fit(X, y, sample_weight=factors[y])
    by_class = clone(base).set_params(class_weight={0: 3.0, 2: 0.5}).fit(X, y)
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X))
    balanced = clone(base).set_params(class_weight="balanced").fit(X, y)
    by_row = clone(base).fit(X, y, sample_weight=(60.0 / (3.0 * np.bincount(y)))[y])
    np.testing.assert_allclose(balanced.decision_function(X), by_row.decision_function(X))


@each_classifier
def test_a_class_of_weight_zero_is_still_a_class(name):
    X, y = rows()
    model = clone(CLASSIFIERS[name]).set_params(class_weight={2: 0.0}).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    without = clone(CLASSIFIERS[name]).fit(X[y < 2], y[y < 2])
    left = model.predict(X[y < 2])
    assert np.mean(left == without.predict(X[y < 2])) > 0.9
    if name != "linear":
        assert not np.any(y[model.support_] == 2)


@each_model
def test_rows_of_weight_zero_are_left_out(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    weight = np.where(np.arange(60) % 4 == 0, 0.0, 1.5)
    X[weight == 0.0] *= 50.0
    weighted = clone(MODELS[name]).fit(X, y, sample_weight=weight)
    kept = weight > 0.0
    without = clone(MODELS[name]).fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(scores(weighted, X), scores(without, X), atol=1e-9)
    if name != "linear":
        assert np.all(kept[weighted.support_])
        assert np.array_equal(weighted.support_, np.flatnonzero(kept)[without.support_])


@each_model
def test_one_number_as_weight_multiplies_C(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    model = clone(MODELS[name])
    if name in ("UFO", "SMSD", "mirror"):  # whose lambda is 1 / (n C), where n counts weights
        model.set_params(beta=0.0)
    weighted = clone(model).fit(X, y, sample_weight=3.0)
    if name == "mirror":  # and where steps are as long as weights
        assert weighted.n_iter_ >= 1
        return
    plain = clone(model).set_params(C=3.0 * model.C).fit(X, y)
    np.testing.assert_allclose(scores(weighted, X), scores(plain, X), atol=1e-9)


@each_classifier
def test_one_class(name):
    X, _ = rows()
    model = clone(CLASSIFIERS[name])
    with pytest.raises(ValueError, match="at least 2 classes.*only one class.*'a'"):
        model.fit(X, np.full(60, "a"))
    with pytest.raises(ValueError, match="only one class of positive weight: .*1"):
        model.fit(X, np.arange(60) % 2, sample_weight=np.arange(60) % 2)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X, X[:, 0])
    with pytest.raises(TypeError, match="several types"):
        model.fit(X[:2], [0, "a"])
    with pytest.raises(TypeError, match="y is a sparse matrix"):
        model.fit(X, sp.csr_matrix(np.ones((60, 1))))
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X, None)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        model.fit(X, np.arange(60) % 2, sample_weight=np.zeros(60))


# --- tables


@each_model
def test_sparse_rows(name):
    X, y = rows()
    X[np.abs(X) < 0.4] = 0.0
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    dense = clone(MODELS[name]).fit(X, y)
    for form in (sp.csr_array, sp.csr_matrix, sp.csc_matrix, sp.coo_array):
        sparse = clone(MODELS[name]).fit(form(X), y)
        np.testing.assert_allclose(scores(sparse, form(X)), scores(dense, X), atol=1e-4)
        np.testing.assert_allclose(scores(sparse, X), scores(dense, X), atol=1e-4)


@each_model
def test_single_precision_rows(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    one = clone(MODELS[name]).set_params(tol=1e-5, max_iter=2000).fit(X, y)
    other = clone(MODELS[name]).set_params(tol=1e-5, max_iter=2000).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(scores(other, X.astype(np.float32)), scores(one, X), atol=0.02)


def frame(n=60):
    X, _ = rows(n)
    colours = np.array(["red", "blue", "grey"])[1 * (X[:, 3] > 0.0) + (X[:, 3] > 0.5)]
    table = pd.DataFrame({"a": X[:, 0], "b": 100.0 * X[:, 1], "colour": colours, "noise": X[:, 2]})
    return table, np.array(["left", "right"])[1 * (X[:, 0] > X[:, 1])]


@each_with_bank
def test_groups_of_columns_with_a_transformer(name):
    table, y = frame()
    change = ColumnTransformer(
        [("numbers", StandardScaler(), ["a", "b", "noise"]), ("words", OneHotEncoder(), ["colour"])]
    )
    groups = {"shape": ["numbers__a", "numbers__b"], "noise": ["noise"], "words": ["words"]}
    bank = KernelBank.from_columns(change, groups, dtype="float64")
    model = clone(CLASSIFIERS[name]).set_params(bank=bank).fit(table, y)
    assert model.feature_names_in_.tolist() == list(table.columns)
    assert [entry.split(":")[0] for entry in model.kernel_names_] == ["shape", "noise", "words"]
    assert model.score(table, y) > 0.7
    by_name = dict(zip(["shape", "noise", "words"], model.kernel_weights_, strict=True))
    if name in ("MKL", "UFO"):  # the others weigh by tail sums as well
        assert by_name["shape"] > by_name["noise"]
    found = model.decision_function(table)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.rename(columns={"a": "z"}))
    np.testing.assert_allclose(model.decision_function(table[:7]), found[:7])
    squares = clone(change).fit_transform(table)
    squares = squares.toarray() if sp.issparse(squares) else squares
    own = clone(CLASSIFIERS[name]).set_params(
        bank=KernelBank.from_columns(
            None, {"shape": [0, 1], "noise": [2], "words": [3, 4, 5]}, dtype="float64"
        )
    )
    np.testing.assert_allclose(own.fit(squares, y).decision_function(squares), found, atol=1e-6)


def test_positions_and_masks_of_columns():
    X, y = rows()
    groups = {"first": slice(0, 2), "last": np.array([False, False, True, True])}
    found = MKLClassifier(KernelBank.from_columns(None, groups)).fit(X, y)
    wanted = MKLClassifier(KernelBank.from_columns(None, {"u": [0, 1], "v": [2, 3]})).fit(X, y)
    assert np.array_equal(found.decision_function(X), wanted.decision_function(X))
    assert found.kernel_names_[1].startswith("last: ")


def test_many_new_rows_are_predicted_in_parts(monkeypatch):
    (X, y), (new, _) = rows(), rows(150, seed=1)
    model = MKLClassifier(BANK).fit(X, y)
    whole = model.decision_function(new)
    monkeypatch.setattr("mixnorm.models.kernel._ROWS_COMPARED", 64)
    np.testing.assert_allclose(model.decision_function(new), whole, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(sp.csr_array(new)), whole, atol=1e-8)
    named = MKLClassifier(KernelBank.from_columns(None, {"u": [0, 1]})).fit(pd.DataFrame(X), y)
    assert named.predict(pd.DataFrame(new)).shape == (150,)


# --- factors and memory


@pytest.mark.parametrize("name", ["MKL", "Conv", "UFO", "SMSD", "squares"])
def test_landmarks_of_all_rows_are_the_kernels_themselves(name):
    X, y = rows(40)
    new, _ = rows(20, seed=1)
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    tight = {"tol": 1e-6, "max_iter": 1000}
    exact = clone(MODELS[name]).set_params(**tight).fit(X, y)
    bank = gaussian_bank(TAUS, dtype="float64", factors="nystrom", rank=40)
    factored = clone(MODELS[name]).set_params(bank=bank, **tight).fit(X, y)
    assert factored.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    np.testing.assert_allclose(factored.kernel_weights_, exact.kernel_weights_, atol=5e-3)
    np.testing.assert_allclose(scores(factored, new), scores(exact, new), atol=0.01)
    assert factored.cost_["support"] == 0


@pytest.mark.parametrize("kind", ["nystrom", "random"])
@pytest.mark.parametrize("name", ["MKL", "Conv", "UFO", "SMSD", "squares"])
def test_models_of_factors_are_those_of_their_matrices(name, kind):
    """Kernels as they are factored, given as matrices."""
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    bank = gaussian_bank(TAUS, factors=kind, rank=30, dtype="float64")
    tight = {"tol": 1e-6, "max_iter": 1000}
    found = clone(MODELS[name]).set_params(bank=bank, **tight).fit(X, y)
    K = np.stack([phi @ phi.T for phi in bank.fit(X).grams().factors])
    given = clone(MODELS[name]).set_params(bank=None, kernel="precomputed", **tight).fit(K, y)
    assert found.objective_ == pytest.approx(given.objective_, rel=1e-5)
    np.testing.assert_allclose(scores(found, X), scores(given, K), atol=0.01)


@pytest.mark.parametrize("name", ["MKL", "Conv", "UFO", "SMSD", "squares"])
def test_matrices_that_do_not_fit_into_memory(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    wanted = clone(MODELS[name]).fit(X, y)
    one = 60 * 60 * 8
    for memory in (3 * one + 1000, 6 * one - 1):  # beside the machine: none, and some, are stored
        bank = gaussian_bank(TAUS, dtype="float64", memory=memory)
        found = clone(MODELS[name]).set_params(bank=bank).fit(X, y)
        np.testing.assert_allclose(scores(found, X), scores(wanted, X), atol=1e-3)


@pytest.mark.parametrize("name", ["MKL", "Conv", "UFO", "SMSD", "squares", "one"])
def test_kernels_become_factors_where_the_machine_does_not_fit_into_memory(name):
    """The limit is one for all that a fit keeps, and a warning tells how to get exact kernels."""
    X, y = rows()
    memory = 3 * 60 * 60 * 8
    if name == "one":
        wanted, given = KernelMulticlassSVC(), {"memory": memory}
    else:
        y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
        wanted = clone(MODELS[name])
        given = {"bank": gaussian_bank(TAUS, dtype="float64", memory=memory)}
    found = clone(wanted).set_params(**given)
    with pytest.warns(KernelMemoryWarning, match=r"(?s)rank .*factors='nystrom'.*set memory='"):
        found.fit(X, y)
    assert found.bank_.factors == "nystrom"
    assert found.score(X, y) == pytest.approx(wanted.fit(X, y).score(X, y), abs=0.02)


def test_kernels_become_factors_where_computing_them_at_every_use_takes_long(monkeypatch):
    X, y = rows()
    bank = gaussian_bank(TAUS, dtype="float64", memory=4 * 60 * 60 * 8)
    assert MKLClassifier(bank).fit(X, y).bank_.factors is None
    settings = storage_plan.RecomputeSettings(most_seconds=0.0)
    monkeypatch.setattr(storage_plan, "_RECOMPUTE", settings)
    with pytest.warns(KernelMemoryWarning):
        model = MKLClassifier(bank).fit(X, y)
    assert model.bank_.factors == "nystrom"


# --- degenerate problems


def stack(X, *extra):
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return np.stack([*(np.exp(-squares / (2.0 * tau)) for tau in TAUS), *extra])


@alike
@pytest.mark.parametrize("name", [*SEVERAL, "squares"])
def test_a_constant_kernel_is_no_harm(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    model = clone(MODELS[name]).set_params(bank=None, kernel="precomputed", C=1.0)
    ones = np.ones((60, 60))
    with_ones = clone(model).fit(stack(X, ones), y)
    assert np.all(np.isfinite(with_ones.kernel_weights_))
    alone = clone(model).fit(ones, y)  # a constant is all that it can predict
    assert np.ptp(np.atleast_2d(scores(alone, ones).T), axis=1).max() < 1e-9


@pytest.mark.parametrize("name", ["MKL", "UFO", "SMSD", "mirror", "squares"])
def test_a_kernel_of_zeros_beside_others_is_no_harm(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    nothing = np.zeros((60, 60))
    model = clone(MODELS[name]).set_params(bank=None, kernel="precomputed")
    model = model if name == "mirror" else model.set_params(tol=1e-5, max_iter=1000)
    plain, with_zeros = clone(model).fit(stack(X), y), clone(model).fit(stack(X, nothing), y)
    if name == "MKL":  # the exponents of the others depend on the number of kernels
        assert with_zeros.objective_ == pytest.approx(plain.objective_, rel=1e-4)
        np.testing.assert_allclose(
            with_zeros.decision_function(stack(X, nothing)),
            plain.decision_function(stack(X)),
            atol=0.02,
        )
        assert with_zeros.kernel_weights_[-1] < 0.01
    assert np.all(np.isfinite(with_zeros.kernel_weights_))


def test_conv_refuses_kernels_of_zeros():
    X, y = rows()
    with pytest.raises(ValueError, match="Kernel 3 of bank .or of X.* is zero.*leave it out"):
        ConvMKLClassifier(kernel="precomputed").fit(stack(X, np.zeros((60, 60))), y)


@alike
def test_squares_on_nothing_but_zeros():
    X, _ = rows()
    with pytest.warns(NoKernelWarning, match="zero between all rows"):
        model = MKLRegressor(kernel="precomputed").fit(np.zeros((1, 60, 60)), X[:, 0])
    np.testing.assert_allclose(model.predict(np.zeros((1, 5, 60))), np.mean(X[:, 0]))


@pytest.mark.parametrize("name", ["MKL", "UFO", "SMSD"])
def test_hinges_on_nothing_but_zeros(name):
    _, y = rows()
    model = clone(MODELS[name]).set_params(bank=None, kernel="precomputed", max_iter=5)
    with pytest.warns(NoKernelWarning) as told:
        model.fit(np.zeros((1, 60, 60)), y)
    assert len(told) == 1
    assert model.dual_gap_ <= 1e-9


@pytest.mark.parametrize("beta", [10.0, 1e6])
@pytest.mark.parametrize("name", ["UFO", "SMSD"])
def test_so_large_a_beta_that_no_kernel_is_left(name, beta):
    X, y = rows()
    model = clone(MODELS[name]).set_params(beta=beta)
    with pytest.warns(NoKernelWarning, match="No kernel is left.*Lower beta or raise C"):
        model.fit(X, y)
    assert not np.any(model.kernel_weights_)
    assert np.array_equal(model.decision_function(X), np.zeros((60, 3)))
    assert model.objective_ == pytest.approx(1.0)
    assert model.cost_["kernels"] == 0
    assert len(set(model.predict(X))) == 1


def test_warm_starts_from_no_kernel():
    """Weights of zero must not stay so."""
    X, y = rows()
    warm = clone(MODELS["UFO"]).set_params(warm_start=True, beta=1e6, max_iter=20)
    with pytest.warns(NoKernelWarning):
        warm.fit(X, y)
    warm.set_params(beta=1e-3).fit(X, y)
    cold = clone(MODELS["UFO"]).fit(X, y)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=0.02)


@pytest.mark.parametrize("n", [2, 3])
@each_classifier
def test_very_few_rows(name, n):
    X, _ = rows(n)
    y = np.arange(n) % 2
    model = clone(CLASSIFIERS[name]).set_params(C=100.0).fit(X, y)
    assert np.array_equal(model.predict(X), y)


@alike
@each_model
def test_all_rows_the_same(name):
    y = np.arange(12) % 2
    model = clone(MODELS[name]).fit(np.ones((12, 3)), y)
    assert len(np.unique(model.predict(np.ones((12, 3))))) == 1


@pytest.mark.parametrize("name", ["MKL", "UFO", "kernel"])
def test_a_tolerance_of_zero(name):
    """It is allowed, and means max_iter, or what rounding leaves."""
    X, y = rows()
    model = clone(MODELS[name]).set_params(tol=0.0, max_iter=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model.fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


@each_model
def test_too_few_iterations(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    model = clone(MODELS[name])
    if name == "mirror":
        assert model.set_params(epochs=1).fit(X, y).n_iter_ == 1
        return
    model.set_params(max_iter=1, tol=1e-13)
    with pytest.warns(NotConvergedWarning, match=r"Stopped after 1 iterations.*Raise max_iter"):
        model.fit(X, y)
    assert model.dual_gap_ > 1e-13 * model.objective_


# --- interrupts


class Interrupt:
    """A callback as a user who presses Ctrl-C after some iterations."""

    def __init__(self, when):
        self.when, self.count = when, 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration":
            self.count += 1
            if self.count == self.when:
                raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["MKL", "Conv", "UFO", "SMSD", "squares"])
def test_an_interrupt_keeps_what_is_there(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    model = clone(MODELS[name]).set_params(tol=1e-9, warm_start=True)
    model.set_callbacks(Interrupt(2))
    with pytest.warns(InterruptedFitWarning, match="Interrupted after 2 iterations.*are kept"):
        model.fit(X, y)
    assert model.n_iter_ == 2
    tight = clone(MODELS[name]).set_params(tol=1e-6, max_iter=1000).fit(X, y)
    assert model.objective_ - model.dual_gap_ <= tight.objective_ * (1.0 + 1e-9)
    assert np.all(np.isfinite(scores(model, X)))
    model.set_callbacks().set_params(tol=1e-6, max_iter=1000).fit(X, y)
    assert model.objective_ == pytest.approx(tight.objective_, rel=2e-6)


def test_an_interrupt_in_a_machine(monkeypatch):
    X, y = rows()
    real, calls = _machine.MatrixMachine.solve, []

    def solve(self, weights, target):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, weights, target)

    monkeypatch.setattr(_machine.MatrixMachine, "solve", solve)
    model = MKLClassifier(BANK, tol=1e-9)
    with pytest.warns(InterruptedFitWarning, match="Interrupted after 2 iterations"):
        model.fit(X, y)
    assert model.score(X, y) > 0.5


def test_an_interrupt_before_anything_is_there(monkeypatch):
    X, y = rows()

    def solve(self, weights, target):
        raise KeyboardInterrupt

    model = MKLClassifier(BANK).fit(X, y)
    before = model.decision_function(X)
    monkeypatch.setattr(_machine.MatrixMachine, "solve", solve)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:30], y[:30])
    monkeypatch.undo()
    assert np.array_equal(model.decision_function(X), before)  # the fit before is whole


def test_a_fit_that_fails_leaves_the_one_before():
    X, y = rows()
    model = MKLClassifier(BANK).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(X[:, :2], X[:, 0])
    with pytest.raises(ValueError, match="only one"):
        model.fit(X[:, :2], np.zeros(60))
    assert np.array_equal(model.decision_function(X), before)
    assert model.n_features_in_ == 4


# --- warm starts


def test_warm_starts_need_the_same_rows_and_kernels():
    X, y = rows()
    model = MKLClassifier(BANK, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="starts from 3 kernels and 60 samples of 3 outputs.*50"):
        model.fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="but there are 2 and 60.*Set warm_start=False"):
        model.set_params(bank=gaussian_bank(TAUS[:2])).fit(X, y)
    assert model.set_params(warm_start=False).fit(X[:50], y[:50]).n_iter_ >= 1


def test_warm_starts_with_other_weights_stay_feasible():
    """Dual variables of rows that counted more before are more than is allowed now."""
    X, y = rows()
    weight = np.where(np.arange(60) < 30, 10.0, 0.1)
    warm = MKLClassifier(BANK, C=1.0, tol=1e-4, warm_start=True).fit(X, y, sample_weight=weight)
    warm.fit(X, y, sample_weight=weight[::-1])
    cold = MKLClassifier(BANK, C=1.0, tol=1e-4).fit(X, y, sample_weight=weight[::-1])
    assert warm.objective_ - warm.dual_gap_ <= cold.objective_ * (1.0 + 1e-9)
    assert cold.objective_ - cold.dual_gap_ <= warm.objective_ * (1.0 + 1e-9)


def test_warm_starts_with_other_labels_stay_feasible():
    X, y = rows()
    warm = MKLClassifier(BANK, tol=1e-4, warm_start=True).fit(X, y)
    other = (y + 1) % 3
    warm.fit(X, other)
    cold = MKLClassifier(BANK, tol=1e-4).fit(X, other)
    assert warm.objective_ - warm.dual_gap_ <= cold.objective_ * (1.0 + 1e-9)
    assert cold.objective_ - cold.dual_gap_ <= warm.objective_ * (1.0 + 1e-9)


# --- what prediction touches


class Counted:
    """A Gaussian kernel that remembers how many pairs of rows it was asked for."""

    def __init__(self, tau, column):
        self.tau, self.column, self.asked = tau, column, 0

    def __call__(self, X, Y):
        self.asked += len(X) * len(Y)
        gaps = X[:, self.column][:, None] - Y[:, self.column][None]
        return np.exp(-(gaps**2) / (2.0 * self.tau))


@pytest.mark.parametrize("cls", [MKLClassifier, UFOMKLClassifier])
def test_prediction_touches_kernels_with_weight_and_the_support(cls):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(80, 3))
    y = (X[:, 0] > 0.1).astype(int)
    functions = [Counted(0.5, column) for column in range(3)]
    bank = KernelBank([FunctionKernel(function) for function in functions])
    sparse = {"p": 1.0, "tol": 0.1} if cls is MKLClassifier else {"beta": 0.1}
    model = cls(bank, **sparse).fit(X, y)
    used = model.kernel_weights_ > 0.0
    assert 0 < np.count_nonzero(used) < 3
    assert used[0]
    n_support = len(model.support_)
    assert n_support < 80
    for function in functions:
        function.asked = 0
    model.predict(X[:17])
    assert [function.asked for function in functions] == [17 * n_support * int(one) for one in used]
    assert model.bank_.n_samples == n_support


@pytest.mark.parametrize("name", [*SEVERAL, "kernel", "squares"])
def test_cost(name):
    X, y = rows()
    y = y if is_classifier(MODELS[name]) else X[:, 0] * X[:, 1]
    model = clone(MODELS[name]).fit(X, y)
    cost, used = model.cost_, np.count_nonzero(model.kernel_weights_)
    n, k = model.dual_coef_.shape
    assert cost["kernels"] == used
    assert cost["support"] == n == len(model.support_)
    assert cost["floats"] == n * 4 + used + n * k
    assert cost["multiplications"] == n * (4 + 2 * used) + n * k
    if name != "kernel":
        given = clone(MODELS[name]).set_params(bank=None, kernel="precomputed").fit(stack(X), y)
        assert given.cost_["kernels"] == np.count_nonzero(given.kernel_weights_)
        assert given.cost_["support"] == len(given.support_)
        assert given.cost_["floats"] == given.dual_coef_.size + given.cost_["kernels"]


def test_cost_of_factors():
    X, y = rows()
    model = MKLClassifier(gaussian_bank(TAUS, factors="nystrom", rank=7)).fit(X, y)
    assert model.cost_["support"] == 0
    assert model.cost_["kernels"] == np.count_nonzero(model.kernel_weights_)
    assert model.cost_["floats"] < 7 * 4 + 3 * 7 * 7 + 3 + 3 * 7 * 3 + 1


def test_fitted_attributes():
    X, y = rows()
    model = ConvMKLClassifier(BANK).fit(X, y)
    assert model.kernel_names_ == BANK.names
    assert model.dual_coef_.shape == (len(model.support_), 3)
    assert np.all(np.diff(model.support_) > 0)
    assert model.tail_sums_.shape == (3,)
    assert type(model.objective_) is type(model.dual_gap_) is float
    assert type(model.n_iter_) is int
    assert model.n_features_in_ == 4
