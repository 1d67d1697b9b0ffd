"""Learners with a few kernels, whose number is chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from mixnorm.estimators._common.parameters import (
    ClassWeight,
    ListOf,
    Loss,
    Number,
    maybe,
    values_to_try,
)
from mixnorm.estimators.kernels.base import KernelTraining
from mixnorm.estimators.kernels.greedy import (
    GreedyClassifier,
    GreedyMKLClassifier,
    GreedyMKLRegressor,
    GreedyRegressor,
)
from mixnorm.estimators.kernels.greedy_base import (
    GreedyKernelLearner,
    GreedyKernelParameters,
    ScannedTraining,
)
from mixnorm.estimators.kernels.search_base import KernelProblem, KernelSearch
from mixnorm.selection import Candidate, FixedScores


@dataclass(eq=False, kw_only=True)
class KernelPathProblem(KernelProblem):
    """A search over sizes and penalties: one path per penalty, which has models of all sizes.

    Parameters
    ----------
    estimator, X, y, weight, training
        As in :class:`KernelProblem`.
    alphas : list of float
        The penalties.
    """

    alphas: list[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.chains = [self.estimator._count_rounds(self.training)] * len(self.alphas)

    def _chain(
        self, part: ScannedTraining, train: np.ndarray, test: np.ndarray, number: int
    ) -> Iterator[Candidate]:
        alpha = self.alphas[number]
        # One path has the models of all sizes, so a chain costs one fit.
        path = self.learner({"alpha": alpha})._find_path(part)
        if path.interrupted:  # a shorter path would bias the choice
            raise KeyboardInterrupt
        model, X = part.path_model(path), self.rows_of(test)
        # If no kernel helps, the model without kernels is the candidate of size one.
        stages = model.staged_scores(X) if model.size else [model.scores(X)]
        size = self.estimator._size
        for count, scores in enumerate(stages, 1):
            known = FixedScores(scores, part.outputs)
            yield Candidate({size: count, "alpha": alpha}, test, scores, known)


@dataclass(eq=False, repr=False, kw_only=True)
class _KernelCountSearch(GreedyKernelParameters, KernelSearch, GreedyKernelLearner):
    """A search over the sizes of one path per penalty."""

    alphas: Annotated[Any, maybe(ListOf(Number(above=0, why="it is what kernels cost")))] = None

    def _build_problem(self, *rows: Any, training: KernelTraining) -> KernelPathProblem:
        alphas = values_to_try(self.alpha if self.alphas is None else self.alphas, "alphas")
        return KernelPathProblem(*rows, training=training, alphas=alphas)


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyMKLRegressorCV(_KernelCountSearch, GreedyRegressor):
    """:class:`GreedyMKLRegressor` with the number of kernels chosen by cross-validation.

    One path is fitted per fold and penalty, all of its sizes are scored on the held-out rows, and
    one path on all rows is fitted to the size that did best. Kernels are computed once.

    Parameters
    ----------
    bank, kernel, algorithm, step, n_steps, scan, rank, tol, max_iter
        As in :class:`GreedyMKLRegressor`.
    n_kernels : int, default=10
        The largest number of kernels to try. With ``algorithm="l2"`` the number of steps is
        chosen, up to ``n_steps``.
    alpha : float, default=1e-3
        Weight of the penalty, unless ``alphas`` are given.
    alphas : list of float, optional
        Values of ``alpha`` to try, each with a path per fold; None tries ``alpha`` alone.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        Score to maximise; None takes R².
    one_standard_error : bool, default=False
        Choose the fewest kernels whose mean score is within one standard error of the best, at the
        penalty of the best.
    n_jobs : int, default=None
        Paths fitted at the same time, in processes; None means 1, -1 all processors.

    Attributes
    ----------
    best_params_ : dict
        The chosen ``"n_kernels"`` (``"n_steps"`` with ``algorithm="l2"``) and ``"alpha"``.
    best_score_, best_index_, cv_results_, n_splits_
        As in :class:`MKLClassifierCV`.
    selected_kernels_, selected_names_, path_, dual_coef_, intercept_, kernel_names_, bank_, \
support_, null_loss_, cost_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`GreedyMKLRegressor`, of the fit on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import GreedyMKLRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((200, 20))
    >>> y = np.sin(2.0 * X[:, 4]) + np.abs(X[:, 7])
    >>> model = GreedyMKLRegressorCV(n_kernels=5, one_standard_error=True).fit(X, y)
    >>> model.best_params_
    {'n_kernels': 2, 'alpha': 0.001}
    """

    _kind = GreedyMKLRegressor


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyMKLClassifierCV(_KernelCountSearch, GreedyClassifier):
    """:class:`GreedyMKLClassifier` with the number of kernels chosen by cross-validation.

    One path is fitted per fold and penalty, all of its sizes are scored on the held-out rows, and
    one path on all rows is fitted to the size that did best. Kernels are computed once.

    Parameters
    ----------
    bank, kernel, algorithm, loss, step, n_steps, scan, rank, tol, max_iter
        As in :class:`GreedyMKLClassifier`.
    class_weight : dict or "balanced", optional
        Weights of the classes, which multiply the sample weights in training; a class that is not
        in the dictionary weighs 1. ``"balanced"`` gives all classes the same total weight. Scores
        do not count them.
    n_kernels : int, default=10
        The largest number of kernels to try. With ``algorithm="l2"`` the number of steps is
        chosen, up to ``n_steps``.
    alpha : float, default=1e-3
        Weight of the penalty, unless ``alphas`` are given.
    alphas : list of float, optional
        Values of ``alpha`` to try, each with a path per fold; None tries ``alpha`` alone.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None takes five.
    scoring : str or callable, default=None
        Score to maximise; None takes accuracy.
    one_standard_error : bool, default=False
        Choose the fewest kernels whose mean score is within one standard error of the best, at the
        penalty of the best.
    n_jobs : int, default=None
        Paths fitted at the same time, in processes; None means 1, -1 all processors.

    Attributes
    ----------
    best_params_ : dict
        The chosen ``"n_kernels"`` (``"n_steps"`` with ``algorithm="l2"``) and ``"alpha"``.
    best_score_, best_index_, cv_results_, n_splits_
        As in :class:`MKLClassifierCV`.
    classes_, selected_kernels_, selected_names_, path_, dual_coef_, intercept_, kernel_names_, \
bank_, support_, null_loss_, cost_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`GreedyMKLClassifier`, of the fit on all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mixnorm import GreedyMKLClassifierCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GreedyMKLClassifierCV(n_kernels=6, one_standard_error=True).fit(X, y)
    >>> model.best_params_["n_kernels"] == len(model.selected_kernels_) < 6
    True
    >>> model.best_score_ > 0.9
    True
    """

    _kind = GreedyMKLClassifier

    loss: Loss = "squared"
    class_weight: ClassWeight = None
