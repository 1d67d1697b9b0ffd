"""Mirror descent under a norm of kernels, in the coefficients of the samples met.

The sum of gradients of kernel ``m`` is ``theta_m = sum_i A_i phi_m(x_i)``, and the function played
is ``sum_m weights_m theta_m``: the mirror map is a weight for each kernel, which depends on the
sizes of all ``theta_m``. The objective is that of :class:`KernelPenalty` with offsets, divided by
``C`` and the number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixnorm._chunks import chunks
from mixnorm.engines.mirror import kernels_jit as jit
from mixnorm.engines.mirror.plan import Array
from mixnorm.engines.multikernel import machine_jit
from mixnorm.models import KernelModel, check_floats


@dataclass(frozen=True, eq=False)
class KernelLearnerState:
    """What a :class:`KernelLearner` goes on from; its attributes, as they stand.

    Parameters
    ----------
    q, cost, offsets, squares, rounds, total, mistakes
        As in :class:`KernelLearner`.
    lost : float
        The sum of losses of samples when they were met.
    met : int
        Rows that came, with those that count for nothing.
    """

    q: float
    cost: float
    offsets: Array
    squares: Array
    rounds: float
    total: float
    mistakes: int
    lost: float
    met: int

    def check(self, model: KernelModel) -> None:
        """Raise unless learning can go on with this model; the parts may be a stranger's."""
        n_kernels = len(model.kernel_weights)
        for name in ("offsets", "squares"):
            values = getattr(self, name)
            check_floats(values, (n_kernels,), f"{name} of the stream")
            if not np.all(values >= 0.0):
                raise ValueError(f"{name} of the stream must not be negative")
        sound = self.q >= 2.0 and all(value > 0.0 for value in (self.cost, self.rounds, self.total))
        if not sound or self.met < len(model.support) or model.bank is None:
            raise ValueError("the numbers of the stream are out of range")


class KernelLearner:
    """Learns from samples one after the other, in the order given.

    Parameters
    ----------
    q : float
        Dual exponent on the kernels' blocks.
    offsets : array of shape (n_kernels,)
        What the size of each block costs.
    cost : float
        ``C``: the strength of the norm is one over this and the samples.
    n_classes : int
        Number of classes.

    Attributes
    ----------
    squares : ndarray of shape (n_kernels,)
        Squared sizes of the sums of gradients.
    rounds : float
        Samples learned from, by their importance; a sample counts each time.
    total : float
        The same, but each sample counts once.
    mistakes : int
        Samples whose class was predicted wrong when they were met.
    """

    def __init__(self, q: float, offsets: Array, cost: float, n_classes: int) -> None:
        self.q, self.cost, self.n_classes = float(q), float(cost), n_classes
        self.offsets = np.asarray(offsets, dtype=np.float64)
        self.squares = np.zeros(len(self.offsets))
        self.rounds, self.total, self.mistakes, self.lost = 0.0, 0.0, 0, 0.0

    def weights(self) -> Array:
        """Return the weights of the kernels now."""
        found = np.zeros(len(self.squares))
        if self.rounds > 0.0:
            scale = self.rounds / (self.total * self.cost)
            jit.link(self.squares, self.offsets, self.q, scale, self.rounds, found)
        return found

    def state(self, met: int) -> KernelLearnerState:
        """Return what learning goes on from, after so many rows."""
        counts = (float(self.rounds), float(self.total), int(self.mistakes), float(self.lost))
        return KernelLearnerState(
            self.q, self.cost, self.offsets, self.squares.copy(), *counts, met
        )

    @classmethod
    def going_on(cls, state: KernelLearnerState, n_classes: int) -> Self:
        """Return a learner that goes on from where another stopped."""
        made = cls(state.q, state.offsets, state.cost, n_classes)
        made.squares = np.array(state.squares, dtype=np.float64)  # a copy, to be changed
        made.rounds, made.total = float(state.rounds), float(state.total)
        made.mistakes, made.lost = state.mistakes, float(state.lost)
        return made

    def begin(
        self, grams: Any, labels: Array, importance: Array, *, growing: bool = False
    ) -> Samples:
        """Return samples to pass over, which are new.

        With ``growing`` they are passed over once, and count as they are met.
        """
        if not growing:
            self.total += float(np.sum(importance))
        return Samples(grams, labels, importance, self.n_classes, growing)

    def learn(self, samples: Samples, order: Array) -> None:
        """Pass over samples in an order."""
        n_kernels, _, n_samples = samples.sums.shape
        for part in chunks(len(order), 2 * n_kernels * n_samples):
            self.rounds, self.total, lost, mistakes = jit.one_pass(
                samples.matrices,
                samples.sums,
                samples.labels,
                samples.importance,
                order[part],
                self.offsets,
                self.q,
                self.cost,
                self.rounds,
                self.total,
                samples.growing,
                self.squares,
                samples.A,
            )
            self.lost += lost
            self.mistakes += mistakes

    def refresh(self, samples: Samples) -> None:
        """Compute the sizes anew from sums that speak for all samples; additions drift."""
        self.squares = np.maximum(
            np.einsum("mcn,nc->m", samples.sums, samples.A, dtype=np.float64), 0.0
        )

    def objective_and_gap(self, samples: Samples) -> tuple[float, float]:
        """Return the objective and how far above the optimum it can be.

        Holds after whole passes over all samples: then every sample was met equally often, and the
        coefficients, divided by that, are dual variables.
        """
        weights = self.weights()
        F = np.ascontiguousarray(np.einsum("m,mcn->cn", weights, samples.sums, dtype=np.float64))
        hinges = np.empty(F.shape[1])
        machine_jit.compute_hinges(F, samples.labels, hinges)
        share = samples.importance / self.total
        loss = float(np.sum(share * hinges))
        sizes = weights * np.sqrt(self.squares)
        p = 1.0 if np.isinf(self.q) else self.q / (self.q - 1.0)
        largest = float(np.max(sizes))
        norm = largest * np.sum((sizes / largest) ** p) ** (1 / p) if largest > 0.0 else 0.0
        strength = 1.0 / (self.total * self.cost)
        objective = 0.5 * strength * norm**2 + float(np.sum(self.offsets * sizes)) + loss
        own = samples.A[np.arange(len(samples.A)), samples.labels]
        inner = float(np.sum(F.T * samples.A) - np.sum(own)) / self.rounds
        return float(objective), max(0.0, loss + inner)


class Samples:
    """Samples that are passed over together: their kernels, and what is known of them.

    ``sums`` of shape ``(n_kernels, n_classes, n_samples)`` are inner products with the sums of
    gradients; those of samples met before are added by :meth:`add_past`.
    """

    def __init__(
        self, grams: Any, labels: Array, importance: Array, n_classes: int, growing: bool = False
    ) -> None:
        from numba.typed import List

        self.matrices = List([np.ascontiguousarray(matrix) for matrix in grams.matrices])
        self.growing = growing
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        self.importance = np.ascontiguousarray(importance, dtype=np.float64)
        shape = (grams.n_kernels, n_classes, len(labels))
        self.sums = np.zeros(shape, dtype=grams.dtype)
        self.A = np.zeros((len(labels), n_classes))

    def add_past(self, between: Any, A: Array) -> None:
        """Add the inner products with what was learned from other samples."""
        products = between.products(A)  # (n_kernels, n_samples, n_classes)
        self.sums += np.transpose(products, (0, 2, 1))
