"""What a worker cannot do, tried by a worker; the same things work where nothing confines it."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.errors import SettingsError, WorkerError
from inspector.sandbox import confinement, landlock, limits, seccomp
from inspector.sandbox.confinement import Confinement
from inspector.serving.engine.wire import Setup, WorkerFunctions
from inspector.serving.storing.registry import new_upload
from inspector.settings import read_settings
from inspector.store.reference import CheckpointRef
from tests.serving.engine.engine_attempts import DONE
from tests.serving.engine.engine_harness import A, answer, eventually, held, running

ROOT = Path(__file__).parents[3]
REFUSED = "PermissionError"
REACHING = ("signal_other", "limit_other", "environment_of", "command_line_of", "memory_of", "trace", "signal_by_file",
            "signal_by_native_file", "slow_down_other", "idle_other")  # fmt: skip
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("confined") / "home"


@pytest.fixture(scope="module")
def confined(home):
    with running(home=home) as engine:
        yield engine


@pytest.fixture(scope="module")
def free(home):
    with running(home=home, confinement="off") as engine:
        yield engine


@pytest.fixture(scope="module")
def targets(tmp_path_factory, home) -> Iterator[dict[str, str]]:
    """Things of this machine that a worker might reach for."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(b"secret")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM
    ) as datagrams, socket.socket(socket.AF_UNIX) as named, socket.socket(
        socket.AF_UNIX, socket.SOCK_DGRAM
    ) as log, socket.create_server(("::1", 0), family=socket.AF_INET6) as six:  # fmt: skip
        datagrams.bind(("127.0.0.1", 0))
        for made, name in ((named, "named"), (log, "log")):
            made.bind(str(outside / name))
            (outside / name).chmod(0o777)
        named.listen()
        yield {
            "connect": str(listener.getsockname()[1]),
            "connect_v6": str(six.getsockname()[1]),
            "send_datagram": str(datagrams.getsockname()[1]),
            "connect_by_name": str(outside / "named"),
            **dict.fromkeys(("send_by_name", "send_raw_by_name", "send_by_name_from_a_pair"), str(outside / "log")),
            **dict.fromkeys(REACHING, str(other.pid)),
            "read": str(outside / "secret"),
            "write": str(outside / "written"),
            "link": str(home / "link"),
        }
    with other:
        other.kill()


@pytest.mark.parametrize(
    "what",
    [
        *("connect", "connect_v6", "send_datagram", "connect_by_name", "send_by_name"),
        *("send_raw_by_name", "send_by_name_from_a_pair"),
        *("native_socket", "fork", "spawn", "signal_other", "limit_other", "environment_of"),
        *("command_line_of", "list_processes"),
        *("memory_of", "trace", "read", "write", "link"),
        *("signal_by_native_file", "slow_down_other", "idle_other"),
        *("memory_without_file", "memory_that_stays", "message_queue"),
        *("memory_that_is_shared", "memory_by_device", "memory_of_sockets", "memory_of_pipes"),
    ],
)
def test_a_worker_cannot(confined, free, targets, what):
    target = targets.get(what, "")
    assert answer(confined, A, "attempt", what=what, target=target) == REFUSED
    assert answer(free, A, "attempt", what=what, target=target) == DONE


@pytest.mark.parametrize("what", ["list_attributes", "be_found_by_name"])
def test_what_a_worker_has_no_use_for_is_not_there(confined, free, tmp_path, what):
    assert answer(confined, A, "attempt", what=what, target=str(tmp_path)) == "OSError"
    assert answer(free, A, "attempt", what=what, target=str(tmp_path)) == DONE


def test_a_worker_can_have_no_signal_sent_by_a_file(confined, free, tmp_path):
    """The kernel asks who set the owner, not who writes; Landlock refuses it only from version 6 on."""
    for engine, expected, alive in ((confined, REFUSED, True), (free, DONE, False)):
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
            assert answer(engine, A, "attempt", what="signal_by_file", target=str(other.pid)) == expected
            if alive:
                assert other.poll() is None
                other.kill()
            assert other.wait(60) == -9


CHANGING = """
import ctypes, fcntl, os, sys
from inspector.sandbox import seccomp

path, library = sys.argv[1], ctypes.CDLL(None, use_errno=True)

def native(number, *arguments):
    words = [each if isinstance(each, ctypes.c_char_p) else ctypes.c_long(each) for each in arguments]
    if library.syscall(ctypes.c_long(number), *words) < 0:
        raise OSError(ctypes.get_errno(), "refused")

def opened(change):
    with open(path) as file:
        change(file.fileno())

def watch_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.fcntl(descriptor, fcntl.F_NOTIFY, fcntl.DN_CREATE)
    finally:
        os.close(descriptor)

def watch():
    if library.inotify_init() < 0:
        raise OSError(ctypes.get_errno(), "refused")

ways = {
    "chmod": lambda: os.chmod(path, 0o644),
    "chmod by descriptor": lambda: opened(lambda file: os.fchmod(file, 0o644)),
    "fchmodat2": lambda: native(452, -100, ctypes.c_char_p(path.encode()), 0o644, 0),
    "chown": lambda: os.chown(path, os.getuid(), os.getgid()),
    "chown of a link": lambda: os.lchown(path, os.getuid(), os.getgid()),
    "chown by descriptor": lambda: opened(lambda file: os.fchown(file, os.getuid(), os.getgid())),
    "times": lambda: os.utime(path, (1, 1)),
    "times by descriptor": lambda: opened(lambda file: os.utime(file, (1, 1))),
    "an attribute": lambda: os.setxattr(path, "user.a", b"x"),
    "no attribute": lambda: os.removexattr(path, "user.a"),
    "setxattrat": lambda: native(463, -100, ctypes.c_char_p(path.encode()), 0, ctypes.c_char_p(b"user.b"), 0, 0),
    "file_setattr": lambda: native(469, -100, ctypes.c_char_p(path.encode()), 0, 0, 0),
    **{
        f"ioctl {command:x}": lambda command=command: opened(
            lambda file: fcntl.ioctl(file, command & 0xFFFFFFFF, bytes(200))
        )
        for command in (0x40086602, 0x40046602, 0x40087602, 0x40047602, 0x401C5820, 0x40806685)
    },
    "watch": watch,
    "watch a folder": lambda: watch_folder(os.path.dirname(path)),
    "lease": lambda: opened(lambda file: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)),
    "open_tree_attr": lambda: native(467, -100, ctypes.c_char_p(path.encode()), 0, 0, 0),
}

def tried():
    found = []
    for name, way in ways.items():
        try:
            way()
        except PermissionError:
            found.append(name)
        except OSError:
            pass  # this kernel or disk has no such thing
    return found

assert tried() == [], tried()
os.chmod(path, 0o600)
seccomp.refuse_processes()
print(set(ways) - set(tried()))
print(oct(os.stat(path).st_mode & 0o777))
"""


def test_a_worker_changes_nobodys_permissions_owners_times_or_attributes(tmp_path):
    """Landlock does not look at them, and a server's files are its own user's, as its workers are."""
    secret = tmp_path / "key"
    secret.write_bytes(b"secret")
    done = subprocess.run(
        [sys.executable, "-c", CHANGING, str(secret)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["set()", "0o600"]


UNLISTED = """
import ctypes, errno, sys, threading
from inspector.sandbox import seccomp
from inspector.sandbox.system_calls import LISTED

library, names = ctypes.CDLL(None, use_errno=True), ctypes.CDLL(seccomp.LIBRARY)
calls = sys.argv[1:]

def tried(call):
    number = names.seccomp_syscall_resolve_name(call.encode())
    ctypes.set_errno(0)
    library.syscall(ctypes.c_long(number), *map(ctypes.c_long, (-1, -1, -1, -1, -1)))
    return errno.errorcode.get(ctypes.get_errno(), "")

before = [tried(call) for call in calls]
seccomp.refuse_unlisted()
print(*before)
print(*map(tried, calls))
seccomp.refuse_processes()
print(tried("mount"))
(thread := threading.Thread(target=print, args=("a thread",))).start()
thread.join()
"""


def test_what_no_analysis_calls_is_not_there():
    """Calls that no rule names; what a rule names is still refused as it says."""
    calls = ["name_to_handle_at", "personality", "syslog", "io_setup"]
    done = subprocess.run(
        [sys.executable, "-c", UNLISTED, *calls],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after, mount, thread = done.stdout.splitlines()
    assert "ENOSYS" not in before
    assert after.split() == ["ENOSYS"] * len(calls)
    assert (mount, thread) == ("EPERM", "a thread")


@pytest.mark.parametrize("has_gpu", [True, False])
def test_calls_are_listed_where_no_driver_makes_others(monkeypatch, tmp_path, has_gpu):
    loaded: list[str] = []
    for name in ("refuse_unlisted", "refuse_processes", "refuse_network"):
        monkeypatch.setattr(seccomp, name, lambda name=name, **_: loaded.append(name))
    monkeypatch.setattr(confinement, "GPUS", ("null",) if has_gpu else ())
    monkeypatch.setattr(confinement, "keep_to_files", lambda access: None)
    monkeypatch.setattr(confinement, "drop_privileges", lambda *_, **__: None)
    monkeypatch.setattr(confinement.tempfile, "tempdir", None)
    monkeypatch.setenv(confinement.TORCH_CACHE, str(tmp_path / "torch"))
    setup = Setup(read_settings({"INSPECTOR_HOME": str(tmp_path)}), WorkerFunctions(), True)
    assert confinement.confine(setup.access).processes_off
    assert loaded == [*([] if has_gpu else ["refuse_unlisted"]), "refuse_processes", "refuse_network"]


@pytest.mark.parametrize("memory_files", [True, False])
def test_files_in_memory_stay_where_a_driver_may_need_them(monkeypatch, memory_files):
    loaded: list[seccomp.Rule] = []
    monkeypatch.setattr(seccomp, "load", loaded.extend)
    seccomp.refuse_processes(memory_files=memory_files)
    calls = {rule.call for rule in loaded}
    assert ("memfd_create" in calls) != memory_files
    assert {"shmget", "fcntl", "execve"} <= calls


def test_a_worker_of_roots_does_not_read_roots_secrets(tmp_path):
    """It keeps the right to read other people's checkpoints, and so all that Landlock leaves to it."""
    for path, mode in (("open/a", 0o644), ("open/b", 0o600), ("all/a", 0o644), ("closed/a", 0o644)):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
        (tmp_path / path).chmod(mode)
    (tmp_path / "closed").chmod(0o700)
    (tmp_path / "link").symlink_to("/etc/shadow")
    assert set(confinement.public(tmp_path)) == {tmp_path / "open" / "a", tmp_path / "all"}
    assert list(confinement.public(tmp_path / "all")) == [tmp_path / "all"]


@pytest.mark.skipif(not Path("/etc/shadow").exists(), reason="no such file here")
def test_a_worker_does_not_read_the_systems_passwords(confined):
    assert answer(confined, A, "attempt", what="read", target="/etc/shadow") == REFUSED
    assert answer(confined, A, "attempt", what="read", target="/etc/passwd") == DONE


def test_a_worker_cannot_become_another_program(confined, free):
    assert answer(confined, A, "attempt", what="replace") == REFUSED
    assert answer(free, A, "attempt", what="replace") == "FileNotFoundError"


def test_a_worker_can_do_what_an_analysis_needs(confined, home):
    assert answer(confined, A, "attempt", what="thread") == DONE
    assert answer(confined, A, "attempt", what="handle_own_signal") == DONE
    assert answer(confined, A, "attempt", what="write", target="OWN/result") == DONE
    for path in (np_file(), "/proc/self/status", "/proc/thread-self/comm", "/proc/meminfo"):
        assert answer(confined, A, "attempt", what="read", target=path) == DONE


def test_the_worker_that_downloads_makes_links_in_the_hubs_cache_alone(tmp_path):
    """A link in the store would lead the server's deletions elsewhere."""
    (tmp_path / "home").mkdir()
    (tmp_path / "cache").mkdir()
    script = (
        "import sys; from pathlib import Path; from inspector.sandbox import landlock\n"
        "home, cache = map(Path, sys.argv[1:])\n"
        "landlock.restrict(read=[Path('/')], lists=[], write=[home], links=[cache], network=True)\n"
        "(home / 'file').write_text('x'); (cache / 'link').symlink_to(home)\n"
        "try:\n    (home / 'link').symlink_to('/')\nexcept PermissionError:\n    print('refused')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "home"), str(tmp_path / "cache")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "refused\n"


def test_a_gpus_driver_may_name_its_threads(tmp_path):
    """CUDA finds no device otherwise, as hardware showed."""
    script = (
        "import sys; from pathlib import Path; from inspector.sandbox import confinement\n"
        "from inspector.settings import read_settings\n"
        "confinement.GPUS = tuple(sys.argv[2:])\n"
        "confinement.keep_to_files(confinement.Access(read_settings({'INSPECTOR_HOME': sys.argv[1]})))\n"
        "for name in ('thread-self/comm', 'self/oom_score_adj', f'{__import__(\"os\").getppid()}/comm'):\n"
        "    try:\n        Path('/proc', name).open('r+').close(); print('may')\n"
        "    except PermissionError:\n        print('may not')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    for gpus, may in (((), ["may not"] * 3), (("null",), ["may", "may not", "may not"])):
        done = subprocess.run([*command, *gpus], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == may


def np_file() -> str:
    import numpy as np

    return np.__file__


def test_a_worker_writes_nothing_into_the_stores_own_folder(confined, free, home):
    assert answer(confined, A, "attempt", what="write", target=str(home / "written")) == REFUSED
    assert answer(free, A, "attempt", what="write", target=str(home / "written")) == DONE


def test_secrets_beside_the_package_are_not_read(confined, tmp_path):
    """Where people who sign in have their secrets; the folder itself must be listed to import."""
    for path in (ROOT / "README.md", ROOT / "app.py"):
        assert answer(confined, A, "attempt", what="read", target=str(path)) == REFUSED
    assert answer(confined, A, "attempt", what="read", target=limits.__file__) == DONE


@pytest.mark.parametrize("where", [{"roots": "TMP"}, {"roots": "/"}, {"restrict_paths": False}])
def test_what_may_be_opened_is_not_read_unless_it_is_asked_about(tmp_path, where):
    """In a web app with folders, in one on one's own machine, and on the command line."""
    (tmp_path / "model").write_bytes(b"x")
    where = {name: tmp_path if value == "TMP" else value for name, value in where.items()}
    with running(home=tmp_path / "home", **where) as engine:
        for what, name in (("read", "model"), ("write", "new")):
            assert answer(engine, A, "attempt", what=what, target=str(tmp_path / name)) == REFUSED


def test_secrets_planted_in_the_server_are_nowhere_in_the_worker(monkeypatch, tmp_path):
    planted = ("HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "INSPECTOR_X_TOKEN",
               "NUMBA_SECRET", "STREAMLIT_AUTH_COOKIE_SECRET")  # fmt: skip
    for name in planted:
        monkeypatch.setenv(name, "planted-secret")
    with running(home=tmp_path / "home") as engine:
        environment = answer(engine, A, "environment")
    assert "PATH" in environment
    assert [name for name, value in environment.items() if "planted-secret" in value] == []


def test_who_opens_a_model_of_the_hub_reads_it_and_writes_nothing_beside_it(home, tmp_path, monkeypatch):
    """Another one has downloaded it; it wrote the cache, and read nothing of it."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--org--name" / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(b"a")
    with running(home=home) as engine:
        warnings = engine.open(CheckpointRef("hub", "org/name")).result(60).warnings
    assert warnings[1:] == ("1", DONE, REFUSED)
    assert (folder / "vocab.txt").read_bytes() == b"a"


def test_the_engine_gives_the_network_to_no_other_worker(confined, home):
    with running(home=home) as engine:
        assert engine.open(CheckpointRef("hub", "org/name")).result(60).name == "name"
    answer(confined, A, "echo")
    (worker,) = (each for each in confined.workers() if each.fingerprint == A)
    assert worker.confinement == Confinement(True, True, True, ())


@pytest.mark.parametrize(
    ("what", "setting", "value", "words"),
    [
        ("count_threads", "worker_threads", 100, "more threads than the limit of 100: .*_WORKER_THREADS higher"),
        ("many_files", "worker_files", 100, "at most 100 files open.*_WORKER_FILES higher"),
        ("large_file", "upload_mb", 10, "larger than the 74 MB .* INSPECTOR_UPLOAD_MB higher"),
        ("many_small_files", "worker_disk_mb", 20, "exceeded the limit of 20 MB: .*_WORKER_DISK_MB higher"),
        ("files_without_a_name", "worker_disk_mb", 20, "exceeded the limit of 20 MB: .*_WORKER_DISK_MB higher"),
        ("closed_folder", "worker_disk_mb", 20, "exceeded the limit of 20 MB: .*_WORKER_DISK_MB higher"),
        ("spin", "cpu_seconds", 2, "more processor time than the limit of 2 seconds: .*INSPECTOR_CPU_SECONDS"),
    ],
)
def test_a_limit_that_is_passed_is_named_with_its_setting(tmp_path, what, setting, value, words):
    with running(home=tmp_path / "home", **{setting: value}) as engine:
        with pytest.raises(WorkerError, match=words):
            answer(engine, A, "overdo", what=what, target="OWN/large")
        (ended,) = engine.endings()
        eventually(lambda: not [*(tmp_path / "home" / "workers").iterdir()])
        assert answer(engine, A, "echo", value="after")["value"] == "after"
    assert setting.upper() in ended.reason


@pytest.mark.parametrize(
    ("what", "limits_of_it", "words"),
    [
        ("memory_afterwards", {"worker_mb": 300}, "more memory than the 300 MB"),
        ("work_afterwards", {"cpu_seconds": 2}, "more processor time than the limit of 2 seconds"),
    ],
)
def test_a_worker_has_its_limits_after_the_answer_as_well(tmp_path, what, limits_of_it, words):
    with running(home=tmp_path / "home", **limits_of_it) as engine:
        assert answer(engine, A, "attempt", what=what) == DONE
        eventually(engine.endings)
        assert words in engine.endings()[0].reason
        assert answer(engine, A, "echo", value="after")["value"] == "after"


def test_opening_has_a_limit_of_its_own(tmp_path):
    with running(home=tmp_path / "home", open_seconds=2) as engine:
        with pytest.raises(
            WorkerError, match=r"more processor time than the limit of 2 seconds: .*INSPECTOR_OPEN_SECONDS"
        ):
            engine.open(CheckpointRef("demo", "demo-endless")).result(60)
        assert answer(engine, A, "echo", value="after")["value"] == "after"


def test_the_limit_of_opening_grows_with_what_arrived(settings):
    used = limits.Usage(memory_nbytes=0, cpu_seconds=35.0, threads=1, seconds=1.0)
    upload, folder = new_upload(settings)
    with (folder / "_weights.zip").open("wb") as file:
        file.truncate(1_000_000_000)
    arrived = CheckpointRef("incoming", upload).origin.costs(settings)
    assert limits.exceeded(used, settings, opening=0) is not None
    assert limits.exceeded(used, settings, opening=arrived) is None
    assert limits.exceeded(used, settings) is None


def test_what_confinement_stops_is_said_with_the_way_out(confined, targets):
    with pytest.raises(WorkerError) as caught:
        answer(confined, A, "overdo", what="connect", target=targets["connect"])
    assert str(caught.value) == limits.FORBIDDEN
    assert "INSPECTOR_CONFINEMENT=off" in limits.FORBIDDEN


@pytest.mark.parametrize("lacking", ["Landlock", "libseccomp"])
def test_a_machine_that_lacks_something_says_so_and_can_be_told_to_refuse(monkeypatch, tmp_path, lacking):
    def nothing(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(confinement.landlock, "version", lambda: 0)
    monkeypatch.setattr(confinement.landlock, "restrict", nothing)
    for name in ("refuse_unlisted", "refuse_processes", "refuse_network"):
        there = nothing if lacking == "libseccomp" else dict
        monkeypatch.setattr(confinement.seccomp, name, there)
    if lacking == "libseccomp":
        monkeypatch.setattr(confinement, "keep_to_files", lambda access: None)
    # The process of the tests itself is confined here: nothing of it may stay.
    monkeypatch.setattr(confinement, "drop_privileges", lambda *_, **__: None)
    monkeypatch.setattr(confinement.tempfile, "tempdir", None)
    monkeypatch.setenv(confinement.TORCH_CACHE, str(tmp_path / "torch"))
    environ = {"INSPECTOR_HOME": str(tmp_path), "INSPECTOR_CONFINEMENT": "required"}
    setup = Setup(read_settings(environ), WorkerFunctions(), True)
    found = confinement.confine(setup.access)

    calls = lacking != "libseccomp"
    assert found == Confinement(calls, calls, not calls, (lacking,))
    with pytest.raises(WorkerError, match=rf"cannot be sandboxed .*\({lacking} is missing\)"):
        confinement.refuse_unconfined(found, setup.settings)
    relaxed = Setup(read_settings({"INSPECTOR_HOME": str(tmp_path)}), WorkerFunctions(), True)
    confinement.refuse_unconfined(found, relaxed.settings)


def test_this_system_confines(home):
    """Else the tests above would say nothing of what people get."""
    assert landlock.version() >= landlock.MIN_VERSION
    assert Path("/proc/self/status").exists()
    with running(home=home, confinement="required") as engine:
        assert answer(engine, A, "echo", value=1)["value"] == 1
        eventually(lambda: held(engine)[A].confinement)
    assert seccomp.LIBRARY


def status_of(engine) -> dict[str, str]:
    pid = answer(engine, A, "echo", value="pid")["pid"]
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def test_a_worker_has_no_privileges_but_to_read_files(confined):
    status = status_of(confined)
    kept = 1 << 2
    for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
        assert int(status[name], 16) & ~kept == 0, name
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_roots_worker_becomes_nobody_and_owns_its_folder_alone(tmp_path):
    nobody = pwd.getpwnam("nobody")
    with running(home=tmp_path / "home", restrict_paths=False) as engine:
        status = status_of(engine)
        assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
        assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
        assert str(0) not in status["Groups"].split()
        own = Path(answer(engine, A, "environment")["NUMBA_CACHE_DIR"]).parent
        assert own.stat().st_uid == nobody.pw_uid
        assert own.parent.stat().st_uid == 0
        assert answer(engine, A, "attempt", what="write", target="OWN/x") == DONE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_unprivileged_worker_writes_nothing_else_where_there_is_no_landlock(tmp_path):
    """Being another user is a wall of its own."""
    program = (
        "import sys; from pathlib import Path\n"
        "from inspector.sandbox.privileges import drop_privileges, worker_user\n"
        "drop_privileges(worker_user('nobody'))\n"
        "Path(sys.argv[1]).read_bytes()\n"
        "try:\n    Path(sys.argv[1]).write_bytes(b'')\nexcept PermissionError:\n    print('refused')\n"
    )
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "file").chmod(0o600)
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "refused\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_root_can_stay_root(tmp_path):
    with running(home=tmp_path / "home", worker_user="root") as engine:
        assert status_of(engine)["Uid"].split() == ["0"] * 4
    with pytest.raises(SettingsError, match="INSPECTOR_WORKER_USER is 'nobody-here'"):
        read_settings({"INSPECTOR_WORKER_USER": "nobody-here"})


def test_a_process_that_tries_finds_what_is_missing(monkeypatch):
    assert confinement.missing_here() == ()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert confinement.missing_here() == ("a sandbox",)
