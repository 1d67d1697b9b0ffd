"""The same parameter has the same default everywhere, as the page of parameters says."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from mixnorm import estimators

PAGE = Path(__file__).parents[2] / "docs" / "user_guide" / "parameters.rst"
SHARED, BY_FAMILY, _, ATTRIBUTES = re.split(r"\n-{5,}\n", PAGE.read_text("utf-8"))[1:]
KINDS = [
    kind
    for kind in (getattr(estimators, name) for name in estimators.__all__)
    if hasattr(kind, "fit")
]
# Other defaults than those of the first table: by the parameter and the beginning of the names of
# the estimators, the default and the reason.
EXCEPTIONS = {
    ("norm", "MirrorDescent"): ("l2,2", "each feature then has a step size of its own"),
    ("fit_intercept", "GroupPerceptron"): (False, "the bound on mistakes has no intercept"),
    ("scale", "GroupPerceptron"): (False, "the bound on mistakes needs rows as they are"),
    ("standardize", "TensorKernel"): (True, "products of columns mix their units"),
    ("one_standard_error", "MixedNorm"): (True, "the best penalty keeps features of no use"),
    ("one_standard_error", "MultiTask"): (True, "the best penalty keeps features of no use"),
}


def rows_of(table):
    """Return the cells of a list-table, row by row, without the head."""
    rows = re.split(r"^   \* - ", table, flags=re.MULTILINE)[2:]
    return [re.split(r"\n     -", row.split("\n\n")[0]) for row in rows]


def value_of(cell):
    return ast.literal_eval(cell.strip().strip("`"))


def values_of(cell):
    """Return the values before a colon, in double backquotes."""
    return [value_of(text) for text in re.findall(r"``([^`]+)``:", cell)]


def name_of(row):
    return row[0].strip().strip("`")


COMMON = {name_of(row): value_of(row[2]) for row in rows_of(SHARED)}
VARIED = {name_of(row): values_of(row[2]) for row in rows_of(BY_FAMILY)}


def defaults(name):
    """Return the default of a parameter in every estimator that has it, by the estimator."""
    found = {kind: inspect.signature(kind).parameters.get(name) for kind in KINDS}
    return {kind: given.default for kind, given in found.items() if given is not None}


def same(one, other):
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("name", COMMON)
def test_a_shared_parameter_has_one_default(name):
    found = defaults(name)
    assert len(found) > 1
    for kind, default in found.items():
        other = [
            value
            for (parameter, start), (value, _) in EXCEPTIONS.items()
            if parameter == name and kind.__name__.startswith(start)
        ]
        assert same(default, other[0] if other else COMMON[name]), kind.__name__


@pytest.mark.parametrize("name", VARIED)
def test_defaults_of_families_are_all_on_the_page(name):
    assert {repr(value) for value in defaults(name).values()} == set(map(repr, VARIED[name]))


def test_every_exception_is_still_one():
    for (name, start), (value, _) in EXCEPTIONS.items():
        own = [given for kind, given in defaults(name).items() if kind.__name__.startswith(start)]
        assert own
        assert all(same(default, value) and value != COMMON[name] for default in own)


def test_parameters_of_several_families_are_on_the_page():
    families = {}
    for kind in KINDS:
        for name in inspect.signature(kind).parameters:
            families.setdefault(name, set()).add(kind.__module__.split(".")[2])
    shared = {name for name, own in families.items() if len(own) > 1}
    assert shared <= COMMON.keys() | VARIED.keys()
    assert not COMMON.keys() & VARIED.keys()


def test_parameters_of_searches_stand_together():
    for kind in KINDS:
        names = list(inspect.signature(kind).parameters)
        if "cv" in names:
            start = names.index("cv")
            block = ["cv", "scoring", "one_standard_error", "n_jobs"]
            assert names[start : start + 4] == block, kind.__name__


@pytest.mark.parametrize("name", [name_of(row) for row in rows_of(ATTRIBUTES)])
def test_attributes_on_the_page_exist(name):
    # Those that validation sets are in no class.
    assert name.endswith("_in_") or any(hasattr(kind, name) for kind in KINDS)
