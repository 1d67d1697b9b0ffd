r"""The bytes of a model file: a first line, a checksum, one JSON document, and raw arrays.

::

    mixnorm model 3\n
    <SHA-256 of all that follows, in hexadecimal>\n
    <length of the JSON document in bytes>\n
    <JSON document><array 0><array 1>...

This module does not know what the document means, except for its list of arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from mixnorm.exceptions import ModelFileError

FORMAT = 3

_MAGIC = b"mixnorm model "
_FIRST_LINE = re.compile(rb"mixnorm model ([1-9][0-9]{0,8})\n")
_LONGEST_FIRST_LINE = 32
_CHECKSUM = re.compile(rb"[0-9a-f]{64}\n")
_LENGTH = re.compile(rb"([1-9][0-9]{0,17})\n")
_UNIT = r"(?:[1-9][0-9]{0,8})?(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)"
# A closed list, without objects and structures, whatever else ``numpy.dtype`` would accept.
_DTYPE = re.compile(rf"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{{0,8}}|<[mM]8(?:\[{_UNIT}\])?")
_LAST_CHARACTER = 0x10FFFF

_ANOTHER_COPY = "Get another copy of the file, or save the model again."


# --- writing


def plain(array: np.ndarray) -> np.ndarray | None:
    """Return an array as it is stored, contiguous and little-endian; None if it cannot be."""
    # Truth values, integers, floats, texts and times. Objects would have to be pickled, and a
    # pickle can run code.
    if array.dtype.kind not in "biufUmM":
        return None
    if array.dtype.str.endswith("U0"):  # NumPy itself would make it one character wide
        array = array.astype("<U1")
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not _DTYPE.fullmatch(array.dtype.str):
        return None
    # Fortran order is kept: sums in another order would change the last bit of a prediction.
    return array if array.flags.f_contiguous else np.asarray(array, order="C")


def pack(document: dict[str, Any], arrays: Sequence[np.ndarray]) -> list[bytes | memoryview]:
    """Return the file in parts; ``arrays`` are as :func:`plain` returns them."""
    document = {**document, "arrays": [_describe(array) for array in arrays]}
    # ASCII and no spaces: nothing in the text depends on the machine.
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    body: list[bytes | memoryview] = [b"%d\n" % len(text), text]
    body += [_raw(array) for array in arrays]
    # Part by part, so that no second copy of the arrays is made.
    checksum = hashlib.sha256()
    for part in body:
        checksum.update(part)
    return [_MAGIC + b"%d\n" % FORMAT, checksum.hexdigest().encode() + b"\n", *body]


def _describe(array: np.ndarray) -> dict[str, Any]:
    # An array of one axis is contiguous in both ways; C is then the one that is written.
    order = "C" if array.flags.c_contiguous else "F"
    return {"dtype": array.dtype.str, "shape": list(array.shape), "order": order}


def _raw(array: np.ndarray) -> memoryview:
    flat = array.reshape(-1, order="C" if array.flags.c_contiguous else "F")
    return flat.view(np.uint8).data


# --- reading


def unpack(stream: BinaryIO, name: str) -> tuple[Any, memoryview]:
    """Check the checksum, and return the document of a file and the bytes of its arrays.

    A foreign file is refused after its first bytes, however large it is.
    """
    _check_first_line(stream.readline(_LONGEST_FIRST_LINE), name)
    # 64 hexadecimal digits and the end of the line. If they are not there, the rest is not read at
    # all.
    promised = stream.read(65)
    body = stream.read() if _CHECKSUM.fullmatch(promised) else b""
    # The checksum finds damage, not malice: who changes a file can write a new one. All that
    # follows must hold for any content.
    if hashlib.sha256(body).hexdigest().encode() + b"\n" != promised:
        raise ModelFileError(
            f"{name} is damaged or incomplete: its content does not match its checksum. "
            f"{_ANOTHER_COPY}"
        )
    length = _LENGTH.match(body)
    if length is None:
        raise ModelFileError(f"{name} does not say how long its JSON document is. {_ANOTHER_COPY}")
    start = length.end()
    end = start + int(length[1])
    if end > len(body):
        raise ModelFileError(
            f"{name} says that its JSON document has {int(length[1])} bytes, but only "
            f"{len(body) - start} follow. {_ANOTHER_COPY}"
        )
    return _parse(body[start:end], name), memoryview(body)[end:]


def _check_first_line(line: bytes, name: str) -> None:
    match = _FIRST_LINE.fullmatch(line)
    if match is None:
        raise ModelFileError(f"{name} {_describe_foreign(line)}")
    version = int(match[1])
    if version == FORMAT:
        return
    writer, remedy = "an older", "Fit the model again and save it, or load it with that version."
    if version > FORMAT:
        writer, remedy = "a newer", "Upgrade with `pip install --upgrade mixnorm`."
    raise ModelFileError(
        f"{name} has format {version} and was written by {writer} mixnorm; this one reads format "
        f"{FORMAT}. {remedy}"
    )


def _describe_foreign(line: bytes) -> str:
    """Say what kind of file this may be, given its first line."""
    if line.startswith(_MAGIC):
        return f"is damaged: its first line is not whole. {_ANOTHER_COPY}"
    if not line:
        return f"is not a mixnorm model file: it is empty. {_ANOTHER_COPY}"
    no_model = "is not a mixnorm model file; these are written by mixnorm.save."
    if line[0] == 0x80:
        return f"{no_model} It looks like a pickle, which can run code, and was not opened."
    if line.startswith(b"PK"):
        return f"{no_model} It looks like a zip archive (skops files are such), and was not opened."
    return no_model


def _parse(text: bytes, name: str) -> Any:
    """Return a JSON document: ASCII, no key twice, no NaN."""
    try:
        return json.loads(
            # Python keeps the last of two equal keys. Another reader could keep the first, and two
            # readers must not see two models in one file.
            text.decode("ascii"),
            object_pairs_hook=_refuse_repeats,
            parse_constant=_refuse_constant,
        )
    # A file of a million brackets exhausts Python's stack.
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{name} holds no readable JSON document: {error}. {_ANOTHER_COPY}"
        ) from error


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def read_arrays(described: object, raw: memoryview) -> list[np.ndarray]:
    """Return the arrays, which must fill the bytes without gaps."""
    if not isinstance(described, list):
        raise ModelFileError("its arrays are not described by a list")
    arrays, start = [], 0
    for entry in described:
        array = _array(entry, raw[start:])
        arrays.append(array)
        start += array.nbytes
    if start != len(raw):
        raise ModelFileError(f"its arrays take {start} bytes, but it has {len(raw)} for them")
    return arrays


def _array(entry: object, raw: memoryview) -> np.ndarray:
    """Return a copy of the array at the beginning of ``raw``."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "order"}:
        raise ModelFileError("an array is not described by its dtype, shape and order")
    shape, order = check_shape(entry["shape"]), entry["order"]
    if order not in ("C", "F"):
        raise ModelFileError(f"order {order!r} of an array is neither 'C' nor 'F'")
    dtype = check_dtype(entry["dtype"])
    # Python's whole numbers do not overflow, and no memory has been allocated yet.
    if math.prod(shape) * dtype.itemsize > len(raw):
        raise ModelFileError(f"an array of shape {shape} and {dtype} runs over the end of the file")
    # A copy, because the bytes are shared by all arrays and may not be written to.
    stored: np.ndarray = np.ndarray(shape, dtype, buffer=raw, order=order)
    return check_content(stored.astype(dtype.newbyteorder("="), order="K", copy=True))


def check_shape(shape: object) -> tuple[int, ...]:
    """Return a shape read from a file, or raise."""
    if not isinstance(shape, list) or len(shape) > 32:
        raise ModelFileError("the shape of an array is not a list of at most 32 lengths")
    # ``type`` and not ``isinstance``: True is an int, but no length.
    if any(type(length) is not int or length < 0 for length in shape):
        raise ModelFileError("a shape has a length that is not a whole number of at least zero")
    return tuple(shape)


def check_dtype(name: object) -> np.dtype[Any]:
    """Return a dtype read from a file, or raise."""
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise ModelFileError(f"{str(name)[:40]!r} is not a dtype that a model file can hold")
    return np.dtype(name)


def check_content(array: np.ndarray) -> np.ndarray:
    """Return the array; raise if some of its bytes are not a truth value or a character."""
    # A byte that is neither 0 nor 1 as a truth value, or a code beyond Unicode as a character, can
    # crash NumPy later.
    flat = array.reshape(-1, order="A")
    if array.dtype.kind == "b" and np.any(flat.view(np.uint8) > 1):
        raise ModelFileError("an array of truth values holds something else")
    if array.dtype.kind == "U" and np.any(flat.view(np.uint32) > _LAST_CHARACTER):
        raise ModelFileError("an array of texts holds a code that is not a character")
    return array
