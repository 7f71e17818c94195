"""Commands about a folder whose weights lie elsewhere, where a link leads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.families import random_model, save_checkpoint

WEIGHTS = "model.safetensors"


@pytest.fixture
def linked(tmp_path) -> tuple[Path, Path]:
    """A checkpoint's folder, and where its weights lie."""
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "mine")
    place = tmp_path / "weights-of-many"
    (folder / WEIGHTS).rename(place)
    (folder / WEIGHTS).symlink_to(place)
    return folder, place


def test_a_command_reads_through_a_link_and_says_where_it_led(linked, call):
    folder, place = linked
    for named in (folder, folder / WEIGHTS):
        status, stdout, stderr = call("overview", str(named), "--json")
        assert status == 0, stderr
        files = {each["name"]: each for each in json.loads(stdout)["files"]}
        assert files[WEIGHTS]["linked_from"] == str(place)
        assert files["config.json"]["linked_from"] is None
    status, stdout, stderr = call("sharing", str(folder), "--json")
    assert status == 0, stderr


def test_a_report_leaves_out_where_a_link_led(linked, call, tmp_path):
    status, _, stderr = call("report", str(linked[0]), "-o", str(tmp_path / "report.html"), "--sections", "overview")
    assert status == 0, stderr
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Read through links" in text
    assert "weights-of-many" not in text
