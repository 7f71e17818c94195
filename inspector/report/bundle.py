"""A report as one .zip: the page, its figures, tables and notebook, and a PDF."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

from inspector.errors import CancelledError, InspectorError, WorkerError
from inspector.report import provenance
from inspector.report.content import Report
from inspector.report.labeling import csv_metadata
from inspector.report.notebook import write_notebook
from inspector.report.page import write_page
from inspector.report.pictures import Tell, draw_pictures
from inspector.report.provenance import figures_of
from inspector.text import as_csv

PAGE = "report.html"
WHEN = (1980, 1, 1, 0, 0, 0)  # of every file: the same report gives the same archive


def write_bundle(
    report: Report, *, page: str | None = None, tell: Tell = lambda share, text: None
) -> tuple[bytes, str | None]:
    """Write all files of a report.

    Args:
        tell: Called with the share done and what is being done; may raise to stop.

    Returns:
        The archive, and why it holds no pictures and no PDF; None where it does.
    """
    files = bundle_files(report, page or write_page(report))
    return add_pictures(files, tuple(figures_of(report)), made=report.made, tell=tell)


def bundle_files(report: Report, page: str) -> dict[str, bytes]:
    """The files of a report that need no browser: the page, the notebook and the tables, by name."""
    files = {PAGE: page.encode(), "report.ipynb": write_notebook(report).encode()}
    for part in report.parts:
        facts = provenance.of_part(report, part)
        for table in part.tables:
            name = f"{part.slug}-{table.name}.csv"
            files[f"tables/{name}"] = as_csv(table.frame).encode()
            described = csv_metadata(name, table.frame, facts, title=table.title)
            files[f"tables/{name}-metadata.json"] = described.encode()
    return files


def add_pictures(
    files: dict[str, bytes], figures: Sequence[str], *, made: str, tell: Tell = lambda share, text: None
) -> tuple[bytes, str | None]:
    """Pack the files of a report, with its figures and a PDF where there is a browser; see `write_bundle`.

    Args:
        figures: Their names, "section-figure".
        made: When the report was made.
    """
    problem = None
    try:
        files = files | draw_pictures(files[PAGE].decode(), figures, made=made, tell=tell)
    except CancelledError:
        raise
    except InspectorError as error:
        problem = str(error)
    return pack(files), problem


def pack(files: dict[str, bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Put files into an archive, the same ones always into the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = compression
            archive.writestr(entry, data)
    return buffer.getvalue()


def unpack(archive: bytes) -> dict[str, bytes]:
    """The files of a report that `pack` put together without compression, in a process that read strangers' files.

    Raises:
        WorkerError: If it is none.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = opened.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise ValueError("compressed")
            if sum(entry.file_size for entry in entries) > len(archive):
                raise ValueError("one lies in another")
            return {entry.filename: opened.read(entry) for entry in entries}
    except (ValueError, RuntimeError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise WorkerError("The process that read the checkpoint wrote no report: try again.") from error
