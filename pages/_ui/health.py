"""The vocabulary's health: what was looked for in every row, what was found, and the evidence."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from inspector.analyses.embeddings import words
from inspector.analyses.embeddings.figures_health import score_histogram
from inspector.analyses.embeddings.result import Embeddings
from inspector.analyses.embeddings.result_health import Finding, Health
from inspector.results.checkpoint import Opened
from inspector.text import literal
from pages._ui import parts, table_files

# status -> word, symbol, color
STATUS = {
    "ok": ("fine", "check_circle", "green"),
    "note": ("note", "info", "blue"),
    "warn": ("worth a look", "warning", "orange"),
    "fail": ("broken", "error", "red"),
}
SHOWN = 12  # tokens of a group of equal rows that are written out


def draw(result: Embeddings, *, checkpoint: Opened) -> None:
    """Show what is wrong with the rows of the embedding, with tables to take away."""
    health = result.health
    if all(finding.status == "ok" for finding in health.findings):
        st.success(literal(words.no_problem(result)), icon=":material/check_circle:")
    else:
        _count(health.findings)
    _draw_undertrained(result, checkpoint=checkpoint)
    tables = _tables(health)
    for finding in health.findings:
        table = tables.get(finding.name)
        if table is not None and len(table):
            with st.expander(f"{finding.name}: {finding.count:,}"):
                st.markdown(literal(finding.detail))
                parts.table(table, height=min(300, 38 * (len(table) + 1)), alt=finding.name)
                slug = finding.name.lower().replace(" ", "-")
                table_files.offer(table, name=f"{checkpoint.name}-{slug}")


def _count(findings: tuple[Finding, ...]) -> None:
    with st.container(horizontal=True, gap="medium"):
        for finding in findings:
            word, symbol, color = STATUS[finding.status]
            with st.container(width=190, gap=None):
                st.metric(finding.name, f"{finding.count:,}" if finding.count else "none", help=literal(finding.detail))
                st.markdown(f":{color}-badge[:material/{symbol}: {word}]")


def _draw_undertrained(result: Embeddings, *, checkpoint: Opened) -> None:
    indicator = result.health.indicator
    st.markdown("## Under-trained tokens")
    if indicator.looks_untrained:
        st.warning(literal(indicator.statement), icon=":material/warning:")
        return
    st.markdown(literal(indicator.statement))
    if indicator.measure == "none":
        return
    judged = len(result.health.scores.dropna())
    figure = parts.drawn(
        lambda theme: score_histogram(
            result.health.scores,
            indicator,
            title=f"Scores of all ordinary tokens of {checkpoint.name}",
            subtitle=f"{len(result.undertrained):,} of {judged:,} are listed",
            theme=theme,
        )
    )
    parts.chart(figure, alt="Histogram of scores, with the threshold and the unused rows")
    if result.undertrained.empty:
        st.info(words.none_listed(judged), icon=":material/check_circle:")
    else:
        parts.table(result.undertrained, height=300, alt="Under-trained tokens")
        table_files.offer(result.undertrained, name=f"{checkpoint.name}-undertrained")
    st.caption(literal(words.UNTRAINED))


def _tables(health: Health) -> dict[str, pd.DataFrame]:
    """What each finding shows row by row."""
    groups = pd.DataFrame(
        [
            {
                "rows": group.count,
                "kind": group.what,
                "tokens": " ".join(group.tokens[:SHOWN])
                + f" … and {group.count - SHOWN:,} more" * (group.count > SHOWN),
                "ids": ", ".join(map(str, group.token_ids[:SHOWN])),
                "norm": group.norm,
            }
            for group in health.equal_rows
        ]
    )
    return {
        "NaN or infinity": health.not_finite_rows,
        "Zero rows": health.zero_rows,
        "Equal rows": groups,
        "Rows beyond the tokenizer": health.rows_beyond_tokenizer,
        "Tokens beyond the rows": health.tokens_beyond_rows,
        "Tokens never produced": health.unreachable,
    }
