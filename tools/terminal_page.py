"""Write docs/terminal.md: what each verb prints about the bundled checkpoints, in 80 columns.

A test compares the page with what the verbs print: run `python -m tools.terminal_page` after a change.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "terminal.md"
WIDTH = 80
TEXT = '"the capital and largest city of [MASK]."'
COMMANDS = (  # as they are typed after the program's name
    "overview demo-bert",
    "histogram demo-bert --tensor bert.pooler.dense.weight",
    "sharing demo-bert",
    "whatif demo-bert --change untie",
    "classes demo-gpt2",
    "embeddings demo-bert --token dog -k 5",
    "project demo-bert",
    "tokens demo-gpt2",
    "padding demo-bert",
    f"lens demo-bert --text {TEXT}",
    f"ladder demo-bert --text {TEXT} --position 7",
    "placement demo-bert --device cpu",
    f"predict demo-bert --text {TEXT} -k 5",
    'plausibility demo-gpt2 --text "the river flows to the sea."',
    'contrast demo-bert --first "a dog is an [MASK]." --second "a car is an [MASK]." -k 3',
    'similarity demo-bert --pooling mean --text "a dog is an animal." --text "a cat is an animal."',
    'heads demo-bert --text "a large plant." --pair "it has leaves."',
    'pretrain demo-bert --text "a large plant with a thick trunk." --share 0.4',
    'tokenize demo-bert --text "the dog is an animal."',
    "training demo-bert",
    "compare demo-run-checkpoint-0 demo-run-checkpoint-1000",
    "base demo-run-checkpoint-1000 demo-run-checkpoint-800",
    "vitals demo-bert",
    "check demo-bert",
)
HEAD = """\
# What the terminal shows

Each verb prints its answer in a sentence first, then a picture of text where there is one, then the numbers that
matter. On a terminal, a shaded cell has a color instead of the mark before it; in a pipe there are no colors. `--json`
prints one JSON object with everything. Written by `python -m tools.terminal_page`, in 80 columns.
"""


def run(command: str) -> str:
    """What a command prints on stdout."""
    words = [sys.executable, "-m", "inspector", *shlex.split(command)]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


def page(answer: Callable[[str], str] = run) -> str:
    """The page as Markdown."""
    with ThreadPoolExecutor(2) as pool:
        printed = list(pool.map(answer, COMMANDS))
    parts = [
        f"## {command.partition(' ')[0]}\n\n```text\n$ checkpoint-inspector {command}\n{text}```\n"
        for command, text in zip(COMMANDS, printed, strict=True)
    ]
    return "\n".join([HEAD, *parts])


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
