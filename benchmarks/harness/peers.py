"""The libraries that mixnorm is compared with, with their defaults and tuned by inner folds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.methods import Method, Point, Ridged, bisect_penalty, count_rows
from benchmarks.harness.splits import Matrix
from benchmarks.harness.tuning import choose_best, list_sizes, make_folds


@dataclass(frozen=True)
class Abess(Ridged):
    """abess: best subset by splicing, one fit for each size. It takes float64."""

    needs: ClassVar[str] = "abess"
    sparse: ClassVar[bool] = True
    inner_iterations: int = 10

    def convert(self, X: Matrix) -> Matrix:
        return X.astype(np.float64)

    def fit_at(self, X: Matrix, y: np.ndarray, size: int, value: float | None) -> Any:
        from abess.linear import MultinomialRegression

        model = MultinomialRegression(
            support_size=size,
            alpha=None if value is None else value / 2,
            primary_model_fit_max_iter=self.inner_iterations,
        )
        return model.fit(X, y)

    def models(self, fitted: Any, size: int) -> Sequence[Point]:
        # The predict method of the class needs a dense matrix; these are the same scores.
        def predict(X: Matrix) -> np.ndarray:
            scores = np.asarray(X @ fitted.coef_) + fitted.intercept_
            return np.asarray(fitted.classes_[np.argmax(scores, axis=1)])

        return [Point(size, count_rows(fitted.coef_), predict)]


class _Logistic:
    """Mean multinomial logistic loss and gradient for skscope, which calls them separately.

    The scores of the last point are kept, because skscope needs value and gradient at the same
    point. Only the rows of ``W`` in use enter the product. This is two to three times as fast as
    the same objective compiled by jax. The first k parameters are the intercept, which has no ridge
    penalty.
    """

    def __init__(self, X: Matrix, y: np.ndarray, ridge: float) -> None:
        self.X, self.ridge = X, ridge
        self.target = np.eye(y.max() + 1, dtype=X.dtype)[y]
        self._at: np.ndarray | None = None

    def _update(self, params: np.ndarray) -> None:
        if self._at is not None and np.array_equal(self._at, params):
            return
        n, k = self.target.shape
        b, W = np.split(params.reshape(-1, k).astype(self.X.dtype), [1])
        rows = np.flatnonzero(W.any(axis=1))
        scores = self.X[:, rows] @ W[rows] + b
        scores -= scores.max(axis=1, keepdims=True)
        own = np.einsum("ij,ij->i", scores, self.target)
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        self._value = float(np.mean(np.log(total[:, 0]) - own))
        self._residual = (scores / total - self.target) / scores.dtype.type(n)
        self._at = params.copy()

    def value(self, params: np.ndarray) -> float:
        self._update(params)
        weights = params[self.target.shape[1] :]
        return self._value + self.ridge * float(weights @ weights)

    def gradient(self, params: np.ndarray) -> np.ndarray:
        self._update(params)
        parts = self._residual.sum(axis=0, keepdims=True), self.X.T @ self._residual
        gradient = np.concatenate(parts).ravel().astype(float)
        k = self.target.shape[1]
        gradient[k:] += 2 * self.ridge * params[k:]
        return gradient


@dataclass(frozen=True)
class Skscope(Ridged):
    """skscope's OMP: one group of k coefficients per feature, value and gradient by NumPy.

    Its forward steps pass through every smaller size. The models of all sizes are therefore
    collected in one run; each is the same as a run to that size returns. The intercept is a group
    that is always selected.
    """

    needs: ClassVar[str] = "skscope"
    path: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    ridge: float = 0.5e-4

    def fit_at(self, X: Matrix, y: np.ndarray, size: int, value: float | None) -> Any:
        from skscope import OMPSolver, convex_solver_LBFGS

        loss = _Logistic(X, y, self.ridge if value is None else value / (2 * len(y)))
        k, groups = loss.target.shape[1], X.shape[1] + 1
        kept: dict[int, tuple[np.ndarray, float]] = {}
        start = time.process_time()

        def solver(value: Any, both: Any, params: Any, free: Any, data: Any) -> Any:
            result = convex_solver_LBFGS(value, both, params, free, data)
            kept[len(free) // k - 1] = result[1].copy(), time.process_time() - start
            return result

        omp = OMPSolver(
            groups * k,
            size + 1,
            X.shape[0],
            group=np.repeat(np.arange(groups), k),
            preselect=[0],
            numeric_solver=solver,
        )
        omp.solve(lambda p: loss.value(p), gradient=lambda p: loss.gradient(p))
        return kept, k

    def models(self, fitted: Any, size: int) -> Sequence[Point]:
        kept, k = fitted
        total = max(seconds for _, seconds in kept.values())

        def point(count: int, params: np.ndarray, seconds: float) -> Point:
            b, W = np.split(params.reshape(-1, k), [1])

            def predict(X: Matrix) -> np.ndarray:
                return np.asarray(np.argmax(X @ W + b, axis=1))

            return Point(count, count_rows(W), predict, seconds / total)

        return [point(count, *kept[count]) for count in sorted(kept) if count > 0]


@dataclass(frozen=True)
class Elimination(Ridged):
    """scikit-learn's ``RFE`` with ``LogisticRegression``: to 40 columns, from these to 20, ...

    Each step drops a tenth of the columns, or a single one below ``few`` columns. The models are
    those that ``RFE`` fits on the remaining columns.
    """

    needs: ClassVar[str] = "sklearn"
    path: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    few: int = 100

    def fit_at(self, X: Matrix, y: np.ndarray, size: int, value: float | None) -> Any:
        from sklearn.feature_selection import RFE
        from sklearn.linear_model import LogisticRegression

        chosen, kept = np.arange(X.shape[1]), []
        start = time.process_time()
        for count in reversed(list_sizes(size)):
            step = 1 if len(chosen) <= self.few else 0.1
            model = LogisticRegression(C=1.0 if value is None else 1 / value)
            found = RFE(model, n_features_to_select=count, step=step).fit(X[:, chosen], y)
            chosen = chosen[found.support_]
            kept.append((chosen, found.estimator_, time.process_time() - start))
        return kept

    def models(self, fitted: Any, size: int) -> Sequence[Point]:
        total = fitted[-1][-1]

        def point(chosen: np.ndarray, model: Any, seconds: float) -> Point:
            def predict(X: Matrix) -> np.ndarray:
                return np.asarray(model.predict(X[:, chosen]))

            return Point(len(chosen), len(chosen), predict, seconds / total)

        return [point(*each) for each in reversed(fitted)]


@dataclass(frozen=True)
class SklearnL1(Method):
    """scikit-learn's l1 ``LogisticRegression`` (saga), with ``C`` found by bisection."""

    needs: ClassVar[str] = "sklearn"
    sparse: ClassVar[bool] = True

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(l1_ratio=1.0, solver="saga", random_state=0, **tuned)
        return model.fit(X, y)

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        counts = np.bincount(y) / len(y)
        largest = np.abs(X.T @ (np.eye(len(counts), dtype=X.dtype)[y] - counts)).max()
        penalty = bisect_penalty(
            lambda value: count_rows(self.fit(X, y, size, C=1 / value).coef_.T),
            size,
            float(largest),
        )
        return {"C": 1 / penalty}

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        return [Point(size, count_rows(fitted.coef_.T), fitted.predict)]


@dataclass(frozen=True)
class Sequential(Method):
    """scikit-learn's ``SequentialFeatureSelector``, forward, around ``LogisticRegression``."""

    needs: ClassVar[str] = "sklearn"

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        from sklearn.feature_selection import SequentialFeatureSelector
        from sklearn.linear_model import LogisticRegression

        selector = SequentialFeatureSelector(LogisticRegression(), n_features_to_select=size)
        chosen = selector.fit(X, y).get_support(indices=True)
        return chosen, LogisticRegression().fit(X[:, chosen], y)

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        chosen, model = fitted
        return [Point(size, len(chosen), lambda X: model.predict(X[:, chosen]))]


@dataclass(frozen=True)
class Spams(Method):
    """spams' FISTA on the multinomial loss with a mixed norm, whose penalty bisection finds."""

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
            return count_rows(self.fit(X, y, size, lambda1=penalty)[:-1])

        return {"lambda1": bisect_penalty(count, size, largest)}

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        return [Point(size, count_rows(fitted[:-1]), lambda X: np.argmax(X @ fitted, axis=1))]


@dataclass(frozen=True)
class Boosted(Method):
    """Boosted trees, fitted again on their top features by gain; the first fit serves all sizes.

    With ``tuned``, inner folds choose a setting of ``grid`` for each size.
    """

    path: ClassVar[bool] = True
    sparse: ClassVar[bool] = True
    grid: ClassVar[Sequence[dict[str, Any]]] = ()
    tuned: bool = False

    def model(self, **settings: Any) -> Any:
        raise NotImplementedError

    def order(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Return all columns, the largest gain first."""
        return np.argsort(-self.model().fit(X, y).feature_importances_, kind="stable")

    def tune(self, X: Matrix, y: np.ndarray, size: int) -> dict[str, Any]:
        if not self.tuned:
            return {}
        wrong: Counter[tuple[int, int]] = Counter()
        for X_in, y_in, X_out, y_out in make_folds(X, y):
            order = self.order(X_in, y_in)
            for each in list_sizes(size):
                top = np.sort(order[:each])
                for place, settings in enumerate(self.grid):
                    model = self.model(**settings).fit(X_in[:, top], y_in)
                    wrong[each, place] += int(np.sum(model.predict(X_out[:, top]) != y_out))
        return {"values": choose_best(wrong, list_sizes(size), self.grid)}

    def fit(self, X: Matrix, y: np.ndarray, size: int, **tuned: Any) -> Any:
        values = tuned.get("values") or [[each, {}] for each in list_sizes(size)]
        start = time.process_time()
        order = self.order(X, y)
        first, runs = time.process_time() - start, []
        for each, settings in values:
            began, top = time.process_time(), np.sort(order[:each])
            model = self.model(**settings).fit(X[:, top], y)
            runs.append((top, model, first + time.process_time() - began))
        return runs, time.process_time() - start

    def points(self, fitted: Any, size: int) -> Sequence[Point]:
        runs, total = fitted

        def point(top: np.ndarray, model: Any, seconds: float) -> Point:
            used = int(np.count_nonzero(model.feature_importances_))
            return Point(len(top), used, lambda X: model.predict(X[:, top]), seconds / total)

        return [point(*run) for run in runs]


@dataclass(frozen=True)
class LightGBM(Boosted):
    """LightGBM with its defaults, or tuned over four settings that include the defaults."""

    needs: ClassVar[str] = "lightgbm"
    grid: ClassVar[Sequence[dict[str, Any]]] = (
        {},
        {"num_leaves": 7},
        {"num_leaves": 7, "n_estimators": 200},
        {"num_leaves": 15, "n_estimators": 200, "learning_rate": 0.05},
    )

    def model(self, **settings: Any) -> Any:
        from lightgbm import LGBMClassifier

        fixed = {"importance_type": "gain", "n_jobs": 1, "verbose": -1, "random_state": 0}
        return LGBMClassifier(**fixed, **settings)


@dataclass(frozen=True)
class XGBoost(Boosted):
    """XGBoost with its defaults, or tuned over four settings that include the defaults."""

    needs: ClassVar[str] = "xgboost"
    grid: ClassVar[Sequence[dict[str, Any]]] = (
        {},
        {"max_depth": 3},
        {"max_depth": 3, "n_estimators": 200, "learning_rate": 0.2},
        {"max_depth": 4, "n_estimators": 200, "learning_rate": 0.1},
    )

    def model(self, **settings: Any) -> Any:
        from xgboost import XGBClassifier

        fixed = {"importance_type": "total_gain", "n_jobs": 1, "random_state": 0}
        return XGBClassifier(**fixed, **settings)


# abess with a ridge holds a matrix of (rows x classes) squared: 6 GB on satimage, 45 on pendigits.
SMALL = ("digits", "segment", "satimage")
# Methods that search for a penalty with a given number of features run on all training rows only.
PEERS: dict[str, Method] = {
    "abess-10": Abess(inner_iterations=10),
    "abess-100": Abess(inner_iterations=100),
    "abess-tuned": Abess(tuned=True, only=SMALL),
    "skscope": Skscope(largest={"mnist": 10}),
    "skscope-tuned": Skscope(largest={"mnist": 10}, tuned=True),
    "rfe": Elimination(),
    "rfe-tuned": Elimination(tuned=True),
    "sklearn-l1": SklearnL1(once=True),
    "sequential": Sequential(only=("digits",), once=True),
    "spams": Spams(once=True),
    "lightgbm": LightGBM(),
    "xgboost": XGBoost(),
    "lightgbm-tuned": LightGBM(tuned=True),
    "xgboost-tuned": XGBoost(tuned=True),
}
