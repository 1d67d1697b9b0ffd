"""Boxes: conjunctions of stumps, found from the boxes at hand."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor, load, save
from mixnorm.pools import Boxes, Columns, Cost, Stumps, Union
from mixnorm.testing import check_pool

NONE = frozenset()


def rows_and_residual(seed=0, n=60, d=4, k=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    residual = rng.normal(size=(n, k)) / n
    return X, residual - residual.mean(axis=0)


def norm(gradient, rule):
    return np.abs(gradient).sum() if rule == "l1" else np.linalg.norm(gradient)


def inside(X, atom):
    return np.all([X[:, j] <= t if kind == "<=" else X[:, j] > t for j, kind, t in atom], axis=0)


def best_of(X, residual, rule, parent, column, exclude=NONE):
    """The best box that one more side in a column makes of a parent, by brute force."""
    held, scores = inside(X, parent) if parent else np.ones(len(X), bool), {}
    values = np.unique(X[:, column])
    for low, high in itertools.pairwise(values):
        for kind in ("<=", ">") if parent else ("<=",):
            side = (column, kind, float((low + high) / 2))
            kept = [other for other in parent if other[:2] != side[:2]]
            atom, count = tuple(sorted([*kept, side])), (held & inside(X, (side,))).sum()
            if 0 < count < held.sum() and atom not in exclude:
                scores[atom] = norm((held & inside(X, (side,))) @ residual, rule)
    return max(scores.values(), default=0.0)


@given(
    X=hnp.arrays(np.float64, (25, 3), elements=st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0])),
    seed=st.integers(0, 2**16),
    rule=st.sampled_from(["l1", "l2"]),
    depth=st.integers(1, 3),
)
def test_scores_equal_brute_force(X, seed, rule, depth):
    residual = np.random.default_rng(seed).normal(size=(25, 4))
    residual -= residual.mean(axis=0)
    pool = Boxes(depth=depth)
    prepared = pool.prepare(X)
    found = prepared.top(residual, rule, 10**6, NONE)
    for atom, score in found:
        pool.n_columns(atom, 3)
        assert len(atom) <= min(depth, 2)
        assert score == pytest.approx(norm(inside(X, atom) @ residual, rule), rel=1e-10, abs=1e-12)
    # Going on from the best, as a run does, boxes get smaller up to the depth.
    chosen = frozenset(atom for atom, _ in found[:3])
    for atom, score in prepared.top(residual, rule, 10**6, chosen):
        assert atom not in chosen
        assert len(atom) <= depth
        assert score == pytest.approx(norm(inside(X, atom) @ residual, rule), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("rule", ["l1", "l2"])
def test_the_best_side_in_every_column_is_found(rule):
    X, residual = rows_and_residual(n=200)
    prepared = Boxes().prepare(X)
    parent = ((1, ">", float(prepared._edges[prepared._starts[1] + 7])),)
    columns = np.arange(4)
    found = prepared._refine([(), parent], columns, residual, rule, NONE, 100)
    for each, column in itertools.product([(), parent], columns):
        scores = [s for a, s in found.items() if a[:1] == parent or len(a) == 1 or parent[0] in a]
        assert any(np.isclose(best_of(X, residual, rule, each, column), s) for s in scores)
    again = prepared._refine([(), parent], columns, residual, rule, frozenset(found), 100)
    assert not set(again) & set(found)
    for each, column in itertools.product([(), parent], [0, 2, 3]):
        wanted = best_of(X, residual, rule, each, column, frozenset(found))
        assert any(np.isclose(wanted, score) for score in again.values())


def test_compiled_sides_equal_their_plain_twin():
    from mixnorm.pools.boxes_jit import best_sides, parent_sums

    X, residual = rows_and_residual(n=300, d=5)
    prepared = Boxes().prepare(X)
    codes, starts = prepared._codes, prepared._starts
    rows = np.arange(0, 300, 3)
    best = np.zeros((1, 5, 3))
    ends, both, taken = np.array([0, 100]), np.array([True]), np.empty(0, dtype=np.int64)
    totals = np.full((1, residual.shape[1]), np.nan)
    parent_sums(rows, ends, residual, totals, 0, 1)
    assert_allclose(totals[0], residual[rows].sum(axis=0), atol=1e-12)
    for begin, stop in [(0, 2), (2, 5)]:
        best_sides(
            codes, prepared._modes, starts, np.arange(5), rows, ends, residual, totals, taken,
            both, False, best, begin, stop,
        )  # fmt: skip
    for column in range(5):
        part, values = codes[column, rows], residual[rows]
        scores = {}
        for t in np.unique(part)[:-1]:
            scores[t, 0] = np.abs(values[part <= t].sum(axis=0)).sum()
            scores[t, 1] = np.abs(values[part > t].sum(axis=0)).sum()
        score, number, upper = best[0, column]
        assert score == pytest.approx(max(scores.values()))
        assert score == pytest.approx(scores[int(number), int(upper)])


@pytest.mark.parametrize("rule", ["l1", "l2"])
def test_a_side_that_keeps_all_rows_of_its_parent_is_no_new_box(rule):
    """With residuals of one sign, nothing would have a larger gradient."""
    X, residual = rows_and_residual(n=200)
    residual = np.abs(residual)
    prepared = Boxes().prepare(X)
    parent = ((1, ">", float(prepared._edges[prepared._starts[2] - 15])),)
    held = inside(X, parent)
    assert np.any(X[held].max(axis=0) < X.max(axis=0))  # thresholds lie above all rows of it
    found = prepared._refine([parent], np.arange(4), residual, rule, NONE, 100)
    assert len(found) == 4
    for atom, score in found.items():
        assert 0 < inside(X, atom).sum() < held.sum()
        assert score == pytest.approx(norm(inside(X, atom) @ residual, rule))
    for column in range(4):
        wanted = best_of(X, residual, rule, parent, column)
        assert any(np.isclose(wanted, score) for score in found.values())


def test_compiled_scores_of_rows_equal_the_weighted_columns():
    X, residual = rows_and_residual(n=400, d=5)
    pool = Boxes(depth=3)
    prepared = pool.prepare(X)
    atoms = []
    for _ in range(12):
        atoms.append(prepared.top(residual, "l1", 1, frozenset(atoms))[0][0])
    rng = np.random.default_rng(1)
    weights, intercept = rng.normal(size=(12, 3)), rng.normal(size=3)
    scorer = pool.scorer(atoms, weights, intercept)
    wanted = pool.evaluate(X, atoms) @ weights + intercept
    assert_allclose(scorer(X), wanted, atol=1e-12)
    assert_allclose(np.stack([scorer.row(x) for x in X[:20]]), wanted[:20], atol=1e-12)
    assert_allclose(
        scorer(X.astype(np.float16)),
        pool.evaluate(X.astype(np.float16), atoms) @ weights + intercept,
    )


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_contract(depth, container):
    X = np.random.default_rng(0).integers(-2, 3, size=(40, 5)).astype(float)
    X[:, 3] = 1.0
    check_pool(Boxes(depth=depth, beam=5), container(X))


def test_depth_one_is_stumps():
    X, residual = rows_and_residual()
    boxes = dict(Boxes(depth=1).prepare(X).top(residual, "l1", 100, NONE))
    stumps = dict(Stumps().prepare(X).top(residual, "l1", 10**6, NONE))
    assert len(boxes) == 4
    for ((column, kind, threshold),), score in boxes.items():
        assert kind == "<="
        assert stumps[column, threshold] == pytest.approx(score)


def test_a_conjunction_is_learned_that_stumps_cannot_express():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 6))
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)).astype(int) + 2 * (X[:, 2] > 0.7)
    split = X[:1000], y[:1000]
    stumps = ShareBoostClassifier(12, pool=Stumps(), alpha=1e-4).fit(*split)
    boxes = ShareBoostClassifier(12, pool=Boxes(), alpha=1e-4).fit(*split)
    assert boxes.score(X[1000:], y[1000:]) > 0.9 > 0.75 > stumps.score(X[1000:], y[1000:])


def test_intervals():
    """Two sides of one column make an interval."""
    X = np.linspace(0.0, 1.0, 200)[:, None]
    y = (X[:, 0] > 0.3) & (X[:, 0] <= 0.6)
    model = ShareBoostClassifier(3, pool=Boxes(), options=GreedyOptions(rule="exact")).fit(X, y)
    assert model.score(X, y) == 1.0
    assert any({kind for _, kind, _ in atom} == {"<=", ">"} for atom in model.path_["feature"])


def test_rows_of_weight_zero_do_not_count():
    X, residual = rows_and_residual()
    weight = np.ones(60)
    weight[::3] = 0.0
    residual[::3] = 0.0
    whole = Boxes().prepare(X, weight=weight).top(residual, "l1", 20, NONE)
    kept = weight > 0
    part = Boxes().prepare(X[kept], weight=weight[kept]).top(residual[kept], "l1", 20, NONE)
    assert [atom for atom, _ in whole] == [atom for atom, _ in part]
    assert_allclose([s for _, s in whole], [s for _, s in part])


def test_bins():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    prepared = Boxes(max_bins=15).prepare(X)
    assert len(prepared._edges) == 30
    check_pool(Boxes(max_bins=7), X[:300])


def test_words_cost_and_columns():
    pool, atom = Boxes(), ((0, "<=", 2.5), (0, ">", 1.0), (3, ">", 0.5))
    assert pool.describe(atom, list("abcd")) == "a ≤ 2.5 and a > 1 and d > 0.5"
    assert pool.cost(atom, 4) == Cost(0, 3)
    assert pool.feature_indices([atom], 4).tolist() == [0, 3]
    assert pool.n_columns(atom, 4) == 1


def test_boxes_of_the_same_columns_cost_one_sum():
    atoms = [
        ((0, "<=", 1.0),),
        ((0, "<=", 2.0),),
        ((0, ">", 1.0),),
        ((0, "<=", 2.0), (1, ">", 0.5)),
        ((0, ">", 1.0), (1, "<=", 0.5)),
        ((0, "<=", 2.0), (1, ">", 0.5), (2, "<=", 7.0)),
    ]
    # Column 0 has two thresholds and column 1 one; the last box reads three columns.
    assert Boxes().total_cost(atoms[:5], 4, 10) == Cost(2 * 10, 2 + 1)
    assert Boxes().total_cost(atoms, 4, 10) == Cost(3 * 10, 2 + 1 + 3)
    assert Boxes().total_cost([], 4, 10) == Cost(0, 0)
    X = np.array(
        [[0.5, 0.4, 9.0], [1.0, 0.5, 7.0], [1.5, 0.6, 6.0], [2.0, 0.6, 8.0], [3.0, 0.0, 1.0]]
    )
    weights = 10.0 ** np.arange(6)[:, None]
    for rows in (X, np.tile(X, (60, 1))):  # few rows, and enough for sums to be made beforehand
        for count in range(7):
            some, own = atoms[:count], weights[:count]
            found = Boxes().scorer(some, own, np.zeros(1))(rows)
            assert_array_equal(found, Boxes().evaluate(rows, some) @ own)


@pytest.mark.parametrize(
    "stranger",
    [
        ((0, "<", 1.0),),
        ((4, "<=", 1.0),),
        ((0, "<=", 1),),
        ((0, "<=", float("inf")),),
        ((1, "<=", 1.0), (0, "<=", 1.0)),
        ((0, "<=", 1.0), (0, "<=", 2.0)),
        (0, 1.0),
    ],
)
def test_strangers(stranger):
    with pytest.raises(ValueError, match="atoms of a Boxes pool"):
        Boxes().n_columns(stranger, 4)


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ({"depth": 0}, ValueError, "Boxes: depth=0 must be at least 1"),
        ({"max_bins": 1.5}, TypeError, "Boxes: max_bins=1.5 must be a whole number"),
        ({"beam": True}, TypeError, "Boxes: beam=True must be a whole number"),
    ],
)
def test_bad_parameters(bad, error, words):
    X, y = np.arange(8.0).reshape(8, 1), np.arange(8) % 2
    with pytest.raises(error, match=words):
        ShareBoostClassifier(1, pool=Boxes(**bad)).fit(X, y)


def test_in_estimators(tmp_path):
    X, _ = rows_and_residual(n=300, d=6)
    y = (X[:, 0] > 0) * 1 + (X[:, 1] > 0) * (X[:, 2] > 0)
    model = ShareBoostClassifier(8, pool=Boxes(depth=3), max_inputs=3).fit(X, y)
    assert set(model.selected_) <= {0, 1, 2}
    assert model.cost_ == Boxes().total_cost(model.path_["feature"], 6, 3)
    save(model, tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict(X), model.predict(X))
    predict = model.predictor()
    assert_array_equal(predict(X), model.predict(X))
    assert predict(X[0]) == model.predict(X[:1])[0]
    sparse = ShareBoostClassifier(8, pool=Boxes(depth=3), max_inputs=3).fit(sp.csr_array(X), y)
    assert_array_equal(sparse.predict(sp.csr_array(X)), model.predict(X))
    regressor = ShareBoostRegressor(6, pool=Union((Columns(), Boxes()))).fit(X, y)
    assert regressor.score(X, y) > 0.9


def test_few_inputs_are_kept_to():
    """Boxes of two columns and more have larger gradients than stumps, and do not fit."""
    X, y = load_digits(return_X_y=True)
    for most in (1, 3):
        model = ShareBoostClassifier(12, pool=Boxes(depth=3), max_inputs=most).fit(X, y)
        assert len(model.selected_) == most
        assert len(model.path_["feature"]) == 12
    paced = ShareBoostClassifier(
        12, pool=Boxes(depth=3), max_inputs=3, alpha=1e-3, options=GreedyOptions(rounds_per_input=4)
    ).fit(X, y)
    read = [set(Boxes().feature_indices(paced.path_["feature"][:n], 64)) for n in range(1, 13)]
    assert [len(part) for part in read] == [1] * 4 + [2] * 4 + [3] * 4


def test_new_inputs():
    X, residual = rows_and_residual(n=200)
    prepared = Boxes(depth=3).prepare(X)
    for used, new in ((set(), 1), ({0}, 0), ({0}, 1), ({0, 2}, 1)):
        found = prepared.top(residual, "l1", 100, NONE, inputs=frozenset(used), new_inputs=new)
        counts = [len(prepared.inputs(atom) - used) for atom, _ in found]
        assert max(counts) == new


@pytest.mark.parametrize("pool", [Boxes(), Stumps()])
def test_a_path_is_not_continued_on_other_data(pool):
    X, _ = rows_and_residual()
    y = np.arange(60) % 3
    model = ShareBoostClassifier(2, pool=pool, warm_start=True).fit(X, y)
    model.set_params(n_features_to_select=4)
    with pytest.raises(ValueError, match="is not a threshold of column"):
        model.fit(0.1 * X, y)
    assert len(model.fit(X, y).path_["loss"]) == 4


@pytest.mark.parametrize("dtype", [">f8", ">i4", np.longdouble, np.float16])
@pytest.mark.parametrize("pool", [Boxes(), Stumps()])
def test_dtypes_that_compiled_code_does_not_know(pool, dtype):
    X = np.round(10 * rows_and_residual(n=300)[0])
    y = np.arange(300) % 3
    native = ShareBoostClassifier(4, pool=pool).fit(X, y)
    other = ShareBoostClassifier(4, pool=pool).fit(X.astype(dtype), y)
    assert_array_equal(other.predict(X.astype(dtype)), native.predict(X))


def test_any_depth():
    assert Boxes(depth=10**9).prepare(rows_and_residual()[0]).n_usable == 2**31 - 1
