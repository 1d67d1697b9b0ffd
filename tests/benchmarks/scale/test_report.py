"""Figures and ratios beside the bar, from made-up measurements."""

import io

import pytest
from rich.console import Console

pytest.importorskip("resource", reason="the CPU seconds of a process need a POSIX system")

from benchmarks.scale import report

GIB = 2**30


def make_records():
    """Return made-up records of all runs, at the full sizes."""

    def fit(wall, **more):
        return {"status": "ok", "wall": wall, "cpu": wall, "selected": [3, 1], "bits": "abc"} | {
            "error": 33.0,
            "loss": 1.0,
            "anonymous_peak": 0.5 * GIB,
            "resident_peak": 6 * GIB,
            "bytes_read": 300,
            "table_bytes": 100,
            **more,
        }

    records = {
        "single/memory": fit(50.0, bits="other"),
        "single/1 GiB": fit(100.0, row_file_bytes=2 * GIB),
        "single/4 GiB": fit(80.0, anonymous_peak=5 * GIB),
        "cluster/1": fit(90.0),
        "cluster/2": fit(50.0),
        "kill/2": fit(80.0, killed_after=16.7),
        "peers/mixnorm": fit(10.0),
        "peers/xgboost.dask": {"status": "timeout", "limit": 330, "order": {"limit": 300}},
        "peers/lightgbm.dask": fit(40.0),
        "peers/dask_ml": {"status": "ok", "wall": 70.0, "error_all": 32.4, "all_seconds": 60.0},
        "expression/blocks": fit(200.0),
        "norm/memory": fit(20.0, gap=0.0),
        "norm/4 GiB": fit(30.0, gap=4e-4),
    }
    for rows in (10, 30, 100):
        records[f"growth/rows/{rows}"] = fit(float(rows))
    for columns in (10, 100):
        records[f"growth/columns/{columns}"] = fit(columns**1.5)
    return records


class TestBar:
    def find(self, records=None, **options):
        checked = report.check_bar(records or make_records(), 2.0, **options)
        return {f"{each.group}: {each.name}": each for each in checked}

    @pytest.mark.parametrize(
        ("name", "text", "passed"),
        [
            ("single: 1 GiB: seconds, to those in memory", "2.00 (100.0 s to 50.0 s)", True),
            ("single: 4 GiB: seconds, to those in memory", "1.60 (80.0 s to 50.0 s)", False),
            ("single: 1 GiB: memory beyond the page cache", "0.50 GiB", True),
            ("single: 4 GiB: memory beyond the page cache", "5.00 GiB", False),
            ("single: 1 GiB: Parquet read, to the table", "3.00 (row files 2.00 GiB)", True),
            ("single: 1 GiB: features of the fit in memory", "the same", True),
            ("cluster: 2 workers: speed, to one", "1.80 (90.0 s to 50.0 s)", True),
            ("cluster: 2 workers: weights of one", "same bits", True),
            ("cluster: 2 workers: weights of threads", "same bits", True),
            (
                "kill: seconds, to those with no kill",
                "1.60 (80.0 s to 50.0 s, killed at 16.7 s)",
                False,
            ),
            ("kill: weights of the run with no kill", "same bits", True),
            (
                "peers: error at our size, less dask_ml's on all columns",
                "+0.60 (33.00 % to 32.40 %)",
                False,
            ),
            ("peers: xgboost.dask: seconds, to ours", "> 30.0 (> 300 s to 10.0 s)", True),
            ("peers: lightgbm.dask: seconds, to ours", "4.0 (40.0 s to 10.0 s)", False),
            ("peers: dask_ml: seconds, to ours", "7.0 (70.0 s to 10.0 s)", True),
            ("expression: seconds of the path", "200.0 s", True),
            ("expression: memory, the whole process", "6.00 GiB", True),
            ("norm: 4 GiB: seconds, to those in memory", "1.50 (30.0 s to 20.0 s)", True),
            ("norm: 4 GiB: gap, to the null loss", "2.0e-04", False),
            (
                "growth: exponent of rows",
                "1.00 (10: 10.0 s, 30: 30.0 s, 100: 100.0 s)",
                True,
            ),
            ("growth: exponent of columns", "1.50 (10: 31.6 s, 100: 1000.0 s)", False),
        ],
    )
    def test_figures(self, name, text, passed):
        check = self.find()[name]
        assert (check.found, check.passed) == (text, passed)

    def test_nothing_measured(self):
        checked = report.check_bar({})
        assert len(checked) == len(self.find())
        assert {(each.found, each.passed) for each in checked} == {("not measured", None)}

    def test_small_sizes_do_not_count(self):
        checked = self.find(full=False).values()
        assert {each.passed for each in checked} == {None}
        assert "2.00 (100.0 s to 50.0 s)" in [each.found for each in checked]

    def test_other_bits_and_features(self):
        records = make_records()
        records["kill/2"]["bits"] = "abd"
        records["single/1 GiB"]["selected"] = [3, 2]
        found = self.find(records)
        assert found["kill: weights of the run with no kill"].passed is False
        check = found["single: 1 GiB: features of the fit in memory"]
        assert (check.passed, check.found) == (False, "1 of 2, or in another order")

    def test_bits_of_other_versions_are_not_compared(self):
        records = make_records()
        records["kill/2"] |= {"bits": "abd", "source": "later"}
        assert self.find(records)["kill: weights of the run with no kill"].passed is None

    def test_a_run_that_ended_before_the_kill_is_not_measured(self):
        records = make_records()
        del records["kill/2"]["killed_after"]
        assert self.find(records)["kill: seconds, to those with no kill"].passed is None

    def test_a_timeout_that_tells_too_little(self):
        records = make_records()
        records["peers/mixnorm"]["wall"] = 100.0
        check = self.find(records)["peers: xgboost.dask: seconds, to ours"]
        assert (check.passed, check.found) == (None, "> 3.0 (> 300 s to 100.0 s)")

    def test_tables(self):
        records = make_records() | {"cluster/3": {"status": "failed", "message": "no"}}
        console = Console(width=200, record=True, file=io.StringIO())
        for table in report.make_tables(records):
            console.print(table)
        text = console.export_text()
        assert "> 300" in text
        assert "failed" in text
        assert "32.40" in text
