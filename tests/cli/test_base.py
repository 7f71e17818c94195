"""`base` on the command line: one candidate, several, and those of the store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.analyses.base.test_base import model, noise, saved


def test_the_command_lists_the_closest_first(call, tmp_path):
    two = saved(tmp_path / "two", model("LlamaForCausalLM", 0))
    one = saved(tmp_path / "one", model("LlamaForCausalLM", 0), noise(0.004))
    copy = shutil.copytree(one, tmp_path / "copy")
    status, stdout, stderr = call("base", str(one), "demo-gpt2", str(two), str(copy), "--json")
    found = [(Path(line["checkpoint"]).name, line["result"]["verdict"]) for line in json.loads(stdout)["checkpoints"]]
    assert (status, found) == (0, [("copy", "same"), ("two", "fine-tuned from"), ("demo-gpt2", "unrelated")]), stderr
    status, stdout, _ = call("base", str(one), str(two), "--json")
    assert (status, json.loads(stdout)["verdict"]) == (0, "fine-tuned from")
    status, stdout, _ = call("base", str(one), "--json")
    assert [line["checkpoint"] for line in json.loads(stdout)["checkpoints"]] == ["demo-bert", "demo-gpt2"]
