"""The sections that a report may have: those of the rooms, in the catalog's order."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from inspector.catalog import PAGES
from inspector.report.content import Section


def _section(room: str) -> Section | None:
    name = f"{room}.view"
    return getattr(import_module(name), "SECTION", None) if find_spec(name) else None


_FOUND = [section for page in reversed(PAGES.values()) if (section := _section(page.room))]
# What a report has unless it is asked for more comes first.
SECTIONS: tuple[Section, ...] = tuple(sorted(_FOUND, key=lambda section: bool(section.needs)))
BY_SLUG = {section.slug: section for section in SECTIONS}
