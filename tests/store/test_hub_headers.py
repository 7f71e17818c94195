"""Models of the hub whose headers alone are fetched: from a hub on this machine, which keeps what it was asked."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CheckpointError
from inspector.progress import no_progress
from inspector.settings import Settings
from inspector.store.keeping import quota
from inspector.store.manifests.manifest import HeadersAloneError
from inspector.store.opening import open_checkpoint
from inspector.store.origins.hub_headers import FIRST, key_of, known_headers, put_headers
from inspector.store.reference import CheckpointRef
from tests.hub import COMMIT, FAULTS, REFUSED, Held, Hub, plain, serving, shard

ROOT = Path(__file__).parents[2]
WIDTH, ROWS = 2_048, 16_000
CONFIG = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": ROWS, "n_embd": WIDTH, "n_layer": 0,
    "n_head": 2, "n_positions": 8,
}  # fmt: skip
TENSORS = {
    "transformer.wte.weight": (ROWS, WIDTH),
    "transformer.wpe.weight": (8, WIDTH),
    "transformer.ln_f.weight": (WIDTH,),
    "transformer.ln_f.bias": (WIDTH,),
}
EACH = """
import json, sys
from inspector.errors import CheckpointError
from inspector.progress import no_progress
from inspector.store.origins import hub_headers
hub_headers.SLOWEST = 2.0
for model in sys.argv[1:]:
    try:
        found = hub_headers.fetch_headers(model, (), progress=no_progress)
        print(json.dumps(found and sorted(found["headers"])))
    except CheckpointError as error:
        print(error)
"""


def files(tensors: Mapping[str, tuple[int, ...]] = TENSORS, *, pad: int = 0) -> dict[str, Held]:
    return {
        "config.json": plain(json.dumps(CONFIG)),
        "model.safetensors": shard(tensors, pad=pad),
        "modeling_own.py": plain("raise SystemExit"),
    }


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return kept | {"HF_HOME": str(tmp_path / "hub"), "INSPECTOR_HOME": str(tmp_path / "home")}


def run(*command: str, hub: Hub, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT, env={**environment, **hub.environment}, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(*command: str, hub: Hub, environment: Mapping[str, str]) -> dict[str, Any]:
    return json.loads(run("-m", "inspector", *command, "--json", hub=hub, environment=environment))


def test_headers_alone_are_fetched_once_and_no_token_leaves_the_hub(environment: dict[str, str]) -> None:
    with serving(files()) as hub:
        found = asked("overview", "org/model", "--tensors", hub=hub, environment=environment)
        assert {each["name"]: tuple(each["shape"]) for each in found["listed_tensors"]} == TENSORS
        assert any("the headers alone were fetched" in each for each in found["warnings"])
        assert hub.asked == [f"org/model model.safetensors bytes=0-{FIRST[1] - 1}"]
        again = asked("sharing", "org/model", hub=hub, environment=environment)
        assert [each["verdict"] for each in again["groups"]] == ["tied"]
        checked = asked("check", "org/model", "--values", "none", hub=hub, environment=environment)
        assert [each for each in checked["checks"] if each["status"] not in ("ok", "unchecked")] == []
        assert len(hub.asked) == 1
        assert hub.sent == FIRST[1]
        assert hub.authorized == []


def test_a_revision_is_opened_and_its_commit_names_it_again(environment: dict[str, str]) -> None:
    with serving(files()) as hub:
        pasted = f"{hub.address}/org/model/blob/refs%2Fpr%2F3/model.safetensors"
        for named, revision in (("org/model@v1", "v1"), (pasted, "refs/pr/3"), (f"org/model@{COMMIT}", COMMIT)):
            found = asked("overview", named, hub=hub, environment=environment)
            assert hub.revisions[-1] == revision
            assert found["name"] == f"org/model@{revision if revision != COMMIT else COMMIT[:7]}"
        assert len(hub.asked) == 1  # all three are one commit
        said = run("-c", EACH, "org/model@v9", hub=hub, environment=environment)
        assert said == "The hub has no revision v9 of org/model: name a branch, a tag or a commit.\n"


def test_what_takes_numbers_fetches_the_model_whole(environment: dict[str, str]) -> None:
    """Two copies of what is declared to be tied: whether they are equal, no header tells, and the answer says so."""
    with serving(files(TENSORS | {"lm_head.weight": (ROWS, WIDTH)})) as hub:
        found = asked("sharing", "org/model", hub=hub, environment=environment)
        assert [each["file_relation"] for each in found["groups"]] == ["not compared"]
        assert hub.sent == FIRST[1]
        found = asked("overview", "org/model", "--hash", hub=hub, environment=environment)
        assert hub.sent > 2 * 2 * ROWS * WIDTH
        found = asked("sharing", "org/model", hub=hub, environment=environment)
        assert [each["file_relation"] for each in found["groups"]] == ["equal copies"]
        assert not any("headers alone" in each for each in found["warnings"])


LIBRARY = """
import json
import inspector
opened = inspector.open("org/model@v1")
said = [opened.opened.reference, opened.opened.on_hub_nbytes, [each.verdict for each in opened.sharing().groups]]
for nothing in (opened.overview, opened.training, opened.classes, lambda: opened.check(values="none")):
    nothing()
print(json.dumps([*said, opened.opened.on_hub_nbytes, opened.embeddings().rows, opened.opened.on_hub_nbytes]))
print(json.dumps(opened.overview().result.warnings))
"""


def test_the_library_fetches_the_weights_with_the_first_question_that_needs_them(environment: dict[str, str]) -> None:
    held = files()
    with serving(held) as hub:
        told, warnings = run("-c", LIBRARY, hub=hub, environment=environment).splitlines()
        nbytes = held["model.safetensors"].nbytes
        reference, before, shared, still, rows, after = json.loads(told)
        assert (reference, shared, rows) == (f"hub:org/model@{COMMIT}", ["tied"], ROWS)
        assert (before, still, after) == (nbytes, nbytes, 0)
        assert hub.sent == FIRST[1] + nbytes
        assert not any("headers alone" in each for each in json.loads(warnings))
        assert hub.authorized == []


def test_many_shards_and_a_long_header(environment: dict[str, str]) -> None:
    """500 GB in 300 files, the first of which has a header longer than a first range."""
    held = {"config.json": plain(json.dumps(CONFIG))}
    names = [f"model-{number:05d}-of-00300.safetensors" for number in range(1, 301)]
    tensors = {name: f"transformer.h.{number}.mlp.c_fc.weight" for number, name in enumerate(names)}
    held |= {name: shard({tensor: (WIDTH, 400_000)}, pad=50_000 * (not number))
             for number, (name, tensor) in enumerate(tensors.items())}  # fmt: skip
    index = {"metadata": {}, "weight_map": {tensor: name for name, tensor in tensors.items()}}
    held["model.safetensors.index.json"] = plain(json.dumps(index))
    with serving(held) as hub:
        found = asked("overview", "org/model", "--tensors", hub=hub, environment=environment)
    assert {each["name"]: each["file"] for each in found["listed_tensors"]} == {
        tensor: name for name, tensor in tensors.items()
    }
    assert sum(each["nbytes"] for each in found["listed_tensors"]) == 300 * 2 * WIDTH * 400_000
    assert len(hub.asked) == 301
    assert hub.sent < 5_000_000


def test_what_is_no_answer_is_refused_in_a_sentence(environment: dict[str, str]) -> None:
    models = [*FAULTS, *REFUSED, "faults/branch", "faults/vanished", "faults/drip", "faults/climbs", "org/model"]
    with serving(files()) as hub:
        said = run("-c", EACH, *models, hub=hub, environment=environment).splitlines()
        assert hub.authorized == []
    told = dict(zip(models, said, strict=True))
    assert told.pop("org/model") == '["model.safetensors"]'
    assert told.pop("faults/climbs") == "null"  # there is no weight file that may be one of a checkpoint
    assert told.pop("faults/busy") == "null"
    for model in (*FAULTS, "faults/drip"):
        assert told.pop(model).startswith("The hub did not send the range of model.safetensors that was asked for (")
    assert told == {
        "faults/gated": "faults/gated is gated: accept its terms on the hub, download it with your own login, and open "
        "that folder or upload it.",
        "faults/unknown": "The hub has no model faults/unknown, or you may not read it: check the name.",
        "faults/branch": "The hub names no commit of faults/branch: try again.",
        "faults/vanished": "The hub no longer has the version of faults/vanished that it named: try again.",
    }


def test_a_small_model_is_fetched_whole(environment: dict[str, str]) -> None:
    held = files(TENSORS | {"transformer.wte.weight": (4, WIDTH)})
    held["config.json"] = plain(json.dumps(CONFIG | {"vocab_size": 4}))
    with serving(held) as hub:
        found = asked("overview", "org/model", hub=hub, environment=environment)
        assert not any("headers alone" in each for each in found["warnings"])
        assert hub.sent == held["model.safetensors"].nbytes


def test_a_hole_is_no_number(tmp_path: Path, settings: Settings) -> None:
    held = files()["model.safetensors"]
    folder = put_headers("org/model", laid_out({"model.safetensors": held}), settings)
    manifest, _ = open_checkpoint(
        CheckpointRef("hub", "org/model"), settings=settings, progress=no_progress, restrict_paths=False, fetched=folder
    )
    assert manifest.is_outline
    for read in (lambda: manifest.bytes_of("model.safetensors"), lambda: manifest.paths):
        with pytest.raises(HeadersAloneError):
            read()


def test_the_store_counts_the_bytes_on_the_disk_and_may_remove_them(settings: Settings) -> None:
    folder = put_headers("org/model", laid_out({"model.safetensors": shard({"a": (1 << 20, 1 << 10)})}), settings)
    assert known_headers("org/model", settings) == (key_of("org/model", COMMIT),) == (folder.name,)
    assert quota.used_nbytes(settings) < 1_000_000
    os.utime(folder, (0, 0))
    assert [each.used for each in quota.results(settings)] == [0]
    for each in quota.results(settings):
        each.remove()
    assert known_headers("org/model", settings) == ()


def test_headers_that_were_removed_meanwhile_are_one_sentence(settings: Settings) -> None:
    with pytest.raises(CheckpointError, match="removed to make room: try again"):
        put_headers("org/model", {"commit": COMMIT}, settings)


@pytest.mark.parametrize("name", ["../x.safetensors", "/x.safetensors", "a/b/x.safetensors", "sub/x.safetensors", ".x"])
def test_no_name_leads_elsewhere(name: str, settings: Settings) -> None:
    with pytest.raises(CheckpointError, match="as no checkpoint's is"):
        put_headers("org/model", laid_out({name: plain("x")}), settings)
    with pytest.raises(CheckpointError, match="names no commit"):
        put_headers("org/model", laid_out({}) | {"commit": "../../x"}, settings)


def laid_out(held: Mapping[str, Held]) -> dict[str, Any]:
    headers = {name: (each.nbytes, base64.b64encode(each.begin).decode()) for name, each in held.items()}
    return {"commit": COMMIT, "small": [], "headers": headers}
