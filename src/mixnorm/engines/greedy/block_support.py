"""The chosen columns of a table of row blocks, seen through sums over the blocks.

The loss and its gradient are exact sums over all rows. The curvature model, which only shapes the
steps and ranks candidates, is built on the rows of a sample.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixnorm._array import Array, epsilon, namespace, tiny
from mixnorm.data import ColumnChoice, RowRecipe, TargetRecipe, add
from mixnorm.engines._core.correction import Correction, CorrectionProblem, shares_model
from mixnorm.engines._core.curvature import CurvatureFactor
from mixnorm.engines._core.orthant import shrink
from mixnorm.engines.greedy.block_rows import (
    Evaluate,
    Evaluation,
    Probe,
    RowModel,
    SumOver,
    join_evaluations,
)
from mixnorm.pools import BlockPool, Curvature


@dataclass(frozen=True, eq=False)
class BlockTarget:
    """The targets of a table of blocks, as the engine takes them.

    Parameters
    ----------
    recipe : TargetRecipe
        Makes codes of classes, or numbers, of the targets of a block.
    sample, screen : ndarray
        The targets of the rows for second derivatives, and of those that rank columns (None without
        such rows), made by the recipe.
    total : float
        The weights of all rows, added up.
    class_weight : ndarray or None
        The weight of each class.
    """

    recipe: TargetRecipe
    sample: np.ndarray
    screen: np.ndarray | None
    total: float
    class_weight: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The columns of an atom, without their rows: what the engine knows of them.

    Attributes
    ----------
    atom : object
        The atom.
    sample : ndarray of shape (width, n)
        Its columns on the rows of the sample.
    at : Evaluation, optional
        The model at which the facts below were found.
    slope : ndarray of shape (width, n_outputs), optional
        The gradient of the loss in the weights of the columns.
    touched, squares : ndarray of shape (n_outputs,), optional
        Sums of :eq:`touched-loss`.
    whole : ndarray of shape (n_factors, width), optional
        The curvature of the columns on all rows; None where the sample shows it.
    """

    atom: Any
    sample: np.ndarray
    at: Evaluation | None = None
    slope: Any = None
    touched: Any = None
    squares: Any = None
    whole: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the columns on the sample, one per row."""
        return self.sample.shape


class BlockSupport(Correction):
    """The chosen columns of a table of blocks, and their weights."""

    def __init__(
        self,
        pool: BlockPool,
        problem: CorrectionProblem,
        fit_intercept: bool,
    ) -> None:
        weight, target = problem.weight, problem.target
        self._pool, self._target = pool, target
        # The engine sees the targets of the sample; those of all rows are in the table.
        encoded = problem.loss.encode(target.sample, problem.n_outputs, weight)
        self.problem = replace(problem, target=encoded)
        self._xp = namespace(weight)
        # Sums over blocks are in double precision, and so are weights and gradients.
        self._options = {"dtype": np.dtype(np.float64), "device": None}
        self._epsilon, self._tiny = epsilon(weight), tiny(weight)
        self.has_intercept = fit_intercept
        self.first = self.size = int(fit_intercept)
        self.weights = np.zeros((self.size, problem.n_outputs))
        self.blocks: dict[Any, slice] = {}
        self._rows: dict[Any, BlockRows] = {}
        self._offsets = np.zeros(self.size)
        #: The chosen columns on the sample, one per row, below a row of ones for the intercept.
        self.design: Any = np.ones((self.size, weight.shape[0]), dtype=weight.dtype)
        self._scanned: tuple[int, Any] | None = None
        self._whole_sample = weight.shape[0] == pool.data.sample.population
        self._screen: _ScreenRows | None = None
        if pool.data.screen is not None:
            shares = pool.data.screen.weight
            screen = problem.loss.encode(target.screen, problem.n_outputs, shares)
            rows = np.ones((self.size, len(shares)), dtype=shares.dtype)
            self._screen = _ScreenRows(rows, screen, shares)
        self._probed: tuple[Any, dict[Any, BlockRows]] = (None, {})
        self.rescore()
        self.noise = 64.0 * self._epsilon * float(np.sum(self._now.errors))

    # --- sums over blocks

    def _model(self, weights: np.ndarray) -> RowModel:
        """Return a model with some weights for the functions of blocks."""
        k = self.problem.n_outputs
        intercept = weights[0] if self.has_intercept else np.zeros(k)
        return RowModel(
            self.problem.loss, weights[self.first :], intercept, self._target.total,
            self._target.class_weight, self.problem.weight.dtype,
        )  # fmt: skip

    def _sum(
        self,
        function: Any,
        atoms: Sequence[Any] = (),
        columns: ColumnChoice = None,
        combine: Any = add,
        codes: RowRecipe | None = None,
    ) -> Any:
        """Return the sum of a function of blocks, which have the chosen columns and ``atoms``."""
        wanted = [*self.blocks, *atoms]
        return self._pool.table.sum(
            function,
            columns=columns,
            target=self._target.recipe,
            recipe=self._pool.recipe(wanted) if wanted else None,
            combine=combine,
            codes=codes,
        )

    def _evaluate(self, weights: np.ndarray) -> Evaluation:
        found = self._sum(Evaluate(self._model(weights)), combine=join_evaluations)
        return Evaluation(float(found[0]), *found[1:])

    def probe(self, atoms: Sequence[Any]) -> list[BlockRows]:
        """Return the facts of new atoms at the present model, from one pass over their columns.

        What is known already is not computed again.
        """
        if self._probed[0] is not self._now:
            self._probed = (self._now, {})
        known = self._probed[1]
        new = [atom for atom in atoms if atom not in known]
        if new:
            known.update(zip(new, self._compute_facts(new), strict=True))
        return [known[atom] for atom in atoms]

    def _compute_facts(self, atoms: list[Any]) -> list[BlockRows]:
        now, pool = self._now, self._pool
        samples = [pool.rows_on(pool.data.sample, [atom]) for atom in atoms]
        widths = tuple(len(rows) for rows in samples)
        spiky = [not self._whole_sample and pool.is_spiky(atom) for atom in atoms]
        found = self._sum(Probe(self._model(self.weights), widths, any(spiky)), atoms)
        slopes, touched, squares, curved = found
        if any(spiky) and shares_model(self.size + 1):
            curved = np.mean(curved, axis=1, keepdims=True)
        ends, result = np.cumsum(widths), []
        for place, atom in enumerate(atoms):
            at = slice(int(ends[place]) - widths[place], int(ends[place]))
            whole = curved[at].T if spiky[place] else None
            facts = now, slopes[at], touched[place], squares[place], whole
            result.append(BlockRows(atom, samples[place], *facts))
        return result

    def rescore(self) -> None:
        """Compute the loss and its gradient from the weights."""
        self._take(self._evaluate(self.weights))

    def _take(self, found: Evaluation) -> None:
        self._now, self.value = found, found.value

    def _loss_gradient(self) -> Any:
        if len(self._now.gradient) != self.size - self.first:
            self.rescore()  # columns came in whose gradient is not known
        parts = [self._now.total[None, :]] if self.has_intercept else []
        return np.concatenate([*parts, self._now.gradient])

    def _trial(self, step: Array, straight: bool) -> Callable[[Any, Any, float], tuple[float, Any]]:
        def compute(weights: np.ndarray, move: Array, length: float) -> tuple[float, Evaluation]:
            found = self._evaluate(weights)
            return found.value, found

        return compute

    def _accept(self, found: Evaluation) -> None:
        self._take(found)

    # --- the sample

    def _sample_residual(self) -> np.ndarray:
        """Return the residual on the rows of the sample."""
        problem = self.problem
        dtype = problem.weight.dtype
        scores = (self.weights.T.astype(dtype) @ self.design).T
        found: np.ndarray = problem.loss.value_and_residual(scores, problem.target, problem.weight)[
            1
        ]
        return found

    def screen_residual(self) -> np.ndarray:
        """Return the residual on the rows that rank columns."""
        screen: Any = self._screen
        scores = (self.weights.T.astype(screen.weight.dtype) @ screen.rows).T
        return np.asarray(
            self.problem.loss.value_and_residual(scores, screen.target, screen.weight)[1]
        )

    def _sample_curvature(self) -> Any:
        problem = self.problem
        return problem.loss.curvature(self._sample_residual(), problem.target, problem.weight)

    def _make_factor(self) -> CurvatureFactor:
        curvature = self._sample_curvature()
        if shares_model(self.size):
            curvature = np.mean(curvature, axis=1, keepdims=True)
        return CurvatureFactor(self.design, curvature, self._ridge, self._wholes(curvature))

    def _wholes(self, curvature: np.ndarray) -> Any:
        """Return the curvature of all chosen columns on all rows, where it is known."""
        if self._whole_sample:
            return None
        factors = curvature.shape[1]
        nothing = np.zeros((factors, self.first))  # of the intercept, all is seen
        parts = [_curvature_of(rows, factors) for rows in self._rows.values()]
        return np.concatenate([nothing, *parts], axis=1)

    def scan_curvature(self) -> Curvature:
        """Return the second derivatives from which a pool estimates gains (:eq:`score-statistic`).

        They are computed again only when the number of atoms has doubled.
        """
        problem, size = self.problem, len(self.blocks)
        if self._scanned is None or not self._scanned[0] <= size < 2 * max(1, self._scanned[0]):
            self._scanned = (size, self._sample_curvature())
        return Curvature(
            weights=self._scanned[1],
            samples=problem.weight,
            loss_per_error=self.loss_per_error(),
            ridge=problem.new_ridge,
            intercept=self.has_intercept,
        )

    # --- columns that come and go

    def offer(self, pool: BlockPool, atoms: list[Any]) -> list[tuple[Any, Any, Any]]:
        """Return for each atom its columns, the gradient in their weights, and their means."""
        return [
            (rows, self._shrink(rows.slope), pool.offset(rows.atom)) for rows in self.probe(atoms)
        ]

    def read(self, pool: BlockPool, atom: Any) -> tuple[Any, Any]:
        """Return the columns of an atom that is not chosen, and their means."""
        return BlockRows(atom, pool.rows_on(pool.data.sample, [atom])), pool.offset(atom)

    def append(
        self,
        atom: Any,
        rows: BlockRows,
        weights: Array | None = None,
        offset: Array | None = None,
    ) -> None:
        """Add the columns of ``atom``; ``weights`` are zero by default."""
        start, width = self.size, rows.shape[0]
        if (
            weights is None
            and rows.at is self._now
            and len(self._now.gradient) == len(self.weights) - self.first
        ):
            gradient = np.concatenate([self._now.gradient, rows.slope])
            self._now = replace(self._now, gradient=gradient)
        self.size = start + width
        self.design = np.concatenate([self.design, rows.sample])
        if shares_model(self.size) and not shares_model(start):
            self._factor = None
        if self._screen is not None:
            more = self._pool.rows_on(self._pool.data.screen, [atom])  # type: ignore[arg-type]
            self._screen = replace(self._screen, rows=np.concatenate([self._screen.rows, more]))
        if self._factor is not None:
            whole = None
            if not self._whole_sample:
                whole = _curvature_of(rows, self._factor.n_factors)
            self._factor.extend(self.design, self.problem.new_ridge, whole)
        self.blocks[atom], self._rows[atom] = slice(start, self.size), rows
        offset = np.zeros(width) if offset is None else offset
        self._offsets = np.concatenate([self._offsets, offset])
        if weights is None:
            weights = np.zeros((width, self.problem.n_outputs))
        self.weights = np.concatenate([self.weights, weights])

    def columns(self, atom: Any) -> tuple[Any, Any]:
        """Return the columns of a chosen atom, and their means."""
        return self._rows[atom], self._offsets[self.blocks[atom]]

    def branch(self, *, own_room: bool = False) -> BlockSupport:
        """Return a copy to go on with; this support stays as it is."""
        # Arrays are replaced, never changed in place; the dictionaries and the factor are copied.
        other = copy.copy(self)
        other.blocks, other._rows = dict(self.blocks), dict(self._rows)
        other._factor = copy.copy(self._factor)
        return other

    def without(self, atom: Any) -> BlockSupport:
        """Return a copy without ``atom``; the other weights are unchanged."""
        other, gone = self.branch(), self.blocks[atom]
        width = gone.stop - gone.start
        kept = np.concatenate([np.arange(gone.start), np.arange(gone.stop, self.size)])
        other.design, other.weights = self.design[kept], self.weights[kept]
        other._offsets, other.size = self._offsets[kept], self.size - width
        if self._screen is not None:
            other._screen = replace(self._screen, rows=self._screen.rows[kept])
        del other._rows[atom]
        other.blocks = self._places_without(atom)
        other._factor = None
        other.rescore()
        return other

    # --- what choices need

    def centred_residual(self) -> BlockResidual:
        """Return the residual, for pools to sum over."""
        return BlockResidual(self)

    def slope_at_zero(self, rows: BlockRows) -> Any:
        """Return the slope for the weights of new columns, which are zero."""
        return self._shrink(self.probe([rows.atom])[0].slope)

    def _shrink(self, gradient: np.ndarray) -> np.ndarray:
        kink = self.problem.kink
        return np.asarray(shrink(gradient, kink)) if kink > 0.0 else gradient

    def newton_gains(self, blocks: list[BlockRows], slopes: list[Any]) -> Any:
        """Return by output the gain of each block of new columns over the chosen ones."""
        ridge, left, factor = self.problem.new_ridge, self.slope(), self.curvature()
        wholes = None
        if not self._whole_sample:
            wholes = [_curvature_of(rows, factor.n_factors) for rows in blocks]
        samples = [rows.sample for rows in blocks]
        return factor.gains(self.design, samples, slopes, ridge, left, wholes)

    def bound_gains(self, atoms: Sequence[Any], bounds: Sequence[Any]) -> np.ndarray:
        """Return bounds of the gains of atoms of which only bounds of the gradients are known."""
        factor, pool = self.curvature(), self._pool
        samples = [pool.rows_on(pool.data.sample, [atom]) for atom in atoms]
        gains = factor.bound_gains(
            self.design, samples, bounds, self.problem.new_ridge, self.slope()
        )
        return np.asarray(gains)

    def touched_loss(self, blocks: list[BlockRows]) -> Any:
        """Return by output and block the loss on the rows that a block touches."""
        touched = np.stack([rows.touched for rows in blocks])
        squares = np.stack([rows.squares for rows in blocks]) + self._tiny
        return self.loss_per_error() * (touched * touched / squares).T

    def loss_per_error(self) -> float:
        """Return the loss divided by the sum of the magnitudes of the residual."""
        return self.value / (float(np.sum(self._now.errors)) + self._tiny)

    def _reach(self, rows: BlockRows) -> float:
        return self._pool.reach(rows.atom)


def _curvature_of(rows: BlockRows, factors: int) -> np.ndarray:
    """Return the curvature of columns on all rows; zeros where the sample shows it."""
    return np.zeros((factors, rows.shape[0])) if rows.whole is None else rows.whole


@dataclass(frozen=True, eq=False)
class _ScreenRows:
    """The rows that rank columns: the chosen columns there, their targets and weights."""

    rows: np.ndarray
    target: Any
    weight: np.ndarray


class BlockResidual:
    """The residual of a support, for pools to sum over (:class:`~mixnorm.pools.ResidualSums`)."""

    def __init__(self, support: BlockSupport) -> None:
        self._support, self._now = support, support._now

    @property
    def at(self) -> Evaluation:
        """The model, the same object as long as the residual is the same."""
        return self._now

    @property
    def errors(self) -> np.ndarray:
        """The sum of the magnitudes of the residual, by output."""
        return self._now.errors

    @property
    def largest(self) -> np.ndarray:
        """The largest magnitude of the residual of any row, by output."""
        return self._now.largest

    def on_screen(self) -> np.ndarray:
        """Return the residual on the rows that rank columns."""
        return self._support.screen_residual()

    @property
    def total(self) -> np.ndarray:
        """The sum of the residual, by output."""
        return self._now.total

    def _model(self) -> RowModel:
        return self._support._model(self._support.weights)

    def sum(
        self,
        function: Callable[[Any, np.ndarray], Any],
        columns: ColumnChoice,
        codes: RowRecipe | None = None,
    ) -> Any:
        """Return the sum over blocks of a function of some columns, or codes, and the residual."""
        return self._support._sum(SumOver(self._model(), function), columns=columns, codes=codes)

    def contract(self, atoms: Sequence[Any]) -> np.ndarray:
        """Return the products of the columns of atoms, made by the pool's recipe, with it."""
        return np.concatenate([rows.slope for rows in self._support.probe(atoms)])
