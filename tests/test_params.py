"""Plain parameter objects."""

import pickle
from dataclasses import dataclass, field

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


def test_equality_and_text():
    assert MarginSoftmax(0.5) == MarginSoftmax(margin=0.5)
    assert MarginSoftmax(0.5) != MarginSoftmax()
    assert repr(MarginSoftmax(0.5)) == "MarginSoftmax(margin=0.5)"
