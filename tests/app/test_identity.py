"""Which identity the overview shows, and the SHA-256 that is computed where somebody asks for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages._overview import identity
from pages._ui import session
from tests.app.looking import button, said
from tools.bench._sparse import write_shard

Open = Callable[..., AppTest]


@pytest.fixture
def large(roots: Path) -> Path:
    """A folder that is too large to be read when it is opened."""
    folder = roots / "large"
    folder.mkdir()
    write_shard(folder / "model.safetensors", [("x.weight", "BF16", (60, 1_000_000))])
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    return folder


def codes(app: AppTest) -> list[str]:
    return [each.value for each in app.code]


def test_a_demo_is_known_by_its_content(open_app: Open) -> None:
    app = open_app("overview", tab="Files")
    assert "the SHA-256 of the files' names and contents" in said(app)
    assert not [each for each in app.button if each.label == "Compute the SHA-256"]


def test_the_hash_of_a_large_folder_is_computed_in_the_background(open_app: Open, large: Path) -> None:
    reference = f"path:{large}"
    app = open_app("overview", tab="Files", agreed=reference, checkpoint=reference)
    assert not app.exception
    assert "It is not a hash of the content" in said(app)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in large.iterdir()}
    lines = "".join(f"{name}\n{digest}\n" for name, digest in sorted(digests.items()))
    content = hashlib.sha256(lines.encode()).hexdigest()
    assert content not in codes(app)
    button(app, "Compute the SHA-256").click().run()
    assert not app.exception
    engine = session.engine()
    opened = app.session_state["opened"]
    engine.run(opened.fingerprint, "overview", called=(opened.name,), hash_files=True).result(60)
    app.run()
    assert content in codes(app)
    listed = next(each for each in codes(app) if digests["model.safetensors"] in each)
    assert set(listed.splitlines()) == {f"{digest}  {name}" for name, digest in digests.items()}


def test_hashing_can_be_stopped(open_app: Open, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        status = "running"
        cancelled = False

        class progress:  # noqa: N801  # as a job has it
            fraction, text = 0.5, "Hashing: 60.0 MB of 120.0 MB"

        def result(self, timeout: float) -> None:
            raise TimeoutError

        def cancel(self) -> None:
            self.cancelled = True

    job = Endless()
    reference = f"path:{large}"
    app = open_app("overview", tab="Files", agreed=reference, checkpoint=reference)
    begin = session.begin
    monkeypatch.setattr(session, "begin", lambda asked, **of: job if asked == identity.REQUEST else begin(asked, **of))
    button(app, "Compute the SHA-256").click().run()
    assert "Cancel" in [each.label for each in app.button]
    button(app, "Cancel").click().run()
    assert job.cancelled
    assert "Compute the SHA-256" in [each.label for each in app.button]
