"""JointBoost against a direct reference: loops over classes, columns and thresholds."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris, load_wine

from mixnorm.engines import boosting as engine
from mixnorm.engines.boosting import boosting_jit as jit
from mixnorm.engines.boosting.engine import grow_subset
from mixnorm.models import ClassOutputs, Inputs, StumpModel, StumpPath

# Sums of some hundred terms of weights that sum to one.
CLOSE = 1e-10


def data(name="iris", rows=60, columns=4, seed=0):
    X, y = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name](return_X_y=True)
    rng = np.random.default_rng(seed)
    keep = rng.permutation(len(X))[:rows]
    X = X[keep][:, rng.permutation(X.shape[1])[:columns]]
    return X, np.unique(y[keep], return_inverse=True)[1]


def run(X, y, weight=None, n_outputs=None, n_bins=None, **options):
    weight = np.ones(X.shape[0]) if weight is None else weight
    weight = weight / weight.sum()
    kept = weight > 0
    bins = engine.bin_columns(X, weight, n_bins)
    options = {"n_rounds": 10, "n_outputs": n_outputs or int(y.max()) + 1, **options}
    return engine.boost(bins, y[kept], weight[kept], **options)


def model(X, rounds, n_outputs):
    outputs = ClassOutputs(np.arange(max(2, n_outputs)))
    return StumpModel(StumpPath(tuple(rounds), n_outputs), Inputs(X.shape[1]), outputs)


def scores(X, rounds, n_outputs):
    return model(X, rounds, n_outputs).scores(X)


# --- the reference


def signs(y, k):
    return np.where(np.arange(k) == y[:, None], 1.0, -1.0)


def weights(H, Z, u):
    W = u[:, None] * np.exp(-Z * H)
    return W / W.sum()


def thresholds(column):
    values = np.unique(column)
    return (values[1:] + values[:-1]) / 2


def fitted(x, theta, subset, Z, W):
    """Return h for every row and class, by weighted means."""
    h = np.tile((W * Z).sum(axis=0) / W.sum(axis=0), (len(x), 1))
    for side in (x <= theta, x > theta):
        part = np.ix_(side, subset)
        h[part] = (W[part] * Z[part]).sum() / W[part].sum()
    return h


def squared_error(h, Z, W):
    return float((W * (Z - h) ** 2).sum())


def best_stump(X, Z, W, subset):
    """Return the least error for a subset over all columns and thresholds."""
    found = [
        (squared_error(fitted(X[:, j], theta, subset, Z, W), Z, W), j, theta)
        for j in range(X.shape[1])
        for theta in thresholds(X[:, j])
    ]
    return min(found)


def greedy_subset(X, Z, W):
    """Grow the subset as Torralba et al. do; return the best error on that way."""
    subset, errors = [], []
    for _ in range(Z.shape[1]):
        others = [c for c in range(Z.shape[1]) if c not in subset]
        tried = {c: best_stump(X, Z, W, [*subset, c])[0] for c in others}
        # Alike up to rounding: the first, as the engine does.
        best = min(c for c in others if tried[c] <= min(tried.values()) + 1e-12)
        subset.append(best)
        errors.append(tried[best])
    return min(errors)


@pytest.mark.parametrize("name", ["iris", "wine"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_round_is_the_reference_round(name, weighted):
    X, y = data(name, rows=40)
    rng = np.random.default_rng(1)
    u = rng.uniform(0.1, 1.0, len(X)) if weighted else np.ones(len(X))
    u /= u.sum()
    path = run(X, y, u, n_rounds=6)
    Z, H = signs(y, 3), np.zeros((len(X), 3))
    for step in path.rounds:
        W = weights(H, Z, u)
        h = fitted(X[:, step.feature], step.threshold, step.subset, Z, W)
        above = X[:, step.feature] > step.threshold
        assert step.values[above.astype(int)] == pytest.approx(h, abs=CLOSE)
        assert step.error == pytest.approx(squared_error(h, Z, W), abs=CLOSE)
        assert step.error == pytest.approx(greedy_subset(X, Z, W), abs=CLOSE)
        H += h
        assert step.loss == pytest.approx((u[:, None] * np.exp(-Z * H)).sum() / 3, rel=1e-9)
    assert scores(X, path.rounds, 3) == pytest.approx(H, abs=CLOSE)


def test_between_the_best_subset_and_the_best_single_class():
    X, y = data("digits", rows=60, columns=3)
    y = y % 4
    u = np.full(len(X), 1 / len(X))
    path = run(X, y, n_rounds=4)
    Z, H = signs(y, 4), np.zeros((len(X), 4))
    for step in path.rounds:
        W = weights(H, Z, u)
        subsets = [list(part) for size in range(1, 5) for part in combinations(range(4), size)]
        errors = {tuple(part): best_stump(X, Z, W, part)[0] for part in subsets}
        assert step.error <= min(errors[c,] for c in range(4)) + CLOSE
        assert step.error >= min(errors.values()) - CLOSE
        H += step.values[(X[:, step.feature] > step.threshold).astype(int)]


@pytest.mark.parametrize("change", ["a", "b", "constants"])
def test_the_values_of_a_round_are_stationary(change):
    # Central differences of the weighted squared error in each number of the stump vanish.
    X, y = data("wine", rows=80)
    Z, W = signs(y, 3), weights(np.zeros((80, 3)), signs(y, 3), np.full(80, 1 / 80))
    step = run(X, y, n_rounds=1).rounds[0]
    above = X[:, step.feature] > step.threshold

    def error(a, b, constants):
        h = np.tile(constants, (80, 1))
        h[:, step.subset] = (b + a * above)[:, None]
        return squared_error(h, Z, W)

    outside = np.setdiff1d(np.arange(3), step.subset)
    kinds = {"a": [0], "b": [0], "constants": outside}
    for c in kinds[change]:
        values = []
        for move in (-1e-4, 1e-4):
            numbers = {"a": step.a, "b": step.b, "constants": step.constants.copy()}
            if change == "constants":
                numbers["constants"][c] += move
            else:
                numbers[change] += move
            values.append(error(**numbers))
        assert values[1] - values[0] == pytest.approx(0.0, abs=1e-12)
        assert min(values) > step.error


# --- the loss


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_the_loss_falls_in_every_round_and_by_as_much_as_it_must(name):
    X, y = data(name, rows=300, columns=20)
    path = run(X, y, n_rounds=40, n_bins=32)
    losses = [path.null_loss, *(step.loss for step in path.rounds)]
    assert losses[0] == 1.0
    assert all(after < before for before, after in pairwise(losses))
    # cosh(m) - m sinh(m) <= 1 - m^2 / 2 for means m up to one, and the error is one less m^2.
    for step, before in zip(path.rounds, losses, strict=False):
        assert step.loss <= before * (1 - (1 - step.error) / 2) + CLOSE


def test_many_rounds_on_separable_data_stay_finite():
    X = np.arange(6.0)[:, None]
    path = run(X, np.array([0, 0, 1, 1, 2, 2]), n_rounds=4000)
    H = scores(X, path.rounds, 3)
    assert np.isfinite(H).all()
    assert np.abs(H).max() > 800  # beyond what exp could take
    assert all(0.0 <= step.loss <= 1.0 and np.isfinite(step.error) for step in path.rounds)
    assert np.array_equal(H.argmax(axis=1), [0, 0, 1, 1, 2, 2])


def test_weights_of_very_different_size():
    X, y = data()
    u = np.where(np.arange(len(X)) % 2, 1.0, 1e-290)
    path = run(X, y, u)
    assert all(np.isfinite([step.a, step.b, step.loss, step.error]).all() for step in path.rounds)


def test_one_output():
    # GentleBoost: labels +1 where the target is 0, -1 where it is -1.
    X, y = data(rows=100)
    y = np.where(y == 1, 0, -1)
    path = run(X, y, n_outputs=1, n_rounds=5)
    z, u, H = np.where(y == 0, 1.0, -1.0)[:, None], np.full(100, 0.01), np.zeros((100, 1))
    for step in path.rounds:
        W = weights(H, z, u)
        assert step.subset.tolist() == [0]
        assert step.error == pytest.approx(best_stump(X, z, W, [0])[0], abs=CLOSE)
        H += fitted(X[:, step.feature], step.threshold, [0], z, W)


# --- the compiled loops and their twins in NumPy


def numpy_histograms(codes, features, sizes, W, target):
    """Return a pair of arrays (n_classes, n_bins) per feature."""
    Z = np.where(np.arange(W.shape[1]) == target[:, None], 1.0, -1.0)
    tables = []
    for feature, size in zip(features, sizes, strict=True):
        own = np.arange(size)[:, None] >= codes[feature][None, :]
        tables.append(((own @ W).T, (own @ (W * Z)).T))
    return tables


def numpy_gain(low_mass, low_signed, mass, signed):
    sides = (low_mass, low_signed), (mass - low_mass, signed - low_signed)
    # What rounding leaves of an empty side is no side.
    return sum(np.where(w > 1e-14, z**2 / np.maximum(w, 1e-14), 0.0) for w, z in sides)


def numpy_gains(tables, mass, signed, subset):
    """Return the largest gain of the subset with one more class, for every class to add."""
    tried = {}
    for c in set(range(len(mass))) - set(subset):
        part = [*subset, c]
        outside = [other for other in range(len(mass)) if other not in part]
        constant = sum(signed[o] ** 2 / mass[o] for o in outside)
        tried[c] = constant + max(
            numpy_gain(
                low[part].sum(axis=0)[:-1],
                z[part].sum(axis=0)[:-1],
                mass[part].sum(),
                signed[part].sum(),
            ).max()
            for low, z in tables
        )
    return tried


def numpy_grow(tables, mass, signed):
    """Return the gain for each size, looking at everything."""
    subset, found = [], []
    for _ in range(len(mass)):
        tried = numpy_gains(tables, mass, signed, subset)
        subset.append(max(tried, key=tried.get))
        found.append(max(tried.values()))
    return found


@st.composite
def problems(draw):
    n, d, k = draw(st.integers(2, 40)), draw(st.integers(1, 5)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.integers(2, 9, d)
    codes = np.stack([rng.integers(0, size, n) for size in sizes])
    W = rng.exponential(size=(n, k)) ** draw(st.sampled_from([1, 4]))
    target = rng.integers(-1 if k == 1 else 0, k, n)
    dtype = draw(st.sampled_from([np.uint8, np.int32]))
    return codes.astype(dtype), sizes, W / W.sum(), target


def compiled(codes, sizes, W, target, features):
    starts = np.concatenate([[0], np.cumsum(sizes[features])])
    mass, signed = np.full((2, starts[-1] * W.shape[1]), np.nan)
    jit.histograms(codes, features, starts, W, target, mass, signed, 0, len(features))
    return starts, mass, signed


@given(problems())
def test_histograms_and_their_twin(problem):
    codes, sizes, W, target = problem
    features = np.arange(len(sizes))[::-1].copy()
    starts, mass, signed = compiled(codes, sizes, W, target, features)
    twins = numpy_histograms(codes, features, sizes[features], W, target)
    for j, (low, z) in enumerate(twins):
        part = slice(starts[j] * W.shape[1], starts[j + 1] * W.shape[1])
        assert mass[part].reshape(low.shape) == pytest.approx(low, abs=CLOSE)
        assert signed[part].reshape(z.shape) == pytest.approx(z, abs=CLOSE)


@given(problems())
def test_the_subset_and_its_twin(problem):
    codes, sizes, W, target = problem
    features = np.arange(len(sizes))
    starts, mass, signed = compiled(codes, sizes, W, target, features)
    totals = W.sum(axis=0), (W * np.where(np.arange(W.shape[1]) == target[:, None], 1, -1)).sum(0)
    order, where, cuts, gains = grow_subset(np.stack([mass, signed]), starts, np.stack(totals))
    twins = numpy_histograms(codes, features, sizes, W, target)
    for size, added in enumerate(order):  # classes may tie, so every step starts from its own
        tried = numpy_gains(twins, *totals, order[:size])
        assert gains[size] == pytest.approx(max(tried.values()), abs=CLOSE)
        assert gains[size] == pytest.approx(tried[added], abs=CLOSE)
    assert sorted(order) == list(range(W.shape[1]))
    for size in range(W.shape[1]):  # feature and cut really have that gain
        part = order[: size + 1]
        low, z = (table[part].sum(axis=0)[cuts[size]] for table in twins[where[size]])
        gain = numpy_gain(low, z, totals[0][part].sum(), totals[1][part].sum())
        rest = order[size + 1 :]
        gain += (totals[1][rest] ** 2 / totals[0][rest]).sum()
        assert gain == pytest.approx(gains[size], abs=CLOSE)


def test_what_is_passed_over_could_not_have_won():
    # Many features and classes, where bounds leave most out.
    X, y = load_digits(return_X_y=True)
    path = run(X, y, n_rounds=8)
    u, Z, H = np.full(len(X), 1 / len(X)), signs(y, 10), np.zeros((len(X), 10))
    bins = engine.bin_columns(X, u, None)
    usable = np.flatnonzero(bins.sizes > 1)
    for step in path.rounds:
        W = weights(H, Z, u)
        tables = numpy_histograms(bins.codes, usable, bins.sizes[usable], W, y)
        found = numpy_grow(tables, W.sum(axis=0), (W * Z).sum(axis=0))
        assert 1 - step.error == pytest.approx(max(found), abs=CLOSE)
        H += step.values[(X[:, step.feature] > step.threshold).astype(int)]


# --- bins


def uniform(n):
    return np.full(n, 1 / n)


def test_few_values_have_a_bin_each():
    X = np.array([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    bins = engine.bin_columns(X, uniform(4), 3)
    assert bins.thresholds[0].tolist() == [1.5, 2.5]
    assert bins.codes[0].tolist() == [2, 0, 1, 2]
    assert bins.thresholds[1].tolist() == []
    assert bins.sizes.tolist() == [3, 1]
    assert bins.codes.dtype == np.uint8


def test_many_values_are_cut_into_equal_shares():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(10_000, 1))
    bins = engine.bin_columns(X, uniform(10_000), 100)
    counts = np.bincount(bins.codes[0])
    assert len(counts) == 100
    assert counts.min() == counts.max() == 100
    assert np.array_equal(bins.codes[0], np.greater(X, bins.thresholds[0]).sum(axis=1))


def test_shares_are_of_weight():
    X = np.arange(1000.0)[:, None]
    weight = np.where(np.arange(1000) < 500, 9.0, 1.0)
    bins = engine.bin_columns(X, weight / weight.sum(), 10)
    held = np.bincount(bins.codes[0], weights=weight) / weight.sum()
    assert held == pytest.approx(0.1, abs=0.01)


def test_one_heavy_value():
    X = np.concatenate([np.zeros(990), np.arange(1.0, 301.0)])[:, None]
    bins = engine.bin_columns(X, uniform(1290), 4)
    assert bins.sizes[0] >= 2
    assert bins.thresholds[0][0] == 0.5


@pytest.mark.parametrize("n_bins", [2, 3, 255, 256, 257, 1000, None])
def test_number_of_bins(n_bins):
    X = np.random.default_rng(0).permutation(900).astype(float)[:, None]
    bins = engine.bin_columns(X, uniform(900), n_bins)
    wanted = 900 if n_bins is None else min(n_bins, 900)
    assert bins.sizes[0] == wanted
    assert bins.codes.max() == wanted - 1
    assert bins.codes.dtype == (np.uint8 if wanted <= 256 else np.int32)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, np.nextafter(1.0, 2.0)],
        [-1.7e308, 1.7e308],
        [5e-324, 1e-323],
        [0.0, 5e-324],
        [-5e-324, -0.0],
    ],
)
def test_thresholds_tell_neighbours_apart(values):
    bins = engine.bin_columns(np.asarray(values)[:, None], uniform(2), 255)
    assert bins.codes[0].tolist() == [0, 1]
    assert (np.asarray(values) > bins.thresholds[0][0]).tolist() == [False, True]


def test_data_of_any_form_are_binned_alike():
    X, y = load_digits(return_X_y=True)
    wanted = engine.bin_columns(X, uniform(len(X)))
    for other in (X.astype(np.float32), X.astype(np.uint8), np.asfortranarray(X), sp.csr_array(X),
                  sp.csc_matrix(X)):  # fmt: skip
        found = engine.bin_columns(other, uniform(len(X)))
        assert np.array_equal(found.codes, wanted.codes)
        path = run(other, y, n_rounds=3)
        assert np.array_equal(scores(other, path.rounds, 10),
                              scores(X, path.rounds, 10))  # fmt: skip


# --- what must not matter


def same(one, other, rel=1e-9):
    assert len(one.rounds) == len(other.rounds)
    for a, b in zip(one.rounds, other.rounds, strict=True):
        assert a.feature == b.feature
        assert a.subset.tolist() == b.subset.tolist()
        assert a.values == pytest.approx(b.values, abs=rel)
        assert a.loss == pytest.approx(b.loss, rel=rel)


@pytest.mark.parametrize("n_bins", [None, 8])
def test_monotone_transformations_of_columns(n_bins):
    X, y = data("wine", rows=170, columns=13)
    other = np.column_stack([np.exp(X[:, 0] / 10), X[:, 1] ** 3, *(5 * X[:, 2:].T - 3)])
    one, two = (run(table, y, n_bins=n_bins, n_rounds=15) for table in (X, other))
    same(one, two)
    assert np.array_equal(scores(X, one.rounds, 3), scores(other, two.rounds, 3))


@pytest.mark.parametrize("n_bins", [None, 10])
def test_integer_weights_are_repeated_rows(n_bins):
    X, y = data("wine", rows=150, columns=13)
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = run(X, y, counts.astype(float), n_bins=n_bins, n_rounds=15)
    repeated = run(np.repeat(X, counts, 0), np.repeat(y, counts), n_bins=n_bins, n_rounds=15)
    same(weighted, repeated)
    assert [a.threshold for a in weighted.rounds] == [b.threshold for b in repeated.rounds]


def test_the_order_of_classes():
    X, y = data("wine", rows=150, columns=13)
    turn = np.array([2, 0, 1])
    one, two = run(X, y), run(X, turn[y])
    found = scores(X, two.rounds, 3)[:, turn]
    assert found == pytest.approx(scores(X, one.rounds, 3), abs=1e-9)


# --- how a run ends, and what it is offered


def test_nothing_more_to_gain():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    path = run(X, y, n_outputs=2)
    assert path.exhausted
    assert path.rounds == ()


def test_columns_that_do_not_vary():
    path = run(np.ones((4, 2)), np.array([0, 1, 2, 0]))
    assert path.exhausted
    assert scores(np.ones((3, 2)), path.rounds, 3).tolist() == np.zeros((3, 3)).tolist()


def test_a_run_stops_when_asked():
    sizes = []

    def stop(path):
        sizes.append(len(path.rounds))
        return len(path.rounds) == 3

    path = run(*data(), on_round=stop)
    assert sizes == [1, 2, 3]
    assert len(path.rounds) == 3
    assert not path.exhausted


def interrupting(monkeypatch, at):
    real, calls = engine.engine._State.add, []

    def add(self, features):
        calls.append(features)
        if len(calls) == at:
            raise KeyboardInterrupt
        return real(self, features)

    monkeypatch.setattr(engine.engine._State, "add", add)


def test_an_interrupt_keeps_the_rounds_done(monkeypatch):
    interrupting(monkeypatch, at=4)
    path = run(*data())
    assert path.interrupted
    assert len(path.rounds) == 3


def test_an_early_interrupt_is_passed_on(monkeypatch):
    interrupting(monkeypatch, at=1)
    with pytest.raises(KeyboardInterrupt):
        run(*data())


@pytest.mark.parametrize("rng", [np.random.RandomState, np.random.default_rng])
def test_a_share_of_the_columns(rng):
    X, y = load_digits(return_X_y=True)
    drawn = [run(X, y, n_bins=16, max_features=0.1, rng=rng(seed)) for seed in (0, 0, 1)]
    same(drawn[0], drawn[1])
    features = [[step.feature for step in path.rounds] for path in drawn]
    assert features[0] != features[2]
    whole = run(X, y, n_bins=16)
    assert drawn[0].rounds[0].error >= whole.rounds[0].error
    assert drawn[0].rounds[-1].loss < 1.0


def test_columns_that_were_not_drawn_are_tried_before_the_end():
    X = np.zeros((8, 50))
    X[:, :49] = np.array([0, 1] * 4)[:, None]  # tell nothing
    X[4:, 49] = 1.0
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    path = run(X, y, n_outputs=2, n_rounds=2, max_features=0.02, rng=np.random.RandomState(0))
    assert [step.feature for step in path.rounds] == [49, 49]


# --- scores


def test_stages_end_in_the_scores():
    X, y = load_digits(return_X_y=True)
    X = np.tile(X, (3, 1))  # more than a block of rows
    path = run(X, np.tile(y, 3), n_rounds=7, n_bins=16)
    stages = list(model(X, path.rounds, 10).staged_scores(X))
    for size, stage in enumerate(stages, start=1):
        assert np.array_equal(stage, scores(X, path.rounds[:size], 10))
    assert np.array_equal(stages[-1][5:9], scores(X[5:9], path.rounds, 10))
