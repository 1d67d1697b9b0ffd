"""The command: sizes, orders of all parts, and one part from end to end."""

import json

import pytest
from rich.console import Console

pytest.importorskip("resource", reason="the CPU seconds of a process need a POSIX system")
pytest.importorskip("pyarrow")

from benchmarks.__main__ import main
from benchmarks.harness.jobs import Store
from benchmarks.scale import child, command, data, parts, peers, processes


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
