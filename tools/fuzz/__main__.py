"""Fuzz the readers: `python -m tools.fuzz --minutes 5`, `--target pickle`, `make fuzz MINUTES=5`.

What it finds is kept in fuzz/found/ and named; the exit status is 1 then.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.fuzz.seeds import SEEDS
from tools.fuzz.targets import TARGETS

HERE = Path(__file__).parent
FOUND = HERE / "found"
SLOWEST_SECONDS = 60  # that one input may take
MEMORY_MB = 3_000
STATUS = re.compile(r"#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)")
DONE = re.compile(r"Done (\d+) runs in (\d+) second")


@dataclass(frozen=True, slots=True)
class FuzzRun:
    """What one target's run did."""

    target: str
    executions: int
    seconds: int
    coverage: int  # edges of the readers and their libraries
    corpus: int
    found: tuple[Path, ...]
    log: str

    def __str__(self) -> str:
        speed = self.executions / max(self.seconds, 1)
        found = ", ".join(path.name for path in self.found) or "nothing"
        return f"{self.target:17} {self.executions:>10,} {speed:>10,.0f} {self.coverage:>8,} {self.corpus:>7,}  {found}"


class Fuzzer:
    """A process that has imported the readers, and forks one for each run."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the exit
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.fuzz.atheris_run"],
            cwd=HERE.parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Fuzzer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._log.close()

    def run(self, target: str, *, seconds: float, runs: int = -1, seed: int = 1, found: Path = FOUND) -> FuzzRun:
        """Fuzz one target.

        Args:
            target: One of TARGETS.
            seconds: When it ends.
            runs: After how many inputs it ends; -1: with its time alone.
            seed: Of the generator.
            found: Takes the inputs that break something.
        """
        folder = found / target
        folder.mkdir(parents=True, exist_ok=True)
        before = set(folder.iterdir())
        with tempfile.TemporaryDirectory(prefix="corpus-") as corpus, tempfile.NamedTemporaryFile() as told:
            options = [
                f"-max_total_time={seconds:.0f}",
                f"-runs={runs}",
                f"-seed={seed}",
                f"-timeout={SLOWEST_SECONDS}",
                "-max_len=20000",
                f"-rss_limit_mb={MEMORY_MB}",
                f"-artifact_prefix={folder}/",
                "-print_final_stats=1",
            ]
            status = self._ask(target, told.name, *options, corpus, str(SEEDS / target), str(folder))
            log = told.read().decode("utf-8", "replace")
        broken = tuple(sorted(set(folder.iterdir()) - before))
        if not any(folder.iterdir()):
            folder.rmdir()
        if status != "0" and not broken:
            raise RuntimeError(f"{target} ended with status {status}:\n{log[-3000:]}")
        return _read(target, log, broken, seconds)

    def _ask(self, *asked: str) -> str:
        """Have a run made, and give its exit status."""
        assert self._process.stdin
        assert self._process.stdout
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        if not (status := self._process.stdout.readline().strip()):
            self._log.seek(0)
            raise RuntimeError(f"The fuzzer ended:\n{self._log.read().decode('utf-8', 'replace')[-3000:]}")
        return status


def _read(target: str, log: str, broken: tuple[Path, ...], seconds: float) -> FuzzRun:
    status = STATUS.findall(log)
    executions, coverage, _, size = map(int, status[-1]) if status else (0, 0, 0, 0)
    done = DONE.search(log)
    took = int(done[2]) if done else round(seconds)
    return FuzzRun(target, int(done[1]) if done else executions, took, coverage, size, broken, log)


def main() -> int:
    """Fuzz one target or all of them, each for its share of the time, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="in all")
    parser.add_argument("--target", choices=[*TARGETS], action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    targets = options.target or [*TARGETS]
    print(f"{'target':17} {'inputs':>10} {'a second':>10} {'edges':>8} {'corpus':>7}  found")
    bad = 0
    with Fuzzer() as fuzzer:
        for target in targets:
            run = fuzzer.run(target, seconds=60 * options.minutes / len(targets), seed=options.seed)
            print(run, flush=True)
            if run.found:
                bad = 1
                print(run.log[-3000:], flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
