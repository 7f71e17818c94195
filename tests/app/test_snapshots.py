"""The Snapshots page: the bundled run against its own log, a folder, an upload, and refusals."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from inspector.demo import SNAPSHOTS
from inspector.settings import settings
from inspector.store.stored import list_checkpoints
from tests.app.looking import button, said

Open = Callable[..., AppTest]
FOLDERS = {demo.folder.name: demo.folder for demo in SNAPSHOTS.values()}
ROOT = Path(__file__).parents[2]
RUN = next(iter(FOLDERS.values())).parent


def chart(app: AppTest) -> dict:
    (found,) = app.get("plotly_chart")
    return json.loads(found.proto.spec)


def test_the_bundled_run_is_shown_unless_another_is_chosen(open_app: Open) -> None:
    app = open_app("snapshots")
    assert not app.exception
    assert "demo-run" in chart(app)["layout"]["title"]["text"]
    frame = app.dataframe[0].value
    ends = [f"{frame[column].iloc[0]:.3g} → {frame[column].iloc[-1]:.3g}" for column in ("pad_norm", "median")]
    assert f"from checkpoint-0 to checkpoint-1000: padding row {ends[0]}, median row {ends[1]}." in said(app)


def test_the_padding_norm_over_steps_is_the_one_that_training_logged(open_app: Open) -> None:
    app = open_app("snapshots", run="demo-run")
    with (RUN / "training_log.csv").open(encoding="utf-8") as file:
        log = {int(row["step"]): row for row in csv.DictReader(file)}
    frame = app.dataframe[0].value
    assert frame["step"].tolist() == [0, 10, 30, 100, 200, 300, 400, 600, 800, 1000]
    for row in frame.to_dict("records"):
        assert row["pad_norm"] == pytest.approx(float(log[row["step"]]["pad_norm"]), rel=1e-4)
        assert row["median"] == pytest.approx(float(log[row["step"]]["median_norm"]), rel=1e-4)
    drawn = chart(app)
    assert [trace["name"] for trace in drawn["data"]] == ["padding row", "median row"]
    assert "python -m inspector vitals demo-run" in app.code[0].value
    for quantity, column in (("Norms", "max"), ("Drift", "cosine"), ("Neighbors", "kept")):
        app = open_app("snapshots", run="demo-run", quantity=quantity)
        assert not app.exception
        assert column in app.dataframe[0].value
        assert "demo-run" in chart(app)["layout"]["title"]["text"]
    first: Any = app.dataframe[0].value.groupby("snapshot", sort=False)["kept"].mean()
    assert first["checkpoint-0"] == 1  # every neighbor of the first is its own
    assert first["checkpoint-1000"] < 0.5


def test_followed_tokens_and_their_reference_are_in_the_link(open_app: Open) -> None:
    app = open_app("snapshots", run="demo-run", quantity="Drift", tokens="id 5, id:6", against="last")
    frame = app.dataframe[0].value
    assert frame.groupby("snapshot", sort=False).size().tolist() == [2] * 10
    last = frame[frame["snapshot"] == "checkpoint-1000"]
    assert last["cosine"].tolist() == pytest.approx([1, 1])
    line = app.code[0].value
    assert "vitals demo-run '--token=id 5,id:6' --against=last" in line


def test_the_line_for_a_terminal_that_asks_one_works_as_it_stands(open_app: Open) -> None:
    app = open_app("snapshots", run="demo-run", quantity="Ties")
    _, *line = app.code[0].value.split()
    done = subprocess.run([sys.executable, *line], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def copy(folder: Path, name: str) -> None:
    folder.mkdir(parents=True)
    for path in FOLDERS[name].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())


def test_a_folder_of_this_server_with_a_broken_snapshot(open_app: Open, roots: Path) -> None:
    for name in ("checkpoint-0", "checkpoint-1000"):
        copy(roots / "mine" / name, name)
    broken = roots / "mine" / "checkpoint-2000"
    broken.mkdir()
    (broken / "model.safetensors").write_bytes(b"nothing")
    app = open_app("snapshots", run="path:mine", agreed="path:mine", quantity="Ties")
    assert not app.exception
    assert "No result for 1 snapshot" in said(app)
    missing = app.dataframe[0].value
    assert missing["snapshot"].tolist() == ["checkpoint-2000"]
    assert str(roots) not in missing["why"].iloc[0]
    _, _, *rows = next(each.value for each in app.markdown if "**verdict**" in each.value).splitlines()
    columns = [*zip(*(row.strip("| ").split(" | ") for row in rows), strict=True)]
    _, steps, groups, verdicts, _ = columns
    assert set(verdicts) == {"tied"}
    assert f"Nothing changes over 2 snapshots: {len(set(groups))} tied of" in said(app)
    assert list(dict.fromkeys(steps)) == ["0", "1000"]
    drawn = chart(app)
    assert "mine" in drawn["layout"]["title"]["text"]
    assert "2 of 3 snapshots" in drawn["layout"]["title"]["subtitle"]["text"]


@pytest.mark.parametrize("run", ["path:gone", "uploads:gone", "upload:0", "\x00"])
def test_a_run_that_is_not_there_is_one_sentence(open_app: Open, run: str) -> None:
    app = open_app("snapshots", run=run, agreed=run)
    assert not app.exception
    assert len(app.error) == 1
    assert button(app, "Show demo-run")


@pytest.mark.parametrize("run", ["path:/", "path:gone"])
def test_a_run_outside_the_folders_that_are_open_is_one_sentence(open_app: Open, roots: Path, run: str) -> None:
    app = open_app("snapshots", run=run, agreed=run)
    assert not app.exception
    (error,) = app.error
    assert "cannot be opened here" in error.value
    assert str(roots) not in error.value


def test_an_uploaded_archive_is_shown_as_a_run(open_app: Open) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("checkpoint-0", "checkpoint-100"):
            for path in sorted(FOLDERS[name].iterdir()):
                archive.writestr(f"tiny/{name}/{path.name}", path.read_bytes())
    app = open_app("snapshots")
    (uploader,) = [each for each in app.file_uploader if each.label == "Archive of snapshots"]
    uploader.upload("tiny.zip", packed.getvalue(), "application/zip").run()
    assert not app.exception
    assert app.query_params["run"] == "uploads:tiny"
    assert "tiny" in chart(app)["layout"]["title"]["text"]
    assert app.dataframe[0].value["step"].tolist() == [0, 100]
    assert {stored.name for stored in list_checkpoints(settings())} == {
        "tiny/checkpoint-0", "tiny/checkpoint-100",
    }  # fmt: skip
