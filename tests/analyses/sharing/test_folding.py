"""Folding: every tensor stands in exactly one line, and there are never too many lines."""

from __future__ import annotations

import random
from collections import Counter

import pandas as pd
import pytest

from inspector.analyses.sharing.compute_folding import LINES, fold_rows
from tests.analyses.sharing.sharing_frames import folded, group, tensors


def check_places(rows: pd.DataFrame, frame: pd.DataFrame) -> None:
    """The rows' sums are those of the tensors that point to them."""
    by_row = frame.groupby("row").agg({"name": "count", "parameters": "sum", "nbytes": "sum"})
    assert by_row.index.tolist() == list(range(len(rows)))
    assert by_row["name"].tolist() == rows["tensors"].tolist()
    assert by_row["parameters"].tolist() == rows["parameters"].tolist()
    assert by_row["nbytes"].tolist() == rows["nbytes"].tolist()


def layers(prefix: str, count: int, *parts: str) -> list[str]:
    return [f"{prefix}.{number}.{part}.weight" for number in range(count) for part in parts]


def test_layers_are_one_line_and_shared_names_lines_of_their_own() -> None:
    names = ["wte.weight", *layers("h", 12, "attn", "mlp"), "ln.weight", "lm_head.weight"]
    rows, frame = folded(names, [group("lm_head.weight", "wte.weight")])
    assert rows["label"].tolist() == ["wte.weight", "h.[0–11]", "ln.weight", "lm_head.weight"]
    assert rows["tensors"].tolist() == [1, 24, 1, 1]
    assert rows["group"].tolist() == [0, -1, -1, 0]
    check_places(rows, frame)


def test_experts_are_a_line_of_their_own() -> None:
    names = [
        f"model.layers.{layer}.{part}.weight"
        for layer in range(3)
        for part in ("norm", *(f"mlp.experts.{e}.{p}" for e in range(8) for p in ("up", "down")))
    ]
    rows, frame = folded(names)
    assert rows["label"].tolist() == [
        "model.layers.[0–2]", "model.layers.[0–2].mlp.experts.[0–7]",
    ]  # fmt: skip
    assert rows["tensors"].tolist() == [3, 48]
    check_places(rows, frame)


def test_a_short_list_in_a_block_stays_in_its_line() -> None:
    names = [f"encoder.block.{b}.layer.{n}.w.weight" for b in range(4) for n in range(2)]
    assert folded(names)[0]["label"].tolist() == ["encoder.block.[0–3]"]


def test_gaps_in_a_list_are_not_hidden() -> None:
    names = [f"h.{number}.w.weight" for number in (0, 2, 5)]
    assert folded(names)[0]["label"].tolist() == ["h.[0…5]"]


def test_an_encoder_tied_to_a_decoder_is_two_lines() -> None:
    parts = [f"m{number}" for number in range(16)]
    left, right = layers("enc.layer", 12, *parts), layers("dec.layer", 12, *parts)
    groups = [group(*sorted(pair)) for pair in zip(left, right, strict=True)]
    rows, frame = folded([*left, *right], groups)
    assert rows["label"].tolist() == ["enc.layer.[0–11]", "dec.layer.[0–11]"]
    assert rows["group"].tolist() == [0, 0]
    assert rows["tensors"].tolist() == [192, 192]
    check_places(rows, frame)


def test_patterns_fold_only_with_their_own_verdict() -> None:
    left, right = layers("enc", 20, "w"), layers("dec", 20, "w")
    pairs = list(zip(right, left, strict=True))
    groups = [group(*p, verdict="tied" if n < 15 else "diverged") for n, p in enumerate(pairs)]
    rows, frame = folded([*left, *right], groups)
    assert rows["label"].tolist() == [
        "enc.[0–14].w.weight", "enc.[15–19].w.weight",
        "dec.[0–14].w.weight", "dec.[15–19].w.weight",
    ]  # fmt: skip
    assert rows["group"].tolist() == [0, 15, 0, 15]
    check_places(rows, frame)


def test_one_group_of_hundreds_of_names_is_one_line() -> None:
    names = layers("h", 300, "w")
    rows, frame = folded(names, [group(*sorted(names))])
    assert rows["label"].tolist() == ["h.[0–299].w.weight"]
    assert rows["shape"].tolist() == ["500 × 500"]  # all names have it
    check_places(rows, frame)


@pytest.mark.parametrize("shared", [False, True])
def test_names_without_any_pattern_end_in_one_honest_line(shared: bool) -> None:
    draw = random.Random(0)
    names = [f"{draw.getrandbits(64):x}q.w" for _ in range(3_000)]
    pairs = list(zip(names[::2], names[1::2], strict=True)) if shared else []
    rows, frame = folded(names, [group(*pair) for pair in pairs])
    assert len(rows) == LINES + 1
    assert rows["label"].tolist()[-1] == f"… and {3_000 - LINES:,} more lines"
    assert rows["group"].tolist()[-1] == -1
    places = zip(frame["group"], frame["row"], strict=True)
    drawn = [of for of, row in places if row < LINES]
    assert set(Counter(drawn).values()) == ({2} if shared else {LINES})  # no half groups
    check_places(rows, frame)


def test_numbers_without_dots_fold_too() -> None:
    names = [f"layer_{number}.{part}" for number in range(90) for part in ("weight", "bias")]
    assert folded(names)[0]["label"].tolist() == ["layer_[0–89]"]


def test_buffers_count_no_parameters() -> None:
    groups = [group("a.weight", "b.mask")]
    frame = tensors(["a.weight", "b.mask"], groups)
    frame.loc[1, "kind"] = "buffer"
    rows, _ = fold_rows(frame, groups)
    assert rows["parameters"].tolist() == [250_000, 0]
    assert rows["nbytes"].tolist() == [1_000_000, 1_000_000]


def test_strange_names_fold_without_harm() -> None:
    names = ["a.[].b.w", "a.0.b.w", "a.\ufdd0.b.w", f"a.{'9' * 5_000}.b.w", ".", "", "a..w"]
    rows, frame = folded(names)
    check_places(rows, frame)


def test_nothing_folds_to_nothing() -> None:
    rows, row_of = fold_rows(tensors([]))
    assert rows.empty
    assert row_of == []
