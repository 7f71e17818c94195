"""The library gives what the command line gives, and draws what the pages draw."""

from __future__ import annotations

import gc
import inspect
import io
import itertools
import json
import pickle  # noqa: TID251 - as people keep answers
from pathlib import Path
from typing import Any, assert_type

import nbformat
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pyarrow.parquet as pq
import pytest
import torch
from tqdm import tqdm

import inspector as ci
from inspector import browser
from inspector.api import Checkpoint
from inspector.catalog import CATALOG, request_of
from inspector.demo import DEMOS
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.request import defaults, options
from tests.families import random_model
from tests.merges import write_merge, write_mixture
from tools.questions import ALIASES, FILE, source

NOTEBOOK = Path(__file__).parents[1] / "docs" / "library.ipynb"
TEXT = "the capital and largest city of [MASK]."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory):
    from inspector.settings import settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSPECTOR_HOME", str(tmp_path_factory.mktemp("home")))
        settings.cache_clear()
        yield
        settings.cache_clear()


@pytest.fixture(scope="module")
def demo(home) -> Checkpoint:
    return ci.open("demo-bert")


def test_every_verb_is_a_method_with_the_options_of_its_request():
    for name, verb in ({verb.replace("-", "_"): verb for verb in CATALOG} | ALIASES).items():
        method, known = getattr(Checkpoint, name), options(request_of(verb))
        taken = inspect.signature(method).parameters
        assert set(taken) == {"self", *known}
        given = {
            each: parameter.default for each, parameter in taken.items() if parameter.default is not parameter.empty
        }
        assert given == defaults(request_of(verb))
        assert CATALOG[verb].question in (method.__doc__ or "")
        assert all(f"{name}: " in (method.__doc__ or "") for name in known)


def test_the_methods_are_those_that_the_catalog_gives():
    assert FILE.read_text("utf-8") == source(), "run python -m tools.questions"


def test_editors_know_what_a_method_returns(home):
    """The type checker runs on this file, too."""
    opened = assert_type(ci.open("demo-bert"), Checkpoint)
    assert_type(opened.lens(TEXT, k=2).cells, pd.DataFrame)
    assert_type(opened.overview().unique_parameters, int)
    assert_type(opened.overview().to_frame(), pd.DataFrame)


def test_a_lens_is_the_models_own(demo):
    lens = demo.lens(TEXT, k=3)
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = DEMOS["demo-bert"].folder
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    given = AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")
    with torch.no_grad():
        logits = model(**given).logits[0]
    frame = lens.to_frame()
    last = frame[(frame["layer"] == frame["layer"].max()) & (frame["rung"] == lens.rungs[-1])]
    for position, rows in last.groupby("position"):
        wanted = torch.topk(logits[int(position)], 3)
        assert rows.sort_values("rank")["token_id"].tolist() == wanted.indices.tolist()
        np.testing.assert_allclose(rows.sort_values("rank")["score"], wanted.values.numpy(), rtol=1e-3, atol=1e-3)


def test_a_result_is_json_a_table_a_figure_and_html(demo):
    lens = demo.lens(TEXT, k=3)
    plain = lens.to_json()
    json.dumps(plain, allow_nan=False)
    assert plain["tokens"] == list(lens.tokens)
    assert isinstance(lens.to_frame("states"), pd.DataFrame)
    assert demo.name in str(lens.figure().layout.title.text)
    html = lens._repr_html_()
    assert "<h4>Logit lens: demo-bert</h4>" in html
    assert "plotly" in html


@pytest.mark.parametrize("amd", [False, True])
def test_a_cell_that_is_exported_alone_draws_its_figures(demo, tmp_path, amd):
    """Whatever was shown before in the process; with require.js on the page, too, as in exported notebooks."""
    demo.sharing()._repr_html_()
    answer = demo.lens(TEXT, k=3)
    define = "<script>window.define = () => null; define.amd = {}</script>" if amd else ""
    page = tmp_path / "cell.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8>{define}{answer._repr_html_()}", "utf-8")
    drawn = "document.querySelectorAll('.plotly-graph-div .main-svg').length >= 2"

    async def look() -> str:
        async with browser.Chromium() as chromium:
            tab = await chromium.tab()
            await tab.offline()
            await tab.go(page.as_uri())
            await tab.until(drawn)
            return await tab.value("document.querySelector('.gtitle').textContent")

    assert "Top tokens of demo-bert" in browser.run(look())
    assert len(page.read_bytes()) < 3_000_000


@pytest.mark.parametrize("verb", ["plausibility", "contrast", "ladder", "project"])
def test_rooms_without_a_section_draw_their_main_figure(demo, verb):
    given = {
        "plausibility": {"text": TEXT},
        "contrast": {"first": TEXT, "second": "the king of [MASK]."},
        "ladder": {"text": TEXT},
        "project": {},
    }[verb]
    answer = demo.ask(verb, **given)
    assert isinstance(answer.figure(), go.Figure)
    assert "plotly" in answer._repr_html_()


def test_what_has_no_figure_says_so_and_shows_a_table(demo):
    with pytest.raises(NotInCheckpointError, match="This answer of placement has no figure"):
        demo.placement().figure()
    assert "<table>" in demo.placement()._repr_html_()


def test_two_checkpoints_are_compared_by_object_or_by_name(demo):
    other = ci.open("demo-gpt2")
    assert demo.compare(other).to_json() == demo.compare("demo-gpt2").to_json()
    assert demo.compare(demo).result.other_name == "demo-bert"
    assert "Compare: demo-bert" in demo.compare(other)._repr_html_()


def test_tqdm_shows_how_far_a_question_is(demo, monkeypatch):
    told: list[tuple[str, float]] = []

    class Bar(tqdm):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "disable": False, "file": io.StringIO()})

        def update(self, n: float | None = 1) -> bool | None:
            told.append((self.desc, n or 0))
            return super().update(n)

    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    demo.lens("another text with a [MASK].", k=2)
    assert len({text for text, _ in told}) > 1
    assert all(step >= 0 for _, step in told)
    assert 0 < sum(step for _, step in told) <= 1


def test_a_mistake_is_one_sentence(demo):
    with pytest.raises(RequestError, match="must be between"):
        demo.lens(TEXT, k=0)
    with pytest.raises(RequestError, match=r"^lens: got an unexpected keyword argument 'top'. Its options: text, k"):
        demo.lens(TEXT, top=3)
    with pytest.raises(RequestError, match=r"^lens has no option 'top'. Its options: text, k"):
        demo.ask("lens", text=TEXT, top=3)
    with pytest.raises(RequestError, match="Did you mean sharing"):
        demo.ask("sharring")
    with pytest.raises(RequestError, match="There is no theme 'blue': give light or dark"):
        demo.sharing().figure("blue")
    with pytest.raises(CheckpointError, match="no-such-checkpoint"):
        ci.open("./no-such-checkpoint")


@pytest.mark.parametrize("name", ["BertForMaskedLM", "GPT2LMHeadModel"])
def test_a_live_model_is_asked_the_same(home, name):
    model = random_model(name)
    wrapped = ci.wrap(model)
    assert wrapped.sharing().to_json() == ci_sharing(model)
    assert wrapped.overview().unique_parameters == sum(p.numel() for p in model.parameters())
    assert wrapped.name == name


def disk(folder: Path) -> dict[str, bytes | None]:
    """All that a folder holds; None: a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "name", ["{run}", "{run}/", "../runs/mine", "..", ".", "org/model", "~", "/", "a\0b", "x" * 5_000, "{notes}"]
)
def test_the_name_of_a_live_model_never_becomes_a_path(home, tmp_path, monkeypatch, name):
    """People write `name=model.name_or_path`, which is where their checkpoint lies."""
    scratch, runs = tmp_path / "scratch", tmp_path / "runs"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.chdir(tmp_path)
    saved = random_model("DistilBertForMaskedLM", seed=0)
    saved.save_pretrained(runs / "mine")
    (runs / "notes.txt").write_text("kept")
    before = disk(tmp_path)

    live = random_model("DistilBertForMaskedLM", seed=1)
    name = name.format(run=runs / "mine", notes=runs / "notes.txt")
    wrapped = ci.wrap(live, name=name)
    assert wrapped.name == name
    norm = live.get_input_embeddings().weight[0].norm().item()
    assert wrapped.padding().norm == pytest.approx(norm, rel=1e-5)
    assert {path: data for path, data in disk(tmp_path).items() if not path.startswith("scratch/")} == before
    del wrapped
    gc.collect()
    assert disk(tmp_path) == before


WRONG = [
    None,
    "x",
    3,
    2.5,
    True,
    b"x",
    ["x"],
    [1],
    {"a": 1},
    {1},
    object(),
    torch.float16,
    torch.zeros(2),
    Path("x"),
    -1,
]


@pytest.mark.parametrize("verb", CATALOG)
def test_a_value_of_a_wrong_type_is_refused_in_one_sentence(demo, verb):
    """Or taken: whatever is wrong with it, no error comes from the inside."""
    known = options(request_of(verb))
    refused = 0
    for name, value in itertools.product(known, WRONG):
        try:
            request_of(verb)(**{each: "x" for each in known if each not in defaults(request_of(verb))} | {name: value})
        except RequestError:
            refused += 1
    assert refused >= 3 * len(known)


def test_values_are_taken_as_people_have_them(demo):
    request: Any = request_of("lens")
    made = request(text="a", k=np.int64(3), layers="0-1", pins="dog", dtype=torch.float16, device=torch.device("cpu"))
    assert made == request(text="a", k=3, layers=(0, 1), pins=("dog",), dtype="float16", device="cpu")
    assert request(text="a", layers=[1, np.int8(2)], pins=["b,c"]) == request(text="a", layers=(1, 2), pins=("b,c",))
    for wrong in ({"k": "3"}, {"k": True}, {"text": None}, {"text": ["a"]}, {"layers": [1.5]}, {"layers": "one"}):
        with pytest.raises(RequestError):
            demo.lens(**({"text": TEXT} | wrong))
    for refused in (demo.compare, lambda: demo.compare(random_model("BertModel")), lambda: demo.embeddings(["dog"])):
        with pytest.raises(RequestError):
            refused()


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (None, "wrap takes a model"),
        (torch.nn.ReLU(), "ReLU has neither parameters nor buffers"),
        ({"a.weight": torch.zeros(1)}, "load a state dict into its model first"),
        (torch.nn.DataParallel(random_model("BertModel")), "which is its .module"),
        (type("PeftModel", (torch.nn.Module,), {"merge_and_unload": None})(), r"wrap model\.merge_and_unload\(\)"),
    ],
)
def test_what_is_no_model_of_its_own_is_refused(model, sentence):
    with pytest.raises(RequestError, match=sentence):
        ci.wrap(model)


def test_a_wrapped_model_is_of_one_moment(home):
    model = random_model("BertForMaskedLM")
    row = model.get_input_embeddings().weight
    wrapped = ci.wrap(model)
    assert "snapshot" in repr(wrapped)
    before, shared = wrapped.padding(), wrapped.sharing().to_json()
    with torch.no_grad():
        row[0].mul_(3)
        model.cls.predictions.decoder.weight = torch.nn.Parameter(row.detach().clone())
    with pytest.warns(UserWarning, match=r"have changed since it was wrapped: call refresh\(\)"):
        assert wrapped.padding().norm == before.norm
    with pytest.warns(UserWarning, match="refresh"):
        assert wrapped.sharing().to_json() == shared
    wrapped.refresh()
    assert wrapped.padding().norm == pytest.approx(row[0].norm().item(), rel=1e-5)
    assert wrapped.sharing().to_json() == ci_sharing(model) != shared


@pytest.mark.parametrize("verb", CATALOG)
def test_an_answer_can_be_kept(home, verb, monkeypatch, tmp_path):
    """As its result and name, in a process that has neither the checkpoint nor its model."""
    options = {
        "compare": {"other": "demo-gpt2"}, "base": {"other": "demo-gpt2"},
        "contrast": {"first": TEXT, "second": f"{TEXT} b"},
        "lens": {"text": TEXT},
        "ladder": {"text": TEXT}, "tokenize": {"texts": [TEXT]}, "predict": {"text": TEXT},
        "plausibility": {"text": "a b"},
        "similarity": {"texts": [TEXT, "a b"], "pooling": "mean"},
        "heads": {"text": TEXT, "pair": "a b"}, "pretrain": {"text": TEXT},
    }  # fmt: skip
    if verb == "verify-merge":
        adapter, merged = write_merge(DEMOS["demo-bert"].folder, tmp_path)
        options[verb] = {"adapter": str(adapter), "merged": str(merged)}
    name = "demo-bert"
    if verb == "adapter":
        name = write_merge(DEMOS[name].folder, tmp_path)[0].name
    if verb == "experts":
        name = write_mixture(tmp_path).name
    checkpoint = ci.open("demo-bert" if name == "demo-bert" else tmp_path / name)
    answer = checkpoint.ask(verb, **options.get(verb, {}))
    expected, page = answer.to_json(), answer._repr_html_()
    kept = pickle.dumps(answer)
    assert len(kept) < 3_000_000  # the model has 5.6 MB
    del checkpoint, answer
    again = pickle.loads(kept)
    assert again.to_json() == expected
    assert repr(again).endswith(f"of {name}")
    assert len(again._repr_html_()) == pytest.approx(len(page), rel=0.01)
    assert all(len(again.to_frame(name).columns) for name in again.tables)


def test_a_frame_is_the_table_that_answers(demo):
    predicted = demo.predict("[MASK] is the [MASK].", k=3)
    frame = predicted.to_frame()
    assert list(frame)[:4] == ["position", "rank", "token", "token_id"]
    assert frame["position"].tolist() == [each.position for each in predicted.masks for _ in range(3)]
    assert frame["rank"].tolist() == [0, 1, 2, 0, 1, 2]
    assert frame["probability"].iloc[3] == predicted.masks[1].predictions["probability"].iloc[0]
    assert {"x", "y", "token"} <= {*demo.project().to_frame()}
    assert {"name", "shape", "dtype"} <= {*demo.overview().to_frame()}
    assert demo.lens(TEXT, k=2).tables[:2] == ("cells", "pinned")


def test_a_live_model_that_cannot_be_saved_leaves_nothing(home, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    class Stuck(torch.nn.Linear):
        def save_pretrained(self, folder: Path) -> None:
            folder.mkdir()
            (folder / "half").write_bytes(b"x")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        ci.wrap(Stuck(2, 2))
    assert not list(tmp_path.iterdir())


def test_a_live_model_reads_by_the_tokenizer_that_comes_with_it(demo):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = DEMOS["demo-bert"].folder
    model = AutoModelForMaskedLM.from_pretrained(folder)
    wrapped = ci.wrap(model, AutoTokenizer.from_pretrained(folder), name="mine")
    assert wrapped.name == "mine"
    mine, theirs = (each.lens(TEXT, k=3) for each in (wrapped, demo))
    assert mine.tokens == theirs.tokens
    pd.testing.assert_frame_equal(mine.to_frame(), theirs.to_frame(), rtol=1e-4)


def test_a_table_that_is_saved_as_parquet_says_where_it_comes_from(demo, tmp_path):
    lens = demo.lens(TEXT, k=2)
    lens.to_frame().to_parquet(tmp_path / "cells.parquet")
    (said,) = (json.loads(value) for name, value in pq.read_schema(tmp_path / "cells.parquet").metadata.items()
               if name == b"PANDAS_ATTRS")  # fmt: skip
    assert pd.read_parquet(tmp_path / "cells.parquet").attrs == said
    assert said["Text"] == TEXT
    assert said["Fingerprint"] == demo.opened.fingerprint
    assert said["Command"].startswith("python -m inspector lens demo-bert")
    compared = demo.compare("demo-gpt2").to_frame().attrs
    assert compared["Compared with"].startswith("demo-gpt2, ")
    assert compared["Command"] == "python -m inspector compare demo-bert demo-gpt2"


def test_an_answer_has_the_tables_that_its_report_shows(demo):
    heads = demo.heads(TEXT, pair="the dog is an animal.", head="next_sentence")
    assert heads.tables == ("output",)
    assert heads.to_frame()["score"].tolist() == [heads.result.result.is_next, heads.result.result.not_next]
    assert set(heads.to_frame("output")["field"]) >= {"logits"}
    near = demo.embeddings(token="dog", k=3)
    assert len(near.to_frame()) == 3
    assert {"special", "health", "neighbors"} <= set(near.tables)
    assert demo.embeddings().to_frame()["token"].tolist() == near.to_frame("special")["token"].tolist()
    assert set(near.to_frame("health")["status"]) <= {"ok", "note", "warn", "fail"}
    padding = demo.padding()
    assert set(padding.to_frame("places")) >= {"place", "distance"}
    with pytest.raises(AttributeError):
        near.to_frame("nothing")


def test_a_model_that_was_wrapped_without_a_tokenizer_is_given_one_by_wrap(home):
    wrapped = ci.wrap(random_model("BertForMaskedLM"))
    with pytest.raises(NotInCheckpointError, match=r"pass tokenizer= to inspector\.wrap\(\)\.$"):
        wrapped.lens(TEXT)


def test_a_plain_module_is_asked_for_sharing_alone(home):
    first = torch.nn.Linear(3, 3)
    second = torch.nn.Linear(3, 3)
    second.weight = first.weight
    wrapped = ci.wrap(torch.nn.Sequential(first, second))
    (group,) = wrapped.sharing().groups
    assert group.names == ("0.weight", "1.weight")
    assert "Parameter sharing" in wrapped.sharing()._repr_html_()
    with pytest.raises(NotInCheckpointError, match="needs a transformers model"):
        wrapped.embeddings()


def test_the_notebook_runs(home):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    names: dict[str, object] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, str(NOTEBOOK), "exec"), names)
    assert {"checkpoint", "lens", "sharing"} <= names.keys()


def ci_sharing(model):
    from inspector.results.plain import to_json

    return to_json(ci.find_sharing(model))
