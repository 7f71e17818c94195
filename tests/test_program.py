"""A checkout and an installed copy each name the command that starts them, and what a library is missing for."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from inspector import program

AWKWARD = "it's a $HOME; `date` of café"


@pytest.fixture(params=[False, True], ids=["checkout", "installed"])
def package(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, bool]:
    """A package with its app beside it, as in a checkout, or inside."""
    folder = tmp_path / "inspector"
    app = folder / program.BUNDLED.name if request.param else tmp_path
    app.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    (app / "app.py").touch()
    return folder, request.param


def test_the_app_is_where_the_copy_has_it(package: tuple[Path, bool]) -> None:
    folder, installed = package
    assert program.is_installed(folder) is installed
    assert program.app_script(folder).is_file()
    assert program.app_script().name == "app.py"


def test_a_command_is_one_that_a_shell_takes_apart_again(package: tuple[Path, bool]) -> None:
    folder, installed = package
    line = program.command_line(["overview", AWKWARD, "--find=*.bias"], folder)
    start = ["checkpoint-inspector"] if installed else ["python", "-m", "inspector"]
    assert shlex.split(line) == [*start, "overview", AWKWARD, "--find=*.bias"]
    said = subprocess.run(["bash", "-c", f"printf '%s\\n' {line}"], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == shlex.split(line)


@pytest.mark.parametrize(
    ("module", "extra", "file"),
    [
        ("torch", "models", "requirements.txt"),
        ("torch.nn.functional", "models", "requirements.txt"),
        ("accelerate", "models", "requirements.txt"),
        ("numba", "models", "requirements.txt"),
        ("ray.serve", "ray", "requirements-ray.txt"),
        ("authlib", "auth", "requirements-auth.txt"),
        ("prometheus_client", "metrics", "requirements-metrics.txt"),
    ],
)
def test_a_library_that_is_missing_is_named_with_what_brings_it(
    package: tuple[Path, bool], module: str, extra: str, file: str
) -> None:
    said = program.lacks(ModuleNotFoundError(name=module))
    assert said == f"This needs {module.partition('.')[0]}, which is not installed: run pip install -r {file}."
    added = f"'checkpoint-inspector[{extra}]'" if package[1] else f"-r {file}"
    assert program.how_to_add(extra, package[0]) == f"pip install {added}"


def test_it_is_named_where_another_library_says_only_that_an_import_failed() -> None:
    error = ModuleNotFoundError("Could not import module 'PreTrainedModel'.")
    error.__cause__ = ModuleNotFoundError(name="torch")
    assert program.lacks(error) == program.lacks(ModuleNotFoundError(name="torch"))
    error.__cause__ = ValueError()
    assert program.lacks(error) is None


@pytest.mark.parametrize(
    "error", [ModuleNotFoundError(name="pages"), ModuleNotFoundError("no name"), ImportError(name="torch"), OSError()]
)
def test_another_error_is_not_taken_for_a_missing_library(error: Exception) -> None:
    assert program.lacks(error) is None


@pytest.mark.parametrize(
    ("version", "said"),
    [((3, 8), "Python 3.11 or newer is needed, not 3.8: install a newer one."), ((3, 11), None), ((4, 0), None)],
)
def test_an_older_python_is_told_which_is_needed(version: tuple[int, ...], said: str | None) -> None:
    assert program.lacks_python(version) == said
