"""What drove a choice of norm, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.advice.advice import NormAdvice, by_bound, same_bounds
from mixnorm.advice.cases import Case

# Standard errors of a paired difference, within which norms are as good as each other, and which
# the best must be ahead of the model without features by.
_WITHIN, _AHEAD = 1.0, 2.0


def verdict_of(case: Case, found: list[NormAdvice], null: np.ndarray) -> str:
    """Return whether one norm is best, several are as good, or none helps.

    ``found`` has the best first, and ``null`` the errors without features by fold.
    """
    best = found[0].curve
    if not np.all(np.isfinite(best.errors)):
        raise ValueError("Held-out errors are no numbers; scale the targets, and look at the data.")
    # The best penalty of the best norm has also been lucky, which this is not.
    ahead = null - best.honest
    chance = best.error_of(ahead)
    if case.kind == "classes":  # few folds may happen to agree
        share = float(np.mean(best.honest))
        chance = max(chance, float(np.sqrt(share * (1.0 - share) / case.n)))
    if ahead.mean() <= _AHEAD * chance or ahead.mean() <= 0.0:
        return "nothing"
    if len(found) == 1:
        return "alone"
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
        text += ": the norms tie here."
        fewest = min(found, key=lambda one: one.columns)
        if fewest.columns < 0.95 * max(one.columns for one in found):
            text += f" {fewest.name} has weights for the fewest columns, {fewest.columns:.0f}."
        return text
    if verdict == "alone":
        return f"{said}; no other norm was compared."
    second = found[1]
    return f"{said}, ahead of {second.name} ({second.error:.3g}) by more than a standard error."


def _shape(case: Case, best: NormAdvice) -> str:
    """Say what the weights look like."""
    text = f"In its model {best.columns:.0f} of {case.d} columns have weight"
    full = min(case.d, case.n_outputs)
    return text + (f", and the weights have rank {best.rank:.1f} of {full}." if full > 1 else ".")


def _examples(case: Case) -> str:
    X = case.tables[0]
    filled = X.nnz / np.prod(X.shape) if is_sparse(X) else float(np.mean(X != 0.0))
    rows = f"{case.n} rows in the smallest task" if case.kind == "tasks" else f"{case.n} rows"
    text = f"There are {rows} for {case.d} column{'' if case.d == 1 else 's'}"
    if filled < 0.3:
        text += f", and {100 * filled:.0f} % of the entries are not zero"
    if case.n >= 20 * case.d * case.n_outputs:
        text += ": so many that a norm has little to add"
    return text + "."


def _bounds(found: list[NormAdvice]) -> str:
    known = by_bound(found)
    if len(known) < 2:
        return ""
    best, first = found[0], known[0]
    if first.name == best.name or same_bounds(first, best):
        return f"The bounds agree: none is below that of {best.name}."
    if as_good(best, first):
        return f"The bounds put {first.name} first, which is as good on held-out rows."
    text = f"The bounds disagree: they put {first.name} first, and held-out rows put it behind."
    if best.name == "trace":
        text += " (For the same weights its bound is never below that of l2,2.)"
    return text


def _listed(names: list[Any]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else str(names[0])
