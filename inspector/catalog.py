"""The registry of analyses: one entry each, from which pages, command line and tests follow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inspector.errors import InspectorError, MissingLibraryError
from inspector.program import lacks

if TYPE_CHECKING:
    from inspector.request import Request

# What a question reads of a checkpoint. "names": headers, configuration and tokenizer, and of weights at most two
# copies of one tensor that a loader would tie if they are equal. "rows": stored numbers besides. "model": what a model
# computes, so it is built with its numbers.
Needs = Literal["names", "rows", "model"]
SHOWN = re.compile(r"Show\[(\w+)\].*")  # how a function annotates what it shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One question that the inspector answers about a checkpoint."""

    # The page's address and file name: "masked_lm" is pages/masked_lm.py. A page may ask several questions.
    slug: str
    # What the command line, the library and the engine call it.
    verb: str
    # The name that a reader sees.
    title: str
    # What it answers, in the reader's words.
    question: str
    # "package.module:function" (checkpoint, request, *, progress) -> result, imported in the worker only. Its
    # annotations say what it returns and, with a keyword `show`, what it shows meanwhile.
    function: str
    # Material symbol of the page.
    symbol: str
    # What it reads of a checkpoint.
    needs: Needs
    # "package.module:function" (checkpoint, requests, *, progress) -> for each request, in their order, its result or
    # the InspectorError that refuses it: answers many at once. What it raises refuses them all.
    batch: str | None = None
    # "package.module" that compiles code for `function` beforehand, in a process that reads no checkpoint; empty:
    # nothing is compiled.
    compiled_by: str = ""
    # True: while numbers are still on their way, names answer what they can, and what is left out is said.
    early: bool = False

    def reads_names(self, parameters: Mapping[str, Any]) -> bool:
        """Whether headers and small files answer it with these parameters."""
        if self.needs == "names" or self.early:
            return not parameters.get("hash_files")
        return parameters.get("values") == "none"

    @property
    def room(self) -> str:
        """The package that holds everything of this question."""
        return self.function.partition(":")[0].rpartition(".")[0]

    @property
    def result(self) -> str:
        """The class that `function` returns, "package.module:Class"; "typing:Any": plain values."""
        return read_annotations(self.function)[0]

    @property
    def partial(self) -> str:
        """The class of what `function` shows of its answer while it computes the rest; empty: it shows nothing."""
        return read_annotations(self.function)[1]


_QUESTIONS = (
    Analysis(
        slug="overview",
        verb="overview",
        title="Overview",
        question="What is in this checkpoint?",
        function="inspector.analyses.overview.compute:overview",
        symbol="inventory_2",
        needs="names",
    ),
    Analysis(
        slug="overview",
        verb="adapter",
        title="Adapter",
        question="What does an adapter change, and what of it will a merge keep?",
        function="inspector.analyses.adapter.compute:adapter",
        symbol="inventory_2",
        needs="rows",
    ),
    Analysis(
        slug="overview",
        verb="histogram",
        title="Histogram",
        question="How are the numbers of a tensor distributed?",
        function="inspector.analyses.histogram.compute:histogram",
        symbol="inventory_2",
        needs="rows",
    ),
    Analysis(
        slug="sharing",
        verb="sharing",
        title="Parameter sharing",
        question="Which parameters share memory?",
        function="inspector.analyses.sharing.compute:sharing",
        symbol="hub",
        needs="rows",
        early=True,
    ),
    Analysis(
        slug="sharing",
        verb="whatif",
        title="What if",
        question="Which ties break when the model is changed?",
        function="inspector.analyses.what_if.compute:what_if",
        symbol="link_off",
        needs="model",
    ),
    Analysis(
        slug="classes",
        verb="classes",
        title="Model classes",
        question="Which classes is this model made of, and what does it return?",
        function="inspector.analyses.classes.compute:classes",
        symbol="account_tree",
        needs="names",
    ),
    Analysis(
        slug="classes",
        verb="experts",
        title="Experts",
        question="Does every expert differ, and how often does a text use each?",
        function="inspector.analyses.experts.compute:experts",
        symbol="account_tree",
        needs="model",
    ),
    Analysis(
        slug="embeddings",
        verb="embeddings",
        title="Embeddings",
        question="What do the static embeddings look like?",
        function="inspector.analyses.embeddings.compute:embeddings",
        symbol="scatter_plot",
        needs="rows",
    ),
    Analysis(
        slug="embeddings",
        verb="project",
        title="Projection",
        question="Which tokens lie close together on a map?",
        function="inspector.analyses.vocabulary_map.compute:project",
        symbol="scatter_plot",
        needs="rows",
        compiled_by="inspector.analyses.vocabulary_map.compute_umap.compiling",
    ),
    Analysis(
        slug="embeddings",
        verb="tokens",
        title="Special tokens",
        question="Which special tokens are there, and what ends a generated text?",
        function="inspector.analyses.special_tokens.compute:tokens",
        symbol="scatter_plot",
        needs="rows",
    ),
    Analysis(
        slug="padding",
        verb="padding",
        title="Padding",
        question="Why is the padding vector not zero?",
        function="inspector.analyses.padding.compute:padding",
        symbol="padding",
        needs="model",
    ),
    Analysis(
        slug="lens",
        verb="lens",
        title="Logit lens",
        question="What does each layer's hidden state say in tokens?",
        function="inspector.analyses.lens.compute:lens",
        symbol="layers",
        needs="model",
    ),
    Analysis(
        slug="lens",
        verb="placement",
        title="Placement",
        question="Where would the model run, and in which precision?",
        function="inspector.analyses.placement.compute:placement",
        symbol="layers",
        needs="names",
    ),
    Analysis(
        slug="lens",
        verb="ladder",
        title="Ladder",
        question="What does each step of the head do to a token?",
        function="inspector.analyses.ladder.compute:climb",
        symbol="layers",
        needs="model",
    ),
    Analysis(
        slug="masked_lm",
        verb="predict",
        title="Masked LM",
        question="What does the model predict for a mask?",
        function="inspector.analyses.masked_lm.compute:predict",
        symbol="stylus_note",
        needs="model",
        batch="inspector.analyses.masked_lm.compute:predict_many",
    ),
    Analysis(
        slug="masked_lm",
        verb="plausibility",
        title="Plausibility",
        question="How plausible is each token in its place?",
        function="inspector.analyses.plausibility.compute:plausibility",
        symbol="stylus_note",
        needs="model",
    ),
    Analysis(
        slug="masked_lm",
        verb="contrast",
        title="Contrast",
        question="Which tokens does one text make more likely than another?",
        function="inspector.analyses.contrast.compute:contrast",
        symbol="stylus_note",
        needs="model",
    ),
    Analysis(
        slug="similarity",
        verb="similarity",
        title="Sentence similarity",
        question="Why are these two sentences similar?",
        function="inspector.analyses.similarity.compute:similarity",
        symbol="join_inner",
        needs="model",
    ),
    Analysis(
        slug="heads",
        verb="heads",
        title="Task heads",
        question="What does each task head answer?",
        function="inspector.analyses.heads.compute:heads",
        symbol="label",
        needs="model",
    ),
    Analysis(
        slug="heads",
        verb="pretrain",
        title="Pre-training objective",
        question="What do masking and next-sentence prediction ask of the model?",
        function="inspector.analyses.pretraining.compute:pretrain",
        symbol="label",
        needs="model",
    ),
    Analysis(
        slug="heads",
        verb="tokenize",
        title="Tokenization",
        question="How is a text split into tokens?",
        function="inspector.analyses.tokenization.compute:tokenize",
        symbol="label",
        needs="names",
    ),
    Analysis(
        slug="training",
        verb="training",
        title="Training",
        question="What would AdamW decay, and how would the learning rate change?",
        function="inspector.analyses.training.compute:training",
        symbol="model_training",
        needs="rows",
        early=True,
    ),
    Analysis(
        slug="compare",
        verb="compare",
        title="Compare",
        question="What changed between two checkpoints?",
        function="inspector.analyses.compare.compute:compare",
        symbol="compare_arrows",
        needs="rows",
    ),
    Analysis(
        slug="compare",
        verb="base",
        title="Base",
        question="Which base is this?",
        function="inspector.analyses.base.compute:base",
        symbol="compare_arrows",
        needs="rows",
    ),
    Analysis(
        slug="merge",
        verb="verify-merge",
        title="Merge proof",
        question="Was an adapter really merged into its base model?",
        function="inspector.analyses.merge_proof.compute:verify_merge",
        symbol="merge",
        needs="rows",
    ),
    Analysis(
        slug="snapshots",
        verb="vitals",
        title="Snapshots",
        question="What changes over training steps?",
        function="inspector.analyses.snapshots.compute:vitals",
        symbol="timeline",
        needs="rows",
    ),
    Analysis(
        slug="checks",
        verb="check",
        title="Checks",
        question="Is anything wrong with this checkpoint?",
        function="inspector.analyses.checks.compute:check",
        symbol="fact_check",
        needs="rows",
    ),
)
CATALOG = {question.verb: question for question in _QUESTIONS}
PAGES = {analysis.slug: analysis for analysis in reversed(_QUESTIONS)}  # first entry of a slug wins


@cache
def read_annotations(function: str) -> tuple[str, str]:
    """Read from its file what a function returns and shows: importing it would bring torch.

    Args:
        function: "package.module:function".

    Returns:
        Both classes as "package.module:Class"; the second is empty if the function has no keyword `show`.

    Raises:
        InspectorError: If an annotation is missing or names nothing that the file imports.
    """
    module, _, name = function.partition(":")
    spec = find_spec(module)
    tree = ast.parse(Path(spec.origin).read_text("utf-8") if spec and spec.origin else "")
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    places = {each.asname or each.name: f"{node.module}:{each.name}" for node in imports for each in node.names}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        raise InspectorError(f"{function} is not defined there: the catalog names a function that its file defines.")
    node = functions[name]
    noted = {"": node.returns} | {each.arg: each.annotation for each in node.args.kwonlyargs}
    written = {name: ast.unparse(note) for name, note in noted.items() if note}
    returned, shown = places.get(written.get("", "")), places.get(SHOWN.sub(r"\1", written.get("show", "")), "")
    if not returned:
        raise InspectorError(f"{function} does not say what it returns: import the class by name and write -> Class.")
    if "show" in noted and not shown:
        raise InspectorError(
            f"{function} does not say what it shows: import the class by name and write show: Show[Class] | None."
        )
    return returned, shown


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
        MissingLibraryError: If a library that it needs is not installed.
    """
    with libraries():
        return find(CATALOG[verb].function)(checkpoint, **parameters)


@contextmanager
def libraries() -> Iterator[None]:
    """Say which library something needs that is not installed, and what adds it.

    Raises:
        MissingLibraryError: If there is one.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if lack := lacks(error):
            raise MissingLibraryError(lack) from error
        raise


def import_ahead(*modules: str) -> None:
    """Import what a question may need when the question itself is imported, if the libraries are there."""
    with suppress(MissingLibraryError), libraries():
        for module in modules:
            import_module(module)


@cache
def request_of(verb: str) -> type[Request]:
    """The request class of a question: what can be asked, with bounds and help.

    A room without a `request.py` asks a question without options.
    """
    from inspector.request import Request

    module = f"{CATALOG[verb].room}.request"
    if find_spec(module) is None:
        return type(f"{verb.title().replace('-', '')}Request", (Request,), {"verb": verb})
    classes = (each for each in vars(import_module(module)).values() if isinstance(each, type))
    (found,) = (each for each in classes if getattr(each, "verb", "") == verb)
    return found
