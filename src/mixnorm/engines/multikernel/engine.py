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
from mixnorm.engines.multikernel.settings import DEFAULT_SETTINGS, MultikernelSettings
from mixnorm.kernels import Grams

# Factors of the losses of rows lie between this and its inverse: their squares must be finite.
_LARGEST_COST = 1e30
# Smaller relative gaps are hidden by rounding: objective and bound are sums of many terms.
_LEAST_TOLERANCE = 1e-12
# Gains below this part of the loss of scores of zero are rounding, and no stopping rule uses them.
_LEAST_GAIN_SHARE = 1e-9
# Error of entries of kernels, in units of the precision: a kernel takes a few operations.
_ENTRY_ERROR = 4.0


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
    settings: MultikernelSettings = DEFAULT_SETTINGS,
) -> KernelSolution:
    """Learn weights of kernels and a machine on their sum.

    Solves :eq:`kernel-penalty` with joint hinges, their squares or squared errors as losses, and
    stops on the duality gap of :eq:`kernel-dual`.

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
    settings : MultikernelSettings
        Numbers that shape the algorithms. They change the time of a fit, which stops on its gap.

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
    search = _Alternation(grams, target, penalty, tol, on_iteration, settings)
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
    """The alternation between weights and machine (:eq:`touching-weights`).

    For fixed weights the penalty is quadratic, and the problem is a machine on one kernel. For a
    fixed machine the touching weights are the best ones, so that exact steps of both kinds never
    raise the objective.
    """

    grams: Grams
    target: HingeTarget | SquaredTarget
    penalty: KernelPenalty
    tol: float
    on_iteration: Callable[[int, float], None] | None = None
    settings: MultikernelSettings = DEFAULT_SETTINGS

    def __post_init__(self) -> None:
        self.tol = max(self.tol, _LEAST_TOLERANCE)
        self.machine = self.target.machine(self.grams, self.settings)
        self.weights = np.ones(self.grams.n_kernels)
        #: The best dual value, a lower bound of the optimum. It may come from other dual variables
        #: than the best objective: each of the two bounds holds for itself.
        self.bound = -math.inf
        self.least_objective = math.inf
        #: The loss of scores of zero.
        self.empty_loss: float = self.target.loss(np.zeros(self.machine.A.shape[::-1]))
        #: The objective on a part of the rows, about that on all of them.
        self.subset_objective: float | None = None
        self.iterations = 0
        #: The share of the wanted gap that a machine may use up.
        self.machine_share = self.settings.machine_tol_share
        self.step_factor, self.last_objective = self.settings.step_factor, math.inf
        self.history: list[float] = []
        self._best_point: dict[str, Any]
        #: Earlier dual variables with their images under the kernels, the bilinear forms of these
        #: by kernel, and those of the losses.
        self._kept: list[tuple[np.ndarray, Any]] = []
        self._cross_energies = np.zeros((len(self.weights), 0, 0))
        self._curvatures = np.zeros((0, 0))
        #: Machines in a row that missed their gap without lowering that of all.
        self._failures = 0

    @property
    def finished(self) -> bool:
        """Whether the tolerance is met."""
        return bool(self.history) and self.least_objective - self.bound <= self.wanted_gap

    @property
    def best(self) -> KernelSolution:
        """The best solution so far; the bound may have become better since it was found."""
        return KernelSolution(
            **self._best_point,
            objective=self.least_objective,
            gap=max(0.0, self.least_objective - self.bound),
            iterations=self.iterations,
            converged=self.finished,
            history=tuple(self.history),
        )

    @property
    def wanted_gap(self) -> float:
        """The gap to stop at.

        If samples count little, the gain over no model may be less than the tolerance; then half of
        the gain is asked for. With offsets there may be nothing to gain.
        """
        wanted = self.tol * self.least_objective
        if np.any(self.penalty.offsets):
            return wanted
        gain = self.settings.gain_share * (self.empty_loss - self.bound)
        return min(wanted, max(gain, _LEAST_GAIN_SHARE * self.empty_loss))

    def run(self, start: tuple[np.ndarray, np.ndarray] | None, max_iter: int) -> None:
        """Iterate until the gap is closed, or several machines bring no progress by rounding."""
        self._set_start(start)
        most = self.settings.max_failures
        while self.iterations < max_iter and not self.finished and self._failures < most:
            self.advance()

    def _set_start(self, start: tuple[np.ndarray, np.ndarray] | None) -> None:
        """Set weights and dual variables to start from."""
        if start is not None and np.any(start[0]):
            weights = np.array(start[0], dtype=np.float64)
            # A weight of zero would stay zero, because the touching weights are multiples of it.
            least = self.settings.least_start_weight * np.max(weights)
            self.weights = np.maximum(weights, least)
            # The start may be of other sample weights, whose caps bound the dual variables.
            self.machine.A = self.target.project(start[1])
        elif self.penalty.fixed:
            self.weights = self.penalty.weights(np.ones(len(self.weights)))
        else:
            self.weights, self.machine.A = self._learn_on_subset()

    def _learn_on_subset(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and dual variables learned on a part of the rows, which count more.

        Losses on a third of the rows, three times as large, sum to about the same. So the part has
        about the same optimum, at a ninth of the cost, and finds its own start in the same way.
        """
        n, settings = len(self.target), self.settings
        size = n // settings.subset_ratio
        if size < settings.least_subset_rows:
            return self._guess_start()
        # The seed is the number of rows: the same data give the same fit.
        rows = np.sort(np.random.default_rng(n).choice(n, size, replace=False))
        factor = n / size
        tol = self.tol * (settings.subset_tol_factor if self.penalty.sharp else 1.0)
        grams, target = self.grams.take(rows), self.target.take(rows, factor)
        part = _Alternation(grams, target, self.penalty, tol, settings=settings)
        part.run(None, settings.subset_iterations)
        self.subset_objective = part.least_objective
        duals = np.zeros_like(self.machine.A)
        # Divided by the factor they are within the caps of all rows, hence feasible.
        duals[rows] = part.machine.A / factor
        return part.weights, duals

    def _guess_start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the best multiple of simple dual variables, and the weights for it."""
        duals = self.target.guess()
        energies = self.grams.energies(duals)
        # Multiples of at most one stay feasible. The dual value is concave in the multiple, so that
        # powers of two come within a factor of two of the best one.
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
        # A guess must not drive any weight to zero, from which it would come back slowly.
        return self.penalty.weights(np.maximum(sizes, 0.1 * largest)), t * duals

    def advance(self) -> None:
        """Solve the machine for the present weights, and set the next ones."""
        gap = self._solve_machine()
        self.iterations += 1
        energies: np.ndarray = self.grams.energies(self.machine.A)
        _check_energies(energies, self.machine.A, self.grams)
        sizes = self.penalty.sizes(self.weights, energies)
        if self.machine.coefs is not None:  # a single kernel, whose weights are more exact
            sizes = np.sqrt(self.penalty.scales) * np.linalg.norm(self.machine.coefs)
        objective = self.penalty.value(sizes) + self.target.loss(self.machine.F)
        with np.errstate(over="ignore", invalid="ignore"):
            gain = self.target.gain(self.machine.A)
        if not math.isfinite(objective) or not math.isfinite(gain):
            raise ValueError(_TOO_LARGE)
        self.bound = max(self.bound, gain - self.penalty.conjugate(energies))
        # Before the point is recorded: the reduced problem may raise the bound once more.
        combined = self._combine_duals() if self.penalty.sharp else None
        self._record_point(objective, energies, gap)
        if self.on_iteration is not None:
            self.on_iteration(self.iterations, self.history[-1])
        if not self.finished:
            self._update_weights(sizes, combined)

    def _record_point(self, objective: float, energies: np.ndarray, gap: float) -> None:
        """Keep the point if it is the best, and judge progress; ``gap`` is the machine's."""
        if objective > self.last_objective:
            # Longer steps have no guarantee. Steps to the touching weights alone never raise the
            # objective, because the quadratic penalty touches the true one from above.
            self.step_factor = 1.0
        self.last_objective = objective
        if objective < self.least_objective:
            self.least_objective = objective
            self._best_point = {
                "duals": self.machine.A.copy(),  # the machine changes its own in place
                "weights": self.weights.copy(),
                "energies": energies,
                "coefs": self.machine.coefs,
            }
        self.history.append((self.least_objective - self.bound) / max(self.least_objective, 1e-300))
        ratio = self.settings.failure_ratio
        lower = len(self.history) < 2 or self.history[-1] < ratio * self.history[-2]
        self._failures = self._failures + 1 if self._machine_failed and not lower else 0
        if gap > 0.5 * (objective - self.bound):
            self.machine_share *= 0.5  # most of the gap is that of the machine

    def _update_weights(
        self, sizes: np.ndarray, combined: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """Set the next weights: those of the reduced problem, or a step to the touching ones."""
        if combined is not None:
            weights, self.machine.A = combined
            # Combinations of few dual variables may leave out a kernel that the optimum needs.
            weights = np.maximum(weights, self.settings.least_weight_ratio * self.weights)
            self.weights = self.penalty.normalize(weights)
        elif not self.penalty.fixed and np.any(sizes):
            # The best weights lie beyond the touching ones, so that longer steps are faster.
            ratio = (self.penalty.weights(sizes) / self.weights) ** self.step_factor
            self.weights = self.penalty.normalize(self.weights * ratio)

    def prune(self, best: KernelSolution) -> KernelSolution:
        """Return the solution with as few kernels as the tolerance allows."""
        # Kernels that are zero everywhere go first, since they change neither scores nor gap. But
        # they may have a part in the norm of the weights; then they stay.
        nonzero = np.max(self.grams.diagonals(), axis=1) > 0.0
        if np.any(nonzero) and np.any(best.weights[~nonzero]):
            weights = self.penalty.normalize(np.where(nonzero, best.weights, 0.0))
            if np.array_equal(weights[nonzero], best.weights[nonzero]):
                best = replace(best, weights=weights)
        # Without offsets some kernel always helps, however little.
        if np.any(self.penalty.offsets) and self.empty_loss <= best.objective * (1.0 + 1e-9):
            gap, zeros = max(0.0, self.empty_loss - self.bound), 0.0 * best.weights
            return replace(best, weights=zeros, objective=self.empty_loss, gap=gap, coefs=None)
        tried = np.zeros(len(best.weights), dtype=bool)
        levels = self.settings.prune_levels if self.penalty.sharp and np.any(best.weights) else ()
        for level in levels:
            small = best.weights < level * np.max(best.weights)
            if not np.any(small & (best.weights > 0.0)) or np.array_equal(small, tried):
                continue
            tried = small
            # The dual variables stay, and with them the bound. Only the objective changes.
            weights = self.penalty.normalize(np.where(small, 0.0, best.weights))
            sizes = self.penalty.sizes(weights, best.energies)
            objective = self.penalty.value(sizes) + self.machine.loss_of(weights, best.duals)
            gap = max(0.0, objective - self.bound)
            if gap <= max(self.tol * objective, best.gap):
                return replace(best, weights=weights, objective=objective, gap=gap)
        return best

    def _solve_machine(self) -> float:
        """Solve the machine as exactly as the present gap is worth; return the machine's gap."""
        settings = self.settings
        if self.history:
            share = settings.machine_gap_share * self.history[-1]
            wanted = max(self.machine_share * self.wanted_gap, share * self.least_objective)
            if self.penalty.fixed:  # the machine's gap is the whole gap
                wanted = 0.9 * self.wanted_gap
        elif self.subset_objective is not None:
            wanted = self.machine_share * self.tol * self.subset_objective
        else:
            # Nothing is known of the objective yet. A rough solution is enough for a first step.
            wanted = settings.machine_gap_share * self.tol**0.5 * self.empty_loss
        gap: float = self.machine.solve(self.weights, wanted)
        # With fixed weights a machine that does not end the search has failed: rounding stops it.
        self._machine_failed = gap > wanted or self.penalty.fixed
        return gap

    def _combine_duals(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the best weights and combination of the dual variables met so far.

        This solves the reduced problem (:eq:`reduced-problem`), and raises the bound to its value.
        """
        cross, bends = self._append_duals()
        settings, penalty = self.settings, self.penalty
        linear = np.array([self.target.linear(duals) for duals, _ in self._kept])
        # The present dual variables alone: the result can only be better than these.
        shares = np.zeros(len(self._kept))
        shares[-1] = 1.0
        weights = self.weights.copy()  # changed in place below
        fine = self.tol < settings.fine_tol
        reduced_jit.alternate(
            cross, bends, linear, penalty.s, penalty.scales, penalty.offsets, self.target.bounded,
            weights, shares, settings.fine_reduced_rounds if fine else settings.reduced_rounds,
        )  # fmt: skip
        energies = np.empty(len(weights))
        reduced_jit.compute_energies(cross, shares, energies)
        # The combination is feasible, so that its dual value is a bound of the whole problem.
        value = float(linear @ shares - 0.5 * shares @ bends @ shares)
        self.bound = max(self.bound, value - penalty.conjugate(energies))
        duals = sum(share * other for share, (other, _) in zip(shares, self._kept, strict=True))
        self._drop_least_used(shares, cross, bends)
        return weights, np.ascontiguousarray(duals)

    def _append_duals(self) -> tuple[np.ndarray, np.ndarray]:
        """Keep the present dual variables; return the bilinear forms by kernel, and of losses.

        Only the forms with the new ones are computed: a product with every kernel is what costs.
        """
        A = self.machine.A.copy()  # the machine changes its own in place
        image = self.machine.kernel_image()
        self._kept.append((A, image))
        count = len(self._kept)
        cross = np.zeros((len(self.weights), count, count))
        cross[:, :-1, :-1] = self._cross_energies
        bends = np.zeros((count, count))
        bends[:-1, :-1] = self._curvatures
        for j, (other, _) in enumerate(self._kept):
            cross[:, j, -1] = cross[:, -1, j] = self.machine.cross_energies(image, other)
            bends[j, -1] = bends[-1, j] = self.target.curvature(A, other)
        return cross, bends

    def _drop_least_used(self, shares: np.ndarray, cross: np.ndarray, bends: np.ndarray) -> None:
        """Drop the dual variables of the smallest share, if too many are kept."""
        kept = np.arange(len(shares))
        if len(shares) > self.settings.n_kept_duals:
            kept = np.delete(kept, np.argmin(shares[:-1]))  # the newest stays
        self._kept = [self._kept[j] for j in kept]
        self._cross_energies = cross[:, kept][:, :, kept]
        self._curvatures = bends[np.ix_(kept, kept)]


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
