"""Every public pool keeps the contract: a new one is tested without touching this file."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm import pools
from mixnorm.testing import check_pool

PUBLIC = [getattr(pools, name) for name in pools.__all__]
CLASSES = [
    pool
    for pool in PUBLIC
    if inspect.isclass(pool) and issubclass(pool, pools.Pool) and pool is not pools.Pool
]
WITH_DEFAULTS = [cls for cls in CLASSES if cls not in (pools.Union, pools.Patches)]
# Those that cannot do without parameters, or deserve a second look with others.
OTHERS = [
    pools.Columns(groups=list("aabbccdde"), costs=[1.0, 4.0, 0.5, 2.0, 3.0]),
    pools.Products(linear=False, squares=False),
    pools.Pieces(n_centers=6, n_radii=4),
    pools.Patches(size=2, n_templates=6, masks=4),
    pools.Patches(size=(2, 3), n_templates=5, masks=(1, 2), spread=0.5, reach=0.8),
    pools.Patches(size=2, n_templates=6, masks=4, max_gib=2e-6),
    pools.Union([pools.Columns(), pools.Products(linear=False)]),
    pools.Union([pools.Patches(size=2, n_templates=6, masks=4), pools.Columns()]),
    pools.Union([pools.Pieces(5, 3), pools.Columns(costs=range(1, 10))]),
]


def table(dtype="float64", filled=0.7):
    rng = np.random.default_rng(0)
    X = np.round(8.0 * rng.standard_normal((40, 9)))
    X[:, 4] = 3.0
    X[rng.random(X.shape) > filled] = 0.0
    X = np.abs(X) if np.dtype(dtype).kind == "u" else X
    return X.astype(dtype)


def check(pool, X, **options):
    """Check a pool by fewer atoms than users do by default, which takes half the time."""
    check_pool(pool, X, max_atoms=24, **options)


def test_pools_are_found():
    assert pools.Columns in CLASSES


def test_every_pool_is_checked():
    assert {*WITH_DEFAULTS, *map(type, OTHERS)} == set(CLASSES)


@pytest.mark.parametrize(
    ("dtype", "order", "n_outputs"),
    [
        ("float64", "C", 3),
        ("float32", "F", 3),
        ("float16", "C", 1),
        ("int64", "F", 1),
        ("uint8", "C", 3),
        ("bool", "F", 1),
    ],
)
@pytest.mark.parametrize("cls", WITH_DEFAULTS)
def test_dense(cls, dtype, order, n_outputs):
    check(cls(), np.asarray(table(dtype), order=order), n_outputs=n_outputs, random_state=1)


@pytest.mark.parametrize(
    ("form", "dtype", "filled"),
    [
        (sp.csr_array, "float64", 0.7),
        (sp.csc_array, "float32", 0.1),
        (sp.csr_matrix, "float32", 0.1),
        (sp.csc_matrix, "float64", 0.7),
    ],
)
@pytest.mark.parametrize("cls", WITH_DEFAULTS)
def test_sparse(cls, form, dtype, filled):
    check(cls(), form(table(dtype, filled)))


@pytest.mark.parametrize("pool", OTHERS, ids=repr)
def test_other_parameters(pool):
    check(pool, table())
    check(pool, sp.csr_array(table("uint8", filled=0.1)), n_outputs=1, random_state=1)


@pytest.mark.parametrize("pool", OTHERS, ids=repr)
def test_other_parameters_in_namespaces(pool, xp):
    if getattr(pool, "max_gib", 1.0) < 0.1 and not hasattr(xp, "float16"):
        with pytest.raises(ValueError, match="raise max_gib"):
            check(pool, xp.asarray(table()))
    elif getattr(pool, "array_api", False):
        check(pool, xp.asarray(table("float32")), random_state=1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("cls", WITH_DEFAULTS)
def test_namespaces(cls, dtype, xp):
    if not getattr(cls, "array_api", False):  # told in a clear error, not left to fail inside
        with pytest.raises(TypeError, match="NumPy arrays"):
            cls().prepare(xp.asarray(table(dtype)))
        return
    check(cls(), xp.asarray(table(dtype)))
