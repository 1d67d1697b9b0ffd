"""The comparison of tensor kernels with other solvers: methods, models, and what is checked."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

from benchmarks.harness.limit import OutOfTime
from benchmarks.tensor import child, models
from benchmarks.tensor import data as tensor_data
from benchmarks.tensor.data import Part, Split
from benchmarks.tensor.fista import Solved, run_fista, solve_cubic
from benchmarks.tensor.methods import METHODS, Problem, list_gammas, make_kernel
from benchmarks.tensor.methods import compute_tensor as tensor_of
from benchmarks.tensor.newton import apply_features, apply_tensor, run_newton
from benchmarks.tensor.report import LOSSES
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
        given.X, tensor_data.centre(given.y), make_kernel(degree), list_gammas(number), **other
    )


class TestData:
    def test_parts(self):
        given = tensor_data.make_split("synthetic", 3)
        sizes = [len(one.y) for one in (given.train, given.valid, given.test)]
        assert sizes == [60, 60, 74]
        np.testing.assert_allclose(given.train.X.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(given.train.X.std(axis=0), 1.0)
        assert abs(given.test.X.mean()) > 1e-6

    def test_centred(self):
        y = tensor_data.centre(np.array([1.0, 2.0, 6.0]))
        assert y.mean() == pytest.approx(0.0, abs=1e-15)
        assert np.mean(y**2) == pytest.approx(1.0)

    def test_stored(self):
        try:
            datasets.load("wpbc", download_if_missing=False)
        except DatasetNotFoundError:
            pytest.skip("wpbc.npz is not stored here")
        given = tensor_data.make_split("wpbc", 0)
        assert given.train.X.shape == (60, 32)
        found = child.measure_split("wpbc", 0, "l4/3", 1, 100.0)
        # As in the prototype, whose mean over ten splits has this one.
        assert found["raw"]["mse"] == pytest.approx(1213, abs=1)
        assert found["centred"]["mse"] == pytest.approx(1150, abs=1)


class TestFista:
    @pytest.mark.parametrize("step", [1e-6, 0.3, 1e4])
    def test_proximal_step(self, step):
        v = np.array([-30.0, -1e-3, 0.0, 0.2, 5.0])
        root = solve_cubic(v, step)
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
        found = list(run_fista(F, given.y, given.gammas, 1e-8, extrapolate=extrapolate))
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
        np.testing.assert_allclose(apply_features(F.T)(alpha), wanted, rtol=1e-10)
        np.testing.assert_allclose(
            apply_tensor(tensor_of(given))(alpha), wanted, rtol=1e-8, atol=1e-8
        )

    @pytest.mark.parametrize("tol", [1e-8, 1e-3])
    def test_gap_bounds_the_distance_from_our_solution(self, tol):
        given = problem(number=6)
        F = given.kernel.features(given.X, 4.0)
        found = list(run_newton(apply_features(F.T), given.y, given.gammas, tol))
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
        path = models.fit_tensor_path(make_kernel(2), given)
        values = list_gammas(models.NUMBER)
        for place in (20, 60):
            model = TensorKernelRegressor(
                make_kernel(2), gamma=values[place], fit_intercept=False, standardize=False
            ).fit(given.X, given.y)
            new = part(5, seed=4).X
            np.testing.assert_allclose(path.predict(new)[:, place], model.predict(new), rtol=1e-4)
            assert path.about(place)["gap"] <= 1e-8

    def test_far(self):
        assert models.count_far(np.r_[np.zeros(99), 1.0]) == 1
        assert models.count_far(np.r_[np.zeros(50), np.ones(50)]) == 0

    def test_ridge(self):
        given = part(20)
        (path,) = models.fit_ridge(given, 2)
        K = (1.0 + given.X @ given.X.T) ** 2
        scale = given.y @ K @ given.y / (given.y @ given.y)
        penalty = scale / list_gammas(models.NUMBER)[30]
        fitted = K @ np.linalg.solve(K + penalty * np.eye(20), given.y)
        np.testing.assert_allclose(path.predict(given.X)[:, 30], fitted, rtol=1e-6)

    def test_lasso(self):
        (path,) = models.fit_lasso(part(20), 1)
        assert path.predict(part(5).X).shape == (5, 100)
        assert path.about(0)["count"] == 0
        assert path.about(99)["count"] == 4  # the constant is one

    def test_nothing_is_chosen_on_the_test_part(self):
        given = given_split()
        paths = list(models.fit_ridge(given.train, 2))
        first = models.choose_model(paths, given, 0.0)
        turned = Split(given.train, given.valid, Part(given.test.X, -given.test.y))
        second = models.choose_model(paths, turned, 0.0)
        assert first["place"] == second["place"]
        assert first["mse"] != second["mse"]

    def test_the_best_path_counts(self):
        given = given_split()
        bad = models.Path(lambda X: np.full((len(X), 2), np.inf))
        fair = models.Path(lambda X: np.stack([X[:, 0] + 9.0, X[:, 2]], axis=1))
        found = models.choose_model([bad, fair, bad], given, 0.0)
        assert found["place"] == 1
        assert found["valid"] == pytest.approx(np.mean((given.valid.X[:, 2] - given.valid.y) ** 2))
        with pytest.raises(ValueError, match="finite error"):
            models.choose_model([bad], given, 0.0)

    def test_widths_that_overflow_are_left_out(self):
        large = Part(part(8).X * 12.0, part(8).y)
        widths = [path.facts["width"] for path in models.fit_exponential(large, 0)]
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
        given = child.make_problem("losses", order)
        signs = set(given.y) == {-1.0, 1.0}
        assert signs == (loss in child.SIGNS)
        METHODS["newton"].run(given)
        assert child.collect_certificate(given)["reached"] == 3

    def test_scaling(self):
        order = {"rows": 30, "kernel": "exponential", "gammas": 3}
        given = child.make_problem("scaling", order)
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

        monkeypatch.setattr("benchmarks.tensor.methods.run_fista", stopped)
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
        given = tensor_data.make_split("synthetic", 0)
        assert found["raw"]["mse"] == pytest.approx(np.mean(given.test.y**2))
        left = given.test.y - given.train.y.mean()
        assert found["centred"]["mse"] == pytest.approx(np.mean(left**2))
