"""The ladder against the head's modules called one by one, and against brute-force ranks."""

from __future__ import annotations

import math
from itertools import pairwise

import pandas as pd
import pytest
import torch
import transformers

from inspector.analyses.ladder.compute import climb
from inspector.analyses.lens.compute import lens
from inspector.errors import CheckpointError, RequestError
from inspector.models.build import build_model, task_class
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.families import FAMILIES
from inspector.models.reading.ladder import build_ladder
from inspector.models.reading.readout import MOST_STATES, block_states, overlap, rank_correlation, read, top_tokens
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, random_model, save_checkpoint

CPU = torch.device("cpu")
TEXT = "w1 w2 w3 ##a w30"
SEQ2SEQ = sorted(set(ENCODER_DECODER) - {"T5EncoderModel"})


def outputs(model, ids, **inputs):
    with torch.inference_mode():
        found = model(torch.tensor([ids]), output_hidden_states=True, **inputs)
    logits = getattr(found, "logits", None)
    states = getattr(found, "decoder_hidden_states", None)
    return (
        (found.prediction_logits if logits is None else logits)[0],
        found.hidden_states if states is None else states,
    )


def without_table(checkpoint: StagedCheckpoint) -> StagedCheckpoint:
    """The same, of a family that the table does not have."""
    return StagedCheckpoint(checkpoint.manifest, settings=checkpoint.settings, families={})


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("architecture", sorted(MODELS) + SEQ2SEQ)
def test_the_top_is_the_models_own(architecture, dtype, tied):
    model = random_model(architecture, tie_word_embeddings=tied).to(dtype)
    for name, buffer in model.named_buffers():
        if name == "final_logits_bias":
            buffer.normal_()
    ids = [1, 5, 20, 33]
    inputs = {"decoder_input_ids": torch.tensor([ids])} if architecture in SEQ2SEQ else {}
    logits, states = outputs(model, ids, **inputs)
    ladder = build_ladder(model, FAMILIES[model.config.model_type])
    assert ladder is not None
    with torch.inference_mode():
        assert torch.equal(ladder.logits(states[-1][0]), logits)


@pytest.mark.parametrize(
    "changes", [{"word_embed_proj_dim": 16}, {"word_embed_proj_dim": 16, "do_layer_norm_before": False}]
)
def test_opt_with_a_narrow_embedding(changes):  # fmt: skip
    model = random_model("OPTForCausalLM", **changes)
    logits, states = outputs(model, [1, 5, 20])
    ladder = build_ladder(model, FAMILIES["opt"])
    assert ladder is not None
    with torch.inference_mode():
        assert torch.equal(ladder.logits(states[-1][0]), logits)
        assert ladder.logits(states[1][0], last=False).shape == logits.shape


@pytest.mark.parametrize("architecture", SEQ2SEQ)
def test_the_lens_reads_the_decoder(open_model, tmp_path, architecture):
    checkpoint = open_model(architecture)
    result = lens(checkpoint, progress=silent, text=TEXT, decoder_text="w4 w5", k=2, device="cpu",
                  dtype="float32")  # fmt: skip
    model = getattr(transformers, architecture).from_pretrained(tmp_path / architecture).eval()
    start = model.config.decoder_start_token_id
    if start is None:
        start = checkpoint.tokens.role("pad")[1]
    written = [start, *checkpoint.tokens.pieces("w4 w5")]
    logits, states = outputs(model, list(checkpoint.tokens.encode(TEXT).ids), decoder_input_ids=torch.tensor([written]))
    assert len(result.tokens) == len(written) == 3
    assert len(result.layers) == len(states)
    last = result.cells.query("rung == 'logits' and layer == @result.cells.layer.max()")
    assert last["token_id"].tolist() == logits.topk(2, dim=1).indices.flatten().tolist()
    assert result.max_abs_error is not None
    assert result.max_abs_error <= (result.tolerance or 0)


def test_every_rung_of_bert_by_its_modules(open_model):
    checkpoint = open_model("BertForMaskedLM")
    result = lens(checkpoint, progress=silent, text=TEXT, k=60, device="cpu", dtype="float32")
    assert result.rungs == ("dot", "cosine", "dot + bias", "dense", "activation", "LayerNorm",
                            "logits")  # fmt: skip
    model = random_model("BertForMaskedLM")
    head = model.cls.predictions
    matrix, bias = head.decoder.weight.detach(), head.decoder.bias.detach()
    _, states = outputs(model, list(checkpoint.tokens.encode(TEXT).ids))
    cells = result.cells.set_index(["rung", "layer", "position"]).sort_index()
    with torch.inference_mode():
        for layer, position in ((0, 0), (1, 3), (2, 5)):
            h = states[layer][0, position]
            dense = head.transform.dense(h)
            active = torch.nn.functional.gelu(dense)
            normed = head.transform.LayerNorm(active)
            truth = {
                "dot": matrix @ h, "dot + bias": matrix @ h + bias, "dense": matrix @ dense,
                "activation": matrix @ active, "LayerNorm": matrix @ normed,
                "logits": matrix @ normed + bias,
                "cosine": torch.nn.functional.cosine_similarity(matrix, h[None], dim=1),
            }  # fmt: skip
            for rung, scores in truth.items():
                found = cells.loc[(rung, layer, position)].sort_values("token_id")
                assert found["score"].tolist() == pytest.approx(scores.tolist(), abs=1e-4)
                if rung != "cosine":
                    assert found["probability"].sum() == pytest.approx(1.0, abs=1e-4)


def test_states_say_entropy_overlap_correlation_and_agreement(open_model):
    checkpoint = open_model("BertForMaskedLM")
    result = lens(checkpoint, progress=silent, text=TEXT, k=3, device="cpu", dtype="float32")
    model = random_model("BertForMaskedLM")
    logits, states = outputs(model, list(checkpoint.tokens.encode(TEXT).ids))
    table = result.states.set_index(["rung", "layer", "position"]).sort_index()
    matrix = model.cls.predictions.decoder.weight.detach()
    with torch.inference_mode():
        for layer in range(3):
            inner = model.cls(states[layer])[0]
            for position in range(len(result.tokens)):
                dots = matrix @ states[layer][0, position]
                row = table.loc[("dot", layer, position)]
                p = dots.double().softmax(0)
                assert row["entropy"] == pytest.approx(-(p * p.log()).sum().item(), abs=1e-4)
                both = set(dots.topk(3).indices.tolist()) & set(inner[position].topk(3).indices.tolist())
                assert row["overlap"] == pytest.approx(len(both) / 3)
                assert row["agrees"] == float(dots.argmax() == logits[position].argmax())
                ranks = [scores.argsort().argsort().double() for scores in (dots, inner[position])]
                spearman = torch.corrcoef(torch.stack(ranks))[0, 1].item()
                assert row["correlation"] == pytest.approx(spearman, abs=1e-6)
    last = table.loc[("logits", 2)]
    assert last["agrees"].eq(1).all()
    assert last["overlap"].eq(1).all()


def test_pins_are_ranked_everywhere(open_model):
    checkpoint = open_model("GPT2LMHeadModel")
    result = lens(checkpoint, progress=silent, text=TEXT, k=1, pins=["w7", "id 3"], device="cpu",
                  dtype="float32")  # fmt: skip
    model = random_model("GPT2LMHeadModel")
    _, states = outputs(model, list(checkpoint.tokens.encode(TEXT).ids))
    pinned = result.pinned.set_index(["rung", "layer", "position", "token_id"])
    assert set(result.pinned["token"]) == {"w7", "[SEP]"}
    w7 = checkpoint.tokens.find("w7")
    with torch.inference_mode():
        for layer, state in enumerate(states[:-1]):
            logits = model.lm_head(model.transformer.ln_f(state[0]))
            for position, scores in enumerate(logits):
                row = pinned.loc[("logits", layer, position, w7)]
                order = sorted(range(60), key=lambda i: (-scores[i].item(), i))
                assert row["rank"] == order.index(w7)
                assert row["probability"] == pytest.approx(scores.softmax(0)[w7].item(), abs=1e-5)


def test_a_family_without_a_row_is_captured(tmp_path, open_path):
    folder = save_checkpoint(random_model("LlamaForCausalLM"), tmp_path / "unlisted")
    checkpoint = without_table(open_path(folder))
    result = lens(checkpoint, progress=silent, text=TEXT, k=2, device="cpu", dtype="float32")
    assert "captured" in result.warnings[0]
    assert set(result.cells.query("rung == 'logits'")["layer"]) == {2}
    assert result.max_abs_error is not None
    assert result.max_abs_error <= (result.tolerance or 0)
    logits, _ = outputs(random_model("LlamaForCausalLM"), list(checkpoint.require_tokens().encode(TEXT).ids))
    found = result.cells.query("rung == 'logits'")["token_id"].tolist()
    assert found == logits.topk(2, dim=1).indices.flatten().tolist()


def test_climbing_tells_what_each_step_did(open_model):
    checkpoint = open_model("BertForMaskedLM")
    result = climb(checkpoint, progress=silent, text=TEXT, layer=1, position=2, k=2, pins=["w9"],
                   device="cpu", dtype="float32")  # fmt: skip
    assert result.rungs == ("cosine", "dot", "dense", "activation", "LayerNorm", "logits")
    whole = lens(checkpoint, progress=silent, text=TEXT, k=60, layers=[1], device="cpu",
                 dtype="float32").cells.query("position == 2")  # fmt: skip
    place = whole.set_index(["rung", "token_id"])["rank"]
    for _, token in result.ranks.groupby("token_id"):
        ranks = [place[row["rung"], row["token_id"]] for _, row in token.iterrows()]
        assert token["rank"].tolist() == ranks
        assert token["change"].tolist() == [0] + [a - b for a, b in pairwise(ranks)]
    steps = dict(zip(result.ranks["rung"], result.ranks["step"], strict=True))
    assert steps == {"cosine": "", "dot": "the norm of its embedding", "dense": "the dense",
                     "activation": "the activation", "LayerNorm": "the LayerNorm",
                     "logits": "the output bias"}  # fmt: skip
    assert result.geometry.set_index("token").loc["w9", "pinned"]
    row = result.geometry.iloc[0]
    assert row["dot"] == pytest.approx(result.hidden_norm * row["norm"] * row["cosine"], abs=1e-4)


@pytest.mark.parametrize(
    ("architecture", "last"),
    [("GPT2LMHeadModel", 2), ("LlamaForCausalLM", 3), ("GemmaForCausalLM", 2), ("RobertaForMaskedLM", 2)],
)
def test_climbing_ranks_as_the_lens_at_every_layer_and_as_the_model_at_the_last(open_model, architecture, last):
    layers = {} if last == 2 else {"num_hidden_layers": last}
    checkpoint = open_model(architecture, **layers)
    ids = list(checkpoint.tokens.encode(TEXT).ids)
    logits, _ = outputs(random_model(architecture, **layers), ids)
    options = {"progress": silent, "text": TEXT, "device": "cpu", "dtype": "float32"}
    cells = (
        lens(checkpoint, k=60, **options).cells.set_index(["layer", "position", "rung", "token_id"])["rank"].to_dict()
    )
    for layer, position in ((0, 1), (1, 0), (2, 0), (last, 0), (last, len(ids) - 1)):
        ranks = climb(checkpoint, layer=layer, position=position, k=3, **options).ranks
        for _, row in ranks.iterrows():
            assert row["rank"] == cells[layer, position, row["rung"], row["token_id"]]
        if layer == last:
            order = sorted(range(60), key=lambda i: (-logits[position, i].item(), i))
            top = ranks[ranks["rung"] == "logits"].set_index("rank")["token_id"]
            assert [top[rank] for rank in range(3)] == order[:3]


def test_climbing_a_family_without_a_row_reads_the_captured_logits_of_its_position(tmp_path, open_path):
    folder = save_checkpoint(random_model("LlamaForCausalLM"), tmp_path / "unlisted")
    checkpoint = without_table(open_path(folder))
    logits, _ = outputs(random_model("LlamaForCausalLM"), list(checkpoint.require_tokens().encode(TEXT).ids))
    for position in (0, 2, len(logits) - 1):
        ranks = climb(checkpoint, progress=silent, text=TEXT, layer=2, position=position, k=2).ranks
        top = ranks[ranks["rung"] == "logits"].set_index("rank")["token_id"]
        assert [top[0], top[1]] == logits[position].topk(2).indices.tolist()


def test_climbing_an_untied_decoder_names_the_output_matrix(open_model):
    checkpoint = open_model("LlamaForCausalLM")  # untied by default
    result = climb(checkpoint, progress=silent, text=TEXT)
    assert (result.layer, result.position) == (2, len(checkpoint.tokens.encode(TEXT).ids) - 1)
    assert dict(zip(result.ranks["rung"], result.ranks["step"], strict=True))["logits"] == (
        "the output matrix and the final norm"
    )


def test_norms_decide_by_hand(open_model):
    """Of two tokens in one direction cosine takes either, the dot product the longer one."""
    embedding = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]])
    hidden = torch.tensor([[2.0, 1.0]])
    dots = read(hidden @ embedding.T, k=3, pins=torch.tensor([0]))
    assert dots.ids.tolist() == [[1, 0, 2]]
    assert dots.scores.tolist() == [[6.0, 2.0, 1.0]]
    total = math.exp(6) + math.exp(2) + math.exp(1)
    assert dots.probabilities[0].tolist() == pytest.approx([math.exp(s) / total for s in (6, 2, 1)])
    cosines = torch.nn.functional.cosine_similarity(hidden, embedding, dim=1)[None]
    assert read(cosines, k=3, pins=torch.tensor([1]), softmax=False).ids.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("seed", range(40))
def test_top_tokens_break_ties_by_id(seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 4, (5, 23), generator=generator).float()
    for k in (1, 2, 7, 23):
        ids, best = top_tokens(scores.clone(), k)
        for row, found, values in zip(scores.tolist(), ids.tolist(), best.tolist(), strict=True):
            order = sorted(range(23), key=lambda i: (-row[i], i))[:k]
            assert found == order
            assert values == [row[i] for i in order]
        pins = torch.tensor([0, 11, 22])
        ranks = read(scores.clone(), k=k, pins=pins).pinned_ranks
        for row, found in zip(scores.tolist(), ranks.tolist(), strict=True):
            order = sorted(range(23), key=lambda i: (-row[i], i))
            assert found == [order.index(pin) for pin in pins.tolist()]


def test_comparisons_by_hand():
    first = torch.tensor([[1, 2, 3], [4, 5, 6]])
    second = torch.tensor([[3, 9, 1], [7, 8, 9]])
    assert overlap(first, second).tolist() == pytest.approx([2 / 3, 0])
    up, down = torch.tensor([[1.0, 2.0, 5.0]]), torch.tensor([[9.0, 3.0, 1.0]])
    assert rank_correlation(up, up).tolist() == pytest.approx([1.0])
    assert rank_correlation(up, down).tolist() == pytest.approx([-1.0])
    assert rank_correlation(up[:, :1], down[:, :1]).isnan().all()


def test_a_text_longer_than_a_block_is_read_whole(open_model):
    checkpoint = open_model("BertForMaskedLM", max_position_embeddings=512)
    text = f"{TEXT} " * 50
    result = lens(checkpoint, progress=silent, text=text, k=4, pins=["w9"], device="cpu", dtype="float32")
    ids, pin = list(checkpoint.tokens.encode(text).ids), checkpoint.tokens.find("w9")
    assert len(ids) > block_states(60, CPU) == MOST_STATES
    model = random_model("BertForMaskedLM", max_position_embeddings=512)
    _, states = outputs(model, ids)
    with torch.inference_mode():
        logits = model.cls(torch.cat(states))
    best = logits.topk(4)
    cells = result.cells.query("rung == 'logits'")
    assert cells["token_id"].tolist() == best.indices.flatten().tolist()
    assert cells["score"].tolist() == pytest.approx(best.values.flatten().tolist(), abs=1e-4)
    ranks = (logits > logits[..., pin, None]).sum(dim=-1)
    assert result.pinned.query("rung == 'logits'")["rank"].tolist() == ranks.flatten().tolist()


@pytest.mark.parametrize(
    ("rows", "states"), [(1, 256), (60, 256), (93_750, 256), (93_751, 255), (250_000, 96), (10**9, 1)]
)
def test_a_block_has_fewer_states_of_a_larger_vocabulary(rows, states):
    assert block_states(rows, CPU) == states


def test_a_gpu_reads_more_states_at_once():
    gpu = torch.device("cuda:0")
    assert [block_states(rows, gpu) for rows in (60, 93_750, 10**9)] == [2_048, 1_024, 1]


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("GPT2LMHeadModel", "transformer.h.1.mlp.c_proj.bias"),  # the states are NaN
        ("BertForMaskedLM", "cls.predictions.transform.LayerNorm.weight"),  # the logits alone are
        ("CohereForCausalLM", "model.norm.weight"),
    ],
)
def test_a_model_that_answers_with_nan_is_not_read(tmp_path, open_path, architecture, name):
    model = random_model(architecture)
    with torch.no_grad():
        model.get_parameter(name).fill_(float("nan"))
    checkpoint = open_path(save_checkpoint(model, tmp_path / "nan"))
    for ask in (lens, climb):
        with pytest.raises(CheckpointError, match=f"its {name} contains NaN or infinity"):
            ask(checkpoint, progress=silent, text="w1", k=2)


def test_numbers_that_overflow_are_not_called_damaged(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel")
    with torch.no_grad():
        model.transformer.h[1].mlp.c_proj.weight.fill_(6e4)
    checkpoint = open_path(save_checkpoint(model, tmp_path / "large"))
    with pytest.raises(
        CheckpointError, match="its weights contain neither, so its activations overflow in float16; use float32"
    ):
        lens(checkpoint, progress=silent, text="w1", dtype="float16")
    assert len(lens(checkpoint, progress=silent, text="w1", dtype="float32").cells)


def test_too_many_pins_are_refused(open_model):
    checkpoint = open_model("BertForMaskedLM")
    for ask in (lens, climb):
        with pytest.raises(RequestError, match=r"^Pinned tokens: give at most 8, not 9\.$"):
            ask(checkpoint, progress=silent, text="w1", pins=["w1"] * 9)


def test_a_pin_that_is_no_token_is_named_and_the_others_are_followed(open_model):
    checkpoint = open_model("BertForMaskedLM")
    pins = ["w1", "no such token", "w2"]
    result = lens(checkpoint, progress=silent, text="w1", pins=pins)
    assert [text for text in result.warnings if "'no such token' is not a single token of" in text]
    alone = lens(checkpoint, progress=silent, text="w1", pins=["w1", "w2"])
    pd.testing.assert_frame_equal(result.pinned, alone.pinned)


def test_climbing_refuses_places_that_are_not_there(open_model):
    checkpoint = open_model("BertForMaskedLM")
    with pytest.raises(RequestError, match="no position 9: this text has 0 to 2"):
        climb(checkpoint, progress=silent, text="w1", position=9)
    with pytest.raises(RequestError, match="no layer 5"):
        climb(checkpoint, progress=silent, text="w1", layer=5)
    with pytest.raises(RequestError, match=r"^Tokens per cell must be between 1 and 100, not 101"):
        climb(checkpoint, progress=silent, text="w1", k=101)


def test_the_encoder_of_a_t5_alone(open_model):
    checkpoint = open_model("T5EncoderModel", is_encoder_decoder=False)
    result = lens(checkpoint, progress=silent, text=TEXT, k=1, device="cpu", dtype="float32")
    assert result.rungs == ("dot", "cosine")
    model = random_model("T5EncoderModel")
    with torch.inference_mode():
        states = model(torch.tensor([checkpoint.tokens.encode(TEXT).ids]),
                       output_hidden_states=True).hidden_states  # fmt: skip
        best = (states[-1][0] @ model.shared.weight.T).argmax(dim=1).tolist()
    last = result.cells.query("rung == 'dot' and layer == @result.cells.layer.max()")
    assert last["token_id"].tolist() == best


def test_table_and_builder_agree_on_the_class(open_model):
    """Every family of the table is built by the class that its ladder is written for."""
    for architecture in (*MODELS, *SEQ2SEQ):
        checkpoint = open_model(architecture)
        task = "seq2seq_lm" if architecture in SEQ2SEQ else next(
            t for t in ("masked_lm", "causal_lm") if checkpoint.heads[t] == "present"
        )  # fmt: skip
        model, missing = build_model(task_class(checkpoint.config, task), checkpoint.config, checkpoint.state, name="x")
        assert not missing
        assert build_ladder(model, FAMILIES[model.config.model_type]) is not None
