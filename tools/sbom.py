"""Write a software bill of materials of this environment: CycloneDX 1.6 as JSON, from what is installed.

    python -m tools.sbom > sbom.json

Besides the packages that the requirements pin it lists those that they bring along, and who needs whom.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from packaging.requirements import InvalidRequirement, Requirement

from inspector import __version__

PRODUCT = "checkpoint-inspector"


def canonical(name: str) -> str:
    """A distribution's name as registries compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def bill(installed: Iterable[Distribution]) -> dict[str, Any]:
    """The bill of some distributions; of two of one name, the first is the one that Python imports."""
    found: dict[str, Distribution] = {}
    for each in installed:
        found.setdefault(canonical(each.metadata["Name"]), each)
    references = {name: f"pkg:pypi/{name}@{quote(each.version, safe='')}" for name, each in sorted(found.items())}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid4()}",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": PRODUCT, "name": PRODUCT, "version": __version__}},
        "components": [_component(found[name], reference) for name, reference in references.items()],
        "dependencies": [
            {"ref": reference, "dependsOn": sorted({references[need] for need in _needs(found[name]) & found.keys()})}
            for name, reference in references.items()
        ],
    }


def _component(found: Distribution, reference: str) -> dict[str, Any]:
    about: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": found.metadata["Name"],
        "version": found.version,
        "purl": reference,
    }
    if "License-Expression" in found.metadata:
        about["licenses"] = [{"expression": found.metadata["License-Expression"]}]
    return about


def _needs(found: Distribution) -> set[str]:
    """Names of what a distribution needs here, extras left out."""
    needs = set()
    for line in found.requires or ():
        try:
            wanted = Requirement(line)
        except InvalidRequirement:  # of an old package; pip would not read it either
            continue
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            needs.add(canonical(wanted.name))
    return needs


if __name__ == "__main__":
    json.dump(bill(distributions()), sys.stdout, indent=1)
    sys.stdout.write("\n")
