"""Bad and hostile checkpoints: each is built here, and gets one sentence that says what to do."""

from __future__ import annotations

import contextlib
import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as fuzz
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Gemma4TextConfig

from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.overview.compute import overview
from inspector.analyses.sharing.compute import sharing
from inspector.errors import CheckpointError, NotInCheckpointError
from inspector.models.loading import load
from inspector.store.configs import rebuild_config
from inspector.store.readers.safetensors import read_safetensors
from inspector.store.reference import find_reference
from inspector.store.tokenizer_files import rebuild_tokenizer_config
from pages._ui.words import shown
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.sentences import DO_NOT_FIT, TWO_SETS


def header(entries: dict, data: bytes = b"") -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


def change_config(folder: Path, **changes) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), encoding="utf-8")
    return folder


def tensor(begin: int, end: int, shape: list[int] | None = None) -> dict:
    return {"dtype": "F32", "shape": shape or [(end - begin) // 4], "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "model.safetensors is empty: the copy was cut off. Get the file again."),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "model.safetensors is a Git LFS pointer, not the weights: run `git lfs pull` where it "
            "came from, or download the file itself.",
        ),
        (
            struct.pack("<Q", 2**63) + b"{}",
            "model.safetensors is truncated or not a safetensors file: its header should have "
            "9,223,372,036,854,775,808 bytes, but the file has 10. Get the file again.",
        ),
        (header({}), "model.safetensors contains no tensors: its header is empty. Check that it is the right file."),
        (
            header({"a": tensor(0, 8), "b": tensor(4, 12)}, b"\0" * 12),
            "The tensor 'b' in model.safetensors overlaps another: get the file again.",
        ),
        (
            header({"a": tensor(0, 8)}, b"\0" * 4),
            "model.safetensors is truncated: its header lists 8 bytes of weights, but only 4 "
            "are there. Get the file again.",
        ),
        (
            header({"a": tensor(0, 8, [10**6, 10**6])}, b"\0" * 8),
            "The tensor 'a' in model.safetensors should have 4,000,000,000,000 bytes by its "
            "shape, but has 8 by its offsets: get the file again.",
        ),
        (
            struct.pack("<Q", 200_000) + b"[" * 100_000 + b"]" * 100_000,
            "the header of model.safetensors is nested more than 32 levels deep or has "
            "unmatched brackets: check that it is the right file.",
        ),
    ],
)
def test_safetensors_that_lie(folder, refused, content, sentence):
    (folder / "model.safetensors").write_bytes(content)
    assert refused(folder) == sentence


def test_half_a_safetensors_file(folder, refused):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    listed = sum(
        torch.Size(entry["shape"]).numel() * 4
        for name, entry in json.loads(data[8:start]).items()
        if name != "__metadata__"
    )
    assert refused(folder) == (
        f"model.safetensors is truncated: its header lists {listed:,} bytes of weights, but only "
        f"{len(data) - start:,} are there. Get the file again."
    )


def test_too_many_tensors(folder, refused):
    entries = {f"t{n}": tensor(0, 0, [0]) for n in range(100_001)}
    (folder / "model.safetensors").write_bytes(header(entries))
    assert refused(folder) == (
        "model.safetensors lists 100,001 tensors, more than the limit of 100,000: check that it "
        "is a model's checkpoint."
    )


def test_all_keys_under_another_name(folder, open_path):
    tensors = load_file(folder / "model.safetensors")
    save_file({f"evil.{k}": v for k, v in tensors.items()}, folder / "model.safetensors")
    checkpoint = open_path(folder)
    assert overview(checkpoint, progress=silent).heads["masked_lm"] == "absent"
    with pytest.raises(CheckpointError) as error:
        load(checkpoint, "base")
    assert str(error.value) == (
        "None of the 42 tensors of sound belongs to BertModel (the first is "
        "'evil.bert.embeddings.LayerNorm.bias'): check the names, or the model_type in config.json."
    )


@pytest.mark.parametrize("shard", ["../outside.safetensors", "/etc/passwd", "x.bin", "a/b"])
def test_index_that_points_elsewhere(folder, refused, shard):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": shard}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folder / "x-00001-of-00001.safetensors").write_bytes(header({"a": tensor(0, 4)}, b"\0" * 4))
    assert refused(folder) == (
        f"model.safetensors.index.json points to {shard!r}, which is not a safetensors file in "
        "the same folder: an index may only name shards next to it."
    )


def test_an_index_without_a_map(folder, refused):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text("{}", encoding="utf-8")
    assert refused(folder) == "model.safetensors.index.json has no weight_map: get the file again."


def test_an_empty_vocabulary(folder, refused):
    (folder / "vocab.txt").write_text("", encoding="utf-8")
    assert refused(folder) == "vocab.txt is empty: get the file again."


def test_index_whose_shards_lack_a_tensor(folder, refused, open_path):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    halves = {"model-00001-of-00002.safetensors": names[:20],
              "model-00002-of-00002.safetensors": names[20:]}  # fmt: skip
    for shard, held in halves.items():
        save_file({name: tensors[name] for name in held}, folder / shard)
    weight_map = {name: shard for shard, held in halves.items() for name in held}
    index = folder / "model.safetensors.index.json"
    foreign = {f"extra.{name}": shard for name, shard in weight_map.items()}
    index.write_text(json.dumps({"weight_map": foreign}), encoding="utf-8")
    assert refused(folder) == (
        f"model.safetensors.index.json lists {min(foreign)!r} in model-00001-of-00002.safetensors, which "
        f"does not contain it ({len(names)} of {len(names)} tensors are missing): the index belongs to "
        "other files. Compare both with their source."
    )
    index.write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")  # no metadata
    assert sorted(open_path(folder).state) == names
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert refused(folder) == (
        "model-00002-of-00002.safetensors is missing (1 of the 2 shards in "
        "model.safetensors.index.json are): add the missing shards."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"hidden_size": 12_000},
            "config.json sets hidden_size to 12,000, but no tensor in the weights has that "
            f"dimension; its largest matrix is 64 × 32: {DO_NOT_FIT}",
        ),
        (
            {"num_hidden_layers": 20_000},
            "config.json sets num_hidden_layers to 20,000, but the weights have 2 layers: " + DO_NOT_FIT,
        ),
        (
            {"num_labels": 30_000_000},
            "config.json sets num_labels to 30,000,000, but the weights have no classifier: " + DO_NOT_FIT,
        ),
        (
            {"hidden_act": "os.system"},
            "config.json sets hidden_act to 'os.system', which is not an activation function of "
            "transformers: compare config.json with its source. A model with code of its own may have one.",
        ),
        (
            {"to_dict": 1},
            "config.json sets 'to_dict', which is a method of the configuration class, not a "
            "setting: remove that line.",
        ),
    ],
)
def test_config_that_lies_is_refused_before_anything_is_built(folder, refused, changes, sentence):
    change_config(folder, **changes)
    tracemalloc.start()
    try:
        assert refused(folder) == sentence
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_deep_json(folder, refused):
    (folder / "config.json").write_text("[" * 100_000 + "]" * 100_000, encoding="utf-8")
    assert refused(folder) == (
        "config.json is nested more than 32 levels deep or has unmatched brackets: check that it is the right file."
    )


def test_code_is_left_out_and_said(folder, open_path, settings):
    marker = folder.parent / "ran"
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w')", encoding="utf-8")
    change_config(
        folder,
        auto_map={"AutoModel": "evil.Model"},
        attn_implementation="org/kernel",
        _attn_implementation="org/kernel",
    )
    checkpoint = open_path(folder)
    load(checkpoint, "masked_lm")
    assert not marker.exists()
    assert not {"auto_map", "attn_implementation"} & set(checkpoint.config_values)
    assert checkpoint.manifest.warnings == (
        "The checkpoint contains Python files: they are not read and never run.",
        "config.json refers to custom code (auto_map), which never runs here: transformers' own "
        "architecture is used instead.",
        "config.json: ignored 'attn_implementation' (the app reads plain settings only).",
    )
    assert not list(settings.home.rglob("*.py"))


def test_tokenizer_settings_name_no_other_file(folder, open_path, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("[UNK]\nstolen\n", encoding="utf-8")
    config = {
        "tokenizer_class": "BertTokenizer", "vocab": str(secret), "vocab_file": str(secret),
        "init_inputs": [str(secret)], "fast_tokenizer_files": ["../secret.txt"],
        "do_lower_case": False, "mask_token": "[MASK]",
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    checkpoint = open_path(folder)
    staged = json.loads((checkpoint.manifest.folder / "tokenizer_config.json").read_text("utf-8"))
    assert set(staged) == {"tokenizer_class", "do_lower_case", "mask_token"}
    assert checkpoint.require_tokens().find("stolen") is None


def test_no_tokenizer_is_not_made_up(folder, open_path):
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}', "utf-8")
    checkpoint = open_path(folder)
    assert checkpoint.tokens is None
    assert overview(checkpoint, progress=silent).tokenizer is None
    with pytest.raises(NotInCheckpointError) as error:
        checkpoint.require_tokens()
    assert str(error.value) == (
        "There is no tokenizer in this checkpoint: only ids can be shown. Add tokenizer.json (or "
        "vocab.txt) to type text."
    )


def test_two_sets_of_weights_are_said(folder, open_path):
    torch.save(random_model("BertForMaskedLM", seed=1).state_dict(), folder / "pytorch_model.bin")
    assert open_path(folder).manifest.warnings == (TWO_SETS,)


def test_no_weights(folder, refused):
    (folder / "model.safetensors").unlink()
    assert refused(folder) == (
        "There are no weights, only config.json, vocab.txt: add model.safetensors (or "
        "pytorch_model.bin), with config.json and tokenizer files."
    )
    (folder / "tf_model.h5").write_bytes(b"x")
    assert refused(folder).startswith("'tf_model.h5' is TensorFlow's. ")


def test_names_that_deceive_are_shown_as_they_are(folder, open_path):
    """A tensor's name is text, whatever is in it."""
    tensors = load_file(folder / "model.safetensors")
    odd = "<script>alert(1)</script>\0\u202e"
    tensors[odd] = torch.ones(2)
    save_file(tensors, folder / "model.safetensors")
    table = overview(open_path(folder), progress=silent).tensors
    assert odd in set(table["name"])
    assert "<script>alert(1)</script>\\x00\\u202e" in set(shown(table)["name"])  # on the page
    said = CheckpointError(f"The tensor {odd}\n\x1b[31m is broken.")
    assert str(said) == r"The tensor <script>alert(1)</script>\x00\u202e\n\x1b[31m is broken."


# --- whatever bytes ---------------------------------------------------------------------------


@fuzz(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_changed_safetensors_raise_nothing_else(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "model.safetensors"
    content = bytearray(header({"a": tensor(0, 8), "b": tensor(8, 24, [2, 2])}, b"\1" * 24))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        tensors = read_safetensors(path, "model.safetensors").tensors
    except CheckpointError:
        return
    assert all(t.begin + t.nbytes <= len(content) for t in tensors)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["model_type", "id2label", "architectures", "rope_scaling", "vocab", "x",
                         "pad_token", "text_config", "added_tokens_decoder"]) | st.text(max_size=5),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@fuzz(max_examples=150, deadline=None, derandomize=True)
@given(value=JSON)
def test_any_json_is_rebuilt_or_refused(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("fuzz") / "config.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with contextlib.suppress(CheckpointError):
        found = rebuild_config(path).settings
        assert repr(json.loads(json.dumps(found).encode())) == repr(found)  # NaN is no NaN's equal
    with contextlib.suppress(CheckpointError):
        found = rebuild_tokenizer_config(value, "tokenizer_config.json")
        assert repr(json.loads(json.dumps(found).encode())) == repr(found)


def test_a_weight_file_brings_what_lies_beside_it(folder, open_path, settings, tmp_path):
    """Configuration and tokenizer come along; a link that leads out of the roots does not."""
    import dataclasses

    from inspector.store.opening import open_checkpoint
    from inspector.store.reference import CheckpointRef

    (folder / "other.safetensors").write_bytes(b"not read")
    weights = folder / "model.safetensors"
    checkpoint = open_path(weights)
    assert {file.name for file in checkpoint.manifest.files} == {
        "config.json", "model.safetensors", "vocab.txt"
    }  # fmt: skip
    assert checkpoint.require_tokens().find("w3") == 11
    outside = tmp_path / "outside.txt"
    (folder / "vocab.txt").rename(outside)
    (folder / "vocab.txt").symlink_to(outside)
    roots = dataclasses.replace(settings, roots=(folder,))
    with pytest.raises(CheckpointError, match=r"vocab\.txt is a link to a file outside the checkpoint's folder"):
        open_checkpoint(CheckpointRef("path", str(weights)), settings=roots, progress=silent,
                        restrict_paths=True)  # fmt: skip


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "GPT2LMHeadModel", "T5ForConditionalGeneration"])
def test_embeddings_that_were_resized_without_config_json_open_and_are_named(tmp_path, open_path, architecture):
    model = random_model(architecture)
    rows = model.config.vocab_size
    model.resize_token_embeddings(rows + 3)
    folder = save_checkpoint(model, tmp_path / "resized", tokenizer=False)
    checkpoint = open_path(change_config(folder, vocab_size=rows))
    said = f"vocab_size to {rows}, but the embedding matrix has {rows + 3} rows"
    assert any(said in warning for warning in overview(checkpoint, progress=silent).warnings)
    assert embeddings(checkpoint, progress=silent).rows == rows + 3
    with pytest.raises(CheckpointError, match=f"set vocab_size to {rows + 3}"):
        sharing(checkpoint, progress=silent)
    # Another model's size altogether is still refused at once.
    with pytest.raises(CheckpointError, match="no tensor in the weights has that dimension"):
        open_path(change_config(folder, vocab_size=10 * rows))


def test_a_demo_run_is_no_checkpoint_and_its_snapshots_are_named():
    with pytest.raises(CheckpointError, match="demo-run-checkpoint-1000"):
        find_reference("demo-run")


def test_settings_of_single_layers_are_kept_by_their_numbers(tmp_path, open_path):
    sizes: dict[str, Any] = {
        "vocab_size": 64,
        "hidden_size": 16,
        "intermediate_size": 24,
        "head_dim": 8,
        "global_head_dim": 16,
    }
    counts: dict[str, Any] = {"num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1}
    inputs: dict[str, Any] = {"vocab_size_per_layer_input": 64, "hidden_size_per_layer_input": 4}
    config = Gemma4TextConfig(**sizes, **counts, **inputs)
    model = AutoModelForCausalLM.from_config(config)
    folder = save_checkpoint(model, tmp_path / "gemma4", tokenizer=False)
    saved = json.loads((folder / "config.json").read_text())["per_layer_config"]
    assert saved["3"] == {"head_dim": 16}
    checkpoint = open_path(folder)
    assert overview(checkpoint, progress=silent).config["per_layer_config"] == saved
    assert sharing(checkpoint, progress=silent).unique_parameters == model.num_parameters()
    with torch.inference_mode():
        ids = torch.arange(8)[None]
        torch.testing.assert_close(load(checkpoint, "causal_lm").model(ids).logits, model.eval()(ids).logits)
    with pytest.raises(CheckpointError, match="head_dim to 1,000,000"):
        open_path(change_config(folder, per_layer_config={"3": {"head_dim": 10**6}}))
    assert (
        "per_layer_config"
        not in rebuild_config(change_config(folder, per_layer_config={"x": {"head_dim": 8}}) / "config.json").settings
    )


TWICE = {
    "config.json": '{"model_type": "bert", "vocab_size": 60, "vocab_size": 61}',
    "tokenizer_config.json": '{"pad_token": "[PAD]", "pad_token": "[UNK]"}',
    "special_tokens_map.json": '{"pad_token": "[PAD]", "pad_token": "[UNK]"}',
    "added_tokens.json": '{"a": 1, "a": 2}',
    "model.safetensors.index.json": '{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}',
    "vocab.json": '{"a": 1, "\\u0061": 2}',
    "tokenizer.json": '{"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "a": 2}, "unk_token": "b"}}',
}


@pytest.mark.parametrize("name", TWICE)
def test_a_document_that_names_a_key_twice_is_refused(folder, refused, name):
    """Two readers would believe two different things of it."""
    (folder / name).write_text(TWICE[name], encoding="utf-8")
    if name.endswith("index.json"):
        (folder / "model.safetensors").rename(folder / "x.safetensors")
    said = refused(folder)
    assert said == f"{name} is not valid JSON (a key occurs twice): get the file again."


def test_a_vocabulary_of_endless_empty_lists_is_refused_before_it_is_parsed(folder, refused):
    (folder / "tokenizer.json").write_text(f"[{'[],' * 4_000_000}[]]", encoding="utf-8")
    assert refused(folder) == "tokenizer.json contains more than 8,000,000 values: check that it is the right file."
