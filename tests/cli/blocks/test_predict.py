"""``mixnorm predict`` on Parquet files."""

import io
import signal

import numpy as np
import pytest

from mixnorm.cli.blocks import predict

from .conftest import make_shop, pd, pq, write_files


@pytest.fixture
def model(mixnorm, shop):
    words = ["--target", "label", "--drop", "amount", "-k", 3, "-q", "--model", "m"]
    assert mixnorm("fit", "parts", *words).code == 0
    return "m"


def test_predictions_are_those_in_memory(mixnorm, model, monkeypatch):
    monkeypatch.setattr(predict, "_ROWS_AT_ONCE", 32)
    words = ["--probabilities", "--keep", "id", "--keep", "seen"]
    plain = mixnorm("predict", model, "shop.parquet", *words)
    expected = pd.read_csv(io.StringIO(plain.out))
    done = mixnorm("predict", model, "parts", "--output", "p.parquet", *words)
    assert done.out == "240 predictions written to p.parquet.\n"
    assert done.err == plain.err  # the error, and notes on gaps and levels
    assert "The table has the target: error rate" in done.err
    found = pd.read_parquet("p.parquet")
    assert found.columns.tolist() == expected.columns.tolist()
    assert found["id"].tolist() == expected["id"].tolist()
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    assert found["seen"].dtype.kind == "M"
    np.testing.assert_allclose(found["probability large"], expected["probability large"])
    printed = mixnorm("predict", model, "parts/*.parquet", *words)
    assert printed.out == plain.out
    assert mixnorm("predict", model, "parts", "-o", "p.csv", *words).code == 0
    with open("p.csv") as file:
        assert file.read() == plain.out
    one = mixnorm("predict", model, "shop.parquet", "-o", "q.parquet", *words, "--json").json
    assert (one["rows"], one["output"]) == (240, "q.parquet")
    assert pd.read_parquet("q.parquet").equals(found)
    assert pq.ParquetFile("q.parquet").num_row_groups == 8


def test_numbers(mixnorm, shop):
    words = ["--target", "amount", "--drop", "label", "-k", 2, "-q"]
    mixnorm("fit", "parts", *words)
    found = mixnorm("predict", "parts.mixnorm", "parts", "-o", "p.parquet", "--json").json
    plain = mixnorm("predict", "parts.mixnorm", "shop.parquet", "--json").json
    assert found["error"] == pytest.approx(plain["error"])
    assert pd.read_parquet("p.parquet")["prediction"].tolist() == plain["columns"]["prediction"]


def test_a_csv_file_to_parquet(mixnorm, model, tmp_path):
    make_shop().to_csv(tmp_path / "new.csv", index=False)
    assert mixnorm("predict", model, "new.csv", "-o", "p.parquet", "--keep", "id").code == 0
    assert len(pd.read_parquet("p.parquet")) == 240


def test_no_rows(mixnorm, model, tmp_path):
    write_files(make_shop().head(0), tmp_path / "new", files=1)
    assert mixnorm("predict", model, "new", "-o", "p.parquet", "--probabilities").code == 0
    found = pd.read_parquet("p.parquet")
    assert found.columns.tolist() == ["prediction", "probability large", "probability small"]
    assert len(found) == 0


def refuse(result, code, *parts):
    assert result.code == code, result.err
    for part in parts:
        assert part in result.err, result.err


def test_errors_leave_no_file(mixnorm, model, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "_ROWS_AT_ONCE", 32)
    new = write_files(make_shop().rename(columns={"cost": "costs"}), tmp_path / "new")
    words = ["predict", model, "new", "-q", "-o", "p.parquet"]
    refuse(mixnorm(*words), 1, "lacks the column 'cost' (is it 'costs'?)")
    write_files(make_shop(), new)
    table = pq.read_table(new / "part.2.parquet")
    pq.write_table(table.drop_columns(["cost"]), new / "part.2.parquet")
    refuse(mixnorm(*words), 1, "part.2.parquet has no column 'cost'")
    write_files(make_shop(), new)
    place = new / "part.2.parquet"
    content = place.read_bytes()
    chunk = pq.ParquetFile(place).metadata.row_group(1)
    column = next(
        chunk.column(k) for k in range(chunk.num_columns)
        if chunk.column(k).path_in_schema == "cost"
    )  # fmt: skip
    start = column.data_page_offset
    place.write_bytes(content[: start + 4] + b"\xff" * 60 + content[start + 64 :])
    refuse(mixnorm(*words), 1, "part.2.parquet, row group 1, cannot be read")
    assert [path.name for path in tmp_path.iterdir() if ".p.parquet" in path.name] == []
    assert not (tmp_path / "p.parquet").exists()
    place.write_bytes(content)
    refuse(mixnorm(*words[:3], "--json"), 2, "add --output")
    refuse(mixnorm(*words[:3], "-o", "new/part.0.parquet"), 2, "would replace a file")
    refuse(mixnorm(*words, "--keep", "idd"), 1, "no column 'idd'")


def test_an_interrupt_leaves_no_file(mixnorm, model, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "_ROWS_AT_ONCE", 32)
    (tmp_path / "p.parquet").write_text("old")
    measure, count = predict._Prediction._measure, []

    def stop(self, *words):
        count.append(None)
        if len(count) == 3:
            signal.raise_signal(signal.SIGINT)
        return measure(self, *words)

    monkeypatch.setattr(predict._Prediction, "_measure", stop)
    found = mixnorm("predict", model, "parts", "-o", "p.parquet")
    assert found.code == 130
    assert (tmp_path / "p.parquet").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []
