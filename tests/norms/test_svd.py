"""Leading singular triplets, against full decompositions."""

import math
from itertools import product

import numpy as np
import pytest

from mixnorm._array import to_numpy
from mixnorm.norms import svd as _svd
from mixnorm.norms.svd import (
    Triplets,
    find_ball_triplets,
    find_largest_value,
    find_leading_triplet,
    find_triplets_above,
)


def matrix(kind, shape, seed=0):
    rng = np.random.default_rng(seed)
    n, k = shape
    if kind == "noise":
        return rng.standard_normal(shape)
    if kind == "low rank":
        return rng.standard_normal((n, 5)) @ rng.standard_normal((5, k))
    if kind == "low rank and noise":
        low = rng.standard_normal((n, 5)) @ rng.standard_normal((5, k))
        return 10.0 * low + rng.standard_normal(shape)
    side = min(shape)
    values = {
        "decay": np.exp(-np.arange(side) / 10.0),
        "steep": 10.0 ** -np.minimum(np.arange(side), 300.0),
        "twins": np.repeat(np.linspace(1.0, 0.1, side), 2)[:side],
        "equal": np.ones(side),
    }[kind]
    left = np.linalg.qr(rng.standard_normal((n, side)))[0]
    right = np.linalg.qr(rng.standard_normal((k, side)))[0]
    return (left * values) @ right.T


KINDS = ["noise", "low rank", "low rank and noise", "decay", "steep", "twins", "equal"]
SHAPES = [(30, 7), (7, 30), (1, 5), (5, 1), (200, 150), (140, 300), (180, 180)]


def assert_orthonormal(columns, atol=1e-9):
    np.testing.assert_allclose(columns.T @ columns, np.eye(columns.shape[1]), atol=atol)


@pytest.mark.parametrize("share", [1e-4, 0.05, 0.3, 0.9, 1.1])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_above(kind, shape, share):
    A = matrix(kind, shape)
    left, values, right = np.linalg.svd(A, full_matrices=False)
    level = share * values[0]
    found = find_triplets_above(A, level)
    assert np.all(found.values > level)
    assert np.all(np.diff(found.values) <= 1e-9 * values[0])
    assert_orthonormal(found.left)
    assert_orthonormal(found.right)
    wanted = (left * np.maximum(values - level, 0.0)) @ right
    got = (found.left * (found.values - level)) @ found.right.T
    error = np.linalg.norm(got - wanted)
    assert error <= 1e-10 * np.linalg.norm(wanted) + 1e-13 * values[0]


def test_large_matrices_are_not_decomposed(monkeypatch):
    A = matrix("low rank and noise", (400, 300))
    wanted = find_triplets_above(A, 300.0)
    monkeypatch.setattr(_svd, "_find_dense", None)
    widths = []
    svd = _svd.svd
    monkeypatch.setattr(_svd, "svd", lambda A: widths.append(min(A.shape)) or svd(A))
    found = find_triplets_above(A, 300.0)
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-12)
    assert max(widths) <= 30


def test_start_saves_work(monkeypatch):
    A = matrix("decay", (300, 200))
    count = []
    ritz = _svd._ritz_step
    monkeypatch.setattr(
        _svd, "_ritz_step", lambda *rest, **more: count.append(1) or ritz(*rest, **more)
    )
    first = find_triplets_above(A, 0.3)
    cold = len(count)
    count.clear()
    again = find_triplets_above(1.001 * A, 0.3, first.right)
    assert len(count) < cold
    np.testing.assert_allclose(again.values[: len(first.values)], 1.001 * first.values, rtol=1e-9)


@pytest.mark.parametrize("columns", [1, 30, 100])
def test_any_start_will_do(columns):
    A = matrix("low rank and noise", (300, 200))
    wanted = find_triplets_above(A, 100.0)
    for start in (np.zeros((200, columns)), np.ones((200, columns)), np.eye(200)[:, :columns]):
        found = find_triplets_above(A, 100.0, start)
        np.testing.assert_allclose(found.values, wanted.values, rtol=1e-10)


LARGE = [("low rank", (1100, 1050)), ("equal", (1010, 1010))]


@pytest.mark.parametrize(("kind", "shape"), [*product(KINDS, SHAPES), *LARGE])
def test_largest(kind, shape):
    A = matrix(kind, shape)
    wanted = np.linalg.norm(A, 2)
    assert wanted * (1.0 - 1e-12) <= find_largest_value(A) <= wanted * (1.0 + 1e-9)
    pair = find_leading_triplet(A)
    assert (pair.left.T @ A @ pair.right)[0, 0] == pytest.approx(wanted, rel=1e-10)
    assert_orthonormal(pair.left, 1e-12)
    assert_orthonormal(pair.right, 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1500, 1200), (1100, 2000)])
@pytest.mark.parametrize("kind", ["noise", "decay", "twins"])
def test_largest_of_large(kind, shape):
    A = matrix(kind, shape)
    wanted = np.linalg.norm(A, 2)
    assert wanted * (1.0 - 1e-12) <= find_largest_value(A) <= wanted * (1.0 + 1e-9)


@pytest.mark.parametrize("share", [1e-3, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("shape", [(30, 7), (200, 150), (140, 300)])
@pytest.mark.parametrize("kind", KINDS)
def test_in_ball(kind, shape, share):
    A = matrix(kind, shape)
    values = np.linalg.svd(A, compute_uv=False)
    radius = share * values.sum()
    found = find_ball_triplets(A, radius)
    # What a projection leaves of the sorted values.
    counts = np.arange(1, len(values) + 1)
    cut = np.max((np.cumsum(values) - radius) / counts)
    kept = np.count_nonzero(values > cut * (1.0 + 1e-9))
    np.testing.assert_allclose(found.values[:kept], values[:kept], rtol=1e-9, atol=1e-12)
    assert_orthonormal(found.left, 1e-12)
    assert_orthonormal(found.right, 1e-12)


def test_columns_that_add_nothing():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((50, 6)))[0]
    columns = np.concatenate(
        [
            basis[:, :2] @ rng.standard_normal((2, 2)),
            np.zeros((50, 1)),
            rng.standard_normal((50, 2)),
        ],
        axis=1,
    )
    columns = np.concatenate([columns, columns[:, 3:] + basis[:, :1]], axis=1)
    found = _svd._orthogonalize(columns, basis)
    kept = found[:, np.any(found, axis=0)]
    assert kept.shape[1] == 2
    assert_orthonormal(np.concatenate([basis, kept], axis=1), 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(30, 7), (7, 30), (160, 140)])
def test_namespaces(xp, shape, dtype):
    A = matrix("low rank and noise", shape).astype(dtype)
    there = xp.asarray(A)
    rtol = 1e-9 if dtype == "float64" else 2e-5
    level = 0.3 * find_largest_value(A)
    assert find_largest_value(there) == pytest.approx(find_largest_value(A), rel=rtol)
    for function in (
        lambda A: find_triplets_above(A, level),
        lambda A: find_ball_triplets(A, level),
        find_leading_triplet,
    ):
        got, wanted = function(there), function(A)
        assert isinstance(got, Triplets)
        found = to_numpy((got.left * got.values) @ got.right.T)
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_allclose(
            found, (wanted.left * wanted.values) @ wanted.right.T, atol=20 * rtol * level
        )


def test_single_precision_of_large():
    A = matrix("low rank and noise", (400, 300))
    level = 0.3 * find_largest_value(A)
    single, double = find_triplets_above(A.astype(np.float32), level), find_triplets_above(A, level)
    assert single.values.dtype == np.float32
    np.testing.assert_allclose(single.values, double.values, rtol=1e-5)
    assert math.isclose(
        find_largest_value(A.astype(np.float32)), find_largest_value(A), rel_tol=1e-5
    )
