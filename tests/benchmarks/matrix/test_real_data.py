"""Real multi-task data: how rows are split, what each method is, what counts as explained."""

import io

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("resource", reason="CPU limits need a POSIX system")

from benchmarks.matrix import real_data


def made(n_tasks=6, rows=30, noise=0.3, *, alike=True):
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(n_tasks), rows)
    X = rng.standard_normal((len(task), 8)) * 3 + 5
    common = rng.standard_normal((8, 1))
    W = common + (0.1 if alike else 3.0) * rng.standard_normal((8, n_tasks))
    y = np.sum(X * W[:, task].T, axis=1) + noise * rng.standard_normal(len(task)) + task
    return real_data.split_by_task(X, y, task, real_data.draw_quarters(task, 0))


class TestSplits:
    def test_a_quarter_of_every_task(self):
        task = np.repeat([3, 5, 9], [40, 20, 8])
        mask = real_data.draw_quarters(task, 1)
        assert [mask[task == name].sum() for name in (3, 5, 9)] == [10, 5, 2]
        assert not np.array_equal(mask, real_data.draw_quarters(task, 2))

    def test_standardised_by_the_training_rows(self):
        tasks = made()
        X = np.concatenate([X for X, _ in tasks.train])
        y = np.concatenate([y for _, y in tasks.train])
        assert np.abs(X.mean(axis=0)).max() < 1e-12
        assert X.std(axis=0) == pytest.approx(np.ones(8))
        assert abs(y.mean()) < 1e-12
        assert [len(y) for _, y in tasks.test] == [8] * 6

    def test_constant_columns_stay(self):
        X = np.ones((4, 2))
        assert not real_data.standardise(X, np.array([True, True, True, False])).any()

    def test_several_outputs_are_brought_to_one_unit(self):
        rng = np.random.default_rng(0)
        Y = rng.standard_normal((50, 3)) * [1, 100, 1e-3]
        tasks = real_data.split_outputs(rng.standard_normal((50, 4)), Y, np.arange(50) < 20)
        assert tasks.shared
        assert [y.std() for _, y in tasks.train] == pytest.approx([1, 1, 1])


class TestExplained:
    def test_telling_tasks_apart_earns_nothing_within(self):
        targets = [np.array([0.0, 2.0]), np.array([10.0, 12.0])]
        found = real_data.score_fit(targets, [np.ones(2), np.full(2, 11.0)])
        assert found["within"] == pytest.approx(0)
        assert found["all"] == pytest.approx(100 * (1 - 4 / 104))
        assert real_data.score_fit(targets, targets) == {"all": 100, "within": 100}


class TestMethods:
    @pytest.mark.parametrize("name", real_data.METHODS)
    def test_every_method(self, name):
        tasks = made()
        found, facts = real_data.METHODS[name](tasks)
        assert [len(own) for own in found] == [len(y) for _, y in tasks.test]
        figures = real_data.score_fit([y for _, y in tasks.test], found)
        assert figures["all"] > (-20 if name == "task means" else 70)
        assert ("alpha_share" in facts) == ("l2,1" in name or "trace" in name)

    @pytest.mark.parametrize("name", real_data.METHODS)
    def test_shared_rows(self, name):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 5))
        Y = X[:, :2] @ rng.standard_normal((2, 3)) + 0.1 * rng.standard_normal((60, 3))
        tasks = real_data.split_outputs(X, Y, np.arange(60) < 20)
        found, _ = real_data.METHODS[name](tasks)
        assert [len(own) for own in found] == [20, 20, 20]

    def test_pooling_is_for_tasks_that_are_alike(self):
        def within(tasks, name):
            found, _ = real_data.METHODS[name](tasks)
            return real_data.score_fit([y for _, y in tasks.test], found)["within"]

        apart = made(alike=False)
        assert within(apart, "pooled ridge") < within(apart, "independent ridge")
        alike = made(rows=12, noise=20.0)
        assert within(alike, "pooled ridge") > within(alike, "independent ridge")
        assert within(alike, "pooled ridge + l2,1") > within(alike, "independent ridge")


def results(**within):
    figures = {
        method.replace("_", " "): {"all": value + 10, "within": value, "seconds": 1.0}
        for method, value in within.items()
    }
    norms = {"l21": "l2,1"}
    figures = {norms.get(name, name): own for name, own in figures.items()}
    return {f"school/{split}": figures for split in range(2)}


def test_checks():
    found = results(l21=27.0, trace=25.0, independent_ridge=24.0, pooled_ridge=26.0)
    passed = {(c.name, c.asked): c.passed for c in real_data.check_bar(found)}
    assert passed == {
        ("school, l2,1", "above independent ridge"): True,
        ("school, l2,1", "above pooled ridge"): True,
        ("school, trace", "about 26 %"): False,
        ("school, trace", "above independent ridge"): True,
        ("school, trace", "above pooled ridge"): False,
    }
    assert not list(real_data.check_bar({}))


def test_table():
    console = Console(width=200, record=True, file=io.StringIO())
    (table,) = real_data.make_tables(results(l21=27.0, pooled_ridge=26.0))
    console.print(table)
    assert "27.0 ± 0.0" in console.export_text()
    assert real_data.format_mean(np.array([1.0, 3.0])) == "2.0 ± 1.0"
    assert real_data.format_mean(np.array([1.0])) == "1.0"
