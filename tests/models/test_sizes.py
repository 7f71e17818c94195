"""What needs no numbers is answered at any size: 405B in 191 shards (`tests/app/test_many_names.py`: 90,427 names)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from tools.bench._sparse import SHAPES, tensors_of, write
from tools.bench.streaming import write_tokenizer

ROOT = Path(__file__).parents[2]


def ask(shape: str, tmp_path: Path, *verbs: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.sizes", shape, str(tmp_path / shape),
         str(tmp_path / "home"), *verbs],
        cwd=ROOT, capture_output=True, text=True, check=False,
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


def command(folder: Path, *asked: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "inspector", asked[0], str(folder), *asked[1:], "--json"],
        env=os.environ | {"INSPECTOR_HOME": str(folder.parent / "home")},
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("shape", ["405B", "V3"])
def test_text_is_split_at_any_size(tmp_path, shape):
    write(tmp_path / shape, SHAPES[shape])
    write_tokenizer(tmp_path / shape)
    found = command(tmp_path / shape, "tokenize", "--text", "the capital of Spain")
    library = Tokenizer.from_file(str(tmp_path / shape / "tokenizer.json")).encode("the capital of Spain")
    assert [each["token_id"] for each in found["tokens"]] == library.ids
    assert [each["token"] for each in found["tokens"]] == library.tokens


def test_the_terminal_lists_every_name_of_90_427(tmp_path):
    write(tmp_path / "V3", SHAPES["V3"])
    found = command(tmp_path / "V3", "overview", "--tensors")
    listed = {each["name"]: each["shape"] for each in found["listed_tensors"]}
    assert len(found["listed_tensors"]) == SHAPES["V3"].tensors
    assert listed == {name: list(shape) for name, _, shape in tensors_of(SHAPES["V3"].config)}
