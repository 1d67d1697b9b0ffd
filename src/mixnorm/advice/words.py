"""The reasons for a choice of norm, in words."""

from __future__ import annotations

import numpy as np

from mixnorm._array import is_sparse
from mixnorm.advice.advice import NormAdvice, have_same_bound, sort_by_bound
from mixnorm.advice.cases import AdviceCase

# Norms whose paired difference is at most this many standard errors are equally good.
_ERRORS_WITHIN_A_TIE = 1.0
# The best norm must beat the model without features by more than this many standard errors.
_ERRORS_ABOVE_NOTHING = 2.0


def choose_verdict(case: AdviceCase, found: list[NormAdvice], null: np.ndarray) -> str:
    """Return the verdict: one norm is best, several are equally good, or none helps.

    ``found`` has the best norm first. ``null`` has the error without features on every fold.
    """
    best = found[0].curve
    if not np.all(np.isfinite(best.errors)):
        raise ValueError("Held-out errors are not finite; scale the targets, and check the data.")
    # The smallest of many errors is too small by chance; errors at penalties that were chosen on
    # other folds are not.
    ahead = null - best.honest_errors
    chance = best.standard_error(ahead)
    if case.kind == "classes":  # errors on a few folds may be equal by chance
        share = float(np.mean(best.honest_errors))
        # The binomial standard error: a few folds may agree by chance.
        chance = max(chance, float(np.sqrt(share * (1.0 - share) / case.n)))
    if ahead.mean() <= _ERRORS_ABOVE_NOTHING * chance or ahead.mean() <= 0.0:
        return "nothing"
    if len(found) == 1:
        return "alone"
    return "tie" if any(is_as_good(found[0], other) for other in found[1:]) else "clear"


def is_as_good(best: NormAdvice, other: NormAdvice) -> bool:
    """Tell whether a norm is within a standard error of the best, fold by fold."""
    # Differences on the same folds vary far less than the errors themselves.
    behind = other.curve.errors[:, other.curve.best] - best.curve.errors[:, best.curve.best]
    return bool(behind.mean() <= _ERRORS_WITHIN_A_TIE * best.curve.standard_error(behind))


def explain(case: AdviceCase, found: list[NormAdvice], null: np.ndarray, verdict: str) -> str:
    """Return the reasons for the choice, as a paragraph."""
    parts = [_explain_choice(found, null, verdict), _describe_rows(case)]
    if verdict != "nothing":
        parts[1:1] = [_describe_weights(case, found[0])]
        parts.append(_compare_bounds(found))
    return " ".join(part for part in parts if part)


def _explain_choice(found: list[NormAdvice], null: np.ndarray, verdict: str) -> str:
    best = found[0]
    said = (
        f"{best.name} has the smallest held-out error, {best.error:.3g} ± {best.standard_error:.2g}"
    )
    if verdict == "nothing":
        return (
            f"Nothing helps: {said}, which is not better than {float(null.mean()):.3g} without any "
            "feature, beyond chance. More rows, other features, or a model that is not linear may "
            "help."
        )
    if verdict == "tie":
        same = [one.name for one in found[1:] if is_as_good(best, one)]
        others = [one.name for one in found[1:] if not is_as_good(best, one)]
        text = (
            f"{said}, and {_join_names(same)} {'is' if len(same) == 1 else 'are'} as good within a "
        )
        text += "standard error"
        if others:
            behind = "falls" if len(others) == 1 else "fall"
            return f"{text}; {_join_names(others)} {behind} behind."
        text += ": the norms tie here."
        fewest = min(found, key=lambda one: one.columns)
        if fewest.columns < 0.95 * max(one.columns for one in found):
            text += f" {fewest.name} has weights for the fewest columns, {fewest.columns:.0f}."
        return text
    if verdict == "alone":
        return f"{said}; no other norm was compared."
    second = found[1]
    return f"{said}, ahead of {second.name} ({second.error:.3g}) by more than a standard error."


def _describe_weights(case: AdviceCase, best: NormAdvice) -> str:
    """Return a sentence on the number of columns with weight and the rank."""
    text = f"In its model {best.columns:.0f} of {case.d} columns have weight"
    full = min(case.d, case.n_outputs)
    return text + (f", and the weights have rank {best.rank:.1f} of {full}." if full > 1 else ".")


def _describe_rows(case: AdviceCase) -> str:
    """Return a sentence on the size of the data."""
    X = case.tables[0]
    filled = X.nnz / np.prod(X.shape) if is_sparse(X) else float(np.mean(X != 0.0))
    rows = f"{case.n} rows in the smallest task" if case.kind == "tasks" else f"{case.n} rows"
    text = f"There are {rows} for {case.d} column{'' if case.d == 1 else 's'}"
    if filled < 0.3:
        text += f", and {100 * filled:.0f} % of the entries are not zero"
    if case.n >= 20 * case.d * case.n_outputs:
        text += ", so many that the choice of norm matters little"
    return text + "."


def _compare_bounds(found: list[NormAdvice]) -> str:
    """Return a sentence on whether bounds and held-out errors agree."""
    known = sort_by_bound(found)
    if len(known) < 2:
        return ""
    best, first = found[0], known[0]
    if first.name == best.name or have_same_bound(first, best):
        return f"The bounds agree: none is below that of {best.name}."
    if is_as_good(best, first):
        return f"The bounds put {first.name} first, which is as good on held-out rows."
    text = f"The bounds disagree: they put {first.name} first, and held-out rows put it behind."
    if best.name == "trace":
        text += " (For the same weights its bound is never below that of l2,2.)"
    return text


def _join_names(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
