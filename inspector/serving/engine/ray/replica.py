"""A replica: a local engine on a node of the cluster, with the same confined workers and limits.

If the node lacks a checkpoint, the replica opens it by its reference and verifies its fingerprint;
the local engine fetches uploads from the shared store. Messages across the cluster use our own
encoding, so the web server reads a replica's answers as it reads a worker's.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any

from inspector.errors import CheckpointError, InspectorError
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.ray.messages import ReplicaQuestion, ReplicaStatus
from inspector.serving.engine.wire import MOST_PARTIALS, Answers, Partial, as_message
from inspector.settings import read_settings
from inspector.store.manifests.entries import MANIFEST, OPENED, UPLOADS
from inspector.store.origins.on_disk import refuse_outside
from inspector.store.reference import CheckpointRef

NODE_DIGITS = 8  # of a node's id, shown to people
UNDER_WAY = {"waiting", "running"}
NOT_HERE = (
    "The machine of the cluster that got this request does not have the upload: set "
    "INSPECTOR_STORE to a location that all machines can reach, restart the server, and open "
    "the upload again."
)
OTHER = (
    "The machine of the cluster that got this request has a different checkpoint of this name: "
    "bring both to the same version, or upload the checkpoint."
)


class Replica:
    """Answers the questions of one replica; Ray Serve makes one for each.

    Args:
        environ: Settings of whoever deployed it; those of the node's environment come first.
    """

    def __init__(self, environ: dict[str, str]) -> None:
        os.environ.update({**environ, **os.environ, "INSPECTOR_ENGINE": "local"})
        self.settings = read_settings(os.environ)
        self.engine = LocalEngine(self.settings)
        self._waiting: Counter[str] = Counter()  # questions that wait for a job, by its id
        self._hold = multiplexed(self.engine, limit=self.settings.workers)

    async def ask(self, question: bytes) -> AsyncIterator[bytes]:
        """Answer a question: progress and partial answers as they come, then the result or the error."""
        try:
            async with aclosing(self._answer(decode(question, ReplicaQuestion))) as messages:
                async for message in messages:
                    yield encode(message)
        except InspectorError as error:
            yield encode(as_message(error))

    def status(self) -> bytes:
        """What runs here."""
        node = _node()
        workers = [replace(worker, node=node) for worker in self.engine.workers()]
        return encode(ReplicaStatus(tuple(workers), self.engine.endings()))

    def forget(self, fingerprint: str) -> bytes:
        """Drop everything kept about a deleted checkpoint."""
        self.engine.forget(fingerprint)
        return encode(True)

    def release(self, fingerprint: str) -> bytes:
        """Give back the memory that a checkpoint takes, as the protocol says."""
        return encode(self.engine.release(fingerprint))

    def __del__(self) -> None:
        with suppress(AttributeError):  # it never came up
            self.engine.close()

    async def _answer(self, question: ReplicaQuestion) -> AsyncGenerator[Any, None]:
        await self._hold(question.fingerprint)
        by_itself = any(CheckpointRef.parse(reference).origin.anywhere for _, reference in question.references)
        partials = 0  # that were passed on; the web server counts them as it counts those of a worker
        for anew in (False, True):
            async for progress in self._bring(question, anew=anew):
                yield progress
            job = self.engine.run(question.fingerprint, question.verb, called=question.called, **question.parameters)
            async for news in self._follow(job):
                if isinstance(news, Progress):
                    yield news
                elif partials < MOST_PARTIALS:
                    partials += 1
                    yield Partial(partials, encode(news))
            outcome = _outcome(job)
            # Its files may have changed here since they were opened: that is worth a second try.
            if not (isinstance(outcome, CheckpointError) and by_itself):
                break
        yield as_message(outcome) if isinstance(outcome, InspectorError) else Answers.of((outcome,))

    async def _bring(self, question: ReplicaQuestion, *, anew: bool) -> AsyncIterator[Progress]:
        """Have on this node what the question is about; `anew`: even if it seems to be there."""
        for fingerprint, text in question.references:
            here = self._has(fingerprint)
            reference = CheckpointRef.parse(text)
            if reference.origin.path:  # its workers could not read it, though it is known here
                refuse_outside(reference.value, self.settings)
            if reference.origin.anywhere and (anew or not here):
                job = self.engine.open(reference, whole=True)
                async for progress in self._follow(job):
                    yield progress
                if job.result().fingerprint != fingerprint:
                    raise CheckpointError(OTHER)
            elif not here and self.settings.store is None:
                raise CheckpointError(NOT_HERE)

    def _has(self, fingerprint: str) -> bool:
        home = self.settings.home
        return any((home / kind / fingerprint / MANIFEST).exists() for kind in (UPLOADS, OPENED))

    async def _follow(self, job: Any) -> AsyncIterator[Any]:
        """Yield a job's progress and what is known of its result until it is settled; cancel it if nobody listens."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(changed.set)

        job.watch(tell)
        self._waiting[job.id] += 1
        shown = partial = None
        try:
            while job.status in UNDER_WAY:
                changed.clear()
                if job.progress != shown:
                    shown = job.progress
                    yield shown
                if job.partial is not partial and (partial := job.partial) is not None:
                    yield partial
                if job.status in UNDER_WAY:
                    await changed.wait()
        finally:
            self._waiting[job.id] -= 1
            if not self._waiting[job.id]:
                del self._waiting[job.id]
                if job.status in UNDER_WAY:
                    job.cancel()


class _Held:
    """A checkpoint that Serve counts as loaded; dropping it frees its memory."""

    def __init__(self, engine: LocalEngine, fingerprint: str) -> None:
        self._engine, self._fingerprint = engine, fingerprint
        self._let_go = False

    def __del__(self) -> None:  # Serve calls it when others need the place, then Python does
        if not self._let_go:
            self._let_go = True
            self._engine.release(self._fingerprint)


def multiplexed(engine: LocalEngine, *, limit: int) -> Callable[[str], Awaitable[Any]]:
    """Tell Serve's router which checkpoints are loaded here, so that it sends their questions."""
    from ray import serve

    async def hold_checkpoint(fingerprint: str) -> _Held:
        return _Held(engine, fingerprint)

    decorate: Any = serve.multiplexed(max_num_models_per_replica=limit)
    return decorate(hold_checkpoint)


def _outcome(job: Any) -> Any:
    try:
        return job.result()
    except InspectorError as error:
        return error


def _node() -> str:
    import ray

    return ray.get_runtime_context().get_node_id()[:NODE_DIGITS]
