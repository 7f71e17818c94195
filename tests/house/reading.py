"""What the tests' own files say: which functions check something, what they call, and what they reach into."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
PRODUCT = sorted(
    path for part in ("inspector", "pages", "tools") for path in (ROOT / part).rglob("*.py")
)  # fmt: skip
PATCHING = {"setattr", "delattr", "getattr", "hasattr", "object"}  # which take names as text
DEFINED = re.compile(r"(?:def|class) (_\w+)|(?:self|cls)\.(_\w+)|^ *(_\w+)(?: =|:)", re.MULTILINE)
CHECKING = {"raises", "fail", "warns", "expect", "run_state_machine_as_test"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def functions(tree: ast.Module) -> dict[str, Function]:
    """The functions of a file, and the methods of its classes, by name."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    bodies = [*tree.body, *(node for each in classes for node in each.body)]
    return {node.name: node for node in bodies if isinstance(node, Function)}


def functions_of(path: Path) -> dict[str, Function]:
    return functions(parsed(path))


@cache
def aliases(tree: ast.Module) -> dict[str, ast.expr]:
    """What a file gives a name to, such as a function with some of its arguments."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {each.id: node.value for each in targets if isinstance(each, ast.Name)}
    return found


def tests(tree: ast.Module) -> Iterator[Function]:
    return (node for name, node in functions(tree).items() if name.startswith("test_"))


@cache
def named(node: ast.AST) -> set[str]:
    """Every name and attribute that a piece of code mentions."""
    walked = list(ast.walk(node))
    names = {each.id for each in walked if isinstance(each, ast.Name)}
    return names | {each.attr for each in walked if isinstance(each, ast.Attribute)}


@cache
def asserts(node: ast.AST) -> bool:
    """Whether it can fail by itself."""
    if any(isinstance(each, ast.Assert | ast.Raise) for each in ast.walk(node)):
        return True
    return any(name in CHECKING or name.startswith("assert_") for name in named(node))


@cache
def brought(tree: ast.Module) -> dict[str, tuple[Path, str]]:
    """Functions that a file imports from the tests and the tools: file and name there, by name here."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in {"tests", "tools"}:
            here = ROOT.joinpath(*node.module.split("."))
            path = here.with_suffix(".py")
            if path.exists():
                found |= {each.asname or each.name: (path, each.name) for each in node.names}
            for whole in (here / f"{each.name}.py" for each in node.names):  # whose functions are attributes
                found |= {name: (whole, name) for name in functions(parsed(whole))} if whole.exists() else {}
    return found


@cache
def checks(path: Path, name: str, hops: int = 3) -> bool:
    """Whether a function can fail: by an assertion, an expected error, or a helper that has one."""
    return checks_in(parsed(path), name, hops)


def checks_in(tree: ast.Module, name: str, hops: int = 3) -> bool:
    """The same of a file that was read."""
    mine, others = functions(tree) | aliases(tree), brought(tree)
    function = mine.get(name)
    if function is None:
        return False
    if asserts(function):
        return True
    fixtures = {each.arg for each in function.args.args} if isinstance(function, Function) else set()
    called = named(function) | fixtures
    return hops > 0 and (
        any(checks_in(tree, each, hops - 1) for each in called & mine.keys() - {name})
        or any(checks(*others[each], hops - 1) for each in called & others.keys())
    )


def marks(path: Path, name: str) -> set[str]:
    """The markers of a test: its own and its file's."""
    tree = parsed(path)
    nodes: list[ast.AST] = list(functions(tree)[name].decorator_list)
    nodes += [value for alias, value in aliases(tree).items() if alias == "pytestmark"]
    walked = [each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    return {each.attr for each in walked if isinstance(each.value, ast.Attribute) and each.value.attr == "mark"}


def users_of(tree: ast.Module, wanted: str) -> set[str]:
    """The functions of a file that mention a name, or another name of the file that stands for it."""
    means = {name: named(node) for name, node in (functions(tree) | aliases(tree)).items()}
    reached = {wanted}
    while more := {name for name, mentioned in means.items() if mentioned & reached} - reached:
        reached |= more
    return reached - {wanted}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("_")


def private_names(text: str) -> set[str]:
    """What a file defines for itself alone: functions, classes, values and attributes."""
    return {name for name in chain.from_iterable(DEFINED.findall(text)) if is_private(name)}


def patched_constants(tree: ast.Module) -> set[str]:
    """Constants that are given another value: what a parameter would be for."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            texts = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            found |= {text.rpartition(".")[2] for text in texts if isinstance(text, str)}
    return {name for name in found if name.isupper()}


def reached(tree: ast.Module) -> set[str]:
    """Private names of others: attributes, imports, and texts that name what is to be patched."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name("self" | "cls")):
                pass
            case ast.Attribute(attr=name):
                found.add(name)
            case ast.ImportFrom(names=names):
                found |= {each.name for each in names}
            case ast.Call(func=ast.Attribute(attr=call) | ast.Name(id=call), args=args) if call in PATCHING:
                texts = [each.value for each in args if isinstance(each, ast.Constant)]
                found |= {text.rpartition(".")[2] for text in texts if isinstance(text, str)}
            case _:
                pass
    return {name for name in found if is_private(name)}
