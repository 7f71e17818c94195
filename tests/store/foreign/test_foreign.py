"""Checkpoints of other programs, as these save them, read as the model's own."""

from __future__ import annotations

import json
import shutil
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.auto_mappings import CONFIG_MAPPING_NAMES

from inspector.analyses.lens.compute import lens
from inspector.analyses.masked_lm.compute import predict
from inspector.analyses.overview.compute import overview
from inspector.errors import CheckpointError
from inspector.store.foreign.model_types import SPELLED, guess_model_type
from inspector.store.foreign.wrappers import WITHOUT_MODEL
from tests.conftest import silent
from tests.families import VOCAB, random_model, save_checkpoint
from tests.models import alike

PASSING = {"milliseconds", "memory_nbytes", "warnings"}
OPTIONS: dict[str, Any] = {"progress": silent, "device": "cpu", "dtype": "float32"}


def settings_of(folder: Path, *without: str) -> Path:
    """A folder whose config.json lacks some keys."""
    path = folder / "config.json"
    kept = {key: value for key, value in json.loads(path.read_text()).items() if key not in without}
    path.write_text(json.dumps(kept))
    return folder


# nanoGPT


class NanoAttention(nn.Module):
    """model.py of nanoGPT, without what dropout and the cache of the mask take."""

    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in self.c_attn(x).split(width, 2))
        mixed = functional.scaled_dot_product_attention(*split, is_causal=True)
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, width))


class NanoMLP(nn.Module):
    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x)))


class NanoBlock(nn.Module):
    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, bias=bias), nn.LayerNorm(width, bias=bias)
        self.attn, self.mlp = NanoAttention(width, heads, bias), NanoMLP(width, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    def __init__(self, args: dict[str, Any]) -> None:
        width, bias = args["n_embd"], args["bias"]
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(args["vocab_size"], width), "wpe": nn.Embedding(args["block_size"], width),
            "h": nn.ModuleList([NanoBlock(width, args["n_head"], bias) for _ in range(args["n_layer"])]),
            "ln_f": nn.LayerNorm(width, bias=bias),
        })  # fmt: skip
        self.lm_head = nn.Linear(width, args["vocab_size"], bias=False)
        self.transformer["wte"].weight = self.lm_head.weight
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        parts: Any = self.transformer
        x = parts["wte"](ids) + parts["wpe"](torch.arange(ids.shape[1]))
        for block in parts["h"]:
            x = block(x)
        return self.lm_head(parts["ln_f"](x))


def nanogpt(folder: Path, *, bias: bool, compiled: bool = False, lost: str = "", **changes: Any) -> NanoGPT:
    """ckpt.pt as train.py saves it; with a tensor lost, or with other model_args than its own."""
    torch.manual_seed(0)
    args = {
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "block_size": 32,
        "bias": bias,
        "vocab_size": VOCAB,
        "dropout": 0.0,
    }
    model = NanoGPT(args)
    wrapped: Any = torch.compile(model, backend="eager") if compiled else model
    state = wrapped.state_dict()
    state = {name: each for name, each in state.items() if name != lost}
    optimizer = torch.optim.AdamW(model.parameters())
    saved = {
        "model": state, "optimizer": optimizer.state_dict(), "model_args": args | changes, "iter_num": 20,
        "best_val_loss": torch.tensor(1.5), "config": {"out_dir": "out", "dtype": "bfloat16", "bias": bias},
    }  # fmt: skip
    folder.mkdir()
    torch.save(saved, folder / "ckpt.pt")
    return model


@pytest.mark.parametrize(("bias", "compiled"), [(True, False), (False, True)])
def test_nanogpts_checkpoint_computes_what_its_own_code_does(tmp_path, open_path, bias, compiled):
    model = nanogpt(tmp_path / "out", bias=bias, compiled=compiled)
    checkpoint = open_path(tmp_path / "out")
    loaded = GPT2LMHeadModel(GPT2Config.from_dict(dict(checkpoint.config_values)))
    missing = loaded.load_state_dict(checkpoint.state, strict=False)
    assert not missing.missing_keys
    ids = torch.randint(0, VOCAB, (2, 32))
    with torch.no_grad():
        torch.testing.assert_close(loaded.eval()(ids).logits, model(ids), rtol=1e-4, atol=1e-5)

    found = overview(checkpoint, progress=silent)
    assert found.unique_parameters == sum(parameter.numel() for parameter in model.parameters())
    assert (found.architecture, found.heads["causal_lm"]) == ("GPT2LMHeadModel", "present")
    told = [each for each in found.warnings if "nanoGPT" in each]
    assert [("count as zeros" in each) for each in told] == [not bias]


def test_nanogpts_lens_ends_with_the_models_own_words(tmp_path, open_path):
    model = nanogpt(tmp_path / "out", bias=False)
    tokenizer = save_checkpoint(random_model("GPT2LMHeadModel"), tmp_path / "words") / "vocab.txt"
    shutil.copy(tokenizer, tmp_path / "out")
    (tmp_path / "out" / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    checkpoint = open_path(tmp_path / "out")
    ids = checkpoint.require_tokens().encode("w1 w2 w3").ids
    answer = lens(checkpoint, text="w1 w2 w3", k=1, **OPTIONS)
    last = answer.cells.query("layer == layer.max() and rung == rung.max()")
    assert list(last.token_id) == model(torch.tensor([ids])).detach()[0].argmax(-1).tolist()


# config.json without model_type


def old_names(model: nn.Module) -> dict[str, torch.Tensor]:
    """The names of Google's checkpoints, which the library kept until 2019."""
    new = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))
    return {
        reduce(lambda text, pair: text.replace(*pair), new, name): each for name, each in model.state_dict().items()
    }


def test_a_checkpoint_of_2018_answers_as_todays(tmp_path, open_path):
    model = random_model("BertForPreTraining")
    plain = save_checkpoint(model, tmp_path / "plain")
    old = settings_of(save_checkpoint(model, tmp_path / "old"), "model_type", "architectures", "transformers_version")
    (old / "model.safetensors").unlink()
    torch.save(old_names(model), old / "pytorch_model.bin")
    ours, theirs = open_path(old), open_path(plain)
    assert [each for each in ours.manifest.warnings if "'bert', by its tensors' names" in each]
    text = {"text": "w1 [MASK] w3"} | OPTIONS
    alike.same(predict(ours, **text), predict(theirs, **text), leaving=PASSING, exact=False)


@pytest.mark.parametrize("architecture", ["RobertaForMaskedLM", "GPT2LMHeadModel", "LlamaForCausalLM"])
def test_the_class_that_config_names_tells_the_model_type(tmp_path, open_path, architecture):
    model = random_model(architecture)
    checkpoint = open_path(settings_of(save_checkpoint(model, tmp_path / "model"), "model_type"))
    assert checkpoint.config.model_type == model.config.model_type
    assert checkpoint.own_class is type(model)


def test_what_tells_nothing_is_left_as_it_is(tmp_path, open_path):
    assert guess_model_type({}, ["encoder.layer.0.weight"]) == ("", "")
    assert guess_model_type({"architectures": ["A", "BertModel"]}, []) == ("", "")
    assert guess_model_type({"architectures": [7]}, []) == ("", "")
    old = settings_of(save_checkpoint(random_model("BertModel"), tmp_path / "m"), "model_type", "architectures")
    assert open_path(old).config_values.get("model_type") is None


def test_model_types_are_spelled_as_transformers_does():
    known = {*SPELLED.values(), "bert", "roberta", "distilbert", "electra", "albert", "mistral", "qwen2"}
    tables: Any = (modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    for table in tables:
        for model_type in known & table.keys():
            assert guess_model_type({"architectures": [table[model_type]]}, [])[0] == model_type
    assert set(SPELLED.values()) <= {*CONFIG_MAPPING_NAMES}


# The base model alone under a wrapper's `model.`


def test_a_base_model_alone_under_lightnings_name(tmp_path, open_path):
    model = random_model("BertModel")
    folder = save_checkpoint(model, tmp_path / "run")
    (folder / "model.safetensors").unlink()
    torch.save({"state_dict": {f"model.{name}": each for name, each in model.state_dict().items()}}, folder / "a.ckpt")
    checkpoint = open_path(folder)
    assert set(checkpoint.tensors.names) == set(model.state_dict())


def test_no_class_of_these_types_has_a_part_that_is_called_model():
    for model_type in WITHOUT_MODEL:
        config = CONFIG_MAPPING_NAMES[model_type.replace("_", "-")]
        name = modeling_auto.MODEL_MAPPING_NAMES[model_type.replace("_", "-")]
        sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
        built = getattr(transformers, name)(getattr(transformers, config)(vocab_size=10, **sizes))
        assert built.base_model_prefix != "model"
        assert not any(each.startswith("model.") for each in built.state_dict())


# Both names


def test_the_table_of_tensors_has_both_names(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel")
    folder = save_checkpoint(model, tmp_path / "run")
    (folder / "model.safetensors").unlink()
    torch.save({f"module.{name}": each for name, each in model.state_dict().items()}, folder / "pytorch_model.bin")
    checkpoint = open_path(folder)
    table = overview(checkpoint, progress=silent).tensors
    assert list(table.name_in_file) == [f"module.{name}" for name in table.name]
    listed = overview(checkpoint, find="module.transformer.wpe", progress=silent).listed_tensors
    assert [(each.name, each.name_in_file) for each in listed or ()] == [
        ("transformer.wpe.weight", "module.transformer.wpe.weight")
    ]
    plain = overview(open_path(save_checkpoint(model, tmp_path / "plain")), tensors=True, progress=silent)
    assert "name_in_file" not in plain.tensors
    assert not any(each.name_in_file for each in plain.listed_tensors or ())


@pytest.mark.parametrize(
    "changes", [{"n_layer": 2**40}, {"n_layer": True}, {"vocab_size": "60"}, {"block_size": -1}, {"n_head": None}]
)
def test_settings_that_are_no_nanogpts_are_left_alone(tmp_path, open_path, changes):
    nanogpt(tmp_path / "out", bias=False, **changes)
    assert open_path(tmp_path / "out").manifest.config is None


def test_a_bias_that_is_lost_is_not_taken_for_zeros(tmp_path, open_path):
    nanogpt(tmp_path / "out", bias=True, lost="transformer.h.1.mlp.c_fc.bias")
    checkpoint = open_path(tmp_path / "out")
    assert not checkpoint.manifest.translated.zeros
    assert "transformer.h.1.mlp.c_fc.bias" not in checkpoint.tensors.numbers


def test_sizes_that_the_weights_do_not_have_are_refused(tmp_path, open_path):
    nanogpt(tmp_path / "out", bias=True, n_layer=100_000)
    with pytest.raises(CheckpointError, match="n_layer"):
        open_path(tmp_path / "out")
