"""The sizes that people hold: verbs that need no numbers, from 1.2B to DeepSeek-V3.

Sparse checkpoints with real headers are written in a temporary folder. Each verb runs in a cold
process, as the command line does, and so does a bare script that imports transformers, builds the
class on the meta device and reads the headers: processor seconds and wall seconds of both, the peak
memory of the largest process, and the ratio of the wall times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.bench._sparse import SHAPES, write

QUESTIONS = ("overview", "placement", "sharing", "training", "classes", "check --values none")
BARE = """
import json, sys
from pathlib import Path
import torch, transformers
folder = Path(sys.argv[1])
for path in folder.glob("*.safetensors"):
    with path.open("rb") as file:
        json.loads(file.read(int.from_bytes(file.read(8), "little")))
values = json.loads((folder / "config.json").read_text())
values.pop("quantization_config", None)
config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
with torch.device("meta"):
    getattr(transformers, values["architectures"][0])(config)
"""
# Runs a command and prints what it and its descendants took: those that outlive it become children of this process.
MEASURE = """
import ctypes, json, os, resource, subprocess, sys, time
SUBREAPER = 36
ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
began = time.monotonic()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
wall = time.monotonic() - began
try:
    while True:
        os.wait()
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, done.stderr[-300:]]))
"""


def measure(command: list[str], home: str) -> tuple[float, float, float]:
    """Wall seconds, processor seconds, and megabytes of the largest process."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *command],
        env=os.environ | {"INSPECTOR_HOME": home},
        capture_output=True,
        text=True,
        check=True,
    )
    status, wall, processor, peak, said = json.loads(done.stdout)
    if status:
        raise RuntimeError(f"{' '.join(command)} failed: {said}")
    return wall, processor, peak


def main() -> None:
    print("| checkpoint | what | wall s | processor s | peak MB | wall, of the bare script |")
    print("|---|---|---|---|---|---|")
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / name
            write(folder, shape)
            bare = measure([sys.executable, "-c", BARE, str(folder)], place)
            show(name, "bare script", bare, bare[0])
            for question in QUESTIONS:
                command = [sys.executable, "-m", "inspector", *question.split(), str(folder), "--json"]
                with tempfile.TemporaryDirectory() as home:
                    show(name, question, measure(command, home), bare[0])


def show(name: str, what: str, taken: tuple[float, float, float], bare: float) -> None:
    wall, processor, peak = taken
    print(f"| {name} | {what} | {wall:.1f} | {processor:.1f} | {peak:,.0f} | {wall / bare:.2f} |", flush=True)
