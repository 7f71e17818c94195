"""The catalog reads from its functions what they return and show."""

from __future__ import annotations

import dataclasses
from hashlib import sha1
from pathlib import Path

import pytest

from inspector.catalog import CATALOG, find, read_annotations, request_of
from inspector.errors import InspectorError
from inspector.request import options

IMPORTS = "from __future__ import annotations\nfrom inspector.results.placement import Placement as Where\n"


def written(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that fails if it is imported, and its function."""
    monkeypatch.syspath_prepend(folder)
    module = f"written_{sha1(text.encode()).hexdigest()}"
    (folder / f"{module}.py").write_text(f"{IMPORTS}{text}\nraise SystemExit\n")
    return f"{module}:asked"


@pytest.mark.parametrize("verb", CATALOG)
def test_every_question_says_what_it_returns_and_shows(verb: str) -> None:
    """By classes that any process can import, and which travel; a batch has no part to show."""
    question = CATALOG[verb]
    assert dataclasses.is_dataclass(find(question.result))
    assert not question.partial or (dataclasses.is_dataclass(find(question.partial)) and not question.batch)


def test_the_lens_shows_rows_and_padding_its_own_answer() -> None:
    shown = {verb: question.partial.rpartition(".")[2] for verb, question in CATALOG.items() if question.partial}
    assert shown == {"lens": "result:LensRows", "padding": "result:Padding"}


def test_annotations_are_read_without_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def asked(checkpoint, *, progress, show: Show[Where] | None = None) -> Where: ..."
    place = "inspector.results.placement:Placement"
    assert read_annotations(written(tmp_path, text, monkeypatch)) == (place, place)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def asked(checkpoint, *, progress): ...", "does not say what it returns"),
        ("def asked(checkpoint, *, progress) -> Here: ...\nclass Here: ...", "does not say what it returns"),
        ("def asked(checkpoint, *, progress) -> Where | None: ...", "does not say what it returns"),
        ("def asked(checkpoint, *, progress, show) -> Where: ...", "does not say what it shows"),
        ("def asked(checkpoint, *, progress, show: Show | None = None) -> Where: ...", "does not say what it shows"),
        ("asked = print", "is not defined there"),
    ],
)
def test_an_annotation_that_is_missing_or_wrong_is_named(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InspectorError, match=rf"^written_\w+:asked {expected}.*\.$"):
        read_annotations(written(tmp_path, text, monkeypatch))


def test_a_question_without_options_needs_no_request_class() -> None:
    request = request_of("sharing")
    assert (request.__name__, request.verb, options(request)) == ("SharingRequest", "sharing", {})
    assert (request().to_argv(), request().to_query(), request().parameters()) == ([], {}, {})
    assert request_of("sharing") is request
