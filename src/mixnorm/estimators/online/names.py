"""Rows that are dicts: each new name gets a column, and values may be unknown."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from scipy import sparse
from sklearn.utils import murmurhash3_32

from mixnorm._array import MatrixLike

#: One row: an array of shape ``(n_features,)``, a sparse row, or a dict.
Row: TypeAlias = "MatrixLike | Mapping[Any, Any]"


@dataclass(frozen=True, eq=False)
class Names:
    """The columns of rows that are dicts.

    Parameters
    ----------
    places : dict
        The column of each name; new names are added.
    hashed : int, optional
        The number of columns into which names are hashed, which then are not in ``places``.

    Examples
    --------
    >>> names = Names({"a": 0})
    >>> X, fresh = names.rows([{"a": 2.0, "city": "Bern"}, {"b": 1.0}])
    >>> X.toarray().tolist(), fresh
    ([[2.0, 1.0, 0.0], [0.0, 0.0, 1.0]], {'city=Bern': 1, 'b': 2})
    """

    places: dict[Any, int] = field(default_factory=dict)
    hashed: int | None = None

    def rows(
        self, rows: Sequence[Mapping[Any, Any]], *, learn: bool = True, gaps: bool = False
    ) -> tuple[sparse.csr_matrix, dict[Any, int]]:
        """Return rows as a CSR matrix, and new names with their columns.

        Without ``learn`` new names are ignored. Unknown values are entries of NaN with ``gaps``,
        else zero.
        """
        columns, values, ends = [], [], [0]
        fresh: dict[Any, int] = {}
        for at, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise TypeError(
                    f"Row {at} of X is a {type(row).__name__}, and the first one is a dict; give "
                    "only dicts, or only arrays."
                )
            found: dict[int, float] = {}
            for name, value in row.items():
                place, number = self._entry(name, value, fresh if learn else None)
                if place is not None and (gaps or not math.isnan(number)):
                    # Two names may share a hashed column; their values add up.
                    found[place] = found.get(place, 0.0) + number
            # Sorted columns make the matrix canonical, which the compiled loops rely on.
            order = sorted(found)
            columns += order
            values += [found[place] for place in order]
            ends.append(len(columns))
        width = len(self.places) + len(fresh) if self.hashed is None else self.hashed
        # At least one column: a row of an empty dict is still a row.
        X = sparse.csr_matrix(
            (np.asarray(values, dtype=np.float64), np.asarray(columns, dtype=np.int64), ends),
            shape=(len(rows), max(width, 1)),
        )
        return X, fresh

    def _entry(
        self, name: Hashable, value: Any, fresh: dict[Any, int] | None
    ) -> tuple[int | None, float]:
        """Return the column and the number for a name and its value.

        Unseen names are added to ``fresh``, if given. The number is NaN if the value is unknown.
        """
        if isinstance(value, str):  # a category has a column of its own, where it is one
            name, value = f"{name}={value}", 1.0
        try:
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"The value of {name!r} is neither a number nor a text: {value!r:.60}. Give None "
                "for an unknown value."
            ) from None
        if self.hashed is not None:
            # The same in every process, unlike Python's own hash of texts. The sign of the code is
            # that of the value, so that values that collide cancel on average.
            code = murmurhash3_32(str(name), seed=0)
            return abs(code) % self.hashed, number if code >= 0 else -number
        place = self.places.get(name)
        if place is None and fresh is not None:
            # New names are kept apart until all rows are checked.
            place = fresh.setdefault(name, len(self.places) + len(fresh))
        return place, number

    def numbers(self, row: Mapping[Any, Any]) -> list[int]:
        """Return the columns of the numbers in a row, without its texts."""
        return [self.places[name] for name, value in row.items() if not isinstance(value, str)]

    def check(self, n_features: int) -> None:
        """Raise ValueError unless each column has a name; the names may be from a file."""
        # Names and columns must pair off from zero on; ``rows`` would otherwise make entries beyond
        # the matrix.
        places = list(self.places.values())
        if set(map(type, places)) - {int} or places != list(range(len(places))):
            raise ValueError("vocabulary_ must have names with places from 0 on")
        hashed = 0 if self.hashed is None else self.hashed
        empty = self.hashed is not None and (places or hashed < 1)
        if empty or len(places) + hashed != n_features:
            raise ValueError(f"vocabulary_ must have a name for each of {n_features} columns")


def are_mappings(X: object) -> TypeGuard[Sequence[Mapping[Any, Any]]]:
    """Tell whether rows are dicts."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)


def as_rows(x: Row) -> Any:
    """Return one row as rows: a list of one dict, a sparse row, or an array of two dimensions."""
    if isinstance(x, Mapping):
        return [x]
    return x if sparse.issparse(x) else np.asarray(x).reshape(1, -1)
