"""The scan finds what it looks for, and nothing in honest answers."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import pytest
import streamlit

from tools.scan.leaks import Watch, known_values
from tools.scan.requests import malformed, odd, ordinary
from tools.scan.scanning import watch_for

ROOT = Path(__file__).parents[2]
SECRET = "s3cret-of-the-server"


def watch() -> Watch:
    paths = ["/data/inspector-home", sys.prefix]
    environment = {"HF_TOKEN": "hf_0123456789abcdef", "SHORT": "abc"}
    return Watch(known_values(paths=paths, environment=environment, secrets=[SECRET]))


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("path", b"could not open /data/inspector-home/uploads/x"),
        ("path", b"no such file: '/home/ada/models'"),
        ("path", b"\x0a\x21/srv/inspector/app.py"),
        ("path", sys.prefix.encode()),
        ("traceback", b"Traceback (most recent call last):\n"),
        ("traceback", b'  File "app.py", line 3, in <module>'),
        ("traceback", b"at worker.py:81"),
        ("object", b"got <inspector.Thing object at 0x7f00aa>"),
        ("object", b"expected <class 'int'>"),
        ("version", b"HTTP/1.1 200 OK\r\nserver: nginx/1.2\r\n"),
        ("version", f"streamlit {streamlit.__version__}".encode()),
        ("version", f"Python {platform.python_version()}".encode()),
        ("version", b"built by GCC 12.2.0"),
        ("environment", b"token=hf_0123456789abcdef"),
        ("secret", SECRET.encode()),
    ],
)
def test_each_kind_of_leak_is_found(kind, answer):
    found = watch()
    found.look(b"HTTP/1.1 200 OK\r\n\r\nBefore it. " + answer + b" After it.", "a test")
    assert kind in {leak.kind for leak in found.leaks.values()}


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 404 Not Found\r\nserver: uvicorn\r\n\r\nThere is nothing here.",
        b"hidden_act gelu, 12 layers, 3.11 seconds, version 2 of the file, abc",
        b"https://example.org/home/x is a link; ~/.cache too; a/usr/b",
        b"model.safetensors: the file ends early: upload it again.",
        b"python -m inspector lens demo-bert --layers 0-2",
    ],
)
def test_honest_answers_are_no_leaks(answer):
    found = watch()
    found.look(answer, "a test")
    assert found.leaks == {}


def test_one_leak_in_many_answers_counts_once():
    found = watch()
    for number in range(5):
        found.look(b"/home/ada", f"request {number}")
    assert len(found.leaks) == 1
    assert found.counted == {"answers": 5, "bytes": 45}


def test_a_machines_own_paths_are_looked_for(tmp_path):
    found = watch_for({}, home=tmp_path / "store", secrets=[])
    found.look(f"in {tmp_path}/store/uploads".encode(), "a test")
    assert [leak.kind for leak in found.leaks.values()]


def test_every_request_has_a_name_and_bytes():
    asked = [*ordinary("localhost:1"), *odd("localhost:1", asset="/x.css"), *malformed("localhost:1")]
    assert len(asked) > 500
    assert all(each.name and each.data for each in asked)
    assert len({each.data for each in asked}) > 500


def test_security_names_tests_that_exist():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    named = set(re.findall(r"`(tests/[\w/*.]+)`", text))
    assert len(named) > 8
    assert [name for name in sorted(named) if not list(ROOT.glob(name))] == []
