"""Let crowds of sessions use a server of one's own, and print what they saw.

python -m tools.load                          1, 5, 20 and 50 sessions, each of which walks once
python -m tools.load 5 --minutes 60           5 sessions that walk again and again for an hour
python -m tools.load --write docs/load.md     keeps the table
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from inspector.serving.trial import Server, start_app, wait_until_up
from inspector.settings import read_settings
from inspector.store.stored import list_checkpoints
from tools.load.checkpoints import write_uploads
from tools.load.crowd import CrowdMeasurements, CrowdUpload, Oracle, asked_by, crowd
from tools.load.people import person

CROWDS = (1, 5, 20, 50)
SHOWN = 20  # differences that are printed
HEAD = (
    "| sessions | answers | wrong | broken sessions | lost checkpoints | server deaths | "
    "p50 s | p95 s | p99 s | peak memory GB | s in all | processor s in the 10 s after |\n"
    "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def main() -> int:
    """Run the crowds; the exit status is 0 where nothing was wrong, lost or dead."""
    parser = argparse.ArgumentParser(prog="python -m tools.load")
    parser.add_argument("sessions", nargs="*", type=int, default=CROWDS)
    parser.add_argument("--minutes", type=float, default=0, help="walk again for so long")
    parser.add_argument("--write", type=Path, help="file for the table")
    asked = parser.parse_args()
    lines, bad = [], False
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        home = Path(folder) / "store"
        uploads = upload_once(server, home, write_uploads(Path(folder)))
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at start")
        oracle = Oracle(server, uploads)
        oracle.ask(visit for number in range(max(asked.sessions)) for visit in asked_by(number))
        print("The lone session has its answers.", flush=True)
        for sessions in asked.sessions:
            end = time.monotonic() + 60 * asked.minutes
            until = (lambda end=end: time.monotonic() > end) if asked.minutes else None
            measured = crowd(server, sessions, uploads, oracle, until=until)
            lost = len(uploads) - sum(is_there(home, upload) for upload in uploads.values())
            dead = server.process.poll() is not None
            bad |= bool(measured.wrong or measured.failed or lost or dead)
            lines.append(row(measured, lost=lost, dead=dead))
            print(lines[-1], flush=True)
            for line in (*measured.wrong, *measured.failed)[:SHOWN]:
                print("   ", line)
            if asked.minutes:
                lines.append(growth(measured))
                print(lines[-1], flush=True)
    if asked.write:
        asked.write.write_text(document(lines), encoding="utf-8")
    return 1 if bad else 0


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server with a store of its own."""
    server = start_app(folder)
    try:
        wait_until_up(server)
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def upload_once(server: Server, home: Path, archives: dict[str, bytes]) -> dict[str, CrowdUpload]:
    """Upload each archive, and find out what the store calls it."""
    settings = read_settings({"INSPECTOR_HOME": str(home)})
    found = {}
    for kind, content in archives.items():
        name = f"{kind.replace(' ', '-')}.zip"
        with person(server.url) as someone:
            someone.upload(name, content)
            stored = list_checkpoints(settings)
        new = {f"upload:{each.fingerprint[:16]}" for each in stored} - {upload.reference for upload in found.values()}
        found[kind] = CrowdUpload(name, content, new.pop())
    return found


def is_there(home: Path, upload: CrowdUpload) -> bool:
    """Whether the store still holds an upload."""
    stored = list_checkpoints(read_settings({"INSPECTOR_HOME": str(home)}))
    return any(f"upload:{each.fingerprint[:16]}" == upload.reference for each in stored)


def row(measured: CrowdMeasurements, *, lost: int, dead: bool) -> str:
    """One line of the table."""
    return (
        f"| {measured.sessions} | {len(measured.answers):,} | {len(measured.wrong)} | "
        f"{len(measured.failed)} | {lost} | {int(dead)} | {measured.percentile(0.5):.2f} | "
        f"{measured.percentile(0.95):.2f} | {measured.percentile(0.99):.2f} | "
        f"{max(measured.memory, default=0) / 1e9:.2f} | {measured.seconds:.0f} | "
        f"{measured.after:.1f} |"
    )


def growth(measured: CrowdMeasurements) -> str:
    """How the memory of the last quarter compares with that of the second."""
    quarter = len(measured.memory) // 4
    second = statistics.mean(measured.memory[quarter : 2 * quarter]) / 1e9
    last = statistics.mean(measured.memory[-quarter:]) / 1e9
    return f"\nMemory averaged {second:.2f} GB in the second quarter and {last:.2f} GB in the last.\n"


def document(lines: list[str]) -> str:
    """The file that is kept."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return "\n".join(
        [
            "# Many sessions at once",
            "",
            "`python -m tools.load --write docs/load.md`: sessions that open every page of two demos and two uploads, "
            "upload files, and type faster than answers arrive. Every answer is compared with that of a single "
            "session. Memory is the resident memory of the server and its workers; shared pages are counted once per "
            "process.",
            "",
            f"{date.today().isoformat()}, {os.cpu_count()} processors, {memory:.0f} GB; the sessions "
            "run on the same machine.",
            "",
            HEAD,
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
