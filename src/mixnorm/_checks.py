"""scikit-learn's checks of arrays, without overflow warnings; every error names its argument.

To find NaN and infinities scikit-learn sums all entries, and it casts float labels to integers.
Finite numbers near the largest float overflow in both; such an overflow is harmless.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import validation

# A message with one of these words names the data; one without comes from NumPy, on one entry.
_NAMES_DATA = re.compile(r"\b(X|y|arrays?|features?|input|labels?)\b|sample|[Uu]nknown label type")


def name_argument(check: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a check that ignores overflows and names the argument in its errors."""

    @functools.wraps(check)
    def call(*args: Any, **options: Any) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                return check(*args, **options)
            except (TypeError, ValueError) as error:
                # NumPy says which entry it cannot read, but not of which argument.
                lines = str(error).splitlines() or [type(error).__name__]
                if _NAMES_DATA.search(lines[0]):
                    raise
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(
                    f"{options.get('input_name') or name} has entries that are not real numbers: "
                    f"{lines[0]}. Encode text and categories as numbers first."
                ) from error

    return call


check_array = name_argument(validation.check_array, "X")
