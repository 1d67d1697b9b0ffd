"""Plain parameter objects."""

import pickle
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from sklearn.base import clone

from mixnorm._params import Parameters
from mixnorm.losses import MarginSoftmax


@dataclass
class Inner(Parameters):
    p: float = 2.0


@dataclass
class Outer(Parameters):
    inner: Inner = field(default_factory=Inner)
    size: int = 3
    kind: type = Inner


def test_get_params():
    inner = Inner(1.5)
    outer = Outer(inner)
    assert outer.get_params(deep=False) == {"inner": inner, "size": 3, "kind": Inner}
    deep = outer.get_params()
    assert deep == {"inner": inner, "inner__p": 1.5, "size": 3, "kind": Inner}


def test_set_params():
    outer = Outer()
    assert outer.set_params(size=4, inner__p=1.0) is outer
    assert (outer.size, outer.inner.p) == (4, 1.0)
    assert outer.set_params() is outer


def test_a_part_is_replaced_before_its_parameters_are_set():
    outer = Outer().set_params(inner=Inner(9.0), inner__p=7.0)
    assert outer.inner.p == 7.0


@pytest.mark.parametrize("name", ["nothing", "nothing__p", "inner__nothing"])
def test_unknown_names(name):
    with pytest.raises(ValueError, match=r"no parameter 'nothing'; it has \["):
        Outer().set_params(**{name: 1})


def test_unknown_name_leaves_no_trace():
    outer = Outer()
    with pytest.raises(ValueError, match="it has"):
        outer.set_params(nothing=1)
    assert outer == Outer()


@pytest.mark.parametrize("copy", [clone, lambda part: pickle.loads(pickle.dumps(part))])
def test_copies(copy):
    outer = Outer(Inner(5.0), size=1)
    other = copy(outer)
    assert other == outer
    assert other is not outer
    assert other.inner is not outer.inner


@dataclass
class Several(Parameters):
    parts: object = ()
    size: int = 3
    _parts: ClassVar[str] = "parts"


def test_parts_have_their_positions_as_names():
    first, second = Inner(1.0), Inner(2.0)
    several = Several([first, second, "text"])
    assert several.get_params(deep=False) == {"parts": several.parts, "size": 3}
    deep = several.get_params()
    assert {name: deep[name] for name in ("0", "0__p", "1", "1__p", "2")} == {
        "0": first, "0__p": 1.0, "1": second, "1__p": 2.0, "2": "text",
    }  # fmt: skip
    given = several.parts
    several.set_params(**{"1__p": 9.0, "1": Inner(5.0), "2": "other"})
    assert several.parts == [Inner(1.0), Inner(9.0), "other"]
    assert given == [first, second, "text"]  # the list of the user is not changed
    assert Several((first,)).set_params(**{"0": second}).parts == (second,)
    assert Several([]).set_params(**{"0__p": 7.0, "parts": [first]}).parts == [Inner(7.0)]


@pytest.mark.parametrize("parts", [[Inner()], (), None, "text", {"0": Inner()}])
def test_parts_that_there_are_not(parts):
    with pytest.raises(ValueError, match=r"no parameter '1'; it has \["):
        Several(parts).set_params(**{"1__p": 1.0})


def test_parameters_of_what_has_none():
    with pytest.raises(ValueError, match="0__p cannot be set: 0='text' has no parameters"):
        Several(["text"]).set_params(**{"0__p": 1.0})


def test_equality_and_text():
    assert MarginSoftmax(0.5) == MarginSoftmax(margin=0.5)
    assert MarginSoftmax(0.5) != MarginSoftmax()
    assert repr(MarginSoftmax(0.5)) == "MarginSoftmax(margin=0.5)"
