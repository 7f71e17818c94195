"""A proxy that names who asks; settings that would keep nobody out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from inspector.serving.trial import START_SECONDS, Server, start_app
from tests.browser.looking import expect_page
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
