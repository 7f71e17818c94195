"""Which base is this: planted relatives of random models of several families, against what was planted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from inspector.analyses.base.compute import base
from inspector.analyses.base.result import Relation
from inspector.analyses.base.words import headline
from inspector.catalog import answer
from inspector.errors import NotInCheckpointError
from inspector.models.tensors import StoredReader
from tests.analyses.test_adapters import lora
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models.vision_language import TEXT, VISION_LANGUAGE

FAMILIES = [
    "LlamaForCausalLM",
    "GPT2LMHeadModel",
    "BertForMaskedLM",
    "T5ForConditionalGeneration",
    "MixtralForCausalLM",
]
SIZES = {"hidden_size": 64, "n_embd": 64, "d_model": 64}
Numbers = Callable[[str, torch.Tensor], torch.Tensor]


@pytest.fixture
def relate(open_path, tmp_path) -> Callable[..., Relation]:
    """Ask whether a second folder is the base of a first one."""

    def asked(first: Path, second: Path) -> Relation:
        one, two = open_path(first), open_path(second)
        return base(one, other=two.manifest.fingerprint, progress=silent)

    return asked


def model(architecture: str, seed: int, **changed: Any) -> PreTrainedModel:
    made = random_model(architecture, **changed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.02, generator=generator)
    return made


def saved(folder: Path, made: Any, numbers: Numbers | None = None, dtype: torch.dtype | None = None) -> Path:
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if numbers and parameter.dim() > 1:
                parameter.copy_(numbers(name, parameter))
    return save_checkpoint(made.to(dtype) if dtype else made, folder)


def noise(amount: float) -> Numbers:
    generator = torch.Generator().manual_seed(3)
    return lambda _, each: each + amount * torch.randn(each.shape, generator=generator)


@pytest.fixture(params=FAMILIES)
def architecture(request) -> str:
    return request.param


def test_a_copy_is_the_same(architecture, relate, tmp_path):
    found = relate(*(saved(tmp_path / name, model(architecture, 0)) for name in ("one", "two")))
    assert (found.verdict, found.equal, found.settings) == ("same", found.matched, ())
    assert found.matched == found.own == found.other > 5
    assert found.tokens == found.other_tokens == found.shared_tokens


@pytest.mark.parametrize(
    ("dtype", "original"),
    [(torch.bfloat16, torch.float32), (torch.float16, torch.float32), (torch.float16, torch.bfloat16)],
)
def test_a_cast_copy_is_the_same(architecture, relate, tmp_path, dtype, original):
    one, two = (model(architecture, 0).to(original) for _ in range(2))
    found = relate(saved(tmp_path / "one", one, dtype=dtype), saved(tmp_path / "two", two))
    assert (found.verdict, found.equal) == ("same", found.matched)


def test_a_fine_tuned_one_has_nearly_all_of_its_base(architecture, relate, tmp_path):
    found = relate(
        saved(tmp_path / "one", model(architecture, 0), noise(0.004)), saved(tmp_path / "two", model(architecture, 0))
    )
    assert (found.verdict, found.equal, found.rank) == ("fine-tuned from", 0, None)
    assert found.relative_change == pytest.approx(0.2, abs=0.02)
    assert found.cosine == pytest.approx(1 / (1 + 0.2**2) ** 0.5, abs=0.01)
    assert found.coefficient == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_a_merge_has_one_share_of_every_matrix(architecture, relate, tmp_path, share):
    other = dict(model(architecture, 1).named_parameters())
    merged = saved(
        tmp_path / "one", model(architecture, 0), lambda name, each: share * each + (1 - share) * other[name]
    )
    found = relate(merged, saved(tmp_path / "two", model(architecture, 0)))
    assert found.verdict == "merged with"
    assert found.coefficient == pytest.approx(share, abs=0.05)
    part = relate(merged, saved(tmp_path / "three", model(architecture, 1)))
    assert part.verdict == "merged with"
    assert part.coefficient == pytest.approx(1 - share, abs=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_merged_adapter_has_a_change_of_its_rank(architecture, relate, tmp_path, dtype):
    def low(_: str, each: torch.Tensor) -> torch.Tensor:
        rows, columns = each[..., 0].numel(), each.shape[-1]
        change = torch.randn(rows, 3) @ torch.randn(3, columns) * 0.01
        return each + change.reshape(each.shape)

    torch.manual_seed(5)
    start = model(architecture, 0).to(dtype).float()
    found = relate(
        saved(tmp_path / "one", start, low, dtype), saved(tmp_path / "two", model(architecture, 0), dtype=dtype)
    )
    assert (found.verdict, found.rank) == ("fine-tuned from", 3)


def test_another_training_and_another_size_are_unrelated(architecture, relate, tmp_path):
    first = saved(tmp_path / "one", model(architecture, 0))
    found = relate(first, saved(tmp_path / "two", model(architecture, 1)))
    assert (found.verdict, found.matched) == ("unrelated", found.own)
    assert abs(found.cosine or 0) < 0.1
    key = next(each for each in SIZES if each in json.loads((first / "config.json").read_text()))
    found = relate(first, saved(tmp_path / "three", model(architecture, 0, **{key: SIZES[key]})))
    assert found.verdict == "unrelated"
    assert key in found.settings


def test_a_head_and_tokens_that_were_added_leave_the_rest_the_same(relate, tmp_path):
    small: Any = model("BertForMaskedLM", 0)
    two = saved(tmp_path / "two", small.bert)
    wide = model("BertForMaskedLM", 0)
    wide.resize_token_embeddings(wide.config.vocab_size + 3)
    found = relate(saved(tmp_path / "one", wide), two)
    assert found.verdict == "same"
    assert found.matched >= found.other - 1


def whole_and_part(kind: str) -> tuple[Any, Any]:
    """A model, mostly of more matrices than are sampled, and a part of it that is a model of its own."""
    if kind == "T5":
        whole: Any = model("T5ForConditionalGeneration", 0, num_layers=10, num_decoder_layers=10)
        part: Any = transformers.T5EncoderModel(whole.config)
        part.encoder.load_state_dict(whole.encoder.state_dict())
        return whole, part
    if kind == "Qwen3-VL":
        whole = VISION_LANGUAGE["qwen3_vl"]()
        part = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**TEXT))
        part.model.load_state_dict(whole.model.language_model.state_dict())
        part.lm_head.load_state_dict(whole.lm_head.state_dict())
        return whole, part
    tower = {"intermediate_size": 48, "num_hidden_layers": 8, "num_attention_heads": 2}
    tokens = {"vocab_size": 60, "bos_token_id": 1, "eos_token_id": 2}
    whole = transformers.CLIPModel(
        transformers.CLIPConfig(
            text_config=tower | tokens | {"hidden_size": 32},
            vision_config=tower | {"hidden_size": 64, "image_size": 16, "patch_size": 8},
        )
    )
    return whole, whole.text_model


@pytest.mark.parametrize("kind", ["T5", "CLIP", "Qwen3-VL"])
def test_a_part_has_the_weights_of_its_whole(relate, tmp_path, kind):
    whole, part = whole_and_part(kind)
    one, two = save_checkpoint(part, tmp_path / "part"), save_checkpoint(whole, tmp_path / "whole")
    for found in (relate(one, two), relate(two, one)):
        assert (found.verdict, found.equal) == ("same", found.matched)
        assert found.matched > 10


@pytest.mark.parametrize("config", [True, False])
def test_one_architecture_under_other_names_is_not_judged(relate, tmp_path, config):
    folders = [saved(tmp_path / name, model("LlamaForCausalLM", 0)) for name in ("one", "two")]
    weights = folders[0] / "model.safetensors"
    save_file({f"{name}_of_another_library": each for name, each in load_file(weights).items()}, weights)
    if not config:
        (folders[0] / "config.json").unlink()
    found = relate(*folders)
    assert (found.verdict, found.matched) == ("not judged", 0)
    assert headline(found) == (
        "The sampled numbers do not tell whether one was made from two. No sampled matrix has the same name and shape "
        "in both."
    )


def test_one_trained_layer_is_told_apart(relate, tmp_path):
    def last(name: str, each: torch.Tensor) -> torch.Tensor:
        return noise(0.004)(name, each) if "layers.1." in name else each

    found = relate(
        saved(tmp_path / "one", model("LlamaForCausalLM", 0), last),
        saved(tmp_path / "two", model("LlamaForCausalLM", 0)),
    )
    assert found.verdict == "fine-tuned from"
    assert 0 < found.equal < found.matched
    changed: Any = found.tensors[~found.tensors["equal"]]["name"]
    assert {name.split(".")[2] for name in changed} == {"1"}


def test_numbers_that_say_neither_are_not_judged(relate, tmp_path):
    """Much of a matrix is another one, and each has another share."""
    other = dict(model("LlamaForCausalLM", 1).named_parameters())
    shares = iter([0.3, 0.45, 0.0, 0.6, 0.15] * 40)

    def mixed(name: str, each: torch.Tensor) -> torch.Tensor:
        return (share := next(shares)) * each + other[name] * (1 - share)

    found = relate(
        saved(tmp_path / "one", model("LlamaForCausalLM", 0), mixed),
        saved(tmp_path / "two", model("LlamaForCausalLM", 0)),
    )
    assert found.verdict == "not judged"


def test_an_adapter_has_no_base_to_compare(relate, tmp_path):
    with pytest.raises(NotInCheckpointError, match="adapter"):
        relate(lora(tmp_path / "one"), saved(tmp_path / "two", model("LlamaForCausalLM", 0)))


def test_numbers_that_are_not_finite_are_left_out(relate, tmp_path):
    def broken(_: str, each: torch.Tensor) -> torch.Tensor:
        changed = each.clone()
        changed[..., 0] = torch.nan
        return changed

    found = relate(
        saved(tmp_path / "one", model("LlamaForCausalLM", 0), broken),
        saved(tmp_path / "two", model("LlamaForCausalLM", 0)),
    )
    assert found.verdict == "same"


def test_tokens_are_counted_by_their_text_as_compare_counts_them(relate, open_path, tmp_path):
    one, two = (saved(tmp_path / name, model("BertForMaskedLM", 0)) for name in ("one", "two"))
    listed = (two / "vocab.txt").read_text("utf-8").split()
    changed = [*listed[:8], *reversed(listed[8:-6]), *(f"new{number}" for number in range(6))]
    (two / "vocab.txt").write_text("\n".join(changed) + "\n", "utf-8")
    found = relate(one, two)
    first, second = open_path(one), open_path(two)
    compared = answer("compare", first, other=second.manifest.fingerprint, progress=silent).vocabulary
    assert found.shared_tokens == compared.matched == len(listed) - 6 == len({*listed} & {*changed})
    assert (found.tokens, found.other_tokens) == (len(listed), len(listed))


def test_a_print_is_kept_and_read_once(architecture, relate, tmp_path, monkeypatch):
    one, two = (
        saved(tmp_path / "one", model(architecture, 0), noise(0.004)),
        saved(tmp_path / "two", model(architecture, 0)),
    )
    first = relate(one, two)
    monkeypatch.setattr(StoredReader, "read", never)
    again = relate(one, two)
    pd.testing.assert_frame_equal(again.tensors, first.tensors)
    assert again.verdict == first.verdict
    (kept, *_) = (path for path in (tmp_path / "home").rglob("*.arrays"))
    assert kept.stat().st_size < 256 * 1024


def test_a_checkpoint_that_was_changed_has_a_print_of_its_own(relate, tmp_path):
    one, two = (
        saved(tmp_path / "one", model("LlamaForCausalLM", 0)),
        saved(tmp_path / "two", model("LlamaForCausalLM", 0)),
    )
    assert relate(one, two).verdict == "same"
    saved(tmp_path / "one", model("LlamaForCausalLM", 0), noise(0.004))
    assert relate(one, two).verdict == "fine-tuned from"


def never(*_: object) -> None:
    raise AssertionError("Numbers were read again.")
