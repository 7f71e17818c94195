"""Write a model as one repository or another lays it out: its names, copies, shards, tokenizer, other files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedModel

from tests.pipelines import OLD, add_modules, set_config, write_json

State = dict[str, torch.Tensor]
WORDS = ["the", "dog", "is", "an", "animal", "a", "cat"]
BERT_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
FAIRSEQ_WORDS = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, "<mask>"]
GPT_WORDS = [*WORDS, "<|endoftext|>"]
LLAMA_WORDS = ["<unk>", "<s>", "</s>", *WORDS]
GEMMA_WORDS = ["<pad>", "<eos>", "<bos>", "<unk>", *WORDS]
T5_WORDS = ["<pad>", "</s>", "<unk>", *WORDS]
BERT_ROLES = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
FAIRSEQ_ROLES = {
    "bos": "<s>",
    "eos": "</s>",
    "sep": "</s>",
    "cls": "<s>",
    "unk": "<unk>",
    "pad": "<pad>",
    "mask": "<mask>",
}
GPT_ROLES: dict[str, str] = dict.fromkeys(("bos", "eos", "unk"), "<|endoftext|>")
QWEN_ROLES = {"eos": "<|im_end|>", "pad": "<|endoftext|>"}
LLAMA_ROLES = {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
GEMMA_ROLES = {"bos": "<bos>", "eos": "<eos>", "unk": "<unk>", "pad": "<pad>"}
T5_ROLES = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A tokenizer's tokens, and which of them have a part to play."""

    words: list[str]
    roles: Mapping[str, str]


LLAMA_PADDED = Vocabulary([*LLAMA_WORDS, "<|endoftext|>"], {**LLAMA_ROLES, "pad": "<|endoftext|>"})
BLOOM = Vocabulary([*LLAMA_WORDS[:3], "<pad>", *WORDS], {**LLAMA_ROLES, "pad": "<pad>"})
GPT_PADDED = Vocabulary(GPT_WORDS, {**GPT_ROLES, "pad": "<|endoftext|>"})
SIGLIP = Vocabulary(T5_WORDS, {"eos": "</s>", "unk": "<unk>", "pad": "</s>"})
BERT = Vocabulary(BERT_WORDS, BERT_ROLES)
FAIRSEQ = Vocabulary(FAIRSEQ_WORDS, FAIRSEQ_ROLES)
GPT = Vocabulary(GPT_WORDS, GPT_ROLES)
QWEN = Vocabulary([*GPT_WORDS, "<|im_start|>", "<|im_end|>"], QWEN_ROLES)
LLAMA = Vocabulary(LLAMA_WORDS, LLAMA_ROLES)
LLAMA3 = Vocabulary([*WORDS, "<|begin_of_text|>", "<|eot_id|>"], {"bos": "<|begin_of_text|>", "eos": "<|eot_id|>"})
GEMMA = Vocabulary(GEMMA_WORDS, GEMMA_ROLES)
T5_VOCABULARY = Vocabulary(T5_WORDS, T5_ROLES)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a repository is laid out."""

    architecture: str  # the class that is built
    vocabulary: Vocabulary | None
    sizes: Mapping[str, Any]  # of its config
    rows: int | None = None  # of the embedding matrix; None: as many as tokens
    part: str = ""  # the attribute that is saved: the base model, or "" for the whole
    config: Mapping[str, Any] = field(default_factory=dict)  # what its config.json says otherwise
    change: Callable[[State], State] = lambda state: state  # of what is stored
    beside: Callable[[Path], object] = lambda folder: None  # what else lies in the folder
    shards: int = 1
    pickled: bool = False


def build(layout: Layout, folder: Path) -> Path:
    """Write a layout's folder."""
    sizes = dict(layout.sizes)
    if layout.vocabulary:
        sizes["vocab_size"] = layout.rows or len(layout.vocabulary.words)
    model_class = getattr(transformers, layout.architecture)
    torch.manual_seed(0)
    model: PreTrainedModel = model_class(model_class.config_class(**sizes))
    saved = getattr(model, layout.part) if layout.part else model
    saved.save_pretrained(folder)
    state = stored_state(folder)
    write_weights(folder, layout.change(state), shards=layout.shards, pickled=layout.pickled)
    set_config(folder, **layout.config)
    if layout.vocabulary:
        write_tokenizer(folder, layout.vocabulary)
    layout.beside(folder)
    return folder


def stored_state(folder: Path) -> State:
    """What a class saved, copies of its own."""
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def write_weights(folder: Path, state: State, *, shards: int, pickled: bool) -> None:
    """Write tensors as one file, as numbered shards with an index, or as the older archive of PyTorch."""
    path = folder / "model.safetensors"
    path.unlink()
    state = {name: tensor.contiguous().clone() for name, tensor in state.items()}
    if pickled:
        torch.save(state, folder / "pytorch_model.bin")
        return
    if shards == 1:
        save_file(state, path, metadata={"format": "pt"})
        return
    names, files = list(state), {}
    for number in range(shards):
        part = names[number::shards]
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        save_file({name: state[name] for name in part}, folder / file, metadata={"format": "pt"})
        files |= dict.fromkeys(part, file)
    total = sum(each.nbytes for each in state.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": files})


def write_tokenizer(folder: Path, vocabulary: Vocabulary) -> None:
    """Write tokenizer.json and the settings that name the special tokens."""
    ids = {word: number for number, word in enumerate(vocabulary.words)}
    unknown = vocabulary.roles.get("unk", vocabulary.words[0])
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [word for word in vocabulary.words if word in set(vocabulary.roles.values()) or word[0] in "<["]
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {f"{role}_token": word for role, word in vocabulary.roles.items()}
    write_json(folder / "tokenizer_config.json", {**roles, "tokenizer_class": "PreTrainedTokenizerFast"})


def renamed(state: State, *pairs: tuple[str, str]) -> State:
    """Names with some texts replaced."""
    changed = {}
    for name, tensor in state.items():
        for text, instead in pairs:
            name = name.replace(text, instead)  # noqa: PLW2901
        changed[name] = tensor
    return changed


def without(state: State, *beginnings: str) -> State:
    """Tensors whose names do not begin so."""
    return {name: tensor for name, tensor in state.items() if not name.startswith(beginnings)}


def prefixed(state: State, prefix: str) -> State:
    """Every name with a prefix."""
    return {f"{prefix}{name}": tensor for name, tensor in state.items()}


def plus(state: State, more: Mapping[str, tuple[int, ...]], dtype: torch.dtype = torch.float32) -> State:
    """Further tensors of these shapes."""
    torch.manual_seed(1)
    return state | {name: torch.randn(shape).to(dtype) for name, shape in more.items()}


def with_positions(state: State, name: str, count: int = 64) -> State:
    """With the table of positions that older classes saved."""
    return state | {name: torch.arange(count)[None]}


def masks(state: State, pattern: str, layers: int = 2, size: int = 64, dtype: torch.dtype = torch.float32) -> State:
    """With the causal masks that older classes saved."""
    ones = torch.ones(size, size, dtype=dtype).tril()[None, None]
    return state | {pattern.format(layer): ones.clone() for layer in range(layers)}


def frequencies(state: State, pattern: str, layers: int = 2, size: int = 8) -> State:
    """With the rotary frequencies that older classes saved."""
    return state | {pattern.format(layer): torch.rand(size) + 0.1 for layer in range(layers)}


def twice(state: State, name: str, *copies: str) -> State:
    """With copies of a tensor under other names."""
    return state | {copy: state[name].clone() for copy in copies}


def bert_as_first_saved(state: State) -> State:
    """As the first classes of 2018 named it: a norm's numbers are gamma and beta."""
    names = ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")
    state = twice(renamed(state, *names), "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight")
    return with_positions(state, "bert.embeddings.position_ids")


def deberta_v3(state: State) -> State:
    """With the two heads of its training, which no class of transformers has."""
    heads = {
        f"{head}.{part}.{kind}": (32, 32) if (part, kind) == ("dense", "weight") else (32,)
        for head in ("lm_predictions.lm_head", "mask_predictions")
        for part in ("dense", "LayerNorm")
        for kind in ("weight", "bias")
    }
    more = {
        "lm_predictions.lm_head.bias": (12,),
        "mask_predictions.classifier.weight": (1, 32),
        "mask_predictions.classifier.bias": (1,),
    }
    return plus(prefixed(state, "deberta."), heads | more)


def pythia(state: State) -> State:
    """With masks, and a number that once stood for minus infinity."""
    state = masks(state, "gpt_neox.layers.{}.attention.bias", dtype=torch.bool)
    state |= {f"gpt_neox.layers.{layer}.attention.masked_bias": torch.tensor(-1e9) for layer in range(2)}
    return frequencies(state, "gpt_neox.layers.{}.attention.rotary_emb.inv_freq")


def esm(state: State) -> State:
    state = with_positions(state, "esm.embeddings.position_ids", 66)
    state = plus(state, {"esm.embeddings.position_embeddings.weight": (66, 32)})
    return frequencies(state, "esm.encoder.layer.{}.attention.self.rotary_embeddings.inv_freq")


def next_tokens(state: State) -> State:
    """With the layer that predicts one token more, after the others."""
    layer = {name.replace("layers.1.", "layers.2."): tensor for name, tensor in state.items() if ".layers.1." in name}
    head = plus(
        {},
        {
            f"model.layers.2.{name}.weight": shape
            for name, shape in {"enorm": (32,), "hnorm": (32,), "eh_proj": (32, 64), "shared_head.norm": (32,)}.items()
        },
    )
    state = state | {name: tensor.clone() for name, tensor in layer.items()} | head
    state = twice(state, "model.embed_tokens.weight", "model.layers.2.embed_tokens.weight")
    return twice(state, "lm_head.weight", "model.layers.2.shared_head.head.weight")


def original_folder(folder: Path) -> None:
    """Meta's own files, in a folder of their own."""
    (folder / "original").mkdir()
    (folder / "original" / "consolidated.00.pth").write_bytes(b"meta's own weights")
    write_json(folder / "original" / "params.json", {"dim": 32})


def consolidated(folder: Path) -> None:
    """Mistral's own file, beside the shards of transformers' names."""
    torch.manual_seed(2)
    save_file({"tok_embeddings.weight": torch.randn(10, 32)}, folder / "consolidated.safetensors")
    write_json(folder / "params.json", {"dim": 32})


def pipeline(folder: Path, *, types: Iterable[str] = OLD, length: int = 32, more: Iterable[str] = ()) -> None:
    add_modules(folder, (*tuple(types)[:2], *more, *tuple(types)[2:]), max_seq_length=length, do_lower_case=False)
