"""Start the engine that the settings name; no module above this one knows which it is."""

from __future__ import annotations

from inspector.catalog import CATALOG
from inspector.engine.local import LocalEngine
from inspector.engine.protocol import Engine
from inspector.engine.starting.ahead import functions_for
from inspector.settings import Settings


def start_engine(
    settings: Settings,
    *,
    restrict_paths: bool = True,
    spare: bool = True,
    only: str | None = None,
    reads_all: bool = False,
) -> Engine:
    """Start an engine.

    Args:
        settings: Which one, its limits, and where the store is.
        restrict_paths: True: folders are opened under the allowed roots only.
        spare: True: keep one process warm for the next checkpoint.
        only: The verb of the one question that will be asked. What it imports is imported while the checkpoint is
            opened, or put into the store, and nothing else.
        reads_all: True: that question reads the files from end to end; they are fetched from the disk meanwhile.
    """
    if settings.engine == "ray":
        from inspector.engine.ray.engine import RayEngine

        return RayEngine(settings, restrict_paths=restrict_paths, spare=spare)
    if only is None:
        return LocalEngine(settings, restrict_paths=restrict_paths, spare=spare)
    apart = not CATALOG[only].light
    functions = functions_for(only, reads_all=reads_all)
    return LocalEngine(settings, restrict_paths=restrict_paths, spare=spare, apart=apart, functions=functions)
