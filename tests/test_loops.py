"""Loops over threads, in processes that were forked after them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mixnorm

pytest.importorskip("numba")

CODE = """
import multiprocessing
import numpy as np
from joblib import Parallel, delayed
from mixnorm import JointBoostClassifier, ShareBoostClassifier
from mixnorm.pools import Stumps

X = np.random.default_rng(0).normal(size=(300, 40))
y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 0)

def fitted(kind):
    model = JointBoostClassifier(3) if kind == "joint" else ShareBoostClassifier(2, pool=Stumps())
    return model.fit(X, y).predict(X).tolist()

if __name__ == "__main__":
    kinds = ["joint", "stumps", "stumps", "joint"]
    here = [fitted(kind) for kind in kinds]
    from numba import get_num_threads, threading_layer
    assert threading_layer() and get_num_threads() == 2
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(2 if method == "fork" else 1) as pool:
            assert pool.map(fitted, kinds) == here, method
    assert Parallel(n_jobs=2)(delayed(fitted)(kind) for kind in kinds) == here, "loky"
"""


def test_other_processes_fit_after_fits_with_threads(tmp_path):
    (tmp_path / "work.py").write_text(CODE)
    done = subprocess.run(
        [sys.executable, "work.py"],
        cwd=tmp_path,
        # More threads than the suite has: with one there would be nothing to test.
        env={**os.environ, "NUMBA_NUM_THREADS": "2"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_all_loops_over_threads_are_of_that_kind():
    folder = Path(mixnorm.__file__).parent
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"njit\([^)]*parallel=True", path.read_text(encoding="utf-8"))
    }
    assert found == set(), "use mixnorm._loops.loop, which a forked process can run"
