"""The page about the server itself: its workers, what they are kept from, limits and store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS
from inspector.serving.storing.registry import delete_checkpoint, write_upload
from inspector.serving.storing.room import reserve_upload
from inspector.settings import settings
from inspector.store.keeping import quota
from inspector.store.keeping.quota import account
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints
from pages._ui import session
from tests.app.looking import button, said

Open = Callable[..., AppTest]


def busy_with(name: str) -> None:
    """Have a worker hold a demo: what other tests asked is known, and needs none."""
    engine = session.engine()
    opened = engine.open(CheckpointRef.parse(name)).result()
    engine.run(opened.fingerprint, "tokenize", texts=[uuid.uuid4().hex]).result()


def test_the_page_shows_workers_limits_and_what_is_enforced(open_app: Open) -> None:
    open_app("overview")
    busy_with("demo-bert")
    app = open_app("server")
    assert not app.exception
    assert app.title[0].value == "Server"
    stored = open_app("server", tab="Store")
    workers, limits, kinds = (
        next(each.value for each in (*shown.dataframe, *shown.table) if column in each.value.columns)
        for shown, column in ((app, "threads"), (app, "setting"), (stored, "entries"))
    )
    status = {worker.name: worker for worker in session.engine().workers()}
    row = workers.set_index("checkpoint").loc["demo-bert"]
    assert row["state"] == "idle"
    assert row["memory"] > 10_000_000
    assert row["processor seconds"] > 0
    assert status["demo-bert"].confinement is not None
    values = dict(zip(limits["setting"] + limits["name"], limits["value"], strict=True))
    assert values["INSPECTOR_WORKER_MBWorker memory"] == (f"{settings().worker_nbytes / 1e6:,.0f} MB")
    assert "**No network**, enforced here." in said(app)
    assert sum(kinds["nbytes"].tolist()) == account(settings()).used_nbytes
    assert str(settings().home) not in said(app)


def test_the_page_says_what_ended_a_worker(open_app: Open) -> None:
    open_app("overview", checkpoint="demo-gpt2")
    engine = session.engine()
    busy_with("demo-gpt2")
    (pid,) = (worker.pid for worker in engine.workers() if worker.name == "demo-gpt2")
    os.kill(pid, signal.SIGKILL)
    while not engine.endings():
        time.sleep(0.01)
    app = open_app("server", checkpoint="demo-gpt2")
    (ending, *_) = engine.endings()
    assert ending.name == "demo-gpt2"
    assert "was killed (SIGKILL)" in ending.reason
    assert "**demo-gpt2**: The worker process was killed (SIGKILL)" in said(app)
    assert button(app, "Refresh")


def test_the_page_says_what_the_shared_store_lacks(open_app: Open, monkeypatch) -> None:
    lacking = replace(account(settings()), warnings=("Not yet in the shared store: 2 uploads.",))
    monkeypatch.setattr(quota, "account", lambda settings: lacking)
    assert [each.value for each in open_app("server").warning] == ["Not yet in the shared store\\: 2 uploads\\."]


def test_an_upload_is_listed_and_pinned(open_app: Open) -> None:
    upload, folder = reserve_upload(0, settings())
    for path in DEMOS["demo-gpt2"].folder.iterdir():
        write_upload(folder, f"mine/{path.name}", path.read_bytes())
    opened = session.engine().open(session.CheckpointRef("incoming", upload)).result(120)
    app = open_app("server", tab="Store")
    uploads = next(each.value for each in app.dataframe if "pinned" in each.value.columns)
    assert not uploads.set_index("name")["pinned"].to_dict()["mine"]
    app.selectbox(key="pinned upload").set_value(opened.fingerprint).run()
    app.toggle(key=f"pin {opened.fingerprint} page").set_value(True).run()
    assert not app.exception
    pinned = {each.fingerprint: each.pinned for each in list_checkpoints(settings())}
    assert pinned.pop(opened.fingerprint)
    assert not any(pinned.values())
    delete_checkpoint(opened.fingerprint, settings=settings())
    session.engine().forget(opened.fingerprint)


def test_the_command_line_says_the_same() -> None:
    found = {
        verb: json.loads(
            subprocess.run(
                [sys.executable, "-m", "inspector", verb, "--json"],
                capture_output=True, text=True, check=True,
            ).stdout
        )
        for verb in ("limits", "store")
    }  # fmt: skip
    assert found["store"]["quota_nbytes"] == settings().store_nbytes
    assert found["store"]["used_nbytes"] == sum(kind["nbytes"] for kind in found["store"]["kinds"])
    assert found["limits"]["missing"] == []
    assert [each["enforced"] for each in found["limits"]["restrictions"]] == [True] * 3
    seconds = {each["setting"]: each["value"] for each in found["limits"]["limits"]}
    assert seconds["INSPECTOR_SECONDS"] == settings().request_seconds
