"""A plot of the convergence of a path of kernels, and its bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.display.path import AxesDisplay, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator


@dataclass(kw_only=True, eq=False, repr=False)
class KernelRatesDisplay(AxesDisplay):
    """The excess loss along a path of kernels, on a logarithmic axis, and its bound.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    excess : array-like of shape (n_rounds + 1,)
        The loss above the smallest loss of the chosen kernels, first of the model without kernels.
    bound : array-like of shape (n_rounds + 1,), default=None
        The upper bound of the theory (:eq:`geometric-rate`).
    measured, predicted : float, default=None
        The factor by which the excess loss fell in a round, and its upper bound.
    estimator_name : str, default=None
        Title in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that holds them.
    excess_line_, bound_line_ : matplotlib Line2D or None
        The curves.

    Examples
    --------
    >>> from mixnorm.display import KernelRatesDisplay
    >>> display = KernelRatesDisplay(excess=[1.0, 0.2, 0.05], bound=[1.0, 0.9, 0.81])
    >>> display.plot().ax_.get_yscale()
    'log'
    """

    excess: ArrayLike
    bound: ArrayLike | None = None
    measured: float | None = None
    predicted: float | None = None
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        name: str | None = None,
    ) -> Self:
        """Plot the rates of a fitted learner that chose kernels.

        Parameters
        ----------
        estimator : fitted GreedyMKLRegressor or GreedyMKLClassifier
            With a squared loss.
        X, y : array-like
            The training data, as ``estimator.rates`` takes them.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        name : str, default=None
            Name in the legend; ``None`` takes the class of the estimator.

        Returns
        -------
        display : KernelRatesDisplay
            The display, already drawn.

        Examples
        --------
        >>> import numpy as np
        >>> from mixnorm import GreedyMKLRegressor
        >>> from mixnorm.display import KernelRatesDisplay
        >>> from mixnorm.kernels import KernelBank
        >>> X = np.random.default_rng(0).standard_normal((100, 5))
        >>> bank = KernelBank.per_feature("linear")
        >>> y = X[:, 0] - 0.5 * X[:, 3]
        >>> model = GreedyMKLRegressor(bank, n_kernels=4, algorithm="l2").fit(X, y)
        >>> len(KernelRatesDisplay.from_estimator(model, X, y).excess)
        5
        """
        require_matplotlib("KernelRatesDisplay")
        if getattr(estimator, "rates", None) is None:
            raise TypeError(
                f"{type(estimator).__name__} has no rates. Give a fitted GreedyMKLRegressor or "
                "GreedyMKLClassifier."
            )
        rates = estimator.rates(X, y)
        display = cls(
            excess=rates.excess,
            bound=rates.bound,
            measured=rates.measured,
            predicted=rates.predicted,
            estimator_name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None, *, name: str | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        name : str, default=None
            Name in the legend; ``None`` takes ``estimator_name``.

        Returns
        -------
        display : KernelRatesDisplay
            The same display, with ``ax_``, ``figure_`` and the lines set.
        """
        self._open_axes(ax)
        from matplotlib.ticker import MaxNLocator

        excess = np.asarray(self.excess, dtype=np.float64)
        rounds = np.arange(len(excess))
        label = "measured" if self.measured is None else f"measured: x {self.measured:.3g} a round"
        above = np.where(excess > 0.0, excess, np.nan)
        self.excess_line_ = self.ax_.semilogy(rounds, above, marker=".", label=label)[0]
        self.bound_line_: Line2D | None = None
        if self.bound is not None:
            said = "" if self.predicted is None else f": x {self.predicted:.6g} a round"
            (self.bound_line_,) = self.ax_.semilogy(
                rounds, np.asarray(self.bound), color="C7", linestyle="--", label=f"bound{said}"
            )
        self.ax_.set_xlabel("Rounds")
        self.ax_.set_ylabel("Loss above the best of the chosen kernels")
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.legend(title=self.estimator_name if name is None else name)
        return self
