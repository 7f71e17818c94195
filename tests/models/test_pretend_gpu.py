"""What runs on a GPU: the machine's own, or one that refuses what hardware does, tensors on two devices at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from inspector.analyses.contrast.compute import contrast
from inspector.analyses.heads.compute import heads
from inspector.analyses.ladder.compute import climb
from inspector.analyses.lens.compute import lens
from inspector.analyses.masked_lm.compute import predict, predict_many
from inspector.analyses.masked_lm.result import Prediction
from inspector.analyses.padding.compute import padding
from inspector.analyses.plausibility.compute import plausibility
from inspector.analyses.pretraining.compute import pretrain
from inspector.analyses.vocabulary_map.compute_maps import Mapper
from inspector.analyses.vocabulary_map.request import ProjectRequest
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models import alike
from tests.models.pretend_gpu import pretended_gpu
from tools.bench import gpu as benchmark

PASSING = {"device", "milliseconds", "memory_nbytes", "execution", "note", "how", "seconds"}
TEXT, MASKED = "w1 w2 w3 ##a w30", "w1 w2 [MASK] w30"


@pytest.fixture
def gpu():
    with pytest.MonkeyPatch.context() as patch, pretended_gpu(patch):
        yield


def test_the_gpu_refuses_what_a_real_one_refuses(gpu):
    there = torch.ones(3).to("cuda")
    assert there.device.type == "cuda"
    assert (there + 1).cpu().tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="same device"):
        _ = there + torch.ones(3)
    with pytest.raises(RuntimeError, match="same device"):
        _ = torch.ones(3)[there > 0]
    with pytest.raises(TypeError, match="numpy"):
        there.numpy()
    with pytest.raises(TypeError, match="numpy"):
        np.asarray(there)


def same(there: Any, here: Any) -> None:
    """Two results agree, but for where and how fast they were made."""
    alike.same(there, here, leaving=PASSING, exact=False)


def twice(analysis: Any, opened: Any, **parameters: Any) -> Any:
    """Ask on the pretended GPU, then on the CPU."""
    options = {"progress": silent, "dtype": "float32", **parameters}
    with pytest.MonkeyPatch.context() as patch, pretended_gpu(patch):
        there = analysis(opened(), device="cuda", **options)
    same(there, analysis(opened(), device="cpu", **options))
    return there


def test_lens(open_model, architecture):
    found = twice(lens, lambda: open_model(architecture), text=TEXT, k=3, pins=["w3"])
    assert found.device == "cuda:0"


@pytest.mark.parametrize("name", ["BertForMaskedLM", "LlamaForCausalLM"])
def test_blocks_are_streamed_to_the_gpu(open_model, gpu, name):
    there = lens(open_model(name), progress=silent, text=TEXT, device="stream", dtype="float32")
    here = lens(open_model(name), progress=silent, text=TEXT, device="cpu", dtype="float32")
    assert there.device == "cuda:0"
    assert any("Streamed" in text and "on cuda:0" in text for text in there.warnings)
    same(replace(there, warnings=()), replace(here, warnings=()))


@pytest.mark.parametrize("name", ["BertForMaskedLM", "GPT2LMHeadModel", "Gemma2ForCausalLM"])
def test_ladder(open_model, name):
    twice(climb, lambda: open_model(name), text=TEXT, position=1, pins=["w3"])


@pytest.mark.parametrize("name", ["BertForMaskedLM", "RobertaForMaskedLM", "AlbertForMaskedLM"])
def test_masks(open_model, name):
    found = twice(predict, lambda: open_model(name), text=MASKED, targets=("w3", "w4"))
    assert found.device == "cuda:0"


def test_many_masks_at_once(open_model):
    requests = [{"text": f"w1 w{n} [MASK]" + " w5" * n} for n in range(6)]
    with pytest.MonkeyPatch.context() as patch, pretended_gpu(patch):
        there = predict_many(
            open_model("BertForMaskedLM"), [each | {"device": "cuda"} for each in requests],
            progress=silent,
        )  # fmt: skip
    here = predict_many(open_model("BertForMaskedLM"), requests, progress=silent)
    for one, other in zip(there, here, strict=True):
        assert isinstance(one, Prediction)
        assert isinstance(other, Prediction)
        same(one.masks, other.masks)


def test_words_and_texts(open_model):
    opened = lambda: open_model("BertForMaskedLM")  # noqa: E731
    twice(plausibility, opened, text=TEXT)
    twice(contrast, opened, first=MASKED, second="w3 w2 [MASK] w5")
    twice(pretrain, lambda: open_model("BertForPreTraining"), text=TEXT, pair="w3 w2")


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("BertForSequenceClassification", {}),
        ("BertForTokenClassification", {}),
        ("BertForQuestionAnswering", {"pair": "w3 w2 w5"}),
        ("BertForMultipleChoice", {"choices": ("w3", "w2 w5")}),
        ("BertForNextSentencePrediction", {"pair": "w3 w2 w5"}),
        ("GPT2LMHeadModel", {"temperature": 0.7, "seed": 3}),
        ("LlamaForCausalLM", {}),
    ],
)
def test_heads(open_model, name, parameters):
    twice(heads, lambda: open_model(name), text=TEXT, **parameters)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "GPT2LMHeadModel", "BartForConditionalGeneration"])
def test_padding(open_model, name):
    twice(padding, lambda: open_model(name), text="w1 w2 w3\nw4")


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("method", ["pca", "umap"])
def test_maps(tmp_path, open_path, method, metric):
    """The map of a GPU keeps as many neighbors as the CPU's; its places are others."""
    model = random_model("BertForMaskedLM", vocab_size=300)
    folder = save_checkpoint(model, tmp_path / "a")
    request = ProjectRequest(method=method, metric=metric, trust=True)
    here = Mapper(open_path(folder), progress=silent, epochs=10).make(request)
    with pytest.MonkeyPatch.context() as patch, pretended_gpu(patch):
        opened = open_path(folder)
        opened.settings = replace(opened.settings, home=tmp_path / "other", device="cuda")
        there = Mapper(opened, progress=silent, epochs=10).make(request)
    assert there.places.shape == (300, 2)
    assert np.isfinite(there.places).all()
    assert there.kept_neighbours == pytest.approx(here.kept_neighbours, abs=0.05)


def test_the_benchmark_of_a_gpu_runs(gpu, capsys):
    """What it times, and not how long that takes."""
    benchmark.readings({"small": (64, 16, 500)}, rounds=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["lens, small, float32", "lens, small, bfloat16"]
