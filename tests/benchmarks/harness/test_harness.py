import json
import sys

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("resource", reason="CPU limits need a POSIX system")

from benchmarks.harness import splits
from benchmarks.harness.jobs import Job, Store, run_job, run_jobs
from benchmarks.harness.measure import measure_call
from benchmarks.harness.methods import bisect_penalty, count_rows
from benchmarks.shareboost import bar
from benchmarks.shareboost.results import Results


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)).astype(np.float32)
    y = np.repeat([0, 0, 0, 1], 10)
    split = splits.Split(X, y, X[:20], np.repeat([0, 1], 10))
    splits.save(split, tmp_path / "tiny")
    return tmp_path / "tiny"


def record(data, method, size, resampling=0, *, error=10.0, seconds=1.0, sizes=None, **more):
    points = [
        {"size": s, "features": s, "error": error, "share": s / size} for s in sizes or [size]
    ]
    costs = {"seconds": seconds, "first_seconds": seconds + 0.5, "import_seconds": 0.25}
    memory = {"peak_bytes": 500, "x_bytes": 1000, "peak_total_bytes": 2000}
    place = {"data": data, "method": method, "size": size, "resampling": resampling}
    return place | {"status": "ok", "points": points} | costs | memory | more


def by_key(*records):
    return {"{data}/{method}/{size}/{resampling}".format(**r): r for r in records}


class TestRunJob:
    def test_reports_every_size_of_a_path(self, fake_suite, folder):
        found = run_job(Job(fake_suite, "tiny", "majority", 3), folder, limit=60)
        assert found["status"] == "ok"
        assert [point["size"] for point in found["points"]] == [1, 2, 3]
        assert [point["error"] for point in found["points"]] == [50.0] * 3
        assert found["calls"] == 1 + len(found["later_seconds"]) == 6
        assert found["seconds"] == np.median(found["later_seconds"])
        assert found["x_bytes"] == 40 * 6 * 4

    def test_second_call_is_reported_and_first_kept(self, fake_suite, folder):
        found = run_job(Job(fake_suite, "tiny", "extra", 1), folder, limit=60)
        assert found["first_seconds"] >= 0.2
        assert found["seconds"] < 0.15

    @pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark is Linux's")
    def test_peak_memory(self, fake_suite, folder):
        found = run_job(Job(fake_suite, "tiny", "heavy", 1), folder, limit=60)
        assert 60 * 2**20 < found["peak_bytes"] < 80 * 2**20
        assert found["peak_total_bytes"] > found["peak_bytes"]

    def test_limit(self, fake_suite, folder):
        found = run_job(Job(fake_suite, "tiny", "slow", 1), folder, limit=0.4)
        assert found["status"] == "timeout"
        assert found["limit"] == 0.4

    def test_stopped_in_second_call_keeps_first(self, fake_suite, folder):
        found = run_job(Job(fake_suite, "tiny", "slow-again", 1), folder, limit=0.4)
        assert found["status"] == "ok"
        assert found["calls"] == 1

    def test_failure_says_why(self, fake_suite, folder):
        found = run_job(Job(fake_suite, "tiny", "failing", 1), folder, limit=60)
        assert found["status"] == "failed"
        assert "no such luck" in found["message"]


class TestStore:
    def test_writes_as_results_come_and_resumes(self, fake_suite, folder, tmp_path, monkeypatch):
        path = tmp_path / "deep" / "results.json"
        jobs = [Job(fake_suite, "tiny", "majority", 2, r) for r in (0, 1)]
        steps = run_jobs(jobs, {"tiny": folder}, Store(path), 60)
        job, _, fresh = next(steps)
        assert fresh
        assert list(json.loads(path.read_text())["runs"]) == [job.key]

        again = Store(path, resume=True)
        assert [fresh for *_, fresh in run_jobs(jobs, {"tiny": folder}, again, 60)] == [False, True]
        assert len(json.loads(path.read_text())["runs"]) == 2
        assert not list(path.parent.glob("*.partial"))

    def test_starts_afresh_without_resume(self, tmp_path):
        path = tmp_path / "results.json"
        Store(path).add(Job("s", "d", "m", 1), {"status": "ok"})
        assert not Store(path).runs
        assert Store(path, resume=True).runs

    def test_failures_are_tried_again(self, tmp_path, monkeypatch):
        store, job = Store(), Job("s", "d", "m", 1)
        store.add(job, {"status": "failed", "message": ""})
        monkeypatch.setattr("benchmarks.harness.jobs.run_job", lambda *_: {"status": "ok"})
        assert [fresh for *_, fresh in run_jobs([job], {"d": tmp_path}, store, 60)] == [True]
        assert store.runs[job.key]["status"] == "ok"

    def test_resamplings_keep_the_settings_of_all_rows(self, tmp_path, monkeypatch):
        given = []

        def run(job, folder, limit, tuned=None):
            given.append(tuned)
            return {"status": "ok", "tuned": {"C": 2.0}}

        monkeypatch.setattr("benchmarks.harness.jobs.run_job", run)
        jobs = [Job("s", "d", "m", 5, r) for r in (0, 1)]
        assert len(list(run_jobs(jobs, {"d": tmp_path}, Store(), 60))) == 2
        assert given == [None, {"C": 2.0}]

    def test_larger_sizes_after_a_timeout_are_not_run(self, tmp_path, monkeypatch):
        def run(job, folder, limit):
            return {"status": "timeout", "limit": limit} if job.size == 10 else {"status": "ok"}

        monkeypatch.setattr("benchmarks.harness.jobs.run_job", run)
        jobs = [Job("s", "d", "m", size) for size in (5, 10, 20)]
        found = [r for _, r, _ in run_jobs(jobs, {"d": tmp_path}, Store(), 300)]
        assert [r["status"] for r in found] == ["ok", "timeout", "timeout"]
        assert found[2]["inferred"]

    def test_other_format_is_refused(self, tmp_path):
        path = tmp_path / "results.json"
        path.write_text('{"format": 0}')
        with pytest.raises(ValueError, match="format 0"):
            Store(path, resume=True)


class TestResults:
    def test_mean_and_standard_error(self):
        runs = [record("d", "m", 5, r, error=e) for r, e in enumerate((10.0, 12.0, 14.0))]
        row = Results(by_key(*runs)).row("d", "m", 5)
        assert row.error == 12.0
        assert row.deviation == pytest.approx(2 / np.sqrt(3))
        assert (row.resamplings, row.features, row.seconds) == (3, 5, 1.0)
        assert row.extra == 0.75
        assert row.peak_share == 0.5

    def test_ratio_is_over_the_whole_path(self):
        ours = record("d", "mixnorm", 40, seconds=0.5, sizes=[5, 40])
        theirs = [record("d", "peer", size, seconds=2.0) for size in (5, 40)]
        results = Results(by_key(ours, *theirs))
        assert results.whole("d", "peer").seconds == 4.0
        assert results.whole_ratio("d", "peer") == 8.0
        assert results.row("d", "mixnorm", 5).seconds == pytest.approx(0.0625)
        assert results.size_ratio(results.row("d", "peer", 5)) == pytest.approx(32.0)

    def test_ratio_to_a_peer_taken_less_far(self):
        ours = [record("d", "mixnorm", size, seconds=size / 40, sizes=[5, 10]) for size in (10, 40)]
        results = Results(by_key(*ours, record("d", "peer", 10, seconds=3.0)))
        assert results.whole_ratio("d", "peer") == 12.0

    def test_a_search_is_set_beside_a_search(self):
        ours = [
            record("d", "mixnorm", 40, seconds=1.0),
            record("d", "mixnorm-tuned", 40, seconds=1.0, search_seconds=4.0),
        ]
        peer = record("d", "peer-tuned", 40, seconds=5.0, search_seconds=45.0)
        assert Results(by_key(*ours, peer)).whole_ratio("d", "peer-tuned") == 10.0
        assert Results(by_key(ours[0], peer)).whole_ratio("d", "peer-tuned") is None

    def test_best_of_the_others_is_named(self):
        errors = {"mixnorm": 1.0, "mixnorm-tuned": 1.5, "lightgbm": 2.0, "rfe": 3.0}
        runs = [record("d", name, 40, error=error) for name, error in errors.items()]
        assert Results(by_key(*runs)).best_other("d", 40) == (2.0, "lightgbm")
        assert Results(by_key(*runs[:2])).best_other("d", 40) is None

    def test_ratio_at_equal_error(self):
        ours = record("d", "mixnorm", 40, seconds=4.0, sizes=[10, 20, 40])
        for point, error in zip(ours["points"], (30.0, 10.0, 5.0), strict=True):
            point["error"] = error
        results = Results(by_key(ours, record("d", "peer", 40, error=10.0, seconds=8.0)))
        assert results.equal_error(results.row("d", "peer", 40)) == (20, 4.0)

    def test_timeout_is_a_lower_bound(self):
        ours = record("d", "mixnorm", 40, seconds=2.0)
        late = {"data": "d", "method": "peer", "size": 40, "resampling": 0}
        results = Results(by_key(ours, late | {"status": "timeout", "limit": 300.0}))
        row = results.row("d", "peer", 40)
        assert row.stopped
        assert results.size_ratio(row) == results.whole_ratio("d", "peer") == 150.0
        assert results.whole("d", "peer").stopped

    def test_not_run(self):
        assert Results({}).row("d", "m", 5) is None


class TestBar:
    def passed(self, runs, group, start):
        found = bar.check_bar(Results(by_key(*runs)), {"10": {"share": 0.4, "rate": 4, "gemm": 10}})
        (check,) = [c for c in found if c.group == group and c.name.startswith(start)]
        return check.passed

    def test_times(self):
        runs = [
            record("digits", "mixnorm", 40, seconds=0.1),
            record("digits", "abess-10", 40, seconds=6.0),
            record("digits", "skscope", 40, seconds=1.0),
        ]
        assert self.passed(runs, "time", "digits: abess-10") is True
        assert self.passed(runs, "time", "digits: skscope") is False
        assert self.passed(runs, "time", "isolet: abess-10") is None

    def test_errors_are_compared_on_common_resamplings(self):
        runs = [record("digits", "mixnorm", 40, r, error=e) for r, e in enumerate((4.0, 9.0))]
        runs.append(record("digits", "abess-10", 40, 0, error=3.0))
        assert self.passed(runs, "error", "digits at 40") is True
        runs.append(record("digits", "abess-10", 40, 1, error=3.0))
        assert self.passed(runs, "error", "digits at 40") is False
        assert self.passed(runs, "error", "better than all") is None

    def test_better_on_three(self):
        def runs(wins):
            for place, data in enumerate(bar.DENSE):
                yield record(data, "mixnorm", 40, error=2.0)
                yield record(data, "skscope", 40, error=3.0 if place < wins else 1.0)

        assert self.passed(list(runs(3)), "error", "better than all") is True
        assert self.passed(list(runs(2)), "error", "better than all") is False

    def test_rate_and_memory(self):
        runs = [record("isolet", "mixnorm", 40, peak_bytes=501)]
        assert self.passed(runs, "memory", "isolet") is False
        assert self.passed(runs, "rate", "selection, 10") is True
        assert self.passed(runs, "rate", "selection, 26") is None

    def test_sparse(self):
        runs = [record("reuters_r52", "mixnorm", 60, seconds=9.0, peak_total_bytes=2**30)]
        assert self.passed(runs, "sparse", "reuters_r52 to 60: seconds") is True
        assert self.passed(runs, "sparse", "reuters_r52 to 60: memory") is False


class TestPlan:
    def test_paths_are_one_job_and_sizes_many(self):
        from benchmarks.shareboost.command import plan

        jobs = plan(["digits"], ["mixnorm", "abess-10"], (5, 40), 2)
        assert [job.key for job in jobs] == [
            "digits/mixnorm/40/0",
            "digits/abess-10/5/0",
            "digits/abess-10/40/0",
            "digits/mixnorm/40/1",
            "digits/abess-10/5/1",
            "digits/abess-10/40/1",
        ]

    def test_what_is_left_out_and_what_is_added(self):
        from benchmarks.shareboost.command import plan

        names = ["mixnorm", "skscope", "sequential", "spams"]
        keys = [job.key for job in plan(["mnist", "reuters_r52"], names, (5, 20), 1)]
        assert keys == [
            "mnist/mixnorm/10/0",
            "mnist/mixnorm/20/0",
            "mnist/skscope/5/0",
            "mnist/spams/5/0",
            "mnist/spams/20/0",
            "reuters_r52/mixnorm/20/0",
            "reuters_r52/mixnorm/60/0",
            "reuters_r52/skscope/20/0",
        ]


def test_command_line_lists_and_reports(tmp_path, capsys):
    from benchmarks.__main__ import main

    assert main(["shareboost", "--list"]) == 0
    assert "abess-10" in capsys.readouterr().out
    path = tmp_path / "results.json"
    store = Store(path)
    for method, seconds in (("mixnorm", 0.1), ("abess-10", 1.0)):
        job = Job("benchmarks.shareboost.command", "digits", method, 40)
        store.add(job, record("digits", method, 40, seconds=seconds))
    options = ["--json", str(path), "--no-runs", "--methods", "mixnorm"]
    assert main(["shareboost", *options, "--check"]) == 1
    summary = json.loads(path.read_text())["summary"]
    (ratio,) = [check for check in summary if check["name"].startswith("digits: abess-10")]
    assert ratio["passed"] is False
    assert ratio["found"].startswith("10.0")


class TestData:
    def test_resampling(self):
        y = np.repeat([0, 1, 2], [50, 9, 1])
        assert np.array_equal(splits.resample(y, 0), np.arange(60))
        rows = splits.resample(y, 1)
        assert np.bincount(y[rows]).tolist() == [45, 8, 1]
        assert len(np.unique(rows)) == len(rows)
        assert np.array_equal(rows, splits.resample(y, 1))
        assert not np.array_equal(rows, splits.resample(y, 2))

    def test_columns_constant_on_a_resampling_are_dropped(self, tmp_path):
        y = np.zeros(20, dtype=int)
        X = np.ones((20, 3), dtype=np.float32)
        X[:, 0] = np.arange(20)
        left_out = np.setdiff1d(np.arange(20), splits.resample(y, 1))[0]
        X[left_out, 2] = 5  # varies only through a row that this resampling leaves out
        splits.save(splits.Split(X, y, X[:4], y[:4]), tmp_path)
        assert splits.read(tmp_path).X.shape == (20, 3)
        split = splits.read(tmp_path, 1)
        assert split.X.shape == (18, 1)
        assert split.X_test.shape == (4, 1)

    def test_products_and_standardising(self):
        X = np.array([[1.0, 2.0, 7.0], [3.0, 4.0, 7.0], [5.0, 9.0, 7.0]])
        products = splits.add_products(X)
        assert products.shape == (3, 9)
        assert products[1].tolist() == [3, 4, 7, 9, 12, 21, 16, 28, 49]
        train, test = splits.standardise(X, X[:1])
        assert train.dtype == np.float32
        assert train.flags.c_contiguous
        assert train.shape == (3, 2)
        np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(train.std(axis=0), 1, rtol=1e-6)
        np.testing.assert_array_equal(test[0], train[0])

    def test_sparse_sets_stay_sparse(self, tmp_path):
        X = sparse.random(20, 5, density=0.3, format="csr", dtype=np.float32, random_state=0)
        splits.save(splits.Split(X, np.arange(20) % 2, X[:5], np.arange(5) % 2), tmp_path)
        split = splits.read(tmp_path, 1)
        assert sparse.issparse(split.X)
        assert split.X.shape == (18, 5)
        assert split.nbytes == split.X.data.nbytes + split.X.indices.nbytes + split.X.indptr.nbytes


def test_bisection_finds_the_size():
    calls = []

    def count(penalty):
        calls.append(penalty)
        return int(min(100, 1 / penalty))

    assert count(bisect_penalty(count, 20, start=2.0)) == 20
    assert len(calls) < 15


def test_bisection_does_not_pass_the_size():
    assert bisect_penalty(lambda p: 7 if p < 0.5 else 3, 5, start=2.0) >= 0.5


def test_used_rows():
    assert count_rows(np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])) == 2


def test_measured_counts_cpu_seconds():
    _, cost = measure_call(lambda: sum(range(10**6)))
    assert 0 < cost.seconds < 10
    assert cost.total_bytes >= cost.peak_bytes


def test_slope():
    from benchmarks.shareboost.growth import fit_slope

    assert fit_slope([1, 2, 4, 8], [3, 12, 48, 192]) == pytest.approx(2)
