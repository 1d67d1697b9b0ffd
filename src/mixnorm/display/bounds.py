"""A plot of a bound and the measured values, against samples or rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.display.path import AxesDisplay
from mixnorm.norms import Norm

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator


@dataclass(kw_only=True, eq=False, repr=False)
class BoundDisplay(AxesDisplay):
    """A bound and the quantity that it bounds, on logarithmic axes.

    Use :meth:`from_norm` or :meth:`from_shareboost` to make one, or give the numbers.

    Parameters
    ----------
    x : array-like of shape (n_points,)
        Numbers of samples, or of rounds.
    bound : array-like of shape (n_points,)
        The bounds.
    measured : array-like of shape (n_points,), default=None
        The measured values.
    error : array-like of shape (n_points,), default=None
        Standard errors of the measured values.
    x_name, y_name : str
        Names of the axes.
    name : str, default=None
        Title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that holds them.
    bound_line_, measured_line_ : matplotlib Line2D or None
        The curves.

    Examples
    --------
    >>> from mixnorm.display import BoundDisplay
    >>> display = BoundDisplay(x=[10, 100], bound=[1.0, 0.3], measured=[0.4, 0.1])
    >>> display.plot().ax_.get_xscale()
    'log'
    """

    x: ArrayLike
    bound: ArrayLike
    measured: ArrayLike | None = None
    error: ArrayLike | None = None
    x_name: str = "samples"
    y_name: str = "bound"
    name: str | None = None

    @classmethod
    def from_norm(
        cls,
        norm: str | Norm,
        X: MatrixLike,
        *,
        radius: float,
        n_outputs: int = 1,
        examples: str | None = None,
        sizes: ArrayLike | None = None,
        n_draws: int = 100,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the Rademacher complexity of a ball, bounded and estimated, against samples.

        Parameters
        ----------
        norm, X, radius, n_outputs, examples
            As in :func:`mixnorm.bounds.rademacher`.
        sizes : array-like of int, default=None
            Numbers of rows, counted from the first row of ``X``; five sizes by default.
        n_draws, random_state
            As in :func:`mixnorm.bounds.rademacher_estimate`.
        ax : matplotlib Axes, default=None
            Axes to draw on.

        Returns
        -------
        BoundDisplay
        """
        from mixnorm import bounds
        from mixnorm.data import is_list_of_tables

        tasks = is_list_of_tables(X)
        parts: Any = X if tasks else [X]
        n = min(np.shape(part)[0] for part in parts)
        if sizes is None:
            sizes = np.unique(np.geomspace(max(2, n // 16), n, 5).astype(int))
        options: dict[str, Any] = {"radius": radius, "n_outputs": n_outputs, "examples": examples}
        counts = sorted({min(n, int(size)) for size in np.asarray(sizes)})

        promised, found = [], []
        drawn = {**options, "n_draws": n_draws, "random_state": random_state}
        for size in counts:
            rows = [part[:size] for part in parts] if tasks else parts[0][:size]
            promised.append(bounds.rademacher(norm, rows, **options).value)
            found.append(bounds.rademacher_estimate(norm, rows, **drawn))
        display = cls(
            x=counts,
            bound=promised,
            measured=[one.value for one in found],
            error=[one.standard_error for one in found],
            y_name="Rademacher complexity",
            name=str(norm),
        )
        return display.plot(ax=ax)

    @classmethod
    def from_shareboost(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        W: ArrayLike | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot ShareBoost's training loss and its bound, against rounds.

        Parameters
        ----------
        estimator : ShareBoostClassifier
            A fitted model on columns.
        X, y : array-like
            Its training data.
        W : array of the shape of ``coef_``, default=None
            The weights to compare with; the model's own by default.
        ax : matplotlib Axes, default=None
            Axes to draw on.

        Returns
        -------
        BoundDisplay
        """
        from mixnorm import bounds

        last = bounds.shareboost(estimator, X, y, W)
        losses = np.asarray(estimator.path_["loss"], dtype=np.float64)
        rounds = np.arange(1, len(losses) + 1)
        promised = last.inputs["loss"] + 4.0 * last.inputs["comparator"] ** 2 / rounds
        display = cls(
            x=rounds,
            bound=promised,
            measured=losses,
            x_name="rounds",
            y_name="training loss",
            name=type(estimator).__name__,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; new ones if not given.

        Returns
        -------
        BoundDisplay
            This display.
        """
        self._open_axes(ax, layout="constrained")
        x = np.asarray(self.x, dtype=np.float64)
        promised = np.asarray(self.bound)
        self.bound_line_ = self.ax_.plot(x, promised, "--", label="bound of the theory")[0]
        self.measured_line_: Line2D | None = None
        if self.measured is not None:
            values = np.asarray(self.measured, dtype=np.float64)
            (self.measured_line_,) = self.ax_.plot(x, values, "o-", label="measured")
            if self.error is not None:
                spread = 2.0 * np.asarray(self.error, dtype=np.float64)
                self.ax_.fill_between(x, values - spread, values + spread, alpha=0.2)
        self.ax_.set(xscale="log", yscale="log", xlabel=self.x_name, ylabel=self.y_name)
        if self.name:
            self.ax_.set_title(self.name)
        self.ax_.legend()
        return self
