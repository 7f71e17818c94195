"""Uploads that take a while: how much has arrived, and what their headers tell before the rest is here."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import CDPSession, Page, expect

from inspector.catalog import PAGES
from inspector.demo import DEMOS
from serving.trial import ROOT, Server
from tests.browser.looking import expect_calm, expect_page, go_to, metric

SLOW = 250_000  # bytes a second, of a file of 5 MB
SPINNER = '<i data-testid="stFileChipIconSpinner"></i>'  # Streamlit's, beside a file that the browser sends
LOAD = """async source => {
    const { default: mount } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    window.mount = arriving => mount({ data: { arriving }, setTriggerValue: (_, sends) => window.ticks.push(sends) });
}"""
ALWAYS = f"""{{
    const set = window.setInterval;
    window.setInterval = (call, every, ...more) => set(call, every === 1000 ? 15 : every, ...more);
    addEventListener("DOMContentLoaded", () => document.body.insertAdjacentHTML("beforeend", '{SPINNER}'));
}}"""  # ticks come as often as they can
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


@contextmanager
def slowly(page: Page) -> Iterator[None]:
    """Send as over a slow line."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    _limit(session, SLOW)
    try:
        yield
    finally:
        _limit(session, -1)


def _limit(session: CDPSession, speed: int) -> None:
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": speed},
    )


def send(page: Page, *names: str) -> None:
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_text("Open your own").click()
    folder = DEMOS["demo-gpt2"].folder
    sidebar.locator("input[type=file]").set_input_files([str(folder / name) for name in names])


def look(page: Page) -> None:
    """Open what is known already."""
    page.get_by_test_id("stSidebar").get_by_role("button", name="See what is known already").click()
    expect_page(page, "overview", "GPT2LMHeadModel")


def test_headers_are_looked_at_while_the_numbers_come(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    sidebar = page.get_by_test_id("stSidebar")
    with slowly(page):
        send(page, *FILES)
        expect(sidebar.get_by_text(re.compile(r"Arriving: .* of 5\.3 MB"))).to_be_visible()
        expect(sidebar.get_by_text("GPT2LMHeadModel · 1.3M parameters · float32 · 52 tensors")).to_be_visible()
        expect_page(page, "overview", "demo-bert")  # nothing changes that was not asked for
        look(page)
        expect(page.get_by_text("The weights are still being uploaded.")).to_be_visible()
        expect(metric(page, "Parameters")).to_have_text("1.3M")
        expect(page.get_by_text("The fingerprint follows when all weights are here.")).to_be_visible()
        expect(page.get_by_role("button", name="Compute the SHA-256")).to_have_count(0)
        expect(page.get_by_text("This view can be shared, and asked for in a terminal, when")).to_be_visible()
        expect(page.get_by_text("copy the URL")).to_have_count(0)
        expect(sidebar.get_by_text("This page shows what is known already.")).to_be_visible()
        go_to(page, "sharing")
        expect(page.get_by_text("Input and output embeddings are tied: one tensor of")).to_be_visible()
        expect(page.get_by_text("are looked for when all weights are here")).to_be_visible()
        go_to(page, "training")  # which has fields of the same names
        expect(page.get_by_text("The worked example follows when all weights are here.")).to_be_visible()
        expect(page.get_by_label("Steps", exact=True)).to_have_value("1000")
        go_to(page, "lens")
        expect(page.get_by_text("The weights of GPT2LMHeadModel are still being uploaded")).to_be_visible()
        expect(page.locator(".js-plotly-plot")).to_have_count(0)
        link = page.url
    assert "arriving" in link
    sidebar.get_by_role("button", name="Open 4 files").click()
    expect_page(page, "lens", "GPT2LMHeadModel")
    expect(page).to_have_url(re.compile("checkpoint=upload"))
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    expect(sidebar.get_by_text("Arriving:")).to_have_count(0)

    page.goto("about:blank")
    page.goto(link)  # of nobody's upload any more
    expect(page.get_by_text("This is a link to an upload that was still arriving")).to_be_visible()


def test_an_upload_that_is_canceled_takes_its_preview_along(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect_page(page, "overview", "demo-bert")
    with slowly(page):
        send(page, *FILES)
        look(page)
        page.get_by_test_id("stSidebar").get_by_role("button", name="Cancel upload of model.safetensors").click()
        expect_page(page, "overview", "demo-bert")
    expect(page).to_have_url(re.compile("checkpoint=demo-bert"))
    expect_calm(page)


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
