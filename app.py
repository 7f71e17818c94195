"""The frame of the app: pages from the catalog, and the checkpoint that is open."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import streamlit as st

from inspector.catalog import CATALOG, PAGES, Analysis
from inspector.errors import SettingsError
from inspector.settings import settings
from pages._shared import running

with suppress(SettingsError):  # said below
    running.engine()  # its first worker starts while the rest is imported
from pages._shared import session, sidebar
from pages._shared.words import literal

HERE = Path(__file__).parent

st.set_page_config(
    page_title="Checkpoint Inspector",
    page_icon=str(HERE / "pages/_shared/icon.svg"),
    layout="wide",
    menu_items={"About": "Open a transformer checkpoint and see what is really inside it."},
)


def as_page(analysis: Analysis, **where: Any) -> Any:
    """A page of the navigation, from its entry in the catalog."""
    file, icon = HERE / f"pages/{analysis.slug}.py", f":material/{analysis.symbol}:"
    return st.Page(file, title=analysis.title, icon=icon, **where)


slugs = dict.fromkeys(analysis.slug for analysis in CATALOG)  # in the catalog's order
home, *others = (PAGES[slug] for slug in slugs)
page = st.navigation(
    [
        as_page(home, default=True, url_path="start"),
        *(as_page(other, url_path=other.slug) for other in others),
        # The first page's address is bare; its name works as well.
        as_page(home, url_path=home.slug, visibility="hidden"),
    ]
)
try:
    settings()
except SettingsError as error:
    st.error(literal(error))
    st.stop()
sidebar.draw()
with session.frame():
    page.run()
