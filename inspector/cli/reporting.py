"""The verbs that make something to send: a report, and pictures of the pages."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console

from inspector.api import Checkpoint
from inspector.batch.asking import BatchEntry
from inspector.catalog import PAGES
from inspector.cli.answering import AsJson, Source, app, done, refusals, show
from inspector.cli.batches import Kept, Listed, Sources, ask_many, leave, seek, show_many
from inspector.cli.child import Task
from inspector.cli.output import Output
from inspector.cli.report_names import file_names
from inspector.cli.verbs import flagged, gathered
from inspector.errors import InspectorError, RequestError, cannot_write
from inspector.progress import Progress
from inspector.report.bundle import PAGE, add_pictures, bundle_files, pack, unpack
from inspector.report.content import Report, ReportOptions
from inspector.report.making import DEFAULT, check_sections, make_report
from inspector.report.markdown import without_pictures, write_markdown
from inspector.report.page import write_page
from inspector.report.pictures import draw_pictures
from inspector.report.provenance import figures_of
from inspector.report.screenshots import check_pages, take_pictures
from inspector.report.sections import BY_SLUG, SECTIONS
from inspector.request import beside
from inspector.store.origins.snapshots import Snapshot
from inspector.store.reference import CheckpointRef, find_reference
from inspector.text import bytes_text, plural
from inspector.view.blocks import Bullets
from inspector.view.screen import Screen, rows_of
from inspector.view.view import Headline

ENDS = (".html", ".zip", ".md")
TEXT = "report.md"


@app.command()
def report(
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="FILE.html; FILE.zip, which adds figures, tables, a notebook and a PDF; or FILE.md, with a folder of "
            "pictures; with several checkpoints, a FOLDER.",
        ),
    ],
    checkpoints: Sources = None,
    listed: Listed = None,
    results: Kept = None,
    sections: Annotated[
        str,
        typer.Option(
            "--sections",
            help=f"Comma-separated list of: {', '.join(BY_SLUG)}; default: all but compare, which "
            "--other adds, and merge, which --adapter and --merged add.",
        ),
    ] = "",
    text: Annotated[str, flagged(ReportOptions, "text")] = ReportOptions.text,
    other: Annotated[str, typer.Option("--other", help="A second checkpoint, for the compare section.")] = "",
    adapter: Annotated[
        str,
        typer.Option(
            "--adapter",
            help="An adapter on the checkpoint: the report is about both, as if merged. With --merged, the merge "
            "section asks whether it was.",
        ),
    ] = "",
    merged: Annotated[str, typer.Option("--merged", help="The model that the adapter is said to be merged into.")] = "",
    device: Annotated[str, flagged(ReportOptions, "device")] = ReportOptions.device,
    dtype: Annotated[str, flagged(ReportOptions, "dtype")] = ReportOptions.dtype,
    seed: Annotated[int, flagged(ReportOptions, "seed")] = ReportOptions.seed,
    as_json: AsJson = False,
) -> None:
    """Write a self-contained, reproducible report; with several checkpoints, one report each."""
    with refusals(ReportOptions):
        typed = {"text": text, "device": device, "dtype": dtype, "seed": seed}
        setting = ReportOptions(**gathered(ReportOptions, typed))
        others = beside({"other": other} | ({"adapter": adapter, "merged": merged} if merged else {}))
        on_it = "" if merged else adapter
        chosen = _sections(sections, others)
        sought = seek(checkpoints, listed, on_it=on_it)
        checkpoint = sought.single
        if checkpoint is None:
            lines = _report_many(sought.entries, output, results, chosen, setting, others)
            show_many("report", lines, as_json=as_json, row=_row)
            leave(lines)
            return
        _check_output(output)
        on = find_reference(on_it) if on_it else None
        file = Output(output)
        try:
            summary = _finished(
                done(_task(find_reference(checkpoint), _references(others), chosen, setting, file, on_it=on)), file
            )
        finally:
            file.drop()
    if problem := summary["without_pictures"]:
        sys.stderr.write(f"Warning: {problem}\n")
    show(summary, as_json=as_json, screen=_wrote)


def _references(others: Mapping[str, str]) -> dict[str, CheckpointRef]:
    return {name: find_reference(each) for name, each in others.items()}


def _task(
    reference: CheckpointRef,
    others: Mapping[str, CheckpointRef],
    chosen: tuple[str, ...],
    setting: ReportOptions,
    output: Output,
    *,
    on_it: CheckpointRef | None = None,
) -> Task:
    """What a child does: it makes the report, and writes it without the pictures."""

    def work(checkpoints: list[Checkpoint], tell: Progress) -> dict[str, Any]:
        first, *rest = checkpoints
        if on_it:
            first = first.with_adapter(rest.pop())
        named = dict(zip(others, rest, strict=True))

        def ask(verb: str, _: Callable[[str], None], /, **parameters: Any) -> Any:
            return first.ask(verb, **parameters | {name: named[name] for name in beside(parameters)}).result

        opened = {name: each.opened for name, each in named.items()}
        made = make_report(ask, first.opened, sections=chosen, setting=setting, beside=opened, tell=tell)
        page = write_page(made)
        output.write(_written(made, page, output.path))
        return {"summary": _summary(made, output.path), "figures": list(figures_of(made)), "made": made.made}

    references = (reference, *others.values(), *filter(None, [on_it]))
    return Task("report", references, work, reads_all=True, device=setting.device, fills=(output.descriptor,))


def _written(made: Report, page: str, path: Path) -> bytes:
    """What the child hands over: the page, or the files that go with the pictures."""
    if path.suffix == ".html":
        return page.encode()
    text = write_markdown(made, quote(_pictures_of(path).name)).encode()
    files = bundle_files(made, page) if path.suffix == ".zip" else {PAGE: page.encode(), TEXT: text}
    return pack(files, compression=zipfile.ZIP_STORED)


def _pictures_of(path: Path) -> Path:
    """The folder of a Markdown file's pictures."""
    return path.with_name(f"{path.stem}_files")


def _finished(made: dict[str, Any], output: Output) -> dict[str, Any]:
    """Add the pictures, which a browser draws beside the child, and say what was written."""
    summary = made["summary"]
    if output.path.suffix == ".zip":
        figures, date = made["figures"], str(made["made"])
        data, summary["without_pictures"] = add_pictures(unpack(output.read()), figures, made=date)
        output.write(data)
    elif output.path.suffix == ".md":
        output.write(_with_pictures(unpack(output.read()), made, output.path))
    summary["nbytes"] = output.nbytes
    output.finish()
    return summary


def _with_pictures(files: dict[str, bytes], made: dict[str, Any], path: Path) -> bytes:
    """Put the pictures of a Markdown file beside it; gives its text, without them where there is no browser.

    Raises:
        RequestError: If the folder cannot be written.
    """
    try:
        drawn = draw_pictures(
            files[PAGE].decode(), made["figures"], made=str(made["made"]), tell=lambda share, text: None
        )
    except InspectorError as error:
        made["summary"]["without_pictures"] = str(error)
        return without_pictures(files[TEXT].decode()).encode()
    folder = _pictures_of(path)
    try:
        folder.mkdir(exist_ok=True)
        for name, data in drawn.items():
            if name.endswith(".png"):
                (folder / Path(name).name).write_bytes(data)
    except OSError as error:
        raise cannot_write(folder, error) from error
    return files[TEXT]


def _report_many(
    sought: tuple[Snapshot | BatchEntry, ...],
    folder: Path,
    results: Path | None,
    chosen: tuple[str, ...],
    setting: ReportOptions,
    others: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Write one HTML file for each checkpoint into a folder."""
    if folder.suffix in ENDS or folder.is_file():
        raise RequestError(f"{folder.name} is a single file, but there are {len(sought)} checkpoints: give a folder.")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"{folder.name} cannot be created ({error.strerror or 'no access'}): choose a location in an existing "
            "folder that you can write to."
        ) from error
    files = file_names(sought, folder)
    references = _references(others)
    outputs: dict[Snapshot, Output] = {}

    def task(snapshot: Snapshot) -> Task:
        outputs[snapshot] = Output(files[snapshot])
        return _task(snapshot.reference, references, chosen, setting, outputs[snapshot])

    question = {
        "verb": "report",
        "sections": list(chosen),
        "setting": asdict(setting),
        "others": dict(others),
        "folder": str(folder.absolute()),
    }
    try:
        return ask_many(
            sought,
            task,
            question=question,
            results=results,
            is_valid=_is_there,
            by_content=False,
            after=lambda snapshot, made: _finished(made, outputs[snapshot]),
            tell=lambda result: f"wrote {result['file']}",
        )
    finally:
        for output in outputs.values():
            output.drop()


def _is_there(result: dict[str, Any]) -> bool:
    file = Path(result["file"])
    return file.is_file() and file.stat().st_size == result["nbytes"]


def _row(result: dict[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("file", "nbytes", "figures", "tables")}


def _sections(sections: str, others: Mapping[str, str]) -> tuple[str, ...]:
    """Those that are named, and those that other checkpoints are given for."""
    named = sections or ",".join(DEFAULT)
    added = [each.slug for each in SECTIONS if others.keys() & set(each.needs)]
    return check_sections([*named.split(","), *added])


def _check_output(output: Path) -> None:
    """Refuse what cannot be written before anything is computed."""
    if output.suffix not in ENDS:
        raise RequestError(f"{output.name} must end in .html, .zip or .md: rename it.")
    if not output.absolute().parent.is_dir():
        raise RequestError(
            f"{output.name} cannot be written, because its folder does not exist: create the folder first."
        )


def _summary(made: Report, output: Path) -> dict[str, Any]:
    return {
        "file": str(output),
        "nbytes": 0,  # when it is written
        "sections": [part.slug for part in made.parts],
        "absent": [{"section": part.slug, "reason": part.absent} for part in made.parts if part.absent],
        "figures": sum(len(part.figures) for part in made.parts),
        "tables": sum(len(part.tables) for part in made.parts),
        "fingerprint": made.context.overview.fingerprint,
        "without_pictures": None,
    }


def _wrote(summary: dict[str, Any]) -> Screen:
    """What was written, in a sentence, and what the checkpoint could not have."""
    parts = [
        plural(len(summary["sections"]), "section"),
        plural(summary["figures"], "figure"),
        plural(summary["tables"], "table"),
        bytes_text(summary["nbytes"]),
    ]
    absent = tuple(f"{PAGES[each['section']].title}: {each['reason']}" for each in summary["absent"])
    return Screen(Headline(f"Wrote {summary['file']}: {', '.join(parts)}."), (Bullets(absent),) if absent else ())


@app.command()
def screenshot(
    checkpoint: Source,
    output: Annotated[Path, typer.Option("-o", "--output", help="FOLDER for one PNG per page.")],
    pages: Annotated[str, typer.Option("--pages", help="Comma-separated; default: all.")] = "",
    theme: Annotated[str, typer.Option("--theme", help="light or dark.")] = "light",
    width: Annotated[int, typer.Option("--width", help="Width in pixels, 400 to 4,000.")] = 1400,
    as_json: AsJson = False,
) -> None:
    """Take a screenshot of every page with a headless Chromium."""
    with refusals():
        chosen = check_pages(pages.split(","))
        if theme not in ("light", "dark"):
            raise RequestError(f"--theme must be light or dark, not {theme[:40]!r}.")
        if not 400 <= width <= 4000:
            raise RequestError(f"--width must be between 400 and 4,000 pixels, not {width:,}.")
        reference = find_reference(checkpoint)
        with Console(stderr=True).status("Starting") as status:
            taken = take_pictures(reference, output, pages=chosen, theme=theme, width=width, tell=status.update)
    show({"folder": str(output), "theme": theme, "pages": taken}, as_json=as_json, screen=_taken)


def _taken(plain: dict[str, Any]) -> Screen:
    """Which pictures were taken."""
    pages = plain["pages"]
    rows = [
        {"page": page["page"], "file": page["file"], "pixels": f"{page['width']} × {page['height']}"}
        | {"nbytes": page["nbytes"], "cut": page["cut"]}
        for page in pages
    ]
    total = bytes_text(sum(page["nbytes"] for page in pages))
    return Screen(
        Headline(f"Wrote {plural(len(pages), 'picture')} to {plain['folder']}, {total}."), (rows_of("", rows),)
    )
