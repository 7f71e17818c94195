"""Hostile checkpoints from the upload to the answer, some in a worker as the app runs it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.lens.compute import lens
from inspector.analyses.masked_lm.compute import predict
from inspector.analyses.vocabulary_map.compute import project
from inspector.errors import CheckpointError, InspectorError
from inspector.models.loading import load
from inspector.models.vocabulary.panics import unprinted
from inspector.serving.engine.local import LocalEngine
from inspector.settings import Settings, read_settings
from inspector.store.readers.pytorch import read_pytorch
from tests.conftest import silent
from tests.families import random_model, save_checkpoint, words
from tests.sentences import NO_TOKENIZER_FILES, TWO_SETS, WEIGHTS_ONLY
from tests.serving.engine.engine_harness import WAIT
from tests.store.store_builders import opened, small_checkpoint, upload_of, uploaded
from tools.fuzz.watch import watched

BREAKS = "The checkpoint's tokenizer fails on this text: compare the tokenizer's files with their source."


def legacy_bin(program: bytes) -> bytes:
    """A .bin of the format before the zip one, its state dict a program of one's own."""
    magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    return magic + b"\x80\x02M\xe9\x03." + b"\x80\x02}." + b"\x80\x02" + program


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(InspectorError) as error:
        act()
    return str(error.value)


@pytest.fixture
def folder(tmp_path) -> Path:
    return small_checkpoint(tmp_path / "sound")


@pytest.fixture(scope="module")
def its_settings(tmp_path_factory) -> Settings:
    home = tmp_path_factory.mktemp("engine") / "home"
    return read_settings({"INSPECTOR_HOME": str(home), "INSPECTOR_WORKERS": "1"})


@pytest.fixture(scope="module")
def engine(its_settings):
    """Real workers on a store of their own."""
    made = LocalEngine(its_settings, spare=False, restrict_paths=True)
    yield made
    made.close()


BOMBS = {
    "a bytearray of two gigabytes": (
        b"cbuiltins\nbytearray\nJ\x00\x94\x35\x77\x85R.",
        "pytorch_model.bin contains 'builtins.bytearray', which is not a tensor: nothing in it was run. "
        + WEIGHTS_ONLY,
    ),
    "one of its own opcode": (
        b"\x96" + struct.pack("<Q", 2_000_000_000) + b".",
        "pytorch_model.bin is truncated or broken: its list of tensors cannot be read. Get the file again.",
    ),
    "five million marks": (
        b"(" * 5_000_000 + b".",
        "pytorch_model.bin is truncated or broken: its list of tensors cannot be read. Get the file again.",
    ),
}


@pytest.mark.parametrize("bomb", sorted(BOMBS))
def test_a_pickle_that_asks_for_memory_is_refused_by_a_worker_that_goes_on(engine, its_settings, bomb):
    program, sentence = BOMBS[bomb]
    files = {"pytorch_model.bin": legacy_bin(program)}
    assert refusal(lambda: engine.open(uploaded(its_settings, files)).result(WAIT)) == sentence
    for worker in engine.workers():
        assert psutil.Process(worker.pid).memory_info().rss < 1_000_000_000


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_with_indices_that_lie(tmp_path, layout):
    """Their use would crash the process; they are not even read."""
    values, far = torch.ones(1), 10**9
    if layout == torch.sparse_coo:
        tensor = torch.sparse_coo_tensor(torch.tensor([[far], [far]]), values, (3, 3), check_invariants=False)
    else:
        tensor = torch.sparse_csr_tensor(
            torch.tensor([0, 1, 1, 1]), torch.tensor([far]), values, (3, 3), check_invariants=False
        )
    path = tmp_path / "w.bin"
    torch.save({"w": tensor}, path)
    assert refusal(lambda: read_pytorch(path, "w.bin")) == (
        "w.bin contains a tensor that is not strided ('_rebuild_sparse_tensor'): save it with dense tensors."
    )


def test_a_storage_packed_a_thousandfold_is_not_unpacked(tmp_path):
    path = tmp_path / "w.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("w/data/0", "w", force_zip64=True) as file:
            for _ in range(200):
                file.write(bytes(1_000_000))
        archive.writestr("w/data.pkl", b"\x80\x02}.")
    with zipfile.ZipFile(path) as archive:
        packed = archive.getinfo("w/data/0").compress_size
    tracemalloc.start()
    try:
        sentence = refusal(lambda: read_pytorch(path, "w.bin"))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert sentence == (
        f"w.bin contains compressed data ({packed:,} bytes for 200,000,000), which PyTorch never "
        "writes: save it again with torch.save()."
    )


def test_a_pointer_in_place_of_a_bin(folder, settings):
    (folder / "model.safetensors").unlink()
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    (folder / "pytorch_model.bin").write_bytes(pointer)
    assert refusal(lambda: opened(upload_of(settings, folder), settings)) == (
        "pytorch_model.bin is a Git LFS pointer, not the weights: run `git lfs pull` where it came "
        "from, or download the file itself."
    )


def test_a_wrapped_state_dict_gives_its_own_weights_and_no_random_ones(folder, open_path):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({"model": tensors, "step": 7}, folder / "pytorch_model.bin")
    checkpoint = open_path(folder)
    assert checkpoint.manifest.warnings == ("pytorch_model.bin has its weights under 'model'; the app reads those.",)
    model = load(checkpoint, "masked_lm").model
    truth = random_model("BertForMaskedLM")
    for name, parameter in truth.named_parameters():
        assert torch.equal(model.get_parameter(name), parameter), name


@pytest.mark.parametrize("place", ["../outside.safetensors", "{outside}", "x.bin"])
def test_an_index_reads_nothing_outside_its_folder(folder, settings, tmp_path, place):
    (folder / "model.safetensors").rename(tmp_path / "outside.safetensors")
    shard = place.format(outside=tmp_path / "outside.safetensors")
    index = {"weight_map": {"bert.embeddings.LayerNorm.bias": shard}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folder / "model-00001-of-00001.safetensors").write_bytes(b"{}")
    reference = upload_of(settings, folder)
    with watched(settings.home):
        sentence = refusal(lambda: opened(reference, settings))
    assert re.fullmatch(
        r"model\.safetensors\.index\.json points to '.*', which is not a safetensors file in "
        r"the same folder: an index may only name shards next to it\.",
        sentence,
    )


SECRETS = {
    "tokenizer_config.json": {"vocab": "{secret}", "vocab_file": "{secret}", "init_inputs":
        ["{secret}"], "fast_tokenizer_files": ["{secret}"], "tokenizer_file": "{secret}"},
    "config.json": {"_name_or_path": "{secret}", "tokenizer_file": "{secret}", "gguf_file":
        "{secret}", "vocab_file": "{secret}", "auto_map": {"AutoModel": "{secret}"}},
    "special_tokens_map.json": {"vocab_file": "{secret}", "pad_token": "[PAD]"},
}  # fmt: skip


def test_settings_that_name_a_file_outside_read_nothing_there(folder, settings, tmp_path):
    """The whole opening is watched: only the store is touched."""
    secret = tmp_path / "secret.txt"
    secret.write_text("[UNK]\nstolen\n", encoding="utf-8")
    for name, values in SECRETS.items():
        path = folder / name
        before = json.loads(path.read_text("utf-8")) if path.exists() else {}
        text = json.dumps(before | values).replace("{secret}", str(secret))
        path.write_text(text, encoding="utf-8")
    reference = upload_of(settings, folder)
    with watched(settings.home):
        manifest, _ = opened(reference, settings)
    staged = b"".join(path.read_bytes() for path in manifest.folder.iterdir())
    assert b"secret" not in staged
    assert b"stolen" not in staged


def plainly_read(folder):
    """Have no class of transformers replace steps of the file, or add tokens to it, as BERT's own does."""
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}', "utf-8")


def tokenizer_of(folder: Path, **parts) -> Path:
    """Put a tokenizer.json of one's own into a checkpoint."""
    (folder / "vocab.txt").unlink()
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(words())}, "[UNK]"))
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.save(str(folder / "tokenizer.json"))
    plainly_read(folder)
    return folder


CATASTROPHE = pre_tokenizers.Split(Regex("(a+)+$"), "isolated")


def test_a_pattern_that_never_ends_is_one_sentence(folder, open_path):
    """The library panics, past Exception."""
    tokens = open_path(tokenizer_of(folder, pre_tokenizer=CATASTROPHE)).require_tokens()
    text = "a" * 40 + "!"
    for use in (tokens.encode, tokens.pieces, tokens.find):
        assert refusal(lambda use=use: use(text)) == BREAKS


def test_a_panic_prints_nothing_and_what_others_print_is_kept(folder, open_path, capfd):
    tokens = open_path(tokenizer_of(folder, pre_tokenizer=CATASTROPHE)).require_tokens()
    capfd.readouterr()
    assert refusal(lambda: tokens.encode("a" * 40 + "!")) == BREAKS
    assert capfd.readouterr() == ("", "")
    with unprinted(), unprinted():
        os.write(2, b"a warning\n")
    os.write(2, b"another\n")
    with contextlib.suppress(ValueError), unprinted():
        os.write(2, b"a third\n")
        int("no number")
    assert capfd.readouterr() == ("", "a warning\nanother\na third\n")


def test_a_pattern_that_never_ends_leaves_its_worker_alive(engine, its_settings, folder):
    reference = upload_of(its_settings, tokenizer_of(folder, pre_tokenizer=CATASTROPHE))
    fingerprint = engine.open(reference).result(WAIT).fingerprint
    pids = {worker.pid for worker in engine.workers()}
    text = "a" * 40 + "!"
    assert refusal(lambda: engine.run(fingerprint, "lens", text=text).result(WAIT)) == BREAKS
    assert engine.run(fingerprint, "overview").result(WAIT).vocab_rows == 60
    assert pids == {worker.pid for worker in engine.workers()}


def test_a_vocabulary_without_its_unknown_token_is_one_sentence(folder, open_path):
    (folder / "vocab.txt").unlink()
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]"))
    tokenizer.save(str(folder / "tokenizer.json"))
    tokens = open_path(folder).require_tokens()
    assert refusal(lambda: tokens.encode("b")) == BREAKS


def test_a_pattern_that_is_none_is_refused_when_it_is_read(folder, open_path):
    tokenizer_of(folder, pre_tokenizer=CATASTROPHE)
    path = folder / "tokenizer.json"
    path.write_text(path.read_text("utf-8").replace("(a+)+$", "(a"), "utf-8")
    assert refusal(lambda: open_path(folder).require_tokens()) == NO_TOKENIZER_FILES


def test_rows_that_no_token_names_are_shown_by_their_ids(tmp_path, open_path):
    model = random_model("BertForMaskedLM", vocab_size=64)
    with torch.no_grad():
        model.cls.predictions.bias[62] = 1_000.0
    checkpoint = open_path(save_checkpoint(model, tmp_path / "many"))
    prediction = predict(checkpoint, progress=silent, text="w1 [MASK]", k=1)
    assert prediction.masks[0].predictions["token"].tolist() == ["id 62"]


def test_no_padding_token_is_made_up(folder, open_path):
    """One text needs none; what pads a batch is left out of its answers by the mask."""
    text = "\n".join(words()).replace("[PAD]", "w99")
    (folder / "vocab.txt").write_text(text, "utf-8")
    plainly_read(folder)
    tokens = open_path(folder).require_tokens()
    assert tokens.role("pad") == (None, None)
    assert tokens.encode("w1 w2").ids == (2, 9, 10, 3)
    assert tokens.size == len(words())


def test_a_row_that_is_no_number_is_left_out_and_named(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[20] = float("nan")
    checkpoint = open_path(save_checkpoint(model, tmp_path / "nan"))
    seen = lens(checkpoint, progress=silent, text="w1 w2", k=5)
    near = embeddings(checkpoint, progress=silent, token="w1", k=58)
    points = project(checkpoint, progress=silent, method="pca")
    named = ("1 embedding rows contain NaN or infinity and are left out: w12 (id 20).",)
    assert seen.warnings == ("1 embedding rows contain NaN or infinity and are left out, such as w12.",)
    assert near.warnings == points.warnings == named
    for frame in (seen.cells, near.neighbours, points.points):
        assert 20 not in set(frame["token_id"])


def test_no_ranking_is_read_from_a_head_with_a_row_that_is_no_number(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[20] = float("nan")
    checkpoint = open_path(save_checkpoint(model, tmp_path / "nan"))
    with pytest.raises(
        CheckpointError, match=r"its bert\.embeddings\.word_embeddings\.weight contains NaN or infinity"
    ):
        predict(checkpoint, progress=silent, text="w1 [MASK]", k=58)


def test_two_sets_of_weights_that_disagree_are_said_and_the_first_is_shown(folder, open_path):
    other = random_model("BertForMaskedLM", seed=1).state_dict()
    torch.save(other, folder / "pytorch_model.bin")
    checkpoint = open_path(folder)
    assert checkpoint.manifest.warnings == (TWO_SETS,)
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(checkpoint.state[name], load_file(folder / "model.safetensors")[name])
    assert not torch.equal(checkpoint.state[name], other[name])


def test_a_broken_header_of_every_case_leaves_nothing_behind(folder, settings):
    (folder / "model.safetensors").write_bytes(b"\0")
    with contextlib.suppress(CheckpointError):
        opened(upload_of(settings, folder), settings)
    left = [p for p in settings.home.rglob("*") if p.is_file() and p.name != ".lock"]
    assert left == []
