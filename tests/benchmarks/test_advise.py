"""The benchmark of advice: what counts as right, and the bar."""

import numpy as np
import pytest

from benchmarks.advise import command
from benchmarks.advise.child import compute_slack, measure
from benchmarks.advise.data import DESIGNS, REAL
from mixnorm.advice import compare


def record(part="real", data="iris", seed=0, **more):
    base = {"part": part, "data": data, "seed": seed, "status": "ok", "chosen": "l2,1"}
    base |= {"verdict": "clear", "seconds": 1.0, "errors": {"l2,1": 0.1, "l2,2": 0.2}}
    return base | {"slack": 0.02, "source": "x"} | more


def test_right():
    assert command.is_right(record())
    assert command.is_right(record(errors={"l2,1": 0.11, "l2,2": 0.1}))
    assert not command.is_right(record(errors={"l2,1": 0.13, "l2,2": 0.1}))
    assert not command.is_right(record("designs", "noise"))
    assert command.is_right(record("designs", "noise", verdict="nothing"))


def test_bar():
    found = {
        f"{name}/{seed}": record(data=name, seed=seed, verdict="tie")
        for name in REAL
        for seed in (0, 1)
    }
    for name in REAL[:3]:
        found[f"{name}/1"]["errors"] = {"l2,1": 0.5, "l2,2": 0.1}
    checks = {check.name: check.passed for check in command.check_bar(found)}
    assert checks["advice is right, draw 0"] is True
    assert checks["advice is right, draw 1"] is False
    assert checks["isolet: seconds"] is None
    found["isolet/isolet/0"] = record("isolet", "isolet", wall_seconds=30.0)
    assert list(command.check_bar(found))[-1].passed is True


def test_describe():
    assert command.describe(record()).startswith("right")
    assert "l2,1 0.100" in command.describe(record())
    assert command.describe({"status": "timeout"}) == "timeout"


@pytest.mark.parametrize("name", DESIGNS)
def test_designs(name):
    made = DESIGNS[name](np.random.default_rng(0))
    assert len(made.X) == len(made.y)
    assert made.X.shape[1] == made.X_test.shape[1]
    assert compute_slack(made, 0.3) > 0.0


def test_a_whole_order(monkeypatch):
    monkeypatch.setattr(compare, "_COMPARISON", compare.ComparisonSettings(most_cuts=1))
    found = measure("designs", "shared-support", 1)
    assert found["chosen"] == "l2,1"
    assert command.is_right({"part": "designs", "data": "shared-support"} | found)
