from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from mixnorm import MirrorDescentRegressor, MixedNormClassifier, ShareBoostClassifier
from mixnorm._linear import linear_scores


def exact(X, weights, intercept):
    """The scores in fractions."""
    return np.array(
        [
            [
                float(
                    sum(Fraction(x) * Fraction(w) for x, w in zip(row, column, strict=True))
                    + Fraction(b)
                )
                for column, b in zip(weights.T, intercept, strict=True)
            ]
            for row in X
        ]
    )


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9, 1e15])
def test_scores_are_right_where_terms_cancel(offset):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4)) + offset
    weights = rng.standard_normal((4, 3))
    intercept = -offset * weights.sum(axis=0)
    wanted = exact(X, weights, intercept)
    unit = np.abs(wanted).max()
    for table in (X, sparse.csr_array(X), sparse.csc_matrix(X)):
        assert np.abs(linear_scores(table, weights, intercept) - wanted).max() <= 1e-10 * unit


def test_columns_may_cancel_one_another():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((20, 1)) + 1e13, 2, axis=1) + rng.standard_normal((20, 2))
    weights, intercept = np.array([[3.7], [-3.7]]), np.zeros(1)
    wanted = exact(X, weights, intercept)
    plain = np.abs(X @ weights - wanted).max()
    found = np.abs(linear_scores(X, weights, intercept) - wanted).max()
    assert found <= 1e-10 * np.abs(wanted).max() < plain


def test_huge_columns_do_not_spoil_the_others():
    """Halves of the largest floats overflow, and digits of other columns were lost with them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3)) + np.array([0.0, 1e12, 0.0])
    X[:, 2] = np.finfo(float).max * rng.uniform(-1, 1, 20)
    weights = np.array([[1.0], [1.4e-3], [1e-309]])
    intercept = -1e12 * weights[1]
    wanted = exact(X, weights, intercept)
    for table in (X, sparse.csr_array(X)):
        found = np.abs(linear_scores(table, weights, intercept) - wanted).max()
        assert found <= 1e-10 * np.abs(wanted).max()


def test_scores_near_the_largest_float_are_plain_products():
    X, weights = np.array([[1e303, -1e303]]), np.array([[1.0], [1.0]])
    assert linear_scores(X, weights, np.array([1.0])) == [[1.0]]


@pytest.mark.parametrize(
    "model",
    [
        ShareBoostClassifier(),
        MixedNormClassifier(standardize=True),
        MirrorDescentRegressor(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_rows_and_batches_agree_far_from_zero(model):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3)) + 1e12
    model.fit(X, (X[:, 0] > 1e12).astype(int))
    call = getattr(model, "decision_function", model.predict)
    scores = call(X)
    single = np.concatenate([call(X[i : i + 1]) for i in range(60)])
    assert np.abs(single - scores).max() <= 1e-10 * np.abs(scores).max()
    assert np.abs(call(sparse.csr_array(X)) - scores).max() <= 1e-10 * np.abs(scores).max()
