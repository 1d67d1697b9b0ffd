"""A model that learns from a stream, with the state to resume from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixnorm.tables.rows.columns import RowColumn, adapt_columns, values_by_name
from mixnorm.tables.rows.encoder import Features, RowEncoder
from mixnorm.tables.target import Task

# Number of first rows that show the style of numbers.
_ROWS_TO_ADAPT_TO = 1000


@dataclass(frozen=True)
class StreamModel:
    """An online learner of rows of names and values, as ``mixnorm stream`` stores it.

    Parameters
    ----------
    target : str
        Name of the column to predict.
    task : {"classification", "regression"}
        Whether it predicts labels or numbers.
    estimator : estimator
        An online learner fitted on rows of names and numbers.
    columns : tuple of str
        Names of all columns of the training table; empty for JSON lines.
    dropped, categories, numbers : tuple of str
        Columns that are left out, and columns that are read as categories or numbers whatever they
        look like.
    source : str
        Name of the last source.
    lines : int
        Number of lines read from that source, including those left out.
    digest : str
        Checksum of these lines.
    kinds : tuple of RowColumn
        The kinds of the columns.
    first_rows : list
        Entries and targets of the training rows, as long as the kinds may still change.
    account : dict
        Errors so far as plain values, for a run that is resumed.
    before : StreamModel or None
        The model before the last line, if that had no line break and may have been half a row.
    facts : dict
        How the model was made, and its measured errors, as plain values.

    Examples
    --------
    >>> from mixnorm import MirrorDescentClassifier
    >>> rows = [{"power=high": 1.0}, {"power=low": 1.0, "age": 3.0}] * 20
    >>> estimator = MirrorDescentClassifier().partial_fit(rows, ["bus", "van"] * 20)
    >>> model = StreamModel("kind", "classification", estimator)
    >>> model.predict([{"power": "high"}, {"power": "low", "age": None}]).tolist()
    ['bus', 'van']
    """

    target: str
    task: Task
    estimator: Any
    columns: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    source: str = ""
    lines: int = 0
    digest: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()
    kinds: tuple[RowColumn, ...] = ()
    first_rows: list[Any] = field(default_factory=list)
    account: dict[str, Any] = field(default_factory=dict)
    before: StreamModel | None = None

    def _check_stored(self) -> None:
        """Raise unless the parts of a model read from a file fit together."""
        from sklearn.base import is_classifier

        estimator = self.estimator
        if getattr(estimator, "learn_one", None) is None:
            raise ValueError("the estimator does not learn from a stream")
        if not isinstance(getattr(estimator, "vocabulary_", None), dict):
            raise ValueError("the estimator did not learn from rows of names")
        if is_classifier(estimator) != (self.task == "classification"):
            raise ValueError(f"the estimator is not for {self.task}")
        if not all(isinstance(row, list) and len(row) == 2 for row in self.first_rows):
            raise ValueError("the first rows are not pairs of entries and a target")
        if self.lines < 0:
            raise ValueError(f"lines is {self.lines}")

    @property
    def classes(self) -> np.ndarray | None:
        """The class labels; None for regression."""
        return getattr(self.estimator, "classes_", None)

    def features(self, rows: Sequence[Mapping[str, Any]]) -> list[Features]:
        """Return the features of rows; raise if most entries of a column cannot be read."""
        drop = {*self.dropped, self.target}
        kinds = adapt_columns(self.kinds, values_by_name(rows[:_ROWS_TO_ADAPT_TO], (), drop))
        encoder = RowEncoder(
            kinds, categories=self.categories, drop=drop, complete=bool(self.columns)
        )
        features = encoder.encode(rows)
        encoder.check_readable(len(rows))
        return features

    def predict(self, rows: Any) -> np.ndarray:
        """Predict for rows.

        Parameters
        ----------
        rows : sequence of dicts, or DataFrame
            Values by column name: numbers, texts, dates, None for a missing value. Names and levels
            that training did not have are ignored.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers.
        """
        to_dict = getattr(rows, "to_dict", None)
        if to_dict is not None:
            rows = to_dict("records")
        if not len(rows):
            return np.empty(0) if self.classes is None else self.classes[:0]
        return np.asarray(self.estimator.predict(self.features(rows)))
