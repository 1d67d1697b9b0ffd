"""What all ShareBoost estimators share: the fit, the path, and smaller models read off it."""

from __future__ import annotations

import copy
import numbers
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixnorm._array import follow, is_foreign, is_numpy, namespace, to_dense, to_numpy
from mixnorm.engines import greedy
from mixnorm.engines.penalties import as_penalty
from mixnorm.estimators._common.arrays import (
    HostedMixin,
    as_table,
    check_pool_takes,
    check_scores,
    check_shape,
    constant,
    inward,
    new_table,
    outward,
    weighted,
)
from mixnorm.estimators._common.inputs import DEFAULT_SIZE, check_weights, total_weight
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.predictor import Predictor
from mixnorm.estimators._common.progress import CallbackSupportMixin, Progress, Rounds
from mixnorm.estimators._common.selector import ColumnSelectorMixin
from mixnorm.estimators._common.stored import StoredPathMixin
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.shareboost.parameters import PathParameters
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    LightRowsWarning,
    NotConvergedWarning,
)
from mixnorm.pools import Columns, as_pool, bind, scale_name, working_dtype

# Rows that weigh less than this on average look like shares, not counts.
_LIGHT = 0.1
_GO_ON = " Set warm_start=True and call fit again to go on."


class BaseShareBoost(
    PathParameters,
    StoredPathMixin,
    ColumnSelectorMixin,
    CallbackSupportMixin,
    HostedMixin,
    BaseEstimator,
):
    """Base of the classifier and the regressor, which add a loss and the form of the targets.

    The engine computes where ``X`` is. The path is kept on the host, so that a model can be stored
    and used without the library and the device that fitted it; what is outward follows ``X``.
    """

    #: Targets of a regressor are centred and divided by this unit; labels are left alone.
    _unit: float = 1.0
    _centre: Any = 0.0

    def _fit(
        self,
        X: Any,
        y: Any,
        target: Any,
        n_outputs: int,
        sample_weight: Any,
        progress: Progress | None = None,
        pool: Any = None,
    ) -> Self:
        """Run the engine on validated data and store what it found.

        The rounds are tasks of a fit of their own, or of the task below the given ``progress``.
        ``pool`` is given where it may know more than the parameter does.
        """
        loss, pool, begun = self._loss(), self._pool() if pool is None else pool, self._begun()
        if begun is not None:
            self._check_continues(X.shape[1])
        check_pool_takes(pool, X)
        weight = check_weights(sample_weight, X.shape[0], working_dtype(X), like=X)
        n_rows = total_weight(sample_weight, X.shape[0])
        if sample_weight is not None and isinstance(self._given_alpha(), str):
            self._warn_of_light_rows(n_rows, weight)
        data = bind(
            pool,
            X,
            weight=weight,
            scale=self.scale,
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
        )
        wanted = self._wanted(int(data.n_usable))
        unit = self._alpha_unit()
        start = None if begun is None else inward(begun, data, weight, unit)
        left = wanted if start is None else max(0, wanted - len(start.rounds))
        if self.backward:
            left = 2 * (wanted + self.backward) - 1  # there and back
        left += self.tune
        if progress is None:
            whole = Progress.of_fit(self, X, y, sample_weight, left)
        else:
            whole = progress.task("refit", left)

        def attributes(path: greedy.Path) -> dict[str, Any]:
            self._fitted_pool = data.pool  # which may learn while rounds go by
            return self._attributes(outward(path, data, unit), loss, X)

        rounds = Rounds(whole, left, attributes)
        path = greedy.select(
            data,
            loss,
            loss.encode(target, n_outputs, weight),
            n_atoms=wanted,
            n_outputs=n_outputs,
            weight=weight,
            n_rows=n_rows,
            start=start,
            on_round=rounds.end,
            **self._options(),
        )
        self.__dict__.update(attributes(path))
        self._recipe = self._settings()
        self._report(path, wanted)
        whole.end(dict)
        return self

    def _training_table(self, X: Any) -> tuple[Any, Any]:
        """Return ``X`` with images made rows, and the pool to use, which knows their shape."""
        pool = self._pool()
        known = self._fitted_pool if self._begun() is not None else None
        if known is not None and known.learned:  # the atoms of the path are those of this one
            return new_table(X, known), known
        X, shape = as_table(X, pool)
        if shape is None:
            return X, pool
        check_shape(shape, known)
        return X, pool.for_images(shape)

    def _options(self) -> dict[str, Any]:
        """Return what the engine is told of the parameters."""
        alpha = self._given_alpha()
        return {
            "alpha": alpha if isinstance(alpha, str) else float(alpha) * self._alpha_unit(),
            "penalty": self.penalty,
            "rule": self.rule,
            "swaps": self.swaps,
            "backward": self.backward,
            "tune": self.tune,
            "atoms_per_round": self.atoms_per_round,
            "max_inputs": self.max_inputs,
            "rounds_per_input": self.rounds_per_input,
            "budget": self.cost_budget,
            "fit_intercept": self.fit_intercept,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }

    def _given_alpha(self) -> Any:
        """Return the penalty that was asked for."""
        return self.alpha

    def _alpha_unit(self) -> float:
        """Return what ``alpha`` is multiplied by for the targets that the engine sees.

        The loss goes with the square of their unit, and not every penalty does.
        """
        # Inverses of smaller units may overflow, and beside a penalty of 1e200 no weight is left.
        return float(max(self._unit, 1e-200) ** (as_penalty(self.penalty).degree - 2))

    def _settings(self) -> bytes:
        """Return what a path cannot be continued without, in a form that compares."""
        alpha = self._given_alpha()
        alpha = alpha if isinstance(alpha, str) else float(alpha)
        flags = (alpha, int(self.backward), bool(self.fit_intercept), scale_name(self.scale))
        try:  # a pickle of the same objects may differ, by what they share
            return str(joblib.hash((self._pool(), self._loss(), self.penalty, *flags))).encode()
        except (pickle.PicklingError, AttributeError, TypeError):  # a class made in a function
            return f"of its own: {id(self)}".encode()

    def _check_continues(self, n_columns: int) -> None:
        """Raise unless the path at hand can be continued with these columns and settings."""
        if self._width != n_columns:
            raise ValueError(
                f"warm_start=True continues a path of {self._width} columns, but X has "
                f"{n_columns}. Set warm_start=False to start anew."
            )
        if self._recipe != self._settings():
            raise ValueError(
                "warm_start=True continues a path, but pool, loss, alpha, penalty, backward, "
                "fit_intercept or scale has changed since. Set warm_start=False to start anew."
            )
        if self.backward:
            raise ValueError(
                f"warm_start=True cannot continue a path made with backward={self.backward}: the "
                "way back goes over all sizes again. Set warm_start=False to start anew."
            )

    def _warn_of_light_rows(self, n_rows: float, weight: Any) -> None:
        count = int(np.count_nonzero(to_numpy(weight)))
        if n_rows < _LIGHT * count:
            warn_caller(
                f"sample_weight adds up to {n_rows:.3g} for {count} rows. alpha='auto' counts rows "
                "by their weights, so that it takes this for little data and holds the model close "
                f"to a constant. Scale sample_weight to add up to {count}, or give alpha as a "
                "number.",
                LightRowsWarning,
            )

    def _begun(self) -> greedy.Path | None:
        """Return the path to continue, if there is one."""
        return getattr(self, "_path", None) if self.warm_start else None

    # The classifier and the regressor give these three.

    def _loss(self) -> Any:
        """Return the loss object that ``loss`` stands for."""
        raise NotImplementedError

    def _scores_out(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        """Turn weights ``(n_columns, n_outputs)`` outward: ``coef_`` and ``intercept_``."""
        raise NotImplementedError

    def _predict_scores(self, scores: Any) -> Any:
        """Turn scores ``(n_samples, n_outputs)`` into predictions."""
        raise NotImplementedError

    def _pool(self) -> Any:
        return Columns() if self.pool is None else as_pool(self.pool)

    def _wanted(self, available: int) -> int:
        """Return how many features to choose, with a warning where there are too few."""
        if self.n_features_to_select is None:
            return available if self.cost_budget is not None else min(DEFAULT_SIZE, available)
        if self.n_features_to_select > available:
            warn_caller(
                f"n_features_to_select={self.n_features_to_select} asks for more features than "
                f"the {available} that vary; all of these are chosen. Lower "
                "n_features_to_select, or leave it at None.",
                FewerFeaturesWarning,
            )
        return min(int(self.n_features_to_select), available)

    def _report(self, path: greedy.Path, wanted: int) -> None:
        """Warn of a path that was cut short or not solved to its tolerance."""
        done = len(path.rounds)
        if path.interrupted:
            again = _GO_ON if "warm_start" in self.get_params(deep=False) else ""
            warn_caller(
                f"Interrupted after {done} of {wanted} rounds, which are kept.{again}",
                InterruptedFitWarning,
            )
        elif path.exhausted and (self.n_features_to_select is not None or not self._limits()):
            warn_caller(
                f"Stopped after {done} of {wanted} features: no other feature{self._limits()} "
                "lowers the loss.",
                FewerFeaturesWarning,
            )
        if not path.converged:
            gap = max(step.gap for step in path.rounds if not step.converged)
            warn_caller(
                f"A corrective step stopped after max_iter={self.max_iter} with an estimated gain "
                f"of {gap:.1e} left (tol {self.tol:g}). Raise max_iter, raise alpha, or raise tol.",
                NotConvergedWarning,
            )

    def _limits(self) -> str:
        """Return in words what may end a path early, as it was meant to."""
        names = ("max_inputs", "cost_budget")
        given = [f"{name}={value}" for name in names if (value := getattr(self, name)) is not None]
        return f" within {' and '.join(given)}" if given else ""

    def _attributes(self, path: greedy.Path, loss: Any, like: Any = None) -> dict[str, Any]:
        """Return the fitted attributes that a path (with outward weights) stands for.

        The arrays among them are in the namespace of ``like``, NumPy if not given.
        """
        pool, rounds, unit = self._fitted_pool, path.rounds, self._unit
        support = rounds[-1].support if rounds else ()
        features = pool.feature_indices(support, self.n_features_in_)
        with np.errstate(over="ignore", invalid="ignore"):
            weights, intercept = self._outputs(rounds[-1] if rounds else None, path)
        self._check_weights_fit(weights)
        if pool.plain:  # the weights are those of columns of X
            full = np.zeros((self.n_features_in_, intercept.shape[0]), dtype=weights.dtype)
            full[features] = weights
            weights = full
        coef, bias = self._scores_out(weights, intercept)
        selected = np.asarray(list(dict.fromkeys(features.tolist())), dtype=np.intp)
        return {
            "_path": path,
            "_fitted_loss": loss,
            "_width": self.n_features_in_,  # which a new fit replaces before it can be compared
            "coef_": follow(coef, like),
            "intercept_": bias if isinstance(bias, float) else follow(bias, like),
            "selected_": follow(selected, like),
            "cost_": pool.total_cost(support, self.n_features_in_, np.atleast_2d(coef).shape[0]),
            "null_loss_": _squared_units(path.null_loss, unit),
            "alpha_": follow(np.asarray([step.alpha for step in rounds]), like),
            "path_": {
                "feature": _column(pool.labels([step.atom for step in rounds])),
                "loss": np.asarray([_squared_units(step.loss, unit) for step in rounds]),
                "gradient": np.asarray([step.gradient * unit for step in rounds]),
                "seconds": np.asarray([step.seconds for step in rounds]),
            },
            "n_iter_": max(1, sum(step.iterations for step in rounds)),
        }

    def _check_weights_fit(self, weights: np.ndarray) -> None:
        """Raise a clear error for weights of columns so small, beside ``y``, that they overflow."""
        if not np.all(np.isfinite(weights)):
            beside = "" if self._unit == 1.0 else f" beside targets that vary by {self._unit:.0e}"
            raise ValueError(
                f"X has columns that are so small{beside} that their weights overflow. Multiply X "
                "by a power of ten (StandardScaler brings all columns to one size)."
            )

    def _outputs(self, step: greedy.Round | None, path: greedy.Path) -> tuple[Any, Any]:
        """Return a round's weights and intercept in the units of the targets."""
        centre = to_numpy(self._centre) if is_foreign(self._centre) else self._centre
        if step is None:
            empty = np.zeros((0, path.null_intercept.shape[0]), path.null_intercept.dtype)
            return empty, path.null_intercept * self._unit + centre
        return step.weights * self._unit, step.intercept * self._unit + centre

    def _staged_scores(self, X: Any) -> Iterator[Any]:
        """Yield the scores after each round, reading each chosen column once."""
        check_is_fitted(self)
        X = self._check_new(X)
        rounds, pool = self._path.rounds, self._fitted_pool
        atoms = list(dict.fromkeys(atom for step in rounds for atom in step.support))
        if not rounds:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # which is looked at below
            values = _dense(pool.evaluate(X, atoms))
        ends = np.cumsum([pool.n_columns(atom, X.shape[1]) for atom in atoms]).tolist()
        places = dict(zip(atoms, zip([0, *ends], ends, strict=False), strict=True))
        for step in rounds:
            weights, intercept = self._outputs(step, self._path)
            design = values[:, : weights.shape[0]]
            if step.support != tuple(atoms[: len(step.support)]):  # what came in has gone out again
                parts = [values[:, slice(*places[atom])] for atom in step.support]
                design = namespace(values).concat(parts, axis=1)
            with np.errstate(over="ignore", invalid="ignore"):
                scores = weighted(design, weights, intercept)
            yield check_scores(scores)

    def _scores(self, X: Any) -> Any:
        check_is_fitted(self)
        X = self._check_new(X)
        rounds, pool = self._path.rounds, self._fitted_pool
        weights, intercept = self._outputs(rounds[-1] if rounds else None, self._path)
        if not rounds:
            return constant(intercept, X)
        support = rounds[-1].support
        with np.errstate(over="ignore", invalid="ignore"):
            if is_numpy(X):
                return check_scores(pool.scorer(support, weights, intercept)(X))
            return check_scores(weighted(pool.evaluate(X, support), weights, intercept))

    def _check_new(self, X: Any) -> Any:
        X = self._new_table(X)
        check_pool_takes(self._fitted_pool, X)
        return X

    def _new_table(self, X: Any) -> Any:
        X = new_table(X, self._fitted_pool)
        return validate_data(self, X, reset=False, accept_sparse=("csr", "csc"), dtype="numeric")

    def predict(self, X: Any) -> Any:
        """Predict for new data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, or predicted values.
        """
        return self._predict_scores(self._scores(X))

    @property
    def pool_(self) -> Any:
        """The pool of the fit, with what it has learned from the data."""
        check_is_fitted(self)
        return self._fitted_pool.given

    @property
    def atoms_(self) -> list[Any]:
        """What the model is made of, in the order of its weights, named as in ``path_``."""
        check_is_fitted(self)
        rounds = self._path.rounds
        return list(self._fitted_pool.labels(rounds[-1].support)) if rounds else []

    def predictor(self) -> Predictor:
        """Return the model as a lean function of arrays, for single rows and hot loops.

        Returns
        -------
        Predictor
            Takes a row, or several, and returns what ``predict`` does, unchecked.
        """
        check_is_fitted(self)
        return Predictor(self)

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Predict with 1, 2, ... features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            What ``truncate(m).predict(X)`` returns, for each ``m`` in turn.
        """
        for scores in self._staged_scores(X):
            yield self._predict_scores(scores)

    def truncate(self, n_features: int) -> Self:
        """Return the fitted model with fewer features, read off the path.

        No data is needed and nothing is refitted.

        Parameters
        ----------
        n_features : int
            Number of features (of groups, where the pool has groups) of the smaller model.

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        check_is_fitted(self)
        rounds = self._path.rounds
        if not isinstance(n_features, numbers.Integral) or isinstance(n_features, bool):
            raise TypeError(f"truncate({n_features!r}): give a whole number of features.")
        if not 1 <= n_features <= len(rounds):
            has = f"models of 1 to {len(rounds)} features" if rounds else "no model with features"
            raise ValueError(
                f"truncate({n_features!r}): the path has {has}; "
                "fit with a larger n_features_to_select for more."
            )
        smaller = copy.copy(self)
        smaller._resize(int(n_features))
        path = replace(self._path, rounds=rounds[: int(n_features)])
        smaller.__dict__.update(smaller._attributes(path, self._fitted_loss, self.coef_))
        return smaller

    def _resize(self, n_features: int) -> None:
        self.n_features_to_select = n_features

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_path")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags


def _column(labels: list[Any]) -> np.ndarray:
    """Return labels as one column: numbers as numbers, all else as the objects they are."""
    if all(isinstance(label, int) for label in labels):
        return np.asarray(labels, dtype=np.intp)
    column = np.empty(len(labels), dtype=object)
    column[:] = labels
    return column


def _squared_units(loss: float, unit: float) -> float:
    """Return a loss for targets as given; the largest float where that overflows."""
    return min(loss * unit * unit, float(np.finfo(np.float64).max))


def _dense(columns: Any) -> Any:
    return to_dense(columns)
