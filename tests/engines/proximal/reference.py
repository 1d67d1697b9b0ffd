"""Problems for the tests of the proximal engine, and the same problems in cvxpy."""

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

from mixnorm import losses
from mixnorm.engines import proximal
from mixnorm.engines.proximal import LossMixture, SeparateDesign, SharedDesign
from mixnorm.norms import TraceNorm

NORMS = ["l1,1", "l2,1", "linf,1", "l2,2", "trace"]
LOSSES = {
    **{name: cls() for name, cls in losses.SCALAR.items()},
    **{f"joint {name}": cls() for name, cls in losses.JOINT.items()},
}
SMOOTH = [name for name, loss in LOSSES.items() if np.isfinite(loss.smoothness)]
KINKED = [name for name, loss in LOSSES.items() if not np.isfinite(loss.smoothness)]
# What cvxpy's own optimum may be off by, relative to the objective with no weights.
SLACK = 1e-8


def pairs(names, crossed, norms=NORMS):
    """Parametrise with every loss under one norm, and every norm with some of the losses.

    Losses and norms meet in the engine through few methods, so that pairs find what the full
    product would.
    """
    found = [(name, "l2,1") for name in names]
    found += [(name, norm) for name in crossed for norm in norms if norm != "l2,1"]
    return pytest.mark.parametrize(("name", "norm"), found)


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
    if groups is None or isinstance(groups, str):
        blocks = cp.norm(W, norm.inner, axis=1 if groups is None else 0)
        return cp.norm(blocks, norm.outer)
    groups = np.asarray(groups)
    labels = groups if groups.ndim == 2 else np.broadcast_to(groups[:, None], W.shape)
    entries, labels = cp.vec(W, order="C"), labels.ravel()
    blocks = [
        cp.norm(entries[np.flatnonzero(labels == label)], norm.inner) for label in np.unique(labels)
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
    if large:
        return {"n_samples": 40, "n_features": 12}
    if name not in KINKED:
        return {}
    # Three classes at least: with two, a joint loss would be a scalar one.
    outputs = 3 if LOSSES[name].is_classifier else 2
    return {"n_samples": 10, "n_features": 3, "n_outputs": outputs}
