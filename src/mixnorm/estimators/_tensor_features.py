"""Which features of a tensor kernel matter, without listing them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.kernels._expansions import FeatureExpansion, weights_of_sums
from mixnorm.kernels._tensor_gram import drawn_features

# Monomials that are looked at, where there are too many to list.
_LOOKED_AT = 5000


@dataclass(frozen=True)
class FeatureWeight:
    """A feature and its weight in a model.

    Attributes
    ----------
    name : str
        The monomial, such as ``x0^2 x3``; 1 is the constant.
    exponents : dict
        From columns to their powers.
    weight : float or ndarray of shape (n_outputs,)
        Its weight, whose p-norm is penalised.
    coefficient : float or ndarray of shape (n_outputs,)
        What the monomial of the columns is multiplied by in the scores; columns are standardised
        where the model does so. With a normalised exponential kernel the monomial has a factor
        that falls with the size of the row.
    share : float
        Its part of the norm (to the power p) of all weights.
    """

    name: str
    exponents: dict[str, int]
    weight: Any
    coefficient: Any
    share: float


def top_features(model: Any, top: int) -> list[FeatureWeight]:
    """Return the features of a fitted model with the largest shares of its norm."""
    expansion, p = model._expansion, model.q / (model.q - 1.0)
    weights, exponents = _weights(model, top)
    norms = np.where(model._norm > 0.0, model._norm, np.inf)
    shares = (np.abs(weights) ** p / norms).mean(axis=1)
    order = np.argsort(-shares, kind="stable")[:top]
    return [
        _described(model, expansion, exponents, int(k), weights[k], float(shares[k])) for k in order
    ]


def _weights(model: Any, top: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return weights of features, and their exponents where they are not all that there are."""
    expansion = model._expansion
    if isinstance(expansion, FeatureExpansion):
        return expansion.weights, expansion.exponents
    q, columns = float(model.q), expansion.columns
    rng = np.random.default_rng(0)
    made = drawn_features(expansion.kernel, columns, q, max(_LOOKED_AT, 20 * top), rng)
    return weights_of_sums(made.features @ expansion.alpha, q), made.exponents


def _described(
    model: Any,
    expansion: Any,
    exponents: np.ndarray | None,
    place: int,
    weight: np.ndarray,
    share: float,
) -> FeatureWeight:
    kernel, unit, q = expansion.kernel, expansion.unit, float(model.q)
    single = model._single_output()
    # Scores are in units of the targets.
    weight = weight * model._unit
    degree = kernel.homogeneous()
    if not kernel.has_products:
        shown = float(weight[0]) if single else weight
        return FeatureWeight(f"feature {place}", {}, shown, shown, share)
    width = model.n_features_in_
    if exponents is None:
        powers, count = kernel.feature(place, _width(kernel, width))
    else:
        powers = exponents[place].astype(np.int64)
        logs = kernel.log_rho(np.array([powers.sum()])) + _log_count(powers)
        count = float(np.exp(logs[0]))
    constant = float(getattr(kernel, "constant", 1.0)) if len(powers) > width else 1.0
    factor = count ** (1.0 / q) * unit ** -float(powers.sum()) * constant ** powers[width:].sum()
    names = _names(model)
    found = {names[j]: int(powers[j]) for j in np.flatnonzero(powers[:width])}
    raw = weight * (unit ** -float(degree) if degree is not None else 1.0)
    coefficient = weight * factor
    return FeatureWeight(
        _monomial(found),
        found,
        float(raw[0]) if single else raw,
        float(coefficient[0]) if single else coefficient,
        share,
    )


def _width(kernel: Any, n_columns: int) -> int:
    return int(kernel.columns(np.zeros((1, n_columns))).shape[1])


def _log_count(powers: np.ndarray) -> float:
    from mixnorm.kernels._monomials import MonomialList

    return float(MonomialList(powers[None]).log_counts()[0])


def _names(model: Any) -> list[str]:
    given = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if given is None else list(given)


def _monomial(found: dict[str, int]) -> str:
    parts = [name if power == 1 else f"{name}^{power}" for name, power in found.items()]
    return " ".join(parts) or "1"
