"""Banks of kernels: their matrices, normalisations and memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from mixnorm.kernels import (
    ChiSquaredKernel,
    FittedBank,
    FunctionKernel,
    GaussianKernel,
    KernelBank,
    KernelStack,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    gaussian_bank,
    tail_sums,
)
from mixnorm.kernels.functions.evaluate import Evaluator
from mixnorm.kernels.grams.base import Grams
from mixnorm.kernels.grams.lazy import LazyGrams


def minimum(X, Y):
    return np.minimum(np.asarray(X)[:, None], np.asarray(Y)[None]).sum(axis=2)


KERNELS = [
    GaussianKernel(0.5),
    GaussianKernel(0.2, relative=True),
    LaplacianKernel(2.0),
    LinearKernel(),
    PolynomialKernel(3, 0.1),
    ChiSquaredKernel(0.3),
    FunctionKernel(minimum),
]
WEIGHTS = [0.5, 0.0, 1.0, 0.2, 0.1, 2.0, 0.3]


@pytest.fixture
def rows(X):
    return np.abs(X)


@pytest.fixture
def others(new):
    return np.abs(new)


def each(kernels, X, Y):
    return np.stack([kernel.resolve(Y).between(X, Y) for kernel in kernels])


def close(found, expected, dtype="float32"):
    tolerance = 1e-5 if dtype == "float32" else 1e-11
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrices(rows, others, dtype):
    bank = KernelBank(KERNELS, normalize=None, dtype=dtype).fit(rows)
    assert (bank.n_kernels, bank.n_samples, bank.n_features_in) == (7, 60, 5)
    assert bank.dtype == dtype
    grams = bank.grams()
    assert isinstance(grams, KernelStack)
    assert isinstance(grams, Grams)
    assert grams.dtype == dtype
    K = np.stack(grams.matrices)
    close(K, each(KERNELS, rows, rows), dtype)
    assert np.array_equal(K, K.transpose(0, 2, 1))
    grams.check()
    expected = each(KERNELS, others, rows)
    between = bank.between(others)
    assert between.shape == (13, 60)
    assert between.dtype == dtype
    close(np.stack(between.matrices), expected, dtype)
    close(bank.combine(others, WEIGHTS), np.tensordot(WEIGHTS, expected, 1), dtype)
    support = [3, 59, 4]
    found = bank.combine(others, WEIGHTS, support)
    close(found, np.tensordot(WEIGHTS, expected[:, :, support], 1), dtype)
    assert found.dtype == dtype


def test_training_rows_as_new_ones(rows):
    bank = KernelBank(KERNELS, dtype="float64").fit(rows)
    close(bank.combine(rows, WEIGHTS), bank.grams().combine(WEIGHTS), "float64")


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows(counts, container):
    kernels = KERNELS[:6]
    dense = counts.toarray()
    bank = KernelBank(kernels, normalize=None, dtype="float64").fit(container(counts))
    close(np.stack(bank.grams().matrices), each(kernels, dense, dense), "float64")
    expected = np.tensordot(WEIGHTS[:6], each(kernels, dense[:9], dense), 1)
    close(bank.combine(container(counts[:9]), WEIGHTS[:6]), expected, "float64")
    close(bank.combine(dense[:9], WEIGHTS[:6]), expected, "float64")
    small = bank.take([1, 7, 20])
    close(small.combine(dense[:9], WEIGHTS[:6]), expected[:, [1, 7, 20]], "float64")
    solid = KernelBank(kernels, normalize=None, dtype="float64").fit(dense)
    close(solid.combine(container(counts[:9]), WEIGHTS[:6]), expected, "float64")


def test_float32_rows(rows):
    narrow = rows.astype(np.float32)
    bank = KernelBank(KERNELS, normalize=None).fit(narrow)
    assert bank.rows[0].dtype == np.float32
    wide = narrow.astype(float)
    close(np.stack(bank.grams().matrices), each(KERNELS, wide, wide))


def test_metrics_are_shared(rows, monkeypatch):
    from mixnorm.kernels.functions import metrics

    calls = []
    plain = metrics.METRICS["sqeuclidean"]
    monkeypatch.setitem(
        metrics.METRICS, "sqeuclidean", lambda P, Q: calls.append(len(Q)) or plain(P, Q)
    )
    gaussian_bank([0.1, 1.0, 10.0]).fit(rows).grams()
    assert calls == [60]
    calls.clear()
    columns = [[0, 1], [1, 0], [0, 1]]
    KernelBank([GaussianKernel(t) for t in (1.0, 2.0, 3.0)], columns=columns).fit(rows).grams()
    assert calls == [60, 60]  # the order of columns makes another group


def test_what_is_kept_is_copied(rows):
    bank = KernelBank(["linear"], dtype="float64").fit(rows)
    before = bank.grams().combine([1.0])
    rows[:] = 0.0
    assert np.array_equal(bank.grams().combine([1.0]), before)


# --- memory


def size(bank):
    return bank.n_kernels * bank.n_samples**2 * bank.dtype.itemsize


# Every share of the memory with every normalisation, in one of the dtypes.
MEMORY = [
    (share, normalize, ("float32", "float64")[(i + j) % 2])
    for i, share in enumerate([0.0, 0.2, 0.5, 0.8, 1.0])
    for j, normalize in enumerate([None, "trace", "unit", "tail"])
]


@pytest.mark.parametrize(("share", "normalize", "dtype"), MEMORY)
def test_any_memory_gives_the_same(rows, others, share, normalize, dtype):
    plain = KernelBank(KERNELS, normalize=normalize, tail=3, dtype=dtype)
    bank = plain.fit(rows)
    grams = bank.grams()
    budget = max(1, int(share * size(bank)))
    small = clone(plain).set_params(memory=budget).fit(rows)
    lazy = small.grams()
    assert isinstance(lazy, Grams)
    assert isinstance(lazy, KernelStack if share == 1.0 else LazyGrams)
    A = np.random.default_rng(0).standard_normal((60, 3))
    sparse_A = A.copy()
    sparse_A[10:] = 0.0
    index = [5, 0, 31]
    close(lazy.combine(WEIGHTS), grams.combine(WEIGHTS), dtype)
    close(lazy.combine(WEIGHTS, dtype="float64"), grams.combine(WEIGHTS, dtype="float64"))
    close(lazy.combine(WEIGHTS, index), grams.combine(WEIGHTS, index), dtype)
    close(
        lazy.combine(WEIGHTS, slice(3, 40), index),
        grams.combine(WEIGHTS, slice(3, 40), index),
        dtype,
    )
    for table in (A, sparse_A, 0.0 * A):
        close(lazy.products(table), grams.products(table), dtype)
        close(lazy.energies(table), grams.energies(table), dtype)
    close(lazy.diagonals(), grams.diagonals(), dtype)
    close(lazy.tail_sums([2, 5]), grams.tail_sums([2, 5]), dtype)
    close(lazy.tail_sums(2), grams.tail_sums(2), dtype)
    close(lazy.take(index).combine(WEIGHTS), grams.take(index).combine(WEIGHTS), dtype)
    assert isinstance(lazy.take(index), KernelStack if share > 0.1 else Grams)
    close(small.combine(others, WEIGHTS), bank.combine(others, WEIGHTS), dtype)
    assert (lazy.n_kernels, lazy.n_samples, lazy.shape) == (7, 60, (60, 60))
    assert lazy.dtype == dtype
    assert lazy.factors is None


def test_what_is_dear_is_kept(rows):
    bank = KernelBank(KERNELS, memory=6 * 60 * 60 * 4).fit(rows)
    grams = bank.grams()
    assert grams.kept == [0, 1, 2, 5, 6]  # functions and sums over columns first
    assert "stored=5" in repr(grams)
    assert np.all(np.diagonal(grams.combine([0, 1.0, 0, 0, 0, 0, 0])) == 1.0)


def peak(run):
    tracemalloc.start()
    try:
        result = run()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("budget", [200_000, 1_000_000, 2_500_000])
def test_memory_is_respected(budget):
    rows = np.random.default_rng(0).standard_normal((400, 3))
    bank = gaussian_bank([0.1, 1.0, 10.0, 100.0], memory=budget).fit(rows)
    bank.grams()  # what is loaded at first use does not count
    grams, used = peak(bank.grams)
    assert used <= budget
    assert len(grams.kept) == max(0, (7 * budget // 8) // 640_000)
    A = np.ones((400, 2))
    for run, extra in [
        (lambda: grams.combine([1.0, 2.0, 3.0, 4.0]), 640_000),
        (lambda: grams.products(A), 4 * 400 * 2 * 4),
        (lambda: grams.energies(A), 0),
    ]:
        run()
        _, used = peak(run)
        # The stored matrices were counted above; the result is the caller's.
        assert used <= budget + extra + 100_000


@given(st.integers(1, 12), st.integers(1, 300))
def test_blocks_of_any_size(n, entries):
    rows = np.random.default_rng(n).standard_normal((n, 2))
    bank = KernelBank(["gaussian", "linear"], dtype="float64").fit(rows)
    found = np.zeros((2, n, n))
    evaluator: Evaluator = bank._evaluator
    for some, m, block in evaluator.blocks(bank._side, bank._side, [0, 1], entries):
        found[m, some] = block
    expected = np.stack(bank.grams().matrices)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    assert np.all(np.diagonal(found[0]) == 1.0)
    for some, m, block in evaluator.blocks(bank._side, bank._side, [0, 1], entries, upper=True):
        np.testing.assert_allclose(block, expected[m, some, some.start :], atol=1e-13)


def test_too_many_new_rows(rows):
    bank = gaussian_bank([1.0, 2.0], memory="10 KB").fit(rows)
    with pytest.raises(ValueError, match="between 60 new rows and 60 training rows need 28.1 KiB"):
        bank.between(rows)
    assert bank.between(rows[:5]).shape == (5, 60)


# --- normalisations


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_trace(rows, others, dtype):
    bank = KernelBank(KERNELS, normalize="trace", dtype=dtype).fit(rows)
    np.testing.assert_allclose(bank.grams().diagonals().mean(axis=1), 1.0, rtol=1e-5)
    diagonals = np.stack([kernel.resolve(rows).diagonal(rows) for kernel in KERNELS])
    expected = each(KERNELS, others, rows) / diagonals.mean(axis=1)[:, None, None]
    close(np.stack(bank.between(others).matrices), expected, dtype)


def test_trace_is_the_default(rows):
    made = [
        KernelBank(KERNELS),
        KernelBank.from_columns(None, {"some": [0, 1]}, KERNELS),
        KernelBank.per_feature(["linear", "poly"]),
        gaussian_bank([0.5, 2.0]),
    ]
    for bank in made:
        sizes = bank.fit(rows).grams().diagonals().mean(axis=1)
        np.testing.assert_allclose(sizes, 1.0, rtol=1e-5)
        assert np.all(clone(bank).set_params(normalize=None).fit(rows).scales == 1.0)
    # Gaussian kernels stay what they are, also where they are factored.
    assert np.all(made[-1].fit(rows).scales == 1.0)
    assert np.all(gaussian_bank([0.5], factors="nystrom", rank=4).fit(rows).scales == 1.0)


def test_unit(rows, others):
    rows[4] = 0.0
    kernels = [LinearKernel(), PolynomialKernel(2, coef0=0.0), GaussianKernel(), KERNELS[-1]]
    bank = KernelBank(kernels, normalize="unit", dtype="float64").fit(rows)
    grams = bank.grams()
    diagonals = grams.diagonals()
    expected = np.ones((4, 60))
    expected[[0, 1, 3], 4] = 0.0
    np.testing.assert_allclose(diagonals, expected, rtol=1e-12)
    assert np.all(grams.matrices[0][4] == 0.0)
    own = np.stack([kernel.diagonal(others) for kernel in kernels])
    their = np.stack([kernel.diagonal(rows) for kernel in kernels])
    their[their == 0.0] = np.inf
    raw = each(kernels, others, rows)
    found = np.stack(bank.between(others).matrices)
    np.testing.assert_allclose(found, raw / np.sqrt(own[:, :, None] * their[:, None, :]), rtol=1e-9)


@pytest.mark.parametrize("tail", [0, 3, 8])
def test_tail(rows, others, tail):
    bank = KernelBank(KERNELS, normalize="tail", tail=tail, dtype="float64").fit(rows)
    raw = each(KERNELS, rows, rows)
    sums = tail_sums(raw, tail)
    means = np.trace(raw, axis1=1, axis2=2) / 60
    sizes = np.maximum(sums, 1e-2 * means)
    for _ in range(2):  # the first were computed on the way
        close(np.stack(bank.grams().matrices), raw / sizes[:, None, None], "float64")
    expected = each(KERNELS, others, rows) / sizes[:, None, None]
    close(np.stack(bank.between(others).matrices), expected, "float64")
    assert "grams" not in bank._kept


def test_kernels_that_are_zero():
    rows = np.zeros((5, 2))
    for normalize in ("trace", "unit", "tail"):
        bank = KernelBank(["linear", "gaussian"], normalize=normalize).fit(rows)
        found = bank.grams()
        assert np.array_equal(found.matrices[0], np.zeros((5, 5)))
        assert np.all(np.isfinite(found.matrices[1]))


def test_constant_rows():
    bank = gaussian_bank().fit(np.full((6, 3), 4.0))
    assert all(np.array_equal(K, np.ones((6, 6))) for K in bank.grams().matrices)


# --- subsets, costs


def test_take(rows, others):
    bank = KernelBank(KERNELS, normalize="trace").fit(rows)
    for index in ([4, 1, 9], np.arange(60) % 7 == 0, slice(5, 20)):
        places = np.arange(60)[index]
        small = bank.take(index)
        assert isinstance(small, FittedBank)
        assert small.n_samples == len(places)
        assert np.array_equal(small.scales, bank.scales)
        found = small.combine(others, WEIGHTS)
        close(found, bank.combine(others, WEIGHTS, places))
        close(small.grams().combine(WEIGHTS), bank.grams().combine(WEIGHTS, places, places))
    assert bank.take([]).combine(others, WEIGHTS).shape == (13, 0)


@pytest.mark.parametrize("factors", [None, "nystrom"])
def test_append(rows, others, factors):
    bank = KernelBank(KERNELS, normalize="trace", factors=factors, rank=20).fit(rows)
    longer = bank.append(others)
    assert longer.n_samples == 73
    assert bank.n_samples == 60
    found = longer.combine(others, WEIGHTS)
    close(found[:, :60], bank.combine(others, WEIGHTS))
    close(found[:, 60:], longer.grams().combine(WEIGHTS, slice(60, None), slice(60, None)))
    assert np.array_equal(longer.scales, bank.scales)


def test_append_sparse_rows(counts):
    bank = KernelBank(["gaussian", "linear"], dtype="float64").fit(counts)
    for more in (counts[:3], counts[:3].toarray()):
        longer = bank.append(more)
        found = longer.combine(counts, [1.0, 1.0])
        close(found[:, 40:], found[:, :3], "float64")


def test_nothing_to_do(rows, others):
    bank = KernelBank(KERNELS).fit(rows)
    assert np.array_equal(bank.combine(others, np.zeros(7)), np.zeros((13, 60), np.float32))
    assert bank.combine(others[:0], WEIGHTS).shape == (0, 60)
    assert bank.between(others[:0]).shape == (0, 60)


def test_one_row():
    bank = KernelBank(KERNELS).fit(np.ones((1, 5)))
    assert bank.grams().shape == (1, 1)


def test_cost(rows):
    bank = KernelBank(KERNELS, columns=[[0], None, None, None, None, None, [0]]).fit(rows)
    assert bank.cost(np.zeros(7), 10) == {
        "kernels": 0, "support": 10, "floats": 0, "multiplications": 0,
    }  # fmt: skip
    one = bank.cost([0, 1.0, 0, 0, 0, 0, 0], 10)
    assert one == {"kernels": 1, "support": 10, "floats": 51, "multiplications": 70}
    more = bank.cost([1.0, 1.0, 0, 0, 0, 0, 0], 10)
    assert more["floats"] == 10 * 6 + 2
    assert more["multiplications"] > one["multiplications"]
    assert all(type(value) is int for value in more.values())


def test_unused_kernels_are_not_computed(rows, others):
    def fails_later(X, Y):
        if len(X) == 13:
            raise RuntimeError("computed")
        return X @ Y.T

    bank = KernelBank(["linear", fails_later]).fit(rows)
    bank.combine(others, [1.0, 0.0])
    with pytest.raises(RuntimeError, match="computed"):
        bank.combine(others, [0.0, 1.0])


@pytest.mark.parametrize("normalize", ["trace", "unit", "tail"])
@pytest.mark.parametrize("factors", [None, "nystrom"])
@pytest.mark.parametrize("unit", [1e-25, 1e-60, 1e-12])
def test_kernels_of_tiny_data_in_single_precision(normalize, factors, unit):
    """Kernels that are normalised do not depend on the unit of the data, nor overflow."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    kernels = ["linear", PolynomialKernel(degree=2, coef0=0.0)]
    bank = KernelBank(kernels, normalize=normalize, tail=2, factors=factors, rank=10)
    bank = bank if factors else KernelBank(kernels, normalize=normalize, tail=2)
    wanted, found = bank.fit(X), bank.fit(X * unit)
    weights = np.array([1.0, 0.5])
    np.testing.assert_allclose(
        found.grams().combine(weights), wanted.grams().combine(weights), rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(
        found.combine(X[:5] * unit, weights), wanted.combine(X[:5], weights), rtol=1e-3, atol=1e-4
    )


# --- weights of rows


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("factors", [None, "nystrom"])
@pytest.mark.parametrize("normalize", ["trace", "tail"])
def test_weights_are_repeated_rows(is_sparse, factors, normalize):
    """Widths, scales and landmarks are those of the bank on repeated rows, in any order."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(40, 4)) * rng.uniform(0.5, 2.0, size=4)
    weight, order = rng.integers(1, 4, size=40), rng.permutation(40)
    kernels = [GaussianKernel(0.5, True), LaplacianKernel(1.0, True), "linear"]
    bank = KernelBank(
        kernels, normalize=normalize, tail=2, factors=factors, rank=7, dtype="float64"
    )
    rows, repeated = X[order], np.repeat(X, weight, axis=0)
    if is_sparse:
        rows, repeated = sparse.csr_array(rows), sparse.csr_array(repeated)
    one = bank.fit(rows, sample_weight=weight[order])
    other = bank.fit(repeated)
    widths = [[kernel.tau for kernel in fitted.kernels[:2]] for fitted in (one, other)]
    np.testing.assert_allclose(*widths, rtol=1e-12)
    assert widths[0][0] != bank.fit(X).kernels[0].tau
    np.testing.assert_allclose(one.scales, other.scales, rtol=1e-9)
    weights = [1.0, 0.5, 2.0]
    found, expected = (fitted.combine(X, weights) for fitted in (one, other))
    np.testing.assert_allclose(
        np.repeat(found[:, np.argsort(order)], weight, axis=1), expected, atol=1e-9
    )


def test_weights_reach_transformers():
    X = np.array([[0.0], [1.0], [4.0]])
    bank = KernelBank(["linear"], preprocess=StandardScaler(), normalize=None)
    fitted = bank.fit(X, sample_weight=[2.0, 1.0, 1.0])
    assert fitted.preprocess.mean_[0] == pytest.approx(1.25)


@pytest.mark.parametrize("weight", [[1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], [1.0]])
def test_weights_of_rows_are_checked(weight):
    with pytest.raises(ValueError, match="sample_weight has"):
        KernelBank(["linear"]).fit(np.eye(3), sample_weight=weight)
