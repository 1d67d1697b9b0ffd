"""Which kernels a bank has, on which columns, and what they are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mixnorm.kernels.functions.base import Kernel
from mixnorm.kernels.functions.names import as_kernel, describe

#: Says of columns that each of them has all kernels, however many columns there are.
EACH = "each"


@dataclass
class Plan:
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
        What each group says of its columns.
    each : bool
        Each column has these kernels; the plan is yet to be spread.
    """

    names: list[str]
    kernels: list[Kernel]
    group_of: list[int]
    labels: list[Any]
    columns: list[Any]
    each: bool = False

    def spread(self, width: int, names: list[str] | None) -> Plan:
        """Return the plan for a table of so many columns, with these names."""
        if not self.each:
            return self
        labels = [f"column {place}" for place in range(width)] if names is None else list(names)
        return Plan(
            _unique([f"{label}: {name}" for label in labels for name in self.names]),
            self.kernels * width,
            [group for group in range(width) for _ in self.kernels],
            labels,
            [[place] for place in range(width)],
        )


def plan(kernels: Any, columns: Any) -> Plan:
    """Return the plan of a bank with these parameters."""
    if isinstance(columns, Mapping):
        return _by_group(kernels, columns)
    named = kernels if isinstance(kernels, Mapping) else None
    found = [as_kernel(spec) for spec in (_as_list(kernels) if named is None else named.values())]
    _require_some(found)
    each = isinstance(columns, str) and columns == EACH
    if columns is None or each:
        names = [describe(kernel) for kernel in found] if named is None else list(named)
        return Plan(_unique(names), found, [0] * len(found), [None], [None], each)
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
    if named is not None:
        names = list(named)
    else:
        names = [
            describe(kernel) if choice is None else f"{_words_for(choice)}: {describe(kernel)}"
            for kernel, choice in zip(found, choices, strict=True)
        ]
    numbers = list(range(len(found)))
    return Plan(_unique(names), found, numbers, list(numbers), choices)


def _by_group(kernels: Any, columns: Mapping[Any, Any]) -> Plan:
    """Return the plan of a bank whose columns are groups with names."""
    if not columns:
        raise ValueError("columns is a dictionary of no groups; give at least one.")
    if isinstance(kernels, Mapping):
        _check_groups(kernels, columns)
        by_group = {label: _as_list(kernels[label]) for label in columns}
    else:
        by_group = {label: _as_list(kernels) for label in columns}
    names, found, group_of = [], [], []
    for group, (label, specs) in enumerate(by_group.items()):
        for spec in specs:
            kernel = as_kernel(spec)
            names.append(f"{label}: {describe(kernel)}")
            found.append(kernel)
            group_of.append(group)
    _require_some(found)
    return Plan(_unique(names), found, group_of, list(columns), list(columns.values()))


def _check_groups(kernels: Mapping[Any, Any], columns: Mapping[Any, Any]) -> None:
    missing = [label for label in columns if label not in kernels]
    stray = [label for label in kernels if label not in columns]
    if missing or stray:
        what = "no kernels for" if missing else "kernels for the unknown"
        raise ValueError(
            f"kernels has {what} group {(missing or stray)[0]!r}; the groups are {list(columns)}. "
            "Give each group a list of kernels, or one list for all."
        )


def _as_list(kernels: Any) -> list[Any]:
    """Return kernels as a list; one alone is a list of one."""
    if isinstance(kernels, (list, tuple)):
        return list(kernels)
    return [kernels]


def _require_some(kernels: list[Kernel]) -> None:
    if not kernels:
        raise ValueError("kernels is empty; give at least one, such as 'gaussian'.")


def _words_for(columns: Any) -> str:
    """Return a choice of columns in a few words."""
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


def _unique(names: list[Any]) -> list[str]:
    """Return names of which no two are the same."""
    found: list[str] = []
    taken: set[str] = set()
    for name in map(str, names):
        number, candidate = 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        found.append(candidate)
    return found
