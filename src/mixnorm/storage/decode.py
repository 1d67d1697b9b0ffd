"""From the JSON document and the arrays of a model file to a model.

The file may come from anybody. Values are built from a closed set of nodes, classes come from
:mod:`mixnorm.storage.registry`, and everything unexpected raises an error.
"""

from __future__ import annotations

import inspect
import re
import reprlib
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixnorm.exceptions import ModelFileError
from mixnorm.storage.container import check_content, check_dtype, check_shape
from mixnorm.storage.encode import DEEPEST, hints_of_fit
from mixnorm.storage.hints import check_fields, fits
from mixnorm.storage.registry import dataclass_class, estimator_class, splitter_class

_HEXADECIMAL = re.compile(r"-?0x[0-9a-f]+")
_NOT_FINITE = ("nan", "inf", "-inf")


class Decoder:
    """Turns JSON nodes back into values.

    Parameters
    ----------
    arrays : list of ndarray
        The arrays of the file. Each is one value and is used once, so that a small file cannot
        become many copies of a large array.
    max_bytes : int
        Most memory that all estimators together may allocate for what they rebuild.
    """

    def __init__(self, arrays: list[np.ndarray], max_bytes: int) -> None:
        # An array that was used becomes None.
        self._arrays: list[np.ndarray | None] = [*arrays]
        self._left = max_bytes
        self._depth = 0

    def value(self, node: Any) -> Any:
        """Return the value of a JSON node."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        # Before a nested value is opened, so that the check comes before Python's own recursion
        # limit.
        self._depth += 1
        if self._depth > DEEPEST:
            raise ModelFileError(f"it holds more than {DEEPEST} values within one another")
        found = (
            [self.value(item) for item in node] if type(node) is list else self._tagged_value(node)
        )
        self._depth -= 1
        return found

    def finish(self) -> None:
        """Raise if the file has an array that no value uses."""
        if any(array is not None for array in self._arrays):
            raise ModelFileError("it has an array that belongs to nothing")

    def _tagged_value(self, node: dict[str, Any]) -> Any:
        if len(node) != 1:
            raise ModelFileError(f"a value has {len(node)} kinds instead of one")
        # The kinds are a table of methods: no name from the file is ever looked up as an attribute.
        [(kind, content)] = node.items()
        if kind not in self._KINDS:
            raise ModelFileError(f"it holds a value of the unknown kind {reprlib.repr(kind)}")
        return self._KINDS[kind](self, content)

    # --- plain values

    def _integer(self, text: object) -> int:
        # int() reads long decimal text in quadratic time, hexadecimal text in linear time.
        if not isinstance(text, str) or not _HEXADECIMAL.fullmatch(text):
            raise ModelFileError("a large integer is not written in hexadecimal digits")
        return int(text, 16)

    def _float(self, text: object) -> float:
        if text not in _NOT_FINITE:
            raise ModelFileError(f"{reprlib.repr(text)} is neither nan nor infinite")
        return float(text)

    def _text(self, codes: object) -> str:
        return "".join(map(chr, _expect(list, codes)))

    def _tuple(self, items: object) -> tuple[Any, ...]:
        return tuple([self.value(item) for item in _expect(list, items)])

    def _dict(self, pairs: Any) -> dict[Any, Any]:
        entries = [_expect(list, pair) for pair in _expect(list, pairs)]
        found = {self.value(key): self.value(item) for key, item in entries}
        if len(found) != len(pairs):
            raise ModelFileError("a dictionary has one key twice")
        return found

    # --- NumPy

    def _array(self, index: object) -> np.ndarray:
        if type(index) is not int or not 0 <= index < len(self._arrays):
            raise ModelFileError(f"it names array {reprlib.repr(index)}, which it does not hold")
        array, self._arrays[index] = self._arrays[index], None
        if array is None:
            raise ModelFileError(f"array {index} stands for two values")
        return array

    def _objects(self, content: object) -> np.ndarray:
        shape, items = _parts(content, "shape", "items")
        found = [self.value(item) for item in _expect(list, items)]
        # numpy.array would look into the items and could make a table of them.
        array = np.fromiter(found, dtype=object, count=len(found))  # does not look into the items
        return array.reshape(check_shape(shape))

    def _scalar(self, content: object) -> np.generic:
        name, digits = _parts(content, "dtype", "bytes")
        # The length is compared before NumPy sees the bytes.
        dtype, raw = check_dtype(name), bytes.fromhex(_expect(str, digits))
        if len(raw) != dtype.itemsize:
            raise ModelFileError(f"a scalar of {dtype} has {len(raw)} bytes")
        stored = np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="))
        return check_content(stored)[0]

    # --- objects

    def _estimator(self, content: object) -> Any:
        name, params, state = _parts(content, "class", "params", "state")
        kind = estimator_class(name)
        # Through the constructor, as a user would make it: parameters that the class does not have
        # are refused.
        model = kind(**self._decode_items(params, set(inspect.signature(kind).parameters), kind))
        if state is not None:
            # What was rebuilt is taken from the allowance of the whole file, or many small
            # estimators could together take more than ``max_bytes``.
            self._left -= restore(model, self._decode_items(state, None, kind), self._left)
        return model

    def _dataclass(self, content: object) -> Any:
        name, stored = _parts(content, "class", "fields")
        kind = dataclass_class(name)
        values = self._decode_items(stored, {field.name for field in fields(kind)}, kind)
        check_fields(kind, values)
        # Fields that the constructor does not take are set after it, as in the original.
        late = {field.name for field in fields(kind) if not field.init}
        made = kind(**{name: value for name, value in values.items() if name not in late})
        for name in late & values.keys():
            # A frozen dataclass has no other way; its own check follows below.
            object.__setattr__(made, name, values[name])  # frozen ones too
        check = getattr(made, "_check_stored", None)
        if check is not None:
            check()
        return made

    def _splitter(self, content: object) -> Any:
        name, params = _parts(content, "class", "params")
        kind = splitter_class(name)
        return kind(**self._decode_items(params, set(inspect.signature(kind).parameters), kind))

    def _decode_items(self, content: Any, allowed: set[str] | None, kind: type) -> dict[str, Any]:
        """Return values by name; missing ones, unknown to an older mixnorm, keep defaults."""
        for name in _expect(dict, content):
            if allowed is not None and name not in allowed:
                raise ModelFileError(f"{kind.__name__} has no {reprlib.repr(name)} here")
        return {name: self.value(node) for name, node in content.items()}

    _KINDS: ClassVar[dict[str, Callable[[Any, Any], Any]]] = {
        "array": _array,
        "dataclass": _dataclass,
        "dict": _dict,
        "estimator": _estimator,
        "float": _float,
        "int": _integer,
        "objects": _objects,
        "scalar": _scalar,
        "splitter": _splitter,
        "str": _text,
        "tuple": _tuple,
    }


def restore(estimator: Any, state: dict[str, Any], max_bytes: int) -> int:
    """Give an estimator with parameters the attributes of a fit.

    Each value must have the type that the class declares. Returns how many bytes the estimator
    may allocate for values that are not in the file.
    """
    name, hints = type(estimator).__name__, hints_of_fit(type(estimator))
    main = "model_" if "model_" in hints else "_resume"  # online learners compute model_ from it
    # A private attribute may be missing, which means that this fit cannot be continued.
    needed = {main} | {part for part in hints if not part.startswith("_")}
    for part in needed | state.keys():
        if part not in hints or part not in state or not fits(state[part], hints[part]):
            raise ModelFileError(f"{reprlib.repr(part)} of {name} is missing, or of another kind")
    learned: Any = state[main]
    resume: Any = state.get("_resume")
    # An online learner computes its outputs from the state, so the state must be sound before the
    # estimator's own check may look at it.
    if learned is resume:  # its outputs follow from the rest, which must be sound
        learned.check(max_bytes)
    estimator.__mixnorm_check__(learned)
    if learned is not resume:
        learned.check(max_bytes)
        check = getattr(resume, "check", None)
        if check is not None:
            check(learned)
    # Attributes are set only now: an estimator that fails a check is never seen half restored.
    for part, value in {**state, "n_features_in_": learned.inputs.n_features}.items():
        setattr(estimator, part, value)
    if learned.inputs.names is not None:
        estimator.feature_names_in_ = learned.inputs.name_array
    check_is_fitted(estimator)
    # ``coef_`` in float64, the largest array that is not in the file but follows from it.
    return 8 * int(learned.inputs.n_features) * int(learned.outputs.n_outputs)


def _expect(kind: type, content: object) -> Any:
    if type(content) is not kind:
        raise ModelFileError(f"{reprlib.repr(content)} stands where a {kind.__name__} must be")
    return content


def _parts(content: Any, *names: str) -> list[Any]:
    """Return the entries of an object; raise unless it has exactly these names."""
    if _expect(dict, content).keys() != set(names):
        raise ModelFileError(f"a value has the entries {sorted(content)[:5]} instead of {names}")
    return [content[name] for name in names]
