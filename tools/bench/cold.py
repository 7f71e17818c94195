"""Seconds from a typed command to its answer, cold: the installed wheel, a clone, and the least that reads a file.

`checkpoint-inspector overview demo-bert` from a wheel in an environment of its own, `python -m inspector overview
demo-bert` in a clone, and `python -c "import safetensors"`. They take turns; numbers are medians, and ratios are of
pairs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.package import ROOT, build, install

ROUNDS = 7
LEAST = "safetensors alone"


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        commands = install(build(folder / "dist")[0], folder / "venv")
        kinds = {
            "wheel": [str(commands / "checkpoint-inspector"), "overview", "demo-bert"],
            "clone": [sys.executable, "-m", "inspector", "overview", "demo-bert"],
            LEAST: [str(commands / "python"), "-c", "import safetensors"],
        }
        environment = os.environ | {"INSPECTOR_HOME": str(folder / "home")}
        places = {"clone": ROOT}
        for kind, command in kinds.items():  # compiled and in memory, as for whoever asks a second time
            _seconds(command, places.get(kind, folder), environment)
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(ROUNDS):
            for kind, command in kinds.items():
                times[kind].append(_seconds(command, places.get(kind, folder), environment))
    print(f"cold seconds of `overview demo-bert`, {ROUNDS} rounds in turn\n")
    print("| command | median s | fastest s | median of pairs, against safetensors alone |\n|---|---:|---:|---:|")
    for kind, taken in times.items():
        ratio = statistics.median(one / least for one, least in zip(taken, times[LEAST], strict=True))
        print(f"| {kind} | {statistics.median(taken):.2f} | {min(taken):.2f} | {ratio:.1f} |")


def _seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
