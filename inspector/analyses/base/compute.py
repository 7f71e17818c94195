"""Tell from sampled rows whether one checkpoint was made from another."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd

from inspector.analyses.base import words
from inspector.analyses.base.compute_prints import Print, read_print
from inspector.analyses.base.compute_relating import Likeness, compare_prints, share_names
from inspector.analyses.base.request import BaseRequest
from inspector.analyses.base.result import Relation, Verdict
from inspector.errors import InspectorError
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.placing.threads import single_threaded
from inspector.models.vocabulary.labels import match_tokens
from inspector.progress import Progress
from inspector.request import answers

COLUMNS = ["name", "other_name", "equal", "cosine", "coefficient", "relative_change", "rank"]
# Keys of config.json that say nothing of the model
ASIDE = frozenset({"_name_or_path", "transformers_version", "dtype", "torch_dtype", "use_cache"})
# Of the matrices of the smaller one that both samples reach: with fewer in common, two checkpoints are different models
FEW = 0.5
UNRELATED = 0.2  # median cosine up to which matrices have nothing in common; by chance it is below 0.1
ALIKE = 0.5  # from which on one was made from the other, wherever its coefficient lies
KEPT = 0.85  # coefficient of a base that was trained further: nearly all of it is still there
LEFT = 0.2  # coefficient from which on a merge is told from chance
EVEN = 0.1  # spread of the coefficients of a merge, which takes one share of every matrix


@answers(BaseRequest)
def base(checkpoint: StagedCheckpoint, request: BaseRequest, *, progress: Progress) -> Relation:
    """Compare a checkpoint with its possible base: up to 60 matrices, of each 32 rows and 32 columns.

    Weights do not tell which of two was first.

    Raises:
        NotInCheckpointError: If one of them is an adapter alone, or has no matrices that can be read.
        RequestError: If the other one is no longer in the store.
    """
    checkpoint.refuse_adapter()
    other = checkpoint.beside(request.other, 1, "other")
    other.refuse_adapter()
    prints = []
    for number, each in enumerate((checkpoint, other)):
        progress(number / 2, f"Sampling {each.name}")
        with single_threaded():
            prints.append(read_print(each))
    first, second = prints
    with single_threaded():
        found = compare_prints(first, second)
    differing = [each for each in found if not each.equal]
    ranks = [each.rank for each in differing]
    tokens, other_tokens, shared = _tokens(checkpoint, other)
    named = share_names(first, second) or _are_of_other_types(checkpoint, other)
    return Relation(
        name=checkpoint.name,
        other_name=other.name,
        fingerprint=checkpoint.manifest.fingerprint,
        other_fingerprint=request.other,
        verdict=judge(found, first, second) if named else "not judged",
        matched=len(found),
        equal=len(found) - len(differing),
        own=len(first.samples),
        other=len(second.samples),
        cosine=_median([each.cosine for each in differing]),
        coefficient=_median([each.coefficient for each in differing]),
        relative_change=_median([each.relative_change for each in differing]),
        rank=None if None in ranks or not ranks else max(rank for rank in ranks if rank is not None),
        tokens=tokens,
        other_tokens=other_tokens,
        shared_tokens=shared,
        settings=tuple(_settings(checkpoint, other)),
        tensors=pd.DataFrame([each.row() for each in found], columns=COLUMNS),
        warnings=tuple(words.quantized(each.name) for each in (checkpoint, other) if each.quantized),
    )


def judge(found: Sequence[Likeness], first: Print, second: Print) -> Verdict:
    """What the matched matrices of two checkpoints say together."""
    reach = min(first.reach, second.reach)
    if not found or len(found) < FEW * min(first.within(reach), second.within(reach)):
        return "unrelated"
    differing = [each for each in found if not each.equal]
    if not differing:
        return "same"
    cosine = _median([each.cosine for each in differing])
    share = _median([each.coefficient for each in differing])
    if cosine is None or share is None:
        return "not judged"
    if cosine <= UNRELATED and 2 * len(differing) > len(found):
        return "unrelated"
    spread = _median([abs(each.coefficient - share) for each in differing])
    if LEFT <= share < KEPT and spread is not None and spread <= EVEN:
        return "merged with"
    return "fine-tuned from" if cosine >= ALIKE or 2 * len(differing) <= len(found) else "not judged"


def _are_of_other_types(checkpoint: StagedCheckpoint, other: StagedCheckpoint) -> bool:
    """Whether config.json names the model types of both, and no type in common."""
    one, two = (set(map(str, each.stated("model_type").values())) for each in (checkpoint, other))
    return bool(one and two) and one.isdisjoint(two)


def _median(numbers: Sequence[float]) -> float | None:
    finite = [each for each in numbers if math.isfinite(each)]
    return statistics.median(finite) if finite else None


def _tokens(checkpoint: StagedCheckpoint, other: StagedCheckpoint) -> tuple[int | None, int | None, int | None]:
    """How many tokens each tokenizer has, and how many have one text in both, as `compare` counts them."""
    try:
        own, others = checkpoint.tokens, other.tokens
    except InspectorError:
        return None, None, None
    if own is None or others is None:
        return None, None, None
    one, two = (sum(each.raw(index) is not None for index in range(each.size)) for each in (own, others))
    return one, two, len(match_tokens(own, others, own.size, others.size))


def _settings(checkpoint: StagedCheckpoint, other: StagedCheckpoint) -> list[str]:
    """The keys of config.json, at its top, that have different values."""
    one, two = (dict[str, Any](each.manifest.config or {}) for each in (checkpoint, other))
    return sorted(key for key in (one.keys() | two.keys()) - ASIDE if one.get(key) != two.get(key))
