"""How this copy of the program is run and extended: a checkout by its files, an installed one by its name."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DISTRIBUTION = "checkpoint-inspector"
PACKAGE = Path(__file__).resolve().parent
BUNDLED = PACKAGE / "_app"  # where a wheel has app.py and pages/, which a checkout has at its top
PYTHON = (3, 11)  # the oldest that works
# The libraries that each extra brings: what can be asked without them is answered without them.
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "models": ("torch", "accelerate", "umap", "numba", "scipy"),
    "ray": ("ray", "s3fs"),
    "auth": ("authlib",),
    "metrics": ("prometheus_client",),
}


def is_installed(package: Path = PACKAGE) -> bool:
    """Whether it came as a wheel, with the app inside the package."""
    return (package / BUNDLED.name).is_dir()


def app_script(package: Path = PACKAGE) -> Path:
    """The script that Streamlit runs."""
    return (package / BUNDLED.name if is_installed(package) else package.parent) / "app.py"


def command_line(words: Sequence[str], package: Path = PACKAGE) -> str:
    """A command as a person types it, quoted for the shell."""
    start = (DISTRIBUTION,) if is_installed(package) else ("python", "-m", "inspector")
    return shlex.join([*start, *words])


def how_to_add(extra: str, package: Path = PACKAGE) -> str:
    """What installs an extra."""
    if is_installed(package):
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    return f"pip install -r requirements{'' if extra == 'models' else f'-{extra}'}.txt"


def lacks(error: BaseException) -> str | None:
    """Say which library is missing and what adds it; None: the error is another one, or no extra brings it.

    transformers raises an error without a name from the one that names the library.
    """
    while isinstance(error, ModuleNotFoundError) and not error.name and error.__cause__:
        error = error.__cause__
    top = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    extra = next((name for name, modules in EXTRAS.items() if top in modules), None)
    return extra and f"This needs {top}, which is not installed: run {how_to_add(extra)}."


def lacks_python(version: tuple[int, ...] = sys.version_info[:2]) -> str | None:
    """Say that this Python is too old; None: it is not."""
    needed, found = (".".join(map(str, each[:2])) for each in (PYTHON, version))
    return None if version >= PYTHON else f"Python {needed} or newer is needed, not {found}: install a newer one."
