"""The benchmark of memory: what is drawn, what is measured, what is printed."""

import io
import json

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

pytest.importorskip("resource", reason="the resident peak needs a POSIX system")

from benchmarks.memory import child, command


class TestData:
    def test_draw(self):
        X, y = child.draw(1500, 30)
        again, _ = child.draw(1500, 30)
        np.testing.assert_array_equal(X, again)
        assert (X.dtype, X.shape) == (np.uint8, (1500, 30))
        assert np.mean(X != 0) == pytest.approx(child.DENSITY, abs=0.01)
        assert len(np.unique(y)) == child.CLASSES

    @pytest.mark.parametrize("kind", child.KINDS)
    def test_kinds(self, kind, tmp_path):
        X, _ = child.draw(50, 8)
        found = child.KINDS[kind](X, tmp_path / "data")
        dense = found.toarray() if sparse.issparse(found) else np.asarray(found)
        unit = 1 if dense.dtype.kind in "ui" else 255
        np.testing.assert_allclose(dense * unit, X, rtol=1e-6)
        assert sparse.issparse(found) == (kind in ("CSR", "CSC"))

    def test_kinds_have_the_layout_of_their_name(self, tmp_path):
        X, _ = child.draw(50, 8)
        made = {kind: make(X, tmp_path / kind) for kind, make in child.KINDS.items()}
        assert made["float32"].flags.c_contiguous
        assert made["float32, Fortran"].flags.f_contiguous
        assert made["float64, Fortran"].flags.f_contiguous
        for kind, precision in (
            ("read-only map", "float32"),
            ("float64, read-only map", "float64"),
        ):
            assert not made[kind].flags.writeable
            assert isinstance(made[kind], np.memmap)
            assert str(made[kind].dtype) == precision
        assert (made["CSR"].format, made["CSC"].format) == ("csr", "csc")
        kinds = ("float32", "float64", "uint8", "int32", "read-only map", "CSR")
        types = [str(made[kind].dtype) for kind in kinds]
        assert types == ["float32", "float64", "uint8", "int32", "float32", "float32"]

    def test_bytes(self):
        X = sparse.csr_array(np.eye(4, dtype=np.float32))
        expected = 4 * 4 + X.indices.nbytes + X.indptr.nbytes
        assert child.count_bytes(X) == expected
        assert child.count_bytes(np.ones((3, 2))) == 48


class TestMeasure:
    def test_cases_are_known(self):
        assert list(command.CASES) == list(child.ESTIMATORS)
        for kinds in command.CASES.values():
            assert set(kinds) <= set(child.KINDS)

    def test_a_copy_is_seen(self, monkeypatch):
        """A fit that copies ``X`` is found to need it once more; one that does not, is not."""
        import mixnorm

        class Copies:
            def fit(self, X, y):
                self.kept = X.copy()

        class Keeps:
            def fit(self, X, y):
                self.kept = X

        monkeypatch.setitem(child.ESTIMATORS, "GroupPerceptron", {})
        for kind, low, high in ((Copies, 0.9, 1.3), (Keeps, 0.0, 0.3)):
            monkeypatch.setattr(mixnorm, "GroupPerceptron", kind, raising=False)
            found = child.measure("GroupPerceptron", "float32", 20_000, 500)
            assert found["x_bytes"] == 4 * 20_000 * 500
            assert low <= found["peak_bytes"] / found["x_bytes"] <= high

    def test_the_call_is_the_one_asked_for(self, monkeypatch):
        import mixnorm

        calls = []

        class Counts:
            def partial_fit(self, X, y):
                calls.append(len(y))

        monkeypatch.setitem(child.ESTIMATORS, "GroupPerceptron", {})
        monkeypatch.setattr(mixnorm, "GroupPerceptron", Counts, raising=False)
        child.measure("GroupPerceptron", "float64", 70, 5, call="partial_fit")
        assert calls == [child.WARM_UP, 70]

    def test_process(self):
        found = command.measure("MirrorDescentClassifier", "uint8", 600, 20)
        assert found["status"] == "ok", found.get("message")
        assert found["x_bytes"] == 600 * 20


class TestCommand:
    def options(self, path, *more):
        shape = ["--rows", "10", "--columns", "4", "--estimators", "MixedNormClassifier"]
        return ["memory", "--json", str(path), *shape, *more]

    def test_runs_resumes_and_reports(self, tmp_path, monkeypatch, capsys):
        from benchmarks.__main__ import main

        ran, path = [], tmp_path / "memory.json"

        def run_module(arguments):
            ran.append(json.loads(arguments[1])["kind"])
            if len(ran) == 2:
                raise RuntimeError("no such luck")
            return {"x_bytes": 2**20, "peak_bytes": 3 * 2**20, "seconds": 0.5}

        monkeypatch.setattr(command, "run_module", run_module)
        assert main(self.options(path)) == 1
        assert ran == ["float32", "float64", "CSR"]
        assert "no such luck" in capsys.readouterr().out
        # What failed is tried again.
        assert main(self.options(path, "--resume")) == 0
        assert ran[3:] == ["float64"]
        assert "3.00" in capsys.readouterr().out

    def test_unknown_names(self):
        from benchmarks.__main__ import main

        with pytest.raises(SystemExit, match="Unknown estimator 'SVC'"):
            main(["memory", "--estimators", "SVC"])

    def test_table(self):
        shape = {"rows": 10, "columns": 4}
        records = {
            "a": shape | {"estimator": "A", "kind": "CSR", "status": "failed", "message": "no"},
            "b": shape
            | {"estimator": "A", "kind": "uint8", "status": "ok", "seconds": 1.0}
            | {"x_bytes": 4 * 2**20, "peak_bytes": 2**20},
        }
        console = Console(width=200, record=True, file=io.StringIO())
        console.print(command.make_table(records))
        text = console.export_text()
        assert "0.25" in text
        assert "failed" in text
