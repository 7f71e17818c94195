"""The library: open a checkpoint, or wrap a live model, and run the same analyses as the pages.

    import inspector as ci
    checkpoint = ci.open("demo-bert")
    checkpoint.lens("the capital of [MASK].", k=5).figure()

Every command-line verb is a method with the same options. The work runs in this process, unless
`open` gets an engine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

from inspector.catalog import CATALOG, Analysis, answer, request_of
from inspector.errors import InspectorError, NotInCheckpointError
from inspector.questions import Questions
from inspector.report.content import Block, Context, Drawn, Section, Setting
from inspector.request import Request
from inspector.results.checkpoint import Opened
from inspector.results.plain import to_json
from inspector.settings import Settings, settings
from inspector.store.files import remove_folder
from inspector.store.reference import CheckpointRef, find_reference

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from inspector.engine.protocol import Engine
    from inspector.models.checkpoint import Checkpoint as Model
    from inspector.plotting.theme import Theme

SAVED = "model"  # the folder of a live model's files, in a temporary one
BAR = "{desc} {bar}"  # as tqdm fills it
NO_FIGURE = "{verb} has no figure: to_frame() returns its table."


class Answer:
    """A result with tables and figures for notebooks. Its attributes are the fields of the result."""

    def __init__(
        self, result: Any, checkpoint: Checkpoint, request: Request, *, other: Checkpoint | None = None
    ) -> None:
        self.result = result
        self.request = request
        self._checkpoint = checkpoint
        self._other = other.opened if other else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result, name)

    def __dir__(self) -> list[str]:
        fields = (field.name for field in dataclasses.fields(self.result))
        return sorted({*super().__dir__(), *fields})

    def __repr__(self) -> str:
        return f"{type(self.result).__name__} of {self._checkpoint.name}"

    def to_json(self) -> dict[str, Any]:
        """Return what the command line prints with --json."""
        return to_json(self.result)

    def to_frame(self, field: str | None = None) -> pd.DataFrame:
        """Return one table of the result.

        Args:
            field: Name of the table; None: the first table of the result, or one row with its values.

        Raises:
            AttributeError: If the result has no such field.
        """
        import pandas as pd

        if field is not None:
            value = getattr(self.result, field)
            return value if isinstance(value, pd.DataFrame) else pd.DataFrame(_rows(value))
        for each in dataclasses.fields(self.result):
            value = getattr(self.result, each.name)
            if isinstance(value, pd.DataFrame) and not each.metadata.get("local"):
                return value
        plain = self.to_json()
        rows = next((v for v in plain.values() if isinstance(v, list) and _is_table(v)), [plain])
        return pd.DataFrame(rows)

    def figure(self, theme: Theme | None = None) -> go.Figure:
        """Draw the result's main figure.

        Args:
            theme: Colors; None: the light theme.

        Raises:
            NotInCheckpointError: If the result has no figure.
        """
        from inspector.plotting.theme import LIGHT

        drawn = [block for block in self._blocks() if isinstance(block, Drawn)]
        if drawn:
            return drawn[0].draw(theme or LIGHT)
        figures = _piece(CATALOG[self.request.verb], "figures")
        if not hasattr(figures, "figure"):
            raise NotInCheckpointError(NO_FIGURE.format(verb=self.request.verb))
        return figures.figure(self.result, name=self._checkpoint.name, theme=theme or LIGHT)

    def _blocks(self) -> tuple[Block, ...]:
        """The report's section of this result; empty where no section begins with the question."""
        context = dataclasses.replace(self._checkpoint.context, other=self._other)
        section: Section | None = getattr(_piece(CATALOG[self.request.verb], "section"), "SECTION", None)
        if section is None:
            return ()
        try:
            asked = section.ask(context)
        except InspectorError:
            return ()
        if asked[0].verb != self.request.verb:
            return ()
        return tuple(section.show(context, (self.result, *(None for _ in asked[1:]))))

    def _repr_html_(self) -> str:
        from inspector.report.fragment import write_fragment

        try:
            figure = None if self._blocks() else self.figure()
        except NotInCheckpointError:
            figure = None
        frame = None if self._blocks() or figure is not None else self.to_frame()
        title = CATALOG[self.request.verb].title
        return write_fragment(f"{title}: {self._checkpoint.name}", self._blocks(), figure, frame)


class Checkpoint(Questions):
    """A checkpoint with a method for each command-line verb.

    `open` and `wrap` create it.
    """

    def __init__(self, opened: Opened, ask: Callable[..., Any], *, engine: Engine | None = None) -> None:
        self.opened = opened
        self._ask = ask
        self._engine = engine  # opens a second checkpoint, too

    @property
    def name(self) -> str:
        """The name of the checkpoint."""
        return self.opened.name

    @cached_property
    def context(self) -> Context:
        """The context for the sections of a report."""
        try:
            overview = self._ask("overview")
        except NotInCheckpointError:  # of a plain module, which is asked for sharing alone
            overview = None
        return Context(self.opened, overview, Setting(text=" "))  # pyright: ignore[reportArgumentType]

    def ask(self, verb: str, **parameters: Any) -> Answer:
        """Run one analysis.

        Args:
            parameters: Options by name. `other` is a second checkpoint, either opened or by name.

        Raises:
            InspectorError: If the analysis does not apply to the checkpoint; the message states the reason.
            TypeError: If there is no such option.
        """
        kind = request_of(verb)
        second = None
        if "other" in parameters:
            other = parameters["other"]
            second = other if isinstance(other, Checkpoint) else globals()["open"](other, engine=self._engine)
            parameters["other"] = second.opened.fingerprint
        request = kind(**parameters)
        return Answer(self._ask(verb, **request.parameters()), self, request, other=second)

    def __repr__(self) -> str:
        return f"Checkpoint({self.name!r})"


def open(source: str | Path, *, engine: Engine | None = None) -> Checkpoint:  # noqa: A001
    """Open a checkpoint.

    Args:
        source: A folder, archive or weight file, a demo's name, or a hub id.
        engine: Runs the work in separate processes with limits; None: the work runs in this process.

    Raises:
        CheckpointError: If it cannot be opened; the message states the reason and the next step.
    """
    reference = find_reference(str(source))
    if engine is None:
        return _here(reference, settings())
    opened = engine.open(reference).result()
    return Checkpoint(
        opened,
        lambda verb, **parameters: engine.run(opened.fingerprint, verb, called=(opened.name,), **parameters).result(),
        engine=engine,
    )


def wrap(model: Any, tokenizer: Any = None, *, name: str | None = None) -> Checkpoint:
    """Run the same analyses on a live model.

    `sharing` looks at the module in memory. All other methods read the files that the model saves
    (`save_pretrained`), in a folder that is removed with the checkpoint.

    Args:
        model: A `PreTrainedModel`, or any `torch.nn.Module` for `sharing` only.
        tokenizer: Any with `save_pretrained`; None: tokens are shown by their ids.
        name: Name to show, such as model.name_or_path; None: the name of its class. It never becomes a path.
    """
    from inspector.analyses.sharing.compute import find_sharing

    name = name or type(model).__name__
    if not hasattr(model, "save_pretrained"):
        return Checkpoint(Opened("", name, name, ()), partial(_only_sharing, find_sharing, model))
    made = Path(mkdtemp(prefix="inspector-"))
    try:
        model.save_pretrained(made / SAVED)
        if tokenizer is not None:
            tokenizer.save_pretrained(made / SAVED)
        saved = _here(CheckpointRef("path", str(made / SAVED)), settings(), name=name)
    except BaseException:
        remove_folder(made)
        raise

    def ask(verb: str, **parameters: Any) -> Any:
        return find_sharing(model) if verb == "sharing" else saved._ask(verb, **parameters)

    wrapped = Checkpoint(saved.opened, ask)
    finalize(wrapped, remove_folder, made)
    return wrapped


def _only_sharing(find: Callable[[Any], Any], model: Any, verb: str, **_: Any) -> Any:
    if verb != "sharing":
        raise NotInCheckpointError(
            f"{verb} needs a transformers model, because it reads the saved files: on a plain module, only sharing "
            "works."
        )
    return find(model)


def _here(reference: CheckpointRef, limits: Settings, *, name: str | None = None) -> Checkpoint:
    from inspector.models.checkpoint import Checkpoint as Model
    from inspector.store.opening import open_checkpoint

    with _progress("Opening") as tell:
        manifest, found = open_checkpoint(reference, settings=limits, progress=tell, restrict_paths=False)
    model = Model(manifest, settings=limits)
    if name is not None:
        model.called = (name,)
    opened = Opened(manifest.fingerprint, str(found), model.name, manifest.warnings)
    return Checkpoint(opened, partial(_answer_here, model))


def _answer_here(model: Model, verb: str, **parameters: Any) -> Any:
    with _progress(CATALOG[verb].title) as tell:
        return answer(verb, model, progress=tell, **parameters)


@contextmanager
def _progress(title: str) -> Iterator[Callable[[float | None, str], None]]:
    """Show progress by tqdm: a bar in a notebook, a line in a terminal, nothing in a pipe."""
    from tqdm.auto import tqdm

    with tqdm(total=1.0, desc=title, leave=False, disable=None, bar_format=BAR) as bar:

        def tell(fraction: float | None, text: str) -> None:
            bar.set_description_str(text)
            if fraction is not None:
                bar.update(max(fraction - bar.n, 0.0))

        yield tell


def _piece(analysis: Analysis, name: str) -> Any:
    """A piece of a room's furniture; None if the room has none."""
    module = f"{analysis.room}.{name}"
    return import_module(module) if find_spec(module) else None


def _rows(value: Any) -> list[dict[str, Any]]:
    rows = value if isinstance(value, list | tuple) else [value]
    return [to_json(row) if dataclasses.is_dataclass(row) else {"value": row} for row in rows]


def _is_table(rows: list[Any]) -> bool:
    return bool(rows) and isinstance(rows[0], dict)
