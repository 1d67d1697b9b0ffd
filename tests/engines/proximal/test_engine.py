"""The proximal engine against cvxpy, and against itself where two ways must meet."""

import warnings
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mixnorm import losses
from mixnorm.engines import proximal
from mixnorm.engines.proximal import LossMixture, SeparateDesign, SharedDesign
from mixnorm.norms import MixedNorm, SchattenNorm, TraceNorm, as_norm

NORMS = ["l1,1", "l2,1", "linf,1", "l2,2", "trace"]
LOSSES = {
    **{name: cls() for name, cls in losses.SCALAR.items()},
    **{f"joint {name}": cls() for name, cls in losses.JOINT.items()},
}
SMOOTH = [name for name, loss in LOSSES.items() if np.isfinite(loss.smoothness)]
KINKED = [name for name, loss in LOSSES.items() if not np.isfinite(loss.smoothness)]
# What cvxpy's own optimum may be off by, relative to the objective with no weights.
SLACK = 1e-8


@dataclass(frozen=True)
class Case:
    """A problem: data as the engine and as cvxpy take them."""

    X: object
    y: np.ndarray
    loss: object
    weight: np.ndarray
    fit_intercept: bool = True

    @property
    def n_outputs(self):
        if isinstance(self.X, list):
            return len(self.X)
        return self.y.shape[1] if self.y.ndim == 2 else int(self.y.max()) + 1

    @property
    def arguments(self):
        design = (
            SeparateDesign(self.X)
            if isinstance(self.X, list)
            else SharedDesign(self.X, self.n_outputs)
        )
        return design, self.loss, self.loss.encode(self.y, self.n_outputs, self.weight)

    @property
    def options(self):
        return {"weight": self.weight, "fit_intercept": self.fit_intercept}

    def alpha_max(self, norm):
        return proximal.alpha_max(*self.arguments, norm, **self.options)

    def solve(self, norm, **options):
        return proximal.solve(*self.arguments, norm, **self.options, **options)

    def path(self, norm, **options):
        return list(proximal.path(*self.arguments, norm, **self.options, **options))


def draw(loss, *, seed=0, n_samples=25, n_features=8, n_outputs=3, fit_intercept=True):
    """A problem with a few features that matter, noise, and rows of unequal weight."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 1:2] += 0.7 * X[:, :1]
    truth = np.zeros((n_features, n_outputs))
    truth[:3] = rng.standard_normal((len(truth[:3]), n_outputs))
    scores = X @ truth + 0.4 * rng.standard_normal((n_samples, n_outputs)) + 0.3
    y = scores
    if loss.is_classifier:
        y = scores.argmax(axis=1)
        y[:n_outputs] = np.arange(n_outputs)[:n_samples]
    elif loss.is_binary:
        y = np.where(scores > 0.0, 1.0, -1.0)
    weight = rng.uniform(0.5, 1.5, n_samples)
    return Case(X, y, loss, weight / weight.sum(), fit_intercept)


# cvxpy's side.


def cvx_norm(norm, W):
    if isinstance(norm, TraceNorm):
        return cp.normNuc(W)
    groups = norm.groups
    if groups is None:
        labels = np.broadcast_to(np.arange(W.shape[0])[:, None], W.shape)
    elif isinstance(groups, str):
        labels = np.broadcast_to(np.arange(W.shape[1])[None, :], W.shape)
    else:
        groups = np.asarray(groups)
        labels = groups if groups.ndim == 2 else np.broadcast_to(groups[:, None], W.shape)
    blocks = [
        cp.norm(cp.hstack([W[int(i), int(j)] for i, j in np.argwhere(labels == label)]), norm.inner)
        for label in np.unique(labels)
    ]
    return cp.norm(cp.hstack(blocks), norm.outer)


def cvx_loss(loss, Z, y, weight):
    """The weighted sum of losses of scores ``Z``; entries of weight zero do not count."""
    if isinstance(loss, LossMixture):
        return sum(
            cvx_loss(part, Z[:, columns.tolist()], y[:, columns], weight[:, columns])
            for part, columns in loss.parts
        )
    name = type(loss).__name__
    if loss.is_classifier:
        one_hot = np.eye(Z.shape[1])[y]
        own = cp.sum(cp.multiply(one_hot, Z), axis=1)
        margin = loss.margin if name == "MarginSoftmax" else float("Hinge" in name)
        shifted = Z + margin * (1.0 - one_hot)
        if "Hinge" not in name:
            return cp.sum(cp.multiply(weight, cp.log_sum_exp(shifted, axis=1) - own))
        hinge = cp.max(shifted, axis=1) - own
        if name == "MulticlassSquaredHinge":
            # The hinge is not negative; cvxpy has to be told so.
            hinge = cp.square(cp.pos(hinge))
        return cp.sum(cp.multiply(weight, hinge))
    spread = np.broadcast_to(weight if weight.ndim == 2 else weight[:, None], Z.shape)
    each = {
        "Squared": lambda: cp.square(Z - y) / 2,
        "Absolute": lambda: cp.abs(Z - y),
        "Huber": lambda: cp.huber(Z - y, loss.delta) / 2,
        "EpsilonInsensitive": lambda: cp.pos(cp.abs(Z - y) - loss.epsilon),
        "Hinge": lambda: cp.pos(1 - cp.multiply(y, Z)),
        "SquaredHinge": lambda: cp.square(cp.pos(1 - cp.multiply(y, Z))),
        "Logistic": lambda: cp.logistic(-cp.multiply(y, Z)),
    }[name]()
    return cp.sum(cp.multiply(spread, each))


class Reference:
    """The same problem, as cvxpy has it."""

    def __init__(self, case, norm, alpha=None, radius=None):
        Xs = case.X if isinstance(case.X, list) else [case.X]
        n_features, n_outputs = Xs[0].shape[1], case.n_outputs
        self._W = W = cp.Variable((n_features, n_outputs))
        self._b = b = cp.Variable((1, n_outputs)) if case.fit_intercept else None
        rows = len(case.weight)
        if isinstance(case.X, list):
            # Tasks with fewer rows have rows of weight zero below theirs.
            padded = [np.pad(X, ((0, rows - len(X)), (0, 0))) for X in Xs]
            Z = cp.hstack([X @ W[:, [task]] for task, X in enumerate(padded)])
        else:
            Z = Xs[0] @ W
        if b is not None:
            Z = Z + np.ones((rows, 1)) @ b
        self._radius = radius
        self._norm = cvx_norm(norm, W)
        value = cvx_loss(case.loss, Z, case.y, case.weight)
        self._objective = value if alpha is None else value + alpha * self._norm
        limits = [] if radius is None else [self._norm <= radius]
        self._problem = cp.Problem(cp.Minimize(self._objective), limits)

    def at(self, found):
        """The objective of what the engine found."""
        self._W.value = found.weights
        if self._b is not None:
            self._b.value = found.intercept[None, :]
        if self._radius is not None:
            assert float(self._norm.value) <= self._radius * (1.0 + 1e-10)
        return float(self._objective.value)

    def optimum(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cvxpy's own
            return float(self._problem.solve(solver=cp.CLARABEL))


def agrees(case, norm, *, tol=5e-7, closeness=1e-6, **form):
    """Check a solution, its objective and its gap against cvxpy; return it."""
    found = case.solve(norm, tol=tol, max_iter=10_000, **form)
    reference = Reference(case, norm, **form)
    assert reference.at(found) == pytest.approx(found.objective, rel=1e-9, abs=1e-12 * found.scale)
    best = reference.optimum()
    distance = (found.objective - best) / found.scale
    assert found.converged
    assert abs(distance) <= closeness
    assert distance >= -SLACK
    assert distance <= found.gap / found.scale + SLACK
    return found


def both_forms_agree(case, norm, fraction=0.1, **options):
    """Check the penalty, and a ball somewhat smaller than its solution's norm."""
    alpha = fraction * case.alpha_max(norm)
    found = agrees(case, norm, alpha=alpha, **options)
    assert found.norm_value > 0.0
    agrees(case, norm, radius=0.7 * found.norm_value, **options)


def size_of(name, large=False):
    """Rows and features: losses with kinks take many smooth problems each, so get smaller ones."""
    small = {"n_samples": 15, "n_features": 5} if name in KINKED and not large else {}
    return {"n_samples": 40, "n_features": 12} if large else small


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LOSSES)
def test_every_norm_loss_and_form_agrees_with_cvxpy(name, norm):
    # Every other problem of this grid has no intercept.
    bare = (list(LOSSES).index(name) + NORMS.index(norm)) % 2 == 1
    case = draw(LOSSES[name], fit_intercept=not bare, **size_of(name))
    both_forms_agree(case, as_norm(norm), tol=9e-7)


@pytest.mark.slow  # minutes: losses with kinks, to six digits, on more rows
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LOSSES)
def test_larger_problems_agree_with_cvxpy(name, norm, fit_intercept):
    case = draw(LOSSES[name], seed=1, fit_intercept=fit_intercept, **size_of(name, large=True))
    both_forms_agree(case, as_norm(norm), fraction=0.05, tol=9e-7)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_losses_agree_to_more_digits(name, norm):
    case = draw(LOSSES[name], seed=2)
    both_forms_agree(case, as_norm(norm), fraction=0.03, tol=1e-7, closeness=1e-7)


@pytest.mark.parametrize(
    "norm",
    [
        MixedNorm(2, 1, groups=(0, 0, 1, 1, 2, 2, 3, 3)),
        MixedNorm(np.inf, 1, groups=(5, 0, 5, 0, 5, 0, 1, 1)),
        MixedNorm(1, 1, groups=(0, 0, 0, 0, 1, 1, 1, 1)),
        MixedNorm(2, 1, groups="outputs"),
        MixedNorm(np.inf, 1, groups="outputs"),
        MixedNorm(2, 1, groups=np.arange(24).reshape(8, 3) % 5),
        MixedNorm(2, 2, groups=(0, 0, 0, 0, 1, 1, 1, 1)),
        MixedNorm(2, np.inf),
        MixedNorm(1, np.inf),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["squared", "joint logistic"])
def test_blocks_agree_with_cvxpy(name, norm):
    both_forms_agree(draw(LOSSES[name], seed=3), norm)


@pytest.mark.parametrize("loss", [losses.Huber(0.3), losses.MarginSoftmax(3.0)], ids=repr)
@pytest.mark.parametrize("norm", NORMS)
def test_parameters_of_losses_count(loss, norm):
    both_forms_agree(draw(loss, seed=4), as_norm(norm))


# Tasks of their own.


def tasks(parts, *, seed=0, sizes=(20, 12, 16), n_features=6, fit_intercept=True):
    """One matrix per task, of its own size, and a loss of its own."""
    rng = np.random.default_rng(seed)
    Xs = [rng.standard_normal((rows, n_features)) for rows in sizes]
    y, weight = np.zeros((max(sizes), len(sizes))), np.zeros((max(sizes), len(sizes)))
    truth = rng.standard_normal((n_features, len(sizes))) * (np.arange(n_features) < 3)[:, None]
    for task, (X, loss) in enumerate(zip(Xs, parts, strict=True)):
        own = X @ truth[:, task] + 0.3 * rng.standard_normal(len(X)) + 0.2
        y[: len(X), task] = np.where(own > 0.0, 1.0, -1.0) if loss.is_binary else own
        y[len(X) :, task] = 1.0  # nobody looks there
        weight[: len(X), task] = rng.uniform(0.5, 1.5, len(X))
    return Case(Xs, y, LossMixture(parts), weight / weight.sum(axis=0), fit_intercept)


MIXTURES = [
    (losses.Squared(), losses.Logistic(), losses.Squared()),
    (losses.Huber(), losses.SquaredHinge(), losses.Logistic()),
    (losses.Squared(), losses.Logistic(), losses.Hinge()),
    (losses.Absolute(), losses.Hinge(), losses.EpsilonInsensitive()),
]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("parts", MIXTURES[:2], ids=str)
def test_tasks_with_losses_of_their_own_agree_with_cvxpy(parts, norm):
    both_forms_agree(tasks(parts), as_norm(norm))
    case = tasks(parts, seed=1, fit_intercept=False)
    agrees(case, as_norm(norm), alpha=0.2 * case.alpha_max(as_norm(norm)))


@pytest.mark.parametrize("norm", ["l2,1", "trace"])
@pytest.mark.parametrize("parts", MIXTURES[2:], ids=str)
def test_tasks_with_kinks_agree_with_cvxpy(parts, norm):
    case = tasks(parts, sizes=(12, 8, 10), n_features=4)
    both_forms_agree(case, as_norm(norm), tol=9e-7)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["squared", "logistic", "huber"])
def test_separate_designs_that_are_equal_are_a_shared_one(name, norm):
    shared, norm = draw(LOSSES[name]), as_norm(norm)
    weight = np.repeat(shared.weight[:, None], 3, axis=1)
    separate = replace(shared, X=[shared.X.copy() for _ in range(3)], weight=weight)
    alpha = 0.1 * shared.alpha_max(norm)
    assert separate.alpha_max(norm) == pytest.approx(shared.alpha_max(norm), rel=1e-9)
    meet(shared, separate, norm, alpha=alpha)
    mixed = replace(separate, loss=LossMixture([shared.loss] * 3))
    meet(shared, mixed, norm, alpha=alpha)
    meet(shared, mixed, norm, radius=1.0)


def meet(one, other, norm, tol=1e-7, **form):
    """Check that two ways to say a problem have one optimum, to their gaps."""
    first = one.solve(norm, tol=tol, **form)
    second = other.solve(norm, tol=tol, **form)
    assert first.converged
    assert second.converged
    assert second.scale == pytest.approx(first.scale, rel=1e-9)
    assert abs(first.objective - second.objective) <= max(first.gap, second.gap) + 1e-12
    np.testing.assert_allclose(first.weights, second.weights, atol=2e-3, rtol=0.0)
    return first, second


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_weight_zero_is_no_label(name, norm):
    rng, norm, shared = np.random.default_rng(0), as_norm(norm), draw(LOSSES[name], seed=5)
    known = rng.uniform(size=shared.y.shape) < 0.7
    weight = np.where(known, shared.weight[:, None], 0.0)
    weight /= weight.sum(axis=0)
    y = np.where(known, shared.y, -1.0)
    masked = replace(shared, y=y, weight=weight)
    rows = [np.flatnonzero(column) for column in known.T]
    most = max(map(len, rows))
    own_y, own_weight = np.ones((most, 3)), np.zeros((most, 3))
    for task, kept in enumerate(rows):
        own_y[: len(kept), task] = shared.y[kept, task]
        own_weight[: len(kept), task] = weight[kept, task]
    dropped = replace(shared, X=[shared.X[kept] for kept in rows], y=own_y, weight=own_weight)
    first, _ = meet(masked, dropped, norm, alpha=0.1 * masked.alpha_max(norm))
    meet(masked, dropped, norm, radius=0.5 * first.norm_value)
    other = replace(masked, y=np.where(known, y, 1.0))
    again = other.solve(norm, alpha=first.alpha, tol=1e-7)
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-12)
    agrees(masked, norm, alpha=first.alpha)


def test_a_row_of_weight_zero_is_no_row():
    case, norm = draw(losses.MultinomialLogistic()), as_norm("l2,1")
    weight = case.weight.copy()
    weight[5:9] = 0.0
    weight /= weight.sum()
    X = case.X.copy()
    X[5:9] = 1e3
    kept = weight > 0.0
    fewer = replace(case, X=X[kept], y=case.y[kept], weight=weight[kept])
    meet(replace(case, X=X, weight=weight), fewer, norm, alpha=0.1 * fewer.alpha_max(norm))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("norm", NORMS)
def test_sparse_is_dense(norm, kind):
    dense, norm = draw(losses.MarginSoftmax(), n_samples=40, n_features=15), as_norm(norm)
    X = np.where(np.random.default_rng(1).uniform(size=dense.X.shape) < 0.4, dense.X, 0.0)
    dense = replace(dense, X=X)
    first, _ = meet(dense, replace(dense, X=kind(X)), norm, alpha=0.1 * dense.alpha_max(norm))
    meet(dense, replace(dense, X=kind(X)), norm, radius=0.5 * first.norm_value)
    squared = replace(draw(losses.Squared(), n_samples=40), X=X)
    meet(squared, replace(squared, X=kind(X)), norm, alpha=0.1 * squared.alpha_max(norm))
    separate = replace(squared, weight=np.repeat(squared.weight[:, None], 3, axis=1))
    meet(squared, replace(separate, X=[kind(X)] * 3), norm, alpha=0.1 * squared.alpha_max(norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", [*SMOOTH, "hinge"])
def test_single_precision_is_near_double(name, norm):
    double, norm = draw(LOSSES[name], **size_of(name)), as_norm(norm)
    single = replace(double, X=double.X.astype("f4"), weight=double.weight.astype("f4"))
    alpha = 0.1 * double.alpha_max(norm)
    assert single.alpha_max(norm) == pytest.approx(10.0 * alpha, rel=1e-4)
    for form in ({"alpha": alpha}, {"radius": 1.0}):
        found = single.solve(norm, tol=1e-4, max_iter=5000, **form)  # hinges take effort
        truth = double.solve(norm, tol=1e-6, **form)
        assert found.weights.dtype == found.intercept.dtype == np.float32
        assert found.converged
        # 1e-5 for what single precision loses in sums of the loss.
        assert found.objective - truth.objective <= found.gap + 1e-5 * truth.scale
        assert found.objective >= truth.objective - truth.gap - 1e-5 * truth.scale


# Two forms, one solution; and gaps that promise what they say.

any_smooth = st.sampled_from(SMOOTH)
any_norm = st.sampled_from(NORMS)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    name=any_smooth,
    norm=any_norm,
    shape=st.tuples(st.integers(4, 30), st.integers(1, 12), st.integers(2, 5)),
    fraction=st.floats(0.02, 0.9),
    fit_intercept=st.booleans(),
)
def test_penalty_and_ball_meet(seed, name, norm, shape, fraction, fit_intercept):
    sizes = dict(zip(("n_samples", "n_features", "n_outputs"), shape, strict=True))
    case = draw(LOSSES[name], seed=seed, fit_intercept=fit_intercept, **sizes)
    two_forms_meet(case, as_norm(norm), fraction, tol=1e-7)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", KINKED)
def test_penalty_and_ball_meet_for_kinks(name, norm):
    case = draw(LOSSES[name], seed=6, n_samples=10, n_features=4)
    two_forms_meet(case, as_norm(norm), 0.3, tol=1e-4)


def two_forms_meet(case, norm, fraction, tol):
    """The loss of the best point in the ball of the penalised one is that one's loss."""
    alpha = fraction * case.alpha_max(norm)
    penalised = case.solve(norm, alpha=alpha, tol=tol)
    ball = case.solve(norm, radius=penalised.norm_value, tol=tol)
    assert penalised.converged
    assert ball.converged
    assert ball.norm_value <= penalised.norm_value * (1.0 + 1e-10)
    # The penalised point is in the ball, and the ball's is as good under the penalty.
    rounding = 1e-12 * ball.scale
    assert ball.value - penalised.value <= ball.gap + rounding
    mine = ball.value + alpha * ball.norm_value
    assert penalised.objective - mine <= penalised.gap + rounding
    assert abs(ball.value - penalised.value) <= 2.0 * tol * ball.scale + rounding


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    name=any_smooth,
    norm=any_norm,
    max_iter=st.integers(0, 3),
    ball=st.booleans(),
)
def test_an_early_stop_has_a_true_gap(seed, name, norm, max_iter, ball):
    case = draw(LOSSES[name], seed=seed, n_samples=5 + seed % 20)
    early_gap_holds(case, as_norm(norm), max_iter, ball)


@pytest.mark.parametrize("ball", [True, False])
@pytest.mark.parametrize("max_iter", [1, 2, 3])
@pytest.mark.parametrize("norm", ["l2,1", "trace"])
@pytest.mark.parametrize("name", KINKED)
def test_an_early_stop_has_a_true_gap_for_kinks(name, norm, max_iter, ball):
    early_gap_holds(draw(LOSSES[name], n_samples=10, n_features=4), as_norm(norm), max_iter, ball)


def early_gap_holds(case, norm, max_iter, ball):
    form = {"radius": 1.5} if ball else {"alpha": 0.05 * case.alpha_max(norm)}
    early = case.solve(norm, tol=0.0, max_iter=max_iter, **form)
    assert early.iterations <= max_iter
    assert len(early.history) == early.iterations + 1
    assert early.gap == min(early.history) >= 0.0  # the best point is kept
    reference = Reference(case, norm, **form)
    assert reference.at(early) == pytest.approx(early.objective, rel=1e-9)
    assert early.objective - reference.optimum() <= early.gap + SLACK * early.scale


# The largest penalty.


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SMOOTH)
def test_alpha_max_is_where_weights_begin(name, norm, fit_intercept):
    case, norm = draw(LOSSES[name], fit_intercept=fit_intercept), as_norm(norm)
    limit = case.alpha_max(norm)
    above = case.solve(norm, alpha=1.0001 * limit, tol=1e-12)
    assert above.norm_value == 0.0
    assert above.value == above.scale
    below = case.solve(norm, alpha=0.999 * limit, tol=1e-12)
    assert below.norm_value > 0.0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", KINKED)
def test_above_alpha_max_all_weights_may_be_zero(name, norm):
    case, norm = draw(LOSSES[name], n_samples=10, n_features=4), as_norm(norm)
    found = case.solve(norm, alpha=1.001 * case.alpha_max(norm), tol=1e-6)
    assert found.converged
    assert found.objective == pytest.approx(found.scale, rel=2e-6)


# Paths and starts.


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SMOOTH)
def test_a_path_is_its_solutions_one_by_one(name, norm):
    bare = (list(LOSSES).index(name) + NORMS.index(norm)) % 2 == 1
    case, norm = draw(LOSSES[name], seed=7, fit_intercept=not bare), as_norm(norm)
    falling = case.alpha_max(norm) * np.geomspace(1.0, 0.02, 5)
    check_path(case, norm, falling)
    check_path(case, norm, falling[::-1])
    check_path(case, norm, falling[[2, 0, 4, 4, 1]])


@pytest.mark.parametrize("norm", ["l1,1", "trace"])
@pytest.mark.parametrize("name", KINKED)
def test_a_path_with_kinks_is_its_solutions_one_by_one(name, norm):
    case, norm = draw(LOSSES[name], n_samples=10, n_features=4), as_norm(norm)
    check_path(
        case, norm, case.alpha_max(norm) * np.asarray([0.9, 0.4, 0.1, 0.3]), tol=1e-4, max_iter=25
    )


def check_path(case, norm, alphas, tol=1e-6, max_iter=200):
    found = case.path(norm, alphas=alphas, tol=tol, max_iter=max_iter)
    assert [solution.alpha for solution in found] == list(alphas)
    for solution in found:
        alone = case.solve(norm, alpha=solution.alpha, tol=tol, max_iter=max_iter)
        assert solution.converged
        assert alone.converged
        assert solution.scale == pytest.approx(alone.scale, rel=1e-12)
        apart = abs(solution.objective - alone.objective)
        assert apart <= max(solution.gap, alone.gap) + 1e-13 * alone.scale


def test_a_path_does_nothing_before_it_is_asked():
    case, norm = draw(losses.Squared()), as_norm("l2,1")
    asked = []

    def alphas():
        for alpha in (0.5, 0.25):
            asked.append(alpha)
            yield alpha

    found = proximal.path(*case.arguments, norm, **case.options, alphas=alphas())
    assert next(found).alpha == 0.5
    assert asked == [0.5]
    assert [solution.alpha for solution in found] == [0.25]


@pytest.mark.parametrize("form", [{"alpha": 0.02}, {"radius": 1.5}])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["squared", "joint margin", "hinge"])
def test_a_start_at_the_solution_ends_at_once(name, norm, form):
    case, norm = draw(LOSSES[name], n_samples=15, n_features=5), as_norm(norm)
    tol = 1e-4 if name in KINKED else 1e-7
    first = case.solve(norm, tol=tol, **form)
    start = (first.weights, first.intercept)
    kept = first.weights.copy()
    again = case.solve(norm, tol=2.0 * tol, start=start, **form)
    assert again.converged
    # With kinks the dual point of the start has to be found anew.
    assert again.iterations == 0 or name in KINKED
    assert again.objective <= first.objective + 2.0 * tol * first.scale
    np.testing.assert_array_equal(first.weights, kept)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["squared", "joint logistic", "absolute"])
def test_a_bad_start_does_no_harm(name, norm):
    case, norm = draw(LOSSES[name], n_samples=12, n_features=4), as_norm(norm)
    tol = 1e-4 if name in KINKED else 1e-7
    start = (np.full((4, 3), 20.0), np.full(3, -50.0))
    for form in ({"alpha": 0.1 * case.alpha_max(norm)}, {"radius": 0.8}):
        plain = case.solve(norm, tol=tol, **form)
        found = case.solve(norm, tol=tol, start=start, **form)
        assert found.converged
        assert abs(found.objective - plain.objective) <= max(found.gap, plain.gap)
    assert np.all(start[0] == 20.0)


# What is asked, and what is answered.


def test_one_of_alpha_and_radius_is_needed():
    case = draw(losses.Squared())
    for form in ({}, {"alpha": 1.0, "radius": 1.0}):
        with pytest.raises(ValueError, match="alpha .* or radius .* not both"):
            case.solve(as_norm("l2,1"), **form)


@pytest.mark.parametrize(
    ("form", "missing"), [({"alpha": 0.1}, "prox"), ({"radius": 1.0}, "project")]
)
@pytest.mark.parametrize("norm", [SchattenNorm(1.5), MixedNorm(2, 1.5)], ids=repr)
def test_a_norm_without_its_map_is_an_error(norm, form, missing):
    case = draw(losses.Squared())
    with pytest.raises(TypeError, match=f"(?s)no method '{missing}'.*'l2,1'.*'trace'"):
        case.solve(norm, **form)
    if missing == "prox":
        with pytest.raises(TypeError, match="no method 'prox'"):
            case.path(norm, alphas=[0.1])


class WithoutConjugate(losses.Squared):
    """A loss that only has derivatives."""

    @property
    def conjugate(self):
        raise AttributeError("conjugate")


def test_a_loss_without_conjugate_is_an_error():
    case, norm = draw(WithoutConjugate()), as_norm("l2,1")
    with pytest.raises(TypeError, match="no conjugate.*losses.DualLoss"):
        case.solve(norm, alpha=0.1)
    with pytest.raises(TypeError, match="no conjugate"):
        case.path(norm, alphas=[0.1])


@pytest.mark.parametrize("form", [{"alpha": 0.01}, {"radius": 2.0}])
@pytest.mark.parametrize("name", ["squared", "joint margin", "hinge"])
def test_what_a_solution_says_is_so(name, form):
    case, norm, told = draw(LOSSES[name], n_samples=15, n_features=5), as_norm("l2,1"), []
    found = case.solve(norm, tol=1e-5, on_iteration=lambda *news: told.append(news), **form)
    assert (found.alpha, found.radius) == (form.get("alpha"), form.get("radius"))
    assert found.norm_value == norm.value(found.weights)
    value, _ = case.loss.value_and_residual(
        case.X @ found.weights + found.intercept, case.arguments[2], case.weight
    )
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.objective == found.value + (found.alpha or 0.0) * found.norm_value
    assert found.converged
    assert not found.interrupted
    assert found.gap == found.history[-1] <= 1e-5 * found.scale
    assert [count for count, _ in told] == list(range(1, found.iterations + 1))
    relative = [gap / found.scale for gap in found.history[1:]]
    assert [gap for _, gap in told] == pytest.approx(relative, rel=1e-12)


def test_without_intercept_it_is_zero():
    case = draw(losses.Logistic(), fit_intercept=False)
    assert np.all(case.solve(as_norm("trace"), alpha=0.01).intercept == 0.0)


def test_it_says_when_it_did_not_converge():
    case = draw(losses.MarginSoftmax())
    found = case.solve(as_norm("l2,1"), alpha=1e-3, tol=1e-12, max_iter=1)
    assert not found.converged
    assert found.iterations == 1
    none = case.solve(as_norm("l2,1"), alpha=1e-3, max_iter=0)
    assert (none.iterations, none.norm_value, none.value) == (0, 0.0, none.scale)


def test_rounding_ends_it_in_time():
    """No gap reaches zero: it stops where nothing gets better, and says so."""
    case = draw(losses.MarginSoftmax())
    found = case.solve(as_norm("l2,1"), alpha=1e-3, tol=0.0, max_iter=100_000)
    assert found.iterations < 1000
    assert found.gap < 1e-10 * found.scale


# Interrupts.


class Interrupting(losses.MarginSoftmax):
    """A loss during whose second derivatives the user has had enough."""

    left = 10**9

    def hessian_operator(self, *arguments):
        self.count()
        return super().hessian_operator(*arguments)

    def curvature(self, *arguments):
        self.count()
        return super().curvature(*arguments)

    def count(self):
        type(self).left -= 1
        if type(self).left <= 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_an_interrupt_keeps_the_iterate(norm, monkeypatch):
    case, norm = draw(Interrupting(), n_samples=60, n_features=30), as_norm(norm)
    alpha = 0.01 * case.alpha_max(norm)
    counts = []
    monkeypatch.setattr(Interrupting, "left", 10**9)
    case.solve(
        norm, alpha=alpha, tol=1e-9, on_iteration=lambda *_: counts.append(Interrupting.left)
    )
    used = [10**9 - left for left in counts]
    enough = next(count for count in used if count > used[1]) if len(used) > 2 else used[-1]
    monkeypatch.setattr(Interrupting, "left", enough)
    found = case.solve(norm, alpha=alpha, tol=1e-9)
    assert found.interrupted
    assert not found.converged
    assert found.norm_value > 0
    truth = replace(case, loss=losses.MarginSoftmax())
    assert Reference(truth, norm, alpha=alpha).at(found) == pytest.approx(found.objective)
    best = truth.solve(norm, alpha=alpha, tol=1e-9)
    assert found.objective - best.objective <= found.gap
    assert found.objective < found.scale


@pytest.mark.parametrize("norm", ["l2,1", "trace"])
def test_an_interrupt_between_iterations_keeps_the_iterate(norm):
    case, norm = draw(losses.MarginSoftmax()), as_norm(norm)

    def stop(count, _):
        if count == 2:
            raise KeyboardInterrupt

    found = case.solve(norm, alpha=1e-3, tol=1e-12, on_iteration=stop)
    assert found.interrupted
    assert found.iterations == 2
    assert found.norm_value > 0.0


def test_an_interrupt_ends_a_path():
    case, norm, seen = draw(losses.MarginSoftmax()), as_norm("l2,1"), []

    def stop(count, _):
        seen.append(count)
        if len(seen) == 3:
            raise KeyboardInterrupt

    alphas = case.alpha_max(norm) * np.geomspace(0.5, 0.001, 20)
    found = case.path(norm, alphas=alphas, tol=1e-10, on_iteration=stop)
    assert [solution.interrupted for solution in found] == [False] * (len(found) - 1) + [True]
    assert len(found) < len(alphas)


def test_effort_is_limited_where_iterations_are_dear(monkeypatch):
    case, norm = draw(losses.Absolute(), n_samples=20, n_features=12), as_norm("l2,1")
    monkeypatch.setattr(proximal.engine, "_FEW_ITERATIONS", 1)
    options = {"tol": 1e-12, "max_iter": 5}
    found = case.solve(norm, alpha=1e-3, **options)
    assert found.exhausted
    assert not found.converged
    assert found.iterations < 5  # each is a smooth problem of its own
    path = case.path(norm, alphas=np.geomspace(0.1, 1e-3, 30), **options)
    assert len(path) == 30
    assert path[-1].exhausted
    assert sum(solution.iterations for solution in path) < 60
    easy = draw(losses.Squared()).path(norm, alphas=np.geomspace(0.1, 1e-3, 30), max_iter=5)
    assert not any(solution.exhausted for solution in easy)
