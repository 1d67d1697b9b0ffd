"""Bounds for weights in a ball of a matrix norm: Rademacher complexity and excess risk."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mixnorm._array import MatrixLike, is_sparse
from mixnorm._numbers import check_count
from mixnorm.bounds.bound import MATRIX_PAPER, RATE, Bound
from mixnorm.bounds.radii import EXAMPLES, find_strongly_convex, radii
from mixnorm.data import check_in_memory, is_list_of_tables
from mixnorm.norms import MixedNorm, Norm, Spectral, as_norm


def rademacher(
    norm: str | Norm,
    X: MatrixLike,
    *,
    radius: float,
    n_outputs: int = 1,
    examples: str | None = None,
    form: str = "exact",
) -> Bound:
    r"""Bound the Rademacher complexity of all weights in a ball.

    Let :math:`\beta` be the constant of strong convexity of the norm, or of its strongly convex
    surrogate. If the dual norms of the examples are at most :math:`X`, the complexity is at most
    :math:`X R / \sqrt{\beta n}` (:eq:`bound-rademacher`, and :eq:`bound-tasks` for tasks).

    Parameters
    ----------
    norm : str or Norm
        The norm: ``"l1,1"``, ``"l2,1"``, ``"l2,2"``, ``"trace"``, or an object.
    X : array or sparse matrix of shape (n_samples, n_features), or a list of them
        The rows. For tasks, a list with the rows of each task, or one array that all tasks share.
    radius : float
        The radius :math:`R` of the ball.
    n_outputs : int, default=1
        The number of classes or tasks.
    examples : {"classes", "tasks", "rows"}, optional
        The kind of example (:eq:`bound-radii`). The default is ``"rows"`` for one output,
        ``"tasks"`` for a list, and ``"classes"`` otherwise.
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
    if form not in ("exact", "paper"):
        raise ValueError(
            f"form={form!r} is not known; choose 'exact' for a bound, or 'paper' for the closed "
            "form of the paper, without constants."
        )
    norm, radius, examples, (n, d, k) = check_ball(norm, X, radius, n_outputs, examples)
    if form == "paper":
        return _bound_in_closed_form(norm, X, radius, (n, d, k), examples)
    # The norms with exponent 1 are not strongly convex. The ball of their surrogate contains
    # theirs, so its bound holds for them too (:eq:`bound-twin`).
    convex = find_strongly_convex(norm, (d, k))
    beta = float(convex.strong_convexity())
    size = float(np.max(radii(convex, X, k, examples), initial=0.0))
    value = size * radius / math.sqrt(beta * n)
    sentence = (
        f"Weights of norm up to {radius:.3g} can fit random signs on {n} examples by {value:.3g} "
        f"on average at most: the examples' dual norms are up to {size:.3g}, and half the squared "
        f"norm is strongly convex with constant {beta:.3g}."
    )
    inputs = {"n": float(n), "radius": radius, "examples": size, "strong_convexity": beta}
    theorem = f"{MATRIX_PAPER}, Theorem {'21' if examples == 'tasks' else '7'}"
    return Bound(value, "Rademacher complexity", theorem, inputs, sentence, power=-0.5)


def excess_risk(
    norm: str | Norm,
    X: MatrixLike,
    *,
    radius: float,
    n_outputs: int = 1,
    lipschitz: float = 1.0,
    examples: str | None = None,
    form: str = "exact",
) -> Bound:
    r"""Bound the excess risk of the empirical minimiser in a ball.

    The excess risk is the loss on new data above that of the best weights in the ball. For losses
    with Lipschitz constant :math:`\rho` its mean over samples is at most :math:`2 \rho` times the
    Rademacher complexity (:eq:`bound-excess`). For classes the value is a rate, because the proof
    is about averaged online weights (:eq:`bound-batch`).

    Parameters
    ----------
    norm, X, radius, n_outputs, examples, form
        As in :func:`rademacher`.
    lipschitz : float, default=1.0
        The Lipschitz constant of the loss as a function of one score. For tasks, that of the mean
        over the tasks.

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
            f"lipschitz={lipschitz!r} must be positive and finite; a squared loss has such a "
            "constant only if targets and scores are bounded."
        )
    found = rademacher(norm, X, radius=radius, n_outputs=n_outputs, examples=examples, form=form)
    value = 2.0 * float(lipschitz) * found.value
    n, radius, kind = int(found.inputs["n"]), found.inputs["radius"], found.kind
    sentence = (
        f"With {n} samples, the best fit in the ball of radius {radius:.3g} costs at most "
        f"{value:.3g} more on new data than the best weights in it, on average."
    )
    # The contraction needs losses of one score. A loss on labels depends on all scores of a row,
    # and the number is not proved for the empirical minimiser (:eq:`bound-batch`).
    if _choose_examples(X, n_outputs, examples) == "classes":
        kind = RATE
        sentence = (
            f"With {n} samples, weights in the ball of radius {radius:.3g} cost about {value:.3g} "
            "more on new data than the best of them. Half of it is proved for weights averaged "
            "over a pass of online learning; of the best fit it is a rate."
        )
    tasks = "Theorem 21" in found.theorem
    theorem = f"{MATRIX_PAPER}, Corollary {'22' if tasks else '8'}"
    inputs = found.inputs | {"lipschitz": float(lipschitz)}
    return Bound(value, "excess risk", theorem, inputs, sentence, found.form, kind, -0.5)


def _bound_in_closed_form(
    norm: Norm, X: MatrixLike, radius: float, sizes: tuple[int, int, int], examples: str
) -> Bound:
    """Return the closed form of the paper, with the dual of the norm itself, not of a surrogate."""
    n, d, k = sizes
    # The closed form bounds the examples by the dual of the norm itself, up to a factor of e, and
    # leaves out this factor: it orders norms, but is no bound.
    logarithm, name = _find_closed_form(norm, d, k)
    largest = float(np.max(radii(norm, X, k, examples), initial=0.0))
    value = radius * largest * math.sqrt(logarithm / n)
    inputs = {"n": float(n), "radius": radius, "examples": largest, "logarithm": logarithm}
    sentence = f"{name}: {value:.3g}, up to a constant that the paper leaves out."
    theorem = f"{MATRIX_PAPER}, Table 1{', for tasks' if examples == 'tasks' else ''}"
    return Bound(value, "Rademacher complexity", theorem, inputs, sentence, "paper", RATE, -0.5)


def _find_closed_form(norm: Norm, d: int, k: int) -> tuple[float, str]:
    """Return the logarithm in the paper's Table 1, and the formula in words."""
    if isinstance(norm, Spectral) and norm.q == 1:
        # At least ln 2, as a logarithm of one would make the rate zero.
        return math.log(max(2, min(k, d))), "W_S1 X_Sinf sqrt(ln min(k, d) / n)"
    forms: dict[tuple[float, float], tuple[float, str]] = {
        (1, 1): (math.log(max(2, k * d)), "W_11 X_inf sqrt(ln(kd) / n)"),
        (2, 1): (math.log(max(2, d)), "W_21 X_2inf sqrt(ln d / n)"),
        (2, 2): (1.0, "W_22 X_22 sqrt(1 / n)"),
    }
    found = None
    if isinstance(norm, MixedNorm) and norm.groups is None:
        found = forms.get((norm.inner, norm.outer))
    if found is None:
        raise ValueError(
            f"The paper has no closed form for {norm!r}; it has them for 'l1,1', 'l2,1', 'l2,2' "
            "and 'trace'. Set form='exact'."
        )
    return found


def check_ball(
    norm: str | Norm, X: MatrixLike, radius: float, n_outputs: int, examples: str | None
) -> tuple[Norm, float, str, tuple[int, int, int]]:
    """Return the norm, the radius, the kind of example and the sizes, all checked.

    The sizes are the numbers of examples, features and outputs.
    """
    check_in_memory(X, "The bound")
    examples = _choose_examples(X, n_outputs, examples)
    n, d, k = _check_sizes(X, n_outputs)
    if not 0.0 <= float(radius) < math.inf:
        raise ValueError(f"radius={radius!r} must be finite and at least 0.")
    return as_norm(norm), float(radius), examples, (n, d, 1 if examples == "rows" else k)


def _choose_examples(X: MatrixLike, n_outputs: int, examples: str | None) -> str:
    """Return the kind of example, by default the one that suits the data."""
    if examples is None:
        if is_list_of_tables(X):
            return "tasks"
        return "rows" if n_outputs == 1 else "classes"
    if examples not in EXAMPLES:
        raise ValueError(f"examples={examples!r} is not known; choose one of {list(EXAMPLES)}.")
    if examples == "classes" and n_outputs < 2:
        raise ValueError(f"n_outputs={n_outputs!r}; examples='classes' needs at least 2 classes.")
    return examples


def _check_sizes(X: MatrixLike, n_outputs: int) -> tuple[int, int, int]:
    """Return the numbers of examples, features and outputs; raise for data without a bound."""
    n_outputs = check_count("n_outputs", n_outputs)
    parts: Any = X if is_list_of_tables(X) else [X]
    shapes = [np.shape(part) for part in parts]
    for shape, part in zip(shapes, parts, strict=True):
        if len(shape) != 2 or not shape[0] or not shape[1]:
            raise ValueError(
                f"X has the shape {shape}; give a matrix of at least one row and one column."
            )
        if not np.all(np.isfinite(part.data if is_sparse(part) else np.asarray(part))):
            raise ValueError("X has entries that are NaN or infinite; remove or replace them.")
    if len({shape[1] for shape in shapes}) > 1:
        raise ValueError("The tasks of X have different numbers of columns; give them the same.")
    # An example has a row of every task, so there are as many as the smallest task has rows.
    outputs = len(parts) if is_list_of_tables(X) else n_outputs
    return min(shape[0] for shape in shapes), int(shapes[0][1]), outputs
