"""How plausible is each token in its place: from all the others, or from those before it."""

from __future__ import annotations

from inspector.analyses.plausibility.compute_causal import judge_causal
from inspector.analyses.plausibility.compute_masked import judge_masked
from inspector.analyses.plausibility.request import PlausibilityRequest
from inspector.analyses.plausibility.result import Plausibility
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.heads import is_decoder_only
from inspector.progress import Progress
from inspector.request import answers


@answers(PlausibilityRequest)
def plausibility(checkpoint: StagedCheckpoint, request: PlausibilityRequest, *, progress: Progress) -> Plausibility:
    """Judge every token of a text: masked in turn, or from the tokens before it, as the model was trained.

    Args:
        checkpoint: With a language-model head.

    Raises:
        NotInCheckpointError: If there is no such head, no tokenizer, or two stacks.
        RequestError: If the text has no token to judge or does not fit the model.
    """
    if checkpoint.heads["masked_lm"] == "present":
        return judge_masked(checkpoint, request, progress=progress)
    if checkpoint.config.is_encoder_decoder:
        raise NotInCheckpointError(
            f"{checkpoint.name} has an encoder and a decoder: it predicts one text from another, so one text alone has "
            "no plausibility. Its Logit lens shows what the decoder predicts."
        )
    if checkpoint.heads["causal_lm"] == "present":
        return judge_causal(checkpoint, request, progress=progress)
    if is_decoder_only(checkpoint.config):
        raise NotInCheckpointError(
            f"{checkpoint.name} has no language-model head in its files, and a head filled with random numbers would "
            "return nonsense, so nothing is judged. Open its pre-training checkpoint, or look at its Embeddings and "
            "Logit lens."
        )
    return judge_masked(checkpoint, request, progress=progress)  # which says what is missing
