"""The Checks page: its summary, cards worst first, files to take along, links to other pages."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
from safetensors.numpy import load_file, save
from streamlit.testing.v1 import AppTest

from inspector.analyses.checks.command.baseline import compare, read_baseline
from inspector.analyses.checks.compute import ORDER
from inspector.analyses.checks.frames import norm_frame
from inspector.analyses.checks.request import CheckRequest
from inspector.analyses.checks.result import Checks
from inspector.analyses.checks.view import view
from inspector.catalog import PAGES
from inspector.demo import DEMOS
from inspector.store.readers.safetensors import read_safetensors
from inspector.text import literal
from pages._checks import cards as check_cards
from pages._ui import once, session, table_files
from tests.app.looking import button, said
from tools.bench._sparse import DEEPSEEK_V3, Shape, write

Open = Callable[..., AppTest]
EMBEDDING = "bert.embeddings.word_embeddings.weight"
MOST_NBYTES = 300_000  # of a page's first picture
DENSE = "bert.encoder.layer.0.output.dense.weight"


@pytest.fixture
def damaged(open_app: Open) -> AppTest:
    """The Checks page of an upload: demo-bert with a NaN and two equal rows."""
    folder = DEMOS["demo-bert"].folder
    state = load_file(folder / "model.safetensors")
    state[DENSE][2, 3] = float("nan")
    state[EMBEDDING][2_001] = state[EMBEDDING][2_000]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.iterdir():
            if file.suffix in (".json", ".txt"):
                archive.write(file, file.name)
        archive.writestr("model.safetensors", save(state))
    app = open_app("checks")
    app.file_uploader[0].set_value(("damaged.zip", packed.getvalue(), "application/zip"))
    return app.run()


def judged(app: AppTest) -> str:
    """What stands beside the heading of a page: a link to the checks."""
    assert not app.exception
    links = (cast("Any", link).proto for link in app.get("page_link"))
    (label,) = [link.label for link in links if link.page == "checks" and link.label.startswith(":")]
    return label


def test_every_heading_has_the_verdict_as_soon_as_there_is_one(open_app: Open, damaged: AppTest) -> None:
    app = open_app("overview")
    assert "Not checked" in judged(app)
    assert not [each for each in app.session_state[once.ASKED] if isinstance(each.request, CheckRequest)]
    app.switch_page("pages/checks.py").run()
    app.switch_page("pages/sharing.py").run()
    assert "Sound" in judged(app)
    damaged.switch_page("pages/overview.py").run()
    assert "Broken" in judged(damaged)


@pytest.mark.parametrize("checkpoint", sorted(DEMOS))
def test_a_sound_checkpoint_is_said_to_be_sound(open_app: Open, checkpoint: str) -> None:
    app = open_app("checks", checkpoint=checkpoint)
    assert not app.exception
    assert [each.value for each in app.success] == [
        literal(f"Sound. None of {len(ORDER)} checks found anything wrong.")
    ]
    assert len([each for each in app.markdown if "-badge[" in each.value]) == len(ORDER)
    assert [each.label for each in app.tabs] == ["Evidence", "Loading", "Weight magnitudes", "Export"]
    assert "Next step" not in said(app)
    assert app.code[-1].value == f"python -m inspector check {checkpoint}"
    app = open_app("checks", checkpoint=checkpoint, tab="Export")
    assert f"check {checkpoint} --baseline baseline.json" in app.code[0].value


def test_evidence_of_what_passed_is_in_its_tab(open_app: Open) -> None:
    app = open_app("checks", checkpoint="demo-bert", tab="Evidence")
    listed = app.dataframe[0].value["check"].tolist()
    assert listed.count("Under-trained tokens") == 112
    assert "Ties" in listed


def test_magnitudes_are_listed_by_pattern_and_can_be_saved(open_app: Open) -> None:
    app = open_app("checks", checkpoint="demo-bert", tab="Weight magnitudes")
    found: Checks = session.engine().run(app.session_state["opened"].fingerprint, "check").result()
    table = app.dataframe[-1].value
    assert table["pattern"].tolist() == [row.pattern for row in found.norms]
    assert max(table["tensors"].tolist()) == 4
    labels = [getattr(each, "label", "") for each in app.get("download_button")]
    assert {"CSV", "Parquet"} <= set(labels)
    frame = norm_frame(found.norms)
    saved = pd.read_parquet(io.BytesIO(table_files.as_parquet(frame, {})))
    assert saved["shape"].tolist()[0] == "128 × 160"
    app = open_app("checks", checkpoint="demo-bert", values="none")
    assert not app.exception
    assert "Only headers were read" in said(app)
    assert "Weight magnitudes" not in [each.label for each in app.tabs]


def test_alarms_come_first_with_evidence_a_next_step_and_a_link(damaged: AppTest) -> None:
    assert not damaged.exception
    assert [each.value for each in damaged.error] == [
        literal(f"Broken. 1 of {len(ORDER)} checks failed, and 1 raised a warning.")
    ]
    assert f"{len(ORDER) - 2} passed" in [each.label for each in damaged.expander]
    badges = [each.value for each in damaged.markdown if "-badge[" in each.value]
    assert len(badges) == len(ORDER)
    assert badges[0] == ":red-badge[:material/error: broken · critical] **NaN and infinity**"
    assert badges[1] == ":orange-badge[:material/warning: worth a look · minor] **Duplicated rows**"
    assert sum("Next step:" in each.value for each in damaged.markdown) == 2
    evidence = damaged.expander[0].dataframe[0].value
    assert evidence[["subject", "count"]].to_numpy().tolist() == [[DENSE, 1]]
    assert "the first at [2, 3]." in evidence["detail"].iloc[0]
    more = [each.label for each in damaged.main.button if each.label.startswith("See more")]
    assert more == ["See more: Overview", "See more: Embeddings"]
    button(damaged, "See more: Overview").click().run()
    assert damaged.title[0].value == PAGES["overview"].title
    assert damaged.text_input(key="find").value == DENSE
    assert "damaged" in damaged.caption[0].value


@pytest.fixture
def in_thousands(roots: Path) -> list[str]:
    """DeepSeek-V3 in little, with a NaN in 1,200 of its experts' weights; gives their names."""
    config = DEEPSEEK_V3 | dict.fromkeys(("hidden_size", "intermediate_size", "vocab_size"), 128)
    config |= dict.fromkeys(("q_lora_rank", "kv_lora_rank", "moe_intermediate_size"), 16)
    config |= dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 8)
    config |= dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 2) | {"num_hidden_layers": 6}
    write(roots / "experts", Shape(config, 1, 0, 0))
    file = roots / "experts" / "model.safetensors"
    experts = re.compile(r"\.experts\.\d+\..*weight$")
    chosen = [each for each in read_safetensors(file, file.name).tensors if experts.search(each.name)][:1_200]
    with file.open("r+b") as content:
        for tensor in chosen:
            content.seek(tensor.begin)
            content.write(b"\x7f")  # NaN in float8_e4m3fn
    return [tensor.name for tensor in chosen]


def test_thousands_of_alarms_are_shown_by_pattern(open_app: Open, in_thousands: list[str], sent: list[int]) -> None:
    app = open_app("checks", checkpoint="path:experts", agreed="path:experts")
    assert not app.exception
    sent.clear()
    app.run()
    assert sum(sent) < MOST_NBYTES
    (label,) = (each.label for each in app.expander if each.label.startswith("Evidence (1,200"))
    assert label == "Evidence (1,200)"
    table = app.expander[0].dataframe[0].value
    assert table[["names", "count"]].sum().tolist() == [len(in_thousands)] * 2
    assert table["subject"].tolist()[0].startswith("model.layers.[3–4].mlp.experts.[0–255].gate_proj.weight")
    assert len(table) == 3
    app.session_state["evidence of NaN and infinity"] = "model.layers.*.mlp.experts.*.up_proj.weight"
    app.run()
    opened = app.expander[0].dataframe[0].value
    assert opened["subject"].str.contains("up_proj").all()
    assert len(opened) == 2
    button(app, "Show all names").click().run()
    assert len(app.expander[0].dataframe[0].value) == 3
    found: Checks = session.engine().run(app.session_state["opened"].fingerprint, "check").result()
    (bad,) = (check for check in found.checks if check.status == "fail")
    assert sorted(each.subject for each in bad.evidence) == sorted(in_thousands)
    (evidence,) = (each for each in view(found, CheckRequest(), name="x").tables if each.name == "evidence")
    assert len(evidence.frame) == sum(len(check.evidence) for check in found.checks)
    assert len(evidence.lines) < 300
    assert evidence.lines["subject"].tolist()[:3] == table["subject"].tolist()


def test_the_files_hold_everything_and_can_be_a_baseline(open_app: Open, tmp_path: Path) -> None:
    app = open_app("checks", checkpoint="demo-bert")
    assert not app.exception
    found: Checks = session.engine().run(app.session_state["opened"].fingerprint, "check").result()
    tables = {each.name: each.frame for each in view(found, CheckRequest(), name="x").tables}
    assert set(tables["checks"]["check"]) == {check.name for check in found.checks}
    assert len(tables["evidence"]) == sum(len(check.evidence) for check in found.checks)
    file = tmp_path / "checks.json"
    file.write_text(check_cards.as_json(found))
    assert [each["name"] for each in json.loads(file.read_text())["checks"]] == [check.name for check in found.checks]
    baseline = compare(found, read_baseline(file))
    assert (baseline.name, baseline.changes) == ("demo-bert", ())


def test_every_check_leads_to_a_page(open_app: Open) -> None:
    app = open_app("checks")
    found: Checks = session.engine().run(app.session_state["opened"].fingerprint, "check").result()
    assert set(check_cards.MORE) == {check.name for check in found.checks}
    assert {slug for slug, _ in check_cards.MORE.values()} <= set(PAGES)


def test_what_a_stranger_named_is_shown_as_it_is() -> None:
    hostile = "[click](https://example.org) :red[x] \u202e"

    def script(name: str) -> None:  # run on its own: it sees no import of this file
        from inspector.analyses.checks.result import Check, Evidence
        from pages._checks import cards as check_cards

        evidence = Evidence(name, "p", "major", 1, name)
        check_cards.draw(Check("Ties", "fail", "major", name, name, True, 1, (evidence,)))

    app = AppTest.from_function(script, args=(hostile,)).run()
    text = "\n".join(each.value for each in app.markdown)
    assert "[click](" not in text
    assert "\\[click\\]\\(" in text
    assert "\u202e" not in text
