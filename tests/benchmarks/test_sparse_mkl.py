"""The comparison of learners of a few kernels: data, methods, measuring, and what is checked."""

import argparse
import dataclasses
import io
import json
import warnings
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console
from sklearn.exceptions import ConvergenceWarning

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.sparse_mkl import child, command, data, methods
from benchmarks.sparse_mkl.data import WIDTHS
from benchmarks.sparse_mkl.methods import (
    METHODS,
    Greedy,
    Learner,
    Model,
    Splines,
    count_features,
    make_folds,
)
from benchmarks.sparse_mkl.report import check_bar, collect_lines, make_tables


class TestData:
    def test_design(self):
        X, y = data.draw_design(2000, 6, seed=0, relevant=4)
        truth = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + np.abs(X[:, 2]) + np.cos(X[:, 3])
        assert np.std(y - truth) == pytest.approx(0.1, rel=0.1)

    def test_outputs(self):
        X, y = data.draw_design(50, 10, seed=0, outputs=3)
        assert (X.shape, y.shape) == ((50, 10), (50, 3))

    def test_draws_share_the_test_rows(self):
        first, second = (data.draw_rows(40, 9, draw, True) for draw in range(2))
        np.testing.assert_array_equal(first.X_test, second.X_test)
        np.testing.assert_array_equal(first.y_test, second.y_test)
        assert not np.array_equal(first.X, second.X)
        shares = np.bincount(first.y_test) / len(first.y_test)
        assert len(shares) == data.CLASSES
        assert np.min(shares) > 0.05

    def test_kernels_are_those_of_the_bank(self):
        X, _ = data.draw_design(20, 3, seed=0, relevant=1)
        other, _ = data.draw_design(5, 3, seed=1, relevant=1)
        bank = data.make_bank(dtype="float64").fit(X)
        found = data.compute_stack(X, X)
        np.testing.assert_allclose(found, np.stack(bank.grams().matrices), atol=1e-12)
        which = [3, 17, 29]
        between = np.stack(bank.only(which).between(other).matrices)
        np.testing.assert_allclose(data.compute_stack(other, X, which), between, atol=1e-12)
        assert found.nbytes == data.count_stack_bytes(30, 20)

    def test_error(self):
        y = np.array([0.0, 2.0])
        assert data.measure_error(np.ones(2), y, classes=False) == 100.0
        assert data.measure_error(np.array([0, 1]), np.array([0, 0]), classes=True) == 50.0


def shorten_search(method):
    """Return the method with two or fewer values of each parameter to choose from."""
    if isinstance(method, Greedy):
        return dataclasses.replace(method, alphas=method.alphas[::3])
    if isinstance(method, Splines):
        return dataclasses.replace(method, knots=method.knots[:2])
    return method


class TestMethods:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_method(self, name, monkeypatch):
        monkeypatch.setattr(methods, "TREES", 30)
        method = shorten_search(METHODS[name])
        if not method.available():
            pytest.skip(f"{method.needs} is not installed")
        rows = data.draw_rows(120, 9, 0, method.classes)
        method.setup()
        inputs = method.convert(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits that do not converge are counted elsewhere
            model = method.run(inputs, **method.tune(inputs))
        found = model.predict(rows.X_test)
        assert found.shape == rows.y_test.shape
        assert data.measure_error(found, rows.y_test, method.classes) < 75
        assert model.kernels is None or 1 <= model.kernels <= 9 * len(WIDTHS)

    def test_best_setting_of_the_folds(self):
        rows = data.draw_rows(60, 9, 0, False)

        class Guess(Learner):
            def on_fold(self, inputs, train, test):
                for share in (0.0, 1.0, 0.5):
                    yield (("share", share),), share * inputs.y[test]

        assert Guess().tune(rows) == {"share": 1.0}

    def test_first_of_equal_settings(self):
        class Equal(Learner):
            def on_fold(self, inputs, train, test):
                for penalty in (3.0, 1.0):
                    yield (("penalty", penalty),), np.zeros(len(test))

        assert Equal().tune(data.draw_rows(60, 9, 0, False)) == {"penalty": 3.0}

    def test_all_have_the_same_folds(self):
        y = np.repeat([0, 1, 2], 20)
        for classes in (False, True):
            parts = make_folds(y, classes)
            assert len(parts) == 3
            assert sorted(np.concatenate([test for _, test in parts])) == list(range(60))
        np.testing.assert_array_equal(np.bincount(y[parts[0][1]]), [7, 7, 6])

    def test_paths_are_tuned_as_a_grid_would_be(self):
        rows = data.draw_rows(80, 9, 0, False)
        method = Greedy(alphas=(1e-2, 1e-4), most=4)
        found = method.tune(rows)
        errors = {}
        for alpha in method.alphas:
            for rounds in range(1, 5):
                errors[alpha, rounds] = sum(
                    data.measure_error(
                        method.model(alpha, rounds)
                        .fit(rows.X[train], rows.y[train])
                        .predict(rows.X[test]),
                        rows.y[test],
                        classes=False,
                    )
                    for train, test in make_folds(rows.y, False)
                )
        assert (found["alpha"], found["rounds"]) == min(errors, key=errors.get)

    def test_features(self):
        assert count_features(5000) == 500
        with pytest.raises(ValueError, match="15 kernels"):
            count_features(15)


class Pool:
    """Scores kernels by what it is given."""

    n_exact = 0

    def __init__(self, *scores):
        self.given = np.array(scores)

    def top(self, residual, rule, m, exclude):
        self.n_exact += 2
        order = np.argsort(-self.given, kind="stable")[:m]
        return [(int(at), float(self.given[at])) for at in order]

    def scores(self, residual, rule, which):
        return self.given[which]


@dataclasses.dataclass(frozen=True)
class Fake(Learner):
    """Takes memory, and predicts zeros."""

    needs: ClassVar[str] = "json"
    stored: ClassVar[bool] = True

    def tune(self, inputs):
        warnings.warn("not yet", ConvergenceWarning, stacklevel=1)
        return {"size": 7, "weights": np.ones(3)}

    def run(self, inputs, size=0, weights=None):
        block = np.ones(2**23)
        return Model(lambda X: block[0] * np.zeros(len(X)), size)


def measure(part, kernels=30, rows=60, method="gomp", **order):
    return child.measure(part, kernels, rows, method, **{"limit": 100.0} | order)


class TestChild:
    def test_watched(self):
        watched = child.Watched(Pool(3.0, 1.0, 2.0), Pool(3.0, 1.0, 4.0))
        for _ in range(2):
            assert watched.top(None, "functional", 1, frozenset()) == [(0, 3.0)]
        assert watched.short == [0.25, 0.25]
        assert watched.exact == [2, 2]
        assert len(watched.seconds) == len(watched.wall) == 2
        assert watched.given[0] == 3.0

    @pytest.mark.parametrize("rule", ["functional", "empirical"])
    def test_scan_and_twin(self, rule):
        order = {"kernels": 90, "method": rule, "rounds": 4}
        plain, checked = measure("scan", **order), measure("agree", **order)
        assert plain["status"] == "ok"
        assert plain["rounds"] == checked["scans"] == 4
        assert "different" not in plain
        assert checked["different"] == len(checked["short"]) == 0
        assert 1 <= checked["exact"] <= 90
        assert plain["sketch_bytes"] > 0

    def test_fit(self):
        found = measure("fit", kernels=90)
        assert found["peak_bytes"] > 2**20
        assert found["seconds"] > 0
        assert len(found["source"]) == 12
        assert "search_seconds" not in found

    def test_table(self, monkeypatch):
        monkeypatch.setitem(METHODS, "fake", Fake())
        found = measure("table", kernels=90, method="fake", draw=0)
        assert (found["status"], found["used"]) == ("ok", 7)
        assert found["error"] > 90
        assert found["peak_bytes"] > 2**26
        assert len(found["later_seconds"]) == 5
        assert found["search_seconds"] >= 0
        assert found["chosen"] == {"size": 7}
        assert found["warned"] == 1
        assert "source" not in found
        json.dumps(found)

    def test_additive(self):
        found = measure("additive", kernels=24, rows=200, draw=1)
        assert set(found["columns"][:4]) == {0, 1, 2, 3}
        assert found["error"] < found["boosting_error"]
        assert found["splines_error"] < found["boosting_error"]
        json.dumps(found)

    def test_stopped(self, monkeypatch):
        def forever(self, inputs):
            while len(inputs.y) > 60:
                pass

        monkeypatch.setattr(Fake, "tune", forever)
        monkeypatch.setitem(METHODS, "fake", Fake())
        found = measure("table", kernels=90, rows=70, method="fake", draw=0, limit=0.1)
        assert found == {"status": "timeout", "limit": 0.1}


def order(part, size, method, **more):
    return {"part": part, "kernels": size[0], "rows": size[1], "method": method, "status": "ok"} | (
        more
    )


def scan(part, rule, seconds=0.2, size=(5000, 2000), **more):
    found = {"scans": 100, "rounds": 100, "seconds": seconds, "wall_seconds": seconds}
    found |= {"most_seconds": seconds, "exact": 4.0, "made_seconds": 9.0, "sketch_bytes": 2**27}
    return order(part, size, rule, **found | more)


def row(method, seconds, error=5.0, size=(500, 500), draw=0, **more):
    found = {"seconds": seconds, "later_seconds": [seconds], "made_seconds": 0.0, "used": 12}
    found |= {"extra_seconds": 1.0, "peak_bytes": 2**28, "error": error, "draw": draw}
    found |= {"search_seconds": 10 * seconds, "warned": 0}
    return order("table", size, method, **found | more)


def seed(number, columns=(0, 2, 1, 3, 77), error=1.0):
    found = {"draw": number, "columns": list(columns), "error": error, "boosting_error": 7.0}
    found |= {"splines_error": 2.0, "boosting_seconds": 9.0, "splines_seconds": 0.5}
    return order("additive", (360, 800), "gomp", seconds=1.0, **found)


def stored(*records):
    return {str(place): record for place, record in enumerate(records)}


FOUND = stored(
    scan("scan", "functional"),
    scan("scan", "empirical", 0.6),
    scan("agree", "functional", size=(1000, 500), different=1, short=[1e-5]),
    scan("agree", "empirical", size=(1000, 500), different=2, short=[1e-5, 2e-3]),
    order("fit", (5000, 2000), "gomp", seconds=40.0, peak_bytes=2**30),
    row("gomp", 0.5),
    row("gomp", 0.7, error=7.0, draw=1),
    row("himalaya", 0.3, error=6.5, made_seconds=3.0, used=500, search_seconds=15.0),
    row("splines-lasso", 0.1, error=4.5, search_seconds=3.0, warned=4),
    row("gomp-classes", 0.5, error=12.0),
    row("easymkl", 5.0, error=11.0, made_seconds=3.0),
    order("table", (500, 500), "kbest-svr", status="failed", message="no"),
    *(seed(number) for number in range(18)),
    *(seed(number, columns=(0, 2, 5, 1, 3)) for number in (18, 19)),
)


def verdicts(found):
    return {check.name: check.passed for check in check_bar(found)}


class TestBar:
    def test_all(self):
        assert verdicts(FOUND) == {
            "functional: seconds a round": True,
            "empirical: seconds a round": False,
            "functional: same as a slow twin": True,
            "empirical: same as a slow twin": False,
            "12 kernels of 5000: seconds": True,
            "12 kernels of 5000: peak": True,
            "himalaya, 500 x 500: error": True,
            "easymkl, 500 x 500: error": False,
            "the relevant columns come first": True,
            "error below boosting's": True,
        }

    def test_nothing(self):
        assert set(verdicts({}).values()) == {None}
        assert len(verdicts({})) == 10

    def test_figures(self):
        found = {check.name: check.found for check in check_bar(FOUND)}
        # Seconds are the median of all draws; errors are compared on those that both have.
        text = "5.00 against 6.50 %; searches 6 and 18 s"
        assert found["himalaya, 500 x 500: error"] == text
        assert found["empirical: same as a slow twin"].endswith("at most 2.0e-03 below the best")
        assert found["the relevant columns come first"] == "18 of 20"

    def test_small_sizes_decide_nothing(self):
        small = stored(
            scan("scan", "functional", 9.0, size=(500, 300)),
            scan("agree", "functional", scans=20, size=(1000, 500), different=9, short=[0.1] * 9),
            order("fit", (500, 300), "gomp", seconds=100.0, peak_bytes=2**33),
            row("gomp", 1.0, size=(300, 200)),
            row("himalaya", 1.0, error=1.0, size=(300, 200)),
            *(seed(number, columns=range(4, 9)) for number in range(3)),
        )
        assert set(verdicts(small).values()) == {None}
        assert "9 at 500 x 300" in [check.found for check in check_bar(small)]

    def test_the_largest_size_counts(self):
        found = stored(scan("scan", "functional"), scan("scan", "functional", 9.0, size=(100, 50)))
        assert verdicts(found)["functional: seconds a round"] is True

    def test_one_seed_above_boosting_is_a_miss(self):
        found = verdicts(stored(seed(0), seed(1, error=8.0)))
        assert found["error below boosting's"] is False
        assert found["the relevant columns come first"] is None

    @pytest.mark.parametrize(("limit", "passed"), [(300.0, False), (30.0, None)])
    def test_stopped_fit(self, limit, passed):
        found = stored(order("fit", (5000, 2000), "gomp", status="timeout", limit=limit))
        assert verdicts(found)["12 kernels of 5000: seconds"] is passed

    def test_stopped_peer(self):
        stopped = order("table", (500, 500), "himalaya", status="timeout", limit=300.0, draw=0)
        (found,) = (c for c in check_bar(stored(row("gomp", 0.5), stopped)) if "500" in c.name[:15])
        assert (found.found, found.passed) == ("> 300 s", None)

    def test_absent_peer(self):
        absent = order("table", (500, 500), "himalaya", status="absent", draw=0)
        (found,) = (c for c in check_bar(stored(row("gomp", 0.5), absent)) if "500" in c.name[:15])
        assert (found.found, found.passed) == ("not installed", None)


class TestTables:
    def test_text(self):
        console = Console(width=200, record=True, file=io.StringIO())
        large = order("table", (1000, 2000), "himalaya", status="large", stack_bytes=2**35, draw=0)
        for table in make_tables(FOUND | {"large": large}):
            console.print(table)
        text = console.export_text()
        assert "500 kernels, 500 rows, one target" in text
        assert "6.00 ± 1.00" in text
        assert "kernels of 32 GiB: not run" in text
        assert "98 of 100" in text
        assert "0 2 1 3" in text

    def test_searches_beside_searches_and_fits_beside_fits(self):
        table = next(iter(make_tables(FOUND)))
        cells = [list(column.cells) for column in table.columns]
        heads = [column.header for column in table.columns]
        place = cells[0].index("himalaya")
        found = [column[place] for column in cells]
        # The kernels count in both ratios: 18 / 6 s of search, 3.3 / 0.6 s of a fit.
        assert heads[3:8] == ["search s", "ratio", "fit s", "ratio", "+ kernels"]
        assert found[3:8] == ["15", "3", "0.3", "5.5", "3"]
        assert cells[heads.index("warned")][cells[0].index("splines-lasso")] == "4"

    def test_lines(self):
        group = collect_lines(FOUND)[500, 500]
        assert group["gomp"].errors == {0: 5.0, 1: 7.0}
        assert group["easymkl"].total("seconds") == 8.0
        assert group["easymkl"].total("search_seconds") == 53.0
        assert next(iter(group)) == "gomp"


class TestCommand:
    def main(self, *options):
        from benchmarks.__main__ import main

        return main(["sparse-mkl", *options])

    def test_sizes(self):
        assert command.parse_sizes("500x500, 1000x2000") == ((500, 500), (1000, 2000))
        for wrong in ("500", "15x20", "0x20", "axb"):
            with pytest.raises(argparse.ArgumentTypeError, match="KERNELSxROWS"):
                command.parse_size(wrong)

    def test_runs_resumes_and_reports(self, tmp_path, monkeypatch, capsys):
        ran, path = [], tmp_path / "found.json"

        def run_module(arguments, wall):
            ran.append(json.loads(arguments[1]))
            if len(ran) == 2:
                raise RuntimeError("no such luck")
            return row("gomp", 1.0) | {name: ran[-1][name] for name in ("draw", "kernels", "rows")}

        monkeypatch.setattr(command, "run_module", run_module)
        options = ["--part", "table", "--sizes", "500x500", "--repeats", "2"]
        options += ["--methods", "gomp", "--json", str(path)]
        assert self.main(*options) == 0
        wanted = order("table", (500, 500), "gomp", limit=300.0)
        wanted.pop("status")
        assert ran == [wanted | {"draw": 0}, wanted | {"draw": 1}]
        assert "no such luck" in capsys.readouterr().out
        # What failed is tried again.
        assert self.main(*options, "--resume") == 0
        assert [order["draw"] for order in ran] == [0, 1, 1]
        found = json.loads(path.read_text())
        assert {record["status"] for record in found["sparse-mkl"].values()} == {"ok"}
        assert len(found["summary"]) == 10

    def test_what_cannot_be_held_is_not_run(self, monkeypatch, capsys):
        monkeypatch.setattr(command, "run_module", None)
        monkeypatch.setitem(METHODS, "himalaya", Fake())
        options = ["--part", "table", "--sizes", "5000x2000", "--repeats", "1"]
        assert self.main(*options, "--methods", "himalaya") == 0
        assert "kernels of 149 GiB: not run" in capsys.readouterr().out

    def test_absent(self, monkeypatch, capsys):
        monkeypatch.setattr(command, "run_module", None)
        monkeypatch.setattr(type(METHODS["easymkl"]), "needs", "no_such_library")
        assert self.main("--part", "table", "--quick", "--methods", "easymkl") == 0
        assert "not installed" in capsys.readouterr().out

    def test_misses_are_told(self, tmp_path):
        path = tmp_path / "found.json"
        path.write_text(json.dumps({"format": 1, "sparse-mkl": FOUND}))
        assert self.main("--json", str(path), "--no-runs", "--check") == 1
        assert self.main("--json", str(path), "--no-runs") == 0

    def test_end_to_end(self, capsys):
        options = ["--part", "table", "--sizes", "90x30", "--repeats", "1"]
        # A method without compiled code: the gomp learner is measured in this process above.
        options += ["--methods", "kbest-ridge"]
        assert self.main(*options, "--check") == 0
        out = capsys.readouterr().out
        assert "90 kernels, 30 rows, one target" in out
        assert "failed" not in out
