"""No sentence for a person holds what Python calls an exception."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.reading import ROOT, SOURCES, parsed

ENDS = ("Error", "Exception")
LOGS = ("LOG.", "sys.stderr.write", "logging.")


def namings(tree: ast.AST) -> Iterator[str]:
    """Places where the class of a caught exception is spelled out, other than for a log or a comparison."""
    for scope in ast.walk(tree):
        errors = set(_errors(scope))
        skipped = (
            {id(part) for node in ast.walk(scope) if _is_unseen(node) for part in ast.walk(node)} if errors else set()
        )
        for node in ast.walk(scope) if errors else ():
            if id(node) not in skipped and _named(node) in errors:
                yield ast.unparse(node)


def _errors(scope: ast.AST) -> Iterator[str]:
    """Names of the exceptions that a handler catches or a function is given."""
    match scope:
        case ast.ExceptHandler(name=str(name)):
            yield name
        case ast.FunctionDef(args=ast.arguments(args=given, kwonlyargs=named)):
            yield from (
                arg.arg for arg in (*given, *named) if arg.annotation and ast.unparse(arg.annotation).endswith(ENDS)
            )


def _is_unseen(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and ast.unparse(node.func).startswith(LOGS))


def _named(node: ast.AST) -> str | None:
    """The variable whose class is spelled out here."""
    match node:
        case ast.Attribute(
            value=ast.Call(func=ast.Name(id="type"), args=[ast.Name(id=name)]), attr="__name__" | "__qualname__"
        ):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr="__class__"):
            return name
        case (
            ast.FormattedValue(value=ast.Name(id=name), conversion=114)
            | ast.Call(func=ast.Name(id="repr"), args=[ast.Name(id=name)])
        ):
            return name
    return None


def test_no_source_names_an_exception_to_a_person():
    found = {str(path.relative_to(ROOT)): named for path in SOURCES if (named := [*namings(parsed(path))])}
    assert not found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('raise ValueError(f"Broken ({type(error).__name__}).")', ["type(error).__name__"]),
        ('raise ValueError(f"Broken ({error.__class__.__name__}).")', ["error.__class__"]),
        ('return f"Broken: {error!r}"', ["{error!r}"]),
        ('text = "Broken: " + repr(error)', ["repr(error)"]),
        ('LOG.warning("broken: %s", type(error).__name__)', []),
        ('full = type(error).__name__ == "OutOfMemoryError"', []),
        ('raise ValueError(f"Broken: {type(model).__name__} does not run.")', []),
    ],
)
@pytest.mark.parametrize(
    "scope", ["try:\n    run()\nexcept Exception as error:\n    {}", "def f(error: Exception):\n    {}"]
)
def test_names_of_exceptions_are_found(scope, line, found):
    assert [text.removeprefix("f'").removesuffix("'") for text in namings(ast.parse(scope.format(line)))] == found
