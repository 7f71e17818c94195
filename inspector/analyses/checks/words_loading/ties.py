"""What is said of ties: what decides on them for each loader, what the files hold, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.analyses.checks.result import HeldHead, TieOutcome

TITLE = "Whether the output matrix is the embeddings, by loader"
MEANINGS = {
    "reads": "the level of config.json whose tie_word_embeddings the loader goes by",
    "ties": "what that level says, or where it says nothing, the default of its class",
    "in the files": "the output matrix, compared with the embeddings; embeddings alone: the files hold none",
    "outcome": (
        "shared: one matrix; separate: two; head random: the output matrix is filled with numbers that nobody trained; "
        "trained head thrown away: the files hold one, and the loader takes the embeddings instead; refused: it stops "
        "with an error; not read: the numbers were not compared; not known: the rules for this class are not known"
    ),
}
THROWN_AWAY, RANDOM = "trained head thrown away", "head random"
UNTIE = (
    "If the output matrix was trained apart from the embeddings, set tie_word_embeddings to false at every level of "
    "config.json."
)
TIE = (
    "If the output matrix is meant to be the embeddings, set tie_word_embeddings to true at every level of "
    "config.json. Otherwise look for the file that holds it."
)
DEFAULT = "the default of its config class"
NO_TYPE = "{} has no rule here for model type {}."
NO_CLASS = "Of {}, which was read and not run, no rule is known for {}."
NO_GGUF = "Of {}, which was read and not run, no rule is known for GGUF files."
KINDS: Mapping[str, str] = {
    "always": "The class always ties",
    "never": "The class never ties",
    "no place": "The class has no output matrix of its own",
}
HELD: Mapping[HeldHead, str] = {
    "embeddings alone": "the files hold {embedding} and no {head}",
    "equal": "the files hold {head}, which is equal to {embedding}",
    "different": "the files hold {head}, which differs from {embedding}",
    "head alone": "the files hold {head} and no {embedding}",
    "neither": "the files hold neither {head} nor {embedding}",
    "not read": "the files hold {head} and {embedding}, whose numbers were not compared",
}
OUTCOME: Mapping[TieOutcome, str] = {
    "shared": "both are one matrix",
    "separate": "the output matrix is one of its own",
    "head random": "the output matrix is filled with random numbers",
    "trained head thrown away": "the embeddings take the place of the output matrix, and its own numbers are dropped",
    "refused": "loading stops with an error",
    "not read": "it depends on whether they are equal",
}


def flag(level: str, said: bool | None, taken: bool, default: str) -> str:
    """What decides for a loader, in a clause.

    Args:
        level: Of config.json that it reads; "" is the top.
        said: By that level.
        taken: As the loader has it.
        default: What gives the default.
    """
    where = f" in {level}" if level else ""
    if said is None:
        return (
            f"config.json does not set tie_word_embeddings{where}, and {default} {'ties' if taken else 'does not tie'}"
        )
    stated = f"config.json sets tie_word_embeddings to {str(said).lower()}{where}"
    return stated if said is taken else f"{stated}, and {default} {'ties' if taken else 'does not tie'} all the same"


def reason(why: str, held: HeldHead, outcome: TieOutcome, *, head: str, embedding: str, source: str) -> str:
    """Why a loader does what it does, in one sentence, and where that is written."""
    there = HELD[held].format(head=head, embedding=embedding)
    return f"{why}; {there}: {OUTCOME[outcome]} ({source})."
