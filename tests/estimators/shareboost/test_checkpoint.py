"""Fits from row blocks that were killed go on from their checkpoint."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.data import from_arrays
from mixnorm.estimators.shareboost.checkpoint import Checkpoint
from mixnorm.models import Path, Round
from mixnorm.pools import Stumps

# The driver is killed by a real signal while it writes its third checkpoint.
DRIVER = """
import os, signal, sys
import numpy as np
from mixnorm import ShareBoostClassifier
from mixnorm.data import from_arrays
from mixnorm.estimators.shareboost import checkpoint

X, y = np.load(sys.argv[1]), np.load(sys.argv[2])
write, done = checkpoint.Checkpoint.write, []
def kill(self, path):
    write(self, path)
    done.append(path)
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.Checkpoint.write = kill
ShareBoostClassifier(6).fit(from_arrays(X, y, block_rows=64, executor=1, checkpoint=sys.argv[3]))
"""


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 9))
    return X, np.argmax(X[:, :3] + 0.3 * rng.standard_normal((300, 3)), axis=1)


@pytest.mark.skipif(os.name != "posix", reason="kills a process by a signal")
def test_a_killed_driver_goes_on_to_the_same_bits(rows, tmp_path):
    X, y = rows
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    place = tmp_path / "run.ckpt"
    command = [sys.executable, "-c", DRIVER, "X.npy", "y.npy", str(place)]
    assert subprocess.run(command, cwd=tmp_path).returncode == -signal.SIGKILL
    assert len(ShareBoostClassifier(6).fit(table(rows, place)).selected_) == 6
    whole = ShareBoostClassifier(6).fit(table(rows, tmp_path / "other.ckpt"))
    again = ShareBoostClassifier(6).fit(table(rows, place))
    assert np.array_equal(again.coef_, whole.coef_)
    assert np.array_equal(again.intercept_, whole.intercept_)


def table(rows, place, **options):
    return from_arrays(*rows, block_rows=64, checkpoint=place, **options)


def test_every_cut_ends_in_the_same_bits(rows, tmp_path, monkeypatch):
    """Also where several features come from one scan, or the pool has features of two numbers."""
    write = Checkpoint.write
    for given in (
        {},
        {"options": GreedyOptions(atoms_per_round=2)},
        {"options": GreedyOptions(backward=2)},
        {"options": GreedyOptions(swaps=1)},
    ):
        whole = ShareBoostClassifier(5, **given).fit(table(rows, tmp_path / "whole"))
        (tmp_path / "whole").unlink()
        for last in (1, 2):
            left = [last]

            def stop(self, path, left=left):
                write(self, path)
                left[0] -= 1
                if not left[0]:
                    raise RuntimeError("stop")

            monkeypatch.setattr(Checkpoint, "write", stop)
            with pytest.raises(RuntimeError, match="stop"):
                ShareBoostClassifier(5, **given).fit(table(rows, tmp_path / "cut"))
            monkeypatch.setattr(Checkpoint, "write", write)
            again = ShareBoostClassifier(5, **given).fit(table(rows, tmp_path / "cut"))
            assert np.array_equal(again.coef_, whole.coef_)
            (tmp_path / "cut").unlink()


def test_other_fits_and_damage(rows, tmp_path):
    X, y = rows
    place = tmp_path / "run.ckpt"
    ShareBoostClassifier(3).fit(table(rows, place))
    for model, given in (
        (ShareBoostClassifier(4), rows),
        (ShareBoostClassifier(3, alpha=0.5), rows),
        (ShareBoostClassifier(3), (X + 1.0, y)),
        (ShareBoostClassifier(3), (X, y[::-1])),
        (ShareBoostClassifier(3), (X[::-1], y)),
    ):
        with pytest.raises(ValueError, match="belongs to a fit of other data"):
            model.fit(table(given, place))
    whole = place.read_bytes()
    for part in (b"", b"text", whole[:-40], whole[: len(whole) // 2]):
        place.write_bytes(part)
        with pytest.raises(ValueError, match="is damaged"):
            ShareBoostClassifier(3).fit(table(rows, place))


def test_a_regression_on_other_rows(rows, tmp_path):
    """Of a compressed table too: neither targets nor columns alone tell a fit."""
    X, y = rows
    place = tmp_path / "run.ckpt"
    ShareBoostRegressor(3).fit(table((X, y), place))
    for given in ((X, y[::-1]), (X[:, ::-1], y), (X, y, 1.0 + y)):
        with pytest.raises(ValueError, match="belongs to a fit of other data"):
            ShareBoostRegressor(3).fit(from_arrays(*given, block_rows=64, checkpoint=place))


def test_a_place_that_cannot_be_written(rows, tmp_path):
    for place, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "x", "is not a folder")):
        with pytest.raises(ValueError, match=words):
            ShareBoostClassifier(3).fit(table(rows, place))


@pytest.mark.parametrize("atom", [3, (1, 2), (0, 0.1)])
def test_atoms_come_back(atom, tmp_path):
    numbers = dict.fromkeys(("loss", "objective", "gradient", "seconds", "gap", "alpha"), 0.1)
    step = Round(
        atom=atom, support=(atom,), weights=np.ones((1, 2)), intercept=np.zeros(2), iterations=3,
        converged=True, **numbers,
    )  # fmt: skip
    file = Checkpoint(tmp_path / "x", "mark")
    assert file.read() is None
    file.write(Path((step,), 1.5, np.zeros(2)))
    found = file.read()
    assert (found.rounds[0].atom, found.rounds[0].support) == (atom, (atom,))
    assert (found.rounds[0].loss, found.null_loss) == (0.1, 1.5)


def test_pools_of_other_atoms(rows, tmp_path):
    pytest.importorskip("mixnorm.pools.blocks.stumps")
    whole = ShareBoostClassifier(3, pool=Stumps()).fit(table(rows, tmp_path / "x"))
    again = ShareBoostClassifier(3, pool=Stumps()).fit(table(rows, tmp_path / "x"))
    assert np.array_equal(again.model_.weights, whole.model_.weights)
