"""The wheel, installed and started from a folder that has nothing to do with the project."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from inspector.catalog import CATALOG
from inspector.demo import DEMOS
from inspector.program import EXTRAS
from inspector.serving.trial import ROOT, Server, free_port, start_command, wait_until_up
from tests.browser.looking import expect_page, printed_address
from tests.families import VOCAB, random_model, save_checkpoint
from tests.merges import write_merge, write_mixture
from tools.package import build, install

MOST_NBYTES = 25_000_000
# What headers and the tokenizer answer; the others need a class of transformers', which needs torch.
LIGHT = {"overview": (), "tokenize": (), "check": ("--values", "none"), "compare": ("--values", "none")}
BY_CLASS = {"Config and shapes", "Loading", "Heads and weights", "Left-over tensors", "Ties"}
LACKS = "This needs torch, which is not installed: run pip install 'checkpoint-inspector[models]'."
SUBJECTS = {"adapter": "adapter", "experts": "mixture"}  # what is asked about, besides demo-bert
OPTIONS = {
    "verify-merge": ("adapter", "merged"),
    "compare": ("demo-gpt2",),
    "base": ("demo-gpt2",),
    "contrast": ("--first", "a [MASK].", "--second", "the [MASK]."),
    "tokenize": ("--text", "a dog"),
    "predict": ("--text", "a [MASK]."),
    "plausibility": ("--text", "a dog."),
    "ladder": ("--text", "a [MASK].", "--position", "2"),
    "lens": ("--text", "a [MASK]."),
    "similarity": ("--text", "a dog.", "--text", "a cat.", "--pooling", "mean"),
    "heads": ("--text", "a dog.", "--pair", "it barks."),
    "pretrain": ("--text", "a dog.", "--pair", "it barks."),
}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def commands(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment that has the wheel."""
    return install(built[0], tmp_path_factory.mktemp("installed") / "venv")


@pytest.fixture(scope="module")
def light_commands(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of one in which nobody has installed what models need."""
    return install(built[0], tmp_path_factory.mktemp("light") / "venv", without=EXTRAS["models"])


def environment(commands: Path, home: Path) -> dict[str, str]:
    """A shell's environment with these commands first, and nothing of the project."""
    path = os.pathsep.join((str(commands), os.environ["PATH"]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return kept | {"PATH": path, "INSPECTOR_HOME": str(home), "STREAMLIT_SERVER_HEADLESS": "true"}


def run(line: str, commands: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Type a line into a shell in a folder."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder, env=environment(commands, folder / "home"), capture_output=True, text=True, check=False,
    )  # fmt: skip


@contextmanager
def served(folder: Path, commands: Path, *words: str) -> Iterator[Server]:
    """The app as a command starts it."""
    port = free_port()
    command = [str(commands / "checkpoint-inspector"), *words, f"--port={port}"]
    server = start_command(folder, command, port=port, cwd=folder, **environment(commands, folder / "home"))
    try:
        wait_until_up(server)
        yield server
    finally:
        server.stop()
    assert server.complaints() == []


def test_it_puts_one_package_into_an_environment_and_is_small(built: tuple[Path, Path]) -> None:
    wheel, source = built
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"inspector", "checkpoint_inspector"}
    assert {"inspector/py.typed", "inspector/_app/app.py", "inspector/_app/.streamlit/config.toml"} <= {*names}
    pages = {f"inspector/_app/{path.relative_to(ROOT)}" for path in ROOT.glob("pages/**/*") if path.is_file()}
    assert {name for name in pages if "__pycache__" not in name} <= {*names}
    assert not [name for name in names if name.endswith(".pyc")]
    assert wheel.stat().st_size < MOST_NBYTES
    assert source.stat().st_size < MOST_NBYTES
    with tarfile.open(source) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"app.py", "pages", "inspector", "tests", "Makefile", "pyproject.toml"} <= top


def write_subject(verb: str, folder: Path) -> None:
    """Write what a verb is asked about, where that is not bundled."""
    if verb in ("adapter", "verify-merge"):
        write_merge(DEMOS["demo-bert"].folder, folder)
    if verb == "experts":
        write_mixture(folder)


@pytest.mark.parametrize("verb", sorted(CATALOG))
def test_each_verb_answers_in_another_folder(commands: Path, tmp_path: Path, verb: str) -> None:
    write_subject(verb, tmp_path)
    line = shlex.join(["checkpoint-inspector", verb, SUBJECTS.get(verb, "demo-bert"), *OPTIONS.get(verb, ()), "--json"])
    done = run(line, commands, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_a_report_the_short_name_and_the_library(commands: Path, tmp_path: Path) -> None:
    done = run("hf-inspect report demo-bert -o r.html --sections overview,training", commands, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "checkpoint-inspector training demo-bert" in (tmp_path / "r.html").read_text()
    code = "import inspector; print(inspector.open('demo-bert').lens('a [MASK].').to_frame().shape[0] > 0)"
    done = run(shlex.join(["python", "-c", code]), commands, tmp_path)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_the_app_opens_a_folder_and_prints_commands_that_work(page: Page, commands: Path, tmp_path: Path) -> None:
    folder = tmp_path / "it's my model"
    shutil.copytree(DEMOS["demo-bert"].folder, folder)
    with served(tmp_path, commands, f"./{folder.name}") as server:
        page.goto(printed_address(server))
        expect_page(page, "overview", folder.name)
        page.goto(f"{server.url}/training")
        expect_page(page, "training", folder.name)
        line = page.locator("code", has_text="checkpoint-inspector training").inner_text()
    done = run(line, commands, tmp_path)
    assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.parametrize("verb", sorted(CATALOG))
def test_without_torch_what_headers_tell_is_answered_and_the_rest_says_what_it_lacks(
    light_commands: Path, commands: Path, tmp_path: Path, verb: str
) -> None:
    write_subject(verb, tmp_path)
    options = [*OPTIONS.get(verb, ()), *LIGHT.get(verb, ())]
    line = shlex.join(["checkpoint-inspector", verb, SUBJECTS.get(verb, "demo-bert"), *options, "--json"])
    done = run(line, light_commands, tmp_path)
    if verb not in LIGHT:
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{LACKS}\n")
        return
    assert done.returncode == (3 if verb == "check" else 0), done.stderr  # which needs the class for some
    here, there = json.loads(done.stdout), json.loads(run(line, commands, tmp_path).stdout)
    if verb == "check":
        checks = [{each["name"]: each for each in answer["checks"]} for answer in (here, there)]
        for name in BY_CLASS:
            said = checks[0].pop(name)
            assert (said["status"], said["checked"], said["detail"]) == ("warn", False, f"Not checked: {LACKS}")
            assert checks[1].pop(name)["checked"]
        assert checks[0] == checks[1]
    elif verb == "compare":
        (lacks,) = set(here["warnings"]) - set(there["warnings"])
        assert lacks.startswith("Ties are not compared, ")
        assert lacks.endswith(LACKS)
        assert (here["tensors"], here["counts"]) == (there["tensors"], there["counts"])
    else:
        assert here == there


@pytest.mark.parametrize("architecture", ["ModernBertForMaskedLM", "T5ForConditionalGeneration"])
def test_without_torch_a_family_that_names_do_not_tell_is_described_and_says_so(
    light_commands: Path, tmp_path: Path, architecture: str
) -> None:
    model = random_model(architecture)
    folder = save_checkpoint(model, tmp_path / architecture)
    done = run(f"checkpoint-inspector overview {folder} --json", light_commands, tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["layers"] == model.config.num_hidden_layers
    assert (told["vocab_rows"], told["tokenizer"]["size"]) == (VOCAB, VOCAB)
    (lacks,) = told["warnings"]
    assert lacks.startswith("The model's class could not be asked, so names alone decide: ")
    assert lacks.endswith(LACKS)
    for verb, *options in (("tokenize", "--text", "w1"), ("check", "--values", "none")):
        done = run(
            shlex.join(["checkpoint-inspector", verb, str(folder), *options, "--json"]), light_commands, tmp_path
        )
        assert done.returncode == (3 if verb == "check" else 0), done.stderr
        assert json.loads(done.stdout)


def test_without_torch_the_library_and_the_app_say_what_is_missing(
    page: Page, light_commands: Path, tmp_path: Path
) -> None:
    code = "import inspector; c = inspector.open('demo-bert'); print(c.overview().model_type); c.embeddings()"
    done = run(shlex.join(["python", "-c", code]), light_commands, tmp_path)
    assert done.stdout == "bert\n"
    assert done.stderr.rstrip().endswith(LACKS)
    with served(tmp_path, light_commands) as server:
        assert LACKS in server.log.read_text()
        page.goto(printed_address(server))
        expect_page(page, "overview", "demo-bert")
        page.goto(f"{server.url}/checks")
        expect(page.get_by_text("All weights are stored as float32.")).to_be_visible()
        expect(page.get_by_text(LACKS, exact=True)).to_be_visible()
        page.goto(f"{server.url}/lens")
        expect(page.get_by_text(LACKS)).to_be_visible()
