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
from mixnorm.data import ColumnChoice, TargetRecipe
from mixnorm.engines._core.correction import Correction, CorrectionProblem, shares_model
from mixnorm.engines._core.curvature import CurvatureFactor
from mixnorm.engines._core.orthant import shrink
from mixnorm.engines.greedy.block_rows import (
    Contract,
    Evaluate,
    Evaluation,
    Probe,
    RowModel,
    SumOver,
)
from mixnorm.pools import BlockPool, Curvature


@dataclass(frozen=True, eq=False)
class BlockTarget:
    """The targets of a table of blocks, as the engine takes them.

    Parameters
    ----------
    recipe : TargetRecipe
        Makes codes of classes, or numbers, of the targets of a block.
    sample : ndarray
        The targets of the rows of the sample, made by the recipe.
    total : float
        The weights of all rows, added up.
    class_weight : ndarray or None
        The weight of each class.
    """

    recipe: TargetRecipe
    sample: np.ndarray
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
        The curvature of the columns on all rows; None if the sample has all rows.
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
        self._whole_sample = weight.shape[0] == pool.table.shape[0]
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

    def _sum(self, function: Any, atoms: Sequence[Any] = (), columns: ColumnChoice = None) -> Any:
        """Return the sum of a function of blocks, which have the chosen columns and ``atoms``."""
        wanted = [*self.blocks, *atoms]
        return self._pool.table.sum(
            function,
            columns=columns,
            target=self._target.recipe,
            recipe=self._pool.recipe(wanted) if wanted else None,
        )

    def _evaluate(self, weights: np.ndarray) -> Evaluation:
        value, gradient, total, errors = self._sum(Evaluate(self._model(weights)))
        return Evaluation(float(value), gradient, total, errors)

    def _probe(self, handles: list[BlockRows]) -> list[BlockRows]:
        """Return the facts of new atoms at the present model, from one pass over their columns."""
        now, widths = self._now, tuple(rows.shape[0] for rows in handles)
        atoms = [rows.atom for rows in handles]
        found = self._sum(Probe(self._model(self.weights), widths), atoms)
        slopes, touched, squares, curved = found
        if shares_model(self.size + 1):
            curved = np.mean(curved, axis=1, keepdims=True)
        ends = np.cumsum(widths)
        result = []
        for place, (rows, end) in enumerate(zip(handles, ends, strict=True)):
            at = slice(int(end) - rows.shape[0], int(end))
            whole = None if self._whole_sample else curved[at].T
            facts = now, slopes[at], touched[place], squares[place], whole
            result.append(BlockRows(rows.atom, rows.sample, *facts))
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
        handles = list(self._rows.values())
        if self._whole_sample or any(rows.whole is None for rows in handles):
            return None
        nothing = np.zeros((curvature.shape[1], self.first))  # of the intercept, all is seen
        return np.concatenate([nothing, *(rows.whole for rows in handles)], axis=1)

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
        handles = self._probe([self._read(pool, atom) for atom in atoms])
        return [(rows, self._shrink(rows.slope), pool.offset(rows.atom)) for rows in handles]

    def read(self, pool: BlockPool, atom: Any) -> tuple[Any, Any]:
        """Return the columns of an atom that is not chosen, and their means."""
        return self._read(pool, atom), pool.offset(atom)

    def _read(self, pool: BlockPool, atom: Any) -> BlockRows:
        return BlockRows(atom, pool.sample_rows([atom]))

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
        if self._factor is not None:
            if rows.whole is None and not self._whole_sample:
                self._factor = None
            else:
                self._factor.extend(self.design, self.problem.new_ridge, rows.whole)
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
        del other._rows[atom]
        other.blocks = {
            name: slice(part.start - width, part.stop - width) if part.start > gone.start else part
            for name, part in self.blocks.items()
            if name != atom
        }
        other._factor = None
        other.rescore()
        return other

    # --- what choices need

    def centred_residual(self) -> BlockResidual:
        """Return the residual, for pools to sum over."""
        return BlockResidual(self)

    def slope_at_zero(self, rows: BlockRows) -> Any:
        """Return the slope for the weights of new columns, which are zero."""
        return self._shrink(self._probe([rows])[0].slope)

    def _shrink(self, gradient: np.ndarray) -> np.ndarray:
        kink = self.problem.kink
        return np.asarray(shrink(gradient, kink)) if kink > 0.0 else gradient

    def newton_gains(self, blocks: list[BlockRows], slopes: list[Any]) -> Any:
        """Return by output the gain of each block of new columns over the chosen ones."""
        ridge, left, factor = self.problem.new_ridge, self.slope(), self.curvature()
        wholes = None if self._whole_sample else [rows.whole for rows in blocks]
        samples = [rows.sample for rows in blocks]
        return factor.gains(self.design, samples, slopes, ridge, left, wholes)

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


class BlockResidual:
    """The residual of a support, for pools to sum over (:class:`~mixnorm.pools.ResidualSums`)."""

    def __init__(self, support: BlockSupport) -> None:
        self._support, self._now = support, support._now

    @property
    def errors(self) -> np.ndarray:
        """The sum of the magnitudes of the residual, by output."""
        return self._now.errors

    @property
    def total(self) -> np.ndarray:
        """The sum of the residual, by output."""
        return self._now.total

    def _model(self) -> RowModel:
        return self._support._model(self._support.weights)

    def sum(self, function: Callable[[Any, np.ndarray], Any], columns: ColumnChoice) -> Any:
        """Return the sum over blocks of a function of some columns and the residual."""
        return self._support._sum(SumOver(self._model(), function), columns=columns)

    def contract(self, atoms: Sequence[Any]) -> np.ndarray:
        """Return the products of the columns of atoms, made by the pool's recipe, with it."""
        found: np.ndarray = self._support._sum(Contract(self._model()), atoms)
        return found
