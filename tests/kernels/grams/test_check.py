"""Checks of kernel matrices, and the compiled loops they use, against plain NumPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.kernels import KernelStack, clip_negative
from mixnorm.kernels.grams.sums_jit import add_block, energy_of_rows, mirror
from mixnorm.kernels.grams.survey_jit import survey


def kernel(n, dtype=np.float64, rank=None, seed=0):
    roots = np.random.default_rng(seed).standard_normal((n, rank or n))
    return (roots @ roots.T).astype(dtype)


def surveyed(K, roots):
    """What ``survey`` returns, by whole arrays."""
    sizes = np.abs(np.triu(K))
    excess = np.triu(np.abs(K) - np.outer(roots, roots))
    nothing = np.nan if not np.all(np.isfinite(K)) else 0.0
    return sizes.max(), np.abs(K - K.T).max(), max(excess.max(), 0.0), nothing


@pytest.mark.parametrize("n", [1, 2, 7, 8, 63, 64, 65, 130, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_survey(n, dtype):
    rng = np.random.default_rng(n)
    K = rng.standard_normal((n, n)).astype(dtype)
    roots = rng.random(n).astype(dtype)
    # Upper tiles are read whole on the diagonal, so that both halves count there.
    found, expected = survey(K, roots, 0, n), surveyed(K, roots)
    assert found[1] == pytest.approx(expected[1], rel=1e-6)
    assert found[0] >= expected[0] * (1 - 1e-6)
    assert found[0] <= np.abs(K).max() * (1 + 1e-6)
    assert found[2] >= expected[2] - 1e-6
    assert found[3] == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (3, 90), (90, 3), (99, 99), (70, 71)])
def test_survey_finds_what_is_not_finite(bad, place):
    K = np.ones((100, 100))
    K[place] = bad
    assert np.isnan(survey(K, np.ones(100), 0, 100)[3])


def test_sums():
    K = kernel(150)
    total = np.ones((150, 150))
    add_block(total, K, 0.5)
    np.testing.assert_allclose(total, 1.0 + 0.5 * K)
    lower = np.tril(K)
    for begin, stop in itertools.pairwise([0, 10, 100, len(lower)]):  # not where tiles begin
        mirror(lower, begin, stop)
    assert np.array_equal(lower, K)
    rows = np.array([0, 3, 149])
    table = np.zeros((150, 2))
    table[rows] = np.random.default_rng(0).standard_normal((3, 2))
    energy = energy_of_rows(K, rows, table[rows] @ table.T)
    assert energy == pytest.approx(np.sum(K * (table @ table.T)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, 128, 300])
def test_kernels_pass(n, dtype):
    sound = [kernel(n, dtype), kernel(n, dtype, rank=1), np.zeros((n, n), dtype), np.eye(n)]
    stack = KernelStack([matrix.astype(dtype) for matrix in sound])
    assert not stack.symmetric
    stack.check()
    assert stack.symmetric
    KernelStack(stack.matrices[0].T).check()
    KernelStack(np.repeat(stack.matrices[0], 2, axis=1)[:, ::2]).check()
    KernelStack(1e-30 * stack.matrices[0]).check()


def test_rounding_passes():
    K = kernel(200, np.float32, rank=3)
    noise = np.random.default_rng(1).standard_normal((200, 200)).astype(np.float32)
    KernelStack(K + 1e-6 * K.max() * noise).check()


def spoiled(change):
    K = np.stack([kernel(200), kernel(200, seed=1)])
    change(K[1])
    return K


def set_entries(*entries):
    def change(K):
        for i, j, value in entries:
            K[i, j] = value

    return change


def shift(K):
    K -= 300.0 * np.eye(200)
    K[np.diag_indices(200)] = np.abs(np.diagonal(K))


BAD = [
    (set_entries((3, 5, np.nan)), r"kernel 1 has nan in row 3, column 5"),
    (set_entries((150, 5, np.inf)), r"kernel 1 has inf in row 150, column 5"),
    (set_entries((3, 5, 7.0), (5, 3, 8.0)), r"kernel 1 is not symmetric.*differ by 1,"),
    (set_entries((9, 9, -4.0)), r"kernel 1 is not positive.*entry -4 on its diagonal in row 9"),
    (set_entries((3, 190, 400.0), (190, 3, 400.0)), "kernel 1 is not pos.*an entry larger by "),
]


@pytest.mark.parametrize(("change", "message"), BAD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_that_are_no_kernels(change, message, dtype):
    with pytest.raises(ValueError, match=message):
        KernelStack(spoiled(change).astype(dtype)).check()


@pytest.mark.parametrize("n", [40, 200])
def test_negative_eigenvalues(n):
    # Whether two points are near is no kernel: its Fourier transform has both signs.
    points = np.linspace(0.0, 1.0, n)
    K = (np.abs(points[:, None] - points) < 0.3).astype(float)
    assert np.linalg.eigvalsh(K)[0] < -1.0
    where = "128 of its rows" if n > 128 else "its rows"
    message = rf"not positive semi-definite: it has eigenvalue -.* on {where}.*clip_negative"
    with pytest.raises(ValueError, match=message):
        KernelStack(K).check()
    KernelStack(clip_negative(K)).check()


def test_the_check_is_the_same_in_every_call():
    K = kernel(400)
    for _ in range(2):
        KernelStack(K).check()


@pytest.mark.parametrize("shape", [(1, 2, 3), (1, 0, 0)])
def test_shapes(shape):
    with pytest.raises(ValueError, match="must be square|at least one of each"):
        KernelStack(np.zeros(shape)).check()


def test_rectangular():
    stack = KernelStack(np.ones((2, 3, 5)))
    stack.check(square=False)
    assert not stack.symmetric
    assert stack.n_samples == 3
    stack.matrices[1][2, 4] = np.nan
    with pytest.raises(ValueError, match="kernel 1 has nan in row 2, column 4"):
        stack.check(square=False)
    KernelStack(np.full((1, 2, 2), 1e308)).check(square=False)  # a sum that overflows


def test_huge_entries():
    K = np.full((1, 2, 2), 1e308)
    KernelStack(K).check()
    K[0, 0, 1] = -1e308
    with pytest.raises(ValueError, match="not symmetric"):
        KernelStack(K).check()


# --- repair


@given(st.integers(1, 8), st.integers(0, 99))
def test_clip_negative(n, seed):
    K = np.random.default_rng(seed).standard_normal((n, n))
    found = clip_negative(K)
    even = 0.5 * (K + K.T)
    assert np.array_equal(found, found.T)
    assert np.linalg.eigvalsh(found)[0] >= -1e-12
    # The nearest point of a convex cone: the rest is orthogonal to it, and in the dual cone.
    rest = even - found
    assert abs(np.sum(rest * found)) < 1e-10
    assert np.linalg.eigvalsh(rest)[-1] < 1e-10


def test_clip_negative_keeps_kinds():
    K = kernel(6)
    np.testing.assert_allclose(clip_negative(K), K)
    assert clip_negative(K.astype(np.float32)).dtype == np.float32
    assert clip_negative(np.stack([K, K])).shape == (2, 6, 6)
    assert isinstance(clip_negative([K, K]), list)
    stack = clip_negative(KernelStack(np.stack([K, -K])))
    assert isinstance(stack, KernelStack)
    assert np.array_equal(stack.matrices[1], np.zeros((6, 6)))
    with pytest.raises(ValueError, match="kernel 0 has nan"):
        clip_negative(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="clip_negative needs square"):
        clip_negative(np.ones((2, 3)))
