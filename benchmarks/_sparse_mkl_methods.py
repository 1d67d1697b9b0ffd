"""The methods of the table of ``benchmarks.sparse_mkl``, from rows to a model.

Learners that take kernels are given all of them, computed by ``convert``: that is timed apart.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks._mkl_data import Rows
from benchmarks._mkl_methods import C, Method, himalaya_model
from benchmarks._sparse_mkl_data import WIDTHS, bank, stack

CHOSEN = 12  # kernels, or columns of a pipeline
ALPHA = 1e-4  # of the regressors, whose targets have little noise; labels have the default
FOLDS = 5  # himalaya's default
LAMBDA = 0.1  # EasyMKL's default
PART = 50  # test rows whose kernels are computed at a time


@dataclass(frozen=True)
class Model:
    """A fitted learner: how it predicts, and the kernels it uses (None: it has none)."""

    predict: Any
    kernels: int | None = None


@dataclass(frozen=True)
class Learner(Method):
    """Base of the methods of the table: rows in place of kernels, a model in place of labels."""

    stored: ClassVar[bool] = False  # whether all kernels are held in memory

    classes: bool = False  # learns labels, not values

    def convert(self, rows: Rows) -> Any:
        """Give rows the form that the library takes."""
        return rows

    def run(self, inputs: Any) -> Model:
        """Fit; this is what is timed."""
        raise NotImplementedError


@dataclass(frozen=True)
class Greedy(Learner):
    """One of our learners of a few kernels, on the bank of all widths on every column."""

    needs: ClassVar[str] = "mixnorm"
    ours: ClassVar[bool] = True

    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, inputs: Any) -> Model:
        import mixnorm

        kind = mixnorm.GreedyMKLClassifier if self.classes else mixnorm.GreedyMKLRegressor
        settings: dict[str, Any] = {} if self.classes else {"alpha": ALPHA}
        settings |= {"n_kernels": CHOSEN} | self.settings
        model = kind(bank(), **settings).fit(inputs.X, inputs.y)
        return Model(model.predict, len(model.selected_kernels_))


@dataclass(frozen=True)
class Himalaya(Learner):
    """himalaya's random search: 20 draws of the weights of all kernels, ten penalties."""

    needs: ClassVar[str] = "himalaya"
    stored: ClassVar[bool] = True

    def setup(self) -> None:
        importlib.import_module("himalaya.kernel_ridge")

    def convert(self, rows: Rows) -> Any:
        return rows, stack(rows.X, rows.X)

    def run(self, inputs: Any) -> Model:
        from sklearn.model_selection import KFold

        rows, K = inputs
        cut = KFold(FOLDS, shuffle=True, random_state=0)
        model = himalaya_model(rows.y, list(cut.split(rows.X)))
        model.fit(K, rows.y[:, None])

        def predict(X: np.ndarray) -> np.ndarray:
            parts = (X[start : start + PART] for start in range(0, len(X), PART))
            return np.concatenate([model.predict(stack(part, rows.X))[:, 0] for part in parts])

        return Model(predict, int(np.count_nonzero(np.exp(model.deltas_))))


@dataclass(frozen=True)
class Easy(Learner):
    """EasyMKL's weights of all kernels, one class against the rest; an ``SVC`` on the heaviest.

    The heaviest are those whose weights, added up over the classes, are largest; the machine has
    their average.
    """

    needs: ClassVar[str] = "MKLpy"
    stored: ClassVar[bool] = True

    def setup(self) -> None:
        import torch

        importlib.import_module("MKLpy.algorithms")
        torch.set_num_threads(1)

    def convert(self, rows: Rows) -> Any:
        import torch

        # The tensors share the memory of the stack.
        K = stack(rows.X, rows.X)
        return rows, K, [torch.from_numpy(matrix) for matrix in K]

    def run(self, inputs: Any) -> Model:
        import torch
        from MKLpy.algorithms import EasyMKL
        from sklearn.svm import SVC

        rows, K, matrices = inputs
        learner = EasyMKL(lam=LAMBDA, learner=SVC())
        total = np.zeros(len(K))
        for label in np.unique(rows.y):
            sides = torch.from_numpy(np.where(rows.y == label, 1, -1))
            total += learner.combine_kernels(matrices, sides).weights.numpy()
        chosen = np.sort(np.argsort(-total)[:CHOSEN])
        model = SVC(C=C, kernel="precomputed").fit(np.mean(K[chosen], axis=0), rows.y)

        def predict(X: np.ndarray) -> np.ndarray:
            found: np.ndarray = model.predict(np.mean(stack(X, rows.X, chosen), axis=0))
            return found

        return Model(predict, len(chosen))


@dataclass(frozen=True)
class Pipeline(Learner):
    """scikit-learn: columns chosen by a score of each, then a machine with one Gaussian kernel."""

    score: str = "f_regression"
    machine: str = "ridge"

    def run(self, inputs: Any) -> Model:
        from sklearn import feature_selection
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC, SVR

        machines = {"ridge": KernelRidge(alpha=0.1, kernel="rbf"), "svr": SVR(C=C), "svc": SVC(C=C)}
        size = min(CHOSEN, inputs.X.shape[1])
        choice = feature_selection.SelectKBest(getattr(feature_selection, self.score), k=size)
        # Kernel ridge has no intercept: its targets are centred.
        centre = float(np.mean(inputs.y)) if self.machine == "ridge" else 0
        model = make_pipeline(StandardScaler(), choice, machines[self.machine])
        model.fit(inputs.X, inputs.y - centre)
        return Model(lambda X: model.predict(X) + centre, 1)


@dataclass(frozen=True)
class Boosting(Learner):
    """scikit-learn's gradient boosting of trees, with its defaults."""

    def run(self, inputs: Any) -> Model:
        from sklearn import ensemble

        name = "GradientBoostingClassifier" if self.classes else "GradientBoostingRegressor"
        model = getattr(ensemble, name)(random_state=0).fit(inputs.X, inputs.y)
        return Model(model.predict)


METHODS: dict[str, Learner] = {
    "gomp": Greedy(),
    "l1": Greedy(settings={"algorithm": "l1", "alpha": 1e-2}),
    "l2": Greedy(settings={"algorithm": "l2", "n_steps": 3 * CHOSEN}),
    "himalaya": Himalaya(),
    "kbest-ridge": Pipeline(),
    "mutual-ridge": Pipeline(score="mutual_info_regression"),
    "kbest-svr": Pipeline(machine="svr"),
    "boosting": Boosting(),
    "gomp-classes": Greedy(classes=True),
    "gomp-logistic": Greedy(classes=True, settings={"loss": "logistic"}),
    "easymkl": Easy(classes=True),
    "kbest-svc": Pipeline(classes=True, score="f_classif", machine="svc"),
    "mutual-svc": Pipeline(classes=True, score="mutual_info_classif", machine="svc"),
    "boosting-classes": Boosting(classes=True),
}


def features_of(kernels: int) -> int:
    """Return how many columns have so many kernels."""
    features, rest = divmod(kernels, len(WIDTHS))
    if rest or not features:
        raise ValueError(f"{kernels} kernels are not {len(WIDTHS)} for each of some columns.")
    return features
