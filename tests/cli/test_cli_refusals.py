"""What the command line takes and refuses, in one sentence and with its exit status, and what people read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import inspector
from inspector.analyses.lens.request import LensRequest
from inspector.analyses.masked_lm.request import PredictRequest
from inspector.cli import answering
from inspector.cli import main as cli
from inspector.errors import CheckpointError, RequestError
from inspector.request import parse_list, parse_numbers
from tests.cli.conftest import MINILM, NO_HEAD, NO_SUCH
from tests.queries import from_query

ROOT = Path(__file__).parents[2]
CAUSAL = (
    "demo-gpt2 is a causal language model: it predicts the next token and has no masked-LM head. "
    "Plausibility scores a text with it, and its Logit lens shows what it predicts at every position."
)
NO_PAIR = "--pair: There is no second text: this head reads a sentence, and a second one that may follow it."
TASK = (
    "--task: Task must be masked_lm, causal_lm, seq2seq_lm, base, pretraining, next_sentence, "
    "sequence_classification, token_classification, question_answering or multiple_choice, not "
    "'x'."
)
SUFFIX = "map.txt must end in .csv or .parquet: rename it."
LAYERS = '--layers: {!r} is neither a number nor a range: write "0,6,12" or "0-3".'


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("overview", "no-such-thing"), NO_SUCH),
        (("predict", str(MINILM), "--text", "a [MASK]"), NO_HEAD),
        (("predict", "demo-gpt2", "--text", "a"), CAUSAL),
        (
            ("plausibility", "demo-gpt2", "--text", "a"),
            "--text: The text has one token, but a causal language model judges each token from those before it: type "
            "more.",
        ),
        (("contrast", str(MINILM), "--first", "a [MASK]", "--second", "[MASK]"), NO_HEAD),
        (("heads", "demo-bert", "--text", "a"), NO_PAIR),
        (("project", "demo-bert", "-o", "map.txt"), SUFFIX),
        (("lens", "demo-bert", "--text", "a", "--layers", "x"), LAYERS.format("x")),
        (("lens", "demo-bert", "--text", "a", "--layers", "0,3-1"), LAYERS.format("3-1")),
        (("contrast", "demo-bert", "--first", "a", "--second", "b", "-o", "map.txt"), SUFFIX),
        (("placement", "demo-bert", "--task", "x"), TASK),
        (("lens", "demo-bert", "--text", "a", "--layers", "3-1"), LAYERS.format("3-1")),
        (
            ("lens", "demo-bert", "--text", "a", "--layers", "9"),
            "--layers: There is no layer 9: this model has layers 0 (embeddings) to 4.",
        ),
        (
            ("lens", "demo-bert", "--text", "a", "--pin", ","),
            "--pin: ',' contains no values: give one or more, or leave it empty.",
        ),
        (("lens", "demo-bert", "--text", "a", "-k", "0"), "-k: Tokens per cell must be between 1 and 100, not 0."),
        (
            ("embeddings", "demo-bert", "--token", "zzzqq"),
            "--token: 'zzzqq' is not a single token of demo-bert: type a word "
            'that is in its vocabulary, or a row as "id 37".',
        ),
        (
            ("predict", "demo-bert", "--text", "a [MASK]", "--targets", "id:99999"),
            "--targets: 'id:99999' is not a single "
            'token of demo-bert: type a word that is in its vocabulary, or a row as "id 37".',
        ),
        (
            ("plausibility", "demo-gpt2", "--text", "a dog", "--by", "word"),
            "--by: Masked unit applies only to masked language models: demo-gpt2 reads a text from left to right and "
            "masks nothing.",
        ),
        (
            ("overview", "demo-gpt2", "--find", "c_attm"),
            "--find: No tensor of demo-gpt2 has 'c_attm' in its name, "
            "shape, dtype or file: did you mean 'c_attn'? `overview --tensors` lists all 52.",
        ),
        (("report", "demo-bert", "-o", "report.txt"), "report.txt must end in .html, .zip or .md: rename it."),
        (
            ("report", "demo-bert", "-o", "no-such-folder/report.html"),
            "report.html cannot be written, because its folder does not exist: create the folder first.",
        ),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_refusals_are_one_sentence_and_status_2(call, arguments, sentence, as_json):
    status, stdout, stderr = call(*arguments, *(["--json"] if as_json else []))
    assert (status, stdout, stderr) == (2, "", f"{sentence}\n")


@pytest.mark.parametrize(
    ("verb", "shown"),
    [
        ("overview", "Masked LM"),
        ("sharing", "tied"),
        ("classes", "BertForPreTrainingOutput"),
        ("embeddings", "[PAD]"),
        ("project", "of the 15 true neighbors kept"),
        ("padding", "They agree"),
    ],
)
def test_tables_for_people(call, verb, shown):
    status, stdout, _ = call(verb, "demo-bert")
    assert status == 0
    assert not stdout.startswith("{")
    assert shown in stdout


def test_the_module_prints_json_and_nothing_else(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "inspector", "overview", "demo-gpt2", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=True,
        env={"PATH": "/usr/bin:/bin", "INSPECTOR_HOME": str(tmp_path)},
    )  # fmt: skip
    assert json.loads(done.stdout)["name"] == "demo-gpt2"
    assert done.stderr == ""


def test_wrong_setting_is_one_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "inspector", "overview", "demo-gpt2"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "INSPECTOR_HOME": str(tmp_path), "INSPECTOR_DEVICE": "tpu"},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "INSPECTOR_DEVICE is 'tpu': set it to one of auto, cpu, cuda, mps, spread, stream.\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("text", "layers"), [("0", (0,)), ("0,2", (0, 2)), ("0-3", (0, 1, 2, 3)), ("1-2,5", (1, 2, 5))]
)
def test_layers(text, layers):
    assert from_query(LensRequest, {"text": "a", "layers": text}).layers == layers


@pytest.mark.parametrize("targets", [(",",), ("dog", ",", "cat"), ('"',), ('a "b", c',)])
def test_every_token_can_be_a_target_in_a_link_and_on_the_command_line(targets):
    asked = PredictRequest(text="a [MASK].", targets=targets)
    assert from_query(PredictRequest, asked.to_query()) == asked
    (written,) = (word for word in asked.to_argv() if word.startswith("--targets="))
    assert parse_list(written.removeprefix("--targets=")) == targets


def test_the_version_is_printed():
    done = CliRunner().invoke(cli.app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"{inspector.__version__}\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("demo-bret", "demo-bert"),
        ("models/my-brt", "models/my-bert"),
        ("my-modl", "my-model"),
        ("modles/my-bert", "models/my-bert"),
        ("./modles/my-brt", "models/my-bert"),
        ("models/my-bret/model.safetensors", "models/my-bert/model.safetensors"),
    ],
)
def test_a_mistyped_path_is_no_hub_id(tmp_path, monkeypatch, typed, meant):
    (tmp_path / "models" / "my-bert").mkdir(parents=True)
    (tmp_path / "models" / "my-bert" / "model.safetensors").touch()
    (tmp_path / "my-model").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=f"did you mean '{meant}'"):
        answering.find_reference(typed)


def test_a_hub_id_beside_a_folder_of_its_organization_is_one(tmp_path, monkeypatch):
    (tmp_path / "google" / "t5-small").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert answering.find_reference("google/bert-base").kind == "hub"


@pytest.mark.parametrize("text", ["3-1", "0,5-2", "one", "1-2-3"])
def test_layers_that_are_none_are_refused(text):
    with pytest.raises(RequestError, match="is neither a number nor a range") as error:
        parse_numbers(text, name="layers")
    assert error.value.option == "layers"
