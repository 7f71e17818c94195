"""Pictures of pages, which the command line takes with a browser."""

from __future__ import annotations

import json
from pathlib import Path

from tests.browser.test_report import inspector, size


def test_pictures_of_pages_come_from_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    done = inspector("screenshot", "demo-bert", "-o", str(folder), "--pages", "training,overview",
                     "--theme", "dark", "--width", "1000", home=tmp_path)  # fmt: skip
    found = json.loads(done)
    assert [each["page"] for each in found["pages"]] == ["overview", "training"]
    for each in found["pages"]:
        data = Path(each["file"]).read_bytes()
        assert len(data) == each["nbytes"]
        assert size(data) == (1000, each["height"])
        assert each["height"] > 1000  # the whole page, and not the window
        assert each["cut"] is False
