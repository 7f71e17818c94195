"""Build a model from a checkpoint, and refuse to let a random weight pass for a stored one."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch.nn.modules.module import register_module_module_registration_hook
from transformers import PreTrainedConfig, PreTrainedModel, initialization
from transformers.models.auto import modeling_auto

from inspector.errors import CheckpointError, InspectorError, NotInCheckpointError
from inspector.models.incomplete import find_fault, no_numbers
from inspector.models.names import SPARE_MODULES
from inspector.models.naming import find_places
from inspector.models.transformers_patches import light_loading
from inspector.store.readers.levels import read_setting
from inspector.store.sizes import COMPARE
from inspector.text import shape_text


class FirstOf:
    """The class that the first of some of transformers' tables has for a config."""

    def __init__(self, *mappings: Any) -> None:
        """Args: tables of transformers, config class -> model class."""
        self._mappings = mappings

    def get(self, config_class: type[PreTrainedConfig], default: Any = None) -> Any:
        """The model class, or the default."""
        found = (mapping.get(config_class, None) for mapping in self._mappings)
        return next((each for each in found if each is not None), default)


# Models that read images or audio too are language models, with a text alone.
CAUSAL_LM = FirstOf(
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING,
    modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING,
)
TASKS = {
    "masked_lm": (modeling_auto.MODEL_FOR_MASKED_LM_MAPPING, "masked-LM head"),
    "causal_lm": (CAUSAL_LM, "causal-LM head"),
    "seq2seq_lm": (
        FirstOf(
            modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
            modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING,
            modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
        ),
        "decoder with a language-model head",
    ),
    "base": (modeling_auto.MODEL_MAPPING, "base model"),
    "pretraining": (modeling_auto.MODEL_FOR_PRETRAINING_MAPPING, "pre-training heads"),
    "next_sentence": (modeling_auto.MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING, "next-sentence head"),
    "sequence_classification": (
        modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
        "sequence-classification head",
    ),
    "token_classification": (modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING, "token-classification head"),
    "question_answering": (modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING, "question-answering head"),
    "multiple_choice": (modeling_auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING, "multiple-choice head"),
}
OWN = "own"  # besides the tasks: the class that config.json names, which may be none of theirs
MODALITIES = {"image": "images", "video": "videos"}  # transformers' word -> ours, where it is another
LANGUAGE_TASKS = ("masked_lm", "causal_lm", "seq2seq_lm")
WITHOUT_POOLER = (*LANGUAGE_TASKS, "base")  # tasks whose answer no pooler has a part in
# What the code of a model raises where it is built or run as it was not written for.
MODEL_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError)
MOST_MODULES = 20_000  # the largest models have a few thousand
FREE_MODULES, MODULES_A_TENSOR = 1_000, 20  # what a file of so many tensors may be built as
MOST_BUFFER_NBYTES = 2_000_000_000  # masks and tables that are computed and not in the file
LARGEST_RATIO = 4


def task_class(config: PreTrainedConfig, task: str) -> type[PreTrainedModel]:
    """The class that transformers uses for a task.

    Raises:
        NotInCheckpointError: If this kind of model has no such task, or its decoder answers nothing
            where the model is given a text alone.
    """
    found = find_class(config, task)
    if found is None:
        raise NotInCheckpointError(f"Models of type {config.model_type} have no {TASKS[task][1]}.")
    if task in ("causal_lm", "seq2seq_lm") and _decodes_other(config, found, task):
        inputs = " and ".join(beyond_text(found))
        raise NotInCheckpointError(
            f"{found.__name__} predicts tokens from {inputs} that its encoder reads, but this tool passes only text to "
            "a model, so the predictions would be meaningless. You can still inspect the weights."
        )
    return found


def find_class(config: PreTrainedConfig, task: str) -> type[PreTrainedModel] | None:
    """The class that transformers uses for a task; None where this kind of model has none."""
    if task == OWN:
        return own_class(config)
    architecture = str(next(iter(config.architectures or ()), ""))
    if task == "base" and architecture.endswith("EncoderModel"):  # half of a T5
        return own_class(config)
    found: Any = TASKS[task][0].get(type(config), None)
    if found is None and task == "base" and architecture.endswith("Model"):  # a part that has no table's row: SigLIP's
        found = getattr(transformers, architecture, None)
    return found[0] if isinstance(found, tuple) else found


def pipeline_class(config: PreTrainedConfig, task: str) -> type[PreTrainedModel] | None:
    """The class that sentence-transformers loads for a task: of an encoder-decoder, the encoder if that has a class."""
    found = find_class(config, task)
    if found is None or task != "base":
        return found
    return getattr(transformers, f"{found.__name__.removesuffix('Model')}EncoderModel", found)


def beyond_text(model_class: type[PreTrainedModel]) -> tuple[str, ...]:
    """What a model reads besides text, in words."""
    said = model_class.input_modalities
    return tuple(MODALITIES.get(each, each) for each in ((said,) if isinstance(said, str) else said) if each != "text")


def _decodes_other(config: PreTrainedConfig, model_class: type[PreTrainedModel], task: str) -> bool:
    """Whether a decoder needs what an encoder makes of audio or an image."""
    if task == "causal_lm":
        whole: Any = modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING.get(type(config), model_class)
        return whole is not model_class  # Whisper's decoder alone; Voxtral's whole model is a causal one
    return model_class.main_input_name != "input_ids" and bool(beyond_text(model_class))


def own_class(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """The class that config.json names, if transformers has it; else the base model's."""
    for architecture in config.architectures or ():
        found = getattr(transformers, str(architecture), None)
        if isinstance(found, type) and issubclass(found, PreTrainedModel):
            return found
    return task_class(config, "base")


def own_config(model_class: type[PreTrainedModel], config: PreTrainedConfig) -> PreTrainedConfig:
    """A copy for one model, which may write into it; of a larger model's config, the text part.

    The second is what transformers' Auto classes do where the class is a language model's.
    """
    if model_class.config_class is config.sub_configs.get("text_config", object):
        config = config.get_text_config()
    return copy.deepcopy(config)


def build_model(
    model_class: type[PreTrainedModel],
    config: PreTrainedConfig,
    state: Mapping[str, torch.Tensor],
    *,
    name: str,
    dtype: torch.dtype | None = None,
    same: Callable[[PreTrainedModel, str, str], bool] | None = None,
    initialize: Callable[[PreTrainedModel], None] | None = None,
) -> tuple[PreTrainedModel, frozenset[str]]:
    """Build a model in evaluation mode from tensors that a file holds.

    Args:
        state: Name -> tensor, as the file names them; all on the CPU, or all on the meta device.
        dtype: Of the model's parameters; None: as stored.
        same: Whether two parameters that are both in the file hold equal numbers: asked on the
            meta device, whose tensors have none, where the class would tie them.
        initialize: What is done on the meta device once the file is loaded; None: nothing.

    Returns:
        The model, and the names of parameters that the file does not hold. Those are NaN in the
        model, so that no number can come from them unnoticed.

    Raises:
        CheckpointError: If shapes do not fit or nothing in the file belongs to the model.
    """
    shapes = {tensor: each.shape for tensor, each in state.items()}
    on_meta = checked_meta_model(model_class, config, shapes, name=name)
    try:
        with light_loading(meta=same is not None, initialize=initialize):
            loaded: Any = model_class.from_pretrained(
                None,
                config=own_config(model_class, config),
                state_dict=dict(state),
                dtype=dtype or stored_dtype(state),
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                local_files_only=True,
                attn_implementation="eager",
                device_map={"": "meta"} if same else None,
            )
    except Exception as error:
        fault = find_fault(name, on_meta, find_places(on_meta, state), shapes)
        raise CheckpointError(
            fault.sentence
            if fault
            else f"{name} cannot be built as {model_class.__name__}: its config.json does not fit its weights."
        ) from error
    model, info = loaded
    if info["mismatched_keys"]:
        if fault := find_fault(name, on_meta, find_places(on_meta, state), shapes):
            raise CheckpointError(fault.sentence)
        place, held, wanted = min(info["mismatched_keys"])
        tensor = find_places(model, state).stored_as.get(place, place)
        resized = held[1:] == wanted[1:] and wanted[0] == read_setting(config, "vocab_size").value
        instead = f"if the embeddings were resized, set vocab_size to {held[0]:,}; otherwise " if resized else ""
        raise CheckpointError(
            f"{tensor} is {shape_text(held)} in the file but {shape_text(wanted)} according to config.json, so the two "
            f"do not fit: {instead}compare both with their source."
        )
    _refuse_complex(model, state, name)
    missing = frozenset(info["missing_keys"])
    _blank(model, missing)
    if same:
        _tie_equal(model, same)
    if not set(dict(model.named_parameters(remove_duplicate=False))) - missing:
        raise CheckpointError(
            f"None of the {len(state)} tensors of {name} belongs to {model_class.__name__} "
            f"(the first is {min(state)!r}): check the names, or the model_type in config.json."
        )
    return model.eval(), missing


def _refuse_complex(model: PreTrainedModel, state: Mapping[str, torch.Tensor], name: str) -> None:
    """Refuse numbers of which the loader has left a part out, and warned of nothing that anybody sees."""
    if not any(each.is_complex() for each in state.values()):
        return
    held = model.state_dict()
    for tensor, places in find_places(model, state).filled.items():
        if state[tensor].is_complex() and not all(held[place].is_complex() for place in places):
            raise CheckpointError(
                f"{tensor} of {name} holds complex numbers, and {type(model).__name__} computes with real ones: "
                f"{COMPARE}."
            )


def _tie_equal(model: PreTrainedModel, same: Callable[[PreTrainedModel, str, str], bool]) -> None:
    """Tie what `tie_weights` leaves alone on the meta device: both in the file, maybe equal."""
    for target, source in list(model.all_tied_weights_keys.items()):
        kept = model.get_parameter_or_buffer(source)
        if model.get_parameter_or_buffer(target) is kept:
            continue
        if same(model, source, target):
            path, _, attribute = target.rpartition(".")
            setattr(model.get_submodule(path), attribute, kept)
        else:
            del model.all_tied_weights_keys[target]


def meta_model(
    model_class: type[PreTrainedModel], config: PreTrainedConfig, *, most_modules: int = MOST_MODULES
) -> PreTrainedModel:
    """Build a model's structure on the meta device: shapes, names and ties, and no numbers.

    Raises:
        CheckpointError: If it has more modules than that.
    """
    with torch.device("meta"), initialization.no_init_weights(), _counted_modules(most_modules):
        model = model_class(own_config(model_class, config))
    model.tie_weights()
    return model.eval()


def tied_as_loaded(
    build: Callable[[], PreTrainedModel], held: Callable[[PreTrainedModel], Collection[str]]
) -> PreTrainedModel:
    """Build a structure whose ties are a loader's: a source that the file lacks is tied to a target that it holds.

    Two that the file holds both are not tied: nothing is read to see whether they are equal.

    Args:
        build: Builds it on the meta device.
        held: Names in the model that the file fills.
    """
    quiet()
    with initialization.no_tie_weights():
        model = build()
    model.tie_weights(missing_keys=set(model.state_dict()).difference(held(model)), recompute_mapping=False)
    return model


@contextmanager
def _counted_modules(most: int) -> Iterator[None]:
    """Stop a config that asks for modules without end, whichever of its numbers does."""
    count = 0

    def add(module: torch.nn.Module, name: str, child: torch.nn.Module | None) -> None:
        nonlocal count
        count += 1
        if count > most:
            raise CheckpointError(
                f"config.json describes a model of more than {most:,} modules, which these weights cannot fill: "
                f"{COMPARE}."
            )

    handle = register_module_module_registration_hook(add)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def first_pass(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Say what a model that could be built did not run on.

    Raises:
        NotInCheckpointError: If it fails and reads more than text.
        CheckpointError: If it fails otherwise.
    """
    try:
        yield
    except (InspectorError, MemoryError):
        raise
    except Exception as error:
        what = type(model).__name__
        if inputs := " and ".join(beyond_text(type(model))):
            raise NotInCheckpointError(
                f"{what} reads {inputs} and did not run without them: this tool passes only text to a model. You can "
                "still inspect the weights."
            ) from error
        raise CheckpointError(
            f"{what} did not run on a short text: compare the config.json of {name} with the original model's; if they "
            "are equal, this tool cannot run such models."
        ) from error


def needed(missing: Iterable[str], task: str) -> list[str]:
    """Of the parameters that a file lacks, those that an answer depends on."""
    spares = (*SPARE_MODULES, *(("pooler.",) if task in WITHOUT_POOLER else ()))
    return sorted(name for name in missing if not any(spare in name for spare in spares))


def require(missing: Iterable[str], *, task: str, name: str, gap: str = "") -> None:
    """Refuse to compute from a model whose file lacks weights.

    Args:
        gap: Which files were not read, as `StagedCheckpoint.gap` says.

    Raises:
        NotInCheckpointError: If anything but spare modules is missing.
    """
    if lacking := needed(missing, task):
        what = TASKS[task][1] if task in TASKS else "complete model"
        raise NotInCheckpointError(
            f"{name} has no {what}: its file lacks {len(lacking)} of the tensors that this head needs, such as "
            f"{lacking[0]}, and random values would give meaningless answers.{f' {gap}' if gap else ''}"
        )


def _blank(model: PreTrainedModel, missing: frozenset[str]) -> None:
    held = {id(parameter) for key, parameter in model.named_parameters(remove_duplicate=False) if key not in missing}
    with torch.no_grad():
        for key, parameter in model.named_parameters(remove_duplicate=False):
            if key in missing and id(parameter) not in held and parameter.is_floating_point():
                parameter.fill_(float("nan"))


def checked_meta_model(
    model_class: type[PreTrainedModel], config: PreTrainedConfig, shapes: Mapping[str, Sequence[int]], *, name: str
) -> PreTrainedModel:
    """Build a model's structure, its sizes held against those of the file's tensors.

    Raises:
        CheckpointError: If config.json asks for what the file cannot fill.
    """
    held = sum(math.prod(shape) for shape in shapes.values())
    try:
        most = min(MOST_MODULES, FREE_MODULES + MODULES_A_TENSOR * len(shapes))
        on_meta = meta_model(model_class, config, most_modules=most)
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"No {model_class.__name__} can be built from the config.json of {name}: compare it with the original "
            "model's."
        ) from error
    wanted = sum(parameter.numel() for parameter in on_meta.parameters())
    computed = sum(buffer.nbytes for buffer in on_meta.buffers())
    if computed > MOST_BUFFER_NBYTES:
        raise CheckpointError(
            f"According to its config.json, {name} computes {computed:,} bytes of masks and tables, more than the "
            f"limit of {MOST_BUFFER_NBYTES:,}: compare it with the original model's."
        )
    if not _fills(held, on_meta):
        if fault := no_numbers(name, shapes):
            raise CheckpointError(fault.sentence)
        own = own_class(config)
        related = isinstance(config, own.config_class or ()) and own is not model_class
        if related and _fills(held, meta_model(own, config)):
            raise CheckpointError(
                f"{model_class.__name__} has {wanted:,} parameters, and the file of {name} contains the {held:,} of "
                f"its own class, {own.__name__}: what it holds is only a part of {model_class.__name__}."
            )
        raise CheckpointError(
            f"According to its config.json, {name} has {wanted:,} parameters, but its file contains {held:,}: "
            f"{COMPARE}."
        )
    return on_meta


def _fills(held: int, on_meta: PreTrainedModel) -> bool:
    """Whether a file of so many numbers may be a model's: one far larger could only be filled with random ones."""
    return sum(parameter.numel() for parameter in on_meta.parameters()) <= LARGEST_RATIO * held + 1_000_000


def stored_dtype(state: Mapping[str, torch.Tensor]) -> torch.dtype:
    """The dtype of the largest tensor of numbers."""
    floats = [tensor for tensor in state.values() if tensor.is_floating_point()]
    if not floats:
        return torch.float32
    return max(floats, key=lambda tensor: tensor.numel()).dtype


def quiet() -> None:
    """Keep transformers' load reports and bars out of the log: we report missing keys ourselves."""
    transformers.logging.set_verbosity(logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    logging.getLogger("accelerate").setLevel(logging.ERROR)  # it warns of what the plan says
    logging.getLogger("bitsandbytes").setLevel(
        logging.ERROR
    )  # it comes with peft, and misses kernels that nobody needs
