"""Subnormal numbers are taken as zero where kernels are read, and only there."""

import numpy as np
import pytest

from mixnorm.kernels import KernelStack
from mixnorm.kernels.grams import subnormal as module
from mixnorm.kernels.grams.subnormal import subnormals_as_zero, with_subnormals_as_zero

TINY = np.full(64, 1e-40, dtype=np.float32)
on_x86 = pytest.mark.skipif(not module._APPLIES, reason="only x86 processors are slow with them")


@on_x86
def test_sums_of_subnormals():
    assert np.all(TINY + TINY > 0.0)
    with subnormals_as_zero():
        assert np.all(TINY + TINY == 0.0)
        with subnormals_as_zero():
            assert np.all(TINY + TINY == 0.0)
        assert np.all(TINY + TINY == 0.0)
    assert np.all(TINY + TINY > 0.0)


@on_x86
def test_the_setting_is_restored_after_an_error():
    @with_subnormals_as_zero
    def fails():
        raise KeyError("no")

    with pytest.raises(KeyError):
        fails()
    assert np.all(TINY + TINY > 0.0)


def test_other_processors_are_left_alone(monkeypatch):
    monkeypatch.setattr(module, "_APPLIES", False)
    with subnormals_as_zero():
        assert np.all(TINY + TINY > 0.0)


def test_usual_numbers_are_not_touched():
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((3, 40, 40)).astype(np.float32)
    K = roots @ roots.transpose(0, 2, 1)
    narrow = np.eye(40, dtype=np.float32)
    narrow[narrow == 0.0] = 1e-42
    stack, clean = KernelStack([*K, narrow]), KernelStack([*K, np.eye(40, dtype=np.float32)])
    stack.check()
    clean.check()
    weights, A = rng.random(4), rng.standard_normal((40, 3))
    np.testing.assert_allclose(stack.combine(weights), clean.combine(weights), rtol=1e-6)
    np.testing.assert_allclose(stack.energies(A), clean.energies(A), rtol=1e-5)
    np.testing.assert_allclose(stack.products(A), clean.products(A), rtol=1e-5)
    np.testing.assert_allclose(stack.tail_sums(4), clean.tail_sums(4), rtol=1e-5)
