"""ShareBoost on mnist beside others: images, stages, peers, and what is checked."""

import argparse
import dataclasses
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

pytest.importorskip("resource", reason="the peak of memory needs a POSIX system")

from benchmarks.mnist import child, command
from benchmarks.mnist import data as mnist_data
from benchmarks.mnist.methods import PEERS, Peer
from benchmarks.mnist.report import STAGES, check_bar, describe_status, make_tables
from benchmarks.mnist.variants import VARIANTS, Variant, choose_settings
from mixnorm.datasets import load
from mixnorm.datasets.deslant import _compute_maps
from mixnorm.exceptions import DatasetNotFoundError
from mixnorm.pools import Patches

SMALL = Variant(4, 1e-4, {"size": 3, "n_templates": 8, "masks": 4})
DEFORMED = Variant(4, 1e-4, {"size": 3, "n_templates": 8, "masks": 4}, copies=2)


@pytest.fixture
def digits(monkeypatch):
    """Have digits of 8 x 8 pixels in mnist's place."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = (X * 15).astype(np.uint8).reshape(-1, 8, 8)
    parts = (X[:600], y[:600], X[600:800], y[600:800])
    monkeypatch.setattr(mnist_data.splits, "load_parts", lambda name: parts)
    return parts


@pytest.fixture
def small(digits, monkeypatch):
    """Have small settings."""
    upright = dataclasses.replace(DEFORMED, upright=True)
    variants = {"original": SMALL, "deformed": DEFORMED, "deformed-upright": upright}
    monkeypatch.setattr(child, "choose_settings", lambda name, **given: variants[name])


class TestImages:
    def test_test_part(self, digits):
        found = mnist_data.load(rows=50)
        np.testing.assert_array_equal(found.X, digits[0][:50])
        np.testing.assert_array_equal(found.y_test, digits[3])

    def test_held_out_are_the_last(self, digits):
        found = mnist_data.load(holdout=True)
        np.testing.assert_array_equal(found.X, digits[0][:500])
        np.testing.assert_array_equal(found.X_test, digits[0][500:])
        np.testing.assert_array_equal(found.y_test, digits[1][500:])

    def test_writers_are_near_each_other(self):
        """Why the last are held out: slants are alike two images apart, and not far apart."""
        try:
            data = load("mnist", download_if_missing=False)
        except DatasetNotFoundError as error:
            pytest.skip(str(error))
        images, y = data.X[:40_000].reshape(-1, 28, 28), data.y[:40_000].astype(int)
        slants = _compute_maps(images, None)[:, 1, 0]
        slants -= np.array([slants[y == label].mean() for label in range(10)])[y]
        assert np.corrcoef(slants[:-2], slants[2:])[0, 1] > 0.4
        far = np.corrcoef(slants[:-20001], slants[20001:])[0, 1]
        assert abs(far) < 0.25

    def test_copies_come_behind(self, digits):
        images = mnist_data.load(rows=20)
        found = mnist_data.add_copies(images, 2, {"elastic": 0.3})
        assert found.X.shape == (60, 8, 8)
        assert found.X.dtype == np.uint8
        np.testing.assert_array_equal(found.X[:20], images.X)
        np.testing.assert_array_equal(found.y, np.tile(images.y, 3))
        assert found.weight is None
        assert mnist_data.add_copies(images, 0, {}) is images

    def test_originals_may_weigh_more(self, digits):
        images = mnist_data.load(rows=20)
        found = mnist_data.set_upright(mnist_data.add_copies(images, 2, {}, 3.0))
        np.testing.assert_array_equal(found.weight, np.repeat([3.0, 1.0], [20, 40]))


class TestSettings:
    def test_quick_is_smaller(self):
        for name in VARIANTS:
            full = choose_settings(name)
            quick = choose_settings(name, quick=True)
            assert quick.features < full.features
            assert quick.patches["n_templates"] < full.patches["n_templates"]
            assert (quick.alpha, quick.copies) == (full.alpha, full.copies)

    def test_more_memory_on_a_gpu(self):
        found = choose_settings("deformed", quick=True, device="cuda")
        assert found.patches["max_gib"] > 30
        assert "max_gib" not in choose_settings("deformed").patches

    def test_fits_the_memory_of_a_cpu(self):
        for name in VARIANTS:
            chosen = choose_settings(name)
            sizes = np.ravel(chosen.patches["size"])
            atoms = len(sizes) * chosen.patches["n_templates"] * chosen.patches["masks"]
            assert atoms * 60000 * (chosen.copies + 1) < Patches().max_gib * 2**30

    def test_as_many_features_as_the_bar_asks_for(self):
        assert [variant.features for variant in VARIANTS.values()] == [266] * 3 + [305] * 3


class TestChild:
    @pytest.mark.parametrize("variant", ["original", "deformed", "deformed-upright"])
    def test_ours(self, small, variant):
        found = child.measure("mixnorm", variant)
        assert found["images"] == (600 if variant == "original" else 1800)
        assert len(found["curve"]) == found["features"] == 4
        assert found["curve"][3] < found["curve"][0]
        (point,) = found["points"]
        assert (point["size"], point["error"]) == (4, found["curve"][3])
        assert point["multiply_adds"] > (15 * 64 if "upright" in variant else 4 * 9)
        assert point["rate"] > 0
        assert "gpu" not in found
        json.dumps(found)

    def test_stages_add_up(self, small):
        seconds = child.measure("mixnorm", "deformed", holdout=True)["seconds"]
        stages = sum(seconds[stage] for stage in STAGES if stage not in ("whole", "warm-up"))
        assert min(seconds.values()) > 0
        assert stages <= seconds["whole"] < stages + 0.5

    def test_model_is_that_of_a_plain_fit(self, small, digits):
        from mixnorm import ShareBoostClassifier
        from mixnorm.pools import Patches

        X, y, X_test, y_test = digits
        pool = Patches(**SMALL.patches)
        model = ShareBoostClassifier(4, alpha=1e-4, pool=pool, random_state=0).fit(X, y)
        errors = [100 * np.mean(found != y_test) for found in model.staged_predict(X_test)]
        assert child.measure("mixnorm", "original")["curve"] == pytest.approx(errors)

    def test_tensors(self, small):
        pytest.importorskip("torch")
        ours = child.measure("mixnorm", "deformed")
        found = child.measure("mixnorm", "deformed", device="cpu:0")  # torch's name
        # Copies differ by rounding, and so may templates.
        assert found["curve"] == pytest.approx(ours["curve"], abs=10)
        json.dumps(found)

    @pytest.mark.parametrize("method", ["svm", "network"])
    def test_peer(self, small, method):
        found = child.measure(method, "original")
        assert (found["images"], found["judged"]) == (600, 200)
        assert found["error"] < 30
        assert found["rate"] > 0
        assert ("vectors" in found) == (method == "svm")

    def test_boosting(self, small):
        for name in ("lightgbm", "xgboost"):
            if PEERS[name].available():
                assert child.measure(name, "original")["error"] < 30

    def test_rows_of_a_peer(self):
        images = np.full((2, 3, 3), 255, dtype=np.uint8)
        assert PEERS["lightgbm"].rows(images).dtype == np.uint8
        scaled = PEERS["svm"].rows(images)
        assert scaled.dtype == np.float32
        assert (scaled == 1).all()

    def test_long_predictions_are_made_once(self, monkeypatch):
        class Model:
            calls = 0

            def predict(self, X):
                self.calls += 1
                return X

        model, X = Model(), np.zeros(5)
        child.measure_predictions(model, X, child.Clock("cpu"))
        assert model.calls == child.REPEATS + 1
        monkeypatch.setattr(child, "LONG", -1.0)
        again = Model()
        assert child.measure_predictions(again, X, child.Clock("cpu"))[0] is X
        assert again.calls == 1


def record(*errors, whole=10.0, adds=3_000_000, rate=6000.0, **more):
    curve = list(errors)
    points = [{"size": len(curve), "error": curve[-1], "multiply_adds": adds, "rate": rate}]
    seconds = dict.fromkeys(STAGES, 1.0)
    found = {"status": "ok", "images": 60000, "judged": 10000, "features": len(curve)}
    found |= {"seconds": seconds | {"whole": whole, "warm-up": 2.0}, "curve": curve}
    return found | {"points": points, "fit_seconds": 8.0, "memory": 5.0, "threads": 2} | more


PEER = {"status": "ok", "images": 60000, "judged": 10000, "error": 1.4, "threads": 2}
FOUND = {
    "test/original/mixnorm-cpu": record(*[1.05] * 75, *[0.66] * 191),
    "test/deformed/mixnorm-cpu": record(*[1.0] * 75, *[0.47] * 230, memory=13.0, rate=4000.0),
    "test/original/mixnorm-cuda": record(*[0.6] * 266, whole=31.0, adds=3_400_000, gpu_memory=20.0),
    "test/original/svm": PEER | {"fit_seconds": 80.0, "rate": 60.0, "memory": 1, "vectors": 12345},
    "test/original/lightgbm": {"status": "absent"},
    "test/original/xgboost": {"status": "timeout", "limit": 9.0},
    "holdout/original/mixnorm-cpu": record(*[5.0] * 266),
    "test-quick/original/mixnorm-cpu": record(*[5.0] * 50),
}


class TestReport:
    def test_checks(self):
        found = {(c.group, c.name): c.passed for c in check_bar(FOUND)}
        assert found == {
            ("original, cpu", "error with 75 features"): True,
            ("original, cpu", "error with 266 features"): False,
            ("original, cpu", "whole run"): True,
            ("original, cpu", "memory"): True,
            ("original, cpu", "images a second"): True,
            ("original, cpu", "multiply-adds an image"): True,
            ("deformed, cpu", "error with 75 features"): False,
            ("deformed, cpu", "error with 305 features"): True,
            ("deformed, cpu", "memory"): False,
            ("deformed, cpu", "images a second"): False,
            ("deformed, cpu", "multiply-adds an image"): True,
            ("original, cuda", "error with 75 features"): True,
            ("original, cuda", "error with 266 features"): True,
            ("original, cuda", "whole run"): False,
            ("original, cuda", "multiply-adds an image"): False,
        }

    def test_only_ours_is_checked(self):
        few = {key: found for key, found in FOUND.items() if "test/original/mixnorm" not in key}
        assert {check.group for check in check_bar(few)} == {"deformed, cpu"}
        assert not list(check_bar({}))

    def test_tables(self):
        console = Console(width=124, record=True, file=io.StringIO())
        for table in make_tables(FOUND):
            console.print(table)
        text = console.export_text()
        assert "12,345" in text
        assert "not installed" in text
        assert "> 9 s" in text
        assert "3,400,000" in text
        row = next(line for line in text.splitlines() if line.lstrip().startswith("svm"))
        assert row.split() == ["svm", "1.40", "80", "10", "60", "100", "12,345", "1.00"]

    def test_status(self):
        assert describe_status({"status": "failed"}) == "failed"


class TestCommand:
    ORDER = {  # noqa: RUF012
        "method": "mixnorm",
        "variant": "original",
        "device": "cpu",
        "holdout": False,
        "quick": False,
    }

    def test_finished_with_the_settings_of_today(self):
        used = dataclasses.asdict(choose_settings("original"))
        record = {"order": self.ORDER, "status": "ok", "settings": json.loads(json.dumps(used))}
        assert command.is_finished(record, self.ORDER)
        assert not command.is_finished(record | {"settings": used | {"alpha": 0.5}}, self.ORDER)
        assert not command.is_finished(record | {"status": "failed"}, self.ORDER)
        assert not command.is_finished(record, self.ORDER | {"quick": True})

    def arguments(self, *given):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        return parser.parse_args(given)

    def test_orders(self):
        places = [
            command.make_key(order)
            for order in command.list_orders(self.arguments("--peers", "svm"))
        ]
        assert places == [
            "test/paper/mixnorm-cpu",
            "test/original/mixnorm-cpu",
            "test/upright/mixnorm-cpu",
            "test/deformed/mixnorm-cpu",
            "test/deformed-upright/mixnorm-cpu",
            "test/tuned/mixnorm-cpu",
            "test/original/svm",
        ]
        given = (
            "--peers",
            "",
            "--device",
            "cuda",
            "--holdout",
            "--quick",
            "--variants",
            "deformed",
        )
        (order,) = command.list_orders(self.arguments(*given))
        assert command.make_key(order) == "holdout-quick/deformed/mixnorm-cuda"

    def test_environment(self):
        found = command.make_environment(2)
        assert found["NUMBA_NUM_THREADS"] == found["OMP_NUM_THREADS"] == "2"
        assert found["SCIPY_ARRAY_API"] == "1"

    def test_unknown_names(self):
        with pytest.raises(SystemExit, match="Unknown peer 'forest'"):
            command.main(self.arguments("--peers", "forest"))
        with pytest.raises(SystemExit, match="Unknown variant 'turned'"):
            command.main(self.arguments("--variants", "turned"))

    def test_absent_and_late_peers(self, monkeypatch):
        monkeypatch.setitem(PEERS, "svm", Peer("no_such_library", lambda threads: None))
        order = {"method": "svm", "variant": "original", "device": "cpu"}
        assert command.measure(order, 10.0)["status"] == "absent"
        order["method"] = "network"
        assert command.measure(order, 1e-3) == {"order": order, "status": "timeout", "limit": 1e-3}

    def test_failure_is_told(self, monkeypatch):
        failed = subprocess.CompletedProcess([], 1, "", "Traceback\nValueError: no images")
        monkeypatch.setattr(command.subprocess, "run", lambda *a, **k: failed)
        order = {"method": "mixnorm", "variant": "original", "device": "cpu"}
        assert "no images" in command.describe(command.measure(order, 1.0))

    def test_what_is_stored_is_not_run_again(self, monkeypatch, tmp_path, capsys):
        from benchmarks.__main__ import main

        made = []

        def measure(order, limit):
            made.append(command.make_key(order))
            found = record(*[5.0] * 266) if order["method"] == "mixnorm" else {"status": "absent"}
            return found | {"order": order}

        monkeypatch.setattr(command, "measure", measure)
        path = tmp_path / "results.json"
        call = ["mnist", "--variants", "original", "--peers", "xgboost", "--json", str(path)]
        assert main(call) == 0
        assert main([*call, "--resume", "--check"]) == 1
        assert made == ["test/original/mixnorm-cpu", *["test/original/xgboost"] * 2]
        capsys.readouterr()
        assert main([*call, "--no-runs", "--check"]) == 1
        assert "not installed" in capsys.readouterr().out
        names = [check["name"] for check in json.loads(path.read_text())["summary"]]
        assert "error with 266 features" in names


def test_modules_need_no_peer():
    blocked = "import sys; sys.modules.update(dict.fromkeys(['lightgbm', 'xgboost', 'torch']))"
    code = f"{blocked}; import benchmarks.mnist.child, benchmarks.mnist.command"
    subprocess.run([sys.executable, "-c", code], cwd=command.ROOT, check=True)
