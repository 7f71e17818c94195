"""The system calls that an analysis may make: any other one is "not there", and libraries do without it.

What reads files, maps memory, runs threads, waits, and asks for the time. A name that this machine's processor or
library does not know is left out. Of some calls, `inspector.sandbox.seccomp` refuses certain arguments, or all.
"""

from __future__ import annotations

FILES = (
    *("access", "chdir", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3"),
    *("faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fcntl", "fdatasync", "fgetxattr", "flistxattr"),
    *("flock", "fstat", "fstatfs", "fsync", "ftruncate", "getcwd", "getdents", "getdents64", "getxattr", "ioctl"),
    *("lgetxattr", "link", "linkat", "listxattr", "llistxattr", "lseek", "lstat", "mkdir", "mkdirat", "newfstatat"),
    *("open", "openat", "openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2"),
    *("read", "readahead", "readlink", "readlinkat", "readv", "rename", "renameat", "renameat2", "rmdir", "sendfile"),
    *("stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs"),
    *("truncate", "umask", "unlink", "unlinkat", "write", "writev"),
)
MEMORY = (
    *("brk", "get_mempolicy", "madvise", "map_shadow_stack", "mbind", "membarrier", "memfd_create", "mincore"),
    *("mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock", "munlockall"),
    *("munmap", "pkey_alloc", "pkey_free", "pkey_mprotect", "set_mempolicy"),
)
THREADS = (
    *("arch_prctl", "clone", "exit", "exit_group", "futex", "futex_requeue", "futex_wait", "futex_waitv"),
    *("futex_wake", "get_robust_list", "getcpu", "gettid", "prctl", "restart_syscall", "rseq", "set_robust_list"),
    *("set_tid_address", "wait4", "waitid"),
    *("sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam"),
    *("sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_yield", "getpriority", "ioprio_get"),
)
SIGNALS = (
    *("alarm", "getitimer", "kill", "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn"),
    *("rt_sigsuspend", "rt_sigtimedwait", "setitimer", "sigaltstack", "signalfd", "signalfd4", "tgkill"),
)
WAITING = (
    *("epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd"),
    *("eventfd2", "poll", "ppoll", "pselect6", "select"),
    *("clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "time", "times"),
    *("timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime"),
    *("timerfd_create", "timerfd_gettime", "timerfd_settime"),
)
SOCKETS = (  # of the worker that downloads; the others make them of this machine's own family, and connect none
    *("bind", "connect", "getpeername", "getsockname", "getsockopt", "recvfrom"),
    *("recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "socket", "socketpair"),
)
ASKING = (
    *("capget", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid", "getrandom"),
    *("getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "getuid", "prlimit64", "setrlimit", "sysinfo"),
    "uname",
)
GIVING_UP = ("landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "seccomp")
LISTED = (*FILES, *MEMORY, *THREADS, *SIGNALS, *WAITING, *SOCKETS, *ASKING, *GIVING_UP)
