"""The masked-LM page with the real engine: the editor, its link, and every view of an answer.

The editor itself is driven in tests/browser; here stands what it is sent, and what a report of it
does.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save
from streamlit.testing.v1 import AppTest

from inspector.analyses.plausibility.figures import surprisal_colors
from inspector.demo import DEMOS
from inspector.plotting.theme import DARK, LIGHT, Theme, contrast
from inspector.serving.storing import registry
from inspector.settings import settings
from inspector.store.stored import list_checkpoints
from pages._masked_lm import text as masked_text
from pages._masked_lm.editor import Edit, read
from pages._ui import session
from tests.app.looking import button, said, titles

Open = Callable[..., AppTest]
TEXT = "the capital and largest city of [MASK]."


def editor(app: AppTest) -> dict[str, Any]:
    """What the editor was sent."""
    shown = [json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.json]
    (found,) = (each for each in shown if "tokens" in each)
    return found


def chips(app: AppTest) -> list[tuple[str, str]]:
    """Token and kind of every chip; a clicked one has the kind "clicked"."""
    return [(chip["text"], "clicked" if chip["masked"] else chip["kind"]) for chip in editor(app)["tokens"]]


def report(app: AppTest, text: str, *, of: str, masks: tuple[int, ...] = (), typed: bool = True
           ) -> AppTest:  # fmt: skip
    """Do what a report of the editor does before the script runs again."""
    serial = editor(app)["serial"] + 1
    app.session_state["masked edit"] = Edit(text, of, masks, serial, typed)
    app.session_state["masked serial"] = serial
    app.session_state["masked typed"] = typed
    return app.run()


def frame(app: AppTest, column: str) -> Any:
    """The first table that has a column."""
    return next(each.value for each in app.dataframe if column in each.value.columns)


def predicted(app: AppTest, **parameters: Any) -> Any:
    """What the engine answers to the same question."""
    fingerprint = app.session_state["opened"].fingerprint
    asked = {"k": 10, "targets": (), "order": "left", "device": "auto", "dtype": "auto"}
    return session.engine().run(fingerprint, "predict", **{"masks": (), **asked, **parameters}
                                ).result(120)  # fmt: skip


def test_the_chips_are_the_models_tokens_with_the_answer_on_the_mask(open_app: Open) -> None:
    app = open_app("masked_lm", text=TEXT)
    assert chips(app) == [
        ("[CLS]", "special"), ("the", "word"), ("capital", "word"), ("and", "word"),
        ("largest", "word"), ("city", "word"), ("of", "word"), ("[MASK]", "mask"), (".", "word"),
        ("[SEP]", "special"),
    ]  # fmt: skip
    best = predicted(app, text=TEXT).masks[0].predictions.iloc[0]
    note = editor(app)["tokens"][7]["note"]
    assert note == f"{best['token']} {100 * best['probability']:.1f} %"


def test_clicked_tokens_are_masked_and_stand_in_the_link(open_app: Open) -> None:
    app = open_app("masked_lm", text=TEXT)
    report(app, TEXT, of=TEXT, masks=(2, 5), typed=False)
    assert app.query_params["masks"] == "2,5" or app.query_params["masks"] == ["2,5"]
    assert editor(app)["hint"].startswith("3 masks in 10 tokens.")
    assert [kind for _, kind in chips(app)].count("clicked") == 2
    other = open_app("masked_lm", text=TEXT, masks="2,5")
    assert chips(other) == chips(app)
    assert [each.value.to_dict() for each in other.dataframe] == [each.value.to_dict() for each in app.dataframe]
    assert any("--mask=2,5" in code.value for code in other.code)


def test_a_link_masks_words_alone_and_only_those_that_there_are(open_app: Open) -> None:
    app = open_app("masked_lm", text="the city.", masks="0,2,4,99,-1")
    assert not app.exception
    assert [at for at, (_, kind) in enumerate(chips(app)) if kind == "clicked"] == [2]
    unread = open_app("masked_lm", text="the city.", masks="2,x")
    assert not unread.exception
    assert "clicked" not in dict(chips(unread)).values()


def test_masks_move_with_their_tokens_and_go_with_them(open_app: Open) -> None:
    app = open_app("masked_lm", text="the city of france.", masks="2,4")
    longer = "the old city of france."
    report(app, longer, of="the city of france.", masks=(2, 4))
    assert [text for text, kind in chips(app) if kind == "clicked"] == ["city", "france"]
    report(app, "the old king of france.", of=longer, masks=(3, 5))
    assert [text for text, kind in chips(app) if kind == "clicked"] == ["france"]


def test_an_example_takes_the_place_of_text_and_masks(open_app: Open) -> None:
    app = open_app("masked_lm", text="the city of france.", masks="2")
    example = app.pills(key="example").options[1]
    app.pills(key="example").set_value("the [MASK] of england.").run()
    assert "england" in example
    assert [kind for _, kind in chips(app)].count("clicked") == 0
    assert editor(app)["text"] == "the [MASK] of england."


def test_a_text_without_a_mask_invites_to_click_and_is_no_error(open_app: Open) -> None:
    app = open_app("masked_lm", text="no mask here.")
    assert not app.error
    assert "click one or more of the tokens" in app.info[0].value
    assert "Click a token" in editor(app)["hint"]
    assert not app.get("plotly_chart")


def test_an_own_text_goes_along_and_comes_back_with_its_masks(open_app: Open) -> None:
    app = open_app("masked_lm", text="the city of france.", masks="4")
    app.switch_page("pages/lens.py").run()
    assert app.text_area(key="text").value == "the city of france."
    app.switch_page("pages/masked_lm.py").run()
    assert [text for text, kind in chips(app) if kind == "clicked"] == ["france"]


def test_several_masks_have_joint_answers_with_three_scores(open_app: Open) -> None:
    app = open_app("masked_lm", text="the [MASK] of [MASK].", order="sure")
    table = frame(app, "independent")
    joint = predicted(app, text="the [MASK] of [MASK].", order="sure").joint
    assert table["log_probability"].tolist() == [each.log_probability for each in joint]
    assert table["pseudo_log_likelihood"].tolist() == [each.pseudo_log_likelihood for each in joint]
    assert table["probability"].tolist() == [math.exp(each.log_probability) for each in joint]
    assert "the most confident mask first" in said(app)
    listed = [each.value for each in app.dataframe if "logit" in each.value.columns]
    masks = predicted(app, text="the [MASK] of [MASK].", order="sure").masks
    assert [each["token"].tolist() for each in listed] == [each.predictions["token"].tolist() for each in masks]


def test_words_of_several_pieces_are_scored_piece_by_piece(open_app: Open) -> None:
    word = "englandfrance"
    app = open_app("masked_lm", text=TEXT, targets=f"france, {word}")
    words = frame(app, "pieces")
    row = words.set_index("word").loc[word]
    assert row["pieces"] == len(row["tokens"].split()) > 1
    assert row["probability"] == pytest.approx(math.exp(row["log_probability"]))
    assert any(f"--targets=france,{word}" in code.value for code in app.code)


def test_a_comma_is_a_token_that_can_be_compared(open_app: Open) -> None:
    app = open_app("masked_lm", text=TEXT, targets='france, ","')
    assert sorted(frame(app, "probability")["token"]) == [",", "france"]
    app.text_input(key="targets").set_value('","').run()
    assert frame(app, "probability")["token"].tolist() == [","]
    assert any("""'--targets=","'""" in code.value for code in app.code)


def test_every_tokens_plausibility_colors_the_chips(open_app: Open) -> None:
    app = open_app("masked_lm", text="the city of france.", view="Plausibility")
    assert not app.error
    table = frame(app, "bits")
    judged = table[~table["special"]]
    assert f"a pseudo-log-likelihood of {judged['log_probability'].sum():.3f} and" in said(app)
    colored = [chip["at"] for chip in editor(app)["tokens"] if chip["color"]]
    assert colored == judged["position"].tolist()
    # The one number that the page's other view gives as well: the token masked alone.
    alone = predicted(app, text="the city of france.", masks=(4,), k=1000).masks[0].predictions
    row = alone[alone["token"] == "france"].iloc[0]
    assert judged.set_index("token").loc["france", "probability"] == pytest.approx(row["probability"], rel=1e-4)


def test_a_causal_model_has_this_view_alone(open_app: Open) -> None:
    text = "the river flows to the sea."
    app = open_app("masked_lm", checkpoint="demo-gpt2", text=text, k="2")
    assert not app.error
    assert not app.exception
    assert not [each for each in app.segmented_control if each.key == "view"]
    result = (
        session.engine()
        .run(
            app.session_state["opened"].fingerprint,
            "plausibility",
            text=text,
            k=2,
            by="token",
            device="auto",
            dtype="auto",
        )
        .result(120)
    )
    assert f"The text has a perplexity of {result.perplexity:.2f};" in said(app)
    assert f"a log-likelihood of {result.log_likelihood:.3f} and" in said(app)
    table = frame(app, "bits")
    assert table["judged"].tolist() == [False] + [True] * result.judged
    assert all(len(text.split(", ")) == 2 for text in table["most_likely_here"][1:])
    assert "The first token, “the”, has no context and is not judged" in said(app)
    assert "demo-gpt2" in titles(app)
    assert any("plausibility demo-gpt2" in code.value and "-k 2" in code.value for code in app.code)


def test_plausibility_is_not_computed_before_it_is_wanted(open_app: Open) -> None:
    text = "an unusual sentence that nobody asks twice."
    app = open_app("masked_lm", text=text)
    fingerprint = app.session_state["opened"].fingerprint
    job = session.engine().run(fingerprint, "plausibility", text=text, by="token", device="auto", dtype="auto")
    assert job.status in ("waiting", "running")  # else it had been there
    job.result(120)


def test_two_sentences_are_compared_over_the_whole_vocabulary(open_app: Open) -> None:
    first, second = "the king of [MASK].", "the queen of [MASK]."
    app = open_app("masked_lm", text=first, view="Two sentences", second=second)
    assert not app.error
    sides = [predicted(app, text=text, k=1000).masks[0].predictions for text in (first, second)]
    logs = [dict(zip(side["token_id"], np.log(side["probability"]), strict=True)) for side in sides]
    favored = frame(app, "difference")
    assert len(favored)
    for row in favored.to_dict("records")[:5]:
        if row["token_id"] in logs[0] and row["token_id"] in logs[1]:
            truth = logs[0][row["token_id"]] - logs[1][row["token_id"]]
            assert row["difference"] == pytest.approx(truth, abs=1e-4)
    assert re.search(r"differ by 0\.\d+ of at most 1 bit", said(app))
    assert any(f"--second={second}" in code.value for code in app.code)


def test_the_demo_brings_a_second_sentence_and_one_mask_is_asked_for(open_app: Open) -> None:
    app = open_app("masked_lm", text="the [MASK] of england.", view="Two sentences")
    assert app.text_input(key="second").value == "the [MASK] of germany."
    assert "germany favors" in said(app)
    several = open_app("masked_lm", text="the [MASK] of [MASK].", view="Two sentences")
    assert "Leave exactly one" in several.info[0].value


def test_a_second_checkpoint_without_the_head_is_said_in_words(open_app: Open) -> None:
    app = open_app("masked_lm", text=TEXT, view="Two checkpoints", other="demo-gpt2")
    assert not app.error
    assert "no masked-LM head" in said(app)


def test_tokens_of_two_checkpoints_are_joined_by_their_text() -> None:
    import pandas as pd

    from inspector.analyses.masked_lm.frames import join_answers
    from inspector.analyses.masked_lm.result import Mask

    def mask(tokens: list[str], shares: list[float]) -> Mask:
        count = range(len(tokens))
        return Mask(3, pd.DataFrame({"token": tokens, "token_id": count, "probability": shares,
                                     "logit": 0.0}))  # fmt: skip

    joined = join_answers(mask(["paris", "rome"], [0.5, 0.2]), mask(["␣rome", "oslo"], [0.6, 0.1]))
    assert joined["token"].tolist() == ["rome", "paris", "oslo"]
    assert joined["here"].fillna(-1).tolist() == [0.2, 0.5, -1]
    assert joined["rank_there"].fillna(0).tolist() == [1, 0, 2]


def test_history_goes_back_downloads_and_is_cleared(open_app: Open) -> None:
    app = open_app("masked_lm", text="the [MASK] of england.")
    report(app, "the city of france.", of="", masks=(), typed=True)
    report(app, "the city of france.", of="the city of france.", masks=(4,), typed=False)
    app.segmented_control(key="view").set_value("History").run()
    labels = [each.label for each in app.button if each.label.startswith("the ")]
    assert len(labels) == 2
    assert "\\[MASK\\] of england" in labels[1]
    button(app, labels[1]).click().run()
    assert editor(app)["text"] == "the [MASK] of england."
    button(app, labels[0]).click().run()
    assert editor(app)["text"] == "the city of france."
    assert [text for text, kind in chips(app) if kind == "clicked"] == ["france"]
    button(app, "Clear history").click().run()
    assert not [each for each in app.button if each.label.startswith("the ")][1:]


def test_what_is_typed_on_is_one_line_of_history(open_app: Open) -> None:
    app = open_app("masked_lm", text="the [MASK]")
    for text in ("a [MASK]", "a [MASK] of", "a [MASK] of france"):
        report(app, text, of="")
    entries = app.session_state["masked history"]
    assert [entry.text for entry in entries] == ["the [MASK]", "a [MASK] of france"]


def test_the_memory_can_be_freed_and_the_next_question_is_answered(open_app: Open) -> None:
    app = open_app("masked_lm", text=TEXT)
    fingerprint = app.session_state["opened"].fingerprint
    button(app, "Release memory").click().run()
    assert fingerprint not in {worker.fingerprint for worker in session.engine().workers()}
    report(app, "the sea near [MASK].", of=TEXT)
    assert not app.error
    assert editor(app)["hint"].startswith("1 mask in ")


@pytest.mark.parametrize(
    ("text", "words"),
    [("x " * 700 + "[MASK]", "703 tokens"), ("a" * 20_001, "20,001 characters")],
    ids=["tokens", "characters"],
)
def test_a_text_that_is_too_long_is_one_sentence(text: str, words: str, open_app: Open) -> None:
    app = open_app("masked_lm", text=text)
    assert not app.exception
    (error,) = app.error
    assert words in error.value.replace("\\", "")
    assert editor(app)["text"] == text


def test_a_text_that_is_too_long_is_said_before_anything_is_masked(open_app: Open) -> None:
    app = open_app("masked_lm", text="x " * 200)
    assert editor(app)["hint"] == "The text has 202 tokens, but the model takes at most 128."
    assert not app.error


@pytest.mark.parametrize("sent", [None, 3, {}, {"masks": "1", "serial": 1}, {"masks": [1], "serial": "1"}])
def test_a_report_that_is_none_is_not_read(sent: Any) -> None:
    assert read(sent) is None


def test_half_a_character_is_replaced() -> None:
    edit = read({"text": "a\ud800b", "of": "", "masks": [1, "2"], "serial": 4, "typed": True})
    assert edit == Edit("a?b", "", (1,), 4, typed=True)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("one two", "one big two", {(0, 3, 0), (8, 11, 0)}),
        ("one two", "one", {(0, 3, 0)}),
        ("one two", "", set()),
        ("one two", "one two three", {(0, 3, 0), (4, 7, 0)}),
        ("one one", "one", {(0, 3, 0)}),
        ("one two", "oxe two", {(4, 7, 0)}),
    ],
)
def test_places_are_found_again_after_an_edit(old: str, new: str, kept: set[masked_text.Place]) -> None:
    places = [(0, 3, 0), (4, 7, 0)]
    carried = masked_text.carry(places, old=old, new=new)
    assert carried == kept
    assert {new[start:end] for start, end, _ in carried} <= set(old.split())


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_chips_have_the_strips_colors(theme: Theme) -> None:
    assert surprisal_colors([0.0, 4.0, 16.0], theme=theme) == [
        theme.ramp[0], theme.ramp[1], theme.ramp[-1],
    ]  # fmt: skip
    for bits in range(17):
        (color, _) = surprisal_colors([float(bits), 16.0], theme=theme)
        assert contrast(theme.ramp_ink, color) >= 4.5


def other_demo(change: Callable[[str, bytes], bytes]) -> bytes:
    """The demo with other files, zipped."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        for path in DEMOS["demo-bert"].folder.iterdir():
            files.writestr(path.name, change(path.name, path.read_bytes()))
    return archive.getvalue()


def other_tokens(name: str, content: bytes) -> bytes:
    """Another mask token, and no token for "france"."""
    if not name.startswith("tokenizer"):
        return content
    return content.replace(b"[MASK]", b"<mask>").replace(b'"france"', b'"qqq"')


def damaged(name: str, content: bytes) -> bytes:
    """NaN in the head."""
    if not name.endswith(".safetensors"):
        return content
    tensors = load(content)
    tensors["cls.predictions.bias"] = np.full_like(tensors["cls.predictions.bias"], np.nan)
    return save(tensors)


@pytest.fixture
def upload(open_app: Open) -> Iterator[Callable[..., tuple[AppTest, str]]]:
    """Upload the changed demo, for the time of a test: the page, and how it names the upload."""
    kept: list[str] = []

    def uploaded(change: Callable[[str, bytes], bytes]) -> tuple[AppTest, str]:
        app = open_app("masked_lm")
        app.file_uploader[0].set_value(("second.zip", other_demo(change), "application/zip")).run()
        (stored,) = list_checkpoints(settings())
        kept.append(stored.fingerprint)
        return app, f"{stored.name} ({stored.fingerprint[:8]})"

    yield uploaded
    for fingerprint in kept:
        registry.delete_checkpoint(fingerprint, settings=settings())
        session.engine().forget(fingerprint)


@pytest.fixture
def second(upload: Callable[..., tuple[AppTest, str]]) -> str:
    """A second checkpoint with a masked-LM head, as the page offers it."""
    return upload(other_tokens)[1]


def test_a_damaged_head_is_said_and_nothing_is_ranked(upload: Callable[..., tuple[AppTest, str]]) -> None:
    app, _ = upload(damaged)
    assert not app.exception
    (refusal,) = app.error
    assert "its cls.predictions.bias contains NaN or infinity" in refusal.value.replace("\\", "")
    assert not app.get("plotly_chart")
    assert not any(chip["note"] for chip in editor(app)["tokens"])
    for view in ("Plausibility", "Two sentences", "Two checkpoints", "History"):
        app.segmented_control(key="view").set_value(view).run()
        assert not app.exception, view


def test_two_checkpoints_answer_the_same_masks_side_by_side(open_app: Open, second: str) -> None:
    text = "the [MASK] of england."
    app = open_app("masked_lm", text=text, masks="4", view="Two checkpoints", other=second, k="5")
    assert not app.error
    tables = [each.value for each in app.dataframe if "rank_there" in each.value.columns]
    masks = predicted(app, text=text, masks=(4,), k=5).masks
    assert len(tables) == len(masks) == 2
    for table, mask in zip(tables, masks, strict=True):
        here = table.dropna(subset=["here"])
        assert here["here"].tolist() == mask.predictions["probability"].tolist()
        # The same weights under another name: the same numbers, but for the renamed token.
        there = here["token"].map(lambda token: "qqq" if token == "france" else token)
        assert here[here["token"] == there]["there"].tolist() == pytest.approx(
            here[here["token"] == there]["here"].tolist(), rel=1e-4
        )
    assert "of the 5 tokens" in said(app)


def test_a_click_on_what_is_no_token_there_is_said(open_app: Open, second: str) -> None:
    text = "the city of france."
    app = open_app("masked_lm", text=text, masks="4", view="Two checkpoints", other=second, k="5")
    assert not app.error
    assert "splits this text into different tokens" in "\n".join(each.value for each in app.info)
    (table,) = [each.value for each in app.dataframe if "rank_there" in each.value.columns]
    shared = table[table["token"] != "france"].dropna()
    assert len(shared)  # the same weights see the same sentence, with one mask for the word
    assert shared["there"].tolist() == pytest.approx(shared["here"].tolist(), rel=1e-4)
