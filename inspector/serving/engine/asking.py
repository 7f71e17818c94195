"""Ask an engine about one checkpoint, or about several, and wait for each answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inspector.request import beside
from inspector.results.checkpoint import Opened
from inspector.serving.engine.protocol import Engine

POLL_SECONDS = 0.1


def asks(engine: Engine, opened: Opened, *others: Opened) -> Callable[..., Any]:
    """What asks an engine, as `make_report` does; what it has answered before costs nothing."""
    names = {each.fingerprint: each.name for each in others}

    def ask(verb: str, tell: Callable[[str], None], /, **parameters: Any) -> Any:
        called = [*opened.names, *(names[fingerprint] for fingerprint in beside(parameters).values())]
        job = engine.run(opened.fingerprint, verb, called=called, **parameters)
        while True:
            try:
                return job.result(timeout=POLL_SECONDS)
            except TimeoutError:
                try:
                    tell(job.progress.text)
                except BaseException:  # whoever asked has stopped it
                    job.cancel()
                    raise

    return ask
