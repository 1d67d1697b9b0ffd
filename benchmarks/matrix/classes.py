"""Other solvers for the multi-class problems of ``benchmarks.matrix``: multinomial loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness import peers
from benchmarks.matrix.gap import Problem
from benchmarks.matrix.methods import Model, Solver, search
from benchmarks.matrix.tasks import list_tolerances

# A bound on spams' iterations: its own gap is sometimes infinite, and it would then never stop.
STEPS = 1000
REGUL = {"l2,1": "l1l2", "linf,1": "l1linf", "trace": "trace-norm"}


@dataclass(frozen=True)
class AdeliePath(Solver):
    """adelie's multinomial group path over the same penalties; it divides the loss by k.

    With ``early_exit``, its default, it stops at 90 % of the deviance and skips the other
    penalties.
    """

    needs: ClassVar[str] = "adelie"
    environment: ClassVar[str] = "adelie"
    work: ClassVar[str] = "path"
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
class SpamsPath(Solver):
    """spams' FISTA at all penalties, each started from the previous solution.

    spams stops on a gap relative to the current objective. That is smaller than the objective at
    zero, which our gaps are relative to, so looser tolerances are enough for spams.
    """

    needs: ClassVar[str] = "spams"
    work: ClassVar[str] = "path"

    def convert(self, problem: Problem) -> Any:
        return peers.Spams().convert(problem.X)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        W, found = np.zeros((inputs.shape[1], problem.outputs), order="F"), []
        for alpha in problem.alphas.tolist():
            W = fit_spams(inputs, problem, alpha, tol, W, STEPS)
            found.append((alpha, W))
        return found

    def models(self, fitted: Any, problem: Problem) -> Sequence[Model]:
        return [Model(penalty, W[:-1]) for penalty, W in fitted]


@dataclass(frozen=True)
class SpamsSearch(SpamsPath):
    """spams' search for 40 features: FISTA at one penalty after another, timed as a whole.

    Each call starts from the last solution that had few enough features. Starting from zero and
    dividing by ten, as in ``shareboost``, takes three to ten times as long.
    """

    work: ClassVar[str] = "search"

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        start = np.zeros((inputs.shape[1], problem.outputs), order="F")

        def fit(penalty: float, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            W = fit_spams(inputs, problem, penalty, tol, start, STEPS)
            return W, W[:-1]

        return [search(fit, float(problem.alphas[0]), start)]


@dataclass(frozen=True)
class SpamsTrace(Solver):
    """spams' FISTA with the trace norm, at one penalty; it has no intercept for this norm."""

    needs: ClassVar[str] = "spams"

    def convert(self, problem: Problem) -> Any:
        return np.asfortranarray(problem.X)

    def solve(self, inputs: Any, problem: Problem, tol: float) -> Any:
        start = np.zeros((inputs.shape[1], problem.outputs), order="F")
        return fit_spams(inputs, problem, float(problem.alphas[0]), tol, start)


def fit_spams(
    X: np.ndarray,
    problem: Problem,
    penalty: float,
    tol: float,
    start: np.ndarray,
    steps: int = 100_000,
) -> np.ndarray:
    """Return the coefficients.

    With an intercept, the last column of ``X`` is one, and its row is not penalised.
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
        max_it=steps,
        L0=0.1,
        lambda1=penalty,
    )
    return fitted


@dataclass(frozen=True)
class LightningTrace(Solver):
    """lightning's FISTA with the trace norm, which stops after a given number of iterations.

    Steps are constant (``max_steps=0``), because its line search evaluates a different loss from
    the one whose gradient it follows, and with it the gap stays large.
    """

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
            max_steps=0,
        )
        return model.fit(*inputs).coef_.T


PEERS: dict[str, Solver] = {
    "adelie": AdeliePath(list_tolerances(-4, -9)),
    "adelie-defaults": AdeliePath((1e-7,), early_exit=True),
    "spams-path": SpamsPath(list_tolerances(-1, -4)),
    "spams-search": SpamsSearch(list_tolerances(-1, -4)),
}
# adelie has no linf,1 norm.
LARGEST_PEERS = {name: PEERS[name] for name in ("spams-path", "spams-search")}
TRACE_PEERS: dict[str, Solver] = {
    "spams": SpamsTrace(list_tolerances(-3, -6)),
    "lightning": LightningTrace(tuple(1 / 2**power for power in range(6, 13))),
}
