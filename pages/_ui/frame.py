"""The frame around every page: who is asking, the navigation, and the checkpoint that is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from inspector.catalog import CATALOG, PAGES, Analysis
from inspector.errors import SettingsError
from inspector.serving.settings import serving
from inspector.settings import settings
from inspector.text import literal
from pages._ui import running, sign_in

PROJECT = Path(__file__).parents[2]
ICON = Path(__file__).parent / "icon.svg"
NAME = "Checkpoint Inspector"
ABOUT = "Open a transformer checkpoint and see what is really inside it."


def draw() -> None:
    """Draw the app for the person who asks: the page that was asked for, or a way to sign in."""
    try:
        settings()
        serving()
    except SettingsError as error:
        st.set_page_config(page_title=NAME)
        st.error(literal(error))
        st.stop()
    if not sign_in.may_use():
        st.set_page_config(page_title=NAME)
        _navigation(shown=False)  # so that links to pages are known; none is run
        st.title(NAME, anchor=False)
        sign_in.offer()
        st.stop()
    running.engine()  # its first worker starts while the rest is imported
    from pages._ui import address, following, once, screenshot, sidebar

    st.set_page_config(page_title=NAME, page_icon=str(ICON), layout="wide", menu_items={"About": ABOUT})
    page = _navigation(shown=True)
    following.begin_run(st.session_state)
    once.begin_run(st.session_state)
    address.keep()
    sidebar.draw()
    screenshot.draw()
    with address.judged(page.url_path):
        page.run()


def _navigation(*, shown: bool) -> Any:
    slugs = dict.fromkeys(analysis.slug for analysis in CATALOG.values())  # in the catalog's order
    home, *others = (PAGES[slug] for slug in slugs)
    pages = [
        _as_page(home, shown=shown, default=True, url_path="start"),
        _beside("tour", "Questions", "help", shown=shown),
        *(_as_page(other, shown=shown, url_path=other.slug) for other in others),
        _beside("report", "Report", "description", shown=shown),
        _beside("server", "Server", "dns", shown=shown),
        # The first page's address is bare; its name works as well.
        _as_page(home, shown=shown, url_path=home.slug, visibility="hidden"),
    ]
    return st.navigation(pages, position="sidebar" if shown else "hidden", expanded=True)


def _as_page(analysis: Analysis, *, shown: bool, **where: Any) -> Any:
    """A page of the navigation, from its entry in the catalog."""
    return _page(analysis.slug, analysis.title, analysis.symbol, shown=shown, **where)


def _beside(slug: str, title: str, symbol: str, *, shown: bool) -> Any:
    """A page that analyses nothing."""
    return _page(slug, title, symbol, shown=shown, url_path=slug)


def _page(slug: str, title: str, symbol: str, *, shown: bool, **where: Any) -> Any:
    file = PROJECT / f"pages/{slug}.py"
    if not shown:
        return st.Page(file, title=NAME, **where)
    return st.Page(file, title=title, icon=f":material/{symbol}:", **where)
