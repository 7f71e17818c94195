"""Driving the browser: from where a loop of events runs already, and what the log says of its end."""

from __future__ import annotations

import asyncio
import logging

import pytest
from choreographer.channels import JSONError, _wire

from inspector import browser
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
