"""The process that workers are forked from: `python -m inspector.serving.engine.workers.forkserver FD MODULE…`.

Importing torch and transformers takes seconds, and memory, in each process that does it. This one
imports them once and reads no file of anybody's; a worker begins as its copy, confined before it
reads anything. Nothing here runs threads of its own while it forks.

A request is one byte that says when to fork: `NOW`, or `WARM`, once all modules are imported. With it come three
descriptors: the worker's pipe, its log, and a pipe on which this process writes the worker's process id (negative: the
number of the error) and then how it ended, a line each.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from importlib import import_module

from inspector.program import lacks
from inspector.sandbox.deferring import defer_imports
from inspector.serving.engine.wire import WARM
from inspector.serving.engine.workers.worker import work

DESCRIPTORS = 3


class ForkServer:
    """Forks on request, and reports how its children end."""

    def __init__(self, channel: socket.socket, modules: list[str]) -> None:
        self._channel = channel
        self._modules = modules
        self._statuses: dict[int, int] = {}  # process id of a child -> where its end is reported
        self._wakeup, theirs = os.pipe()
        os.set_blocking(theirs, False)
        self._ended = theirs
        signal.signal(signal.SIGCHLD, lambda *_: None)  # or it would wake nobody
        signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)

    def serve(self) -> int:
        """Serve until the server is gone and the last child has ended.

        Returns:
            In a child, the descriptor of its pipe. The process itself does not return.
        """
        listening = True
        while listening or self._statuses:
            ready, _, _ = select.select([self._wakeup, *([self._channel] if listening else [])], [], [])
            if self._wakeup in ready:
                os.read(self._wakeup, 4096)
                self._reap()
            if self._channel in ready:
                asked, descriptors, *_ = socket.recv_fds(self._channel, 1, DESCRIPTORS)
                listening = bool(asked)
                if asked and (pipe := self._fork(asked, *descriptors)) is not None:
                    return pipe
        sys.exit(0)

    def _fork(self, asked: bytes, pipe: int, log: int, status: int) -> int | None:
        if asked == WARM:
            self._warm_up()
        try:
            child = os.fork()
        except OSError as error:
            self._report(status, -(error.errno or 1))
            os.close(status)
        else:
            if not child:
                self._become_worker(log, status)
                return pipe
            self._statuses[child] = status
            self._report(status, child)
        os.close(pipe)
        os.close(log)
        return None

    def _warm_up(self) -> None:
        gc.disable()  # what is imported stays: looking for garbage in it takes a sixteenth of the time
        for module in self._modules:
            try:
                import_module(module)
            except BaseException as error:  # the analysis that needs it says so to the person
                if not lacks(error):
                    traceback.print_exception(error)
        if self._modules:
            gc.collect()
            gc.freeze()  # the children's collector need not touch, and copy, what they share
        gc.enable()
        self._modules = []

    def _become_worker(self, log: int, status: int) -> None:
        """Let go of all that belongs to the fork server and to the other workers."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._channel.close()
        for descriptor in (self._wakeup, self._ended, status, *self._statuses.values()):
            os.close(descriptor)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.setsid()  # Ctrl-C reaches the server alone

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                child, ended = os.waitpid(-1, os.WNOHANG)
                if not child:
                    return
                status = self._statuses.pop(child)
                self._report(status, os.waitstatus_to_exitcode(ended))
                os.close(status)

    @staticmethod
    def _report(status: int, number: int) -> None:
        with suppress(OSError):  # nobody wants to know any more
            os.write(status, b"%d\n" % number)


def main() -> None:
    """Serve the socket whose descriptor the command line names; a child becomes a worker."""
    _, channel, *modules = sys.argv
    defer_imports()
    pipe = ForkServer(socket.socket(fileno=int(channel)), modules).serve()
    try:
        work(pipe)
    except BaseException:  # nothing may unwind into the fork server's frames; its log says why it ended
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(1)  # it ends when its pipe does, or here


if __name__ == "__main__":
    main()
