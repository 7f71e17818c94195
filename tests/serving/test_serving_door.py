"""Which requests go on, what is said over the websocket, and which headers answers carry."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from inspector.serving import access_control as doors
from inspector.serving import people
from inspector.serving.access_control import AccessControl
from inspector.serving.access_token import AccessToken
from inspector.serving.headers import Headers, content_policy, inline_scripts, security_headers
from inspector.serving.reconnecting import SessionOwners
from inspector.serving.settings import read_serving
from inspector.serving.websocket_filter import STRANGER_NBYTES, WebsocketFilter
from tests.models.loops import run

HOST = (b"host", b"localhost:8501")
SCRIPT = "/home/somebody/inspector/app.py"
COOKIE_SECRET, ORIGIN = "c" * 32, "http://localhost:8501"


async def _app(scope, receive, send):
    """Stands for Streamlit: says that it was reached."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    headers = [(b"set-cookie", b"a=b"), (b"x-frame-options", b"SAMEORIGIN")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"reached"})


def ask(app, path="/", method="GET", headers=(HOST,), *, kind="http", scheme="http", incoming=(), query=""):
    """Send one request to an ASGI app; give what it sends."""
    scope = {"type": kind, "path": path, "method": method, "headers": list(headers),
             "scheme": scheme, "server": ("::1", 8501), "query_string": query.encode()}  # fmt: skip
    messages, sent = list(incoming) or [{"type": f"{kind}.connect"}], []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    run(app(scope, receive, send))
    return sent


def status(sent) -> int:
    return sent[0].get("status") or {"websocket.accept": 101, "websocket.close": 403}[sent[0]["type"]]


def door(**environment: str) -> AccessControl:
    return AccessControl(_app, settings=read_serving(environment))


@pytest.mark.parametrize(
    ("host", "path", "expected"),
    [
        (b"localhost:8501", "/", 200),
        (b"127.0.0.1", "/", 200),
        (b"rebound.example:8501", "/", 400),
        (b"rebound.example:8501", "/media/x", 400),
        (b"rebound.example:8501", "/_stcore/host-config", 400),
        (b"localhost.rebound.example", "/", 400),
        (b"localhost@rebound.example", "/", 400),
        (b"", "/", 400),
        (b"10.0.0.7:8501", "/_stcore/health", 200),  # a load balancer asks by address
    ],
)
def test_a_host_that_is_not_allowed_gets_nothing(host, path, expected):
    assert status(ask(door(), path, headers=[(b"host", host)])) == expected


@pytest.mark.parametrize(
    ("origin", "same"),
    [
        (None, True),
        (b"http://localhost:8501", True),
        (b"http://localhost:3000", False),
        (b"http://evil.example", False),
        (b"null", False),
        (b"http://[", False),
        (b"http://localhost:8501.evil.example", False),
    ],
)
def test_pages_of_other_sites_open_no_session_and_upload_nothing(origin, same):
    headers = [HOST] + ([(b"origin", origin)] if origin else [])
    session = ask(door(), "/_stcore/stream", headers=headers, kind="websocket")
    assert status(session) == (101 if same else 403)
    upload = ask(door(), "/_stcore/upload_file/a/b", "PUT", headers)
    assert status(upload) == (200 if same else 403)
    assert status(ask(door(), "/", headers=headers)) == 200  # a link may be followed


@pytest.mark.parametrize(
    "path", ["/_stcore/metrics", "/_stcore/agent/mcp", "/_stcore/agent", "/_stcore/metrics/",
             "/_stcore/script-health-check"],
)  # fmt: skip
def test_what_no_page_needs_is_not_served(path):
    for method in ("GET", "POST", "OPTIONS"):
        assert status(ask(door(), path, method)) == 404


PRIVATE = ["/media/x.csv", "/component/x/y.js", "/_stcore/bidi-components/x/y.js", "/app/static/x",
           "/_stcore/upload_file/a/b", "/_stcore/nothing"]  # fmt: skip
PUBLIC = ["/", "/lens", "/static/js/index.js", "/favicon.png", "/_stcore/health",
          "/_stcore/host-config", "/auth/login", "/oauth2callback"]  # fmt: skip


def test_strangers_get_the_sign_in_page_and_nothing_private():
    guarded = door(INSPECTOR_SIGN_IN="oidc")
    assert [status(ask(guarded, path)) for path in PUBLIC] == [200] * len(PUBLIC)
    assert [status(ask(guarded, path)) for path in PRIVATE] == [401] * len(PRIVATE)
    for method in ("PUT", "DELETE", "POST", "PATCH", "BREW"):
        assert status(ask(guarded, "/_stcore/upload_file/a/b", method)) == 401
        assert status(ask(guarded, "/anything", method)) == 401
    assert status(ask(guarded, "/_stcore/stream", kind="websocket")) == 101  # shows the button


def test_behind_a_proxy_strangers_get_nothing():
    guarded = door(INSPECTOR_SIGN_IN="proxy", INSPECTOR_PEOPLE="ada")
    for path in {*PUBLIC, *PRIVATE} - {"/_stcore/health"}:
        assert status(ask(guarded, path)) == 401
    assert status(ask(guarded, "/_stcore/stream", kind="websocket")) == 403
    ada, eve = ((HOST, (b"x-forwarded-user", name)) for name in (b"ada", b"eve"))
    assert status(ask(guarded, "/media/x", headers=ada)) == 200
    assert status(ask(guarded, "/_stcore/stream", headers=ada, kind="websocket")) == 101
    refused = ask(guarded, "/media/x", headers=eve)  # signed in, and not listed: no sign-in page would help
    assert (status(refused), b"ask the administrator" in refused[1]["body"]) == (403, True)
    assert status(ask(guarded, "/_stcore/stream", headers=eve, kind="websocket")) == 403


@pytest.mark.parametrize("people", ["", "ada,@x.org"])
def test_a_proxy_that_adds_to_a_forged_name_opens_nothing(people):
    guarded = door(INSPECTOR_SIGN_IN="proxy", **({"INSPECTOR_PEOPLE": people} if people else {}))
    names = [(b"x-forwarded-user", name) for name in (b"ada", b"eve", b"eve, ada", b"eve,a@x.org")]
    for headers in ([HOST, *names[:2]], [HOST, names[0], names[0]], [HOST, names[2]], [HOST, names[3]]):
        assert status(ask(guarded, headers=headers)) == 401
        assert status(ask(guarded, "/_stcore/stream", headers=headers, kind="websocket")) == 403


def test_two_hosts_are_no_address():
    for second in (b"rebound.example", HOST[1]):
        assert status(ask(door(), headers=[HOST, (b"host", second)])) == 400
        assert status(ask(door(), "/_stcore/stream", headers=[HOST, (b"host", second)], kind="websocket")) == 403


@pytest.mark.parametrize(
    ("site", "expected"),
    [(b"cross-site", 403), (b"same-site", 403), (b"same-origin", 200), (b"none", 200), (None, 200)],
)
def test_no_other_site_signs_anybody_out(oidc, site, expected):
    headers = [HOST, cookie()] + ([(b"sec-fetch-site", site)] if site else [])
    for path in ("/auth/logout", "/auth/logout/"):
        assert status(ask(oidc, path, headers=headers)) == expected
    assert status(ask(oidc, "/lens", headers=headers)) == 200  # a link may be followed


@pytest.fixture
def token() -> AccessToken:
    return AccessToken("t" * 32)


@pytest.fixture
def own(token) -> AccessControl:
    """The door of a server for this machine."""
    return AccessControl(_app, settings=read_serving({}), token=token)


def test_without_the_token_health_alone_is_told(own):
    for path in (*PUBLIC, *PRIVATE):
        for query in ("", "token=", "token=" + "u" * 32):
            assert status(ask(own, path, query=query)) == (200 if path == "/_stcore/health" else 401), path
    assert status(ask(own, "/_stcore/stream", kind="websocket")) == 403
    assert status(ask(own, "/_stcore/stream", kind="websocket", query="token=" + "t" * 32)) == 403
    for cookie in (b"inspector_token_8501=" + b"u" * 32, b"inspector_token_8501=", b"inspector_token_=" + b"t" * 32):
        assert status(ask(own, "/lens", headers=[HOST, (b"cookie", cookie)])) == 401


def test_the_address_with_the_token_gives_a_cookie_that_no_script_reads(own, token):
    given = ask(own, "/lens", query=f"checkpoint=demo-bert&{token.query[1:]}&k=3")
    told = dict(given[0]["headers"])
    assert (status(given), told[b"location"]) == (303, b"/lens?checkpoint=demo-bert&k=3")
    cookie, *rules = told[b"set-cookie"].decode().split("; ")
    assert {*rules} == {"Path=/", "HttpOnly", "SameSite=Lax"}
    headers = [HOST, (b"cookie", cookie.encode())]
    assert status(ask(own, "/lens", headers=headers)) == 200
    assert status(ask(own, "/_stcore/stream", headers=headers, kind="websocket")) == 101
    assert status(ask(own, "/", headers=headers, query="token=anything")) == 303  # no address keeps one
    assert status(ask(own, "/", query=token.query[1:])) == 303  # a second browser of the same person
    foreign = [(b"host", b"rebound.example"), (b"cookie", cookie.encode())]
    assert status(ask(own, "/lens", headers=foreign)) == 400
    assert status(ask(own, "//evil.example", query=token.query[1:])) == 303
    away = dict(ask(own, "//evil.example/x", query=token.query[1:])[0]["headers"])[b"location"]
    assert away == b"/evil.example/x"  # this server's
    assert dict(ask(own, "/中/a b", query=token.query[1:])[0]["headers"])[b"location"] == b"/%E4%B8%AD/a%20b"


def test_the_token_of_the_browser_that_is_opened_works_once(own, token):
    seen = token.query_once[1:]  # other users of the machine read command lines
    assert status(ask(own, query=seen)) == 303
    assert status(ask(own, query=seen)) == 401
    assert status(ask(own, query=token.query_once[1:])) == 303


async def _page(scope, receive, send):
    """Stands for Streamlit's pages and files."""
    kind = b"text/html; charset=utf-8" if scope["path"] == "/" else b"text/javascript"
    headers = [(b"content-type", kind), (b"cache-control", b"public, immutable")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"reached"})


def cookies_set(sent) -> list[str]:
    return [value.decode() for name, value in sent[0]["headers"] if name == b"set-cookie"]


def test_a_browser_gets_a_secret_with_its_first_page_where_others_are_served(monkeypatch):
    guarded = AccessControl(_page, settings=read_serving({}))
    assert cookies_set(ask(guarded)) == []  # one's own machine
    monkeypatch.setattr(doors, "serves_others", lambda: True)
    first, second = (cookies_set(ask(guarded))[0] for _ in range(2))
    assert first != second
    assert set(first.split("; ")[1:]) >= {"HttpOnly", "SameSite=Lax", "Path=/"}
    assert (b"cache-control", b"no-store") in ask(guarded)[0]["headers"]  # no cache gives it to a second browser
    assert cookies_set(ask(guarded, "/static/index.js")) == []
    given = (b"cookie", first.partition(";")[0].encode())
    assert cookies_set(ask(guarded, headers=[HOST, given])) == []
    assert cookies_set(ask(guarded, headers=[HOST, (b"cookie", b"inspector_browser=guess")]))
    signs_in = AccessControl(_page, settings=read_serving({"INSPECTOR_SIGN_IN": "oidc"}))
    assert cookies_set(ask(signs_in)) == []


@pytest.fixture
def oidc(monkeypatch):
    """A secret to sign cookies with, and the address that people come back to."""
    monkeypatch.setattr(people, "get_cookie_secret", lambda: COOKIE_SECRET)
    monkeypatch.setattr(people, "get_origin_from_redirect_uri", lambda: ORIGIN)
    return door(INSPECTOR_SIGN_IN="oidc", INSPECTOR_PEOPLE="@example.org")


def cookie(secret=COOKIE_SECRET, name="_streamlit_user", **changes) -> tuple[bytes, bytes]:
    claims = {"is_logged_in": True, "origin": ORIGIN, "email": "ada@example.org",
              "email_verified": True, **changes}  # fmt: skip
    value = create_signed_value(secret, name, json.dumps(claims))
    return b"cookie", b"_streamlit_user=" + value


def test_a_signed_cookie_opens_the_door(oidc):
    assert status(ask(oidc, "/_stcore/upload_file/a/b", "PUT", [HOST, cookie()])) == 200
    assert status(ask(oidc, "/media/x", headers=[HOST, cookie()])) == 200


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (cookie(secret="d" * 32), 401),
        (cookie(name="_streamlit_user_tokens"), 401),  # signed, but for another purpose
        (cookie(origin="http://elsewhere.example"), 401),
        (cookie(is_logged_in=False), 401),
        (cookie(email="eve@elsewhere.example"), 403),  # known, and not listed
        (cookie(email_verified=False), 403),
        ((b"cookie", b'_streamlit_user={"is_logged_in": true}'), 401),
        ((b"cookie", b"_streamlit_user=\xff\xfe.x.y"), 401),
        ((b"cookie", b"_streamlit_user=chunks-99"), 401),
    ],
)
def test_any_other_cookie_does_not(oidc, wrong, expected):
    assert status(ask(oidc, "/_stcore/upload_file/a/b", "PUT", [HOST, wrong])) == expected
    assert status(ask(oidc, "/media/x", headers=[HOST, wrong])) == expected


def requests() -> dict[str, BackMsg]:
    """Every request that Streamlit's protocol has, by name."""
    made = {}
    for field in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields:
        made[field.name] = message = BackMsg()
        if field.message_type is None:
            setattr(message, field.name, True)
        else:
            getattr(message, field.name).SetInParent()
    operation = made.pop("backend_operation_request").backend_operation_request
    for field in operation.DESCRIPTOR.oneofs_by_name["payload"].fields:
        made[field.name] = message = BackMsg()
        getattr(message.backend_operation_request, field.name).SetInParent()
    return made


def test_only_what_the_pages_ask_is_passed_on():
    passed = []

    async def app(scope, receive, send):
        while (message := await receive())["type"] == "websocket.receive":
            passed.append(BackMsg.FromString(message["bytes"]))

    everything = requests()
    assert len(everything) >= 13
    incoming = [{"type": "websocket.receive", "bytes": message.SerializeToString()}
                for message in everything.values()]  # fmt: skip
    ask(WebsocketFilter(app, script=SCRIPT, settings=read_serving({})), kind="websocket",
        incoming=[*incoming, {"type": "websocket.disconnect"}])  # fmt: skip
    wanted = {"rerun_script", "stop_script", "file_urls_request", "app_heartbeat",
              "deferred_file", "dataframe_chunk"}  # fmt: skip
    assert passed == [message for name, message in everything.items() if name in wanted]
    assert len(passed) == len(wanted)


def part(name: str) -> bytes:
    """A request to run a part of a page."""
    message = BackMsg()
    message.rerun_script.fragment_id = name
    return message.SerializeToString()


def changed(widget: str) -> bytes:
    """A request to run a page after one of its widgets has changed."""
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add().id = widget
    return message.SerializeToString()


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"text": "hello"}, 1003),
        *(
            ({"bytes": changed(name)}, 1002) for name in ("", "linked", "x $$ID", "$$x")
        ),  # each would end in a traceback there
        ({"bytes": None}, 1003),
        ({"bytes": b"\xff" * 9}, 1002),
        *(({"bytes": part(name)}, 1002) for name in ("a\nb", "\x1b[2J", "é", "a" * 65)),  # which the log would show
    ],
)
def test_what_is_no_request_ends_the_connection(message, code):
    async def app(scope, receive, send):
        assert (await receive())["type"] == "websocket.disconnect"

    sent = ask(WebsocketFilter(app, script=SCRIPT, settings=read_serving({})), kind="websocket",
               incoming=[{"type": "websocket.receive", **message}])  # fmt: skip
    assert sent == [{"type": "websocket.close", "code": code}]


@pytest.mark.parametrize("signed_in", [False, True])
def test_who_is_not_signed_in_sends_little(oidc, signed_in):
    received = []

    async def app(scope, receive, send):
        while (message := await receive())["type"] == "websocket.receive":
            received.append(len(message["bytes"]))

    settings = read_serving({"INSPECTOR_SIGN_IN": "oidc", "INSPECTOR_PEOPLE": "@example.org"})
    sizes = [STRANGER_NBYTES, STRANGER_NBYTES + 1]
    incoming = [{"type": "websocket.receive", "bytes": rerun(size)} for size in sizes]
    sent = ask(
        WebsocketFilter(app, script=SCRIPT, settings=settings), headers=[HOST, cookie()] if signed_in else [HOST],
        kind="websocket", incoming=[*incoming, {"type": "websocket.disconnect"}],
    )  # fmt: skip
    assert received == (sizes if signed_in else sizes[:1])
    assert sent == ([] if signed_in else [{"type": "websocket.close", "code": 1009}])


def rerun(nbytes: int) -> bytes:
    """A request to run a page that has so many bytes."""
    message = BackMsg()
    message.rerun_script.query_string = "x" * (nbytes - 12)
    message.rerun_script.query_string += "x" * (nbytes - message.ByteSize())
    assert message.ByteSize() == nbytes
    return message.SerializeToString()


def test_a_browser_that_is_gone_ends_in_peace():
    received = []

    async def app(scope, receive, send):
        await send({"type": "websocket.send", "bytes": ForwardMsg().SerializeToString()})
        received.append(await receive())

    async def receive():
        return {"type": "websocket.disconnect"}

    async def send(message):
        raise OSError("gone")

    scope = {"type": "websocket", "headers": []}
    run(WebsocketFilter(app, script=SCRIPT, settings=read_serving({}))(scope, receive, send))
    assert received == [{"type": "websocket.disconnect"}]


def connected(
    sessions: SessionOwners, headers: list[tuple[bytes, bytes]], session: str, **environment: str
) -> list[str]:
    """What a connection names that would go on with a session; the app then tells of this session."""
    found: list[str] = []

    async def app(scope, receive, send):
        found.extend(part.strip() for part in dict(scope["headers"])[b"sec-websocket-protocol"].decode().split(","))
        greeting = ForwardMsg()
        greeting.new_session.initialize.session_id = found[2] if len(found) > 2 else session
        await send({"type": "websocket.send", "bytes": greeting.SerializeToString()})

    filtered = WebsocketFilter(app, script=SCRIPT, settings=read_serving(environment), sessions=sessions)
    ask(
        filtered, kind="websocket", headers=[*headers, (b"sec-websocket-protocol", f"streamlit, x, {session}".encode())]
    )
    return found


@pytest.mark.parametrize("sign_in", ["proxy", "none"])
def test_nobody_goes_on_with_a_session_that_somebody_else_began(sign_in):
    """Whoever names its id would see all that it shows, and act in its user's name."""
    secret = "s" * 32
    proxy = {"INSPECTOR_SIGN_IN": "proxy", "INSPECTOR_PROXY_SECRET": secret}
    known = {
        "proxy": lambda name: [(b"x-forwarded-user", name), (b"x-inspector-secret", secret.encode())],
        "none": lambda name: [(b"cookie", b"inspector_browser=" + name * 43)],
    }[sign_in]
    environment = proxy if sign_in == "proxy" else {}
    sessions = SessionOwners()
    assert connected(sessions, known(b"a"), "one", **environment) == ["streamlit", "x"]  # begun before this server
    assert connected(sessions, known(b"a"), "one", **environment) == ["streamlit", "x", "one"]
    assert connected(sessions, known(b"e"), "one", **environment) == ["streamlit", "x"]


def test_the_greeting_tells_nothing_of_the_machine():
    greeting = ForwardMsg()
    session = greeting.new_session
    session.main_script_path, session.name = SCRIPT, "app"
    session.initialize.session_id = "an-id"
    about = session.initialize.environment_info
    about.streamlit_version, about.python_version, about.server_os = "1.67.0", "3.11.7", "Linux"
    session.initialize.user_info.installation_id_v4 = "machine-id"
    other = ForwardMsg()
    other.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY

    async def app(scope, receive, send):
        for message in (greeting, other):
            await send({"type": "websocket.send", "bytes": message.SerializeToString()})

    first, second = ask(WebsocketFilter(app, script=SCRIPT, settings=read_serving({})), kind="websocket")
    for told in (SCRIPT, "1.67.0", "3.11.7", "Linux", "machine-id"):
        assert told.encode() not in first["bytes"]
    assert ForwardMsg.FromString(first["bytes"]).new_session.initialize.session_id == "an-id"
    assert second["bytes"] == other.SerializeToString()


def test_every_answer_carries_the_headers_once():
    (start, _) = ask(Headers(_app))
    names = [name.decode() for name, _ in start["headers"]]
    for name, value in security_headers().items():
        assert names.count(name.lower()) == 1
        assert (name.lower().encode(), value.encode()) in start["headers"]
    assert (b"cache-control", b"no-store") in start["headers"]
    assert (b"set-cookie", b"a=b") in start["headers"]


def test_over_tls_cookies_are_for_tls_alone():
    (start, _) = ask(Headers(_app), scheme="https")
    assert (b"set-cookie", b"a=b; Secure") in start["headers"]


def test_the_policy_lets_no_text_become_a_script():
    policy = dict(rule.split(" ", 1) for rule in content_policy(["sha256-x"]).split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    for sources in policy.values():
        assert "'unsafe-eval'" not in sources
        assert "http" not in sources
        assert "*" not in sources
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval' blob: 'sha256-x'"
    script = "\n      window.prerenderReady = false\n    "
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert inline_scripts() == (f"sha256-{digest}",)


def test_a_base_path_is_left_out(monkeypatch):
    monkeypatch.setattr(doors.st, "get_option", {"server.baseUrlPath": "/in/side/"}.__getitem__)
    for path, expected in {
        "/in/side/_stcore/metrics": "_stcore/metrics",
        "/in/side": "",
        "/in/sideways/media/x": "in/sideways/media/x",
        "/_stcore/metrics/": "_stcore/metrics",
    }.items():
        assert doors.local_path({"path": path}) == expected
