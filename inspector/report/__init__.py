"""Reports: what the pages show, as one file that can be sent, trusted and reproduced."""

from inspector.report.bundle import write_bundle
from inspector.report.content import Part, Report, Setting
from inspector.report.making import COMPARING, DEFAULT, check_sections, make_report
from inspector.report.page import write_page
from inspector.report.sections import BY_SLUG, SECTIONS

__all__ = [
    "BY_SLUG",
    "COMPARING",
    "DEFAULT",
    "SECTIONS",
    "Part",
    "Report",
    "Setting",
    "check_sections",
    "make_report",
    "write_bundle",
    "write_page",
]
