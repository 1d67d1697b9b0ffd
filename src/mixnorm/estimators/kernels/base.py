"""Base classes of learners with kernels: the fit, the call of the engine, the fitted attributes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator

from mixnorm._array import Array, ArrayLike, MatrixLike
from mixnorm.engines import multikernel
from mixnorm.estimators._common.fitted import FittedMixin, ReportedMixin
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.progress import (
    CallbackSupportMixin,
    FitTask,
    Iterations,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators.kernels.inputs import (
    KernelInputsMixin,
    check_targets,
    prepare_row_costs,
    take_rows,
)
from mixnorm.exceptions import (
    InterruptedFitWarning,
    KernelMemoryWarning,
    NoKernelWarning,
    NotConvergedWarning,
)
from mixnorm.kernels import KernelBank, KernelStack, gaussian_bank
from mixnorm.models import FitReport, Inputs, KernelModel

_NO_KERNEL_ADVICE = "Lower beta or raise C, unless all targets are equal."


@dataclass(frozen=True, eq=False)
class KernelTraining:
    """The rows of positive weight of a fit, with their kernels and targets.

    Parameters
    ----------
    bank : FittedBank or None
        The kernels; None if kernel matrices are given.
    grams : Grams
        The kernels between the rows.
    y : ndarray
        Encoded targets.
    weight : ndarray
        Weights by class and sample, all positive.
    rows : ndarray of int
        Positions of the rows among those given.
    raw_rows : bool
        Whether rows go to the bank unchecked.
    inputs : Inputs
        The features.
    outputs : ClassOutputs or NumberOutputs
        The meaning of scores.
    """

    bank: Any
    grams: Any
    y: np.ndarray
    weight: np.ndarray
    rows: np.ndarray
    raw_rows: bool
    inputs: Inputs
    outputs: Any
    _tail_sums: dict[int, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return int(self.grams.n_kernels)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels; numbered if matrices are given."""
        if self.bank is None:
            return tuple(f"kernel {m}" for m in range(self.n_kernels))
        return tuple(self.bank.names)

    def tail_sums(self, tail: int) -> np.ndarray:
        """Return the tail sums of the kernels, which are computed once."""
        # A search asks for the same tail with every penalty; each costs products with all matrices.
        if tail not in self._tail_sums:
            self._tail_sums[tail] = self.grams.tail_sums(tail, self.weight)
        return self._tail_sums[tail]

    @cached_property
    def diagonals(self) -> np.ndarray:
        """The diagonals of the kernels."""
        return np.asarray(self.grams.diagonals())

    def take(self, places: np.ndarray, weight: np.ndarray) -> Self:
        """Return some of the rows with other weights, without computing kernels again."""
        return replace(
            self,
            bank=None if self.bank is None else self.bank.take(places),
            grams=self.grams.take(places),
            y=self.y[places],
            weight=weight,
            rows=self.rows[places],
        )

    def model(
        self,
        weights: np.ndarray,
        duals: np.ndarray,
        used: np.ndarray,
        coefs: np.ndarray | None = None,
    ) -> KernelModel:
        """Return the model that keeps the rows in the mask ``used``, or the weights of features."""
        # A model keeps only what predictions need: with matrices the rows that have dual variables,
        # with factors one weight for each column, whatever the number of rows.
        dual_coef, bank, features = np.ascontiguousarray(duals[used]), self.bank, None
        if bank is not None and self.grams.factors is None:
            bank = bank.take(np.flatnonzero(used))
        elif bank is not None:
            features = self._features(weights, dual_coef, used) if coefs is None else coefs
            bank = bank.take(np.flatnonzero(used)[:1])  # the landmarks are kept apart
        return KernelModel(
            self.rows[used],
            bank,
            self.names,
            self.raw_rows,
            self.inputs,
            self.outputs,
            weights,
            dual_coef,
            features,
        )

    def _features(self, weights: np.ndarray, dual_coef: np.ndarray, used: np.ndarray) -> np.ndarray:
        """Return the weights of the features of all kernels with positive weight, joined."""
        factors = self.grams.factors
        # w_m = mu_m theta_m of :eq:`kernel-scores`, with theta_m = Phi_m' A.
        blocks = [
            weights[m] * (np.asarray(factors[m][used], dtype=np.float64).T @ dual_coef)
            for m in np.flatnonzero(weights > 0.0)
        ]
        return np.concatenate(blocks) if blocks else np.zeros((0, 1))


@dataclass(frozen=True, eq=False)
class KernelStart:
    """Start of a warm fit: the weights, dual variables and ``C`` of the last one."""

    weights: np.ndarray
    duals: np.ndarray
    cost: float


class KernelEstimator(KernelInputsMixin, FittedMixin, CallbackSupportMixin, BaseEstimator):
    """Base of all learners with kernels: their ``fit``, and attributes of their models."""

    # --- for subclasses

    def _fit(self, X: Array, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Fit to checked data, and set ``model_``."""
        raise NotImplementedError

    def _encode_targets(self, y: ArrayLike, weight: np.ndarray) -> tuple[Any, np.ndarray, Any]:
        """Return encoded targets, weights by class and sample, and the outputs of the model.

        Rows of weight zero do not influence them.
        """
        raise NotImplementedError

    def _adapt_to_fold(self, training: KernelTraining) -> KernelTraining:
        """Return the training rows of a fold, centred or weighted for the fold."""
        return training

    # --- fit

    @with_callbacks
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Training data; with ``kernel="precomputed"`` kernel matrices instead: an array of shape
            ``(n_kernels, n_samples, n_samples)``, a list of matrices, or a
            :class:`~mixnorm.kernels.KernelStack`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type; or the targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, which multiply their losses.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X = self._validate(X)
            check_targets(self, X, y)
            self._fit(X, y, sample_weight)
            return self

    def _check_given_kernels(self, X: MatrixLike | KernelStack, kept: np.ndarray) -> KernelStack:
        """Check given kernel matrices, and return those between the rows ``kept``."""
        # Checked before rows are taken, so that an error names the row and column that the user
        # gave.
        stack = KernelStack(X)
        stack.check()
        self.n_features_in_ = stack.n_samples
        return stack if len(kept) == stack.n_samples else stack.take(kept)

    # --- attributes of the model

    @property
    def kernel_names_(self) -> list[str]:
        """Names of all kernels."""
        return list(self._get_model().names)

    @property
    def bank_(self) -> Any:
        """The kernels, with the rows that prediction needs; None if matrices are given."""
        return self._get_model().bank

    @property
    def support_(self) -> np.ndarray:
        """The training rows that the model uses."""
        return np.asarray(self._get_model().support)

    @property
    def cost_(self) -> dict[str, int]:
        """Size of the model: kernels, support vectors, numbers stored, multiplications per row."""
        return dict(self._get_model().cost())


class WeightedKernelLearner(ReportedMixin, KernelEstimator):
    """Base of the learners that weigh kernels.

    A subclass has the parameters ``bank``, ``kernel``, ``C``, ``tol``, ``max_iter`` and
    ``warm_start``, and builds the penalty and the targets for the engine.
    """

    model_: KernelModel
    report_: FitReport
    #: Whether the machine is that of squared losses.
    _squares = False

    # --- for subclasses

    def _build_penalty(
        self, training: KernelTraining
    ) -> tuple[multikernel.KernelPenalty, dict[str, Any]]:
        """Return the penalty, by default a ``p``-norm of the weights, and facts for the report."""
        return multikernel.KernelPenalty.of_weights(float(self.p), np.ones(training.n_kernels)), {}

    def _build_target(self, y: np.ndarray, caps: np.ndarray, outputs: Any) -> Any:
        """Return the targets for the engine; ``caps`` are the factors of the losses."""
        raise NotImplementedError

    def _objective_unit(self, training: KernelTraining) -> float:
        """Return the ratio of the engine's objective to the documented one."""
        return 1.0

    def _count_iterations(self) -> int:
        """Return the largest number of iterations of a fit."""
        return int(self.max_iter)

    # --- data

    def _compute_kernels(self, X: Array, weight: np.ndarray) -> tuple[Any, Any]:
        """Return the fitted bank, None if kernels are given, and the kernels of the rows.

        Only rows of positive weight are used.
        """
        # Rows of weight zero must not count in relative widths, traces or tail sums either.
        kept = np.flatnonzero(weight > 0.0)
        if self._precomputed:
            return None, self._check_given_kernels(X, kept)
        bank = gaussian_bank() if self.bank is None else self.bank
        return self._fit_bank(bank, take_rows(X, kept), weight[kept])

    def _fit_bank(self, bank: KernelBank, X: Array, weight: np.ndarray) -> tuple[Any, Any]:
        """Return the fitted bank and the kernels of the rows, within the memory of the bank."""
        # The machine needs memory beside the matrices; the bank turns to factors if both do not
        # fit.
        beside = multikernel.estimate_workspace_bytes(X.shape[0], bank.dtype, self._squares)
        fitted, grams, message = bank.fit_within(X, beside, weight)
        if message is not None:
            warn_caller(message, KernelMemoryWarning)
        return fitted, grams

    def _prepare_training(
        self, X: Array, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> KernelTraining:
        """Return the rows of positive weight, with their kernels."""
        costs = prepare_row_costs(sample_weight, X.shape[0])
        targets, weight, outputs = self._encode_targets(y, costs)
        bank, grams = self._compute_kernels(X, weight)
        rows = np.flatnonzero(weight > 0.0)
        inputs = Inputs.of(self)
        return KernelTraining(
            bank, grams, targets[rows], weight[rows], rows, self._takes_raw_rows(), inputs, outputs
        )

    # --- fit

    def _fit(self, X: Array, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        progress = FitTask.of_fit(self, X, y, sample_weight, self._count_iterations())
        self._learn(self._prepare_training(X, y, sample_weight), progress)
        progress.end(dict)

    def _learn(self, training: KernelTraining, progress: FitTask) -> None:
        """Run the engine, and set the model and the report."""
        found, facts = self._solve(training, self._find_start(training), progress)
        self._report(found, training.grams.dtype)
        # The engine minimises the objective times a constant (:eq:`blocks-problem`), and reports in
        # its units.
        unit = self._objective_unit(training)
        in_units = replace(found, objective=found.objective / unit, gap=found.gap / unit)
        self._resume: Any = KernelStart(found.weights, found.duals, float(self.C))
        self.model_ = self._build_model(found, training)
        self.report_ = FitReport.of(in_units, **facts)

    def _solve(
        self,
        training: KernelTraining,
        start: tuple[np.ndarray, np.ndarray] | None,
        progress: FitTask | None = None,
    ) -> tuple[multikernel.KernelSolution, dict[str, Any]]:
        """Return the solution of the engine, and facts of the penalty for the report."""
        # The weight of a row multiplies C: its dual variables may be that much larger
        # (:eq:`feasible-rows`).
        with np.errstate(over="ignore"):  # the engine raises for factors that are too large
            caps = float(self.C) * training.weight
            target = self._build_target(training.y, caps, training.outputs)
        penalty, facts = self._build_penalty(training)
        found = multikernel.solve(
            training.grams,
            target,
            penalty,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            start=start,
            on_iteration=None if progress is None else Iterations(progress).end,
        )
        return found, facts

    def _find_start(self, training: KernelTraining) -> tuple[np.ndarray, np.ndarray] | None:
        """Return weights and dual variables of the last fit for ``warm_start``, or None."""
        last = getattr(self, "_resume", None)
        if not self.warm_start or not isinstance(last, KernelStart):
            return None
        weights, duals = last.weights, last.duals
        shape = (len(training.rows), training.outputs.n_outputs)
        # Rows are compared by their number alone: from other rows the fit takes longer, and is as
        # correct.
        if len(weights) != training.n_kernels or duals.shape != shape:
            raise ValueError(
                f"warm_start=True starts from {len(weights)} kernels and {duals.shape[0]} samples "
                f"of {duals.shape[1]} outputs, but there are {training.n_kernels} and {shape[0]} "
                f"of {shape[1]}. Set warm_start=False to start over."
            )
        # Dual variables stay feasible if C grows, and are shrunk if it falls.
        return weights, duals * min(1.0, float(self.C) / last.cost)

    def _report(self, found: multikernel.KernelSolution, dtype: DTypeLike) -> None:
        """Warn if the fit was interrupted, or did not converge."""
        relative = found.gap / found.objective if found.objective else 0.0
        if found.interrupted:
            warn_caller(
                f"Interrupted after {found.iterations} iterations with relative duality gap "
                f"{relative:.1e} (tol {self.tol:g}); the weights so far are kept. "
                "Set warm_start=True and call fit again to go on.",
                InterruptedFitWarning,
            )
        elif not found.converged:
            advice = "or lower C" if dtype == np.float64 else "lower C, or take kernels in float64"
            warn_caller(
                f"Stopped after {found.iterations} iterations with relative duality gap "
                f"{relative:.1e} (tol {self.tol:g}). Raise max_iter or tol, {advice}.",
                NotConvergedWarning,
            )

    def _build_model(self, found: multikernel.KernelSolution, training: KernelTraining) -> Any:
        """Return the model of a solution."""
        # Rows without dual variables have no part in :eq:`kernel-scores`.
        weights, used = found.weights, np.any(found.duals != 0.0, axis=1)
        # A kernel that is zero between every row and itself is zero everywhere.
        there = np.max(training.diagonals, axis=1) > 0.0
        if not np.any(used) or not np.any(weights[there]):
            warn_no_kernel(zero=bool(np.any(weights) and not np.any(there)))
            # A model must have a row; its coefficients are zero.
            used = np.arange(len(used)) == 0
        coefs = found.coefs if np.any(weights > 0.0) else None
        return training.model(weights, found.duals, used, coefs)

    def _get_fact(self, name: str) -> Any:
        """Return a fact that only some fits report."""
        facts = self._get_report().facts
        if name not in facts:
            raise AttributeError(f"this fit of {type(self).__name__} reports no {name}")
        return facts[name]

    # --- attributes of the model

    @property
    def kernel_weights_(self) -> np.ndarray:
        """The weights of the kernels."""
        return np.asarray(self._get_model().kernel_weights)

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the kernels with the support."""
        return np.asarray(self._get_model().dual_coef)


class TailSumsMixin:
    """A learner that uses the tail sums of its kernels, and reports them."""

    @property
    def tail_sums_(self: Any) -> np.ndarray:
        """The tail sums of the kernels."""
        return np.asarray(self._get_fact("tail_sums"))


def warn_no_kernel(zero: bool = False, advice: str = _NO_KERNEL_ADVICE) -> None:
    """Warn that a model has no kernels, or that its kernels are zero."""
    what = (
        "The kernels that are left in the model are zero between all rows: it"
        if zero
        else "No kernel is left in the model, which"
    )
    advice = "Look at the kernels." if zero else advice
    warn_caller(f"{what} predicts the same for all rows. {advice}", NoKernelWarning)
