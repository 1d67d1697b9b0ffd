"""Weights of kernels, learned together with the machine on their sum until a duality gap is small.

:func:`solve` minimises a penalty of block sizes (:class:`KernelPenalty`) plus the losses of joint
machines: with the multi-class hinge loss or its square, or with the squared loss. With fixed
weights of the kernels that is a machine on one kernel (coordinate ascent with Newton steps). The
next weights are those of the quadratic penalty that touches the true one at its solution
(:eq:`touching-weights`). Weights are first learned on a part of the rows, where that is cheap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm.engines._core.result import Result
from mixnorm.engines.multikernel import reduced_jit
from mixnorm.engines.multikernel.machine import HingeTarget, SquaredTarget
from mixnorm.engines.multikernel.penalty import KernelPenalty
from mixnorm.kernels import Grams

# A machine is solved to this part of the tolerance, or of the present gap where that is larger.
_PART_OF_TOLERANCE, _PART_OF_GAP = 0.5, 0.1
# Factors of the losses of rows lie between this and its inverse: their squares must be finite.
_LARGEST_COST = 1e30
_LEAST_TOLERANCE = 1e-12  # rounding hides smaller relative gaps
# Without offsets the gap is also at most this part of the possible gain, unless the latter is below
# the second part of the loss.
_PART_OF_GAIN, _GAIN_FLOOR = 0.5, 1e-9
_LEAST_START = 1e-6  # of the largest weight: a weight of zero would stay zero
_MOST_SHRINKAGE = 1e-3  # the least factor of a weight from one iteration to the next
_STEP_FACTOR = 1.6  # times the step to the touching weights, in logarithms
# The reduced problem combines so many dual variables. Its rounds are enough for gaps of 1 %; there
# are more of them for tolerances below ``_TIGHT``.
_MOST_COMBINED, _ROUNDS, _MORE_ROUNDS, _TIGHT = 6, 50, 1000, 1e-3
# At the end, weights below these parts of the largest are left out if the gap allows it.
_NEGLIGIBLE = (1e-2, 1e-3, 1e-5)
# The least number of rows of a first level, and the factor from one level to the next.
_FIRST_ROWS, _LEVEL_FACTOR = 150, 3
_MOST_SUBSET_ITERATIONS = 30  # on a part of the rows
# The search ends after so many machines that missed their gap without lowering the total gap to
# this part.
_MOST_FAILURES, _FAILURE_RATIO = 3, 0.7
_ENTRY_ERROR = 4.0  # error of entries of kernels, in units of the precision
_COARSE = 3.0  # times the tolerance on a part of the rows, where weights are hard to learn


@dataclass(frozen=True, kw_only=True)
class KernelSolution(Result):
    """Weights of kernels and a machine; iterations are machines, the history has relative gaps.

    Attributes
    ----------
    duals : ndarray of shape (n_samples, n_outputs)
        The scores are ``sum_m weights_m K_m @ duals``.
    weights : ndarray of shape (n_kernels,)
        Weights of the kernels, none negative.
    energies : ndarray of shape (n_kernels,)
        The sums of ``duals_i . duals_j K_ij`` for every kernel.
    coefs : ndarray of shape (n_columns, n_outputs), or None
        Weights of the columns of the factors of a single kernel, if these give the scores more
        exactly than ``duals``.
    """

    duals: np.ndarray
    weights: np.ndarray
    energies: np.ndarray
    coefs: np.ndarray | None = None


def solve(
    grams: Grams,
    target: HingeTarget | SquaredTarget,
    penalty: KernelPenalty,
    *,
    tol: float = 1e-2,
    max_iter: int = 200,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    on_iteration: Callable[[int, float], None] | None = None,
) -> KernelSolution:
    """Learn weights of kernels and a machine on their sum.

    Parameters
    ----------
    grams : Grams
        The kernel matrices of the samples, positive semi-definite.
    target : HingeTarget or SquaredTarget
        Labels or outputs, and the factor of each sample's loss.
    penalty : KernelPenalty
        The penalty of the blocks of weights.
    tol : float
        Relative gap to stop at: the gap divided by the objective. Without offsets in the penalty,
        the gap is also at most half of the gain over scores of zero.
    max_iter : int
        Most machines to solve on all rows.
    start : (weights, duals), optional
        Where to start; the dual variables may come from other weights of the samples. By default
        the start is learned on a part of the rows.
    on_iteration : callable, optional
        Called with the number of iterations and the relative gap. A keyboard interrupt that it
        raises ends the work like any other.

    Returns
    -------
    KernelSolution

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.kernels import KernelStack
    >>> points = np.array([[-1.0], [-0.9], [0.9], [1.0]])
    >>> stack = KernelStack([points @ points.T, np.eye(4)])
    >>> stack.check()
    >>> target = HingeTarget(np.array([0, 0, 1, 1]), np.full(4, 10.0), 2, squared=False)
    >>> found = solve(stack, target, KernelPenalty.of_weights(1.0, np.ones(2)), tol=1e-6)
    >>> np.round(found.weights, 3)
    array([1., 0.])
    """
    check_row_costs(target.caps, "C times the weight of a row", "change C or sample_weight")
    if max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r} must be at least 1.")
    search = _Alternation(grams, target, penalty, tol, on_iteration)
    try:
        search.run(start, max_iter)
    except KeyboardInterrupt:
        if not search.history:
            raise
        return replace(search.best, interrupted=True)
    return search.prune(search.best)


def check_row_costs(costs: np.ndarray, what: str, remedy: str) -> None:
    """Raise unless the factors of losses have finite squares and inverses, or are zero."""
    stray = costs[(costs > 0.0) & ~((costs >= 1.0 / _LARGEST_COST) & (costs <= _LARGEST_COST))]
    if len(stray):
        raise ValueError(
            f"{what} is {stray[0]:.3g}, but must lie between {1.0 / _LARGEST_COST:g} and "
            f"{_LARGEST_COST:g}, or be zero; {remedy}."
        )


@dataclass(eq=False)
class _Alternation:
    """The alternation between weights and machine."""

    grams: Grams
    target: HingeTarget | SquaredTarget
    penalty: KernelPenalty
    tol: float
    on_iteration: Callable[[int, float], None] | None = None

    def __post_init__(self) -> None:
        self.tol = max(self.tol, _LEAST_TOLERANCE)
        self.machine = self.target.machine(self.grams)
        self.weights = np.ones(self.grams.n_kernels)
        self.bound = -math.inf  # the best dual value
        self.least = math.inf  # the best objective
        self.nothing: float = self.target.loss(np.zeros(self.machine.A.shape[::-1]))
        self.expected: float | None = None  # the objective on a part of the rows
        self.iterations, self.inner = 0, _PART_OF_TOLERANCE
        self.further, self.last = _STEP_FACTOR, math.inf
        self.history: list[float] = []
        self._found: dict[str, Any]  # the best point
        self._kept: list[tuple[np.ndarray, Any]] = []
        self._cross = np.zeros((len(self.weights), 0, 0))
        self._bend = np.zeros((0, 0))
        # Machines in a row that did not reach their gap, nor lowered that of all.
        self._failures = 0

    @property
    def finished(self) -> bool:
        """Whether the tolerance is met."""
        return bool(self.history) and self.least - self.bound <= self.enough

    @property
    def best(self) -> KernelSolution:
        """The best solution so far; the bound may have become better since it was found."""
        return KernelSolution(
            **self._found,
            objective=self.least,
            gap=max(0.0, self.least - self.bound),
            iterations=self.iterations,
            converged=self.finished,
            history=tuple(self.history),
        )

    @property
    def enough(self) -> float:
        """The gap to stop at.

        If samples count little, the gain over no model may be less than the tolerance; then half of
        the gain is asked for. With offsets there may be nothing to gain.
        """
        enough = self.tol * self.least
        if np.any(self.penalty.offsets):
            return enough
        return min(
            enough, max(_PART_OF_GAIN * (self.nothing - self.bound), _GAIN_FLOOR * self.nothing)
        )

    def run(self, start: tuple[np.ndarray, np.ndarray] | None, max_iter: int) -> None:
        """Iterate until the gap is closed, or several machines bring no progress by rounding."""
        self._begin(start)
        while self.iterations < max_iter and not self.finished and self._failures < _MOST_FAILURES:
            self.advance()

    def _begin(self, start: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Set weights and dual variables to start from."""
        if start is not None and np.any(start[0]):  # weights of zero would stay zero
            weights = np.array(start[0], dtype=np.float64)
            self.weights = np.maximum(weights, _LEAST_START * np.max(weights))
            self.machine.A = self.target.project(start[1])
        elif self.penalty.fixed:
            self.weights = self.penalty.weights(np.ones(len(self.weights)))
        else:
            self.weights, self.machine.A = self._learn_on_subset()

    def _learn_on_subset(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and dual variables learned on a part of the rows, which count more."""
        n = len(self.target)
        size = n // _LEVEL_FACTOR
        if size < _FIRST_ROWS:
            return self._guess()
        rows = np.sort(np.random.default_rng(n).choice(n, size, replace=False))
        factor = n / size
        tol = self.tol * (_COARSE if self.penalty.sharp else 1.0)
        grams, target = self.grams.take(rows), self.target.take(rows, factor)
        part = _Alternation(grams, target, self.penalty, tol)
        part.run(None, _MOST_SUBSET_ITERATIONS)
        self.expected = part.least
        duals = np.zeros_like(self.machine.A)
        duals[rows] = part.machine.A / factor
        return part.weights, duals

    def _guess(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the best multiple of simple dual variables, and the weights for it."""
        duals = self.target.guess()
        energies = self.grams.energies(duals)
        lengths = 2.0 ** np.arange(-30, 1)
        values = [
            self.target.gain(t * duals) - self.penalty.conjugate(t * t * energies) for t in lengths
        ]
        t = float(lengths[int(np.argmax(values))])
        reached = t * t * energies
        sizes = self.penalty.sizes(self.penalty.link(reached), reached)
        largest = float(np.max(sizes))
        if not largest > 0.0:
            sizes, largest = np.ones_like(sizes), 1.0
        return self.penalty.weights(np.maximum(sizes, 0.1 * largest)), t * duals

    def advance(self) -> None:
        """Solve the machine for the present weights, and set the next ones."""
        gap = self._solve_machine()
        self.iterations += 1
        energies: np.ndarray = self.grams.energies(self.machine.A)
        _check_energies(energies, self.machine.A, self.grams)
        sizes = self.penalty.sizes(self.weights, energies)
        if self.machine.coefs is not None:
            sizes = np.sqrt(self.penalty.scales) * np.linalg.norm(self.machine.coefs)
        objective = self.penalty.value(sizes) + self.target.loss(self.machine.F)
        with np.errstate(over="ignore", invalid="ignore"):
            gain = self.target.gain(self.machine.A)
        if not math.isfinite(objective) or not math.isfinite(gain):
            raise ValueError(_TOO_LARGE)
        self.bound = max(self.bound, gain - self.penalty.conjugate(energies))
        combined = self._combine() if self.penalty.sharp else None
        if objective > self.last:
            self.further = 1.0  # steps to the touching weights alone never raise the objective
        self.last = objective
        if objective < self.least:
            self.least = objective
            self._found = {
                "duals": self.machine.A.copy(),
                "weights": self.weights.copy(),
                "energies": energies,
                "coefs": self.machine.coefs,
            }
        self.history.append((self.least - self.bound) / max(self.least, 1e-300))
        lower = len(self.history) < 2 or self.history[-1] < _FAILURE_RATIO * self.history[-2]
        self._failures = self._failures + 1 if self._failed and not lower else 0
        if gap > 0.5 * (objective - self.bound):
            self.inner *= 0.5  # most of the gap is that of the machine
        if self.on_iteration is not None:
            self.on_iteration(self.iterations, self.history[-1])
        if self.finished:
            return
        if combined is not None:
            weights, self.machine.A = combined
            # Combinations of few dual variables may leave out a kernel that the optimum needs.
            weights = np.maximum(weights, _MOST_SHRINKAGE * self.weights)
            self.weights = self.penalty.normalize(weights)
        elif not self.penalty.fixed and np.any(sizes):
            # The best weights lie beyond the touching ones, so that longer steps are faster.
            further = (self.penalty.weights(sizes) / self.weights) ** self.further
            self.weights = self.penalty.normalize(self.weights * further)

    def prune(self, best: KernelSolution) -> KernelSolution:
        """Return the solution with as few kernels as the tolerance allows."""
        there = np.max(self.grams.diagonals(), axis=1) > 0.0
        if np.any(there) and np.any(best.weights[~there]):
            weights = self.penalty.normalize(np.where(there, best.weights, 0.0))
            if np.array_equal(weights[there], best.weights[there]):
                best = replace(best, weights=weights)
        # Without offsets some kernel always helps, however little.
        if np.any(self.penalty.offsets) and self.nothing <= best.objective * (1.0 + 1e-9):
            gap = max(0.0, self.nothing - self.bound)
            nothing = 0.0 * best.weights
            return replace(best, weights=nothing, objective=self.nothing, gap=gap, coefs=None)
        tried = np.zeros(len(best.weights), dtype=bool)
        for part in _NEGLIGIBLE if self.penalty.sharp and np.any(best.weights) else ():
            few = best.weights < part * np.max(best.weights)
            if not np.any(few & (best.weights > 0.0)) or np.array_equal(few, tried):
                continue
            tried = few
            weights = self.penalty.normalize(np.where(few, 0.0, best.weights))
            sizes = self.penalty.sizes(weights, best.energies)
            objective = self.penalty.value(sizes) + self.machine.loss_of(weights, best.duals)
            gap = max(0.0, objective - self.bound)
            if gap <= max(self.tol * objective, best.gap):
                return replace(best, weights=weights, objective=objective, gap=gap)
        return best

    def _solve_machine(self) -> float:
        """Solve the machine as exactly as the present gap is worth; return the machine's gap."""
        if self.history:
            wanted = max(self.inner * self.enough, _PART_OF_GAP * self.history[-1] * self.least)
            if self.penalty.fixed:  # the machine's gap is the whole gap
                wanted = 0.9 * self.enough
        elif self.expected is not None:
            wanted = self.inner * self.tol * self.expected
        else:
            wanted = _PART_OF_GAP * self.tol**0.5 * self.nothing
        gap: float = self.machine.solve(self.weights, wanted)
        # With fixed weights a machine that does not end the search has failed: rounding stops it.
        self._failed = gap > wanted or self.penalty.fixed
        return gap

    def _combine(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the best weights and combination of the dual variables met so far.

        This solves the reduced problem (:eq:`reduced-problem`).
        """
        A = self.machine.A.copy()
        image = self.machine.kernel_image()
        self._kept.append((A, image))
        count = len(self._kept)
        cross = np.zeros((len(self.weights), count, count))
        cross[:, :-1, :-1] = self._cross
        bend = np.zeros((count, count))
        bend[:-1, :-1] = self._bend
        for j, (other, _) in enumerate(self._kept):
            cross[:, j, -1] = cross[:, -1, j] = self.machine.cross_energies(image, other)
            bend[j, -1] = bend[-1, j] = self.target.curvature(A, other)
        linear = np.array([self.target.linear(duals) for duals, _ in self._kept])
        t = np.zeros(count)
        t[-1] = 1.0
        weights = self.weights.copy()
        penalty = self.penalty
        reduced_jit.alternate(
            cross, bend, linear, penalty.s, penalty.scales, penalty.offsets,
            self.target.bounded, weights, t, _ROUNDS if self.tol >= _TIGHT else _MORE_ROUNDS,
        )  # fmt: skip
        found = np.empty(len(weights))
        reduced_jit.compute_energies(cross, t, found)
        self.bound = max(
            self.bound, float(linear @ t - 0.5 * t @ bend @ t) - penalty.conjugate(found)
        )
        duals = sum(length * other for length, (other, _) in zip(t, self._kept, strict=True))
        kept = np.arange(count)
        if count > _MOST_COMBINED:  # the newest stays
            kept = np.delete(kept, np.argmin(t[:-1]))
        self._kept = [self._kept[j] for j in kept]
        self._cross, self._bend = cross[:, kept][:, :, kept], bend[np.ix_(kept, kept)]
        return weights, np.ascontiguousarray(duals)


_TOO_LARGE = (
    "The kernels, targets or weights of samples are so large that sums of them overflow; divide "
    "them by a power of ten, or normalise the kernels."
)


def _check_energies(energies: np.ndarray, A: np.ndarray, grams: Grams) -> None:
    """Raise if an energy shows that a kernel is not positive semi-definite, beyond rounding."""
    if not np.all(np.isfinite(energies)):
        raise ValueError(_TOO_LARGE)
    worst = int(np.argmin(energies))
    largest = float(np.max(energies))
    if not energies[worst] < -1e-3 * largest:
        return
    # Terms of the form may cancel, while each has the rounding error of an entry of the kernel.
    terms = float(np.sum(np.linalg.norm(A, axis=1))) ** 2 * float(np.max(grams.diagonals()[worst]))
    if energies[worst] < -_ENTRY_ERROR * float(np.finfo(grams.dtype).eps) * terms:
        raise ValueError(
            f"Kernel {worst} is not positive semi-definite: a quadratic form of it is "
            f"{energies[worst]:.3g}, where that of another kernel is {largest:.3g}. Repair it with "
            "mixnorm.kernels.clip_negative, or leave it out."
        )
