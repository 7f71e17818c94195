"""The inputs that take files from the browser: the one way in for every page.

A file moves out of its input before the page is drawn, and the page draws an empty one under
another key: so each input is ready for the next file at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from inspector.serving.place import serves_others
from inspector.settings import MB, settings
from inspector.store.names import file_format, is_archive
from inspector.text import literal, plural
from pages._ui import sign_in
from pages._ui.opening import arrivals, under_way
from pages._ui.opening.arrivals import Place

Way = Literal["Files", "Folder", "Archive"]
HINT = (
    "config.json, weights (.safetensors, .bin or .gguf, sharded or not) and tokenizer files, or one .zip, .tar or "
    ".tar.gz that holds them."
)
OTHER_WAY = "Files are copied to this server. A folder path or a hub id avoids the copy."
SHARED = "Everyone with access to this server can see, rename and delete uploads."
YOURS = "Only you see an upload in the list; anyone who has its link can open it."
LABELS: dict[Way, str] = {"Files": "Checkpoint files", "Folder": "Checkpoint folder", "Archive": "Archive of snapshots"}


def draw(place: Place, way: Way) -> None:
    """Draw an input for files; what it takes is opened by `arrivals.open_all`."""
    turn = st.session_state.setdefault(_turn(place), 0)
    key = f"{place} {way} {turn}"
    st.file_uploader(
        LABELS[way],
        type=["zip", "tar", "gz", "tgz"] if way == "Archive" else None,
        accept_multiple_files={"Files": True, "Folder": "directory", "Archive": False}[way],
        key=key,
        max_upload_size=max(settings().upload_nbytes // MB, 1),
        help=OTHER_WAY,
        on_change=_take_complete,
        args=(place, way, key),
    )
    if files := _given(key):
        st.button(
            f"Open {plural(len(files), 'file')}",
            key=f"open {key}",
            type="primary",
            on_click=_take,
            args=(place, way, key),
        )
        st.caption("If any files are missing, add them first.")
    if names := arrivals.ignored(place):
        st.caption(f"Ignored: {', '.join(literal(name) for name in names)}.")


def explain() -> None:
    """Say which files make a checkpoint, and who will see them."""
    whose = (YOURS if sign_in.sender() else SHARED) if serves_others() else ""
    st.caption(f"{HINT} {whose}")


def show_refusal(place: Place) -> None:
    """Say why the last upload was not opened, until the next one comes."""
    if sentence := arrivals.refusal(place):
        st.error(literal(sentence), icon=":material/block:")


def _take_complete(place: Place, way: Way, key: str) -> None:
    """Take what needs nothing more; loose files wait for the button, unless the page shows them already."""
    files = _given(key)
    if not files:
        return
    arrivals.forget_refusal(place)
    names = [file.name for file in files if file not in _strays(files)]
    if way != "Files" or under_way.is_shown(names) or (len(names) == 1 and is_archive(names[0])):
        _take(place, way, key)


def _take(place: Place, way: Way, key: str) -> None:
    files = _given(key)
    if files:
        arrivals.take(place, files, kind="snapshots" if way == "Archive" else "incoming", strays=_strays(files))
        st.session_state[_turn(place)] += 1  # an empty input in this very run


def _strays(files: Sequence[UploadedFile]) -> list[UploadedFile]:
    """What came along with one archive and is no file of a checkpoint."""
    beside = [file for file in files if not is_archive(file.name)]
    alone = len(files) - len(beside) == 1 and all(file_format(file.name) is None for file in beside)
    return beside if alone else []


def _given(key: str) -> list[UploadedFile]:
    """The files in an input; one that was taken before leaves a mark there, which is none."""
    value = st.session_state.get(key)
    files: Sequence[object] = value if isinstance(value, list) else [value]
    return [file for file in files if isinstance(file, UploadedFile)]


def _turn(place: Place) -> str:
    return f"turn {place}"
