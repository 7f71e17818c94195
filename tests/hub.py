"""A hub on this machine, and a CDN beside it: what the hub's library asks for, with faults by the model's name."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import uvicorn
from safetensors.torch import save
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

COMMIT = "5" * 40
DIGEST = "a" * 64
TOKEN = "hf_told_to_nobody"


@dataclass(frozen=True, slots=True)
class Held:
    """A file of the hub: its first bytes, and as many zeros as it takes."""

    begin: bytes
    nbytes: int

    def read(self, begin: int, end: int) -> bytes:
        """A range of it."""
        return self.begin[begin:end].ljust(min(end, self.nbytes) - begin, b"\0")


@dataclass
class Hub:
    """Where it is, what it holds, and what it was asked."""

    files: dict[str, Held]
    address: str = ""
    cdn: str = ""
    asked: list[str] = field(default_factory=list)  # of the CDN: a line each
    revisions: list[str] = field(default_factory=list)  # that were asked for
    known: tuple[str, ...] = ("main", "v1", "refs/pr/3", COMMIT)
    authorized: list[str] = field(default_factory=list)  # authorization that came to the CDN
    sent: int = 0  # bytes of weights

    @property
    def environment(self) -> dict[str, str]:
        """Settings that lead the hub's library here, with a token."""
        return {"HF_ENDPOINT": self.address, "HF_TOKEN": TOKEN, "NO_PROXY": "*", "HF_HUB_DISABLE_XET": "1"}


def shard(tensors: Mapping[str, tuple[int, ...]], *, pad: int = 0) -> Held:
    """A safetensors file of float16 whose numbers are nowhere; `pad`: more bytes of header."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in tensors.items():
        begin, end = end, end + 2 * torch.Size(shape).numel()
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode() + b" " * pad
    return Held(len(text).to_bytes(8, "little") + text, 8 + len(text) + end)


def plain(text: str | bytes) -> Held:
    """A small file."""
    data = text.encode() if isinstance(text, str) else text
    return Held(data, len(data))


def tiny() -> Held:
    """A file of weights that is quicker fetched than its header."""
    return plain(save({"a": torch.zeros(4)}))


@contextmanager
def serving(files: dict[str, Held]) -> Iterator[Hub]:
    """Serve files as each model, until the end."""
    hub = Hub(files)
    with _served(_hub(hub)) as port, _served(_cdn(hub)) as other:
        hub.address, hub.cdn = f"http://127.0.0.1:{port}", f"http://localhost:{other}"
        yield hub


REFUSED = {  # model -> status and code of every answer about it
    "faults/gated": (403, "GatedRepo"),
    "faults/unknown": (401, "RepoNotFound"),
    "faults/busy": (429, ""),
}


def _hub(hub: Hub) -> Starlette:
    async def about(request: Request) -> Response:
        hub.revisions.append(revision := request.path_params.get("revision", "main"))
        if revision not in hub.known:
            return Response(status_code=404, headers={"X-Error-Code": "RevisionNotFound"})
        if refused := REFUSED.get(request.path_params["model"]):
            return Response(status_code=refused[0], headers={"X-Error-Code": refused[1]})
        sha = "main" if request.path_params["model"] == "faults/branch" else COMMIT
        return JSONResponse({"_id": "1", "id": "x", "sha": sha, "siblings": [], "private": False, "tags": []})

    async def tree(request: Request) -> Response:
        above = "model/../../" if request.path_params["model"] == "faults/climbs" else ""
        return JSONResponse(
            [
                {"type": "file", "path": above + name, "size": each.nbytes, "oid": "b" * 40}
                for name, each in sorted(hub.files.items())
            ]
        )

    async def resolve(request: Request) -> Response:
        model, name = request.path_params["model"], request.path_params["name"]
        held = hub.files[name]
        if model == "faults/vanished":
            return Response(status_code=404, headers={"X-Error-Code": "RevisionNotFound"})
        told = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(held.begin).hexdigest()}"'}
        if not name.endswith(".safetensors"):
            return Response(held.begin, headers=told)
        told |= {"X-Linked-Etag": f'"{DIGEST}"', "X-Linked-Size": str(held.nbytes)}
        return Response(status_code=302, headers=told | {"Location": f"{hub.cdn}/{model}/{name}"})

    return Starlette(
        routes=[
            Route("/api/models/{model:path}/tree/{revision}", tree),
            Route("/api/models/{model:path}/revision/{revision:path}", about),
            Route("/api/models/{model:path}", about),
            Route("/{model:path}/resolve/{revision}/{name:path}", resolve, methods=["GET", "HEAD"]),
        ]
    )


# Model -> what the CDN answers instead of the bytes, the first and the last that they are, and how many there are.
Range = tuple[bytes, int, int, int]
FAULTS: dict[str, Callable[[bytes, int, int, int], tuple[int, Range, dict[str, str]]]] = {
    "faults/whole": lambda *said: (200, said, {}),
    "faults/expired": lambda *said: (403, said, {}),
    "faults/moved": lambda *said: (302, said, {"Location": "/org/model/model.safetensors"}),
    "faults/short": lambda data, *said: (206, (data[:-1], *said), {}),
    "faults/long": lambda data, *said: (206, (data + b"\0", *said), {}),
    "faults/total": lambda data, begin, end, total: (206, (data, begin, end, total + 1), {}),
    "faults/shifted": lambda data, begin, end, total: (206, (data, begin + 1, end + 1, total), {}),
    "faults/packed": lambda data, *said: (206, (gzip.compress(data), *said), {"Content-Encoding": "gzip"}),
}


async def _drip(data: bytes) -> AsyncIterator[bytes]:
    for place in range(len(data)):
        yield data[place : place + 1]
        await asyncio.sleep(0.1)


def _cdn(hub: Hub) -> Starlette:
    async def content(request: Request) -> Response:
        model, name = request.path_params["model"], request.path_params["name"]
        held, asked = hub.files[name], request.headers.get("Range", "")
        hub.asked.append(f"{model} {name} {asked}")
        hub.authorized += [request.headers["Authorization"]] if "Authorization" in request.headers else []
        begin, end = map(int, asked.removeprefix("bytes=").split("-")) if asked else (0, held.nbytes - 1)
        sound = (held.read(begin, end + 1), begin, min(end, held.nbytes - 1), held.nbytes)
        if model == "faults/drip":
            told = {"Content-Range": f"bytes {begin}-{end}/{held.nbytes}"}
            return StreamingResponse(_drip(sound[0]), 206, told)
        status, said, headers = FAULTS[model](*sound) if model in FAULTS else (206, sound, {})
        data, begin, end, total = said
        hub.sent += len(data)
        return Response(data, status, headers | {"Content-Range": f"bytes {begin}-{end}/{total}"})

    return Starlette(routes=[Route("/{model:path}/{name}", content)])


@contextmanager
def _served(app: Starlette) -> Iterator[int]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as place:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
        thread.start()
        try:
            yield place.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
