"""scikit-learn's checks of arrays: silent on huge numbers, and every error names its argument.

scikit-learn adds up all entries to find NaN and infinities, and makes integers of labels that are
floats. Finite numbers near the largest float overflow there, which means nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import validation

# What a message calls the data by; a message without these is NumPy's, on a single entry.
_NAMED = re.compile(r"\b(X|y|arrays?|features?|input|labels?)\b|sample|[Uu]nknown label type")


def name_argument(check: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a check that ignores overflows and names the argument in its errors."""

    @functools.wraps(check)
    def call(*args: Any, **options: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                return check(*args, **options)
            except (TypeError, ValueError) as error:
                lines = str(error).splitlines() or [type(error).__name__]
                if _NAMED.search(lines[0]):
                    raise
                kind = TypeError if isinstance(error, TypeError) else ValueError
                named = options.get("input_name") or name
                raise kind(
                    f"{named} does not hold real numbers throughout: {lines[0]}. "
                    "Encode text and categories as numbers first."
                ) from error

    return call


check_array = name_argument(validation.check_array, "X")
