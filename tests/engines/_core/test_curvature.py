"""The factored curvature model against dense matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm._array import to_numpy
from mixnorm.engines._core import curvature as _curvature
from mixnorm.engines._core.curvature import CurvatureFactor
from mixnorm.engines.greedy import select
from mixnorm.losses import MarginSoftmax, Squared
from mixnorm.pools import Columns


def draw(size=5, n_samples=60, outputs=3, seed=0):
    """Rows (the first constant, as an intercept), curvatures and ridges."""
    rng = np.random.default_rng(seed)
    design = rng.uniform(-1.0, 1.0, (size, n_samples))
    design[:1] = 1.0
    curvature = rng.uniform(0.01, 0.25, (n_samples, outputs)) / n_samples
    ridge = np.full(size, 1e-3)
    ridge[:1] = 0.0
    return design, curvature, ridge


def dense(design, curvature, ridge):
    """The matrices the factors stand for, one per output."""
    return [design * v @ design.T + np.diag(ridge) for v in curvature.T]


def solve(matrices, gradient):
    """One matrix per output, or one for all."""
    k = gradient.shape[1]
    matrices = matrices * k if len(matrices) == 1 else matrices
    return np.stack([np.linalg.solve(matrices[c], gradient[:, c]) for c in range(k)], axis=1)


@given(
    size=st.integers(1, 7),
    outputs=st.integers(1, 4),
    n_samples=st.integers(20, 50),
    seed=st.integers(0, 100),
)
def test_inverse(size, outputs, n_samples, seed):
    design, curvature, ridge = draw(size, n_samples, outputs, seed)
    gradient = np.random.default_rng(seed).standard_normal((size, outputs))
    got = CurvatureFactor(design, curvature, ridge).solve(gradient)
    np.testing.assert_allclose(got, solve(dense(design, curvature, ridge), gradient), rtol=1e-8)


def test_one_factor_for_all_outputs():
    design, curvature, ridge = draw(outputs=1)
    gradient = np.random.default_rng(1).standard_normal((5, 4))
    got = CurvatureFactor(design, curvature, ridge).solve(gradient)
    np.testing.assert_allclose(got, solve(dense(design, curvature, ridge), gradient), rtol=1e-8)


def test_blocks_of_samples_change_nothing(monkeypatch):
    design, curvature, ridge = draw(n_samples=1000)
    gradient = np.random.default_rng(1).standard_normal((5, 3))
    whole = CurvatureFactor(design, curvature, ridge).solve(gradient)
    monkeypatch.setattr(_curvature, "_ENTRIES_PER_WEIGHTED_BLOCK", 1)  # 128 samples, the least
    parts = CurvatureFactor(design, curvature, ridge).solve(gradient)
    np.testing.assert_allclose(parts, whole, rtol=1e-11)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("widths", [(1, 1, 1), (3,), (2, 1)])
@pytest.mark.parametrize("begin", [0, 1, 4])
def test_extending_equals_rebuilding(begin, widths, outputs):
    size = begin + sum(widths)
    design, curvature, ridge = draw(size, outputs=outputs)
    ridge[begin:] = 1e-3  # the rows that come have a ridge, the first of all only if it comes
    factor = CurvatureFactor(design[:begin], curvature, ridge[:begin])
    for width in widths:
        begin += width
        factor.extend(design[:begin], 1e-3)
    gradient = np.random.default_rng(2).standard_normal((size, 3))
    wanted = CurvatureFactor(design, curvature, ridge).solve(gradient)
    np.testing.assert_allclose(factor.solve(gradient), wanted, rtol=1e-8)


def schur_gain(matrix, size, gradient):
    """The dense formula: half g^T S^{-1} g, S being what the first rows leave to the others."""
    inner, cross, corner = matrix[:size, :size], matrix[:size, size:], matrix[size:, size:]
    left = corner - cross.T @ np.linalg.solve(inner, cross) if size else corner
    return 0.5 * gradient @ np.linalg.solve(left, gradient)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("widths", [(1, 1, 1, 1), (1,), (2, 1, 3)])
@pytest.mark.parametrize("size", [0, 1, 5])
def test_gains(size, widths, outputs):
    design, curvature, ridge = draw(size, outputs=outputs)
    rng = np.random.default_rng(3)
    blocks = [rng.uniform(-1.0, 1.0, (width, 60)) for width in widths]
    gradients = [rng.standard_normal((width, 3)) for width in widths]
    factor = CurvatureFactor(design, curvature, ridge)
    got = factor.gains(design, blocks, gradients, 1e-3)
    assert got.shape == (3, len(widths))
    for gain, block, gradient in zip(got.T, blocks, gradients, strict=True):
        ridges = np.concatenate([ridge, np.full(len(block), 1e-3)])
        matrices = dense(np.concatenate([design, block]), curvature, ridges)
        matrices = matrices * 3 if outputs == 1 else matrices
        wanted = [schur_gain(matrices[c], size, gradient[:, c]) for c in range(3)]
        np.testing.assert_allclose(gain, wanted, rtol=1e-8)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("widths", [(1, 1), (2, 1)])
def test_gains_are_beyond_those_of_the_chosen_rows(widths, outputs):
    design, curvature, ridge = draw(4, outputs=outputs)
    rng = np.random.default_rng(3)
    left = rng.standard_normal((4, 3))
    blocks = [rng.uniform(-1.0, 1.0, (width, 60)) for width in widths]
    gradients = [rng.standard_normal((width, 3)) for width in widths]
    factor = CurvatureFactor(design, curvature, ridge)
    got = factor.gains(design, blocks, gradients, 1e-3, left).sum(axis=0)
    for gain, block, gradient in zip(got, blocks, gradients, strict=True):
        ridges = np.concatenate([ridge, np.full(len(block), 1e-3)])
        matrices = dense(np.concatenate([design, block]), curvature, ridges)
        matrices = matrices * 3 if outputs == 1 else matrices
        wanted = 0.0
        for c in range(3):  # a Newton step on all rows, less one on the chosen ones
            both = np.concatenate([left[:, c], gradient[:, c]])
            wanted += 0.5 * both @ np.linalg.solve(matrices[c], both)
            wanted -= 0.5 * left[:, c] @ np.linalg.solve(matrices[c][:4, :4], left[:, c])
        assert gain == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_ridge_for_every_output(outputs):
    """Built, extended, asked for gains and removal costs: one matrix per output."""
    design, curvature, _ = draw(6, outputs=outputs)
    rng = np.random.default_rng(11)
    ridge, gradient = rng.uniform(0.001, 0.1, (3, 6)), rng.standard_normal((6, 3))
    shared = np.broadcast_to(curvature, (60, 3))
    matrices = [dense(design, shared[:, [c]], ridge[c])[0] for c in range(3)]
    built = CurvatureFactor(design, curvature, ridge)
    np.testing.assert_allclose(built.solve(gradient), solve(matrices, gradient), rtol=1e-8)
    grown = CurvatureFactor(design[:4], curvature, ridge[:, :4])
    grown.extend(design, 0.02)
    ridge[:, 4:] = 0.02
    matrices = [dense(design, shared[:, [c]], ridge[c])[0] for c in range(3)]
    np.testing.assert_allclose(grown.solve(gradient), solve(matrices, gradient), rtol=1e-8)
    small = CurvatureFactor(design[:5], curvature, ridge[:, :5])
    (gain,) = small.gains(design[:5], [design[5:]], [gradient[5:]], 0.02).sum(axis=0)
    wanted = sum(schur_gain(matrices[c], 5, gradient[5:, c]) for c in range(3))
    assert gain == pytest.approx(wanted, rel=1e-8)
    values, cost = rng.standard_normal((6, 3)), 0.0
    for c, matrix in enumerate(matrices):
        inner = np.linalg.inv(matrix)[2:4, 2:4]
        cost += 0.5 * values[2:4, c] @ np.linalg.solve(inner, values[2:4, c])
    assert grown.removal_cost(values, slice(2, 4)) == pytest.approx(cost, rel=1e-8)


@pytest.mark.parametrize("outputs", [1, 3])
@given(seed=st.integers(0, 100))
def test_restricted_to_free_weights(outputs, seed):
    design, curvature, ridge = draw(outputs=outputs, seed=seed)
    rng = np.random.default_rng(seed)
    free, gradient = rng.random((3, 5)) < 0.6, rng.standard_normal((5, 3))
    factor = CurvatureFactor(design[:3], curvature, ridge[:3])
    factor.extend(design, 1e-3)
    before = factor.solve(gradient)
    got = factor.restrict(free).solve(gradient)
    matrices = dense(design, curvature, ridge)
    matrices = matrices * 3 if outputs == 1 else matrices
    for c, used in enumerate(free):
        assert not got[~used, c].any()
        wanted = np.linalg.solve(matrices[c][np.ix_(used, used)], gradient[used, c])
        np.testing.assert_allclose(got[used, c], wanted, rtol=1e-7)
    np.testing.assert_array_equal(factor.solve(gradient), before)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("block", [slice(1, 2), slice(2, 4), slice(4, 5)])
def test_removal_cost(block, outputs):
    design, curvature, ridge = draw(outputs=outputs)
    weights = np.random.default_rng(4).standard_normal((5, 3))
    cost = CurvatureFactor(design, curvature, ridge).removal_cost(weights, block)
    matrices = dense(design, curvature, ridge)
    matrices = matrices * 3 if outputs == 1 else matrices
    kept = np.setdiff1d(np.arange(5), np.arange(5)[block])
    wanted = 0.0
    for c, matrix in enumerate(matrices):
        # Minimise half (u - w)^T A (u - w) over the u that vanish on the block.
        move = np.zeros(5)
        move[block] = -weights[block, c]
        move[kept] = np.linalg.solve(matrix[np.ix_(kept, kept)], -matrix[kept] @ move)
        wanted += 0.5 * move @ matrix @ move
    assert cost == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ridge", [0.0, 1e-6])
def test_duplicates_give_finite_steps(dtype, ridge):
    design, curvature, _ = draw()
    design[3], design[4] = design[2], -design[1]
    design, curvature = design.astype(dtype), curvature.astype(dtype)
    ridges = np.full(5, ridge, dtype=dtype)
    gradient = design @ (curvature * np.random.default_rng(5).standard_normal((60, 3))).astype(
        dtype
    )
    built = CurvatureFactor(design, curvature, ridges)
    grown = CurvatureFactor(design[:2], curvature, ridges[:2])
    grown.extend(design[:4], ridge)
    grown.extend(design, ridge)
    matrices = dense(design.astype(float), curvature.astype(float), ridges.astype(float))
    for factor in (built, grown):
        step = factor.solve(gradient)
        assert step.dtype == dtype
        assert np.all(np.isfinite(step))
        # A step along a gradient that the columns can explain still solves the equations.
        solved = np.stack([m @ step[:, c] for c, m in enumerate(matrices)], axis=1)
        tolerance = (1e-6 if dtype == "float64" else 2e-2) * np.abs(gradient).max()
        np.testing.assert_allclose(solved, gradient, atol=tolerance)
        again = factor.gains(
            design, [design[2:3], design[1:3]], [gradient[2:3], gradient[1:3]], 0.0
        )
        assert np.all(np.isfinite(again))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_curvature_at_all_gives_finite_factors(dtype):
    design = np.ones((3, 10), dtype=dtype)
    factor = CurvatureFactor(design, np.zeros((10, 2), dtype), np.zeros(3, dtype))
    assert np.all(np.isfinite(factor._inverse))


def test_a_share_of_many_samples_is_close():
    n_samples = 20_000
    assert n_samples >= 2 * _curvature._SAMPLES_PER_MODEL
    design, curvature, ridge = draw(n_samples=n_samples)
    gradient = np.random.default_rng(6).standard_normal((5, 3))
    wanted = solve(dense(design, curvature, ridge), gradient)
    sampled = CurvatureFactor(design, curvature, ridge)
    assert len(sampled._samples) == _curvature._SAMPLES_PER_MODEL
    grown = CurvatureFactor(design[:2], curvature, ridge[:2])
    grown.extend(design, 1e-3)
    for factor in (sampled, grown):
        # Ten thousand samples tell an average to about one per cent.
        error = np.linalg.norm(factor.solve(gradient) - wanted) / np.linalg.norm(wanted)
        assert 0.0 < error < 0.05
    new = np.random.default_rng(7).uniform(-1.0, 1.0, (2, n_samples))
    slopes = [gradient[:1], gradient[1:2]]
    got = sampled.gains(design, [new[:1], new[1:]], slopes, 1e-3).sum(axis=0)
    for gain, row, slope in zip(got, new, slopes, strict=True):
        matrices = dense(np.vstack([design, row]), curvature, np.append(ridge, 1e-3))
        wanted = sum(schur_gain(matrices[c], 5, slope[:, c]) for c in range(3))
        assert gain == pytest.approx(wanted, rel=0.05)


def test_rows_that_the_share_of_samples_does_not_show():
    """Their curvature is counted on all samples, or their steps would have no bound."""
    design, curvature, ridge = draw(n_samples=20_000)
    design[3] = 0.0
    unused = np.setdiff1d(np.arange(20_000), CurvatureFactor(design, curvature, ridge)._samples)
    design[3, unused[:6]] = 1.0
    gradient = np.random.default_rng(9).standard_normal((5, 3))
    wanted = solve(dense(design, curvature, ridge), gradient)
    built = CurvatureFactor(design, curvature, ridge)
    grown = CurvatureFactor(design[:3], curvature, ridge[:3])
    grown.extend(design, 1e-3)
    for factor in (built, grown):
        np.testing.assert_allclose(factor.solve(gradient)[3], wanted[3], rtol=0.05)
    narrow = CurvatureFactor(design[:3], curvature, ridge[:3])
    for rows in (slice(3, 4), slice(3, 5)):
        got = narrow.gains(design[:3], [design[rows]], [gradient[rows]], 0.0).sum(axis=0)
        stacked = np.concatenate([design[:3], design[rows]])
        ridges = np.append(ridge[:3], np.zeros(rows.stop - rows.start))
        matrices = dense(stacked, curvature, ridges)
        exact = sum(schur_gain(matrices[c], 3, gradient[rows, c]) for c in range(3))
        assert got[0] == pytest.approx(exact, rel=0.05)


def fit(X, y, weight, loss, alpha):
    k = 2 if loss.is_classifier else 1
    pool, target = Columns().prepare(X, weight=weight), loss.encode(y, k, weight)
    options = {"n_atoms": 1, "n_outputs": k, "weight": weight, "alpha": alpha, "tol": 1e-8}
    return select(pool, loss, target, **options).rounds[0]


@pytest.mark.parametrize("alpha", [0.0, 1e-6])
@pytest.mark.parametrize("loss", [MarginSoftmax(), Squared()], ids=repr)
@pytest.mark.parametrize("unseen", ["column", "weights"])
def test_the_order_of_samples_does_not_matter(unseen, loss, alpha):
    """Every second sample is used, and has neither a part in the column nor weight."""
    rng = np.random.default_rng(10)
    X, weight = rng.standard_normal((20_000, 1)), np.ones(20_000)
    if unseen == "column":
        X[:] = 0.0
        X[1:60:2] = 1.0
    else:
        weight[::2] = 0.0
    weight /= weight.sum()
    y = ((X[:, 0] > 0.0) ^ (rng.random(20_000) < 0.1)).astype(int)
    order = rng.permutation(20_000)
    ordered = fit(X, y, weight, loss, alpha)
    mixed = fit(X[order], y[order], weight[order], loss, alpha)
    assert ordered.objective == pytest.approx(mixed.objective, rel=1e-6)
    np.testing.assert_allclose(ordered.weights, mixed.weights, rtol=1e-2)


@pytest.mark.parametrize("outputs", [1, 3])
def test_namespaces_agree(xp, outputs):
    design, curvature, ridge = draw(6, outputs=outputs)
    gradient = np.random.default_rng(8).standard_normal((6, 3))
    here = CurvatureFactor(design[:4], curvature, ridge[:4])
    there = CurvatureFactor(*(xp.asarray(part) for part in (design[:4], curvature, ridge[:4])))
    here.extend(design, 1e-3)
    there.extend(xp.asarray(design), 1e-3)
    close = {"rtol": 1e-9}
    got = to_numpy(there.solve(xp.asarray(gradient)))
    np.testing.assert_allclose(got, here.solve(gradient), **close)
    free = np.random.default_rng(9).random((3, 6)) < 0.5
    got = to_numpy(there.restrict(xp.asarray(free)).solve(xp.asarray(gradient)))
    np.testing.assert_allclose(got, here.restrict(free).solve(gradient), **close)
    block = slice(1, 3)
    cost = there.removal_cost(xp.asarray(gradient), block)
    assert cost == pytest.approx(here.removal_cost(gradient, block), rel=1e-9)
    for rows in ([design[:1] ** 2, design[1:2] ** 2], [design[1:3] ** 2]):
        slopes = [gradient[: len(part)] for part in rows]
        others = [[xp.asarray(part) for part in parts] for parts in (rows, slopes)]
        gains = there.gains(xp.asarray(design), *others, 1e-3)
        np.testing.assert_allclose(to_numpy(gains), here.gains(design, rows, slopes, 1e-3), **close)


@pytest.mark.parametrize("outputs", [1, 3])
def test_determined_weights_are_a_trace(outputs):
    """The trace of A (A + R)^-1 over the penalised rows, added up over the outputs."""
    rng = np.random.default_rng(1)
    design = np.concatenate([np.ones((1, 50)), rng.standard_normal((4, 50))])
    curvature = rng.uniform(0.01, 0.2, (50, outputs)) / 50
    ridge = np.array([0.0, 1e-3, 1e-2, 1e-2, 1.0])
    wanted = 0.0
    for v in curvature.T:
        gram = design * v @ design.T
        wanted += np.diag(gram @ np.linalg.inv(gram + np.diag(ridge)))[1:].sum()
    built = CurvatureFactor(design, curvature, ridge)
    assert built.count_determined(ridge) == pytest.approx(wanted, rel=1e-8)
    other = CurvatureFactor(design[:3], curvature, 5.0 * ridge[:3])
    other.extend(design, 0.3)
    other.set_ridge(ridge)
    assert other.count_determined(ridge) == pytest.approx(wanted, rel=1e-8)
