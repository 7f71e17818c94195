"""Checks as cards: what was found, its evidence, the next step, and where to see more."""

from __future__ import annotations

import json

import streamlit as st

from inspector.analyses.checks import words
from inspector.analyses.checks.frames import SUBJECT, as_frame, check_frame
from inspector.analyses.checks.result import Check, Checks
from inspector.catalog import PAGES
from inspector.names import find_rows
from inspector.results.checkpoint import Opened
from inspector.results.plain import to_json
from inspector.text import literal
from pages._ui import address, parts, table_files
from pages._ui.words import command

# check -> slug of the page that shows more of it, and inputs there
MORE: dict[str, tuple[str, dict[str, str]]] = {
    "Config and shapes": ("overview", {}),
    "Loading": ("classes", {}),
    "Heads and weights": ("classes", {}),
    "Left-over tensors": ("overview", {}),
    "Ties": ("sharing", {}),
    "NaN and infinity": ("overview", {}),
    "Zero tensors": ("overview", {}),
    "Weight magnitudes": ("overview", {}),
    "Quantization scales": ("overview", {}),
    "Number types": ("overview", {}),
    "Tokenizer and rows": ("embeddings", {}),
    "Zero rows": ("embeddings", {}),
    "Duplicated rows": ("embeddings", {}),
    "Under-trained tokens": ("embeddings", {"color": "under-training score"}),
    "Padding": ("padding", {}),
    "Stopping": ("embeddings", {"tab": "Special tokens"}),
    "Pickle formats": ("overview", {}),
    "Files": ("overview", {}),
}
# status -> word, symbol, color
STATUS = {
    "ok": ("fine", "check_circle", "green"),
    "note": ("note", "info", "blue"),
    "warn": ("worth a look", "warning", "orange"),
    "fail": ("broken", "error", "red"),
}
RMS = {
    f"{which}_rms": st.column_config.NumberColumn(f"{which} RMS", format="%.4g")
    for which in ("lowest", "median", "highest")
}
SEARCHABLE = frozenset(  # by tensor
    {"Left-over tensors", "NaN and infinity", "Zero tensors", "Weight magnitudes", "Quantization scales"}
)


def draw_problems(checks: Checks) -> None:
    """Draw what was found, the worst first."""
    for check in checks.worst_first():
        if check.status != "ok":
            draw(check)


def draw_passed(checks: Checks) -> None:
    """Draw what passed in a line each, folded where anything was found."""
    passed = [check for check in checks.worst_first() if check.status == "ok"]
    folded = len(passed) < len(checks.checks)
    with st.expander(f"{len(passed)} passed") if folded else st.container(), st.container(gap="xxsmall"):
        for check in passed:
            _draw_line(check)


def export(checks: Checks, checkpoint: Opened) -> None:
    """Offer all of it as files, and say how a pipeline uses them."""
    with st.container(horizontal=True, vertical_alignment="center"):
        table_files.offer(check_frame(checks), name=f"{checkpoint.name}-checks", label="All checks")
        st.download_button(
            "All checks: JSON",
            data=lambda: as_json(checks),
            file_name=f"{checkpoint.name}-checks.json",
            mime="application/json",
            icon=":material/download:",
            on_click="ignore",
        )
    st.markdown(literal(words.PIPELINE))
    st.code(
        "\n".join(
            [
                f"{command('check', checkpoint, '--json')} > baseline.json",
                command("check", checkpoint, "--baseline", "baseline.json", "--format", "github"),
                f"{command('check', checkpoint, '--format', 'junit')} > checks.xml",
            ]
        ),
        language=None,
        wrap_lines=True,
    )


def draw_early(headers: Checks) -> None:
    """Draw what headers decide, while the numbers are being read, or still on the hub."""
    st.caption("What the headers decide:")
    for check in headers.worst_first():
        if check.checked:
            draw(check, place=" in the headers")


def draw(check: Check, *, place: str = "") -> None:
    """Draw one check; one that found nothing wrong takes a line.

    Args:
        place: Where it was found, in words, while more is being looked at.
    """
    if check.status == "ok":
        _draw_line(check)
        return
    word, symbol, color = STATUS[check.status]
    badge = f":{color}-badge[:material/{symbol}: {word} · {check.severity}]"
    with st.container(border=True, gap="small"):
        st.markdown(f"{badge} **{literal(check.name)}**")
        st.markdown(literal(check.detail))
        st.markdown(f":material/arrow_forward: **Next step:** {literal(check.next_step)}")
        if check.evidence:
            _draw_evidence(check, place)
        _link(check, place)


def as_json(checks: Checks) -> str:
    """The same as the command line prints: it can be a baseline."""
    return json.dumps(to_json(checks), ensure_ascii=False, allow_nan=False) + "\n"


def _draw_line(check: Check) -> None:
    word, symbol, color = STATUS["note" if check.severity == "note" else check.status]
    st.markdown(f":{color}-badge[:material/{symbol}: {word}] **{literal(check.name)}:** {literal(check.detail)}")


def _draw_evidence(check: Check, place: str) -> None:
    listed = len(check.evidence)
    label = f"Evidence ({check.found:,}" + (f"; the first {listed:,} listed)" if listed < check.found else ")")
    with st.expander(label):
        frame, find = as_frame(check.evidence).dropna(axis="columns", how="all"), f"evidence of {check.name}{place}"
        found = find_rows(frame, st.session_state.get(find, ""), [SUBJECT])
        if found.empty:  # another checkpoint's pattern
            del st.session_state[find]
            found = frame
        parts.table(found, find=find, by=SUBJECT, alt=f"Evidence of {check.name}{place}")


def _link(check: Check, place: str) -> None:
    slug, inputs = MORE[check.name]
    page = PAGES[slug]
    if check.name in SEARCHABLE and check.evidence:
        inputs = inputs | {"find": check.evidence[0].subject}
    address.link(f"See more: {page.title}", slug, key=f"more {check.name}{place}", icon=page.symbol, inputs=inputs)
