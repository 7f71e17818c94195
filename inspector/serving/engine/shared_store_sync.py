"""Copy uploads between the shared store and this machine's, in threads of the engine's process.

Workers do not do this: a process that reads strangers' files has neither an object store's keys
nor a network. The threads copy and hash bytes but never parse them. A job waits until its
checkpoint has arrived, and opening an upload ends only once the shared store has it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from inspector.errors import CancelledError, InspectorError, WorkerError
from inspector.progress import no_progress
from inspector.results.checkpoint import Opened
from inspector.serving.engine.jobs import LocalJob
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.serving.log import digest, record
from inspector.serving.storing import registry
from inspector.serving.storing.marks import mark, mark_to_share
from inspector.serving.storing.origins.incoming import Incoming
from inspector.serving.storing.owners import read_owners
from inspector.serving.storing.shared import publishing as shared
from inspector.serving.storing.shared.listing import drop_copies, listing
from inspector.serving.storing.shared.remote import LISTED, open_remote
from inspector.settings import Settings
from inspector.store.keeping.shared import is_marked, is_waiting
from inspector.store.manifests.documents import is_fingerprint
from inspector.store.manifests.entries import MANIFEST, OPENED, UPLOADS
from inspector.store.origins.upload import Upload
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints

LOG = logging.getLogger("inspector.serving.engine")
POLL_SECONDS = 0.1
SHARE_SECONDS = 10.0, 60.0  # after which a store out of reach is tried again: at first, and at most
REFUSED_SECONDS = 60.0, 3_600.0  # likewise an upload that the store, or its own files, refuse
NOT_COPIED = "The upload could not be copied: try again."
NOT_SHARED = "The upload is only on this server so far, and not yet in the shared store: "


@dataclass(frozen=True, slots=True)
class EngineCallbacks:
    """Functions of the engine that its carrier calls."""

    open: Callable[[CheckpointRef], LocalJob]
    proceed: Callable[[LocalJob], None]  # what the job is about is here: let it wait for a worker
    settle: Callable[[LocalJob, Any, int], None]  # with an outcome and its size


class SharedStoreSync:
    """Fetches missing uploads and publishes new ones; idle without a shared store."""

    def __init__(self, settings: Settings, hooks: EngineCallbacks) -> None:
        self._settings = settings
        self._hooks = hooks
        self._under_way: set[LocalJob] = set()
        self._fetched: set[LocalJob] = set()  # jobs that open what came from the shared store
        self._publishing: set[str] = set()  # fingerprints that jobs copy there
        self._logged: dict[str, str] = {}  # fingerprint -> why it was not shared
        self._later: dict[
            str, tuple[float, float]
        ] = {}  # fingerprint -> when it is due (time.monotonic()), and its pause

    @property
    def jobs(self) -> tuple[LocalJob, ...]:
        """Jobs that wait for bytes."""
        return tuple(self._under_way)

    def brings(self, job: LocalJob) -> bool:
        """Start to fetch what a job needs, if this machine lacks it; the job then waits."""
        if self._settings.store is None or not any(self._lacking(job.request)):
            return False
        self._start(self._fetch, job)
        return True

    def stores(self, job: LocalJob, opened: Opened, nbytes: int) -> bool:
        """Start to publish the upload that a job opened, if the shared store may lack it."""
        entry = self._settings.home / UPLOADS / opened.fingerprint
        if self._settings.store is None or not entry.is_dir() or read_owners(entry) is not None:
            return False
        if job in self._fetched:
            mark(entry, self._settings)
            return False
        arrived = isinstance(job.request, OpenRequest) and job.request.reference.origin.arrives
        if not arrived and is_marked(entry, self._settings):
            return False
        self._publishing.add(opened.fingerprint)
        mark_to_share(entry, self._settings)
        job.report(Progress(None, "Copying to the shared store"))
        self._start(self._publish, job, opened, nbytes)
        return True

    def keep_sharing(self, ended: threading.Event) -> None:
        """Share what could not be shared when it was uploaded, as soon as that is possible; returns at the end.

        Args:
            ended: Set when the engine ends.
        """
        pause, longest = SHARE_SECONDS
        while self._settings.store and not ended.wait(pause):
            try:
                self._share_waiting(ended)
                pause = SHARE_SECONDS[0]
            except InspectorError:
                pause = min(2 * pause, longest)  # readiness tells why
            except Exception as error:
                LOG.warning("sharing uploads failed: %s", type(error).__name__)

    def _share_waiting(self, ended: threading.Event) -> None:
        waiting = [
            stored.fingerprint
            for stored in list_checkpoints(self._settings)
            if is_waiting(self._settings.home / UPLOADS / stored.fingerprint, self._settings)
            if stored.fingerprint not in self._publishing and self._is_due(stored.fingerprint)
        ]
        if waiting:
            open_remote(self._settings).size(LISTED)  # out of reach: that is no upload's fault
        for fingerprint in waiting:
            if not ended.is_set():
                self._share(fingerprint, ended)

    def _share(self, fingerprint: str, ended: threading.Event) -> None:
        """Share one upload; those that cannot be shared keep no other one waiting."""
        try:
            carrying = shared.Carrying(no_progress, ended.is_set)
            shared.publish(fingerprint, settings=self._settings, carrying=carrying)
        except CancelledError:
            return
        except InspectorError as error:
            self._put_off(fingerprint, str(error))
        except Exception as error:
            LOG.warning("sharing an upload failed: %s", type(error).__name__)
            self._put_off(fingerprint, NOT_COPIED)
        else:
            self._later.pop(fingerprint, None)
            record("shared", checkpoint=digest(fingerprint))
            listing(self._settings).ask_again()

    def _put_off(self, fingerprint: str, reason: str) -> None:
        self._log_refusal(fingerprint, reason)
        pause, longest = REFUSED_SECONDS
        if fingerprint in self._later:
            pause = min(2 * self._later[fingerprint][1], longest)
        self._later[fingerprint] = time.monotonic() + pause, pause

    def _is_due(self, fingerprint: str) -> bool:
        due, _ = self._later.get(fingerprint, (0.0, 0.0))
        return time.monotonic() >= due

    def _log_refusal(self, fingerprint: str, reason: str) -> None:
        """Say once in the log why an upload is not shared, however often it is tried."""
        if self._logged.get(fingerprint) != reason:
            self._logged[fingerprint] = reason
            record("not shared", checkpoint=digest(fingerprint), reason=reason)

    def _start(self, work: Callable[..., None], job: LocalJob, *arguments: Any) -> None:
        self._under_way.add(job)
        threading.Thread(target=self._run, args=(work, job, *arguments), name="carrier", daemon=True).start()

    def _run(self, work: Callable[..., None], job: LocalJob, *arguments: Any) -> None:
        try:
            work(job, *arguments)
        except InspectorError as error:
            self._hooks.settle(job, error, 0)
        except Exception as error:
            LOG.warning("carrying an upload failed: %s", type(error).__name__)
            self._hooks.settle(job, WorkerError(NOT_COPIED), 0)
        finally:
            self._under_way.discard(job)
            self._fetched.discard(job)

    def _lacking(self, request: OpenRequest | RunRequest) -> Iterator[str]:
        """Fingerprints, or their first digits, that a request needs and this machine lacks."""
        if isinstance(request, OpenRequest):
            if digits := request.reference.origin.digits:
                yield from self._unless_here(digits, (UPLOADS,))
            return
        for fingerprint in request.fingerprints:
            if is_fingerprint(fingerprint):
                yield from self._unless_here(fingerprint, (UPLOADS, OPENED))

    def _unless_here(self, digits: str, kinds: tuple[str, ...]) -> Iterator[str]:
        pattern = digits if is_fingerprint(digits) else f"{digits}*"
        folders = [self._settings.home / kind for kind in kinds]
        if not any(any(folder.glob(f"{pattern}/{MANIFEST}")) for folder in folders):
            yield digits

    def _fetch(self, job: LocalJob) -> None:
        with suppress(InspectorError):  # what was deleted elsewhere goes from here as well
            drop_copies(open_remote(self._settings), self._settings)
        if isinstance(job.request, RunRequest):
            self._open_first(job)
            return
        reference = job.request.reference
        arriving = shared.fetch(reference.value, settings=self._settings, carrying=self._carrying(job))
        try:
            self._fetched.add(job)
            job.turn_to(OpenRequest(CheckpointRef(Incoming.word, arriving)))
            self._hooks.proceed(job)
            job.wait()
        finally:
            registry.discard_upload(arriving, settings=self._settings)

    def _open_first(self, job: LocalJob) -> None:
        for fingerprint in self._lacking(job.request):
            opening = self._hooks.open(CheckpointRef(Upload.word, fingerprint))
            while not opening.wait(POLL_SECONDS):
                job.report(opening.progress)
                if job.settled:  # others may wait for the same: it goes on
                    return
            opening.result()
        self._hooks.proceed(job)

    def _publish(self, job: LocalJob, opened: Opened, nbytes: int) -> None:
        try:
            shared.publish(opened.fingerprint, settings=self._settings, carrying=self._carrying(job))
        except CancelledError:
            raise
        except InspectorError as error:
            job.keep = False  # opening it again tries again
            self._log_refusal(opened.fingerprint, str(error))
            warnings = (*opened.warnings, f"{NOT_SHARED}{_lower(str(error))}")
            opened = replace(opened, warnings=warnings)
        finally:
            self._publishing.discard(opened.fingerprint)
        listing(self._settings).ask_again()
        self._hooks.settle(job, opened, nbytes)

    def _carrying(self, job: LocalJob) -> shared.Carrying:
        return shared.Carrying(
            progress=lambda fraction, text: job.report(Progress(fraction, text)), stopped=lambda: job.settled
        )


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
