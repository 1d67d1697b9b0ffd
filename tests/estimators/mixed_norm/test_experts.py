"""Section 4.1 of Kakade, Shalev-Shwartz and Tewari: a label is the binary number of few experts.

The gallery example draws it; here is what it claims.
"""

import math

import numpy as np
import pytest

from mixnorm import MixedNormClassifier
from mixnorm.norms import MixedNorm

NORMS = {"2,1": MixedNorm(2, 1), "1,1": MixedNorm(1, 1), "2,2": MixedNorm(2, 2)}


def make_experts(n_samples, k, d, rng):
    s = k.bit_length() - 1
    codes = 2.0 * (np.arange(k)[:, None] >> np.arange(s) & 1) - 1.0
    y = rng.permutation(np.arange(n_samples) % k)
    X = rng.choice([-1.0, 1.0], size=(n_samples, d))
    X[:, :s] = codes[y]
    weights = np.zeros((d, k))
    weights[:s] = codes.T
    return X, y, weights


def radius(norm, X, y, k):
    """Return the largest dual norm of ``x`` for the label and ``-x`` for another class."""
    found = []
    for x, label in zip(X[:3], y, strict=False):
        matrix = np.zeros((len(x), k))
        matrix[:, label], matrix[:, label - 1] = x, -x
        found.append(norm.dual(matrix))
    return max(found)


def products(k, d):
    X, y, weights = make_experts(k, k, d, np.random.default_rng(0))
    assert np.array_equal(np.argmax(X @ weights, axis=1), y)  # the comparator is right
    return {name: norm.value(weights) * radius(norm, X, y, k) for name, norm in NORMS.items()}


def bounds(k, d):
    """Return Theorem 7's bounds for one row, with the exact pairs of strongly convex surrogates."""
    X, y, weights = make_experts(k, k, d, np.random.default_rng(0))
    found = {}
    for name, norm in NORMS.items():
        surrogate = norm.surrogate(weights.shape) if hasattr(norm, "surrogate") else norm
        size = surrogate.value(weights) * radius(surrogate, X, y, k)
        found[name] = size / math.sqrt(surrogate.strong_convexity())
    return found


@pytest.mark.parametrize(("k", "d"), [(8, 100), (16, 1000), (64, 300)])
def test_norms_stand_in_the_ratios_of_the_theory(k, d):
    found = products(k, d)
    # The paper says sqrt(k); the radius of (2,1) has a root of two that of (1,1) has not.
    assert found["1,1"] / found["2,1"] == pytest.approx(math.sqrt(k / 2))
    assert found["2,2"] / found["2,1"] == pytest.approx(math.sqrt(d / math.log2(k)))


@pytest.mark.parametrize(("k", "d"), [(8, 1000), (16, 1000), (16, 10000)])
def test_bounds_stand_in_these_ratios_up_to_logarithms(k, d):
    found = bounds(k, d)
    assert found["2,1"] < found["1,1"] < found["2,2"]
    # The norms and dual norms of surrogates differ from those of (1,1) and (2,1) by less than e.
    first = found["1,1"] / found["2,1"] / math.sqrt(k / 2 * math.log(k * d) / math.log(d))
    second = found["2,2"] / found["2,1"] / math.sqrt(d / math.log2(k) / math.log(d))
    assert 1 / math.e < first < math.e
    assert 1 / math.e < second < math.e


def test_ratios_of_bounds_grow_as_the_theory_says():
    few, many = bounds(8, 1000), bounds(128, 1000)
    growth = (many["1,1"] / many["2,1"]) / (few["1,1"] / few["2,1"])
    assert growth == pytest.approx(4.0, rel=0.2)  # sqrt(16)
    few, many = bounds(8, 1000), bounds(8, 16000)
    growth = (many["2,2"] / many["2,1"]) / (few["2,2"] / few["2,1"])
    assert growth == pytest.approx(4.0 / math.sqrt(math.log(16000) / math.log(1000)), rel=0.1)


def test_test_errors_come_in_the_order_of_the_bounds():
    k, d, rng = 8, 300, np.random.default_rng(0)
    order = bounds(k, d)
    X, y, _ = make_experts(56, k, d, rng)
    held, test = make_experts(400, k, d, rng), make_experts(1000, k, d, rng)

    def errors(path, X, y):
        scores = X @ path.coefs.transpose(0, 2, 1) + path.intercepts[:, None, :]
        return np.mean(scores.argmax(axis=2) != y, axis=1)

    found = {}
    for name, norm in NORMS.items():
        path = MixedNormClassifier(norm, tol=1e-3).path(X, y, alphas=10)
        found[name] = errors(path, *test[:2])[np.argmin(errors(path, *held[:2]))]
    assert sorted(found, key=found.get) == sorted(order, key=order.get)
    assert found["2,1"] == 0.0
    assert found["2,1"] + 0.1 < found["1,1"] < found["2,2"] - 0.1
