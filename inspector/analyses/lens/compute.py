"""Read every layer's hidden state as tokens, at every step from dot product to true logits."""

from __future__ import annotations

import pandas as pd

from inspector.analyses.lens.compute_reading import LensReading
from inspector.analyses.lens.request import LensRequest
from inspector.analyses.lens.result import Lens, LensRows
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.reading.frames import by_layer, with_tokens
from inspector.models.reading.layers import layer_names
from inspector.models.reading.lens_run import prepare
from inspector.models.reading.scores import LOGITS, NOTES
from inspector.progress import Progress, Show
from inspector.request import answers


@answers(LensRequest)
def lens(
    checkpoint: StagedCheckpoint, request: LensRequest, *, progress: Progress, show: Show[LensRows] | None = None
) -> Lens:
    """Ask at every layer and position which tokens the hidden state is nearest to.

    The true logits of an inner layer are the logit lens (nostalgebraist 2020): the head of the last
    layer applied early. "dot" and "cosine" compare with the *input* embeddings; the steps between
    are the head's own modules, one after the other.

    Args:
        checkpoint: With weights for at least the base model.
        request: The text, and which layers and tokens are read.
        progress: Told what is being done.
        show: Takes `LensRows` while a streamed pass goes on.

    Raises:
        NotInCheckpointError: If the file lacks the base model or a tokenizer.
        RequestError: If a parameter does not fit.
    """
    tokens = checkpoint.require_tokens()
    reading = LensReading(request, tokens, show)
    run = prepare(
        checkpoint,
        progress=progress,
        text=request.text,
        pins=request.pins,
        decoder_text=request.decoder_text,
        device=request.device,
        dtype=request.dtype,
        follow=reading.follow,
    )
    reading.read_last(run, progress)
    run = run.without_logits()  # the largest thing here
    count = len(run.forward.hidden_states)
    frames = reading.finish(run, progress)
    return Lens(
        tokens=run.tokens,
        rungs=run.scorer.rungs,
        cells=with_tokens(by_layer(frames["cells"]), tokens, place=4),
        max_abs_error=run.error,
        taken_from_model=run.taken,
        warnings=run.warnings,
        pinned=with_tokens(by_layer(frames["pinned"]), tokens, place=3),
        rung_notes={rung: NOTES[rung] for rung in run.scorer.rungs},
        states=_agree(by_layer(frames["states"]), count - 1),
        layers=layer_names(count),
        tolerance=None if run.error is None else run.tolerance,
        device=str(run.loaded.device),
        dtype=run.loaded.precision,
        milliseconds=run.forward.milliseconds - reading.milliseconds,
        left_out=run.left_out,
    )


def _agree(states: pd.DataFrame, last: int) -> pd.DataFrame:
    """Say of each state whether its top token is that of the logits at the last layer."""
    final = states[(states["rung"] == LOGITS) & (states["layer"] == last)]
    if not len(final):
        return states.drop(columns="top")
    winner = dict(zip(final["position"].tolist(), final["top"].tolist(), strict=True))
    agrees = [
        float(winner[position] == top)
        for position, top in zip(states["position"].tolist(), states["top"].tolist(), strict=True)
    ]
    return states.drop(columns="top").assign(agrees=agrees)
