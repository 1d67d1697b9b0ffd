"""The report: its data, and their checks."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from mixnorm._files import write_atomically

_TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Feature:
    """One feature of the path, with the figures of the model after it was added.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : str
        The kind of its values: ``"number"``, ``"category (7 levels)"``, ``"date"``.
    loss : float
        Training loss after this feature was added.
    gain : float
        The decrease of the training loss in this round.
    error : float or None
        Held-out error after this round; ``None`` if it was not measured.
    n_columns : int, default=1
        The number of columns that encode the feature.
    folds : int or None, default=None
        The number of fold models that use the feature; ``None`` if they were not counted.
    """

    name: str
    kind: str
    loss: float
    gain: float
    error: float | None
    n_columns: int = 1
    folds: int | None = None


@dataclass(frozen=True)
class FullModel:
    """The linear model over all features, for comparison.

    Parameters
    ----------
    error : float
        Its held-out error.
    n_features : int
        The number of features that it needs.
    multiply_adds : int
        The cost of one prediction.
    note : str, default=""
        A sentence on its training.
    own_error : float or None, default=None
        Held-out error of ShareBoost with all features.
    """

    error: float
    n_features: int
    multiply_adds: int
    note: str = ""
    own_error: float | None = None


# Without ==, because a comparison of arrays gives an array.
@dataclass(frozen=True, eq=False)
class Report:
    """A model of few features as one self-contained HTML page.

    The page loads nothing and runs no script, follows the light or dark scheme of the reader's
    system, and can be printed. Numbers that are not finite are shown as a dash.

    Parameters
    ----------
    title : str
        Headline, such as ``"class from cars.csv"``.
    task : {"classification", "regression"}
        Errors are shares of wrong rows for classification.
    target : str
        Name of the target column.
    created : str
        Date and time.
    version : str
        Version of mixnorm.
    command : str
        The command that made the report.
    rows, columns : int
        Rows of the table, and columns that could be chosen.
    notes : tuple of str
        Sentences on the preparation of the data, and warnings.
    chosen : int
        Number of features of the model.
    how_chosen, how_measured : str
        A sentence on the choice of the number of features, and one on the rows of the error.
    null_loss : float
        Training loss without features.
    null_error : float or None
        Held-out error without features.
    features : tuple of Feature
        The path in order, which may be longer than the chosen number.
    standard_error : tuple of float, or None
        Standard error of the held-out error after each feature of the path.
    classes : tuple of str
        Names of the classes, or of the outputs of a regression.
    effects : array of shape (n_classes, chosen)
        The effect of each feature of the model on the score of each class: the standard deviation
        of its contribution, with the sign of the coefficient.
    signed : tuple of bool
        For each feature of the model, whether the sign has a meaning.
    confusion : array of shape (n_classes, n_classes), or None
        Counts of held-out rows; rows are true classes, columns predicted ones.
    scatter : array of shape (n_rows, 2), or None
        Truth and prediction of held-out rows, for regression.
    multiply_adds : int
        The cost of one prediction.
    model_bytes : int or None
        Size of the stored model.
    fit_seconds : float
        The duration of the fit.
    full : FullModel or None
        The model over all features.
    interrupted : str, default=""
        A sentence on the result of an interrupted fit.
    error_name : str, default="error"
        The name of the error: ``"error rate"``, ``"RMSE"``.
    word : str, default="feature"
        The word for a feature; ``"stump"`` or ``"product"`` for features derived from columns.
    columns_read : int or None, default=None
        The number of columns that the model reads; None if there is one for each feature.
    comparisons : int, default=0
        The number of comparisons for one prediction.
    members : tuple of str, or None, default=None
        Names of the features of the model, in the order of ``effects``. None if they are the first
        features of the path, that is, if no earlier choice was replaced.
    how_folds : str, default=""
        A sentence on the features of the fold models and on the counts beside each feature.
    n_folds : int or None, default=None
        The number of folds behind the errors.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm.display import Feature, Report
    >>> report = Report(
    ...     title="species from flowers.csv",
    ...     task="classification",
    ...     target="species",
    ...     created="2026-11-15 14:02 UTC",
    ...     version="0.1",
    ...     command="mixnorm fit flowers.csv",
    ...     rows=150,
    ...     columns=4,
    ...     notes=(),
    ...     chosen=1,
    ...     how_chosen="One feature was asked for.",
    ...     how_measured="Errors are measured on 50 held-out rows.",
    ...     null_loss=0.69,
    ...     null_error=0.5,
    ...     features=(Feature("petal length", "number", 0.2, 0.49, 0.04),),
    ...     standard_error=None,
    ...     classes=("setosa", "virginica"),
    ...     effects=np.array([[-1.5], [1.5]]),
    ...     signed=(True,),
    ...     confusion=np.array([[24, 1], [1, 24]]),
    ...     scatter=None,
    ...     multiply_adds=2,
    ...     model_bytes=None,
    ...     fit_seconds=0.1,
    ...     full=None,
    ... )
    >>> page = report.to_html()
    >>> page.startswith("<!DOCTYPE html>"), "petal length" in page
    (True, True)
    """

    title: str
    task: str
    target: str
    created: str
    version: str
    command: str
    rows: int
    columns: int
    notes: tuple[str, ...]
    chosen: int
    how_chosen: str
    how_measured: str
    null_loss: float
    null_error: float | None
    features: tuple[Feature, ...]
    standard_error: tuple[float, ...] | None
    classes: tuple[str, ...]
    effects: np.ndarray
    signed: tuple[bool, ...]
    confusion: np.ndarray | None
    scatter: np.ndarray | None
    multiply_adds: int
    model_bytes: int | None
    fit_seconds: float
    full: FullModel | None
    interrupted: str = ""
    error_name: str = "error"
    word: str = "feature"
    columns_read: int | None = None
    comparisons: int = 0
    members: tuple[str, ...] | None = None
    how_folds: str = ""
    n_folds: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features of the model."""
        if self.members is not None:
            return self.members
        return tuple(feature.name for feature in self.features[: self.chosen])

    @property
    def n_read(self) -> int:
        """Columns of the table that the model reads."""
        return self.chosen if self.columns_read is None else self.columns_read

    def __post_init__(self) -> None:
        for name in ("effects", "confusion", "scatter"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.task not in _TASKS:
            raise ValueError(f"task={self.task!r} is unknown; give one of {', '.join(_TASKS)}.")
        if not 0 <= self.chosen <= len(self.features):
            raise ValueError(
                f"chosen={self.chosen} lies outside the path of {len(self.features)} features;"
                " give all features of the model, in order."
            )
        lengths = {"signed": self.chosen, "members": self.chosen}
        for name, wanted in {**lengths, "standard_error": len(self.features)}.items():
            values, of = getattr(self, name), "model" if name in lengths else "path"
            if values is not None and len(values) != wanted:
                raise ValueError(
                    f"{name} has {len(values)} values; give {wanted}, one per feature of the {of}."
                )
        self._check_arrays()

    def _check_arrays(self) -> None:
        k = len(self.classes)
        if k == 0:
            raise ValueError("classes is empty; name the classes, or the output of a regression.")
        shapes = {"effects": (k, self.chosen), "confusion": (k, k)}
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ValueError(
                    f"{name} has shape {array.shape}; with {k} classes and {self.chosen} chosen"
                    f" features it must have {shape}."
                )
        counts = np.zeros(1) if self.confusion is None else self.confusion
        if not np.all((counts >= 0) & (counts < np.inf)):
            raise ValueError("confusion has negative or infinite values; give counts.")
        if self.scatter is not None and (self.scatter.ndim != 2 or self.scatter.shape[1] != 2):
            raise ValueError(
                f"scatter has shape {self.scatter.shape}; give two columns, truth and guess."
            )

    def to_html(self) -> str:
        """Return the page.

        Returns
        -------
        str
            An HTML document, always the same for the same report.
        """
        from mixnorm.display.report.page import page  # which imports this module

        return page(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file. An error leaves no partial file.

        Parameters
        ----------
        path : path-like
            The file, which is replaced if it exists.
        """
        with write_atomically(path) as file:
            file.write(self.to_html().encode("utf-8"))
