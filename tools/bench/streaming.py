"""A model that memory does not hold: the lens and the next token of an 8B, read a block at a time.

A sparse checkpoint with real headers and a tokenizer of a few words is written in a temporary folder
on the disk, and each verb runs in a cold process, as the command line does: wall seconds, and the
most memory of their own that the command and its worker have had at once, mapped files left out. Beside
it stands a bare script of the same work: blocks by accelerate's or anybody's hooks can be no quicker than
one that maps each block, runs it and drops it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from tokenizers import Tokenizer, models, pre_tokenizers

from inspector.engine.process import own_memory
from tools.bench._sparse import SHAPES, write

WORDS = ["the", "capital", "of", "France", "is", "a", "large", "city", "on", "river"]
TEXT = " ".join(WORDS)
VERBS = {"lens": ["--text", TEXT], "heads": ["--text", TEXT, "--new-tokens", "1"]}


def write_tokenizer(folder: Path) -> None:
    """A tokenizer of whole words."""
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(["<unk>", *WORDS])}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    values = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(values))


def measure(command: list[str], home: str) -> tuple[float, float]:
    """Wall seconds, and megabytes of the command and its children, mapped files left out."""
    began, most = time.monotonic(), 0
    with tempfile.TemporaryFile() as said:
        done = psutil.Popen(command, env=os.environ | {"INSPECTOR_HOME": home}, stdout=subprocess.DEVNULL, stderr=said)
        while done.poll() is None:
            family = [done, *done.children(recursive=True)]
            most = max(most, sum(_own(each) for each in family))
            time.sleep(0.05)
        said.seek(0)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {said.read().decode()[-500:]}")
    return time.monotonic() - began, most / 1e6


def _own(process: psutil.Process) -> int:
    try:
        return own_memory(process)
    except psutil.Error:  # it has just ended
        return 0


def main(name: str = "8B", devices: tuple[str, ...] = ("auto",)) -> None:
    """Write, ask, print."""
    print("| checkpoint | verb | wall s | own memory MB |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / name
        write(folder, SHAPES[name])
        write_tokenizer(folder)
        for verb, options in VERBS.items():
            for device in devices:
                command = [sys.executable, "-m", "inspector", verb, str(folder), *options, "--device", device, "--json"]
                wall, own = measure(command, place + "/home")
                print(f"| {name} | {verb}, {device} | {wall:.1f} | {own:,.0f} |", flush=True)
