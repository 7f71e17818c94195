"""What a GPU gives: the map beside the CPU's, the lens beside the bare product, masks in batches.

The map: MiniLM's 30,522 × 384 and random rows of 256,000 × 1,024, warm, the same analysis on either
device in turn: a GPU finds the neighbors, and all else is the processor's on both. The lens: its
reading beside the bare blocked product, in float32 and in bfloat16, of 13 × 512 states of 384
against 30,522 rows and of 2,048 states of 2,048 against 128,256; answers compared with the usual
way first. Masks: `tools.bench.masked_lm` on the GPU. Where there is none, nothing is measured.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from inspector.settings import Device
from tools.bench import lens, masked_lm
from tools.bench.projection import minilm, open_folder, quiet, write_large

DEVICE: Device = "cuda"
PAIRS = 3
CASES = {
    "13 × 512 × 384 against 30,522": (13 * 512, 384, 30_522),
    "2,048 × 2,048 against 128,256": (2_048, 2_048, 128_256),
}


def map_seconds(folder: Path, home: Path, device: Device) -> tuple[float, float]:
    """A warm map with nothing from the disk: seconds, and the share of neighbors it keeps."""
    from inspector.analyses.vocabulary_map.compute import project

    checkpoint = open_folder(folder, home)
    taken, kept = 0.0, 0.0
    for _ in range(2):  # the first compiles and warms up
        with tempfile.TemporaryDirectory() as empty:
            checkpoint.settings = replace(checkpoint.settings, home=Path(empty), device=device)
            begin = time.perf_counter()
            kept = project(checkpoint, progress=quiet, method="umap").kept_neighbours
            taken = time.perf_counter() - begin
    return taken, kept


def maps(folder: Path, *, pairs: int = PAIRS) -> None:
    """Print the map's seconds on both devices, in turn."""
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        for _ in range(pairs):
            slow, kept = map_seconds(folder, Path(name), "cpu")
            quick, also = map_seconds(folder, Path(name), DEVICE)
            ratios.append(slow / quick)
            print(
                f"map: {slow:.2f} s on the CPU (keeps {kept:.3f}), {quick:.2f} s on the GPU "
                f"(keeps {also:.3f}), {ratios[-1]:.1f} times",
                flush=True,
            )
    print(f"map: {statistics.median(ratios):.1f} times the CPU in the median")


def readings(cases: Mapping[str, tuple[int, int, int]] = CASES, *, rounds: int = lens.ROUNDS) -> None:
    """Print the lens' reading beside the bare product."""
    for name, (states, width, rows) in cases.items():
        for dtype in (torch.float32, torch.bfloat16):
            hidden, matrix = (each.to(dtype) for each in lens.inputs(states, width, rows, device=DEVICE))
            if dtype == torch.float32:
                lens.compare(hidden[:512], matrix)
            found = lens.seconds(hidden, matrix, "bare product", "inspector", rounds=rounds)
            pairs = [one / other for one, other in zip(found["inspector"], found["bare product"], strict=True)]
            print(
                f"lens, {name}, {str(dtype).removeprefix('torch.')}: bare product "
                f"{1e3 * min(found['bare product']):.1f} ms, ours "
                f"{1e3 * min(found['inspector']):.1f} ms, {statistics.median(pairs):.2f} times "
                "in the median",
                flush=True,
            )


def main() -> None:
    """Measure, where there is a GPU."""
    if not torch.cuda.is_available():
        print("This machine has no GPU: nothing was measured.")
        return
    print(torch.cuda.get_device_name())
    readings()
    maps(minilm())
    with tempfile.TemporaryDirectory() as name:
        write_large(Path(name))
        maps(Path(name), pairs=1)
    masked_lm.main(DEVICE)


if __name__ == "__main__":
    main()
