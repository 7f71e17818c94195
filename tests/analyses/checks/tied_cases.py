"""Small checkpoints whose config levels and bytes disagree on ties, and what a loader makes of each.

`python -m tests.analyses.checks.tied_cases write FOLDER` writes them with the installed transformers. With an earlier
version first on PYTHONPATH, `python tests/analyses/checks/tied_cases.py load FOLDER FILE` notes what that one makes of
them; ties_of_transformers_4.json is such a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

FLAG = "tie_word_embeddings"
# Class -> what a file calls its output matrix and its embeddings.
HEADS = {
    "LlamaForCausalLM": ("lm_head.weight", "model.embed_tokens.weight"),
    "GemmaForCausalLM": ("lm_head.weight", "model.embed_tokens.weight"),
    "GPT2LMHeadModel": ("lm_head.weight", "transformer.wte.weight"),
    "GPTNeoXForCausalLM": ("embed_out.weight", "gpt_neox.embed_in.weight"),
    "BertForMaskedLM": ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    "T5ForConditionalGeneration": ("lm_head.weight", "shared.weight"),
    "MT5ForConditionalGeneration": ("lm_head.weight", "shared.weight"),
    "LlavaForConditionalGeneration": ("language_model.lm_head.weight", "language_model.model.embed_tokens.weight"),
    "Mistral3ForConditionalGeneration": ("language_model.lm_head.weight", "language_model.model.embed_tokens.weight"),
    "Gemma3ForConditionalGeneration": ("language_model.lm_head.weight", "language_model.model.embed_tokens.weight"),
}
NESTED = [name for name in HEADS if HEADS[name][0].startswith("language_model.")]
HELD = ("tied", "equal", "different", "head alone")
FLAGS: dict[str, dict[str, bool]] = {"silent": {}, "ties": {"": True}, "unties": {"": False}}
LEVELS = FLAGS | {
    "text ties": {"text_config": True},
    "text unties": {"text_config": False},
    "text ties, top unties": {"": False, "text_config": True},
    "top ties, text unties": {"": True, "text_config": False},
}


@dataclass(frozen=True)
class TieCase:
    """One checkpoint."""

    architecture: str
    flags: str  # of FLAGS or LEVELS
    held: str  # of HELD

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.architecture}, {self.flags}, {self.held}"


SAID = tuple((architecture, flags) for architecture in HEADS for flags in (LEVELS if architecture in NESTED else FLAGS))
CASES = tuple(TieCase(*said, held) for said in SAID for held in HELD)


def write_case(folder: Path, case: TieCase, model: Any, names: tuple[str, str] | None = None) -> Path:
    """Save a model, then say and hold what the case says; its matrices are called so in the file."""
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    flags = LEVELS[case.flags]
    parts = {name: each for name, each in config.items() if isinstance(each, dict)}
    for level, part in {"": config, **parts}.items():  # what the class wrote of it is no part of the case
        part.pop(FLAG, None)
        if level in flags:
            part[FLAG] = flags[level]
    (folder / "config.json").write_text(json.dumps(config))
    head, embedding = names or HEADS[case.architecture]
    state = load_file(folder / "model.safetensors")
    matrix = model.get_input_embeddings().weight.detach()
    state = {name: each for name, each in state.items() if name not in _aliases(head, embedding)}
    other = torch.randn(matrix.shape, generator=torch.Generator().manual_seed(1))
    state |= {embedding: matrix.clone()} if case.held in ("tied", "equal", "different") else {}
    state |= {"equal": {head: matrix.clone()}, "tied": {}}.get(case.held, {head: other})
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _aliases(head: str, embedding: str) -> Iterator[str]:
    yield from (head, embedding, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    yield from ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")


def observe(folder: Path, architecture: str, head: str, embedding: str) -> str:
    """What the imported transformers makes of a checkpoint, by the numbers of the loaded model.

    Args:
        head: Name of the output matrix in the file.
        embedding: Name of the embeddings there.
    """
    model: Any = getattr(transformers, architecture).from_pretrained(folder)
    loaded = model.get_output_embeddings().weight
    state = load_file(folder / "model.safetensors")
    held = [state[name] for name in (head, embedding) if name in state]
    if loaded.is_meta or not any(torch.equal(loaded, each) for each in held):
        return "head random"
    if sum(each is loaded for _, each in model.named_parameters(remove_duplicate=False)) == 1:
        return "separate"
    lost = head in state and not torch.equal(loaded, state[head])
    return "trained head thrown away" if lost else "shared"


def models() -> Iterator[tuple[str, Any]]:
    """Each architecture's small random model."""
    from tests.families import random_model
    from tests.models.vision_language import VISION_LANGUAGE

    torch.manual_seed(0)
    built = {type(each).__name__: each for each in (build() for build in VISION_LANGUAGE.values())}
    for architecture in HEADS:
        yield architecture, built[architecture] if architecture in built else random_model(architecture)


def main(action: str, folder: str, file: str = "") -> None:
    """Write all, or load all and note the outcomes."""
    if action == "write":
        for architecture, model in models():
            for case in CASES:
                if case.architecture == architecture:
                    write_case(Path(folder) / case.name, case, model)
        return
    transformers.logging.set_verbosity(50)
    found = {
        case.name: observe(Path(folder) / case.name, case.architecture, *HEADS[case.architecture]) for case in CASES
    }
    Path(file).write_text(json.dumps({"transformers": transformers.__version__, "outcomes": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
