"""Checks of targets, weights and other arguments."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from mixnorm._array import ArrayLike, check_seed, follow, is_foreign, to_numpy
from mixnorm.losses import SmoothLoss, as_loss

#: Number of features to choose by default.
DEFAULT_SIZE = 20


def check_weights(
    sample_weight: ArrayLike | None, n_samples: int, dtype: Any, like: Any = None
) -> np.ndarray:
    """Return sample weights that sum to one, in the namespace of ``like`` (by default NumPy)."""
    if is_foreign(like):
        return follow(check_weights(sample_weight, n_samples, float), like, dtype)
    if sample_weight is None:
        return np.full(n_samples, 1.0 / n_samples, dtype=dtype)
    weight = row_weights(sample_weight, n_samples)
    largest = weight.max()
    if not largest > 0:
        raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
    weight = weight / largest  # first, so that the sum of huge or tiny weights stays finite
    return np.asarray(weight / weight.sum(), dtype=dtype)


def row_weights(sample_weight: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Return the checked sample weights, one for each row, without normalising them."""
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, numbers.Real):
        weight = np.full(n_samples, float(sample_weight))
    else:
        weight = weight_numbers(sample_weight)
    if weight.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weight.ndim}D array. "
            "Give one weight per row of X."
        )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n_samples,)}: "
            "give one weight per row of X."
        )
    if not np.all(np.isfinite(weight)):
        raise ValueError("sample_weight contains NaN or infinity; give finite weights.")
    if np.any(weight < 0):
        raise ValueError("sample_weight has negative entries; weights must be zero or more.")
    return weight


def total_weight(sample_weight: ArrayLike | None, n_samples: int) -> float:
    """Return the number of rows, or the sum of their weights if there are any.

    Examples
    --------
    >>> total_weight(None, 3), total_weight([0.5, 0.5, 2.0], 3)
    (3.0, 3.0)
    """
    if sample_weight is None:
        return float(n_samples)
    weight = np.broadcast_to(weight_numbers(sample_weight), (n_samples,))
    largest = float(np.max(weight))  # divided out, so that no sum overflows
    return min(largest * float(np.sum(weight / largest)), float(np.finfo(np.float64).max))


def weight_numbers(sample_weight: ArrayLike) -> np.ndarray:
    """Return weights as an array of floats; raise for anything but numbers."""
    if isinstance(sample_weight, str):
        raise TypeError(
            f"sample_weight={sample_weight!r} is a name, and weights are numbers, one per row of "
            "X. For weights by class give sklearn.utils.class_weight.compute_sample_weight("
            f"{sample_weight!r}, y), or set class_weight where the estimator has it."
        )
    try:
        if sparse.issparse(sample_weight):
            raise TypeError
        return np.asarray(to_numpy(sample_weight), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"sample_weight, a {type(sample_weight).__name__}, is not an array of numbers; give "
            "one number per row of X."
        ) from None


def check_dense_targets(y: ArrayLike) -> None:
    """Raise for targets in a sparse matrix."""
    single = 1 in getattr(y, "shape", ())[1:]
    if sparse.issparse(y):
        again = "y.toarray().ravel()" if single else "y.toarray()"
        raise TypeError(
            f"y is a sparse matrix ({type(y).__name__}), and targets are dense. Give {again}."
        )


def check_number_targets(y: ArrayLike) -> None:
    """Raise for targets of a regression that are sparse or not numbers."""
    check_dense_targets(y)
    if y is None or is_foreign(y) or getattr(getattr(y, "dtype", None), "kind", "O") in "biufc":
        return
    try:
        np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        odd = next((value for value in _objects(y) if not _is_number(value)), y)
        raise ValueError(
            f"y holds {odd!r}, which is not a number; regression needs numeric targets."
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _objects(y: ArrayLike) -> list[Any]:
    """Return labels or targets in one list, with their original types."""
    if not isinstance(y, (list, tuple)):
        return list(np.ravel(np.asarray(y, dtype=object)).tolist())
    rows = (row if isinstance(row, (list, tuple)) else [row] for row in y)
    return [value for row in rows for value in row]


def unit_of(deviations: np.ndarray) -> float:
    """Return the largest deviation of targets from their mean, or one if there is none.

    Squared losses are computed in this unit, so that its square must be a float.
    """
    largest = float(np.max(np.abs(deviations), initial=0.0))
    unit = largest if largest > 0.0 else 1.0
    if not 1e-152 < unit < 1e152:
        raise ValueError(
            f"y differs from its mean by up to {largest:.3g}, whose square is out of the range of "
            "floats; divide y by a power of ten."
        )
    return unit


def check_one_kind_of_label(y: ArrayLike, name: str = "y") -> None:
    """Raise for labels of several types, such as ``1`` and ``"a"``, or None.

    They cannot be sorted, and NumPy would convert all of them to texts.
    """
    dtype = getattr(y, "dtype", None)  # those of other libraries are not compared with NumPy's
    objects = isinstance(dtype, np.dtype) and dtype.kind == "O"
    if not isinstance(y, (list, tuple)) and not objects:
        return
    values = _objects(y)
    if any(value is None for value in values):
        raise ValueError(f"{name} contains None, which is not a label; leave such rows out.")
    if len({_kind(value) for value in values}) > 1:
        kinds = sorted({type(value).__name__ for value in values})
        raise TypeError(
            f"The labels in {name} are of several types ({', '.join(kinds)}), which cannot be "
            "sorted. Give labels of one type, for example str(label) for each."
        )


def _kind(value: object) -> Any:
    """Return a kind within which labels can be sorted: text, number, or their type."""
    for kind in (str, (numbers.Number, np.bool_)):
        if isinstance(value, kind):
            return kind
    return type(value)


def check_jobs(n_jobs: object) -> None:
    """Raise unless ``n_jobs`` is None or a number of jobs."""
    allowed = "None means one job, a whole number that many, and -1 one for each processor"
    if n_jobs is None:
        return
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool):
        raise TypeError(f"n_jobs={n_jobs!r} is not a number of jobs: {allowed}.")
    if n_jobs == 0:
        raise ValueError(f"n_jobs=0 would do nothing: {allowed}.")


def random_generator(random_state: object) -> np.random.RandomState:
    """Return the generator for a seed, None or a generator.

    Examples
    --------
    >>> random_generator(0).randint(10)
    5
    """
    if random_state is not np.random:
        check_seed(random_state, np.random.RandomState)
    if isinstance(random_state, numbers.Integral):
        random_state = int(random_state) % 2**32  # the range that a RandomState takes
    return check_random_state(random_state)


def check_class_weight(class_weight: object) -> None:
    """Raise unless ``class_weight`` is None, ``"balanced"`` or a dictionary of weights."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        kind = ValueError if isinstance(class_weight, str) else TypeError
        raise kind(
            f"class_weight={class_weight!r} must be None, 'balanced', or a dictionary with weights "
            "for labels of y."
        )
    for label, weight in class_weight.items():
        number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
        if not number or not 0.0 <= float(weight) < np.inf:
            raise ValueError(
                f"class_weight has {weight!r} for {label!r}; give finite numbers of zero or more."
            )


def apply_class_weights(
    class_weight: Any, y: ArrayLike, sample_weight: ArrayLike | None, *, stream: bool = False
) -> Any:
    """Return sample weights times the weights of classes.

    Balanced weights are those of the weighted rows. A ``stream`` has no balanced weights, and its
    rows need not have all classes of a dictionary.

    Examples
    --------
    >>> apply_class_weights("balanced", [0, 1, 1, 1, 0], [1, 1, 1, 1, 0]).round(2)
    array([2.  , 0.67, 0.67, 0.67, 0.  ])
    """
    if class_weight is None:
        return sample_weight
    classes, labels = np.unique(to_numpy(y), return_inverse=True)
    weight = row_weights(sample_weight, len(labels))
    if isinstance(class_weight, str) and stream:
        raise ValueError(
            f"class_weight={class_weight!r} needs all samples, and partial_fit does not "
            "have later ones; give a dictionary of weights, or call fit."
        )
    # In units of the largest weight, whose sum stays finite.
    totals = np.bincount(labels, weight / (weight.max() or 1.0))
    return weight * weigh_classes(class_weight, classes, totals, stream=stream)[labels]


def weigh_classes(
    class_weight: Any, classes: np.ndarray, totals: np.ndarray, *, stream: bool = False
) -> np.ndarray:
    """Return the weight of each class; balanced ones follow from the weights of their rows.

    Examples
    --------
    >>> weigh_classes("balanced", np.array([0, 1]), np.array([1.0, 3.0])).round(2)
    array([2.  , 0.67])
    """
    if not isinstance(class_weight, str):
        missing = [label for label in classes.tolist() if label not in class_weight]
        if missing and len(class_weight) > len(classes) - len(missing) and not stream:
            raise ValueError(
                f"class_weight={class_weight!r}: the classes {missing} are not in class_weight. "
                "Its keys are labels of y."
            )
        return np.array([class_weight.get(label, 1.0) for label in classes.tolist()])
    # scikit-learn's n / (k n_c), with weights in place of counts. Classes without weight do not
    # count.
    found = np.sum(totals) / (np.count_nonzero(totals) * np.where(totals, totals, 1.0))
    return np.asarray(found)


def check_loss(loss: object, known: dict[str, type], *, classifier: bool) -> Any:
    """Return the loss for a name or an object; raise unless the greedy engine can use it."""
    loss = as_loss(loss, known)
    if loss.is_binary:
        raise ValueError(
            f"loss={loss!r} takes targets -1 and +1, which neither labels nor numbers are; choose "
            f"one of {sorted(known)}. For two classes the losses on labels do as well."
        )
    if loss.is_classifier != classifier:
        kind = "classification" if classifier else "regression"
        raise ValueError(f"loss={loss!r} is not a {kind} loss; choose one of {sorted(known)}.")
    if not isinstance(loss, SmoothLoss):
        raise ValueError(
            f"loss={loss!r} is not smooth; the greedy engine needs a smooth loss, one with second "
            f"derivatives. Choose one of {sorted(known)}."
        )
    if not classifier and not loss.constant_curvature:
        # The regressor divides its targets by a unit, which only a square survives unchanged.
        raise ValueError(
            f"loss={loss!r} depends on the unit of the targets, which this estimator chooses; it "
            f"needs a loss of constant curvature. Choose one of {sorted(known)}."
        )
    return loss
