"""Contractions agree with themselves, whichever way they know the kernel."""

import numpy as np
import pytest

from mixnorm.engines import dual
from mixnorm.kernels import PolynomialTensorKernel
from mixnorm.kernels.tensor import multisets

N = 7
X = np.random.default_rng(0).standard_normal((N, 2))


def by_features(q):
    return dual.FeatureContraction(PolynomialTensorKernel(2).features(X, q), q)


def by_sets(half):
    kernel = PolynomialTensorKernel(2)
    columns = kernel.columns(X)
    Z = np.prod([columns[rows] for rows in multisets(N, half)], axis=0)
    return dual.TensorContraction(kernel.of_products(Z @ Z.T), N, half)


def by_few_columns():
    matrices = np.random.default_rng(1).standard_normal((4, N, N))
    return dual.LowRankContraction(matrices + matrices.transpose(0, 2, 1))


CONTRACTIONS = {
    "features, q=4": by_features(4.0),
    "features, q=2.5": by_features(2.5),
    "pairs": by_sets(2),
    "triples": by_sets(3),
    "few columns": by_few_columns(),
    "scaled": dual.ScaledContraction(by_features(4.0), 0.3),
    "scaled few columns": dual.ScaledContraction(by_few_columns(), 5.0),
}
each_contraction = pytest.mark.parametrize("name", CONTRACTIONS)
ALPHA = np.random.default_rng(2).standard_normal(N)


@each_contraction
def test_scores_and_hessian_are_derivatives_of_the_form(name):
    """The form over ``q`` has the gradient ``V alpha``, and its Hessian is that of a step."""
    made, small = CONTRACTIONS[name], 1e-5
    V = made.matrix(ALPHA)
    np.testing.assert_allclose(V, V.T, atol=1e-9 * np.max(np.abs(V)))
    assert made.form(ALPHA) == pytest.approx(ALPHA @ V @ ALPHA)
    for step in np.eye(N):
        up, down = ALPHA + small * step, ALPHA - small * step
        slope = (made.form(up) - made.form(down)) / (2.0 * small * made.q)
        assert slope == pytest.approx(step @ V @ ALPHA, rel=1e-5, abs=1e-6 * np.max(np.abs(V)))
        bent = (made.matrix(up) @ up - made.matrix(down) @ down) / (2.0 * small)
        wanted = made.hessian(ALPHA, made.matrix(ALPHA)) @ step
        np.testing.assert_allclose(bent, wanted, atol=1e-5 * np.max(np.abs(V)))


@each_contraction
def test_several_vectors_are_scored_together(name):
    made = CONTRACTIONS[name]
    alphas = np.column_stack([ALPHA, -2.0 * ALPHA[::-1], np.eye(N)[3]])
    wanted = np.column_stack([made.matrix(alpha) @ alpha for alpha in alphas.T])
    np.testing.assert_allclose(made.scores(alphas), wanted, atol=1e-9 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("name", [name for name in CONTRACTIONS if "scaled" not in name])
def test_rows_by_themselves(name):
    """The diagonal is the form of one row; some of the rows are the others with zeros."""
    made = CONTRACTIONS[name]
    np.testing.assert_allclose(made.diagonal(), [made.form(row) for row in np.eye(N)])
    rows = np.array([5, 0, 3])
    part, alpha = made.take(rows), np.zeros(N)
    alpha[rows] = [0.4, -1.2, 0.7]
    wanted = made.matrix(alpha)[np.ix_(rows, rows)]
    np.testing.assert_allclose(part.matrix(alpha[rows]), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["features, q=4", "few columns"])
def test_a_scaled_contraction_scales_the_kernel(name):
    made = CONTRACTIONS[name]
    scaled = dual.ScaledContraction(made, 0.3)
    np.testing.assert_allclose(scaled.matrix(ALPHA), 0.3 * made.matrix(ALPHA))


@pytest.mark.parametrize("n_features", [1, 1000])
def test_features_are_taken_in_parts(n_features, monkeypatch):
    """Sums over parts of the features are the sum over all."""
    F = np.random.default_rng(3).standard_normal((n_features, N))
    whole = (F.T * np.abs(F @ ALPHA) ** 1.5) @ F
    monkeypatch.setattr(dual.contraction, "_FEATURE_VALUES_AT_A_TIME", 7 * 30)
    found = dual.FeatureContraction(F, 3.5)
    np.testing.assert_allclose(found.matrix(ALPHA), whole, rtol=1e-9)
    assert found.form(ALPHA) == pytest.approx(np.sum(np.abs(F @ ALPHA) ** 3.5))
