"""Imports run downward only, and the web process stays light: the architecture, enforced."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "transformers", "umap", "tokenizers", "safetensors", "numba", "sklearn", "ray"}

# What each part may import of the others; a floor may always import itself.
GROUND = {"errors", "settings", "catalog", "results", "demo"}
ALLOWED = {
    "errors": set(),
    "settings": {"errors"},
    "catalog": set(),
    "results": set(),
    "demo": set(),
    "store": GROUND,
    "models": GROUND | {"store"},
    "analyses": GROUND | {"store", "models"},
    "engine": GROUND | {"store", "models", "analyses"},
    "figures": {"errors", "results"},
    "render": GROUND,
    "browser": {"errors"},
    "report": GROUND | {"store", "engine", "figures", "browser"},
    "fleet": GROUND | {"store", "engine"},
    "cli": GROUND | {"store", "engine", "render", "report", "fleet"},
    "__main__": {"cli"},
    "__init__": set(),
    "serving": {"errors", "settings"},
    "pages": GROUND | {"store", "engine", "figures", "report", "fleet"},
    "app": GROUND | {"store", "engine", "pages"},
}
SOURCES = sorted(
    path
    for path in [
        *(
            path
            for part in ("inspector", "pages", "serving")
            for path in ROOT.glob(f"{part}/**/*.py")
        ),
        ROOT / "app.py",
    ]
    if "__pycache__" not in path.parts
)


def part_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[1] if parts[0] == "inspector" else parts[0]


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_downward(path):
    part = part_of(path)
    allowed = ALLOWED[part] | {part}
    for name in imports_of(path):
        top, _, rest = name.partition(".")
        if top == "inspector" and rest:
            assert rest.split(".")[0] in allowed | {"__version__"}, f"{part} imports {name}"
        if top == "pages":
            assert "pages" in allowed, f"{part} imports {name}"
        if top == "serving":
            assert part in {"app", "pages", "serving"}, f"{part} imports {name}"
        if top == "streamlit":
            assert part in {"app", "pages", "serving"}, f"{part} imports streamlit"
        if top in HEAVY | {"numpy"}:
            assert part not in {"app", "pages", "serving"}, f"{part} imports {top}"


WEB_SIDE = ["store", "figures", "engine", "browser", "report", "render", "fleet", "cli"]


@pytest.mark.parametrize("part", WEB_SIDE)
def test_the_web_side_loads_no_torch(part):
    """Importing everything that the web process uses brings none of the heavy libraries."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES
        if part_of(path) == part and path.name != "worker.py"
    ]
    code = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
print(*sorted(set(sys.modules) & {HEAVY!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert modules
    assert done.stdout.split() == []


def test_every_analysis_has_a_page_a_verb_a_test_and_a_readme_row():
    from inspector import cli
    from inspector.catalog import CATALOG

    verbs = {
        command.callback.__name__ for command in cli.app.registered_commands if command.callback
    }
    readme = (ROOT / "README.md").read_text("utf-8")
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests/unit").glob("test_*.py"))
    assert len({analysis.verb for analysis in CATALOG}) == len(CATALOG)
    for analysis in CATALOG:
        module, _, function = analysis.function.partition(":")
        assert (ROOT / "pages" / f"{analysis.slug}.py").exists()
        assert (ROOT / Path(*module.split("."))).with_suffix(".py").exists()
        assert analysis.verb in verbs
        assert f"from {module} import" in tests
        assert f"| {analysis.title} |" in readme
        assert f"`{analysis.verb}`" in readme
        assert f"{function}(" in tests
    assert verbs == {analysis.verb for analysis in CATALOG} | {
        "cluster",
        "limits",
        "store",
        "report",
        "screenshot",
    }


def test_every_function_that_the_catalog_names_takes_what_the_engine_gives():
    """Read from the files, since importing them brings torch."""
    from inspector.catalog import CATALOG

    for analysis in CATALOG:
        assert parameters_of(analysis.function)[0] == "checkpoint"
        assert "progress" in parameters_of(analysis.function)
        if analysis.batch:
            assert parameters_of(analysis.batch) == ["checkpoint", "requests", "progress"]
    assert "predict" in {analysis.verb for analysis in CATALOG if analysis.batch}


def parameters_of(named: str) -> list[str]:
    """The parameters of a function "package.module:function", as its file says."""
    module, _, function = named.partition(":")
    tree = ast.parse((ROOT / Path(*module.split("."))).with_suffix(".py").read_text("utf-8"))
    (found,) = [
        node.args
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
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
