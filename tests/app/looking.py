"""What the page tests look for."""

from __future__ import annotations

import json
import re

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button


def said(app: AppTest) -> str:
    """All the text of a page, as a reader sees it."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", marked(app))


def marked(app: AppTest) -> str:
    """All the text of a page, as Markdown."""
    kinds = ("markdown", "caption", "info", "error", "warning", "success", "header", "title")
    return "\n".join(element.value for kind in kinds for element in getattr(app, kind))


def titles(app: AppTest) -> str:
    """The titles of a page's figures."""
    return "\n".join(json.loads(chart.proto.spec)["layout"]["title"]["text"] for chart in app.get("plotly_chart"))


def metrics(app: AppTest) -> dict[str, str]:
    """Label -> value."""
    return {metric.label: metric.value for metric in app.metric}


def button(app: AppTest, label: str) -> Button:
    """The one button with a label."""
    (found,) = (each for each in app.button if each.label == label)
    return found


def facts(app: AppTest) -> dict[str, str]:
    """Property -> value, of the tables of properties."""
    rows = (re.findall(r"^\| (.+?) \| \*\*(.*?)\*\* \|$", each.value, re.MULTILINE) for each in app.markdown)
    plain = re.compile(r"\\([!-/:-@\[-`{-~])")
    return {plain.sub(r"\1", name): plain.sub(r"\1", value) for found in rows for name, value in found}
