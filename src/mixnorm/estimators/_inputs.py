"""What comes in: weights and the number of features, checked once."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from mixnorm.engines._rules import RULES
from mixnorm.engines.penalties import as_penalty
from mixnorm.losses import SmoothLoss, as_loss

#: Features chosen when the user does not say how many.
DEFAULT_SIZE = 20


def check_weights(sample_weight: Any, n_samples: int, dtype: Any) -> np.ndarray:
    """Return sample weights that sum to one."""
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples, dtype=dtype)
    if isinstance(sample_weight, numbers.Real):
        weight = np.full(n_samples, float(sample_weight))
    else:
        weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weight.ndim}D array. "
            "Give one weight per row of X."
        )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n_samples,)}: "
            "give one weight per row of X."
        )
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight contains NaN or infinity; give finite weights.")
    if np.any(weight < 0):
        raise ValueError("sample_weight has negative entries; weights must be zero or more.")
    largest = weight.max()
    if not largest > 0:
        raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
    weight = weight / largest  # first, so that the sum of huge or tiny weights stays finite
    return np.asarray(weight / weight.sum(), dtype=dtype)


def check_parameters(estimator: Any) -> None:
    """Raise a clear error for a parameter out of its range."""
    size = estimator.n_features_to_select
    if size is not None and (not isinstance(size, numbers.Integral) or isinstance(size, bool)):
        raise TypeError(
            f"n_features_to_select={size!r} must be a whole number or None; "
            f"None chooses at most {DEFAULT_SIZE}."
        )
    if size is not None and size < 1:
        raise ValueError(f"n_features_to_select={size} must be at least 1.")
    _check_number(estimator, "alpha", least=0.0)
    _check_number(estimator, "tol", least=0.0)
    _check_integer(estimator, "max_iter", least=1)
    _check_integer(estimator, "swaps", least=0)
    _check_integer(estimator, "backward", least=0)
    _check_integer(estimator, "atoms_per_round", least=1)
    if estimator.max_inputs is not None:
        _check_integer(estimator, "max_inputs", least=1)
    _check_integer(estimator, "rounds_per_input", least=1)
    if estimator.cost_budget is not None:
        _check_number(estimator, "cost_budget", least=0.0)
        if not estimator.cost_budget > 0:
            raise ValueError(f"cost_budget={estimator.cost_budget!r} must be positive, or None.")
    as_penalty(estimator.penalty)
    for name in ("fit_intercept", "scale"):
        value = getattr(estimator, name)
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name}={value!r} must be True or False.")
    pool = estimator.pool
    if pool is not None and (isinstance(pool, type) or not hasattr(pool, "prepare")):
        raise TypeError(
            f"pool={pool!r} is no pool; give None or an object of mixnorm.pools, Columns() say."
        )
    if not isinstance(estimator.rule, str) or estimator.rule not in RULES:
        raise ValueError(f"rule={estimator.rule!r} is not known; choose one of {sorted(RULES)}.")


def _check_number(estimator: Any, name: str, least: float) -> None:
    value = getattr(estimator, name)
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} must be a number.")
    if not (least <= float(value) < np.inf):
        raise ValueError(f"{name}={value!r} must be at least {least:g} and finite.")


def _check_integer(estimator: Any, name: str, least: int) -> None:
    value = getattr(estimator, name)
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} must be a whole number.")
    if value < least:
        raise ValueError(f"{name}={value!r} must be at least {least}.")


def check_loss(loss: Any, known: dict[str, type], *, classifier: bool) -> Any:
    """Return the loss object for a name or an object, if it is one that the greedy engine takes."""
    loss = as_loss(loss, known)
    if loss.is_binary:
        raise ValueError(
            f"loss={loss!r} takes targets -1 and +1, which neither labels nor numbers are; choose "
            f"one of {sorted(known)}. For two classes the losses on labels do as well."
        )
    if loss.is_classifier != classifier:
        kind = "classification" if classifier else "regression"
        raise ValueError(f"loss={loss!r} is no {kind} loss; choose one of {sorted(known)}.")
    if not isinstance(loss, SmoothLoss):
        raise ValueError(
            f"loss={loss!r} is not smooth; the greedy engine needs a smooth loss, one with second "
            f"derivatives. Choose one of {sorted(known)}."
        )
    if not classifier and not loss.constant_curvature:
        # The regressor divides its targets by a unit, which only a square survives unchanged.
        raise ValueError(
            f"loss={loss!r} depends on the unit of the targets, which this estimator chooses; it "
            f"needs a loss of constant curvature. Choose one of {sorted(known)}."
        )
    return loss
