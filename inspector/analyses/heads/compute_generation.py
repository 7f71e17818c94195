"""What comes next: the distribution of the next token, and a continuation step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import torch

from inspector.analyses.heads import words
from inspector.analyses.heads.result import NextTokens
from inspector.models.build import MODEL_ERRORS
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.inputs import HeadRun
from inspector.models.running import Loaded, memory_guard
from inspector.store.readers.levels import read_setting


def next_tokens(
    checkpoint: StagedCheckpoint,
    loaded: Loaded,
    inputs: Mapping[str, Any],
    run: HeadRun,
    *,
    k: int,
    new_tokens: int,
    temperature: float,
    seed: int,
) -> NextTokens:
    """List the most likely next tokens, and go on from the text.

    Args:
        checkpoint: For its tokenizer and its limits.
        inputs: What it read: input_ids, (1, positions), and attention_mask.
        run: What it returned: logits, (1, positions, vocab).
        new_tokens: Steps at most.
        temperature: 0 takes the most likely token; else logits are divided by it and sampled.
    """
    tokens = checkpoint.require_tokens()
    logits = run.fields["logits"][0, -1]
    best = logits.topk(min(k, len(logits)))
    likely = pd.DataFrame(
        {
            "token": [tokens.visible(index) for index in best.indices.tolist()],
            "token_id": best.indices.numpy(),
            "probability": logits.softmax(dim=0)[best.indices].numpy(),
            "logit": best.values.numpy(),
        }
    )
    room = new_tokens
    if checkpoint.positions is not None:
        room = min(new_tokens, checkpoint.positions - inputs["input_ids"].shape[1])
    ends = _ends(checkpoint, loaded)
    draw = torch.Generator().manual_seed(seed)
    steps: list[dict[str, Any]] = []
    stopped = words.ENOUGH.format(tokens=new_tokens)
    if room < new_tokens:
        stopped = words.NO_ROOM.format(positions=checkpoint.positions)
    for scores in _logits(loaded, inputs, steps, room):
        chosen = _choose(scores, temperature, draw)
        steps.append(_step(len(steps) + 1, scores, chosen) | {"token": tokens.visible(chosen)})
        if chosen in ends:
            stopped = words.ENDED.format(token=tokens.visible(chosen))
            break
    columns = ["step", "token", "token_id", "probability", "rank", "entropy"]
    return NextTokens(
        next=likely,
        steps=pd.DataFrame(steps, columns=columns),
        continuation=tokens.text([step["token_id"] for step in steps]),
        sampled=temperature > 0,
        stopped=stopped,
    )


def _logits(
    loaded: Loaded, inputs: Mapping[str, Any], steps: list[dict[str, Any]], room: int
) -> Iterator[torch.Tensor]:
    """Logits of the next token, (vocab,) in float32, after each step that was appended.

    The model keeps keys and values where it can, and reads only what is new.
    """
    ids, past = inputs["input_ids"], None
    read = ids
    for _ in range(room):
        with memory_guard(loaded), torch.inference_mode():
            try:
                output = _read(loaded, read, torch.ones_like(ids), past)
            except MODEL_ERRORS:  # CPM-Ant's own mask does not grow with what it keeps
                output = _read(loaded, ids, torch.ones_like(ids), None)
        past = getattr(output, "past_key_values", None)
        yield output.logits[0, -1].float().cpu()
        new = torch.tensor([[steps[-1]["token_id"]]], device=ids.device)
        ids = torch.cat([ids, new], dim=1)
        read = ids if past is None else new


def _read(loaded: Loaded, ids: torch.Tensor, attention: torch.Tensor, past: Any) -> Any:
    return loaded.model(input_ids=ids, attention_mask=attention, past_key_values=past, use_cache=True, return_dict=True)


def _choose(scores: torch.Tensor, temperature: float, draw: torch.Generator) -> int:
    if temperature == 0 or not torch.isfinite(scores).all():
        return int(scores.argmax())
    chances = (scores / temperature).softmax(dim=0)
    return int(torch.multinomial(chances, 1, generator=draw))


def _step(number: int, scores: torch.Tensor, chosen: int) -> dict[str, Any]:
    log_probability = scores.log_softmax(dim=0)
    return {
        "step": number,
        "token_id": chosen,
        "probability": log_probability[chosen].exp().item(),
        "rank": int((scores > scores[chosen]).sum()),
        "entropy": torch.special.entr(log_probability.exp()).sum().item(),
    }


def _ends(checkpoint: StagedCheckpoint, loaded: Loaded) -> frozenset[int]:
    """Ids that end a text, by the config and else by the tokenizer."""
    stated = read_setting(loaded.model.config, "eos_token_id").value
    if stated is None:
        stated = checkpoint.require_tokens().role("eos")[1]
    ids = stated if isinstance(stated, list | tuple) else [stated]
    return frozenset(index for index in ids if isinstance(index, int))
