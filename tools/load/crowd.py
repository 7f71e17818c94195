"""A crowd of sessions on one server: how long they wait, and whether every answer is right."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import psutil

from inspector.serving.trial import Server
from tools.load.contents import PageElement, differences
from tools.load.people import FAST, PAGES, TYPED, PageAnswer, Person, Visit, person, sentence

KINDS = ("demo-bert", "demo-gpt2", "first upload", "second upload", "fast")
DEMO = "demo-bert"
SAMPLE_SECONDS = 0.5
AFTER_SECONDS = 10.0  # in which a server that nobody asks should do nothing
NOT_COMPARED = ("server",)  # pages that show the server itself


@dataclass(frozen=True, slots=True)
class CrowdUpload:
    """A checkpoint that people upload."""

    name: str  # of the archive
    content: bytes
    reference: str  # in a link, once it is there


@dataclass
class CrowdMeasurements:
    """What a crowd has seen."""

    sessions: int
    answers: list[PageAnswer] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  # sessions that broke, and how
    seconds: float = 0.0
    memory: list[int] = field(default_factory=list)  # bytes of server and workers, sample by sample
    after: float = 0.0  # processor seconds used after everybody had left

    def percentile(self, share: float) -> float:
        """Seconds that this share of the answers took at most."""
        ordered = sorted(answer.seconds for answer in self.answers)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Oracle:
    """What a lone session is answered, a new one for each page."""

    def __init__(self, server: Server, uploads: dict[str, CrowdUpload]) -> None:
        self._server, self._uploads = server, uploads
        self._known: dict[Visit, list[PageElement]] = {}

    def ask(self, visits: Iterator[Visit]) -> None:
        """Learn the answers to some visits, one after the other."""
        for visit in visits:
            if visit in self._known:
                continue
            with person(self._server.url) as alone:
                self._known[visit] = alone.open(visit, reference(visit, self._uploads)).said

    def judge(self, answer: PageAnswer) -> Iterator[str]:
        """Where an answer differs from the lone session's."""
        if answer.visit.page not in NOT_COMPARED:
            for difference in differences(answer.said, self._known[answer.visit]):
                yield f"{answer.visit}: {difference}"


def reference(visit: Visit, uploads: dict[str, CrowdUpload]) -> str:
    """What a link names the visit's checkpoint."""
    upload = uploads.get(visit.checkpoint)
    return upload.reference if upload else visit.checkpoint


def journey(number: int) -> list[Visit]:
    """The pages that a person opens, each person beginning with another."""
    kind = KINDS[number % len(KINDS)]
    checkpoint = DEMO if kind == "fast" else kind
    turn = number % len(PAGES)
    masked = checkpoint in {DEMO, "first upload"}
    text = sentence(number // len(KINDS), masked=masked)
    return [Visit(checkpoint, page, text if page in TYPED else "") for page in (*PAGES[turn:], *PAGES[:turn])]


def typing(number: int) -> list[Visit]:
    """Texts that one person types faster than they are answered."""
    return [
        Visit(DEMO, "masked_lm" if number % 2 else "lens", sentence(number + turn, masked=True)) for turn in range(FAST)
    ]


def asked_by(number: int) -> list[Visit]:
    """All whose answers a person looks at."""
    last = typing(number // len(KINDS))[-1:] if KINDS[number % len(KINDS)] == "fast" else []
    return [*journey(number), *last]


def walk(number: int, someone: Person, uploads: dict[str, CrowdUpload]) -> Iterator[PageAnswer]:
    """One person's visit to the server, from beginning to end."""
    kind = KINDS[number % len(KINDS)]
    if kind in uploads:
        someone.upload(uploads[kind].name, uploads[kind].content)
    for visit in journey(number):
        yield someone.open(visit, reference(visit, uploads))
    if kind == "fast":
        visits = typing(number // len(KINDS))
        someone.open(Visit(DEMO, visits[0].page), DEMO)
        yield someone.type_fast(visits)


def crowd(
    server: Server,
    sessions: int,
    uploads: dict[str, CrowdUpload],
    oracle: Oracle,
    *,
    until: Callable[[], bool] | None = None,
) -> CrowdMeasurements:
    """Let sessions walk at once.

    Args:
        server: That they ask.
        sessions: How many.
        uploads: Checkpoints that they upload, by kind.
        oracle: Knows the right answers.
        until: They walk again until it says so; None: once.
    """
    measured = CrowdMeasurements(sessions)
    lock = threading.Lock()

    def live(number: int) -> None:
        while True:
            try:
                with person(server.url) as someone:
                    for answer in walk(number, someone, uploads):
                        wrong = list(oracle.judge(answer))
                        with lock:
                            measured.answers.append(answer)
                            measured.wrong.extend(wrong)
            except Exception as error:  # a session that breaks is a result, not the end
                with lock:
                    measured.failed.append(f"session {number}: {type(error).__name__}: {error}")
            if until is None or until():
                return

    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(server, measured, done))
    watcher.start()
    begin = time.perf_counter()
    with ThreadPoolExecutor(sessions) as pool:
        list(pool.map(live, range(sessions)))
    measured.seconds = time.perf_counter() - begin
    done.set()
    watcher.join()
    before = processor_seconds(server)
    time.sleep(AFTER_SECONDS)
    measured.after = sum(seconds - before[pid] for pid, seconds in processor_seconds(server).items() if pid in before)
    return measured


def processes(server: Server) -> list[psutil.Process]:
    """The server and its workers."""
    top = psutil.Process(server.process.pid)
    return [top, *top.children(recursive=True)]


def processor_seconds(server: Server) -> Counter[int]:
    """Processor time of each process."""
    found: Counter[int] = Counter()
    for process in processes(server):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found[process.pid] = times.user + times.system  # type: ignore[assignment]
    return found


def _watch(server: Server, measured: CrowdMeasurements, done: threading.Event) -> None:
    while not done.wait(SAMPLE_SECONDS):
        total = 0
        for process in processes(server):
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        measured.memory.append(total)
