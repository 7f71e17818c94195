"""The library: open a checkpoint, or wrap a live model, and run the same analyses as the pages.

    import inspector as ci
    checkpoint = ci.open("demo-bert")
    checkpoint.lens("the capital of [MASK].", k=5).figure()

Every command-line verb is a method with the same options. The work runs in this process, unless
`open` gets an engine.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Protocol
from weakref import finalize

from inspector.catalog import CATALOG, answer, libraries, request_of
from inspector.errors import NotInCheckpointError, NoTokenizerError, RequestError, WeightsOnHubError
from inspector.progress import Progress
from inspector.questions import Questions
from inspector.request import Request, beside, defaults, options
from inspector.results.checkpoint import Opened
from inspector.results.plain import to_json
from inspector.settings import Settings, settings
from inspector.store.files import remove_folder
from inspector.store.manifests.manifest import HeadersAloneError
from inspector.store.reference import CheckpointRef, find_reference
from inspector.view.view import View, view_of

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.plotting.theme import Theme
    from inspector.store.manifests.manifest import Manifest

Shown = Callable[[str], AbstractContextManager[Progress]]  # shows progress under a title
Here = tuple["StagedCheckpoint", Shown]  # what was opened in this process
SAVED = "model"  # the folder of a live model's files, in a temporary one
CHANGED = "The weights of {name} have changed since it was wrapped: call refresh() to look at them as they are now."
NO_MODEL = (
    "wrap takes a model, such as AutoModel.from_pretrained(...), not a {kind}: load a state dict into its model first, "
    "or save it to a file and open that with inspector.open()."
)
ADAPTED = (
    "{kind} holds an adapter and its base model: wrap model.merge_and_unload() to look at both together, or "
    "model.get_base_model() for the model below."
)
PARALLEL = "{kind} is a wrapper for training on several devices: wrap the model in it, which is its .module."
NO_TOKENIZER = "{name} was wrapped without a tokenizer, so it reads no text: pass tokenizer= to inspector.wrap()."
BAR = "{desc} {bar}"  # as tqdm fills it
NOT_HERE = "{name} was not opened in this process, so no adapter can be put on it: open both without an engine."
NO_FIGURE = "This answer of {verb} has no figure: to_frame() returns its table."


class RemoteEngine(Protocol):
    """Runs the work in other processes, such as one of `inspector.serving.engine`."""

    def open(self, reference: CheckpointRef, *, whole: bool = False) -> Any:
        """Begin to open a checkpoint; `result()` of what comes back waits for an `Opened`.

        Args:
            reference: Of any kind.
            whole: Whether a model of the hub is fetched with its numbers; otherwise its headers may do.
        """
        ...

    def run(self, fingerprint: str, verb: str, *, called: Sequence[str] = (), **parameters: Any) -> Any:
        """Begin to answer a question; `result()` of what comes back waits for the answer."""
        ...


class Answer:
    """A result with tables and figures for notebooks. Its attributes are the fields of the result."""

    def __init__(self, result: Any, name: str, request: Request) -> None:
        self.result = result
        self.request = request
        self._name = name  # of the checkpoint

    def with_fields(self, **fields: Any) -> Answer:
        """Return the same answer with other values of some fields."""
        return Answer(dataclasses.replace(self.result, **fields), self._name, self.request)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "result":  # a copy that is being made has none yet
            raise AttributeError(name)
        return getattr(self.result, name)

    def __getstate__(self) -> dict[str, Any]:
        """A copy knows the result, and what was asked."""
        asked = self.request.verb, self.request.parameters()
        return {"result": self.result, "_name": self._name, "_asked": asked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        verb, parameters = state.pop("_asked")
        self.request = request_of(verb)(**parameters)
        self.__dict__.update(state)

    def __dir__(self) -> list[str]:
        fields = (field.name for field in dataclasses.fields(self.result))
        return sorted({*super().__dir__(), *fields})

    def __repr__(self) -> str:
        return f"{type(self.result).__name__} of {self._name}"

    def to_json(self) -> dict[str, Any]:
        """Return what the command line prints with --json."""
        return to_json(self.result)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the result's tables, as `to_frame` takes them."""
        names = [each.name for each in dataclasses.fields(self.result)]
        held = [name for name in names if _holds_rows(getattr(self.result, name))]
        return tuple(dict.fromkeys((*held, *self._shown_tables())))

    def to_frame(self, field: str | None = None) -> pd.DataFrame:
        """Return one table of the result.

        Args:
            field: Name of the table, one of `tables`, or of another field; None: the table that answers the
                question, or one row with the result's values.

        Raises:
            AttributeError: If the result has no such field.
        """
        import pandas as pd

        if field is not None:
            if not _holds_rows(getattr(self.result, field, None)) and field in (shown := self._shown_tables()):
                return shown[field]
            value = getattr(self.result, field)
            return value if isinstance(value, pd.DataFrame) else pd.DataFrame(_rows(value))
        if hasattr(self.result, "table"):
            return self.result.table
        for each in dataclasses.fields(self.result):
            value = getattr(self.result, each.name)
            if isinstance(value, pd.DataFrame) and not each.metadata.get("local"):
                return value
        plain = self.to_json()
        if rows := next((v for v in plain.values() if isinstance(v, list) and v and isinstance(v[0], dict)), None):
            return pd.DataFrame(rows)
        return next(iter(self._shown_tables().values()), pd.DataFrame([plain]))

    def _shown_tables(self) -> dict[str, pd.DataFrame]:
        """The tables that a report shows of the result, by name."""
        view = self.view()
        return {table.name: table.frame for table in view.tables} if view else {}

    def figure(self, theme: Theme | str = "light") -> go.Figure:
        """Draw the result's main figure.

        Args:
            theme: Colors: "light", "dark" or a theme.

        Raises:
            NotInCheckpointError: If the result has no figure.
            RequestError: If there is no such theme.
        """
        from inspector.plotting.theme import THEMES

        if isinstance(theme, str):
            if theme not in THEMES:
                raise RequestError(f"There is no theme {theme[:40]!r}: give {' or '.join(THEMES)}.")
            theme = THEMES[theme]
        view = self.view()
        if view is None or not view.figures:
            raise NotInCheckpointError(NO_FIGURE.format(verb=self.request.verb))
        return view.figures[0].draw(theme)

    def view(self) -> View | None:
        """Return what a report shows of the result; None: its tables alone."""
        return view_of(self.result, self.request, name=self._name)

    def _repr_html_(self) -> str:
        from inspector.report.fragment import write_fragment

        view = self.view()
        title = CATALOG[self.request.verb].title
        return write_fragment(f"{title}: {self._name}", view, self.to_frame() if view is None else None)


class Checkpoint(Questions):
    """A checkpoint with a method for each command-line verb.

    `open` and `wrap` create it.
    """

    def __init__(
        self,
        opened: Opened,
        ask: Callable[..., Any],
        *,
        engine: RemoteEngine | None = None,
        here: Here | None = None,
        whole: Callable[[], Checkpoint] | None = None,
    ) -> None:
        self.opened = opened
        self._ask = ask
        self._engine = engine  # opens a second checkpoint, too
        self._here = here
        self._whole = whole  # opens the same with the numbers that are still on the hub; None: they are here

    @property
    def name(self) -> str:
        """The name of the checkpoint."""
        return self.opened.name

    def ask(self, verb: str, **parameters: Any) -> Answer:
        """Run one analysis.

        Args:
            verb: As the command line calls it.
            parameters: Options by name. A second checkpoint, such as `other`, is either opened or a name.

        Raises:
            InspectorError: If the analysis does not apply to the checkpoint; the message states the reason.
            RequestError: If there is no such question or option, or a value does not fit.
        """
        kind = _request_of(verb, parameters)
        alone = CATALOG[verb].reads_names(parameters)
        if not alone:
            self._fetch_weights()
        # They must stay open while the question is answered.
        others = {name: _second(other, self._engine) for name, other in beside(parameters).items()}
        if adapted := next((each for each in others.values() if each.opened.adapter), None):
            from inspector.store.pairs import SECOND

            raise RequestError(SECOND.format(name=adapted.name))
        if not alone:
            for each in others.values():
                each._fetch_weights()
        try:
            return self._answered(kind, parameters, others)
        except (
            HeadersAloneError,
            WeightsOnHubError,
        ):  # two copies of a tensor, say, of which no header tells whether they are equal
            for each in (self, *others.values()):
                each._fetch_weights()
            return self._answered(kind, parameters, others)

    def _answered(self, kind: type[Request], parameters: Mapping[str, Any], others: Mapping[str, Checkpoint]) -> Answer:
        request = kind(**dict(parameters) | {name: each.opened.fingerprint for name, each in others.items()})
        result = self._ask(kind.verb, **request.parameters())
        _label(result, request, self.opened, {name: each.opened for name, each in others.items()})
        return Answer(result, self.name, request)

    def with_adapter(self, adapter: Checkpoint) -> Checkpoint:
        """Put an adapter on this checkpoint: all questions are about both, as merging would make them.

        Nothing is written. What PEFT calls the base model stays as it is.

        Args:
            adapter: An opened adapter.

        Raises:
            NotInCheckpointError: If it does not fit, or what it does is not computed here; the message states which.
            RequestError: If one of the two was not opened in this process.
        """
        if self._here is None or adapter._here is None:
            raise RequestError(NOT_HERE.format(name=(self if self._here is None else adapter).name))
        from inspector.store.pairs import joined

        for each in (self, adapter):
            each._fetch_weights()
        with libraries():
            from inspector.models.adapters.overlay import adapted
        (model, shown), (other, _) = self._here, adapter._here
        both = adapted(model, other)
        manifest = both.manifest
        opened = dataclasses.replace(
            joined(self.opened, adapter.opened), fingerprint=manifest.fingerprint, warnings=manifest.warnings
        )
        return Checkpoint(opened, partial(_answer_here, both, shown), here=(both, shown))

    def _fetch_weights(self) -> None:
        """Have the weights that are still on the hub; whoever asked before keeps the answers from the headers."""
        if self._whole is not None:
            whole = self._whole()
            self.opened, self._ask, self._here, self._whole = whole.opened, whole._ask, whole._here, None

    def __repr__(self) -> str:
        return f"Checkpoint({self.name!r})"


def open(  # noqa: A001
    source: str | Path, *, adapter: str | Path | None = None, engine: RemoteEngine | None = None
) -> Checkpoint:
    """Open a checkpoint.

    Of a model on the hub, the headers alone are fetched, and its weights with the first question that needs numbers.

    Args:
        source: A folder, archive or weight file, a demo's name, or a hub id ("org/name" or "org/name@revision").
        adapter: An adapter on it, named in the same ways: all answers are then about both, as merging would make them.
        engine: Runs the work in separate processes with limits; None: the work runs in this process.

    Raises:
        CheckpointError: If it cannot be opened; the message states the reason and the next step.
        NotInCheckpointError: If the adapter does not fit.
    """
    if adapter is not None:
        return open(source, engine=engine).with_adapter(open(adapter, engine=engine))
    reference = find_reference(str(source))
    if engine is None:
        return open_here(reference, settings())
    return _on_engine(engine, engine.open(reference).result())


def _on_engine(engine: RemoteEngine, opened: Opened) -> Checkpoint:
    """What an engine has opened."""

    def whole() -> Checkpoint:
        return _on_engine(engine, engine.open(CheckpointRef.parse(opened.reference), whole=True).result())

    return Checkpoint(
        opened,
        lambda verb, **parameters: engine.run(opened.fingerprint, verb, called=(opened.name,), **parameters).result(),
        engine=engine,
        whole=whole if opened.on_hub_nbytes else None,
    )


class WrappedModel(Checkpoint):
    """A live model as it was when it was wrapped, or refreshed last: all its answers are of that moment."""

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        self._model, self._tokenizer, self._name = model, tokenizer, name
        self._remove: Callable[[], Any] = lambda: None
        self.refresh()

    def refresh(self) -> None:
        """Take the model as it is now; answers that were given before stay as they are."""
        from inspector.analyses.sharing.compute import find_sharing

        self._state, shared = _state_of(self._model), find_sharing(self._model)
        opened, ask, remove = self._saved()
        super().__init__(opened, lambda verb, **values: shared if verb == "sharing" else ask(verb, **values))
        self._remove()
        self._remove = remove

    def ask(self, verb: str, **parameters: Any) -> Answer:
        """Run one analysis on the model as it was; a warning says so where its weights have changed since."""
        if _state_of(self._model) != self._state:
            warnings.warn(CHANGED.format(name=self.name), stacklevel=3)
        try:
            return super().ask(verb, **parameters)
        except NoTokenizerError as error:
            if self._tokenizer is not None:
                raise
            raise NoTokenizerError(NO_TOKENIZER.format(name=self.name)) from error

    def _saved(self) -> tuple[Opened, Callable[..., Any], Callable[[], Any]]:
        """What was saved: its facts, what asks about it, and what removes it."""
        if not hasattr(self._model, "save_pretrained"):
            return Opened("", self._name, self._name, ()), _only_sharing, lambda: None
        made = Path(mkdtemp(prefix="inspector-"))
        try:
            self._model.save_pretrained(made / SAVED)
            if self._tokenizer is not None:
                self._tokenizer.save_pretrained(made / SAVED)
            saved = open_here(CheckpointRef("path", str(made / SAVED)), settings(), name=self._name)
        except BaseException:
            remove_folder(made)
            raise
        return saved.opened, saved._ask, finalize(self, remove_folder, made)

    def __repr__(self) -> str:
        return f"WrappedModel({self.name!r}, snapshot of a live model)"


def wrap(model: Any, tokenizer: Any = None, *, name: str | None = None) -> WrappedModel:
    """Run the same analyses on a snapshot of a live model.

    `sharing` looks at the module in memory. All other methods read the files that the model saves
    (`save_pretrained`), in a folder that is removed with the checkpoint. Both are of the moment when the model is
    wrapped; `refresh()` takes it again.

    Args:
        model: A `PreTrainedModel`, or any `torch.nn.Module` for `sharing` only.
        tokenizer: Any with `save_pretrained`; None: tokens are shown by their ids.
        name: Name to show, such as model.name_or_path; None: the name of its class. It never becomes a path.

    Raises:
        RequestError: If it is no model, or one in a wrapper that is not its own to save.
    """
    if not hasattr(model, "named_parameters"):
        raise RequestError(NO_MODEL.format(kind=type(model).__name__))
    if hasattr(model, "merge_and_unload"):
        raise RequestError(ADAPTED.format(kind=type(model).__name__))
    if not hasattr(model, "save_pretrained") and hasattr(getattr(model, "module", None), "save_pretrained"):
        raise RequestError(PARALLEL.format(kind=type(model).__name__))
    return WrappedModel(model, tokenizer, str(name or type(model).__name__))


def _state_of(model: Any) -> tuple[tuple[int, int], ...]:
    """Which tensors a model has, and how often each was changed in place."""
    found: list[tuple[int, int]] = []
    for tensor in (*model.parameters(), *model.buffers()):
        with suppress(RuntimeError):  # tensors of torch.inference_mode() count no changes
            found.append((id(tensor), tensor._version))
    return tuple(found)


def _only_sharing(verb: str, **_: Any) -> Any:
    raise NotInCheckpointError(
        f"{verb} needs a transformers model, because it reads the saved files: on a plain module, only sharing works."
    )


def open_here(
    reference: CheckpointRef,
    limits: Settings,
    *,
    name: str | None = None,
    fetched: Path | None = None,
    whole: bool = False,
    shown: Shown | None = None,
    staged: Callable[[Manifest], None] = lambda manifest: None,
) -> Checkpoint:
    """Open a checkpoint in this process.

    Args:
        reference: Of any kind.
        limits: Settings, and where the store is.
        name: What it is called; None: as its files say.
        fetched: The folder that holds a model of the hub; None: its headers are fetched.
        whole: Whether a model of the hub is downloaded instead.
        shown: Shows progress under a title; None: by tqdm.
        staged: Called with what the headers say, before anything is asked.

    Raises:
        CheckpointError: If it cannot be opened; the message states the reason and the next step.
    """
    from inspector.models.checkpoint import StagedCheckpoint
    from inspector.store.opening import open_checkpoint

    shown = shown or _progress
    by_itself = reference.origin.downloads and fetched is None  # with the network
    with shown("Opening") as tell:
        if by_itself and not whole:
            from inspector.store.origins.hub_headers import bring_headers

            fetched = bring_headers(reference.value, limits, progress=tell)
        manifest, found = open_checkpoint(
            reference, settings=limits, progress=tell, restrict_paths=False, fetched=fetched
        )
    staged(manifest)
    model = StagedCheckpoint(manifest, settings=limits)
    if name is not None:
        model.called = (name,)
    opened = Opened(manifest.fingerprint, str(found), model.name, manifest.warnings, manifest.on_hub_nbytes)
    later = partial(open_here, found, limits, name=model.name, whole=True, shown=shown, staged=staged)
    return Checkpoint(
        opened,
        partial(_answer_here, model, shown),
        here=(model, shown),
        whole=later if by_itself and manifest.is_on_hub else None,
    )


def _answer_here(model: StagedCheckpoint, shown: Shown, verb: str, **parameters: Any) -> Any:
    with shown(CATALOG[verb].title) as tell:
        return answer(verb, model, progress=tell, **parameters)


@contextmanager
def _progress(title: str) -> Iterator[Progress]:
    """Show progress by tqdm: a bar in a notebook, a line in a terminal, nothing in a pipe."""
    from tqdm.auto import tqdm

    with tqdm(total=1.0, desc=title, leave=False, disable=None, bar_format=BAR) as bar:

        def tell(fraction: float | None, text: str) -> None:
            bar.set_description_str(text)
            if fraction is not None:
                bar.update(max(fraction - bar.n, 0.0))

        yield tell


def _request_of(verb: str, parameters: dict[str, Any]) -> type[Request]:
    if verb not in CATALOG:
        near = get_close_matches(str(verb), CATALOG, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise RequestError(f"There is no question {str(verb)[:40]!r}.{meant} The questions: {', '.join(CATALOG)}.")
    kind = request_of(verb)
    unknown = [name for name in parameters if name not in options(kind)]
    missing = [name for name in options(kind) if name not in parameters and name not in defaults(kind)]
    if unknown or missing:
        what = f"has no option {unknown[0]!r}" if unknown else f"needs {missing[0]!r}"
        raise RequestError(f"{verb} {what}. Its options: {', '.join(options(kind)) or 'none'}.")
    return kind


def _second(other: Any, engine: RemoteEngine | None) -> Checkpoint:
    if isinstance(other, Checkpoint):
        return other
    if isinstance(other, str | Path):
        return globals()["open"](other, engine=engine)
    raise RequestError(
        f"A second checkpoint must be a name, a path or an opened checkpoint, not a {type(other).__name__}: open it "
        "with inspector.open(), or wrap a live model with inspector.wrap()."
    )


def _label(result: Any, request: Request, opened: Opened, others: dict[str, Opened]) -> None:
    """Have each table say where it comes from: pandas writes that into Parquet files."""
    frames = [value for each in dataclasses.fields(result) if hasattr(value := getattr(result, each.name), "attrs")]
    if frames and opened.fingerprint:  # a plain module has no files that a command could name
        from inspector.report.provenance import of_answer

        facts = of_answer(request, opened, others)
        for frame in frames:
            frame.attrs = facts


def _holds_rows(value: Any) -> bool:
    import pandas as pd

    listed = isinstance(value, list | tuple) and bool(value) and dataclasses.is_dataclass(value[0])
    return listed or isinstance(value, pd.DataFrame)


def _rows(value: Any) -> list[dict[str, Any]]:
    rows = value if isinstance(value, list | tuple) else [value]
    return [to_json(row) if dataclasses.is_dataclass(row) else {"value": row} for row in rows]
