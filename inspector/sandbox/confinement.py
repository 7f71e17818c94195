"""Confine a worker: no network, no other process, no file but those it needs.

A worker reads files that strangers made, with native libraries. Our own code runs nothing that a
checkpoint brings; this is for the day when one of those libraries does. Nothing here needs
privileges, every part works without the others, and each says whether the platform has it.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import inspector
from inspector.errors import WorkerError
from inspector.sandbox import landlock, seccomp
from inspector.sandbox.privileges import drop_privileges, worker_user
from inspector.settings import Settings
from inspector.store.files import Place
from inspector.store.keeping.compiled import CHECKED, COMPILED, OWN
from inspector.store.manifests.entries import TEMPORARY
from inspector.store.origins.hub import hub_folder, hub_home

# Libraries, their data, the kernel's tables: what a program needs to run.
SYSTEM = ("/bin", "/lib", "/lib32", "/lib64", "/nix", "/opt/rocm", "/usr")
SYS = (
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
)  # processors, limits and memory; a GPU's driver reads more
PROC = Path("/proc")
# What of it is nobody's; other processes' command lines may hold what nobody should read.
MACHINE = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "uptime", "version")
ETC = Path("/etc")  # where root's secrets lie as well, which a worker of root's may still read
THREADS = PROC / "self" / "task"
RESOLVER = "/run/systemd/resolve"  # /etc/resolv.conf is a link to it
DEVICES = ("full", "null", "random", "urandom")
ZERO = Path("/dev/zero")  # gives memory that no process owns
GPUS = ("dri", "dxg", "kfd", "nvidia*")
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE")  # only the worker that downloads has them
PLACES_IN_ENVIRONMENT = ("CUDA_HOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", *CERTIFICATES)
TORCH_CACHE = "TORCHINDUCTOR_CACHE_DIR"  # torch makes this folder when it is imported


@dataclass(frozen=True, slots=True)
class Confinement:
    """What the sandbox of this machine enforces, as a worker reported after trying."""

    network_off: bool  # it can connect to nothing; the one that downloads: once it has
    processes_off: bool  # it can start no process, and reach no other one
    files_off: bool  # it changes files of the store alone, and reads few others
    missing: tuple[str, ...]  # what the platform lacks for the rest


@dataclass(frozen=True, slots=True)
class Access:
    """What a process keeps when it gives up the rest."""

    settings: Settings  # below its `home` it may write
    reads: tuple[Place, ...] = ()  # files; of a folder, the names alone
    whole: tuple[Path, ...] = ()  # folders that it may read with all that they hold
    modules: tuple[str, ...] = ()  # that it imports, wherever they lie
    network: bool = False  # True: it downloads, and reads no checkpoint
    login: bool = False  # True: it downloads as the person who started the program


def confine(access: Access) -> Confinement:
    """Confine the calling process, which has no second thread yet.

    The worker that downloads keeps the network, and reads nothing of what it fetches.

    Returns:
        What is in force from now on.
    """
    _use_own_folder(access)
    if access.settings.confinement == "off":
        return Confinement(False, False, False, ("INSPECTOR_CONFINEMENT is off",))
    if sys.platform != "linux":  # elsewhere the same numbers are other system calls
        return Confinement(False, False, False, ("Linux",))
    missing: list[str] = []
    _try(lambda: _drop_privileges(access), "an unprivileged user", missing)
    # Landlock first, the filter last: setting one up takes calls that the other refuses.
    files = _try(lambda: keep_to_files(access), "Landlock", missing)
    has_gpu = any(_gpus())
    # What a GPU's driver calls is nowhere listed.
    listed = has_gpu or _try(seccomp.refuse_unlisted, "libseccomp", missing)
    processes = listed and _try(lambda: seccomp.refuse_processes(memory_files=has_gpu), "libseccomp", missing)
    network = access.network or _try(seccomp.refuse_network, "libseccomp", missing)
    return Confinement(network, processes, files, tuple(dict.fromkeys(missing)))


def refuse_unconfined(found: Confinement, settings: Settings) -> None:
    """Let a worker that is not confined do nothing, where the settings ask for that.

    Raises:
        WorkerError: If something is missing that the settings require.
    """
    if settings.confinement == "required" and found.missing:
        raise WorkerError(
            f"Workers cannot be sandboxed on this machine ({', '.join(found.missing)} is "
            "missing), but INSPECTOR_CONFINEMENT is required: install it, or set "
            "INSPECTOR_CONFINEMENT to auto."
        )


def missing_here() -> tuple[str, ...]:
    """What this machine lacks to confine workers, as a process finds that tries."""
    if sys.platform != "linux":
        return ("Linux",)
    command = [sys.executable, "-P", "-c", f"from {__name__} import try_all; print(*try_all(), sep='\\n')"]
    environ = {**os.environ, "PYTHONPATH": str(Path(inspector.__file__).resolve().parents[1])}
    tried = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    return tuple(filter(None, tried.stdout.splitlines())) if tried.returncode == 0 else ("a sandbox",)


def try_all() -> tuple[str, ...]:
    """Confine the calling process in every way, for good; what could not be done."""
    missing: list[str] = []
    _try(lambda: landlock.restrict(read=[Path("/")], lists=[], write=[], links=[], network=False), "Landlock", missing)
    for refuse in (seccomp.refuse_unlisted, seccomp.refuse_processes, seccomp.refuse_network):
        _try(refuse, "libseccomp", missing)
    return tuple(dict.fromkeys(missing))


def _drop_privileges(access: Access) -> None:
    gpus = (device.stat() for device in _gpus())
    groups = {found.st_gid for found in gpus if found.st_gid and found.st_mode & stat.S_IWGRP}
    drop_privileges(worker_user(access.settings.worker_user), groups=groups, writes=access.network)


def _try(do: Callable[[], None], needs: str, missing: list[str]) -> bool:
    try:
        do()
    except (OSError, AttributeError):  # no such library, kernel or function
        missing.append(needs)
        return False
    return True


def _use_own_folder(access: Access) -> None:
    """Have libraries put into this worker's folder what they would keep where others find it."""
    own = access.settings.home
    (own / TEMPORARY).mkdir(parents=True, exist_ok=True)
    tempfile.tempdir = str(own / TEMPORARY)
    os.environ |= {OWN: str(own / COMPILED), TORCH_CACHE: str(own / "torch")}


def keep_to_files(access: Access) -> None:
    """Leave this process only the files that it needs.

    Raises:
        OSError: If the kernel has no Landlock.
    """
    if not landlock.version():
        raise OSError
    changed = [access.settings.home, *_devices()]
    if any(_gpus()):
        changed += [THREADS, ZERO]  # of threads, a GPU's driver writes the names; it gives up if it may not
    with ExitStack() as opened:
        landlock.restrict(
            read=_readable(access),
            lists=(Path(entry) for entry in sys.path if entry),
            write=changed,
            links=_hub_caches() if access.network else (),
            network=access.network,
            held=[each for place in access.reads for each in _hold(place, opened)],
        )


def _hold(place: Place, opened: ExitStack) -> Iterator[int]:
    """Open what was found at a place, if it is still there."""
    path, *known = place
    with suppress(OSError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        opened.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if [found.st_dev, found.st_ino] == known:
            yield descriptor


def _readable(access: Access) -> Iterator[Path]:
    yield from (Path(folder) for folder in (*SYSTEM, RESOLVER))
    yield from [PROC, Path("/sys")] if any(_gpus()) else [*_held_of_proc(), *map(Path, SYS)]
    yield from public(ETC)
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(sys.exec_prefix))
    for name in PLACES_IN_ENVIRONMENT:
        yield from (Path(part) for part in os.environ.get(name, "").split(os.pathsep) if part)
    # Of the folder that holds our package, only the package: settings and secrets lie beside it.
    yield from (Path(entry) for entry in sys.path if entry and "site-packages" in entry)
    for package in {name.partition(".")[0] for name in (__name__, *access.modules)}:  # wherever one works on it
        if spec := find_spec(package):
            yield from map(Path, spec.submodule_search_locations or filter(None, [spec.origin]))
    if checked := os.environ.get(CHECKED):
        yield Path(checked)
    yield from access.whole
    if access.network and access.login:
        yield hub_home() / "token"  # the login of the person who started the program


def _held_of_proc() -> Iterator[Path]:
    """The process' own folder and the machine's facts, held open: the kernel's rules end with its caches otherwise."""
    for path in (PROC / name for name in ("self", *MACHINE)):
        with suppress(OSError):
            os.open(path, os.O_PATH | os.O_CLOEXEC)
            yield path


def public(folder: Path) -> Iterator[Path]:
    """What everybody may read below a folder: all of it by its own name, if that is so."""
    found, secret = _look_through(folder)
    yield from found if secret else [folder]


def _look_through(folder: Path) -> tuple[list[Path], bool]:
    """The parts that everybody may read, and whether there are others; a link's target has a right of its own."""
    found: list[Path] = []
    secret = False
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            needed = stat.S_IROTH | (stat.S_IXOTH if is_folder else 0)
            closed = entry.stat(follow_symlinks=False).st_mode & needed != needed
            below, holds_secret = _look_through(Path(entry.path)) if is_folder and not closed else ([], closed)
            found += below if holds_secret else [Path(entry.path)]
            secret |= holds_secret
    return found, secret


def _devices() -> Iterator[Path]:
    yield from (Path("/dev") / name for name in DEVICES)
    yield from _gpus()


def _gpus() -> Iterator[Path]:
    for pattern in GPUS:
        yield from Path("/dev").glob(pattern)


def _hub_caches() -> Iterator[Path]:
    """Where the hub's library keeps files; not the folder above them, which holds the login."""
    for folder in (hub_folder(), hub_home() / "xet"):
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
