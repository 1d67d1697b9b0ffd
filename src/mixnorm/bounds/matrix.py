"""Bounds for weights in a ball of a matrix norm: Rademacher complexity and excess risk."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from mixnorm._array import Array, MatrixLike, is_sparse
from mixnorm.bounds.bound import RATE, Bound, check_form
from mixnorm.bounds.radii import EXAMPLES, pair, radii
from mixnorm.data import is_list_of_tables
from mixnorm.norms import MixedNorm, Spectral, as_norm

_PAPER = "Kakade, Shalev-Shwartz and Tewari"


def rademacher(
    norm: Any,
    X: Array,
    *,
    radius: float,
    n_outputs: int = 1,
    examples: str | None = None,
    form: str = "exact",
) -> Bound:
    r"""Bound the Rademacher complexity of all weights in a ball.

    With a strongly convex norm (constant :math:`\beta`), or the strongly convex surrogate of
    another norm, it is at most :math:`X R / \sqrt{\beta n}`, for examples of dual norm up to
    :math:`X`.

    Parameters
    ----------
    norm : str or Norm
        The norm: ``"l1,1"``, ``"l2,1"``, ``"l2,2"``, ``"trace"``, or an object.
    X : array or sparse matrix of shape (n_samples, n_features), or a list of them
        The rows; for tasks a list of the rows of each, or one array that all share.
    radius : float
        The radius of the ball.
    n_outputs : int, default=1
        Classes or tasks.
    examples : {"classes", "tasks", "rows"}, optional
        What an example is; ``"rows"`` with one output, ``"tasks"`` for a list, else ``"classes"``.
    form : {"exact", "paper"}, default="exact"
        ``"paper"`` is the closed form of the paper's Table 1, without constants.

    Returns
    -------
    Bound

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4)
    >>> rademacher("l2,2", X, radius=2.0).value
    1.0
    """
    check_form(form)
    norm, examples = as_norm(norm), _examples(X, n_outputs, examples)
    n, d, k = _sizes(X, n_outputs)
    k = 1 if examples == "rows" else k
    radius = _radius(radius)
    if form == "paper":
        return _closed(norm, X, radius, (n, d, k), examples)
    paired = pair(norm, (d, k))
    beta = float(paired.strong_convexity())
    size = float(np.max(radii(paired, X, k, examples), initial=0.0))
    value = size * radius / math.sqrt(beta * n)
    sentence = (
        f"Weights of norm up to {radius:.3g} can fit random signs on {n} examples by {value:.3g} "
        f"on average at most: the examples' dual norms are up to {size:.3g}, and half the squared "
        f"norm is strongly convex with constant {beta:.3g}."
    )
    inputs = {"n": float(n), "radius": radius, "examples": size, "strong_convexity": beta}
    theorem = f"{_PAPER}, Theorem {'21' if examples == 'tasks' else '7'}"
    return Bound(value, "Rademacher complexity", theorem, inputs, sentence, power=-0.5)


def excess_risk(
    norm: Any,
    X: Array,
    *,
    radius: float,
    n_outputs: int = 1,
    lipschitz: float = 1.0,
    examples: str | None = None,
    form: str = "exact",
) -> Bound:
    r"""Bound how much more the empirical minimiser in a ball costs than the best weights in it.

    On the average over samples that is at most :math:`2 \rho` times the Rademacher complexity, for
    losses with Lipschitz constant :math:`\rho`.

    Parameters
    ----------
    norm, X, radius, n_outputs, examples, form
        As in :func:`rademacher`.
    lipschitz : float, default=1.0
        The Lipschitz constant of the loss, of one score; of tasks, of the mean over them.

    Returns
    -------
    Bound

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4)
    >>> bound = excess_risk("l2,2", X, radius=2.0)
    >>> bound.value, bound.at(400).value
    (2.0, 0.2)
    """
    if not 0.0 < lipschitz < math.inf:
        raise ValueError(
            f"lipschitz={lipschitz!r} must be positive and finite; squared losses have none, "
            "unless targets and scores are bounded."
        )
    found = rademacher(norm, X, radius=radius, n_outputs=n_outputs, examples=examples, form=form)
    value = 2.0 * float(lipschitz) * found.value
    n, radius, kind = int(found.inputs["n"]), found.inputs["radius"], found.kind
    sentence = (
        f"With {n} samples, the best fit in the ball of radius {radius:.3g} costs at most "
        f"{value:.3g} more on new data than the best weights in it, on average."
    )
    if _examples(X, n_outputs, examples) == "classes":
        kind = RATE
        sentence = (
            f"With {n} samples, weights in the ball of radius {radius:.3g} cost about {value:.3g} "
            "more on new data than the best of them. Half of it is proved for weights averaged "
            "over a pass of online learning; of the best fit it is a rate."
        )
    tasks = "Theorem 21" in found.theorem
    theorem = f"{_PAPER}, Corollary {'22' if tasks else '8'}"
    inputs = found.inputs | {"lipschitz": float(lipschitz)}
    return Bound(value, "excess risk", theorem, inputs, sentence, found.form, kind, -0.5)


def _closed(
    norm: Any, X: Array, radius: float, sizes: tuple[int, int, int], examples: str
) -> Bound:
    """Return the paper's closed form, by the norms' own duals."""
    n, d, k = sizes
    logarithm, name = _closed_parts(norm, d, k)
    largest = float(np.max(radii(norm, X, k, examples), initial=0.0))
    value = radius * largest * math.sqrt(logarithm / n)
    inputs = {"n": float(n), "radius": radius, "examples": largest, "logarithm": logarithm}
    sentence = f"{name}: {value:.3g}, up to a constant that the paper drops."
    theorem = f"{_PAPER}, Table 1{', for tasks' if examples == 'tasks' else ''}"
    return Bound(value, "Rademacher complexity", theorem, inputs, sentence, "paper", RATE, -0.5)


def _closed_parts(norm: Any, d: int, k: int) -> tuple[float, str]:
    if isinstance(norm, Spectral) and norm.q == 1:
        return math.log(max(2, min(k, d))), "W_S1 X_Sinf sqrt(ln min(k, d) / n)"
    if isinstance(norm, MixedNorm) and norm.groups is None:
        kind = (float(norm.inner), float(norm.outer))
        if kind == (1.0, 1.0):
            return math.log(max(2, k * d)), "W_11 X_inf sqrt(ln(kd) / n)"
        if kind == (2.0, 1.0):
            return math.log(max(2, d)), "W_21 X_2inf sqrt(ln d / n)"
        if kind == (2.0, 2.0):
            return 1.0, "W_22 X_22 sqrt(1 / n)"
    raise ValueError(
        f"The paper has no closed form for {norm!r}; it has them for 'l1,1', 'l2,1', 'l2,2' and "
        "'trace'. Set form='exact'."
    )


def _examples(X: MatrixLike, n_outputs: int, examples: str | None) -> str:
    if examples is None:
        if is_list_of_tables(X):
            return "tasks"
        return "rows" if n_outputs == 1 else "classes"
    if not isinstance(examples, str) or examples not in EXAMPLES:
        raise ValueError(f"examples={examples!r} is not known; choose one of {list(EXAMPLES)}.")
    if examples == "classes" and n_outputs < 2:
        raise ValueError(f"n_outputs={n_outputs!r}; examples='classes' needs at least 2 classes.")
    return examples


def _sizes(X: Array, n_outputs: int) -> tuple[int, int, int]:
    """Return the numbers of examples, features and outputs, checked."""
    whole = isinstance(n_outputs, numbers.Integral) and not isinstance(n_outputs, bool)
    if not whole or n_outputs < 1:
        raise ValueError(f"n_outputs={n_outputs!r} must be a whole number of at least 1.")
    parts = list(X) if is_list_of_tables(X) else [X]
    shapes = [np.shape(part) for part in parts]
    for shape, part in zip(shapes, parts, strict=True):
        if len(shape) != 2 or not shape[0] or not shape[1]:
            raise ValueError(
                f"X has the shape {shape}; give rows and columns, at least one of each."
            )
        if not np.all(np.isfinite(part.data if is_sparse(part) else np.asarray(part))):
            raise ValueError("X has entries that are NaN or infinite; remove or replace them.")
    if len({shape[1] for shape in shapes}) > 1:
        raise ValueError("Tasks have different numbers of columns; all must have the same.")
    outputs = len(parts) if is_list_of_tables(X) else int(n_outputs)
    return min(shape[0] for shape in shapes), int(shapes[0][1]), outputs


def _radius(radius: Any) -> float:
    value = float(radius)
    if not 0.0 <= value < math.inf:
        raise ValueError(f"radius={radius!r} must be a finite number that is not negative.")
    return value
