"""The models of Tables 3 and 4: fitted paths, and the choice of one function on each.

A model learns from the training part alone. The function on its path (and the width, if it has one)
is the one with the smallest error on the second part. Only this function is tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.tensor.data import Part, Split
from benchmarks.tensor.methods import (
    Problem,
    Q,
    compute_scale,
    list_gammas,
    make_kernel,
    solve_path,
)

NUMBER = 100  # of penalties
# Widths of the Gaussian and exponential kernels, to be divided by the number of columns.
WIDTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FAR = 2.0  # weights count if they are this many standard deviations from their mean

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Path:
    """The fitted functions of a path: their values at rows, one column each, and facts.

    ``about`` returns facts about one function: ``count``, the number of weights that matter, and
    ``gap``.
    """

    predict: Predict
    about: Callable[[int], dict[str, Any]] = lambda place: {}
    facts: dict[str, Any] = field(default_factory=dict)


def choose_model(paths: Iterable[Path], given: Split, middle: float) -> dict[str, Any]:
    """Choose a function on the second part, and return its error on the test part."""
    best, least, place = None, math.inf, 0
    for path in paths:
        errors = compute_errors(path, given.valid, middle)
        errors = np.where(np.isfinite(errors), errors, np.inf)
        if np.min(errors) < least:
            best, least, place = path, float(np.min(errors)), int(np.argmin(errors))
    if best is None:
        raise ValueError("No function has a finite error on the rows to choose by.")
    error = float(compute_errors(best, given.test, middle)[place])
    return {"mse": error, "valid": least, "place": place} | best.facts | best.about(place)


def compute_errors(path: Path, part: Part, middle: float) -> np.ndarray:
    """Return the mean squared error of every function."""
    found = path.predict(part.X) + middle
    return np.asarray(np.mean((found - part.y[:, None]) ** 2, axis=0))


# --- models


def fit_tensor_path(kernel: Any, part: Part) -> Path:
    """Return the path of a tensor kernel with p = 4/3."""
    from mixnorm.engines import tensor

    unit = math.sqrt(float(np.mean(part.y**2)))
    problem = Problem(part.X, part.y / unit, kernel, list_gammas(NUMBER))
    made = tensor.represent(kernel, part.X, Q)
    found = list(solve_path(made.contraction, problem))
    alphas = np.stack([one.alpha for one in found], axis=1)
    alphas *= compute_scale(made.contraction, problem.y) ** (-1.0 / (Q - 1.0))
    function = made.expansion(alphas)

    def predict(X: np.ndarray) -> np.ndarray:
        try:
            return np.asarray(unit * function.scores(X))
        except ValueError:  # the exponential overflowed
            return np.full((len(X), NUMBER), np.inf)

    def about(place: int) -> dict[str, Any]:
        weights = getattr(function, "weights", None)
        facts = {"gap": found[place].gap / found[place].objective}
        return facts | ({} if weights is None else {"count": count_far(weights[:, place])})

    return Path(predict, about, {"unsolved": sum(not one.converged for one in found)})


def count_far(weights: np.ndarray) -> int:
    """Return the number of weights that are far from their mean."""
    return int(np.sum(np.abs(weights - weights.mean()) > FAR * weights.std()))


def fit_polynomial(part: Part, degree: int) -> Iterator[Path]:
    yield fit_tensor_path(make_kernel(degree), part)


def fit_exponential(part: Part, degree: int, *, normalized: bool = False) -> Iterator[Path]:
    """Yield the paths of all widths without overflow."""
    from mixnorm.kernels import ExponentialTensorKernel

    for width in WIDTHS:
        kernel = ExponentialTensorKernel(width / part.X.shape[1], normalized)
        try:
            path = fit_tensor_path(kernel, part)
        except ValueError:
            continue
        yield replace(path, facts=path.facts | {"width": width})


def fit_normalised(part: Part, degree: int) -> Iterator[Path]:
    yield from fit_exponential(part, degree, normalized=True)


def fit_ridge_path(part: Part, metric: str, **parameters: Any) -> Path:
    """Return kernel ridge regressions, with penalties in the same range relative to the kernel."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.metrics.pairwise import pairwise_kernels

    def kernel(X: np.ndarray) -> np.ndarray:
        return np.asarray(pairwise_kernels(X, part.X, metric=metric, **parameters))

    K, y = kernel(part.X), part.y
    penalties = float(y @ K @ y) / float(y @ y) / list_gammas(NUMBER)
    found = [KernelRidge(alpha=one, kernel="precomputed").fit(K, y) for one in penalties]
    alphas = np.stack([one.dual_coef_ for one in found], axis=1)
    return Path(lambda X: kernel(X) @ alphas)


def fit_ridge(part: Part, degree: int) -> Iterator[Path]:
    """Yield the ridge path on monomials, weighted as in the kernel of two rows."""
    yield fit_ridge_path(part, "poly", degree=degree, gamma=1.0, coef0=1.0)


def fit_gaussian(part: Part, degree: int) -> Iterator[Path]:
    for width in WIDTHS:
        path = fit_ridge_path(part, "rbf", gamma=width / part.X.shape[1])
        yield replace(path, facts={"width": width})


def fit_lasso(part: Part, degree: int) -> Iterator[Path]:
    """Yield scikit-learn's Lasso path on the explicit features of p = 4/3."""
    from sklearn.linear_model import lasso_path

    kernel = make_kernel(degree)
    _, weights, _ = lasso_path(np.asfortranarray(kernel.features(part.X, Q).T), part.y)
    yield Path(
        lambda X: kernel.features(X, Q).T @ weights,
        lambda place: {"count": int(np.count_nonzero(weights[:, place]))},
    )


def predict_constant(part: Part, degree: int) -> Iterator[Path]:
    """Yield the constant zero, which is the training mean for centred targets."""
    yield Path(lambda X: np.zeros((len(X), 1)))


MODELS: dict[str, Callable[[Part, int], Iterator[Path]]] = {
    "l4/3": fit_polynomial,
    "ridge": fit_ridge,
    "lasso": fit_lasso,
    "exponential": fit_exponential,
    "exponential, normalised": fit_normalised,
    "gaussian": fit_gaussian,
    "constant": predict_constant,
}
# Degrees of the models that have one.
DEGREES = dict.fromkeys(("l4/3", "ridge", "lasso"), (1, 2, 3, 4))
