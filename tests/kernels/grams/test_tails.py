"""Tail sums, against all eigenvalues."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixnorm.kernels import KernelStack, gaussian_bank, tail_sums
from mixnorm.kernels.grams import tails as tails_module


def expected(K, tail):
    """The tail sums from all eigenvalues, for one number or for several."""
    values = np.linalg.eigvalsh(np.asarray(K, dtype=float))[..., ::-1]
    sums = [values[..., number:].sum(axis=-1) for number in np.atleast_1d(tail)]
    found = np.maximum(sums, 0.0) / values.shape[-1]
    return found if np.ndim(tail) else found[0]


def table(n, kind):
    """Rows as they come: in clusters with repetitions, on a curve, in a cloud, on a grid."""
    rng = np.random.default_rng(0)
    if kind == "clusters":
        rows = rng.standard_normal((7, 6))[rng.integers(0, 7, n)]
        rows += 0.2 * rng.standard_normal((n, 6)) * rng.random((1, 6)) ** 3
        rows[-n // 10 :] = rows[: n // 10 + (n % 10 > 0)]
    elif kind == "curve":
        t = rng.random(n)[:, None]
        rows = np.hstack([np.cos(3 * t), np.sin(5 * t), t]) + 0.01 * rng.standard_normal((n, 3))
    elif kind == "cloud":
        rows = rng.standard_normal((n, 20))
    else:
        rows = rng.integers(0, 3, size=(n, 4)).astype(float)
    low, high = rows.min(axis=0), rows.max(axis=0)
    return 2.0 * (rows - low) / (high - low) - 1.0


def within(found, true, mean):
    """1e-3 of the sum or 1e-6 of the mean diagonal, whichever is looser."""
    return np.all(np.abs(found - true) <= np.maximum(1e-3 * true, 1e-6 * mean))


@pytest.mark.parametrize("kind", ["clusters", "curve", "cloud", "grid"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gaussian_kernels_of_all_widths(kind, dtype):
    X = table(420, kind)
    stack = gaussian_bank(2.0 ** np.arange(-10, 11, 2), dtype=dtype).fit(X).grams()
    K = np.stack(stack.matrices)
    numbers = [1, 2, 4, 8, 16]
    together = tail_sums(stack, numbers)
    assert together.shape == (5, 11)
    true = expected(K, numbers)
    assert within(together, true, 1.0)
    assert within(tail_sums(K, 8), true[numbers.index(8)], 1.0)


@pytest.mark.parametrize("n", [1, 2, 30, 300])
def test_small_matrices_are_exact(n):
    roots = np.random.default_rng(0).standard_normal((2, n, n))
    K = roots @ roots.transpose(0, 2, 1)
    for tail in (0, 1, n - 1, n, n + 5):
        np.testing.assert_allclose(tail_sums(K, tail), expected(K, tail), atol=1e-10 * n)
    assert tail_sums(K, n).tolist() == [0.0, 0.0]


@given(st.integers(1, 12), st.integers(0, 14), st.integers(0, 99))
def test_between_zero_and_the_mean_diagonal(n, tail, seed):
    roots = np.random.default_rng(seed).standard_normal((n, 3))
    K = roots @ roots.T
    (found,) = tail_sums(K, tail)
    assert 0.0 <= found <= np.trace(K) / n * (1 + 1e-12)
    assert found <= tail_sums(K, max(0, tail - 1))[0] + 1e-12


@pytest.mark.parametrize("rank", [1, 5])
def test_few_directions(rank):
    roots = np.random.default_rng(0).standard_normal((500, rank))
    K = roots @ roots.T
    assert tail_sums(K, rank)[0] < 1e-9
    assert tail_sums(K.astype(np.float32), rank)[0] < 1e-6
    assert tail_sums(K, rank - 1)[0] == pytest.approx(expected(K, rank - 1), rel=1e-6)


def test_special_matrices():
    n = 400
    assert tail_sums(np.zeros((n, n)), 8).tolist() == [0.0]
    assert tail_sums(np.zeros((0, 0)), 8).tolist() == [0.0]
    assert tail_sums(np.eye(n), 8)[0] == pytest.approx((n - 8) / n)
    assert tail_sums(np.ones((n, n), dtype=np.float32), 1)[0] < 1e-6
    assert tail_sums(np.full((n, n), 1e-20), 0)[0] == pytest.approx(1e-20)


def test_thin_tails_survive_float32():
    # In float32 alone the difference would be nothing but rounding.
    X = table(400, "curve")
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2.0**10)
    found, true = tail_sums(K.astype(np.float32), 4)[0], expected(K.astype(np.float32), 4)
    assert true < 1e-4
    assert found == pytest.approx(true, rel=1e-2)
    assert tail_sums(K, 4)[0] == pytest.approx(expected(K, 4), rel=1e-4)


def test_many_eigenvalues():
    X = table(350, "clusters")
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    for tail in (40, 200):
        assert within(tail_sums(K, tail), expected(K, tail), 1.0)


def test_the_same_every_time_and_whatever_stands_beside():
    K = gaussian_bank([0.1, 1.0]).fit(table(400, "cloud")).grams().matrices
    both = tail_sums(K, 8)
    assert np.array_equal(both, tail_sums(K, 8))
    assert np.array_equal(both[::-1], tail_sums(K[::-1], 8))
    assert np.array_equal(both, KernelStack(K).tail_sums(8))


def test_narrow_kernels_need_more_than_one_block(monkeypatch):
    X = table(420, "clusters")
    K = gaussian_bank([2.0**-4]).fit(X).grams()
    good = tail_sums(K, 8)
    monkeypatch.setattr(tails_module, "_TAILS", tails_module.TailSettings(most_products=1))
    assert tail_sums(K, 8)[0] > good[0]  # less of the large eigenvalues is found


@pytest.mark.parametrize(
    ("tail", "error", "message"),
    [
        (-1, ValueError, "tail=-1 must be at least 0"),
        (1.5, TypeError, "tail=1.5 must be a whole number"),
        ("8", TypeError, "tail='8' must be a whole number"),
        ([], ValueError, "tail is an empty list"),
        ([2, -3], ValueError, "tail=-3"),
        (True, TypeError, "tail=True"),
    ],
)
def test_bad_tails(tail, error, message):
    with pytest.raises(error, match=message):
        tail_sums(np.eye(3), tail)


@pytest.mark.parametrize("n", [40, 400])
def test_weights_are_repeated_rows(n):
    """Below 300 rows to rounding, above as well as eigenvalues are found at all."""
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(n, 3)), rng.integers(1, 4, size=n)
    bank = gaussian_bank([0.5, 2.0], dtype="float64")
    repeated = np.repeat(X, weight, axis=0)
    expected = np.stack(
        [
            np.sum(np.linalg.eigvalsh(matrix)[::-1][5:]) / len(repeated)
            for matrix in bank.fit(repeated).grams().matrices
        ]
    )
    grams = bank.fit(X).grams()
    found = tail_sums(grams.matrices, 5, sample_weight=weight)
    np.testing.assert_allclose(found, expected, rtol=1e-10 if n < 300 else 1e-3)
    lazy = gaussian_bank([0.5, 2.0], dtype="float64", memory=1000).fit(X).grams()
    np.testing.assert_allclose(lazy.tail_sums(5, weight), found, rtol=1e-6)
    factored = gaussian_bank([0.5, 2.0], dtype="float64", factors="nystrom", rank=n).fit(X)
    np.testing.assert_allclose(factored.grams().tail_sums(5, weight), expected, rtol=1e-3)
    assert not np.allclose(tail_sums(grams.matrices, 5), expected, rtol=1e-3)
