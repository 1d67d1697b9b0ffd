"""The search for a model: held-out errors of all sizes, the choice of a size, a fit on all rows.

The paths of the folds come first, because they show held-out errors while they grow. An interrupt
keeps what is finished: then the path of the first fold is the model.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from mixnorm.cli.arguments.parser import DEFAULT_MAX_FEATURES, UsageError
from mixnorm.cli.data import TrainingTable
from mixnorm.cli.held_out import (
    FoldPath,
    Split,
    TablePathProblem,
    compute_null_error,
    estimate_standard_error,
    select_weights,
    split_rows,
)
from mixnorm.cli.pools import make_pool
from mixnorm.cli.progress import RoundCallback, SearchBar
from mixnorm.cli.screen import Screen
from mixnorm.exceptions import InterruptedFitWarning, MixnormWarning, TableError
from mixnorm.selection import SearchResult, choose, standard_error
from mixnorm.tables import pluralize

# With more rows than this and a given size, one fold measures the error well enough.
_ROWS_FOR_ONE_FOLD = 20_000
_FOLDS = 5


@dataclass
class NestedErrors:
    """The error of each outer fold with the size chosen on its training rows."""

    errors: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    @property
    def error(self) -> float:
        """The mean error."""
        return float(np.mean(self.errors))

    @property
    def standard_error(self) -> float:
        """Its standard error over the folds."""
        return float(standard_error(np.array(self.errors)[:, None])[0])


@dataclass
class SearchOutcome:
    """The outcome of a search.

    Parameters
    ----------
    model : estimator
        The model of the chosen size.
    path : estimator
        The same path, continued to the largest size that was fitted.
    chosen : int
        Number of features of the model.
    errors, standard_errors : list of float
        Held-out errors with 1, 2, ... features, and their standard errors.
    null_error : float
        Held-out error without features.
    held_out : tuple of ndarray
        Targets of held-out rows, and predictions of the fold models of the chosen size.
    held_weight : ndarray or None
        The weights of these rows, if any.
    folds : list of FoldPath
        The fold models.
    given : int or None
        The size that the user gave, if any.
    n_splits : int
        Number of folds before any interrupt.
    smaller : int or None
        A smaller size than the one given that is as good within one standard error.
    nested : NestedErrors or None
        Errors of nested cross-validation, if measured.
    interrupted : str
        A sentence on what was kept after an interrupt; else empty.
    notes : list of str
        Warnings of the fits.
    seconds : float
        Duration of the search.
    """

    model: Any
    path: Any
    chosen: int
    errors: list[float]
    standard_errors: list[float]
    null_error: float
    held_out: tuple[np.ndarray, np.ndarray]
    held_weight: np.ndarray | None
    folds: list[FoldPath]
    given: int | None = None
    n_splits: int = 1
    smaller: int | None = None
    nested: NestedErrors | None = None
    interrupted: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


class TableSearch:
    """A search that measures all sizes on held-out rows, chooses one, and fits it on all rows.

    Parameters
    ----------
    data : TrainingTable
        The training table.
    options : Namespace
        The options under "learning".
    screen : Screen
        The screen for progress.
    whole : bool
        Whether the path on all rows continues beyond the chosen size.
    """

    def __init__(
        self, data: TrainingTable, options: argparse.Namespace, screen: Screen, *, whole: bool
    ) -> None:
        _check_loss(options.loss, data.task)
        self.data, self.options, self.whole = data, options, whole
        self.given = options.features if options.command == "fit" else None
        asked = int(options.features or getattr(options, "max_features", DEFAULT_MAX_FEATURES))
        self.limit = min(asked, len(data.encoder.names)) if data.pool == "columns" else asked
        self.folds = options.folds or _FOLDS
        self.inner = self.folds if options.nested else 0
        self.notes: list[str] = []
        self.interrupted = ""
        self.nested = NestedErrors()
        self.splits = self._make_splits()
        rounds = (len(self.splits) * (1 + self.inner) + 1) * self.limit
        self.bar = SearchBar(screen, data.task, rounds, data.word)

    def run(self) -> SearchOutcome:
        """Run the search; after an interrupt, keep what is finished."""
        began = time.perf_counter()
        model = path = None
        with self.bar, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured, folds = self._measure(self.splits)
            if not folds:
                self._raise_no_feature()
            if not measured.interrupted:
                with suppress(KeyboardInterrupt):
                    errors = np.abs(measured.cv_results["mean_test_error"]).tolist()
                    model, path = self._refit(self._choose(measured), errors)
                    if self.inner and not path.model_.path.interrupted:
                        self._nest(folds)
        found = self._make_outcome(measured, folds, model, path)
        found.seconds = time.perf_counter() - began
        return found

    def _make_outcome(
        self, measured: SearchResult, folds: list[FoldPath], model: Any, path: Any
    ) -> SearchOutcome:
        errors = np.abs(measured.cv_results["mean_test_error"]).tolist()
        spread = measured.cv_results["standard_error_error"].tolist()
        held_out = np.concatenate([fold.test for fold in folds])
        truth, weight = self.data.y[held_out], select_weights(self.data, held_out)
        if len(folds) == 1:
            spread = [
                estimate_standard_error(truth, found, weight, self.data.task)
                for found in folds[0].predictions
            ]
        chosen = self._choose(measured) if model is None else model.model_.size
        interrupted = self.interrupted
        if model is None:
            kept = folds[0]
            model, path = kept.model.truncate(chosen), kept.model
            interrupted = (
                f"The search was interrupted; the model of {pluralize(chosen, self.data.word)} was "
                f"fitted on {len(kept.train)} of {len(self.data.y)} rows."
            )
        elif self.given and self.given > chosen and not interrupted:
            self.notes.append(self._explain_fewer(chosen))
        nulls = [compute_null_error(self.data, fold.train, fold.test) for fold in folds]
        predictions = [fold.predictions[chosen - 1] for fold in folds]
        return SearchOutcome(
            model=model,
            path=path,
            chosen=chosen,
            errors=errors,
            standard_errors=spread,
            null_error=float(np.mean(nulls)),
            held_out=(truth, np.concatenate(predictions)),
            held_weight=weight,
            folds=folds,
            given=self.given,
            n_splits=len(self.splits),
            smaller=self._find_smaller(errors, spread, chosen),
            nested=self.nested if self.nested.errors else None,
            interrupted=interrupted,
            notes=list(dict.fromkeys(self.notes)),
        )

    # Folds.

    def _make_splits(self) -> list[Split]:
        y, weight = self.data.y, self.data.weight
        splits = split_rows(y, self.data.task, self.folds, self.options.seed)
        if weight is not None and any(not weight[train].any() for train, _ in splits):
            raise TableError(
                "The weights are positive in too few rows to hold some of them out; give fewer "
                "--folds, or weights to more rows."
            )
        one = self.given is not None and self.options.folds is None and len(y) > _ROWS_FOR_ONE_FOLD
        return splits[:1] if one else splits

    def _measure(self, splits: list[Split], outer: str = "") -> tuple[SearchResult, list[FoldPath]]:
        """Return the scores of all sizes on held-out rows, and the folds with a feature."""
        names = [f"{outer}fold {number} of {len(splits)}" for number in range(1, len(splits) + 1)]
        if len(self.splits) == 1:
            names = ["fitting"]
        return TablePathProblem(
            self.data, self._make_estimator(self.limit), self.bar, names
        ).score_sizes(splits)

    def _choose(self, measured: SearchResult) -> int:
        if self.given is not None:
            return len(measured.chains)
        return choose(measured, metric="error", one_standard_error=True) + 1

    def _nest(self, folds: list[FoldPath]) -> None:
        """Choose a size within the training rows of each fold, and take its error on the others.

        The path of the fold is fitted already; only the search for its size is repeated.
        """
        self.bar.expect(len(folds) * self.inner * self.limit)
        y, weight = self.data.y, self.data.weight
        for number, fold in enumerate(folds, start=1):
            inner = split_rows(y[fold.train], self.data.task, self.inner, self.options.seed)
            splits = [(fold.train[train], fold.train[test]) for train, test in inner]
            if weight is not None:
                splits = [(train, test) for train, test in splits if weight[train].any()]
            size = 1
            if splits:
                outer = f"fold {number} of {len(self.splits)}, inner "
                measured, scored = self._measure(splits, outer)
                if measured.interrupted:
                    raise KeyboardInterrupt
                if scored:
                    size = min(self._choose(measured), len(fold.errors))
            self.nested.errors.append(fold.errors[size - 1])
            self.nested.sizes.append(size)

    # The model.

    def _make_estimator(self, size: int) -> Any:
        from mixnorm.engines.greedy import GreedyOptions
        from mixnorm.estimators import ShareBoostClassifier, ShareBoostRegressor

        options, pool = self.options, make_pool(self.data.pool, self.data.encoder.groups)
        kind = ShareBoostClassifier if self.data.task == "classification" else ShareBoostRegressor
        return kind(
            size,
            alpha=options.alpha,
            loss=options.loss,
            pool=pool,
            max_inputs=options.max_inputs,
            random_state=options.seed,
            options=GreedyOptions(rule=options.rule, swaps=options.swaps),
        )

    def _refit(self, chosen: int, errors: list[float]) -> tuple[Any, Any]:
        """Fit the chosen size on all rows, then continue if the whole path is wanted."""
        last = self.limit if self.whole else chosen
        self.bar.expect(last)
        callback = self.bar.stage(
            "all rows", last, lambda model: errors[min(model.model_.size, len(errors)) - 1]
        )
        path = self._make_estimator(chosen).set_params(warm_start=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", MixnormWarning)
            warnings.simplefilter("ignore", InterruptedFitWarning)
            self._fit(path, callback)
        self.notes += [str(warning.message) for warning in caught]
        done, stopped = path.model_.size, path.model_.path.interrupted
        if stopped and done < chosen:
            self._keep_interrupted(path, chosen)
        if not done:
            self._raise_no_feature()
        model = copy.copy(path).set_params(warm_start=False)
        if last > done and not stopped:
            path = copy.copy(path).set_params(n_features_to_select=last)
            self._fit(path, callback)
        return model, path

    def _keep_interrupted(self, path: Any, chosen: int) -> None:
        """Raise, as the path of a fold has more features than an interrupted one of all rows."""
        raise KeyboardInterrupt

    def _fit(self, model: Any, callback: RoundCallback) -> None:
        model.set_callbacks(callback)
        model.fit(self.data.X, self.data.y, sample_weight=self.data.weight).set_callbacks()

    def _find_smaller(self, errors: list[float], spread: list[float], chosen: int) -> int | None:
        """Return a size below the one given that is within one standard error of the best."""
        if self.given is None:
            return None
        best = int(np.argmin(errors[:chosen]))
        size = int(np.argmax(np.array(errors) <= errors[best] + spread[best])) + 1
        return size if size < chosen else None

    # Words.

    def _raise_no_feature(self) -> NoReturn:
        raise TableError(
            f"No column of {self.data.name} helps to predict {self.data.target!r}: none lowers "
            "the loss. Check that the target depends on the columns."
        )

    def _explain_fewer(self, chosen: int) -> str:
        """Return a sentence on why there are fewer features than requested."""
        most = self.options.max_inputs
        if self.data.pool == "columns" and len(self.data.encoder.names) <= chosen:
            why = "exist"
        else:
            why = "lower the loss" + (f" within --max-inputs {most}" if most else "")
        return f"Of {self.given} requested {self.data.word}s, only {chosen} {why}."


def _check_loss(loss: str | None, task: str) -> None:
    fitting = ("squared",) if task == "regression" else ("margin", "logistic")
    if loss is not None and loss not in fitting:
        raise UsageError(f"--loss {loss} is not for {task}; choose {' or '.join(fitting)}")
