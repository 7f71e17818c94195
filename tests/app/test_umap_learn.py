"""The Embeddings page with umap-learn's map beside ours, with the real engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from inspector.analyses.vocabulary_map.request import ProjectRequest
from inspector.errors import CancelledError
from inspector.serving.engine.protocol import Job
from pages._ui import session
from tests.app.looking import said
from tests.families import random_model, save_checkpoint

Open = Callable[..., AppTest]
SECONDS = 600  # umap-learn is compiled first, on a busy machine


@pytest.mark.compiling
def test_both_maps_are_made_and_judged_side_by_side(open_app: Open, roots: Path) -> None:
    save_checkpoint(random_model("BertModel"), roots / "small")
    small = f"path:{roots / 'small'}"
    app = open_app(
        "embeddings", agreed=small, checkpoint=small, method="umap", neighbors="5",
        implementation="umap-learn", min_dist="0.25", stability="true", timeout=SECONDS,
    )  # fmt: skip
    assert not app.exception
    assert not app.error
    (table,) = (each.value for each in app.dataframe if "implementation" in each.value.columns)
    assert table["implementation"].tolist() == ["inspector", "umap-learn"]
    assert table["judged rows"].tolist() == [60, 60]
    assert table["trust"].between(0, 1).all()
    assert table["stability"].between(0, 1).all()
    assert "a minimum distance of 0 and a spread of 1" in said(app)
    shown = [json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.json]
    (state,) = (each for each in shown if "digest" in each)
    assert state["title"] == "umap-learn of small, 2-D"
    line = app.code[-1].value
    assert "--method=umap --neighbours=5 --stability --implementation=umap-learn" in line
    assert "--min-dist=0.25" in line


def test_a_distance_beyond_the_spread_is_one_sentence(open_app: Open) -> None:
    app = open_app("embeddings", method="umap", implementation="umap-learn", min_dist="2")
    (error,) = app.error
    assert "Minimum distance must be at most the spread" in error.value


def test_a_map_begins_although_its_first_step_was_stopped_before(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait, waited = session.wait, []

    def stop(job: Job[Any], *, stopped_key: Any, **more: Any) -> Any:
        request = getattr(stopped_key, "request", None)
        if not isinstance(request, ProjectRequest) or request.method != "umap":
            return wait(job, stopped_key=stopped_key, **more)
        waited.append(request)
        job.cancel()
        st.session_state["stopped"] = stopped_key
        raise CancelledError("Stopped.")

    monkeypatch.setattr(session, "wait", stop)
    app = open_app("embeddings", method="umap", seed="5")
    assert len(waited) == 1
    assert "Run again" in [each.label for each in app.run().button]
    assert len(waited) == 1
    app.segmented_control(key="implementation").set_value("umap-learn").run()
    assert len(waited) == 2
