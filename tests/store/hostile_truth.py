"""What transformers, torch and safetensors say of the same files, to compare an answer with."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForMaskedLM, AutoTokenizer

TEXTS = ("w1 a w2", "w2")  # that are tokenized
LENS_TEXT = "w1 w2"
TOLERANCE = 1e-4  # of a probability
DISTANCE = 1e-3  # of a dot product
PLACES = ("layer", "position", "token_id", "score")
LARGEST = 10_000_000  # bytes of a file that is looked at to know it again
LOADED = ("config", "generation_config", "model", "pytorch_model", "adapter")  # how names of what a model needs begin
_MADE: dict[tuple[Any, ...], Any] = {}  # by the files that it was made of
BUFFER = "e_score_correction_bias"  # of DeepSeek's, which is no parameter
NUMPY = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "BOOL": "?", "U8": "u1", "I8": "i1"},
    **{f"{sign}{bits}": f"<{sign.lower()}{bits // 8}" for sign in "IU" for bits in (16, 32, 64)},
}
DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "BOOL": "bool", "C64": "complex64"}


def agrees(verb: str, result: Any, folder: Path) -> bool | None:
    """Whether an answer is what the libraries read from the same folder; None: they read nothing from it.

    Args:
        verb: Of the question.
        result: What was answered.
        folder: Of the checkpoint; of an archive, the folder that was packed.
    """
    compare = COMPARED.get(verb)
    return compare(result, folder) if compare else None


def _once(kind: str, files: Iterator[Path], make: Callable[[], Any]) -> Any:
    """What is made of some files, or has been made of others of the same names and bytes; nobody changes it."""
    held = []
    for path in sorted(files):
        if not path.is_file() or path.stat().st_size > LARGEST:
            return make()
        held.append((path.name, hashlib.sha256(path.read_bytes()).digest()))
    key = (kind, *held)
    if key not in _MADE:
        _MADE[key] = make()
    return _MADE[key]


def _model(result: Any, folder: Path) -> Any:
    """The model that transformers loads, in an answer's dtype; None where the files lack a weight of it."""
    files = (path for path in folder.iterdir() if path.name.startswith(LOADED))
    return _once(f"a model in {result.dtype}", files, lambda: _loaded(result, folder))


def _loaded(result: Any, folder: Path) -> Any:
    try:
        model, info = AutoModelForMaskedLM.from_pretrained(
            folder, local_files_only=True, output_loading_info=True, dtype=getattr(torch, result.dtype)
        )
    except Exception:  # of many kinds: for transformers, too, it is damaged
        return None
    return None if info["missing_keys"] or info["mismatched_keys"] or info.get("error_msgs") else model.eval()


def _forward(model: Any, ids: Any) -> Any:
    """What the model returns; None where it does not run."""
    try:
        with torch.inference_mode():
            return model(input_ids=torch.tensor([ids]), output_hidden_states=True, return_dict=True)
    except Exception:  # a setting that this tool leaves out stops it
        return None


def _prediction(result: Any, folder: Path) -> bool | None:
    """Each probability, computed by the model that transformers loads, if that has all its weights."""
    model = _model(result, folder)
    output = model and _forward(model, result.token_ids)
    if not output:
        return None
    logits = output.logits[0].double()
    return all(
        _are_likely(mask.predictions["token_id"], mask.predictions["probability"], logits[mask.position])
        for mask in result.masks
    )


def _are_likely(ids: Any, probabilities: Any, logits: torch.Tensor) -> bool:
    expected = logits.softmax(0)[torch.tensor(list(ids))].tolist()
    return all(abs(one - other) <= TOLERANCE for one, other in zip(expected, probabilities, strict=True))


def _lens(result: Any, folder: Path) -> bool | None:
    """The last layer's logits by transformers' forward pass, and every layer's dot product with the embeddings."""
    model, tokenizer = _model(result, folder), _tokenizer(folder)
    if model is None or tokenizer is None:
        return None
    ids = tokenizer.encode(LENS_TEXT).ids
    if (output := _forward(model, ids)) is None:
        return None
    states = torch.stack(output.hidden_states)[:, 0].double()
    with torch.inference_mode():
        dots = states @ model.get_input_embeddings().weight.double().T
    if len(ids) != len(result.tokens) or len(states) != len(result.layers):
        return False
    cells = result.cells
    ends = cells[(cells["rung"] == "logits") & (cells["layer"] == len(states) - 1)]
    at = {name: torch.tensor(cells.loc[cells["rung"] == "dot", name].tolist()) for name in PLACES}
    right = torch.allclose(
        dots[at["layer"], at["position"], at["token_id"]], at["score"].double(), rtol=TOLERANCE, atol=DISTANCE
    )
    return right and all(
        _are_likely(rows["token_id"], rows["probability"], output.logits[0, place].double())
        for place, rows in ends.groupby("position")
    )


def _tokenization(result: Any, folder: Path) -> bool | None:
    """The ids that transformers gives, or the tokenizers library where it gives none, each text by itself."""
    if (tokenizer := _tokenizer(folder)) is None:
        return None
    expected = [tokenizer.encode(text).ids for text in TEXTS]
    real = [[row[0] for row in zip(ids, mask, strict=True) if row[1]] for ids, mask in _sequences(result)]
    return real == expected


def _sequences(result: Any) -> Iterator[tuple[list[int], list[int]]]:
    return zip(result.batch["ids"], result.batch["attention_mask"], strict=True)


def _tokenizer(folder: Path) -> Tokenizer | None:
    """The files as transformers reads them, or else tokenizer.json alone."""
    files = (path for path in folder.iterdir() if path.suffix not in READ)
    return _once("a tokenizer", files, lambda: _read_tokenizer(folder))


def _read_tokenizer(folder: Path) -> Tokenizer | None:
    whole, words = folder / "tokenizer.json", folder / "vocab.txt"
    try:
        try:
            found: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True).backend_tokenizer
            found.no_padding()
            found.encode("a ☃")  # some classes make what fails of another kind of file
        except Exception:
            found = Tokenizer.from_file(str(whole))
        if not whole.exists() and {*words.read_text("utf-8").split()} != found.get_vocab().keys():
            return None  # its class wants other files, or makes up tokens
    except BaseException:  # a panic of the library's is no Exception
        return None
    found.no_padding()
    found.no_truncation()
    return found


def _checks(result: Any, folder: Path) -> bool | None:
    """Which tensors hold NaN or infinity, how often, or nothing but zeros: by NumPy, or what torch's reader gives."""
    suffix = ".safetensors" if any(folder.glob("*.safetensors")) else ".bin"
    try:
        tensors = {name: each for path in folder.glob(f"*{suffix}") for name, each in NUMBERS[suffix](path)}
    except Exception:
        return None
    checks = [each for each in result.checks if each.name in ("NaN and infinity", "Zero tensors")]
    if not tensors or not all(each.checked for each in checks):
        return None
    counted = {
        (name, problem): count for name, numbers in tensors.items() for problem, count in _counts(numbers) if count
    }
    found = [each for check in checks for each in check.evidence]
    listed = {(each.subject, each.problem): each.count for each in found if each.problem in COUNTED}
    others = sum(each.problem not in COUNTED for each in found)  # rows of one number, where the vocabulary is not read
    return sum(check.found for check in checks) == len(counted) + others and counted == listed


COUNTED = ("holds NaN", "holds infinity", "all zeros")


def _counts(numbers: np.ndarray) -> Iterator[tuple[str, int]]:
    nan, infinity, zeros = COUNTED
    yield nan, int(np.isnan(numbers).sum())
    yield infinity, int(np.isinf(numbers).sum())
    is_matrix = sum(size > 1 for size in numbers.shape) > 1
    yield zeros, 0 if numbers.any() or not is_matrix else numbers.size


def _stored_numbers(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    for name, each in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = each["data_offsets"]
            yield name, _decoded(each["dtype"], data[8 + size + begin : 8 + size + end]).reshape(each["shape"])


def _decoded(dtype: str, data: bytes) -> np.ndarray:
    if dtype == "BF16":  # the upper half of a float32
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(data, NUMPY[dtype])


def _saved_numbers(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    for name, tensor in _state(path).items():
        yield name, tensor.double().numpy() if not tensor.is_complex() else tensor.numpy()


def _overview(result: Any, folder: Path) -> bool | None:
    """How many numbers of each dtype the files hold, by their headers or by torch's own restricted reader."""
    counts: Counter[str] = Counter()
    for path in folder.iterdir():
        with suppress(Exception):  # a file that cannot be read holds none
            for dtype, count in READ[path.suffix](path):
                counts[dtype] += count
    return dict(counts) == result.dtypes if counts else None


def _safetensors(path: Path) -> Iterator[tuple[str, int]]:
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    listed = (each for name, each in header.items() if name != "__metadata__" and not name.endswith(BUFFER))
    return ((DTYPES[each["dtype"]], math.prod(each["shape"])) for each in listed)


def _pytorch(path: Path) -> Iterator[tuple[str, int]]:
    return ((str(each.dtype).removeprefix("torch."), each.numel()) for each in _state(path).values())


def _state(path: Path) -> dict[str, torch.Tensor]:
    state = torch.load(path, weights_only=True, map_location="cpu")  # noqa: TID251 - the other opinion
    while isinstance(nested := state.get("state_dict", state.get("model")), dict):
        state = nested
    return {name: each for name, each in state.items() if isinstance(each, torch.Tensor)}


READ: dict[str, Callable[[Path], Iterator[tuple[str, int]]]] = {".safetensors": _safetensors, ".bin": _pytorch}
NUMBERS: dict[str, Callable[[Path], Iterator[tuple[str, np.ndarray]]]] = {
    ".safetensors": _stored_numbers,
    ".bin": _saved_numbers,
}
COMPARED: dict[str, Callable[[Any, Path], bool | None]] = {
    "check": _checks,
    "lens": _lens,
    "overview": _overview,
    "predict": _prediction,
    "tokenize": _tokenization,
}
