"""The joint machines on one kernel and on columns, against scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import LinearSVC

from mixnorm import KernelMulticlassSVC, LinearMulticlassSVC
from mixnorm.exceptions import NotConvergedWarning
from mixnorm.kernels import GaussianKernel

TIGHT = {"tol": 1e-9, "max_iter": 1000}


def iris(n_classes=3):
    X, y = load_iris(return_X_y=True)
    kept = y >= 3 - n_classes
    X = (X[kept] - X[kept].mean(axis=0)) / X[kept].std(axis=0)
    return X, y[kept]


FORMS = {"dense": np.asarray, "csr": sp.csr_array, "csc matrix": sp.csc_matrix}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("C", "n_classes"), [(0.1, 3), (2.0, 3), (1.0, 2)])
def test_columns_against_liblinear(C, n_classes, fit_intercept, form):
    X, y = iris(n_classes)
    params = {"C": C, "fit_intercept": fit_intercept, "intercept_scaling": 2.0}
    wanted = LinearSVC(
        multi_class="crammer_singer", tol=1e-9, max_iter=10**6, random_state=0, **params
    ).fit(X, y)
    found = LinearMulticlassSVC(**TIGHT, **params).fit(FORMS[form](X), y)
    np.testing.assert_allclose(found.coef_, wanted.coef_, atol=1e-3)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, atol=1e-3)
    np.testing.assert_allclose(
        found.decision_function(FORMS[form](X)), wanted.decision_function(X), atol=1e-2
    )
    assert found.coef_.shape == wanted.coef_.shape


def test_more_columns_than_rows_and_sparse():
    """Then a matrix between rows is made instead."""
    rng = np.random.default_rng(0)
    X = sp.random_array((40, 300), density=0.2, rng=rng, format="csr")
    y = np.arange(40) % 3
    for fit_intercept in (True, False):
        model = LinearMulticlassSVC(fit_intercept=fit_intercept, **TIGHT)
        sparse, dense = clone(model).fit(X, y), clone(model).fit(X.toarray(), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
        np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-4)
        assert np.array_equal(sparse.predict(X), dense.predict(X.toarray()))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_linear_kernel_is_columns_without_intercept(loss):
    X, y = iris()
    kernel = KernelMulticlassSVC(1.0, kernel="linear", loss=loss, **TIGHT).fit(X, y)
    columns = LinearMulticlassSVC(1.0, fit_intercept=False, loss=loss, **TIGHT).fit(X, y)
    assert kernel.objective_ == pytest.approx(columns.objective_, rel=1e-8)
    np.testing.assert_allclose(kernel.decision_function(X), columns.decision_function(X), atol=1e-4)
    assert np.array_equal(columns.intercept_, np.zeros(3))


def precomputed(X, y, K):
    return KernelMulticlassSVC(kernel="precomputed", **TIGHT).fit(K, y)


def one_over(X):
    return 1.0 / (X.shape[1] * X.var())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("params", "kernel"),
    [
        ({}, lambda X: rbf_kernel(X, gamma=one_over(X))),
        ({"gamma": "auto"}, lambda X: rbf_kernel(X, gamma=1.0 / X.shape[1])),
        ({"gamma": 0.3}, lambda X: rbf_kernel(X, gamma=0.3)),
        ({"kernel": "laplacian"}, lambda X: laplacian_kernel(X, gamma=one_over(X))),
        (
            {"kernel": "poly", "degree": 2, "coef0": 1.0},
            lambda X: polynomial_kernel(X, degree=2, gamma=one_over(X), coef0=1.0),
        ),
        ({"kernel": "linear"}, lambda X: X @ X.T),
        ({"kernel": GaussianKernel(tau=2.0)}, lambda X: rbf_kernel(X, gamma=0.25)),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_kernels_have_the_parameters_of_scikit_learn(params, kernel, form):
    X, y = iris()
    X, y = X[::3], y[::3]
    found = KernelMulticlassSVC(**params, **TIGHT).fit(form(X), y)
    wanted = precomputed(X, y, kernel(X))
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-7)
    np.testing.assert_allclose(
        found.decision_function(form(X)), wanted.decision_function(kernel(X)), atol=1e-3
    )


def test_a_function_as_kernel():
    X, y = iris()
    found = KernelMulticlassSVC(kernel=lambda X, Y: (1.0 + X @ Y.T) ** 2, **TIGHT).fit(X, y)
    wanted = precomputed(X, y, (1.0 + X @ X.T) ** 2)
    assert found.objective_ == pytest.approx(wanted.objective_, rel=1e-6)


def test_rows_of_one_value_have_some_width():
    X = np.ones((6, 2))
    model = KernelMulticlassSVC().fit(X, [0, 1, 0, 1, 0, 0])
    assert set(model.predict(X)) == {0}


def test_it_takes_one_kernel():
    X, y = iris()
    K = X @ X.T
    with pytest.raises(ValueError, match="X holds 2 kernels, and this machine takes one"):
        KernelMulticlassSVC(kernel="precomputed").fit(np.stack([K, K]), y)


def test_scores_are_good_enough_to_use():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert KernelMulticlassSVC().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    assert LinearMulticlassSVC().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95


@pytest.mark.parametrize("columns", [True, False])
def test_squared_hinges_of_samples_that_count_much(columns):
    """With the hinge itself this takes two iterations, and with C=10 too."""
    X, y = iris()
    own = {"fit_intercept": False} if columns else {"kernel": "linear"}
    cls = LinearMulticlassSVC if columns else KernelMulticlassSVC
    model = cls(C=1e4, loss="squared_hinge", tol=1e-3, max_iter=5, **own).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


def test_columns_far_from_zero():
    """As scikit-learn's checks have them: the matrix between rows is next to singular."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(loc=100.0, size=(100, 2)), rng.integers(2, size=100)
    model = LinearMulticlassSVC(max_iter=5).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize(
    "model",
    [KernelMulticlassSVC(1.0, kernel="linear", max_iter=5),
     LinearMulticlassSVC(fit_intercept=False, max_iter=5)],
    ids=str,
)  # fmt: skip
def test_rows_of_zeros(model):
    """They have the same loss whatever the weights are: dual variables at their bound."""
    X, y = iris()
    X[::10] = 0.0
    kept = np.arange(len(X)) % 10 > 0
    found, without = clone(model).fit(X, y), clone(model).fit(X[kept], y[kept])
    assert found.dual_gap_ <= 1e-3 * found.objective_
    extra = model.C * np.count_nonzero(~kept)
    assert found.objective_ == pytest.approx(without.objective_ + extra, rel=2e-3)


def test_too_large_for_memory(monkeypatch):
    from mixnorm.estimators.kernels import svc

    X, y = iris()
    monkeypatch.setattr(svc, "_MOST_NUMBERS", 100)
    with pytest.raises(ValueError, match="too large for this machine.*MirrorDescentClassifier"):
        LinearMulticlassSVC().fit(X, y)


@pytest.mark.parametrize(
    ("params", "error", "said"),
    [
        ({"gamma": "wide"}, ValueError, "gamma='wide' must be a number, 'scale' or 'auto'"),
        ({"gamma": -1.0}, ValueError, "gamma=-1.0 must be positive and finite"),
        ({"gamma": True}, TypeError, "gamma=True must be a number, 'scale' or 'auto'"),
        ({"kernel": "bank"}, ValueError, "bank"),
        ({"kernel": 3}, TypeError, "3"),
        (
            {"C": 0.0},
            ValueError,
            "C=0.0 must be positive.*the weight of the losses",
        ),
        ({"C": "1"}, TypeError, "C='1' must be a number"),
        ({"tol": -1.0}, ValueError, "tol=-1.0 must be at least 0"),
        ({"max_iter": 2.0}, TypeError, "max_iter=2.0 must be a whole number"),
        ({"max_iter": 0}, ValueError, "max_iter=0 must be at least 1"),
        ({"loss": "log"}, ValueError, "loss='log' is not known; choose one of"),
        ({"class_weight": "even"}, ValueError, "class_weight='even' must be None, 'balanced'"),
        ({"degree": 1.5, "kernel": "poly"}, ValueError, "degree must be a whole number"),
        ({"degree": "a", "kernel": "poly"}, TypeError, "degree must be a whole number"),
        ({"memory": "much"}, ValueError, "memory='much'"),
        ({"coef0": -1.0, "kernel": "poly"}, ValueError, "coef0"),
        pytest.param(
            {"coef0": "a", "kernel": "poly"},
            TypeError,
            "coef0",
        ),
    ],
    ids=str,
)
def test_wrong_parameters_of_the_machine(params, error, said):
    X, y = iris()
    with pytest.raises(error, match=said):
        KernelMulticlassSVC(**params).fit(X, y)


@pytest.mark.parametrize(
    ("params", "error", "said"),
    [
        ({"fit_intercept": 1}, TypeError, "fit_intercept=1 must be True or False"),
        ({"intercept_scaling": -1.0}, ValueError, "intercept_scaling=-1.0 must be positive"),
        ({"intercept_scaling": 0.0}, ValueError, "intercept_scaling=0.0 must be positive"),
        ({"C": -1}, ValueError, "C=-1 must be positive"),
        ({"loss": None}, ValueError, "loss=None is not known"),
    ],
    ids=str,
)
def test_wrong_parameters_of_columns(params, error, said):
    X, y = iris()
    with pytest.raises(error, match=said):
        LinearMulticlassSVC(**params).fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("scale", "offset"), [(1e6, 0.0), (1.0, 1e6), ("mixed", 0.0)])
def test_linear_machine_on_columns_of_any_scale(loss, scale, offset):
    """The gap is that of the coefficients themselves, where dual variables would cancel."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    scale = 10.0 ** np.array([-6.0, -3.0, 0.0, 3.0, 6.0]) if scale == "mixed" else scale
    X = X * scale + offset
    model = LinearMulticlassSVC(loss=loss).fit(X, y)
    scores = X @ model.coef_.T + model.intercept_
    truth = np.eye(3)[y]
    lost = np.max(scores + 1.0 - truth, axis=1) - np.sum(scores * truth, axis=1)
    squares = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    value = 0.5 * squares + np.sum(lost if loss == "hinge" else lost**2)
    assert value == pytest.approx(model.objective_, rel=1e-6)
    assert model.dual_gap_ <= 1e-3 * model.objective_


def test_a_gap_that_rounding_keeps_up_ends_the_search():
    X = np.random.default_rng(4).normal(size=(5, 8))
    X[:, :2] += 1e9
    with pytest.warns(NotConvergedWarning, match="relative duality gap"):
        model = LinearMulticlassSVC(tol=1e-12, max_iter=100).fit(X, [0, 1, 2, 0, 1])
    assert model.n_iter_ < 20
