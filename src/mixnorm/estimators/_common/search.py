"""The base of all estimators that choose parameters by cross-validation."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import metadata_routing

from mixnorm._array import ArrayLike, MatrixLike, to_numpy
from mixnorm.data import BlockTable, find_table
from mixnorm.estimators._common.arrays import take_rows
from mixnorm.estimators._common.blocks.tables import require_y
from mixnorm.estimators._common.fitted import FittedMixin
from mixnorm.estimators._common.folds import fold_splitter, row_folds
from mixnorm.estimators._common.inputs import apply_class_weights
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import Folds, Jobs, Scoring, Switch
from mixnorm.estimators._common.progress import FitTask, all_or_nothing, with_callbacks
from mixnorm.estimators._common.regressor import r2
from mixnorm.exceptions import InterruptedFitWarning, NotConvergedWarning
from mixnorm.selection import Candidate, SearchResult, choose, search

#: Name of the fact that the fit of a candidate ended before it reached its tolerance.
UNFINISHED = "unfinished"


@dataclass(eq=False)
class RowProblem(ABC):
    """The rows of a search, with scores of candidates on held-out rows.

    Subclasses fit the candidates.

    Parameters
    ----------
    estimator : estimator
        The learner without cross-validation. It has validated ``X`` but has no model.
    X : {array, sparse matrix}
        All rows.
    y : array of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    weight : ndarray of shape (n_samples,) or None
        Their weights.
    """

    estimator: Any
    X: Any
    y: Any
    weight: np.ndarray | None
    #: The largest number of candidates of each chain.
    chains: Sequence[int] = field(default=(), init=False)
    # The latest held-out rows, with their X and y: all candidates of a path share them.
    _last: tuple[Any, Any, Any] = field(default=(None, None, None), init=False)

    @abstractmethod
    def fold(self, train: Any, test: Any) -> Callable[[int], Iterator[Candidate]]:
        """Return a function that yields the candidates of a chain, fitted on the rows ``train``."""

    def splits(self, cv: object, groups: ArrayLike | None) -> list[tuple[Any, Any]]:
        """Return the training rows and the test rows of every fold."""
        splits = row_folds(
            cv,
            self.X,
            to_numpy(self.y),
            groups,
            classifier=is_classifier(self.estimator),
            weight=self.weight,
        )
        if self.weight is not None and not all(
            np.any(self.weight[train] > 0.0) for train, _ in splits
        ):
            raise ValueError(
                "In a fold of cv, sample_weight is zero for all training rows. Shuffle the rows, "
                "give fewer folds, or leave out rows of weight zero."
            )
        return splits

    def training_weights(self, rows: np.ndarray) -> np.ndarray:
        """Return weights of the training rows of a fold: of samples times those of classes."""
        weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
        if is_classifier(self.estimator):
            weight = apply_class_weights(self.estimator.class_weight, self.y[rows], weight)
        return weight

    def score(self, candidate: Candidate) -> float:
        """Return the accuracy or R²; NaN if the held-out rows are too few for it."""
        # The scores are known; a scorer of scikit-learn would compute them again.
        found = to_numpy(candidate.model.outputs.labels(candidate.scores))
        y = to_numpy(self.y)[candidate.rows]
        weight = np.ones(len(y)) if self.weight is None else self.weight[candidate.rows]
        if not is_classifier(self.estimator):
            # One row does not vary.
            return r2(y, found, weight) if np.count_nonzero(weight > 0.0) > 1 else math.nan
        total = float(np.sum(weight))
        return float(np.sum(weight * (found == y))) / total if total > 0.0 else math.nan

    def held_out_data(self, candidate: Candidate) -> tuple[Any, Any]:
        """Return ``X`` and ``y`` of the held-out rows."""
        rows = candidate.rows
        # All candidates of a fold have the very same array of rows, so that identity tells them
        # apart.
        if self._last[0] is not rows:
            self._last = rows, take_rows(self.X, rows), take_rows(self.y, rows)
        return self._last[1:]

    def metadata(self, candidate: Candidate, given: dict[str, Any]) -> dict[str, Any]:
        """Return the held-out part of metadata of all rows."""
        return {
            name: take_rows(column, candidate.rows)
            for name, column in given.items()
            if np.ndim(column) > 0  # a scalar weight changes no score
        }

    def make_estimator(self, candidate: Candidate) -> Any:
        """Return an estimator with the model of a candidate."""
        # A scorer calls ``predict``, which reads the model: nothing is fitted.
        estimator = copy.copy(self.estimator)
        estimator.model_ = candidate.model
        return estimator

    def score_with(
        self, scorer: Callable[..., float], metadata: dict[str, Any], candidate: Candidate
    ) -> float:
        """Return the score that one of scikit-learn's scorers gives a candidate."""
        if isinstance(candidate.rows, np.ndarray) and len(candidate.rows) == 0:
            return math.nan  # all held-out rows of the fold have weight zero
        X, y = self.held_out_data(candidate)
        own = self.metadata(candidate, metadata)
        return float(scorer(self.make_estimator(candidate), X, y, **own))


@dataclass(eq=False, repr=False)
class SearchParameters:
    """Parameters of every search."""

    _: KW_ONLY
    cv: Folds = None
    scoring: Scoring = None
    one_standard_error: Switch = False
    n_jobs: Jobs = None


class SearchedMixin(SearchParameters, FittedMixin):
    """An estimator whose fit begins with a search, which is kept as ``search_``."""

    # Groups go to the splitter only.
    __metadata_request__fit: ClassVar = {"groups": metadata_routing.UNUSED}

    search_: SearchResult
    #: The error message if no fold has a candidate.
    _no_candidate = "No fold has a candidate that can be fitted."

    # --- methods of subclasses

    def _search_problem(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Any:
        """Check the data and return the search problem."""
        raise NotImplementedError

    def _refit(self, problem: Any, params: dict[str, Any], progress: FitTask) -> None:
        """Fit with the chosen parameters on all rows."""
        raise NotImplementedError

    def _fit_table(self, table: BlockTable) -> Self:
        """Search and fit on a table of row blocks, for learners that can."""
        raise TypeError(
            f"{type(self).__name__} takes arrays in memory, and not a table of row blocks. Search "
            "on a sample of the rows (table.sample), then fit the learner without search on all."
        )

    def _more_columns(self, found: SearchResult) -> dict[str, Any]:
        """Return more columns of ``cv_results_``, under names that scikit-learn does not have."""
        return {}

    # --- fit

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Choose the parameters by cross-validation, then fit with the best on all rows.

        After an interrupt (Ctrl-C) during the search, the finished folds decide.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, as the learner without cross-validation takes them.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, in the fits and in the scores.
        groups : array-like of shape (n_samples,), optional
            Labels for splitters that keep groups of samples together.
        **params : dict
            What the scorer requests, where scikit-learn's metadata routing is enabled.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        table = find_table(X, y, sample_weight)
        groups, metadata = self._route_metadata(sample_weight, groups, params)
        with all_or_nothing(self):
            if table is not None:
                return self._fit_table(table)
            y = require_y(self, y)
            problem = self._search_problem(X, y, sample_weight)
            # Folds, scorer and metadata are checked before the first fit, which may take hours.
            splits = problem.splits(self.cv, groups)
            scorer = self._scorer()
            score = problem.score
            if scorer is not None:
                score = partial(problem.score_with, scorer, metadata)
            progress = FitTask.of_fit(self, X, y, sample_weight, len(splits) + 1)
            found = search(
                problem,
                splits,
                scoring={"score": score},
                n_jobs=self.n_jobs,
                progress=progress,
            )
            self._keep_search(found, len(splits))
            self._refit(problem, self.search_.best_params, progress)
            progress.end(dict)
            return self

    def _keep_search(self, found: SearchResult, n_splits: int) -> None:
        """Choose a candidate and keep the result of the search."""
        if not len(found.chains):
            raise ValueError(self._no_candidate)
        best = choose(found, one_standard_error=bool(self.one_standard_error))
        results = found.cv_results | self._more_columns(found)
        self.search_ = replace(found, best_index=best, cv_results=results)
        self._report_search(n_splits)

    def _make_learner(self, learner: Callable[..., Any], **params: Any) -> Any:
        """Return the learner without cross-validation, with the same parameters and ``params``.

        It has the number of columns of this estimator; the rows of a search have no names.
        """
        own: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        # The search has parameters of its own, which the learner does not take.
        known = learner().get_params(deep=False)
        plain = learner(**{name: own[name] for name in known if name in own} | params)
        plain.n_features_in_ = getattr(self, "n_features_in_", None)
        return plain

    def _report_search(self, n_splits: int) -> None:
        """Warn if the search was interrupted, or fits of the chosen candidate did not converge."""
        found = self.search_
        if found.interrupted:
            warn_caller(
                f"Interrupted during the search over {n_splits} folds; the finished folds decide "
                "which parameters are chosen.",
                InterruptedFitWarning,
            )
        cut = found.facts.get(UNFINISHED)
        n_cut = 0 if cut is None else int(np.nansum(cut[:, found.best_index]))
        if n_cut:
            chosen = ", ".join(
                f"{name}={_format(value)}" for name, value in found.best_params.items()
            )
            warn_caller(
                f"At {chosen}, which was chosen, the fits of {n_cut} folds did not reach "
                f"tol={self.tol:g} within "  # type: ignore[attr-defined]
                f"max_iter={self.max_iter}. Raise max_iter or tol, or scale X.",  # type: ignore[attr-defined]
                NotConvergedWarning,
            )

    # --- scorers, and the routing of groups and weights

    def _scorer(self) -> Callable[..., float] | None:
        from sklearn.metrics import check_scoring

        return None if self.scoring is None else check_scoring(self, scoring=self.scoring)

    def get_metadata_routing(self) -> Any:
        """Return which metadata the splitter and the scorer take.

        Returns
        -------
        MetadataRouter
        """
        router = metadata_routing.MetadataRouter(owner=self).add_self_request(self)
        users = {
            "split": ("splitter", fold_splitter(self.cv, classifier=is_classifier(self))),
            "score": ("scorer", self._scorer()),
        }
        for method, (name, user) in users.items():
            if user is not None:
                mapping = metadata_routing.MethodMapping().add(caller="fit", callee=method)
                router.add(method_mapping=mapping, **{name: user})
        return router

    def _route_metadata(
        self,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        params: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """Return the groups for the splitter and the metadata for the scorer."""
        from sklearn import get_config

        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if not get_config()["enable_metadata_routing"]:
            if params:
                raise TypeError(
                    f"fit does not take {', '.join(sorted(params))}; scorers get such metadata "
                    "only after sklearn.set_config(enable_metadata_routing=True)."
                )
            return groups, weights
        given = params | weights | ({} if groups is None else {"groups": groups})
        routed = metadata_routing.process_routing(self, "fit", **given)
        scored = routed.scorer.score if self.scoring is not None else {}
        return routed.splitter.split.get("groups"), dict(scored)

    # --- attributes read from the search

    def _get_search(self) -> SearchResult:
        self._get_model()
        return self.search_

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Parameters and held-out scores of every candidate."""
        return self._get_search().cv_results

    @property
    def best_index_(self) -> int:
        """The row of the chosen candidate in ``cv_results_``."""
        return self._get_search().best_index

    @property
    def best_params_(self) -> dict[str, Any]:
        """Parameters of the chosen candidate."""
        return self._get_search().best_params

    @property
    def best_score_(self) -> float:
        """Mean held-out score of the chosen candidate."""
        return self._get_search().best_score

    @property
    def n_splits_(self) -> int:
        """The number of folds with scores."""
        return self._get_search().n_splits


def _format(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
