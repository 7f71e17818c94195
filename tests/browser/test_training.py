"""The Training page in a real browser: drawn lines, a changed number in the link, a refusal."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from pages._ui.client import figure_files
from tests.browser.looking import expect_calm, expect_page, fill, follow


def test_numbers_their_link_and_their_file(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/training?checkpoint=demo-gpt2")
    expect_page(page, "training", "demo-gpt2")
    numbers_redraw_the_schedules_and_stand_in_the_link(page)
    all_updates_come_as_a_file(page)
    the_schedules_are_copied_as_a_picture(page)


def numbers_redraw_the_schedules_and_stand_in_the_link(page: Page) -> None:
    expect(page.get_by_role("row", name=re.compile("Not decayed 6,912 parameters in"))).to_be_visible()
    lines = page.locator(".js-plotly-plot .scatterlayer .trace")
    expect(lines).to_have_count(6)
    expect(page.get_by_text("warm-up: 100 updates")).to_be_visible()
    fill(page, "Warm-up steps", "250")
    expect(page.get_by_text("warm-up: 250 updates")).to_be_visible()
    expect(page).to_have_url(re.compile("warmup_steps=250"))
    expect_calm(page)
    page.reload()
    expect(page.get_by_text("warm-up: 250 updates")).to_be_visible()
    fill(page, "Steps", "200")
    expect(page.get_by_test_id("stAlert")).to_have_text(
        re.compile("The warm-up takes 250 steps, but the whole training has 200")
    )
    expect(page.get_by_test_id("stException")).to_have_count(0)


def the_schedules_are_copied_as_a_picture(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    saved: list[str] = []
    page.on("download", lambda download: saved.append(download.url))
    page.get_by_label(re.compile("^Save this figure: Learning rate")).click()
    page.get_by_role("button", name="Copy this figure: Learning rate").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    size = "navigator.clipboard.read().then(items => items[0].getType('image/png')).then(createImageBitmap)"
    assert page.evaluate(f"{size}.then(picture => picture.width)") == figure_files.WIDTH * figure_files.SCALE
    assert saved == []
    page.keyboard.press("Escape")


def all_updates_come_as_a_file(page: Page) -> None:
    follow(page, "/training?checkpoint=demo-bert&steps=700&warmup_steps=70&learning_rate=0.001")
    expect_page(page, "training", "demo-bert")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="All 700 updates: CSV").click()
    rows = waiting.value.path().read_text().splitlines()
    assert len(rows) == 701
    assert rows[0].split(",")[:4] == ["update", "constant", "constant_with_warmup", "linear"]
    values = [float(value) for value in rows[1 + 385].split(",")]
    assert values[0] == 385
    assert abs(values[3] - 0.001 * (700 - 385) / 630) < 1e-15  # linear: exactly half way
