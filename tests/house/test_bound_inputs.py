"""Every input that changes a view stands in the address."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PAGES = Path(__file__).parents[2] / "pages"
INPUTS = {
    "checkbox", "color_picker", "date_input", "feedback", "multiselect", "number_input", "pills",
    "radio", "segmented_control", "select_slider", "selectbox", "slider", "tabs", "text_area",
    "text_input", "time_input", "toggle",
}  # fmt: skip
# Label -> why it is not bound itself.
OTHERWISE = {
    "Neighbors of": "the row it chooses stands in the address",
    "Examples": "the text that it puts in stands there",
    "Checkpoint": "its reference stands there",
    "Pin: never remove it to make room": "changes the store",
    "SHARE": "changes the store",
    "Name": "changes the store",
    "Yes, delete it from the store permanently": "changes the store",
    "From": "a way to open something, which then stands there",
    "Hub id": "a way to open something, which then stands there",
    "Folder, archive or weight file": "a way to open something, which then stands there",
    "Another one": "a way to open something, which then stands there",
    "Found on this machine": "a way to open something, which then stands there",
    "Upload": "says which upload is changed",
    "Message to all users": "changes the server",
    "Take no new work": "changes the server",
}


def inputs() -> Iterator[tuple[Path, str, ast.Call]]:
    """File, label and call of every input that a page draws."""
    for path in sorted(PAGES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in INPUTS
                and node.args
            ):
                first = node.args[0]
                label = first.value if isinstance(first, ast.Constant) else ast.unparse(first)
                yield path.relative_to(PAGES), str(label), node


def options_asked() -> list[ast.Call]:
    """Every option of a request that a page asks for: `options.ask` binds them all."""
    return [
        node
        for path in PAGES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "options.ask"
    ]


def test_every_input_of_a_view_is_bound_to_the_address() -> None:
    found = list(inputs())
    assert len(found) + len(options_asked()) > 60
    unbound = {
        (str(file), label)
        for file, label, call in found
        if {"key", "bind"} - {keyword.arg for keyword in call.keywords} and label not in OTHERWISE
    }
    assert not unbound
    assert OTHERWISE.keys() <= {label for _, label, _ in found}
