"""Tasks for the tests of the learners of many tasks."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def table():
    """Four tasks on one X that share three features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12)) + 1.0
    W = np.zeros((12, 4))
    W[:3] = rng.normal(size=(3, 4))
    return X, X @ W + 0.3 * rng.normal(size=(60, 4)) + [1, 2, 3, 4]


@pytest.fixture(scope="module")
def holes(table):
    X, Y = table
    Y = Y.copy()
    Y[np.random.default_rng(1).random(Y.shape) < 0.3] = np.nan
    return X, Y


@pytest.fixture(scope="module")
def apart():
    """Three tasks with data of their own: numbers, texts, truth values."""
    rng = np.random.default_rng(2)
    Xs = {"cost": rng.normal(size=(30, 6)), "kind": rng.normal(size=(50, 6))}
    Xs["late"] = rng.normal(size=(40, 6))
    score = {name: X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=len(X)) for name, X in Xs.items()}
    ys = {
        "cost": score["cost"] + 5.0,
        "kind": np.where(score["kind"] > 0, "b", "a"),
        "late": score["late"] > 0.2,
    }
    return Xs, ys, {"cost": "squared", "kind": "logistic", "late": "hinge"}
