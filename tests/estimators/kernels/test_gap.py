"""Objectives are what the documentation says, and the gap is never too small."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from mixnorm import (
    ConvMKLClassifier,
    KernelMulticlassSVC,
    LinearMulticlassSVC,
    MKLClassifier,
    MKLRegressor,
    SMSDMKLClassifier,
    UFOMKLClassifier,
)
from mixnorm.exceptions import NotConvergedWarning
from mixnorm.kernels import gaussian_bank

TAUS = [0.125, 0.5, 2.0, 8.0]
BANK = gaussian_bank(TAUS, dtype="float64")
MODELS = [
    MKLClassifier(BANK),
    MKLClassifier(BANK, p=1.0),
    MKLClassifier(BANK, p=np.inf),
    MKLClassifier(BANK, p=2.0, loss="squared_hinge"),
    ConvMKLClassifier(BANK, tail=2),
    UFOMKLClassifier(BANK),
    UFOMKLClassifier(BANK, beta=0.02, q=3.0),
    SMSDMKLClassifier(BANK, tail=2),
    SMSDMKLClassifier(BANK, tail=2, beta=0.05, q="classes"),
    KernelMulticlassSVC(gamma=0.5),
    KernelMulticlassSVC(gamma=2.0, loss="squared_hinge"),
    LinearMulticlassSVC(),
    MKLRegressor(BANK),
    MKLRegressor(BANK, p=2.0),
]
WITH_WEIGHTS = [model for model in MODELS if not isinstance(model, LinearMulticlassSVC)]


def short(model):
    params = clone(model).set_params(bank=None) if "bank" in model.get_params() else model
    return str(params)


def data(model, n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    sums = 1.5 * (X[:, 0] + X[:, 1]) + 0.3 * rng.normal(size=n)
    if is_classifier(model):
        return X, np.floor(sums).astype(int) % 3
    return X, 1e3 * np.stack([sums, X[:, 2]], axis=1) + 5.0


# See test_few_counts_are_still_learned_from in test_mkl.py.
@pytest.mark.filterwarnings("ignore:No kernel is left")
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("model", MODELS, ids=short)
def test_the_gap_bounds_the_distance_from_the_optimum(model, C):
    X, y = data(model)
    loose = clone(model).set_params(C=C, tol=0.1).fit(X, y)
    tight = clone(model).set_params(C=C, tol=1e-6, max_iter=2000).fit(X, y)
    assert loose.dual_gap_ <= 0.1 * loose.objective_
    assert tight.dual_gap_ <= 1e-6 * tight.objective_
    assert loose.objective_ - loose.dual_gap_ <= tight.objective_ * (1.0 + 1e-9)
    assert tight.objective_ - tight.dual_gap_ <= loose.objective_ * (1.0 + 1e-9)


@pytest.mark.parametrize("model", WITH_WEIGHTS, ids=short)
def test_the_gap_holds_after_one_iteration(model):
    X, y = data(model)
    model = clone(model).set_params(C=100.0)
    tight = clone(model).set_params(tol=1e-6, max_iter=2000).fit(X, y)
    begun = clone(model).set_params(tol=1e-12, max_iter=1)
    with pytest.warns(NotConvergedWarning, match=r"Stopped after 1 iterations .* \(tol 1e-12\)"):
        begun.fit(X, y)
    assert begun.n_iter_ == 1
    assert begun.objective_ * (1.0 + 1e-9) >= tight.objective_ - tight.dual_gap_
    assert begun.objective_ - begun.dual_gap_ <= tight.objective_ * (1.0 + 1e-9)


# --- written out


def hinges(scores, y):
    one_hot = np.eye(scores.shape[1])[y]
    return np.max(scores + 1.0 - one_hot, axis=1) - np.sum(scores * one_hot, axis=1)


def kernels(X):
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return np.stack([np.exp(-squares / (2.0 * tau)) for tau in TAUS])


def blocks(model, K):
    """Sizes of the blocks w_m = mu_m theta_m, and the scores, of the training rows."""
    A = np.zeros((K.shape[1], model.dual_coef_.shape[1]))
    A[model.support_] = model.dual_coef_
    theta = K @ A
    sizes = model.kernel_weights_ * np.sqrt(np.einsum("mnc,nc->m", theta, A))
    return sizes, np.einsum("m,mnc->nc", model.kernel_weights_, theta)


WEIGHTS = {"none": None, "some": np.random.default_rng(5).uniform(0.2, 3.0, size=60)}


@pytest.mark.parametrize("solver", ["exact", "mirror"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("q", [None, 2.0, 5.0])
@pytest.mark.parametrize("cls", [UFOMKLClassifier, SMSDMKLClassifier])
def test_block_penalties(cls, q, weight, solver):
    """lambda / 2 |w|_{2,p}^2 + beta sum_m r_m |w_m| + the mean hinge; lambda is 1 / (n C)."""
    model = cls(BANK, C=5.0, beta=0.02, q=q, solver=solver, random_state=0)
    X, y = data(model)
    K, weight = kernels(X), WEIGHTS[weight]
    model.fit(X, y, sample_weight=weight)
    weight = np.ones(60) if weight is None else weight
    costs = np.full(4, 0.02)
    if cls is SMSDMKLClassifier:
        values = np.linalg.eigvalsh(K * np.sqrt(np.outer(weight, weight)))
        tails = np.sum(values[:, :-8], axis=1) / np.sum(weight)
        np.testing.assert_allclose(model.tail_sums_, tails, rtol=1e-6, atol=1e-12)
        costs = 0.02 * tails
    sizes, scores = blocks(model, K)
    dual = max(2.0, 2.0 * np.log(4)) if q is None else q
    strength = 1.0 / (np.sum(weight) * 5.0)
    wanted = 0.5 * strength * np.linalg.norm(sizes, dual / (dual - 1.0)) ** 2
    wanted += np.sum(costs * sizes) + np.average(hinges(scores, y), weights=weight)
    assert model.objective_ == pytest.approx(wanted, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-8)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("p", [1.0, 1.2, 2.0, np.inf])
@pytest.mark.parametrize("cls", [MKLClassifier, ConvMKLClassifier])
def test_norms_of_weights(cls, p, loss, weight):
    """sum_m |w_m|^2 / (2 mu_m) at the best mu, and C times the losses."""
    model = cls(BANK, C=5.0, p=p, loss=loss)
    X, y = data(model)
    weight = WEIGHTS[weight]
    model.fit(X, y, sample_weight=weight)
    sizes, scores = blocks(model, kernels(X))
    sums = getattr(model, "tail_sums_", np.ones(4))
    sizes = sizes * np.sqrt(sums / np.exp(np.mean(np.log(sums))))
    s = 2.0 * p / (p + 1.0) if np.isfinite(p) else 2.0
    lost = hinges(scores, y) ** (2 if loss == "squared_hinge" else 1)
    wanted = 0.5 * np.linalg.norm(sizes, s) ** 2
    wanted += 5.0 * np.sum(lost if weight is None else weight * lost)
    assert model.objective_ == pytest.approx(wanted, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-8)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("p", [1.2, 2.0])
def test_regression(p, weight):
    """The same with C / 2 times squared errors, in the units of the targets."""
    model = MKLRegressor(BANK, p=p, C=3.0)
    X, y = data(model)
    weight = WEIGHTS[weight]
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.intercept_, np.average(y, axis=0, weights=weight))
    sizes, scores = blocks(model, kernels(X))
    unit = np.max(np.abs(y - model.intercept_))  # of the dual variables
    predicted = model.predict(X)
    np.testing.assert_allclose(predicted, unit * scores + model.intercept_, atol=1e-6)
    errors = np.sum((y - predicted) ** 2, axis=1)
    wanted = 0.5 * np.linalg.norm(unit * sizes, 2.0 * p / (p + 1.0)) ** 2
    wanted += 1.5 * np.sum(errors if weight is None else weight * errors)
    assert model.objective_ == pytest.approx(wanted, rel=1e-6)


def test_machines_on_columns():
    model = LinearMulticlassSVC(C=2.0, intercept_scaling=3.0)
    X, y = data(model)
    model.fit(X, y)
    weights = np.column_stack([model.coef_, model.intercept_ / 3.0])
    wanted = 0.5 * np.sum(weights**2) + 2.0 * np.sum(hinges(model.decision_function(X), y))
    assert model.objective_ == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("cls", [MKLClassifier, UFOMKLClassifier])
def test_dual_variables_are_feasible(cls):
    """Rows sum to zero; the label's entry is at most C times the weight, all others negative."""
    model = cls(BANK, C=5.0)
    X, y = data(model)
    weight = WEIGHTS["some"]
    model.fit(X, y, sample_weight=weight)
    A, labels = model.dual_coef_, y[model.support_]
    np.testing.assert_allclose(np.sum(A, axis=1), 0.0, atol=1e-9)
    own = A[np.arange(len(A)), labels]
    assert np.all(own <= 5.0 * weight[model.support_] * (1.0 + 1e-9))
    rest = A.copy()
    rest[np.arange(len(A)), labels] = 0.0
    assert np.all(rest <= 0.0)
    assert np.all(np.any(A != 0.0, axis=1))


@pytest.mark.parametrize("model", [MODELS[0], MODELS[1], MODELS[6], MODELS[12]], ids=short)
def test_warm_starts_along_C_end_within_the_gaps(model):
    X, y = data(model)
    model = clone(model).set_params(tol=1e-4, max_iter=1000)
    warm = clone(model).set_params(warm_start=True)
    for C in (0.1, 1.0, 100.0, 10.0, 0.5):  # up, and down
        cold = clone(model).set_params(C=C).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        assert warm.dual_gap_ <= 1e-4 * warm.objective_
        assert warm.objective_ - warm.dual_gap_ <= cold.objective_
        assert cold.objective_ - cold.dual_gap_ <= warm.objective_
    again = clone(warm).set_params(C=0.5).fit(X, y)
    steps = again.n_iter_
    again.fit(X, y)
    assert again.n_iter_ <= max(1, steps // 2)
