"""Find the matrix that a checkpoint's class looks tokens up in: by its name, or else by asking the class."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from inspector.errors import InspectorError, NotInCheckpointError
from inspector.models.families import in_file
from inspector.models.quantized.layout import codes_refusal
from inspector.store.manifests.columns import TensorInfo

if TYPE_CHECKING:
    from inspector.models.checkpoint import StagedCheckpoint

COMPLEX = (
    "{tensor} of {name} holds complex numbers, and tokens are looked up in real ones: compare the file with its source."
)
# Embeddings of other things than tokens.
NO_VOCABULARY = r"pos|wpe|token_type|relative|lang_|langs|segment|patch|visi|visual"


def find_input_matrix(checkpoint: StagedCheckpoint) -> TensorInfo:
    """The header of the matrix that the class of config.json looks tokens up in, (vocab, d_model).

    Raises:
        NotInCheckpointError: If the file has no such matrix, or as codes that cannot be read as numbers, or
            without any.
    """
    if refusal := _refusal(checkpoint):
        raise NotInCheckpointError(refusal)
    family = checkpoint.family
    if family and not family.seq2seq_lm and (found := _named(checkpoint, family.embedding)):
        return found
    if (loaded := _looked_up(checkpoint)) is not None:
        return loaded
    rows = checkpoint.setting("vocab_size").value
    # Perceiver's classes say that they read images, those of text too: their table has a row per token
    named = () if rows is None and read_instead_of_tokens(checkpoint)[1] else checkpoint.tensors
    matrices = [
        tensor
        for tensor in named
        if len(tensor.shape) == 2 and _is_vocabulary(tensor.name) and rows in (None, tensor.shape[0])
    ]
    if not matrices:
        raise _none_found(checkpoint)
    return max(matrices, key=lambda tensor: tensor.shape[0])


def find_input_shape(checkpoint: StagedCheckpoint) -> tuple[int, ...]:
    """Its shape, (vocab, d_model): by names alone where the table knows the family.

    Raises:
        NotInCheckpointError: As `find_input_matrix`.
    """
    if (family := checkpoint.family) is None or _refusal(checkpoint):
        return checkpoint.embedding.shape
    others = sorted(family.ties, key=family.unembedding.__eq__)  # the output matrix last: Marian's may be another's
    matrices = (_named(checkpoint, name) for name in (family.embedding, *others))
    return next((each.shape for each in matrices if each), None) or checkpoint.embedding.shape


def read_instead_of_tokens(checkpoint: StagedCheckpoint) -> tuple[str, tuple[str, ...]]:
    """The class that config.json names, and what it reads if it reads no tokens, such as "images"."""
    if checkpoint.structure is None:
        return "", ()
    from inspector.models.build import beyond_text
    from inspector.models.naming import embedding_names

    model, _ = checkpoint.structure
    other = () if model.main_input_name == "input_ids" or embedding_names(model) else beyond_text(type(model))
    return type(model).__name__, other


def _refusal(checkpoint: StagedCheckpoint) -> str:
    """Why there is no matrix to look tokens up in, although it has a name in the file; "" if there is one."""
    codes, family = checkpoint.unread.codes, checkpoint.family
    empty = {tensor.name: tensor.name for tensor in checkpoint.tensors if 0 in tensor.shape}
    imaginary = {tensor.name: tensor.name for tensor in checkpoint.tensors if tensor.dtype.startswith("complex")}
    meant = {**codes, **empty, **imaginary}  # stored -> the weight that it is in the place of
    wanted = family and in_file(family.embedding, meant.values(), family.base)
    found = [name for name, weight in meant.items() if (weight == wanted if family else _is_vocabulary(weight))]
    if not found:
        return ""
    if found[0] in codes:
        return codes_refusal(checkpoint.name, checkpoint.unread, found[0])
    if found[0] in imaginary:
        return COMPLEX.format(tensor=found[0], name=checkpoint.name)
    from inspector.models.incomplete import no_numbers

    fault = no_numbers(checkpoint.name, {tensor.name: tensor.shape for tensor in checkpoint.tensors})
    return fault.sentence if fault else ""


def _named(checkpoint: StagedCheckpoint, wanted: str) -> TensorInfo | None:
    """A matrix of the file, by its name in the family's class with a head."""
    name = in_file(wanted, checkpoint.tensors.numbers, checkpoint.family.base if checkpoint.family else "")
    return _matrix(checkpoint, name)


def _looked_up(checkpoint: StagedCheckpoint) -> TensorInfo | None:
    """What the class that config.json names looks tokens up in, once it has loaded the file.

    None where the class cannot be built, names no such matrix, or has no use for the file.

    Raises:
        NotInCheckpointError: If the loader finds nothing in the file to fill it with.
    """
    try:
        model_class = checkpoint.own_class
        from inspector.models.build import tied_as_loaded
        from inspector.models.naming import embedding_names

        model = tied_as_loaded(
            lambda: checkpoint.meta_model(model_class), lambda model: checkpoint.places(model).covered
        )
    except InspectorError:
        return None
    places, names = checkpoint.places(model), embedding_names(model)
    if names and places.covered and places.covered.isdisjoint(names):
        raise NotInCheckpointError(
            f"{checkpoint.name} lacks {names[0]}, in which {model_class.__name__} looks tokens up: its Overview, or "
            "`overview --tensors`, lists every tensor."
        )
    return _matrix(checkpoint, next((places.stored_as[name] for name in names if name in places.stored_as), None))


def _matrix(checkpoint: StagedCheckpoint, name: str | None) -> TensorInfo | None:
    found = checkpoint.tensors.find(name) if name else None
    return found if found and len(found.shape) == 2 else None


def _none_found(checkpoint: StagedCheckpoint) -> NotInCheckpointError:
    checkpoint.refuse_adapter()
    built, inputs = read_instead_of_tokens(checkpoint)
    if inputs:
        return NotInCheckpointError(
            f"{checkpoint.name} has no embedding matrix: {built} reads {' and '.join(inputs)}, not tokens."
        )
    return NotInCheckpointError(
        f"{checkpoint.name} contains no embedding matrix that this tool can recognize: its Overview, or "
        "`overview --tensors`, lists every tensor."
    )


def _is_vocabulary(name: str) -> bool:
    """Whether a name is usual for a matrix that looks tokens up."""
    return bool(re.search(r"embed|token_embd|wte|shared", name)) and not re.search(NO_VOCABULARY, name)
