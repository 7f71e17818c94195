"""Build the distribution and install it as somebody else would: for tests and benchmarks."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A finder that answers for some libraries as if they were not installed; Python runs it before anything else.
HIDE = """\
import sys
from importlib.machinery import PathFinder


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden!r} else PathFinder.find_spec(name, path, target)


sys.meta_path = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
"""


def build(folder: Path) -> tuple[Path, Path]:
    """Build the wheel and the source archive.

    Args:
        folder: Where they go; it is empty.
    """
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def create(folder: Path) -> Path:
    """Make a virtual environment that finds the libraries that are installed here, to save minutes.

    Returns:
        The folder into which it installs.
    """
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    site.joinpath("beside.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return site


def install(wheel: Path, folder: Path, *, without: tuple[str, ...] = ()) -> Path:
    """Install a wheel into a virtual environment of its own, beside the libraries that are installed here.

    Args:
        without: Modules that are not found there.

    Returns:
        The folder of its commands.
    """
    site = create(folder)
    if without:
        site.joinpath("sitecustomize.py").write_text(HIDE.format(hidden=set(without)))
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    return folder / "bin"
