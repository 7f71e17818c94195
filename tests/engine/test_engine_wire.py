"""The worker's pipe: results come through unchanged, and nothing else does."""

from __future__ import annotations

import os
import pickle  # noqa: TID251 - to write what a hostile worker would
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from inspector.analyses.masked_lm.result import Mask
from inspector.analyses.overview.result import Overview, OverviewFile
from inspector.engine.protocol import Progress
from inspector.engine.wire import Answers, Failure, Warm, decode, encode, frame_from_arrow
from inspector.results.checkpoint import Opened, TokenizerInfo

FRAMES = {
    "mixed": pd.DataFrame(
        {
            "token": ["␣a", "", "ű\ud7ff", "<b>"],
            "token_id": np.array([3, 1, 2, 0], dtype="int32"),
            "score": np.array([0.5, np.nan, np.inf, -np.inf], dtype="float32"),
            "known": [True, False, True, True],
            "kind": pd.Categorical(["word", "byte", "word", "word"], categories=["byte", "word"]),
        }
    ),
    "empty": pd.DataFrame({"token": pd.Series([], dtype="str"), "id": pd.Series([], dtype="i8")}),
    "missing text": pd.DataFrame({"token": pd.Series(["a", None], dtype="str")}),
    "index": pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[5, 7, 9]).iloc[1:],
}


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_a_frame_comes_back_as_it_was(name):
    back = decode(encode(Answers((Mask(position=1, predictions=FRAMES[name]),)))).values[0]

    assert back.position == 1
    pd.testing.assert_frame_equal(back.predictions, FRAMES[name])


@pytest.mark.parametrize(
    "value",
    [
        Warm(),
        Progress(None, "reading"),
        Failure("CheckpointError", "a.bin is empty: upload it again."),
        Answers((Opened("ab", "demo-a", "demo-a", ("one",)),)),
        Answers(({"a": [1, 2.5, None, True, b"x"], "b": {1, 2}, "c": frozenset("x"), "d": 1j},)),
        Answers((Path("map.csv"),)),
        Answers((np.float32(1.5),)),
    ],
)
def test_a_plain_message_comes_back_equal(value):
    assert decode(encode(value)) == value


def test_an_array_and_a_nested_result_come_back():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    overview = Overview(
        *("demo", "ab", "bert", None, (OverviewFile("a", "json", 3),), {"float32": 4}, 4, 4),
        *(16, 16, None, None, None, {}, TokenizerInfo("BPE", 3, None, None, "[M]", 2), ("w",)),
        tensors=FRAMES["mixed"],
        config={"vocab_size": 3},
        quantised={"int8": 2},
    )

    back_array, back = decode(encode(Answers((array, overview)))).values

    np.testing.assert_array_equal(back_array, array)
    assert (back.files, back.tokenizer) == (overview.files, overview.tokenizer)
    pd.testing.assert_frame_equal(back.tensors, overview.tensors)


class _Calls:
    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    "value",
    [
        _Calls(os.system, "true"),
        _Calls(eval, "1"),
        _Calls(getattr, 1, "real"),
        _Calls(pd.read_pickle, "x"),
        _Calls(pickle.loads, b"N."),
        _Calls(np.load, "x"),
        FRAMES["mixed"],  # pickled as pandas does it, with its many constructors
        time.sleep,
    ],
)
def test_whatever_can_be_called_is_refused(value):
    with pytest.raises(pickle.UnpicklingError, match="does not belong in a result"):
        decode(pickle.dumps(value))


@pytest.mark.parametrize(
    "opcodes",
    [
        b"\x80\x04\x8c\x11inspector.results\x8c\x07to_json\x93.",  # a function of ours
        b"\x80\x04\x8c\x11inspector.results\x8c\x0bdataclasses\x93.",  # a module
        b"\x80\x04\x8c\x11inspector.results\x8c\x13dataclasses.replace\x93.",  # a dotted name
        b"\x80\x04\x8c\x15inspector.engine.wire\x8c\x0edecode_trusted\x93.",
    ],
)
def test_other_names_of_the_result_modules_are_refused(opcodes):
    with pytest.raises(pickle.UnpicklingError, match="does not belong in a result"):
        decode(opcodes)


def test_text_offsets_past_the_data_are_refused():
    """Unchecked, reading such a column reads memory that is not its own."""
    offsets = pa.py_buffer(np.array([0, 1_000_000, 2], dtype="int32"))
    bad = pa.Array.from_buffers(pa.utf8(), 2, [None, offsets, pa.py_buffer(b"ab")])
    table = pa.table({"token": bad})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)

    with pytest.raises(pa.ArrowInvalid):
        frame_from_arrow(sink.getvalue().to_pybytes())
