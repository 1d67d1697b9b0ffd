"""Block coordinate descent on a quadratic plus ``alpha`` times a sum of row norms.

An epoch is a compiled pass over all rows (:eq:`row-step`). Every few epochs the iterates are
extrapolated (:eq:`anderson-mix`), and the result is kept if it lowers the objective. The duality
gap of the quadratic problem ends the descent.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from mixnorm._chunks import chunks
from mixnorm.engines.proximal.loss_model import Model
from mixnorm.engines.proximal.settings import DEFAULT_SETTINGS
from mixnorm.norms import conjugate

# Numbers in a vector register of 512 bits, in double precision.
_WIDTH = 8
# Squares of smaller changes underflow, and those of changes above the inverse overflow. The system
# of the extrapolation would then be noise.
_LEAST_CHANGES = 1e-250
# Ridge of that system, relative to its trace: changes of late iterates are nearly parallel.
_EXTRAPOLATION_RIDGE = 1e-10


def row_norms(weights: np.ndarray, exponent: float) -> np.ndarray:
    """Return the norm of every row: the sum, root of squares, or largest of its magnitudes.

    Examples
    --------
    >>> row_norms(np.array([[3.0, -4.0]]), 2.0)
    array([5.])
    """
    if exponent == 2.0:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", weights, weights)))
    if exponent == 1.0:
        return np.asarray(np.sum(np.abs(weights), axis=1))
    return np.asarray(np.max(np.abs(weights), axis=1, initial=0.0))


def sum_of_norms(weights: np.ndarray, exponent: float) -> float:
    """Return the sum of the norms of the rows."""
    return float(np.sum(row_norms(weights, exponent), dtype=np.float64))


class GramQuadratic:
    """The model ``value + <gradient, D> + kappa/2 <D, G D>`` around ``weights``.

    It holds the weights, of shape ``(n_rows, n_outputs)``, and moves them (:eq:`row-step`).
    """

    def __init__(
        self, model: Model, kappa: float, weights: np.ndarray, value: float, gradient: np.ndarray
    ) -> None:
        dtype = model.gram.dtype
        self._shared = len(model.gram) == 1
        # The innermost loop runs over the outputs. With a matrix for each of them, the outputs come
        # last in memory, so that this loop reads neighbours.
        gram = model.gram[0] if self._shared else np.moveaxis(model.gram, 0, 2)
        self._gram = np.ascontiguousarray(gram if kappa == 1.0 else gram * dtype.type(kappa))
        self._model, self._kappa = model, dtype.type(kappa)
        self._steps = _usable_curvature(model.diagonal * self._kappa)
        self._origin, self._value, self._slope = weights, value, gradient
        # Copies: the compiled loops change both in place, and the arguments are the caller's.
        self.weights = np.array(weights, dtype=dtype, order="C")
        self._gradient = np.array(gradient, dtype=dtype, order="C")

    def epochs(self, alpha: float, exponent: float, count: int) -> None:
        """Go over all rows ``count`` times."""
        from mixnorm.engines.proximal.descent_jit import separate_epochs, shared_epochs

        # In the precision of the arrays, or the loops would be compiled again for mixed types.
        cut, kind = self._gram.dtype.type(alpha), kind_of(exponent)
        outputs, epoch = self.weights.shape[1], len(self._gram) * self.weights.size
        weights, gradient, compiled = self.weights, self._gradient, separate_epochs
        if self._shared:
            weights, gradient, compiled = _pad(weights), _pad(gradient), shared_epochs
        # Compiled code does not see Ctrl-C, so that long work goes in parts.
        for part in chunks(count, epoch):
            some = part.stop - part.start
            compiled(self._gram, weights, gradient, self._steps, cut, kind, some)
        self.weights = np.ascontiguousarray(weights[:, :outputs])
        self._gradient = np.ascontiguousarray(gradient[:, :outputs])

    def move(self, weights: np.ndarray) -> None:
        """Go to other weights."""
        self.weights = np.ascontiguousarray(weights)
        step = self._model.product(self.weights - self._origin)
        self._gradient = np.ascontiguousarray(self._slope + self._kappa * step)

    def value(self) -> float:
        """Return the modelled loss."""
        # g + (g + kappa G D), halved: the product with G is already in the gradient.
        both = self._slope + self._gradient
        return self._value + 0.5 * float(np.vdot(self.weights - self._origin, both))

    def gradient(self) -> np.ndarray:
        """Return the gradient at the weights."""
        return self._gradient


def _pad(array: np.ndarray) -> np.ndarray:
    """Fill the array up with columns of zeros, to a multiple of a vector register's width.

    Compiled loops over the outputs then have no remainder, and zeros stay zeros.
    """
    lacking = -array.shape[1] % _WIDTH
    if array.shape[1] <= _WIDTH or lacking == 0:
        return array
    padded = np.zeros((array.shape[0], array.shape[1] + lacking), dtype=array.dtype)
    padded[:, : array.shape[1]] = array
    return padded


class ResidualQuadratic:
    """Least squares, held as a residual: faster than Gram matrices if columns outnumber samples.

    ``columns``, ``(n_rows, n_samples)``, and ``residual``, ``(n_samples, n_outputs)``, are
    multiplied by the square roots of the sample weights. If there is an intercept, the columns are
    centred, so that it follows by itself (:eq:`loss-model`).
    """

    def __init__(self, columns: np.ndarray, weights: np.ndarray, residual: np.ndarray) -> None:
        self._columns = np.ascontiguousarray(columns)
        self._steps = _usable_curvature(np.einsum("ij,ij->i", columns, columns))
        self.weights = np.array(weights, order="C")
        self._residual = np.array(residual, order="C")
        # The residual of zero weights, from which ``move`` starts: no error builds up over moves.
        self._start = self._residual - columns.T @ self.weights

    def epochs(self, alpha: float, exponent: float, count: int) -> None:
        """Go over all rows ``count`` times."""
        from mixnorm.engines.proximal.descent_jit import residual_epochs

        cut, kind = self._columns.dtype.type(alpha), kind_of(exponent)
        for _ in range(count):
            for part in chunks(len(self._columns), 2 * self._residual.size):
                columns, weights, steps = self._columns[part], self.weights[part], self._steps[part]
                residual_epochs(columns, weights, self._residual, steps, cut, kind, 1)

    def move(self, weights: np.ndarray) -> None:
        """Go to other weights."""
        self.weights = np.ascontiguousarray(weights)
        self._residual = np.ascontiguousarray(self._start + self._columns.T @ self.weights)

    def value(self) -> float:
        """Return half the sum of the squared residuals."""
        return 0.5 * float(np.vdot(self._residual, self._residual))

    def gradient(self) -> np.ndarray:
        """Return the gradient at the weights."""
        return np.asarray(self._columns @ self._residual)


#: A quadratic in the weights of some rows, which it holds and moves.
Quadratic = GramQuadratic | ResidualQuadratic


def _usable_curvature(steps: np.ndarray) -> np.ndarray:
    """Return second derivatives, with zeros for those so small that a step could overflow.

    The loops skip rows whose curvature is zero. Such a column is constant on the samples, and no
    weight of it changes the loss.
    """
    info = np.finfo(steps.dtype)
    return np.where(steps > info.tiny / info.eps, steps, steps.dtype.type(0.0))


def kind_of(exponent: float) -> int:
    """Return the number that stands for a row norm in the compiled loops."""
    # An argument and not a type: one compiled loop then serves all three norms.
    return 0 if math.isinf(exponent) else int(exponent)


def descend(
    quadratic: Quadratic,
    alpha: float,
    exponent: float,
    *,
    tol: float,
    max_epochs: int,
    depth: int = DEFAULT_SETTINGS.anderson_depth,
) -> int:
    """Lower ``quadratic + alpha * sum of row norms`` until its duality gap is ``tol``.

    Every ``depth`` epochs the iterates are extrapolated. Returns the number of epochs.
    """
    done = 0
    while done < max_epochs:
        # The history starts anew after each extrapolation, which would not be a step of the map.
        steps = [quadratic.weights.copy()]
        for _ in range(min(depth, max_epochs - done)):
            quadratic.epochs(alpha, exponent, 1)
            steps.append(quadratic.weights.copy())
            done += 1
        if gap_of(quadratic, alpha, exponent) <= tol:
            break
        _extrapolate(quadratic, steps, alpha, exponent)
    return done


def gap_of(quadratic: Quadratic, alpha: float, exponent: float) -> float:
    """Return the duality gap of a quadratic under the sum of row norms."""
    weights, gradient = quadratic.weights, quadratic.gradient()
    largest = float(np.max(row_norms(gradient, conjugate(exponent)), initial=0.0))
    penalty = alpha * sum_of_norms(weights, exponent)
    inner = float(np.vdot(weights, gradient))
    return least_squares_gap(float(quadratic.value()), inner, largest, alpha, penalty)


def least_squares_gap(
    value: float, inner: float, dual: float, alpha: float, penalty: float
) -> float:
    """Return the duality gap of a quadratic under a norm (:eq:`model-gap`).

    Parameters
    ----------
    value, penalty : float
        The loss, and ``alpha`` times the norm of the weights.
    inner, dual : float
        Inner product of weights and gradient, and the dual norm of the gradient.
    alpha : float
        Weight of the norm.
    """
    # The dual point is scaled until it is feasible, as in the gap of the whole problem.
    scale = 1.0 if dual <= alpha else alpha / dual
    # A quadratic of this kind is never negative, but its value may be rounded to just below zero.
    return max(0.0, value) * (1.0 - scale) ** 2 + scale * inner + penalty


def _extrapolate(
    quadratic: Quadratic, steps: list[np.ndarray], alpha: float, exponent: float
) -> None:
    """Move to the mix of the last iterates whose changes cancel best, if it is lower.

    The shares of the mix are those of :eq:`anderson-mix`.
    """
    changes = np.stack([(b - a).ravel() for a, b in pairwise(steps)])
    # Solved in double precision whatever the data are, because the system is nearly singular.
    cross = (changes @ changes.T).astype(np.float64)
    size = float(np.trace(cross))
    if not _LEAST_CHANGES < size < 1.0 / _LEAST_CHANGES:
        return
    # Near the solution all changes point along the slowest direction, and rows of the system are
    # almost multiples of each other. Without a ridge the shares would be huge and cancel.
    cross[np.diag_indices_from(cross)] += _EXTRAPOLATION_RIDGE * size
    shares = np.linalg.solve(cross, np.ones(len(cross)))
    total = float(np.sum(shares))
    if not math.isfinite(total) or total == 0.0:
        return
    shares = (shares / total).astype(changes.dtype)
    here, before = quadratic.weights, _objective(quadratic, alpha, exponent)
    quadratic.move(np.einsum("s,sij->ij", shares, np.stack(steps[1:])))
    # The mix ignores the kinks of the norm and may be worse. ``not <`` also rejects NaN.
    if not _objective(quadratic, alpha, exponent) < before:
        quadratic.move(here)


def _objective(quadratic: Quadratic, alpha: float, exponent: float) -> float:
    return quadratic.value() + alpha * sum_of_norms(quadratic.weights, exponent)
