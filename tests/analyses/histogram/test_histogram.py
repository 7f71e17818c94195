"""The numbers of one tensor, against the files' own by numpy."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file

import inspector as ci
from inspector.analyses.histogram.compute import histogram, read_numbers
from inspector.analyses.histogram.figures import histogram_figure
from inspector.analyses.histogram.words import headline
from inspector.demo import DEMOS
from inspector.errors import InspectorError
from tests.conftest import silent
from tests.families import random_model, save_checkpoint
from tests.models.quantized_files import FINE_GRAINED, LAYER, WEIGHT, in_float8

NAME = "bert.encoder.layer.0.attention.self.query.weight"


def test_the_demo_is_counted_as_numpy_counts_it():
    stored = load_file(DEMOS["demo-bert"].folder / "model.safetensors")
    for name in (NAME, "bert.pooler.dense.bias"):
        numbers = stored[name].astype(np.float64).ravel()
        found = ci.open("demo-bert").ask("histogram", tensor=name)
        assert (found.tensor, found.shape, found.dtype) == (name, stored[name].shape, "float32")
        assert (found.read, found.numbers) == (numbers.size, numbers.size)
        assert (found.least, found.most) == (numbers.min(), numbers.max())
        assert found.mean == pytest.approx(numbers.mean(), abs=1e-9)
        assert found.rms == pytest.approx(np.sqrt((numbers**2).mean()))
        counts, edges = np.histogram(numbers, bins=len(found.counts))
        assert found.edges == pytest.approx(edges)
        assert sum(found.counts) == numbers.size
        assert np.abs(counts - found.counts).max() <= 1  # a number on an edge
    largest = max(stored, key=lambda each: stored[each].size)
    assert stored[ci.open("demo-bert").ask("histogram").tensor].size == stored[largest].size


@pytest.mark.parametrize("most", [300, 1000])
def test_of_a_large_tensor_evenly_spaced_pieces_are_read(open_path, tmp_path, most):
    checkpoint = open_path(save_checkpoint(random_model("BertModel"), tmp_path / "a"))
    name = max(checkpoint.tensors.names, key=lambda each: len(checkpoint.reader.read([each])[each].reshape(-1)))
    whole = checkpoint.reader.read([name])[name].reshape(-1)
    read = read_numbers(checkpoint, name, most=most)
    assert most // 2 < len(read) <= most < len(whole)
    places = [int((whole == number).nonzero()[0]) for number in read[:: len(read) // 50]]
    assert places == sorted(places)
    assert read[0] == whole[0]
    assert read[-1] == whole[-1]
    gaps = np.diff(places)
    assert gaps.max() < 4 * len(whole) / 50
    assert torch.equal(read_numbers(checkpoint, name, most=len(whole)), whole)


def test_quantized_weights_are_dequantized(stored):
    coded = stored(in_float8(), quantization=FINE_GRAINED)
    assert WEIGHT in coded.quantized
    found = histogram(coded, tensor=WEIGHT, progress=silent)
    whole = coded.reader.read([WEIGHT])[WEIGHT].double()
    assert found.scheme
    assert (found.least, found.most) == pytest.approx((whole.min().item(), whole.max().item()), rel=1e-2)
    assert found.read == whole.numel()
    part = next(part.name for part in coded.quantized[WEIGHT].parts.values() if part.name != WEIGHT)
    assert histogram(coded, tensor=part, progress=silent) == found  # a scale is no weight
    sampled = read_numbers(coded, WEIGHT, most=whole.numel() // 2)
    assert 0 < len(sampled) <= whole.numel() // 2


def test_codes_that_nobody_can_read_are_refused(stored):
    coded = stored(lambda w: {WEIGHT: w.to(torch.float8_e4m3fn), f"{LAYER}.s": torch.ones(1)})
    with pytest.raises(InspectorError, match="quantized codes in a format"):
        histogram(coded, tensor=WEIGHT, progress=silent)


def test_what_is_not_finite_is_counted_and_left_out(open_path, tmp_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "a")
    state = {name: torch.tensor(array) for name, array in load_file(folder / "model.safetensors").items()}
    name = "encoder.layer.0.attention.self.query.weight"
    state[name][0, :3] = torch.tensor([torch.nan, torch.inf, 0.0])
    state["pooler.dense.bias"].fill_(0.0)
    state["pooler.dense.weight"].fill_(torch.nan)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    checkpoint = open_path(folder)
    found = histogram(checkpoint, tensor=name, progress=silent)
    assert (found.nan, found.infinite, found.zeros) == (1, 1, 1)
    assert sum(found.counts) == found.numbers - 2
    assert headline(found).endswith("; 1 NaN and 1 infinite.")
    zero = histogram(checkpoint, tensor="pooler.dense.bias", progress=silent)
    assert (zero.least, zero.most, zero.rms) == (0, 0, 0)
    assert max(zero.counts) == zero.numbers
    none = histogram(checkpoint, tensor="pooler.dense.weight", progress=silent)
    assert (none.least, none.mean, none.counts) == (None, None, ())
    assert "none of its numbers is finite" in headline(none)


@pytest.mark.parametrize("largest", [1e300, 1.7e308, 1e-320])
def test_numbers_at_the_ends_of_their_dtype_are_counted(open_path, tmp_path, largest):
    state = random_model("BertModel").state_dict()
    state["pooler.dense.bias"] = torch.linspace(-1, 1, 32, dtype=torch.float64) * largest
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "a")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    found = histogram(open_path(folder), tensor="pooler.dense.bias", progress=silent)
    scaled = np.linspace(-1, 1, 32)
    assert sum(found.counts) == 32
    assert found.counts == pytest.approx(np.histogram(scaled, bins=len(found.counts))[0], abs=1)
    assert np.array(found.edges) / largest == pytest.approx(np.linspace(-1, 1, len(found.edges)), abs=1e-3)
    assert found.rms / largest == pytest.approx(np.sqrt((scaled**2).mean()), rel=1e-3)
    assert found.mean / largest == pytest.approx(0, abs=1e-3)
    bars = histogram_figure(found, name="a").data[0]
    assert np.isfinite(bars.x).all()
    assert np.isfinite(bars.width).all()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [1, 32])
@pytest.mark.parametrize("number", [sys.float_info.max, 2.0**1023, 2.0**1022, 1e-320, 5e-324])
def test_a_constant_at_the_ends_of_its_dtype_is_counted(open_path, tmp_path, number, size, sign):
    state = random_model("BertModel").state_dict() | {"x": torch.full((size,), sign * number, dtype=torch.float64)}
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "a")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    found = histogram(open_path(folder), tensor="x", progress=silent)
    assert (found.least, found.most, found.mean) == (sign * number,) * 3
    assert found.rms == pytest.approx(number)
    assert sum(found.counts) == size
    assert np.isfinite(found.edges).all()
    assert found.edges[0] <= sign * number <= found.edges[-1]
    assert found.edges[0] < found.edges[-1]


def test_complex_numbers_have_no_histogram(open_path, tmp_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "a")
    state = {name: torch.tensor(array) for name, array in load_file(folder / "model.safetensors").items()}
    state["pooler.dense.bias"] = state["pooler.dense.bias"].to(torch.complex64)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InspectorError, match=r"pooler\.dense\.bias holds complex numbers"):
        histogram(open_path(folder), tensor="pooler.dense.bias", progress=silent)


def test_a_name_that_is_not_there_is_one_sentence(open_path, tmp_path):
    checkpoint = open_path(save_checkpoint(random_model("BertModel"), tmp_path / "a"))
    with pytest.raises(InspectorError, match=r"did you mean 'pooler\.dense\.weight'"):
        histogram(checkpoint, tensor="pooler.dense.weigh", progress=silent)
