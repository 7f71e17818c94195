"""Text in figures: nothing invisible, nothing that Plotly would read as markup."""

from __future__ import annotations

import json

import pytest

from inspector.text import (
    bytes_text,
    count_text,
    json_text,
    percent_text,
    plain,
    plural,
    shape_text,
    shorten,
    shorten_middle,
    shorten_name,
    some,
    visible,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("naïve ␣world 語", "naïve ␣world 語"),
        ("a\u202eb", "a\\u202eb"),
        ("\x00\n", "\\x00\\x0a"),
        ("\ud800", "\\ud800"),
        ("\u2028", "\\u2028"),
        ("👩\u200d🔬", "👩\u200d🔬"),  # a joiner inside an emoji is no trick
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("<s>", "&lt;s&gt;"), ("&lt;", "&amp;lt;"), ("</b>", "&lt;/b&gt;"), ('"', '"')]
)
def test_plain_means_every_character_itself(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_shorten_keeps_the_length() -> None:
    assert shorten("tokens", 6) == "tokens"
    assert shorten("tokens", 5) == "toke…"
    assert shorten_middle("bert.weight", 11) == "bert.weight"
    assert shorten_middle("encoder.layer.0.output.weight", 11) == "enco…weight"


def test_names_of_neighboring_layers_stay_different() -> None:
    names = [f"albert.encoder.layers.{n}.group.tensor_0.weight" for n in (3, 11)]
    assert [shorten_name(name, 40) for name in names] == [
        "alb….enc….layers.3.group.tensor_0.weight",
        "alb….enc….laye….11.group.tensor_0.weight",
    ]
    name = "albert.encoder.albert_layer_groups.[0]"
    assert shorten_name(name, 30) == "albert.encoder.albert_lay….[0]"
    assert shorten_name("lm_head.weight", 38) == "lm_head.weight"
    assert len(shorten_name("x" * 100, 38)) == 38


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0"), (512, "512"), (30_522, "30.5K"), (23_440_896, "23.4M"), (999_960, "1.0M")]
)
def test_count(number: int, shown: str) -> None:
    assert count_text(number) == shown


@pytest.mark.parametrize(
    ("nbytes", "shown"), [(512, "512 B"), (122_088, "122.1 KB"), (93_763_584, "93.8 MB"), (1_340_000_000, "1.3 GB")]
)
def test_bytes(nbytes: int, shown: str) -> None:
    assert bytes_text(nbytes) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "0.00 %"), (0.00002, "<0.01 %"), (0.0044, "0.44 %"), (0.41339, "41.3 %"), (1, "100.0 %")]
)
def test_percent(share: float, shown: str) -> None:
    assert percent_text(share) == shown


def test_the_first_of_many_are_named() -> None:
    assert some(["a", "b", "c"], 3) == "a, b, c"
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"
    assert some(["a"] * 1_001, 1) == "a and 1,000 more"
    assert some([], 3) == ""


def test_shapes_and_plurals() -> None:
    assert shape_text((30522, 768)) == "30,522 × 768"
    assert shape_text(()) == "scalar"
    assert plural(1, "tensor") == "1 tensor"
    assert plural(0, "tensor") == "0 tensors"


@pytest.mark.parametrize("text", ["\u009b31m", "a\u202eb", "\x1b[31m", "\udc80", "\U000e0001", "plain ü 漢"])
def test_json_holds_nothing_that_a_terminal_acts_on(text):
    written = json_text({"name": text, "more": [1.5, None]})
    assert written.isprintable()
    assert json.loads(written) == {"name": text, "more": [1.5, None]}
    assert ("ü 漢" in written) == ("ü" in text)
