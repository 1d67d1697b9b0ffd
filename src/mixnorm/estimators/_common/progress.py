"""Progress through scikit-learn's callbacks, which are experimental: this file alone knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from sklearn.callback import CallbackSupportMixin, with_callbacks

from mixnorm._array import ArrayLike, MatrixLike

__all__ = [
    "CallbackSupportMixin",
    "Iterations",
    "Progress",
    "Rounds",
    "all_or_nothing",
    "with_callbacks",
]

# What scikit-learn sets on an estimator during a fit, and removes itself.
_CALLBACK_STATE = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Put an estimator back as it was if the fit inside fails: an earlier fit stays whole."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        state = vars(estimator)
        kept = {name: state[name] for name in _CALLBACK_STATE if name in state}
        state.clear()
        state.update(before, **kept)
        raise


class Progress:
    """A callback task that may have tasks below it: a fit and its rounds, or its folds.

    Parameters
    ----------
    estimator : estimator
        The estimator being fitted.
    context : CallbackContext
        The task.
    data : dict
        What the callbacks are offered: ``X``, ``y`` and ``metadata``.
    """

    def __init__(self, estimator: Any, context: Any, data: dict[str, Any]) -> None:
        self._estimator, self._context, self._data = estimator, context, data
        context.call_on_fit_task_begin(estimator=estimator, **data)

    @classmethod
    def of_fit(
        cls,
        estimator: Any,
        X: MatrixLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        n_tasks: int,
    ) -> Self:
        """Begin the task of a whole fit, with at most ``n_tasks`` tasks below it."""
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        context = estimator._init_callback_context(max_subtasks=n_tasks)
        return cls(estimator, context, {"X": X, "y": y, "metadata": metadata})

    def task(self, name: str, n_tasks: int = 0) -> Progress:
        """Begin a task below this one."""
        context = self._context.subcontext(task_name=name, max_subtasks=n_tasks)
        return Progress(self._estimator, context, self._data)

    def end(self, attributes: Callable[[], dict[str, Any]] | None = None) -> bool:
        """End the task; True if a callback asks to stop.

        ``attributes`` gives what a copy of the estimator needs to predict as of now; None if it
        cannot predict yet.
        """
        return bool(
            self._context.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
        )


class Iterations:
    """Opens a progress task for each iteration and closes it when the engine says so."""

    def __init__(self, whole: Progress) -> None:
        self._whole = whole

    def end(self, count: int, gap: float) -> None:
        """Note that an iteration is done."""
        self._whole.task("iteration").end()


class Rounds:
    """Opens a progress task for each round and closes it when the engine says so."""

    def __init__(
        self, whole: Progress, left: int, attributes: Callable[[Any], dict[str, Any]]
    ) -> None:
        self._whole, self._left, self._attributes = whole, left, attributes
        self._task = self._next()

    def _next(self) -> Progress | None:
        self._left -= 1
        return self._whole.task("round") if self._left >= 0 else None

    def end(self, path: Any) -> bool:
        """Close the task of the round just done; True if a callback asks to stop."""
        stop = self._task is not None and self._task.end(lambda: self._attributes(path))
        self._task = self._next()
        return stop
