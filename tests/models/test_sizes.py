"""What needs no numbers is answered at any size: 405B in 191 shards, DeepSeek-V3 in fp8."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.bench._sparse import SHAPES


def ask(shape: str, tmp_path: Path, *verbs: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.sizes", shape, str(tmp_path / shape),
         str(tmp_path / "home"), *verbs],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_a_dense_model_of_405_billion(tmp_path):
    known = SHAPES["405B"]
    found = ask("405B", tmp_path, "overview", "placement", "sharing", "training", "classes")
    assert known.parameters == 405_853_388_800  # as the model's card counts them
    assert found["overview"] == [1_137, known.parameters, "present", "samples"]
    assert found["placement"] == ["bfloat16", 2 * known.parameters]
    unique, listed, groups, warnings = found["sharing"]
    assert unique == listed == known.parameters
    assert groups == [["lm_head.weight", "model.embed_tokens.weight", "diverged"]]
    assert not [text for text in warnings if "no place" in text or "lacks" in text]
    norms = 126 * 2 + 1
    assert found["training"] == [known.parameters, norms, (1 << 26) // 16_384]
    name, parameters, lacking, shape, _ = found["classes"]
    assert (name, parameters) == ("LlamaForCausalLM", known.parameters)
    assert (lacking["LlamaForCausalLM"], lacking["LlamaModel"]) == (0, 0)
    assert lacking["LlamaForSequenceClassification"] == 1
    assert shape == [[1, 8, 128_256]]
    assert found["peak_nbytes"] < 1.4e9


def test_a_mixture_of_experts_in_fp8(tmp_path):
    known = SHAPES["V3"]
    found = ask("V3", tmp_path, "overview", "placement", "sharing", "training", "classes")
    assert known.parameters == 671_026_419_200
    buffers = 58 * 256  # e_score_correction_bias of each layer with experts
    assert found["overview"] == [90_427, known.parameters - buffers, "present", "samples"]
    assert found["placement"][0] == "bfloat16"
    unique, listed, groups, warnings = found["sharing"]
    assert unique == listed
    assert groups == [["lm_head.weight", "model.embed_tokens.weight", "diverged"]]
    assert not [text for text in warnings if "no place" in text or "lacks" in text]
    assert found["classes"][0] == "DeepseekV3ForCausalLM"
    assert found["classes"][2]["DeepseekV3ForCausalLM"] == 0
    assert found["classes"][3] == [[1, 8, 129_280]]
    assert found["peak_nbytes"] < 1.4e9
