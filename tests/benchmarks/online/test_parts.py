"""Raw tables, changes of columns, an earlier commit: what is run, and what is checked."""

import argparse
import io
import json
import shutil
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.harness.jobs import ROOT, Store, unpack_commit
from benchmarks.online import bar, child, parts, raw_tables, units
from benchmarks.online.data import Stream
from benchmarks.online.learners import Learner, Outcome, River

needs_git = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="needs the repository"
)


@dataclass(frozen=True)
class Threshold(Learner):
    """Calls rows wrong whose first column is above a threshold: it depends on units."""

    needs: ClassVar[str] = "json"

    def learn(self, inputs, rows=None):
        wrong = np.count_nonzero(inputs.X[:, 0] > self.settings.get("at", 0.5))
        return Outcome(len(inputs.y), int(wrong))


@pytest.fixture
def small(monkeypatch):
    """Let every table be 40 rows of three columns, the last of them constant."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(40, 3)), rng.integers(2, size=40)
    X[:, 2] = 7.0
    monkeypatch.setattr(raw_tables, "load", lambda name: (X, y))
    return X, y


class TestTables:
    @pytest.mark.parametrize(
        ("name", "rows", "columns", "classes"),
        [("wine", 178, 13, 3), ("breast_cancer", 569, 30, 2), ("penguins-like", 344, 16, 3)],
    )
    def test_load(self, name, rows, columns, classes):
        X, y = raw_tables.load(name)
        assert (X.dtype, X.shape) == (np.float64, (rows, columns))
        assert set(y) == set(range(classes))

    def test_orders(self):
        few, many = raw_tables.draw_orders(999), raw_tables.draw_orders(1000)
        assert (len(few), len(many)) == (5, 1)
        assert len({tuple(order) for order in few}) == 5
        np.testing.assert_array_equal(few[0], np.random.default_rng(0).permutation(999))

    def test_ours(self):
        from mixnorm import MirrorDescentClassifier

        found, (X, y) = raw_tables.measure("wine", "mirror"), raw_tables.load("wine")
        orders = raw_tables.draw_orders(len(y))
        models = [MirrorDescentClassifier().partial_fit(X[order], y[order]) for order in orders]
        assert found["counts"] == [model.mistakes_ for model in models]
        assert found["mistakes"] == np.mean(found["counts"])
        assert found["rows"] == 178

    def test_one_setting_for_all_orders(self, small, monkeypatch):
        learner = Threshold(grid=({"at": 0.2}, {"at": 0.9}, {"at": 0.5}))
        monkeypatch.setitem(raw_tables.METHODS, "mirror", learner)
        found = raw_tables.measure("any", "mirror")
        first = [np.count_nonzero(small[0][:, 0] > at) for at in (0.2, 0.9, 0.5)]
        assert found["settings"] == {"at": 0.9}
        assert found["totals"] == [5 * count for count in first]
        assert found["counts"] == [first[1]] * 5

    @pytest.mark.parametrize("outcome", [Outcome(3, 1), Outcome(4)])
    def test_all_rows_are_seen_and_counted(self, monkeypatch, outcome):
        monkeypatch.setattr(Threshold, "learn", lambda self, inputs, rows: outcome)
        stream = Stream(np.zeros((4, 1)), np.zeros(4, dtype=int))
        with pytest.raises(RuntimeError, match="of 4 rows"):
            raw_tables.count_mistakes(Threshold(), [stream], [stream])

    def test_river_standardises(self):
        pytest.importorskip("river")
        rng = np.random.default_rng(0)
        y = rng.integers(2, size=200)
        X = 1e3 + y[:, None] + 0.1 * rng.standard_normal((200, 2))
        raw, ready = (River(zeros=True, standard=s).learn(Stream(X, y), 200) for s in (False, True))
        assert ready.mistakes < 20 < raw.mistakes
        slow = River(zeros=True, standard=True, settings={"lr": 1e-9}).learn(Stream(X, y), 200)
        assert slow.rows == 200


class TestAffine:
    def test_changed(self):
        X = np.random.default_rng(0).standard_normal((50, 2))
        X[:, 1] = 3.0
        found = units.change_columns(X, np.array([-10.0, 10.0]), np.array([1000.0, 2.0]))
        deviation = 10 * X[:, 0].std()
        np.testing.assert_allclose(found[:, 0], -10 * X[:, 0] + 1000 * deviation)
        np.testing.assert_allclose(found[:, 1], 30 + 2 * 10)

    def test_one_column_at_a_time(self):
        X = np.random.default_rng(0).standard_normal((20, 3))
        made = dict(units.change_each(X))
        assert len(made) == 3 * len(units.CHANGES)
        for name, other in made.items():
            column = int(name.split(":")[0].split()[1])
            same = np.all(other == X, axis=0)
            assert not same[column]
            assert same.sum() == 2

    def test_all_columns(self):
        X = np.random.default_rng(0).standard_normal((20, 3))
        made = dict(units.change_all(X))
        assert len(made) == len(units.CHANGES) + units.DRAWS
        for other in made.values():
            spread = other.std(axis=0) / X.std(axis=0)
            assert not np.any(np.all(other == X, axis=0))
            assert np.all((spread > 0.99e-6) & (spread < 1.01e6))

    def test_ranges_are_those_of_the_bar(self):
        factors, offsets = np.abs(units.CHANGES).T
        assert (factors.min(), factors.max(), offsets.max()) == (1e-6, 1e6, 1e3)

    def test_a_dependence_is_seen(self, small, monkeypatch):
        monkeypatch.setitem(raw_tables.METHODS, "mirror", Threshold())
        found, above = units.measure("any"), np.count_nonzero(small[0][:, 0] > 0.5)
        assert found["mistakes"] == 5 * above
        expected = max(40 - above, above) / above
        assert found["single"]["change"] == found["together"]["change"] == pytest.approx(expected)
        assert found["single"]["worst"].startswith("column 0")
        assert found["single"]["tried"] == 3 * len(units.CHANGES)


class TestChild:
    def test_first_call(self):
        found = child.measure_first_call()
        names = ("seconds", "layout_seconds", "sparse_seconds", "single_seconds")
        assert all(found[name] >= 0 for name in names)
        assert found["package"].endswith("mixnorm")

    def test_speed(self, monkeypatch):
        rng = np.random.default_rng(0)
        stream = Stream(rng.standard_normal((60, 4)).astype(np.float32), rng.integers(3, size=60))
        costs = iter([9.0, 0.4, 0.2, 0.3, 0.3, 0.3, 0.6, 9.0])
        monkeypatch.setattr(child, "load", lambda data: stream)
        monkeypatch.setattr(child, "SPEED_SECONDS", 2.0)
        monkeypatch.setattr(child, "time_pass", lambda *args: (Outcome(60, 7), next(costs)))
        found = child.measure_speed("mnist", "group")
        assert (found["rate"], found["passes"], found["mistakes"]) == (300.0, 6, 7)
        assert found["package"] == child.find_package()

    def test_source_of_ours(self, monkeypatch):
        monkeypatch.setattr(raw_tables, "measure", lambda table, method: {"rows": 1})
        assert "source" in child.count_mistakes("wine", "mirror")
        assert "source" not in child.count_mistakes("wine", "vw")


class TestBeside:
    @needs_git
    def test_both_packages(self):
        with parts.copy_sides("HEAD") as made:
            (then, first), (now, second) = made[parts.THEN], made[parts.NOW]
            for environment in (then, now):
                text = environment["PYTHONPATH"]
                assert (ROOT.__class__(text) / "mixnorm" / "__init__.py").exists()
                assert not text.startswith(str(ROOT / "src"))
            assert then != now
            assert first != second
            assert not first.exists()

    @needs_git
    def test_unknown_commit(self, tmp_path):
        with pytest.raises(SystemExit, match="cannot read the package of commit 'no-such-commit'"):
            unpack_commit("no-such-commit", tmp_path)

    def test_the_package_must_be_the_one_asked_for(self, monkeypatch):
        environment = {"PYTHONPATH": "/there/src"}
        for place, status in (("/there/src/mixnorm", "ok"), ("/here/src/mixnorm", "failed")):
            made = {"rate": 1.0, "package": place}
            monkeypatch.setattr(parts, "run_module_safely", lambda *args, made=made: dict(made))
            assert parts.run_side({}, environment)["status"] == status

    def test_what_is_kept(self):
        ran = []
        store, console = Store(), Console(file=io.StringIO())
        keep = parts.Keeper(store, console)
        for status, baseline in (("failed", "a"), ("ok", "a"), ("ok", "a"), ("ok", "b")):

            def run(status=status, baseline=baseline):
                ran.append((status, baseline))
                return {"status": status, "message": "no", "rate": 1.0}

            keep("speed/x", run, baseline=baseline)
        assert ran == [("failed", "a"), ("ok", "a"), ("ok", "b")]
        assert store.content["online"]["speed/x"]["baseline"] == "b"

    def test_sides_take_turns(self, monkeypatch):
        keys, caches = [], []
        args = argparse.Namespace(baseline="any", rounds=2)
        monkeypatch.setattr(parts, "unpack_commit", lambda commit, folder: {"PYTHONPATH": "/x"})
        monkeypatch.setattr(
            parts, "run_side", lambda order, more: caches.append(more["NUMBA_CACHE_DIR"])
        )

        def keep(key, run, baseline):
            keys.append(key)
            run()

        parts.run_first(args, keep)
        assert keys == ["first/then/0", "first/now/0", "first/then/1", "first/now/1"]
        assert len(set(caches)) == 4
        keys.clear(), caches.clear()
        parts.run_speed(args, keep)
        assert keys[:3] == [f"speed/mnist/mirror/{end}" for end in ("then/0", "now/0", "then/1")]
        assert len(keys) == 4 * len(parts.SPEED_DATA) * len(parts.SPEED_METHODS)
        assert len(set(caches)) == 2


def table(mistakes, rows=178):
    return {"status": "ok", "rows": rows, "mistakes": mistakes, "counts": [mistakes]}


def change(one, every):
    kinds = {"single": one, "together": every}
    more = {"mistakes": 51, "worst": "column 3: 1 x +1000 deviations", "tried": 78}
    found = {kind: more | {"change": value} for kind, value in kinds.items()}
    return {"status": "ok", "rows": 178, "orders": 5, "mistakes": 50} | found


def beside(prefix, now, then, name):
    pairs = {"now": now, "then": then}
    return {
        f"{prefix}/{side}/{turn}": {"status": "ok", name: value}
        for side, values in pairs.items()
        for turn, value in enumerate(values)
    }


FOUND = {
    "tables/wine/mirror": table(12.4),
    "tables/wine/vw-tuned": table(52.4),
    "tables/wine/river": table(12.2),
    "tables/pendigits/mirror": table(602.0, 7494),
    "tables/pendigits/river": table(602.0, 7494),
    "tables/pendigits/vw-tuned": {"status": "absent"},
    "affine/wine": change(0.02, 0.0),
    "affine/pendigits": change(0.0, 0.0201),
    "affine/shuttle-like": {"status": "failed", "message": "no"},
    "memory/fit/float64, read-only map": {"status": "ok", "x_bytes": 1000, "peak_bytes": 49},
    **beside("speed/mnist/mirror", [60.0, 71.0, 10.0], [90.0, 100.0, 20.0], "rate"),
    **beside("speed/isolet/mirror", [69.0], [100.0], "rate"),
    **beside("first", [23.0, 40.0, 23.1], [22.0, 50.0, 60.0], "seconds"),
}


class TestReport:
    def passed(self):
        return {(c.group, c.name, c.asked.split()[1]): c.passed for c in bar.check_bar(FOUND)}

    def test_mistakes(self):
        found = self.passed()
        assert found["tables", "wine", "vw-tuned"] is True
        assert found["tables", "wine", "river"] is False
        assert found["tables", "pendigits", "river"] is True
        assert found["tables", "pendigits", "vw-tuned"] is None
        assert len([key for key in found if key[0] == "tables"]) == 12

    def test_affine(self):
        found = self.passed()
        assert found["affine", "wine", "2"] is True
        assert found["affine", "pendigits", "2"] is False
        assert found["affine", "shuttle-like", "2"] is None

    def test_beside_an_earlier_commit(self):
        found = self.passed()
        assert found["speed", "mnist: mirror", "0.7"] is True
        assert found["speed", "isolet: mirror", "0.7"] is False
        assert found["speed", "reuters_r52: group", "0.7"] is None
        assert found["first call", "mirror", "1"] is False

    @pytest.mark.parametrize(("growth", "passed"), [(50, True), (51, False)])
    def test_memory(self, growth, passed):
        record = {"status": "ok", "x_bytes": 1000, "peak_bytes": growth}
        found = {f"memory/partial_fit/{parts.MAP}": record}
        checked = [check for check in bar.check_bar(found) if check.group == "memory"]
        assert [check.passed for check in checked] == [passed, None]

    def test_tables(self):
        console = Console(width=200, record=True, file=io.StringIO())
        for made in bar.make_tables(FOUND):
            console.print(made)
        text = console.export_text()
        for shown in ("0.237", "1.016", "2.01", "51, column 3", "failed", "0.71", "0.049", "1.05"):
            assert shown in text

    def test_nothing_measured(self):
        assert list(bar.make_tables({"mnist/group": {"status": "ok"}})) == []
        assert {check.passed for check in bar.check_bar({})} == {None}


class TestCommand:
    def options(self, path, *more):
        chosen = ["--parts", "tables,affine", "--tables", "wine", "--methods", "mirror,river"]
        return ["online", "--json", str(path), *chosen, *more]

    def test_runs_and_resumes(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        ran, path = [], tmp_path / "online.json"

        def carry_out(arguments, wall, environment):
            ran.append(json.loads(arguments[1]))
            return change(0.0, 0.0) if ran[-1]["job"] == "affine" else table(12.0)

        monkeypatch.setattr(parts, "run_module_safely", carry_out)
        monkeypatch.setattr(Learner, "available", lambda self: True)
        assert main(self.options(path, "--check")) == 0
        assert [order["job"] for order in ran] == ["tables", "tables", "affine"]
        assert [order.get("method") for order in ran] == ["mirror", "river", None]
        assert main(self.options(path, "--resume")) == 0
        assert len(ran) == 3
        assert "1.000 (12.0 / 12.0)" in capsys.readouterr().out

    def test_what_is_not_installed_is_told(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        monkeypatch.setattr(Learner, "available", lambda self: False)
        options = ["--parts", "tables", "--tables", "wine", "--methods", "river"]
        assert main(["online", *options]) == 0
        assert "absent" in capsys.readouterr().out

    @pytest.mark.parametrize(("option", "kind"), [("--parts", "part"), ("--tables", "table")])
    def test_unknown_names(self, option, kind):
        from benchmarks.__main__ import main

        with pytest.raises(SystemExit, match=f"Unknown {kind} 'nothing'"):
            main(["online", option, "nothing"])
