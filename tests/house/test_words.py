"""Sentences about an answer stand in the words of its room, and nowhere in what computes it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest

from tests.house.reading import ROOT, SOURCES, TESTS, parsed

ANALYSES = ROOT / "inspector/analyses"
QUOTED = re.compile(r"[A-Z][^\n]*[ ][^\n]*[ ][^\n]*[.!?]")
WORD = re.compile(r"(?<![^\s(“])[A-Za-z][A-Za-z'’-]*(?=[\s,.:;)]|$)")


def sentences(node: ast.AST) -> Iterator[str]:
    """Sentences, and templates of several words, that are neither documentation, an error nor progress."""
    match node:
        case (
            ast.Raise()
            | ast.Expr(value=ast.Constant())
            | ast.Call(func=ast.Name(id="progress") | ast.Attribute(attr="_progress"))
        ):
            return
        case ast.Constant(value=str(text)):
            if is_sentence(text):
                yield text
        case ast.JoinedStr(values=parts):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
            if is_sentence(text) or ("\n" not in text and len(WORD.findall(text)) > 5):
                yield text
        case _:
            for child in ast.iter_child_nodes(node):
                yield from sentences(child)


def is_sentence(text: str) -> bool:
    ends = text.rstrip().endswith(".") or ". " in text
    return ends and "\n" not in text and len(WORD.findall(text)) > 2


def test_what_computes_an_answer_writes_no_sentence_about_it():
    paths = [*ANALYSES.glob("*/compute*.py"), *ANALYSES.glob("*/compute*/**/*.py")]
    assert len(paths) > 40
    assert {str(path): said for path in paths if (said := [*sentences(parsed(path))])} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('def f():\n    """It says what it does."""', []),
        ('raise RequestError(f"The {name} is not a number.")', []),
        ('progress(0.5, f"Comparing {count} rows of the two. Then the rest.")', []),
        ('note = "Loads completely."', []),  # a value, as a table shows it
        ('note = "It loads completely."', ["It loads completely."]),
        (
            'note = f"{a} holds numbers that none of the others holds"',
            ["… holds numbers that none of the others holds"],
        ),
        ('return Check(NAME, "the " f"file {name} is gone.")', ["the file … is gone."]),
    ],
)
def test_sentences_are_found(code, found):
    assert list(sentences(ast.parse(code))) == found


BLANK = re.compile(r"(?<![%{])\{([a-z_]\w*)[^{}]*\}(?!\})")


def forgotten(tree: ast.AST) -> Iterator[str]:
    """Texts in a function that name one of its variables in braces, and are no f-strings."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            nodes = [*ast.walk(function)]
            known = {each.id for each in nodes if isinstance(each, ast.Name)}
            known |= {each.arg for each in nodes if isinstance(each, ast.arg)}
            texts = (each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str))
            yield from (text for text in texts if known & {*BLANK.findall(text)})


def test_no_text_is_shown_with_its_blanks():
    found = {str(path): texts for path in SOURCES if (texts := [*forgotten(parsed(path))])}
    assert not found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('def f(error):\n    return "It differs by {error:.2g}" "."', 1),
        ('def f():\n    count = 3\n    return "{count} rows", f"{count} columns"', 1),
        ('def f(error):\n    return f"It differs by {error:.2g}" "."', 0),
        ('def f(error, name):\n    return f"{name} differs " "by {error:.2g}"', 1),
        ('TEXT = "{error}"\ndef f(error):\n    return TEXT.format(error=error)', 0),
        ('def f(y):\n    return dict(hovertemplate="%{y}", text=y)', 0),  # Plotly's own blanks
    ],
)
def test_forgotten_letters_are_found(code, found):
    assert len([*forgotten(ast.parse(code))]) == found


def templates(path: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Templates of a room's words that a module fills: the name, its blanks, and what is put into them."""
    tree = ast.parse(path.read_text("utf-8"))
    known = {
        each.asname or each.name: (node.module or "", each.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
        if ".words" in f"{node.module}.{each.name}"
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="format", value=ast.Name(name))) if name in known:
                template = getattr(import_module(known[name][0]), name)
            case ast.Call(func=ast.Attribute(attr="format", value=ast.Attribute(ast.Name(alias), name))) if (
                alias in known
            ):
                template = getattr(import_module(".".join(known[alias])), name)
            case _:
                continue
        blanks = [blank for _, blank, _, _ in Formatter().parse(template) if blank is not None]
        given = [each.arg or "" for each in node.keywords] + ["" for _ in node.args]
        yield name, sorted({*blanks}), sorted({*given})


def test_templates_are_filled_with_what_they_have_blanks_for():
    found = [each for path in ANALYSES.glob("*/*.py") for each in templates(path)]
    assert {"HOMELESS", "NOTHING_TO_TIE", "NO_PADDING", "JOINT_UP_TO"} <= {name for name, _, _ in found}
    assert [each for each in found if each[1] != each[2]] == []


def quoted(path: Path) -> frozenset[str]:
    """Whole sentences that a file of tests has in quotes."""
    texts = (node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant))
    return frozenset(text for text in texts if isinstance(text, str) and QUOTED.fullmatch(text))


def test_a_sentence_of_ours_that_several_files_of_tests_expect_is_written_once():
    """In `tests/sentences.py`; what a test itself writes or asks is no sentence of ours."""
    counts = Counter(text for path in TESTS for text in quoted(path))
    assert len(counts) > 500
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "inspector").rglob("*.py"))
    ours = re.sub(r'"\s*\n\s*f?"', "", source)
    assert [text for text, count in counts.items() if count > 1 and text in ours] == []
