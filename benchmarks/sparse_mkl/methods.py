"""The methods of the table of ``benchmarks.sparse_mkl``, from rows to a model.

Each chooses its parameters by the same inner folds (``tune``), and is then fitted with them
(``run``). Both are timed. ``convert`` computes all kernels for learners that take kernels; it is
timed separately.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks.mkl.data import Rows
from benchmarks.mkl.methods import Method, make_himalaya
from benchmarks.sparse_mkl.data import WIDTHS, compute_stack, make_bank, measure_error

CHOSEN = 12  # kernels, or columns of a pipeline, without tuning
ALPHA = 1e-4  # of our learners, without tuning
FOLDS = 3  # of every search
PART = 50  # test rows whose kernels are computed at a time
# Grids, with the strongest penalty first, because the first of equal scores wins.
SIZES = (4, 8, 16)  # columns or kernels
ALPHAS = tuple(10.0**power for power in range(-1, -7, -1))
L1_ALPHAS = tuple(float(value) for value in np.geomspace(0.1, 0.001, 6))
RIDGES, COSTS, GAMMAS = (1.0, 0.1, 0.01, 0.001), (1.0, 10.0, 100.0), (0.03, 0.1, 0.3)
LAMBDAS = (0.1, 0.5, 0.9)  # EasyMKL's
DEPTHS, TREES = (1, 2, 3), 300


@dataclass(frozen=True)
class Model:
    """A fitted learner: its predictor and its number of kernels or columns (None: unknown)."""

    predict: Any
    kernels: int | None = None
    fitted: Any = None  # an estimator of ours


def make_folds(y: np.ndarray, classes: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of the folds by which all methods choose parameters."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if classes else KFold
    return list(kind(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


@dataclass(frozen=True)
class Learner(Method):
    """Base of the methods of the table, which go from rows to a model."""

    stored: ClassVar[bool] = False  # whether all kernels are held in memory

    classes: bool = False  # learns labels, not values

    def convert(self, rows: Rows) -> Any:
        """Return rows in the form that the library takes."""
        return rows

    def tune(self, inputs: Any) -> dict[str, Any]:
        """Choose parameters by the inner folds."""
        rows = inputs[0] if self.stored else inputs
        totals: dict[Any, float] = {}
        for train, test in make_folds(rows.y, self.classes):
            for setting, found in self.on_fold(inputs, train, test):
                missed = measure_error(found, rows.y[test], self.classes)
                totals[setting] = totals.get(setting, 0.0) + missed
        return dict(min(totals, key=lambda setting: totals[setting]))

    def on_fold(
        self, inputs: Any, train: np.ndarray, test: np.ndarray
    ) -> Iterator[tuple[Setting, np.ndarray]]:
        """Yield each setting with its predictions on a fold."""
        raise NotImplementedError

    def run(self, inputs: Any, **chosen: Any) -> Model:
        """Fit with the chosen parameters."""
        raise NotImplementedError


Setting = tuple[tuple[str, Any], ...]  # names and values, hashable


def list_settings(**lists: Iterable[Any]) -> Iterator[Setting]:
    """Yield all combinations of some lists of values."""
    for values in itertools.product(*lists.values()):
        yield tuple(zip(lists, values, strict=True))


@dataclass(frozen=True)
class Greedy(Learner):
    """One of our learners of a few kernels, with the bank of all widths on every column.

    ``alpha`` and the number of rounds are chosen together, because one path has all rounds.
    """

    needs: ClassVar[str] = "mixnorm"
    ours: ClassVar[bool] = True

    alphas: tuple[float, ...] = ALPHAS
    most: int = SIZES[-1]  # rounds
    widths: tuple[float, ...] = WIDTHS
    settings: dict[str, Any] = field(default_factory=dict)

    def model(self, alpha: float, rounds: int) -> Any:
        """Return a learner with a number of rounds."""
        import mixnorm

        kind = mixnorm.GreedyMKLClassifier if self.classes else mixnorm.GreedyMKLRegressor
        size = {"n_kernels": rounds}
        if self.settings.get("algorithm") == "l2":  # rounds are steps; a kernel can have several
            size = {"n_kernels": SIZES[-1], "n_steps": rounds}
        return kind(make_bank(self.widths), alpha=alpha, **size, **self.settings)

    def on_fold(
        self, inputs: Rows, train: np.ndarray, test: np.ndarray
    ) -> Iterator[tuple[Setting, np.ndarray]]:
        for alpha in self.alphas:
            model = self.model(alpha, self.most).fit(inputs.X[train], inputs.y[train])
            found = list(model.staged_predict(inputs.X[test])) or [model.predict(inputs.X[test])]
            found += [found[-1]] * (self.most - len(found))  # a path that ended early
            for rounds, labels in enumerate(found, 1):
                yield (("alpha", alpha), ("rounds", rounds)), labels

    def run(self, inputs: Rows, *, alpha: float = ALPHA, rounds: int = CHOSEN) -> Model:
        model = self.model(alpha, rounds).fit(inputs.X, inputs.y)
        return Model(model.predict, len(model.selected_kernels_), model)


@dataclass(frozen=True)
class Himalaya(Learner):
    """himalaya's random search: 20 draws of the weights of all kernels, ten penalties.

    A single fit is its kernel ridge regression on the sum of the kernels with known weights.
    """

    needs: ClassVar[str] = "himalaya"
    stored: ClassVar[bool] = True

    def setup(self) -> None:
        importlib.import_module("himalaya.kernel_ridge")

    def convert(self, rows: Rows) -> Any:
        return rows, compute_stack(rows.X, rows.X)

    def tune(self, inputs: Any) -> dict[str, Any]:
        rows, K = inputs
        model = make_himalaya(rows.y, make_folds(rows.y, self.classes))
        model.fit(K, rows.y[:, None])
        return {"weights": np.exp(model.deltas_[:, 0])}

    def run(self, inputs: Any, *, weights: np.ndarray | None = None) -> Model:
        from himalaya.kernel_ridge import KernelRidge

        rows, K = inputs
        weights = np.ones(len(K)) if weights is None else weights
        used = np.flatnonzero(weights)
        # The weights are divided by the penalty, which is then one.
        model = KernelRidge(alpha=1.0, kernel="precomputed", fit_intercept=True)
        model.fit(np.tensordot(weights, K, axes=1), rows.y)

        def predict(X: np.ndarray) -> np.ndarray:
            parts = (X[start : start + PART] for start in range(0, len(X), PART))
            sums = (
                np.tensordot(weights[used], compute_stack(part, rows.X, used), 1) for part in parts
            )
            return np.asarray(model.predict(np.concatenate(list(sums))))

        return Model(predict, len(used))


@dataclass(frozen=True)
class Easy(Learner):
    """EasyMKL's kernel weights, one class against the rest, and an ``SVC`` on the heaviest.

    The heaviest kernels have the largest weights summed over classes. The machine uses their
    average.
    """

    needs: ClassVar[str] = "MKLpy"
    stored: ClassVar[bool] = True

    def setup(self) -> None:
        import torch

        importlib.import_module("MKLpy.algorithms")
        torch.set_num_threads(1)

    def convert(self, rows: Rows) -> Any:
        return rows, compute_stack(rows.X, rows.X)

    def on_fold(
        self, inputs: Any, train: np.ndarray, test: np.ndarray
    ) -> Iterator[tuple[Setting, np.ndarray]]:
        rows, K = inputs
        own = K[:, train[:, None], train]
        for strength in LAMBDAS:
            order = sort_kernels(own, rows.y[train], strength)
            for size in SIZES:
                kept = np.sort(order[:size])
                mean = np.mean(K[kept][:, :, train], axis=0)
                for cost in COSTS:
                    model = _make_svc(mean[train], rows.y[train], cost)
                    setting = (("lam", strength), ("size", size), ("C", cost))
                    yield setting, model.predict(mean[test])

    def run(
        self, inputs: Any, *, lam: float = LAMBDAS[0], size: int = CHOSEN, C: float = 10.0
    ) -> Model:
        rows, K = inputs
        chosen = np.sort(sort_kernels(K, rows.y, lam)[:size])
        model = _make_svc(np.mean(K[chosen], axis=0), rows.y, C)

        def predict(X: np.ndarray) -> np.ndarray:
            found: np.ndarray = model.predict(np.mean(compute_stack(X, rows.X, chosen), axis=0))
            return found

        return Model(predict, len(chosen))


def sort_kernels(K: np.ndarray, y: np.ndarray, strength: float) -> np.ndarray:
    """Return the kernels in order of EasyMKL's weights, the heaviest first."""
    import torch
    from MKLpy.algorithms import EasyMKL
    from sklearn.svm import SVC

    learner = EasyMKL(lam=strength, learner=SVC())
    matrices = [torch.from_numpy(matrix) for matrix in K]  # they share the memory
    total = np.zeros(len(K))
    for label in np.unique(y):
        sides = torch.from_numpy(np.where(y == label, 1, -1))
        total += learner.combine_kernels(matrices, sides).weights.numpy()
    return np.argsort(-total, kind="stable")


def _make_svc(K: np.ndarray, y: np.ndarray, cost: float) -> Any:
    from sklearn.svm import SVC

    return SVC(C=cost, kernel="precomputed").fit(K, y)


@dataclass(frozen=True)
class Pipeline(Learner):
    """scikit-learn: columns with the best scores, then a machine with one Gaussian kernel."""

    score: str = "f_regression"
    machine: str = "ridge"

    def on_fold(
        self, inputs: Rows, train: np.ndarray, test: np.ndarray
    ) -> Iterator[tuple[Setting, np.ndarray]]:
        X, order = self._score_columns(inputs.X[train], inputs.y[train])
        strength = {"alpha": RIDGES} if self.machine == "ridge" else {"C": COSTS}
        for setting in list_settings(size=SIZES, gamma=GAMMAS, **strength):
            model = self._machine(X, order, inputs.y[train], **dict(setting))
            yield setting, model(inputs.X[test])

    def run(
        self, inputs: Rows, *, size: int = CHOSEN, gamma: float = 0.1, **strength: Any
    ) -> Model:
        X, order = self._score_columns(inputs.X, inputs.y)
        return Model(self._machine(X, order, inputs.y, size=size, gamma=gamma, **strength), 1)

    def _score_columns(self, X: np.ndarray, y: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return standardised columns with their scaler, and the columns in order of score."""
        from sklearn import feature_selection
        from sklearn.preprocessing import StandardScaler

        scaler = StandardScaler().fit(X)
        scores = getattr(feature_selection, self.score)(scaler.transform(X), y)
        scores = scores[0] if isinstance(scores, tuple) else scores
        return (scaler, scaler.transform(X)), np.argsort(-scores, kind="stable")

    def _machine(
        self, given: Any, order: np.ndarray, y: np.ndarray, *, size: int, gamma: float, **more: Any
    ) -> Any:
        """Return the predictor of the machine on the best columns."""
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.svm import SVC, SVR

        scaler, X = given
        best = order[:size]
        made = {"ridge": KernelRidge, "svr": SVR, "svc": SVC}[self.machine]
        # Kernel ridge has no intercept, so its targets are centred.
        centre = float(np.mean(y)) if self.machine == "ridge" else 0
        model = made(kernel="rbf", gamma=gamma, **more).fit(X[:, best], y - centre)
        return lambda new: model.predict(scaler.transform(new)[:, best]) + centre


@dataclass(frozen=True)
class Splines(Learner):
    """A lasso or an l1 logistic regression on scikit-learn's B-splines of every column.

    The penalty is chosen along its path for each number of knots and each kind of extrapolation.
    """

    knots: tuple[int, ...] = (5, 8, 12)
    beyond: tuple[str, ...] = ("constant", "linear")

    def _columns(self, knots: int, beyond: str) -> Any:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import SplineTransformer, StandardScaler

        return make_pipeline(
            SplineTransformer(n_knots=knots, extrapolation=beyond), StandardScaler()
        )

    def tune(self, inputs: Rows) -> dict[str, Any]:
        cut = make_folds(inputs.y, self.classes)
        found = []
        for knots, beyond in itertools.product(self.knots, self.beyond):
            X = self._columns(knots, beyond).fit_transform(inputs.X)
            score, penalty = self._path(X, inputs.y, cut)
            found.append((score, {"knots": knots, "beyond": beyond, "penalty": penalty}))
        return min(found, key=lambda one: one[0])[1]

    def _path(self, X: np.ndarray, y: np.ndarray, cut: Sequence[Any]) -> tuple[float, float]:
        """Return the smallest error on the folds, and its penalty."""
        from sklearn.linear_model import LassoCV, LogisticRegressionCV

        if not self.classes:
            model = LassoCV(cv=cut).fit(X, y)
            return float(np.min(np.mean(model.mse_path_, axis=1))), float(model.alpha_)
        model = LogisticRegressionCV(
            Cs=np.logspace(-2, 1, 7),
            cv=cut,
            l1_ratios=(1.0,),
            scoring="accuracy",
            use_legacy_attributes=False,
            **SAGA,
        ).fit(X, y)
        return 1.0 - float(np.max(np.mean(model.scores_, axis=0))), float(model.C_)

    def run(
        self,
        inputs: Rows,
        *,
        knots: int = 8,
        beyond: str = "constant",
        penalty: float | None = None,
    ) -> Model:
        from sklearn.linear_model import Lasso, LogisticRegression

        columns = self._columns(knots, beyond)
        X = columns.fit_transform(inputs.X)
        if self.classes:
            model = LogisticRegression(C=penalty or 0.1, l1_ratio=1.0, **SAGA)
        else:
            model = Lasso(alpha=penalty or 0.01)
        model.fit(X, inputs.y)
        each = X.shape[1] // inputs.X.shape[1]
        weights = np.abs(np.atleast_2d(model.coef_)).sum(axis=0).reshape(-1, each)
        used = int(np.count_nonzero(weights.sum(axis=1)))
        return Model(lambda new: model.predict(columns.transform(new)), used)


SAGA: dict[str, Any] = {"solver": "saga", "max_iter": 500, "tol": 1e-3, "random_state": 0}


@dataclass(frozen=True)
class Boosting(Learner):
    """scikit-learn's gradient boosting, with depth and number of trees chosen together."""

    def _model(self, depth: int, trees: int) -> Any:
        from sklearn import ensemble

        name = "GradientBoostingClassifier" if self.classes else "GradientBoostingRegressor"
        made = getattr(ensemble, name)
        return made(max_depth=depth, n_estimators=trees, random_state=0)

    def on_fold(
        self, inputs: Rows, train: np.ndarray, test: np.ndarray
    ) -> Iterator[tuple[Setting, np.ndarray]]:
        for depth in DEPTHS:
            model = self._model(depth, TREES).fit(inputs.X[train], inputs.y[train])
            for trees, found in enumerate(model.staged_predict(inputs.X[test]), 1):
                yield (("depth", depth), ("trees", trees)), found

    def run(self, inputs: Rows, *, depth: int = 3, trees: int = 100) -> Model:
        return Model(self._model(depth, trees).fit(inputs.X, inputs.y).predict)


METHODS: dict[str, Learner] = {
    "gomp": Greedy(),
    "l1": Greedy(alphas=L1_ALPHAS, settings={"algorithm": "l1"}),
    "l2": Greedy(alphas=(ALPHA,), most=3 * SIZES[-1], settings={"algorithm": "l2"}),
    "splines-lasso": Splines(),
    "himalaya": Himalaya(),
    "kbest-ridge": Pipeline(),
    "mutual-ridge": Pipeline(score="mutual_info_regression"),
    "kbest-svr": Pipeline(machine="svr"),
    "boosting": Boosting(),
    "gomp-classes": Greedy(classes=True),
    "gomp-logistic": Greedy(classes=True, settings={"loss": "logistic"}),
    "splines-logistic": Splines(classes=True),
    "easymkl": Easy(classes=True),
    "kbest-svc": Pipeline(classes=True, score="f_classif", machine="svc"),
    "mutual-svc": Pipeline(classes=True, score="mutual_info_classif", machine="svc"),
    "boosting-classes": Boosting(classes=True),
}


def count_features(kernels: int) -> int:
    """Return the number of columns for a number of kernels."""
    features, rest = divmod(kernels, len(WIDTHS))
    if rest or not features:
        raise ValueError(f"{kernels} kernels are not {len(WIDTHS)} for each of some columns.")
    return features
