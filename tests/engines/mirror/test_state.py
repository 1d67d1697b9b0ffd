"""States of learners: they go on as the learner does, and files and pickles keep them."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from mixnorm.engines.mirror import LearnerState, Plan, build
from mixnorm.losses import MultinomialLogistic
from mixnorm.norms import MixedNorm, TraceNorm

NO_TARGETS = np.empty((20, 0))


def begun(norm):
    """A learner that has met some rows, and what comes after them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 5)), rng.integers(3, size=20)
    plan = Plan(norm, [MultinomialLogistic()], scaled=True, averaged=True, block=3)
    learner = build(plan, 5, 3)
    learner.learn(X, y, NO_TARGETS, np.ones(20))
    return learner, (X[::-1].copy(), y[::-1].copy(), NO_TARGETS, np.ones(20))


@pytest.mark.parametrize("norm", [MixedNorm(2, 1), MixedNorm(1, 1), TraceNorm()])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_a_copy_goes_on_by_itself(norm, copied):
    learner, more = begun(norm)
    state = LearnerState.of(learner)
    other = copied(state)
    learner.learn(*more)
    assert state.learner is learner
    assert not np.array_equal(state.arrays["theta"], other.arrays["theta"])
    other.check(10**6)
    other.learner.learn(*more)
    for name in learner.stored:
        assert np.array_equal(state.arrays[name], other.arrays[name])
        assert getattr(other.learner, name) is other.arrays[name]


@pytest.mark.parametrize("norm", [MixedNorm(2, 1), TraceNorm()])
def test_arrays_stay_those_of_the_state(norm):
    """Whatever a learner does but grow, it does in place."""
    learner, more = begun(norm)
    state = LearnerState.of(learner)
    for _ in range(3):
        learner.learn(*more)
    assert all(getattr(learner, name) is array for name, array in state.arrays.items())
    larger = LearnerState.of(learner.enlarge(7, 4))
    larger.check(10**6)
    assert (larger.n_features, larger.n_outputs) == (7, 4)
    state.check(10**6)


def test_states_that_cannot_be():
    state = LearnerState.of(begun(MixedNorm(2, 1))[0])
    for change in ({"n_features": 6}, {"kind": "blocks"}, {"arrays": {}}, {"n_outputs": 0}):
        with pytest.raises(ValueError, match="learner"):
            replace(state, **change).check(10**6)
    with pytest.raises(ValueError, match="take more than 100 bytes"):
        state.check(100)
    numbers = state.arrays["numbers"].copy()
    numbers[0] = -1.0
    with pytest.raises(ValueError, match="rounds of the learner"):
        replace(state, arrays=state.arrays | {"numbers": numbers}).check(10**6)
    plan = replace(state.plan, rule="no")
    with pytest.raises(ValueError, match="the plan must have a rule"):
        replace(state, plan=plan).check(10**6)
