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

#: Two ways to the same scores may differ by this fraction of the largest score.
TOLERANCE = 1e-8

#: Rounding error of a sum, as a fraction of the sum of magnitudes.
ROUNDING = 1e-13

ALLOWED_ERRORS = (ValueError, TypeError, MixnormError)
ALLOWED_WARNINGS = (
    MixnormWarning,
    ConvergenceWarning,
    DataConversionWarning,
    UndefinedMetricWarning,
)
# Warnings of scikit-learn about the data, which are plain UserWarnings.
REMARKS = re.compile(
    r"least populated class|number of unique classes is greater than 50|does not have valid feature"
    r"|feature names|samples are constant|A single label was found"
)

#: Words for the data that a message may use instead of an argument's name.
DATA_WORDS = (
    *("x", "y", "sample_weight", "task", "row", "rows", "column", "columns", "class", "classes"),
    *("label", "labels", "target", "targets", "feature", "features", "sample", "samples"),
    *("weight", "weights", "array"),
)


class Failure(Exception):
    """A result that is neither right nor a clear error."""


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
    """Run some work, and return its outcome.

    An error may name the data or one of ``names``. If ``refused`` is not empty, one of these
    arguments must be refused, and the error must name one of them.
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
        outcome.message = _describe_error(error)
        named = names_argument(str(error), wrong or [*names, *DATA_WORDS])
        if wrong and set(wrong) & {"X", "y", "sample_weight"}:  # a message may use many words
            named = named or names_argument(str(error), DATA_WORDS)
        outcome.kind = "refused"
        if not named or isinstance(error, UnicodeError):
            outcome.kind = "failed"
            outcome.message = f"names no argument: {outcome.message} {_describe_place(error)}"
    except Exception as error:
        outcome.kind = "failed"
        outcome.message = f"{_describe_error(error)} {_describe_place(error)}"
    return outcome


def _is_allowed(warning: warnings.WarningMessage) -> bool:
    if issubclass(warning.category, ALLOWED_WARNINGS):
        return True
    return bool(warning.category is UserWarning and REMARKS.search(str(warning.message)))


def _describe_error(error: Exception) -> str:
    """Return the type of an error and the start of its message."""
    return f"{type(error).__name__}: {error}"[:300]


def _describe_place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return (
        "(" + " < ".join(f"{f.filename.split('/')[-1]}:{f.lineno}" for f in frames[::-1][:4]) + ")"
    )


def require(holds: Any, message: str) -> None:
    """Raise :class:`Failure` with a message unless a condition holds."""
    if not holds:
        raise Failure(message)


def require_finite(values: Any, name: str) -> None:
    """Raise :class:`Failure` if a number is NaN or infinite."""
    found = np.asarray(values)
    if found.dtype.kind in "fc":
        require(np.all(np.isfinite(found)), f"{name} has NaN or infinity")


def require_close(
    first: Any, second: Any, what: str, tolerance: float = TOLERANCE, terms: float = 0.0
) -> None:
    """Raise :class:`Failure` if two arrays differ by more than the tolerance.

    The tolerance is relative to the largest value. If the ``terms`` of a sum cancel almost
    completely, the difference may be as large as the rounding error of these terms.
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
