"""Driving the browser: from where a loop of events runs already, and what the log says of its end."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from choreographer.channels import JSONError, _wire

from inspector import browser
from inspector.browser.driving import REFUSED_OPTIONS
from tests.models import loops


async def _five() -> int:
    await asyncio.sleep(0)
    return 5


def test_work_runs_with_a_loop_around_it_and_without() -> None:
    seen: list[int] = []

    async def around() -> None:
        seen.append(browser.run(_five()))

    loops.run(around())
    loops.run(_without(seen))
    assert seen == [5, 5]


async def _without(seen: list[int]) -> None:
    seen.append(await asyncio.to_thread(lambda: browser.run(_five())))


async def _open_and_close() -> None:
    async with browser.Chromium() as chromium:
        await chromium.tab()


def test_chromium_knows_no_secret_and_its_pages_read_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECTOR_PROXY_SECRET", "a-secret-of-the-server")
    (tmp_path / "secret.js").write_text("window.secret = 1")
    beside = (tmp_path / "secret.js").as_uri()

    async def look() -> tuple[object, list[str]]:
        async with browser.Chromium() as chromium:
            tab = await chromium.tab()
            await tab.show(f"<script>window.began = 1</script><script src='{beside}'></script><p id=end>")
            await tab.until("window.began && document.getElementById('end')")
            read = await tab.value(f"fetch('{beside}').then((answer) => answer.text()).catch(() => 'refused')")
            known: list[str] = []
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    known += [*process.cmdline(), *process.environ().values()] if "chrom" in process.name() else []
            return (read, await tab.value("window.secret || 'none'")), known

    read, known = browser.run(look())
    assert read == ("refused", "none")
    assert known
    assert not [value for value in known if "a-secret-of-the-server" in value or value in REFUSED_OPTIONS]


@pytest.mark.parametrize(("message", "logged"), [("{bye}\n", 0), ('{"id": 1', 1)])
def test_only_the_goodbye_of_a_browser_is_kept_out_of_the_log(
    message: str, logged: int, caplog: pytest.LogCaptureFixture
) -> None:
    loops.run(_open_and_close())
    caplog.clear()
    try:
        _wire.deserialize(message)
    except JSONError:  # as choreographer's pipe does with each message that is no JSON
        logging.getLogger("choreographer.channels.pipe").exception("JSONError decoding message. Ignoring")
    assert len(caplog.records) == logged
