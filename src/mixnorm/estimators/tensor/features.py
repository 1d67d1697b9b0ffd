"""The features of a tensor kernel with the largest weights, found without listing them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixnorm.engines.tensor import can_draw
from mixnorm.kernels import FeatureExpansion
from mixnorm.kernels.tensor import MonomialList, draw_features, weights_of_sums
from mixnorm.models import TensorModel

# Where there are too many monomials to list, this number is drawn, or this number for each feature
# that is returned, whichever is larger.
_MONOMIALS_TO_DRAW, _MONOMIALS_PER_FEATURE = 5000, 5


@dataclass(frozen=True)
class FeatureWeight:
    """A feature and its weight in a model.

    Attributes
    ----------
    name : str
        The monomial, such as ``x0^2 x3``; 1 is the constant.
    exponents : dict
        The power of each column.
    weight : float or ndarray of shape (n_outputs,)
        Its weight, whose p-norm is penalised.
    coefficient : float or ndarray of shape (n_outputs,)
        The factor of the monomial in the scores; columns are standardised where the model does so.
        With a normalised exponential kernel, a further factor falls with the size of the row.
    share : float
        Its share of the p-th power of the norm of all weights, the mean over outputs.
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
    kernel, weights = model.expansion.kernel, weights[order] * model.units
    if not kernel.has_products:  # features of the user's own have no name but their number
        named, coefficients = [(f"feature {k}", dict[str, int]()) for k in order], weights
    else:
        width = kernel.columns(np.zeros((1, model.inputs.n_features))).shape[1]
        powers = kernel.exponents(order, width) if exponents is None else exponents[order]
        powers = powers.astype(np.int64)
        named = _name_monomials(model, powers)
        coefficients = weights * np.exp(_log_factors(model, powers))[:, None]
        # In units of the kernel.
        weights = weights * model.expansion.unit ** -float(kernel.homogeneous() or 0)
    return [
        FeatureWeight(*about, _squeeze(model, weight), _squeeze(model, coefficient), float(share))
        for about, weight, coefficient, share in zip(
            named, weights, coefficients, shares[order], strict=True
        )
    ]


def _find_weights(model: TensorModel, top: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return weights of features, and their exponents unless they are all features."""
    expansion = model.expansion
    if isinstance(expansion, FeatureExpansion):
        return expansion.weights, expansion.exponents
    if not can_draw(expansion.kernel):
        raise ValueError(
            f"{expansion.kernel!r} cannot draw its features. Give it log_rho(degrees) and "
            "draw_degrees(totals, rng), or degrees() if there are finitely many."
        )
    q, rng = model.q, np.random.default_rng(0)
    most = max(_MONOMIALS_TO_DRAW, _MONOMIALS_PER_FEATURE * top)
    # Drawn by their share of the kernel: a monomial that matters for no row has no weight either.
    made = draw_features(expansion.kernel, expansion.columns, q, most, rng)
    return weights_of_sums(made.features @ expansion.alpha, q), made.exponents


def _log_factors(model: TensorModel, powers: np.ndarray) -> np.ndarray:
    """Return the logarithms of the coefficients of monomials in features of weight one."""
    kernel, width, degrees = model.expansion.kernel, model.inputs.n_features, powers.sum(axis=1)
    logs = (kernel.log_rho(degrees) + MonomialList(powers).log_counts()) / model.q
    logs = logs - degrees * np.log(model.expansion.unit)
    # Columns that the kernel adds to those of X are constants.
    # Powers of a constant column are a factor of the coefficient.
    constants = kernel.columns(np.zeros((1, width)))[0, width:]
    return np.asarray(logs + powers[:, width:] @ np.log(constants))


def _name_monomials(model: TensorModel, powers: np.ndarray) -> list[tuple[str, dict[str, int]]]:
    """Return the name of each monomial, and the powers of its columns."""
    width = model.inputs.n_features
    names = model.inputs.names or [f"x{j}" for j in range(width)]
    found = []
    for row in powers[:, :width]:
        parts = {names[j]: int(row[j]) for j in np.flatnonzero(row)}
        factors = [name if power == 1 else f"{name}^{power}" for name, power in parts.items()]
        found.append((" ".join(factors) or "1", parts))
    return found


def _squeeze(model: TensorModel, values: np.ndarray) -> Any:
    """Return one number where there is one output."""
    return float(values[0]) if model.outputs.single else values
