"""A link that names a folder or a hub model opens nothing until it is confirmed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS, RUNS
from inspector.serving import place
from inspector.serving.settings import serving
from inspector.settings import settings
from inspector.store.reference import CheckpointRef
from pages._ui import running
from tests.app.looking import button, marked, metrics, said

Open = Callable[..., AppTest]
QUESTION = "This link opens"


@pytest.fixture
def opened(roots: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the engine was asked to open, in order."""
    shutil.copytree(DEMOS["demo-gpt2"].folder, roots / "ours")
    asked: list[str] = []
    engine = running.engine()
    open_ = engine.open

    def noted(reference: CheckpointRef):
        asked.append(str(reference))
        return open_(reference)

    monkeypatch.setattr(engine, "open", noted)
    return asked


@pytest.mark.parametrize("reference", ["path:ours", "hub:org/name", "hub:name"])
@pytest.mark.parametrize("slug", ["overview", "tour", "server"])
def test_a_link_asks_before_anything_is_opened(slug: str, reference: str, opened: list[str], open_app: Open) -> None:
    app = open_app(slug, checkpoint=reference)
    assert not app.exception
    assert not app.error
    assert QUESTION in said(app)
    assert [each.value for each in app.code] == [reference.partition(":")[2]]
    assert opened == []
    app.run()
    assert opened == []


@pytest.mark.parametrize("reference", ["path:/etc", "path:../..", "path:ours/no-such-folder"])
def test_a_path_that_is_not_open_is_refused_without_a_question(
    reference: str, opened: list[str], open_app: Open
) -> None:
    app = open_app("overview", checkpoint=reference)
    assert QUESTION not in said(app)
    assert "This path cannot be opened here" in app.error[0].value


def test_where_every_folder_is_open_each_link_asks(
    opened: list[str], open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INSPECTOR_ROOTS")
    settings.cache_clear()
    app = open_app("overview", checkpoint="path:/no/such/folder")
    assert QUESTION in said(app)
    assert opened == []


def test_one_click_opens_it_and_nothing_is_asked_again(opened: list[str], open_app: Open) -> None:
    app = open_app("overview", checkpoint="path:ours")
    button(app, "Open these files").click().run()
    assert opened == ["path:ours"]
    assert QUESTION not in said(app)
    assert metrics(app)["Parameters"]
    app.switch_page("pages/sharing.py").run()
    assert QUESTION not in said(app)
    app.selectbox(key="picked").set_value("demo-bert").run()
    app.query_params["checkpoint"] = "path:ours"  # as the way back does
    app.run()
    assert QUESTION not in said(app)


def test_the_demo_can_be_opened_instead(opened: list[str], open_app: Open) -> None:
    app = open_app("overview", checkpoint="hub:org/name")
    button(app, "Open demo-bert instead").click().run()
    assert "demo-bert" in said(app)
    assert opened == ["demo-bert"]
    assert app.query_params["checkpoint"] in ("demo-bert", ["demo-bert"])


def test_what_is_typed_is_opened_at_once(opened: list[str], open_app: Open) -> None:
    app = open_app("overview")
    app.segmented_control(key="way").set_value("Path").run()
    app.text_input(key="path typed").set_value("ours")
    button(app, "Open").click().run()  # of the form
    assert opened[-1] == "path:ours"
    assert QUESTION not in said(app)
    assert not app.error


def test_a_demo_and_what_is_no_reference_are_not_asked_about(opened: list[str], open_app: Open) -> None:
    assert QUESTION not in said(open_app("overview", checkpoint="demo-gpt2"))
    app = open_app("overview", checkpoint="nonsense")
    assert QUESTION not in said(app)
    assert "does not name a checkpoint" in app.error[0].value
    assert opened == ["demo-gpt2"]


def test_on_ones_own_machine_a_link_to_any_folder_asks(open_app: Open) -> None:
    app = open_app("overview", checkpoint="path:/etc")
    assert QUESTION in said(app)
    assert not app.error


def test_where_folders_are_closed_the_refusal_comes_at_once(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "serves_others", lambda: True)
    running.started.clear()
    app = open_app("overview", checkpoint="path:/etc")
    assert QUESTION not in said(app)
    assert "cannot be opened here" in app.error[0].value
    running.engine().close()
    running.started.clear()


def test_what_the_server_was_started_with_opens_at_once(
    opened: list[str], roots: Path, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECTOR_OPEN", f"path:{roots / 'ours'}")
    serving.cache_clear()
    app = open_app("overview")
    assert opened == [f"path:{roots / 'ours'}"]
    assert QUESTION not in said(app)
    assert metrics(app)["Parameters"]
    assert QUESTION not in said(open_app("sharing", checkpoint=f"path:{roots / 'ours'}"))
    assert QUESTION in said(open_app("overview", checkpoint=f"path:{roots}"))
    monkeypatch.undo()
    serving.cache_clear()


def test_a_server_that_was_started_with_nonsense_says_so(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECTOR_OPEN", "/models/bert")
    serving.cache_clear()
    app = open_app("overview")
    assert "does not name a checkpoint" in app.error[0].value
    assert button(app, "Open demo-bert")
    monkeypatch.undo()
    serving.cache_clear()


@pytest.mark.parametrize(
    ("name", "why"), [("empty", "There are no checkpoint files here"), ("note.txt", "is not a checkpoint")]
)
def test_a_server_that_was_started_with_what_is_no_checkpoint_says_so(
    name: str, why: str, tmp_path: Path, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("hello")
    monkeypatch.setenv("INSPECTOR_OPEN", f"path:{tmp_path / name}")
    serving.cache_clear()
    app = open_app("overview")
    assert why in app.error[0].value
    assert button(app, "Open demo-bert")
    monkeypatch.undo()
    serving.cache_clear()


@pytest.mark.parametrize("name", ["[click](http:\u200b//x) <b>`x`", "a\u202egpj.b", "ours\x1b[31m"])
def test_the_name_is_shown_as_it_is(name: str, roots: Path, opened: list[str], open_app: Open) -> None:
    (roots / name).mkdir(parents=True)
    app = open_app("overview", checkpoint=f"path:{name}")
    assert QUESTION in said(app)
    (shown,) = (each.value for each in app.code)
    assert not re.search("[\x00-\x1f\u202a-\u202e]", shown)
    assert "http" not in marked(app)
    assert opened == []


@pytest.mark.parametrize("reference", ["path:ours", "hub:org/name"])
@pytest.mark.parametrize(
    ("slug", "query"), [("compare", {}), ("masked_lm", {"view": "Two checkpoints", "text": "a [MASK]."})]
)
def test_a_second_checkpoint_is_asked_about_too(
    slug: str, query: dict[str, str], reference: str, opened: list[str], open_app: Open
) -> None:
    app = open_app(slug, checkpoint="demo-bert", other=reference, **query)
    assert QUESTION in said(app)
    assert opened == ["demo-bert"]


def test_a_run_by_path_is_asked_about(roots: Path, opened: list[str], open_app: Open) -> None:
    for demo in list(RUNS["demo-run"].values())[:2]:
        shutil.copytree(demo.folder, roots / "mine" / demo.folder.name)
    app = open_app("snapshots", checkpoint="demo-bert", run="path:mine")
    assert QUESTION in said(app)
    assert opened == ["demo-bert"]
