"""Start the engine that the settings name; no module above this one knows which it is."""

from __future__ import annotations

from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.protocol import Engine
from inspector.settings import Settings


def start_engine(settings: Settings, *, restrict_paths: bool = True, spare: bool = True) -> Engine:
    """Start an engine.

    Args:
        settings: Which one, its limits, and where the store is.
        restrict_paths: True: folders are opened under the allowed roots only.
        spare: True: keep one process warm for the next checkpoint.
    """
    if settings.engine == "ray":
        from inspector.serving.engine.ray.engine import RayEngine

        return RayEngine(settings, restrict_paths=restrict_paths, spare=spare)
    return LocalEngine(settings, restrict_paths=restrict_paths, spare=spare)
