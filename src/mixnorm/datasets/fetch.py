"""Copies of stored data sets, from scikit-learn and from OpenML."""

import http.client
from importlib.util import find_spec
from typing import Any

import numpy as np

from mixnorm.datasets.catalogue import OPENML, SCIKIT_LEARN, OpenMLCopy
from mixnorm.exceptions import DatasetFormatError, DatasetNotFoundError

Arrays = dict[str, np.ndarray]


def from_scikit_learn(name: str) -> Arrays:
    """Return a data set of scikit-learn in the stored form."""
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, SCIKIT_LEARN[name])()
    return {
        "X": bunch.data.astype(np.float32),
        "y": bunch.target.astype(np.int16),
        "feature_names": np.array(bunch.feature_names),
        "class_names": np.array(bunch.target_names),
    }


def from_openml(name: str) -> Arrays:
    """Fetch a data set from OpenML and bring it into the stored form."""
    from sklearn.datasets import fetch_openml

    copy = OPENML[name]
    # scikit-learn reads much faster with pandas than without.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        bunch = fetch_openml(data_id=copy.data_id, as_frame=False, parser=parser)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DatasetNotFoundError(
            f"Data set {name!r} is not stored here, and OpenML (data_id={copy.data_id}) could "
            f"not be read ({error}). Check the network, or put {name}.npz into a folder and set "
            "MIXNORM_DATA to it."
        ) from error
    return _arrange(name, copy, bunch)


def _arrange(name: str, copy: OpenMLCopy, bunch: Any) -> Arrays:
    names = [str(feature) for feature in bunch.feature_names]
    kept = [i for i, feature in enumerate(names) if feature not in copy.drop]
    X = np.asarray(bunch.data)[:, kept]
    if X.shape != copy.shape:
        raise _make_format_error(name, copy, f"shape {X.shape} instead of {copy.shape}")
    X = _cast(name, copy, X)
    y = _encode(name, copy, bunch.target)
    if copy.image:
        X = X.reshape(-1, *copy.image)
    arrays = {"X": X[: copy.n_train], "y": y[: copy.n_train]}
    if copy.n_train is not None:
        arrays |= {"X_test": X[copy.n_train :], "y_test": y[copy.n_train :]}
    if not copy.image:
        arrays["feature_names"] = np.array([names[i] for i in kept])
    if copy.class_names:
        arrays["class_names"] = np.array(copy.class_names)
    return arrays


def _cast(name: str, copy: OpenMLCopy, X: np.ndarray) -> np.ndarray:
    if copy.dtype != "uint8":
        return X.astype(copy.dtype)
    # The range is checked first, because a cast of other numbers is undefined.
    if X.min() >= 0 and X.max() <= 255:
        whole = X.astype(np.uint8)
        if np.array_equal(whole, X):
            return whole
    raise _make_format_error(name, copy, "features that are not integers from 0 to 255")


def _encode(name: str, copy: OpenMLCopy, target: np.ndarray) -> np.ndarray:
    """Return the positions of OpenML's labels in ``copy.labels``."""
    position = {label: i for i, label in enumerate(copy.labels)}
    # Labels may have quotes, and numbers a decimal point ("7.").
    cleaned = [str(label).strip("' ") for label in target]
    cleaned = [label.removesuffix(".0").removesuffix(".") for label in cleaned]
    unknown = sorted(set(cleaned) - set(position))
    if unknown:
        raise _make_format_error(name, copy, f"unknown class labels {unknown[:5]}")
    return np.array([position[label] for label in cleaned], dtype=np.int16)


def _make_format_error(name: str, copy: OpenMLCopy, what: str) -> DatasetFormatError:
    return DatasetFormatError(
        f"OpenML's copy of {name!r} (data_id={copy.data_id}) has {what}. It differs from the "
        f"expected set; put a stored {name}.npz into a folder and set MIXNORM_DATA to this folder."
    )
