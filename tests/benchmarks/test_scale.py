"""The benchmark of tables larger than memory: drawing, measuring, and figures beside the bar."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("resource", reason="the CPU seconds of a process need a POSIX system")
pytest.importorskip("pyarrow")

from benchmarks.__main__ import main
from benchmarks.harness.jobs import Store
from benchmarks.scale import child, command, data, panel, parts, peers, processes, report, watch

GIB = 2**30


@pytest.fixture
def small_groups(monkeypatch):
    """Row groups of 100 rows, and files of 300."""
    monkeypatch.setattr(data, "GROUP_ROWS", 100)
    monkeypatch.setattr(data.write_rows, "__defaults__", (300,))


class TestTable:
    def test_columns_that_matter(self):
        truth = data.draw_truth(60)
        assert len(set(truth.order)) == data.USEFUL == 25
        sizes = np.sqrt(np.mean(truth.weights**2, axis=1))
        assert set(np.flatnonzero(sizes)) == set(truth.order)
        # Strengths are 125 %, 120 %, ..., 5 %, in units that give the scores their deviation.
        unit = sizes[truth.order[-1]] / 0.05
        np.testing.assert_allclose(sizes[truth.order] / unit, np.arange(25, 0, -1) * 0.05)
        np.testing.assert_allclose(np.sum(sizes**2), data.SIGNAL**2)
        np.testing.assert_allclose(truth.weights.sum(axis=1), 0.0, atol=1e-12)

    def test_few_columns_all_matter(self):
        assert sorted(data.draw_truth(7).order) == list(range(7))

    def test_files(self, small_groups, tmp_path):
        from pyarrow import parquet

        table = data.prepare_table(750, 30, tmp_path, test_rows=120)
        files = [parquet.ParquetFile(path) for path in sorted(table.train.iterdir())]
        assert [file.metadata.num_rows for file in files] == [300, 300, 150]
        assert [file.num_row_groups for file in files] == [3, 3, 2]
        assert files[0].schema_arrow.names == [*data.name_columns(30), data.TARGET]
        first = files[0].metadata.row_group(0)
        assert "RLE_DICTIONARY" not in first.column(0).encodings
        X, y = data.read_arrays(table.train, 750)
        assert (X.dtype, X.flags.f_contiguous, X.shape) == (np.float32, True, (750, 30))
        assert set(y) <= set(range(data.CLASSES))
        assert table.bytes == sum(path.stat().st_size for path in table.train.iterdir())
        assert not list(tmp_path.glob("*.partial"))

    def test_same_seed_same_rows(self, small_groups, tmp_path):
        many, few = (
            data.prepare_table(rows, 30, tmp_path / str(rows), test_rows=50) for rows in (350, 230)
        )
        X, y = data.read_arrays(many.train, 230)
        for place in (few, data.prepare_table(230, 30, tmp_path / "again", test_rows=50)):
            X_few, y_few = data.read_arrays(place.train, 230)
            np.testing.assert_array_equal(X_few, X)
            np.testing.assert_array_equal(y_few, y)
        X_test, _ = data.read_arrays(many.test, 50)
        assert not np.array_equal(X_test, X[:50])
        other = data.prepare_table(230, 30, tmp_path / "other", seed=1, test_rows=50)
        assert not np.array_equal(data.read_arrays(other.train, 230)[0], X)

    def test_a_table_is_drawn_once(self, small_groups, tmp_path, monkeypatch):
        table = data.prepare_table(100, 5, tmp_path, test_rows=10)
        monkeypatch.setattr(data, "write_rows", None)
        assert data.prepare_table(100, 5, tmp_path, test_rows=10) == table

    def test_an_interrupted_draw_leaves_nothing(self, small_groups, tmp_path, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(data, "describe_truth", interrupt)
        with pytest.raises(KeyboardInterrupt):
            data.prepare_table(100, 5, tmp_path, test_rows=10)
        assert not list(tmp_path.iterdir())

    def test_too_many_rows(self, small_groups, tmp_path):
        table = data.prepare_table(100, 5, tmp_path, test_rows=10)
        with pytest.raises(ValueError, match="has 100 rows, but 101"):
            data.read_arrays(table.train, 101)

    def test_errors_of_the_true_model(self):
        found = data.describe_truth(data.draw_truth(40))
        assert 25 < found["best_error"] < found["best_error_20"] < 40
        assert len(found["useful"]) == len(found["strengths"]) == 25

    def test_cache(self, monkeypatch, tmp_path):
        monkeypatch.setenv("MIXNORM_CACHE", str(tmp_path))
        assert data.find_cache() == tmp_path / "scale"
        monkeypatch.delenv("MIXNORM_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert data.find_cache() == tmp_path / "mixnorm" / "scale"

    def test_largest_penalty(self, small_groups, tmp_path):
        from mixnorm import MixedNormClassifier

        table = data.prepare_table(400, 8, tmp_path, test_rows=10)
        scale = data.find_scale(table)
        X, y = data.read_arrays(table.train, 400)
        for share, active in ((1.01, False), (0.99, True)):
            model = MixedNormClassifier("l2,1", alpha=share * scale["alpha_max"]).fit(X, y)
            assert np.any(model.coef_) == active
            if not active:
                assert scale["null_loss"] == pytest.approx(model.objective_, rel=1e-4)
        assert data.find_scale(table) == scale


class TestPanel:
    def test_panel(self, tmp_path, monkeypatch):
        monkeypatch.setattr(panel, "CELLS_AT_ONCE", 100)
        made = panel.prepare_panel(250, 400, tmp_path)
        X, y = made.read()
        assert (X.shape, X.format, X.dtype) == ((250, 400), "csr", np.float32)
        assert X.nnz / (250 * 400) == pytest.approx(panel.FILLED, rel=0.2)
        assert set(y) == set(range(panel.TYPES))
        assert X.data.min() == 1
        np.testing.assert_array_equal(X.data, np.round(X.data))
        again, _ = panel.prepare_panel(250, 400, tmp_path / "again").read()
        assert (again != X).nnz == 0
        X_test, _ = made.read("test")
        assert (X_test != X).nnz > 0

    def test_types_differ_in_their_markers(self):
        rates = panel.draw_rates(500)
        assert rates.shape == (panel.TYPES, 500)
        raised = rates > rates.min(axis=0)
        assert raised.any(axis=1).all()
        assert raised.sum(axis=1).max() <= panel.MARKERS


class TestWatch:
    def test_memory_of_this_process(self, tmp_path):
        with watch.Watch(tmp_path) as seen:
            held = np.ones(2**23)  # 64 MiB
            rows = tmp_path / "mixnorm-rows-1" / "0.rows"
            rows.parent.mkdir()
            rows.write_bytes(bytes(1000))
            (tmp_path / "other").write_bytes(bytes(50))
        figures = seen.figures
        assert figures["row_file_bytes"] == 1000
        assert figures["cpu"] >= 0 < figures["wall"]
        if sys.platform == "linux":
            assert figures["anonymous_peak"] - figures["anonymous_before"] > 0.9 * held.nbytes
            assert figures["resident_peak"] >= figures["anonymous_peak"]

    def test_a_process_that_has_ended(self):
        assert watch.read_memory(2**22 + 1) == {"anonymous": 0, "file": 0, "peak": 0}

    def test_child_processes(self, tmp_path):
        pytest.importorskip("psutil")
        code = "import time; s = sum(range(3_000_000)); print(s, flush=True); time.sleep(60)"
        with watch.Watch(tmp_path, children=True) as seen:
            process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            process.stdout.readline()
        process.kill()
        process.communicate()
        assert seen.figures["worker_anonymous_peak"] > 0 or sys.platform != "linux"
        assert seen.figures["cpu"] > 0

    def test_bytes_of_files(self, tmp_path):
        (tmp_path / "a").write_bytes(bytes(7))
        assert watch.count_bytes([tmp_path / "a", tmp_path / "gone"]) == 7


class TestProcesses:
    def test_stages(self):
        lines = 'warning\n{"a": 1, "b": 2}\n\n{"b": 3}\n'
        assert processes.collect(lines) == {"a": 1, "b": 3}

    def test_threads(self, tmp_path):
        found = processes.make_environment(tmp_path)
        assert found["OPENBLAS_NUM_THREADS"] == str(processes.count_cores())
        assert found["TMPDIR"] == str(tmp_path)

    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("print('{\"wall\": 1.5}')", {"wall": 1.5, "status": "ok"}),
            ("raise SystemExit('no such luck')", {"status": "failed"}),
        ],
    )
    def test_status(self, code, expected, monkeypatch):
        replace_module(monkeypatch, code)
        found = processes.run_child({}, 30.0)
        assert expected.items() <= found.items()
        assert ("no such luck" in found.get("message", "")) == (expected["status"] == "failed")

    def test_a_slow_process_ends_with_its_children(self, monkeypatch, tmp_path):
        note = tmp_path / "pid"
        code = (
            "import subprocess, sys, time\n"
            "process = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
            "print('{\"read_seconds\": 1}', flush=True)\n"
            f"open({str(note)!r}, 'w').write(str(process.pid))\n"
            "time.sleep(60)"
        )
        replace_module(monkeypatch, code, note)
        found = processes.run_child({}, 1.0)
        assert found == {"read_seconds": 1, "status": "timeout", "limit": 1.0}
        assert not is_running(int(note.read_text()))


def replace_module(monkeypatch, code, note=None):
    """Let measuring processes run some code; with a note, they time out once it is written."""

    class Process(subprocess.Popen):
        def __init__(self, _, **more):
            super().__init__([sys.executable, "-c", code], **more)

        def wait(self, timeout=None):
            while note is not None and timeout is not None:
                if note.exists() and note.read_text():
                    raise subprocess.TimeoutExpired("python", timeout)
                time.sleep(0.01)
            return super().wait(timeout)

    monkeypatch.setattr(processes.subprocess, "Popen", Process)


def is_running(pid):
    """Return whether a process runs, after some time to end."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        state = Path("/proc", str(pid), "stat")
        if state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return False
        time.sleep(0.02)
    return True


class TestChild:
    def read(self, capsys):
        return processes.collect(capsys.readouterr().out)

    @pytest.fixture
    def table(self, small_groups, tmp_path):
        return data.prepare_table(1500, 30, tmp_path, test_rows=300)

    def test_greedy_in_memory_and_by_blocks(self, table, capsys):
        place = parts.describe_table(table)
        found = {}
        for how in (child.IN_MEMORY, child.BY_BLOCKS):
            child.fit_table(place, "greedy", how, size=3, test_rows=300)
            found[how] = self.read(capsys)
        memory, blocks = found.values()
        assert memory["selected"] == blocks["selected"]
        assert memory["loss"] == pytest.approx(blocks["loss"], rel=1e-4)
        assert memory["error"] == pytest.approx(blocks["error"], abs=1.0)
        assert memory["bytes_read"] == 0 < blocks["bytes_read"]
        assert blocks["table_bytes"] == table.bytes
        assert len(blocks["bits"]) == 16

    def test_norm(self, table, capsys):
        alpha = 0.1 * data.find_scale(table)["alpha_max"]
        place = parts.describe_table(table)
        child.fit_table(place, "norm", child.IN_MEMORY, alpha=alpha, test_rows=300)
        found = self.read(capsys)
        assert 0 <= found["gap"] < 1e-3
        assert found["error"] < 60

    def test_panel(self, tmp_path, capsys):
        made = panel.prepare_panel(300, 60, tmp_path)
        place = {"folder": str(made.folder), "cells": 300, "genes": 60}
        child.fit_panel(place, child.IN_MEMORY, size=2)
        found = self.read(capsys)
        assert len(found["selected"]) == 2
        assert 0 < found["filled"] < 1

    def test_bits_are_those_of_the_weights(self):
        class Model:
            def __init__(self, coef):
                self.coef_, self.intercept_ = np.array(coef), np.zeros(1)
                self.selected_, self.path_ = np.array([1]), {"loss": np.array([2.0, 1.0])}

        same = [child.describe_model(Model([0.0, 1.0]))["bits"] for _ in range(2)]
        other = child.describe_model(Model([0.0, np.nextafter(1.0, 2.0)]))
        assert same[0] == same[1] != other["bits"]
        assert (other["loss"], other["selected"]) == (1.0, [1])

    def test_no_cluster(self):
        with child.open_cluster(0) as client, child.kill_worker(client, None) as killed:
            assert client is None
        assert killed == {}

    def test_a_worker_is_killed(self):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

        class Client:
            def run(self, _):
                return {"worker": process.pid}

        with child.kill_worker(Client(), 0.0) as killed:
            assert process.wait(30) == -signal.SIGKILL
        assert killed == {"killed_after": 0.0}

    def test_an_end_before_the_kill(self):
        class Client:
            def run(self, _):
                return {"worker": os.getpid()}

        with child.kill_worker(Client(), 60.0) as killed:
            pass
        assert killed == {}


class TestPeers:
    def test_installed(self, monkeypatch):
        monkeypatch.setitem(peers.NEEDS, peers.XGBOOST, "no_such_module")
        assert not peers.is_installed(peers.XGBOOST)

    def test_order(self, monkeypatch):
        asked = {}
        monkeypatch.setattr(peers, "fit_peer", lambda *_, **order: asked.update(order))
        child.JOBS["peer"](peer=peers.XGBOOST)
        assert asked == {"peer": peers.XGBOOST}


def make_records():
    """Return made-up records of all runs, at the full sizes."""

    def fit(wall, **more):
        return {"status": "ok", "wall": wall, "cpu": wall, "selected": [3, 1], "bits": "abc"} | {
            "error": 33.0,
            "loss": 1.0,
            "anonymous_peak": 0.5 * GIB,
            "resident_peak": 6 * GIB,
            "bytes_read": 300,
            "table_bytes": 100,
            **more,
        }

    records = {
        "single/memory": fit(50.0, bits="other"),
        "single/1 GiB": fit(100.0, row_file_bytes=2 * GIB),
        "single/4 GiB": fit(80.0, anonymous_peak=5 * GIB),
        "cluster/1": fit(90.0),
        "cluster/2": fit(50.0),
        "kill/2": fit(80.0, killed_after=16.7),
        "peers/mixnorm": fit(10.0),
        "peers/xgboost.dask": {"status": "timeout", "limit": 330, "order": {"limit": 300}},
        "peers/lightgbm.dask": fit(40.0),
        "peers/dask_ml": {"status": "ok", "wall": 70.0, "error_all": 32.4, "all_seconds": 60.0},
        "expression/blocks": fit(200.0),
        "norm/memory": fit(20.0, gap=0.0),
        "norm/4 GiB": fit(30.0, gap=4e-4),
    }
    for rows in (10, 30, 100):
        records[f"growth/rows/{rows}"] = fit(float(rows))
    for columns in (10, 100):
        records[f"growth/columns/{columns}"] = fit(columns**1.5)
    return records


class TestBar:
    def find(self, records=None, **options):
        checked = report.check_bar(records or make_records(), 2.0, **options)
        return {f"{each.group}: {each.name}": each for each in checked}

    @pytest.mark.parametrize(
        ("name", "text", "passed"),
        [
            ("single: 1 GiB: seconds, to those in memory", "2.00 (100.0 s to 50.0 s)", True),
            ("single: 4 GiB: seconds, to those in memory", "1.60 (80.0 s to 50.0 s)", False),
            ("single: 1 GiB: memory beyond the page cache", "0.50 GiB", True),
            ("single: 4 GiB: memory beyond the page cache", "5.00 GiB", False),
            ("single: 1 GiB: Parquet read, to the table", "3.00 (row files 2.00 GiB)", True),
            ("single: 1 GiB: features of the fit in memory", "the same", True),
            ("cluster: 2 workers: speed, to one", "1.80 (90.0 s to 50.0 s)", True),
            ("cluster: 2 workers: weights of one", "same bits", True),
            ("cluster: 2 workers: weights of threads", "same bits", True),
            (
                "kill: seconds, to those with no kill",
                "1.60 (80.0 s to 50.0 s, killed at 16.7 s)",
                False,
            ),
            ("kill: weights of the run with no kill", "same bits", True),
            (
                "peers: error at our size, less dask_ml's on all columns",
                "+0.60 (33.00 % to 32.40 %)",
                False,
            ),
            ("peers: xgboost.dask: seconds, to ours", "> 30.0 (> 300 s to 10.0 s)", True),
            ("peers: lightgbm.dask: seconds, to ours", "4.0 (40.0 s to 10.0 s)", False),
            ("peers: dask_ml: seconds, to ours", "7.0 (70.0 s to 10.0 s)", True),
            ("expression: seconds of the path", "200.0 s", True),
            ("expression: memory, the whole process", "6.00 GiB", True),
            ("norm: 4 GiB: seconds, to those in memory", "1.50 (30.0 s to 20.0 s)", True),
            ("norm: 4 GiB: gap, to the null loss", "2.0e-04", False),
            (
                "growth: exponent of rows",
                "1.00 (10: 10.0 s, 30: 30.0 s, 100: 100.0 s)",
                True,
            ),
            ("growth: exponent of columns", "1.50 (10: 31.6 s, 100: 1000.0 s)", False),
        ],
    )
    def test_figures(self, name, text, passed):
        check = self.find()[name]
        assert (check.found, check.passed) == (text, passed)

    def test_nothing_measured(self):
        checked = report.check_bar({})
        assert len(checked) == len(self.find())
        assert {(each.found, each.passed) for each in checked} == {("not measured", None)}

    def test_small_sizes_do_not_count(self):
        checked = self.find(full=False).values()
        assert {each.passed for each in checked} == {None}
        assert "2.00 (100.0 s to 50.0 s)" in [each.found for each in checked]

    def test_other_bits_and_features(self):
        records = make_records()
        records["kill/2"]["bits"] = "abd"
        records["single/1 GiB"]["selected"] = [3, 2]
        found = self.find(records)
        assert found["kill: weights of the run with no kill"].passed is False
        check = found["single: 1 GiB: features of the fit in memory"]
        assert (check.passed, check.found) == (False, "1 of 2, or in another order")

    def test_a_run_that_ended_before_the_kill_is_not_measured(self):
        records = make_records()
        del records["kill/2"]["killed_after"]
        assert self.find(records)["kill: seconds, to those with no kill"].passed is None

    def test_a_timeout_that_tells_too_little(self):
        records = make_records()
        records["peers/mixnorm"]["wall"] = 100.0
        check = self.find(records)["peers: xgboost.dask: seconds, to ours"]
        assert (check.passed, check.found) == (None, "> 3.0 (> 300 s to 100.0 s)")

    def test_tables(self):
        records = make_records() | {"cluster/3": {"status": "failed", "message": "no"}}
        console = Console(width=200, record=True, file=io.StringIO())
        for table in report.make_tables(records):
            console.print(table)
        text = console.export_text()
        assert "> 300" in text
        assert "failed" in text
        assert "32.40" in text


class TestCommand:
    def options(self, folder, *more):
        return ["scale", "--quick", "--data", str(folder), "--json", f"{folder}/r.json", *more]

    def test_end_to_end(self, small_groups, tmp_path, monkeypatch, capsys):
        """One part, whose fits run in this process."""

        def run_here(order, limit):
            job = dict(order)
            child.JOBS[job.pop("job")](**job)
            return processes.collect(capsys.readouterr().out) | {"status": "ok"}

        small = parts.Sizes(1500, 30, 300, 500, 100, 50, 3, 2)
        monkeypatch.setattr(command, "QUICK", small)
        monkeypatch.setattr(parts, "run_child", run_here)
        assert main(self.options(tmp_path, "--part", "single", "--check")) == 0
        text = capsys.readouterr().out
        assert "The true model errs on" in text
        assert "the same" in text
        assert "figures only" in text
        stored = json.loads((tmp_path / "r.json").read_text())
        assert set(stored["scale"]) == {"single/memory", "single/1 GiB", "single/4 GiB"}
        # Nothing runs again, and nothing of other sizes is mixed in.
        monkeypatch.setattr(parts, "run_child", None)
        assert main(self.options(tmp_path, "--part", "single", "--resume")) == 0
        with pytest.raises(SystemExit, match="results at other sizes"):
            main(self.options(tmp_path, "--part", "single", "--resume", "--rows", "3000"))

    def test_orders_of_all_parts(self, small_groups, tmp_path, monkeypatch):
        orders = []

        def note(order, limit):
            orders.append((order, limit))
            return {"status": "ok", "wall": 3.0, "error": 1.0, "bits": "abc"}

        monkeypatch.setattr(parts, "run_child", note)
        monkeypatch.setattr(peers, "is_installed", lambda peer: peer != peers.LIGHTGBM)
        small = parts.Sizes(1000, 8, 50, 200, 100, 50, 3, 2)
        runner = parts.Runner(Store(), Console(quiet=True), small, tmp_path, limit=7.0)
        for run in parts.PARTS.values():
            run(runner)
        records = runner.store.content["scale"]
        assert records["peers/lightgbm.dask"] == {"status": "absent"}
        kill = records["kill/2"]["order"]
        assert (kill["kill_after"], kill["workers"]) == (1.0, 2)
        limits = {order.get("peer", order["job"]): limit for order, limit in orders}
        assert limits[peers.XGBOOST] == 7.0 + parts.START
        assert limits["table"] == parts.WALL
        rows = {order["table"]["rows"] for order, _ in orders if order["job"] == "table"}
        assert rows == {200, 100, 300, 1000}
        norm = records["norm/4 GiB"]["order"]
        table = data.Table(tmp_path / norm["table"]["folder"], 1000, 8)
        assert norm["alpha"] == pytest.approx(0.1 * data.find_scale(table)["alpha_max"])

    def test_the_fastest_of_several_runs_counts(self, tmp_path, monkeypatch):
        walls = iter([3.0, 2.0, 4.0])
        monkeypatch.setattr(
            parts, "run_child", lambda *_: {"status": "ok", "wall": next(walls), "error": 1.0}
        )
        runner = parts.Runner(Store(), Console(quiet=True), parts.QUICK, tmp_path, repeats=3)
        found = runner.run("a", {"job": "table"})
        assert (found["wall"], found["walls"]) == (2.0, [3.0, 2.0, 4.0])

    def test_failures_are_tried_again(self, tmp_path, monkeypatch):
        made = iter(
            [
                {"status": "failed", "message": "no"},
                {"status": "ok", "wall": 2.0, "error": 1.0},
            ]
        )
        monkeypatch.setattr(parts, "run_child", lambda *_: next(made))
        runner = parts.Runner(Store(), Console(quiet=True), parts.QUICK, tmp_path)
        statuses = [runner.run("a", {"job": "table"})["status"] for _ in range(3)]
        assert statuses == ["failed", "ok", "ok"]

    def test_unknown_part(self):
        with pytest.raises(SystemExit, match="Unknown part 'none'"):
            main(["scale", "--part", "none"])

    def test_full_sizes(self):
        assert parts.Sizes().full
        assert parts.Sizes(peer_rows=5).full
        assert not parts.QUICK.full
