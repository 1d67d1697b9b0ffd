"""mixnorm's estimators in ``benchmarks.matrix``, with the relative gap as tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.matrix.gap import Problem
from benchmarks.matrix.methods import Model, Solver, search


@dataclass(frozen=True)
class Regressor(Solver):
    """``MixedNormRegressor`` at one penalty."""

    needs: ClassVar[str] = "mixnorm"
    ours: ClassVar[bool] = True

    def setup(self) -> None:
        from mixnorm import MixedNormRegressor  # noqa: F401

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        from mixnorm import MixedNormRegressor

        model = MixedNormRegressor(
            norm=problem.norm,
            alpha=float(problem.alphas[0]),
            fit_intercept=problem.intercept,
            tol=tol,
        )
        return model.fit(*inputs)

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        return [Model(float(problem.alphas[0]), np.asarray(fitted.coef_).T)]

    def get_claimed_gaps(self, fitted: Any) -> list[float] | None:
        return [float(fitted.dual_gap_)]


@dataclass(frozen=True)
class Classifier(Regressor):
    """``MixedNormClassifier`` at one penalty."""

    def setup(self) -> None:
        from mixnorm import MixedNormClassifier  # noqa: F401

    def convert(self, problem: Problem) -> Any:
        return problem.X, problem.target

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        from mixnorm import MixedNormClassifier

        model = MixedNormClassifier(
            norm=problem.norm,
            loss="logistic",
            alpha=float(problem.alphas[0]),
            fit_intercept=problem.intercept,
            tol=tol,
        )
        return model.fit(*inputs)


@dataclass(frozen=True)
class Path(Classifier):
    """``MixedNormClassifier.path`` with its own 50 penalties."""

    work: ClassVar[str] = "path"

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        from mixnorm import MixedNormClassifier

        return MixedNormClassifier(norm=problem.norm, loss="logistic", tol=tol).path(*inputs)

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        pairs = zip(fitted.alphas, fitted.coefs, strict=True)
        return [Model(float(alpha), np.asarray(coef).T) for alpha, coef in pairs]

    def get_claimed_gaps(self, fitted: Any) -> list[float] | None:
        return [float(gap) for gap in fitted.gaps]


@dataclass(frozen=True)
class Search(Classifier):
    """A search for 40 features like that of spams, with ``warm_start``."""

    work: ClassVar[str] = "search"

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        from mixnorm import MixedNormClassifier

        model = MixedNormClassifier(norm=problem.norm, loss="logistic", tol=tol, warm_start=True)

        def fit(penalty: float, start: Any) -> tuple[Any, np.ndarray]:
            if start is not None:
                model.model_ = start
            model.set_params(alpha=penalty).fit(*inputs)
            return model.model_, model.coef_.T

        return search(fit, float(problem.alphas[0]), None)

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        penalty, linear = fitted
        return [Model(penalty, linear.coef.T)]

    def get_claimed_gaps(self, fitted: Any) -> list[float] | None:
        return None


def is_installed() -> bool:
    """Return whether this mixnorm has the estimators."""
    try:
        from mixnorm import MixedNormClassifier, MixedNormRegressor  # noqa: F401
    except ImportError:
        return False
    return True
