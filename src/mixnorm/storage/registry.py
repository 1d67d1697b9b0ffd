"""The closed list of classes that a model file may name; none is imported by path."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module

from sklearn.base import BaseEstimator

from mixnorm.exceptions import ModelFileError

ESTIMATORS = "estimators"
MODELS = "tables"  # the room whose dataclasses may stand for a whole model, as estimators do
_PARTS = (
    "engines.greedy",
    "engines.mirror",
    "estimators.online",
    "kernels",
    "losses",
    "models",
    "norms",
    "pools",
    "selection",
    MODELS,
)
_PACKAGE = __name__.partition(".")[0]

#: Public splitters of scikit-learn, which the ``cv`` of an estimator may be.
SPLITTERS = (
    "GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "LeaveOneOut",
    "LeavePGroupsOut", "LeavePOut", "PredefinedSplit", "RepeatedKFold", "RepeatedStratifiedKFold",
    "ShuffleSplit", "StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)  # fmt: skip


def estimator_class(name: object) -> type:
    """Return the estimator that a file calls ``name``."""
    return _look_up(name, _classes_of(ESTIMATORS), "estimator")


def dataclass_class(name: object) -> type:
    """Return the dataclass that a file calls ``name``, its room included: ``losses.Squared``."""
    # The room is compared with the list before it is imported: a file cannot make Python import a
    # module of its choice.
    room, _, short = name.rpartition(".") if isinstance(name, str) else ("", "", name)
    return _look_up(short, _classes_of(room) if room in _PARTS else {}, "part of a model", name)


def splitter_class(name: object) -> type:
    """Return scikit-learn's splitter of that name."""
    selection = import_module("sklearn.model_selection")
    known = {name: getattr(selection, name) for name in SPLITTERS}
    return _look_up(name, known, "splitter")


def name_of(kind: type) -> tuple[str, str] | None:
    """Return the kind of node and the name under which a class is stored; None if it is not."""
    module, name = kind.__module__, kind.__name__
    if module.startswith("sklearn.") and name in SPLITTERS and splitter_class(name) is kind:
        return "splitter", name
    for room in (ESTIMATORS, *_PARTS):
        # Only the very class that the room exports. A subclass of a user has the same name perhaps,
        # but not the same code.
        home = f"{_PACKAGE}.{room}"
        if (module == home or module.startswith(f"{home}.")) and _classes_of(room).get(
            name
        ) is kind:
            return ("estimator", name) if room == ESTIMATORS else ("dataclass", f"{room}.{name}")
    return None


def is_model(value: object) -> bool:
    """Tell whether ``value`` can be saved on its own: an estimator, or a model made of one."""
    kind, name = name_of(type(value)) or ("", "")
    predicts = getattr(value, "predict", None) is not None
    return kind == "estimator" or (name.startswith(f"{MODELS}.") and predicts)


def _look_up(short: object, known: dict[str, type], what: str, name: object = None) -> type:
    if not isinstance(short, str) or short not in known:
        raise ModelFileError(
            f"it names {name or short!r}, and this mixnorm has no {what} of that name"
        )
    return known[short]


def _classes_of(room: str) -> dict[str, type]:
    """Return the classes of a room that can be stored: its public estimators or dataclasses."""
    module = import_module(f"{_PACKAGE}.{room}")
    # Rooms load their names late, so that ``vars`` would not show them all.
    exported = {name: getattr(module, name) for name in module.__all__}
    classes = {name: value for name, value in exported.items() if isinstance(value, type)}
    if room == ESTIMATORS:
        return {name: kind for name, kind in classes.items() if issubclass(kind, BaseEstimator)}
    return {name: kind for name, kind in classes.items() if is_dataclass(kind)}
