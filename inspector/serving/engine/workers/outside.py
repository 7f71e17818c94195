"""Which files outside the store a worker may read: those of the checkpoints that it is asked about.

A sandbox cannot be widened, so the server finds these files, by their names alone, before the worker
starts. A worker that is asked about other files later is replaced by one that may read them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import inspector
from inspector.errors import InspectorError
from inspector.serving.engine.manifest_check import load_known
from inspector.serving.engine.wire import OpenRequest, RunRequest
from inspector.settings import Settings
from inspector.store.files import Place, place_of
from inspector.store.manifests.documents import is_fingerprint
from inspector.store.origins.origin import Reach

Outside = frozenset[Place]
NOTHING: Outside = frozenset()
PACKAGE = Path(inspector.__file__).resolve().parent  # every worker reads it, and the demos in it


def find_outside(request: OpenRequest | RunRequest, settings: Settings, *, restrict_paths: bool) -> Outside:
    """Find what a worker must read outside the store to answer a request.

    Args:
        request: To open a checkpoint, or about one or two.
        settings: The server's.
        restrict_paths: As in `open_checkpoint`.

    Returns:
        Files, and the folder that is opened, whose names are listed; as far as they are there.
    """
    if settings.confinement == "off":
        return NOTHING
    if isinstance(request, OpenRequest):
        found = set[Place]()
        with suppress(OSError, RuntimeError, ValueError, InspectorError):  # the worker says what is wrong
            for path in request.reference.origin.reads(Reach(settings, restrict_paths, request.fetched)):
                found.add(place_of(path))
    else:
        checkpoints = (load_known(each, settings) for each in request.fingerprints if is_fingerprint(each))
        files = (file for each in checkpoints if each for file in each.manifest.files)
        found = {(file.path, file.stamp[2], file.stamp[1]) for file in files if file.stamp}
    return frozenset(place for place in found if not place[0].is_relative_to(PACKAGE))
