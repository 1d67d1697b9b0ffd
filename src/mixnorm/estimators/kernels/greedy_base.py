"""What the learners that choose a few kernels share: the fit, the path, prediction."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixnorm.engines import sparse_kernels
from mixnorm.engines.sparse_kernels import ALGORITHMS, STEPS, KernelPath
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import Number, OneOf
from mixnorm.estimators._common.progress import (
    CallbackSupportMixin,
    Progress,
    Rounds,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators._common.staged import check_size
from mixnorm.estimators.kernels.base import products_and_sizes, warn_of_no_kernel
from mixnorm.estimators.kernels.greedy_stored import StoredKernelPathMixin
from mixnorm.estimators.kernels.inputs import (
    KernelInputsMixin,
    check_targets,
    take_rows,
    weights_of,
)
from mixnorm.estimators.kernels.rates import KernelRates, rates_of
from mixnorm.exceptions import (
    FewerFeaturesWarning,
    InterruptedFitWarning,
    NotConvergedWarning,
)
from mixnorm.kernels import KernelBank, KernelStack, exact_factor
from mixnorm.pools import KernelPool

Algorithm = Annotated[str, OneOf(ALGORITHMS)]
Price = Annotated[float, Number(least=0, why="it is what kernels cost")]
Step = Annotated[str, OneOf(STEPS)]
Scan = Annotated[str, OneOf(("auto", "exact", "factors"))]


# Matrices of so many entries together are stored and scanned as they are.
_STORED = 2**26
# Bytes for matrices that are computed at use, some rows at a time.
_LITTLE = 2**27
# Rows that weigh less, beside the heaviest, do not count.
_LIGHT = 1e-30
_ROWS = 2048  # of new data, that are compared with the training rows at a time


class GreedyKernelLearner(
    KernelInputsMixin, StoredKernelPathMixin, CallbackSupportMixin, BaseEstimator
):
    """Base of the classifier and the regressor, which say what their loss and targets are."""

    bank_: Any
    classes_: np.ndarray
    n_features_in_: int
    kernel_names_: list[str]
    support_: np.ndarray
    _path: KernelPath
    _fitted_loss: Any
    #: Targets of a regressor are divided by this unit; labels are left alone.
    _unit: float = 1.0

    # --- what a subclass says

    def _loss(self) -> Any:
        """Return the loss object."""
        raise NotImplementedError

    def _encoded(self, y: Any, weight: np.ndarray) -> tuple[Any, int, np.ndarray]:
        """Return targets, the number of outputs, and weights by class and sample."""
        raise NotImplementedError

    def _predict_scores(self, scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Turn scores, which are sums of terms of some sizes, into predictions."""
        raise NotImplementedError

    def _check_together(self) -> None:
        if not self.alpha > 0.0 and self.algorithm != "l2":
            raise ValueError(f"alpha={self.alpha!r} must be positive: it is what kernels cost.")

    # --- fit

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose kernels and fit.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Training data; with ``kernel="precomputed"`` kernel matrices instead: an array of shape
            ``(n_kernels, n_samples, n_samples)``, a list of matrices, or a
            :class:`~mixnorm.kernels.KernelStack`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type; or the targets of a regression.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with all_or_nothing(self):
            start = getattr(self, "_path", None) if self.warm_start else None
            X = self._validated(X)
            check_targets(self, X, y)
            target, n_outputs, weight = self._encoded(y, weights_of(sample_weight, X.shape[0]))
            kept = np.flatnonzero(weight > _LIGHT * np.max(weight))
            weight = weight[kept] / np.sum(weight[kept])
            bank, pool, names = self._kernels_of(X, kept, weight)
            if start is not None:
                self._check_continues(start, pool, n_outputs, names, kept)
            wanted = self._wanted(pool.n_usable)
            left = wanted if start is None else max(0, wanted - len(start.rounds))
            whole = Progress.of_fit(self, X, y, sample_weight, left)
            self.kernel_names_, self.support_ = names, kept
            loss = self._fitted_loss = self._loss()

            def attributes(path: Any) -> dict[str, Any]:
                return self._attributes(path, self._needed(path, bank))

            rounds = Rounds(whole, left, attributes)
            path = sparse_kernels.select(
                pool,
                loss,
                loss.encode(target[kept], n_outputs, weight),
                n_kernels=min(int(self.n_kernels), pool.n_usable),
                n_outputs=n_outputs,
                weight=weight,
                algorithm=self.algorithm,
                alpha=self._penalty(),
                step=self.step,
                n_steps=wanted,
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                start=start,
                on_round=rounds.end,
            )
            self.__dict__.update(attributes(path))
            self._report(path, wanted)
            whole.end(dict)
            return self

    def _penalty(self) -> float:
        """Return the penalty in the units of the engine: a norm goes with the unit of targets."""
        return float(self.alpha) / (self._unit if self.algorithm == "l1" else 1.0)

    def _wanted(self, available: int) -> int:
        """Return how many rounds to go, with a warning where there are too few kernels."""
        if self.algorithm == "l2":
            return int(self.n_kernels if self.n_steps is None else self.n_steps)
        if self.n_kernels > available:
            warn_caller(
                f"n_kernels={self.n_kernels} asks for more kernels than the {available} there are; "
                "all of these may be chosen.",
                FewerFeaturesWarning,
            )
        return min(int(self.n_kernels), available)

    def _kernels_of(
        self, X: Any, kept: np.ndarray, weight: np.ndarray
    ) -> tuple[Any, KernelPool, list[str]]:
        """Return the bank on the rows that count (None if kernels are given), and the pool."""
        if self._precomputed:
            stack = KernelStack(X)
            stack.check()
            self.n_features_in_ = stack.n_samples
            part = stack if len(kept) == stack.n_samples else stack.take(kept)
            names = [f"kernel {m}" for m in range(stack.n_kernels)]
            return None, KernelPool(part, weight), names
        given = KernelBank.per_feature() if self.bank is None else self.bank
        bank = given.fit(take_rows(X, kept), sample_weight=weight)
        if self.bank is None and hasattr(self, "feature_names_in_"):
            bank = replace(bank, names=_named(bank, self.feature_names_in_))
        small = bank.n_kernels * bank.n_samples**2 <= _STORED
        exact = self.scan == "exact" or (self.scan == "auto" and small)
        if exact or bank.factors is not None:
            pool = KernelPool(bank.grams(partly=False), weight, matrix=bank.gram)
        else:
            # Nothing is stored beside the stand-ins.
            grams = replace(bank, memory=min(bank.memory, _LITTLE)).grams(partly=False)
            pool = KernelPool(grams, weight, bank.sketch(weight, int(self.rank)), bank.gram)
        return bank, pool, list(bank.names)

    def _check_continues(
        self,
        start: KernelPath,
        pool: KernelPool,
        n_outputs: int,
        names: list[str],
        kept: np.ndarray,
    ) -> None:
        """Raise unless the path at hand can be continued with these kernels and rows."""
        shape = start.terms.shape[1:]
        if shape != (pool.grams.n_samples, n_outputs) or self.kernel_names_ != names:
            raise ValueError(
                f"warm_start=True continues a path on {len(self.kernel_names_)} kernels and "
                f"{shape[0]} samples of {shape[1]} outputs, but there are {len(names)} kernels, or "
                f"others, and {pool.grams.n_samples} samples of {n_outputs}. Set warm_start=False "
                "to start anew."
            )
        if not np.array_equal(self.support_, kept):
            raise ValueError(
                "warm_start=True continues a path, but other rows have weight now. Set "
                "warm_start=False to start anew."
            )
        if self._recipe != self._settings():
            raise ValueError(
                "warm_start=True continues a path, but algorithm, alpha or loss has changed since. "
                "Set warm_start=False to start anew."
            )

    def _settings(self) -> tuple[Any, ...]:
        return (self.algorithm, float(self.alpha), repr(self._loss()))

    def _report(self, path: KernelPath, wanted: int) -> None:
        done = len(path.rounds)
        if path.interrupted:
            warn_caller(
                f"Interrupted after {done} of {wanted} rounds, which are kept. "
                "Set warm_start=True and call fit again to go on.",
                InterruptedFitWarning,
            )
        if not done:
            fewer = "Look at the kernels" if self.algorithm == "l2" else "Lower alpha"
            warn_of_no_kernel(advice=f"{fewer}, unless all targets are equal.")
        elif path.exhausted and self.algorithm != "l1":
            warn_caller(
                f"Stopped after {done} of {wanted} rounds: no other kernel lowers the loss.",
                FewerFeaturesWarning,
            )
        if not path.converged:
            warn_caller(
                f"A refit did not reach tol={self.tol:g}, within max_iter={self.max_iter} "
                "iterations or because rounding forbids. Raise alpha, max_iter or tol, or scale "
                "the kernels (normalize='trace' in a bank).",
                NotConvergedWarning,
            )

    def _needed(self, path: KernelPath, bank: Any) -> Any:
        """Return what prediction needs of the bank, and more exactly than a scan does."""
        if bank is None:
            return None
        which = list(path.rounds[-1].support) if path.rounds else [0]
        return replace(bank.only(which), precision="float64")

    def _attributes(self, path: KernelPath, bank: Any) -> dict[str, Any]:
        """Return the fitted attributes that a path stands for, with the bank of its kernels."""
        rounds, unit = path.rounds, self._unit
        last = rounds[-1] if rounds else None
        chosen = np.asarray(last.support if last else (), dtype=np.intp)
        kernels = [step.atom for step in rounds]
        return {
            "_path": path,
            "_recipe": self._settings(),
            "bank_": bank,
            "selected_kernels_": chosen,
            "selected_names_": [self.kernel_names_[kernel] for kernel in chosen],
            "dual_coef_": self._tables(path),
            "null_loss_": path.null_loss * unit * unit,
            "path_": {
                "kernel": np.asarray(kernels, dtype=np.intp),
                "n_kernels": np.asarray([len(step.support) for step in rounds], dtype=np.intp),
                "loss": np.asarray([step.loss for step in rounds]) * unit * unit,
                "objective": np.asarray([step.objective for step in rounds]) * unit * unit,
                "gradient": np.asarray([step.gradient for step in rounds]) * unit,
                "gap": np.asarray([step.gap for step in rounds]) * unit * unit,
                "seconds": np.asarray([step.seconds for step in rounds]),
            },
            "n_iter_": max(1, sum(step.iterations for step in rounds)),
            "intercept_": self._intercept(last.intercept if last else path.null_intercept),
        }

    def _intercept(self, intercept: np.ndarray) -> Any:
        return intercept

    def _tables(self, path: KernelPath) -> np.ndarray:
        """Return the table of each kernel of the last model, in the units of the targets."""
        if not path.rounds:
            return np.zeros((0, *path.terms.shape[1:]))
        return np.stack(path.blocks(len(path.rounds))) * self._unit

    # --- smaller models

    def truncate(self, n_rounds: int) -> Self:
        """Return the fitted model of an earlier round, read off the path.

        No data is needed and nothing is refitted.

        Parameters
        ----------
        n_rounds : int
            Number of rounds: of kernels, unless ``algorithm="l2"`` chose some of them twice.

        Returns
        -------
        estimator
            A fitted copy; the model itself is unchanged.
        """
        check_is_fitted(self)
        if not self._path.rounds:
            raise ValueError("truncate: the model has no kernels, and so no smaller model.")
        size = check_size(n_rounds, len(self._path.rounds), "rounds", "n_kernels")
        smaller = copy.copy(self)
        path = self._path.first(size)
        bank = self.bank_
        if bank is not None:
            bank = bank.only(range(len(path.rounds[-1].support)))
        smaller.__dict__.update(smaller._attributes(path, bank))
        if smaller.algorithm == "l2":
            smaller.n_steps = size
        else:
            smaller.n_kernels = size
        return smaller

    # --- prediction

    def _scores(self, X: Any) -> np.ndarray:
        return self._scores_of(X, [len(self._fitted_path().rounds)])[0]

    def _fitted_path(self) -> KernelPath:
        check_is_fitted(self)
        return self._path

    def _scores_of(self, X: Any, sizes: list[int]) -> list[np.ndarray]:
        """Return the scores of models of several sizes, for which each kernel is computed once."""
        return self._scored(X, sizes)[0]

    def _scored(self, X: Any, sizes: list[int]) -> tuple[list[np.ndarray], np.ndarray]:
        """Return such scores, and the largest sum of magnitudes that any of a row is made of."""
        path = self._fitted_path()
        blocks = self._side_by_side(path, sizes)
        if self._precomputed:
            found = self._products_of_stack(X, blocks)
        else:
            X = self._new_rows(X)
            rows = getattr(X, "iloc", X)
            parts = [
                self.bank_.products(rows[start : start + _ROWS], blocks, sizes=True)
                if path.rounds
                else self._nothing(rows[start : start + _ROWS])
                for start in range(0, X.shape[0], _ROWS)
            ]
            found = np.concatenate(parts)
        k = path.terms.shape[2]
        intercepts = [
            path.rounds[size - 1].intercept if size else path.null_intercept for size in sizes
        ]
        scores = [
            (found[:, place * k : (place + 1) * k] + intercept) * self._unit
            for place, intercept in enumerate(intercepts)
        ]
        return scores, found[:, -1] + np.max(np.abs(intercepts))

    def _nothing(self, X: Any) -> np.ndarray:
        """Return the products of a model without kernels, once the rows are checked."""
        self.bank_.combine(X, np.zeros(self.bank_.n_kernels))
        return np.zeros((X.shape[0], self._path.terms.shape[2] + 1))

    def _side_by_side(self, path: KernelPath, sizes: list[int]) -> list[np.ndarray]:
        """Return for each kernel its tables in models of several sizes."""
        n, k = path.terms.shape[1:]
        blocks = [np.zeros((n, k * len(sizes))) for _ in self.selected_kernels_]
        for place, size in enumerate(sizes):
            tables = path.blocks(size) if size else []
            for block, table in zip(blocks, tables, strict=False):  # later kernels come later
                block[:, place * k : (place + 1) * k] = table
        return blocks

    def _products_of_stack(self, X: Any, blocks: list[np.ndarray]) -> np.ndarray:
        stack = self._new_stack(X, len(self.kernel_names_))
        n_columns = blocks[0].shape[1] if blocks else self._path.terms.shape[2]
        found = np.zeros((stack.shape[0], n_columns + 1))
        for kernel, block in zip(self.selected_kernels_, blocks, strict=True):
            K = stack.matrices[kernel][:, self.support_].astype(np.float64)
            scores, sizes = products_and_sizes(K, block)
            found[:, :-1] += scores
            found[:, -1] += sizes
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Predict for new data.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            New data; with ``kernel="precomputed"`` their kernels with the training rows, of shape
            ``(n_kernels, n_samples, n_training)``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, or predicted values.
        """
        (scores,), sizes = self._scored(X, [len(self._fitted_path().rounds)])
        return self._predict_scores(scores, sizes)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict after 1, 2, ... rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            New data, as in :meth:`predict`.

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            What ``truncate(m).predict(X)`` returns, for each ``m`` in turn.
        """
        sizes = list(range(1, 1 + len(self._fitted_path().rounds)))
        found, magnitudes = self._scored(X, sizes) if sizes else ([], np.empty(0))
        for scores in found:
            yield self._predict_scores(scores, magnitudes)

    def rates(self, X: Any, y: Any) -> KernelRates:
        """Return how fast the loss falls along the path, and what the theory says of that.

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
        path = self._fitted_path()
        if not self._fitted_loss.constant_curvature:
            raise ValueError(
                f"rates are known for squared losses, and this model has {self._fitted_loss!r}."
            )
        if not path.rounds:
            raise ValueError("the model has no kernels, and so no rate; lower alpha.")
        target = self._targets_of(y)
        if target.shape[1] != path.terms.shape[2] or (
            not self._precomputed and len(target) != X.shape[0]
        ):
            raise ValueError(
                f"y has {len(target)} rows and {target.shape[1]} outputs; it must have one row for "
                f"each of X and {path.terms.shape[2]} outputs, as in the fit."
            )
        if self._precomputed and KernelStack(X).shape != (len(target), len(target)):
            raise ValueError(
                f"X has kernels of shape {KernelStack(X).shape} for {len(target)} targets; rates "
                "need those between all pairs of the rows."
            )
        sizes = list(range(len(path.rounds) + 1))
        found = [scores - target for scores in self._scores_of(X, sizes)]
        losses = np.asarray([0.5 * np.sum(left * left) / len(target) for left in found])
        if self._precomputed:
            matrices = [KernelStack(X).matrices[kernel] for kernel in self.selected_kernels_]
        else:
            here = self.bank_.rebased(self._new_rows(X))
            matrices = [here.gram(place) for place in range(here.n_kernels)]
        wide = [np.asarray(matrix, dtype=np.float64) for matrix in matrices]
        return rates_of([exact_factor(matrix) for matrix in wide], -found[0], losses)

    def _targets_of(self, y: Any) -> np.ndarray:
        """Return the targets of some rows, one column per output."""
        raise NotImplementedError

    @property
    def cost_(self) -> dict[str, int]:
        """What the model takes: kernels, support vectors, numbers stored, multiplications a row."""
        path = self._fitted_path()
        used, size = len(self.selected_kernels_), int(self.dual_coef_.size)
        if self.bank_ is None or not path.rounds:
            return {
                "kernels": used,
                "support": len(self.support_),
                "floats": size,
                "multiplications": size,
            }
        cost: dict[str, int] = self.bank_.cost(np.ones(used), len(self.support_))
        return cost | {
            "floats": cost["floats"] + size,
            "multiplications": cost["multiplications"] + size,
        }


def _named(bank: Any, names: Any) -> list[str]:
    """Return how the kernels of single columns are called, with the names of the columns."""
    places = [
        int(bank.columns[group][0]) if bank.columns[group] is not None else 0
        for group in bank.group_of
    ]
    words = [name.split(": ", 1)[1] for name in bank.names]
    return [f"{names[place]}: {word}" for place, word in zip(places, words, strict=True)]
