"""Files on their way to the disk: what arrives, what Streamlit's own handler makes of it, and what does not stay."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.types import Message
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_routes import create_upload_routes

from inspector.errors import CheckpointError
from inspector.serving.bodies import FRAME_NBYTES, PIECE, STANDS_IN, Body, ReceivedUpload
from inspector.serving.storing.arriving import ARRIVING, FIRST_NBYTES, Arriving, Received
from inspector.serving.storing.registry import move_upload, new_upload, read_names
from inspector.serving.uploads import LEFT_SECONDS, SMALL_NBYTES, PendingUploads, Uploads, let_go_of_left
from inspector.settings import Settings
from inspector.store.hashing import identify
from inspector.store.keeping.quota import used_nbytes
from tests.conftest import silent
from tests.models.loops import run

BOUNDARY = "----formBoundary7MA4YWxk"
XSRF = generate_xsrf_token_string(b"o" * 16, 1)
# Like a boundary, like a header, and longer than a piece.
CONTENTS = {
    "empty": b"",
    "text": b"{}\r\n",
    "like boundaries": f"\r\n--{BOUNDARY[:-1]}\r\n--{BOUNDARY[:5]}\r\n\r\n--\r".encode() * 9,
    "long": os.urandom(PIECE * 2 + 77),
}


class Server:
    """Streamlit's handler of uploads behind ours, with one session that has a page."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.manager = MemoryUploadedFileManager("/_stcore/upload_file")
        self.ledger = PendingUploads({"ours"}.__contains__)
        self.received: list[Received] = []
        self.seen: list[tuple[str, int]] = []  # of what is on its way: its name and its bytes
        self.status = 0
        runtime = SimpleNamespace(is_active_session={"ours"}.__contains__)
        routes = create_upload_routes(runtime, self.manager, None)  # pyright: ignore[reportArgumentType]
        keep = lambda session, file, received: self.received.append(received)  # noqa: E731
        begin = partial(Arriving, settings=settings)
        self.owner = ""
        ours = Middleware(
            Uploads,
            begin=begin,
            most_nbytes=settings.upload_nbytes,
            ledger=self.ledger,
            keep=keep,
            owner_of=lambda request: self.owner,
        )
        self._app = Starlette(routes=routes, middleware=[ours])

    def put(self, body: bytes, *, at_once: int = 1 << 16, length: int | None = None, session: str = "ours",
            kind: str = f"multipart/form-data; boundary={BOUNDARY}", cut: int | None = None) -> int:  # fmt: skip
        """Upload as a browser does, in chunks; the status."""
        headers = {"cookie": f"_streamlit_xsrf={XSRF}", "x-xsrftoken": XSRF, "content-type": kind}
        if length is not None:
            headers["content-length"] = str(length)
        scope = {
            "type": "http", "root_path": "", "method": "PUT",
            "path": f"/_stcore/upload_file/{session}/a", "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        chunks = self._chunks(body, at_once, cut)

        async def receive() -> dict:
            return await anext(chunks)

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]

        self.status = 0
        run(self._app(scope, receive, send))
        return self.status

    async def _chunks(self, body: bytes, at_once: int, cut: int | None) -> AsyncIterator[dict]:
        for begin in range(0, max(len(body), 1), at_once):
            if cut is not None and begin >= cut:
                break
            for file in self.ledger.under_way("ours").values():
                if isinstance(file, Arriving):
                    self.seen.append((file.name, file.expected))
            yield {"type": "http.request", "body": body[begin : begin + at_once], "more_body": True}
        yield {"type": "http.disconnect"} if cut is not None else {"type": "http.request", "body": b""}

    def arriving(self) -> list[str]:
        """The uploads that lie on the disk and nobody has opened."""
        return [path.name for path in (self.settings.home / "incoming").glob("[!.]*")]


@pytest.fixture
def server(settings) -> Server:
    return Server(settings)


def form(content: bytes, name: str = "model.safetensors", *, field: str = 'name="file"; ') -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; {field}filename="{name}"\r\nContent-Type: a/b\r\n\r\n'
    return head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()


@pytest.mark.parametrize(("owner", "most", "refused"), [("", 2, False), ("a" * 64, 3, False), ("a" * 64, 2, True)])
def test_a_file_beyond_what_one_person_may_have_is_refused_before_it_comes(settings, owner, most, refused):
    server = Server(replace(settings, person_nbytes=most * PIECE))
    server.owner = owner
    body = form(CONTENTS["long"])
    assert server.put(body, length=len(body)) == 204
    trouble = str(server.received[-1].trouble or "")
    assert ("that one person may have" in trouble) == bool(trouble) == refused


@pytest.mark.parametrize("at_once", [7, 1 << 16])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_file_is_on_the_disk_byte_by_byte_and_streamlit_keeps_its_name(server, settings, content, at_once):
    if len(content) > PIECE and at_once < 1000:
        at_once = 1009
    body = form(content, "mine/mödel.safetensors")
    assert server.put(body, at_once=at_once) == 204
    (received,) = server.received
    assert received.path.read_bytes() == content
    assert (received.nbytes, received.trouble) == (len(content), None)
    (record,) = server.manager.get_files("ours", ["a"])
    assert (record.name, record.type, record.data) == ("mine/mödel.safetensors", "a/b", STANDS_IN)
    _, folder = new_upload(settings)
    move_upload(folder, record.name, received.path)
    assert read_names(folder)[record.name].read_bytes() == content


@pytest.mark.parametrize("content", [*CONTENTS.values()], ids=CONTENTS)
def test_what_has_arrived_is_seen_with_the_exact_size(server, content):
    body = form(content, "mine/mödel.safetensors")
    server.put(body, at_once=200 if len(body) < PIECE else 1 << 16, length=max(len(body), SMALL_NBYTES + 1))
    padding = max(SMALL_NBYTES + 1 - len(body), 0)
    expected = "mine/mödel.safetensors", len(content) + padding
    assert set(server.seen) == ({expected} if len(content) > PIECE else set())
    (left,) = server.ledger.under_way("ours").values()  # until a page's script takes it
    assert isinstance(left, Arriving)
    assert (left.name, left.expected, left.nbytes) == (*expected, len(content))
    server.ledger.end("ours", ["a"])
    assert server.ledger.under_way("ours") == {}


def test_what_is_announced_takes_no_room_until_it_comes(settings):
    begun = []
    chunks = [form(b"x" * 1000)[:1000]]

    async def receive() -> dict:
        assert not begun
        return {"type": "http.request", "body": chunks.pop(0), "more_body": True} if chunks else NOTHING_MORE

    def begin(nbytes: int) -> Arriving:
        begun.append(nbytes)
        return Arriving(nbytes, settings)

    with pytest.raises(ClientDisconnect):
        run(body_of(receive, begin).replaced())
    assert begun == []


def test_room_is_made_as_a_file_comes_and_nothing_goes_for_what_does_not(settings, tmp_path):
    results = settings.home / "maps" / ("a" * 64)
    results.mkdir(parents=True)
    kept = results / "x.arrays"
    kept.write_bytes(b"x" * 3 * FIRST_NBYTES)
    small = replace(settings, store_nbytes=6 * FIRST_NBYTES)
    file = Arriving(5 * FIRST_NBYTES, small)  # as announced: there would be room without the result
    assert used_nbytes(small) == 4 * FIRST_NBYTES
    file.write(b"x" * FIRST_NBYTES)
    assert kept.exists()
    file.write(b"x" * FIRST_NBYTES)
    assert not kept.exists()
    file.write(b"x" * 3 * FIRST_NBYTES)
    received = file.close()
    assert (received.trouble, received.nbytes) == (None, 5 * FIRST_NBYTES)
    kept.write_bytes(b"x")
    refused = Arriving(7 * FIRST_NBYTES, small).close()  # more than the store may ever hold
    assert isinstance(refused.trouble, CheckpointError)
    assert kept.exists()


def test_an_upload_that_stops_coming_is_ended(settings):
    async def receive() -> dict:
        await asyncio.sleep(600)
        return NOTHING_MORE

    with pytest.raises(HTTPException, match="The upload stopped: send the file again"):
        run(body_of(receive, partial(Arriving, settings=settings), idle_seconds=0.01).replaced())


NOTHING_MORE = {"type": "http.disconnect"}


def body_of(receive, begin, **options) -> Body:
    """The body of an upload of almost 4 GB."""
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    headers = [(b"content-type", kind.encode()), (b"content-length", b"3990000000")]
    scope = {"type": "http", "method": "PUT", "path": "/", "headers": headers}
    return Body(scope, receive, begin=begin, most_nbytes=4_000_000_000, begun=lambda file: None, **options)


@pytest.mark.parametrize("more", [0, 1])
def test_a_small_file_stays_in_memory(server, more):
    frame = len(form(b""))
    content = b"x" * (SMALL_NBYTES - frame + more)
    assert server.put(form(content), length=len(content) + frame) == 204
    assert len(server.received) == len(server.arriving()) == more
    (record,) = server.manager.get_files("ours", ["a"])
    assert record.data == (STANDS_IN if more else content)


def test_its_hash_is_known_without_reading_it_until_it_changes(server, tmp_path):
    content = CONTENTS["long"]
    server.put(form(content))
    moved = server.received[0].path.rename(tmp_path / "model.safetensors")
    expected = hashlib.sha256(content).hexdigest()
    stat = moved.stat()
    with moved.open("r+b") as file:
        file.write(b"changed")
    os.utime(moved, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    files = {"model.safetensors": moved}
    known = identify(files, owned=True, progress=silent, received=True)
    assert known["model.safetensors"].sha256 == expected  # not read
    actual = hashlib.sha256(moved.read_bytes()).hexdigest()
    others = identify(files, owned=True, progress=silent)
    assert others["model.safetensors"].sha256 == actual != expected  # somebody else may have written it
    os.utime(moved, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert identify(files, owned=True, progress=silent, received=True)["model.safetensors"].sha256 == actual


def test_a_file_goes_when_nothing_refers_to_it(server):
    server.put(form(b"x"))
    assert len(server.arriving()) == 1
    server.received.clear()
    gc.collect()
    assert server.arriving() == []


def test_what_a_page_left_goes_although_nobody_else_comes(settings):
    pages, now, closed = {"ours"}, [0.0], []
    server = Server(settings)
    server.ledger = PendingUploads(pages.__contains__, lambda: now[0])
    server.put(form(b"x"))
    (received,) = server.received
    record = UploadedFileRec("b", "x", "a/b", ReceivedUpload.of(received))
    server.manager.add_file("ours", record)
    del received, record
    server.received.clear()
    runtime = SimpleNamespace(uploaded_file_mgr=server.manager, close_session=closed.append)
    for now[0], gone in ((0.0, False), (10.0, False), (10.0 + LEFT_SECONDS, True)):
        let_go_of_left(runtime, server.ledger)  # pyright: ignore[reportArgumentType]
        pages.clear()
        gc.collect()
        assert (server.arriving() == []) is gone
    assert closed == ["ours"]


def test_a_transfer_that_is_cut_leaves_nothing(server):
    server.put(form(CONTENTS["long"]), cut=PIECE * 2)
    gc.collect()
    assert (server.received, server.arriving(), server.status) == ([], [], 0)  # and no answer
    assert not server.manager.get_files("ours", ["a"])


@pytest.mark.parametrize(
    ("body", "kind", "session", "status"),
    [
        (form(b"x").removesuffix(b"--\r\n"), None, "ours", 400),  # no end
        (form(b"x").removesuffix(f"--{BOUNDARY}--\r\n".encode()) + form(b"y"), None, "ours", 400),  # two files
        (form(b"x"), "multipart/form-data; boundary=other", "ours", 400),
        (form(b"x"), "multipart/form-data", "ours", 400),
        (form(b"x"), "application/json", "ours", 400),
        (b"", None, "ours", 400),
        (form(b"x", field=""), None, "ours", 400),  # no name
        (form(b"x").replace(b"filename", b"fil"), None, "ours", 400),  # a field, no file
        (form(b"x"), None, "gone", 400),
    ],
)
def test_what_no_browser_sends_is_refused_and_leaves_nothing(server, body, kind, session, status):
    given = {"kind": kind} if kind else {}
    assert server.put(body, session=session, **given) == status
    server.received.clear()  # a field is no file for Streamlit's handler alone
    assert server.arriving() == []
    assert not server.manager.get_files(session, ["a"])


@pytest.mark.parametrize("headers", [b"a: b\r\n" * 8, b"a: " + b"b" * 4000 + b"\r\n"])
def test_a_body_of_many_parts_ends_at_the_second_one(server, headers):
    part = f"--{BOUNDARY}\r\n".encode() + headers + b"\r\nx\r\n"
    first = form(b"x").removesuffix(f"--{BOUNDARY}--\r\n".encode())
    body = first + part * (4 * SMALL_NBYTES // len(part))
    tracemalloc.start()
    try:
        assert server.put(body) == 400
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < SMALL_NBYTES
    assert server.arriving() == []


@pytest.mark.parametrize("headers", [b"a: b\r\n" * 99, b"a: " + b"b" * FRAME_NBYTES + b"\r\n", b"a" * FRAME_NBYTES])
def test_a_part_with_more_headers_than_a_browser_sends_is_refused(server, headers):
    body = form(b"x").replace(b"Content-Type: a/b\r\n", headers)
    assert server.put(body) == 400
    assert server.arriving() == []


def test_a_body_that_does_not_tell_its_length_ends_at_the_limit(settings):
    server = Server(replace(settings, upload_nbytes=1000))
    assert server.put(form(b"x" * 1000)) == 204
    assert server.put(form(b"x" * (1000 + FRAME_NBYTES))) == 413
    server.received.clear()
    gc.collect()
    assert server.arriving() == []


def test_a_full_store_takes_nothing_and_the_page_is_given_the_reason(settings):
    server = Server(replace(settings, store_nbytes=PIECE))
    content = CONTENTS["long"]
    assert server.put(form(content), length=len(form(content))) == 204
    (received,) = server.received
    assert (received.path, received.nbytes) == (None, len(content))
    assert "INSPECTOR_STORE_MB" in str(received.trouble)
    assert server.arriving() == []


def test_a_disk_that_refuses_is_told_and_what_was_written_goes(settings):
    file = Arriving(10, settings)
    (place,) = (settings.home / "incoming").glob(f"*/{ARRIVING}")
    with open("/dev/full", "wb", buffering=0) as full:  # noqa: PTH123 - writes go to it
        os.dup2(full.fileno(), descriptor_of(place))
    file.write(b"x" * PIECE)
    received = file.close()
    assert (received.path, received.nbytes) == (None, PIECE)
    assert isinstance(received.trouble, OSError)
    assert not place.parent.exists()


def descriptor_of(path) -> int:
    """The descriptor by which this process has a file open."""
    (found,) = (int(fd) for fd in os.listdir("/proc/self/fd") if link_of(fd) == str(path))  # noqa: PTH208
    return found


def link_of(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    except FileNotFoundError:  # of the listing itself
        return ""
