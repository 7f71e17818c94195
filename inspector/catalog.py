"""The registry of analyses: one line each, from which pages, command line and tests follow."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspector.request import Request


@dataclass(frozen=True, slots=True)
class Analysis:
    """One question that the inspector answers about a checkpoint."""

    slug: str  # page's address and file name, e.g. "masked_lm" -> pages/masked_lm.py
    verb: str  # command line and engine
    title: str
    question: str  # the question it answers, in the reader's words
    function: str  # "package.module:function", imported in the worker only
    symbol: str  # Material symbol of the page
    needs_model: bool  # False: the headers are enough
    # "package.module:function" (checkpoint, requests, *, progress) -> for each request, in their
    # order, its result or the InspectorError that refuses it: answers many at once. What it raises
    # refuses them all.
    batch: str | None = None

    @property
    def room(self) -> str:
        """The package that holds everything of this question."""
        return self.function.partition(":")[0].rpartition(".")[0]


CATALOG: tuple[Analysis, ...] = (
    Analysis("overview", "overview", "Overview", "What is in this checkpoint?",
             "inspector.analyses.overview.compute:overview", "inventory_2", False),
    Analysis("sharing", "sharing", "Parameter sharing", "Which parameters share memory?",
             "inspector.analyses.sharing.compute:sharing", "hub", True),
    Analysis("sharing", "whatif", "What if", "Which ties break when the model is changed?",
             "inspector.analyses.what_if.compute:what_if", "link_off", True),
    Analysis("classes", "classes", "Model classes",
             "Which classes is this model made of, and what does it return?",
             "inspector.analyses.classes.compute:classes", "account_tree", True),
    Analysis("embeddings", "embeddings", "Embeddings", "What do the static embeddings look like?",
             "inspector.analyses.embeddings.compute:embeddings", "scatter_plot", False),
    Analysis("embeddings", "project", "Projection", "Which tokens lie together on a map?",
             "inspector.analyses.vocabulary_map.compute:project", "scatter_plot", False),
    Analysis("padding", "padding", "Padding", "Why is the padding vector not zero?",
             "inspector.analyses.padding.compute:padding", "padding", True),
    Analysis("lens", "lens", "Vocabulary lens",
             "What does each layer's hidden state say in tokens?",
             "inspector.analyses.lens.compute:lens", "layers", True),
    Analysis("lens", "placement", "Placement",
             "Where would the model run, and in which precision?",
             "inspector.analyses.placement.compute:placement", "layers", True),
    Analysis("lens", "ladder", "Ladder", "What does each step of the head do to a token?",
             "inspector.analyses.ladder.compute:climb", "layers", True),
    Analysis("masked_lm", "predict", "Masked LM", "What does the model predict for a mask?",
             "inspector.analyses.masked_lm.compute:predict", "stylus_note", True,
             batch="inspector.analyses.masked_lm.compute:predict_many"),
    Analysis("masked_lm", "plausibility", "Plausibility",
             "How plausible is every token in its own place?",
             "inspector.analyses.plausibility.compute:plausibility", "stylus_note", True),
    Analysis("masked_lm", "contrast", "Contrast",
             "Which tokens does one text make likelier than another?",
             "inspector.analyses.contrast.compute:contrast", "stylus_note", True),
    Analysis("heads", "heads", "Task heads", "What does each task head answer?",
             "inspector.analyses.heads.compute:heads", "label", True),
    Analysis("heads", "pretrain", "Pre-training objective",
             "What do masking and the next sentence ask of the model?",
             "inspector.analyses.pretraining.compute:pretrain", "label", True),
    Analysis("heads", "tokenize", "Tokenization", "What tokens does a text become?",
             "inspector.analyses.tokenization.compute:tokenize", "label", False),
    Analysis("training", "training", "Training",
             "What would AdamW decay, and how would the learning rate run?",
             "inspector.analyses.training.compute:training", "model_training", True),
    Analysis("compare", "compare", "Compare", "What changed between two checkpoints?",
             "inspector.analyses.compare.compute:compare", "compare_arrows", False),
    Analysis("snapshots", "vitals", "Snapshots", "What changes over training steps?",
             "inspector.analyses.snapshots.compute:vitals", "timeline", False),
    Analysis("checks", "check", "Checks", "Is anything wrong with this checkpoint?",
             "inspector.analyses.checks.compute:check", "fact_check", True),
)  # fmt: skip

BY_VERB = {analysis.verb: analysis for analysis in CATALOG}
PAGES = {analysis.slug: analysis for analysis in reversed(CATALOG)}  # first entry of a slug wins


def answer(verb: str, checkpoint: Any, **parameters: Any) -> Any:
    """Answer a question in this process; how one room asks another, and only there torch comes in.

    Args:
        verb: Names the question.
        checkpoint: An opened `Checkpoint`.
        parameters: Of the question, and `progress`.

    Returns:
        The result of the room's function.
    """
    module, _, function = BY_VERB[verb].function.partition(":")
    return getattr(import_module(module), function)(checkpoint, **parameters)


def request_of(verb: str) -> type[Request]:
    """The request class of a question: what can be asked, with bounds and help."""
    module = import_module(f"{BY_VERB[verb].room}.request")
    (found,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type) and getattr(each, "verb", "") == verb
    )
    return found
