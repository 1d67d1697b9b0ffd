"""Bounds against the learners that they speak of, on random and on adversarial rows."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits

from mixnorm import (
    GreedyMKLRegressor,
    GreedyOptions,
    GroupPerceptron,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ShareBoostClassifier,
    bounds,
)
from mixnorm.kernels import KernelStack

NORMS = ["l1,1", "l2,1", "l2,2", "trace"]
seeds = st.integers(0, 10**6)


def rows_of(seed, n, d, kind):
    rng = np.random.default_rng(seed)
    if kind == "signs":
        return rng.choice([-1.0, 1.0], size=(n, d))
    if kind == "heavy":
        return rng.standard_t(1.5, size=(n, d))
    return rng.standard_normal((n, d)) * rng.uniform(0.1, 10.0, size=d)


# --- online


@settings(deadline=None, max_examples=120)
@given(
    seed=seeds,
    norm=st.sampled_from(NORMS),
    rule=st.sampled_from(["fixed", "anytime", "adaptive"]),
    kind=st.sampled_from(["signs", "heavy", "plain"]),
    loss=st.sampled_from(["hinge", "logistic"]),
    n=st.integers(1, 60),
    d=st.integers(1, 12),
)
def test_regret_of_classifiers(seed, norm, rule, kind, loss, n, d):
    rng = np.random.default_rng(seed)
    X, y = rows_of(seed, n, d, kind), rng.integers(3, size=n)
    model = MirrorDescentClassifier(
        norm, loss, radius=2.0, learning_rate=rule, eta0=rng.uniform(0.01, 3.0), scale=False,
        conservative=0.0, fit_intercept=False,
    )  # fmt: skip
    model.partial_fit(X, y, classes=[0, 1, 2])
    W = rng.standard_normal((3, d))
    W *= rng.uniform(0.0, 2.0) / model._learner.norm.value(W.T)
    bound = bounds.regret(model, W)
    assert bound.inputs["measured"] <= bound.value + 1e-9 * (1.0 + bound.value)


@settings(deadline=None, max_examples=60)
@given(seed=seeds, norm=st.sampled_from(NORMS), n=st.integers(5, 60), d=st.integers(1, 8))
def test_regret_on_adversarial_targets(seed, norm, n, d):
    """Targets that are always on the other side of the prediction."""
    rng = np.random.default_rng(seed)
    model = MirrorDescentRegressor(
        norm, "absolute", radius=1.0, learning_rate="adaptive", scale=False, fit_intercept=False
    )
    for _ in range(n):
        x = rng.standard_normal((1, d))
        given = float(model.predict(x)[0]) if hasattr(model, "coef_") else 0.0
        model.partial_fit(x, [given - 1.0 if given > 0.0 else given + 1.0])
    W = rng.standard_normal(d)
    W = W / model._learner.norm.value(W[:, None])
    bound = bounds.regret(model, W.reshape(np.shape(model.coef_)))
    assert bound.inputs["measured"] <= bound.value * (1.0 + 1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_regret_grows_with_the_root(norm):
    """Regret against the best weights of a ball in hindsight, on labels that are noise."""
    sizes = [125, 250, 500, 1000, 2000]
    measured, promised = np.zeros((2, len(sizes)))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.choice([-1.0, 1.0], size=(sizes[-1], 10)), rng.integers(3, size=sizes[-1])
        model = MirrorDescentClassifier(
            norm, "hinge", radius=1.0, learning_rate="adaptive", scale=False, conservative=0.0,
            fit_intercept=False,
        )  # fmt: skip
        done = 0
        for place, size in enumerate(sizes):
            model.partial_fit(X[done:size], y[done:size], classes=[0, 1, 2])
            done = size
            learner = model._learner
            best = learner.norm.mirror(learner._sums()[1:])  # without the intercept
            bound = bounds.regret(model, (best / learner.norm.value(best)).T)
            assert 0.0 < bound.inputs["measured"] <= bound.value
            measured[place] += bound.inputs["measured"]
            promised[place] += bound.value
    for values in (measured, promised):
        assert np.polyfit(np.log(sizes), np.log(values), 1)[0] <= 0.55


def test_best_regret():
    bound = bounds.best_regret(2.0, 3.0, 100, 0.5)
    assert bound.value == pytest.approx(3.0 * 2.0 * math.sqrt(200.0))
    assert bound.at(400).value == pytest.approx(2.0 * bound.value)
    # The best of all fixed steps.
    f, V, T, beta = 2.0, 3.0, 100, 0.5
    steps = np.geomspace(1e-3, 1e3, 2001)
    values = f / steps + steps * V**2 * T / (2.0 * beta)
    assert bound.value <= values.min() * (1.0 + 1e-9)
    assert bound.inputs["step"] == pytest.approx(steps[np.argmin(values)], rel=0.01)
    with pytest.raises(ValueError, match="rounds"):
        bounds.best_regret(1.0, 1.0, 0, 1.0)


@settings(deadline=None, max_examples=120)
@given(
    seed=seeds,
    norm=st.sampled_from(["l2,1", "l2,2", "l1,1"]),
    kind=st.sampled_from(["signs", "heavy", "plain"]),
    n=st.integers(1, 80),
    d=st.integers(1, 10),
    separable=st.booleans(),
)
def test_mistakes(seed, norm, kind, n, d, separable):
    rng = np.random.default_rng(seed)
    X, W = rows_of(seed, n, d, kind), rng.standard_normal((3, d))
    y = np.argmax(X @ W.T, axis=1) if separable else rng.integers(3, size=n)
    model = GroupPerceptron(norm).partial_fit(X, y, classes=[0, 1, 2])
    for size in (0.1, 1.0, 10.0):
        bound = bounds.mistakes(model, size * W)
        assert bound.inputs["measured"] <= bound.value * (1.0 + 1e-9)


# --- ShareBoost


def log_loss_of_margins(scores, y):
    """The mean of ``ln(1 + sum over wrong classes of exp(1 - margin))``, by hand."""
    margins = scores[np.arange(len(y)), y][:, None] - scores
    wrong = np.arange(scores.shape[1]) != y[:, None]
    return np.mean(np.logaddexp.reduce(np.where(wrong, 1.0 - margins, 0.0), axis=1))


def softmax_gradient(X, y, k):
    """The gradient of the margin loss at the best constant scores, by columns, by hand."""
    from scipy.optimize import minimize

    best = minimize(
        lambda b: log_loss_of_margins(np.tile(b, (len(y), 1)), y), np.zeros(k), tol=1e-14
    ).x
    wrong = np.arange(k) != y[:, None]
    shifted = best + np.where(wrong, 1.0, 0.0)
    chances = np.exp(shifted - np.logaddexp.reduce(shifted, axis=1)[:, None])
    return (chances - ~wrong).T @ X / len(y)


@settings(deadline=None, max_examples=40)
@given(
    seed=seeds,
    kind=st.sampled_from(["signs", "heavy", "plain"]),
    n=st.integers(12, 60),
    d=st.integers(2, 12),
    k=st.integers(2, 4),
)
def test_shareboost(seed, kind, n, d, k):
    rng = np.random.default_rng(seed)
    X, y = rows_of(seed, n, d, kind), rng.integers(k, size=n)
    y[:k] = np.arange(k)
    model = ShareBoostClassifier(
        min(d, 6),
        alpha=0.0,
        loss="margin",
        options=GreedyOptions(rule="l1", scale="max", tol=1e-10, max_iter=5000),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separable data
        model.fit(X, y)
    losses, null = model.path_["loss"], log_loss_of_margins(np.zeros((n, k)), y)
    fell, least = bounds.shareboost_drops(model)
    assert np.all(fell >= least * (1.0 - 1e-6) - 1e-9)
    np.testing.assert_allclose(fell.sum(), model.null_loss_ - losses[-1], atol=1e-12)
    first = np.abs(softmax_gradient(X / np.abs(X).max(axis=0), y, k)).sum(axis=0)
    np.testing.assert_allclose(least[0], 0.25 * first.max() ** 2, rtol=1e-4, atol=1e-12)
    assert model.null_loss_ <= null * (1.0 + 1e-9)  # the intercept alone is at least as good
    coef = np.atleast_2d(model.coef_)
    intercept = np.atleast_1d(model.intercept_)
    other = rng.standard_normal(coef.shape)
    for W, b in ((0.3 * coef, intercept), (coef, intercept), (other, 0.0 * intercept)):
        bound = bounds.shareboost(model, X, y, W=W, intercept=b)
        assert bound.inputs["measured"] == losses[-1] <= bound.value * (1.0 + 1e-6) + 1e-9
        scores = X @ W.T + b
        if k == 2:  # one row of weights: half of it for one class, the opposite for the other
            scores, W = np.hstack([-scores, scores]) / 2, np.vstack([-W, W]) / 2
        norm = np.sum(np.abs(W).max(axis=0) * np.abs(X).max(axis=0))
        wanted = log_loss_of_margins(scores, y) + 4.0 * norm**2 / len(losses)
        np.testing.assert_allclose(bound.value, wanted, rtol=1e-9)


def test_constants_of_shareboost():
    """Against values by hand: four points on a line, weights of zero and one."""
    X, y = np.array([[2.0], [2.0], [-2.0], [1.0]]), np.array(["b", "b", "a", "a"])
    options = {"alpha": 0.0, "options__rule": "l1", "options__scale": "max", "options__tol": 1e-10}
    model = ShareBoostClassifier(1, loss="margin").set_params(**options).fit(X, y)
    # Scores of zero lose ln(1 + e), as both classes are a margin of one apart from the scores.
    empty = bounds.shareboost(model, X, y, W=[[0.0]], intercept=[0.0])
    assert empty.value == pytest.approx(math.log(1.0 + math.e))
    # The weight 1 is 1/2 and -1/2 of two classes, in units of the largest size 2: the norm is 1.
    margins = 1.0 - np.array([2.0, 2.0, 2.0, -1.0])
    lost = np.mean(np.log1p(np.exp(margins)))
    one = bounds.shareboost(model, X, y, W=[[1.0]], intercept=[0.0])
    assert one.inputs["comparator"] == pytest.approx(1.0)
    assert one.value == pytest.approx(lost + 4.0)
    # 4 / T of the norm's square is a tenth of the empty model's loss after this many rounds.
    assert one.inputs["needed"] == math.ceil(40.0 / model.null_loss_)
    # Three classes, two rounds: the norm is 3 * 2 + 1 * 1, the loss of scores by hand.
    X, y = np.array([[2.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([0, 1, 2])
    model = ShareBoostClassifier(2, loss="margin").set_params(**options).fit(X, y)
    W = np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    losses = [
        np.log(1.0 + 2.0 * math.exp(1.0 - 6.0)),
        np.log(1.0 + 2.0 * math.exp(1.0 - 1.0)),
        np.log(1.0 + math.exp(1.0 - 3.0) + math.exp(1.0 - 1.0)),
    ]
    bound = bounds.shareboost(model, X, y, W=W, intercept=np.zeros(3))
    assert bound.inputs["rounds"] == 2
    assert bound.value == pytest.approx(np.mean(losses) + 4.0 * 7.0**2 / 2.0)


def test_constant_of_the_drops():
    """The loss falls by a quarter of the squared gradient at least: here that is known by hand."""
    X, y = np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([1, 1, 0, 1])
    options = GreedyOptions(rule="l1", scale="max", tol=1e-10, max_iter=5000)
    model = ShareBoostClassifier(1, alpha=0.0, loss="logistic", options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separable data
        model.fit(X, y)
    # The intercept gives the classes 1/4 and 3/4. Residuals of the second are -1/4 but for the
    # third row, 3/4; with its column that makes (-1/4 - 1/4 - 3/4 + 1/4) / 4 = -1/4, and the first
    # class has the opposite.
    _, least = bounds.shareboost_drops(model)
    assert least == pytest.approx([0.25 * (0.25 + 0.25) ** 2])


def test_shareboost_on_digits():
    X, y = load_digits(return_X_y=True)
    options = GreedyOptions(rule="l1", scale="max", tol=1e-8)
    model = ShareBoostClassifier(10, alpha=0.0, loss="margin", options=options).fit(X, y)
    bound = bounds.shareboost(model, X, y)
    assert bound.kind == "guarantee"
    loose = clone(model).set_params(options__tol=1e-4).fit(X, y)
    assert bounds.shareboost(loose, X, y).kind == "rate"  # refits that are not exact
    other = clone(model).set_params(options__rule="joint").fit(X, y)
    assert bounds.shareboost(other, X, y).kind == "rate"
    assert bound.inputs["measured"] <= bound.value
    assert bound.inputs["rounds"] == 10
    assert "Theorem 2" in bound.theorem


def test_models_that_the_theorem_is_not_about():
    X, y = load_digits(return_X_y=True)
    X, y = X[:200], y[:200]
    for params, words in (
        ({"alpha": 1.0}, "penalty"),
        ({}, "penalty"),
        ({"alpha": 0.0, "options__scale": False}, "scaled otherwise"),
        ({"alpha": 0.0, "options__scale": "std"}, "scaled otherwise"),
        ({"alpha": 0.0, "options__swaps": 1}, "more than add one"),
    ):
        options = GreedyOptions(rule="l1", scale="max", tol=1e-8)
        model = ShareBoostClassifier(3, loss="margin", options=options).set_params(**params)
        model.fit(X, y)
        assert bounds.shareboost(model, X, y).kind == "rate"
        with pytest.raises(ValueError, match=words):
            bounds.shareboost_drops(model)
    model = ShareBoostClassifier(3, alpha=0.0).fit(X, y)
    with pytest.raises(ValueError, match="labels"):
        bounds.shareboost(model, X, y + 5)
    with pytest.raises(ValueError, match="shape of coef_"):
        bounds.shareboost(model, X, y, W=np.ones((2, 2)))
    with pytest.raises(TypeError, match="not a fitted ShareBoostClassifier"):
        bounds.shareboost(GroupPerceptron(), X, y)


def test_generalization_of_few_features():
    few = bounds.shareboost_generalization(20, 10, 1000, 5000)
    assert few.kind == "rate"
    # T k ln(T k) ln k = 2440.0..., T ln d = 138.15..., ln(1 / 0.05) = 2.99...
    total = 200.0 * math.log(200.0) * math.log(10.0) + 20.0 * math.log(1000.0) + math.log(20.0)
    assert few.value == pytest.approx(math.sqrt(total / 5000.0))
    assert few.value < bounds.shareboost_generalization(40, 10, 1000, 5000).value
    assert few.at(50_000).value == pytest.approx(few.value / math.sqrt(10.0))
    for bad in ({"n_chosen": 0}, {"n_classes": 1}, {"delta": 0.0}):
        options = {"n_chosen": 2, "n_classes": 3, "n_features": 4, "n": 5} | bad
        with pytest.raises(ValueError, match=next(iter(bad))):
            bounds.shareboost_generalization(**options)


# --- kernels


@settings(deadline=None, max_examples=25)
@given(seed=seeds, n=st.integers(8, 30), m=st.integers(3, 10))
def test_sparse_kernels(seed, n, m):
    """Theorem 1: the objective along the path of Algorithm 1, against any function."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((m, n, 3))
    K = factors @ factors.transpose(0, 2, 1)
    K /= np.max(np.diagonal(K, axis1=1, axis2=2), axis=1)[:, None, None]
    y = rng.standard_normal(n)
    y -= y.mean()
    alpha = 0.02 * y.std()
    model = GreedyMKLRegressor(
        kernel="precomputed", algorithm="l1", alpha=alpha, n_kernels=m, tol=1e-8, max_iter=5000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kernels that are not needed
        model.fit(KernelStack(K), y)
    objectives = model.path_["objective"]
    coefs = rng.standard_normal((m, n)) * (rng.random((m, 1)) < 0.5) * 0.3
    f = np.einsum("jab,jb->a", K, coefs)
    norms = np.sqrt(np.maximum(0.0, np.einsum("ja,jab,jb->j", coefs, K, coefs)))
    value = 0.5 * np.mean((y - f) ** 2) + alpha * norms.sum()
    for d in range(2, len(objectives) + 1):
        bound = bounds.sparse_kernels(float(norms.sum()), d, value)
        assert objectives[d - 1] <= bound.value * (1.0 + 1e-6)


def test_kernel_learning():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    stack = KernelStack(
        np.stack([np.exp(-s * ((X[:, None] - X) ** 2).sum(-1)) for s in range(1, 11)])
    )
    bound = bounds.kernel_learning(stack, gamma=0.5)
    assert bound.inputs["kernels"] == 10
    assert bound.value == pytest.approx(bounds.kernel_learning(10, gamma=0.5, n=20).value)
    more = bounds.kernel_learning(10_000, gamma=0.5, n=20)
    assert more.value / bound.value == pytest.approx(2.0)
    with pytest.raises(ValueError, match="at least 8"):
        bounds.kernel_learning(5, gamma=0.5, n=20)
    with pytest.raises(ValueError, match="margin"):
        bounds.kernel_learning(10, gamma=0.0, n=20)
    with pytest.raises(ValueError, match="n is missing"):
        bounds.kernel_learning(10, gamma=1.0)
    with pytest.raises(TypeError, match="no kernels"):
        bounds.kernel_learning(object(), gamma=1.0)


def test_local_rademacher_is_a_rate():
    rate = bounds.local_rademacher(10_000, 10)
    assert rate.kind == "rate"
    assert "orders" in rate.sentence
    xi = math.sqrt(math.e) * (4.0 * math.log(10.0)) ** (1.0 + 0.5 / math.log(10.0))
    assert rate.value == pytest.approx(xi**2 * math.log(10_000.0) ** 3 / 10_000.0)
    xi = 6.0 ** (4.0 / 3.0) * 10.0 ** (1.0 / 3.0)  # of q = 3
    few = bounds.local_rademacher(10_000, 10, q=3.0)
    assert few.value == pytest.approx(xi**2 * math.log(10_000.0) ** 3 / 10_000.0)
    assert bounds.local_rademacher(100_000, 10).value < rate.value
    assert bounds.local_rademacher(10_000, 100).value > rate.value
    # Both forms, where they meet, are of one size.
    edge = 2.0 * math.log(10.0)
    low, high = (bounds.local_rademacher(10_000, 10, q=edge + h).value for h in (-1e-9, 0.0))
    assert 0.3 < low / high < 3.0


def test_second_rate_of_many_classes():
    small = bounds.local_rademacher(10_000, 10, r=0.01)
    assert "Theorem 1" in small.theorem
    xi = math.sqrt(math.e) * (4.0 * math.log(10.0)) ** (1.0 + 0.5 / math.log(10.0))
    hand = xi * math.sqrt(0.01 / 10_000.0) * math.log(10_000.0) ** 1.5 + math.log(20.0) / 10_000.0
    assert small.value == pytest.approx(hand)
    assert small.value < bounds.local_rademacher(10_000, 10, r=1.0).value
    with pytest.raises(ValueError, match="delta"):
        bounds.local_rademacher(10_000, 10, r=1.0, delta=7.0)


def test_more_on_sparse_kernels():
    assert bounds.sparse_kernels_rate(1.0, 0).value == 0.5
    assert bounds.sparse_kernels_rate(math.inf, 100).value == 0.5
    tau = 4.0 / (8.0 * 3.0 * 4.0)
    assert bounds.sparse_kernels_rate(1.0, 7).value == pytest.approx(0.5 * (1.0 - tau) ** 7)
    steps = bounds.sparse_kernels_steps(2.0, 0.001)
    assert steps.value == math.ceil(64.0 * math.log(1.0 / 0.012))
    assert bounds.sparse_kernels_rate(2.0, int(steps.value)).value <= 0.5
    general = bounds.sparse_kernels_generalization(1.0, 4, 100, 1000)
    assert general.value == pytest.approx(196.0 * 9.0 * math.sqrt(2.0 * math.log(101.0) / 1000))
    assert general.inputs["sure"] == pytest.approx(1.0 - 1.0 / 101.0)
    with pytest.raises(ValueError, match="n from"):
        bounds.sparse_kernels_generalization(1.0, 4, 5, 1000)
    with pytest.raises(ValueError, match="1/12"):
        bounds.sparse_kernels_steps(1.0, 0.2)


def test_tensor_rate():
    """Gradient steps on the dual of squared losses lower it at the rate, or quicker."""
    from mixnorm.engines import dual
    from mixnorm.engines.dual.gradient import DualGradientDescent
    from mixnorm.engines.dual.problem import DualProblem
    from mixnorm.losses import Squared

    rng = np.random.default_rng(0)
    F, y, gamma = rng.standard_normal((30, 12)), rng.standard_normal((12, 1)), 2.0
    contraction, loss = dual.FeatureContraction(F, 4), Squared()
    best = dual.solve(contraction, loss, y, gamma, tol=1e-14)
    problem = DualProblem(contraction, loss, y, np.full(12, gamma))
    least = problem.evaluate(best.alpha).value
    steps, state = DualGradientDescent(problem), problem.start()
    for _ in range(20):
        above = state.value - least
        state, _ = steps.step(state)
        rate = bounds.tensor_rate(gamma, steps.length)
        assert state.value - least <= rate.value * above + 1e-12
