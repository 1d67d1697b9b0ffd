"""The base of online estimators: learning from rows, what was learned, and single rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from mixnorm._array import ArrayLike, MatrixLike, is_sparse
from mixnorm._checks import check_array
from mixnorm._linear import linear_scores
from mixnorm.data import find_table
from mixnorm.engines import mirror
from mixnorm.estimators._common.blocks.tables import require_y
from mixnorm.estimators._common.fitted import FittedMixin
from mixnorm.estimators._common.inputs import (
    apply_class_weights,
    check_number_targets,
    random_generator,
    row_weights,
    weight_numbers,
)
from mixnorm.estimators._common.validation import validate_data
from mixnorm.estimators.online.blocks import learn_table, sum_duplicates
from mixnorm.estimators.online.curve import Curve
from mixnorm.estimators.online.names import Names, Row, are_mappings, as_rows
from mixnorm.estimators.online.state import OnlineRows, OnlineState, OnlineTargets
from mixnorm.models import Inputs, LinearModel, check_scores
from mixnorm.norms import as_norm


class OnlineEstimator(FittedMixin, BaseEstimator):
    """An estimator that learns from rows as they come; subclasses define the targets."""

    #: The state: all that predictions and further learning need. None before the first row.
    _resume: OnlineState | None = None
    #: The dtype of targets; None if any labels will do.
    _target_dtype: ClassVar[type | None] = np.float64
    #: The weights and intercepts of a copy that only predicts.
    _fixed: tuple[np.ndarray, np.ndarray] | None = None
    #: A parameter of the classifiers.
    class_weight: Any = None

    # --- what subclasses define

    def _plan(self, losses: list[Any], origin: str) -> mirror.Plan:
        """Return the plan of the learner: that of a perceptron, without step sizes."""
        return mirror.Plan(
            # Copies: the learner lives on between calls, and the user may change a parameter's own
            # parameters.
            copy.deepcopy(as_norm(self.norm)),
            copy.deepcopy(losses),
            rule="none",
            scaled=bool(self.scale),
            origin=origin,
            intercept=self._has_intercept(),
            averaged=bool(self.average),
        )

    def _losses(self, targets: OnlineTargets) -> list[Any]:
        """Return one joint loss, or a loss for each output; an empty list changes nothing."""
        raise NotImplementedError

    def _check_targets(self, y: ArrayLike | None) -> np.ndarray:
        """Return targets as numbers, checked on their own; classifiers take labels."""
        y = require_y(self, y)
        check_number_targets(y)
        found: np.ndarray = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
        )
        return found

    def _encode(self, y: np.ndarray, X: mirror.Rows, role: ArrayLike | None) -> OnlineTargets:
        """Return the targets of rows as the learner takes them.

        ``role`` is what else the user gave: all classes, or the task of each row.
        """
        raise NotImplementedError

    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept)

    def _is_centred(self) -> bool:
        """Tell whether features are measured from running means, if rows allow it."""
        return bool(self.scale) and self._has_intercept()

    # --- learning

    def _fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        role: ArrayLike | None,
    ) -> Self:
        """Forget what was learned, and learn from rows, shuffled if ``shuffle`` is set."""
        table = find_table(X, y, sample_weight)
        if table is not None:
            learn_table(self, table, role, whole=True)
            return self
        if sample_weight is not None and not np.any(weight_numbers(sample_weight)):
            raise ValueError("sample_weight is zero for every row; give some row a positive one.")
        # Only now: a call whose weights are of no use leaves the old model.
        self._resume = None
        return self._partial_fit(X, y, sample_weight, role, whole=True)

    def _partial_fit(
        self,
        given: Any,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        role: ArrayLike | None,
        *,
        whole: bool = False,
    ) -> Self:
        table = find_table(given, y, sample_weight)
        if table is not None:
            learn_table(self, table, role)
            return self
        self._begin()
        # Everything is checked and encoded before the learner changes, so that an error in a block
        # of rows leaves the model as it was.
        checked = self._check_targets(y)
        rows = self._check_rows(given)
        n_samples, order = rows.X.shape[0], None
        weight = row_weights(sample_weight, n_samples)
        if len(checked) != n_samples:
            raise ValueError(
                f"X has {n_samples} rows and y has {len(checked)}; give one target per row."
            )
        # "balanced" needs all labels, which a stream has not seen.
        weight = apply_class_weights(self.class_weight, checked, weight, stream=not whole)
        targets = self._encode(checked, rows.X, role)
        if whole and self.shuffle:
            order = np.asarray(random_generator(self.random_state).permutation(n_samples))
        # The first row to be learned from, which is not the first one given if rows are shuffled.
        first = {} if rows.names is None else given[0 if order is None else order[0]]
        self._make_room(rows, targets, first)
        self._learn(rows.X, targets, weight, order)
        return self

    def _begin(self) -> None:
        """Check the parameters of a new learner, and forget the columns of an earlier fit."""
        if self._resume is None:
            self._check_parameters()
            for name in ("n_features_in_", "feature_names_in_"):
                if getattr(self, name, None) is not None:
                    delattr(self, name)

    def _check_rows(self, given: Any) -> OnlineRows:
        state = self._resume
        if are_mappings(given):
            names = Names(hashed=self.hash_features) if state is None else self._names()
            if self.hash_features not in (None, names.hashed):
                raise ValueError(
                    f"hash_features={self.hash_features!r} was set after learning began with "
                    f"{self.n_features_in_} columns; reset it, or start a new model."
                )
            # A learner with marked columns takes an unknown value as the mean; NaN in the matrix
            # tells it which.
            gaps = self._keeps_gaps() if state is None else state.stored.plan.origin == "marked"
            X, fresh = names.rows(given, gaps=gaps)
            return OnlineRows(X, names, fresh)
        self._check_no_names()
        if self.hash_features is not None:
            raise TypeError(
                f"hash_features={self.hash_features!r} works only with rows that are dicts; give "
                "such rows, or leave it out."
            )
        # The checks of scikit-learn take longer than learning from a few rows. The engine refuses
        # rows that are not finite.
        if state is not None and self._is_plain(given):
            return OnlineRows(given)
        X = validate_data(
            self,
            given,
            reset=state is None,
            accept_sparse="csr",
            dtype="numeric",  # the engine converts one block at a time
            ensure_all_finite=False,  # the engine checks each row
        )
        return OnlineRows(sum_duplicates(X))

    def _keeps_gaps(self) -> bool:
        """Tell whether an unknown value in a dict counts as its mean, for a new learner."""
        return self._is_centred() and self.hash_features is None

    def _is_plain(self, X: MatrixLike) -> bool:
        """Tell whether rows are an array that needs no further check."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype.kind in "fiub"
            and X.shape[1] == self.n_features_in_
            and len(X) > 0
            and getattr(self, "feature_names_in_", None) is None
        )

    def _make_room(
        self, rows: OnlineRows, targets: OnlineTargets, first: Mapping[Any, Any]
    ) -> None:
        """Make the learner, or enlarge it for new features and outputs.

        ``first`` is the first row, if rows are dicts: its numbers are measured from their means.
        """
        (X, names, fresh), state = rows, self._resume
        n_features, n_outputs = X.shape[-1], targets.n_outputs
        if state is None:
            learner = self._new_learner(rows, targets)
        else:
            learner, n_features = state.learner, max(n_features, state.stored.n_features)
            if n_features > learner.n_features or n_outputs > learner.n_outputs:
                learner = learner.enlarge(n_features, n_outputs, self._losses(targets))
        # Rows with an input for each task need the learner by blocks, which takes over what was
        # learned.
        if X.ndim == 3 and isinstance(learner, mirror.RowLearner):
            learner = mirror.by_blocks(learner)
        if names is not None:
            names.places.update(fresh)
            if state is None and isinstance(learner, mirror.RowLearner) and self._keeps_gaps():
                learner.mark(names.numbers(first))
            self.n_features_in_ = n_features if names.places or names.hashed else 0
        # A frozen state is replaced only if something in it is new; the learner changes in place.
        if state is None or learner is not state.learner or targets.low is not state.low:
            self._resume = OnlineState(
                mirror.LearnerState.of(learner),
                Curve() if state is None else state.curve,
                Inputs.of(self),
                names,
                targets.labels,
                targets.low,
                targets.single,
            )

    def _new_learner(
        self, rows: OnlineRows, targets: OnlineTargets
    ) -> mirror.RowLearner | mirror.BlockLearner:
        """Return a new learner; unknown values of dicts become zero in ``X`` if it needs that."""
        X, origin = rows.X, "zero"
        if rows.names is not None and self._keeps_gaps():
            origin = "marked"
        elif self._is_centred() and not is_sparse(X):
            origin = "means"
        plan, sizes = self._plan(self._losses(targets), origin), (X.shape[-1], targets.n_outputs)
        learner = mirror.build(plan, *sizes)
        # Only a learner by rows can keep a column at its mean.
        if (
            origin == "marked"
            and isinstance(learner, mirror.BlockLearner)
            and not isinstance(X, np.ndarray)
        ):
            # Learners by blocks have no marked columns: an unknown value is zero there.
            learner = mirror.build(replace(plan, origin="zero"), *sizes)
            X.data[np.isnan(X.data)] = 0.0
        return learner

    def _learn(
        self, X: mirror.Rows, targets: OnlineTargets, weight: np.ndarray, order: np.ndarray | None
    ) -> None:
        learner, curve = self._learner, self._state().curve
        start, mistakes, loss = learner.rounds, learner.mistakes, learner.loss
        # The rows before a bad one count: their losses go into the curve, and the error is raised
        # again.
        with np.errstate(over="ignore", invalid="ignore"):  # `check_numbers` looks at these
            try:
                losses, wrong = learner.learn(X, targets.places, targets.values, weight, order)
            except (mirror.NotFiniteError, mirror.InterruptedLearning) as error:
                curve.extend(start, error.wrong, error.losses, mistakes, loss)
                if learner.rounds == 0:  # not even the number of columns is known
                    self._resume = None
                raise
            curve.extend(start, wrong, losses, mistakes, loss)
        learner.check_numbers()

    # --- what was learned

    def __sklearn_is_fitted__(self) -> bool:
        return self._resume is not None

    def _state(self) -> OnlineState:
        """Return the state; raise NotFittedError before the first row."""
        if self._resume is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: it has learned from no "
                "row. Call 'fit', 'partial_fit' or 'learn_one' first."
            )
        return self._resume

    @property
    def _learner(self) -> mirror.RowLearner | mirror.BlockLearner:
        return self._state().learner

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and intercepts that predictions use."""
        if self._fixed is not None:
            return self._fixed
        learner = self._learner
        return learner.weights(learner.plan.averaged)

    def _slim(self) -> Self:
        copied, state = copy.copy(self), self._state()
        weights, intercept = self._weights()
        # Copies of what predictions need: the learner goes on, and its sums stay at home.
        copied._fixed = np.array(weights), np.array(intercept)
        stored = replace(state.stored, arrays={})
        copied._resume = replace(state, stored=stored, curve=Curve())
        return copied

    @property
    def model_(self) -> LinearModel:
        """The present model: its weights, the columns, and what its scores mean."""
        state = self._state()
        return LinearModel.of(*self._weights(), state.inputs, state.outputs)

    @property
    def _model_outputs(self) -> Any:
        return self._state().outputs

    @property
    def coef_(self) -> np.ndarray:
        """Weights, ``(n_outputs, n_features)``; of a single target ``(n_features,)``."""
        found = self._weights()[0]
        # Inside, a single target is a table of one column like any other.
        return np.asarray(found[0] if self._state().single else found)

    @property
    def intercept_(self) -> Any:
        """Intercepts of shape ``(n_outputs,)``; a number for one target."""
        found = np.asarray(self._weights()[1])
        return float(found[0]) if self._state().single else found

    @property
    def vocabulary_(self) -> dict[Any, int]:
        """The column of each name, if rows are dicts."""
        names = self._state().names
        if names is None:
            raise AttributeError("The rows were arrays, whose columns have no names.")
        return names.places

    @property
    def n_iter_(self) -> int:
        """Passes over the rows: one. ``n_rounds_`` counts the rows, ``n_updates_`` the steps."""
        self._state()
        return 1

    @property
    def mistakes_(self) -> int:
        """Rows whose class was predicted wrongly before they were learned from."""
        return self._learner.mistakes

    @property
    def loss_(self) -> float:
        """The weighted sum of the losses of all rows, each before it was learned from."""
        return self._learner.loss

    @property
    def n_rounds_(self) -> int:
        """Rows seen."""
        return self._learner.rounds

    @property
    def n_updates_(self) -> int:
        """Rows that changed the weights."""
        return self._learner.updates

    @property
    def curve_(self) -> dict[str, np.ndarray]:
        """Cumulative ``"mistakes"`` and ``"loss"`` after ``"rounds"``: a dict of arrays."""
        curve = self._state().curve
        return {
            "rounds": np.asarray(curve.rounds, dtype=np.int64),
            "mistakes": np.asarray(curve.mistakes, dtype=np.int64),
            "loss": np.asarray(curve.losses, dtype=np.float64),
        }

    def regret(self, W: ArrayLike) -> float:
        """Return an upper bound on how much more was lost on the rows seen than with weights ``W``.

        This is the middle of :eq:`regret`, the losses being replaced by their tangents.

        Parameters
        ----------
        W : array of the shape of ``coef_``
            The weights to compare with; they have no intercept.
        """
        return self._learner.regret(self._check_comparator(W))

    def regret_bound(self, W: ArrayLike) -> float:
        """Return the bound on :meth:`regret` with the steps taken (the right of :eq:`regret`)."""
        return self._learner.regret_bound(self._check_comparator(W))

    def _check_comparator(self, W: ArrayLike) -> np.ndarray:
        given = np.atleast_2d(np.asarray(W, dtype=np.float64))
        shape = (self._learner.n_outputs, self._learner.n_features)
        if given.shape != shape:
            raise ValueError(
                f"W has shape {given.shape}; give weights of the shape of coef_, {shape}."
            )
        return given

    # --- predictions

    def _scores(self, X: MatrixLike) -> np.ndarray:
        """Return the scores of rows, of shape ``(n_samples, n_outputs)``."""
        self._state()
        if are_mappings(X):
            return self._score_mappings(X)
        self._check_no_names()
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        with np.errstate(over="ignore", invalid="ignore"):
            weights, intercept = self._weights()
            found: np.ndarray = check_scores(linear_scores(X, weights.T, intercept))
        return found

    def _names(self) -> Names:
        """Return the columns of names; raise TypeError if the earlier rows were arrays."""
        names = self._state().names
        if names is None:
            raise TypeError(
                "This model learned from arrays, whose columns have no names; continue with "
                "arrays, or start a new model for dicts."
            )
        return names

    def _check_no_names(self) -> None:
        """Raise TypeError if the earlier rows were dicts."""
        if self._resume is not None and self._resume.names is not None:
            raise TypeError(
                "This model learned from rows of names and values (dicts); go on with such rows, "
                "or start a new model for arrays."
            )

    def _score_mappings(self, rows: Sequence[Mapping[Any, Any]]) -> np.ndarray:
        """Return the scores of dicts; the value of a marked feature that is absent is unknown."""
        learner = self._learner
        gaps = learner.plan.origin == "marked"
        X = self._names().rows(rows, learn=False, gaps=gaps)[0]
        if np.any(np.isinf(X.data)):
            raise ValueError("Input X contains infinity; give None for an unknown value.")
        weights, intercept = self._weights()
        weights = weights[:, : X.shape[1]]
        numbers = X.copy()
        numbers.data = np.nan_to_num(numbers.data)
        products = np.asarray(numbers @ weights.T + intercept)
        if not gaps or not isinstance(learner, mirror.RowLearner):
            return products
        means = learner.means_of_marked()[: X.shape[1]]
        # A name that is absent from a row is unknown, and so worth its mean: all means count once,
        # and those of the names that are there are taken back. A dense table of the rows is never
        # made.
        known = sparse.csr_matrix((~np.isnan(X.data), X.indices, X.indptr), X.shape, dtype=float)
        return np.asarray(products + weights @ means - known @ (weights * means).T)

    # --- one row at a time

    def _workspace(self, x: Row) -> mirror.RowWorkspace | None:
        """Return a workspace with the row in it; None if the row needs all checks."""
        state = self._resume
        workspace = None if state is None else state.stored.learner.workspace
        if workspace is None or type(x) is not np.ndarray or x.shape != workspace.row.shape:
            return None
        workspace.row[:] = x
        return workspace

    def _place_target(self, target: np.ndarray, y: Any, *task: Any) -> int | None:
        """Return the class or task of a row after writing its target; None if it needs checks."""
        raise NotImplementedError

    def _learn_one(self, x: Row, y: Any, *task: Any) -> None:
        """Learn from one row: at once if it is like earlier rows, else with all checks."""
        workspace = self._workspace(x)
        place = None if workspace is None else self._place_target(workspace.target, y, *task)
        # The slow way: all checks, and perhaps new columns or outputs. Afterwards a workspace is
        # made, if the row was an array, so that the next row like it takes the fast way.
        if workspace is None or place is None:
            target = np.asarray([y], dtype=self._target_dtype)
            self._partial_fit(as_rows(x), target, None, np.asarray(task) if task else None)
            learner, state = self._learner, self._state()
            if workspace is None and isinstance(learner, mirror.RowLearner) and state.names is None:
                by_task = int(not learner.plan.joint)
                n_targets = learner.n_outputs if state.labels is None else by_task
                learner.workspace = mirror.RowWorkspace(learner, n_targets)
            return
        state, done = self._state(), workspace.learn(place)
        learner = state.stored.learner
        # -1 says that the row is not finite, -2 that numbers have overflowed.
        if done == -1:
            raise mirror.NotFiniteError(0, np.empty(0), np.empty(0))
        if done < 0:
            learner.check_numbers()
        if done % state.curve.stride == 0:
            state.curve.note(done, learner.mistakes, learner.loss)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
