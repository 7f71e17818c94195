"""Questions that read numbers of a 1.2B and an 8B: the lens and the next token, streamed; embeddings; every number.

A checkpoint with real headers, random numbers and a tokenizer of a few words is written in a temporary folder on a
disk (18 GB), and each verb runs in a cold process, as the command line does. Beside it run a bare
script that maps each block's weights with safetensors, runs the block, drops it, and multiplies all
states with the unembedding once; the same by accelerate's hooks, which map one module's weights at a
time; and `cat`, to compare `check --values all` with. Wall and processor seconds of all, and the most
memory of their own that the command and its worker have had at once, mapped files left out.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
from tokenizers import Tokenizer, models, pre_tokenizers

from inspector.sandbox.limits import own_memory
from tools.bench._sparse import SHAPES, fill, write

WORDS = ["the", "capital", "of", "France", "is", "a", "large", "city", "on", "river"]
TEXT = " ".join(WORDS)
ROUNDS = 3
STREAMED = ["--text", TEXT, "--device", "stream", "--dtype", "bfloat16", "--json"]
VERBS = {
    "lens": STREAMED,
    "heads": [*STREAMED, "--new-tokens", "1"],
    "embeddings": ["--json"],
    "check": ["--values", "all", "--json"],
}
BARE = """
import sys
from pathlib import Path
import torch, transformers
from safetensors import safe_open
folder = Path(sys.argv[1])
files = [safe_open(path, "pt") for path in sorted(folder.glob("*.safetensors"))]
held = {name: file for file in files for name in file.keys()}
config = transformers.AutoConfig.from_pretrained(folder)
with torch.device("meta"):
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
rotary = type(model.model.rotary_emb)(config)
look_up = held["model.embed_tokens.weight"].get_tensor("model.embed_tokens.weight")
states = [look_up[torch.arange(1, 11)][None]]
with torch.inference_mode():
    turned = rotary(states[0], torch.arange(10)[None])
    hidden = torch.full((1, 1, 10, 10), -1e9, dtype=torch.bfloat16).triu(1)
    for number, layer in enumerate(model.model.layers):
        start = f"model.layers.{number}."
        weights = {name: held[start + name].get_tensor(start + name) for name, _ in layer.named_parameters()}
        layer.load_state_dict(weights, assign=True)
        states.append(layer(states[-1], attention_mask=hidden, position_embeddings=turned))
        layer.to("meta")
    output = held.get("lm_head.weight")
    matrix = output.get_tensor("lm_head.weight") if output else look_up
    for state in states:
        torch.nn.functional.linear(state[0], matrix).float().topk(5)
"""

ACCELERATE = """
import sys
from pathlib import Path
import accelerate, torch, transformers
from accelerate.utils import OffloadedWeightsLoader
from safetensors import safe_open
folder = Path(sys.argv[1])
index = {}
for path in sorted(folder.glob("*.safetensors")):
    with safe_open(path, "pt") as file:
        index |= {name: {"safetensors_file": str(path), "weight_name": name} for name in file.keys()}
config = transformers.AutoConfig.from_pretrained(folder)
with accelerate.init_empty_weights():
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
if "lm_head.weight" not in index:
    index["lm_head.weight"] = index["model.embed_tokens.weight"]
weights = OffloadedWeightsLoader(index=index)
accelerate.cpu_offload(model, execution_device="cpu", state_dict=weights)
with torch.inference_mode():
    states = model(torch.arange(1, 11)[None], output_hidden_states=True, use_cache=False).hidden_states
    matrix = weights["lm_head.weight"]
    for state in states:
        torch.nn.functional.linear(state[0], matrix).float().topk(5)
"""


def write_tokenizer(folder: Path) -> None:
    """A tokenizer of whole words."""
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(["<unk>", *WORDS])}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    values = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(values))


def measure(command: list[str], home: str) -> tuple[float, float, float]:
    """Wall and processor seconds, and megabytes, of a command and its children."""
    began = time.monotonic()
    memory, seconds = 0, {}
    with tempfile.TemporaryFile() as out:
        done = psutil.Popen(command, env=os.environ | {"INSPECTOR_HOME": home}, stdout=out, stderr=out)
        while done.poll() is None:
            now = 0
            for each in (done, *done.children(recursive=True)):
                own, seconds[each.pid] = _taken(each, seconds.get(each.pid, 0.0))
                now += own
            memory = max(memory, now)
            time.sleep(0.05)
        out.seek(0)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:5])} failed: {out.read().decode()[-500:]}")
    return time.monotonic() - began, sum(seconds.values()), memory / 1e6


def _taken(process: psutil.Process, before: float) -> tuple[int, float]:
    """Memory and processor seconds of a process; nothing new once it has ended."""
    try:
        times = process.cpu_times()
        return own_memory(process), times.user + times.system
    except psutil.Error:
        return 0, before


def main() -> None:
    """Write, ask, print."""
    print("| checkpoint | what | wall s | processor s | own memory MB |")
    print("|---|---|---|---|---|")
    for name in ("1.2B", "8B"):
        with tempfile.TemporaryDirectory() as place:
            measure_size(name, Path(place))


def measure_size(name: str, place: Path) -> None:
    """Measure one checkpoint: each way in turn, round after round, for the machine may be busy."""
    folder = place / name
    write(folder, SHAPES[name])
    fill(folder)
    write_tokenizer(folder)
    commands = {
        "bare script": [sys.executable, "-c", BARE, str(folder)],
        "accelerate's hooks": [sys.executable, "-c", ACCELERATE, str(folder)],
        "cat": ["sh", "-c", 'cat "$0"/*.safetensors > /dev/null', str(folder)],
    }
    for verb, options in VERBS.items():
        commands[verb] = [sys.executable, "-m", "inspector", verb, str(folder), *options]
    for number in range(ROUNDS):
        for what, command in commands.items():
            wall, processor, own = measure(command, f"{place}/home")
            first = ", files read for the first time" if not number and what == "bare script" else ""
            print(f"| {name} | {what}{first} | {wall:.1f} | {processor:.1f} | {own:,.0f} |", flush=True)
