"""The choice how the kernels of a fit are kept, within the memory of a bank."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixnorm._memory import format_bytes
from mixnorm.kernels.banks.build import add_factors
from mixnorm.kernels.banks.fitted import FittedBank
from mixnorm.kernels.banks.rows import shape_of
from mixnorm.kernels.grams.base import Grams


@dataclass(frozen=True)
class RecomputeSettings:
    """When matrices that do not fit into memory are computed again at every use.

    Attributes
    ----------
    most_seconds : float
        Most seconds that a fit may spend on computing matrices again.
    uses : int
        About how often a fit uses every matrix.
    seconds_per_kernel, seconds_per_column : float
        Seconds for one entry of a kernel, and for one column in an entry of a metric that sums over
        columns; of a usual processor, since the choice needs only the order of magnitude.
    """

    most_seconds: float = 120.0
    uses: int = 30
    seconds_per_kernel: float = 2e-9
    seconds_per_column: float = 1e-9


_RECOMPUTE = RecomputeSettings()


def grams_within(
    bank: FittedBank, beside: int, weight: np.ndarray | None, generator: np.random.Generator
) -> tuple[FittedBank, Grams, str | None]:
    """Return a bank, its Gram matrices for a machine, and a message for the user or None.

    If all matrices fit into the memory of the bank, together with what the machine needs, they are
    stored. Otherwise as many as fit are stored and the others are computed at every use, if that is
    fast enough. Otherwise kernels are replaced by low-rank factors on landmarks, and the message
    says so.

    Parameters
    ----------
    bank : FittedBank
        The kernels on the training rows.
    beside : int
        Bytes that the machine needs in addition to the kernels, unless they have factors.
    weight : array of shape (n_samples,), optional
        Positive weights of the rows, by which landmarks are drawn.
    generator : Generator
        Draws the landmarks.
    """
    size = bank.n_samples**2 * bank.dtype.itemsize
    left = bank.memory - beside
    if bank.factors is not None or bank.n_kernels * size <= left:
        return bank, bank.grams(), None
    # Exact kernels are preferred as long as computing them again takes minutes at most.
    if left > 0 and _estimate_seconds(bank, left // size) <= _RECOMPUTE.most_seconds:
        return bank, replace(bank, memory=left).grams(), None
    factored = replace(bank)
    add_factors(factored, "nystrom", None, weight, generator)
    return factored, factored.grams(), _write_message(factored, beside + bank.n_kernels * size)


def _write_message(bank: FittedBank, needed: int) -> str:
    rank = max(bank.ranks(range(bank.n_kernels)))
    limit, enough = format_bytes(bank.memory), format_bytes(1.01 * needed)
    return (
        f"Kernel matrices of {bank.n_samples} rows (number of kernels: {bank.n_kernels}) and a "
        f"machine on them need {format_bytes(needed)}, more than memory={limit}, or take long to "
        f"compute at every use. Each kernel is replaced by one of rank {rank}, as with "
        f"factors='nystrom'. For exact kernels set memory={enough!r}, if the machine has as much, "
        "or give fewer rows."
    )


def _estimate_seconds(bank: FittedBank, n_stored: int) -> float:
    """Estimate the seconds for computing the matrices that are not stored, over all uses."""
    pairs = 0.5 * bank.n_samples**2
    found = _RECOMPUTE.seconds_per_kernel * max(0, bank.n_kernels - n_stored)
    shared = {
        (group, kernel.metric) for group, kernel in zip(bank.group_of, bank.kernels, strict=True)
    }
    for group, metric in shared:
        # Inner products and squared distances are matrix products, whose time per column hardly
        # counts.
        slow = metric not in ("dot", "sqeuclidean")
        found += (
            _RECOMPUTE.seconds_per_kernel
            + slow * _RECOMPUTE.seconds_per_column * shape_of(bank.rows[group])[1]
        )
    return _RECOMPUTE.uses * pairs * found
