"""Which class of transformers a file's names are those of, where no config.json says it."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from inspector.store.manifests.columns import Tensors
from inspector.text import plural, some

FILE = Path(__file__).with_name("known_names.json.gz")  # written by `python -m tools.known_names`
NUMBER = re.compile(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)")
OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # of 2018
LEAST = 0.8  # of the kinds of names, on the side that has fewer in common
MOST = 3  # model types that are listed
FEW = 4  # kinds of names that any small module has
FITS = (
    "The tensors' names fit {model} ({of}; {how}){others}. To build the model, put its config.json beside the weights: "
    "settings such as the number of heads stand in no tensor."
)


class KnownClass(NamedTuple):
    """A class as its default settings build it."""

    model_type: str
    name: str  # of classes alike, the one whose code others are built on comes first
    kinds: frozenset[str]  # of parameters, as `kind_of` writes them
    tied: frozenset[str]  # of them, those which a saved file lacks where they are tied


def kind_of(name: str, dimensions: int) -> str:
    """A parameter's name without the numbers of layers and experts, and how many dimensions it has."""
    for old, new in OLD.items():
        name = name.replace(old, new)
    return f"{NUMBER.sub('*', name)}:{dimensions}"


def guess_class(tensors: Tensors) -> str:
    """Say which class of transformers has parameters of these names; "" if none is near.

    Names are compared without their numbers, and so are numbers of dimensions. Of classes that fit as well, all model
    types are told: names alone do not tell them apart.
    """
    held = frozenset(kind_of(each.name, len(each.shape)) for each in tensors)
    if len(held) < FEW:
        return ""
    scored = [(_fit(held, known), known) for known in _known()]
    best = max(score for score, _ in scored)
    if best < LEAST:
        return ""
    found = [known for score, known in scored if score == best]
    first, *others = found
    missing = len(first.kinds - held - first.tied)
    how = "the class has no others" if not missing else f"{missing:,} of the class are missing"
    types = list(dict.fromkeys(each.model_type for each in others if each.model_type != first.model_type))
    return FITS.format(
        model=f"{first.name}, model type {first.model_type}",
        of=f"{len(held & first.kinds):,} of {plural(len(held), 'kind')} of names",
        how=how,
        others=f"; names of {some(types, MOST)} fit as well" if types else "",
    )


def _fit(held: frozenset[str], known: KnownClass) -> float:
    """The share of names in common, of the side where it is smaller."""
    common = len(held & known.kinds)
    return common / max(len(held), len(known.kinds - (known.tied - held)))


@cache
def _known() -> tuple[KnownClass, ...]:
    read = json.loads(gzip.decompress(FILE.read_bytes()))
    return tuple(
        KnownClass(model_type, name, frozenset(kinds), frozenset(tied))
        for kinds, tied, classes in read["classes"]
        for model_type, name in classes
    )
