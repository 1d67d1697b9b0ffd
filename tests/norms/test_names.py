"""Norms by name."""

import math

import numpy as np
import pytest

from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm, as_norm
from mixnorm.norms.names import NORMS


@pytest.mark.parametrize(
    ("name", "norm"),
    [
        ("l1,1", MixedNorm(1, 1)),
        ("l2,1", MixedNorm(2, 1)),
        ("l2,2", MixedNorm(2, 2)),
        ("linf,1", MixedNorm(math.inf, 1)),
        ("trace", TraceNorm()),
    ],
)
def test_names(name, norm):
    assert as_norm(name) == norm
    assert as_norm(f" {name.upper().replace(',', ' , ')} ") == norm
    assert as_norm(name) is not as_norm(name)
    assert name in NORMS


def test_objects():
    for norm in (MixedNorm(2, 1, "outputs"), SchattenNorm(1.5)):
        assert as_norm(norm) is norm


class Doubled:
    """A norm of the user's own."""

    def value(self, W):
        return 2.0 * float(np.abs(W).sum())

    def dual(self, V):
        return 0.5 * float(np.abs(V).max())


def test_norms_of_others():
    norm = Doubled()
    assert as_norm(norm) is norm


@pytest.mark.parametrize("bad", ["l1", "l3,1", "", 2, None, MixedNorm, object()])
def test_unknown(bad):
    with pytest.raises(ValueError, match=r"is not known; choose one of \['l1,1', 'l2,1'"):
        as_norm(bad)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="use outer >= 1"):
        as_norm(MixedNorm(2, 0.5))
    with pytest.raises(ValueError, match="use q >= 1"):
        as_norm(SchattenNorm(0.0))
