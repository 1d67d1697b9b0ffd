"""Online multi-task learning from examples of several tasks, one at a time or together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm._array import ArrayLike, MatrixLike
from mixnorm.engines import mirror
from mixnorm.estimators._common.blocks.parts import map_parts
from mixnorm.estimators._common.parameters import Loss, Norm
from mixnorm.estimators.online.descent import MirrorDescent
from mixnorm.estimators.online.names import Row, as_rows
from mixnorm.estimators.online.state import OnlineRows, OnlineTargets, check_tasks, place_labels
from mixnorm.losses import SCALAR, as_loss
from mixnorm.models import TaskOutputs


@dataclass(eq=False, repr=False)
class OnlineMultiTaskLearner(MirrorDescent):
    r"""Several tasks that share features (or directions), learned from examples as they come.

    Parameters
    ----------
    norm : {"l2,1", "l2,2", "l1,1", "trace"} or Norm, default="l2,1"
        The norm of the weights of all tasks together: ``"l2,1"`` for few shared features,
        ``"trace"`` for few shared directions.
    losses : str, loss, list or mapping, default="squared"
        The loss of all tasks, of each in order, or by task: ``"squared"``, ``"absolute"``,
        ``"huber"``, ``"epsilon_insensitive"`` for numbers; ``"logistic"``, ``"hinge"``,
        ``"squared_hinge"`` for two classes, given as -1 and 1, 0 and 1, or False and True.
    radius : float, optional
        Largest norm that the weights may have.
    learning_rate : {"auto", "adaptive", "anytime", "fixed", "feature"}, default="auto"
        As in :class:`MirrorDescentClassifier`; ``"auto"`` is ``"adaptive"``.
    eta0 : float, optional
        The step size. By default it is ``radius`` or 10 for ``"adaptive"``, and 1 for the other
        rules. For ``"adaptive"`` it is about the size of the weights, in units of the targets: give
        a larger one for large targets.
    fit_intercept : bool, default=True
        Whether the model has intercepts.
    scale : bool, default=True
        Whether features are measured in running units, and those of dense rows from running means.
        What is learned then does not depend on units and origins. The origin stays zero for sparse
        rows, and for all rows with ``fit_intercept=False``. If rows are dicts, the numbers of the
        first row are measured from their means as long as half of the rows have them, except with
        the norm ``"trace"`` or with blocks of features. All tasks share the means; centre each task
        first if their rows lie far apart.
    average : bool, default=False
        Whether predictions use the average of the weights so far. This does not change what is
        learned, and mistakes and losses are those of the weights themselves.
    shuffle : bool, default=True
        Whether ``fit`` goes through the rows in a random order. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None, default=None
        The source of the random order.
    block_size : int, default=1
        Number of rows predicted with the same weights, for norms whose weights are costly to
        compute.
    hash_features : int, optional
        Number of columns into which the names in dicts are hashed. By default every name has a
        column of its own.

    Attributes
    ----------
    tasks_ : ndarray of shape (n_tasks,)
        The tasks: those of the first call, sorted, then later ones in order of arrival.
    classes_ : list
        For each task its two classes, the second of which has positive scores; None for tasks with
        numbers.
    coef_, intercept_ : ndarrays of shapes (n_tasks, n_features) and (n_tasks,)
        The weights, in the units of the rows.
    mistakes_, loss_, n_rounds_, n_updates_ : int, float, int, int
        Examples of two classes predicted wrongly before they were learned from, the sum of all
        losses, the number of rows seen, and the number of rows that changed the weights.
    curve_ : dict of arrays
        Cumulative ``mistakes`` and ``loss`` after ``rounds``.
    n_iter_ : int
        Passes over the rows: one. ``n_rounds_`` counts the rows.
    n_features_in_ : int
        Number of features seen.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    See Also
    --------
    MultiTaskLearner : All examples together, with a duality gap.

    References
    ----------
    S. Kakade, S. Shalev-Shwartz, A. Tewari, "Regularization techniques for learning with
    matrices", JMLR 13, 2012, algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mixnorm import OnlineMultiTaskLearner
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.standard_normal((3000, 20)), rng.integers(3, size=3000)
    >>> y = X[:, 0] * (task + 1)  # three tasks that share one feature
    >>> model = OnlineMultiTaskLearner().partial_fit(X, y, task=task)
    >>> bool(np.abs(model.predict(X, task=task) - y).mean() < 0.3)
    True
    >>> together = OnlineMultiTaskLearner(losses=["squared", "logistic"])
    >>> X = rng.standard_normal((50, 2, 20))  # an input for each task
    >>> Y = np.stack([X[:, 0, 0], np.where(X[:, 1, 0] > 0, 1.0, np.nan)], axis=1)
    >>> together.partial_fit(X, Y).predict(X).shape
    (50, 2)
    """

    _output_kind = TaskOutputs
    _by_feature = False

    norm: Norm = "l2,1"
    losses: Loss = "squared"
    _: KW_ONLY

    def _loss_of(self, place: int, task: Hashable) -> Any:
        """Return the loss of a new task, number ``place`` from zero."""
        losses = self.losses
        if isinstance(losses, Mapping):
            if task not in losses:
                raise ValueError(
                    f"losses has no loss for task {task!r}; add it, or give one loss for all tasks."
                )
            losses = losses[task]
        elif isinstance(losses, (list, tuple)):
            if place >= len(losses):
                raise ValueError(
                    f"losses has {len(losses)} entries, and task {task!r} is number {place + 1}; "
                    "add its loss, or give a mapping by task."
                )
            losses = losses[place]
        loss = as_loss(losses, SCALAR)
        if loss.is_classifier:
            raise ValueError(f"loss={loss!r} is joint; choose one of {sorted(SCALAR)}.")
        return loss

    def _losses(self, targets: OnlineTargets) -> list[Any]:
        # Losses of earlier tasks stay as they were, even if the parameter has been changed since.
        known = [] if self._resume is None else [*self._resume.stored.plan.losses]
        new = list(enumerate(targets.tasks()))[len(known) :]
        return known + [self._loss_of(place, task) for place, task in new]

    # --- learning

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        task: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Forget what was learned, and learn from the rows, once each.

        ``shuffle`` says whether they come in a random order. Parameters are those of
        :meth:`partial_fit`.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, task)

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        task: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from rows in the given order; each is predicted first, then learned from.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, n_tasks, n_features), or sparse
            Rows for one task each, or (with ``y`` of two dimensions) for all tasks; or rows that
            have an input for each task. A table of row blocks or a Dask collection is read in
            order, and gives the weights of the same rows in memory; ``fit`` then needs
            ``shuffle=False``.
        y : array of shape (n_samples,) or (n_samples, n_tasks)
            The targets; NaN if a task has none. A table of blocks has its own.
        task : array of shape (n_samples,), optional
            The task of each row; new tasks are added to ``tasks_``.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight, task)

    def _check_rows(self, given: Any) -> OnlineRows:
        if getattr(given, "ndim", 2) != 3:
            return super()._check_rows(given)
        self._check_no_names()
        # scikit-learn's checks take tables of two axes alone.
        X = np.asarray(given, dtype=np.float64)
        if self._resume is None:
            self.n_features_in_ = X.shape[2]
        elif X.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[2]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return OnlineRows(X)

    def _encode(self, y: np.ndarray, X: mirror.Rows, role: ArrayLike | None) -> OnlineTargets:
        """Return targets, and places in ``tasks_``, to which new tasks are added."""
        if X.ndim == 3 and role is not None:
            raise ValueError(
                "X of three dimensions has an input for each task; leave task out, or give X "
                "of two dimensions."
            )
        if X.ndim == 3 and y.shape != X.shape[:2]:
            raise ValueError(
                f"y has shape {y.shape}, and X {X.shape}: give y of shape {X.shape[:2]}, a "
                "target (or NaN) for each row and task."
            )
        state = self._resume
        known = np.empty(0, dtype=np.int64) if state is None else self.tasks_
        places = {} if state is None else state.places
        if role is not None:
            rows, known = place_labels(check_tasks(role, len(y)), known, places)
            return self._encode_signs(
                OnlineTargets(rows, column_or_1d(y, warn=True)[:, None], known)
            )
        if y.ndim == 1:
            raise ValueError(
                "y has one target per row, and task is missing: give the task of each row, or a "
                "column of y for each task."
            )
        if state is None:
            known = np.arange(y.shape[1])
        elif y.shape[1] != len(known):
            raise ValueError(
                f"y has {y.shape[1]} tasks, and there are {len(known)}: {known!r}. Give a "
                "column for each (NaN if a task has no target), or give the task of each row."
            )
        return self._encode_signs(OnlineTargets(np.empty(0, dtype=np.int64), y, known))

    def _encode_signs(self, targets: OnlineTargets) -> OnlineTargets:
        """Return targets with classes as -1 and 1, and the lower class of each task."""
        # A copy, because signs are written into it and the targets are the user's.
        labels, values = targets.places, targets.values.copy()
        before = () if self._resume is None else self._resume.low
        # One for each task; NaN until its lower class is seen.
        low = [*before, *[math.nan] * (targets.n_outputs - len(before))]
        for place, loss in enumerate(self._losses(targets)):
            if not loss.is_binary:
                continue
            # With a task for each row there is one column of targets; without, one for each task.
            rows = labels == place if len(labels) else np.ones(len(values), dtype=bool)
            column = 0 if len(labels) else place
            given = values[rows, column]
            found = self._lower_class(targets.tasks()[place], given, low[place])
            low[place] = low[place] if found is None else found
            values[rows, column] = np.where(
                np.isnan(given), np.nan, np.where(given > 0.0, 1.0, -1.0)
            )
        # The same tuple is returned if nothing is new, which tells the caller that the state can
        # stay.
        same = np.array_equal(low, before, equal_nan=True)
        return targets._replace(
            values=np.ascontiguousarray(values), low=before if same else tuple(low)
        )

    def _lower_class(self, task: Hashable, given: np.ndarray, before: float) -> float | None:
        """Return the lower class of a task as the user gave it; None if no row has it."""
        # NaN says that a row has no target for this task.
        known = given[~np.isnan(given)]
        wrong = known[~np.isin(known, (-1.0, 0.0, 1.0))]
        if len(wrong):
            raise ValueError(
                f"Task {task!r} has two classes, given as -1 and 1 or 0 and 1; got {wrong[0]:g}."
            )
        # The classes of a task are 1 and either -1 or 0; predictions come back in the user's pair.
        low = set(known[known < 1.0].tolist())
        if len(low if math.isnan(before) else low | {before}) > 1:
            raise ValueError(
                f"Task {task!r} has classes -1, 0 and 1; give two, -1 and 1 or 0 and 1."
            )
        return low.pop() if low else None

    def learn_one(self, x: Row, y: float, task: Hashable) -> None:
        """Learn from one row of a task: an array of shape (n_features,) or a dict."""
        self._learn_one(x, y, task)

    def _place_target(self, target: np.ndarray, y: Any, *task: Any) -> int | None:
        state = self._state()
        place = state.places.get(task[0])
        plain = isinstance(y, (float, int)) and -math.inf < y < math.inf
        if place is None or not plain or state.stored.plan.losses[place].is_binary:
            return None
        target[0, 0] = y
        return place

    def predict_one(self, x: Row, task: Hashable) -> float | None:
        """Return the prediction for one row of a task; None for a task not seen so far."""
        if self._resume is None or task not in self._resume.places:
            return None
        return float(self.predict(as_rows(x), task=np.asarray([task]))[0])

    @property
    def tasks_(self) -> np.ndarray:
        """The tasks, in order of arrival."""
        return np.asarray(self._state().labels)

    @property
    def classes_(self) -> list[np.ndarray | None]:
        """For each task its two classes as the user gave them; None for tasks with numbers."""
        outputs: Any = self._state().outputs
        return list(outputs.classes)

    # --- predictions

    @map_parts
    def decision_function(self, X: MatrixLike, task: ArrayLike | None = None) -> np.ndarray:
        """Return the scores of rows, for their tasks or for all tasks.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, n_tasks, n_features), or sparse
            The rows.
        task : array of shape (n_samples,), optional
            The task of each row.

        Returns
        -------
        ndarray of shape (n_samples,) with ``task``, else (n_samples, n_tasks)
        """
        if getattr(X, "ndim", 2) == 3:
            weights, intercept = self._weights()
            given = np.asarray(X, dtype=np.float64)
            if given.shape[1:] != weights.shape:
                raise ValueError(
                    f"X has shape {given.shape}; give an input for each task, of shape "
                    f"(n_samples, {weights.shape[0]}, {weights.shape[1]})."
                )
            # Row i of task r has its own input: x_ir times the weights of the task.
            products = np.einsum("irj,rj->ir", given, weights)
            return np.asarray(products + intercept)
        scores = self._scores(X)
        if task is None:
            return scores
        return np.asarray(scores[np.arange(len(scores)), self._find_tasks(task, len(scores))])

    @map_parts
    def predict(self, X: MatrixLike, task: ArrayLike | None = None) -> np.ndarray:
        """Return the predictions: numbers, or classes as the user gave them.

        Parameters are those of :meth:`decision_function`.
        """
        scores = self.decision_function(X, task)
        state = self._state()
        places = np.arange(state.stored.n_outputs)
        if task is not None:
            places = self._find_tasks(task, len(scores))
        binary = np.asarray([loss.is_binary for loss in state.stored.plan.losses])
        low = np.where(np.isnan(state.low), -1.0, state.low)
        classes = np.where(scores > 0.0, 1.0, low[places])
        return np.asarray(np.where(binary[places], classes, scores))

    def _find_tasks(self, task: ArrayLike, n_samples: int) -> np.ndarray:
        task, places = check_tasks(task, n_samples), self._state().places
        unknown = [name for name in np.unique(task).tolist() if name not in places]
        if unknown:
            raise ValueError(f"Task {unknown[0]!r} has not been seen; the tasks are {[*places]}.")
        return np.asarray([places[name] for name in task.tolist()], dtype=np.int64)
