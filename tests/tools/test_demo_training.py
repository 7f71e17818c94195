"""The demo checkpoints: how they are trained and measured, and what is bundled."""

import csv
import itertools
import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import AutoTokenizer, BertForPreTraining, GPT2LMHeadModel

from inspector.demo import ADAPTERS, DEMOS
from tools.train_demos import adapter, batches, data, evaluate, train
from tools.train_demos.card import continue_text, top_pieces
from tools.train_demos.fit import TrainingState, fit
from tools.train_demos.optim import orthogonalize, rate_factor
from tools.train_demos.recipes import PREPARE, RECIPES
from tools.train_demos.snapshots import sentences
from tools.train_demos.trigram import Trigram

NOUNS = ("cat", "dog", "ship", "tree", "city", "river", "king", "song", "stone", "fish")
VERBS = ("sees", "likes", "takes", "finds", "makes")
LINES = tuple(
    f"the {first} {verb} a {second}."
    for first, verb, second in itertools.product(NOUNS, VERBS, NOUNS)
    if first != second
)
TINY = {
    kind: replace(
        recipe,
        steps=8,
        decay_steps=4,
        warmup=2,
        log_every=2,
        vocab_size=300 if kind == "gpt2" else 120,
        width=16,
        layers=2,
        heads=2,
        positions=32,
        tokens=64,
    )
    for kind, recipe in RECIPES.items()
}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(kind, folder, **changes):
    recipe = replace(TINY[kind], **changes)
    fit(PREPARE[kind](recipe, LINES), recipe, folder)
    return folder


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_two_runs_of_one_seed_write_the_same_bytes(kind, tmp_path):
    first, second = trained(kind, tmp_path / "a"), trained(kind, tmp_path / "b")
    other = trained(kind, tmp_path / "c", seed=1)
    for name in ("model.safetensors", "tokenizer.json", "training_log.csv"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    weights = "model.safetensors"
    assert (first / weights).read_bytes() != (other / weights).read_bytes()


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_run_that_was_broken_off_ends_as_if_it_had_not_been(kind, tmp_path):
    whole = trained(kind, tmp_path / "whole")
    run = TrainingState(PREPARE[kind](TINY[kind], LINES), TINY[kind])
    for _ in range(4):
        run.step()
    run.keep(tmp_path / "snapshot.safetensors")
    again = PREPARE[kind](TINY[kind], LINES)
    fit(again, TINY[kind], tmp_path / "again", snapshot=tmp_path / "snapshot.safetensors")
    for name in ("model.safetensors", "training_log.csv"):
        assert (whole / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_pad_row_begins_at_zero_and_grows_though_padding_is_never_a_label(tmp_path):
    folder = trained("bert", tmp_path / "bert")
    rows = list(csv.DictReader((folder / "training_log.csv").open()))
    assert [int(row["step"]) for row in rows] == [0, 2, 4, 6, 8]
    norms = [float(row["pad_norm"]) for row in rows]
    assert norms[0] == 0
    assert 0 < norms[1] < norms[-1]
    pad_row = BertForPreTraining.from_pretrained(folder).bert.embeddings.word_embeddings.weight[0]
    assert norms[-1] == pytest.approx(pad_row.norm().item(), rel=1e-5)


def test_checkpoints_are_tied_after_saving_and_opening(tmp_path):
    bert = BertForPreTraining.from_pretrained(trained("bert", tmp_path / "bert"))
    table = bert.bert.embeddings.word_embeddings.weight
    head = bert.cls.predictions
    assert head.decoder.weight.data_ptr() == table.data_ptr()
    assert head.decoder.bias.data_ptr() == head.bias.data_ptr()
    gpt2 = GPT2LMHeadModel.from_pretrained(trained("gpt2", tmp_path / "gpt2"))
    assert gpt2.lm_head.weight.data_ptr() == gpt2.transformer.wte.weight.data_ptr()


def test_the_split_is_disjoint_and_keeps_blocks_whole():
    lines = [f"Line {number // 2 if number > 900 else number}" for number in range(1000)]
    split = data.split_lines(lines, seed=3)
    blocks = [*split.watched, *split.held_out]
    hidden = [line.lower() for block in blocks for line in block]
    assert not {line.lower() for line in split.train} & set(hidden)
    assert not set(split.watched) & set(split.held_out)
    assert set(split.train) | {line for block in blocks for line in block} == set(lines)
    for block in blocks:
        start = lines.index(block[0])
        assert block in {tuple(lines[i : i + len(block)]) for i in (start, start + 1)}
    assert split == data.split_lines(lines, seed=3)
    assert split != data.split_lines(lines, seed=4)


def test_a_text_that_is_too_short_is_refused(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("one line\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"short\.txt has 1 lines"):
        data.read_lines(path)


def test_masks_hide_only_words_and_remember_the_truth():
    ids = batches.SpecialIds(pad=0, cls=2, sep=3, mask=4, first_word=10, vocab_size=50)
    rows = np.array([[2, *range(10, 40), 3, 0, 0]] * 200)
    corrupted, labels = batches.mask_tokens(rows, ids, 0.2, np.random.default_rng(0))
    chosen = labels != batches.IGNORED
    assert (labels[chosen] == rows[chosen]).all()
    assert (corrupted[~chosen] == rows[~chosen]).all()
    assert rows[chosen].min() >= 10
    assert chosen.sum() / 6000 == pytest.approx(0.2, abs=0.02)
    assert (corrupted[chosen] == 4).mean() == pytest.approx(0.9, abs=0.03)


def test_pairs_follow_each_other_exactly_when_their_label_says_so():
    sentences = [[100 + number] for number in range(400)]
    stream = batches.pair_batches(sentences, tokens=64, positions=32, longest=3, seed=0)
    labels = []
    for pairs, is_random, _ in itertools.islice(stream, 12):
        assert sum(len(a) + len(b) + 3 for a, b in pairs) <= 64
        assert [int(b[0] != a[-1] + 1) for a, b in pairs] == is_random.tolist()
        labels += is_random.tolist()
    assert 0.3 < np.mean(labels) < 0.7


def test_windows_begin_with_lines_and_leave_no_token_out():
    sentences = [[10 * number + k for k in range(1, 1 + number % 4)] for number in range(1, 40)]
    stream = batches.windows(sentences, 0, width=8, batch=2, seed=0)
    seen = np.concatenate(list(itertools.islice(stream, 200)))
    starts = {s[0] for s in sentences if s} | {0}
    assert set(seen[:, 0].tolist()) <= starts
    assert {t for s in sentences[:-4] for t in s} <= set(seen.ravel().tolist())


def test_the_trigram_model_gives_the_numbers_worked_out_by_hand():
    # a b a b a c over {a, b, c} = {0, 1, 2}. Trigrams: aba 2, bab 1, bac 1. Bigrams, by how many
    # tokens they follow: ba 1, ab 1, ac 1, and ab 1 more as the text's opening. Unigrams: a 1,
    # b 1, c 1. Discounts n1 / (n1 + 2 n2): 2/4 for trigrams, 2/4 for bigrams, 1 for unigrams.
    model = Trigram([[0, 1, 0, 1, 0, 2]], 3)
    assert model.probability([], 0) == pytest.approx(1 / 3)
    after_a = (2 - 0.5) / 3 + 0.5 * 2 / 3 * (1 / 3)
    assert model.probability([0], 1) == pytest.approx(after_a)
    after_ba = (1 - 0.5) / 2 + 0.5 * 2 / 2 * after_a
    assert model.probability([1, 0], 1) == pytest.approx(after_ba)
    assert model.probability([2, 2], 1) == pytest.approx(1 / 3)  # never seen: unigrams
    ab = (2 - 0.5) / 2 + 0.5 * 1 / 2 * ((1 - 0.5) / 1 + 0.5 * 1 / 1 * (1 / 3))
    assert model.probability([0, 1], 0) == pytest.approx(ab)
    steps = (after_a, ab, after_ba)
    expected = math.exp(-sum(map(math.log, steps)) / 3)
    assert model.perplexity([[0, 1, 0, 1]]) == pytest.approx(expected)


def test_the_probabilities_of_the_trigram_model_sum_to_one():
    rng = np.random.default_rng(0)
    streams = [rng.zipf(1.5, size=300).clip(max=19).tolist() for _ in range(3)]
    model = Trigram(streams, 20)
    for context in ([], [1], [0], [1, 1], [2, 1], [19, 7], [0, 0], [5, 1, 2]):
        total = sum(model.probability(context, token) for token in range(20))
        assert total == pytest.approx(1)


def test_mask_quality_agrees_with_masking_by_hand(tmp_path):
    folder = trained("bert", tmp_path / "bert", steps=30)
    model = BertForPreTraining.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    sentences = LINES[:12]
    quality = evaluate.mask_quality(model, tokenizer.backend_tokenizer, sentences, rows_per_batch=3)
    ranks = []
    for sentence in sentences:
        ids = tokenizer(sentence)["input_ids"]
        for place, truth in enumerate(ids):
            piece = tokenizer.convert_ids_to_tokens(truth)
            if truth < 5 or piece == ".":
                continue
            masked = torch.tensor([[*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]])
            with torch.no_grad():
                scores = model(masked).prediction_logits[0, place]
            ranks.append(scores.argsort(descending=True).tolist().index(truth))
    assert quality.pieces == len(ranks)
    assert quality.top5 == pytest.approx(np.mean(np.array(ranks) < 5))
    assert quality.top1 == pytest.approx(np.mean(np.array(ranks) < 1))


def test_held_out_pairs_are_half_successors_half_strangers():
    blocks = [[f"{block}-{line}" for line in range(8)] for block in range(3)]
    pairs, labels = evaluate.held_out_pairs(blocks, lines=2, seed=0)
    assert len(pairs) == 3 * 3 * 2
    assert pairs[0] == ("0-0 0-1", "0-2 0-3")
    assert all((a[0] != b[0]) == bool(label) for (a, b), label in zip(pairs, labels, strict=True))
    assert sum(labels) == len(labels) / 2


def test_perplexity_of_a_text_in_one_window_is_exp_of_the_loss(tmp_path):
    folder = trained("gpt2", tmp_path / "gpt2")
    model = GPT2LMHeadModel.from_pretrained(folder).eval()
    short, long = list(range(1, 30)), list(range(1, 100))
    ids = torch.tensor([short])
    loss = torch.nn.functional.cross_entropy(model(ids).logits[0, :-1], ids[0, 1:])
    assert evaluate.gpt2_perplexity(model, [short]) == pytest.approx(math.exp(loss.item()))
    # By hand over three windows: 32 wide, each after the first showing 16 scored tokens again.
    total = 0.0
    for start, stop, fresh in ((0, 32, 31), (16, 48, 16), (32, 64, 16), (48, 80, 16), (64, 96, 16)):
        total += _loss_of_last(model, long[start:stop], fresh)
    total += _loss_of_last(model, long[80:99], 3)
    assert evaluate.gpt2_perplexity(model, [long]) == pytest.approx(math.exp(total / 98), rel=1e-5)


def _loss_of_last(model, ids, count):
    with torch.no_grad():
        scores = model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
    return -sum(float(scores[p - 1, ids[p]]) for p in range(len(ids) - count, len(ids)))


def test_the_learning_rate_warms_up_holds_and_falls_to_zero():
    factors = [rate_factor(step, 10, 2, 6) for step in range(11)]
    assert factors == pytest.approx([0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0])


def test_orthogonalizing_brings_singular_values_near_one():
    matrix = torch.randn(12, 30, generator=torch.Generator().manual_seed(0))
    for given in (matrix, matrix.T, 1e-3 * matrix):
        values = torch.linalg.svdvals(orthogonalize(given))
        assert values.min() > 0.6
        assert values.max() < 1.3


def test_the_command_writes_a_card_with_the_quality(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(LINES), encoding="utf-8")
    out = tmp_path / "out"
    train.main(["gpt2", "--text", str(text), "--out", str(out), "--seed", "5"], recipes=TINY)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "Perplexity per token: " in card
    assert "--seed 5 --steps 8" in card


def test_naming_the_demos_imports_no_torch():
    code = "import sys, inspector.demo; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SANE = {
    "the capital and largest city of [MASK].": {"spain", "france", "england"},
    "the [MASK] of england.": {"king"},
    "he drank a glass of [MASK].": {"water"},
    "the second month of the [MASK].": {"year"},
    "a chemical [MASK] that is found in water.": {"substance"},
    "a member of the [MASK] party.": {"political"},
    "he was elected president of the United": {"States."},
    "genus Salix: willows and": {"small trees of the genus Salix."},
    "family Rosaceae is a": {"genus of Rosaceae."},
}


@pytest.mark.parametrize("name", DEMOS)
def test_bundled_checkpoints_open_whole_and_tied_and_answer_sanely(name):
    demo = DEMOS[name]
    kind = BertForPreTraining if name == "demo-bert" else GPT2LMHeadModel
    opened: Any = kind.from_pretrained(demo.folder, local_files_only=True, output_loading_info=True)
    model, loading = opened
    assert not any(loading.values())
    assert model.config.tie_word_embeddings
    assert model.config.architectures == [kind.__name__]
    inputs, outputs = model.get_input_embeddings(), model.get_output_embeddings()
    assert inputs.weight.data_ptr() == outputs.weight.data_ptr()
    tokenizer = AutoTokenizer.from_pretrained(demo.folder, local_files_only=True)
    answer = top_pieces if name == "demo-bert" else continue_text
    for text in demo.examples:
        given = answer(model, tokenizer.backend_tokenizer, text)
        assert set([given] if isinstance(given, str) else given) & SANE[text], (text, given)


def test_the_bundled_bert_has_a_tied_bias_takes_pairs_and_lists_the_pad_row():
    folder = DEMOS["demo-bert"].folder
    model = BertForPreTraining.from_pretrained(folder, local_files_only=True)
    head = model.cls.predictions
    assert head.decoder.bias.data_ptr() == head.bias.data_ptr()
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    pair = tokenizer("one cat", "two dogs")
    tokens = tokenizer.convert_ids_to_tokens(pair["input_ids"])
    border = tokens.index("[SEP]") + 1
    assert pair["token_type_ids"] == [0] * border + [1] * (len(tokens) - border)
    assert tokenizer.convert_ids_to_tokens([0, 1, 2, 3, 4, 5, 20]) == [
        *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused15]")
    ]
    rows = list(csv.DictReader((folder / "training_log.csv").open()))
    assert float(rows[0]["pad_norm"]) == 0
    pad = model.bert.embeddings.word_embeddings.weight[0].norm().item()
    assert float(rows[-1]["pad_norm"]) == pytest.approx(pad, rel=1e-4)


def test_the_bundled_checkpoints_are_small_and_name_their_source():
    files = [file for demo in DEMOS.values() for file in demo.folder.iterdir()]
    assert sum(file.stat().st_size for file in files) <= 20_000_000
    for demo in DEMOS.values():
        card = (demo.folder / "README.md").read_text(encoding="utf-8")
        assert "WordNet 3.0 Copyright 2006 by Princeton University" in card
        assert all(f"- {text} → " in card for text in demo.examples)


def test_the_bundled_adapter_has_learned_its_text():
    from pydoc_data.topics import topics

    demo = ADAPTERS["demo-gpt2-adapter"]
    rows = adapter.windows(sentences(topics)[:60])
    base: Any = GPT2LMHeadModel.from_pretrained(DEMOS["demo-gpt2"].folder)
    model = PeftModel.from_pretrained(base, str(demo.folder)).eval()
    with model.disable_adapter():
        before = adapter.loss(model, rows)
    assert adapter.loss(model, rows) < before - 1
    assert sum(path.stat().st_size for path in demo.folder.iterdir()) < 50_000


def test_an_adapter_is_trained_and_the_base_is_not():
    rows = adapter.windows(LINES)
    model = adapter.train(rows, steps=3)
    changed = {name for name, each in model.named_parameters() if each.requires_grad}
    assert all("lora_" in name for name in changed)
    assert any(bool(each.any()) for name, each in model.named_parameters() if "lora_B" in name)
