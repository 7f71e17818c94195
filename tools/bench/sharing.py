"""Searches for shared memory side by side: ours, accelerate's and safetensors' own.

One module of 20,000 parameter names, some of them tied in every way that occurs: one Parameter
under two names, two Parameters on one storage, views of a fused matrix that do and that do not
meet, a view of a view. The truth is known from how the module is made. Times are medians of pairs
taken in turn in one process; ratios are against ours.

And the whole audit of a checkpoint of BERT-base's size, in a process of its own that has imported
everything: how long it takes, and how much memory beyond that.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
import torch
import transformers
from accelerate.utils import find_tied_parameters
from safetensors.torch import _find_shared_tensors
from torch import nn

from inspector.analyses.sharing.compute import find_sharing
from inspector.models.memory import named_tensors, shared_names

LAYERS = 5_000  # of four parameters each
TIES = 60  # of each kind
ROUNDS = 7

Groups = set[frozenset[str]]


class Layer(nn.Module):
    """Four small parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.bias = nn.Parameter(torch.randn(4))
        self.scale = nn.Parameter(torch.randn(4))
        self.shift = nn.Parameter(torch.randn(4))


def build() -> tuple[nn.Module, dict[str, Groups]]:
    """A module, and the groups that truly share memory, by kind of tie."""
    layers = [Layer() for _ in range(LAYERS)]
    truth: dict[str, Groups] = {"one Parameter": set(), "one storage": set(), "nested views": set()}
    for tie in range(TIES):
        a, b, c = 10 * tie, 10 * tie + 1, 10 * tie + 2
        layers[b].weight = layers[a].weight
        truth["one Parameter"].add(names(f"{a}.weight", f"{b}.weight"))
        layers[b].bias = nn.Parameter(layers[a].bias.detach())
        truth["one storage"].add(names(f"{a}.bias", f"{b}.bias"))
        whole = torch.randn(16, 4)
        layers[a].scale, layers[b].scale = nn.Parameter(whole), nn.Parameter(whole[4:8])
        layers[c].scale = nn.Parameter(whole[12])  # past b, in a
        truth["nested views"].add(names(f"{a}.scale", f"{b}.scale", f"{c}.scale"))
        fused = torch.randn(8)  # two halves of one storage: nothing in common
        layers[a].shift, layers[b].shift = nn.Parameter(fused[:4]), nn.Parameter(fused[4:])
    return nn.ModuleList(layers), truth


def names(*members: str) -> frozenset[str]:
    """A group."""
    return frozenset(members)


def several(groups: Iterable[Iterable[str]]) -> Groups:
    """Groups of two names or more."""
    return {group for group in map(frozenset, groups) if len(group) > 1}


SEARCHES: dict[str, Callable[[nn.Module], Groups]] = {
    "inspector, search": lambda module: several(shared_names(named_tensors(module))),
    "accelerate find_tied_parameters": lambda module: several(find_tied_parameters(module)),
    # Its own search wants a state dict; making one is part of asking it.
    "safetensors _find_shared_tensors": lambda module: several(_find_shared_tensors(module.state_dict())),
    "inspector, whole audit": lambda module: {
        frozenset(group.names) for group in find_sharing(module).groups if group.in_memory
    },
}


def audit(folder: str) -> dict[str, float]:
    """Open a folder and audit its sharing; in a process of its own."""
    from inspector.analyses.sharing.compute import sharing
    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.settings import read_settings
    from inspector.store.opening import open_checkpoint
    from inspector.store.reference import CheckpointRef

    transformers.BertForPreTraining(transformers.BertConfig(num_hidden_layers=1, hidden_size=12))
    settings = read_settings({"INSPECTOR_HOME": f"{folder}/home"})
    before = psutil.Process().memory_info().rss
    begin = time.perf_counter()
    manifest, _ = open_checkpoint(
        CheckpointRef("path", f"{folder}/bert"), settings=settings, progress=lambda *_: None, restrict_paths=False
    )
    opened = time.perf_counter()
    sharing(StagedCheckpoint(manifest, settings=settings), progress=lambda *_: None)
    done = time.perf_counter()
    after = psutil.Process().memory_info().rss
    return {"opening": opened - begin, "audit": done - opened, "megabytes": (after - before) / 1e6}


def print_opening() -> None:
    """Print what opening and auditing BERT-base takes, the first time and once it is known."""
    with tempfile.TemporaryDirectory() as folder:
        model = transformers.BertForPreTraining(transformers.BertConfig())
        model.save_pretrained(f"{folder}/bert")
        nbytes = Path(folder, "bert", "model.safetensors").stat().st_size
        print(f"\nA checkpoint of {nbytes / 1e6:.0f} MB: seconds to open, to audit, extra MB")
        for visit in ("first", "second"):
            command = [sys.executable, "-m", "tools.bench.sharing", folder]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found = json.loads(printed.splitlines()[-1])
            print(f"{visit:34}{found['opening']:9.2f}{found['audit']:9.2f}{found['megabytes']:9.0f}")


def main() -> None:
    """Print how long each search takes and what it finds."""
    print_searches()
    print_opening()


def print_searches() -> None:
    """Print how long each search takes and what it finds."""
    module, truth = build()
    wanted = set().union(*truth.values())
    seconds: dict[str, list[float]] = {name: [] for name in SEARCHES}
    found: dict[str, Groups] = {}
    for _ in range(ROUNDS):
        for name, search in SEARCHES.items():
            begin = time.perf_counter()
            found[name] = search(module)
            seconds[name].append(time.perf_counter() - begin)
    ours = statistics.median(seconds["inspector, search"])
    listed = sum(1 for _ in module.named_parameters(remove_duplicate=False))
    print(f"\nShared memory in a module of {listed:,} parameter names, {len(wanted)} groups")
    kinds = "".join(f"{kind:>15}" for kind in truth)
    print(f"{'search':34}{'seconds':>9}{'ratio':>8}{kinds}{'invented':>10}")
    for name, groups in found.items():
        median = statistics.median(seconds[name])
        right = "".join(f"{len(groups & each):>9} of {len(each):>2}" for each in truth.values())
        print(f"{name:34}{median:9.3f}{median / ours:8.2f}{right}{len(groups - wanted):>10}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(audit(sys.argv[1])))
    else:
        main()
