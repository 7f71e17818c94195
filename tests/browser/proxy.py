"""A reverse proxy on loopback that says who asks, in every request and in a WebSocket's first."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from inspector.serving.trial import Server

MOST_HEAD = 65_536


@contextmanager
def proxied(server: Server, says: Mapping[str, str]) -> Iterator[str]:
    """Run a proxy before a server.

    Args:
        server: What answers.
        says: Headers that the proxy sets, whatever the browser sent under their names.

    Yields:
        The proxy's address.
    """
    target = int(server.url.rpartition(":")[2])

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head, rest = _read_head(self.request)
            if head:
                with socket.create_connection(("localhost", target)) as there:
                    there.sendall(_rewritten(head, says) + rest)
                    back = threading.Thread(target=_pump, args=(there, self.request), daemon=True)
                    back.start()
                    _pump(self.request, there)
                    back.join()

    class Proxy(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    with Proxy(("localhost", 0), Handler) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://localhost:{proxy.server_address[1]}"
        finally:
            proxy.shutdown()


def _read_head(connection: socket.socket) -> tuple[bytes, bytes]:
    """The first request's head, and what came after it."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < MOST_HEAD:
        more = connection.recv(MOST_HEAD)
        if not more:
            return b"", b""
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _rewritten(head: bytes, says: Mapping[str, str]) -> bytes:
    """The head as the server gets it: one request a connection, unless it becomes a WebSocket."""
    first, *lines = head.decode("latin-1").split("\r\n")
    upgrades = any(line.lower().startswith("upgrade:") for line in lines)
    dropped = {name.lower() for name in says} | (set() if upgrades else {"connection"})
    kept = [line for line in lines if line.partition(":")[0].lower() not in dropped]
    kept += [f"{name}: {value}" for name, value in says.items()]
    kept += [] if upgrades else ["Connection: close"]
    return "\r\n".join([first, *kept, "", ""]).encode("latin-1")


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(MOST_HEAD):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
