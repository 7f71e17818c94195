"""Pins against pages of indexes as they answer; and the hashes that are kept against the pins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools import pins
from tools.pins import HASHED, JSON, ROOT, UNREACHED, OfferedFile, faults, hashed, hashes_of, read_page

SHA, OTHER = "a" * 64, "b" * 64
LISTED = json.dumps(
    {
        "files": [
            {"filename": "a_b-1.0.tar.gz", "hashes": {"sha256": SHA}, "yanked": False},
            {"filename": "a_b-1.0-py3-none-any.whl", "hashes": {"sha256": OTHER}, "yanked": "broken"},
            {"filename": "a_b-1.0.1.tar.gz", "hashes": {}, "yanked": True},
        ]
    }
)
LINKS = f"""<!DOCTYPE html><a href="../x/a_b-1.0.tar.gz#sha256={SHA}">a_b-1.0.tar.gz</a>
<a href="a_b-1.0-py3-none-any.whl#sha256={OTHER}" data-yanked="broken">y</a><a href="a_b-1.0.1.tar.gz" data-yanked>z</a>
"""
FILES = (OfferedFile("a_b-1.0.tar.gz", SHA, None), OfferedFile("a_b-1.0-py3-none-any.whl", OTHER, "broken"),
         OfferedFile("a_b-1.0.1.tar.gz", "", ""))  # fmt: skip


@pytest.mark.parametrize(("page", "kind"), [(LISTED, JSON), (LINKS, "text/html; charset=utf-8")])
def test_a_page_is_read_in_both_formats(page, kind):
    assert read_page(page.encode(), kind) == FILES


@pytest.mark.parametrize(
    ("pin", "kept", "expected"),
    [
        ("A.b==1.0", {}, []),
        ("A.b==1.0", {"A.b==1.0": {SHA}}, []),
        ("A.b==1.0", {"A.b==1.0": {"c" * 64}},
         ["A.b==1.0: no file that is offered has a hash that is kept: write them anew"]),
        ("a-b==1.0.1", {}, ["a-b==1.0.1: it was withdrawn (no reason is given)"]),
        ("a-b[extra]==2.0", {}, ["a-b[extra]==2.0: no index offers it"]),
    ],
)  # fmt: skip
def test_a_pin_that_is_not_offered_is_named(pin, kept, expected):
    assert faults([Requirement(pin)], {"a-b": FILES}.get, kept) == (expected, 1)


def test_a_wheel_that_was_withdrawn_for_a_reason_is_named_with_it():
    assert faults([Requirement("a-b==1.0")], lambda _: FILES[1:], {})[0] == ["a-b==1.0: it was withdrawn (broken)"]


def test_a_build_for_cpus_is_the_version_that_is_pinned():
    built = OfferedFile("torch-2.0+cpu-cp311-cp311-linux_x86_64.whl", SHA, None)
    assert faults([Requirement("torch==2.0")], lambda _: (built,), {}) == ([], 1)


def test_where_no_index_answers_nothing_is_said_to_be_right(monkeypatch, capsys):
    monkeypatch.setattr(pins, "indexes", lambda: lambda name: None)
    monkeypatch.setattr(sys, "argv", ["pins"])
    assert pins.main() == 2
    assert capsys.readouterr().out.strip() == UNREACHED


def test_hashes_are_written_as_pip_reads_them(tmp_path):
    path = tmp_path / "hashed.txt"
    path.write_text(hashed([Requirement("a-b==1.0")], lambda _: FILES, {"a-b==1.0": {"c" * 64}}))
    assert hashes_of(path) == {"a-b==1.0": {SHA, OTHER, "c" * 64}}
    assert [str(pin) for pin in pins.pins(path)] == ["a-b==1.0"]
    asked = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--dry-run", "--ignore-installed",
             "--require-hashes", "-r", str(path)]  # fmt: skip
    refused = subprocess.run(asked, capture_output=True, text=True, check=False).stderr
    assert "No matching distribution found for a-b==1.0" in refused, "and no word on the file's syntax"


def test_every_pin_has_its_hashes():
    """After a change of requirements.txt: python -m tools.pins --write."""
    wanted = {str(pin) for pin in pins.pins(ROOT / "requirements.txt")}
    kept = hashes_of(HASHED)
    assert kept.keys() == wanted
    assert all(kept.values())


def test_the_hashes_name_no_host():
    assert "://" not in Path(HASHED).read_text("utf-8")
