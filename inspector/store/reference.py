"""Name a checkpoint in a link, on the command line and between processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from inspector.demo import BUNDLED, DEMOS, RUNS
from inspector.errors import CheckpointError
from inspector.store.origins.demo import Demo
from inspector.store.origins.hub import HubModel, named_by
from inspector.store.origins.on_disk import OnDisk
from inspector.store.origins.origin import Origin
from inspector.store.origins.upload import Upload
from inspector.text import quoted

CLOSE = 0.8  # likeness of names, 0..1, from which one may be the other mistyped
# What a reference's kind means; a server adds those of its uploads (`inspector.serving.storing.origins`).
ORIGINS: dict[str, type[Origin]] = {each.word: each for each in (Demo, Upload, OnDisk, HubModel)}


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """The name of a checkpoint's origin, as links and messages carry it.

    As text: `demo-bert` (a demo), `upload:<fingerprint>` (12 to 64 hex digits), `hub:org/name`
    or `hub:org/name@revision`, `path:/folder` (a folder, an archive or a weight file). On a server
    also `incoming:<id>` (an upload whose bytes have arrived but are not staged yet),
    `snapshots:<id>` (the same, an archive with several checkpoints, each of which becomes an upload)
    and `arriving:<id>` (an upload whose weights are still on their way: what their headers say).
    """

    kind: str  # one of ORIGINS
    value: str

    def __str__(self) -> str:
        return str(self.origin)

    @property
    def origin(self) -> Origin:
        """What it names.

        Raises:
            CheckpointError: If only a server knows that.
        """
        if self.kind not in ORIGINS:
            text = quoted(f"{self.kind}:{self.value}")
            raise CheckpointError(f"{text} has not been sent to this program: open it where it was.")
        return ORIGINS[self.kind](self.value)

    @classmethod
    def parse(cls, text: str) -> CheckpointRef:
        """Read a reference as it stands in a link.

        Raises:
            CheckpointError: If the text is no reference.
        """
        start, colon, value = text.partition(":")
        kind, value = (start, value) if colon else (Demo.word, text)
        if kind in ORIGINS and ORIGINS[kind].values.fullmatch(value) and str(found := cls(kind, value)) == text:
            return found
        raise CheckpointError(f"{text[:80]!r} does not name a checkpoint: pick one from the list, or upload it again.")


def origin_of(text: str) -> Origin:
    """What a reference names, as it stands in a link.

    Raises:
        CheckpointError: If the text is no reference.
    """
    return CheckpointRef.parse(text).origin


def find_reference(text: str) -> CheckpointRef:
    """Tell what a name typed by a user means: a file, a demo, an upload as in a link, a hub id or its page's address.

    Raises:
        CheckpointError: If it can be none of them.
    """
    if Path(text).exists():
        return CheckpointRef(OnDisk.word, str(Path(text).absolute()))
    if text in BUNDLED:
        return CheckpointRef(Demo.word, text)
    if text.startswith(f"{Upload.word}:"):
        return CheckpointRef.parse(text)
    if text in RUNS:
        raise CheckpointError(
            f"{text} is a demo run of {len(RUNS[text])} checkpoints, for `vitals`: name one of them, such as "
            f"{list(RUNS[text])[-1]}."
        )
    if (named := named_by(text)) != text:
        return CheckpointRef(HubModel.word, named)
    near = _nearest(text)
    local = near is not None and "/" in near
    if not local and HubModel.values.fullmatch(text) and "/" in text and text[0] not in "./~":
        return CheckpointRef(HubModel.word, text)
    raise CheckpointError(
        f"There is no {text!r} on this disk, and it is neither a demo ({', '.join(DEMOS)}) nor a "
        "hub id such as org/name: " + ("check the spelling." if near is None else f"did you mean {near!r}?")
    )


def _nearest(text: str) -> str | None:
    """What is on this disk, or a demo, under a name like this one's; None: nothing is.

    Of a path, each part that is not there is mended in turn; a first part counts only if all of the path is found.
    """
    if "/" not in text:
        return _like(text, [*BUNDLED, *_inside(Path())])
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
