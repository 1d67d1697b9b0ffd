"""Stumps of tables of row blocks: the fit in memory, and quantiles from sketches."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.data import from_arrays
from mixnorm.pools import Stumps
from mixnorm.pools.blocks.quantiles import QuantileSketch
from mixnorm.pools.blocks.stumps import IndicatorRows

EXACT = GreedyOptions(tol=1e-10)


def objective(model):
    return np.array([step.objective for step in model.model_.path.rounds])


def assert_same_fit(blocks, memory):
    assert blocks.path_["feature"].tolist() == memory.path_["feature"].tolist()
    assert np.allclose(objective(blocks), objective(memory), rtol=1e-9, atol=0.0)


@pytest.fixture(scope="module")
def labelled():
    """Three classes by steps and a spike, with weights of which some are zero."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((600, 5)), 2) * [1.0, 10.0, 0.1, 1.0, 1.0]
    X[:, 3] = rng.integers(0, 2, 600)  # two values
    X[:, 4] = 7.0  # one value
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] * (X[:, 3] - 0.5) > 0.0)
    weight = rng.integers(0, 3, 600).astype(float)
    weight[100:200] = 0.0
    X[100:110, 2] = 1e6  # on rows that do not count
    return X, np.asarray(["a", "b", "c"])[y], weight


VARIANTS = {
    "default": {},
    "balanced": {"class_weight": "balanced"},
    "a class of weight zero": {"class_weight": {"a": 0.0}},
    "no intercept": {"fit_intercept": False},
    "l2 rule": {"options": GreedyOptions(tol=1e-10, rule="l2", scale=False)},
    "exact rule": {"options": GreedyOptions(tol=1e-10, rule="exact")},
    "joint rule": {"max_inputs": 2, "options": GreedyOptions(tol=1e-10, rule="joint")},
    "swaps": {"options": GreedyOptions(tol=1e-10, swaps=1)},
    "backward": {"options": GreedyOptions(tol=1e-10, backward=2)},
    "two a round": {"options": GreedyOptions(tol=1e-10, atoms_per_round=2)},
    "all thresholds": {"pool": Stumps(max_bins=None)},
    "few bins": {"pool": Stumps(max_bins=10)},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_the_fit_in_memory(name, labelled):
    X, y, weight = labelled
    given = {"pool": Stumps(), "options": EXACT} | VARIANTS[name]
    memory = ShareBoostClassifier(4, **given).fit(X, y, weight)
    for rows in (X, sp.csr_array(X)):
        table = from_arrays(rows, y, weight, block_rows=128)
        assert_same_fit(ShareBoostClassifier(4, **given).fit(table), memory)


@pytest.mark.parametrize("block_rows", [1, 37, 600, 5000])
def test_any_blocks(block_rows, labelled):
    X, y, _ = labelled
    rows = slice(0, 60) if block_rows == 1 else slice(None)
    X, y = X[rows], np.column_stack([X[rows, 0] ** 2, y[rows] == "a"])
    given = {"pool": Stumps(), "options": EXACT}
    memory = ShareBoostRegressor(3, **given).fit(X, y)
    table = from_arrays(X, y, block_rows=block_rows)
    assert_same_fit(ShareBoostRegressor(3, **given).fit(table), memory)


def test_workers_and_memory_change_no_bit(labelled, tmp_path):
    X, y, weight = labelled
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    runs = [(X, 1, "1 GiB"), (X, 2, "1 GiB"), (mapped, 3, "1 GiB"), (X, 2, 3000)]
    found = [
        ShareBoostClassifier(12, pool=Stumps()).fit(
            from_arrays(rows, y, weight, block_rows=50, executor=workers, memory=memory)
        )
        for rows, workers, memory in runs
    ]
    for one in found[1:]:
        assert one.path_["feature"].tolist() == found[0].path_["feature"].tolist()
        assert np.array_equal(one.coef_, found[0].coef_)
        assert np.array_equal(one.intercept_, found[0].intercept_)


@pytest.mark.parametrize("memory", ["1 GiB", 3000])
def test_rows_that_are_dropped_are_made_again(memory, labelled, monkeypatch):
    X, y, weight = labelled
    fits = []
    for most in (128, 1):
        monkeypatch.setattr(IndicatorRows, "most_kept", most)
        table = from_arrays(X, y, weight, block_rows=200, memory=memory)
        fits.append(ShareBoostClassifier(8, pool=Stumps()).fit(table))
    assert np.array_equal(fits[0].coef_, fits[1].coef_)


def test_a_path_is_continued(labelled):
    X, y, _ = labelled
    given = {"pool": Stumps(), "warm_start": True, "options": EXACT}
    found = []
    for data in [(from_arrays(X, y, block_rows=128),), (X, y)]:
        model = ShareBoostClassifier(2, **given).fit(*data)
        found.append(model.set_params(n_features_to_select=4).fit(*data))
    assert_same_fit(*found)


# --- thresholds

CASES = {
    "continuous": lambda rng, n: rng.standard_normal(n),
    "single precision": lambda rng, n: rng.exponential(size=n).astype(np.float32),
    "heavy values": lambda rng, n: np.where(rng.random(n) < 0.3, 0.5, rng.random(n)),
    "sorted": lambda rng, n: np.sort(rng.standard_cauchy(n)),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_of_thresholds_are_within_the_stated_error(kind, weighted):
    rng, n, block_rows = np.random.default_rng(0), 60_000, 4_000
    x = CASES[kind](rng, n)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    table = from_arrays(x[:, None], x > 0.7, weight, block_rows=block_rows)
    model = ShareBoostClassifier(1, pool=Stumps(63)).fit(table)
    edges = bound_edges(table, model, 63)
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    order = np.argsort(x, kind="stable")
    ranks = np.concatenate([[0.0], np.cumsum(share[order])])
    below = ranks[np.searchsorted(x[order], edges, side="left")]
    at = ranks[np.searchsorted(x[order], edges, side="right")]
    levels = np.arange(1, 64) / 64
    error = 0.5 * (1 + math.ceil(math.log2(n / block_rows))) / 4096 + 1 / 4096
    # Each level has a threshold: at or below the level from below, at or above it with its rows.
    for level in levels:
        assert np.any((below <= level + error) & (at >= level - error))
    assert len(edges) <= 63
    assert np.all(np.diff(edges) > 0)
    if kind != "heavy values":
        np.testing.assert_allclose(at, levels, atol=error + 4 / n)


def bound_edges(table, model, most):
    """Return the thresholds of the only column."""
    from mixnorm.pools.blocks.base import BlockData, RowSample, RowShares
    from mixnorm.pools.blocks.stumps import bind_stumps

    total = table.sum(_total)
    sample = RowSample(np.arange(2), np.zeros((2, 1)), np.full(2, 0.5), 2)
    data = BlockData(table, None, np.dtype(float), sample, RowShares(total))
    bound = bind_stumps(data, most, True)
    _, threshold = model.path_["feature"][0]
    assert threshold in bound._edges.tolist()
    return bound._edges


def _total(block):
    return block.size if block.weight is None else float(block.weight.sum())


def test_few_values_give_the_quantiles_of_memory():
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((20_000, 2)) * [1000.0, 3.0], 0)
    y, weight = X[:, 0] > 100.0, rng.integers(0, 3, 20_000).astype(float)
    given = {"pool": Stumps(31), "options": EXACT}
    memory = ShareBoostClassifier(3, **given).fit(X, y, weight)
    blocks = ShareBoostClassifier(3, **given).fit(from_arrays(X, y, weight, block_rows=3000))
    assert blocks.path_["feature"].tolist() == memory.path_["feature"].tolist()


def test_sketches_of_random_parts_keep_their_error():
    rng = np.random.default_rng(0)
    for _ in range(300):
        parts = int(rng.integers(2, 9))
        values = np.round(rng.standard_normal(int(rng.integers(1, 200))), int(rng.integers(0, 3)))
        weights = rng.exponential(size=len(values)) ** 3
        pieces = np.array_split(np.arange(len(values)), int(rng.integers(1, 6)))
        sketch = None
        for piece in pieces:
            if len(piece):
                one = exact_sketch(values[piece], weights[piece]).limit(parts)
                sketch = one if sketch is None else sketch.join(one, parts)
        assert len(sketch.values) <= 2 * parts + 1
        assert sketch.error <= 2 * len(pieces) * weights.sum() / parts
        assert np.isclose(sketch.weights.sum(), weights.sum())
        for t in rng.choice(values, 5):
            true, seen = weights[values <= t].sum(), sketch.weights[sketch.values <= t].sum()
            assert -1e-9 <= true - seen <= sketch.error + 1e-9


def exact_sketch(values, weights):
    found, places = np.unique(values, return_inverse=True)
    return QuantileSketch(found, np.bincount(places, weights=weights))


# --- compiled loops and their plain twins


def test_loops_equal_their_plain_twins():
    from mixnorm.pools.blocks.quantiles_jit import merge_points, pack_points
    from mixnorm.pools.blocks.stumps_jit import add_by_code

    rng = np.random.default_rng(0)
    one, other = (exact_sketch(np.round(rng.random(40), 1), rng.random(40)) for _ in range(2))
    values, weights = np.empty(80), np.empty(80)
    size = merge_points(one.values, one.weights, other.values, other.weights, values, weights)
    both = exact_sketch(
        np.concatenate([one.values, other.values]), np.concatenate([one.weights, other.weights])
    )
    np.testing.assert_array_equal(values[:size], both.values)
    np.testing.assert_allclose(weights[:size], both.weights)
    points = [1.0, 2.0, 3.0, 4.0], [0.5, 0.5, 2.0, 0.25]
    values, weights = np.array(points[0]), np.array(points[1])
    size = pack_points(values, weights, 1.0)
    assert (values[:size].tolist(), weights[:size].tolist()) == ([2, 3, 4], [1.0, 2.0, 0.25])

    codes = rng.integers(0, 4, (3, 50)).astype(np.uint8)
    starts, modes, residual = np.array([0, 4, 8, 12]), np.array([0, 3, 1]), rng.random((50, 2))
    sums, wanted = np.zeros((12, 2)), np.zeros((12, 2))
    add_by_code(codes, modes, starts, residual, sums)
    for j in range(3):
        for code in set(range(4)) - {int(modes[j])}:
            wanted[4 * j + code] = residual[codes[j] == code].sum(axis=0)
    np.testing.assert_allclose(sums, wanted, rtol=1e-12)
