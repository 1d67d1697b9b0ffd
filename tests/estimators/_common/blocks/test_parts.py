"""Predictions for Dask collections, which are lazy, and for tables of blocks."""

import os
import pickle
import signal
import warnings
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.delayed import delayed
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from mixnorm import (
    GroupPerceptron,
    JointBoostClassifier,
    MirrorDescentClassifier,
    MixedNormClassifier,
    MixedNormRegressor,
    MKLRegressor,
    MultiTaskLearner,
    OnlineMultiTaskLearner,
    ShareBoostClassifier,
    advise,
    bounds,
    estimators,
)
from mixnorm.data import ArraySource, BlockTable, from_arrays
from mixnorm.exceptions import MixnormWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
FRAME = pd.DataFrame(X, columns=list("abcd"))
LABELS = np.array(["low", "mid", "high"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
NUMBERS = X[:, 0] - 0.5 * X[:, 3] + 0.1 * RNG.normal(size=60)
METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform"]
SHORT = {"n_features_to_select": 2, "n_rounds": 5, "n_kernels": 2, "max_iter": 50, "epochs": 2}
# Searches predict as the learners do that they are made of.
KINDS = [
    kind
    for name in estimators.__all__
    if hasattr(kind := getattr(estimators, name), "fit") and not name.endswith("CV")
]
# Those that fit tables of blocks.
FROM_BLOCKS = ("ShareBoost", "MixedNorm", "MultiTask", "Online", "MirrorDescent", "GroupPerceptron")


@pytest.fixture(autouse=True)
def _in_turn():
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore", MixnormWarning)  # short fits do not converge
        yield


def targets_of(kind):
    y = LABELS if is_classifier(kind()) else NUMBERS
    return np.stack([y, -y], axis=1) if "MultiTask" in kind.__name__ else y


def fit(kind, rows=X):
    known = kind().get_params()
    model = kind(**{name: value for name, value in SHORT.items() if name in known})
    return model.fit(rows, targets_of(kind))


def check_close(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(found, wanted)


# --- every estimator


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_by_parts_are_those_of_the_rows_in_memory(kind):
    model, chunked = fit(kind), da.from_array(X, chunks=(25, 2))
    table = from_arrays(X, targets_of(kind), block_rows=23)
    for method in METHODS:
        if not hasattr(model, method):
            continue
        predict = getattr(model, method)
        wanted, lazy = predict(X), predict(chunked)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == (25, 25, 10)
        check_close(lazy[:0].compute(), wanted[:0])
        check_close(lazy.compute(), wanted)
        check_close(predict(table), wanted)
    if hasattr(model, "score"):
        y = da.from_array(targets_of(kind), chunks=20)
        scores = [model.score(X, targets_of(kind)), model.score(chunked, y), model.score(table)]
        np.testing.assert_allclose(scores, scores[0], rtol=1e-9)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if not kind.__name__.startswith(FROM_BLOCKS)]
)
@pytest.mark.parametrize(
    "blocks", [from_arrays(X, LABELS), da.from_array(X)], ids=["table", "dask"]
)
def test_fits_that_need_arrays_in_memory_say_so(kind, blocks):
    words = f"^{kind.__name__} takes arrays in memory, and X is a"
    with pytest.raises(TypeError, match=words):
        kind().fit(blocks, targets_of(kind))
    if hasattr(kind, "partial_fit"):
        with pytest.raises(TypeError, match=words):
            kind().partial_fit(blocks, targets_of(kind))


def test_other_takers_of_arrays_in_memory():
    chunked = da.from_array(X)
    with pytest.raises(TypeError, match="^advise takes arrays in memory"):
        advise(chunked, LABELS)
    with pytest.raises(TypeError, match="^The bound takes arrays in memory"):
        bounds.rademacher("l2,2", chunked, radius=1.0)
    with pytest.raises(TypeError, match="^MKLRegressor takes arrays in memory"):
        MKLRegressor(kernel="precomputed").fit(da.ones((1, 60, 60)), NUMBERS)
    with pytest.raises(TypeError, match="^A staged prediction of ShareBoost"):
        next(fit(ShareBoostClassifier).staged_predict(chunked))


# --- Dask collections


def count_reads(reads):
    """Return a Dask array that notes when a chunk is made."""

    def make(block_id=None):
        reads.append(block_id)
        return X[20 * block_id[0] : 20 * block_id[0] + 20]

    return da.map_blocks(make, chunks=((20, 20, 20), (4,)), dtype=float, meta=np.empty((0, 0)))


def test_nothing_is_computed_at_the_call():
    reads = []
    chunked, model = count_reads(reads), fit(ShareBoostClassifier)
    lazy = [getattr(model, method)(chunked) for method in METHODS]
    assert reads == []
    dask.compute(*lazy)
    # Once each, for all five.
    assert sorted(reads) == [(0, 0), (1, 0), (2, 0)]


def test_a_frame_is_read_by_partitions_of_unknown_length():
    model = fit(ShareBoostClassifier, FRAME)
    frame = dd.from_pandas(FRAME, npartitions=3)
    for method in METHODS:
        lazy, wanted = getattr(model, method)(frame), np.asarray(getattr(model, method)(FRAME))
        assert lazy.numblocks[0] == 3
        assert np.isnan(lazy.shape[0])
        check_close(lazy.compute(), wanted)
    y = dd.from_pandas(pd.Series(LABELS), npartitions=3)
    assert model.score(frame, y) == model.score(FRAME, LABELS)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["a", "b", "c", "d"][::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}))
    # Without names scikit-learn warns, once and at the call.
    with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
        lazy = model.predict(da.from_array(X, chunks=(25, 4)))
    assert len(caught) == 1
    check_close(lazy.compute(), model.predict(FRAME))


def test_chunks_may_be_sparse_or_empty_or_of_unknown_length():
    model = fit(MixedNormClassifier)
    table = sp.csr_matrix(np.where(X > 0.5, X, 0.0))
    chunked = da.from_array(table, chunks=(25, 4), asarray=False)
    check_close(model.predict(chunked).compute(), model.predict(table))
    assert sp.issparse(model.transform(chunked).compute())
    rows = da.from_array(X, chunks=(20, 4))
    some = rows[rows[:, 0] > 5.0]
    assert np.isnan(some.shape[0])
    assert model.predict(some).compute().shape == (0,)
    assert model.decision_function(some).compute().shape == (0, 3)
    half = rows[rows[:, 0] > 0.0]
    check_close(model.predict(half).compute(), model.predict(X[X[:, 0] > 0.0]))


def test_the_graph_has_a_slim_model_once():
    model = fit(ShareBoostClassifier)
    model.search_ = "x" * 1_000_000  # what a search leaves is not needed
    lazy = model.predict(da.from_array(X, chunks=(1, 4)))
    graph = dict(lazy.__dask_graph__())
    models = [task for task in graph.values() if "_Parts" in repr(task)]
    assert len(models) == 1
    assert len(pickle.dumps(models[0])) < 10_000
    online = GroupPerceptron().fit(X, LABELS)
    whole = len(pickle.dumps(online))
    slim = online._slim()
    assert len(pickle.dumps(slim)) < 0.5 * whole
    assert slim._state().curve.rounds == []


def test_a_lazy_prediction_is_that_of_the_model_at_the_call():
    model = MirrorDescentClassifier(random_state=0).fit(X, LABELS)
    before = model.decision_function(X)
    lazy = model.decision_function(da.from_array(X, chunks=(25, 4)))
    model.partial_fit(X, LABELS[::-1])
    assert not np.allclose(model.decision_function(X), before)
    check_close(lazy.compute(), before)


def test_probabilities_of_tasks_are_a_list():
    Y = np.where(X[:, :2] > 0, 1, -1)
    model = MultiTaskLearner(losses="logistic").fit(X, Y)
    wanted = model.predict_proba(X)
    lazy, made = (
        model.predict_proba(each)
        for each in (da.from_array(X, chunks=(25, 4)), from_arrays(X, block_rows=7))
    )
    for one, found, other in zip(wanted, lazy, made, strict=True):
        check_close(found.compute(), one)
        check_close(other, one)
    check_close(
        model.predict(da.from_array(X, chunks=(25, 4)), task=1).compute(), model.predict(X, task=1)
    )


def test_errors_of_a_call():
    chunked, model = da.from_array(X, chunks=(25, 4)), fit(MixedNormRegressor)
    with pytest.raises(NotFittedError):
        MixedNormRegressor().predict(chunked)
    with pytest.raises(ValueError, match="X has 3 features, but MixedNormRegressor is expecting 4"):
        model.predict(chunked[:, :3])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        model.predict(chunked[:, 0])
    with pytest.raises(TypeError, match="X is a Dask Delayed.*; give a Dask array or DataFrame"):
        model.predict(delayed(X))
    with pytest.raises(ValueError, match="unknown number of columns"):
        model.predict(da.from_array(X.T, chunks=(2, 60))[chunked[0] > -99.0].T)
    with pytest.raises(TypeError, match="makes frames in memory"):
        fit(MixedNormRegressor).set_output(transform="pandas").transform(chunked)
    tasks = fit(OnlineMultiTaskLearner)
    with pytest.raises(TypeError, match="predict was given a value for each row beside a Dask"):
        tasks.predict(chunked, task=np.zeros(60, dtype=int))
    assert not hasattr(fit(GroupPerceptron), "predict_proba")


def test_an_error_in_a_chunk_names_it():
    bad = X.copy()
    bad[55, 1] = np.nan
    model = fit(MixedNormRegressor)
    lazy = model.predict(da.from_array(bad, chunks=(25, 4)))
    with pytest.raises(ValueError, match="In chunk 2 of X: Input X contains NaN"):
        lazy.compute()
    with pytest.raises(ValueError, match="In rows 50 to 59: Input X contains NaN"):
        model.predict(from_arrays(bad, block_rows=25))


# --- tables of blocks


class NotingSource(ArraySource):
    """Notes the columns that are read."""

    columns = ()

    def scan(self, rows, request, meter):
        self.columns = request.columns
        yield from super().scan(rows, request, meter)


def test_few_columns_of_a_wide_table_are_read():
    wide = RNG.normal(size=(60, 50))
    y = np.where(wide[:, 7] + wide[:, 30] > 0, "b", "a")
    table = BlockTable(NotingSource(wide), block_rows=25, executor=1)
    model = ShareBoostClassifier(2).fit(wide, y)
    check_close(model.decision_function(table), model.decision_function(wide))
    assert table.source.columns.tolist() == [7, 30]
    check_close(model.transform(table), model.transform(wide))
    assert table.source.columns.tolist() == [7, 30]
    boosted = JointBoostClassifier(3).fit(wide, y)
    check_close(boosted.predict(table), boosted.predict(wide))
    assert table.source.columns == slice(None)


def test_sparse_tables_and_names():
    rows = sp.csr_matrix(np.where(X > 0.5, X, 0.0))
    model = fit(MixedNormClassifier, FRAME)
    table = BlockTable(ArraySource(rows, names=tuple("abcd")), block_rows=25)
    check_close(model.predict(table), fit(MixedNormClassifier).predict(rows))
    assert sp.issparse(model.transform(table))
    with pytest.raises(ValueError, match="Column 0 of the table is 'd', but was 'a' in the fit"):
        model.predict(BlockTable(ArraySource(rows, names=tuple("dcba"))))
    with pytest.raises(NotFittedError):
        MixedNormClassifier().predict(table)
    with pytest.raises(ValueError, match="requires targets, and the table has none"):
        model.score(table)
    with pytest.raises(TypeError, match="y is given beside a table"):
        model.score(table, LABELS)


def test_the_score_of_a_table_counts_its_weights():
    weight = RNG.integers(0, 3, 60).astype(float)
    for kind, y in ((MixedNormClassifier, LABELS), (MixedNormRegressor, NUMBERS)):
        model, table = fit(kind), from_arrays(X, y, weight, block_rows=25)
        np.testing.assert_allclose(model.score(table), model.score(X, y, weight), rtol=1e-12)


# --- processes


def die_once(rows, marker):
    """Kill the worker that makes the chunk, the first time."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return rows


def test_a_worker_that_is_killed_does_not_change_predictions(tmp_path: Path):
    from distributed import Client, LocalCluster

    model = fit(ShareBoostClassifier)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        rows = da.from_array(X, chunks=(20, 4)).map_blocks(
            die_once, tmp_path / "marker", dtype=float, meta=np.empty((0, 0))
        )
        found = client.compute(model.predict_proba(rows)).result(timeout=60)
    assert (tmp_path / "marker").exists()
    check_close(found, model.predict_proba(X))
