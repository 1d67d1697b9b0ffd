"""Error and loss against the number of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from mixnorm._array import Array, ArrayLike, MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from sklearn.base import BaseEstimator


Floats = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class ShareBoostPathDisplay:
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
        Sizes that were cross-validated.
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
        The lines, ``None`` for those there was nothing to draw for.

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
        X: Array | None = None,
        y: Array | None = None,
        *,
        sample_weight: Array | None = None,
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
            One that chose its size by cross-validation also shows the curve
            of the folds' mean score, and the size it chose; the others have
            their last size marked.
        X : array-like or sparse matrix of shape (n_samples, n_features), default=None
            Data to measure the error on, best not the training data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Truth for ``X``. The error is the share of wrong classes, or for a
            regressor 1 − R².
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
        curves = _cross_validated(estimator)
        if X is not None:
            curves["error"] = _staged_error(estimator, X, y, sample_weight)
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
        plt = require_matplotlib()
        from matplotlib.ticker import MaxNLocator

        self.ax_: Axes = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
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
            (self.error_line_,) = self.ax_.plot(_rounds(self.error), self.error, **style | options)
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
        curve = _rounds(self.loss), self.loss
        self.loss_line_: Line2D = self.loss_ax_.plot(*curve, **style | options)[0]
        self.loss_ax_.set_ylabel("Training loss")

    def _mark_chosen(self, options: dict[str, Any]) -> None:
        self.chosen_line_: Line2D | None = None
        if self.n_chosen is not None:
            style = {"color": "black", "linestyle": ":", "label": f"chosen: {self.n_chosen}"}
            self.chosen_line_ = self.ax_.axvline(self.n_chosen, **style | options)


def require_matplotlib(what: str = "ShareBoostPathDisplay") -> Any:
    """Return ``matplotlib.pyplot``, or raise with the command that installs it."""
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


def _rounds(curve: ArrayLike) -> NDArray[np.int64]:
    return np.arange(1, len(np.asarray(curve)) + 1)


def _staged_error(
    estimator: BaseEstimator, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> Floats:
    from sklearn.base import is_regressor
    from sklearn.metrics import accuracy_score, r2_score

    score = r2_score if is_regressor(estimator) else accuracy_score
    staged = estimator.staged_predict(X)
    return np.array([1.0 - score(y, guess, sample_weight=sample_weight) for guess in staged])


def _cross_validated(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the name of the error, and the folds' curve for estimators that have one."""
    from sklearn.base import is_regressor

    named = {"error_name": "1 − R²" if is_regressor(estimator) else "Error rate"}
    results = getattr(estimator, "cv_results_", None)
    if results is None:
        return named
    mean = np.asarray(results["mean_test_score"], dtype=np.float64)
    curve: dict[str, Any] = {
        **named,
        "cv_n_features": np.asarray(results["n_features"]),
        "cv_error": 1.0 - mean,
        "cv_std": np.asarray(results["std_test_score"], dtype=np.float64),
    }
    if getattr(estimator, "scoring", None) is not None:
        # Another score need not end at one; its sign is all that can be turned.
        curve |= {"cv_error": -mean, "error_name": "Error (cross-validation: minus the score)"}
    return curve
