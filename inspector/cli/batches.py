"""Verbs about many checkpoints: which they are, asking them all, and going on after a break."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from inspector.batch.asking import REFUSALS, BatchEntry
from inspector.batch.records import Records, describe
from inspector.cli import child as children
from inspector.cli.answering import REFUSED, task_of
from inspector.cli.child import Child, InProcess, Task, preload, wait_for
from inspector.demo import RUNS
from inspector.errors import CheckpointError, InspectorError, RequestError
from inspector.render.terminal import write_rows
from inspector.results.checkpoint import Opened
from inspector.settings import settings
from inspector.store.names import ARCHIVE_SUFFIXES
from inspector.store.origins.snapshots import (
    UPLOADS,
    Snapshot,
    find_run,
    identity_of,
    is_run,
    list_snapshots,
    step_of,
    uploaded_runs,
)
from inspector.store.reference import CheckpointRef, find_reference
from inspector.store.stored import list_checkpoints
from inspector.text import escaped, json_text
from inspector.view.screen import rows_of

STATUSES = ("done", "refused", "failed")

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CHECKPOINT...",
        help="One or more: folders, archives, weight files, demos, hub ids; or a folder of "
        "snapshots, which includes all of them.",
    ),
]
Listed = Annotated[Path | None, typer.Option("--list", help="A file that lists more checkpoints, one per line.")]
Kept = Annotated[
    Path | None,
    typer.Option(
        "--results",
        help="With several checkpoints: a file for the results, one line of JSON each. After an "
        "interruption, the same command resumes the run.",
    ),
]


@dataclass(frozen=True, slots=True)
class Sought:
    """The checkpoints that a command names."""

    entries: tuple[Snapshot | BatchEntry, ...]  # runs taken apart; an Entry says what is wrong with one
    single: str | None  # the one checkpoint that was named, as it was typed; None: there are many


def seek(checkpoints: Sequence[str] | None, listed: Path | None, *, on_it: str = "") -> Sought:
    """Find the checkpoints that a command names.

    Args:
        on_it: An adapter, which goes on one checkpoint alone.

    Raises:
        RequestError: If it names none, or the list cannot be read.
    """
    texts = [*(checkpoints or ()), *(_read_list(listed) if listed else ())]
    if not texts:
        raise RequestError("No checkpoint is given: name one or more, a folder of snapshots, or --list FILE.")
    many = len(texts) > 1 or listed is not None or names_run(texts[0])
    if many and on_it:
        raise RequestError("--adapter goes with a single checkpoint: name one.")
    entries = tuple(entry for text in texts for entry in _expand(text)) if many else ()
    return Sought(entries, single=None if many else texts[0])


def ask_many(
    sought: Sequence[Snapshot | BatchEntry],
    task: Callable[[Snapshot], Task],
    *,
    question: dict[str, Any],
    results: Path | None,
    is_valid: Callable[[dict[str, Any]], bool] = lambda result: True,
    by_content: bool = True,
    after: Callable[[Snapshot, dict[str, Any]], dict[str, Any]] = lambda snapshot, result: result,
    tell: Callable[[dict[str, Any]], str],
) -> list[dict[str, Any]]:
    """Ask many checkpoints, each in a child of its own, and tell on stderr what comes of each.

    Args:
        task: Gives what a child does for one of them.
        question: Verb and parameters; with a checkpoint's files it decides what is known already.
        is_valid: Whether a result that was kept still holds.
        by_content: Whether equal files under another path give the same result.
        after: What else is done with a result, in this process.
        tell: Puts a result in few words.

    Returns:
        What came of each, in their order.
    """
    lines: dict[str, dict[str, Any]] = {}  # by name
    waiting: dict[Snapshot, None] = {}
    with Records(results, question) as records, _telling(len(sought)) as say:
        for entry in sought:
            name = entry.name if isinstance(entry, Snapshot) else entry.snapshot.name
            known = records.known(entry.identity) if isinstance(entry, Snapshot) else None
            if isinstance(entry, BatchEntry):
                lines[name] = describe(entry)
            elif known and is_valid(known["result"]):
                lines[name] = _public(known) | {"checkpoint": name, "step": entry.step}
            else:
                waiting[entry] = None
                continue
            say(f"{name}: {_told(lines[name], tell)}{' (reused)' if known else ''}")

        def known_by(opened: Opened) -> dict[str, Any] | None:
            line = records.known_by(opened.fingerprint, opened.name) if by_content else None
            return line["result"] if line else None

        for entry in _answers(tuple(waiting), task, known_by, after):
            line = lines[entry.snapshot.name] = _public(records.add(entry))
            say(f"{entry.snapshot.name}: {_told(line, tell)}")
    names = [e.name if isinstance(e, Snapshot) else e.snapshot.name for e in sought]
    return [lines[name] for name in names]


def _answers(
    snapshots: Sequence[Snapshot],
    task: Callable[[Snapshot], Task],
    known: Callable[[Opened], dict[str, Any] | None],
    after: Callable[[Snapshot, dict[str, Any]], dict[str, Any]],
) -> Iterator[BatchEntry]:
    """Ask as many at once as the settings allow; each entry is given as soon as it is there."""
    if len(snapshots) > 1:
        preload(task(snapshots[0]).verb)
    waiting, running = deque(snapshots), list[_RunningCheckpoint]()
    try:
        while waiting or running:
            while waiting and len(running) < settings().workers:
                asked = _RunningCheckpoint(waiting.popleft(), task, known, after)
                running.append(asked)
            if sum(asked.go_on() for asked in running) == 0:
                wait_for([asked.child for asked in running if asked.child])
            ended = [asked for asked in running if asked.entry]
            running = [asked for asked in running if not asked.entry]
            yield from (asked.entry for asked in ended if asked.entry)
    finally:
        for asked in running:
            asked.end()


class _RunningCheckpoint:
    """A checkpoint that is being asked."""

    def __init__(
        self,
        snapshot: Snapshot,
        task: Callable[[Snapshot], Task],
        known: Callable[[Opened], dict[str, Any] | None],
        after: Callable[[Snapshot, dict[str, Any]], dict[str, Any]],
    ) -> None:
        self.entry: BatchEntry | None = None  # once it has answered
        self.child: Child | InProcess | None = None
        self._snapshot = snapshot
        self._known, self._after = known, after
        self._opened: Opened | None = None
        try:
            self.child = children.start(task(snapshot), settings())
        except InspectorError as error:
            self._fail(error)

    def go_on(self) -> bool:
        """Take a message of its child; False: there is none."""
        if self.child is None:
            return True
        try:
            said = self.child.read()
            if said is None:
                return False
            if said.kind == "opened":
                self._opened = said.value
                if result := self._known(said.value):
                    self._succeed(result)
            elif said.kind == "done":
                self._succeed(self._after(self._snapshot, said.value))
            elif said.kind == "failed":
                self._fail(said.value)
        except InspectorError as error:
            self._fail(error)
        return True

    def end(self) -> None:
        """End its child."""
        if self.child is not None:
            self.child.end()

    def _succeed(self, result: dict[str, Any]) -> None:
        self.entry = BatchEntry(self._snapshot, "done", result, opened=self._opened)
        self.end()

    def _fail(self, error: InspectorError) -> None:
        status = "refused" if isinstance(error, REFUSALS) else "failed"
        self.entry = BatchEntry(self._snapshot, status, error=str(error), opened=self._opened)
        self.end()


def asking(verb: str, parameters: Mapping[str, Any]) -> Callable[[Snapshot], Task]:
    """What asks each checkpoint the same question."""
    return lambda snapshot: replace(task_of(verb, (snapshot.reference,), parameters), names_alone=False)


def show_many(
    verb: str,
    lines: list[dict[str, Any]],
    *,
    as_json: bool,
    row: Callable[[dict[str, Any]], dict[str, Any]],
    more: dict[str, Any] | None = None,
) -> None:
    """Print what came of many checkpoints: one JSON object, or a table with a row each.

    Args:
        lines: From `ask_many`.
        as_json: One JSON object.
        row: Columns of a result for the table.
        more: What the JSON says beside them.
    """
    counts = {status: sum(line["status"] == status for line in lines) for status in STATUSES}
    if as_json:
        whole = {"verb": verb, "checkpoints": lines, "counts": counts} | (more or {})
        sys.stdout.write(json_text(whole) + "\n")
        return
    cells = [row(line["result"]) if line["status"] == "done" else None for line in lines]
    empty = dict.fromkeys(next(filter(None, cells), {}))
    rows = [
        {"checkpoint": name, "step": line["step"], "status": line["status"]} | (found or empty)
        for name, line, found in zip(_short([line["checkpoint"] for line in lines]), lines, cells, strict=True)
    ]
    console = Console(highlight=False)
    write_rows(rows_of("", rows), console)
    for line in lines:
        if line["status"] != "done":
            console.print(Text(escaped(f"{line['checkpoint']}: {line['error']}")))
    console.print(Text(", ".join(f"{count:,} {status}" for status, count in counts.items())))


def _short(names: list[str]) -> list[str]:
    """Names without the folder that all of them lie in."""
    folders = {os.path.dirname(name) for name in names}  # noqa: PTH120 - "org/name" is no path
    if len(folders) != 1:
        return names
    return [name.rpartition("/")[2] for name in names]


def leave(lines: Sequence[dict[str, Any]], *, failed: bool = False) -> None:
    """End with the exit status of many: 1 if a check failed, else 2 if any gave no answer."""
    if failed:
        raise typer.Exit(1)
    if any(line["status"] != "done" for line in lines):
        raise typer.Exit(REFUSED)


def _read_list(path: Path) -> list[str]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"The list {path.name} cannot be read: give a text file with one checkpoint per line."
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]


def names_run(text: str) -> bool:
    """Whether a text stands for several snapshots."""
    try:
        return is_run(Path(text)) or (_is_named(text) and not Path(text).exists())
    except OSError:  # a folder that may not be read is refused where it is opened
        return False


def _is_named(text: str) -> bool:
    """Whether it is a run by its name, bundled or uploaded, as a link has it."""
    return text in RUNS or text.startswith(f"{UPLOADS}:")


def _expand(text: str) -> Iterator[Snapshot | BatchEntry]:
    """The snapshots that a text stands for: those of a run, or one checkpoint."""
    try:
        if is_run(Path(text)):
            for snapshot in list_snapshots(Path(text)):
                yield replace(snapshot, name=str(Path(text) / snapshot.name))
        elif names_run(text):
            yield from _snapshots(text)
        else:
            yield _one(text)
    except (CheckpointError, OSError) as error:
        unreadable = f"{text[:80]!r} cannot be read: check its permissions."
        said = str(error) if isinstance(error, CheckpointError) else unreadable
        nowhere = Snapshot(text, CheckpointRef("path", text), None)
        yield BatchEntry(nowhere, "refused", error=said)


def _snapshots(text: str) -> Iterator[Snapshot]:
    if text in RUNS:
        for name, demo in RUNS[text].items():
            yield Snapshot(name, CheckpointRef("demo", name), step_of(name), identity_of(demo.folder))
    else:
        yield from find_run(text, roots=(), uploads=uploaded_runs(list_checkpoints(settings())))[1]


def _one(text: str) -> Snapshot:
    reference = find_reference(text)
    base = Path(text).name
    stem = next((base[: -len(end)] for end in ARCHIVE_SUFFIXES if base.endswith(end)), base)
    identity = identity_of(Path(text)) if reference.origin.path else None
    return Snapshot(text, reference, step_of(stem), identity)


def _public(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in ("question", "identity")}


def _told(line: dict[str, Any], tell: Callable[[dict[str, Any]], str]) -> str:
    return tell(line["result"]) if line["status"] == "done" else f"{line['status']}: {line['error']}"


@contextmanager
def _telling(total: int) -> Iterator[Callable[[str], None]]:
    """Say on stderr what came of each, with how many there are."""
    console = Console(stderr=True, highlight=False)
    done = 0

    def say(said: str) -> None:
        nonlocal done
        done += 1
        console.print(Text(escaped(f"{done} of {total}: {said}")), soft_wrap=True)

    if not console.is_terminal:
        yield say
        return
    with console.status("Running"):
        yield say
