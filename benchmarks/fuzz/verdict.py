"""The allowed results: a right one, or an error that names the argument."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, UndefinedMetricWarning

from mixnorm import GreedyOptions
from mixnorm.exceptions import MixnormError, MixnormWarning

#: CPU seconds that one input may take once compiled code is loaded.
LIMIT = 20.0

#: Two ways to the same scores may differ by this part of the largest score.
TOLERANCE = 1e-8

#: What rounding leaves of a sum, in parts of the magnitudes that are added.
ROUNDING = 1e-13

ALLOWED_ERRORS = (ValueError, TypeError, MixnormError)
ALLOWED_WARNINGS = (
    MixnormWarning,
    ConvergenceWarning,
    DataConversionWarning,
    UndefinedMetricWarning,
)
# scikit-learn's own remarks on a user's data, which are plain UserWarnings.
REMARKS = re.compile(
    r"least populated class|number of unique classes is greater than 50|does not have valid feature"
    r"|feature names|samples are constant|A single label was found"
)

#: Words by which a message may call the data, beside the names of arguments.
DATA_WORDS = (
    *("x", "y", "sample_weight", "task", "row", "rows", "column", "columns", "class", "classes"),
    *("label", "labels", "target", "targets", "feature", "features", "sample", "samples"),
    *("weight", "weights", "array"),
)


class Failure(Exception):
    """A result that must not be."""


@dataclass
class Outcome:
    """The result of one input."""

    subject: str
    kind: str = "right"
    message: str = ""
    notes: list[str] = field(default_factory=list)


def names_argument(message: str, names: Iterable[str]) -> bool:
    """Return whether a message contains one of the names.

    ``alpha`` counts for ``alphas``, and a field of :class:`GreedyOptions` for ``options``.
    """
    words = set(re.findall(r"[a-z_][a-z_0-9]*", message.lower()))
    forms = {form for name in names for form in (name.lower(), name.lower().rstrip("s"))}
    if "options" in forms:
        forms |= {option.name for option in fields(GreedyOptions)}
    return bool(words & forms)


def judge(
    subject: str,
    work: Callable[[], None],
    *,
    names: Iterable[str] = (),
    refused: Iterable[str] = (),
    notes: Iterable[str] = (),
) -> Outcome:
    """Run some work; return what became of it.

    ``names`` are what an error may name beside the data, ``refused`` the arguments of which one
    must be refused: the error has to name one of them.
    """
    outcome, wrong = Outcome(subject, notes=list(notes)), [name for name in refused if name]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work()
        unexpected = [w for w in caught if not _is_allowed(w)]
        if unexpected:
            first = unexpected[0]
            place = f"({Path(first.filename).name}:{first.lineno})"
            raise Failure(f"warning {first.category.__name__}: {first.message} {place}")
        if wrong:
            raise Failure(f"accepted a bad value of {' and '.join(wrong)}")
    except Failure as error:
        outcome.kind, outcome.message = "failed", str(error)
    except ALLOWED_ERRORS as error:
        outcome.message = _words(error)
        named = names_argument(str(error), wrong or [*names, *DATA_WORDS])
        if wrong and set(wrong) & {"X", "y", "sample_weight"}:  # the data go by many words
            named = named or names_argument(str(error), DATA_WORDS)
        outcome.kind = "refused"
        if not named or isinstance(error, UnicodeError):
            outcome.kind = "failed"
            outcome.message = f"names no argument: {outcome.message} {_place(error)}"
    except Exception as error:
        outcome.kind = "failed"
        outcome.message = f"{_words(error)} {_place(error)}"
    return outcome


def _is_allowed(warning: warnings.WarningMessage) -> bool:
    if issubclass(warning.category, ALLOWED_WARNINGS):
        return True
    return bool(warning.category is UserWarning and REMARKS.search(str(warning.message)))


def _words(error: Exception) -> str:
    """Return the kind of an error and the start of what it says."""
    return f"{type(error).__name__}: {error}"[:300]


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return (
        "(" + " < ".join(f"{f.filename.split('/')[-1]}:{f.lineno}" for f in frames[::-1][:4]) + ")"
    )


def require(holds: Any, message: str) -> None:
    """Fail with a message unless something holds."""
    if not holds:
        raise Failure(message)


def require_finite(values: Any, name: str) -> None:
    """Fail where numbers are NaN or infinite."""
    found = np.asarray(values)
    if found.dtype.kind in "fc":
        require(np.all(np.isfinite(found)), f"{name} has NaN or infinity")


def require_close(
    first: Any, second: Any, what: str, tolerance: float = TOLERANCE, terms: float = 0.0
) -> None:
    """Fail where two arrays are apart by more than the tolerance, in parts of the largest value.

    Sums whose ``terms`` cancel to nearly nothing may be apart by what rounding leaves of these.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    require(a.shape == b.shape, f"{what}: shapes {a.shape} and {b.shape}")
    largest = float(np.max(np.abs(b), initial=0.0))
    if largest > 0:
        apart = float(np.max(np.abs(a / largest - b / largest)))
        allowed = max(tolerance, ROUNDING * terms / largest)
        require(apart <= allowed, f"{what}: apart by {apart:.1e} of the largest score")
    else:
        require(np.max(np.abs(a), initial=0.0) <= ROUNDING * terms, f"{what}: one is zero")
