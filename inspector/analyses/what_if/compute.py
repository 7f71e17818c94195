"""Change a copy of the model as people do, and measure which ties break and what that costs."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from transformers import PreTrainedModel

from inspector.analyses.training.words import warn_of_quantized
from inspector.analyses.what_if import words
from inspector.analyses.what_if.compute_changes import RECIPES, TIE, UNCHANGED, ChangeRecipe, output_names
from inspector.analyses.what_if.compute_edges import drifts_of, find_pairs, parameters_of, relate
from inspector.analyses.what_if.compute_round_trip import RoundTrip, save_and_load
from inspector.analyses.what_if.compute_stepping import Lesson, StepLosses, prepare, train
from inspector.analyses.what_if.request import WhatIfRequest
from inspector.analyses.what_if.result import ChangedModel, Drift, Edge, Training, WhatIf
from inspector.analyses.what_if.words import TIED
from inspector.errors import RequestError
from inspector.models.build import build_model, quiet, task_class
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.copies import StoredCopies
from inspector.models.memory import count, count_once
from inspector.models.running import MEMORY_SHARE
from inspector.models.ties import possible_ties
from inspector.models.weightless.outline import build_outline
from inspector.progress import Progress
from inspector.request import answers

RELOAD = "reload"  # the change that is nothing but saving and loading
ALIKE = (TIED, "equal copies")


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is asked, and what every way is measured on."""

    checkpoint: StagedCheckpoint
    model: PreTrainedModel  # from the file's weights, never changed; on the meta device where copies would not fit
    missing: frozenset[str]
    pairs: dict[str, str]  # name -> the name whose tensor it is or could be
    before: dict[str, str]  # how they stand to each other
    lesson: Lesson | str  # or why there is none
    request: WhatIfRequest

    @property
    def declared(self) -> bool:
        """Whether the change is made without numbers: nothing is saved or trained."""
        return self.model.device.type == "meta"

    def relations(self, model: PreTrainedModel, missing: frozenset[str]) -> dict[str, str]:
        """How the names stand to each other in a changed copy; without numbers, what was equal stays so."""
        same = (lambda name, _: self.before[name] in ALIKE) if self.declared else None
        return relate(model, self.pairs, missing, same=same)


@answers(WhatIfRequest)
def what_if(checkpoint: StagedCheckpoint, request: WhatIfRequest, *, progress: Progress) -> WhatIf:
    """Make one change to copies of the model in memory, and say what is so before and after.

    Everything is measured: which names lie on one storage, what the written file's header lists,
    what transformers loads from it, and where a training step on the text moves each tensor. Of a model
    whose copies would not fit, the change is made on the meta device: which names lie on one storage is
    measured all the same, and nothing is saved or trained.

    Args:
        request: The change, and how the copies are trained; no text or no steps: not at all.

    Raises:
        RequestError: If the text cannot be trained on, or the machine has too little room.
        InspectorError: If the model cannot be built.
    """
    progress(None, "Building the model")
    quiet()
    model, missing = build_outline(checkpoint, _model_class(checkpoint))
    trained = request.steps > 0 and bool(request.text.strip())
    lesson: Lesson | str = words.NOT_ASKED
    left_out = _too_large(checkpoint, model, optimizer=None)
    if left_out is None:
        model, missing = build_model(type(model), checkpoint.config, checkpoint.state, name=checkpoint.name)
        if trained:
            if refused := _too_large(checkpoint, model, optimizer=request.optimizer):
                raise RequestError(refused)
            lesson = prepare(checkpoint, model, request.text)
    elif request.change == RELOAD:
        raise RequestError(left_out)
    elif trained:
        lesson = words.NOT_TRAINED
    pairs, warnings = find_pairs(model, missing)
    same = _stored_copies(checkpoint, model).same if left_out else None
    plan = _Plan(checkpoint, model, missing, pairs, relate(model, pairs, missing, same=same), lesson, request)
    recipes = _recipes(plan, request.change)
    ways = []
    for number, recipe in enumerate((UNCHANGED, *recipes)):
        progress(number / (1 + len(recipes)), recipe.title)
        ways.append(_measure(plan, recipe, saved=number > 0))
    said = (words.as_declared(left_out),) if left_out else ()
    quantized = warn_of_quantized([each.scheme for each in checkpoint.quantized.values()])
    return _assemble(plan, ways, warnings=(*said, *quantized, *warnings))


def _model_class(checkpoint: StagedCheckpoint) -> type[PreTrainedModel]:
    """The class that config.json names; where it names none, a language model that is there."""
    if checkpoint.config.architectures:
        return checkpoint.own_class
    present = checkpoint.language_heads
    return task_class(checkpoint.config, present[0]) if present else checkpoint.own_class


def _too_large(checkpoint: StagedCheckpoint, model: PreTrainedModel, *, optimizer: str | None) -> str | None:
    """Why the copies would not fit: at once there are the model, its copy, and one loaded again. None: they do."""
    numbers, nbytes = count_once(dict(model.named_parameters()))
    needed = 3 * nbytes
    if optimizer:  # in float32: the copy, its gradients, what AdamW keeps
        needed += torch.float32.itemsize * numbers * (2 + (2 if optimizer == "adamw" else 0))
    allowed = MEMORY_SHARE * checkpoint.settings.worker_nbytes
    if needed <= allowed:
        return None
    return words.too_large(checkpoint.name, needed=needed, allowed=allowed, trained=optimizer is not None)


def _stored_copies(checkpoint: StagedCheckpoint, model: PreTrainedModel) -> StoredCopies:
    """The model's tensors as the files hold them, to be compared piece by piece."""
    plain = {tensor.name for tensor in checkpoint.tensors}.difference(checkpoint.quantized)
    stored_as = checkpoint.places(model).stored_as
    return StoredCopies(checkpoint.manifest, {name: held for name, held in stored_as.items() if held in plain})


def _recipes(plan: _Plan, change: str) -> tuple[ChangeRecipe, ...]:
    """Ways to make the change that make sense for this model."""
    tied = {name for name, relation in plan.before.items() if relation == TIED}
    if not plan.pairs or (change == "clone" and not tied):
        return ()
    if change == "untie" and not tied & set(output_names(plan.model, plan.pairs)):
        return (TIE,) if _can_tie(plan) else ()
    has_output = plan.model.get_output_embeddings() is not None
    return tuple(each for each in RECIPES[change] if has_output or not each.needs_output)


def _can_tie(plan: _Plan) -> bool:
    """Whether the class knows a tie of its output layer, and every shape allows it."""
    return set(possible_ties(plan.model)) <= set(plan.pairs) and bool(output_names(plan.model, plan.pairs))


def _measure(plan: _Plan, recipe: ChangeRecipe, *, saved: bool) -> ChangedModel:
    """Apply a recipe to a fresh copy, save it, load it again, and train it."""
    subject = copy.deepcopy(plan.model)
    missing = plan.missing
    recipe.apply(subject, plan.pairs)
    trip = _save(plan, subject, recipe) if saved and not plan.declared else None
    if recipe.round_trip and trip is not None and trip.model is not None:
        subject, missing = trip.model, frozenset(trip.file.random)
    after = plan.relations(subject, missing)
    drifts = drifts_of(subject, plan.pairs, missing)
    reloaded = _reloaded(plan, trip)
    file = trip.file if trip else None
    del trip  # its model takes memory that training needs
    numbers, nbytes = count_once(dict(subject.named_parameters()))
    outcome = _train(plan, subject, recipe, missing)
    trained: dict[str, str] = {}
    trained_drifts: dict[str, Drift | None] = {}
    kept: dict[str, str] = {}
    if not outcome.failed:
        trained = plan.relations(subject, missing)
        trained_drifts = drifts_of(subject, plan.pairs, missing)
        if saved and any(drift and drift.max_abs for drift in trained_drifts.values()):
            kept = _reloaded(plan, _save(plan, subject, recipe))
    shapes = {name: tuple(tensor.shape) for name, tensor in parameters_of(plan.model).items()}
    return ChangedModel(
        title=recipe.title,
        code=recipe.code,
        answer="",
        edges=tuple(
            Edge(
                name=name,
                source=source,
                shape=shapes[source],
                before=plan.before[name],
                after=after[name],
                reloaded=reloaded.get(name),
                trained=trained.get(name),
                trained_reloaded=kept.get(name),
                drift=drifts[name],
                trained_drift=trained_drifts.get(name),
            )
            for name, source in plan.pairs.items()
        ),
        unique_parameters=numbers,
        nbytes=nbytes,
        file=file,
        training=_training(plan, outcome),
        not_trained=outcome.failed,
    )


def _save(plan: _Plan, model: PreTrainedModel, recipe: ChangeRecipe) -> RoundTrip:
    names = list(dict.fromkeys([*plan.pairs.values(), *plan.pairs]))
    return save_and_load(model, names, file_format=recipe.format, settings=plan.checkpoint.settings)


def _reloaded(plan: _Plan, trip: RoundTrip | None) -> dict[str, str]:
    if trip is None or trip.model is None:
        return {}
    return relate(trip.model, plan.pairs, frozenset(trip.file.random))


def _train(plan: _Plan, model: PreTrainedModel, recipe: ChangeRecipe, missing: frozenset[str]) -> StepLosses:
    if isinstance(plan.lesson, str):
        return StepLosses(math.nan, math.nan, plan.lesson)
    if not recipe.own_dtype:
        model.float()
    outcome = train(
        model,
        plan.lesson,
        steps=plan.request.steps,
        learning_rate=plan.request.learning_rate,
        optimizer=plan.request.optimizer,
    )
    if outcome.failed and missing and math.isnan(outcome.first):
        return StepLosses(math.nan, math.nan, words.LACKING.format(name=min(missing)))
    return outcome


def _training(plan: _Plan, outcome: StepLosses) -> Training | None:
    if outcome.failed or isinstance(plan.lesson, str):
        return None
    return Training(outcome.first, outcome.last, plan.lesson.counted)


def _assemble(plan: _Plan, ways: Sequence[ChangedModel], *, warnings: tuple[str, ...]) -> WhatIf:
    request = plan.request
    original = ways[0]
    changed = [dataclasses.replace(way, answer=words.describe(original, way)) for way in ways[1:]]
    parameters = parameters_of(plan.model)
    listed, unique = count(parameters), count_once(parameters)
    vocab, d_model = plan.checkpoint.embedding.shape
    tied = any(edge.before == TIED for edge in original.edges)
    said = (
        words.answer(changed)
        if changed
        else words.nothing_to_do(request.change, type(plan.model).__name__, has_pairs=bool(plan.pairs))
    )
    return WhatIf(
        change=request.change,
        model_class=type(plan.model).__name__,
        answer=said,
        tied=tied,
        original=original,
        ways=tuple(changed),
        listed_parameters=listed[0],
        unique_parameters=unique[0],
        listed_nbytes=listed[1],
        unique_nbytes=unique[1],
        vocab=vocab,
        d_model=d_model,
        text=request.text,
        steps=request.steps,
        learning_rate=request.learning_rate,
        optimizer=request.optimizer,
        warnings=warnings,
        table=_table(ways),
    )


def _table(ways: Iterable[ChangedModel]) -> pd.DataFrame:
    rows = []
    for way in ways:
        for edge in way.edges:
            trained = edge.trained_drift
            rows.append(
                {
                    "way": way.title,
                    "name": edge.name,
                    "source": edge.source,
                    "before": edge.before,
                    "after": edge.after,
                    "saved_and_loaded": edge.reloaded or "",
                    "after_training": edge.trained or "",
                    "trained_and_loaded": edge.trained_reloaded or "",
                    "largest_difference": edge.drift.max_abs if edge.drift else math.nan,
                    "largest_difference_after_training": trained.max_abs if trained else math.nan,
                    "relative_change_after_training": trained.relative if trained else math.nan,
                    "cosine_after_training": trained.cosine if trained else math.nan,
                }
            )
    return pd.DataFrame(rows)
