"""The comparison of online learners: the stream, passes, and what is checked."""

import hashlib
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

pytest.importorskip("resource", reason="CPU seconds need a POSIX system")

import mixnorm
from benchmarks.harness.jobs import ROOT
from benchmarks.online import child, command, data
from benchmarks.online.data import Stream
from benchmarks.online.learners import (
    METHODS,
    Learner,
    Ours,
    Outcome,
    River,
    Sklearn,
    count_bits,
    list_entries,
)
from benchmarks.online.report import check_bar, make_tables


def record(rate=1000.0, mistakes=10, *, rows=100, batched=False, **more):
    found = {"status": "ok", "rows": rows, "rate": rate, "mistakes": mistakes}
    return found | {"batched": batched, "extra_seconds": 0.5} | more


SINGLE = {"learn_one_seconds": 9e-6, "partial_fit_seconds": 3e-4}
FOUND = {
    "mnist/group": record(400_000, **SINGLE),
    "mnist/mirror": record(200_000, 105),
    "mnist/vw": record(100_000, 100),
    "mnist/sklearn-sgd": record(90_000, 33, batched=True),
    "mnist/river": record(1000.0, 7, rows=50),
    "isolet/group": record(200_000),
    "isolet/mirror": record(30_000, 106),
    "isolet/vw": record(10_000, 100),
    "isolet/river": {"status": "absent"},
    "isolet/mirror-tuned": record(50_000, 80, settings={"eta0": 2.0}),
    "isolet/vw-tuned": record(10_000, 70, settings={"learning_rate": 0.1}),
}


@pytest.fixture
def stream():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((250, 6)).astype(np.float32)
    X[rng.uniform(size=X.shape) < 0.4] = 0
    y = np.argmax(X[:, :3], axis=1)
    return Stream(X, y)


@dataclass(frozen=True)
class Counted(Learner):
    """Says how long it takes, and is slow at first."""

    needs: ClassVar[str] = "json"

    def learn(self, inputs, rows=None):
        inputs.append(rows)
        return Outcome(40, 4, 5.0 if len(inputs) == 1 else 2.0)


class TestStream:
    def test_order_and_labels(self, monkeypatch):
        X, y = np.arange(24).reshape(6, 2, 2), np.array([3, 3, 5, 5, 9, 9], dtype=np.uint8)
        monkeypatch.setattr(data, "load_parts", lambda name: (X, y, None, None))
        found = data.load("any")
        order = np.random.default_rng(0).permutation(6)
        np.testing.assert_array_equal(found.X, X.reshape(6, 4)[order])
        np.testing.assert_array_equal(found.y, (np.arange(6) // 2)[order])
        assert (found.X.dtype, found.classes) == (np.float32, 3)
        assert found.first(None) is found
        assert found.first(2).X.shape == (2, 4)

    def test_sparse_stays_sparse(self, monkeypatch):
        X = sparse.random(20, 5, density=0.3, format="csr", random_state=0)
        monkeypatch.setattr(data, "load_parts", lambda name: (X, np.arange(20), None, None))
        found = data.load("any")
        assert sparse.issparse(found.X)
        np.testing.assert_allclose(found.X.toarray(), X.toarray()[found.y], rtol=1e-6)

    def test_entries(self):
        rows = Stream(np.array([[0, 2], [0, 0]], dtype=np.float32), np.array([0, 1]))
        assert list(list_entries(rows)) == [[(1, 2.0)], []]
        assert list(list_entries(rows, zeros=True)) == [[(0, 0.0), (1, 2.0)], [(0, 0.0), (1, 0.0)]]


class TestLearners:
    @pytest.mark.parametrize("name", ["group", "plain", "p-norm", "mirror"])
    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_ours(self, stream, name, kind):
        stream = Stream(kind(stream.X), stream.y)
        found = METHODS[name].learn(stream)
        model = METHODS[name].model()
        for start in range(0, 250, 50):
            rows = slice(start, start + 50)
            model.partial_fit(stream.X[rows], stream.y[rows], classes=np.arange(3))
        assert found == Outcome(250, model.mistakes_)
        assert METHODS[name].learn(stream, 30).rows == 30

    @pytest.mark.parametrize("name", [name for name in METHODS if name.startswith("sklearn")])
    def test_sklearn(self, stream, name):
        assert METHODS[name].learn(stream) == Outcome(250)
        model, guesses = METHODS[name].model(), [np.zeros(100)]
        for part, following in (
            (slice(0, 100), slice(100, 200)),
            (slice(100, 200), slice(200, 250)),
        ):
            model.partial_fit(stream.X[part], stream.y[part], classes=[0, 1, 2])
            guesses.append(model.predict(stream.X[following]))
        wrong = np.count_nonzero(np.concatenate(guesses) != stream.y)
        assert METHODS[name].mistakes(stream, 100) == wrong
        assert METHODS[name].mistakes(stream) < wrong  # smaller batches

    def test_first_batch_is_predicted_by_zero_weights(self, stream):
        few = stream.first(100)
        assert Sklearn().mistakes(few, 100) == np.count_nonzero(few.y != 0)

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
    def test_scaled_columns(self, stream, kind, tmp_path):
        given = Stream(kind(stream.X * [1, 2, 3, 0, 5, 6]).astype(np.float32), stream.y)
        found = METHODS["sklearn-sgd"].convert(given, tmp_path)
        assert sparse.issparse(found.X) == sparse.issparse(given.X)
        assert found.X.dtype == np.float32
        largest = np.abs(sparse.csr_matrix(found.X).toarray()).max(axis=0)
        np.testing.assert_allclose(largest, [1, 1, 1, 0, 1, 1], rtol=1e-6)
        assert METHODS["sklearn-perceptron"].convert(given, tmp_path) is given

    def test_vowpal_wabbit_text(self, stream, tmp_path):
        options = METHODS["vw-text"].convert(stream, tmp_path).split()
        assert options[options.index("--oaa") + 1] == "3"
        with open(options[options.index("-d") + 1]) as file:
            label, words = file.readline().split(" | ")
        assert int(label) - 1 == stream.y[0]
        for word in words.split():
            place, value = word.split(":")
            assert stream.X[0, int(place)] == np.float32(value)

    def test_vowpal_wabbit_has_a_place_for_every_weight(self):
        def needed(features, classes):
            return count_bits(
                Stream(np.empty((1, features), dtype=np.float32), np.array([classes - 1]))
            )

        assert needed(6, 3) == 18
        assert needed(12163, 52) == 24

    def test_vowpal_wabbit(self, stream, tmp_path):
        pytest.importorskip("vowpalwabbit")
        (tmp_path / "text").mkdir()
        text, cached = METHODS["vw-text"], METHODS["vw"]
        found = cached.learn(cached.convert(stream, tmp_path))
        assert found == text.learn(text.convert(stream, tmp_path / "text"))
        assert found.rows == 250
        assert 0 < found.mistakes < 200

    @pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].grid])
    def test_grids(self, name):
        learner = METHODS[name]
        assert len(learner.grid) == 14
        chosen = learner.with_settings(learner.grid[3])
        assert chosen.settings == learner.settings | learner.grid[3]
        assert not chosen.grid

    def test_river_stops(self, stream, monkeypatch):
        pytest.importorskip("river")
        monkeypatch.setattr("benchmarks.online.learners.SECONDS", 0.0)
        found = River().learn(stream)
        assert found.rows == 100
        assert River().learn(stream, 250).rows == 250
        assert River(zeros=True).learn(stream).mistakes == found.mistakes
        assert River(scaled=True).learn(stream).rows == 100


class TestChild:
    def test_second_pass_counts(self):
        calls = []
        found = child.time_passes(Counted(), calls)
        assert calls == [None, 40]
        assert (found["seconds"], found["rate"], found["mistakes"]) == (2.0, 20.0, 4)
        assert 3.0 <= found["extra_seconds"] < 4.0
        assert not found["batched"]

    def test_passes_must_agree(self, monkeypatch):
        monkeypatch.setattr(Counted, "learn", lambda self, calls, rows: Outcome(40, rows, 1.0))
        with pytest.raises(RuntimeError, match="None mistakes in the first pass, 40 in a later"):
            child.time_passes(Counted(), [])

    def test_tuned_to_the_fewest_mistakes(self, stream):
        learner, found = child.tune(METHODS["mirror-tuned"], stream)
        best = min(found["counts"])
        assert len(found["counts"]) == len(set(map(str, METHODS["mirror-tuned"].grid)))
        assert best < max(found["counts"])
        assert learner.learn(stream).mistakes == best
        assert learner.settings == found["settings"]

    def test_no_mistakes_to_choose_by(self, stream, monkeypatch):
        monkeypatch.setattr(Ours, "mistakes", lambda self, inputs, batch: None)
        with pytest.raises(RuntimeError, match="counts no mistakes"):
            child.tune(METHODS["mirror-tuned"], stream)

    def test_source_depends_on_the_code_alone(self, tmp_path, monkeypatch):
        monkeypatch.setattr(mixnorm, "__file__", str(tmp_path / "__init__.py"))
        (tmp_path / "__init__.py").write_bytes(b"one = 1\n")
        (tmp_path / "room").mkdir()
        (tmp_path / "room" / "part.py").write_bytes(b"two = 2\n")
        found = child.hash_source()
        assert found == hashlib.sha256(b"one = 1\ntwo = 2\n").hexdigest()[:12]
        (tmp_path / "notes.txt").write_bytes(b"three")
        assert child.hash_source() == found
        (tmp_path / "room" / "part.py").write_bytes(b"two = 3\n")
        assert child.hash_source() != found

    def test_short_passes_are_repeated(self, stream):
        found = child.time_passes(METHODS["sklearn-perceptron"], stream)
        assert len(found["later_seconds"]) == 5
        assert found["batched"]
        assert found["mistakes"] == METHODS["sklearn-perceptron"].mistakes(stream)

    def test_single_rows(self, stream, monkeypatch):
        monkeypatch.setattr(child, "LEARNED", 40)
        monkeypatch.setattr(child, "FITTED", 20)
        found = child.time_single_rows(METHODS["group"], stream)
        assert 0 < found["learn_one_seconds"] < found["partial_fit_seconds"]


class TestReport:
    def passed(self):
        return {(c.group, c.name, c.asked.split()[-1]): c.passed for c in check_bar(FOUND)}

    def test_speed(self):
        found = self.passed()
        assert found["group", "mnist: rows a second", "350,000"] is True
        assert found["group", "isolet: rows a second", "250,000"] is False
        assert found["group", "mnist: speed", "vw"] is True
        assert found["group", "mnist: speed", "river"] is False
        assert found["group", "mnist: speed", "river-zeros"] is None
        assert found["group", "isolet: speed", "river"] is None
        assert ("group", "isolet: speed", "river-zeros") not in found

    def test_mirror(self):
        found = self.passed()
        assert found["mirror", "mnist: mistakes", "vw"] is True
        assert found["mirror", "mnist: speed", "vw"] is False
        assert found["mirror", "isolet: mistakes", "vw"] is False
        assert found["mirror", "isolet: speed", "vw"] is True
        assert found["mirror", "letter: speed", "vw"] is None
        assert found["mirror-tuned", "isolet: mistakes", "vw-tuned"] is False
        assert found["mirror-tuned", "isolet: speed", "vw-tuned"] is True
        assert ("mirror", "reuters_r52: mistakes", "vw") in found
        assert ("mirror", "reuters_r52: speed", "vw") not in found

    def test_single_rows(self):
        found = self.passed()
        assert found["one row", "group: learn_one", "us"] is True
        assert found["one row", "group: partial_fit", "us"] is False
        assert found["one row", "mirror: learn_one", "us"] is None

    def test_tables(self):
        console = Console(width=200, record=True, file=io.StringIO())
        for table in make_tables(FOUND):
            console.print(table)
        text = console.export_text()
        assert "400,000" in text
        assert "33*" in text
        assert "not installed" in text
        assert "300.0" in text
        assert "learning_rate=0.1" in text


class TestCommand:
    def options(self, path, *more):
        chosen = ["--parts", "passes", "--data", "letter", "--methods", "vw,river"]
        return ["online", "--json", str(path), *chosen, *more]

    def test_runs_resumes_and_reports(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        ran, path = [], tmp_path / "online.json"

        def run_module(arguments, wall):
            ran.append(json.loads(arguments[1]))
            if len(ran) == 2:
                raise RuntimeError("no such luck")
            return {key: value for key, value in record().items() if key != "status"}

        monkeypatch.setattr(command, "run_module", run_module)
        monkeypatch.setattr(Learner, "available", lambda self: True)
        assert main(self.options(path)) == 0
        assert ran == [{"data": "letter", "method": name} for name in ("vw", "river")]
        assert "no such luck" in capsys.readouterr().out
        # What failed is tried again.
        assert main(self.options(path, "--resume")) == 0
        assert [order["method"] for order in ran] == ["vw", "river", "river"]
        stored = json.loads(path.read_text())
        assert {r["status"] for r in stored["online"].values()} == {"ok"}
        assert all(check["passed"] is None for check in stored["summary"])

    def test_misses_are_told(self, tmp_path):
        from benchmarks.__main__ import main

        path = tmp_path / "online.json"
        path.write_text(json.dumps({"format": 1, "online": FOUND}))
        assert main(self.options(path, "--no-runs", "--check")) == 1
        assert main(self.options(path, "--no-runs")) == 0

    @pytest.mark.parametrize(("other", "told"), [("a", False), ("b", True)])
    def test_changes_in_between_are_reported(self, tmp_path, capsys, other, told):
        from benchmarks.__main__ import main

        path, both = tmp_path / "online.json", (record(source="a"), record(source=other))
        found = dict(zip(("mnist/group", "mnist/mirror"), both, strict=True))
        path.write_text(json.dumps({"format": 1, "online": found}))
        assert main(self.options(path, "--no-runs")) == 0
        assert ("different versions of mixnorm" in capsys.readouterr().out) == told

    def test_what_is_not_installed_is_left_out(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        monkeypatch.setattr(Learner, "available", lambda self: False)
        assert main(self.options(tmp_path / "online.json")) == 0
        assert "not installed" in capsys.readouterr().out

    def test_unknown_names(self, tmp_path):
        from benchmarks.__main__ import main

        with pytest.raises(SystemExit, match="Unknown method 'vv'"):
            main(["online", "--methods", "vv"])

    def test_learners_are_not_imported(self):
        code = "import benchmarks.online.command, json, sys; print(json.dumps(list(sys.modules)))"
        made = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not {"river", "sklearn", "vowpalwabbit"} & set(json.loads(made.stdout))
