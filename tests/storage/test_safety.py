"""A file built to run code does not run it."""

import io
import os
import pickle
import sys
import zipfile

import pytest

import mixnorm
from mixnorm.exceptions import ModelFileError

WATCHED = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.")
seen: list[str] | None = None


def watch(event, _):
    if seen is not None and event.startswith(WATCHED):
        seen.append(event)


sys.addaudithook(watch)  # such a hook stays; it does nothing outside of the fixture below


@pytest.fixture
def marker(tmp_path):
    """A file that a bomb would make. After the test it must not be there, and nothing have run."""
    global seen
    path = tmp_path / "it ran"
    seen = []
    yield path
    ran, seen = seen, None
    assert not path.exists()
    assert ran == []


class Bomb:
    """Pickled, it makes a file on opening."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch '{self.path}'",)


def refused(path):
    with pytest.raises(ModelFileError):
        mixnorm.load(path)


@pytest.fixture
def quiet_dumps():
    """Pickle without being watched: writing a bomb is not what is tested."""

    def dumps(value, protocol):
        global seen
        kept, seen = seen, None
        content = pickle.dumps(value, protocol=protocol)
        seen = kept
        return content

    return dumps


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(tmp_path, marker, quiet_dumps, protocol):
    path = tmp_path / "model.mixnorm"
    path.write_bytes(quiet_dumps(Bomb(marker), protocol))
    refused(path)


def test_the_bomb_works(tmp_path):
    """Else the tests here would show nothing."""
    path = tmp_path / "it ran"
    pickle.loads(pickle.dumps(Bomb(path)))
    assert path.exists()


def test_the_watch_works(marker):
    global seen
    os.system("true")
    assert seen == ["os.system"]
    seen = []


def test_archives(tmp_path, marker, quiet_dumps):
    path = tmp_path / "model.mixnorm"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", quiet_dumps(Bomb(marker), 4))
    refused(path)


def test_a_pickle_behind_our_first_lines(tmp_path, tools, marker, quiet_dumps):
    path = tmp_path / "model.mixnorm"
    bomb = quiet_dumps(Bomb(marker), 4)
    for content in (
        b"mixnorm model 3\n" + bomb,
        tools.sealed(bomb),
        tools.sealed(b"%d\n%s" % (len(bomb), bomb)),
    ):
        path.write_bytes(content)
        refused(path)


def test_an_array_of_objects_with_a_pickle(tmp_path, tools, marker, quiet_dumps, content):
    document, raw = tools.opened(content)
    bomb = quiet_dumps(Bomb(marker), 4)
    stream = io.BytesIO()
    stream.write(bomb)
    for dtype in ("|O", "O", "object", "<V8"):
        entry = {"dtype": dtype, "shape": [len(bomb)], "order": "C"}
        more = tools.edited(document)
        more["arrays"].append(entry)
        path = tmp_path / "model.mixnorm"
        path.write_bytes(tools.forged(more, raw + bomb))
        refused(path)


NAMES = [
    "os.system",
    "posix.system",
    "builtins.eval",
    "builtins.exec",
    "builtins.__import__",
    "subprocess.Popen",
    "pickle.loads",
    "sklearn.base.clone",
    "joblib.load",
    "numpy.load",
    "engines.greedy.select",
    "engines.greedy.replace",
    "engines.greedy.Outcome",
    "engines.greedy.Problem",
    "engines.greedy.time.sleep",
    "models.check_floats",
    "models.Predictor",
    "models.path.Path",
    "selection.choose",
    "pools.working_dtype",
    "losses._base.Loss",
    "losses.Loss",
    "storage.load",
    "datasets.load",
    "estimators.ShareBoostClassifier",
    "mixnorm.estimators.ShareBoostClassifier",
    "..os.system",
    ".system",
    "os",
    "",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["dataclass", "estimator", "splitter"])
def test_names_of_other_things(tmp_path, tools, marker, content, name, kind):
    command = f"touch '{marker}'"
    arguments = {"command": command, "args": command, "cmd": command, "source": command}
    inside = {"dataclass": {"fields": arguments}, "splitter": {"params": arguments}}.get(
        kind, {"params": arguments, "state": None}
    )
    node = {kind: {"class": name, **inside}}
    document, raw = tools.opened(content)
    path = tmp_path / "model.mixnorm"
    for place in (("model",), ("model", "estimator", "params", "loss")):
        path.write_bytes(tools.forged(tools.edited(document, (place, node)), raw))
        with pytest.raises(ModelFileError, match="this mixnorm has no .* of that name"):
            mixnorm.load(path)


@pytest.mark.parametrize("name", ["__class__", "__dict__", "__init__", "__setstate__", "__del__"])
@pytest.mark.parametrize("part", ["state", "params", "fields"])
def test_names_of_python(tmp_path, tools, marker, content, name, part):
    place = ("model", "estimator", part)
    if part == "fields":
        place = ("model", "estimator", "state", "model_", "dataclass", "fields")
    value = {"dataclass": {"class": "losses.Squared", "fields": {}}}
    document, raw = tools.opened(content)
    path = tmp_path / "model.mixnorm"
    path.write_bytes(tools.forged(tools.edited(document, ((*place, name), value)), raw))
    with pytest.raises(ModelFileError, match=name):
        mixnorm.load(path)


def test_loading_neither_pickles_nor_imports(tmp_path, marker, model, monkeypatch):
    # The estimator itself compares its settings by their pickles, which opens none.
    mixnorm.save(model, tmp_path / "model.mixnorm")
    mixnorm.load(tmp_path / "model.mixnorm")  # imports what is needed
    before = set(sys.modules)

    def forbidden(*_):
        raise RuntimeError("nothing is unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    mixnorm.load(tmp_path / "model.mixnorm")
    assert set(sys.modules) == before
