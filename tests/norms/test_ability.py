"""Methods that are there only for some parameters."""

import inspect

import pytest

from mixnorm.norms.ability import ability


class Door:
    """Something that opens when it is not locked."""

    def __init__(self, locked):
        self.locked = locked

    def __repr__(self):
        return f"Door({self.locked})"

    @ability(lambda door: not door.locked, "doors that are not locked do")
    def open(self, width, fast=False):
        """Open the door."""
        return width, fast


class WideDoor(Door):
    def open(self, width, fast=False):
        return super().open(2 * width, fast)


def test_present():
    assert hasattr(Door(False), "open")
    assert Door(False).open(3, fast=True) == (3, True)


def test_absent():
    assert not hasattr(Door(True), "open")
    with pytest.raises(AttributeError, match=r"Door\(True\) has no open; doors that are not lock"):
        Door(True).open(3)


def test_follows_the_parameters():
    door = Door(True)
    door.locked = False
    assert door.open(1) == (1, False)
    door.locked = True
    assert not hasattr(door, "open")


def test_documented_on_the_class():
    assert Door.open.__doc__ == "Open the door."
    assert list(inspect.signature(Door.open).parameters) == ["self", "width", "fast"]


def test_overridden():
    assert WideDoor(False).open(2) == (4, False)
