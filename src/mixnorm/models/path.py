"""A path of models that grow by one atom per round, and the model at its end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mixnorm._array import Array, is_numpy, namespace, to_dense
from mixnorm.models.checks import check_floats
from mixnorm.models.inputs import Inputs
from mixnorm.models.outputs import ClassOutputs, NumberOutputs
from mixnorm.models.scores import check_scores, constant_scores, weighted_scores
from mixnorm.pools import Cost, Pool


@dataclass(frozen=True)
class Round:
    """The model after one round.

    ``weights`` has one row per column of the atoms in ``support``, in that order. ``atom`` is the
    atom that was added, and ``gradient`` the l1 norm of its gradient before the round. If the
    backward pass found the model, ``atom`` is the atom that the next smaller model lacks if there
    is just one, and the last of the support otherwise; ``gradient`` is its gradient at that smaller
    model. ``alpha`` is the weight of the penalty.
    """

    atom: Any
    support: tuple[Any, ...]
    weights: Any
    intercept: Any
    loss: float
    objective: float
    gradient: float
    seconds: float
    iterations: int
    gap: float
    converged: bool
    alpha: float = math.nan


@dataclass(frozen=True)
class Path:
    """The model after each round, and how the run ended."""

    rounds: tuple[Round, ...]
    null_loss: float
    null_intercept: Any
    interrupted: bool = False
    exhausted: bool = False

    @property
    def converged(self) -> bool:
        """Whether every round reached its tolerance."""
        return all(step.converged for step in self.rounds)

    def support(self, size: int) -> tuple[Any, ...]:
        """Return the atoms after ``size`` rounds, or after all if there are fewer."""
        return self.rounds[min(size, len(self.rounds)) - 1].support if self.rounds else ()

    def first(self, size: int) -> Self:
        """Return the path with its first ``size`` rounds alone."""
        return replace(self, rounds=self.rounds[:size])

    def check(self) -> int:
        """Raise unless the arrays of all rounds have shapes that fit; return how many outputs."""
        check_floats(self.null_intercept, (None,), "the intercept without features")
        n_outputs: int = self.null_intercept.shape[0]
        for step in self.rounds:
            check_floats(step.weights, (None, n_outputs), "the weights of a round")
            check_floats(step.intercept, (n_outputs,), "the intercept of a round")
            if not isinstance(step.alpha, float) or not step.alpha >= 0.0:
                raise ValueError("the penalty of a round must be a number from 0 up")
        return n_outputs


@dataclass(frozen=True, eq=False)
class PathModel:
    """Weighted atoms of a pool, with the smaller models that led to them.

    Parameters
    ----------
    path : Path
        The rounds. Weights are for columns as given, and targets in the units of the fit, so that
        a later fit can continue the path; ``outputs`` converts them.
    pool : pool object
        Evaluates the atoms; it has learned from the training data.
    inputs : Inputs
        The columns.
    outputs : ClassOutputs or NumberOutputs
        What the scores mean.
    """

    path: Path
    pool: Pool
    inputs: Inputs
    outputs: ClassOutputs | NumberOutputs

    @property
    def size(self) -> int:
        """Number of rounds."""
        return len(self.path.rounds)

    @property
    def support(self) -> tuple[Any, ...]:
        """The atoms, in the order of their weights."""
        return self.path.support(self.size)

    @property
    def labels(self) -> list[Any]:
        """The names of the atoms, given by the pool."""
        return list(self.pool.labels(self.support))

    @cached_property
    def selected(self) -> np.ndarray:
        """The columns that are read, in the order in which they were chosen."""
        # An atom may read several columns, and several atoms the same one: each is listed once.
        read = self.pool.feature_indices(self.support, self.inputs.n_features)
        return np.asarray(list(dict.fromkeys(read.tolist())), dtype=np.intp)

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of the atoms' columns, ``(n_columns, n_scores)``, in the units of the targets."""
        return self._rescale(self.path.rounds[-1] if self.path.rounds else None)[0]

    @cached_property
    def intercept(self) -> np.ndarray:
        """The intercept of every score, in the units of the targets."""
        return self._rescale(self.path.rounds[-1] if self.path.rounds else None)[1]

    def _rescale(self, step: Round | None) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and intercept of a round, or of none, in the units of the targets."""
        # Targets were centred and divided by a unit in the fit.
        unit, centre = self.outputs.unit, self.outputs.centre
        if step is None:
            nothing = self.path.null_intercept
            # A model without features has weights of the right width and no rows.
            weights = np.zeros((0, nothing.shape[0]), nothing.dtype)
            return weights, nothing * unit + centre
        with np.errstate(over="ignore", invalid="ignore"):  # scores are checked
            return step.weights * unit, step.intercept * unit + centre

    @cached_property
    def coef(self) -> tuple[np.ndarray, Any]:
        """``coef_`` and ``intercept_``: for every column of the data, where atoms are columns."""
        weights = self.weights
        if self.pool.plain:
            read = self.pool.feature_indices(self.support, self.inputs.n_features)
            full = np.zeros((self.inputs.n_features, weights.shape[1]), dtype=weights.dtype)
            full[read] = weights
            weights = full
        return self.outputs.to_coef(weights, self.intercept)

    @cached_property
    def curve(self) -> dict[str, np.ndarray]:
        """One row per round: the feature, the loss, its gradient and the seconds."""
        rounds, unit = self.path.rounds, self.outputs.unit
        return {
            "feature": _column(self.pool.labels([step.atom for step in rounds])),
            "loss": np.asarray([squared_units(step.loss, unit) for step in rounds]),
            "gradient": np.asarray([step.gradient * unit for step in rounds]),
            "seconds": np.asarray([step.seconds for step in rounds]),
        }

    @property
    def null_loss(self) -> float:
        """The training loss with no features."""
        return squared_units(self.path.null_loss, self.outputs.unit)

    def scores(self, X: Array) -> Any:
        """Return the scores of new rows: ``(n_samples, n_scores)``."""
        if not self.path.rounds:
            return constant_scores(self.intercept, X)
        with np.errstate(over="ignore", invalid="ignore"):
            if is_numpy(X):
                # Compiled or fused by the pool; arrays of other libraries go through columns.
                scorer = self.pool.scorer(self.support, self.weights, self.intercept)
                return check_scores(scorer(X))
            columns = self.pool.evaluate(X, self.support)
            return check_scores(weighted_scores(columns, self.weights, self.intercept))

    def staged_scores(self, X: Array) -> Iterator[Any]:
        """Yield the scores after each round, reading each chosen column once."""
        rounds, pool = self.path.rounds, self.pool
        atoms = list(dict.fromkeys(atom for step in rounds for atom in step.support))
        if not rounds:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            values = to_dense(pool.evaluate(X, atoms))
        # An atom may have several columns, such as a group.
        ends = np.cumsum([pool.n_columns(atom, X.shape[1]) for atom in atoms]).tolist()
        places = dict(zip(atoms, zip([0, *ends], ends, strict=False), strict=True))
        for step in rounds:
            weights, intercept = self._rescale(step)
            # Usually the columns of a round are the first ones, and a view is enough.
            design = values[:, : weights.shape[0]]
            if step.support != tuple(atoms[: len(step.support)]):  # an atom has been dropped
                parts = [values[:, slice(*places[atom])] for atom in step.support]
                design = namespace(values).concat(parts, axis=1)
            with np.errstate(over="ignore", invalid="ignore"):
                scores = weighted_scores(design, weights, intercept)
            yield check_scores(scores)

    def truncate(self, size: int) -> Self:
        """Return the model after ``size`` rounds."""
        return replace(self, path=self.path.first(size))

    def last(self) -> Self:
        """Return the model with its last round alone, which predicts the same."""
        return replace(self, path=replace(self.path, rounds=self.path.rounds[-1:]))

    def cost(self) -> Cost:
        """Return the cost of a prediction: of the columns, and of their weights."""
        n_outputs = np.atleast_2d(self.coef[0]).shape[0]
        return self.pool.total_cost(self.support, self.inputs.n_features, n_outputs)

    def check(self, max_bytes: int) -> None:
        """Raise unless ``scores`` can work with the parts, which may come from anybody's file."""
        n_outputs = self.path.check()
        self.outputs.check(n_outputs)
        if self.outputs.loss is None:
            raise ValueError("a path must have the loss of its fit")
        self.inputs.check(n_outputs, max_bytes)
        rounds, n_features = self.path.rounds, self.inputs.n_features
        # Keyed by their texts, since 1 and True are the same key.
        atoms = {repr(atom): atom for step in rounds for atom in (step.atom, *step.support)}
        widths = {text: self.pool.n_columns(atom, n_features) for text, atom in atoms.items()}
        for step in rounds:
            _check_support(step, sum(widths[repr(atom)] for atom in step.support))


def squared_units(loss: float, unit: float) -> float:
    """Return a loss for targets as given; the largest float where that overflows."""
    return min(loss * unit * unit, float(np.finfo(np.float64).max))


def _column(labels: list[Any]) -> np.ndarray:
    """Return labels as one column: whole numbers as such, all others as objects."""
    if all(isinstance(label, int) for label in labels):
        return np.asarray(labels, dtype=np.intp)
    return np.fromiter(labels, dtype=object, count=len(labels))


def _check_support(step: Round, n_columns: int) -> None:
    if not step.support or len(set(step.support)) != len(step.support):
        raise ValueError("a round has no atoms, or one of them twice")
    if step.weights.shape[0] != n_columns:
        raise ValueError(
            f"a round has {step.weights.shape[0]} rows of weights for {n_columns} columns"
        )
