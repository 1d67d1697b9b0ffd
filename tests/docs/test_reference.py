"""The reference lists all that rooms export."""

import importlib.util
from pathlib import Path

import pytest

import mixnorm

PATH = Path(__file__).parents[2] / "docs" / "reference.py"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def resolved(name):
    """Return the object of a full name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def test_nothing_that_a_room_exports_is_missing(reference):
    page = reference.page()
    listed = [name for names in reference.entries().values() for name in names]
    objects = {id(resolved(name)) for name in listed}
    assert len(objects) == len(listed)
    for name in listed:
        assert f"\n   {name}\n" in page
    for room in reference.rooms():
        for name, value in reference.exported(room).items():
            assert id(value) in objects, f"{room.__name__}.{name}"


def test_every_room_has_its_place(reference):
    names = [room.__name__ for room in reference.rooms()]
    assert set(reference.TITLES) <= set(names)
    for room in ("losses", "norms", "pools", "kernels", "data"):
        assert f"mixnorm.{room}" in names
    assert not set(reference.PROGRAMS) & set(names)


def test_estimators_are_listed_as_users_import_them(reference):
    listed = reference.entries()["mixnorm.estimators"]
    assert "mixnorm.ShareBoostClassifier" in listed
    assert all(name.rpartition(".")[2] in mixnorm.__all__ for name in listed)
