"""A view shows the question that was really asked, not the one with default options."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

import inspector as ci
from inspector.api import Answer
from inspector.catalog import CATALOG
from inspector.errors import NotInCheckpointError
from inspector.plotting.theme import LIGHT
from inspector.view.blocks import Bullets, Code, Facts, Sentence
from inspector.view.view import Headline

TEXT = "the capital and largest city of [MASK]."
TWO = "the [MASK] of [MASK]."
ROOMS = sorted({analysis.room for analysis in CATALOG.values() if find_spec(f"{analysis.room}.view")})


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSPECTOR_HOME", str(tmp_path_factory.mktemp("home")))
        yield


def layout(figure: go.Figure) -> dict[str, Any]:
    return figure.to_dict()["layout"]


def read(answer: Answer) -> str:
    """Everything that a view says: its sentences, titles of tables, and titles of figures."""
    view = answer.view()
    assert view is not None
    said = [table.title for table in view.tables]
    for figure in view.figures:
        title = layout(figure.draw(LIGHT))["title"]
        said += [title["text"], title.get("subtitle", {}).get("text", "")]
    for element in view.elements():
        match element:
            case Headline() | Sentence() | Code():
                said.append(element.text)
            case Bullets():
                said += element.items
            case Facts():
                said += [f"{name}: {value}" for name, value in element.pairs.items()]
            case _:
                pass
    return "\n".join(said)


@pytest.mark.parametrize(
    ("checkpoint", "verb", "given", "expected"),
    [
        ("demo-bert", "training", {"steps": 123}, "123 updates"),
        ("demo-bert", "training", {"cycles": 3}, "3 cosine cycles"),
        ("demo-bert", "training", {"cycles": 3}, "3 half waves here"),
        ("demo-bert", "training", {"power": 2.5}, "power 2.5"),
        ("demo-bert", "training", {"learning_rate": 0.002}, "highest rate 0.002"),
        ("demo-bert", "training", {"warmup_steps": 17}, "17 updates"),
        ("demo-bert", "training", {"weight_decay": 0.07}, "weight decay 0.07"),
        ("demo-bert", "lens", {"text": TEXT, "k": 2}, "2 per step"),
        ("demo-bert", "lens", {"text": TEXT, "pins": ("france",)}, "Ranks of the pinned tokens"),
        ("demo-bert", "lens", {"text": TEXT}, f"The text: {TEXT}"),
        ("demo-bert", "predict", {"text": TWO}, "from left to right"),
        ("demo-bert", "predict", {"text": TWO, "order": "sure"}, "the most confident mask first"),
        ("demo-bert", "predict", {"text": TEXT, "targets": ("france", "italy")}, "The words compared"),
        ("demo-bert", "plausibility", {"text": "a large city.", "by": "word"}, "with the rest of its word"),
        ("demo-bert", "heads", {"text": "a b.", "pair": "my own second text."}, "Second text: my own second text."),
        ("demo-gpt2", "heads", {"text": "the river", "new_tokens": 3}, "it has reached 3 new tokens"),
        ("demo-gpt2", "heads", {"text": "the river", "temperature": 1.0}, "sampled with the seed"),
        ("demo-gpt2", "heads", {"text": "my own text"}, "Text: my own text"),
        ("demo-bert", "embeddings", {"token": "france"}, "Nearest to france (id "),
        ("demo-bert", "project", {"method": "umap"}, "UMAP of demo-bert"),
        ("demo-bert", "padding", {"text": "a dog.\nthe city."}, "One ordinary backward pass"),
    ],
)
def test_a_view_shows_what_was_asked(checkpoint: str, verb: str, given: dict[str, Any], expected: str) -> None:
    if verb == "training" and "warmup_steps" in given:
        notes = layout(ci.open(checkpoint).ask(verb, **given).figure())["annotations"]
        assert [note["text"] for note in notes] == [f"warm-up: {expected}"]
        return
    assert expected in read(ci.open(checkpoint).ask(verb, **given))


@pytest.mark.parametrize("room", ROOMS)
def test_a_view_makes_no_question_of_its_own(room: str) -> None:
    """Only what a report asks is made in a view's file: in SECTION, and in functions that take the report's context."""
    tree = ast.parse(Path(inspect.getfile(import_module(f"{room}.view"))).read_text("utf-8"))
    asking = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        or (isinstance(node, ast.FunctionDef) and [each.arg for each in node.args.args] == ["context"])
    ]
    showing = [node for node in tree.body if node not in asking]
    made = {
        node.func.id
        for part in showing
        for node in ast.walk(part)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not [name for name in made if name.endswith("Request") or name == "request_of"]
    names = [argument.arg for part in showing if isinstance(part, ast.FunctionDef) and part.name == "view"
             for argument in (*part.args.args, *part.args.kwonlyargs)]  # fmt: skip
    assert names[1:] == ["request", "name"]


def test_an_answer_without_a_figure_is_not_a_question_without_one() -> None:
    bert, gpt2 = ci.open("demo-bert"), ci.open("demo-gpt2")
    with pytest.raises(NotInCheckpointError, match="This answer of heads has no figure"):
        bert.heads("a [MASK].", head="masked_lm").figure()
    assert "demo-gpt2" in layout(gpt2.heads("the river").figure())["title"]["text"]
