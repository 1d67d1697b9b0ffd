"""The dual of lp-norm problems against cvxpy, and pairs of rows against features."""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

from mixnorm.engines import dual
from mixnorm.engines.dual.interior import DualInteriorPoint
from mixnorm.engines.dual.problem import DualProblem, descend
from mixnorm.engines.dual.squares import SquaresNewton
from mixnorm.kernels import PolynomialTensorKernel
from mixnorm.kernels.tensor import multisets
from mixnorm.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Squared,
    SquaredHinge,
)

LOSSES = {
    "squared": (Squared(), lambda z, y: 0.5 * cp.sum_squares(z - y)),
    "huber": (Huber(0.5), lambda z, y: 0.5 * cp.sum(cp.huber(z - y, 0.5))),
    "epsilon": (EpsilonInsensitive(0.1), lambda z, y: cp.sum(cp.pos(cp.abs(z - y) - 0.1))),
    "logistic": (Logistic(), lambda z, y: cp.sum(cp.logistic(-cp.multiply(y, z)))),
    "hinge": (Hinge(), lambda z, y: cp.sum(cp.pos(1.0 - cp.multiply(y, z)))),
}
each_loss = pytest.mark.parametrize("name", LOSSES)


def data(n=12, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    y -= y.mean()
    return X, y / np.sqrt(np.mean(y**2))


def posed(name, n=12, d=3, degree=2, q=4.0, seed=0):
    X, y = data(n, d, seed)
    loss, model = LOSSES[name]
    y = np.sign(y) if loss.is_binary else y
    F = PolynomialTensorKernel(degree).features(X, q)
    target = loss.encode(y[:, None], 1, np.zeros((n, 1)))
    return F, loss, target, y, model


def by_pairs(X, degree):
    kernel = PolynomialTensorKernel(degree)
    columns = kernel.columns(X)
    left, right = multisets(len(X), 2)
    Z = columns[left] * columns[right]
    return dual.TensorContraction(kernel.of_products(Z @ Z.T), len(X))


@each_loss
@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_as_cvxpy(name, gamma):
    F, loss, target, y, model = posed(name)
    found = dual.solve(dual.FeatureContraction(F, 4), loss, target, gamma)
    w = cp.Variable(len(F))
    objective = gamma * model(F.T @ w, y) + 0.75 * cp.sum(cp.power(cp.abs(w), 4 / 3))
    value = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert found.converged
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert found.objective - found.gap <= value * (1.0 + 1e-6)


@each_loss
@pytest.mark.parametrize("q", [2.5, 4.0, 6.0])
def test_gap_is_that_of_the_weights(name, q):
    """Weights made of the dual variables have the primal value that is told, and the scores."""
    F, loss, target, _, _ = posed(name, q=q)
    contraction = dual.FeatureContraction(F, q)
    p = q / (q - 1.0)
    for found in dual.path(contraction, loss, target, [0.1, 1.0, 10.0]):
        assert found.converged
        w = contraction.weights(found.alpha)
        np.testing.assert_allclose(F.T @ w, found.scores, atol=1e-8)
        lost, _ = loss.value_and_residual((F.T @ w)[:, None], target, np.full(12, found.gamma))
        assert found.objective == pytest.approx(lost + np.sum(np.abs(w) ** p) / p, rel=1e-9)
        assert 0.0 <= found.gap <= 1e-8 * found.objective


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_pairs_are_features(degree):
    X, _ = data(10)
    alpha = np.random.default_rng(1).standard_normal(10)
    features = dual.FeatureContraction(PolynomialTensorKernel(degree).features(X, 4), 4)
    pairs = by_pairs(X, degree)
    one, other = features.matrix(alpha), pairs.matrix(alpha)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(one).max())


@each_loss
def test_paths_by_pairs_and_by_features(name):
    F, loss, target, _, _ = posed(name, n=15)
    X, _ = data(15)
    gammas = np.logspace(-2, 1, 10)
    one = list(dual.path(dual.FeatureContraction(F, 4), loss, target, gammas))
    other = list(dual.path(by_pairs(X, 2), loss, target, gammas))
    for first, second, gamma in zip(one, other, gammas, strict=True):
        assert first.converged
        assert second.converged
        assert first.gamma == gamma
        assert first.objective == pytest.approx(second.objective, rel=1e-7)
        np.testing.assert_allclose(first.scores, second.scores, atol=1e-3)


def test_ridge_is_the_limit():
    """With q near two the penalty is half the squared norm."""
    F, loss, target, y, _ = posed("squared")
    gamma = 0.7
    found = dual.solve(dual.FeatureContraction(F, 2.0 + 1e-9), loss, target, gamma)
    K = F.T @ F
    wanted = K @ np.linalg.solve(K + np.eye(12) / gamma, y)
    np.testing.assert_allclose(found.scores, wanted, atol=1e-6)


def test_scaling():
    """Other units of features and targets are another gamma, by the rule of the maths."""
    F, loss, _, y, _ = posed("squared")
    c, s, q = 3.0, 0.5, 4.0
    p = q / (q - 1.0)
    one = dual.solve(dual.FeatureContraction(F, q), loss, y[:, None], 2.0)
    gamma = c ** (p - 2.0) * s**-p * 2.0
    other = dual.solve(dual.FeatureContraction(s * F, q), loss, c * y[:, None], gamma)
    np.testing.assert_allclose(other.scores, c * one.scores, atol=1e-5)
    np.testing.assert_allclose(other.alpha, (c / s**q) ** (1.0 / (q - 1.0)) * one.alpha, rtol=1e-3)


def test_a_gamma_that_is_hard_is_approached_by_powers_of_ten(monkeypatch):
    F, loss, target, _, _ = posed("hinge")
    tried, path = [], dual.engine.path

    def noted(*given, **options):
        tried.append([float(gamma) for gamma in given[3]])
        return path(*given, **options)

    monkeypatch.setattr(dual.engine, "path", noted)
    dual.solve(dual.FeatureContraction(F, 4), loss, target, 2000.0, max_iter=2)
    assert tried == [[2000.0], [1.0, 10.0, 100.0, 1000.0, 2000.0]]
    tried.clear()
    dual.solve(dual.FeatureContraction(F, 4), loss, target, 0.5, max_iter=2)
    assert tried == [[0.5]]


def test_too_few_iterations():
    F, loss, target, _, _ = posed("hinge")
    found = dual.solve(dual.FeatureContraction(F, 4), loss, target, 100.0, max_iter=2)
    assert not found.converged
    assert found.gap > 1e-8 * found.objective


# --- all ways down


@each_loss
@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_first_order_methods(name, gamma):
    F, loss, target, _, _ = posed(name)
    contraction = dual.FeatureContraction(F, 4)
    newton = dual.solve(contraction, loss, target, gamma)
    solvers = ["forward-backward", "gradient"] if name == "squared" else ["forward-backward"]
    for solver in solvers:
        found = dual.solve(contraction, loss, target, gamma, solver=solver, tol=1e-5, max_iter=9000)
        assert found.converged
        assert found.iterations >= newton.iterations
        assert newton.objective - newton.gap <= found.objective
        assert found.objective - found.gap <= newton.objective
        assert found.objective == pytest.approx(newton.objective, abs=newton.gap + found.gap)


@each_loss
@pytest.mark.parametrize("gamma", [1e-8, 1e-3, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("few", [True, False])
def test_any_gamma(name, gamma, few):
    """Fewer features than rows, where dual variables grow with gamma; and more."""
    F, loss, target, _, _ = posed(name, n=30, d=3 if few else 8)
    assert (len(F) < 30) == few
    y = target[:, 0]
    contraction = dual.FeatureContraction(F, 4)
    scale = y @ contraction.matrix(y) @ y / (y @ y)
    found = dual.solve(dual.ScaledContraction(contraction, 1.0 / scale), loss, target, gamma)
    if name == "epsilon" and few and gamma > 1e4:
        # Sums of features are known to one part in 1e16 of gamma, and gamma multiplies the rest.
        assert found.converged == (found.gap <= 1e-8 * found.objective)
        return
    assert found.converged
    assert found.gap <= 1e-8 * found.objective


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.2), Huber(0.3), SquaredHinge()])
@pytest.mark.parametrize("gamma", [0.5, 30.0])
def test_inside_the_bounds(loss, gamma):
    """The interior-point method by itself, against Newton's."""
    name = {Hinge: "hinge", SquaredHinge: "hinge"}.get(type(loss), "huber")
    F, _, _, y, _ = posed(name, n=20)
    target = loss.encode(y[:, None], 1, np.zeros((20, 1)))
    contraction = dual.FeatureContraction(F, 4)
    newton = dual.solve(contraction, loss, target, gamma)
    problem = DualProblem(contraction, loss, target, np.full(20, gamma))
    start = problem.start()
    found = descend(DualInteriorPoint(problem, start), start, 1e-9, 100)
    assert found.state.gap <= 1e-9 * found.state.primal
    assert found.evaluations < 60
    assert found.state.primal == pytest.approx(newton.objective, rel=1e-7)


@each_loss
def test_weights_are_repeated_rows(name):
    F, loss, target, _, _ = posed(name)
    times = np.array([1, 2, 3] * 4)
    weighted = dual.solve(
        dual.FeatureContraction(F, 4), loss, target, 2.0, weight=times.astype(float)
    )
    rows = np.repeat(np.arange(12), times)
    repeated = dual.solve(dual.FeatureContraction(F[:, rows], 4), loss, target[rows], 2.0)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-7)
    np.testing.assert_allclose(weighted.scores[rows], repeated.scores, atol=1e-3)


def test_gap_of_squares_is_that_of_fenchel_and_young():
    F, loss, target, _, _ = posed("squared")
    contraction, weight = dual.FeatureContraction(F, 4), np.full(12, 3.0)
    alpha = np.random.default_rng(0).standard_normal(12)
    one = SquaresNewton(contraction, target[:, 0], weight).evaluate(alpha)
    other = DualProblem(contraction, loss, target, weight).evaluate(alpha)
    assert one.value == pytest.approx(other.value)
    assert one.primal == pytest.approx(other.primal)
    assert one.gap == pytest.approx(other.gap)


class Tiring(dual.FeatureContraction):
    """A contraction that is interrupted."""

    left = 4

    def matrix(self, alpha):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().matrix(alpha)


@pytest.mark.parametrize("name", ["squared", "hinge"])
def test_interruption_keeps_the_best(name):
    F, loss, target, _, _ = posed(name)
    found = list(dual.path(Tiring(F, 4), loss, target, [30.0, 60.0], tol=1e-12))
    assert len(found) == 1
    assert found[0].interrupted
    assert not found[0].converged
    assert np.isfinite(found[0].gap)


@dataclass
class Pinball(Absolute):
    """A loss derived from one that tells its bounds, which are not those of this one."""

    quantile: float = 0.9

    def value_and_residual(self, scores, target, weight):
        slope = np.where(scores > target, 1.0 - self.quantile, -self.quantile)
        residual = slope * weight[:, None]
        return float(np.sum((scores - target) * residual)), residual

    def conjugate(self, theta, target, weight):
        weight = weight[:, None]
        low, high = -self.quantile * weight, (1.0 - self.quantile) * weight
        slack = 1e-12 * weight
        inside = np.all((theta >= low - slack) & (theta <= high + slack))
        return float(np.sum(theta * target)) if inside else np.inf

    def prox_conjugate(self, theta, step, target, weight):
        weight = weight[:, None]
        return np.clip(
            theta - step * target, -self.quantile * weight, (1.0 - self.quantile) * weight
        )


def test_bounds_that_are_inherited():
    F, _, target, y, _ = posed("huber")
    contraction = dual.FeatureContraction(F, 4)
    found = dual.solve(contraction, Pinball(), target, 1.0, max_iter=2000)
    w = cp.Variable(len(F))
    left = y - F.T @ w
    lost = cp.sum(cp.maximum(0.9 * left, -0.1 * left))
    objective = lost + 0.75 * cp.sum(cp.power(cp.abs(w), 4 / 3))
    value = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert found.objective - found.gap <= value * (1.0 + 1e-6)
    assert found.objective == pytest.approx(value, rel=1e-5)


def test_solvers_by_name():
    F, loss, target, _, _ = posed("hinge")
    contraction = dual.FeatureContraction(F, 4)
    with pytest.raises(ValueError, match="solver='bfgs' is not known"):
        dual.solve(contraction, loss, target, 1.0, solver="bfgs")
    with pytest.raises(ValueError, match="needs a smooth dual"):
        dual.solve(contraction, loss, target, 1.0, solver="gradient")


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf])
def test_bad_gamma(gamma):
    F, loss, target, _, _ = posed("squared")
    with pytest.raises(ValueError, match="gamma="):
        dual.solve(dual.FeatureContraction(F, 4), loss, target, gamma)


def test_evaluations_are_counted_and_bounded():
    F, loss, target, _, _ = posed("epsilon", n=30)
    contraction = dual.FeatureContraction(F, 4)
    calls, matrix = [], contraction.matrix

    def counted(alpha):
        calls.append(1)
        return matrix(alpha)

    contraction.matrix = counted
    found = dual.solve(contraction, loss, target, 1e12, tol=1e-15, max_iter=50)
    assert len(calls) <= 1.3 * found.iterations
    assert found.iterations <= 250


def test_a_zero_target():
    F, loss, target, _, _ = posed("squared")
    found = dual.solve(dual.FeatureContraction(F, 4), loss, 0.0 * target, 5.0)
    assert found.converged
    assert found.objective == 0.0
    np.testing.assert_array_equal(found.scores, 0.0)
