"""Write inspector/questions.py: the library's methods, one per question of the catalog.

Editors and type checkers then know each method's options and the fields of its answer. A test
compares the file with what this module writes.
"""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from inspector.catalog import CATALOG, Analysis, request_of
from inspector.request import BESIDE, Option, Request, defaults, options

FILE = Path(__file__).parents[1] / "inspector" / "questions.py"
ALIASES = {"map": "project"}  # method -> verb
WIDTH = 116
HEAD = '''"""The library's methods: one per question of the catalog.

Written by `python -m tools.questions`: do not edit.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from inspector.request import checked_names

if TYPE_CHECKING:
    from pathlib import Path
'''
IMPORTED = ("    from inspector.api import Answer, Checkpoint", "    from inspector.placing import Device, Dtype")
CLASS = '''

class Questions:
    """A checkpoint's methods."""

    @abstractmethod
    def ask(self, verb: str, **options: Any) -> Any:
        """Answer one question."""
'''


def source() -> str:
    """The text of the module."""
    known = {analysis.verb: analysis.result.partition(":") for analysis in CATALOG.values()}
    imports = sorted([*IMPORTED, *(f"    from {module} import {name}" for module, _, name in known.values())])
    answers = (
        f'    class {_answer(verb)}(Answer, {name}):\n        """What `{verb}` returns."""\n'
        for verb, (_, _, name) in known.items()
    )
    names = {verb.replace("-", "_"): verb for verb in CATALOG} | ALIASES
    methods = (_method(name, CATALOG[verb]) for name, verb in names.items())
    written = "\n".join((HEAD, *imports, "", *answers, CLASS, *methods))
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-"]
    return subprocess.run(command, input=written, text=True, capture_output=True, check=True).stdout


def _method(name: str, analysis: Analysis) -> str:
    request = request_of(analysis.verb)
    given = defaults(request)
    kinds = {field.name: _written(field.type) for field in dataclasses.fields(request)}
    # What must be given comes first.
    ordered = sorted(options(request), key=lambda each: each in given)
    parameters = (
        f"{each}: {_kind(each, kinds[each])}" + (f" = {given[each]!r}" if each in given else "") for each in ordered
    )
    passed = ", ".join(f"{each}={each}" for each in ordered)
    text = "\n".join(_documented(analysis, request, ordered))
    return (
        f"    @checked_names\n    def {name}(self, {', '.join(parameters)}) -> {_answer(analysis.verb)}:\n"
        f'{textwrap.indent(text, " " * 8)}\n        return self.ask("{analysis.verb}", {passed})\n'
    )


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _answer(verb: str) -> str:
    return f"{verb.title().replace('-', '')}Answer"


def _kind(name: str, kind: str) -> str:
    """The type as a caller may give it: a second checkpoint opened, or by its name."""
    return f"{kind} | Path | Checkpoint" if name in BESIDE else kind


def _documented(analysis: Analysis, request: type[Request], ordered: list[str]) -> list[str]:
    if not ordered:
        return [f'"""{analysis.question}"""']
    lines = [f'"""{analysis.question}', "", "Args:"]
    for name in ordered:
        lines += textwrap.wrap(
            f"{name}: {_help(options(request)[name])}.",
            WIDTH - 8,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return [*lines, '"""']


def _help(known: Option) -> str:
    bounds = ", ".join(known.choices) or known.bounds
    return f"{known.help} ({bounds})" if bounds and bounds not in known.help else known.help


if __name__ == "__main__":
    FILE.write_text(source(), encoding="utf-8")
