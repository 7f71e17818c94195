"""Take files from the browser into the store, and give their memory back."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from inspector.errors import CheckpointError, InspectorError
from inspector.figures.text import bytes_text, plural
from inspector.settings import MB, settings
from inspector.store import quota, registry
from inspector.store.disk import disk_sentence
from inspector.store.names import is_archive
from serving.place import serves_others

HINT = (
    "config.json, weights (.safetensors or .bin, sharded or not) and tokenizer files, or one "
    ".zip, .tar or .tar.gz that holds them."
)
OTHER_WAY = (
    "An upload passes through this server's memory: for several gigabytes, a hub id is the "
    "better way, or a path below INSPECTOR_ROOTS."
)
SHARED = (
    "Everybody who may use this server sees what is uploaded here, and can rename and delete it."
)


def draw(*, folder: bool) -> str | None:
    """Draw the file input.

    Returns:
        The reference of an upload that has just arrived and is to be opened.
    """
    turn = st.session_state.setdefault("upload turn", 0)
    files: Sequence[UploadedFile] = st.file_uploader(
        "Checkpoint folder" if folder else "Checkpoint files",
        accept_multiple_files="directory" if folder else True,
        key=f"{'folder' if folder else 'files'} {turn}",
        max_upload_size=max(settings().upload_nbytes // MB, 1),
        help=OTHER_WAY,
    )
    st.caption(f"{HINT} {SHARED}" if serves_others() else HINT)
    if not files:
        return None
    complete = folder or (len(files) == 1 and is_archive(files[0].name))
    if not complete and not st.button(f"Open {plural(len(files), 'file')}", type="primary"):
        st.caption("Add the files that are missing, then open them.")
        return None
    st.session_state["upload turn"] = turn + 1  # an empty input next time
    return _receive(files)


def draw_archive() -> str | None:
    """Draw the input for an archive of several snapshots; gives its reference when it has come."""
    turn = st.session_state.setdefault("snapshots turn", 0)
    file: UploadedFile | None = st.file_uploader(
        "Archive of snapshots",
        type=["zip", "tar", "gz", "tgz"],
        key=f"snapshots {turn}",
        max_upload_size=max(settings().upload_nbytes // MB, 1),
        help=OTHER_WAY,
    )
    if file is None:
        return None
    st.session_state["snapshots turn"] = turn + 1  # an empty input next time
    reference = _receive([file])
    return reference and reference.replace("incoming:", "snapshots:")


def _receive(files: Sequence[UploadedFile]) -> str | None:
    upload = None
    try:
        nbytes = sum(file.size for file in files)
        if nbytes > settings().upload_nbytes:
            raise CheckpointError(
                f"The upload has {bytes_text(nbytes)} and at most "
                f"{bytes_text(settings().upload_nbytes)} are taken: open it by a hub id or a path."
            )
        with st.spinner("Storing the upload"):
            upload, place = quota.reserve_upload(nbytes, settings())
            for file in files:
                registry.write_upload(place, file.name, file.getvalue())
    except (InspectorError, OSError) as error:
        st.session_state["refusal"] = _sentence(error)
        if upload:
            registry.discard_upload(upload, settings=settings())
        return None
    finally:
        _free(files)
    return f"incoming:{upload}"


def _sentence(error: InspectorError | OSError) -> str:
    if isinstance(error, InspectorError):
        return str(error)
    return disk_sentence(error, settings()) or (
        f"The upload could not be stored ({error.strerror}): free some space, then try again."
    )


def _free(files: Sequence[UploadedFile]) -> None:
    """Let go of the bytes at once; Streamlit would hold them until the session ends."""
    context = get_script_run_ctx()
    manager = context.uploaded_file_mgr if context else None
    if context and isinstance(manager, MemoryUploadedFileManager):
        for file in files:
            manager.remove_file(session_id=context.session_id, file_id=file.file_id)


def release(reference: str) -> None:
    """Let go of an upload that was staged or refused."""
    kind, _, upload = reference.partition(":")
    if kind in ("incoming", "snapshots"):
        registry.discard_upload(upload, settings=settings())
