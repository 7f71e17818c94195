"""The page about the model's classes, with the real engine."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest
from tokenizers import Tokenizer
from transformers import BertConfig, BertForPreTraining

from inspector.demo import DEMOS
from pages._classes.parts import offered
from tests.app.looking import said

Open = Callable[..., AppTest]
TEXT = "the city of london."


def demo_model() -> BertForPreTraining:
    return BertForPreTraining(BertConfig.from_pretrained(DEMOS["demo-bert"].folder))


def test_counts_are_the_models_own(open_app: Open) -> None:
    app = open_app("classes", text=TEXT)
    assert not app.exception
    model = demo_model()
    modules, classes = len(list(model.modules())), len({type(m) for m in model.modules()})
    counted = f"{modules} modules of {classes} classes, {model.num_parameters() / 1e6:.1f}M parameters; 4 of "
    assert counted in said(app)


def test_the_tree_is_text_that_can_be_copied(open_app: Open) -> None:
    (tree,) = [c.value for c in open_app("classes", text=TEXT).code if "all alike" in c.value]
    layers = demo_model().config.num_hidden_layers
    assert f"[0–{layers - 1}]: {layers} × BertLayer, all alike" in tree


def test_siblings_say_what_would_be_random(open_app: Open) -> None:
    rows = said(open_app("classes")).splitlines()
    (masked,) = [row for row in rows if row.startswith("| BertForMaskedLM |")]
    assert "present" in masked
    (answers,) = [row for row in rows if row.startswith("| BertForQuestionAnswering |")]
    assert "absent" in answers
    assert "a loader would fill them with random numbers" in answers.replace("\\", "")


def test_one_module_stands_in_the_link(open_app: Open) -> None:
    name = "bert.encoder.layer.1"
    app = open_app("classes", text=TEXT, module=name)
    assert app.selectbox(key="module").value == name
    assert app.session_state["tab"] == "One module"  # the link opens the tab that has its field
    (inner,) = (table.value for table in app.dataframe)
    wanted = dict(demo_model().get_submodule(name).named_modules())
    assert inner["name"].tolist()[1:] == list(wanted)[1:]
    assert inner["class"].tolist() == [type(m).__name__ for m in wanted.values()]


def test_modules_are_found_as_they_are_typed(open_app: Open) -> None:
    app = open_app("classes", text=TEXT, find="LayerNorm")
    (every,) = (table.value for table in app.dataframe)
    wanted = [name for name, _ in demo_model().named_modules() if "LayerNorm" in name]
    assert every["name"].tolist() == wanted
    app.text_input(key="find").set_value("no such module").run()
    assert any("No row matches" in info.value for info in app.info)


def test_every_field_has_its_shape(open_app: Open) -> None:
    page = said(open_app("classes", text=TEXT))
    config = demo_model().config
    assert "It returns BertForPreTrainingOutput (" in page
    tokenizer = Tokenizer.from_file(str(DEMOS["demo-bert"].folder / "tokenizer.json"))
    positions = len(tokenizer.encode(TEXT).ids)
    assert f"batch 1 × positions {positions} × vocab {config.vocab_size:,}" in page
    assert "| loss | – | None here: pass labels=… and next_sentence_label=… " in page


def test_too_long_a_text_leaves_the_rest_of_the_page(open_app: Open) -> None:
    app = open_app("classes", text="a " * 500)
    assert not app.exception
    assert "There is no output to show" in app.warning[0].value
    assert "modules of" in said(app)


def test_the_view_has_its_command_line(open_app: Open) -> None:
    app = open_app("classes", text=TEXT)
    assert f"python -m inspector classes demo-bert '--text={TEXT}'" in [c.value for c in app.code]


def test_of_very_many_modules_the_first_of_each_pattern_is_offered() -> None:
    names = ["the model itself", *(f"h.{layer}.experts.{n}" for layer in range(30) for n in range(100))]
    assert offered(names[:5], "") == names[:5]
    assert offered(names, "") == ["the model itself", "h.0.experts.0"]
    assert offered(names, "h.7.experts.3") == ["the model itself", "h.0.experts.0", "h.7.experts.3"]
    assert offered(names, "h.x") == ["the model itself", "h.0.experts.0"]
