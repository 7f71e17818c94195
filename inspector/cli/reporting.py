"""The verbs that make something to send: a report, and pictures of the pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from inspector.cli import answering
from inspector.cli.answering import AsJson, Device, Dtype, Source, app, refusals, show, waited
from inspector.errors import RequestError
from inspector.report import (
    DEFAULT,
    Report,
    Setting,
    check_sections,
    make_report,
    write_bundle,
    write_page,
)
from inspector.report.screenshots import check_pages, take_pictures
from inspector.results import Opened
from inspector.settings import settings


@app.command()
def report(
    checkpoint: Source,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="FILE.html, or FILE.zip with figures, tables, "
                     "notebook and PDF beside it."),
    ],
    sections: Annotated[
        str, typer.Option("--sections", help=f"Comma-separated, of: {', '.join(DEFAULT)}.")
    ] = ",".join(DEFAULT),
    text: Annotated[
        str, typer.Option("--text", help="What the model reads; default: an example.")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", help="Of whatever is random.")] = 0,
    device: Device = "auto",
    dtype: Dtype = "auto",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Write a report that can be sent, trusted and reproduced."""
    setting = Setting(text=text, device=device, dtype=dtype, seed=seed)
    with refusals():
        chosen = check_sections(sections.split(","))
        _check_output(output)
        engine = answering.start_engine(settings(), restrict_paths=False, spare=False)
        try:
            opened: Opened = waited(engine.open(answering.find_reference(checkpoint)))
            with Console(stderr=True).status("Starting") as status:
                made = make_report(engine, opened, sections=chosen, setting=setting,
                                   tell=lambda _, said: status.update(said))  # fmt: skip
        finally:
            engine.close()
        data, problem = _written(made, output)
        _save(output, data)
    if problem:
        sys.stderr.write(f"Warning: {problem}\n")
    show(_summary(made, output, len(data), problem), as_json=as_json)


def _check_output(output: Path) -> None:
    """Refuse what cannot be written before anything is computed."""
    if output.suffix not in (".html", ".zip"):
        raise RequestError(f"{output.name} is neither .html nor .zip: name it as one.")
    if not output.absolute().parent.is_dir():
        raise RequestError(f"{output.name} cannot be written: its folder does not exist.")


def _written(made: Report, output: Path) -> tuple[bytes, str | None]:
    page = write_page(made)
    if output.suffix == ".html":
        return page.encode(), None
    return write_bundle(made, page=page)


def _save(output: Path, data: bytes) -> None:
    try:
        output.write_bytes(data)
    except OSError as error:
        raise RequestError(
            f"{output.name} cannot be written ({error.strerror or 'no access'}): name a file in a "
            "folder that exists and that you may write to."
        ) from error


def _summary(made: Report, output: Path, nbytes: int, problem: str | None) -> dict[str, Any]:
    return {
        "file": str(output),
        "nbytes": nbytes,
        "sections": [part.slug for part in made.parts],
        "absent": [{"section": part.slug, "reason": part.absent} for part in made.parts
                   if part.absent],
        "figures": sum(len(part.figures) for part in made.parts),
        "tables": sum(len(part.tables) for part in made.parts),
        "fingerprint": made.context.overview.fingerprint,
        "without_pictures": problem,
    }  # fmt: skip


@app.command()
def screenshot(
    checkpoint: Source,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="FOLDER for one PNG a page.")
    ],
    pages: Annotated[
        str, typer.Option("--pages", help="Comma-separated; default: all.")
    ] = "",
    theme: Annotated[str, typer.Option("--theme", help="light or dark.")] = "light",
    width: Annotated[int, typer.Option("--width", help="Pixels, 400 to 4000.")] = 1400,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Take a picture of every page, through a headless Chromium."""
    with refusals():
        chosen = check_pages(pages.split(","))
        if theme not in ("light", "dark"):
            raise RequestError(f"There is no theme {theme[:40]!r}: choose light or dark.")
        if not 400 <= width <= 4000:
            raise RequestError(f"{width} pixels is no width for a picture: choose 400 to 4000.")
        reference = answering.find_reference(checkpoint)
        with Console(stderr=True).status("Starting") as status:
            taken = take_pictures(reference, output, pages=chosen, theme=theme, width=width,
                                  tell=status.update)  # fmt: skip
    show({"folder": str(output), "theme": theme, "pages": taken}, as_json=as_json)
