"""Tables with small files, so that drawing them takes little time."""

import pytest

from benchmarks.scale import data


@pytest.fixture
def small_groups(monkeypatch):
    """Row groups of 100 rows, and files of 300."""
    monkeypatch.setattr(data, "GROUP_ROWS", 100)
    monkeypatch.setattr(data.write_rows, "__defaults__", (300,))
