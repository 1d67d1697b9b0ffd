"""The base of all estimators on the proximal engine: checks, the call, the path, the model."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.data import BlockMatrix, BlockTable
from mixnorm.engines import proximal
from mixnorm.estimators._common.linear import LinearMixin
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import (
    Count,
    Norm,
    Number,
    Switch,
    Tolerance,
    maybe,
)
from mixnorm.estimators._common.progress import (
    CallbackSupportMixin,
    FitTask,
    Iterations,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators._common.selector import ColumnSelectorMixin
from mixnorm.estimators.mixed_norm.grid import Alphas, alpha_grid, check_grid, collect, grid_size
from mixnorm.estimators.mixed_norm.tables import convert_blocks
from mixnorm.estimators.mixed_norm.training import Training, moderate, standardize_columns
from mixnorm.exceptions import InterruptedFitWarning, NotConvergedWarning
from mixnorm.losses import DualLoss, Loss
from mixnorm.models import FitReport, Inputs, LinearModel, MixedNormPath

# The rounding of float32 hides relative gaps smaller than this.
_LEAST_TOL_OF_FLOAT32 = 1e-5


def check_dual_loss(loss: Loss, known: Iterable[str]) -> Any:
    """Return a loss object; raise unless it has the conjugate that the gap needs."""
    if not isinstance(loss, DualLoss):
        raise ValueError(
            f"loss={loss!r} has no conjugate, which the duality gap needs; choose one of "
            f"{sorted(known)}, or give it the methods of mixnorm.losses.DualLoss."
        )
    return loss


def working_dtypes(tol: float, losses: Iterable[Any] = ()) -> Any:
    """Return the dtypes for ``validate_data``: float32 is allowed where it is exact enough.

    It is not for losses with kinks, whose smooth replacements become steep.
    """
    smooth = all(math.isfinite(getattr(loss, "smoothness", 1.0)) for loss in losses)
    return [np.float64, np.float32] if smooth and tol >= _LEAST_TOL_OF_FLOAT32 else np.float64


def drop_unweighted_rows(weight: np.ndarray, *arrays: Any) -> tuple[Any, ...]:
    """Return the weights and the arrays without the rows of weight zero.

    Numbers in such rows could overflow, and their labels would make classes without weight.
    """
    kept = weight > 0.0
    # The rows of a table of blocks stay where they are.
    if np.all(kept) or isinstance(arrays[0], BlockMatrix):
        return weight, *arrays
    return weight[kept], *(array[np.flatnonzero(kept)] for array in arrays)


Penalty = Annotated[float, Number(least=0, why="it is the weight of the norm")]
Radius = Annotated[float | None, maybe(Number(least=0))]


@dataclass(eq=False, repr=False)
class NormParameters:
    """The parameters of every estimator that minimises a loss under a norm."""

    norm: Norm = "l2,1"
    _: KW_ONLY
    fit_intercept: Switch = True
    standardize: Switch = False
    tol: Tolerance = 1e-4
    max_iter: Count = 1000


class NormLearner(
    NormParameters,
    LinearMixin,
    ColumnSelectorMixin,
    CallbackSupportMixin,
    BaseEstimator,
):
    """Base of the estimators that minimise a loss under a norm.

    A subclass gives ``_training_of``; it may override the two methods before that.
    """

    def _make_coef(self, weights: np.ndarray, intercept: np.ndarray) -> tuple[Any, Any]:
        """Return weights as ``(n_outputs, n_features)``, and the intercept."""
        return np.ascontiguousarray(weights.T), intercept

    def _read_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the fitted weights ``(n_features, n_outputs)`` and intercept."""
        return self.model_.coef.T, self.model_.intercept

    def _check_together(self) -> None:
        super()._check_together()
        if getattr(self, "alpha", None) == 0 and self.radius is None:
            raise ValueError(
                f"alpha={self.alpha!r} must be positive: without a penalty there is no duality gap "
                "to stop on. Give a small alpha, or use an estimator without penalty."
            )

    def _columns(self, X: Any, weight: np.ndarray) -> tuple[Any, dict[str, Any]]:
        """Return ``X`` in the units that the norm sees, and these units for ``Training``."""
        if isinstance(X, BlockMatrix):
            return convert_blocks(
                X, weight, standardize=bool(self.standardize), centred=bool(self.fit_intercept)
            )
        if self.standardize:
            (inside,), units = standardize_columns([X], [weight], centred=bool(self.fit_intercept))
        else:
            (inside,), units = moderate([X])
        return inside, units

    def _training_of(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Training, Any]:
        """Validate the data; return them as the engine takes them, with the model's outputs."""
        raise NotImplementedError

    # --- one penalty, or one ball

    @with_callbacks
    def fit(
        self,
        X: MatrixLike | BlockTable,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or BlockTable
            Training data; or a table of row blocks, with its own targets and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, one per row; or the targets of a regression. None for a table
            of row blocks.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            training, outputs = self._training_of(X, y, sample_weight)
            progress = FitTask.of_fit(self, X, y, sample_weight, int(self.max_iter))
            found = self._solve(training, alpha=self.alpha, radius=self.radius, progress=progress)
            self._keep(found, outputs)
            progress.end(dict)
            return self

    @with_callbacks
    def path(
        self,
        X: MatrixLike | BlockTable,
        y: ArrayLike | None = None,
        *,
        alphas: Alphas = 50,
        alpha_ratio: float = 1e-2,
        sample_weight: ArrayLike | None = None,
    ) -> MixedNormPath:
        """Return the solutions for many penalties, each started from the one before.

        ``alpha``, ``radius`` and ``warm_start`` are not used, and the estimator itself does not
        change.

        Parameters
        ----------
        X, y
            Training data, as in ``fit``.
        alphas : int or sequence of float, default=50
            Falling penalties, or how many to take, evenly spaced in logarithms, from the smallest
            penalty that leaves no weights.
        alpha_ratio : float, default=1e-2
            The last of these divided by the first; not used where penalties are given.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        MixedNormPath
            ``alphas``, ``coefs``, ``intercepts``, ``gaps``, ``norm_values``, ``n_features``, ...
        """
        self._check_parameters()
        check_grid(alphas, alpha_ratio)
        scratch = copy.copy(self)  # validation sets attributes
        training, _ = scratch._training_of(X, y, sample_weight)
        progress = FitTask.of_fit(self, X, y, sample_weight, grid_size(alphas))
        largest, grid = scratch._grid(training, alphas, alpha_ratio)
        points = _Points(progress, len(grid), self)
        finished = points.select_finished(scratch._solutions(training, grid))
        path = collect(finished, scratch._make_coef, largest)
        points.report()
        progress.end()
        return path

    def _solve(
        self, training: Training, *, alpha: float | None, radius: float | None, progress: FitTask
    ) -> proximal.Solution:
        """Run the engine, warn of an early end, and return the solution in the data's units."""
        ball = radius is not None
        found = proximal.solve(
            **self._engine_arguments(training),
            alpha=None if ball or alpha is None else training.inside_alpha(float(alpha)),
            radius=None if radius is None else training.inside_radius(float(radius)),
            start=self._start(training),
            on_iteration=Iterations(progress).end,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )
        # Reports and attributes are in the units of the data, whatever units the engine used.
        found = _convert_outward(training, found)
        self._report(found)
        return found

    def _engine_arguments(self, training: Training) -> dict[str, Any]:
        """Return the arguments that all functions of the engine take."""
        return {
            "design": training.design,
            "loss": training.loss,
            "target": training.target,
            "norm": self.norm,
            "weight": training.weight,
            "fit_intercept": bool(self.fit_intercept),
        }

    def _start(self, training: Training) -> tuple[Any, Any] | None:
        """Return the solution of the last fit, if ``warm_start`` asks for it."""
        if not getattr(self, "warm_start", False) or not self.__sklearn_is_fitted__():
            return None
        weights, intercept = self._read_weights()
        wanted = (training.design.n_features, training.design.n_outputs)
        if weights.shape != wanted:
            raise ValueError(
                f"warm_start=True starts from weights for {weights.shape[0]} features and "
                f"{weights.shape[1]} outputs, but the data have {wanted[0]} and {wanted[1]}. "
                "Set warm_start=False to start from zero."
            )
        # A model that was fitted with an intercept may start a fit without one.
        if not self.fit_intercept:
            intercept = np.zeros_like(intercept)
        return training.inward(weights, intercept)

    def _model(self, found: proximal.Solution, outputs: Any) -> LinearModel:
        """Return the model of a solution, which is in the units of the data."""
        coef, intercept = self._make_coef(found.weights, found.intercept)
        return LinearModel.of(coef, intercept, Inputs.of(self), outputs)

    def _keep(self, found: proximal.Solution, outputs: Any, **facts: Any) -> None:
        """Keep the model and the report of the fit."""
        self.model_ = self._model(found, outputs)
        self.report_ = FitReport.of(found, float(found.norm_value), **facts)

    def _report(self, found: proximal.Solution) -> None:
        """Warn of a solution that ended early."""
        if found.interrupted:
            warn_caller(
                f"Interrupted after {found.iterations} iterations with relative duality gap "
                f"{found.relative_gap:.1e} (tol {self.tol:g}); the weights so far are kept. "
                "Set warm_start=True and call fit again to continue.",
                InterruptedFitWarning,
            )
        elif not found.converged:
            warn_caller(
                f"Stopped after {_describe_stop(found, self)} with relative duality gap "
                f"{found.relative_gap:.1e} (tol {self.tol:g}). {_suggest_remedy(found, self)}",
                NotConvergedWarning,
            )

    # --- many penalties

    def _alpha_max(self, training: Training) -> float:
        """Return the smallest penalty known to leave all weights at zero."""
        # alpha_max of :eq:`alpha-max`, with the residual at the best intercept.
        largest = proximal.alpha_max(**self._engine_arguments(training))
        # A residual sums to zero but for rounding, and so does its product with a constant column.
        rounding = 8.0 * float(np.finfo(training.design.dtype).eps) * training.largest_input
        return 0.0 if largest <= rounding else float(largest) * training.alpha_unit

    def _grid(
        self, training: Training, alphas: Alphas, alpha_ratio: float
    ) -> tuple[float, np.ndarray]:
        """Return the smallest penalty known to leave no weights, and the grid of penalties."""
        largest = self._alpha_max(training)
        # Where every penalty leaves no weights, any grid above rounding will do.
        top = largest or training.alpha_unit * (training.largest_input or 1.0)
        if isinstance(alphas, numbers.Integral) and not 0.0 < top * alpha_ratio <= top < math.inf:
            what = "vanish" if top < 1.0 else "overflow"
            raise ValueError(
                f"The penalties for this X and y {what} in float64; multiply X or y by a power of "
                "two that makes them moderate, or set standardize=True."
            )
        return largest, alpha_grid(alphas, alpha_ratio, top)

    def _solutions(
        self, training: Training, alphas: np.ndarray, effort: float = proximal.PATH_EFFORT
    ) -> Iterator[proximal.Solution]:
        """Yield the solution for each penalty, in the data's units, up to an interrupt."""
        # Each solution is the start of the next, so penalties fall.
        found = proximal.path(
            **self._engine_arguments(training),
            alphas=[training.inside_alpha(float(alpha)) for alpha in alphas],
            effort=effort,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
        )
        for alpha, solution in zip(alphas, found, strict=False):
            yield replace(_convert_outward(training, solution), alpha=float(alpha))

    # --- read from the model

    @property
    def selected_(self) -> np.ndarray:
        """The features in use, rising."""
        selected: np.ndarray = self._get_model().features
        return selected

    @property
    def rank_(self) -> int:
        """Numerical rank of the weights; a norm of singular values keeps it small."""
        weights = self._get_model().weights
        return int(np.linalg.matrix_rank(weights)) if weights.size else 0

    @property
    def norm_value_(self) -> float | None:
        """The norm of the weights."""
        return self._get_report().norm_value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = isinstance(self, RegressorMixin)
        return tags


class _Points:
    """The finished points of a path, each a task of the progress, and those short of ``tol``."""

    def __init__(self, whole: FitTask, n_points: int, estimator: BaseEstimator) -> None:
        self._whole, self._n_points, self._estimator = whole, n_points, estimator
        self._done = 0
        self._cut = False
        self._worst: proximal.Solution | None = None
        self._n_bad = 0

    def select_finished(self, found: Iterator[proximal.Solution]) -> Iterator[proximal.Solution]:
        """Yield the finished solutions; a callback may ask to stop after any."""
        task = self._whole.task("alpha")
        for solution in found:
            if solution.interrupted:
                self._cut = True
                break
            self._done += 1
            if not solution.converged:
                self._n_bad += 1
                if self._worst is None or solution.relative_gap > self._worst.relative_gap:
                    self._worst = solution
            yield solution
            # The next task is set up only if a point of the path is left for it.
            if task.end() or self._done == self._n_points:
                break
            task = self._whole.task("alpha")
        if self._done == 0:
            raise KeyboardInterrupt

    def report(self) -> None:
        """Warn of a path that ended early, or has points short of the tolerance."""
        if self._cut:
            warn_caller(
                f"Interrupted after {self._done} of {self._n_points} values of alpha, which are "
                "kept.",
                InterruptedFitWarning,
            )
        if self._worst is not None:
            worst, estimator = self._worst, self._estimator
            warn_caller(
                f"For {self._n_bad} of {self._done} values of alpha the gap was not reached. At "
                f"alpha={worst.alpha:.3g} it stopped after {_describe_stop(worst, estimator)} with "
                f"relative duality gap {worst.relative_gap:.1e} (tol {estimator.tol:g}). "
                f"{_suggest_remedy(worst, estimator)}",
                NotConvergedWarning,
            )


def _convert_outward(training: Training, found: proximal.Solution) -> proximal.Solution:
    """Return a solution in the units of the data; raise where numbers overflow or vanish."""
    if not (math.isfinite(found.objective) and np.all(np.isfinite(found.intercept))):
        raise ValueError(
            "The numbers overflowed: columns of X or targets differ too much in size for "
            f"{found.weights.dtype}. Scale them (StandardScaler), or give X as float64."
        )
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        outside = training.outward(found)
    largest, dtype = float(np.max(np.abs(outside.weights), initial=0.0)), found.weights.dtype
    finite = math.isfinite(largest) and bool(np.all(np.isfinite(outside.intercept)))
    if not finite or (largest == 0.0 and np.any(found.weights)):
        what = "vanish" if finite else "overflow"
        raise ValueError(
            f"In the units of X and y the weights {what} in {dtype}. Scale X (StandardScaler) and "
            "divide y by its size, or give X as float64."
        )
    return outside


def _describe_stop(found: proximal.Solution, estimator: BaseEstimator) -> str:
    if found.iterations >= estimator.max_iter:
        return f"max_iter={estimator.max_iter}"
    if found.exhausted:
        return f"{found.iterations} iterations, with more effort than max_iter allows,"
    return (
        f"{found.iterations} iterations, because the gap fell by less than one per cent in the "
        f"last {proximal.PATIENCE},"
    )


def _suggest_remedy(found: proximal.Solution, estimator: BaseEstimator) -> str:
    more = found.iterations >= estimator.max_iter or found.exhausted
    first = "Raise max_iter" if more else "Raise tol"
    if first == "Raise tol" and found.weights.dtype == np.float32:
        first += ", give X as float64"
    last = "raise alpha" if found.radius is None else "lower radius"
    return f"{first}, scale X, or {last}."
