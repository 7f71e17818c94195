"""A command's child: what it may do, what ends it, and what it leaves behind."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from inspector.cli import answering
from inspector.cli.child import Task
from inspector.sandbox.confinement import GPUS
from inspector.store.manifests.entries import MAPS, OPENED, WORKERS
from tests.store.store_builders import small_checkpoint

ROOT = Path(__file__).parents[2]
# Forked from a process that has computed nothing, as a command's is.
SCRIPT = """
import json, os, sys, time
from inspector.cli.child import Task, do
from inspector.errors import InspectorError
from inspector.settings import settings
from inspector.store.reference import find_reference

def attempt(act):
    try:
        return str(act())
    except OSError as error:
        return type(error).__name__

def work(checkpoints, tell):
{work}

try:
    task = Task("overview", (find_reference({reference!r}),), work)
    print(json.dumps({{"done": do(task, settings(), tell=lambda text: None)}}))
except InspectorError as error:
    print(json.dumps({{"error": type(error).__name__, "text": str(error)}}))
"""


def run(home: Path, work: str, *, reference: str = "demo-bert", **environment: str) -> dict[str, Any]:
    """Do some work in a child; gives what came of it."""
    return json.loads(ran(home, work, reference=reference, **environment).stdout)


def ran(home: Path, work: str, *, reference: str = "demo-bert", **environment: str) -> subprocess.CompletedProcess[str]:
    """Do some work in a child; gives what the command printed."""
    code = SCRIPT.format(work=textwrap.indent(textwrap.dedent(work), "    "), reference=reference)
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"INSPECTOR_HOME": str(home)} | environment,
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip


def test_it_reads_its_checkpoint_and_no_other_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("nobody's")
    checkpoint = small_checkpoint(tmp_path / "one")
    other = small_checkpoint(tmp_path / "other")
    found = run(
        tmp_path / "home",
        f"""
        import socket, subprocess
        return {{
            "opened": checkpoints[0].name,
            "own": attempt(lambda: len(open({str(checkpoint / "config.json")!r}).read()) > 2),
            "secret": attempt(lambda: open({str(secret)!r}).read()),
            "other": attempt(lambda: open({str(other / "config.json")!r}).read()),
            "written": attempt(lambda: open({str(checkpoint / "new")!r}, "w")),
            "network": attempt(lambda: socket.create_connection(("127.0.0.1", 9))),
            "process": attempt(lambda: subprocess.run(["/bin/true"])),
            "software": attempt(lambda: os.listdir("/opt")),
            "machine": attempt(lambda: os.listdir("/sys/class")),
            "processors": attempt(lambda: bool(os.listdir("/sys/devices/system/cpu"))),
            "token": str(os.environ.get("HF_TOKEN")),
        }}
        """,
        reference=str(checkpoint),
        HF_TOKEN="hf_secret",
    )
    refused = "PermissionError"
    assert found["done"].pop("opened").endswith("one")
    has_gpu = any(each for gpu in GPUS for each in Path("/dev").glob(gpu))  # whose driver reads more
    assert found["done"].pop("machine") == refused or has_gpu
    assert found["done"] == {
        "own": "True",
        "secret": refused,
        "other": refused,
        "written": refused,
        "network": refused,
        "process": refused,
        "software": refused,
        "processors": "True",
        "token": "None",
    }


@pytest.mark.parametrize(
    ("work", "environment", "said"),
    [
        (
            "time.sleep(600)",
            {"INSPECTOR_SECONDS": "1"},
            "took longer than the limit of 1 seconds: set INSPECTOR_SECONDS",
        ),
        (
            "kept = bytearray(os.urandom(1000)) * 1_500_000\ntime.sleep(600)",
            {"INSPECTOR_WORKER_MB": "900"},
            "more memory than the 900 MB",
        ),
        ("os.abort()", {}, "aborted (SIGABRT)"),
        ("os._exit(7)", {}, "ended unexpectedly (exit status 7)"),
        ("raise ZeroDivisionError", {}, "The work failed unexpectedly."),
        (
            "while True:\n    open(os.environ['NUMBA_CACHE_DIR'] + str(time.time()), 'wb').write(bytes(9**7))",
            {"INSPECTOR_WORKER_DISK_MB": "20"},
            "files exceeded the limit of 20 MB",
        ),
    ],
)
def test_what_ends_it_is_said_and_leaves_nothing(
    tmp_path: Path, work: str, environment: dict[str, str], said: str
) -> None:
    found = run(tmp_path / "home", work, **environment)
    assert said in found["text"], found
    assert list((tmp_path / "home" / WORKERS).iterdir()) == []


def test_a_traceback_moves_no_cursor(tmp_path: Path) -> None:
    printed = ran(tmp_path / "home", r"raise ValueError('a\x1b[31m\x9bb\u202e')").stderr
    assert r"ValueError: a\x1b[31m\x9bb\u202e" in printed
    assert printed.replace("\n", "").isprintable()


def test_what_it_is_doing_is_text_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no markup of rich's, which fails on what it cannot read."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(answering, "do", lambda task, settings, *, tell: tell("[/x] [bold]a[/bold]"))
    answering.done(Task("overview", (), lambda checkpoints, tell: None))
    assert "[/x] [bold]a[/bold]" in terminal.getvalue()


def test_what_it_prints_moves_no_cursor_and_is_bounded(tmp_path: Path) -> None:
    done = ran(tmp_path / "home", r"os.write(1, b'\x1b[2Ja\nb\xff'); os.write(2, b'c\rd\n' + b'e' * 9**7); return 1")
    assert json.loads(done.stdout) == {"done": 1}
    first, second, rest = done.stderr.splitlines()
    assert (first, second) == (r"\x1b[2Ja", r"b\xffc\rd")
    assert 900_000 < len(rest) < 1_000_000
    assert set(rest) == {"e"}


AGAIN = """
import json, os, sys
from inspector.cli.child import Task, do
from inspector.settings import settings
from inspector.store.manifests.manifest import HeadersAloneError
from inspector.store.reference import find_reference

def work(checkpoints, tell):
    os.write(tried, b"x")
    if os.fstat(tried).st_size == 1:
        raise HeadersAloneError("no numbers")
    return os.fstat(tried).st_size

tried = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
task = Task("overview", (find_reference("demo-bert"),), work, names_alone=True, fills=(tried,))
print(json.dumps(do(task, settings(), tell=lambda text: None)))
"""


def test_a_question_that_finds_headers_alone_is_asked_again_about_the_whole(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, tmp_path / "tried"],
        env=os.environ | {"INSPECTOR_HOME": str(tmp_path / "home")},
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == 2


LISTING = """
import json, os, sys
from inspector.cli.child import Task, start, wait_for
from inspector.settings import settings
from inspector.store.reference import find_reference

def work(checkpoints, tell):
    links = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            links[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            pass  # of the listing itself
    return sorted({link for number, link in links.items() if not link.startswith("/proc/")})

mine, answers = (os.open(path, os.O_RDWR | os.O_CREAT) for path in sys.argv[1:])
tasks = (Task("overview", (find_reference("demo-bert"),), work, fills=(mine,)) for _ in range(2))
children = [start(task, settings()) for task in tasks]
for child in children:
    while (said := child.read()) is None or said.kind != "done":
        wait_for([child])
    print(json.dumps(said.value))
for child in children:
    child.end()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists what a process has open")
def test_it_has_nothing_open_of_what_the_command_and_other_children_have(tmp_path: Path) -> None:
    """Or it would read their answers, and write over them: what is open, no sandbox looks at again."""
    mine, answers = tmp_path / "mine", tmp_path / "answers.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LISTING, mine, answers],
        env=os.environ | {"INSPECTOR_HOME": str(tmp_path / "home")},
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    links = [json.loads(line) for line in done.stdout.splitlines()]
    for mine_alone in links:
        files = [link for link in mine_alone if not link.startswith("pipe:")]
        assert files == [os.devnull, str(mine)]
        assert len(mine_alone) == len(files) + 2, "what it sends, and what it prints"
    assert not {*links[0]} & {*links[1]} - {os.devnull, str(mine)}


def test_a_tokenizer_that_comes_to_no_end_is_ended(tmp_path: Path) -> None:
    folder = small_checkpoint(tmp_path / "bomb", tokenizer=False)
    bomb = Tokenizer(WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    bomb.pre_tokenizer = Split(Regex("(a+)+b"), "isolated")
    bomb.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    work = """
        os.environ["TOKENIZER_SECONDS"] = "1"
        checkpoints[0].ask("tokenize", texts=[("a" * 23 + "c") * 500])
        """
    found = run(tmp_path / "home", work, reference=str(folder))
    assert found == {
        "error": "WorkerError",
        "text": "The checkpoint's tokenizer took more than 20 seconds of processor time: shorten the text, or compare "
        "the tokenizer's files with their source.",
    }


def test_a_chat_template_that_comes_to_no_end_in_native_code_is_ended(tmp_path: Path) -> None:
    folder = small_checkpoint(tmp_path / "bomb")
    doubled = "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}"
    (folder / "chat_template.jinja").write_text(doubled + "{{ ns.s }}")
    work = """
        os.environ["TEMPLATE_SECONDS"] = "1"
        return checkpoints[0].ask("tokens").to_json()
        """
    found = run(tmp_path / "home", work, reference=str(folder))
    assert found == {
        "error": "WorkerError",
        "text": "The checkpoint's chat template took more than 5 seconds of processor time: compare it with its "
        "source.",
    }


def test_a_store_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = run(tmp_path / "file" / "home", "return None")
    assert found == {
        "error": "WorkerError",
        "text": "The store cannot be written (Not a directory): set INSPECTOR_HOME to a folder that you can write to.",
    }


def test_its_words_are_read_as_a_strangers(tmp_path: Path) -> None:
    found = run(
        tmp_path / "home",
        """
        import gc
        inside, = (each for each in gc.get_objects() if type(each).__name__ == "_Inside")
        inside._connection.send_bytes(b'["failed", ["SystemExit", "x", ""]]')
        """,
    )
    assert found == {
        "error": "WorkerError",
        "text": "The process that read the checkpoint sent an invalid reply: try again.",
    }


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    marker = tmp_path / "home" / "begun"
    code = SCRIPT.format(work="    tell(None, 'sleeping')\n    time.sleep(600)", reference="demo-bert").replace(
        "tell=lambda text: None", f"tell=lambda text: text == 'sleeping' and open({str(marker)!r}, 'w').close()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"INSPECTOR_HOME": str(tmp_path / "home")}, cwd=ROOT
    )
    while not marker.exists():
        assert parent.poll() is None
        time.sleep(0.01)
    (child,) = psutil.Process(parent.pid).children()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert child.wait(timeout=60) is None or not child.is_running()


REMEMBERS = """
import tempfile
from dataclasses import replace
from pathlib import Path
import numpy as np
from inspector.store.keeping.arrays import ArrayCache
from inspector.store.manifests.entries import results_folder
own = replace(settings(), home=Path(tempfile.gettempdir()).parent)
cache = ArrayCache(results_folder(checkpoints[0].opened.fingerprint, settings=own))
known = cache.get({"of": "this"})
if known is None:
    cache.put({"of": "this"}, {"found": np.array([2.5])})
return None if known is None else known["found"].tolist()
"""


def test_what_was_computed_is_there_the_next_time_and_the_checkpoint_is_not(tmp_path: Path) -> None:
    home, checkpoint = tmp_path / "home", small_checkpoint(tmp_path / "one")
    assert run(home, REMEMBERS, reference=str(checkpoint)) == {"done": None}
    assert run(home, REMEMBERS, reference=str(checkpoint)) == {"done": [2.5]}
    os.utime(checkpoint / "model.safetensors")  # another file, as far as anybody can tell who has not read it
    assert run(home, REMEMBERS, reference=str(checkpoint)) == {"done": None}
    assert len(list((home / MAPS).iterdir())) == 2
    assert not (home / OPENED).exists()
    assert list((home / WORKERS).iterdir()) == []
