"""Tell a leak from an honest answer: paths, tracebacks, versions, environment values, secrets."""

from __future__ import annotations

import platform
import re
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = (
    "streamlit",
    "starlette",
    "uvicorn",
    "h11",
    "websockets",
    "tornado",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "huggingface_hub",
    "plotly",
    "pandas",
    "numpy",
    "pyarrow",
    "protobuf",
    "umap-learn",
    "numba",
    "authlib",
)
# What gives a server away whatever it holds.
SHAPES = {
    "traceback": (
        rb"Traceback \(most recent call last\)",
        rb'File "[^"\n]{1,200}", line \d+',
        rb"\b[\w/]+\.py:\d+\b",
        rb"site-packages",
    ),
    "object": (rb"<[\w. ]+ object at 0x[0-9a-f]+>", rb"<class '[\w.]+'>", rb"<function [\w.<>]+ at 0x"),
    "path": (rb"(?<![\w.:/~-])/(?:home|root|usr|var|tmp|opt|srv|mnt|proc|Users)/[\w.+-]+",),
    "version": (
        rb"(?i)\b(?:c?python|gcc|linux)[ /-]v?\d+\.\d+[\w.]*",
        rb"(?im)^(?:server|x-powered-by|via):[^\r\n]*\d",
    ),
}
EXCERPT = 60  # characters on either side
SHORTEST = 8  # characters of a value that is looked for: shorter ones occur by chance


@dataclass(frozen=True, slots=True)
class Leak:
    """Something that an answer tells and should not."""

    kind: str  # path, traceback, object, version, environment, secret, header, failure
    where: str  # which request
    excerpt: str


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks at answers and remembers what they gave away.

    Args:
        values: What must never be told, as text, each with its kind.
    """

    values: Mapping[str, str]
    leaks: dict[tuple[str, str], Leak] = field(default_factory=dict)  # one of a kind and excerpt
    counted: dict[str, int] = field(default_factory=dict)  # answers and bytes looked at

    def look(self, answer: bytes, where: str, *, allowed: Iterable[str] = ()) -> None:
        """Look for leaks in an answer.

        Args:
            answer: All of its bytes, headers included.
            where: Which request it answers.
            allowed: Kinds that are no leak here.
        """
        self.counted["answers"] = self.counted.get("answers", 0) + 1
        self.counted["bytes"] = self.counted.get("bytes", 0) + len(answer)
        for kind, start, end in (*self._told(answer), *_shaped(answer)):
            if kind not in allowed:
                self.note(kind, where, _excerpt(answer, start, end))

    def note(self, kind: str, where: str, excerpt: str) -> None:
        """Remember a leak; the same one from many requests counts once."""
        self.leaks.setdefault((kind, excerpt), Leak(kind, where, excerpt))

    def _told(self, answer: bytes) -> list[tuple[str, int, int]]:
        found = []
        for value, kind in self.values.items():
            start = answer.find(value.encode())
            if start >= 0:
                found.append((kind, start, start + len(value.encode())))
        return found


def known_values(*, paths: Iterable[str], environment: Mapping[str, str], secrets: Iterable[str]) -> dict[str, str]:
    """What this machine's server must not tell, each value with its kind."""
    values = dict.fromkeys((path for path in paths if len(path) >= SHORTEST), "path")
    values |= {value: "environment" for value in environment.values() if len(value) >= SHORTEST}
    values |= dict.fromkeys((socket.gethostname(), platform.release()), "environment")
    values |= dict.fromkeys(_versions(), "version")
    values |= dict.fromkeys(secrets, "secret")
    return {value: kind for value, kind in values.items() if len(value) >= 5}


def _versions() -> Iterable[str]:
    yield f"Python {platform.python_version()}"
    yield f"Python/{platform.python_version()}"
    yield f"{platform.python_version()}.{sys.version_info.releaselevel}"
    yield version("streamlit")  # alone as well: its own protocol tells it
    for name in LIBRARIES:
        try:
            number = version(name)
        except PackageNotFoundError:
            continue
        for between in (" ", "/", "==", "-", " v", "@"):
            yield f"{name}{between}{number}"


def _shaped(answer: bytes) -> Iterable[tuple[str, int, int]]:
    for kind, patterns in SHAPES.items():
        for pattern in patterns:
            for found in re.finditer(pattern, answer):
                yield kind, found.start(), found.end()


def _excerpt(answer: bytes, start: int, end: int) -> str:
    piece = answer[max(start - EXCERPT, 0) : end + EXCERPT]
    return piece.decode("utf-8", "replace").replace("\n", " ")
