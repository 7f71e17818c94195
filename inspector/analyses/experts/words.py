"""Sentences about the experts of a mixture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from inspector.analyses.experts.result import ExpertPlace, MixtureExperts
from inspector.text import plural, some

SAME = 2  # experts, from which on some can hold the same numbers
NAMED = 3  # experts or modules in a sentence
NOT_ROUTING = "This is not routing: how often an expert is used needs a text (--text)."
WHY = (
    (
        "Do these norms say which experts are used?",
        "No. A router scores each token against its row for each expert, and the token goes to the experts with the "
        "highest scores. A long row or a large expert is not chosen more often for it. How often each one is used "
        "depends on the text, and is counted for one that you give.",
    ),
    (
        "What does an expert of zeros, or a duplicate, mean?",
        "A token that is routed to an expert of zeros gets nothing from it. Two experts with the same numbers do the "
        "same work. Right after a dense model is copied into each expert (upcycling), all of them are the same; "
        "training then makes them differ.",
    ),
    (
        "What is the selection bias?",
        "Some classes add it to the scores to choose experts, and leave it out when they weigh what these answer. It "
        "balances how often experts are used.",
    ),
)
NOT_PASSED = "the class does not pass it to the experts"
NOT_RUN = "no token of the text runs through there"
OTHER_TOKENS = "other tokens than the text's run through there, as through a decoder beside an encoder"
SUBTITLE = "norm of all numbers of an expert; ∅ only zeros, = same as another, ! not finite, ? not in the files"
USES_SUBTITLE = "tokens of the text that chose each expert"
MEANINGS = {
    "norm": "Of all numbers of the expert as one vector",
    "router_norm": "Of the expert's row of the router",
    "router_bias": "Added to the expert's score",
    "selection_bias": "Added to the expert's score to choose experts, not to weigh them",
    "used": "Tokens of the text that chose the expert",
}


def headline(found: MixtureExperts) -> str:
    """The mixture in a few sentences."""
    return " ".join([f"{_size(found)}.", *_faults(found), _used(found)])


def judged(found: MixtureExperts) -> Literal["ok", "warning", "problem"] | None:
    """How good the news is; None where nothing was measured."""
    if _places(found, "finite", False):
        return "problem"
    if _places(found, "zero", True) or found.duplicates:
        return "warning"
    return "ok" if bool(found.experts["norm"].notna().any()) else None


def _size(found: MixtureExperts) -> str:
    counts: list[int] = sorted(found.experts.groupby("module", sort=False).size().tolist())
    each = f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"
    beside = f", and {plural(len(found.shared), 'shared module')} that every token runs through"
    blocks = f"{plural(len(counts), 'router')} of {found.model_class} choose{'s' * (len(counts) == 1)} among"
    return f"{blocks} {each} experts each{beside if len(found.shared) else ''}"


def _faults(found: MixtureExperts) -> Iterator[str]:
    broken, zero = _places(found, "finite", False), _places(found, "zero", True)
    if broken:
        yield f"{plural(len(broken), 'expert contains', 'experts contain')} NaN or infinity: {_some(broken)}."
    if zero:
        yield f"{plural(len(zero), 'expert holds', 'experts hold')} only zeros: {_some(zero)}."
    if found.duplicates:
        count = plural(len(found.duplicates), "group of experts holds", "groups of experts hold")
        first, *others = found.duplicates
        yield f"{count} the same numbers{', such as' if others else ':'} {_some(first)}."
    elif bool(found.experts["norm"].notna().all()) and not broken and len(zero) < SAME:
        yield "No two experts hold the same numbers."


def _used(found: MixtureExperts) -> str:
    if found.tokens is None:
        return NOT_ROUTING
    if found.per_token is None:
        return "How often the text uses each could not be counted."
    idle = [place for place, used in _column(found, "used") if used == 0]
    said = f"The text has {plural(found.tokens, 'token')}, each routed to at most {plural(found.per_token, 'expert')}"
    return f"{said} in a layer: {plural(len(idle), 'expert is', 'experts are')} not used."


def _places(found: MixtureExperts, name: str, value: object) -> list[ExpertPlace]:
    return [place for place, each in _column(found, name) if each == value]


def _column(found: MixtureExperts, name: str) -> Iterator[tuple[ExpertPlace, object]]:
    for module, expert, value in zip(
        *(found.experts[each].tolist() for each in ("module", "expert", name)), strict=True
    ):
        yield ExpertPlace(module, expert), value


def _some(places: Sequence[ExpertPlace]) -> str:
    return some([called(each) for each in places], NAMED)


def called(place: ExpertPlace) -> str:
    """An expert by its block and number."""
    return f"{place.module}[{place.expert}]"


def title(name: str) -> str:
    """Of the picture of norms."""
    return f"Expert norms by layer in {name}"


def uses_title(name: str) -> str:
    """Of the picture of uses."""
    return f"How often {name} uses each expert"


def unread(places: Sequence[ExpertPlace]) -> Iterator[str]:
    """Experts that the files do not hold whole."""
    if places:
        count = plural(len(places), "expert is", "experts are")
        yield f"{count} not measured, because the files do not hold all of it as numbers: {_some(places)}."


def unreadable(why: Mapping[str, str]) -> Iterator[str]:
    """Tensors that cannot be read as numbers."""
    if why:
        yield f"{plural(len(why), 'tensor')} could not be read ({some(list(why), NAMED)}). {next(iter(why.values()))}"


def unseen(blocks: Mapping[str, Sequence[str]], count: int) -> Iterator[str]:
    """Blocks whose choices are not counted, by the reason."""
    for why, each in blocks.items():
        chose = f"What {len(each):,} of {plural(count, 'router')} chose is not counted"
        yield f"{chose}, because {why}: {some(each, NAMED)}."
