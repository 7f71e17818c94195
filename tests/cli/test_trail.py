"""How far somebody has to follow who wants to know how a command gets its answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_FILES = 86
# Notes each file of the product of which a function is entered, in the process and in what it forks; what modules call
# while they are imported defines them, and is no step on the way.
TRACED = """
import inspect, os, sys
entered = set()
def importing(frame):
    while frame is not None and not (frame.f_code.co_name == "<module>" and "/inspector/" in frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None
def note(frame, event, _):
    name = frame.f_code.co_filename
    function = frame.f_code.co_flags & inspect.CO_OPTIMIZED  # neither a module nor the body of a class
    if event == "call" and function and "/inspector/" in name and name not in entered and not importing(frame):
        entered.add(name)
        os.write(2, (name + "\\n").encode())
sys.setprofile(note)
sys.argv = ["inspector", "lens", "demo-gpt2", "--text", "hello", "--json"]
from inspector.cli.start import main
main()
"""


def test_a_command_enters_few_files(tmp_path: Path) -> None:
    """In all its processes together."""
    ran = subprocess.run(
        [sys.executable, "-c", TRACED],
        cwd=ROOT, env=os.environ | {"INSPECTOR_HOME": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = sorted({str(Path(line).relative_to(ROOT)) for line in ran.stderr.splitlines()})
    assert ran.stdout.startswith("{")
    assert "inspector/analyses/lens/compute.py" in files
    assert len(files) <= MOST_FILES, "\n".join(files)
