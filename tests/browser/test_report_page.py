"""A report that is made on its page, and the view for screenshots."""

from __future__ import annotations

import io
import re
import zipfile

from playwright.sync_api import Page, expect

from inspector.serving.trial import Server
from tests.browser.looking import expect_calm


def test_a_report_is_made_on_its_page(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/report?checkpoint=demo-gpt2&sections=Overview&sections=Masked+LM")
    expect_calm(page)
    page.get_by_role("button", name="Create report").click()
    everything = page.get_by_role("button", name="Everything as .zip")
    expect(everything).to_be_visible()  # a browser has drawn the figures before
    with page.expect_download() as waiting:
        everything.click()
    data = waiting.value.path().read_bytes()
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert {"report.html", "report.ipynb", "report.pdf"} <= set(archive.namelist())
    assert "a perplexity of" in archive.read("report.html").decode()
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_the_screenshot_view_shows_results_alone(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/training?checkpoint=demo-bert&screenshot=1")
    expect(page.get_by_role("heading", name="Training", level=1)).to_be_visible()
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    expect(page.get_by_text("demo-bert", exact=True).first).to_be_visible()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    for hidden in ("stSidebar", "stHeader", "stNumberInput", "stTextInput", "stDownloadButton"):
        for each in page.get_by_test_id(hidden).all():
            expect(each).to_be_hidden()
    expect(page.get_by_label(re.compile("^Save this figure")).first).to_be_hidden()
    page.get_by_role("button", name="Back to the controls").click()
    expect(page.get_by_test_id("stNumberInput").first).to_be_visible()
    assert "screenshot" not in page.url
