"""The plan of a bank: its kernels, their columns and their names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mixnorm.kernels.functions.base import Kernel
from mixnorm.kernels.functions.names import as_kernel, describe

#: The value of ``columns`` that gives every column all kernels.
EACH = "each"


@dataclass
class BankPlan:
    """The kernels of a bank, before any rows are seen.

    Attributes
    ----------
    names : list of str
        One per kernel, all different.
    kernels : list of Kernel
        The kernels.
    group_of : list of int
        The group of each kernel.
    labels : list
        The names of the groups, or their numbers.
    columns : list
        The columns of each group, as the parameter ``columns`` gives them.
    each : bool
        Whether each column has all of these kernels; :meth:`spread` then lists them.
    """

    names: list[str]
    kernels: list[Kernel]
    group_of: list[int]
    labels: list[Any]
    columns: list[Any]
    each: bool = False

    def spread(self, width: int, names: list[str] | None) -> BankPlan:
        """Return the plan for a table with ``width`` columns, which may have names."""
        if not self.each:
            return self
        labels = [f"column {place}" for place in range(width)] if names is None else list(names)
        return BankPlan(
            _make_unique([f"{label}: {name}" for label in labels for name in self.names]),
            self.kernels * width,
            [group for group in range(width) for _ in self.kernels],
            labels,
            [[place] for place in range(width)],
        )


def make_plan(kernels: Any, columns: Any) -> BankPlan:
    """Return the plan of a bank with these parameters."""
    if isinstance(columns, Mapping):
        return _plan_groups(kernels, columns)
    named = kernels if isinstance(kernels, Mapping) else None
    found = [as_kernel(spec) for spec in (_as_list(kernels) if named is None else named.values())]
    _require_some(found)
    names = [describe(kernel) for kernel in found] if named is None else list(named)
    each = isinstance(columns, str) and columns == EACH
    if columns is None or each:
        return BankPlan(_make_unique(names), found, [0] * len(found), [None], [None], each)
    if isinstance(columns, str) or not isinstance(columns, Collection):
        raise TypeError(
            f"columns={columns!r} must be None, 'each', a list with one entry per kernel, or a "
            "dictionary of groups; for the same columns in every kernel write {'name': columns}."
        )
    choices = list(columns)
    if len(choices) != len(found):
        raise ValueError(
            f"columns has {len(choices)} entries, but there are {len(found)} kernels; give one "
            "entry per kernel, None for all columns, or a dictionary of groups."
        )
    if named is None:
        names = [
            name if choice is None else f"{_describe_columns(choice)}: {name}"
            for name, choice in zip(names, choices, strict=True)
        ]
    numbers = list(range(len(found)))
    return BankPlan(_make_unique(names), found, numbers, list(numbers), choices)


def _plan_groups(kernels: Any, columns: Mapping[Any, Any]) -> BankPlan:
    """Return the plan of a bank whose columns are groups with names."""
    if not columns:
        raise ValueError("columns is a dictionary of no groups; give at least one.")
    if isinstance(kernels, Mapping):
        _check_groups(kernels, columns)
    names, found, group_of = [], [], []
    for group, label in enumerate(columns):
        specs = kernels[label] if isinstance(kernels, Mapping) else kernels
        for kernel in map(as_kernel, _as_list(specs)):
            names.append(f"{label}: {describe(kernel)}")
            found.append(kernel)
            group_of.append(group)
    _require_some(found)
    return BankPlan(_make_unique(names), found, group_of, list(columns), list(columns.values()))


def _check_groups(kernels: Mapping[Any, Any], columns: Mapping[Any, Any]) -> None:
    missing = [label for label in columns if label not in kernels]
    stray = [label for label in kernels if label not in columns]
    if missing or stray:
        what = "no kernels for" if missing else "kernels for the unknown"
        raise ValueError(
            f"kernels has {what} group {(missing or stray)[0]!r}; the groups are {list(columns)}. "
            "Give each group a list of kernels, or one list for all."
        )


def _as_list(kernels: object) -> list[Any]:
    """Return kernels as a list; a single one becomes a list of one."""
    return list(kernels) if isinstance(kernels, (list, tuple)) else [kernels]


def _require_some(kernels: list[Kernel]) -> None:
    if not kernels:
        raise ValueError("kernels is empty; give at least one, such as 'gaussian'.")


def _describe_columns(columns: object) -> str:
    """Return a short description of a choice of columns."""
    if isinstance(columns, str):
        return columns
    if isinstance(columns, slice):
        ends = ["" if end is None else str(end) for end in (columns.start, columns.stop)]
        step = "" if columns.step is None else f":{columns.step}"
        return f"columns {':'.join(ends)}{step}"
    if not isinstance(columns, Collection):
        return f"column {columns}"
    parts = [str(column) for column in list(columns)[:4]]
    more = ", ..." if len(columns) > 4 else ""
    texts = all(isinstance(column, str) for column in list(columns)[:4])
    return f"{'' if texts else 'columns '}{', '.join(parts)}{more}"


def _make_unique(names: list[Any]) -> list[str]:
    """Return names of which no two are the same."""
    found: list[str] = []
    taken: set[str] = set()
    for name in map(str, names):
        number, candidate = 1, name
        # A name that ends in a number by itself may be taken as well.
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        found.append(candidate)
    return found
