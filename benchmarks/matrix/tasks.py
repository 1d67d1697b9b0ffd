"""Other solvers for the multi-task problems of ``benchmarks.matrix``: squared loss, l2,1 norm.

scikit-learn, celer and skglm have our objective: half the squared error over n, plus alpha times
the norm. spams sums over rows, adelie divides the loss by the number of tasks, and group-lasso
multiplies the norm by twice its ``group_reg``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks.matrix.gap import Problem, compute_alpha_max
from benchmarks.matrix.methods import Solver


def list_tolerances(first: float, last: float, per_decade: int = 2) -> tuple[float, ...]:
    """Return tolerances from ``10**first`` down to ``10**last``."""
    count = round((first - last) * per_decade) + 1
    return tuple(float(tol) for tol in np.logspace(first, last, count))


@dataclass(frozen=True)
class MultiTaskLasso(Solver):
    """Base of the libraries whose ``MultiTaskLasso`` has scikit-learn's parameters."""

    settings: Mapping[str, Any] = field(default_factory=dict)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        model = self.model()(
            alpha=float(problem.alphas[0]), fit_intercept=False, tol=tol, **self.settings
        )
        return model.fit(*inputs).coef_.T

    def model(self) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Sklearn(MultiTaskLasso):
    """scikit-learn's ``MultiTaskLasso``: block coordinate descent with gap-safe screening."""

    needs: ClassVar[str] = "sklearn.linear_model"

    def model(self) -> Any:
        from sklearn.linear_model import MultiTaskLasso

        return MultiTaskLasso


@dataclass(frozen=True)
class Celer(MultiTaskLasso):
    """celer: working sets and dual extrapolation; needs scikit-learn 1.6."""

    needs: ClassVar[str] = "celer"
    environment: ClassVar[str] = "celer"

    def model(self) -> Any:
        from celer import MultiTaskLasso

        return MultiTaskLasso


@dataclass(frozen=True)
class Skglm(MultiTaskLasso):
    """skglm: working sets and Anderson acceleration, compiled on the first call."""

    needs: ClassVar[str] = "skglm"

    def model(self) -> Any:
        from skglm import MultiTaskLasso

        return MultiTaskLasso


@dataclass(frozen=True)
class GroupLasso(Solver):
    """group-lasso: FISTA with restarts; every row is a group."""

    needs: ClassVar[str] = "group_lasso"

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        from group_lasso import GroupLasso

        X, Y = inputs
        model = GroupLasso(
            groups=np.arange(X.shape[1]),
            group_reg=float(problem.alphas[0]) / 2,
            l1_reg=0,
            scale_reg="none",
            fit_intercept=False,
            tol=tol,
            n_iter=100_000,
            supress_warning=True,
            random_state=0,
        )
        return model.fit(X, Y).coef_


@dataclass(frozen=True)
class Spams(Solver):
    """spams' FISTA; rows are divided by the root of n to suit its first step size.

    With ``gram`` it first computes the Gram matrix of the columns, for data with many rows.
    """

    needs: ClassVar[str] = "spams"
    regul: str = "l1l2"
    gram: bool = False

    def convert(self, problem: Problem) -> Any:
        root = np.sqrt(len(problem.X))
        start = np.zeros((problem.X.shape[1], problem.outputs), order="F")
        return np.asfortranarray(problem.target / root), np.asfortranarray(problem.X / root), start

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        import spams

        return spams.fistaFlat(
            *inputs,
            numThreads=1,
            loss="square",
            regul=self.regul,
            compute_gram=self.gram,
            lambda1=float(problem.alphas[0]),
            tol=tol,
            it0=10,
            max_it=100_000,
        )


@dataclass(frozen=True)
class Adelie(Solver):
    """adelie's multi-response path of ten penalties from ``alpha_max`` down, faster than one."""

    needs: ClassVar[str] = "adelie"
    environment: ClassVar[str] = "adelie"
    values: int = 10

    def convert(self, problem: Problem) -> Any:
        tasks, last = problem.outputs, float(problem.alphas[-1])
        path = np.geomspace(compute_alpha_max(problem), last, self.values + 1)[1:] / tasks
        return np.asfortranarray(problem.X), np.ascontiguousarray(problem.target), path

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        import adelie

        X, Y, path = inputs
        state = adelie.grpnet(
            X,
            adelie.glm.multigaussian(Y),
            penalty=np.ones(X.shape[1]),
            lmda_path=path,
            tol=tol,
            intercept=False,
            early_exit=False,
            progress_bar=False,
            n_threads=1,
        )
        return state.betas[-1].toarray().reshape(X.shape[1], -1)


@dataclass(frozen=True)
class Lightning(Solver):
    """lightning's FISTA, which stops after a number of iterations; ``tol`` is its inverse."""

    needs: ClassVar[str] = "lightning.regression"
    environment: ClassVar[str] = "lightning"
    penalty: str = "l1/l2"

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        from lightning.regression import FistaRegressor

        X, Y = inputs
        model = FistaRegressor(
            C=1 / len(X),
            alpha=float(problem.alphas[0]),
            penalty=self.penalty,
            max_iter=round(1 / tol),
        )
        return model.fit(X, Y).coef_.T


PEERS: dict[str, Solver] = {
    "sklearn": Sklearn(list_tolerances(-3, -9), {"max_iter": 1_000_000, "copy_X": False}),
    "celer": Celer(list_tolerances(-3, -9)),
    "skglm": Skglm(list_tolerances(-2, -8), {"copy_X": False}),
    "group-lasso": GroupLasso(list_tolerances(-3, -9)),
    "spams": Spams(list_tolerances(-3, -8)),
    "adelie": Adelie(list_tolerances(-7, -16)),
    "lightning": Lightning(tuple(1 / 2**power for power in range(6, 15))),
}
# Squared loss and the trace norm, many more rows than columns.
LOW_RANK_PEERS: dict[str, Solver] = {
    "spams": Spams(list_tolerances(-3, -6), regul="trace-norm", gram=True),
    "lightning": Lightning(tuple(1 / 2**power for power in range(3, 9)), penalty="trace"),
}
