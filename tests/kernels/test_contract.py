"""Every public kernel keeps the contract: a new one is tested without touching this file."""

import inspect
import pickle
import re
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from mixnorm import kernels
from mixnorm.kernels import Kernel, TensorKernel, as_kernel


def minimum(X, Y):
    return np.minimum(X[:, None], Y[None]).sum(axis=2)


def squares(X):
    return X**2


# Those that cannot do without parameters, or deserve a second look with others.
GIVEN = [
    kernels.GaussianKernel(0.5, relative=True),
    kernels.LaplacianKernel(3.0, relative=True),
    kernels.ChiSquaredKernel(0.2),
    kernels.PolynomialKernel(4, 0.3, 2.0),
    kernels.PolynomialKernel(1, 0.3, 0.0),
    kernels.FunctionKernel(minimum),
    kernels.PolynomialTensorKernel(3),
    kernels.PolynomialTensorKernel(2, constant=0.0),
    kernels.PowerSeriesTensorKernel([0.5, 0.0, 1.0, 0.2]),
    kernels.ExponentialTensorKernel(0.2, normalized=False),
    kernels.FeatureTensorKernel(squares),
]
PUBLIC = [getattr(kernels, name) for name in kernels.__all__]
CLASSES = [kernel for kernel in PUBLIC if isinstance(kernel, type)]
OF_TWO_ROWS = [kind for kind in CLASSES if hasattr(kind, "of_metric") and kind is not Kernel]
TENSOR = [kind for kind in CLASSES if issubclass(kind, TensorKernel) and kind is not TensorKernel]


def without_address(kernel):
    """Return a name that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(kernel))


def has_defaults(kind):
    each = inspect.signature(kind).parameters.values()
    return all(parameter.default is not parameter.empty for parameter in each)


def made(kinds):
    """The kernels of these classes with their defaults, where they have them, and those above."""
    plain = [kind() for kind in kinds if has_defaults(kind)]
    return plain + [kernel for kernel in GIVEN if type(kernel) in kinds]


each_kernel = pytest.mark.parametrize("kernel", made(OF_TWO_ROWS), ids=without_address)
each_tensor_kernel = pytest.mark.parametrize("kernel", made(TENSOR), ids=without_address)


def test_kernels_are_found():
    assert kernels.GaussianKernel in OF_TWO_ROWS
    assert kernels.ExponentialTensorKernel in TENSOR
    assert {*map(type, made(OF_TWO_ROWS + TENSOR))} == {*OF_TWO_ROWS, *TENSOR}


@pytest.mark.parametrize("kernel", made(OF_TWO_ROWS + TENSOR), ids=without_address)
def test_clone_and_pickle(kernel):
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        assert type(copy) is type(kernel)
        assert copy == kernel
        assert copy is not kernel
        assert copy.get_params() == kernel.get_params()


# --- kernels of two rows


@each_kernel
def test_matrices(kernel, X, new):
    X, new = np.abs(X), np.abs(new)
    kept, params = X.copy(), kernel.get_params()
    assert as_kernel(kernel) is kernel
    settled = kernel.resolve(X)
    assert isinstance(settled, Kernel)
    assert kernel.get_params() == params
    whole = settled.between(X)
    assert whole.dtype == np.float64
    assert np.array_equal(whole, whole.T)
    np.testing.assert_allclose(settled.between(X, X), whole, rtol=1e-12)
    np.testing.assert_allclose(settled.diagonal(X), np.diag(whole), rtol=1e-12)
    others = settled.between(new, X)
    np.testing.assert_allclose(settled.between(X, new), others.T, rtol=1e-12)
    np.testing.assert_allclose(settled.between(new[2:5], X), others[2:5], rtol=1e-12)
    assert np.array_equal(X, kept)


@each_kernel
@given(n=st.integers(1, 8), d=st.integers(1, 4), seed=st.integers(0, 99))
def test_positive_semi_definite(kernel, n, d, seed):
    X = np.abs(np.random.default_rng(seed).standard_normal((n, d)))
    K = kernel.resolve(X).between(X)
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * np.trace(K)


@pytest.mark.parametrize(
    "kernel", [kernel for kernel in made(OF_TWO_ROWS) if kernel.metric], ids=without_address
)
def test_sparse_rows(kernel, counts):
    dense = counts.toarray()
    settled = kernel.resolve(counts)
    assert settled.get_params() == pytest.approx(kernel.resolve(dense).get_params())
    expected = settled.between(dense[:9], dense)
    for rows in (counts[:9], dense[:9]):
        np.testing.assert_allclose(settled.between(rows, counts), expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(settled.diagonal(counts), settled.diagonal(dense), rtol=1e-12)


@each_kernel
def test_values_are_functions_of_the_metric(kernel, X):
    settled = kernel.resolve(np.abs(X))
    if settled.metric is None:
        with pytest.raises((NotImplementedError, TypeError)):
            settled.of_metric(np.ones((2, 2)))
        return
    D = np.linspace(0.0, 3.0, 12).reshape(3, 4)
    found = settled.of_metric(D.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, settled.of_metric(D.copy()), rtol=1e-5)


# --- kernels of an even number of rows


@each_tensor_kernel
@pytest.mark.parametrize("q", [2, 4])
def test_rows_in_any_order(kernel, q):
    rows = np.random.default_rng(0).standard_normal((q, 4, 3))
    kernel = kernel.resolve(rows[0])
    expected = kernel.between(*rows)
    for order in permutations(range(q)):
        found = kernel.between(*rows[list(order)])
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@each_tensor_kernel
@pytest.mark.parametrize("q", [2, 4])
def test_products_of_features(kernel, q):
    X = np.random.default_rng(0).standard_normal((4, 3))
    kernel = kernel.resolve(X)
    own = kernel.between(*[X] * q)
    assert np.all(own > 0.0)
    if kernel.has_products:
        np.testing.assert_allclose(kernel.diagonal(kernel.columns(X), q), own, rtol=1e-10)
    if kernel.finite:
        F = kernel.features(X, q)
        assert F.shape == (kernel.count_on(kernel.columns(X)), 4)
        np.testing.assert_allclose(np.sum(F**q, axis=0), own, rtol=1e-10)
    else:
        assert np.isinf(kernel.n_features(3))
        with pytest.raises(ValueError, match="infinitely many features"):
            kernel.features(X, q)
