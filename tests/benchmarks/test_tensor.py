"""The comparison of tensor kernels with other solvers: methods, models, and what is checked."""

import argparse
import io
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.optimize import minimize_scalar

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.harness.limit import OutOfTime
from benchmarks.tensor import child, command, models
from benchmarks.tensor import data as tensor_data
from benchmarks.tensor.data import Part, Split
from benchmarks.tensor.fista import Solved, cube_root, fista_path
from benchmarks.tensor.methods import METHODS, Problem, gammas, kernel_of
from benchmarks.tensor.methods import tensor as tensor_of
from benchmarks.tensor.newton import newton_path, of_features, of_tensor
from benchmarks.tensor.paper import PROTOTYPE, SPLITS
from benchmarks.tensor.report import FASTER, LOSSES, checks, tables
from mixnorm import TensorKernelRegressor, datasets
from mixnorm.engines import dual
from mixnorm.exceptions import DatasetNotFoundError
from mixnorm.losses import Squared


def part(rows, columns=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    return Part(X, X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(rows))


def problem(degree=2, number=4, rows=14, **other):
    given = part(rows)
    return Problem(
        given.X, tensor_data.centred(given.y), kernel_of(degree), gammas(number), **other
    )


class TestData:
    def test_parts(self):
        given = tensor_data.split("synthetic", 3)
        sizes = [len(one.y) for one in (given.train, given.valid, given.test)]
        assert sizes == [60, 60, 74]
        np.testing.assert_allclose(given.train.X.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(given.train.X.std(axis=0), 1.0)
        assert abs(given.test.X.mean()) > 1e-6

    def test_centred(self):
        y = tensor_data.centred(np.array([1.0, 2.0, 6.0]))
        assert y.mean() == pytest.approx(0.0, abs=1e-15)
        assert np.mean(y**2) == pytest.approx(1.0)

    def test_stored(self):
        try:
            datasets.load("wpbc", download_if_missing=False)
        except DatasetNotFoundError:
            pytest.skip("wpbc.npz is not stored here")
        given = tensor_data.split("wpbc", 0)
        assert given.train.X.shape == (60, 32)
        found = child.on_split("wpbc", 0, "l4/3", 1, 100.0)
        # As in the prototype, whose mean over ten splits has this one.
        assert found["raw"]["mse"] == pytest.approx(1213, abs=1)
        assert found["centred"]["mse"] == pytest.approx(1150, abs=1)


class TestFista:
    @pytest.mark.parametrize("step", [1e-6, 0.3, 1e4])
    def test_proximal_step(self, step):
        v = np.array([-30.0, -1e-3, 0.0, 0.2, 5.0])
        root = cube_root(v, step)
        np.testing.assert_allclose(root**3 + step * root, v, rtol=1e-9, atol=1e-15)
        for at, given in zip(root**3, v, strict=True):
            found = minimize_scalar(
                lambda x, to: 0.5 * (x - to) ** 2 + step * 0.75 * abs(x) ** (4 / 3),
                args=(given,),
                bracket=(-1.0, 1.0),
                tol=1e-12,
            )
            assert at == pytest.approx(found.x, abs=1e-6)

    @pytest.mark.parametrize("extrapolate", [False, True])
    def test_is_the_primal_of_our_dual(self, extrapolate):
        given = problem(number=6)
        F = np.ascontiguousarray(given.kernel.features(given.X, 4.0).T)
        found = list(fista_path(F, given.y, given.gammas, 1e-8, extrapolate=extrapolate))
        contraction = dual.FeatureContraction(F.T, 4.0)
        ours = list(dual.path(contraction, Squared(), given.y[:, None], given.gammas, tol=1e-10))
        for one, other in zip(found, ours, strict=True):
            assert one.gap <= 1e-8 * one.objective
            # The value is above the optimum by the gap at most.
            above = one.objective - other.objective
            assert -other.gap - 1e-12 * one.objective <= above <= one.gap + 1e-12 * one.objective


class TestTextbookNewton:
    def test_matrices_are_those_of_our_contraction(self):
        given, alpha = problem(), np.random.default_rng(3).standard_normal(14)
        F = given.kernel.features(given.X, 4.0)
        wanted = dual.FeatureContraction(F, 4.0).matrix(alpha)
        np.testing.assert_allclose(of_features(F.T)(alpha), wanted, rtol=1e-10)
        np.testing.assert_allclose(of_tensor(tensor_of(given))(alpha), wanted, rtol=1e-8, atol=1e-8)

    @pytest.mark.parametrize("tol", [1e-8, 1e-3])
    def test_gap_bounds_the_distance_from_our_solution(self, tol):
        given = problem(number=6)
        F = given.kernel.features(given.X, 4.0)
        found = list(newton_path(of_features(F.T), given.y, given.gammas, tol))
        contraction = dual.FeatureContraction(F, 4.0)
        ours = list(dual.path(contraction, Squared(), given.y[:, None], given.gammas, tol=1e-12))
        for one, other in zip(found, ours, strict=True):
            assert one.gap <= tol * one.objective
            above = one.objective - other.objective
            assert -1e-9 * one.objective <= above <= one.gap + 1e-9 * one.objective


class TestMethods:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_method(self, name):
        given = problem()
        if name == "gradient":  # thousands of steps for large values
            given = replace(given, gammas=given.gammas[:2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the Lasso's least penalties are not solved
            facts = METHODS[name].run(given)
        assert facts.get("features", 10) <= 10
        if METHODS[name].gapped:
            assert [one.gamma for one in given.solved] == given.gammas.tolist()
            assert max(one.relative for one in given.solved) <= 1e-8

    def test_methods_solve_the_same(self):
        values = []
        for name, method in METHODS.items():
            if method.gapped and name != "gradient":
                given = problem()
                method.run(given)
                values.append([one.objective for one in given.solved])
        np.testing.assert_allclose(values[1:], [values[0]] * (len(values) - 1), rtol=2e-8)

    @pytest.mark.parametrize("name", ["newton", "textbook-same", "fista"])
    def test_a_larger_gap_takes_fewer_evaluations(self, name):
        counts = []
        for tol in (1e-8, 1e-3):
            given = problem(tol=tol)
            METHODS[name].run(given)
            assert all(one.relative <= tol for one in given.solved)
            counts.append(sum(one.evaluations for one in given.solved))
        assert counts[1] < counts[0]


def given_split(rows=20):
    return Split(part(rows), part(rows, seed=1), part(rows, seed=2))


class TestModels:
    def test_same_as_the_estimator(self):
        given = part(20)
        path = models.tensor_path(kernel_of(2), given)
        values = gammas(models.NUMBER)
        for place in (20, 60):
            model = TensorKernelRegressor(
                kernel_of(2), gamma=values[place], fit_intercept=False, standardize=False
            ).fit(given.X, given.y)
            new = part(5, seed=4).X
            np.testing.assert_allclose(path.predict(new)[:, place], model.predict(new), rtol=1e-4)
            assert path.about(place)["gap"] <= 1e-8

    def test_far(self):
        assert models.far(np.r_[np.zeros(99), 1.0]) == 1
        assert models.far(np.r_[np.zeros(50), np.ones(50)]) == 0

    def test_ridge(self):
        given = part(20)
        (path,) = models.ridge(given, 2)
        K = (1.0 + given.X @ given.X.T) ** 2
        scale = given.y @ K @ given.y / (given.y @ given.y)
        penalty = scale / gammas(models.NUMBER)[30]
        fitted = K @ np.linalg.solve(K + penalty * np.eye(20), given.y)
        np.testing.assert_allclose(path.predict(given.X)[:, 30], fitted, rtol=1e-6)

    def test_lasso(self):
        (path,) = models.lasso(part(20), 1)
        assert path.predict(part(5).X).shape == (5, 100)
        assert path.about(0)["count"] == 0
        assert path.about(99)["count"] == 4  # the constant is one

    def test_nothing_is_chosen_on_the_test_part(self):
        given = given_split()
        paths = list(models.ridge(given.train, 2))
        first = models.outcome(paths, given, 0.0)
        turned = Split(given.train, given.valid, Part(given.test.X, -given.test.y))
        second = models.outcome(paths, turned, 0.0)
        assert first["place"] == second["place"]
        assert first["mse"] != second["mse"]

    def test_the_best_path_counts(self):
        given = given_split()
        bad = models.Path(lambda X: np.full((len(X), 2), np.inf))
        fair = models.Path(lambda X: np.stack([X[:, 0] + 9.0, X[:, 2]], axis=1))
        found = models.outcome([bad, fair, bad], given, 0.0)
        assert found["place"] == 1
        assert found["valid"] == pytest.approx(np.mean((given.valid.X[:, 2] - given.valid.y) ** 2))
        with pytest.raises(ValueError, match="finite error"):
            models.outcome([bad], given, 0.0)

    def test_widths_that_overflow_are_left_out(self):
        large = Part(part(8).X * 12.0, part(8).y)
        widths = [path.facts["width"] for path in models.exponential(large, 0)]
        assert widths
        assert max(widths) < max(models.WIDTHS)


def measure(kind, **order):
    settings = {"limit": 100.0, "data": "synthetic", "kernel": 1, "gammas": 3, "method": "newton"}
    return child.measure(kind, **settings | order)


class TestChild:
    @pytest.fixture(autouse=True)
    def few_calls(self, monkeypatch):
        """Time a solver twice, not for seconds, and collect no garbage of the other tests."""
        monkeypatch.setattr(child, "AGAIN", 0.0)
        monkeypatch.setattr("benchmarks.mkl.child.REPEATS", 1)
        monkeypatch.setattr("benchmarks.harness.measure.gc.collect", lambda: 0)

    @pytest.mark.parametrize("method", ["newton", "fista"])
    def test_path(self, method):
        found = measure("path", method=method)
        assert (found["status"], found["done"], found["reached"]) == ("ok", 3, 3)
        assert found["gap"] <= 1e-8
        assert found["seconds"] > 0
        assert found["peak_bytes"] > 2**20
        assert ("source" in found) == (method == "newton")
        json.dumps(found)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_losses(self, loss):
        order = {"data": "synthetic", "kernel": 2, "gammas": 3, "loss": loss}
        given = child.posed("losses", order)
        signs = set(given.y) == {-1.0, 1.0}
        assert signs == (loss in child.SIGNS)
        METHODS["newton"].run(given)
        assert child.certified(given)["reached"] == 3

    def test_scaling(self):
        order = {"rows": 30, "kernel": "exponential", "gammas": 3}
        given = child.posed("scaling", order)
        assert given.X.shape == (30, 32)
        facts = METHODS["newton-sampled"].run(given)
        assert facts["representation"] == "sampled"
        assert 0.5 < facts["mass"] <= 1.0
        assert 0.0 <= facts["error"] < 1.0

    def test_gap(self):
        found = measure("path", tol=1e-3)
        assert found["reached"] == 3
        assert 1e-8 < found["gap"] <= 1e-3

    def test_short_calls_are_repeated(self, monkeypatch):
        monkeypatch.setattr(child, "AGAIN", 60.0)
        monkeypatch.setattr(child, "MOST_CALLS", 3)
        assert len(measure("path")["later_seconds"]) == 3

    def test_what_is_not_gapped(self):
        assert "gap" not in measure("path", method="ridge")

    def test_stopped(self, monkeypatch):
        def stopped(F, y, values, tol, extrapolate):
            yield Solved(values[0], 1.0, 1e-9, 7)
            if len(values) > 2:  # all but the small problem
                raise OutOfTime

        monkeypatch.setattr("benchmarks.tensor.methods.fista_path", stopped)
        found = measure("path", method="fista", limit=5.0)
        assert found == {
            "status": "timeout",
            "limit": 5.0,
            "done": 1,
            "reached": 1,
            "gap": 1e-9,
            "evaluations": 7,
        }

    def test_tables(self):
        order = {"data": "synthetic", "seed": 0, "model": "constant", "degree": 0}
        found = child.measure("tables", limit=100.0, **order)
        given = tensor_data.split("synthetic", 0)
        assert found["raw"]["mse"] == pytest.approx(np.mean(given.test.y**2))
        left = given.test.y - given.train.y.mean()
        assert found["centred"]["mse"] == pytest.approx(np.mean(left**2))


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
    return {check.name: check.passed for check in checks(found)}


class TestBar:
    def test_paths(self):
        found = verdicts(FOUND)
        assert [found[f"degree {d}: FISTA to 1e-08"] for d in FASTER] == [True, False, True, True]
        assert [found[f"degree {d}: largest gap"] for d in FASTER] == [True, True, False, True]

    def test_figures(self):
        found = {check.name: check.found for check in checks(FOUND)}
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
        found = {check.name: check.passed for check in checks(FOUND) if check.group == "tables"}
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
        found = [check for check in checks(few) if check.group == "tables"]
        assert {check.passed for check in found} == {None}
        assert "not measured" not in {check.found for check in found}
        elsewhere = stored(*(record | {"data": "synthetic"} for record in TABLES))
        assert {check.passed for check in checks(elsewhere)} == {None}

    def test_nothing(self):
        assert set(verdicts({}).values()) == {None}
        assert {check.found for check in checks({})} == {"not measured"}

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
        for table in tables(found):
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
        return list(command.orders(parser.parse_args(options)))

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
        assert command.gaps("1e-8, 0.1") == (1e-8, 0.1)
        with pytest.raises(argparse.ArgumentTypeError, match="between 0 and 1"):
            command.gaps("2")

    def test_degrees(self):
        assert command.degrees("1, 4") == (1, 4)
        with pytest.raises(argparse.ArgumentTypeError, match="1 to 4"):
            command.degrees("5")

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
        options = ["--quick", "--part", "path", "--degrees", "1", "--methods", "newton,fista"]
        options += ["--gaps", "1e-3"]
        assert self.main(*options, "--data", "synthetic", "--check") == 0
        out = capsys.readouterr().out
        assert "20 values of gamma, synthetic, 60 rows" in out
        assert "20/20" in out
        assert "failed" not in out
