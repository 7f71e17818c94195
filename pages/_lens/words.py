"""The words of the lens page, with the numbers of the checkpoint at hand."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from inspector.analyses.ladder.result import Climb
from inspector.analyses.lens.figures_compare import Apart, same_top
from inspector.analyses.lens.result import Lens
from inspector.text import literal, plural

WHY = (
    "The dot product h·e = |h||e| cos ranks as the cosine does only if all rows e are equally "
    "long: frequent and rare tokens differ in norm. A masked-LM head does not compare the hidden "
    "state itself with the embeddings: it goes through a dense layer, an activation and a "
    "LayerNorm first, and a bias for each token is added. On inner layers the head is applied "
    "early (the *logit lens*, nostalgebraist 2020): it was trained for the last layer alone, so "
    "early answers are a reading, not a prediction."
)
TYING = (
    "With tied weights the output layer **is** the embedding matrix: the logit of a token is the "
    "dot product of its embedding with what the head makes of the hidden state. Tying makes sense "
    "because training then pulls both uses of a row the same way: the last states are moved to "
    "where their tokens' embeddings are."
)
GEOMETRY = (
    "Each point is a token's input embedding e: to the right, the better its direction fits the "
    "hidden state h; further up, the longer it is. On a dotted line h·e = |h||e| cos is the same, "
    "so a longer row needs less cosine for the same dot product. Cosine takes the rightmost "
    "token, the dot product the one beyond the highest line; where these are two tokens, the norm "
    "has decided."
)
TRANSFORMED = (
    "The logits' winner may lie anywhere here: between the dot product and the logits the head still changes h."
)


def mapping(lens: Lens) -> str:
    """Answer: how does the head map a hidden state back to a token?"""
    rungs = "\n".join(
        f"{number}. **{literal(rung)}**: {literal(lens.rung_notes[rung])}"
        for number, rung in enumerate(lens.rungs, start=1)
    )
    return f"{rungs}\n\n{_end(lens)}"


def _end(lens: Lens) -> str:
    if lens.max_abs_error is None:
        return (
            f"The ladder of this checkpoint stops at **{literal(lens.rungs[-1])}**: its file "
            "holds no language-model head, so nothing says which token a state stands for. What "
            "is shown is which embeddings are near."
        )
    if lens.taken_from_model:
        return "The logits are the model's own output; no other rung leads to them."
    equal = "are equal" if lens.max_abs_error == 0 else f"differ by {lens.max_abs_error:.2g} at most"
    return (
        f"At the last layer the last rung and the model's own logits {equal}: no part of the head "
        "is missing from the ladder."
    )


def best_by_cosine(lens: Lens) -> str:
    """Answer: is the best token the one with the highest cosine?"""
    last = len(lens.layers) - 1
    if not {"dot", "cosine"} <= set(lens.rungs):
        return "It cannot be asked here. " + literal(" ".join(lens.left_out))
    same, every = same_top(lens.cells, last, "cosine", "dot")
    lines = [
        f"Not always. At the last layer for this text, cosine and dot product name the same token "
        f"at **{same} of {plural(every, 'position')}**; elsewhere the norms of the embeddings "
        "decide."
        if same < every
        else f"For this text it is, as far as the dot product goes: at the last layer both name "
        f"the same token at **all {plural(every, 'position')}**."
    ]
    if "logits" in lens.rungs:
        by_cosine, _ = same_top(lens.cells, last, "cosine", "logits")
        by_dot, _ = same_top(lens.cells, last, "dot", "logits")
        lines.append(
            f"The model's own answer is the token of highest cosine at **{by_cosine} of {every}**, "
            f"and that of the highest dot product at **{by_dot} of {every}**: what the head does "
            "before it compares makes the rest of the difference."
        )
    return " ".join(lines)


def moves(climb: Climb, token_id: int) -> str:
    """Say what each step did to a token: "+412 ranks from the norm of its embedding, …"."""
    way = pd.DataFrame(climb.ranks[climb.ranks["token_id"] == token_id]).to_dict("records")
    first, last = way[0], way[-1]
    steps = [
        f"{_signed(row['change'])} from {literal(row['step'])}" for row in way[1:] if row["change"] or len(way) <= 3
    ]
    return (
        f"**{literal(first['token'])}**: rank {first['rank'] + 1:,} by {literal(first['rung'])}, "
        f"{last['rank'] + 1:,} by {literal(last['rung'])}"
        + (f": {', '.join(steps)}." if steps else ": no step moved it.")
    )


def _signed(change: int) -> str:
    sign = "+" if change > 0 else "−" if change < 0 else ""
    return f"{sign}{plural(abs(change), 'rank')}"


def told(climb: Climb, *, most: int) -> list[int]:
    """Ids of the tokens that are told of: the best by the last rung, and the pinned ones."""
    ranks = climb.ranks
    last = pd.DataFrame(ranks[ranks["rung"] == climb.rungs[-1]]).sort_values("rank")
    geometry = climb.geometry
    pinned = geometry.loc[geometry["pinned"], "token_id"].tolist()
    return list(dict.fromkeys([*last["token_id"].tolist()[:most], *pinned]))


def apart(found: Apart, tokens: tuple[Sequence[str], Sequence[str]], layers: Sequence[str]) -> str:
    """Say where two heat maps first differ."""
    if not found.positions:
        return "The two cannot be compared cell by cell: their depths or their first tokens differ."
    whole = len(tokens[0]) == len(tokens[1])
    reach = "" if whole else f" in the {plural(found.positions, 'token')} with which both begin"
    if not found.cells:
        return f"Every one of the {found.compared:,} cells names the same top token{reach}."
    layer, position = found.cells[0]
    changed = ""
    if found.changed:
        at = found.changed[0]
        changed = (
            f" The texts themselves first differ at position {at}: {literal(tokens[0][at])} and "
            f"{literal(tokens[1][at])}."
        )
    return (
        f"{len(found.cells):,} of {found.compared:,} cells name another top token{reach} (marked "
        f"≠). Lowest: **layer {literal(layers[layer])}, position {position}** "
        f"({literal(tokens[0][position])}).{changed}"
    )
