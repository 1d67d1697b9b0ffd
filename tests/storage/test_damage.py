"""Files that are damaged, foreign, newer or half written."""

import gzip
import io
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

import mixnorm
from mixnorm import _files
from mixnorm.exceptions import ModelFileError
from mixnorm.storage import store

DAMAGES = 10_000


# --- ways to damage a file


def cut(content, rng):
    return content[: rng.integers(len(content))]


def cut_front(content, rng):
    return content[rng.integers(1, len(content)) :]


def flip_bit(content, rng):
    place = rng.integers(len(content))
    return content[:place] + bytes([content[place] ^ (1 << rng.integers(8))]) + content[place + 1 :]


def change_bytes(content, rng):
    damaged = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 9)):
        damaged[place] = rng.integers(256)
    return bytes(damaged)


def append(content, rng):
    return content + rng.bytes(rng.integers(1, 70))


def some(content, rng):
    """Return the bounds of a random part."""
    first, last = sorted(rng.integers(len(content), size=2))
    return first, last + 1


def insert(content, rng):
    place = rng.integers(len(content))
    return content[:place] + rng.bytes(rng.integers(1, 20)) + content[place:]


def delete(content, rng):
    first, last = some(content, rng)
    return content[:first] + content[last:]


def duplicate(content, rng):
    first, last = some(content, rng)
    return content[:last] + content[first:last] + content[last:]


def swap(content, rng):
    a, b, c = sorted(rng.integers(len(content) + 1, size=3))
    return content[:a] + content[b:c] + content[a:b] + content[c:]


def zero(content, rng):
    first, last = some(content, rng)
    return content[:first] + bytes(last - first) + content[last:]


def copy_over(content, rng):
    first, last = some(content, rng)
    start = rng.integers(len(content) - (last - first) + 1)
    return content[:first] + content[start : start + last - first] + content[last:]


def change_header(content, rng):
    return change_bytes(content[:90], rng) + content[90:]


WAYS = [
    cut, cut_front, flip_bit, change_bytes, append, insert, delete, duplicate, swap, zero,
    copy_over, change_header,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_damages_are_refused(tools, content, way):
    rng = np.random.default_rng(WAYS.index(way))
    tried = 0
    while tried < -(-DAMAGES // len(WAYS)):
        damaged = way(content, rng)
        if damaged == content:
            continue
        tried += 1
        with pytest.raises(ModelFileError, match="^the file "):
            tools.read(damaged)


@pytest.mark.parametrize("place", range(100))
def test_every_byte_of_the_beginning_counts(tools, content, place):
    for other in {0, 32, 48, 65, 255, content[place] ^ 32, content[place] ^ 1} - {content[place]}:
        with pytest.raises(ModelFileError):
            tools.read(content[:place] + bytes([other]) + content[place + 1 :])


def test_every_length_is_refused(tools, content):
    for length in [*range(200), *range(200, len(content), 97), len(content) - 1]:
        with pytest.raises(ModelFileError):
            tools.read(content[:length])


@pytest.mark.parametrize("way", WAYS)
def test_damaged_files_on_disk(tmp_path, content, way):
    path = tmp_path / "model.mixnorm"
    damaged = way(content, np.random.default_rng(5))
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="model.mixnorm"):
        mixnorm.load(path)


def test_message_of_a_damaged_file(tools, content):
    with pytest.raises(ModelFileError, match="is damaged or incomplete.*Get another copy"):
        tools.read(content[:-1])
    with pytest.raises(ModelFileError, match="is damaged: its first line.*Get another copy"):
        tools.read(content[:15])


# --- versions


@pytest.mark.parametrize("version", [b"4", b"17", b"999999999"])
def test_newer_versions(tools, content, version):
    newer = content.replace(b"model 3\n", b"model %s\n" % version, 1)
    with pytest.raises(ModelFileError, match="newer mixnorm.*Upgrade with `pip install --upgrade"):
        tools.read(newer)


@pytest.mark.parametrize(
    "line",
    [b"model 0\n", b"model 01\n", b"model -1\n", b"model 3 \n", b"model +1\n", b"model 3\r\n",
     b"model \n", b"model 3.0\n", b"model 3234567890\n", b"model \xc2\xb9\n"],
)  # fmt: skip
def test_strange_versions(tools, content, line):
    with pytest.raises(ModelFileError, match="first line is not whole"):
        tools.read(content.replace(b"model 3\n", line, 1))


def test_upper_case_checksum(tools, content):
    first, checksum, rest = content.split(b"\n", 2)
    with pytest.raises(ModelFileError, match="damaged"):
        tools.read(b"\n".join([first, checksum.upper(), rest]))


# --- foreign files


def a_zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("schema.json", "{}")
    return stream.getvalue()


def an_array():
    stream = io.BytesIO()
    np.save(stream, np.arange(5.0))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "written by mixnorm.save"),
        (b"a,b,c\n1,2,3\n", "written by mixnorm.save"),
        (b"%PDF-1.7\n", "written by mixnorm.save"),
        (gzip.compress(b"model"), "written by mixnorm.save"),
        (an_array(), "written by mixnorm.save"),
        (pickle.dumps({"a": 1}), "looks like a pickle, which can run code, and was not opened"),
        (pickle.dumps([1], protocol=2), "looks like a pickle"),
        (a_zip(), "looks like a zip archive .skops files are such., and was not opened"),
        (b"x" * 1000, "written by mixnorm.save"),
        (b"Mixnorm model 2\n", "written by mixnorm.save"),
        (b"\xef\xbb\xbfmixnorm model 3\n", "written by mixnorm.save"),
    ],
    ids=range(12),  # archives hold the time of day, and would be named otherwise in every run
)
def test_foreign_files(tmp_path, content, said):
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=f"is not a mixnorm model file.*{said}"):
        mixnorm.load(path)


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(ModelFileError, match="is a folder, not a mixnorm model file"):
        mixnorm.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        mixnorm.load(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        mixnorm.load(str(tmp_path / "no folder" / "missing"))


def test_a_large_foreign_file_is_not_read(tmp_path):
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 10 << 30)  # takes no place on the disk
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="is not a mixnorm model file"):
        mixnorm.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_large_file_without_checksum_is_not_read(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"mixnorm model 3\n")
    os.truncate(path, 10 << 30)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="damaged"):
        mixnorm.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_loading_takes_about_the_size_of_the_file(tools, digits):
    X, y = digits
    model = mixnorm.ShareBoostClassifierCV(2, cv=2).fit(X, y)
    model.best_params_["more"] = np.zeros(1 << 20)
    content = tools.packed(model)
    tracemalloc.start()
    tools.read(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.2 * len(content)


# --- writing


def test_a_model_that_cannot_be_stored_leaves_the_old_file(tmp_path, digits, content):
    path = tmp_path / "model.mixnorm"
    path.write_bytes(content)
    model = mixnorm.ShareBoostClassifier(2).fit(*digits)
    model.random_state = np.random.RandomState(0)
    with pytest.raises(ModelFileError):
        mixnorm.save(model, path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["model.mixnorm"]
    with pytest.raises(ModelFileError):
        mixnorm.save(model, tmp_path / "new.mixnorm")
    assert os.listdir(tmp_path) == ["model.mixnorm"]


@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["write", "sync", "rename"])
def test_an_interrupted_write_leaves_the_old_file(
    tmp_path, monkeypatch, model, content, error, step
):
    path = tmp_path / "model.mixnorm"
    path.write_bytes(b"old")

    def fail(*_):
        raise error

    if step == "write":
        parts = store._pack_model(model)
        monkeypatch.setattr(store, "_pack_model", lambda model: interrupted(parts, error))
    else:
        monkeypatch.setattr(_files.os, {"sync": "fsync", "rename": "replace"}[step], fail)
    with pytest.raises(type(error)):
        mixnorm.save(model, path)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.mixnorm"]
    mixnorm.save(model, path)
    assert path.read_bytes() == content


def interrupted(parts, error):
    """Yield some parts of a file, and fail."""
    yield from parts[:4]
    raise error


def test_saving_into_a_missing_folder(tmp_path, model):
    with pytest.raises(FileNotFoundError):
        mixnorm.save(model, tmp_path / "missing" / "model.mixnorm")


def test_saving_over_a_folder(tmp_path, model):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        mixnorm.save(model, tmp_path)
