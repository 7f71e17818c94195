"""Ask for one option of a request: its name is the key, and the name in the address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, get_origin

import streamlit as st

from inspector.errors import RequestError
from inspector.request import (
    Option,
    Request,
    check,
    defaults,
    from_text,
    kinds_of,
    label_of,
    named_field,
    options,
    plain_kind,
    to_text,
)
from inspector.text import literal
from pages._ui import address

T = TypeVar("T", bound=Request)


def ask(request: type[Request], name: str, **look: Any) -> Any:
    """Draw the field of one option, as its type and bounds want it.

    Args:
        look: Further arguments of the field, such as placeholder, format or default; with a height
            a text has several lines; `key` names one that another question of the page has, too;
            `segmented` shows choices side by side.

    Returns:
        The value that was chosen. Where it cannot be read, the page says why and ends here.
    """
    known, kind = options(request)[name], plain_kind(kinds_of(request)[name])
    look = {"label": label_of(name, known), "key": name, "bind": "query-params", "help": _help(known), **look}
    linked = address.asked(look["key"])  # a field drops what it cannot hold, and says nothing
    default = look.pop("default", defaults(request).get(name))
    if known.choices:
        value = _choice(known, default, look)
    elif kind is bool:
        value = st.toggle(value=bool(default), **look)
    elif kind in {int, float}:
        value = _number(known, kind, default, look)
    else:
        return _text(request, name, default, look)
    _judge(request, name, linked, key=look["key"], value=value)
    return value


def _judge(request: type[Request], name: str, linked: str | None, *, key: str, value: Any) -> None:
    """Refuse what a link asks for and the field cannot hold, until the field is changed."""
    linked = address.refused(key, value) if linked is None else linked
    if linked is None:
        return
    address.hold(key, linked, value)
    with _refusals(request):
        check(name, options(request)[name], from_text(linked, plain_kind(kinds_of(request)[name]), name=name))
    address.release(key)


def make(request: type[T], **values: Any) -> T:
    """Make the request; where its values do not fit together, the page says so and ends here."""
    with _refusals(request):
        return request(**values)


def _help(known: Option) -> str:
    bounds = f" ({known.bounds})" if known.bounds else ""
    return literal(f"{known.help}{bounds}.")


def _choice(known: Option, default: Any, look: dict[str, Any]) -> Any:
    if look.pop("segmented", False):
        return st.segmented_control(options=known.choices, default=default, required=default is not None, **look)
    place = None if default is None else known.choices.index(default)
    return st.selectbox(options=known.choices, index=place, **look) or default


def _number(known: Option, kind: Any, default: Any, look: dict[str, Any]) -> Any:
    least = known.least if known.least is not None else known.above
    return kind(
        st.number_input(
            value=kind(default),
            min_value=None if least is None else kind(least),
            max_value=None if known.most is None else kind(known.most),
            step=kind(known.step or 1),
            **look,
        )
    )


def _text(request: type[Request], name: str, default: Any, look: dict[str, Any]) -> Any:
    known, kind = options(request)[name], plain_kind(kinds_of(request)[name])
    listed = get_origin(kind) is tuple
    begin = "" if default is None else to_text(default, split=known.split)
    lines = "height" in look or (listed and not known.split)
    field = st.text_area if lines else st.text_input
    typed = field(value=begin, **look)
    with _refusals(request):
        value = from_text(typed, kind, name=name, split=known.split)
        check(name, known, value)
    return value


@contextmanager
def _refusals(request: type[Request]) -> Iterator[None]:
    """Say why a request cannot be made, and end the page there."""
    try:
        yield
    except RequestError as error:
        address.refuse(named_field(error, request))
