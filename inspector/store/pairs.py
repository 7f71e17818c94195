"""A base with an adapter on it, as one checkpoint: how it is named, and what tells it from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.results.checkpoint import Opened
from inspector.store.hashing import fingerprint_of
from inspector.store.manifests.manifest import Manifest

BESIDE = "+"  # between two fingerprints
WORD, COMMA, ESCAPES = "adapted", ",", (("%", "%25"), (",", "%2C"))  # of a reference
FOLDER = "adapter"  # before the names of its files
TITLE = "{} + {}"
SECOND = "{name} is a checkpoint with an adapter on it, which cannot be the second one: ask it about the other instead."


def joined(base: Opened, adapter: Opened) -> Opened:
    """A base with an adapter on it, as a link and an engine name it."""
    return Opened(
        fingerprint=f"{base.fingerprint}{BESIDE}{adapter.fingerprint}",
        reference=reference_of(base.reference, adapter.reference),
        name=title([base.name, adapter.name]),
        warnings=(*base.warnings, *adapter.warnings),
        base=base,
        adapter=adapter,
    )


def fingerprints_in(text: str) -> tuple[str, ...]:
    """Of the base and of the adapter; of any other checkpoint its own."""
    return tuple(text.split(BESIDE, 1))


def title(names: Sequence[str]) -> str:
    """What a checkpoint is called, by the name of its only part, or of base and adapter."""
    return TITLE.format(*names) if len(names) > 1 else "".join(names)


def reference_of(*parts: str) -> str:
    """How a link names both, by the references of base and adapter."""
    for plain, escaped in ESCAPES:
        parts = tuple(part.replace(plain, escaped) for part in parts)
    return f"{WORD}:{COMMA.join(parts)}"


def references_in(value: str) -> tuple[str, ...]:
    """The references of base and adapter; the word before them is left out."""
    parts = tuple(value.split(COMMA))
    for plain, escaped in reversed(ESCAPES):
        parts = tuple(part.replace(escaped, plain) for part in parts)
    return parts


def both(base: Manifest, adapter: Manifest) -> Manifest:
    """What a base with an adapter on it holds: the base's headers, and both's files."""
    files = (*base.files, *(replace(each, name=f"{FOLDER}/{each.name}") for each in adapter.files))
    digests = {each.name: each.digest for each in files}
    return replace(base, fingerprint=fingerprint_of(digests), name=title([base.name, adapter.name]), files=files)
