"""The methods of ``benchmarks.mkl``: our kernel learners and others, on the same kernels."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from benchmarks.mkl.data import Kernels

C = 10.0
FOLDS, DRAWS = 3, 20
RIDGES = np.logspace(-6, 3, 10)  # himalaya's alphas
RIDGE = 1e-3  # the alpha of himalaya's single fit
# Our search has as many values of C as himalaya has penalties, and as many p as its short search
# draws.
COSTS, EXPONENTS = np.logspace(-1, 3, 10), (1.0, 1.2, 1.5, 2.0)


@dataclass(frozen=True)
class Outcome:
    """The predicted labels of the test rows, and facts about the fit."""

    labels: np.ndarray
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Inputs:
    """Kernels in the form that a library takes, and the bytes of the training kernels."""

    K: Any
    K_test: Any
    y: Any
    held: int


@dataclass(frozen=True)
class Method:
    """Base of all methods. Methods have no state, so a name and settings identify them."""

    needs: ClassVar[str] = "sklearn"
    ours: ClassVar[bool] = False

    def available(self) -> bool:
        """Return whether the library is installed."""
        return importlib.util.find_spec(self.needs) is not None

    def setup(self) -> None:
        """Import what ``run`` needs."""
        importlib.import_module(self.needs)

    def convert(self, kernels: Kernels) -> Inputs:
        """Return kernels in the form that the library takes; not timed."""
        return Inputs(kernels.K, kernels.K_test, kernels.y, kernels.K.nbytes)

    def run(self, inputs: Inputs) -> Outcome:
        """Fit and predict; this call is timed."""
        raise NotImplementedError


@dataclass(frozen=True)
class Average(Method):
    """``SVC`` on the average kernel; averaging is timed only with ``whole``."""

    whole: bool = False

    def convert(self, kernels: Kernels) -> Inputs:
        if self.whole:
            return super().convert(kernels)
        means = (np.mean(part, axis=0)[None] for part in (kernels.K, kernels.K_test))
        K, K_test = means
        return Inputs(K, K_test, kernels.y, K.nbytes)

    def run(self, inputs: Inputs) -> Outcome:
        K, K_test = (
            np.mean(part, axis=0) if self.whole else part[0] for part in (inputs.K, inputs.K_test)
        )
        return Outcome(_make_svc(K, inputs.y).predict(K_test))


@dataclass(frozen=True)
class Single(Method):
    """``SVC`` on the kernel with the best accuracy on three folds."""

    def run(self, inputs: Inputs) -> Outcome:
        scores = np.zeros(len(inputs.K))
        for train, test in make_folds(inputs.y, FOLDS):
            for m, K in enumerate(inputs.K):
                model = _make_svc(K[np.ix_(train, train)], inputs.y[train])
                scores[m] += model.score(K[np.ix_(test, train)], inputs.y[test])
        best = int(np.argmax(scores))
        labels = _make_svc(inputs.K[best], inputs.y).predict(inputs.K_test[best])
        facts = {"kernel": best, "cv_accuracy": float(scores[best] / FOLDS)}
        return Outcome(labels, facts | {"fits": len(inputs.K) * FOLDS})


@dataclass(frozen=True)
class MKLpy(Method):
    """MKLpy, one class against the rest, each with an ``SVC`` on its combined kernel."""

    needs: ClassVar[str] = "MKLpy"

    name: str = "EasyMKL"
    dtype: str = "float64"  # EasyMKL multiplies with float64 tensors, and refuses float32
    settings: dict[str, Any] = field(default_factory=dict)

    def setup(self) -> None:
        import torch

        importlib.import_module("MKLpy.algorithms")
        torch.set_num_threads(1)

    def convert(self, kernels: Kernels) -> Inputs:
        import torch

        K, K_test = (
            [torch.from_numpy(matrix.astype(self.dtype)) for matrix in part]
            for part in (kernels.K, kernels.K_test)
        )
        held = kernels.K.size * np.dtype(self.dtype).itemsize
        return Inputs(K, K_test, torch.from_numpy(kernels.y), held)

    def run(self, inputs: Inputs) -> Outcome:
        from MKLpy import algorithms
        from sklearn.svm import SVC

        made = getattr(algorithms, self.name)(learner=SVC(C=C), **self.settings)
        return Outcome(np.asarray(made.fit(inputs.K, inputs.y).predict(inputs.K_test)))


@dataclass(frozen=True)
class Himalaya(Method):
    """himalaya: ridge regression on one-hot targets with random kernel weights.

    One draw is compared with single fits of others. It has one penalty and one held-out fold, which
    is as close as the interface comes to a single fit. More draws are a search.
    """

    needs: ClassVar[str] = "himalaya"

    draws: int = DRAWS

    def setup(self) -> None:
        importlib.import_module("himalaya.kernel_ridge")

    def convert(self, kernels: Kernels) -> Inputs:
        K, K_test = (part.astype(np.float64) for part in (kernels.K, kernels.K_test))
        return Inputs(K, K_test, kernels.y, K.nbytes)

    def run(self, inputs: Inputs) -> Outcome:
        parts, ridges = make_folds(inputs.y, FOLDS), RIDGES
        if self.draws == 1:
            parts, ridges = parts[:1], np.array([RIDGE])
        model = make_himalaya(inputs.y, parts, draws=self.draws, ridges=ridges)
        model.fit(inputs.K, np.eye(int(inputs.y.max()) + 1)[inputs.y])
        facts = {"fits": self.draws * len(ridges) * len(parts)}
        return Outcome(np.argmax(model.predict(inputs.K_test), axis=1), facts)


@dataclass(frozen=True)
class Ours(Method):
    """One of our classifiers with ``kernel="precomputed"``, solved to a relative gap of 1 %."""

    needs: ClassVar[str] = "mixnorm"
    ours: ClassVar[bool] = True

    name: str = "MKLClassifier"
    settings: dict[str, Any] = field(default_factory=dict)

    def setup(self) -> None:
        self.model()

    def model(self) -> Any:
        """Return a fresh model."""
        import mixnorm

        settings = {"C": C} | self.settings
        return getattr(mixnorm, self.name)(kernel="precomputed", **settings)

    def run(self, inputs: Inputs) -> Outcome:
        model = self.model().fit(inputs.K, inputs.y)
        return Outcome(model.predict(inputs.K_test), collect_facts(model))


@dataclass(frozen=True)
class OurSearch(Ours):
    """``MKLClassifierCV``, which chooses ``C`` and ``p`` on the same folds as other searches."""

    name: str = "MKLClassifierCV"

    def model(self) -> Any:
        import mixnorm

        return getattr(mixnorm, self.name)(kernel="precomputed", Cs=COSTS, ps=EXPONENTS)

    def run(self, inputs: Inputs) -> Outcome:
        model = self.model().set_params(cv=make_folds(inputs.y, FOLDS)).fit(inputs.K, inputs.y)
        chosen = {name: float(value) for name, value in model.best_params_.items()}
        facts = collect_facts(model) | chosen | {"fits": len(COSTS) * len(EXPONENTS) * FOLDS}
        return Outcome(model.predict(inputs.K_test), facts)


def collect_facts(model: Any) -> dict[str, Any]:
    """Return facts about a fitted model of ours."""
    return {
        "gap": float(model.dual_gap_ / model.objective_) if model.objective_ else 0.0,
        "iterations": int(model.n_iter_),
        "kernels": int(np.count_nonzero(model.kernel_weights_)),
        "support": len(model.support_),
    }


def make_folds(y: np.ndarray, number: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of stratified folds."""
    from sklearn.model_selection import StratifiedKFold

    cut = StratifiedKFold(number, shuffle=True, random_state=seed)
    return list(cut.split(np.zeros(len(y)), y))


def make_himalaya(
    y: np.ndarray,
    parts: list[tuple[np.ndarray, np.ndarray]],
    *,
    draws: int = DRAWS,
    ridges: np.ndarray = RIDGES,
) -> Any:
    """Return himalaya's learner for these folds, because it cannot stratify one-hot targets."""
    from himalaya.kernel_ridge import MultipleKernelRidgeCV
    from sklearn.model_selection import PredefinedSplit

    places = np.full(len(y), -1)  # rows that are never held out
    for number, (_, test) in enumerate(parts):
        places[test] = number
    settings = {"n_iter": draws, "alphas": ridges, "progress_bar": False}
    return MultipleKernelRidgeCV(
        kernels="precomputed",
        solver_params=settings,
        fit_intercept=True,
        cv=PredefinedSplit(places),
        random_state=0,
    )


def _make_svc(K: np.ndarray, y: np.ndarray) -> Any:
    from sklearn.svm import SVC

    return SVC(C=C, kernel="precomputed").fit(K, y)


MIRROR = {"solver": "mirror", "epochs": 10, "random_state": 0}
HARD = {"C": 4096.0, "beta": 0.01}

METHODS: dict[str, Method] = {
    "svc-average": Average(),
    "svc-average-made": Average(whole=True),
    "mklpy-average": MKLpy(name="AverageMKL", dtype="float32"),
    "mklpy-easy": MKLpy(settings={"lam": 0.1}),
    "himalaya-fit": Himalaya(draws=1),
    "lp": Ours(),
    "l1": Ours(settings={"p": 1.0}),
    "l2": Ours(settings={"p": 2.0}),
    "average": Ours(settings={"p": np.inf}),
    "conv": Ours(name="ConvMKLClassifier"),
    "smsd": Ours(name="SMSDMKLClassifier"),
    "smsd-hard": Ours(name="SMSDMKLClassifier", settings=HARD),
    "smsd-mirror": Ours(name="SMSDMKLClassifier", settings=MIRROR),
    "ufo": Ours(name="UFOMKLClassifier"),
    "ufo-mirror": Ours(name="UFOMKLClassifier", settings=MIRROR),
    # Searches follow the single fits.
    "svc-single": Single(),
    "himalaya-short": Himalaya(draws=len(EXPONENTS)),
    "himalaya": Himalaya(),
    "lp-search": OurSearch(),
}
