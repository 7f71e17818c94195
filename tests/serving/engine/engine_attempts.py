"""What a worker must not manage to do; each attempt is made for real, in a worker."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

DONE = "done"
TAKEN = 400_000_000  # bytes
HELD: list[bytes] = []


def attempt(checkpoint, *, progress, what: str, target: str = "", other: str = "") -> Any:
    """Try one of the attempts; `other` is a second checkpoint that the question is about.

    Returns:
        "done", or the name of the error that stopped it.
    """
    try:
        ATTEMPTS[what](_place(target))
    except OSError as error:
        return type(error).__name__
    return DONE


def connect(port: str) -> None:
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5) as made:
        made.sendall(b"hello")


def connect_v6(port: str) -> None:
    with socket.socket(socket.AF_INET6) as made:
        made.connect(("::1", int(port)))


def send_datagram(port: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(b"hello", ("127.0.0.1", int(port)))


def connect_by_name(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(path)


def send_by_name(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.sendto(b"hello", path)


def send_raw_by_name(path: str) -> None:
    """The kernel takes a raw socket of this machine's own family for one of datagrams."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_RAW) as made:
        made.sendto(b"hello", path)


def send_by_name_from_a_pair(path: str) -> None:
    made, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)
    with made, other:
        made.sendto(b"hello", path)


def be_found_by_name(_: str) -> None:
    """Any process of this machine could connect to it, and pass on what it has open."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"\0inspector-{os.getpid()}")
        made.listen()


def list_attributes(path: str) -> None:
    os.listxattr(path)


def native_socket(_: str) -> None:
    """As a library would that knows nothing of Python, the number's upper half set besides."""
    library = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
    call = [ctypes.c_long(value) for value in (number, 0x1_0000_0002, socket.SOCK_STREAM, 0)]
    descriptor = library.syscall(*call)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "socket")
    os.close(descriptor)


def fork(_: str) -> None:
    if (child := os.fork()) == 0:
        os._exit(0)
    os.waitpid(child, 0)


def spawn(_: str) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def replace(_: str) -> None:
    os.execv("/nowhere/program", ["program"])


def signal_other(pid: str) -> None:
    os.kill(int(pid), 0)


def limit_other(pid: str) -> None:
    import resource

    resource.prlimit(int(pid), resource.RLIMIT_CORE)


def environment_of(pid: str) -> None:
    Path(f"/proc/{pid}/environ").read_bytes()


def command_line_of(pid: str) -> None:
    Path(f"/proc/{pid}/cmdline").read_bytes()


def list_processes(_: str) -> None:
    next(Path("/proc").iterdir())


def memory_of(pid: str) -> None:
    with Path(f"/proc/{pid}/mem").open("rb"):
        pass


def trace(pid: str) -> None:
    attach, detach = 16, 17
    library = ctypes.CDLL(None, use_errno=True)
    if library.ptrace(attach, int(pid), 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(int(pid), 0)
    library.ptrace(detach, int(pid), 0, 0)


def read(path: str) -> None:
    Path(path).read_bytes()


def write(path: str) -> None:
    Path(path).write_bytes(b"x")
    Path(path).unlink()


def link(path: str) -> None:
    Path(path).symlink_to("/etc/passwd")
    Path(path).unlink()


def second_name(path: str) -> None:
    Path(path).write_bytes(b"x")
    os.link(path, f"{path}-2")


def thread(_: str) -> None:
    made = threading.Thread(target=int)
    made.start()
    made.join()


def handle_own_signal(_: str) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGUSR1)
    signal.raise_signal(signal.SIGUSR1)


def count_threads(_: str) -> None:
    for _number in range(200):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    threading.Event().wait()


def many_files(_: str) -> None:
    held = []
    while True:
        held.append(Path(os.devnull).open("rb"))  # noqa: SIM115


def large_file(path: str) -> None:
    with Path(path).open("wb") as file:
        file.truncate(10**15)


def many_small_files(path: str) -> None:
    """Fill the disk with files none of which is too large."""
    number = 0
    while True:
        Path(f"{path}{number}").write_bytes(b"x" * 1_000_000)
        number += 1


def files_without_a_name(path: str) -> None:
    """Fill the disk with files that no folder lists: few, or the limit on open files comes first."""
    held = []
    for _ in range(50):
        held.append(Path(path).open("wb", buffering=0))  # noqa: SIM115
        Path(path).unlink()
        held[-1].write(b"x" * 1_000_000)
    threading.Event().wait()


def closed_folder(path: str) -> None:
    """Files that cannot be counted: their path is longer than any may be."""
    here = os.open(Path(path).parent, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        here = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
    threading.Event().wait()


def spin(_: str) -> None:
    while True:
        sum(range(10**6))


def signal_by_file(pid: str) -> None:
    """Have the kernel send a signal of one's choice when something comes through a pipe."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, int(pid))
    fcntl.fcntl(reader, 10, signal.SIGKILL)  # F_SETSIG
    fcntl.fcntl(reader, fcntl.F_SETFL, fcntl.fcntl(reader, fcntl.F_GETFL) | os.O_ASYNC)
    os.write(writer, b"x")


def signal_by_native_file(pid: str) -> None:
    """The same, the upper half of the command set, which the kernel does not look at."""
    number = {"x86_64": 72, "aarch64": 25}[os.uname().machine]
    _call(number, os.pipe()[0], 0x1_0000_0000 | fcntl.F_SETOWN, int(pid))


def slow_down_other(pid: str) -> None:
    os.setpriority(os.PRIO_PROCESS, int(pid), 19)


def idle_other(pid: str) -> None:
    os.sched_setscheduler(int(pid), os.SCHED_IDLE, os.sched_param(0))


def memory_without_file(_: str) -> None:
    os.close(os.memfd_create("x"))


def memory_that_stays(_: str) -> None:
    """System V's shared memory, which outlives whoever made it; 29 and 31 on x86-64, 194 and 195 on ARM."""
    get, control = {"x86_64": (29, 31), "aarch64": (194, 195)}[os.uname().machine]
    found = _call(get, 0, 4096, 0o600)
    _call(control, found, 0, 0)  # IPC_RMID


def memory_that_is_shared(_: str) -> None:
    """Of no file: what a process takes back of its own, the memory keeps, and no limit counts."""
    mmap.mmap(-1, 4096, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS).close()


def memory_by_device(_: str) -> None:
    """The same, by the name of a device."""
    with Path("/dev/zero").open("r+b") as zero:
        mmap.mmap(zero.fileno(), 4096, flags=mmap.MAP_SHARED).close()


def memory_of_sockets(_: str) -> None:
    """What was sent and not received is the kernel's."""
    sender, receiver = socket.socketpair()
    with sender, receiver:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)


def memory_of_pipes(_: str) -> None:
    """What a process has given to a pipe, the kernel holds when the process has let go of it."""
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    part = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 4096)
    reader, writer = os.pipe()
    try:
        _call({"x86_64": 278, "aarch64": 75}[os.uname().machine], writer, ctypes.addressof(part), 1, 0)
    finally:
        os.close(reader)
        os.close(writer)


def memory_afterwards(_: str) -> None:
    """Take memory when the question has been answered."""
    _later(lambda: HELD.append(b"x" * TAKEN))


def work_afterwards(_: str) -> None:
    """Go on when the question has been answered."""
    _later(lambda: spin(""))


def _later(do: Callable[[], Any]) -> None:
    threading.Timer(0.5, do).start()


def message_queue(_: str) -> None:
    get, control = {"x86_64": (68, 71), "aarch64": (186, 187)}[os.uname().machine]
    _call(control, _call(get, 0, 0o600), 0, 0)


def _call(number: int, *arguments: int) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    found = library.syscall(*[ctypes.c_long(value) for value in (number, *arguments)])
    if found < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return found


ATTEMPTS: dict[str, Callable[[str], None]] = {
    function.__name__: function
    for function in (
        connect, connect_v6, send_datagram, connect_by_name, send_by_name, send_raw_by_name, send_by_name_from_a_pair,
        list_attributes, be_found_by_name, native_socket, fork,
        spawn, replace, signal_other, limit_other, environment_of, command_line_of,
        list_processes, memory_of, trace, read, write,
        link, second_name, thread, handle_own_signal, signal_by_file, signal_by_native_file, slow_down_other,
        idle_other, memory_without_file, memory_that_stays, message_queue, memory_that_is_shared, memory_by_device,
        memory_of_sockets, memory_of_pipes, memory_afterwards, work_afterwards,
    )
}  # fmt: skip
UNCAUGHT = {
    each.__name__: each
    for each in (
        *(count_threads, many_files, large_file, spin, connect),
        *(many_small_files, files_without_a_name, closed_folder),
    )
}


def overdo(checkpoint, *, progress, what: str, target: str = "") -> Any:
    """Try one of the attempts and let its error go where an analysis' errors go."""
    UNCAUGHT[what](_place(target))


def _place(target: str) -> str:
    """OWN is the worker's own folder for what it writes."""
    return target.replace("OWN", tempfile.gettempdir()) if "OWN" in target else target
