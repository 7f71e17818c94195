"""While the browser sends files it ticks; a tick loses nothing."""

from __future__ import annotations

import zipfile
from pathlib import Path

from playwright.sync_api import Page, expect

from inspector.catalog import PAGES
from inspector.demo import DEMOS
from inspector.serving.trial import ROOT, Server
from tests.browser.looking import expect_calm, expect_page, go_to
from tests.browser.test_under_way import FILES

SPINNER = '<i data-testid="stFileChipIconSpinner"></i>'  # Streamlit's, beside a file that the browser sends
LOAD = """async source => {
    const { default: mount } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    window.mount = arriving => mount({ data: { arriving }, setTriggerValue: (_, sends) => window.ticks.push(sends) });
}"""
ALWAYS = f"""{{
    const set = window.setInterval;
    window.setInterval = (call, every, ...more) => set(call, every === 1000 ? 40 : every, ...more);
    addEventListener("DOMContentLoaded", () => document.body.insertAdjacentHTML("beforeend", '{SPINNER}'));
}}"""  # ticks come far more often, and leave a busy machine time for the upload


def test_the_browser_ticks_until_the_server_knows_that_nothing_comes(page: Page) -> None:
    script = (ROOT / "pages" / "_ui" / "opening" / "under_way.js").read_text(encoding="utf-8")
    page.clock.install()
    page.goto("about:blank")
    page.evaluate(LOAD, script)

    def ticks(arriving: bool, sends: bool) -> list[bool]:
        """What two and a half seconds bring, after the server has said what it knows."""
        page.evaluate("html => document.body.innerHTML = html", SPINNER if sends else "")
        page.evaluate("arriving => { window.ticks = []; window.mount(arriving) }", arriving)
        page.clock.run_for(2500)
        return page.evaluate("window.ticks")

    assert ticks(arriving=False, sends=False) == []
    assert ticks(arriving=False, sends=True) == [True, True]
    assert ticks(arriving=True, sends=True) == [True, True]  # one timer, however often it is mounted
    assert ticks(arriving=True, sends=False) == [False, False]  # canceled, which the server does not know yet
    assert ticks(arriving=False, sends=False) == []
    assert ticks(arriving=False, sends=True) == [True, True]
    assert ticks(arriving=False, sends=False) == [False]  # all are there: once more


def test_nothing_is_lost_to_a_tick(page: Page, server: Server, tmp_path: Path) -> None:
    """Streamlit sends as one what changes within a millisecond."""
    page.add_init_script(ALWAYS)
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    refused = page.get_by_test_id("stAlert").filter(has_text="no weights")
    given = page.get_by_test_id("stSidebar").locator("input[type=file]")
    page.get_by_test_id("stSidebar").get_by_text("Open your own").click()
    for number in range(4):
        broken = tmp_path / f"broken{number}.zip"
        with zipfile.ZipFile(broken, "w") as archive:
            archive.writestr("config.json", "{}")
        expect(given).to_have_count(1)
        given.set_input_files(str(broken))
        expect(refused).to_be_visible()
        page.get_by_role("button", name="Dismiss").click()
        expect(refused).to_have_count(0)
    good = tmp_path / "good.zip"
    with zipfile.ZipFile(good, "w") as archive:
        for name in FILES:
            archive.write(DEMOS["demo-gpt2"].folder / name, name)
        archive.writestr("vocab.txt", "good")  # or it would be known, by the name that another test gave it
    expect(given).to_have_count(1)
    given.set_input_files(str(good))
    expect(page.get_by_test_id("stMain").get_by_text("good", exact=True).first).to_be_visible()
    for slug in ("sharing", "training", "classes", "overview"):
        go_to(page, slug)
        expect(page.get_by_role("heading", name=PAGES[slug].title, level=1)).to_be_visible()
        expect(page.get_by_test_id("stMain").get_by_text("good", exact=True).first).to_be_visible()
    page.get_by_test_id("stFileChipIconSpinner").evaluate("spinner => spinner.remove()")
    expect_calm(page)
