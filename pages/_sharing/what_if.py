"""A tab of the sharing page: change a copy of the model, and see which tie breaks."""

from __future__ import annotations

import streamlit as st

from inspector.analyses.sharing.result import Sharing
from inspector.analyses.what_if.request import WhatIfRequest
from inspector.analyses.what_if.result import CHANGES, WhatIf
from inspector.results.checkpoint import Opened
from inspector.text import bytes_text
from pages._ui import options, parts, session
from pages._ui.answer.rendering import PageView
from pages._ui.words import command

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
    PageView.of(result, request, name=checkpoint.name).flat()
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
