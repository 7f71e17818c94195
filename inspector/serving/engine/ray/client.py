"""The process that belongs to the cluster: `python -m inspector.serving.engine.ray.client FD`.

It passes questions to replicas and their replies back. If the queue is full, it retries; if a
replica or node dies, it asks the question again elsewhere, at most twice. When the web server is
gone, the pipe closes and this process ends. When the cluster is gone, Ray kills this process, and
the server reports it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
import threading
import traceback
from collections.abc import Coroutine
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from inspector.errors import InspectorError, WorkerError
from inspector.serving.encoding import decode, encode
from inspector.serving.engine.protocol import Progress
from inspector.serving.engine.ray.cluster import NO_CLUSTER, connected, find_replicas
from inspector.serving.engine.ray.messages import TOLD, AskReplica, Call, Cancel, JobUpdate, Leave, Lost, Returned
from inspector.serving.engine.wire import as_message
from inspector.settings import settings
from inspector.text import plural

DEATHS = 2  # after so many, a question is asked once more; then it is refused
LAST_SECONDS = 0.5
CALL_SECONDS = 2.0  # for all replicas to return something
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds before a full queue is tried again
DIED = (
    f"The replica that ran this request, or its machine, died {DEATHS + 1} times in a row: ask for less, or try again "
    "in a minute."
)
FAILED = (
    "The work failed unexpectedly on the cluster. Try again; if it fails again, report it with the lines in the "
    "replica's log."
)


class Client:
    """Asks the replicas for one web server; everything but `listen` runs in one loop.

    Args:
        connection: To the web server.
        first_pause: Seconds before a full queue is tried again, at first.
    """

    def __init__(self, connection: Connection, *, first_pause: float = FIRST_PAUSE) -> None:
        self._connection, self._first_pause = connection, first_pause
        self._handle: Any = None
        self._patience = settings().request_seconds  # until a replica has taken a question
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._responses: dict[str, Any] = {}
        self._stopped: set[str] = set()  # questions that were cancelled
        self._untaken: set[str] = set()  # questions that no replica has taken yet

    def begin(self, handle: Any) -> None:
        """Set the deployment to ask."""
        self._handle = handle

    def take(self, message: AskReplica | Cancel | Call | Leave) -> None:
        """Act on a message from the web server."""
        if isinstance(message, Cancel):
            self._cancel(message.id)
            return
        if isinstance(message, Leave):
            self._leave()
            return
        work = self._answer(message) if isinstance(message, AskReplica) else self._call(message)
        self._start(message.id, work)

    def send(self, message: Any) -> None:
        """Send the web server a message."""
        try:
            self._connection.send_bytes(encode(message))
        except OSError:  # it is gone
            self._leave()

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks[name] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    def _cancel(self, name: str) -> None:
        response, task = self._responses.get(name), self._tasks.get(name)
        if task is not None:
            self._stopped.add(name)
        if response is not None:
            response.cancel()  # reaches the replica, and there the worker
        if task is not None:
            task.cancel()

    def _leave(self) -> None:
        pause = LAST_SECONDS if self._responses else 0.0  # until replicas know that nobody waits
        for name in list(self._responses):
            self._cancel(name)
        asyncio.get_running_loop().call_later(pause, os._exit, 0)

    async def _answer(self, ask: AskReplica) -> None:
        self._untaken.add(ask.id)
        try:
            await self._ask_until_answered(ask)
            failure = InspectorError(FAILED)  # or nobody hears this
        except InspectorError as error:
            failure = error
        except Exception:
            traceback.print_exc()
            failure = InspectorError(FAILED)
        finally:
            self._untaken.discard(ask.id)
            self._stopped.discard(ask.id)
        self.send(JobUpdate(ask.id, encode(as_message(failure))))

    async def _ask_until_answered(self, ask: AskReplica) -> None:
        from ray.exceptions import LocalRayletDiedError, RayError, RayTaskError
        from ray.serve.exceptions import BackPressureError, RayServeException

        deaths, pause = 0, self._first_pause
        while True:
            try:
                return await self._ask(ask)
            except BackPressureError:
                self._report(ask, f"The queue is full; waiting here: {plural(len(self._untaken), 'request')}. Retrying")
                await asyncio.sleep(random.uniform(pause / 2, pause))
                pause = min(2 * pause, LONGEST_PAUSE)
            except LocalRayletDiedError:  # this machine has left the cluster
                give_up(self)
            except RayTaskError:
                raise
            except (RayError, RayServeException) as error:
                if ask.id in self._stopped:  # then Serve says so in an error of its own
                    raise asyncio.CancelledError from error
                deaths += 1
                sys.stderr.write(f"question {ask.id} lost its replica: {type(error).__name__}\n")
                if deaths > DEATHS:
                    raise WorkerError(DIED) from error
                self._untaken.add(ask.id)
                self._report(ask, "The replica that ran this request died: trying another one")

    async def _ask(self, ask: AskReplica) -> None:
        handle = self._handle.options(method_name="ask", stream=True, multiplexed_model_id=ask.fingerprint)
        response = self._responses[ask.id] = handle.remote(ask.question)
        try:
            async with asyncio.timeout(self._patience) as patience:
                async for data in response:
                    patience.reschedule(None)  # from now on, the replica's limits hold
                    self._untaken.discard(ask.id)
                    self.send(JobUpdate(ask.id, data))
        except TimeoutError as error:
            raise WorkerError(
                f"No replica of the cluster took this request within {self._patience:,.0f} "
                "seconds: try again later, or set INSPECTOR_RAY_MAX higher."
            ) from error
        finally:
            self._responses.pop(ask.id, None)

    async def _call(self, call: Call) -> None:
        from ray.exceptions import RayError
        from ray.serve.exceptions import RayServeException

        values: list[Any] = []
        try:
            calling = self._handle.broadcast(call.method, *call.arguments)
            values = await calling.results_async(timeout_s=CALL_SECONDS, return_exceptions=True)
        except (RayError, RayServeException) as error:  # the deployment or the cluster is gone
            sys.stderr.write(f"no replica was told to {call.method}: {type(error).__name__}\n")
        except Exception:  # whoever asked must not wait: no replica has answered, and the log says why
            traceback.print_exc()
        self.send(Returned(call.id, tuple(v for v in values if isinstance(v, bytes))))

    def _report(self, ask: AskReplica, text: str) -> None:
        self.send(JobUpdate(ask.id, encode(Progress(None, text)), taken=False))


def give_up(client: Client) -> NoReturn:
    """End, because the cluster is not there: the next question starts another client."""
    client.send(Lost(NO_CLUSTER))
    os._exit(1)


def main() -> None:
    """Serve the pipe whose descriptor the command line names."""
    connection = Connection(int(sys.argv[1]))
    loop = asyncio.new_event_loop()
    client = Client(connection)
    take = partial(loop.call_soon_threadsafe, client.take)  # waits until the loop runs
    threading.Thread(target=_listen, args=(connection, take), daemon=True).start()
    try:
        with connected(in_vain=partial(give_up, client)):
            client.begin(find_replicas())
            logging.getLogger("ray.serve").setLevel(logging.WARNING)  # or it greets each server
            loop.run_forever()
    except InspectorError as error:
        client.send(Lost(str(error)))


def _listen(connection: Connection, take: Any) -> None:
    try:
        while True:
            take(decode(connection.recv_bytes(), *TOLD))
    except (EOFError, OSError):  # the web server is gone
        take(Leave())


if __name__ == "__main__":
    main()
