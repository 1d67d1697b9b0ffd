"""Model files of online learners: checked when they are read, as they may be a stranger's."""

from dataclasses import replace

import numpy as np
import pytest

from mixnorm import (
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineMultiTaskLearner,
)
from mixnorm.exceptions import ModelFileError
from mixnorm.losses import Hinge, MultinomialLogistic, Squared
from mixnorm.models import Inputs
from mixnorm.storage.decode import Decoder, restore
from mixnorm.storage.encode import Encoder

X = np.random.default_rng(0).normal(size=(60, 8))
LABELS = np.argmax(X[:, :3], axis=1)
MODELS = {
    "group": GroupPerceptron(average=True).fit(X, LABELS),
    "feature": MirrorDescentClassifier().fit(X, LABELS),
    "blocks": MirrorDescentClassifier("trace", block_size=7).fit(X, LABELS),
    "entries": MirrorDescentRegressor("l1,1").fit(X, X[:, :3]),
    "tasks": OnlineMultiTaskLearner().fit(X, X[:, :3]),
    "names": GroupPerceptron().fit([{f"n{j}": v for j, v in enumerate(x)} for x in X], LABELS),
    "hashed": GroupPerceptron(hash_features=8).fit([{"a": 1.0}, {"b": 1.0}, {"c": 2.0}], [0, 1, 2]),
}
REFUSED = (
    ValueError, TypeError, KeyError, AttributeError, MemoryError, IndexError, ModelFileError,
)  # fmt: skip
each_model = pytest.mark.parametrize("name", MODELS)


def again(model, params=None, *, plan=None, stored=None, **changes):
    """Return what is read from a file of the model, with some of its state changed."""
    state = model._resume
    learner = replace(state.stored, plan=replace(state.stored.plan, **plan or {}))
    state = replace(state, **{"stored": replace(learner, **stored or {}), **changes})
    encoder = Encoder()
    node = encoder.node(state)
    fresh = type(model)(**model.get_params(deep=False) | (params or {}))
    restore(fresh, {"_resume": Decoder(encoder.arrays, 10**6).value(node)}, 10**6)
    return fresh


def arrays(model):
    return {name: array.copy() for name, array in model._resume.stored.arrays.items()}


@each_model
def test_what_is_kept(name):
    model = MODELS[name]
    found = again(model)
    assert np.array_equal(found.coef_, model.coef_)
    for array in found._resume.stored.arrays.values():
        assert array.flags.writeable
    for part in ("rounds", "mistakes", "loss"):
        assert np.array_equal(found.curve_[part], model.curve_[part])


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
            if array.ndim == 2 and min(array.shape) > 1:  # the compiled loops go through rows
                wrong.append(np.asfortranarray(array))
        for value in wrong:
            if isinstance(value, np.ndarray) and value.size == array.size == 0:
                continue  # nothing of another shape
            with pytest.raises(REFUSED):
                again(model, stored={"arrays": arrays(model) | {part: value}})
    missing = arrays(model)
    missing.popitem()
    for value in (missing, arrays(model) | {"more": np.zeros(3)}, [], {}):
        with pytest.raises(REFUSED):
            again(model, stored={"arrays": value})


@each_model
def test_sizes_that_do_not_fit(name):
    model = MODELS[name]
    for n_features, n_outputs in (
        (8.0, 3), (-1, 3), (8, 0), (8, 4), (9, 3), (7, 3), (10**12, 3),
        (0, 10**9), (10**9, 1), (None, 3), ("8", 3), (8, True),
    ):  # fmt: skip
        with pytest.raises(REFUSED):
            again(model, stored={"n_features": n_features, "n_outputs": n_outputs})
    for wrong in (7, 9, -1, 8.0, "8", None, 10**12):
        with pytest.raises(REFUSED):
            again(model, inputs=Inputs(wrong))


@each_model
def test_curves_that_cannot_be(name):
    model = MODELS[name]
    curve = model._resume.curve
    changes = [{"stride": wrong} for wrong in (0, -1, 1.5, "1", 2, None)]
    changes += [{"rounds": wrong} for wrong in (curve.rounds[:-1], curve.rounds[::-1], [1], 3)]
    changes += [{"mistakes": curve.mistakes[:-1]}, {"losses": np.asarray([curve.losses])}]
    for change in changes:
        with pytest.raises(REFUSED):
            again(model, curve=replace(curve, **change))
    with pytest.raises(REFUSED):
        again(model, curve={})
    long = [*range(1, 1002)]
    with pytest.raises(REFUSED):
        again(model, curve=replace(curve, rounds=long, mistakes=long, losses=[1.0] * 1001))


def test_labels_and_tasks_that_cannot_be():
    for wrong in (np.arange(2), np.array([0, 1, 1]), [0, 1, 2], None, np.zeros((3, 1))):
        for name in ("group", "tasks"):
            with pytest.raises(REFUSED):
                again(MODELS[name], labels=wrong)
    for wrong in ((0.0,), (0, "1", 2), None, "abc", ()):
        with pytest.raises(REFUSED):
            again(MODELS["tasks"], low=wrong)
    for wrong in (True, 1, None):
        with pytest.raises(REFUSED):
            again(MODELS["entries"], single=wrong)
    with pytest.raises(REFUSED):
        again(MODELS["entries"], labels=np.arange(3))
    with pytest.raises(REFUSED):
        again(MODELS["group"], single=True)


def test_states_of_other_estimators():
    for name, other in (("group", "entries"), ("entries", "tasks"), ("tasks", "group")):
        with pytest.raises(ModelFileError, match="has outputs of the class"):
            restore(type(MODELS[name])(), {"_resume": MODELS[other]._resume}, 10**6)
    with pytest.raises(ModelFileError, match="'_resume' of GroupPerceptron is missing"):
        restore(GroupPerceptron(), {}, 10**6)
    with pytest.raises(ModelFileError, match="'coef_' of GroupPerceptron"):
        restore(GroupPerceptron(), {"_resume": MODELS["group"]._resume, "coef_": 1}, 10**6)


def test_names_that_cannot_be():
    """A place beyond the weights would be written to."""
    model = MODELS["names"]
    names = model.vocabulary_
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
            again(model, names=replace(model._resume.names, places=wrong))
    with pytest.raises(REFUSED):
        again(model, inputs=Inputs(8, ("a",)))
    hashed = MODELS["hashed"]
    for wrong in (1000, 0, -8, None, "8"):
        with pytest.raises(REFUSED):
            again(hashed, names=replace(hashed._resume.names, hashed=wrong))


def test_blocks_that_cannot_be():
    """More samples waiting than make a block would wait for ever."""
    model = MODELS["blocks"]
    for wrong in (7, 10**6, -1):
        with pytest.raises(ValueError, match="more samples wait"):
            again(model, stored={"arrays": arrays(model) | {"waiting": np.array([wrong])}})
    for name, kind in (("blocks", "rows"), ("group", "blocks"), ("group", "columns")):
        with pytest.raises(REFUSED):
            again(MODELS[name], stored={"kind": kind})


def test_plans_that_cannot_be():
    for plan in (
        {"rule": "no"}, {"origin": "no"}, {"rate": 0.0}, {"rate": np.inf}, {"radius": -1.0},
        {"radius": "1"}, {"quiet": 1.0}, {"block": 0}, {"scaled": 1}, {"norm": "l2,2"},
        {"norm": None}, {"losses": []}, {"losses": ["no"]}, {"losses": [Squared()]},
        {"losses": [MultinomialLogistic(), MultinomialLogistic()]}, {"losses": 3},
    ):  # fmt: skip
        with pytest.raises(REFUSED):
            again(MODELS["feature"], plan=plan)
    for losses in ([Squared()] * 2, [Squared(), Hinge(), "perceptron"], [MultinomialLogistic()]):
        with pytest.raises(REFUSED):
            again(MODELS["tasks"], plan={"losses": losses})
    with pytest.raises(REFUSED):
        again(MODELS["group"], plan={"norm": MODELS["blocks"]._resume.stored.plan.norm})
    with pytest.raises(REFUSED):
        again(MODELS["feature"], plan={"norm": MODELS["group"]._resume.stored.plan.norm})


def test_parameters_that_cannot_be():
    for params in ({"norm": "no"}, {"scale": 1}):
        with pytest.raises(REFUSED):
            again(MODELS["group"], params)
    for params in ({"learning_rate": "no"}, {"eta0": -1.0}, {"radius": "1"}):
        with pytest.raises(REFUSED):
            again(MODELS["feature"], params)


def test_parameters_set_after_fit_are_for_the_next_one():
    found = again(MODELS["feature"], {"norm": "l1,1", "loss": "hinge", "scale": False})
    assert np.array_equal(found.predict_proba(X), MODELS["feature"].predict_proba(X))
    assert found.norm == "l1,1"


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
                    found = again(model, stored={"arrays": changed})
                except REFUSED:
                    continue
                read += 1
                try:
                    if name in ("names", "hashed"):
                        found.partial_fit([{"n0": 1.0, "n5": 2.0, "new": 3.0}] * 3, [0, 1, 2])
                    elif name in ("entries", "tasks"):
                        found.partial_fit(X, X[:, :3])
                    else:
                        found.partial_fit(X, LABELS)
                except ValueError as error:
                    assert "overflow" in str(error)  # noqa: PT017
    assert read > 20
