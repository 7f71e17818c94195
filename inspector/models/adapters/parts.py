"""Which tensors of an adapter change which module of its base, as PEFT names them; no numbers are read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.store.adapters import ACTIVATED, CONFIG, MERGED, WRAPPED
from inspector.store.manifests.columns import TensorInfo
from inspector.text import shape_text

# What follows a module's name -> role. PEFT leaves the adapter's name out; others keep it.
ROLES = re.compile(
    r"\.(?:(?P<layer>lora_[AB])(?:\.\w+)?\.weight"
    r"|(?P<embedding>lora_embedding_[AB])(?:\.\w+)?"
    r"|(?P<magnitude>lora_magnitude_vector)(?:\.\w+){0,2}"
    r"|(?P<bias>lora_B)(?:\.\w+)?\.bias"
    r"|(?P<scales>ia3_l)(?:\.\w+)?"
    r"|(?P<products>hada_(?:w[12]_[ab]|t[12])|lokr_(?:w[12](?:_[ab])?|t2))(?:\.\w+)?)$"
)
WHOLE = re.compile(r"\.(?:modules_to_save(?:\.\w+)?|base_layer|ln_tuning_layers(?:\.\w+)?)(?=\.(?:weight|bias)$)")
# In a name: parts of methods whose numbers are not in the file, or that change no weight of one module.
UNREADABLE = re.compile(r"\.(?:vera_|token_adapter\.|base_layer\.lora_|randlora_|vblora_|oft_|boft_|hra_|fourierft_)")
NEEDED = {  # kind -> the parts that it cannot be without
    "LoRA": ("lora_A", "lora_B"),
    "LoRA of embeddings": ("lora_embedding_A", "lora_embedding_B"),
    "(IA)³": ("ia3_l",),
    "LoHa": ("hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b"),
    "LoKr": (),  # either factor is whole, or a product
}
SCALED = {"LoRA": "lora_alpha", "LoRA of embeddings": "lora_alpha", "LoHa": "alpha", "LoKr": "alpha"}  # kind -> setting
NO_FILE = "{name} has no {config} with a type, so nobody knows how it is merged: add the file, and open it again."
NO_ADAPTER = "{name} is a whole model, not an adapter: give the folder that PEFT saved, with {config}."
NO_TYPE = "{name} is an adapter of type {kind}, which this tool cannot merge: it knows {known}."
HALF = "{name} holds {there} of {module} without {lacking}: the file is incomplete."
MISFIT = (
    "{name} holds parts of {module} whose shapes do not fit each other ({shapes}): if the file was cut, get it again."
)
COMPLEX = "{name} holds complex numbers in {tensor}, which no merge adds to a weight: save it in real ones."
NO_RANK = "{name} gives {module} rank 0, which changes nothing and has no scale: train it with a rank above 0."
NO_ALPHA = "{name} has no {setting} in {config}, so its scale is not known: add the value that it was trained with."
PATTERN = "{config} gives a rank or a scale by the expression {key!r}, which this tool does not read: list the modules."
NEVER_MERGED = (
    "{name} is an activated LoRA (aLoRA): it changes only what follows its invocation tokens, so no merge does what it "
    "does, and PEFT refuses to make one."
)
TYPES = ("LORA", "DORA", "LOHA", "LOKR", "IA3", "LN_TUNING")


@dataclass(frozen=True, slots=True)
class WeightChange:
    """What an adapter adds to one weight of its base."""

    module: str
    kind: str  # a key of NEEDED
    parts: Mapping[str, TensorInfo]  # role -> tensor of the adapter
    rank: int
    scale: float

    @property
    def weight(self) -> str:
        """The name of the weight that it changes."""
        return f"{self.module}.weight"


@dataclass(frozen=True, slots=True)
class AdapterChanges:
    """Everything that an adapter changes, by the base's names."""

    settings: Mapping[str, Any]
    changes: tuple[WeightChange, ...]  # of weights, in the file's order
    biases: Mapping[str, tuple[TensorInfo, float]] = field(default_factory=dict)  # added, with their scale
    replaced: Mapping[str, TensorInfo] = field(default_factory=dict)  # put in place of the base's tensor
    unreadable: tuple[str, ...] = ()  # tensors whose effect on a weight is not known

    def never_merged(self, name: str) -> str:
        """A sentence where no merge can do what the adapter does; "" for every other one.

        Args:
            name: Of the adapter.
        """
        return NEVER_MERGED.format(name=name) if self.settings.get(ACTIVATED) else ""


def read_parts(adapter: StagedCheckpoint) -> AdapterChanges:
    """Sort an adapter's tensors by what they change.

    Raises:
        NotInCheckpointError: If it is none, of a type that is not known, or incomplete.
    """
    if not adapter.manifest.adapter:
        raise NotInCheckpointError(NO_ADAPTER.format(name=adapter.name, config=CONFIG))
    settings = _settings(adapter)
    modules: dict[str, dict[str, TensorInfo]] = {}
    biases: dict[str, TensorInfo] = {}
    replaced: dict[str, TensorInfo] = {}
    unreadable = []
    for tensor in adapter.tensors:
        name = tensor.name.removeprefix(WRAPPED)
        found = ROLES.search(name)
        if UNREADABLE.search(name):
            unreadable.append(tensor.name)
        elif found is None:
            replaced[WHOLE.sub("", name)] = tensor
        elif found["bias"]:
            biases[name[: found.start()]] = tensor
        else:
            role = next(part for part in found.groups() if part)
            modules.setdefault(name[: found.start()], {})[role] = tensor
        if tensor.dtype.startswith("complex"):
            raise NotInCheckpointError(COMPLEX.format(name=adapter.name, tensor=tensor.name))
    changes = tuple(_change(adapter.name, module, parts, settings) for module, parts in modules.items())
    scales = {change.module: change.scale for change in changes}
    return AdapterChanges(
        settings,
        changes,
        {f"{module}.bias": (tensor, scales.get(module, 1.0)) for module, tensor in biases.items()},
        replaced,
        tuple(unreadable),
    )


def _settings(adapter: StagedCheckpoint) -> dict[str, Any]:
    path = adapter.manifest.folder / CONFIG
    if not path.is_file() or not (settings := json.loads(path.read_text("utf-8"))).get("peft_type"):
        raise NotInCheckpointError(NO_FILE.format(name=adapter.name, config=CONFIG))
    kind = str(settings["peft_type"]).upper()
    if kind not in TYPES:
        known = ", ".join(MERGED[each].split()[-1] for each in TYPES if each in MERGED)
        raise NotInCheckpointError(NO_TYPE.format(name=adapter.name, kind=kind, known=known))
    return settings


def _change(name: str, module: str, parts: dict[str, TensorInfo], settings: Mapping[str, Any]) -> WeightChange:
    kind = _kind(parts)
    for role in NEEDED[kind]:
        if role not in parts:
            there = " and ".join(sorted(parts))
            raise NotInCheckpointError(HALF.format(name=name, there=there, module=module, lacking=role))
    if kind == "LoKr":
        for factor in ("lokr_w1", "lokr_w2"):
            if factor not in parts and not {f"{factor}_a", f"{factor}_b"} <= parts.keys():
                there = " and ".join(sorted(parts))
                raise NotInCheckpointError(HALF.format(name=name, there=there, module=module, lacking=factor))
    if not _fit(kind, parts):
        shapes = ", ".join(f"{role} {shape_text(part.shape)}" for role, part in sorted(parts.items()))
        raise NotInCheckpointError(MISFIT.format(name=name, module=module, shapes=shapes))
    rank = _rank(kind, module, parts, settings)
    if kind != "(IA)³" and rank == 0:
        raise NotInCheckpointError(NO_RANK.format(name=name, module=module))
    return WeightChange(module, kind, parts, rank, _scale(name, kind, module, rank, settings))


def _fit(kind: str, parts: Mapping[str, TensorInfo]) -> bool:
    """Whether the parts are matrices, or more axes, and their products exist; magnitudes may be vectors."""
    shapes = {role: part.shape for role, part in parts.items()}
    if any(len(shape) < 2 for role, shape in shapes.items() if role != "lora_magnitude_vector"):
        return False
    if "lora_magnitude_vector" in parts and not kind.startswith("LoRA"):
        return False
    if kind == "LoRA":
        return math.prod(shapes["lora_B"][1:]) == shapes["lora_A"][0]
    if kind == "LoRA of embeddings":
        one, two = (shapes[role] for role in NEEDED[kind])
        return len(one) == len(two) == 2 and two[1] == one[0]
    if kind == "LoHa" and not any(role.startswith("hada_t") for role in parts):
        first, second = ((shapes[f"hada_w{n}_a"], shapes[f"hada_w{n}_b"]) for n in (1, 2))
        outer = [(one[0], math.prod(other[1:])) for one, other in (first, second)]
        return all(math.prod(one[1:]) == other[0] for one, other in (first, second)) and outer[0] == outer[1]
    pairs = [(shapes.get(f"lokr_w{n}_a"), shapes.get(f"lokr_w{n}_b")) for n in (1, 2)]
    return all(
        one is None or other is None or (len(one) == len(other) == 2 and one[1] == other[0]) for one, other in pairs
    )


def _kind(parts: Mapping[str, TensorInfo]) -> str:
    first = min(parts)
    begins = {"ia3": "(IA)³", "hada": "LoHa", "lokr": "LoKr", "lora_embedding": "LoRA of embeddings"}
    return next((kind for begin, kind in begins.items() if first.startswith(begin)), "LoRA")


def _rank(kind: str, module: str, parts: Mapping[str, TensorInfo], settings: Mapping[str, Any]) -> int:
    """The rank that divides alpha: the rows of A; of products as the settings say."""
    if kind.startswith("LoRA"):
        return parts[NEEDED[kind][0]].shape[0]
    if kind == "LoHa":
        return parts["hada_w1_b"].shape[0]
    return int(_by_pattern(settings.get("rank_pattern"), module, settings.get("r", 0))) if kind == "LoKr" else 0


def _scale(name: str, kind: str, module: str, rank: int, settings: Mapping[str, Any]) -> float:
    if kind not in SCALED:
        return 1.0
    setting = SCALED[kind]
    alpha = _by_pattern(settings.get("alpha_pattern"), module, settings.get(setting))
    if alpha is None:
        raise NotInCheckpointError(NO_ALPHA.format(name=name, setting=setting, config=CONFIG))
    return float(alpha) / (math.sqrt(rank) if settings.get("use_rslora") else rank)


def _by_pattern(patterns: Mapping[str, Any] | None, module: str, usual: Any) -> Any:
    """What the first key says that is the module's name or its end.

    PEFT takes keys for regular expressions. One of a stranger's file may take forever, so only names are read, with
    an anchor, escaped dots or any beginning.

    Raises:
        NotInCheckpointError: If a key is more than that.
    """
    for key, value in (patterns or {}).items():
        plain = key.removeprefix("^").removeprefix(".*").removesuffix("$").replace("\\.", ".")
        plain = plain.removeprefix(".")
        if re.search(r"[\\|()\[\]*+?{}^$]", plain):
            raise NotInCheckpointError(PATTERN.format(key=key[:60], config=CONFIG))
        if module == plain or (not key.startswith("^") and module.endswith(f".{plain}")):
            return value
    return usual
