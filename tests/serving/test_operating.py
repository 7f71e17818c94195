"""What docs/serving.md gives operators to copy fits the server, and a home outlives an update."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch
import typer
from transformers import BertForMaskedLM

import inspector
from inspector.cli.main import app
from inspector.errors import CheckpointError
from inspector.serving.engine.local import LocalEngine
from inspector.serving.settings import read_serving
from inspector.settings import MB, Settings, read_settings
from inspector.store.reference import CheckpointRef
from inspector.store.stored import list_checkpoints

PAGE = (Path(inspector.__file__).parents[1] / "docs/serving.md").read_text("utf-8")
EARLIER = Path(__file__).with_name("home_of_an_earlier_version.zip")


def block(language: str, having: str) -> str:
    """The one block of the page in a language that has a text in it."""
    (found,) = [each for each in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if having in each]
    return found


def test_nginx_lets_uploads_and_websockets_through_and_leaves_the_host_alone():
    directives: dict[str, list[list[str]]] = {}
    for line in re.sub(r"#.*", "", block("nginx", "server_name")).splitlines():
        if line.strip().endswith(";"):
            name, *values = shlex.split(line.strip().rstrip(";"))
            directives.setdefault(name, []).append(values)
    headers = dict(directives["proxy_set_header"])
    assert headers == {"Host": "$http_host", "Upgrade": "$http_upgrade", "Connection": "$connection_upgrade"}
    ((most,),) = directives["client_max_body_size"]
    upload_mb = read_settings({}).upload_nbytes / MB
    assert upload_mb * 1.01 < int(most.removesuffix("m")) * 1.048576 < upload_mb * 1.1
    assert directives["proxy_request_buffering"] == [["off"]]
    assert directives["default"] == [["upgrade"]]


def test_the_headers_of_the_proxy_are_those_that_the_server_reads():
    headers = dict(re.findall(r"proxy_set_header (X-[\w-]+) (.*?);", block("nginx", "X-Inspector-Secret")))
    found = read_serving({"INSPECTOR_SIGN_IN": "proxy", "INSPECTOR_PROXY_SECRET": "s" * 16})
    assert headers.keys() == {found.header, "X-Inspector-Secret"}


def test_the_service_starts_the_server_with_settings_and_options_that_there_are(tmp_path):
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  # names keep their capitals
    text = block("ini", "[Service]")
    unit.read_string(text)
    program, verb, *options = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "checkpoint-inspector"
    command = typer.main.get_command(app).commands[verb]  # pyright: ignore[reportAttributeAccessIssue]
    assert command.make_context(verb, options).params["host"] == ["inspector.example.org"]
    environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
    found = read_settings(environment)
    assert (found.home, found.confinement) == (Path("/var/lib/checkpoint-inspector"), "required")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a home that version 0.1.0 wrote on 2026-11-26, with one upload: a BERT of 12 tokens."""
    with ZipFile(EARLIER) as archive:
        archive.extractall(tmp_path)
    return read_settings({"INSPECTOR_HOME": str(tmp_path)})


def test_a_home_of_an_earlier_version_opens(settings, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy")
    (stored,) = list_checkpoints(settings)
    entry = settings.home / "checkpoints" / stored.fingerprint
    for each in (*entry.glob("folder/*"), *entry.glob("weights/*")):
        shutil.copy(each, copy / each.name)
    model = BertForMaskedLM.from_pretrained(copy)
    engine = LocalEngine(settings, spare=False)
    try:
        opened = engine.open(CheckpointRef.parse(f"upload:{stored.fingerprint}")).result(120)
        overview = engine.run(opened.fingerprint, "overview").result(120)
        predicted = engine.run(opened.fingerprint, "predict", text="the [MASK] sat").result(120)
    finally:
        engine.close()
    assert opened.name == stored.name == "BertForMaskedLM"
    assert overview.unique_parameters == sum(each.numel() for each in model.parameters())
    ids = [2, 5, 4, 8, 3]  # [CLS] the [MASK] sat [SEP]
    probabilities = model(torch.tensor([ids])).logits[0, 2].softmax(-1)
    table = predicted.masks[0].predictions
    assert torch.allclose(
        torch.tensor(table["probability"].to_list(), dtype=torch.float64),
        probabilities[table["token_id"].to_list()].double(),
        atol=1e-6,
    )


def test_an_upload_in_a_later_format_is_refused_and_left_as_it_is(settings):
    (stored,) = list_checkpoints(settings)
    manifest = settings.home / "checkpoints" / stored.fingerprint / "manifest.json"
    later = manifest.read_text("utf-8").replace('"format": 1,', '"format": 2,', 1)
    manifest.write_text(later, "utf-8")
    engine = LocalEngine(settings, spare=False)
    try:
        with pytest.raises(CheckpointError) as refused:
            engine.open(CheckpointRef.parse(f"upload:{stored.fingerprint}")).result(120)
    finally:
        engine.close()
    assert str(refused.value) == "This checkpoint's entry in the store is damaged: open it again."
    assert manifest.read_text("utf-8") == later
