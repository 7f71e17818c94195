"""Hundreds of bad checkpoints, made by combining what a checkpoint consists of with ways to damage it."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from tests.families import (
    ENCODER_DECODER,
    MODELS,
    RENAMED,
    UNLISTED,
    WITHOUT_HEAD,
    random_model,
    save_checkpoint,
    words,
)
from tools.fuzz.seeds import seeds

Make = Callable[[Path], Path]  # writes into an empty folder; what is to be opened
FAMILIES = sorted(MODELS | ENCODER_DECODER | UNLISTED | RENAMED | WITHOUT_HEAD)
WEIGHTS = "model.safetensors"
_bases: dict[str, dict[str, bytes]] = {}  # architecture -> files


def sound(folder: Path, architecture: str = "BertForMaskedLM") -> Path:
    """A sound checkpoint of a family, as a copy of one that is made once."""
    if architecture not in _bases:
        made = save_checkpoint(random_model(architecture), folder.parent / "base")
        _bases[architecture] = {path.name: path.read_bytes() for path in made.iterdir()}
    (folder / "model").mkdir()
    for name, data in _bases[architecture].items():
        (folder / "model" / name).write_bytes(data)
    return folder / "model"


def cases() -> dict[str, Make]:
    """All of them by name."""
    found: dict[str, Make] = {}
    for kind in (
        _bytes,
        _headers,
        _pickles,
        _zips,
        _indexes,
        _configs,
        _tokenizers,
        _archives,
        _formats,
        _names,
        _places,
    ):
        found |= {f"{kind.__name__[1:]}: {name}": make for name, make in kind()}
    return found


def _damaged(change: Callable[[Path], Any], architecture: str = "BertForMaskedLM") -> Make:
    def make(folder: Path) -> Path:
        model = sound(folder, architecture)
        change(model)
        return model

    return make


def _rewritten(name: str, change: Callable[[bytes], bytes], architecture: str = "BertForMaskedLM") -> Make:
    return _damaged(lambda model: (model / name).write_bytes(change((model / name).read_bytes())), architecture)


def _json_changed(name: str, change: Callable[[Any], Any], architecture: str = "BertForMaskedLM") -> Make:
    def changed(data: bytes) -> bytes:
        value = json.loads(data)
        change(value)
        return json.dumps(value).encode()

    return _rewritten(name, changed, architecture)


def _bytes() -> Iterator[tuple[str, Make]]:
    """Each file with bytes that are not its own."""
    damages: dict[str, Callable[[bytes], bytes]] = {
        "zeros": lambda data: b"\0" * len(data),
        "ones": lambda data: b"\xff" * len(data),
        "first half": lambda data: data[: len(data) // 2],
        "second half": lambda data: data[len(data) // 2 :],
        "one byte less": lambda data: data[:-1],
        "twice": lambda data: data * 2,
        "a mark first": lambda data: b"\xef\xbb\xbf" + data,
        "reversed": lambda data: data[::-1],
        "UTF-16": lambda data: data.decode("latin-1").encode("utf-16"),
        "gzip": gzip.compress,
        "HTML": lambda data: b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
        "an error of a hub": lambda data: b'{"error": "Repository not found"}',
        "one bit": lambda data: data[:40] + bytes([data[40] ^ 4]) + data[41:] if len(data) > 40 else data + b"\1",
        "line ends": lambda data: data.replace(b"\n", b"\r\n"),
    }
    for file in ("config.json", "vocab.txt", WEIGHTS):
        for name, change in damages.items():
            yield f"{file} {name}", _rewritten(file, change)


def _header(change: Callable[[dict[str, Any]], Any], *, raw: bool = False) -> Make:
    def changed(data: bytes) -> bytes:
        (size,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + size])
        found = change(header)
        text = found if raw else json.dumps(header if found is None else found).encode()
        return struct.pack("<Q", len(text)) + text + data[8 + size :]

    return _rewritten(WEIGHTS, changed)


def _headers() -> Iterator[tuple[str, Make]]:
    """Headers of safetensors whose numbers and names lie."""
    first = "bert.embeddings.word_embeddings.weight"

    def entry(**changes: Any) -> Make:
        return _header(lambda header: header[first].update(changes))

    for name, dtype in (
        ("F128", "F128"),
        ("number", 32),
        ("none", None),
        ("lower case", "f32"),
        ("list", ["F32"]),
        ("F4", "F4"),
        ("E8M0", "F8_E8M0"),
        ("C64", "C64"),
        ("I64", "I64"),
        ("BOOL", "BOOL"),
    ):
        yield f"dtype {name}", entry(dtype=dtype)
    for name, shape in (
        ("negative", [-60, 32]),
        ("float", [60.0, 32]),
        ("truth", [True, 1920]),
        ("text", "60x32"),
        ("flat", [1920]),
        ("many axes", [60, 32, *[1] * 40]),
        ("swapped", [32, 60]),
        ("none", None),
        ("empty", []),
        ("zero", [0, 32]),
        ("huge", [2**40, 2**40]),
        ("nested", [[60], [32]]),
    ):
        yield f"shape {name}", entry(shape=shape)
    for name, offsets in (
        ("backwards", [7680, 0]),
        ("past", [0, 2**50]),
        ("negative", [-8, 7672]),
        ("three", [0, 1, 7680]),
        ("float", [0.0, 7680.0]),
        ("text", ["0", "7680"]),
        ("one", [7680]),
        ("object", {}),
    ):
        yield f"offsets {name}", entry(data_offsets=offsets)
    yield "an entry besides", _header(lambda header: header[first].update(extra=[1]))
    yield "an entry is a list", _header(lambda header: header.update({first: [1]}))
    yield (
        "the same tensor twice",
        _header(lambda h: json.dumps(h).encode()[:-1] + b"," + json.dumps(h).encode()[1:], raw=True),
    )
    yield "metadata of numbers", _header(lambda header: header.update(__metadata__={"format": 1}))
    yield "metadata that nests", _header(lambda header: header.update(__metadata__={"a": {"b": {}}}))
    yield "spaces", _header(lambda header: json.dumps(header).encode() + b" " * 999, raw=True)
    yield "an array", _header(lambda header: [header])
    yield "not a number", _header(lambda header: json.dumps(header).encode().replace(b"7680", b"NaN", 1), raw=True)
    yield (
        "a long number",
        _header(lambda header: json.dumps(header).encode().replace(b"7680", b"7" * 5000, 1), raw=True),
    )
    for name, new in (
        ("empty", ""),
        ("dots", "../../x"),
        ("controls", "a\x1b[31m\x07\0b"),
        ("surrogate", "\ud800"),
        ("a formula", "=1+1|cmd"),
        ("markup", "<img src=x onerror=alert(1)>"),
        ("long", "w" * 50_000),
        ("right to left", "\u202eweights"),
        ("many dots", "." * 5_000),
        ("brackets", "[x](y)"),
    ):
        yield f"a tensor's name: {name}", _header(lambda header, new=new: header.update({new: header.pop(first)}))


def _state(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / WEIGHTS)


def _saved(change: Callable[[dict[str, Any]], Any], *, legacy: bool = False) -> Make:
    """The same weights by torch.save."""

    def changed(model: Path) -> None:
        state = _state(model)
        (model / WEIGHTS).unlink()
        found = change(state)
        saved = state if found is None else found
        torch.save(saved, model / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)

    return _damaged(changed)


def _pickles() -> Iterator[tuple[str, Make]]:
    """State dicts that torch saves and no model has; in both formats."""
    weight = "bert.embeddings.word_embeddings.weight"
    holds: dict[str, Any] = {
        "a number": 3,
        "a text": "weights",
        "nothing": None,
        "a list": [1, 2],
        "a tuple of tensors": (torch.ones(2), torch.ones(2)),
        "an empty tensor": torch.ones(0),
        "no axes": torch.tensor(1.0),
        "complex": torch.ones(60, 32, dtype=torch.complex64),
        "integers": torch.ones(60, 32, dtype=torch.int64),
        "truths": torch.ones(60, 32, dtype=torch.bool),
        "bytes": torch.ones(60, 32, dtype=torch.uint8),
        "half": torch.ones(60, 32, dtype=torch.bfloat16),
        "eight bits": torch.ones(60, 32).to(torch.float8_e4m3fn),
        "expanded": torch.ones(1, 32).expand(60, 32),
        "turned": torch.ones(32, 60).T,
        "another view": torch.arange(4000.0)[1:1921].reshape(60, 32),
        "every second": torch.arange(7680.0).reshape(120, 64)[::2, ::2],
        "infinite": torch.full((60, 32), float("inf")),
        "not a number": torch.full((60, 32), float("nan")),
        "denormal": torch.full((60, 32), 1e-40),
        "a parameter": torch.nn.Parameter(torch.ones(60, 32)),
        "meta": torch.ones(60, 32, device="meta"),
        "a state dict": {"weight": torch.ones(60, 32)},
    }
    for legacy in (False, True):
        form = "legacy" if legacy else "zip"
        for name, value in holds.items():
            if legacy and name == "meta":
                continue
            yield f"{form} {name}", _saved(lambda state, value=value: state.update({weight: value}), legacy=legacy)
        yield f"{form} keys are numbers", _saved(lambda state: dict(enumerate(state.values())), legacy=legacy)
        yield f"{form} keys are tuples", _saved(lambda state: {(k, 1): v for k, v in state.items()}, legacy=legacy)
        yield f"{form} a tensor alone", _saved(lambda state: state[weight], legacy=legacy)
        yield f"{form} a list", _saved(lambda state: list(state.values()), legacy=legacy)
        yield f"{form} wrapped twice", _saved(lambda state: {"model": {"state_dict": state}}, legacy=legacy)
        yield (
            f"{form} an optimizer beside",
            _saved(lambda state: {"state_dict": state, "optimizer": {"lr": 1.0}, "epoch": 3}, legacy=legacy),
        )
        yield f"{form} one prefix", _saved(lambda state: {f"module.{k}": v for k, v in state.items()}, legacy=legacy)
        yield f"{form} itself", _saved(lambda state: state.update(me=state), legacy=legacy)
        yield f"{form} nothing", _saved(lambda state: {}, legacy=legacy)


def _repacked(change: Callable[[dict[str, bytes]], Any], compression: int = zipfile.ZIP_STORED) -> Make:
    """A .bin whose members are others."""

    def changed(model: Path) -> None:
        path = model / "pytorch_model.bin"
        torch.save(_state(model), path)
        (model / WEIGHTS).unlink()
        with zipfile.ZipFile(path) as packed:
            members = {name: packed.read(name) for name in packed.namelist()}
        found = change(members)
        with zipfile.ZipFile(path, "w", compression) as packed:
            for name, data in (found if isinstance(found, dict) else members).items():
                packed.writestr(name, data)

    return _damaged(changed)


def _zips() -> Iterator[tuple[str, Make]]:
    """torch's zip with members that lie."""
    top = "pytorch_model"
    first = f"{top}/data/0"
    yield "no pickle", _repacked(lambda members: members.pop(f"{top}/data.pkl"))
    yield "an empty pickle", _repacked(lambda members: members.update({f"{top}/data.pkl": b""}))
    yield "a pickle that only ends", _repacked(lambda members: members.update({f"{top}/data.pkl": b"."}))
    yield "a storage less", _repacked(lambda members: members.pop(first))
    yield "a short storage", _repacked(lambda members: members.update({first: members[first][:-4]}))
    yield "a long storage", _repacked(lambda members: members.update({first: members[first] + b"1234"}))
    yield "big endian", _repacked(lambda members: members.update({f"{top}/byteorder": b"big"}))
    yield "an order of no kind", _repacked(lambda members: members.update({f"{top}/byteorder": b"\xff" * 9}))
    yield "two folders", _repacked(lambda members: {**members, **{f"other/{k}": v for k, v in members.items()}})
    yield "no folder", _repacked(lambda members: {k.partition("/")[2]: v for k, v in members.items()})
    yield "deep folders", _repacked(lambda members: {f"a/b/c/{k}": v for k, v in members.items()})
    yield "code", _repacked(lambda members: members.update({f"{top}/code/__torch__.py": b"import os"}))
    yield "constants", _repacked(lambda members: members.update({f"{top}/constants.pkl": b"\x80\x02)."}))
    yield "another version", _repacked(lambda members: members.update({f"{top}/version": b"99999\n"}))
    yield "packed", _repacked(lambda members: None, zipfile.ZIP_DEFLATED)
    yield "packed by LZMA", _repacked(lambda members: None, zipfile.ZIP_LZMA)
    yield "climbing", _repacked(lambda members: members.update({"../../evil": b"x"}))
    for number, (name, data) in enumerate(sorted({**seeds()["pickle"]}.items())):
        yield (
            f"a seed's pickle {number} {name}",
            _repacked(lambda members, data=data: members.update({f"{top}/data.pkl": data})),
        )


def _sharded(change: Callable[[dict[str, Any]], Any]) -> Make:
    def changed(model: Path) -> None:
        shard = "model-00001-of-00001.safetensors"
        names = sorted(_state(model))
        (model / WEIGHTS).rename(model / shard)
        index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, shard)}
        found = change(index)
        text = json.dumps(found if isinstance(found, list) else index)
        (model / f"{WEIGHTS}.index.json").write_text(text, "utf-8")

    return _damaged(changed)


def _indexes() -> Iterator[tuple[str, Make]]:
    """Indexes over one shard."""
    name = "bert.embeddings.word_embeddings.weight"
    for what, place in (
        ("folder", "a/b.safetensors"),
        ("back", "..\\x.safetensors"),
        ("URL", "https://example.org/x.safetensors"),
        ("number", 1),
        ("list", ["x"]),
        ("none", None),
        ("config", "config.json"),
        ("itself", f"{WEIGHTS}.index.json"),
        ("empty", ""),
        ("dot", "."),
        ("device", "/dev/zero"),
        ("home", "~/x.safetensors"),
        ("null", "x\0.safetensors"),
        ("long", "x" * 5000 + ".safetensors"),
        ("surrogate", "\ud800.safetensors"),
        ("upper case", "MODEL-00001-of-00001.safetensors"),
        ("space", " model-00001-of-00001.safetensors"),
        ("count", "model-00001-of-99999.safetensors"),
    ):
        yield f"a place: {what}", _sharded(lambda index, place=place: index["weight_map"].update({name: place}))
    yield "a name less", _sharded(lambda index: index["weight_map"].pop(name))
    yield "a name more", _sharded(lambda index: index["weight_map"].update(extra="model-00001-of-00001.safetensors"))
    yield "no map", _sharded(lambda index: index.pop("weight_map"))
    yield "an empty map", _sharded(lambda index: index.update(weight_map={}))
    yield "a map is a list", _sharded(lambda index: index.update(weight_map=[1]))
    yield "a list", _sharded(lambda index: [index])
    yield "metadata is a text", _sharded(lambda index: index.update(metadata="x"))
    yield "a negative size", _sharded(lambda index: index["metadata"].update(total_size=-(10**30)))


def _configs() -> Iterator[tuple[str, Make]]:
    """Each family with values that are none of its own."""
    values: tuple[Any, ...] = (
        -1,
        0,
        2**31,
        1.5,
        float("nan"),
        float("inf"),
        "64",
        None,
        True,
        [],
        {},
        [64],
        "\ud800",
        10**400,
    )
    keys = (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "layer_norm_eps",
        "hidden_act",
        "max_position_embeddings",
        "intermediate_size",
        "model_type",
        "architectures",
        "id2label",
        "torch_dtype",
        "pad_token_id",
        "tie_word_embeddings",
        "initializer_range",
        "rope_theta",
        "quantization_config",
    )
    number = 0
    for place, architecture in enumerate(FAMILIES):
        for step in range(3):
            key, value = keys[(place * 3 + step) % len(keys)], values[(place * 5 + step * 3 + number) % len(values)]
            number += 1
            yield (
                f"{architecture} {key}={str(value)[:9]!r}",
                _json_changed(
                    "config.json", lambda config, key=key, value=value: config.update({key: value}), architecture
                ),
            )
    for architecture, other in (
        ("BertForMaskedLM", "gpt2"),
        ("GPT2LMHeadModel", "bert"),
        ("LlamaForCausalLM", "t5"),
        ("T5ForConditionalGeneration", "llama"),
        ("BertForMaskedLM", "vit"),
        ("OPTForCausalLM", "whisper"),
        ("BertForMaskedLM", "clip"),
        ("MixtralForCausalLM", "mamba"),
    ):
        yield (
            f"{architecture} says {other}",
            _json_changed("config.json", lambda config, other=other: config.update(model_type=other), architecture),
        )


def _tokenizer(model: Any, **parts: Any) -> Tokenizer:
    made = Tokenizer(model)
    for name, part in parts.items():
        setattr(made, name, part)
    return made


@cache
def _tokenizers_of_all_kinds() -> dict[str, str]:
    vocabulary = {word: number for number, word in enumerate(words())}
    letters = {**vocabulary, **{chr(97 + n): n + len(vocabulary) for n in range(26)}}
    scores = [(word, -float(number)) for number, word in enumerate(words())]
    return {
        "WordPiece": _tokenizer(
            models.WordPiece(vocabulary, unk_token="[UNK]"),
            normalizer=normalizers.BertNormalizer(),
            pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
            decoder=decoders.WordPiece(),
        ).to_str(),
        "BPE": _tokenizer(
            models.BPE(letters, [("a", "b")] if "ab" in letters else [], unk_token="[UNK]"),
            pre_tokenizer=pre_tokenizers.ByteLevel(),
        ).to_str(),
        "Unigram": _tokenizer(models.Unigram(scores, 1), pre_tokenizer=pre_tokenizers.Metaspace()).to_str(),
        "WordLevel": _tokenizer(
            models.WordLevel(vocabulary, "[UNK]"), pre_tokenizer=pre_tokenizers.Whitespace()
        ).to_str(),
    }


def _tokenizers() -> Iterator[tuple[str, Make]]:
    """tokenizer.json of each kind with parts that lie."""

    def put(kind: str, change: Callable[[dict[str, Any]], Any]) -> Make:
        def changed(model: Path) -> None:
            (model / "vocab.txt").unlink()
            value = json.loads(_tokenizers_of_all_kinds()[kind])
            change(value)
            (model / "tokenizer.json").write_text(json.dumps(value), "utf-8")

        return _damaged(changed)

    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "as it is": lambda value: None,
        "no model": lambda value: value.pop("model"),
        "a type of no kind": lambda value: value["model"].update(type="Evil"),
        "ids beyond 32 bits": lambda value: value["model"].update(
            vocab=dict.fromkeys(["a"], 2**40) if isinstance(value["model"]["vocab"], dict) else [["a", 1e400]]
        ),
        "one id for all": lambda value: value["model"].update(
            vocab=dict.fromkeys(value["model"]["vocab"], 0) if isinstance(value["model"]["vocab"], dict) else []
        ),
        "an empty vocabulary": lambda value: value["model"].update(vocab=type(value["model"]["vocab"])()),
        "added tokens without end": lambda value: value.update(
            added_tokens=[
                {
                    "id": 10**6 + n,
                    "content": f"<{n}>",
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for n in range(2000)
            ]
        ),
        "an added token is empty": lambda value: value.update(
            added_tokens=[
                {
                    "id": 3,
                    "content": "",
                    "single_word": False,
                    "lstrip": True,
                    "rstrip": True,
                    "normalized": True,
                    "special": True,
                }
            ]
        ),
        "another version": lambda value: value.update(version="9.9"),
        "padding without end": lambda value: value.update(
            padding={
                "strategy": {"Fixed": 10**9},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "[PAD]",
            }
        ),
        "cut to nothing": lambda value: value.update(
            truncation={"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 0}
        ),
        "a stride beyond": lambda value: value.update(
            truncation={"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 400}
        ),
        "a pattern that breaks": lambda value: value.update(
            normalizer={"type": "Replace", "pattern": {"Regex": "(((("}, "content": "x"}
        ),
        "text that grows": lambda value: value.update(
            normalizer={
                "type": "Sequence",
                "normalizers": [{"type": "Replace", "pattern": {"String": "w"}, "content": "ww"}] * 18,
            }
        ),
        "normalizers in normalizers": lambda value: value.update(normalizer=_nest(200)),
        "a template of strangers": lambda value: value.update(
            post_processor={
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "[NO]", "type_id": 0}}],
                "pair": [],
                "special_tokens": {},
            }
        ),
    }
    for kind in ("WordPiece", "BPE", "Unigram", "WordLevel"):
        for name, change in changes.items():
            yield f"{kind} {name}", put(kind, change)
    for name, text in (
        ("empty", ""),
        ("one line", "a"),
        ("all alike", "a\n" * 60),
        ("spaces", " \n" * 60),
        ("controls", "".join(f"\x1b[{n}m\n" for n in range(60))),
        ("long", "x" * 10**6 + "\n"),
        ("surrogates", "\udc80\n"),
        ("far too many", "".join(f"{n}\n" for n in range(200_000))),
    ):
        yield (
            f"vocab.txt {name}",
            _damaged(lambda model, text=text: (model / "vocab.txt").write_bytes(text.encode("utf-8", "surrogatepass"))),
        )
    for name, settings in (
        ("a class of no kind", {"tokenizer_class": "os.system"}),
        ("a limit below", {"model_max_length": -5}),
        ("a limit of text", {"model_max_length": "x"}),
        ("a mask of no kind", {"mask_token": {"a": 1}}),
        ("tokens without end", {"additional_special_tokens": [f"<{n}>" for n in range(5000)]}),
        ("a list", [1]),
        ("an added token", {"added_tokens_decoder": {"-1": {"content": "x"}}}),
        ("a template", {"chat_template": "{{ self.__init__.__globals__ }}"}),
    ):
        yield (
            f"tokenizer_config.json {name}",
            _damaged(
                lambda model, settings=settings: (model / "tokenizer_config.json").write_text(
                    json.dumps(settings), "utf-8"
                )
            ),
        )
    for name, data in (
        ("sentencepiece.bpe.model", b"\x0a\xff\xff\xff\xff\x0f"),
        ("spiece.model", b"\0" * 1000),
        ("tokenizer.model", b"\x0a\x05\x0a\x01a"),
        ("merges.txt", b"#version: 0.2\na b c d\n"),
        ("vocab.json", b'{"a": -1}'),
        ("special_tokens_map.json", b'{"mask_token": 3}'),
        ("added_tokens.json", b'{"a": "b"}'),
    ):
        yield f"{name} besides", _damaged(lambda model, name=name, data=data: (model / name).write_bytes(data))


def _nest(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(depth):
        found = {"type": "Sequence", "normalizers": [found]}
    return found


def _packed(name: str, members: Callable[[Path], dict[str, bytes]]) -> Make:
    def make(folder: Path) -> Path:
        model = sound(folder)
        path = folder / name
        path.write_bytes((_zip if name.endswith(".zip") else _tar)(members(model)))
        return path

    return make


def _zip(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return packed.getvalue()


def _tar(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            file.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _files(model: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(model.iterdir())}


def _archives() -> Iterator[tuple[str, Make]]:
    """Archives, and archives in them."""
    for form, other in (("model.zip", _tar), ("model.tar.gz", _zip)):
        inner = "inner.tar.gz" if form.endswith(".zip") else "inner.zip"
        yield f"{form} in itself", _packed(form, lambda model, inner=inner, other=other: {inner: other(_files(model))})
        yield (
            f"{form} with another beside",
            _packed(form, lambda model, inner=inner, other=other: {**_files(model), inner: other(_files(model))}),
        )
        yield (
            f"{form} of two checkpoints",
            _packed(form, lambda model: {f"{top}/{k}": v for top in "ab" for k, v in _files(model).items()}),
        )
        yield f"{form} in folders", _packed(form, lambda model: {f"a/b/c/d/{k}": v for k, v in _files(model).items()})
        yield f"{form} of nothing", _packed(form, lambda model: {})
        yield f"{form} of one text", _packed(form, lambda model: {"README.md": b"# model"})
        yield f"{form} of empty files", _packed(form, lambda model: dict.fromkeys(_files(model), b""))
        yield f"{form} of hidden files", _packed(form, lambda model: {f".{k}": v for k, v in _files(model).items()})
        yield (
            f"{form} as a Mac makes it",
            _packed(form, lambda model: {**_files(model), **{f"__MACOSX/._{k}": b"\0\5\x16\7" for k in _files(model)}}),
        )
        yield f"{form} of many names", _packed(form, lambda model: {f"f{n}": b"" for n in range(20_000)})
    yield from _nested_archives()


def _nested_archives() -> Iterator[tuple[str, Make]]:
    """Archives in archives in archives, cut off, and under others' names."""
    for depth in (2, 9):

        def nested(model: Path, depth: int = depth) -> dict[str, bytes]:
            members = _files(model)
            for _ in range(depth):
                members = {"model.zip": _zip(members)}
            return members

        yield f"zips in zips {depth}", _packed("model.zip", nested)
    for name, cut in (("model.zip", -30), ("model.zip", 30), ("model.tar.gz", -30), ("model.tar.gz", 30)):

        def make(folder: Path, name: str = name, cut: int = cut) -> Path:
            path = _packed(name, _files)(folder)
            path.write_bytes(path.read_bytes()[:cut])
            return path

        yield f"{name} cut at {cut}", make
    for name, suffix in (
        ("a zip named", ".tar.gz"),
        ("a tar named", ".zip"),
        ("a text named", ".zip"),
        ("nothing named", ".tar"),
    ):

        def named(folder: Path, name: str = name, suffix: str = suffix) -> Path:
            data = {"a zip named": _zip, "a tar named": _tar}.get(name, lambda _: b"text" if "text" in name else b"")
            path = folder / f"model{suffix}"
            path.write_bytes(data(_files(sound(folder))))
            return path

        yield f"{name} {suffix}", named


def _formats() -> Iterator[tuple[str, Make]]:
    """Formats of others, by name and by bytes."""
    magics = {
        "model.gguf": b"GGUF\3\0\0\0" + b"\xff" * 16,
        "model.ggml": b"lmgg",
        "model.onnx": b"\x08\x07\x12\x07pytorch",
        "tf_model.h5": b"\x89HDF\r\n\x1a\n" + b"\0" * 99,
        "flax_model.msgpack": b"\x81\xa1a\xc7\xff\xff",
        "saved_model.pb": b"\x08\1",
        "model.ckpt.index": b"\0" * 48,
        "rust_model.ot": b"PK\3\4",
        "model.npz": b"PK\5\6" + b"\0" * 18,
        "model.mlmodel": b"\x08\4",
        "model.tflite": b"\x1c\0\0\0TFL3",
        "model.pte": b"ET12",
        "consolidated.00.pth": b"\x80\x02}.",
        "model.bin": b"",
        "adapter_model.safetensors": b"\0" * 8,
    }
    for name, magic in magics.items():
        yield (
            f"{name} alone",
            _damaged(
                lambda model, name=name, magic=magic: (
                    [path.unlink() for path in model.iterdir()],
                    (model / name).write_bytes(magic),
                )
            ),
        )
        yield f"{name} besides", _damaged(lambda model, name=name, magic=magic: (model / name).write_bytes(magic))
    for name in ("model.gguf", "tf_model.h5", "model.onnx", "consolidated.00.pth"):
        yield f"{name} holds safetensors", _damaged(lambda model, name=name: (model / WEIGHTS).rename(model / name))


def _names() -> Iterator[tuple[str, Make]]:
    """File names that speak."""
    for name, new in (
        ("controls", "a\x1b[31m\n.safetensors"),
        ("bytes", os.fsdecode(b"\xff\xfe.safetensors")),
        ("spaces", " .safetensors"),
        ("long", "x" * 243 + ".safetensors"),
        ("a dash", "-rf.safetensors"),
        ("two suffixes", "model.safetensors.bin"),
        ("upper case", "MODEL.SAFETENSORS"),
        ("a dot", ".safetensors"),
        ("right to left", "\u202esrotnesefas.model"),
        ("markup", "<b>.safetensors"),
        ("a device", "nul.safetensors"),
        ("a formula", "=1+1.safetensors"),
        ("wide", "\uff4d\uff4f\uff44\uff45\uff4c.safetensors"),
        ("a percent", "%2e%2e%2f.safetensors"),
    ):
        yield f"weights: {name}", _damaged(lambda model, new=new: (model / WEIGHTS).rename(model / new))
        yield f"besides: {name}", _damaged(lambda model, new=new: (model / new).write_bytes(b"x"))


def _places() -> Iterator[tuple[str, Make]]:
    """Links, folders and other things in a file's place; times and sizes."""
    acts: dict[str, Callable[[Path], Any]] = {
        "a pipe": os.mkfifo,
        "a folder": Path.mkdir,
        "a link to itself": lambda path: path.symlink_to(path.name),
        "a link to nothing": lambda path: path.symlink_to("nowhere"),
        "a link to a device": lambda path: path.symlink_to("/dev/zero"),
        "a link to a secret": lambda path: path.symlink_to("/etc/passwd"),
        "a link to another file": lambda path: path.symlink_to(
            "config.json" if path.name != "config.json" else WEIGHTS
        ),
        "a socket": _socket,
        "a sparse file": lambda path: (path.touch(), os.truncate(path, 2**42)),
        "an empty file": Path.touch,
    }
    for file in ("config.json", "vocab.txt", WEIGHTS):
        for name, act in acts.items():
            yield (
                f"{file} is {name}",
                _damaged(lambda model, file=file, act=act: ((model / file).unlink(), act(model / file))),
            )
    for name, when in (
        ("before time", (-(2**40), -(2**40))),
        ("far ahead", (2**40, 2**40)),
        ("at the beginning", (0, 0)),
    ):
        yield f"times {name}", _damaged(lambda model, when=when: os.utime(model / WEIGHTS, when))
    yield "files without rights", _damaged(lambda model: [path.chmod(0) for path in model.iterdir()])
    yield "a folder of nothing", _damaged(lambda model: [path.unlink() for path in model.iterdir()])


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name may be short alone
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)
