"""What a GGUF file says of its tokenizer: whether it is read here, and its chat template."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.store.generation import read_templates
from inspector.store.names import TEMPLATE
from inspector.text import quoted

MODEL, SPLIT, CHAT = "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.chat_template"
BYTE_LEVEL = "gpt2"
KINDS = frozenset({"llama", BYTE_LEVEL, "t5", "gemma4"})
# How byte-level texts are split into words, by llama.cpp's names (src/llama-vocab.cpp): as transformers'
# gguf_tokenizer_mapping has them, as GPT-2, and as GPT-2 with every digit by itself.
# After WHOLE_WORDS, llama.cpp takes a word that is a token without merges, and begins texts with bos.
WHOLE_WORDS = frozenset(
    {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken"}
)
IN_LIBRARY = WHOLE_WORDS | {
    *("dbrx", "smaug-bpe", "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "qwen35"),
    *("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"),
}
AS_GPT2 = frozenset({"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "gigachat", "jina-es", "jina-de"})
DIGITS_APART = frozenset({"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"})
NO_TOKENS = "the file brings no tokens"
OTHER_KIND = "its kind, {kind}, is not known here"
OTHER_SPLIT = "how it splits texts into words, {split}, is not known here"


def why_not_read(metadata: Mapping[str, Any]) -> str:
    """Why a tokenizer is not read, as the end of a sentence; "" if it is."""
    kind, split = metadata.get(MODEL), metadata.get(SPLIT)
    if "tokenizer.ggml.tokens" not in metadata or kind in (None, "none"):
        return NO_TOKENS
    if kind not in KINDS:
        return OTHER_KIND.format(kind=quoted(str(kind), 40))
    if kind == BYTE_LEVEL and split not in IN_LIBRARY | AS_GPT2 | DIGITS_APART:
        return OTHER_SPLIT.format(split="which the file does not say" if split is None else quoted(str(split), 40))
    return ""


def stage_template(metadata: Mapping[str, Any], folder: Path) -> None:
    """Write the chat template into the staged folder, as a file of its own."""
    template = read_templates(metadata.get(CHAT))
    if isinstance(template, str):
        (folder / TEMPLATE).write_text(template, encoding="utf-8")
