"""The measuring processes: memory and time, limits, what a fit reports, a killed worker."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("resource", reason="the CPU seconds of a process need a POSIX system")
pytest.importorskip("pyarrow")

from benchmarks.scale import child, data, panel, parts, peers, processes, watch


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
