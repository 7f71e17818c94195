"""Compile the inner loops for workers: `python -m … FOLDER VERSIONS`, started by the engine alone.

Each loop runs once, through the functions that call it, on a few random rows: numba compiles it for
the types that it gets there. No checkpoint is read here.
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

import torch

from inspector.analyses.vocabulary_map.compute_cells import nearest_by_cells
from inspector.analyses.vocabulary_map.compute_neighbors import SMALL_ROWS, nearest_of_all
from inspector.analyses.vocabulary_map.compute_umap.layout import fuzzy_graph, lay_out
from inspector.progress import no_progress
from inspector.store.files import NEW, remove_folder
from inspector.store.keeping.compiled import OWN, put_compiled

NEIGHBORS = 5


def main() -> None:
    """Compile into a fresh folder, then put it in its place."""
    folder, versions = Path(sys.argv[1]), sys.argv[2]
    built = folder / f"{NEW}{uuid.uuid4().hex}"
    built.mkdir()
    os.environ[OWN] = str(built)
    try:
        run_loops(built)
        put_compiled(built, folder, versions)
    finally:
        remove_folder(built)


def run_loops(home: Path) -> None:
    """Make a small map in the ways that need compiled loops."""
    rows = torch.rand(SMALL_ROWS + 1, 3, generator=torch.Generator().manual_seed(0))
    nearest_of_all(rows, NEIGHBORS, metric="euclidean", home=home, progress=no_progress)
    few = rows[:1_000]
    found, far = nearest_by_cells(
        few, NEIGHBORS, metric="euclidean", home=home, recall=lambda _: 1.0, progress=no_progress
    )
    graph = fuzzy_graph(found.numpy(), far.numpy())
    lay_out(graph, few[:, :2].numpy(), seed=0, home=home, progress=no_progress)


if __name__ == "__main__":
    main()
