"""Drive a headless Chromium: open a page, wait for it, ask it, take its picture or print it."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Literal, TypeVar

from inspector.browser.finding import NO_CHROMIUM, find_chromium
from inspector.errors import InspectorError, RequestError

# Of the environment: a page could ask for more than Chromium needs.
KEPT = {
    *("DBUS_SESSION_BUS_ADDRESS", "HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "TEMP", "TMP", "TMPDIR", "TZ"),
    *("SYSTEMROOT", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
}
KEPT_PREFIXES = ("FONTCONFIG_", "LC_")
# Of choreographer's options, those that let a page read this machine's files and other sites' answers.
REFUSED_OPTIONS = {"--allow-file-access-from-files", "--disable-web-security"}
ANSWER_SECONDS = 120.0  # for a page that has to load a model first, on a busy machine
POLL_SECONDS = 0.1
Answer = TypeVar("Answer")


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Drive to the end: in a thread where a loop runs already, as in notebooks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def is_no_goodbye(record: logging.LogRecord) -> bool:
    """Whether a line of choreographer's log is more than this: a browser that ended took its leave.

    Its last word, "{bye}", is no JSON; choreographer knows it when it comes alone, and writes a
    traceback when it comes in one read with another message.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not str(getattr(error and error.__cause__, "doc", "")).startswith("{bye}")


class BrowserTab:
    """One page of the browser."""

    def __init__(self, tab: Any) -> None:
        self._tab = tab

    async def go(self, url: str) -> None:
        """Open an address; the page may still be loading."""
        await self._ask("Page.navigate", url=url)

    async def show(self, page: str) -> None:
        """Show HTML that has no address, and so no files beside it; it may still be loading."""
        tree = await self._ask("Page.getFrameTree")
        await self._ask("Page.setDocumentContent", frameId=tree["frameTree"]["frame"]["id"], html=page)

    async def resize(self, width: int, height: int) -> None:
        """Make the window as large as this, in CSS pixels."""
        await self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def prefer(self, theme: Literal["light", "dark"], *, media: Literal["", "print"] = "") -> None:
        """Have pages think that the reader likes it light or dark, and reads it on paper."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        await self._ask("Emulation.setEmulatedMedia", media=media, features=features)

    async def offline(self) -> None:
        """Let pages reach no network at all."""
        await self._ask("Network.enable")
        await self._ask(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0
        )

    async def value(self, script: str) -> Any:
        """What a JavaScript expression gives, as JSON values; promises are awaited.

        Raises:
            InspectorError: If the expression fails.
        """
        answer = await self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise InspectorError("A page in the browser failed: try again.")
        return answer["result"].get("value")

    async def until(self, script: str, *, seconds: float = ANSWER_SECONDS) -> None:
        """Wait for an expression to become true.

        Raises:
            InspectorError: If it does not in time.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        while not await self.value(f"Boolean({script})"):
            if asyncio.get_running_loop().time() > deadline:
                raise InspectorError(
                    f"A page in the browser did not finish loading within {seconds:.0f} seconds: try again on a less "
                    "loaded machine."
                )
            await asyncio.sleep(POLL_SECONDS)

    async def picture(self) -> bytes:
        """The window as PNG."""
        answer = await self._ask("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])

    async def printed(self) -> bytes:
        """The page as PDF, on the paper that its styles name."""
        answer = await self._ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])

    async def _ask(self, command: str, **parameters: Any) -> dict[str, Any]:
        answer = await self._tab.send_command(command, parameters)
        if "error" in answer:
            raise InspectorError(f"The browser refused {command}: update it, then try again.")
        return answer["result"]


class Chromium:
    """A headless Chromium, as an asynchronous context.

    Raises:
        RequestError: On entering, if there is none or it does not start.
    """

    async def __aenter__(self) -> Chromium:
        path = find_chromium()
        if path is None:
            raise RequestError(NO_CHROMIUM)
        # Imported here: the pages need it only when somebody asks for pictures.
        from choreographer import Browser
        from choreographer.browsers import BrowserClosedError, BrowserFailedError
        from choreographer.browsers import Chromium as Unconfined

        class Confined(Unconfined):
            """Chromium without the server's secrets, and without what opens its files to pages."""

            def get_cli(self) -> list[str]:
                return [word for word in super().get_cli() if word not in REFUSED_OPTIONS]

            def get_env(self) -> dict[str, str]:
                return {
                    name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)
                }

        logging.getLogger("choreographer.channels.pipe").addFilter(is_no_goodbye)
        # Chromium's own sandbox does not work for root, and only there it is off.
        sandbox = hasattr(os, "geteuid") and os.geteuid() != 0
        self._browser = Browser(path, browser_cls=Confined, headless=True, enable_sandbox=sandbox)
        try:
            await self._browser.open()
        except (BrowserClosedError, BrowserFailedError, OSError) as error:
            raise RequestError(
                f"{path.rpartition('/')[2]} is on this machine but does not start, so there are no pictures: start it "
                "manually to see why."
            ) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._browser.close()

    async def tab(self) -> BrowserTab:
        """A new page."""
        tab = await self._browser.create_tab("about:blank")
        return BrowserTab(tab)
