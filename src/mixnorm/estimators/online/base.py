"""What the online estimators share: rows as they come, the account, and what is stored."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mixnorm._linear import linear_scores
from mixnorm.engines import mirror
from mixnorm.engines.mirror import layout, learn_row
from mixnorm.estimators._common.inputs import (
    random_generator,
    weight_numbers,
)
from mixnorm.estimators._common.parameters import CheckedParameters, Number, OneOf, Whole, maybe
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.online.curve import Curve, read_curve
from mixnorm.estimators.online.names import NamedRows, are_mappings
from mixnorm.models import check_scores
from mixnorm.norms import as_norm

_SMALLEST = 1e-140  # norm of rows, above which squares keep their digits

LearningRate = Annotated[str, OneOf(("auto", "fixed", "anytime", "adaptive", "feature"))]
Size = Annotated[float | None, maybe(Number(above=0))]
HashedColumns = Annotated[int | None, maybe(Whole(least=1))]


class OnlineEstimator(CheckedParameters, NamedRows):
    """Rows in, account out; subclasses say what targets are."""

    def _check_together(self) -> None:
        norm, rule = as_norm(self.norm), getattr(self, "learning_rate", "auto")
        if rule == "feature" and not is_euclidean(norm):  # also where few columns make it so
            raise ValueError(
                f"learning_rate='feature' goes with the norm 'l2,2' only, got {norm!r}; choose "
                "'adaptive' for this norm."
            )

    # --- what subclasses say

    def _plan(self, n_outputs: int) -> mirror.Plan:
        """Return what the learner does."""
        raise NotImplementedError

    # --- rows

    def _begin(self) -> None:
        """Forget what was learned."""
        for name in ("_learner", "_lean", "vocabulary_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._curve, self._origin = Curve(), "zero"

    def _rows(self, given: Any, *, reset: bool) -> Any:
        """Return rows as an array or a CSR matrix; rows of names get columns of their own."""
        if are_mappings(given):
            if reset and self._is_centred() and self.hash_features is None:
                self._origin = "marked"
            return self._named_rows(given, learn=True)
        self._check_no_names()
        if not reset and self._is_plain(given):
            return given
        X: Any = validate_data(
            self,
            given,
            reset=reset,
            accept_sparse="csr",
            dtype="numeric",  # the engine converts a block at a time
            ensure_all_finite=False,  # and looks at every row anyway
        )
        if reset and self._is_centred() and not sparse.issparse(X):
            self._origin = "means"
        if hasattr(X, "sum_duplicates") and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def _is_centred(self) -> bool:
        """Whether features are measured from running means, where rows allow it."""
        return bool(self.scale and self.fit_intercept)

    def _is_plain(self, X: Any) -> bool:
        """Whether rows are an array such as the first ones were turned into."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype.kind in "fiub"
            and X.shape[1] == self.n_features_in_
            and len(X) > 0
            and "feature_names_in_" not in vars(self)
        )

    # --- learning

    def _weights_of(self, sample_weight: Any, n_samples: int) -> np.ndarray:
        if sample_weight is None:
            return np.ones(n_samples)
        if isinstance(sample_weight, numbers.Real):
            sample_weight = np.full(n_samples, float(sample_weight))
        weight = weight_numbers(sample_weight)
        if weight.shape != (n_samples,):
            raise ValueError(
                f"sample_weight.shape == {weight.shape}, expected {(n_samples,)}: "
                "give one weight per row of X."
            )
        if not np.all((weight >= 0.0) & (weight < math.inf)):
            raise ValueError(
                "sample_weight must be finite numbers of zero or more; mend or drop the others."
            )
        return weight

    def _check_some_weight(self, sample_weight: Any) -> None:
        """Raise a clear error for weights that leave nothing to learn from."""
        if sample_weight is not None and not np.any(weight_numbers(sample_weight)):
            raise ValueError("sample_weight is zero for every row; give some row a positive one.")

    def _order(self, count: int) -> np.ndarray | None:
        """Return the order in which ``fit`` goes through rows; None for that of the rows."""
        if not self.shuffle:
            return None
        return np.asarray(random_generator(self.random_state).permutation(count))

    def _ready(self, n_features: int, n_outputs: int) -> Any:
        """Return the learner, made or grown to these sizes."""
        if "vocabulary_" in vars(self):
            self.vocabulary_.update(self.__dict__.pop("_new_names", {}))
            self.n_features_in_ = n_features if self.vocabulary_ or self.hash_features else 0
        learner = self.__dict__.get("_learner")
        if learner is None:
            learner = self._learner = mirror.build(self._plan(n_outputs), n_features, n_outputs)
        elif n_features > learner.n_features or n_outputs > learner.n_outputs:
            learner.plan = replace(learner.plan, losses=self._plan(n_outputs).losses)
            learner.grow(max(n_features, learner.n_features), n_outputs)
            self.__dict__.pop("_lean", None)
        return learner

    def _learn(
        self,
        X: Any,
        labels: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        order: np.ndarray | None = None,
    ) -> None:
        learner = self._learner
        start, mistakes, loss = learner.rounds, learner.mistakes, learner.loss
        with np.errstate(over="ignore", invalid="ignore"):  # which is looked at below
            try:
                losses, wrong = learner.learn(X, labels, targets, weight, order)
            except mirror.NotFiniteError as error:
                self._curve.extend(start, error.wrong, error.losses, mistakes, loss)
                if learner.rounds == 0:
                    self._begin()  # nothing was learned, not even how many columns there are
                raise
            self._curve.extend(start, wrong, losses, mistakes, loss)
        self._check_numbers()

    def _check_numbers(self) -> None:
        if not np.all(np.isfinite(self._learner.numbers)):
            raise ValueError(
                "The weights have overflowed: inputs, targets or sample weights are too large (or "
                "too small) for these steps. Set scale=True, lower eta0, or scale the data "
                "(MaxAbsScaler), and start anew."
            )
        if 0.0 < self._learner.numbers[layout.LARGEST_SAMPLE] < _SMALLEST:
            raise ValueError(
                "The rows are so small that their squares are lost. Set scale=True, or scale the "
                "data (MaxAbsScaler), and start anew."
            )

    # --- what was learned

    def _check_learned(self) -> Any:
        check_is_fitted(self, "_learner")
        return self._learner

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in vars(self)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of shape ``(n_outputs, n_features)``; their average with ``average=True``."""
        return np.asarray(self._check_learned().weights(bool(self.average))[0])

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts of shape ``(n_outputs,)``."""
        return np.asarray(self._check_learned().weights(bool(self.average))[1])

    @property
    def mistakes_(self) -> int:
        """Rows whose class was predicted wrong before they were learned from."""
        return int(self._check_learned().mistakes)

    @property
    def loss_(self) -> float:
        """The weighted sum of the losses of all rows, each before it was learned from."""
        return float(self._check_learned().loss)

    @property
    def n_rounds_(self) -> int:
        """Rows seen."""
        return int(self._check_learned().rounds)

    @property
    def n_updates_(self) -> int:
        """Rows that changed the weights."""
        return int(self._check_learned().updates)

    @property
    def curve_(self) -> dict[str, np.ndarray]:
        """Cumulative ``"mistakes"`` and ``"loss"`` after so many ``"rounds"``: arrays of a dict."""
        self._check_learned()
        curve = self._curve
        return {
            "rounds": np.asarray(curve.rounds, dtype=np.int64),
            "mistakes": np.asarray(curve.mistakes, dtype=np.int64),
            "loss": np.asarray(curve.losses, dtype=np.float64),
        }

    def regret(self, W: Any) -> float:
        """Return how much more was lost on the rows seen than by weights ``W``, at most.

        Parameters
        ----------
        W : array of the shape of ``coef_``
            The weights to compare with; without intercept.
        """
        return float(self._check_learned().regret(self._compared(W)))

    def regret_bound(self, W: Any) -> float:
        """Return what the theory promises of :meth:`regret` for steps such as were taken."""
        return float(self._check_learned().regret_bound(self._compared(W)))

    def _compared(self, W: Any) -> np.ndarray:
        given: np.ndarray = np.asarray(W, dtype=np.float64)
        learner = self._check_learned()
        shape = (learner.n_outputs, learner.n_features)
        if given.shape != shape:
            raise ValueError(
                f"W has shape {given.shape}; give weights of the shape of coef_, {shape}."
            )
        return given

    def _scores(self, X: Any) -> np.ndarray:
        """Return the scores of rows, ``(n_samples, n_outputs)``."""
        learner = self._check_learned()
        if are_mappings(X):
            return self._named_scores(self._named_rows(X, learn=False))
        self._check_no_names()
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        with np.errstate(over="ignore", invalid="ignore"):
            weights, intercept = learner.weights(bool(self.average))
            found: np.ndarray = check_scores(
                linear_scores(X, weights[:, : X.shape[1]].T, intercept)
            )
        return found

    # --- one row at a time

    def _lean_row(self, x: Any) -> Any:
        """Return what a round needs, the row in it; None if this row has to go the long way."""
        lean = self.__dict__.get("_lean")
        if lean is None or type(x) is not np.ndarray or x.shape != lean.shape:
            return None
        lean.row[:] = x
        return lean

    def _prepare_lean(self) -> None:
        learner = self._learner
        if isinstance(learner, mirror.RowLearner) and "vocabulary_" not in vars(self):
            self._lean = Lean(learner, int(self._targets_per_row()))

    def _targets_per_row(self) -> int:
        return 0

    def _lean_step(self, lean: Any, label: int) -> None:
        at = learn_row(lean.row, lean.mode, label, *lean.state)
        if at < 0:
            if at == -1:
                raise mirror.NotFiniteError(0)
            self._check_numbers()
        numbers = self._learner.numbers
        self._curve.note(at, int(numbers[layout.MISTAKES]), float(numbers[layout.LOSS]))

    # --- model files

    # What else than the learner makes a model; subclasses add to it.
    _kept: tuple[str, ...] = ("n_features_in_", "feature_names_in_", "vocabulary_", "_origin")

    def _fitted_state(self) -> dict[str, Any]:
        """Return what a model file keeps."""
        learner, curve = self._learner, self._curve
        rows = isinstance(learner, mirror.RowLearner)
        state = {name: vars(self)[name] for name in self._kept if name in vars(self)}
        state["_kind"] = "rows" if rows else "blocks"
        state["_sizes"] = [learner.n_features, learner.n_outputs]
        state["_arrays"] = {name: getattr(learner, name) for name in learner.stored}
        state["_curve"] = {"stride": curve.stride, **self.curve_}
        return state

    def _restore(self, state: dict[str, Any], max_bytes: int) -> None:
        """Take what ``_fitted_state`` returned, which may come from a stranger's file."""
        self._check_parameters()
        arrays, sizes = state.pop("_arrays"), state.pop("_sizes")
        kind, curve = state.pop("_kind"), state.pop("_curve")
        whole = isinstance(sizes, list) and [type(size) for size in sizes] == [int, int]
        if not whole or min(sizes) < 0 or sizes[1] < 1:
            raise ValueError("the sizes must be two whole numbers")
        if 8 * (sizes[0] + 1) * sizes[1] > max_bytes:
            raise ValueError("the sizes must be two whole numbers that fit the file")
        parts = arrays.values() if type(arrays) is dict else ()
        held = max((part.size for part in parts if isinstance(part, np.ndarray)), default=0)
        if held < math.prod(sizes):
            raise ValueError("the sizes must be those of the weights")
        self.__dict__.update({name: value for name, value in state.items() if name in self._kept})
        if self.__dict__.get("_origin") not in mirror.ORIGINS:
            raise ValueError(f"_origin must be one of {sorted(mirror.ORIGINS)}")
        self._check_columns(sizes[0])
        self._rebuild(sizes[1])
        plan = self._plan(sizes[1])
        learner: Any = (mirror.RowLearner if kind == "rows" else mirror.BlockLearner)(plan, *sizes)
        if not isinstance(arrays, dict) or sorted(arrays) != sorted(learner.stored):
            raise ValueError("the arrays of the learner are not all there")
        for name, array in arrays.items():
            wanted = getattr(learner, name)
            same = isinstance(array, np.ndarray) and array.dtype == wanted.dtype
            if not same or array.shape != wanted.shape or not np.all(np.isfinite(array)):
                raise ValueError(f"the array {name} of the learner does not fit the rest")
            setattr(learner, name, np.ascontiguousarray(array))
        if kind != "rows" and not 0 <= int(learner.waiting[0]) < plan.block:
            raise ValueError("more samples wait than make a block")
        self._learner, self._curve = learner, read_curve(curve)

    def _check_columns(self, count: int) -> None:
        """Check that the columns of a model file fit its weights."""
        if type(self.n_features_in_) is not int or max(self.n_features_in_, 1) != max(count, 1):
            raise ValueError(f"n_features_in_ must be {count}, as there are weights for so many")
        names = vars(self).get("feature_names_in_")
        if names is not None and (not isinstance(names, np.ndarray) or names.shape != (count,)):
            raise ValueError(f"feature_names_in_ must be an array of {count} names")
        places = vars(self).get("vocabulary_", {})
        kinds = set(map(type, places.values())) if type(places) is dict else {None}
        if kinds - {int} or list(places.values()) != list(range(len(places))):
            raise ValueError("vocabulary_ must have names with places from 0 on")
        hashed = getattr(self, "hash_features", None)
        if len(places) not in (0, self.n_features_in_) or hashed not in (None, count):
            raise ValueError(f"vocabulary_ must have a name for each of {count} columns")

    def _rebuild(self, n_outputs: int) -> None:
        """Set what follows from the attributes of a model file, and check them."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("_lean", "_new_names"):
            state.pop(name, None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class Lean:
    """Arrays for one round, made once."""

    def __init__(self, learner: Any, n_targets: int) -> None:
        self.shape = (learner.n_features,)
        self.row = np.zeros(learner.n_features)
        self.target = np.zeros((1, n_targets))
        self.scores = np.zeros(learner.n_outputs)
        self.mode = int(learner.codes[layout.MODE])
        self.state = (self.target, *learner.state())
        self.score_arguments = (
            learner.codes, learner.constants, learner.sums, learner.image, learner.column,
            learner.outputs, learner.tree, learner.numbers, self.scores,
        )  # fmt: skip


def chosen_steps(estimator: Any, euclidean: bool, first: float = 1.0) -> tuple[str, float]:
    """Return the rule and the rate for what the user left open.

    ``first`` is the rate of steps by feature: for numbers one, as they are in units of the targets.
    """
    rule = estimator.learning_rate
    if rule == "auto":
        rule = "feature" if euclidean and estimator.radius is None else "adaptive"
    if estimator.eta0 is not None:
        return rule, float(estimator.eta0)
    if rule == "adaptive" and estimator.radius is not None:
        return rule, float(estimator.radius)
    return rule, {"feature": first, "adaptive": 10.0}.get(rule, 1.0)


def descent_plan(
    estimator: Any, losses: Sequence[Any], *, by_feature: bool, first: float = 1.0
) -> mirror.Plan:
    """Return the plan of an estimator by mirror descent.

    ``by_feature`` allows steps of each feature's own where the user left the rule open, and
    ``first`` is their rate.
    """
    norm = as_norm(estimator.norm)
    euclidean = by_feature and is_euclidean(norm) and mirror.are_compiled(losses)
    rule, rate = chosen_steps(estimator, euclidean, first)
    return mirror.Plan(
        norm,
        losses,
        rule=rule,
        rate=rate,
        radius=math.inf if estimator.radius is None else float(estimator.radius),
        scaled=bool(estimator.scale),
        origin=estimator._origin,
        intercept=bool(estimator.fit_intercept),
        averaged=bool(estimator.average),
        quiet=float(getattr(estimator, "conservative", 0.0)),
        block=int(estimator.block_size),
    )


def joined_labels(known: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return labels with others after them; raise a clear error for texts beside numbers."""
    texts = [all(isinstance(label, str) for label in each.tolist()) for each in (known, more)]
    if len(known) and texts[0] != texts[1]:
        raise TypeError(
            f"{more.tolist()[0]!r} is of another type than what was seen before, "
            f"{known.tolist()[0]!r}; give labels of one type, for example str(label) for each."
        )
    return np.concatenate([known, more]) if len(known) else more


def is_euclidean(norm: Any) -> bool:
    """Whether a norm is that of all entries."""
    return getattr(norm, "inner", None) == 2 and getattr(norm, "outer", None) == 2


def as_rows(x: Any) -> Any:
    """Return one row, an array, a sparse row or a mapping, as rows."""
    if isinstance(x, Mapping):
        return [x]
    return x if sparse.issparse(x) else np.asarray(x).reshape(1, -1)
