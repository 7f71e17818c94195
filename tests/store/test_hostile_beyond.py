"""Past the known cases: what an attacker who reads our readers would upload next."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers
from transformers import GPTNeoConfig, GPTNeoForCausalLM

from inspector.analyses.overview.compute import overview
from inspector.analyses.special_tokens.compute import tokens
from inspector.errors import InspectorError
from inspector.models.loading import load
from inspector.settings import read_settings
from inspector.store.origins.sources import choose_members
from inspector.store.readers.archives import unpack
from inspector.store.readers.pickles import unpickle
from inspector.store.readers.pytorch import read_pytorch
from inspector.store.readers.safetensors import read_safetensors
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.sentences import DO_NOT_FIT
from tests.store.store_builders import small_checkpoint
from tests.store.test_store_refusals import change_config, header, tensor
from tools.fuzz.seeds import PID, TENSOR

NO_ARCHIVE = "'a.tar.gz' is broken, encrypted or not an archive: get it again, or pack it as a plain .zip."
BROKEN = "w.bin is truncated or broken: its list of tensors cannot be read. Get the file again."


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(InspectorError) as error:
        act()
    return str(error.value)


def small(act: Callable[[], object], nbytes: int = 20_000_000) -> object:
    """Do it, in little memory."""
    tracemalloc.start()
    try:
        done = act()
        assert tracemalloc.get_traced_memory()[1] < nbytes
    finally:
        tracemalloc.stop()
    return done


# --- pickles ----------------------------------------------------------------------------------


def read(program: bytes) -> object:
    return unpickle(io.BytesIO(b"\x80\x02" + program + b"."), "w.bin")


def test_a_memo_handed_out_again_and_again_is_not_copied():
    """A kilobyte of calls on one long text or list: each call would copy it."""
    text = b"X" + struct.pack("<I", 200_000) + b"a" * 200_000
    sizes = b"ctorch\nSize\nq\0" + text + b"q\1](" + b"h\0h\1\x85R" * 500 + b"e"
    assert small(lambda: refusal(lambda: read(sizes))) == BROKEN
    pairs = b"](" + b"".join(b"](U\x05%05dK\1e" % n for n in range(5_000)) + b"eq\1"
    calls = b"ccollections\nOrderedDict\nq\0" + pairs + b"](" + b"h\0h\1\x85R" * 500 + b"e"
    small(lambda: read(calls))


SAME = [n * (2**61 - 1) for n in range(1, 4)]  # numbers of one hash: 200,000 of them took minutes


def number(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


@pytest.mark.parametrize("key", [*SAME, -SAME[0], 2**64, 2**2000, -(2**48)])
@pytest.mark.parametrize("program", ["}%bNs", "}(%bNu", "(%bNd", "ccollections\nOrderedDict\n](](%bNee\x85R"])
def test_keys_that_share_one_hash_are_refused(key, program):
    assert len({hash(each) for each in SAME}) == 1
    small_key, large_key = (program.encode("latin-1") % number(each) for each in (2**47, key))
    small: Any = read(small_key)
    assert list(small) == [2**47]
    assert refusal(lambda: read(large_key)) == BROKEN


@pytest.mark.parametrize("index", [str(SAME[0]), "9" * 4_000, "-" + "9" * 30])
def test_memos_that_share_one_hash_are_refused(index):
    assert read(b"]p12345\n") == []
    assert refusal(lambda: read(b"]p" + index.encode() + b"\n")) == BROKEN


LISTS = b"X\1\0\0\0aq\0" + b"".join(b"](h%ch%ceq%c" % (n, n, n + 1) for n in range(60))


@pytest.mark.parametrize(
    "program",
    [
        # the name of a storage: a list nested so that its text has 2^60 letters
        b"(X\x07\0\0\0storagectorch\nFloatStorage\n" + LISTS[:-2] + b"X\x03\0\0\0cpuK\x02tQ",
        # a persistent id of a hundred parts, and one that is a text
        b"(" + b"N" * 100 + b"tQ",
        b"X\x07\0\0\0storageQ",
        # a call with a hundred arguments, and of what is no function
        b"ctorch\ndevice\n(" + b"N" * 100 + b"tR",
        b"X\1\0\0\0a)R",
        # sizes that are none
        b"ctorch\nSize\nX\1\0\0\0a\x85R",
    ],
)
def test_programs_whose_text_or_work_has_no_end(program):
    assert small(lambda: refusal(lambda: read(program))) == BROKEN


@pytest.mark.parametrize(
    "program",
    [
        b"h\x07",  # a memo that was never set
        b"r\xff\xff\xff\xff",  # put what is not there
        b"\x8b" + struct.pack("<i", -5),
        b"X" + struct.pack("<I", 2**31) + b"a",
        b"I" + b"9" * 5_000 + b"\n",
        b"\x81",  # builds an object
        b"\x97",  # a buffer from elsewhere
        b"\x82\1",  # an extension
        b"(" * 101,
    ],
)
def test_opcodes_that_torch_never_writes(program):
    assert refusal(lambda: read(program)) == BROKEN


def zipped(path: Path, program: bytes, **parts: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w/data.pkl", b"\x80\x02" + program + b".")
        for name, data in (parts or {"0": bytes(8)}).items():
            archive.writestr(f"w/data/{name}", data)
    return path


def test_a_name_that_is_a_number_of_thousands_of_digits(tmp_path):
    number = b"\x8b" + struct.pack("<I", 5_000) + b"\1" * 5_000
    path = zipped(tmp_path / "w.bin", b"}" + number + TENSOR + b"s")
    assert refusal(lambda: read_pytorch(path, "w.bin")) == BROKEN


def test_a_sparse_type_whose_name_speaks(tmp_path):
    name = b"sparse\n\x1b[31m<b>"
    program = b"\x8c\x05torch\x8c" + bytes([len(name)]) + name + b"\x93"
    path = zipped(tmp_path / "w.bin", program)
    assert refusal(lambda: read_pytorch(path, "w.bin")) == (
        r"w.bin contains a tensor that is not strided ('sparse\n\x1b[31m<b>'): save it with dense "
        "tensors."
    )


@pytest.mark.parametrize("order", [b"", b"\xff" * 9, b"middle", b"little endian"])
def test_a_byte_order_that_is_none(tmp_path, order):
    """torch refuses it as well; read as little, the numbers may be others."""
    sound = tmp_path / "sound.bin"
    torch.save({"w": torch.arange(3.0)}, sound)
    broken = tmp_path / "w.bin"
    with zipfile.ZipFile(sound) as before, zipfile.ZipFile(broken, "w") as packed:
        for name in before.namelist():
            packed.writestr(name, order if name.endswith("/byteorder") else before.read(name))
    with pytest.raises((ValueError, RuntimeError)):
        torch.load(broken)  # noqa: TID251 - a file of our own
    expected = "w.bin is broken: its byte order is neither little nor big. Get the file again."
    assert refusal(lambda: read_pytorch(broken, "w.bin")) == expected


@pytest.mark.parametrize("key", ["../../etc/passwd", "0/../0", "a b", ""])
def test_a_storage_key_is_no_path(tmp_path, key):
    pid = PID.replace(b"X\x01\0\0\x000", b"X" + struct.pack("<I", len(key)) + key.encode())
    program = b"}X\x01\0\0\0w" + TENSOR.replace(PID, pid) + b"s"
    path = zipped(tmp_path / "w.bin", program)
    assert refusal(lambda: read_pytorch(path, "w.bin")) == (
        "The tensor 'w' in w.bin is not described by dtype, shape and strides: get the file again."
    )


def test_storages_on_the_same_bytes(tmp_path):
    parts = {"0": bytes(8), "1": bytes(8)}
    path = zipped(tmp_path / "w.bin", b"}X\x01\0\0\0w" + TENSOR + b"s", **parts)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        zero, one = (archive.getinfo(f"w/data/{key}").header_offset for key in "01")
    place = data.rindex(struct.pack("<I", one))
    path.write_bytes(data[:place] + struct.pack("<I", zero) + data[place + 4 :])
    assert refusal(lambda: read_pytorch(path, "w.bin")) == (
        "w.bin is broken: two of its storages overlap. Get the file again."
    )


# --- headers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            '{"a": %s, "a": %s}' % ((json.dumps(tensor(0, 4)),) * 2),
            "the header of w is not valid JSON (a key occurs twice): get the file again.",
        ),
        (
            json.dumps({"a": tensor(0, 4) | {"shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}}),
            "The tensor 'a' in w has a shape that is too large for any memory: get the file again.",
        ),
        (
            json.dumps({"a": tensor(0, 4) | {"data_offsets": [-4, 0]}}),
            "The tensor 'a' in w has a shape or offsets that are not sizes: get the file again.",
        ),
        (
            '{"a": {"dtype": "F32", "shape": [1e400], "data_offsets": [0, 4]}}',
            "The tensor 'a' in w has a shape or offsets that are not sizes: get the file again.",
        ),
        (
            '{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 4]}}',
            "The tensor 'a' in w has a shape or offsets that are not sizes: get the file again.",
        ),
        (
            '{"a": {"dtype": "F32", "shape": [%s], "data_offsets": [0, 4]}}' % ("9" * 5_000),
            "the header of w is not valid JSON (a number or the nesting is too large): get the file again.",
        ),
        (
            json.dumps({"a": tensor(0, 4) | {"dtype": "F4"}}),
            "The tensor 'a' in w has the dtype 'F4', which is not supported: open a copy in float32, "
            "bfloat16 or float16, if there is one.",
        ),
        (
            json.dumps({"a": tensor(0, 4), "b": tensor(8, 12)}),
            "The tensor 'b' in w leaves a gap before it: get the file again.",
        ),
        (
            json.dumps({"x" * 2_000: tensor(0, 4)}),
            "w names a tensor 'xxxxxxxxxxxxxxxxxxxx\\u2026' with 2,000 characters, more than "
            "the limit of 1,000: check that it is a file of weights.",
        ),
    ],
)
def test_headers_that_lie_past_the_known_ways(tmp_path, text, sentence):
    path = tmp_path / "w"
    path.write_bytes(struct.pack("<Q", len(text)) + text.encode() + bytes(12))
    assert refusal(lambda: read_safetensors(path, "w")) == sentence


def test_an_alias_that_no_encoding_can_write_is_none(tmp_path):
    path = tmp_path / "w"
    metadata = {"\ud800": "a", "x" * 2_000: "a", "head": "a"}
    path.write_bytes(header({"__metadata__": metadata, "a": tensor(0, 4)}, bytes(4)))
    assert read_safetensors(path, "w").aliases == {"head": "a"}


# --- archives ---------------------------------------------------------------------------------


def block(kind: bytes, payload: bytes, name: str = "x") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(payload)
    return info.tobuf(tarfile.USTAR_FORMAT) + payload + bytes(-len(payload) % 512)


def record(key: bytes, value: bytes) -> bytes:
    length = len(key) + len(value) + 3
    while len(b"%d" % length) + len(key) + len(value) + 3 != length:
        length += 1
    return b"%d %s=%s\n" % (length, key, value)


FILE = block(tarfile.REGTYPE, b"{}", "config.json")
SPARSE = record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.minor", b"0")
TARS = {
    # 60 kilobytes from which the library makes six gigabytes: records that lie on each other
    "records on each other": block(tarfile.XHDTYPE, b"2 " * 30_000 + b"=") + FILE,
    # for which it searches in the square of their number
    "nothing but digits": block(tarfile.XHDTYPE, b"1" * 200_000) + FILE,
    "digits in a record": block(tarfile.XHDTYPE, record(b"comment", b"1" * 200_000)) + FILE,
    # which it copies for each member
    "a header for all": block(
        tarfile.XGLTYPE, b"".join(record(b"k%d" % n, b"v") for n in range(50_000))
    ) + FILE,
    "headers for all": block(tarfile.XGLTYPE, b"".join(record(b"k%d" % n, b"v")
        for n in range(100))) + block(tarfile.XGLTYPE, b"".join(record(b"l%d" % n, b"v")
        for n in range(100))) + block(tarfile.XHDTYPE, record(b"a", b"b")) + FILE,
    # in which it looks for a line's end again with every block
    "a file with holes": block(tarfile.XHDTYPE, SPARSE)
        + block(tarfile.REGTYPE, b"1" * 2_000_000, "config.json"),
    "a name of five megabytes": block(tarfile.GNUTYPE_LONGNAME, b"a" * 5_000_000) + FILE,
    "a header of two megabytes": block(tarfile.XHDTYPE, record(b"a", b"b" * 2_000_000)) + FILE,
}  # fmt: skip


def unpacked(path: Path, folder: Path) -> object:
    folder.mkdir(exist_ok=True)
    settings = read_settings({"INSPECTOR_HOME": str(folder / "home")})
    return unpack(path, path.name, folder, settings=settings, progress=silent)


@pytest.mark.parametrize("kind", sorted(TARS))
def test_headers_of_a_tar_that_cost_their_square(tmp_path, kind):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(TARS[kind] + bytes(1024)))
    assert small(lambda: refusal(lambda: unpacked(path, tmp_path / "out"))) == NO_ARCHIVE


def test_records_as_tar_writes_them_are_read(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("m/" + "d" * 300 + "/../config.json".replace("../", ""))
        info.size, info.mtime = 2, 1.25
        info.pax_headers = {"SCHILY.xattr.user": "a=b\nc", "comment": "é" * 50}
        archive.addfile(info, io.BytesIO(b"{}"))
    path = tmp_path / "a.tar"
    path.write_bytes(buffer.getvalue())
    assert list(unpacked(path, tmp_path / "out").files) == ["config.json"]  # type: ignore[attr-defined]


def test_a_directory_of_a_zip_that_is_too_long(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(20):
            info = zipfile.ZipInfo(f"{number}")
            info.comment = b"x" * 60_000
            archive.writestr(info, b"")
    small(lambda: unpacked(path, tmp_path / "out"))
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"PK\x05\x06")] + bytes(5_000_000) + struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, 20, 20, 5_000_000, 100, 0))  # fmt: skip
    assert small(lambda: refusal(lambda: unpacked(path, tmp_path / "out")), 3_000_000) == (
        "'a.zip' is broken, encrypted or not an archive: get it again, or pack it as a plain .zip."
    )


def test_members_of_a_zip_on_the_same_bytes_are_counted_each(tmp_path):
    """A thousand names for one megabyte: the bytes that come out are what counts."""
    path = tmp_path / "a.zip"
    names = [f"model-{n:05d}-of-00200.safetensors" for n in range(1, 201)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(names[0], bytes(1_000_000))
        first = archive.getinfo(names[0])
        for name in names[1:]:
            info = zipfile.ZipInfo(name)
            for field in ("header_offset", "CRC", "compress_size", "file_size", "compress_type"):
                setattr(info, field, getattr(first, field))
            archive.filelist.append(info)
            archive.NameToInfo[name] = info
    packed = path.stat().st_size
    sentence = refusal(lambda: unpacked(path, tmp_path / "out"))
    assert sentence in {
        f"'a.zip' unpacks to more than 50 times its {packed:,} bytes, which weights never do: check the archive.",
        "'a.zip' is broken, encrypted or not an archive: get it again, or pack it as a plain .zip.",
    }
    assert sum(file.stat().st_size for file in (tmp_path / "out").iterdir()) < 60_000_000


@pytest.mark.parametrize("name", ["a/" * 5_000 + "config.json", "x" * 2_000, ""])
def test_a_path_without_end_or_without_a_name(name):
    beginning = ascii(name[:80] + ("…" if len(name) > 80 else ""))
    assert refusal(lambda: choose_members([name])) == (
        f"{beginning} is not a valid name inside a checkpoint's folder: pack the folder again "
        "with plain relative names."
    )


def test_names_that_look_alike_are_not_taken_for_each_other():
    """Capitals and composed letters: only the plain name is read."""
    chosen, ignored = choose_members(["config.json", "Config.json", "conﬁg.json", "config.json\u200b"])
    assert chosen == {"config.json": "config.json"}
    assert len(ignored) == 3


# --- configs ----------------------------------------------------------------------------------


def test_a_config_that_repeats_a_layer_without_end(tmp_path, open_path):
    """No tensor shows this number, and building stops long before it is reached."""
    folder = save_checkpoint(random_model("AlbertForMaskedLM"), tmp_path / "albert")
    checkpoint = open_path(change_config(folder, inner_group_num=10**9))
    assert refusal(lambda: load(checkpoint, "masked_lm")) == (
        f"config.json describes a model of more than 1,560 modules, which these weights cannot fill: {DO_NOT_FIT}"
    )


def test_a_config_that_computes_tables_without_end(tmp_path, open_path):
    """GPT-Neo makes a mask of positions × positions for each layer."""
    config = GPTNeoConfig(
        vocab_size=60, hidden_size=32, num_layers=2, num_heads=2, max_position_embeddings=64,
        attention_types=[[["global", "local"], 1]],
    )  # fmt: skip
    folder = save_checkpoint(GPTNeoForCausalLM(config), tmp_path / "neo")
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.renamed.weight"] = tensors.pop("transformer.wpe.weight")
    save_file(tensors, folder / "model.safetensors")
    checkpoint = open_path(change_config(folder, max_position_embeddings=32_500))
    assert refusal(lambda: load(checkpoint, "causal_lm")) == (
        "According to its config.json, neo computes 2,112,500,000 bytes of masks and tables, more than the limit of "
        "2,000,000,000: compare it with the original model's."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"num_hidden_layers": -1},
            "config.json sets num_hidden_layers to -1, which is not a number of layers: correct it.",
        ),
        (
            {"vocab_size": 10**9},
            "config.json sets vocab_size to 1,000,000,000, but no tensor in the weights has that "
            f"dimension; its largest matrix is 64 × 32: {DO_NOT_FIT}",
        ),
        (
            {"num_experts": 10**6},
            f"config.json sets num_experts to 1,000,000, but the largest dimension of any tensor is 64: {DO_NOT_FIT}",
        ),
        (
            {"intermediate_size": 10**9},
            "config.json sets intermediate_size to 1,000,000,000, but the largest dimension of any "
            f"tensor is 64: {DO_NOT_FIT}",
        ),
        (
            {"model_type": "../../x"},
            "config.json sets model_type to '../../x', which is not the name of an architecture: correct it.",
        ),
    ],
)
def test_sizes_past_the_known_ways(tmp_path, open_path, changes, sentence):
    folder = change_config(small_checkpoint(tmp_path / "sound"), **changes)
    assert refusal(lambda: open_path(folder)) == sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"return_dict": False}, {"use_return_dict": False}, {"output_attentions": True},
        {"chunk_size_feed_forward": 7}, {"torch_dtype": "os"}, {"dtype": "set_default_device"},
        {"attribute_map": "x"}, {"sub_configs": 1}, {"base_model_tp_plan": "x"},
    ],
)  # fmt: skip
def test_settings_that_change_how_a_model_answers_are_left_out(tmp_path, open_path, changes):
    folder = change_config(small_checkpoint(tmp_path / "sound"), **changes)
    checkpoint = open_path(folder)
    (key,) = changes
    said = f"config.json: ignored {key!r} (the app reads plain settings only)."
    assert checkpoint.manifest.warnings == (said,)
    ids = torch.tensor([[2, 9, 4, 3]])
    with torch.inference_mode():
        logits = load(checkpoint, "masked_lm").model(ids).logits
        assert torch.allclose(logits, random_model("BertForMaskedLM")(ids).logits, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"num_attention_heads": float("nan")}, "'nan'"),
        ({"num_hidden_layers": {}}, "'{}'"),
        ({"layer_norm_eps": float("inf")}, "'inf'"),
        ({"pad_token_id": "\ud800"}, r"'\ud800'"),
        ({"hidden_size": 2**64}, "'18446744073709551616'"),
    ],
)
def test_a_setting_that_decides_the_numbers_is_not_left_to_a_default(tmp_path, open_path, changes, shown):
    """transformers would take 12 heads where the file has 2, and answer."""
    folder = change_config(small_checkpoint(tmp_path / "sound"), **changes)
    (key,) = changes
    expected = f"config.json sets {key} to {shown}, which cannot be used: correct it."
    assert refusal(lambda: open_path(folder)) == expected


def test_fewer_layers_than_the_file_holds_are_said(tmp_path, open_path):
    folder = change_config(small_checkpoint(tmp_path / "sound"), num_hidden_layers=1)
    assert open_path(folder).manifest.warnings == (
        "config.json sets num_hidden_layers to 1, but the weights have 2 layers: the app lists the others but never "
        "runs them.",
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"num_attention_heads": 0},
            "No BertForMaskedLM can be built from the config.json of sound: compare it with the original model's.",
        ),
        (
            {"num_attention_heads": -2},
            "BertForMaskedLM did not run on a short text: compare the config.json of sound with the "
            "original model's; if they are equal, this tool cannot run such models.",
        ),
        (
            {"vocab_size": 1e9},
            "The config.json of sound contains a value of vocab_size that bert models do not allow: compare it with "
            "the original model's.",
        ),
    ],
)
def test_values_that_no_model_can_run_with(tmp_path, open_path, changes, sentence):
    checkpoint = open_path(change_config(small_checkpoint(tmp_path / "sound"), **changes))
    assert refusal(lambda: load(checkpoint, "masked_lm")) == sentence


def test_a_template_runs_in_its_sandbox_alone(tmp_path, open_path):
    """A chat template is a program: loading a model does not run it, and the question that does gives it nothing."""
    folder = small_checkpoint(tmp_path / "sound")
    marker = tmp_path / "ran"
    template = "{{ cycler.__init__.__globals__.os.popen('touch " + str(marker) + "').read() }}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}), "utf-8")
    (folder / "chat_template.jinja").write_text(template, "utf-8")
    (folder / "generation_config.json").write_text(json.dumps({"custom_generate": "x"}), "utf-8")
    checkpoint = open_path(folder)
    load(checkpoint, "masked_lm")
    assert "Jinja refuses it" in tokens(checkpoint, progress=silent).template_problem
    assert (checkpoint.manifest.folder / "generation_config.json").read_text() == "{}"
    assert not marker.exists()


# --- text -------------------------------------------------------------------------------------


def test_names_speak_to_no_terminal(tmp_path):
    """A tensor's name in a warning of the command line: no color, no title, no new line."""
    folder = small_checkpoint(tmp_path / "sound")
    tensors = load_file(folder / "model.safetensors")
    tensors["a\x1b[31m\x1b]0;title\x07\nWarning: b"] = torch.ones(2)
    save_file(tensors, folder / "model.safetensors")
    done = subprocess.run(
        [sys.executable, "-m", "inspector", "sharing", str(folder)],
        cwd=Path(__file__).parents[2],
        env={"INSPECTOR_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert r"such as a\x1b[31m\x1b]0;title\x07\nWarning: b" in done.stderr
    assert "\x1b]0;" not in done.stdout + done.stderr
    assert "\nWarning: b" not in done.stderr


def test_a_token_of_a_million_letters_is_shown_by_its_beginning(tmp_path, open_path):
    folder = small_checkpoint(tmp_path / "sound")
    text = (folder / "vocab.txt").read_text("utf-8").replace("w20\n", "x" * 1_000_000 + "\n")
    (folder / "vocab.txt").write_text(text, "utf-8")
    assert open_path(folder).require_tokens().visible(28) == "x" * 300 + "…"


def test_a_normalizer_that_makes_text_longer_without_end(tmp_path, open_path):
    """Twenty lines of JSON would keep a worker busy until its time is over."""
    folder = small_checkpoint(tmp_path / "a")
    (folder / "vocab.txt").unlink()
    tokenizer = Tokenizer(models.WordLevel({"w": 0, "[UNK]": 1}, "[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace("w", "ww")] * 60)
    tokenizer.save(str(folder / "tokenizer.json"))
    plain = {"tokenizer_class": "PreTrainedTokenizerFast"}  # BERT's own class has a normalizer of its own
    (folder / "tokenizer_config.json").write_text(json.dumps(plain), "utf-8")
    tokens = open_path(folder).require_tokens()
    for use in (tokens.encode, tokens.pieces, tokens.find):
        assert refusal(lambda use=use: use("a w")) == (
            "The checkpoint's tokenizer can turn a text of 3 characters into 524,290: check the normalizer in its "
            "tokenizer.json."
        )
    assert tokens.encode("a").ids == (1,)


@pytest.mark.parametrize(
    "normalizer",
    [normalizers.Replace("w", "x" * 10**6), normalizers.Prepend("x" * 10**6), normalizers.Replace("", "xx")],
)
def test_a_normalizer_that_inserts_long_texts(tmp_path, open_path, normalizer):
    folder = small_checkpoint(tmp_path / "a")
    (folder / "vocab.txt").unlink()
    tokenizer = Tokenizer(models.WordLevel({"w": 0, "[UNK]": 1}, "[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.save(str(folder / "tokenizer.json"))
    plain = {"tokenizer_class": "PreTrainedTokenizerFast"}  # BERT's own class has a normalizer of its own
    (folder / "tokenizer_config.json").write_text(json.dumps(plain), "utf-8")
    tokens = open_path(folder).require_tokens()
    if len(normalizer.content if hasattr(normalizer, "content") else normalizer.prepend) > 2:
        assert "can turn a text of 1 characters into 2,000,000" in refusal(lambda: tokens.encode("w"))
    else:
        assert tokens.encode("w").ids == (1,)


@pytest.mark.parametrize("shape", [[1920], [60, 32, 1], []])
def test_an_embedding_that_is_no_matrix_is_none(tmp_path, open_path, shape):
    folder = small_checkpoint(tmp_path / "a")
    state = load_file(folder / "model.safetensors")
    name = "bert.embeddings.word_embeddings.weight"
    state[name] = state[name].reshape(shape) if shape else torch.tensor(1.0)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    assert overview(open_path(folder), progress=silent).vocab_rows is None
