"""The two commands that the README prints for a clone, in a clean one, for a user whose home is empty.

`make test` runs one file of tests here: all of them, in a clean checkout, are CI's first step (`.ci/run`).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page

from inspector.serving.trial import ROOT, Server, free_port, wait_until_up
from tests.browser.looking import expect_page, printed_address
from tools.package import create

FEW = "tests/test_names.py"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean clone; its environment has found the libraries that are installed here, and nothing else is done."""
    folder = tmp_path_factory.mktemp("clone") / "inspector"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    create(folder / ".venv")
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a user with an empty home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CI", "MAKE"))}
    return kept | {"HOME": str(tmp_path), "STREAMLIT_SERVER_HEADLESS": "true"}


def test_they_are_two() -> None:
    printed = re.findall(r"^(make \w+) +# ", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert printed == ["make run", "make test"]


def test_make_run_opens_a_demo(page: Page, clone: Path, environment: dict[str, str], tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["make", "run"],
            cwd=clone,
            env={**environment, "PORT": str(port)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(f"http://localhost:{port}", process, log, time.monotonic())
    try:
        wait_until_up(server)
        page.goto(printed_address(server))
        expect_page(page, "overview", "demo-bert")
        assert "token" not in page.url
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=60)
    assert not server.complaints()


def test_make_test_runs_tests(clone: Path, environment: dict[str, str], tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    few = {"PYTEST_ADDOPTS": f"{FEW} --junitxml={report}"}
    done = subprocess.run(
        ["make", "test"], cwd=clone, env={**environment, **few}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (suite,) = ElementTree.parse(report).getroot()
    counted = subprocess.run(
        [clone / ".venv/bin/python", "-m", "pytest", "-q", "--collect-only", FEW],
        cwd=clone, env=environment, capture_output=True, text=True, check=True,
    ).stdout.count(f"{FEW}::")  # fmt: skip
    assert int(suite.attrib["tests"]) == counted > 0
    assert [suite.attrib[each] for each in ("failures", "errors", "skipped")] == ["0", "0", "0"]


def test_make_test_fails_where_a_test_does(clone: Path, environment: dict[str, str]) -> None:
    broken = clone / "tests/test_broken.py"
    broken.write_text("def test_broken():\n    assert False\n")
    try:
        done = subprocess.run(
            ["make", "test"],
            cwd=clone,
            env={**environment, "PYTEST_ADDOPTS": "tests/test_broken.py"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        broken.unlink()
    assert done.returncode != 0
    assert re.search(r"\b1 failed\b", done.stdout)
