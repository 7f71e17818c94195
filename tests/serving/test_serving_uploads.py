"""Uploads that reloads leave behind: whose they are, and how long they are remembered."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
from starlette.requests import ClientDisconnect
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from inspector.serving.bodies import FRAME_NBYTES
from inspector.serving.uploads import LEFT_SECONDS, MOST, Left, PendingUploads, Uploads, browser_of
from tests.models.loops import run

NOTHING = Left(interrupted=False, waiting=())
INTERRUPTED = Left(interrupted=True, waiting=())
TOKENS = {"ours": b"o" * 16, "theirs": b"t" * 16}


class Server:
    """Sessions with a page, and a clock."""

    def __init__(self):
        self.pages, self.now = {"old", "other"}, 0.0
        self.ledger = PendingUploads(self.pages.__contains__, lambda: self.now)


@pytest.fixture
def server() -> Server:
    return Server()


def cookie(browser: str) -> str:
    return generate_xsrf_token_string(TOKENS[browser], 1)


def test_a_browser_is_known_across_reloads_by_its_token():
    first, again = cookie("ours"), cookie("ours")
    assert first != again  # masked anew each time
    known = [browser_of({"_streamlit_xsrf": each}) for each in (first, again, cookie("theirs"))]
    assert known == [b"o".hex() * 16, b"o".hex() * 16, b"t".hex() * 16]
    assert browser_of({}) is None
    assert browser_of({"_streamlit_xsrf": "2|x|y|z"}) is None


def test_a_file_is_missed_only_where_its_page_is_gone_and_only_by_its_browser_once(server):
    server.ledger.start("ours", "old", "a")
    assert server.ledger.claim("ours") == NOTHING
    server.pages.remove("old")
    assert server.ledger.claim("theirs") == NOTHING
    assert server.ledger.claim("ours") == INTERRUPTED
    assert server.ledger.claim("ours") == NOTHING


def test_a_file_that_was_taken_or_that_the_user_canceled_is_not_missed(server):
    for file in ("a", "b"):
        server.ledger.start("ours", "old", file)
    server.ledger.end("old", ["a"])
    server.ledger.cut("old", "b")
    server.ledger.go_on("other")
    server.ledger.go_on("old")
    server.ledger.start("ours", "never there", "c")
    server.pages.clear()
    assert server.ledger.claim("ours") == NOTHING


def test_what_is_under_way_is_known_until_it_is_taken_removed_or_cut(server):
    for file in ("a", "b", "c"):
        server.ledger.start("ours", "old", file)
    server.ledger.start("ours", "other", "a")
    server.ledger.hold("ours", "old", ["waiting"])
    coming = SimpleNamespace()
    server.ledger.carry("old", "a", coming)
    server.ledger.carry("old", "never began", coming)
    assert server.ledger.under_way("old") == {"a": coming, "b": None, "c": None}
    server.ledger.cut("old", "b")
    server.ledger.end("old", ["c"])
    assert server.ledger.under_way("old") == {"a": coming}
    assert server.ledger.under_way("gone") == {}


def test_what_waits_is_handed_over_once_unless_it_was_opened(server):
    waiting = [object()]
    server.ledger.hold("ours", "old", waiting)
    server.ledger.hold("ours", "other", [])
    server.ledger.let_go("other")
    server.pages.clear()
    assert server.ledger.claim("ours") == Left(interrupted=False, waiting=(waiting,))
    assert server.ledger.claim("ours") == NOTHING


def test_it_is_forgotten_after_a_while_and_bounded(server):
    server.ledger.start("ours", "old", "a")
    server.ledger.hold("theirs", "other", ["waiting"])
    assert server.ledger.sweep(["without a file"]) == []
    server.pages.remove("old")
    server.now = LEFT_SECONDS
    assert server.ledger.sweep(["without a file"]) == ["without a file"]  # it had no page before
    server.pages.add("old")  # the same page is connected again
    assert server.ledger.sweep() == []
    server.pages.remove("old")
    assert server.ledger.sweep() == []
    server.now += LEFT_SECONDS
    assert server.ledger.sweep() == ["old"]
    assert server.ledger.claim("ours") == NOTHING
    server.ledger.start("ours", "other", "first")
    for number in range(MOST):
        server.ledger.start("theirs", "other", str(number))
    server.pages.clear()
    assert server.ledger.claim("ours") == NOTHING
    assert server.ledger.claim("theirs") == INTERRUPTED


def test_a_session_sends_no_more_than_one_upload_may_have_before_it_opens_it(server):
    may_come = partial(server.ledger.start, "ours", most_nbytes=1_000_000)
    assert may_come("old", "a", 600_000)
    assert not may_come("old", "b", 400_001 + FRAME_NBYTES)
    assert may_come("old", "b", 400_000)
    assert may_come("old", "a", 600_000)  # the same again
    assert may_come("other", "c", 1_000_000)
    server.ledger.end("old", ["a"])
    assert may_come("old", "d", 600_000)


def nothing_comes(nbytes: int):
    pytest.fail(f"A file of {nbytes} bytes was begun.")


def request(server: Server, method: str, *, status: int | None, path="_stcore/upload_file/old/a"):
    """Send a request through; None: the browser goes before the answer."""

    async def app(scope, receive, send):
        if status is None:
            raise ClientDisconnect
        await send({"type": "http.response.start", "status": status, "headers": []})

    async def receive():
        return {"type": "http.disconnect"}

    async def ignore(message):
        pass

    headers = [(b"cookie", f"_streamlit_xsrf={cookie('ours')}".encode())]
    scope = {"type": "http", "path": f"/{path}", "method": method, "headers": headers}
    run(Uploads(app, begin=nothing_comes, most_nbytes=0, ledger=server.ledger)(scope, receive, ignore))


@pytest.mark.parametrize(
    ("method", "status", "path", "missed"),
    [
        ("PUT", 204, "_stcore/upload_file/old/a", True),  # it came, and no script took it
        ("PUT", None, "_stcore/upload_file/old/a", True),
        ("PUT", 413, "_stcore/upload_file/old/a", False),
        ("OPTIONS", 204, "_stcore/upload_file/old/a", False),
        ("PUT", 204, "other/old/a", False),
    ],
)
def test_requests_that_leave_something_behind(server, method, status, path, missed):
    request(server, method, status=status, path=path)
    server.pages.clear()
    assert server.ledger.claim(TOKENS["ours"].hex()) == (INTERRUPTED if missed else NOTHING)


def test_a_file_that_is_removed_again_is_not_missed(server):
    request(server, "PUT", status=204)
    request(server, "DELETE", status=204)
    server.pages.clear()
    assert server.ledger.claim(TOKENS["ours"].hex()) == NOTHING
