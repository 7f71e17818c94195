"""A proxy that names who asks; settings that would keep nobody out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from inspector.serving.notice import DRAINING
from inspector.serving.trial import START_SECONDS, Server, start_app
from tests.browser.looking import expect_calm, expect_page
from tests.browser.proxy import proxied

SECRET = "0123456789abcdef-proxy"


def test_a_proxy_names_the_person(
    new_context: Callable[..., BrowserContext], open_browser: Callable[..., Page], start_server: Callable[..., Server]
) -> None:
    server = start_server(INSPECTOR_SIGN_IN="proxy", INSPECTOR_PROXY_SECRET=SECRET, INSPECTOR_PEOPLE="ada,@x.org")
    with proxied(server, {"X-Forwarded-User": "ada", "X-Inspector-Secret": SECRET}) as url:
        page = open_browser()
        page.goto(f"{url}/padding")
        expect_page(page, "padding", "demo-bert")
        expect(page.get_by_test_id("stSidebar").get_by_text("Signed in as ada")).to_be_visible()
        page.close()
    unknown, unlisted = (401, "You are not signed in"), (403, "ask the administrator")
    for wrong, (status, words) in (
        ({}, unknown),
        ({"X-Forwarded-User": "ada"}, unknown),
        ({"X-Forwarded-User": "ada", "X-Inspector-Secret": "0123456789abcdef-guess"}, unknown),
        ({"X-Forwarded-User": "eve", "X-Inspector-Secret": SECRET}, unlisted),
        ({"X-Forwarded-User": "", "X-Inspector-Secret": SECRET}, unknown),
    ):
        context = new_context(extra_http_headers=wrong)
        answer = context.request.get(server.url)
        assert (answer.status, words in answer.text()) == (status, True), wrong
        assert context.request.get(f"{server.url}/_stcore/health").text() == "ok"
        context.close()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"INSPECTOR_SIGN_IN": "oidc"}, "secrets.toml is incomplete: set client_id"),
        ({"INSPECTOR_SIGN_IN": "on"}, "set it to one of none, oidc, proxy."),
        (
            {"INSPECTOR_SIGN_IN": "proxy", "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
             "STREAMLIT_BROWSER_SERVER_ADDRESS": "localhost"},
            "anyone can send the proxy's header",
        ),
    ],
)  # fmt: skip
def test_a_server_that_cannot_keep_people_out_does_not_start(
    tmp_path: Path, settings: dict[str, str], sentence: str
) -> None:
    server = start_app(tmp_path, f"--secrets.files={tmp_path / 'none.toml'}", **settings)
    assert server.process.wait(timeout=START_SECONDS) == 1
    assert sentence in server.log.read_text().splitlines()[-1]
    assert server.complaints() == []


def test_an_administrator_tells_everybody_and_takes_no_new_work(
    new_context: Callable[..., BrowserContext], open_browser: Callable[..., Page], start_server: Callable[..., Server]
) -> None:
    server = start_server(INSPECTOR_SIGN_IN="proxy", INSPECTOR_PROXY_SECRET=SECRET, INSPECTOR_ADMINS="ada")
    with (
        proxied(server, {"X-Forwarded-User": "ada", "X-Inspector-Secret": SECRET}) as hers,
        proxied(server, {"X-Forwarded-User": "bob", "X-Inspector-Secret": SECRET}) as his,
    ):
        page = open_browser()
        page.goto(f"{his}/server")
        expect(page.get_by_role("heading", name="Worker sandbox")).to_be_visible()
        expect(page.get_by_text("Administration")).to_have_count(0)  # bob is none
        page.goto(f"{hers}/server")
        page.get_by_text("Administration").click()
        message = page.get_by_role("textbox", name="Message to all users")
        message.fill("Restart at *noon*")
        message.press("Enter")
        expect(page.get_by_test_id("stMain").get_by_text("Restart at *noon*", exact=True)).to_be_visible()
        expect_calm(page)
        page.get_by_text("Take no new work").click()
        expect(page.get_by_test_id("stMain").get_by_text(DRAINING)).to_be_visible()
        answer = new_context().request.get(f"{server.url}/_stcore/ready")
        assert (answer.status, answer.text()) == (503, DRAINING)
        page.goto(f"{his}/lens?text=nobody+has+asked+this")
        expect(page.get_by_text("Restart at *noon*")).to_be_visible()
        expect(page.get_by_text(DRAINING)).to_have_count(2)  # on top, and as the answer
        page.close()
    told = server.log.read_text()
    assert 'drain person="ada"' in told
    assert "noon" not in told
