"""Figures computed from records: means over resamplings, times, ratios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.jobs import Record

OURS, OURS_TUNED = "mixnorm", "mixnorm-tuned"


@dataclass(frozen=True)
class Row:
    """One line of the table: a method at one size on one dataset.

    Seconds are CPU seconds of the fit on all training rows, up to this size. They are None if that
    run is missing, and a lower bound if it was ``stopped``. ``extra`` has the additional seconds of
    the first call in a process, imports included. ``search`` has the seconds of the search for the
    penalty.
    """

    data: str
    method: str
    size: int
    error: float | None = None
    deviation: float | None = None
    resamplings: int = 0
    features: float | None = None
    seconds: float | None = None
    stopped: bool = False
    extra: float | None = None
    search: float | None = None
    peak_bytes: int | None = None
    peak_share: float | None = None


@dataclass(frozen=True)
class Whole:
    """All sizes of one method on one dataset, fitted on all training rows.

    For a method that fits one size at a time, ``seconds`` is the sum over its fits. It is a lower
    bound if one was ``stopped``. ``search`` has the seconds of all inner folds, ``unconverged`` the
    number of fits that did not converge, and ``reach`` the largest size.
    """

    seconds: float
    search: float
    stopped: bool
    unconverged: int
    reach: int


class Results:
    """The records of a run, from which all figures of the tables and the bar are computed."""

    def __init__(self, runs: Mapping[str, Record], path_to: int = 40) -> None:
        self.runs, self.path_to = runs, path_to
        self._points: dict[tuple[str, str, int, int], tuple[Record, dict[str, Any]]] = {}
        # If several fits give a size, the path to ``path_to`` is shown.
        for record in sorted(runs.values(), key=lambda r: r["size"] == path_to):
            for point in record.get("points", []):
                place = record["data"], record["method"], point["size"], record["resampling"]
                self._points[place] = record, point

    def errors(self, data: str, method: str, size: int) -> dict[int, float]:
        """Return the test error in percent by resampling."""
        return {
            place[3]: point["error"]
            for place, (_, point) in self._points.items()
            if place[:3] == (data, method, size)
        }

    def mean_error(
        self, data: str, method: str, size: int, among: Iterable[int] | None = None
    ) -> float | None:
        """Return the mean test error over the resamplings in ``among`` that were run."""
        errors = self.errors(data, method, size)
        wanted = errors.keys() if among is None else errors.keys() & set(among)
        return float(np.mean([errors[r] for r in wanted])) if wanted else None

    def seconds(self, data: str, method: str, size: int) -> float | None:
        """Return the CPU seconds of the fit on all rows with exactly ``size`` features."""
        record = self.runs.get(f"{data}/{method}/{size}/0")
        return record.get("seconds") if record and record["status"] == "ok" else None

    def limit(self, data: str, method: str, size: int) -> float | None:
        """Return the seconds after which the fit to ``size`` features was stopped, or None."""
        record = self.runs.get(f"{data}/{method}/{size}/0")
        return record["limit"] if record and record["status"] == "timeout" else None

    def row(self, data: str, method: str, size: int) -> Row | None:
        """Return the figures of one method at one size, or None if it was not run."""
        limit = self.limit(data, method, size)
        if limit is not None:
            return Row(data, method, size, seconds=limit, stopped=True)
        errors = list(self.errors(data, method, size).values())
        if not errors:
            return None
        spread = float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else None
        figures = self._costs(*self._points.get((data, method, size, 0), ({}, {})))
        features = [
            point["features"]
            for place, (_, point) in self._points.items()
            if place[:3] == (data, method, size)
        ]
        mean, used = float(np.mean(errors)), float(np.mean(features))
        return Row(data, method, size, mean, spread, len(errors), used, **figures)

    @staticmethod
    def _costs(record: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
        if not record:
            return {}
        first = record["first_seconds"] - record["seconds"]
        return {
            "seconds": record["seconds"] * point["share"],
            "extra": record["import_seconds"] + max(0.0, first),
            "search": record.get("search_seconds"),
            "peak_bytes": record["peak_bytes"],
            "peak_share": record["peak_bytes"] / record["x_bytes"],
        }

    def reach(self, data: str, method: str) -> int:
        """Return the largest of the common sizes that a method was run with."""
        asked = (r for r in self.runs.values() if (r["data"], r["method"]) == (data, method))
        return max((r["size"] for r in asked if r["size"] <= self.path_to), default=0)

    def whole(self, data: str, method: str, reach: int | None = None) -> Whole | None:
        """Return the cost of all sizes up to ``reach``, or None if nothing was run."""
        most = self.path_to if reach is None else reach
        records = [
            record
            for record in self.runs.values()
            if (record["data"], record["method"], record["resampling"]) == (data, method, 0)
            and record["size"] <= most
            and record["status"] in ("ok", "timeout")
            and not record.get("inferred")
        ]
        if any(len(record.get("points", [])) > 1 for record in records):
            records = [max(records, key=lambda record: record["size"])]
        if not records:
            return None
        return Whole(
            sum(record.get("seconds", record.get("limit", 0.0)) for record in records),
            sum(record.get("search_seconds", 0.0) for record in records),
            any(record["status"] == "timeout" for record in records),
            sum(record.get("unconverged", 0) for record in records),
            max(record["size"] for record in records),
        )

    def whole_ratio(self, data: str, method: str) -> float | None:
        """Return the seconds of a method for all sizes over ours for the same sizes.

        Both sides count their fits. If both search by inner folds, the searches count too.
        """
        theirs = self.whole(data, method)
        if theirs is None:
            return None
        if theirs.search and method.endswith("-tuned"):
            ours = self.whole(data, OURS_TUNED)
            if ours is None or ours.reach != theirs.reach:
                return None
            return (theirs.seconds + theirs.search) / (ours.seconds + ours.search)
        ours = self.whole(data, OURS, theirs.reach)
        return theirs.seconds / ours.seconds if ours and ours.reach == theirs.reach else None

    def best_other(self, data: str, size: int) -> tuple[float, str] | None:
        """Return the smallest mean error of the other methods, and the method."""
        names = {place[1] for place in self._points if place[0] == data and place[2] == size}
        others = sorted(name for name in names if not name.startswith(OURS))
        means = [(self.mean_error(data, name, size), name) for name in others]
        found = [(mean, name) for mean, name in means if mean is not None]
        return min(found) if found else None

    def size_ratio(self, row: Row) -> float | None:
        """Return the seconds of a row over ours, both up to the size of the row."""
        ours = self.row(row.data, OURS, row.size)
        return row.seconds / ours.seconds if row.seconds and ours and ours.seconds else None

    def equal_error(self, row: Row) -> tuple[int, float] | None:
        """Return how many features we need for at most this error, and the ratio of times."""
        if row.error is None or not row.seconds:
            return None
        sizes = sorted({p[2] for p in self._points if p[:2] == (row.data, OURS)})
        for size in sizes:
            ours = self.row(row.data, OURS, size)
            if ours and ours.error is not None and ours.error <= row.error and ours.seconds:
                return size, row.seconds / ours.seconds
        return None
