"""Mirror descent under a norm of kernels, in coefficients of the samples met so far.

The sum of gradients of kernel ``m`` is ``theta_m = sum_i A_i phi_m(x_i)``, and the function played
is ``sum_m weights_m theta_m``. The mirror map is a weight for each kernel, which depends on the
sizes of all ``theta_m`` (:eq:`mirror-kernels`). The objective is that of :class:`KernelPenalty`
with offsets, divided by ``C`` and the number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mixnorm._chunks import chunks
from mixnorm.engines.mirror import kernels_jit as jit
from mixnorm.engines.multikernel import KernelPenalty, machine_jit
from mixnorm.kernels import Grams, KernelStack
from mixnorm.models import KernelModel, check_floats


@dataclass(frozen=True, eq=False)
class KernelLearnerState:
    """The state from which a :class:`KernelLearner` continues: its attributes.

    Parameters
    ----------
    q, cost, offsets, squares, rounds, total, mistakes
        As in :class:`KernelLearner`.
    lost : float
        The sum of the losses of samples when they were met.
    met : int
        Number of rows met, including those of weight zero.
    """

    q: float
    cost: float
    offsets: np.ndarray
    squares: np.ndarray
    rounds: float
    total: float
    mistakes: int
    lost: float
    met: int

    def check(self, model: KernelModel) -> None:
        """Raise ValueError unless learning can continue; state and model may be from a file."""
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
    """A learner from samples one after the other, in the given order.

    Parameters
    ----------
    q : float
        Dual exponent on the kernels' blocks.
    offsets : array of shape (n_kernels,)
        The cost per size of the block of each kernel.
    cost : float
        ``C``. The strength of the norm is one over ``C`` and over the number of samples.
    n_classes : int
        Number of classes.

    Attributes
    ----------
    squares : ndarray of shape (n_kernels,)
        Squared norms of the sums of gradients.
    rounds : float
        The importance of all samples learned from, each time that they were.
    total : float
        The importance of all samples, each counted once.
    mistakes : int
        Samples whose class was predicted wrongly when they were met.
    """

    def __init__(self, q: float, offsets: np.ndarray, cost: float, n_classes: int) -> None:
        self.q, self.cost, self.n_classes = float(q), float(cost), n_classes
        self.offsets = np.asarray(offsets, dtype=np.float64)
        self.squares = np.zeros(len(self.offsets))
        self.rounds, self.total, self.mistakes, self.lost = 0.0, 0.0, 0, 0.0

    def weights(self) -> np.ndarray:
        """Return the present weights of the kernels."""
        # Before the first round there is nothing to divide by, and every kernel has weight zero.
        found = np.zeros(len(self.squares))
        if self.rounds > 0.0:
            scale = self.rounds / (self.total * self.cost)
            jit.link(self.squares, self.offsets, self.q, scale, self.rounds, found)
        return found

    def state(self, met: int) -> KernelLearnerState:
        """Return the state from which learning continues, after ``met`` rows."""
        counts = (float(self.rounds), float(self.total), int(self.mistakes), float(self.lost))
        return KernelLearnerState(
            self.q, self.cost, self.offsets, self.squares.copy(), *counts, met
        )

    @classmethod
    def from_state(cls, state: KernelLearnerState, n_classes: int) -> Self:
        """Return a learner that continues from a state."""
        made = cls(state.q, state.offsets, state.cost, n_classes)
        made.squares = np.array(state.squares, dtype=np.float64)  # a copy, to be changed
        made.rounds, made.total = float(state.rounds), float(state.total)
        made.mistakes, made.lost = state.mistakes, float(state.lost)
        return made

    def begin(
        self,
        grams: KernelStack,
        labels: np.ndarray,
        importance: np.ndarray,
        *,
        growing: bool = False,
    ) -> Samples:
        """Return new samples to pass over.

        With ``growing`` there is a single pass, and each sample counts from when it is met.
        """
        # Samples of several passes count once: the strength of the norm is per sample, not per
        # round.
        if not growing:
            self.total += float(np.sum(importance))
        return Samples(grams, labels, importance, self.n_classes, growing)

    def learn(self, samples: Samples, order: np.ndarray) -> None:
        """Pass over samples in the given order."""
        n_kernels, _, n_samples = samples.sums.shape
        # The loop continues from the numbers that it returned, so that a pass may go in parts and
        # an interrupt gets through between two of them.
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
        """Compute the squared sizes again from the sums of all samples, as added changes drift."""
        # |theta|^2 is the sum of the coefficients times the inner products (:eq:`mirror-sizes`).
        # Sums in single precision are added up in double.
        self.squares = np.maximum(
            np.einsum("mcn,nc->m", samples.sums, samples.A, dtype=np.float64), 0.0
        )

    def objective_and_gap(self, samples: Samples) -> tuple[float, float]:
        """Return the objective and a bound on its distance from the optimum.

        The bound (:eq:`mirror-kernel-gap`) holds after whole passes over all samples. Then every
        sample was met equally often, and the coefficients, divided by that number, are dual
        variables.
        """
        weights = self.weights()
        F = np.ascontiguousarray(np.einsum("m,mcn->cn", weights, samples.sums, dtype=np.float64))
        hinges = np.empty(F.shape[1])
        machine_jit.compute_hinges(F, samples.labels, hinges)
        share = samples.importance / self.total
        loss = float(np.sum(share * hinges))
        # The penalty's offsets are per unit of the strength, which multiplies all of it.
        strength = 1.0 / (self.total * self.cost)
        penalty = KernelPenalty(self.q, np.ones_like(self.offsets), self.offsets / strength)
        objective = strength * penalty.value(penalty.sizes(weights, self.squares)) + loss
        # The norm's part of the gap cancels, because the function played is the link of the sum of
        # gradients: what is left needs scores and coefficients only.
        own = samples.A[np.arange(len(samples.A)), samples.labels]
        inner = float(np.sum(F.T * samples.A) - np.sum(own)) / self.rounds
        return float(objective), max(0.0, loss + inner)


class Samples:
    """Samples of one pass, with their kernels and labels.

    ``sums`` of shape ``(n_kernels, n_classes, n_samples)`` are their inner products with the sums
    of gradients. :meth:`add_past` adds the gradients of samples met before.
    """

    def __init__(
        self,
        grams: KernelStack,
        labels: np.ndarray,
        importance: np.ndarray,
        n_classes: int,
        growing: bool = False,
    ) -> None:
        from numba.typed import List

        # A typed list, as the compiled loop cannot take a Python list of arrays. Rows are read one
        # at a time, and must lie together in memory.
        self.matrices = List([np.ascontiguousarray(matrix) for matrix in grams.matrices])
        self.growing = growing
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        self.importance = np.ascontiguousarray(importance, dtype=np.float64)
        shape = (grams.n_kernels, n_classes, len(labels))
        self.sums = np.zeros(shape, dtype=grams.dtype)
        self.A = np.zeros((len(labels), n_classes))

    def add_past(self, between: Grams, A: np.ndarray) -> None:
        """Add the inner products with the gradients of other samples."""
        products = between.products(A)  # (n_kernels, n_samples, n_classes)
        self.sums += np.transpose(products, (0, 2, 1))
