"""Parquet files of several row groups, and the same table as one file."""

import itertools

import numpy as np
import pytest

from ..conftest import heard, mixnorm, pd, server  # noqa: F401

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def make_shop(rows=240):
    """Return a table with texts, dates, gaps, a copy, and rows without a target."""
    rng = np.random.default_rng(0)
    town = rng.choice(["Rome", "Oslo", "Bonn"], rows)
    town[-5:] = "Lima"  # only in the last file
    price = rng.gamma(2.0, 20.0, rows).round(2)
    score = (town == "Rome") * 30 + price + rng.normal(0, 8, rows)
    frame = pd.DataFrame(
        {
            "id": np.arange(1, rows + 1),
            "town": np.where(rng.random(rows) < 0.1, None, town),
            "price": np.where(rng.random(rows) < 0.1, np.nan, price),
            "cost": price,
            "cost_again": price,
            "age": rng.integers(1, 80, rows),
            "seen": pd.date_range("2024-01-01", periods=rows, freq="31h"),
            "told": pd.date_range("2020-01-01", periods=rows, freq="2D").strftime("%d.%m.%Y"),
            "loyal": rng.random(rows) < 0.4,
            "label": np.where(score > 50, "large", "small"),
            "amount": (score + rng.normal(size=rows)).round(3),
        }
    )
    gone = rng.choice(rows, 12, replace=False)
    frame.loc[gone, "label"] = None
    frame.loc[gone, "amount"] = np.nan
    return frame


def write_files(frame, folder, files=3, groups=30):
    """Write a table as files of several row groups."""
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    edges = np.linspace(0, len(frame), files + 1).astype(int)
    for place, (start, stop) in enumerate(itertools.pairwise(edges)):
        path = folder / f"part.{place}.parquet"
        pq.write_table(table.slice(start, stop - start), path, row_group_size=groups)
    return folder


@pytest.fixture
def shop(tmp_path):
    """The table in three files, and as ``shop.parquet``."""
    frame = make_shop()
    frame.to_parquet(tmp_path / "shop.parquet")
    write_files(frame, tmp_path / "parts")
    return frame
