"""What drove a choice of norm, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm.advise._advice import NormAdvice
from mixnorm.advise._cases import Case

# Standard errors of a paired difference, within which norms are as good as each other, and which
# the best must be ahead of the model without features by.
_WITHIN, _AHEAD = 1.0, 1.5


def verdict_of(found: list[NormAdvice], null: np.ndarray) -> str:
    """Return whether one norm is best, several are as good, or none helps.

    ``found`` has the best first, and ``null`` the errors without features by fold.
    """
    best = found[0].curve
    # The best penalty of the best norm has also been lucky, which this is not.
    ahead = null - best.honest
    if ahead.mean() <= _AHEAD * best.error_of(ahead) or ahead.mean() <= 0.0:
        return "nothing"
    return "tie" if any(as_good(found[0], other) for other in found[1:]) else "clear"


def as_good(best: NormAdvice, other: NormAdvice) -> bool:
    """Tell whether a norm is within a standard error of the best, fold by fold."""
    behind = other.curve.errors[:, other.curve.best] - best.curve.errors[:, best.curve.best]
    return bool(behind.mean() <= _WITHIN * best.curve.error_of(behind))


def why(case: Case, found: list[NormAdvice], null: np.ndarray, verdict: str) -> str:
    """Return the reasons, as a paragraph."""
    parts = [_choice(found, null, verdict), _examples(case)]
    if verdict != "nothing":
        parts[1:1] = [_shape(case, found[0])]
        parts.append(_bounds(found))
    return " ".join(part for part in parts if part)


def _choice(found: list[NormAdvice], null: np.ndarray, verdict: str) -> str:
    best = found[0]
    said = (
        f"{best.name} has the smallest held-out error, {best.error:.3g} ± {best.standard_error:.2g}"
    )
    if verdict == "nothing":
        return (
            f"Nothing helps: {said}, which is no better than {float(null.mean()):.3g} without any "
            "feature, but for chance. More rows, other features, or a model that is not linear may."
        )
    if verdict == "tie":
        same = [one.name for one in found[1:] if as_good(best, one)]
        others = [one.name for one in found[1:] if not as_good(best, one)]
        text = f"{said}, and {_listed(same)} {'is' if len(same) == 1 else 'are'} as good within a "
        text += "standard error"
        if others:
            behind = "falls" if len(others) == 1 else "fall"
            return f"{text}; {_listed(others)} {behind} behind."
        fewest = min(found, key=lambda one: one.columns)
        return (
            f"{text}: the norms tie here. Choose by what else you want: {fewest.name} has weights "
            f"for the fewest columns, {fewest.columns:.0f}."
        )
    if len(found) == 1:
        return f"{said}; no other norm was compared."
    second = found[1]
    return f"{said}, ahead of {second.name} ({second.error:.3g}) by more than a standard error."


def _shape(case: Case, best: NormAdvice) -> str:
    """Say what the weights look like."""
    full = min(case.d, case.n_outputs)
    parts = []
    if best.columns <= 0.5 * case.d:
        parts.append(f"{best.columns:.0f} of {case.d} columns have weight")
    if case.n_outputs > 2 and best.rank <= 0.6 * full:
        parts.append(f"the weights have rank {best.rank:.1f} of {full}")
    if not parts:
        parts.append("nearly all columns have weight, in all directions")
    return f"In its model {' and '.join(parts)}."


def _examples(case: Case) -> str:
    X = case.X[0] if case.kind == "tasks" else case.X
    filled = X.nnz / np.prod(X.shape) if hasattr(X, "nnz") else float(np.mean(X != 0.0))
    text = f"There are {case.n} rows for {case.d} columns"
    if filled < 0.3:
        text += f", and {100 * filled:.0f} % of the entries are not zero"
    if case.n >= 20 * case.d:
        text += ": so many that a norm has little to add"
    return text + "."


def _bounds(found: list[NormAdvice]) -> str:
    known = [one for one in found if one.bound is not None]
    if len(known) < 2:
        return ""
    first = min(known, key=lambda one: one.bound.value if one.bound else np.inf)
    if first.name == found[0].name or as_good(found[0], first):
        return f"The bounds' order agrees: {first.name} has the smallest."
    text = f"The bounds disagree: they put {first.name} first, and held-out rows put it behind."
    if found[0].name == "trace":
        text += " (For the same weights its bound is never below that of l2,2.)"
    return text


def _listed(names: list[Any]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else str(names[0])
