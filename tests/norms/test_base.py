"""What norms are asked, and what they refuse."""

import math

import numpy as np
import pytest

from mixnorm.norms import MixedNorm, Norm, SchattenNorm, TraceNorm
from mixnorm.norms.base import check_level, conjugate

NORMS = [MixedNorm(), MixedNorm(1, 1), MixedNorm(math.inf, 1), TraceNorm(), SchattenNorm(1.5)]


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_protocol(norm):
    assert isinstance(norm, Norm)
    assert not isinstance(object(), Norm)


@pytest.mark.parametrize("p", [1.0, 1.25, 2.0, 3.0, 17.5, math.inf])
def test_conjugate(p):
    q = conjugate(p)
    assert 1.0 / p + 1.0 / q == pytest.approx(1.0, rel=1e-15)
    assert conjugate(q) == pytest.approx(p, rel=1e-14)


@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_arrays_that_are_no_matrices(norm):
    with pytest.raises(ValueError, match=r"got shape \(3,\). Reshape one output to"):
        norm.value(np.ones(3))
    with pytest.raises(ValueError, match="got type list"):
        norm.dual([[1.0]])
    with pytest.raises(ValueError, match=r"got shape \(1, 2, 3\)"):
        norm.lmo(np.ones((1, 2, 3)))
    for dtype in (np.int64, bool, complex):
        with pytest.raises(TypeError, match="takes arrays of real floating numbers"):
            norm.value(np.ones((2, 2), dtype))


@pytest.mark.parametrize("norm", [norm for norm in NORMS if hasattr(norm, "prox")], ids=repr)
def test_levels(norm):
    W = np.ones((2, 2))
    for value in (-1.0, math.nan):
        with pytest.raises(ValueError, match="tau=.* must be zero or more"):
            norm.prox(W, value)
        with pytest.raises(ValueError, match="radius=.* must be zero or more"):
            norm.project(W, value)
    for value in (2, np.float32(2.0), np.asarray(2.0)):
        assert check_level(value, "tau", W) == 2.0
        assert type(check_level(value, "tau", W)) is float
    with pytest.raises((TypeError, ValueError)):
        norm.prox(W, "much")


@pytest.mark.parametrize("norm", [norm for norm in NORMS if hasattr(norm, "prox")], ids=repr)
def test_levels_without_end(norm):
    W = np.asarray([[1.0, -2.0], [0.0, 0.0]])
    np.testing.assert_array_equal(norm.prox(W, math.inf), 0.0)
    np.testing.assert_array_equal(norm.project(W, math.inf), W)
    single = W.astype(np.float32)
    np.testing.assert_array_equal(norm.prox(single, 1e300), 0.0)
    np.testing.assert_array_equal(norm.project(single, 1e300), single)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("norm", NORMS, ids=repr)
def test_not_finite(norm, bad):
    W = np.asarray([[1.0, -2.0], [bad, 0.5]])
    assert not math.isfinite(norm.value(W))
    if hasattr(norm, "project"):
        assert np.all(np.isnan(norm.project(W, 1.0)))
        assert not np.all(np.isfinite(norm.prox(W, 0.1)))
