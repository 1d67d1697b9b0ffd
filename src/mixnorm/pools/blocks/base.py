"""What pools bound to tables of blocks share: the data they are bound to, and their base class."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mixnorm.data import (
    Block,
    BlockTable,
    ColumnChoice,
    ColumnStatistics,
    RowRecipe,
    TargetRecipe,
    check_row_weights,
)
from mixnorm.pools.base import PreparedPool


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some rows of a table in memory, which stand for all that count.

    Parameters
    ----------
    rows : ndarray of int
        The numbers of the rows, rising.
    X : ndarray or CSC matrix of shape (n, n_features)
        The columns.
    weight : ndarray of shape (n,)
        Weights that sum to about one: those of the rows, divided by the share of rows drawn.
    population : int
        The number of rows that they were drawn from. All others have weight zero.
    """

    rows: np.ndarray
    X: Any
    weight: np.ndarray
    population: int


@dataclass(frozen=True, eq=False)
class RowShares:
    """The weights of the rows of blocks, as a learner counts them.

    Parameters
    ----------
    total : float
        The weights of all rows, added up.
    recipe : TargetRecipe, optional
        Makes codes of classes.
    factors : ndarray, optional
        The weight of each class.
    """

    total: float
    recipe: TargetRecipe | None = None
    factors: np.ndarray | None = None

    @property
    def target(self) -> TargetRecipe | bool:
        """The targets that blocks must have."""
        return False if self.factors is None or self.recipe is None else self.recipe

    def __call__(self, block: Block) -> np.ndarray:
        """Return the weights of the rows of a block, as shares of the weight of all rows."""
        found = check_row_weights(block.weight, block.size)
        if self.factors is not None:
            found = found * self.factors[block.y]
        return found / self.total


@dataclass(frozen=True, eq=False)
class BlockData:
    """A table of blocks, and what a survey of it has found."""

    table: BlockTable
    statistics: ColumnStatistics
    dtype: np.dtype[Any]
    #: Rows for second derivatives.
    sample: RowSample
    #: The weights of all rows.
    shares: RowShares
    #: Rows that rank columns; None reads all columns in each round.
    screen: RowSample | None = None
    #: Names what is kept of the rows for this fit.
    token: str = field(default_factory=lambda: secrets.token_hex(4))


class ResidualSums(Protocol):
    """The residual of a model on a table, for pools to sum over."""

    @property
    def errors(self) -> np.ndarray:
        """The sum of the magnitudes of the residual, by output."""
        ...

    @property
    def total(self) -> np.ndarray:
        """The sum of the residual, by output; zero where the model has no intercept."""
        ...

    @property
    def at(self) -> Any:
        """The model, the same object as long as the residual is the same."""
        ...

    @property
    def largest(self) -> np.ndarray:
        """The largest magnitude of the residual of any row, by output."""
        ...

    def on_screen(self) -> np.ndarray:
        """Return the residual on the rows that rank columns."""
        ...

    def sum(
        self,
        function: Callable[[Any, np.ndarray], Any],
        columns: ColumnChoice,
        codes: RowRecipe | None = None,
    ) -> Any:
        """Return the sum over blocks of a function of some columns and the residual.

        Of codes and the residual, where a recipe of codes is given.
        """
        ...

    def contract(self, atoms: Sequence[Hashable]) -> np.ndarray:
        """Return the products of the columns of atoms, made by the pool's recipe, with it."""
        ...


#: Rows of atoms that are kept for each block, beside those in use: pools of many atoms compare
#: others in each round.
ROWS_KEPT = 128
#: A row with a larger share of a column's squares than this share of the sample counts as a spike.
LARGEST_SHARE_OF_ROW = 1.0 / 16.0


class BlockPool(PreparedPool):
    """Base of pools bound to a table of blocks.

    ``top`` takes the residual as :class:`ResidualSums`. In place of ``columns`` there is a recipe
    that makes the scaled, centred columns of atoms from those of a block.
    """

    data: BlockData

    @property
    def table(self) -> BlockTable:
        """The table."""
        return self.data.table

    def recipe(self, atoms: Sequence[Hashable]) -> RowRecipe:
        """Return the recipe of the scaled columns of atoms, less their means, one per row."""
        raise NotImplementedError

    def offset(self, atom: Any) -> np.ndarray:
        """Return the means of the scaled columns of an atom; zeros if nothing is subtracted."""
        raise NotImplementedError

    def reach(self, atom: Any) -> float:
        """Return half the ranges of the scaled columns of an atom, added up."""
        raise NotImplementedError

    def rows_on(self, sample: RowSample, atoms: Sequence[Hashable]) -> np.ndarray:
        """Return the rows of the recipe on the rows of a sample."""
        recipe = self.recipe(atoms)
        keys = list(recipe.keys)
        return recipe.make(sample.X[:, recipe.columns(keys)], keys)

    def is_spiky(self, atom: Any) -> bool:
        """Tell whether some row may have much of an atom's curvature, which a sample can miss."""
        return True
