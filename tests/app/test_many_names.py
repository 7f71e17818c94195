"""DeepSeek-V3's 90,427 names, and 405B in 191 files: what is answered, what pages send first, what files hold.

One worker answers for each of them: it takes half a minute.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.overview.request import OverviewRequest
from inspector.analyses.placement.request import PlacementRequest
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.what_if.request import WhatIfRequest
from inspector.catalog import request_of
from inspector.demo import examples_of
from inspector.report.making import make_report
from inspector.report.page import write_page
from inspector.results.checkpoint import Opened
from inspector.serving.engine.asking import asks
from inspector.serving.engine.protocol import Engine
from inspector.settings import settings
from inspector.store.hashing import HASHES
from inspector.store.manifests.entries import MAPS
from inspector.store.reference import CheckpointRef
from pages._ui import running, table_files
from tests.app.conftest import allowing
from tests.models.sizes import peak_nbytes, told
from tools.bench._sparse import SHAPES, tensors_of, write

Open = Callable[..., AppTest]
KNOWN, DENSE = SHAPES["V3"], "405B"
# Pages that need no numbers, and inputs with which others need none.
SLUGS: dict[str, dict[str, str]] = {
    "sharing": {}, "classes": {}, "training": {}, "overview": {}, "tour": {}, "server": {},
    "checks": {"values": "none"},
}  # fmt: skip
# By them, how it would be placed, and what would become of its ties.
ASKED = (
    request_of("sharing")(), ClassesRequest(text=examples_of("", None)[0]), TrainingRequest(), OverviewRequest(),
    PlacementRequest(), CheckRequest(values="none"), WhatIfRequest(),
)  # fmt: skip
SECONDS = 600  # on a busy machine
MOST_NBYTES = 300_000  # of a page's first picture
LEAST_NBYTES = 3_000  # which is more than a heading
MOST_REPORT_NBYTES = 5_200_000  # that can be sent by mail; plotly.js takes 4.8 MB of it
EXPERTS = "model.layers.*.mlp.experts.*.gate_proj.weight"


@dataclass(frozen=True)
class Answered:
    """What one worker answered, and the most memory that it had resident."""

    folder: Path
    opened: Opened
    told: dict[str, Any]
    peak_nbytes: int


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answered]:
    """Have the engine open the checkpoint and answer what the pages ask."""
    root = tmp_path_factory.mktemp("roots")
    write(root / "V3", KNOWN)
    write(root / DENSE, SHAPES[DENSE])
    with allowing(root):
        engine = running.engine()
        _, dense = ask_all(engine, DENSE)
        assert dense["overview"][0] == SHAPES[DENSE].tensors
        opened, answers = ask_all(engine, "V3")
        (worker,) = (each for each in engine.workers() if each.fingerprint == opened.fingerprint)
        yield Answered(root / "V3", opened, answers, peak_nbytes(worker.pid))


def ask_all(engine: Engine, name: str) -> tuple[Opened, dict[str, Any]]:
    """Open a checkpoint and ask what the pages ask."""
    opened = engine.open(CheckpointRef("path", name)).result(SECONDS)
    called = (opened.name,)
    jobs = {each.verb: engine.run(opened.fingerprint, each.verb, called=called, **each.parameters()) for each in ASKED}
    return opened, {verb: told(verb, job.result(SECONDS)) for verb, job in jobs.items()}


def test_a_mixture_of_experts_in_fp8_is_answered_from_names(answered: Answered) -> None:
    found = answered.told
    assert KNOWN.parameters == 671_026_419_200
    buffers = 58 * 256  # e_score_correction_bias of each layer with experts
    assert found["overview"] == [90_427, KNOWN.parameters - buffers, "present", "samples"]
    assert found["placement"][0] == "bfloat16"
    unique, listed, groups, warnings = found["sharing"]
    assert unique == listed
    assert groups == [["lm_head.weight", "model.embed_tokens.weight", "diverged"]]
    assert not [text for text in warnings if "no place" in text or "lacks" in text]
    assert found["classes"][0] == "DeepseekV3ForCausalLM"
    assert found["classes"][2]["DeepseekV3ForCausalLM"] == 0
    assert found["classes"][3] == [(1, 8, 129_280)]
    statuses, values = found["check"]
    assert values == "none"
    assert statuses == dict.fromkeys(statuses, "ok") | {"Files": "warn"}  # of holes
    edges, parameters, warnings = found["whatif"]
    assert edges == [["lm_head.weight", "different numbers", "one tensor"]]
    assert parameters == [KNOWN.parameters - buffers - 129_280 * 7_168]
    assert "nothing is saved or trained" in warnings[0]
    assert answered.peak_nbytes < 1.4e9


def know_hashes(folder: Path, cache: Path) -> None:
    """Let a report find the SHA-256 of each shard, of which it would read 671 GB of zeros."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    stats = {path: path.stat() for path in folder.glob("*.safetensors")}
    keys = [f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}" for path, stat in stats.items()]
    cache.write_text("".join(f"{json.dumps({key: '0' * 64})}\n" for key in keys))


def test_a_report_stays_small(answered: Answered) -> None:
    know_hashes(answered.folder, settings().home / MAPS / answered.opened.fingerprint / HASHES)
    sections = ("overview", "sharing", "training")
    report = make_report(asks(running.engine(), answered.opened), answered.opened, sections=sections)
    assert [part.slug for part in report.parts] == list(sections)
    assert not [part for part in report.parts if part.absent]
    listed = {table.name: len(table.frame) for part in report.parts for table in part.tables}
    assert max(listed.values()) >= KNOWN.tensors  # the page stays small, and its files hold every name
    page = write_page(report)
    assert "90,427 names are shown by pattern" in page
    assert "model.layers.[3–60]." in page.replace("<wbr>", "")
    assert len(page.encode()) < MOST_REPORT_NBYTES


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


def expect_small_pages(open_app: Open, sent: list[int], shape: str) -> dict[str, AppTest]:
    """Open each page, and see that its first picture is small."""
    link = {"checkpoint": f"path:{shape}", "agreed": f"path:{shape}"}
    pages = {slug: open_app(slug, **link, **given) for slug, given in SLUGS.items()}
    sizes = {slug: nbytes(app, sent) for slug, app in pages.items()}
    assert max(sizes.values()) < MOST_NBYTES, sizes
    assert min(sizes.values()) > LEAST_NBYTES, sizes
    return pages


@pytest.mark.usefixtures("answered")
def test_a_page_of_a_dense_model_in_many_files_sends_little(open_app: Open, sent: list[int]) -> None:
    pages = expect_small_pages(open_app, sent, DENSE)
    table = lines(pages["overview"])
    assert sum(table["names"]) == SHAPES[DENSE].tensors
    assert "model.layers.[0–125].mlp.up_proj.weight" in set(table["name"])


@pytest.mark.usefixtures("answered")
def test_a_comparison_of_both_by_their_headers_sends_little(open_app: Open, sent: list[int]) -> None:
    both = ("path:V3", f"path:{DENSE}")
    for _ in range(2):  # the second time all is known
        sent.clear()
        app = open_app("compare", checkpoint=both[0], other=both[1], agreed=both, values="none")
        assert not app.exception
        assert not app.error
    assert LEAST_NBYTES < sum(sent) < MOST_NBYTES


def test_a_page_sends_little_and_opens_a_level_at_a_time(
    open_app: Open, answered: Answered, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[pd.DataFrame] = []
    monkeypatch.setattr(table_files, "offer", lambda frame, **_: files.append(frame))
    app = expect_small_pages(open_app, sent, "V3")["overview"]
    stored = [name for name, *_ in tensors_of(KNOWN.config)]
    every = next(frame for frame in files if len(frame) == len(stored))
    assert sorted(every["name"]) == sorted(stored)
    (read,) = (pd.read_parquet(io.BytesIO(table_files.as_parquet(every, {}))),)
    assert read["name"].tolist() == every["name"].tolist()
    table = lines(app)
    assert sum(table["names"]) == len(stored) == KNOWN.tensors
    label = EXPERTS.replace("*", "[3–60]", 1).replace("*", "[0–255]")
    assert {(row["name"], row["names"], row["shape"]) for row in table.to_dict("records")} >= {
        (label, 58 * 256, "2,048 × 7,168")
    }
    app.text_input(key="find").set_value(EXPERTS).run()
    table = lines(app)
    assert table["name"].tolist() == [
        f"model.layers.{layer}.mlp.experts.[0–255].gate_proj.weight" for layer in range(3, 61)
    ]
    assert set(table["names"]) == {256}
    sent.clear()
    app.text_input(key="find").set_value(EXPERTS.replace("*", "7", 1)).run()
    assert sum(sent) < MOST_NBYTES
    assert lines(app)["name"].tolist() == [
        f"model.layers.7.mlp.experts.{expert}.gate_proj.weight" for expert in range(256)
    ]
    (back,) = (each for each in app.button if each.label == "Show all names")
    back.click().run()
    assert sum(lines(app)["names"]) == len(stored)
