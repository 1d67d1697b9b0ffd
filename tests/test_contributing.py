"""The page on contributing is true: its parts are checked, fitted, stored and printed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mixnorm

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
# The parts, and what a learner with each of them prints.
PARTS = {
    "norm": "norm=OrderedRows(rate=1.0)",
    "loss": "loss='quantile'",
    "pool": "pool=Logarithms()",
    "kernel": "CauchyKernel(tau=2.0)",
    "estimator": "MedianRegressor()",
}

# What users of a new part do with it, in a process that imports the package with that part.
USE = """
import sys, tempfile
import numpy as np
from sklearn.utils.estimator_checks import check_estimator
import mixnorm
from mixnorm import kernels, losses, norms, pools
from mixnorm.testing import check_loss, check_norm, check_pool

def learner(name):
    if name == "norm":
        check_norm(norms.OrderedRows())
        return mixnorm.MixedNormRegressor(norms.OrderedRows(rate=1.0), alpha=0.05)
    if name == "loss":
        check_loss(losses.Quantile(0.3))
        return mixnorm.MixedNormRegressor(alpha=0.05, loss="quantile")
    if name == "pool":
        check_pool(pools.Logarithms(), X)
        return mixnorm.ShareBoostRegressor(2, pool=pools.Logarithms())
    if name == "kernel":
        kernel = kernels.CauchyKernel(2.0)
        assert np.all(np.linalg.eigvalsh(kernel.between(X)) > -1e-9)
        return mixnorm.MKLRegressor(kernels.KernelBank([kernel, "linear"]))
    check_estimator(mixnorm.MedianRegressor(tol=1e-6))
    return mixnorm.MedianRegressor()

X = np.random.default_rng(0).normal(size=(60, 4))
y = np.log1p(np.abs(X[:, 0])) + X[:, 1]
for name in sys.argv[1:]:
    model = learner(name).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        mixnorm.save(model, folder + "/model.mixnorm")
        stored = mixnorm.load(folder + "/model.mixnorm")
    assert np.array_equal(stored.predict(X), model.predict(X))
    assert model.score(X, y) > 0.2, model.score(X, y)
    print(name, repr(stored).replace(chr(10), " "))
"""


def diffs():
    """Return the diff of each part on the page."""
    found = re.findall(r"^### An? (\w+)$.*?^```diff\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    return dict(found)


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diffs of the page")
def test_parts_are_added_as_the_page_says(tmp_path):
    parts = diffs()
    assert list(parts) == list(PARTS)
    package = Path(mixnorm.__file__).parent
    # Compiled loops are copied too; files that another process is writing have such names.
    ignored = shutil.ignore_patterns("*.pyc*", "*.tmp.*")
    shutil.copytree(package, tmp_path / "src" / "mixnorm", ignore=ignored)
    for part in PARTS:
        patch = tmp_path / f"{part}.diff"
        patch.write_text(parts[part])
        assert parts[part].count("diff --git") == 2, f"{part} changes two files"
        subprocess.run(["git", "apply", patch], cwd=tmp_path, check=True)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", USE, *PARTS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    printed = dict(line.split(" ", 1) for line in ran.stdout.splitlines())
    for part, words in PARTS.items():
        assert words in printed[part]
