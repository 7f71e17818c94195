"""What each kind of origin says of itself, and that nobody else asks which kind it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import inspector.serving.storing.origins  # noqa: F401  # those of a server
from inspector.errors import CheckpointError
from inspector.serving.storing.registry import new_upload, write_upload
from inspector.store.origins.origin import Reach
from inspector.store.reference import ORIGINS, CheckpointRef, find_reference, origin_of
from tests.store.store_builders import opened, pack, small_checkpoint, upload_of

ROOT = Path(__file__).parents[2]
REFERENCES = {
    "demo": "demo-bert",
    "upload": "upload:" + "0f" * 32,
    "path": "path:/some/folder",
    "hub": "hub:org/name",
    "incoming": "incoming:" + "0f" * 16,
    "snapshots": "snapshots:" + "0f" * 16,
    "arriving": "arriving:" + "0f" * 16,
    "adapted": "adapted:demo-gpt2,demo-gpt2-adapter",
}


def test_every_kind_reads_its_own_reference_and_no_other():
    assert REFERENCES.keys() == ORIGINS.keys()
    for word, text in REFERENCES.items():
        origin = origin_of(text)
        assert type(origin) is ORIGINS[word]
        assert str(origin) == text == str(CheckpointRef.parse(text))
    for text in ("", "demo", "demo:demo-bert", "upload:xyz", "shared:" + "0f" * 32, "nothing:1", "path:", "hub:a b"):
        with pytest.raises(CheckpointError, match="does not name a checkpoint"):
            origin_of(text)


def test_a_reference_of_a_server_names_nothing_where_there_is_none():
    with pytest.raises(CheckpointError, match="has not been sent to this program"):
        _ = CheckpointRef("elsewhere", "1").origin


def test_what_an_origin_reads_is_what_it_finds(tmp_path, settings):
    folder = small_checkpoint(tmp_path / "mini")
    reach = Reach(settings, restrict_paths=False, fetched=folder)
    archive = pack(folder, tmp_path / "mini.zip")
    weights = folder / "model.safetensors"
    for reference in ("demo-bert", f"path:{folder}", f"path:{weights}", f"path:{archive}", "hub:org/name"):
        origin = origin_of(reference)
        source, reads = origin.find(reach), set(origin.reads(reach))
        assert set(source.files.values()) <= reads
        assert source.packed is None or (source.packed in reads and not source.files)
    assert set(origin_of(f"path:{archive}").reads(reach)) == {archive}
    assert folder in set(origin_of(f"path:{folder}").reads(reach))
    assert folder not in set(origin_of(f"path:{weights}").reads(reach))  # its names are nobody's business


def test_a_folder_is_read_although_nothing_is_found_in_it(tmp_path, settings):
    """Whoever opens it then says what is wrong, and not that it may not look."""
    folder = small_checkpoint(tmp_path / "mini")
    (folder / "tokenizer.json").unlink(missing_ok=True)
    (folder / "tokenizer.json").symlink_to("/etc/hostname")
    reach = Reach(settings, restrict_paths=False)
    reads = origin_of(f"path:{folder}").reads(reach)
    assert next(reads) == folder
    with pytest.raises(CheckpointError, match="is a link"):
        next(reads)


def test_an_upload_is_held_by_its_folder_before_and_after(tmp_path, settings):
    reference = upload_of(settings, small_checkpoint(tmp_path / "mini"))
    (before,) = reference.origin.held(settings)
    assert not list(reference.origin.reads(Reach(settings, restrict_paths=True)))  # else no spare could open it
    assert reference.origin.costs(settings) == sum(path.lstat().st_size for path in before.iterdir()) > 0
    manifest, stored = opened(reference, settings)
    assert not before.exists()
    assert str(stored) == reference.origin.becomes(manifest.fingerprint)
    (entry,) = stored.origin.held(settings)
    assert entry.name == manifest.fingerprint
    digits = origin_of(f"upload:{manifest.fingerprint[:12]}")
    assert list(digits.held(settings)) == [entry]
    assert not list(digits.reads(Reach(settings, restrict_paths=True)))
    assert digits.typed == f"upload:{manifest.fingerprint[:12]}"
    assert stored.origin.typed == f"upload:{manifest.fingerprint[:16]}"


def test_files_of_which_none_is_a_checkpoints_are_none_of_the_workers_own(settings):
    """The server moves what it received; a worker that adds files to that is not believed."""
    upload, folder = new_upload(settings)
    write_upload(folder, "picture.png", b"1")
    source = CheckpointRef("incoming", upload).origin.find(Reach(settings, restrict_paths=True))
    assert source.owned
    assert source.packed is None
    assert source.files == {}


COMMIT = "0123456789" * 4


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        ("org/name@v1.0", "org/name@v1.0"),
        ("https://huggingface.co/org/name", "org/name"),
        ("https://huggingface.co/org/name/", "org/name"),
        ("huggingface.co/org/name/tree/main", "org/name@main"),
        ("https://hf.co/org/name?library=transformers#files", "org/name"),
        ("https://huggingface.co/gpt2", "gpt2"),
        ("https://huggingface.co/gpt2/blob/main/config.json", "gpt2@main"),
        (f"https://huggingface.co/org/name/commit/{COMMIT}", f"org/name@{COMMIT}"),
        ("https://huggingface.co/org/name/tree/refs%2Fpr%2F3/onnx", "org/name@refs/pr/3"),
        ("https://huggingface.co/org/name/resolve/refs/pr/3/a.bin", "org/name@refs/pr/3"),
        ("http://mirror:8080/org/name/tree/v1", "org/name@v1"),
    ],
)
def test_an_address_of_the_hub_names_a_model_and_a_version(monkeypatch, typed, named):
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror:8080")
    assert str(find_reference(typed)) == f"hub:{named}" == str(CheckpointRef.parse(f"hub:{named}"))


@pytest.mark.parametrize(
    "typed",
    [
        "https://example.org/org/name",
        "https://huggingface.co/",
        "https://huggingface.co/org/name/discussions/3",
        "https://huggingface.co/datasets/org/name",
        "https://huggingface.co/org/name/tree/..%2F..%2Fx",
        "https://huggingface.co/org/name/tree/" + "a" * 201,
    ],
)
def test_another_address_is_refused(typed):
    with pytest.raises(CheckpointError, match="is not the address of a model on the hub"):
        find_reference(typed)


@pytest.mark.parametrize("value", ["org/name@", "org/name@../x", "org/name@a/../b", "org/name@/x", "a@b@c", "a@x y"])
def test_no_revision_leads_out_of_the_cache(value):
    with pytest.raises(CheckpointError, match="does not name a checkpoint"):
        origin_of(f"hub:{value}")


def test_a_model_of_the_hub_is_opened_again_by_its_commit():
    for value in ("org/name", "org/name@main", f"org/name@{COMMIT}"):
        origin = origin_of(f"hub:{value}")
        for folder in (Path("snapshots") / COMMIT, Path("headers") / (COMMIT + "0f" * 12)):
            assert origin.becomes("0f" * 32, folder) == f"hub:org/name@{COMMIT}"
        assert origin.becomes("0f" * 32) == str(origin)


def test_what_is_typed_again_names_the_same(tmp_path):
    for text in ("demo-bert", "org/name", str(tmp_path)):
        assert find_reference(text).origin.typed == text


def test_nobody_asks_a_reference_for_its_kind():
    """But `CheckpointRef`, for `ORIGINS`: what differs is asked of the origin."""
    asked = {}
    for path in [*ROOT.glob("inspector/**/*.py"), *ROOT.glob("pages/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if asks_the_kind(node):
                asked.setdefault(path.relative_to(ROOT).as_posix(), []).append(ast.unparse(node))
    assert asked == {
        "inspector/models/checkpoint.py": ["manifest.source != 'upload'"],  # where its files are to be moved to
        "inspector/store/manifests/manifest.py": ["self.source in {OUTLINE, HEADERS}"],
        "inspector/store/origins/snapshots.py": ["word == OnDisk.word"],  # of a run's link
        "pages/_snapshots/runs.py": ["reference.startswith(f'{UPLOADS}:')"],  # likewise
    }


def asks_the_kind(node: ast.AST) -> bool:
    """Whether an expression compares what may hold a kind's word with such a word."""
    if isinstance(node, ast.Attribute) and node.attr == "kind":
        return ast.unparse(node.value).rpartition(".")[2] in {"reference", "ref", "origin"}
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("reference.startswith"):
        return True
    if not isinstance(node, ast.Compare):
        return False
    names = {
        ast.unparse(each).rpartition(".")[2] for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)
    }
    words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return bool(names & {"kind", "source", "word"}) and bool(words & ORIGINS.keys() or names & {"OUTLINE", "OnDisk"})
