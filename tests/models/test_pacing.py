"""The time of a streamed pass: what was measured of one block, and the rest by the bytes of the files."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from inspector.analyses.placement.compute import placement
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.placing import pacing, streaming
from inspector.models.running import forward
from tests.conftest import silent

IDS = torch.tensor([[2, 7, 9, 11, 3]])
BLOCK = re.compile(r".*?\.(layers?|h|albert_layers|block)\.\d+\.")
WHOLE = {  # task, changes of the configuration, and how often a pass runs each block
    "BertForMaskedLM": ("masked_lm", {"num_hidden_layers": 3}, 1),
    "GPT2LMHeadModel": ("causal_lm", {"n_layer": 5}, 1),
    "LlamaForCausalLM": ("causal_lm", {"num_hidden_layers": 4}, 1),
    "MixtralForCausalLM": ("causal_lm", {"num_hidden_layers": 3}, 1),
    "AlbertForMaskedLM": ("masked_lm", {"num_hidden_layers": 6, "num_hidden_groups": 1}, 6),
    "T5ForConditionalGeneration": ("seq2seq_lm", {}, 1),
}


@pytest.fixture
def a_second_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second whenever it is read: a matrix takes exactly one."""
    ticks = count()
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))


def stored_blocks(checkpoint: StagedCheckpoint) -> dict[str, dict[str, torch.Tensor]]:
    """The tensors in the file of each block, by the number that stands first in their names."""
    blocks: dict[str, dict[str, torch.Tensor]] = {}
    stored = load_file(next(file.path for file in checkpoint.manifest.files if file.format == "safetensors"))
    for name, tensor in stored.items():
        if found := BLOCK.match(name):
            blocks.setdefault(found[0], {})[name] = tensor
    return blocks


@pytest.mark.usefixtures("a_second_a_matrix")
@pytest.mark.parametrize("architecture", sorted(WHOLE))
def test_all_blocks_take_what_their_bytes_say(open_model, architecture):
    task, changes, passes = WHOLE[architecture]
    checkpoint = open_model(architecture, **changes)
    stream: Any = load(checkpoint, task, device="stream").stream
    blocks = stored_blocks(checkpoint)
    total = passes * sum(tensor.nbytes for block in blocks.values() for tensor in block.values())
    first = next(iter(blocks.values())).items()
    most = max(tensor.nbytes for name, tensor in first if tensor.dim() == 2 and ".experts." not in name)
    found: Any = pacing.estimate(stream, 1_000)  # that use every expert of a mixture
    assert found.seconds == pytest.approx(total / most)
    assert "and multiplying 1000 tokens by it took 1 s." in found.basis


@pytest.mark.usefixtures("a_second_a_matrix")
def test_of_large_matrices_a_smaller_one_is_timed(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    stream: Any = load(checkpoint, "causal_lm", device="stream").stream
    sizes = sorted({tensor.nbytes for tensor in next(iter(stored_blocks(checkpoint).values())).values()})
    assert len(sizes) > 2
    largest, larger, smallest = (pacing.estimate(stream, 1, most_nbytes=nbytes) for nbytes in (sizes[-1], sizes[-2], 1))
    assert largest
    assert larger
    assert smallest
    assert largest.seconds * sizes[-1] == pytest.approx(larger.seconds * sizes[-2])
    assert smallest.seconds >= larger.seconds


def test_a_pass_tells_its_time_before_its_first_block_runs(open_model, monkeypatch):
    """For the tokens of its texts; and what is measured for it changes nothing."""
    checkpoint = open_model("LlamaForCausalLM")
    told: list[str] = []
    loaded: Any = load(checkpoint, "causal_lm", device="stream", progress=lambda _, text: told.append(text))
    asked: list[int] = []

    def known(_: object, tokens: int) -> pacing.Estimate:
        asked.append(tokens)
        return pacing.Estimate(1_234, "")

    before: Any = forward(loaded, IDS, head=True, every_layer=True)
    monkeypatch.setattr(streaming, "estimate", known)
    told.clear()
    after: Any = forward(loaded, IDS.expand(3, -1), head=True, every_layer=True)
    assert told[:2] == ["Block 1 of 2", "Block 1 of 2, 21 min left"]
    assert asked == [3 * IDS.numel()]
    whole: Any = forward(load(checkpoint, "causal_lm", device="cpu"), IDS, head=True, every_layer=True)
    for each, one, expected in zip(after.hidden_states, before.hidden_states, whole.hidden_states, strict=True):
        assert torch.equal(one, expected)
        assert torch.allclose(each[:1], one, atol=1e-6)


def test_blocks_that_run_several_times_tell_no_time(open_model):
    checkpoint = open_model("AlbertForMaskedLM", num_hidden_layers=3, num_hidden_groups=1)
    told: list[str] = []
    loaded: Any = load(checkpoint, "masked_lm", device="stream", progress=lambda _, text: told.append(text))
    told.clear()
    forward(loaded, IDS, head=True)
    assert set(told) == {"Block 1 of 1"}


def test_of_a_mixture_as_many_experts_count_as_tokens_can_reach(open_model):
    checkpoint = open_model("MixtralForCausalLM", num_local_experts=8, num_experts_per_tok=2)
    stream: Any = load(checkpoint, "causal_lm", device="stream").stream
    block = {name: tensor.nbytes for name, tensor in stored_blocks(checkpoint)["model.layers.1."].items()}
    experts = sum(nbytes for name, nbytes in block.items() if ".experts." in name)
    wanted = sum(block.values()) - experts + experts // 4
    assert pacing.nbytes_of(stream, "model.layers.1", 1) == wanted


def test_every_way_is_listed_and_the_streamed_one_timed_where_it_is_asked_for(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    assert [each.seconds for each in placement(checkpoint, progress=silent).ways] == [None] * 3
    whole, spread, stream = placement(checkpoint, progress=silent, device="stream").ways
    assert [each.device for each in (whole, spread, stream)] == ["cpu", "spread", "stream"]
    assert whole.fits
    assert stream.fits
    assert whole.disk_nbytes == 0
    assert stream.memory_nbytes + stream.disk_nbytes == whole.memory_nbytes
    assert (whole.seconds, spread.seconds) == (None, None)
    assert stream.seconds is not None
    assert stream.seconds > 0


def test_a_model_that_cannot_be_streamed_says_why(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    small = type(checkpoint)(checkpoint.manifest, settings=replace(checkpoint.settings, model_nbytes=1))
    *_, stream = placement(small, progress=silent, device="stream", dtype="bfloat16").ways
    assert not stream.fits
    assert stream.seconds is None
    assert "INSPECTOR_MODEL_MB" in stream.note
