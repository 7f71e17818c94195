"""The scan: static files, routes, pages, refusals, uploads, and what browsers never send."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote, urlsplit

import streamlit
from streamlit.file_util import get_static_dir
from streamlit.proto.BackMsg_pb2 import BackMsg

from inspector.serving.headers import security_headers
from tools.scan.files import LINKS, bad_files
from tools.scan.leaks import Watch, known_values
from tools.scan.requests import TWO_HOSTS, Asked, exchange, malformed, odd, ordinary, plain
from tools.scan.sessions import Session, session

ROOT = Path(__file__).parents[2]
SLUGS = tuple(sorted(path.stem for path in ROOT.glob("pages/[a-z]*.py")))
INPUTS = (
    *("text=" + "word+" * 900, "text=%ED%A0%80", "device=cuda", "dtype=nothing", "layers=9-1"),
    *("k=1e400", "layer=1e400", "k=nan", "k=-1"),
)
TOO_LONG = bytes(2_000_001)  # more than a browser may send at once
CONNECTIONS, MOST_KEPT = 6, 150_000_000  # at once, and bytes that they may leave in the server's memory
ALLOWED = 1_900_000  # bytes of a message, a little below what is read
CSV = 'stElementToolbarButton]:has([aria-label^="Download as CSV"]) { display: none }'  # it would write formulas
ADDRESS = re.compile(r"https?://\w|www\.\w|\w@\w")  # what Markdown makes a link of, escaped or not
QUIET_SECONDS = 1.0  # in which a request that is refused is answered, or never
# Answers that the web server itself gives before any app is asked, and what it says then.
BEFORE_THE_APP = re.compile(rb"HTTP/1.1 (400|501|505|426|403|414|431)[^\r]*\r\n")


def watch_for(environment: Mapping[str, str], *, home: Path | None, secrets: list[str]) -> Watch:
    """Look for this machine's paths, the libraries' versions, and what is in an environment."""
    paths = [ROOT, Path.home(), Path(sys.prefix), Path(streamlit.__file__).parent, Path(tempfile.gettempdir())]
    if home:
        paths += [home, home.parent]
    return Watch(known_values(paths=map(str, paths), environment=environment, secrets=secrets))


def scan(url: str, watch: Watch) -> None:
    """Ask a server everything; the watch remembers what it gave away."""
    ask_everything(url, watch)
    _static_files(url, watch)
    with session(url, watch.look) as person:
        for slug in SLUGS:
            person.visit(slug)
        for query in INPUTS:
            person.visit("lens", query)
        _uploads(person, watch)
        for box in person.boxes:
            watch.note("failure", "an error box", box[:80])
        if not person.tables or CSV not in person.styles:
            watch.note("failure", "the toolbar of tables", "it offers a CSV that is not ours")
    _links(url, watch)
    _wrong_messages(url, watch)


def ask_everything(url: str, watch: Watch) -> None:
    """Send what browsers send, and what they never do."""
    host = urlsplit(url).netloc
    for asked in (*ordinary(host), *odd(host, asset=_asset()), *malformed(host)):
        ask(url, asked, watch)


def scan_memory(url: str, watch: Watch, memory: Callable[[], int]) -> None:
    """Let strangers send as much as a message may have, and leave; the server forgets it.

    Args:
        url: The server's.
        watch: Remembers what it kept.
        memory: Bytes that the server has.
    """
    with ExitStack() as sessions:
        people = [sessions.enter_context(session(url, watch.look)) for _ in range(CONNECTIONS)]
        for person in people:
            person.visit("overview")
        before = memory()
        for person in people:
            request = BackMsg()
            state = request.rerun_script.widget_states.widgets.add()
            state.id, state.string_value = "$$ID-0-None", "x" * ALLOWED
            person.send(request, "a message of the most that is read")
        for person in people:
            person.drain(QUIET_SECONDS)
    if (kept := memory() - before) > MOST_KEPT:
        watch.note("failure", "memory", f"{CONNECTIONS} connections left {kept / 1e6:,.0f} MB")


def _links(url: str, watch: Watch) -> None:
    for link in LINKS:
        with session(url, watch.look) as person:
            person.visit("overview", f"checkpoint={quote(link)}")
            if not person.errors:
                watch.note("failure", f"link {link[:40]}", "an invalid link causes no error")
            for said in person.errors:
                if "__" in re.sub(r"`[^`]*`", "", said):  # bold in Markdown
                    watch.note("failure", f"link {link[:40]}", "a stranger's text is Markdown")
                if ADDRESS.search(re.sub(r"\\(.)", r"\1", said)):
                    watch.note("failure", f"link {link[:40]}", "an address in a stranger's text becomes a link")


def _wrong_messages(url: str, watch: Watch) -> None:
    """Send each in a session of its own; all are waited for together."""
    with ExitStack() as sessions:
        people = []
        for name, request in _unwanted().items():
            people.append(person := sessions.enter_context(session(url, watch.look)))
            person.visit("overview")
            person.send(request, name)
        for data in ("text", b"\xff" * 40, b"", bytes(3000)):
            people.append(person := sessions.enter_context(session(url, watch.look)))
            person.send_raw(data, f"{data[:8]!r} over the websocket")
        people.append(person := sessions.enter_context(session(url, watch.look)))
        person.send_raw(TOO_LONG, "a message that is too long")
        if person.drain(QUIET_SECONDS):
            watch.note("failure", "a message that is too long", "it was read")
        for person in people[:-1]:
            person.drain(QUIET_SECONDS)


def ask(url: str, asked: Asked, watch: Watch) -> None:
    """Send one request, and look at its answer."""
    answer = exchange(url, asked.data)
    watch.look(answer.partition(b"\r\n\r\n")[0] if _is_asset(answer) else answer, asked.name)
    status = answer[:12].decode("latin-1")
    if asked.name == TWO_HOSTS and not status.startswith("HTTP/1.1 4"):
        watch.note("failure", asked.name, f"answered with {status!r}")
    if not status.startswith("HTTP/1.1 ") or (status[9] == "5" and status != "HTTP/1.1 501"):
        watch.note("failure", asked.name, f"answered with {status!r}")
    if not BEFORE_THE_APP.match(answer):
        _check_headers(answer, asked.name, watch)


def _check_headers(answer: bytes, where: str, watch: Watch) -> None:
    head = answer.partition(b"\r\n\r\n")[0].decode("latin-1").lower()
    for name, value in security_headers().items():
        if f"{name}: {value}".lower() not in head:
            watch.note("header", where, f"{name} is missing")


def _static_files(url: str, watch: Watch) -> None:
    """Headers of every file of Streamlit's own; its text is public, and tells no path."""
    for name in _assets():
        answer = exchange(url, plain("GET", f"/{name}", urlsplit(url).netloc).data)
        head, _, body = answer.partition(b"\r\n\r\n")
        watch.look(head, name)
        _check_headers(answer, name, watch)
        if not head.startswith(b"HTTP/1.1 200"):
            watch.note("failure", name, head[:20].decode("latin-1"))
        if str(ROOT).encode() in body:
            watch.note("path", name, str(ROOT))


def _assets() -> list[str]:
    folder = Path(get_static_dir())
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _asset() -> str:
    return "/" + next(name for name in _assets() if name.endswith(".css"))


def _is_asset(answer: bytes) -> bool:
    """Whether an answer is one of Streamlit's files, which name what they are made of."""
    return b"\nlast-modified:" in answer[:4000]


def _uploads(person: Session, watch: Watch) -> None:
    for name, content in bad_files().items():
        before = len(person.errors)
        person.upload("overview", name, content)
        person.visit("overview")
        if len(person.errors) == before:
            watch.note("failure", f"upload of {name}", "a bad file was accepted")


def _unwanted() -> dict[str, BackMsg]:
    """Requests that Streamlit's protocol has and that no page of the app makes."""
    made = {
        name: BackMsg()
        for name in (
            "load_git_info",
            "clear_cache",
            "set_run_on_save",
            "debug_shutdown_runtime",
            "debug_disconnect_websocket",
        )
    }
    for name, message in made.items():
        setattr(message, name, True)
    install = made["install_skills"] = BackMsg()
    install.backend_operation_request.install_skills.SetInParent()
    lost = made["a missing fragment"] = BackMsg()
    lost.rerun_script.fragment_id = "nothing"
    wrong = made["widget values of the wrong type"] = BackMsg()
    state = wrong.rerun_script.widget_states.widgets.add()
    state.id, state.json_value = "$$ID-0-None", "{"
    page = made["a missing page"] = BackMsg()
    page.rerun_script.page_script_hash = "../../etc/passwd"
    return made
