"""A tab of the sharing page: change a copy of the model, and see which tie breaks."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.sharing.result import Sharing
from inspector.analyses.what_if import words
from inspector.analyses.what_if.request import WhatIfRequest
from inspector.analyses.what_if.result import CHANGES, Edge, Way, WhatIf
from inspector.results.checkpoint import Opened
from inspector.text import bytes_text, in_code, literal, plural
from pages._ui import options, parts, session, table_files
from pages._ui.words import command

# The word says it; symbol and color repeat it.
LOOKS = {
    "one tensor": ("link", "green"),
    "equal copies": ("content_copy", "orange"),
    "different numbers": ("link_off", "red"),
    "another dtype": ("link_off", "red"),
    "another shape": ("link_off", "red"),
    "random": ("casino", "red"),
}
QUICK_NBYTES = 150_000_000  # of a model: up to here nobody needs to be asked first


@st.fragment
def draw(checkpoint: Opened, sharing: Sharing) -> None:
    """Ask what to change, do it to a copy in memory, and show before and after."""
    st.caption("The change is made to a copy in memory and measured there. The checkpoint itself stays unchanged.")
    change = options.ask(WhatIfRequest, "change", segmented=True)
    st.markdown(CHANGES[change])
    request = _asked(change)
    if sharing.unique_nbytes > QUICK_NBYTES and not _agreed(checkpoint, sharing):
        return
    result: WhatIf | None = session.ask(request)
    if result is None:
        return
    parts.warnings(result.warnings)
    if not result.ways:
        st.info(literal(result.answer), icon=":material/info:")
    if result.original.edges:
        for way in (result.original, *result.ways):
            _draw_way(result, way)
        with st.expander("As a table"):
            parts.table(result.table, alt="Every pair of names after every change")
        table_files.offer(result.table, name=f"{checkpoint.name}-what-if-{change}")
    st.code(command(request.verb, checkpoint, *request.to_argv()), language=None, wrap_lines=True)


def _asked(change: str) -> WhatIfRequest:
    text = options.ask(WhatIfRequest, "text")
    with st.expander("Training", icon=":material/tune:"), st.container(horizontal=True):
        steps = options.ask(WhatIfRequest, "steps")
        rate = options.ask(WhatIfRequest, "learning_rate", format="%g")
        optimizer = options.ask(WhatIfRequest, "optimizer")
    return options.make(WhatIfRequest, change=change, text=text, steps=steps, learning_rate=rate, optimizer=optimizer)


def _agreed(checkpoint: Opened, sharing: Sharing) -> bool:
    """Let a large model be copied only when somebody wants it."""
    key = f"copies of {checkpoint.fingerprint}"
    if st.session_state.get(key):
        return True
    st.caption(
        f"The model takes {bytes_text(sharing.unique_nbytes)}: copying, saving and training it takes several times as "
        "much memory and some time."
    )
    if st.button("Run", icon=":material/play_arrow:", key="what if"):
        st.session_state[key] = True
        return True
    return False


def _draw_way(result: WhatIf, way: Way) -> None:
    changed = way is not result.original
    with st.container(border=True):
        st.markdown(f"**{literal(way.title)}**{'' if changed else ', for comparison'}")
        if changed:
            st.code(way.code, language="python", wrap_lines=True)
            st.markdown(literal(way.answer))
        for edge in way.edges:
            st.markdown(_picture(result, edge, changed=changed))
        for line in words.sizes(result, way):
            st.caption(literal(line))


def _picture(result: WhatIf, edge: Edge, *, changed: bool) -> str:
    """What becomes of two names, step by step, and how far apart they end."""
    steps = f"after {plural(result.steps, 'step')}"
    stations = {
        "before": edge.before,
        "after": edge.after if changed else None,
        "saved and loaded": edge.reloaded,
        steps: edge.trained,
        f"{steps}, saved and loaded": edge.trained_reloaded,
    }
    path = " → ".join(f"{name} {_badge(state)}" for name, state in stations.items() if state)
    return f"{in_code(edge.name)} ↔ {in_code(edge.source)}  \n{path}{literal(words.drift(edge))}"


def _badge(relation: str) -> str:
    symbol, color = LOOKS[relation]
    return f":{color}-badge[:material/{symbol}: {relation}]"
