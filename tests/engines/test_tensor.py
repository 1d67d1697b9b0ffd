"""Representations of tensor kernels: what is chosen, and that all solve the same problem."""

import numpy as np
import pytest

from mixnorm.engines import dual, tensor
from mixnorm.kernels import (
    ExponentialTensorKernel,
    FeatureTensorKernel,
    PolynomialTensorKernel,
    PowerSeriesTensorKernel,
)
from mixnorm.losses import Squared


def data(n=15, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    y -= y.mean()
    return X, y / np.sqrt(np.mean(y**2))


def fitted(made, y, gamma=10.0):
    """Return the solution on the normalised problem, and scores of rows as a function."""
    weighted = y @ made.contraction.matrix(y) @ y
    scale = weighted / (y @ y)
    found = dual.solve(
        dual.ScaledContraction(made.contraction, 1.0 / scale), Squared(), y[:, None], gamma
    )
    alpha = found.alpha[:, None] * scale ** (-1.0 / (made.q - 1.0))
    return found, made.expansion(alpha)


@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (PolynomialTensorKernel(3), ("features", "tensor", "sampled", "low-rank")),
        (PowerSeriesTensorKernel(), ("features", "tensor", "sampled", "low-rank")),
        (ExponentialTensorKernel(0.05), ("tensor", "sampled", "low-rank")),
    ],
    ids=repr,
)
def test_all_are_the_same_problem(kernel, names):
    X, y = data()
    new, _ = data(7, seed=1)
    found = {}
    for name in names:
        made = tensor.represent(
            kernel, X, 4, name=name, n_components=None if name == "sampled" else 120, random_state=0
        )
        assert made.name == name
        found[name] = fitted(made, y), made
    (first, function), _ = found[names[0]]
    for name in names[1:]:
        (other, others), made = found[name]
        exact = made.error < 1e-12
        tol = 1e-6 if exact else 5e-3
        assert other.converged
        assert other.objective == pytest.approx(first.objective, rel=tol)
        np.testing.assert_allclose(others.scores(new), function.scores(new), atol=2e2 * tol)


@pytest.mark.parametrize("name", ["features", "tensor", "sampled"])
def test_six_arguments(name):
    X, y = data(8)
    made = tensor.represent(PolynomialTensorKernel(2), X, 6, name=name, random_state=0)
    found, function = fitted(made, y)
    reference, _ = fitted(tensor.represent(PolynomialTensorKernel(2), X, 6, name="features"), y)
    assert found.objective == pytest.approx(reference.objective, rel=1e-7)
    np.testing.assert_allclose(function.scores(X)[:, 0], found.scores, atol=1e-9)


@pytest.mark.parametrize("name", ["features", "tensor", "sampled", "low-rank"])
def test_scores_with_zeros_are_predictions(name):
    """Rows with no dual variable have the scores that prediction gives them."""
    X, _ = data(12)
    kernel = PolynomialTensorKernel(2)
    made = tensor.represent(kernel, X, 4, name=name, n_components=100, random_state=0)
    alphas = np.random.default_rng(1).standard_normal((12, 3))
    alphas[8:] = 0.0
    scores = made.contraction.scores(alphas)
    np.testing.assert_allclose(made.expansion(alphas).scores(X), scores, rtol=1e-8, atol=1e-9)
    part = made.contraction.take(np.arange(8))
    for place in range(3):
        V = part.matrix(alphas[:8, place])
        np.testing.assert_allclose(V @ alphas[:8, place], scores[:8, place], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["tensor", "low-rank"])
def test_some_rows_in_any_order(name):
    X, _ = data(9)
    made = tensor.represent(ExponentialTensorKernel(0.1), X, 4, name=name, n_components=45)
    rows = np.array([7, 0, 3, 5])
    part = tensor.represent(ExponentialTensorKernel(0.1), X[rows], 4, name=name, n_components=10)
    alpha = np.random.default_rng(0).standard_normal(4)
    found, wanted = made.contraction.take(rows).matrix(alpha), part.contraction.matrix(alpha)
    np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_derivatives_of_a_factor():
    """The Hessian of a factor of few columns, against differences of its gradient."""
    X, _ = data(6)
    made = tensor.represent(ExponentialTensorKernel(0.3), X, 4, name="low-rank", n_components=5)
    contraction = dual.ScaledContraction(made.contraction, 2.0)
    alpha = np.random.default_rng(0).standard_normal(6)
    H = contraction.hessian(alpha, contraction.matrix(alpha))
    for place in range(6):
        step = np.zeros(6)
        step[place] = 1e-5
        ahead, behind = alpha + step, alpha - step
        slope = contraction.matrix(ahead) @ ahead - contraction.matrix(behind) @ behind
        np.testing.assert_allclose(H[place], slope / 2e-5, rtol=1e-5, atol=1e-7)


def test_what_is_chosen():
    few, many = np.zeros((60, 32)), np.zeros((1000, 32))
    names = {
        (1, 60): "features",
        (2, 60): "features",
        (4, 60): "tensor",
        (4, 1000): "features",
        (9, 1000): "sampled",
    }
    for (degree, n), name in names.items():
        kernel = PolynomialTensorKernel(degree)
        columns = kernel.columns(few if n == 60 else many)
        assert tensor.choose_representation(kernel, columns, 4) == name
    kernel = ExponentialTensorKernel(0.1)
    assert tensor.choose_representation(kernel, few, 4) == "tensor"
    assert tensor.choose_representation(kernel, many, 4) == "sampled"
    assert tensor.choose_representation(kernel, few, 4.5) == "sampled"
    assert tensor.choose_representation(FeatureTensorKernel(np.sin), few, 4) == "features"
    # Rows of which there are more than features: a tensor of them would lose all digits.
    assert (
        tensor.choose_representation(PolynomialTensorKernel(2), np.zeros((11, 3)), 4) == "features"
    )


def test_units_do_not_matter():
    X, y = data()
    kernel = PolynomialTensorKernel(3, constant=0.0)
    one, _ = fitted(tensor.represent(kernel, X, 4), y)
    for factor in (1e8, 1e-8, 1e90):
        other, function = fitted(tensor.represent(kernel, factor * X, 4), y)
        np.testing.assert_allclose(other.scores, one.scores, atol=1e-6)
        np.testing.assert_allclose(function.scores(factor * X)[:, 0], one.scores, atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "q", "name", "words"),
    [
        (ExponentialTensorKernel(), 4, "features", "has infinitely many"),
        (ExponentialTensorKernel(), 5, "tensor", "even q"),
        (ExponentialTensorKernel(), 6, "low-rank", "q=4"),
        (FeatureTensorKernel(np.sin), 4, "tensor", "kernel of products"),
        (FeatureTensorKernel(np.sin), 4, "sampled", "draws features"),
        (PolynomialTensorKernel(), 4, "best", "not known"),
    ],
)
def test_what_cannot_be_had(kernel, q, name, words):
    with pytest.raises(ValueError, match=words):
        tensor.represent(kernel, data()[0], q, name=name)


def test_too_large():
    with pytest.raises(ValueError, match="GiB for 3000 rows"):
        tensor.represent(PolynomialTensorKernel(), np.zeros((3000, 2)), 4, name="tensor")
