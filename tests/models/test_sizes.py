"""What needs no numbers is answered at any size: 405B in 191 shards (`tests/app/test_many_names.py`: 90,427 names)."""

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
    found = ask("405B", tmp_path, "overview", "placement", "sharing", "training", "classes", "check", "whatif")
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
    statuses, values = found["check"]
    assert values == "none"
    assert statuses.pop("Files") == "warn"  # of holes
    assert set(statuses.values()) == {"ok"}
    assert {"Config and shapes", "Heads and weights", "Left-over tensors", "Ties"} <= set(statuses)
    edges, parameters, warnings = found["whatif"]
    assert edges == [["lm_head.weight", "different numbers", "one tensor"]]
    assert parameters == [known.parameters - 128_256 * 16_384]
    assert "nothing is saved or trained" in warnings[0]
    assert found["peak_nbytes"] < 1.4e9
