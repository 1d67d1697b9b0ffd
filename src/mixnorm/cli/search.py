"""The search for a model: held-out errors of every size, the choice of one, the fit on all rows.

The paths of the folds come first, since they have a held-out error to show while they grow. What
is finished is kept when the user interrupts: the first fold's path is then the model.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from mixnorm.cli.arguments.parser import LONGEST, Usage
from mixnorm.cli.bar import SearchBar
from mixnorm.cli.data import Data
from mixnorm.cli.pools import make_pool
from mixnorm.cli.screen import Screen
from mixnorm.exceptions import InterruptedFitWarning, MixnormWarning, TableError
from mixnorm.selection import choose_size, standard_error
from mixnorm.tables import counted

# With this many rows one fifth set aside measures the error well enough, if the size is given.
_MANY_ROWS = 20_000
_FOLDS = 5

Split = tuple[np.ndarray, np.ndarray]


@dataclass
class Fold:
    """One path, the rows it did not see, and what it says about them."""

    model: Any
    train: np.ndarray
    test: np.ndarray
    predictions: list[np.ndarray]
    errors: list[float]


@dataclass
class Nested:
    """What each outer fold scored with the size that its own training rows chose."""

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
class Search:
    """What a search found.

    Parameters
    ----------
    model : estimator
        The model of the chosen size.
    path : estimator
        The same path, gone on as far as it was looked at.
    chosen : int
        Number of features of the model.
    errors, standard_errors : list of float
        Held-out error at 1, 2, ... features, and its standard error.
    null_error : float
        Held-out error without features.
    held_out : tuple of ndarray
        Targets and the chosen model's predictions on held-out rows.
    held_weight : ndarray or None
        The weights of these rows, where there are any.
    folds : list of Fold
        The paths behind these.
    given : int or None
        The size that was asked for, if any.
    n_splits : int
        Number of folds that were wanted.
    smaller : int or None
        A smaller size than the one given that is as good within one standard error.
    nested : Nested or None
        Errors of nested cross-validation, if that was asked for.
    interrupted : str
        What was kept, if the user interrupted.
    notes : list of str
        Warnings of the fits.
    seconds : float
        What it all took.
    """

    model: Any
    path: Any
    chosen: int
    errors: list[float]
    standard_errors: list[float]
    null_error: float
    held_out: tuple[np.ndarray, np.ndarray]
    held_weight: np.ndarray | None
    folds: list[Fold]
    given: int | None = None
    n_splits: int = 1
    smaller: int | None = None
    nested: Nested | None = None
    interrupted: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def search(data: Data, options: argparse.Namespace, screen: Screen, *, whole: bool) -> Search:
    """Measure all sizes on held-out rows, choose one, and fit it on all rows.

    Parameters
    ----------
    data : Data
        What to learn from.
    options : Namespace
        The options under "learning".
    screen : Screen
        Where to show progress.
    whole : bool
        Whether the path on all rows goes on beyond the chosen size.
    """
    return _Searcher(data, options, screen, whole).run()


class _Searcher:
    def __init__(
        self, data: Data, options: argparse.Namespace, screen: Screen, whole: bool
    ) -> None:
        self.data, self.options, self.screen, self.whole = data, options, screen, whole
        self.given = options.features if options.command == "fit" else None
        self.limit = self._limit()
        self.folds = options.folds or _FOLDS
        self.inner = self.folds if options.nested else 0
        _check_loss(options.loss, data.task)
        self.notes: list[str] = []
        self.nested = Nested()
        self.splits = self._splits()

    def _limit(self) -> int:
        asked = int(self.options.features or getattr(self.options, "max_features", LONGEST))
        return min(asked, len(self.data.encoder.names)) if self.data.pool == "columns" else asked

    def run(self) -> Search:
        """Search, and keep what there is if interrupted."""
        began = time.perf_counter()
        folds: list[Fold] = []
        model = path = None
        rounds = (len(self.splits) * (1 + self.inner) + 1) * self.limit
        with SearchBar(self.screen, self.data.task, rounds, self.data.word) as bar:
            try:
                for number, (train, test) in enumerate(self.splits, start=1):
                    folds.append(self._fold(bar, self._stage(number), train, test))
                folds = [fold for fold in folds if fold.errors] or self._fail()
                model, path = self._refit(bar, self._choose(folds), self._curve(folds)[0])
                if self.inner and not path.model_.path.interrupted:
                    self._nest(bar, folds)
            except _Interrupted as stop:
                if stop.fold is not None and not folds:
                    folds.append(stop.fold)
            except KeyboardInterrupt:
                pass
        folds = [fold for fold in folds if fold.errors]
        if not folds:
            raise KeyboardInterrupt
        found = self._result(folds, model, path)
        found.seconds = time.perf_counter() - began
        return found

    def _result(self, folds: list[Fold], model: Any, path: Any) -> Search:
        errors, spread = self._curve(folds)
        chosen = self._choose(folds) if model is None else len(model.path_["loss"])
        interrupted = ""
        asked = self.options.features
        if model is not None and asked and asked > chosen and self.given:
            self.notes.append(self._why_fewer(asked, chosen))
        if model is None:
            kept = folds[0]
            model, path = kept.model.truncate(chosen), kept.model
            interrupted = (
                f"The search was interrupted; the model of "
                f"{counted(chosen, self.data.word)} was fitted on "
                f"{len(kept.train)} of {len(self.data.y)} rows."
            )
        return Search(
            model=model,
            path=path,
            chosen=chosen,
            errors=errors,
            standard_errors=spread,
            null_error=self._null_error(folds),
            held_out=self._held_out(folds, chosen),
            held_weight=self._weight(np.concatenate([fold.test for fold in folds])),
            folds=folds,
            given=self.given,
            n_splits=len(self.splits),
            smaller=self._smaller(errors, spread, chosen),
            nested=self.nested if self.nested.errors else None,
            interrupted=interrupted,
            notes=list(dict.fromkeys(self.notes)),
        )

    # Folds.

    def _splits(self) -> list[Split]:
        y, weight = self.data.y, self.data.weight
        splits = split_rows(y, self.data.task, self.folds, self.options.seed)
        if weight is not None and any(not weight[train].any() for train, _ in splits):
            raise TableError(
                "The weights are positive in too few rows to hold some of them out; give fewer "
                "--folds, or weights to more rows."
            )
        one = self.given is not None and self.options.folds is None and len(y) > _MANY_ROWS
        return splits[:1] if one else splits

    def _stage(self, number: int) -> str:
        return "fitting" if len(self.splits) == 1 else f"fold {number} of {len(self.splits)}"

    def _fold(self, bar: SearchBar, name: str, train: np.ndarray, test: np.ndarray) -> Fold:
        """Fit a path without the rows of a fold, and score it on them."""
        data = self.data
        held = data.X[test]
        weight = np.zeros(len(data.y))
        weight[train] = 1.0 if data.weight is None else data.weight[train]
        score = self._score(test)
        callback = bar.stage(name, self.limit, lambda model: score(model.predict(held)))
        model = self._estimator(self.limit).set_callbacks(callback)
        interrupted = self._fit(model, weight, [])
        predictions = list(model.staged_predict(held))
        fold = Fold(model, train, test, predictions, [score(found) for found in predictions])
        if interrupted:
            raise _Interrupted(fold)
        return fold

    def _nest(self, bar: SearchBar, folds: list[Fold]) -> None:
        """Choose the size anew within the training rows of each fold, and score it on the others.

        The fold's path is there already; only the search for its size is done again.
        """
        bar.expect(len(folds) * self.inner * self.limit)
        for number, fold in enumerate(folds, start=1):
            found = []
            splits = split_rows(
                self.data.y[fold.train], self.data.task, self.inner, self.options.seed
            )
            for place, split in enumerate(splits, start=1):
                train, test = (fold.train[rows] for rows in split)
                if self.data.weight is None or self.data.weight[train].any():
                    name = f"{self._stage(number)}, inner fold {place} of {len(splits)}"
                    found.append(self._fold(bar, name, train, test))
            found = [inner for inner in found if inner.errors]
            size = min(self._choose(found), len(fold.errors)) if found else 1
            self.nested.errors.append(fold.errors[size - 1])
            self.nested.sizes.append(size)

    def _score(self, test: np.ndarray) -> Callable[[np.ndarray], float]:
        """Return what gives the error of predictions for some rows."""
        truth, weight = self.data.y[test], self._weight(test)
        return lambda found: mean_error(truth, found, weight, self.data.task)

    def _weight(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows; None if all count alike."""
        weight = None if self.data.weight is None else self.data.weight[rows]
        return weight if weight is not None and weight.any() else None

    def _estimator(self, size: int) -> Any:
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

    def _fit(self, model: Any, weight: np.ndarray | None, notes: list[str]) -> bool:
        """Fit, turn warnings into notes, and say whether the user interrupted."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(self.data.X, self.data.y, sample_weight=weight)
        model.set_callbacks()
        for warning in caught:
            if issubclass(warning.category, InterruptedFitWarning):
                continue
            if issubclass(warning.category, MixnormWarning):
                notes.append(str(warning.message))
        return bool(model.model_.path.interrupted)

    # The curve, and the choice.

    def _fail(self) -> NoReturn:
        raise TableError(
            f"No column of {self.data.name} helps to predict {self.data.target!r}: none lowers "
            "the loss. Check that the target depends on the columns."
        )

    def _scores(self, folds: list[Fold]) -> np.ndarray:
        """Return the errors of the folds, a path that ended early keeping its last."""
        longest = max(len(fold.errors) for fold in folds)
        return np.array(
            [fold.errors + fold.errors[-1:] * (longest - len(fold.errors)) for fold in folds]
        )

    def _curve(self, folds: list[Fold]) -> tuple[list[float], list[float]]:
        """Return the mean held-out error of every size and its standard error."""
        scores = self._scores(folds)
        if len(folds) > 1:
            return scores.mean(axis=0).tolist(), standard_error(scores).tolist()
        fold = folds[0]
        truth, weight = self.data.y[fold.test], self._weight(fold.test)
        spread = [_spread(truth, found, weight, self.data.task) for found in fold.predictions]
        return scores[0].tolist(), spread

    def _choose(self, folds: list[Fold]) -> int:
        scores = self._scores(folds)
        if self.given is not None:
            return int(scores.shape[1])
        return choose_size(-scores, one_standard_error=True) + 1

    def _smaller(self, errors: list[float], spread: list[float], chosen: int) -> int | None:
        """Return a size below the one given that is within one standard error of the best."""
        if self.given is None:
            return None
        best = int(np.argmin(errors[:chosen]))
        size = int(np.argmax(np.array(errors) <= errors[best] + spread[best])) + 1
        return size if size < chosen else None

    def _null_error(self, folds: list[Fold]) -> float:
        errors = []
        for fold in folds:
            weight = None if self.data.weight is None else self.data.weight[fold.train]
            best = _best_constant(self.data.y[fold.train], weight, self.data.task)
            errors.append(self._score(fold.test)(np.full(len(fold.test), best)))
        return float(np.mean(errors))

    def _held_out(self, folds: list[Fold], chosen: int) -> tuple[np.ndarray, np.ndarray]:
        truth = np.concatenate([self.data.y[fold.test] for fold in folds])
        found = [fold.predictions[min(chosen, len(fold.predictions)) - 1] for fold in folds]
        return truth, np.concatenate(found)

    # The model.

    def _refit(self, bar: SearchBar, chosen: int, errors: list[float]) -> tuple[Any, Any]:
        """Fit on all rows to the chosen size, and go on from there if the whole path is wanted."""
        last = self.limit if self.whole else chosen
        bar.expect(last)

        def error(model: Any) -> float:
            return errors[min(len(model.path_["loss"]), len(errors)) - 1]

        callback = bar.stage("all rows", last, error)
        path = self._estimator(chosen).set_params(warm_start=True).set_callbacks(callback)
        stopped = self._fit(path, self.data.weight, self.notes)
        if stopped and len(path.path_["loss"]) < chosen:
            raise _Interrupted(None)
        if not len(path.path_["loss"]):
            self._fail()
        model = copy.copy(path).set_params(warm_start=False)
        if last > len(model.path_["loss"]) and not stopped:
            path = copy.copy(path).set_params(n_features_to_select=last)
            self._fit(path.set_callbacks(callback), self.data.weight, [])
        return model, path

    # Words.

    def _why_fewer(self, asked: int, chosen: int) -> str:
        """Say why there are fewer features than were asked for."""
        most = self.options.max_inputs
        if self.data.pool == "columns" and len(self.data.encoder.names) <= chosen:
            why = "are there"
        else:
            why = "lower the loss" + (f" within --max-inputs {most}" if most else "")
        return f"Of {asked} {self.data.word}s asked for, only {chosen} {why}."


def _check_loss(loss: str | None, task: str) -> None:
    fitting = ("squared",) if task == "regression" else ("margin", "logistic")
    if loss is not None and loss not in fitting:
        raise Usage(f"--loss {loss} is not for {task}; choose {' or '.join(fitting)}")


def split_rows(y: np.ndarray, task: str, count: int, seed: int) -> list[Split]:
    """Return folds of rows, with the classes spread over them where there are enough rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    count = min(count, len(y))
    kind: Any = KFold
    if task == "classification":
        often = np.unique(y, return_counts=True)[1].max()
        kind = StratifiedKFold if often >= count else KFold
    splitter = kind(count, shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # of classes with fewer rows than folds, which is fine
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros(len(y)), y))


class _Interrupted(Exception):
    """The user interrupted a fit; ``fold`` is what is left of it, if anything."""

    def __init__(self, fold: Fold | None) -> None:
        super().__init__()
        self.fold = fold


def mean_error(truth: np.ndarray, found: np.ndarray, weight: np.ndarray | None, task: str) -> float:
    """Return the error rate, or the root of the mean squared error."""
    if task == "classification":
        return float(np.average(truth != found, weights=weight))
    miss, unit = _scaled(truth - found)
    return float(unit * np.sqrt(np.average(miss**2, weights=weight)))


def _spread(truth: np.ndarray, found: np.ndarray, weight: np.ndarray | None, task: str) -> float:
    """Return the standard error of an error measured on one set of rows."""
    miss, unit = (truth != found, 1.0) if task == "classification" else _scaled(truth - found)
    each = miss.astype(float) ** 2
    share = np.full(len(each), 1.0) if weight is None else weight
    share = share / share.sum()
    mean = float(share @ each)
    spread = float(np.sqrt(share**2 @ (each - mean) ** 2))
    if task == "classification":
        return spread
    root = float(np.sqrt(mean))
    return unit * (spread / (2 * root)) if root > 0 else 0.0


def _scaled(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Return values of size one, whose squares are finite, and the unit they are in."""
    unit = float(np.max(np.abs(values), initial=0.0))
    return (values / unit, unit) if unit > 0 else (values, 1.0)


def _best_constant(y: np.ndarray, weight: np.ndarray | None, task: str) -> Any:
    if task == "regression":
        return np.average(y, weights=weight)
    classes, codes = np.unique(y, return_inverse=True)
    return classes[int(np.argmax(np.bincount(codes, weights=weight)))]
