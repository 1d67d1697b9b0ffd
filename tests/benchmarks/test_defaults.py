"""The benchmark of the defaults: drawn tables, and what mixnorm fit makes of them."""

import numpy as np
import pytest

pytest.importorskip("pandas", reason="the command line reads tables with pandas")

from benchmarks.defaults import penguins
from benchmarks.harness import drawn_tables


def test_penguins_are_drawn_as_told():
    table = drawn_tables.draw_penguins(0)
    assert [len(column) for column in table.values()] == [344] * 14
    male = table["sex"] == "male"
    for name in drawn_tables.MEASURED:
        assert np.nanmean(table[name][male]) > np.nanmean(table[name][~male])
    assert 0.2 < 100 * np.mean([np.mean(column != column) for column in table.values()]) < 2.0


@pytest.mark.parametrize("seed", [0, 1])
def test_no_noise_and_a_fair_baseline(seed, monkeypatch):
    """A small version of the bar: the benchmark looks at 20 tables, with five folds."""
    monkeypatch.setattr(penguins, "FOLDS", 2)
    record = penguins.measure(seed)
    assert not set(record["chosen"]) & set(drawn_tables.NOISE)
    assert abs(record["baseline"] - record["tuned"]) < 0.9  # three rows
    assert abs(record["own"] - record["tuned"]) < 1.5


def record(chosen, baseline):
    return {"status": "ok", "chosen": chosen, "baseline": baseline, "tuned": 8.0}


@pytest.mark.parametrize(
    ("records", "passed"),
    [
        ([record(["island"], 8.2), record(["sex"], 7.8)], [True, True]),
        ([record(["noise_1"], 8.2), record(["sex"], 9.2)], [False, False]),
        ([{"status": "failed", "message": ""}], [None, None]),
    ],
)
def test_checks(records, passed):
    found = {f"penguins/{seed}": one for seed, one in enumerate(records)}
    found["iris/paths"] = {"status": "ok"}
    assert [check.passed for check in penguins.check_bar(found)] == passed
