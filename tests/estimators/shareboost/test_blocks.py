"""ShareBoost on tables of row blocks, beside the same fit in memory."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mixnorm import GreedyOptions, ShareBoostClassifier, ShareBoostRegressor
from mixnorm.data import BlockTable, from_arrays
from mixnorm.estimators.shareboost import blocks as blocks_module
from mixnorm.pools import Boxes, Columns, Stumps

EXACT = GreedyOptions(tol=1e-10)


@pytest.fixture(scope="module")
def labelled():
    """Five classes that depend on six of twelve columns, with weights of which some are zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 12)) * np.geomspace(0.1, 10.0, 12) + np.arange(12)
    W = np.zeros((12, 5))
    W[::2] = rng.standard_normal((6, 5)) / np.geomspace(0.1, 10.0, 12)[::2, None]
    y = np.argmax((X - np.arange(12)) @ W + 0.5 * rng.gumbel(size=(600, 5)), axis=1)
    weight = rng.integers(0, 3, 600).astype(float)
    return X, np.asarray(["a", "b", "c", "d", "e"])[y], weight


def objective(model):
    return np.array([step.objective for step in model.model_.path.rounds])


def assert_same_fit(blocks, memory):
    assert blocks.selected_.tolist() == memory.selected_.tolist()
    assert np.allclose(objective(blocks), objective(memory), rtol=1e-9, atol=0.0)
    assert np.allclose(blocks.coef_, memory.coef_, rtol=1e-5, atol=1e-7)


VARIANTS = {
    "default": {},
    "balanced": {"class_weight": "balanced"},
    "some classes": {"class_weight": {"a": 3.0}},
    "no intercept": {"fit_intercept": False},
    "l1 rule": {"options": GreedyOptions(tol=1e-10, rule="l1")},
    "l2 rule": {"options": GreedyOptions(tol=1e-10, rule="l2", scale="max")},
    "exact rule": {"options": GreedyOptions(tol=1e-10, rule="exact")},
    "swaps": {"options": GreedyOptions(tol=1e-10, swaps=1)},
    "backward": {"options": GreedyOptions(tol=1e-10, backward=2)},
    "two a round": {"options": GreedyOptions(tol=1e-10, atoms_per_round=2)},
    "linf,1": {"alpha": 1e-3, "options": GreedyOptions(tol=1e-10, penalty="linf,1")},
    "l1 penalty": {"alpha": 1e-3, "options": GreedyOptions(tol=1e-10, penalty="l1")},
    "logistic": {"loss": "logistic", "alpha": 1e-3},
    "groups": {"pool": Columns(groups=[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])},
    "costs": {"pool": Columns(costs=np.arange(1.0, 13.0)), "cost_budget": 20.0},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_the_fit_in_memory(name, labelled):
    X, y, weight = labelled
    given = {"n_features_to_select": 4, "options": EXACT} | VARIANTS[name]
    memory = ShareBoostClassifier(**given).fit(X, y, weight)
    blocks = ShareBoostClassifier(**given).fit(from_arrays(X, y, weight, block_rows=128))
    assert_same_fit(blocks, memory)
    assert blocks.predict(X).tolist() == memory.predict(X).tolist()


@pytest.mark.parametrize("block_rows", [1, 37, 600, 5000])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_any_blocks(block_rows, kind, labelled):
    X, y, _ = labelled
    rows = slice(0, 80) if block_rows == 1 else slice(None)
    X, y = X[rows], y[rows]
    memory = ShareBoostClassifier(3, options=EXACT).fit(X, y)
    table = from_arrays(kind(X), y, block_rows=block_rows)
    assert_same_fit(ShareBoostClassifier(3, options=EXACT).fit(table), memory)


def test_workers_and_memory_change_no_bit(labelled):
    X, y, weight = labelled
    found = [
        ShareBoostClassifier(5).fit(
            from_arrays(X, y, weight, block_rows=50, executor=workers, memory=memory)
        )
        for workers, memory in [(1, "1 GiB"), (2, "1 GiB"), (3, 20_000)]
    ]
    assert all(np.array_equal(one.coef_, found[0].coef_) for one in found)
    assert all(np.array_equal(one.intercept_, found[0].intercept_) for one in found)


def test_single_precision_stays_single(labelled):
    X, y, _ = labelled
    X = X.astype(np.float32)
    model = ShareBoostClassifier(4).fit(from_arrays(X, y, block_rows=100))
    memory = ShareBoostClassifier(4).fit(X, y)
    assert model.coef_.dtype == memory.coef_.dtype == np.float32
    assert model.selected_.tolist() == memory.selected_.tolist()
    assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)


def test_classes_that_come_last(labelled):
    X, y, _ = labelled
    order = np.argsort(y, kind="stable")
    model = ShareBoostClassifier(3, options=EXACT).fit(
        from_arrays(X[order], y[order], block_rows=90)
    )
    assert_same_fit(model, ShareBoostClassifier(3, options=EXACT).fit(X[order], y[order]))
    assert model.classes_.tolist() == ["a", "b", "c", "d", "e"]


def test_a_path_is_continued(labelled):
    X, y, _ = labelled
    table = from_arrays(X, y, block_rows=200)
    model = ShareBoostClassifier(3, warm_start=True, options=EXACT).fit(table)
    model.set_params(n_features_to_select=5).fit(table)
    memory = ShareBoostClassifier(3, warm_start=True, options=EXACT).fit(X, y)
    assert_same_fit(model, memory.set_params(n_features_to_select=5).fit(X, y))
    with pytest.raises(ValueError, match="other classes"):
        model.fit(from_arrays(X, np.arange(600) % 2, block_rows=200))


# --- numbers


@pytest.mark.parametrize("scale", ["std", "max", False])
@pytest.mark.parametrize("single", [True, False])
def test_regression_is_compressed(scale, single, labelled):
    X, _, weight = labelled
    Y = np.stack([X[:, 1] - X[:, 4], X[:, 4] * 0.1 + X[:, 7] ** 2], axis=1)
    y = Y[:, 0] + 5.0 if single else Y
    table = from_arrays(X, y, weight, block_rows=128)
    options = GreedyOptions(scale=scale, swaps=1)
    memory = ShareBoostRegressor(4, options=options).fit(X, y, weight)
    blocks = ShareBoostRegressor(4, options=options).fit(table)
    assert blocks.selected_.tolist() == memory.selected_.tolist()
    assert np.allclose(blocks.predict(X), memory.predict(X), rtol=1e-8)
    assert blocks.null_loss_ == pytest.approx(memory.null_loss_, rel=1e-12)


def test_regression_by_sums(monkeypatch, labelled):
    """Where a table is too wide to compress, the sums over blocks give the same path."""
    monkeypatch.setattr(blocks_module, "_WIDTH_TO_COMPRESS", 0)
    X, _, weight = labelled
    y = X[:, 1] - X[:, 4] + 0.1 * X[:, 7] ** 2
    memory = ShareBoostRegressor(4, options=EXACT).fit(X, y, weight)
    blocks = ShareBoostRegressor(4, options=EXACT).fit(from_arrays(X, y, weight, block_rows=128))
    assert_same_fit(blocks, memory)


# --- ranking on a sample


@pytest.fixture(scope="module")
def many_rows():
    """Rows enough for a sample, in single precision."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40_000, 30)).astype(np.float32)
    W = np.zeros((30, 3))
    W[:6] = rng.standard_normal((6, 3)) * np.linspace(1.0, 0.5, 6)[:, None]
    return X, np.argmax(X @ W + rng.gumbel(size=(40_000, 3)), axis=1)


@pytest.mark.parametrize("rule", ["joint", "l1"])
def test_a_sample_chooses_as_all_rows_do(rule, many_rows, monkeypatch):
    monkeypatch.setattr(blocks_module, "_LEAST_ROWS_TO_SCREEN", 0)
    X, y = many_rows
    options = [GreedyOptions(rule=rule, scan=scan) for scan in ("sample", "exact")]
    tables = [from_arrays(X, y, block_rows=4096, memory="64 MB") for _ in options]
    sample, exact = (
        ShareBoostClassifier(8, options=option).fit(table)
        for option, table in zip(options, tables, strict=True)
    )
    memory = ShareBoostClassifier(8, options=GreedyOptions(rule=rule)).fit(X, y)
    assert sample.selected_.tolist() == exact.selected_.tolist() == memory.selected_.tolist()
    assert np.allclose(objective(sample), objective(memory), rtol=1e-4)
    assert tables[0].full_reads < tables[1].full_reads


@pytest.mark.parametrize("count", [300, 18_000])
def test_rows_of_weight_zero_are_not_sampled(count, many_rows, monkeypatch):
    """A sample of all rows would show few of those that count."""
    monkeypatch.setattr(blocks_module, "_LEAST_ROWS_TO_SCREEN", 0)
    X, y = many_rows
    weight = np.zeros(len(X))
    used = np.sort(np.random.default_rng(0).choice(len(X), count, replace=False))
    weight[used] = np.random.default_rng(1).uniform(0.5, 1.5, count)
    table = from_arrays(X, y, weight, block_rows=4096)
    rows = blocks_module.draw_rows(table)
    assert len(rows) == 1
    assert all(np.isin(each, used).all() and np.all(np.diff(each) > 0) for each in rows)
    blocks = ShareBoostClassifier(5).fit(table)
    alone = ShareBoostClassifier(5).fit(from_arrays(X[used], y[used], weight[used]))
    assert blocks.selected_.tolist() == alone.selected_.tolist()
    assert np.allclose(objective(blocks), objective(alone), rtol=1e-4)


def test_a_column_of_spikes_is_fitted(many_rows):
    """The sample sees few of its rows, so that its curvature is taken from all rows."""
    X, y = many_rows
    X, rng = X[:20_000].copy(), np.random.default_rng(2)
    X[:, 3] = 0.0
    X[rng.choice(20_000, 40, replace=False), 3] = 30.0
    y = np.where(X[:, 3] > 0.0, 2, y[:20_000])
    model = ShareBoostClassifier(4).fit(from_arrays(X, y, block_rows=4096))
    memory = ShareBoostClassifier(4).fit(X, y)
    assert model.selected_.tolist() == memory.selected_.tolist()
    assert np.allclose(objective(model), objective(memory), rtol=1e-3)


# --- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (np.where(X[0, 2] == X, np.nan, X), y), "NaN in column 2"),
        (lambda X, y: (X, np.zeros(len(X))), "at least two classes"),
        (lambda X, y: (X[:0], y[:0]), "no rows"),
        (lambda X, y: (X, X[:, 0]), "not a label"),
    ],
)
def test_bad_tables(change, message, labelled):
    X, y = change(*labelled[:2])
    with pytest.raises(ValueError, match=message):
        ShareBoostClassifier(3).fit(from_arrays(X, y, block_rows=100))


def test_bad_calls(labelled):
    X, y, weight = labelled
    with pytest.raises(TypeError, match="y is given beside a table"):
        ShareBoostClassifier(3).fit(from_arrays(X, y), y)
    with pytest.raises(ValueError, match="requires targets"):
        ShareBoostClassifier(3).fit(from_arrays(X))
    with pytest.raises(ValueError, match="requires y"):
        ShareBoostClassifier(3).fit(X)
    with pytest.raises(TypeError, match="Boxes takes arrays in memory"):
        ShareBoostClassifier(3, pool=Boxes()).fit(from_arrays(X, y))
    for rule in ("line", "column"):
        with pytest.raises(TypeError, match=f"rule='{rule}'"):
            ShareBoostClassifier(3, options=GreedyOptions(rule=rule)).fit(from_arrays(X, y))
    with pytest.raises(ValueError, match="zero for every row"):
        ShareBoostClassifier(3).fit(from_arrays(X, y, 0.0 * weight))


def test_a_failed_fit_keeps_the_last_one(labelled):
    X, y, _ = labelled
    model = ShareBoostClassifier(3).fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match="NaN"):
        model.fit(from_arrays(np.full_like(X, np.nan), y))
    assert np.array_equal(model.coef_, before)


def test_an_interrupt_keeps_the_rounds(labelled):
    X, y, _ = labelled
    table, calls = from_arrays(X, y, block_rows=100), []

    def stop(done, whole):
        calls.append(done)
        if len(calls) == 200:
            raise KeyboardInterrupt

    table.on_progress = stop
    with pytest.warns(match="Interrupted after"):
        model = ShareBoostClassifier(10).fit(table)
    assert 0 < len(model.selected_) < 10
    memory = ShareBoostClassifier(len(model.selected_)).fit(X, y)
    assert model.selected_.tolist() == memory.selected_.tolist()


def test_tables_are_no_arrays(labelled):
    table = from_arrays(*labelled)
    assert isinstance(table, BlockTable)
    assert (len(table), table.shape, table.ndim) == (600, (600, 12), 2)


def test_a_fit_leaves_nothing_behind(labelled, tmp_path):
    """Neither files, nor labels or weights that have changed since."""
    X, y, weight = (part.copy() for part in labelled)
    table = from_arrays(X, y, weight, block_rows=100, memory="1 KB", folder=tmp_path)
    ShareBoostClassifier(3).fit(table)
    assert not any(tmp_path.iterdir())
    y[:], weight[:] = y[::-1].copy(), weight[::-1].copy()
    fresh = from_arrays(X, y, weight, block_rows=100)
    assert np.array_equal(
        ShareBoostClassifier(3).fit(table).coef_, ShareBoostClassifier(3).fit(fresh).coef_
    )
    table.on_progress = fail
    with pytest.raises(RuntimeError, match="enough"):
        ShareBoostClassifier(3).fit(table)
    assert not any(tmp_path.iterdir())


def fail(done, whole):
    if done == whole:
        raise RuntimeError("enough")


def test_fits_in_threads_share_a_table(labelled):
    X, y, weight = labelled
    table = from_arrays(X, y, weight, block_rows=50, memory="1 KB", executor=1)
    weights = [None, "balanced", {"a": 3.0}]

    def fit(given):
        return ShareBoostClassifier(4, class_weight=given).fit(table).coef_

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(fit, weights))
    assert all(np.array_equal(coef, fit(given)) for coef, given in zip(found, weights, strict=True))


def test_names_of_a_data_frame(labelled):
    X, y, _ = labelled
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    model = ShareBoostClassifier(3).fit(from_arrays(frame, y))
    assert model.selected_names_ == ShareBoostClassifier(3).fit(frame, y).selected_names_
    assert np.array_equal(model.predict(frame), model.predict(from_arrays(frame)))


@pytest.mark.parametrize("kind", ["S1", complex])
def test_labels_that_are_refused_in_memory_too(kind, labelled):
    X, y, _ = labelled
    y = np.unique(y, return_inverse=True)[1].astype(kind)
    with pytest.raises(TypeError, match="The labels of the table are"):
        ShareBoostClassifier(3).fit(from_arrays(X, y))


def test_staged_predictions_take_arrays(labelled):
    X, y, _ = labelled
    table = from_arrays(X, y)
    with pytest.raises(TypeError, match="A staged prediction of ShareBoostClassifier takes arrays"):
        next(ShareBoostClassifier(2).fit(table).staged_predict(table))


@pytest.mark.parametrize("pool", [Columns(), Stumps()])
def test_entries_that_are_stored_in_parts(pool, labelled):
    X, y, _ = labelled
    whole = sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    halves = np.repeat(whole.data, 2) / 2, np.repeat(whole.indices, 2), 2 * whole.indptr
    parts = sparse.csr_array(halves, shape=whole.shape)
    model = ShareBoostClassifier(3, pool=pool).fit(from_arrays(parts, y, block_rows=100))
    memory = ShareBoostClassifier(3, pool=pool).fit(whole.toarray(), y)
    assert model.atoms_ == memory.atoms_
    assert parts.nnz == 2 * whole.nnz
