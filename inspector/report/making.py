"""Ask for what the sections stand on, and put the report together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Protocol

from inspector.catalog import PAGES
from inspector.demo import examples_of
from inspector.errors import InspectorError, NotInCheckpointError, RequestError
from inspector.report import provenance
from inspector.report.content import About, AnsweredSection, Context, Report, ReportOptions, Section
from inspector.report.sections import BY_SLUG, SECTIONS
from inspector.request import Request
from inspector.results.checkpoint import Opened
from inspector.view.view import view_of

DEFAULT = tuple(section.slug for section in SECTIONS if not section.needs)
NO_SECOND = "The section {slug} needs {what}: name {which} ({options}), or leave the section out."
NEEDED = {"other": "a second checkpoint", "adapter": "an adapter", "merged": "a merged model"}

Tell = Callable[[float, str], None]  # share done, what is being done; may raise to stop


class Ask(Protocol):
    """Answers a question about the checkpoint of a report, or raises an InspectorError."""

    def __call__(self, verb: str, tell: Callable[[str], None], /, **parameters: Any) -> Any:
        """Answer a question; other checkpoints are named by their fingerprints.

        Args:
            verb: Of the question.
            tell: Called with what is being done; may raise to stop.
        """
        ...


def check_sections(slugs: Iterable[str]) -> tuple[str, ...]:
    """Sections in the report's order, each once.

    Raises:
        RequestError: If there is no such section, or none is named.
    """
    asked = [slug.strip() for slug in slugs if slug.strip()]
    unknown = [slug for slug in asked if slug not in BY_SLUG]
    if unknown or not asked:
        known = ", ".join(BY_SLUG)
        problem = f"There is no section {unknown[0][:40]!r}" if unknown else "No section is chosen"
        raise RequestError(f"{problem}: choose from {known}.")
    return tuple(slug for slug in BY_SLUG if slug in asked)


def make_report(
    ask: Ask,
    opened: Opened,
    *,
    sections: Sequence[str] = DEFAULT,
    setting: ReportOptions | None = None,
    beside: Mapping[str, Opened] = MappingProxyType({}),
    tell: Tell = lambda share, text: None,
) -> Report:
    """Make a report of an opened checkpoint.

    Args:
        ask: Answers the questions.
        opened: The checkpoint.
        beside: Other checkpoints, by option: "other" for the section that compares, "adapter" and "merged" for the
            proof of a merge.
        tell: Called with the share done, 0..1, and what is being done.

    Returns:
        The report. A section that the checkpoint cannot have says so in one sentence.

    Raises:
        RequestError: If there is no such section, or no other checkpoint that it needs.
        InspectorError: If a worker fails; what the checkpoint merely lacks is no failure.
    """
    chosen = check_sections(sections)
    needed = _needed(chosen, beside)
    tell(0.0, "Reading the headers")
    overview: About = ask("overview", lambda text: tell(0.0, text), hash_files=True)
    context = Context(opened, overview, _with_text(setting or ReportOptions(), opened, overview), needed)
    if set(DEFAULT) <= set(chosen):
        chosen = tuple(slug for slug in chosen if BY_SLUG[slug].applies(context))
    parts = []
    for place, slug in enumerate(chosen):
        title = PAGES[slug].title
        share = place / len(chosen)
        tell(share, title)
        parts.append(
            _part(ask, context, BY_SLUG[slug], lambda text, share=share, title=title: tell(share, f"{title}: {text}"))
        )
    return Report(
        context=context,
        parts=tuple(parts),
        provenance=provenance.describe(context, (where for part in parts for where in part.ran)),
        command=provenance.command_of_report(context, chosen),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _needed(chosen: Sequence[str], beside: Mapping[str, Opened]) -> dict[str, Opened]:
    """The other checkpoints that the sections ask about, by option."""
    for slug in chosen:
        if lacking := [name for name in BY_SLUG[slug].needs if name not in beside]:
            what, options = " and ".join(NEEDED[name] for name in lacking), ", ".join(f"--{name}" for name in lacking)
            which = "one" if len(lacking) == 1 else "both"
            raise RequestError(NO_SECOND.format(slug=slug, what=what, which=which, options=options))
    return {name: beside[name] for slug in chosen for name in BY_SLUG[slug].needs}


def _with_text(setting: ReportOptions, opened: Opened, overview: About) -> ReportOptions:
    if setting.text.strip():
        return setting
    return replace(setting, text=examples_of(opened.parts[0].reference, overview.mask_token)[0])


def _part(ask: Ask, context: Context, section: Section, tell: Callable[[str], None]) -> AnsweredSection:
    analysis = PAGES[section.slug]
    requests = section.ask(context)
    answers = [_answer(ask, request, tell) for request in requests]
    refused = [str(answer) for answer in answers if isinstance(answer, InspectorError)]
    absent = str(answers[0]) if isinstance(answers[0], InspectorError) else None
    found = [pair for pair in zip(answers, requests, strict=True) if not isinstance(pair[0], InspectorError)]
    views = [] if absent else [view_of(answer, request, name=context.name) for answer, request in found]
    notes = filter(None, (section.note(context), *_warnings(answer for answer, _ in found), *refused))
    return AnsweredSection(
        slug=section.slug,
        title=analysis.title,
        question=analysis.question,
        views=tuple(filter(None, views)),
        absent=absent,
        notes=() if absent else tuple(notes),
        link=provenance.link(context, section.slug, section.query(context)),
        commands=tuple(provenance.command(context, request) for request in requests),
        requests=requests,
        ran=_places(answer for answer, _ in found),
    )


def _answer(ask: Ask, request: Request, tell: Callable[[str], None]) -> Any:
    """The result, or the refusal: this checkpoint cannot answer that."""
    try:
        return ask(request.verb, tell, **request.parameters())
    except (NotInCheckpointError, RequestError) as refusal:
        return refusal


def _warnings(answers: Iterable[Any]) -> tuple[str, ...]:
    """Each warning once."""
    every = (text for answer in answers for text in getattr(answer, "warnings", ()))
    return tuple(dict.fromkeys(every))


def _places(answers: Iterable[Any]) -> tuple[str, ...]:
    """Where the model ran."""
    pairs = ((getattr(each, "device", ""), getattr(each, "dtype", "")) for each in answers)
    return tuple(f"{device} in {dtype}" for device, dtype in pairs if device and dtype)
