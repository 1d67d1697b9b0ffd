"""The comparison of kernel learners: splits, kernels, methods, and what is checked."""

import contextlib
import io
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console
from sklearn.svm import SVC

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.harness.jobs import ROOT
from benchmarks.harness.limit import OutOfTime, limit_seconds
from benchmarks.mkl import child, command
from benchmarks.mkl import data as mkl_data
from benchmarks.mkl.data import WIDTHS, Kernels, Rows
from benchmarks.mkl.methods import (
    COSTS,
    EXPONENTS,
    FOLDS,
    METHODS,
    RIDGES,
    C,
    Inputs,
    Method,
    Outcome,
    make_folds,
)
from benchmarks.mkl.report import check_bar, count_stacks, make_tables


def made(n=45, n_test=12, classes=3):
    rng = np.random.default_rng(0)
    y = np.arange(n + n_test) % classes
    X = rng.standard_normal((n + n_test, 4)) + 3 * np.eye(classes, 4)[y]
    return mkl_data.scale_rows(Rows(X[:n], y[:n], X[n:], y[n:]))


@pytest.fixture
def kernels():
    return mkl_data.compute_kernels(made())


class TestData:
    def test_split(self, monkeypatch):
        X, y = np.arange(40.0).reshape(20, 2), np.repeat([3, 7], 10)
        monkeypatch.setattr(mkl_data, "load_stored", lambda name: (X, y, X[:5], y[:5]))
        found = mkl_data.make_split("any", seed=1)
        order = np.random.default_rng(1).permutation(25)
        labels = np.concatenate([y, y[:5]])[order]
        np.testing.assert_array_equal(np.concatenate([found.y, found.y_test]), labels == 7)
        assert len(found.y) == 20
        assert (found.X.min(axis=0) == -1).all()
        assert (found.X.max(axis=0) == 1).all()
        few = mkl_data.make_split("any", seed=1, rows=10)
        np.testing.assert_array_equal(np.concatenate([few.y, few.y_test]), labels[:10] == 7)
        assert len(few.y) == 8

    def test_dna_stays_as_it_is(self, monkeypatch):
        X = np.random.default_rng(0).integers(0, 2, size=(20, 3))
        monkeypatch.setattr(
            mkl_data, "load_stored", lambda name: (X, np.arange(20) % 2, None, None)
        )
        assert set(np.unique(mkl_data.make_split("dna").X)) == {0.0, 1.0}

    def test_scaled_by_the_training_rows(self):
        X = np.array([[0.0, 5.0], [4.0, 5.0]])
        found = mkl_data.scale_rows(Rows(X, np.arange(2), np.array([[6.0, 9.0]]), np.arange(1)))
        np.testing.assert_array_equal(found.X, [[-1, 0], [1, 0]])
        np.testing.assert_array_equal(found.X_test, [[2, 0]])

    def test_kernels_are_those_of_a_bank(self, kernels):
        from mixnorm.kernels import gaussian_bank

        rows = made()
        bank = gaussian_bank(WIDTHS, normalize=None).fit(rows.X)
        for mine, stack in ((kernels.K, bank.grams()), (kernels.K_test, bank.between(rows.X_test))):
            assert mine.dtype == np.float32
            np.testing.assert_allclose(mine, np.stack(stack.matrices), atol=1e-5)

    def test_few(self, kernels):
        few = kernels.few(4)
        assert (few.K.shape, few.K_test.shape) == ((21, 12, 12), (21, 4, 12))
        np.testing.assert_array_equal(np.bincount(few.y), [4, 4, 4])
        rows = np.concatenate([np.flatnonzero(kernels.y == label)[:4] for label in range(3)])
        np.testing.assert_array_equal(few.K[3], kernels.K[3][np.ix_(rows, rows)])
        np.testing.assert_array_equal(few.K_test[3], kernels.K_test[3][:4, rows])

    def test_everything(self, monkeypatch):
        X, y = np.arange(12.0).reshape(6, 2), np.array([3, 3, 5, 5, 3, 5])
        stored = (X[:4], y[:4], X[4:], y[4:])
        monkeypatch.setattr(mkl_data, "load_stored", lambda name: stored)
        found = mkl_data.take_all_rows("any", 2)
        np.testing.assert_allclose(found.X[:, 0], np.linspace(-1, 1, 6))
        np.testing.assert_array_equal(found.y, [0, 0, 1, 1, 0, 1])
        np.testing.assert_array_equal(found.X_test, found.X[:2])

    def test_synthetic(self):
        found = mkl_data.draw_synthetic(300, 50)
        assert (found.X.shape, found.X_test.shape) == ((300, 20), (50, 20))
        np.testing.assert_array_equal(np.unique(found.y), np.arange(5))


class TestMethods:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_method(self, kernels, name):
        method = METHODS[name]
        if not method.available():
            pytest.skip(f"{method.needs} is not installed")
        method.setup()
        inputs = method.convert(kernels)
        found = method.run(inputs)
        assert np.mean(found.labels == kernels.y_test) > 0.5
        assert inputs.held % kernels.K[0].nbytes == 0
        if method.ours:
            assert found.facts["gap"] <= 0.01 or "mirror" in name
        json.dumps(found.facts)

    def test_averages_agree(self, kernels):
        both = [METHODS[name] for name in ("svc-average", "svc-average-made")]
        first, second = (method.run(method.convert(kernels)).labels for method in both)
        np.testing.assert_array_equal(first, second)

    def test_best_single(self, kernels):
        # All but one kernel tell nothing. One class is rare, so that a fit of another kernel would
        # have other intercepts, and would predict other labels.
        y = kernels.y
        rows = np.flatnonzero((y < 2) | (np.cumsum(y == 2) <= 4))
        K, K_test, y = np.zeros((20, len(rows), len(rows))), kernels.K_test[:, :, rows], y[rows]
        K[:], K[13] = np.eye(len(rows)), kernels.K[13][np.ix_(rows, rows)]
        found = METHODS["svc-single"].run(Inputs(K, K_test, y, K.nbytes))
        assert found.facts["kernel"] == 13
        chosen, other = (SVC(C=C, kernel="precomputed").fit(K[m], y) for m in (13, 0))
        np.testing.assert_array_equal(found.labels, chosen.predict(K_test[13]))
        assert np.any(found.labels != other.predict(K_test[13]))

    def test_searches_that_are_compared_have_as_many_fits(self, kernels):
        method = METHODS["lp-search"]
        found = method.run(method.convert(kernels)).facts
        theirs = METHODS["himalaya-short"].draws * len(RIDGES) * FOLDS
        assert found["fits"] == len(COSTS) * len(EXPONENTS) * FOLDS == theirs
        assert found["C"] in COSTS
        assert found["p"] in EXPONENTS

    def test_folds(self):
        y = np.repeat([0, 1, 2], [9, 6, 3])
        parts = make_folds(y, 3)
        assert sorted(np.concatenate([test for _, test in parts])) == list(range(18))
        assert all((np.bincount(y[test]) == [3, 2, 1]).all() for _, test in parts)


def for_ever():
    while True:
        pass


class TestLimit:
    def test_seconds(self):
        with pytest.raises(OutOfTime), limit_seconds(0.05):
            for_ever()

    @pytest.mark.parametrize("error", [None, OutOfTime])
    def test_end_of_the_limit(self, error):
        handler = signal.getsignal(signal.SIGPROF)
        with contextlib.suppress(OutOfTime), limit_seconds(100.0):
            assert signal.getitimer(signal.ITIMER_PROF)[0] > 0.0
            assert signal.getsignal(signal.SIGPROF) is not handler
            if error is not None:
                raise error
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGPROF) is handler


@dataclass(frozen=True)
class Fake(Method):
    """Takes memory, and says that all is of one class."""

    needs: ClassVar[str] = "json"
    ours: ClassVar[bool] = True

    def run(self, inputs):
        block = np.ones(2**23)
        return Outcome(np.zeros(inputs.K_test.shape[1], dtype=int), {"gap": float(block[0])})


class TestChild:
    def test_figures(self, monkeypatch):
        monkeypatch.setattr(child, "make_split", lambda name: made())
        monkeypatch.setitem(METHODS, "fake", Fake())
        found = child.measure("stack", "any", "fake", 100.0)
        assert found["status"] == "ok"
        assert (found["rows"], len(found["later_seconds"])) == (45, 5)
        assert found["accuracy"] == pytest.approx(100 / 3)
        assert found["stack_bytes"] == found["held_bytes"] == 21 * 45 * 45 * 4
        assert found["peak_bytes"] > 2**25
        assert found["gap"] == 1.0
        assert len(found["source"]) == 12

    def test_stopped(self, monkeypatch):
        def forever(self, inputs):
            while len(inputs.y) > 30:
                pass
            return Outcome(inputs.y)

        monkeypatch.setattr(child, "make_split", lambda name: made())
        monkeypatch.setattr(child, "FEW", 5)
        monkeypatch.setattr(Fake, "run", forever)
        monkeypatch.setitem(METHODS, "fake", Fake())
        found = child.measure("stack", "any", "fake", 0.1)
        assert found == {"status": "timeout", "limit": 0.1}

    def test_long_calls_are_made_once(self, monkeypatch, kernels):
        monkeypatch.setattr(child, "LONG", 0.0)
        (_, first), later = child.time_calls(Fake(), Fake().convert(kernels), 100.0)
        assert later == []
        assert first.seconds >= 0

    @pytest.mark.parametrize("part", ["large", "rows50k"])
    def test_many_rows(self, monkeypatch, part):
        monkeypatch.setattr(child, "take_all_rows", lambda name, tested: made(600, 30))
        monkeypatch.setattr(child, "SYNTHETIC", (600, 30))
        monkeypatch.setattr(child, "RANK", 20)
        found = child.measure(part, "any", "lp", 100.0)
        assert (found["rows"], found["tested"], found["rank"]) == (600, 30, 20)
        assert found["accuracy"] > 50
        assert found["gap"] <= 0.01
        assert found["total_bytes"] > found["peak_bytes"]
        assert found["seen"] == (part == "large")


def record(seconds=1.0, *, part="stack", data="segment", held=100, peak=20, **more):
    found = {"status": "ok", "part": part, "data": data, "rows": 1848, "seconds": seconds}
    found |= {"later_seconds": [seconds], "extra_seconds": 0.5, "accuracy": 97.0}
    return found | {"stack_bytes": 100, "held_bytes": held, "peak_bytes": peak} | more


def absent(method):
    return {"status": "absent", "part": "stack", "data": "segment", "method": method}


def many(seconds, **more):
    found = record(seconds, part="large", data="letter", peak=2**30, gap=0.008)
    return found | {"rank": 256, "total_bytes": 2 * 2**30} | more


FOUND = {
    "stack/segment/svc-average": record(0.1),
    "stack/segment/svc-average-made": record(0.2),
    "stack/segment/mklpy-easy": record(20.0, held=200, peak=1500),
    "stack/segment/himalaya-fit": record(8.0, fits=1),
    "stack/segment/himalaya-short": record(60.0, fits=120),
    "stack/segment/himalaya": absent("himalaya"),
    "stack/segment/lp-search": record(30.0, fits=120, gap=0.009),
    "stack/segment/lp": record(0.8, gap=0.009),
    "stack/segment/smsd": record(6.0, gap=0.02),
    "large/letter/lp": many(170.0),
}


class TestReport:
    def passed(self, found=FOUND):
        return {(c.name, c.asked): c.passed for c in check_bar(found)}

    def test_bar(self):
        assert self.passed() == {
            ("lp: seconds", "<= 1/25 of EasyMKL"): True,
            ("lp: seconds", "<= 10 SVC"): True,
            ("smsd: seconds", "<= 50 SVC"): False,
            ("smsd-mirror: seconds", "<= 6 SVC"): None,
            ("ufo-mirror: seconds", "<= 6 SVC"): None,
            ("lp: relative gap", "<= 0.01"): True,
            ("smsd: relative gap", "<= 0.01"): False,
            ("lp: memory, in stacks", "<= 1.2"): True,
            ("letter: seconds", "<= 180"): True,
            ("letter: peak", "<= 4 GiB"): True,
            ("50,000 rows: growth", "<= 2 GiB"): None,
        }

    @pytest.mark.parametrize(("limit", "passed"), [(300.0, False), (100.0, None)])
    def test_stopped(self, limit, passed):
        stopped = {"status": "timeout", "part": "large", "data": "letter", "limit": limit}
        found = {"large/letter/lp": stopped}
        assert self.passed(found)["letter: seconds", "<= 180"] is passed

    def test_misses(self):
        found = FOUND | {"stack/segment/lp": record(1.1, gap=0.009, peak=21)}
        missed = [name for name, passed in self.passed(found).items() if passed is False]
        assert ("lp: seconds", "<= 1/25 of EasyMKL") in missed
        assert ("lp: seconds", "<= 10 SVC") in missed
        assert ("lp: memory, in stacks", "<= 1.2") in missed

    def test_both_readings_of_the_average(self):
        (found,) = (
            c.found for c in check_bar(FOUND) if c.name == "lp: seconds" and "SVC" in c.asked
        )
        assert found == "8 (0.8 / 0.1 s); 4 with averaging"

    def test_in_stacks(self):
        assert count_stacks(FOUND["stack/segment/mklpy-easy"]) == 17.0

    def test_tables(self):
        console = Console(width=200, record=True, file=io.StringIO())
        for table in make_tables(FOUND):
            console.print(table)
        text = console.export_text()
        assert "segment: 1848 rows" in text
        assert "not installed" in text
        assert "17.00" in text
        assert "large/letter/lp" in text

    def test_fits_beside_fits_and_searches_beside_searches(self):
        (table,) = (table for table in make_tables(FOUND) if "segment" in str(table.title))
        heads = [column.header for column in table.columns]
        cells = {column.header: list(column.cells) for column in table.columns}

        def of(method):
            place = cells["method"].index(method)
            return {head: cells[head][place] for head in heads}

        assert (of("lp")["fits"], of("lp")["him /"], of("lp")["/ svc"]) == ("1", "10", "8")
        search = of("lp-search")
        assert (search["fits"], search["/ fits"], search["him /"]) == ("120", "0.25", "2")
        # A search is not set beside a single fit.
        assert search["/ svc"] == search["easy /"] == of("himalaya-short")["/ svc"] == ""


class TestCommand:
    def options(self, path, *more):
        wanted = ["--part", "stack", "--methods", "svc-average,lp"]
        return ["mkl", "--json", str(path), *wanted, *more]

    def test_runs_resumes_and_reports(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        ran, path = [], tmp_path / "mkl.json"

        def run_module(arguments, wall):
            ran.append(json.loads(arguments[1]))
            if len(ran) == 2:
                raise RuntimeError("no such luck")
            return record(gap=0.001)

        monkeypatch.setattr(command, "run_module", run_module)
        assert main(self.options(path)) == 0
        order = {"part": "stack", "data": "segment", "limit": 300.0}
        assert ran == [order | {"method": name} for name in ("svc-average", "lp")]
        assert "no such luck" in capsys.readouterr().out
        # What failed is tried again.
        assert main(self.options(path, "--resume")) == 0
        assert [order["method"] for order in ran] == ["svc-average", "lp", "lp"]
        stored = json.loads(path.read_text())
        assert {r["status"] for r in stored["mkl"].values()} == {"ok"}

    def test_parts(self, tmp_path, monkeypatch):
        from benchmarks.__main__ import main

        ran = []

        def run_module(arguments, wall):
            ran.append(json.loads(arguments[1]))
            raise subprocess.TimeoutExpired("python", wall)

        monkeypatch.setattr(command, "run_module", run_module)
        assert main(["mkl", "--part", "large,rows50k", "--check"]) == 1
        orders = [(order["part"], order["data"], order["method"]) for order in ran]
        assert orders == [("large", "letter", "lp"), ("rows50k", "synthetic", "lp")]

    def test_misses_are_told(self, tmp_path):
        from benchmarks.__main__ import main

        path = tmp_path / "mkl.json"
        path.write_text(json.dumps({"format": 1, "mkl": FOUND}))
        assert main(self.options(path, "--no-runs", "--check")) == 1
        assert main(self.options(path, "--no-runs")) == 0

    def test_what_is_not_installed_is_left_out(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        monkeypatch.setattr(Method, "available", lambda self: False)
        assert main(self.options(tmp_path / "mkl.json")) == 0
        assert "not installed" in capsys.readouterr().out

    @pytest.mark.parametrize("option", ["--part", "--data", "--methods"])
    def test_unknown_names(self, option):
        from benchmarks.__main__ import main

        with pytest.raises(SystemExit, match="Unknown .* 'vv'"):
            main(["mkl", option, "vv"])

    def test_learners_are_not_imported(self):
        code = (
            "import benchmarks.mkl.command, benchmarks.mkl_table1.command, json, sys; "
            "print(json.dumps(list(sys.modules)))"
        )
        made = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not {"MKLpy", "himalaya", "sklearn", "torch"} & set(json.loads(made.stdout))


def test_kernels_keep_labels(kernels):
    assert isinstance(kernels, Kernels)
    np.testing.assert_array_equal(kernels.y, made().y)
