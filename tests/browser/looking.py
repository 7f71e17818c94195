"""What the browser tests look for on a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Download, Locator, Page, Response, expect

from inspector.catalog import CATALOG, PAGES
from inspector.serving.headers import security_headers
from inspector.serving.trial import Server

SLUGS = tuple(dict.fromkeys(analysis.slug for analysis in CATALOG.values()))
PAGE_LINKS = ".st-key-pages"  # of the sidebar
# A native library of each package that belongs into workers alone (umap brings llvmlite).
NATIVE = ("libtorch", "llvmlite", "tokenizers", "sentencepiece")


@contextmanager
def sound(page: Page, server: Server) -> Iterator[None]:
    """All that is asked meanwhile keeps to the content policy and carries it; the server stays light.

    What breaks the policy is a line of the console: the fixture `watch` fails at it.
    """
    page.add_init_script(
        "document.addEventListener('securitypolicyviolation', event =>"
        " console.error('policy', event.effectiveDirective, event.blockedURI))"
    )
    answers = 0
    bare: list[str] = []

    def read(response: Response) -> None:
        nonlocal answers
        if response.url.startswith(server.url):  # what is made in memory has no headers
            answers += 1
            wanted = security_headers().items()
            missing = [name for name, value in wanted if response.headers.get(name.lower()) != value]
            bare.extend(f"{response.url}: {name}" for name in missing)

    page.on("response", read)
    yield
    page.remove_listener("response", read)
    assert answers > 0
    assert bare == []
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "libpython" in maps or "python" in maps  # it is the process we think it is
    assert "pandas" in maps
    assert [name for name in NATIVE if name in maps] == []


def printed_address(server: Server) -> str:
    """The address that a server prints when it starts, with its token."""
    (address,) = re.findall(r"^Checkpoint Inspector is at (\S+\?token=\S+)$", server.log.read_text(), re.MULTILINE)
    return address


def expect_page(page: Page, slug: str, checkpoint: str) -> None:
    """A page is there with its heading, the open checkpoint's name, and no error."""
    expect(page.get_by_role("heading", name=PAGES[slug].title, level=1)).to_be_visible()
    expect(page.get_by_test_id("stMain").get_by_text(checkpoint, exact=True).first).to_be_visible()
    expect_calm(page)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def expect_calm(page: Page) -> None:
    """The script has run to its end."""
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_visible()


def expect_masks(page: Page, count: int) -> None:
    """The page Masked LM has an answer for so many masks."""
    expect(page.get_by_text(re.compile(rf"^{count} masks? in \d+ tokens"))).to_be_visible()
    said = "The mask is most likely" if count == 1 else f"The {count} masks together"
    expect(page.get_by_test_id("stMarkdown").get_by_text(said).first).to_be_visible()


def go_to(page: Page, slug: str) -> None:
    """Choose a page in the sidebar, and wait until the address says so: what was there before stays for a moment."""
    link = page.locator(PAGE_LINKS).get_by_role("link", name=PAGES[slug].title)
    chosen = urlsplit(link.evaluate("link => link.href")).path
    link.click()
    expect(page).to_have_url(re.compile(rf"^[a-z]+://[^/]+{re.escape(chosen)}([?#]|$)"))


def follow(page: Page, link: str) -> None:
    """Go to a link of the same server in the open session: Streamlit runs the page as it does for Back and Forward."""
    page.evaluate("link => { history.pushState({}, '', link); dispatchEvent(new PopStateEvent('popstate')); }", link)


def metric(page: Page, label: str) -> Locator:
    """The value of a metric."""
    chosen = page.get_by_test_id("stMetric").filter(has_text=re.compile(rf"^{re.escape(label)}"))
    return chosen.get_by_test_id("stMetricValue")


def fill(page: Page, label: str, text: str, *, key: str = "Enter") -> None:
    """Type into a field and commit it."""
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    field.press(key)


def click_mark(mark: Locator) -> None:
    """Click a mark of a chart, which lies under the layer that takes the chart's clicks."""
    mark.page.mouse.click(*middle(mark))


def save_figure(page: Page, kind: str, title: str) -> Download:
    """Save a figure by the menu in its corner."""
    opener = page.get_by_label(re.compile(f"^Save this figure: {re.escape(title)}")).first
    opener.click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Download as {kind}: {title}").first.click()
    opener.press("Escape")
    return waiting.value


def middle(mark: Locator) -> tuple[float, float]:
    """The middle of a mark, in view and at rest: the page moves until all of it has its height."""
    expect(mark.page.get_by_test_id("stSkeleton")).to_have_count(0)
    before = None
    for _ in range(60):
        mark.scroll_into_view_if_needed()
        mark.page.wait_for_timeout(500)  # Streamlit's scrolling has momentum
        box = mark.bounding_box()
        assert box
        place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        if place == before:
            return place
        before = place
    pytest.fail(f"The mark did not come to rest; it was last at {before}.")


def address(page: Page) -> tuple[str, dict[str, list[str]]]:
    """Path and parameters of the address."""
    parts = urlsplit(page.url)
    return parts.path, parse_qs(parts.query)


def expect_address(page: Page, slug: str, **parameters: str) -> None:
    """The page's address holds these."""
    page.wait_for_function("slug => location.pathname === '/' + slug", arg=slug)
    for name, value in parameters.items():
        page.wait_for_function(
            "([name, value]) => new URL(location).searchParams.get(name) === value", arg=[name, value]
        )
