"""Set the lens up: the text as ids, one forward pass, and the ladder that the head has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import torch

from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.damage import damaged
from inspector.models.loading import load
from inspector.models.placing.following import following
from inspector.models.reading.ladder import Unembedding, build_ladder
from inspector.models.reading.readout import block_states
from inspector.models.reading.scores import Scorer, build_scorer
from inspector.models.reading.streams import Tail, noting_tail
from inspector.models.running import LARGE_LOGITS, Forward, Loaded, forward, memory_guard
from inspector.models.vocabulary.labels import find_row
from inspector.progress import Progress
from inspector.settings import Device, Dtype
from inspector.store.readers.levels import read_setting

STATES = 3  # dimensions of hidden states: batch, positions, width


@dataclass(frozen=True, slots=True)
class LensSetup:
    """One text and the head of one model, before the model has run or while it does."""

    loaded: Loaded
    scorer: Scorer
    tokens: tuple[str, ...]  # of the positions that are read
    pins: torch.Tensor  # ids, (pins,)
    warnings: tuple[str, ...]
    left_out: tuple[str, ...]

    def score(self, hidden: torch.Tensor, block: slice, *, last: bool) -> Iterator[tuple[str, torch.Tensor]]:
        """Score a block of hidden states at every rung, the logits first.

        Args:
            hidden: (states, d_model).
            block: Their positions; used for the last layer alone.
            last: Whether they are of the last layer, which there is once the model has run.

        Yields:
            Rung and (states, vocab) in float32.
        """
        rows = self.scorer.rows
        received, given = self._of_model(block) if last else (None, None)
        for rung, scores in self.scorer.score(hidden, last=last, received=received, given=given):
            yield rung, scores[:, :rows] if scores.shape[1] > rows else scores

    def _of_model(self, _block: slice) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """What the output layer received at some positions, and the logits that are taken from the model."""
        return None, None


@dataclass(frozen=True, slots=True)
class LensRun(LensSetup):
    """One text in one model, run once, and how its logits compare with the model's own."""

    forward: Forward  # the pass
    error: float | None  # largest of our logits; None: none was compared
    tolerance: float  # largest error of a logit that the dtype explains
    taken: bool  # the known steps lead elsewhere: logits are the model's own

    def without_logits(self) -> LensRun:
        """The same, with nothing that holds the model's own logits: the last layer can be read no more."""
        return replace(self, forward=self.forward.without_logits())

    def _of_model(self, block: slice) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        given = self.forward.logits_of(block) if self.taken else None
        return _received(self.forward, block), None if given is None else given[0]


def _received(run: Forward, block: slice) -> torch.Tensor | None:
    # ProphetNet's output layer reads a stream for each of the tokens that it predicts.
    return None if run.received is None or run.received.dim() != STATES else run.received[0, block]


@dataclass(slots=True)
class _Comparison:
    """Our logits beside the model's own."""

    unusable: torch.Tensor  # ids that have no score here
    error: float | None = None  # largest so far; None before any was compared
    largest: float = 1.0  # of the model's logits, without their signs
    silent: bool = False  # not one logit of some position is a number

    def add(self, mine: torch.Tensor | None, given: torch.Tensor | None) -> None:
        """Compare logits, where those of the model are finite.

        Args:
            mine: (states, vocab), float32; None: the head is used, and its layer itself never run.
            given: (1, states, rows), the model's; None: it gave none.
        """
        if mine is None:
            self.error = torch.inf
        if mine is None or given is None:
            return
        truth = given[0, :, : mine.shape[1]].float()
        usable = torch.isfinite(truth)
        self.silent |= not bool(usable.any(dim=1).all())
        usable[:, self.unusable] = False
        apart = (mine - truth).abs().nan_to_num(nan=float("inf")).where(usable, 0.0)
        self.error = max(self.error or 0.0, apart.max().item())
        self.largest = max(self.largest, truth.abs().where(usable, 0.0).max().item())


def _compare(setup: LensSetup, scorer: Scorer, run: Forward) -> _Comparison:
    """Compare the last layer's logits with the model's own."""
    found = _Comparison(scorer.unusable)
    if not scorer.has_head:
        return found
    size, states = block_states(scorer.rows, setup.loaded.device), run.hidden_states[-1]
    with memory_guard(setup.loaded), torch.inference_mode():
        for begin in range(0, states.shape[1], size):
            block = slice(begin, begin + size)
            mine = scorer.logits(states[0, block], received=_received(run, block))
            found.add(None if mine is None else mine[:, : scorer.rows], run.logits_of(block))
    return found


def _finished(setup: LensSetup, run: Forward, name: str, warnings: tuple[str, ...]) -> LensRun:
    """What a pass has given, with the model's own logits taken where ours differ.

    Raises:
        CheckpointError: If the model gives no logit of some position.
    """
    loaded, scorer = setup.loaded, setup.scorer
    given = run.logits_of(slice(0, 1)) if scorer.has_head else None
    if given is not None and given.shape[-1] < scorer.rows:  # the model itself cuts spare rows off
        scorer = replace(scorer, most=given.shape[-1])
    compared = _compare(setup, scorer, run)
    if compared.silent:
        raise damaged(name, loaded)
    error, tolerance = compared.error, 8 * torch.finfo(loaded.dtype).eps * compared.largest
    taken = error is not None and error > tolerance
    if error is not None and taken:
        warnings += (_differ(error, tolerance),)
        scorer = replace(scorer, ladder=None, output=scorer.unembedding)
    return LensRun(
        loaded=loaded,
        scorer=scorer,
        tokens=setup.tokens,
        pins=setup.pins,
        warnings=setup.warnings + warnings,
        left_out=setup.left_out,
        forward=run,
        error=0.0 if taken else error,
        tolerance=tolerance,
        taken=taken,
    )


def _differ(error: float, tolerance: float) -> str:
    if error == torch.inf:
        return (
            "The model does not call its output layer as a module, so the logits are taken from the model itself, for "
            "the last layer only."
        )
    return (
        f"The head steps that this tool knows give logits that differ from the model's by up to {error:.2g}, while "
        f"rounding explains at most {tolerance:.2g}: a scale, a cap or a bias is missing. The logits are therefore "
        "taken from the model itself, for the last layer only."
    )


def prepare(
    checkpoint: StagedCheckpoint,
    *,
    progress: Progress,
    text: str,
    pins: Sequence[str],
    decoder_text: str,
    device: Device,
    dtype: Dtype,
    follow: Callable[[LensSetup, Sequence[torch.Tensor], int], None] | None = None,
    by_blocks_from: int = LARGE_LOGITS,
) -> LensRun:
    """Run a text through a checkpoint, and find what its hidden states can be compared with.

    Args:
        checkpoint: That is run.
        progress: Told what is being done.
        text: What the model reads.
        pins: Tokens, by name.
        decoder_text: What the decoder has generated so far.
        device: Where it runs.
        dtype: In which precision.
        follow: Called while a streamed pass goes on, with the setup, the hidden states so far and their final number.
        by_blocks_from: Numbers, from which on logits are not all made at once where that can be.

    Raises:
        NotInCheckpointError: If the file lacks the base model or a tokenizer.
        CheckpointError: If the model answers with NaN.
        RequestError: If a parameter does not fit.
    """
    tokens = checkpoint.require_tokens()
    encoded = tokens.encode(text)
    checkpoint.check_ids(encoded.ids, encoded.type_ids)
    task = _task(checkpoint)
    ids, shown = encoded.ids, encoded.tokens
    decoder_ids = None
    if task == "seq2seq_lm":
        start = decoder_start(checkpoint)
        ids = (start, *tokens.pieces(decoder_text))
        checkpoint.check_ids(ids, decoder=True)
        shown = tuple(tokens.visible(index) for index in ids)
        decoder_ids = torch.tensor([ids])
    pinned, unknown = _find_pins(checkpoint, pins)
    loaded = load(checkpoint, task, device=device, dtype=dtype, progress=progress)
    has_head = task != "base"
    family = checkpoint.family
    ladder = build_ladder(loaded.model, family) if has_head and family else None
    output = _output_layer(loaded) if has_head and ladder is None else None
    progress(None, "Measuring the embedding matrix")
    scorer, left_out = build_scorer(loaded, ladder, output)
    if not scorer.rungs:
        raise NotInCheckpointError(" ".join([*left_out, *_warnings(checkpoint, scorer)]))
    setup = LensSetup(
        loaded=loaded,
        scorer=scorer,
        tokens=shown,
        pins=torch.tensor(pinned, dtype=torch.long),
        warnings=(
            *loaded.notes,
            *checkpoint.length_notes(len(encoded.ids)),
            *unknown,
            *_warnings(checkpoint, scorer),
            *left_out,
        ),
        left_out=tuple(left_out),
    )
    progress(None, "Running the model")
    run_once = partial(
        forward, loaded, torch.tensor([encoded.ids]), torch.tensor([encoded.type_ids]), decoder_ids=decoder_ids
    )
    with (
        following(loaded, partial(follow, setup)) if follow else nullcontext(),
        noting_tail(loaded.model.base_model) if ladder is None else nullcontext(Tail()) as tail,
    ):
        run = run_once(
            head=scorer.has_head, every_layer=True, capture=output is not None, by_blocks_from=by_blocks_from
        )
    warnings: tuple[str, ...] = ()
    if any(state.dim() != STATES for state in run.hidden_states):
        run, warnings = _read_streams(checkpoint, run, tail, partial(run_once, head=False))
    _check_states(checkpoint, run, len(shown))
    if not torch.isfinite(run.hidden_states[-1]).all():
        raise damaged(checkpoint.name, loaded)
    finished = _finished(setup, run, checkpoint.name, warnings)
    note = _cache_note(finished, torch.tensor([encoded.ids]), decoder_ids)
    return replace(finished, warnings=finished.warnings + note)


def _cache_note(finished: LensRun, ids: torch.Tensor, decoder_ids: torch.Tensor | None) -> tuple[str, ...]:
    """Say so where a class of two stacks gives other logits with its cache, as FSMT's drops its causal mask then."""
    loaded, logits = finished.loaded, finished.forward.logits
    if decoder_ids is None or logits is None or loaded.stream is not None:
        return ()
    with memory_guard(loaded), torch.inference_mode():
        inputs = {"input_ids": ids.to(loaded.device), "decoder_input_ids": decoder_ids.to(loaded.device)}
        usual = loaded.model(**inputs, use_cache=True).logits
    apart = float((usual.float() - logits.float()).abs().nan_to_num(0.0).max())
    if apart <= finished.tolerance:
        return ()
    return (
        f"With its cache on, as model(...) runs it by default, {type(loaded.model).__name__} gives logits that differ "
        f"by up to {apart:.2g}. Shown are those without the cache.",
    )


def _read_streams(
    checkpoint: StagedCheckpoint, run: Forward, tail: Tail, run_base: Callable[[], Forward]
) -> tuple[Forward, tuple[str, ...]]:
    """Make one vector a position of states that are several, as the model's own last steps do, where they are found."""
    states = tail.read(run.hidden_states, run_base)
    if states is None:
        return run, ()
    note = (
        f"{checkpoint.config_values.get('model_type')} models keep several vectors for each position between their "
        "layers: each layer is read as the one vector that the model's own last steps make of them for its final "
        "norm."
    )
    return replace(run, hidden_states=states), (note,)


def _check_states(checkpoint: StagedCheckpoint, run: Forward, positions: int) -> None:
    """Refuse states that are no vectors, one for each position.

    Raises:
        NotInCheckpointError: If there are none, or the model keeps several for each position, or pools positions.
    """
    if not run.hidden_states:
        raise NotInCheckpointError(
            f"config.json of {checkpoint.name} sets 0 layers, so there are no hidden states to read."
        )
    shapes = [states.shape for states in run.hidden_states]
    odd = [shape for shape in shapes if len(shape) != STATES]
    kind = checkpoint.config_values.get("model_type")
    pooled = [shape[1] for shape in shapes if len(shape) == STATES and shape[1] != positions]
    if pooled:
        raise NotInCheckpointError(
            f"{kind} models keep the states of {positions:,} tokens as {pooled[0]:,} vectors in some layers, not one "
            "for each position, so the lens cannot read them."
        )
    if odd:
        numbers = " × ".join(map(str, odd[0]))
        raise NotInCheckpointError(
            f"{kind} models keep {numbers} numbers as the state of a text, not one vector for each "
            "position, so the lens cannot read them."
        )


def _find_pins(checkpoint: StagedCheckpoint, pins: Sequence[str]) -> tuple[list[int], list[str]]:
    """Rows of the tokens that are there, and a sentence for each that is not."""
    found, unknown = [], []
    for pin in pins:
        try:
            found.append(find_row(checkpoint, pin, checkpoint.embedding.shape[0], option="pins"))
        except RequestError as error:
            unknown.append(f"{str(error).removesuffix('.')}. Pinned token ignored.")
    return found, unknown


def _task(checkpoint: StagedCheckpoint) -> str:
    """The head to climb to, or the base model alone."""
    if checkpoint.config.is_encoder_decoder:
        return "seq2seq_lm"
    return next(iter(checkpoint.language_heads), "base")


def decoder_start(checkpoint: StagedCheckpoint) -> int:
    """The id that the decoder is given first.

    Raises:
        CheckpointError: If the model has no such row.
        RequestError: If nothing names one.
    """
    config, tokens = checkpoint.config, checkpoint.require_tokens()
    candidates = (read_setting(config, "decoder_start_token_id").value, tokens.role("bos")[1], tokens.role("pad")[1])
    for index in candidates:
        if index is not None and index >= (rows := checkpoint.embedding.shape[0]):
            raise CheckpointError(
                f"According to its config.json, the decoder of {checkpoint.name} starts with id {index:,}, but the "
                f"embedding matrix has {rows:,} rows: check model_type and decoder_start_token_id there."
            )
        if index is not None:
            return index
    raise RequestError(
        f"The config.json of {checkpoint.name} does not set the token that its decoder starts with: add "
        "decoder_start_token_id."
    )


def _output_layer(loaded: Loaded) -> Unembedding | None:
    """The output layer of a head that is not in the table."""
    layer = loaded.model.get_output_embeddings()
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, torch.Tensor):
        return None
    bias = getattr(layer, "bias", None)
    return Unembedding(weight.detach(), None if bias is None else bias.detach(), None)


def _warnings(checkpoint: StagedCheckpoint, scorer: Scorer) -> list[str]:
    warnings = []
    if not scorer.has_head:
        warnings.append(
            f"{checkpoint.name} has no language-model head in its file, so there are no logits: those of a random head "
            "would be meaningless."
        )
    elif scorer.ladder is None:
        kind = checkpoint.config_values.get("model_type")
        warnings.append(
            f"The head of {kind} models is not in this tool's table, so the input of its output layer was captured "
            "while the model ran, and logits are shown for the last layer only."
        )
    if len(scorer.unusable):
        row = checkpoint.require_tokens().visible(int(scorer.unusable[0]))
        warnings.append(
            f"{len(scorer.unusable)} embedding rows contain NaN or infinity and are left out, such as {row}."
        )
    return warnings
