"""Check what config.json says of quantized weights: what it names as left alone is, and scales exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.analyses.checks import words_loading as words
from inspector.analyses.checks.result import Evidence
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.quantized.formats import FLOAT8
from inspector.store.configs import LEFT_ALONE, METHOD

REGEX = "re:"  # before a pattern of compressed-tensors
ANY = ".*"
MOST_PATTERNS = 100  # that are compared with every module
MOST_PARTS = 100  # of a module's name that is looked for by its beginning and end


def check_declared(checkpoint: StagedCheckpoint) -> Iterator[Evidence]:
    """Codes whose module config.json leaves alone, and float8 weights all of whose scales are gone."""
    said = checkpoint.manifest.quantization
    for key in [each for each in LEFT_ALONE if said.get(each)]:
        named = NamedModules(said[key], whole=key == "ignore")
        for name, each in checkpoint.quantized.items():
            module = name.removesuffix(".weight")
            if pattern := named.find(module):
                detail = words.LEFT_ALONE.format(key=key, pattern=pattern, scheme=each.scheme)
                yield Evidence(module, words.CODES_LEFT_ALONE, "major", None, detail)
    plain = [tensor for tensor in checkpoint.tensors if tensor.dtype in FLOAT8 and len(tensor.shape) > 1]
    scaled = any(part.dtype in FLOAT8 for each in checkpoint.quantized.values() for part in each.parts.values())
    if METHOD in said and plain and not scaled and not checkpoint.unread.codes:
        detail = words.NO_SCALES.format(method=said[METHOD])
        for tensor in plain:
            yield Evidence(tensor.name, words.NO_COMPANION, "critical", None, detail)


class NamedModules:
    """Modules that a setting names: by their names, or by patterns in which only `.*` is no letter.

    What else a stranger's regular expression may say is not evaluated, and so names nothing.
    """

    def __init__(self, listed: Sequence[str], *, whole: bool) -> None:
        """Args: whole: A name is a module's whole name; otherwise its beginning or end as well."""
        self.whole = whole
        self.names = {each for each in listed if not each.startswith(REGEX)}
        found = (each.removeprefix(REGEX) for each in listed if each.startswith(REGEX))
        self.patterns = [each for each in found if is_plain(each)][:MOST_PATTERNS]

    def find(self, module: str) -> str:
        """What names a module; "" where nothing does."""
        parts = module.split(".")
        places = [module]
        if not self.whole and len(parts) <= MOST_PARTS:
            places += [".".join(parts[:end]) for end in range(1, len(parts))]
            places += [".".join(parts[start:]) for start in range(1, len(parts))]
        by_name = next((each for each in places if each in self.names), "")
        return by_name or next((f"{REGEX}{each}" for each in self.patterns if fits_pattern(module, each)), "")


def is_plain(pattern: str) -> bool:
    """Whether nothing in a regular expression but `.*`, and `^` and `$` at its ends, is more than a name's letters."""
    rest = pattern.removeprefix("^").removesuffix("$").replace(ANY, "").replace("\\.", ".")
    return all(each.isalnum() or each in "._-" for each in rest)


def fits_pattern(module: str, pattern: str) -> bool:
    """Whether a name begins as such a pattern says; with `$`, all of it does. Takes time in proportion to both."""
    ends = pattern.endswith("$")
    pieces = pattern.removeprefix("^").removesuffix("$").replace("\\.", ".").split(ANY)
    if not module.startswith(pieces[0]):
        return False
    place = len(pieces[0])
    for piece in pieces[1:]:
        found = module.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return not ends or (module.endswith(pieces[-1]) and (len(pieces) > 1 or place == len(module)))
