"""A path for every class against the rest, and the model of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any, Self

import numpy as np

from mixnorm._array import Array, to_dense
from mixnorm.models.inputs import Inputs
from mixnorm.models.outputs import ClassOutputs
from mixnorm.models.path import Path, PathModel
from mixnorm.models.scores import check_scores, weighted_scores
from mixnorm.pools import Cost, Pool

#: The labels of the two sides of a class's own model.
REST, OWN = False, True


@dataclass(frozen=True, eq=False)
class OneVsRestModel:
    """Weighted atoms for each class against the rest; for two classes, for the second alone.

    Parameters
    ----------
    paths : tuple of Path
        One per class, or a single one for two classes. Each has the scores of "rest" and "own".
    pool : pool object
        Evaluates the atoms of all paths.
    inputs : Inputs
        The columns.
    outputs : ClassOutputs
        The labels, and the loss that gives each path's probabilities.
    """

    paths: tuple[Path, ...]
    pool: Pool
    inputs: Inputs
    outputs: ClassOutputs

    @cached_property
    def members(self) -> tuple[PathModel, ...]:
        """The model of each path."""
        return tuple(PathModel(path, self.pool, self.inputs, self._pair) for path in self.paths)

    @property
    def _pair(self) -> ClassOutputs:
        """The meaning of the two scores of each path."""
        return ClassOutputs(np.array([REST, OWN]), self.outputs.loss)

    @property
    def size(self) -> int:
        """Number of rounds of the longest path."""
        return max(len(path.rounds) for path in self.paths)

    @cached_property
    def n_used(self) -> np.ndarray:
        """How many different atoms all classes together use, after 1, 2, ... rounds."""
        used = [
            len({atom for path in self.paths for atom in path.support(size)})
            for size in range(1, self.size + 1)
        ]
        return np.asarray(used, dtype=np.intp)

    @property
    def atoms(self) -> list[Any]:
        """Different atoms: the first of each class, then the second of each, ..."""
        # Round by round over all classes, as a shared path would list them.
        supports = zip_longest(*(path.support(self.size) for path in self.paths))
        return [atom for atom in dict.fromkeys(chain.from_iterable(supports)) if atom is not None]

    @cached_property
    def selected(self) -> np.ndarray:
        """The columns that are read, in the order of the atoms."""
        read = self.pool.feature_indices(self.atoms, self.inputs.n_features)
        return np.asarray(list(dict.fromkeys(read.tolist())), dtype=np.intp)

    @cached_property
    def curve(self) -> dict[str, np.ndarray]:
        """One row per round: the feature of every class, how many are used, loss and seconds."""
        curves = [model.curve for model in self.members]
        features = [_pad(curve["feature"].tolist(), self.size, None) for curve in curves]
        chosen = np.fromiter(zip(*features, strict=True), dtype=object, count=self.size)
        # A path that has ended keeps its loss, and takes no more time.
        losses = [[model.null_loss, *model.curve["loss"]] for model in self.members]
        losses = [_pad(curve, self.size + 1, curve[-1])[1:] for curve in losses]
        seconds = [_pad(curve["seconds"].tolist(), self.size, 0.0) for curve in curves]
        return {
            "features": chosen,
            "n_features": self.n_used.copy(),
            "loss": np.mean(losses, axis=0),
            "seconds": np.sum(seconds, axis=0),
        }

    @property
    def null_loss(self) -> float:
        """The mean training loss of all paths with no features."""
        return float(np.mean([model.null_loss for model in self.members]))

    def scores(self, X: Array) -> np.ndarray:
        """Return by how much "own" exceeds "rest": ``(n_samples, n_paths)``."""
        return _differences(next(self._pairs(X, [self.size])))

    def staged_scores(self, X: Array) -> Iterator[np.ndarray]:
        """Yield the scores after 1, 2, ... rounds."""
        for pairs in self._pairs(X, range(1, self.size + 1)):
            yield _differences(pairs)

    def probabilities(self, X: Array) -> np.ndarray:
        """Return each class's probability against the rest, divided by their sum."""
        pairs = [self._pair.probabilities(pair) for pair in next(self._pairs(X, [self.size]))]
        if len(pairs) == 1:
            return np.asarray(pairs[0])
        # Each class was fitted against the rest on its own, so that the probabilities need not sum
        # to one.
        own = np.stack([pair[:, 1] for pair in pairs], axis=1)
        own = np.maximum(own, np.finfo(own.dtype).tiny)  # zeros everywhere become equal
        return np.asarray(own / own.sum(axis=1, keepdims=True))

    def _pairs(self, X: Array, sizes: Sequence[int]) -> Iterator[list[np.ndarray]]:
        """Yield, for each number of rounds, the scores of "rest" and "own" for every class.

        Classes often share atoms, so each atom is computed once.
        """
        supports = (path.support(size) for size in sizes for path in self.paths)
        # A dictionary drops repetitions and keeps the order, so that sums are the same in every
        # run.
        atoms = list(dict.fromkeys(atom for support in supports for atom in support))
        with np.errstate(over="ignore", invalid="ignore"):  # scores are checked
            columns = _columns_of_atoms(self.pool, X, atoms)
        for size in sizes:
            yield [_pair(path, size, columns, X.shape[0]) for path in self.paths]

    def truncate(self, size: int) -> Self:
        """Return the model after ``size`` rounds; paths that are shorter stay whole."""
        return replace(self, paths=tuple(path.first(size) for path in self.paths))

    def cost(self) -> Cost:
        """Return the cost of a prediction: of each atom once, and of each weight of a class."""
        costs = [self.pool.cost(atom, self.inputs.n_features) for atom in self.atoms]
        weights = sum(len(model.weights) for model in self.members)
        adds = sum(cost.multiply_adds for cost in costs) + weights
        return Cost(adds, sum(cost.comparisons for cost in costs))

    def check(self, max_bytes: int) -> None:
        """Raise unless ``scores`` can work with the parts, which may come from anybody's file."""
        classes = self.outputs.classes
        self.outputs.check(len(classes))
        # Of two classes one path is enough.
        n_paths = len(classes) if len(classes) > 2 else 1
        if len(self.paths) != n_paths:
            raise ValueError(f"there must be {n_paths} paths for {len(classes)} classes")
        for model in self.members:
            model.check(max_bytes // n_paths)


def _pad(values: list[Any], length: int, filler: object) -> list[Any]:
    return values + [filler] * (length - len(values))


def _columns_of_atoms(pool: Pool, X: Array, atoms: Sequence[Any]) -> dict[Any, np.ndarray]:
    """Return the columns of every atom on new data."""
    if not atoms:
        return {}
    ends = np.cumsum([pool.n_columns(atom, X.shape[1]) for atom in atoms])
    parts = np.split(to_dense(pool.evaluate(X, atoms)), ends[:-1], axis=1)
    return dict(zip(atoms, parts, strict=True))


def _pair(path: Path, size: int, columns: dict[Any, np.ndarray], n_samples: int) -> np.ndarray:
    """Return the scores of "rest" and "own" for one class after ``size`` rounds."""
    if not path.rounds:
        return np.repeat(np.asarray(path.null_intercept)[None, :], n_samples, axis=0)
    step = path.rounds[min(size, len(path.rounds)) - 1]
    # The columns of an atom are shared by all classes that chose it.
    design = np.concatenate([columns[atom] for atom in step.support], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        return check_scores(weighted_scores(design, step.weights, step.intercept))


def _differences(pairs: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([pair[:, 1] - pair[:, 0] for pair in pairs], axis=1)
