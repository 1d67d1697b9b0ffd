"""The comparison under matrix norms: the gap that judges, the search for a tolerance, the bar."""

import io
import json
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("resource", reason="CPU limits need a POSIX system")

from benchmarks.matrix import data, gap, processes, report
from benchmarks.matrix.child import OURS, OURS_SEARCH, list_solvers
from benchmarks.matrix.classes import PEERS as CLASS_PEERS
from benchmarks.matrix.classes import TRACE_PEERS
from benchmarks.matrix.data import Place
from benchmarks.matrix.methods import (
    CALLS,
    SIZE,
    Model,
    Solver,
    compute_gaps,
    search,
    search_tolerance,
)
from benchmarks.matrix.ours import Search
from benchmarks.matrix.tasks import PEERS as TASK_PEERS


def problem(loss="squared", norm="l2,1", intercept=True):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + rng.standard_normal((30, 3)) + 1
    target = Y if loss == "squared" else Y.argmax(axis=1)
    made = gap.Problem(X, target, loss, norm, np.ones(1), 1e-6, intercept)
    return replace(made, alphas=np.array([0.2 * gap.compute_alpha_max(made)]))


@dataclass(frozen=True)
class Descent(Solver):
    """Proximal gradient for the squared l2,1 problem; ``tol`` is one over its steps."""

    needs: ClassVar[str] = "numpy"

    def convert(self, problem):
        return problem.X - problem.X.mean(axis=0), problem.target - problem.target.mean(axis=0)

    def solve(self, inputs, problem, tol):
        X, Y = inputs
        step = len(X) / np.linalg.norm(X, ord=2) ** 2
        W = np.zeros((X.shape[1], Y.shape[1]))
        for _ in range(round(1 / tol)):
            W = W - step * X.T @ (X @ W - Y) / len(X)
            size = np.linalg.norm(W, axis=1, keepdims=True)
            W *= np.maximum(0, 1 - step * problem.alphas[0] / np.maximum(size, 1e-300))
        return W


class TestGap:
    @pytest.mark.parametrize("loss", ["squared", "multinomial"])
    @pytest.mark.parametrize("norm", ["l2,1", "linf,1", "trace"])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_zero_is_optimal_from_alpha_max_on(self, loss, norm, intercept):
        made = problem(loss, norm, intercept)
        largest, zero = gap.compute_alpha_max(made), np.zeros((5, 3))
        at_zero = gap.compute_value(made, zero, largest * (1 + 1e-12))
        assert at_zero.gap == pytest.approx(0, abs=1e-12)
        below = gap.compute_value(made, zero, 0.9 * largest)
        assert below.relative == below.gap / below.objective > 1e-4

    def test_reaches_zero_at_the_solution(self):
        made = problem()
        inputs = Descent().convert(made)
        W = Descent().solve(inputs, made, 1e-3)
        found = gap.compute_value(made, W, made.alphas[0])
        assert abs(found.relative) < 1e-12

    @pytest.mark.parametrize("loss", ["squared", "multinomial"])
    @pytest.mark.parametrize("norm", ["l2,1", "linf,1", "trace"])
    def test_bounds_the_distance(self, loss, norm):
        made, rng = problem(loss, norm), np.random.default_rng(1)
        values = [
            gap.compute_value(made, scale * rng.standard_normal((5, 3)), made.alphas[0])
            for scale in (0, 0.01, 0.1, 0.3, 1) * 5
        ]
        highest_bound = max(each.objective - each.gap for each in values)
        assert highest_bound <= min(each.objective for each in values)

    @pytest.mark.parametrize("name", ["l2,1", "linf,1", "trace"])
    def test_dual_norm(self, name):
        rng = np.random.default_rng(0)
        W, V = rng.standard_normal((2, 6, 4))
        assert np.sum(W * V) <= gap.compute_norm(W, name) * gap.compute_dual_norm(V, name)

    def test_intercepts_of_classes_are_the_best(self):
        made = problem("multinomial")
        scores = made.X @ np.random.default_rng(2).standard_normal((5, 3))
        _, residual = gap._compute_loss(made, scores)
        assert np.abs(residual.sum(axis=0)).max() < 1e-12


class TestTolerance:
    def test_the_loosest_that_will_do(self):
        solver = Descent(tuple(1 / steps for steps in (1, 4, 16, 64, 256, 1024)))
        *_, found = search_tolerance(solver, problem())
        assert found["relative_gap"] <= 1e-6
        looser = solver.grid[solver.grid.index(found["tol"]) - 1]
        made = problem()
        W = solver.solve(solver.convert(made), made, looser)
        assert gap.compute_value(made, W, made.alphas[0]).relative > 1e-6

    def test_the_tightest_where_none_will_do(self):
        *_, found = search_tolerance(Descent((1.0, 0.5)), problem())
        assert found["tol"] == 0.5
        assert found["relative_gap"] > 1e-6

    def test_the_worst_gap_of_a_path_counts(self):
        made = problem("multinomial", "trace")
        zero, alpha = np.zeros((5, 3)), float(made.alphas[0])
        found = compute_gaps(made, [Model(alpha, zero), Model(10 * alpha, zero)])
        assert found["relative_gap"] == gap.compute_value(made, zero, alpha).relative
        assert (found["models"], found["rank"], found["features"]) == (2, 0, 0)


class TestPeers:
    """A peer with another objective would never reach the gap, and look slow for it."""

    @pytest.mark.parametrize("name", list(TASK_PEERS))
    def test_tasks(self, name):
        solver, made = TASK_PEERS[name], problem(intercept=False)
        pytest.importorskip(solver.needs.split(".")[0])
        (model,) = solver.models(solver.solve(solver.convert(made), made, solver.grid[-1]), made)
        assert compute_gaps(made, [model])["relative_gap"] < 1e-4

    @pytest.mark.parametrize("norm", ["l2,1", "linf,1"])
    def test_paths(self, norm):
        pytest.importorskip("spams")
        made = problem("multinomial", norm)
        made = replace(made, alphas=made.alphas * [4, 2, 1])
        solver = CLASS_PEERS["spams-path"]
        models = solver.models(solver.solve(solver.convert(made), made, 1e-6), made)
        assert [model.alpha for model in models] == made.alphas.tolist()
        assert compute_gaps(made, models)["relative_gap"] < 1e-4

    @pytest.mark.parametrize("name", list(TRACE_PEERS))
    def test_trace(self, name):
        solver, made = TRACE_PEERS[name], problem("multinomial", "trace", intercept=False)
        pytest.importorskip(solver.needs.split(".")[0])
        (model,) = solver.models(solver.solve(solver.convert(made), made, solver.grid[-1]), made)
        assert compute_gaps(made, [model])["relative_gap"] < 1e-4


class TestData:
    def test_multitask(self):
        X, Y = data.draw_multitask(0.9, n=400, d=60, tasks=3)
        assert (X.shape, Y.shape) == ((400, 60), (400, 3))
        assert np.abs(X.mean(axis=0)).max() < 1e-12
        neighbours = np.mean([np.corrcoef(X[:, j], X[:, j + 1])[0, 1] for j in range(59)])
        assert neighbours == pytest.approx(0.9, abs=0.02)

    def test_low_rank(self):
        X, Y = data.draw_low_rank(n=500, d=20, tasks=8, rank=2)
        coefficients = np.linalg.lstsq(X, Y, rcond=None)[0]
        sizes = np.linalg.svd(coefficients, compute_uv=False)
        assert sizes[1] > 2 * sizes[2]

    def test_every_problem_has_our_solver_and_names_its_peers(self):
        found = data.list_places(("multitask", "multiclass", "trace"))
        assert len(found) == len({place.key for place in found}) == 4 + 8 + 2
        assert all(next(iter(list_solvers(place))) == OURS for place in found)
        found = list_solvers(Place("multiclass", "isolet", "linf,1"))
        assert list(found) == [OURS, OURS_SEARCH, "spams-path", "spams-search"]

    @pytest.mark.parametrize("part", ["multitask", "multiclass", "trace"])
    def test_ratios_are_between_solvers_that_do_the_same_work(self, part):
        for place in data.list_places((part,)):
            known = list_solvers(place)
            for name, solver in known.items():
                ours = known[report.name_our_method(place, name)]
                assert ours.ours
                assert ours.work == solver.work


class TestSearch:
    def run(self, features):
        """Search where a penalty keeps so many features; return the result and the calls."""
        calls = []

        def fit(penalty, start):
            calls.append((penalty, start))
            W = np.zeros((100, 2))
            W[: features(penalty)] = 1
            return penalty, W

        return search(fit, 1.0, None), calls

    def test_finds_the_size(self):
        found, calls = self.run(lambda penalty: round(10 / penalty))
        assert round(10 / found[0]) == SIZE
        assert found[0] == found[1] == calls[-1][0]
        assert [penalty for penalty, _ in calls[:2]] == [0.5, 0.25]

    def test_starts_from_the_last_with_few_enough(self):
        _, calls = self.run(lambda penalty: 39 if penalty > 0.3 else 90)
        assert len(calls) == CALLS
        assert [start for _, start in calls[:4]] == [None, 0.5, 0.5, np.sqrt(0.5 * 0.25)]

    def test_ends_with_the_most_below(self):
        (penalty, _), calls = self.run(lambda penalty: 39 if penalty > 0.3 else 90)
        assert 0.3 < penalty < 0.301
        assert len(calls) == CALLS

    def test_ours_ends_with_a_model_of_that_size(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((200, 60))
        y = np.argmax(X[:, :3] + 0.5 * rng.standard_normal((200, 3)), axis=1)
        made = gap.Problem(X, y, "multinomial", "l2,1", np.ones(1), 1e-3, True)
        made = replace(made, alphas=np.array([gap.compute_alpha_max(made)]))
        (model,) = Search().models(Search().solve((X, y), made, 1e-3), made)
        assert np.count_nonzero(np.any(model.W != 0, axis=1)) == SIZE
        assert compute_gaps(made, [model])["relative_gap"] <= 1e-3


class TestProcess:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        rng = np.random.default_rng(0)
        X, Y = rng.standard_normal((30, 8)), rng.standard_normal((30, 3))
        np.save(tmp_path / "X.npy", X - X.mean(axis=0))
        np.save(tmp_path / "target.npy", Y - Y.mean(axis=0))
        return tmp_path

    def test_tunes_then_times(self, folder):
        place = Place("multitask", "independent-0.1", "l2,1")
        solver = list_solvers(place)["sklearn"]
        found = processes.measure(place, "sklearn", solver, sys.executable, folder, 60)
        assert found["status"] == "ok", found.get("message")
        assert found["relative_gap"] <= found["asked"] == 1e-6
        assert found["calls"] == 1 + len(found["later_seconds"])

    def test_failure_says_why(self, folder):
        place = Place("multitask", "independent-0.1", "l2,1")
        (folder / "X.npy").unlink()
        found = processes.measure(
            place, "sklearn", list_solvers(place)["sklearn"], sys.executable, folder, 60
        )
        assert found["status"] == "failed"
        assert "X.npy" in found["message"]

    def test_environments(self, tmp_path):
        python = tmp_path / "python"
        python.touch()
        given = {"celer": python, "adelie": tmp_path / "missing", "lightning": tmp_path / "no"}
        found = processes.find_interpreters(given, create=False)
        assert found == {"": sys.executable, "celer": str(python)}
        assert processes.is_importable(sys.executable, "sklearn.linear_model")
        assert not processes.is_importable(sys.executable, "no_such_library")


def record(seconds=1.0, **more):
    costs = {"first_seconds": seconds + 0.5, "import_seconds": 0.25, "calls": 2}
    memory = {"peak_bytes": 2**20, "peak_total_bytes": 2**30}
    found = {"relative_gap": 9e-7, "asked": 1e-6, "tol": 1e-6, "objective": 2.0, "features": 3}
    return {"status": "ok", "seconds": seconds} | costs | memory | found | more


class TestBar:
    def passed(self, found, name, truth=()):
        (check,) = [c for c in report.check_bar(found, truth) if c.name == name]
        return check.passed

    def test_best_of_all(self):
        place = "multitask/independent-0.1/l2,1"
        found = {f"{place}/{name}": record(2.0) for name in report.RIVALS}
        found |= {f"{place}/{OURS}": record(1.0), f"{place}/skglm": record(0.5)}
        assert self.passed(found, "independent-0.1") is False
        # A rival that was faster at a larger gap does not count, and leaves the figure open.
        found[f"{place}/skglm"] |= {"relative_gap": 1e-4}
        assert self.passed(found, "independent-0.1") is None
        # One that is slower at a larger gap would not be faster at the one asked for.
        found[f"{place}/skglm"] |= {"seconds": 3.0}
        assert self.passed(found, "independent-0.1") is True
        found[f"{place}/spams"] = {"status": "timeout", "limit": 300.0}
        assert self.passed(found, "independent-0.1") is True
        found[f"{place}/celer"] = {"status": "absent"}
        assert self.passed(found, "independent-0.1") is None
        assert self.passed(found, "independent-0.1: first call") is True
        assert self.passed(found, "independent-0.1: gap") is True

    def test_a_fifth(self):
        place = "multiclass/isolet/linf,1"
        path, search = "isolet, linf,1: spams-path", "isolet, linf,1: spams-search"
        found = {f"{place}/{OURS}": record(2.0), f"{place}/spams-path": record(9.9)}
        assert self.passed(found, path) is False
        found[f"{place}/spams-path"] = {"status": "timeout", "limit": 300.0}
        assert self.passed(found, path) is True
        found[f"{place}/{OURS}"] = record(100.0)
        assert self.passed(found, path) is None
        assert self.passed({}, path) is None
        # A search is compared with a search, not with the path.
        found[f"{place}/spams-search"] = record(9.9)
        assert self.passed(found, search) is None
        found[f"{place}/{OURS_SEARCH}"] = record(1.0)
        assert self.passed(found, search) is True

    def test_low_rank(self):
        found = {f"trace/low-rank/trace/{OURS}": record(130.0)}
        assert self.passed(found, "low-rank: seconds") is False
        assert self.passed(found, "low-rank: memory") is True

    def test_truth(self):
        each = {"norm": "trace", "loss": "squared", "form": "ball", "bound": True}
        truth = [each | {"difference": 1e-8}, each | {"difference": -2e-6, "bound": False}]
        assert self.passed({}, "objective", truth[:1]) is True
        assert self.passed({}, "objective", truth) is False
        assert self.passed({}, "gap >= distance", truth) is False


def test_command_line_reports_what_is_stored(tmp_path):
    from benchmarks.__main__ import main

    path = tmp_path / "results.json"
    place = "multitask/independent-0.1/l2,1"
    found = {
        f"{place}/{OURS}": record(0.1),
        f"{place}/sklearn": record(0.25, relative_gap=3e-6),
        f"{place}/celer": {"status": "absent"},
        f"{place}/spams": {"status": "timeout", "limit": 300.0, "tol": 1e-3},
        f"{place}/skglm": {"status": "failed", "message": "no"},
    }
    path.write_text(json.dumps({"format": 1, "runs": {}, "matrix": found}))
    assert main(["matrix", "--no-runs", "--json", str(path)]) == 0
    assert json.loads(path.read_text())["summary"]

    console = Console(width=200, record=True, file=io.StringIO())
    records = {key.rsplit("/", 1)[1]: each for key, each in found.items()}
    console.print(report.make_problem_table(Place("multitask", "independent-0.1", "l2,1"), records))
    text = console.export_text()
    assert "not installed" in text
    assert "2.50" in text
    assert "3.0e-06 !" in text
    assert "> 3000.00" in text


def test_what_is_run_again():
    from benchmarks.matrix.command import _is_finished

    late = {"status": "timeout", "limit": 60.0}
    assert _is_finished(record(), 300)
    assert _is_finished(late, 60)
    assert not _is_finished(late, 300)
    assert not any(_is_finished(each, 60) for each in (None, {"status": "failed"}))


def test_unknown_part():
    from benchmarks.__main__ import main

    with pytest.raises(SystemExit, match="Choose from multitask"):
        main(["matrix", "--part", "vectors"])
