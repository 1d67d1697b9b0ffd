"""Pictures of chosen patches: the template, its places on the image, and its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixnorm._array import ArrayLike, MatrixLike, is_foreign, is_sparse, namespace, to_numpy
from mixnorm._numbers import check_count
from mixnorm.display.path import require_matplotlib
from mixnorm.models import PathModel
from mixnorm.pools import Patches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from sklearn.base import BaseEstimator


_COLOUR_FOR, _COLOUR_AGAINST, _COLOUR_OF_MASK = "#0072B2", "#E69F00", "#D55E00"


@dataclass(kw_only=True, eq=False, repr=False)
class PatchDisplay:
    """The chosen patches of a model, with three pictures for each patch.

    The first picture is the template, light where it responds to ink and dark where it responds to
    background. The second shows where on an image it is looked for. The third has a bar for its
    weight in each class or output.

    Use :meth:`from_estimator` to make one.

    Parameters
    ----------
    templates : sequence of arrays of shape (size, size)
        The templates.
    masks : sequence of arrays of shape (height, width)
        The places where the middle of the patch may be, as values between zero and one.
    weights : array-like of shape (n_patches, n_outputs)
        The weights of the responses in the scores.
    names : sequence of length n_outputs
        The classes or outputs.
    image : array-like of shape (height, width), default=None
        The image to draw under the masks.
    weight_name : str, default="weight"
        The meaning of the bars.
    titles : sequence of str, default=None
        A title for each patch; their numbers if not given.
    estimator_name : str, default=None
        Title of the figure.

    Attributes
    ----------
    figure_ : matplotlib Figure or SubFigure
        The figure.
    axes_ : ndarray of Axes of shape (n_patches, 3)
        The axes of template, mask and bars of every patch.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.display import PatchDisplay
    >>> edge, place = np.array([[1.0, -1.0], [1.0, -1.0]]), np.ones((8, 8))
    >>> display = PatchDisplay(
    ...     templates=[edge], masks=[place], weights=[[0.5, -0.5]], names=["left", "right"]
    ... )
    >>> display.plot().axes_.shape
    (1, 3)
    """

    templates: Any
    masks: Any
    weights: ArrayLike
    names: Any
    image: ArrayLike | None = None
    weight_name: str = "weight"
    titles: Any = None
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike | None = None,
        *,
        n_patches: int = 12,
        image: ArrayLike | None = None,
        figure: Figure | SubFigure | None = None,
        n_across: int = 3,
        name: str | None = None,
    ) -> Self:
        """Draw the first patches of a fitted model.

        Parameters
        ----------
        estimator : fitted ShareBoost estimator
            With a pool of :class:`~mixnorm.pools.Patches`, alone or in a
            :class:`~mixnorm.pools.Union`, of whose atoms only the patches are drawn.
        X : array-like of shape (n_samples, height, width) or (n_samples, n_pixels), default=None
            Images, for example the training images. Their mean is drawn under the masks, and
            weights are multiplied by the largest response among them, which makes the weights of
            different patches comparable. Without ``X``, weights are those of a response of one.
        n_patches : int, default=12
            The largest number of patches to draw, in the order they were chosen.
        image : array-like of shape (height, width), default=None
            The image to draw under the masks instead of the mean.
        figure : matplotlib Figure or SubFigure, default=None
            The figure to draw on; ``None`` makes a new one.
        n_across : int, default=3
            The number of patches in a row.
        name : str, default=None
            Title; ``None`` takes the class of the estimator.

        Returns
        -------
        display : PatchDisplay
            The display, already drawn.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from mixnorm import ShareBoostClassifier
        >>> from mixnorm.display import PatchDisplay
        >>> from mixnorm.pools import Patches
        >>> digits = load_digits()
        >>> pool = Patches(size=3, n_templates=20, masks=9)
        >>> model = ShareBoostClassifier(6, pool=pool, random_state=0)
        >>> model = model.fit(digits.images, digits.target)
        >>> display = PatchDisplay.from_estimator(model, digits.images)
        >>> len(display.templates), display.weights.shape
        (6, (6, 10))
        """
        require_matplotlib("PatchDisplay")
        found = _find_patches(estimator, check_count("n_patches", n_patches))
        pool = found[0][0]
        weights = _get_weights(estimator)[[column for _, _, column in found]]
        unit = "weight"
        if X is not None:
            table = _as_rows(X, pool.shape)
            responses = [member.evaluate(table, [atom]) for member, atom, _ in found]
            largest = [np.max(to_numpy(part), initial=0.0) for part in responses]
            weights, unit = weights * np.asarray(largest)[:, None], "weight of the largest response"
            image = _average(table) if image is None else image
        display = cls(
            templates=[member.template(atom) for member, atom, _ in found],
            masks=[member.mask(atom, estimator.n_features_in_) for member, atom, _ in found],
            weights=weights,
            names=_get_names(estimator, weights.shape[1]),
            image=None if image is None else _as_picture(image, pool.shape),
            weight_name=unit,
            titles=[f"{column + 1}" for _, _, column in found],
            estimator_name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(figure, n_across=n_across)

    def plot(
        self,
        figure: Figure | SubFigure | None = None,
        *,
        n_across: int = 3,
        name: str | None = None,
    ) -> Self:
        """Draw the patches.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, default=None
            The figure to draw on; ``None`` makes a new one.
        n_across : int, default=3
            The number of patches in a row.
        name : str, default=None
            Title; ``None`` takes ``estimator_name``.

        Returns
        -------
        display : PatchDisplay
            The same display, with ``figure_`` and ``axes_`` set.
        """
        plt = require_matplotlib("PatchDisplay")
        n_patches = len(self.templates)
        across = min(check_count("n_across", n_across), n_patches)
        down = -(-n_patches // across)
        if figure is None:
            size = (3.6 * across, 1.25 * down + 0.5)
            figure = plt.figure(figsize=size, layout="constrained")
        grid = figure.subplots(
            down, 3 * across, squeeze=False, width_ratios=[1.0, 1.0, 1.6] * across
        )
        places = grid.reshape(down * across, 3)
        for ax in places[n_patches:].flat:
            ax.remove()
        self.figure_, self.axes_ = figure, places[:n_patches]
        weights = np.asarray(self.weights, dtype=np.float64)
        reach = 1.05 * float(np.max(np.abs(weights), initial=0.0)) or 1.0
        for number, (template, mask, bars) in enumerate(self.axes_):
            title = str(number + 1) if self.titles is None else str(self.titles[number])
            self._draw_template(template, number)
            template.set_title(title, fontsize="small", loc="left")
            self._draw_mask(mask, number)
            self._draw_bars(bars, weights[number], reach)
        shown = f"template, places, and the {self.weight_name}"
        figure.supxlabel(shown, fontsize="small")
        heading = self.estimator_name if name is None else name
        if heading:
            figure.suptitle(heading)
        return self

    def _draw_template(self, ax: Axes, number: int) -> None:
        template = np.asarray(self.templates[number], dtype=np.float64)
        reach = float(np.max(np.abs(template))) or 1.0
        ax.imshow(template, cmap="gray", vmin=-reach, vmax=reach)
        ax.set(xticks=[], yticks=[])

    def _draw_mask(self, ax: Axes, number: int) -> None:
        from matplotlib.colors import ListedColormap

        mask = np.asarray(self.masks[number], dtype=np.float64)
        under = np.zeros(mask.shape) if self.image is None else np.asarray(self.image)
        ax.imshow(under, cmap="Greys")
        ax.imshow(np.ones(mask.shape), cmap=ListedColormap([_COLOUR_OF_MASK]), alpha=0.75 * mask)
        ax.set(xticks=[], yticks=[])

    def _draw_bars(self, ax: Axes, weights: np.ndarray, reach: float) -> None:
        places = np.arange(len(weights))
        ax.bar(places, weights, color=np.where(weights > 0.0, _COLOUR_FOR, _COLOUR_AGAINST))
        ax.axhline(0.0, color="0.5", linewidth=0.5)
        ax.set(ylim=(-reach, reach), xlim=(-0.6, len(weights) - 0.4))
        ax.set_xticks(places, [str(name) for name in self.names], fontsize=6)
        ax.tick_params(axis="x", length=0, pad=1)
        ax.tick_params(axis="y", labelsize=6, pad=1)


def _find_patches(estimator: BaseEstimator, n_patches: int) -> list[tuple[Any, Any, int]]:
    """Return the first patches of a model: pool, atom, and column in ``coef_``."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    model = getattr(estimator, "model_", None)
    if not isinstance(model, PathModel):
        raise TypeError(
            f"{type(estimator).__name__} has no chosen patches. Give a fitted ShareBoostClassifier "
            "or ShareBoostRegressor, or one of their CV forms, with pool=Patches(); of a pipeline, "
            "the last step."
        )
    pool = model.pool
    found, column = list[tuple[Any, Any, int]](), 0
    for atom in model.support:
        member, own = pool.member(atom)
        if isinstance(member, Patches):
            found.append((member, own, column))
        column += pool.n_columns(atom, model.inputs.n_features)
    if not found:
        raise ValueError(
            f"The pool of this {type(estimator).__name__} is {type(pool.given).__name__}, and no "
            "patch was chosen from it. Fit it with pool=mixnorm.pools.Patches()."
        )
    return found[:n_patches]


def _get_weights(estimator: BaseEstimator) -> np.ndarray:
    """Return ``coef_``, one row per column: ``(n_columns, n_outputs)``; two classes have two."""
    weights = np.atleast_2d(to_numpy(estimator.coef_)).T
    classes = getattr(estimator, "classes_", None)
    if classes is not None and weights.shape[1] == 1:  # the difference of opposite weights
        return np.concatenate([-weights, weights], axis=1) / 2
    return weights


def _get_names(estimator: BaseEstimator, n_outputs: int) -> list[Any]:
    classes = getattr(estimator, "classes_", None)
    return list(range(n_outputs)) if classes is None else to_numpy(classes).tolist()


def _as_rows(X: MatrixLike, shape: tuple[int, int]) -> Any:
    """Return images as rows of pixels."""
    rows: Any = X if is_foreign(X) or is_sparse(X) else np.asarray(X)
    _check_pixels("X", rows.shape[1:], shape)
    return rows if len(rows.shape) == 2 else namespace(rows).reshape(rows, (rows.shape[0], -1))


def _average(table: Any) -> np.ndarray:
    """Return the mean of all rows."""
    if is_foreign(table):
        xp = namespace(table)
        return to_numpy(xp.mean(xp.astype(table, xp.float32), axis=0))
    return np.asarray(table.mean(axis=0)).reshape(-1)


def _as_picture(image: ArrayLike, shape: tuple[int, int]) -> np.ndarray:
    """Return an image, given as rows and columns or as one row."""
    pixels = to_numpy(image)
    _check_pixels("image", pixels.shape, shape)
    return np.reshape(pixels, shape)


def _check_pixels(name: str, given: tuple[int, ...], shape: tuple[int, int]) -> None:
    """Raise unless images have the shape of those of the model, or are rows of pixels."""
    height, width = shape
    if tuple(given) not in ((height, width), (height * width,)):
        raise ValueError(
            f"{name} has images of the shape {tuple(given)}, but the model is for images of "
            f"{height} x {width} pixels; give such images, or rows of their pixels."
        )
