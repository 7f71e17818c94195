"""Keep query parameters across pages; name the values that a link cannot hold.

Streamlit 1.67 takes the names of fields out of the address when the page changes, and tells the
browser so while it still is on the page that is left: the way back would lead to that page without
its inputs, and a link to a page with fields of the same name would lose what it says. Of a value
that a field cannot take it says nothing.

Two of its methods are replaced, since nothing else can do this for fields that are bound to the address: the first
works before any line of the app runs, the second alone knows whether a field refused a value or has it as its default,
and inputs kept by `st.query_params` instead would add an entry to the browser's history with every change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import StopException, get_script_run_ctx
from streamlit.runtime.state.query_params import QueryParams, parse_url_param
from streamlit.runtime.state.session_state import SessionState

from inspector.text import literal

LOST = "lost in the link"  # name in the address -> Lost
PAGE = "page"  # where the last run was
REFUSED = "refused in the link"  # name in the address -> (what it asks for, the field's value in its place)
ALONG = "came along"  # True: the page before wrote this address, no link did
CAME = "what came along"  # name -> value: of the page before, and asked for by no link, also once its field is drawn
LINKED = "a link of ours was clicked"  # True: the page that is drawn next was asked for with its inputs
ABOVE = "place above the page"  # of a run that a link began; else None
VIEWS = "views"  # page -> what its fields had in the address when it was drawn last
TAB = "tab"  # name of a page's open tab in the address
SHARED = frozenset({"checkpoint", "text"})  # a page takes these from the one before
LEFT = "names of pages that were left"  # kept by Streamlit's object, which lives as the session
MOST_CHOICES = 8  # that are listed

_populate = QueryParams.populate_from_query_string
_seed = SessionState._seed_widget_from_url


@dataclass(frozen=True, slots=True)
class LostValue:
    """A value of the address that its field could not take."""

    asked: str
    shown: str  # in its place; "" where that is nothing
    choices: tuple[str, ...] = ()  # that there are; none where they cannot be counted
    value: Any = None  # of the field: said until that changes; None: said by each run anew

    def sentence(self, name: str) -> str:
        """What is missing, and what is there instead."""
        instead = f"{self.shown} is shown instead" if self.shown else "the setting is ignored"
        there = f" Choose from: {', '.join(self.choices)}." if self.choices else ""
        return f"The link sets {name} to {self.asked}, which does not exist: {instead}.{there}"


def keep() -> None:
    """Have page changes keep the address; names that the new page has no field for do nothing."""
    QueryParams.populate_from_query_string = _populate_all
    SessionState._seed_widget_from_url = _seed_and_say


@contextmanager
def judged(page: str) -> Iterator[None]:
    """Draw a page, and say above it what its link asks for in vain."""
    state, context = st.session_state, get_script_run_ctx()
    arrived, opened = state.get(PAGE, page) != page, PAGE not in state
    state[PAGE] = page
    place = st.container()
    linked = state.pop(LINKED, False) or bool(context and context.is_history_navigation)
    state[ABOVE] = place if opened or linked else None
    state[ALONG] = arrived and not linked
    if arrived or linked:
        state[CAME] = {} if linked else st.query_params.to_dict()
        state.pop(REFUSED, None)
        _forget_left({name for name in _left() if name not in st.query_params})
    state[LOST] = {
        name: lost
        for name, lost in state.get(LOST, {}).items()
        if not (arrived or linked) and lost.value is not None and state.get(name) == lost.value
    }
    try:
        yield
        _remember(page)
    except StopException:
        _remember(page)
        raise
    finally:
        if arrived and not linked:
            state.pop(LOST, None)  # it came along from the page before; nobody asked for it here
        for name, lost in state.get(LOST, {}).items():
            place.warning(literal(lost.sentence(name)), icon=":material/link_off:")


def view(page: str) -> dict[str, list[str]]:
    """What a page's own fields had in the address when it was drawn last: a link to it leads there again.

    Without it Streamlit's client would keep the fields of the page that is left, and nothing else.
    """
    return st.session_state.get(VIEWS, {}).get(page, {})


def _remember(page: str) -> None:
    context = get_script_run_ctx()
    if context is None:
        return
    with context.session_state.query_params() as address:
        names = {binding.param_key for binding in address._bindings_by_widget.values()} - SHARED
    held = {name: st.query_params.get_all(name) for name in sorted(names) if name in st.query_params}
    st.session_state[VIEWS] = st.session_state.get(VIEWS, {}) | {page: held}


def link(label: str, slug: str, *, key: str, icon: str, inputs: Mapping[str, str]) -> None:
    """Offer a view: a page with these inputs, and all others as at first.

    A link of Streamlit's would keep what the session has for the other inputs, and the checkpoint.

    Args:
        inputs: Name in the address -> value; "checkpoint" is opened.
    """
    if not st.button(label, key=key, icon=f":material/{icon}:", type="tertiary"):
        return
    state, context = st.session_state, get_script_run_ctx()
    if context:
        with context.session_state.query_params() as address:
            for binding in list(address._bindings_by_widget.values()):
                if binding.param_key in inputs:  # a field of this page, too: it is left now
                    address.unbind_widget(binding.widget_id)
        _forget_left(_left())
    if checkpoint := inputs.get("checkpoint"):
        state["wanted"] = checkpoint
    state[LINKED] = True
    st.switch_page(f"pages/{slug}.py", query_params=inputs)


def _left() -> Collection[str]:
    """Names of fields of the pages that were left."""
    context = get_script_run_ctx()
    if context is None:
        return ()
    with context.session_state.query_params() as address:
        return frozenset(vars(address).get(LEFT, ()))


def _forget_left(names: Collection[str]) -> None:
    """Let fields of these names begin as at first.

    Streamlit keeps what a page's fields held if a fragment was to run when the page was left, and gives it to
    fields of the same names.
    """
    for name in names:
        st.session_state.pop(name, None)


def asked(name: str) -> str | None:
    """What a link asks for; None where the address came along from the page before."""
    value = st.query_params.get(name)
    return None if st.session_state.get(ALONG) or st.session_state.get(CAME, {}).get(name) == value else value


def refused(name: str, value: Any) -> str | None:
    """What a link asked for that was refused, as long as the field keeps the value that it has in its place.

    The field drops what it cannot hold, and the browser drops it from the address.
    """
    found = st.session_state.get(REFUSED, {}).get(name)
    if found and found[1] != value:
        release(name)
        return None
    return found and found[0]


def hold(name: str, linked: str, value: Any) -> None:
    """Remember what a link asks for while it is judged; `release` it where it is fine."""
    st.session_state[REFUSED] = st.session_state.get(REFUSED, {}) | {name: (linked, value)}


def release(name: str) -> None:
    """Forget what a link asked for."""
    st.session_state.get(REFUSED, {}).pop(name, None)


def refuse(sentence: str) -> NoReturn:
    """End the page with why its inputs cannot be used: above it where a link asked for them.

    A link's input may be inside an expander that is closed; what is typed is refused where it is.
    """
    place = st.session_state.get(ABOVE) or st
    place.error(literal(sentence), icon=":material/error:")
    st.stop()


def say_lost(name: str, lost: LostValue) -> None:
    """Have it said above the page that a value of the address leads nowhere."""
    st.session_state[LOST] = st.session_state.get(LOST, {}) | {name: lost}


def _populate_all(self: QueryParams, query_string: str, valid_script_hashes: set[str] | None = None) -> None:
    _populate(self, query_string)
    if valid_script_hashes is None:
        return
    for binding in list(self._bindings_by_widget.values()):
        if binding.script_hash not in valid_script_hashes:
            self.unbind_widget(binding.widget_id)
            vars(self).setdefault(LEFT, set()).add(binding.param_key)


def _seed_and_say(self: SessionState, metadata: Any, user_key: str, widget_id: str, url_value: str | list[str]) -> bool:
    if user_key == TAB and _is_of_the_page_before(self, url_value):
        self._clear_url_param(user_key)
        return False
    try:
        taken = _seed(self, metadata, user_key, widget_id, url_value)
    except OverflowError:  # 1e400 for a whole number
        self._clear_url_param(user_key)
        taken = False
    value = self[user_key] if taken else metadata.deserializer(None)
    came = self[CAME].get(user_key) == url_value if CAME in self else False
    if not came and not _is(value, url_value, metadata):
        shown, choices = _text(metadata.serializer(value)), _choices(metadata)
        lost = LostValue(_text(url_value), shown, choices, value)
        before = self[LOST] if LOST in self else {}  # noqa: SIM401, it has no get
        self[LOST] = before | {user_key: lost}
    return taken


def _is_of_the_page_before(state: SessionState, tab: str | list[str]) -> bool:
    """Whether a tab came along from a page that has one of the same name."""
    if ALONG not in state or not state[ALONG]:
        return False
    own = state[VIEWS].get(state[PAGE], {}).get(TAB, []) if VIEWS in state else []
    return own != ([tab] if isinstance(tab, str) else tab)


def _is(value: Any, url_value: str | list[str], metadata: Any) -> bool:
    """Whether a field's value is what the address says."""
    try:
        asked = parse_url_param(url_value, metadata.value_type)
        options = metadata.formatted_options
        several = asked if isinstance(asked, list) else [asked]
        if options is not None and not set(several) <= {*options}:
            return False
        if isinstance(asked, str):  # a label, or a text
            return metadata.deserializer(asked) == value
        return metadata.serializer(value) == asked
    except (ValueError, TypeError, IndexError, OverflowError):
        return False


def _choices(metadata: Any) -> tuple[str, ...]:
    options = tuple(metadata.formatted_options or ())
    return options if len(options) <= MOST_CHOICES else ()


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
