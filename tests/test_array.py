"""The helpers that know which array library is in use."""

import array_api_compat.numpy
import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm._array import (
    device_of,
    epsilon,
    exponential,
    is_numpy,
    is_sparse,
    namespace,
    to_dense,
    to_numpy,
)


@pytest.fixture
def mapped(tmp_path):
    return np.memmap(tmp_path / "x.bin", dtype="float32", mode="w+", shape=(3, 2))


def test_numpy(mapped):
    assert namespace(np.zeros(2)) is array_api_compat.numpy
    assert namespace(mapped) is array_api_compat.numpy
    assert is_numpy(mapped)
    assert is_numpy(np.zeros(2))
    assert not is_numpy([0.0])
    array = np.zeros(2)
    assert to_numpy(array) is array
    assert to_numpy(mapped) is mapped
    assert device_of(array) == "cpu"


def test_others(xp):
    array = xp.asarray([1.0, 2.0], dtype=xp.float32)
    assert namespace(array).__name__.split(".")[-1] in xp.__name__
    assert not is_numpy(array)
    back = to_numpy(array)
    assert type(back) is np.ndarray
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, [1.0, 2.0])
    assert device_of(array) is not None
    assert namespace(array).zeros(2, device=device_of(array)).shape == (2,)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_epsilon(xp, dtype):
    wanted = float(np.finfo(dtype).eps)
    assert epsilon(np.zeros(1, dtype)) == wanted
    found = epsilon(xp.zeros(1, dtype=getattr(xp, dtype)))
    assert found == wanted
    assert type(found) is float


def test_exponential_reuses_numpy_memory(xp):
    values = np.linspace(-3, 3, 7)
    wanted = np.exp(values)
    assert to_numpy(exponential(xp.asarray(values))) == pytest.approx(wanted)
    found = exponential(values)
    assert found is values
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_matrices_are_told_apart(kind):
    X = np.array([[0.0, 2.0], [1.0, 0.0]])
    assert is_sparse(kind(X))
    assert not is_sparse(X)
    assert not is_sparse(X.tolist())
    assert np.array_equal(to_dense(kind(X)), X)
    assert to_dense(X) is X
