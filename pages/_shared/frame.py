"""The frame around every page: who is asking, the navigation, and the checkpoint that is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from inspector.catalog import CATALOG, PAGES, Analysis
from inspector.errors import SettingsError
from inspector.settings import settings
from pages._shared import running, sign_in
from pages._shared.words import literal
from serving.settings import serving

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
    from pages._shared import address, session, sidebar

    st.set_page_config(
        page_title=NAME, page_icon=str(ICON), layout="wide", menu_items={"About": ABOUT}
    )
    page = _navigation(shown=True)
    address.keep()
    sidebar.draw()
    with session.frame():
        page.run()


def _navigation(*, shown: bool) -> Any:
    slugs = dict.fromkeys(analysis.slug for analysis in CATALOG)  # in the catalog's order
    home, *others = (PAGES[slug] for slug in slugs)
    pages = [
        _as_page(home, shown=shown, default=True, url_path="start"),
        *(_as_page(other, shown=shown, url_path=other.slug) for other in others),
        st.Page(
            PROJECT / "pages/server.py",
            title="Server" if shown else NAME,
            icon=":material/dns:" if shown else None,
            url_path="server",
        ),
        # The first page's address is bare; its name works as well.
        _as_page(home, shown=shown, url_path=home.slug, visibility="hidden"),
    ]
    return st.navigation(pages, position="sidebar" if shown else "hidden")


def _as_page(analysis: Analysis, *, shown: bool, **where: Any) -> Any:
    """A page of the navigation, from its entry in the catalog."""
    file, icon = PROJECT / f"pages/{analysis.slug}.py", f":material/{analysis.symbol}:"
    if not shown:
        return st.Page(file, title=NAME, **where)
    return st.Page(file, title=analysis.title, icon=icon, **where)
