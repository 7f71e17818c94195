"""Run a text, and count how many of its tokens each expert is chosen for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from inspector.analyses.experts import words
from inspector.analyses.experts.request import ExpertsRequest
from inspector.models.build import OWN
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.loading import load
from inspector.models.reading.lens_run import decoder_start
from inspector.models.running import forward
from inspector.models.weightless.mixtures import Mixture
from inspector.progress import Progress

AXES = 2  # of a choice: tokens, and the experts of each


@dataclass(frozen=True, slots=True)
class ExpertUses:
    """What a text's tokens chose."""

    counts: Mapping[str, torch.Tensor]  # block -> tokens by expert, (experts,)
    tokens: int  # of the text
    per_token: int | None  # experts that each chose in a block; None where no choice was seen
    warnings: tuple[str, ...]


def count_uses(
    checkpoint: StagedCheckpoint, mixtures: Sequence[Mixture], request: ExpertsRequest, *, progress: Progress
) -> ExpertUses:
    """Run the text once, and note what each router chooses.

    Raises:
        NotInCheckpointError: If the file lacks weights or a tokenizer.
        CheckpointError: If the model cannot be built.
        RequestError: If the text is too long, or the machine has no such device.
    """
    encoded = checkpoint.require_tokens().encode(request.text)
    checkpoint.check_ids(encoded.ids, encoded.type_ids)
    count = len(encoded.ids)
    decoder_ids = None
    if checkpoint.config.is_encoder_decoder:  # another number of tokens than the text's tells what the decoder sees
        decoder_ids = torch.full((1, 2 if count == 1 else 1), decoder_start(checkpoint))
    loaded = load(checkpoint, OWN, device=request.device, dtype=request.dtype, progress=progress)
    noted = _Noted(mixtures)
    with ExitStack() as hooks:
        for mixture in mixtures:
            hooks.callback(_watch(loaded.model.get_submodule(mixture.runs), mixture, noted.note).remove)
        forward(
            loaded, torch.tensor([encoded.ids]), torch.tensor([encoded.type_ids]), head=False, decoder_ids=decoder_ids
        )
    counted = {path: each for path, each in noted.counts.items() if noted.tokens[path] == count}
    return ExpertUses(
        counted,
        count,
        max((noted.per_token[path] for path in counted), default=None),
        (*loaded.notes, *checkpoint.length_notes(count), *words.unseen(noted.unseen(count), len(mixtures))),
    )


class _Noted:
    """What the routers of a pass chose."""

    def __init__(self, mixtures: Sequence[Mixture]) -> None:
        self.counts: dict[str, torch.Tensor] = {}  # block -> tokens by expert
        self.per_token: Counter[str] = Counter()  # block -> experts that a token chose, at most
        self.tokens = dict.fromkeys((each.path for each in mixtures), 0)  # block -> tokens that chose
        self._ran: set[str] = set()

    def note(self, mixture: Mixture, given: Sequence[Any], *, indices: bool) -> None:
        """Note what the module that runs the experts of a block is given."""
        path = mixture.path
        self._ran.add(path)
        for choice in _choices(given):
            flat = choice.detach().reshape(-1, choice.shape[-1]).cpu()
            chosen = flat != 0  # 1 where an expert is chosen, (tokens, experts)
            if indices or flat.shape[-1] != mixture.rows:
                chosen = torch.zeros(len(flat), mixture.rows + 1, dtype=torch.bool)
                chosen = chosen.scatter(1, flat.clamp(0, mixture.rows), value=True)[:, :-1]
            found = chosen.sum(dim=0)
            self.per_token[path] = max([self.per_token[path], *chosen.sum(dim=1).tolist()])
            self.tokens[path] += len(chosen)
            self.counts[path] = self.counts.get(path, torch.zeros_like(found)) + found
            return

    def unseen(self, count: int) -> dict[str, list[str]]:
        """Blocks of which it is not known what so many tokens of the text chose, by the reason."""
        found: dict[str, list[str]] = {}
        for path, tokens in self.tokens.items():
            if path not in self.counts:
                found.setdefault(words.NOT_PASSED if path in self._ran else words.NOT_RUN, []).append(path)
            elif tokens != count:
                found.setdefault(words.OTHER_TOKENS, []).append(path)
        return found


def _watch(module: Any, mixture: Mixture, note: Callable[..., None]) -> Any:
    # transformers marks the classes whose experts are given indices.
    indices = hasattr(module, "_is_expert_parallel")

    def hook(_: Any, given: Sequence[Any], named: Mapping[str, Any]) -> None:
        note(mixture, (*given, *named.values()), indices=indices)

    return module.register_forward_pre_hook(hook, with_kwargs=True)


def _choices(given: Sequence[Any]) -> Iterator[torch.Tensor]:
    """What of the arguments of a module is a choice of experts: whole numbers, or yes and no."""
    for each in given:
        whole = isinstance(each, torch.Tensor) and not (each.is_floating_point() or each.is_complex())
        if whole and each.dim() >= AXES:
            yield each
