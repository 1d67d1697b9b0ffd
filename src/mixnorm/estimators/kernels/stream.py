"""Classifiers that penalise the blocks of kernels, and also learn from a stream of samples."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm._array import Array, ArrayLike, MatrixLike
from mixnorm.engines.mirror import KernelLearner as MirrorLearner
from mixnorm.engines.mirror import KernelLearnerState
from mixnorm.engines.multikernel import KernelPenalty
from mixnorm.estimators._common.inputs import (
    apply_class_weights,
    check_one_kind_of_label,
    random_generator,
)
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import OneOf
from mixnorm.estimators._common.progress import FitTask, Iterations, all_or_nothing
from mixnorm.estimators.kernels.base import KernelTraining, warn_no_kernel
from mixnorm.estimators.kernels.classifier import KernelClassifier
from mixnorm.estimators.kernels.inputs import check_targets, prepare_row_costs, take_rows
from mixnorm.exceptions import InterruptedFitWarning
from mixnorm.kernels import Grams, KernelBank, KernelStack, gaussian_bank
from mixnorm.models import ClassOutputs, FitReport, Inputs, KernelModel

Solver = Annotated[str, OneOf(("exact", "mirror"))]


class BlockPenaltyClassifier(KernelClassifier):
    """Half the square of a norm of block sizes, plus a multiple of each size.

    Also adds ``solver="mirror"`` and ``partial_fit``. A subclass defines the cost of each block's
    size.
    """

    q: Any
    solver: str
    epochs: int
    random_state: Any
    #: Where ``partial_fit`` continues, also after loading from a file.
    _resume: KernelLearnerState

    def _compute_block_costs(self, training: KernelTraining) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the cost of each block's size, and facts for the report."""
        raise NotImplementedError

    def _choose_exponent(self, n_kernels: int, n_classes: int) -> float:
        """Return the dual exponent of the norm of block sizes."""
        # q = 2 log M makes the bound grow with the logarithm of the number of kernels only; below 2
        # the squared norm would not be strongly convex.
        if self.q is None:
            return max(2.0, 2.0 * math.log(n_kernels))
        if isinstance(self.q, str):
            return max(2.0, 2.0 * math.log(n_classes))
        return float(self.q)

    def _build_penalty(self, training: KernelTraining) -> tuple[KernelPenalty, dict[str, Any]]:
        costs, facts = self._compute_block_costs(training)
        exponent = self._choose_exponent(training.n_kernels, training.outputs.n_outputs)
        # The engine solves :eq:`blocks-problem` times nC, with n the sum of the weights.
        offsets = costs * float(np.sum(training.weight)) * float(self.C)
        return KernelPenalty(exponent, np.ones(training.n_kernels), offsets), facts

    def _objective_unit(self, training: KernelTraining) -> float:
        return float(np.sum(training.weight)) * float(self.C)

    def _count_iterations(self) -> int:
        return int(self.max_iter if self.solver == "exact" else self.epochs)

    # --- whole passes

    def _fit_bank(self, bank: KernelBank, X: Array, weight: np.ndarray) -> tuple[Any, Any]:
        if self.solver == "exact":
            return super()._fit_bank(bank, X, weight)
        # No factors instead of large matrices: passes over single rows need matrices.
        fitted = bank.fit(X, sample_weight=weight)
        return fitted, fitted.grams()

    def _learn(self, training: KernelTraining, progress: FitTask) -> None:
        if self.solver == "exact":
            super()._learn(training, progress)
            return
        if training.grams.factors is not None:
            raise ValueError(
                "solver='mirror' works on kernel matrices, and this bank has factors; use "
                "solver='exact', or a bank without factors."
            )
        _require_stored(training.grams)
        # Nothing is kept of an earlier fit: mirror descent has no warm start.
        descent, facts = self._new_descent(training)
        # The learner keeps sizes of blocks and dual variables; rows are numbers into the matrices.
        samples = descent.begin(training.grams, training.y, training.weight)
        report = self._make_passes(descent, samples, progress)
        if getattr(self, "_resume", None) is not None:  # partial_fit starts over after fit
            del self._resume
        self.model_ = _build_model(descent, samples.A, training)
        self.report_ = replace(report, facts=facts)

    def _new_descent(self, training: KernelTraining) -> tuple[MirrorLearner, dict[str, Any]]:
        costs, facts = self._compute_block_costs(training)
        n_classes = training.outputs.n_outputs
        exponent = self._choose_exponent(training.n_kernels, n_classes)
        return MirrorLearner(exponent, costs, float(self.C), n_classes), facts

    def _make_passes(self, descent: MirrorLearner, samples: Any, progress: FitTask) -> FitReport:
        """Pass over the samples until the gap is small, or ``epochs`` are done."""
        random = random_generator(self.random_state)
        tell = Iterations(progress)
        done, converged, interrupted = 0, False, False
        try:
            while done < int(self.epochs) and not converged:
                descent.learn(samples, random.permutation(len(samples.labels)))
                done += 1
                # After a whole pass sizes are computed again, because increments add up rounding
                # (:eq:`mirror-sizes`), and the gap holds (:eq:`mirror-kernel-gap`).
                descent.refresh(samples)
                objective, gap = descent.objective_and_gap(samples)
                tell.end(done, gap)
                converged = gap <= float(self.tol) * objective
        except KeyboardInterrupt:
            # The last pass may be complete and not yet counted.
            # The interrupt may come between the end of a pass and its count.
            done = round(descent.rounds / descent.total)
            if done == 0:
                raise
            descent.refresh(samples)
            objective, gap = descent.objective_and_gap(samples)
            interrupted = True
            warn_caller(f"Interrupted after {done} epochs, which are kept.", InterruptedFitWarning)
        return FitReport(objective, gap, done, bool(converged), interrupted)

    # --- samples as they come

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more samples, one after the other, by mirror descent.

        The first call, or the first after ``fit``, starts a new model and fixes the kernels:
        relative widths and tail sums are those of its samples. Later calls also keep its ``C``,
        ``beta`` and ``q``. Each sample is used once, in the order given.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), optional
            All labels that can occur; needed in the first call unless its ``y`` has them all.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The estimator.
        """
        self._check_parameters()
        if self._precomputed:
            raise TypeError(
                "partial_fit compares later rows with earlier ones, and kernel='precomputed' gives "
                "no rows; set kernel='bank', or call fit with solver='mirror'."
            )
        with all_or_nothing(self):
            first = not isinstance(getattr(self, "_resume", None), KernelLearnerState)
            X = self._validate(X) if first else self._check_new(X)
            check_targets(self, X, y)
            weight = prepare_row_costs(sample_weight, X.shape[0])
            known, labels = self._encode_stream_labels(y, classes, first)
            weight = apply_class_weights(self.class_weight, known[labels], weight, stream=True)
            if first:
                self._start_stream(X, labels, weight, ClassOutputs(known))
            else:
                self._continue_stream(X, labels, weight)
            return self

    def _encode_stream_labels(
        self, y: ArrayLike, classes: ArrayLike | None, first: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return all labels that can occur, and the positions of the labels in ``y`` among them."""
        check_one_kind_of_label(y)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
            raise ValueError("Input y contains NaN or infinity; every sample needs a label.")
        if first:
            # Later calls may bring no new class: a column of dual variables cannot be added to past
            # rounds.
            known = np.unique(y if classes is None else np.asarray(classes))
            if len(known) < 2:
                raise ValueError(
                    "the first call of partial_fit needs at least 2 classes; give all labels that "
                    "can occur as classes."
                )
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
                raise ValueError(
                    f"classes={classes!r} differs from classes of the first call, {known!r}."
                )
        # A label above all known ones has the place after the last.
        places = np.minimum(np.searchsorted(known, y), len(known) - 1)
        unknown = known[places] != y
        if np.any(unknown):
            raise ValueError(
                f"y has the label {y[unknown][0]!r}, which is not among classes "
                f"{known!r}; give all labels in the first call."
            )
        return known, np.asarray(places)

    def _start_stream(
        self, X: Array, labels: np.ndarray, weight: np.ndarray, outputs: ClassOutputs
    ) -> None:
        """Fit the kernels to the first samples, and learn from these."""
        kept = np.flatnonzero(weight > 0.0)
        if len(kept) == 0:
            raise ValueError(
                f"class_weight={self.class_weight!r} leaves the first rows without weight; "
                "begin with rows of positive weight."
            )
        bank = gaussian_bank() if self.bank is None else self.bank
        bank = bank.fit(take_rows(X, kept), sample_weight=weight[kept])
        if bank.factors is not None:
            raise ValueError(
                "partial_fit works on kernel matrices, and this bank has factors; give a bank "
                "without factors, or call fit."
            )
        inputs, raw = Inputs.of(self), self._takes_raw_rows()
        grams = _require_stored(bank.grams())
        rows = KernelTraining(bank, grams, labels[kept], weight[kept], kept, raw, inputs, outputs)
        descent, facts = self._new_descent(rows)
        samples = descent.begin(grams, rows.y, rows.weight, growing=True)
        descent.learn(samples, np.arange(len(kept)))
        self._keep(descent, samples.A, rows, len(labels), facts)

    def _continue_stream(self, X: Array, labels: np.ndarray, weight: np.ndarray) -> None:
        """Learn from further samples."""
        model, met = self.model_, self._resume.met
        kept = np.flatnonzero(weight > 0.0)
        if len(kept) == 0:
            self._resume = replace(self._resume, met=met + len(labels))
            return
        past: Any = model.bank
        X = take_rows(X, kept)
        # The bank keeps the past rows that have dual variables, and the new ones.
        whole = past.append(X)
        grams = _require_stored(whole.take(np.arange(past.n_samples, whole.n_samples)).grams())
        descent = MirrorLearner.from_state(self._resume, len(self.classes_))
        samples = descent.begin(grams, labels[kept], weight[kept], growing=True)
        # The scores that the past rows give to the new ones, in one product before the first round.
        samples.add_past(past.between(X), model.dual_coef)
        descent.learn(samples, np.arange(len(kept)))
        rows = KernelTraining(
            whole,
            grams,
            labels[kept],
            weight[kept],
            # Support vectors are numbered by their place in the stream.
            np.concatenate([model.support, met + kept]),
            model.raw_rows,
            model.inputs,
            model.outputs,
        )
        A = np.concatenate([model.dual_coef, samples.A])
        self._keep(descent, A, rows, met + len(labels), self.report_.facts)

    def _keep(
        self,
        descent: MirrorLearner,
        A: np.ndarray,
        rows: KernelTraining,
        met: int,
        facts: dict[str, Any],
    ) -> None:
        """Set the model after a part of a stream, whose objective and gap are unknown."""
        # A stream has no objective, because its number of samples grows (:eq:`mirror-kernel-gap`).
        facts = facts | {"mistakes": int(descent.mistakes)}
        self._resume = descent.state(met)
        self.model_ = _build_model(descent, A, rows)
        self.report_ = FitReport(math.nan, math.nan, 1, False, False, facts=facts)

    # --- attributes of the report

    @property
    def objective_(self) -> float:
        """The minimised objective; unknown after ``partial_fit``."""
        return self._get_known("objective")

    @property
    def dual_gap_(self) -> float:
        """The objective is at most this much above its optimum; unknown after ``partial_fit``."""
        return self._get_known("gap")

    def _get_known(self, name: str) -> float:
        value = float(getattr(self._get_report(), name))
        if math.isnan(value):
            raise AttributeError(f"partial_fit uses each sample once, and computes no {name}")
        return value

    @property
    def mistakes_(self) -> int:
        """Number of samples whose class was predicted wrong when ``partial_fit`` met them."""
        return int(self._get_fact("mistakes"))


def _build_model(descent: MirrorLearner, A: np.ndarray, rows: KernelTraining) -> KernelModel:
    """Return the model of mirror descent, with the coefficients of its samples."""
    used = np.any(A != 0.0, axis=1)
    if not np.any(used):
        used = np.arange(len(used)) == 0
    weights = descent.weights()
    if not np.any(weights):
        warn_no_kernel()
    return rows.model(weights, A, used)


def _require_stored(grams: Grams) -> KernelStack:
    """Return matrices that are in memory; raise if they are not."""
    if isinstance(grams, KernelStack):
        return grams
    raise ValueError(
        f"Mirror descent needs all {grams.n_kernels} kernel matrices of {grams.n_samples} rows in "
        "memory; raise the memory of the bank, give fewer rows at a time, or use solver='exact'."
    )
