"""Inputs for estimators: fit, predict, and compare different ways to the same result."""

from __future__ import annotations

import inspect
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

import mixnorm
from benchmarks.fuzz.tables import Table, draw_chance, draw_table
from benchmarks.fuzz.values import draw_parameters
from benchmarks.fuzz.verdict import Outcome, judge, require, require_close, require_finite
from mixnorm import estimators

#: Every estimator that can be fitted.
NAMES = tuple(
    name for name in estimators.__all__ if name.endswith(("Classifier", "Regressor", "CV", "SVC"))
) + ("GroupPerceptron", "MultiTaskLearner", "OneVsRestGreedy", "OnlineMultiTaskLearner")

_MULTI_TASK = ("MultiTaskLearner", "MultiTaskLearnerCV", "OnlineMultiTaskLearner")
_MULTI_OUTPUT = (
    "ShareBoostRegressor",
    "MixedNormRegressor",
    "MKLRegressor",
    "MirrorDescentRegressor",
)
# For these estimators a NaN means that the target is missing.
_NAN_TARGETS = (*_MULTI_TASK, "MirrorDescentRegressor")
_ROWS = 40  # most rows to predict


def draw(rng: np.random.Generator, name: str) -> Outcome:
    """Draw parameters and data for an estimator, and try them."""
    kind = getattr(mixnorm, name)
    names = [p for p in inspect.signature(kind).parameters if p != "warm_start"]
    parameters, bad = draw_parameters(rng, name, names)
    labels = is_classifier(kind())
    outputs = 3 if name in _MULTI_TASK[:2] else 0
    if name in _MULTI_OUTPUT and draw_chance(rng, 0.2):
        outputs = 2
    table = draw_table(
        rng,
        labels=labels,
        outputs=outputs,
        sparse_too=bool(get_tags(kind()).input_tags.sparse),
        spoiled=0.0 if bad else 0.1,
    )
    if name in _NAN_TARGETS and "NaN in y" in table.notes:
        table.wrong.remove("y")
    trial = _Trial(rng, kind, parameters, table)
    shown = {key: repr(value)[:80] for key, value in parameters.items()}
    notes = [*table.notes, *(f"{key}={value}" for key, value in shown.items())]
    outcome = judge(name, trial.run, names=names, refused=[bad or "", *table.wrong], notes=notes)
    if bad and outcome.kind == "failed":  # estimators check the data first, and may refuse them
        del parameters[bad]
        alone = judge(name, trial.run, names=names, refused=table.wrong, notes=notes)
        return alone if alone.kind == "refused" else outcome
    return outcome


class _Trial:
    """One estimator with its parameters and its data."""

    def __init__(
        self, rng: np.random.Generator, kind: Any, parameters: dict[str, Any], table: Table
    ) -> None:
        self.rng, self.kind, self.parameters, self.table = rng, kind, parameters, table
        self.extra: dict[str, Any] = {}
        if kind.__name__ == "OnlineMultiTaskLearner" and table.dense is not None:
            self.extra["task"] = rng.integers(3, size=table.dense.shape[0])
        elif kind.__name__ == "OnlineMultiTaskLearner":
            self.extra["task"] = np.zeros(np.shape(table.y)[:1] or 1, int)

    def run(self) -> None:
        """Fit, and check what was fitted."""
        before = _copies(self.table)
        model = self.fit()
        require(before == _copies(self.table), "fit changed its data")
        table = self.table
        if table.dense is None or table.wrong:
            return
        X = self.new_rows(table.dense)
        scores = self.scores(model, X)
        self.check_outputs(model, X, scores)
        self.check_ways(model, X, scores)
        self.check_copies(model, X, scores)
        self.check_fit(model)

    def fit(self) -> Any:
        """Return a fitted model, by ``fit`` or in parts."""
        table, model = self.table, self.kind(**self.parameters)
        extra = dict(self.extra)
        if table.weight is not None:
            extra["sample_weight"] = table.weight
        if hasattr(model, "partial_fit") and not table.wrong and draw_chance(self.rng, 0.3):
            return self.fit_in_parts(model, extra)
        model.fit(table.X, table.y, **extra)
        for name, value in self.parameters.items():
            require(getattr(model, name) is value, f"fit changed the parameter {name}")
        return model

    def fit_in_parts(self, model: Any, extra: dict[str, Any]) -> Any:
        """Return a model that saw the rows in two parts."""
        X, y = self.table.dense, self.table.y
        assert X is not None
        if is_classifier(model):
            extra["classes"] = np.unique(y)
        cut = max(1, len(X) // 2)
        for rows in (slice(0, cut), slice(cut, None)):
            if len(X[rows]):
                part = {
                    key: value if key == "classes" else np.asarray(value)[rows]
                    for key, value in extra.items()
                }
                if "sample_weight" in part and not np.any(part["sample_weight"]):
                    continue
                model.partial_fit(X[rows], y[rows], **part)
        return model

    def new_rows(self, X: np.ndarray) -> np.ndarray:
        """Return some training rows, and rows with each column shuffled on its own."""
        rows = self.rng.permutation(len(X))[: _ROWS // 2]
        mixed = np.column_stack([self.rng.permutation(X[:, j]) for j in range(X.shape[1])])
        return np.vstack([X[rows], mixed[: _ROWS // 2]])

    def scores(self, model: Any, X: Any, first: int = 0) -> np.ndarray:
        """Return the scores or predictions of rows; ``first`` is the index of the first row."""
        call = model.decision_function if is_classifier(model) else model.predict
        extra = {}
        if "task" in self.extra:
            known = np.unique(self.extra["task"])
            extra["task"] = known[(first + np.arange(X.shape[0])) % len(known)]
        return np.asarray(call(X, **extra), dtype=float)

    def check_outputs(self, model: Any, X: np.ndarray, scores: np.ndarray) -> None:
        """Check that scores and probabilities are finite, and that labels are known."""
        require_finite(scores, "scores")
        for name in ("coef_", "intercept_", "dual_gap_", "objective_"):
            value = getattr(model, name, None)
            if value is not None and not sparse.issparse(value):
                require_finite(value, name)
        if not is_classifier(model):
            return
        labels = model.predict(X)
        require(np.isin(labels, model.classes_).all(), "predict gives unknown labels")
        if hasattr(model, "predict_proba"):
            shares = model.predict_proba(X)
            require_finite(shares, "probabilities")
            require(np.allclose(shares.sum(axis=1), 1), "probabilities do not sum to one")
            require(shares.min() >= 0, "probabilities below zero")

    def check_ways(self, model: Any, X: np.ndarray, scores: np.ndarray) -> None:
        """Check that single rows and batches, and sparse and dense rows, give the same scores."""
        terms = _terms(model, X)
        for i in self.rng.permutation(len(X))[:3]:
            filled = scores.copy()
            filled[i] = self.scores(model, X[i : i + 1], i)[0]
            require_close(filled, scores, "a single row and the batch", terms=terms)
        if is_classifier(model):
            labels = model.predict(X)
            ones = np.concatenate([model.predict(X[i : i + 1]) for i in range(min(3, len(X)))])
            require(
                np.array_equal(ones, labels[: len(ones)]), "labels of single rows and the batch"
            )
        if get_tags(model).input_tags.sparse:
            form = sparse.csr_array if draw_chance(self.rng, 0.5) else sparse.csc_array
            found = self.scores(model, form(X))
            require_close(found, scores, "sparse and dense rows", terms=terms)

    def check_copies(self, model: Any, X: np.ndarray, scores: np.ndarray) -> None:
        """Check that copies predict the same bits, and that clones have the same parameters."""
        again = pickle.loads(pickle.dumps(model))
        require(np.array_equal(self.scores(again, X), scores), "a pickled model predicts otherwise")
        fresh = clone(model)
        require(
            repr(fresh.get_params()) == repr(self.kind(**self.parameters).get_params()),
            "clone changes parameters",
        )
        if draw_chance(self.rng, 0.1):
            with tempfile.TemporaryDirectory(prefix="mixnorm-fuzz-") as folder:
                mixnorm.save(model, Path(folder) / "model.mixnorm")
                stored = mixnorm.load(Path(folder) / "model.mixnorm")
            require(
                np.array_equal(self.scores(stored, X), scores), "a stored model predicts otherwise"
            )

    def check_fit(self, model: Any) -> None:
        """Check that a converged least-squares fit with an intercept is no worse than the mean."""
        table, given = self.table, self.parameters
        plain = not set(given) & _COARSE
        if not plain or table.weight is not None or self.extra or is_classifier(model):
            return
        if type(model).__name__ not in ("ShareBoostRegressor", "MixedNormRegressor"):
            return
        y, found = np.asarray(table.y, float), self.scores(model, table.X)
        unit = float(np.max(np.abs(y)))
        if unit > 0 and len(y) > 1:
            rounding = 1e-12 * len(y)
            mean = np.mean(y / unit, axis=0)
            least = float(np.sum((y / unit - mean) ** 2))
            have = float(np.sum((y / unit - found / unit) ** 2))
            require(have <= least * (1 + 1e-6) + rounding, "the fit is worse than the mean")


# Parameters with which a converged fit may be worse than the mean.
_COARSE = {"tol", "max_iter", "options", "radius", "loss", "losses", "fit_intercept"}


def _terms(model: Any, X: np.ndarray) -> float:
    """Return the largest sum of magnitudes behind a score of a kernel model, 0 for others."""
    if hasattr(model, "_scores_and_sizes"):
        return float(np.max(model._scores_and_sizes(X)[1], initial=0.0))
    known = getattr(model, "model_", None)
    if not hasattr(known, "sums"):
        return 0.0
    sizes = [[known.size]] if hasattr(known, "path") else []  # a path of kernels
    return float(np.max(known.sums(model._check_new(X), *sizes)[1], initial=0.0))


def _copies(table: Table) -> list[Any]:
    """Return copies of the data, without the flags that a sparse matrix caches on itself."""
    X = table.X.toarray() if sparse.issparse(table.X) else table.X
    return [pickle.dumps(item) for item in (X, table.y, table.weight)]
