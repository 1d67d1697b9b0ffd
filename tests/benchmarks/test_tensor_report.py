"""The report on tensor kernels: its tables and checks, and the command that prints them."""

import argparse
import io
import json

import pytest
from rich.console import Console

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.tensor import command
from benchmarks.tensor.paper import PROTOTYPE, SPLITS
from benchmarks.tensor.report import FASTER, LOSSES, check_bar, make_tables


def path_record(degree, method, seconds, **more):
    found = {"part": "path", "data": "wpbc", "kernel": degree, "gammas": 100, "method": method}
    found |= {"tol": 1e-8}
    found |= {"status": "ok", "seconds": seconds, "later_seconds": [seconds], "features": 33}
    found |= {"extra_seconds": 0.8, "peak_bytes": 2**27, "done": 100, "reached": 100}
    found |= {"gap": 9e-9, "evaluations": 265, "representation": "features"}
    return found | {"error": 0.0, "mass": 1.0} | more


def loss_record(loss, seconds, **more):
    return path_record(2, "newton", seconds, part="losses", loss=loss, **more)


def size_record(kernel, rows, number, method, seconds, **more):
    settings = {"part": "scaling", "rows": rows, "gammas": number, "done": number}
    return path_record(kernel, method, seconds, **settings | {"reached": number} | more)


def errors(model, degree, seed, raw, centred, **more):
    where = {"part": "tables", "data": "wpbc", "seed": seed, "model": model, "degree": degree}
    found = {
        target: {"mse": value, "seconds": 0.1, "place": 3} | more
        for target, value in (("raw", raw), ("centred", centred))
    }
    return where | {"status": "ok"} | found


def as_told(model, degree):
    """Records whose means and medians are the prototype's."""
    raw, centred = (PROTOTYPE.get((t, model, degree)) for t in ("raw", "centred"))
    middle = centred.mean if centred else 1200.0
    for seed in range(SPLITS):
        spread = 10.0 * (seed - 4.5)
        made = errors(model, degree, seed, raw.mean + spread, middle + spread)
        for target, told in (("raw", raw), ("centred", centred)):
            if told is not None and told.count:
                made[target]["count"] = told.count
        # One split brings the mean to what was told, the others are around the median.
        if raw.median:
            made["raw"]["mse"] = raw.median + spread
            if seed == SPLITS - 1:
                made["raw"]["mse"] += SPLITS * (raw.mean - raw.median)
        yield made


def stored(*records):
    return {str(place): record for place, record in enumerate(records)}


TABLES = [
    record
    for model, degree in dict.fromkeys((model, degree) for _, model, degree in PROTOTYPE)
    for record in as_told(model, degree)
]
FOUND = stored(
    *(path_record(degree, "newton", 0.01) for degree in FASTER),
    path_record(1, "fista", 0.5, evaluations=40_000),
    path_record(1, "fista-extrapolated", 0.3),
    path_record(1, "textbook-same", 0.011),
    path_record(1, "textbook-features", 0.013),
    path_record(1, "textbook-tensor", 0.4),
    path_record(2, "fista", 0.2),
    *(path_record(2, m, s, tol=1e-3) for m, s in (("newton", 0.005), ("fista", 0.04))),
    path_record(2, "ridge", 0.006, tol=None),
    path_record(3, "fista", 15.0, gap=2e-8, reached=99),
    path_record(4, "fista", 0.0, status="timeout", limit=300.0, done=62, reached=62),
    path_record(4, "lasso", 50.0, status="failed", message="no"),
    loss_record("epsilon-insensitive", 0.3),
    loss_record("huber", 2.5),
    loss_record("hinge", 0.1, reached=99),
    loss_record("logistic", 0.1, gammas=20, done=20, reached=20),
    size_record(4, 200, 100, "newton", 20.0),
    size_record(4, 800, 10, "newton-features", 41.0, peak_bytes=2**29),
    size_record(
        "exponential",
        800,
        20,
        "newton-sampled",
        2.0,
        representation="sampled",
        error=0.04,
        mass=0.99,
    ),
    *TABLES,
)


def verdicts(found):
    return {check.name: check.passed for check in check_bar(found)}


class TestBar:
    def test_paths(self):
        found = verdicts(FOUND)
        assert [found[f"degree {d}: FISTA to 1e-08"] for d in FASTER] == [True, False, True, True]
        assert [found[f"degree {d}: largest gap"] for d in FASTER] == [True, True, False, True]

    def test_figures(self):
        found = {check.name: check.found for check in check_bar(FOUND)}
        assert found["degree 1: FISTA to 1e-08"] == "50 (0.5 / 0.01 s); 30 extrapolated"
        assert found["degree 4: FISTA to 1e-08"] == "> 3e+04 (stopped at 300 s, 62 of 100)"
        assert found["degree 1: largest gap"].endswith("FISTA 9.0e-09 (40,000)")
        assert found["800 rows, drawn: exponential"].endswith("error <= 0.04")

    def test_losses(self):
        found = verdicts(FOUND)
        assert [found[loss] for loss in LOSSES] == [True, False, False, None]

    def test_scaling(self):
        found = verdicts(FOUND)
        assert found["200 rows, degree 4"] is True
        assert found["800 rows, features: degree 4"] is False
        assert found["800 rows, features: peak"] is True
        assert found["800 rows, drawn: exponential"] is True

    def test_tables(self):
        found = {check.name: check.passed for check in check_bar(FOUND) if check.group == "tables"}
        assert set(found.values()) == {True}

    def test_another_mean_is_a_miss(self):
        other = [dict(record) for record in TABLES]
        for record in other:
            if (record["model"], record["degree"]) == ("l4/3", 2):
                record["centred"] = record["centred"] | {"mse": record["centred"]["mse"] + 20.0}
        found = verdicts(stored(*other))
        assert found["centred: l4/3"] is False
        assert found["raw: l4/3"] is True

    def test_other_splits_decide_nothing(self):
        few = stored(*(record for record in TABLES if record["seed"] < 5))
        found = [check for check in check_bar(few) if check.group == "tables"]
        assert {check.passed for check in found} == {None}
        assert "not measured" not in {check.found for check in found}
        elsewhere = stored(*(record | {"data": "synthetic"} for record in TABLES))
        assert {check.passed for check in check_bar(elsewhere)} == {None}

    def test_nothing(self):
        assert set(verdicts({}).values()) == {None}
        assert {check.found for check in check_bar({})} == {"not measured"}

    @pytest.mark.parametrize(("limit", "passed"), [(300.0, True), (1.0, None)])
    def test_stopped_peer(self, limit, passed):
        stopped = path_record(4, "fista", 0.0, status="timeout", limit=limit, done=0)
        found = verdicts(stored(path_record(4, "newton", 0.1), stopped))
        assert found["degree 4: FISTA to 1e-08"] is passed

    @pytest.mark.parametrize(("limit", "passed"), [(300.0, False), (10.0, None)])
    def test_stopped_path_of_ours(self, limit, passed):
        stopped = size_record(4, 200, 100, "newton", 0.0, status="timeout", limit=limit)
        assert verdicts(stored(stopped))["200 rows, degree 4"] is passed

    def test_synthetic_rows_decide_nothing(self):
        records = (path_record(1, m, s, data="synthetic") for m, s in (("newton", 1), ("fista", 1)))
        assert verdicts(stored(*records))["degree 1: FISTA to 1e-08"] is None


class TestTables:
    def shown(self, found):
        console = Console(width=200, record=True, file=io.StringIO())
        for table in make_tables(found):
            console.print(table)
        return console.export_text()

    def test_text(self):
        text = self.shown(FOUND)
        assert "100 values of gamma, wpbc, 60 rows" in text
        assert "> 300 s" in text
        assert "> 3e+04" in text
        assert "62/100" in text
        assert "2.0e-08!" in text
        assert "failed" in text
        assert "1078.57 (1)" in text
        assert "1108/1113" in text
        assert "training mean" in text
        assert "zero" in text

    def line(self, start):
        lines = (line.split() for line in self.shown(FOUND).splitlines())
        return next(line for line in lines if line[: len(start)] == start)

    def test_rivals(self):
        found = self.line(["degree", "1,", "gap", "1e-08"])
        # FISTA by its faster start, and the textbook method by its faster representation.
        assert found[4:] == ["0.01", "0.011", "1.1", "0.013", "1.3", "features", "0.3", "30"]
        found = self.line(["degree", "2,", "gap", "0.001"])
        assert found[4:] == ["0.005", "0.04", "8"]
        found = self.line(["degree", "4,", "gap", "1e-08"])
        assert found[4:] == ["0.01", ">", "300", "s", ">", "3e+04"]

    def test_each_gap_has_its_own_ratio(self):
        assert self.line(["2", "fista", "0.001"])[3:5] == ["0.04", "8"]
        assert self.line(["2", "fista", "1e-08"])[3:5] == ["0.2", "20"]
        assert self.line(["2", "ridge", "own"])[3:5] == ["0.006", "1.2"]

    def test_errors_are_paired(self):
        records = [errors("ridge", 1, seed, 1000.0 * seed, 900.0) for seed in range(3)]
        records += [errors("l4/3", 1, seed, 1000.0 * seed - 7, 900.0) for seed in range(3)]
        assert "-7 ± 0" in self.shown(stored(*records))

    def test_one_split(self):
        text = self.shown(stored(errors("lasso", 3, 0, 2500.0, 1200.0, count=15)))
        assert "lasso, degree 3" in text
        assert "nan" not in text


class TestCommand:
    def main(self, *options):
        from benchmarks.__main__ import main

        return main(["tensor", *options])

    def orders(self, *options):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        return list(command.list_orders(parser.parse_args(options)))

    def test_orders(self):
        found = self.orders()
        keys = {"/".join(str(value) for value in order.values()) for order in found}
        assert len(keys) == len(found)
        assert {"path/wpbc/4/100/1e-08/fista", "path/wpbc/4/100/0.001/fista"} <= keys
        assert "path/wpbc/3/100/None/lasso" in keys
        assert "scaling/exponential/800/20/newton-sampled" in keys
        assert "tables/wpbc/9/lasso/3" in keys
        assert not any(key.startswith("path/wpbc/4") and "lasso" in key for key in keys)
        assert not any("gradient" in key for key in keys)
        more = self.orders("--all")
        assert {"gradient", "lasso"} <= {order.get("method") for order in more}
        assert 4 in {order["degree"] for order in more if order.get("model") == "lasso"}
        assert len(self.orders("--quick")) < len(found) / 2

    def test_gaps(self):
        assert command.parse_gaps("1e-8, 0.1") == (1e-8, 0.1)
        with pytest.raises(argparse.ArgumentTypeError, match="between 0 and 1"):
            command.parse_gaps("2")

    def test_degrees(self):
        assert command.parse_degrees("1, 4") == (1, 4)
        with pytest.raises(argparse.ArgumentTypeError, match="1 to 4"):
            command.parse_degrees("5")

    def test_runs_resumes_and_reports(self, tmp_path, monkeypatch, capsys):
        ran, place = [], tmp_path / "found.json"

        def run_module(arguments, wall):
            ran.append(json.loads(arguments[1]))
            if len(ran) == 2:
                raise RuntimeError("no such luck")
            made = path_record(ran[-1]["kernel"], ran[-1]["method"], 1.0)
            return {name: made[name] for name in made.keys() - ran[-1].keys()}

        monkeypatch.setattr(command, "run_module", run_module)
        options = ["--part", "path", "--degrees", "1", "--methods", "newton,fista"]
        options += ["--gaps", "1e-8", "--json", str(place)]
        assert self.main(*options) == 0
        wanted = {"part": "path", "data": "wpbc", "kernel": 1, "gammas": 100, "limit": 300.0}
        wanted |= {"tol": 1e-8}
        assert ran == [wanted | {"method": "newton"}, wanted | {"method": "fista"}]
        assert "no such luck" in capsys.readouterr().out
        # What failed is tried again.
        assert self.main(*options, "--resume") == 0
        assert [order["method"] for order in ran] == ["newton", "fista", "fista"]
        found = json.loads(place.read_text())
        assert {record["status"] for record in found["tensor"].values()} == {"ok"}
        # One is not 15 times as fast as the other.
        assert self.main(*options, "--resume", "--check") == 1

    def test_misses_are_told(self, tmp_path):
        place = tmp_path / "found.json"
        place.write_text(json.dumps({"format": 1, "tensor": FOUND}))
        assert self.main("--json", str(place), "--no-runs", "--check") == 1
        assert self.main("--json", str(place), "--no-runs") == 0

    def test_names(self):
        with pytest.raises(SystemExit, match="Unknown method 'ista'"):
            self.main("--methods", "ista")

    def test_end_to_end(self, capsys):
        options = ["--quick", "--part", "path", "--degrees", "1", "--methods", "newton"]
        options += ["--gaps", "1e-3"]
        assert self.main(*options, "--data", "synthetic", "--check") == 0
        out = capsys.readouterr().out
        assert "20 values of gamma, synthetic, 60 rows" in out
        assert "20/20" in out
        assert "failed" not in out
