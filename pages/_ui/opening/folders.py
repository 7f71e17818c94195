"""Open a checkpoint by its path: typed, or picked from those that lie on one's own machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from inspector.errors import CheckpointError
from inspector.serving.finding import FolderSearch, FoundFolder
from inspector.serving.place import open_roots, served_settings, serves_others
from inspector.settings import EVERYWHERE, settings
from inspector.store.origins.around import step_of
from inspector.store.origins.hub import hub_folder
from inspector.store.origins.origin import Reach
from inspector.store.reference import origin_of
from inspector.text import literal, plural, shorten_middle, visible
from pages._ui import address, session

POLL_SECONDS = 0.5
LABEL_LENGTH = 90
PICKED = "folder picked"
INSIDE = "folder inside"


def why_closed() -> str:
    """Which settings open the way in, where it is closed."""
    if not serves_others():
        return "The cluster cannot open folders by path. To allow folders below FOLDER, set INSPECTOR_ROOTS=FOLDER."
    needed = "INSPECTOR_PATHS=1" if settings().roots else "INSPECTOR_ROOTS=FOLDER and INSPECTOR_PATHS=1"
    return f"This server serves others, so folders cannot be opened by path here. To allow this, set {needed}."


def draw() -> None:
    """Ask for a checkpoint of this machine."""
    if not serves_others():
        with st.container():  # the field below keeps its place, and what is typed in it, when the search ends
            _offer_found()
    placeholder, explanation = _hints()
    with st.form("open path", border=False):
        value = st.text_input("Folder, archive or weight file", placeholder=placeholder, key="path typed").strip()
        st.caption(literal(explanation))
        if st.form_submit_button("Open") and value:
            session.want(f"path:{_meant(value)}")


def offer_inside(reference: str) -> bool:
    """Offer the checkpoints in a folder that was named and holds several: of a training run, the latest first.

    Returns:
        Whether there are any.
    """
    try:
        found = origin_of(reference).inside(Reach(served_settings(), restrict_paths=True))
    except CheckpointError:  # no reference, or a folder that is no longer there
        return False
    if not found:
        return False
    first, *others = found
    latest = step_of(_name(first)) is not None
    with st.container(horizontal=True, vertical_alignment="bottom", key="inside"):
        st.button(
            f"Open {literal(_name(first))}{', the latest' if latest else ''}",
            type="primary",
            on_click=session.want,
            args=(first,),
        )
        st.session_state[INSIDE] = None
        st.selectbox(
            "Another one",
            others,
            format_func=_name,
            key=INSIDE,
            on_change=_take,
            args=(INSIDE,),
            placeholder=plural(len(others), "checkpoint"),
            width=220,
        )
        if latest:
            inputs = {"checkpoint": first, "run": reference}
            address.link("Follow the run on Snapshots", "snapshots", key="follow", icon="timeline", inputs=inputs)
    return True


def _name(reference: str) -> str:
    """The last part of a path."""
    return reference.rpartition("/")[2]


def _hints() -> tuple[str, str]:
    """What stands in the empty field and below it; others are not told where folders lie."""
    if serves_others():
        return "folder/checkpoint", "A path below one of the folders that this server may open."
    if open_roots() == EVERYWHERE:
        return "~/models/checkpoint", "Opened in place: nothing is uploaded or copied."
    roots = ", ".join(map(str, open_roots()))
    return roots, f"Opened in place, below {roots}."


def _meant(typed: str) -> str:
    """A path as a shell reads it, on one's own machine."""
    if serves_others() or open_roots() != EVERYWHERE:
        return typed
    return str(Path(os.path.expanduser(typed)).absolute())  # noqa: PTH111 - it refuses no name


def _places() -> Iterable[Path]:
    """Where checkpoints are looked for."""
    if open_roots() != EVERYWHERE:
        return open_roots()
    return [place.resolve() for place in (Path.cwd(), hub_folder(), Path.home())]


@st.cache_resource(show_spinner=False)
def _search() -> FolderSearch:
    return FolderSearch(_places)


def _offer_found() -> None:
    search = _search()
    found = {each.reference: each for each in search.found()}
    labels = _labels(found.values())
    if search.under_way:
        _wait_for(search)
    if not found:
        st.caption("No folder that looks like a checkpoint was found." if not search.under_way else "")
        return
    st.session_state[PICKED] = None
    st.selectbox(
        "Found on this machine",
        list(found),
        format_func=lambda reference: labels.get(reference) or str(reference),
        key=PICKED,
        on_change=_take,
        args=(PICKED,),
        placeholder=f"{plural(len(found), 'checkpoint')}, newest first",
        help="Folders that hold a config.json and weights, found in the hub's cache, in the folder where the server "
        "was started, and in your home folder.",
    )


def _labels(found: Iterable[FoundFolder]) -> dict[str, str]:
    """Plain text for each: a name, and where it lies; names are whoever's who made the folder."""
    found = list(found)
    names = Counter((each.name, each.of_hub) for each in found)
    return {each.reference: _label(each, names[each.name, each.of_hub]) for each in found}


def _label(found: FoundFolder, same: int) -> str:
    version = f" ({found.path.name[:8]})" if found.of_hub and same > 1 else ""
    where = "hub cache" if found.of_hub else _short(found.path.parent)
    return shorten_middle(visible(f"{found.name}{version} · {where}"), LABEL_LENGTH)


def _short(folder: Path) -> str:
    home = Path.home()
    return f"~/{folder.relative_to(home)}".removesuffix("/.") if folder.is_relative_to(home) else str(folder)


@st.fragment(run_every=POLL_SECONDS)
def _wait_for(search: FolderSearch) -> None:
    """Say that the search goes on, and have the page drawn again when it has ended."""
    if not search.under_way:
        st.rerun()
    st.caption("Looking for checkpoints on this machine…")


def _take(key: str) -> None:
    if (reference := st.session_state[key]) is not None:
        session.want(reference)
