"""The plan of the columns of a table that does not fit into memory, from one pass over it.

The decisions are those of :class:`TableEncoder` for a table in memory. Medians, and the kinds of
texts of which there are very many, come from samples where the table is large; a note says so.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mixnorm.data import ALL_COLUMNS, Block, BlockTable, Source
from mixnorm.tables.blocks.encoded import encode_column
from mixnorm.tables.blocks.files import FileRows
from mixnorm.tables.blocks.summary import (
    MOST_COUNTED,
    NumberSummary,
    Summarise,
    Summary,
    Tally,
    is_number,
    join_summaries,
)
from mixnorm.tables.columns import CategoryColumn, ColumnPlan, DateColumn, Gaps, NumberColumn
from mixnorm.tables.encoder import EXACT_IN_FLOAT32, TableEncoder, fits_float32
from mixnorm.tables.marks import detect_common_mark
from mixnorm.tables.plan import (
    EMPTY,
    MOST_ROWS_WITHOUT_KEYS,
    NO_NUMBERS,
    ODD_ENTRIES,
    NumberFacts,
    detect_text_kind,
    is_key_name,
    is_row_number,
    plan_days,
    plan_levels,
    plan_number,
)
from mixnorm.tables.values import (
    BLANKS,
    SECONDS_PER_DAY,
    Style,
    as_numbers,
    as_seconds,
    normalise_level,
    space_evenly,
)
from mixnorm.tables.words import join_names

# Rows, and numbers, of the sample whose medians stand for those of all rows.
MOST_SAMPLED, _NUMBERS_SAMPLED = 1 << 17, 1 << 24
# Texts of a column that are looked at for its decimal mark.
_TEXTS_FOR_MARK = 1000

#: Makes a table of blocks from a source.
MakeTable = Callable[[Source], BlockTable]


@dataclass(frozen=True, eq=False)
class TablePlan:
    """An encoder, counts of missing and unreadable entries, and notes on how it was made."""

    encoder: TableEncoder
    gaps: dict[str, Gaps]
    notes: list[str]


def plan_blocks(
    rows: FileRows,
    make_table: MakeTable,
    *,
    numbers: Collection[str] = (),
    categories: Collection[str] = (),
) -> TablePlan:
    """Decide from one pass over a table how to encode its columns.

    Texts of more than 65,536 different values that look like numbers or dates need a second pass,
    and so do columns that may be copies of one another; these read only the columns in question.

    Parameters
    ----------
    rows : FileRows
        The table, without its target.
    make_table : callable
        Makes a table of blocks from a source.
    numbers, categories : collection of str
        Columns whose kind the user names.
    """
    return _Planner(rows, make_table, numbers, categories).run()


class _Planner:
    """The passes over a table, and the decisions."""

    def __init__(
        self,
        rows: FileRows,
        make_table: MakeTable,
        numbers: Collection[str],
        categories: Collection[str],
    ) -> None:
        self.rows, self.table = rows, make_table(rows)
        self.kinds = dict.fromkeys(numbers, "number")
        self.kinds.update(dict.fromkeys(categories, "category"))
        self.sample = draw_spread(rows.n_rows, _count_sampled(rows))
        self.found: dict[str, Summary] = {}
        #: The styles and formats of texts that are read again, as numbers or dates.
        self.styles: dict[str, str] = {}
        self.mark = ""
        self.notes: list[str] = []

    def run(self) -> TablePlan:
        names = self.rows.names
        ways = [self._way(name) for name in names]
        self._read(names, ways)
        self.mark = self._find_mark()
        self._read_again()
        plans = {name: self._plan(name) for name in names}
        copies = self._find_copies({n: p for n, p in plans.items() if not isinstance(p, str)})
        columns, left_out, exact = [], [], True
        gaps: dict[str, Gaps] = {}
        for name, plan in plans.items():
            if isinstance(plan, str):
                left_out.append((name, plan))
            elif name in copies:
                left_out.append((name, f"it is a copy of {copies[name]!r}"))
            else:
                columns.append(plan)
                exact = exact and self._is_exact(plan)
                gap = self._count_gaps(plan)
                if gap != Gaps():
                    gaps[name] = gap
        encoder = TableEncoder(tuple(columns), tuple(left_out), "float32" if exact else "float64")
        return TablePlan(encoder, gaps, [*self._describe_sample(columns), *self.notes])

    # Passes.

    def _way(self, name: str) -> tuple[str, str]:
        """Return how the entries of a column are summarised."""
        import pyarrow as pa

        kind = self.rows.types[name]
        if self.kinds.get(name) == "category" or pa.types.is_dictionary(kind):
            return "texts", ""
        if is_number(kind):
            return "number", "plain"
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return "date", "ISO8601"
        return "texts", ""

    def _read(self, names: Sequence[str], ways: Sequence[tuple[str, str]]) -> None:
        """Read some columns, and keep their summaries."""
        places = [self.rows.names.index(name) for name in names]
        everything = len(places) == self.rows.n_features
        function = Summarise(tuple(way for way, _ in ways), tuple(s for _, s in ways), self.sample)
        found = self.table.sum(
            function,
            columns=ALL_COLUMNS if everything else np.array(places),
            combine=join_summaries,
        )
        self.found.update(zip(names, found, strict=True))

    def _read_again(self) -> None:
        """Read columns of texts that are numbers or dates, if not all of them were counted."""
        again: dict[str, tuple[str, str]] = {}
        for name, tally in self.found.items():
            if not isinstance(tally, Tally) or not tally.cut:
                continue
            self.notes.append(
                f"{name} has about {tally.n_distinct:,} different texts; its kind and its levels "
                f"are those of the {MOST_COUNTED:,} that are counted at a time."
            )
            if not self._is_category(name):
                kind = detect_text_kind(tally.texts, self.kinds.get(name), self.mark)
                if not isinstance(kind, str) and kind[0] != "category":
                    again[name] = kind
        if again:
            self._read(list(again), list(again.values()))
            self.styles = {name: style for name, (_, style) in again.items()}

    def _find_mark(self) -> str:
        """Return the decimal mark of the columns of texts."""
        samples = []
        for tally in self.found.values():
            if isinstance(tally, Tally) and not tally.strange:
                texts: list[str | None] = list(tally.counts)
                if tally.entries <= _TEXTS_FOR_MARK:
                    texts = [text for text, count in tally.counts.items() for _ in range(count)]
                samples.append(texts[space_evenly(len(texts), _TEXTS_FOR_MARK)])
        return detect_common_mark(samples)

    # Decisions.

    def _is_category(self, name: str) -> bool:
        """Whether a column is one of categories, whatever its texts."""
        import pyarrow as pa

        return self.kinds.get(name) == "category" or pa.types.is_dictionary(self.rows.types[name])

    def _plan(self, name: str) -> ColumnPlan | str:
        import pyarrow as pa

        found, kind = self.found[name], self.kinds.get(name)
        forced = kind == "number"
        if isinstance(found, NumberSummary):
            date = self._way(name)[0] == "date"
            style = self.styles.get(name, "ISO8601" if date else "plain")
            if date or style not in ("plain", "thousands", "comma"):
                return _plan_seconds(name, found, style)
            facts = _collect_facts(name, found)
            plan = plan_number(name, facts, cast(Style, style), forced=forced)
            return NO_NUMBERS if plan == EMPTY and name in self.styles else plan
        if self._is_category(name):
            total = (found.n_distinct, found.entries - found.missing) if found.cut else None
            return plan_levels(
                name, found.counts, found.missing > 0, forced=kind == "category", total=total
            )
        if found.strange:
            return ODD_ENTRIES
        if pa.types.is_boolean(self.rows.types[name]) and not found.missing:
            return plan_number(name, _count_facts(name, found, "plain"), "plain", forced=forced)
        how = detect_text_kind(found.texts, kind, self.mark)
        if isinstance(how, str):
            return how
        what, style = how
        if what == "number":
            facts = _count_facts(name, found, style)
            plan = plan_number(name, facts, cast(Style, style), forced=forced)
            return NO_NUMBERS if plan == EMPTY else plan
        if what == "date":
            return _plan_dates_from_texts(name, found, style)
        total = (found.n_distinct, found.entries - found.missing) if found.cut else None
        return plan_levels(name, found.counts, found.missing > 0, forced=False, total=total)

    def _is_exact(self, plan: ColumnPlan) -> bool:
        """Whether single precision represents an encoded column as exactly as it is known."""
        import pyarrow as pa

        if isinstance(plan, CategoryColumn):
            return True
        if isinstance(plan, DateColumn):
            return False
        found = self.found[plan.name]
        if isinstance(found, Tally):
            numbers = as_numbers(found.series, plan.style)
            filled = found.missing > 0 or not np.isfinite(numbers).all()
            values = [*numbers[np.isfinite(numbers)].tolist()]
        else:
            ends = np.array([found.low, found.high]) - plan.centre
            if pa.types.is_float32(self.rows.types[plan.name]) and fits_float32(ends):
                return True
            if not found.whole_steps:
                return False
            filled = found.lost > 0 or found.infinite > 0
            values = [found.low, found.high, found.base]
        values = np.array(values + [plan.fill] * filled) - plan.centre
        return bool(np.max(np.abs(values)) < EXACT_IN_FLOAT32 and np.all(values == np.rint(values)))

    def _count_gaps(self, plan: ColumnPlan) -> Gaps:
        """Return the counts of missing and unreadable entries of a column."""
        found = self.found[plan.name]
        if isinstance(found, NumberSummary):
            strange = found.lost - found.missing
            return Gaps(found.missing, strange, found.infinite, examples=found.examples)
        if isinstance(plan, CategoryColumn):
            return Gaps(found.missing)
        if isinstance(plan, NumberColumn):
            values = as_numbers(found.series, plan.style)
        else:
            values = as_seconds(found.series, plan.pattern)
        gaps, infinite = Gaps(found.missing), np.isinf(values)
        for text, count, bad in zip(found.texts, found.often, np.isnan(values), strict=True):
            if bad and text in BLANKS:
                gaps.missing += int(count)
            elif bad:
                gaps.note_strange(text)
                gaps.strange += int(count) - 1
        gaps.infinite = int(found.often[infinite].sum())
        return gaps

    # Copies.

    def _find_copies(self, plans: dict[str, ColumnPlan]) -> dict[str, str]:
        """Return the columns whose matrix is that of an earlier one, with its name."""
        groups = defaultdict(list)
        for name, plan in plans.items():
            groups[self._find_key(plan)].append(name)
        alike = [names for names in groups.values() if len(names) > 1 and self._may_equal(names)]
        doubtful = [name for names in alike for name in names]
        if not doubtful:
            return {}
        function = HashColumns(tuple(plans[name] for name in doubtful))
        places = np.array([self.rows.names.index(name) for name in doubtful])
        hashes = self.table.sum(function, columns=places, combine=join_hashes)
        first: dict[Any, str] = {}
        for name, digest in sorted(
            zip(doubtful, hashes, strict=True), key=lambda pair: self.rows.names.index(pair[0])
        ):
            first.setdefault((plans[name].width, digest), name)
        wanted = dict(zip(doubtful, hashes, strict=True))
        origin = {name: first[plans[name].width, wanted[name]] for name in doubtful}
        return {name: other for name, other in origin.items() if name != other}

    def _find_key(self, plan: ColumnPlan) -> Any:
        """Return what is equal for columns with the same matrix."""
        found = self.found[plan.name]
        if isinstance(plan, CategoryColumn):
            if not isinstance(found, Tally) or found.cut:
                return plan.width, "many"
            counts = dict.fromkeys(map(normalise_level, plan.levels), 0)
            rest = 0
            for text, count in found.counts.items():
                level = normalise_level(text)
                if level in counts:
                    counts[level] += count
                else:
                    rest += count
            return plan.width, *counts.values(), *[found.missing] * plan.missing, rest * plan.other
        if isinstance(plan, NumberColumn):
            if isinstance(found, Tally):
                numbers = as_numbers(found.series, plan.style)
                numbers = numbers[np.isfinite(numbers)]
                low, high = float(numbers.min()), float(numbers.max())
            else:
                low, high = found.low, found.high
            return 1, low - plan.centre, high - plan.centre
        if isinstance(found, Tally):
            seconds = as_seconds(found.series, plan.pattern)
            high = float(np.nanmax(seconds))
        else:
            high = found.high
        return plan.width, 0.0, float(plan.encode_seconds(np.array([high]))[0, 0])

    def _may_equal(self, names: Sequence[str]) -> bool:
        """Whether some of these columns may be equal, as far as the sample shows."""
        found = [self.found[name] for name in names]
        samples = {each.known.tobytes() for each in found if isinstance(each, NumberSummary)}
        counted = any(isinstance(each, Tally) for each in found)
        filled = any(
            each.lost or each.infinite for each in found if isinstance(each, NumberSummary)
        )
        return counted or filled or len(samples) < len(names)

    def _describe_sample(self, columns: Sequence[ColumnPlan]) -> list[str]:
        """Return a note on the columns whose decisions come from a sample, if there are some."""
        names = [plan.name for plan in columns if isinstance(self.found[plan.name], NumberSummary)]
        if not names or len(self.sample) == self.rows.n_rows:
            return []
        note = (
            f"Medians are those of {len(self.sample):,} of {self.rows.n_rows:,} rows, drawn at "
            f"random: {join_names(names, 5)}."
        )
        return [note]


def draw_spread(n: int, count: int) -> np.ndarray:
    """Return some of ``n`` row numbers in order: all, or one at random from each stretch.

    Examples
    --------
    >>> draw_spread(3, 5).tolist(), len(draw_spread(1000, 10))
    ([0, 1, 2], 10)
    """
    if n <= count:
        return np.arange(n)
    edges = np.linspace(0, n, count + 1).astype(np.int64)
    return edges[:-1] + (np.random.default_rng(0).random(count) * np.diff(edges)).astype(np.int64)


def _count_sampled(rows: FileRows) -> int:
    return min(MOST_SAMPLED, max(1000, _NUMBERS_SAMPLED // max(1, rows.n_features)))


def _collect_facts(name: str, found: NumberSummary) -> NumberFacts:
    """Return the facts about a column of numbers."""
    if not found.finite:
        return NumberFacts(0, found.infinite, found.lost)
    known = found.known
    median = float(np.median(known)) if len(known) else found.low
    whole = found.whole_steps and found.base == np.rint(found.base)
    unique = len(np.unique(found.sample)) == len(found.sample)
    keys = found.climbs or (is_key_name(name) and whole and unique)
    full = found.finite == found.entries
    return NumberFacts(
        found.finite, found.infinite, found.lost, found.low, found.high, median,
        numbers_rows=full and found.entries > MOST_ROWS_WITHOUT_KEYS and keys,
    )  # fmt: skip


def _count_facts(name: str, found: Tally, style: str) -> NumberFacts:
    """Return the facts about a column of texts that are numbers."""
    numbers, often = as_numbers(found.series, style), found.often
    finite = np.isfinite(numbers)
    lost = found.missing + int(often[np.isnan(numbers)].sum())
    infinite = int(often[np.isinf(numbers)].sum())
    if not finite.any():
        return NumberFacts(0, infinite, lost)
    known, counts = numbers[finite], often[finite]
    once = len(known) == found.entries  # then texts are in the order of the rows
    return NumberFacts(
        int(counts.sum()), infinite, lost, float(known.min()), float(known.max()),
        median=_find_median(known, counts),
        numbers_rows=once and is_row_number(name, known),
    )  # fmt: skip


def _find_median(values: np.ndarray, counts: np.ndarray) -> float:
    """Return the median of values that occur several times."""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(counts[order])
    middle = [(ends[-1] - 1) // 2, ends[-1] // 2]
    return float(np.mean(values[order][np.searchsorted(ends, middle, side="right")]))


def _plan_seconds(name: str, found: NumberSummary, pattern: str) -> ColumnPlan | str:
    """Return how to encode a column of dates."""
    if not found.finite:
        return EMPTY
    known = np.sort(found.known)
    fill = float(known[len(known) // 2]) if len(known) else found.low
    return plan_days(name, pattern, found.low, found.high, fill, timed=found.timed)


def _plan_dates_from_texts(name: str, found: Tally, pattern: str) -> ColumnPlan | str:
    """Return how to encode a column of texts that are dates."""
    seconds = as_seconds(found.series, pattern)
    present = ~np.isnan(seconds)
    if not present.any():
        return EMPTY
    known, counts = seconds[present], found.often[present]
    order = np.argsort(known)
    ends = np.cumsum(counts[order])
    fill = float(known[order][np.searchsorted(ends, ends[-1] // 2, side="right")])
    timed = bool(np.any(np.mod(known, SECONDS_PER_DAY) != 0))
    return plan_days(name, pattern, float(known.min()), float(known.max()), fill, timed=timed)


@dataclass(frozen=True, eq=False)
class HashColumns:
    """Hashes the encoded columns of a block."""

    plans: tuple[ColumnPlan, ...]

    def __call__(self, block: Block) -> tuple[bytes, ...]:
        """Return a hash for each plan."""
        found = []
        for plan in self.plans:
            part = encode_column(plan, block.X.column(plan.name)) + 0.0  # no negative zeros
            found.append(
                hashlib.blake2b(np.ascontiguousarray(part).tobytes(), digest_size=16).digest()
            )
        return tuple(found)


def join_hashes(left: tuple[bytes, ...], right: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return the hashes of two parts of a table."""
    return tuple(
        hashlib.blake2b(one + other, digest_size=16).digest()
        for one, other in zip(left, right, strict=True)
    )
