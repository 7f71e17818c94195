"""The address: what it says is shown, whatever page was before; what is shown, it says."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from serving.trial import Server
from tests.browser.looking import SLUGS, expect_calm, expect_page, fill, follow, go_to, sound

PHONE = 390
BESIDE = {"tour": "Questions", "report": "Report", "server": "Server"}  # pages that analyze nothing
TITLES_FIT = """() => [...document.querySelectorAll("[data-testid=stPlotlyChart]")].every((chart) =>
  chart.querySelector(".main-svg") &&
  [...chart.querySelectorAll(".gtitle, .gtitle-subtitle")].every((title) =>
    title.getBoundingClientRect().right <= chart.getBoundingClientRect().right))"""
GRAPH_SCROLLS = """phone => {
  const graph = document.querySelector(".st-key-sharing_graph");
  return graph.scrollWidth >= 560 && graph.clientWidth < phone;
}"""
KING = "the king of [MASK]."
HOUSE = "a house of [MASK]."


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


def text(page: Page) -> str:
    return page.get_by_label("Text", exact=True).input_value()


def test_every_page_opens_by_its_link_on_a_phone(server: Server, open_browser: Callable[..., Page]) -> None:
    """Nothing scrolls sideways but the graph of shared tensors, by itself; no title of a figure is cut."""
    page = open_browser(width=PHONE, height=800)
    with sound(page, server):
        page.goto(f"{server.url}/{SLUGS[-1]}?checkpoint=demo-gpt2")
        expect_page(page, SLUGS[-1], "demo-gpt2")
        for slug in SLUGS:
            follow(page, f"/{slug}?checkpoint=demo-gpt2")
            expect_page(page, slug, "demo-gpt2")
            expect_address(page, slug, checkpoint="demo-gpt2")
            # Streamlit puts the app's style sheet in with the other elements: it may come a moment later.
            page.wait_for_function(
                "phone => document.querySelector('[data-testid=stMain]').scrollWidth <= phone", arg=PHONE
            )
            expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
            page.wait_for_function(TITLES_FIT)
            if slug == "sharing":
                page.wait_for_function(GRAPH_SCROLLS, arg=PHONE)
        for slug, title in BESIDE.items():
            follow(page, f"/{slug}?checkpoint=demo-gpt2")
            expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
            expect_calm(page)
            expect(page.get_by_test_id("stException")).to_have_count(0)
        page.get_by_test_id("stExpandSidebarButton").click()
        go_to(page, SLUGS[0])
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
        expect_page(page, SLUGS[0], "demo-gpt2")


def test_going_back_and_forward_shows_what_the_address_says(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens?text={KING}&pins=king")
    expect_page(page, "lens", "demo-bert")
    go_to(page, "masked_lm")
    expect_page(page, "masked_lm", "demo-bert")
    expect_address(page, "masked_lm", text=KING)
    assert text(page) == KING
    page.get_by_label("Text", exact=True).fill(HOUSE)
    expect_address(page, "masked_lm", text=HOUSE)
    expect_calm(page)
    page.go_back()  # each sentence that was typed is a step
    expect_address(page, "masked_lm", text=KING)
    expect(page.get_by_label("Text", exact=True)).to_have_value(KING)
    page.go_back()
    expect_page(page, "lens", "demo-bert")
    expect_address(page, "lens", text=KING, pins="king")
    expect(page.get_by_label("Text", exact=True)).to_have_value(KING)
    expect(page.get_by_label("Pinned tokens", exact=True)).to_have_value("king")
    page.go_forward()
    expect_page(page, "masked_lm", "demo-bert")
    page.go_forward()
    expect_address(page, "masked_lm", text=HOUSE)
    expect(page.get_by_label("Text", exact=True)).to_have_value(HOUSE)


def test_a_text_of_ones_own_comes_along_and_stands_in_the_address(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/lens")
    expect_page(page, "lens", "demo-bert")
    fill(page, "Text", KING, key="Control+Enter")
    expect_address(page, "lens", text=KING)
    go_to(page, "sharing")  # has no text
    expect_page(page, "sharing", "demo-bert")
    go_to(page, "masked_lm")
    expect_page(page, "masked_lm", "demo-bert")
    expect_address(page, "masked_lm", text=KING)
    link = page.url
    page.goto("about:blank")
    page.goto(link)  # as a colleague would
    expect_page(page, "masked_lm", "demo-bert")
    expect(page.get_by_label("Text", exact=True)).to_have_value(KING)


def test_what_the_next_page_cannot_take_stays_behind(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/masked_lm?k=500&text={KING}")
    expect_page(page, "masked_lm", "demo-bert")
    go_to(page, "lens")
    expect_page(page, "lens", "demo-bert")
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    assert "k" not in address(page)[1]
    page.go_back()
    expect_page(page, "masked_lm", "demo-bert")
    expect_address(page, "masked_lm", k="500", text=KING)


def test_what_means_something_else_elsewhere_does_not_go_along_nor_into_the_view_of_a_question(
    page: Page, server: Server
) -> None:
    page.goto(f"{server.url}/lens?text={KING}&k=7&second={HOUSE}&shade=entropy")
    expect_page(page, "lens", "demo-bert")
    go_to(page, "embeddings")
    expect_page(page, "embeddings", "demo-bert")
    # `k` means the same there and may go along; what colors the lens does not.
    _, parameters = address(page)
    assert "color" not in parameters
    page.go_back()
    expect_page(page, "lens", "demo-bert")
    expect_calm(page)
    expect_address(page, "lens", k="7", shade="entropy")

    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Questions").click()
    page.get_by_role("button", name="At which layer does the model know").click()
    expect_page(page, "lens", "demo-bert")
    expect_address(page, "lens", pins="year", shade="rank of a pinned token")
    assert not address(page)[1].keys() & {"k", "second"}
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Questions").click()
    page.get_by_role("button", name="Why is GPT-2's lm_head").click()
    expect_page(page, "sharing", "demo-gpt2")
    expect_address(page, "sharing", checkpoint="demo-gpt2")
