"""Batch learning from tables of row blocks: the solution in memory, from few passes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mixnorm import MixedNormClassifier, MixedNormRegressor, MixedNormRegressorCV
from mixnorm.data import ALL_COLUMNS, ArraySource, BlockTable, from_arrays

NORMS = ["l1,1", "l2,1", "linf,1", "l2,2", "trace"]
N, D, K = 203, 9, 3


def draw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * np.linspace(0.5, 3.0, D) + np.arange(D)
    X[:, 5] = 1.0
    W = np.zeros((D, K))
    W[:4] = rng.normal(size=(4, K))
    scores = X @ W - np.mean(X @ W, axis=0)
    labels = np.array(["a", "b", "c"])[np.argmax(scores + rng.gumbel(size=(N, K)), axis=1)]
    weight = rng.integers(0, 3, N).astype(float)
    weight[60:130] = 0.0  # two whole blocks of thirty rows
    return X, labels, scores + rng.normal(size=(N, K)), weight


X, LABELS, Y, WEIGHT = draw()
SPARSE = sp.csr_array(np.where(np.abs(X) > 2.0, X, 0.0))


def relative(model, other):
    """Return the difference of two objectives, by the first."""
    one, two = model.report_.objective, other.report_.objective
    return abs(one - two) / abs(one)


class PassCounter(ArraySource):
    """Counts the rows of full reads."""

    rows_read = 0

    def scan(self, rows, request, meter):
        if request.columns == ALL_COLUMNS:
            type(self).rows_read += sum(part.stop - part.start for part in rows)
        return super().scan(rows, request, meter)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"fit_intercept": False}])
# Room for all columns, and for none of them.
@pytest.mark.parametrize(("block_rows", "memory"), [(30, 1), (64, "1 GiB")])
def test_the_solution_is_that_in_memory(norm, options, block_rows, memory):
    fits = {"block_rows": block_rows, "memory": memory}
    options = {"tol": 1e-10, **options}
    # Singular values make a gap of 1e-10 of the logistic loss hard to reach, also in memory.
    tol = 1e-8 if norm == "trace" else 1e-10
    for data in (X, SPARSE):
        known = MixedNormClassifier(norm, 0.03, **{**options, "tol": tol})
        model = clone(known).fit(from_arrays(data, LABELS, WEIGHT, **fits))
        known.fit(data, LABELS, WEIGHT)
        assert relative(known, model) < 10.0 * tol
        assert model.classes_.tolist() == known.classes_.tolist()
        assert model.selected_.tolist() == known.selected_.tolist()
        known = MixedNormRegressor(norm, 0.3, **options).fit(data, Y, WEIGHT)
        model = MixedNormRegressor(norm, 0.3, **options)
        model.fit(from_arrays(data, Y, WEIGHT, **fits))
        assert relative(known, model) < 1e-9
        np.testing.assert_allclose(model.intercept_, known.intercept_, atol=1e-6)


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_other_losses_of_numbers(loss):
    known = MixedNormRegressor("l2,1", 0.1, loss=loss, tol=1e-9).fit(X, Y[:, 0], WEIGHT)
    table = from_arrays(X, Y[:, 0], WEIGHT, block_rows=30, memory=1)
    model = MixedNormRegressor("l2,1", 0.1, loss=loss, tol=1e-9).fit(table)
    assert relative(known, model) < 1e-8
    assert model.coef_.shape == known.coef_.shape


@pytest.mark.parametrize("loss", ["margin", "hinge", "squared_hinge"])
def test_other_losses_of_labels(loss):
    known = MixedNormClassifier("l2,1", 0.1, loss=loss, tol=1e-8).fit(X, LABELS, WEIGHT)
    table = from_arrays(X, LABELS, WEIGHT, block_rows=30, memory=1)
    model = MixedNormClassifier("l2,1", 0.1, loss=loss, tol=1e-8).fit(table)
    assert relative(known, model) < 1e-7


def test_mapped_files(tmp_path):
    mapped = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    mapped = np.memmap(tmp_path / "X", X.dtype, "r", shape=X.shape)
    known = MixedNormClassifier("l2,1", 0.03, tol=1e-10).fit(X, LABELS)
    model = MixedNormClassifier("l2,1", 0.03, tol=1e-10)
    model.fit(from_arrays(mapped, LABELS, block_rows=30, memory=1, folder=str(tmp_path)))
    assert relative(known, model) < 1e-9


@pytest.mark.parametrize("memory", [1, "1 GiB"])
def test_bits_do_not_depend_on_workers(memory):
    found = []
    for count in (1, 2, 3):
        options = {"block_rows": 20, "executor": count, "memory": memory}
        one = MixedNormClassifier("l2,1", 0.03, standardize=True, class_weight="balanced")
        one.fit(from_arrays(X, LABELS, WEIGHT, **options))
        two = MixedNormRegressor("trace", 0.3).fit(from_arrays(X, Y, WEIGHT, **options))
        found.append(one.coef_.tobytes() + two.coef_.tobytes() + two.intercept_.tobytes())
    assert found[0] == found[1] == found[2]


def test_full_passes_are_few():
    table = BlockTable(PassCounter(X, LABELS), block_rows=30, memory=2 * 4 * 8 * N)
    model = MixedNormClassifier("l2,1", 0.2, standardize=True).fit(table)
    assert 0 < len(model.selected_) < 4
    # A survey, the gradient without weights, and one for each iteration.
    assert PassCounter.rows_read <= N * (2 + model.n_iter_)
    # The moments are enough for a whole path under the squared loss.
    PassCounter.rows_read = 0
    table = BlockTable(PassCounter(X, Y), block_rows=30)
    path = MixedNormRegressor("l2,1", tol=1e-10).path(table, alphas=10)
    assert PassCounter.rows_read == 2 * N
    known = MixedNormRegressor("l2,1", tol=1e-10).path(X, Y, alphas=10)
    np.testing.assert_allclose(path.objectives, known.objectives, rtol=1e-9)
    assert np.isclose(path.alpha_max, known.alpha_max, rtol=1e-10)


def test_single_precision():
    small = X.astype(np.float32)
    known = MixedNormClassifier("l2,1", 0.03, standardize=True).fit(small, LABELS)
    model = MixedNormClassifier("l2,1", 0.03, standardize=True)
    model.fit(from_arrays(small, LABELS, block_rows=30, memory=1))
    assert model.coef_.dtype == known.coef_.dtype == np.float32
    assert relative(known, model) < 1e-4
    assert model.dual_gap_ <= 1e-4 * np.log(3.0)


def test_classes_of_the_last_block():
    y = np.array(["a", "b"] * (N // 2 + 1))[:N]
    y[-2:] = "c"
    known = MixedNormClassifier("l2,1", 0.01, tol=1e-10).fit(X, y)
    model = MixedNormClassifier("l2,1", 0.01, tol=1e-10).fit(from_arrays(X, y, block_rows=30))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert relative(known, model) < 1e-9


@pytest.mark.parametrize(
    ("estimator", "y"), [(MixedNormClassifier(), LABELS), (MixedNormRegressor(), Y)]
)
@pytest.mark.parametrize("standardize", [False, True])
def test_bad_numbers_are_named(estimator, y, standardize):
    bad = X.copy()
    bad[100, 3] = np.nan
    estimator.set_params(standardize=standardize)
    with pytest.raises(ValueError, match=r"NaN in column 3, row 100"):
        estimator.fit(from_arrays(bad, y, block_rows=30))


def test_errors_of_tables():
    with pytest.raises(ValueError, match="requires targets"):
        MixedNormClassifier().fit(from_arrays(X))
    with pytest.raises(TypeError, match="y is given beside a table"):
        MixedNormClassifier().fit(from_arrays(X, LABELS), LABELS)
    with pytest.raises(ValueError, match="only one class of positive weight"):
        MixedNormClassifier().fit(from_arrays(X, np.zeros(N, dtype=int)))
    with pytest.raises(ValueError, match=r"nan in row 5"):
        MixedNormRegressor().fit(from_arrays(X, np.where(np.arange(N) == 5, np.nan, 1.0)))
    with pytest.raises(TypeError, match="MixedNormRegressorCV takes arrays in memory"):
        MixedNormRegressorCV().fit(from_arrays(X, Y), None)
