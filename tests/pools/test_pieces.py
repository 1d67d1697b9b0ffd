"""Pieces: balls around centres; scores against the columns written out, and new data."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

import mixnorm
from mixnorm import ShareBoostClassifier
from mixnorm.pools import Columns, Cost, Pieces, pieces
from mixnorm.pools.columns import PreparedColumns
from mixnorm.testing import check_pool

NONE = frozenset()
ALL = 10**6


def table(n_samples=80, n_features=3, seed=0, dtype="float64"):
    return np.random.default_rng(seed).standard_normal((n_samples, n_features)).astype(dtype)


def residual_for(n_samples, n_outputs=3, seed=1, dtype="float64"):
    residual = np.random.default_rng(seed).standard_normal((n_samples, n_outputs)) / n_samples
    return (residual - residual.mean(axis=0)).astype(dtype)


def offered(prepared, residual, rule="l1"):
    return dict(prepared.top(residual, rule, ALL, NONE))


def written_out(X, atom):
    """The columns of a piece, from the definition."""
    centre, radius = atom
    X = np.asarray(X, dtype=np.float64)
    distances = np.zeros(len(X))
    for j in range(X.shape[1]):
        distances += (X[:, j] - centre[j]) * (X[:, j] - centre[j])
    inside = distances < radius * radius
    return np.column_stack([X, np.ones(len(X))]) * inside[:, None]


@settings(max_examples=30)
@given(
    X=hnp.arrays(np.float64, (15, 2), elements=st.sampled_from([-2.0, -1.0, 0.0, 1.0, 4.0])),
    seed=st.integers(0, 2**16),
    rule=st.sampled_from(["l1", "l2"]),
    silent=st.integers(0, 7),
    scale=st.booleans(),
    n_radii=st.sampled_from([1, 3, 20]),
)
def test_scores_equal_brute_force(X, seed, rule, silent, scale, n_radii):
    """Ties, duplicate rows, constant columns, rows of weight zero."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 1.5, 15)
    weight[:silent] = 0.0
    residual = rng.standard_normal((15, 3)) * weight[:, None]
    prepared = Pieces(n_radii=n_radii).prepare(X, weight=weight, scale=scale)
    found = offered(prepared, residual, rule)
    inside = set()
    for atom, score in found.items():
        columns = written_out(X, atom)
        largest = np.abs(columns[weight > 0]).max(axis=0)
        scales = np.where((largest > 0) & scale, largest, 1.0)
        gradient = (columns / scales).T @ residual
        wanted = np.abs(gradient).sum() if rule == "l1" else np.linalg.norm(gradient)
        assert score == pytest.approx(wanted, rel=1e-10, abs=1e-12)
        np.testing.assert_array_equal(prepared.scale(atom), scales)
        np.testing.assert_array_equal(prepared.columns(atom), (columns / scales).T)
        held = (atom[0], tuple(columns[weight > 0, -1]))
        assert 0 < sum(held[1]) < np.count_nonzero(weight)  # neither none nor all
        assert held not in inside  # no two balls of a centre hold the same rows
        inside.add(held)
    assert len(found) <= prepared.n_usable


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
def test_new_data_are_judged_as_the_training_data_were(dtype):
    """To the last bit, in any batch, dense or sparse, in single and in double precision."""
    X = table(400, 5) * (1.0 if dtype.startswith("f") else 20.0)
    X = np.abs(X).astype(dtype)
    pool = Pieces(n_centers=30, n_radii=12)
    prepared = pool.prepare(X, random_state=0)
    residual = residual_for(400, dtype=prepared._dtype)
    atoms = [atom for atom, _ in prepared.top(residual, "l1", 40, NONE)]
    assert len(atoms) == 40
    whole = pool.evaluate(X, atoms)
    for form in (sp.csr_array, sp.csc_matrix, np.asfortranarray, lambda part: part.astype(float)):
        np.testing.assert_array_equal(pool.evaluate(form(X), atoms), whole)
    batches = [pool.evaluate(X[start : start + 7], atoms) for start in range(0, 400, 7)]
    np.testing.assert_array_equal(np.concatenate(batches), whole)
    alone = np.concatenate([pool.evaluate(X, [atom]) for atom in atoms], axis=1)
    np.testing.assert_array_equal(alone, whole)
    for place, atom in enumerate(atoms):
        part = whole[:, 6 * place : 6 * place + 6]
        np.testing.assert_array_equal(part, written_out(X, atom))
        inside = part[:, -1] > 0
        np.testing.assert_array_equal(prepared.columns(atom)[-1] > 0, inside)
        codes = prepared._codes[prepared._numbers[atom[0]]]
        ball = np.flatnonzero(prepared._radii[prepared._numbers[atom[0]]] == atom[1])[0]
        np.testing.assert_array_equal(codes <= ball, inside)


def test_radii_are_quantiles():
    X = table(720, 4)
    prepared = Pieces(n_centers=10, n_radii=35).prepare(X, random_state=0)
    assert prepared.n_usable == 350
    counts = np.apply_along_axis(np.bincount, 1, prepared._codes, minlength=36)
    assert np.all(np.abs(counts - 20) <= 1)
    single = Pieces(n_centers=3, n_radii=1).prepare(X, random_state=0)
    assert np.count_nonzero(single._codes == 0) == 3 * 360


def test_centres_are_the_rows_where_these_are_few():
    X = np.round(table(30, 2))
    prepared = Pieces(n_centers=30).prepare(X)
    assert set(prepared._centres) == set(map(tuple, X.tolist()))
    residual = residual_for(30)
    again = Pieces(n_centers=1500).prepare(X, random_state=7)
    assert offered(prepared, residual) == offered(again, residual)


def test_centres_follow_the_seed():
    X, residual = table(300, 4), residual_for(300)
    pool = Pieces(n_centers=12, n_radii=5)
    first, second, other = (pool.prepare(X, random_state=seed) for seed in (0, 0, 1))
    assert offered(first, residual) == offered(second, residual)
    assert set(first._centres) != set(other._centres)
    state = np.random.RandomState(0)
    assert offered(pool.prepare(X, random_state=state), residual) == offered(first, residual)
    assert len(first._centres) == 12


def test_centres_from_a_share_of_many_rows(monkeypatch):
    monkeypatch.setattr(pieces, "_ROWS_PER_CENTRE", 8)
    weight = np.full(500, 1 / 500)
    prepared = Pieces(n_centers=10, n_radii=3).prepare(table(500, 2), weight=weight, random_state=0)
    assert len(prepared._centres) == 10
    assert prepared._codes.shape == (10, 500)


def test_centres_are_short_to_write():
    X = table(400, 3) * [1e-3, 1.0, 10.0] + [5.0, 0.0, 1.7e9]
    prepared = Pieces(n_centers=9, n_radii=2).prepare(X, random_state=0)
    for centre in prepared._centres:
        assert all(len(repr(value).lstrip("-")) <= 15 for value in centre)
    # The rounding is small beside the spread of each column, however far that is from zero.
    spread = np.ptp(np.asarray(prepared._centres), axis=0)
    assert np.all(spread > 0.3 * X.std(axis=0))
    assert all(len(repr(float(radius))) <= 12 for radius in prepared._radii.flat)


@pytest.mark.parametrize("n_centers", [15, 1500])
def test_rows_of_weight_zero_count_for_nothing(n_centers):
    X, residual = table(200, 3), residual_for(150)
    weight = np.zeros(200)
    weight[50:] = 1 / 150
    X[:50] *= 1e3
    pool = Pieces(n_centers, n_radii=6)
    with_them = pool.prepare(X, weight=weight, random_state=0)
    padded = np.concatenate([np.zeros((50, 3)), residual])
    found = offered(with_them, padded)
    without = pool.prepare(X[50:], weight=weight[50:], random_state=0)
    assert found == offered(without, residual)
    for atom in list(found)[:5]:
        np.testing.assert_array_equal(with_them.scale(atom), without.scale(atom))
        assert with_them.columns(atom).shape == (4, 200)


def test_few_different_rows():
    """Fewer than centres: no warning, and no atom twice."""
    X = np.repeat(np.round(table(5, 2)), 20, axis=0)
    prepared = Pieces(n_centers=50, n_radii=9).prepare(X, random_state=0)
    residual = residual_for(100)
    found = prepared.top(residual, "l1", ALL, NONE)
    assert 0 < len(found) == len({atom for atom, _ in found}) <= prepared.n_usable < 50 * 9
    assert Pieces().prepare(np.ones((20, 3))).top(residual[:20], "l1", 5, NONE) == []


def test_a_shortlist_has_different_centres():
    X, residual = table(300, 3), residual_for(300)
    prepared = Pieces(n_centers=40, n_radii=20).prepare(X, random_state=0)
    everything = prepared.top(residual, "l1", ALL, NONE)
    wanted = {}
    for atom, score in everything:
        wanted.setdefault(atom[0], (atom, score))
    assert prepared.shortlist(residual, "l1", 8, NONE) == list(wanted.values())[:8]
    first = everything[0][0]
    rest = prepared.shortlist(residual, "l1", 8, frozenset({first}))
    assert first not in [atom for atom, _ in rest]
    assert first[0] in [atom[0] for atom, _ in rest]


def test_inputs():
    X, residual = table(60, 3), residual_for(60)
    prepared = Pieces().prepare(X)
    assert prepared.top(residual, "l1", 3, NONE, frozenset({0, 1})) == []
    assert prepared.shortlist(residual, "l1", 3, NONE, frozenset({0, 1})) == []
    everything = frozenset({0, 1, 2, 3})
    assert prepared.top(residual, "l1", 3, NONE, everything) == prepared.top(
        residual, "l1", 3, NONE
    )


def test_atoms_of_other_data_have_columns_too():
    """A path may be continued on more rows, for which its centres are no candidates."""
    prepared = Pieces(5, 3).prepare(table(100, 2), random_state=0)
    atom = ((0.25, -0.5), 1.5)
    columns = written_out(table(100, 2), atom)
    np.testing.assert_array_equal(prepared.scale(atom), np.abs(columns).max(axis=0))
    np.testing.assert_array_equal(prepared.columns(atom), (columns / np.abs(columns).max(axis=0)).T)
    found = prepared.top(residual_for(100), "l1", ALL, frozenset({atom}))
    assert len(found) == prepared.n_usable


@pytest.mark.parametrize("rule", ["l1", "joint"])
def test_a_fit_equals_the_fit_on_materialised_columns(rule):
    X = table(70, 2)
    y = (X**2).sum(axis=1) < 1.2
    pool = Pieces(n_radii=6)
    prepared = pool.prepare(X)
    atoms = [
        (centre, float(radius))
        for centre, radii, usable in zip(
            prepared._centres, prepared._radii, prepared._usable, strict=True
        )
        for radius in radii[usable]
    ]
    columns = np.column_stack([written_out(X, atom) for atom in atoms])
    groups = Columns(groups=np.repeat(np.arange(len(atoms)), 3))
    options = {"options__rule": rule, "alpha": 1e-3, "options__scale": "max"}
    with pytest.MonkeyPatch.context() as patch:
        if rule == "joint":  # both make their short lists by gradients alone
            patch.setattr(type(prepared), "shortlist", type(prepared).top)
            patch.setattr(PreparedColumns, "takes_curvature", False)
        model = ShareBoostClassifier(5, pool=pool).set_params(**options).fit(X, y)
        other = ShareBoostClassifier(5, pool=groups).set_params(**options).fit(columns, y)
    assert model.path_["feature"].tolist() == [atoms[j] for j in other.path_["feature"]]
    np.testing.assert_allclose(model.path_["loss"], other.path_["loss"], rtol=1e-6)
    new = table(40, 2, seed=3)
    new_columns = np.column_stack([written_out(new, atom) for atom in atoms])
    np.testing.assert_allclose(
        model.decision_function(new), other.decision_function(new_columns), rtol=1e-4, atol=1e-4
    )


def test_a_model_is_stored_and_read(tmp_path):
    X = table(120, 3, dtype="float32")
    y = np.digitize((X**2).sum(axis=1), [1.0, 3.0])
    model = ShareBoostClassifier(4, pool=Pieces(n_radii=5)).fit(X, y)
    assert model.score(X, y) > 0.8
    mixnorm.save(model, tmp_path / "model")
    loaded = mixnorm.load(tmp_path / "model")
    assert loaded.path_["feature"].tolist() == model.path_["feature"].tolist()
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert model.cost_ == Cost(4 * 3 + 4 * 4 * 3, 4)


def test_copies():
    X, residual = table(50, 2), residual_for(50)
    prepared = Pieces(8, 3).prepare(X, random_state=0)
    copy = pickle.loads(pickle.dumps(prepared))
    assert offered(copy, residual) == offered(prepared, residual)
    check_pool(Pieces(8, 3), X.astype(np.float32))


@pytest.mark.parametrize(
    "atom",
    [
        ((0.0, 1.0), 2.0, 3.0),
        ((0.0,), 2.0),
        ((0.0, 1), 2.0),
        ([0.0, 1.0], 2.0),
        ((0.0, 1.0), 0.0),
        ((0.0, 1.0), -1.0),
        ((0.0, 1.0), 2),
        ((0.0, 1.0), np.float64(2)),
        ((0.0, np.nan), 2.0),
        ((0.0, 1.0), np.inf),
        (0.0, 1.0),
        3,
        None,
    ],
)
def test_strange_atoms(atom):
    with pytest.raises(ValueError, match="atoms of a Pieces pool are"):
        Pieces().n_columns(atom, 2)


def test_atoms_in_words_and_numbers():
    pool, atom = Pieces(), ((0.5, -2.0), 1.25)
    assert pool.n_columns(atom, 2) == 3
    assert pool.describe(atom, ["a", "b"]) == "within 1.25 of (a 0.5, b -2)"
    long = ((0.5, -2.0, 1e6, 4.0), 1.25)
    assert pool.describe(long, list("abcd")) == "within 1.25 of (a 0.5, b -2, c 1e+06, …)"
    assert pool.cost(atom, 2) == Cost(2, 1)
    assert pool.feature_indices([atom, atom], 2).tolist() == [0, 1, 0, 1]
    assert pool.feature_indices([], 2).tolist() == []


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"n_centers": 0}, ValueError),
        ({"n_radii": 0}, ValueError),
        ({"n_radii": 256}, ValueError),
        ({"n_radii": 2.5}, TypeError),
        ({"n_centers": True}, TypeError),
    ],
)
def test_parameters_out_of_range(parameters, error):
    (name,) = parameters
    with pytest.raises(error, match=f"Pieces: {name}="):
        Pieces(**parameters).prepare(table())


@pytest.mark.parametrize(("dtype", "size"), [("float64", 1e160), ("float32", 1e20)])
def test_distances_that_overflow(dtype, size):
    X = table(20, 3)
    X[4, 1] = size
    with pytest.raises(ValueError, match="distances overflow"):
        Pieces().prepare(X.astype(dtype))
    weight = np.ones(20, dtype=dtype)
    weight[4] = 0.0
    prepared = Pieces().prepare(X.astype(dtype), weight=weight)
    (best,) = prepared.top(residual_for(20, dtype=dtype) * weight[:, None], "l1", 1, NONE)
    assert not np.any(prepared.columns(best[0])[:, 4])
    assert not np.any(Pieces().evaluate(X.astype(dtype), [best[0]])[4])


# --- compiled loops and their plain twins


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_distances_equal_their_plain_twin_bit_by_bit(dtype):
    from mixnorm.pools.pieces_jit import squared_distances

    by_column = np.ascontiguousarray(table(5000, 7, dtype=dtype).T)
    centres = table(9, 7, seed=3)
    distances = np.empty((9, 5000))
    for begin, stop in [(0, 4), (4, 9)]:
        squared_distances(by_column, centres, distances, begin, stop)
    for centre, row in zip(centres, distances, strict=True):
        twin = pieces._compute_squared_distances(by_column, tuple(centre.tolist()))
        np.testing.assert_array_equal(row, twin)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_rings_equal_their_plain_twin(dtype):
    from mixnorm.pools.pieces_jit import sort_into_rings

    rng = np.random.default_rng(0)
    distances = rng.integers(0, 20, (4, 300)).astype(float)
    limits = np.sort(rng.integers(0, 20, (4, 6)), axis=1).astype(float)
    values = table(300, 8, dtype=dtype)
    codes, largest = np.empty((4, 300), np.uint8), np.empty((4, 7, 8), dtype)
    for begin, stop in [(0, 1), (1, 4)]:
        sort_into_rings(distances, limits, values, codes, largest, begin, stop)
    for c in range(4):
        twin = np.searchsorted(limits[c], distances[c], side="right")
        np.testing.assert_array_equal(codes[c], twin)
        for q in range(7):
            wanted = np.abs(values[twin == q]).max(axis=0, initial=0.0)
            np.testing.assert_array_equal(largest[c, q], wanted)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize(
    ("n_samples", "n_centres", "together"), [(5, 1, 8), (2100, 19, 8), (9, 5, 1)]
)
def test_compiled_norms_equal_their_plain_twin(squared, n_samples, n_centres, together):
    """More samples and centres than one block has, and far fewer."""
    from mixnorm.pools.pieces_jit import ball_norms

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (n_centres, n_samples)).astype(np.uint8)
    values, residual = table(n_samples + 1, 8), table(n_samples + 1, 3, seed=1)
    values[-1] = residual[-1] = 0.0
    inverse = rng.uniform(0.5, 2.0, (n_centres, 4, 8))
    norms = np.full((n_centres, 4), np.nan)
    parts = codes, values, residual, inverse, squared, together, norms
    for begin, stop in [(0, 1), (1, n_centres)]:
        ball_norms(*parts, begin, stop)
    for c in range(n_centres):
        for q in range(4):
            inside = np.append(codes[c] <= q, False)
            gradient = (values[inside] * inverse[c, q]).T @ residual[inside]
            wanted = np.linalg.norm(gradient) if squared else np.abs(gradient).sum()
            assert norms[c, q] == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "uint8"])
def test_scores_of_rows_equal_the_weighted_columns(dtype, monkeypatch):
    """Without the columns, which would be many: block by block."""
    monkeypatch.setattr(pieces, "_ROWS_OF_DISTANCES", 64)
    rng = np.random.default_rng(0)
    X = (10 * rng.random((300, 3))).astype(dtype)
    pool = Pieces(8, 4)
    residual = rng.standard_normal((300, 2)).astype(X.dtype if X.dtype.kind == "f" else float)
    found = pool.prepare(X, random_state=0).top(residual, "l1", 5, frozenset())
    atoms = [atom for atom, _ in found]
    weights, intercept = rng.standard_normal((20, 2)), rng.standard_normal(2)
    scorer = pool.scorer(atoms, weights, intercept)
    wanted = pool.evaluate(X, atoms) @ weights + intercept
    assert_allclose(scorer(X), wanted, rtol=1e-5, atol=1e-4)
    assert_allclose(scorer.row(X[7]), wanted[7], rtol=1e-5, atol=1e-4)
    assert_allclose(pool.scorer([], weights[:0], intercept)(X), np.tile(intercept, (300, 1)))


@pytest.mark.parametrize("factor", [1e-310, 1e-200])
def test_distances_that_vanish_are_refused(factor):
    X = factor * np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match="columns of X vary by .* squared distances vanish"):
        Pieces(n_radii=3).prepare(X)


@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_tiny_and_huge_columns_need_a_scale(factor):
    """Beside the constant column of a piece, their curvature would be lost."""
    X = factor * np.random.default_rng(0).standard_normal((20, 2))
    assert Pieces(n_radii=3).prepare(X).n_usable > 0
    with pytest.raises(ValueError, match="scale=False takes columns from"):
        Pieces(n_radii=3).prepare(X, scale=False)
