"""Whom the server answers, what its policy stops, and whose sessions it takes."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, BrowserType, expect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from inspector.serving.trial import Server
from tests.browser.looking import expect_page
from tools.chromium import FLAGS

STRANGER = "rebound.example"  # a name that somebody else has pointed at this machine


def test_the_policy_stops_what_it_is_for(new_context: Callable[..., BrowserContext], server: Server) -> None:
    """Were a text ever taken for markup, it could neither run nor send anything away."""
    page = new_context().new_page()  # not watched: the browser is to complain
    page.add_init_script(
        "window.stopped = []; document.addEventListener('securitypolicyviolation',"
        " event => window.stopped.push(event.effectiveDirective))"
    )
    page.goto(f"{server.url}/overview")
    expect_page(page, "overview", "demo-bert")
    page.evaluate(
        """() => {
            const add = (name, attributes, text) => {
                const element = document.createElement(name);
                for (const [key, value] of Object.entries(attributes))
                    element.setAttribute(key, value);
                element.textContent = text || "";
                document.body.append(element);
            };
            add("p", {onclick: "window.ran = true"});
            document.body.lastChild.click();
            add("script", {}, "window.ran = true");
            setTimeout("window.ran = true");
            add("img", {src: "http://192.0.2.1/x.png"});
            add("iframe", {src: "http://192.0.2.1/"});
            fetch("http://192.0.2.1/").catch(() => {});
        }"""
    )
    page.wait_for_function("window.stopped.length >= 6")
    assert sorted(set(page.evaluate("window.stopped"))) == [
        "connect-src", "frame-src", "img-src", "script-src", "script-src-attr", "script-src-elem",
    ]  # fmt: skip
    assert page.evaluate("window.ran") is None


def test_a_name_that_was_rebound_gets_nothing(
    browser_type: BrowserType, browser_type_launch_args: dict[str, Any], server: Server
) -> None:
    """A site whose name is pointed at this machine would otherwise be same-origin with the app."""
    rules = f"--host-resolver-rules=MAP {STRANGER} 127.0.0.1"
    browser = browser_type.launch(**{**browser_type_launch_args, "args": [*FLAGS, rules]})
    port = urlsplit(server.url).port
    page = browser.new_page(reduced_motion="reduce")
    answer = page.goto(f"http://{STRANGER}:{port}/")
    assert answer
    assert answer.status == 400
    expect(page.locator("body")).to_contain_text("does not answer to this name")
    assert page.goto(f"http://localhost:{port}/") is not None  # the same port, by its own name
    expect_page(page, "overview", "demo-bert")
    browser.close()


@pytest.mark.parametrize(
    ("host", "origin", "taken"),
    [
        (None, "http://localhost:{port}", True),
        (None, None, True),  # no browser
        (None, "http://localhost:1", False),  # another app of this machine
        (None, "http://evil.example", False),
        (f"{STRANGER}:{{port}}", f"http://{STRANGER}:{{port}}", False),
    ],
)
def test_sessions_are_for_the_servers_own_pages(
    server: Server, host: str | None, origin: str | None, taken: bool
) -> None:
    parts = urlsplit(server.url)
    name = host.format(port=parts.port) if host else parts.netloc
    options: dict[str, Any] = {"origin": origin and origin.format(port=parts.port)}
    status = 101
    try:
        with (
            socket.create_connection(("127.0.0.1", parts.port)) as line,
            connect(f"ws://{name}/_stcore/stream", sock=line, **options),
        ):
            pass
    except InvalidStatus as refusal:
        status = refusal.response.status_code
    assert status == (101 if taken else 403)


def test_a_message_that_is_too_long_is_not_read(server: Server) -> None:
    with connect(server.url.replace("http", "ws") + "/_stcore/stream", origin=Origin(server.url)) as line:
        line.send(b"x" * 2_000_001)
        with pytest.raises(ConnectionClosed) as closed:
            line.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009  # a shorter one that is no request: 1002
