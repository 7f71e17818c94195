"""The Compare page in a real browser: choose a second checkpoint, go on to the lens."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm, expect_page, follow


def test_a_second_checkpoint_and_a_checkpoint_with_itself(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/compare?checkpoint=demo-gpt2")
    expect_page(page, "compare", "demo-gpt2")
    a_second_checkpoint_is_chosen_and_linked_on_and_the_way_back_leads_to_both(page)
    the_layers_are_drawn_and_come_as_a_file(page)


def a_second_checkpoint_is_chosen_and_linked_on_and_the_way_back_leads_to_both(page: Page) -> None:
    expect(page.get_by_text("What you can learn from two checkpoints")).to_be_visible()
    page.get_by_role("button", name="Compare with demo-bert").click()
    expect(page.get_by_text("Of 130 tensors: 78 added and 52 removed")).to_be_visible()
    expect_calm(page)
    own = page.get_by_label(re.compile("Download as CSV"))
    for _ in range(40):  # the page may still move below the mouse
        page.mouse.move(0, 0)
        page.get_by_test_id("stDataFrame").first.hover()
        if own.count():
            break
        page.wait_for_timeout(250)
    assert own.count()
    assert not own.first.is_visible()
    expect(page).to_have_url(re.compile("other=demo-bert"))
    expect(page.get_by_text("128 and 160 numbers cannot be compared")).to_be_visible()
    expect_calm(page)
    page.reload()
    expect(page.get_by_text("128 and 160 numbers cannot be compared")).to_be_visible()
    page.get_by_role("tab", name="Same sentence").click()
    page.get_by_role("button", name="Logit lens: the layers of both, read as tokens").click()
    expect_page(page, "lens", "demo-gpt2")
    expect(page).to_have_url(re.compile("other=demo-bert"))
    expect(page.get_by_role("combobox", name=re.compile("Second checkpoint"))).to_have_value("demo-bert")
    expect_calm(page)
    for _ in range(2):  # Streamlit also writes down what it tells the page that is left
        if "/compare" not in page.url:
            page.go_back()
            expect_calm(page)
    expect(page).to_have_url(re.compile("/compare[?].*checkpoint=demo-gpt2.*other=demo-bert"))
    page.reload()
    expect_page(page, "compare", "demo-gpt2")
    expect(page.get_by_text("Of 130 tensors")).to_be_visible()


def the_layers_are_drawn_and_come_as_a_file(page: Page) -> None:
    follow(page, "/compare?checkpoint=demo-gpt2&other=demo-gpt2")
    expect_page(page, "compare", "demo-gpt2")
    expect(page.get_by_text("is compared with itself")).to_be_visible()
    cells = page.locator(".js-plotly-plot .heatmap-label")
    expect(cells.first).to_have_text("=")
    page.get_by_role("tab", name="Layers", exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV", exact=True).click()
    head, *rows = waiting.value.path().read_text().splitlines()
    assert head.startswith("layer,number,kind,tensors,unequal,relative_change")
    assert len(rows) == 48  # 12 kinds of tensor in each of 4 layers
    assert {row.split(",")[4] for row in rows} == {"0"}
