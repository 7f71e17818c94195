"""Reading hidden states as tokens: ours beside the usual way and the bare matrix product.

The same work in the same run: top k, normaliser and entropy of 13 × 512 states of 384 numbers
against 30,522 rows, in float32. "Usual" is a log-softmax of everything, then top k and entropy, as
lens tools do. Each way runs in a process of its own, in turn; seconds are medians, memory is the
peak above what the inputs take. The answers are compared first.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from inspector.analyses.readout import block_states, read

STATES, WIDTH, ROWS, K = 13 * 512, 384, 30_522, 5
ROUNDS, REPEATS = 3, 3
Answer = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # ids, probabilities, entropy


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states and an embedding matrix whose logits look like a model's."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(STATES, WIDTH, generator=generator)
    matrix = torch.randn(ROWS, WIDTH, generator=generator) * 0.15
    return hidden, matrix


def bare(hidden: torch.Tensor, matrix: torch.Tensor) -> None:
    """The product alone, block by block."""
    size = block_states(ROWS)
    for begin in range(0, STATES, size):
        _ = hidden[begin : begin + size] @ matrix.T


def ours(hidden: torch.Tensor, matrix: torch.Tensor) -> Answer:
    """The lens' own reading."""
    size = block_states(ROWS)
    pins = torch.empty(0, dtype=torch.long)
    found = [
        read(hidden[begin : begin + size] @ matrix.T, k=K, pins=pins)
        for begin in range(0, STATES, size)
    ]
    return (
        torch.cat([each.ids for each in found]),
        torch.cat([each.probabilities for each in found]),
        torch.cat([each.entropy for each in found]),
    )


def usual(hidden: torch.Tensor, matrix: torch.Tensor) -> Answer:
    """Everything at once."""
    logs = torch.log_softmax(hidden @ matrix.T, dim=1)
    best = logs.topk(K, dim=1)
    return best.indices, best.values.exp(), -(logs.exp() * logs).sum(dim=1)


WAYS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "bare product": bare, "inspector": ours, "log-softmax of everything": usual,
}  # fmt: skip


def measure(name: str) -> dict[str, float]:
    """Run one way a few times in a process of its own: median seconds, and peak memory."""
    hidden, matrix = inputs()
    seconds = []
    with torch.inference_mode():
        _ = hidden[:64] @ matrix.T
        before = peak()
        for _ in range(REPEATS):
            begin = time.perf_counter()
            WAYS[name](hidden, matrix)
            seconds.append(time.perf_counter() - begin)
    return {"seconds": statistics.median(seconds), "megabytes": (peak() - before) / 1000}


def peak() -> int:
    """Most memory that this process has held so far, in kB."""
    status = Path("/proc/self/status").read_text("ascii")  # getrusage counts the parent's, too
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]


def compare() -> None:
    """Refuse to time ways that answer differently."""
    hidden, matrix = inputs()
    with torch.inference_mode():
        mine, theirs = ours(hidden, matrix), usual(hidden, matrix)
    if not torch.equal(mine[0], theirs[0]):
        raise SystemExit("The ways name different tokens.")
    for one, other in zip(mine[1:], theirs[1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def main() -> None:
    """Print seconds, ratios and memory."""
    compare()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, each in found.items():
            command = [sys.executable, "-m", "benchmarks.lens", name]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            each.append(json.loads(printed))
    median = {n: statistics.median(each["seconds"] for each in f) for n, f in found.items()}
    print(f"\n{STATES:,} states × {WIDTH} against {ROWS:,} rows: top {K}, normaliser, entropy")
    print(f"{'way':30}{'seconds':>9}{'of bare':>9}{'of ours':>9}{'extra MB':>10}")
    for name, each in found.items():
        memory = statistics.median(one["megabytes"] for one in each)
        ratios = (median[name] / median[base] for base in ("bare product", "inspector"))
        print(f"{name:30}{median[name]:9.2f}{''.join(f'{r:9.2f}' for r in ratios)}{memory:10.0f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        main()
