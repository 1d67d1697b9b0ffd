"""From a model to the JSON document and the arrays of a model file."""

from __future__ import annotations

import inspect
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mixnorm.exceptions import ModelFileError
from mixnorm.storage.container import plain
from mixnorm.storage.hints import fits, hints_of
from mixnorm.storage.registry import name_of

#: The deepest nesting of containers and objects, which also stops a list that contains itself.
DEEPEST = 100
#: Whole numbers in this range are plain JSON numbers, larger ones hexadecimal text.
LEAST_INTEGER, LARGEST_INTEGER = -(2**63), 2**64 - 1

#: Attributes that a fit or set_output leaves, apart from what scikit-learn keeps about columns.
FITTED = ("model_", "report_", "search_", "_resume", "_sklearn_output_config")

_SURROGATE = re.compile("[\ud800-\udfff]")
# Errors show the value that cannot be stored, which may be a table of gigabytes.
_brief = reprlib.Repr()
_brief.maxother = _brief.maxstring = 60


class Encoder:
    """Turns values into JSON nodes, and collects the arrays among them in ``arrays``.

    None, truth values, numbers, texts and lists stay as they are. All other values become an object
    with one key, their kind, such as ``{"tuple": [...]}`` or ``{"array": 3}``.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._place: list[str | list[Any]] = []  # names, and the keys of dictionaries in lists
        self._depth = 0

    def node(self, value: object) -> Any:
        """Return the JSON node of a value."""
        # The exact type: a subclass may carry more than the file would keep.
        kind = type(value)
        if value is None or kind is bool:
            return value
        encode = self._PLAIN.get(kind)
        if encode is not None:
            return encode(self, value)
        with self._deeper():
            encode = self._NESTED.get(kind)
            if encode is not None:
                return encode(self, value)
            if isinstance(value, np.ndarray):
                return self._array(value)
            if isinstance(value, np.generic):
                return self._scalar(value)
            return self._object(value)

    # --- plain values

    def _integer(self, value: int) -> Any:
        if LEAST_INTEGER <= value <= LARGEST_INTEGER:
            return value
        return {"int": hex(value)}  # decimal text is slow, and limited to some thousand digits

    def _float(self, value: float) -> Any:
        # Infinity and NaN, which JSON does not have, give NaN here.
        if value - value == 0.0:  # finite
            return value
        return {"float": repr(value)}

    def _text(self, value: str) -> Any:
        # JSON would join two halves of a pair, which Python keeps apart.
        if _SURROGATE.search(value):
            return {"str": [ord(character) for character in value]}
        return value

    def _list(self, value: list[Any]) -> Any:
        return [self.node(item) for item in value]

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        return {"tuple": [self.node(item) for item in value]}

    def _dict(self, value: dict[Any, Any]) -> Any:
        pairs = []
        for key, item in value.items():
            with self._inside([key]):
                # Pairs and not a JSON object, whose keys can only be texts.
                pairs.append([self.node(key), self.node(item)])
        return {"dict": pairs}

    # --- NumPy

    def _array(self, value: np.ndarray) -> Any:
        # A masked array or a matrix would come back as something that behaves differently.
        if type(value) not in (np.ndarray, np.memmap):
            raise self._refusal(value, "Turn it into a plain array with numpy.asarray.")
        if value.dtype == object:
            items = [self.node(item) for item in value.reshape(-1).tolist()]
            return {"objects": {"shape": list(value.shape), "items": items}}
        stored = plain(value)
        if stored is None:
            raise self._refusal(
                value,
                f"Its dtype is {value.dtype}; a model file holds truth values, integers, floats of "
                "16 to 64 bits, texts and times. Convert it with astype.",
            )
        self.arrays.append(stored)
        return {"array": len(self.arrays) - 1}

    def _scalar(self, value: np.generic) -> Any:
        stored = plain(np.asarray(value))
        if stored is None:
            raise self._refusal(value, f"Its dtype is {value.dtype}. Convert it with astype.")
        return {"scalar": {"dtype": stored.dtype.str, "bytes": stored.tobytes().hex()}}

    # --- objects

    def _object(self, value: object) -> Any:
        known = name_of(type(value))
        if known is None:
            raise self._refusal(value, _remedy(value))
        kind, name = known
        # Only the outermost object is named; below it, the path of attributes tells the place.
        with self._inside(type(value).__name__ if not self._place else ""):
            return {kind: {"class": name, **self._CONTENT[kind](self, value)}}

    def _estimator(self, model: BaseEstimator) -> dict[str, Any]:
        params = self._encode_items(model.get_params(deep=False))
        try:
            check_is_fitted(model)
        except NotFittedError:
            if self._depth > 1:  # a part of the model, which may be fitted later
                return {"params": params, "state": None}
            raise
        return {"params": params, "state": self._encode_items(state_of_fit(model))}

    def _dataclass(self, value: Any) -> dict[str, Any]:
        # Values that are computed on first use are left out: they follow from the fields.
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        for name in sorted(getattr(value, "__dict__", {}).keys() - own):
            cached = inspect.getattr_static(type(value), name, None)
            if not isinstance(cached, cached_property):
                raise self._refusal(value, f"Its attribute {name!r} is not a field; make it one.")
        return {"fields": self._encode_items(own)}

    def _splitter(self, value: object) -> dict[str, Any]:
        inner = getattr(value, "cvargs", {})  # repeated splitters keep some parameters there
        names = inspect.signature(type(value)).parameters
        params = {name: inner[name] if name in inner else getattr(value, name) for name in names}
        return {"params": self._encode_items(params)}

    def _encode_items(self, content: dict[str, Any]) -> dict[str, Any]:
        nodes = {}
        # Sorted, so that the bytes do not depend on the order in which attributes were set.
        for name, value in sorted(content.items()):  # one model, one file
            with self._inside(f".{name}"):
                nodes[name] = self.node(value)
        return nodes

    # --- the place in the model

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ModelFileError(
                f"Cannot store {self._where}: it holds more than {DEEPEST} values within one "
                "another, or itself. Make it flatter."
            )
        yield
        self._depth -= 1

    @contextmanager
    def _inside(self, place: str | list[Any]) -> Iterator[None]:
        self._place.append(place)
        yield
        self._place.pop()

    @property
    def _where(self) -> str:
        parts = [part if isinstance(part, str) else f"[{_shorten(*part)}]" for part in self._place]
        return "".join(parts) or "the model"

    def _refusal(self, value: object, remedy: str) -> ModelFileError:
        kind = type(value)
        return ModelFileError(
            f"Cannot store {self._where} = {_shorten(value)}: a model file holds no "
            f"{kind.__module__}.{kind.__qualname__}. {remedy}"
        )

    _PLAIN: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {
        int: _integer,
        float: _float,
        str: _text,
    }
    _NESTED: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {
        list: _list,
        tuple: _tuple,
        dict: _dict,
    }
    _CONTENT: ClassVar[dict[str, Callable[[Any, Any], dict[str, Any]]]] = {
        "estimator": _estimator,
        "dataclass": _dataclass,
        "splitter": _splitter,
    }


def hints_of_fit(kind: type) -> dict[str, Any]:
    """Return the declared types of the attributes that a fit leaves on an estimator.

    Properties such as ``model_`` of online learners, computed from the rest, are not among them.
    """
    return {
        name: hint
        for name, hint in hints_of(kind).items()
        if name in FITTED and not isinstance(inspect.getattr_static(kind, name, None), property)
    }


def state_of_fit(model: BaseEstimator) -> dict[str, Any]:
    """Return the attributes of a fitted estimator that a file keeps beside its parameters.

    These are the attributes that its class declares, if they have the declared type.
    """
    hints = hints_of_fit(type(model))
    own = {name: getattr(model, name) for name in hints if getattr(model, name, None) is not None}
    # A user may have replaced an attribute. What does not fit would be refused when the file is
    # read.
    return {name: value for name, value in own.items() if fits(value, hints[name])}


def _shorten(value: object) -> str:
    """Return a value as a short line of text, even if it cannot be printed."""
    try:
        return " ".join(_brief.repr(value).split())
    except Exception:  # an object of the user's, or an integer of more digits than Python prints
        return f"<{type(value).__name__}>"


def _remedy(value: object) -> str:
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return "Set it to a whole number or None; the fitted model stays the same."
    if callable(value) and getattr(value, "get_params", None) is None:
        return (
            "Functions are code, and a model file holds none. Set it to a name or to None; "
            "the fitted model stays the same."
        )
    if isinstance(value, Iterable):
        return "Give a list, a tuple or a NumPy array in its place."
    return (
        "It holds plain values, mixnorm's own objects and scikit-learn's splitters. For objects of "
        "your own use pickle, and open such files only from people you trust."
    )
