"""What the overview says of a GGUF file, compared with what gguf's writer was told."""

from __future__ import annotations

from typing import Any

import gguf
import numpy as np
import pytest

from inspector.analyses.checks.compute import check
from inspector.analyses.embeddings.compute import embeddings
from inspector.analyses.overview.compute import overview
from inspector.analyses.overview.figures_gguf import block_map, by_kind
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.overview.view import quantization, view
from inspector.models.checkpoint import StagedCheckpoint
from inspector.plotting.theme import LIGHT
from inspector.serving.engine.manifest_check import Known, lies
from inspector.view.blocks import Code, Facts, Table
from tests.conftest import silent
from tests.gguf_files import random_blocks, write_gguf
from tests.sentences import GGUF_TOKENIZER

TEMPLATE = "{% for message in messages %}<b>{{ message }}</b>{% endfor %}"
METADATA = {
    "llama.block_count": 2,
    "llama.embedding_length": 256,
    "llama.rope.freq_base": 5e5,
    "quantize.imatrix.file": "tiny.imatrix",
    "quantize.imatrix.dataset": "calibration.txt",
    "tokenizer.ggml.tokens": [f"t{number}" for number in range(1030)],
    "tokenizer.chat_template": TEMPLATE,
}


@pytest.fixture
def mixed(tmp_path, open_path) -> StagedCheckpoint:
    """Two layers: the first in Q4_K, of the second one matrix in Q6_K, norms in float32."""
    rng = np.random.default_rng(0)
    numbers = {
        "token_embd.weight": rng.standard_normal((1030, 256), dtype=np.float32),
        "output_norm.weight": np.ones(256, np.float32),
    }
    blocks = {"token_embd.weight": "Q8_0"}
    for layer, kind in enumerate(("Q4_K", "Q6_K")):
        numbers[f"blk.{layer}.attn_q.weight"] = random_blocks("Q4_K", 64, 256)
        numbers[f"blk.{layer}.ffn_down.weight"] = random_blocks(kind, 256, 256)
        numbers[f"blk.{layer}.attn_norm.weight"] = np.ones(256, np.float32)
        blocks |= {f"blk.{layer}.attn_q.weight": "Q4_K", f"blk.{layer}.ffn_down.weight": kind}
    path = tmp_path / "mixed.gguf"
    write_gguf(path, numbers, blocks=blocks, metadata=METADATA)
    return open_path(path)


def test_types_bits_and_metadata_are_those_of_the_file(mixed):
    found = overview(mixed, tensors=True, progress=silent)
    q4, q6, q8, plain = 2 * 64 * 256 + 256 * 256, 256 * 256, 1030 * 256, 3 * 256
    assert found.gguf is not None
    assert found.listed_tensors is not None
    assert found.dtypes == found.gguf.types == {"Q8_0": q8, "Q4_K": q4, "Q6_K": q6, "float32": plain}
    assert found.unique_parameters == q4 + q6 + q8 + plain
    bits = q4 * 144 / 256 + q6 * 210 / 256 + q8 * 34 / 32 + plain * 4
    assert found.gguf.bits_per_weight == pytest.approx(8 * bits / found.unique_parameters)
    assert (found.layers, found.vocab_rows, found.d_model) == (2, 1030, 256)
    assert found.gguf.metadata["llama.rope.freq_base"] == "500000"
    assert found.gguf.metadata["tokenizer.ggml.tokens"] == "1,030 values"
    assert {each.name: (each.dtype, each.shape) for each in found.listed_tensors}["blk.1.ffn_down.weight"] == (
        "Q6_K", (256, 256),
    )  # fmt: skip


def test_the_picture_has_a_type_for_each_layer_and_kind(mixed):
    found = overview(mixed, progress=silent)
    assert found.gguf is not None
    layers, kinds, cells = by_kind(found.gguf)
    assert (layers, kinds) == (["0", "1", "other"], ["token_embd", "attn_q", "ffn_down"])
    assert {place: held for place, (held, _) in cells.items()} == {
        ("token_embd", "other"): "Q8_0", ("attn_q", "0"): "Q4_K", ("attn_q", "1"): "Q4_K", ("ffn_down", "0"): "Q4_K",
        ("ffn_down", "1"): "Q6_K",
    }  # fmt: skip
    figure: Any = block_map(found.gguf, title="Title", subtitle="", theme=LIGHT)
    (heat,) = figure.data
    assert heat.z[2][:2].tolist() == [4.5, 6.5625]


def test_the_view_says_what_is_in_the_file(mixed):
    request = OverviewRequest()
    found = overview(mixed, progress=silent)
    shown = view(found, request, name="mixed")
    assert shown.headline.text.startswith(
        "mixed.gguf is a GGUF file of the architecture llama: 428.3K parameters in Q8_0"
    )
    (facts,) = shown.beside
    assert isinstance(facts, Facts)
    assert facts.pairs["GGUF architecture"] == "llama: layers 2, hidden size 256, RoPE base 500000"
    assert facts.pairs["Importance matrix"] == "tiny.imatrix, from calibration.txt"
    assert "Model type" not in facts.pairs
    blocks = list(quantization(found))
    assert [each.name for each in blocks if isinstance(each, Table)] == ["types", "metadata"]
    assert [each.text for each in blocks if isinstance(each, Code)] == [TEMPLATE]


def test_embeddings_are_read_from_blocks(mixed):
    """Norms of the numbers that gguf dequantizes."""
    found = embeddings(mixed, progress=silent)
    matrix = mixed.embedding_matrix().numpy()
    assert found.norms.max == pytest.approx(float(np.linalg.norm(matrix, axis=1).max()), rel=1e-5)


def test_checks_send_nobody_for_a_config(mixed):
    found = check(mixed, progress=silent)
    texts = [f"{each.detail} {each.next_step}" for each in found.checks]
    assert not any(wrong in text for text in texts for wrong in ("config.json", "tokenizer.json", "safetensors"))
    assert GGUF_TOKENIZER in mixed.manifest.warnings
    assert sum("No model is built from the GGUF file" in text for text in texts) > 1


@pytest.mark.parametrize("scale", [np.nan, np.inf])
def test_a_scale_that_is_not_finite_is_found(tmp_path, open_path, scale):
    """As many numbers as gguf makes of it that are NaN, and that are infinite."""
    rows = random_blocks("Q6_K", 4, 512)
    rows[2, 208:210] = np.array([scale], np.float16).view(np.uint8)
    write_gguf(tmp_path / "broken.gguf", {"blk.0.ffn_up.weight": rows}, blocks={"blk.0.ffn_up.weight": "Q6_K"})
    with np.errstate(invalid="ignore"):
        truth = gguf.quants.dequantize(rows, gguf.GGMLQuantizationType.Q6_K)
    checks = {each.name: each for each in check(open_path(tmp_path / "broken.gguf"), progress=silent).checks}
    found = {each.problem: each.count for each in checks["NaN and infinity"].evidence}
    counts = {"holds NaN": np.isnan(truth).sum(), "holds infinity": np.isinf(truth).sum()}
    assert found == {problem: count for problem, count in counts.items() if count}
    assert checks["NaN and infinity"].status == "fail"


def test_sound_blocks_are_counted_as_numbers(mixed):
    checks = {each.name: each for each in check(mixed, progress=silent).checks}
    assert (
        checks["NaN and infinity"].detail == "All 428,288 numbers of 8 tensors were read, and every weight is finite."
    )


def test_other_formats_have_no_such_facts(open_model):
    assert overview(open_model("LlamaForCausalLM"), progress=silent).gguf is None


def test_no_answer_contradicts_the_manifest(mixed):
    """As the server reads both: blocks are stored as bytes, and answers count the numbers that they stand for."""
    known = Known(mixed.manifest)
    for answer in (overview(mixed, tensors=True, progress=silent), embeddings(mixed, progress=silent)):
        assert not [*lies(answer, known)]
