"""What a model file keeps of a ShareBoost estimator, and how the rest is rebuilt from it."""

from __future__ import annotations

import math
import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mixnorm._array import is_foreign, to_numpy
from mixnorm.engines.greedy import Path, Round
from mixnorm.estimators._common.inputs import check_loss

# Attributes that follow from the path and the parameters.
_REBUILT = {"alpha_", "coef_", "cost_", "intercept_", "selected_", "null_loss_", "path_"}
_REBUILT |= {"n_iter_"}
_REBUILT |= {"_recipe", "_width"}
# The objects used in the fit, and the parameters that they mostly are.
_GIVEN = {"_fitted_pool": "pool", "_fitted_loss": "loss"}


class StoredPathMixin:
    """The two methods that :mod:`mixnorm.storage` asks for, for estimators with a ``_path``.

    ``coef_`` has an entry for every column of the training data and is rebuilt, so that the file
    grows with the columns that were chosen and not with those that were not.
    """

    def _fitted_state(self: Any) -> dict[str, Any]:
        """Return the fitted attributes that cannot be rebuilt."""
        left_out = {*self.get_params(deep=False), *_REBUILT}
        left_out |= {
            name for name, given in _GIVEN.items() if vars(self)[name] is vars(self)[given]
        }
        state = {
            name: to_numpy(value) if is_foreign(value) else value
            for name, value in vars(self).items()
            if name not in left_out
        }
        state["_continues"] = self._recipe == self._settings()
        return state

    def _restore(self: Any, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        given = {name: getattr(self, parameter) for name, parameter in _GIVEN.items()}
        vars(self).update(given | state)
        continues = vars(self).pop("_continues")
        n_outputs = _check_path(self._path)
        if any(math.isnan(step.alpha) for step in self._path.rounds):
            # Written when all rounds had one penalty, and True stood for the largest magnitude.
            self.scale = "max" if self.scale is True else self.scale
            rounds = (replace(step, alpha=float(self.alpha)) for step in self._path.rounds)
            self._path, continues = replace(self._path, rounds=tuple(rounds)), False
        _check_targets(self, n_outputs)
        _check_columns(self, n_outputs, max_bytes)
        _check_rounds(self._path, self._fitted_pool, self.n_features_in_)
        vars(self).update(self._attributes(self._path, self._fitted_loss))
        self._recipe = self._settings() if continues is True else b""


def _check_path(path: Any) -> int:
    """Raise unless the arrays of all rounds have shapes that fit; return the number of outputs."""
    if not isinstance(path, Path):
        raise ValueError("_path must be a Path")
    _check_floats(path.null_intercept, (None,), "the intercept without features")
    n_outputs: int = path.null_intercept.shape[0]
    for step in path.rounds:
        _check_floats(step.weights, (None, n_outputs), "the weights of a round")
        _check_floats(step.intercept, (n_outputs,), "the intercept of a round")
        if not isinstance(step.alpha, float) or step.alpha < 0.0:
            raise ValueError("the penalty of a round must be a number from 0 up")
    return n_outputs


def _check_floats(array: Any, shape: tuple[int | None, ...], what: str) -> None:
    """Raise unless ``array`` has floats, and the shape, in which None stands for any length."""
    fits = (
        isinstance(array, np.ndarray)
        and array.dtype in (np.float32, np.float64)
        and array.ndim == len(shape)
        and array.shape[-1] > 0
        and all(n in (None, length) for n, length in zip(shape, array.shape, strict=True))
    )
    if not fits:
        raise ValueError(f"{what} must be an array of floats of shape {shape}")


def _check_targets(model: Any, n_outputs: int) -> None:
    """Raise unless labels, or the units of the targets, fit the number of outputs."""
    loss = check_loss(model._fitted_loss, {}, classifier=is_classifier(model))
    if is_classifier(model):
        if {"_unit", "_centre"} & vars(model).keys():
            raise ValueError("the labels of a classifier have no unit and no centre")
        classes = model.classes_
        if not isinstance(classes, np.ndarray) or classes.shape != (max(2, n_outputs),):
            raise ValueError(f"classes_ must be an array of {n_outputs} labels, at least 2")
        scores = np.zeros((1, n_outputs))
        loss.encode(np.zeros(1, dtype=np.int64), n_outputs, scores)  # checks the loss's parameters
        loss.proba(scores)
        return
    _check_floats(model._centre, (n_outputs,), "the centre of the targets")
    if type(model._unit) is not float or not 0.0 < model._unit < math.inf:
        raise ValueError("the unit of the targets must be a positive number")
    if type(model._single) is not bool or (model._single and n_outputs != 1):
        raise ValueError("targets are said to be one column, but the path has several outputs")


def _check_columns(model: Any, n_outputs: int, max_bytes: int) -> None:
    """Raise unless the number of columns is one, the names fit it, and ``coef_`` fits in memory."""
    width = model.n_features_in_
    if not isinstance(width, numbers.Integral) or isinstance(width, bool) or width < 1:
        raise ValueError("n_features_in_ must be a whole number from 1 up")
    size = 8 * int(width) * n_outputs  # in Python's integers, which do not overflow
    if size > max_bytes:
        raise MemoryError(
            f"coef_ of {n_outputs} outputs and {width} columns takes {size} bytes, and max_bytes "
            f"allows {max_bytes}. If you trust the file, load it with a larger max_bytes"
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return
    named = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (width,)
    if not named or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names_in_ must be an array of {width} names")


def _check_rounds(path: Path, pool: Any, n_features: int) -> None:
    """Raise unless every round has atoms of the pool, and a row of weights for each column."""
    atoms = {atom: None for step in path.rounds for atom in (step.atom, *step.support)}
    widths = {atom: pool.n_columns(atom, n_features) for atom in atoms}
    for step in path.rounds:
        _check_support(step, sum(widths[atom] for atom in step.support))


def _check_support(step: Round, n_columns: int) -> None:
    if not step.support or len(set(step.support)) != len(step.support):
        raise ValueError("a round has no atoms, or one of them twice")
    if step.weights.shape[0] != n_columns:
        raise ValueError(
            f"a round has {step.weights.shape[0]} rows of weights for {n_columns} columns"
        )
