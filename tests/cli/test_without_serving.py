"""The library and the command line stand without the server: the room next door can be closed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TAKEN = ("docs", "inspector", "tests", "pyproject.toml", "README.md")
WITHOUT = ("inspector/serving", "tests/serving", "tests/cli/test_without_serving.py")


@pytest.mark.alone
def test_their_tests_pass_in_a_copy_without_it(tmp_path: Path) -> None:
    for name in TAKEN:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, tmp_path / name)
    for name in WITHOUT:
        place = tmp_path / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests/warm.py").write_text("from contextlib import nullcontext as forked_warm\n")  # forks workers
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/test_api.py", "tests/cli", "-q", "-p", "no:cacheprovider",
         "-m", "not (faults or alone)"],
        cwd=tmp_path, env=os.environ | {"INSPECTOR_HOME": str(tmp_path / "home")}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout.splitlines()[-1]
    assert not (tmp_path / "pages").exists()
