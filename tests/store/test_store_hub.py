"""A hub that says nothing is out of reach, and nobody waits for it for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.faults.cases import silent_hub

ROOT = Path(__file__).parents[2]
DOWNLOAD = """
from inspector.errors import CheckpointError
from inspector.store.origins import hub
hub.SILENT_SECONDS = 0.5
try:
    hub.download("org/name", progress=lambda *_: None)
except CheckpointError as error:
    print(error)
"""


def test_a_hub_that_never_answers_is_one_sentence(tmp_path):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    with silent_hub() as address:
        done = subprocess.run(
            [sys.executable, "-c", DOWNLOAD],
            cwd=ROOT, capture_output=True, text=True, check=True, timeout=300,
            env=environ | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "NO_PROXY": "*"},
        )  # fmt: skip
    assert done.stdout.strip() == (
        "org/name is not in the hub's cache on this machine and the hub cannot be reached: "
        "connect to the network, or upload the checkpoint."
    )
