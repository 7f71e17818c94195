"""Large uploads in pieces: the body of a request goes to the disk, and Streamlit gets a receipt for it.

Streamlit would keep each file in memory until a page's script takes it. Its own handler still checks
the request and answers it, but gets a few bytes as the content. What Streamlit keeps for the session
is a `ReceivedUpload`: when it forgets that, the file on the disk goes as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

PIECE = 1 << 20  # bytes that are written at a time
IDLE_SECONDS = 60.0  # for which a browser may send nothing
FRAME_NBYTES = 1 << 16  # at most, of what is around a file in a request's body
STANDS_IN = b"on the disk"
NO_FILE = "Expected one file, as a browser sends it."
NOTHING_COMES = "The upload stopped: send the file again."


class UploadSink(Protocol):
    """Where the bytes of an upload go."""

    def expect(self, name: str, nbytes: int) -> None:
        """Note the file's name and its bytes, before the first of them."""

    def write(self, data: bytes | bytearray) -> None:
        """Add to the file."""

    def close(self) -> object:
        """Complete the file; returns what refers to it."""

    def discard(self) -> None:
        """Remove the file."""


Begin = Callable[..., UploadSink]  # with the bytes that the file has at most, and its `owner` if it has one


class ReceivedUpload(bytes):
    """What Streamlit keeps as the content of a file that is on the disk."""

    received: object

    @classmethod
    def of(cls, received: object) -> ReceivedUpload:
        """The receipt for a file."""
        receipt = cls(STANDS_IN)
        receipt.received = received
        return receipt


class Body:
    """The body of a request that uploads one file, as one part of a form.

    Args:
        scope: Of the request.
        receive: Yields the body.
        begin: Begins the file.
        most_nbytes: Of the file.
        begun: Told of the file as soon as it is begun.
        idle_seconds: For which the browser may send nothing.

    Attributes:
        received: What refers to the file, once the body has been read.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        *,
        begin: Begin,
        most_nbytes: int,
        begun: Callable[[UploadSink], None],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.received: object = None
        self._begin = begin
        self._begun = begun
        self._most_nbytes = most_nbytes + FRAME_NBYTES
        self._idle_seconds = idle_seconds
        self._request = Request(scope, receive)
        self._receive = receive
        self._read = False
        self._headers: list[tuple[bytearray, bytearray]] = []  # of the part: names and values
        self._data = bytearray()
        self._parts = 0
        self._complete = False

    async def replaced(self) -> Message:
        """Read the whole body, and give Streamlit's handler a short one with the same headers.

        Raises:
            HTTPException: If the body is too long, not one file of a form, or stops coming.
            ClientDisconnect: If the browser ends the transfer.
        """
        if self._read:
            return await self._receive()
        self._read = True
        _, options = parse_options_header(self._request.headers.get("content-type"))
        boundary = options.get(b"boundary", b"")
        try:
            self.received = await self._store(boundary)
        except FormParserError as error:
            raise HTTPException(400, NO_FILE) from error
        return {"type": "http.request", "body": self._framed(boundary, STANDS_IN), "more_body": False}

    async def _store(self, boundary: bytes) -> object:
        parser, most = MultipartParser(boundary, self._callbacks()), self._most_nbytes
        expected = int(self._request.headers.get("content-length") or most)  # the handler has refused what is no number
        nbytes, file, writing = 0, None, asyncio.ensure_future(asyncio.sleep(0))

        async def begun() -> UploadSink:
            begun = await run_in_threadpool(self._begin, min(expected, most))
            begun.expect(self._name(), max(expected - len(self._framed(boundary)), 0))
            self._begun(begun)
            return begun

        try:
            async for chunk in self._chunks():
                nbytes += len(chunk)
                if nbytes > most:
                    raise HTTPException(413, "File too large")
                parser.write(chunk)
                if len(self._data) >= PIECE:  # room is made for what comes, and not for what is announced
                    file = file or await begun()
                    await writing  # of the piece before
                    writing = asyncio.ensure_future(run_in_threadpool(file.write, self._take()))
            if not (self._parts and self._complete):
                raise HTTPException(400, NO_FILE)
            file = file or await begun()
            await writing
            await run_in_threadpool(file.write, self._take())
            return file.close()
        except BaseException:
            await writing
            if file:
                await run_in_threadpool(file.discard)
            raise

    async def _chunks(self) -> AsyncIterator[bytes]:
        """What the browser sends, until it sends nothing for too long."""
        stream = self._request.stream()
        while True:
            try:
                async with asyncio.timeout(self._idle_seconds):
                    chunk = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise HTTPException(408, NOTHING_COMES) from None
            yield chunk

    def _framed(self, boundary: bytes, content: bytes = b"") -> bytes:
        """A body as a browser sends it, with another content."""
        headers = b"".join(b"%b: %b\r\n" % header for header in self._headers)
        return b"--%b\r\n%b\r\n%b\r\n--%b--\r\n" % (boundary, headers, content, boundary)

    def _name(self) -> str:
        """The file's name, as the browser tells it."""
        for name, value in self._headers:
            if name.lower() == b"content-disposition":
                _, options = parse_options_header(bytes(value))
                return options.get(b"filename", b"").decode("utf-8", "replace")
        return ""

    def _callbacks(self) -> MultipartCallbacks:
        def begin_part() -> None:
            if self._parts:
                raise FormParserError(NO_FILE)
            self._parts = 1

        def end() -> None:
            self._complete = True

        return {
            "on_part_begin": begin_part,
            "on_header_begin": lambda: self._headers.append((bytearray(), bytearray())),
            "on_header_field": lambda data, start, end: self._headers[-1][0].extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._headers[-1][1].extend(data[start:end]),
            "on_part_data": lambda data, start, end: self._data.extend(data[start:end]),
            "on_end": end,
        }

    def _take(self) -> bytearray:
        data, self._data = self._data, bytearray()
        return data
