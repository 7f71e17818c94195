"""Compare what the requirements pin with what the package indexes offer.

    python -m tools.pins            each pin is offered, not withdrawn (yanked), and has a hash that is kept
    python -m tools.pins --write    keep the hashes of what is offered now, for `pip install --require-hashes`

It asks the indexes and looks into the folders that pip is set up for. The exit status is 1 if a pin is at fault
and 2 if nothing could be checked, since no index answered.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from packaging.requirements import Requirement
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion

from tools.sbom import canonical

ROOT = Path(__file__).parents[1]
HASHED = ROOT / "requirements-hashes.txt"
JSON = "application/vnd.pypi.simple.v1+json"
ACCEPT = {"Accept": f"{JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"}
UNREACHED = "No package index could be reached: nothing was checked."
HEADER = """\
# What requirements.txt pins, with the SHA-256 of each file that the package indexes offer for it, for
#   pip install --require-hashes --no-deps -r requirements-hashes.txt
# CI installs this first, then what the pins bring along. Of torch's builds for CPUs alone, which come from
# elsewhere, it has those that were there when `python -m tools.pins --write` wrote it.
"""

Ask = Callable[[str], "tuple[OfferedFile, ...] | None"]  # what an index offers of a name; None: it does not answer


@dataclass(frozen=True, slots=True)
class OfferedFile:
    """A file that an index offers."""

    name: str
    sha256: str  # empty: it does not say
    yanked: str | None  # why; None: it is not


def pins(path: Path) -> list[Requirement]:
    """The pins of a requirements file, those of the files that it names left out."""
    lines = (line.partition(" --hash")[0].strip(" \\") for line in path.read_text("utf-8").splitlines())
    return [Requirement(line) for line in lines if re.match(r"\w", line)]


def hashes_of(path: Path) -> dict[str, set[str]]:
    """The hashes that a requirements file keeps for each pin, as it is written there."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in path.read_text("utf-8").splitlines():
        name = line.partition(" ")[0] if re.match(r"\w", line) else name
        found.setdefault(name, set()).update(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
    return {name: hashes for name, hashes in found.items() if name}


def faults(wanted: Iterable[Requirement], ask: Ask, kept: Mapping[str, set[str]]) -> tuple[list[str], int]:
    """What is wrong with some pins, a line each.

    Args:
        wanted: The pins.
        ask: Asks the indexes.
        kept: The hashes that are kept for a pin, as `hashes_of` reads them.

    Returns:
        The lines, and for how many pins an index answered.
    """
    lines, answered = [], 0
    for pin in wanted:
        offered = ask(canonical(pin.name))
        if offered is None:
            continue
        answered += 1
        if fault := _fault(pin, list(_of_version(pin, offered)), kept.get(str(pin))):
            lines.append(f"{pin}: {fault}")
    return lines, answered


def _fault(pin: Requirement, files: list[OfferedFile], kept: set[str] | None) -> str:
    if not files:
        return "no index offers it"
    reasons = [file.yanked for file in files if file.yanked is not None]
    if len(reasons) == len(files):
        return f"it was withdrawn ({reasons[0] or 'no reason is given'})"
    known = kept is None or any(file.sha256 in kept for file in files)
    return "" if known else "no file that is offered has a hash that is kept: write them anew"


def _of_version(pin: Requirement, offered: Iterable[OfferedFile]) -> Iterator[OfferedFile]:
    """The files of the version that is pinned; a build for a processor has its own suffix, and is that version."""
    for file in offered:
        try:
            wheel = file.name.endswith(".whl")
            version = (parse_wheel_filename if wheel else parse_sdist_filename)(file.name)[1]
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue
        if pin.specifier.contains(version, prereleases=True):
            yield file


def hashed(wanted: Iterable[Requirement], ask: Ask, kept: Mapping[str, set[str]]) -> str:
    """The text of a requirements file with hashes; those that were kept for the same pins stay.

    Raises:
        SystemExit: If no index tells any hash of a pin.
    """
    text = HEADER
    for pin in wanted:
        offered = _of_version(pin, ask(canonical(pin.name)) or ())
        found = {file.sha256 for file in offered if file.sha256} | kept.get(str(pin), set())
        if not found:
            raise SystemExit(f"{pin}: no index tells a hash")
        text += " \\\n    ".join([str(pin), *(f"--hash=sha256:{each}" for each in sorted(found))]) + "\n"
    return text


def read_page(data: bytes, kind: str) -> tuple[OfferedFile, ...]:
    """What a page of an index lists, as JSON (PEP 691) or HTML (PEP 503)."""
    if kind.startswith(JSON):
        return tuple(_from_json(file) for file in json.loads(data)["files"])
    page = _Links()
    page.feed(data.decode("utf-8", "replace"))
    return tuple(page.files)


def _from_json(file: Mapping[str, Any]) -> OfferedFile:
    yanked = file.get("yanked", False)
    reason = yanked if isinstance(yanked, str) else ""
    return OfferedFile(file["filename"], file.get("hashes", {}).get("sha256", ""), reason if yanked else None)


class _Links(HTMLParser):
    """Reads the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[OfferedFile] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "a" and (address := found.get("href")):
            address, fragment = urldefrag(address)
            name = unquote(urlsplit(address).path.rpartition("/")[2])
            sha256 = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
            self.files.append(
                OfferedFile(name, sha256, (found["data-yanked"] or "") if "data-yanked" in found else None)
            )


def indexes() -> Ask:
    """Ask the indexes that pip is set up for, through its own settings, certificates and proxies."""
    from pip._internal.commands import create_command

    command: Any = create_command("index")
    options, _ = command.parse_args(["versions", "x"])
    session = command._build_session(options)
    places = [place.rstrip("/") for place in (options.index_url, *options.extra_index_urls)]
    folders = [Path(unquote(urlsplit(place).path)) for place in options.find_links]

    def ask(name: str) -> tuple[OfferedFile, ...] | None:
        pages = [_page(session, place, name) for place in places]
        pages += [_files_in(folder, name) for folder in folders if folder.is_dir()]
        reached = [page for page in pages if page is not None]
        return tuple(file for page in reached for file in page) if reached else None

    return ask


def _files_in(folder: Path, name: str) -> tuple[OfferedFile, ...] | None:
    """The files of a folder that pip looks into as well; None: it has none of this name."""
    found = [path for path in sorted(folder.iterdir()) if canonical(path.name.partition("-")[0]) == name]
    return tuple(OfferedFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), None) for path in found) or None


def _page(session: Any, place: str, name: str) -> tuple[OfferedFile, ...] | None:
    """What one index offers; None: it does not answer."""
    if place.startswith("file:"):  # a mirror on the disk, beside an index that answers for all names
        path = Path(unquote(urlsplit(place).path), name, "index.html")
        return read_page(path.read_bytes(), "text/html") if path.exists() else None
    try:
        answered = session.get(f"{place}/{name}/", headers=ACCEPT)
        if answered.status_code == 404:
            return ()
        return read_page(answered.content, answered.headers.get("content-type", "")) if answered.ok else None
    except (OSError, ValueError, KeyError):  # out of reach, or no page of an index
        return None


def main() -> int:
    """Check the pins, or keep their hashes; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the hashes of what is offered now")
    writes = parser.parse_args().write
    ask = indexes()
    kept = hashes_of(HASHED) if HASHED.exists() else {}
    if writes:
        HASHED.write_text(hashed(pins(ROOT / "requirements.txt"), ask, kept), "utf-8")
        return 0
    wanted = [pin for path in sorted(ROOT.glob("requirements*.txt")) if path != HASHED for pin in pins(path)]
    lines, answered = faults(wanted, ask, kept)
    print("\n".join(lines) or (f"{answered} of {len(wanted)} pins were checked." if answered else UNREACHED))
    return 1 if lines else 0 if answered else 2


if __name__ == "__main__":
    sys.exit(main())
