"""Finding and reading stored sets, and the twins of those that are not stored."""

import os

import numpy as np
import pytest
import scipy.sparse

from mixnorm.datasets import load
from mixnorm.datasets.catalogue import NAMES
from mixnorm.exceptions import DatasetFormatError, DatasetNotFoundError, MixnormError

STORED = os.environ.get("MIXNORM_DATA")


def write(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def small(value=0.0):
    return {"X": np.full((3, 2), value, dtype=np.float32), "y": np.arange(3)}


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_set_loads(name):
    if not STORED or not os.path.exists(os.path.join(STORED, f"{name}.npz")):
        pytest.skip(f"{name}.npz is not stored here (MIXNORM_DATA={STORED})")
    data = load(name, download_if_missing=False)
    assert data.name == name
    assert data.source.endswith(f"{name}.npz")
    assert data.X.shape[0] == data.y.shape[0]
    if "X_test" in data:
        assert data.X_test.shape[1:] == data.X.shape[1:]
    if "class_names" in data:
        assert data.y.min() == 0
        assert data.y.max() == len(data.class_names) - 1


def test_reuters_is_sparse():
    if not STORED or not os.path.exists(os.path.join(STORED, "reuters_r52.npz")):
        pytest.skip(f"reuters_r52.npz is not stored here (MIXNORM_DATA={STORED})")
    data = load("reuters_r52", download_if_missing=False)
    assert data.X.format == data.X_test.format == "csr"
    assert data.X.shape == (6532, 12163)
    assert "data" not in data


def test_data_folder_goes_before_cache(folders):
    write(folders.cache / "mine.npz", **small(1.0))
    assert load("mine").X[0, 0] == 1.0
    write(folders.data / "mine.npz", **small(2.0))
    assert load("mine").X[0, 0] == 2.0


def test_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    from mixnorm.datasets.loading import _cache_folder

    monkeypatch.delenv("MIXNORM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert _cache_folder() == tmp_path / "xdg" / "mixnorm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _cache_folder() == tmp_path / ".cache" / "mixnorm"
    monkeypatch.setattr("sys.platform", "darwin")
    assert _cache_folder() == tmp_path / "Library" / "Caches" / "mixnorm"


def test_sparse_sets_come_as_csr(folders):
    X = scipy.sparse.random_array((5, 4), density=0.5, format="csr", rng=0)
    parts = {key: getattr(X, key) for key in ("data", "indices", "indptr", "shape")}
    both = parts | {key + "_test": value for key, value in parts.items()}
    write(folders.data / "words.npz", y=np.arange(5), y_test=np.arange(5), **both)
    data = load("words")
    assert scipy.sparse.issparse(data.X)
    assert data.X.format == "csr"
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    np.testing.assert_array_equal(data.X_test.toarray(), X.toarray())


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("usps", "no copy to fetch.*usps.npz.*MIXNORM_DATA"),
        ("nonsense", "No data set 'nonsense'. Known: chars74k_kaggle"),
    ],
)
def test_missing_set_names_the_remedy(folders, name, match):
    with pytest.raises(DatasetNotFoundError, match=match) as caught:
        load(name)
    assert isinstance(caught.value, MixnormError)
    assert isinstance(caught.value, LookupError)


def test_no_download_when_not_wanted(folders):
    with pytest.raises(DatasetNotFoundError, match="download_if_missing=True"):
        load("letter", download_if_missing=False)


def test_no_network_names_the_remedy(folders):
    with pytest.raises(DatasetNotFoundError, match=r"no network in tests.*letter\.npz"):
        load("letter")
    assert not folders.cache.exists()


def test_data_folder_must_exist(folders, monkeypatch):
    monkeypatch.setenv("MIXNORM_DATA", str(folders.data / "absent"))
    with pytest.raises(DatasetNotFoundError, match="is not a folder"):
        load("iris")


@pytest.mark.parametrize("name", ["../iris", "a/b", "", ".hidden"])
def test_name_is_a_bare_name(folders, name):
    with pytest.raises(ValueError, match="not the name of a data set"):
        load(name)


def test_name_is_a_string(folders):
    with pytest.raises(TypeError, match="got int"):
        load(3)


def test_truncated_file_is_reported(folders):
    path = folders.data / "mine.npz"
    write(path, X=np.random.default_rng(0).normal(size=(100, 20)), y=np.arange(100))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DatasetFormatError, match=r"mine\.npz cannot be read.*fetch it again"):
        load("mine")


def test_flipped_bytes_are_reported(folders):
    path = folders.data / "mine.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(100, 20)), y=np.arange(100))
    damaged = bytearray(path.read_bytes())
    damaged[500:600] = bytes(100)
    path.write_bytes(damaged)
    with pytest.raises(DatasetFormatError, match="cannot be read"):
        load("mine")


@pytest.mark.parametrize("content", [b"", b"not an archive"])
def test_other_files_are_reported(folders, content):
    (folders.data / "mine.npz").write_bytes(content)
    with pytest.raises(DatasetFormatError, match="cannot be read"):
        load("mine")


def test_pickles_are_refused(folders):
    write(folders.data / "mine.npz", X=np.array([{}, {}], dtype=object), y=np.arange(2))
    with pytest.raises(DatasetFormatError, match="cannot be read"):
        load("mine")


def test_bare_array_is_reported(folders):
    with open(folders.data / "mine.npz", "wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(DatasetFormatError, match="cannot be read"):
        load("mine")


def test_csr_parts_must_fit_together(folders):
    write(
        folders.data / "mine.npz",
        data=np.ones(2),
        indices=np.array([0, 9]),
        indptr=np.array([0, 1, 2]),
        shape=np.array([2, 3]),
        y=np.arange(2),
    )
    with pytest.raises(DatasetFormatError, match="cannot be read"):
        load("mine")


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"X": np.ones((2, 2))}, "no array 'y'"),
        ({"y": np.ones(2)}, "no array 'X'"),
        ({**small(), "X_test": np.ones((1, 2))}, "no array 'y_test'"),
        ({"X": np.ones((2, 2)), "y": np.ones(3)}, "one row per example"),
    ],
)
def test_arrays_must_be_complete(folders, arrays, match):
    write(folders.data / "mine.npz", **arrays)
    with pytest.raises(DatasetFormatError, match=match):
        load("mine")


@pytest.mark.parametrize(("name", "shape"), [("iris", (150, 4)), ("wine", (178, 13))])
def test_sets_of_scikit_learn_need_no_file(folders, name, shape):
    data = load(name)
    assert data.source == "scikit-learn"
    assert data.X.shape == shape
    assert data.X.dtype == np.float32
    if STORED and os.path.exists(os.path.join(STORED, f"{name}.npz")):
        with np.load(os.path.join(STORED, f"{name}.npz")) as stored:
            assert set(stored.files) == set(data) - {"name", "source"}
            for key in stored.files:
                np.testing.assert_array_equal(stored[key], data[key])
