"""A base with an adapter on it: every page answers for both, and its link shows the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest

from inspector.catalog import CATALOG
from inspector.demo import ADAPTERS, DEMOS
from inspector.serving.storing.owners import Requester
from inspector.serving.storing.registry import write_upload
from inspector.serving.storing.room import reserve_upload
from inspector.settings import settings
from inspector.store.pairs import reference_of
from inspector.store.reference import CheckpointRef
from inspector.text import literal
from pages._ui import session, sign_in

Open = Callable[..., AppTest]
BASE, ADAPTER = "demo-gpt2", "demo-gpt2-adapter"
BOTH = reference_of(BASE, ADAPTER)
NAME = literal(f"{BASE} + {ADAPTER}")
PUT = "put on base"
ADA, EVE = Requester("a" * 64), Requester("e" * 64)


def offered(app: AppTest) -> list[str]:
    return [each.label for each in app.button if each.key == PUT]


def send(folder: Path, asker: Requester, name: str) -> str:
    """Upload a checkpoint as somebody's; its reference."""
    upload, place = reserve_upload(0, settings(), asker.owner)
    for path in folder.iterdir():
        if path.suffix in (".json", ".safetensors"):
            write_upload(place, f"{name}/{path.name}", path.read_bytes())
    return session.engine().open(CheckpointRef("incoming", upload)).result(120).reference


def test_an_adapter_is_put_on_its_base_and_taken_off_again(open_app: Open) -> None:
    app = open_app(checkpoint=ADAPTER)
    assert offered(app) == [f"Put it on {literal(BASE)}"]
    app = app.button(key=PUT).click().run()
    assert not app.exception
    assert not app.error
    assert (app.query_params["checkpoint"], app.selectbox(key="picked").value) == (BOTH, BOTH)
    assert any(f"**{NAME}**" in each.value for each in app.caption)
    assert not any("not a whole model" in each.value for each in app.warning)
    (alone,) = [each for each in app.button if each.label == "Adapter alone"]
    app = alone.click().run()
    assert app.query_params["checkpoint"] == ADAPTER


def test_it_is_put_on_the_base_that_was_chosen(open_app: Open) -> None:
    app = open_app(checkpoint=ADAPTER, base="demo-bert")
    assert offered(app) == ["Put it on demo\\-bert"]
    app = app.button(key=PUT).click().run()
    assert f"{literal(ADAPTER)} changes " in app.error[0].value
    assert literal("which demo-bert does not store") in app.error[0].value
    assert app.query_params["checkpoint"] == ADAPTER


@pytest.mark.parametrize("slug", sorted({each.slug for each in CATALOG.values()} - {"merge"}))
def test_every_page_answers_for_both(open_app: Open, slug: str) -> None:
    app = open_app(slug, checkpoint=BOTH)
    assert not app.exception
    assert not app.error, app.error[0].value
    assert slug == "snapshots" or any(f"**{NAME}**" in each.value for each in app.caption)
    commands = [line for code in app.code for line in code.value.splitlines() if f" {BASE} " in f"{line} "]
    assert commands or slug in ("compare", "similarity", "snapshots")
    assert all(f" {BASE} --adapter={ADAPTER}" in line for line in commands)


def test_both_are_compared_with_the_base_and_are_not_the_second_ones(open_app: Open) -> None:
    app = open_app("compare", checkpoint=BOTH, other=BASE)
    assert not app.error
    (line,) = [line for code in app.code for line in code.value.splitlines() if " compare " in line]
    assert f" {BASE} --adapter={ADAPTER} {BASE}" in line
    app = open_app("compare", checkpoint=BASE, other=BOTH)
    assert "cannot be the second one" in app.error[0].value
    app = open_app("merge", checkpoint=BOTH)
    assert "is on demo\\-gpt2 already" in app.info[0].value


def test_a_report_is_about_both(open_app: Open) -> None:
    app = open_app("report", checkpoint=BOTH, sections=["Overview", "Sharing"])
    app = next(each for each in app.button if each.label == "Create report").click().run()
    assert not app.error
    page = app.download_button[0]
    assert page.label.startswith("HTML")
    (line,) = [line for code in app.code for line in code.value.splitlines() if " report " in line]
    assert f" {BASE} --adapter={ADAPTER} " in line


def test_an_adapter_gives_nobody_the_base_of_another(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "gpt2-of-ada"
    base = send(DEMOS[BASE].folder, ADA, name)
    folder = tmp_path / "adapter"
    folder.mkdir()
    for path in ADAPTERS[ADAPTER].folder.iterdir():
        told = path.read_bytes().replace(b'"demo-gpt2"', f'"{name}"'.encode())
        (folder / path.name).write_bytes(told)
    assert load_file(folder / "adapter_model.safetensors")
    adapter = send(folder, EVE, "an adapter")
    monkeypatch.setattr(sign_in, "asker", lambda: EVE)
    app = open_app(checkpoint=adapter)
    assert not app.error
    assert not offered(app)
    app = open_app(checkpoint=reference_of(base[: len("upload:") + 12], adapter))
    assert "not one of yours" in app.error[0].value
    assert not any(name in each.value for each in app.caption)
    monkeypatch.setattr(sign_in, "asker", lambda: ADA)
    app = open_app(checkpoint=reference_of(base[: len("upload:") + 12], adapter))
    assert not app.error
    assert any(literal(f"{name} + ") in each.value for each in app.caption)
