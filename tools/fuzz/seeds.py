"""Write the seeds, small sound inputs and known traps: `python -m tools.fuzz.seeds`."""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle  # noqa: TID251
import re
import struct
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from inspector.store.hashing import fingerprint_of

Q_PROJ = "model.layers.0.self_attn.q_proj"
SEEDS = Path(__file__).parent / "seeds"
WHEN = (2020, 1, 1, 0, 0, 0)


def seeds() -> dict[str, dict[str, bytes]]:
    """Every seed: target -> name -> bytes."""
    return {
        "safetensors": _safetensors(),
        "gguf": _ggufs(),
        "pytorch": _pytorch(),
        "pickle": _pickles(),
        "archive": _archives(),
        "config": {name: _json(value) for name, value in CONFIGS.items()},
        "index": {name: _json(value) for name, value in INDEXES.items()},
        "tokenizer_config": _tokenizer_configs(),
        "modules": _modules(),
        "tokenizer": _tokenizers(),
        "bare_tokenizer": _bare_tokenizers(),
        "message": _messages(),
        "adapter": _adapters(),
        "manifest": {"plain": _json(MANIFEST), "bare": _json({**MANIFEST, "tensors": [], "config": None})},
    }


def write(folder: Path) -> None:
    """Write them below a folder, and remove what is there besides."""
    built = seeds()
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in built.get(path.parent.name, {}):
            path.unlink()
    for target, files in built.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / target / name).write_bytes(data)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _header(entries: Any, data: bytes = b"") -> bytes:
    text = _json(entries)
    return struct.pack("<Q", len(text)) + text + data


def _entry(begin: int, end: int, dtype: str = "F32", shape: list[int] | None = None) -> Any:
    return {"dtype": dtype, "shape": shape or [(end - begin) // 4], "data_offsets": [begin, end]}


def _safetensors() -> dict[str, bytes]:
    two = {"a": _entry(0, 8), "b": _entry(8, 24, shape=[2, 2])}
    return {
        "two": _header({"__metadata__": {"format": "pt"}} | two, bytes(24)),
        "alias": _header({"__metadata__": {"head": "a"}, "a": _entry(0, 8, "BF16", [4])}, bytes(8)),
        "scalar": _header({"a": _entry(0, 4) | {"shape": []}, "e": _entry(4, 4)}, bytes(4)),
        "overlap": _header({"a": _entry(0, 8), "b": _entry(4, 12)}, bytes(12)),
        "escapes": _header({'\u202e"\\\ud800': _entry(0, 8)}, bytes(8)),
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    }


def _gguf_text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _gguf(metadata: dict[str, tuple[int, bytes]], tensors: dict[str, tuple[int, ...]], version: int = 3) -> bytes:
    """A file of GGUF: key -> kind and value, tensor -> sizes, the fastest first, type and offset."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(_gguf_text(key) + struct.pack("<I", kind) + value for key, (kind, value) in metadata.items())
    head += b"".join(
        _gguf_text(name) + struct.pack(f"<I{len(rest) - 2}QIQ", len(rest) - 2, *rest) for name, rest in tensors.items()
    )
    return head + bytes(-len(head) % 32) + bytes(96)


def _llama() -> dict[str, tuple[int, bytes]]:
    """The metadata of a model with every setting that is read."""
    whole = {"context_length": 32, "embedding_length": 4, "block_count": 1, "feed_forward_length": 8,
             "attention.head_count": 1, "attention.head_count_kv": 1, "rope.dimension_count": 4}  # fmt: skip
    numbers = {"attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e4, "rope.scaling.factor": 2.0}
    texts = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.chat_template": "{{ a }}"}
    return {
        "general.architecture": (8, _gguf_text("llama")),
        "llama.rope.scaling.type": (8, _gguf_text("yarn")),
        "tokenizer.ggml.eos_token_id": (4, struct.pack("<I", 1)),
        **{f"llama.{key}": (4, struct.pack("<I", value)) for key, value in whole.items()},
        **{f"llama.{key}": (6, struct.pack("<f", value)) for key, value in numbers.items()},
        **{key: (8, _gguf_text(value)) for key, value in texts.items()},
    }


def _ggufs() -> dict[str, bytes]:
    words = struct.pack("<IQ", 8, 3) + b"".join(map(_gguf_text, ("a", "▁b", "")))
    metadata = {
        "general.architecture": (8, _gguf_text("llama")),
        "llama.block_count": (4, struct.pack("<I", 1)),
        "llama.rope.freq_base": (6, struct.pack("<f", 1e4)),
        "tokenizer.ggml.tokens": (9, words),
        "tokenizer.ggml.scores": (9, struct.pack("<IQ3f", 6, 3, 0, -1, -2)),
    }
    two = {"token_embd.weight": (32, 2, 0), "output_norm.weight": (8, 0, 32)}
    return {
        "two": _gguf(metadata, two),
        "model": _gguf(_llama(), {"token_embd.weight": (4, 2, 0, 0)}),
        "scaled-twice": _gguf(_llama(), {"token_embd.weight": (4, 2, 0, 0), "rope_freqs.weight": (2, 0, 32)}),
        "version-2": _gguf({}, {"a": (8, 0, 0)}, version=2),
        "overlap": _gguf({}, {"a": (8, 0, 0), "b": (8, 0, 0)}),
        "nested": _gguf({"a": (9, struct.pack("<IQIQI", 9, 1, 4, 1, 1))}, {"a": (8, 0, 0)}),
        "many": _gguf({"a": (9, struct.pack("<IQ", 8, 2**40))}, {"a": (8, 0, 0)}),
    }


def _pytorch() -> dict[str, bytes]:
    import torch

    base = torch.arange(6.0)
    states: dict[str, Any] = {
        "plain": OrderedDict(a=torch.ones(2, 2), b=torch.zeros(1, dtype=torch.bfloat16)),
        "views": {"a": base[:4], "b": base[2:], "c": base.reshape(2, 3).T},
        "wrapped": {"model": {"a": torch.nn.Parameter(torch.ones(2))}, "epoch": 3},
        "sparse": {"a": torch.eye(2).to_sparse()},
    }
    written = {f"{name}-zip": _saved(state, new=True) for name, state in states.items()}
    for name in ("views", "wrapped"):  # of one storage each: the old format sorts by addresses
        written[f"{name}-legacy"] = _renamed(_saved(states[name], new=False))
    written["tar"] = _tar({"a": b"x"})
    return written


def _saved(state: Any, *, new: bool) -> bytes:
    import torch

    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=new)
    return buffer.getvalue()


def _renamed(data: bytes) -> bytes:
    """The old format names a storage by its address: name it 0 instead."""
    text = rb"X.\0\0\0\d{6,20}(?=X|q)"  # a text of digits
    return re.sub(text, b"X\1\0\0\0000", data, flags=re.DOTALL)


PID = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x02tQ"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + PID + b"K\0(K\x02t(K\x01t\x89NtR"


def _pickles() -> dict[str, bytes]:
    values = {"a": [1, 2.5, None, True, (3,)], "é": b"x", "n": 2**70}
    written = {f"values-{n}": pickle.dumps(values, protocol=n) for n in (0, 2, 4, 5)}
    programs = {
        "tensor": b"}X\x01\0\0\0w" + TENSOR + b"s",
        "ordered": b"ccollections\nOrderedDict\n)RX\x01\0\0\0w" + TENSOR + b"s}b",
        "size": b"ctorch\nSize\n(K\x01K\x02t\x85R",
        "parameter": b"ctorch._utils\n_rebuild_parameter\n" + TENSOR + b"\x88}\x87R",
        "code": b"cos\nsystem\nX\x04\0\0\0true\x85R",
        "memo": b"]q\0h\0ah\0a\x8a\x02\xff\x7f",
        "python2": b"ccollections\nOrderedDict\n]](U\x01aK\x01ea\x85R",
        "dtype": b"ctorch\nfloat32\nctorch\ndevice\nU\x03cpu\x85R\x86",
    }
    return written | {name: b"\x80\x02" + code + b"." for name, code in programs.items()}


def _messages() -> dict[str, bytes]:
    """Answers of every kind, and lies about sizes and types; the first byte is the target's."""
    import numpy as np
    import pandas as pd

    from inspector.analyses.masked_lm.result import Mask
    from inspector.serving.encoding import encode
    from inspector.serving.encoding.parts import join
    from inspector.serving.engine.wire import Answers, Failure

    frame = pd.DataFrame(
        {
            "token": ["a", None],
            "kind": pd.Categorical(["x", "y"]),
            "score": np.array([0.5, 1.5], dtype="float32"),
            "rank": pd.array([1, None], dtype="Int64"),
            "ids": pd.Series([[1], (2, "b")], dtype="object"),
        }
    )
    values = {"a": [1, 2.5, None, True, b"x", 1j], "t": (1, ("x",)), "s": {1}, "n": np.arange(6).reshape(2, 3)}
    pointers = {"a": ["O8", [1], 8]}
    return {
        "values": b"\0" + encode(values),
        "frame": b"\0" + encode(frame),
        "pointers": b"\0" + join(pointers, [b"A" * 8]),
        "huge": b"\0" + join({"a": ["int8", [2**40], 2**40]}, []),
        "answers": b"\1" + encode(Answers.of([Failure("CheckpointError", "gone"), 1])),
        "mask": b"\2" + encode(Mask(1, frame)),
        "failure": b"\3" + encode(Failure("CheckpointError", "gone")),
    }


MANIFEST: dict[str, Any] = {
    "format": 1,
    "fingerprint": fingerprint_of({"config.json": "a" * 64, "model.safetensors": "b" * 64}),
    "name": "mini",
    "source": "upload",
    "files": [
        {"name": name, "format": form, "nbytes": 400, "sha256": digit * 64, "path": f"{place}/{name}", "stamp": None}
        for name, form, place, digit in (
            ("config.json", "json", "folder", "a"),
            ("model.safetensors", "safetensors", "weights", "b"),
        )
    ],
    "tensors": [["w", "float32", [2, 3], [3, 1], "model.safetensors", 100, 24, "model.safetensors:w", 24]],
    "aliases": {"head": "w"},
    "config": {"model_type": "bert", "hidden_size": 3},
    "warnings": ["There is no tokenizer."],
    "quantization": {"bits": 4},
}
FILES = {"m/config.json": b"{}", "m/vocab.txt": b"a\nb\n", "m/model.safetensors": bytes(40)}


def _zip(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, WHEN)
            info.compress_type = method
            archive.writestr(info, data)
    return buffer.getvalue()


def _tar(files: dict[str, bytes], **changes: Any) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=changes.pop("format", 2)) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in changes.items():
                setattr(info, field, value)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _archives() -> dict[str, bytes]:
    long = {"m/" + "d" * 200 + "/config.json": b"{}"}
    return {
        "stored": _zip(FILES),
        "deflated": _zip(FILES, zipfile.ZIP_DEFLATED),
        "climbing": _zip({"../config.json": b"{}"}),
        "tar": _tar(FILES),
        "gnu": _tar(long, format=tarfile.GNU_FORMAT),
        "pax": _tar(long | FILES, format=tarfile.PAX_FORMAT, mtime=1.5),
        "link": _tar({"config.json": b""}, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        "tgz": gzip.compress(_tar(FILES), mtime=0),
    }


CONFIGS: dict[str, Any] = {
    "bert": {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "hidden_act": "gelu",
        "max_position_embeddings": 64,
        "vocab_size": 60,
        "layer_norm_eps": 1e-12,
        "id2label": {"0": "no", "1": "yes"},
        "label2id": {"no": 0},
    },
    "nested": {
        "model_type": "t5",
        "text_config": {"d_model": 32, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        "layer_types": ["full_attention"] * 3,
        "encoder": {"num_layers": 2},
    },
    "hostile": {
        "auto_map": {"AutoModel": "a.B"},
        "quantization_config": {"bits": 4},
        "torch_dtype": "os",
        "hidden_act": "os.system",
        "to_dict": 1,
        "num_labels": 10**9,
        "_name_or_path": "/etc",
        "model_type": "../x",
        "vocab_size": 1e9,
        "inner_group_num": 10**9,
        "x": [[[[1]]]],
    },
}
INDEXES: dict[str, Any] = {
    "two": {
        "metadata": {"total_size": 8},
        "weight_map": {
            "bert.embeddings.word_embeddings.weight": "model-00001-of-00002.safetensors",
            "b": "model-00002-of-00002.safetensors",
        },
    },
    "outside": {"weight_map": {"a": "../x.safetensors", "b": "/etc/passwd", "c": "x.bin"}},
}


def _tokenizer_configs() -> dict[str, bytes]:
    mask = {"content": "[MASK]", "lstrip": True, "special": True, "__type": "AddedToken"}
    return {
        "config": b"\0"
        + _json(
            {
                "tokenizer_class": "BertTokenizer",
                "mask_token": mask,
                "pad_token": "[PAD]",
                "do_lower_case": True,
                "model_max_length": 10**30,
                "vocab_file": "/etc/passwd",
                "added_tokens_decoder": {"0": mask},
                "additional_special_tokens": ["<x>"],
                "chat_template": "{{ ''.__class__ }}",
                "auto_map": {"AutoTokenizer": ["a.B", None]},
            }
        ),
        "special": b"\1" + _json({"pad_token": mask, "eos_token": "</s>"}),
        "added": b"\2" + _json({"<x>": 7, "<y>": 2**40}),
    }


def _modules() -> dict[str, bytes]:
    kinds = ("models.Transformer", "models.Pooling", "models.Normalize")
    types = [
        {"idx": number, "name": str(number), "path": "../x" if number else "", "type": f"sentence_transformers.{kind}"}
        for number, kind in enumerate(kinds)
    ]
    settings = {"max_seq_length": 32, "do_lower_case": True, "transformer_task": "fill-mask", "model_args": {"a": 1}}
    return {
        "list": _json(types),
        "settings": _json(types) + b"\0\0" + _json(settings),
        "wrong": _json([{"type": 7}]) + b"\0\0" + _json({"max_seq_length": -1, "transformer_task": "../x"}),
    }


def _adapters() -> dict[str, bytes]:
    """Settings of an adapter and its weights, of the base in `tools.fuzz.targets`."""

    def made(
        settings: dict[str, Any], shapes: dict[str, tuple[int, ...]], module: str = Q_PROJ, fill: float = 0.5
    ) -> bytes:
        weights = {
            f"base_model.model.{module}.{role}": np.full(shape, fill, np.float32) for role, shape in shapes.items()
        }
        return _json(settings) + b"\0\0" + save(weights)

    lora = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    pair: dict[str, tuple[int, ...]] = {"lora_A.weight": (2, 8), "lora_B.weight": (8, 2)}
    hada = {f"hada_w{number}_{part}": (8, 2)[:: 1 if part == "a" else -1] for number in (1, 2) for part in "ab"}
    return {
        "lora": made(lora, pair),
        "patterns": made(
            lora | {"rank_pattern": {"q_proj": 0}, "alpha_pattern": {"(a|b)+": 3}, "use_rslora": True}, pair
        ),
        "dora": made(lora | {"use_dora": True}, pair | {"lora_magnitude_vector": (8,)}),
        "embedding": made(lora, {"lora_embedding_A": (2, 12), "lora_embedding_B": (8, 2)}, "model.embed_tokens"),
        "whole": made(lora | {"modules_to_save": ["embed_tokens"]}, {"weight": (12, 8)}, "model.embed_tokens"),
        "half": made(lora, {"lora_A.weight": (2, 8)}),
        "shapes": made(lora, {"lora_A.weight": (2, 9), "lora_B.weight": (8, 3)}),
        "not-finite": made(lora, pair, fill=float("nan")),
        "elsewhere": made(lora, pair, "model.layers.7.mlp.up_proj"),
        "ia3": made({"peft_type": "IA3", "feedforward_modules": []}, {"ia3_l": (8, 1)}),
        "loha": made({"peft_type": "LOHA", "r": 2, "alpha": 4}, hada),
        "lokr": made({"peft_type": "LOKR", "r": 2, "alpha": 4}, {"lokr_w1": (2, 2), "lokr_w2": (4, 4)}),
    }


def _bare_tokenizers() -> dict[str, bytes]:
    def field(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2, len(data)]) + data

    def piece(text: str, score: float = 0.0, kind: int = 1) -> bytes:
        return field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))

    texts = ("▁", "a", "t", "s", "▁s", "at", "sat", "▁sat", "3")
    pieces = piece("<unk>", kind=2) + piece("<s>", kind=3) + b"".join(piece(t, -n) for n, t in enumerate(texts))
    fallback = b"".join(piece(f"<0x{byte:02X}>", kind=6) for byte in range(256))
    ranks = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256)) + b"c2E= 256\n"
    return {
        "unigram": pieces + field(2, b"\x18\x01") + field(3, b"\x18\x01"),
        "bpe": pieces + fallback + piece("[MASK]", kind=4) + field(2, b"\x18\x02\x98\x02\x01"),
        "charsmap": pieces + field(3, field(2, struct.pack("<I", 4) + b"\x00\x01\x00\x00a\0")),
        "words": pieces + field(2, b"\x18\x03"),
        "cut": pieces[:-1],
        "tiktoken": ranks,
    }


def _tokenizers() -> dict[str, bytes]:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    wordpiece = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer()
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.add_special_tokens(["[MASK]"])
    bpe = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    bpe.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s+|\w+"), "isolated")
    bpe.decoder = decoders.ByteLevel()
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("▁b", -2.0)], 0, True))
    unigram.normalizer = normalizers.Replace("a", "bb")
    word = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 4_294_967_295}, unk_token="[UNK]"))
    built = {"wordpiece": wordpiece, "bpe": bpe, "unigram": unigram, "word": word}
    return {name: b"\0" + tokenizer.to_str().encode() for name, tokenizer in built.items()} | {
        "vocab-txt": b"\1[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##t\n",
        "byte-level": b"\2" + _json({"a": 0, "b": 1, "ab": 2, "<s>": 3}) + b"\0\0#version\na b\n",
    }


if __name__ == "__main__":
    write(SEEDS)
