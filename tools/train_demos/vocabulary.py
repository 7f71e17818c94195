"""Train the tokenizers of the demo checkpoints and write them as transformers expects."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer, WordPieceTrainer
from transformers import PreTrainedTokenizerFast

from tools.train_demos.batches import SpecialIds

BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
UNUSED = [f"[unused{number}]" for number in range(16)]
END = "<|endoftext|>"
END_ID = 0
ALPHABET = 120
"""Characters with pieces of their own; words with any other become [UNK]."""


def train_bert_tokenizer(lines: tuple[str, ...], vocab_size: int) -> Tokenizer:
    """Learn lower-cased word pieces.

    Args:
        lines: The training text.
        vocab_size: Rows, special and unused tokens included.

    Returns:
        A tokenizer that lays out [CLS] A [SEP] B [SEP]; ids 0..4 are BERT_SPECIAL, then UNUSED.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    characters = Counter("".join(normalizer.normalize_str(line) for line in lines))
    ranked = sorted(characters, key=lambda c: (-characters[c], c))
    alphabet = [c for c in ranked if not c.isspace()][:ALPHABET]
    learner = _bert_frame(models.WordPiece(unk_token="[UNK]"), normalizer)
    # The trainer numbers "##a", "##b", ... in the order of a hash map, which decides ties between
    # merges. Named beforehand, they have fixed numbers, and the result is the same every time.
    fixed = [*BERT_SPECIAL, *UNUSED, *(f"##{c}" for c in alphabet)]
    trainer = WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        limit_alphabet=len(alphabet),
        initial_alphabet=alphabet,
        special_tokens=fixed,
        show_progress=False,
    )
    learner.train_from_iterator(lines, trainer)
    vocab = learner.get_vocab()
    tokenizer = _bert_frame(models.WordPiece(vocab, unk_token="[UNK]"), normalizer)
    tokenizer.add_special_tokens(BERT_SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def _bert_frame(model: models.WordPiece, normalizer: normalizers.BertNormalizer) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def train_gpt2_tokenizer(lines: tuple[str, ...], vocab_size: int) -> Tokenizer:
    """Learn byte-level pairs, case kept.

    Args:
        lines: The training text.
        vocab_size: Rows, the end token included.

    Returns:
        A tokenizer whose id 0 is END, which it never adds by itself.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, lines: tuple[str, ...] | list[str]) -> list[list[int]]:
    """Encode lines without special tokens."""
    return [e.ids for e in tokenizer.encode_batch(list(lines), add_special_tokens=False)]


def bert_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Say where a tokenizer of `train_bert_tokenizer` keeps its special tokens."""
    return SpecialIds(
        pad=0, cls=2, sep=3, mask=4, first_word=len(BERT_SPECIAL) + len(UNUSED), vocab_size=tokenizer.get_vocab_size()
    )


def save_tokenizer(tokenizer: Tokenizer, folder: Path, *, is_bert: bool, positions: int) -> None:
    """Write tokenizer.json and tokenizer_config.json so that AutoTokenizer opens the folder.

    Args:
        tokenizer: A tokenizer of this module.
        folder: Where the checkpoint lies.
        is_bert: Which of the two kinds it is.
        positions: The longest sequence that the model reads.
    """
    if is_bert:
        roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
        special: dict[str, Any] = dict(zip(roles, BERT_SPECIAL, strict=True))
        names = ["input_ids", "token_type_ids", "attention_mask"]
    else:
        special = dict.fromkeys(("bos_token", "eos_token", "unk_token"), END)
        names = ["input_ids", "attention_mask"]
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=positions, model_input_names=names, **special
    ).save_pretrained(folder)
    # The class is written as a name that every version of transformers knows.
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings.pop("backend", None)
    settings["tokenizer_class"] = "BertTokenizer" if is_bert else "GPT2Tokenizer"
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
