"""The pages: their addresses, and their links in the sidebar."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from inspector.catalog import CATALOG, PAGES
from inspector.text import literal
from pages._ui import address

PROJECT = Path(__file__).parents[2]
NAME = "Checkpoint Inspector"
UNKNOWN = "unknown page"  # a name that an address had and no page has; it stays a page of this session
# Pages of the catalog by what they are for; one that is not named here is in the first group.
GROUPS = {
    "Look": ("overview", "sharing", "embeddings", "padding", "classes"),
    "Ask": ("lens", "masked_lm", "similarity", "heads"),
    "Judge": ("checks", "compare", "merge", "snapshots", "training"),
}
BESIDE = {"report": ("Report", "description"), "tour": ("Questions", "help"), "server": ("Server", "dns")}


def choose(*, shown: bool) -> Any:
    """The page that the address names.

    Args:
        shown: False: pages are known by their addresses, and say nothing of themselves.
    """
    home, *others = _slugs()
    pages = [
        _page(home, shown=shown, default=True, url_path="start"),
        *(_page(slug, shown=shown, url_path=slug) for slug in (*others, *BESIDE)),
        _page(home, shown=shown, url_path=home),  # the first page's address is bare; its name works as well
    ]
    if unknown := _unknown({page.url_path for page in pages}):
        pages.append(st.Page(partial(_say_unknown, unknown), title="No such page", url_path=unknown))
    return st.navigation(pages, position="hidden")


def draw(page: Any) -> None:
    """Link to every page.

    Args:
        page: The one that is shown, as `choose` gave it.
    """
    with st.container(key="pages", gap=None):
        for title, slugs in _groups():
            with st.container(gap=None):
                if title:
                    st.caption(title)
                for slug in slugs:
                    link(slug, here=page)


def titles() -> Iterator[tuple[str, str]]:
    """Slug and title of every page, as they are listed."""
    for _, slugs in _groups():
        yield from ((slug, _look(slug)[0]) for slug in slugs)


def link(slug: str, *, here: Any = None) -> None:
    """Link to a page by its title.

    Args:
        slug: Of the page.
        here: The page that is shown: the first one has two addresses, and is marked at both.
    """
    title, symbol = _look(slug)
    shown = here and (here.url_path or _slugs()[0]) == slug
    # A link to the first page by its bare address would be one to the page that is shown, whichever that is.
    target: Any = here if shown else st.Page(PROJECT / f"pages/{slug}.py", url_path=slug)
    st.page_link(
        target,
        label=title,
        icon=f":material/{symbol}:",
        width="stretch",
        query_params=None if shown else address.view(slug),
    )


def _slugs() -> tuple[str, ...]:
    """Pages of the catalog, in its order."""
    return tuple(dict.fromkeys(analysis.slug for analysis in CATALOG.values()))


def _groups() -> Iterator[tuple[str, tuple[str, ...]]]:
    named = {slug for slugs in GROUPS.values() for slug in slugs}
    rest = tuple(slug for slug in _slugs() if slug not in named)
    for title, slugs in GROUPS.items():
        yield title, (*slugs, *rest)
        rest = ()
    yield "", tuple(BESIDE)


def _look(slug: str) -> tuple[str, str]:
    """Title and symbol."""
    return BESIDE[slug] if slug in BESIDE else (PAGES[slug].title, PAGES[slug].symbol)


def _page(slug: str, *, shown: bool, **where: Any) -> Any:
    file = PROJECT / f"pages/{slug}.py"
    if not shown:
        return st.Page(file, title=NAME, **where)
    title, symbol = _look(slug)
    return st.Page(file, title=title, icon=f":material/{symbol}:", **where)


def _unknown(known: set[str]) -> str:
    """A name in the address that no page has: Streamlit would show the first page, under a message of its own."""
    context = get_script_run_ctx()
    asked = context.pages_manager.intended_page_name if context else None
    if asked and "/" not in asked and asked not in known:
        st.session_state[UNKNOWN] = asked
    return st.session_state.get(UNKNOWN, "")


def _say_unknown(name: str) -> None:
    from pages._ui import parts  # which imports Plotly: the sign-in page needs none

    parts.title("No such page", f"This address ends in *{literal(name)}*, which is not a page. Choose one:")
    with st.container(gap="xxsmall"):
        for _, slugs in _groups():
            for slug in slugs:
                link(slug)
