"""Read a bare SentencePiece or tiktoken file as a tokenizer, without the libraries that write them.

A class of transformers knows what a model adds to such a file: other ids, other spaces, special tokens. Where none is
named, the tokenizer is built as the file's own library would run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from inspector.errors import NotInCheckpointError
from inspector.store.names import VOCABULARIES
from inspector.store.readers.sentencepiece import (
    CONTROL,
    UNIGRAM,
    USER_DEFINED,
    NormalizerSpec,
    SentencePieceModel,
    read_sentencepiece,
)
from inspector.store.readers.tiktoken import is_tiktoken, read_tiktoken

BARE = tuple(name for name in VOCABULARIES if name.endswith(".model"))
SPACE = "▁"
# What a checkpoint may call a tokenizer that has no class of its own
GENERIC = frozenset({None, "PreTrainedTokenizerFast", "TokenizersBackend"})
AT_THE_END = (
    "{name} puts spaces at the end of words, which is not read here: tokens are shown by their ids. Add the "
    "tokenizer.json that AutoTokenizer.from_pretrained(...).save_pretrained() writes."
)


def read_bare(path: Path) -> Tokenizer:
    """Build the tokenizer that a bare file describes.

    Raises:
        CheckpointError: If the file is damaged, or too large.
        NotInCheckpointError: If nothing of the tokenizers library does what it describes.
    """
    return _of_ranks(path) if is_tiktoken(path) else _of_pieces(read_sentencepiece(path, path.name), path.name)


def bare_roles(path: Path) -> dict[str, str]:
    """The special tokens that a bare file itself names, by role."""
    if is_tiktoken(path):
        return {}
    spec = read_sentencepiece(path, path.name).trainer_spec
    return {
        role: getattr(spec, f"{role}_piece")
        for role in ("unk", "bos", "eos", "pad")
        if getattr(spec, f"{role}_id") >= 0
    }


def add_ends(tokenizer: Any, bos: str | None = None, eos: str | None = None) -> None:
    """Have a token put in front of every text, and one after it: only settings beside the file ask for that."""
    ends = {token: tokenizer.token_to_id(token) for token in (bos, eos) if token}
    if ends and None not in ends.values():
        before, after = ([token] if token else [] for token in (bos, eos))
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[*before, "$A", *after],
            pair=[*before, "$A", *after, *before, "$B", *after],
            special_tokens=[*ends.items()],
        )


@contextmanager
def read_by_hand() -> Iterator[list[str]]:
    """Have classes of transformers get what is in such files from the readers here, which are bounded.

    Yields:
        The names of the files that were read so, as they are.
    """
    converting: Any = import_module("transformers.convert_slow_tokenizer")  # a function has the same name

    read: list[str] = []

    class Extractor(_Extractor):
        def __init__(self, model: str) -> None:
            super().__init__(model)
            read.append(Path(model).name)

    def ranks(path: str) -> dict[bytes, int]:
        found = read_tiktoken(Path(path), Path(path).name)
        read.append(Path(path).name)
        return found

    theirs = converting.SentencePieceExtractor, converting.TikTokenConverter.load_tiktoken_bpe
    converting.SentencePieceExtractor = Extractor
    converting.TikTokenConverter.load_tiktoken_bpe = staticmethod(ranks)
    try:
        yield read
    finally:
        converting.SentencePieceExtractor = theirs[0]
        converting.TikTokenConverter.load_tiktoken_bpe = staticmethod(theirs[1])


class _Extractor:
    """Stands in for transformers' SentencePieceExtractor, whose results are the same."""

    def __init__(self, model: str) -> None:
        self.proto = read_sentencepiece(Path(model), Path(model).name)

    def extract(self, model_type: type | None, **kwargs: Any) -> dict[str, Any]:
        """Vocabulary, merges and special tokens, as a class of transformers takes them."""
        spec = self.proto.trainer_spec
        if model_type is None:
            model_type = models.Unigram if spec.model_type == UNIGRAM else models.BPE
        if model_type.__name__ == "BPE":
            vocabulary = {piece.piece: number for number, piece in enumerate(self.proto.pieces)}
            found: dict[str, Any] = {"vocab": vocabulary, "merges": list(merges(vocabulary))}
        else:
            found = {"vocab": _scores(self.proto), "unk_id": spec.unk_id}
        charsmap = self.proto.normalizer_spec.precompiled_charsmap or None
        return {
            **kwargs,
            **found,
            "additional_special_tokens": _added(self.proto),
            "_spm_precompiled_charsmap": charsmap,
        }


def merges(vocabulary: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Every way to make a piece of two others, the pieces in the order of their ids.

    Neither kind of file lists merges: a piece is made as soon as its two parts stand side by side, the first one first.
    """
    for whole in sorted(vocabulary, key=vocabulary.__getitem__):
        for place in range(1, len(whole)):
            if (left := whole[:place]) in vocabulary and (right := whole[place:]) in vocabulary:
                yield left, right


def _scores(model: SentencePieceModel) -> list[tuple[str, float]]:
    return [(piece.piece, piece.score) for piece in model.pieces]


def _added(model: SentencePieceModel) -> list[AddedToken]:
    """Pieces that a text is searched for before it is split: symbols of the user's, and control tokens."""
    return [
        AddedToken(piece.piece, normalized=False, special=piece.type == CONTROL)
        for piece in model.pieces
        if piece.type in (CONTROL, USER_DEFINED)
    ]


def _of_pieces(model: SentencePieceModel, name: str) -> Tokenizer:
    trainer, spec = model.trainer_spec, model.normalizer_spec
    if trainer.treat_whitespace_as_suffix or not spec.escape_whitespaces:
        raise NotInCheckpointError(AT_THE_END.format(name=name))
    if trainer.model_type == UNIGRAM:
        unknown = next(place for place, piece in enumerate(model.pieces) if piece.piece == trainer.unk_piece)
        parts = models.Unigram(_scores(model), unk_id=unknown, byte_fallback=trainer.byte_fallback)
    else:
        vocabulary = {piece.piece: number for number, piece in enumerate(model.pieces)}
        parts = models.BPE(
            vocabulary,
            list(merges(vocabulary)),
            unk_token=trainer.unk_piece,
            fuse_unk=True,
            byte_fallback=trainer.byte_fallback,
        )
    tokenizer = Tokenizer(parts)
    has_symbols = any(piece.type == USER_DEFINED for piece in model.pieces)
    _set_spaces(tokenizer, spec, in_parts=has_symbols)
    tokenizer.add_tokens(_added(model))
    return tokenizer


def _set_spaces(tokenizer: Any, spec: NormalizerSpec, *, in_parts: bool) -> None:
    """Have the characters and spaces of a text replaced as SentencePiece does.

    Args:
        tokenizer: Which gets the steps.
        spec: What the model says of them.
        in_parts: Symbols of the user's cut a text before its parts are normalized. Then spaces at its two ends stay,
            where SentencePiece drops them: no step knows which part is the last one.
    """
    steps = [normalizers.Precompiled(spec.precompiled_charsmap)] if spec.precompiled_charsmap else []
    if spec.remove_extra_whitespaces:
        steps += [] if in_parts else [normalizers.Replace(Regex("^ +| +$"), "")]
        steps += [normalizers.Replace(Regex(" {2,}"), " ")]
    if in_parts:
        scheme = "first" if spec.add_dummy_prefix else "never"
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=False)
    else:
        steps += [normalizers.Prepend(SPACE)] if spec.add_dummy_prefix else []
        steps += [normalizers.Replace(" ", SPACE)]
    tokenizer.normalizer = normalizers.Sequence(steps)
    stripped = [decoders.Strip(content=" ", left=1)] if spec.add_dummy_prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *stripped]
    )


def _of_ranks(path: Path) -> Tokenizer:
    """As transformers reads the files of Llama 3, whose way to split texts into words is not in them."""
    from transformers.convert_slow_tokenizer import TikTokenConverter

    with read_by_hand():
        return TikTokenConverter(str(path)).converted()
