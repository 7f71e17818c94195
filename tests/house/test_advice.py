"""Advice to delete, replace or rewrite something is given only where its cause is proven, or as a condition.

A sentence of the product that tells somebody to do so either says "if" first, or is in this table, with what proves its
cause where it is written, and with a test that has the proof and expects the sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.house.reading import ROOT, functions_of, parsed

# Steps after which something is gone, is another one, or has to be fetched once more
STEP = re.compile(
    r"(?:^|[:;,] |\b(?:and|or|then) )"
    r"(?:(?:delete|remove|replace|overwrite|drop|rename|resize|keep (?:one|only)|convert|correct|repair|zero)\b"
    r"|(?:save|get|download|copy|write|quantize)\b[^.:]*\b(?:again|once more|itself)\b"
    r"|save (?:only|the (?:weights|model))"
    r"|set (?!INSPECTOR_|it )\w+ (?:in config\.json )?to\b"
    r"|(?:use|put) (?:the|another) config\.json)"
    r"|\bwithout them\.",
    re.IGNORECASE,
)
CONDITION = re.compile(r"\b(?:if|otherwise)\b", re.IGNORECASE)
ENDS = re.compile(r"(?<=\.) (?=[A-Z])")


@dataclass(frozen=True)
class Proven:
    """Sentences of one file that share their proof."""

    file: str
    step: str  # words that they have in common
    proof: str
    given: str  # a test where the cause is there


HEADERS = "tests/store/test_hostile_beyond.py::test_headers_that_lie_past_the_known_ways"
STAGED = "tests/store/test_shared_store.py::test_what_comes_out_of_staging_must_be_what_was_asked_for"
LYING = "tests/store/test_gguf.py::test_a_header_that_lies_is_refused_in_a_sentence"
CUT_OFF = "tests/store/test_store_pytorch.py::test_truncated_files"
READERS = "inspector/store/readers"
BARE = "tests/models/test_bare_tokenizers.py"
TABLE = (
    Proven("inspector/analyses/checks/words_structure.py", "Put the config.json",
           "the folder has no config.json at all",
           "tests/analyses/checks/test_checks.py::test_weights_alone_are_checked_as_far_as_they_go"),
    Proven("inspector/analyses/checks/words_structure.py", "Set tie_word_embeddings to true",
           "what is missing would be tied if the class read the level that says so",
           "tests/models/test_levels.py::test_the_level_is_named_that_ties_and_the_one_that_the_class_reads"),
    Proven(f"{READERS}/safetensors.py", "et the file again", "the file's bytes contradict its own header", HEADERS),
    Proven(f"{READERS}/safetensors.py", "download the file itself", "the bytes are a Git LFS pointer or a web page",
           "tests/store/test_store_refusals.py::test_safetensors_that_lie"),
    Proven(f"{READERS}/gguf.py", "et the file again", "the file's bytes contradict its own header", LYING),
    Proven(f"{READERS}/gguf.py", "convert ", "the file's first bytes give its version and byte order", LYING),
    Proven(f"{READERS}/sentencepiece.py", "et the file again", "the bytes are no message, or no vocabulary",
           f"{BARE}::test_a_file_that_is_no_vocabulary_is_one_sentence"),
    Proven(f"{READERS}/tiktoken.py", "get the file again",
           "a line is no token and rank, or the ranks are no vocabulary",
           f"{BARE}::test_a_file_that_is_no_vocabulary_is_one_sentence"),
    Proven(f"{READERS}/pytorch.py", "et the file again", "the archive contradicts its own directory", CUT_OFF),
    Proven(f"{READERS}/pytorch.py", "Get it again", "storages end past the end of the file", CUT_OFF),
    Proven(f"{READERS}/pytorch.py", "save it again", "read from the file: compressed, big-endian, or not contiguous",
           "tests/store/test_store_pytorch.py::test_compressed_storage_is_refused"),
    Proven(f"{READERS}/pytorch.py", "Save only the weights", "the file holds code or other objects than tensors",
           "tests/store/test_store_pytorch.py::test_code_is_named_and_not_run"),
    Proven(f"{READERS}/pickles.py", "Save only the weights", "the pickle names something that is no tensor",
           "tests/store/test_store_pytorch.py::test_plain_pickle_with_code"),
    Proven(f"{READERS}/pickles.py", "Get the file again", "the pickle ends early or breaks its format", CUT_OFF),
    Proven(f"{READERS}/jsons.py", "get the file again", "the text is no JSON", HEADERS),
    Proven(f"{READERS}/index.py", "get the file again", "the index has no weight_map",
           "tests/store/test_store_refusals.py::test_an_index_without_a_map"),
    Proven(f"{READERS}/archives.py", "get it again", "no program can unpack the archive without a password",
           "tests/store/test_archives_and_links.py::test_broken_and_mislabeled_archives"),
    Proven(f"{READERS}/ranges.py", "copy the file from its source again", "the disk fails while the file is read",
           "tests/store/test_streams.py::test_a_disk_that_fails_is_one_sentence"),
    Proven("inspector/store/tokenizer_files.py", "is empty: get the file again", "a vocabulary of no bytes",
           "tests/store/test_store_refusals.py::test_an_empty_vocabulary"),
    Proven("inspector/store/configs.py", "remove that line",
           "the setting has the name of a method, and would replace it",
           "tests/store/test_store_refusals.py::test_config_that_lies_is_refused_before_anything_is_built"),
    Proven("inspector/store/configs.py", "correct it", "the value has the wrong type, or is no name",
           "tests/store/test_hostile_beyond.py::test_sizes_past_the_known_ways"),
    Proven("inspector/store/sizes.py", "which is not a number of layers: correct it", "the number is negative",
           "tests/store/test_hostile_beyond.py::test_sizes_past_the_known_ways"),
    Proven("inspector/store/origins/sources.py", "replace it with the file itself", "the file is a link",
           "tests/store/test_archives_and_links.py::test_a_link_that_leads_out_of_the_folder_is_refused"),
    Proven("inspector/serving/storing/shared/publishing.py", "delete the upload, and upload it again",
           "a file's hash is not the upload's, or the file is gone",
           "tests/store/test_shared_store.py::test_wrong_bytes_are_refused"),
    Proven("inspector/store/hashing.py", "delete the upload, and upload it again",
           "a stored file's hash is not the upload's",
           "tests/store/test_store_hashing.py::test_stored_weights_are_hashed_before_a_process_uses_their_numbers"),
    Proven("inspector/serving/storing/receiving.py", "delete the upload, and upload it again",
           "the fingerprint is another one", STAGED),
    Proven("inspector/store/disk.py", "delete uploads", "the system says that the disk is full",
           "tests/store/test_large_hostile.py::test_a_disk_that_is_full_while_a_checkpoint_is_opened"),
    Proven("inspector/serving/storing/shared/remote.py", "delete uploads", "the object store says that it is full",
           "tests/store/test_shared_store.py::test_the_stores_errors_become_sentences"),
    Proven("inspector/serving/storing/room.py", "the least recently used", "the upload does not fit beside those there",
           "tests/store/test_store_quota.py::test_a_full_store_refuses_an_upload_and_says_what_to_delete"),
)  # fmt: skip
# Not about a checkpoint's files: labels, names of reports, settings, and what a training script sets
OTHER = (
    "inspector/analyses/what_if", "inspector/analyses/training", "inspector/cli", "pages",
    *(f"inspector/serving/{part}" for part in ("engine", "encoding")),
    *(str(path.relative_to(ROOT)) for path in (ROOT / "inspector/serving").glob("*.py")),
)  # fmt: skip


def texts(node: ast.AST) -> Iterator[str]:
    """Texts of a piece of code that are no documentation, blanks as "…"."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from texts(child)


def steps(text: str) -> list[str]:
    """The sentences of a text that give such a step and no condition for it."""
    said = [
        each for each in ENDS.split(text) if (found := STEP.search(each)) and not CONDITION.search(each[: found.end()])
    ]
    return said if len(text.split()) > 2 else []


@cache
def advice() -> tuple[tuple[str, str], ...]:
    """Every such sentence of the product, with its file."""
    files = [path for part in ("inspector", "pages") for path in sorted((ROOT / part).rglob("*.py"))]
    found = ((str(path.relative_to(ROOT)), text) for path in files for text in texts(parsed(path)))
    return tuple((file, each) for file, text in found if not file.startswith(OTHER) for each in steps(text))


def test_every_step_that_destroys_something_has_its_proof():
    unproven = [
        (file, said) for file, said in advice() if not any(row.file == file and row.step in said for row in TABLE)
    ]
    assert unproven == []


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{Path(row.file).stem}: {row.step}")
def test_what_the_table_lists_is_there(row):
    assert any(row.file == file and row.step in said for file, said in advice())
    file, _, name = row.given.partition("::")
    assert name in functions_of(ROOT / file)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Otherwise, save the model without them.", []),
        ("These belong to a head. Save the model without them.", ["Save the model without them."]),
        ("Put the config.json of these weights here.", ["Put the config.json of these weights here."]),
        ("Compare the digests. If they differ, copy the file again.", []),
        ("It is broken: get the file again. If not, wait.", ["It is broken: get the file again."]),
        ("The tokenizer cannot be read: save them again with save_pretrained().",
         ["The tokenizer cannot be read: save them again with save_pretrained()."]),
        ("Open it again.", []),
    ],
)  # fmt: skip
def test_steps_are_found(text, found):
    assert steps(text) == found
