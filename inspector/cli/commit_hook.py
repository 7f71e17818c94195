"""Check the checkpoints whose files a commit touches: `python -m inspector.cli.commit_hook [OPTION ...] FILE ...`.

pre-commit names files, as many as fit on a command line; a checkpoint is the folder that has them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def command(words: Sequence[str]) -> list[str]:
    """The command that checks the folders of files; options come first."""
    files = [word for word in words if Path(word).is_file()]
    folders = dict.fromkeys(str(Path(file).parent) for file in files)
    return [sys.executable, "-m", "inspector", "check", *(word for word in words if word not in files), *folders]


if __name__ == "__main__":
    os.execv(sys.executable, command(sys.argv[1:]))
