"""DeepSeek-V3's 90,427 names: what a page sends first, what it shows of them, and what a file holds."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import AppTest

from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.sharing.request import SharingRequest
from inspector.analyses.training.request import TrainingRequest
from inspector.store.reference import CheckpointRef
from pages._ui import inputs, running, table_files
from tools.bench._sparse import SHAPES, tensors_of, write

Open = Callable[..., AppTest]
SLUGS = ("sharing", "classes", "training", "overview")  # that need no numbers
ASKED = (SharingRequest(), ClassesRequest(text=inputs.PLAIN), TrainingRequest(), OverviewRequest())  # by them
SECONDS = 600  # on a busy machine
MOST_NBYTES = 300_000  # of a page's first picture
EXPERTS = "model.layers.*.mlp.experts.*.gate_proj.weight"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each message to the browser."""
    found: list[int] = []
    enqueue = ForwardMsgQueue.enqueue

    def counted(self: ForwardMsgQueue, message, *rest) -> None:
        found.append(message.ByteSize())
        enqueue(self, message, *rest)

    monkeypatch.setattr(ForwardMsgQueue, "enqueue", counted)
    return found


def warm() -> None:
    """Have the engine open the checkpoint and answer."""
    engine = running.engine()
    opened = engine.open(CheckpointRef("path", "V3")).result(SECONDS)
    for request in ASKED:
        engine.run(opened.fingerprint, request.verb, called=(opened.name,), **request.parameters()).result(SECONDS)


def nbytes(app: AppTest, sent: list[int]) -> int:
    """What a page sends once all is known: no progress, however slow the machine is."""
    sent.clear()
    app.run()
    assert not app.exception
    assert not app.error
    return sum(sent)


def lines(app: AppTest) -> pd.DataFrame:
    """The table of names."""
    (found,) = (each.value for each in app.dataframe if {"name", "dtype"} <= {*each.value})
    return found


def test_a_page_sends_little_and_opens_a_level_at_a_time(
    open_app: Open, roots: Path, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(roots / "V3", SHAPES["V3"])
    link = {"checkpoint": "path:V3", "agreed": "path:V3"}
    warm()
    files: list[pd.DataFrame] = []
    monkeypatch.setattr(table_files, "offer", lambda frame, **_: files.append(frame))
    sizes = {slug: nbytes(open_app(slug, **link), sent) for slug in SLUGS}
    assert max(sizes.values()) < MOST_NBYTES, sizes
    app = open_app(**link)
    stored = [name for name, *_ in tensors_of(SHAPES["V3"].config)]
    every = next(frame for frame in files if len(frame) == len(stored))
    assert sorted(every["name"]) == sorted(stored)
    (read,) = (pd.read_parquet(io.BytesIO(table_files._parquet(every))),)
    assert read["name"].tolist() == every["name"].tolist()
    table = lines(app)
    assert sum(table["count"]) == len(stored) == SHAPES["V3"].tensors
    label = EXPERTS.replace("*", "[3–60]", 1).replace("*", "[0–255]")
    assert {(row["name"], row["count"], row["shape"]) for row in table.to_dict("records")} >= {
        (label, 58 * 256, "2,048 × 7,168")
    }
    app.text_input(key="find").set_value(EXPERTS).run()
    table = lines(app)
    assert table["name"].tolist() == [
        f"model.layers.{layer}.mlp.experts.[0–255].gate_proj.weight" for layer in range(3, 61)
    ]
    assert set(table["count"]) == {256}
    sent.clear()
    app.text_input(key="find").set_value(EXPERTS.replace("*", "7", 1)).run()
    assert sum(sent) < MOST_NBYTES
    assert lines(app)["name"].tolist() == [
        f"model.layers.7.mlp.experts.{expert}.gate_proj.weight" for expert in range(256)
    ]
    (back,) = (each for each in app.button if each.label == "All names")
    back.click().run()
    assert sum(lines(app)["count"]) == len(stored)
