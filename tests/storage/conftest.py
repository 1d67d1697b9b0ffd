"""What the tests of model files share: models of every kind, forged files, and comparison."""

import copy
import dataclasses
import functools
import hashlib
import io
import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits

from mixnorm import GreedyOptions, ShareBoostClassifier, estimators
from mixnorm.storage import store

# Stands in an edit for a part that is taken away.
GONE = "<gone>"


def packed(model):
    """Return the bytes of a model's file."""
    return b"".join(store._pack_model(model))


def read(content, **limits):
    """Return the model in the bytes of a file."""
    return store._read(io.BytesIO(content), "the file", **limits)


def again(model):
    """Return a model after it was stored and read."""
    return read(packed(model))


def sealed(body):
    """Return a file with this body and the checksum that belongs to it."""
    return b"mixnorm model 3\n%s\n%s" % (hashlib.sha256(body).hexdigest().encode(), body)


def opened(content):
    """Return the JSON document of a file, and the bytes of its arrays."""
    length, _, rest = content.split(b"\n", 2)[2].partition(b"\n")
    return json.loads(rest[: int(length)]), rest[int(length) :]


def forged(document, raw=b""):
    """Return a file, with a right checksum, of any document (or its text) and any bytes."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return sealed(b"%d\n%s%s" % (len(text), text, raw))


def edited(document, *edits):
    """Return a copy of a document in which places have other content, or are gone."""
    document = copy.deepcopy(document)
    for place, value in edits:
        *way, last = place
        part = document
        for step in way:
            part = part[step]
        if value == GONE:
            del part[last]
        else:
            part[last] = value
    return document


def same(one, other):
    """Tell whether two values are alike in type, dtype, shape and every bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        alike = one.dtype == other.dtype and one.shape == other.shape
        if one.dtype == object:
            return alike and same(one.ravel().tolist(), other.ravel().tolist())
        return alike and one.tobytes("A") == other.tobytes("A")
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if dataclasses.is_dataclass(one) and not hasattr(one, "fit"):
        names = [field.name for field in dataclasses.fields(one)]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, np.generic):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, float):
        return one.hex() == other.hex()
    return hasattr(one, "fit") or hasattr(one, "split") or one == other


@functools.cache
def prepare(name):
    """Return an estimator of that name, and inputs and targets that suit it; not to be changed."""
    model = getattr(estimators, name)()
    small = {"n_features_to_select": 4, "max_iter": 50, "cv": 3, "alphas": 5, "gammas": [1.0, 9.0]}
    small |= {"Cs": [1.0, 10.0], "ps": [1.2], "betas": [1e-2], "tails": [2], "random_state": 0}
    own = model.get_params(deep=False)
    model.set_params(**{key: value for key, value in small.items() if key in own})
    X, y = load_digits(return_X_y=True)
    X = X[:100]
    y = y[:100] if is_classifier(model) else X[:, 20] - X[:, 10] ** 2
    if name == "OnlineMultiTaskLearner":
        y = y[:, None]
    return model, X, y


@functools.cache
def train(name):
    """Return an estimator of that name, fitted on data that suit it; not to be changed."""
    model, X, y = prepare(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short fit may well not converge
        return clone(model).fit(X, y), X


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400]


@pytest.fixture(scope="session")
def model(digits):
    """A classifier; not to be changed."""
    return ShareBoostClassifier(5, options=GreedyOptions()).fit(*digits)


@pytest.fixture(scope="session")
def content(model):
    """The bytes of its file."""
    return packed(model)


@pytest.fixture(scope="session")
def tools():
    """The functions above; test modules cannot import from here."""
    functions = (packed, read, again, sealed, opened, forged, edited, same, prepare, train)
    return SimpleNamespace(GONE=GONE, **{function.__name__: function for function in functions})
