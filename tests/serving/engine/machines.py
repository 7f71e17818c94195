"""Two machines of one network, made of namespaces: each has its own addresses, processes, home and folder of Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.serving.engine.engine_harness import WAIT

ROOT = Path(__file__).parents[3]
ALONE = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
# The first process of a machine: it lives until its input ends, and nothing that has ended waits for it.
INIT = "import signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print('up', flush=True); sys.stdin.read()"
FIRST = f'mkdir -p /tmp/ray && mount --bind "$1" /tmp/ray && ip link set lo up && exec {sys.executable} -c "{INIT}"'


class NoNamespacesError(Exception):
    """This system gives a user no namespaces of their own, or has no program that connects them."""


class Machine:
    """Runs commands as somebody would type them there.

    Args:
        folder: For its home.
        beside: Another machine, whose user namespace it shares; None: it is the first one.
    """

    def __init__(self, folder: Path, beside: Machine | None = None) -> None:
        self.home = folder / "home"
        commands = folder / "bin"
        for each in (self.home, commands, folder / "ray"):
            each.mkdir(parents=True)
        command = commands / "checkpoint-inspector"  # as an installed package has it
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m inspector "$@"\n')
        command.chmod(0o755)
        self._environment = {
            "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "STREAMLIT_SERVER_HEADLESS": "true",
        }
        if beside is None:
            made = ["unshare", "--user", "--map-root-user", *ALONE]
        else:
            made = [*beside.entering("--user"), "unshare", *ALONE]
        try:
            self._first = subprocess.Popen(
                [*made, "sh", "-c", FIRST, "sh", folder / "ray"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise NoNamespacesError from error
        assert self._first.stdout
        if self._first.stdout.readline() != "up\n":
            self.close()
            raise NoNamespacesError
        (child,) = psutil.Process(self._first.pid).children()
        self.pid = child.pid

    def entering(self, *spaces: str) -> list[str]:
        """What runs a command in some of its namespaces."""
        return ["nsenter", "--target", str(self.pid), "--preserve-credentials", *spaces]

    def start(self, script: str, log: Path) -> subprocess.Popen[bytes]:
        """Begin to run a script; its output goes to a file."""
        entered = self.entering("--user", "--net", "--mount", "--pid", f"--wd={ROOT}")
        with log.open("wb") as output:
            return subprocess.Popen(
                [*entered, "setsid", "--wait", "bash", "-ec", script],  # a group of processes that is known there
                env=self._environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def run(self, script: str) -> str:
        """Run a script to its end; returns its output."""
        log = self.home.parent / "log"
        code = self.start(script, log).wait(WAIT)
        said = log.read_text("utf-8", "replace")
        assert code == 0, f"{script}\n{said}"
        return said

    def close(self) -> None:
        """End everything that runs there."""
        assert self._first.stdin
        self._first.stdin.close()
        self._first.wait()


@contextmanager
def two_machines(folder: Path, first: str, second: str) -> Iterator[tuple[Machine, Machine]]:
    """Two machines with these addresses.

    Raises:
        NoNamespacesError: If this system has none.
    """
    one = Machine(folder / "first")
    try:
        other = Machine(folder / "second", beside=one)
        try:
            cable = f"ip link add eth0 type veth peer name eth0 netns {other.pid}"
            if subprocess.run([*one.entering("--user", "--net"), *cable.split()], check=False).returncode:
                raise NoNamespacesError
            for machine, address in ((one, first), (other, second)):
                machine.run(f"ip addr add {address}/24 dev eth0 && ip link set eth0 up")
            yield one, other
        finally:
            other.close()
    finally:
        one.close()
