"""Sentences about a merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from inspector.analyses.merge_proof.result import NOTHING, PROVEN, MergeProof
from inspector.request import number_text
from inspector.text import plural, shape_text, some

NAMED = 3  # names in a sentence
NOT_A_MODEL = "{name} cannot be the merged model. {said}"
NOT_FINITE = "The adapter's numbers, or the model's, contain NaN or infinity."
DEAD = "The adapter adds nothing here: one of its two matrices is all zero."
DEAD_CHANGED = "The adapter adds nothing here, but the weight is not the base's."
HIDDEN = "The change is smaller than half a step of the dtype: merged or not, the numbers are the base's."
TIMES = "Replays when the adapter is merged {times} times, one after the other."
SHARE = "The change was added {share:.4g} times."
UNEXPLAINED = "Neither the base nor the adapter explains the difference: another base, or trained further."
NOT_IN_BASE = "The base has no tensor of this name."
QUANTIZED = "The merged model stores it as codes, or in another form than the base."
REPLACED = "The adapter brings it whole, and the merged model has it."
NOT_REPLACED = "The adapter brings it whole, but the merged model has the base's."
NEITHER = "It is neither the adapter's nor the base's."
RESIDUAL = (
    "{adapter} was initialized from the base's own weights (PiSSA, OLoRA, CorDA, LoftQ or similar): unless it was "
    "converted to LoRA when it was saved, it belongs to the residual model that was saved with it, not to the base."
)
TIED_AGAIN = (
    "{merged} stores {head}, but its config.json ties the head to the embeddings: transformers compares the two when "
    "it loads them. Check which one it keeps."
)
INITIALIZED = ("pissa", "olora", "corda", "loftq", "eva", "orthogonal", "lora_ga")
HEADLINES = {
    "merged": "{adapter} is merged into {merged}: {targets} replayed bit by bit{rows}.{procedure}",
    "within rounding": "{adapter} is merged into {merged}, within rounding: no known procedure replays every bit.",
    "partly merged": "{adapter} is only partly merged into {merged}: {parts}.",
    "not merged": "{adapter} is not merged into {merged}: {same}.",
    "merged more than once": "{adapter} was merged more than once into {merged}: its change is there {times} times.",
    "other alpha": "{adapter} was merged into {merged} with another scale: its change is there {times} times.",
    "other base": "{merged} is not {base} with {adapter}: another base, or trained further ({parts}).",
    "not checkable": "Whether {adapter} is merged into {merged} cannot be judged: {parts}.",
}
PROCEDURE = {
    "P1": "the sum is rounded once (PEFT's default)",
    "P2": "the change is rounded, then the sum (PEFT's safe_merge)",
    "P3": "the adapter's numbers had 16 bits",
    "P4": "the sum was made in another 16-bit dtype than the base's",
    "P5": "the base's weights were dequantized from 4 bits first",
}
MEANING = {
    "merged": "replayed bit by bit",
    "within rounding": "the change is there once, up to rounding",
    "not merged": "still the base's numbers",
    "merged more than once": "the change was added several times",
    "other alpha": "the change was added with another scale",
    "other base": "another base, or trained further",
    "not checkable": "no evidence either way",
    NOTHING: "the adapter adds nothing",
    "unchanged": "not targeted, and as in the base",
    "changed": "not targeted, and not the base's",
    "added": "not in the base",
    "dropped": "missing from the merged model",
}
WHY = (
    (
        "How is this proven?",
        "The change is computed in float64 together with the largest error that a float32 product may have. A weight "
        "counts as merged only if every number that was compared lies where one rounding procedure can put it.",
    ),
    (
        "What does the coefficient say?",
        "The difference between the merged weight and the base, projected on the adapter's change: 0 if it was left "
        "out, 1 if it was added once, 2 if twice, 0.5 with half the alpha.",
    ),
    (
        "Why does a merged model answer like its base?",
        "In 16 bits, a change that is much smaller than the weights is partly lost when the sum is rounded, even if "
        "the merge itself is correct. Merge in float32 and compare, or raise the scale and evaluate again.",
    ),
)


def judged(proof: MergeProof) -> Literal["ok", "note", "problem"]:
    """How good the news is."""
    if proof.verdict in PROVEN:
        return "ok"
    return "note" if proof.verdict == "not checkable" else "problem"


def headline(proof: MergeProof) -> str:
    """The verdict in one sentence."""
    times = "?" if proof.coefficient is None else number_text(round(proof.coefficient, 3))
    return HEADLINES[proof.verdict].format(
        adapter=proof.adapter_name,
        base=proof.name,
        merged=proof.merged_name,
        targets=plural(_counts(proof, targeted=True).total(), "tensor"),
        rows="" if proof.rows == "all" else f" in {proof.rows} rows of each",
        procedure=f" {_sentence(PROCEDURE[proof.procedure])}" if proof.procedure else "",
        parts=parts(proof),
        same="every number is the base's" if proof.identical else "its targets are the base's, bit by bit",
        times=times,
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def parts(proof: MergeProof) -> str:
    """How many targets have each verdict, and what is missing or changed besides."""
    said = [f"{count:,} {verdict}" for verdict, count in _counts(proof, targeted=True).most_common()]
    others = _counts(proof, targeted=False)
    said += [f"{others[verdict]:,} other {verdict}" for verdict in ("changed", "dropped") if others[verdict]]
    return ", ".join(said) if said else "the adapter names no weight"


def _counts(proof: MergeProof, *, targeted: bool) -> Counter[str]:
    """Verdict -> tensors that the adapter changes, or the others."""
    rows = proof.tensors.to_dict("records")
    return Counter(str(row["verdict"]) for row in rows if bool(row["targeted"]) == targeted)


def facts(proof: MergeProof) -> dict[str, str]:
    """What was compared, and what came out."""
    targeted = _counts(proof, targeted=True).total()
    found = {
        "Base": proof.name,
        "Adapter": proof.adapter_name,
        "Merged": proof.merged_name,
        "Tensors": f"{targeted:,} that the adapter changes, {len(proof.tensors) - targeted:,} others",
        "Rows of each matrix": "all" if proof.rows == "all" else f"{proof.rows} from all over it",
    }
    if proof.procedure:
        found["Procedure"] = f"{proof.procedure}: {PROCEDURE[proof.procedure]}"
    if proof.coefficient is not None:
        found["Coefficient"] = f"{proof.coefficient:.4f}"
    if proof.dropped:
        found["Missing from the merged model"] = some(proof.dropped, NAMED)
    return found


def unreadable(adapter: str, names: Sequence[str]) -> str:
    """What of an adapter is not replayed."""
    return f"{adapter} has {plural(len(names), 'tensor')} that cannot be replayed: {some(names, NAMED)}."


def needs_residual(initialized: object) -> bool:
    """Whether an adapter of this initialization may belong to another base than it names."""
    return isinstance(initialized, str) and initialized.lower().startswith(INITIALIZED)


def reshaped(before: Sequence[int], after: Sequence[int]) -> str:
    """Two shapes that differ."""
    return f"The base's shape is {shape_text(before)}, the merged model's {shape_text(after)}."


def title(proof: MergeProof) -> str:
    """Of the picture."""
    return f"{proof.merged_name}: {proof.name} with {proof.adapter_name}?"


def subtitle(proof: MergeProof) -> str:
    """Of the picture: the verdict, and how many tensors it rests on."""
    return f"{proof.verdict}: {parts(proof)}"


def signs(known: Mapping[str, str]) -> tuple[str, ...]:
    """What each sign of the picture means."""
    return tuple(f"{sign} {verdict}: {MEANING[verdict]}." for verdict, sign in known.items())
