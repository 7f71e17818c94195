"""What the page about the server shows beside its workers, and in its tabs."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import streamlit as st

from inspector.demo import BUNDLED
from inspector.results.limits import ServerLimits
from inspector.results.store import StoreAccount
from inspector.serving.engine.protocol import Ending, Engine
from inspector.serving.notice import MOST_CHARACTERS, Notice, drain, notice, show
from inspector.serving.storing.uploads import list_uploads
from inspector.settings import settings
from inspector.text import bytes_text, literal, plural
from pages._ui import parts, sign_in
from pages._ui.opening import pins

MINUTES = "YYYY-MM-DD HH:mm"
WORKERS = {
    "memory": st.column_config.NumberColumn("memory", format="bytes"),
    "processor seconds": st.column_config.NumberColumn("processor seconds", format="%.1f"),
}


def draw_workers(engine: Engine) -> None:
    """List the workers, and say what ended the last one that crashed."""
    st.caption(
        "Every open checkpoint has its own process. A crash or an exceeded limit ends only that process; the server "
        "and all other sessions continue."
    )
    running = engine.workers()
    workers = [
        {
            "checkpoint": _shown(worker.name)
            or ("spare, for the next checkpoint" if worker.confinement else "starting"),
            "state": "busy" if worker.busy else "idle",
            "memory": worker.memory_nbytes,
            "processor seconds": worker.cpu_seconds,
            "threads": worker.threads,
        }
        | ({"machine": worker.node or "this server"} if any(w.node for w in running) else {})
        for worker in running
    ]
    parts.table(pd.DataFrame(workers), columns=WORKERS, alt="Workers, what they do and what they use")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Refresh", icon=":material/refresh:")
        if endings := engine.endings():
            st.markdown(f":material/warning: {plural(len(endings), 'crash', 'crashes')}. Last: {_ending(endings[0])}")
        else:
            st.caption("No worker has crashed.")


def draw_administration() -> None:
    """Let an administrator tell everybody something, and have the server take no new work before a restart."""
    name = sign_in.administrator()
    if not name:
        return
    shown = notice()
    told = shown != Notice()  # the banner above moves this, which folds it
    st.session_state["message to all"], st.session_state["take no new work"] = shown.message, shown.draining
    with st.expander("Administration", expanded=told, icon=":material/admin_panel_settings:"):
        st.text_input(
            "Message to all users",
            key="message to all",
            max_chars=MOST_CHARACTERS,
            placeholder="Shown on top of every page",
            on_change=lambda: show(st.session_state["message to all"], name),
        )
        st.toggle(
            "Take no new work",
            key="take no new work",
            help="Before a restart: what is under way ends, what is known is still answered, and the ready address "
            "sends load balancers elsewhere. Only for this server, until it stops.",
            on_change=lambda: drain(st.session_state["take no new work"], name),
        )


def draw_use(held: StoreAccount) -> None:
    """Say how full the store is."""
    used = f"Store: {bytes_text(held.used_nbytes)} of {bytes_text(held.quota_nbytes)} are used."
    st.progress(min(held.used_nbytes / held.quota_nbytes, 1.0), text=used)
    parts.warnings(held.warnings)


def draw_sandbox(found: ServerLimits) -> None:
    """Say what workers may not do, and whether this system enforces it."""
    st.header("Worker sandbox", anchor=False)
    if not found.restrictions:
        st.info("No worker is running: refresh in a moment.", icon=":material/info:")
    for restriction in found.restrictions:
        sign = ":material/check_circle:" if restriction.enforced else ":material/warning:"
        state = "enforced here" if restriction.enforced else "**not enforced here**"
        st.markdown(f"{sign} **{restriction.name}**, {state}. {restriction.meaning}")
    if found.missing:
        st.caption(f"Missing: {literal(', '.join(found.missing))}.")


def draw_limits(found: ServerLimits) -> None:
    """List the limits with the settings that change them."""
    st.write(
        "Each limit is an environment variable of the server, or is set by the command that is named. Errors name the "
        "limit that was hit."
    )
    limits = pd.DataFrame([asdict(limit) for limit in found.limits])
    limits["value"] = [f"{limit.value:,.0f} {limit.unit}" for limit in found.limits]
    st.table(  # not st.dataframe: its sentences are read, and break into lines here
        limits.drop(columns="unit").rename(columns={"enforced_by": "enforced by"}), hide_index=True
    )


def draw_store(held: StoreAccount) -> None:
    """List what the store holds, and the uploads, which can be pinned."""
    kinds = pd.DataFrame([asdict(kind) for kind in held.kinds])
    parts.table(kinds.rename(columns={"name": "what", "can_go": "removed"}), alt="What the store holds")
    asker = sign_in.asker()
    listed = held.uploads if asker.sees_all else list_uploads(settings(), asker)  # others may have used one
    if not listed:
        return
    st.caption(f"{plural(len(listed), 'upload')}, {'by last use' if asker.sees_all else 'newest first'}")
    uploads = pd.DataFrame([asdict(upload) for upload in listed])
    for column in uploads.columns.intersection(["created", "last_used"]):
        uploads[column] = pd.to_datetime(uploads[column])
    parts.table(
        uploads.drop(columns="fingerprint"),
        columns={
            "created": st.column_config.DatetimeColumn(format=MINUTES),
            "last_used": st.column_config.DatetimeColumn("last used", format=MINUTES),
        },
        alt="Uploads of the store",
    )
    names = {each.fingerprint: f"{each.name} ({each.fingerprint[:8]})" for each in listed}
    chosen = st.selectbox("Upload", list(names), format_func=names.__getitem__, key="pinned upload")
    pins.draw(chosen, place="page")


def draw_endings(engine: Engine) -> None:
    """List what ended workers, the most recent first."""
    endings = engine.endings()
    st.markdown("\n".join(f"- {_ending(ending)}" for ending in endings) or "No worker has crashed.")


def _shown(name: str) -> str:
    """A checkpoint's name, unless it is another user's."""
    asker = sign_in.asker()
    if asker.sees_all or not name:
        return name
    own = {*BUNDLED, *(each.name for each in list_uploads(settings(), asker))}
    if name in own or own.issuperset(name.split(" + ")):  # a base and its adapter
        return name
    return "another user's checkpoint"


def _ending(ending: Ending) -> str:
    return (
        f"{literal(ending.when)}, **{literal(_shown(ending.name) or 'no checkpoint yet')}**: {literal(ending.reason)}"
    )
