"""Which files a checkpoint may consist of, by basename."""

from __future__ import annotations

import re

MAX_CHECKPOINT_NAME = 80  # characters
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,119}")

# sentence-transformers' list of what it runs, and its settings of the first of them, under older names too
MODULES = "modules.json"
SENTENCE_SETTINGS = "config_sentence_transformers.json"  # of the whole: prompts, and which score compares two texts
SENTENCE_CONFIGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
INNER = re.compile(r"0_[A-Za-z0-9_-]{1,80}")  # the folder of the first, where it has one
# The folders of those after it. A checkpoint's files lie in one folder, so theirs are called "1_Pooling+config.json".
MODULE_FOLDER = re.compile(r"[1-9][0-9]?_[A-Za-z0-9_-]{1,40}")
MODULE_FILES = ("config.json", "model.safetensors", "pytorch_model.bin")
GENERATION = "generation_config.json"
TEMPLATE = "chat_template.jinja"
PARAMS = "params.json"  # Mistral's settings
# The source of a model on the hub whose headers alone were fetched, and the folder below home that keeps them
HEADERS = "headers"
# Basename -> format; whatever transformers reads beside the weights, code left out.
CONFIGS = {
    "config.json": "json",
    GENERATION: "json",
    TEMPLATE: "text",
    "tokenizer_config.json": "json",
    "special_tokens_map.json": "json",
    "added_tokens.json": "json",
    "adapter_config.json": "json",
    PARAMS: "json",
    **dict.fromkeys((MODULES, SENTENCE_SETTINGS, *SENTENCE_CONFIGS), "json"),
}
VOCABULARIES = {
    "tokenizer.json": "json",
    "vocab.json": "json",
    "vocab.txt": "text",
    "merges.txt": "text",
    "dict.txt": "text",
    "bpe.codes": "text",
    "spiece.model": "sentencepiece",
    "spm.model": "sentencepiece",
    "tokenizer.model": "sentencepiece",
    "sentencepiece.model": "sentencepiece",
    "sentencepiece.bpe.model": "sentencepiece",
    "tiktoken.model": "text",
}
INDEXES = {"model.safetensors.index.json": "json", "pytorch_model.bin.index.json": "json"}
WEIGHT_SUFFIXES = {
    ".safetensors": "safetensors",
    **dict.fromkeys((".bin", ".pt", ".pth", ".ckpt"), "pytorch"),
    ".gguf": "gguf",
}
# What a training run leaves beside the weights: same suffixes, but no weights of the model.
NOT_WEIGHTS = re.compile(
    r"(training_args|optimizer|scheduler|scaler|rng_state|random_states|trainer_state|(bf16_)?zero_pp_rank_).*"
)
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")


def file_format(name: str) -> str | None:
    """The format of a file that a checkpoint may hold; None for every other file."""
    if not PLAIN_NAME.fullmatch(name) or NOT_WEIGHTS.fullmatch(name):
        return None
    for table in (CONFIGS, VOCABULARIES, INDEXES):
        if name in table:
            return table[name]
    return "json" if is_config(name) else weight_format(name)


def module_file(folder: str, name: str) -> str | None:
    """What a checkpoint calls a file in the folder of a module; None: it is not read."""
    return f"{folder}+{name}" if MODULE_FOLDER.fullmatch(folder) and name in MODULE_FILES else None


def is_of_module(name: str) -> bool:
    """Whether a file is of a module that sentence-transformers runs after the transformer."""
    folder, plus, file = name.partition("+")
    return bool(plus) and module_file(folder, file) is not None


def is_config(name: str) -> bool:
    """Whether a file is a configuration, which is written anew."""
    return name in CONFIGS or (is_of_module(name) and name.endswith("+config.json"))


def shown_name(name: str) -> str:
    """A file's name as a reader knows it, with its folder where that is a module's."""
    return name.replace("+", "/", 1) if is_of_module(name) else name


def weight_format(name: str) -> str | None:
    """The format of a weight file, by its suffix."""
    return next((form for end, form in WEIGHT_SUFFIXES.items() if name.endswith(end)), None)


def is_archive(name: str) -> bool:
    """Whether a file is an archive that can be unpacked, by its suffix."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def clean_name(name: str) -> str:
    """A checkpoint's name for the list: printable, and neither empty nor too long."""
    printable = "".join(char for char in name if char.isprintable()).strip()
    return printable[:MAX_CHECKPOINT_NAME] or "checkpoint"


def is_text(value: str) -> bool:
    """Whether a text has no lone surrogates, which no encoding can write."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
