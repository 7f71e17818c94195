"""What is imported is pinned, and what is pinned is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from inspector import program
from tools.pins import pins

ROOT = Path(__file__).parents[2]
OWN = {"inspector", "pages"}
# Pinned although nothing here imports it -> why.
BESIDES = {
    "pyarrow": "pandas writes Parquet and keeps text with it",
    "safetensors": "transformers reads and writes weights with it",
    "authlib": "Streamlit signs in with it",
    "uvicorn": "Streamlit's server is one",
    "websockets": "Streamlit's server talks with browsers through it",
    "s3fs": "fsspec opens s3:// with it",
}


def pins_of(name: str) -> set[str]:
    """Distributions that a requirements file pins, in lower case."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    pins = {re.split(r"[\[=]", line)[0].lower() for line in lines if re.match(r"\w", line)}
    assert all("==" in line for line in lines if re.match(r"\w", line))
    return pins


EVERYBODY = pins_of("requirements.txt")
RAY = pins_of("requirements-ray.txt")
AUTH = pins_of("requirements-auth.txt")
METRICS = pins_of("requirements-metrics.txt")


def imported() -> dict[str, set[Path]]:
    """Other people's modules that the product imports, wherever in a file, with who does."""
    found: dict[str, set[Path]] = {}
    for path in [ROOT / "app.py", *(path for part in OWN for path in ROOT.glob(f"{part}/**/*.py"))]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                found.setdefault(name.partition(".")[0], set()).add(path.relative_to(ROOT))
    return {name: paths for name, paths in found.items()
            if name not in OWN | sys.stdlib_module_names}  # fmt: skip


IMPORTED = imported()
DISTRIBUTIONS = packages_distributions()
PROVIDERS = {name: {each.lower() for each in DISTRIBUTIONS.get(name, [])}
             for name in IMPORTED}  # fmt: skip


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.mark.parametrize(
    ("ranges", "name"),
    [
        ([*PROJECT["dependencies"], *EXTRAS["models"]], "requirements.txt"),
        (EXTRAS["ray"], "requirements-ray.txt"),
        (EXTRAS["auth"], "requirements-auth.txt"),
        (EXTRAS["metrics"], "requirements-metrics.txt"),
        (EXTRAS["dev"], "requirements-dev.txt"),
    ],
)
def test_what_is_pinned_lies_in_the_ranges_that_the_package_gives(ranges: list[str], name: str) -> None:
    allowed = {each.name.lower(): each for each in map(Requirement, ranges) if each.name != PROJECT["name"]}
    pinned = {each.name.lower(): each for each in pins(ROOT / name)}
    assert allowed.keys() == pinned.keys()
    for library, pin in pinned.items():
        (version,) = pin.specifier
        assert allowed[library].specifier.contains(version.version), library
        assert allowed[library].extras == pin.extras


def test_an_extra_brings_what_a_sentence_says_that_it_brings() -> None:
    """Modules have other names than their distributions."""
    for extra, modules in program.EXTRAS.items():
        named = {Requirement(each).name.lower() for each in EXTRAS[extra]}
        brought = {each.lower() for module in modules for each in DISTRIBUTIONS[module]}
        assert brought == named


@pytest.mark.parametrize("module", sorted(IMPORTED))
def test_an_imported_library_is_pinned(module: str) -> None:
    """Only what runs on a cluster may need the requirements of Ray, and what Prometheus reads those of its numbers."""
    pinned = set(EVERYBODY)
    for besides, where in (
        (RAY, Path("inspector/serving/engine/ray")),
        (METRICS, Path("inspector/serving/metrics.py")),
    ):
        if all(path.is_relative_to(where) for path in IMPORTED[module]):
            pinned |= besides
    assert PROVIDERS[module] & pinned, f"{module}: {sorted(map(str, IMPORTED[module]))}"


def test_a_pinned_library_is_imported() -> None:
    used = set[str]().union(*PROVIDERS.values())
    assert (EVERYBODY | RAY | AUTH | METRICS) - used == BESIDES.keys()
