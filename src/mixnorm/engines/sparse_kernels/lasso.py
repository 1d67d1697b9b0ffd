"""Algorithm 1 of sparse kernel learning: a penalty on the norms of the kernels' functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mixnorm.engines._core.corrective import Outcome
from mixnorm.engines.sparse_kernels.refit import GrowingModel, norm, table_of
from mixnorm.engines.sparse_kernels.settings import DEFAULT_SETTINGS, SparseKernelSettings

# Gradients must exceed the penalty by this factor, which covers rounding in single precision.
_PENALTY_FACTOR = 1.0 + 3e-7
# Second derivatives are raised to at least this part of the largest possible, since rows of which
# the model is certain would leave the system of a Newton step singular.
_LEAST_CURVATURE = 1e-6
# Penalties below this part of the root of the loss are lost in rounding.
_LEAST_RELATIVE_PENALTY = 1e-20
# Steps that are shorter, relative to the point, are rounding.
_LEAST_STEP = 1e-14


@dataclass(eq=False)
class _Part:
    """A chosen kernel: a factor of it, and the coefficients of its function.

    The factor ``phi`` is another one times the orthogonal matrix ``rotation``, so that products of
    its columns under the weights of samples are diagonal, with ``values`` on the diagonal.
    ``pivots`` are rows at which the other factor is triangular, if there are such rows.
    """

    phi: np.ndarray
    rotation: np.ndarray
    pivots: np.ndarray | None
    values: np.ndarray
    coef: np.ndarray


class LassoRefit(GrowingModel):
    r"""Algorithm 1: the loss plus :math:`\alpha \sum_j \|f_j\|`, solved on the chosen kernels.

    The problem is :eq:`sparse-lasso`. It is solved by blocks: the function of one kernel is
    minimised exactly under a quadratic bound of the loss, which for squared losses is the loss.
    After each round of blocks, all functions that are not zero take a Newton step together; without
    it, kernels that are much alike would take thousands of rounds.
    """

    rule = "functional"
    has_gap = True

    def __init__(
        self,
        *given: Any,
        alpha: float,
        tol: float,
        max_iter: int,
        settings: SparseKernelSettings = DEFAULT_SETTINGS,
    ) -> None:
        super().__init__(*given)
        self.settings = settings
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        if alpha < _LEAST_RELATIVE_PENALTY * math.sqrt(self.null_value):
            raise ValueError(
                f"alpha={alpha:g} is so small beside the loss of a constant that rounding hides "
                "it. Raise alpha, or set algorithm='l2', which has no penalty."
            )
        #: The bound ``L`` of the second derivatives of the loss of a row, by its weight.
        self._bound = float(self.loss.smoothness)
        self._parts: list[_Part] = []
        self._cross = np.zeros((0, 0))  # products of the columns of all factors under the weights
        self._free = self.scores  # those of the solver, before terms are rounded

    @property
    def _coefs(self) -> list[np.ndarray]:
        return [part.coef for part in self._parts]

    def enough(self) -> float:
        """Return the penalty, which the gradient of a kernel must exceed."""
        return max(self.alpha * _PENALTY_FACTOR, self.noise)

    def add(self, kernel: int) -> Outcome:
        """Add a kernel, and solve."""
        self._add_kernel(kernel)
        self.set_scores(self._free)
        outcome = self._solve()
        self._store_terms()
        return outcome

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the residual and its factor in each kernel, or a table for each kernel."""
        return self._tables, self._shares, False

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Continue from a model."""
        for kernel, block in zip(support, blocks, strict=True):
            self._add_kernel(kernel)
            self._parts[-1].coef = self._parts[-1].phi.T @ block
        self._free = self._score_coefs(self._coefs)
        self.set_scores(self._free)

    def dual_value(self, largest: float) -> float:
        """Return a lower bound of the objective, if ``largest`` is the largest score of a kernel.

        This is the dual objective (:eq:`lasso-dual`).
        """
        shrink = min(1.0, self.alpha / largest) if largest > 0.0 else 1.0
        theta = shrink * self.residual
        pull = float(np.sum(theta * self.intercept))
        return pull - float(self.loss.conjugate(theta, self.target, self.weight))

    def largest(self) -> float:
        """Return the largest score of the chosen kernels."""
        return max((norm(part.phi.T @ self.residual) for part in self._parts), default=0.0)

    def _add_kernel(self, kernel: int) -> None:
        """Add a kernel with coefficients of zero."""
        self.support.append(kernel)
        raw, pivots = self.pool.factor(kernel)
        # Rotated, the block problem has a diagonal Hessian, and one unknown is left: the norm.
        values, rotation = np.linalg.eigh(raw.T @ (self.weight[:, None] * raw))
        phi, values = np.ascontiguousarray(raw @ rotation), np.maximum(values, 0.0)
        rank, old = phi.shape[1], len(self._cross)
        # Kept products of columns make the system of a Newton step, while columns are fewer than
        # rows.
        if old + rank <= len(phi):
            cross = np.zeros((old + rank, old + rank))
            cross[:old, :old] = self._cross
            weighted, start = self.weight[:, None] * phi, 0
            for part in self._parts:
                place = slice(start, start + part.phi.shape[1])
                cross[place, old:] = part.phi.T @ weighted
                cross[old:, place] = cross[place, old:].T
                start = place.stop
            cross[old:, old:] = np.diag(values)
            self._cross = cross
        else:  # products of rows are fewer
            self._cross = np.zeros((old + rank, 0))
        self._parts.append(_Part(phi, rotation, pivots, values, np.zeros((rank, self.n_outputs))))

    def _store_terms(self) -> None:
        """Set the scores of the terms: a multiple of the residual per kernel, or a table each.

        The multiples are those of :eq:`lasso-table`. They differ from the solution by its error
        times the kernel over the penalty, and are taken only if that is little.
        """
        # The solver goes on from its own scores, so that the rounding of terms does not add up.
        self._free = self.scores
        sizes = np.asarray([norm(coef) for coef in self._coefs])
        with np.errstate(over="ignore", invalid="ignore"):
            shares = sizes / self.alpha
            implied = [
                -share * (part.phi.T @ self.residual)
                for share, part in zip(shares.tolist(), self._parts, strict=True)
            ]
            pairs = zip(implied, self._coefs, strict=True)
            missing = max(norm(one - other) for one, other in pairs)
        if missing <= self.settings.exact_distance * float(np.max(sizes, initial=0.0)):
            coefs, self._tables, self._shares = implied, -self.residual[None], shares[:, None]
        else:
            coefs = self._coefs
            tables = [
                table_of(part.phi @ part.rotation.T, part.pivots, part.rotation @ part.coef)
                for part in self._parts
            ]
            self._tables, self._shares = np.stack(tables), np.eye(len(self.support))
        self.set_scores(self._score_coefs(coefs))
        self.objective = self._compute_objective(coefs)

    def _solve(self) -> Outcome:
        """Go round the blocks until the duality gap on the chosen kernels is small."""
        settings = self.settings
        gap, enough = math.inf, self.tol * self.null_value
        lowest, before = math.inf, math.inf
        for sweep in range(1, self.max_iter + 1):
            for part in self._parts:
                self._solve_block(part)
            self._take_newton_step(sweep > settings.patient_rounds)
            self.set_scores(self._score_coefs(self._coefs))  # without accumulated rounding
            gap = max(0.0, self._compute_objective(self._coefs) - self.dual_value(self.largest()))
            if gap <= enough:
                return Outcome(sweep, gap, True)
            lowest = min(lowest, gap)
            if sweep % settings.gap_rounds == 0:
                if lowest > settings.gap_ratio * before:  # with a tiny penalty it would hardly move
                    break
                before = lowest
        return Outcome(sweep, gap, False)

    def _compute_objective(self, coefs: list[np.ndarray]) -> float:
        """Return the loss of the present scores plus the penalty of some coefficients."""
        return self.value + self.alpha * sum(norm(coef) for coef in coefs)

    def _take_newton_step(self, careful: bool) -> None:
        r"""Take a Newton step on all parts that are not zero, if it lowers the objective.

        If it does not, ``careful`` takes a shorter one, to the best point of a quadratic bound.

        The Hessian of the bound and the norms is :math:`(L \Phi^\top W \Phi + D) \otimes I - U
        U^\top`, with the diagonal :math:`\alpha / \|c_j\|` in :math:`D`, and one column for each
        kernel in :math:`U`: one system for all outputs, and a small one (:eq:`lasso-newton`,
        :eq:`lasso-woodbury`).
        """
        active = [part for part in self._parts if np.any(part.coef)]
        if len(active) < (2 if self.loss.constant_curvature else 1):
            return  # a block alone has been solved exactly, if the bound is the loss
        sizes = np.asarray([norm(part.coef) for part in active])
        try:
            solve = self._factorize_curvature(active, self.alpha / sizes)
        except linalg.LinAlgError:  # with a tiny penalty only rounding is left
            return
        units = [part.coef / size for part, size in zip(active, sizes, strict=True)]
        slopes = [
            part.phi.T @ self.residual + self.alpha * unit
            for part, unit in zip(active, units, strict=True)
        ]
        cuts, k = np.cumsum([len(unit) for unit in units])[:-1], self.n_outputs
        solved = solve(np.hstack([-np.concatenate(slopes), linalg.block_diag(*units)]))
        step, *bases = np.split(solved, range(k, solved.shape[1], k), axis=1)

        # Woodbury's formula: the solution without the norms' own curvature, plus multiples of those
        # of their directions. One factorisation serves all right sides.
        def along(table: np.ndarray) -> np.ndarray:
            parts = zip(np.split(table, cuts), units, strict=True)
            return np.asarray([np.sum(part * unit) for part, unit in parts])

        inner = np.stack([along(basis) for basis in bases], axis=1)
        # Symmetric but for rounding. Least squares, since two kernels that are alike make it
        # singular.
        small = np.diag(sizes / self.alpha) - 0.5 * (inner + inner.T)
        shares = np.linalg.lstsq(small, along(step), rcond=None)[0]
        whole = step + sum(share * basis for share, basis in zip(shares, bases, strict=True))
        for way in (whole, step) if careful else (whole,):
            if self._try_step(active, np.split(way, cuts)):
                return

    def _factorize_curvature(
        self, active: Sequence[_Part], extra: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return a solver for the curvature of some parts plus a multiple of the identity each.

        This is the ``P`` of :eq:`lasso-newton`, in as many unknowns as there are columns or rows,
        whichever are fewer.
        """
        design = np.concatenate([part.phi for part in active], axis=1)
        above = np.repeat(extra, [part.phi.shape[1] for part in active])
        bends = self._estimate_curvatures()
        if design.shape[1] <= design.shape[0]:
            if self.loss.constant_curvature and self._cross.shape[1]:
                used = [np.full(part.phi.shape[1], np.any(part.coef)) for part in self._parts]
                index = np.flatnonzero(np.concatenate(used))
                system = self._bound * self._cross[np.ix_(index, index)]
            else:
                system = design.T @ (bends[:, None] * design)
            system[np.diag_indices(len(system))] += above
            try:
                factor = linalg.cho_factor(system, lower=True, overwrite_a=True)
                return lambda right: np.asarray(linalg.cho_solve(factor, right))
            except linalg.LinAlgError:  # a tiny penalty; the system of rows may still do
                pass
        system = (design / above) @ design.T
        system[np.diag_indices(len(system))] += 1.0 / bends
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True)

        def solve(right: np.ndarray) -> np.ndarray:
            scaled = right / above[:, None]
            inner = linalg.cho_solve(factor, design @ scaled)
            return np.asarray(scaled - (design.T @ inner) / above[:, None])

        return solve

    def _estimate_curvatures(self) -> np.ndarray:
        """Estimate the second derivatives of the loss in the scores, one for each sample."""
        if self.loss.constant_curvature:
            return self._bound * self.weight
        found = self.loss.curvature(self.residual, self.target, self.weight)
        return np.maximum(np.mean(found, axis=1), _LEAST_CURVATURE * self._bound * self.weight)

    def _try_step(self, active: Sequence[_Part], steps: list[np.ndarray]) -> bool:
        """Shorten a step until the objective falls, and take it; False if it never does."""
        change = sum(part.phi @ step for part, step in zip(active, steps, strict=True))
        before, scores = self._compute_objective(self._coefs), self.scores
        old = [part.coef for part in active]
        # A norm has a kink where a block is zero, and Newton's step may jump over it. So any fall
        # of the objective is accepted, and none is fine too: the blocks go on.
        for length in 0.25 ** np.arange(self.settings.shorter_steps):
            for part, coef, step in zip(active, old, steps, strict=True):
                part.coef = coef + length * step
            self.set_scores(scores + length * change)
            if self._compute_objective(self._coefs) < before:
                return True
        for part, coef in zip(active, old, strict=True):
            part.coef = coef
        self.set_scores(scores)
        return False

    def _score_coefs(self, coefs: list[np.ndarray]) -> np.ndarray:
        """Return the scores of some coefficients."""
        scores = np.broadcast_to(self.intercept, self.scores.shape).copy()
        for part, coef in zip(self._parts, coefs, strict=True):
            scores += part.phi @ coef
        return scores

    def _solve_block(self, part: _Part) -> None:
        """Minimise over one block, the others being fixed (:eq:`block-minimiser`)."""
        bends, old = self._bound * part.values, part.coef
        z = bends[:, None] * old - part.phi.T @ self.residual
        part.coef = block_minimiser(z, bends, self.alpha, self.settings.newton_steps)
        if not np.array_equal(part.coef, old):
            self.set_scores(self.scores + part.phi @ (part.coef - old))


def block_minimiser(
    z: np.ndarray,
    bends: np.ndarray,
    alpha: float,
    newton_steps: int = DEFAULT_SETTINGS.newton_steps,
) -> np.ndarray:
    r"""Return the minimiser of a quadratic function plus a norm (:eq:`block-minimiser`).

    It minimises :math:`\frac12 \sum_i b_i \|c_i\|^2 - \langle z, c \rangle + \alpha \|c\|`, where
    the last norm is that of all rows together. With :math:`\rho = \|c\|` it is :math:`c_i = \rho
    z_i / (\rho b_i + \alpha)`, and :math:`\rho` is the root of :math:`\sum_i \|z_i\|^2 / (\rho b_i
    + \alpha)^2 = 1`.

    Examples
    --------
    >>> import numpy as np
    >>> block_minimiser(np.array([[3.0], [4.0]]), np.ones(2), 1.0)
    array([[2.4],
           [3.2]])
    """
    squares = np.sum(z * z, axis=1)
    if math.sqrt(float(np.sum(squares))) <= alpha:
        return np.zeros_like(z)
    # 1 / sqrt(sum) is concave in rho: Newton's steps from zero stay below the root.
    rho = 0.0
    for _ in range(newton_steps):
        below = rho * bends + alpha
        parts = squares / (below * below)
        total = float(np.sum(parts))
        fall = float(np.sum(parts * bends / below))
        if total <= 1.0 + _LEAST_STEP or fall <= 0.0:
            break
        move = (math.sqrt(total) - 1.0) * total / fall
        rho += move
        if move <= _LEAST_STEP * rho:
            break
    return np.asarray(rho * z / (rho * bends + alpha)[:, None])
