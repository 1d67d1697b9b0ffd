"""The base class of learners that choose a few kernels: fit, path and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from mixnorm._array import Array, ArrayLike, MatrixLike
from mixnorm.engines import sparse_kernels
from mixnorm.engines.sparse_kernels import ALGORITHMS, STEPS
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import Count, Number, OneOf, Tolerance, Whole, maybe
from mixnorm.estimators._common.progress import FitTask, Rounds
from mixnorm.estimators._common.staged import StagedMixin
from mixnorm.estimators.kernels.base import KernelEstimator, KernelTraining, warn_no_kernel
from mixnorm.estimators.kernels.inputs import BankParameters, prepare_weights, take_rows
from mixnorm.estimators.kernels.rates import KernelRates, measure_rates
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    NotConvergedWarning,
)
from mixnorm.kernels import FittedBank, KernelBank, exact_factor
from mixnorm.models import Inputs, KernelPath, KernelPathModel
from mixnorm.pools import KernelPool

# Most entries of all matrices together for which they are stored and scanned exactly.
_MOST_STORED_ENTRIES = 2**26
# Bytes for matrices that are computed at every use, some rows at a time.
_BYTES_BESIDE_STAND_INS = 2**27
# Rows count as having no weight below this part of the largest weight.
_LEAST_ROW_WEIGHT = 1e-30


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyKernelParameters(BankParameters):
    """Parameters of every learner that chooses kernels."""

    n_kernels: Count = 10
    algorithm: Annotated[str, OneOf(ALGORITHMS)] = "gomp"
    alpha: Annotated[float, Number(least=0, why="it is what kernels cost")] = 1e-3
    step: Annotated[str, OneOf(STEPS)] = "line"
    n_steps: Annotated[int | None, maybe(Whole(least=1))] = None
    scan: Annotated[str, OneOf(("auto", "exact", "factors"))] = "auto"
    rank: Count = 64
    tol: Tolerance = 1e-8
    max_iter: Count = 5000


@dataclass(frozen=True, eq=False)
class ScannedTraining(KernelTraining):
    """The rows of a fit, whose kernels may be scored by stand-ins.

    Parameters
    ----------
    rank : int
        Most landmarks of the stand-ins; zero where kernels are scored exactly.
    """

    rank: int

    def pool(self) -> KernelPool:
        """Return the kernels as atoms, with stand-ins for these rows and weights."""
        if self.bank is None:
            return KernelPool(self.grams, self.weight)
        sketch = self.bank.sketch(self.weight, self.rank) if self.rank else None
        return KernelPool(self.grams, self.weight, sketch, self.bank.gram)

    def path_model(self, path: KernelPath) -> KernelPathModel:
        """Return the model of a path, with the kernels that prediction needs, in float64."""
        bank = self.bank
        if bank is not None:
            # A model without kernels keeps the first one, because a bank cannot be empty.
            which = list(path.rounds[-1].support) if path.rounds else [0]
            # Predictions of the few chosen kernels cost little in double precision, and are then
            # the same one by one as in batches.
            bank = replace(bank.only(which), precision="float64")
        return KernelPathModel(
            self.rows, bank, self.names, self.raw_rows, self.inputs, self.outputs, path
        )


class GreedyKernelLearner(StagedMixin, KernelEstimator):
    """Base of the classifier and the regressor, which define their loss and targets."""

    model_: KernelPathModel
    #: The settings of the path, which a continuation must have as well.
    _resume: tuple[str, float, str]

    # --- for subclasses

    def _loss(self) -> Any:
        """Return the loss object."""
        raise NotImplementedError

    def _check_together(self) -> None:
        if not self.alpha > 0.0 and self.algorithm != "l2":
            raise ValueError(f"alpha={self.alpha!r} must be positive: it is what kernels cost.")

    # --- fit

    def _fit(self, X: Array, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        previous = self._find_previous()
        training = self._prepare_training(X, y, sample_weight)
        if previous is not None:
            self._check_continues(previous, training)
        start = None if previous is None else previous.path
        if self.n_kernels > training.n_kernels and self.algorithm != "l2":
            warn_caller(
                f"n_kernels={self.n_kernels} asks for more kernels than the {training.n_kernels} "
                "there are; all of these may be chosen.",
                FewerFeaturesWarning,
            )
        # A continued path shows only the rounds that are left.
        left = self._count_left(training, start)
        progress = FitTask.of_fit(self, X, y, sample_weight, left)
        self._learn(training, progress, start)
        progress.end(dict)

    def _prepare_training(
        self, X: Array, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> ScannedTraining:
        """Return the rows that count, with their kernels, and weights that sum to one."""
        weight = prepare_weights(sample_weight, X.shape[0])
        targets, weight, outputs = self._encode_targets(y, weight)
        # A system has the inverse weight on its diagonal (:eq:`gomp-system`), which must not
        # overflow.
        rows = np.flatnonzero(weight > _LEAST_ROW_WEIGHT * np.max(weight))
        # Summed to one, so that ``alpha`` does not depend on the size of the weights.
        weight = weight[rows] / np.sum(weight[rows])
        bank, grams, rank = self._compute_kernels(X, rows, weight)
        inputs = Inputs.of(self)
        return ScannedTraining(
            bank, grams, targets[rows], weight, rows, self._takes_raw_rows(), inputs, outputs, rank
        )

    def _adapt_to_fold(self, training: KernelTraining) -> KernelTraining:
        # The weights of the fold's rows sum to less than one.
        return replace(training, weight=training.weight / np.sum(training.weight))

    def _learn(
        self, training: ScannedTraining, progress: FitTask, start: KernelPath | None = None
    ) -> None:
        """Run the engine, and set the model."""
        left = self._count_left(training, start)
        rounds = Rounds(progress, left, lambda path: {"model_": training.path_model(path)})
        path = self._find_path(training, start, rounds)
        self.model_ = training.path_model(path)
        self._resume = self._settings()
        self._report(path, self._count_rounds(training))

    def _find_path(
        self,
        training: ScannedTraining,
        start: KernelPath | None = None,
        rounds: Rounds | None = None,
    ) -> KernelPath:
        """Return the path of the engine."""
        loss, n_outputs = self._loss(), training.outputs.n_outputs
        # The targets are divided by a unit. The loss and a squared norm have its square, and alpha
        # stays; a norm has the unit itself (:eq:`sparse-lasso`).
        unit = training.outputs.unit if self.algorithm == "l1" else 1.0
        return sparse_kernels.select(
            training.pool(),
            loss,
            loss.encode(training.y, n_outputs, training.weight),
            n_kernels=min(int(self.n_kernels), training.n_kernels),
            n_outputs=n_outputs,
            weight=training.weight,
            algorithm=self.algorithm,
            alpha=float(self.alpha) / unit,  # a norm has the unit of the targets
            step=self.step,
            n_steps=self._count_rounds(training),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            start=start,
            on_round=None if rounds is None else rounds.end,
        )

    def _find_previous(self) -> KernelPathModel | None:
        """Return the model of the last fit for ``warm_start``, or None."""
        return getattr(self, "model_", None) if self.warm_start else None

    @property
    def _size(self) -> str:
        """The parameter that limits the number of rounds."""
        return "n_steps" if self.algorithm == "l2" else "n_kernels"

    def _count_iterations(self) -> int:
        """Return the largest number of rounds of a fit."""
        steps = self.algorithm == "l2" and self.n_steps is not None
        return int(self.n_steps if steps else self.n_kernels)

    def _count_rounds(self, training: KernelTraining) -> int:
        """Return the largest number of rounds with the kernels of the training data."""
        most = self._count_iterations()
        return most if self.algorithm == "l2" else min(most, training.n_kernels)

    def _count_left(self, training: KernelTraining, start: KernelPath | None) -> int:
        """Return the number of rounds left after those of a path."""
        return max(0, self._count_rounds(training) - (0 if start is None else len(start.rounds)))

    def _compute_kernels(
        self, X: Array, kept: np.ndarray, weight: np.ndarray
    ) -> tuple[Any, Any, int]:
        """Return the bank, None if kernels are given, the kernels, and the rank of stand-ins.

        The rank is zero if kernels are scored exactly.
        """
        if self._precomputed:
            return None, self._check_given_kernels(X, kept), 0
        given = KernelBank.per_feature() if self.bank is None else self.bank
        bank = given.fit(take_rows(X, kept), sample_weight=weight)
        names = getattr(self, "feature_names_in_", None)
        if self.bank is None and names is not None:
            bank = replace(bank, names=_name_kernels(bank, names))
        # 67 million entries are half a gigabyte in float64.
        small = bank.n_kernels * bank.n_samples**2 <= _MOST_STORED_ENTRIES
        # Stand-ins pay if the matrices would not fit, or would take longer to read than the
        # stand-ins.
        exact = self.scan == "exact" or (self.scan == "auto" and small)
        if exact or bank.factors is not None:
            return bank, bank.grams(partly=False), 0
        # No matrix is stored beside the stand-ins.
        little = replace(bank, memory=min(bank.memory, _BYTES_BESIDE_STAND_INS))
        return bank, little.grams(partly=False), int(self.rank)

    def _check_continues(self, previous: KernelPathModel, training: KernelTraining) -> None:
        """Raise unless the last path can be continued with these kernels and rows."""
        shape, known, names = previous.path.terms.shape[1:], previous.names, training.names
        here = (len(training.rows), training.outputs.n_outputs)
        if shape != here or known != names:
            raise ValueError(
                f"warm_start=True continues a path on {len(known)} kernels and "
                f"{shape[0]} samples of {shape[1]} outputs, but there are {len(names)} kernels, or "
                f"others, and {here[0]} samples of {here[1]}. Set warm_start=False to start over."
            )
        # The tables of the path have a row for each training row, whose order counts.
        if not np.array_equal(previous.support, training.rows):
            raise ValueError(
                "warm_start=True continues a path, but other rows have weight now. Set "
                "warm_start=False to start over."
            )
        if getattr(self, "_resume", None) != self._settings():
            raise ValueError(
                "warm_start=True continues a path, but algorithm, alpha or loss has changed since. "
                "Set warm_start=False to start over."
            )

    def _settings(self) -> tuple[str, float, str]:
        return (self.algorithm, float(self.alpha), repr(self._loss()))

    def _report(self, path: KernelPath, wanted: int) -> None:
        """Warn if the path is shorter than wanted, or less exact."""
        done = len(path.rounds)
        if path.interrupted:
            warn_caller(
                f"Interrupted after {done} of {wanted} rounds, which are kept. "
                "Set warm_start=True and call fit again to go on.",
                InterruptedFitWarning,
            )
        if not done:
            fewer = "Look at the kernels" if self.algorithm == "l2" else "Lower alpha"
            warn_no_kernel(advice=f"{fewer}, unless all targets are equal.")
        elif path.exhausted and self.algorithm != "l1":
            warn_caller(
                f"Stopped after {done} of {wanted} rounds: no other kernel lowers the loss.",
                FewerFeaturesWarning,
            )
        if not path.converged:
            warn_caller(
                f"A refit did not reach tol={self.tol:g} within max_iter={self.max_iter} "
                "iterations, or rounding prevented it. Raise alpha, max_iter or tol, or scale "
                "the kernels (normalize='trace' in a bank).",
                NotConvergedWarning,
            )

    def truncate(self, n_rounds: int) -> Self:
        """Return the fitted model of an earlier round, read off the path.

        No data is needed and nothing is refitted.

        Parameters
        ----------
        n_rounds : int
            Number of rounds, which is the number of kernels unless ``algorithm="l2"`` chose some of
            them twice.

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        if not self._get_model().size:
            raise ValueError("truncate: the model has no kernels, and so no smaller model.")
        return self._truncate(n_rounds, self._size, "rounds")

    def rates(self, X: MatrixLike, y: ArrayLike) -> KernelRates:
        """Return how fast the loss falls along the path, and the rate of the theory.

        The theory is that of ``algorithm="l2"`` on squared losses.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The training data, or other rows, as in :meth:`predict`; kernel matrices of the
            training rows with ``kernel="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets or labels. All rows count alike.

        Returns
        -------
        KernelRates
            With ``correlation``, ``gamma``, ``predicted``, ``measured``, ``bound`` and more.
        """
        model = self._get_model()
        given, n_outputs = model.bank is None, model.path.terms.shape[2]
        loss = model.outputs.loss
        if loss is not None and not loss.constant_curvature:
            raise ValueError(f"rates are known for squared losses, and this model has {loss!r}.")
        if not model.size:
            raise ValueError("the model has no kernels, and so no rate; lower alpha.")
        target, rows = self._targets_of(y), self._check_new(X)
        if target.shape[1] != n_outputs or (not given and len(target) != rows.shape[0]):
            raise ValueError(
                f"y has {len(target)} rows and {target.shape[1]} outputs; it must have one row for "
                f"each of X and {n_outputs} outputs, as in the fit."
            )
        if given and rows.shape != (len(target), len(target)):
            raise ValueError(
                f"X has kernels of shape {rows.shape} for {len(target)} targets; rates need those "
                "between all pairs of the rows."
            )
        # The scores after each round, from which the losses along the path follow.
        sums, _ = model.sums(rows, range(model.size + 1))
        found = [each * model.outputs.unit - target for each in sums]
        losses = np.asarray([0.5 * np.sum(left * left) / len(target) for left in found])
        if model.bank is None:
            matrices = [rows.matrices[kernel] for kernel in model.selected]
        else:
            here = model.bank.replace_rows(rows)
            matrices = [here.gram(place) for place in range(here.n_kernels)]
        wide = [np.asarray(matrix, dtype=np.float64) for matrix in matrices]
        # The intercept's residual is what the kernels have to explain.
        return measure_rates([exact_factor(matrix) for matrix in wide], -found[0], losses)

    def _targets_of(self, y: ArrayLike) -> np.ndarray:
        """Return the targets of some rows, one column per output."""
        raise NotImplementedError

    # --- attributes of the model

    @property
    def selected_kernels_(self) -> np.ndarray:
        """The chosen kernels, by their numbers in the bank."""
        return np.asarray(self._get_model().selected)

    @property
    def selected_names_(self) -> list[str]:
        """Names of the chosen kernels."""
        model = self._get_model()
        return [model.names[kernel] for kernel in model.selected]

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the chosen kernels with the support."""
        return np.asarray(self._get_model().tables)

    @property
    def intercept_(self) -> Any:
        """The predictions, or scores, of the model without kernels."""
        return self._get_model().intercept


def _name_kernels(bank: FittedBank, names: Sequence[str]) -> list[str]:
    """Return the names of kernels of single columns, with the names of the columns."""
    places = [
        int(bank.columns[group][0]) if bank.columns[group] is not None else 0
        for group in bank.group_of
    ]
    words = [name.split(": ", 1)[1] for name in bank.names]
    return [f"{names[place]}: {word}" for place, word in zip(places, words, strict=True)]
