"""Sentences about what the lens shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

from inspector.analyses.lens.figures_compare import Apart, same_top
from inspector.analyses.lens.frames import MOST_ACROSS, typed, typed_marks
from inspector.analyses.lens.result import Lens, LensRows
from inspector.text import percent_text, plural

WHY_COSINE = "Is the best token the one with the highest cosine?"
WHY_TYING = "Why does tying make sense?"
WHY_STEPS = "Why do the steps disagree?"
WHY = (
    "The dot product h·e = |h||e| cos ranks tokens as the cosine does only if all rows e are equally long, but "
    "frequent and rare tokens differ in norm. A masked-LM head does not compare the hidden state itself with the "
    "embeddings: a dense layer, an activation and a LayerNorm come first, and each token has a bias. On inner layers "
    "the head is applied early (the logit lens, nostalgebraist 2020): it was trained only for the last layer, so "
    "early answers are an interpretation, not a prediction."
)
TYING = (
    "With tied weights the output layer is the embedding matrix: a token's logit is the dot product of its embedding "
    "with the hidden state after the head's other steps. Training then pulls both uses of a row the same way and "
    "moves the last hidden states toward the embeddings of their tokens."
)

MEANS = (
    "Means over all positions of this text for each head step: how often its top token is the model's final one, and "
    "how close it is to the true logits of the same layer."
)


def headline(lens: Lens, text: str) -> str:
    """What the last layer says at the position that a reader looks at first, and since which layer.

    Args:
        lens: The answer.
        text: What was read.
    """
    position, rung = _telling(lens.tokens, text), lens.rungs[-1]
    cells = lens.cells
    here = (cells["rung"] == rung) & (cells["position"] == position) & (cells["rank"] == 0)
    tops = sorted(cells.loc[here].to_dict("records"), key=lambda row: -row["layer"])
    if not tops:
        return agreement(lens)
    last = tops[0]
    same = list(takewhile(lambda row: row["token_id"] == last["token_id"], tops))
    share = last["probability"]
    sure = f" ({percent_text(share)})" if math.isfinite(share) else ""
    first = same[-1]["layer"]
    begun = f"layer {lens.layers[first]}" if first else "the embeddings"
    since = f", from {begun} on" if len(same) > 1 else ", and at no layer before"
    return f"At “{lens.tokens[position]}” the last layer says “{last['token']}”{sure} by {rung}{since}."


def _telling(tokens: Sequence[str], text: str) -> int:
    """The position of a special token that was typed, such as a mask; else that of the last token of the text."""
    return next(iter([*typed_marks(tokens, text), *typed(tokens, text)[::-1]]), len(tokens) - 1)


def so_far(rows: LensRows, rung: str, *, most: int = MOST_ACROSS) -> str:
    """Which layers are there while the others are computed; `most` as in `top_tokens`."""
    known = sorted(set(rows.cells["layer"].tolist()))
    layers = f"Layer {known[0]}" if len(known) == 1 else f"Layers {known[0]}–{known[-1]}"
    last = f", the last {most} positions" if len(rows.tokens) > most else ""
    return (
        f"{layers} of {len(rows.layers) - 1} so far{last}, by {rung}. The other head steps follow with the full result."
    )


def steps(lens: Lens) -> tuple[str, ...]:
    """What each step of the head computes, first to last."""
    return tuple(f"{name}: {lens.rung_notes[name]}" for name in lens.rungs)


def agreement(lens: Lens) -> str:
    """How the last step compares with the model's own logits."""
    if lens.max_abs_error is None or lens.tolerance is None:
        return (
            f"The steps end with {lens.rungs[-1]}: the file has no language-model head, so there are no logits. The "
            "tokens shown are those with the nearest embeddings."
        )
    if lens.taken_from_model:
        return "The logits are the model's own output; no other step leads to them."
    return (
        "At the last layer, the last step gives the model's own output, so no part of the head is missing: the "
        f"largest difference from its logits is {lens.max_abs_error:.2g}, within the {lens.tolerance:.2g} that "
        f"rounding in {lens.dtype} explains."
    )


def no_step(title: str, rung: str, lens: Lens) -> str:
    """Why another heat map is not shown."""
    return f"{title} has no step {rung}: its steps are {', '.join(lens.rungs)}."


def another_color(title: str, color: str, shown: str) -> str:
    """Why another heat map is colored by something else."""
    return f"{title} cannot be colored by {color}, so it shows {shown}."


def best_by_cosine(lens: Lens) -> str:
    """Whether the best token is the one with the highest cosine."""
    last = len(lens.layers) - 1
    if not {"dot", "cosine"} <= set(lens.rungs):
        return " ".join(lens.left_out)
    same, every = same_top(lens.cells, last, "cosine", "dot")
    answer = (
        f"Not always. At the last layer, cosine and dot product name the same token at {same} of "
        f"{plural(every, 'position')}; elsewhere the norms of the embeddings decide."
        if same < every
        else f"For this text, yes: at the last layer, cosine and dot product name the same token at all "
        f"{plural(every, 'position')}."
    )
    if "logits" not in lens.rungs:
        return answer
    by_cosine, by_dot = (same_top(lens.cells, last, step, "logits")[0] for step in ("cosine", "dot"))
    return (
        f"{answer} The model's own top token has the highest cosine at {by_cosine} of {every} and the highest dot "
        f"product at {by_dot} of {every}. The rest of the difference comes from the head's own layers."
    )


def apart(found: Apart, tokens: tuple[Sequence[str], Sequence[str]], layers: Sequence[str]) -> str:
    """Where two heat maps first differ."""
    if not found.positions:
        return "The two cannot be compared cell by cell: their depths or their first tokens differ."
    reach = "" if len(tokens[0]) == len(tokens[1]) else f" in the {plural(found.positions, 'token')} both begin with"
    if not found.cells:
        return f"All {found.compared:,} cells have the same top token{reach}."
    layer, position = found.cells[0]
    text = (
        f"{len(found.cells):,} of {found.compared:,} cells have a different top token{reach} (marked ≠). The first is "
        f"at layer {layers[layer]}, position {position} ({tokens[0][position]})."
    )
    if found.changed:
        at = found.changed[0]
        text += f" The texts themselves first differ at position {at}: {tokens[0][at]} and {tokens[1][at]}."
    return text
