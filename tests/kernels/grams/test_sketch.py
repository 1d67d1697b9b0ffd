"""Stand-ins of low rank, factors, kernels on each column, and parts of banks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from mixnorm.kernels import (
    FunctionKernel,
    GaussianKernel,
    KernelBank,
    KernelStack,
    PolynomialKernel,
    exact_factor,
    gaussian_bank,
)


def rows(n=120, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def norms(matrices, G, weight):
    products = np.asarray([K @ G for K in matrices])
    functional = np.sqrt(np.einsum("mik,ik->m", products, G))
    return functional, np.sqrt(np.einsum("mik,mik,i->m", products, products, weight))


# --- kernels on each column


def test_each_column_has_every_kernel():
    X = rows(20, 3)
    bank = KernelBank.per_feature(kernel="rbf", widths=[0.5, 2.0], dtype="float64").fit(X)
    assert bank.n_kernels == 6
    assert bank.names[2] == "column 1: gaussian(tau=0.5, relative)"
    for m, matrix in enumerate(bank.grams().matrices):
        column = X[:, [m // 2]]
        wanted = GaussianKernel([0.5, 2.0][m % 2], relative=True).resolve(column).between(column)
        np.testing.assert_allclose(matrix, wanted, atol=1e-12)


def test_names_of_columns_and_of_kernels():
    table = pd.DataFrame(rows(10, 2), columns=["size", "weight"])
    named = KernelBank(
        {"narrow": GaussianKernel(0.1), "wide": GaussianKernel(10.0)}, columns="each"
    )
    assert named.names == ["narrow", "wide"]
    assert named.fit(table).names == [
        "size: narrow",
        "size: wide",
        "weight: narrow",
        "weight: wide",
    ]
    made = KernelBank.per_feature("linear", preprocess=StandardScaler()).fit(table)
    assert made.names == ["size: linear", "weight: linear"]


def test_kernels_without_widths():
    bank = KernelBank.per_feature([PolynomialKernel(degree=2), "linear"])
    assert bank.fit(rows(10, 3)).n_kernels == 6
    assert len(KernelBank.per_feature("laplacian").names) == 3


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (("linear", [1.0]), ValueError, "widths=.* go with kernel='gaussian'"),
        ((GaussianKernel(), [1.0]), ValueError, "by name"),
        (("rbf", "wide"), TypeError, "widths='wide' must be a number"),
        (("rbf", []), ValueError, "at least one"),
        (("rbf", [0.0]), ValueError, "tau must be positive"),
        (("nothing",), ValueError, "kernel 'nothing' is not known"),
    ],
)
def test_bad_widths(given, error, words):
    with pytest.raises(error, match=words):
        KernelBank.per_feature(*given)


def test_groups_named_each_are_no_wish():
    bank = KernelBank(["linear"], columns={"each": [0, 1]}).fit(rows(5, 3))
    assert bank.names == ["each: linear"]
    with pytest.raises(ValueError, match="columns has no groups"):
        KernelBank(["linear"], columns="each", preprocess={"a": None}).fit(rows(5, 3))


# --- parts of a bank


@pytest.mark.parametrize("factors", [None, "nystrom", "random"])
@pytest.mark.parametrize("normalize", [None, "trace", "unit"])
def test_some_kernels_of_a_bank(factors, normalize):
    X, new = rows(30, 3), rows(7, 3, seed=1)
    options = {"factors": factors, "rank": 10} if factors else {}
    bank = KernelBank.per_feature(widths=[0.5, 2.0], normalize=normalize, **options).fit(X)
    which = [4, 0]
    part = bank.only(which)
    assert part.names == [bank.names[m] for m in which]
    whole, some = bank.between(new).matrices, part.between(new).matrices
    for m, matrix in zip(which, some, strict=True):
        np.testing.assert_allclose(matrix, whole[m], atol=1e-6)
    blocks = [np.random.default_rng(m).standard_normal((30, 2)) for m in which]
    wanted = sum(whole[m] @ block for m, block in zip(which, blocks, strict=True))
    np.testing.assert_allclose(part.products(new, blocks), wanted, atol=1e-4)
    np.testing.assert_allclose(bank.gram(4), bank.grams().combine(np.eye(6)[4]), atol=1e-5)


def test_some_kernels_with_transformers_by_group():
    X = rows(20, 3)
    groups = {"a": [0], "b": [1, 2]}
    bank = KernelBank.from_columns({"b": StandardScaler()}, groups, ["linear", "gaussian"]).fit(X)
    part = bank.only([3])
    np.testing.assert_allclose(part.between(X).matrices[0], bank.between(X).matrices[3], atol=1e-6)
    new = rows(9, 3, seed=2)
    np.testing.assert_allclose(
        part.replace_rows(new).gram(0), bank.replace_rows(new).gram(3), atol=1e-12
    )


@pytest.mark.parametrize("memory", [2**31, 40_000])
def test_products_of_some_kernels(memory):
    X = rows(60, 3)
    bank = gaussian_bank([0.5, 1.0, 2.0, 4.0], memory=memory, dtype="float64").fit(X)
    A = np.random.default_rng(1).standard_normal((60, 2))
    all_of_them = np.stack([bank.gram(m) @ A for m in range(4)])
    for grams in (bank.grams(), bank.grams(partly=False)):
        np.testing.assert_allclose(grams.products(A), all_of_them, atol=1e-10)
        np.testing.assert_allclose(grams.products(A, [3, 1]), all_of_them[[3, 1]], atol=1e-10)
        few = np.where(np.arange(60)[:, None] % 5 == 0, A, 0.0)
        np.testing.assert_allclose(grams.products(few, [2])[0], bank.gram(2) @ few, atol=1e-10)


# --- stand-ins


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("uniform", [True, False])
def test_stand_ins_are_close(kernel, uniform):
    X = rows(300, 5)
    weight = (
        np.full(300, 1.0 / 300) if uniform else np.random.default_rng(3).dirichlet(np.ones(300))
    )
    bank = KernelBank.per_feature(kernel, [0.1, 1.0, 10.0]).fit(X)
    G = np.random.default_rng(1).standard_normal((300, 2)) * weight[:, None]
    G += weight[:, None] * np.sin(2.0 * X[:, :2])
    rank = 64 if kernel == "rbf" else 200  # no finite number of landmarks is exact for kinks
    found = bank.sketch(weight, rank).norms(G)
    wanted = norms([bank.gram(m) for m in range(15)], G, weight)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3 if kernel == "rbf" else 0.1)


def test_stand_ins_of_all_sorts_of_kernels():
    """Kernels of several metrics, a function, scales, a constant column and unit lengths."""
    X = np.abs(rows(80, 3))
    X[:, 2] = 4.0
    kernels = [
        "linear",
        PolynomialKernel(degree=3, coef0=0.5),
        "gaussian",
        "chi2",
        FunctionKernel(lambda P, Q: np.minimum(P[:, :1], Q[:, :1].T)),
    ]
    weight = np.full(80, 1.0 / 80)
    G = np.random.default_rng(0).standard_normal((80, 1)) / 80
    for normalize in (None, "trace", "unit"):
        bank = KernelBank(kernels, columns="each", normalize=normalize, dtype="float64").fit(X)
        found = bank.sketch(weight, 80).norms(G)
        wanted = norms([bank.gram(m) for m in range(15)], G, weight)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-7)


def test_kernels_that_are_zero():
    X = np.zeros((20, 2))
    X[:, 1] = np.arange(20.0)
    sketch = KernelBank(["linear"], columns="each").fit(X).sketch(np.full(20, 0.05), 8)
    functional, empirical = sketch.norms(np.full((20, 1), 0.05))
    assert functional[0] == empirical[0] == 0.0
    assert functional[1] > 0.0
    assert sketch.rank >= 1
    assert sketch.nbytes > 0


def test_few_rows():
    X = rows(3, 2)
    bank = KernelBank.per_feature(widths=[1.0], dtype="float64").fit(X)
    G, weight = np.array([[0.1], [-0.3], [0.2]]), np.full(3, 1.0 / 3.0)
    found, _ = bank.sketch(weight, 64).norms(G)
    wanted, _ = norms([bank.gram(0), bank.gram(1)], G, weight)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


# --- factors


@pytest.mark.parametrize("tau", [0.001, 0.1, 10.0])
def test_factor(tau):
    K = GaussianKernel(tau).between(rows(100, 1))
    factor = exact_factor(K)
    np.testing.assert_allclose(factor @ factor.T, K, atol=1e-10)
    assert factor.shape[1] < 100 or tau < 0.01
    assert exact_factor(np.zeros((4, 4))).shape == (4, 1)


def test_stack_of_one():
    K = np.eye(3)[None]
    np.testing.assert_array_equal(KernelStack(K).products(np.ones((3, 1)), [0]), np.ones((1, 3, 1)))
