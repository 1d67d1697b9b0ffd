"""Parameters of estimators: fields of a dataclass, whose types say which values are allowed.

A parameter is one line, with its name, type, rule and default::

    tol: Tolerance = 1e-4
    alpha: Annotated[float, Number(above=0, why="it is the weight of the norm")] = 1.0
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, get_type_hints

import numpy as np

from mixnorm.estimators._common.inputs import check_class_weight, check_jobs, random_generator
from mixnorm.norms import as_norm


class CheckedParameters:
    """Base of estimators whose parameters are checked by their kinds."""

    def _check_parameters(self) -> None:
        """Raise unless every parameter has a value that its kind allows."""
        estimator: type = type(self)
        for name, kind in parameter_kinds(estimator).items():
            kind.check(name, getattr(self, name))
        self._check_together()

    def _check_together(self) -> None:
        """Raise for parameters that contradict one another."""


@functools.cache
def parameter_kinds(estimator: type) -> dict[str, Kind]:
    """Return the kinds of the parameters, by name.

    Examples
    --------
    >>> from mixnorm import MixedNormClassifier
    >>> parameter_kinds(MixedNormClassifier)["tol"]
    Number(why='', least=0, above=None, most=None, below=None, finite=True)
    """
    hints = get_type_hints(estimator, include_extras=True)
    return {
        one.name: note
        for one in fields(estimator)
        for note in getattr(hints[one.name], "__metadata__", ())
        if isinstance(note, Kind)
    }


# --- kinds


@dataclass(frozen=True)
class Kind:
    """The values that a parameter may have: any, where it is checked elsewhere.

    In a subclass ``fits`` checks the type, described by ``noun``, and ``within`` checks the value,
    described by ``limits``. ``why`` is the reason that the error gives after a colon.
    """

    why: str = field(default="", kw_only=True)

    noun = ""
    limits = ""

    def fits(self, value: object) -> bool:
        """Whether a value has the right type."""
        return True

    def within(self, value: object) -> bool:
        """Whether a value of the right type is allowed."""
        return True

    def check(self, name: str, value: object, others: tuple[Any, ...] = ()) -> None:
        """Raise for a wrong value; the error also lists ``others``, which are allowed too."""
        if not self.fits(value):
            unknown = isinstance(value, str) and any(isinstance(other, str) for other in others)
            # A text where texts such as "auto" are allowed is an unknown value, not a wrong type.
            error, words = ValueError if unknown else TypeError, self.noun
        elif not self.within(value):
            error, words = ValueError, self.limits
        else:
            return
        words = ", ".join([words, *(repr(other) for other in others[:-1])])
        words += f" or {others[-1]!r}" if others else ""
        raise error(
            f"{_describe(name, value)} must be {words}{': ' if self.why else ''}{self.why}."
        )


@dataclass(frozen=True)
class Number(Kind):
    """A number within bounds."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    finite: bool = True

    noun = "a number"

    @property
    def limits(self) -> str:  # type: ignore[override]
        """The bounds in words."""
        upper = {"at most": self.most, "below": self.below}
        bounds = {"at least": self.least, "above": self.above, **upper}
        words = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        if self.finite and self.most is None and self.below is None:
            words = ["positive" if word == "above 0" else word for word in words] + ["finite"]
        return " and ".join(words)

    def fits(self, value: object) -> bool:
        """Whether a value is a number; True and False are not."""
        return isinstance(value, numbers.Real) and not isinstance(value, bool)

    def within(self, value: Any) -> bool:
        """Whether a number is within the bounds."""
        try:
            value = float(value)
        except OverflowError:  # a huge whole number
            value = math.inf
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
            and (not self.finite or abs(value) < math.inf)
        )


@dataclass(frozen=True)
class Whole(Number):
    """A whole number of at least ``least``."""

    least: float | None = 1
    finite: bool = False  # every whole number is finite, also one beyond the largest float

    noun = "a whole number"

    def fits(self, value: object) -> bool:
        """Whether a value is a whole number; True and False are not."""
        return super().fits(value) and isinstance(value, numbers.Integral)


class Flag(Kind):
    """True or False."""

    noun = "True or False"

    def fits(self, value: object) -> bool:
        """Whether a value is a truth value."""
        return isinstance(value, (bool, np.bool_))


@dataclass(frozen=True)
class OneOf(Kind):
    """One of some names."""

    names: Collection[str]

    def check(self, name: str, value: object, others: tuple[Any, ...] = ()) -> None:
        """Raise unless the value is one of the names."""
        if not isinstance(value, str) or value not in self.names:
            advice = self.why or f"choose one of {list(self.names)}"
            raise ValueError(f"{_describe(name, value)} is not known; {advice}.")


@dataclass(frozen=True)
class Of(Kind):
    """An object of a class; ``why`` says how to make one."""

    kind: type

    def check(self, name: str, value: object, others: tuple[Any, ...] = ()) -> None:
        """Raise unless the value is an object of the class."""
        if not isinstance(value, self.kind):
            raise TypeError(f"{_describe(name, value)} is not a {self.kind.__name__}; {self.why}.")


@dataclass(frozen=True)
class By(Kind):
    """A value for which a function raises no error."""

    function: Callable[[Any], Any]

    def check(self, name: str, value: object, others: tuple[Any, ...] = ()) -> None:
        """Let the function raise its error."""
        self.function(value)


@dataclass(frozen=True)
class Or(Kind):
    """A value of another kind, or one of some other values."""

    kind: Kind
    others: tuple[Any, ...]

    def check(self, name: str, value: object, others: tuple[Any, ...] = ()) -> None:
        """Raise unless the value is of the kind or one of the others."""
        # Types first: comparing an array with None or a text is no truth value.
        if not any(isinstance(value, type(other)) and value == other for other in self.others):
            self.kind.check(name, value, self.others)


def maybe(kind: Kind) -> Or:
    """Return the kind that allows None as well."""
    return Or(kind, (None,))


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of values to try, or a single one.

    With ``texts`` a value may be a text.
    """

    kind: Kind
    texts: bool = False

    def check(self, name: str, value: object, others: tuple[Any, ...] = ()) -> None:
        """Raise unless the value is a list whose entries are all of the kind."""
        for entry in values_to_try(value, name, texts=self.texts):
            self.kind.check(f"an entry of {name}", entry)


def _describe(name: str, value: object) -> str:
    return f"{name}={value!r}" if name.isidentifier() else f"{value!r}, {name},"


def values_to_try(given: object, name: str, *, texts: bool = False) -> list[Any]:
    """Return a list of numbers to try, also for a single number.

    With ``texts`` an entry may be a text, such as ``"auto"``.
    """
    # NumPy's numbers become Python's, so that results print and compare as what the user wrote.
    kinds = (numbers.Real, str) if texts else numbers.Real
    if isinstance(given, kinds) and not isinstance(given, bool):
        return [given]
    if isinstance(given, (str, bytes, dict)) or not isinstance(given, Iterable):
        raise TypeError(f"{name}={given!r} must be a list of numbers to try.")
    values = [value.item() if isinstance(value, np.generic) else value for value in given]
    for value in values:
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"{name}={given!r} must be a list of numbers to try, got {value!r}.")
    if not values:
        raise ValueError(f"{name} is empty; give at least one number to try.")
    return values


# --- types that several families have

ClassWeight = Annotated[Any, By(check_class_weight)]
Count = Annotated[int, Whole(least=1)]
Jobs = Annotated[int | None, By(check_jobs)]
Norm = Annotated[Any, By(as_norm)]
Seed = Annotated[Any, By(random_generator)]
Switch = Annotated[bool, Flag()]
Tolerance = Annotated[float, Number(least=0)]
#: Checked elsewhere: by a rule between parameters, or by what takes them.
Anything = Annotated[Any, Kind()]
Folds = Annotated[Any, Kind()]
Loss = Annotated[Any, Kind()]
Scoring = Annotated[Any, Kind()]
