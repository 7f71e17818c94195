"""Imports run downward only, and the web process stays light: the architecture, enforced."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.house.reading import ROOT, SOURCES, parsed

HEAVY = {"torch", "transformers", "umap", "tokenizers", "safetensors", "numba", "sklearn", "ray"}

# What each part may import of the others; a floor may always import itself.
GROUND = {
    "errors", "settings", "catalog", "progress", "results", "text", "names", "demo", "request", "placing", "program",
}  # fmt: skip
ALLOWED = {
    "errors": {"text"},
    "program": set(),
    "settings": {"errors", "program"},
    "catalog": {"request", "errors", "program"},
    "request": {"errors"},
    "placing": {"request", "settings"},
    "progress": set(),
    "text": set(),
    "names": set(),
    "results": set(),
    "demo": set(),
    "store": GROUND,
    "models": GROUND | {"store"},
    "sandbox": GROUND | {"store"},
    "plotting": {"errors", "results", "text", "names"},
    "view": GROUND | {"plotting"},  # for type checkers alone
    "render": GROUND | {"view"},
    "browser": {"errors"},
    "batch": GROUND | {"store"},
    "report": GROUND | {"store", "plotting", "browser", "view"},
    "cli": GROUND | {"store", "sandbox", "render", "report", "batch", "api", "view"},
    "api": GROUND | {"store", "models", "plotting", "report", "questions", "view"},
    "questions": {"request", "placing", "results", "api"},  # for type checkers alone
    "__main__": {"cli"},
    "__init__": {"api", "errors"},  # for type checkers alone
    "serving": GROUND | {"store", "sandbox", "batch", "cli", "view"},
    "pages": GROUND | {"store", "sandbox", "plotting", "report", "batch", "serving", "view"},
    "app": GROUND | {"store", "sandbox", "pages", "serving"},
}
# The furniture of a room, by file name, and what of the house each piece may import.
FURNITURE = {
    "__init__": set(),
    "request": GROUND,
    "result": GROUND,
    "words": GROUND,
    "frames": GROUND | {"store", "view"},
    "figures": GROUND | {"plotting"},
    "component": GROUND | {"plotting"},
    "view": GROUND | {"plotting", "report", "view"},
    "command": GROUND | {"store", "batch", "cli", "view"},
    "compute": GROUND | {"store", "models"},
}
# What others may import of a room; what it computes they ask for through the catalog.
SHOWN = {
    "analyses": {"request", "result", "words", "figures", "frames"},
    "api": {"request", "result", "compute"},
    "__init__": {"compute"},
    "questions": {"result"},
    "cli": {"request", "result", "words", "frames", "command"},
    "pages": {"request", "result", "words", "figures", "frames", "component"},
}
MOST_MODULES = 21  # of a folder
ROOMS = {path.parent.name for path in ROOT.glob("inspector/analyses/*/__init__.py")}


def part_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1] if parts[0] == "inspector" else parts[0]


def room_of(path: Path) -> tuple[str, str] | None:
    """A room and the piece of furniture that a file is, such as ("lens", "compute")."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[:2] != ("inspector", "analyses") or parts[2] not in ROOMS:
        return None
    return parts[2], piece_of(parts[3])


def piece_of(name: str) -> str:
    """The furniture that a file's name begins with: compute_maps is a compute."""
    return name if name.startswith("__") else name.partition("_")[0]


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def refused(path: Path, name: str) -> str | None:
    """Why a file may not import a module; None: it may."""
    part, home = part_of(path), room_of(path)
    top, *rest = name.split(".")
    if top == "inspector" and rest[:1] == ["analyses"]:
        return refused_room(part, home, rest)
    if top == "inspector" and rest:
        allowed = FURNITURE[home[1]] if home else ALLOWED[part] | {part}
        return None if rest[0] in allowed | {"__version__"} else f"{part} may not use {rest[0]}"
    if top in USERS:
        return None if part in USERS[top] else f"{part} may not use {top}"
    if top in HEAVY:
        heavy = part == "models" or path.name == "worker.py" or (home and home[1] == "compute")
        return None if heavy or top in LIGHT_HERE.get(part, ()) else "only what computes may"
    return "pages hold no maths" if top == "numpy" and part in USERS["pages"] else None


PAGES = {"app", "pages", "serving"}
USERS = {"pages": {"pages", "app"}, "streamlit": PAGES}
# Libraries of HEAVY that other parts may load, inside a function.
LIGHT_HERE = {"serving": {"ray", "torch", "numba"}, "store": {"safetensors", "tokenizers"}}


def refused_room(part: str, home: tuple[str, str] | None, rest: list[str]) -> str | None:
    room, piece = rest[1], piece_of(rest[2]) if len(rest) > 2 else "__init__"
    if home and home[0] == room:
        free = piece != "compute" or home[1] == "compute"
        return None if free else f"{home[1]} may not bring what computes, and torch with it"
    if part not in SHOWN:
        return f"{part} may not know rooms"
    return None if piece in SHOWN[part] else f"{piece} of {room} is its own"


def test_imports_run_downward():
    found = []
    for path in SOURCES:
        home = room_of(path)
        if home is not None and home[1] not in FURNITURE:
            found.append((str(path), "no such furniture"))
        else:
            found += [(str(path), name, why) for name in imports_of(path) if (why := refused(path, name))]
    assert found == []


def test_the_product_ships_without_the_tools_and_they_without_the_tests():
    """What only developers use may import the product; nothing that is installed imports it."""
    tools = [*ROOT.glob("tools/**/*.py")]
    assert tools
    product = ("app", "inspector", "pages")
    beyond = {"tools": {"tests"}} | {part: {"tests", "tools"} for part in product}
    found = {}
    for path in [*SOURCES, *tools]:
        tops = {name.partition(".")[0] for name in imports_of(path)}
        if wrong := tops & beyond[path.relative_to(ROOT).with_suffix("").parts[0]]:
            found[str(path.relative_to(ROOT))] = wrong
    assert not found


def test_one_module_draws_the_tables_of_all_pages():
    """It sends them by pages, and shows what is hidden in a stranger's text."""
    drawing = {path for path in SOURCES if part_of(path) == "pages" and "st.dataframe(" in path.read_text("utf-8")}
    assert drawing == {ROOT / "pages/_ui/tables.py"}


def test_no_folder_holds_more_than_one_idea():
    """A folder that outgrows this has a second idea, which asks for a folder of its own."""
    counts: dict[str, int] = {}
    for path in [*SOURCES, *ROOT.glob("tools/**/*.py")]:
        if path.name != "__init__.py":
            folder = str(path.parent.relative_to(ROOT))
            counts[folder] = counts.get(folder, 0) + 1
    assert counts["inspector/serving/engine"] > 5
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_a_class_has_a_name_of_its_own():
    """Whoever searches for a name finds one class, in the product and in its tools."""
    found = defaultdict(list)
    for path in [*SOURCES, *ROOT.glob("tools/**/*.py")]:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {"Checkpoint", "StagedCheckpoint"} <= found.keys()
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_every_folder_of_the_analyses_is_a_room_with_the_same_furniture():
    from inspector.catalog import CATALOG

    folders = {path.name for path in (ROOT / "inspector/analyses").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == ROOMS
    assert {analysis.room for analysis in CATALOG.values()} == {f"inspector.analyses.{name}" for name in ROOMS}
    for room in ROOMS:
        assert (ROOT / "inspector/analyses" / room / "compute.py").exists(), room


WEB_SIDE = ["store", "plotting", "serving", "browser", "report", "render", "batch", "cli", "analyses"]


@pytest.mark.parametrize("part", WEB_SIDE)
def test_the_web_side_loads_no_torch(part):
    """Importing everything that the web process uses brings none of the heavy libraries."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES
        if part_of(path) == part and path.name != "worker.py" and (room_of(path) or ("", ""))[1] != "compute"
    ]
    code = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
print(*sorted(set(sys.modules) & {HEAVY!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert modules
    assert done.stdout.split() == []


def test_every_analysis_has_a_page_a_verb_and_a_readme_row():
    from inspector.catalog import CATALOG
    from inspector.cli import main as cli

    verbs = {command.name or command.callback.__name__ for command in cli.app.registered_commands if command.callback}
    readme = (ROOT / "README.md").read_text("utf-8")
    for analysis in CATALOG.values():
        module = analysis.function.partition(":")[0]
        assert (ROOT / "pages" / f"{analysis.slug}.py").exists()
        assert (ROOT / Path(*module.split("."))).with_suffix(".py").exists()
        assert analysis.verb in verbs
        assert f"| {analysis.title} | {analysis.question} | `{analysis.verb}` |" in readme
    assert verbs == set(CATALOG) | {"cluster", "limits", "serve", "store", "report", "screenshot"}


def test_every_function_that_the_catalog_names_takes_what_the_engine_gives():
    """Read from the files, since importing them brings torch."""
    from inspector.catalog import CATALOG

    for analysis in CATALOG.values():
        assert parameters_of(analysis.function)[0] == "checkpoint"
        assert "progress" in parameters_of(analysis.function)
        if analysis.batch:
            assert parameters_of(analysis.batch) == ["checkpoint", "requests", "progress"]
    assert "predict" in {analysis.verb for analysis in CATALOG.values() if analysis.batch}


def parameters_of(named: str) -> list[str]:
    """The parameters of a function "package.module:function", as its file says."""
    module, _, function = named.partition(":")
    tree = ast.parse((ROOT / Path(*module.split("."))).with_suffix(".py").read_text("utf-8"))
    (found,) = [node.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    return [each.arg for each in (*found.posonlyargs, *found.args, *found.kwonlyargs)]


def test_the_project_names_no_machine_and_no_registry():
    """Nothing that is published says where it was made."""
    # Written apart, so that this file does not hold them.
    banned = ["/" + "work/", "/" + "root/", "py" + "pi.org", "python" + "hosted", "/" + "farm"]
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in listed.stdout.split():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".txt", ".css", ".html", ""} and path.is_file():
            text = path.read_text("utf-8", "replace")
            assert not [word for word in banned if word in text], name
