"""Blocks of scaled kernels, against whole matrices of the single kernels."""

import numpy as np
import pytest

from mixnorm.kernels import FunctionKernel, GaussianKernel, LaplacianKernel, LinearKernel
from mixnorm.kernels.functions.evaluate import Evaluator
from mixnorm.kernels.functions.metrics import Points


def smaller_sum(X, Y):
    return np.minimum.outer(np.abs(X).sum(axis=1), np.abs(Y).sum(axis=1))


KERNELS = [GaussianKernel(1.0), LinearKernel(), FunctionKernel(smaller_sum), LaplacianKernel(2.0)]
GROUPS, SCALES = [0, 1, 0, 0], np.array([1.0, 0.5, 2.0, 3.0])


def made(X, unit=False):
    """Return the kernels, and rows whose second group are the first two columns."""
    names = [str(kernel) for kernel in KERNELS]
    evaluator = Evaluator(KERNELS, names, GROUPS, SCALES, unit, np.dtype(np.float64))
    points = {0: Points(X), 1: Points(X[:, :2])}
    return evaluator, evaluator.side(points, len(X), range(4), np.arange(len(X)))


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


def test_a_training_row_has_no_distance_from_itself(X):
    """Not even by rounding, whichever rows are compared."""
    evaluator, side = made(1e6 + X[:20])
    some = [7, 3, 19]
    for rows, m, block in evaluator.blocks(side.part(np.array(some)), side, [0, 3]):
        assert block[np.arange(3), some[rows]].tolist() == [SCALES[m]] * 3
