"""The bill of materials against the requirements, and against what pip itself says is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tools.sbom import bill, canonical

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made():
    return bill(distributions())


def test_every_pin_is_listed_in_its_version(made):
    listed = {canonical(each["name"]): each["version"].partition("+")[0] for each in made["components"]}
    pins = dict(
        line.split("==") for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines() if "==" in line
    )
    assert {name: listed.get(canonical(name)) for name in pins} == pins


def test_every_reference_is_a_component_once(made):
    references = [each["bom-ref"] for each in made["components"]]
    assert len(set(references)) == len(references)
    assert {each["ref"] for each in made["dependencies"]} == set(references)
    assert {need for each in made["dependencies"] for need in each["dependsOn"]} <= set(references)


def test_needs_are_those_that_pip_names(made):
    shown = subprocess.run(
        [sys.executable, "-m", "pip", "show", "transformers"], capture_output=True, text=True, check=True
    ).stdout
    needs = next(line for line in shown.splitlines() if line.startswith("Requires:")).removeprefix("Requires:")
    names = {each["bom-ref"]: canonical(each["name"]) for each in made["components"]}
    (found,) = (each["dependsOn"] for each in made["dependencies"] if names[each["ref"]] == "transformers")
    assert {names[reference] for reference in found} == {canonical(name.strip()) for name in needs.split(",")}


def test_it_is_one_json_object_and_nothing_else():
    done = subprocess.run([sys.executable, "-m", "tools.sbom"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["bomFormat"] == "CycloneDX"
    assert done.stderr == ""
