"""Made-up inputs that are nearly right: hypothesis knows the formats, and lies in their fields."""

from __future__ import annotations

import gzip
import io
import json
import pickle  # noqa: TID251
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tools.fuzz.seeds import CONFIGS, FILES, INDEXES, PID, TENSOR

Draw = Callable[[st.SearchStrategy[Any]], Any]
NAMES = st.sampled_from(
    [
        "config.json",
        "Config.json",
        "model.safetensors",
        "vocab.txt",
        "m/",
        "",
        "a/b/c",
        "../x",
        "/etc/x",
        "a\\b",
        "C:x",
        "con\u0301fig.json",
        "\0",
        "..",
        ".hidden",
        "m//config.json",
    ]
) | st.text(max_size=20)
NUMBERS = st.sampled_from(
    [0, -1, 1, 2, 60, 64, 2**31, 2**53, 2**63 - 1, 2**64, 10**400, 1e400, float("nan"), 0.5, True]
) | st.integers(-3, 70)
VALUES = st.recursive(
    st.none() | NUMBERS | st.text(max_size=8) | st.sampled_from(["/etc/passwd", "a.B", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        *CONFIGS["bert"],
        *CONFIGS["nested"],
        *CONFIGS["hostile"],
        "rope_scaling",
        "rope_parameters",
        "layer_types",
        "num_local_experts",
        "inner_group_num",
        "pad_token_id",
        "return_dict",
        "attribute_map",
        "chat_template",
        "generation_config",
        "_attn_implementation",
        "vocab_file",
    ]
) | st.text(max_size=8)
DTYPES = st.sampled_from(["F32", "BF16", "I64", "BOOL", "F8_E4M3", "C64", "F4", "os", "", 7, None])
SIZES = st.lists(st.sampled_from([0, 1, 2, 3, 2**31, 2**62, 2**63, -1, 1.0, True, "2"]), max_size=4)
TENSOR_NAMES = st.sampled_from(["a", "b", "__metadata__", "<script>\0\u202e", "\ud800", "x" * 2000])


@st.composite
def safetensors(draw: Draw) -> bytes:
    """A header, its tensors one behind the other unless they are not, and their bytes."""
    entries: dict[str, Any] = {}
    place = 0
    for name in draw(st.lists(TENSOR_NAMES, max_size=4)):
        nbytes = draw(st.sampled_from([0, 4, 8, 16]))
        begin = place + draw(st.sampled_from([0, 0, 0, 0, -4, 4, 2**62]))
        shape = [nbytes // 4] if draw(st.booleans()) else draw(SIZES)
        dtype = draw(st.just("F32") | DTYPES)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + nbytes]}
        if draw(st.integers(0, 9)) == 0:
            entries[name] = draw(VALUES)
        place += nbytes
    text = json.dumps(entries)
    if draw(st.integers(0, 9)) == 0:
        text = text[:-1] + "," + text[1:] if entries else "[]"  # every key twice
    data = text.encode()
    length = len(data) + draw(st.sampled_from([0, 0, 0, 1, -1, 2**40]))
    return struct.pack("<Q", max(length, 0)) + data + bytes(max(0, place))


@st.composite
def ggufs(draw: Draw) -> bytes:
    """A header of GGUF whose numbers lie now and then, and some bytes of weights."""
    small = st.integers(0, 3)
    number = small | st.sampled_from([8, 32, 256, 2**31, 2**32 - 1])
    wide = number | st.sampled_from([2**33, 2**40, 2**63, 2**64 - 1])

    def text() -> bytes:
        data = draw(TENSOR_NAMES).encode(errors="surrogatepass")
        return struct.pack("<Q", draw(st.just(len(data)) | st.just(len(data)) | wide)) + data

    keys, tensors = draw(small), draw(small)
    head = [b"GGUF", struct.pack("<I", draw(st.sampled_from([3, 3, 3, 2, 1, 4, 3 << 24])))]
    head.append(struct.pack("<QQ", *(draw(st.just(count) | st.just(count) | wide) for count in (tensors, keys))))
    for _ in range(keys):
        kind = draw(st.integers(0, 13))
        inner = struct.pack("<IQ", draw(st.integers(0, 13)), draw(wide)) if kind == 9 else b""
        head += [text(), struct.pack("<I", kind), inner, text() if kind == 8 else draw(st.binary(max_size=8))]
    for place in range(tensors):
        axes = draw(st.lists(wide, max_size=3))
        head += [text(), struct.pack(f"<I{len(axes)}Q", len(axes), *axes)]
        head.append(struct.pack("<IQ", draw(number), draw(st.just(32 * place) | wide)))
    whole = b"".join(head)
    return whole + bytes(-len(whole) % 32 + draw(st.sampled_from([0, 32, 96])))


@st.composite
def archives(draw: Draw) -> bytes:
    """A zip or a tar of odd names and kinds, sometimes with a few bytes changed."""
    files = {name: draw(st.binary(max_size=30)) for name in draw(st.lists(NAMES, max_size=5))}
    files = {**files, **FILES} if draw(st.booleans()) else files
    data = draw(st.sampled_from([_zip, _tar, _tgz]))(draw, files)
    return _damaged(draw, data)


def _zip(draw: Draw, files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo("x", (2020, 1, 1, 0, 0, 0))
            info.filename = name.encode("utf-8", "replace").decode()
            info.compress_type = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
            info.external_attr = draw(st.sampled_from([0, 0o100644, 0o120777, 0o010644])) << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def _tar(draw: Draw, files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    kinds = st.sampled_from([tarfile.REGTYPE] * 4 + [tarfile.SYMTYPE, tarfile.FIFOTYPE, b"S"])
    form = draw(st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
    for name, data in files.items():
        info = tarfile.TarInfo(name.encode("utf-8", "replace").decode()[:90])
        info.type = draw(kinds)
        info.size = len(data) + draw(st.sampled_from([0, 0, 0, 2**30]))
        if form == tarfile.PAX_FORMAT:
            info.pax_headers = draw(
                st.dictionaries(
                    st.sampled_from(["path", "size", "GNU.sparse.major", "GNU.sparse.size", "comment"]),
                    st.text(max_size=8),
                    max_size=3,
                )
            )
        buffer.write(info.tobuf(form, "utf-8", "surrogateescape"))
        buffer.write(data + bytes(-len(data) % 512))
    return buffer.getvalue() + bytes(1024)


def _tgz(draw: Draw, files: dict[str, bytes]) -> bytes:
    return gzip.compress(_tar(draw, files), mtime=0)


def _damaged(draw: Draw, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw(st.sampled_from([0, 0, 1, 4]))):
        if changed:
            changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    return bytes(changed)


def configs() -> st.SearchStrategy[bytes]:
    """Settings that models have, with values that none has."""
    trees = st.dictionaries(KEYS, VALUES | st.dictionaries(KEYS, VALUES, max_size=3), max_size=8)
    return trees.map(lambda tree: json.dumps(CONFIGS["bert"] | tree).encode())


def indexes() -> st.SearchStrategy[bytes]:
    """A weight map that names odd files."""
    shards = NAMES | st.sampled_from([*INDEXES["two"]["weight_map"].values()]) | VALUES
    maps = st.dictionaries(TENSOR_NAMES, shards, max_size=5) | VALUES
    return maps.map(lambda names: json.dumps({"weight_map": names}).encode())


def tokenizer_configs() -> st.SearchStrategy[bytes]:
    """The settings that a tokenizer has, with values that none has; the first byte says which."""
    keys = st.sampled_from(
        [
            "mask_token",
            "pad_token",
            "added_tokens_decoder",
            "additional_special_tokens",
            "vocab",
            "tokenizer_class",
            "model_max_length",
            "init_inputs",
            "chat_template",
            "do_lower_case",
            "content",
            "__type",
            "0",
            "never_split",
        ]
    )
    trees = st.dictionaries(keys, VALUES | st.dictionaries(keys, VALUES, max_size=4), max_size=6)
    files = st.tuples(st.integers(0, 2), trees)
    return files.map(lambda file: bytes([file[0]]) + json.dumps(file[1]).encode())


OPCODES = st.sampled_from(
    [
        *(bytes([code]) for code in b"()]}ltdu0aes2RbQNt\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94"),
        *(b"h" + bytes([slot]) for slot in range(4)),
        *(b"q" + bytes([slot]) for slot in range(4)),
        b"r\xff\xff\xff\xff",
        b"K\1",
        b"M\xff\xff",
        b"J\xff\xff\xff\xff",
        b"\x8a\1\x7f",
        b"\x8b" + struct.pack("<i", -1),
        b"X\1\0\0\0a",
        b"X\xff\xff\xff\xff",
        b"\x8c\1b",
        b"U\1c",
        b"\x95" + bytes(8),
        b"\x96" + struct.pack("<Q", 2**40),
        b"ccollections\nOrderedDict\n",
        b"ctorch\nSize\n",
        b"ctorch\nfloat32\n",
        b"ctorch._utils\n_rebuild_tensor_v2\n",
        b"ctorch\nFloatStorage\n",
        b"cos\nsystem\n",
        b"Pstorage\n",
        b"I9999\n",
        b"F1e999\n",
        PID,
        TENSOR,
        pickle.NEWOBJ,
        pickle.NEWOBJ_EX,
        pickle.OBJ,
        pickle.NEXT_BUFFER,
    ]
)


def pickles() -> st.SearchStrategy[bytes]:
    """Programs of opcodes, most of which make no sense."""
    programs = st.lists(OPCODES, max_size=30).map(b"".join)
    return programs.map(lambda program: b"\x80\x02" + program + b".")


@st.composite
def pytorch(draw: Draw) -> bytes:
    """A file of the zip format around such a program, its parts where they should be or not."""
    buffer = io.BytesIO()
    program = draw(pickles() | st.just(b"\x80\x02}X\x01\0\0\0w" + TENSOR + b"s."))
    members = {"w/data.pkl": program, "w/data/0": bytes(draw(st.sampled_from([8, 8, 0, 4])))}
    extra = draw(st.sampled_from([None, "w/data/1", "v/data.pkl", "w/code/a.py", "w/byteorder"]))
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in (members | ({extra: b"big"} if extra else {})).items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data)
    return _damaged(draw, buffer.getvalue())


STRUCTURES: dict[str, st.SearchStrategy[bytes]] = {
    "safetensors": safetensors(),
    "gguf": ggufs(),
    "pytorch": pytorch(),
    "pickle": pickles(),
    "archive": archives(),
    "config": configs(),
    "index": indexes(),
    "tokenizer_config": tokenizer_configs(),
}
