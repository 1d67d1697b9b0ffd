"""Learning with tensor kernels, with ``gamma`` chosen by cross-validation along the path."""

from __future__ import annotations

import math
import numbers
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier

from mixnorm.engines import dual, tensor
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import (
    Anything,
    ClassWeight,
    Count,
    Folds,
    Loss,
    Seed,
    Switch,
    Tolerance,
)
from mixnorm.estimators._common.progress import Progress, all_or_nothing, with_callbacks
from mixnorm.estimators._common.search import SearchedMixin, explained, row_folds, values_to_try
from mixnorm.estimators.tensor.base import (
    Components,
    Exponent,
    Kernel,
    Representation,
    TensorKernelLearner,
    Training,
    encoded_target,
)
from mixnorm.estimators.tensor.learners import TensorClassifier, TensorRegressor
from mixnorm.exceptions import InterruptedFitWarning, NotConvergedWarning
from mixnorm.models import ClassOutputs
from mixnorm.selection import SearchResult

# What gammas are tried where a number of them is given.
_LEAST, _MOST = 1e-2, 1e4


class TensorKernelCV(SearchedMixin, TensorKernelLearner):
    """Adds the search: the kernel is computed once, and every fold goes along ``gammas``."""

    search_: SearchResult

    @property
    def gamma_(self) -> float:
        """The value chosen."""
        return float(self.best_params_["gamma"])

    @property
    def gammas_(self) -> np.ndarray:
        """The values tried, in ascending order."""
        return np.asarray(self.cv_results_["gamma"])

    def _check_together(self) -> None:
        super()._check_together()
        self._gammas()

    def _gammas(self) -> np.ndarray:
        """Return what is tried, in ascending order."""
        if isinstance(self.gammas, numbers.Integral) and not isinstance(self.gammas, bool):
            if self.gammas < 1:
                raise ValueError(f"gammas={self.gammas!r} must be at least 1, or a list of values.")
            return np.geomspace(_LEAST, _MOST, int(self.gammas))
        values = np.array(values_to_try(self.gammas, "gammas"), dtype=np.float64)
        if not np.all((values > 0.0) & np.isfinite(values)):
            raise ValueError(f"gammas={self.gammas!r} must be positive and finite.")
        return np.sort(values)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose ``gamma``, and fit with the best on all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type; or the targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, which multiply ``gamma`` and count in the scores.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            data = self._data(X, y, sample_weight)
            labels = np.asarray(y)
            weight = np.zeros(data.n_samples)
            weight[data.kept] = data.weight
            nothing = np.zeros(len(labels))
            splits = row_folds(
                self.cv, nothing, labels, classifier=is_classifier(self), weight=weight
            )
            progress = Progress.of_fit(self, X, y, sample_weight, len(splits) + 1)
            made = self._represented(data.rows)
            self.search_ = self._search(made, data, splits, progress)
            task = progress.task("refit", data.y.shape[1])
            self._learn(made, data, self.search_.best_params["gamma"], task)
            task.end(dict)
            progress.end(dict)
            return self

    def _search(
        self, made: tensor.Representation, data: Training, splits: list[Any], progress: Progress
    ) -> SearchResult:
        """Return what was found by cross-validation."""
        scores: list[np.ndarray] = []
        held: list[tuple[np.ndarray, np.ndarray]] = []
        missed = np.zeros(len(self._gammas()), dtype=np.intp)
        places = np.full(data.n_samples, -1)
        places[data.kept] = np.arange(len(data.kept))
        try:
            for train, test in splits:
                task = progress.task("fold")
                train, test = (places[rows][places[rows] >= 0] for rows in (train, test))
                given, ended = self._fold(made.contraction, data, train, test)
                held.append((test, given))
                missed += ~ended
                truth, weight = data.y[test], data.weight[test]
                scores.append(np.array([self._score(truth, one, weight) for one in given]))
                task.end()
        except KeyboardInterrupt:
            if not scores:
                raise
            warn_caller(
                f"Interrupted after {len(scores)} of {len(splits)} folds, by which gamma is "
                "chosen.",
                InterruptedFitWarning,
            )
        table = np.stack(scores, axis=1)
        if not np.any(np.isfinite(table)):
            table = self._pooled(held, data)[:, None]
        means = np.nanmean(table, axis=1)
        best = int(np.argmax(np.round(means, 12)))
        gammas = self._gammas()
        gamma = float(gammas[best])
        if missed[best]:
            warn_caller(
                f"At gamma={gamma:g}, which was chosen, {missed[best]} fits of folds did not "
                f"reach the tolerance {self.tol:g}. Raise max_iter or tol.",
                NotConvergedWarning,
            )
        results = {
            "gamma": gammas,
            "mean_test_score": means,
            "std_test_score": np.nanstd(table, axis=1),
            "split_test_scores": table,
        }
        return SearchResult(results, {"gamma": gamma}, float(means[best]))

    def _fold(
        self, contraction: dual.Contraction, data: Training, train: np.ndarray, test: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what all ``gammas`` give the test rows of one fold, and which fits ended well."""
        if len(train) == 0:
            raise ValueError("A fold has no training rows of positive weight; give other folds.")
        part, weight = contraction.take(train), data.weight[train]
        middle = self._middle(data.y[train], weight)
        outputs = self._outputs(part, data.y[train] - middle, weight)
        gammas = self._gammas()
        given = np.empty((len(gammas), len(test), len(outputs)))
        ended = np.ones(len(gammas), dtype=bool)
        for place, output in enumerate(outputs):
            found = list(
                dual.path(
                    dual.Scaled(part, 1.0 / output.scale),
                    output.loss,
                    encoded_target(output),
                    gammas.tolist(),
                    weight=weight,
                    **self._options(),
                )
            )
            if found[-1].interrupted:
                raise KeyboardInterrupt
            alphas = np.zeros((contraction.n, len(gammas)))
            # A row may be in a training part several times.
            np.add.at(alphas, train, np.stack([one.alpha for one in found], axis=1))
            ended &= np.array([one.converged for one in found])
            # With zeros for the rows that are left out, their scores are predictions.
            scores = contraction.scores(alphas)[test] / output.scale
            given[:, :, place] = scores.T * output.unit + middle[place]
        return given, ended

    def _pooled(self, held: list[tuple[np.ndarray, np.ndarray]], data: Training) -> np.ndarray:
        """Return scores of all held-out rows together, where no fold can be scored by itself."""
        rows = np.concatenate([test for test, _ in held])
        if len(rows) < 2:
            raise ValueError("No fold has test rows of positive weight; give other folds.")
        given = np.concatenate([part for _, part in held], axis=1)
        return np.array([self._score(data.y[rows], one, data.weight[rows]) for one in given])

    def _score(self, y: np.ndarray, given: np.ndarray, weight: np.ndarray) -> float:
        """Return how good scores are: accuracy, or the share of variance explained."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class TensorKernelRegressorCV(TensorKernelCV, TensorRegressor):
    """:class:`TensorKernelRegressor` with ``gamma`` chosen by cross-validation.

    The kernel is computed once, for all rows, and so are the units of the columns: no target is
    used for either. Every fold takes its rows, and goes along the path of ``gammas``.

    Parameters
    ----------
    kernel, q, loss, fit_intercept, standardize, representation, n_components, solver, tol, \
max_iter, random_state
        As in :class:`TensorKernelRegressor`.
    gammas : int or list of float, default=100
        Values of ``gamma`` to try; a number of them goes from 0.01 to 10000.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.

    Attributes
    ----------
    gamma_ : float
        The value chosen.
    best_score_ : float
        Its mean share of variance explained.
    gammas_ : ndarray of shape (n_gammas,)
        The values tried, in ascending order.
    cv_results_ : dict
        ``gamma``, and for each the scores by fold, their mean and standard deviation.
    representation_, kernel_, kernel_error_, kernel_mass_, dual_coef_, intercept_, gamma_raw_, \
objective_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TensorKernelRegressor`, of the fit on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import TensorKernelRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((60, 5))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> model = TensorKernelRegressorCV(gammas=20, cv=3).fit(X, y)
    >>> model.best_score_ > 0.9
    True
    """

    kernel: Kernel = None
    _: KW_ONLY
    q: Exponent = 4
    gammas: Anything = 100
    cv: Folds = 5
    loss: Loss = "squared"
    fit_intercept: Switch = True
    standardize: Switch = True
    representation: Representation = "auto"
    n_components: Components = None
    solver: Anything = "newton"
    tol: Tolerance = 1e-8
    max_iter: Count = 200
    random_state: Seed = None

    def _score(self, y: np.ndarray, given: np.ndarray, weight: np.ndarray) -> float:
        return explained(y, given, weight)


@dataclass(eq=False, repr=False)
class TensorKernelClassifierCV(TensorKernelCV, TensorClassifier):
    """:class:`TensorKernelClassifier` with ``gamma`` chosen by cross-validation.

    Parameters
    ----------
    kernel, q, loss, class_weight, standardize, representation, n_components, solver, tol, \
max_iter, random_state
        As in :class:`TensorKernelClassifier`.
    gammas : int or list of float, default=30
        Values of ``gamma`` to try; a number of them goes from 0.01 to 10000.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.

    Attributes
    ----------
    gamma_, gammas_, best_score_, cv_results_
        As in :class:`TensorKernelRegressorCV`; scores are accuracies.
    classes_, representation_, kernel_, kernel_error_, kernel_mass_, dual_coef_, gamma_raw_, \
objective_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TensorKernelClassifier`, of the fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixnorm import TensorKernelClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TensorKernelClassifierCV(gammas=[1.0, 10.0, 100.0], cv=3).fit(X, y)
    >>> model.best_score_ > 0.9
    True
    """

    kernel: Kernel = None
    _: KW_ONLY
    q: Exponent = 4
    gammas: Anything = 30
    cv: Folds = 5
    loss: Loss = "logistic"
    class_weight: ClassWeight = None
    standardize: Switch = True
    representation: Representation = "auto"
    n_components: Components = None
    solver: Anything = "newton"
    tol: Tolerance = 1e-8
    max_iter: Count = 200
    random_state: Seed = None

    def _score(self, y: np.ndarray, given: np.ndarray, weight: np.ndarray) -> float:
        total = float(np.sum(weight))
        places = ClassOutputs(np.arange(max(2, y.shape[1])))
        right = places.labels(given) == places.labels(y)
        return float(np.sum(weight * right)) / total if total > 0.0 else math.nan
