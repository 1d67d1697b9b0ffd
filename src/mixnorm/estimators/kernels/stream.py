"""Classifiers with several kernels that also learn from samples as they come."""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm.engines.mirror import KernelLearner as Descent
from mixnorm.estimators._common.inputs import (
    check_one_kind_of_label,
    class_factors,
    random_generator,
)
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import OneOf
from mixnorm.estimators._common.progress import Iterations, all_or_nothing
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.kernels.base import warn_of_no_kernel
from mixnorm.estimators.kernels.classifier import KernelClassifier
from mixnorm.estimators.kernels.inputs import check_targets, row_costs, take_rows
from mixnorm.exceptions import InterruptedFitWarning
from mixnorm.kernels import KernelStack, gaussian_bank

Solver = Annotated[str, OneOf(("exact", "mirror"))]


class KernelStream(KernelClassifier):
    """Adds ``solver="mirror"`` and ``partial_fit``.

    A subclass says what the sizes of blocks cost (``_block_costs``), and the dual exponent on
    them (``_exponent``).
    """

    _met: int

    def _block_costs(self, grams: Any, weight: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _exponent(self, n_kernels: int) -> float:
        raise NotImplementedError

    def _n_tasks(self) -> int:
        return int(self.max_iter if self.solver == "exact" else self.epochs)

    # --- whole passes

    def _within_memory(self, bank: Any, X: Any, weight: np.ndarray) -> tuple[Any, Any]:
        if self.solver == "exact":
            return super()._within_memory(bank, X, weight)
        # Passes over single rows need matrices, and say so.
        fitted = bank.fit(X, sample_weight=weight)
        return fitted, fitted.grams()

    def _learn(self, bank: Any, grams: Any, y: Any, weight: np.ndarray, progress: Any) -> None:
        for name in ("_descent", "mistakes_"):  # partial_fit starts anew after fit
            self.__dict__.pop(name, None)
        if self.solver == "exact":
            super()._learn(bank, grams, y, weight, progress)
            return
        if grams.factors is not None:
            raise ValueError(
                "solver='mirror' works on kernel matrices, and this bank has factors; take "
                "solver='exact', or a bank without factors."
            )
        kept = np.flatnonzero(weight > 0.0)
        descent = self._new_descent(_stored(grams), weight[kept])
        samples = descent.begin(grams, y[kept], weight[kept])
        self._pass(descent, samples, progress)
        self._keep_descent(descent, samples.A, bank, grams, kept)

    def _new_descent(self, grams: Any, weight: np.ndarray) -> Descent:
        costs = self._block_costs(grams, weight)
        return Descent(self._exponent(grams.n_kernels), costs, float(self.C), len(self.classes_))

    def _pass(self, descent: Descent, samples: Any, progress: Any) -> None:
        """Pass over the samples until the gap is small, or ``epochs`` are done."""
        random = random_generator(self.random_state)
        tell = Iterations(progress)
        done = 0
        try:
            for epoch in range(1, int(self.epochs) + 1):
                descent.learn(samples, random.permutation(len(samples.labels)))
                done = epoch
                descent.refresh(samples)
                self.objective_, self.dual_gap_ = descent.objective_and_gap(samples)
                tell.end(done, self.dual_gap_)
                if self.dual_gap_ <= float(self.tol) * self.objective_:
                    break
        except KeyboardInterrupt:
            # Signals are heard between passes: the last one may be whole and not yet counted.
            done = round(descent.rounds / descent.total)
            if done == 0:
                raise
            descent.refresh(samples)
            self.objective_, self.dual_gap_ = descent.objective_and_gap(samples)
            warn_caller(f"Interrupted after {done} epochs, which are kept.", InterruptedFitWarning)
        self.n_iter_ = done

    def _keep_descent(
        self, descent: Descent, A: np.ndarray, bank: Any, grams: Any, rows: np.ndarray
    ) -> None:
        """Set the fitted attributes from what was learned by single samples."""
        used = np.any(A != 0.0, axis=1)
        if not np.any(used):
            used = np.arange(len(used)) == 0
        self.kernel_weights_ = descent.weights()
        if not np.any(self.kernel_weights_):
            warn_of_no_kernel()
        self.support_ = rows[used]
        self.dual_coef_ = np.ascontiguousarray(A[used])
        self._set_predictor(bank, grams, np.flatnonzero(used))
        names = None if bank is None else list(bank.names)
        self.kernel_names_ = names or [f"kernel {m}" for m in range(len(self.kernel_weights_))]

    # --- samples as they come

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more samples, one after the other, by mirror descent.

        The first call (or the first after ``fit``) starts anew, and fixes the kernels: relative
        widths and tail sums are those of its samples. ``C``, ``beta`` and ``q`` are those of that
        call as well. Each sample is met once, in the order given.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), optional
            All labels that can come; needed in the first call unless its ``y`` has them all.
        sample_weight : array-like of shape (n_samples,), optional
            How often a sample counts.

        Returns
        -------
        self
            The estimator.
        """
        self._check_parameters()
        if self._precomputed:
            raise TypeError(
                "partial_fit needs rows, to compare later ones with, and kernel='precomputed' "
                "gives none; set kernel='bank', or call fit with solver='mirror'."
            )
        with all_or_nothing(self):
            first = "_descent" not in vars(self)
            X = self._stream_rows(X, first)
            check_targets(self, X, y)
            weight = row_costs(sample_weight, X.shape[0])
            labels = self._stream_labels(y, classes, first)
            self._stream(X, labels, weight * self._stream_factors(labels), first)
            return self

    def _stream_rows(self, X: Any, first: bool) -> Any:
        if self._raw():
            validate_data(self, X, reset=first, skip_check_array=True)
            return X
        return validate_data(
            self, X, reset=first, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def _stream_labels(self, y: Any, classes: Any, first: bool) -> np.ndarray:
        check_one_kind_of_label(y)
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
            raise ValueError("Input y contains NaN or infinity; labels must be known.")
        if first:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
            if len(self.classes_) < 2:
                raise ValueError(
                    "partial_fit needs at least 2 classes to begin with; give all labels that can "
                    "come as classes."
                )
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not the same as in the first call, {self.classes_!r}."
            )
        places = np.searchsorted(self.classes_, y)
        places = np.minimum(places, len(self.classes_) - 1)
        unknown = self.classes_[places] != y
        if np.any(unknown):
            raise ValueError(
                f"y has the label {y[unknown][0]!r}, which is not among classes "
                f"{self.classes_!r}; give all labels in the first call."
            )
        return np.asarray(places)

    def _stream_factors(self, labels: np.ndarray) -> np.ndarray:
        """Return what the class of each sample counts."""
        if self.class_weight is None:
            return np.ones(len(labels))
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} counts all samples, and partial_fit does not "
                "know those to come; give a dictionary of weights, or call fit."
            )
        every = self.classes_
        return np.asarray(class_factors(self.class_weight, every, np.ones(len(every)))[labels])

    def _stream(self, X: Any, labels: np.ndarray, weight: np.ndarray, first: bool) -> None:
        """Learn from samples, beside those learned from before."""
        met = 0 if first else self._met
        self._met, self.n_iter_ = met + len(labels), 1
        kept = np.flatnonzero(weight > 0.0)
        if len(kept) == 0:
            if first:
                raise ValueError(
                    f"class_weight={self.class_weight!r} leaves the first rows without weight; "
                    "begin with rows that count."
                )
            return
        X, labels, weight = take_rows(X, kept), labels[kept], weight[kept]
        if first:
            bank = gaussian_bank() if self.bank is None else self.bank
            bank = bank.fit(X, sample_weight=weight)
            if bank.factors is not None:
                raise ValueError(
                    "partial_fit works on kernel matrices, and this bank has factors; take one "
                    "without, or call fit."
                )
            whole, past = bank, None
            grams = _stored(bank.grams())
            self._descent = self._new_descent(grams, weight)
        else:
            whole, past = self.bank_.append(X), self.bank_
            n_past = past.n_samples
            grams = _stored(whole.take(np.arange(n_past, whole.n_samples)).grams())
        samples = self._descent.begin(grams, labels, weight, growing=True)
        if past is not None:
            samples.add_past(past.between(X), self.dual_coef_)
        self._descent.learn(samples, np.arange(len(labels)))
        A = samples.A if past is None else np.concatenate([self.dual_coef_, samples.A])
        rows = met + kept if past is None else np.concatenate([self.support_, met + kept])
        for name in ("dual_gap_", "objective_", "_last"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.mistakes_ = int(self._descent.mistakes)
        self._keep_descent(self._descent, A, whole, grams, rows)

    def _fitted_state(self) -> dict[str, Any]:
        state = super()._fitted_state()
        descent = state.pop("_descent", None)
        if descent is not None:
            state["_stream_state"] = descent.state()
        return state

    def _restore(self, state: dict[str, Any], max_bytes: int) -> None:
        kept = state.pop("_stream_state", None)
        super()._restore(state, max_bytes)
        if kept is not None:
            self._descent = Descent.from_state(kept, len(self.kernel_weights_), len(self.classes_))


def _stored(grams: Any) -> Any:
    """Return matrices that are in memory, which passes over single rows need."""
    if isinstance(grams, KernelStack):
        return grams
    raise ValueError(
        f"Mirror descent needs all {grams.n_kernels} kernel matrices of {grams.n_samples} rows in "
        "memory; raise the memory of the bank, give fewer rows at a time, or take solver='exact'."
    )
