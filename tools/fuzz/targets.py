"""The readers that meet bytes of strangers, each as a function of bytes and a fresh folder."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import numpy as np
from safetensors.numpy import save

from inspector.models.pipeline import read_pipeline
from inspector.progress import no_progress
from inspector.settings import Settings, read_settings
from inspector.store.configs import rebuild_config
from inspector.store.foreign.gguf_tokenizer import stage_template, why_not_read
from inspector.store.foreign.translation import translate_gguf
from inspector.store.hashing import fingerprint_of
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.manifests.manifest import Manifest
from inspector.store.modules import stage_modules
from inspector.store.readers.archives import unpack
from inspector.store.readers.gguf import Array, read_array, read_gguf
from inspector.store.readers.index import choose_weights
from inspector.store.readers.pickles import unpickle
from inspector.store.readers.pytorch import read_pytorch
from inspector.store.readers.safetensors import read_safetensors
from inspector.store.readers.sets import put_together
from inspector.store.sizes import refuse_wrong_sizes
from inspector.store.tokenizer_files import stage_tokenizer
from tools.fuzz.seeds import seeds

TEXT = "The [MASK] sat on 3 mats, naïve – 你好 \U0001f600\n"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def safetensors(data: bytes, folder: Path) -> None:
    """The header of model.safetensors."""
    header = read_safetensors(_file(folder, "model.safetensors", data), "model.safetensors")
    for tensor in header.tensors:
        assert tensor.begin + tensor.nbytes <= len(data), "a tensor past the end of its file"
    for text in header.aliases:
        text.encode()


def gguf(data: bytes, folder: Path) -> None:
    """The header of model.gguf, the arrays of its metadata, and the model and tokenizer that it is read as."""
    path = _file(folder, "model.gguf", data)
    header = read_gguf(path, path.name)
    for tensor in header.tensors:
        assert tensor.begin + tensor.nbytes <= len(data), "a tensor past the end of its file"
    for value in header.settings.values():
        if isinstance(value, Array):
            assert len(read_array(path, path.name, value)) == value.count
    read = translate_gguf(header.tensors, header.settings, header.blocks, {path.name: path})
    assert len({*read.tensors.names}) == len(header.tensors), "two tensors of one name"
    assert (read.config is None) == bool(read.findings), "no model, and nothing that says why"
    why_not_read(header.settings).encode()
    stage_template(header.settings, folder)


def pytorch(data: bytes, folder: Path) -> None:
    """A .bin of either format."""
    header = read_pytorch(_file(folder, "pytorch_model.bin", data), "pytorch_model.bin")
    for tensor in header.tensors:
        steps = zip(tensor.shape, tensor.strides, strict=True)
        itemsize = tensor.nbytes // max(_count(tensor.shape), 1)
        reach = (1 + sum((size - 1) * stride for size, stride in steps)) * itemsize
        assert not tensor.nbytes or tensor.begin + reach <= len(data), "a tensor past the end"


def pickle(data: bytes, folder: Path) -> None:
    """The pickle in a .bin."""
    unpickle(io.BytesIO(data), "pytorch_model.bin")


def archive(data: bytes, folder: Path) -> None:
    """A zip, a tar or a compressed tar."""
    target = folder / "target"
    target.mkdir()
    name = "a.zip" if data.startswith(b"PK") else "a.tar.gz"
    path = _file(folder, name, data)
    source = unpack(path, name, target, settings=_settings(folder), progress=no_progress)
    assert {path.name for path in target.iterdir()} == set(source.files)


def config(data: bytes, folder: Path) -> None:
    """config.json, against the weights of a small BERT."""
    kept = rebuild_config(_file(folder, "config.json", data)).settings
    refuse_wrong_sizes(kept, TENSORS)


def index(data: bytes, folder: Path) -> None:
    """An index of two shards."""
    name = "model.safetensors.index.json"
    files = {shard: _file(folder, shard, b"") for shard in SHARDS}
    weights = choose_weights({**files, name: _file(folder, name, data)})
    put_together(weights, [TENSORS], files)
    assert set(weights.names) <= set(SHARDS)


def tokenizer_config(data: bytes, folder: Path) -> None:
    """The three JSON files of a tokenizer's settings, the first byte saying which."""
    name = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")[(data[0] if data else 0) % 3]
    files = {name: _file(folder, name, data[1:]), "vocab.txt": _file(folder, "vocab.txt", b"a")}
    (folder / "target").mkdir()
    stage_tokenizer(files, folder / "target")


def modules(data: bytes, folder: Path) -> None:
    """What sentence-transformers lists, and its settings of the first module, staged and read."""
    names = ("modules.json", "sentence_bert_config.json")
    files = {name: _file(folder, name, part) for name, part in zip(names, data.split(b"\0\0", 1), strict=False)}
    target = folder / "target"
    target.mkdir()
    stage_modules(files, target)
    found = read_pipeline(Manifest("", "fuzz", "upload", target, (), Tensors.of(()), {}, None, ()))
    assert found is None or (found.modules and (found.longest is None or 0 < found.longest < 10**9))


def tokenizer(data: bytes, folder: Path) -> None:
    """A vocabulary, the first byte saying in which format, staged, read and used."""
    from inspector.models.tokens import Tokens

    names = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"))[(data[0] if data else 0) % 3]
    parts = data[1:].split(b"\0\0", len(names) - 1)
    parts += [b"#version: 0.2\n"] * (len(names) - len(parts))
    files = {n: _file(folder, n, part) for n, part in zip(names, parts, strict=True)}
    target = folder / "target"
    target.mkdir()
    stage_tokenizer(files, target)
    config = {"model_type": "gpt2"}  # whose class reads the merges
    tokens = Tokens(Manifest("", "fuzz", "upload", target, (), Tensors.of(()), {}, config, ()))
    encoded = tokens.encode(TEXT)
    assert all(token.isprintable() for token in encoded.tokens)
    tokens.text(encoded.ids)
    tokens.vocabulary(5)
    tokens.find("mat")


def bare_tokenizer(data: bytes, folder: Path) -> None:
    """A bare vocabulary of SentencePiece or tiktoken, read and used."""
    from inspector.models.vocabulary.bare import bare_roles, read_bare
    from inspector.models.vocabulary.distrust import encode_carefully, translated

    path = _file(folder, "tokenizer.model", data)
    with translated("tokenizer.model cannot be read."):
        read, roles = read_bare(path), bare_roles(path)
    encoded = encode_carefully(read, TEXT)
    assert len(encoded.ids) <= 4 * len(TEXT.encode()) + 2, "more tokens than bytes"
    assert all(isinstance(token, str) for token in roles.values())


def message(data: bytes, folder: Path) -> None:
    """What a worker may send, the first byte saying what the server waits for."""
    from inspector.serving.encoding import DecodeError, decode, encode

    expected = EXPECTED[(data[0] if data else 0) % len(EXPECTED)]
    classes = [_found(name) for name in expected.split()]
    try:
        value = decode(data[1:], *classes)
    except DecodeError:
        return
    # What was read is of its class: it can be sent on, and nothing in it changes on the way
    again = encode(value)
    assert encode(decode(again, *classes)) == again, "another value"


def manifest(data: bytes, folder: Path) -> None:
    """A manifest that another worker left in the store, in the folder that it names."""
    from inspector.store.manifests.documents import DamagedError, read_document
    from inspector.store.manifests.reader import read_manifest

    path = _file(folder, "manifest.json", data)
    entry = folder / "checkpoints" / MANIFEST_FINGERPRINT
    for name in ("folder/config.json", "weights/model.safetensors"):
        (entry / name).parent.mkdir(parents=True)
        (entry / name).write_bytes(b"")
    try:
        found = read_manifest(read_document(path), entry)
    except DamagedError:
        return
    assert all(file.path.is_relative_to(entry) for file in found.files), "a file outside"
    sizes = {file.name: file.nbytes for file in found.files}
    assert all(tensor.begin + tensor.nbytes <= sizes[tensor.file] for tensor in found.tensors if tensor.nbytes)


def adapter(data: bytes, folder: Path) -> None:
    """An adapter's settings and weights: opened, measured, and put on the base that the seeds are made for."""
    from inspector.catalog import answer
    from inspector.models.adapters.overlay import adapted

    settings, _, weights = data.partition(b"\0\0")
    given = _opened(folder, "adapter", {"adapter_config.json": settings, "adapter_model.safetensors": weights})
    base = _opened(folder, "base", {"config.json": ADAPTED_CONFIG, "model.safetensors": ADAPTED_WEIGHTS})
    answer("adapter", given, base=base.manifest.fingerprint, progress=no_progress)
    both = adapted(base, given)
    read = both.read(both.tensors.names)
    assert {name: tuple(each.shape) for name, each in read.items()} == {each.name: each.shape for each in base.tensors}


def _opened(folder: Path, name: str, files: dict[str, bytes]) -> Any:
    """Open a checkpoint of some files."""
    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.store.opening import open_checkpoint
    from inspector.store.reference import CheckpointRef

    (folder / name).mkdir()
    for file, data in files.items():
        _file(folder / name, file, data)
    reference = CheckpointRef("path", str(folder / name))
    settings = read_settings({"INSPECTOR_HOME": str(folder / "home")})
    manifest, _ = open_checkpoint(reference, settings=settings, progress=no_progress, restrict_paths=False)
    return StagedCheckpoint(manifest, settings=settings)


def _learn(hint: Any) -> None:
    """Read the annotations of a class and of those inside, which compiles their texts once."""
    from inspector.serving.encoding.reading import _hints

    inner = _hints(hint).values() if is_dataclass(hint) else get_args(hint)
    for each in inner:
        _learn(each)


def _found(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


# What `message` waits for.
WIRE, RESULTS = "inspector.serving.engine.wire", "inspector.analyses"
EXPECTED = (
    "typing:Any",
    " ".join(f"{WIRE}:{name}" for name in ("Ready", "Warm", "Progress", "Answers", "Failure")),
    f"{WIRE}:Failure {RESULTS}.masked_lm.result:Mask",
    f"{WIRE}:Failure {RESULTS}.heads.result:HeadAnswer",
    f"{WIRE}:Failure {RESULTS}.snapshots.result:Vitals",
)
# A model of two matrices, for adapters
ADAPTED_CONFIG = json.dumps(
    {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8, "intermediate_size": 16,
     "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 12}
).encode()  # fmt: skip
ADAPTED_SHAPES = {"model.embed_tokens.weight": (12, 8), "model.layers.0.self_attn.q_proj.weight": (8, 8)}
ADAPTED_WEIGHTS = save({name: np.ones(shape, np.float32) for name, shape in ADAPTED_SHAPES.items()})
# Of the files and digests that the seed of `manifest` tells
MANIFEST_FINGERPRINT = fingerprint_of({"config.json": "a" * 64, "model.safetensors": "b" * 64})
TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    function.__name__: function
    for function in (
        *(safetensors, gguf, pytorch, pickle, archive, config, index, tokenizer_config, modules, tokenizer),
        *(bare_tokenizer, message, manifest, adapter),
    )
}


@cache
def prepare(target: str) -> None:
    """Import what a target needs, before anybody watches what is opened."""
    if target == "tokenizer":
        with tempfile.TemporaryDirectory() as folder:  # the class of merges is found once a file names it
            tokenizer(b'\2{"a": 0}\0\0#version: 0.2\n', Path(folder))
    if target == "adapter":
        with tempfile.TemporaryDirectory() as folder:
            adapter(seeds()[target]["lora"], Path(folder))
    if target == "bare_tokenizer":
        import_module("transformers.convert_slow_tokenizer")
        import_module("inspector.models.vocabulary.bare")
        import_module("inspector.models.vocabulary.distrust")
    if target == "message":
        import_module("pandas")
        for name in " ".join(EXPECTED).split():
            _learn(_found(name))
    if target == "manifest":
        import_module("inspector.store.manifests.reader")


def _tensor(name: str, *shape: int) -> TensorInfo:
    nbytes = 4 * _count(shape)
    strides = tuple(_count(shape[place + 1 :]) for place in range(len(shape)))
    return TensorInfo(name, "float32", shape, strides, SHARDS[0], 0, nbytes, name, nbytes)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


TENSORS = Tensors.of(
    (
        _tensor("bert.embeddings.word_embeddings.weight", 60, 32),
        _tensor("bert.embeddings.position_embeddings.weight", 64, 32),
        *(_tensor(f"bert.encoder.layer.{n}.output.dense.weight", 32, 48) for n in range(2)),
        _tensor("classifier.weight", 3, 32),
    )
)


@cache
def _settings(folder: Path) -> Settings:
    return read_settings({"INSPECTOR_HOME": str(folder / "home"), "INSPECTOR_UPLOAD_MB": "100"})


def _file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path
