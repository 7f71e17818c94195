"""What the browser has uploaded and nobody has opened yet, in its order, for each input.

A run can end at any call of Streamlit, and the next one goes on where it ended. So an arrival
stays in its queue until it is opened or refused; what it holds goes with it, whatever happens.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Literal

import streamlit as st
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import ScriptRunContext, get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from inspector.errors import CheckpointError, InspectorError
from inspector.results.checkpoint import Opened
from inspector.serving.bodies import ReceivedUpload
from inspector.serving.engine.protocol import Job
from inspector.serving.notice import part_of_begun_work
from inspector.serving.storing import registry, room
from inspector.serving.storing.arriving import Received
from inspector.serving.uploads import PENDING, browser_of
from inspector.settings import settings
from inspector.store.disk import disk_sentence
from inspector.store.reference import CheckpointRef
from inspector.text import bytes_text
from pages._ui import session, sign_in

Place = Literal["sidebar", "snapshots", "second"]  # where files can be given
QUEUES = "arrived"
RECALLED = "recalled"
INTERRUPTED = "An upload was interrupted before it was complete. Nothing was stored: upload it again."


class Arrival:
    """Files that were uploaded together.

    Args:
        files: Their names, with what is on the disk or in memory.
        kind: `incoming`, or `snapshots` for an archive of several checkpoints.
    """

    def __init__(self, files: Sequence[tuple[str, Received | bytes]], kind: str) -> None:
        self._files = files
        self._kind = kind
        self._upload: str | None = None
        self._opening: Job[Opened] | None = None
        self._discard: Callable[[], object] | None = None

    def store(self) -> str:
        """Make the files one upload in the store, once.

        Returns:
            The reference by which the upload is opened.

        Raises:
            InspectorError: If there is no room for it, or a name is too long.
            OSError: If the disk refuses.
        """
        if self._upload is None:
            nbytes = sum(each.nbytes if isinstance(each, Received) else len(each) for _, each in self._files)
            if nbytes > settings().upload_nbytes:
                raise CheckpointError(
                    f"The upload has {bytes_text(nbytes)}, but the limit is {bytes_text(settings().upload_nbytes)}: "
                    "open it by hub id or path instead."
                )
            for _, each in self._files:
                if isinstance(each, Received) and each.trouble:
                    raise each.trouble
            self._write()
        return f"{self._kind}:{self._upload}"

    def open(self) -> Opened:
        """Have it opened, once, and wait for it: what was refused is not there for a second try.

        Raises:
            InspectorError: If it is refused or stopped, or as `store`.
            OSError: As `store`.
        """
        reference = self.store()
        if self._opening is None:
            with part_of_begun_work():  # it has come, and would be lost
                self._opening = session.engine().open(CheckpointRef.parse(reference))
        return session.wait_for_opening(self._opening, reference)

    def release(self) -> None:
        """Let go of memory and disk; the store keeps what was opened elsewhere."""
        self._files = ()
        if self._discard:
            self._discard()

    def _write(self) -> None:
        in_memory = sum(len(each) for _, each in self._files if isinstance(each, bytes))  # others count already
        arrived = sum(each.nbytes for _, each in self._files if isinstance(each, Received))
        upload, place = room.reserve_upload(in_memory, settings(), sign_in.sender(), arrived=arrived)
        # A session can end before it has opened this: then nobody else lets go of it.
        self._discard = weakref.finalize(self, registry.discard_upload, upload, settings=settings())
        for name, each in self._files:
            if isinstance(each, bytes):
                registry.write_upload(place, name, each)
            elif each.path:
                registry.move_upload(place, name, each.path)
        self._upload, self._files = upload, ()


def take(place: Place, files: Sequence[UploadedFile], *, kind: str, strays: Sequence[UploadedFile] = ()) -> None:
    """Move files out of the browser's input into the queue of a place.

    Args:
        strays: Those among them that are not opened; the page names them.
    """
    forget_refusal(place)
    st.session_state[_ignored(place)] = tuple(file.name for file in strays), None
    if place == "sidebar":
        st.session_state.pop("wanted", None)  # what is uploaded later is shown instead
    context = get_script_run_ctx()
    opened = [(file.name, _content(file, context)) for file in files if file not in strays]
    _queue(place).append(Arrival(opened, kind))
    if context is None:
        return
    PENDING.end(context.session_id, [file.file_id for file in files])
    if browser := browser_of(st.context.cookies):
        PENDING.hold(browser, context.session_id, st.session_state[QUEUES])
    if isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        for file in files:  # Streamlit would keep it until the session ends
            context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)


def _content(file: UploadedFile, context: ScriptRunContext | None) -> Received | bytes:
    """What arrived, by the receipt that Streamlit keeps for it; without one, the bytes."""
    records = context.uploaded_file_mgr.get_files(context.session_id, [file.file_id]) if context else []
    receipts = (each.data.received for each in records if isinstance(each.data, ReceivedUpload))
    return next((each for each in receipts if isinstance(each, Received)), None) or file.getvalue()


def open_all(place: Place, then: Callable[[Opened], None]) -> None:
    """Store and open what has arrived at a place, one after the other.

    Args:
        then: Takes each that could be opened. It calls nothing that can end the run.
    """
    queue = _queue(place)
    while queue:
        arrival = queue[0]
        try:
            checkpoint = arrival.open()
        except (InspectorError, OSError) as error:
            st.session_state[_refusal(place)] = _sentence(error)
            _drop(arrival, queue)
        except Exception:
            _drop(arrival, queue)  # or every later run would fail in the same way
            raise
        else:
            then(checkpoint)
            _drop(arrival, queue)
        names, _ = st.session_state.get(_ignored(place), ((), None))
        st.session_state[_ignored(place)] = names, session.shown()


def recall() -> None:
    """Take over what this browser's last page had not opened when it was reloaded.

    What had not reached the server in full is lost, and the sidebar says so.
    """
    state, context = st.session_state, get_script_run_ctx()
    if context is None:
        return
    PENDING.go_on(context.session_id)
    browser = browser_of(st.context.cookies)
    if RECALLED in state or browser is None:
        return
    state[RECALLED] = True
    left = PENDING.claim(browser)
    for queues in left.waiting:
        for place, queue in queues.items():
            _queue(place).extend(queue)
            queue.clear()  # should its session come back, it opens nothing twice
    if any(state.get(QUEUES, {}).values()):
        PENDING.hold(browser, context.session_id, state[QUEUES])
    if left.interrupted:
        state[_refusal("sidebar")] = INTERRUPTED


def refusal(place: Place) -> str | None:
    """Why the last upload at a place was not opened."""
    return st.session_state.get(_refusal(place))


def forget_refusal(place: Place) -> None:
    """Stop saying why an upload was not opened: the next one has come."""
    st.session_state.pop(_refusal(place), None)


def ignored(place: Place) -> tuple[str, ...]:
    """Names of what came with the last upload at a place and was not opened, until another checkpoint is shown."""
    names, beside = st.session_state.get(_ignored(place), ((), None))
    return names if beside in (None, session.shown()) else ()


def _ignored(place: Place) -> str:
    return f"ignored {place}"


def _refusal(place: Place) -> str:
    return "refusal" if place == "sidebar" else f"refusal {place}"


def _queue(place: Place) -> list[Arrival]:
    return st.session_state.setdefault(QUEUES, {}).setdefault(place, [])


def _drop(arrival: Arrival, queue: list[Arrival]) -> None:
    if arrival in queue:  # a reloaded page can have taken it over
        queue.remove(arrival)
    arrival.release()
    context = get_script_run_ctx()
    if context and not any(st.session_state[QUEUES].values()):
        PENDING.let_go(context.session_id)


def _sentence(error: InspectorError | OSError) -> str:
    if isinstance(error, InspectorError):
        return str(error)
    return disk_sentence(error, settings()) or (
        f"The upload could not be stored ({error.strerror}): free some space, then try again."
    )
