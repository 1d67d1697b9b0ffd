"""Kernels as atoms: choosing a kernel offers all functions in its space."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mixnorm._array import Array
from mixnorm._chunks import blocks
from mixnorm.kernels import Grams, Sketch, pivoted_factor
from mixnorm.pools.base import Excluded, Inputs, Offers, PreparedPool

# After a sketch, kernels are scored exactly: this number at a time, and at most this number. An
# exact score reads a matrix of the kernel, so that one kernel more than needed is what a step may
# waste.
_KERNELS_AT_A_TIME = 2
_MOST_RESCORED = 96
# The largest relative error of the sketch seen so far is multiplied by this number; the bound that
# results is never below the least one.
_ERROR_FACTOR = 3.0
_LEAST_ERROR = 1e-4

#: The rules that score kernels. The greedy engine calls the functional norm ``"l2"``, because it is
#: the l2 norm of the gradient in the weights of any factor of the kernel.
KERNEL_RULES = ("functional", "empirical", "l2")


class KernelPool(PreparedPool):
    r"""The kernels of a bank, bound to training rows, as atoms for a greedy engine.

    For the gradient :math:`G` of a loss in the scores, a kernel :math:`K_j` is scored by the norm
    of its part of the functional gradient: in its own space, :math:`\sqrt{\mathrm{tr}\, G^\top K_j
    G}`, or on the data, :math:`\bigl(\sum_i w_i \|(K_j G)_i\|^2\bigr)^{1/2}`
    (:eq:`functional-gradient`).

    Parameters
    ----------
    grams : Grams
        The matrices of the training rows: stored, computed at use, or as factors.
    weight : array of shape (n_samples,)
        Weights of the samples, which sum to one.
    sketch : Sketch, optional
        Approximations of low rank. All kernels are scored by these, and the leaders exactly; the
        number of leaders grows until no other kernel can be better, judging by the errors seen so
        far. With None, all kernels are scored exactly in every scan.
    matrix : callable, optional
        ``matrix(j)`` is the matrix of one kernel in float64, where it is more exact than ``grams``.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.kernels import KernelStack
    >>> K = np.stack([np.eye(2), np.ones((2, 2))])
    >>> pool = KernelPool(KernelStack(K), np.full(2, 0.5))
    >>> pool.top(np.array([[0.5], [0.5]]), "functional", 1, frozenset())
    [(1, 1.0)]
    """

    tells_inputs = False

    def __init__(
        self,
        grams: Grams,
        weight: np.ndarray,
        sketch: Sketch | None = None,
        matrix: Callable[[int], np.ndarray] | None = None,
    ) -> None:
        self.grams = grams
        self.weight = np.asarray(weight, dtype=np.float64)
        self.sketch = sketch
        self.n_usable = grams.n_kernels
        self._matrix = matrix
        #: Number of kernels scored exactly, in all scans.
        self.n_exact = 0

    def top(
        self, residual: Array, rule: str, m: int, exclude: Excluded, inputs: Inputs = None
    ) -> Offers:
        """Return up to ``m`` kernels with their scores, best first, none of them excluded."""
        if rule not in KERNEL_RULES:
            raise ValueError(
                f"kernels cannot be scored by rule={rule!r}; choose one of {list(KERNEL_RULES)}."
            )
        if inputs is not None:
            raise ValueError("the columns that kernels read cannot be limited; limit the bank.")
        G = np.asarray(residual, dtype=np.float64)
        if G.shape[:1] != self.weight.shape or G.ndim != 2:
            raise ValueError(
                f"the residual has shape {G.shape}, but must have {len(self.weight)} rows, one for "
                "each sample, and a column for each output."
            )
        free = np.asarray([j for j in range(self.n_usable) if j not in exclude], dtype=np.intp)
        if self.sketch is None:
            order, scores = free, self.scores(G, rule, free)
        else:
            functional, empirical = self.sketch.norms(G)
            guesses = (empirical if rule == "empirical" else functional)[free]
            order, scores = self._rescore(G, rule, m, free, guesses)
        best = np.argsort(-scores, kind="stable")[:m]
        return [(int(order[at]), float(scores[at])) for at in best]

    def scores(
        self, residual: np.ndarray, rule: str, which: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """Return the exact scores of some kernels for a residual."""
        which = np.asarray(which)
        self.n_exact += len(which)
        # Energies of all kernels at once read each stored matrix once, and half of it only.
        if len(which) == self.n_usable and rule != "empirical":
            return np.asarray(np.sqrt(np.maximum(self.grams.energies(residual), 0.0)))
        found = np.empty(len(which))
        # Products of a block of kernels take 32 MB.
        room = max(1, 2**22 // max(1, residual.size))
        for some in blocks(len(which), room):
            products = np.asarray(
                self.grams.products(residual, which[some].tolist()), dtype=np.float64
            )
            if rule == "empirical":
                squares = np.einsum("mik,mik,i->m", products, products, self.weight)
            else:
                squares = np.einsum("mik,ik->m", products, residual)
            found[some] = squares
        return np.asarray(np.sqrt(np.maximum(found, 0.0)))

    def _rescore(
        self, residual: np.ndarray, rule: str, m: int, free: np.ndarray, guesses: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Score exactly the kernels whose guesses may belong to the best ``m``.

        Guesses are approximate scores (:eq:`stand-in-norms`), and exact scores follow in their
        order.
        """
        order = np.argsort(-guesses, kind="stable")
        exact = np.empty(0)
        error, most = _LEAST_ERROR, max(_MOST_RESCORED, 4 * m)
        while len(exact) < min(len(free), most):
            done = len(exact)
            if done >= max(m, _KERNELS_AT_A_TIME):
                bar = float(np.sort(exact)[-m])
                # The next guess is the largest left. If even that is too small by more than the
                # errors seen so far, no other kernel can be among the best.
                if guesses[order[done]] * (1.0 + error) < bar:
                    break
            some = order[done : done + _KERNELS_AT_A_TIME]
            found = self.scores(residual, rule, free[some])
            exact = np.concatenate([exact, found])
            seen = np.abs(found - guesses[some]) / np.maximum(guesses[some], 1e-300)
            error = max(error, _ERROR_FACTOR * float(np.max(seen)))
        return free[order[: len(exact)]], exact

    def matrix(self, atom: int) -> np.ndarray:
        """Return the matrix of a kernel in float64."""
        if self._matrix is not None:
            return np.asarray(self._matrix(atom))
        return self.grams.combine(np.arange(self.n_usable) == atom, dtype=np.float64)

    def columns(self, atom: int) -> np.ndarray:
        """Return the columns of a factor of a kernel, one per row: ``(rank, n_samples)``."""
        return np.ascontiguousarray(self.factor(atom)[0].T)

    def factor(self, atom: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return a factor of a kernel, and the rows at which it is triangular, or None."""
        if self.grams.factors is not None:
            return np.asarray(self.grams.factors[atom], dtype=np.float64), None
        return pivoted_factor(self.matrix(atom))

    def largest(self) -> float:
        """Return the largest value of a kernel between a row and itself."""
        return float(np.max(self.grams.diagonals(), initial=-math.inf))
