"""The rows of a lens that are known while a streamed pass goes on: early, and those of the answer to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch

from inspector.analyses.lens import compute_reading, words
from inspector.analyses.lens.compute import lens
from inspector.analyses.lens.compute_reading import MOST_ROWS, LensReading
from inspector.analyses.lens.frames import top_tokens
from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import Lens, LensRows
from inspector.errors import RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.reading.ladder import Ladder
from inspector.models.reading.lens_run import LensSetup, prepare
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.wire import MAX_PARTIAL
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED
from tests.models import alike
from tests.models.test_streaming import CHANGES, PASSING

TEXT = "w1 w2 w3 ##a w30"
POSITIONS = 9
NO_GEOMETRY = {"AlbertForMaskedLM", "ElectraForMaskedLM"}  # embeddings and states differ in width
COLLECTED_BY_HAND = {"DebertaV2ForMaskedLM", "MPNetForMaskedLM", "GPTNeoXJapaneseForCausalLM"}
FAMILIES = sorted({*MODELS, *ENCODER_DECODER, *UNLISTED, *RENAMED})


@pytest.fixture
def each_alone(monkeypatch) -> None:
    """Read every layer alone, as of a long text or a large vocabulary."""
    monkeypatch.setattr(compute_reading, "block_states", lambda *_: POSITIONS)


def streamed(checkpoint: StagedCheckpoint, **options: Any) -> tuple[Lens, list[LensRows]]:
    """A streamed lens, and what it showed on the way."""
    shown: list[LensRows] = []
    asked = {"text": TEXT, "k": 3, "pins": ["w3"], "dtype": "float32", "device": "stream"} | options
    return lens(checkpoint, progress=silent, show=shown.append, **asked), shown


def layers_of(rows: LensRows) -> list[int]:
    return sorted(rows.cells["layer"].unique().tolist())


def expect_in(rows: LensRows, found: Lens) -> None:
    """Each row is one of the answer's, to the bit; none of them is missing at its layers and steps."""
    cells = found.cells
    best = cells[(cells["rank"] == 0) & cells["layer"].isin(layers_of(rows)) & cells["rung"].isin(rows.rungs)]
    order = ["layer", "rung", "position"]
    mine, theirs = (pd.DataFrame(frame).sort_values(order, ignore_index=True) for frame in (rows.cells, best))
    pd.testing.assert_frame_equal(mine, theirs, check_exact=True)
    assert (rows.tokens, rows.layers) == (found.tokens, found.layers)
    assert set(rows.rungs) <= set(found.rungs)


@pytest.mark.usefixtures("each_alone")
@pytest.mark.parametrize("architecture", FAMILIES)
def test_rows_of_every_family_are_those_of_the_answer(open_model, architecture):
    checkpoint = open_model(architecture, **CHANGES.get(architecture, {}))
    found, shown = streamed(checkpoint)
    without = {*NO_GEOMETRY, *COLLECTED_BY_HAND, *ENCODER_DECODER}
    inner = range(0 if architecture in without else len(found.layers) - 1)
    assert [layers_of(rows) for rows in shown] == [list(range(layer + 1)) for layer in inner]
    for rows in shown:
        expect_in(rows, found)
    whole = lens(checkpoint, progress=silent, text=TEXT, k=3, pins=["w3"], dtype="float32", device="cpu")
    alike.same(found, whole, leaving=PASSING)


@pytest.mark.usefixtures("each_alone")
def test_rows_come_before_the_next_block_is_read(open_model):
    checkpoint = open_model("LlamaForCausalLM", num_hidden_layers=4)
    told: list[Any] = []
    lens(
        checkpoint,
        progress=lambda _, text: told.append(text.partition(",")[0]),
        show=lambda rows: told.append(layers_of(rows)[-1]),
        text=TEXT,
        device="stream",
    )
    begin = told.index("Block 1 of 4")
    assert told[begin:] == ["Block 1 of 4"] * 2 + [
        0,
        1,
        "Block 2 of 4",
        2,
        "Block 3 of 4",
        3,
        "Block 4 of 4",
        "Layer 4",
    ]


def test_layers_that_are_read_together_come_together(open_model, monkeypatch):
    """A group is read as often as without rows: the matrix, too large to be read for each layer, once a group."""
    checkpoint = open_model("LlamaForCausalLM", num_hidden_layers=5)
    monkeypatch.setattr(compute_reading, "block_states", lambda *_: 2 * POSITIONS)
    reads: list[tuple[int, bool]] = []
    score = LensSetup.score

    def counted(self: LensSetup, hidden: torch.Tensor, block: slice, *, last: bool) -> Any:
        reads.append((len(hidden), last))
        return score(self, hidden, block, last=last)

    monkeypatch.setattr(LensSetup, "score", counted)
    found, shown = streamed(checkpoint)
    assert [layers_of(rows) for rows in shown] == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4]]
    on_the_way = reads.copy()
    reads.clear()
    whole = lens(checkpoint, progress=silent, text=TEXT, k=3, pins=["w3"], dtype="float32", device="cpu")
    assert sorted(on_the_way) == sorted(reads) == sorted([(18, False), (18, False), (9, False), (9, True)])
    alike.same(found, whole, leaving=PASSING)


def test_a_short_text_is_read_in_three_groups(open_model):
    """Whole and streamed alike, so that their answers are equal."""
    checkpoint = open_model("LlamaForCausalLM", num_hidden_layers=5)
    found, shown = streamed(checkpoint)
    assert [layers_of(rows) for rows in shown] == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4]]
    for rows in shown:
        expect_in(rows, found)
    whole = lens(checkpoint, progress=silent, text=TEXT, k=3, pins=["w3"], dtype="float32", device="cpu")
    alike.same(found, whole, leaving=PASSING)


@pytest.mark.usefixtures("each_alone")
def test_chosen_layers_alone_are_read_on_the_way(open_model):
    checkpoint = open_model("LlamaForCausalLM", num_hidden_layers=4)
    found, shown = streamed(checkpoint, layers=[1, 3])
    assert [layers_of(rows) for rows in shown] == [[1], [1, 3]]
    for rows in shown:
        expect_in(rows, found)
    with pytest.raises(RequestError, match=r"^There is no layer 9: this model has layers 0 \(embeddings\) to 4\.$"):
        streamed(checkpoint, layers=[9])


@pytest.mark.usefixtures("each_alone")
@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "LlamaForCausalLM"])
def test_rows_are_final_where_the_head_turns_out_to_be_another(open_model, monkeypatch, architecture):
    """True logits of inner layers are withdrawn then, so no row says them before they are compared."""
    checkpoint = open_model(architecture)
    logits = Ladder.logits
    monkeypatch.setattr(Ladder, "logits", lambda self, hidden, *, last=True: logits(self, hidden, last=last) + 1)
    found, shown = streamed(checkpoint)
    assert found.taken_from_model
    assert set(found.cells.query("rung == 'logits'")["layer"]) == {len(found.layers) - 1}
    assert shown
    for rows in shown:
        expect_in(rows, found)
    alike.same(found, streamed_later(checkpoint, monkeypatch), leaving=PASSING)


def streamed_later(checkpoint: StagedCheckpoint, monkeypatch: pytest.MonkeyPatch) -> Lens:
    """The same, with every layer read once the pass has ended."""
    monkeypatch.setattr(LensReading, "follow", lambda *_: None)
    found, shown = streamed(checkpoint)
    assert not shown
    return found


@pytest.mark.usefixtures("each_alone")
def test_states_that_the_pass_did_not_end_with_are_read_again(open_model, monkeypatch):
    checkpoint = open_model("LlamaForCausalLM", num_hidden_layers=3)
    follow = LensReading.follow

    def astray(self: LensReading, setup: LensSetup, states: Sequence[torch.Tensor], count: int) -> None:
        follow(self, setup, [state + 1 for state in states], count)

    monkeypatch.setattr(LensReading, "follow", astray)
    found, _ = streamed(checkpoint)
    alike.same(found, streamed_later(checkpoint, monkeypatch), leaving=PASSING)


@pytest.mark.usefixtures("each_alone")
def test_a_model_that_is_whole_shows_no_rows(open_model):
    _, shown = streamed(open_model("LlamaForCausalLM"), device="cpu")
    assert not shown


@pytest.mark.usefixtures("each_alone")
def test_nothing_is_left_on_the_model(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    streamed(checkpoint)
    model = load(checkpoint, "causal_lm", device="stream").model
    hooks = [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()]
    streamed(checkpoint)
    assert [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in model.modules()] == hooks


@pytest.mark.usefixtures("each_alone")
def test_rows_stop_where_they_would_be_too_many(open_model):
    checkpoint = open_model("LlamaForCausalLM", num_hidden_layers=4)
    shown: list[LensRows] = []
    most = 3 * POSITIONS * 2  # dot and cosine
    reading = LensReading(LensRequest(text=TEXT), checkpoint.require_tokens(), shown.append, most_rows=most)
    prepare(checkpoint, progress=silent, text=TEXT, pins=(), decoder_text="", device="stream", dtype="float32",
            follow=reading.follow)  # fmt: skip
    assert [layers_of(rows)[-1] for rows in shown] == [0, 1, 2]


@pytest.mark.usefixtures("each_alone")
def test_as_many_rows_as_there_may_be_fit_into_a_message(open_model):
    _, shown = streamed(open_model("BertForMaskedLM"))
    rows = shown[-1]
    cells = pd.concat([rows.cells] * (MOST_ROWS // len(rows.cells) + 1), ignore_index=True).head(MOST_ROWS)
    long = encode(replace(rows, cells=cells.assign(token="Donaudampfschifffahrt", rung="dot + bias")))
    assert len(long) <= MAX_PARTIAL
    assert len(decode(long, LensRows).cells) == MOST_ROWS


@pytest.mark.usefixtures("each_alone")
def test_the_table_of_rows_has_a_line_for_each_layer_so_far(open_model):
    found, shown = streamed(open_model("LlamaForCausalLM", num_hidden_layers=4))
    rows = shown[2]
    best = found.cells.query("rung == 'cosine' and rank == 0 and layer < 3").sort_values(["layer", "position"])
    tokens = best["token"].tolist()
    lines = [list(found.tokens), *(tokens[at : at + POSITIONS] for at in range(0, 3 * POSITIONS, POSITIONS))]
    table = top_tokens(rows, "cosine")
    assert table["layer"].tolist() == ["text", "emb.", "1", "2"]
    assert table.drop(columns="layer").to_numpy().tolist() == lines
    assert words.so_far(rows, "cosine").startswith("Layers 0–2 of 4 so far, by cosine. ")
    assert words.so_far(shown[0], "dot").startswith("Layer 0 of 4 so far, by dot. ")
    short = top_tokens(rows, "cosine", most=4)
    assert list(short) == ["layer", "5", "6", "7", "8"]
    assert short.drop(columns="layer").to_numpy().tolist() == [line[5:] for line in lines]
    assert words.so_far(rows, "cosine", most=4).startswith("Layers 0–2 of 4 so far, the last 4 positions, by cosine. ")
