"""Estimators whose model grows round by round."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mixnorm._array import MatrixLike
from mixnorm.data import check_in_memory
from mixnorm.estimators._common.classifier import ClassifierFace
from mixnorm.estimators._common.fitted import FittedMixin
from mixnorm.estimators._common.progress import CallbackSupportMixin
from mixnorm.estimators._common.selector import ColumnSelectorMixin


class StagedMixin(FittedMixin):
    """Predictions after every round, and smaller models from the same path."""

    def _staged_scores(self, X: MatrixLike) -> Iterator[Any]:
        """Yield the scores of new data after 1, 2, ... rounds."""
        check_in_memory(X, f"A staged prediction of {type(self).__name__}")
        yield from self._get_model().staged_scores(self._check_new(X))

    def staged_predict(self, X: MatrixLike) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            What ``truncate(m).predict(X)`` returns, for each ``m`` in turn.
        """
        for scores in self._staged_scores(X):
            yield self._get_model().outputs.labels(scores)

    @property
    def path_(self) -> dict[str, np.ndarray]:
        """One row per round."""
        return dict(self._get_model().curve)

    @property
    def null_loss_(self) -> float:
        """Training loss before the first round."""
        return float(self._get_model().null_loss)

    @property
    def n_iter_(self) -> int:
        """Iterations of all refits together."""
        return max(1, sum(step.iterations for step in self._get_model().path.rounds))

    @property
    def cost_(self) -> Any:
        """What a prediction costs."""
        return self._get_model().cost()

    def _truncate(self, size: Any, parameter: str, what: str = "features") -> Self:
        """Return a copy with a smaller model, and with its size as the parameter."""
        model = self._get_model()
        # Nothing is fitted: the path has the model of every size.
        smaller = self._copy_with(model.truncate(check_size(size, model.size, what, parameter)))
        if getattr(self, "search_", None) is None:  # in a search it is the largest size to try
            setattr(smaller, parameter, int(size))
        return smaller


class StagedClassifierMixin(ClassifierFace, StagedMixin):
    """Decisions and probabilities after every round."""

    def _knows_probabilities(self) -> bool:
        return True

    def staged_decision_function(self, X: MatrixLike) -> Iterator[Any]:
        """Yield what ``decision_function`` returns after 1, 2, ... rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Yields
        ------
        ndarray
            As ``truncate(m).decision_function(X)``, for each ``m`` in turn.
        """
        for scores in self._staged_scores(X):
            yield self._get_model().outputs.decisions(scores)


class StagedClassifier(
    StagedClassifierMixin, ColumnSelectorMixin, CallbackSupportMixin, BaseEstimator
):
    """Base of the classifiers, other than ShareBoost, whose model grows round by round."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_size(size: object, longest: int, what: str, parameter: str) -> int:
    """Return the number of rounds to truncate a path of ``longest`` to, or raise."""
    if not isinstance(size, numbers.Integral) or isinstance(size, bool):
        raise TypeError(f"truncate({size!r}): give a whole number of {what}.")
    if not 1 <= int(size) <= longest:
        has = f"models of 1 to {longest} {what}" if longest else f"no model with {what}"
        raise ValueError(
            f"truncate({size!r}): the path has {has}; fit with a larger {parameter} for more."
        )
    return int(size)
