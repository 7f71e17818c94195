"""Processor seconds to open a GGUF file of 400 MB beside a small one, and to dequantize its blocks beside gguf.

Both files are opened by `python -m inspector overview`, in turn: what the large one takes more are its header, with a
vocabulary of 152,000 tokens and 151,000 merges, and its metadata. Blocks are dequantized with one thread, by our reader
and by `gguf.quants`, in turn; ratios are medians of pairs.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from inspector.models.quantized.ggml import dequantize_blocks
from inspector.store.readers.ggml import READ, SIZES
from tools.package import ROOT

ROUNDS = 7
TOKENS, MERGES = 152_000, 151_000
ROWS, COLUMNS, MATRICES = 4_096, 8_192, 11  # 11 matrices of 36 MB in Q8_0
SMALL = "a small one"
NUMBERS = 1 << 22  # that are dequantized at once


def main() -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = {SMALL: folder / "small.gguf", "400 MB": folder / "large.gguf"}
        _write(files[SMALL], rows=32, matrices=1, tokens=32)
        _write(files["400 MB"], rows=ROWS, matrices=MATRICES, tokens=TOKENS)
        environment = os.environ | {"INSPECTOR_HOME": str(folder / "home")}
        times: dict[str, list[float]] = {size: [] for size in files}
        for _ in range(ROUNDS + 1):  # the first one warms up
            for size, path in files.items():
                times[size].append(_seconds(path, environment))
    print(f"processor seconds of `overview`, {ROUNDS} rounds in turn\n")
    print("| file | median s | more than the small one, median of pairs |\n|---|---:|---:|")
    for size, taken in times.items():
        more = statistics.median(one - least for one, least in zip(taken[1:], times[SMALL][1:], strict=True))
        print(f"| {size} | {statistics.median(taken[1:]):.2f} | {more:.2f} s |")
    torch.set_num_threads(1)
    print(f"\n{NUMBERS:,} numbers dequantized, {ROUNDS} rounds in turn\n")
    print("| type | ours, median ms | gguf, median ms | ours / gguf |\n|---|---:|---:|---:|")
    for block in sorted(READ):
        _print_type(block)


def _write(path: Path, *, rows: int, matrices: int, tokens: int) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_array("tokenizer.ggml.tokens", [f"token{number}" for number in range(tokens)])
    writer.add_array("tokenizer.ggml.token_type", [1] * tokens)
    writer.add_array("tokenizer.ggml.merges", [f"a b{number}" for number in range(min(tokens, MERGES))])
    columns = COLUMNS if matrices > 1 else 32
    numbers, nbytes = SIZES["Q8_0"]
    data = np.zeros((rows, columns // numbers * nbytes), np.uint8)
    for number in range(matrices):
        writer.add_tensor(f"blk.{number}.ffn_up.weight", data, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _seconds(path: Path, environment: dict[str, str]) -> float:
    started = _spent()
    command = [sys.executable, "-m", "inspector", "overview", str(path)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return _spent() - started


def _spent() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _print_type(block: str) -> None:
    numbers, nbytes = SIZES[block]
    rows = np.random.default_rng(0).integers(0, 256, (NUMBERS // 4_096, 4_096 // numbers * nbytes), dtype=np.uint8)
    ours, kind = torch.from_numpy(rows), gguf.GGMLQuantizationType[block]
    ways: dict[str, Callable[[], Any]] = {
        "ours": lambda: dequantize_blocks(ours, block),
        "gguf": lambda: gguf.quants.dequantize(rows, kind),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    with np.errstate(all="ignore"):  # scales of random bytes
        try:
            for _ in range(ROUNDS + 1):
                for way, run in ways.items():
                    started = time.process_time()
                    run()
                    taken[way].append(time.process_time() - started)
        except NotImplementedError:  # gguf does not dequantize it
            return
    ratio = statistics.median(mine / theirs for mine, theirs in zip(taken["ours"][1:], taken["gguf"][1:], strict=True))
    mine, theirs = (1_000 * statistics.median(taken[way][1:]) for way in ("ours", "gguf"))
    print(f"| {block} | {mine:.1f} | {theirs:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
