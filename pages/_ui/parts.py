"""Parts that every page has: its heading, warnings, figures and the same view elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2s
from textwrap import wrap
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_tab_container import TabContainer

from inspector.catalog import PAGES
from inspector.plotting.theme import LIGHT, Theme
from inspector.report.recolor import changes, plain
from inspector.request import Request
from inspector.results.checkpoint import Opened
from inspector.text import count_text, literal
from pages._ui import address, screenshot, session, tables
from pages._ui.answer import verdict as verdict_link
from pages._ui.client import figure_files
from pages._ui.words import command

# Plotly's own buttons: nothing that sends data away. The images are in the chart's menu.
CHART = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
SCREENFUL = 485  # pixels that a page's picture may take
SQUEEZED = 720  # pixels: up to here a figure is drawn in a screenful
BOLD_LETTERS, LETTERS, LINE = 46, 54, 18  # on a phone: of a title's line, of one below it, and pixels of one
VERDICTS = {
    "tied": "green",
    "equal copies": "orange",
    "diverged": "blue",
    "declared only": "red",
    "alias only": "red",
    "not compared": "gray",
}


table = tables.table  # every table of a page


def heading(slug: str, checkpoint: Opened) -> None:
    """Say which checkpoint is open, what the page is, and which question it answers."""
    session.visit(slug)
    title(PAGES[slug].title, PAGES[slug].question, checkpoint, judged=slug != "checks")


def title(name: str, question: str, checkpoint: Opened | None = None, *, judged: bool = True) -> None:
    """The same in a line for a page that is no analysis, or of no checkpoint.

    Args:
        judged: Whether checks' verdict on the checkpoint is said, too.
    """
    with st.container(key="heading", horizontal=True, vertical_alignment="center", gap="small"):
        st.title(name, anchor=False, width="content")
        st.markdown(question, width="content")
        if checkpoint:
            st.caption(f":material/deployed_code: **{literal(checkpoint.name)}**", width="content")
            if judged and not session.is_preview(checkpoint):
                verdict_link.draw()


def page_link(slug: str, label: str = "") -> None:
    """Link to an analysis' page; without a label by its question."""
    page = PAGES[slug]
    label = f"{page.title}: {label or page.question}"
    st.page_link(f"pages/{slug}.py", label=label, icon=f":material/{page.symbol}:")


def warnings(texts: Iterable[str]) -> None:
    """Show warnings so that they cannot be missed."""
    for text in texts:
        st.warning(literal(text), icon=":material/warning:")


def count(label: str, number: int | None, *, explanation: str = "") -> None:
    """A large number in short form, written out in its help text."""
    if number is None:
        st.metric(label, "–", help=explanation or "Not stated in the checkpoint.")
        return
    exact = f"{number:,}"
    st.metric(label, count_text(number) if number >= 100_000 else exact, help=f"{exact}. {explanation}")


def drawn(draw: Callable[[Theme], go.Figure], *, narrow: Callable[[Theme], go.Figure] | None = None) -> go.Figure:
    """Draw a figure in the page's colors.

    Args:
        draw: The figure.
        narrow: The same for a phone.

    Returns:
        A figure that, if it is not what is on paper, carries what is otherwise there, for the files made of it.
    """
    theme = session.theme()
    phone = session.is_phone()
    figure = (narrow if narrow and phone else draw)(theme)
    figure.layout.paper_bgcolor = theme.page  # what is drawn without a ground is lost on another
    if phone:
        _break_title(figure)
    if theme is not LIGHT or phone:
        shown = plain(figure, theme)
        digest = blake2s(json.dumps(shown).encode()).hexdigest()
        paper = session.on_paper(digest, lambda: list(changes(shown, plain(draw(LIGHT), LIGHT))))
        figure.update_layout(meta=shown["layout"].get("meta", {}) | {"paper": paper})
    return figure


def _break_title(figure: go.Figure) -> None:
    """Give both parts of a title the lines that they take on a phone: Plotly breaks none."""
    layout: Any = figure.layout
    for part, letters in ((layout.title, BOLD_LETTERS), (layout.title.subtitle, LETTERS)):
        lines = wrap(part.text or "", letters, break_long_words=False, break_on_hyphens=False) or [""]
        part.text = "<br>".join(lines)
        layout.margin.t += LINE * (len(lines) - 1)
        layout.height += LINE * (len(lines) - 1)


def chart(
    figure: go.Figure, *, alt: str, key: str | None = None, file: str | None = None, height: int | None = None
) -> None:
    """Draw a figure that is only looked at, and offer it as files, by default named after its title.

    Args:
        figure: With a title.
        alt: What it shows, in words.
        key: Its name, where two of a page have one title.
        file: What the files are named after.
        height: In pixels; None: what the figure wants.
    """
    if height:
        figure.update_layout(height=height)
    figure_files.offer(figure, alt=alt, key=key, file=file)
    st.plotly_chart(figure, height=_height(figure), theme=None, key=key, config=CHART, alt=alt)


def picture(figure: go.Figure, *, alt: str, key: str) -> None:
    """Draw a page's picture, no higher than a screen."""
    with st.container(height=frame_height(figure), border=False):
        chart(figure, alt=alt, key=key)


def _height(figure: go.Figure) -> int | Literal["content"]:
    """The room that a figure has before it is drawn: what is below does not jump."""
    return figure.to_dict()["layout"].get("height") or "content"


def facts(pairs: dict[str, str]) -> None:
    """List a few properties; their text may be a stranger's."""
    rows = "\n".join(f"| {literal(name)} | **{literal(value)}** |" for name, value in pairs.items())
    st.markdown(f"| Property | Value |\n|---|---|\n{rows}")


def clickable(
    figure: go.Figure, *, alt: str, key: str, on_click: Callable[[], None] | None = None, width: int | None = None
) -> list[int] | None:
    """Draw a figure and give the customdata of the mark that was clicked last, as a list.

    Like any figure it is offered as files.

    Args:
        figure: With customdata.
        alt: What it shows, in words.
        key: Its name; the event stands there when `on_click` is called, for `mark`.
        on_click: Called before the script runs anew.
        width: In pixels; None takes what there is.
    """
    figure_files.offer(figure, alt=alt, key=key)
    event = st.plotly_chart(
        figure,
        height=_height(figure),
        theme=None,
        key=key,
        config=CHART,
        alt=alt,
        on_select=on_click or "rerun",
        selection_mode="points",
        width=width or "stretch",
    )
    return mark(event)


def mark(event: Any) -> list[int] | None:
    """The customdata of the mark that a chart's event names."""
    points = event["selection"]["points"]
    if not points:
        return None
    data = points[0].get("customdata")
    if isinstance(data, dict):  # two-dimensional customdata arrives as {"0": 5, "1": 12}
        data = [data[place] for place in sorted(data)]
    return [int(value) for value in (data if isinstance(data, list) else [data or 0])]


def verdict(text: str) -> str:
    """A verdict as a badge: its word says it, color repeats it."""
    return f":{VERDICTS.get(text, 'gray')}-badge[{literal(text)}]"


def grid(count: int, *, wide: int) -> list[DeltaGenerator]:
    """Places for `count` things, `wide` of them side by side."""
    places: list[DeltaGenerator] = []
    while len(places) < count:
        places += st.columns(min(wide, count), gap="large")
    return places


def main_row(shares: tuple[int, int] = (7, 3)) -> list[DeltaGenerator]:
    """Places for a page's picture, and for what belongs to its selection: beside it on a wide screen, else below.

    Args:
        shares: Of the width that each takes on a wide screen.
    """
    with st.container(key="main_row"):
        left, right = st.columns(shares, gap="medium")
    with left:
        picture = st.container(key="picture")
    with right:
        return [picture, st.container(key="beside")]


def frame_height(figure: go.Figure) -> int | Literal["content"]:
    """How high the place of a page's picture is.

    A figure that is a little higher than a screen is drawn as high as that; one that is higher still scrolls inside.
    """
    height = figure.to_dict()["layout"]["height"]
    if SCREENFUL < height <= SQUEEZED:
        figure.update_layout(height=SCREENFUL)
    return SCREENFUL if height > SQUEEZED else "content"


def in_tabs(*labels: str, opened_by: Mapping[str, str] | None = None) -> Sequence[TabContainer]:
    """Offer what else a page knows; of a tab that is closed nothing is asked or drawn, which the caller sees to.

    Args:
        labels: Of the tabs; the address holds the one that is open.
        opened_by: Name in the address -> the tab that has its field, which a link opens that names no tab.
    """
    if address.TAB not in st.session_state and st.query_params.get(address.TAB) not in labels:
        named = (tab for name, tab in (opened_by or {}).items() if address.asked(name) and tab in labels)
        if tab := next(named, None):
            st.session_state[address.TAB] = tab
    return st.tabs(labels, key=address.TAB, bind="query-params")


def place(key: str, framed: go.Figure | None = None) -> DeltaGenerator:
    """The place of a picture that has a drawing for phones: any other one scrolls sideways where the page is narrow.

    Args:
        key: Of the place, if it scrolls.
        framed: A figure that is to be no higher than a screen; a phone's takes what it needs.
    """
    if session.is_phone():
        return st.container(key=f"narrow_{key}")
    return st.container(key=key, height=frame_height(framed) if framed else "content")


def elsewhere(checkpoint: Opened, *asked: Request | tuple[str, ...]) -> None:
    """The same view for a terminal; the address bar holds it for a colleague."""
    if session.is_preview(checkpoint):
        st.caption("This view can be shared, and asked for in a terminal, when all weights are here.")
        screenshot.offer()
        return
    commands = [(a.verb, *a.to_argv()) if isinstance(a, Request) else a for a in asked]
    share([command(verb, checkpoint, *options) for verb, *options in commands])


def share(lines: Sequence[str], *, what: str = "") -> None:
    """Fold away how else this view can be had.

    Args:
        lines: Commands that give the same answers.
        what: What they are for, where that is not the open checkpoint.
    """
    with st.expander("Share this view", icon=":material/share:"):
        st.caption(f"Copy the URL, or ask in a terminal{what} (add `--json` for machine-readable output):")
        st.code("\n".join(lines), language=None, wrap_lines=True)
        screenshot.offer()
