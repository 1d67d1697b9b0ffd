"""The search over sizes on a table of row blocks."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier

from mixnorm._array import is_sparse
from mixnorm.data import Block, BlockTable, Fold, as_targets, take_fold
from mixnorm.estimators._common.inputs import DEFAULT_SIZE
from mixnorm.exceptions import MixnormWarning
from mixnorm.models import PathModel
from mixnorm.selection import Candidate

_USUAL_FOLDS = 5


def check_table_search(estimator: Any) -> None:
    """Raise for parameters of a search that need all rows in memory."""
    cv = estimator.cv
    if cv is not None and (not isinstance(cv, numbers.Integral) or isinstance(cv, bool)):
        raise TypeError(
            f"cv={cv!r}: a table of row blocks is split by a hash of the row numbers; give cv as a "
            "number of folds, or None for five."
        )
    if cv is not None and int(cv) < 2:
        raise ValueError(f"cv={cv} must be at least 2 folds.")
    usual = "accuracy" if is_classifier(estimator) else "r2"
    if estimator.scoring not in (None, usual):
        raise ValueError(
            f"scoring={estimator.scoring!r} needs all predictions in memory; a table of row blocks "
            f"is scored by {usual!r}. Leave scoring at None."
        )


@dataclass(eq=False)
class TableProblem:
    """The rows of a table in a search: each penalty has a chain, the sizes of one path.

    Parameters
    ----------
    estimator : estimator
        The learner without cross-validation.
    table : BlockTable
        All rows.
    alphas : list of float or "auto"
        The penalties.
    """

    estimator: Any
    table: BlockTable
    alphas: list[Any]
    chains: Sequence[int] = field(default=(), init=False)

    def __post_init__(self) -> None:
        longest = self.estimator.n_features_to_select or DEFAULT_SIZE
        self.chains = (int(longest),) * len(self.alphas)

    def folds(self, cv: int | None) -> list[tuple[Fold, Fold]]:
        """Return the training rows and the test rows of every fold."""
        count = _USUAL_FOLDS if cv is None else int(cv)
        if count > self.table.shape[0]:
            raise ValueError(
                f"cv={count} is more than the {self.table.shape[0]} rows of the table."
            )
        folds = [Fold(place, count) for place in range(count)]
        return [(fold.others(), fold) for fold in folds]

    def fold(self, train: Fold, test: Fold) -> Callable[[int], Iterator[Candidate]]:
        """Return a function that yields the candidates of a chain, fitted on the rows ``train``."""
        return partial(self._sizes, train, test)

    def _sizes(self, train: Fold, test: Fold, chain: int) -> Iterator[Candidate]:
        alpha = self.alphas[chain]
        learner = clone(self.estimator).set_params(alpha=alpha)
        with warnings.catch_warnings():  # of candidates; the fit on all rows has its own warnings
            warnings.simplefilter("ignore", MixnormWarning)
            rows = take_fold(self.table, train)
            rows.checkpoint = None  # that of the fit on all rows
            model = learner.fit(rows).model_
            rows.forget()
        scores = self._score_sizes(model, take_fold(self.table, test))
        for size, score in enumerate(scores, start=1):
            params = {"n_features_to_select": size, "alpha": alpha}
            yield Candidate(params, test, np.asarray(score), model.truncate(size))
        if model.path.interrupted:
            raise KeyboardInterrupt

    def _score_sizes(self, model: PathModel, held_out: BlockTable) -> list[float]:
        """Return the accuracy or R² of each size on rows of positive weight."""
        function = _ScoreSizes(model, is_classifier(self.estimator), held_out.shape[1])
        read = np.sort(model.selected)
        total, found, spread = held_out.sum(function, columns=read, target=True)
        held_out.forget()
        if not total > 0.0:
            return [math.nan] * model.size
        if is_classifier(self.estimator):
            return [float(right) / total for right in found]
        weight, first, second = spread
        spreads = second - first * first / weight
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = 1.0 - found / spreads[None, :]
        return [float(np.mean(row)) if np.all(spreads > 0.0) else math.nan for row in shares]

    def score(self, candidate: Candidate) -> float:
        """Return the score of a candidate, which is known."""
        return float(candidate.scores)


@dataclass(frozen=True, eq=False)
class _ScoreSizes:
    """Scores the models of all sizes on a block."""

    model: PathModel
    classifies: bool
    width: int

    def __call__(self, block: Block) -> tuple[Any, ...]:
        """Return the weight, what is right or the squared errors by size, and the spread."""
        weight: Any = block.weight
        used = weight > 0.0
        X, y = _widen(block.X, np.sort(self.model.selected), self.width), np.asarray(block.y)
        found = []
        targets = None if self.classifies else as_targets(y)
        for scores in self.model.staged_scores(X):
            values = self.model.outputs.labels(scores)
            if targets is None:
                found.append(float(np.sum(weight * (values == y.reshape(len(values))))))
            else:
                errors = np.where(used[:, None], targets - values.reshape(targets.shape), 0.0)
                found.append(weight @ (errors * errors))
        spread = None
        if targets is not None:
            kept = np.where(used[:, None], targets, 0.0)
            spread = float(np.sum(weight)), weight @ kept, weight @ (kept * kept)
        return float(np.sum(weight)), np.asarray(found), spread


def _widen(X: Any, columns: np.ndarray, width: int) -> Any:
    """Return a block with all columns, of which some were read; the others are zero."""
    if is_sparse(X):
        return sparse.csr_array((X.data, columns[X.indices], X.indptr), (X.shape[0], width))
    whole = np.zeros((width, X.shape[0]), dtype=X.dtype).T
    whole[:, columns] = X
    return whole
