"""Sentences about special tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.analyses.special_tokens.result import SpecialTokens
from inspector.text import plural

NO_END = "no file names an id that ends a text"
PLAIN_END = "ends an answer with no special token"
WHY_STOPS = "Why does a model never stop?"
WHY_STOPS_ANSWER = (
    "generate() ends a text only at an id of eos_token_id, which it reads in generation_config.json, or in config.json "
    "where that file is missing. A chat model is trained to end each answer with the token that its chat template puts "
    "there. Where that token is not among those ids, the model says it and goes on: into the next turn, until the "
    "longest length."
)
WHY_PADDING = "What if the padding token is the one that ends a text?"
WHY_PADDING_ANSWER = (
    "Training scripts set the labels of padding to -100, so that they do not count. If they find padding by its id, "
    "the real end of each text is left out of the loss as well, and the model does not learn to end. Find padding by "
    "the attention mask."
)


def headline(result: SpecialTokens) -> str:
    """Whether generated text ends."""
    return f"{plural(len(result.tokens), 'special token')}. {_of_stopping(result)}"


def _of_stopping(result: SpecialTokens) -> str:
    ends = f"an answer ends with {result.turn_end}"
    if result.stops is not None:
        said = f"{result.eos_from} has generate() stop at {_stops_at(result)}" if result.eos_ids else NO_END
        found = "It stops" if result.stops else "It may not stop"
        return f"{found}: {ends}, {'and' if result.stops else 'but'} {said}."
    if result.template:
        why = f"cannot be rendered: {result.template_problem}" if result.template_problem else PLAIN_END
        return f"Whether it stops is not known, since {result.template} {why}."
    if result.eos_ids:
        return f"generate() stops at {_stops_at(result)}; no chat template says how an answer ends."
    return "No file says where a generated text would end."


def _stops_at(result: SpecialTokens) -> str:
    return " and ".join(f"{result.names[each]} (id {each})" for each in result.eos_ids)


def equals(at_mean: bool | None, equal_to: Sequence[int], names: Mapping[int, str]) -> str:
    """What a row is the same as; "" where it is like no other."""
    mean = ["the mean of all rows"] if at_mean else []
    return ", ".join([*mean, *(names.get(each, f"id {each}") for each in equal_to)])


def facts(result: SpecialTokens) -> dict[str, str]:
    """Where a text ends, in a few values."""
    return {
        "generate() stops at": f"{_stops_at(result)}, {result.eos_from}" if result.eos_ids else "no token",
        "Chat template": result.template or "none",
        "Ends an answer": result.turn_end or "not known",
    }


def no_row(token: str, token_id: int, rows: int) -> str:
    """A token without an embedding."""
    return f"{token} has id {token_id}, but the embedding matrix has {rows:,} rows: the model cannot read it."
