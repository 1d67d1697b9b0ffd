"""Kernels chosen one at a time: the path of models, and the model at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mixnorm._linear import add_products
from mixnorm.kernels import KernelStack
from mixnorm.models.checks import check_floats
from mixnorm.models.kernel import KernelModelBase, add_table_cost, split_rows
from mixnorm.models.path import Path


@dataclass(frozen=True)
class KernelPath(Path):
    r"""The model after each round, as terms that kernels share.

    Scores are :math:`b + \sum_j K_j B_j` (:eq:`sparse-scores`), with :math:`B_j = \sum_t s_{jt}
    T_t` for the terms :math:`T_t` of the rounds so far, one or more for each, and the ``weights``
    :math:`s` of a round, which have a row for each kernel of its support. Rounds of the path have
    ``gap``, the duality gap over all kernels, where the algorithm has one.
    """

    terms: Any = None

    def first(self, size: int) -> KernelPath:
        """Return the path of the first ``size`` rounds."""
        rounds = self.rounds[:size]
        # Terms are in the order of the rounds, so that the first rounds need the first terms.
        n_terms = rounds[-1].weights.shape[1] if rounds else 0
        return replace(self, rounds=rounds, terms=self.terms[:n_terms])

    def blocks(self, size: int) -> list[np.ndarray]:
        """Return the tables :math:`B_j` of the model after ``size`` rounds."""
        weights = self.rounds[size - 1].weights
        terms = self.terms[: weights.shape[1]]
        return [np.tensordot(row, terms, axes=1) for row in weights]

    def intercept(self, size: int) -> np.ndarray:
        """Return the intercept of the model after ``size`` rounds."""
        return self.rounds[size - 1].intercept if size else self.null_intercept

    def check_kernels(self, n_kernels: int) -> tuple[int, int]:
        """Raise unless the parts fit one another; return the numbers of samples and outputs."""
        check_floats(self.terms, (None, None, None), "the terms of the path")
        n_samples, n_outputs = self.terms.shape[1:]
        check_floats(self.null_intercept, (n_outputs,), "the intercept without kernels")
        before: tuple[Any, ...] = ()
        n_terms = 0
        for step in self.rounds:
            support = step.support
            # Prediction takes kernels from the bank by these numbers, and staged scores take the
            # first ones.
            sound = (
                all(type(kernel) is int and 0 <= kernel < n_kernels for kernel in support)
                and len(set(support)) == len(support) > 0
                # A round keeps the kernels of the round before in their order, on which staged
                # scores rely.
                and support[: len(before)] == before
                and step.atom in support
            )
            if not sound:
                raise ValueError("a round has unknown kernels, or lacks some of the round before")
            check_floats(step.weights, (len(support), None), "the weights of a round")
            if not n_terms < step.weights.shape[1] <= len(self.terms):
                raise ValueError("a round has weights for terms that it does not have")
            n_terms = step.weights.shape[1]
            check_floats(step.intercept, (n_outputs,), "the intercept of a round")
            before = support
        return n_samples, n_outputs


@dataclass(frozen=True, eq=False)
class KernelPathModel(KernelModelBase):
    """Chosen kernels with a table for each, and the smaller models that led to them.

    Parameters
    ----------
    path : KernelPath
        The rounds, with targets in the units of the fit, which ``outputs`` converts.
    support, bank, names, raw_rows, inputs, outputs
        As in the base class; the bank has the chosen kernels only.
    """

    path: KernelPath

    @property
    def size(self) -> int:
        """Number of rounds."""
        return len(self.path.rounds)

    @cached_property
    def selected(self) -> np.ndarray:
        """The chosen kernels, in the order in which they came."""
        return np.asarray(self.path.support(self.size), dtype=np.intp)

    @cached_property
    def tables(self) -> np.ndarray:
        """The table of each chosen kernel, in the units of the targets."""
        if not self.path.rounds:
            return np.zeros((0, *self.path.terms.shape[1:]))
        return np.stack(self.path.blocks(self.size)) * self.outputs.unit

    @property
    def intercept(self) -> np.ndarray:
        """The intercept of every score, in the units of the targets."""
        return self.path.intercept(self.size) * self.outputs.unit

    @property
    def null_loss(self) -> float:
        """The training loss without kernels."""
        # Multiplied one after the other: the square of a large unit may overflow where the loss
        # does not.
        return self.path.null_loss * self.outputs.unit * self.outputs.unit

    @cached_property
    def curve(self) -> dict[str, np.ndarray]:
        """One row per round: the kernel, how many there are, losses, gradient, gap and seconds."""
        rounds, unit = self.path.rounds, self.outputs.unit
        return {
            "kernel": np.asarray([step.atom for step in rounds], dtype=np.intp),
            "n_kernels": np.asarray([len(step.support) for step in rounds], dtype=np.intp),
            "loss": np.asarray([step.loss for step in rounds]) * unit * unit,
            "objective": np.asarray([step.objective for step in rounds]) * unit * unit,
            "gradient": np.asarray([step.gradient for step in rounds]) * unit,
            "gap": np.asarray([step.gap for step in rounds]) * unit * unit,
            "seconds": np.asarray([step.seconds for step in rounds]),
        }

    def scores(self, X: object) -> np.ndarray:
        """Return the scores of new rows, or of a stack of their kernels with the training rows."""
        return next(self._score_sizes(X, [self.size]))

    def staged_scores(self, X: object) -> Iterator[np.ndarray]:
        """Yield the scores after 1, 2, ... rounds, for which each kernel is computed once."""
        if self.path.rounds:
            yield from self._score_sizes(X, range(1, self.size + 1))

    def _score_sizes(self, X: object, sizes: Sequence[int]) -> Iterator[np.ndarray]:
        sums, magnitudes = self.sums(X, sizes)
        for found in sums:
            yield self._finish(found, magnitudes)

    def sums(self, X: object, sizes: Sequence[int]) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the sums behind the scores after several numbers of rounds.

        Also returned is, for each row, the largest sum of magnitudes.
        """
        # All sizes in one pass: kernels take long to compute, and tables are cheap to multiply.
        found, k = self._products(X, self._side_by_side(sizes)), self.path.terms.shape[2]
        intercepts = [self.path.intercept(size) for size in sizes]
        sums = [
            found[:, place * k : (place + 1) * k] + intercept
            for place, intercept in enumerate(intercepts)
        ]
        return sums, found[:, -1] + np.max(np.abs(intercepts))

    def _products(self, X: Any, blocks: list[np.ndarray]) -> np.ndarray:
        """Return the sum of kernels times tables, and a last column of magnitudes."""
        if self.bank is None:
            return self._products_of_stack(X, blocks)
        parts = [self.bank.products(rows, blocks, sizes=True) for rows in split_rows(X)]
        return np.concatenate(parts)

    def _products_of_stack(self, X: KernelStack, blocks: list[np.ndarray]) -> np.ndarray:
        found = np.zeros((X.shape[0], blocks[0].shape[1] + 1))
        for kernel, block in zip(self.selected, blocks, strict=False):
            K = X.matrices[kernel][:, self.support].astype(np.float64)
            add_products(found, K, block)
        return found

    def _side_by_side(self, sizes: Sequence[int]) -> list[np.ndarray]:
        """Return each kernel's tables after several numbers of rounds, side by side."""
        n, k = self.path.terms.shape[1:]
        blocks = np.zeros((max(1, len(self.selected)), n, k * len(sizes)))
        for place, size in enumerate(sizes):
            if size:  # a prefix: kernels stay in order
                tables = self.path.blocks(size)
                blocks[: len(tables), :, place * k : (place + 1) * k] = tables
        return list(blocks)

    def truncate(self, size: int) -> Self:
        """Return the model after ``size`` rounds, with the kernels that it needs."""
        path, bank = self.path.first(size), self.bank
        if bank is not None:
            # The kernels of the bank are in the order in which they were chosen.
            bank = bank.only(range(len(path.support(size))))
        return replace(self, path=path, bank=bank)

    def cost(self) -> dict[str, int]:
        """Return kernels, support vectors, numbers stored, and multiplications for a row."""
        n_kernels, n_support = len(self.selected), len(self.support)
        if self.bank is None or not self.path.rounds:
            cost = {"kernels": n_kernels, "support": n_support, "floats": 0, "multiplications": 0}
        else:
            cost = self.bank.cost(np.ones(n_kernels), n_support)
        return add_table_cost(cost, self.tables)

    def check(self, max_bytes: int) -> None:
        """Raise unless ``scores`` can work with the parts, which may come from anybody's file."""
        n_support, n_outputs = self.path.check_kernels(len(self.names))
        self.outputs.check(n_outputs)
        self._check_rows(max(1, len(self.selected)), n_support, max_bytes, n_support)
