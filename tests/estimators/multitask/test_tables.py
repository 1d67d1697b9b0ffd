"""Many tasks from a table of row blocks, whose targets are the tasks."""

import numpy as np
import pytest

from mixnorm import MultiTaskLearner
from mixnorm.data import from_arrays

N, D, K = 203, 9, 3


def draw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) + np.arange(D)
    W = np.zeros((D, K))
    W[:3] = rng.normal(size=(3, K))
    Y = X @ W + rng.normal(size=(N, K))
    weight = rng.integers(0, 3, N).astype(float)
    weight[60:130] = 0.0
    return X, Y, weight


X, Y, WEIGHT = draw()
LACKING = np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)
SIGNS = (Y - np.median(Y, axis=0) > 0.0).astype(int)


@pytest.mark.parametrize(
    ("targets", "losses"),
    [
        (Y, "squared"),
        (Y[:, 0], "squared"),
        (LACKING, "squared"),
        (Y, ["squared", "huber", "squared"]),
        (SIGNS, "logistic"),
    ],
)
@pytest.mark.parametrize("norm", ["l2,1", "trace"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("memory", [1, "1 GiB"])
def test_the_solution_is_that_in_memory(targets, losses, norm, standardize, memory):
    # Singular values make a gap of 1e-10 of other losses hard to reach, also in memory.
    tol = 1e-8 if norm == "trace" else 1e-10
    options = {"alpha": 0.1, "standardize": standardize, "tol": tol}
    known = MultiTaskLearner(norm, losses, **options).fit(X, targets, WEIGHT)
    table = from_arrays(X, targets, WEIGHT, block_rows=30, memory=memory)
    model = MultiTaskLearner(norm, losses, **options).fit(table)
    one, two = known.report_.objective, model.report_.objective
    assert abs(one - two) <= 10.0 * tol * one
    assert model.tasks_ == known.tasks_
    assert model.predict(X).shape == known.predict(X).shape
    np.testing.assert_allclose(model.coef_, known.coef_, atol=1e-3)


def test_errors():
    with pytest.raises(ValueError, match="losses and tasks differ in number"):
        MultiTaskLearner(losses=["squared"] * 2).fit(from_arrays(X, Y))
    bad = X.copy()
    bad[100, 3] = np.inf
    for targets in (Y, LACKING):
        with pytest.raises(ValueError, match="column 3, row 100"):
            MultiTaskLearner().fit(from_arrays(bad, targets, block_rows=30))
    with pytest.raises(ValueError, match="inf in row 7"):
        MultiTaskLearner().fit(
            from_arrays(X, np.where(np.arange(N)[:, None] == 7, np.inf, Y), block_rows=30)
        )
