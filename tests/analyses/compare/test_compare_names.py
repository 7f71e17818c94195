"""Which tensors of two checkpoints are partners, and where their names place them."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from inspector.analyses.compare.compute_layers import TensorPlace, label_stacks, place_of
from inspector.analyses.compare.compute_names import CheckpointNames, Pair, Spelling, match_names
from tests.analyses.compare.compare_truth import DECODER, EMBEDDING, ask, by_name
from tests.families import random_model, words


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
    assert place_of("encoder.layer.11.output.dense.bias") == TensorPlace("encoder.layer", 11, "output.dense.bias")
    assert place_of("h.0.attn.c_attn.weight") == TensorPlace("h", 0, "attn.c_attn.weight")
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
    first = CheckpointNames(["bert.a.gamma", "bert.b", "c"], [])
    second = CheckpointNames(["a.weight", "b", "bert.b.x", "d"], [frozenset({"c", "d"})])
    assert match_names(first, second, spelling) == [
        Pair("bert.a.gamma", "a.weight", "spelling"),
        Pair("bert.b", "b", "spelling"),
        Pair("c", "d", "tie"),
        Pair(None, "bert.b.x", ""),
        Pair(None, "d", ""),
    ]
    twice = CheckpointNames(["bert.b", "b"], [])
    assert match_names(twice, CheckpointNames(["module.b"], []), spelling) == [
        Pair("bert.b", None, ""), Pair("b", None, ""), Pair(None, "module.b", ""),
    ]  # fmt: skip
