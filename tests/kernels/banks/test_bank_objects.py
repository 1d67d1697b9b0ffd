"""Banks of kernels as objects: names, parameters, and what they refuse."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

import mixnorm.kernels
from mixnorm._memory import as_bytes
from mixnorm.kernels import (
    ChiSquaredKernel,
    FunctionKernel,
    GaussianKernel,
    KernelBank,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    gaussian_bank,
)


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


def test_names():
    assert KernelBank(["linear", "linear", "gaussian"]).names == [
        "linear", "linear (2)", "gaussian(tau=1)",
    ]  # fmt: skip
    assert KernelBank({"a": "linear", "b": LaplacianKernel(0.5)}).names == ["a", "b"]
    assert KernelBank("linear").names == ["linear"]
    columns = ["size", ["a", "b"], [0, 1, 2, 3, 4], slice(2, None), 3, [True, False], None]
    assert KernelBank(["linear"] * 7, columns=columns).names == [
        "size: linear",
        "a, b: linear",
        "columns 0, 1, 2, 3, ...: linear",
        "columns 2:: linear",
        "column 3: linear",
        "columns True, False: linear",
        "linear",
    ]
    assert KernelBank({"a": "linear"}, columns=[[0]]).names == ["a"]


def test_gaussian_bank(X):
    bank = gaussian_bank()
    assert [kernel.tau for kernel in bank.kernels] == [2.0**e for e in range(-6, 5)]
    assert all(kernel.relative for kernel in bank.kernels)
    fitted = bank.fit(X)
    spread = 2.0 * X.var(axis=0).sum()
    assert [k.tau for k in fitted.kernels] == pytest.approx([2.0**e * spread for e in range(-6, 5)])
    assert fitted.names[0] == "gaussian(tau=0.015625, relative)"
    assert gaussian_bank(0.5).kernels == [GaussianKernel(0.5)]
    assert gaussian_bank([1, 2], relative=True).kernels[1] == GaussianKernel(2.0, relative=True)
    assert gaussian_bank([1.0], normalize="trace", tail=3).tail == 3
    with pytest.raises(TypeError, match="tau='wide' must be a number"):
        gaussian_bank("wide")
    with pytest.raises(ValueError, match="tau must be positive"):
        gaussian_bank([1.0, -1.0])


def test_parameters(rows):
    bank = KernelBank(KERNELS, columns=[[0]] * 7, normalize="unit", memory="1 GB", dtype="float64")
    again = clone(bank)
    assert again.kernels == bank.kernels
    assert again.get_params()["memory"] == "1 GB"
    assert set(bank.get_params(deep=False)) == {
        "kernels", "columns", "preprocess", "normalize", "tail", "factors", "rank", "memory",
        "dtype", "random_state",
    }  # fmt: skip
    assert again.set_params(tail=3).tail == 3
    again.set_params(**{"0": GaussianKernel(), "0__tau": 2.0})
    assert again.kernels[0] == GaussianKernel(2.0)
    assert bank.kernels[0] != again.kernels[0]
    assert pickle.loads(pickle.dumps(bank)).kernels == bank.kernels


def test_fitted_banks_are_pickled(rows, others):
    bank = KernelBank(KERNELS, normalize="tail").fit(rows)
    expected = bank.combine(others, WEIGHTS)
    text = pickle.dumps(bank)
    assert len(text) < 20_000  # rows, and no matrices
    again = pickle.loads(text)
    assert np.array_equal(again.combine(others, WEIGHTS), expected)
    assert repr(again) == repr(bank)
    assert repr(bank) == "FittedBank(n_kernels=7, n_samples=60, n_features_in=5, dtype=float32)"


BAD = [
    ({"normalize": "length"}, ValueError, "normalize='length' is not known; choose one of"),
    ({"normalize": 1}, ValueError, "normalize=1"),
    ({"factors": "svd"}, ValueError, "factors='svd' is not known"),
    ({"tail": -1}, ValueError, "tail=-1"),
    ({"tail": 2.0}, TypeError, "tail=2.0 must be a whole number"),
    ({"rank": 0}, ValueError, "rank=0"),
    ({"rank": "all"}, TypeError, "rank='all'"),
    ({"rank": 1, "factors": "random"}, ValueError, "rank=1 must be at least 2"),
    ({"memory": "lots"}, ValueError, "memory='lots'"),
    ({"dtype": "float16"}, ValueError, "dtype='float16' is not offered"),
    ({"dtype": "number"}, ValueError, "dtype='number' is not offered"),
    ({"dtype": None}, ValueError, "dtype=None"),
    ({"random_state": -1}, ValueError, "random_state=-1 is not a seed"),
    ({"random_state": "x"}, ValueError, "random_state='x' is not a seed"),
    ({"kernels": []}, ValueError, "kernels is empty"),
    ({"kernels": {}}, ValueError, "kernels is empty"),
    ({"kernels": ["cosine"]}, ValueError, "kernel 'cosine' is not known"),
    ({"kernels": [None]}, TypeError, "None is not a kernel"),
    ({"kernels": [GaussianKernel(-1.0)]}, ValueError, "tau must be positive"),
    ({"columns": [None, None]}, ValueError, "columns has 2 entries, but there are 1 kernels"),
    ({"columns": "a"}, TypeError, "columns='a' must be None, 'each', a list"),
    ({"columns": 3}, TypeError, "columns=3 must be None, 'each', a list"),
    ({"columns": {}}, ValueError, "a dictionary of no groups"),
    ({"preprocess": {"a": None}}, ValueError, "columns has no groups"),
    ({"preprocess": 3}, TypeError, "3, which is not a transformer"),
]


@pytest.mark.parametrize(("params", "error", "message"), BAD)
def test_bad_parameters(params, error, message, X):
    with pytest.raises(error, match=message):
        KernelBank(**{"kernels": ["gaussian"], **params}).fit(X)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.ones(3), ValueError, "must be a table of shape"),
        (np.ones((0, 3)), ValueError, "0 rows and 3 columns"),
        (np.ones((3, 0)), ValueError, "3 rows and 0 columns"),
        (np.array([[np.nan]]), ValueError, "X has missing or infinite values"),
        (np.array([["a"]]), ValueError, "X has values that are not real numbers"),
        (3, TypeError, "must be an array, a sparse matrix or a data frame, got int"),
        ([1.0, 2.0], ValueError, "must be a table of shape"),
    ],
)
def test_bad_rows(rows, error, message):
    with pytest.raises(error, match=message):
        gaussian_bank([1.0]).fit(rows)


def test_bad_new_rows(rows):
    bank = KernelBank(KERNELS).fit(rows)
    with pytest.raises(ValueError, match="X has 3 columns, but the training rows had 5"):
        bank.combine(rows[:, :3], WEIGHTS)
    with pytest.raises(ValueError, match="missing or infinite"):
        bank.combine(np.full((1, 5), np.nan), WEIGHTS)
    with pytest.raises(ValueError, match="needs histograms or counts, but X has -1"):
        bank.combine(-np.ones((1, 5)), WEIGHTS)
    with pytest.raises(ValueError, match=r"weights has shape \(2,\)"):
        bank.combine(rows, [1.0, 2.0])
    with pytest.raises(IndexError, match="support has 60"):
        bank.combine(rows, WEIGHTS, [60])
    with pytest.raises(ValueError, match=r"has no factors.*factors='nystrom'"):
        bank.features(rows)


def test_lists_of_lists():
    bank = KernelBank(["linear"], normalize=None, dtype="float64").fit([[1.0], [2.0]])
    assert bank.combine([[3.0]], [1.0]).tolist() == [[3.0, 6.0]]


def test_kernels_that_overflow(rows):
    message = r"kernel 'polynomial\(degree=40.* of bank .* of X, too large for float32"
    with pytest.raises(ValueError, match=message):
        KernelBank([PolynomialKernel(40)]).fit(10.0 * rows)
    KernelBank([PolynomialKernel(40)], dtype="float64").fit(10.0 * rows).grams().check()


def test_distances_beyond_float32():
    rows = np.array([[0.0], [1e25]])
    K = KernelBank(["gaussian"]).fit(rows).grams().matrices[0]
    assert np.array_equal(K, np.eye(2))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda X, Y: np.tile(np.arange(len(Y)) * 1.0, (len(X), 1)),
            "kernel 'function' is not sym",
        ),
        (lambda X, Y: -(X @ Y.T), "kernel 'function' is not positive semi-definite"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), "NaN"),
        (lambda X, Y: np.ones((2, 2)), r"returned shape \(2, 2\)"),
    ],
)
def test_functions_that_are_no_kernels(function, message, rows):
    with pytest.raises(ValueError, match=message):
        KernelBank([function]).fit(rows)


def test_functions_that_fail_on_other_rows(rows):
    function = FunctionKernel(lambda X, Y: np.where(len(X) == 13, np.nan, X @ Y.T))
    bank = KernelBank({"mine": function}).fit(rows)
    with pytest.raises(ValueError, match="kernel 'mine' has values that are not finite"):
        bank.combine(rows[:13], [1.0])


def test_functions_may_return_their_own_arrays(rows):
    kept = rows @ rows.T
    bank = KernelBank([lambda X, Y: kept], dtype="float64", normalize="unit").fit(rows)
    before = kept.copy()
    bank.combine(rows, [2.0])
    bank.grams()
    assert np.array_equal(kept, before)


def test_import_is_light():
    code = (
        "import sys, mixnorm.kernels;"
        "print(*sorted({'sklearn', 'numba', 'pandas', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_names_of_the_room():
    room = mixnorm.kernels
    assert room.__all__ == sorted(room.__all__)
    for name in room.__all__:
        assert getattr(room, name).__doc__


# --- amounts of memory


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4 GiB", 2**32),
        ("500 MB", 500_000_000),
        ("1.5k", 1500),
        ("2 kib", 2048),
        ("100", 100),
        ("7 B", 7),
        ("1TB", 10**12),
        (2.0**20, 2**20),
        (np.int64(5), 5),
    ],
)
def test_amounts(text, amount):
    assert as_bytes(text) == amount


@pytest.mark.parametrize("bad", ["", "much", "4 GiBs", "-1", "1 ib", 0, -5, np.inf, np.nan, "0 GB"])
def test_bad_amounts(bad):
    with pytest.raises(ValueError, match="memory="):
        as_bytes(bad)


@pytest.mark.parametrize("bad", [None, True, [1]])
def test_amounts_of_no_kind(bad):
    with pytest.raises(TypeError, match="must be a number of bytes or a text"):
        as_bytes(bad)
