"""The methods of ``benchmarks.tensor`` that follow a path of ``gamma``, from rows to solutions.

Each call also builds the kernel or the features. ``gamma`` is normalised: the kernel is divided by
its form at the targets over their square, so that ``gamma=1`` is between no fit and a perfect fit
for any kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from benchmarks.tensor.fista import Solved, run_fista
from benchmarks.tensor.newton import apply_features, apply_tensor, run_newton

Q = 4.0  # the dual exponent: p = 4/3
TOL = 1e-8
GAPS = (TOL, 1e-3)  # relative gaps: many digits, and enough for predictions
LEAST, MOST = 1e-2, 1e4  # values of gamma
MOST_STEPS = 20_000  # of gradient steps on the dual for one gamma


@dataclass(frozen=True)
class Problem:
    """Standardised rows, a target, a kernel, values of ``gamma``, and the solutions so far.

    The list is filled during a call, so that a stopped call leaves the solutions it has found.
    """

    X: np.ndarray
    y: np.ndarray
    kernel: Any
    gammas: np.ndarray
    loss: Any = None
    tol: float = TOL
    solved: list[Solved] = field(default_factory=list)

    def few(self) -> Problem:
        """Return a small problem of the same kind, for a first call that loads and compiles."""
        chosen = np.concatenate([np.argsort(self.y)[:6], np.argsort(self.y)[-6:]])
        X, y = self.X[chosen, :3], self.y[chosen]
        return replace(self, X=X, y=y, gammas=self.gammas[:2], solved=[])


def list_gammas(number: int) -> np.ndarray:
    """Return a number of values over six decades."""
    return np.geomspace(LEAST, MOST, number)


def make_kernel(name: str | int) -> Any:
    """Return the polynomial kernel of a degree, or the exponential kernel."""
    from mixnorm.kernels import ExponentialTensorKernel, PolynomialTensorKernel

    return ExponentialTensorKernel() if name == "exponential" else PolynomialTensorKernel(int(name))


def make_loss(name: str) -> Any:
    """Return a loss by name, for targets of mean square one or for signs."""
    from mixnorm import losses

    made = {
        "squared": losses.Squared,
        "epsilon-insensitive": losses.EpsilonInsensitive,  # 0.1
        "huber": losses.Huber,  # 1
        "hinge": losses.Hinge,
        "logistic": losses.Logistic,
    }
    return made[name]()


def compute_scale(contraction: Any, y: np.ndarray) -> float:
    """Return the number by which a kernel is divided."""
    return float(y @ (contraction.matrix(y) @ y)) / float(y @ y)


def solve_path(contraction: Any, problem: Problem, **options: Any) -> Any:
    """Yield the dual solutions along the path, with the kernel scaled so."""
    from mixnorm.engines import dual
    from mixnorm.losses import Squared

    loss, y = problem.loss or Squared(), problem.y[:, None]
    scaled = dual.ScaledContraction(contraction, 1.0 / compute_scale(contraction, problem.y))
    target = loss.encode(y, 1, np.zeros_like(y))
    return dual.path(scaled, loss, target, problem.gammas.tolist(), tol=problem.tol, **options)


@dataclass(frozen=True)
class Method:
    """Base of the methods; ``run`` is timed, and returns facts for the record."""

    ours: ClassVar[bool] = False
    gapped: ClassVar[bool] = True  # solves the same problem, with a certified gap

    def run(self, problem: Problem) -> dict[str, Any]:
        """Solve for all values of ``gamma``."""
        raise NotImplementedError


@dataclass(frozen=True)
class Dual(Method):
    """mixnorm on the dual."""

    ours: ClassVar[bool] = True

    representation: str = "auto"
    solver: str = "newton"

    def run(self, problem: Problem) -> dict[str, Any]:
        from mixnorm.engines import tensor

        problem.solved.clear()
        made = tensor.represent(
            problem.kernel, problem.X, Q, name=self.representation, random_state=0
        )
        options: dict[str, Any] = {"solver": self.solver}
        if self.solver != "newton":
            options["max_iter"] = MOST_STEPS
        for found in solve_path(made.contraction, problem, **options):
            problem.solved.append(Solved(found.gamma, found.objective, found.gap, found.iterations))
        facts = {"representation": made.name, "error": made.error, "mass": made.mass}
        features = getattr(made.contraction, "features", None)
        return facts | ({} if features is None else {"features": len(features)})


@dataclass(frozen=True)
class Fista(Method):
    """FISTA on the primal, on explicit features."""

    extrapolate: bool = False

    def run(self, problem: Problem) -> dict[str, Any]:
        problem.solved.clear()
        F = compute_scaled_features(problem)
        for found in run_fista(
            F, problem.y, problem.gammas.tolist(), problem.tol, extrapolate=self.extrapolate
        ):
            problem.solved.append(found)
        return {"features": F.shape[1]}


@dataclass(frozen=True)
class Textbook(Method):
    """A textbook Newton method on the same dual, in NumPy.

    NumPy computes ``"features"`` and ``"tensor"``; ``"same"`` is the representation of ``newton``.
    """

    representation: str = "features"

    def run(self, problem: Problem) -> dict[str, Any]:
        problem.solved.clear()
        matrix, facts = getattr(self, f"_{self.representation}")(problem)
        for found in run_newton(matrix, problem.y, problem.gammas.tolist(), problem.tol):
            problem.solved.append(found)
        return dict(facts)

    def _features(self, problem: Problem) -> Any:
        F = compute_scaled_features(problem)
        return apply_features(F), {"features": F.shape[1]}

    def _tensor(self, problem: Problem) -> Any:
        K, pairs = compute_tensor(problem), np.outer(problem.y, problem.y).ravel()
        K *= float(problem.y @ problem.y) / float(pairs @ (K @ pairs))
        return apply_tensor(K), {}

    def _same(self, problem: Problem) -> Any:
        from mixnorm.engines import dual, tensor

        made = tensor.represent(problem.kernel, problem.X, Q)
        factor = 1.0 / compute_scale(made.contraction, problem.y)
        return dual.ScaledContraction(made.contraction, factor).matrix, {
            "representation": made.name
        }


@dataclass(frozen=True)
class Lasso(Method):
    """scikit-learn's Lasso path on the same features, with its own penalties and tolerance."""

    gapped: ClassVar[bool] = False

    def run(self, problem: Problem) -> dict[str, Any]:
        from sklearn.linear_model import lasso_path

        F = np.asfortranarray(compute_features(problem, Q))
        lasso_path(F, problem.y, n_alphas=len(problem.gammas))
        return {"features": F.shape[1]}


@dataclass(frozen=True)
class Ridge(Method):
    """scikit-learn's kernel ridge regression on the Gram matrix of explicit features."""

    gapped: ClassVar[bool] = False

    def run(self, problem: Problem) -> dict[str, Any]:
        from sklearn.kernel_ridge import KernelRidge

        F = compute_features(problem, 2.0)
        K, y = F @ F.T, problem.y
        for gamma in problem.gammas * (y @ y) / (y @ K @ y):
            KernelRidge(alpha=1.0 / gamma, kernel="precomputed").fit(K, y)
        return {"features": F.shape[1]}


def compute_features(problem: Problem, q: float) -> np.ndarray:
    """Return explicit features, one in each column; their weights depend on the exponent."""
    return np.ascontiguousarray(problem.kernel.features(problem.X, q).T)


def compute_scaled_features(problem: Problem) -> np.ndarray:
    """Return explicit features, scaled like the kernel."""
    F = compute_features(problem, Q)
    sums = (problem.y @ F) ** 2
    F *= (float(problem.y @ problem.y) / float(sums @ sums)) ** (1.0 / Q)
    return F


def compute_tensor(problem: Problem) -> np.ndarray:
    """Return the kernel of four rows as a matrix of ``n^2`` by ``n^2`` pairs."""
    columns = problem.kernel.columns(problem.X)
    pairs = (columns[:, None] * columns).reshape(len(columns) ** 2, -1)
    return np.asarray(problem.kernel.of_products(pairs @ pairs.T))


METHODS: dict[str, Method] = {
    "newton": Dual(),
    "newton-features": Dual("features"),
    "newton-tensor": Dual("tensor"),
    "newton-sampled": Dual("sampled"),
    "gradient": Dual(solver="gradient"),
    "textbook-features": Textbook("features"),
    "textbook-tensor": Textbook("tensor"),
    "textbook-same": Textbook("same"),
    "fista": Fista(),
    "fista-extrapolated": Fista(extrapolate=True),
    "lasso": Lasso(),
    "ridge": Ridge(),
}
