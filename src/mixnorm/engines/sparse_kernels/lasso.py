"""Algorithm 1 of sparse kernel learning: a penalty on the norms of the kernels' parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from mixnorm.engines._core.corrective import Outcome
from mixnorm.engines.sparse_kernels.refit import EXACT, NEWTON, KernelModel, norm, table_of

# Gradients that exceed the penalty by rounding alone, in single precision, do not.
_SLACK = 1.0 + 3e-7
# Second derivatives are at least so large a part of the largest possible.
_FLAT = 1e-6
# Penalties below this share of the root of the loss are lost in rounding.
_NEXT_TO_NOTHING = 1e-20
# Shorter and shorter steps that are tried.
_TRIES = 5
# Rounds of blocks after which Newton steps that fail are replaced.
_PATIENT = 20
# Rounds of blocks after which the gap must have fallen to this part, or the solver gives up.
_A_WHILE, _LOWER = 100, 0.5
# Steps shorter than this, beside where they lead, are rounding.
_ROUNDING = 1e-14


class LassoRefit(KernelModel):
    r"""Algorithm 1: the loss plus :math:`\alpha \sum_j \|f_j\|`, solved on the chosen kernels.

    By blocks: a kernel's part is minimised exactly under a quadratic bound of the loss, which for
    squared losses is the loss. After each round of blocks, those that are not zero take a Newton
    step together, without which kernels that are much alike would take thousands of rounds.
    """

    rule = "functional"
    has_gap = True

    def __init__(self, *given: Any, alpha: float, tol: float, max_iter: int) -> None:
        super().__init__(*given)
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        if alpha < _NEXT_TO_NOTHING * math.sqrt(self.null_value):
            raise ValueError(
                "alpha is next to nothing beside the loss of a constant, which rounding cannot "
                "tell from none. Raise alpha, or set algorithm='l2', which has none."
            )
        self._bound = float(self.loss.smoothness)
        self._factors: list[np.ndarray] = []
        self._pivots: list[tuple[np.ndarray, np.ndarray | None]] = []
        self._values: list[np.ndarray] = []
        self._coefs: list[np.ndarray] = []
        self._cross = np.zeros((0, 0))  # products of all features under the weights
        self._free = self.scores  # as the solver moves them

    def enough(self) -> float:
        """Return the penalty, which is what a gradient must exceed."""
        return max(self.alpha * _SLACK, self.noise)

    def add(self, kernel: int) -> Outcome:
        """Add a kernel, and solve."""
        self._extend(kernel)
        self.set_scores(self._free)
        outcome = self._solve()
        self._settle()
        return outcome

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the residual, and what it counts in each kernel; or a table for each."""
        return self._tables, self._shares, False

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Take up a model."""
        for kernel, block in zip(support, blocks, strict=True):
            self._extend(kernel)
            self._coefs[-1] = self._factors[-1].T @ block
        self._free = self._sum_of(self._coefs)
        self.set_scores(self._free)

    def dual_value(self, largest: float) -> float:
        """Return what no model can be below, if ``largest`` is the largest score of a kernel."""
        shrink = min(1.0, self.alpha / largest) if largest > 0.0 else 1.0
        theta = shrink * self.residual
        pull = float(np.sum(theta * self.intercept))
        return pull - float(self.loss.conjugate(theta, self.target, self.weight))

    def largest(self) -> float:
        """Return the largest score of the chosen kernels."""
        return max((norm(phi.T @ self.residual) for phi in self._factors), default=0.0)

    def _extend(self, kernel: int) -> None:
        """Turn the features of a kernel so that their products under the weights are diagonal."""
        self.support.append(kernel)
        raw, pivots = self.pool.factor(kernel)
        values, turn = np.linalg.eigh(raw.T @ (self.weight[:, None] * raw))
        phi = np.ascontiguousarray(raw @ turn)
        self._pivots.append((turn, pivots))
        rank, old = phi.shape[1], len(self._cross)
        if old + rank <= len(phi):
            cross = np.zeros((old + rank, old + rank))
            cross[:old, :old] = self._cross
            weighted = self.weight[:, None] * phi
            for place, others in zip(self._places(), self._factors, strict=True):
                cross[place, old:] = others.T @ weighted
                cross[old:, place] = cross[place, old:].T
            cross[old:, old:] = np.diag(np.maximum(values, 0.0))
            self._cross = cross
        else:  # products of rows are fewer
            self._cross = np.zeros((old + rank, 0))
        self._factors.append(phi)
        self._values.append(np.maximum(values, 0.0))
        self._coefs.append(np.zeros((phi.shape[1], self.n_outputs)))

    def _settle(self) -> None:
        """Score by what is kept: the residual times the length of each part, or each part."""
        self._free = self.scores
        sizes = np.asarray([norm(coef) for coef in self._coefs])
        with np.errstate(over="ignore", invalid="ignore"):
            shares = sizes / self.alpha
            implied = [
                -share * (phi.T @ self.residual)
                for share, phi in zip(shares.tolist(), self._factors, strict=True)
            ]
            pairs = zip(implied, self._coefs, strict=True)
            missing = max(norm(one - other) for one, other in pairs)
        if missing <= EXACT * float(np.max(sizes, initial=0.0)):
            coefs, self._tables, self._shares = implied, -self.residual[None], shares[:, None]
        else:
            coefs = self._coefs
            self._tables = np.stack(
                [
                    table_of(phi @ turn.T, pivots, turn @ coef)
                    for phi, (turn, pivots), coef in zip(
                        self._factors, self._pivots, self._coefs, strict=True
                    )
                ]
            )
            self._shares = np.eye(len(self.support))
        self.set_scores(self._sum_of(coefs))
        self.objective = self._penalised(coefs)

    def _solve(self) -> Outcome:
        """Go round the blocks until the duality gap on the chosen kernels is small."""
        gap, enough = math.inf, self.tol * self.null_value
        lowest, before = math.inf, math.inf
        for sweep in range(1, self.max_iter + 1):
            for place in range(len(self.support)):
                self._solve_block(place)
            self._newton(sweep > _PATIENT)
            self.set_scores(self._sum_of(self._coefs))  # without what rounding has piled up
            gap = max(0.0, self._penalised(self._coefs) - self.dual_value(self.largest()))
            if gap <= enough:
                return Outcome(sweep, gap, True)
            lowest = min(lowest, gap)
            if sweep % _A_WHILE == 0:
                if lowest > _LOWER * before:  # next to no penalty: it would crawl on for ever
                    break
                before = lowest
        return Outcome(sweep, gap, False)

    def _penalised(self, coefs: list[np.ndarray]) -> float:
        """Return the loss of the present scores, and the penalty of some parts."""
        return self.value + self.alpha * sum(norm(coef) for coef in coefs)

    def _places(self) -> list[slice]:
        """Return where the features of each kernel are among all."""
        ends = np.cumsum([0, *(phi.shape[1] for phi in self._factors)])
        return [slice(ends[i], ends[i + 1]) for i in range(len(self._factors))]

    def _newton(self, careful: bool) -> None:
        r"""Take a Newton step on all parts that are not zero, if it lowers the objective.

        Where it does not, ``careful`` takes a shorter one, to the best point of a quadratic bound.

        The Hessian of the bound and the norms is :math:`(L \Phi^\top W \Phi + D) \otimes I - U
        U^\top`, with the diagonal :math:`\alpha / \|c_j\|` in :math:`D`, and one column for each
        kernel in :math:`U`: one system for all outputs, and a small one.
        """
        active = [place for place, coef in enumerate(self._coefs) if np.any(coef)]
        if len(active) < (2 if self.loss.constant_curvature else 1):
            return  # a block alone has been solved
        sizes = np.asarray([norm(self._coefs[place]) for place in active])
        try:
            solve = self._system(active, self.alpha / sizes)
        except linalg.LinAlgError:  # next to no penalty: rounding rules
            return
        units = [self._coefs[place] / size for place, size in zip(active, sizes, strict=True)]
        slopes = [
            self._factors[place].T @ self.residual + self.alpha * unit
            for place, unit in zip(active, units, strict=True)
        ]
        cuts, k = np.cumsum([len(unit) for unit in units])[:-1], self.n_outputs
        solved = solve(np.hstack([-np.concatenate(slopes), linalg.block_diag(*units)]))
        step, *bases = np.split(solved, range(k, solved.shape[1], k), axis=1)

        def along(table: np.ndarray) -> np.ndarray:
            parts = zip(np.split(table, cuts), units, strict=True)
            return np.asarray([np.sum(part * unit) for part, unit in parts])

        inner = np.stack([along(basis) for basis in bases], axis=1)
        small = np.diag(sizes / self.alpha) - 0.5 * (inner + inner.T)
        shares = np.linalg.lstsq(small, along(step), rcond=None)[0]
        whole = step + sum(share * basis for share, basis in zip(shares, bases, strict=True))
        for way in (whole, step) if careful else (whole,):
            if self._try(active, np.split(way, cuts)):
                return

    def _system(self, active: list[int], extra: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return what solves with the curvature of some kernels, and a number for each on top."""
        design = np.concatenate([self._factors[place] for place in active], axis=1)
        above = np.repeat(extra, [self._factors[place].shape[1] for place in active])
        bends = self._bends()
        if design.shape[1] <= design.shape[0]:
            if self.loss.constant_curvature and self._cross.shape[1]:
                at = self._places()
                index = np.concatenate([np.arange(at[i].start, at[i].stop) for i in active])
                system = self._bound * self._cross[np.ix_(index, index)]
            else:
                system = design.T @ (bends[:, None] * design)
            system[np.diag_indices(len(system))] += above
            try:
                factor = linalg.cho_factor(system, lower=True, overwrite_a=True)
                return lambda right: np.asarray(linalg.cho_solve(factor, right))
            except linalg.LinAlgError:  # next to no penalty; not beside the rows
                pass
        system = (design / above) @ design.T
        system[np.diag_indices(len(system))] += 1.0 / bends
        factor = linalg.cho_factor(system, lower=True, overwrite_a=True)

        def solve(right: np.ndarray) -> np.ndarray:
            scaled = right / above[:, None]
            inner = linalg.cho_solve(factor, design @ scaled)
            return np.asarray(scaled - (design.T @ inner) / above[:, None])

        return solve

    def _bends(self) -> np.ndarray:
        """Return about the second derivatives of the loss in the scores, one for each sample."""
        if self.loss.constant_curvature:
            return self._bound * self.weight
        found = self.loss.curvature(self.residual, self.target, self.weight)
        return np.maximum(np.mean(found, axis=1), _FLAT * self._bound * self.weight)

    def _try(self, active: list[int], steps: list[np.ndarray]) -> bool:
        """Go along some steps as far as the objective falls; True if it does."""
        change = sum(self._factors[place] @ step for place, step in zip(active, steps, strict=True))
        before = self._penalised(self._coefs)
        old, scores = list(self._coefs), self.scores
        length = 1.0
        for _ in range(_TRIES):
            for place, step in zip(active, steps, strict=True):
                self._coefs[place] = old[place] + length * step
            self.set_scores(scores + length * change)
            if self._penalised(self._coefs) < before:
                return True
            length *= 0.25
        self._coefs = old
        self.set_scores(scores)
        return False

    def _sum_of(self, coefs: list[np.ndarray]) -> np.ndarray:
        """Return the scores that some parts add up to."""
        scores = np.broadcast_to(self.intercept, self.scores.shape).copy()
        for phi, coef in zip(self._factors, coefs, strict=True):
            scores += phi @ coef
        return scores

    def _solve_block(self, place: int) -> None:
        phi, values, old = self._factors[place], self._values[place], self._coefs[place]
        bends = self._bound * values
        new = block_minimiser(bends[:, None] * old - phi.T @ self.residual, bends, self.alpha)
        if np.array_equal(new, old):
            return
        self._coefs[place] = new
        self.set_scores(self.scores + phi @ (new - old))


def block_minimiser(z: np.ndarray, bends: np.ndarray, alpha: float) -> np.ndarray:
    r"""Return the best block of a quadratic function and a norm.

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
    # 1 / sqrt(sum) is concave in rho: from zero, Newton's steps come from below and never pass.
    rho = 0.0
    for _ in range(NEWTON):
        below = rho * bends + alpha
        parts = squares / (below * below)
        total = float(np.sum(parts))
        fall = float(np.sum(parts * bends / below))
        if total <= 1.0 + _ROUNDING or fall <= 0.0:
            break
        move = (math.sqrt(total) - 1.0) * total / fall
        rho += move
        if move <= _ROUNDING * rho:
            break
    return np.asarray(rho * z / (rho * bends + alpha)[:, None])
