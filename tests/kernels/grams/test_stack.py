"""Stacks of kernel matrices, against sums and slices of plain arrays."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from mixnorm.kernels import KernelStack
from mixnorm.kernels.grams.base import Grams, as_positions, take_part


def draw(n_kernels, n, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((n_kernels, n, n + 2))
    return (roots @ roots.transpose(0, 2, 1)).astype(dtype)


def total(K, weights):
    return np.einsum("m,mij->ij", np.asarray(weights, dtype=float), np.asarray(K, dtype=float))


@pytest.fixture(params=["array", "list", "strided", "fortran"])
def layout(request):
    """The same stack in other places of the memory."""

    def lay(K):
        if request.param == "list":
            return list(K)
        if request.param == "strided":
            return np.repeat(K, 2, axis=2)[:, :, ::2]
        return np.asfortranarray(K) if request.param == "fortran" else K

    return lay


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("checked", [True, False])
def test_combine(dtype, layout, checked):
    K = draw(3, 70, dtype)
    stack = KernelStack(layout(K))
    if checked:
        stack.check()
    weights = [0.5, 0.0, 2.0]
    found = stack.combine(weights)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, total(K, weights), atol=tolerance * np.abs(K).max())


def test_combine_of_several_chunks():
    K = draw(2, 600, np.float32)
    stack = KernelStack(K)
    stack.check()
    np.testing.assert_allclose(stack.combine([1.0, -2.0]), total(K, [1.0, -2.0]), atol=0.02)
    wide = stack.combine([1.0, 1e-3], dtype=np.float64)
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide, total(K, [1.0, 1e-3]), rtol=1e-12, atol=1e-9)


@given(st.data())
def test_combine_of_some(data):
    n = data.draw(st.integers(1, 9))
    K = draw(2, n)
    index = st.one_of(
        st.none(),
        st.slices(n),
        st.lists(st.integers(-n, n - 1), max_size=6),
        hnp.arrays(bool, n),
    )
    rows, columns = data.draw(index), data.draw(index)
    stack = KernelStack(K)
    if data.draw(st.booleans()):
        stack.check()
    found = stack.combine([1.0, 3.0], rows, columns)
    left = (
        np.arange(n)
        if rows is None
        else np.arange(n)[np.asarray(rows, dtype=int)]
        if (isinstance(rows, list))
        else np.arange(n)[rows]
    )
    right = (
        np.arange(n)
        if columns is None
        else np.arange(n)[np.asarray(columns, dtype=int)]
        if (isinstance(columns, list))
        else np.arange(n)[columns]
    )
    np.testing.assert_allclose(found, total(K, [1.0, 3.0])[np.ix_(left, right)], atol=1e-12)


def test_kernels_of_weight_zero_are_not_read():
    K = draw(2, 5)
    K[1] = np.nan
    assert np.array_equal(KernelStack(K).combine([2.0, 0.0]), 2.0 * K[0])


def test_nothing_is_copied(layout):
    K = layout(draw(3, 6))
    stack = KernelStack(K)
    for m in range(3):
        assert np.shares_memory(stack.matrices[m], K[m])
    assert KernelStack(stack).matrices[0] is stack.matrices[0]


def test_kinds():
    matrix = np.eye(3, dtype=int)
    assert KernelStack(matrix).dtype == np.float64
    assert KernelStack(matrix.astype(np.float16)).dtype == np.float32
    assert KernelStack([matrix.astype(np.float32), np.eye(3)]).dtype == np.float64
    assert KernelStack([[[1.0, 0.0], [0.0, 1.0]]]).shape == (2, 2)
    stack = KernelStack(np.zeros((4, 2, 3)))
    assert (stack.n_kernels, stack.shape, stack.ndim, len(stack)) == (4, (2, 3), 2, 2)
    assert repr(stack) == "KernelStack(n_kernels=4, shape=(2, 3), dtype=float64)"
    assert isinstance(stack, Grams)
    assert stack.factors is None
    again = pickle.loads(pickle.dumps(stack))
    assert again.shape == stack.shape


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(share, checked, dtype, layout):
    K = draw(3, 40, dtype)
    A = np.random.default_rng(1).standard_normal((40, 4))
    A[int(40 * share) :] = 0.0
    stack = KernelStack(layout(K))
    if checked:
        stack.check()
    found = stack.products(A)
    assert found.dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found, K.astype(float) @ A, atol=tolerance)
    energies = stack.energies(A)
    assert energies.dtype == np.float64
    np.testing.assert_allclose(
        energies, np.einsum("ic,mij,jc->m", A, K.astype(float), A), rtol=10 * tolerance, atol=1e-9
    )


def test_products_of_a_square_part_that_is_not_symmetric():
    # As many test rows as training rows: square, but no Gram matrix.
    K = draw(2, 12)
    stack = KernelStack(K)
    stack.check()
    block = stack[np.ix_(range(6), range(6, 12))]
    A = np.eye(6)[:, :2]  # few rows that are not zero
    np.testing.assert_allclose(block.products(A), K[:, :6, 6:] @ A, atol=1e-12)
    np.testing.assert_allclose(block.combine([1.0, 1.0]), K[:, :6, 6:].sum(axis=0), atol=1e-12)
    assert stack.symmetric
    assert not block.symmetric
    assert stack[1:4, 1:4].symmetric
    assert stack[[3, 1], [3, 1]].symmetric


def test_take_and_diagonals():
    K = draw(3, 9, np.float32)
    stack = KernelStack(K)
    rows = [4, 0, 7]
    taken = stack.take(rows)
    for m in range(3):
        assert np.array_equal(taken.matrices[m], K[m][np.ix_(rows, rows)])
        assert not np.shares_memory(taken.matrices[m], K)
    diagonals = stack.diagonals()
    assert diagonals.dtype == np.float64
    assert np.array_equal(diagonals, np.stack([np.diag(k) for k in K]))
    whole = stack.take(slice(None))
    assert not np.shares_memory(whole.matrices[0], K)


def test_slices():
    K = draw(2, 8)
    stack = KernelStack(K)
    rows, columns = np.array([1, 5]), np.array([0, 2, 7])
    mask = np.arange(8) % 2 == 0
    for found, expected in [
        (stack[np.ix_(rows, columns)], K[:, rows][:, :, columns]),
        (stack[rows], K[:, rows]),
        (stack[rows, columns], K[:, rows][:, :, columns]),
        (stack[2:5], K[:, 2:5]),
        (stack[2:5, ::-1], K[:, 2:5, ::-1]),
        (stack[mask], K[:, mask]),
        (stack[np.ix_(mask, mask)], K[:, mask][:, :, mask]),
        (stack[:, -1:], K[:, :, -1:]),
    ]:
        assert isinstance(found, KernelStack)
        assert np.array_equal(np.stack(found.matrices), expected)


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (3, TypeError, "rows must be a slice, a list of positions or a mask, not 3"),
        ((0, 1, 2), IndexError, "the index has 3 entries"),
        ([8], IndexError, "rows has 8, but there are 8"),
        ((slice(None), [-9]), IndexError, "columns has -9"),
        ([True], IndexError, "mask of length 1"),
        ([0.5], TypeError, "whole numbers or truth values"),
    ],
)
def test_bad_slices(key, error, message):
    with pytest.raises(error, match=message):
        _ = KernelStack(draw(2, 8))[key]


class NearestMean(ClassifierMixin, BaseEstimator):
    """A classifier on precomputed kernels, just large enough for a grid search."""

    def __init__(self, weight=0.5):
        self.weight = weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, X, y):
        X.check()
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.means_ = np.eye(len(self.classes_))[codes] / np.bincount(codes)
        K = X.combine([self.weight, 1.0 - self.weight])
        self.lengths_ = np.diag(self.means_.T @ K @ self.means_)
        self.seen_ = X.shape
        return self

    def predict(self, X):
        X.check(square=False)
        if X.shape[1] != self.seen_[0]:
            raise ValueError("not against the training rows")
        scores = 2.0 * X.combine([self.weight, 1.0 - self.weight]) @ self.means_ - self.lengths_
        return self.classes_[np.argmax(scores, axis=1)]


@pytest.mark.parametrize("folds", [2, 3])
def test_cross_validation_slices_both_axes(X, folds):
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    K = np.stack([X @ X.T, np.ones((60, 60))])
    stack = KernelStack(K)
    cv = StratifiedKFold(folds)
    scores = cross_val_score(NearestMean(1.0), stack, y, cv=cv)
    expected = []
    for train, test in cv.split(X, y):
        model = NearestMean(1.0).fit(KernelStack(K[:, train][:, :, train]), y[train])
        expected.append(model.score(KernelStack(K[:, test][:, :, train]), y[test]))
    assert scores.tolist() == expected
    search = GridSearchCV(NearestMean(), {"weight": [0.0, 1.0]}, cv=cv).fit(stack, y)
    assert search.best_params_ == {"weight": 1.0}
    assert search.predict(stack).shape == (60,)


@pytest.mark.parametrize(
    ("K", "error", "message"),
    [
        (np.zeros((0, 3, 3)), ValueError, "holds no kernels"),
        ([], ValueError, "holds no kernels"),
        (np.zeros(3), ValueError, "K has 1 axes"),
        ([np.eye(2), np.eye(3)], ValueError, r"kernel 1 has shape \(3, 3\), but kernel 0"),
        ([np.eye(2), np.ones(2)], ValueError, "kernel 1 has 1 axes"),
        (np.eye(2) * 1j, TypeError, "kernel 0 has dtype complex128"),
        ([np.array([["a"]])], TypeError, "kernel 0 has dtype <U1"),
        ("precomputed", TypeError, "must be an array or a list of matrices, got str"),
    ],
)
def test_bad_stacks(K, error, message):
    with pytest.raises(error, match=message):
        KernelStack(K)


def test_sparse_matrices_are_refused(counts):
    with pytest.raises(TypeError, match=r"kernel 0 is a sparse matrix.*toarray"):
        KernelStack([counts])


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1.0], ValueError, r"weights has shape \(1,\), but there are 2 kernels"),
        ([1.0, np.nan], ValueError, "weights has nan for kernel 1"),
        (["a", "b"], TypeError, "weights must be numbers"),
    ],
)
def test_bad_weights(weights, error, message):
    with pytest.raises(error, match=message):
        KernelStack(draw(2, 3)).combine(weights)


def test_bad_tables():
    stack = KernelStack(draw(2, 3))
    for A in (np.zeros(3), np.zeros((4, 1))):
        with pytest.raises(ValueError, match="must have 3 rows"):
            stack.products(A)


@pytest.mark.parametrize("name", ["diagonals", "take", "tail_sums"])
def test_what_needs_square_matrices(name):
    arguments = {"diagonals": (), "take": ([0],), "tail_sums": (1,)}[name]
    with pytest.raises(ValueError, match=f"{name} needs square kernel matrices, got 2 rows and 3"):
        getattr(KernelStack(np.zeros((1, 2, 3))), name)(*arguments)


def test_places_and_parts():
    assert take_part(as_positions(slice(1, 9, 2), 10, "rows"), slice(1, 3)) == slice(3, 7, 2)
    assert take_part(as_positions([4, 2, 7], 10, "rows"), slice(1, 3)).tolist() == [2, 7]
    assert as_positions([], 3, "rows").tolist() == []
