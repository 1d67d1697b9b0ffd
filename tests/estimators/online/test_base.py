"""What the user does with online learners: streams of any form, and predictions."""

import copy
import pickle
from itertools import product
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixnorm
from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineMultiTaskLearner,
)
from mixnorm.engines.mirror import layout as layout
from mixnorm.engines.mirror import rows_jit as jit

from .conftest import (
    ALL,
    CLASSIFIERS,
    REGRESSORS,
    D,
    N,
    assert_same,
    begun,
    each_model,
    learn_ones,
    rows,
    stream,
    taken,
)


@each_model
def test_how_rows_are_handed_over_does_not_matter(model):
    arguments = taken(stream(model), slice(0, 120))
    rest = taken(arguments, slice(40, None))
    whole = begun(model, arguments).partial_fit(**rest)
    assert whole.n_rounds_ == 120
    parts, single = begun(model, arguments), begun(model, arguments)
    for part in np.array_split(np.arange(80), 7):
        parts.partial_fit(**taken(rest, part))
    for i in range(80):
        single.partial_fit(**taken(rest, slice(i, i + 1)))
    sparse = begun(model, arguments).partial_fit(**rest | {"X": sp.csr_matrix(rest["X"])})
    mixed = begun(model, arguments).partial_fit(**rest | {"X": jumbled(rest["X"])})
    for other in (parts, single, sparse, mixed, learn_ones(begun(model, arguments), rest)):
        assert_same(whole, other)


def jumbled(X):
    """A CSR matrix whose indices are not sorted, with entries twice and entries of zero."""
    found = sp.csr_array(X)
    indptr, indices, data = [0], [], []
    for i in range(len(X)):
        own = slice(found.indptr[i], found.indptr[i + 1])
        places, values = found.indices[own][::-1].tolist(), found.data[own][::-1].tolist()
        if places:
            places, values = [*places, places[0], 3], [values[0] / 2, *values[1:], 0.0, 0.0]
            values[-2] = values[0]
        indices += places
        data += values
        indptr.append(len(indices))
    return sp.csr_array((data, indices, indptr), shape=X.shape)


def test_the_jumbled_matrix_is_the_same():
    X = rows()
    assert np.array_equal(jumbled(X).toarray(), X)
    assert not jumbled(X).has_sorted_indices


@pytest.mark.parametrize(
    ("model", "kind"),
    [*product(ALL, ["pickle", "file"]), *product(ALL[:2], ["deepcopy"])],
    ids=repr,
)
def test_going_on_from_a_copy(model, kind, tmp_path):
    arguments = stream(model)
    rest = taken(arguments, slice(140, None))
    one = clone(model).partial_fit(**taken(arguments, slice(0, 100)))
    learn_ones(one, taken(arguments, slice(100, 140)))
    if kind == "file":
        mixnorm.save(one, tmp_path / "model")
        other = mixnorm.load(tmp_path / "model")
    else:
        other = copy.deepcopy(one) if kind == "deepcopy" else pickle.loads(pickle.dumps(one))
    learn_ones(one, taken(rest, slice(0, 50)))
    learn_ones(other, taken(rest, slice(0, 50)))
    for each in (one, other):
        each.partial_fit(**taken(rest, slice(50, None)))
    assert_same(one, other)
    assert np.array_equal(one._learner.numbers, other._learner.numbers)
    assert one.loss_ == other.loss_


@each_model
def test_fit_forgets(model):
    arguments = stream(model)
    model = clone(model).set_params(random_state=0)
    once = clone(model).fit(**arguments)
    again = clone(model).fit(**stream(model, seed=1)).fit(**arguments)
    assert_same(once, again)
    assert again.n_rounds_ == N


@each_model
def test_fit_shuffles_unless_told_not_to(model):
    arguments = stream(model)
    mixed = clone(model).set_params(random_state=3).fit(**arguments)
    order = np.random.RandomState(3).permutation(N)
    wanted = clone(model).set_params(shuffle=False)
    known = {"classes": np.unique(arguments["y"])} if model in CLASSIFIERS else {}
    assert_same(mixed, wanted.partial_fit(**taken(arguments, order), **known))
    kept = clone(model).set_params(shuffle=False).fit(**arguments)
    assert_same(kept, clone(model).partial_fit(**arguments, **known))


def test_sorted_rows_are_learned():
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)  # sorted by class
    assert MirrorDescentClassifier(random_state=0).fit(X, y).score(X, y) > 0.95
    assert MirrorDescentClassifier(shuffle=False).fit(X, y).score(X, y) < 0.9


def test_a_bad_row_is_named_by_its_place_before_the_shuffle():
    X, y = rows(), np.arange(N) % 3
    X[17, 2] = np.nan
    model = MirrorDescentClassifier(random_state=0)
    with pytest.raises(ValueError, match="Row 17 of X contains NaN or infinity"):
        model.fit(X, y)


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=str)
def test_one_row_is_predicted_as_many_are(model):
    arguments = stream(model)
    found = clone(model)
    assert found.predict_one(arguments["X"][0]) is None
    learn_ones(found, taken(arguments, slice(0, 100)))
    for x in arguments["X"][:20]:
        wanted = found.predict(x[None])[0]
        np.testing.assert_allclose(found.predict_one(x), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.predict_one(list(x)), wanted, rtol=1e-9, atol=1e-9)


LOSSES = {
    "squared": lambda error: 0.5 * error**2,
    "absolute": np.abs,
    "huber": lambda error: np.where(np.abs(error) < 1, 0.5 * error**2, np.abs(error) - 0.5),
}


@pytest.mark.parametrize("model", [each for each in ALL if not each.average], ids=str)
def test_coefficients_are_what_is_played_next(model):
    """Scores by coef_ and intercept_ are those of the next row, whose loss they give."""
    arguments = stream(model)
    found = clone(model).partial_fit(**taken(arguments, slice(0, 150)))
    for i in range(150, 170):
        row = taken(arguments, slice(i, i + 1))
        scores = (row["X"] @ found.coef_.T + found.intercept_)[0]
        mistakes, loss = found.mistakes_, found.loss_
        found.partial_fit(**row)
        if model in CLASSIFIERS:
            assert found.mistakes_ - mistakes == (np.argmax(scores) != row["y"][0])
            continue
        if "task" in row:
            scores = scores[found.tasks_.tolist().index(row["task"][0])]
        name = model.losses if "task" in row else model.loss
        wanted = np.sum(LOSSES[name](scores - row["y"][0]))
        assert found.loss_ - loss == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def test_averages_are_of_what_was_played():
    X, y = rows(), np.arange(N) % 3
    model, played = MirrorDescentClassifier("l2,1", scale=False, average=True), []
    plain = MirrorDescentClassifier("l2,1", scale=False)
    for i in range(N):
        if i:
            played.append(plain.coef_)
        for each in (model, plain):
            each.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
    np.testing.assert_allclose(model.coef_, np.sum(played, axis=0) / N, rtol=1e-9)
    assert np.array_equal(model._learner.theta, plain._learner.theta)
    averages, weights = model.coef_, plain.coef_
    assert not np.array_equal(averages, weights)
    assert np.array_equal(model.set_params(average=False).coef_, averages)
    assert np.array_equal(plain.set_params(average=True).coef_, weights)


@each_model
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_before_a_bad_one_are_kept(model, bad):
    arguments = stream(model)
    one, other = begun(model, arguments), begun(model, arguments)
    rest = taken(arguments, slice(40, None))
    one.partial_fit(**taken(rest, slice(0, 100)))
    rest["X"][100, 3] = bad
    with pytest.raises(ValueError, match="Row 100 of X contains NaN or infinity; the 100 rows"):
        other.partial_fit(**rest)
    assert_same(one, other)
    rest["X"][100, 3] = 0.0
    for each in (one, other):
        each.partial_fit(**taken(rest, slice(100, None)))
    assert_same(one, other)


@each_model
def test_bad_single_rows(model):
    arguments = taken(stream(model), slice(0, 60))
    one = learn_ones(clone(model), arguments)
    values = [values[0] for values in arguments.values()]
    x, others = values[0], values[1:]
    task = others[1:] if isinstance(one, OnlineMultiTaskLearner) else []
    before = one.n_rounds_
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="Row 0 of X contains NaN or infinity"):
            one.learn_one(np.where(np.arange(D) == 2, bad, x), *others)
    for wrong in (x[:-1], np.append(x, 1.0)):
        with pytest.raises(ValueError, match=f"{D} features"):
            one.learn_one(wrong, *others)
        with pytest.raises(ValueError, match=f"{D} features"):
            one.predict_one(wrong, *task)
    with pytest.raises(ValueError, match="NaN"):
        one.predict_one(np.full(D, np.nan), *task)
    assert one.n_rounds_ == before
    one.learn_one(list(x), *others)
    one.learn_one(x.astype(np.float32), *others)
    assert one.n_rounds_ == before + 2
    assert np.all(np.isfinite(one.coef_))


def test_frames_and_pipelines():
    frame = pd.DataFrame(rows(), columns=[f"f{j}" for j in range(D)])
    y = np.arange(N) % 3
    model = MirrorDescentClassifier().partial_fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    model.partial_fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.learn_one(frame.to_numpy()[0], 1)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame.rename(columns={"f3": "other"}), y)
    pipeline = make_pipeline(StandardScaler(), MirrorDescentClassifier()).fit(frame, y)
    assert pipeline.predict(frame).shape == (N,)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_dtypes(dtype):
    X = (rows() > 0).astype(dtype)
    y = np.arange(N) % 3
    one = MirrorDescentClassifier(random_state=0).fit(X, y)
    other = MirrorDescentClassifier(random_state=0).fit(X.astype(np.float64), y)
    assert_same(one, other)
    assert one.predict(X).shape == (N,)


@pytest.mark.parametrize("shuffle", [False, True])
def test_one_compiled_loop_serves_all_arrays(shuffle, tmp_path, monkeypatch):
    from mixnorm.engines.mirror import row_learner

    monkeypatch.setattr(row_learner, "_OPERATIONS_PER_ENTRY", 2**26 // (50 * D))  # blocks of 50
    X, y, weight = rows(), rows()[:, :2], np.ones(N)
    model = MirrorDescentRegressor(shuffle=shuffle, random_state=0)
    wanted = clone(model).fit(X, y, sample_weight=weight)
    thin = clone(model).fit(sp.csr_array(X), y)
    kinds = len(jit.learn.signatures)
    np.save(tmp_path / "X.npy", X)
    for array in (X, y, weight):
        array.flags.writeable = False
    locked = sp.csr_array(X)
    for array in (locked.data, locked.indices, locked.indptr):
        array.flags.writeable = False
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for form in (X, np.asfortranarray(X), mapped, X[:, ::-1][:, ::-1]):
        assert_same(wanted, clone(model).fit(form, y, sample_weight=weight))
    assert_same(thin, clone(model).fit(locked, y))
    single = clone(model).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.predict(X), wanted.predict(X), rtol=1e-3, atol=1e-3)
    assert len(jit.learn.signatures) == kinds


@each_model
def test_sample_weight(model):
    arguments, model = stream(model), clone(model).set_params(random_state=0)
    ones = clone(model).fit(**arguments, sample_weight=np.ones(N))
    assert_same(clone(model).fit(**arguments), ones)
    weight = np.random.default_rng(0).uniform(size=N)
    weighted = begun(model, arguments)
    rest = taken(arguments, slice(40, None))
    weighted.partial_fit(**rest, sample_weight=np.where(weight[40:] < 0.5, 0.0, 1.0))
    assert weighted.n_rounds_ == N
    assert weighted.n_updates_ < N
    with pytest.raises(ValueError, match="zero for every row"):
        clone(model).fit(**arguments, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="one weight per row"):
        clone(model).partial_fit(**arguments, sample_weight=np.ones(N - 1))
    for wrong in (np.nan, -1.0, np.inf):
        with pytest.raises(ValueError, match="zero or more|finite"):
            clone(model).partial_fit(**arguments, sample_weight=np.full(N, wrong))
    with pytest.raises(TypeError, match="is a name"):
        clone(model).partial_fit(**arguments, sample_weight="balanced")


def test_a_weight_counts_in_loss_and_step():
    X, y = rows()[1:2], np.array([3.0])
    for weight in (1.0, 0.5):
        model = MirrorDescentRegressor(learning_rate="fixed", scale=False, eta0=1e-3)
        model.partial_fit(X, y, sample_weight=[weight])
        np.testing.assert_allclose(model.coef_, weight * 3e-3 * X[0], rtol=1e-12)
        assert model.loss_ == pytest.approx(weight * 4.5)


@pytest.mark.parametrize("model", [each for each in ALL if each.norm != "trace"], ids=str)
def test_a_row_of_weight_two_is_the_row_twice(model):
    arguments = stream(model)
    weight = np.random.default_rng(1).integers(1, 4, size=N)
    one = begun(model, arguments).partial_fit(**arguments, sample_weight=weight)
    again = np.repeat(np.arange(N), weight)
    other = begun(model, arguments).partial_fit(**taken(arguments, again))
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert one.loss_ == pytest.approx(other.loss_, rel=1e-12)
    # The curve runs up as for repeated rows, after the last copy of each.
    curve, ends = one.curve_, 40 + np.cumsum(weight)
    wanted = np.interp(ends, other.curve_["rounds"], other.curve_["loss"])
    assert curve["rounds"].tolist() == list(range(1, 41 + N))
    np.testing.assert_allclose(curve["loss"][40:], wanted, rtol=1e-9)


def test_unfitted():
    for model in ALL:
        assert not hasattr(model, "coef_")
        with pytest.raises(NotFittedError):
            model.predict(rows())
        with pytest.raises(NotFittedError):
            model.curve_  # noqa: B018


@pytest.mark.parametrize("norm", ["l2,1", "l1,1", "l2,2", "trace"])
def test_bounds_of_estimators(norm):
    X, y = rows() / np.logspace(-2, 2, D), np.arange(N) % 3
    model = MirrorDescentClassifier(
        norm, "hinge", radius=2.0, learning_rate="adaptive", scale=False, conservative=0.0,
        fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    W = np.random.default_rng(0).normal(size=(3, D))
    W *= 2.0 / model._learner.norm.value(W.T)
    scores = X @ W.T
    margins = 1.0 + scores - scores[np.arange(N), y][:, None]
    margins[np.arange(N), y] = 0.0
    assert model.loss_ - np.sum(np.max(margins, axis=1)) <= model.regret(W) + 1e-9
    assert model.regret(W) <= model.regret_bound(W)
    with pytest.raises(ValueError, match="shape of coef_"):
        model.regret(W.T)
    if norm != "trace":
        perceptron = GroupPerceptron(norm).fit(X, y)
        assert perceptron.mistakes_ <= perceptron.mistake_bound(W)


@pytest.mark.parametrize("model", [each for each in ALL if not each.average], ids=str)
def test_the_prediction_that_counts_is_the_one_before(model):
    """Rows however far out are predicted by what was known before them."""
    arguments = stream(model)
    arguments["X"][150:] *= np.linspace(1.0, 50.0, N - 150)[:, None]
    found = clone(model).partial_fit(**taken(arguments, slice(0, 150)))
    for i in range(150, 200):
        row = taken(arguments, slice(i, i + 1))
        if model in CLASSIFIERS:
            guess = found.predict_one(row["X"][0])
            before = found.mistakes_
            found.partial_fit(**row)
            assert found.mistakes_ - before == (guess != row["y"][0])
        else:
            task = {"task": row["task"]} if "task" in row else {}
            guess, before = found.decision_function(row["X"], **task) if task else found.predict(
                row["X"]
            ), found.loss_  # fmt: skip
            found.partial_fit(**row)
            name = model.losses if task else model.loss
            if name in LOSSES:
                wanted = np.sum(LOSSES[name](guess[0] - row["y"][0]))
                assert found.loss_ - before == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_one_row_may_be_sparse_or_any_mapping():
    whole, thin = MirrorDescentClassifier(), MirrorDescentClassifier()
    for row, label in zip(np.eye(3), "abc", strict=True):
        whole.partial_fit(sp.csr_matrix(row), [label])
        thin.learn_one(sp.csr_matrix(row), label)
    np.testing.assert_array_equal(whole.coef_, thin.coef_)
    assert thin.predict_one(sp.csr_matrix(np.eye(3)[1])) == whole.predict_one(np.eye(3)[1])
    named = MirrorDescentClassifier()
    named.learn_one(MappingProxyType({"a": 1.0}), "u")
    assert named.predict_one(MappingProxyType({"a": 1.0})) == "u"


def test_a_bad_first_row_leaves_nothing_behind():
    model = MirrorDescentClassifier()
    with pytest.raises(ValueError, match="NaN"):
        model.learn_one(np.array([np.nan, 1.0]), 0)
    assert model.predict_one(np.ones(2)) is None
    model.learn_one(np.ones(3), 0)
    assert model.coef_.shape == (1, 3)
