"""The paper's Table 1: methods with their searches, the working process, and the report."""

import io
import json
import math
import subprocess

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.mkl import data as mkl_data
from benchmarks.mkl.data import TABLE1, Rows
from benchmarks.mkl_table1 import child, command, processes
from benchmarks.mkl_table1 import methods as mkl_table1_methods
from benchmarks.mkl_table1 import paper as mkl_table1_paper
from benchmarks.mkl_table1.methods import GRIDS, METHODS, Grid, Problem, is_available
from benchmarks.mkl_table1.report import Figure, Results, check_bar, list_differences, make_tables

SMALL = Grid(Cs=(0.25, 16.0), tails=(2, 8), betas=(1e-3, 1e-1))


@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    y = np.arange(72) % 3
    X = rng.standard_normal((72, 4)) + 3 * np.eye(3, 4)[y]
    rows = mkl_data.scale_rows(Rows(X[:54], y[:54], X[54:], y[54:]))
    kernels = mkl_data.compute_kernels(rows)
    folds = mkl_table1_methods.make_folds(rows.y, 3)
    return Problem(rows, kernels, folds, SMALL)


class TestGrids:
    def test_values(self):
        short, paper = GRIDS["short"], GRIDS["paper"]
        assert short.Cs == (0.25, 2.0, 16.0, 128.0, 1024.0, 8192.0)
        assert (paper.Cs[0], paper.Cs[-1], len(paper.Cs)) == (0.25, 4096.0, 8)
        assert (short.tails, paper.tails) == ((2, 8, 32), (2, 4, 8, 16))
        assert (len(short.betas), len(paper.betas)) == (4, 6)

    def test_problem(self, monkeypatch):
        asked = []

        def split(name, seed, rows):
            asked.append((name, seed, rows))
            y = np.arange(20) % 2
            return Rows(np.random.default_rng(0).uniform(size=(20, 2)), y, np.zeros((2, 2)), y[:2])

        monkeypatch.setattr(mkl_table1_methods, "make_split", split)
        for data in ("iris", "satimage"):
            found = mkl_table1_methods.make_problem(data, 3, 2000, 4, "paper")
            assert len(found.folds) == 4
            assert found.grid is GRIDS["paper"]
        assert asked == [("iris", 3, 0), ("satimage", 3, 2000)]


class TestMethods:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_method(self, given, name):
        if not is_available(name):
            pytest.skip("not installed")
        found = child.run_method(name, given, 100.0)
        assert found["status"] == "ok", found
        assert found["accuracy"] > 60
        json.dumps(found)
        if name != "himalaya":
            assert found["facts"]["C"] in SMALL.Cs
            assert 0.6 < found["facts"]["score"] <= 1

    def test_equal_scores_take_the_widest_and_the_least(self, given):
        def machine(K, y, K_test, cost):
            return np.zeros(len(K_test), dtype=int)

        facts = mkl_table1_methods.choose_single(machine)(given).facts
        assert (facts["C"], facts["width"]) == (0.25, 2.0**10)

    def test_the_best_of_all_widths_and_costs(self, given):
        wanted = given.kernels.K[7]

        def machine(K, y, K_test, cost):
            right = cost == 16.0 and np.isin(K[0, 1], wanted.astype(float))
            return np.arange(len(K_test)) % 3 if right else np.full(len(K_test), -1)

        facts = mkl_table1_methods.choose_single(machine)(given).facts
        assert (facts["C"], facts["width"]) == (16.0, 2.0**-3)

    def test_one_against_the_rest(self, given):
        from sklearn.svm import SVC

        K, K_test = (part[12].astype(float) for part in (given.kernels.K, given.kernels.K_test))
        found = mkl_table1_methods.predict_one_vs_rest(K, given.y, K_test, 16.0)
        scores = [
            SVC(C=16.0, kernel="precomputed").fit(K, given.y == label).decision_function(K_test)
            for label in range(3)
        ]
        np.testing.assert_array_equal(found, np.argmax(scores, axis=0))

    def test_easymkl_without_its_wrapper(self, given):
        pytest.importorskip("MKLpy")
        import torch
        from MKLpy.algorithms import EasyMKL
        from sklearn.svm import SVC

        K, K_test = given.kernels.K, given.kernels.K_test
        sums = mkl_table1_methods.compute_easy_sums(K, K_test, given.y, 0.5)
        mine = mkl_table1_methods.choose_class(iter(sums), given.y, 16.0)
        tensors = [
            [torch.from_numpy(matrix.astype(float)) for matrix in part] for part in (K, K_test)
        ]
        model = EasyMKL(lam=0.5, learner=SVC(C=16.0)).fit(tensors[0], torch.from_numpy(given.y))
        np.testing.assert_array_equal(mine, np.asarray(model.predict(tensors[1])))


class TestChild:
    def test_order(self, given, monkeypatch):
        monkeypatch.setattr(child, "make_problem", lambda *order: given)

        def broken(given):
            raise ValueError("no such luck")

        def slow(given):
            while True:
                pass

        monkeypatch.setitem(METHODS, "broken", broken)
        monkeypatch.setitem(METHODS, "slow", slow)
        order = {"data": "iris", "split": 0, "rows": 0, "folds": 3, "grid": "short"}
        wanted = ["broken", "average", "slow"]
        child.run_method("average", given, 60.0)  # imports what the limit should not count
        found = list(child.run_methods(order | {"methods": wanted, "limit": 0.3}))
        assert [r["method"] for r in found] == wanted
        assert [r["status"] for r in found] == ["failed", "ok", "timeout"]
        assert found[0]["message"] == "ValueError: no such luck"
        assert (found[1]["rows"], found[1]["tested"]) == (54, 18)


class TestRun:
    def order(self, **more):
        order = {"data": "iris", "split": 0, "rows": 0, "folds": 3, "grid": "short"}
        return order | {"methods": ["average", "lmc", "l2"], "limit": 60.0} | more

    def test_a_process(self):
        found = list(processes.measure_methods(self.order(methods=["average"])))
        assert [(r["method"], r["status"]) for r in found] == [("average", "ok")]

    def test_what_fails(self):
        found = list(processes.measure_methods(self.order(data="nothing", methods=["average"])))
        assert found[0]["status"] == "failed"
        assert "nothing" in found[0]["message"]

    @pytest.mark.parametrize("error", [subprocess.TimeoutExpired("x", 1.0), RuntimeError("dead")])
    def test_methods_after_a_dead_one(self, monkeypatch, error):
        asked = []

        def answers(order):
            asked.append(order["methods"][:])
            yield {"method": order["methods"][0], "status": "ok"}
            if len(asked) == 1:
                raise error

        monkeypatch.setattr(processes, "read_answers", answers)
        found = list(processes.measure_methods(self.order()))
        assert asked == [["average", "lmc", "l2"], ["l2"]]
        status = "failed" if isinstance(error, RuntimeError) else "timeout"
        assert [r["status"] for r in found] == ["ok", status, "ok"]

    def test_silent_processes_are_ended(self, monkeypatch):
        monkeypatch.setattr(processes, "ADDED", 0.05)
        monkeypatch.setattr(processes, "PATIENCE", 0.0)
        found = list(processes.measure_methods(self.order(methods=["average"])))
        assert found == [{"method": "average", "status": "timeout", "limit": 60.0}]


def record(accuracy, gap=None, seconds=1.0):
    facts = {"C": 2.0} | ({} if gap is None else {"gap": gap})
    return {"status": "ok", "accuracy": accuracy, "seconds": seconds, "facts": facts}


def results(data="wine", **accuracies):
    return {
        f"{data}/{split}/{method.replace('_', '-')}": record(value)
        for method, values in accuracies.items()
        for split, value in enumerate(values)
    }


FOUND = results(
    conv=(97.0, 99.0, 98.0),
    smsd=(96.0, 98.0, 97.0),
    average=(97.5, 98.0, 98.5),
    easymkl=(99.0, 100.0, 100.0),
    single_ovo=(90.0, 90.0, 91.0),
    himalaya=(99.0, 100.0, 99.0),
)


class TestPaper:
    def test_cells(self):
        cell = mkl_table1_paper.get_cell
        assert cell("vehicle", "gmnp").mean == 81.57
        assert cell("segment", "smsd") == mkl_table1_paper.Cell(97.62, 0.83)
        assert cell("satimage", "ufo").mean == 91.92
        assert cell("iris", "lmc").error == pytest.approx(7.82 / math.sqrt(50))
        assert cell("iris", "average") is None
        assert len(mkl_table1_paper._CELLS) == 9 * 9


class TestReport:
    def test_figures(self):
        found = Figure.of(np.array([1.0, 3.0]))
        assert (found.mean, found.error, found.text()) == (2.0, 1.0, "2.00 ± 1.00")
        assert Figure.of(np.array([1.0])).text("+") == "+1.00"

    def test_paired(self):
        both = Results(FOUND)
        assert both.best("wine", ("conv", "smsd")) == "conv"
        assert both.best("wine", ("conv", "lmc")) is None
        found = both.difference("wine", "conv", "average")
        assert found.mean == pytest.approx(0.0)
        assert found.error == pytest.approx(math.sqrt(3) / 2 / math.sqrt(3))
        assert both.difference("wine", "conv", "lmc") is None

    def test_both_learners_are_set_beside_others(self):
        titled = {
            table.title: table for table in make_tables(FOUND | results(ufo=(95.0, 98.0, 96.0)))
        }
        table = titled["conv and smsd less others, same splits"]
        cells = [list(column.cells) for column in table.columns]
        assert cells[1] == ["conv", "smsd"]
        assert cells[2] == ["+0.00 ± 0.50", "-1.00 ± 0.50"]
        (figure,) = titled["Penalties by tail sums less constant ones"].columns[1].cells
        assert figure == "+0.67 ± 0.33"

    def test_splits_that_both_have(self):
        found = FOUND | {"wine/0/average": {"status": "timeout", "limit": 1.0}}
        assert Results(found).difference("wine", "conv", "average").mean == pytest.approx(0.25)

    def test_bar(self):
        found = {c.name: c for c in check_bar(FOUND)}
        assert len(found) == 2 * 9 + 1
        assert found["wine: less average"].passed is True
        assert found["wine: less easymkl"].passed is False
        assert found["iris: less average"].passed is None
        (last,) = (c for c in found.values() if c.group == "most sets")
        assert last.passed is None
        assert last.found.startswith("0 of 1; not wine")

    @pytest.mark.parametrize(("good", "passed"), [(6, True), (5, False)])
    def test_most_sets(self, good, passed):
        found = {}
        for place, data in enumerate(TABLE1):
            level = (90.0, 92.0) if place < good else (80.0, 82.0)
            rivals = {"single_ovo": (90.0, 91.0), "himalaya": (90.5, 91.0)}
            found |= results(data, conv=level, smsd=(70.0, 70.0), **rivals)
        assert [c.passed for c in check_bar(found)][-1] is passed

    def test_one_row_less_is_within_one_row(self):
        found = results(conv=(94.4, 91.7), smsd=(0.0, 0.0), average=(94.4, 97.2))
        assert next(c for c in check_bar(found) if c.name == "wine: less average").passed is True

    def test_one_split_says_nothing(self):
        found = results(conv=(99.0,), smsd=(99.0,), average=(10.0,))
        assert all(c.passed is None for c in check_bar(found))

    def test_cells_that_differ(self):
        assert list_differences(FOUND) == ["wine/single-ovo", "wine/conv", "wine/smsd"]
        assert list_differences(results(conv=(99.63, 99.7))) == []

    def test_tables(self):
        console = Console(width=200, record=True, file=io.StringIO())
        found = FOUND | {
            "wine/3/smsd": record(97.0, gap=0.3),
            "wine/0/lmc": {"status": "timeout", "limit": 600.0},
        }
        for table in make_tables(found):
            console.print(table)
        text = console.export_text()
        assert "98.00 ± 0.58" in text
        assert "99.63 ± 0.96" in text
        assert "-1.63 !" in text
        assert "1 not to 1 %" in text
        assert "1 timeout" in text
        assert "+0.00 ± 0.50" in text


class TestCommand:
    def options(self, path, *more):
        wanted = ["--data", "iris", "--splits", "2", "--methods", "average,conv"]
        return ["mkl-table1", "--json", str(path), *wanted, *more]

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_runs_and_resumes(self, tmp_path, monkeypatch, capsys, jobs):
        from benchmarks.__main__ import main

        asked, path = [], tmp_path / "table1.json"

        def records(order):
            asked.append((order["data"], order["split"], tuple(order["methods"])))
            for method in order["methods"]:
                failed = len(asked) <= 2 and order["split"] == 0 and method == "conv"
                status = {"status": "failed", "message": "no such luck"} if failed else record(90.0)
                yield status | {"method": method}

        monkeypatch.setattr(command, "measure_methods", records)
        assert main(self.options(path, "--jobs", jobs)) == 0
        both = ("average", "conv")
        assert sorted(asked) == [("iris", 0, both), ("iris", 1, both)]
        assert "no such luck" in capsys.readouterr().out
        # What failed is tried again.
        assert main(self.options(path, "--resume")) == 0
        assert asked[2:] == [("iris", 0, ("conv",))]
        stored = json.loads(path.read_text())
        assert {r["status"] for r in stored["table1"].values()} == {"ok"}
        assert stored["settings"] == {"grid": "short", "folds": 3, "rows": 2000}

    def test_other_settings(self, tmp_path, monkeypatch):
        from benchmarks.__main__ import main

        path = tmp_path / "table1.json"
        content = {"format": 1, "settings": {"grid": "paper", "folds": 10, "rows": 0}}
        path.write_text(json.dumps(content))
        with pytest.raises(SystemExit, match="Give another --json"):
            main(self.options(path, "--resume"))

    def test_misses_are_told(self, tmp_path):
        from benchmarks.__main__ import main

        path = tmp_path / "table1.json"
        path.write_text(json.dumps({"format": 1, "table1": FOUND}))
        assert main(self.options(path, "--no-runs", "--check")) == 1
        assert main(self.options(path, "--no-runs")) == 0

    def test_what_is_not_installed(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        monkeypatch.setattr(command, "is_available", lambda method: method != "conv")
        monkeypatch.setattr(command, "measure_methods", lambda order: iter(()))
        assert main(self.options(tmp_path / "table1.json")) == 0
        assert "conv: not installed" in capsys.readouterr().out

    @pytest.mark.parametrize("option", ["--data", "--methods"])
    def test_unknown_names(self, option):
        from benchmarks.__main__ import main

        with pytest.raises(SystemExit, match="Unknown .* 'vv'"):
            main(["mkl-table1", option, "vv"])
