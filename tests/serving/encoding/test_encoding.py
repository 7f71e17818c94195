"""Between processes: values come back as they were, and bytes that lie are refused."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import pickle  # noqa: TID251 - to write what a hostile worker would
import signal
import struct
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analyses.masked_lm.result import Mask
from inspector.analyses.overview.result import Overview, OverviewFile
from inspector.analyses.overview.result_tensors import StoredTensors
from inspector.results.checkpoint import Opened, TokenizerInfo
from inspector.serving.encoding import DecodeError, decode, encode
from inspector.serving.encoding.parts import DTYPES, MASKED_DTYPES, MAX_VALUES, join
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import Failure, Warm
from inspector.settings import Settings, read_settings
from inspector.store.manifests.columns import TensorInfo, Tensors

FRAMES = {
    "mixed": pd.DataFrame(
        {
            "token": ["␣a", "", "ű\ud7ff", "<b>"],
            "token_id": np.array([3, 1, 2, 0], dtype="int32"),
            "score": np.array([0.5, np.nan, np.inf, -np.inf], dtype="float32"),
            "known": [True, False, True, True],
            "kind": pd.Categorical(["word", "byte", "word", "word"], categories=["byte", "word"]),
            "grade": pd.Categorical([1, None, 3, 1], categories=[3, 1], ordered=True),
        }
    ),
    "empty": pd.DataFrame({"token": pd.Series([], dtype="str"), "id": pd.Series([], dtype="i8")}),
    "without columns": pd.DataFrame(index=pd.RangeIndex(3)),
    "missing text": pd.DataFrame({"token": pd.Series(["a", None], dtype="str")}),
    "lone surrogates": pd.DataFrame({"token": pd.Series(["\ud800"], dtype="object")}),
    "lists": pd.DataFrame({"ids": pd.Series([[1, 2], [], None], dtype="object")}),
    "index": pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[5, 7, 9]).iloc[1:],
    "named index": pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index(["a", "b"], name="n")),
    "backwards": pd.DataFrame({"x": [1, 2, 3]}).iloc[::-1],
    **{name: pd.DataFrame({"x": pd.array([1, None, 0], dtype=name)}) for name in sorted(MASKED_DTYPES)},
}
VALUES = [
    *(None, True, 0, -(2**70), 1.5, "", "\ud800\0", b"", b"\x80\x04N.", 1j, [], (), {}, set(), frozenset()),
    {"a": [1, 2.5, None, True, b"x"], "b": {1, 2}, "c": frozenset("x"), ("d", 3): {4: (5,)}},
    Path("map.csv"),
    [b"one", b"", b"two"],
]


def header_of(data: bytes) -> Any:
    (nbytes,) = struct.unpack_from("<Q", data, 4)
    return json.loads(data[12 : 12 + nbytes])


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_comes_back_as_it_was(name):
    back = decode(encode(Mask(position=1, predictions=FRAMES[name])), Mask)
    assert back.position == 1
    pd.testing.assert_frame_equal(back.predictions, FRAMES[name])


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_plain_value_comes_back_equal_and_of_its_type(value):
    back = decode(encode(value), Any)
    assert back == value
    assert type(back) is type(value)


def test_what_is_a_number_or_a_container_as_well_comes_back_plain():
    back = decode(encode((signal.SIGKILL, Counter("aa"))), Any)
    assert back == (9, {"a": 2})
    assert [type(each) for each in back] == [int, dict]


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_an_array_comes_back_and_can_be_written(dtype, shape):
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    back = decode(encode(array), np.ndarray)
    np.testing.assert_array_equal(back, array, strict=True)
    back[...] = 1


def test_arrays_in_any_order_come_back():
    array = np.arange(6, dtype=">f4").reshape(2, 3)[:, ::2].T
    np.testing.assert_array_equal(decode(encode(array), np.ndarray), array)


def test_numbers_of_numpy_come_back_as_pythons():
    back = decode(encode((np.float32(1.5), np.int64(3), np.bool_(True))), Any)
    assert [type(each) for each in back] == [float, int, bool]
    assert math.isnan(decode(encode(math.nan), float))


TENSORS = (
    TensorInfo("a.0", "float32", (2, 3), (3, 1), "a", 8, 24, "a:a.0", 24),
    TensorInfo("b", "int64", (), (), "a", 32, 8, "a:b", 8),
    TensorInfo("a.1", "float32", (2, 3), (3, 1), "a", 40, 24, "a:a.1", 24),
)


def test_a_nested_result_comes_back():
    overview = Overview(
        *("demo", "ab", "bert", None, (OverviewFile("a", "json", 3),), {"float32": 4}, 4, 4),
        *(16, 16, None, None, None, {}, TokenizerInfo("BPE", 3, None, None, "[M]", 2), ("w",)),
        stored=StoredTensors.of(Tensors.of(TENSORS)),
        config={"vocab_size": 3},
        quantized={"int8": 2},
    )
    back = decode(encode(overview), Overview)
    assert (back.files, back.tokenizer, back.config) == (overview.files, overview.tokenizer, overview.config)
    assert back.stored == overview.stored
    assert back.tensors.to_dict("records") == [
        {"name": "a.0", "shape": "2 × 3", "dtype": "float32", "parameters": 6, "nbytes": 24, "file": "a"},
        {"name": "b", "shape": "scalar", "dtype": "int64", "parameters": 1, "nbytes": 8, "file": "a"},
        {"name": "a.1", "shape": "2 × 3", "dtype": "float32", "parameters": 6, "nbytes": 24, "file": "a"},
    ]


@pytest.mark.parametrize("places", [b"", bytes(4), bytes(16), b"\0" * 8 + b"\2\0\0\0", b"\xff" * 12])
def test_a_list_of_tensors_whose_kinds_are_not_there_is_refused(places):
    stored = StoredTensors.of(Tensors.of(TENSORS))
    forged = object.__new__(StoredTensors)
    for name, value in ("names", stored.names), ("kinds", stored.kinds), ("places", places):
        object.__setattr__(forged, name, value)
    with pytest.raises(DecodeError):
        decode(encode(forged), StoredTensors)


@pytest.mark.parametrize("value", [Warm(), Progress(None, "reading"), Failure("CheckpointError", "empty.")])
def test_the_first_class_that_fits_is_read(value):
    assert decode(encode(value), Failure, Progress, Warm) == value


@dataclass(frozen=True)
class Sample:
    """Has a field of every kind of annotation that results use."""

    word: Literal["a", "b"]
    pair: tuple[int, float]
    many: tuple[tuple[str, ...], ...]
    table: dict[str, tuple[int, ...] | None]
    parts: list[Progress | Opened | None]
    array: np.ndarray
    data: bytes
    plain: Any
    share: float = 1.0


SAMPLE = Sample("a", (1, 2.0), (("x",), ()), {"a": (1,), "b": None}, [Progress(1, "x"), None], np.ones(2), b"x", (1,))
LIES = {
    "word": ["c", None, ["a"], 1],
    "pair": [(1,), (1, 2.0, 3), [1, 2.0], (1.5, 2.0), (True, 2.0), None],
    "many": [("x",), (("x",), (1,)), "x", None],
    "table": [{1: (1,)}, {"a": ("x",)}, {"a": 1}, [("a", None)]],
    "parts": [[Warm()], [1], (), [Failure("a", "b")]],
    "array": [[1.0, 1.0], None, pd.DataFrame(), b"x"],
    "data": ["x", [120], None],
    "plain": [Warm(), [Progress(None, "x")], {"a": Warm()}],
    "share": ["1", None, True, 1j, np.ones(1)],
}


@pytest.mark.parametrize(("field", "lie"), [(field, lie) for field, lies in LIES.items() for lie in lies], ids=repr)
def test_a_value_of_another_type_is_refused(field, lie):
    assert decode(encode(SAMPLE), Sample).pair == (1, 2.0)
    with pytest.raises(DecodeError):
        decode(encode(dataclasses.replace(SAMPLE, **{field: lie})), Sample)


def test_a_class_that_was_not_asked_for_is_refused():
    with pytest.raises(DecodeError):
        decode(encode(Failure("a", "b")), Progress)
    with pytest.raises(DecodeError):
        decode(encode(Failure("a", "b")), Any)
    with pytest.raises(DecodeError, match="expected"):
        decode(join({"o": ["Progress", None]}, []), Progress)
    with pytest.raises(DecodeError, match="expected"):
        decode(join({"o": ["Progress", None, "x", 1]}, []), Progress)


def test_a_pickle_is_refused_whatever_it_holds():
    for value in (1, [], np.zeros(2), FRAMES["mixed"], Warm()):
        with pytest.raises(DecodeError):
            decode(pickle.dumps(value), Any)


@pytest.mark.parametrize("dtype", ["O", "O8", "object", "|O", "V8", "U4", "<f8", "datetime64[ns]", "void", "", 3, None])
def test_an_array_of_pointers_or_unknown_things_is_refused(dtype):
    """Bytes that were taken for objects would be addresses: the process would end, or worse."""
    with pytest.raises(DecodeError):
        decode(join({"a": [dtype, [1], 8]}, [b"A" * 8]), np.ndarray)
    with pytest.raises(DecodeError):
        decode(join({"F": [[None, 0, 1, 1], [["x", ["numbers", {"a": [dtype, [1], 8]}]]]]}, [b"A" * 8]), pd.DataFrame)


SIZES = [[2**60], [2**31, 2**31], [-1], [1, -1], [1.0], [True], "1", None, [2**63], [1] * 33, [3], [], [2**47, 0]]


@pytest.mark.parametrize("shape", SIZES, ids=repr)
def test_an_array_without_the_bytes_of_its_shape_allocates_nothing(shape):
    with pytest.raises(DecodeError):
        decode(join({"a": ["float64", shape, 16]}, [bytes(16)]), np.ndarray)


@pytest.mark.parametrize("nbytes", [2**62, -1, 17, 15, True, None, "16", 1e9])
def test_more_bytes_than_there_are_are_not_taken(nbytes):
    with pytest.raises(DecodeError):
        decode(join({"b": nbytes}, [bytes(16)]), bytes)
    with pytest.raises(DecodeError):
        decode(join([{"b": 16}, {"b": nbytes}], [bytes(16)]), list[bytes])


def test_truth_values_are_true_or_false():
    with pytest.raises(DecodeError, match="neither"):
        decode(join({"a": ["bool", [1], 1]}, [b"\x02"]), np.ndarray)


NUMBERS = ["numbers", {"a": ["int8", [2], 2]}]
CODES = {"a": ["int8", [2], 2]}
COLUMNS = [
    ["numbers", {"a": ["int8", [3], 3]}],
    ["numbers", {"a": ["int8", [1, 2], 2]}],
    ["numbers"],
    ["texts", ["a"]],
    ["texts", ["a", 1]],
    ["texts", "ab"],
    ["objects", ["a"]],
    ["objects", [{"o": ["Warm"]}, 1]],
    ["categories", CODES, ["texts", ["a"]], False],  # 7 is none of them
    ["categories", CODES, ["texts", ["a", "a"]], False],
    ["categories", CODES, ["texts", ["a", None]], False],
    ["categories", CODES, ["texts", ["a"]], 0],
    ["masked", "Int64", CODES, {"a": ["bool", [0], 0]}],
    ["masked", "Int8", CODES, {"a": ["int8", [0], 0]}],
    ["masked", "object", CODES, {"a": ["bool", [0], 0]}],
    ["eval", "1"],
    [["numbers"], 1],
    [],
    None,
    "numbers",
]


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_a_column_that_does_not_fit_is_refused(column):
    assert len(decode(join({"F": [[None, 0, 2, 1], [["x", NUMBERS]]]}, [b"\7\7"]), pd.DataFrame)) == 2
    with pytest.raises(DecodeError):
        decode(join({"F": [[None, 0, 2, 1], [["x", column]]]}, [b"\7\7\7"]), pd.DataFrame)


@pytest.mark.parametrize(
    "index", [[None, 0, 2**60, 1], [None, 0, 2, 0], [None, 0, 3, 1], [1, 0, 2, 1], [None, 0.0, 2, 1], [None], [], None]
)
def test_an_index_that_does_not_fit_is_refused(index):
    with pytest.raises(DecodeError):
        decode(join({"F": [index, [["x", NUMBERS]]]}, [b"\7\7"]), pd.DataFrame)


def test_a_column_that_is_there_twice_is_refused():
    with pytest.raises(DecodeError):
        decode(join({"F": [[None, 0, 2, 1], [["x", NUMBERS], ["x", NUMBERS]]]}, [b"\7\7\7\7"]), pd.DataFrame)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"CI01",
        b"CI01" + struct.pack("<Q", 2**63) + b"{}",
        b"CI01" + struct.pack("<Q", 5) + b"[1]",
        b"CI01" + struct.pack("<Q", 2) + b"\xff\xfe",
        b"CI01" + struct.pack("<Q", 100_000) + b"[" * 100_000,
        b"CI01" + struct.pack("<Q", 9_000) + b"9" * 9_000,
        join([], [b"left over"]),
        join({"t": [], "d": []}, []),
        join({}, []),
        join({"x": 1}, []),
        join({"t": 1}, []),
        join({"d": [[1]]}, []),
        join({"d": [[[], 1]]}, []),
        join({"d": [["a", 1], ["a", 2]]}, []),
        join({"s": [[1]]}, []),
        join({"c": [1, "x"]}, []),
        join({"c": [1]}, []),
        join({"p": 1}, []),
    ],
)
def test_broken_bytes_are_refused(data):
    with pytest.raises(DecodeError):
        decode(data, Any)


def test_millions_of_values_are_counted_before_they_are_made():
    text = b"[" + b"[]," * MAX_VALUES + b"[]]"
    with pytest.raises(DecodeError, match="too many"):
        decode(b"CI01" + struct.pack("<Q", len(text)) + text, Any)


def test_a_library_that_another_thread_is_importing_is_in_nobodys_way(monkeypatch):
    """Half of it is there, and no value of it yet."""
    settings = read_settings({})
    with monkeypatch.context() as context:
        for library in ("numpy", "pandas"):
            context.setitem(sys.modules, library, ModuleType(library))
        written = encode(settings)
        with pytest.raises(TypeError, match="cannot travel"):
            encode(object())
    assert decode(written, Settings) == settings


def test_what_does_not_travel_is_told_to_the_writer():
    for value in (object(), np.array(["a"]), np.array([object()]), time_frame(), type, len, 3 + 0j and {1: print}):
        with pytest.raises(TypeError, match="cannot travel"):
            encode(value)


def time_frame() -> pd.DataFrame:
    return pd.DataFrame({"when": pd.to_datetime(["2026-01-01"])})


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(PLAIN)
def test_any_plain_value_comes_back(value):
    assert decode(encode(value), Any) == value


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 255))
def test_any_byte_may_be_another(tail, place, byte):
    """Whatever is sent: a value of the class, or one error."""
    data = bytearray(encode(SAMPLE) + tail)
    data[place % len(data)] = byte
    for expected in (Sample, Any):
        with contextlib.suppress(DecodeError):
            found = decode(bytes(data), expected)
            assert expected is not Sample or isinstance(found, Sample)


def test_a_frame_of_rows_alone_is_bounded():
    assert len(decode(join({"F": [[None, 0, 3, 1], []]}, []), pd.DataFrame)) == 3
    with pytest.raises(DecodeError, match="too many rows"):
        decode(join({"F": [[None, 0, 2**40, 1], []]}, []), pd.DataFrame)
