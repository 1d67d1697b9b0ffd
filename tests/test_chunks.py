"""Compiled work in chunks: results of one call, to the last bit, and room for interrupts."""

import importlib
import os
import re
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import mixnorm
from mixnorm import _chunks
from mixnorm._chunks import chunk_size, chunks, run_loop
from mixnorm.engines.boosting import bin_columns, boost
from mixnorm.engines.mirror.kernel_learner import KernelLearner
from mixnorm.engines.multikernel.machine import FactorMachine, HingeTarget, MatrixMachine
from mixnorm.engines.proximal.descent import GramQuadratic, ResidualQuadratic
from mixnorm.engines.proximal.design import SharedDesign
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.kernels import KernelStack
from mixnorm.kernels.grams.factors import FactorGrams
from mixnorm.pools import Boxes, Patches, Pieces, Products, Stumps
from mixnorm.pools.patches.responses import PatchParts
from mixnorm.pools.patches.tuning import _sums_compiled

LITTLE = 300  # operations at once
RNG = partial(np.random.default_rng, 0)
NONE = frozenset()


def table(n=300, d=6):
    return RNG().standard_normal((n, d)).round(2)


def residual(n=300):
    return np.random.default_rng(1).standard_normal((n, 3))


def boxes():
    """Also the scores of a box that reads three columns."""
    box = ((0, "<=", 0.5), (1, ">", -0.5), (2, "<=", 1.0))
    scorer = Boxes(depth=3).scorer([box, box[:2]], np.ones((2, 3)), np.zeros(3))
    return [*greedy(Boxes(depth=3), table()), scorer(table())]


def greedy(pool, X):
    """The best atoms, and the scores of rows of a model that has them."""
    prepared = pool.prepare(X, random_state=0) if isinstance(pool, Pieces) else pool.prepare(X)
    found = prepared.top(residual(), "l1", 6, NONE)
    found = prepared.top(residual(), "l2", 6, frozenset(atom for atom, _ in found[:3]))
    weights = np.random.default_rng(2).standard_normal((6, 3))
    made = [np.asarray([score for _, score in found])]
    if hasattr(pool, "scorer") and isinstance(X, np.ndarray):
        atoms = [atom for atom, _ in found]
        width = 1 if not isinstance(pool, Pieces) else X.shape[1] + 1
        scorer = pool.scorer(atoms, np.repeat(weights, width, axis=0), np.zeros(3))
        made.append(scorer(X))
    return made


def patches():
    X = RNG().standard_normal((300, 42)).astype(np.float32)
    pool = Patches(size=(2, 3), n_templates=24, masks=4, shape=(6, 7))
    exact = pool.prepare(X, random_state=0)
    tight = pool.set_params(max_gib=2 * 192 * 300 / 2**30).prepare(X, random_state=0)
    assert not tight.exact
    errors = residual().astype(np.float32)
    atoms = [atom for atom, _ in exact.top(errors, "l1", 4, NONE)]
    scores = [score for _, score in tight.top(errors, "l1", 4, NONE)]
    parts, derivatives = PatchParts(exact.pool, atoms, 42), RNG().random((2, 4, 300))
    sums = [part for _, *both in _sums_compiled(X, parts, *derivatives) for part in both]
    return [exact.pool.evaluate(X, atoms), np.asarray(scores), *sums]


def stack(n=150):
    X = table(n)
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return KernelStack([np.exp(-squares / 9.0), np.exp(-squares)])


def kernels():
    grams = stack()
    grams.check()
    return [grams.combine([0.5, 2.0]), *grams.take(np.arange(3, 140, 2)).matrices]


def labels(n=150):
    return (table(n)[:, 0] > 0).astype(np.int64) + (table(n)[:, 1] > 0.5)


def machine():
    made = MatrixMachine(stack(), HingeTarget(labels(), np.full(150, 5.0), 3, False))
    return [np.asarray(made.solve(np.array([0.6, 0.8]), 1e-6)), made.A]


def feature_machine():
    made = FactorMachine(
        FactorGrams(table(150), [6]), HingeTarget(labels(), np.full(150, 5.0), 3, False)
    )
    return [np.asarray(made.solve(np.ones(1), 1e-3)), made.A]


def kernel_stream():
    learner = KernelLearner(3.0, np.array([0.01, 0.0]), 7.0, 3)
    samples = learner.begin(stack(), labels(), np.ones(150))
    learner.learn(samples, RNG().permutation(150))
    return [samples.A, samples.sums, np.asarray([learner.rounds, learner.mistakes])]


def boosting():
    X, y, weight = table(), labels(300), np.full(300, 1 / 300)
    bins = bin_columns(X, weight)
    path = boost(bins, y, weight, n_outputs=3, n_rounds=3)
    return [step.values for step in path.rounds] + [
        np.asarray([step.feature, step.threshold, step.error]) for step in path.rounds
    ]


def descent(kind):
    X, errors = table(), residual()
    weight = np.full((300, 3 if kind == "separate" else 1), 1 / 300)
    if kind == "separate":
        weight = weight * [0.5, 1.0, 2.0]
    start = np.zeros((6, 3))
    if kind == "residual":
        quadratic = ResidualQuadratic(X.T, start, errors)
    else:
        model = Model(
            SharedDesign(X, 3).block(np.arange(6)), weight, fit_intercept=False, exact=True
        )
        quadratic = GramQuadratic(model, 1.0, start, 1.0, X.T @ errors / 300)
    quadratic.epochs(0.01, 2.0, 7)
    return [quadratic.weights, quadratic.gradient()]


sparse = partial(sp.random_array, (300, 6), density=0.08, format="csr")
#: Work to be done, and the compiled loops whose calls it takes.
WORK = {
    "stumps": (
        lambda: greedy(Stumps(), table()),
        "pools.stumps_jit: code_columns threshold_scores stump_scores",
    ),
    "boxes": (
        boxes,
        "pools.boxes_jit: parent_sums best_sides table_scores box_scores",
    ),
    "products": (lambda: greedy(Products(), table()), "pools.products_jit: dense_ranges"),
    "sparse products": (
        lambda: greedy(Products(), sparse(rng=RNG())),
        "pools.products_jit: sparse_ranges sparse_norms",
    ),
    "pieces": (
        lambda: greedy(Pieces(5, 4), table()),
        "pools.pieces_jit: squared_distances sort_into_rings ball_norms",
    ),
    "patches": (patches, "pools.patches.patches_jit: respond respond_few locate coded_gradient"),
    "kernels": (kernels, "kernels.grams.sums_jit: mirror take_half"),
    "checks": (kernels, "kernels.grams.survey_jit: survey"),
    "machine": (machine, "engines.multikernel.machine_jit: sweep_rows"),
    "machine of factors": (feature_machine, "engines.multikernel.machine_jit: sweep_factors"),
    "kernel stream": (kernel_stream, "engines.mirror.kernels_jit: one_pass"),
    "boosting": (boosting, "engines.boosting.boosting_jit: histograms scan"),
    "descent": (lambda: descent("shared"), "engines.proximal.descent_jit: shared_epochs"),
    "separate descent": (
        lambda: descent("separate"),
        "engines.proximal.descent_jit: separate_epochs",
    ),
    "descent on residuals": (
        lambda: descent("residual"),
        "engines.proximal.descent_jit: residual_epochs",
    ),
}


@pytest.fixture
def watched(monkeypatch):
    """Return a function that counts the calls of compiled loops, and may interrupt one."""
    originals = {}

    def watch(loops, interrupted=None):
        room, names = loops.split(": ")
        module = importlib.import_module(f"mixnorm.{room}")
        counts = dict.fromkeys(names.split(), 0)

        def call(name, *arguments):
            counts[name] += 1
            if name == interrupted and counts[name] > 1:
                raise KeyboardInterrupt
            return originals[name](*arguments)

        for name in counts:
            originals.setdefault(name, getattr(module, name))
            monkeypatch.setattr(module, name, partial(call, name))
        return counts

    monkeypatch.setattr(_chunks, "_n_threads", lambda: 1)  # the caller makes all calls
    return watch


@pytest.mark.parametrize("name", WORK)
def test_chunks_change_no_bit(name, watched, monkeypatch):
    work, loops = WORK[name]
    wanted = work()  # and compile all of it, before any loop is watched
    before = watched(loops)
    work()
    monkeypatch.setattr(_chunks, "_OPERATIONS_PER_CALL", LITTLE)
    after = watched(loops)
    found = work()
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_array_equal(one, other)
    for loop, count in after.items():
        assert count > before[loop], loop


@pytest.mark.parametrize("name", WORK)
def test_interrupts_get_through_between_chunks(name, watched, monkeypatch):
    work, loops = WORK[name]
    work()
    monkeypatch.setattr(_chunks, "_OPERATIONS_PER_CALL", LITTLE)
    watched(loops, loops.split()[-1])
    with pytest.raises(KeyboardInterrupt):
        work()


@pytest.fixture
def three_threads(monkeypatch):
    monkeypatch.setattr(_chunks, "_n_threads", lambda: 3)
    _chunks._executor.cache_clear()
    yield
    _chunks._executor.cache_clear()


@pytest.mark.parametrize(("items", "operations"), [(0, 1), (5, 1), (1, 10**9), (100, 10**8)])
def test_threads_share_all_items(three_threads, items, operations):
    done = []
    run_loop(
        lambda begin, stop: done.extend(range(begin, stop)), items=items, operations=operations
    )
    assert sorted(done) == list(range(items))


def test_several_threads_work_at_once(three_threads):
    meeting = threading.Barrier(3, timeout=60)
    run_loop(lambda begin, stop: meeting.wait(), items=3, operations=10**9)


def test_few_operations_stay_on_one_thread(three_threads):
    names = []
    run_loop(
        lambda begin, stop: names.append(threading.current_thread()), items=1000, operations=10
    )
    assert names == [threading.current_thread()]


@pytest.mark.parametrize("where", ["the caller", "another thread"])
def test_an_error_ends_the_work_of_all_threads(three_threads, where):
    caller, failing, done = threading.current_thread(), threading.Event(), []

    def loop(begin, stop):
        done.append(begin)
        if (threading.current_thread() is caller) == (where == "the caller"):
            failing.set()
            raise KeyboardInterrupt
        assert failing.wait(60)
        time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        run_loop(loop, items=1000, operations=10**9)
    assert len(done) < 1000


def test_chunks():
    assert chunk_size(3, 10**15) == 1
    assert list(chunks(0, 1)) == []


CODE = """
import multiprocessing
import numpy as np
from joblib.externals.loky import get_reusable_executor
from mixnorm import _chunks, JointBoostClassifier, ShareBoostClassifier
from mixnorm.pools import Stumps

_chunks._OPERATIONS_FOR_THREADS = 1
X = np.random.default_rng(0).normal(size=(100, 6))
y = (X[:, 0] > X[:, 1]).astype(int) + (X[:, 2] > 0)

def fit(kind):
    model = JointBoostClassifier(3) if kind == "joint" else ShareBoostClassifier(2, pool=Stumps())
    return model.fit(X, y).predict(X).tolist()

if __name__ == "__main__":
    kinds = ["joint", "stumps", "stumps", "joint"]
    here = [fit(kind) for kind in kinds]
    assert _chunks._executor.cache_info().currsize == 1
    if "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(fit, kinds) == here
    # What joblib starts: one process here, to import everything once.
    assert list(get_reusable_executor(max_workers=1).map(fit, kinds)) == here
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


def test_no_loop_uses_the_threads_of_numba():
    folder = Path(mixnorm.__file__).parent
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"parallel=True|prange", path.read_text(encoding="utf-8"))
    }
    assert found == set(), "use run_loop: a forked process cannot run such loops"
