"""How the kernels of a fit are kept, so that all of them stays within the memory of a bank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mixnorm.kernels.banks.build import add_factors
from mixnorm.kernels.banks.fitted import FittedBank
from mixnorm.kernels.banks.rows import shape_of
from mixnorm.kernels.grams.base import Grams
from mixnorm.kernels.grams.memory import in_words

# Seconds that computing matrices at every use may take, and about how many uses there are.
_PATIENCE, _USES = 120.0, 30
# Seconds for an entry of half a matrix: of a kernel, and of a metric that sums over columns.
_PER_KERNEL, _PER_COLUMN = 2e-9, 1e-9


def grams_within(
    bank: FittedBank, beside: int, weight: Any, generator: np.random.Generator
) -> tuple[FittedBank, Grams, str | None]:
    """Return the Gram matrices that a machine works on, after the bank that they are of.

    The last is a message for the user, where kernels had to be replaced, or None.

    All matrices are stored where they fit into the memory of the bank together with what the
    machine needs. Else as many as fit are, and the others are computed at every use, if that is
    quick enough. Else kernels are replaced by factors of low rank, on landmarks: also where the
    matrices of the machine alone do not fit.

    Parameters
    ----------
    bank : FittedBank
        The kernels on the training rows.
    beside : int
        Bytes that the machine needs beside the kernels, unless these have factors.
    weight : array of shape (n_samples,), optional
        Positive weights of the rows, by which landmarks are drawn.
    generator : Generator
        Draws the landmarks.
    """
    size = bank.n_samples**2 * bank.dtype.itemsize
    left = bank.memory - beside
    if bank.factors is not None or bank.n_kernels * size <= left:
        return bank, bank.grams(), None
    if left > 0 and _seconds(bank, left // size) <= _PATIENCE:
        return bank, replace(bank, memory=left).grams(), None
    factored = replace(bank)
    add_factors(factored, "nystrom", None, weight, generator)
    return factored, factored.grams(), _message(factored, beside + bank.n_kernels * size)


def _message(bank: FittedBank, needed: int) -> str:
    rank = max(bank.ranks(range(bank.n_kernels)))
    return (
        f"Kernel matrices of {bank.n_samples} rows (number of kernels: {bank.n_kernels}) and a "
        f"machine on them need {in_words(needed)}, more than memory={in_words(bank.memory)}, or "
        f"take long to compute at every use. Each kernel is replaced by one of rank {rank}, as "
        f"factors='nystrom' makes them. For exact kernels set memory={in_words(1.01 * needed)!r}, "
        "if there is so much, or give fewer rows."
    )


def _seconds(bank: FittedBank, n_stored: int) -> float:
    """Return about how long it takes to compute the matrices that are not stored, at every use."""
    pairs = 0.5 * bank.n_samples**2
    found = _PER_KERNEL * max(0, bank.n_kernels - n_stored)
    shared: set[tuple[int, Any]] = {
        (group, kernel.metric) for group, kernel in zip(bank.group_of, bank.kernels, strict=True)
    }
    for group, metric in shared:
        slow = metric not in ("dot", "sqeuclidean")
        found += _PER_KERNEL + slow * _PER_COLUMN * shape_of(bank.rows[group])[1]
    return _USES * pairs * found
