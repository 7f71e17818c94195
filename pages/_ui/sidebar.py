"""Choose the checkpoint: demos, uploads, folders of this server, the hub; and manage uploads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from inspector.demo import ADAPTERS, DEMOS
from inspector.errors import CheckpointError
from inspector.results.checkpoint import Opened
from inspector.serving.place import paths_are_open
from inspector.serving.storing import uploads
from inspector.settings import settings
from inspector.store.origins.hub import named_by
from inspector.store.reference import origin_of
from inspector.text import literal
from pages._ui import navigation, running, session, sign_in
from pages._ui.client import dropping, figure_files, keys
from pages._ui.opening import adapting, agreeing, arrivals, fetching, folders, managing, under_way, uploading

HERE = Path(__file__).parent
STYLE = HERE / "style.css"
WAY = "way taken"


def draw(page: Any) -> None:
    """Draw the sidebar and have a checkpoint open; without one the run ends here.

    Args:
        page: The one that is shown.
    """
    logo = HERE / f"logo_{session.theme().name}.svg"
    st.logo(str(logo), size="large", icon_image=str(HERE / "icon.svg"))
    st.session_state["drawn"] = _page()
    with st.sidebar:
        picker = st.container()
        with st.expander("Open your own", icon=":material/upload_file:", key="open_your_own"):
            _offer_ways()
        navigation.draw(page)
        keys.draw(navigation.titles())
        dropping.draw()
        sign_in.draw()
        figure_files.bring()
    arrivals.recall()
    with st.container(key="opening"):  # so that waiting for it moves nothing that follows
        question = st.empty()  # first, so that one that was answered is gone before anything is waited for
        arrivals.open_all("sidebar", _show)
        under_way.settle()
        _open_wanted()
        asked = _follow_link()
    with picker:
        _offer_checkpoints()
    if asked:
        with question.container():
            _ask_about(asked)
    _show_refusal()


def _open_wanted() -> None:
    state = st.session_state
    if "wanted" not in state:
        return
    checkpoint = session.open_checkpoint(state["wanted"])
    del state["wanted"]
    if checkpoint:
        state.pop("refusal", None)
        _show(checkpoint)


def _show(checkpoint: Opened) -> None:
    """Make a checkpoint the open one, and have the address bar name it."""
    st.session_state["opened"] = checkpoint
    st.session_state["relink"] = checkpoint.reference


def _follow_link() -> str | None:
    """Open what the address bar names, at first and after going back or forward.

    Returns:
        What the user has to agree to first; None: nothing.
    """
    state = st.session_state
    if "relink" in state:
        if "linked" not in state and session.REFERENCE not in state:  # a session's first run follows its address
            st.query_params[session.REFERENCE] = state["linked"] = state["relink"]
            st.rerun()
        state["linked"] = state[session.REFERENCE] = state["relink"]
    elif state.get("linked") and session.REFERENCE not in st.query_params:
        state[session.REFERENCE] = state["linked"]  # changing pages can lose what a program set
    with st.container(key="address_bar"):  # never seen: it ties the link to the checkpoint
        st.html(STYLE)
        link = st.text_input("Link", key=session.REFERENCE, bind="query-params")
    state.pop("relink", None)  # only now: a run that ends before loses what a program set
    if "opened" in state and link in (state["linked"], ""):  # "": a page was chosen by its bare address
        return None
    if agreeing.must_ask(link):
        return link
    checkpoint = session.open_checkpoint(link or running.first())
    if checkpoint and "linked" in state:
        arrivals.forget_refusal("sidebar")
    state["linked"] = link
    if checkpoint is None and "opened" in state:
        state["relink"] = state["opened"].reference
        st.rerun()
    return None


def _ask_about(link: str) -> NoReturn:
    """Ask whether to open what a link names; the page ends here."""
    checkpoint: Opened | None = st.session_state.get("opened")
    other = checkpoint.reference if checkpoint else running.FIRST
    instead = f"Keep {literal(checkpoint.name)}" if checkpoint else f"Open {other} instead"
    agreeing.ask(link, instead, lambda: session.want(other))
    st.stop()


def _show_refusal() -> None:
    sentence = st.session_state.get("refusal")
    if sentence is None:
        return
    st.error(literal(sentence), icon=":material/block:")
    reference, about = st.session_state.get("refused", ("", ""))
    offered = about == sentence and folders.offer_inside(reference)
    checkpoint = st.session_state.get("opened")
    with st.container(horizontal=True, vertical_alignment="center"):
        if checkpoint is None:
            kind = "secondary" if offered else "primary"
            st.button(f"Open {running.FIRST}", type=kind, on_click=session.want, args=(running.FIRST,))
        else:
            st.button("Dismiss", on_click=st.session_state.pop, args=("refusal",))
            st.caption(f"**{literal(checkpoint.name)}** stays open.")
    if checkpoint is None:
        st.stop()


def _offer_checkpoints() -> None:
    checkpoint: Opened | None = st.session_state.get("opened")
    own = {f"upload:{stored.fingerprint}": stored.name for stored in uploads.list_uploads(settings(), sign_in.asker())}
    names = {name: name for name in (*DEMOS, *ADAPTERS)} | own
    if checkpoint:
        names.setdefault(checkpoint.reference, checkpoint.name)
    st.session_state["picked"] = checkpoint.reference if checkpoint else None
    st.selectbox(
        "Checkpoint",
        list(names),
        format_func=lambda reference: _label(reference, names),
        key="picked",
        on_change=_take_picked,
        placeholder="Choose one",
    )
    if trouble := uploads.trouble(settings()):
        st.caption(f":material/cloud_off: {literal(trouble)} Uploads of other servers may be missing from the list.")
    if checkpoint is None:
        return
    if demo := (DEMOS | ADAPTERS).get(checkpoint.reference):
        st.caption(demo.description)
    elif checkpoint.adapter:
        adapting.draw(checkpoint)
    elif checkpoint.on_hub_nbytes:
        fetching.draw(checkpoint, session.fetch)
    elif checkpoint.reference in own:
        managing.draw(checkpoint)


def _label(reference: str, names: dict[str, str]) -> str:
    """Names are people's own and may be the same twice: then digits tell them apart."""
    name = names[reference]
    if sum(other == name for other in names.values()) == 1:
        return name
    origin = origin_of(reference)
    return f"{name} ({origin.digits[:8] or origin.word})"


def _take_picked() -> None:
    if _page() == st.session_state["drawn"]:  # else a page's link was clicked before the box had what a program set
        session.want(st.session_state["picked"])


def _page() -> str | None:
    context = get_script_run_ctx()
    return context.page_script_hash if context else None


def _offer_ways() -> None:
    ways = ["Files", "Folder", "Hub", *(["Path"] if paths_are_open() else [])]
    taken = st.session_state.get(WAY, "Files")
    way = st.segmented_control("From", ways, default=taken if taken in ways else "Files", required=True, key="way")
    st.session_state[WAY] = way  # Streamlit forgets what fields hold where a program changes pages; browsers do not
    if way == "Hub":
        _ask_for_model()
    elif way == "Path":
        folders.draw()
    else:
        uploading.draw("sidebar", "Folder" if way == "Folder" else "Files")
        under_way.draw()
        uploading.explain()
    if not paths_are_open():
        st.caption(literal(folders.why_closed()))


def _ask_for_model() -> None:
    with st.form("open hub", border=False):
        value = st.text_input("Hub id", placeholder="org/name", key="hub typed").strip()
        st.caption("Or org/name@revision, or the address of a model's page. Code in the repository never runs.")
        if st.form_submit_button("Open") and value:
            try:
                session.want(f"hub:{named_by(value)}")
            except CheckpointError as error:
                st.session_state["refusal"] = str(error)
