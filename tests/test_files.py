"""Files are written whole or not at all."""

import os
import stat
import threading

import pytest

from mixnorm import _files
from mixnorm._files import write_atomically


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write_half(path, error):
    with write_atomically(path) as file:
        file.write(b"half")
        raise error


def test_a_new_file(tmp_path):
    path = tmp_path / "new.bin"
    with write_atomically(path) as file:
        file.write(b"content")
        assert not path.exists()
    assert path.read_bytes() == b"content"
    assert os.listdir(tmp_path) == ["new.bin"]


def test_an_old_file_is_seen_until_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader, write_atomically(str(path)) as file:
        file.write(b"new content")
        file.flush()
        assert path.read_bytes() == b"old"
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new content"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_failing_block_leaves_all_as_it_was(tmp_path, error, old):
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)
    before = os.listdir(tmp_path)
    with pytest.raises(error):
        write_half(path, error)
    assert os.listdir(tmp_path) == before
    if old is not None:
        assert path.read_bytes() == old


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failing_disk_leaves_all_as_it_was(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(_files.os, step, fail)
    with pytest.raises(OSError, match="No space left"), write_atomically(path) as file:
        file.write(b"new")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["file"]
    assert path.read_bytes() == b"old"


def test_the_bytes_are_on_the_disk_before_the_name(tmp_path, monkeypatch):
    done = []
    for step in ("fsync", "replace"):
        real = getattr(os, step)
        monkeypatch.setattr(
            _files.os, step, lambda *args, step=step, real=real: (done.append(step), real(*args))
        )
    with write_atomically(tmp_path / "file") as file:
        file.write(b"x")
    assert done == ["fsync", "replace"]


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o664])
def test_the_mode_of_an_old_file_is_kept(tmp_path, bits):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(bits)
    with write_atomically(path) as file:
        file.write(b"new")
    assert mode(path) == bits


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_usual_mode(tmp_path, mask):
    before = os.umask(mask)
    try:
        with write_atomically(tmp_path / "file") as file:
            file.write(b"new")
        assert os.umask(mask) == mask  # and the mask itself is as it was
    finally:
        os.umask(before)
    assert mode(tmp_path / "file") == 0o666 & ~mask


@pytest.mark.parametrize("exists", [True, False])
def test_links_are_followed(tmp_path, exists):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "link"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target)
    with write_atomically(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path / "there") == ["file"]


def test_folders_are_refused(tmp_path):
    with (
        pytest.raises(IsADirectoryError, match="is a folder; name a file"),
        write_atomically(tmp_path),
    ):
        pass
    with pytest.raises(FileNotFoundError), write_atomically(tmp_path / "missing" / "file"):
        pass


def test_what_is_no_regular_file_is_written_straight(tmp_path):
    with write_atomically(os.devnull) as file:
        file.write(b"nothing")
    assert not os.path.isfile(os.devnull)
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with write_atomically(pipe) as file:
        file.write(b"through the pipe")
    reader.join()
    assert found == [b"through the pipe"]


def test_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with write_atomically("file") as file:
        file.write(b"here")
    assert (tmp_path / "file").read_bytes() == b"here"
