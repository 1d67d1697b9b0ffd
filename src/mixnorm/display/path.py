"""A plot of error and loss against the number of features, and the base of displays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator


class AxesDisplay:
    """Base of displays that draw on one pair of axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        The figure that holds them.
    """

    ax_: Axes
    figure_: FigureBase

    def _open_axes(self, ax: Axes | None, **options: Any) -> None:
        """Keep the given axes, or new ones with ``options``."""
        plt = require_matplotlib(type(self).__name__)
        self.ax_ = plt.subplots(**options)[1] if ax is None else ax
        self.figure_ = self.ax_.figure


@dataclass(kw_only=True, eq=False, repr=False)
class ShareBoostPathDisplay(AxesDisplay):
    """Error and loss along a ShareBoost path, with the chosen size marked.

    Use :meth:`from_estimator` to make one. The curves are kept as attributes,
    so that :meth:`plot` can draw them again elsewhere.

    Parameters
    ----------
    loss : array-like of shape (n_rounds,)
        Training loss after each round.
    error : array-like of shape (n_rounds,), default=None
        Error on given data after each round.
    cv_n_features : array-like of shape (n_sizes,), default=None
        Numbers of features that were cross-validated.
    cv_error : array-like of shape (n_sizes,), default=None
        Mean error over the folds at each of those sizes.
    cv_std : array-like of shape (n_sizes,), default=None
        Standard deviation of the error over the folds.
    n_chosen : int, default=None
        The size to mark.
    error_name : str, default="Error"
        Label of the error axis.
    estimator_name : str, default=None
        Title in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the error curves, or with the loss where there is no error.
    loss_ax_ : matplotlib Axes
        Axes with the loss; shares its horizontal axis with ``ax_``.
    figure_ : matplotlib Figure
        Figure that holds them.
    error_line_, cv_line_, loss_line_, chosen_line_ : matplotlib Line2D or None
        The lines, or ``None`` for data that were not given.

    Examples
    --------
    >>> from mixnorm import ShareBoostPathDisplay
    >>> display = ShareBoostPathDisplay(loss=[2.0, 1.2, 0.9], error=[0.5, 0.2, 0.1], n_chosen=3)
    >>> display.plot().ax_.get_xlabel()
    'Number of features'
    """

    loss: ArrayLike
    error: ArrayLike | None = None
    cv_n_features: ArrayLike | None = None
    cv_error: ArrayLike | None = None
    cv_std: ArrayLike | None = None
    n_chosen: int | None = None
    error_name: str = "Error"
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike | None = None,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        ax: Axes | None = None,
        name: str | None = None,
        error_kw: dict[str, Any] | None = None,
        loss_kw: dict[str, Any] | None = None,
        chosen_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Plot the path of a fitted ShareBoost estimator.

        Parameters
        ----------
        estimator : fitted ShareBoost estimator
            An estimator that chose its size by cross-validation also shows the mean error over
            the folds, and the chosen size is marked. Otherwise the last size is marked.
        X : array-like or sparse matrix of shape (n_samples, n_features), default=None
            Data to measure the error on, preferably not the training data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            True targets of ``X``. The error is the share of wrong classes, or 1 − R² for a
            regressor.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the error on ``X``.
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure.
        name : str, default=None
            Name in the legend; ``None`` takes the class of the estimator.
        error_kw, loss_kw, chosen_kw : dict, default=None
            Passed on to matplotlib for the error curves, the loss curve and
            the mark of the chosen size.

        Returns
        -------
        display : ShareBoostPathDisplay
            The display, already drawn.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mixnorm import ShareBoostClassifier, ShareBoostPathDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> model = ShareBoostClassifier(n_features_to_select=3).fit(X, y)
        >>> display = ShareBoostPathDisplay.from_estimator(model, X, y)
        >>> len(display.loss), display.n_chosen
        (3, 3)
        """
        require_matplotlib()
        _check_estimator(estimator)
        if (X is None) != (y is None):
            raise ValueError("The error needs both X and y: give both, or neither.")
        curves = _collect_scores(estimator)
        if X is not None and y is not None:
            curves["error"] = _compute_errors(estimator, X, y, sample_weight)
        display = cls(
            loss=np.asarray(estimator.path_["loss"], dtype=np.float64),
            n_chosen=getattr(estimator, "n_features_to_select_", len(estimator.path_["loss"])),
            estimator_name=type(estimator).__name__ if name is None else name,
            **curves,
        )
        return display.plot(ax, error_kw=error_kw, loss_kw=loss_kw, chosen_kw=chosen_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        error_kw: dict[str, Any] | None = None,
        loss_kw: dict[str, Any] | None = None,
        chosen_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; ``None`` makes a new figure. With error curves the
            loss has a second vertical axis on the right.
        name : str, default=None
            Name in the legend; ``None`` takes ``estimator_name``.
        error_kw, loss_kw, chosen_kw : dict, default=None
            Passed on to matplotlib for the error curves, the loss curve and
            the mark of the chosen size.

        Returns
        -------
        display : ShareBoostPathDisplay
            The same display, with ``ax_``, ``loss_ax_``, ``figure_`` and the
            lines set.
        """
        self._open_axes(ax)
        from matplotlib.ticker import MaxNLocator

        self._plot_errors(error_kw or {})
        with_error = self.error_line_ is not None or self.cv_line_ is not None
        self.loss_ax_ = self.ax_.twinx() if with_error else self.ax_
        self._plot_loss(loss_kw or {})
        self._mark_chosen(chosen_kw or {})
        self.ax_.set_xlabel("Number of features")
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        lines = [self.error_line_, self.cv_line_, self.loss_line_, self.chosen_line_]
        self.ax_.legend(
            handles=[line for line in lines if line is not None],
            title=self.estimator_name if name is None else name,
            loc="upper right",
        )
        return self

    def _plot_errors(self, options: dict[str, Any]) -> None:
        self.error_line_: Line2D | None = None
        self.cv_line_: Line2D | None = None
        if self.error is not None:
            style = {"color": "C0", "marker": ".", "label": "error on the given data"}
            self.error_line_ = _plot_rounds(self.ax_, self.error, style | options)
        if self.cv_error is not None:
            sizes, mean = np.asarray(self.cv_n_features), np.asarray(self.cv_error)
            style = {"color": "C1", "marker": ".", "label": "cross-validation"}
            (self.cv_line_,) = self.ax_.plot(sizes, mean, **style | options)
            if self.cv_std is not None:
                spread = np.asarray(self.cv_std)
                color = self.cv_line_.get_color()
                self.ax_.fill_between(sizes, mean - spread, mean + spread, color=color, alpha=0.2)
        if self.error is not None or self.cv_error is not None:
            self.ax_.set_ylabel(self.error_name)

    def _plot_loss(self, options: dict[str, Any]) -> None:
        style = {"color": "C7", "linestyle": "--", "label": "training loss"}
        self.loss_line_ = _plot_rounds(self.loss_ax_, self.loss, style | options)
        self.loss_ax_.set_ylabel("Training loss")

    def _mark_chosen(self, options: dict[str, Any]) -> None:
        self.chosen_line_: Line2D | None = None
        if self.n_chosen is not None:
            style = {"color": "black", "linestyle": ":", "label": f"chosen: {self.n_chosen}"}
            self.chosen_line_ = self.ax_.axvline(self.n_chosen, **style | options)


def require_matplotlib(what: str = "ShareBoostPathDisplay") -> Any:
    """Return ``matplotlib.pyplot``; raise an error with the pip command if it is missing."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(f'{what} needs matplotlib: pip install "mixnorm[plot]"') from error
    return plt


def _check_estimator(estimator: BaseEstimator) -> None:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    if any(getattr(estimator, name, None) is None for name in ("path_", "staged_predict")):
        raise TypeError(
            f"{type(estimator).__name__} has no path of models. Give a fitted "
            "ShareBoostClassifier, ShareBoostRegressor, or one of their CV forms."
        )


def _plot_rounds(ax: Axes, curve: ArrayLike, options: dict[str, Any]) -> Line2D:
    """Plot values against rounds, which are counted from 1."""
    values = np.asarray(curve)
    return ax.plot(np.arange(1, len(values) + 1), values, **options)[0]


def _compute_errors(
    estimator: BaseEstimator, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> np.ndarray:
    from sklearn.base import is_regressor
    from sklearn.metrics import accuracy_score, r2_score

    score = r2_score if is_regressor(estimator) else accuracy_score
    staged = estimator.staged_predict(X)
    return np.array([1.0 - score(y, guess, sample_weight=sample_weight) for guess in staged])


def _collect_scores(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the name of the error, and the cross-validated curve of estimators that have one."""
    from sklearn.base import is_regressor

    named = {"error_name": "1 − R²" if is_regressor(estimator) else "Error rate"}
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return named
    mean = np.asarray(results["mean_test_score"], dtype=np.float64)
    error = {"cv_error": 1.0 - mean, **named}
    if getattr(estimator, "scoring", None) is not None:
        # The largest value of another score is not known, so only its sign is changed.
        error = {"cv_error": -mean, "error_name": "Error (cross-validation: minus the score)"}
    spread = np.asarray(results["std_test_score"], dtype=np.float64)
    return {"cv_n_features": np.asarray(results["n_features"]), "cv_std": spread, **error}
