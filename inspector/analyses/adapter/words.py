"""Sentences about an adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from inspector.analyses.adapter.result import Adapter, Survival
from inspector.request import number_text
from inspector.text import count_text, percent_text, plural, some

NAMED = 3  # names in a sentence
TIE_BREAKS = (
    "The adapter brings {replaced} whole, which {base} ties to {left}: after a merge the two differ, although "
    "config.json says that they are one. A loader that ties them keeps one of the two."
)
TIE_CARRIES = (
    "The adapter changes {changed}, which {base} ties to {left}: PEFT merges into the shared matrix, so both change."
)
IF_TIED = (
    "The adapter changes {names}. If its base ties the head to the embeddings, a merge changes both or unties them: "
    "name the base to learn which."
)
VOCABULARY = ("embed_tokens.weight", "lm_head.weight", "wte.weight", "word_embeddings.weight", "decoder.weight")
WHY = (
    (
        "How are the norms computed?",
        "The norm and the singular values of a product of two thin matrices follow from their Gram matrices, which "
        "have only rank × rank numbers. The product itself is never made.",
    ),
    (
        "What is the effective rank?",
        "The exponential of the entropy of the singular values' shares (Roy and Vetterli 2007): 1 if the change has "
        "one direction, the rank if all its directions are equally strong.",
    ),
    (
        "What do effective alpha and noise say?",
        "A merge adds the change to each weight and rounds the sum. Effective alpha is how much of the change is left, "
        "1 being all of it. Noise is the length of the rounding error, relative to the change. Numbers that do not "
        "change at all are usual in 16 bits, and alone say little: where some are lost, others are rounded up.",
    ),
)
LITTLE, MUCH = 0.9, 0.5  # effective alpha below which, and noise above which, a merge deserves another dtype


def headline(adapter: Adapter) -> str:
    """The adapter in a sentence."""
    ranks = sorted({int(rank) for rank in _column(adapter, "rank") if rank})
    scales = sorted({float(scale) for scale in _column(adapter, "scale")})
    how = [f"rank {_range(ranks)}", f"scale {_range(scales)}"] if ranks else []
    text = f"{adapter.name} ({adapter.type}) changes {plural(len(adapter.targets), 'weight')} of its base"
    text += f" with {' and '.join(how)}" if how else ""
    text += f", and brings {plural(len(adapter.replaced), 'tensor')} whole" if adapter.replaced else ""
    return f"{text}.{_faults(adapter)}{_kept(adapter.survival)}"


def judged(adapter: Adapter) -> Literal["note", "warning", "problem"] | None:
    """How good the news is."""
    if not all(_column(adapter, "finite")):
        return "problem"
    lossy = adapter.survival and (adapter.survival.effective_alpha < LITTLE or adapter.survival.noise > MUCH)
    return "warning" if any(_column(adapter, "dead")) or lossy else None


def _faults(adapter: Adapter) -> str:
    dead, broken = sum(_column(adapter, "dead")), sum(not each for each in _column(adapter, "finite"))
    text = f" {plural(broken, 'of them contains', 'of them contain')} NaN or infinity." if broken else ""
    return text + (f" {plural(dead, 'of them changes', 'of them change')} nothing." if dead else "")


def _kept(survival: Survival | None) -> str:
    if survival is None:
        return ""
    return (
        f" A merge in {survival.dtype} keeps {percent_text(survival.effective_alpha)} of the change, with "
        f"{percent_text(survival.noise)} noise."
    )


def _column(adapter: Adapter, name: str) -> list[Any]:
    return adapter.targets[name].tolist()


def _range(values: Sequence[float]) -> str:
    ends = dict.fromkeys((values[0], values[-1]))
    return " to ".join(number_text(float(f"{value:.4g}")) for value in ends)


def facts(adapter: Adapter) -> dict[str, str]:
    """What is known of all of it."""
    stands = sum(parameters / share for parameters, share in _shares(adapter))
    own = sum(parameters for parameters, _ in _shares(adapter))
    found = {
        "Type": adapter.type,
        "Base": adapter.base_name
        or (f"{adapter.base} (as adapter_config.json says)" if adapter.base else "not stated"),
        "Parameters": f"{adapter.parameters:,}",
    }
    if stands:
        found["Low rank"] = f"{count_text(own)} numbers change {count_text(stands)} ({percent_text(own / stands)})"
    if adapter.base_parameters:
        found["Share of the base"] = percent_text(adapter.parameters / adapter.base_parameters)
    if adapter.replaced:
        found["Brought whole"] = some(adapter.replaced, NAMED)
    if adapter.biases:
        found["Biases"] = plural(len(adapter.biases), "bias", "biases")
    if adapter.survival:
        found |= survival_facts(adapter.survival)
    return found


def _shares(adapter: Adapter) -> Iterator[tuple[int, float]]:
    pairs = zip(_column(adapter, "parameters"), _column(adapter, "share"), strict=True)
    return ((parameters, share) for parameters, share in pairs if share > 0)


def survival_facts(survival: Survival) -> dict[str, str]:
    """What a merge keeps: the strength and the noise first."""
    return {
        "Merged in": f"{survival.dtype}, replayed in {plural(survival.rows, 'row')} of each matrix",
        "Effective alpha": f"{survival.effective_alpha:.3g} of the change is kept",
        "Noise": f"{survival.noise:.3g} of the change's length is rounding error",
        "Numbers that change": percent_text(survival.share),
    }


def if_tied(names: Sequence[str]) -> Iterator[str]:
    """What may become of a tie, as long as no base is known.

    Args:
        names: Of the weights that the adapter changes or brings.
    """
    if found := [name for name in names if name.endswith(VOCABULARY)]:
        yield IF_TIED.format(names=some(found, NAMED))


def unreadable(adapter: str, names: Sequence[str]) -> str:
    """What of an adapter is not measured."""
    return f"{adapter} has {plural(len(names), 'tensor')} whose effect is not computed here: {some(names, NAMED)}."


def not_measured(base: str, modules: Sequence[str]) -> str:
    """Where nothing can be said of a merge."""
    count = plural(len(modules), "weight")
    return f"What a merge keeps of {count} is not known: {base} stores no plain numbers for {some(modules, NAMED)}."


def title(adapter: Adapter) -> str:
    """Of the picture."""
    return f"How much {adapter.name} changes each weight"


SUBTITLE = "norm of the change ΔW, its scale included; ∅ changes nothing, ! is not finite"
