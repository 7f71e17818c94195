"""The options of every question: one definition, which verb, address, page and report repeat."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import MISSING as REQUIRED
from typing import Any, cast, get_args, get_origin

import pytest
import typer.main
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from inspector.analyses.overview.compute import overview
from inspector.catalog import CATALOG, request_of
from inspector.cli import child
from inspector.cli.main import app
from inspector.demo import DEMOS
from inspector.errors import InspectorError, RequestError
from inspector.report.content import Context, ReportOptions
from inspector.report.provenance import typed
from inspector.report.sections import SECTIONS
from inspector.request import (
    BESIDE,
    Option,
    Request,
    defaults,
    flag_of,
    kinds_of,
    number_text,
    options,
    parse_list,
    plain_kind,
)
from inspector.results.checkpoint import Opened
from tests.conftest import silent
from tests.house.test_bound_inputs import inputs
from tests.queries import from_query

VERBS = sorted(analysis.verb for analysis in CATALOG.values())
EVERY = pytest.mark.parametrize("verb", VERBS)
# Rules between options refuse many of the requests that are drawn.
DRAWING = {"deadline": None, "suppress_health_check": [HealthCheck.filter_too_much]}
# Names that mean one thing, whatever the question.
SHARED = ("device", "dtype", "k", "learning_rate", "other", "seed", "steps", "text")
EQUAL = ("device", "dtype", "seed")  # those whose defaults and bounds are equal, too
# Inputs that pages draw themselves: an example is the first text, `other` is chosen by name, heads
# are those that the checkpoint has, and a cell of the lens is clicked.
DRAWN = {"head", "layer", "other", "position", "text"}
# What a report asks besides its own setting, where that is not the default: example texts, the head
# that the checkpoint has, and the second checkpoint.
CHOSEN = {"text", "texts", "device", "dtype", "seed", "pair", "choices", "head", *BESIDE}
SINGLE_LINES = st.text(min_size=1).filter(lambda text: text.splitlines() == [text])


def test_every_question_has_a_request() -> None:
    for verb in VERBS:
        assert request_of(verb).verb == verb


def values(name: str, kind: Any, known: Option) -> st.SearchStrategy[Any]:
    """Values of an option's type, within its bounds."""
    plain = plain_kind(kind)
    if name in BESIDE:  # a command line finds what it names
        return st.sampled_from(sorted(DEMOS))
    if known.choices:
        return st.sampled_from(known.choices)
    if get_origin(plain) is tuple:
        return lists(plain, known)
    if plain is float:
        least = known.least if known.above is None else known.above
        return st.floats(least, known.most, exclude_min=known.above is not None,
                         allow_nan=False, allow_infinity=False)  # fmt: skip
    whole = st.integers(*(None if bound is None else int(bound)
                          for bound in (known.least, known.most)))  # fmt: skip
    return {bool: st.booleans(), int: whole, str: st.text()}[plain]


def lists(kind: Any, known: Option) -> st.SearchStrategy[tuple[Any, ...]]:
    if get_args(kind)[0] is int:
        items: st.SearchStrategy[Any] = st.integers(0, 9_999)
    elif known.split:  # spaces around an item do not count
        items = SINGLE_LINES.filter(lambda text: text == text.strip())
    else:
        items = SINGLE_LINES
    unique = known.split
    return st.lists(items, max_size=min(known.items or 3, 3), unique=unique).map(tuple)


@st.composite
def requests(draw: st.DrawFn, verb: str) -> Request:
    """Any request of a question."""
    request = request_of(verb)
    kinds, given_values = kinds_of(request), {}
    for name, known in options(request).items():
        possible = values(name, kinds[name], known)
        if name not in defaults(request):
            value = draw(possible)
            assume(value != ())  # what must be given is given
        elif defaults(request)[name] is None:
            value = draw(st.none() | possible)
        else:
            value = draw(possible)
        given_values[name] = value
    try:
        return request(**given_values)
    except RequestError:  # a rule between options
        assume(False)
        raise


@EVERY
@settings(max_examples=60, **DRAWING)
@given(data=st.data())
def test_an_address_gives_the_request_back(verb: str, data: st.DataObject) -> None:
    request = data.draw(requests(verb))
    assert from_query(type(request), request.to_query()) == request


class Recorder:
    """A checkpoint that remembers what it is asked."""

    def __init__(self, typed: str) -> None:
        self.typed = typed
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def ask(self, verb: str, **parameters: Any) -> None:
        given = {name: value.typed if isinstance(value, Recorder) else value for name, value in parameters.items()}
        self.asked.append((verb, given))
        raise InspectorError("That is all.")


@functools.cache
def commands() -> Any:
    """Every verb as the command line has it."""
    return typer.main.get_command(app)


Call = Callable[[str, list[str]], dict[str, Any]]


@pytest.fixture(scope="module")
def call() -> Iterator[Call]:
    """Parse a command line; gives what it asks the checkpoint."""

    def called(verb: str, argv: list[str]) -> dict[str, Any]:
        recorders: list[Recorder] = []

        def start(task: child.Task, *_: Any, **__: Any) -> None:
            recorders.extend(Recorder(reference.value) for reference in task.references)
            task.work(cast("list[Any]", recorders), silent)

        patch.setattr(child, "start", start)
        commands().main([verb, "demo-bert", *argv], standalone_mode=False)
        ((asked, parameters),) = recorders[0].asked
        assert asked == verb
        return parameters

    with pytest.MonkeyPatch.context() as patch:
        yield called


@EVERY
@settings(max_examples=30, **DRAWING)
@given(data=st.data())
def test_a_command_line_gives_the_request_back(verb: str, call: Call, data: st.DataObject) -> None:
    request = data.draw(requests(verb))
    assert call(verb, request.to_argv()) == request.parameters()


@EVERY
def test_a_command_line_has_the_defaults_and_says_the_bounds(verb: str) -> None:
    request = request_of(verb)
    shown = {each.name: each for each in commands().commands[verb].params}
    for name, known in options(request).items():
        if not flag_of(name, known).startswith("-"):
            continue  # an argument of its own, as CHECKPOINT is
        default = defaults(request).get(name, REQUIRED)
        assert shown[name].required == (default is REQUIRED)
        if default is not REQUIRED:
            assert shown[name].default == (None if isinstance(default, tuple) else default)
        assert known.help in shown[name].help
        assert known.bounds in shown[name].help
        assert all(choice in shown[name].help for choice in known.choices)


def draw_all(verb: str) -> None:
    """A page of all options of a question."""
    import streamlit as st

    from inspector.catalog import request_of
    from inspector.request import options as known
    from pages._ui import options

    request = request_of(verb)
    st.session_state["drawn"] = {name: options.ask(request, name) for name in known(request)}


@EVERY
def test_a_page_begins_with_the_defaults(verb: str) -> None:
    page = AppTest.from_function(draw_all, kwargs={"verb": verb}).run()
    assert not page.exception
    drawn, request = page.session_state["drawn"], request_of(verb)
    for name, default in defaults(request).items():
        empty = plain_kind(kinds_of(request)[name]) is str and default is None
        assert (drawn[name] or None if empty else drawn[name]) == default, name


def test_pages_draw_options_from_their_request() -> None:
    """No page states the default or the bounds of an option again."""
    named = defaultdict(set)  # slug -> options of its questions
    for each in CATALOG.values():
        named[each.slug] |= options(request_of(each.verb)).keys() - DRAWN
    named["ui"] = {"device", "dtype"}
    again = set()
    for path, _, call in inputs():
        slug = path.parts[0].removeprefix("_").removesuffix(".py")
        key = next((each.value for each in call.keywords if each.arg == "key"), None)
        if isinstance(key, ast.Constant) and key.value in named[slug]:
            again.add((str(path), key.value))
    assert not again


@pytest.fixture
def contexts(open_path) -> list[Context]:
    """What the sections of a report know of each demo."""
    found = []
    for name, demo in DEMOS.items():
        opened, other = (Opened(each, each, each, ()) for each in (name, "demo-gpt2"))
        described = overview(open_path(demo.folder), progress=silent)
        setting = ReportOptions(text="a [MASK].", device="cpu", dtype="bfloat16", seed=7)
        found.append(Context(opened, described, setting, dict.fromkeys(BESIDE, other)))
    return found


def test_a_report_asks_what_its_commands_and_links_ask(contexts: list[Context], call: Call) -> None:
    seen = set()
    for context in contexts:
        for section in SECTIONS:
            for request in section.ask(context):
                verb, *words = typed(context, request)
                seen.add(verb)
                assert call(verb, words) == request.parameters()
                differs = {
                    name
                    for name, value in request.parameters().items()
                    if value != defaults(type(request)).get(name, REQUIRED)
                }
                assert differs <= CHOSEN, verb
                if section.slug in {each.slug for each in CATALOG.values() if each.verb == verb}:
                    assert from_query(type(request), section.query(context)) == request
    assert {"overview", "sharing", "classes", "heads", "training", "compare", "check"} <= seen


@pytest.mark.parametrize("name", SHARED)
def test_one_name_means_one_thing(name: str) -> None:
    found = defaultdict(list)
    for verb in VERBS:
        request = request_of(verb)
        if name in options(request):
            known, kind = options(request)[name], plain_kind(kinds_of(request)[name])
            default = defaults(request).get(name)
            assert default is None or type(default) is kind, verb
            low = known.least is not None or known.above is not None
            assert (low and known.most is not None) == (kind in {int, float}), verb
            same = (default, known.bounds, known.choices) if name in EQUAL else ()
            found[kind, flag_of(name, known), known.split, *same].append(verb)
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("number", "text"),
    [(1_000_000, "1,000,000"), (0.15, "0.15"), (1e-7, "1e-07"), (2.0, "2"), (float("nan"), "nan"),
     (float("inf"), "Infinity"), (-(10**400), "-1e+400")],
    ids=lambda value: str(value)[:9],
)  # fmt: skip
def test_numbers_in_a_refusal_are_short(number: float, text: str) -> None:
    assert number_text(number) == text


def test_a_list_that_is_too_long_is_one_sentence() -> None:
    with pytest.raises(RequestError, match=r"^The list 'a{40}'… is too long: shorten it\.$"):
        parse_list("a" * 200_000)
