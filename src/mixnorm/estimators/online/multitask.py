"""Online multi-task learning: examples of several tasks, one at a time or all at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from mixnorm._checks import check_array
from mixnorm.engines import mirror
from mixnorm.estimators._common.inputs import check_number_targets, check_one_kind_of_label
from mixnorm.estimators._common.parameters import Count, Loss, Norm, Seed, Switch
from mixnorm.estimators.online.base import (
    HashedColumns,
    LearningRate,
    OnlineEstimator,
    Size,
    as_rows,
    descent_plan,
    joined_labels,
)
from mixnorm.losses import SCALAR, as_loss


@dataclass(eq=False, repr=False)
class OnlineMultiTaskLearner(OnlineEstimator):
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
        Largest norm of the weights.
    learning_rate : {"auto", "adaptive", "anytime", "fixed", "feature"}, default="auto"
        As in :class:`MirrorDescentClassifier`; ``"auto"`` is ``"adaptive"``.
    eta0 : float, optional
        The step size; by default ``radius`` or 10 for ``"adaptive"``, 1 for the others. For
        ``"adaptive"`` it is about the size of the weights, in units of the targets: give larger
        ones for large targets.
    fit_intercept : bool, default=True
        Have a column of ones.
    scale : bool, default=True
        Measure features in running units, and those of dense rows from running means: what is
        learned does not depend on units and origins. Sparse rows keep zero as their origin, and so
        do all rows with ``fit_intercept=False``. In rows that are dicts, the numbers of the first
        row are measured from their means, as long as half of the rows have them; not so with the
        norm ``"trace"`` or with blocks of features. All tasks share the means: bring rows of
        tasks that lie far apart to one origin first.
    average : bool, default=False
        Predict by the average of the weights so far. It does not change what is learned, and
        mistakes and losses are those of the weights themselves.
    shuffle : bool, default=True
        Let ``fit`` go through the rows in a random order. ``partial_fit`` keeps their order.
    random_state : int, RandomState instance or None, default=None
        Where that order comes from.
    block_size : int, default=1
        Rows that are predicted by the same weights, for norms whose weights are dear to compute.
    hash_features : int, optional
        Columns into which the names of dict rows are hashed; by default every name gets its own.

    Attributes
    ----------
    tasks_ : ndarray of shape (n_tasks,)
        The tasks: those of the first call in order, later ones as they came.
    coef_, intercept_ : ndarrays of shapes (n_tasks, n_features) and (n_tasks,)
        The weights, for rows as they were given.
    mistakes_, loss_, n_rounds_, n_updates_ : int, float, int, int
        Examples of two classes predicted wrong before they were learned from, the sum of all
        losses, rows seen, and rows that changed the weights.
    curve_ : dict of arrays
        ``mistakes`` and ``loss`` after so many ``rounds``.
    n_features_in_ : int
        Number of columns seen.

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

    norm: Norm = "l2,1"
    losses: Loss = "squared"
    _: KW_ONLY
    radius: Size = None
    learning_rate: LearningRate = "auto"
    eta0: Size = None
    fit_intercept: Switch = True
    scale: Switch = True
    average: Switch = False
    shuffle: Switch = True
    random_state: Seed = None
    block_size: Count = 1
    hash_features: HashedColumns = None

    # --- the plan

    _kept = (*OnlineEstimator._kept, "tasks_", "_low")

    def _rebuild(self, n_outputs: int) -> None:
        tasks, low = self.tasks_, self._low
        if not isinstance(tasks, np.ndarray) or tasks.shape != (n_outputs,):
            raise ValueError(f"tasks_ must be an array of {n_outputs} tasks")
        self._places: dict[Any, int] = {task: place for place, task in enumerate(tasks.tolist())}
        if len(self._places) != n_outputs:
            raise ValueError("tasks_ has a task twice")
        if not isinstance(low, list) or [type(value) for value in low] != [float] * n_outputs:
            raise ValueError("_low must have a number for each task")

    def _loss_of(self, place: int, task: Any) -> Any:
        """Return the loss of a task."""
        losses = self.losses
        if isinstance(losses, Mapping):
            if task not in losses:
                raise ValueError(
                    f"losses has none for task {task!r}; add it, or give one loss for all tasks."
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

    def _plan(self, n_outputs: int) -> mirror.Plan:
        losses = [self._loss_of(place, task) for place, task in enumerate(self.tasks_.tolist())]
        return descent_plan(self, losses, by_feature=False)

    # --- learning

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Any:
        """Forget what was learned, and learn from the rows, once each.

        ``shuffle`` says whether they come in a random order. Parameters are those of
        :meth:`partial_fit`.

        Returns
        -------
        self
        """
        self._check_some_weight(sample_weight)
        self._begin()
        return self._partial_fit(X, y, task, sample_weight, in_order=not self.shuffle)

    def partial_fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Any:
        """Learn from rows in their order: each is predicted first, then learned from.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, n_tasks, n_features), or sparse
            A row for one task, or (with ``y`` of two dimensions) for all of them; or rows that have
            an input for each task.
        y : array of shape (n_samples,) or (n_samples, n_tasks)
            The targets; NaN says that a task has none.
        task : array of shape (n_samples,), optional
            The task of each row. Unseen ones are added to ``tasks_``.
        sample_weight : array of shape (n_samples,), optional
            How many times each row counts.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, task, sample_weight, in_order=True)

    def _partial_fit(
        self, given: Any, y: Any, task: Any, sample_weight: Any, *, in_order: bool
    ) -> OnlineMultiTaskLearner:
        first = "_learner" not in vars(self)
        if first:
            self._check_parameters()
            self._begin()
            self.tasks_ = np.empty(0, dtype=np.int64)
            self._places = {}
            self._low: list[float] = []
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        check_number_targets(y)
        targets = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
        )
        if getattr(given, "ndim", 2) == 3:
            if task is not None:
                raise ValueError(
                    "X of three dimensions has an input for each task; leave task out, or give X "
                    "of two dimensions."
                )
            self._check_no_names()
            self._learn_together(given, targets, sample_weight, first=first, in_order=in_order)
            return self
        X = self._rows(given, reset=first)
        labels = np.empty(0, dtype=np.int64)
        if len(targets) != X.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} rows and y {len(targets)} targets: give one target per row."
            )
        weight = self._weights_of(sample_weight, X.shape[0])
        if task is not None:
            targets = column_or_1d(targets, warn=True)[:, None]
            labels = self._encode_tasks(_tasks_of(task), X.shape[0])
        elif targets.ndim != 2:
            raise ValueError(
                "y has one target per row, and no task says whose it is: give task, or a column of "
                "y for each task."
            )
        else:
            self._number_tasks(targets.shape[1])
        self._ready(X.shape[1], len(self.tasks_))
        targets = self._signed(targets, labels)
        order = None if in_order else self._order(X.shape[0])
        X = self._mark(X, given, order)
        self._learn(X, labels, targets, weight, order)
        return self

    def _learn_together(
        self, X: Any, targets: np.ndarray, sample_weight: Any, *, first: bool, in_order: bool
    ) -> None:
        X = np.asarray(X, dtype=np.float64)
        if targets.shape != X.shape[:2]:
            raise ValueError(
                f"y has shape {targets.shape}, and X {X.shape}: give y of shape {X.shape[:2]}, a "
                "target (or NaN) for each row and task."
            )
        if first:
            self.n_features_in_ = X.shape[2]
            self._origin = "means" if self._is_centred() else "zero"
        elif X.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[2]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        weight = self._weights_of(sample_weight, len(X))
        self._number_tasks(X.shape[1])
        learner = self._ready(X.shape[2], len(self.tasks_))
        if isinstance(learner, mirror.RowLearner):
            learner = self._learner = mirror.by_blocks(learner)
            self.__dict__.pop("_lean", None)
        targets = self._signed(targets, np.empty(0, dtype=np.int64))
        start, mistakes, loss = learner.rounds, learner.mistakes, learner.loss
        order = None if in_order else self._order(len(X))
        losses, wrong = learner.learn_together(X, targets, weight, order)
        self._curve.extend(start, wrong, losses, mistakes, loss)
        self._check_numbers()

    def _encode_tasks(self, task: np.ndarray, n_samples: int) -> np.ndarray:
        """Return places in ``tasks_``, to which unseen tasks are added."""
        if len(task) != n_samples:
            raise ValueError(f"X has {n_samples} rows and task {len(task)}: give one task per row.")
        found, inverse = np.unique(task, return_inverse=True)
        unseen = [name for name in found.tolist() if name not in self._places]
        for place, name in enumerate(unseen, len(self._places)):
            self._loss_of(place, name)  # there must be one, or the task is not taken
        if unseen:
            self.tasks_ = joined_labels(self.tasks_, np.asarray(unseen, dtype=found.dtype))
        for name in unseen:
            self._places[name] = len(self._places)
            self._low.append(np.nan)
        places = np.asarray([self._places[name] for name in found.tolist()], dtype=np.int64)
        return np.asarray(places[inverse.reshape(-1)])

    def _number_tasks(self, count: int) -> None:
        if len(self.tasks_) == 0:
            self._encode_tasks(np.arange(count), count)
        elif count != len(self.tasks_):
            raise ValueError(
                f"y has {count} tasks, and there are {len(self.tasks_)}: {self.tasks_!r}. Give a "
                "column for each, NaN where a task has no target, or say by task whose a row is."
            )

    def _signed(self, targets: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return targets with classes as -1 and 1."""
        targets = np.ascontiguousarray(targets)
        for place, task in enumerate(self.tasks_.tolist()):
            if not self._loss_of(place, task).is_binary:
                continue
            rows = labels == place if len(labels) else np.ones(len(targets), dtype=bool)
            column = 0 if len(labels) else place
            values = targets[rows, column]
            known = values[~np.isnan(values)]
            if not np.all(np.isin(known, (-1.0, 0.0, 1.0))):
                wrong = known[~np.isin(known, (-1.0, 0.0, 1.0))][0]
                raise ValueError(
                    f"Task {task!r} has two classes, given as -1 and 1 or 0 and 1; got {wrong:g}."
                )
            low = known[known < 1.0]
            if len(low):
                given = float(low[0])
                before = self._low[place]
                if np.any(low != given) or (not np.isnan(before) and before != given):
                    raise ValueError(
                        f"Task {task!r} has classes -1, 0 and 1; give two, -1 and 1 or 0 and 1."
                    )
                self._low[place] = given
            targets = targets.copy()
            targets[rows, column] = np.where(
                np.isnan(values), np.nan, np.where(values > 0.0, 1.0, -1.0)
            )
        return targets

    def learn_one(self, x: Any, y: float, task: Any) -> None:
        """Learn from one row of a task: an array of shape (n_features,) or a dict."""
        lean = self._lean_row(x)
        place = None if lean is None else self._places.get(task)
        plain = isinstance(y, (float, int)) and -math.inf < y < math.inf
        if place is None or not plain or self._learner.plan.losses[place].is_binary:
            row = as_rows(x)
            self.partial_fit(row, np.asarray([y], dtype=np.float64), task=np.asarray([task]))
            if lean is None:
                self._prepare_lean()
            return
        lean.target[0, 0] = y
        self._lean_step(lean, place)

    def _targets_per_row(self) -> int:
        return 1

    def predict_one(self, x: Any, task: Any) -> float | None:
        """Return the prediction for one row of a task; None before the task was seen."""
        if "_learner" not in vars(self) or task not in self._places:
            return None
        return float(self.predict(as_rows(x), task=np.asarray([task]))[0])

    # --- predictions

    def decision_function(self, X: Any, task: Any = None) -> np.ndarray:
        """Return the scores of rows: of their tasks, or of all tasks.

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
        learner = self._check_learned()
        if getattr(X, "ndim", 2) == 3:
            weights, intercept = learner.weights(bool(self.average))
            if X.shape[1:] != weights.shape:
                raise ValueError(
                    f"X has shape {X.shape}; give an input for each task, of shape "
                    f"(n_samples, {weights.shape[0]}, {weights.shape[1]})."
                )
            products = np.einsum("irj,rj->ir", np.asarray(X, np.float64), weights)
            return np.asarray(products + intercept)
        scores = self._scores(X)
        if task is None:
            return scores
        return np.asarray(scores[np.arange(len(scores)), self._known_tasks(task, len(scores))])

    def predict(self, X: Any, task: Any = None) -> np.ndarray:
        """Return the predictions: numbers, or classes as they were given.

        Parameters are those of :meth:`decision_function`.
        """
        scores = self.decision_function(X, task)
        places = np.arange(len(self.tasks_))
        if task is not None:
            places = self._known_tasks(task, len(scores))
        binary = np.asarray(
            [
                self._loss_of(place, name).is_binary
                for place, name in enumerate(self.tasks_.tolist())
            ]
        )
        low = np.where(np.isnan(self._low), -1.0, self._low)
        classes = np.where(scores > 0.0, 1.0, low[places])
        return np.asarray(np.where(binary[places], classes, scores))

    def _known_tasks(self, task: Any, n_samples: int) -> np.ndarray:
        task = _tasks_of(task)
        if len(task) != n_samples:
            raise ValueError(f"X has {n_samples} rows and task {len(task)}: give one task per row.")
        unknown = [name for name in np.unique(task).tolist() if name not in self._places]
        if unknown:
            raise ValueError(
                f"Task {unknown[0]!r} has not been seen; the tasks are {self.tasks_.tolist()}."
            )
        return np.asarray([self._places[name] for name in task.tolist()], dtype=np.int64)


def _tasks_of(task: Any) -> np.ndarray:
    """Return the tasks of rows, checked."""
    if np.ndim(task) == 0:
        raise ValueError(f"task={task!r} is one task; give one for each row.")
    check_one_kind_of_label(task, "task")
    found = np.asarray(column_or_1d(task))
    if any(name is None or name != name for name in found.tolist()):
        raise ValueError("task contains NaN or None; drop rows whose task is not known.")
    return found
