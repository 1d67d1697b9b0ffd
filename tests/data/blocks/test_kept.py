import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mixnorm.data.blocks.kept import Kept, Workspace, find_kept, forget, use_folder


def make_rows(first, count, width=10):
    return np.arange(first, first + count, dtype=np.float64)[:, None] + np.zeros(width)


def bytes_in(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.rows"))


@pytest.mark.parametrize("limit", [1 << 20, 8 * 10 * 8, 200, 1])
def test_rows_are_the_same_in_memory_and_in_files(tmp_path, limit):
    kept, workspace = Kept(limit, str(tmp_path)), Workspace()
    block = kept.block(0)
    assert block.missing(["a", "b"]) == ["a", "b"]
    for start in range(0, 20, 5):
        block.append(range(start, start + 5), make_rows(start, 5))
    assert block.missing(range(30)) == list(range(20, 30))
    for keys in ([0], [0, 1, 2], [3, 1], list(range(20)), [19, 0, 19], []):
        found = block.read(keys, workspace)
        assert np.array_equal(found, make_rows(0, 20)[keys])
    # Rows that are kept already are left out.
    block.append([19, 20], make_rows(19, 2) * [[5], [1]])
    assert np.array_equal(block.read([19, 20], workspace), make_rows(19, 2))
    in_files = limit < 21 * 80
    assert bytes_in(tmp_path) == in_files * 21 * 80
    kept.clear()
    assert not any(tmp_path.iterdir())


def test_blocks_share_the_limit(tmp_path):
    kept = Kept(2 * 8 * 80, str(tmp_path))
    for number in range(4):
        kept.block(number).append(range(8), make_rows(number, 8))
    assert bytes_in(tmp_path) == 2 * 8 * 80
    for number in range(4):
        found = kept.block(number).read(range(8), Workspace())
        assert np.array_equal(found, make_rows(number, 8))


def test_names_are_made_once():
    block = Kept(100).block(3)
    assert block.find("y") is None
    first = block.keep_named("y", lambda: np.ones(3))
    assert block.keep_named("y", lambda: np.zeros(3)) is first
    assert block.find("y") is first


def test_threads_may_keep_rows_of_one_block(tmp_path):
    kept = Kept(500, str(tmp_path))
    start = threading.Barrier(4)

    def work(number):
        start.wait()
        for key in range(40):
            kept.block(0).append([key], make_rows(key, 1))
        found = kept.block(0).read(range(40), Workspace())
        return np.array_equal(found, make_rows(0, 40))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_a_token_finds_what_is_kept_until_it_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("mixnorm.data.blocks.kept._FOLDER", {})
    use_folder(str(tmp_path))
    kept = find_kept("token of a test", 1, None)
    assert find_kept("token of a test", 1, None) is kept
    kept.block(0).append([0], make_rows(0, 1))
    assert any(tmp_path.iterdir())
    forget("token of a test")
    assert not any(tmp_path.iterdir())
    assert find_kept("token of a test", 1, None) is not kept
    forget("token of a test")
    forget("token of a test")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_leaves_the_files_of_its_parent():
    code = (
        "import os, sys, numpy as np\n"
        "from mixnorm.data.blocks.kept import find_kept, forget\n"
        "block = find_kept('token', 1, None).block(0)\n"
        "block.append([0], np.ones((1, 3)))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    forget('token')\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(block._path.exists())\n"
        "forget('token')\n"
        "print(block._path.exists())\n"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["True", "False"]


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    kept = Kept(1, str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="no files for rows can be made in .*none"):
        kept.block(0).append([0], make_rows(0, 1))
