"""Peers for the multi-class problems of ``benchmarks.matrix``: multinomial loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks import _peers
from benchmarks._matrix_gap import Problem
from benchmarks._matrix_methods import Model, Solver
from benchmarks._matrix_tasks import decades
from benchmarks._methods import used_rows

# Features that spams' search looks for, and how many more or fewer will do. At a gap of 1e-3 their
# number is not monotone in the penalty; a search that misses the very number ends after its calls.
SIZE, NEAR = 40, 0
REGUL = {"l2,1": "l1l2", "linf,1": "l1linf", "trace": "trace-norm"}


@dataclass(frozen=True)
class AdeliePath(Solver):
    """adelie's multinomial group path over the same values; its loss is divided by k.

    With ``early_exit``, its default, it leaves out the values after 90 % of the deviance.
    """

    needs: ClassVar[str] = "adelie"
    environment: ClassVar[str] = "adelie"
    early_exit: bool = False

    def convert(self, problem: Problem) -> Any:
        return np.asfortranarray(problem.X), np.ascontiguousarray(problem.encoded)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        import adelie

        X, target = inputs
        return adelie.grpnet(
            X,
            adelie.glm.multinomial(target),
            penalty=np.ones(X.shape[1]),
            lmda_path=problem.alphas / problem.outputs,
            tol=tol,
            irls_tol=tol,
            early_exit=self.early_exit,
            progress_bar=False,
            n_threads=1,
        )

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        classes = problem.outputs
        blocks = fitted.betas.toarray().reshape(len(fitted.lmdas), -1, classes)
        return [
            Model(classes * float(each), W) for each, W in zip(fitted.lmdas, blocks, strict=True)
        ]


@dataclass(frozen=True)
class SpamsSearch(Solver):
    """spams' search for 40 features: FISTA at one penalty after another, all of it timed.

    Penalties are halved until there are too many features, then the exponent is bisected; each call
    starts from the last solution with few enough. From zero and by tenths, as in ``shareboost``,
    it takes three to ten times as long. spams stops on its own relative gap, so it is handed ours.
    """

    needs: ClassVar[str] = "spams"
    calls: ClassVar[int] = 14

    def convert(self, problem: Problem) -> Any:
        return _peers.Spams().convert(problem.X)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        high, low = float(problem.alphas[0]), None
        best = high, np.zeros((inputs.shape[1], problem.outputs), order="F")
        for _ in range(self.calls):
            penalty = high / 2 if low is None else float(np.sqrt(high * low))
            W = spams_fit(inputs, problem, penalty, tol, best[1])
            used = used_rows(W[:-1])
            if abs(used - SIZE) <= NEAR:
                return penalty, W
            if used > SIZE:
                low = penalty
            else:
                best, high = (penalty, W), penalty
        return best

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        penalty, W = fitted
        return [Model(penalty, W[:-1])]


@dataclass(frozen=True)
class SpamsTrace(Solver):
    """spams' FISTA with the trace norm, at one penalty; it has no intercept for this norm."""

    needs: ClassVar[str] = "spams"

    def convert(self, problem: Problem) -> Any:
        return np.asfortranarray(problem.X)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        start = np.zeros((inputs.shape[1], problem.outputs), order="F")
        return spams_fit(inputs, problem, float(problem.alphas[0]), tol, start)


def spams_fit(
    X: np.ndarray, problem: Problem, penalty: float, tol: float, start: np.ndarray
) -> np.ndarray:
    """Return the coefficients; with an intercept, the last column of ``X`` is one and its row is
    not penalised.
    """
    import spams

    fitted: np.ndarray = spams.fistaFlat(
        np.asfortranarray(problem.target.reshape(-1, 1), dtype=np.float64),
        X,
        start,
        numThreads=1,
        loss="multi-logistic",
        regul=REGUL[problem.norm],
        intercept=problem.intercept,
        tol=tol,
        it0=10,
        max_it=100_000,
        L0=0.1,
        lambda1=penalty,
    )
    return fitted


@dataclass(frozen=True)
class LightningTrace(Solver):
    """lightning's FISTA with the trace norm; it stops by its number of iterations."""

    needs: ClassVar[str] = "lightning.classification"
    environment: ClassVar[str] = "lightning"

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        from lightning.classification import FistaClassifier

        model = FistaClassifier(
            C=1 / len(problem.X),
            alpha=float(problem.alphas[0]),
            loss="log",
            penalty="trace",
            multiclass=True,
            max_iter=round(1 / tol),
        )
        return model.fit(*inputs).coef_.T


PEERS: dict[str, Solver] = {
    "adelie": AdeliePath(decades(-4, -9)),
    "adelie-defaults": AdeliePath((1e-7,), early_exit=True),
    "spams": SpamsSearch((1e-3,)),
}
TRACE_PEERS: dict[str, Solver] = {
    "spams": SpamsTrace(decades(-3, -6)),
    # Its objective stops falling well above the optimum: more iterations do not help.
    "lightning": LightningTrace((1 / 64, 1 / 128)),
}
