"""Tables and words of the Training page."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import DecayExample, TrainingPlan
from inspector.text import bytes_text, literal, percent_text, plural, shape_text

WARM_UP = """
**Why warm up?** Adam divides each update by a running estimate of the gradient's size. After the
first few batches that estimate rests on almost nothing, so single updates can be far too large; a
small rate keeps them harmless until the estimate is good. With a warm-up, the very first update has
rate **0**: transformers counts from 0. And the last one is not yet at the end of its curve: linear
and cosine would be 0 one update later.
"""
RULE = """
Weight decay pulls numbers towards 0. For a **weight matrix** that is a mild preference for simple
functions. A **bias** or the scale of a **norm** sets a level or a size: these are few, can hardly
overfit, and a scale pulled towards 0 would mute its layer. So they get none, as in BERT's own
training.

transformers' `Trainer` decides by two rules (`get_decay_parameter_names`), and so does this page:
no decay **inside a `torch.nn.LayerNorm`**, and none where the **name** says `bias`, `layernorm`,
`rmsnorm`, or has a part that is `norm` or ends in `_norm`. The second rule is what catches RMSNorm,
which every family writes as a class of its own. It goes by the name alone: T5's table of relative
position *biases* is a matrix and gets no decay either. Embedding tables do decay.

A **tied** parameter has several names and is one tensor. `named_parameters()` gives it once, under
its first name, and that name decides. A module that is used several times in one pass (ALBERT's
layer) likewise has one set of parameters, and gets one update for all of its uses. A **frozen**
parameter (`requires_grad` is False) is in no group.
"""
DECOUPLED = """
The classic way, L2 regularisation, adds λ·w to the **gradient**. Adam then divides by the
gradient's running size, the decay with it: a weight with large gradients hardly decays, one with
small gradients decays strongly. AdamW (Loshchilov and Hutter, *Decoupled Weight Decay
Regularization*, 2019) leaves the gradient alone and shrinks the weight directly, before an update:

`w ← w − η·λ·w`, then `w ← w − η·m̂ / (√v̂ + ε)`

with the learning rate η of that update, the weight decay λ, and Adam's two moments m̂ and v̂. Every
decayed weight shrinks by the same share. Because η is a factor, the schedule governs the decay as
well: over all steps a weight is multiplied by the product of (1 − η·λ), as in the table.
"""
MEMORY_NOTE = (
    "Gradients and moments are for trained parameters alone, tied ones once. Activations come on "
    "top and depend on the batch; a counter of 4 bytes a tensor is left out. The Trainer's "
    "`bf16=True` keeps float32 weights: the first row, and half-precision copies while they are "
    "used. The last row is what `model.to(torch.bfloat16)` gives: an update smaller than 1/512 of "
    "its weight is lost in rounding."
)


def subtitle(plan: TrainingPlan, choice: TrainingRequest) -> str:
    """What the curves stand on."""
    return (
        f"{plural(plan.steps, 'update')}, highest rate {plan.learning_rate:g}, "
        f"{plural(choice.cycles, 'cosine cycle')}, power {choice.power:g}"
    )


def schedule_list(choice: TrainingRequest) -> str:
    """The six schedules in a line each."""
    cycles = plural(choice.cycles, "half wave") if choice.cycles > 1 else "one half wave"
    if choice.cycles == 1:
        cycles += ", so it is the cosine schedule itself,"
    power = f"power {choice.power:g}"
    if choice.power == 1:
        power += ", so it is nearly the linear one,"
    lines = [
        "- **constant**: the highest rate throughout, no warm-up at all.",
        "- **constant with warmup**: from 0 in a straight line to the highest rate, which then stays.",
        "- **linear**: the same warm-up, then straight down to 0. The Trainer's default.",
        "- **cosine**: the same warm-up, then down to 0 along half a cosine wave: slow at both ends.",
        f"- **cosine with restarts**: down to 0 and back to the highest rate at once; {cycles} here.",
        f"- **polynomial**: down to 1e-7 (not to 0) as a power of what is left; {power} here.",
    ]
    return "\n".join(lines)


def readable(rates: pd.DataFrame) -> pd.DataFrame:
    """Learning rates as text of six digits: tables would round small ones to nothing."""
    names = [name for name in rates.columns if name != "update"]
    shown = {name.replace("_", " "): rates[name].map("{:.6g}".format) for name in names}
    return pd.DataFrame({"update": rates["update"], **shown})


def groups_said(plan: TrainingPlan) -> str:
    """The groups in a sentence."""
    decayed, kept = plan.groups
    total = decayed.parameters + kept.parameters
    share = percent_text(decayed.parameters / total) if total else "nothing"
    frozen = plan.frozen
    said = (
        f"As {literal(plan.model_class)}, **{decayed.parameters:,}** parameters in "
        f"{plural(len(decayed.names), 'tensor')} ({bytes_text(decayed.nbytes)} as stored) get "
        f"weight decay {plan.weight_decay:g}, and **{kept.parameters:,}** in "
        f"{plural(len(kept.names), 'tensor')} ({bytes_text(kept.nbytes)}) get none: {share} of "
        "what is trained decays."
    )
    if frozen.names:
        said += (
            f" {frozen.parameters:,} in {plural(len(frozen.names), 'tensor')} are frozen, such as "
            f"{literal(frozen.names[0])}: they are in no group."
        )
    return said


def shared_said(plan: TrainingPlan) -> str:
    """Where each shared tensor is counted."""
    lines = ["Shared tensors are in one group once, under their first name:", ""]
    lines += [
        f"- **{literal(each.name)}** ({each.group}, {each.parameters:,} parameters), also known as "
        f"{', '.join(map(literal, each.other_names))}"
        for each in plan.shared
    ]
    saved = sum(each.parameters * len(each.other_names) for each in plan.shared)
    more = bytes_text(16 * saved)
    lines += ["", f"Untied, they would be {saved:,} parameters and {more} of training memory more."]
    return "\n".join(lines)


def found(frame: pd.DataFrame, text: str) -> pd.DataFrame:
    """Rows whose names, module, group or reason hold a text."""
    if not text:
        return frame
    joined = frame[["name", "other_names", "module", "group", "reason"]].agg(" ".join, axis=1)
    # "decayed" is a part of "not decayed": a group's whole name means that group.
    mask = frame["group"] == text if text in set(frame["group"]) else joined.str.contains(text, case=False, regex=False)
    return pd.DataFrame(frame[mask])


def example_said(plan: TrainingPlan, example: DecayExample) -> str:
    """The worked example of this checkpoint."""
    name, shape = literal(example.name), shape_text(example.shape)
    which = "has norm" if example.rows == example.shape[0] else (f"is large: its first {example.rows:,} rows have norm")
    said = f"{name} ({shape}) {which} **{example.norm:.4f}**. "
    if example.group != "decayed":
        return said + f"It is {example.group}, so decay leaves it as it is."
    product = plan.learning_rate * plan.weight_decay
    return said + (
        f"At the highest rate, one update takes η·λ = {plan.learning_rate:g} × "
        f"{plan.weight_decay:g} = **{product:g}** of every number away: its first one goes from "
        f"{example.first:.10g} to {example.first_after:.10g}. Over {plural(plan.steps, 'update')}, "
        "were there no gradients:"
    )


def after_frame(example: DecayExample) -> pd.DataFrame:
    """What is left of the norm, by schedule."""
    after = example.after
    return pd.DataFrame(
        {
            "schedule": after["schedule"].str.replace("_", " "),
            "every number times": after["factor"].map("{:.8f}".format),
            "norm afterwards": after["norm"].map("{:.4f}".format),
            "shrinks by": (100 * (1 - after["factor"])).map("{:.4g} %".format),
        }
    )


def memory_said(plan: TrainingPlan, full: int, alone: int) -> str:
    """The memory in a sentence."""
    weights = int(plan.memory["weights"].iloc[0])
    return (
        f"AdamW keeps **two moments** for each trained number, the running means of the gradient "
        f"and of its square. With the gradient that makes 16 bytes for a number of 4: "
        f"**{bytes_text(full)}** to train what is {bytes_text(weights)} to run in float32. Half "
        f"precision with float32 master weights takes no less; only half precision alone does, "
        f"{bytes_text(alone)}."
    )


def memory_frame(memory: pd.DataFrame) -> pd.DataFrame:
    """Bytes in human units."""
    names = [name for name in memory.columns if name != "setup"]
    shown = {name.replace("_", " "): memory[name].map(bytes_text) for name in names}
    return pd.DataFrame({"precision": memory["setup"], **shown})
