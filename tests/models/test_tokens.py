"""The tokenizer against transformers' own, and the visible form of tokens."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

from inspector.analyses.checks.compute import check
from inspector.analyses.overview.compute import overview
from inspector.analyses.tokenization import compute
from inspector.analyses.tokenization.compute import tokenize
from inspector.catalog import answer
from inspector.errors import CheckpointError, NotInCheckpointError, RequestError
from inspector.models.tokens import BYTE_ALPHABET, printable
from inspector.models.vocabulary.tokenizer_files import read_tokenizer
from tests.conftest import silent
from tests.families import VOCAB, random_model, save_checkpoint
from tests.sentences import NO_TOKENIZER_FILES

SENTENCES = ("w1 W2 w30 ##a", "w1 [MASK] w3", "unknown words, and w1!", "déjà w4 你好", "  spaces   w5\n")


class Counting:
    """An encoding of the library's, which makes a list anew whenever it is asked for one."""

    def __init__(self, encoding) -> None:
        self._encoding, self.asked = encoding, Counter()

    def __getattr__(self, name):
        self.asked[name] += 1
        return getattr(self._encoding, name)


def byte_level(folder):
    """Train a byte-level BPE on a few words and save it as tokenizer.json."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the cat sat on the mat", "the café"] * 20, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def test_a_text_is_always_split_alike_though_its_file_drops_merges(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel", vocab_size=300), tmp_path / "gpt2", tokenizer=False)
    text = "the cat sat on the mat"
    whole = byte_level(folder).encode(text).ids
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["dropout"] = 0.9
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    dropping = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert len({tuple(dropping.encode(text).ids) for _ in range(50)}) > 1
    checkpoint = open_path(folder)
    assert {checkpoint.tokens.encode(text).ids for _ in range(50)} == {tuple(whole)}
    said = "sets BPE dropout to 0.9, which splits a text differently each time: it is turned off here."
    assert any(said in each for each in overview(checkpoint, progress=silent).warnings)
    assert any(said in each for each in tokenize(checkpoint, progress=silent, texts=(text,)).warnings)
    rows = next(each for each in check(checkpoint, progress=silent).checks if each.name == "Tokenizer and rows")
    assert said in rows.detail


@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.parametrize("lower", [True, False])
def test_wordpiece_encodes_as_transformers_does(tmp_path, open_path, text, lower):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bert")
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    tokens = open_path(folder).require_tokens()
    truth = AutoTokenizer.from_pretrained(folder)
    encoded = tokens.encode(text)
    assert list(encoded.ids) == truth(text)["input_ids"]
    pair = tokens.encode(text, "w7")
    assert list(pair.type_ids) == truth(text, "w7")["token_type_ids"]


ADDED = {
    "content": "Shout",
    "lstrip": True,
    "rstrip": False,
    "normalized": False,
    "single_word": True,
    "special": False,
}
ADDING = {  # files beside vocab.txt, whose last id is 59
    "added_tokens.json": {"hello": 60, "Shout": 61, "<x>": 62},
    "tokenizer_config.json": {"added_tokens_decoder": {"61": ADDED, "60": ADDED | {"content": "<x>", "special": True}}},
}


@pytest.mark.parametrize("file", ADDING)
@pytest.mark.parametrize("text", ["w1 hello w2 Shout mid<x>dle hello, a", "xhellox shout  hello Shouting"])
def test_tokens_added_to_a_vocabulary_are_those_of_transformers(tmp_path, open_path, file, text):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bert")
    (folder / file).write_text(json.dumps(ADDING[file]), encoding="utf-8")
    tokens = open_path(folder).require_tokens()
    assert list(tokens.encode(text).ids) == AutoTokenizer.from_pretrained(folder)(text)["input_ids"]
    assert tokens.size > 60


def test_a_token_added_under_an_id_that_does_not_follow_gets_the_next_one(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "bert")
    (folder / "added_tokens.json").write_text('{"hello": 70, "w1": 60}', encoding="utf-8")
    tokens = open_path(folder).require_tokens()
    assert (tokens.size, tokens.find("hello")) == (len(AutoTokenizer.from_pretrained(folder)), 60)


def test_each_column_of_an_encoding_is_read_once(open_model):
    """Else a text of ten thousand tokens takes twenty seconds."""
    tokens = open_model("BertForMaskedLM").require_tokens()
    encoding = Counting(tokens.encoding("w1 w2 w3"))
    assert len(compute.token_rows(0, encoding, tokens, ("w1 w2 w3", ""))) == 5  # type: ignore[arg-type]
    assert set(encoding.asked.values()) == {1}


def test_byte_level_encodes_as_transformers_does_and_reads_as_text(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel", vocab_size=300), tmp_path / "gpt2", tokenizer=False)
    trained = byte_level(folder)
    tokens = open_path(folder).require_tokens()
    text = "the cat sat — café\n"
    assert list(tokens.encode(text).ids) == AutoTokenizer.from_pretrained(folder)(text)["input_ids"]
    assert tokens.visible(trained.token_to_id("Ġthe")) == "␣the"
    assert tokens.visible(trained.token_to_id("Ċ")) == "⏎"
    assert tokens.visible(trained.token_to_id("Ã")) == "<0xC3>"
    assert tokens.visible(5_000) == "id 5000"
    assert tokens.find("␣the") == trained.token_to_id("Ġthe")
    assert tokens.find("the") == trained.token_to_id("the")
    words = {word: trained.token_to_id(f"Ġ{word}") for word in ("cat", "sat", "mat", "café")}
    only_spaced = [w for w, index in words.items() if index and trained.token_to_id(w) is None]
    assert only_spaced
    for word in only_spaced:  # as it stands in a text
        assert tokens.find(word) == words[word]
    assert tokens.role("mask") == (None, None)


def merges_of(folder, *special, **settings):
    """Files from before tokenizer.json: every byte is a token, and the special ones are rows like others."""
    vocabulary = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    (folder / "vocab.json").write_text(json.dumps({token: row for row, token in enumerate(vocabulary)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("architecture", "said"),
    [
        ("OPTForCausalLM", {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "bos_token": "</s>"}),
        ("OPTForCausalLM", {"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>", "eos_token": "</s>"}),
        ("GPT2LMHeadModel", {}),
        ("GPT2LMHeadModel", {"add_bos_token": True, "add_eos_token": True}),
        ("GPTNeoXForCausalLM", {}),
        ("RobertaForMaskedLM", {}),
        ("BartForConditionalGeneration", {"tokenizer_class": "BartTokenizer"}),
    ],
)
def test_merges_are_read_as_the_family_reads_them(tmp_path, open_path, architecture, said):
    folder = save_checkpoint(random_model(architecture, vocab_size=300), tmp_path / "old", tokenizer=False)
    merges_of(folder, "<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>", **said)
    tokens, truth = open_path(folder).require_tokens(), AutoTokenizer.from_pretrained(folder)
    for given in (("the cat<mask> sat</s>",), ("a", "b")):
        assert list(tokens.encode(*given).ids) == truth(*given)["input_ids"]


def test_special_tokens_that_the_files_lack_count_as_the_class_makes_them_up(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel", vocab_size=300), tmp_path / "old", tokenizer=False)
    merges_of(folder, added_tokens_decoder={"256": {"content": "<mine>", "special": True}})
    assert len(AutoTokenizer.from_pretrained(folder)) == 258  # transformers adds <|endoftext|>
    tokens = open_path(folder).require_tokens()
    assert tokens.size == 258
    assert tokens.encode("<mine>").ids == (256,)
    assert tokens.role("bos") == ("<|endoftext|>", 257)


def test_merges_of_a_family_that_reads_others_are_refused(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM", vocab_size=300), tmp_path / "old", tokenizer=False)
    checkpoint = open_path(merges_of(folder, "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"))
    with pytest.raises(NotInCheckpointError, match=r"no tokenizer for this model type that reads vocab\.json"):
        checkpoint.require_tokens()


def test_what_has_no_glyph_is_shown():
    assert printable("a\nb\tc\rd") == "a⏎b⇥c␍d"
    assert printable("x\u202ey\u200b") == "x<U+202E>y<U+200B>"
    assert printable("plain – text 你好") == "plain – text 你好"


def test_byte_alphabet_is_gpt2s():
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    assert set(BYTE_ALPHABET) == set(alphabet)
    assert sorted(BYTE_ALPHABET.values()) == list(range(256))
    assert BYTE_ALPHABET["Ġ"] == ord(" ")


def test_kinds_of_a_wordpiece_vocabulary(open_model):
    vocabulary = open_model("BertModel").require_tokens().vocabulary(VOCAB + 2)
    kinds = vocabulary.set_index("token")["kind"]
    assert kinds["[PAD]"] == "padding"
    assert kinds["[MASK]"] == "special"
    assert kinds["[unused1]"] == "unused"
    assert kinds["w1"] == "word"
    assert kinds["##a"] == "subword"
    assert kinds["id 61"] == "no token"


def test_truncation_and_padding_of_the_file_are_off(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "cut")
    tokenizer = Tokenizer.from_str(read_tokenizer(open_path(folder).manifest).tokenizer.to_str())
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=20)
    tokenizer.save(str(folder / "tokenizer.json"))
    assert len(open_path(folder).require_tokens().encode("w1 w2 w3 w4").ids) == 6


def test_more_ids_than_rows_is_refused_before_the_forward_pass(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel", vocab_size=20), tmp_path / "few")
    checkpoint = open_path(folder)
    with pytest.raises(CheckpointError) as error:
        checkpoint.check_ids(checkpoint.require_tokens().encode("w30").ids)
    assert str(error.value) == (
        "The tokenizer of few gives id 38, but the embedding matrix has 20 rows: compare the "
        "tokenizer's files with their source."
    )


def test_broken_tokenizer_is_one_sentence(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "broken", tokenizer=False)
    broken = {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["x y"]}}
    (folder / "tokenizer.json").write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(CheckpointError) as error:
        open_path(folder).require_tokens()
    assert str(error.value) == NO_TOKENIZER_FILES


def test_too_long_and_empty_texts(tmp_path, open_path):
    folder = save_checkpoint(random_model("GPT2LMHeadModel", vocab_size=300), tmp_path / "gpt2", tokenizer=False)
    byte_level(folder)
    tokens = open_path(folder).require_tokens()
    with pytest.raises(RequestError, match="no tokens"):
        tokens.encode("")
    with pytest.raises(RequestError, match="20,001 characters"):
        tokens.encode("a" * 20_001)


def test_positions_are_those_that_the_model_takes(open_model):
    """RoBERTa loses two positions to its padding offset: the longest text runs, one more not."""
    for name, allowed in (("RobertaForMaskedLM", 62), ("BertForMaskedLM", 64)):
        checkpoint = open_model(name)
        assert checkpoint.positions == allowed
        model = random_model(name)
        ids = torch.full((1, allowed), 9)
        assert model(ids).logits.shape[1] == allowed
        with pytest.raises((IndexError, RuntimeError)):
            model(torch.full((1, allowed + 1), 9))


@pytest.mark.parametrize("segments", [1, 2])
def test_segments_that_the_model_does_not_have_are_refused(tmp_path, open_path, segments):
    """A model of one segment is not given them, as RoBERTa's; of several, each must have a row."""
    folder = save_checkpoint(random_model("BertForPreTraining", type_vocab_size=segments), tmp_path / "bert")
    tokenizer = Tokenizer.from_str(read_tokenizer(open_path(folder).manifest).tokenizer.to_str())
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:2 $A:2 [SEP]:2", pair="[CLS]:2 $A:2 [SEP]:2 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"pad_token": "[PAD]", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    said = {"tokenizer_class": "PreTrainedTokenizerFast"} | roles  # BERT's own class replaces these steps
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    checkpoint = open_path(folder)
    text = "w1 [MASK] w2"
    asked = {
        "lens": {"text": text}, "ladder": {"text": text}, "predict": {"text": text}, "plausibility": {"text": text},
        "padding": {"text": text}, "contrast": {"first": text, "second": "w3 [MASK]"},
        "similarity": {"texts": (text, "w3"), "pooling": "mean"},
        "heads": {"text": text, "head": "masked_lm"}, "pretrain": {"text": text, "pair": "w3"},
    }  # fmt: skip
    for verb, parameters in asked.items():
        if segments == 1:
            answer(verb, checkpoint, progress=silent, **parameters)
            continue
        with pytest.raises(CheckpointError, match=r"gives segment 2 \(token_type_ids\), but .* the model has 2"):
            answer(verb, checkpoint, progress=silent, **parameters)


def test_a_text_has_no_more_tokens_than_characters_are_allowed(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "long", tokenizer=False)
    grows = Tokenizer(models.WordLevel({"x": 0, "[UNK]": 1}, unk_token="[UNK]"))
    grows.normalizer = normalizers.Replace("x", " x" * 6)
    grows.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    grows.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    tokens = open_path(folder).tokens
    assert len(tokens.encode("x" * 100).ids) == 600
    with pytest.raises(RequestError, match=r"The text has 24,000 tokens: shorten it to 20,000"):
        tokens.encode("x" * 4_000)
