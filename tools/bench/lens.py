"""Reading hidden states as tokens: ours beside the usual way and the bare matrix product.

The same work in the same run: top k, normalizer and entropy of 13 × 512 states of 384 numbers
against 30,522 rows, in float32. "Usual" is a log-softmax of everything, then top k and entropy, as
lens tools do. The ways run in turn in one process, round after round: seconds are each way's least
disturbed round, ratios those of the least disturbed rounds, beside the median of the ratios within
each round. Memory is the peak above what the inputs take, in a process of its own. The answers are
compared first.

Then, with `--large`, the whole lens on a model of 32 layers and d_model 2,048 with 128,256 tokens,
2,048 positions long: 33 × 2,048 states at every rung, and the memory it takes above the model's.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from inspector.models.reading.readout import block_states, read
from inspector.models.running import wait

STATES, WIDTH, ROWS, K = 13 * 512, 384, 30_522, 5
ROUNDS = 7
LAYERS, POSITIONS, D_MODEL, VOCAB = 32, 2_048, 2_048, 128_256  # of the large case
SAMPLE_SECONDS = 0.02
Answer = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # ids, probabilities, entropy


def inputs(
    states: int = STATES, width: int = WIDTH, rows: int = ROWS, device: str = "cpu"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states and an embedding matrix whose logits look like a model's."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(states, width, generator=generator)
    matrix = torch.randn(rows, width, generator=generator) * 0.15
    return hidden.to(device), matrix.to(device)


def bare(hidden: torch.Tensor, matrix: torch.Tensor) -> None:
    """The product alone, block by block."""
    size = block_states(len(matrix), hidden.device)
    for begin in range(0, len(hidden), size):
        _ = hidden[begin : begin + size] @ matrix.T


def ours(hidden: torch.Tensor, matrix: torch.Tensor) -> Answer:
    """The lens' own reading."""
    size = block_states(len(matrix), hidden.device)
    pins = torch.empty(0, dtype=torch.long, device=hidden.device)
    found = [read(hidden[begin : begin + size] @ matrix.T, k=K, pins=pins) for begin in range(0, len(hidden), size)]
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
    "bare product": bare,
    "inspector": ours,
    "log-softmax of everything": usual,
}


def extra_memory(name: str) -> int:
    """Peak kB of one way above what its inputs take; for a process of its own."""
    hidden, matrix = inputs()
    with torch.inference_mode():
        _ = hidden[:64] @ matrix.T
        before = peak()
        WAYS[name](hidden, matrix)
    return peak() - before


def seconds(hidden: torch.Tensor, matrix: torch.Tensor, *ways: str, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Every way in turn, round after round."""
    found: dict[str, list[float]] = {name: [] for name in ways or WAYS}
    with torch.inference_mode():
        for _ in range(rounds):
            for name, taken in found.items():
                wait(hidden.device)
                begin = time.perf_counter()
                WAYS[name](hidden, matrix)
                wait(hidden.device)
                taken.append(time.perf_counter() - begin)
    return found


def peak() -> int:
    """Most memory that this process has held so far, in kB."""
    status = Path("/proc/self/status").read_text("ascii")  # getrusage counts the parent's, too
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # type: ignore[index]


@contextmanager
def anonymous_peak() -> Iterator[list[int]]:
    """Watch the most memory of this process that is no file's, in kB: weights lie in a file.

    A page of a file that the system took back and read again would count as new in the peak that
    the system keeps.
    """
    most, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            status = Path("/proc/self/status").read_text("ascii")
            held = re.search(r"RssAnon:\s+(\d+)", status)
            most[0] = max(most[0], int(held[1]) if held else 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


def write_large(folder: Path) -> None:
    """A Llama whose hidden states and vocabulary are large, and little else of it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=D_MODEL,
        num_hidden_layers=LAYERS,
        intermediate_size=64,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=64,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer = Tokenizer(WordLevel({f"t{n}": n for n in range(VOCAB)}, unk_token="t0"))
    tokenizer.pre_tokenizer = Whitespace()  # type: ignore[assignment]
    tokenizer.save(str(folder / "tokenizer.json"))


def large(folder: Path, home: Path) -> None:
    """Run the lens on the large case and print what it took."""
    from inspector.analyses.lens.compute import lens
    from tools.bench.projection import open_folder, quiet

    checkpoint = open_folder(folder, home)
    lens(checkpoint, progress=quiet, text="t1 t2", layers=[0])  # the model is there from now on
    words = " ".join(f"t{place * 61 % VOCAB}" for place in range(POSITIONS))
    with anonymous_peak() as idle:
        time.sleep(5 * SAMPLE_SECONDS)
    begin = time.perf_counter()
    with anonymous_peak() as busy:
        found = lens(checkpoint, progress=quiet, text=words, k=5)
    print(
        f"{len(found.states):,} readings of {LAYERS + 1} × {POSITIONS:,} states of {D_MODEL:,} "
        f"against {VOCAB:,} rows: {time.perf_counter() - begin:.0f} s, "
        f"{(busy[0] - idle[0]) / 1e6:.2f} GB above the model's, error {found.max_abs_error:.1e} "
        f"of {found.tolerance:.1e} allowed"
    )


def compare(hidden: torch.Tensor, matrix: torch.Tensor) -> None:
    """Refuse to time ways that answer differently."""
    with torch.inference_mode():
        mine, theirs = ours(hidden, matrix), usual(hidden, matrix)
    if not torch.equal(mine[0], theirs[0]):
        raise SystemExit("The ways name different tokens.")
    for one, other in zip(mine[1:], theirs[1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def main() -> None:
    """Print seconds, ratios and memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true", help="also 33 × 2,048 states: long")
    if parser.parse_known_args()[0].large:
        with tempfile.TemporaryDirectory() as name:
            write_large(Path(name))
            command = [sys.executable, "-m", "tools.bench.lens", "--of", name]
            subprocess.run(command, check=True)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at start")
    hidden, matrix = inputs()
    compare(hidden, matrix)
    found = seconds(hidden, matrix)
    print(f"\n{STATES:,} states × {WIDTH} against {ROWS:,} rows: top {K}, normalizer, entropy")
    print(f"{'way':28}{'seconds':>9}{'of bare':>9}{'(median)':>10}{'of ours':>9}{'(median)':>10}{'extra MB':>10}")
    for name, rounds in found.items():
        command = [sys.executable, "-m", "tools.bench.lens", name]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        ratios = []
        for base in ("bare product", "inspector"):
            pairs = [one / other for one, other in zip(rounds, found[base], strict=True)]
            ratios += [min(rounds) / min(found[base]), statistics.median(pairs)]
        of_bare, of_bare_median, of_ours, of_ours_median = ratios
        print(
            f"{name:28}{min(rounds):9.2f}{of_bare:9.2f}{of_bare_median:10.2f}{of_ours:9.2f}"
            f"{of_ours_median:10.2f}{int(printed) / 1000:10.0f}"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        large(Path(sys.argv[2]), Path(sys.argv[2]) / "home")
    elif sys.argv[1:2] and sys.argv[1] in WAYS:
        print(extra_memory(sys.argv[1]))
    else:
        main()
