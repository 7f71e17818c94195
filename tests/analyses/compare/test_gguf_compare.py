"""A model compared with its GGUF file: the error of each tensor, and what marks texts in both."""

from __future__ import annotations

import random

import gguf
import numpy as np
import pytest
import torch

from tests.analyses.compare.compare_truth import ask, by_name
from tests.gguf_models import convert, small_model
from tests.models.test_bare_tokenizers import sentences
from tests.models.test_gguf_tokenizers import byte_level


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
@pytest.mark.parametrize("block", ["Q4_0", "Q8_0"])
def test_the_error_of_each_tensor_is_that_of_gguf(architecture, block, tmp_path, open_path):
    """Rows are compared with the rows that llama.cpp put elsewhere, and norms with those that have 1 added."""
    model = small_model(architecture)
    model.save_pretrained(tmp_path / "original")
    convert(model, tmp_path / "model.gguf", architecture, block=block)
    result = ask(open_path(tmp_path / "original"), open_path(tmp_path / "model.gguf"))
    rows, kind = by_name(result), gguf.GGMLQuantizationType[block]
    errors = []
    for name, tensor in model.state_dict().items():
        if name not in rows:
            continue
        numbers = tensor.numpy()
        if numbers.ndim == 1:
            assert rows[name]["status"] == "equal" or rows[name]["relative_change"] < 1e-6
            continue
        made = gguf.quants.dequantize(gguf.quants.quantize(numbers, kind), kind)
        wanted = np.linalg.norm(made.astype(float) - numbers) / np.linalg.norm(numbers.astype(float))
        assert rows[name]["status"] == "quantised"
        assert rows[name]["other_dtype"] == f"{block} (GGUF)"
        assert rows[name]["relative_change"] == pytest.approx(wanted, rel=1e-5)
        errors.append(wanted)
    assert {*rows} == {name for name in model.state_dict() if name != "lm_head.weight" or "lm_head.weight" in rows}
    (cost,) = (each for each in result.summary if each.startswith("What rounding cost"))
    assert f"{100 * np.median(errors):.3g} % in {block} (GGUF)" in cost
    cells = result.layers.set_index(["layer", "kind"])["relative_change"]
    name = "model.layers.1.mlp.up_proj.weight"
    (cell,) = (
        share for (layer, kind), share in cells.items() if layer.endswith("1") and kind.startswith("mlp.up_proj")
    )
    assert cell == pytest.approx(rows[name]["relative_change"])


def test_only_what_is_rounded_has_a_cost(tmp_path, open_path):
    """Other weights are not what quantizing cost."""
    model = small_model("llama")
    convert(model, tmp_path / "model.gguf", "llama", block="Q8_0")
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "layers.0" in name and parameter.dim() == 2:
            parameter.data.normal_(generator=generator)
    model.save_pretrained(tmp_path / "half")
    half = ask(open_path(tmp_path / "half"), open_path(tmp_path / "model.gguf"))
    rounded = [row["relative_change"] for row in by_name(half).values() if row["nearest"] >= 0.99]
    (said,) = (each for each in half.summary if "as a share of a tensor's length, in the median tensor" in each)
    assert f"{100 * np.median(rounded):.3g} % in Q8_0 (GGUF)" in said
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    model.save_pretrained(tmp_path / "other")
    other = ask(open_path(tmp_path / "other"), open_path(tmp_path / "model.gguf"))
    assert any("or the weights differ" in each for each in other.summary)
    assert not any("in the median tensor" in each for each in other.summary)


def test_a_copy_in_float16_is_rounded_and_nothing_else(tmp_path, open_path):
    """Although llama.cpp has put rows of q and k elsewhere."""
    model = small_model("llama")
    model.save_pretrained(tmp_path / "original")
    convert(model.half(), tmp_path / "model.gguf", "llama")
    result = ask(open_path(tmp_path / "original"), open_path(tmp_path / "model.gguf"))
    assert {row["status"] for row in by_name(result).values()} == {"changed"}
    model.save_pretrained(tmp_path / "half")
    assert {*ask(open_path(tmp_path / "half"), open_path(tmp_path / "model.gguf")).counts} == {"dtype changed"}


def test_what_marks_texts_is_compared(tmp_path, open_path):
    _, metadata = byte_level("qwen2", sentences(random.Random(0), 50))
    rows = len(metadata["tokenizer.ggml.tokens"])
    model = small_model("qwen2", vocab_size=rows)
    one, other = tmp_path / "one.gguf", tmp_path / "other.gguf"
    convert(model, one, "qwen2", more=metadata)
    convert(
        model, other, "qwen2", more=metadata | {"tokenizer.ggml.eos_token_id": rows - 5, "tokenizer.chat_template": "x"}
    )
    same, apart = (ask(open_path(one), open_path(path)) for path in (one, other))
    assert same.summary[-1] == "Special tokens and chat template are the same in both."
    assert apart.summary[-1] == (
        "What marks texts differs: the eos token is <|im_end|> in one.gguf and <|endoftext|> in other.gguf and the "
        f"chat template is {len(metadata['tokenizer.chat_template'])} characters in one.gguf and 1 characters in "
        "other.gguf."
    )
    (row,) = apart.special_tokens.query("role == 'eos'").to_dict("records")
    assert (row["token_id"], row["other_token_id"], row["same"]) == (rows - 3, rows - 5, False)
