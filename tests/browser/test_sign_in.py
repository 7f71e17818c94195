"""Sign-in with a real provider, and what people who are not signed in cannot do."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from inspector.serving.trial import Server
from tests.browser.looking import SLUGS, expect_calm, expect_page, follow
from tests.browser.provider import Provider, running_provider
from tests.browser.test_upload import open_file
from tools.scan.sessions import session

ADA, EVE, MALLORY = "ada@example.org", "eve@elsewhere.example", "mallory@example.org"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def guarded(
    start_server: Callable[..., Server], provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Server:
    """A server whose people sign in, and have a verified address at example.org."""
    file = tmp_path_factory.mktemp("secrets") / "secrets.toml"
    file.write_text(provider.secrets_file())
    return start_server(f"--secrets.files={file}", INSPECTOR_SIGN_IN="oidc", INSPECTOR_PEOPLE="@example.org")


def sign_in(page: Page, person: str) -> None:
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name=person).click()


@dataclass
class Runs:
    """What the server tells a browser about the runs of its script."""

    session: str = ""  # its id, which uploads need
    page: str = ""  # hash of the page of the last run that has ended
    _begun: str = ""

    def read(self, frame: bytes | str) -> None:
        message = ForwardMsg()
        message.ParseFromString(frame if isinstance(frame, bytes) else frame.encode())
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id
        elif kind == "navigation":
            self._begun = message.navigation.page_script_hash
        elif kind == "script_finished":
            self.page = self._begun


def listen(page: Page) -> Runs:
    """Read what comes through the connections that a page opens from now on."""
    runs = Runs()
    page.on("websocket", lambda socket: socket.on("framereceived", runs.read))
    return runs


def wait_for_another_page(page: Page, runs: Runs, before: str) -> str:
    """Wait until another page than the one before has run to its end, and give its hash."""
    for _ in range(1200):
        page.wait_for_timeout(100)  # and the browser has drawn it
        if runs.page != before:
            page.wait_for_timeout(100)
            return runs.page
    pytest.fail("No other page has run.")


def cookies(page: Page) -> dict[str, dict[str, Any]]:
    """The browser's cookies, by name."""
    return {str(dict(cookie)["name"]): dict(cookie) for cookie in page.context.cookies()}


def put_file(page: Page, url: str, session: str) -> tuple[int, str]:
    """Upload as the pages do, with the right token; gives status and text."""
    token = cookies(page)["_streamlit_xsrf"]["value"]
    answer = page.request.put(
        f"{url}/_stcore/upload_file/{session}/some-file",
        multipart={"file": {"name": "a.zip", "mimeType": "application/zip", "buffer": b"PK"}},
        headers={"X-Xsrftoken": token},
    )
    return answer.status, answer.text()


def test_strangers(page: Page, guarded: Server, server: Server) -> None:
    runs = listen(page)
    page.goto(guarded.url)
    a_stranger_sees_one_button_and_starts_no_work(page, guarded, runs)
    a_stranger_can_neither_upload_nor_download(page, guarded, server, runs)
    a_cookie_of_ones_own_making_is_nobodys(page, guarded)


def a_stranger_sees_one_button_and_starts_no_work(page: Page, guarded: Server, runs: Runs) -> None:
    before = ""
    for place in ("", *SLUGS, "sharing?checkpoint=demo-gpt2"):
        if place:
            follow(page, f"/{place}")
        before = wait_for_another_page(page, runs, before)
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        expect_calm(page)
        expect(page.get_by_role("button")).to_have_count(2)  # and Streamlit's menu
        expect(page.get_by_test_id("stSidebar")).to_have_count(0)
        expect(page.get_by_text(re.compile("demo-"))).to_have_count(0)
        lines = page.get_by_test_id("stMain").inner_text().split("\n")
        assert [line for line in lines if line] == [
            "Checkpoint Inspector", "Sign in to use this server.",
            "login", "Sign in",
        ]  # fmt: skip
    assert guarded.workers() == []


def a_stranger_can_neither_upload_nor_download(page: Page, guarded: Server, server: Server, runs: Runs) -> None:
    status, text = put_file(page, guarded.url, runs.session)
    assert (status, text) == (401, "You are not signed in: open the first page and sign in there.")
    assert page.request.delete(f"{guarded.url}/_stcore/upload_file/{runs.session}/x").status == 401
    for place in ("media/0123.csv", "component/x/index.html", "_stcore/bidi-components/x/y.js"):
        assert page.request.get(f"{guarded.url}/{place}").status == 401
    # The same request is taken where nobody needs to sign in: it was well made.
    page.context.clear_cookies()
    page.request.get(f"{server.url}/_stcore/health")
    with session(server.url, lambda *_: None) as open_session:
        open_session.visit("server")
        assert put_file(page, server.url, open_session.id)[0] == 204


def test_people_sign_in_and_out(page: Page, guarded: Server, provider: Provider, tmp_path: Path) -> None:
    page.goto(guarded.url)
    for person in (EVE, MALLORY):
        people_who_are_not_listed_are_turned_away(page, guarded, person)
    sign_in_use_sign_out(page, provider, tmp_path)


def sign_in_use_sign_out(page: Page, provider: Provider, tmp_path: Path) -> None:
    before = provider.tokens
    sign_in(page, ADA)
    expect_page(page, "overview", "demo-bert")
    assert provider.tokens == before + 1
    sidebar = page.get_by_test_id("stSidebar")
    expect(sidebar.get_by_text(ADA)).to_be_visible()
    assert cookies(page)["_streamlit_user"]["httpOnly"] is True

    follow(page, "/sharing?checkpoint=demo-gpt2")
    expect_page(page, "sharing", "demo-gpt2")
    broken = tmp_path / "broken.zip"
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("config.json", "{}")
    open_file(page, broken)
    expect(sidebar.get_by_text("Only you see an upload in the list")).to_be_visible()
    refused = page.get_by_test_id("stAlert").filter(has_text="no weights")
    expect(refused).to_be_visible()  # it has arrived

    link = page.url
    with page.expect_response(re.compile("/auth/logout")):  # the page is empty before it is asked
        sidebar.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert "_streamlit_user" not in cookies(page)
    page.goto(link)
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_have_count(0)


def people_who_are_not_listed_are_turned_away(page: Page, guarded: Server, person: str) -> None:
    """Eve's domain is not listed; nobody has verified that Mallory's address is his."""
    runs = listen(page)
    sign_in(page, person)
    expect(page.get_by_test_id("stMain")).to_contain_text(f"You are signed in as {person}, but this")
    expect(page.get_by_test_id("stSidebar")).to_have_count(0)
    assert runs.session
    assert put_file(page, guarded.url, runs.session)[0] == 403
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def a_cookie_of_ones_own_making_is_nobodys(page: Page, guarded: Server) -> None:
    page.context.add_cookies([{"name": "_streamlit_user", "value": '{"is_logged_in":true}', "url": guarded.url}])
    page.goto(guarded.url)
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert page.request.get(f"{guarded.url}/media/x").status == 401
