"""How the kernels of a fit are kept: stored, computed at every use, or replaced by factors."""

import re

import numpy as np
import pytest

from mixnorm._memory import as_bytes
from mixnorm.kernels import GaussianKernel, KernelBank, LaplacianKernel
from mixnorm.kernels.banks import storage_plan
from mixnorm.kernels.banks.storage_plan import grams_within
from mixnorm.kernels.grams.factors import FactorGrams
from mixnorm.kernels.grams.lazy import LazyGrams
from mixnorm.kernels.grams.stack import KernelStack

BESIDE = 10_000  # bytes of the machine
KERNELS = (GaussianKernel(1.0), LaplacianKernel(1.0))
BOTH = 2 * 60 * 60 * 4  # bytes of two matrices


def fit(X, memory, kernels=KERNELS, **others):
    return KernelBank(list(kernels), normalize=None, memory=memory, **others).fit(X)


def grams(bank, beside=BESIDE):
    return grams_within(bank, beside, None, np.random.default_rng(0))


def test_matrices_that_fit_are_stored(X):
    bank = fit(X, BOTH + BESIDE)
    found, kept, message = grams(bank)
    assert found is bank
    assert isinstance(kept, KernelStack)
    assert message is None


def test_matrices_that_do_not_fit_are_computed_within_what_the_machine_leaves(X):
    found, kept, message = grams(fit(X, BOTH + BESIDE - 1))
    assert isinstance(kept, LazyGrams)
    assert kept.memory == BOTH - 1
    assert message is None
    assert found.memory == BOTH + BESIDE - 1


def test_a_machine_that_leaves_nothing_gets_factors(X):
    found, kept, message = grams(fit(X, 5_000))
    assert isinstance(kept, FactorGrams)
    assert found.factors == "nystrom"
    enough = re.search("For exact kernels set memory='(.*?)'", message).group(1)
    assert isinstance(grams(fit(X, enough))[1], KernelStack)
    assert as_bytes(enough) <= 1.02 * (BOTH + BESIDE)
    bank = fit(X, 5_000, factors="nystrom", rank=10)
    found, kept, message = grams(bank)
    assert found is bank
    assert message is None


SLOW = [
    (6_000, 1, [GaussianKernel(1.0)], False),
    (100_000, 1, [GaussianKernel(1.0)], True),
    (6_000, 1, [GaussianKernel(1.0)] * 200, True),
    (3_000, 1_000, [GaussianKernel(1.0)], False),  # a matrix product
    (3_000, 1_000, [LaplacianKernel(1.0)], True),  # a sum over columns
]


@pytest.mark.parametrize(("n", "n_columns", "kernels", "slow"), SLOW)
def test_matrices_that_take_long_are_not_computed_at_every_use(
    monkeypatch, n, n_columns, kernels, slow
):
    class Replaced(Exception):
        """Kernels are replaced by factors."""

    def add_factors(*others):
        raise Replaced

    monkeypatch.setattr(storage_plan, "add_factors", add_factors)
    bank = fit(np.ones((n, n_columns), dtype=np.float32), 10**6, kernels)
    if slow:
        with pytest.raises(Replaced):
            grams(bank)
    else:
        assert isinstance(grams(bank)[1], LazyGrams)
