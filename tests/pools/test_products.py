"""Products of columns: scores against materialised products, scaling, and what is left out."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mixnorm
from mixnorm import ShareBoostClassifier, ShareBoostRegressor
from mixnorm.pools import Cost, Products, product_tables

NONE = frozenset()
ALL = 10**6
VALUES = [-2.0, -1.0, 0.0, 0.0, 0.0, 0.5, 1.0, 3.0]


def table(n_samples=60, n_features=5, seed=0, filled=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[rng.random(X.shape) > filled] = 0.0
    return X


def residual_for(n_samples, n_outputs=3, seed=1):
    residual = np.random.default_rng(seed).standard_normal((n_samples, n_outputs)) / n_samples
    return residual - residual.mean(axis=0)


def atoms_of(pool, n_features):
    """All atoms there could be, in order."""
    singles = [(i,) for i in range(n_features)] if pool.linear else []
    pairs = itertools.combinations_with_replacement(range(n_features), 2)
    return singles + [pair for pair in pairs if pool.squares or pair[0] != pair[1]]


def product(X, atom):
    return np.prod(np.asarray(X, dtype=np.float64)[:, list(atom)], axis=1)


def unit_of(column, weight=None, scale="std", fit_intercept=True):
    """What a product is divided by, from the definition."""
    if scale == "std":
        centre = np.average(column, weights=weight) if fit_intercept else 0.0
        return np.sqrt(np.average((column - centre) ** 2, weights=weight))
    return np.abs(column).max() if scale else 1.0


def brute_force(pool, X, residual, rule, *, weight=None, scale="std", fit_intercept=True):
    """The atoms that vary and repeat no linear term, with the norms of their gradients."""
    if weight is not None:
        used = weight > 0
        X, residual, weight = X[used], residual[used], weight[used]
    found = {}
    for atom in atoms_of(pool, X.shape[1]):
        column = product(X, atom)
        if not np.any(column) or (fit_intercept and np.ptp(column) == 0.0):
            continue
        if pool.linear and len(atom) == 2 and repeats(X, atom, fit_intercept):
            continue
        gradient = column @ residual / unit_of(column, weight, scale, fit_intercept)
        norm = np.abs(gradient).sum() if rule == "l1" else np.linalg.norm(gradient)
        found[atom] = norm
    return found


def repeats(X, atom, fit_intercept):
    if any(np.ptp(X[:, i]) == 0.0 for i in atom):
        return True
    values = np.unique(X[:, atom[0]])
    return atom[0] == atom[1] and len(values) == 2 and (fit_intercept or 0.0 in values)


def assert_scores(prepared, residual, rule, wanted, rtol=1e-10):
    found = dict(prepared.top(residual, rule, ALL, NONE))
    assert prepared.n_usable == len(wanted)
    assert set(found) <= set(wanted)
    size = np.abs(residual).sum() * max(wanted.values(), default=0.0)
    for atom, score in wanted.items():
        assert found.get(atom, 0.0) == pytest.approx(score, rel=rtol, abs=1e-5 * rtol + rtol * size)


@given(
    X=hnp.arrays(np.float64, (17, 4), elements=st.sampled_from(VALUES)),
    seed=st.integers(0, 2**16),
    rule=st.sampled_from(["l1", "l2"]),
    silent=st.integers(0, 8),
    form=st.sampled_from([np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix]),
    pool=st.builds(Products, st.booleans(), st.booleans()),
    scale=st.sampled_from(["std", "max", False]),
    fit_intercept=st.booleans(),
)
def test_scores_equal_brute_force(X, seed, rule, silent, form, pool, scale, fit_intercept):
    """Ties, duplicate and constant columns, rows of weight zero."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 1.5, 17)
    weight[:silent] = 0.0
    residual = rng.standard_normal((17, 3)) * weight[:, None]
    options = {"scale": scale, "fit_intercept": fit_intercept}
    wanted = brute_force(pool, X, residual, rule, weight=weight, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(product_tables, "_DENSE_FROM", 0.6)
        prepared = pool.prepare(form(X), weight=weight, **options)
    assert_scores(prepared, residual, rule, wanted)


@pytest.mark.parametrize("rule", ["l1", "l2"])
@pytest.mark.parametrize("filled", [0.05, 1.0])
@pytest.mark.parametrize("n_outputs", [1, 7])
def test_blocks_change_nothing(monkeypatch, rule, filled, n_outputs):
    X, residual = table(300, 45, filled=filled), residual_for(300, n_outputs)
    X = sp.csr_array(X) if filled < 1 else X
    wanted = Products().prepare(X).top(residual, rule, ALL, NONE)
    monkeypatch.setattr(product_tables, "_ROWS_PER_PRODUCT", 24)
    monkeypatch.setattr(product_tables, "_SAMPLES_PER_PRODUCT", 64)
    found = Products().prepare(X).top(residual, rule, ALL, NONE)
    assert len(found) == len(wanted) > 500
    assert dict(found) == pytest.approx(dict(wanted), rel=1e-9)


@pytest.mark.parametrize(("n_features", "count"), [(36, 630), (16, 120)])
def test_the_counts_of_the_paper(n_features, count):
    """Section A.3: products of two different columns of satimage and of pendigits."""
    X = table(50, n_features)
    assert Products(linear=False, squares=False).prepare(X).n_usable == count
    assert Products().prepare(X).n_usable == count + 2 * n_features


def test_sparse_and_dense_agree():
    X, residual = table(500, 30, filled=0.08), residual_for(500, 4)
    X[:, 0] = (X[:, 0] != 0) * 2.0  # two values
    X[:, 1] = np.round(X[:, 1]) + 2.0  # no zeros
    X[:, 2] = -1.0
    assert sp.csr_array(X).nnz < 0.15 * X.size
    for fit_intercept in (True, False):
        here = Products().prepare(X, fit_intercept=fit_intercept)
        there = Products().prepare(sp.csr_array(X), fit_intercept=fit_intercept)
        assert here.n_usable == there.n_usable
        for rule in ("l1", "l2"):
            wanted = dict(here.top(residual, rule, ALL, NONE))
            assert dict(there.top(residual, rule, ALL, NONE)) == pytest.approx(wanted, rel=1e-9)
        for atom in ((0,), (1, 3), (4, 4)):
            np.testing.assert_array_equal(here.columns(atom), there.columns(atom))
            np.testing.assert_array_equal(here.scale(atom), there.scale(atom))


def test_sparse_is_not_made_dense():
    """A matrix of 10^9 entries: a dense copy would take 8 GB."""
    rows = np.repeat(np.arange(20), 3)
    X = sp.csr_array((np.arange(1.0, 61.0), (rows, np.tile([3, 7, 150], 20))), (1_000_000, 1000))
    residual = np.zeros((1_000_000, 1))
    residual[:20, 0] = np.linspace(-1, 1, 20)
    prepared = Products(linear=False).prepare(X)
    assert prepared.n_usable == 6
    (best,) = prepared.top(residual, "l1", 1, NONE)
    assert best[0] in {(3, 3), (3, 7), (3, 150), (7, 7), (7, 150), (150, 150)}


def test_what_repeats_a_linear_term_is_left_out():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.integers(0, 2, 40),  # an indicator: its square is itself
            rng.choice([2.0, 5.0], 40),  # two values: its square is affine in it
            rng.choice([-3.0, 3.0], 40),  # its square is constant
            np.full(40, 4.0),  # times a constant, a column is itself
            rng.standard_normal(40),
        ]
    )
    crossed = {(0, 1), (0, 2), (0, 4), (1, 2), (1, 4), (2, 4)}
    singles = {(0,), (1,), (2,), (4,)}
    assert offered(Products(), X) == singles | crossed | {(4, 4)}
    without = offered(Products(), X, fit_intercept=False)
    assert without == singles | {(3,)} | crossed | {(4, 4), (1, 1), (2, 2)}
    no_terms = offered(Products(linear=False), X)
    times_constant = {(0, 3), (1, 3), (2, 3), (3, 4)}
    assert no_terms == crossed | {(4, 4), (0, 0), (1, 1)} | times_constant


def offered(pool, X, **options):
    residual = np.random.default_rng(5).standard_normal((len(X), 2))
    return {atom for atom, _ in pool.prepare(X, **options).top(residual, "l1", ALL, NONE)}


@pytest.mark.parametrize("rule", ["l1", "l2"])
@pytest.mark.parametrize("scale", ["std", "max", False])
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_huge_and_tiny_columns(rule, scale, form):
    plain, residual = table(50, 6, filled=0.6), residual_for(50)
    X = plain * np.array([1e150, 1e-150, 1.0, 1e200, 1e-200, 1e-160])
    prepared = Products().prepare(form(X), scale=scale)
    found = dict(prepared.top(residual, rule, ALL, NONE))
    # 1e350, 1e400, 1e-350, 1e-360, 1e-400, 1e-320, 1e-310: out of range, or without an inverse
    lost = {(0, 3), (3, 3), (1, 4), (4, 5), (4, 4), (5, 5), (1, 5)}
    if not scale:  # the fourth powers of these overflow: 1e150, 1e200, 1e300
        lost |= {(0,), (3,), (0, 0), (0, 2), (2, 3)}
    assert set(found) == set(atoms_of(Products(), 6)) - lost
    if scale:
        wanted = brute_force(Products(), plain, residual, rule, scale=scale)
        assert found == pytest.approx({atom: wanted[atom] for atom in found}, rel=1e-10)
    for atom in found:
        row = prepared.columns(atom)
        assert np.all(np.isfinite(row))
        np.testing.assert_allclose(
            row[0], Products().evaluate(form(X), [atom])[:, 0] / prepared.scale(atom), rtol=1e-15
        )


def test_huge_and_tiny_columns_in_single_precision():
    plain, residual = table(50, 4), residual_for(50).astype(np.float32)
    X = (plain * np.array([1e18, 1e-18, 1e25, 1.0])).astype(np.float32)
    for rule in ("l1", "l2"):
        found = dict(Products().prepare(X).top(residual, rule, ALL, NONE))
        assert set(found) == set(atoms_of(Products(), 4)) - {(2, 2), (0, 2)}
        wanted = brute_force(Products(), plain, residual, rule)
        assert found == pytest.approx({atom: wanted[atom] for atom in found}, rel=1e-4)


def test_rows_of_weight_zero_do_not_count():
    X = table(40, 4)
    X[[3, 9]] = [[1e200, 1e200, -1e200, 1e200], [0.0, 1e-300, 1e300, 1.0]]
    weight = np.ones(40)
    weight[[3, 9]] = 0.0
    residual = residual_for(40) * weight[:, None]
    for form, scale in itertools.product((np.asarray, sp.csr_array), ("std", "max")):
        prepared = Products().prepare(form(X), weight=weight, scale=scale)
        wanted = brute_force(Products(), X, residual, "l1", weight=weight, scale=scale)
        assert_scores(prepared, residual, "l1", wanted)
        kept = product(X[weight > 0], (0, 2))
        np.testing.assert_allclose(prepared.scale((0, 2)), unit_of(kept, scale=scale), rtol=1e-12)
        row = prepared.columns((0, 2))[0]
        np.testing.assert_allclose(row[weight > 0], kept / unit_of(kept, scale=scale), rtol=1e-12)
        assert np.all(np.isfinite(row @ weight))


def test_products_of_small_integers_do_not_wrap_around():
    X = np.random.default_rng(0).integers(0, 256, (30, 3)).astype(np.uint8)
    values = Products().evaluate(X, [(0, 1), (2, 2), (1,)])
    assert values.dtype == np.float32
    np.testing.assert_array_equal(
        values, np.column_stack([product(X, atom) for atom in [(0, 1), (2, 2), (1,)]])
    )
    prepared = Products().prepare(X, scale="max")
    assert prepared.columns((0, 1)).dtype == np.float32
    assert prepared.scale((0, 1)) == product(X, (0, 1)).max()
    deviation = product(X, (0, 1)).std()
    np.testing.assert_allclose(Products().prepare(X).scale((0, 1)), deviation, rtol=1e-5)


def test_ties_go_to_the_first():
    X = np.round(4 * table(32, 2))  # sums of such numbers are exact
    X = np.column_stack([X, -X[:, 0], X[:, 1]])
    residual = np.outer(X[:, 0] * X[:, 1], [1.0, -1.0])
    prepared = Products(squares=False).prepare(X)
    found = prepared.top(residual, "l1", 4, NONE)
    assert [atom for atom, _ in found] == [(0, 1), (0, 3), (1, 2), (2, 3)]
    excluded = frozenset({(0, 1), (1, 2), (9, 12), (7,)})
    assert [atom for atom, _ in prepared.top(residual, "l1", 2, excluded)] == [(0, 3), (2, 3)]
    assert prepared.top(np.zeros((32, 2)), "l1", 3, NONE) == []


@pytest.mark.parametrize("filled", [0.05, 1.0])
@pytest.mark.parametrize("scale", [True, False])
def test_inputs(filled, scale):
    X, residual = table(400, 9, filled=filled), residual_for(400)
    X = sp.csr_array(X) if filled < 1 else X
    prepared = Products().prepare(X, scale=scale)
    everything = dict(prepared.top(residual, "l1", ALL, NONE))
    for inputs in ({2}, {8, 1}, {0, 3, 4, 7}, set(range(9)), set()):
        found = dict(prepared.top(residual, "l1", ALL, NONE, frozenset(inputs)))
        wanted = {atom: score for atom, score in everything.items() if inputs.issuperset(atom)}
        assert found == pytest.approx(wanted, rel=1e-10)
    some = prepared.top(residual, "l1", ALL, frozenset({(8,), (1, 8)}), frozenset({1, 8}))
    assert {atom for atom, _ in some} == {(1,), (1, 1), (8, 8)}
    assert prepared.inputs((1, 8)) == {1, 8}


@pytest.mark.parametrize("rule", ["l1", "l2", "joint"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_fit_equals_the_fit_on_materialised_columns(rule, form):
    X = table(150, 6)
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] - X[:, 3] ** 2, [-1.0, 0.5])
    atoms = atoms_of(Products(), 6)
    columns = np.column_stack([product(X, atom) for atom in atoms])
    options = {"options__rule": rule, "alpha": 1e-4}
    model = ShareBoostClassifier(6, pool=Products()).set_params(**options).fit(form(X), y)
    other = ShareBoostClassifier(6).set_params(**options).fit(columns, y)
    assert model.path_["feature"].tolist() == [atoms[j] for j in other.path_["feature"]]
    np.testing.assert_allclose(model.path_["loss"], other.path_["loss"], rtol=1e-6)
    new = table(40, 6, seed=3)
    new_columns = np.column_stack([product(new, atom) for atom in atoms])
    scores = other.decision_function(new_columns)
    np.testing.assert_allclose(model.decision_function(form(new)), scores, rtol=1e-4, atol=1e-4)
    assert model.cost_.multiply_adds == 6 * 3 + sum(len(a) - 1 for a in model.path_["feature"])


def test_a_model_is_stored_and_read(tmp_path):
    X = table(80, 4)
    y = X[:, 0] * X[:, 3] + X[:, 1]
    model = ShareBoostRegressor(3, pool=Products(squares=False)).fit(X, y)
    mixnorm.save(model, tmp_path / "model")
    loaded = mixnorm.load(tmp_path / "model")
    assert loaded.pool == model.pool
    assert loaded.path_["feature"].tolist() == model.path_["feature"].tolist()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "atom",
    [(5,), (0, 5), (-1,), (2, 1), (0, 1, 2), (), 0, [0, 1], (0.0, 1), (True, 2), "01", None]
    + [(np.int64(0), np.int64(1))],
)
def test_strange_atoms(atom):
    with pytest.raises(ValueError, match="atoms of a Products pool are"):
        Products().n_columns(atom, 5)


def test_atoms_in_words_and_numbers():
    pool, names = Products(), ["a", "b", "c"]
    assert [pool.describe(atom, names) for atom in [(2,), (1, 1), (0, 2)]] == ["c", "b²", "a × c"]
    assert [pool.cost(atom, 3) for atom in [(2,), (1, 1)]] == [Cost(0, 0), Cost(1, 0)]
    assert pool.feature_indices([(0, 2), (1, 1), (2,)], 3).tolist() == [0, 2, 1, 2]
    assert pool.feature_indices([], 3).dtype.kind == "i"
    assert pool.labels([(0, 2)]) == [(0, 2)]


# --- compiled loops and their plain twins


def twin_sizes(X, skip_constant):
    products = [product(X, pair) for pair in atoms_of(Products(False), X.shape[1])]
    return [0.0 if skip_constant and np.ptp(p) == 0 else np.abs(p).max() for p in products]


def compressed(X):
    by_column, by_row = sp.csc_array(X), sp.csr_array(X)
    return (
        *(by_column.indptr, by_column.indices, by_column.data),
        *(by_row.indptr, by_row.indices, by_row.data),
    )


@pytest.mark.parametrize("skip_constant", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_sizes_equal_their_plain_twin(dtype, skip_constant):
    from mixnorm.pools.products_jit import dense_ranges, sparse_ranges

    X = np.random.default_rng(0).choice(VALUES, size=(30, 9)).astype(dtype)
    X[:, 4], X[:, 5], X[:, 6] = 2.0, 0.0, np.where(X[:, 0] > 0, 1.0, -1.0)
    starts = product_tables.pair_starts(9)
    wanted = twin_sizes(X, skip_constant)
    low, high = np.full((2, starts[-1]), np.nan, dtype=dtype)
    for begin, stop in [(0, 4), (4, 9)]:
        dense_ranges(np.ascontiguousarray(X.T), starts, low, high, begin, stop)
    sizes = product_tables.measure_ranges(low, high, skip_constant)
    np.testing.assert_array_equal(sizes, wanted)
    low[:], high[:] = np.nan, np.nan
    for begin, stop in [(0, 4), (4, 9)]:
        sparse_ranges(*compressed(X), starts, low, high, begin, stop)
    sizes = product_tables.measure_ranges(low, high, skip_constant)
    np.testing.assert_array_equal(sizes, wanted)


@pytest.mark.parametrize("squared", [True, False])
def test_compiled_norms_equal_their_plain_twin(squared):
    from mixnorm.pools.products_jit import sparse_norms

    X, residual = table(50, 8, filled=0.3), residual_for(50, 4)
    starts = product_tables.pair_starts(8)
    norms = np.full(starts[-1], np.nan)
    for begin, stop in [(0, 3), (3, 8)]:
        sparse_norms(*compressed(X), starts, residual, squared, norms, begin, stop)
    gradients = [product(X, pair) @ residual for pair in atoms_of(Products(False), 8)]
    wanted = [np.linalg.norm(g, ord=2 if squared else 1) for g in gradients]
    np.testing.assert_allclose(norms, wanted, rtol=1e-12, atol=1e-15)


def test_importing_pools_imports_no_compiler():
    code = "import sys, mixnorm.pools; print('numba' in sys.modules, 'sklearn' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
