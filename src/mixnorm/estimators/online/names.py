"""Rows that are dicts: names get columns as they come, and usual ones may be unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import murmurhash3_32

from mixnorm.engines import mirror
from mixnorm.engines.mirror import layout


class NamedRows(BaseEstimator):
    """What online estimators do with rows of names and values."""

    _learner: Any
    _origin: str

    def _check_no_names(self) -> None:
        """Raise a clear error for arrays, where rows are dicts."""
        if "vocabulary_" in vars(self):
            raise TypeError(
                "This model learned from rows of names and values (dicts); go on with such rows, "
                "or start a new model for arrays."
            )
        if getattr(self, "hash_features", None) is not None:
            raise TypeError(
                f"hash_features={self.hash_features!r} is for rows of names and values (dicts); "
                "give such rows, or leave it out for arrays."
            )

    def _named_rows(self, rows: Sequence[Mapping[Any, Any]], *, learn: bool) -> sparse.csr_matrix:
        """Return dicts of names and numbers as a CSR matrix, new names as new columns."""
        hashed = getattr(self, "hash_features", None)
        if "_learner" in vars(self) and hashed not in (None, self.n_features_in_):
            raise ValueError(
                f"hash_features={hashed!r} was set after learning began with "
                f"{self.n_features_in_} columns; set it back, or start a new model."
            )
        if "vocabulary_" not in vars(self):
            if "_learner" in vars(self) and hashed is None:
                raise TypeError(
                    "This model learned from arrays, whose columns have no names to go by; go on "
                    "with arrays, or start a new model for dicts."
                )
            self.vocabulary_: dict[Any, int] = {}
        places, values, ends = [], [], [0]
        fresh: dict[Any, int] = {}
        for at, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise TypeError(
                    f"Row {at} of X is a {type(row).__name__}, and the first one a dict; give rows "
                    "of one kind."
                )
            found: dict[int, float] = {}
            for name, value in row.items():
                place, number = self._named(name, value, hashed, fresh if learn else None)
                if place is not None and (number == number or self._origin == "marked"):
                    found[place] = found.get(place, 0.0) + number
            order = sorted(found)
            places += order
            values += [found[place] for place in order]
            ends.append(len(places))
        if learn:
            self._new_names = fresh  # of the vocabulary once all else is checked
        width = int(hashed) if hashed is not None else len(self.vocabulary_) + len(fresh)
        return sparse.csr_matrix(
            (np.asarray(values, dtype=np.float64), np.asarray(places, dtype=np.int64), ends),
            shape=(len(rows), max(width, 1)),
        )

    def _named(
        self, name: Any, value: Any, hashed: int | None, fresh: dict[Any, int] | None
    ) -> tuple[int | None, float]:
        """Return the column and the number that a name and its value stand for.

        Unseen names are added to ``fresh``, where that is given. The number is NaN where the value
        is not known.
        """
        if isinstance(value, str):  # a category: its own column, which is one
            name, value = f"{name}={value}", 1.0
        try:
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"The value of {name!r} is no number and no text: {value!r:.60}. Give None where "
                "the value is not known."
            ) from None
        if hashed is not None:
            code = murmurhash3_32(str(name), seed=0)
            return abs(code) % hashed, number if code >= 0 else -number
        place = self.vocabulary_.get(name)
        if place is None and fresh is not None:
            place = fresh.setdefault(name, len(self.vocabulary_) + len(fresh))
        return place, number

    def _mark(self, X: Any, given: Any, order: np.ndarray | None) -> Any:
        """Mark the columns of names whose absence says nothing: the numbers of the first row.

        Returns the rows. Learners by blocks know no such columns: what is not known is zero there.
        """
        learner = self._learner
        if self._origin != "marked" or learner.rounds:
            return X
        if not isinstance(learner, mirror.RowLearner):
            self._origin = "zero"
            learner.plan = replace(learner.plan, origin="zero")
            X.data = np.where(np.isnan(X.data), 0.0, X.data)
            return X
        row = given[0 if order is None else order[0]]
        names = [name for name, value in row.items() if not isinstance(value, str)]
        places = [self.vocabulary_[name] + 1 for name in names]
        learner.column[layout.MARK, places] = 1.0
        return X

    def _named_scores(self, X: Any) -> np.ndarray:
        """Return the scores of rows of names; a usual name that is absent is not known."""
        if np.any(np.isinf(X.data)):
            raise ValueError("Input X contains infinity; give None where a value is not known.")
        weights, intercept = self._learner.weights(bool(self.average))
        weights = weights[:, : X.shape[1]]
        scores = X.copy()
        scores.data = np.nan_to_num(scores.data)
        products = np.asarray(scores @ weights.T + intercept)
        if self._origin != "marked":
            return products
        column = self._learner.column[:, 1 : X.shape[1] + 1]
        known = sparse.csr_matrix((~np.isnan(X.data), X.indices, X.indptr), X.shape, dtype=float)
        means = column[layout.MEAN] * column[layout.MARK]
        return np.asarray(products + weights @ means - known @ (weights * means).T)


def are_mappings(X: Any) -> bool:
    """Tell whether rows are given as dicts."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)
