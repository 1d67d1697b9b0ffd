"""What the engine of sparse kernel learning does with a kernel once it is chosen.

All three steps keep a model ``scores = intercept + sum_j K_j B_j`` of the chosen kernels, and can
say what the tables ``B_j`` are: sums of a few terms, which kernels may have in common. A term is
the residual where the optimum says so, as long as that is exact: what the solver left undone is
multiplied by the kernels and divided by the penalty there. Else the terms have the model's
coefficients at a few rows, the pivots of a factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from mixnorm.engines._corrective import Outcome, Problem, Support
from mixnorm.engines._machine import ridge, ridge_of_features
from mixnorm.kernels import pivoted_factor

# Steps of Newton's method for one unknown, and when they end.
_NEWTON = 50
_ROUNDING = 1e-14
# Gradients that exceed the penalty by rounding alone, in single precision, do not.
_SLACK = 1.0 + 3e-7
# A residual stands for a model that it is so near to, in parts of it.
_EXACT = 1e-7
# Second derivatives are at least so large a part of the largest possible.
_FLAT = 1e-6
# Penalties below this share of the root of the loss are lost in rounding.
_NEXT_TO_NOTHING = 1e-20
# Shorter and shorter steps that are tried.
_HALVINGS = 5


class KernelModel(Protocol):
    """What the engine asks of the model that its rounds improve.

    One with ``has_gap`` is also asked for ``largest()``, the largest score of the chosen kernels,
    and ``dual_value(largest)``, what no model can be below if that is the largest of all scores.
    """

    #: How kernels are scored.
    rule: str
    #: Whether a kernel may be chosen again.
    repeats: bool
    #: Whether the largest score of all kernels tells how far the model is from the best.
    has_gap: bool
    #: The chosen kernels, in the order in which they came.
    support: list[int]
    scores: np.ndarray
    residual: np.ndarray
    intercept: np.ndarray
    value: float
    objective: float

    def enough(self) -> float:
        """Return the score below which no kernel can improve the model."""
        ...

    def add(self, kernel: int) -> Outcome:
        """Improve the model with the help of a kernel."""
        ...

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return what the last round added.

        Tables ``(n_terms, n_samples, n_outputs)``, what each counts in each kernel of the support,
        ``(n_kernels, n_terms)``, and whether the terms before them still count.
        """
        ...

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Take up a model: its kernels, and the table of each."""
        ...


class _Model:
    """What the three have in common."""

    repeats = False
    has_gap = False

    def __init__(self, pool: Any, loss: Any, target: Any, weight: np.ndarray, n_outputs: int):
        self.pool, self.loss, self.target, self.weight = pool, loss, target, weight
        self.n_outputs = n_outputs
        self.support: list[int] = []
        empty = Support(Problem(loss, target, weight, n_outputs, 0.0, 1000), True, 1)
        empty.correct(1e-12, 0.0)
        self.intercept = self.null_intercept = np.array(empty.intercept())
        self.null_value = empty.value
        self.noise = empty.noise
        self.set_scores(np.broadcast_to(self.intercept, (len(weight), n_outputs)).copy())

    def set_scores(self, scores: np.ndarray) -> None:
        """Take new scores, with the loss and the residual that they have."""
        self.scores = scores
        value, self.residual = self.loss.value_and_residual(scores, self.target, self.weight)
        self.value = float(value)


class RidgeRefit(_Model):
    r"""Group orthogonal matching pursuit: kernel ridge regression on the sum of chosen kernels.

    Minimises the loss plus :math:`\frac\alpha2 \sum_j \|f_j\|^2` after each choice. At the optimum
    all kernels have one table in common, the residual divided by :math:`-\alpha`.
    """

    rule = "functional"

    def __init__(self, *given: Any, alpha: float, tol: float, max_iter: int) -> None:
        super().__init__(*given)
        self.alpha, self.tol, self.max_iter = alpha, tol, max_iter
        n = len(self.weight)
        self._by_factors = self.pool.grams.factors is not None
        self._K = np.zeros((0, 0) if self._by_factors else (n, n))
        self._Z = np.zeros((n, 0))
        self._dual = np.zeros((n, self.n_outputs))
        self.objective = self.value

    def enough(self) -> float:
        """Return what may be rounding."""
        return self.noise

    def add(self, kernel: int) -> Outcome:
        """Add a kernel to the sum, and solve."""
        self._extend(kernel)
        if self.loss.constant_curvature:
            Y, caps = self.target - self.intercept, self.weight / self.alpha
            try:
                self._dual = (
                    ridge_of_features(self._Z, caps, Y)
                    if self._by_factors
                    else ridge(self._K, caps, Y)
                )
            except ValueError:
                raise ValueError(
                    f"alpha={self.alpha:g} is so small beside the sum of the kernels that rounding "
                    "leaves no solution. Raise alpha."
                ) from None
            outcome = Outcome(1, 0.0, True)
        else:
            outcome = self._solve()
        self._settle()
        return outcome

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the table that all kernels have in common."""
        return self._dual[None], np.ones((len(self.support), 1)), False

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Take up a model."""
        for kernel in support:
            self._extend(kernel)
        self.intercept, self._dual = intercept, blocks[0]
        self._settle()

    def _extend(self, kernel: int) -> None:
        self.support.append(kernel)
        if self._by_factors:
            self._Z = np.concatenate([self._Z, self.pool.columns(kernel).T], axis=1)
        else:
            self._K += self.pool.matrix(kernel)

    def _product(self, A: np.ndarray) -> np.ndarray:
        return np.asarray(self._Z @ (self._Z.T @ A) if self._by_factors else self._K @ A)

    def _settle(self) -> None:
        """Score by the table that is kept."""
        parts = self._product(self._dual)
        self.set_scores(self.intercept + parts)
        self.objective = self.value + 0.5 * self.alpha * float(np.sum(parts * self._dual))

    def _solve(self) -> Outcome:
        """Minimise a loss that is not quadratic, over the columns of a factor of the sum."""
        factor, pivots = (self._Z, None) if self._by_factors else pivoted_factor(self._K)
        problem = Problem(
            self.loss, self.target, self.weight, self.n_outputs, 0.5 * self.alpha, self.max_iter
        )
        columns = Support(problem, True, factor.shape[1])
        rows, means = columns.centred(np.ascontiguousarray(factor.T))
        columns.append("kernels", rows, rows @ self._dual, means)
        columns.start_from(self.intercept)
        if not columns.objective < self.null_value:  # the table was made for fewer kernels
            columns.weights = np.zeros_like(columns.weights)
            columns.start_from(self.null_intercept)
        outcome = columns.correct(self.tol, self.null_value)
        self.intercept = np.array(columns.intercept())
        coefs = np.asarray(columns.weights[1:])
        residual = -np.asarray(columns.centred_residual()) / self.alpha
        missing = coefs - factor.T @ residual
        exact = _norm(factor @ missing) <= _EXACT * _norm(factor @ coefs)
        self._dual = residual if exact else table_of(factor, pivots, coefs)
        return outcome


class LassoRefit(_Model):
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
        self.objective = self.value

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
        scores = self.scores
        for kernel, block in zip(support, blocks, strict=True):
            self._extend(kernel)
            self._coefs[-1] = self._factors[-1].T @ block
            scores = scores + self._factors[-1] @ self._coefs[-1]
        self._free = scores
        self.set_scores(scores)

    def dual_value(self, largest: float) -> float:
        """Return what no model can be below, if ``largest`` is the largest score of a kernel."""
        shrink = min(1.0, self.alpha / largest) if largest > 0.0 else 1.0
        theta = shrink * self.residual
        pull = float(np.sum(theta * self.intercept))
        return pull - float(self.loss.conjugate(theta, self.target, self.weight))

    def largest(self) -> float:
        """Return the largest score of the chosen kernels."""
        return max((_norm(phi.T @ self.residual) for phi in self._factors), default=0.0)

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
        sizes = np.asarray([_norm(coef) for coef in self._coefs])
        with np.errstate(over="ignore", invalid="ignore"):
            shares = sizes / self.alpha
            told = [-share * (phi.T @ self.residual) for share, phi in self._parts(shares)]
            missing = max(_norm(one - other) for one, other in zip(told, self._coefs, strict=True))
        if missing <= _EXACT * float(np.max(sizes, initial=0.0)):
            coefs, self._tables, self._shares = told, -self.residual[None], shares[:, None]
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
        scores = np.broadcast_to(self.intercept, self.scores.shape).copy()
        for phi, coef in zip(self._factors, coefs, strict=True):
            scores += phi @ coef
        self.set_scores(scores)
        self.objective = self.value + self.alpha * sum(_norm(coef) for coef in coefs)

    def _parts(self, shares: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        return zip(shares.tolist(), self._factors, strict=True)

    def _solve(self) -> Outcome:
        """Go round the blocks until the duality gap on the chosen kernels is small."""
        gap, enough = math.inf, self.tol * self.null_value
        for sweep in range(1, self.max_iter + 1):
            for place in range(len(self.support)):
                self._solve_block(place)
            self._newton()
            self.set_scores(self._summed())  # without what rounding has piled up
            objective = self.value + self.alpha * self._sizes()
            gap = max(0.0, objective - self.dual_value(self.largest()))
            if gap <= enough:
                return Outcome(sweep, gap, True)
        return Outcome(self.max_iter, gap, False)

    def _sizes(self) -> float:
        return sum(_norm(coef) for coef in self._coefs)

    def _places(self) -> list[slice]:
        """Return where the features of each kernel are among all."""
        ends = np.cumsum([0, *(phi.shape[1] for phi in self._factors)])
        return [slice(ends[i], ends[i + 1]) for i in range(len(self._factors))]

    def _newton(self) -> None:
        r"""Take a Newton step on all parts that are not zero, if it lowers the objective.

        The Hessian of the bound and the norms is :math:`(L \Phi^\top W \Phi + D) \otimes I - U
        U^\top`, with the diagonal :math:`\alpha / \|c_j\|` in :math:`D`, and one column for each
        kernel in :math:`U`: one system for all outputs, and a small one.
        """
        active = [place for place, coef in enumerate(self._coefs) if np.any(coef)]
        if len(active) < (2 if self.loss.constant_curvature else 1):
            return  # a block alone has been solved
        sizes = np.asarray([_norm(self._coefs[place]) for place in active])
        try:
            solve = self._system(active, self.alpha / sizes)
        except linalg.LinAlgError:  # next to no penalty: rounding rules
            return
        units = [self._coefs[place] / size for place, size in zip(active, sizes, strict=True)]
        slopes = [
            self._factors[place].T @ self.residual + self.alpha * unit
            for place, unit in zip(active, units, strict=True)
        ]
        ends = np.cumsum([0, *(len(unit) for unit in units)])
        k = self.n_outputs
        columns = np.zeros((ends[-1], k * (1 + len(active))))
        columns[:, :k] = -np.concatenate(slopes)
        for number, unit in enumerate(units):
            columns[ends[number] : ends[number + 1], k * (1 + number) : k * (2 + number)] = unit
        solved = solve(columns)
        step, bases = (
            solved[:, :k],
            [solved[:, k * (1 + number) : k * (2 + number)] for number in range(len(active))],
        )

        def along(table: np.ndarray) -> np.ndarray:
            parts = [
                np.sum(table[ends[number] : ends[number + 1]] * unit)
                for number, unit in enumerate(units)
            ]
            return np.asarray(parts)

        inner = np.stack([along(basis) for basis in bases], axis=1)
        small = np.diag(sizes / self.alpha) - 0.5 * (inner + inner.T)
        shares = np.linalg.lstsq(small, along(step), rcond=None)[0]
        step = step + sum(share * basis for share, basis in zip(shares, bases, strict=True))
        self._try(active, [step[ends[i] : ends[i + 1]] for i in range(len(active))])

    def _system(self, active: list[int], extra: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return what solves with the curvature of some kernels, and a number for each on top."""
        design = np.concatenate([self._factors[place] for place in active], axis=1)
        above = np.repeat(extra, [self._factors[place].shape[1] for place in active])
        bends = self._bends()
        if design.shape[1] <= design.shape[0]:
            if self.loss.constant_curvature:
                at = self._places()
                index = np.concatenate([np.arange(at[i].start, at[i].stop) for i in active])
                system = self._bound * self._cross[np.ix_(index, index)]
            else:
                system = design.T @ (bends[:, None] * design)
            system[np.diag_indices(len(system))] += above
            factor = linalg.cho_factor(system, lower=True, overwrite_a=True)
            return lambda right: np.asarray(linalg.cho_solve(factor, right))
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

    def _try(self, active: list[int], steps: list[np.ndarray]) -> None:
        """Go along some steps as far as the objective falls."""
        change = sum(self._factors[place] @ step for place, step in zip(active, steps, strict=True))
        before = self.value + self.alpha * self._sizes()
        old, scores = list(self._coefs), self.scores
        length = 1.0
        for _ in range(_HALVINGS):
            for place, step in zip(active, steps, strict=True):
                self._coefs[place] = old[place] + length * step
            self.set_scores(scores + length * change)
            if self.value + self.alpha * self._sizes() < before:
                return
            length *= 0.25
        self._coefs = old
        self.set_scores(scores)

    def _summed(self) -> np.ndarray:
        scores = np.broadcast_to(self.intercept, self.scores.shape).copy()
        for phi, coef in zip(self._factors, self._coefs, strict=True):
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


class GradientSteps(_Model):
    r"""Algorithm 2: one step against the part of the functional gradient that a kernel has.

    ``step="unit"`` takes the step of the paper, :math:`1` for squared losses, which needs kernels
    of at most one between a row and itself; ``"line"`` the best along the line.
    """

    rule = "empirical"
    repeats = True

    def __init__(self, *given: Any, step: str) -> None:
        super().__init__(*given)
        self.step = step
        self._factors: dict[int, np.ndarray] = {}
        self.objective = self.value

    def enough(self) -> float:
        """Return what may be rounding."""
        return self.noise

    def add(self, kernel: int) -> Outcome:
        """Take a step in the direction of a kernel."""
        phi = self._factor(kernel)
        change = -(phi @ (phi.T @ self.residual))
        length = 1.0 / self.loss.smoothness if self.step == "unit" else self._length(change)
        self._table = -length * self.residual
        self._last = kernel
        self.set_scores(self.scores + length * change)
        self.objective = self.value
        return Outcome(1, 0.0, math.isfinite(self.value))

    def terms(self) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return the step, which belongs to one kernel."""
        mine = np.asarray([[float(kernel == self._last)] for kernel in self.support])
        return self._table[None], mine, True

    def load(self, support: list[int], blocks: list[np.ndarray], intercept: np.ndarray) -> None:
        """Take up a model."""
        scores = self.scores
        for kernel, block in zip(support, blocks, strict=True):
            phi = self._factor(kernel)
            scores = scores + phi @ (phi.T @ block)
        self.set_scores(scores)

    def _factor(self, kernel: int) -> np.ndarray:
        if kernel not in self._factors:
            self.support.append(kernel)
            self._factors[kernel] = self.pool.columns(kernel).T
        return self._factors[kernel]

    def _length(self, change: np.ndarray) -> float:
        """Return the length of the best step, by Newton's method with safeguards."""
        length, low, high = 0.0, 0.0, math.inf
        for _ in range(_NEWTON):
            _, residual = self.loss.value_and_residual(
                self.scores + length * change, self.target, self.weight
            )
            slope = float(np.sum(change * residual))
            bend = self.loss.hessian_form(change, residual, self.target, self.weight)
            if slope < 0.0:
                low = length
            else:
                high = length
            ahead = length - slope / bend if bend > 0.0 else math.inf
            if not low < ahead < high:
                ahead = 2.0 * max(length, 1.0) if high == math.inf else 0.5 * (low + high)
            moved, length = abs(ahead - length), ahead
            if self.loss.constant_curvature or moved <= 1e-10 * length:
                break
        return length


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
    for _ in range(_NEWTON):
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


def table_of(factor: np.ndarray, pivots: np.ndarray | None, coefs: np.ndarray) -> np.ndarray:
    """Return a table with ``factor.T @ table`` equal to some coefficients.

    At the pivots of the factor, where its rows are triangular; or, for any factor, the smallest.
    """
    if pivots is None:
        return np.asarray(np.linalg.lstsq(factor.T, coefs, rcond=None)[0])
    table = np.zeros((len(factor), coefs.shape[1]))
    table[pivots] = linalg.solve_triangular(factor[pivots], coefs, lower=True, trans="T")
    return table


def _norm(table: np.ndarray) -> float:
    return float(np.linalg.norm(table))
