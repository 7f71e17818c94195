"""Sentences about what a change did to the ties."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.what_if.result import ChangedModel, Edge, SavedFile, WhatIf
from inspector.text import bytes_text, plural

TIED = "one tensor"
NOTHING = {
    "untie": "There is nothing to untie",
    "clone": "There is nothing tied to clone",
    "resize": "There is no tie that a resize could break",
    "half": "There is no tie that a cast could break",
    "reload": "There is no tie that saving could lose",
}
NOT_ASKED = "No training was requested."
NOT_TRAINED = "its copies do not fit."
NO_MASK = "The tokenizer has no mask token, and this model learns from masked tokens."
NO_LOSS = "{model} has no language-model head, so it has no loss on a text."
LACKING = "The file lacks {name}, and training does not start from random numbers."
NOT_MEASURED = "Not measured: {names}: the file has no numbers for them."
NOT_FINITE_AFTER = "After training, its loss is not finite{why}."
EPSILON = " (AdamW's epsilon, 1e-8, is 0 in float16)"
NOT_FINITE = "Its loss is not finite."
LONGEST = 120  # characters of a library's error


def too_large(name: str, *, needed: float, allowed: float, trained: bool) -> str:
    """Why copies of a model are not made: bytes that they need, and that may be used."""
    return (
        f"This needs about {needed / 1e9:,.1f} GB for copies of {name}, and only {allowed / 1e9:,.1f} GB may be used: "
        f"{'ask for 0 training steps, or ' if trained else ''}raise INSPECTOR_WORKER_MB."
    )


def as_declared(left_out: str) -> str:
    """What is answered where copies do not fit; `left_out` says why."""
    said = "Ties and sizes below are those of the changed model without its numbers: nothing is saved or trained."
    return f"{said} {left_out}"


def cannot_run(error: Exception) -> str:
    """Why a changed model is not trained: the library's own words, shortened."""
    text = " ".join(str(error).split())
    cut = f"{text[:LONGEST]}…" if len(text) > LONGEST else text
    return f"It no longer runs: “{cut}”." if cut else "It no longer runs."


def refused(error: Exception) -> str:
    """Why a saved file does not load again."""
    mismatch = "ignore_mismatched_sizes" in str(error)
    return f"transformers refuses to load it{': sizes differ from those in config.json' if mismatch else ''}"


def nothing_to_do(change: str, model_class: str, *, has_pairs: bool) -> str:
    """Why a change has no ways for a model."""
    if not has_pairs:
        return f"{NOTHING[change]}: no two parameters of {model_class} are one tensor, and its class declares no ties."
    if change == "clone":
        return f"{NOTHING[change]}: every name of {model_class} already has its own tensor."
    return f"{NOTHING[change]}: {model_class} has no output layer whose tie could be changed."


def answer(ways: Sequence[ChangedModel]) -> str:
    """What all ways did."""
    if len(ways) == 1:
        return ways[0].answer
    return " ".join(f"{way.title}: {way.answer}" for way in ways)


def describe(original: ChangedModel, way: ChangedModel) -> str:
    """What one way did: to the ties, to the sizes, in training and in the file."""
    broken = [edge for edge in way.edges if edge.before == TIED and edge.after != TIED]
    made = [edge for edge in way.edges if edge.before != TIED and edge.after == TIED]
    kept = [edge for edge in way.edges if edge.before == TIED and edge.after == TIED]
    if broken:
        of = f" of {len(broken) + len(kept)}" if kept else ""
        verb = "breaks" if len(broken) == 1 else "break"
        text = f"{plural(len(broken), 'tie')}{of} {verb} ({_names(broken)})"
    elif made:
        text = f"{plural(len(made), 'tie')} is made ({_names(made)})"
    elif kept:
        text = "Every tie holds" if len(kept) > 1 else "The tie holds"
    else:
        text = "Nothing was tied before, and nothing is now"
    return f"{text}{_growth(original, way)}.{_moved(broken)}{_loading(way)}"


def _growth(original: ChangedModel, way: ChangedModel) -> str:
    more = way.unique_parameters - original.unique_parameters
    bytes_more = way.nbytes - original.nbytes
    if not more and not bytes_more:
        return ""
    if not more:
        share = 100 * abs(bytes_more) / original.nbytes
        return f", in {share:.1f} % {'more' if bytes_more > 0 else 'less'} memory"
    share = 100 * abs(more) / original.unique_parameters
    word = "more" if more > 0 else "fewer"
    return f", and the model has {abs(more):,} {word} parameters ({share:.1f} %)"


def _moved(broken: Sequence[Edge]) -> str:
    drifts = [e.trained_drift for e in broken if e.trained_drift and e.trained_drift.max_abs]
    if not drifts:
        return ""
    largest = max(drift.max_abs for drift in drifts)
    return f" Training moves them apart by up to {largest:.2g}; while tied, they cannot differ."


def _loading(way: ChangedModel) -> str:
    if way.file is None:
        return ""
    if way.file.refused:
        return f" Saved, {way.file.refused}."
    if way.file.random:
        return f" The saved file lacks {', '.join(way.file.random)}: loading it again fills them with random numbers."
    back = [e for e in way.edges if e.after != TIED and e.reloaded == TIED]
    lost = [e for e in way.edges if e.before == TIED and e.after == TIED and e.reloaded != TIED]
    if back:
        split = [e for e in back if e.trained_reloaded not in (None, TIED)]
        then = ", but not if saved after training, because the numbers then differ" if split else ""
        verb = "is" if len(back) == 1 else "are"
        return f" Saved and loaded again, {_names(back)} {verb} tied once more{then}."
    verb = "is" if len(lost) == 1 else "are"
    return f" Saved and loaded again, {_names(lost)} {verb} no longer tied." if lost else ""


def _names(edges: Sequence[Edge]) -> str:
    return ", ".join(edge.name for edge in edges)


def sizes(result: WhatIf, way: ChangedModel) -> list[str]:
    """Parameters, memory and loss of one way, and what its file holds."""
    before = "" if way is result.original else f"{result.original.unique_parameters:,} → "
    text = f"{before}{way.unique_parameters:,} parameters, {bytes_text(way.nbytes)}; "
    if way.training:
        text += (
            f"loss {way.training.loss:.4f} → {way.training.loss_after:.4f} on {way.training.labels} predicted "
            "positions, without dropout"
        )
    else:
        text += f"not trained: {way.not_trained}"
    return [text, _file(way.file)] if way.file else [text]


def _file(file: SavedFile) -> str:
    kind = "safetensors" if file.format == "safetensors" else ".bin"
    storages = len({held.storage for held in file.held})
    text = (
        f"The {kind} file has {bytes_text(file.nbytes)} and {file.tensors:,} names. It has "
        f"{', '.join(held.name for held in file.held) or 'none of these names'}"
    )
    if storages < len(file.held):
        text += f" on {plural(storages, 'storage')}"
    if file.lacking:
        text += f"; it does not have {', '.join(file.lacking)}"
    return f"{text}. {file.refused.capitalize()}." if file.refused else f"{text}."
