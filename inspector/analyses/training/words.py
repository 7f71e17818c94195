"""Sentences about training."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import DecayExample, TrainingPlan
from inspector.text import bytes_text, percent_text, plural, shape_text

WHY_WARM_UP = "Why does the learning rate warm up?"
WARM_UP = (
    "Adam divides each update by a running estimate of the gradient's size. After the first few batches "
    "that estimate is based on very little data, so single updates can be far too large; a small rate keeps them "
    "harmless until the estimate is good. With a warm-up, the very first update has rate 0, because transformers "
    "counts from 0. The last update is not yet at the end of its curve: linear and cosine would reach 0 one update "
    "later."
)
WHY_RULE = "Why are biases and norms left out, and what does the Trainer do?"
RULE = (
    "Weight decay pulls numbers toward 0. For a weight matrix that is a mild preference for simple functions. A bias "
    "or the scale of a norm sets a level or a size: these are few, can hardly overfit, and a scale pulled toward 0 "
    "would mute its layer. So they get none, as in BERT's own training.",
    "transformers' Trainer decides by two rules (get_decay_parameter_names), and so does this page: no decay inside a "
    "torch.nn.LayerNorm, and none where the name contains bias, layernorm or rmsnorm, or has a part that is norm or "
    "ends in _norm. The second rule catches RMSNorm, which every model family implements as its own class. It looks "
    "only at the name: T5's table of relative position biases is a matrix and gets no decay either. Embedding tables "
    "do decay.",
    "A tied parameter has several names but is one tensor. named_parameters() lists it once, under its first name, "
    "and that name decides. A module that is used several times in one pass (ALBERT's layer) likewise has one set of "
    "parameters and gets one update for all of its uses. A frozen parameter (requires_grad is False) is in no group.",
)
WHY_DECOUPLED = "How does AdamW decay weights?"
DECOUPLED = (
    "L2 regularization adds λ·w to the gradient. Adam then divides the sum, including the decay, by the gradient's "
    "running size: a weight with large gradients hardly decays, one with small gradients decays strongly. AdamW "
    "(Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization) takes the decay out of the gradient and "
    "shrinks the weight directly, before an update: w ← w − η·λ·w, then w ← w − η·m̂ / (√v̂ + ε), with the learning "
    "rate η of that update, the weight decay λ, and Adam's two moments m̂ and v̂.",
    "Every decayed weight shrinks by the same share. Because η is a factor, the schedule governs the decay as well: "
    "over all steps a weight is multiplied by the product of (1 − η·λ).",
)
MEMORY_NOTE = (
    "Only trained parameters have gradients and moments, and tied ones count once. Activations are extra and depend "
    "on the batch; a counter of 4 bytes per tensor is left out. The Trainer's bf16=True keeps float32 weights: the "
    "first row, plus half-precision copies while they are in use. The last row corresponds to "
    "model.to(torch.bfloat16): an update smaller than 1/512 of its weight is lost in rounding."
)
LACKING = (
    "The file of {name} lacks {count} of the {trained} tensors that would be trained, such as {first}: training would "
    "start them at random."
)
ON_ONE_MEMORY = (
    "{first} and {others} are separate parameters on the same memory: AdamW would update it once for each of them. "
    "Tie them, or copy one."
)
THAWED = (
    "{model} builds {names} frozen, but from_pretrained returns them with requires_grad True: set it to False before "
    "training."
)
ON_HUB = "There is no worked example: the numbers are still on the hub. Fetch the model whole, and ask again."
LATER = "The worked example follows when all weights are here."
NO_EXAMPLE = "There is no worked example: the file has no embedding matrix of finite numbers for this model class."


def warn_of_quantized(schemes: Sequence[str]) -> tuple[str, ...]:
    """Warn that no optimizer changes quantized weights.

    Args:
        schemes: The scheme of each quantized weight.
    """
    if not schemes:
        return ()
    return (
        f"{plural(len(schemes), 'weight')} {'is' if len(schemes) == 1 else 'are'} stored as "
        f"{' and '.join(dict.fromkeys(schemes))}: no optimizer changes quantized weights. The numbers here are for "
        "their dequantized values. To train with the quantized weights frozen, add adapters (QLoRA); to train the "
        "weights themselves, start from the float original.",
    )


def schedules(request: TrainingRequest) -> tuple[str, ...]:
    """The six schedules in a line each."""
    waves = plural(request.cycles, "half wave") if request.cycles > 1 else "one half wave, which is the same as cosine,"
    power = f"power {request.power:g}{', so nearly the same as linear,' if request.power == 1 else ''}"
    return (
        "constant: the highest rate throughout, without a warm-up.",
        "constant with warmup: from 0 in a straight line to the highest rate, then constant.",
        "linear: the same warm-up, then straight down to 0. The Trainer's default.",
        "cosine: the same warm-up, then down to 0 along half a cosine wave: slow at both ends.",
        f"cosine with restarts: down to 0 and back to the highest rate at once; {waves} here.",
        f"polynomial: down to 1e-7 (not to 0) as a power of the remaining share; {power} here.",
    )


def groups(plan: TrainingPlan) -> str:
    """How many parameters decay, and how many do not."""
    decayed, kept = plan.groups
    total = decayed.parameters + kept.parameters
    share = percent_text(decayed.parameters / total) if total else "nothing"
    text = (
        f"As {plan.model_class}, {decayed.parameters:,} parameters in {plural(len(decayed.names), 'tensor')} "
        f"({bytes_text(decayed.nbytes)} as stored) get weight decay {plan.weight_decay:g}, and {kept.parameters:,} in "
        f"{plural(len(kept.names), 'tensor')} ({bytes_text(kept.nbytes)}) get none: {share} of the trained parameters "
        "decay."
    )
    frozen = plan.frozen
    if frozen.names:
        text += (
            f" {frozen.parameters:,} in {plural(len(frozen.names), 'tensor')} are frozen, such as {frozen.names[0]}."
        )
    return text


def shared(plan: TrainingPlan) -> tuple[str, ...]:
    """Where each shared tensor is counted; empty where none is shared."""
    if not plan.shared:
        return ()
    saved = sum(each.parameters * len(each.other_names) for each in plan.shared)
    return (
        *(
            f"{each.name} ({each.group}, {each.parameters:,} parameters) is shared with "
            f"{', '.join(each.other_names)}: one tensor, counted once in one group."
            for each in plan.shared
        ),
        f"Untied, these would add {saved:,} parameters and {bytes_text(16 * saved)} of training memory.",
    )


def example(plan: TrainingPlan, shown: DecayExample) -> str:
    """The worked example of this checkpoint."""
    which = "has norm" if shown.rows == shown.shape[0] else f"is large: its first {shown.rows:,} rows have norm"
    text = f"{shown.name} ({shape_text(shown.shape)}) {which} {shown.norm:.4f}. "
    if shown.group != "decayed":
        return text + f"It is {shown.group}, so decay does not change it."
    return text + (
        f"At the highest rate, one update shrinks every number by η·λ = {plan.learning_rate:g} × "
        f"{plan.weight_decay:g} = {plan.learning_rate * plan.weight_decay:g} of itself: the first one goes from "
        f"{shown.first:.10g} to {shown.first_after:.10g}. Without gradients, {plural(plan.steps, 'update')} would "
        "leave the following norms:"
    )


def counts(plan: TrainingPlan) -> dict[str, str]:
    """What decays and what does not."""
    named = {"Decayed": plan.groups[0], "Not decayed": plan.groups[1], "Frozen": plan.frozen}
    return {
        label: f"{group.parameters:,} parameters in {plural(len(group.names), 'tensor')}"
        for label, group in named.items()
        if group.names or label != "Frozen"
    }


def memory_in_short(plan: TrainingPlan) -> dict[str, str]:
    """What training takes in memory, by precision, without activations."""
    totals = zip(plan.memory["setup"], plan.memory["total"], strict=True)
    return {f"Memory in {setup}": bytes_text(total) for setup, total in totals}


def memory(plan: TrainingPlan) -> str:
    """What training takes in memory."""
    full, _, half = plan.memory["total"]
    return (
        "AdamW keeps two moments for each trained number, the running means of the gradient and of its square. With "
        f"the gradient, this makes 16 bytes for a 4-byte number: {bytes_text(full)} to train a model that takes "
        f"{bytes_text(plan.memory['weights'].iloc[0])} to run in float32. Half precision with float32 master weights "
        f"takes no less; only half precision alone does, {bytes_text(half)}."
    )
