"""``mixnorm fit`` on Parquet files."""

import json
import signal
import sys
import time

import numpy as np
import pytest

import mixnorm as package
from mixnorm.cli import commands, progress
from mixnorm.cli.blocks import data
from mixnorm.data import ClusterExecutor

from .conftest import make_shop, pa, pq, write_files

SAME = ("target", "task", "rows", "columns", "chosen", "folds", "multiply_adds", "how_chosen",
        "how_measured", "notes", "columns_read")  # fmt: skip


def drop_target(target):
    return ["--drop", "amount" if target == "label" else "label"]


@pytest.mark.parametrize("target", ["label", "amount"])
@pytest.mark.parametrize("words", [["-k", 3], ["--max-features", 4]])
def test_the_model_is_that_of_the_table_in_memory(mixnorm, shop, target, words, tmp_path):
    words = ["--target", target, *drop_target(target), *words, "--json", "-q"]
    plain = mixnorm("fit", "shop.parquet", "--model", "a", *words).json
    blocks = mixnorm("fit", "parts", "--model", "b", *words).json
    assert [row["name"] for row in blocks["path"]] == [row["name"] for row in plain["path"]]
    assert {name: blocks[name] for name in SAME} == {name: plain[name] for name in SAME}
    for name in ("error", "null_error", "standard_error"):
        assert blocks[name] == pytest.approx(plain[name], abs=1e-12)
    losses = [[row["loss"] for row in found["path"]] for found in (plain, blocks)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)
    models = [package.load(tmp_path / name) for name in ("a", "b")]
    assert models[0].encoder == models[1].encoder
    found = [model.predict(make_shop()) for model in models]
    if target == "label":
        np.testing.assert_array_equal(*found)
    else:
        np.testing.assert_allclose(*found, rtol=1e-10)
    shown = mixnorm("show", "b")
    assert shown.code == 0
    assert "from parts (228 rows" in shown.out


def test_patterns_and_several_files(mixnorm, shop, tmp_path):
    words = ["--target", "label", "--drop", "amount", "-k", 2, "--json", "-q"]
    folder = mixnorm("fit", "parts", *words).json
    assert folder["model"] == "parts.mixnorm"
    pattern = mixnorm("fit", "parts/*.parquet", *words, "--model", "m").json
    assert pattern["table"] == "parts/*.parquet"
    several = [f"parts/part.{place}.parquet" for place in range(3)]
    files = mixnorm("fit", *several, *words, "--model", "m").json
    memory = mixnorm("fit", "shop.parquet", *words, "--model", "m", "--memory", "64MiB").json
    assert folder["path"] == pattern["path"] == files["path"] == memory["path"]


def test_weights_pools_and_kinds(mixnorm, shop):
    words = ["--target", "label", "--drop", "amount", "--weight", "age", "-k", 2, "--json", "-q",
             "--category", "loyal", "--number", "id"]  # fmt: skip
    plain = mixnorm("fit", "shop.parquet", "--model", "a", *words).json
    blocks = mixnorm("fit", "parts", "--model", "b", *words).json
    assert [row["name"] for row in blocks["path"]] == [row["name"] for row in plain["path"]]
    assert blocks["error"] == pytest.approx(plain["error"])
    assert blocks["notes"] == plain["notes"]


def test_large_tables_are_measured_on_a_sample(mixnorm, shop, monkeypatch, tmp_path):
    monkeypatch.setattr(data, "_MOST_ROWS_SAMPLED", 100)
    monkeypatch.setattr(commands, "fit_all_columns", lambda *given: None)  # which takes long
    words = ["--target", "label", "--drop", "amount", "-k", 2]
    found = mixnorm("fit", "parts", *words, "--report", "r.html", "--json")
    told = found.json
    assert "a random sample of 100 of 228 rows" in told["how_measured"]
    assert any("those of 100 of 228 rows" in note for note in told["notes"])
    assert told["rows"] == 228
    plain = mixnorm("fit", "shop.parquet", *words, "--json", "-q").json
    losses = [[row["loss"] for row in each["path"]] for each in (plain, told)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)
    assert "228 rows in 1 block" in found.err
    assert "sample of 100" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.fixture
def interrupt(monkeypatch):
    """Interrupts at the end of the given round of all rounds."""

    def arm(at):
        advance, count = progress.SearchBar._advance, [0]

        def count_rounds(self, *words):
            count[0] += 1
            if count[0] == at:
                raise KeyboardInterrupt
            return advance(self, *words)

        monkeypatch.setattr(progress.SearchBar, "_advance", count_rounds)

    return arm


def test_an_interrupt_keeps_the_path(mixnorm, shop, interrupt, tmp_path):
    interrupt(2 * 4 + 2)  # in the second round of the fit on all rows
    words = ["--target", "label", "--drop", "amount", "-k", 4, "--folds", 2, "--json"]
    told = mixnorm("fit", "parts", *words, "--report", "r.html", "-q").json
    assert told["chosen"] == 2
    assert "the model has 2 of 4 features, fitted on all 228 rows" in told["interrupted"]
    assert len(package.load(tmp_path / "parts.mixnorm").needed) == 2


def test_a_fit_that_is_interrupted_goes_on(mixnorm, shop, interrupt):
    words = ["fit", "parts", "--target", "label", "--drop", "amount", "-k", 4, "--folds", 2]
    words += ["--json", "-q"]
    whole = mixnorm(*words, "--model", "m", "--checkpoint", "other.ckpt").json
    interrupt(2 * 4 + 2)  # once
    words += ["--checkpoint", "run.ckpt"]
    first = mixnorm(*words).json
    assert "goes on from the checkpoint" in first["interrupted"]
    again = mixnorm(*words).json
    assert again["interrupted"] == ""
    assert again["path"] == whole["path"]


def test_an_interrupt_of_the_sample(mixnorm, shop, interrupt):
    interrupt(3)
    words = ["--target", "label", "--drop", "amount", "-k", 4, "--json", "-q"]
    told = mixnorm("fit", "parts", *words).json
    assert told["chosen"] == 3
    assert "interrupted" in told["interrupted"]


def test_a_cluster(mixnorm, shop):
    distributed = pytest.importorskip("distributed")
    words = ["--target", "label", "--drop", "amount", "-k", 2, "--json", "-q"]
    alone = mixnorm("fit", "parts", *words, "--model", "a").json
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0",
        protocol="tcp",
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address
        found = mixnorm("fit", "parts", *words, "--model", "b", "--cluster", address)
        sys.modules[ClusterExecutor.__module__]._CLIENTS.pop(address).close()
    assert found.json["path"] == alone["path"]


def test_a_command_that_is_killed_goes_on(server, shop, tmp_path, mixnorm):
    words = ["fit", "parts", "--target", "label", "--drop", "amount", "-k", 3, "-q", "--json",
             "--checkpoint", "run.ckpt", "--model"]  # fmt: skip
    process = server.start(*words, "m", folder=tmp_path)
    while not (tmp_path / "run.ckpt").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.finish()
    again = mixnorm(*words, "m").json
    (tmp_path / "run.ckpt").unlink(missing_ok=True)
    whole = mixnorm(*words, "other").json
    assert json.dumps(again["path"]) == json.dumps(whole["path"])


def refuse(result, code, *parts):
    """Check that a command ended with one clear line."""
    assert result.code == code, result.err
    lines = result.err.strip().splitlines()
    assert len(lines) == 1, result.err
    for part in parts:
        assert part in lines[0], lines[0]


@pytest.mark.parametrize(
    ("words", "code", "parts"),
    [
        (["t.csv", "--memory", "1GiB"], 1, ["--memory needs Parquet", "open_csv('", "t.csv"]),
        (["t.csv", "parts"], 1, ["needs Parquet files"]),
        (["-", "--memory", "1GiB", "--model", "m"], 2, ["standard input"]),
        (["parts", "--memory", "lots"], 2, ["'lots' is not an amount of memory"]),
        (["parts", "--memory", "0"], 2, ["'0' is not an amount of memory"]),
        (["parts", "--memory", "1KiB"], 2, ["too little memory", "16MiB"]),
        (["parts", "--format", "csv"], 2, ["--format csv"]),
        (["parts", "--pool", "boxes"], 2, ["--pool boxes needs the table in memory"]),
        (["parts", "--cluster", "host"], 2, ["tcp://127.0.0.1:8786"]),
        (["parts/*.csv"], 1, ["matches no Parquet files"]),
        (["nowhere/*.parquet"], 1, ["nowhere/*.parquet matches no Parquet files"]),
        (["parts", "--checkpoint", "no/run.ckpt"], 2, ["there is no folder"]),
        (["parts", "--checkpoint", "m.x", "--model", "m.x"], 2, ["would replace the"]),
        (["parts", "--drop", "labels"], 1, ["no column 'labels'", "Did you mean 'label'"]),
        (["parts", "--weight", "price"], 1, ["weights 'price'", "row group 0"]),
        (["parts", "--weight", "town"], 1, ["weights 'town'", "must be numbers"]),
    ],
)
def test_wrong_usage(mixnorm, shop, words, code, parts, tmp_path):
    (tmp_path / "t.csv").write_text("a,label\n1,x\n2,y\n")
    refuse(mixnorm("fit", *words, "--target", "label"), code, *parts)


def test_a_missing_target(mixnorm, shop):
    refuse(mixnorm("fit", "parts"), 2, "--target is missing", "town, price")
    refuse(mixnorm("fit", "parts", "--target", "lable"), 1, "Did you mean 'label'")


def test_no_scheduler_and_no_dask(mixnorm, shop, monkeypatch):
    words = ["fit", "parts", "--target", "label", "--cluster"]
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    refuse(mixnorm(*words, "tcp://127.0.0.1:1"), 1, 'pip install "mixnorm[dask]"')


def test_files_that_differ(mixnorm, shop, tmp_path):
    place = tmp_path / "parts" / "part.1.parquet"
    table = pq.read_table(place)
    words = ["fit", "parts", "--target", "label", "-k", 1, "-q"]
    pq.write_table(table.drop_columns(["age"]), place)
    refuse(mixnorm(*words), 1, "part.1.parquet has no column 'age'", "--drop")
    pq.write_table(table.append_column("extra", [[1] * len(table)]), place)
    refuse(mixnorm(*words), 1, "part.1.parquet has a column 'extra'", "part.0.parquet lacks")
    texts = pa.array(["x"] * len(table))
    pq.write_table(table.set_column(table.column_names.index("age"), "age", texts), place)
    refuse(mixnorm(*words), 1, "part.1.parquet: column 'age' is of type string", "int64")
    assert mixnorm(*words, "--drop", "age").code == 0
    whole = table.column("age").cast(pa.float64())
    pq.write_table(table.set_column(table.column_names.index("age"), "age", whole), place)
    assert mixnorm(*words, "--model", "m").code == 0


def test_damaged_and_empty_files(mixnorm, shop, tmp_path):
    place = tmp_path / "parts" / "part.1.parquet"
    content = place.read_bytes()
    words = ["fit", "parts", "--target", "label", "-k", 1, "-q"]
    place.write_bytes(content[: len(content) // 2])
    refuse(mixnorm(*words), 1, "part.1.parquet cannot be read as Parquet", "damaged")
    place.write_bytes(content)
    offset = pq.ParquetFile(place).metadata.row_group(1).column(1).data_page_offset
    place.write_bytes(content[: offset + 4] + b"\xff" * 60 + content[offset + 64 :])
    refuse(mixnorm(*words), 1, "part.1.parquet, row group 1, cannot be read")
    place.write_bytes(b"")
    refuse(mixnorm(*words), 1, "part.1.parquet is empty")
    write_files(make_shop().head(0), tmp_path / "nothing", files=1)
    refuse(mixnorm("fit", "nothing", *words[2:]), 1, "nothing has no rows")
