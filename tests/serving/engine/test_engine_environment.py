"""What a worker inherits, and what it may use."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys

import pytest

from inspector.sandbox import environment, limits
from inspector.serving.engine.report import server_limits
from inspector.settings import read_settings

SETTINGS = read_settings({})
SERVER = {
    "PATH": "/bin",
    "HOME": "/home/a",
    "LC_ALL": "C.UTF-8",
    "INSPECTOR_DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "1",
    "HF_HUB_CACHE": "/cache",
    "HF_TOKEN": "secret",
    "HUGGING_FACE_HUB_TOKEN": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "DATABASE_URL": "secret",
    "https_proxy": "http://me:secret@proxy",
    "PYTHONSTARTUP": "/tmp/secret.py",
    "LD_PRELOAD": "/tmp/secret.so",
}


def test_secrets_stay_in_the_server():
    built = environment.worker_environment(SERVER, settings=SETTINGS)

    assert not [name for name, value in built.items() if "secret" in value]
    kept = ("PATH", "HOME", "LC_ALL", "CUDA_VISIBLE_DEVICES", "HF_HUB_CACHE")
    assert {name: built[name] for name in kept} == {name: SERVER[name] for name in kept}


def test_a_worker_is_offline_and_quiet_whatever_the_server_says():
    server = {**SERVER, "HF_HUB_OFFLINE": "0", "TOKENIZERS_PARALLELISM": "true"}
    built = environment.worker_environment(server, settings=SETTINGS)

    expected = {"HF_HUB_OFFLINE": "1", "DISABLE_SAFETENSORS_CONVERSION": "1", "TOKENIZERS_PARALLELISM": "false"}
    assert {name: built[name] for name in expected} == expected


def test_the_worker_that_downloads_is_online_behind_the_proxy_but_has_no_token():
    built = environment.worker_environment(SERVER, settings=SETTINGS, network=True)

    assert "HF_HUB_OFFLINE" not in built
    assert built["https_proxy"] == SERVER["https_proxy"]
    assert "HF_TOKEN" not in built


@pytest.mark.parametrize(("network", "login", "disabled"), [(True, True, None), (True, False, "1"), (False, True, "1")])
def test_only_the_persons_own_downloads_use_their_login(network, login, disabled):
    built = environment.worker_environment(SERVER, settings=SETTINGS, network=network, login=login)
    assert built.get("HF_HUB_DISABLE_IMPLICIT_TOKEN") == disabled


def test_a_server_that_is_offline_has_offline_downloads():
    server = {**SERVER, "HF_HUB_OFFLINE": "1"}
    built = environment.worker_environment(server, settings=SETTINGS, network=True)

    assert built["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(("cores", "workers", "threads"), [(1, 4, 1), (2, 4, 2), (4, 4, 4), (16, 4, 4), (64, 4, 16)])
def test_threads_share_the_cores_of_a_large_machine(monkeypatch, cores, workers, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert environment.worker_threads(workers=workers) == threads


def test_the_servers_own_number_of_threads_wins():
    built = environment.worker_environment({"OMP_NUM_THREADS": "7"}, settings=SETTINGS)
    assert built["OMP_NUM_THREADS"] == "7"


def test_threads_spin_for_a_moment_only_unless_the_server_says_otherwise():
    built = environment.worker_environment({}, settings=SETTINGS)
    assert built["GOMP_SPINCOUNT"] == "20000"
    built = environment.worker_environment({"GOMP_SPINCOUNT": "7"}, settings=SETTINGS)
    assert built["GOMP_SPINCOUNT"] == "7"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-signal.SIGKILL, "was killed (SIGKILL), perhaps by the system for lack of memory"),
        (-signal.SIGSEGV, "crashed (SIGSEGV)"),
        (-signal.SIGUSR1, "was ended by SIGUSR1"),
        (3, "ended unexpectedly (exit status 3)"),
        (0, "ended unexpectedly (exit status 0)"),
    ],
)
def test_an_end_is_told_in_words(code, words):
    text = str(limits.death_error(code))
    assert words in text
    assert text.endswith("Try again: a new worker takes over.")


def test_the_limits_of_a_process():
    program = (
        "import resource as r\n"
        "from inspector.sandbox import limits\n"
        "from inspector.settings import read_settings\n"
        "limits.GPU_NODES = ()\n"
        "limits.apply_limits(read_settings({'INSPECTOR_UPLOAD_MB': '5'}))\n"
        "print(*(r.getrlimit(k)[0] for k in (r.RLIMIT_CORE, r.RLIMIT_FSIZE, r.RLIMIT_AS)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    core, size, address = map(int, done.stdout.split())

    assert (core, size) == (0, 69_000_000)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if sys.platform == "linux" and hard == resource.RLIM_INFINITY:
        assert address == 2 * SETTINGS.worker_nbytes + 8_000_000_000


def test_a_server_opens_as_many_files_as_the_system_allows():
    program = (
        "import resource as r\n"
        "from inspector.sandbox.limits import open_files, raise_open_files\n"
        "hard = min(r.getrlimit(r.RLIMIT_NOFILE)[1], 65_536)\n"
        "r.setrlimit(r.RLIMIT_NOFILE, (64, hard))\n"
        "raise_open_files()\n"
        "print(open_files() == hard)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_the_limits_name_how_many_files_the_server_opens():
    (found,) = (each for each in server_limits(SETTINGS, None).limits if each.setting == "ulimit -n")
    assert found.value == limits.open_files() > 0
