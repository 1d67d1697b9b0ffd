"""Greedy choice of a few kernels out of many, with a correction after every choice.

The engine uses kernels through a pool alone: it gives the kernels that score best for a residual,
and the matrix or a factor of one of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.engines._core.corrective import Outcome
from mixnorm.engines.sparse_kernels.lasso import LassoRefit
from mixnorm.engines.sparse_kernels.refit import GradientSteps, GrowingModel, RidgeRefit
from mixnorm.engines.sparse_kernels.settings import DEFAULT_SETTINGS, SparseKernelSettings
from mixnorm.losses import SmoothLoss
from mixnorm.models import KernelPath, Round

if TYPE_CHECKING:
    from mixnorm.pools import KernelPool

#: Group orthogonal matching pursuit, and Algorithms 1 and 2 of Jin, Yang and Mahdavi.
ALGORITHMS = ("gomp", "l1", "l2")
#: Rules for the length of steps: the best one, or one over the smoothness of the loss.
STEPS = ("line", "unit")
# Kernels up to this value count as at most one, since they have rounding errors.
_AT_MOST_ONE = 1.0 + 1e-6
# The root of the relative rounding error of a sum in double precision.
_ROOT_OF_ERROR = 2e-8
# Losses count as equal if they differ by less than this part of the loss of the empty model.
_SAME_LOSS = 1e-6


def select(
    pool: KernelPool,
    loss: SmoothLoss,
    target: Any,
    *,
    n_kernels: int,
    n_outputs: int,
    weight: np.ndarray,
    algorithm: str = "gomp",
    alpha: float = 1e-3,
    step: str = "line",
    n_steps: int | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    start: KernelPath | None = None,
    on_round: Callable[[KernelPath], bool] | None = None,
    settings: SparseKernelSettings = DEFAULT_SETTINGS,
) -> KernelPath:
    r"""Choose kernels one at a time, each by its functional gradient (:eq:`functional-gradient`).

    Parameters
    ----------
    pool : KernelPool
        Scores kernels for a residual, and has their matrices.
    loss : SmoothLoss
        The loss; ``target`` is what its ``encode`` returned.
    n_kernels, n_outputs : int
        Most kernels to choose, outputs to fit.
    weight : array of shape (n_samples,)
        Positive weights of the samples, which sum to one.
    algorithm : {"gomp", "l1", "l2"}
        ``"gomp"``: the kernel whose gradient has the largest functional norm, then a refit with the
        penalty :math:`\frac\alpha2 \sum_j \|f_j\|^2`. ``"l1"``: the same with :math:`\alpha \sum_j
        \|f_j\|`, which ends where no gradient exceeds :math:`\alpha`: at the optimum over all
        kernels. ``"l2"``: the kernel whose gradient is largest on the data, and a step against it;
        a kernel may be chosen again.
    alpha : float
        Weight of the penalty; not used by ``"l2"``.
    step : {"line", "unit"}
        The length of steps of ``"l2"``: the best one, or 1 over the smoothness of the loss.
    n_steps : int, optional
        Rounds of ``"l2"``; ``n_kernels`` by default. Once ``n_kernels`` different kernels are
        chosen, further steps are taken among these.
    tol : float
        Tolerance of the refit, in parts of the loss of the empty model.
    max_iter : int
        Most iterations of one refit.
    start : KernelPath, optional
        A path to continue.
    on_round : callable, optional
        Called with the path so far after each round; returning True ends the run.
    settings : SparseKernelSettings
        Numbers that shape the refits.

    Returns
    -------
    KernelPath
        ``exhausted`` if no other kernel helps. A keyboard interrupt after the first round ends the
        run and keeps the rounds done.
    """
    if algorithm != "l2" and not 0.0 < alpha < math.inf:
        raise ValueError(f"alpha={alpha!r} must be positive and finite: it is what kernels cost.")
    given = (pool, loss, target, weight, n_outputs)
    model: GrowingModel
    if algorithm in ("gomp", "l1"):
        refit = RidgeRefit if algorithm == "gomp" else LassoRefit
        model = refit(*given, alpha=alpha, tol=tol, max_iter=max_iter, settings=settings)
    elif algorithm == "l2":
        # With larger kernels a step of length one may raise the loss, without limit
        # (:eq:`two-norms`).
        if step == "unit" and pool.largest() > _AT_MOST_ONE:
            raise ValueError(
                f"a kernel is {pool.largest():.3g} between a row and itself, and steps of length "
                "one (step='unit') need kernels of at most one. Normalise the bank "
                "(normalize='unit'), or set step='line'."
            )
        model = GradientSteps(*given, step=step, settings=settings)
    else:
        raise ValueError(f"algorithm={algorithm!r} is not known; choose one of {list(ALGORITHMS)}.")
    if step not in STEPS:
        raise ValueError(f"step={step!r} is not known; choose one of {list(STEPS)}.")
    n_rounds = n_kernels if n_steps is None or algorithm != "l2" else n_steps
    run = _Run(pool, model, n_kernels, n_rounds)
    if start is not None and start.rounds:
        run.continue_from(start)
    try:
        run.forward(on_round)
    except KeyboardInterrupt:
        if not run.rounds:
            raise
        run.interrupted = True
    return run.path()


class _Run:
    """A run of the engine: the rounds so far, and the model after them."""

    def __init__(
        self, pool: KernelPool, model: GrowingModel, n_kernels: int, n_rounds: int
    ) -> None:
        self.pool, self.model = pool, model
        self.n_kernels, self.n_rounds = n_kernels, n_rounds
        self.rounds: list[Round] = []
        self._terms = np.empty((0, *model.scores.shape))
        self.interrupted = self.exhausted = False
        self._null = (model.value, model.intercept)

    def path(self) -> KernelPath:
        """Return the rounds so far as a path."""
        return KernelPath(
            tuple(self.rounds),
            *self._null,
            interrupted=self.interrupted,
            exhausted=self.exhausted,
            terms=self._terms,
        )

    def continue_from(self, start: KernelPath) -> None:
        """Continue a path where it ended."""
        start = start.first(self.n_rounds)
        last = start.rounds[-1]
        self.rounds = list(start.rounds)
        self._terms = start.terms
        self.model.load(list(last.support), start.blocks(len(start.rounds)), last.intercept)
        # A path of other data would be continued to a model that is wrong everywhere.
        if not abs(self.model.value - last.loss) <= _SAME_LOSS * self._null[0]:
            raise ValueError(
                f"the path to continue has loss {last.loss:.6g}, but {self.model.value:.6g} on "
                "these rows, targets and kernels: they are not those of the path. Start anew."
            )

    def forward(self, on_round: Callable[[KernelPath], bool] | None) -> None:
        """Take rounds until all planned ones are done, or no kernel helps."""
        while True:
            began = time.perf_counter()
            # The scan comes before the test of the number of rounds: its largest score also gives
            # the duality gap of the last round.
            kernel, score = self._find_best()
            if self._close_gap(score) or kernel is None or not score > self._find_threshold():
                self.exhausted = len(self.rounds) < self.n_rounds
                return
            if len(self.rounds) >= self.n_rounds:
                return
            outcome = self.model.add(kernel)
            self._record_round(kernel, score, outcome, began)
            if on_round is not None and on_round(self.path()):
                return

    def _find_threshold(self) -> float:
        """Return the score that the next kernel must exceed.

        Scores are roots of sums over residuals, with the root of their rounding error. Before the
        first round a score may consist of that error alone.
        """
        enough = self.model.enough()
        if self.rounds:
            return enough
        sums = np.abs(self.model.residual).sum(axis=0)
        size = float(np.linalg.norm(sums)) * math.sqrt(max(self.pool.largest(), 0.0))
        return max(enough, _ROOT_OF_ERROR * size)

    def _find_best(self) -> tuple[int | None, float]:
        """Return the best kernel and its score; None if there is no kernel to choose."""
        model = self.model
        done = len(self.rounds) >= self.n_rounds
        if done and not model.has_gap:  # no use for it
            return None, 0.0
        chosen = model.support
        if model.repeats and len(chosen) >= self.n_kernels:  # further steps are among these
            scores = self.pool.scores(model.residual, model.rule, np.asarray(chosen))
            best = int(np.argmax(scores))
            return chosen[best], float(scores[best])
        taken = frozenset() if model.repeats else frozenset(chosen)
        found = self.pool.top(model.residual, model.rule, 1, taken)
        return found[0] if found else (None, 0.0)

    def _close_gap(self, score: float) -> bool:
        """Set the duality gap of the last round from a scan; return whether it is small enough.

        The dual point must be feasible for all kernels (:eq:`lasso-dual`). ``score`` is the largest
        of those not chosen, and the chosen ones are asked for theirs.
        """
        model: Any = self.model
        if not model.has_gap or not self.rounds:
            return False
        dual = model.dual_value(max(score, model.largest()))
        gap = max(0.0, self.rounds[-1].objective - dual)
        self.rounds[-1] = replace(self.rounds[-1], gap=gap)
        return bool(gap <= model.tol * self._null[0])

    def _record_round(self, kernel: int, score: float, outcome: Outcome, began: float) -> None:
        model = self.model
        terms, shares, add = model.terms()
        # Terms of earlier rounds stay stored, so that the path has all models. The new model uses
        # them only if it adds a term to the last one.
        earlier = np.zeros((len(shares), len(self._terms)))
        if add and self.rounds:
            before = self.rounds[-1].weights
            earlier[: len(before)] = before
        self._terms = np.concatenate([self._terms, terms])
        # The objective can only rise by rounding, or because a refit did not converge.
        above = self.rounds[-1].objective if self.rounds else self._null[0]
        fell = model.objective <= above + _SAME_LOSS * self._null[0]
        self.rounds.append(
            Round(
                atom=kernel,
                support=tuple(model.support),
                weights=np.concatenate([earlier, shares], axis=1),
                intercept=model.intercept,
                loss=model.value,
                objective=model.objective,
                gradient=score,
                seconds=time.perf_counter() - began,
                iterations=outcome.iterations,
                gap=outcome.gap,
                converged=outcome.converged and fell and math.isfinite(model.value),
            )
        )
