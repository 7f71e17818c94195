"""What AdamW decays against the Trainer's own groups, real steps, and formulas written by hand."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from inspector.analyses.training.compute import Reads, training
from inspector.analyses.training.compute_groups import memory_frame, sort_parameters
from inspector.analyses.training.figures import POINTS, drawn_steps, schedule_lines
from inspector.analyses.training.request import TrainingRequest
from inspector.analyses.training.result import DECAYED, FROZEN, NOT_DECAYED, SCHEDULES
from inspector.errors import NotInCheckpointError, RequestError
from inspector.results.plain import to_json
from tests.conftest import silent
from tests.families import ENCODER_DECODER, MODELS, WITHOUT_HEAD, random_model, save_checkpoint

EVERY = sorted(MODELS | WITHOUT_HEAD | ENCODER_DECODER)
RATE, DECAY = 1e-3, 0.1


def ask(checkpoint, **options):
    return training(checkpoint, progress=silent, **options)


def trainer_groups(model, folder):
    """The groups that transformers' own Trainer makes: names with decay, names without."""
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), weight_decay=DECAY, use_cpu=True, report_to="none"
    )
    optimizer = transformers.Trainer(model=model, args=arguments).create_optimizer()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [
        (group["weight_decay"], tuple(names[id(parameter)] for parameter in group["params"]))
        for group in optimizer.param_groups
    ]


@pytest.mark.parametrize("name", EVERY)
def test_groups_are_the_trainers_own(name, open_model, tmp_path):
    plan = ask(open_model(name), weight_decay=DECAY, steps=5, warmup_steps=1)
    model = getattr(transformers, name).from_pretrained(tmp_path / name)
    assert [(group.weight_decay, group.names) for group in plan.groups] == trainer_groups(model, tmp_path)
    sizes = {each: parameter.numel() for each, parameter in model.named_parameters()}
    for group in (*plan.groups, plan.frozen):
        assert group.parameters == sum(sizes[each] for each in group.names)
        assert group.nbytes == 4 * group.parameters
    listed = [each for group in (*plan.groups, plan.frozen) for each in group.names]
    assert sorted(listed) == sorted(sizes)
    assert [said for said in plan.warnings if "frozen" not in said] == []
    assert sum(plan.reasons["parameters"].tolist()) == sum(sizes.values())
    assert sum(plan.reasons["tensors"].tolist()) == len(sizes)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "T5ForConditionalGeneration", "LlamaModel"])
def test_reasons_are_true_of_the_tensors(name, open_model):
    frame = ask(open_model(name), steps=1, warmup_steps=0).parameters.set_index("name")
    modules = dict(random_model(name).named_modules())
    assert {"a weight matrix", "an embedding table"} <= set(frame["reason"])
    for each, row in frame.to_dict("index").items():
        module = modules[str(each).rpartition(".")[0]]
        assert row["module"] == type(module).__name__
        match row["reason"]:
            case "inside a torch.nn.LayerNorm":
                assert isinstance(module, torch.nn.LayerNorm)
            case "the scale of another norm, by its name":
                assert type(module).__name__ in {"T5LayerNorm", "LlamaRMSNorm"}
            case "a bias, by its name":
                assert str(each).endswith("bias")
            case "a table whose name says bias":
                assert "relative_attention_bias" in str(each)
            case "an embedding table":
                assert isinstance(module, torch.nn.Embedding)
            case reason:
                assert reason == "a weight matrix"
                assert isinstance(module, torch.nn.Linear)


def test_a_tied_matrix_is_in_one_group_once_under_its_first_name(open_model):
    plan = ask(open_model("BertForMaskedLM"), steps=2, warmup_steps=0)
    (matrix, bias) = plan.shared
    assert (matrix.name, matrix.other_names, matrix.group, matrix.parameters) == (
        "bert.embeddings.word_embeddings.weight", ("cls.predictions.decoder.weight",), DECAYED,
        60 * 32,
    )  # fmt: skip
    assert (bias.name, bias.other_names, bias.group) == (
        "cls.predictions.bias", ("cls.predictions.decoder.bias",), NOT_DECAYED,
    )  # fmt: skip
    untied = ask(open_model("BertForMaskedLM", tie_word_embeddings=False), steps=2, warmup_steps=0)
    assert untied.groups[0].parameters == plan.groups[0].parameters + 60 * 32


def test_positions_that_loading_sets_free_are_said(open_model, tmp_path):
    plan = ask(open_model("MarianMTModel"), steps=2, warmup_steps=0)
    names = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    built = dict(random_model("MarianMTModel").named_parameters())
    loaded = transformers.MarianMTModel.from_pretrained(tmp_path / "MarianMTModel")
    assert [built[name].requires_grad for name in names] == [False, False]
    assert [dict(loaded.named_parameters())[name].requires_grad for name in names] == [True, True]
    assert set(names) <= set(plan.groups[0].names)
    assert plan.warnings == (
        f"MarianMTModel builds {names[0]}, {names[1]} frozen, but from_pretrained returns them with requires_grad "
        "True: set it to False before training.",
    )


def test_a_module_under_two_names_is_sorted_once():
    shared = torch.nn.Linear(2, 3)
    model = torch.nn.Sequential(shared, torch.nn.LayerNorm(3), torch.nn.Sequential(shared))
    rows = sort_parameters(model, frozenset({"2.0.weight", "1.weight"}))
    assert [(row.names, row.group, row.in_file) for row in rows] == [
        (("0.weight", "2.0.weight"), DECAYED, True),
        (("0.bias", "2.0.bias"), NOT_DECAYED, True),
        (("1.weight",), NOT_DECAYED, False),
        (("1.bias",), NOT_DECAYED, True),
    ]


def test_a_scale_whose_name_says_nothing_decays_as_in_the_trainer():
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.ones(4))

    model = torch.nn.Sequential(Scale())
    (row,) = sort_parameters(model, frozenset())
    assert (row.group, row.reason) == (
        DECAYED, "one-dimensional, but its name says neither bias nor norm",
    )  # fmt: skip
    assert transformers.Trainer.get_decay_parameter_names(None, model) == ["0.gain"]  # type: ignore[arg-type]


def step_once(model, plan):
    """One step of torch's AdamW with the plan's groups; gradients of ones everywhere."""
    named = dict(model.named_parameters())
    groups = [
        {"params": [named[each] for each in group.names], "weight_decay": group.weight_decay} for group in plan.groups
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    for group in plan.groups:
        for each in group.names:
            named[each].grad = torch.ones_like(named[each])
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("name", ["BertForMaskedLM", "GPT2LMHeadModel", "PegasusForConditionalGeneration"])
def test_one_real_step_moves_parameters_as_said(name, open_model):
    plan = ask(open_model(name), learning_rate=RATE, weight_decay=DECAY, steps=1, warmup_steps=0)
    model = random_model(name)
    before = {each: parameter.detach().clone() for each, parameter in model.named_parameters()}
    step_once(model, plan)
    for group, factor in ((plan.groups[0], 1 - RATE * DECAY), (plan.groups[1], 1), (plan.frozen, 1)):
        for each in group.names:
            # Adam's first step is the rate itself for a gradient of one, but for its epsilon.
            moved = 0 if group is plan.frozen else RATE / (1 + 1e-8)
            expected = before[each].double() * factor - moved
            found = dict(model.named_parameters())[each].detach().double()
            assert torch.allclose(found, expected, rtol=0, atol=1e-6), each


def test_decay_alone_shrinks_the_embeddings_as_the_example_says(open_model):
    plan = ask(
        open_model("BertForMaskedLM"), learning_rate=0.01, weight_decay=0.5, steps=20,
        warmup_steps=5, cycles=2, power=2.0,
    )  # fmt: skip
    example = plan.example
    assert example is not None
    model = random_model("BertForMaskedLM").double()
    matrix = model.bert.embeddings.word_embeddings.weight
    start = matrix.detach().clone()
    assert example.name == "bert.embeddings.word_embeddings.weight"
    assert example.norm == pytest.approx(math.sqrt(sum(w * w for w in start.flatten().tolist())))
    assert example.first == start[0, 0].item()
    assert example.first_after == pytest.approx(start[0, 0].item() * (1 - 0.01 * 0.5), rel=1e-12)
    for name, factor, norm in example.after.itertuples(index=False):
        with torch.no_grad():
            matrix.copy_(start)
        optimizer = torch.optim.AdamW([matrix], lr=1.0, weight_decay=0.5)
        for rate in plan.schedules[name]:
            optimizer.param_groups[0]["lr"] = float(rate)
            matrix.grad = torch.zeros_like(matrix)
            optimizer.step()
        assert matrix.detach().norm().item() == pytest.approx(norm, rel=1e-9)
        assert torch.allclose(matrix.detach(), start * factor, rtol=1e-9)


def test_the_optimizers_real_state_takes_the_bytes_that_are_said(open_model):
    plan = ask(open_model("BertForMaskedLM"), steps=1, warmup_steps=0)
    memory = plan.memory.set_index("setup")
    for setup, dtype in (("float32", torch.float32), ("half precision alone", torch.bfloat16)):
        model = random_model("BertForMaskedLM").to(dtype)
        optimizer = step_once(model, plan)
        states = optimizer.state.values()
        moments = sum(state[key].nbytes for state in states for key in ("exp_avg", "exp_avg_sq"))
        gradients = sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)
        weights = sum(parameter.nbytes for parameter in model.parameters())
        row = memory.loc[setup]
        assert (row["weights"], row["gradients"], row["moments"]) == (weights, gradients, moments)
        assert row["total"] == weights + gradients + moments
    masters = memory.loc["half precision with float32 master weights"]
    assert masters["total"] == memory.loc["float32", "total"]
    assert masters["master_weights"] == memory.loc["float32", "weights"]


def test_frozen_parameters_have_neither_gradient_nor_moment():
    model = torch.nn.Linear(10, 10)
    model.bias.requires_grad_(False)
    frame = memory_frame(sort_parameters(model, frozenset())).set_index("setup")
    assert frame.loc["float32"].tolist() == [440, 400, 800, 0, 1640]
    (bias,) = (row for row in sort_parameters(model, frozenset()) if row.group == FROZEN)
    assert bias.reason == "requires_grad is False"


def by_hand(name, step, *, rate, warmup, steps, cycles, power):
    """The formulas of the schedules, from their papers' curves."""
    if name == "constant":
        return rate
    if step < warmup:
        return rate * step / warmup
    if name == "constant_with_warmup":
        return rate
    done = (step - warmup) / max(1, steps - warmup)
    return {
        "linear": lambda: rate * (1 - done),
        "cosine": lambda: rate * (1 + math.cos(math.pi * done)) / 2,
        "cosine_with_restarts": lambda: rate * (1 + math.cos(math.pi * (cycles * done % 1))) / 2,
        "polynomial": lambda: (rate - 1e-7) * (1 - done) ** power + 1e-7,
    }[name]()


@pytest.mark.parametrize(
    ("warmup", "steps", "cycles", "power"),
    [(0, 1, 1, 1.0), (1, 1, 1, 1.0), (10, 100, 1, 1.0), (7, 50, 3, 2.0), (50, 50, 2, 0.5),
     (0, 64, 4, 3.0)],
)  # fmt: skip
def test_schedules_follow_the_formulas(warmup, steps, cycles, power, open_model):
    rate = 5e-5
    plan = ask(
        open_model("BertModel"), learning_rate=rate, warmup_steps=warmup, steps=steps,
        cycles=cycles, power=power,
    )  # fmt: skip
    assert tuple(plan.schedules) == SCHEDULES
    for name, rates in plan.schedules.items():
        expected = [
            by_hand(name, step, rate=rate, warmup=warmup, steps=steps, cycles=cycles, power=power)
            for step in range(steps)
        ]
        assert rates.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-18), name


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_what_a_real_optimizer_gets_step_by_step(name, open_model):
    plan = ask(open_model("BertModel"), learning_rate=3e-4, warmup_steps=6, steps=40)
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=3e-4)
    scheduler = transformers.get_scheduler(name, optimizer, 6, 40)
    got = []
    for _ in range(40):
        got.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert plan.schedules[name].tolist() == got


def test_the_snippet_builds_these_groups(open_model, tmp_path):
    checkpoint = open_model("BertForMaskedLM")
    plan = ask(checkpoint, learning_rate=2e-4, weight_decay=0.05, steps=30, warmup_steps=3)
    code = plan.snippet.replace("path/to/the/checkpoint", str(tmp_path / "BertForMaskedLM"))
    scope = {}
    exec(compile(code, "snippet", "exec"), scope)
    names = {id(parameter): name for name, parameter in scope["model"].named_parameters()}
    assert [
        (group["weight_decay"], tuple(names[id(parameter)] for parameter in group["params"]))
        for group in scope["optimizer"].param_groups
    ] == [(group.weight_decay, group.names) for group in plan.groups]
    assert scope["scheduler"].base_lrs == [2e-4, 2e-4]
    scope["optimizer"].step()
    scope["scheduler"].step()
    assert scope["scheduler"].get_last_lr()[0] == plan.schedules["linear"][1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps": 0}, "Steps must be between 1 and 1,000,000, not 0."),
        ({"steps": 1_000_001}, "Steps must be between 1 and 1,000,000, not 1,000,001."),
        ({"warmup_steps": -1}, "Warm-up steps must be at least 0, not -1."),
        ({"warmup_steps": 1_001}, "The warm-up takes 1,001 steps, but the whole training has 1,000: make the warm-up "
         "shorter, or the training longer."),
        ({"learning_rate": -5e-5},
         "Learning rate must be above 1e-07 and at most 1, not -5e-05."),
        ({"learning_rate": 1e-7}, "Learning rate must be above 1e-07 and at most 1, not 1e-07."),
        ({"learning_rate": math.nan}, "Learning rate must be above 1e-07 and at most 1, not nan."),
        ({"learning_rate": 1.5}, "Learning rate must be above 1e-07 and at most 1, not 1.5."),
        ({"weight_decay": -0.1}, "Weight decay must be between 0 and 1, not -0.1."),
        ({"weight_decay": math.inf}, "Weight decay must be between 0 and 1, not Infinity."),
        ({"cycles": 0}, "Cosine cycles must be between 1 and 100, not 0."),
        ({"power": 0.0}, "Power must be above 0 and at most 10, not 0."),
    ],
)  # fmt: skip
def test_numbers_that_no_training_could_use_are_one_sentence(options, sentence, open_model):
    with pytest.raises(RequestError) as refused:
        ask(open_model("BertModel"), **options)
    assert str(refused.value) == sentence


def test_what_the_file_lacks_is_said_and_never_computed_with(tmp_path, open_path):
    model = random_model("BertModel", vocab_size=64)
    state = {name: tensor for name, tensor in model.state_dict().items() if name != "embeddings.word_embeddings.weight"}
    folder = save_checkpoint(model, tmp_path / "less", state_dict=state)
    plan = ask(open_path(folder), steps=2, warmup_steps=0)
    assert plan.example is None
    assert plan.warnings[0] == (
        "The file of less lacks 1 of the 39 tensors that would be trained, such as "
        "embeddings.word_embeddings.weight: training would start them at random."
    )
    assert plan.warnings[1].startswith("There is no worked example")
    assert plan.parameters["in_file"].tolist().count(True) == 38


def test_numbers_that_are_none_give_no_example(tmp_path, open_path):
    model = random_model("BertModel")
    with torch.no_grad():
        model.embeddings.word_embeddings.weight[3, 4] = math.nan
    plan = ask(open_path(save_checkpoint(model, tmp_path / "nan")), steps=2, warmup_steps=0)
    assert plan.example is None
    assert "no embedding matrix of finite numbers" in plan.warnings[0]
    assert to_json(plan)["warnings"] == list(plan.warnings)


def test_without_a_config_there_is_nothing_to_train(tmp_path, open_path):
    folder = save_checkpoint(random_model("BertModel"), tmp_path / "bare")
    (folder / "config.json").unlink()
    with pytest.raises(NotInCheckpointError, match=r"has no config\.json"):
        ask(open_path(folder))


def test_half_precision_counts_as_stored(tmp_path, open_path):
    model = random_model("GPT2LMHeadModel").to(torch.bfloat16)
    plan = ask(open_path(save_checkpoint(model, tmp_path / "half")), steps=2, warmup_steps=0)
    assert all(group.nbytes == 2 * group.parameters for group in plan.groups)
    assert plan.example is not None
    norm = model.transformer.wte.weight.detach().double().norm().item()
    assert plan.example.norm == pytest.approx(norm, rel=1e-12)


def test_json_holds_every_update(open_model):
    plain = to_json(ask(open_model("BertModel"), steps=30, warmup_steps=3))
    assert {"groups", "schedules"} <= set(plain)
    assert all({"weight_decay", "names", "parameters"} <= set(each) for each in plain["groups"])
    assert {name: len(rates) for name, rates in plain["schedules"].items()} == dict.fromkeys(SCHEDULES, 30)
    assert plain["schedules"]["linear"][:4] == pytest.approx([0, 5e-5 / 3, 1e-4 / 3, 5e-5])
    assert "parameters" not in plain


@pytest.mark.parametrize(("steps", "warmup"), [(1, 0), (2, 1), (30, 3), (10_000, 137)])
def test_landmarks_are_updates(steps, warmup, open_model):
    found = ask(open_model("BertModel"), steps=steps, warmup_steps=warmup).landmarks()
    assert list(found) == sorted(set(found))
    assert {0, steps - 1, min(warmup, steps - 1)} <= set(found)
    assert max(found) == steps - 1


def test_the_figure_draws_true_points_and_both_sides_of_every_restart(open_model):
    choice = TrainingRequest(steps=100_000, warmup_steps=333, cycles=4, power=2.0)
    plan = inspect.unwrap(training)(open_model("BertModel"), choice, progress=silent)
    rates = pd.DataFrame(plan.schedules)
    figure = schedule_lines(plan, choice, name="a <b> name")
    assert [line.name for line in figure.data] == [name.replace("_", " ") for name in SCHEDULES]  # type: ignore[union-attr]
    for line, name in zip(figure.data, SCHEDULES, strict=True):
        assert len(line.x) <= POINTS + 60  # type: ignore[union-attr]
        assert list(line.y) == rates[name].iloc[list(line.x)].tolist()  # type: ignore[union-attr]
    restarts = rates["cosine_with_restarts"]
    (jumps,) = np.nonzero((restarts.diff() > 0).to_numpy()[334:])
    assert len(jumps) == 3
    chosen = set(drawn_steps(rates))
    assert {int(jump) + 334 for jump in jumps} <= chosen
    assert {int(jump) + 333 for jump in jumps} <= chosen
    assert {0, 333, 99_999} <= chosen


def test_of_a_large_matrix_the_example_reads_the_first_rows(open_model):
    checkpoint = open_model("BertForMaskedLM")
    matrix = checkpoint.embedding_matrix().double()
    columns = matrix.shape[1]
    reads = Reads(most=7 * columns + 3, at_once=2 * columns + 1)
    example = inspect.unwrap(training)(checkpoint, TrainingRequest(), progress=silent, reads=reads).example
    assert example is not None
    assert example.rows == 7
    assert example.norm == pytest.approx(matrix[:7].norm().item(), rel=1e-12)
    assert example.first == matrix[0, 0].item()
