"""The project's own files, parsed."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "app.py", *(path for part in ("inspector", "pages") for path in sorted((ROOT / part).rglob("*.py")))]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The names of a file's functions, and of the methods of its classes."""
    classes = [node for node in parsed(path).body if isinstance(node, ast.ClassDef)]
    bodies = [*parsed(path).body, *(node for each in classes for node in each.body)]
    return frozenset(node.name for node in bodies if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
