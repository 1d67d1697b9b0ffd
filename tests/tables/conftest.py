"""What the tests of tables share: writing a few bytes to a file and reading them."""

import pytest


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a table from what a file holds: bytes, or text as UTF-8."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from mixnorm.tables import read_table

    def reader(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return reader


@pytest.fixture
def columns(read):
    """Return a function that reads a table, and gives its columns as lists; None for missing."""

    def reader(content, *args, **options):
        frame = read(content, *args, **options).frame
        return {
            name: [None if gap else value for value, gap in zip(values, gaps, strict=True)]
            for name in frame.columns
            for values, gaps in [(frame[name].tolist(), frame[name].isna())]
        }

    return reader
