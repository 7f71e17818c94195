"""Fork every worker warm: here, or `python -m tests.warm` in the place of `streamlit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from unittest import mock

from inspector.serving.engine.wire import WARM
from inspector.serving.engine.workers.forking import Forked, fork_servers


@contextmanager
def forked_warm() -> Iterator[None]:
    """Import torch and transformers once for all workers of this process, not in the first two of each engine."""
    fork = fork_servers.fork

    def forked(environment: Mapping[str, str], modules: Sequence[str], when: bytes) -> Forked:
        return fork(environment, modules, WARM)

    with mock.patch.object(fork_servers, "fork", forked):
        yield


if __name__ == "__main__":
    from streamlit.web.cli import main

    with forked_warm():
        main()
