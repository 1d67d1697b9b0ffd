"""Twins of stored sets: OpenML's answers, pretended, and writing to the cache."""

from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from mixnorm.datasets import fetch, load
from mixnorm.datasets.catalogue import OPENML
from mixnorm.exceptions import DatasetFormatError


def pretend_openml(monkeypatch, name, *, labels=None, shape=None, value=1.0, calls=None):
    """Let OpenML answer with an array of the expected, or the given, form."""
    twin = OPENML[name]
    rows, columns = shape or twin.shape
    names = [*twin.drop, *(f"f{i}" for i in range(columns))]
    labels = labels or twin.labels
    bunch = SimpleNamespace(
        data=np.full((rows, len(names)), value),
        target=np.array([labels[i % len(labels)] for i in range(rows)], dtype=object),
        feature_names=names,
    )

    def answer(**kwargs):
        assert kwargs["data_id"] == twin.data_id
        if calls is not None:
            calls.append(name)
        return bunch

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", answer)


@pytest.mark.parametrize("name", sorted(set(OPENML) - {"mnist", "isolet"}))
def test_openml_twin_has_the_stored_form(folders, monkeypatch, name):
    twin, calls = OPENML[name], []
    pretend_openml(monkeypatch, name, calls=calls)
    first, second = load(name), load(name)
    assert calls == [name], "the second load must come from the cache"
    assert first.source == f"openml:{twin.data_id}"
    assert second.source == str(folders.cache / f"{name}.npz")
    assert [path.name for path in folders.cache.iterdir()] == [f"{name}.npz"]
    for key in set(first) - {"name", "source"}:
        np.testing.assert_array_equal(first[key], second[key])
    n_train = twin.n_train or twin.shape[0]
    assert first.X.shape == (n_train, twin.shape[1])
    assert first.X.dtype == twin.dtype
    assert len(first.feature_names) == twin.shape[1]
    assert first.y[:3].tolist() == [0, 1, 2]
    assert ("X_test" in first) == (twin.n_train is not None)


def test_images_keep_their_shape(monkeypatch):
    twin = OPENML["mnist"]
    small_twin = type(twin)(**{**vars(twin), "shape": (30, 784), "n_train": 20})
    monkeypatch.setitem(fetch.OPENML, "mnist", small_twin)
    pretend_openml(monkeypatch, "mnist", shape=(30, 784))
    arrays = fetch.from_openml("mnist")
    assert arrays["X"].shape == (20, 28, 28)
    assert arrays["X_test"].shape == (10, 28, 28)
    assert arrays["X"].dtype == np.uint8


def test_quoted_and_decimal_labels(folders, monkeypatch):
    pretend_openml(monkeypatch, "satimage", labels=["'1.'", "2.0", "7"])
    assert load("satimage").y[:3].tolist() == [0, 1, 5]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"shape": (10, 16)}, "shape"),
        ({"labels": ["A", "?"]}, "unknown class labels"),
        ({"value": 0.5}, "not integers"),
        ({"value": -1.0}, "not integers"),
        ({"value": np.nan}, "not integers"),
    ],
)
def test_an_unexpected_twin_is_refused(folders, monkeypatch, changes, match):
    pretend_openml(monkeypatch, "letter", **changes)
    with pytest.raises(DatasetFormatError, match=match):
        load("letter")
    assert not folders.cache.exists()


def test_failed_write_leaves_nothing(folders, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    pretend_openml(monkeypatch, "glass")
    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        load("glass")
    assert list(folders.cache.iterdir()) == []
