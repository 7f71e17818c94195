"""What lives between reruns: the engine, the open checkpoint, and work under way.

The only file, beside `following` and `once`, that keeps anything. Results are kept by the engine, by the checkpoint's
fingerprint and the parameters; the address bar keeps the checkpoint and each page's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import streamlit as st

from inspector.analyses.overview.request import OverviewRequest
from inspector.catalog import CATALOG
from inspector.errors import (
    STOPPED,
    CancelledError,
    CheckpointError,
    InspectorError,
    NotInCheckpointError,
    WeightsOnHubError,
)
from inspector.plotting.theme import Theme, get_theme
from inspector.request import Request, named_field
from inspector.results.checkpoint import Opened
from inspector.serving.engine.protocol import Job
from inspector.serving.storing.origins.outline import NOT_COMING
from inspector.serving.storing.uploads import find_upload, under_own_name
from inspector.settings import settings
from inspector.store import pairs
from inspector.store.reference import CheckpointRef, origin_of
from inspector.text import literal
from pages._ui import following, once, sign_in
from pages._ui.opening import agreeing, fetching
from pages._ui.running import engine

PREVIEW = "preview"  # key of what there is of an upload that is still arriving
REFERENCE = "checkpoint"  # key of the open checkpoint's reference, and its name in the link
QUICK_SECONDS = 0.3  # a wait that is shown to nobody
POLL_SECONDS = 0.15
SO_FAR = "so_far"  # begins the key of what is known of a result
VISITED = "visited"
KEPT = 8  # of the largest things that pages make of results
PAPERS = 64  # charts of which it is known what is otherwise on paper

T = TypeVar("T")
Beside = Opened | tuple[Opened, ...] | None  # other checkpoints, in the order of the request's options


def theme() -> Theme:
    """Colors of figures that go with the page's."""
    return get_theme(st.context.theme.type)


def is_phone() -> bool:
    """Whether the browser says that it is a phone's: it says so from the first request on, and never how wide it is."""
    return "Mobi" in (st.context.headers.get("User-Agent") or "")


def opened() -> Opened:
    """The open checkpoint; without one the page ends here."""
    checkpoint = st.session_state.get("opened")
    if checkpoint is None:
        st.stop()
    return checkpoint


def open_checkpoint(reference: str) -> Opened | None:
    """Open a checkpoint and make it the open one; where that fails, the one before stays.

    Returns:
        None if it was refused or stopped, and the page says why.
    """
    try:
        checkpoint = reach(reference)
    except InspectorError as error:
        st.session_state["refusal"] = str(error)
        st.session_state["refused"] = reference, str(error)
        return None
    st.session_state["opened"] = checkpoint
    agreeing.agree(checkpoint.reference)  # a link may have another name for it
    return checkpoint


def reach(reference: str) -> Opened:
    """Have a checkpoint opened by the engine, and wait for it.

    Raises:
        InspectorError: If it is refused or stopped.
    """
    if st.session_state.get("stopped") == ("open", reference):
        resume()  # the next time
        fetching.forget()
        raise CancelledError(STOPPED)
    named = CheckpointRef.parse(reference)
    if len(named.origin.parts) > 1:
        return _reach_both(*named.origin.parts)
    parsed = find_upload(named, settings(), sign_in.asker())
    preview = st.session_state.get(PREVIEW)
    if parsed.origin.outline and (preview is None or preview.reference != reference):
        raise CheckpointError(NOT_COMING)
    found = wait_for_opening(engine().open(parsed), reference)
    return _whole(found, reference) if fetching.is_wanted(found) else found


def _whole(found: Opened, reference: str) -> Opened:
    """The same with the weights that are still on the hub, if any are."""
    if not found.on_hub_nbytes:
        return found
    job = engine().open(CheckpointRef.parse(found.reference), whole=True)
    return replace(wait_for_opening(job, reference), name=found.name)


def _reach_both(base: str, adapter: str) -> Opened:
    """Have a base and an adapter opened, each as if alone, and see that the one fits the other."""
    opened = [_whole(reach(each), each) for each in (base, adapter)]
    if any(map(is_preview, opened)):
        raise CheckpointError(NOT_COMING)
    both = pairs.joined(*opened)
    wait(begin(OverviewRequest(), of=both), stopped_key=("open", both.reference))
    return both


def wait_for_opening(job: Job[Opened], reference: str) -> Opened:
    """Wait for a checkpoint; its name is the one that its user knows.

    Raises:
        InspectorError: If it is refused or stopped.
    """
    return under_own_name(wait(job, stopped_key=("open", reference)), settings(), sign_in.asker())


def is_preview(checkpoint: Opened) -> bool:
    """Whether a checkpoint's weights are still being uploaded: nobody else can open it."""
    return origin_of(checkpoint.reference).outline


def want(reference: str) -> None:
    """Have a checkpoint opened in this run or the next; an interrupted run takes it up again."""
    agreeing.agree(reference)
    st.session_state["wanted"] = reference
    st.session_state.pop("refusal", None)


def shown() -> str | None:
    """What is open, or will be when this run has opened it."""
    checkpoint: Opened | None = st.session_state.get("opened")
    return st.session_state.get("wanted") or (checkpoint.reference if checkpoint else None)


def fetch(reference: str) -> None:
    """Have the weights of a checkpoint that are still on the hub, by the next run."""
    if opened().reference == reference:
        want(reference)


def open_beside(reference: str) -> Opened | None:
    """Open a second checkpoint, to compare with; None where the page now says why it is not open."""
    if agreeing.must_ask(reference):
        agreeing.ask(reference)
        return None
    try:
        found = reach(reference)
        if found.adapter:
            raise CheckpointError(pairs.SECOND.format(name=found.name))
        return found
    except InspectorError as error:
        st.error(literal(error), icon=":material/error:")
    return None


def ask(
    request: Request, *, of: Opened | None = None, beside: Beside = None, meanwhile: Callable[[Any], None] | None = None
) -> Any:
    """Ask the open checkpoint, or the one that is compared with it.

    Args:
        request: Names the analysis, and has its parameters.
        of: Which is asked; None: the open one.
        beside: The other checkpoints of an analysis of several, which the request names.
        meanwhile: Draws what is known of the result while the rest is computed.

    Returns:
        The analysis' result, or None where the page now says why there is none.
    """
    question = _question(request, of, beside)
    if st.session_state.get("stopped") == question:
        st.info("Stopped.", icon=":material/stop_circle:")
        st.button("Run again", key=f"again {request.verb}", on_click=resume)
        return None
    try:
        job = begin(request, of=of, beside=beside)
        following.follow(job, request.verb, st.session_state)
        return wait(job, stopped_key=question, meanwhile=meanwhile)
    except CancelledError as error:
        st.info(literal(error), icon=":material/stop_circle:")
    except WeightsOnHubError as error:
        others = (beside,) if isinstance(beside, Opened) else beside or ()
        fetching.ask(str(error), (of or opened(), *others), request.verb, fetch)
    except NotInCheckpointError as error:
        st.info(literal(error), icon=":material/info:")
    except InspectorError as error:
        st.error(literal(named_field(error, type(request))), icon=":material/error:")
    return None


def run(request: Request, *, beside: Beside = None, meanwhile: Callable[[Any], None] | None = None) -> Any:
    """Ask the open checkpoint, as `ask` does, for what the whole page stands on: without it the page ends."""
    result = ask(request, beside=beside, meanwhile=meanwhile)
    if result is None:
        st.stop()
    return result


def ask_if_ready(request: Request, *, of: Opened | None = None) -> Any:
    """Ask as `ask` does, but wait for nothing: the work goes on while the page is drawn.

    Returns:
        The analysis' result; None where it is not there at once, or there is none: `ask` then
        waits for it, or says why.
    """
    if st.session_state.get("stopped") == _question(request, of):
        return None
    try:
        return begin(request, of=of).result(QUICK_SECONDS)
    except (TimeoutError, InspectorError):
        return None


def at_hand(request: Request) -> Any:
    """The answer to what was asked of the open checkpoint before; None where it is not there: nothing is asked."""
    job = once.settled(_question(request, None), st.session_state, engine())
    return job.result(0) if job else None


def ask_optional(request: Request, *, of: Opened | None = None, beside: Beside = None) -> Any:
    """Ask for what is quick, and what the page can do without; the arguments are those of `ask`.

    Returns:
        The analysis' result; None where there is none, which another question explains.
    """
    try:
        return wait(begin(request, of=of, beside=beside), stopped_key=None)
    except InspectorError:
        return None


def begin(request: Request, *, of: Opened | None = None, beside: Beside = None) -> Job[Any]:
    """Have a question answered, and wait for nothing; every question of a page goes through here."""
    return once.job_of(_question(request, of, beside), st.session_state, engine())


def _question(request: Request, of: Opened | None, beside: Beside = None) -> once.PageQuestion:
    checkpoint = of or opened()
    others = (beside,) if isinstance(beside, Opened) else beside or ()
    return once.PageQuestion(checkpoint.fingerprint, request, (*checkpoint.names, *(each.name for each in others)))


def kept(key: tuple[str, ...], make: Callable[[], T]) -> T:
    """Make something of a result once, and find it again when the script runs anew.

    Args:
        key: Names it by content: fingerprint, verb, parameters and what is made.
    """
    return _kept(key, make)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _kept(key: tuple[str, ...], _make: Callable[[], Any]) -> Any:
    return _make()


@st.cache_resource(max_entries=PAPERS, show_spinner=False)
def on_paper(digest: str, _make: Callable[[], T]) -> T:
    """Find what a chart has otherwise on paper, once.

    Args:
        digest: Of the chart as it is shown.
    """
    return _make()


def visit(slug: str) -> None:
    """Remember that a page was looked at."""
    st.session_state.setdefault(VISITED, {})[slug] = True


def visited() -> tuple[str, ...]:
    """Pages that were looked at; none while that is only the first, which opens by itself."""
    pages = tuple(st.session_state.get(VISITED, ()))
    return () if pages == (next(iter(CATALOG.values())).slug,) else pages


def wait(job: Job[Any], *, stopped_key: Any, meanwhile: Callable[[Any], None] | None = None) -> Any:
    """Wait for a job, showing what it does and a way to stop it, and below what is known of its result.

    Every round draws, and so lets Streamlit leave when the person has changed something: the job
    goes on, and asking again finds it, until another question takes its place.
    """
    engine().job(job.id)  # this tab waits for it as well now
    around = st.container()  # there at every run, so that waiting moves nothing that follows
    try:
        return job.result(timeout=QUICK_SECONDS)
    except TimeoutError:
        place = around.empty()
    with place.container():
        with st.container(horizontal=True, vertical_alignment="center"):
            bar = st.progress(0.0, text=literal(job.progress.text))
            st.button("Cancel", key=f"stop {job.id}", on_click=_stop, args=(job, stopped_key))
        below, shown = st.container(key=f"{SO_FAR} {job.id}").empty(), None
    while True:
        try:
            result = job.result(timeout=POLL_SECONDS)
        except TimeoutError:
            progress = job.progress
            share = min(max(progress.fraction or 0.0, 0.0), 1.0)
            bar.progress(share, text=literal(progress.text))
            partial = job.partial if meanwhile else None
            if meanwhile and partial is not None and partial is not shown:
                shown = partial
                with below.container():
                    meanwhile(partial)
        except InspectorError:
            place.empty()
            raise
        else:
            place.empty()
            return result


def _stop(job: Job[Any], stopped_key: Any) -> None:
    engine()  # this tab asks
    job.cancel()
    st.session_state["stopped"] = stopped_key


def resume() -> None:
    """Forget that something was stopped: it is asked again."""
    st.session_state.pop("stopped", None)
