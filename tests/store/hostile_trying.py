"""Try bad checkpoints: each is refused in one sentence, or answered and right, with nothing else printed."""

from __future__ import annotations

import gc
import math
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from plotly.offline import get_plotlyjs

from inspector.catalog import answer
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.report.making import make_report
from inspector.report.page import write_page
from inspector.results.checkpoint import Opened
from inspector.sandbox import limits
from inspector.settings import read_settings
from inspector.store.manifests.manifest import Manifest
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.store.hostile_mix import Make, cases, sound
from tests.store.hostile_truth import LENS_TEXT, TEXTS, agrees
from tools.fuzz.property import checked

SECONDS = 60  # of processor time for all questions about one checkpoint
DAILY = 12  # of so many cases one is tried daily
REPORTED = 4  # of so many a report is written
REPORTED_DAILY = 60
SELDOM = 50_000  # new objects between two collections of garbage: a model is made of many, and few are garbage
SAME_NUMBERS = {"configs", "headers", "indexes", "names", "zips", "archives", "formats", "places"}
COMPARED: Counter[tuple[str, bool | None]] = Counter()  # how many answers were compared, of this process
CONTROLS = {chr(code) for code in (*range(32), 0x7F, 0x202E)} - set("\t\n\r")
QUESTIONS: dict[str, dict[str, Any]] = {
    "overview": {},
    "check": {},
    "tokenize": {"texts": TEXTS},
    "predict": {"text": "w1 [MASK] w2"},
    "lens": {"text": LENS_TEXT},
}


@cache
def made() -> dict[str, Make]:
    return cases()


def kind_of(name: str) -> str:
    """What is damaged in a case."""
    return name.partition(": ")[0]


def each(*kinds: str, daily: int = DAILY, step: int = 1) -> list[Any]:
    """Every so many of all cases, by name, those of some kinds; the daily loop tries one in `daily`."""
    return [
        pytest.param(name, marks=() if number % daily == 0 else pytest.mark.fuzz)
        for number, name in enumerate(sorted(made()))
        if number % step == 0 and kind_of(name) in kinds
    ]


def some(*kinds: str) -> list[Any]:
    """The cases of some kinds of which a report is written."""
    return each(*kinds, daily=REPORTED_DAILY, step=REPORTED)


@contextmanager
def stderr() -> Iterator[Path]:
    """What is written to descriptor 2 meanwhile, by native libraries too."""
    with tempfile.NamedTemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield Path(file.name)
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def told(act: Any) -> tuple[Any, str | None]:
    """A result, or the sentence in its place: as a worker tells an error."""
    try:
        return act(), None
    except InspectorError as error:
        return None, checked(str(error))
    except BaseException as error:
        if known := limits.explain(error, read_settings({})):
            return None, checked(str(known))
        raise


@cache
def plotly() -> str:
    return get_plotlyjs()


class Page(HTMLParser):
    """What a report's page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts, self.attributes = 0, set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script" and not dict(attrs).get("type")
        self.attributes |= {name for name, _ in attrs}


def reported(opened: tuple[Manifest, CheckpointRef], checkpoint: StagedCheckpoint) -> None:
    """Write a report, whose page runs its own scripts alone and shows no control codes."""
    manifest, reference = opened
    about = Opened(manifest.fingerprint, str(reference), manifest.name, manifest.warnings)

    def ask(verb: str, tell: Callable[[str], None], /, **parameters: Any) -> Any:
        checkpoint.called = (about.name,)
        return answer(verb, checkpoint, progress=silent, **parameters)

    text = write_page(make_report(ask, about))
    text.encode()  # no half of a pair
    own = text.split(plotly())  # which takes long to parse, and must be there as it is, once
    assert len(own) == 2
    assert not set("".join(own)) & CONTROLS
    page = Page("".join(own))
    assert page.scripts == 3  # Plotly, what saves pictures, and what draws them
    assert not [name for name in page.attributes if name.startswith("on")]


def outcomes(path: Path, home: Path, undamaged: Path | None, *, report: bool) -> dict[str, str | None]:
    """What is said of a checkpoint, question by question, or of a report of it; None: it is answered, and right."""
    settings = read_settings({"INSPECTOR_HOME": str(home)})
    reference = CheckpointRef("path", str(path))
    opened, sentence = told(
        lambda: open_checkpoint(reference, settings=settings, progress=silent, restrict_paths=False)
    )
    found = {"open": sentence}
    if opened is None:
        return found
    checkpoint = StagedCheckpoint(opened[0], settings=settings)
    if report:
        _, found["report"] = told(partial(reported, opened, checkpoint))
        return found
    for verb, asked in QUESTIONS.items():
        result, found[verb] = told(partial(answer, verb, checkpoint, **asked, progress=silent))
        if result is not None:
            right = agrees(verb, result, path if path.is_dir() else path.parent / "model")
            if right is None and undamaged:  # no library reads it, and its numbers are as they were
                right = agrees(verb, result, undamaged)
            assert right is not False, verb
            COMPARED[verb, right] += 1
        if result is not None and verb == "predict":
            shown = [value for mask in result.masks for value in mask.predictions["probability"]]
            assert all(math.isfinite(value) and 0 <= value <= 1 for value in shown)
    return found


def undamaged_one(name: str, folder: Path) -> Path | None:
    """The checkpoint that a case was made from, if its numbers are still in it."""
    if kind_of(name) not in SAME_NUMBERS:
        return None
    folder.mkdir()
    return sound(folder, name.split()[1]) if kind_of(name) == "configs" else sound(folder)


def _too_long(*_: Any) -> None:
    raise AssertionError("it takes too long")


@contextmanager
def seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def tried(name: str, folder: Path, *, report: bool = False) -> dict[str, str | None]:
    """Try one case."""
    (folder / "case").mkdir()
    path = made()[name](folder / "case")
    before = signal.signal(signal.SIGVTALRM, _too_long)
    with stderr() as printed, seldom_collected():
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            found = outcomes(path, folder / "home", undamaged_one(name, folder / "undamaged"), report=report)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
        assert printed.read_text("utf-8", "replace") == ""
    return found
