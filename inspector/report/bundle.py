"""A report as one .zip: the page, its figures, tables and notebook, and a PDF."""

from __future__ import annotations

import io
import zipfile

from inspector.errors import CancelledError, InspectorError
from inspector.report.content import Report
from inspector.report.notebook import write_notebook
from inspector.report.page import write_page
from inspector.report.pictures import Tell, draw_pictures
from inspector.text import as_csv

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
    page = page or write_page(report)
    files = {"report.html": page.encode(), "report.ipynb": write_notebook(report).encode()}
    for part in report.parts:
        for table in part.tables:
            name = f"tables/{part.slug}-{table.name}.csv"
            files[name] = as_csv(table.frame).encode()
    names = [f"{part.slug}-{figure.name}" for part in report.parts for figure in part.figures]
    problem = None
    try:
        files |= draw_pictures(page, names, tell=tell)
    except CancelledError:
        raise
    except InspectorError as error:
        problem = str(error)
    return _packed(files), problem


def _packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return buffer.getvalue()
