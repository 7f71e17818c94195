"""Refuse system calls that an analysis never makes: starting processes, the network.

A worker starts no process, opens no network socket and touches no other process. What it may not
do fails with "permission denied", in native code as well as in Python, and for good: no filter can
be taken back. What no library here is known to call is "not there". libseccomp comes with Debian,
Ubuntu and every system that runs systemd.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from inspector.sandbox.system_calls import LISTED

LIBRARY = "libseccomp.so.2"
ALLOW = 0x7FFF0000
REFUSE = 0x00050000  # with an errno below
CLONE_THREAD = 0x00010000
NOT_EQUAL, MASKED_EQUAL = 1, 7  # enum scmp_compare
SAME_FILTER_FOR_THREADS, NO_SLOW_MITIGATION, BINARY_TREE = (4, 1), (7, 1), (8, 2)  # attributes
LOW = 0xFFFF_FFFF  # of a number that the kernel takes with 32 bits, whatever the others are
TYPE_MASK = 0xF  # of socket()'s second argument, which holds flags as well


@dataclass(frozen=True, slots=True)
class Compare:
    """One argument of a system call compared with a number; `mask` is for MASKED_EQUAL."""

    argument: int
    operator: int
    value: int
    mask: int = 0


@dataclass(frozen=True, slots=True)
class Rule:
    """A system call that fails with an errno, always or when one of its arguments matches; without one, it works."""

    call: str
    error: int | None = errno.EPERM
    when: Compare | None = None


# No new process, no other program; threads are made by the same call and stay possible. Of clone3
# a filter cannot see the flags: "not there" makes the C library take clone.
PROCESSES = (
    *(Rule(call) for call in ("execve", "execveat", "fork", "vfork")),
    Rule("clone", when=Compare(0, MASKED_EQUAL, 0, mask=CLONE_THREAD)),
    Rule("clone3", errno.ENOSYS),
)
# No network, no way to another process through a socket. CUDA makes a socket of this machine's own
# family at start, so that one may be made, but connects to nothing, and sends nothing elsewhere.
NETWORK = (
    *(Rule(call, errno.EACCES, Compare(0, NOT_EQUAL, socket.AF_UNIX)) for call in ("socket", "socketpair")),
    *(
        Rule(call, errno.EACCES, Compare(1, MASKED_EQUAL, sends_by_name, mask=TYPE_MASK))
        for call in ("socket", "socketpair")
        for sends_by_name in (socket.SOCK_DGRAM, socket.SOCK_RAW)  # of this family, the kernel takes one for the other
    ),
    Rule("connect", errno.EACCES),
    # What was sent and not received, no limit counts: the system's usual bound stays.
    Rule("setsockopt", errno.EACCES, Compare(2, MASKED_EQUAL, socket.SO_SNDBUF, mask=LOW)),
    *(Rule(call) for call in ("io_uring_setup", "io_uring_enter", "io_uring_register")),
)
# What reaches into other processes or deep into the kernel, and has no place in an analysis.
REACH = (
    *("kcmp", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "process_madvise", "ptrace"),
    *("process_vm_readv", "process_vm_writev", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "tkill"),
    *("add_key", "bpf", "keyctl", "perf_event_open", "request_key", "userfaultfd"),
    *("chroot", "fsconfig", "fsmount", "fsopen", "mount", "mount_setattr", "move_mount"),
    *("open_by_handle_at", "open_tree", "open_tree_attr", "pivot_root", "quotactl", "setns", "umount2", "unshare"),
    *("delete_module", "finit_module", "init_module", "kexec_file_load", "kexec_load", "reboot"),
    *("acct", "clock_settime", "sethostname", "settimeofday", "swapoff", "swapon"),
    *("migrate_pages", "move_pages", "process_mrelease", "set_mempolicy_home_node"),
    *("ioprio_set", "sched_setattr", "sched_setparam", "sched_setscheduler", "setpgid", "setpriority"),
)
# Landlock rules over names and bytes alone: whose a file is, who may read it, its times and its attributes stay open to
# each process of its owner's. And what watches other processes' files.
ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "fchownat", "lchown"),
    *("futimesat", "utime", "utimensat", "utimes", "file_setattr"),
    *("fsetxattr", "lsetxattr", "setxattr", "setxattrat"),
    *("fremovexattr", "lremovexattr", "removexattr", "removexattrat"),
)
# A file's attributes are read by its path, wherever it lies; copies are made without them, as on disks that have none.
NO_ATTRIBUTES = ("fgetxattr", "flistxattr", "getxattr", "lgetxattr", "listxattr", "llistxattr")
WATCHING = ("fanotify_init", "fanotify_mark", "inotify_add_watch", "inotify_init", "inotify_init1")
# Calls that are younger than libraries in use; their numbers are the same on every machine.
NUMBERS = {"fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467, "file_setattr": 469}
# Memory that no process has mapped: the limit on a worker's memory does not see it, and some of it
# stays when the worker has ended; and a place where two of them would find each other.
MEMORY_FILES = ("memfd_create", "memfd_secret")
SHARED_OF_NO_FILE = 0x21  # of mmap()'s flags: MAP_SHARED with MAP_ANONYMOUS
UNSEEN = (
    *("msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop"),
    *("shmat", "shmctl", "shmdt", "shmget"),
    "vmsplice",  # a pipe then holds pages of a process, and with a small part of a huge page all of it
    *("mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink"),
)
# A file can send a signal to a process of the same user when something happens to it; a terminal
# takes what is put into it as if somebody had typed it. Attributes, watches and leases have commands, too.
COMMANDS = (
    *(("fcntl", command) for command in (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX
    *(("fcntl", command) for command in (1024, 1026)),  # F_SETLEASE, F_NOTIFY
    *(("ioctl", command) for command in (0x40086602, 0x40046602)),  # FS_IOC_SETFLAGS, and that of 32 bits
    *(("ioctl", command) for command in (0x40087602, 0x40047602)),  # FS_IOC_SETVERSION, and that of 32 bits
    *(("ioctl", command) for command in (0x401C5820, 0x40806685)),  # FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY
    *(("ioctl", command) for command in (0x8901, 0x8902)),  # FIOSETOWN, SIOCSPGRP
    *(("ioctl", command) for command in (0x5412, 0x541C)),  # TIOCSTI, TIOCLINUX
)


def refuse_unlisted() -> None:
    """Make no system call but those that analyses are known to make, from now on; the other filters refuse some.

    Raises:
        OSError: If the system has no libseccomp, or the kernel takes no filter.
    """
    load((Rule(call, None) for call in LISTED), otherwise=REFUSE | errno.ENOSYS)


def refuse_processes(*, memory_files: bool = False) -> None:
    """Start no process, reach no other one, change no file's attributes and keep no unseen memory, from now on.

    Args:
        memory_files: True: files in memory, and memory that no process owns, stay possible, which a GPU's driver may
            need.

    Raises:
        OSError: If the system has no libseccomp, or the kernel takes no filter.
    """
    signals = (Rule(call, when=Compare(0, NOT_EQUAL, os.getpid())) for call in ("kill", "tgkill"))
    others = Rule("prlimit64", when=Compare(0, NOT_EQUAL, 0))
    unseen = (*REACH, *ATTRIBUTES, *WATCHING, *UNSEEN, *(() if memory_files else MEMORY_FILES))
    shared = Rule("mmap", when=Compare(3, MASKED_EQUAL, SHARED_OF_NO_FILE, mask=SHARED_OF_NO_FILE))
    owned = () if memory_files else (shared,)
    # A thread pool that binds its threads to processors gives up if it may not: it is told that it could.
    bound = Rule("sched_setaffinity", 0, Compare(0, NOT_EQUAL, 0))
    attributes = (Rule(call, errno.ENOTSUP) for call in NO_ATTRIBUTES)
    commands = (Rule(call, when=Compare(1, MASKED_EQUAL, command, mask=LOW)) for call, command in COMMANDS)
    load([*PROCESSES, *signals, others, bound, *owned, *attributes, *commands, *(Rule(call) for call in unseen)])


def refuse_network() -> None:
    """Connect to nothing from now on, in any thread of the process.

    Raises:
        OSError: If the system has no libseccomp, or the kernel takes no filter.
    """
    load(NETWORK)


class _Argument(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


def load(rules: Iterable[Rule], *, otherwise: int = ALLOW) -> None:
    """Have the kernel follow rules for this process and all that it starts.

    Args:
        rules: What to do about the calls that they name.
        otherwise: What to do about any other call.
    """
    library = ctypes.CDLL(LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_release.argtypes = library.seccomp_load.argtypes = [ctypes.c_void_p]
    library.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint),
        ctypes.POINTER(_Argument),
    ]
    context = library.seccomp_init(otherwise)
    if not context:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    try:
        _must(library.seccomp_attr_set(context, *SAME_FILTER_FOR_THREADS))
        for attribute in (NO_SLOW_MITIGATION, BINARY_TREE):  # older libraries know neither
            library.seccomp_attr_set(context, *attribute)
        for rule in rules:
            _add(library, context, rule)
        _must(library.seccomp_load(context))
    finally:
        library.seccomp_release(context)


def _add(library: ctypes.CDLL, context: int, rule: Rule) -> None:
    number = library.seccomp_syscall_resolve_name(rule.call.encode())
    if number == -1:  # the library is older than the call, and perhaps the kernel
        number = NUMBERS.get(rule.call, -1)
    if number == -1:
        return
    compared = (_Argument * 1)()
    if rule.when is not None:
        masked = rule.when.operator == MASKED_EQUAL
        values = (rule.when.mask, rule.when.value) if masked else (rule.when.value, 0)
        compared[0] = _Argument(rule.when.argument, rule.when.operator, *values)
    count = int(rule.when is not None)
    action = ALLOW if rule.error is None else REFUSE | rule.error
    _must(library.seccomp_rule_add_array(context, action, number, count, compared))


def _must(result: int) -> None:
    if result:
        raise OSError(-result, os.strerror(-result))
