"""A fitted model together with what turns a table into its matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixnorm.exceptions import TableError
from mixnorm.models import PathModel
from mixnorm.tables.columns import Gaps, NumberColumn
from mixnorm.tables.encoder import SparseEncoder, TableEncoder, explain_unreadable
from mixnorm.tables.table import SparseTable, Table
from mixnorm.tables.target import Task, find_column
from mixnorm.tables.words import join_names, pluralize

if TYPE_CHECKING:
    import pandas as pd

# Entries of the matrix made at a time for a prediction: 64 MB in double precision.
_BLOCK = 1 << 23


@dataclass(frozen=True)
class Predictions:
    """What a model says about a table.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Labels or numbers.
    probabilities : ndarray of shape (n_rows, n_classes), or None
        Of the classes, in the order of ``TableModel.classes``; None for regression.
    notes : list of str
        What had to be ignored or filled in the table, one sentence each.
    """

    values: np.ndarray
    probabilities: np.ndarray | None
    notes: list[str]


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator that reads tables: what the command line fits, stores and applies.

    Parameters
    ----------
    target : str
        Name of the column it predicts.
    task : {"classification", "regression"}
        What it predicts.
    encoder : TableEncoder or SparseEncoder
        Turns tables into matrices.
    estimator : estimator
        Fitted on such a matrix.
    facts : dict
        How it was made and what was measured: plain values only.
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
            raise ValueError(f"the estimator is not one fitted for {self.task}")
        if estimator.n_features_in_ != encoder.width:
            raise ValueError(
                f"the table gives {encoder.width} columns where the estimator takes "
                f"{estimator.n_features_in_}"
            )
        pool = estimator.model_.pool
        if pool.plain and getattr(pool, "groups", None) != encoder.groups:
            raise ValueError("the estimator groups columns otherwise than the table does")

    @property
    def classes(self) -> np.ndarray | None:
        """The class labels; None for regression."""
        return getattr(self.estimator, "classes_", None)

    @property
    def size(self) -> int:
        """Number of features of the model: of columns, or of what the pool makes of them."""
        return int(self.estimator.model_.size)

    @property
    def features(self) -> list[int]:
        """The table's columns that the model reads, by position, in the order of its features."""
        model, owners = self.estimator.model_, self.encoder.owners
        read = model.pool.feature_indices(model.support, self.encoder.width)
        return list(dict.fromkeys(owners[column] for column in read.tolist()))

    @property
    def needed(self) -> list[str]:
        """Names of the table's columns that a prediction needs."""
        names = self.encoder.names
        return [names[index] for index in self.features]

    def describe(self, atom: Any) -> str:
        """Return a feature of the estimator in words, in the names and units of the table."""
        pool = self.estimator.model_.pool
        groups = self.encoder.groups
        if pool.plain and getattr(pool, "groups", None) == groups:
            return self.encoder.names[int(atom)]
        return str(pool.describe(atom, self.encoder.column_names))

    @property
    def texts(self) -> list[str]:
        """Names of the number columns that a file has to be read as texts for.

        Those with decimal commas or separators of thousands: "1.234" alone looks like a number.
        """
        return [
            plan.name
            for plan in getattr(self.encoder, "columns", ())
            if isinstance(plan, NumberColumn) and plan.style != "plain"
        ]

    def truncate(self, n_features: int) -> TableModel:
        """Return the model with fewer features, read off the path."""
        return replace(self, estimator=self.estimator.truncate(n_features))

    def predict(self, table: pd.DataFrame | Table | SparseTable) -> np.ndarray:
        """Predict for the rows of a table.

        Parameters
        ----------
        table : DataFrame, Table or SparseTable
            With the columns in :attr:`needed`; others are ignored. Numbers may have decimal
            commas or points, whichever training had. A missing value is filled as in training; so
            is one that cannot be read, unless most of a column cannot, which is an error. A level
            of a category that training never saw counts as its rare levels do, where those share
            an indicator, and else as none of its levels.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers.
        """
        return self.apply(table).values

    def apply(self, table: pd.DataFrame | Table | SparseTable) -> Predictions:
        """Predict for the rows of a table, and tell what had to be ignored or filled."""
        values, probabilities = [], []
        gaps: dict[str, Gaps] = {}
        for matrix, found in self._blocks(table):
            for name, gap in found.items():
                gaps[name] = gaps.get(name, Gaps()) + gap
            values.append(self.estimator.predict(matrix))
            if self.classes is not None:
                probabilities.append(self.estimator.predict_proba(matrix))
        rows = sum(map(len, values))
        self._check_readable(gaps, rows)
        notes = self._about_columns(table) + _about_gaps(gaps, rows)
        if not values:
            return self._nothing(notes)
        chances = np.concatenate(probabilities) if probabilities else None
        return Predictions(np.concatenate(values), chances, notes)

    def _check_readable(self, gaps: dict[str, Gaps], rows: int) -> None:
        """Raise if most entries of a column cannot be read: it is written otherwise."""
        for plan in getattr(self.encoder, "columns", ()) if gaps else ():
            gap = gaps.get(plan.name)
            if gap is None or not gap.strange:
                continue
            why = explain_unreadable(plan.name, plan.kind, gap, rows, plan.example)
            if why:
                raise TableError(why)

    def _nothing(self, notes: list[str]) -> Predictions:
        """Return the predictions for no rows."""
        if self.classes is None:
            return Predictions(np.empty(0), None, notes)
        return Predictions(self.classes[:0], np.empty((0, len(self.classes))), notes)

    def _blocks(self, table: Any) -> Iterator[tuple[Any, dict[str, Gaps]]]:
        """Yield the matrix of a table in blocks of rows, with what was missing in them."""
        if isinstance(self.encoder, SparseEncoder):
            if not isinstance(table, SparseTable):
                raise TableError("The model was fitted on a LIBSVM file; give it another of those.")
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
            raise TypeError(f"Give a DataFrame, or what read_table returns; got {given}.")
        rows = max(1, _BLOCK // max(1, self.encoder.width))
        encoder = self.encoder.adapt(frame)
        for start in range(0, max(1, len(frame)), rows):
            block = encoder.encode(frame.iloc[start : start + rows], self.features)
            if len(frame):
                yield block

    @property
    def _known(self) -> set[str]:
        """Names of all columns that training had."""
        left_out = (name for name, _ in getattr(self.encoder, "left_out", ()))
        return {*self.encoder.names, self.target, *left_out}

    def _check_names(self, table: Table) -> None:
        """Raise if a needed name stands for several columns, where training had one of them."""
        for name in self.needed:
            if name in table.repeated and f"{name}.2" not in self._known:
                find_column(table.frame, name, table.name, table.repeated)

    def _about_columns(self, table: Any) -> list[str]:
        """Say which columns of a table the model does not know."""
        if isinstance(table, SparseTable):
            used = np.unique(table.matrix.indices[table.matrix.data != 0])
            new = len(np.setdiff1d(used, getattr(self.encoder, "columns", used)))
            return [f"Ignored: {new} of its columns, which training did not have."] if new else []
        frame = table.frame if isinstance(table, Table) else table
        known = self._known
        extra = [str(name) for name in frame.columns if str(name) not in known]
        if not extra:
            return []
        return [f"Ignored: {join_names(extra)}, which training did not have."]


def _about_gaps(gaps: dict[str, Gaps], rows: int) -> list[str]:
    """Say what was missing, strange or new in the columns that matter."""
    notes = []
    for name, gap in gaps.items():
        if gap.missing:
            done = "filled in" if gap.filled else "taken as none of its levels"
            notes.append(f"{name} is missing in {gap.missing} of {pluralize(rows, 'row')}; {done}.")
        if gap.strange or gap.infinite:
            texts = ", ".join(map(repr, gap.examples))
            said = f" ({texts})" if texts else ""
            count = gap.strange + gap.infinite
            where = f"{count} of {pluralize(rows, 'row')}"
            notes.append(f"{name} is unreadable{said} in {where}; taken as missing.")
        if gap.unseen:
            texts = ", ".join(map(repr, gap.examples))
            new = pluralize(gap.unseen, "row")
            notes.append(f"{name} has levels that training did not: {texts} ({new}).")
    return notes
