"""The format itself: files of old are told apart, and anybody can write a reader."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import mixnorm
from mixnorm.exceptions import ModelFileError
from mixnorm.storage.container import FORMAT

DATA = Path(__file__).with_name("data")


def test_old_files_have_the_format_they_say():
    files = list(DATA.glob("*.mixnorm"))
    assert len(files) == 2
    for file in files:
        assert file.read_bytes().startswith(b"mixnorm model 1\n")
    assert FORMAT == 3


@pytest.mark.parametrize("name", ["format-1-classifier", "format-1-regressor-cv"])
def test_files_of_format_1_are_refused(name):
    """Written by mixnorm 0.1.0.dev0 and never changed."""
    said = "format 1 .*older mixnorm; this one reads format 3. Fit the model again and save it, or"
    with pytest.raises(ModelFileError, match=said):
        mixnorm.load(DATA / f"{name}.mixnorm")


def test_a_reader_of_ones_own(tmp_path, model):
    """As the user guide describes the file, with nothing of mixnorm."""
    mixnorm.save(model, tmp_path / "model.mixnorm")
    first, checksum, body = (tmp_path / "model.mixnorm").read_bytes().split(b"\n", 2)
    assert first == b"mixnorm model 3"
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
    path = state["model_"]["dataclass"]["fields"]["path"]["dataclass"]["fields"]
    last = path["rounds"]["tuple"][-1]["dataclass"]["fields"]
    assert last["support"]["tuple"] == model.selected_.tolist()
    weights = arrays[last["weights"]["array"]]
    assert np.array_equal(weights.T, model.coef_[:, model.selected_])
    assert np.array_equal(arrays[last["intercept"]["array"]], model.intercept_)


def test_one_model_makes_one_file(tools, model, content):
    assert tools.packed(model) == content
    assert tools.packed(tools.again(model)) == content
