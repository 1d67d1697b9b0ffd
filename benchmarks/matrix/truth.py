"""Compare small problems of ``benchmarks.matrix`` with cvxpy.

``python -m benchmarks.matrix.truth`` prints JSON: our objective, cvxpy's optimum and the reported
gap, by norm, loss and form.
"""

from __future__ import annotations

import itertools
import json
import warnings
from typing import Any

import numpy as np

NORMS = ("l1,1", "l2,2", "l2,1", "linf,1", "trace")
LOSSES = ("squared", "absolute", "logistic", "hinge")
FORMS = ("penalty", "ball")
TOL = 1e-7
# The relative accuracy of cvxpy's optimum.
SLACK = 1e-7


def draw_data(loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a small problem: 40 rows, 8 columns, 3 outputs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    scores = X[:, :3] @ rng.standard_normal((3, 3)) + rng.standard_normal((40, 3))
    return X, scores if loss in ("squared", "absolute") else scores.argmax(axis=1)


def compute_norm(W: Any, name: str) -> Any:
    """Return a norm of cvxpy's ``W``."""
    import cvxpy

    if name == "trace":
        return cvxpy.normNuc(W)
    if name == "l2,2":
        return cvxpy.norm(W, "fro")
    if name == "l1,1":
        return cvxpy.sum(cvxpy.abs(W))
    return cvxpy.mixed_norm(W, {"l2,1": 2, "linf,1": "inf"}[name], 1)


def compute_loss(scores: Any, target: np.ndarray, loss: str) -> Any:
    """Return the mean loss of cvxpy's scores, summed over outputs."""
    import cvxpy

    count = len(target)
    if loss == "squared":
        return cvxpy.sum_squares(scores - target) / (2 * count)
    if loss == "absolute":
        return cvxpy.sum(cvxpy.abs(scores - target)) / count
    encoded = np.eye(3)[target]
    own = cvxpy.sum(cvxpy.multiply(encoded, scores))
    if loss == "logistic":
        return (cvxpy.sum(cvxpy.log_sum_exp(scores, axis=1)) - own) / count
    return (cvxpy.sum(cvxpy.max(scores + 1 - encoded, axis=1)) - own) / count


def compare(norm: str, loss: str, form: str) -> dict[str, Any]:
    """Solve one problem with both; ``difference`` is relative to cvxpy's objective."""
    import cvxpy

    from mixnorm import MixedNormClassifier, MixedNormRegressor

    X, target = draw_data(loss)
    made = MixedNormRegressor if loss in ("squared", "absolute") else MixedNormClassifier
    size = {"alpha": 0.05} if form == "penalty" else {"radius": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made(norm=norm, loss=loss, tol=TOL, max_iter=100_000, **size).fit(X, target)

    W, b = cvxpy.Variable((8, 3)), cvxpy.Variable((1, 3))
    measure = compute_norm(W, norm)
    objective = compute_loss(X @ W + np.ones((40, 1)) @ b, target, loss)
    limits = []
    if form == "penalty":
        objective = objective + size["alpha"] * measure
    else:
        limits = [measure <= size["radius"]]
    problem = cvxpy.Problem(cvxpy.Minimize(objective), limits)
    problem.solve(solver="CLARABEL")
    optimum = float(problem.value)

    W.value, b.value = model.coef_.T, np.reshape(model.intercept_, (1, 3))
    ours, gap = float(objective.value), float(model.dual_gap_)
    outside = max(0.0, float(measure.value) - size["radius"]) if limits else 0.0
    return {
        "norm": norm,
        "loss": loss,
        "form": form,
        "objective": ours,
        "optimum": optimum,
        "difference": (ours - optimum) / abs(optimum),
        "gap": gap,
        "outside": outside,
        "bound": ours - optimum <= gap + SLACK * abs(optimum),
    }


if __name__ == "__main__":
    print(json.dumps([compare(*each) for each in itertools.product(NORMS, LOSSES, FORMS)]))
