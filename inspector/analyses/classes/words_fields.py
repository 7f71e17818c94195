"""What each field of a model's output holds, in words, and what would fill one that came back empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

VALUES = {"output_router_logits": "True"}  # of arguments that fill a field
NOT_BY_ARGUMENT = {
    "cross_attentions": "only a decoder with an encoder has cross-attention (add_cross_attention in config.json).",
    "past_key_values": "only a decoder keeps keys and values (is_decoder in config.json), with use_cache=True.",
    "pooler_output": "this class is built without a pooler.",
}
NOTES = {
    "loss": "One number to minimize.",
    "logits": "Unnormalized scores: a softmax over the last axis turns them into probabilities.",
    "prediction_logits": "The masked-LM head's scores for every token at every position.",
    "seq_relationship_logits": "The next-sentence head's two scores.",
    "start_logits": "Score for each position as the start of an answer.",
    "end_logits": "Score for each position as the end of an answer.",
    "last_hidden_state": "The last layer's output at every position.",
    "encoder_last_hidden_state": "The encoder's last layer's output at every position.",
    "pooler_output": "The first position's hidden state after one more dense layer and tanh.",
    "hidden_states": "The embeddings, then one per layer",
    "attentions": "One per layer; each row sums to 1 over the last axis",
    "cross_attentions": "From the decoder to the encoder, one per layer",
    "past_key_values": "Keys and values of every layer, which the pass for the next token reuses: use_cache is on.",
}


def note(name: str, shapes: Iterable[tuple[int, ...]], *, asked: str | None) -> str:
    """What a field holds.

    Args:
        shapes: Of its tensors, each once.
        asked: The argument without which it would be empty; None: there is none.
    """
    stem = name.removeprefix("encoder_").removeprefix("decoder_")
    text = NOTES.get(name) or NOTES.get(stem, "")
    if asked:
        text = f"{text}: this call sets {asked}=True."
    listed = [str(shape) for shape in shapes]
    return f"{text} Shapes differ: {'; '.join(listed)}.".strip() if len(listed) > 1 else text


def absent(name: str, value: object, arguments: Sequence[str]) -> str:
    """Which of the arguments that a class takes would fill a field that came back empty."""
    here = f"{'None' if value is None else 'Empty'} here"
    if arguments:
        given = " and ".join(f"{each}={VALUES.get(each, '…')}" for each in arguments)
        return f"{here}: pass {given} to get it."
    return f"{here}: {NOT_BY_ARGUMENT.get(name, 'this call does not return it.')}"
