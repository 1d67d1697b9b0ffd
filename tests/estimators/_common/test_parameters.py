"""Kinds of parameters: what each takes, and the error for what it does not."""

import re

import numpy as np
import pytest

from mixnorm.estimators._common.parameters import (
    By,
    Flag,
    Kind,
    ListOf,
    Number,
    Of,
    OneOf,
    Or,
    Whole,
    maybe,
)
from mixnorm.norms import as_norm

RIGHT = [
    (Number(), [1, 0.5, -2, np.float32(3.0)]),
    (Number(least=1, finite=False), [1, np.inf]),
    (Number(above=0, most=1), [1e-300, 1]),
    (Whole(least=0), [0, np.int64(3), 10**400]),
    (Flag(), [True, np.False_]),
    (OneOf(("line", "unit")), ["line", np.str_("unit")]),
    (Of(dict, why="make one"), [{}]),
    (By(as_norm), ["l2,1"]),
    (maybe(Whole(least=1)), [None, 1]),
    (Or(Number(above=0), ("scale", "auto")), ["auto", 2.0]),
    (ListOf(Number(above=0)), [1.0, [1.0, 2], np.array([0.5])]),
    (Kind(), [None, "anything"]),
]


def without_address(value):
    """Return a text that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@pytest.mark.parametrize(("kind", "values"), RIGHT, ids=without_address)
def test_right_values(kind, values):
    for value in values:
        kind.check("name", value)


WRONG = [
    (Number(), "1", TypeError, "name='1' must be a number."),
    (Number(), True, TypeError, "name=True must be a number."),
    (Number(), np.nan, ValueError, "name=nan must be finite."),
    (Number(least=0), -1, ValueError, "name=-1 must be at least 0 and finite."),
    (Number(least=0), np.inf, ValueError, "name=inf must be at least 0 and finite."),
    (Number(least=1, finite=False), np.nan, ValueError, "name=nan must be at least 1."),
    (Number(above=0, why="it counts"), 0, ValueError, "name=0 must be positive and finite: it co"),
    (Number(above=0, most=1), 1.5, ValueError, "name=1.5 must be above 0 and at most 1."),
    (Number(least=0, below=1), 1, ValueError, "name=1 must be at least 0 and below 1."),
    (Number(), 10**400, ValueError, "must be finite."),
    (Whole(least=2), 2.0, TypeError, "name=2.0 must be a whole number."),
    (Whole(least=2), 1, ValueError, "name=1 must be at least 2."),
    (Flag(), 1, TypeError, "name=1 must be True or False."),
    (OneOf(("line",)), "up", ValueError, "name='up' is not known; choose one of ['line']."),
    (OneOf(("line",), why="take 'line'"), ["line"], ValueError, "is not known; take 'line'."),
    (Of(dict, why="make one"), dict, TypeError, "is not a dict; make one."),
    (By(as_norm), "l9", ValueError, "'l9' is not known"),
    (maybe(Whole(least=1)), "a", TypeError, "name='a' must be a whole number or None."),
    (maybe(Whole(least=1)), 0, ValueError, "name=0 must be at least 1 or None."),
    (Or(Number(), (None, "auto")), "b", ValueError, "name='b' must be a number, None or 'auto'."),
    (Or(Number(), (None, "auto")), [1], TypeError, "name=[1] must be a number, None or 'auto'."),
    (ListOf(Whole(least=1)), [1, 0], ValueError, "0, an entry of name, must be at least 1."),
    (ListOf(Whole(least=1)), "a", TypeError, "name='a' must be a list of numbers to try."),
]


@pytest.mark.parametrize(("kind", "value", "error", "message"), WRONG, ids=without_address)
def test_wrong_values(kind, value, error, message):
    with pytest.raises(error) as raised:
        kind.check("name", value)
    assert message in str(raised.value)
