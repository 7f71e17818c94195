"""Name a checkpoint in a link, on the command line and between processes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from inspector.demo import DEMOS, RUNS, SNAPSHOTS
from inspector.errors import CheckpointError
from inspector.store.files import FRESH

Kind = Literal["demo", "upload", "shared", "incoming", "arriving", "snapshots", "path", "hub"]
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
FINGERPRINT = re.compile(r"[0-9a-f]{12,64}")
ARRIVED = ("incoming", "snapshots")  # kinds whose files have arrived, and are not staged yet
OUTLINE: Kind = "arriving"  # the kind whose names are there, and its numbers not yet
STORED = ("upload", "shared")
CLOSE = 0.8  # likeness of names, 0..1, from which one may be the other mistyped
DEMO = re.compile(r"demo-[a-z0-9-]+")
VALUES: dict[Kind, re.Pattern[str]] = {
    "upload": FINGERPRINT,
    "shared": FINGERPRINT,
    "hub": HUB_ID,
    "path": re.compile(r"[^\0]+"),
    "incoming": FRESH,
    "arriving": FRESH,
    "snapshots": FRESH,
}


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """Where a checkpoint comes from.

    As text: `demo-bert` (a demo), `upload:<fingerprint>` (12 to 64 hex digits), `hub:org/name`,
    `path:/folder` (a folder, an archive or a weight file), `incoming:<id>` (an upload whose bytes
    have arrived but are not staged yet), `arriving:<id>` (an upload whose weights are still on
    their way: what their headers say), `shared:<fingerprint>` (an upload, as one process of a
    cluster names it to another: the engine opens it as `upload:` does), `snapshots:<id>` (as
    `incoming:`, an archive with several checkpoints, each of which becomes an upload).
    """

    kind: Kind
    value: str

    def __str__(self) -> str:
        return self.value if self.kind == "demo" else f"{self.kind}:{self.value}"

    @classmethod
    def parse(cls, text: str) -> CheckpointRef:
        """Read a reference as it stands in a link.

        Raises:
            CheckpointError: If the text is no reference.
        """
        if DEMO.fullmatch(text):
            return cls("demo", text)
        start, _, value = text.partition(":")
        for kind, allowed in VALUES.items():
            if kind == start and allowed.fullmatch(value):
                return cls(kind, value)
        raise CheckpointError(f"{text[:80]!r} does not name a checkpoint: pick one from the list, or upload it again.")


def find_reference(text: str) -> CheckpointRef:
    """Tell what a name typed by a user means: something on disk, a demo, an upload as in a link, or a hub id.

    Raises:
        CheckpointError: If it can be none of them.
    """
    if Path(text).exists():
        return CheckpointRef("path", str(Path(text).absolute()))
    if text in DEMOS | SNAPSHOTS:
        return CheckpointRef("demo", text)
    if text.startswith("upload:"):
        return CheckpointRef.parse(text)
    if text in RUNS:
        raise CheckpointError(
            f"{text} is a demo run of {len(RUNS[text])} checkpoints, for `vitals`: name one of them, such as "
            f"{list(RUNS[text])[-1]}."
        )
    near = _nearest(text)
    local = near is not None and "/" in near
    if not local and HUB_ID.fullmatch(text) and "/" in text and text[0] not in "./~":
        return CheckpointRef("hub", text)
    raise CheckpointError(
        f"There is no {text!r} on this disk, and it is neither a demo ({', '.join(DEMOS)}) nor a "
        "hub id such as org/name: " + ("check the spelling." if near is None else f"did you mean {near!r}?")
    )


def _nearest(text: str) -> str | None:
    """What is on this disk, or a demo, under a name like this one's; None: nothing is.

    Of a path, each part that is not there is mended in turn; a first part counts only if all of the path is found.
    """
    if "/" not in text:
        return _like(text, [*DEMOS, *SNAPSHOTS, *_inside(Path())])
    found = Path(Path(text).anchor)
    for part in Path(text).parts[1 if found.anchor else 0 :]:
        near = part if (found / part).exists() else _like(part, _inside(found))
        if near is None:
            return None
        found /= near
    return str(found)


def _like(name: str, there: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(name, there, n=1, cutoff=CLOSE)), None)


def _inside(folder: Path) -> list[str]:
    """Names in a folder; none where it cannot be listed."""
    try:
        return [each.name for each in folder.iterdir()]
    except OSError:
        return []
