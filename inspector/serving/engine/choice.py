"""Start the engine that the settings name; no module above this one knows which it is."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.protocol import Engine
from inspector.settings import Settings

if TYPE_CHECKING:
    from inspector.serving.engine.ray.engine import RayEngine

_LOCK = Lock()
_joined: list[RayEngine] = []  # the one that a look at the cluster has started, for whoever asks first


def start_engine(settings: Settings, *, restrict_paths: bool = True, spare: bool = True) -> Engine:
    """Start an engine.

    Args:
        settings: Which one, its limits, and where the store is.
        restrict_paths: True: folders are opened under the allowed roots only.
        spare: True: keep one process warm for the next checkpoint.
    """
    if settings.engine == "ray":
        from inspector.serving.engine.ray.engine import RayEngine

        if not (restrict_paths and spare):
            return RayEngine(settings, restrict_paths=restrict_paths, spare=spare)
        return _join(settings)
    return LocalEngine(settings, restrict_paths=restrict_paths, spare=spare)


def cluster_fault(settings: Settings) -> str:
    """Why no replica of the cluster would answer; empty: one does.

    The first look joins the cluster, with the engine that pages then ask.
    """
    return _join(settings).fault()


def _join(settings: Settings) -> RayEngine:
    """The one engine of this server that asks the cluster, whoever needs it first."""
    from inspector.serving.engine.ray.engine import RayEngine

    with _LOCK:
        if not any(engine.serves(settings) for engine in _joined):
            _joined[:] = [RayEngine(settings)]
        return _joined[0]
