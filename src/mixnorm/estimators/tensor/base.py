"""Base of learners with tensor kernels: they solve one dual problem for each output."""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, is_dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.engines import dual, tensor
from mixnorm.estimators._common.fitted import ReportedMixin
from mixnorm.estimators._common.inputs import random_generator
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import (
    Anything,
    Count,
    Loss,
    Number,
    Of,
    OneOf,
    Seed,
    Switch,
    Tolerance,
    Whole,
    maybe,
)
from mixnorm.estimators._common.progress import (
    CallbackSupportMixin,
    FitTask,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators._common.units import Frame, degree_of
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.kernels.inputs import check_targets, prepare_weights
from mixnorm.estimators.mixed_norm.base import check_dual_loss
from mixnorm.estimators.tensor.features import FeatureWeight, top_features
from mixnorm.exceptions import CoarseKernelWarning, InterruptedFitWarning, NotConvergedWarning
from mixnorm.kernels import FeatureExpansion, PolynomialTensorKernel, TensorKernel
from mixnorm.losses import DualLoss, as_loss
from mixnorm.models import FitReport, Inputs, TensorModel, apply_frame

_WHICH_KERNELS = "give a tensor kernel such as mixnorm.kernels.PolynomialTensorKernel(), or None"
_WHICH_EXPONENTS = "2 is kernel ridge regression, and beyond 100 powers of columns overflow"
# Below this share of the kernel, a representation is too coarse.
_LEAST_KEPT_MASS = 0.5


@dataclass(frozen=True)
class TensorTraining:
    """The rows of positive weight, standardised, with targets and weights."""

    rows: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    unit: float  # the divisor of weights
    kept: np.ndarray  # the places of these rows among all
    n_samples: int  # the number of all rows
    frame: np.ndarray  # divisors, centres and scales of the columns
    inputs: Inputs
    outputs: Any


@dataclass(frozen=True)
class OutputProblem:
    """The problem of one output, in units that make ``gamma`` comparable.

    Attributes
    ----------
    target : array of shape (n_rows, 1)
        Targets, divided by ``unit`` and encoded by the loss.
    loss : DualLoss
        The loss in that unit.
    unit : float
        The divisor of targets.
    scale : float
        The divisor of the kernel.
    """

    target: np.ndarray
    loss: DualLoss
    unit: float
    scale: float


@dataclass(frozen=True)
class OutputSolution:
    """The solution of one output, in the units of the representation's kernel."""

    alpha: np.ndarray
    norm: float
    objective: float
    gap: float
    gamma_raw: float
    found: dual.DualSolution


@dataclass(eq=False, repr=False)
class TensorKernelLearner(ReportedMixin, CallbackSupportMixin, BaseEstimator):
    """Base of the learners with a tensor kernel.

    A subclass encodes its targets, and has ``gamma`` or a list of values to try.
    """

    #: The losses by name.
    _losses: ClassVar[dict[str, type]]

    kernel: Annotated[TensorKernel | None, maybe(Of(TensorKernel, why=_WHICH_KERNELS))] = None
    _: KW_ONLY
    q: Annotated[float, Number(above=2, most=100, why=_WHICH_EXPONENTS)] = 4
    loss: Loss = "squared"
    standardize: Switch = True
    representation: Annotated[str, OneOf(("auto", *tensor.REPRESENTATIONS))] = "auto"
    n_components: Annotated[int | None, maybe(Whole(least=1))] = None
    solver: Anything = "newton"
    tol: Tolerance = 1e-8
    max_iter: Count = 200
    random_state: Seed = None

    # --- methods of subclasses

    def _encode_targets(
        self, y: ArrayLike, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return targets ``(n_samples, n_outputs)``, weights, and the outputs of the model.

        A weight of zero leaves a row out.
        """
        raise NotImplementedError

    def _find_middle(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the intercept that is subtracted from the targets of each output."""
        return np.zeros(y.shape[1])

    # --- checks

    def _check_together(self) -> None:
        if self.kernel is not None and not is_dataclass(self.kernel):
            raise TypeError(
                f"kernel={self.kernel!r} is not a dataclass; write @dataclass above its class, so "
                "that it can be copied."
            )
        self._kernel().check()
        dual.check_solver(self.solver, self._loss())

    def _loss(self) -> DualLoss:
        """Return a copy of the loss, checked."""
        known = self._losses
        loss: DualLoss = copy.deepcopy(check_dual_loss(as_loss(self.loss, known), known))
        if loss.is_classifier:
            raise ValueError(
                f"loss={loss!r} couples all scores of a sample, and this estimator fits outputs "
                f"one by one; choose one of {sorted(known)}."
            )
        if loss.is_binary != is_classifier(self):
            kind = "labels" if loss.is_binary else "numbers"
            other = "Classifier" if loss.is_binary else "Regressor"
            raise ValueError(
                f"loss={loss!r} is for {kind}; choose one of {sorted(known)}, or take "
                f"TensorKernel{other}."
            )
        sample = np.ones((1, 1))
        loss.encode(sample, 1, sample)  # raises for parameters that are not allowed
        return loss

    def _kernel(self) -> TensorKernel:
        return PolynomialTensorKernel() if self.kernel is None else self.kernel

    # --- fit

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type; or the targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, which multiply ``gamma``; a whole weight equals as many copies
            of the row.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            data = self._prepare_training(self._validate(X, y), y, sample_weight)
            progress = FitTask.of_fit(self, X, y, sample_weight, data.y.shape[1])
            made = self._represent(data.rows)
            self._learn(made, data, float(self.gamma), progress)
            progress.end(dict)
            return self

    def _validate(self, X: MatrixLike, y: ArrayLike) -> np.ndarray:
        """Return the rows; raise unless there are as many targets."""
        X = validate_data(self, X, dtype=np.float64)
        check_targets(self, X, y)
        return np.asarray(X)

    def _prepare_training(
        self, X: np.ndarray, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> TensorTraining:
        """Return the rows of positive weight, standardised, with targets and weights."""
        y, weight, outputs = self._encode_targets(y, prepare_weights(sample_weight, X.shape[0]))
        kept = np.flatnonzero(weight > 0.0)
        rows, count = X[kept], weight[kept]
        # Only relative weights matter; huge and tiny sums of weights would lose digits.
        # gamma is multiplied back by it in ``gamma_raw_``.
        unit = float(np.mean(count))
        count = count / unit
        frame = np.array([[1.0], [0.0], [1.0]]) * np.ones(X.shape[1])
        if self.standardize:
            frame = _fit_frame(rows, count)
        about = (frame, Inputs.of(self), outputs)
        return TensorTraining(apply_frame(rows, frame), y[kept], count, unit, kept, len(X), *about)

    def _represent(self, rows: np.ndarray) -> tensor.Representation:
        made = tensor.represent(
            self._kernel(),
            rows,
            float(self.q),
            name=self.representation,
            n_components=self.n_components,
            random_state=random_generator(self.random_state),
        )
        if made.mass < _LEAST_KEPT_MASS:
            warn_caller(
                f"representation={made.name!r} holds only a share of {made.mass:.2g} of the kernel "
                "on the training rows, so the model differs from that of the whole kernel. Raise "
                "n_components, lower the degree or sigma, or take fewer columns.",
                CoarseKernelWarning,
            )
        return made

    def _learn(
        self, made: tensor.Representation, data: TensorTraining, gamma: float, progress: FitTask
    ) -> None:
        """Solve the problem of every output, and keep the model."""
        outputs = self._build_outputs(made.contraction, data.y - data.outputs.centre, data.weight)
        fitted: list[OutputSolution] = []
        for output in outputs:
            task = progress.task("output")
            fitted.append(self._solve_output(made, output, data.weight, gamma))
            task.end()
            # A model of some outputs is of no use.
            if fitted[-1].found.interrupted and len(fitted) < len(outputs):
                raise KeyboardInterrupt
        self._report(made, [one.found for one in fitted])
        self._keep(made, data, outputs, fitted)

    def _build_outputs(
        self, contraction: dual.Contraction, y: np.ndarray, weight: np.ndarray
    ) -> list[OutputProblem]:
        """Return the problems of all outputs, in units that make ``gamma`` comparable."""
        loss = self._loss()
        return [_build_output(contraction, loss, column, weight) for column in y.T]

    def _solver_options(self) -> dict[str, Any]:
        return {"solver": self.solver, "tol": float(self.tol), "max_iter": int(self.max_iter)}

    def _solve_output(
        self, made: tensor.Representation, output: OutputProblem, weight: np.ndarray, gamma: float
    ) -> OutputSolution:
        contraction = dual.ScaledContraction(made.contraction, 1.0 / output.scale)
        options = self._solver_options()
        found = dual.solve(contraction, output.loss, output.target, gamma, weight=weight, **options)
        p = made.q / (made.q - 1.0)
        # The logarithm of the ratio of the kernel's features to those of the problem.
        log_size = made.log_scale + math.log(output.scale) / made.q
        log_unit = math.log(output.unit)
        degree = degree_of(output.loss) or 0
        # :eq:`tensor-rescaling`, in logarithms, because powers of units overflow.
        raw = _exponentiate(math.log(gamma) + (p - degree) * log_unit - p * log_size)
        value = _exponentiate(p * (log_unit - log_size))
        # :eq:`tensor-rescaling` for the kernel divided by the scale, a factor s^q of the features.
        alpha = found.alpha * output.scale ** (-1.0 / (made.q - 1.0))
        norm = float(found.alpha @ found.scores) * output.scale ** (-1.0 / (made.q - 1.0))
        return OutputSolution(alpha, norm, found.objective * value, found.gap * value, raw, found)

    def _report(self, made: tensor.Representation, found: list[dual.DualSolution]) -> None:
        worst = max(found, key=_relative_gap)
        relative = _relative_gap(worst)
        if any(one.interrupted for one in found):
            warn_caller(
                f"Interrupted with relative duality gap {relative:.1e} (tol {self.tol:g}); the "
                "solution so far is kept.",
                InterruptedFitWarning,
            )
        elif not all(one.converged for one in found):
            advice = "Raise max_iter or tol, or lower gamma"
            if worst.iterations < self.max_iter:
                advice = "Rounding allows no smaller gap: raise tol, or lower gamma"
                if made.name in ("tensor", "low-rank"):
                    advice += ", or set representation to 'features' or 'sampled'"
            warn_caller(
                f"Stopped after {worst.iterations} evaluations with relative duality gap "
                f"{relative:.1e} (tol {self.tol:g}) at gamma={worst.gamma:g}. {advice}.",
                NotConvergedWarning,
            )

    def _keep(
        self,
        made: tensor.Representation,
        data: TensorTraining,
        outputs: list[OutputProblem],
        fitted: list[OutputSolution],
    ) -> None:
        """Keep the model and the report of the fit."""
        units = np.array([output.unit for output in outputs])
        alphas = np.stack([one.alpha for one in fitted], axis=1)
        expansion = made.expansion(alphas)
        norms = np.array([one.norm for one in fitted])
        if isinstance(expansion, FeatureExpansion):
            # More exact than by dual variables, which may be huge next to the weights.
            p = made.q / (made.q - 1.0)
            norms = (np.abs(expansion.weights) ** p).sum(axis=0)
        # In units of the unscaled kernel and targets.
        logs = np.log(units) / (made.q - 1.0) - made.q / (made.q - 1.0) * made.log_scale
        # Rows of weight zero have the dual variable zero.
        whole = np.zeros((data.n_samples, len(fitted)))
        whole[data.kept] = alphas * np.exp(np.clip(logs, -700.0, 700.0))
        raw = np.array([one.gamma_raw / data.unit for one in fitted])
        about = (made.q, made.name, whole, data.inputs, data.outputs)
        self.model_ = TensorModel(expansion, data.frame, units, norms, *about)
        self.report_ = FitReport(
            float(sum(one.objective for one in fitted)),
            float(sum(one.gap for one in fitted)),
            max(one.found.iterations for one in fitted),
            all(one.found.converged for one in fitted),
            any(one.found.interrupted for one in fitted),
            facts={
                "gamma_raw": float(raw[0]) if data.outputs.single else raw,
                "kernel_error": float(made.error),
                "kernel_mass": float(made.mass),
            },
        )
        if not math.isfinite(self.report_.objective + self.report_.gap):
            raise ValueError(
                "The kernel of the training rows is so small that the objective overflows; divide "
                "the columns of X by their size, or set standardize=True."
            )

    # --- fitted attributes

    def _check_new(self, X: MatrixLike) -> np.ndarray:
        self._get_model()
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    @property
    def kernel_(self) -> TensorKernel:
        """The kernel, with all parameters set."""
        kernel: TensorKernel = self._get_model().expansion.kernel
        return kernel

    @property
    def representation_(self) -> str:
        """How the kernel of the training rows was stored."""
        return str(self._get_model().representation)

    @property
    def dual_coef_(self) -> np.ndarray:
        """The dual variables, in units of the unscaled kernel and targets."""
        model = self._get_model()
        return np.asarray(model.dual_coef[:, 0] if model.outputs.single else model.dual_coef)

    @property
    def gamma_raw_(self) -> Any:
        """The weight of the losses, for unscaled targets and kernel."""
        return self._get_report().facts["gamma_raw"]

    @property
    def kernel_error_(self) -> float:
        """The largest error of an entry of the kernel, relative to the largest entry."""
        return float(self._get_report().facts["kernel_error"])

    @property
    def kernel_mass_(self) -> float:
        """The mean share of the kernel of a row with itself that is kept."""
        return float(self._get_report().facts["kernel_mass"])

    def features(self, top: int = 20) -> list[FeatureWeight]:
        """Return the features with the largest weights.

        If there are too many to list, or infinitely many, features that hold most of the kernel on
        the training rows are drawn; ``share`` is the share of each one in the model.

        Parameters
        ----------
        top : int, default=20
            How many to return.

        Returns
        -------
        list of FeatureWeight
            The largest first, each with its ``name``, its ``exponents`` by column, its ``weight``
            in the norm, its ``coefficient`` before the monomial of the standardised columns, and
            its ``share`` of the norm.
        """
        model = self._get_model()
        Whole(least=1).check("top", top)
        return top_features(model, int(top))


def _build_output(
    contraction: dual.Contraction, loss: DualLoss, y: np.ndarray, weight: np.ndarray
) -> OutputProblem:
    """Return the problem of one output, with the units of its targets and kernel.

    The kernel is divided by its form at the targets (:eq:`tensor-scale`), so that ``gamma = 1`` is
    about half-way between zero and a perfect fit, whatever the units.
    """
    unit = 1.0
    if degree_of(loss) is not None:
        largest = float(np.max(np.abs(y), initial=0.0)) or 1.0
        # The root of the mean square, taken in units of the largest so that no square overflows.
        unit = largest * (math.sqrt(float(np.average((y / largest) ** 2, weights=weight))) or 1.0)
        loss = Frame(np.zeros(1), unit, 2).scale_loss(loss)
    target = y / unit
    size = float(np.sum(weight * target * target))
    weighted = weight * target
    with np.errstate(over="ignore", invalid="ignore"):
        form = contraction.form(weighted)
    if not math.isfinite(form):
        raise ValueError(
            "The kernel of the training rows is out of the range of floats; divide the columns of "
            "X by their size, or set standardize=True."
        )
    # For targets that no feature can fit, the form is rounding.
    most = float(np.abs(weighted) @ contraction.diagonal() ** (1.0 / contraction.q))
    seen = form > contraction.rounding_error() * most**contraction.q
    scale = form / size if size > 0.0 and seen else 1.0
    column = target[:, None]
    return OutputProblem(loss.encode(column, 1, np.zeros_like(column)), loss, unit, scale)


def _fit_frame(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the divisors, centres and scales of columns; constant columns have the scale 1."""
    divisor = np.max(np.abs(X), axis=0)
    divisor = np.where(divisor > 0.0, divisor, 1.0)
    Z = X / divisor
    centre = np.average(Z, axis=0, weights=weight)
    spread = np.sqrt(np.average((Z - centre) ** 2, axis=0, weights=weight))
    # The spread of a constant column is rounding, which grows with the root of the number of rows.
    constant = spread <= 10.0 * np.finfo(np.float64).eps * np.sqrt(len(X)) * np.abs(centre)
    return np.stack([divisor, centre, np.where(constant | (spread == 0.0), 1.0, spread)])


def _relative_gap(found: dual.DualSolution) -> float:
    return found.gap / found.objective if found.objective else 0.0


def _exponentiate(log: float) -> float:
    """Return the exponential, or infinity where it overflows."""
    return math.exp(log) if log < 700.0 else math.inf
