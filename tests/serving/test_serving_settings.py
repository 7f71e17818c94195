"""Settings of a server that serves others, and where it listens."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import streamlit as st

from inspector.errors import SettingsError
from inspector.results.checkpoint import Opened
from inspector.serving import place, start
from inspector.serving.access_token import access_token
from inspector.serving.people import identity_of, is_admin, is_admitted, proxy_claims
from inspector.serving.readiness import Readiness
from inspector.serving.settings import Serving, read_serving, serving
from inspector.settings import read_settings, settings
from pages._ui.words import command
from tests.models.loops import run

SECRET = "0123456789abcdef"
LOCAL = {"server.address": "localhost", "server.allowedHosts": ["localhost", "127.0.0.1"]}


@pytest.fixture
def listening(monkeypatch):
    """Say where the server listens, and with which environment."""

    def listen(address="localhost", hosts=("localhost",), **settings_and_options):
        options = {"server.address": address, "server.allowedHosts": list(hosts)}
        options |= {name: value for name, value in settings_and_options.items() if "." in name}
        monkeypatch.setattr(st, "get_option", options.__getitem__)
        for name, value in settings_and_options.items():
            if "." not in name:
                monkeypatch.setenv(name, value)
        settings.cache_clear()
        serving.cache_clear()

    yield listen
    monkeypatch.undo()
    settings.cache_clear()
    serving.cache_clear()


def test_without_settings_nobody_signs_in_and_paths_are_for_this_machine():
    found = read_serving({})
    assert (found.sign_in, found.paths, found.people, found.secret) == ("none", False, (), "")
    assert found.header == "X-Forwarded-User"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INSPECTOR_SIGN_IN", "oauth", "set it to one of none, oidc, proxy"),
        ("INSPECTOR_PATHS", "yes", "set it to 0 or 1"),
        ("INSPECTOR_PEOPLE", "*@example.org", "separated by commas"),
        ("INSPECTOR_PEOPLE", "a@b.c, @", "separated by commas"),
        ("INSPECTOR_PEOPLE", "ada@example.org", "sign-in is off"),
        ("INSPECTOR_ADMINS", "*", "separated by commas"),
        ("INSPECTOR_ADMINS", "ada@example.org", "sign-in is off"),
        ("INSPECTOR_PROXY_SECRET", "short", "fewer than 16 characters"),
        ("INSPECTOR_TOKEN", "short-token", "fewer than 16 characters"),
        ("INSPECTOR_TOKEN", "0123456789abcdef;x", "others than letters"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_its_name(name, value, words):
    with pytest.raises(SettingsError, match=words) as raised:
        read_serving({name: value})
    assert name in str(raised.value)
    assert ("SECRET" in name or "TOKEN" in name) <= (value not in str(raised.value))


def test_a_secret_is_shown_in_no_message():
    assert SECRET not in repr(read_serving({"INSPECTOR_PROXY_SECRET": SECRET, "INSPECTOR_TOKEN": SECRET}))


@pytest.mark.parametrize(
    ("address", "hosts", "environment", "others"),
    [
        ("localhost", ["localhost", "127.0.0.1"], {}, False),
        ("127.0.0.1", ["localhost"], {}, False),
        ("127.8.9.1", ["[::1]"], {}, False),
        ("::1", ["localhost"], {}, False),
        (None, ["localhost"], {}, True),  # unset: every address of the machine
        ("", ["localhost"], {}, True),
        ("0.0.0.0", ["localhost"], {}, True),
        ("::", ["localhost"], {}, True),
        ("192.168.1.5", ["localhost"], {}, True),
        ("localhost", [], {}, True),  # any name: a proxy may stand before it
        ("localhost", ["*"], {}, True),
        ("localhost", ["localhost", "inspector.example.org"], {}, True),
        ("localhost", ["localhost"], {"INSPECTOR_SIGN_IN": "proxy"}, True),
        ("localhost.example.org", ["localhost"], {}, True),
    ],
)
def test_whom_a_server_serves(listening, address, hosts, environment, others):
    listening(address, hosts, **environment)
    assert place.serves_others() is others


@pytest.mark.parametrize(
    ("address", "allowed", "is_open"),
    [("localhost", "0", True), ("localhost", "1", True), ("0.0.0.0", "0", False), ("0.0.0.0", "1", True)],
)
def test_paths_are_closed_beyond_localhost(listening, tmp_path, address, allowed, is_open):
    root = tmp_path.resolve()
    listening(address, INSPECTOR_PATHS=allowed, INSPECTOR_ROOTS=str(root))
    assert place.paths_are_open() is is_open
    assert place.served_settings().roots == ((root,) if is_open else ())
    assert settings().roots == (root,)  # the command line's


@pytest.mark.parametrize(
    ("address", "environment", "roots"),
    [
        ("localhost", {}, ["/"]),  # as on the command line
        ("localhost", {"INSPECTOR_OPEN": "path:/elsewhere"}, ["/"]),
        ("localhost", {"INSPECTOR_ROOTS": "/models", "INSPECTOR_OPEN": "path:/else"}, ["/models", "/else"]),
        ("localhost", {"INSPECTOR_ROOTS": "/models", "INSPECTOR_OPEN": "hub:org/name"}, ["/models"]),
        ("localhost", {"INSPECTOR_ENGINE": "ray"}, []),
        ("0.0.0.0", {}, []),
        ("0.0.0.0", {"INSPECTOR_PATHS": "1"}, []),
        ("0.0.0.0", {"INSPECTOR_PATHS": "1", "INSPECTOR_OPEN": "path:/elsewhere"}, []),
        ("0.0.0.0", {"INSPECTOR_PATHS": "1", "INSPECTOR_ROOTS": "/models"}, ["/models"]),
    ],
)
def test_which_folders_are_open(listening, address, environment, roots):
    listening(address, **{"INSPECTOR_ROOTS": "", **environment})
    assert place.served_settings().roots == tuple(map(Path, roots))
    assert place.paths_are_open() is bool(roots)


def test_commands_tell_others_no_folder_of_the_server(listening):
    checkpoint = Opened("f" * 64, "path:/data/models/bert", "bert", ())
    listening("localhost")
    assert command("lens", checkpoint) == "python -m inspector lens /data/models/bert"
    listening("0.0.0.0")
    assert command("lens", checkpoint) == "python -m inspector lens bert"


def _serving(*people: str, secret: str = "") -> Serving:
    return Serving(paths=False, sign_in="oidc", people=people, header="X-User", secret=secret)


@pytest.mark.parametrize(
    ("address", "verified", "people", "admitted"),
    [
        ("Ada@X.org", True, ("@x.org",), True),
        ("ada@x.org", True, ("ada@x.org",), True),
        ("eve@x.org", True, ("ada@x.org",), False),
        ("eve@x.org", True, ("ada@x.org", "@x.org"), True),
        ("ada@evilx.org", True, ("@x.org",), False),
        ("ada@x.org.evil.net", True, ("@x.org",), False),
        ("ada@x.org@evil.net", True, ("@x.org",), False),
        ("ada@sub.x.org", True, ("@x.org",), False),
        ("ada@x.org", False, ("@x.org",), False),
        ("ada@x.org", "true", ("@x.org",), False),
        ("ada@x.org", None, ("@x.org",), False),
        (None, True, ("@x.org",), False),
        (None, None, (), True),
    ],
)
def test_who_is_admitted(address, verified, people, admitted):
    claims = {"is_logged_in": True, "email": address, "email_verified": verified}
    assert is_admitted(claims, _serving(*people)) is admitted


def test_an_administrator_is_named_and_verified():
    settings = read_serving({"INSPECTOR_SIGN_IN": "oidc", "INSPECTOR_ADMINS": "ada@x.org"})
    claims = {"is_logged_in": True, "email": "Ada@x.org", "email_verified": True}
    assert is_admin(claims, settings)
    for other in ({"email": "eve@x.org"}, {"email_verified": False}, {"is_logged_in": False}):
        assert not is_admin(claims | other, settings)
    assert not is_admin(claims, read_serving({"INSPECTOR_SIGN_IN": "oidc"}))  # nobody named: nobody is one


def test_people_are_told_apart_by_what_they_cannot_write_themselves():
    claims = {"is_logged_in": True, "iss": "https://x", "sub": "1", "email": "ada@x.org"}
    assert identity_of(claims) == identity_of(claims | {"email": "other@x.org"})
    assert len({identity_of(each) for each in (claims, claims | {"sub": "2"}, claims | {"iss": "https://y"})}) == 3


@pytest.mark.parametrize("claims", [{}, {"is_logged_in": False}, {"is_logged_in": "yes"}])
def test_nobody_is_admitted_without_signing_in(claims):
    told = {"email": "ada@x.org", "email_verified": True, **claims}
    assert not is_admitted(told, _serving())
    assert not is_admitted(told, _serving("@x.org"))


def test_a_proxys_word_counts_with_its_secret_alone():
    settings = _serving(secret=SECRET)
    told = {"X-User": "ada", "X-Inspector-Secret": SECRET}
    assert proxy_claims(told, settings)["email"] == "ada"
    for wrong in ({"X-User": "ada"}, {**told, "X-Inspector-Secret": "guess"}, {**told, "X-User": " "}):
        assert proxy_claims(wrong, settings) == {}
    assert proxy_claims({"X-User": "ada", "X-Inspector-Secret": "x"}, _serving()) == {}


def test_a_proxy_needs_a_secret_beyond_localhost(listening):
    from inspector.serving.people import check_sign_in

    environment = {"INSPECTOR_SIGN_IN": "proxy"}
    listening("localhost")
    check_sign_in(read_serving(environment))
    listening("0.0.0.0")
    with pytest.raises(SettingsError, match="INSPECTOR_PROXY_SECRET"):
        check_sign_in(read_serving(environment))
    check_sign_in(read_serving({**environment, "INSPECTOR_PROXY_SECRET": SECRET}))


def test_beyond_localhost_workers_must_be_confined(listening):
    auto, off = (read_settings({"INSPECTOR_CONFINEMENT": value}) for value in ("auto", "off"))
    listening("localhost")
    place.check_confinement(auto, lambda: pytest.fail("nobody asked"))
    listening("0.0.0.0")
    place.check_confinement(auto, tuple)
    place.check_confinement(off, lambda: pytest.fail("nobody asked"))
    with pytest.raises(SettingsError, match=r"\(Landlock is missing\).*INSPECTOR_CONFINEMENT to off"):
        place.check_confinement(auto, lambda: ("Landlock",))


@pytest.mark.parametrize(
    ("address", "setting", "expected"),
    [("localhost", "auto", "auto"), ("0.0.0.0", "auto", "required"), ("0.0.0.0", "off", "off")],
)
def test_the_pages_engine_confines_as_the_address_demands(monkeypatch, listening, address, setting, expected):
    monkeypatch.setattr(place, "settings", lambda: read_settings({"INSPECTOR_CONFINEMENT": setting}))
    listening(address)
    assert place.served_settings().confinement == expected


def test_workers_are_told_no_secret_of_the_server():
    """What a worker gets are `inspector.settings`; the proxy's secret is not among them."""
    text = (Path(__file__).parents[2] / "inspector/settings.py").read_text("utf-8")
    assert "SECRET" not in text


@pytest.fixture
def started(listening, monkeypatch, capsys):
    """Start as a server does; give what it prints, and the addresses that it opens."""

    def begin(address="localhost", *, headless=False, named="localhost", **environment):
        listening(address, **{"server.headless": headless, "browser.serverAddress": named}, **environment)
        access_token.cache_clear()
        seen = []
        monkeypatch.setattr(start, "open_browser", seen.append)

        async def enter():
            async with start.starting(None, readiness=Readiness(settings(), look=lambda found: ())) as state:
                await asyncio.sleep(0)
                assert state == {}

        run(enter())
        return capsys.readouterr().out, seen

    yield begin
    access_token.cache_clear()


def test_on_this_machine_the_address_has_a_token_and_the_browsers_another(started):
    printed, (opened,) = started()
    (shown,) = re.findall(r"http://localhost:8501/\?token=[\w-]{40,}(?=\n)", printed)
    assert re.fullmatch(r"http://localhost:8501/\?token=[\w-]{40,}", opened)
    assert shown != opened
    assert started(headless=True)[1] == []
    assert started(headless=True)[0] != printed  # another start, another token


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"address": "0.0.0.0"}, "http://localhost:8501/"),
        ({"address": None}, "http://localhost:8501/"),
        ({"address": "0.0.0.0", "named": "inspector.example.org"}, "http://inspector.example.org:8501/"),
        ({"INSPECTOR_SIGN_IN": "oidc"}, "http://localhost:8501/"),
        ({"INSPECTOR_TOKEN": "off"}, "http://localhost:8501/"),
    ],
)
def test_where_others_are_served_or_a_setting_says_so_there_is_no_token(started, settings, address):
    printed, opened = started(**settings)
    assert opened == [address]
    assert printed.endswith(f" {address}\n")
