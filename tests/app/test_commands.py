"""Each command that a page prints is one that the command line takes, for a checkpoint from anywhere."""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from inspector.catalog import PAGES
from inspector.cli import child
from inspector.cli import main as cli
from inspector.demo import DEMOS, SNAPSHOTS
from inspector.program import command_line
from inspector.settings import settings
from inspector.store.origins.hub import versions_folder
from pages._ui import running
from tests.app.looking import button
from tests.conftest import answer_here

Open = Callable[..., AppTest]
BEGINNING = shlex.split(command_line(["VERB"]))[:-1]
AWKWARD = "it's a $HOME of café"  # a folder's name that a shell would take apart
MODEL = "org/tiny"
VERSION = "0123456789" * 4
TEXT = "a dog's [MASK] costs $5."
# What a page is asked besides its checkpoint, so that it prints all its commands.
ASKED: dict[str, dict[str, str]] = {
    "overview": {"find": "layer.0"},
    "lens": {"text": TEXT, "pins": "dog"},
    "masked_lm": {"text": TEXT, "second": "a cat's [MASK]."},
    "heads": {"text": TEXT, "pair": "it's a dog.", "texts": "it's one.\ntwo"},
    "embeddings": {"token": "dog"},
    "similarity": {"texts": "it's a dog.\na cat costs $5.", "pooling": "mean"},
    "compare": {"other": "demo-gpt2"},
    "padding": {"text": TEXT},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, _store: None) -> Iterator[Path]:
    """A machine with a folder of an awkward name, a model in the hub's cache, and no network."""
    folder = tmp_path_factory.mktemp("machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_CACHE", str(folder / "hub"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        shutil.copytree(DEMOS["demo-bert"].folder, folder / AWKWARD)
        shutil.copytree(DEMOS["demo-bert"].folder, versions_folder(MODEL) / VERSION)
        named = versions_folder(MODEL).parent / "refs" / "main"
        named.parent.mkdir()
        named.write_text(VERSION)
        running.started.clear()
        yield folder
        running.engine().close()
        running.started.clear()


@pytest.fixture
def typed(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Type a line into a shell in an empty folder; it must give an answer."""
    answer_here(monkeypatch, settings())
    monkeypatch.setattr(child, "download", lambda *_, **__: versions_folder(MODEL) / VERSION)

    def type_line(line: str) -> None:
        words = shlex.split(line)
        assert words[: len(BEGINNING)] == BEGINNING
        words, _, target = (list(part) for part in _split(words[len(BEGINNING) :]))
        with contextlib.chdir(tmp_path):
            done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 0, f"{line}\n{done.stderr}"
        if target:
            (tmp_path / target[0]).write_text(done.stdout)

    return type_line


def _split(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The words of a command, and the file to which its answer goes."""
    at = words.index(">") if ">" in words else len(words)
    return words[:at], words[at : at + 1], words[at + 1 :]


def printed(app: AppTest) -> list[str]:
    """The lines of a page that are commands."""
    assert not app.exception
    assert not app.error, [each.value for each in app.error]
    lines = [line for code in app.code for line in code.value.splitlines()]
    return [line for line in lines if line.startswith(shlex.join(BEGINNING))]


def upload(open_app: Open, folder: Path) -> str:
    """Upload a checkpoint; gives its reference."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    app = open_app("training")
    app.file_uploader[0].set_value(("tiny bert.zip", packed.getvalue(), "application/zip"))
    return app.run().query_params["checkpoint"]


@pytest.mark.parametrize(
    "kind", ["demo", *(pytest.param(kind, marks=pytest.mark.printed) for kind in ("upload", "path", "hub"))]
)
def test_every_command_of_every_page_gives_an_answer(
    open_app: Open, typed: Callable[[str], None], home: Path, kind: str
) -> None:
    reference = {"demo": "demo-bert", "path": f"path:{home / AWKWARD}", "hub": f"hub:{MODEL}"}.get(kind)
    reference = reference or upload(open_app, DEMOS["demo-bert"].folder)
    lines: dict[str, None] = {}
    for slug in [*PAGES, "report"]:
        if slug not in ("snapshots", "merge"):  # which have tests of their own
            found = printed(open_app(slug, checkpoint=reference, agreed=reference, **ASKED.get(slug, {})))
            assert found, f"{slug} prints no command"
            lines |= dict.fromkeys(found)
    for line in lines:
        typed(line)


@pytest.mark.usefixtures("home")
def test_a_pasted_address_opens_a_model_of_the_hub_and_the_link_names_its_commit(open_app: Open) -> None:
    app = open_app("overview")
    app.segmented_control(key="way").set_value("Hub").run()
    app.text_input(key="hub typed").set_value(f"https://huggingface.co/datasets/{MODEL}")
    button(app, "Open").click().run()
    assert "is not the address of a model on the hub" in app.error[0].value
    app.text_input(key="hub typed").set_value(f"https://huggingface.co/{MODEL}/blob/main/config.json")
    button(app, "Open").click().run()
    assert not app.error
    assert app.selectbox(key="picked").value == app.query_params["checkpoint"] == f"hub:{MODEL}@{VERSION}"
    assert f" {MODEL}@{VERSION}" in printed(app)[0]


@pytest.mark.printed
def test_the_commands_of_a_run_give_an_answer(open_app: Open, typed: Callable[[str], None], home: Path) -> None:
    folders = {demo.folder.name: demo.folder for demo in list(SNAPSHOTS.values())[:2]}
    run = home / "a run"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, folder in folders.items():
            shutil.copytree(folder, run / name)
            for file in folder.iterdir():
                archive.write(file, f"{name}/{file.name}")
    app = open_app("snapshots")
    (uploader,) = [each for each in app.file_uploader if each.label == "Archive of snapshots"]
    uploader.upload("my run.zip", packed.getvalue(), "application/zip").run()
    assert app.query_params["run"] == "uploads:my run"
    for reference in ("uploads:my run", f"path:{run}"):
        lines = [
            line
            for quantity in ("Drift", "Ties", "Checks")
            for line in printed(open_app("snapshots", run=reference, agreed=reference, quantity=quantity))
        ]
        assert len(lines) == 3
        for line in lines:
            typed(line)
