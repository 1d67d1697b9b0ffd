"""The format itself: files of old stay readable, and anybody can write a reader."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import RepeatedKFold

import mixnorm
from mixnorm.losses import MarginSoftmax
from mixnorm.storage.container import FORMAT

DATA = Path(__file__).with_name("data")


@pytest.fixture(scope="module")
def iris():
    return load_iris()


def test_a_classifier_of_format_1(iris):
    """Written by mixnorm 0.1.0.dev0 and never changed: it loads for ever."""
    model = mixnorm.load(DATA / "format-1-classifier.mixnorm")
    size = iris.data[:, 0] * iris.data[:, 1]
    names = ["sepal length", "sepal width", "petal length", "petal width", "größe"]
    new = pd.DataFrame(np.column_stack([iris.data, size]), columns=names).iloc[::10]
    assert type(model) is mixnorm.ShareBoostClassifier
    assert model.feature_names_in_.tolist() == names
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.path_["feature"].tolist() == ["petal length", "petal width", "sepal"]
    assert model.predict(new).tolist() == np.repeat(model.classes_, 5).tolist()
    assert model.decision_function(new)[0] == pytest.approx(
        [26.80636198, 16.96787931, -43.77424128], rel=1e-8
    )
    assert model.loss == MarginSoftmax(0.75)
    assert model.random_state == 2**70
    assert model.pool.groups == ("sepal", "sepal", "petal length", "petal width", "area")
    assert model.truncate(1).selected_.tolist() == [2]


def test_a_cross_validated_regressor_of_format_1(iris):
    model = mixnorm.load(DATA / "format-1-regressor-cv.mixnorm")
    assert type(model) is mixnorm.ShareBoostRegressorCV
    assert isinstance(model.cv, RepeatedKFold)
    assert model.cv_results_["mean_test_score"] == pytest.approx(
        [0.8575211956828831, 0.8741428697293162, 0.8842602895969964]
    )
    assert model.selected_.tolist() == [2, 1, 0]
    assert model.alpha_.tolist() == [model.alpha] * 3
    assert model.scale == "max"  # which True stood for
    assert model.predict(iris.data[::50, :3].astype(np.float32)) == pytest.approx(
        np.array(
            [
                [0.2163274222215017, -0.08004319140116412],
                [1.4853546851476034, 2.7116082959492998],
                [2.333287023862203, 4.925184135945638],
            ]
        ),
        rel=1e-6,
    )


def test_old_files_have_the_format_they_say():
    files = list(DATA.glob("*.mixnorm"))
    assert len(files) == 2
    for file in files:
        assert file.read_bytes().startswith(b"mixnorm model 1\n")
    # A new format needs files of its own here, and these ones as they are.
    assert FORMAT == 1


def test_a_reader_of_ones_own(tmp_path, model):
    """As the user guide describes the file, with nothing of mixnorm."""
    mixnorm.save(model, tmp_path / "model.mixnorm")
    first, checksum, body = (tmp_path / "model.mixnorm").read_bytes().split(b"\n", 2)
    assert first == b"mixnorm model 1"
    assert hashlib.sha256(body).hexdigest().encode() == checksum
    length, _, rest = body.partition(b"\n")
    document, rest = json.loads(rest[: int(length)]), rest[int(length) :]
    arrays = []
    for entry in document["arrays"]:
        size = int(np.prod(entry["shape"], dtype=int)) * np.dtype(entry["dtype"]).itemsize
        flat = np.frombuffer(rest[:size], entry["dtype"])
        arrays.append(flat.reshape(entry["shape"], order=entry["order"]))
        rest = rest[size:]
    assert rest == b""
    state = document["model"]["estimator"]["state"]
    last = state["_path"]["dataclass"]["fields"]["rounds"]["tuple"][-1]["dataclass"]["fields"]
    assert last["support"]["tuple"] == model.selected_.tolist()
    weights = arrays[last["weights"]["array"]]
    assert np.array_equal(weights.T, model.coef_[:, model.selected_])
    assert np.array_equal(arrays[last["intercept"]["array"]], model.intercept_)


def test_one_model_makes_one_file(tools, model, content):
    assert tools.packed(model) == content
    assert tools.packed(tools.again(model)) == content
