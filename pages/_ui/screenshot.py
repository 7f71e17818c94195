"""The screenshot view, by `screenshot=1` in a link: no sidebar, no toolbars, no controls."""

from __future__ import annotations

import streamlit as st

NAME = "screenshot"  # in the address
LEAVE = "leave_screenshot"
# What is for hands alone; figures, tables and texts stay.
CONTROLS = (
    "stButton",
    "stButtonGroup",
    "stCheckbox",
    "stDownloadButton",
    "stFileUploader",
    "stMultiSelect",
    "stNumberInput",
    "stPageLink",
    "stPopover",
    "stRadio",
    "stSelectbox",
    "stSlider",
    "stTextArea",
    "stTextInput",
)
AROUND = ("stSidebar", "stHeader", "stToolbar", "stElementToolbar", "stExpandSidebarButton")
HIDDEN = ", ".join(f"[data-testid={name}]" for name in CONTROLS)
FIELDS = ("stSelectbox", "stNumberInput")
OPTIONS = ", ".join(f"> [data-testid=stExpander] [data-testid={name}]" for name in FIELDS)
# The container of what is hidden goes with it, or its gap would stay.
STYLE = f"""<style>
{", ".join(f"[data-testid={name}]" for name in AROUND)}, {HIDDEN},
[data-testid=stElementContainer]:has({HIDDEN}), [data-testid=stLayoutWrapper]:has({OPTIONS}),
[data-testid=stMetric] [data-testid=stTooltipIcon],
[class*="st-key-files"], .modebar-container {{display: none !important}}
.st-key-{LEAVE}, .st-key-{LEAVE} [data-testid=stButton],
.st-key-{LEAVE} [data-testid=stElementContainer] {{display: block !important}}
.stMainBlockContainer {{padding-top: 1.5rem}}
.stMainBlockContainer > div {{overflow: visible}}
@media print {{ .st-key-{LEAVE} {{display: none !important}} }}
</style>"""


def wanted() -> bool:
    """Whether the address asks for it."""
    return st.query_params.get(NAME) == "1"


def draw() -> None:
    """Hide what is for hands where the address asks for it, and offer the way back."""
    if not wanted():
        return
    with st.container(key=LEAVE):
        st.html(STYLE)
        st.button("Back to the controls", type="tertiary", icon=":material/arrow_back:", on_click=_leave)


def offer() -> None:
    """Offer the view of this page for a picture of it."""
    if not wanted():
        st.button(
            "Screenshot view",
            type="tertiary",
            icon=":material/photo_camera:",
            on_click=_enter,
            key="enter_screenshot",
            help="Shows this page without sidebar and controls. The URL includes this setting.",
        )


def _enter() -> None:
    st.query_params[NAME] = "1"


def _leave() -> None:
    del st.query_params[NAME]
