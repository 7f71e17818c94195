"""A model that no single machine holds: what needs a part of it reads that part alone."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest


def test_seventy_billion_parameters_on_a_laptop(tmp_path):
    """Overview, sharing, embeddings and their health read what they need, and no more."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.seventy_billion", str(tmp_path / "llama"),
         str(tmp_path / "home")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    parameters = 68_976_648_192
    matrix = 32_000 * 8_192 * 2

    assert (found["parameters"], found["listed"], found["unique"]) == (parameters,) * 3
    assert (found["layers"], found["reused"]) == (80, 0)
    # One pair that could be tied and is not; what is equal because it is all zeros is not listed.
    assert found["groups"] == [["lm_head.weight", "model.embed_tokens.weight"]]
    assert found["plan"] == ["bfloat16", False, True, 2 * parameters]
    assert sum(found["places"].values()) == 2 * parameters
    assert found["places"]["disk"] > 1.2e11
    assert found["places"]["cpu"] <= 7.2e9
    assert found["rows"] == [32_000, 8_192]
    assert found["largest"] == pytest.approx(math.sqrt(8_192))
    assert (found["not_finite"], found["equal"], found["zero"]) == ([7], [[5, 9]], 32_000 - 4)
    assert found["nearest"] == [9]
    # Of 138 GB: the libraries, and for the embeddings that one matrix, mapped, beside its blocks.
    assert found["before_embeddings_nbytes"] < 1.2e9
    assert found["peak_nbytes"] < 1.2e9 + 2 * matrix
