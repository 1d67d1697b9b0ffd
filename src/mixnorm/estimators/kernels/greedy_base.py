"""What the learners that choose a few kernels share: the fit, the path, prediction."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mixnorm.engines import sparse_kernels
from mixnorm.engines.sparse_kernels import ALGORITHMS, STEPS
from mixnorm.estimators._common.messages import warn_caller
from mixnorm.estimators._common.parameters import Number, OneOf
from mixnorm.estimators._common.progress import (
    CallbackSupportMixin,
    Progress,
    Rounds,
    all_or_nothing,
    with_callbacks,
)
from mixnorm.estimators._common.staged import StagedMixin
from mixnorm.estimators.kernels.base import kernel_names, warn_of_no_kernel
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
from mixnorm.models import Inputs, KernelPath, KernelPathModel
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


class GreedyKernelLearner(KernelInputsMixin, StagedMixin, CallbackSupportMixin, BaseEstimator):
    """Base of the classifier and the regressor, which say what their loss and targets are."""

    model_: KernelPathModel
    #: The settings without which a path cannot be continued.
    _resume: tuple[str, float, str]

    # --- what a subclass says

    def _loss(self) -> Any:
        """Return the loss object."""
        raise NotImplementedError

    def _encoded(self, y: Any, weight: np.ndarray) -> tuple[Any, int, np.ndarray, Any]:
        """Return targets, how many scores there are, weights, and the outputs of the model."""
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
            previous = self._previous()
            start = None if previous is None else previous.path
            X = self._validated(X)
            check_targets(self, X, y)
            target, n_outputs, weight, outputs = self._encoded(
                y, weights_of(sample_weight, X.shape[0])
            )
            kept = np.flatnonzero(weight > _LIGHT * np.max(weight))
            weight = weight[kept] / np.sum(weight[kept])
            bank, pool, names = self._kernels_of(X, kept, weight)
            if previous is not None:
                self._check_continues(previous, pool, n_outputs, names, kept)
            wanted = self._wanted(pool.n_usable)
            left = wanted if start is None else max(0, wanted - len(start.rounds))
            whole = Progress.of_fit(self, X, y, sample_weight, left)
            inputs, raw, loss = Inputs.of(self), self._raw(), self._loss()

            def attributes(path: KernelPath) -> dict[str, Any]:
                needed = self._needed(path, bank)
                return {"model_": KernelPathModel(path, kept, needed, names, raw, inputs, outputs)}

            rounds = Rounds(whole, left, attributes)
            path = sparse_kernels.select(
                pool,
                loss,
                loss.encode(target[kept], n_outputs, weight),
                n_kernels=min(int(self.n_kernels), pool.n_usable),
                n_outputs=n_outputs,
                weight=weight,
                algorithm=self.algorithm,
                alpha=self._penalty(outputs.unit),
                step=self.step,
                n_steps=wanted,
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                start=start,
                on_round=rounds.end,
            )
            self.model_ = attributes(path)["model_"]
            self._resume = self._settings()
            self._report(path, wanted)
            whole.end(dict)
            return self

    def _previous(self) -> KernelPathModel | None:
        """Return the model whose path is to be continued, if there is one."""
        return getattr(self, "model_", None) if self.warm_start else None

    def _penalty(self, unit: float) -> float:
        """Return the penalty in the units of the engine: a norm goes with the unit of targets."""
        return float(self.alpha) / (unit if self.algorithm == "l1" else 1.0)

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
    ) -> tuple[Any, KernelPool, tuple[str, ...]]:
        """Return the bank on the rows that count (None if kernels are given), and the pool."""
        if self._precomputed:
            stack = KernelStack(X)
            stack.check()
            self.n_features_in_ = stack.n_samples
            part = stack if len(kept) == stack.n_samples else stack.take(kept)
            return None, KernelPool(part, weight), kernel_names(None, stack.n_kernels)
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
        return bank, pool, kernel_names(bank, bank.n_kernels)

    def _check_continues(
        self,
        previous: KernelPathModel,
        pool: KernelPool,
        n_outputs: int,
        names: tuple[str, ...],
        kept: np.ndarray,
    ) -> None:
        """Raise unless the path at hand can be continued with these kernels and rows."""
        shape, known = previous.path.terms.shape[1:], previous.names
        if shape != (pool.grams.n_samples, n_outputs) or known != names:
            raise ValueError(
                f"warm_start=True continues a path on {len(known)} kernels and "
                f"{shape[0]} samples of {shape[1]} outputs, but there are {len(names)} kernels, or "
                f"others, and {pool.grams.n_samples} samples of {n_outputs}. Set warm_start=False "
                "to start anew."
            )
        if not np.array_equal(previous.support, kept):
            raise ValueError(
                "warm_start=True continues a path, but other rows have weight now. Set "
                "warm_start=False to start anew."
            )
        if getattr(self, "_resume", None) != self._settings():
            raise ValueError(
                "warm_start=True continues a path, but algorithm, alpha or loss has changed since. "
                "Set warm_start=False to start anew."
            )

    def _settings(self) -> tuple[str, float, str]:
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
        if not self._fitted().size:
            raise ValueError("truncate: the model has no kernels, and so no smaller model.")
        parameter = "n_steps" if self.algorithm == "l2" else "n_kernels"
        return self._truncated(n_rounds, parameter, "rounds")

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
        model: KernelPathModel = self._fitted()
        given, n_outputs = model.bank is None, model.path.terms.shape[2]
        loss = model.outputs.loss
        if loss is not None and not loss.constant_curvature:
            raise ValueError(f"rates are known for squared losses, and this model has {loss!r}.")
        if not model.size:
            raise ValueError("the model has no kernels, and so no rate; lower alpha.")
        target = self._targets_of(y)
        if target.shape[1] != n_outputs or (not given and len(target) != X.shape[0]):
            raise ValueError(
                f"y has {len(target)} rows and {target.shape[1]} outputs; it must have one row for "
                f"each of X and {n_outputs} outputs, as in the fit."
            )
        if given and KernelStack(X).shape != (len(target), len(target)):
            raise ValueError(
                f"X has kernels of shape {KernelStack(X).shape} for {len(target)} targets; rates "
                "need those between all pairs of the rows."
            )
        X = self._check_new(X)
        sums, _ = model.sums(X, range(model.size + 1))
        found = [each * model.outputs.unit - target for each in sums]
        losses = np.asarray([0.5 * np.sum(left * left) / len(target) for left in found])
        if model.bank is None:
            matrices = [X.matrices[kernel] for kernel in model.selected]
        else:
            here = model.bank.rebased(X)
            matrices = [here.gram(place) for place in range(here.n_kernels)]
        wide = [np.asarray(matrix, dtype=np.float64) for matrix in matrices]
        return rates_of([exact_factor(matrix) for matrix in wide], -found[0], losses)

    def _targets_of(self, y: Any) -> np.ndarray:
        """Return the targets of some rows, one column per output."""
        raise NotImplementedError

    # --- what is read off the model

    @property
    def selected_kernels_(self) -> np.ndarray:
        """The chosen kernels, by their numbers in the bank."""
        model: KernelPathModel = self._fitted()
        return model.selected

    @property
    def selected_names_(self) -> list[str]:
        """How the chosen kernels are called."""
        model: KernelPathModel = self._fitted()
        return [model.names[kernel] for kernel in model.selected]

    @property
    def path_(self) -> dict[str, np.ndarray]:
        """One row per round."""
        model: KernelPathModel = self._fitted()
        return dict(model.curve)

    @property
    def dual_coef_(self) -> np.ndarray:
        """What the chosen kernels with the support are multiplied by."""
        model: KernelPathModel = self._fitted()
        return model.tables

    @property
    def intercept_(self) -> Any:
        """The predictions, or scores, of the model without kernels."""
        model: KernelPathModel = self._fitted()
        return model.intercept

    @property
    def kernel_names_(self) -> list[str]:
        """How all kernels of the bank are called."""
        model: KernelPathModel = self._fitted()
        return list(model.names)

    @property
    def bank_(self) -> Any:
        """The chosen kernels, with the rows that prediction needs."""
        model: KernelPathModel = self._fitted()
        return model.bank

    @property
    def support_(self) -> np.ndarray:
        """The training rows that have weight."""
        model: KernelPathModel = self._fitted()
        return model.support

    @property
    def null_loss_(self) -> float:
        """The training loss without kernels."""
        model: KernelPathModel = self._fitted()
        return model.null_loss

    @property
    def n_iter_(self) -> int:
        """Iterations of all refits together."""
        model: KernelPathModel = self._fitted()
        return max(1, sum(step.iterations for step in model.path.rounds))

    @property
    def cost_(self) -> dict[str, int]:
        """What the model takes: kernels, support vectors, numbers stored, multiplications a row."""
        model: KernelPathModel = self._fitted()
        return model.cost()


def _named(bank: Any, names: Any) -> list[str]:
    """Return how the kernels of single columns are called, with the names of the columns."""
    places = [
        int(bank.columns[group][0]) if bank.columns[group] is not None else 0
        for group in bank.group_of
    ]
    words = [name.split(": ", 1)[1] for name in bank.names]
    return [f"{names[place]}: {word}" for place, word in zip(places, words, strict=True)]
