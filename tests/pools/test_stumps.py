"""Stumps: all thresholds of all columns."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.pools import Cost, Stumps
from mixnorm.pools import stumps as _stumps
from mixnorm.testing import check_pool


def rows_and_residual(seed=0, n=60, d=4, k=3, decimals=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(decimals)
    residual = rng.normal(size=(n, k)) / n
    return X, residual - residual.mean(axis=0)


def all_scores(X, residual, rule, used=None):
    """All stumps by brute force: half-way between two values of a column, and their scores."""
    used = np.ones(len(X), bool) if used is None else used
    found = {}
    for column in range(X.shape[1]):
        values = np.unique(X[used, column])
        for low, high in itertools.pairwise(values):
            gradient = (X[:, column] <= low) @ residual
            norm = np.abs(gradient).sum() if rule == "l1" else np.linalg.norm(gradient)
            found[column, float((low + high) / 2)] = norm
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int64, bool])
def test_contract(dtype):
    X = np.random.default_rng(0).integers(0, 6, size=(40, 5)).astype(dtype)
    X[:, 3] = 1  # never varies
    check_pool(Stumps(), X)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix])
def test_contract_sparse(container):
    X = np.random.default_rng(0).integers(-2, 3, size=(40, 5)).astype(float)
    check_pool(Stumps(), container(X))


@given(
    X=hnp.arrays(np.float64, (25, 3), elements=st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0])),
    seed=st.integers(0, 2**16),
    rule=st.sampled_from(["l1", "l2"]),
    silent=st.integers(0, 10),
)
def test_scores_equal_brute_force(X, seed, rule, silent):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 1.5, 25)
    weight[:silent] = 0.0
    residual = rng.normal(size=(25, 4)) * weight[:, None]
    expected = all_scores(X, residual, rule, weight > 0)
    prepared = Stumps().prepare(X, weight=weight)
    found = dict(prepared.top(residual, rule, 10**6, frozenset()))
    assert set(found) <= set(expected)
    assert prepared.n_usable == len(expected)
    for atom, score in expected.items():
        assert found.get(atom, 0.0) == pytest.approx(score, rel=1e-10, abs=1e-12)


def test_compiled_scores_equal_their_plain_twin():
    from mixnorm.pools.stumps_jit import threshold_scores

    X, residual = rows_and_residual(n=500, d=6, k=5)
    prepared = Stumps().prepare(X)
    codes, starts, modes = prepared._codes, prepared._starts, prepared._modes
    for squared in (False, True):
        scores = np.zeros(len(prepared._edges))
        columns, total = np.arange(6), residual.sum(axis=0)
        for begin, stop in [(0, 2), (2, 6)]:
            threshold_scores(
                codes, modes, starts, columns, residual, total, squared, scores, begin, stop
            )
        for column in range(6):
            count = starts[column + 1] - starts[column]
            sums = np.zeros((count + 1, 5))
            np.add.at(sums, codes[column], residual)
            running = np.cumsum(sums, axis=0)[:count]
            norms = np.linalg.norm(running, ord=2 if squared else 1, axis=1)
            assert_allclose(scores[starts[column] : starts[column + 1]], norms, atol=1e-14)


def test_compiled_codes_equal_their_plain_twin():
    from mixnorm.pools.stumps_jit import code_columns

    X, _ = rows_and_residual(n=300)
    prepared = Stumps().prepare(X)
    codes = np.empty((4, 300), dtype=np.uint16)
    for begin, stop in [(0, 100), (100, 300)]:
        code_columns(X, prepared._edges, prepared._starts, codes, begin, stop)
    for column in range(4):
        edges = prepared._edges[prepared._starts[column] : prepared._starts[column + 1]]
        assert_array_equal(codes[column], np.searchsorted(edges, X[:, column]))


def test_thresholds_lie_between_neighbours_in_single_precision():
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2.0))
    X = np.array([[low], [high], [np.nextafter(high, np.float32(2.0))]])
    pool = Stumps()
    atoms = [(0, float(edge)) for edge in pool.prepare(X)._edges]
    assert len(atoms) == 2
    assert_array_equal(pool.evaluate(X, atoms), [[1, 1], [0, 1], [0, 0]])


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_extreme_values(scale):
    X = np.array([[-1.7], [-1.0], [1.0], [1.7]]) * scale
    atoms = [(0, float(edge)) for edge in Stumps().prepare(X)._edges]
    assert np.isfinite([edge for _, edge in atoms]).all()
    assert_array_equal(Stumps().evaluate(X, atoms).sum(axis=0), [1, 2, 3])


def test_bins_are_quantiles_for_many_rows(monkeypatch):
    monkeypatch.setattr(_stumps, "ROWS_FOR_QUANTILES", 100)
    X = np.random.default_rng(0).normal(size=(5000, 2))
    prepared = Stumps(max_bins=15).prepare(X)
    assert prepared.n_usable == 30
    for column in range(2):
        shares = np.bincount(prepared._codes[column]) / 5000
        assert shares.max() < 2 / 16
        assert len(shares) == 16
    assert Stumps(max_bins=None).prepare(X).n_usable == 2 * 4999
    check_pool(Stumps(max_bins=7), X[:300])


def test_few_values_are_never_binned(monkeypatch):
    monkeypatch.setattr(_stumps, "ROWS_FOR_QUANTILES", 10)
    X = np.random.default_rng(0).integers(0, 5, size=(200, 1))
    assert Stumps(max_bins=4).prepare(X).n_usable == 4


def test_a_skewed_column_keeps_its_rare_values(monkeypatch):
    monkeypatch.setattr(_stumps, "ROWS_FOR_QUANTILES", 10)
    column = np.zeros(1000)
    column[:300] = np.arange(1, 301)
    prepared = Stumps(max_bins=50).prepare(column[:, None])
    edges = prepared._edges
    assert edges[0] == 0.5
    assert len(edges) > 10


def test_inputs_restrict_the_search():
    X, residual = rows_and_residual()
    prepared = Stumps().prepare(X)
    found = prepared.top(residual, "l1", 100, frozenset(), frozenset([1, 3]))
    everything = prepared.top(residual, "l1", 10**6, frozenset())
    assert found == [pair for pair in everything if pair[0][0] in (1, 3)][:100]
    assert prepared.inputs((2, 0.5)) == {2}


def test_excluded_stumps_are_not_offered():
    X, residual = rows_and_residual()
    prepared = Stumps().prepare(X)
    best = prepared.top(residual, "l1", 5, frozenset())
    gone = frozenset(atom for atom, _ in best[:2])
    assert prepared.top(residual, "l1", 3, gone) == best[2:]


def test_the_model_is_that_of_materialised_columns():
    X, _ = rows_and_residual(n=200, d=3)
    y = (X[:, 0] > 0.3).astype(int) + (np.abs(X[:, 1]) < 0.6)
    stumps = ShareBoostClassifier(6, pool=Stumps(), options=GreedyOptions(rule="l1")).fit(X, y)
    atoms = list(all_scores(X, np.ones((200, 1)), "l1"))
    plain = ShareBoostClassifier(6, options=GreedyOptions(rule="l1", scale="max")).fit(
        Stumps().evaluate(X, atoms), y
    )
    assert [atoms[j] for j in plain.path_["feature"]] == list(stumps.path_["feature"])
    assert_allclose(stumps.path_["loss"], plain.path_["loss"], rtol=1e-5)
    assert_allclose(
        stumps.decision_function(X), plain.decision_function(Stumps().evaluate(X, atoms)), rtol=1e-4
    )


def test_stumps_learn_what_columns_cannot():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 3))
    target = np.abs(X[:, 1])
    stumps = ShareBoostRegressor(10, pool=Stumps()).fit(X, target)
    assert stumps.score(X, target) > 0.9
    assert ShareBoostRegressor(3).fit(X, target).score(X, target) < 0.1
    assert stumps.selected_[0] == 1
    assert stumps.coef_.shape == (10,)
    counts = np.bincount([column for column, _ in stumps.path_["feature"]])
    searches = sum(int(np.ceil(np.log2(count + 1))) for count in counts if count)
    assert stumps.cost_ == Cost(len(stumps.selected_), searches)
    assert stumps.transform(X).shape == (400, len(stumps.selected_))


def test_what_it_says_of_an_atom():
    pool = Stumps()
    assert pool.describe((1, 2.5), ["a", "b"]) == "b ≤ 2.5"
    assert pool.labels([(1, 2.5)]) == [(1, 2.5)]
    assert_array_equal(pool.feature_indices([(2, 0.1), (0, 0.2), (2, 3.0)], 5), [2, 0, 2])
    assert pool.n_columns((0, 1.0), 3) == 1


BAD_ATOMS = [(3, 1.0), (-1, 1.0), (0, np.nan), (0, 1), 0, (0.0, 1.0), (True, 1.0), ()]


@pytest.mark.parametrize("atom", BAD_ATOMS)
def test_what_is_no_atom(atom):
    with pytest.raises(ValueError, match="atoms of a Stumps pool"):
        Stumps().n_columns(atom, 3)


def test_bad_input():
    with pytest.raises(ValueError, match="max_bins=0"):
        Stumps(max_bins=0).prepare(np.ones((3, 1)))
    strict = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="takes NumPy arrays"):
        Stumps().prepare(strict.ones((3, 1)))


def test_a_model_of_stumps_is_stored(tmp_path):
    import mixnorm

    X, _ = rows_and_residual()
    model = ShareBoostClassifier(4, pool=Stumps()).fit(X, X[:, 0] > 0)
    mixnorm.save(model, tmp_path / "m")
    again = mixnorm.load(tmp_path / "m")
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.pool == Stumps()
