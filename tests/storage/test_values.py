"""Every value that a model may hold comes back as it was, in type and in every bit."""

import dataclasses
import io
import math
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from mixnorm import kernels, losses, norms, pools
from mixnorm._params import Parameters
from mixnorm.exceptions import ModelFileError
from mixnorm.storage.container import pack, read_arrays, unpack
from mixnorm.storage.decode import Decoder
from mixnorm.storage.encode import Encoder
from mixnorm.storage.registry import SPLITTERS


def again(value):
    """Return a value after the bytes of a file."""
    encoder = Encoder()
    content = b"".join(pack({"model": encoder.node(value)}, encoder.arrays))
    document, raw = unpack(io.BytesIO(content), "the file")
    decoder = Decoder(read_arrays(document["arrays"], raw), 0)
    found = decoder.value(document["model"])
    decoder.finish()
    return found


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63),
        2**64 - 1,
        2**64,
        -(2**63) - 1,
        pytest.param(10**6000, id="6001 digits"),
        -0.0,
        0.1,
        5e-324,
        math.inf,
        -math.inf,
        math.nan,
        "",
        'quote " and \\ and \n and \x00',
        "ünïcode 𝟚",
        "\ud800",
        "\ud83d\ude00",  # two halves, which are not one character
        [],
        (),
        {},
        [1, [2.0, (3, "4", [None])]],
        {1: "a", "1": "b", (2, None): {"c": [()]}, None: 0.5, False: 2},
        {"array": 1},  # what looks like a node of ours
        {"tuple": [1]},
        {math.nan: 1},
        pytest.param({10**6000: 1}, id="6001 digits as a key"),
        np.float64(0.1),
        np.float32(-0.0),
        np.float16(0.5),
        np.int8(-3),
        np.uint64(2**64 - 1),
        np.bool_(True),
        np.str_("né"),
        np.datetime64("2024-02-29T12:00:00.5"),
        np.datetime64("NaT"),
        np.timedelta64(5, "W"),
        {np.int64(3): np.float64(1.0)},
    ],
)
def test_values(tools, value):
    assert tools.same(value, again(value))


# Parts of models, each with its defaults or, where it has none, with these parameters.
GIVEN = [
    kernels.FunctionKernel("of another"),
    kernels.KernelBank(["linear", kernels.GaussianKernel(0.5)]),
    pools.Union([pools.Columns(), pools.Stumps(max_bins=4)]),
]
PARTS = [
    part
    for part in (getattr(room, name) for room in (kernels, losses, norms, pools)
                 for name in room.__all__)
    if isinstance(part, type) and issubclass(part, Parameters) and dataclasses.is_dataclass(part)
    and part is not kernels.FeatureTensorKernel  # which is code
]  # fmt: skip


@pytest.mark.parametrize("kind", PARTS)
def test_parts_of_models(tools, kind):
    given = [part for part in GIVEN if type(part) is kind]
    part = given[0] if given else kind()
    assert tools.same(part, again(part))


def test_two_halves_stay_apart():
    assert len(again("\ud83d\ude00")) == 2


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
KEYS = PLAIN | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner),
    max_leaves=20,
)


@given(VALUES)
def test_any_value(tools, value):
    assert tools.same(value, again(value))


KINDS = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes()
    | hnp.unsigned_integer_dtypes()
    | hnp.floating_dtypes(sizes=(16, 32, 64))
    | hnp.unicode_string_dtypes()
    | hnp.datetime64_dtypes()
    | hnp.timedelta64_dtypes()
)


@given(hnp.arrays(KINDS, hnp.array_shapes(min_dims=0, min_side=0, max_side=4)))
def test_any_array(array):
    found = again(array)
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.dtype.isnative
    assert found.shape == array.shape
    assert found.tobytes() == array.astype(found.dtype).tobytes()
    assert found.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(24, dtype=">i4").reshape(2, 3, 4).transpose(1, 0, 2),
        np.broadcast_to(np.float32(1.5), (3, 2)),
        np.empty((0, 3)),
        np.empty((2, 0), dtype="U0"),
        np.array(7.0),
        np.frombuffer(b"\x01\x00\x01", dtype=bool),
    ],
)
def test_layouts(array):
    found = again(array)
    assert np.array_equal(found, array)
    assert found.flags.f_contiguous == array.flags.f_contiguous
    if array.flags.c_contiguous:
        assert found.flags.c_contiguous


def test_nan_keeps_its_bits(tools):
    array = np.array([0x7FF8000000000123, 0xFFF0000000000001], dtype=np.uint64).view(np.float64)
    assert tools.same(array, again(array))


def test_arrays_of_objects(tools):
    array = np.empty((2, 2), dtype=object)
    array[0, 0], array[0, 1], array[1, 0] = "name", (1, 2), [np.arange(3), None]
    found = again(array)
    assert found.shape == (2, 2)
    assert tools.same(array, found)
    for empty in (np.empty((0, 2), object), np.array(None, object)):
        assert tools.same(empty, again(empty))


def test_memory_maps_are_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "map", dtype="f8", mode="w+", shape=(2, 3))
    mapped[:] = 1.5
    found = again(mapped)
    assert type(found) is np.ndarray
    assert np.array_equal(found, mapped)


class Integer(int):
    pass


@pytest.mark.parametrize(
    "value",
    [
        1j,
        b"bytes",
        {1, 2},
        range(3),
        timedelta(1),
        Integer(3),
        object(),
        np.complex64(1j),
        np.longdouble(1),
        np.array([1j]),
        np.array([b"a"]),
        np.zeros(2, dtype=[("a", "f8")]),
        np.ma.masked_array([1.0, 2.0], [0, 1]),
        np.array(["a"], dtype=np.dtypes.StringDType()),
        np.zeros((), dtype="V4")[()],
        np.array([print], dtype=object),
    ],
)
def test_other_values_are_refused(value):
    with pytest.raises(ModelFileError, match="Cannot store the model = .* holds no "):
        again(value)


def test_a_list_that_holds_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ModelFileError, match="more than 100 values within one another, or itself"):
        again(endless)


class Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize("key", [pytest.param(10**6000, id="digits"), "name", (1, 2)])
def test_refusals_of_what_cannot_be_printed(key):
    with pytest.raises(ModelFileError, match=r"Cannot store \[.*\] = <Unprintable.*: a model file"):
        again({key: Unprintable()})


def test_depth():
    value = "in the middle"
    for _ in range(100):
        value = [value]
    assert again(value) == value
    with pytest.raises(ModelFileError, match="Make it flatter"):
        again([value])


MADE = [
    GroupKFold(3),
    GroupShuffleSplit(2, test_size=0.3, random_state=1),
    KFold(4, shuffle=True, random_state=2),
    LeaveOneGroupOut(),
    LeaveOneOut(),
    LeavePGroupsOut(2),
    LeavePOut(3),
    PredefinedSplit([0, 1, -1, 1]),
    RepeatedKFold(n_splits=3, n_repeats=2, random_state=4),
    RepeatedStratifiedKFold(n_splits=4, n_repeats=3),
    ShuffleSplit(3, train_size=0.5),
    StratifiedGroupKFold(3, shuffle=True, random_state=3),
    StratifiedKFold(2),
    StratifiedShuffleSplit(2, test_size=4),
    TimeSeriesSplit(3, gap=2, max_train_size=5),
]


@pytest.mark.parametrize("splitter", MADE)
def test_splitters(tools, splitter):
    found = again(splitter)
    assert type(found) is type(splitter)
    own = {name: value for name, value in vars(splitter).items() if name != "cv"}
    assert all(tools.same(value, vars(found)[name]) for name, value in own.items())


def test_every_splitter_is_tested():
    assert sorted(type(splitter).__name__ for splitter in MADE) == sorted(SPLITTERS)


def test_a_splitter_of_ones_own_is_refused():
    class KFold(MADE[2].__class__):
        pass

    with pytest.raises(ModelFileError, match="holds no .*KFold"):
        again(KFold(3))
