"""Every public norm keeps the contract, in every array namespace."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixnorm import norms
from mixnorm._array import to_numpy
from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm
from mixnorm.testing import check_norm

INF = math.inf
PUBLIC = [getattr(norms, name) for name in norms.__all__]
CLASSES = [
    norm
    for norm in PUBLIC
    if isinstance(norm, type)
    and not getattr(norm, "_is_protocol", False)
    and norm is not norms.Spectral  # a base class
]
GROUPS = [None, "outputs", [0, 2, 0, 1, 1, 1], np.arange(24).reshape(6, 4) % 7]
PAIRS = [(1, 1), (2, 1), (INF, 1), (2, 2), (1.5, 1.5), (2, 1.2), (2, INF), (1, INF), (INF, INF)]
OBJECTS = [MixedNorm(*pair, groups) for pair in PAIRS for groups in GROUPS]
OBJECTS += [TraceNorm(), *(SchattenNorm(q) for q in (1.0, 1.01, 1.3, 2.0, 4.0, INF))]
OBJECTS += [cls() for cls in CLASSES if cls not in map(type, OBJECTS)]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("shape", [(6, 4), (3, 8), (1, 1), (1, 5), (5, 1)])
def test_classes(cls, shape):
    check_norm(cls(), shape=shape, random_state=shape[0])


@pytest.mark.parametrize("norm", OBJECTS, ids=repr)
def test_objects(norm):
    check_norm(norm, random_state=1)


@given(
    st.sampled_from([1.0, 2.0, INF]),
    st.one_of(st.sampled_from([1.0, 2.0, INF]), st.floats(1.05, 8.0)),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=20)
def test_exponents(inner, outer, same, seed):
    check_norm(MixedNorm(outer if same else inner, outer), shape=(4, 3), random_state=seed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm", OBJECTS, ids=repr)
def test_namespaces_agree(norm, dtype, xp):
    rng = np.random.default_rng(0)
    W = rng.standard_normal((6, 4)).astype(dtype)
    W[2] = 0.0
    there = xp.asarray(W)
    # Sums are ordered differently, no more.
    rtol = 1e-12 if dtype == "float64" else 1e-5
    assert norm.value(there) == pytest.approx(norm.value(W), rel=rtol)
    assert norm.dual(there) == pytest.approx(norm.dual(W), rel=rtol)
    levels = {"prox": 0.3 * norm.dual(W), "project": 0.3 * norm.value(W)}
    for name in ("lmo", "mirror", "link", "row_duals", "prox", "project"):
        if not hasattr(norm, name):
            continue
        level = [levels[name]] if name in levels else []
        got, wanted = getattr(norm, name)(there, *level), getattr(norm, name)(W, *level)
        assert type(got) is type(there)
        assert got.dtype == getattr(xp, dtype)
        atol = 10 * rtol * np.abs(wanted).max()
        np.testing.assert_allclose(to_numpy(got), wanted, rtol=10 * rtol, atol=atol)
    if hasattr(norm, "restrict") and norm.groups is None:
        part = norm.restrict(xp.asarray([0, 3]))
        rows = xp.take(there, xp.asarray([0, 3]), axis=0)
        assert part.value(rows) == pytest.approx(norm.restrict([0, 3]).value(W[[0, 3]]), rel=rtol)
