"""Compare two checkpoints: tensor by tensor, tie by tie, token by token."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import pandas as pd

from inspector.analyses.compare import words
from inspector.analyses.compare.compute_experts import pair_experts
from inspector.analyses.compare.compute_names import Spelling, base_of, match_names, names_of
from inspector.analyses.compare.compute_parts import StoredTensor
from inspector.analyses.compare.compute_table import TableRow, count, not_finite_warnings, tables, whole
from inspector.analyses.compare.compute_tensors import TensorComparison, compare_tensors
from inspector.analyses.compare.compute_ties import changed_ties
from inspector.analyses.compare.request import CompareRequest
from inspector.analyses.compare.result import SPECIAL_COLUMNS, TEMPLATE, TOKEN_COLUMNS, Comparison, VocabularyMatch
from inspector.analyses.compare.words_notes import PACKED
from inspector.analyses.sharing.result import Sharing
from inspector.catalog import answer, import_ahead
from inspector.errors import CheckpointError, InspectorError, MissingLibraryError, RequestError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.progress import Progress
from inspector.request import answers
from inspector.store.keeping.holding import load_held


@dataclass(frozen=True, slots=True)
class _Two:
    """Both checkpoints, and what is tied in each."""

    first: StagedCheckpoint
    second: StagedCheckpoint
    shared: tuple[Sharing, Sharing] | None  # None: it cannot be known of both
    spelling: Spelling

    @property
    def names(self) -> tuple[str, str]:
        return self.first.name, self.second.name


@answers(CompareRequest)
def compare(checkpoint: StagedCheckpoint, request: CompareRequest, *, progress: Progress) -> Comparison:
    """Compare a checkpoint with another one that has been opened.

    Both are read side by side, a piece at a time, and summed in float64; no tensor is in memory
    whole. Names that differ by the base model's prefix alone, in an old spelling, or that are tied
    to another name that the other file stores, are matched too.

    Args:
        checkpoint: The first: before.
        request: The fingerprint of the second (after), and which numbers are read.

    Raises:
        RequestError: If the second is no longer in the store.
    """
    other = request.other
    second = _second(checkpoint, other)
    warnings: list[str] = []
    progress(None, "Finding tied tensors")
    two = _Two(
        checkpoint,
        second,
        _both_shared(checkpoint, second, warnings, progress),
        Spelling([base_of(checkpoint), base_of(second)]),
    )
    rows = _walk(two, progress, values=request.values)
    ties = None
    if two.shared:
        ties = changed_ties(*two.shared, names=two.names, spelling=two.spelling)
    vocabulary, tokens = _tokens(two, warnings, request, progress=progress)
    table, layers = tables(rows, two.spelling)
    sums = whole(rows)
    overall = {
        "relative_change": sums.relative_change,
        "cosine": sums.cosine,
        "max_abs": sums.max_abs if sums.count else math.nan,
    }
    furthest, special = _furthest(tokens, request.moved), _special(two)
    same = checkpoint.manifest.fingerprint == other
    counts = count(rows)
    return Comparison(
        name=checkpoint.name,
        other_name=second.name,
        fingerprint=checkpoint.manifest.fingerprint,
        other_fingerprint=other,
        same=same,
        summary=words.summary(
            same=same,
            values=request.values,
            names=two.names,
            tensors=table,
            counts=counts,
            overall=overall,
            ties=ties,
            vocabulary=vocabulary,
            moved=furthest,
            special=special,
        ),
        counts=counts,
        overall=overall,
        tensors=table,
        layers=layers,
        ties_changed=ties or (),
        ties_compared=ties is not None,
        vocabulary=vocabulary,
        tokens_moved=furthest,
        warnings=(*warnings, *not_finite_warnings(rows, two.names), *_token_warnings(two, vocabulary)),
        values=request.values,
        special_tokens=special,
        tokens=tokens,
    )


def _furthest(tokens: pd.DataFrame, most: int) -> pd.DataFrame:
    """The rows that moved at all, furthest first; of equals the lowest row."""
    moved = tokens.loc[tokens["distance"].to_numpy(float) > 0]
    ranked = moved.sort_values("distance", ascending=False, kind="stable")
    return ranked.head(most).reset_index(drop=True)


def _second(checkpoint: StagedCheckpoint, fingerprint: str) -> StagedCheckpoint:
    if fingerprint == checkpoint.manifest.fingerprint:
        second = copy(checkpoint)
        second.called = checkpoint.called[1:]
        return second
    try:
        manifest = load_held(fingerprint, settings=checkpoint.settings)
    except CheckpointError as error:
        raise RequestError(f"The second checkpoint cannot be read. {error}") from error
    second = StagedCheckpoint(manifest, settings=checkpoint.settings)
    second.called = checkpoint.called[1:]
    return second


def _both_shared(
    first: StagedCheckpoint, second: StagedCheckpoint, warnings: list[str], progress: Progress
) -> tuple[Sharing, Sharing] | None:
    """Which names are tied in either; None where that cannot be known of both."""
    found = []
    for checkpoint in (first, second):
        try:
            found.append(answer("sharing", checkpoint, count_reuse=False, progress=progress))
        except InspectorError as error:
            said = words.NO_CLASS if isinstance(error, MissingLibraryError) else words.TIES_NOT_COMPARED
            warnings.append(said.format(error=error))
            return None
    return found[0], found[1]


def _walk(two: _Two, progress: Progress, *, values: str) -> list[TableRow]:
    first, second = two.first, two.second
    shared, other_shared = two.shared or (None, None)
    ones, others = _stored(first), _stored(second)
    experts = pair_experts(first, second, ones, others)
    held = experts.rest(names_of(first, shared)), experts.rest(names_of(second, other_shared))
    pairs = match_names(*held, two.spelling) + experts.pairs
    instead = tuple(
        {two.spelling(weight): name for name, weight in each.unread.codes.items()} for each in (second, first)
    )
    both = [(ones.get(pair.name or ""), others.get(pair.other or "")) for pair in pairs]
    measured = iter(compare_tensors([(one, other) for one, other in both if one and other], progress, values=values))
    return [
        TableRow(pair, one, other, next(measured) if one and other else _alone(one, other, instead, two.spelling))
        for pair, (one, other) in zip(pairs, both, strict=True)
    ]


def _stored(checkpoint: StagedCheckpoint) -> dict[str, StoredTensor]:
    unread = checkpoint.unread.codes
    return {
        tensor.name: StoredTensor(
            checkpoint.manifest, tensor, checkpoint.changed.get(tensor.name), unread=tensor.name in unread
        )
        for tensor in checkpoint.tensors
    }


def _alone(
    one: StoredTensor | None, other: StoredTensor | None, packed: tuple[dict[str, str], ...], spelling: Spelling
) -> TensorComparison:
    """What became of a tensor that has no partner: maybe it is there, quantized in an unknown way."""
    for stored, there, which in ((one, packed[0], "second"), (other, packed[1], "first")):
        if stored and (name := there.get(spelling(stored.info.name))):
            return TensorComparison("not compared", note=PACKED.format(which=which, name=name))
    return TensorComparison("removed" if one else "added")


def _tokens(
    two: _Two, warnings: list[str], request: CompareRequest, *, progress: Progress
) -> tuple[VocabularyMatch | None, pd.DataFrame]:
    try:
        if request.values == "all":
            from inspector.analyses.compare.compute_tokens import compare_rows

            return compare_rows(two.first, two.second, progress=progress)
        warnings.append(words.TOKENS[request.values])
    except InspectorError as error:
        warnings.append(words.TOKENS_NOT_COMPARED.format(error=error))
    return None, pd.DataFrame(columns=pd.Index(list(TOKEN_COLUMNS)))


def _special(two: _Two) -> pd.DataFrame:
    """What both tokenizers say of the tokens that mark texts, and whether both have one chat template."""
    columns = pd.Index(list(SPECIAL_COLUMNS))
    try:
        one, other = two.first.tokens, two.second.tokens
    except InspectorError:  # which cannot be read: the rows' warning says so
        return pd.DataFrame(columns=columns)
    if one is None or other is None:
        return pd.DataFrame(columns=columns)
    from inspector.models.vocabulary.library import SPECIAL_ROLES
    from inspector.models.vocabulary.templates import find_templates

    rows = []
    for role in SPECIAL_ROLES:
        (raw, index), (other_raw, other_index) = one.role(role), other.role(role)
        if index is not None or other_index is not None:
            texts = ("" if at is None else tokens.visible(at) for tokens, at in ((one, index), (other, other_index)))
            rows.append((role, next(texts), index, next(texts), other_index, (raw, index) == (other_raw, other_index)))
    templates = [next(iter(find_templates(each.manifest).values()), "") for each in (two.first, two.second)]
    if any(templates):
        sizes = (f"{len(text):,} characters" if text else "" for text in templates)
        rows.append((TEMPLATE, next(sizes), None, next(sizes), None, templates[0] == templates[1]))
    return pd.DataFrame(rows, columns=columns, dtype=object)


def _token_warnings(two: _Two, vocabulary: VocabularyMatch | None) -> list[str]:
    said = []
    if vocabulary and vocabulary.matched_by == "row":
        lacking = [each.name for each in (two.first, two.second) if not each.tokens]
        said.append(words.matched_by_row(lacking))
    kinds = {each.tokens.kind for each in (two.first, two.second) if each.tokens}
    if len(kinds) > 1:
        said.append(words.two_tokenizers(sorted(kinds)))
    return said


import_ahead("inspector.analyses.compare.compute_streams", "inspector.analyses.compare.compute_tokens")
