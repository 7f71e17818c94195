"""The registry of analyses: one line each, from which pages, command line and tests follow."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from inspector.errors import RequestError
from inspector.program import lacks

if TYPE_CHECKING:
    from inspector.request import Request

# What a question reads of a checkpoint. "names": headers, configuration and tokenizer, and of weights at most two
# copies of one tensor that a loader would tie if they are equal. "rows": stored numbers besides. "model": what a model
# computes, so it is built with its numbers.
Needs = Literal["names", "rows", "model"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """One question that the inspector answers about a checkpoint."""

    slug: str  # page's address and file name, e.g. "masked_lm" -> pages/masked_lm.py
    verb: str  # command line and engine
    title: str
    question: str  # the question it answers, in the reader's words
    function: str  # "package.module:function", imported in the worker only
    symbol: str  # Material symbol of the page
    needs: Needs
    # "package.module:function" (checkpoint, requests, *, progress) -> for each request, in their
    # order, its result or the InspectorError that refuses it: answers many at once. What it raises
    # refuses them all.
    batch: str | None = None
    result: str = ""  # "package.module:Class" that `function` returns; empty: plain values
    # "package.module:Class" of what `function` shows of its answer while it computes the rest, with its
    # keyword `show`; empty: nothing. A question that has a `batch` shows nothing.
    partial: str = ""
    # "package.module" that compiles code for `function` beforehand, in a process that reads no
    # checkpoint; empty: nothing is compiled.
    compiled_by: str = ""
    # True: while numbers are still on their way, names answer what they can, and what is left out is said
    early: bool = False
    # True: needs no torch for most checkpoints, so that a process which has just opened one answers soonest
    light: bool = False

    @property
    def room(self) -> str:
        """The package that holds everything of this question."""
        return self.function.partition(":")[0].rpartition(".")[0]


def _by(room: str, function: str) -> str:
    return f"inspector.analyses.{room}.compute:{function}"


def _of(room: str, name: str) -> str:
    return f"inspector.analyses.{room}.result:{name}"


_QUESTIONS = (
    Analysis(
        "overview",
        "overview",
        "Overview",
        "What is in this checkpoint?",
        _by("overview", "overview"),
        "inventory_2",
        "names",
        result=_of("overview", "Overview"),
        light=True,
    ),
    Analysis(
        "sharing",
        "sharing",
        "Parameter sharing",
        "Which parameters share memory?",
        _by("sharing", "sharing"),
        "hub",
        "rows",
        result=_of("sharing", "Sharing"),
        early=True,
    ),
    Analysis(
        "sharing",
        "whatif",
        "What if",
        "Which ties break when the model is changed?",
        _by("what_if", "what_if"),
        "link_off",
        "model",
        result=_of("what_if", "WhatIf"),
    ),
    Analysis(
        "classes",
        "classes",
        "Model classes",
        "Which classes is this model made of, and what does it return?",
        _by("classes", "classes"),
        "account_tree",
        "names",
        result=_of("classes", "ModelClasses"),
    ),
    Analysis(
        "embeddings",
        "embeddings",
        "Embeddings",
        "What do the static embeddings look like?",
        _by("embeddings", "embeddings"),
        "scatter_plot",
        "rows",
        result=_of("embeddings", "Embeddings"),
    ),
    Analysis(
        "embeddings",
        "project",
        "Projection",
        "Which tokens lie close together on a map?",
        _by("vocabulary_map", "project"),
        "scatter_plot",
        "rows",
        result=_of("vocabulary_map", "Projection"),
        compiled_by="inspector.analyses.vocabulary_map.compute_umap.compiling",
    ),
    Analysis(
        "padding",
        "padding",
        "Padding",
        "Why is the padding vector not zero?",
        _by("padding", "padding"),
        "padding",
        "model",
        result=_of("padding", "Padding"),
        partial=_of("padding", "Padding"),
    ),
    Analysis(
        "lens",
        "lens",
        "Vocabulary lens",
        "What does each layer's hidden state say in tokens?",
        _by("lens", "lens"),
        "layers",
        "model",
        result=_of("lens", "Lens"),
        partial=_of("lens", "LensRows"),
    ),
    Analysis(
        "lens",
        "placement",
        "Placement",
        "Where would the model run, and in which precision?",
        _by("placement", "placement"),
        "layers",
        "names",
        result="inspector.results.placement:Placement",
    ),
    Analysis(
        "lens",
        "ladder",
        "Ladder",
        "What does each step of the head do to a token?",
        _by("ladder", "climb"),
        "layers",
        "model",
        result=_of("ladder", "Climb"),
    ),
    Analysis(
        "masked_lm",
        "predict",
        "Masked LM",
        "What does the model predict for a mask?",
        _by("masked_lm", "predict"),
        "stylus_note",
        "model",
        batch=_by("masked_lm", "predict_many"),
        result=_of("masked_lm", "Prediction"),
    ),
    Analysis(
        "masked_lm",
        "plausibility",
        "Plausibility",
        "How plausible is each token in its place?",
        _by("plausibility", "plausibility"),
        "stylus_note",
        "model",
        result=_of("plausibility", "Plausibility"),
    ),
    Analysis(
        "masked_lm",
        "contrast",
        "Contrast",
        "Which tokens does one text make more likely than another?",
        _by("contrast", "contrast"),
        "stylus_note",
        "model",
        result=_of("contrast", "Contrast"),
    ),
    Analysis(
        "heads",
        "heads",
        "Task heads",
        "What does each task head answer?",
        _by("heads", "heads"),
        "label",
        "model",
        result=_of("heads", "HeadAnswer"),
    ),
    Analysis(
        "heads",
        "pretrain",
        "Pre-training objective",
        "What do masking and next-sentence prediction ask of the model?",
        _by("pretraining", "pretrain"),
        "label",
        "model",
        result=_of("pretraining", "Pretraining"),
    ),
    Analysis(
        "heads",
        "tokenize",
        "Tokenization",
        "How is a text split into tokens?",
        _by("tokenization", "tokenize"),
        "label",
        "names",
        result=_of("tokenization", "Tokenization"),
        light=True,
    ),
    Analysis(
        "training",
        "training",
        "Training",
        "What would AdamW decay, and how would the learning rate change?",
        _by("training", "training"),
        "model_training",
        "rows",
        result=_of("training", "TrainingPlan"),
        early=True,
    ),
    Analysis(
        "compare",
        "compare",
        "Compare",
        "What changed between two checkpoints?",
        _by("compare", "compare"),
        "compare_arrows",
        "rows",
        result=_of("compare", "Comparison"),
    ),
    Analysis(
        "snapshots",
        "vitals",
        "Snapshots",
        "What changes over training steps?",
        _by("snapshots", "vitals"),
        "timeline",
        "rows",
        result=_of("snapshots", "Vitals"),
    ),
    Analysis(
        "checks",
        "check",
        "Checks",
        "Is anything wrong with this checkpoint?",
        _by("checks", "check"),
        "fact_check",
        "rows",
        result=_of("checks", "Checks"),
    ),
)
CATALOG = {question.verb: question for question in _QUESTIONS}
PAGES = {analysis.slug: analysis for analysis in reversed(_QUESTIONS)}  # first entry of a slug wins


def find(reference: str) -> Any:
    """What "package.module:name" names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def answer(verb: str, checkpoint: Any, **parameters: Any) -> Any:
    """Answer a question in this process; how one room asks another, and only there torch comes in.

    Args:
        checkpoint: An opened `Checkpoint`.

    Returns:
        The result of the room's function.

    Raises:
        RequestError: If a library that it needs is not installed.
    """
    try:
        return find(CATALOG[verb].function)(checkpoint, **parameters)
    except ModuleNotFoundError as error:
        if lack := lacks(error):
            raise RequestError(lack) from error
        raise


def request_of(verb: str) -> type[Request]:
    """The request class of a question: what can be asked, with bounds and help."""
    module = import_module(f"{CATALOG[verb].room}.request")
    (found,) = (each for each in vars(module).values() if isinstance(each, type) and getattr(each, "verb", "") == verb)
    return found
