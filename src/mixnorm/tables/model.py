"""A fitted model together with the encoder of its tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.models import PathModel
from mixnorm.tables.columns import Gaps, NumberColumn
from mixnorm.tables.encoder import SparseEncoder, TableEncoder, check_readable, describe_unreadable
from mixnorm.tables.table import SparseTable, Table
from mixnorm.tables.target import Task, find_column
from mixnorm.tables.words import join_names, pluralize

if TYPE_CHECKING:
    import pandas as pd

# Matrix entries per block of rows of a prediction: 64 MB in double precision.
_ENTRIES_PER_BLOCK = 1 << 23


@dataclass(frozen=True)
class Predictions:
    """Predictions for a table.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Labels or numbers.
    probabilities : ndarray of shape (n_rows, n_classes), or None
        Class probabilities in the order of ``TableModel.classes``; None for regression.
    notes : list of str
        Columns that were ignored and entries that were filled, one sentence each.
    """

    values: np.ndarray
    probabilities: np.ndarray | None
    notes: list[str]


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator that reads tables. The command line fits, stores and applies it.

    Parameters
    ----------
    target : str
        Name of the column to predict.
    task : {"classification", "regression"}
        Whether it predicts labels or numbers.
    encoder : TableEncoder or SparseEncoder
        Converts tables to matrices.
    estimator : estimator
        An estimator fitted on such a matrix.
    facts : dict
        How the model was made, and its measured errors, as plain values.
    """

    target: str
    task: Task
    encoder: TableEncoder | SparseEncoder
    estimator: Any
    facts: dict[str, Any] = field(default_factory=dict)

    def _check_stored(self) -> None:
        """Raise unless the parts of a model read from a file fit together."""
        from sklearn.base import is_classifier

        encoder, estimator = self.encoder, self.estimator
        fits = isinstance(getattr(estimator, "model_", None), PathModel)
        if not fits or is_classifier(estimator) != (self.task == "classification"):
            raise ValueError(f"the estimator is not fitted for {self.task}")
        if estimator.n_features_in_ != encoder.width:
            raise ValueError(
                f"the table gives {encoder.width} columns, but the estimator expects "
                f"{estimator.n_features_in_}"
            )
        pool = estimator.model_.pool
        if pool.plain and getattr(pool, "groups", None) != encoder.groups:
            raise ValueError("the estimator and the table group columns differently")

    @property
    def classes(self) -> np.ndarray | None:
        """The class labels; None for regression."""
        return getattr(self.estimator, "classes_", None)

    @property
    def size(self) -> int:
        """Number of atoms in the model."""
        return int(self.estimator.model_.size)

    @property
    def features(self) -> list[int]:
        """Positions of the table's columns that the model reads, in the order of its atoms."""
        model, owners = self.estimator.model_, self.encoder.owners
        read = model.pool.feature_indices(model.support, self.encoder.width)
        return list(dict.fromkeys(owners[column] for column in read.tolist()))

    @property
    def needed(self) -> list[str]:
        """Names of the table's columns that a prediction needs."""
        names = self.encoder.names
        return [names[index] for index in self.features]

    def describe(self, atom: Any) -> str:
        """Return an atom of the estimator in words, with the names and units of the table."""
        pool = self.estimator.model_.pool
        groups = self.encoder.groups
        if pool.plain and getattr(pool, "groups", None) == groups:
            return self.encoder.names[int(atom)]
        return str(pool.describe(atom, self.encoder.column_names))

    @property
    def texts(self) -> list[str]:
        """Names of the number columns to read from a file as texts.

        They have decimal commas or separators of thousands: "1.234" alone looks like a number.
        """
        return [
            plan.name
            for plan in getattr(self.encoder, "columns", ())
            if isinstance(plan, NumberColumn) and plan.style != "plain"
        ]

    def truncate(self, n_features: int) -> TableModel:
        """Return the model of a smaller size on the path."""
        return replace(self, estimator=self.estimator.truncate(n_features))

    def predict(self, table: pd.DataFrame | Table | SparseTable) -> np.ndarray:
        """Predict for the rows of a table.

        Parameters
        ----------
        table : DataFrame, Table or SparseTable
            A table with the columns in :attr:`needed`; others are ignored. Numbers may have decimal
            commas or points, whichever training had. Missing and unreadable values are filled as in
            training. A column with mostly unreadable values is an error. A level that training did
            not have counts as a rare level if those share an indicator, else as no level.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers.
        """
        return self.apply(table).values

    def apply(self, table: pd.DataFrame | Table | SparseTable) -> Predictions:
        """Predict for the rows of a table, with notes on ignored columns and filled entries."""
        values, probabilities = [], []
        gaps: dict[str, Gaps] = {}
        for matrix, found in self._blocks(table):
            for name, gap in found.items():
                gaps[name] = gaps.get(name, Gaps()) + gap
            values.append(self.estimator.predict(matrix))
            if self.classes is not None:
                probabilities.append(self.estimator.predict_proba(matrix))
        rows = sum(map(len, values))
        self.check_readable(gaps, rows)
        notes = self._describe_columns(table) + describe_gaps(gaps, rows)
        nothing, chances = np.empty(0), None
        if self.classes is not None:
            nothing, none = self.classes[:0], np.empty((0, len(self.classes)))
            chances = np.concatenate(probabilities or [none])
        return Predictions(np.concatenate(values or [nothing]), chances, notes)

    def adapt(self, frame: pd.DataFrame) -> TableModel:
        """Return a model that reads numbers in the style of a table, of which this is a part."""
        if isinstance(self.encoder, SparseEncoder):
            return self
        return replace(self, encoder=self.encoder.adapt(frame))

    def apply_to_part(
        self, frame: pd.DataFrame
    ) -> tuple[np.ndarray, np.ndarray | None, dict[str, Gaps]]:
        """Return values, probabilities and gaps for a part of a table.

        :meth:`check_readable` is for the gaps of all parts together.
        """
        encoder = self.encoder
        if isinstance(encoder, SparseEncoder):
            raise TableError("The model was fitted on a LIBSVM file; give it a LIBSVM file.")
        matrix, gaps = encoder.encode(frame, self.features)
        if not len(frame):
            none = None if self.classes is None else np.empty((0, len(self.classes)))
            return np.empty(0) if self.classes is None else self.classes[:0], none, gaps
        chances = None if self.classes is None else self.estimator.predict_proba(matrix)
        return self.estimator.predict(matrix), chances, gaps

    def check_readable(self, gaps: dict[str, Gaps], rows: int) -> None:
        """Raise if most entries of a column cannot be read."""
        for plan in getattr(self.encoder, "columns", ()) if gaps else ():
            gap = gaps.get(plan.name)
            if gap is not None and gap.strange:
                check_readable(plan.name, plan.kind, gap, rows, plan.example)

    def _blocks(
        self, table: pd.DataFrame | Table | SparseTable
    ) -> Iterator[tuple[Any, dict[str, Gaps]]]:
        """Yield the matrix of a table in blocks of rows, with counts of missing entries."""
        if isinstance(self.encoder, SparseEncoder):
            if not isinstance(table, SparseTable):
                raise TableError("The model was fitted on a LIBSVM file; give it a LIBSVM file.")
            if table.matrix.shape[0]:
                yield self.encoder.encode(table)
            return
        if isinstance(table, SparseTable):
            raise TableError(
                f"The model was fitted on a table with named columns ({join_names(self.needed)}), "
                "not on a LIBSVM file; give it such a table."
            )
        if isinstance(table, Table):
            self._check_names(table)
        import pandas as pd

        frame = table.frame if isinstance(table, Table) else table
        if not isinstance(frame, pd.DataFrame):
            given = type(table).__name__
            raise TypeError(f"Give a DataFrame or the result of read_table; got {given}.")
        rows = max(1, _ENTRIES_PER_BLOCK // max(1, self.encoder.width))
        encoder = self.encoder.adapt(frame)
        for start in range(0, max(1, len(frame)), rows):
            block = encoder.encode(frame.iloc[start : start + rows], self.features)
            if len(frame):
                yield block

    @property
    def _training_names(self) -> set[str]:
        """Names of all columns that training had."""
        left_out = (name for name, _ in getattr(self.encoder, "left_out", ()))
        return {*self.encoder.names, self.target, *left_out}

    def _check_names(self, table: Table) -> None:
        """Raise if several columns have a name that only one training column had."""
        for name in self.needed:
            if name in table.repeated and f"{name}.2" not in self._training_names:
                find_column(table.frame, name, table.name, table.repeated)

    def _describe_columns(self, table: pd.DataFrame | Table | SparseTable) -> list[str]:
        """Return a sentence about the columns that the model does not know, if any."""
        if isinstance(table, SparseTable):
            used = np.unique(table.matrix.indices[table.matrix.data != 0])
            new = len(np.setdiff1d(used, getattr(self.encoder, "columns", used)))
            count = pluralize(new, "column")
            return [f"Ignored: {count} that training did not have."] if new else []
        frame = table.frame if isinstance(table, Table) else table
        return self.describe_unknown([str(name) for name in frame.columns])

    def describe_unknown(self, names: Collection[str]) -> list[str]:
        """Return a sentence about the columns of a table that training did not have, if any."""
        known = self._training_names
        extra = [name for name in names if name not in known]
        ignored = f"Ignored columns that training did not have: {join_names(extra)}."
        return [ignored] if extra else []


def describe_gaps(gaps: dict[str, Gaps], rows: int) -> list[str]:
    """Return sentences about missing, unreadable and new entries, by column."""
    notes = []
    for name, gap in gaps.items():
        texts, total = ", ".join(map(repr, gap.examples)), pluralize(rows, "row")
        if gap.missing:
            done = "filled in" if gap.filled else "taken as none of its levels"
            notes.append(f"{name} is missing in {gap.missing} of {total}; {done}.")
        notes += describe_unreadable({name: gap})
        if gap.unseen:
            new = pluralize(gap.unseen, "row")
            notes.append(f"{name} has levels that training did not have: {texts} ({new}).")
    return notes
