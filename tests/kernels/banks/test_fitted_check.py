"""Fitted banks in model files: they come back whole, and damaged ones are refused."""

import copy
import dataclasses

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from mixnorm.exceptions import ModelFileError
from mixnorm.kernels import (
    ChiSquaredKernel,
    FunctionKernel,
    GaussianKernel,
    KernelBank,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    register_kernel,
)
from mixnorm.kernels.functions.kernels import FUNCTIONS
from mixnorm.storage.decode import Decoder
from mixnorm.storage.encode import Encoder

ALL = [
    GaussianKernel(0.5),
    LaplacianKernel(2.0),
    ChiSquaredKernel(0.1),
    PolynomialKernel(2),
    LinearKernel(),
]


def again(value):
    """Return what a file would give back."""
    encoder = Encoder()
    node = encoder.node(value)
    return Decoder(encoder.arrays, 2**24).value(node)


@pytest.mark.parametrize("kernel", ALL)
def test_kernels(kernel):
    assert again(kernel) == kernel


def test_functions(monkeypatch, X):
    monkeypatch.setitem(FUNCTIONS, "product", lambda X, Y: X @ Y.T)
    register_kernel("product", lambda X, Y: X @ Y.T)
    assert again(FunctionKernel("product")) == FunctionKernel("product")
    assert again(FunctionKernel("not here")) == FunctionKernel("not here")
    bank = KernelBank(["product"], normalize=None, dtype="float64").fit(X)
    np.testing.assert_allclose(again(bank).combine(X, [1.0]), X @ X.T)
    with pytest.raises(ModelFileError, match="Functions are code, and a model file holds none"):
        again(FunctionKernel(lambda X, Y: X @ Y.T))


@pytest.mark.parametrize("factors", [None, "nystrom", "random"])
@pytest.mark.parametrize("sparse", [True, False])
def test_banks(counts, factors, sparse):
    rows = counts if sparse else counts.toarray() + 5.0
    kernels = ALL if factors != "random" else ALL[:2]
    weights = np.arange(1.0, len(kernels) + 1.0)
    columns = [None, slice(0, 20), [1, 2], None, None][: len(kernels)]
    bank = KernelBank(kernels, columns, normalize="trace", factors=factors, rank=8).fit(rows)
    expected = bank.combine(rows[:7], weights)
    found = again(bank)
    assert np.array_equal(found.combine(rows[:7], weights), expected)
    for field in dataclasses.fields(bank):
        assert type(getattr(found, field.name)) is type(getattr(bank, field.name)), field.name
    some = again(bank.take([2, 3])).combine(rows[:7], weights)
    np.testing.assert_allclose(some, expected[:, [2, 3]], rtol=1e-5)  # sums in another order


def test_single_columns_and_names(X):
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcde"))
    bank = KernelBank.from_columns({"one": None}, {"one": "b"}, ["linear"]).fit(frame)
    found = again(dataclasses.replace(bank, preprocess=None, columns=[1]))
    assert found.feature_names_in == list("abcde")
    assert np.array_equal(found.combine(frame, [1.0]), bank.combine(frame, [1.0]))


def test_text(X):
    rows = np.array([["ab"], ["bc"], ["ca"]], dtype=object)

    def same_letters(X, Y):
        return np.array([[float(len({*a[0]} & {*b[0]})) for b in Y] for a in X])

    FUNCTIONS["letters"] = same_letters
    try:
        bank = KernelBank(["letters"]).fit(rows)
        found = again(bank)
        assert np.array_equal(found.combine(rows, [1.0]), bank.combine(rows, [1.0]))
    finally:
        del FUNCTIONS["letters"]


def test_transformers_are_refused(X):
    bank = KernelBank(["linear"], preprocess=StandardScaler()).fit(X)
    with pytest.raises(ModelFileError, match=r"preprocess = StandardScaler.*holds no"):
        again(bank)


@pytest.fixture
def bank(X):
    kernels = [GaussianKernel(1.0), LaplacianKernel(2.0), LinearKernel()]
    return KernelBank(kernels, [None, [0, 2], [1]], factors="nystrom", rank=5).fit(X + 100.0)


DAMAGE = [
    ("names", ["a"], "names has not one entry per kernel"),
    ("kernels", [], "no kernels"),
    ("kernels", [GaussianKernel(1.0, relative=True)] * 3, "relative width"),
    ("kernels", ["gaussian"] * 3, "a kernel is of another type"),
    ("scales", np.ones(2), "scales has not one entry per kernel"),
    ("scales", np.array([1.0, -1.0, 1.0]), "scales must be positive"),
    ("scales", np.array([1.0, np.nan, 1.0]), "scales must be positive"),
    ("scales", np.ones(3, dtype=np.float32), "scales must be positive"),
    ("group_of", [0, 1, 3], "a kernel has no group"),
    ("group_of", [0, -1, 2], "a kernel has no group"),
    ("rows", [], "no rows"),
    ("rows", [np.ones((60, 5)), np.ones((59, 2)), np.ones((60, 1))], "group 1 has other rows"),
    ("rows", [np.ones((60, 5)), np.ones((60, 3)), np.ones((60, 1))], "rows of other columns"),
    ("rows", [np.ones((60, 5)), np.ones(60), np.ones((60, 1))], "group 1 has 1 axes"),
    ("rows", [np.full((60, 5), np.nan), np.ones((60, 2)), np.ones((60, 1))], "not numbers"),
    ("rows", [np.full((60, 5), "a"), np.ones((60, 2)), np.ones((60, 1))], "not numbers"),
    ("rows", ["abc", np.ones((60, 2)), np.ones((60, 1))], "neither an array nor the parts"),
    ("columns", [None, np.array([0, 5]), np.array([1])], "columns that are nowhere"),
    ("columns", [None, np.array([0, -1]), np.array([1])], "columns that are nowhere"),
    ("columns", [None, np.array([0.0, 1.0]), np.array([1])], "damaged columns"),
    ("columns", [None, np.array([0, 1])], "columns has not one entry per group"),
    ("centres", [np.ones(4), None, None], "damaged centre"),
    ("centres", ["middle", None, None], "damaged centre"),
    ("precision", "float16", "precision is not a dtype"),
    ("memory", 0, "must be positive"),
    ("n_features_in", 0, "must be positive"),
    ("feature_names_in", ["a"], "not one name per column"),
    ("factors", "svd", "factors is not known"),
    ("factors", None, "stray factors"),
    ("factors", "random", "a kernel is unknown"),
    ("landmarks", [], "landmarks has not one entry per group"),
    ("landmarks", [np.ones((5, 4)), np.ones((5, 2)), np.ones((5, 1))], "landmarks 0 are of others"),
    ("landmarks", [np.ones((5, 5)), np.ones((4, 2)), np.ones((5, 1))], "different numbers"),
    ("maps", [], "a kernel has no map"),
    ("maps", [np.ones((4, 2))] * 3, "a map does not fit"),
    ("maps", [np.full((5, 2), np.inf)] * 3, "a map is damaged"),
    ("map_of", [0, 1], "map_of has not one entry per kernel"),
    ("map_of", [0, 1, 7], "a kernel has no map"),
]


@pytest.mark.parametrize(("name", "value", "message"), DAMAGE)
def test_damage(bank, name, value, message):
    bank._check_stored()
    damaged = dataclasses.replace(bank, **{name: value})
    with pytest.raises(ValueError, match=message):
        damaged._check_stored()


def parts(counts):
    return [counts.data, counts.indices, counts.indptr, counts.shape]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, np.ones(3)),
        (0, "data"),
        (0, np.array(["a"])),
        (1, np.full(10, 99)),
        (1, np.ones((2, 2), dtype=int)),
        (2, np.array([0, 5, 2])),
        (2, np.arange(41) * 1000),
        (3, (40, "30")),
        (3, [40, 30]),
        (3, (40, -30)),
        (3, (40, 3)),
    ],
)
def test_damaged_sparse_rows(counts, place, value):
    bank = KernelBank(["gaussian"]).fit(counts)
    bank._check_stored()
    damaged = parts(counts)
    damaged[place] = value
    bank = dataclasses.replace(bank, rows=[tuple(damaged)])
    with pytest.raises(ValueError):
        bank._check_stored()
    with pytest.raises(ValueError):
        dataclasses.replace(bank, rows=[tuple(damaged[:3])])._check_stored()


def test_damaged_kernels(bank):
    with pytest.raises(ValueError, match="tau must be positive"):
        GaussianKernel(-1.0)._check_stored()
    with pytest.raises(ValueError, match="must be a name in a file"):
        FunctionKernel(3)._check_stored()
    assert copy.deepcopy(bank).n_samples == 60
