"""The fuzzer: some seconds of it, and that it notices what it should."""

import argparse
import json
import signal
import warnings

import numpy as np
import pytest
from rich.console import Console

from benchmarks.fuzz import cases, command
from benchmarks.fuzz.verdict import Failure, judge, require_close, require_finite
from mixnorm.exceptions import MixnormWarning, ModelFileError


def options(*given):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(given)


def quiet():
    return Console(quiet=True)


def test_no_input_fails():
    """In this process, which has imported and compiled most of what the inputs need."""
    outcomes = {number: cases.run(0, number) for number in range(34, 34 + 176)}
    failed = {n: vars(outcome) for n, outcome in outcomes.items() if outcome.kind == "failed"}
    assert failed == {}
    assert sum(outcome.kind == "right" for outcome in outcomes.values()) > 88


@pytest.mark.parametrize(
    "given",
    [
        ("--kinds", "norm,loss", "--inputs", "4", "--processes", "1"),
        pytest.param(("--inputs", "100000", "--seconds", "60"), marks=pytest.mark.slow),
    ],
    ids=["some inputs", "a minute"],
)
def test_no_input_fails_in_a_process(tmp_path, given):
    path = tmp_path / "fuzz.json"
    given = (*given, "--json", str(path))
    status = command.main(options(*given), quiet())
    chunks = json.loads(path.read_text())["chunks"].values()
    failures = [command.describe(record) for chunk in chunks for record in chunk["failures"]]
    assert failures == []
    assert status == 0
    assert sum(row["right"] for chunk in chunks for row in chunk["subjects"].values()) > 0


def warn():
    np.array([1e308]) * 10


def divide():
    return 1 / 0


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("work", "refused", "kind"),
    [
        (lambda: None, (), "right"),
        (lambda: warnings.warn("slow", MixnormWarning, stacklevel=1), (), "right"),
        (warn, (), "failed"),
        (divide, (), "failed"),
        (lambda: fail(ValueError("alpha=-1 must be positive.")), ("alpha",), "refused"),
        (lambda: fail(ValueError("alpha=-1 must be positive.")), (), "refused"),
        (lambda: fail(ValueError("Input X contains NaN.")), ("X",), "refused"),
        (lambda: fail(ValueError("beta=-1 must be positive.")), ("alpha",), "failed"),
        (lambda: fail(ValueError("could not convert 'a'")), (), "failed"),
        (lambda: fail(ModelFileError("the rows are damaged")), (), "refused"),
        (lambda: fail(KeyError("alpha")), (), "failed"),
        (lambda: None, ("alpha",), "failed"),
        (lambda: require_finite([1.0, np.nan], "scores"), (), "failed"),
        (lambda: require_close([1.0, 2.0], [1.0, 2.0 + 1e-7], "rows"), (), "failed"),
        (lambda: require_close([1.0, 2.0], [1.0, 2.0 + 1e-9], "rows"), (), "right"),
    ],
)
def test_verdicts(work, refused, kind):
    assert judge("case", work, names=["alpha"], refused=refused).kind == kind


def test_shapes_that_differ_fail():
    with pytest.raises(Failure, match="shapes"):
        require_close([1.0], [1.0, 2.0], "rows")


def test_an_input_is_the_same_every_time():
    first, second = (cases.run(3, 11, ("norm", "loss")) for _ in range(2))
    assert first == second
    assert any(cases.run(3, number, ("norm",)).notes != first.notes for number in range(5))


def test_every_estimator_is_drawn():
    from mixnorm import estimators

    fitted = {name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")}
    assert fitted <= cases.KINDS.keys()


def test_a_process_that_dies_costs_one_input(monkeypatch):
    def process(seed, numbers, kinds, until, stop):
        for number in numbers:
            yield {"number": number}, None
            if number == 2:
                yield {"errors": "oh"}, -signal.SIGPROF
                return
            yield {"number": number, "seconds": 0.1, "subject": "a", "kind": "right"}, None
        yield {"errors": ""}, 0

    monkeypatch.setattr(command, "_run_process", process)
    records = list(command.try_inputs(0, [1, 2, 3], ()))
    assert [record["number"] for record in records] == [1, 2, 3]
    assert [record["kind"] for record in records] == ["right", "failed", "right"]
    assert "never returned" in records[1]["message"]


def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch):
    tried = []

    def inputs(seed, numbers, kinds, until, stop):
        tried.extend(numbers)
        kind = "failed" if 3 in numbers else "right"
        return [{"number": n, "seconds": 0, "subject": "a", "kind": kind, "message": "bad"}
                for n in numbers]  # fmt: skip

    monkeypatch.setattr(command, "try_inputs", inputs)
    monkeypatch.setattr(command, "_CHUNK", 2)
    path = str(tmp_path / "fuzz.json")
    assert command.main(options("--inputs", "2", "--json", path), quiet()) == 0
    assert command.main(options("--inputs", "4", "--json", path, "--resume"), quiet()) == 1
    assert sorted(tried) == [0, 1, 2, 3]


def test_unknown_kinds_are_refused():
    with pytest.raises(SystemExit, match="Unknown kind 'nonsense'"):
        command.main(options("--kinds", "nonsense"), quiet())
