"""Padded passes of many texts against each text read alone by transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from inspector.errors import WorkerError
from inspector.models.loading import load
from inspector.models.masking import head as masked
from inspector.models.masking.head import Room, Row, masked_logits
from inspector.models.running import Loaded
from tests.families import MODELS, UNLISTED_MASKED, VOCAB, random_model

MASKED = sorted(name for name in MODELS if name.endswith(("MaskedLM", "PreTraining")))
# Fill masks by writing the text again, the decoder reading it one token later.
INFILLING = ["BartForConditionalGeneration", "MBartForConditionalGeneration"]
LENGTHS = (5, 12, 3, 12, 60, 1, 7)


def some_rows() -> list[Row]:
    generator = torch.Generator().manual_seed(3)
    rows = []
    for length in LENGTHS:
        ids = torch.randint(4, VOCAB, (length,), generator=generator).tolist()
        wanted = sorted({0, length - 1, length // 2})
        rows.append(Row(tuple(ids), (0,) * length, tuple(wanted)))
    rows.append(Row((5, 0, 1, 6), (0, 0, 1, 1), (3, 0)))  # padding ids as words, two segments
    return rows


def alone(model: torch.nn.Module, row: Row) -> torch.Tensor:
    """The model's own logits of one row, (positions, vocab)."""
    inputs = {"input_ids": torch.tensor([row.ids])}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.tensor([row.type_ids])
    with torch.inference_mode():
        output = model(**inputs)
    logits = output.logits if hasattr(output, "logits") else output.prediction_logits
    return logits[0, list(row.positions)]


@pytest.mark.parametrize(
    ("architecture", "block"),
    [
        *((name, Room().block) for name in (*MASKED, *INFILLING, *UNLISTED_MASKED)),
        ("BertForMaskedLM", 2 * VOCAB),
        ("ConvBertForMaskedLM", 2 * VOCAB),
    ],
)
def test_a_batch_is_each_row_alone(open_model, architecture, block):
    room = Room(block=block, padding=(("cpu", 1_000),))  # all in one pass, where padding is safe
    rows = some_rows()
    checkpoint = open_model(architecture)
    model = random_model(architecture)
    found: dict[int, list[torch.Tensor]] = {index: [] for index in range(len(rows))}
    for answer in masked_logits(checkpoint, load(checkpoint, "masked_lm", device="cpu"), rows, room=room):
        assert answer.start == sum(map(len, found[answer.index]))
        assert answer.logits.dtype == torch.float32
        assert len(answer.logits) <= max(block // VOCAB, 1)
        assert answer.milliseconds > 0
        found[answer.index].append(answer.logits)
    for index, row in enumerate(rows):
        torch.testing.assert_close(torch.cat(found[index]), alone(model, row), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ["ConvBertForMaskedLM", "FNetForMaskedLM"])
def test_why_other_families_are_not_padded(open_model, monkeypatch, architecture):
    """With padding, these models answer otherwise: the rule is needed."""
    monkeypatch.setattr(masked, "passes", lambda rows, *_, **__: iter([[0, 1]]))
    rows = [Row((5, 6, 7), (0,) * 3, (1,)), Row((8, 9, 10, 11, 12), (0,) * 5, (1,))]
    checkpoint = open_model(architecture)
    answers = masked_logits(checkpoint, load(checkpoint, "masked_lm", device="cpu"), rows)
    short = next(answer.logits for answer in answers if answer.index == 0)
    assert (short - alone(random_model(architecture), rows[0])).abs().max() > 1e-4


def test_passes_are_few_and_bounded(open_model):
    sizes = []
    checkpoint = open_model("BertForMaskedLM")
    loaded: Any = load(checkpoint, "masked_lm", device="cpu")
    loaded.model.base_model.embeddings.register_forward_pre_hook(
        lambda _, __, given: sizes.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    rows = [Row((5,) * length, (0,) * length, (0,)) for length in (9, 64, 8, 64, 10, 8)]
    list(masked_logits(checkpoint, loaded, rows))
    assert sizes == [(4, 10), (2, 64)]  # padding the short ones to 64 costs more than a pass
    sizes.clear()
    list(masked_logits(checkpoint, loaded, rows, room=Room(tokens=64)))
    assert sizes == [(4, 10), (1, 64), (1, 64)]


def test_nothing_is_read_before_it_is_asked_for(open_model):
    checkpoint = open_model("BertForMaskedLM")
    loaded = load(checkpoint, "masked_lm", device="cpu")
    assert list(masked_logits(checkpoint, loaded, [])) == []
    assert list(masked_logits(checkpoint, loaded, [Row((5, 6), (0, 0), ())])) == []


@pytest.mark.parametrize(
    ("device", "raised", "way_on"),
    [
        ("cuda", torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
         "use a smaller dtype, a shorter text, or the CPU."),
        ("mps", RuntimeError("MPS backend out of memory (MPS allocated: 18.02 GB)"),
         "use a smaller dtype, a shorter text, or the CPU."),
        ("cpu", RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"),
         "use a smaller dtype or a shorter text."),
    ],
)  # fmt: skip
def test_out_of_memory_is_a_sentence(open_model, monkeypatch, device, raised, way_on):
    def exhausted(*_: object, **__: object) -> None:
        raise raised

    checkpoint = open_model("BertForMaskedLM")
    loaded = load(checkpoint, "masked_lm", device="cpu")
    monkeypatch.setattr(transformers.BertModel, "forward", exhausted)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *_: tensor)  # there is no such device
    released = []
    monkeypatch.setattr("inspector.models.running.release", released.append)
    placed = Loaded(loaded.model, torch.device(device), loaded.dtype)
    with pytest.raises(WorkerError) as error:
        list(masked_logits(checkpoint, placed, [Row((5, 6), (0, 0), (1,))]))
    assert str(error.value) == (f"The {device} device has too little memory left for this input: {way_on}")
    assert released == [placed.device]


def test_a_model_too_large_for_its_device_is_a_sentence(open_model, monkeypatch):
    def exhausted(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")

    checkpoint = open_model("BertForMaskedLM")
    monkeypatch.setattr(
        "inspector.models.placing.placement.pick_device", lambda _: torch.device("cuda")
    )  # there is none
    monkeypatch.setattr("inspector.models.running.release", lambda _: None)
    monkeypatch.setattr(torch.nn.Module, "to", exhausted)
    with pytest.raises(WorkerError) as error:
        load(checkpoint, "masked_lm")
    assert str(error.value) == (
        "The cuda device has too little memory left for this model: use a smaller dtype, the CPU, or the device "
        "stream, which reads a block of layers at a time."
    )


def test_other_errors_stay_what_they_are(open_model, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    checkpoint = open_model("BertForMaskedLM")
    loaded = load(checkpoint, "masked_lm", device="cpu")
    monkeypatch.setattr(transformers.BertModel, "forward", broken)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        list(masked_logits(checkpoint, loaded, [Row((5, 6), (0, 0), (1,))]))
