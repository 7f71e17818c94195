"""The model's classes against Python's own order of bases, named_modules, and real passes."""

from __future__ import annotations

import dataclasses
import inspect
import json
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from inspector.analyses.classes import compute_output
from inspector.analyses.classes.compute import classes
from inspector.analyses.classes.compute_hierarchy import family_classes, summary
from inspector.analyses.classes.compute_merged import merge, missing_of
from inspector.analyses.classes.compute_modules import fold_tree, module_rows, tree_text
from inspector.analyses.classes.compute_output import model_output
from inspector.errors import CheckpointError, NotInCheckpointError
from inspector.models.build import build_model
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.weightless.outline import build_outline
from inspector.results.checkpoint import HEADS
from inspector.results.plain import to_json
from inspector.settings import read_settings
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, RENAMED, UNLISTED, WITHOUT_HEAD, random_model, save_checkpoint

EVERY = sorted(MODELS | WITHOUT_HEAD)
LOADED = ["AlbertForMaskedLM", "BertForTokenClassification", "DistilBertModel", "GPT2LMHeadModel",
          "LlamaModel", "OPTForCausalLM"]  # fmt: skip
OTHERS = sorted(ENCODER_DECODER | UNLISTED | RENAMED)
RUNNING = {"DeepseekV3ForCausalLM": {"head_dim": 8}}  # with the families' own, it can be built alone
LOOK_AT_NUMBERS = {"JetMoeForCausalLM"}  # to split the tokens among experts
MERGED = ["DeepseekV3ForCausalLM", "MixtralForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM"]
TEXT = "w1 w2 w3 w4 w5"
T5 = {"vocab_size": 60, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 3, "num_heads": 2,
      "decoder_start_token_id": 0}  # fmt: skip
BART = {
    "vocab_size": 60, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "max_position_embeddings": 64, "decoder_start_token_id": 2,
}  # fmt: skip


def ask(checkpoint, text=TEXT):
    return classes(checkpoint, progress=silent, text=text)


def fields(result):
    """The fields of the output, by name."""
    assert result.output is not None
    return {field.field: field for field in result.output.fields}


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """Each architecture's checkpoint and answer, asked for once."""
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path_factory.mktemp("home"))})

    @cache
    def answer(architecture):
        folder = tmp_path_factory.mktemp("model") / architecture
        save_checkpoint(random_model(architecture), folder)
        manifest, _ = open_checkpoint(
            CheckpointRef("path", str(folder)),
            settings=settings, progress=silent, restrict_paths=False,
        )  # fmt: skip
        checkpoint = StagedCheckpoint(manifest, settings=settings)
        return checkpoint, ask(checkpoint)

    return answer


def built(architecture, config):
    """A random model of a class that the families' table does not have."""
    model_class = getattr(transformers, architecture)
    torch.manual_seed(0)
    return model_class(model_class.config_class(**config)).eval()


def real_output(checkpoint, model, **arguments) -> Any:
    """What the model itself returns for the text, computed for real."""
    model.set_attn_implementation("eager")  # the others return no attentions
    encoded = checkpoint.require_tokens().encode(TEXT)
    ids = torch.tensor([encoded.ids])
    if type(model).__name__.endswith("ForMultipleChoice"):
        ids = ids[:, None].repeat(1, 2, 1)
    if model.config.is_encoder_decoder:
        arguments["decoder_input_ids"] = ids
    with torch.inference_mode():
        return model(
            input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True,
            output_attentions=True, return_dict=True, **arguments,
        )  # fmt: skip


def flat(value) -> list[Any]:
    """Every tensor in a field of an output, found in another way than the analysis does."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, transformers.EncoderDecoderCache):
        return flat(value.self_attention_cache) + flat(value.cross_attention_cache)
    if isinstance(value, transformers.Cache):
        layers: list[Any] = value.layers
        return [tensor for layer in layers for tensor in (layer.keys, layer.values)]
    return [tensor for item in value or () for tensor in flat(item)]


def assert_output_is(found, truth):
    assert found.class_name == type(truth).__name__
    assert [field.field for field in found.fields] == list(truth.__dataclass_fields__)
    for field in found.fields:
        tensors = flat(truth[field.field]) if truth.get(field.field) is not None else []
        assert field.returned == (truth.get(field.field) is not None), field.field
        assert field.count == len(tensors), field.field
        if tensors and len({tensor.shape for tensor in tensors}) == 1:
            assert field.shape == tuple(tensors[0].shape), field.field
            assert field.dtype == str(tensors[0].dtype).removeprefix("torch.")
            assert len(field.axes) == len(field.shape)
        else:
            assert field.shape is None
        assert field.note


@pytest.mark.parametrize("name", EVERY)
def test_modules_and_parameters_are_the_models_own(answered, name):
    _, result = answered(name)
    model = random_model(name)
    assert result.model_class == name
    assert result.parameters == model.num_parameters()
    truth = dict(model.named_modules(remove_duplicate=False))
    assert [row.name for row in result.modules] == list(truth)
    for row in result.modules:
        module = truth[row.name]
        assert row.class_name == type(module).__name__
        assert row.parameters == sum(p.numel() for p in module.parameters())
        assert row.own_parameters == sum(p.numel() for p in module.parameters(recurse=False))
        assert row.shapes == {key: tuple(p.shape) for key, p in module.named_parameters(recurse=False)}
        assert row.missing == ()
    assert sum(each.own_parameters for each in result.used_classes) == result.parameters
    assert sum(each.modules for each in result.used_classes) == len(list(model.modules()))


@pytest.mark.parametrize("name", EVERY)
def test_output_is_that_of_a_real_pass(answered, name):
    checkpoint, found = answered(name)
    assert found.warnings == ()
    assert_output_is(found.output, real_output(checkpoint, random_model(name)))


@pytest.mark.parametrize("name", EVERY)
def test_hierarchy_is_pythons_own(answered, name):
    _, result = answered(name)
    truth = [each for each in inspect.getmro(getattr(transformers, name)) if each is not object]
    assert [(each.name, each.module) for each in result.hierarchy] == [
        (each.__name__, each.__module__) for each in truth
    ]
    for each, own in zip(result.hierarchy, truth, strict=True):
        assert (each.kind == "class") == issubclass(own, torch.nn.Module)
        for added in each.adds:
            assert added.partition(" ")[0].removesuffix("()") in vars(own)
        if each.via:
            (child,) = [other for other in truth if other.__name__ == each.via]
            assert own in child.__bases__
    assert [each.name for each in result.hierarchy if each.via is None] == [name]


def test_bert_for_pre_training_and_what_it_adds(answered):
    _, result = answered("BertForPreTraining")
    chain = [each.name for each in result.hierarchy if each.kind == "class"]
    assert chain == ["BertForPreTraining", "BertPreTrainedModel", "PreTrainedModel", "Module"]
    own, family, *_ = result.hierarchy
    assert "forward()" in own.adds
    assert any(added.startswith("_tied_weights_keys = ") for added in own.adds)
    assert "base_model_prefix = 'bert'" in family.adds
    assert "GenerationMixin" not in [each.name for each in result.hierarchy]
    causal = answered("GPT2LMHeadModel")[1].hierarchy
    (generation,) = [each for each in causal if each.name == "GenerationMixin"]
    assert (generation.kind, generation.via) == ("mixin", "GPT2LMHeadModel")
    assert "generate()" in generation.adds


@pytest.mark.parametrize("name", EVERY)
def test_siblings_agree_with_the_heads(answered, name):
    checkpoint, result = answered(name)
    assert (result.siblings[0].name, result.siblings[0].present) == (name, True)
    assert len({each.name for each in result.siblings}) == len(result.siblings)
    for each in result.siblings[1:]:
        if each.head in HEADS:
            assert each.present == (checkpoint.heads[each.head] == "present"), each


@pytest.mark.parametrize("name", LOADED)
def test_siblings_lack_what_transformers_itself_misses(tmp_path, open_path, name):
    folder = save_checkpoint(random_model(name), tmp_path / name)
    for each in ask(open_path(folder)).siblings:
        model_class = getattr(transformers, each.name)
        _, info = model_class.from_pretrained(folder, output_loading_info=True, ignore_mismatched_sizes=True)
        assert each.note.startswith("It does not fit") == bool(info["mismatched_keys"])
        assert each.missing == (0 if info["mismatched_keys"] else len(info["missing_keys"])), each


def test_what_the_choice_of_class_means_for_a_pre_training_file(answered):
    found = {each.name: each for each in answered("BertForPreTraining")[1].siblings}
    present = {name for name, each in found.items() if each.present}
    assert present == {
        "BertForPreTraining", "BertForMaskedLM", "BertForNextSentencePrediction", "BertModel"
    }  # fmt: skip
    assert found["BertForQuestionAnswering"].missing == 2
    assert "qa_outputs" in found["BertForQuestionAnswering"].note
    assert found["BertLMHeadModel"].missing == 0
    assert "trained as BertForPreTraining" in found["BertLMHeadModel"].note
    assert {each.parent for each in found.values()} == {"BertPreTrainedModel"}


def test_a_class_whose_names_fit_by_chance_is_not_present(answered):
    found = {each.name: each for each in answered("BertForTokenClassification")[1].siblings}
    assert found["BertForTokenClassification"].present
    other = found["BertForSequenceClassification"]  # needs a pooler, which this file lacks
    assert (other.present, other.missing) == (False, 2)
    shapes = found["BertForMultipleChoice"]  # one output where this file has two
    assert not shapes.present
    assert shapes.note.startswith("It does not fit: classifier.")
    base = found["BertModel"]
    assert (base.present, base.missing) == (True, 2)
    assert "pooler.dense.bias" in base.note


def test_a_tied_model_counted_by_hand(open_model):
    result = ask(open_model("GPT2LMHeadModel"))
    layer = 2 * 64 + (32 * 96 + 96) + (32 * 32 + 32) + (32 * 128 + 128) + (128 * 32 + 32)
    assert result.parameters == 60 * 32 + 64 * 32 + 2 * layer + 64
    rows = {row.name: row for row in result.modules}
    assert rows["lm_head"].parameters == rows["transformer.wte"].parameters == 60 * 32
    assert rows["lm_head"].shared == {"weight": ("transformer.wte.weight",)}
    assert rows["transformer"].parameters == result.parameters
    used = {each.name: each for each in result.used_classes}
    assert used["Linear"].own_parameters == 0  # the embedding's matrix, counted there
    untied = ask(open_model("GPT2LMHeadModel", tie_word_embeddings=False))
    assert untied.parameters == result.parameters + 60 * 32
    assert {row.name: row.shared for row in untied.modules}["lm_head"] == {}


def test_like_layers_are_one_line_and_others_are_not(open_model):
    result = ask(open_model("BertForMaskedLM", num_hidden_layers=4))
    (layers,) = [line for line in result.tree if line.class_name == "BertLayer"]
    one = sum(p.numel() for p in random_model("BertForMaskedLM").bert.encoder.layer[0].parameters())
    assert (layers.label, layers.count, layers.parameters) == ("[0–3]", 4, 4 * one)
    assert "[0–3]: 4 × BertLayer, all alike" in result.tree_text
    assert f"{4 * one:,}  {one:,} each" in result.tree_text
    text = result.tree_text.splitlines()
    assert len(text) == len(result.tree)
    assert text[0].split() == ["BertForMaskedLM", f"{result.parameters:,}"]
    assert "← weight is bert.embeddings.word_embeddings.weight" in result.tree_text


def test_t5s_first_block_differs_from_the_others(tmp_path, open_path):
    folder = save_checkpoint(built("T5ForConditionalGeneration", T5), tmp_path / "t5")
    checkpoint = open_path(folder)
    result = ask(checkpoint)
    blocks = [(line.label, line.count) for line in result.tree if line.class_name == "T5Block"]
    assert blocks == [("0", 1), ("[1–2]", 2)] * 2  # encoder, decoder: block 0 has the biases
    truth = real_output(checkpoint, built("T5ForConditionalGeneration", T5))
    assert_output_is(result.output, truth)
    axes = {name: field.axes for name, field in fields(result).items()}
    assert axes["logits"] == ("batch", "decoder positions", "vocab")
    assert axes["encoder_last_hidden_state"] == ("batch", "positions", "d_model")
    assert axes["cross_attentions"] == ("batch", "heads", "decoder positions", "positions")
    assert result.parameters == built("T5ForConditionalGeneration", T5).num_parameters()
    assert next(each.name for each in result.siblings if each.present) == result.model_class


def test_bart_too(tmp_path, open_path):
    checkpoint = open_path(save_checkpoint(built("BartForConditionalGeneration", BART), tmp_path / "bart"))
    result = ask(checkpoint)
    truth = real_output(checkpoint, built("BartForConditionalGeneration", BART))
    assert_output_is(result.output, truth)
    assert result.parameters == built("BartForConditionalGeneration", BART).num_parameters()


def test_a_model_that_looks_at_numbers_runs_for_real(tmp_path, open_path):
    # It finds the end of the text by the ids themselves, which the meta device does not have.
    changes = BART | {"pad_token_id": 0, "eos_token_id": 3, "bos_token_id": 2}
    model = built("BartForSequenceClassification", changes)
    result = ask(open_path(save_checkpoint(model, tmp_path / "bart")))
    logits = fields(result)["logits"]
    assert (logits.shape, logits.axes) == ((1, 3), ("batch", "labels"))


def test_albert_runs_one_layer_group_for_all(open_model):
    result = ask(open_model("AlbertForMaskedLM", num_hidden_layers=5))
    rows = {row.name: row for row in result.modules}
    assert rows["albert.encoder.albert_layer_groups.0"].uses == 5
    assert rows["albert.embeddings"].uses == 1
    assert result.tree_text.count("runs 5 times") == 1
    hidden = fields(result)["hidden_states"]
    assert hidden.count == 6


AXES = {
    ("BertForPreTraining", "prediction_logits"): ("batch", "positions", "vocab"),
    ("BertForPreTraining", "seq_relationship_logits"): ("batch", "next or random"),
    ("BertForNextSentencePrediction", "logits"): ("batch", "next or random"),
    ("BertForSequenceClassification", "logits"): ("batch", "labels"),
    ("BertForTokenClassification", "logits"): ("batch", "positions", "labels"),
    ("BertForMultipleChoice", "logits"): ("batch", "choices"),
    ("BertForQuestionAnswering", "start_logits"): ("batch", "positions"),
    ("BertModel", "pooler_output"): ("batch", "d_model"),
    ("BertModel", "hidden_states"): ("batch", "positions", "d_model"),
    ("GPT2LMHeadModel", "attentions"): ("batch", "heads", "positions", "positions"),
    ("LlamaForCausalLM", "past_key_values"): (
        "batch", "key-value heads", "positions", "head_dim",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "field"), sorted(AXES))
def test_axes_are_named(answered, name, field):
    found = fields(answered(name)[1])[field]
    assert found.axes == AXES[name, field]


@pytest.mark.parametrize("name", ["BertForMultipleChoice", "LlamaForCausalLM"])
@pytest.mark.parametrize("text", ["w1", "w1 w2", "w1 w2 w3"])
def test_axes_of_short_texts_are_the_same(answered, name, text):
    checkpoint, found = answered(name)
    short = ask(checkpoint, text)
    assert [f.axes for f in fields(short).values()] == [f.axes for f in fields(found).values()]


@pytest.mark.parametrize(
    ("name", "field", "filling"),
    [
        ("BertForPreTraining", "loss",
         lambda ids: {"labels": ids, "next_sentence_label": torch.tensor([0])}),
        ("BertForMaskedLM", "loss", lambda ids: {"labels": ids}),
        ("GPT2LMHeadModel", "loss", lambda ids: {"labels": ids}),
        ("BertForQuestionAnswering", "loss",
         lambda ids: {"start_positions": torch.tensor([1]), "end_positions": torch.tensor([2])}),
        ("BertForNextSentencePrediction", "loss", lambda ids: {"labels": torch.tensor([0])}),
    ],
)  # fmt: skip
def test_the_named_arguments_do_fill_the_field(answered, name, field, filling):
    checkpoint, result = answered(name)
    found = fields(result)[field]
    arguments = filling(torch.tensor([checkpoint.require_tokens().encode(TEXT).ids]))
    assert found.note == (f"None here: pass {' and '.join(f'{each}=…' for each in arguments)} to get it.")
    model = random_model(name)
    assert real_output(checkpoint, model).get(field) is None
    assert real_output(checkpoint, model, **arguments)[field].shape == ()


def test_dtype_is_the_files_own(tmp_path, open_path):
    model = random_model("BertForMaskedLM").to(torch.bfloat16)
    result = ask(open_path(save_checkpoint(model, tmp_path / "half")))
    assert {field.dtype for field in fields(result).values() if field.count} == {"bfloat16"}


def test_what_the_file_lacks_is_said_and_no_number_shown(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertForPreTraining"), tmp_path / "cut")
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.seq_relationship.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    result = ask(open_path(folder))
    rows = {row.name: row for row in result.modules}
    assert rows["cls.seq_relationship"].missing == ("weight",)
    assert rows["cls.predictions.decoder"].missing == ()
    assert "NOT IN THE FILE: weight" in result.tree_text
    own = result.siblings[0]
    assert (own.present, own.missing) == (False, 1)
    assert "cls.seq_relationship.weight" in own.note
    shapes = {name: field.shape for name, field in fields(result).items()}
    assert shapes["seq_relationship_logits"] == (1, 2)
    assert to_json(result)["warnings"] == []  # which would count numbers that are none


def test_without_a_tokenizer_ids_stand_for_the_text(tmp_path, open_path):
    model = random_model("BertForMaskedLM")
    result = ask(open_path(save_checkpoint(model, tmp_path / "bare", tokenizer=False)))
    assert result.output
    assert result.output.tokens == tuple(f"id {index}" for index in range(8))
    assert "token ids 0 to 7 are used instead of text" in result.warnings[0]


def test_a_text_that_cannot_run_leaves_the_rest(open_model):
    result = ask(open_model("BertForMaskedLM"), "w1 " * 100)
    assert result.output is None
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith("There is no output to show: The text has 102 tokens")
    assert {row.uses for row in result.modules} == {None}
    assert len(result.siblings) > 5


def test_a_class_that_transformers_does_not_have_is_said(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForPoetry"]}))
    result = ask(open_path(folder))
    assert result.model_class == "BertModel"
    assert result.warnings[0].startswith("config.json names the class BertForPoetry, which trans")


def test_an_unknown_model_type_is_refused_in_one_sentence(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "unknown")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "poet"}))
    with pytest.raises(CheckpointError, match="has model_type 'poet', which transformers"):
        ask(open_path(folder))


def test_without_a_config_there_is_no_class(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "bare")
    (folder / "config.json").unlink()
    with pytest.raises(NotInCheckpointError, match=r"has no config\.json"):
        ask(open_path(folder))


def test_the_same_module_under_two_names_is_said():
    shared = torch.nn.Linear(2, 3)
    model = torch.nn.Sequential(shared, torch.nn.ReLU(), shared)
    rows, sizes, inside = module_rows(model, (), None)
    assert [(row.name, row.parameters, row.same_as) for row in rows] == [
        ("", 9, None), ("0", 9, None), ("1", 0, None), ("2", 9, "0"),
    ]  # fmt: skip
    text = tree_text(fold_tree(rows, sizes, inside))
    assert text.splitlines()[-1].endswith("← the same module as 0; weight is 0.weight; bias is 0.bias")


def test_two_thousand_modules_fold_into_a_short_tree():
    layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()) for _ in range(700))
    rows, sizes, inside = module_rows(torch.nn.Sequential(layers), (), None)
    assert len(rows) == 2 + 3 * 700
    lines = fold_tree(rows, sizes, inside)
    assert [" ".join(line.split()) for line in tree_text(lines).splitlines()] == [
        "Sequential 4,200",
        "└─ 0: ModuleList 4,200",
        "└─ [0–699]: 700 × Sequential, all alike 4,200 6 each",
        "├─ 0: Linear 6 weight 2 × 2, bias 2",
        "└─ 1: ReLU 0",
    ]


def test_summaries_are_one_plain_sentence():
    class Documented:
        """A class of [`PreTrainedModel`], see :class:`~torch.nn.Module`. And more.

        Not this.
        """

    assert summary(Documented) == "A class of PreTrainedModel, see torch.nn.Module."
    assert summary(type("Bare", (), {})) == ""


def test_experts_are_run_without_numbers_and_without_a_traceback(open_model, capfd, caplog):
    checkpoint = open_model("MixtralForCausalLM")
    # On the meta device: no numbers to fall back to
    model, _ = build_outline(checkpoint, transformers.MixtralForCausalLM)
    output, uses, warnings = model_output(checkpoint, model, "w1 w2")
    assert output is not None
    assert uses
    assert warnings == []
    said = "".join(capfd.readouterr()) + caplog.text
    assert "Traceback" not in said
    assert model.config._experts_implementation == "grouped_mm"


@pytest.mark.parametrize("name", OTHERS)
def test_a_pass_without_numbers_returns_what_one_with_them_does(tmp_path, open_path, name):
    checkpoint = open_path(save_checkpoint(random_model(name, **RUNNING.get(name, {})), tmp_path / name))
    model_class = getattr(transformers, name)
    outline, _ = build_outline(checkpoint, model_class)
    model, _ = build_model(model_class, checkpoint.config, checkpoint.state, name=name)
    output, uses, said = model_output(checkpoint, model, TEXT)
    assert output is not None
    hollow, hollow_uses, hollow_said = model_output(checkpoint, outline, TEXT)
    if name in LOOK_AT_NUMBERS:
        assert (hollow, hollow_uses, len(hollow_said)) == (None, None, 1)
        answer = ask(checkpoint)  # which counts no module of the pass that failed
        assert answer.output == output
        assert {row.name: row.uses for row in answer.modules} == by_name(model, uses)
    else:
        assert (hollow, hollow_said) == (output, said)
        assert by_name(outline, hollow_uses) == by_name(model, uses)


def by_name(model, uses):
    return {name: uses.get(id(module), 0) for name, module in model.named_modules()}


def stripped(tensors):
    """As the base model alone writes them, beside the head."""
    return {name.removeprefix("model."): tensor for name, tensor in tensors.items()}


def cut(tensors):
    """Without a norm, and with what no class knows."""
    left = {name: tensor for name, tensor in tensors.items() if not name.endswith("1.input_layernorm.weight")}
    return left | {"score.weight": torch.zeros(2, 32), "stranger.weight": torch.zeros(2)}


@pytest.mark.parametrize("name", [*EVERY, *OTHERS])
def test_a_second_look_at_few_layers_names_the_axes_of_all(open_model, monkeypatch, name):
    """Of a deep model the pass of another size has two layers."""
    checkpoint = open_model(name, **RUNNING.get(name, {}), num_hidden_layers=3)
    model, _ = build_outline(checkpoint, getattr(transformers, name))
    looked_at: list[int] = []
    look = compute_output.look_again

    def noted(second: Any, *rest: Any) -> Any:
        looked_at.append(len(list(second.parameters())))
        return look(second, *rest)

    monkeypatch.setattr(compute_output, "look_again", noted)
    found, _, said = model_output(checkpoint, model, TEXT)
    whole, _, warnings = model_output(checkpoint, model, TEXT, layers=1_000)
    assert (found, said) == (whole, warnings)
    if found is not None and name in MODELS and not name.startswith("Albert"):  # which has one layer for all
        assert looked_at[0] < looked_at[-1]


@pytest.mark.parametrize("change", [dict, stripped, cut], ids=["whole", "stripped", "cut"])
@pytest.mark.parametrize("name", MERGED)
def test_classes_lack_of_merged_experts_what_they_lack_of_the_file(tmp_path, open_path, name, change):
    folder = save_checkpoint(random_model(name), tmp_path / name)
    tensors = change(load_file(folder / "model.safetensors"))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    checkpoint = open_path(folder)
    model, missing = build_outline(checkpoint, getattr(transformers, name))
    merged = merge(checkpoint, model, missing)
    assert merged is not None
    assert len(merged.state) < len(checkpoint.outlines)
    assert not any("experts.0." in key for key in merged.state)
    for each in family_classes(checkpoint, type(model)):
        assert lacking(checkpoint, each, merged) == lacking(checkpoint, each, None), each


def lacking(checkpoint, model_class, merged):
    try:
        return missing_of(checkpoint, model_class, merged)
    except CheckpointError as error:
        return str(error)


def test_a_file_without_merged_tensors_is_taken_as_it_is(open_model):
    checkpoint = open_model("LlamaForCausalLM")
    assert merge(checkpoint, *build_outline(checkpoint, transformers.LlamaForCausalLM)) is None


def test_merged_tensors_of_which_the_file_lacks_some_are_not_taken(open_model):
    checkpoint = open_model("MixtralForCausalLM")
    model, missing = build_outline(checkpoint, transformers.MixtralForCausalLM)
    assert merge(checkpoint, model, missing)
    assert merge(checkpoint, model, frozenset({"model.layers.0.mlp.experts.down_proj"})) is None


def test_a_class_with_other_conversions_is_given_the_file_itself(open_model):
    checkpoint = open_model("MixtralForCausalLM")
    merged = merge(checkpoint, *build_outline(checkpoint, transformers.MixtralForCausalLM))
    assert merged is not None
    emptied = dataclasses.replace(merged, state={"lm_head.weight": merged.state["lm_head.weight"]})
    assert missing_of(checkpoint, transformers.MixtralForCausalLM, emptied)
    other = dataclasses.replace(emptied, rules=merged.rules[:-1])
    assert missing_of(checkpoint, transformers.MixtralForCausalLM, other) == frozenset()
