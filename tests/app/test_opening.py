"""Opening, refusing, naming and deleting checkpoints through the sidebar."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import streamlit as st
from safetensors.numpy import save
from streamlit.testing.v1 import AppTest

from inspector.demo import DEMOS
from inspector.errors import STOPPED
from inspector.serving.engine.protocol import Progress
from inspector.settings import MB, read_settings, settings
from inspector.store.stored import list_checkpoints
from inspector.text import JOINER, literal
from pages._ui import session
from tests.app.conftest import ROOT, SECONDS
from tests.app.looking import button, marked, metrics, said, titles

Open = Callable[..., AppTest]
CONFIG = {
    "model_type": "bert", "architectures": ["BertModel"], "vocab_size": 30, "hidden_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12,
    "max_position_embeddings": 16, "type_vocab_size": 2,
}  # fmt: skip


def tiny_zip(seed: int) -> bytes:
    """An archive with a real, small checkpoint."""
    weights = np.random.default_rng(seed).normal(size=(30, 8)).astype(np.float32)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("tiny/config.json", json.dumps(CONFIG))
        archive.writestr("tiny/model.safetensors", save({"embeddings.word_embeddings.weight": weights}))
    return buffer.getvalue()


def link(app: AppTest) -> str:
    """The checkpoint that the address bar names."""
    value = app.query_params["checkpoint"]
    return value if isinstance(value, str) else value[0]


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    return app.file_uploader[0].set_value((name, content, "application/zip")).run()


def test_an_uploaded_archive_is_opened_and_kept(open_app: Open) -> None:
    app = upload(open_app(), "tiny.zip", tiny_zip(1))
    assert not app.error
    assert metrics(app)["Vocabulary rows"] == "30"
    stored = [entry.name for entry in list_checkpoints(settings())]
    assert len(stored) == 1
    reference = link(app)
    assert reference.startswith("upload:")
    again = open_app(checkpoint=reference)
    assert metrics(again)["Vocabulary rows"] == "30"


def test_what_lies_beside_an_archive_is_named_as_long_as_that_is_open(open_app: Open) -> None:
    app = open_app()
    stray = ("cat.png", b"\x89PNG", "image/png")
    app.file_uploader[0].set_value([stray, ("tiny.zip", tiny_zip(1), "application/zip")]).run()
    assert not app.error
    assert "Ignored: cat.png." in said(app)
    assert "Ignored: cat.png." in said(app.run())
    app.selectbox(key="picked").select("demo-gpt2").run()
    assert "demo-gpt2" in said(app)
    assert "Ignored" not in said(app)


def test_a_refused_upload_is_one_sentence_and_changes_nothing(open_app: Open) -> None:
    before = list_checkpoints(settings())
    app = upload(open_app(checkpoint="demo-gpt2"), "broken.zip", b"PK\x03\x04 no archive at all")
    assert len(app.error) == 1
    assert "broken" in app.error[0].value
    assert "Traceback" not in said(app)
    assert "demo-gpt2" in said(app)
    assert metrics(app)["Parameters"]
    assert list_checkpoints(settings()) == before
    assert not list((settings().home / "incoming").glob("*"))
    app.button[0].click().run()  # dismiss
    assert not app.error


def test_an_upload_is_renamed_and_deleted_after_a_confirmation(open_app: Open) -> None:
    app = upload(open_app(), "tiny.zip", tiny_zip(2))
    reference = link(app)
    (entry,) = (e for e in list_checkpoints(settings())
                if e.fingerprint.startswith(reference.removeprefix("upload:")))  # fmt: skip
    app.text_input(key=f"name {entry.fingerprint}").set_value("my *own* [x](y)").run()
    button(app, "Rename").click().run()
    assert literal("my *own* [x](y)") in marked(app)
    assert button(app, "Delete").disabled
    app.checkbox(key=f"sure {entry.fingerprint}").check().run()
    button(app, "Delete").click().run()
    assert "demo-bert" in said(app)
    assert entry.fingerprint not in {e.fingerprint for e in list_checkpoints(settings())}
    stale = open_app(checkpoint=reference)
    assert "is no longer in the store" in said(stale)
    assert button(stale, "Open demo-bert")


def test_equal_files_are_spoken_of_by_the_name_that_each_gave_them(open_app: Open) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        for path in DEMOS["demo-gpt2"].folder.iterdir():
            files.write(path, path.name)
    theirs = upload(open_app("masked_lm"), "theirs.zip", archive.getvalue())
    assert "theirs: how surprising is each token?" in titles(theirs)
    ours = open_app("masked_lm", checkpoint="demo-gpt2")
    assert "demo-gpt2: how surprising is each token?" in titles(ours)
    assert "theirs" not in said(ours) + titles(ours)
    fingerprints = {app.session_state["opened"].fingerprint for app in (ours, theirs)}
    assert len(fingerprints) == 1


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ("upload:0123456789ab", "is no longer in the store"),
        ("demo-elephant", "There is no demo"),
        ("what is this?", "does not name a checkpoint"),
        ("![x](http://example.com/x.png)", "does not name a checkpoint"),
    ],
)
def test_a_bad_link_says_what_is_wrong_and_offers_the_demo(link: str, sentence: str, open_app: Open) -> None:
    app = open_app("sharing", checkpoint=link)
    assert len(app.error) == 1
    assert sentence in app.error[0].value.replace("\\", "")
    button(app, "Open demo-bert").click().run()
    assert not app.error
    assert "Input and output embeddings are tied: one tensor of 5,120 × 160 under 2 names" in said(app)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/etc", "no checkpoint files here"),
        ("/proc/self/environ", "is not a checkpoint"),
        ("/no/such/folder", "There is no file or folder"),
    ],
)
def test_a_link_to_a_folder_that_is_no_checkpoint(path: str, sentence: str, open_app: Open) -> None:
    app = open_app("sharing", checkpoint=f"path:{path}", agreed=f"path:{path}")
    assert len(app.error) == 1
    assert sentence in app.error[0].value.replace("\\", "")


def test_an_opening_that_is_canceled_is_not_begun_again(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        id, status, progress, partial = "1", "running", Progress(0.5, "Reading"), None
        opened: ClassVar[list[object]] = []

        def result(self, timeout: float) -> None:
            if timeout == session.QUICK_SECONDS:
                raise TimeoutError
            st.stop()

        def cancel(self) -> None:
            self.opened.append("canceled")

    app, job, engine = open_app(), Endless(), session.engine()
    monkeypatch.setattr(engine, "open", lambda reference: job.opened.append(str(reference)) or job)
    app.selectbox(key="picked").select("demo-gpt2").run()
    button(app, "Cancel").click().run()
    assert job.opened == ["demo-gpt2", "canceled"]
    assert STOPPED in said(app)
    assert not [each for each in app.button if each.label == "Cancel"]
    button(app, "Dismiss").click().run()
    app.selectbox(key="picked").select("demo-gpt2").run()
    assert job.opened == ["demo-gpt2", "canceled", "demo-gpt2"]


def test_another_demo_can_be_picked(open_app: Open) -> None:
    app = open_app()
    app.selectbox(key="picked").select("demo-gpt2").run()
    assert "demo-gpt2" in said(app)
    assert link(app) == "demo-gpt2"


def test_a_wrong_setting_is_one_sentence(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECTOR_UPLOAD_MB", "lots")
    settings.cache_clear()
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    settings.cache_clear()
    assert len(app.error) == 1
    assert "INSPECTOR_UPLOAD_MB" in app.error[0].value.replace("\\", "")


def test_markup_of_strangers_is_quoted() -> None:
    assert literal("![a](b) :red[c] $d$ <e>") == (r"\!\[a\]\(b\) \:red\[c\] \$d\$ \<e\>")
    assert literal("http://a.b www.c.d mailto:e@f.g www @") == (
        rf"http\:\/\/{JOINER}a\.b www{JOINER}\.c\.d mailto\:e\@{JOINER}f\.g www \@"
    )
    assert literal("two\nlines\u202e") == r"two lines\\u202e"


def test_the_server_is_set_up_safely() -> None:
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text())
    assert config["server"]["maxUploadSize"] * MB == read_settings({}).upload_nbytes
    assert config["server"]["enableXsrfProtection"] is True
    assert config["server"]["address"] == "localhost"
    assert config["client"]["showErrorDetails"] == "none"
    assert config["browser"]["gatherUsageStats"] is False


def test_the_pages_import_no_torch_transformers_or_umap(tmp_path: Path) -> None:
    script = """
import sys
from streamlit.testing.v1 import AppTest
from pages._ui import session
from tests.app.conftest import run_the_frame_first
run_the_frame_first()
app = AppTest.from_file("app.py", default_timeout=120).run()
assert not app.exception and not app.error, app
for slug in ("sharing", "embeddings", "lens", "masked_lm"):
    app.switch_page(f"pages/{slug}.py").run()
    assert not app.exception and not app.error, (slug, app)
session.engine().close()
print(sorted({"torch", "transformers", "umap", "tokenizers"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False,
        env={"INSPECTOR_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_training_runs_checkpoints_are_offered_by_a_click(roots: Path, open_app: Open) -> None:
    for step in (20, 1000, 500):
        shutil.copytree(DEMOS["demo-gpt2"].folder, roots / "run" / f"checkpoint-{step}")
    app = open_app("overview", checkpoint="path:run", agreed="path:run")
    assert literal("The latest is run/checkpoint-1000;") in app.error[0].value
    assert app.selectbox(key="folder inside").options == ["checkpoint-500", "checkpoint-20"]
    app.selectbox(key="folder inside").set_value("path:run/checkpoint-20").run()
    assert not app.error
    assert app.session_state["opened"].reference == "path:run/checkpoint-20"

    app.session_state["wanted"] = "path:run"
    app.run()
    button(app, f"Open {literal('checkpoint-1000')}, the latest").click().run()
    assert not app.error
    assert app.session_state["opened"].reference == "path:run/checkpoint-1000"


def test_a_training_run_is_followed_on_snapshots(roots: Path, open_app: Open) -> None:
    for step in (500, 1000):
        shutil.copytree(DEMOS["demo-bert"].folder, roots / "run" / f"checkpoint-{step}")
    app = open_app("overview", checkpoint="demo-bert")
    app.segmented_control(key="way").set_value("Path").run()
    app.text_input(key="path typed").set_value("run")
    button(app, "Open").click().run()  # of the form
    button(app, "Follow the run on Snapshots").click().run()
    assert not app.exception
    assert [each.value for each in app.error] == []
    assert app.selectbox(key="run").value == "path:run"
    assert app.segmented_control(key="way").value == "Path"
    assert app.session_state["opened"].reference == "path:run/checkpoint-1000"


def test_folders_that_tell_no_step_are_offered_and_called_no_run(roots: Path, open_app: Open) -> None:
    for name in ("one", "two"):
        shutil.copytree(DEMOS["demo-gpt2"].folder, roots / "both" / name)
    app = open_app("overview", checkpoint="path:both", agreed="path:both")
    button(app, "Open one").click().run()
    assert app.session_state["opened"].reference == "path:both/one"
    assert not [each for each in app.button if "Snapshots" in each.label]
