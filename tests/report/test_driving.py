"""Driving the browser from where a loop of events runs already, as in notebooks."""

from __future__ import annotations

import asyncio

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
