"""Copies of stored data sets, from scikit-learn and from OpenML."""

import http.client
from importlib.util import find_spec
from typing import Any

import numpy as np

from mixnorm.datasets.catalogue import OPENML, SCIKIT_LEARN, Twin
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

    twin = OPENML[name]
    # scikit-learn reads much faster with pandas than without.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        bunch = fetch_openml(data_id=twin.data_id, as_frame=False, parser=parser)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DatasetNotFoundError(
            f"Data set {name!r} is not stored here, and OpenML (data_id={twin.data_id}) could "
            f"not be read ({error}). Check the network, or put {name}.npz into a folder and set "
            "MIXNORM_DATA to it."
        ) from error
    return _arrange(name, twin, bunch)


def _arrange(name: str, twin: Twin, bunch: Any) -> Arrays:
    names = [str(feature) for feature in bunch.feature_names]
    kept = [i for i, feature in enumerate(names) if feature not in twin.drop]
    X = np.asarray(bunch.data)[:, kept]
    if X.shape != twin.shape:
        raise _make_format_error(name, twin, f"shape {X.shape} instead of {twin.shape}")
    X = _cast(name, twin, X)
    y = _encode(name, twin, bunch.target)
    if twin.image:
        X = X.reshape(-1, *twin.image)
    arrays = {"X": X[: twin.n_train], "y": y[: twin.n_train]}
    if twin.n_train is not None:
        arrays |= {"X_test": X[twin.n_train :], "y_test": y[twin.n_train :]}
    if not twin.image:
        arrays["feature_names"] = np.array([names[i] for i in kept])
    if twin.class_names:
        arrays["class_names"] = np.array(twin.class_names)
    return arrays


def _cast(name: str, twin: Twin, X: np.ndarray) -> np.ndarray:
    if twin.dtype != "uint8":
        return X.astype(twin.dtype)
    # The range is checked first, because a cast of other numbers is undefined.
    if X.min() >= 0 and X.max() <= 255:
        whole = X.astype(np.uint8)
        if np.array_equal(whole, X):
            return whole
    raise _make_format_error(name, twin, "features that are not integers from 0 to 255")


def _encode(name: str, twin: Twin, target: np.ndarray) -> np.ndarray:
    """Return the positions of OpenML's labels in ``twin.labels``."""
    position = {label: i for i, label in enumerate(twin.labels)}
    # Labels may have quotes, and numbers a decimal point ("7.").
    cleaned = [str(label).strip("' ") for label in target]
    cleaned = [label.removesuffix(".0").removesuffix(".") for label in cleaned]
    unknown = sorted(set(cleaned) - set(position))
    if unknown:
        raise _make_format_error(name, twin, f"unknown class labels {unknown[:5]}")
    return np.array([position[label] for label in cleaned], dtype=np.int16)


def _make_format_error(name: str, twin: Twin, what: str) -> DatasetFormatError:
    return DatasetFormatError(
        f"OpenML's copy of {name!r} (data_id={twin.data_id}) has {what}. It differs from the "
        f"expected set; put a stored {name}.npz into a folder and set MIXNORM_DATA to this folder."
    )
