"""Progress by scikit-learn's callbacks, an experimental interface that only this file uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
from sklearn.callback import with_callbacks as with_callbacks

from mixnorm._array import ArrayLike

# Attributes that scikit-learn sets on an estimator during a fit and removes itself.
_CALLBACK_STATE = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Restore an estimator if the fit in this context fails, so that an earlier fit survives."""
    # All attributes at once: a fit sets several, and half of a new fit beside half of an old one
    # would be a model that nobody has fitted.
    state = vars(estimator)
    before = dict(state)
    try:
        yield
    # Also an interrupt, which is no Exception.
    except BaseException:
        kept = {name: state[name] for name in _CALLBACK_STATE if name in state}
        state.clear()
        state.update(before, **kept)
        raise


class FitTask:
    """A task that callbacks see, with tasks below it: a fit with its rounds or folds.

    Parameters
    ----------
    estimator : estimator
        The estimator being fitted.
    context : CallbackContext
        The task.
    data : dict
        What the callbacks get: ``X``, ``y`` and ``metadata``.
    """

    def __init__(self, estimator: Any, context: Any, data: dict[str, Any]) -> None:
        self._estimator, self._context, self._data = estimator, context, data
        context.call_on_fit_task_begin(estimator=estimator, **data)

    @classmethod
    def of_fit(
        cls,
        estimator: Any,
        X: object,
        y: object,
        sample_weight: ArrayLike | None,
        n_tasks: int,
    ) -> Self:
        """Begin the task of a whole fit, with at most ``n_tasks`` tasks below it."""
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        context = estimator._init_callback_context(max_subtasks=n_tasks)
        return cls(estimator, context, {"X": X, "y": y, "metadata": metadata})

    def task(self, name: str, n_tasks: int = 0) -> FitTask:
        """Begin a task below this one."""
        context = self._context.subcontext(task_name=name, max_subtasks=n_tasks)
        return FitTask(self._estimator, context, self._data)

    def end(self, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """End the task, and return whether a callback asks to stop the fit.

        ``attributes`` returns the attributes with which a copy of the estimator predicts as of now.
        It is None if the estimator cannot predict yet.
        """
        return bool(
            self._context.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
        )


class Iterations:
    """Shows each iteration of an engine as a task below the fit."""

    def __init__(self, whole: FitTask) -> None:
        self._whole = whole

    def end(self, count: int, gap: float) -> None:
        """Show that an iteration is done."""
        self._whole.task("iteration").end()


class Rounds:
    """Shows each round of an engine as a task below the fit, at most ``left`` of them."""

    def __init__(
        self, whole: FitTask, left: int, attributes: Callable[[Any], dict[str, Any]]
    ) -> None:
        self._whole, self._left, self._attributes = whole, left, attributes
        self._task = self._begin()

    def _begin(self) -> FitTask | None:
        self._left -= 1
        return self._whole.task("round") if self._left >= 0 else None

    def end(self, path: object) -> bool:
        """End the task of the latest round, and return whether a callback asks to stop."""
        stop = self._task is not None and self._task.end(lambda: self._attributes(path))
        self._task = self._begin()
        return stop
