"""A folder of Llama-2-70B's shapes, its shards sparse: 138 GB to readers, next to none on disk.

Run as a program, it inspects such a folder under a worker's own limits and prints what it found and
how much memory that took.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools.bench import _sparse
from tools.bench._sparse import SHAPES

EMBEDDING = "model.embed_tokens.weight"
ROW = bytes.fromhex("803f") * 8_192  # bfloat16 ones: a row of norm sqrt(8192)
NANS = bytes.fromhex("c07f") * 8_192
MARKED = {5: ROW, 9: ROW, 7: NANS}  # all other rows are zero


def write(folder: Path) -> None:
    """Write the folder: true headers, a true index, and holes for numbers but for three rows."""
    _sparse.write(folder, SHAPES["70B"])
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    with (folder / index["weight_map"][EMBEDDING]).open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        begin = 8 + length + json.loads(file.read(length))[EMBEDDING]["data_offsets"][0]
        for row, data in MARKED.items():
            file.seek(begin + row * len(data))
            file.write(data)


def main() -> None:
    """Open the folder as the command line does, ask, and print JSON."""
    from inspector.analyses.embeddings.compute import embeddings
    from inspector.analyses.overview.compute import overview
    from inspector.analyses.placement.compute import placement
    from inspector.analyses.sharing.compute import sharing
    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.sandbox import limits
    from inspector.settings import read_settings
    from inspector.store.opening import open_checkpoint
    from inspector.store.reference import CheckpointRef

    folder, home = Path(sys.argv[1]), sys.argv[2]
    write(folder)
    settings = read_settings({"INSPECTOR_HOME": home})
    limits.apply_limits(settings)

    def silent(fraction: float | None, text: str) -> None:
        pass

    manifest, _ = open_checkpoint(
        CheckpointRef("path", str(folder)), settings=settings, progress=silent,
        restrict_paths=False,
    )  # fmt: skip
    limits.admit_files(sum(file.nbytes for file in manifest.files))
    checkpoint = StagedCheckpoint(manifest, settings=settings)
    seen = overview(checkpoint, progress=silent)
    plan = placement(checkpoint, progress=silent)
    shared = sharing(checkpoint, progress=silent)
    before = _peak_nbytes()
    static = embeddings(checkpoint, progress=silent, token="id 5", k=3)
    health = static.health
    print(  # noqa: T201
        json.dumps(
            {
                "parameters": seen.unique_parameters,
                "layers": seen.layers,
                "plan": [plan.dtype, plan.spread, plan.streamed, plan.nbytes],
                "places": {place.device: place.nbytes for place in plan.places},
                "listed": shared.listed_parameters,
                "unique": shared.unique_parameters,
                "groups": [sorted(group.names) for group in shared.groups],
                "reused": len(shared.reused_modules),
                "rows": [static.rows, static.columns],
                "largest": static.norms.max,
                "not_finite": health.not_finite_rows["token_id"].tolist(),
                "equal": [list(group.token_ids) for group in health.equal_rows],
                "zero": len(health.zero_rows),
                "nearest": static.neighbours["token_id"].head(1).tolist(),
                "before_embeddings_nbytes": before,
                "peak_nbytes": _peak_nbytes(),
            }
        )
    )


def _peak_nbytes() -> int:
    """The most memory that this process has had resident."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("The kernel does not say how much memory was resident.")


if __name__ == "__main__":
    main()
