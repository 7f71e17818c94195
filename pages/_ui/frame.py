"""The frame around every page: who is asking, the navigation, and the checkpoint that is open."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from inspector.errors import SettingsError
from inspector.serving.settings import serving
from inspector.settings import settings
from inspector.text import literal
from pages._ui import navigation, running, sign_in
from pages._ui.navigation import NAME

ICON = Path(__file__).parent / "icon.svg"
SIDEBAR = 240  # pixels
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
        navigation.choose(shown=False)  # so that links to pages are known; none is run
        st.title(NAME, anchor=False)
        sign_in.offer()
        st.stop()
    running.engine()  # its first worker starts while the rest is imported
    from pages._ui import address, following, once, screenshot, sidebar

    st.set_page_config(
        page_title=NAME, page_icon=str(ICON), layout="wide", initial_sidebar_state=SIDEBAR, menu_items={"About": ABOUT}
    )
    page = navigation.choose(shown=True)
    following.begin_run(st.session_state)
    once.begin_run(st.session_state)
    address.keep()
    sign_in.draw_notice()
    sidebar.draw(page)
    screenshot.draw()
    with address.judged(page.url_path):
        page.run()
