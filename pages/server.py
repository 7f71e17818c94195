"""What may this server use, what are its workers doing, and what is in its store?"""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import streamlit as st

from inspector.demo import DEMOS
from inspector.serving.engine.report import confinement_of, server_limits
from inspector.serving.storing.uploads import list_uploads
from inspector.settings import settings
from inspector.store.keeping.quota import account
from inspector.text import bytes_text, literal, plural
from pages._ui import parts, session, sign_in
from pages._ui.opening import pins

MINUTES = "YYYY-MM-DD HH:mm"
WORKERS = {
    "memory": st.column_config.NumberColumn("memory", format="bytes"),
    "processor seconds": st.column_config.NumberColumn("processor seconds", format="%.1f"),
}

asker = sign_in.asker()
mine = list_uploads(settings(), asker)


def shown(name: str) -> str:
    """A checkpoint's name, unless it is another user's."""
    known = asker.sees_all or not name or name in DEMOS or any(name == each.name for each in mine)
    return name if known else "another user's checkpoint"


parts.title("Server", "What may this server use, what are its workers doing, and what is in its store?")
engine = session.engine()
found = server_limits(settings(), confinement_of(engine))

st.header("Workers", anchor=False)
st.write(
    "Every open checkpoint has its own process. A crash or an exceeded limit ends only that process; the server and "
    "all other sessions continue."
)
running = engine.workers()
workers = [
    {
        "checkpoint": shown(worker.name) or ("spare, for the next checkpoint" if worker.confinement else "starting"),
        "state": "busy" if worker.busy else "idle",
        "memory": worker.memory_nbytes,
        "processor seconds": worker.cpu_seconds,
        "threads": worker.threads,
    }
    | ({"machine": worker.node or "this server"} if any(w.node for w in running) else {})
    for worker in running
]
parts.table(pd.DataFrame(workers), columns=WORKERS, alt="Workers, what they do and what they use")
st.button("Refresh", icon=":material/refresh:")
endings = engine.endings()
st.caption("Crashed workers, most recent first" if endings else "No worker has crashed.")
st.markdown(
    "\n".join(
        f"- {literal(ending.when)}, **{literal(shown(ending.name) or 'no checkpoint yet')}**: {literal(ending.reason)}"
        for ending in endings
    )
)

st.header("Worker sandbox", anchor=False)
if not found.restrictions:
    st.info("No worker is running: refresh in a moment.", icon=":material/info:")
for restriction in found.restrictions:
    sign = ":material/check_circle:" if restriction.enforced else ":material/warning:"
    state = "enforced here" if restriction.enforced else "**not enforced here**"
    st.markdown(f"{sign} **{restriction.name}**, {state}. {restriction.meaning}")
if found.missing:
    st.caption(f"Missing: {literal(', '.join(found.missing))}.")

st.header("Limits", anchor=False)
st.write(
    "Each limit is an environment variable of the server, or is set by the command that is named. Errors name the "
    "limit that was hit."
)
limits = pd.DataFrame([asdict(limit) for limit in found.limits])
limits["value"] = [f"{limit.value:,.0f} {limit.unit}" for limit in found.limits]
st.table(  # not st.dataframe: its sentences are read, and break into lines here
    limits.drop(columns="unit").rename(columns={"enforced_by": "enforced by"}), hide_index=True
)

st.header("Store", anchor=False)
held = account(settings())
used = f"{bytes_text(held.used_nbytes)} of {bytes_text(held.quota_nbytes)} are used."
st.progress(min(held.used_nbytes / held.quota_nbytes, 1.0), text=used)
kinds = pd.DataFrame([asdict(kind) for kind in held.kinds])
parts.table(kinds.rename(columns={"name": "what", "can_go": "removed"}), alt="What the store holds")
listed = held.uploads if asker.sees_all else mine  # when one was used, others may have done
if listed:
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
