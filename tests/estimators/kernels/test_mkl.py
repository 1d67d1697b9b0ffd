"""Kernels in, weights out: banks and matrices alike, and what the weights mean."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixnorm import (
    ConvMKLClassifier,
    KernelMulticlassSVC,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    SMSDMKLClassifier,
    UFOMKLClassifier,
)
from mixnorm.kernels import KernelBank, KernelStack, PolynomialKernel, gaussian_bank

TAUS = [0.125, 0.5, 2.0, 8.0]
BANK = gaussian_bank(TAUS)
EXACT = [
    MKLClassifier(),
    MKLClassifier(p=1.0),
    MKLClassifier(p=2.0, loss="squared_hinge"),
    ConvMKLClassifier(tail=2),
    UFOMKLClassifier(beta=0.01),
    SMSDMKLClassifier(tail=2),
    MKLRegressor(),
    MKLRegressor(p=1.0),
]
MIRROR = [
    UFOMKLClassifier(beta=0.02, solver="mirror", random_state=0),
    SMSDMKLClassifier(tail=2, solver="mirror", random_state=0),
]
each_exact = pytest.mark.parametrize("model", EXACT, ids=str)
each_model = pytest.mark.parametrize("model", [*EXACT, *MIRROR], ids=str)


def rows(n=60, seed=0):
    """Rows, and classes that depend on the first two columns."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    sums = 1.5 * (X[:, 0] + X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, np.floor(sums).astype(int) % 3


def targets(model, X, y):
    return y if is_classifier(model) else np.sin(2.0 * X[:, 0]) + X[:, 1]


def gaussians(X, other=None, taus=TAUS):
    """The kernels of the bank, written out."""
    other = X if other is None else other
    squares = np.sum((X[:, None] - other[None]) ** 2, axis=2)
    return np.stack([np.exp(-squares / (2.0 * tau)) for tau in taus])


def tight(model, tol):
    """The model with a small tolerance, where its solver has one and reaches it."""
    if "solver='mirror'" in str(model):
        return clone(model)
    if isinstance(model, MKLRegressor) and model.p == 1.0:
        tol = max(tol, 2e-5)  # see test_squares_reach_the_tolerance
    return clone(model).set_params(tol=tol, max_iter=3000)


def scores(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


# --- banks and matrices


FORMS = {"array": lambda K: K, "list": list, "stack": KernelStack, "float32": np.float32}


@pytest.mark.parametrize("form", FORMS)
@each_model
def test_matrices_and_banks_give_the_same_model(model, form):
    (X, y), (new, _) = rows(), rows(20, seed=1)
    y = targets(model, X, y)
    form = FORMS[form]
    bank = tight(model, 1e-6).set_params(bank=BANK).fit(X, y)
    given = tight(model, 1e-6).set_params(kernel="precomputed").fit(form(gaussians(X)), y)
    # Kernels of the bank are rounded to single precision; optima move as the root of that.
    assert given.objective_ == pytest.approx(bank.objective_, rel=1e-4)
    np.testing.assert_allclose(given.kernel_weights_, bank.kernel_weights_, atol=0.01)
    found, wanted = scores(given, form(gaussians(new, X))), scores(bank, new)
    np.testing.assert_allclose(found, wanted, atol=0.01 * np.max(np.abs(wanted)))
    assert given.bank_ is None
    assert given.kernel_names_ == [f"kernel {m}" for m in range(4)]
    assert bank.kernel_names_ == BANK.names
    assert given.n_features_in_ == 60


def test_one_matrix_is_a_stack_of_one():
    X, y = rows()
    K = gaussians(X)[1]
    one = MKLClassifier(kernel="precomputed").fit(K, y)
    stack = MKLClassifier(kernel="precomputed").fit(K[None], y)
    assert np.array_equal(one.decision_function(K), stack.decision_function(K[None]))
    np.testing.assert_allclose(one.kernel_weights_, [1.0])


def test_grid_search_takes_rows_and_columns_of_all_matrices():
    X, y = rows()
    folds = StratifiedKFold(3)
    grid = {"C": [0.1, 10.0], "p": [1.0, 2.0]}
    model = MKLClassifier(kernel="precomputed", tol=1e-6, max_iter=2000)
    stack = KernelStack(gaussians(X))
    found = GridSearchCV(model, grid, cv=folds).fit(stack, y)
    own = MKLClassifier(gaussian_bank(TAUS, dtype="float64"), tol=1e-6, max_iter=2000)
    wanted = GridSearchCV(own, grid, cv=folds).fit(X, y)
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_allclose(found.cv_results_[name], wanted.cv_results_[name], atol=1e-12)
    assert found.best_params_ == wanted.best_params_
    assert np.array_equal(found.predict(stack), wanted.predict(X))


@each_model
def test_cross_validation_is_the_same_by_rows_and_matrices(model):
    X, y = rows()
    y = targets(model, X, y)
    by_rows = clone(model).set_params(bank=gaussian_bank(TAUS, dtype="float64"))
    by_stack = clone(model).set_params(kernel="precomputed")
    found = cross_val_score(by_stack, KernelStack(gaussians(X)), y, cv=3)
    np.testing.assert_allclose(found, cross_val_score(by_rows, X, y, cv=3), atol=1e-6)


def test_within_a_pipeline():
    X, y = rows()
    pipe = make_pipeline(StandardScaler(), MKLClassifier(BANK)).fit(1e3 * X + 5.0, y)
    scaled = StandardScaler().fit_transform(X)
    wanted = MKLClassifier(BANK).fit(scaled, y)
    np.testing.assert_allclose(
        pipe.decision_function(1e3 * X + 5.0), wanted.decision_function(scaled), atol=1e-3
    )
    search = GridSearchCV(pipe, {"mklclassifier__C": [0.1, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.5


def test_parameters_of_the_bank_can_be_searched():
    X, y = rows()
    search = GridSearchCV(
        MKLClassifier(BANK), {"bank__normalize": [None, "trace"], "C": [1.0]}, cv=3
    )
    assert search.fit(X, y).best_params_["C"] == 1.0


@each_model
def test_clones_and_pickles(model):
    X, y = rows()
    y = targets(model, X, y)
    fitted = clone(model).set_params(bank=BANK).fit(X, y)
    copied = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(scores(copied, X), scores(fitted, X))
    again = clone(fitted)
    assert not hasattr(again, "kernel_weights_")
    assert str(again) == str(fitted)
    assert np.array_equal(scores(again.fit(X, y), X), scores(fitted, X))


# --- what the weights mean


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(p=1.0),
        MKLClassifier(p=1.0, loss="squared_hinge", C=0.3),
        MKLRegressor(p=1.0),
    ],
    ids=str,
)
def test_copies_of_a_kernel_change_nothing_for_p_of_one(model):
    (X, y), (new, _) = rows(), rows(20, seed=1)
    y, several = targets(model, X, y), [0, 1, 1, 2, 3, 1, 3]
    model = clone(model).set_params(kernel="precomputed", tol=1e-7, max_iter=150)
    once, copies = clone(model).fit(gaussians(X), y), clone(model).fit(gaussians(X)[several], y)
    assert copies.objective_ == pytest.approx(once.objective_, rel=2e-7)
    found = scores(copies, gaussians(new, X)[several])
    # The penalty is strongly convex, so that errors are as the root of the gap.
    np.testing.assert_allclose(found, scores(once, gaussians(new, X)), atol=2e-3)
    together = np.bincount(several, weights=copies.kernel_weights_)
    np.testing.assert_allclose(together, once.kernel_weights_, atol=2e-3)


@each_model
def test_the_order_of_kernels_does_not_matter(model):
    X, y = rows()
    y = targets(model, X, y)
    order = [2, 0, 3, 1]
    model = tight(model, 1e-8).set_params(kernel="precomputed")
    one = clone(model).fit(gaussians(X), y)
    other = clone(model).fit(gaussians(X)[order], y)
    error = 1e-3 if model.tol < 1e-7 else 0.02
    np.testing.assert_allclose(other.kernel_weights_, one.kernel_weights_[order], atol=error)
    np.testing.assert_allclose(
        scores(other, gaussians(X)[order]), scores(one, gaussians(X)), atol=error
    )


@each_model
def test_a_kernel_of_other_rows_gets_less_weight(model):
    """The useless kernel is the informative one with its rows mixed up, of the same spectrum."""
    rng = np.random.default_rng(3)
    X, mixed = rng.normal(size=(90, 3)), rng.permutation(90)
    y = np.argmax(X, axis=1) if is_classifier(model) else X[:, 0] - X[:, 1]
    K = X @ X.T
    stack = np.stack([K[np.ix_(mixed, mixed)], K])
    useless, useful = clone(model).set_params(kernel="precomputed").fit(stack, y).kernel_weights_
    assert useful > 1.5 * useless


EXPONENTS = [1.0, 1.05, 1.2, 2.0, 10.0, np.inf]


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
@pytest.mark.parametrize("p", EXPONENTS)
def test_the_norm_of_the_weights_is_one(p, tol):
    X, y = rows()
    K = gaussians(X)
    for model, values in (
        (MKLClassifier(kernel="precomputed"), y),
        (ConvMKLClassifier(kernel="precomputed", tail=2), y),
        (MKLRegressor(kernel="precomputed"), targets(MKLRegressor(), X, y)),
    ):
        found = tight(model.set_params(p=p), tol).fit(K, values)
        sums = getattr(found, "tail_sums_", np.ones(4))
        scaled = sums / np.exp(np.mean(np.log(sums))) * found.kernel_weights_
        assert np.linalg.norm(scaled, p) == pytest.approx(1.0, rel=1e-6), model


@pytest.mark.parametrize(("C", "tol"), [(1e-3, 1e-2), (0.1, 0.1)])
def test_few_counts_are_still_learned_from(C, tol):
    """The optimum is better than nothing by 1e-3 and more, and predicts most classes right."""
    X, y = rows()
    K = gaussians(X)
    model = ConvMKLClassifier(kernel="precomputed", tail=2, C=C)
    tight = clone(model).set_params(tol=1e-6).fit(K, y)
    assert tight.objective_ < C * 60 * (1.0 - 1e-4)
    assert tight.score(K, y) > 0.6
    found = model.set_params(tol=tol).fit(K, y)
    assert found.score(K, y) > 0.5


@pytest.mark.parametrize("C", [0.1, 1.0, 1e3])
@each_model
def test_no_weight_is_negative(model, C):
    X, y = rows()
    y = targets(model, X, y)
    model = clone(model).set_params(kernel="precomputed", C=C)
    weights = model.fit(gaussians(X), y).kernel_weights_
    assert weights.shape == (4,)
    assert weights.dtype == np.float64
    assert np.all(weights >= 0.0)
    assert np.any(weights > 0.0)


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
def test_conv_is_plain_on_kernels_divided_by_tail_sums(p):
    (X, y), (new, _) = rows(), rows(20, seed=1)
    params = {"kernel": "precomputed", "p": p, "tol": 1e-8, "max_iter": 3000}
    K, between = gaussians(X), gaussians(new, X)
    conv = ConvMKLClassifier(tail=3, floor=0.05, **params).fit(K, y)
    eigenvalues = np.linalg.eigvalsh(K)[:, ::-1]
    sums = np.maximum(np.sum(eigenvalues[:, 3:], axis=1) / len(X), 0.05)
    np.testing.assert_allclose(conv.tail_sums_, sums, rtol=1e-6)
    scale = sums / np.exp(np.mean(np.log(sums)))
    plain = MKLClassifier(**params).fit(K / scale[:, None, None], y)
    assert conv.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    np.testing.assert_allclose(conv.kernel_weights_ * scale, plain.kernel_weights_, atol=1e-4)
    np.testing.assert_allclose(
        conv.decision_function(between),
        plain.decision_function(between / scale[:, None, None]),
        atol=1e-3,
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_infinite_p_is_the_machine_on_the_sum(loss):
    X, y = rows()
    K = gaussians(X)
    params = {"kernel": "precomputed", "C": 3.0, "tol": 1e-9, "loss": loss}
    several = MKLClassifier(p=np.inf, **params).fit(K, y)
    one = KernelMulticlassSVC(**params).fit(K.sum(axis=0), y)
    np.testing.assert_allclose(several.kernel_weights_, 1.0)
    assert several.objective_ == pytest.approx(one.objective_, rel=1e-8)
    np.testing.assert_allclose(
        several.decision_function(K), one.decision_function(K.sum(axis=0)), atol=1e-4
    )


def test_larger_p_spreads_the_weights():
    X, y = rows()
    params = {"kernel": "precomputed", "tol": 1e-6, "max_iter": 2000}
    shares = []
    for p in (1.0, 1.2, 2.0, 4.0):
        weights = MKLClassifier(p=p, **params).fit(gaussians(X), y).kernel_weights_
        shares.append(np.max(weights) / np.sum(weights))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 1.2 * shares[-1]


@pytest.mark.parametrize("beta", [0.0, 0.05])
def test_beta_of_zero_is_plain_of_the_exponent_that_belongs_to_q(beta):
    """With no offsets, q on blocks is p = q / (q - 2) on weights; lambda is 1 / (n C)."""
    X, y = rows()
    K, q = gaussians(X), 6.0
    params = {"kernel": "precomputed", "C": 2.0, "tol": 1e-8, "max_iter": 3000}
    blocks = UFOMKLClassifier(beta=beta, q=q, **params).fit(K, y)
    plain = MKLClassifier(p=q / (q - 2.0), **params).fit(K, y)
    if beta == 0.0:
        assert blocks.objective_ * len(y) * 2.0 == pytest.approx(plain.objective_, rel=1e-7)
        np.testing.assert_allclose(
            blocks.decision_function(K), plain.decision_function(K), atol=1e-3
        )
    else:
        assert blocks.objective_ * len(y) * 2.0 > 1.01 * plain.objective_


def test_default_exponents():
    X, y = rows()
    K = gaussians(X, taus=2.0 ** np.arange(-4.0, 5.0))
    params = {"kernel": "precomputed", "tol": 1e-6}
    by_kernels = UFOMKLClassifier(**params).fit(K, y)
    given = UFOMKLClassifier(q=2.0 * np.log(9), **params).fit(K, y)
    by_classes = UFOMKLClassifier(q="classes", **params).fit(K, y)
    of_three = UFOMKLClassifier(q=2.0 * np.log(3), **params).fit(K, y)
    assert np.array_equal(by_kernels.kernel_weights_, given.kernel_weights_)
    assert np.array_equal(by_classes.kernel_weights_, of_three.kernel_weights_)
    assert not np.allclose(by_classes.kernel_weights_, by_kernels.kernel_weights_)


def test_more_beta_leaves_fewer_kernels():
    X, y = rows()
    K = gaussians(X, taus=2.0 ** np.arange(-4.0, 5.0))
    for cls, betas in ((UFOMKLClassifier, (0.0, 0.01, 0.1)), (SMSDMKLClassifier, (0.0, 0.3, 3.0))):
        counts = []
        for beta in betas:
            model = cls(beta=beta, C=10.0, kernel="precomputed", tol=1e-4)
            counts.append(np.count_nonzero(model.fit(K, y).kernel_weights_))
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] < counts[0]


def test_the_search_takes_matrices_too():
    X, y = rows()
    params = {"Cs": [0.1, 10.0], "ps": [1.0, 2.0], "cv": 3}
    by_stack = MKLClassifierCV(kernel="precomputed", **params).fit(KernelStack(gaussians(X)), y)
    by_rows = MKLClassifierCV(gaussian_bank(TAUS, dtype="float64"), **params).fit(X, y)
    assert by_stack.best_params_ == by_rows.best_params_
    np.testing.assert_allclose(by_stack.search_.scores().T, by_rows.search_.scores().T)


def test_a_large_kernel_does_not_take_all_weight():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    widths = gaussian_bank(np.geomspace(0.02, 16.0, 19), relative=True).kernels
    kernels = [*widths, PolynomialKernel(degree=5)]

    def share(**options):
        model = MKLClassifier(KernelBank(kernels, **options), p=1).fit(X, y)
        return model.kernel_weights_[-1] / np.sum(model.kernel_weights_)

    assert share(normalize=None) > 0.99
    assert share() < 0.2


def test_one_kernel_is_taken_as_it_is():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = KernelMulticlassSVC(kernel="linear", C=0.01, tol=1e-6).fit(X, y)
    given = KernelMulticlassSVC(kernel="precomputed", C=0.01, tol=1e-6).fit(X @ X.T, y)
    assert np.allclose(ours.decision_function(X), given.decision_function(X @ X.T), atol=1e-2)
