"""The Report page's work: have a report made, and offer its files."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from inspector.catalog import PAGES
from inspector.errors import CancelledError, InspectorError, WeightsOnHubError
from inspector.report.content import AnsweredSection, ReportOptions
from inspector.results.checkpoint import Opened
from inspector.text import bytes_text, literal, plural
from pages._report.making import Made, Making
from pages._ui import session
from pages._ui.opening import fetching

UNDER_WAY = "report under way"  # (what was asked for, Making): the session's last one


def make(
    checkpoint: Opened, sections: tuple[str, ...], setting: ReportOptions, *, beside: Mapping[str, Opened]
) -> Made | None:
    """Offer to make a report, wait for the one that was asked for, and give it."""
    asked = (checkpoint.fingerprint, sections, setting, tuple(each.fingerprint for each in beside.values()))

    def start() -> None:
        making = Making(session.engine(), checkpoint, sections=sections, setting=setting, beside=beside)
        st.session_state[UNDER_WAY] = (asked, making)
        st.session_state.pop("stopped", None)

    st.button(
        "Create report",
        type="primary",
        icon=":material/description:",
        on_click=start,
        help="Takes a few seconds for pages that you have viewed, and up to two minutes for a large model.",
    )
    before, making = st.session_state.get(UNDER_WAY, (None, None))
    if making is None or before != asked:
        return None
    try:
        return session.wait(making, stopped_key=None)
    except WeightsOnHubError as error:
        fetching.ask(str(error), (checkpoint, *beside.values()), "report", session.fetch)
    except CancelledError as error:
        st.info(literal(error), icon=":material/stop_circle:")
    except InspectorError as error:
        st.error(literal(error), icon=":material/error:")
    return None


def offer(checkpoint: Opened, made: Made) -> None:
    """Offer the files with their sizes."""
    st.download_button(
        f"HTML, {bytes_text(len(made.page))}",
        made.page,
        type="primary",
        file_name=f"{checkpoint.name}-report.html",
        mime="text/html",
        icon=":material/download:",
        on_click="ignore",
        width="stretch",
    )
    st.download_button(
        f"Everything as .zip, {bytes_text(len(made.bundle))}",
        made.bundle,
        file_name=f"{checkpoint.name}-report.zip",
        mime="application/zip",
        icon=":material/folder_zip:",
        on_click="ignore",
        width="stretch",
    )
    if made.problem:
        st.info(f"{literal(made.problem)} The .zip has everything else.", icon=":material/info:")


def list_contents(sections: tuple[str, ...], made: Made | None) -> None:
    """List the sections with the question that each answers, and once they are made with what they hold."""
    st.header("Your report" if made else "Contents", anchor=False)
    held = {part.slug: _held(part) for part in made.parts} if made else {}
    lines = [f"| Section | {'Holds' if made else 'Answers'} |", "|---|---|"]
    lines += [
        f"| :material/{PAGES[slug].symbol}: **{PAGES[slug].title}** | {held.get(slug) or PAGES[slug].question} |"
        for slug in sections
    ]
    st.markdown("\n".join(lines))


def _held(part: AnsweredSection) -> str:
    if part.absent:
        return f":material/remove: {literal(part.absent)}"
    return f"{plural(len(part.figures), 'figure')}, {plural(len(part.tables), 'table')}"
