"""The sandbox' filters for another processor, as libseccomp writes them: each is run here, call by call."""

from __future__ import annotations

import ctypes
import errno
import operator
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from inspector.sandbox import seccomp
from inspector.sandbox.system_calls import LISTED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
NATIVE, X86, ARM = 0, 0xC000003E, 0xC00000B7  # SCMP_ARCH_NATIVE, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64
KILLED = 0x00000000
JUMPS = {0x15: operator.eq, 0x25: operator.gt, 0x35: operator.ge, 0x45: operator.and_}  # of BPF, by its code
THREAD = 0x003D0F00  # the C library's flags for a thread
# What ARM has instead of calls that are older than it.
INSTEAD = {
    **{"access": "faccessat", "creat": "openat", "dup2": "dup3", "getdents": "getdents64", "link": "linkat"},
    **{"lstat": "newfstatat", "mkdir": "mkdirat", "open": "openat", "pipe": "pipe2", "readlink": "readlinkat"},
    **{"rename": "renameat", "rmdir": "unlinkat", "stat": "newfstatat", "symlink": "symlinkat", "unlink": "unlinkat"},
    **{"alarm": "setitimer", "pause": "ppoll", "signalfd": "signalfd4", "epoll_create": "epoll_create1"},
    **{"epoll_wait": "epoll_pwait", "eventfd": "eventfd2", "poll": "ppoll", "select": "pselect6"},
    **{"time": "clock_gettime", "getpgrp": "getpgid"},
}
ELSEWHERE = {"arch_prctl"}  # sets registers that ARM has not
library = ctypes.CDLL(seccomp.LIBRARY)
library.seccomp_syscall_resolve_num_arch.restype = ctypes.c_void_p


def number(call: str, machine: int) -> int:
    """A call's number; below zero: this machine, or libseccomp, has no such call."""
    return library.seccomp_syscall_resolve_name_arch(ctypes.c_uint32(machine), call.encode())


class Library:
    """libseccomp that makes filters for ARM, and gives none to the kernel of this machine."""

    def __init__(self) -> None:
        self.programs: list[bytes] = []

        def attr_set(context: int, attribute: int, value: int) -> int:
            library.seccomp_arch_remove(ctypes.c_void_p(context), ctypes.c_uint32(0))
            library.seccomp_arch_add(ctypes.c_void_p(context), ctypes.c_uint32(ARM))
            return library.seccomp_attr_set(ctypes.c_void_p(context), attribute, value)

        def rule_add(context: int, action: int, call: int, *compared: Any) -> int:
            named = library.seccomp_syscall_resolve_num_arch(ctypes.c_uint32(NATIVE), call)
            # A number without a name is no other processor's: the kernel's own test tries those.
            return library.seccomp_rule_add_array(ctypes.c_void_p(context), action, call, *compared) if named else 0

        def load(context: int) -> int:
            with tempfile.TemporaryFile() as file:
                done = library.seccomp_export_bpf(ctypes.c_void_p(context), file.fileno())
                file.seek(0)
                self.programs.append(file.read())
            return done

        self.seccomp_attr_set, self.seccomp_rule_add_array, self.seccomp_load = attr_set, rule_add, load

    def __getattr__(self, name: str) -> Any:
        return getattr(library, name)


def run(program: bytes, call: int, arguments: tuple[int, ...], machine: int) -> int:
    """What a filter says of a call: the classic BPF that the kernel runs, with the operations that filters have."""
    data = struct.pack("<iIQ6Q", call, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    value = place = 0
    while True:
        code, yes, no, constant = struct.unpack_from("<HBBI", program, 8 * place)
        place += 1
        match code:
            case 0x20:  # load a word
                (value,) = struct.unpack_from("<I", data, constant)
            case 0x54:  # and
                value &= constant
            case 0x05:  # jump
                place += constant
            case _ if code in JUMPS:
                place += yes if JUMPS[code](value, constant) else no
            case 0x06:  # return
                return constant
            case _:
                raise AssertionError(f"operation {code:#x}")


@pytest.fixture(scope="module")
def filters() -> list[bytes]:
    made = Library()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seccomp.ctypes, "CDLL", lambda name: made)
        seccomp.refuse_unlisted()
        seccomp.refuse_processes()
        seccomp.refuse_network()
    return made.programs


def answer(filters: list[bytes], call: str, *arguments: int, machine: int = ARM) -> int | str:
    """What becomes of a call under all filters: "allowed", "killed", or the error that it gets."""
    said = [run(program, number(call, machine), arguments, machine) for program in filters]
    strictest = min(said)  # of these three actions, the kernel takes the lowest number
    if strictest == KILLED:
        return "killed"
    return "allowed" if strictest == seccomp.ALLOW else min(each & 0xFFFF for each in said if each != seccomp.ALLOW)


def test_each_call_of_an_analysis_is_allowed_on_arm_or_has_one_there_in_its_place(filters):
    (listed, *_) = filters
    missing = {call for call in LISTED if number(call, ARM) < 0 and number(call, X86) >= 0}
    assert missing == {*INSTEAD, *ELSEWHERE}
    assert not {*INSTEAD.values()} - {*LISTED}
    for call in {*LISTED, *INSTEAD.values()} - missing:
        if number(call, ARM) >= 0:
            assert answer([listed], call) == "allowed", call


@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("execve", (), errno.EPERM),
        ("clone", (signal.SIGCHLD,), errno.EPERM),
        ("clone", (THREAD,), "allowed"),
        ("clone3", (), errno.ENOSYS),
        ("socket", (socket.AF_INET, socket.SOCK_STREAM), errno.EACCES),
        ("socket", (socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC), errno.EACCES),
        ("socket", (socket.AF_UNIX, socket.SOCK_STREAM), "allowed"),
        ("connect", (), errno.EACCES),
        ("kill", (1,), errno.EPERM),
        ("kill", (os.getpid(),), "allowed"),
        ("fcntl", (0, 0x1_0000_0008), errno.EPERM),
        ("fcntl", (0, 3), "allowed"),
        ("mmap", (0, 4096, 3, seccomp.SHARED_OF_NO_FILE), errno.EPERM),
        ("mmap", (0, 4096, 3, 0x22), "allowed"),
        ("prlimit64", (1,), errno.EPERM),
        *((call, (), errno.EPERM) for call in ("ptrace", "fchmodat", "fchmodat2", "memfd_create", "shmget", "bpf")),
        *((call, (), errno.ENOSYS) for call in ("io_setup", "personality", "name_to_handle_at")),
    ],
)
def test_what_a_worker_may_not_do_is_refused_on_arm_as_well(filters, call, arguments, expected):
    assert answer(filters, call, *arguments) == expected


def test_the_calls_of_another_processor_end_the_process(filters):
    assert answer(filters, "read", machine=X86) == "killed"


def test_a_name_that_this_processor_has_not_is_left_out():
    """Some names of the list are such names on ARM; this is one on each processor of 64 bits."""
    assert number("socketcall", X86) < -1
    program = "from inspector.sandbox.seccomp import Rule, load; load([Rule('socketcall'), Rule('getppid')])\n"
    tried = "import os\ntry: os.getppid()\nfinally: print('loaded')"
    done = subprocess.run(
        [sys.executable, "-c", program + tried],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "loaded\n", done.stderr
