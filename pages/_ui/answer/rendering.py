"""A view on a page: its blocks as the page draws them, or what the page puts in the place of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st
from pandas.api.types import is_object_dtype, is_string_dtype

from inspector.names import find_rows
from inspector.request import Request
from inspector.text import literal
from inspector.view.blocks import Block, Bullets, Code, Facts, Figure, Table
from inspector.view.cells import cell_text, column_label
from inspector.view.view import Headline, View, view_of
from pages._ui import finding, parts, table_files
from pages._ui.words import listed

WHY = "Why"  # the tab of questions and answers
LONG, HEIGHT = 10, 360  # rows of a table that are drawn in this many pixels
SOUGHT = 25  # names that nobody needs to search
FEW, WORDY = 20, 60  # rows of a table that is written out, so that its texts of this many characters wrap
VERDICTS = {
    None: (st.markdown, ""),
    "ok": (st.success, ":material/check_circle:"),
    "note": (st.info, ":material/info:"),
    "warning": (st.warning, ":material/warning:"),
    "problem": (st.error, ":material/error:"),
}

Draw = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class PageView:
    """A view on a page."""

    view: View
    name: str  # of the checkpoint: files of tables begin with it
    # Class of a block, and its name ("" where it has none) -> what draws it on this page
    instead: Mapping[tuple[type[Block], str], Callable[[Any], Any]] = field(default_factory=dict)
    shares: tuple[int, int] = (7, 3)  # of the width that the picture takes, and what is beside it
    columns: Mapping[str, Any] = field(default_factory=dict)  # of its tables, where they differ from other pages'

    @classmethod
    def of(cls, result: Any, request: Request, *, name: str, **look: Any) -> PageView:
        """Arrange an answer, as its room says.

        Args:
            result: The answer.
            request: What was asked.
            name: Of the checkpoint.
            look: Further fields.
        """
        view = view_of(result, request, name=name)
        if view is None:
            raise AssertionError(f"{request.verb} has no view.")
        return cls(view, name, **look)

    def show(
        self, tabs: Mapping[str, Draw | None] | None = None, *, opened_by: Mapping[str, str] | None = None
    ) -> None:
        """Draw all of it: the answer, and the tabs below."""
        self.answer()
        self.below(tabs, opened_by=opened_by)

    def answer(self, selected: Callable[[Any], None] | None = None) -> None:
        """Draw what is seen at once; a picture without anything beside it, and the reverse, has the whole width.

        Args:
            selected: Draws, above the rest that is beside the picture, what belongs to what its replacement on this
                page gave, such as a mark that was clicked; None is given where nothing was.
        """
        self.headline()
        if self.view.picture is None or self.view.picture.figure is None:
            with st.container(key="picture"):
                self.beside(selected)
            return
        if not self.view.beside and not selected:
            with st.container(key="picture"):
                self.picture()
            return
        picture, side = parts.main_row(self.shares)
        with picture:
            given = self.picture()
        with side:
            self.beside(selected, given)

    def flat(self) -> None:
        """Draw all of it, one below the other: for a tab of a page."""
        self.headline()
        self.picture()
        self.beside()
        for tab in self.view.tabs:
            self.blocks(tab.blocks)
        if self.view.why:
            with st.expander(WHY):
                self.why()

    def headline(self) -> None:
        """Draw the answer in a sentence."""
        draw_headline(self.view.headline)

    def picture(self) -> Any:
        """Draw the picture, no higher than a screen; gives what its replacement on this page gives."""
        figure = self.view.picture.figure if self.view.picture else None
        if figure is None:
            return None
        if replacement := self._instead(figure):
            return replacement(figure)
        parts.picture(parts.drawn(figure.draw), alt=figure.alt, key=figure.name)
        return None

    def beside(self, selected: Callable[[Any], None] | None = None, given: Any = None) -> None:
        """Draw what belongs to the picture; the arguments are those of `answer`."""
        if selected:
            selected(given)
        for block in self.view.beside:
            self.block(block)

    def below(
        self,
        more: Mapping[str, Draw | None] | None = None,
        *,
        first: Mapping[str, Draw] | None = None,
        opened_by: Mapping[str, str] | None = None,
    ) -> None:
        """Offer the tabs; of those that are closed nothing is made.

        Args:
            more: Tabs that only a page has; one with the name of a tab of the view takes its place, and None leaves
                that one out: the page shows elsewhere what is in it.
            first: Tabs that only a page has and that stand before those of the view.
            opened_by: As for `parts.in_tabs`.
        """
        drawn: dict[str, Draw | None] = dict(first or {})
        drawn |= {tab.name: lambda tab=tab: self.blocks(tab.blocks) for tab in self.view.tabs} | dict(more or {})
        if self.view.why:
            drawn[WHY] = self.why
        draw_tabs({name: draw for name, draw in drawn.items() if draw}, opened_by=opened_by)

    def tab(self, name: str) -> None:
        """Draw what is in one of the tabs."""
        self.blocks(next(tab.blocks for tab in self.view.tabs if tab.name == name))

    def named(self, name: str) -> None:
        """Draw, of what belongs to the picture, the blocks of a name."""
        self.blocks(block for block in self.view.beside if getattr(block, "name", "") == name)

    def why(self) -> None:
        """Answer what readers ask."""
        for each in self.view.why:
            st.markdown(f"**{literal(each.question)}**\n\n{literal(each.answer)}")

    def blocks(self, blocks: Iterable[Any]) -> None:
        """Draw blocks one below the other, figures in pairs; where there are none, say so."""
        groups = [(kind, list(group)) for kind, group in groupby(blocks, type)]
        for kind, group in groups:
            places = parts.grid(len(group), wide=2) if kind is Figure else [st.container() for _ in group]
            for place, block in zip(places, group, strict=False):
                with place:
                    self.block(block)
        if not groups:
            st.info("There is nothing to list here.", icon=":material/info:")

    def block(self, block: Block) -> None:
        """Draw a block, or what this page has in its place."""
        if replacement := self._instead(block):
            replacement(block)
        elif isinstance(block, Table):
            self.table(block)
        elif isinstance(block, Figure):
            parts.chart(parts.drawn(block.draw), alt=block.alt, key=block.name)
        elif isinstance(block, Facts):
            parts.facts(dict(block.pairs))
        elif isinstance(block, Code):
            st.code(block.text, language=block.language or None, wrap_lines=True)
        else:
            st.markdown(listed(block.items) if isinstance(block, Bullets) else literal(block.text))

    def _instead(self, block: Block) -> Callable[[Any], Any] | None:
        return self.instead.get((type(block), getattr(block, "name", "")))

    def table(self, table: Table) -> None:
        """Draw a table, and offer it as files."""
        if table.by in table.frame.columns and len(table.frame) > SOUGHT:
            _find(table, file=f"{self.name}-{table.name}", columns=self.columns)
            return
        st.markdown(f"**{literal(table.title)}**")
        if _is_prose(table.frame):
            with st.container(key=f"written_{table.name}"):
                st.markdown(_written_out(table))
            table_files.offer(table.frame, name=f"{self.name}-{table.name}")
            return
        height = HEIGHT if len(table.frame) > LONG else None
        parts.table(
            table.frame,
            alt=table.title,
            height=height,
            by=table.by,
            columns=self.columns,
            order=table.seen or None,
            meanings=table.meanings,
        )
        table_files.offer(table.frame, name=f"{self.name}-{table.name}")


def _is_prose(frame: pd.DataFrame) -> bool:
    """Whether cells of a short table are sentences, which a grid would cut."""
    return len(frame) <= FEW and any(
        isinstance(cell, str) and len(cell) > WORDY and cell.endswith(".") for column in frame for cell in frame[column]
    )


def _written_out(table: Table) -> str:
    """A table in Markdown; the first column is what a row is called."""
    shown = table.frame.loc[:, list(table.seen)] if table.seen else table.frame
    rows = [[f"**{literal(column_label(name))}**" for name in shown.columns], ["---"] * len(shown.columns)]
    for record in shown.to_dict("records"):
        rows.append([literal(cell_text(value, str(name))) for name, value in record.items()])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def draw_headline(headline: Headline) -> None:
    """Draw an answer in a sentence: a judged one with a sign."""
    show, icon = VERDICTS[headline.verdict]
    if icon:
        show(literal(headline.text), icon=icon)
    else:
        show(f"**{literal(headline.text)}**")


def draw_tabs(tabs: Mapping[str, Draw], *, opened_by: Mapping[str, str] | None = None) -> None:
    """Draw the tab that is open."""
    if not tabs:
        return
    for place, draw in zip(parts.in_tabs(*tabs, opened_by=opened_by), tabs.values(), strict=True):
        if place.open:
            with place:
                draw()


@st.fragment
def _find(table: Table, *, file: str, columns: Mapping[str, Any]) -> None:
    """List names that can be searched."""
    text = finding.field(f"Find in: {table.title}", placeholder="part of a name, or a pattern such as layers.*.bias")
    finding.listed(
        find_in(table.frame, text, by=table.by),
        "row",
        of=f"{len(table.frame):,} rows.",
        name=file,
        alt=table.title,
        by=table.by,
        columns=columns,
    )


def find_in(frame: pd.DataFrame, text: str, *, by: str) -> pd.DataFrame:
    """Rows in whose texts a text is found; one that is the whole text of some means those alone.

    Args:
        frame: A column of texts, and others.
        text: Also a pattern of names.
        by: The column of names.
    """
    kinds = frame.drop(columns=by)
    others = [str(name) for name, kind in kinds.items() if is_object_dtype(kind) or is_string_dtype(kind)]
    texts = pd.DataFrame(frame[[by, *others]]).map(lambda value: value if isinstance(value, str) else "")
    whole = texts.eq(text).any(axis=1) if text else pd.Series(data=False, index=frame.index)
    kept = texts[whole] if whole.to_numpy().any() else find_rows(texts, text, [by, *others])
    return pd.DataFrame(frame.loc[kept.index])
