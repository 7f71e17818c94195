"""What differs between model families, as a table: names of tensors and modules, and their ties.

Names are those of transformers 5.23. Imports no torch: the overview answers from it at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from inspector.results.checkpoint import HEADS
from inspector.store.readers.levels import stated


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a head, from the last hidden state toward the unembedding."""

    rung: str  # what the lens calls it
    path: str  # attribute of the model: a module or a function
    inside: bool = False  # done in the base model: hidden_states[-1] has it


@dataclass(frozen=True, slots=True)
class Positions:
    """How a family counts the positions of a text."""

    stated: str = "max_position_embeddings"  # config key of how many rows its tables have; "": nothing bounds a text
    first: int | str = 0  # row of the first token, where rows before it count; or the config key of the row before it

    def longest(self, config: Mapping[str, Any]) -> int | None:
        """How many tokens of a text are read; None: any number.

        Raises:
            LookupError: If config.json leaves one of these numbers to the class.
        """
        if not self.stated:
            return None
        rows, first = config.get(self.stated), self.first
        if isinstance(first, str):
            before = config.get(first)
            first = before + 1 if type(before) is int else -1
        if type(rows) is not int or not 0 <= first < rows:
            raise LookupError(self.stated)
        return rows - first


@dataclass(frozen=True, slots=True)
class Family:
    """Names of one model family, full names as in the class with the language-model head."""

    base: str  # attribute of the base model; its tensors may stand in a file without it
    embedding: str  # input embedding matrix, (vocab, d_model)
    tied_by_default: bool  # what the family's config class says when config.json is silent
    masked_lm: tuple[str, ...] = ()  # tensors that the head needs besides its tied ones
    causal_lm: tuple[str, ...] | None = None  # likewise; None: the family has no such head
    ties: Mapping[str, str] = field(default_factory=dict)  # tied name -> the name it repeats
    steps: tuple[Step, ...] = ()  # of the head, before the unembedding
    unembedding: str = ""  # (vocab, width) matrix of the output layer, as the model has it
    bias: str | None = None  # added to its product
    scaled: str | None = None  # config key: if set, times d_model ** -0.5 before the unembedding
    softcap: str | None = None  # config key: logits = cap * tanh(logits / cap)
    seq2seq_lm: bool = False  # encoder and decoder: the lens reads the decoder
    positions: Positions | None = None  # None: its class tells how long a text may be


GELU = "gelu()"  # no attribute of the model: the head calls transformers' function
UNBOUNDED = Positions("")  # rotary, or relative
TABLE = Positions()
AFTER_PADDING = Positions(first="pad_token_id")


def _linear(name: str) -> tuple[str, str]:
    return (f"{name}.weight", f"{name}.bias")


def _encoder(
    base: str,
    dense: str,
    activation: str,
    norm: str,
    output: str,
    *,
    bias: str = "",
    positions: Positions | None = TABLE,
) -> Family:
    """An encoder whose head is dense, activation, LayerNorm and output; its bias may be stored under another name."""
    embedding = f"{base}.embeddings.word_embeddings.weight"
    return Family(
        base,
        embedding,
        tied_by_default=True,
        masked_lm=(*_linear(dense), *_linear(norm), bias or f"{output}.bias"),
        ties={f"{output}.weight": embedding} | ({f"{output}.bias": bias} if bias else {}),
        steps=(Step("dense", dense), Step("activation", activation), Step("LayerNorm", norm)),
        unembedding=f"{output}.weight",
        bias=f"{output}.bias",
        positions=positions,
    )


def _bert(base: str, positions: Positions | None = TABLE) -> Family:
    head = "cls.predictions"
    dense, activation, norm = (f"{head}.transform.{step}" for step in ("dense", "transform_act_fn", "LayerNorm"))
    return _encoder(base, dense, activation, norm, f"{head}.decoder", bias=f"{head}.bias", positions=positions)


def _roberta(base: str, positions: Positions = AFTER_PADDING) -> Family:
    steps = "lm_head.dense", GELU, "lm_head.layer_norm", "lm_head.decoder"
    return _encoder(base, *steps, bias="lm_head.bias", positions=positions)


def _decoder(
    base: str,
    embedding: str,
    norm: str,
    *,
    tied: bool = False,
    softcap: str | None = None,
    after: tuple[Step, ...] = (),
    positions: Positions = UNBOUNDED,
) -> Family:
    return Family(
        base,
        f"{base}.{embedding}",
        tied_by_default=tied,
        causal_lm=(),
        ties={"lm_head.weight": f"{base}.{embedding}"},
        steps=(Step("final norm", f"{base}.{norm}", inside=True), *after),
        unembedding="lm_head.weight",
        bias="lm_head.bias",
        softcap=softcap,
        positions=positions,
    )


def _t5(scaled: str = "scale_decoder_outputs") -> Family:
    return Family(
        "transformer",
        "shared.weight",
        tied_by_default=True,
        seq2seq_lm=True,
        ties=dict.fromkeys(
            ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"), "shared.weight"
        ),
        steps=(Step("final norm", "decoder.final_layer_norm", inside=True),),
        unembedding="lm_head.weight",
        scaled=scaled,
        positions=UNBOUNDED,
    )


def _bart(*, norm: bool = False, infills: bool = False) -> Family:
    last = (Step("final norm", "model.decoder.layer_norm", inside=True),)
    return Family(
        "model",
        "model.shared.weight",
        tied_by_default=True,
        seq2seq_lm=True,
        ties=dict.fromkeys(
            ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"),
            "model.shared.weight",
        ),
        masked_lm=_linear("model.decoder.layernorm_embedding") if infills else (),
        steps=last if norm else (),
        unembedding="lm_head.weight",
        bias="final_logits_bias",
        positions=TABLE,
    )


FAMILIES: Mapping[str, Family] = {
    "bert": _bert("bert"),
    "deberta-v2": _bert("deberta", positions=None),  # a setting decides
    "roberta": _roberta("roberta"),
    "xlm-roberta": _roberta("roberta"),
    "camembert": _roberta("roberta"),
    "mpnet": _roberta("mpnet", Positions(first=2)),  # whatever its padding id
    "distilbert": _encoder("distilbert", "vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    "albert": _encoder(
        "albert",
        "predictions.dense",
        "predictions.activation",
        "predictions.LayerNorm",
        "predictions.decoder",
        bias="predictions.bias",
    ),
    "electra": _encoder(
        "electra",
        "generator_predictions.dense",
        "generator_predictions.activation",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
    ),
    "gpt2": _decoder("transformer", "wte.weight", "ln_f", tied=True, positions=Positions("n_positions")),
    "gpt_neox": _decoder("gpt_neox", "embed_in.weight", "final_layer_norm"),
    "opt": _decoder(
        "model",
        "decoder.embed_tokens.weight",
        "decoder.final_layer_norm",
        tied=True,
        after=(Step("projection", "model.decoder.project_out", inside=True),),
        positions=TABLE,
    ),
    "llama": _decoder("model", "embed_tokens.weight", "norm"),
    "mistral": _decoder("model", "embed_tokens.weight", "norm"),
    "qwen2": _decoder("model", "embed_tokens.weight", "norm"),
    "qwen3": _decoder("model", "embed_tokens.weight", "norm"),
    "mixtral": _decoder("model", "embed_tokens.weight", "norm"),
    "qwen2_moe": _decoder("model", "embed_tokens.weight", "norm"),
    "qwen3_moe": _decoder("model", "embed_tokens.weight", "norm"),
    "deepseek_v3": _decoder("model", "embed_tokens.weight", "norm"),
    "gemma": _decoder("model", "embed_tokens.weight", "norm", tied=True),
    "gemma2": _decoder("model", "embed_tokens.weight", "norm", tied=True, softcap="final_logit_softcapping"),
    "t5": _t5(),
    "mt5": _t5(),
    "longt5": _t5(),
    "umt5": _t5(scaled="tie_word_embeddings"),
    "bart": _bart(infills=True),
    "marian": _bart(),
    "mbart": _bart(norm=True, infills=True),
    "pegasus": _bart(norm=True),
}

# Heads that several classes name alike: the architecture decides between them.
CLASS_HEADS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "next_sentence": (r"For(NextSentencePrediction|PreTraining)$", ("cls.seq_relationship",)),
    "sequence_classification": (
        r"ForSequenceClassification$",
        ("classifier", "score", "classifier.out_proj", "classification_head.out_proj"),
    ),
    "token_classification": (r"ForTokenClassification$", ("classifier", "score")),
    "question_answering": (r"ForQuestionAnswering$", ("qa_outputs",)),
    "multiple_choice": (r"ForMultipleChoice$", ("classifier", "sequence_summary.summary")),
}


# Endings under which older classes save what has another name today.
OLD_ENDINGS = {
    ".weight": ".gamma",
    ".bias": ".beta",
    "lm_head.weight": "embed_out.weight",  # GPT-NeoX
}


_OLD = tuple(OLD_ENDINGS.values())


def modern(name: str) -> str:
    """Give a tensor of a file the name it has in the class today."""
    name = name.removeprefix("module.")  # DataParallel's wrapper
    if not name.endswith(_OLD):  # as most do not
        return name
    for today, old in OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + today
    return name


def in_file(wanted: str, names: Collection[str], base: str) -> str | None:
    """Find the name under which a file holds a tensor.

    Args:
        wanted: Name in the class with a head, e.g. "bert.embeddings.word_embeddings.weight".
        names: Names in the file.
        base: The base model's attribute, which the base class leaves out of its files.

    Returns:
        The file's own name for it, or None.
    """
    spellings = [wanted] + [
        wanted.removesuffix(today) + old for today, old in OLD_ENDINGS.items() if wanted.endswith(today)
    ]
    for spelling in spellings:
        for name in (spelling, spelling.removeprefix(f"{base}."), f"{base}.{spelling}"):
            if name in names:
                return name
    return None


def declares_tie(config: Mapping[str, Any], family: Family | None) -> bool:
    """Whether config.json at its top, or else the family's config class, ties input and output embeddings."""
    default = family.tied_by_default if family else True
    return bool(stated(config, "tie_word_embeddings").get("", default))


def longest_text(config: Mapping[str, Any], family: Family | None) -> int | None:
    """How many tokens of a text the class of config.json reads, where the table knows; None: any number.

    Raises:
        LookupError: If only the class knows.
    """
    kind = re.sub("[-_]", "", str(config.get("model_type")))
    others = [name for name in config.get("architectures") or () if not str(name).lower().startswith(kind)]
    if family is None or family.positions is None or others:
        raise LookupError(kind)
    return family.positions.longest(config)


def heads_present(config: Mapping[str, Any], names: Collection[str], family: Family) -> dict[str, str]:
    """Say which heads a file holds, from the names of its tensors.

    Args:
        config: The rebuilt config.json.
        family: The table's row for the config's model type.

    Returns:
        For every head of HEADS, in that order, "present" or "absent". A head is present only if
        every tensor that it needs is in the file, or is tied to one that is.
    """
    architecture = (config.get("architectures") or [""])[0]
    held = {modern(name) for name in names}
    tied = declares_tie(config, family)
    present: dict[str, str] = dict.fromkeys(HEADS, "absent")
    if family.masked_lm and _holds(family.masked_lm, held) and _projects(family, held, tied=tied):
        present["masked_lm"] = "present"
    if family.causal_lm is not None and _projects(family, held, tied=tied):
        present["causal_lm"] = "present"
    for head, (pattern, modules) in CLASS_HEADS.items():
        if re.search(pattern, architecture) and any(f"{m}.weight" in held for m in modules):
            present[head] = "present"
    return present


def writes_text(config: Mapping[str, Any], names: Collection[str], family: Family) -> bool:
    """Whether a file holds an encoder-decoder's decoder and its output matrix, itself or through a tie."""
    held = {modern(name) for name in names}
    decodes = any(".decoder." in f".{name}" for name in held)
    return decodes and _projects(family, held, tied=declares_tie(config, family))


def with_this_head(names: Collection[str], families: Mapping[str, Family]) -> list[str]:
    """Model types of which a file holds the whole masked-LM head, by the names of its tensors."""
    held = {modern(name) for name in names}
    return [kind for kind, family in families.items() if family.masked_lm and _holds(family.masked_lm, held)]


def _holds(wanted: tuple[str, ...], held: set[str]) -> bool:
    # A file may store a tied bias under its other name only.
    return all(name in held or name.replace(".bias", ".decoder.bias") in held for name in wanted)


def _projects(family: Family, held: set[str], *, tied: bool) -> bool:
    """Whether the matrix of the output layer is in the file, itself or through a tie."""
    projection = next(name for name in family.ties if name.endswith(".weight"))
    return projection in held or (tied and in_file(family.embedding, held, family.base) is not None)
