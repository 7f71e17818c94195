"""Two tiers of tests: `make test` leaves out marked kinds, `make check` runs all."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.browser.conftest import JOURNEYS
from tests.conftest import MARKED, SECONDS, beyond_everyday, pytest_runtest_makereport

ROOT = Path(__file__).parents[2]
MARKS = {
    line.partition(":")[0]
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]["markers"]
}
KNOWN = {"parametrize", "skipif", "usefixtures", "browser_context_args"}
SOURCES = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]


def test_every_marker_is_known_and_every_tier_has_tests():
    used = {mark for path in SOURCES for mark in re.findall(r"pytest\.mark\.(\w+)", path.read_text("utf-8"))}
    assert used - KNOWN == MARKS


def test_no_tier_is_empty(pytestconfig: pytest.Config):
    """Counted where all tests are collected, as `make test` and `make check` do."""
    counted = pytestconfig.stash[MARKED]
    if pytestconfig.args == pytestconfig.getini("testpaths"):
        assert [mark for mark in sorted(MARKS) if not counted[mark]] == []


@pytest.mark.parametrize(("ci", "outcome"), [("", "skipped"), ("true", "failed")])
def test_nothing_is_skipped_in_ci(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: str
):
    monkeypatch.setenv("CI", ci)
    report = pytest.TestReport(request.node.nodeid, ("", 0, ""), {}, "skipped", ("", 0, "no GPU"), "call")
    hook = pytest_runtest_makereport(request.node)
    next(hook)
    with pytest.raises(StopIteration) as returned:
        hook.send(report)
    assert returned.value.value.outcome == outcome
    assert ("was skipped, in CI" in str(report.longrepr)) is bool(ci)


def test_make_test_leaves_out_what_the_markers_name():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    marked = re.search(r"MARKED := (.*)", makefile)
    assert marked
    assert set(marked.group(1).split(" or ")) == MARKS
    assert "DAILY := not ($(MARKED))" in makefile
    assert re.search(r"^rest:.*\n.*\n.*\$\(SHARED\) -m \"\$\(MARKED\)\"$", makefile, re.MULTILINE)


def test_ci_runs_what_the_readme_prints_and_then_the_rest():
    lines = (ROOT / ".ci/run").read_text("utf-8").splitlines()
    assert "make test" in lines
    assert "make --jobs=2 lint rest" in lines[lines.index("make test") + 1 :]


def test_of_many_architectures_make_test_tries_the_everyday_ones_or_the_first():
    named = {
        "a[bert]": "BertForPreTraining",
        "a[neo]": "GPTNeoXForCausalLM",
        "a[llama-0]": "LlamaForCausalLM",
        "a[llama-1]": "LlamaForCausalLM",
        "b[cohere-0]": "CohereForCausalLM",
        "b[granite]": "GraniteForCausalLM",
        "b[cohere-1]": "CohereForCausalLM",
    }
    assert beyond_everyday(named) == {"a[neo]", "b[granite]"}


def test_no_test_is_left_out_for_its_architectures(request: pytest.FixtureRequest):
    """Seen where all tests are collected, as in `make check`."""
    items = request.session.items
    tried = {item.nodeid.partition("[")[0] for item in items if not item.get_closest_marker("families")}
    assert [item.nodeid for item in items if item.nodeid.partition("[")[0] not in tried] == []


def test_journeys_are_there():
    files = {path.name: path.read_text("utf-8") for path in (ROOT / "tests/browser").glob("test_*.py")}
    gone = [each for each in JOURNEYS if f"def {each.partition('::')[2]}(" not in files[each.partition("::")[0]]]
    assert gone == []


def test_files_and_folders_known_to_be_slow_are_there():
    """A file that was moved would come last again."""
    assert SECONDS
    assert [name for name in SECONDS if not (ROOT / name).exists()] == []
