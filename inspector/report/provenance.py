"""Where a report's numbers come from, and how to get them again."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from urllib.parse import urlencode

import inspector
from inspector.program import command_line
from inspector.report.content import About, AnsweredSection, Context, Report, ReportOptions
from inspector.request import Request, beside
from inspector.results.checkpoint import Opened
from inspector.store.hashing import fingerprint_of
from inspector.store.reference import origin_of
from inspector.text import bytes_text

LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "pandas", "plotly")


def describe(context: Context, ran: Iterable[str]) -> dict[str, str]:
    """All that must be the same for the same numbers; nothing of the machine that made it."""
    overview, setting = context.overview, context.setting
    files = "; ".join(f"{file.name} ({file.nbytes:,} bytes, SHA-256 {file.sha256})" for file in overview.files)
    compared = "; ".join(f"{each.name}, {each.fingerprint}" for each in context.beside.values())
    return {
        "Checkpoint": context.name,
        "Fingerprint": content_fingerprint(overview),
        **({"Compared with": compared} if compared else {}),
        "Files": f"{files}; {bytes_text(overview.nbytes_on_disk)} in all",
        "Stored as": ", ".join(overview.dtypes),
        "Text": setting.text,
        "Device and dtype": f"{setting.device}, {setting.dtype} requested; the model ran on "
        + (", ".join(sorted(set(ran))) or "no device, because no section needed it"),
        "Seed": str(setting.seed),
        **versions(),
    }


@cache
def versions() -> Mapping[str, str]:
    """Which code computes here."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES if find_spec(name))
    return {
        "Checkpoint Inspector": inspector.__version__,
        "Libraries": f"Python {platform.python_version()}, {libraries}",
    }


def of_part(report: Report, part: AnsweredSection) -> dict[str, str]:
    """Where a figure or a table of a section comes from, for its file."""
    texts = [text for request in part.requests if (text := getattr(request, "text", ""))]
    kept = ("Fingerprint", "Compared with", "Checkpoint Inspector", "Libraries")
    return {
        "Title": f"{part.title} of {report.name}",
        "Checkpoint": report.name,
        **({"Text": "; ".join(dict.fromkeys(texts))} if texts else {}),
        "Command": "; ".join(part.commands),
        "Page": part.link,
        **{name: report.provenance[name] for name in kept if name in report.provenance},
    }


def figures_of(report: Report) -> dict[str, dict[str, str]]:
    """The figures of a report, "section-figure", with what their files say of themselves."""
    return {
        f"{part.slug}-{figure.name}": {**of_part(report, part), "Description": figure.alt}
        for part in report.parts
        for figure in part.figures
    }


def of_answer(request: Request, opened: Opened, others: Mapping[str, Opened]) -> dict[str, str]:
    """Where the tables of an answer come from, for their files.

    Args:
        others: By option, the other checkpoints that the question names.
    """
    request = replace(request, **{name: source(each) for name, each in others.items()})
    compared = "; ".join(f"{each.name}, {each.fingerprint}" for each in others.values())
    text = getattr(request, "text", "")
    return {
        "Checkpoint": opened.name,
        **({"Text": text} if text else {}),
        "Command": command_line([request.verb, source(opened), *on_it(opened), *request.to_argv()]),
        "Fingerprint": opened.fingerprint,
        **({"Compared with": compared} if compared else {}),
        **versions(),
    }


def content_fingerprint(overview: About) -> str:
    """The fingerprint by every byte of the files, whatever the checkpoint was opened by."""
    if overview.identity == "content":
        return overview.fingerprint
    return fingerprint_of({file.name: file.sha256 or "" for file in overview.files})


def link(context: Context, slug: str, query: Mapping[str, str]) -> str:
    """Page and query that show a section; a path of this machine stays out of it."""
    named = reference(context.opened)
    first = {"checkpoint": named} if named else {}
    asked = context.setting.to_query()
    runs = {name: asked[name] for name in ("device", "dtype") if name in asked and "text" in query}
    return f"/{slug}" + (f"?{urlencode(whole)}" if (whole := {**first, **query, **runs}) else "")


def reference(opened: Opened) -> str | None:
    """A checkpoint in a link; None where it was opened by a path."""
    return opened.reference if all(origin_of(each.reference).public for each in opened.parts) else None


def command(context: Context, request: Request) -> str:
    """The command line that asks one question."""
    return _line(context, *typed(context, request))


def typed(context: Context, request: Request) -> tuple[str, ...]:
    """A verb and its options as the command line takes them: other checkpoints by their names."""
    named = {name: source(context.beside[name]) for name in beside(request.parameters())}
    return request.verb, *replace(request, **named).to_argv()


def query(context: Context, request: Request) -> dict[str, str]:
    """A page's inputs that ask the same; without the other checkpoints that were opened by a path."""
    named = {name: reference(context.beside[name]) or "" for name in beside(request.parameters())}
    return replace(request, **named).to_query() if all(named.values()) else {}


def command_of_report(context: Context, sections: Sequence[str]) -> str:
    """The command line that makes the same report."""
    others = {name: source(each) for name, each in context.beside.items()}
    return _line(context, "report", *options_of_report(context.setting, sections, others))


def options_of_report(setting: ReportOptions, sections: Sequence[str], others: Mapping[str, str]) -> tuple[str, ...]:
    """The options of the verb `report` that ask the same.

    Args:
        setting: What is asked for besides the sections.
        others: By option, how the command line names the other checkpoints.
    """
    return (
        "-o",
        "report.zip",
        "--sections",
        ",".join(sections),
        *setting.to_argv(),
        *(f"--{name}={other}" for name, other in others.items()),
    )


def source(opened: Opened) -> str:
    """How the command line names a checkpoint, without an adapter on it: whoever has it in a folder, by that folder."""
    opened = opened.base or opened
    origin = origin_of(opened.reference)
    return opened.name if origin.path else origin.typed


def on_it(opened: Opened) -> list[str]:
    """The option that puts the adapter on a checkpoint; none without one."""
    return [f"--adapter={source(opened.adapter)}"] if opened.adapter else []


def _line(context: Context, *words: str) -> str:
    verb, *options = words
    return command_line([verb, source(context.opened), *on_it(context.opened), *options])
