"""The frame of the app: pages from the catalog, and the checkpoint that is open."""

from pathlib import Path

import streamlit as st

from inspector.catalog import CATALOG, PAGES
from inspector.errors import SettingsError
from inspector.settings import settings
from pages._shared import session, sidebar
from pages._shared.words import literal

HERE = Path(__file__).parent

session.mark_framed()
st.set_page_config(
    page_title="Checkpoint Inspector",
    page_icon=str(HERE / "pages/_shared/icon.svg"),
    layout="wide",
    menu_items={"About": "Open a transformer checkpoint and see what is really inside it."},
)
pages = {analysis.slug: PAGES[analysis.slug] for analysis in CATALOG}  # in the catalog's order
page = st.navigation(
    [
        st.Page(
            HERE / f"pages/{slug}.py",
            title=analysis.title,
            icon=f":material/{analysis.symbol}:",
            url_path=slug,
            default=slug == "overview",
        )
        for slug, analysis in pages.items()
    ]
)
try:
    settings()
except SettingsError as error:
    st.error(literal(error))
    st.stop()
sidebar.draw()
page.run()
