"""What loaders make of ties: the installed transformers is run, transformers 4 was run, vLLM was read."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.checks.command.formats import write_checks
from inspector.analyses.checks.compute import check
from inspector.analyses.checks.compute_loading.tie_rules import FOUR, VLLM, VLLM_CLASSES, VLLM_LANGUAGE_MODELS
from inspector.analyses.checks.compute_loading.ties import tie_rows
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Check, Checks, TieRow, read_checks
from inspector.analyses.checks.view import view
from inspector.analyses.checks.words_loading import ties
from inspector.models.checkpoint import StagedCheckpoint
from inspector.results.plain import to_json
from inspector.view.blocks import Bullets, Table
from tests.analyses.checks.test_loading import SOUND
from tests.analyses.checks.tied_cases import CASES, HEADS, HELD, SAID, TieCase, models, observe, write_case
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.gguf_models import convert, small_model

KEPT = json.loads((Path(__file__).parent / "ties_of_transformers_4.json").read_text())
FIVE = f"transformers {transformers.__version__}"
THREE = ("LlamaForCausalLM", "GPT2LMHeadModel", "GemmaForCausalLM")
LLAMA = HEADS["LlamaForCausalLM"]
built = cache(lambda: dict(models()))


@pytest.fixture
def checked(open_path: Callable[[Path], StagedCheckpoint]) -> Callable[[Path], Checks]:
    return lambda path: check(open_path(path), values="none", progress=silent)


def case(folder: Path, architecture: str, flags: str, held: str) -> Path:
    return write_case(folder, TieCase(architecture, flags, held), built()[architecture])


def of(checks: Checks, loader: str) -> TieRow:
    (found,) = (row for row in checks.ties if row.loader == loader)
    return found


def loading(checks: Checks) -> Check:
    return next(each for each in checks.checks if each.name == "Loading")


@pytest.mark.parametrize(("architecture", "flags"), SAID)
def test_both_versions_of_transformers_do_what_the_table_says(checked, tmp_path, architecture, flags):
    assert KEPT["transformers"] == FOUR.partition(" ")[2]
    for held in HELD:
        folder = case(tmp_path / held, architecture, flags, held)
        checks = checked(folder)
        assert of(checks, FIVE).outcome == observe(folder, architecture, *HEADS[architecture]), held
        assert of(checks, FOUR).outcome == KEPT["outcomes"][f"{architecture}, {flags}, {held}"], held


def test_the_kept_outcomes_are_those_of_the_cases():
    assert set(KEPT["outcomes"]) == {each.name for each in CASES}


@pytest.mark.parametrize("architecture", SOUND)
def test_a_head_of_other_numbers_in_every_family_that_ties(checked, tmp_path, architecture):
    model = random_model(architecture)
    folder = save_checkpoint(model, tmp_path / "sound", tokenizer=False)
    rows, output = checked(folder).ties, model.get_output_embeddings()
    if not rows:  # it has no output matrix, or its class ties none by the flag
        assert output is None or f"{place_of(model, output)}.weight" not in model.all_tied_weights_keys
        return
    named = model.named_parameters(remove_duplicate=False)
    tied = sum(each is output.weight for _, each in named) > 1
    assert rows[1].outcome == ("shared" if tied else "separate")
    assert {row.outcome for row in rows} <= {rows[1].outcome, "not known"}
    state = load_file(folder / "model.safetensors")
    if tied:
        embedding = next(name for name, each in state.items() if torch.equal(each, output.weight))
        head = f"{place_of(model, output)}.weight"
        state[head] = torch.randn(output.weight.shape)
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        found = of(checked(folder), FIVE)
        assert (found.held, found.outcome) == ("different", observe(folder, architecture, head, embedding))


def place_of(model: torch.nn.Module, module: torch.nn.Module) -> str:
    return next(name for name, each in model.named_modules() if each is module)


@pytest.mark.parametrize(
    ("architecture", "said", "outcome"),
    [
        ("LlamaForCausalLM", ("ties", "different"), "separate"),
        ("LlamaForCausalLM", ("ties", "equal"), "shared"),
        ("LlamaForCausalLM", ("ties", "tied"), "shared"),
        ("LlamaForCausalLM", ("unties", "tied"), "head random"),
        ("LlamaForCausalLM", ("silent", "equal"), "separate"),
        ("GPT2LMHeadModel", ("silent", "tied"), "shared"),
        ("LlavaForConditionalGeneration", ("text ties, top unties", "different"), "separate"),
        ("Mistral3ForConditionalGeneration", ("top ties, text unties", "tied"), "shared"),
        ("Gemma3ForConditionalGeneration", ("text ties, top unties", "tied"), "head random"),
        ("BertForMaskedLM", ("ties", "tied"), "not known"),
    ],
)
def test_what_was_read_of_vllm(checked, tmp_path, architecture, said, outcome):
    found = of(checked(case(tmp_path / "case", architecture, *said)), VLLM)
    assert found.outcome == outcome
    assert ("models/" in found.reason) == (outcome != "not known")  # the file and line that say so


@pytest.mark.parametrize(
    ("architecture", "outcomes"),
    [
        ("CohereForCausalLM", {"tied": "shared", "different": "trained head thrown away", "head alone": "refused"}),
        ("Gemma2ForCausalLM", {"tied": "shared", "different": "refused"}),
        ("DeepseekV3ForCausalLM", {"tied": "head random", "different": "separate"}),
    ],
)
def test_classes_of_vllm_that_do_not_go_by_the_flag(checked, tmp_path, architecture, outcomes):
    for held, outcome in outcomes.items():
        folder = write_case(tmp_path / held, TieCase(architecture, "ties", held), random_model(architecture), LLAMA)
        assert of(checked(folder), VLLM).outcome == outcome


def test_a_pytorch_file_has_vllm_tie_what_it_would_load_from_safetensors(checked, tmp_path):
    folder = case(tmp_path / "bin", "LlamaForCausalLM", "ties", "different")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert of(checked(folder), VLLM).outcome == "trained head thrown away"


@pytest.mark.parametrize("tied", [True, False])
def test_a_gguf_file_has_no_config_that_ties_and_no_rule_of_vllm(checked, tmp_path, tied):
    convert(small_model("qwen2", tie_word_embeddings=tied), tmp_path / "model.gguf", "qwen2")
    checks = checked(tmp_path / "model.gguf")
    assert of(checks, FIVE).outcome == ("shared" if tied else "separate")
    assert "model.gguf" in of(checks, FIVE).reason
    assert (of(checks, VLLM).outcome, of(checks, VLLM).ties) == ("not known", None)
    assert "GGUF" in of(checks, VLLM).reason
    assert not any("config.json" in row.reason for row in checks.ties)


def test_the_classes_of_vllm_are_transformers_own():
    for name in {*VLLM_CLASSES, *VLLM_LANGUAGE_MODELS, *filter(None, VLLM_LANGUAGE_MODELS.values())}:
        assert hasattr(transformers, name), name


@pytest.mark.parametrize("architecture", THREE)
@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (("ties", "different"), {(FOUR, "loading.ties.thrown-away")}),
        (("unties", "tied"), {(each, "loading.ties.head-random") for each in (FOUR, FIVE, VLLM)}),
        (("ties", "head alone"), {(FOUR, "loading.ties.head-random")}),
    ],
)
def test_what_is_lost_is_a_finding(checked, tmp_path, architecture, said, lost):
    checks = checked(case(tmp_path / "case", architecture, *said))
    assert {(each.subject, each.id) for each in loading(checks).evidence} == lost
    assert loading(checks).status == "warn"
    assert read_checks(to_json(checks)).ties == checks.ties


@pytest.mark.parametrize("architecture", THREE)
def test_what_is_not_compared_is_not_said(open_path, tmp_path, architecture):
    checkpoint = open_path(case(tmp_path / "case", architecture, "ties", "different"))
    assert {row.outcome for row in tie_rows(checkpoint, None)} == {"not read"}
    checkpoint = open_path(case(tmp_path / "apart", architecture, "unties", "different"))
    assert {row.outcome for row in tie_rows(checkpoint, None)} == {"separate"}


def test_the_reason_names_level_flag_and_what_the_files_hold(checked, tmp_path):
    checks = checked(case(tmp_path / "case", "Mistral3ForConditionalGeneration", "top ties, text unties", "tied"))
    four, five = of(checks, FOUR), of(checks, FIVE)
    assert (four.level, four.ties, five.level, five.ties) == ("text_config", False, "", True)
    assert four.reason.startswith("config.json sets tie_word_embeddings to false in text_config; the files hold ")
    assert four.reason.endswith("lm_head.weight: the output matrix is filled with random numbers (modeling_utils.py, "
                                "_initialize_missing_keys).")  # fmt: skip
    forced = of(checked(case(tmp_path / "t5", "T5ForConditionalGeneration", "unties", "tied")), FIVE)
    assert forced.reason.startswith(
        "config.json sets tie_word_embeddings to false, and T5Config ties all the same; the files hold shared.weight "
    )


def test_page_report_and_terminal_show_the_table(checked, tmp_path, capsys):
    folder = case(tmp_path / "case", "Mistral3ForConditionalGeneration", "top ties, text unties", "tied")
    checks = checked(folder)
    tab = next(each for each in view(checks, CheckRequest(), name="it").tabs if each.name == "Loading")
    table, why, _ = tab.blocks
    assert isinstance(table, Table)
    assert table.frame.to_numpy().tolist() == [
        [FOUR, "text_config", "no", "embeddings alone", "head random"],
        [FIVE, "the top", "yes", "embeddings alone", "shared"],
        [VLLM, "the top", "yes", "embeddings alone", "shared"],
    ]
    assert why == Bullets(tuple(f"{row.loader}: {row.reason}" for row in checks.ties), "ties by loader")
    write_checks(checks, CheckRequest(), strict=False)
    assert f"{ties.TITLE}\n" in capsys.readouterr().out
    write_checks(checked(case(tmp_path / "sound", "GPT2LMHeadModel", "ties", "tied")), CheckRequest(), strict=False)
    assert ties.TITLE not in capsys.readouterr().out
