"""Made-up input ends in a result or in one sentence: seeds, findings, structures, changed bytes."""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.fuzz.__main__ import FOUND, Fuzzer
from tools.fuzz.property import checked, outcome
from tools.fuzz.seeds import SEEDS, seeds
from tools.fuzz.structures import STRUCTURES
from tools.fuzz.targets import TARGETS
from tools.fuzz.watch import watched

SENTENCES = json.loads((FOUND / "sentences.json").read_text("utf-8"))
KNOWN = [(target, name, data) for target, files in seeds().items() for name, data in files.items()]
HAS_ATHERIS = importlib.util.find_spec("atheris") is not None  # there is none for Windows


def test_the_seeds_are_those_that_their_script_builds():
    kept = {target: {path.name: path.read_bytes() for path in (SEEDS / target).iterdir()} for target in TARGETS}
    assert kept == seeds()
    assert sum(len(data) for _, _, data in KNOWN) < 500_000


@pytest.mark.parametrize(("target", "name", "data"), KNOWN, ids=[f"{t}-{n}" for t, n, _ in KNOWN])
def test_a_seed_ends_well(target, name, data):
    outcome(target, data)


@pytest.mark.parametrize("found", sorted(SENTENCES))
def test_what_was_found_stays_mended(found):
    """Each input that once broke a reader, and the sentence that it gets now; null: it is read."""
    target, _, _ = found.partition("/")
    assert outcome(target, (FOUND / found).read_bytes()) == SENTENCES[found]


def test_every_finding_has_its_sentence():
    files = {path.relative_to(FOUND).as_posix() for path in FOUND.glob("*/*")}
    assert files == set(SENTENCES)


@pytest.mark.fuzz
@pytest.mark.parametrize("target", sorted(STRUCTURES))
@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_structures_that_lie_end_well(target, data):
    outcome(target, data.draw(STRUCTURES[target]))


@pytest.fixture(scope="module")
def fuzzer() -> Iterator[Fuzzer]:
    with Fuzzer() as made:
        yield made


@pytest.mark.fuzz
@pytest.mark.skipif(not HAS_ATHERIS, reason="atheris has no build for this system")
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_changed_bytes_end_well(fuzzer, target, tmp_path):
    run = fuzzer.run(target, seconds=3, runs=20_000, found=tmp_path)
    assert run.executions > 10, run.log
    assert not run.found, run.log


def in_a_thread(touch: Callable[[], object]) -> None:
    thread = threading.Thread(target=touch)
    thread.start()
    thread.join()


def test_a_touch_outside_and_a_sentence_that_is_none_are_noticed(tmp_path):
    """The property can fail: else all of the above would say nothing."""
    (tmp_path / "mine").mkdir()
    with watched(tmp_path / "mine"):
        (tmp_path / "mine" / "a").write_text("a", "utf-8")
    with pytest.raises(AssertionError, match="open"), watched(tmp_path / "mine"):
        (tmp_path / "b").write_text("b", "utf-8")
    with pytest.raises(AssertionError, match=r"os\.system"), watched(tmp_path / "mine"):
        os.system("true")
    with pytest.raises(AssertionError, match="open"), watched(tmp_path / "mine"):
        in_a_thread(lambda: (tmp_path / "b").write_text("b", "utf-8"))
    for sentence in ("two\nlines.", "no end", "x" * 700 + ".", "Traceback (most recent call last)."):
        with pytest.raises(AssertionError):
            checked(sentence)


def test_a_thread_that_ran_before_is_not_the_readers(tmp_path):
    """Such as that of an engine, which looks at its workers' folders."""
    begun, done = threading.Event(), threading.Event()

    def touch() -> None:
        begun.wait()
        (tmp_path / "b").write_text("b", "utf-8")
        done.set()

    threading.Thread(target=touch).start()
    (tmp_path / "mine").mkdir()
    with watched(tmp_path / "mine"):
        begun.set()
        done.wait()
