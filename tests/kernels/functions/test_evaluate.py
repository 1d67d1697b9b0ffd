"""Blocks of scaled kernels, against whole matrices of the single kernels."""

import numpy as np
import pytest
from scipy import sparse

from mixnorm.kernels import (
    ChiSquaredKernel,
    FunctionKernel,
    GaussianKernel,
    LaplacianKernel,
    LinearKernel,
)
from mixnorm.kernels.functions.evaluate import Evaluator
from mixnorm.kernels.functions.metrics import Points


def smaller_sum(X, Y):
    return np.minimum.outer(np.abs(X).sum(axis=1), np.abs(Y).sum(axis=1))


KERNELS = [GaussianKernel(1.0), LinearKernel(), FunctionKernel(smaller_sum), LaplacianKernel(2.0)]
GROUPS, SCALES = [0, 1, 0, 0], np.array([1.0, 0.5, 2.0, 3.0])


def made(X, unit=False, scales=SCALES, dtype=np.float64):
    """Return the kernels, and rows whose second group are the first two columns."""
    names = [str(kernel) for kernel in KERNELS]
    evaluator = Evaluator(KERNELS, names, GROUPS, scales, unit, np.dtype(dtype))
    points = {0: Points(X), 1: Points(X[:, :2])}
    return evaluator, evaluator.side(points, len(X), range(4))


def matrices(X, unit=False):
    found = []
    for kernel, group, scale in zip(KERNELS, GROUPS, SCALES, strict=True):
        K = kernel.between(X[:, :2] if group else X)
        if unit:
            roots = np.sqrt(np.where(np.diagonal(K) > 0.0, np.diagonal(K), np.inf))
            K = K / np.outer(roots, roots)
        found.append(scale * K)
    return np.stack(found)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("memory", [1, 10**4, 10**9])
def test_blocks_make_up_the_matrices(X, unit, memory):
    X = np.concatenate([X[:20], np.zeros((1, 5))])
    (evaluator, side), wanted = made(X, unit), matrices(X, unit)
    found = np.full((4, 21, 21), np.nan)
    for rows, m, block in evaluator.blocks(side, side, range(4), memory):
        found[m, rows] = block
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    half = np.zeros((4, 21, 21))
    for rows, m, block in evaluator.blocks(side, side, range(4), memory, upper=True):
        half[m, rows, rows.start :] = block
    np.testing.assert_allclose(np.triu(half), np.triu(wanted), atol=1e-12)
    diagonals = evaluator.diagonals(side, [3, 1])
    np.testing.assert_allclose(diagonals, np.diagonal(wanted, axis1=1, axis2=2)[[3, 1]])


@pytest.mark.parametrize("unit", [1e-25, 1.0, 1e25])
def test_single_precision_in_unusual_units(X, unit):
    """A kernel may leave the range of float32 before it is scaled, and not after that."""
    X = np.concatenate([X[:20], np.zeros((1, 5))])
    scales = SCALES / np.array([1.0, unit**2, unit, 1.0])
    evaluator, side = made(unit * X, False, scales, np.float32)
    linear = 0.5 * X[:, :2] @ X[:, :2].T
    for rows, _, block in evaluator.blocks(side, side, [1]):
        assert block.dtype == np.float32
        np.testing.assert_allclose(block, linear[rows], rtol=1e-6, atol=1e-6)


def test_functions_must_have_finite_values(X):
    evaluator, side = made(X)
    side.points[0].X[3, 1] = np.nan
    with pytest.raises(ValueError, match="has values that are not finite in float64"):
        list(evaluator.blocks(side, side, [2]))


def test_halves_of_functions_are_symmetric(X):
    """Whatever rounding a function of two rows has."""
    rng = np.random.default_rng(0)
    noisy = FunctionKernel(lambda X, Y: X @ Y.T + 1e-9 * rng.random((len(X), len(Y))))
    one = Evaluator([noisy], ["noisy"], [0], np.ones(1), False, np.dtype(np.float64))
    side = one.side({0: Points(X)}, len(X), [0])
    ((rows, _, block),) = one.blocks(side, side, [0], upper=True)
    assert rows == slice(0, len(X))
    assert np.array_equal(block, block.T)
    np.testing.assert_allclose(block, X @ X.T, atol=1e-8)


SAME = [GaussianKernel(1.0), LaplacianKernel(2.0), ChiSquaredKernel(0.1)]


@pytest.mark.parametrize("kernel", SAME)
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_a_row_has_no_distance_from_itself(X, kernel, dense, size):
    """Not even by rounding, whichever rows it is compared with."""
    X = size * np.abs(np.concatenate([X[:20], np.zeros((1, 5))]))
    X += size if dense else 0.0
    points = Points(X, X.mean(axis=0)) if dense else Points(sparse.csr_array(X))
    one = Evaluator([kernel], ["one"], [0], np.ones(1), False, np.dtype(np.float64))
    side, some = one.side({0: points}, len(X), [0]), np.array([7, 3, 20])
    for rows, _, block in one.blocks(side.part(some), side, [0]):
        assert block[np.arange(3), some[rows]].tolist() == [1.0] * 3
