"""Which features of a tensor kernel matter, without listing them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.engines.tensor import can_draw
from mixnorm.kernels import FeatureExpansion
from mixnorm.kernels.tensor import MonomialList, drawn_features, weights_of_sums
from mixnorm.models import TensorModel

# Monomials that are looked at, where there are too many to list, and for each that is asked for.
_LOOKED_AT, _FOR_EACH = 5000, 5


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
        Its part of the norm (to the power p) of all weights, the mean over outputs.
    """

    name: str
    exponents: dict[str, int]
    weight: Any
    coefficient: Any
    share: float


def top_features(model: TensorModel, top: int) -> list[FeatureWeight]:
    """Return the features of a fitted model with the largest shares of its norm."""
    weights, exponents = _find_weights(model, top)
    q = model.q
    p = q / (q - 1.0)
    # A factor of few columns has a norm of its own, which weights of features may exceed.
    whole = np.maximum(model.norms, (np.abs(weights) ** p).sum(axis=0))
    norms = np.where(whole > 0.0, whole, np.inf)
    shares = (np.abs(weights) ** p / norms).mean(axis=1)
    order = np.argsort(-shares, kind="stable")[:top]
    if not model.expansion.kernel.has_products:
        return _describe_numbered(model, order, weights[order] * model.units, shares[order])
    if exponents is None:
        width = model.expansion.kernel.columns(np.zeros((1, model.inputs.n_features))).shape[1]
        powers = model.expansion.kernel.exponents(order.tolist(), width)
    else:
        powers = exponents[order]
    return _describe_monomials(
        model, powers.astype(np.int64), weights[order] * model.units, shares[order]
    )


def _find_weights(model: TensorModel, top: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return weights of features, and their exponents where they are not all that there are."""
    expansion = model.expansion
    if isinstance(expansion, FeatureExpansion):
        return expansion.weights, expansion.exponents
    if not can_draw(expansion.kernel):
        raise ValueError(
            f"{expansion.kernel!r} tells nothing of its features. Give it log_rho(degrees) and "
            "draw_degrees(totals, rng), or degrees() where there is an end of them."
        )
    q, rng = model.q, np.random.default_rng(0)
    most = max(_LOOKED_AT, _FOR_EACH * top)
    made = drawn_features(expansion.kernel, expansion.columns, q, most, rng)
    return weights_of_sums(made.features @ expansion.alpha, q), made.exponents


def _describe_numbered(
    model: TensorModel, order: np.ndarray, weights: np.ndarray, shares: np.ndarray
) -> list[FeatureWeight]:
    """Return features of one's own, which have no name but their number."""
    return [
        FeatureWeight(
            f"feature {k}",
            {},
            _squeeze(model, weight),
            _squeeze(model, weight),
            float(share),
        )
        for k, weight, share in zip(order, weights, shares, strict=True)
    ]


def _describe_monomials(
    model: TensorModel, powers: np.ndarray, weights: np.ndarray, shares: np.ndarray
) -> list[FeatureWeight]:
    """Return monomials, with weights and coefficients in units of the kernel and the targets."""
    kernel, unit = model.expansion.kernel, model.expansion.unit
    width, degrees = model.inputs.n_features, powers.sum(axis=1)
    logs = (kernel.log_rho(degrees) + MonomialList(powers).log_counts()) / model.q
    logs = logs - degrees * np.log(unit)
    # Columns that the kernel adds to those of X are constants.
    constants = kernel.columns(np.zeros((1, width)))[0, width:]
    logs = logs + powers[:, width:] @ np.log(constants)
    whole = unit ** -float(kernel.homogeneous() or 0)
    names = model.inputs.names or [f"x{j}" for j in range(width)]
    found = []
    for row, log, weight, share in zip(powers, logs, weights, shares, strict=True):
        parts = {names[j]: int(row[j]) for j in np.flatnonzero(row[:width])}
        coefficient = _squeeze(model, weight * np.exp(log))
        found.append(
            FeatureWeight(
                _format_monomial(parts),
                parts,
                _squeeze(model, weight * whole),
                coefficient,
                float(share),
            )
        )
    return found


def _squeeze(model: TensorModel, values: np.ndarray) -> Any:
    """Return one number where there is one output."""
    return float(values[0]) if model.outputs.single else values


def _format_monomial(found: dict[str, int]) -> str:
    parts = [name if power == 1 else f"{name}^{power}" for name, power in found.items()]
    return " ".join(parts) or "1"
