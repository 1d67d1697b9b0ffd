"""The libraries mixnorm is measured beside: their defaults, except the number of features."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from benchmarks._data import Matrix, is_sparse
from benchmarks._methods import Method, Point, bisect_penalty, used_rows


@dataclass(frozen=True)
class Abess(Method):
    """abess: best subset by splicing, one fit per size. Its interface takes float64."""

    needs: ClassVar[str] = "abess"
    sparse: ClassVar[bool] = True
    inner_iterations: int = 10

    def convert(self, X: Matrix) -> Matrix:
        return X.astype(np.float64)

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from abess.linear import MultinomialRegression

        model = MultinomialRegression(
            support_size=size, primary_model_fit_max_iter=self.inner_iterations
        )
        return model.fit(X, y)

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        # The class's own predict wants a dense matrix; these are the same scores.
        def predict(X: Matrix) -> np.ndarray:
            scores = np.asarray(X @ fitted.coef_) + fitted.intercept_
            return np.asarray(fitted.classes_[np.argmax(scores, axis=1)])

        return [Point(size, used_rows(fitted.coef_), predict)]


class _Logistic:
    """Mean multinomial logistic loss and gradient for skscope, which asks for them one by one.

    The scores of the last point are kept, because value and gradient are asked for at the same
    point, and only the rows of ``W`` in use enter the product: twice to three times faster than
    the same objective in jax, compiled. The ridge is that of the prototype in the issue's table;
    without it skscope takes longer and errs more.
    """

    def __init__(self, X: Matrix, y: np.ndarray, ridge: float) -> None:
        self.X, self.ridge = X, ridge
        self.target = np.eye(y.max() + 1, dtype=X.dtype)[y]
        self._at: np.ndarray | None = None

    def _update(self, params: np.ndarray) -> None:
        if self._at is not None and np.array_equal(self._at, params):
            return
        n, k = self.target.shape
        W = params.reshape(-1, k).astype(self.X.dtype)
        rows = np.flatnonzero(W.any(axis=1))
        scores = self.X[:, rows] @ W[rows]
        scores -= scores.max(axis=1, keepdims=True)
        own = np.einsum("ij,ij->i", scores, self.target)
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        self._value = float(np.mean(np.log(total[:, 0]) - own))
        self._residual = (scores / total - self.target) / scores.dtype.type(n)
        self._at = params.copy()

    def value(self, params: np.ndarray) -> float:
        self._update(params)
        return self._value + self.ridge * float(params @ params)

    def gradient(self, params: np.ndarray) -> np.ndarray:
        self._update(params)
        return np.ravel(self.X.T @ self._residual).astype(float) + 2 * self.ridge * params


@dataclass(frozen=True)
class Skscope(Method):
    """skscope's OMP: one group of k coefficients per feature, value and gradient by NumPy.

    Its forward steps pass through every smaller size, so the models of one run are collected as it
    goes; each is what a run to that size returns. ``intercept`` adds a group that is always
    selected.
    """

    needs: ClassVar[str] = "skscope"
    path: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    intercept: bool = False
    ridge: float = 0.5e-4

    def convert(self, X: Matrix) -> Matrix:
        if not self.intercept:
            return X
        ones: Matrix = np.ones((X.shape[0], 1), dtype=X.dtype)
        if is_sparse(X):
            return sparse.hstack([sparse.csr_matrix(ones), X], format="csr")
        return np.hstack([ones, X])

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from skscope import OMPSolver, convex_solver_LBFGS

        loss = _Logistic(X, y, self.ridge)
        k, extra = loss.target.shape[1], int(self.intercept)
        kept: dict[int, tuple[np.ndarray, float]] = {}
        start = time.process_time()

        def solver(value: Any, both: Any, params: Any, free: Any, data: Any) -> Any:
            result = convex_solver_LBFGS(value, both, params, free, data)
            kept[len(free) // k - extra] = result[1].copy(), time.process_time() - start
            return result

        omp = OMPSolver(
            X.shape[1] * k,
            size + extra,
            X.shape[0],
            group=np.repeat(np.arange(X.shape[1]), k),
            preselect=[0] if self.intercept else [],
            numeric_solver=solver,
        )
        omp.solve(lambda p: loss.value(p), gradient=lambda p: loss.gradient(p))
        return kept, k

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        kept, k = fitted
        total = max(seconds for _, seconds in kept.values())
        extra = int(self.intercept)

        def point(count: int, params: np.ndarray, seconds: float) -> Point:
            W = params.reshape(-1, k)

            def predict(X: Matrix) -> np.ndarray:
                return np.asarray(np.argmax(X @ W, axis=1))

            return Point(count, used_rows(W[extra:]), predict, seconds / total)

        return [point(count, *kept[count]) for count in sorted(kept) if count > 0]


@dataclass(frozen=True)
class SklearnL1(Method):
    """scikit-learn's l1 ``LogisticRegression`` (saga), its ``C`` found by bisection."""

    needs: ClassVar[str] = "sklearn"
    sparse: ClassVar[bool] = True

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(l1_ratio=1.0, solver="saga", random_state=0, **tuned)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # saga's default 100 passes are not always enough
            return model.fit(X, y)

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        counts = np.bincount(y) / len(y)
        largest = np.abs(X.T @ (np.eye(len(counts), dtype=X.dtype)[y] - counts)).max()
        penalty = bisect_penalty(
            lambda value: used_rows(self.fit(X, y, size, C=1 / value).coef_.T), size, float(largest)
        )
        return {"C": 1 / penalty}

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        return [Point(size, used_rows(fitted.coef_.T), fitted.predict)]


@dataclass(frozen=True)
class Sequential(Method):
    """scikit-learn's ``SequentialFeatureSelector``, forward, around ``LogisticRegression``."""

    needs: ClassVar[str] = "sklearn"

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from sklearn.feature_selection import SequentialFeatureSelector
        from sklearn.linear_model import LogisticRegression

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selector = SequentialFeatureSelector(LogisticRegression(), n_features_to_select=size)
            chosen = selector.fit(X, y).get_support(indices=True)
            return chosen, LogisticRegression().fit(X[:, chosen], y)

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        chosen, model = fitted
        return [Point(size, len(chosen), lambda X: model.predict(X[:, chosen]))]


@dataclass(frozen=True)
class Spams(Method):
    """spams' FISTA on the multinomial loss with a mixed norm, its weight found by bisection."""

    needs: ClassVar[str] = "spams"
    norm: str = "l1l2"

    def convert(self, X: Matrix) -> Matrix:
        ones = np.ones((X.shape[0], 1))
        return np.asfortranarray(np.hstack([X, ones]), dtype=np.float64)

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        import spams

        target = np.asfortranarray(y.reshape(-1, 1), dtype=np.float64)
        start = np.zeros((X.shape[1], y.max() + 1), order="F")
        return spams.fistaFlat(
            target,
            X,
            start,
            numThreads=1,
            loss="multi-logistic",
            regul=self.norm,
            intercept=True,
            tol=1e-4,
            it0=10,
            **tuned,
        )

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        order = {"l1l2": 2, "l1linf": 1}[self.norm]
        residual = np.eye(y.max() + 1)[y] - np.bincount(y) / len(y)
        gradient = X[:, :-1].T @ residual / len(y)
        largest = float(np.linalg.norm(gradient, ord=order, axis=1).max())

        def count(penalty: float) -> int:
            return used_rows(self.fit(X, y, size, lambda1=penalty)[:-1])

        return {"lambda1": bisect_penalty(count, size, largest)}

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        return [Point(size, used_rows(fitted[:-1]), lambda X: np.argmax(X @ fitted, axis=1))]


@dataclass(frozen=True)
class Boosted(Method):
    """Boosted trees retrained on their own top features by gain; both fits are timed."""

    sparse: ClassVar[bool] = True

    def model(self) -> Any:
        raise NotImplementedError

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        gains = self.model().fit(X, y).feature_importances_
        chosen = np.sort(np.argsort(-gains, kind="stable")[:size])
        model = self.model().fit(X[:, chosen], y)
        return chosen, model

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        chosen, model = fitted
        used = int(np.count_nonzero(model.feature_importances_))
        return [Point(size, used, lambda X: model.predict(X[:, chosen]))]


@dataclass(frozen=True)
class LightGBM(Boosted):
    """LightGBM with its defaults."""

    needs: ClassVar[str] = "lightgbm"

    def model(self) -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(importance_type="gain", n_jobs=1, verbose=-1, random_state=0)


@dataclass(frozen=True)
class XGBoost(Boosted):
    """XGBoost with its defaults."""

    needs: ClassVar[str] = "xgboost"

    def model(self) -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(importance_type="total_gain", n_jobs=1, random_state=0)


# The first three are what the bar is measured against; the others search for a penalty or fit
# twice, and are run on all training rows only.
PEERS: dict[str, Method] = {
    "abess-10": Abess(inner_iterations=10),
    "abess-100": Abess(inner_iterations=100),
    "skscope": Skscope(largest={"mnist": 10}),
    "sklearn-l1": SklearnL1(once=True),
    "sequential": Sequential(only=("digits",), once=True),
    "spams": Spams(once=True),
    "lightgbm": LightGBM(once=True),
    "xgboost": XGBoost(once=True),
}
