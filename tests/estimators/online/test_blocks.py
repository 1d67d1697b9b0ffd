"""Learning from tables of row blocks: the weights of the same rows in memory."""

import os
import signal
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineMultiTaskLearner,
    load,
    save,
)
from mixnorm.data import ArraySource, BlockTable, from_arrays
from mixnorm.exceptions import InterruptedFitWarning

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 6)).astype(np.float32)
SPARSE = sp.csr_matrix(np.where(X > 0.5, X, 0.0))
# The class "z" appears in the last rows alone.
LABELS = np.where(np.arange(N) > 290, "z", np.where(X[:, 0] > 0, "b", "a"))
NUMBERS = np.where(np.arange(N) < 40, np.nan, X @ np.arange(6.0))
WEIGHT = RNG.integers(0, 3, N).astype(float)
CLASSIFIERS = [
    GroupPerceptron(shuffle=False),
    GroupPerceptron("l1,1", scale=True, shuffle=False),
    MirrorDescentClassifier(shuffle=False),
    MirrorDescentClassifier("l2,1", average=True, class_weight={"a": 2.0}, shuffle=False),
    MirrorDescentClassifier(class_weight="balanced", shuffle=False),
    MirrorDescentClassifier("trace", block_size=7, shuffle=False),
]


def check_same(one, other):
    """Two learners have seen the same rows, to the last bit."""
    np.testing.assert_array_equal(one.coef_, other.coef_, strict=True)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    for name in ("mistakes_", "loss_", "n_rounds_", "n_updates_", "n_features_in_"):
        assert getattr(one, name) == getattr(other, name)
    for name, values in one.curve_.items():
        np.testing.assert_allclose(values, other.curve_[name], rtol=1e-12)


@pytest.mark.parametrize("rows", [X, SPARSE, np.asfortranarray(X)], ids=["C", "sparse", "F"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda one: f"{type(one).__name__}-{one.norm}")
def test_fit_does_not_depend_on_blocks(model, rows):
    whole = clone(model).fit(rows, LABELS, WEIGHT)
    for block_rows in (16, 299, 1000):
        found = clone(model).fit(from_arrays(rows, LABELS, WEIGHT, block_rows=block_rows))
        check_same(whole, found)
        assert found.classes_.tolist() == ["a", "b", "z"]


@pytest.mark.parametrize("model", CLASSIFIERS[2:4] + CLASSIFIERS[5:])
def test_partial_fit_goes_on_with_a_table(model):
    """Also with a class that is new in its last block, and a block of the learner under way."""
    # The first five labels are of two classes.
    whole = clone(model).partial_fit(X[:5], LABELS[:5]).partial_fit(X[5:], LABELS[5:])
    table = from_arrays(X[5:], LABELS[5:], block_rows=16)
    found = clone(model).partial_fit(X[:5], LABELS[:5]).partial_fit(table)
    check_same(whole, found)
    again = from_arrays(X, LABELS, block_rows=50)
    check_same(whole.partial_fit(X, LABELS), found.partial_fit(again))


def test_partial_fit_takes_classes():
    table = from_arrays(X, LABELS, block_rows=64)
    whole = MirrorDescentClassifier().partial_fit(X, LABELS, classes=["z", "y", "b", "a"])
    found = MirrorDescentClassifier().partial_fit(table, classes=["z", "y", "b", "a"])
    check_same(whole, found)
    assert found.classes_.tolist() == ["a", "b", "y", "z"]


@pytest.mark.parametrize("y", [NUMBERS, np.stack([NUMBERS, -NUMBERS], axis=1)], ids=["1", "2"])
def test_numbers_of_which_the_first_blocks_know_none(y):
    whole = MirrorDescentRegressor(shuffle=False).fit(X, y, WEIGHT)
    found = MirrorDescentRegressor(shuffle=False).fit(from_arrays(X, y, WEIGHT, block_rows=30))
    check_same(whole, found)


def test_tasks():
    Y = np.stack([NUMBERS, np.where(X[:, 1] > 0, 1.0, 0.0)], axis=1)
    learner = OnlineMultiTaskLearner(losses=["squared", "logistic"], shuffle=False)
    whole, found = clone(learner).fit(X, Y), clone(learner).fit(from_arrays(X, Y, block_rows=30))
    check_same(whole, found)
    np.testing.assert_array_equal(whole.predict(X), found.predict(X))
    task = np.where(np.arange(N) < 250, "u", np.where(np.arange(N) % 2, "t", "v"))
    learner = OnlineMultiTaskLearner("trace", block_size=4, shuffle=False)
    whole = clone(learner).fit(X, X[:, 0], task)
    check_same(whole, clone(learner).fit(from_arrays(X, X[:, 0], block_rows=30), task=task))


def test_a_learner_from_a_table_is_stored_and_goes_on(tmp_path):
    found = MirrorDescentClassifier(shuffle=False).fit(from_arrays(X, LABELS, block_rows=64))
    save(found, tmp_path / "model")
    check_same(load(tmp_path / "model").partial_fit(X, LABELS), found.partial_fit(X, LABELS))


# --- Dask


def test_dask_collections_are_read_in_order():
    whole = MirrorDescentClassifier(shuffle=False).fit(X, LABELS, WEIGHT)
    rows, y = da.from_array(X, chunks=(64, 3)), da.from_array(LABELS, chunks=100)
    weight = da.from_array(WEIGHT, chunks=64)
    with dask.config.set(scheduler="synchronous"):
        found = MirrorDescentClassifier(shuffle=False).fit(rows, y, weight)
        check_same(whole, found)
        check_same(
            whole.partial_fit(X, LABELS), found.partial_fit(from_arrays(rows, y, block_rows=17))
        )
        with pytest.raises(ValueError, match="Set shuffle=False"):
            MirrorDescentClassifier().fit(rows, y)
        table = pd.DataFrame(X, columns=list("abcdef")).assign(y=LABELS)
        frame = dd.from_pandas(table, npartitions=3)
        whole = GroupPerceptron(shuffle=False).fit(table.drop(columns="y"), LABELS)
        for y in (frame["y"], frame[["y"]]):
            found = GroupPerceptron(shuffle=False).fit(frame.drop(columns="y"), y)
            check_same(whole, found)
            assert found.feature_names_in_.tolist() == list("abcdef")
        with pytest.raises(TypeError, match="X is a Dask Delayed.*; give a Dask array or"):
            found.partial_fit(dask.delayed(X), LABELS)


@pytest.mark.parametrize("dense", [True, False])
def test_a_cluster_reads_the_blocks_and_changes_nothing(dense):
    from distributed import Client

    rows = X if dense else SPARSE
    whole = MirrorDescentClassifier(shuffle=False).fit(rows, LABELS, WEIGHT)
    with Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        table = from_arrays(rows, LABELS, WEIGHT, block_rows=16, executor=client)
        found = MirrorDescentClassifier(shuffle=False).fit(table)
        sample = table.sample(9, 1)
        np.testing.assert_array_equal(found.predict(table), whole.predict(rows))
    check_same(whole, found)
    own = from_arrays(rows, LABELS, WEIGHT, block_rows=50, executor=1).sample(9, 1)
    np.testing.assert_array_equal(sample[1], own[1])
    assert (sample[0] != own[0]).sum() == 0


# --- interrupts


class InterruptedSource(ArraySource):
    """Sends Ctrl-C while it reads the block that begins with a row."""

    row = 128

    def scan(self, rows, request, meter):
        for each, block in zip(rows, super().scan(rows, request, meter), strict=True):
            if request.columns is not None and each.start == self.row:
                os.kill(os.getpid(), signal.SIGINT)
            yield block


@pytest.mark.parametrize("model", [CLASSIFIERS[2], CLASSIFIERS[5]])
def test_an_interrupt_keeps_whole_rows(model, tmp_path):
    """Wherever it comes, also in the middle of an update."""
    table = BlockTable(InterruptedSource(X, LABELS), block_rows=32)
    found = clone(model)
    with pytest.warns(InterruptedFitWarning, match=r"^Interrupted after \d+ of 300 rows, which"):
        found.fit(table)
    done = found.n_rounds_
    assert 64 <= done <= 160
    whole = clone(model).partial_fit(X[:done], LABELS[:done], classes=["a", "b", "z"])
    check_same(whole, found)
    check_same(
        whole.partial_fit(X[done:], LABELS[done:]), found.partial_fit(X[done:], LABELS[done:])
    )
    save(found, tmp_path / "model")
    load(tmp_path / "model")


@pytest.mark.parametrize("rule", ["fixed", "adaptive"])
def test_an_interrupt_between_rows_keeps_the_curve_whole(rule, monkeypatch, tmp_path):
    from mixnorm.engines.mirror import RowLearner

    model = MirrorDescentClassifier("l2,1", learning_rate=rule, shuffle=False)
    learn, calls = RowLearner._learn, []

    def learn_and_stop(self, rows, order, *samples):
        calls.append(len(rows))
        if len(calls) < 3:
            return learn(self, rows, order, *samples)
        labels, targets, importance, losses, wrong = samples
        learn(self, rows[:10], order, labels[:10], targets[:10], importance[:10],
              losses[:10], wrong[:10])  # fmt: skip
        raise KeyboardInterrupt

    monkeypatch.setattr(RowLearner, "_learn", learn_and_stop)
    with pytest.warns(InterruptedFitWarning, match="^Interrupted after 74 of 300 rows"):
        model.fit(from_arrays(X, LABELS, block_rows=32))
    monkeypatch.undo()
    assert model.n_rounds_ == 74
    assert model.curve_["rounds"].tolist() == list(range(1, 75))
    save(model, tmp_path / "model")
    load(tmp_path / "model")


def test_an_interrupt_before_the_first_row_leaves_no_model():
    source = InterruptedSource(X, LABELS)
    source.row = 0
    model = MirrorDescentClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(BlockTable(source, block_rows=1000))
    assert not model.__sklearn_is_fitted__()


# --- errors


def test_a_bad_row_is_named_and_those_before_it_count():
    bad = X.copy()
    bad[100, 2] = np.nan
    model = MirrorDescentClassifier(shuffle=False)
    with pytest.raises(ValueError, match="NaN or infinity in row 100 of the table"):
        model.fit(from_arrays(bad, LABELS, block_rows=32))
    check_same(MirrorDescentClassifier().partial_fit(X[:100], LABELS[:100], ["a", "b", "z"]), model)
    bad[0, 0] = np.inf
    with pytest.raises(ValueError, match="row 0 of the table"):
        model.fit(from_arrays(bad, LABELS, block_rows=32))
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (np.where(np.arange(N) == 77, np.nan, 1.0), None, "The target is nan in row 77"),
        (LABELS, np.where(np.arange(N) == 77, -1.0, 1.0), "row 77"),
        (LABELS, np.zeros(N), "sample_weight is zero for every row"),
        (np.stack([LABELS, LABELS], axis=1), None, "2 target columns"),
        (None, None, "requires targets, and the table has none"),
    ],
)
def test_bad_targets_and_weights_leave_the_old_model(y, weight, message):
    model = MirrorDescentClassifier(shuffle=False).fit(X, LABELS)
    before = model.coef_
    with pytest.raises(ValueError, match=message):
        model.fit(from_arrays(X, y, weight, block_rows=32))
    np.testing.assert_array_equal(model.coef_, before)


def test_what_a_table_does_not_go_with():
    table = from_arrays(X, LABELS, block_rows=32)
    with pytest.raises(ValueError, match=r"shuffle=True\), and a table .* Set shuffle=False"):
        MirrorDescentClassifier().fit(table)
    with pytest.raises(TypeError, match="hash_features=8 works only with rows that are dicts"):
        MirrorDescentClassifier(hash_features=8).partial_fit(table)
    with pytest.raises(TypeError, match="y is given beside a table"):
        MirrorDescentClassifier().partial_fit(table, LABELS)
    with pytest.raises(TypeError, match=r"learned from rows of names and values \(dicts\)"):
        MirrorDescentClassifier().partial_fit([{"a": 1.0}], ["b"]).partial_fit(table)
    with pytest.raises(ValueError, match="The table has 6 columns, but MirrorDescentClassifier"):
        MirrorDescentClassifier().partial_fit(X[:, :2], LABELS).partial_fit(table)
    with pytest.raises(ValueError, match="class_weight='balanced' needs all samples"):
        MirrorDescentClassifier(class_weight="balanced").partial_fit(table)
    with pytest.raises(ValueError, match="least 2 classes"):
        MirrorDescentClassifier(shuffle=False).fit(from_arrays(X, np.ones(N)))
    with pytest.raises(ValueError, match="The table has no rows"):
        MirrorDescentClassifier(shuffle=False).fit(from_arrays(X[:0], LABELS[:0]))


def test_no_warning_about_many_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GroupPerceptron().partial_fit(from_arrays(X, np.arange(N) // 3, block_rows=64))
