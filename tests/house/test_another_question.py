"""What a new question takes: one room, one page, one line of the catalog, one row of the README."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = (
    "inspector",
    "pages",
    "tests/app",
    "tests/house",
    "app.py",
    "README.md",
    "pyproject.toml",
    "tools/__init__.py",
    "tools/questions.py",
)
ROOM = {
    "__init__": '"""Which tensors are largest?"""\n',
    "request": '''
from dataclasses import dataclass

from inspector.request import Request, option


@dataclass(frozen=True)
class LargestRequest(Request):
    """Options of `largest`."""

    verb = "largest"

    count: int = option(3, "Tensors listed", label="Tensors", least=1, most=50)
''',
    "result": '''
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest tensors; columns: name, nbytes."""

    tensors: "pd.DataFrame"
''',
    "compute": '''
import pandas as pd

from inspector.analyses.largest.request import LargestRequest
from inspector.analyses.largest.result import Largest
from inspector.models.checkpoint import StagedCheckpoint
from inspector.progress import Progress
from inspector.request import answers


@answers(LargestRequest)
def largest(checkpoint: StagedCheckpoint, request: LargestRequest, *, progress: Progress) -> Largest:
    """List the largest tensors.

    Args:
        checkpoint: Any.
        request: How many.
        progress: Not needed.
    """
    tensors = sorted(checkpoint.tensors, key=lambda tensor: -tensor.nbytes)[: request.count]
    return Largest(pd.DataFrame([{"name": tensor.name, "nbytes": tensor.nbytes} for tensor in tensors]))
''',
    "view": """
from inspector.analyses.largest.request import LargestRequest
from inspector.report.content import Section
from inspector.view.blocks import Table
from inspector.view.view import Headline, View


def view(result, request, *, name):
    return View(
        Headline(f"{name}: the {request.count} largest tensors."),
        beside=(Table("largest", "Largest tensors", result.tensors),),
    )


SECTION = Section("largest", ask=lambda _: (LargestRequest(),))
""",
}
PAGE = '''
"""Which tensors are largest?"""

from inspector.analyses.largest.request import LargestRequest
from pages._ui import options, parts, session

checkpoint = session.opened()
parts.heading("largest", checkpoint)
request = options.make(LargestRequest, count=options.ask(LargestRequest, "count"))
parts.table(session.run(request).tensors, alt="The largest tensors")
parts.elsewhere(checkpoint, request)
'''
LINE = """    Analysis(
        slug="largest",
        verb="largest",
        title="Largest",
        question="Which tensors are largest?",
        function="inspector.analyses.largest.compute:largest",
        symbol="scale",
        needs="names",
    ),
"""
ROW = "| Largest | Which tensors are largest? | `largest` |\n"
TRIED = """
import inspector as ci
from streamlit.testing.v1 import AppTest
from pages._ui import session
from tests.app.conftest import run_the_frame_first

found = ci.open("demo-bert").largest(count=2)
assert found.to_frame()["name"].tolist()[0] == "bert.embeddings.word_embeddings.weight", found.to_frame()
assert "Largest tensors" in found._repr_html_()
run_the_frame_first()
app = AppTest.from_file("app.py", default_timeout=120)
app.query_params["count"] = "2"
app.switch_page("pages/largest.py").run()
assert not app.exception and not app.error, [each.value for each in (*app.exception, *app.error)]
assert app.title[0].value == "Largest"
assert len(app.dataframe[0].value) == 2
assert "python -m inspector largest demo-bert --count=2" in [code.value for code in app.code], app.code
session.engine().close()
"""


def test_a_new_question_takes_one_room_one_page_one_line_and_one_row(tmp_path: Path) -> None:
    root = tmp_path / "copy"
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, root / name)
    room = root / "inspector/analyses/largest"
    room.mkdir()
    for name, text in ROOM.items():
        (room / f"{name}.py").write_text(text)
    (root / "pages/largest.py").write_text(PAGE)
    _insert(root / "inspector/catalog.py", before=")\nCATALOG =", text=LINE)
    _insert(root / "README.md", before="| Training |", text=ROW)

    def tried(*command: str) -> str:
        environment = {**os.environ, "INSPECTOR_HOME": str(tmp_path / "home"), "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, *command], cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    tried("-m", "tools.questions")
    tried("-c", TRIED)
    assert '"nbytes"' in tried("-m", "inspector", "largest", "demo-bert", "--count", "2", "--json")
    tried("-m", "inspector", "report", "demo-bert", "--sections", "largest", "-o", "report.html")
    assert "bert.embeddings.word_embeddings.weight" in (root / "report.html").read_text().replace("<wbr>", "")


def _insert(path: Path, *, before: str, text: str) -> None:
    content = path.read_text()
    assert content.count(before) == 1, before
    path.write_text(content.replace(before, text + before))
