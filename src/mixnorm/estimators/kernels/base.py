"""What learners with several kernels share: kernels in, the engine's call, prediction."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixnorm._linear import linear_scores
from mixnorm.engines import multikernel
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.progress import (
    CallbackSupportMixin,
    Iterations,
    Progress,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators.kernels.inputs import (
    KernelInputsMixin,
    check_targets,
    row_costs,
    take_rows,
)
from mixnorm.estimators.kernels.stored import StoredKernelsMixin
from mixnorm.exceptions import (
    InterruptedFitWarning,
    KernelMemoryWarning,
    NoKernelWarning,
    NotConvergedWarning,
)
from mixnorm.kernels import KernelStack, gaussian_bank

_FEWER = "Lower beta or raise C, unless all targets are equal."
_ROWS = 2048  # of new data, that are compared with the support at a time


class KernelLearner(KernelInputsMixin, StoredKernelsMixin, CallbackSupportMixin, BaseEstimator):
    """Base of the learners that weigh kernels.

    A subclass has the parameters ``bank``, ``kernel``, ``C``, ``tol``, ``max_iter`` and
    ``warm_start``, and says what its penalty and its targets are.
    """

    bank_: Any
    kernel_weights_: np.ndarray
    _features: Any
    #: Whether the machine is that of squared losses.
    _squares = False

    # --- what a subclass says

    def _penalty(self, grams: Any, weight: np.ndarray) -> multikernel.KernelPenalty:
        """Return the penalty, for rows of these weights."""
        raise NotImplementedError

    def _target(self, y: Any, caps: np.ndarray) -> Any:
        """Return the targets as the engine takes them; set what is fitted without it."""
        raise NotImplementedError

    def _encoded(self, y: Any, weight: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return valid targets, and weights by class and sample; zero leaves a row out."""
        raise NotImplementedError

    def _unit(self, total: float) -> float:
        """Return what the engine's objective is divided by to be that of the documentation."""
        return 1.0

    def _n_tasks(self) -> int:
        """Return how many iterations a fit has at most."""
        return int(self.max_iter)

    # --- data

    def _kernels_of(self, X: Any, weight: np.ndarray) -> tuple[Any, Any]:
        """Return the fitted bank (None if kernels are given), and the kernels of the rows.

        The rows are those of positive weight: the others count for nothing.
        """
        kept = np.flatnonzero(weight > 0.0)
        if self._precomputed:
            return None, self._given_kernels(X, kept)
        bank = gaussian_bank() if self.bank is None else self.bank
        return self._within_memory(bank, take_rows(X, kept), weight[kept])

    def _within_memory(self, bank: Any, X: Any, weight: np.ndarray) -> tuple[Any, Any]:
        """Return the fitted bank and the kernels of the rows, within the memory of the bank."""
        beside = multikernel.bytes_beside(X.shape[0], bank.dtype, self._squares)
        fitted, grams, message = bank.fit_within(X, beside, weight)
        if message is not None:
            warn_caller(message, KernelMemoryWarning)
        return fitted, grams

    def _given_kernels(self, X: Any, kept: np.ndarray) -> KernelStack:
        """Return given kernel matrices between the rows that count, once all are checked."""
        stack = KernelStack(X)
        stack.check()
        self.n_features_in_ = stack.n_samples
        return stack if len(kept) == stack.n_samples else stack.take(kept)

    # --- fit

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Training data; with ``kernel="precomputed"`` kernel matrices instead: an array of shape
            ``(n_kernels, n_samples, n_samples)``, a list of matrices, or a
            :class:`~mixnorm.kernels.KernelStack`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type; or the targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, which multiply ``C``.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X = self._validated(X)
            check_targets(self, X, y)
            progress = Progress.of_fit(self, X, y, sample_weight, self._n_tasks())
            y, weight = self._encoded(y, row_costs(sample_weight, X.shape[0]))
            bank, grams = self._kernels_of(X, weight)
            self._learn(bank, grams, y, weight, progress)
            progress.end(dict)
            return self

    def _learn(self, bank: Any, grams: Any, y: Any, weight: np.ndarray, progress: Any) -> None:
        """Run the engine on the rows that count, and keep what it finds."""
        kept = np.flatnonzero(weight > 0.0)
        with np.errstate(over="ignore"):  # the engine refuses what is too large
            target = self._target(y[kept], float(self.C) * weight[kept])
        found = multikernel.solve(
            grams,
            target,
            self._penalty(grams, weight[kept]),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            start=self._start(grams, target),
            on_iteration=None if progress is None else Iterations(progress).end,
        )
        self._report(found, grams.dtype)
        self._keep(found, bank, grams, kept, self._unit(float(np.sum(weight))))

    def _start(self, grams: Any, target: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Return weights and dual variables of the last fit, if ``warm_start`` asks for them."""
        if not self.warm_start or not hasattr(self, "_last"):
            return None
        weights, duals, cost = self._last
        if len(weights) != grams.n_kernels or duals.shape != (len(target), target.n_outputs):
            raise ValueError(
                f"warm_start=True starts from {len(weights)} kernels and {duals.shape[0]} samples "
                f"of {duals.shape[1]} outputs, but there are {grams.n_kernels} and {len(target)} "
                f"of {target.n_outputs}. Set warm_start=False to start anew."
            )
        # They stay feasible where C grows, and are made so where it falls.
        return weights, duals * min(1.0, float(self.C) / cost)

    def _report(self, found: multikernel.KernelSolution, dtype: Any) -> None:
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

    def _keep(
        self,
        found: multikernel.KernelSolution,
        bank: Any,
        grams: Any,
        rows: np.ndarray,
        unit: float,
    ) -> None:
        """Set the fitted attributes."""
        self._last = (found.weights, found.duals, float(self.C))
        weights = found.weights
        used = np.any(found.duals != 0.0, axis=1)
        there = np.max(grams.diagonals(), axis=1) > 0.0
        if not np.any(used) or not np.any(weights[there]):
            warn_of_no_kernel(zero=bool(np.any(weights) and not np.any(there)))
            used = np.arange(len(used)) == 0
        self.kernel_weights_ = weights
        self.support_ = rows[used]
        self.dual_coef_ = np.ascontiguousarray(found.duals[used])
        self._set_predictor(bank, grams, np.flatnonzero(used), found.coefs)
        self.kernel_names_ = (
            [f"kernel {m}" for m in range(len(weights))] if bank is None else list(bank.names)
        )
        self.objective_ = float(found.objective / unit)
        self.dual_gap_ = float(found.gap / unit)
        self.n_iter_ = int(found.iterations)

    def _set_predictor(
        self, bank: Any, grams: Any, used: np.ndarray, coefs: np.ndarray | None = None
    ) -> None:
        """Keep what prediction needs of the bank: the support, or weights of features."""
        self.bank_, self._features = None, None
        if bank is None:
            return
        if grams.factors is None:
            self.bank_ = bank.take(used)
            return
        which = np.flatnonzero(self.kernel_weights_ > 0.0)
        blocks = [
            self.kernel_weights_[m]
            * (np.asarray(grams.factors[m][used], dtype=np.float64).T @ self.dual_coef_)
            for m in which
        ]
        self._features = np.concatenate(blocks) if blocks else np.zeros((0, 1))
        if coefs is not None and blocks:
            self._features = coefs
        self.bank_ = bank.take(used[:1])  # the landmarks are kept apart

    @property
    def cost_(self) -> dict[str, int]:
        """What the model takes: kernels, support vectors, numbers stored, multiplications a row."""
        check_is_fitted(self)
        n_support = len(self.support_)
        if self.bank_ is None:
            used = int(np.count_nonzero(self.kernel_weights_))
            return {
                "kernels": used,
                "support": n_support,
                "floats": int(self.dual_coef_.size) + used,
                "multiplications": n_support * (used + self.dual_coef_.shape[1]),
            }
        cost: dict[str, int] = self.bank_.cost(self.kernel_weights_, n_support)
        coef = self.dual_coef_ if self._features is None else self._features
        return cost | {
            "floats": cost["floats"] + int(coef.size),
            "multiplications": cost["multiplications"] + int(coef.size),
        }

    # --- prediction

    def _scores(self, X: Any) -> np.ndarray:
        """Return the scores of new rows: kernels with weight, and the support, alone count."""
        return self._scores_and_sizes(X)[0]

    def _scores_and_sizes(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return scores, and the largest sum of magnitudes that any score of a row is made of.

        In double precision, whatever the bank has: scores of a row hardly depend on its company.
        """
        check_is_fitted(self)
        if self._precomputed:
            return self._scores_of_stack(X)
        X = self._new_rows(X)
        rows = getattr(X, "iloc", X)
        parts = [
            self._scores_of_rows(rows[start : start + _ROWS])
            for start in range(0, X.shape[0], _ROWS)
        ]
        scores, sizes = zip(*parts, strict=True)
        return np.concatenate(scores), np.concatenate(sizes)

    def _scores_of_rows(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        if self._features is None:
            K = self.bank_.combine(X, self.kernel_weights_, dtype=np.float64)
            return products_and_sizes(K, self.dual_coef_)
        which = np.flatnonzero(self.kernel_weights_ > 0.0)
        if len(which) == 0:
            return np.zeros((X.shape[0], self.dual_coef_.shape[1])), np.zeros(X.shape[0])
        found = self.bank_.feature_products(X, which, self._features)
        return found[:, :-1], found[:, -1]

    def _scores_of_stack(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        stack = self._new_stack(X, len(self.kernel_weights_))
        K = stack.combine(self.kernel_weights_, columns=self.support_, dtype=np.float64)
        return products_and_sizes(K, self.dual_coef_)


def products_and_sizes(K: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``K @ table``, and for each row the largest sum of magnitudes in it.

    Overwrites ``K``.
    """
    found = linear_scores(K, table, np.zeros(1))
    return found, np.abs(K, out=K) @ np.max(np.abs(table), axis=1, initial=0.0)


def warn_of_no_kernel(zero: bool = False, advice: str = _FEWER) -> None:
    """Warn of a model without kernels, or whose kernels are zero."""
    what = (
        "The kernels that are left in the model are zero between all rows: it"
        if zero
        else "No kernel is left in the model, which"
    )
    advice = "Look at the kernels." if zero else advice
    warn_caller(f"{what} predicts the same for all rows. {advice}", NoKernelWarning)
