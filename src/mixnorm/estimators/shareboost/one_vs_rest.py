"""One class against the rest: greedy paths that share nothing."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixnorm.engines.greedy import Path
from mixnorm.estimators._common.arrays import check_scores, weighted
from mixnorm.estimators._common.inputs import (
    check_weights,
)
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import Jobs
from mixnorm.estimators._common.progress import (
    Progress,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators._common.staged import StagedClassifier, check_classes, check_size
from mixnorm.estimators.shareboost.base import _dense
from mixnorm.estimators.shareboost.learners import ShareBoostClassifier
from mixnorm.estimators.shareboost.parameters import GreedyParameters
from mixnorm.pools import Cost, bind, check_numpy, working_dtype

# The labels of a class's own model.
_REST, _OWN = False, True


@dataclass(eq=False, repr=False)
class OneVsRestGreedy(GreedyParameters, StagedClassifier):
    r"""Classifier in which every class chooses features of its own.

    The yardstick for sharing: each class is told from the rest by the same greedy engine as in
    :class:`ShareBoostClassifier`, which minimises

    .. math:: \sum_i w_i\, \ell(W^{(c)} x_i + b^{(c)}, 1[y_i = c]) + \alpha\, \Omega(W^{(c)})

    over ``n_features_to_select`` features of class :math:`c` alone. How many features all classes
    need together is in ``n_features_used_``. With two classes there is one path.

    Parameters
    ----------
    n_features_to_select : int, optional
        Number of features of each class. None chooses 20, or all if there are fewer.
    alpha, penalty, loss, rule, swaps, backward, atoms_per_round, pool, fit_intercept, scale
        As in :class:`ShareBoostClassifier`, for the path of each class. The pool is prepared once
        for all classes, which is why there is no ``tune``: it would adjust the features of all.
    max_inputs, rounds_per_input, cost_budget, tol, max_iter, random_state
        As in :class:`ShareBoostClassifier`; columns and costs are counted for each class alone.
    n_jobs : int, default=None
        Classes fitted at the same time, in processes; None means 1, -1 all processors.

    Attributes
    ----------
    estimators_ : list of ShareBoostClassifier
        The model of each class, with labels False and True; for two classes, one model of the
        second.
    n_features_used_ : ndarray of shape (n_rounds,)
        Distinct features (groups, or other atoms of the pool) that all classes use together after
        1, 2, ... rounds each.
    selected_ : ndarray of shape (n_selected,)
        The columns that some class uses: round by round, in the order of the classes.
    path_ : dict of ndarray
        One row per round of all classes: ``"features"`` (a tuple of what each class chose, None
        where its path has ended), ``"n_features"`` (as ``n_features_used_``), ``"loss"`` (mean over
        classes of the weighted mean training loss) and ``"seconds"``.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights, zero for columns that a class does not use; only for pools whose atoms are columns.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercept.
    cost_ : Cost
        Operations per row: each feature that is used is computed once.
    null_loss_ : float
        Mean over classes of the training loss with no features.
    n_iter_ : int
        Iterations of all corrective steps together.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    ShareBoostClassifier : One choice of features for all classes.
    JointBoostClassifier : Stumps shared by subsets of the classes.

    Notes
    -----
    The class with the largest score is predicted. Probabilities are those of "this class" against
    "the rest", from each class's own model, divided by their sum. A keyboard interrupt ends the fit
    without a result: half the classes make no model.

    References
    ----------
    S. Shalev-Shwartz, Y. Wexler, A. Shashua, "ShareBoost: efficient multiclass learning with
    feature sharing", NeurIPS 2011, section 5 (Figure 2).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mixnorm import OneVsRestGreedy
    >>> X, y = load_digits(return_X_y=True)
    >>> model = OneVsRestGreedy(n_features_to_select=5).fit(X, y)
    >>> len(model.estimators_), model.n_features_used_.shape
    (10, (5,))
    >>> bool(model.n_features_used_[-1] > 20)
    True
    """

    _: KW_ONLY
    n_jobs: Jobs = None

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features for every class and fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._check_parameters()
        self._plain()._loss()
        with all_or_nothing(self):
            X, y, labels = self._check_training(X, y)
            check_numpy(X, type(self).__name__)
            models = self._fit_classes(X, y, labels, sample_weight)
            self.__dict__.update(self._attributes(models))
            return self

    def _plain(self) -> ShareBoostClassifier:
        """Return the estimator of one class, with the same parameters."""
        own, names = self.get_params(deep=False), ShareBoostClassifier().get_params(deep=False)
        return ShareBoostClassifier(**{name: own[name] for name in names if name in own})

    def _fit_classes(self, X: Any, y: Any, labels: np.ndarray, sample_weight: Any) -> list[Any]:
        """Return the model of every class; the pool is bound to the data once."""
        from sklearn.utils.parallel import Parallel, delayed

        plain = self._plain()
        weight = check_weights(sample_weight, X.shape[0], working_dtype(X))
        pool = plain._pool()
        data = bind(
            pool,
            X,
            weight=weight,
            scale=self.scale,
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
        )
        pool = data.pool  # with what it has learned from the data
        plain.__dict__.update(self._inherited())
        own = range(len(self.classes_)) if len(self.classes_) > 2 else [1]
        progress = Progress.of_fit(self, X, y, sample_weight, len(own))
        jobs = (
            delayed(_fit_class)(copy.copy(plain), pool, data, X, labels == c, sample_weight)
            for c in own
        )
        models: list[Any] = []
        told: dict[type[Warning], list[tuple[Any, str]]] = {}
        task = progress.task("class")
        for model, warned in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            if model._path.interrupted:
                raise KeyboardInterrupt
            for category, message in warned:
                told.setdefault(category, []).append((self.classes_[own[len(models)]], message))
            model._fitted_pool = pool  # one for all, also where processes have sent copies
            models.append(model)
            task.end()
            if len(models) < len(own):
                task = progress.task("class")
        _report(told, len(own))
        progress.end(lambda: self._attributes(models))
        return models

    def _inherited(self) -> dict[str, Any]:
        """Return what the models of all classes have from this one."""
        known = {name: vars(self)[name] for name in _SHARED if name in vars(self)}
        return {**known, "classes_": np.array([_REST, _OWN])}

    def _attributes(self, models: list[Any]) -> dict[str, Any]:
        """Return the fitted attributes that the models of the classes stand for."""
        paths = [model._path for model in models]
        n_rounds = max(len(path.rounds) for path in paths)
        used = [
            len({atom for path in paths for atom in _support(path, size)})
            for size in range(1, n_rounds + 1)
        ]
        atoms = _in_turns([_support(path, n_rounds) for path in paths])
        features = models[0]._fitted_pool.feature_indices(atoms, self.n_features_in_)
        features_of = [_padded(model.path_["feature"].tolist(), n_rounds, None) for model in models]
        chosen = np.empty(n_rounds, dtype=object)
        chosen[:] = list(zip(*features_of, strict=True))
        # A path that has ended keeps its loss, and takes no more time.
        losses = [[model.null_loss_, *model.path_["loss"]] for model in models]
        losses = [_padded(curve, n_rounds + 1, curve[-1])[1:] for curve in losses]
        seconds = [_padded(model.path_["seconds"].tolist(), n_rounds, 0.0) for model in models]
        return {
            "estimators_": models,
            "n_features_used_": np.asarray(used, dtype=np.intp),
            "selected_": np.asarray(list(dict.fromkeys(features.tolist())), dtype=np.intp),
            "path_": {
                "features": chosen,
                "n_features": np.asarray(used, dtype=np.intp),
                "loss": np.mean(losses, axis=0),
                "seconds": np.sum(seconds, axis=0),
            },
            "cost_": self._cost(models, atoms),
            "null_loss_": float(np.mean([model.null_loss_ for model in models])),
            "n_iter_": sum(model.n_iter_ for model in models),
        }

    def _cost(self, models: list[Any], atoms: Sequence[Hashable]) -> Cost:
        """Return what a prediction costs: each atom once, and a weight for each class's columns."""
        pool = models[0]._fitted_pool
        costs = [pool.cost(atom, self.n_features_in_) for atom in atoms]
        rounds = [model._path.rounds for model in models]
        weights = sum(len(steps[-1].weights) for steps in rounds if steps)
        adds = sum(cost.multiply_adds for cost in costs) + weights
        return Cost(adds, sum(cost.comparisons for cost in costs))

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, a row per class."""
        check_is_fitted(self)
        if not self.estimators_[0]._fitted_pool.plain:
            raise AttributeError(
                f"{type(self).__name__} has no coef_ for pools whose atoms are no columns of X; "
                "each of estimators_ has the weights of its own atoms."
            )
        return np.concatenate([model.coef_ for model in self.estimators_])

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of every class."""
        check_is_fitted(self)
        return np.concatenate([model.intercept_ for model in self.estimators_])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities.

        Each class's model gives the probability of the class against the rest (see
        :meth:`ShareBoostClassifier.predict_proba`); these are divided by their sum.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one, columns in the order of ``classes_``.
        """
        X = self._check_new(X)
        loss = self.estimators_[0]._fitted_loss
        pairs = [loss.proba(pair) for pair in next(self._pairs(X, [len(self.n_features_used_)]))]
        if len(pairs) == 1:
            return np.asarray(pairs[0])
        own = np.stack([pair[:, 1] for pair in pairs], axis=1)
        own = np.maximum(own, np.finfo(own.dtype).tiny)  # where all are zero, none is likelier
        return np.asarray(own / own.sum(axis=1, keepdims=True))

    def _scores(self, X: Any) -> np.ndarray:
        X = self._check_new(X)
        return _differences(next(self._pairs(X, [len(self.n_features_used_)])))

    def _staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        X = self._check_new(X)
        for pairs in self._pairs(X, range(1, len(self.n_features_used_) + 1)):
            yield _differences(pairs)

    def _pairs(self, X: Any, sizes: Sequence[int]) -> Iterator[list[np.ndarray]]:
        """Yield, for each number of rounds, the scores of "rest" and "own" for every class.

        Classes often choose alike, so every atom is computed once.
        """
        paths = [model._path for model in self.estimators_]
        supports = (_support(path, size) for size in sizes for path in paths)
        atoms = list(dict.fromkeys(atom for support in supports for atom in support))
        with np.errstate(over="ignore", invalid="ignore"):  # looked at with the scores
            columns = _evaluated(self.estimators_[0]._fitted_pool, X, atoms)
        for size in sizes:
            yield [_pair(path, size, columns, X.shape[0]) for path in paths]

    def truncate(self, n_features: int) -> Self:
        """Return the fitted model with fewer features per class, read off the paths.

        No data is needed and nothing is refitted.

        Parameters
        ----------
        n_features : int
            Number of features per class; classes whose path is shorter keep it whole.

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        check_is_fitted(self)
        longest = len(self.n_features_used_)
        size = check_size(n_features, longest, "features per class", "n_features_to_select")
        smaller = copy.copy(self)
        smaller.n_features_to_select = size
        models = [
            model.truncate(min(size, len(model._path.rounds))) if model._path.rounds else model
            for model in self.estimators_
        ]
        smaller.__dict__.update(smaller._attributes(models))
        return smaller

    # --- model files

    def _fitted_state(self) -> dict[str, Any]:
        """Return what cannot be rebuilt: the paths, and what they were fitted with."""
        state = {name: vars(self)[name] for name in _SHARED if name in vars(self)}
        state["classes_"] = self.classes_
        state["_paths"] = tuple(model._path for model in self.estimators_)
        for name, given in (("_fitted_pool", self.pool), ("_fitted_loss", self.loss)):
            fitted = getattr(self.estimators_[0], name)
            if fitted is not given:
                state[name] = fitted
        known = {*self.get_params(deep=False), *state, *_REBUILT}
        return state | {name: value for name, value in vars(self).items() if name not in known}

    def _restore(self, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        paths = state.pop("_paths")
        fitted = {
            "_fitted_pool": state.pop("_fitted_pool", self.pool),
            "_fitted_loss": state.pop("_fitted_loss", self.loss),
            "_continues": False,
        }
        self.__dict__.update(state)
        check_classes(self.classes_)
        n_classes = len(self.classes_)
        n_paths = n_classes if n_classes > 2 else 1
        if not isinstance(paths, tuple) or len(paths) != n_paths:
            raise ValueError(f"_paths must be {n_paths} paths for {n_classes} classes")
        models = []
        for path in paths:
            model = self._plain()
            model._restore({**self._inherited(), **fitted, "_path": path}, max_bytes // n_paths)
            if len(path.null_intercept) != 2:
                raise ValueError("the path of a class must have 2 outputs")
            models.append(model)
        self.__dict__.update(self._attributes(models))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")


# Attributes that all models have alike, and those that follow from the models.
_SHARED = ("n_features_in_", "feature_names_in_")
_REBUILT = {"estimators_", "n_features_used_", "selected_", "path_", "cost_", "null_loss_"}
_REBUILT |= {"n_iter_"}


class _Prepared:
    """A pool that is bound to its data already."""

    def __init__(self, pool: Any, data: Any) -> None:
        self._pool, self._data = pool, data

    def prepare(self, X: Any, **options: Any) -> Any:
        return self._data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


class _OnPrepared(ShareBoostClassifier):
    """Takes the pool that it is handed for the fit, whatever its parameter says."""

    def _pool(self) -> Any:
        return self._bound


class _Silent:
    """Progress that nobody follows: a class's model is of no use to a callback alone."""

    def task(self, name: str, n_tasks: int = 0) -> Self:
        return self

    def end(self, attributes: Any = None) -> bool:
        return False


def _fit_class(
    plain: Any, pool: Any, data: Any, X: Any, own: np.ndarray, sample_weight: Any
) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """Return the fitted model of one class, and what it warned of."""
    fitter = _OnPrepared(**plain.get_params(deep=False))
    fitter.__dict__.update(vars(plain), _bound=_Prepared(pool, data))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        silent: Any = _Silent()
        fitter._fit(X, own, own.astype(np.intp), 2, sample_weight, silent)
    plain.__dict__.update(vars(fitter), _fitted_pool=pool)
    del plain._bound
    return plain, [(warning.category, str(warning.message)) for warning in caught]


def _report(told: dict[type[Warning], list[tuple[Any, str]]], n_classes: int) -> None:
    """Warn once of each kind, instead of once per class."""
    for category, cases in told.items():
        (label, message), classes = cases[0], len({label for label, _ in cases})
        if classes == n_classes and len({message for _, message in cases}) == 1:
            warn_caller(message, category)
        else:
            count = f"{classes} of {n_classes} classes, the first of them {label}"
            warn_caller(f"For {count}: {message}", category)


def _support(path: Path, size: int) -> tuple[Any, ...]:
    """Return the atoms after that many rounds, or after all if there are fewer."""
    return path.rounds[min(size, len(path.rounds)) - 1].support if path.rounds else ()


def _in_turns(supports: Sequence[Sequence[Hashable]]) -> list[Any]:
    """Return distinct atoms: the first of each class, then the second of each, ..."""
    longest = max(map(len, supports))
    turns = (support[at] for at in range(longest) for support in supports if at < len(support))
    return list(dict.fromkeys(turns))


def _padded(values: list[Any], length: int, filler: Any) -> list[Any]:
    return values + [filler] * (length - len(values))


def _evaluated(pool: Any, X: Any, atoms: Sequence[Any]) -> dict[Any, np.ndarray]:
    """Return the columns of every atom on new data."""
    if not atoms:
        return {}
    ends = np.cumsum([pool.n_columns(atom, X.shape[1]) for atom in atoms])
    parts = np.split(_dense(pool.evaluate(X, atoms)), ends[:-1], axis=1)
    return dict(zip(atoms, parts, strict=True))


def _pair(path: Path, size: int, columns: dict[Any, np.ndarray], n_samples: int) -> np.ndarray:
    """Return one class's scores of "rest" and "own" after that many rounds."""
    if not path.rounds:
        return np.repeat(np.asarray(path.null_intercept)[None, :], n_samples, axis=0)
    step = path.rounds[min(size, len(path.rounds)) - 1]
    design = np.concatenate([columns[atom] for atom in step.support], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        found: np.ndarray = check_scores(weighted(design, step.weights, step.intercept))
    return found


def _differences(pairs: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([pair[:, 1] - pair[:, 0] for pair in pairs], axis=1)
