"""Check the checkpoints whose files a commit touches: `python -P -m inspector.cli.commit_hook [OPTION ...] FILE ...`.

pre-commit names files, as many as fit on a command line; a checkpoint is the folder that has them, if it has weights.
A check that could not be made, for example without torch, stops no commit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

UNJUDGED = 3  # exit status of `check` where nothing failed, and something could not be judged
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".index.json")


def command(words: Sequence[str]) -> list[str] | None:
    """The command that checks the folders of the files at the end; None where none of them is a checkpoint's."""
    first = len(words)
    while first and Path(words[first - 1]).is_file():
        first -= 1
    folders = dict.fromkeys(Path(file).parent for file in words[first:])
    checkpoints = [str(each) for each in folders if any(file.name.endswith(WEIGHTS) for file in each.iterdir())]
    check = [sys.executable, "-P", "-m", "inspector", "check", *words[:first], "--", *checkpoints]
    return check if checkpoints else None


def main(words: Sequence[str]) -> int:
    """Check, and return the exit status for git."""
    check = command(words)
    status = subprocess.run(check, check=False).returncode if check else 0
    return 0 if status == UNJUDGED else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
