"""The columns pool: scores against the plain gradient, groups, scaling, and what is left out."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from mixnorm._array import to_numpy
from mixnorm.pools import Columns, working_dtype
from mixnorm.testing import check_pool

FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
}
NONE = frozenset()


def table(n_samples=50, n_features=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[rng.random(X.shape) < 0.4] = 0.0
    return X


def residual_for(n_samples, n_outputs=3, dtype="float64", seed=1):
    rng = np.random.default_rng(seed)
    residual = rng.standard_normal((n_samples, n_outputs)) / n_samples
    return (residual - residual.mean(axis=0)).astype(dtype)


def unit_of(X, scale="std", fit_intercept=True):
    """What each column is divided by, from the definition."""
    X = np.asarray(X, dtype=np.float64)
    if scale == "std":
        size = X.std(axis=0) if fit_intercept else np.sqrt((X**2).mean(axis=0))
    else:
        size = np.abs(X).max(axis=0)
    return np.where(size > 0, size, 1.0) if scale else np.ones(X.shape[1])


def brute_force(X, residual, rule, scale="std", fit_intercept=True):
    """The norm of each column's gradient, from the definition."""
    X = np.asarray(X, dtype=np.float64)
    X = X / unit_of(X, scale, fit_intercept)
    gradient = X.T @ residual.astype(np.float64)
    return np.abs(gradient).sum(axis=1) if rule == "l1" else np.sqrt((gradient**2).sum(axis=1))


def all_scores(prepared, residual, rule="l1"):
    return dict(prepared.top(residual, rule, prepared.n_atoms, NONE))


@pytest.mark.parametrize("scale", ["std", "max", False])
@pytest.mark.parametrize("rule", ["l1", "l2"])
@pytest.mark.parametrize("form", FORMS)
def test_scores_are_gradient_norms(form, rule, scale):
    X = table()
    residual = residual_for(50)
    prepared = Columns().prepare(FORMS[form](X), scale=scale)
    wanted = brute_force(X, residual, rule, scale)
    scores = all_scores(prepared, residual, rule)
    assert list(scores) == list(np.argsort(-wanted))
    np.testing.assert_allclose([scores[j] for j in range(8)], wanted, rtol=1e-10)


@given(
    n_samples=st.integers(2, 30),
    n_features=st.integers(1, 12),
    n_outputs=st.integers(1, 5),
    form=st.sampled_from(sorted(FORMS)),
    rule=st.sampled_from(["l1", "l2"]),
    seed=st.integers(0, 100),
)
def test_scores_for_any_shape(n_samples, n_features, n_outputs, form, rule, seed):
    X = table(n_samples, n_features, seed)
    residual = residual_for(n_samples, n_outputs, seed=seed + 1)
    wanted = brute_force(X, residual, rule, fit_intercept=False)
    scores = all_scores(Columns().prepare(FORMS[form](X), fit_intercept=False), residual, rule)
    got = [scores.get(j, 0.0) for j in range(n_features)]
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-15)


@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=10),
    rule=st.sampled_from(["l1", "l2"]),
)
def test_scores_of_any_groups(labels, rule):
    X, residual = table(20, len(labels)), residual_for(20)
    scores = all_scores(Columns(labels).prepare(X), residual, rule)
    single = brute_force(X, residual, rule)
    for atom, label in enumerate(dict.fromkeys(labels)):
        part = single[np.asarray(labels) == label]
        wanted = part.sum() if rule == "l1" else np.sqrt((part**2).sum())
        assert scores[atom] == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64", "bool", "int16"])
@pytest.mark.parametrize("form", ["C", "F", "csr_array"])
def test_dtypes(dtype, form):
    if dtype == "float16" and form == "csr_array":
        pytest.skip("SciPy has no half-precision sparse arrays")
    X = np.abs(np.round(4 * table())).astype(dtype)
    data = FORMS[form](X)
    working = np.float64 if dtype == "int64" else np.float32
    assert working_dtype(data) == working
    residual = residual_for(50, dtype=working)
    prepared = Columns().prepare(data)
    scores = all_scores(prepared, residual)
    wanted = brute_force(X, residual, "l1")
    rtol = 1e-10 if working is np.float64 else 1e-4
    np.testing.assert_allclose([scores[j] for j in range(8)], wanted, rtol=rtol)
    column = prepared.columns(2)
    assert column.dtype == working
    np.testing.assert_allclose(column[0], X[:, 2] / X[:, 2].std(dtype=float), rtol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "working"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        ("int8", "float32"),
        ("uint8", "float32"),
        ("int16", "float32"),
        ("bool", "float32"),
        ("int32", "float64"),
        ("int64", "float64"),
    ],
)
def test_working_dtype_holds_the_data_exactly(dtype, working, xp):
    assert working_dtype(np.zeros(3, dtype)) == np.dtype(working)
    assert working_dtype(sp.csr_array(np.zeros((2, 2), dtype))) == np.dtype(working)
    assert working_dtype(xp.zeros(3, dtype=getattr(xp, dtype))) == getattr(xp, working)


def test_the_dtype_of_the_weights_rules():
    weight = np.full(50, 1 / 50, dtype=np.float32)
    prepared = Columns().prepare(table(), weight=weight)
    assert prepared.columns(0).dtype == np.float32
    assert prepared.scale(0).dtype == np.float32


def test_memory_map(tmp_path):
    X = table(60, 7)
    for name, dtype, order in [("a", "float64", "C"), ("b", "float64", "F"), ("c", "int16", "C")]:
        data = np.round(100 * X).astype(dtype)
        path = tmp_path / f"{name}.bin"
        mapped = np.memmap(path, dtype=dtype, mode="w+", shape=X.shape, order=order)
        mapped[:] = data
        mapped.flush()
        opened = np.memmap(path, dtype=dtype, mode="r", shape=X.shape, order=order)
        check_pool(Columns(), opened)
        working = working_dtype(data)
        residual = residual_for(60, dtype=working)
        got = all_scores(Columns().prepare(opened), residual)
        wanted = all_scores(Columns().prepare(data), residual)
        assert list(got) == list(wanted)
        rtol = 1e-12 if working == np.float64 else 1e-5
        np.testing.assert_allclose(list(got.values()), list(wanted.values()), rtol=rtol)
        # What the engine keeps is no view of the file.
        assert type(Columns().prepare(opened).columns(0)) is np.ndarray


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "c", "a"],
        [7, 2, 7, 9, 2],
        np.array(["b", "a", "b", "c", "a"]),
        np.array([7, 2, 7, 9, 2]),
        [("b", 1), ("a", 1), ("b", 1), "c", ("a", 1)],
    ],
)
def test_groups(labels):
    X, residual = table(30, 5), residual_for(30)
    pool = Columns(labels)
    prepared = pool.prepare(X)
    assert prepared.n_atoms == prepared.n_usable == 3
    assert pool.labels([2, 0]) == [labels[3], labels[0]]
    np.testing.assert_array_equal(pool.feature_indices([1, 0], 5), [1, 4, 0, 2])
    np.testing.assert_array_equal(pool.feature_indices([], 5), [])
    assert prepared.columns(0).shape == (2, 30)
    np.testing.assert_allclose(prepared.scale(0), X[:, [0, 2]].std(axis=0))
    np.testing.assert_array_equal(pool.evaluate(X, [2, 1]), X[:, [3, 1, 4]])
    single = brute_force(X, residual, "l1")
    scores = all_scores(prepared, residual)
    assert scores[0] == pytest.approx(single[0] + single[2], rel=1e-10)
    check_pool(pool, X)
    check_pool(pool, sp.csr_array(X))


def test_groups_survive_copying():
    pool = Columns(np.array(["x", "y", "x"]))
    for copy in (clone(pool), pickle.loads(pickle.dumps(pool))):
        assert copy.labels([0, 1]) == ["x", "y"]


@pytest.mark.parametrize("labels", [[0, 1], list(range(9))])
def test_groups_of_the_wrong_length(labels):
    message = rf"groups has {len(labels)} labels, but X has 8 columns"
    with pytest.raises(ValueError, match=message):
        Columns(labels).prepare(table())
    with pytest.raises(ValueError, match=message):
        Columns(labels).evaluate(table(), [0])


def test_a_group_with_a_constant_column_is_offered_for_the_others():
    X = table(30, 4)
    X[:, 1] = 5.0
    prepared = Columns([0, 0, 1, 1]).prepare(X)
    assert prepared.n_usable == 2
    assert prepared.columns(0).shape == (2, 30)
    X[:, 0] = 2.0
    prepared = Columns([0, 0, 1, 1]).prepare(X)
    assert prepared.n_usable == 1
    assert [atom for atom, _ in prepared.top(residual_for(30), "l1", 2, NONE)] == [1]


@pytest.mark.parametrize("form", ["C", "F", "csr_array", "csc_matrix"])
def test_rows_of_weight_zero_do_not_count(form):
    X = table()
    X[3], X[7] = 1e3, -1e3
    X[:, 5] = 2.0
    X[[3, 7], 5] = [9.0, 11.0]  # varies on these rows only
    weight = np.ones(50)
    weight[[3, 7]] = 0.0
    kept = weight > 0
    for scale in ("std", "max"):
        prepared = Columns().prepare(FORMS[form](X), weight=weight / weight.sum(), scale=scale)
        wanted = unit_of(X[kept], scale)
        for j in (0, 2, 6):
            np.testing.assert_allclose(prepared.scale(j), wanted[j])
    residual = residual_for(50)
    residual[~kept] = 0.0
    assert 5 not in all_scores(prepared, residual)


@pytest.mark.parametrize("form", ["C", "csc_array"])
@pytest.mark.parametrize("value", [0.0, 1.0, -7.5])
def test_constant_columns(form, value):
    X = table()
    X[:, 2] = value
    residual = residual_for(50)
    residual += 0.01  # without an intercept, a constant column has a gradient
    with_intercept = Columns().prepare(FORMS[form](X))
    without = Columns().prepare(FORMS[form](X), fit_intercept=False)
    assert with_intercept.n_usable == 7
    assert 2 not in all_scores(with_intercept, residual)
    assert without.n_usable == (8 if value else 7)
    assert (2 in all_scores(without, residual)) == (value != 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["C", "F", "csr_array"])
@pytest.mark.parametrize("rule", ["l1", "l2"])
def test_scores_do_not_depend_on_units(dtype, form, rule):
    X = table()
    units = 10.0 ** np.array([-8, -4, 0, 1, 2, 4, 6, 8])
    residual = residual_for(50, dtype=dtype)
    got = all_scores(Columns().prepare(FORMS[form]((X * units).astype(dtype))), residual, rule)
    wanted = brute_force(X, residual, rule)
    rtol = 1e-10 if dtype == "float64" else 1e-4
    np.testing.assert_allclose([got[j] for j in range(8)], wanted, rtol=rtol)


@pytest.mark.parametrize("rule", ["l1", "l2"])
def test_extreme_units_in_single_precision(rule):
    """Squares of gradients would overflow, or vanish, before the scaling."""
    X = table(n_features=3)
    units = np.array([1e-30, 1.0, 1e30])
    residual = residual_for(50, dtype="float32")
    got = all_scores(Columns().prepare((X * units).astype(np.float32)), residual, rule)
    wanted = brute_force(X, residual, rule)
    np.testing.assert_allclose([got[j] for j in range(3)], wanted, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["C", "csr_array"])
@pytest.mark.parametrize("power", [0.25, -0.25])
def test_huge_and_tiny_columns_need_a_scale(dtype, form, power):
    """Fourth powers of their entries, the curvature along a gradient, would leave the range."""
    X = table().astype(dtype)
    X[:, 1] *= 10.0 ** np.sign(power) * float(np.finfo(dtype).max) ** power
    assert Columns().prepare(FORMS[form](X)).n_usable == 8
    with pytest.raises(ValueError, match=r"scale=False takes columns from .* column 1 of X"):
        Columns().prepare(FORMS[form](X), scale=False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["C", "csr_array"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_denormal_columns_are_skipped(dtype, form, fit_intercept):
    """Their weight could not be turned outward: the inverse of the scale overflows."""
    X = np.round(table() * 4).astype(dtype)
    X[:, 1] *= np.finfo(dtype).tiny / 64
    prepared = Columns().prepare(FORMS[form](X), fit_intercept=fit_intercept)
    assert prepared.n_usable == 7
    assert 1 not in all_scores(prepared, residual_for(50, dtype=dtype))


@pytest.mark.parametrize("form", ["C", "F", "csr_array"])
def test_ties_go_to_the_first_column(form):
    X = table()
    X[:, 6] = X[:, 2]
    X[:, 4] = -X[:, 2]
    prepared = Columns().prepare(FORMS[form](X))
    residual = np.zeros((50, 2))
    residual[:, 0] = X[:, 2]
    residual[:, 1] = -X[:, 2]
    first = prepared.top(residual, "l1", 1, NONE)
    assert [atom for atom, _ in first] == [2]
    assert [atom for atom, _ in prepared.top(residual, "l1", 3, NONE)] == [2, 4, 6]
    assert [atom for atom, _ in prepared.top(residual, "l1", 2, frozenset({2}))] == [4, 6]


def test_exclusion_and_the_number_asked_for():
    prepared = Columns().prepare(table())
    residual = residual_for(50)
    ranked = [atom for atom, _ in prepared.top(residual, "l1", 99, NONE)]
    assert len(ranked) == 8
    for m in range(1, 9):
        assert [atom for atom, _ in prepared.top(residual, "l1", m, NONE)] == ranked[:m]
    assert prepared.top(residual, "l1", 3, frozenset(range(8))) == []
    left = prepared.top(residual, "l1", 99, frozenset(ranked[:6]))
    assert [atom for atom, _ in left] == ranked[6:]


def test_nothing_is_offered_for_a_residual_of_zero():
    assert Columns().prepare(table()).top(np.zeros((50, 2)), "l1", 3, NONE) == []


@pytest.mark.parametrize("form", ["csr_array", "csc_array"])
def test_sparse_entries_given_twice_are_added(form):
    rows, columns = [0, 0, 1, 2, 2], [0, 0, 1, 1, 0]
    data = sp.coo_array(([1.0, 2.0, 4.0, -5.0, 1.0], (rows, columns)), shape=(3, 2))
    indptr, indices = [0, 3, 5], [0, 0, 2, 1, 2]
    doubled = sp.csc_array(([1.0, 2.0, 1.0, 4.0, -5.0], indices, indptr), shape=(3, 2))
    X = doubled if form == "csc_array" else doubled.tocsr()
    prepared = Columns().prepare(X)
    deviation = np.std([3.0, 0.0, 1.0])
    np.testing.assert_allclose(prepared.scale(0), deviation)
    np.testing.assert_allclose(prepared.columns(0), np.array([[3.0, 0.0, 1.0]]) / deviation)
    residual = residual_for(3)
    wanted = brute_force(data.toarray(), residual, "l1")
    scores = all_scores(prepared, residual)
    np.testing.assert_allclose([scores[0], scores[1]], wanted, rtol=1e-10)
    np.testing.assert_array_equal(X.toarray(), data.toarray())


def test_columns_are_named_by_number():
    pool = Columns()
    assert pool.labels([3, 1]) == [3, 1]
    X = table()
    np.testing.assert_array_equal(pool.evaluate(X, [3, 1]), X[:, [3, 1]])
    found = pool.evaluate(sp.csr_array(X), [3, 1])
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), X[:, [3, 1]])


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 2, 2, 2, 3, 4]])
def test_namespaces_agree(xp, groups):
    X, residual = table(), residual_for(50)
    X[:, 6] = 2.0
    weight = np.ones(50)
    weight[:5] = 0.0
    weight /= weight.sum()
    pool = Columns(groups)
    here = pool.prepare(X, weight=weight)
    there = pool.prepare(xp.asarray(X), weight=xp.asarray(weight))
    for rule in ("l1", "l2"):
        wanted = here.top(residual, rule, 4, frozenset({1}))
        got = there.top(xp.asarray(residual), rule, 4, frozenset({1}))
        assert [atom for atom, _ in got] == [atom for atom, _ in wanted]
        np.testing.assert_allclose([s for _, s in got], [s for _, s in wanted], rtol=1e-12)
        for atom, _ in got:
            rows = there.columns(atom)
            assert rows.dtype == xp.float64
            np.testing.assert_allclose(to_numpy(rows), here.columns(atom), rtol=1e-14)
            np.testing.assert_allclose(there.scale(atom), here.scale(atom), rtol=1e-14)
    found = pool.evaluate(xp.asarray(X), [1, 0])
    np.testing.assert_array_equal(to_numpy(found), pool.evaluate(X, [1, 0]))


def test_inputs():
    X, residual = table(), residual_for(50)
    prepared = Columns().prepare(X)
    everything = prepared.top(residual, "l1", 8, NONE)
    found = prepared.top(residual, "l1", 8, NONE, frozenset({1, 4, 6}))
    assert found == [pair for pair in everything if pair[0] in {1, 4, 6}]
    assert prepared.top(residual, "l1", 2, frozenset({4}), frozenset({4})) == []
    assert prepared.top(residual, "l1", 2, NONE, frozenset()) == []
    assert prepared.top(residual, "l1", 8, NONE, frozenset(range(20))) == everything
    grouped = Columns(list("aabbbccc")).prepare(X)
    found = grouped.top(residual, "l1", 8, NONE, inputs=frozenset({0, 1, 2, 3, 5, 6, 7}))
    assert {atom for atom, _ in found} == {0, 2}  # group b lacks a column
    assert grouped.inputs(1) == {2, 3, 4}


@pytest.mark.parametrize("rule", ["l1", "l2"])
def test_costs_rank_by_gain_per_cost(rule):
    X, residual = table(), residual_for(50)
    costs = np.array([1.0, 100.0, 0.01, 4.0, 1.0, 25.0, 1.0, 1.0])
    plain, priced = Columns().prepare(X), Columns(costs=costs).prepare(X)
    scores = all_scores(plain, residual, rule)
    found = priced.top(residual, rule, 8, NONE)
    assert dict(found) == scores  # the scores stay the norms of the gradients
    assert [atom for atom, _ in found] == sorted(
        scores, key=lambda atom: -scores[atom] / np.sqrt(costs[atom])
    )
    assert found[0][0] == 2
    assert priced.top(residual, rule, 1, NONE) == found[:1]
    assert [priced.price(atom) for atom in range(8)] == costs.tolist()
    assert priced.priced
    assert not plain.priced
    cheap = priced.top(residual, rule, 8, NONE, budget=1.0)
    assert cheap == [pair for pair in found if costs[pair[0]] <= 1.0]
    assert priced.top(residual, rule, 8, NONE, budget=0.001) == []
    few = priced.top(residual, rule, 8, frozenset({2}), frozenset({2, 3, 4}), budget=4.0)
    assert few == [pair for pair in found if pair[0] in {3, 4}]


@pytest.mark.parametrize(
    ("groups", "costs"),
    [
        (list("aabbbccc"), [3.0, 1.0, 2.0]),
        (list("aabbbccc"), {"b": 1.0, "c": 2, "a": 3.0}),
        (np.array(list("aabbbccc")), np.array([3, 1, 2])),
        ([9, 9, 4, 4, 4, 7, 7, 7], {4: 1.0, 7: 2.0, 9: 3.0}),
        (None, {0: 3, 1: 1, 2: 2, 3: 4, 4: 4, 5: 4, 6: 4, 7: 4}),
        (None, (3.0, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0)),
    ],
)
def test_forms_of_costs(groups, costs):
    pool = Columns(groups, costs)
    prepared = pool.prepare(table())
    assert [prepared.price(atom) for atom in range(3)] == [3.0, 1.0, 2.0]
    check_pool(pool, table())
    check_pool(pool, sp.csc_array(table().astype(np.float32)))


@pytest.mark.parametrize(
    ("costs", "error", "message"),
    [
        ([1.0] * 7, ValueError, r"costs has shape \(7,\), but there are 8"),
        ([[1.0] * 8], ValueError, r"costs has shape \(1, 8\)"),
        (3.0, ValueError, r"costs has shape \(\)"),
        ([1.0] * 7 + [0.0], ValueError, "costs has 0.0 for 7; costs must be positive"),
        ([1.0, -2.0] + [1.0] * 6, ValueError, "costs has -2.0 for 1"),
        ([np.nan] + [1.0] * 7, ValueError, "costs has nan for 0"),
        ([np.inf] + [1.0] * 7, ValueError, "costs has inf for 0"),
        (["dear"] * 8, TypeError, "costs must be numbers"),
        ([None] * 8, ValueError, "costs has nan"),
        (dict.fromkeys(range(7), 1.0), ValueError, "no cost for column 7"),
        (dict.fromkeys(range(9), 1.0), ValueError, "a cost for the unknown column 8"),
        ({**dict.fromkeys(range(7), 1.0), 7: 0.0}, ValueError, "costs has 0.0 for 7"),
    ],
)
def test_costs_that_are_none(costs, error, message):
    with pytest.raises(error, match=message):
        Columns(costs=costs).prepare(table())


def test_costs_of_groups_are_named_by_label():
    with pytest.raises(ValueError, match="no cost for group 'b'"):
        Columns(list("aabbbbbb"), {"a": 1.0}).prepare(table())
    with pytest.raises(ValueError, match="costs has -1.0 for 'b'"):
        Columns(list("aabbbbbb"), [1.0, -1.0]).prepare(table())


def test_costs_survive_copying_and_namespaces(xp):
    X, residual = table(), residual_for(50)
    pool = Columns(costs=np.arange(1.0, 9.0))
    wanted = pool.prepare(X).top(residual, "l1", 8, NONE, budget=5.0)
    for copy in (clone(pool), pickle.loads(pickle.dumps(pool))):
        assert copy.prepare(X).top(residual, "l1", 8, NONE, budget=5.0) == wanted
    there = Columns(costs=xp.asarray(np.arange(1.0, 9.0))).prepare(xp.asarray(X))
    found = there.top(xp.asarray(residual), "l1", 8, NONE, budget=5.0)
    assert [atom for atom, _ in found] == [atom for atom, _ in wanted]
