"""Model files of online learners: checked when they are read, as they may be a stranger's."""

import numpy as np
import pytest

from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineMultiTaskLearner,
)
from mixnorm.storage.decode import restore

X = np.random.default_rng(0).normal(size=(60, 8))
MODELS = {
    "group": GroupPerceptron(average=True).fit(X, np.argmax(X[:, :3], axis=1)),
    "feature": MirrorDescentClassifier().fit(X, np.argmax(X[:, :3], axis=1)),
    "blocks": MirrorDescentClassifier("trace", block_size=7).fit(X, np.argmax(X[:, :3], axis=1)),
    "entries": MirrorDescentRegressor("l1,1").fit(X, X[:, :3]),
    "tasks": OnlineMultiTaskLearner().fit(X, X[:, :3]),
    "names": GroupPerceptron().fit([{f"n{j}": v for j, v in enumerate(x)} for x in X],
                                   np.argmax(X[:, :3], axis=1)),
    "hashed": GroupPerceptron(hash_features=8).fit([{"a": 1.0}, {"b": 1.0}, {"c": 2.0}], [0, 1, 2]),
}  # fmt: skip
REFUSED = (ValueError, TypeError, KeyError, AttributeError, MemoryError, IndexError)
each_model = pytest.mark.parametrize("name", MODELS)


def again(model, params=None, **changes):
    """Return what is read from the model's state, with some of it changed or (None) gone."""
    state = model._fitted_state() | changes
    state = {name: value for name, value in state.items() if value is not None}
    fresh = type(model)(**model.get_params(deep=False) | (params or {}))
    restore(fresh, state, 10**6)
    return fresh


@each_model
def test_what_is_kept(name):
    model = MODELS[name]
    found = again(model)
    assert np.array_equal(found.coef_, model.coef_)
    for array in found._learner.stored:
        assert getattr(found._learner, array).flags.writeable
    for part in ("rounds", "mistakes", "loss"):
        assert np.array_equal(found.curve_[part], model.curve_[part])


def arrays(model):
    return {name: array.copy() for name, array in model._fitted_state()["_arrays"].items()}


@each_model
def test_arrays_that_do_not_fit(name):
    model = MODELS[name]
    for part, array in arrays(model).items():
        wrong = [array[..., :-1], array.astype(np.float32), array.tolist(), None, array[None],
                 np.full_like(array, 1).astype(complex)]  # fmt: skip
        if array.dtype == np.float64 and array.size:
            bad = array.copy()
            bad.flat[-1] = np.nan
            wrong.append(bad)
            wrong.append(np.full_like(array, np.inf))
        for value in wrong:
            if isinstance(value, np.ndarray) and value.size == array.size == 0:
                continue  # nothing of another shape
            with pytest.raises(REFUSED):
                again(model, _arrays=arrays(model) | {part: value})
    missing = arrays(model)
    missing.popitem()
    for value in (missing, arrays(model) | {"more": np.zeros(3)}, [], {}):
        with pytest.raises(REFUSED):
            again(model, _arrays=value)


@each_model
def test_sizes_that_do_not_fit(name):
    model = MODELS[name]
    for wrong in ([8], [8, 3, 1], (8, 3), [8.0, 3], [-1, 3], [8, 0], [8, 4], [9, 3], [7, 3],
                  [10**12, 3], [0, 10**9], [10**9, 1], None, "83"):  # fmt: skip
        with pytest.raises(REFUSED):
            again(model, _sizes=wrong)
    for wrong in (7, 9, -1, 8.0, "8", None, 10**12):
        with pytest.raises(REFUSED):
            again(model, n_features_in_=wrong)


@each_model
def test_curves_that_cannot_be(name):
    model = MODELS[name]
    curve = model._fitted_state()["_curve"]
    changes = [{"stride": wrong} for wrong in (0, -1, 1.5, "1", 2, None)]
    changes += [
        {"rounds": wrong} for wrong in (curve["rounds"][:-1], curve["rounds"][::-1], [1], 3)
    ]
    changes += [{"mistakes": curve["mistakes"][:-1]}, {"loss": curve["loss"][None]}]
    for change in changes:
        with pytest.raises(REFUSED):
            again(model, _curve=curve | change)
    with pytest.raises(REFUSED):
        again(model, _curve={})


def test_labels_and_tasks_that_cannot_be():
    for wrong in (np.arange(2), np.array([0, 1, 1]), [0, 1, 2], None, np.zeros((3, 1))):
        with pytest.raises(REFUSED):
            again(MODELS["group"], classes_=wrong)
        with pytest.raises(REFUSED):
            again(MODELS["tasks"], tasks_=wrong)
    for wrong in ([0.0], [0, 1, 2], None, "abc"):
        with pytest.raises(REFUSED):
            again(MODELS["tasks"], _low=wrong)
    for wrong in (True, 1, None):
        with pytest.raises(REFUSED):
            again(MODELS["entries"], _single=wrong)


def test_names_that_cannot_be():
    """A place beyond the weights would be written to."""
    names = MODELS["names"].vocabulary_
    for wrong in (
        names | {"n0": 10**9},
        names | {"n0": -1},
        names | {"n0": 1},
        names | {"n0": 0.0},
        names | {"more": 8},
        dict(list(names.items())[:-1]),
        list(names),
        np.arange(8),
    ):
        with pytest.raises(REFUSED):
            again(MODELS["names"], vocabulary_=wrong)
    with pytest.raises(REFUSED):
        again(MODELS["names"], feature_names_in_=np.array(["a"], dtype=object))
    with pytest.raises(REFUSED):
        again(MODELS["hashed"], {"hash_features": 1000})


def test_blocks_that_cannot_be():
    """More samples waiting than make a block would wait for ever."""
    model = MODELS["blocks"]
    for wrong in (7, 10**6, -1):
        with pytest.raises(ValueError, match="more samples wait"):
            again(model, _arrays=arrays(model) | {"waiting": np.array([wrong])})
    with pytest.raises(REFUSED):
        again(MODELS["blocks"], _kind="rows")
    with pytest.raises(REFUSED):
        again(MODELS["group"], _kind="blocks")


def test_parameters_that_cannot_be():
    for params in ({"norm": "no"}, {"scale": 1}, {"norm": "linf,1"}, {"norm": "l1,1"}):
        with pytest.raises(REFUSED):
            again(MODELS["group"], params)
    for params in ({"learning_rate": "no"}, {"eta0": -1.0}, {"loss": "no"}, {"radius": "1"}):
        with pytest.raises(REFUSED):
            again(MODELS["feature"], params)


@pytest.mark.parametrize("seed", range(3))
def test_mutated_states_are_refused_or_go_on(seed):
    """Any number in the arrays may be any other: it learns on, if not well."""
    rng = np.random.default_rng(seed)
    read = 0
    for name, model in MODELS.items():
        for _ in range(20):
            changed = arrays(model)
            part = changed[str(rng.choice(sorted(changed)))]
            if not part.size or part.dtype != np.float64:
                continue
            part.flat[rng.integers(part.size)] = rng.choice([0.0, -1.0, 1e300, -1e300, 1e-300, 7.0])
            with np.errstate(all="ignore"):
                try:
                    found = again(model, _arrays=changed)
                except REFUSED:
                    continue
                read += 1
                try:
                    if name in ("names", "hashed"):
                        found.partial_fit([{"n0": 1.0, "n5": 2.0, "new": 3.0}] * 3, [0, 1, 2])
                    elif name in ("entries", "tasks"):
                        found.partial_fit(X, X[:, :3])
                    else:
                        found.partial_fit(X, np.argmax(X[:, :3], axis=1))
                except ValueError as error:
                    assert "overflow" in str(error)  # noqa: PT017
    assert read > 20
