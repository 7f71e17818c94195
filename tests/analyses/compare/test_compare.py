"""Comparisons against brute force over state dicts, scipy's Procrustes, and planted changes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.linalg import orthogonal_procrustes

from inspector.analyses.compare import compute_streams, compute_sums
from inspector.analyses.compare.compute import compare
from inspector.analyses.compare.compute_layers import Place, label_stacks, place_of
from inspector.analyses.compare.compute_names import Names, Pair, Spelling, match_names
from inspector.analyses.compare.compute_streams import Stored
from inspector.analyses.compare.compute_tensors import compare_tensors
from inspector.analyses.compare.words import UNREAD
from inspector.errors import RequestError
from inspector.results.plain import to_json
from inspector.store.readers import streams
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, WITHOUT_HEAD, random_model, save_checkpoint, words

EVERY = sorted(MODELS | WITHOUT_HEAD | ENCODER_DECODER)
EMBEDDING = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
BIAS = "cls.predictions.bias"


def ask(first, second, **options) -> Any:
    return compare(first, progress=silent, other=second.manifest.fingerprint, **options)


def by_name(result):
    return {row["name"]: row for row in result.tensors.to_dict("records")}


def truth(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float, float]:
    """Relative change, cosine and largest difference by NumPy in one go."""
    one, other = (t.double().flatten().numpy() for t in (a, b))
    norm = np.linalg.norm(one)
    return (
        float(np.linalg.norm(other - one) / norm),
        float(one @ other / norm / np.linalg.norm(other)),
        float(np.abs(other - one).max()),
    )


@pytest.fixture
def saved(tmp_path, open_path):
    """Save tensors beside a model's config and tokenizer, and open the folder."""

    def opened(model, name, change=None, *, vocabulary=None):
        folder = save_checkpoint(model, tmp_path / name, tokenizer=vocabulary is None)
        if vocabulary is not None:
            (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
        if change:
            tensors = load_file(folder / "model.safetensors")
            save_file(change(tensors), folder / "model.safetensors", metadata={"format": "pt"})
        return open_path(folder)

    return opened


@pytest.mark.parametrize("name", EVERY)
def test_every_number_is_that_of_the_state_dicts(name, tmp_path, open_path):
    folders = [save_checkpoint(random_model(name, seed=seed), tmp_path / str(seed)) for seed in (1, 2)]
    result = ask(*map(open_path, folders))
    first, second = (load_file(folder / "model.safetensors") for folder in folders)
    rows = by_name(result)
    assert set(rows) == set(first) == set(second)
    apart = squares = 0.0
    for tensor, row in rows.items():
        a, b = first[tensor], second[tensor]
        if not a.is_floating_point() or torch.equal(a, b):
            assert row["status"] == "equal"
            continue
        relative, cosine, largest = truth(a, b)
        assert row["status"] == "changed"
        assert row["relative_change"] == pytest.approx(relative, rel=1e-9)
        assert row["cosine"] == pytest.approx(cosine, abs=1e-9)
        assert row["max_abs"] == pytest.approx(largest, rel=1e-12)
        apart += (b.double() - a.double()).square().sum().item()
    squares = sum(a.double().square().sum().item() for a in first.values() if a.is_floating_point())
    assert result.overall["relative_change"] == pytest.approx(math.sqrt(apart / squares))
    assert result.ties_changed == ()
    assert result.ties_compared
    assert not result.same


@pytest.mark.parametrize(("piece", "span"), [(1 << 24, 7), (12, 1 << 15), (1_000, 100)])
def test_pieces_give_what_the_whole_gives(monkeypatch, open_model, piece, span):
    first = open_model("BertForMaskedLM")
    second = open_model("GPT2LMHeadModel")
    one = next(t for t in first.manifest.tensors if t.name == EMBEDDING)
    other = next(t for t in second.manifest.tensors if t.name == "transformer.wte.weight")
    assert one.shape == other.shape
    monkeypatch.setattr(streams, "PIECE", piece)
    monkeypatch.setattr(compute_sums, "SPAN", span)
    (found,) = compare_tensors([(Stored(first.manifest, one), Stored(second.manifest, other))], silent)
    relative, cosine, largest = truth(first.embedding_matrix(), second.state["transformer.wte.weight"])
    assert found.sums is not None
    assert found.sums.count == 60 * 32
    assert found.sums.relative_change == pytest.approx(relative, rel=1e-12)
    assert found.sums.cosine == pytest.approx(cosine, abs=1e-12)
    assert found.sums.max_abs == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "GPT2LMHeadModel"])
def test_a_few_steps_of_training_move_what_they_trained(name, tmp_path, open_path):
    model = random_model(name)
    before = open_path(save_checkpoint(model, tmp_path / "before"))
    frozen = [p for n, p in model.named_parameters() if "norm" in n.lower() or "ln_" in n]
    for parameter in frozen:
        parameter.requires_grad_(False)
    ids = torch.tensor([[8, 9, 10, 11]])
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    after = open_path(save_checkpoint(model, tmp_path / "after"))
    result = ask(before, after)
    rows = by_name(result)
    assert frozen
    for tensor, row in rows.items():
        untrained = "norm" in tensor.lower() or "ln_" in tensor
        if untrained:
            assert row["status"] == "equal", tensor
    changed = [row for row in rows.values() if row["status"] == "changed"]
    assert changed
    a = load_file(tmp_path / "before" / "model.safetensors")
    b = load_file(tmp_path / "after" / "model.safetensors")
    assert {row["name"] for row in changed} == {n for n in a if not torch.equal(a[n], b[n])}
    largest = max(changed, key=lambda row: row["relative_change"])
    assert any(largest["name"] in sentence for sentence in result.summary)
    # Tied: the softmax pushes on every row, so every token moved, and the trained ones furthest.
    assert result.vocabulary.moved == 60
    trained = set(result.tokens_moved["token_id"].head(4).tolist())
    assert trained == {8, 9, 10, 11}


def test_equal_files_under_two_names_keep_both(open_model):
    checkpoint = open_model("BertForMaskedLM")
    checkpoint.called = ("ours", "theirs")
    result = ask(checkpoint, checkpoint)
    assert (result.same, result.name, result.other_name) == (True, "ours", "theirs")
    assert result.summary[0].startswith("ours and theirs are the same files, byte for byte")


def test_both_have_the_names_of_who_asks(open_model):
    first = open_model("BertForMaskedLM")
    second = open_model("GPT2LMHeadModel")
    first.called = ("ours", "theirs")
    result = ask(first, second)
    assert (result.name, result.other_name) == ("ours", "theirs")
    assert not any("LMHead" in sentence for sentence in result.summary)


def test_with_itself_it_says_so(open_model):
    checkpoint = open_model("BertForMaskedLM")
    result = ask(checkpoint, checkpoint)
    assert result.same
    assert result.summary[0].startswith("BertForMaskedLM is compared with itself")
    assert result.counts == {"equal": len(checkpoint.manifest.tensors)}
    assert set(result.tensors["relative_change"]) == {0.0}
    assert set(result.tensors["cosine"]) == {1.0}
    assert (result.overall["relative_change"], result.overall["cosine"]) == (0.0, 1.0)
    assert result.vocabulary.moved == len(result.tokens_moved) == 0
    assert len(result.tokens) == 60


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_cast_copy_is_exactly_its_rounding(dtype, backwards, saved):
    model = random_model("LlamaForCausalLM")
    wide = saved(model, "wide")
    narrow = saved(model, "narrow", lambda t: {name: each.to(dtype) for name, each in t.items()})
    result = ask(narrow, wide) if backwards else ask(wide, narrow)
    assert result.counts == {"dtype changed": len(wide.manifest.tensors)}
    for name, row in by_name(result).items():
        a = wide.state[name]
        pair = (a.to(dtype), a) if backwards else (a, a.to(dtype))
        relative, cosine, largest = truth(*pair)
        assert row["relative_change"] == pytest.approx(relative, rel=1e-9)
        assert 0 < row["relative_change"] < 2**-7
        assert row["cosine"] == pytest.approx(cosine, abs=1e-12)
        assert row["max_abs"] == largest
        assert "exactly" in row["note"]


def test_widening_changes_no_number(saved):
    model = random_model("LlamaForCausalLM").to(torch.bfloat16)
    result = ask(saved(model, "a"), saved(model, "b", lambda t: {n: e.float() for n, e in t.items()}))
    assert set(result.tensors["note"]) == {"the same numbers, as float32"}
    assert set(result.tensors["relative_change"]) == {0.0}
    assert result.vocabulary.moved == 0


def test_a_cast_that_is_no_rounding_is_a_change(saved):
    model = random_model("LlamaForCausalLM")

    def shifted(tensors):
        return {name: (each + 0.25).to(torch.float16) for name, each in tensors.items()}

    result = ask(saved(model, "a"), saved(model, "b", shifted))
    assert result.counts == {"changed": len(result.tensors)}
    assert set(result.tensors["note"]) == {"and is float16 in place of float32"}


def test_numbers_that_are_none_are_counted_and_left_out(saved):
    model = random_model("BertForMaskedLM")

    def broken(tensors):
        tensors[EMBEDDING][3, 4] = math.nan
        tensors[EMBEDDING][5, 6] = math.inf
        tensors[BIAS][:] = math.nan
        return tensors

    first, second = (saved(model, "whole"), saved(random_model("BertForMaskedLM", seed=3), "b", broken))
    result = ask(first, second)
    row = by_name(result)[EMBEDDING]
    a, b = first.embedding_matrix(), second.embedding_matrix()
    keep = b.isfinite()
    relative, cosine, largest = truth(a[keep], b[keep])
    assert (row["not_finite"], row["other_not_finite"]) == (0, 2)
    assert row["relative_change"] == pytest.approx(relative, rel=1e-9)
    assert row["cosine"] == pytest.approx(cosine, abs=1e-9)
    assert row["max_abs"] == pytest.approx(largest)
    bias = by_name(result)[BIAS]
    assert (bias["status"], bias["other_not_finite"]) == ("changed", 60)
    assert all(math.isnan(bias[name]) for name in ("relative_change", "cosine", "max_abs"))
    (said,) = [each for each in result.warnings if "NaN" in each]
    assert said.startswith("b holds NaN or infinity in ")
    assert EMBEDDING in said
    assert BIAS in said
    assert result.vocabulary.not_finite == 2
    gone = result.tokens.loc[result.tokens["token_id"].isin([3, 5])]
    assert gone["distance"].isna().all()
    assert not {3, 5} & set(result.tokens_moved["token_id"])
    plain = json.dumps(to_json(result), allow_nan=False)
    assert "NaN" in plain
    same = ask(second, second)  # NaN in the same places: equal, and still named
    assert same.counts == {"equal": len(same.tensors)}
    assert "holds NaN" in " ".join(same.warnings)


def test_a_zero_tensor_has_neither_direction_nor_share(saved):
    def zeroed(tensors):
        tensors[BIAS] = torch.zeros(60)
        return tensors

    model = random_model("BertForMaskedLM")
    row = by_name(ask(saved(model, "zero", zeroed), saved(model, "whole")))[BIAS]
    assert row["status"] == "changed"
    assert math.isnan(row["relative_change"])
    assert math.isnan(row["cosine"])
    assert row["max_abs"] == model.cls.predictions.bias.abs().max().item()


@pytest.mark.parametrize(
    ("whole", "prefix"),
    [("BertForMaskedLM", "bert."), ("LlamaForCausalLM", "model."), ("DistilBertForMaskedLM", "distilbert.")],
)
def test_a_prefix_is_no_difference(whole, prefix, saved, tmp_path, open_path):
    model = random_model(whole)
    folder = tmp_path / "base"
    getattr(model, prefix.rstrip(".")).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words()) + "\n", encoding="utf-8")
    result = ask(saved(model, "whole"), open_path(folder))
    rows = by_name(result)
    matched = {name: row for name, row in rows.items() if row["matched"]}
    stored = load_file(folder / "model.safetensors")
    assert {row["other_name"] for row in matched.values()} == set(stored)
    assert all(name == prefix + row["other_name"] for name, row in matched.items())
    assert {row["status"] for row in matched.values()} == {"equal"}
    assert {row["matched"] for row in matched.values()} == {"spelling"}
    assert {row["status"] for name, row in rows.items() if name not in matched} == {"removed"}
    assert result.vocabulary.matched == 60
    assert result.vocabulary.moved == 0
    if whole == "BertForMaskedLM":
        matrix, bias = result.ties_changed
        assert matrix.names == (EMBEDDING, DECODER)
        assert (matrix.tied_in, matrix.other_verdict) == ("first", "absent")
        assert DECODER in matrix.reason
        assert bias.other_verdict == "absent"


@pytest.mark.parametrize("both_ways", [False, True])
def test_an_untied_copy_is_found_through_its_tie(both_ways, saved):
    tied = random_model("BertForMaskedLM")
    untied = random_model("BertForMaskedLM", tie_word_embeddings=False)
    missing, _ = untied.load_state_dict(tied.state_dict(), strict=False)
    assert not missing
    with torch.no_grad():
        untied.cls.predictions.decoder.weight.mul_(1.5)
    first, second = saved(tied, "tied"), saved(untied, "untied")
    result = ask(second, first) if both_ways else ask(first, second)
    through = [row for row in result.tensors.to_dict("records") if row["matched"] == "tie"]
    (row,) = [row for row in through if row["shape"] == "60 × 32"]
    decoder = row["name"] if both_ways else row["other_name"]
    kept = row["other_name"] if both_ways else row["name"]
    assert (decoder, kept) == (DECODER, EMBEDDING)
    assert row["status"] == "changed"
    assert row["relative_change"] == pytest.approx(1 / 3 if both_ways else 0.5, rel=1e-6)
    names = {row["name"]: row["status"] for row in result.tensors.to_dict("records")
             if row["matched"] != "tie"}  # fmt: skip
    assert names[EMBEDDING] == "equal"
    tie = next(each for each in result.ties_changed if EMBEDDING in each.names)
    assert tie.names == (EMBEDDING, DECODER)
    assert tie.tied_in == ("second" if both_ways else "first")
    assert tie.other_verdict == "diverged"
    assert any("Ties differ" in sentence for sentence in result.summary)
    # What the file does not hold twice counts once in the whole.
    assert result.overall["relative_change"] == 0.0


def test_a_resized_vocabulary_is_matched_by_token(saved):
    model = random_model("BertForMaskedLM")
    first = saved(model, "small")
    model.resize_token_embeddings(64, mean_resizing=False)
    second = saved(model, "large", vocabulary=[*words(), "n1", "n2", "n3", "n4"])
    result = ask(first, second)
    row = by_name(result)[EMBEDDING]
    assert (row["status"], row["shape"], row["other_shape"]) == ("reshaped", "60 × 32", "64 × 32")
    assert math.isnan(row["relative_change"])
    match = result.vocabulary
    assert (match.matched, match.alone, match.other_alone) == (60, 0, 4)
    assert match.other_alone_examples == ("n1", "n2", "n3", "n4")
    assert (match.moved, match.same_row) == (0, 60)
    back = ask(second, first).vocabulary
    assert (back.alone, back.other_alone, back.alone_examples) == (4, 0, match.other_alone_examples)


def test_a_permuted_vocabulary_moves_no_token(saved):
    model = random_model("BertForMaskedLM")
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))

    def permuted(tensors):
        return tensors | {EMBEDDING: tensors[EMBEDDING][order].contiguous()}

    first = saved(model, "a")
    second = saved(model, "b", permuted, vocabulary=[words()[row] for row in order.tolist()])
    result = ask(first, second)
    assert by_name(result)[EMBEDDING]["status"] == "changed"  # the rows of the file did change
    match = result.vocabulary
    assert (match.matched_by, match.matched, match.moved) == ("token", 60, 0)
    assert match.same_row == int((order == torch.arange(60)).sum())
    where = {row["token_id"]: row["other_token_id"] for row in result.tokens.to_dict("records")}
    assert where == {old: new for new, old in enumerate(order.tolist())}
    assert len(result.tokens_moved) == 0


def test_tokens_that_moved_are_measured_exactly(saved):
    model = random_model("BertForMaskedLM")

    def moved(tensors):
        tensors[EMBEDDING][10] += 1.0
        tensors[EMBEDDING][20] *= 3.0
        return tensors

    first, second = saved(model, "a"), saved(model, "b", moved)
    result = ask(first, second, moved=1)
    a, b = first.embedding_matrix().double(), second.embedding_matrix().double()
    distances = (b - a).norm(dim=1)
    assert result.vocabulary.moved == 2
    (top,) = result.tokens_moved.to_dict("records")
    assert top["token_id"] == int(distances.argmax())
    assert top["distance"] == pytest.approx(distances.max().item())
    rows = result.tokens.set_index("token_id")
    assert rows["distance"].tolist() == pytest.approx(distances.tolist())
    assert rows.loc[20, "cosine"] == pytest.approx(1.0)
    assert rows.loc[20, "relative_change"] == pytest.approx(2.0, rel=1e-6)
    cosine = torch.nn.functional.cosine_similarity(a[10], b[10], dim=0).item()
    assert rows.loc[10, "cosine"] == pytest.approx(cosine)
    assert rows.loc[10, "token"] == words()[10]


@pytest.mark.parametrize("seed", [0, 1])
def test_procrustes_recovers_a_rotation(seed, saved):
    model = random_model("BertForMaskedLM")
    generator = torch.Generator().manual_seed(seed)
    rotation, _ = torch.linalg.qr(torch.randn(32, 32, generator=generator, dtype=torch.float64))

    def turned(tensors, by=0.0):
        matrix = (tensors[EMBEDDING].double() @ rotation).float()
        matrix[7] += by
        return tensors | {EMBEDDING: matrix}

    first = saved(model, "a")
    exact = ask(first, saved(model, "turned", turned), align=True)
    assert exact.vocabulary.alignment.relative_after < 1e-6
    assert exact.tokens["distance"].max() < 1e-5
    assert exact.vocabulary.moved == 60  # as they are stored, every row differs
    second = saved(model, "b", lambda tensors: turned(tensors, 0.3))  # one token really moved
    plain, aligned = ask(first, second), ask(first, second, align=True)
    assert plain.vocabulary.alignment is None
    assert (plain.tokens["distance"] > 0.5).all()
    alignment = aligned.vocabulary.alignment
    a, b = (each.embedding_matrix().double().numpy() for each in (first, second))
    expected, _ = orthogonal_procrustes(a, b)
    distances = np.linalg.norm(a @ expected - b, axis=1)
    assert aligned.tokens["distance"].tolist() == pytest.approx(distances.tolist(), rel=1e-6)
    assert aligned.tokens_moved["token_id"].iloc[0] == 7
    assert alignment.relative_before == pytest.approx(np.linalg.norm(a - b) / np.linalg.norm(a), rel=1e-9)
    assert alignment.relative_after == pytest.approx(np.linalg.norm(a @ expected - b) / np.linalg.norm(a), rel=1e-9)
    assert alignment.relative_after < alignment.relative_before
    assert "too few rows" in alignment.note  # 60 rows of 32 numbers


@pytest.mark.parametrize("wider_first", [False, True])
def test_other_widths_are_compared_after_a_rotation_alone(wider_first, saved):
    narrow = saved(random_model("BertForMaskedLM"), "narrow")
    wide = saved(random_model("BertForMaskedLM", hidden_size=48, seed=4), "wide")
    pair = (wide, narrow) if wider_first else (narrow, wide)
    plain = ask(*pair)
    assert plain.tokens["distance"].isna().all()
    assert len(plain.tokens_moved) == 0
    assert any("--align" in sentence for sentence in plain.summary)
    json.dumps(to_json(plain), allow_nan=False)
    aligned = ask(*pair, align=True)
    a, b = (each.embedding_matrix().double().numpy() for each in pair)
    a, b = (np.pad(each, ((0, 0), (0, 48 - each.shape[1]))) for each in (a, b))
    rotation, _ = orthogonal_procrustes(a, b)
    distances = np.linalg.norm(a @ rotation - b, axis=1)
    assert aligned.tokens["distance"].tolist() == pytest.approx(distances.tolist(), rel=1e-9)
    assert math.isnan(aligned.vocabulary.alignment.relative_before)
    assert aligned.vocabulary.alignment.columns == 48


def test_without_a_tokenizer_rows_are_matched_by_number_and_that_is_said(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    first = open_path(save_checkpoint(model, tmp_path / "a"))
    model.resize_token_embeddings(50)
    second = open_path(save_checkpoint(model, tmp_path / "b", tokenizer=False))
    result = ask(first, second)
    match = result.vocabulary
    assert (match.matched_by, match.matched, match.alone) == ("row", 50, 10)
    assert match.alone_examples == tuple(words()[50:55])
    (said,) = [each for each in result.warnings if "by their number" in each]
    assert "since b has no tokenizer" in said


def test_what_cannot_be_read_as_floats_is_named(saved):
    model = random_model("BertForMaskedLM")
    dense = "bert.encoder.layer.0.output.dense.weight"
    query = "bert.encoder.layer.1.attention.self.query.weight"

    def quantised(tensors):
        tensors[dense] = tensors[dense].mul(10).to(torch.int8)
        tensors[query.removesuffix(".weight") + ".qweight"] = torch.zeros(4, 32, dtype=torch.int32)
        del tensors[query]
        return tensors

    whole, packed = saved(model, "a"), saved(model, "b", quantised)
    rows = by_name(ask(whole, packed))
    assert rows[dense]["status"] == "not compared"
    assert "int8" in rows[dense]["note"]
    assert rows[query]["status"] == "not compared"
    assert "qweight" in rows[query]["note"]
    assert math.isnan(rows[dense]["relative_change"])
    again = by_name(ask(packed, packed))
    assert again[dense]["status"] == "equal"

    def other_codes(tensors):
        tensors = quantised(tensors)
        tensors[dense][0, 0] += 1
        return tensors

    changed = by_name(ask(packed, saved(model, "c", other_codes)))[dense]
    assert (changed["status"], changed["note"]) == ("changed", "int8: compared for equality only")


def test_added_and_removed_tensors(saved):
    model = random_model("BertForMaskedLM")

    def changed(tensors):
        del tensors["bert.encoder.layer.1.output.dense.bias"]
        return tensors | {"adapter.down.weight": torch.ones(2, 32)}

    result = ask(saved(model, "a"), saved(model, "b", changed))
    rows = by_name(result)
    assert rows["bert.encoder.layer.1.output.dense.bias"]["status"] == "removed"
    assert rows["adapter.down.weight"]["status"] == "added"
    assert result.counts["added"] == result.counts["removed"] == 1
    assert result.tensors["name"].iloc[-1] == "adapter.down.weight"


def test_weights_alone_are_compared_without_ties(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForMaskedLM"), tmp_path / "a")
    file = folder / "model.safetensors"
    tensors = load_file(file)
    other = tmp_path / "other.safetensors"
    save_file({name: 2 * each for name, each in tensors.items()}, other)
    result = ask(open_path(file), open_path(other))
    assert result.counts == {"changed": len(tensors)}
    assert result.overall["relative_change"] == pytest.approx(1.0)
    assert not result.ties_compared
    assert any(each.startswith("Ties are not compared.") for each in result.warnings)


def test_headers_alone_say_what_they_decide(saved, monkeypatch):
    model = random_model("BertForMaskedLM")

    def change(tensors):
        del tensors[BIAS]
        tensors["more"] = torch.ones(3)
        tensors[EMBEDDING] = tensors[EMBEDDING].bfloat16()
        return tensors

    first, second = saved(model, "first"), saved(model, "second", change)

    def refuse(*_, **__):
        raise AssertionError("A number was read.")

    monkeypatch.setattr(compute_streams, "stream_together", refuse)
    monkeypatch.setattr(compute_streams, "read_tensors", refuse)
    result = ask(first, second, values="none")
    rows = by_name(result)
    decided = {name: row["status"] for name, row in rows.items() if row["note"] != UNREAD}
    assert decided == {BIAS: "removed", "more": "added"}
    assert (rows[EMBEDDING]["dtype"], rows[EMBEDDING]["other_dtype"]) == ("float32", "bfloat16")
    assert {row["status"] for row in rows.values()} == {"removed", "added", "not compared"}
    assert rows[EMBEDDING]["relative_change"] is None or math.isnan(rows[EMBEDDING]["relative_change"])
    assert result.values == "none"
    assert result.vocabulary is None
    assert f"{len(rows) - 2} tensors have one shape each" in result.summary[0]
    assert any("no numbers were read" in each for each in result.warnings)


@pytest.fixture
def small_samples(monkeypatch):
    """64 bytes a page, and 64 pages a tensor."""
    monkeypatch.setattr(streams, "PAGE", 64)
    monkeypatch.setattr(compute_streams, "BLOCK", 1_000)


def test_a_sample_sees_what_is_everywhere_and_says_what_it_cannot_see(saved, small_samples):
    model, generator = random_model("BertForMaskedLM"), torch.Generator().manual_seed(0)
    numbers = torch.randn(100_000, generator=generator)
    moved = numbers + 0.1 * torch.randn(100_000, generator=generator)
    one_number = numbers.clone()
    one_number[1] += 1  # before the first page
    whole = torch.arange(100_000)
    first = {"moved": numbers, "one": numbers + 1, "whole": whole, "short": torch.ones(7), "cast": numbers + 2}
    second = {"moved": moved, "one": one_number + 1, "whole": whole, "short": torch.ones(7)}
    second["cast"] = first["cast"].bfloat16()
    two = saved(model, "a", lambda all_: all_ | first), saved(model, "b", lambda all_: all_ | second)
    result = ask(*two, values="sample")
    rows = by_name(result)
    assert {name: rows[name]["status"] for name in first} == {
        "moved": "changed",
        "one": "equal in sample",
        "whole": "equal in sample",
        "short": "equal",  # it was read whole
        "cast": "dtype changed",
    }
    assert rows["moved"]["note"] == "by a sample of 1,024 of 100,000 numbers"
    assert rows["whole"]["note"] == "by a sample of 512 of 100,000 numbers"
    assert rows["cast"]["note"].startswith("by a sample of 1,024 of 100,000 numbers; exactly what rounding to bfloat16")
    assert rows["short"]["note"] == ""
    relative, cosine, largest = truth(numbers, moved)
    assert rows["moved"]["relative_change"] == pytest.approx(relative, rel=0.1)
    assert rows["moved"]["cosine"] == pytest.approx(cosine, abs=0.001)
    assert 0 < rows["moved"]["max_abs"] <= largest
    assert rows["moved"]["norm"] == pytest.approx(numbers.norm().item(), rel=0.1)
    every = ask(*two)
    assert result.overall["relative_change"] == pytest.approx(every.overall["relative_change"], rel=0.2)
    assert by_name(every)["one"]["status"] == "changed"  # which the sample could not see
    assert result.values == "sample"
    assert result.summary[0].startswith("Only a sample of the numbers of both was read (--values all")
    assert "what is equal in the sample may differ elsewhere" in result.summary[0]
    assert result.vocabulary is None
    assert "Tokens are not compared: only a sample of the numbers was read (--values all compares them)." in (
        result.warnings
    )


def test_a_sample_of_small_tensors_is_all_of_them(saved):
    model = random_model("BertForMaskedLM")
    result = ask(saved(model, "a"), saved(model, "b"), values="sample")
    assert result.counts == {"equal": len(result.tensors)}
    assert not any("sample" in sentence for sentence in result.summary)


@pytest.mark.parametrize("shift", [0, 8])
def test_a_sample_of_codes_is_dequantized(shift, saved, small_samples):
    model = random_model("BertForMaskedLM")
    codes = torch.randn(512, 256, generator=torch.Generator().manual_seed(0)).to(torch.float8_e4m3fn)
    other = (codes.view(torch.uint8) + shift).view(torch.float8_e4m3fn)  # 8: each is twice as large
    scale = torch.full((4, 2), 0.5)
    result = ask(
        *(
            saved(model, name, lambda all_, x=x: all_ | {"x.weight": x, "x.weight_scale_inv": scale})
            for name, x in (("a", codes), ("b", other))
        ),
        values="sample",
    )
    row = by_name(result)["x.weight"]
    assert row["status"] == ("changed" if shift else "equal in sample")
    assert row["note"] == "by a sample of 4,096 of 131,072 numbers"
    assert row["relative_change"] == (pytest.approx(1.0, rel=0.05) if shift else 0)


def test_a_sample_of_old_files_with_other_strides_takes_the_same_places(tmp_path, open_path, small_samples):
    torch.manual_seed(0)
    matrix = torch.randn(500, 40)
    straight, turned = tmp_path / "a.bin", tmp_path / "b.bin"
    torch.save({"weight": matrix}, straight)
    torch.save({"weight": (2 * matrix).T.contiguous().T}, turned)
    (row,) = ask(open_path(straight), open_path(turned), values="sample").tensors.to_dict("records")
    assert (row["status"], row["note"]) == ("changed", "by a sample of 4,000 of 20,000 numbers")
    assert (row["relative_change"], row["cosine"]) == (pytest.approx(1.0), pytest.approx(1.0))


@pytest.mark.parametrize(("changed", "whole"), [(0, False), (50_000, True), (None, True)])
def test_whole_numbers_end_at_the_first_difference(changed, whole, saved, monkeypatch):
    monkeypatch.setattr(streams, "PIECE", 1_000)
    monkeypatch.setattr(streams, "PAGE", 64)
    model = random_model("BertForMaskedLM")
    numbers = torch.arange(100_000)
    other = numbers.clone()
    if changed is not None:
        other[changed] = -1
    compared = []
    compare_bits = compute_streams.compare_bits
    monkeypatch.setattr(compute_streams, "compare_bits", lambda a, b: compared.append(len(a)) or compare_bits(a, b))
    found = by_name(
        ask(*(saved(model, name, lambda all_, x=x: all_ | {"x": x}) for name, x in (("a", numbers), ("b", other))))
    )
    assert found["x"]["status"] == ("equal" if changed is None else "changed")
    least = 4 * numbers.nbytes // 10
    assert sum(compared) > least if whole else sum(compared) < least


def test_old_files_with_other_strides_are_read_in_the_same_order(tmp_path, open_path):
    torch.manual_seed(0)
    matrix = torch.randn(6, 5)
    straight, turned = tmp_path / "a.bin", tmp_path / "b.bin"
    torch.save({"weight": matrix}, straight)
    torch.save({"weight": (matrix + 1).T.contiguous().T}, turned)
    (row,) = ask(open_path(straight), open_path(turned)).tensors.to_dict("records")
    relative, cosine, largest = truth(matrix, matrix + 1)
    assert row["relative_change"] == pytest.approx(relative)
    assert row["cosine"] == pytest.approx(cosine)
    assert row["max_abs"] == pytest.approx(largest)


def test_layers_join_what_their_cells_hold(saved):
    first, second = (saved(random_model("BertForMaskedLM", seed=s), f"m{s}") for s in (1, 2))
    result = ask(first, second)
    cells = {(row["layer"], row["kind"]): row for row in result.layers.to_dict("records")}
    rows = by_name(result)
    assert {layer for layer, _ in cells} == {"layer 0", "layer 1"}
    assert len(cells) == 32
    for layer in (0, 1):
        name = f"bert.encoder.layer.{layer}.attention.self.query.weight"
        cell = cells[f"layer {layer}", "attention.self.query.weight"]
        assert cell["relative_change"] == rows[name]["relative_change"]
        assert rows[name]["layer"] == f"layer {layer}"
    assert rows[EMBEDDING]["layer"] == ""


def test_places_are_read_from_names():
    assert place_of("encoder.layer.11.output.dense.bias") == Place("encoder.layer", 11, "output.dense.bias")
    assert place_of("h.0.attn.c_attn.weight") == Place("h", 0, "attn.c_attn.weight")
    assert place_of("layers.3.mlp.experts.17.w1.weight").kind == "mlp.experts.*.w1.weight"
    assert place_of("embeddings.word_embeddings.weight").stack == ""
    assert label_stacks(["encoder.layers", "", "encoder.layers"]) == {"encoder.layers": "layer"}
    assert label_stacks(["encoder.block", "decoder.block"]) == {"encoder.block": "encoder", "decoder.block": "decoder"}
    assert label_stacks(["model.layers", "model.vision.layers"]) == {
        "model.layers": "layers",
        "model.vision.layers": "vision",
    }


def test_names_are_matched_only_where_there_is_one_partner():
    spelling = Spelling(["bert"])
    first = Names(["bert.a.gamma", "bert.b", "c"], [])
    second = Names(["a.weight", "b", "bert.b.x", "d"], [frozenset({"c", "d"})])
    assert match_names(first, second, spelling) == [
        Pair("bert.a.gamma", "a.weight", "spelling"),
        Pair("bert.b", "b", "spelling"),
        Pair("c", "d", "tie"),
        Pair(None, "bert.b.x", ""),
        Pair(None, "d", ""),
    ]
    twice = Names(["bert.b", "b"], [])
    assert match_names(twice, Names(["module.b"], []), spelling) == [
        Pair("bert.b", None, ""), Pair("b", None, ""), Pair(None, "module.b", ""),
    ]  # fmt: skip


def test_a_second_checkpoint_that_is_gone_is_one_sentence(open_model):
    checkpoint = open_model("BertForMaskedLM")
    with pytest.raises(RequestError) as refusal:
        compare(checkpoint, progress=silent, other="0" * 64)
    assert str(refusal.value) == (
        "The second checkpoint cannot be read. This checkpoint is no longer in the store: open it again."
    )
    with pytest.raises(RequestError, match="Tokens that moved most must be between 1 and 1,000, not 0"):
        ask(checkpoint, checkpoint, moved=0)
