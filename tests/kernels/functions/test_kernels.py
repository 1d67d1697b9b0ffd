"""Kernels, against scikit-learn's and formulas."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import pairwise as reference

from mixnorm.kernels import (
    ChiSquaredKernel,
    FunctionKernel,
    GaussianKernel,
    Kernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    as_kernel,
    register_kernel,
)
from mixnorm.kernels.functions.base import decay
from mixnorm.kernels.functions.kernels import FUNCTIONS
from mixnorm.kernels.functions.metrics import METRICS, centre_of, pairwise
from mixnorm.kernels.functions.names import describe
from mixnorm.kernels.functions.spread import mean_distance, mean_squared_distance


@pytest.fixture(autouse=True)
def _forget(monkeypatch):
    for name in list(FUNCTIONS):
        monkeypatch.delitem(FUNCTIONS, name)
    yield
    FUNCTIONS.clear()


def minimum(X, Y):
    return np.minimum(X[:, None], Y[None]).sum(axis=2)


CASES = [
    (GaussianKernel(0.7), lambda X, Y: reference.rbf_kernel(X, Y, gamma=0.5 / 0.7)),
    (LaplacianKernel(3.0), lambda X, Y: reference.laplacian_kernel(X, Y, gamma=1.0 / 3.0)),
    (LinearKernel(), reference.linear_kernel),
    (
        PolynomialKernel(4, 0.3, 2.0),
        lambda X, Y: reference.polynomial_kernel(X, Y, degree=4, gamma=0.3, coef0=2.0),
    ),
    (
        PolynomialKernel(1, 0.3, 0.0),
        lambda X, Y: reference.polynomial_kernel(X, Y, degree=1, gamma=0.3, coef0=0.0),
    ),
    (ChiSquaredKernel(0.2), lambda X, Y: reference.chi2_kernel(X, Y, gamma=0.2)),
    (FunctionKernel(minimum), minimum),
]
IDS = [describe(kernel) for kernel, _ in CASES]


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=IDS)
def test_values(kernel, expected, X, new):
    X, new = np.abs(X), np.abs(new)
    assert isinstance(kernel, Kernel)
    assert kernel.resolve(X) is kernel
    np.testing.assert_allclose(kernel.between(new, X), expected(new, X), rtol=1e-10, atol=1e-13)
    whole = kernel.between(X)
    np.testing.assert_allclose(whole, expected(X, X), rtol=1e-10, atol=1e-13)
    assert np.array_equal(whole, whole.T)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(expected(X, X)), rtol=1e-12)
    np.testing.assert_allclose(kernel.between(X, X), whole, rtol=1e-14)
    if kernel.metric in ("sqeuclidean", "cityblock", "chi2"):
        assert np.all(np.diag(whole) == 1.0)


@pytest.mark.parametrize(("kernel", "expected"), CASES[:-1], ids=IDS[:-1])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_sparse_rows(kernel, expected, counts, container):
    dense, rows = counts.toarray(), container(counts)
    np.testing.assert_allclose(kernel.between(rows), expected(dense, dense), rtol=1e-10)
    some = container(counts[:9])
    mixed = [(some, rows), (some, dense), (dense[:9], rows)]
    for left, right in mixed:
        found = kernel.between(left, right)
        np.testing.assert_allclose(found, expected(dense[:9], dense), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(rows), np.diag(expected(dense, dense)))


def test_sparse_rows_with_entries_given_twice():
    rows = sparse.csr_array((np.ones(4), [0, 0, 1, 2], [0, 2, 4]), shape=(2, 3))
    found = GaussianKernel(2.0).between(rows)
    np.testing.assert_allclose(found[0, 1], np.exp(-(4.0 + 1.0 + 1.0) / 4.0))
    assert rows.nnz == 4  # theirs is left as it was


@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_blocks_are_as_the_whole(metric, container, monkeypatch, counts):
    rows = container(counts.toarray())
    whole = pairwise(metric, rows)
    rectangle = pairwise(metric, rows[:11], rows)
    monkeypatch.setattr("mixnorm.kernels.functions.metrics.BLOCK", 97)
    np.testing.assert_allclose(pairwise(metric, rows), whole, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(pairwise(metric, rows[:11], rows), rectangle, rtol=1e-13, atol=1e-13)
    found = pairwise(metric, rows)
    assert np.array_equal(found, found.T)
    if metric != "dot":
        assert np.all(np.diag(found) == 0.0)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_far_from_the_origin(offset, dtype, X):
    rows = (X[:, :3] + offset).astype(dtype)
    exact = ((rows[:, None].astype(np.longdouble) - rows) ** 2).sum(axis=2)
    found = pairwise("sqeuclidean", rows)
    assert found.dtype == np.float64
    assert np.all(found >= 0.0)
    assert np.all(np.diag(found) == 0.0)
    np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-12 * float(exact.max()))
    np.testing.assert_allclose(
        pairwise("sqeuclidean", rows[:7], rows), exact[:7], atol=1e-12 * float(exact.max())
    )


def test_centres():
    rows = np.random.default_rng(0).standard_normal((50, 3))
    assert centre_of(rows) is None
    np.testing.assert_allclose(centre_of(rows + 1e3), (rows + 1e3).mean(axis=0))
    assert centre_of(sparse.csr_array(rows)) is None
    assert centre_of(np.zeros((0, 3))) is None
    assert centre_of(np.zeros((4, 3))) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (7,), (64,), (33, 65), (257,)])
def test_decay_has_no_numbers_that_slow_down(dtype, shape):
    D = np.random.default_rng(0).uniform(0.0, 2000.0, size=shape).astype(dtype)
    D.reshape(-1)[0] = 0.0
    found = decay(D, 1.0)
    exact = np.exp(-D.astype(float))
    assert found.dtype == dtype
    assert found.reshape(-1)[0] == 1.0
    np.testing.assert_allclose(found, exact, atol=1e-7 if dtype == np.float32 else 1e-15)
    lowest = 81.0 if dtype == np.float32 else 701.0
    assert np.all(found[lowest < D] == 0.0)
    assert np.all(found >= 0.0)


def test_extreme_widths():
    rows = np.array([[0.0], [1.0]])
    for kernel in (GaussianKernel(5e-324), LaplacianKernel(5e-324), ChiSquaredKernel(1e308)):
        assert np.array_equal(kernel.between(rows), np.eye(2))
        assert np.array_equal(kernel.of_metric(np.eye(2, dtype=np.float32)), 1.0 - np.eye(2))
    assert np.array_equal(GaussianKernel(1e308).between(rows), np.ones((2, 2)))


# --- relative widths


def pairs(X, exponent):
    return (np.abs(X[:, None] - X[None]) ** exponent).sum(axis=2).mean()


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_relative_widths(X, offset):
    rows = X + offset
    gaussian = GaussianKernel(0.5, relative=True).resolve(rows)
    assert gaussian == GaussianKernel(pytest.approx(0.5 * pairs(rows, 2)))
    laplacian = LaplacianKernel(0.5, relative=True).resolve(rows)
    assert laplacian == LaplacianKernel(pytest.approx(0.5 * pairs(rows, 1)))
    assert type(gaussian.tau) is float


def test_relative_widths_of_sparse_rows(counts):
    signed = counts.copy()
    signed.data[::3] *= -1.0
    for rows in (counts, signed):
        dense = rows.toarray()
        assert mean_squared_distance(rows) == pytest.approx(pairs(dense, 2))
        assert mean_distance(rows) == pytest.approx(pairs(dense, 1))


@pytest.mark.parametrize("kind", [GaussianKernel, LaplacianKernel])
def test_relative_widths_do_not_depend_on_units(kind, X, new):
    kernel = kind(0.3, relative=True)
    found = kernel.resolve(X).between(new, X)
    other = kernel.resolve(1e3 * X).between(1e3 * new, 1e3 * X)
    np.testing.assert_allclose(found, other, rtol=1e-9)


@pytest.mark.parametrize("kind", [GaussianKernel, LaplacianKernel])
def test_rows_that_are_all_equal(kind):
    for value in (0.0, 0.1, 1e9 + 0.3):
        assert kind(2.0, relative=True).resolve(np.full((7, 2), value)) == kind(2.0)
    assert kind(2.0, relative=True).resolve(np.ones((1, 2))) == kind(2.0)


def test_relative_widths_must_be_settled_first(X):
    kernel = GaussianKernel(0.3, relative=True)
    for use in (kernel.between, kernel.diagonal, kernel.of_metric):
        with pytest.raises(ValueError, match=r"relative to training rows; call resolve\(X\)"):
            use(X)


# --- parameters


@pytest.mark.parametrize(
    "kernel",
    [
        GaussianKernel(0.5, relative=True),
        LaplacianKernel(2.0),
        ChiSquaredKernel(0.1),
        PolynomialKernel(2, 0.5, 0.0),
        LinearKernel(),
        FunctionKernel(minimum),
        FunctionKernel("some"),
    ],
)
def test_parameters(kernel):
    again = clone(kernel)
    assert again == kernel
    assert again is not kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert type(kernel)(**kernel.get_params()) == kernel
    assert clone(kernel).set_params(**kernel.get_params()) == kernel


BAD = [
    (
        GaussianKernel(0.0),
        ValueError,
        r"GaussianKernel\(tau=0.0\) is not a kernel; tau must be pos",
    ),
    (GaussianKernel(np.nan), ValueError, "tau=nan"),
    (LaplacianKernel(np.inf), ValueError, "tau=inf"),
    (GaussianKernel("1"), TypeError, "GaussianKernel.tau='1' must be a number, got str"),
    (GaussianKernel(True), TypeError, "got bool"),
    (GaussianKernel(1.0, relative=1), TypeError, "relative=1.* must be True or False"),
    (ChiSquaredKernel(-1.0), ValueError, "gamma=-1.0"),
    (PolynomialKernel(0), ValueError, "degree=0.* is not offered"),
    (PolynomialKernel(2.5), ValueError, "degree must be a whole number"),
    (PolynomialKernel("2"), TypeError, "degree='2'"),
    (PolynomialKernel(True), ValueError, "degree=True"),
    (PolynomialKernel(gamma=0), ValueError, "gamma=0"),
    (PolynomialKernel(coef0=-1.0), ValueError, "coef0=-1.0.* is not a kernel"),
    (FunctionKernel(3), TypeError, r"FunctionKernel\(3\) needs a function"),
    (FunctionKernel("lost"), ValueError, r"not registered.*register_kernel\('lost', function\)"),
]


@pytest.mark.parametrize(("kernel", "error", "message"), BAD)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel.check()
    with pytest.raises(error, match=message):
        kernel.resolve(np.ones((3, 2)))
    with pytest.raises(error, match=message):
        kernel.between(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.array([[np.nan]]), "missing or infinite values.*SimpleImputer"),
        (np.array([[np.inf]]), "missing or infinite values"),
        (np.array([[1e150]]), "beyond 1e.140.*StandardScaler"),
        (np.array([["a"]]), "not real numbers"),
        (np.array([["a"]], dtype=object), "not real numbers"),
        (np.array([[1j]]), "not real numbers"),
        (np.ones(3), "X has 1 axes"),
    ],
)
def test_bad_rows(rows, message):
    with pytest.raises(ValueError, match=message):
        GaussianKernel().between(rows)


def test_rows_of_different_columns():
    with pytest.raises(ValueError, match="X has 2 columns, but Y has 3"):
        LinearKernel().between(np.ones((1, 2)), np.ones((1, 3)))


def test_numbers_of_other_kinds():
    rows = np.array([[0, 1], [2, 3]])
    expected = LinearKernel().between(rows.astype(float))
    for kind in (np.int8, np.uint64, np.float16, np.float32, object):
        assert np.array_equal(LinearKernel().between(rows.astype(kind)), expected)
    assert LinearKernel().between(np.eye(2, dtype=bool)).dtype == np.float64


def test_histograms_are_not_negative(counts):
    kernel = ChiSquaredKernel()
    negative = -counts
    for rows in (negative, negative.toarray()):
        for use in (kernel.between, kernel.resolve, lambda rows: kernel.between(counts, rows)):
            with pytest.raises(ValueError, match="needs histograms or counts, but X has -"):
                use(rows)


# --- functions of the user's


def test_functions(X):
    seen = []

    def function(left, right):
        seen.append(len(left))
        return left @ right.T

    kernel = FunctionKernel(function)
    rows = np.repeat(X, 3, axis=0)
    np.testing.assert_allclose(kernel.diagonal(rows), (rows**2).sum(axis=1))
    assert max(seen) <= 64
    assert kernel.diagonal(X[:0]).shape == (0,)
    with pytest.raises(TypeError, match="not a function of a metric"):
        kernel.of_metric(np.eye(2))


def test_functions_that_return_something_else(X):
    with pytest.raises(ValueError, match=r"returned shape \(60,\) for 60 and 60 rows"):
        FunctionKernel(lambda X, Y: X[:, 0]).between(X)
    with pytest.raises(TypeError, match="returned an array of <U1"):
        FunctionKernel(lambda X, Y: np.full((60, 60), "a")).between(X)
    assert FunctionKernel(lambda X, Y: np.ones((60, 60), int)).between(X).dtype == np.float64


def test_registered_functions(X):
    register_kernel("minimum", minimum)
    kernel = as_kernel("minimum")
    assert kernel == FunctionKernel("minimum")
    assert np.array_equal(kernel.between(X), minimum(X, X))
    register_kernel("minimum", lambda X, Y: 2.0 * minimum(X, Y))
    assert np.array_equal(kernel.between(X), 2.0 * minimum(X, X))
    assert pickle.loads(pickle.dumps(kernel)) == kernel


@pytest.mark.parametrize(
    ("name", "function", "error", "message"),
    [
        ("gaussian", minimum, ValueError, "cannot be registered as 'gaussian'"),
        ("", minimum, ValueError, "cannot be registered as ''"),
        (3, minimum, TypeError, "must be a string, got 3"),
        ("mine", "minimum", TypeError, "needs a function"),
    ],
)
def test_bad_registrations(name, function, error, message):
    with pytest.raises(error, match=message):
        register_kernel(name, function)


# --- names


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("gaussian", GaussianKernel()),
        ("rbf", GaussianKernel()),
        ("laplacian", LaplacianKernel()),
        ("polynomial", PolynomialKernel()),
        ("poly", PolynomialKernel()),
        ("linear", LinearKernel()),
        ("chi2", ChiSquaredKernel()),
        (minimum, FunctionKernel(minimum)),
        (GaussianKernel(3.0), GaussianKernel(3.0)),
    ],
)
def test_names(name, kernel):
    assert as_kernel(name) == kernel


class Constant:
    """A kernel of the user's own."""

    metric = None

    def of_metric(self, D):
        raise TypeError

    def between(self, X, Y):
        return np.ones((len(X), len(Y)))

    def diagonal(self, X):
        return np.ones(len(X))

    def resolve(self, X):
        return self


def test_kernels_of_others():
    kernel = Constant()
    assert as_kernel(kernel) is kernel
    assert describe(kernel) == "Constant"


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ("cosine", ValueError, r"kernel 'cosine' is not known; choose one of \['chi2', 'gauss"),
        (3, TypeError, "3 is not a kernel"),
        (None, TypeError, "None is not a kernel"),
        (GaussianKernel, TypeError, r"is not a kernel; write GaussianKernel\(\)"),
    ],
)
def test_unknown(bad, error, message):
    with pytest.raises(error, match=message):
        as_kernel(bad)


def test_descriptions():
    assert describe(FunctionKernel("mine")) == "mine"
    assert describe(FunctionKernel(minimum)) == "minimum"
    assert describe(FunctionKernel(lambda X, Y: X @ Y.T)) == "function"
    assert describe(ChiSquaredKernel(1e-5)) == "chi2(gamma=1e-05)"


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_near_rows_far_from_the_origin_have_exact_distances(form):
    """Differences of squares would leave rounding of about 1 here, beside a width of 0.1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) * [1e8, 1.0, 1e-3]
    X[20:] = X[:20]
    X[30:] += [0.0, 0.1, 0.0]
    kernel = GaussianKernel(tau=0.1)
    wanted = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / 0.2)
    whole = kernel.between(form(X), form(X.copy()))
    np.testing.assert_allclose(whole, wanted, rtol=1e-9, atol=1e-12)
    single = [kernel.between(form(X[i : i + 1]), form(X)) for i in range(40)]
    np.testing.assert_allclose(np.concatenate(single), whole, rtol=1e-12, atol=1e-14)


def test_many_near_rows_have_exact_distances():
    X = np.repeat([[1e8, 1.0], [0.0, 2.0], [-1e8, 3.0]], 20, axis=0)
    X[::2, 1] += 0.25
    found = GaussianKernel(tau=0.5).between(X, X.copy())
    wanted = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
