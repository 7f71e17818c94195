"""Compiled code that workers run is made by a trusted process, and believed only as listed."""

from __future__ import annotations

import json
import os
import pickle  # noqa: TID251 - to write what a hostile worker would
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from inspector.catalog import CATALOG
from inspector.sandbox.compiling import Compiler, versions_of
from inspector.sandbox.environment import worker_environment
from inspector.settings import read_settings
from inspector.store.files import acquire
from inspector.store.keeping.compiled import CODE, LIST, compiled_folder, copy_checked, is_made, put_compiled
from tests.serving.engine.engine_attempts import DONE
from tests.serving.engine.engine_harness import A, answer, eventually, running

REFUSED = "PermissionError"
INDEX = "room_0a/loops.epoch-1.py311.nbi"
CUT_OFF = f".new-{'0' * 32}"  # of a process that was killed


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two files as the compiling process leaves them."""
    folder = tmp_path / "home" / "compiled"
    built = folder / ".new-x"
    for name, data in ((INDEX, b"index"), (INDEX.replace(".nbi", ".1.nbc"), b"code")):
        (built / name).parent.mkdir(parents=True, exist_ok=True)
        (built / name).write_bytes(data)
    put_compiled(built, folder, "v1")
    return folder


@pytest.fixture(autouse=True)
def no_shared_folder(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)


def copied(folder: Path, target: Path) -> set[str]:
    copy_checked(folder, target)
    return {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}


def test_what_is_listed_is_copied(folder, tmp_path):
    assert copied(folder, tmp_path / "own") == {INDEX, INDEX.replace(".nbi", ".1.nbc")}
    assert (tmp_path / "own" / INDEX).read_bytes() == b"index"
    assert is_made(folder, "v1")
    assert not is_made(folder, "v2")


@pytest.mark.parametrize("how", ["changed", "a link", "not listed", "listed elsewhere", "no list", "a damaged list"])
def test_what_is_not_as_listed_is_left_out(folder, tmp_path, how):
    index, good = folder / CODE / INDEX, {INDEX.replace(".nbi", ".1.nbc")}
    if how == "changed":
        index.write_bytes(b"inDex")
    elif how == "a link":
        index.rename(tmp_path / "moved")
        index.symlink_to(tmp_path / "moved")
    elif how == "not listed":
        index.with_name("loops.other-1.py311.nbi").write_bytes(b"index")
        good.add(INDEX)
    elif how == "listed elsewhere":
        listed = json.loads((folder / LIST).read_text())
        listed["files"]["../../outside.nbi"] = listed["files"].pop(INDEX)
        (folder / LIST).write_text(json.dumps(listed))
        (folder.parent / "outside.nbi").write_bytes(b"index")
    elif how == "no list":
        (folder / LIST).unlink()
        good = set()
    else:
        (folder / LIST).write_text('{"versions": "v1", "files": ["x"]}')
        good = set()
    assert copied(folder, tmp_path / "own") == good
    assert not (tmp_path / "outside.nbi").exists()


@pytest.mark.parametrize("place", ["index", "list", "new", "lock"])
def test_a_worker_cannot_write_where_compiled_code_is_kept(folder, place):
    """Tried for real: a worker that nothing confines can."""
    acquired = acquire(folder)
    assert acquired is not None
    os.close(acquired)
    targets = {"index": folder / CODE / INDEX, "list": folder / LIST, "new": folder / CODE / "x.nbi",
               "lock": folder / ".lock"}  # fmt: skip
    before = targets["list"].read_bytes()
    with running(home=folder.parent) as engine:
        assert answer(engine, A, "attempt", what="write", target=str(targets[place])) == REFUSED
        assert answer(engine, A, "attempt", what="read", target=str(folder / LIST)) == DONE
    assert targets["list"].read_bytes() == before
    with running(home=folder.parent, confinement="off") as engine:
        assert answer(engine, A, "attempt", what="write", target=str(targets[place])) == DONE


def test_workers_keep_what_libraries_compile_in_folders_of_their_own(tmp_path):
    with running(home=tmp_path / "home") as engine:
        told = answer(engine, A, "environment")
        own = [told[name] for name in ("NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")]
        workers = tmp_path / "home" / "workers"
        assert all(Path(each).is_relative_to(workers) for each in own)
        assert told["PYTHONDONTWRITEBYTECODE"] == "1"
        assert answer(engine, A, "attempt", what="write", target=f"{Path(own[0]).parent}/file") == DONE
    eventually(lambda: not list(workers.iterdir()))


PROGRAM = """
import sys
from pathlib import Path
from inspector.analyses.vocabulary_map.compute_umap.compiled import kernels
from inspector.analyses.vocabulary_map.compute_umap.compiling import run_loops
run_loops(Path(sys.argv[1]))
for name, loop in vars(kernels(Path(sys.argv[1]))).items():
    if hasattr(loop, "stats") and loop.signatures:
        print(name, sum(loop.stats.cache_hits.values()), sum(loop.stats.cache_misses.values()))
"""


def run_as_worker(home: Path, own: Path) -> dict[str, tuple[int, int]]:
    """Loops that a worker ran, with how many of their forms came from its folder and how many it compiled."""
    settings = read_settings({"INSPECTOR_HOME": str(home)})
    environ = worker_environment(os.environ, settings=settings) | {"NUMBA_CACHE_DIR": str(own)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home)], env=environ, capture_output=True, text=True, check=True
    )
    rows = (line.split() for line in done.stdout.splitlines())
    return {name: (int(hits), int(misses)) for name, hits, misses in rows}


@pytest.mark.compiling
def test_the_engine_compiles_all_that_a_map_runs_and_poison_is_not_loaded(tmp_path):
    home = tmp_path / "home"
    settings = read_settings({"INSPECTOR_HOME": str(home)})
    folder, project = compiled_folder(home), CATALOG["project"]
    compiler = Compiler(settings)
    compiler.start(CATALOG["overview"])
    assert not folder.exists()
    compiler.start(project)
    versions = versions_of(project.compiled_by)
    try:
        eventually(lambda: is_made(folder, versions))
    finally:
        compiler.close()

    found = run_as_worker(home, tmp_path / "own")
    assert {"epoch", "merge_rows", "merge_columns", "merge_cell"} <= found.keys()
    assert all(hits and not misses for hits, misses in found.values())

    proof = tmp_path / "poisoned"
    poison = pickle.dumps(SimpleNamespace(x=_Poison(str(proof))))
    for index in folder.rglob("*.nb*"):
        index.write_bytes(poison)
    found = run_as_worker(home, tmp_path / "second")
    assert all(misses and not hits for hits, misses in found.values())
    assert not proof.exists()
    with pytest.raises(subprocess.CalledProcessError):  # numba itself runs what it finds
        run_as_worker(home, folder / CODE)
    assert proof.is_dir()


class _Poison:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_other_sources_make_other_code(tmp_path, monkeypatch):
    room = tmp_path / "room_of_loops"
    room.mkdir()
    for name in ("__init__", "compiling", "kernels"):
        (room / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    before = versions_of("room_of_loops.compiling")
    assert versions_of("room_of_loops.compiling") == before
    (room / "kernels.py").write_text("# another loop")
    assert versions_of("room_of_loops.compiling") != before


def test_one_process_compiles_at_a_time_and_the_next_engine_finds_it_done(folder, monkeypatch):
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **_: started.append(arguments))
    settings, project = read_settings({"INSPECTOR_HOME": str(folder.parent)}), CATALOG["project"]
    (folder / CUT_OFF).mkdir()
    lock = acquire(folder)
    assert lock is not None
    Compiler(settings).start(project)
    assert not started, "another process is at it"
    assert (folder / CUT_OFF).exists()
    os.close(lock)
    compiler = Compiler(settings)
    for _ in range(2):
        compiler.start(project)
    assert len(started) == 1, "once is enough"
    assert not (folder / CUT_OFF).exists()
    built = folder / ".new-y"
    built.mkdir()
    put_compiled(built, folder, versions_of(project.compiled_by))
    Compiler(settings).start(project)
    assert len(started) == 1, "it is there"
