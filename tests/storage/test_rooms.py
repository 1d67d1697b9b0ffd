"""What other rooms add is stored without touching this one: estimators and dataclasses."""

import dataclasses
import sys
import types
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

import mixnorm
from mixnorm import ShareBoostClassifier, estimators
from mixnorm.exceptions import ModelFileError
from mixnorm.pools import Columns
from mixnorm.storage.hints import fits


@dataclasses.dataclass(frozen=True)
class Plan:
    name: str
    levels: tuple[str, ...] = ()
    style: Literal["plain", "comma"] = "plain"
    kind: ClassVar[str] = "plan"


@dataclasses.dataclass(slots=True)
class Slotted:
    values: np.ndarray
    plans: list[Plan]


@dataclasses.dataclass
class Model:
    target: str
    estimator: Any
    plans: tuple[Plan, ...] = ()
    more: dict[Any, Any] = dataclasses.field(default_factory=dict)
    slotted: Slotted | None = None
    count: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        self.count = len(self.plans)

    def predict(self, X):
        return self.estimator.predict(X)

    @cached_property
    def names(self):
        return [plan.name for plan in self.plans]


@pytest.fixture
def room(monkeypatch):
    """A room ``mixnorm.tables`` that exports the classes above."""
    module = types.ModuleType("mixnorm.tables")
    module.__all__ = ["Model", "Plan", "Slotted", "helper"]
    module.helper = len
    for kind in (Model, Plan, Slotted):
        setattr(module, kind.__name__, kind)
        monkeypatch.setattr(kind, "__module__", "mixnorm.tables.model")
    monkeypatch.setitem(sys.modules, "mixnorm.tables", module)
    return module


@pytest.fixture
def table_model(room, model):
    plans = (Plan("a", ("x", "y"), "comma"), Plan("b"))
    slotted = Slotted(np.arange(3.0), [plans[1]])
    return Model("digit", model, plans, {"score": 0.5, 3: [None, np.float32(1)]}, slotted)


def test_dataclasses(tools, tmp_path, table_model, digits):
    X, _ = digits
    assert table_model.names == ["a", "b"]  # kept by the property; no field, and not stored
    table_model.count = 7
    mixnorm.save(table_model, tmp_path / "model.mixnorm")
    found = mixnorm.load(tmp_path / "model.mixnorm")
    assert type(found) is Model
    assert found.plans == table_model.plans
    assert found.count == 7
    assert found.more == table_model.more
    assert np.array_equal(found.slotted.values, np.arange(3.0))
    assert found.slotted.plans == [Plan("b")]
    assert tools.same(found.predict(X), table_model.predict(X))
    assert "names" not in vars(found)


def test_only_models_are_saved_alone(tmp_path, room):
    with pytest.raises(ModelFileError, match="Cannot store a Plan"):
        mixnorm.save(Plan("a"), tmp_path / "model.mixnorm")


def test_a_model_with_an_unfitted_estimator(tools, table_model):
    table_model.estimator = ShareBoostClassifier(3, loss="logistic")
    found = tools.again(table_model)
    assert found.estimator.get_params() == table_model.estimator.get_params()
    assert not hasattr(found.estimator, "model_")


def test_attributes_that_are_no_fields_are_refused(tmp_path, table_model):
    table_model.extra = 1
    with pytest.raises(ModelFileError, match="attribute 'extra' is not a field; make it one"):
        mixnorm.save(table_model, tmp_path / "model.mixnorm")


def test_a_place_deep_inside_is_named(tmp_path, table_model):
    table_model.more["deep"] = {"er": [object()]}
    with pytest.raises(ModelFileError, match=r"Cannot store Model\.more\['deep'\]\['er'\] = <obj"):
        mixnorm.save(table_model, tmp_path / "model.mixnorm")
    table_model.more = {}
    table_model.estimator = ShareBoostClassifier(random_state=np.random.RandomState(0))
    with pytest.raises(ModelFileError, match=r"Cannot store Model\.estimator\.random_state = "):
        mixnorm.save(table_model, tmp_path / "model.mixnorm")


@pytest.mark.parametrize(
    ("field", "node", "said"),
    [
        ("target", 5, "Model.target must be <class 'str'>"),
        ("plans", [], "Model.plans must be tuple"),
        ("plans", {"tuple": ["a"]}, "Model.plans must be tuple"),
        ("more", [], "Model.more must be dict"),
        ("count", 1.5, "Model.count must be <class 'int'>"),
        ("slotted", {"tuple": []}, "Model.slotted must be"),
        ("unknown", 1, "Model has no 'unknown'"),
        ("names", [], "Model has no 'names'"),
        ("__class__", "x", "Model has no '__class__'"),
        ("predict", "x", "Model has no 'predict'"),
        ("target", "<gone>", "target"),
    ],
)
def test_hostile_fields(tools, table_model, field, node, said):
    table_model.more, table_model.slotted = {"a": 1}, None
    document, raw = tools.opened(tools.packed(table_model))
    place = ("model", "dataclass", "fields", field)
    with pytest.raises(ModelFileError, match=said):
        tools.read(tools.forged(tools.edited(document, (place, node)), raw))


def test_missing_fields_take_their_defaults(tools, table_model):
    document, raw = tools.opened(tools.packed(dataclasses.replace(table_model, slotted=None)))
    place = ("model", "dataclass", "fields", "more")
    found = tools.read(tools.forged(tools.edited(document, (place, tools.GONE)), raw))
    assert found.more == {}


def test_a_dataclass_may_check_itself(tools, table_model, monkeypatch):
    def check(self):
        if self.target == "wrong":
            raise KeyError("the target does not fit")

    monkeypatch.setattr(Model, "_check_stored", check, raising=False)
    assert tools.again(table_model).target == "digit"
    document, raw = tools.opened(tools.packed(table_model))
    place = ("model", "dataclass", "fields", "target")
    with pytest.raises(ModelFileError, match="the target does not fit"):
        tools.read(tools.forged(tools.edited(document, (place, "wrong")), raw))


def test_memory_is_counted_over_all_estimators(tools, table_model, model):
    table_model.more = {"second": model}
    size = 8 * 64 * 10
    content = tools.packed(table_model)
    assert tools.read(content, max_bytes=3 * size).more["second"].coef_.shape == (10, 64)
    with pytest.raises(ModelFileError, match="max_bytes"):
        tools.read(content, max_bytes=size)


@dataclasses.dataclass
class Unresolved:
    table: "nowhere.DataFrame"  # noqa: F821  # as where only a type checker imports pandas
    width: int = 0


def test_annotations_that_cannot_be_resolved_check_nothing(tools, room, table_model, monkeypatch):
    room.__all__.append("Unresolved")
    room.Unresolved = Unresolved
    monkeypatch.setattr(Unresolved, "__module__", "mixnorm.tables.model")
    table_model.more = {"a": Unresolved([1, 2], "wide")}
    assert tools.again(table_model).more == table_model.more


def test_a_table_model(tmp_path):
    """The real room, where it is there."""
    tables = pytest.importorskip("mixnorm.tables")
    frame = load_iris(as_frame=True).frame
    labels = frame.pop("target")
    frame["side"] = np.where(labels > 1, "left", "right")
    frame["day"] = pd.date_range("2020-01-01", periods=len(frame))
    encoder = tables.TableEncoder.plan(frame)
    pool = Columns(groups=encoder.groups)
    fitted = ShareBoostClassifier(3, pool=pool).fit(encoder.encode(frame)[0], labels)
    model = tables.TableModel("kind", "classification", encoder, fitted, {"rows": 150, "at": None})
    mixnorm.save(model, tmp_path / "model.mixnorm")
    found = mixnorm.load(tmp_path / "model.mixnorm")
    assert found.encoder == model.encoder
    assert found.facts == model.facts
    assert np.array_equal(found.predict(frame), model.predict(frame))


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, int, True),
        (np.int32(1), int, True),
        (True, int, False),
        (1.5, int, False),
        (1, float, True),
        (np.float32(1), float, True),
        ("1", float, False),
        (np.True_, bool, True),
        (1, bool, False),
        (None, None, True),
        ("a", str | None, True),
        (1, str | None, False),
        ([1], list[int], True),
        (["a"], list[int], False),
        ((1, "a"), tuple[int, str], True),
        ((1,), tuple[int, str], False),
        ((), tuple[int, ...], True),
        ({"a": 1}, dict[str, int], True),
        ({1: 1}, dict[str, int], False),
        ("plain", Literal["plain"], True),
        ("other", Literal["plain"], False),
        (True, Literal[1], False),
        (object(), Any, True),
        (Plan("a"), Plan, True),
        ("a", Plan, False),
        (np.arange(3), np.ndarray, True),
        ([1], np.ndarray, False),
        (3, "not an annotation", True),
    ],
)
def test_fits(value, hint, expected):
    assert fits(value, hint) is expected


# --- an estimator that declares nothing for storage


class Nearest(BaseEstimator):
    """Learns one number."""

    def fit(self, X, y):
        self.centre_ = float(X.mean())
        return self


@pytest.fixture
def nearest(monkeypatch, digits):
    monkeypatch.setattr(Nearest, "__module__", "mixnorm.estimators._nearest")
    monkeypatch.setattr(estimators, "Nearest", Nearest, raising=False)
    monkeypatch.setattr(estimators, "__all__", [*estimators.__all__, "Nearest"])
    return Nearest().fit(*digits)


def test_an_estimator_that_declares_nothing_is_refused(tools, nearest):
    """What a fit leaves must be declared, with its type, so that it can be checked."""
    with pytest.raises(ModelFileError, match="'_resume' of Nearest is missing"):
        tools.packed(nearest)
