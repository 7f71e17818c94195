"""Say which classes a model is made of, what else the file could be loaded as, what it returns."""

from __future__ import annotations

import transformers
from transformers import PreTrainedModel

from inspector.analyses.classes import words
from inspector.analyses.classes.compute_hierarchy import hierarchy, siblings
from inspector.analyses.classes.compute_merged import merge
from inspector.analyses.classes.compute_modules import fold_tree, module_rows, tree_text, used_classes
from inspector.analyses.classes.compute_output import model_output
from inspector.analyses.classes.request import ClassesRequest
from inspector.analyses.classes.result import ModelClasses, SiblingClass
from inspector.models.build import build_model, own_config
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.execution import LARGE
from inspector.models.weightless.mixtures import find_mixtures
from inspector.models.weightless.outline import build_outline
from inspector.progress import Progress
from inspector.request import answers


@answers(ClassesRequest)
def classes(checkpoint: StagedCheckpoint, request: ClassesRequest, *, progress: Progress) -> ModelClasses:
    """Describe the class that config.json names: ancestors, siblings, modules, output.

    No number is read: what a class lacks is what the loader itself reports as missing, and the
    output's shapes come from a pass on the meta device. Only a small model whose code looks at numbers
    is loaded for that pass.

    Args:
        checkpoint: With config.json and weights; a tokenizer is not needed.
        request: What the model reads for its output; without a tokenizer, token ids stand for it.

    Raises:
        CheckpointError: If the model cannot be built.
        NotInCheckpointError: If there is no config.json.
    """
    progress(None, "Building the model")
    model_class = checkpoint.own_class
    model, missing = build_outline(checkpoint, model_class)
    progress(None, "Running the example")
    output, uses, said = model_output(checkpoint, model, request.text)
    if output is None and sum(each.nbytes for each in model.parameters()) <= LARGE:
        model, missing = build_model(model_class, checkpoint.config, checkpoint.state, name=checkpoint.name)
        output, uses, said = model_output(checkpoint, model, request.text)
    progress(None, "Listing the modules")
    rows, sizes, inside = module_rows(model, missing, uses)
    tree = fold_tree(rows, sizes, inside)
    used = used_classes(model)
    merged = merge(checkpoint, model, missing)
    mixtures = len(find_mixtures(model))
    del model
    family: list[SiblingClass] = []
    for found in siblings(checkpoint, model_class, missing, merged):
        if isinstance(found, str):
            progress(None, f"Loading the file as {found}")
        else:
            family.append(found)
    return ModelClasses(
        model_class=model_class.__name__,
        config_class=_config_class(checkpoint, model_class).__name__,
        parameters=sum(sizes.values()),
        hierarchy=hierarchy(model_class),
        siblings=tuple(family),
        used_classes=used,
        modules=rows,
        output=output,
        warnings=(*_unknown_class(checkpoint, model_class), *_other_config(checkpoint, model_class), *said),
        mixtures=mixtures,
        tree=tree,
        tree_text=tree_text(tree),
    )


def _config_class(checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel]) -> type:
    """What `from_pretrained` of the class reads config.json as."""
    return model_class.config_class or type(checkpoint.config)


def _other_config(checkpoint: StagedCheckpoint, model_class: type[PreTrainedModel]) -> list[str]:
    """Say that the Auto classes read config.json as another class than the model's own does."""
    own, given = _config_class(checkpoint, model_class), own_config(model_class, checkpoint.config)
    if isinstance(given, own):
        return []
    return [words.OTHER_CONFIG.format(model=model_class.__name__, own=own.__name__, given=type(given).__name__)]


def _unknown_class(checkpoint: StagedCheckpoint, shown: type[PreTrainedModel]) -> list[str]:
    named = next(iter(checkpoint.config.architectures or ()), None)
    if named is None or str(named) == shown.__name__:
        return []
    return [words.UNKNOWN_CLASS.format(named=named, model=shown.__name__, version=transformers.__version__)]
