"""Tables: readable heads, names by pattern, and never more rows than a page of them."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from inspector.names import NAME, fold_rows, is_pattern
from inspector.text import literal, plural
from inspector.view.cells import column_label
from pages._ui.words import shown

ROWS = 300  # that are sent at once
NO_WORD = re.compile(r"\W+")
IN_ORDER = "as listed"
COLUMNS = {
    "nbytes": st.column_config.NumberColumn("size", format="bytes"),
    "parameters": st.column_config.NumberColumn("parameters", format="localized"),
    "own_parameters": st.column_config.NumberColumn("own parameters", format="localized"),
    "token_id": st.column_config.NumberColumn("id", format="%d"),
    "norm": st.column_config.NumberColumn("norm", format="%.3f"),
    "score": st.column_config.NumberColumn("score", format="%.3f"),
    "percentile": st.column_config.NumberColumn("percentile", format="%.1f"),
    "bias": st.column_config.NumberColumn("bias", format="%.2f"),
    "similarity": st.column_config.NumberColumn("similarity", format="%.4f"),
    "dot_product": st.column_config.NumberColumn("dot product", format="%.4f"),
    "distance": st.column_config.NumberColumn("distance", format="%.4f"),
    "trust": st.column_config.NumberColumn("true neighbors kept", format="percent"),
    "stability": st.column_config.NumberColumn("kept by another seed", format="percent"),
    "true neighbors found": st.column_config.NumberColumn(format="percent"),
    "seconds": st.column_config.NumberColumn("seconds", format="%.1f"),
    "probability": st.column_config.NumberColumn("probability", format="percent"),
    "log_probability": st.column_config.NumberColumn("log probability", format="%.3f"),
    "logit": st.column_config.NumberColumn("logit", format="%.3f"),
    "bits": st.column_config.NumberColumn("surprisal, bits", format="%.2f"),
    "pseudo_log_likelihood": st.column_config.NumberColumn("pseudo-log-likelihood", format="%.3f"),
}
PRECISE = {  # small changes with digits enough
    "cosine": st.column_config.NumberColumn("cosine", format="%.8g", width=110),  # all its digits
    "distance": st.column_config.NumberColumn("distance", format="%.4g"),
    "max_abs": st.column_config.NumberColumn("largest difference", format="%.4g"),
    "relative_change": st.column_config.NumberColumn("relative change", format="%.4g"),
}


def table(
    frame: pd.DataFrame,
    *,
    alt: str,
    height: int | None = None,
    find: str = "",
    by: str = NAME,
    columns: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    meanings: Mapping[str, str] | None = None,
) -> None:
    """Show a frame with readable heads and sizes; what is shown can be sorted, searched and copied.

    Args:
        frame: Of more than ROWS rows one page is sent.
        alt: What it shows, in words that no other table of the page has.
        height: In pixels.
        find: Key of the field that chose the rows by name: a long list of names is shown by pattern,
            and a click on a line puts its pattern there.
        by: The column of these names.
        columns: How some of its columns are shown, where COLUMNS does not say it.
        order: Columns that are seen at first, in this order; None: all.
        meanings: What the numbers of a column mean, where its name does not say it.
    """
    opened = st.session_state.get(find, "") if find else ""
    folded = fold_rows(frame, by=by, opened=opened) if find else None
    rows: pd.DataFrame = folded[0] if folded else frame
    patterns: Sequence[str] = folded[1] if folded else ()
    if is_pattern(opened):
        _offer_the_way_back(find)
    if folded:
        st.caption(
            f":material/ads_click: {plural(len(frame), 'name')} in {plural(len(rows), 'line')}: names that differ "
            "only in their numbers share a line. Click a line to open it. The downloads list every name."
        )
    rows, patterns = _page(rows, patterns, key=NO_WORD.sub("_", alt.lower()).strip("_"))
    known = COLUMNS | dict(columns or {})
    helps = {name: {"help": literal(meaning)} for name, meaning in (meanings or {}).items()}
    look = {
        "alt": alt,
        "height": height or "auto",
        "column_config": {
            name: (known.get(str(name)) or _column(str(name))) | helps.get(str(name), {}) for name in rows.columns
        },
        "column_order": order,
        "hide_index": True,
        "lazy": False,
        "placeholder": "–",  # where there is no number
    }
    _draw(rows, patterns, find=find, look=look)


def _offer_the_way_back(find: str) -> None:
    st.button(
        "Show all names",
        key=f"{find} back",
        icon=":material/arrow_back:",
        type="tertiary",
        on_click=_put,
        args=(find, ""),
    )


def _put(find: str, pattern: str) -> None:
    st.session_state[find] = pattern


def _page(rows: pd.DataFrame, patterns: Sequence[str], *, key: str) -> tuple[pd.DataFrame, Sequence[str]]:
    """The rows that are shown, and their patterns."""
    if len(rows) <= ROWS:
        return rows, patterns
    pages, options = -(-len(rows) // ROWS), [IN_ORDER, *map(str, rows.columns)]
    _forget(f"{key}_page", range(1, pages + 1))
    _forget(f"{key}_by", options)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.selectbox("Sort by", options, format_func=column_label, key=f"{key}_by", bind="query-params")
        page = st.number_input(
            f"Page of {pages:,}", 1, pages, key=f"{key}_page", bind="query-params", help=f"{ROWS} rows per page"
        )
    order = list(range(len(rows))) if by == IN_ORDER else _order(pd.Series(rows[by]).tolist())
    chosen = order[ROWS * (page - 1) : ROWS * page]
    st.caption(f"Rows {ROWS * (page - 1) + 1:,} to {ROWS * (page - 1) + len(chosen):,} of {len(rows):,}.")
    return rows.iloc[chosen], [patterns[place] for place in chosen] if patterns else patterns


def _forget(key: str, there: Container[Any]) -> None:
    """Let go of a choice that the rows no longer have."""
    if st.session_state.get(key) is not None and st.session_state[key] not in there:
        del st.session_state[key]


def _order(values: Sequence[Any]) -> list[int]:
    """Places by value: numbers from the largest, texts from the first, and last what has none."""
    texts = any(isinstance(value, str) for value in values)
    known = [place for place, there in enumerate(pd.notna(pd.Series(values, dtype=object))) if there]
    rest = sorted({*range(len(values))}.difference(known))
    return sorted(known, key=lambda place: values[place], reverse=not texts) + rest


def _draw(rows: pd.DataFrame, patterns: Sequence[str], *, find: str, look: dict[str, Any]) -> None:
    if not any(patterns):
        st.dataframe(shown(rows), **look)
        return
    key = f"{find} lines of {st.session_state.get(find, '')}"

    def open_line() -> None:
        cells = st.session_state[key]["selection"]["cells"]
        if cells and (pattern := str(patterns[cells[0][0]])):
            _put(find, pattern)

    st.dataframe(shown(rows), key=key, on_select=open_line, selection_mode="single-cell", **look)


def _column(name: str) -> Any:
    if name.endswith("_nbytes"):
        return st.column_config.NumberColumn(column_label(name), format="bytes")
    return st.column_config.Column(column_label(name))
