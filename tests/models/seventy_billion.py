"""A folder of Llama-2-70B's shapes, its shards sparse: 138 GB to readers, next to none on disk.

Run as a program, it inspects such a folder under a worker's own limits and prints what it found and
how much memory that took.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

ROWS, WIDTH, INNER, LAYERS, HEADS, KEY_HEADS = 32_000, 8_192, 28_672, 80, 64, 8
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": ROWS,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "max_position_embeddings": 4_096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
PARAMETERS = 68_976_648_192  # as the model's card counts them
SHARDS = 15
HALF = 2  # bytes
EMBEDDING = "model.embed_tokens.weight"
ROW = bytes.fromhex("803f") * 8_192  # bfloat16 ones: a row of norm sqrt(8192)
NANS = bytes.fromhex("c07f") * WIDTH
MARKED = {5: ROW, 9: ROW, 7: NANS}  # all other rows are zero


def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of the model, in its own order."""
    keys = WIDTH // HEADS * KEY_HEADS
    yield EMBEDDING, (ROWS, WIDTH)
    for layer in range(LAYERS):
        start = f"model.layers.{layer}"
        yield f"{start}.input_layernorm.weight", (WIDTH,)
        for name, shape in (
            ("mlp.down_proj", (WIDTH, INNER)), ("mlp.gate_proj", (INNER, WIDTH)),
            ("mlp.up_proj", (INNER, WIDTH)), ("self_attn.k_proj", (keys, WIDTH)),
            ("self_attn.o_proj", (WIDTH, WIDTH)), ("self_attn.q_proj", (WIDTH, WIDTH)),
            ("self_attn.v_proj", (keys, WIDTH)),
        ):  # fmt: skip
            yield f"{start}.{name}.weight", shape
        yield f"{start}.post_attention_layernorm.weight", (WIDTH,)
    yield "model.norm.weight", (WIDTH,)
    yield "lm_head.weight", (ROWS, WIDTH)


def write(folder: Path) -> None:
    """Write the folder: true headers, a true index, and holes for numbers."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    tensors = list(shapes())
    assert sum(math.prod(shape) for _, shape in tensors) == PARAMETERS
    each = -(-len(tensors) // SHARDS)
    weight_map = {}
    for shard in range(SHARDS):
        name = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        held = tensors[shard * each : (shard + 1) * each]
        _write_shard(folder / name, held)
        weight_map |= {tensor: name for tensor, _ in held}
    index = {"metadata": {"total_size": HALF * PARAMETERS}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _write_shard(path: Path, tensors: list[tuple[str, tuple[int, ...]]]) -> None:
    header, place = {}, 0
    for name, shape in tensors:
        nbytes = HALF * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + nbytes]}
        place += nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + place)
        if EMBEDDING in header:
            for row, data in MARKED.items():
                file.seek(8 + len(text) + row * len(data))
                file.write(data)


def main() -> None:
    """Open the folder as the command line does, ask, and print JSON."""
    from inspector.analyses.embeddings.compute import embeddings
    from inspector.analyses.overview.compute import overview
    from inspector.analyses.placement.compute import placement
    from inspector.analyses.sharing.compute import sharing
    from inspector.engine import limits
    from inspector.models.checkpoint import Checkpoint
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
    checkpoint = Checkpoint(manifest, settings=settings)
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
                "plan": [plan.dtype, plan.spread, plan.nbytes],
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
