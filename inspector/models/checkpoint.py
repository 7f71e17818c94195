"""One open checkpoint in a worker: everything is read once, when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from inspector.catalog import libraries
from inspector.errors import CheckpointError, InspectorError, MissingLibraryError, NotInCheckpointError
from inspector.models.families import FAMILIES, Family, heads_present, longest_text, modern
from inspector.models.quantized.companions import Unread
from inspector.models.quantized.formats import FLOAT8
from inspector.models.quantized.layout import Quantized, WeightLayout, find_layout, refuse_codes, refuse_many_numbers
from inspector.models.vocabulary.input_matrix import find_input_matrix, find_input_shape
from inspector.results.checkpoint import HEADS, LANGUAGE_HEADS
from inspector.settings import Settings
from inspector.store.manifests.columns import NARROW, TensorInfo, Tensors, with_zeros
from inspector.store.manifests.documents import collector_paused
from inspector.store.manifests.findings import GAPS, NO_MODEL
from inspector.store.manifests.manifest import Manifest
from inspector.store.readers.levels import ConfigSetting, read_setting, stated

if TYPE_CHECKING:  # torch and transformers are imported when a model is first needed
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

    from inspector.models.incomplete import Fault
    from inspector.models.naming import Places
    from inspector.models.pipeline import Pipeline
    from inspector.models.prediction import MultiTokenTensors
    from inspector.models.tensors import Reader
    from inspector.models.tokens import Tokens


NO_GGUF_MODEL = "{said} Its Overview, embeddings and numbers can be looked at."


def prepare(manifest: Manifest, *, settings: Settings) -> None:
    """Find out what most questions need of a checkpoint that was just opened, from headers alone.

    Files that are moved into the store are read where they are then.
    """
    if manifest.source != "upload":
        tensors = StagedCheckpoint(manifest, settings=settings).tensors
        _ = manifest.tensors.stored, tensors.stored, tensors.numbers


class StagedCheckpoint:
    """A staged checkpoint and what has been read of it so far.

    Args:
        families: The table of model families, by model type.
    """

    def __init__(self, manifest: Manifest, *, settings: Settings, families: Mapping[str, Family] = FAMILIES) -> None:
        self.manifest = manifest
        self.settings = settings
        self._families = families
        self.called: tuple[str, ...] = ()  # by who asks: this one, and the second one
        self.kept: dict[str, Any] = {}  # what was found for one question, and others need
        self._places: dict[type[PreTrainedModel], Places] = {}
        self._merges: dict[type[PreTrainedModel], dict[str, torch.Tensor] | None] = {}

    @property
    def name(self) -> str:
        """What the person calls it."""
        return self.called[0] if self.called else self.manifest.name

    @property
    def gap(self) -> str:
        """Which weight files are not read, or not there; "" if that explains no missing tensor."""
        return " ".join(each.detail for each in self.manifest.found(*GAPS) if each.count)

    @property
    def config_values(self) -> Mapping[str, Any]:
        """The rebuilt config.json.

        Raises:
            NotInCheckpointError: If there is none.
        """
        self.refuse_adapter()
        if self.manifest.is_gguf and self.manifest.config is None:
            raise NotInCheckpointError(self.no_gguf_model)
        if self.manifest.config is None:
            raise NotInCheckpointError(
                f"{self.name} has no config.json, so no model can be built: add the file, and "
                "open the checkpoint again."
            )
        return self.manifest.config

    @property
    def no_gguf_model(self) -> str:
        """Why no model is built from a GGUF file."""
        return NO_GGUF_MODEL.format(said=" ".join(each.detail for each in self.manifest.found(NO_MODEL)))

    def setting(self, *keys: str) -> ConfigSetting:
        """A setting of the model that reads the text, as its class reads it; of an unknown class, as config.json says.

        Args:
            keys: The names that it may have.
        """
        try:
            return read_setting(self.config, *keys)
        except InspectorError:
            return read_setting(self.manifest.config or {}, *keys)

    def stated(self, key: str) -> dict[str, Any]:
        """What config.json says of a setting: level -> value, the top first."""
        return stated(self.manifest.config or {}, key)

    @property
    def family(self) -> Family | None:
        """The table's row for its model type; None: not in the table."""
        return self._families.get((self.manifest.config or {}).get("model_type", ""))

    @cached_property
    def config(self) -> PreTrainedConfig:
        """The config as transformers builds it, naming the class that sentence-transformers loads where it is given."""
        from inspector.models.configs import build_config

        config = build_config(self.config_values, self.name)
        if self.pipeline and self.pipeline.task:
            with libraries():
                from inspector.models.build import pipeline_class
            if loaded := pipeline_class(config, self.pipeline.task):
                config.architectures = [loaded.__name__]
        return config

    @cached_property
    def own_class(self) -> type[PreTrainedModel]:
        """The class that config.json names, or else the base model's: what only a class knows, it is asked here.

        Raises:
            MissingLibraryError: If torch is not installed, without which there are no classes.
            InspectorError: If transformers has none.
        """
        with libraries():
            from inspector.models.build import own_class
        return own_class(self.config)

    @cached_property
    def pipeline(self) -> Pipeline | None:
        """What sentence-transformers runs of it; None where it has no modules.json."""
        from inspector.models.pipeline import read_pipeline

        return read_pipeline(self.manifest)

    @cached_property
    def text_limit(self) -> tuple[int | None, str]:
        """Tokens at which sentence-transformers cuts a text, and what says so; None and "" where nothing does."""
        if self.pipeline is None:
            return None, ""
        needs_config = not self.pipeline.own_length and self.manifest.config is not None
        return self.pipeline.text_limit(self.config if needs_config else None)

    @cached_property
    def quantized(self) -> dict[str, Quantized]:
        """The weights that are stored as codes, name of the weight -> how."""
        return self._layout.quantized

    @property
    def changed(self) -> Mapping[str, Quantized]:
        """What is not read as it is stored: codes, and numbers of a GGUF file that the model has in another order."""
        return self._layout.changed

    @cached_property
    def unread(self) -> Unread:
        """Stored tensors of codes that cannot be read as numbers: by their names, or by their places in a class."""
        codes, beside = self._layout.unread
        return (
            Unread({**codes, **self._in_place_of_weights(self._narrow)}, beside)
            if self._narrow
            else self._layout.unread
        )

    @cached_property
    def _narrow(self) -> list[str]:
        """Tensors of few bits a number, of which the class alone tells whether they are codes."""
        codes, beside = self._layout.unread
        known = self.quantized.keys() | codes.keys() | beside.keys()
        return [tensor.name for tensor in self.tensors if tensor.dtype in NARROW and tensor.name not in known]

    @property
    def told_by_names(self) -> bool:
        """Whether names alone tell heads, ties and codes, so that the class need not be asked."""
        family = self.family
        return family is not None and not (family.seq2seq_lm or self._narrow or self._layout.unread.codes)

    def _in_place_of_weights(self, names: list[str]) -> dict[str, str]:
        """Those of some tensors that the class of config.json has a parameter for."""
        try:
            model_class = self.own_class
            from inspector.models.build import checked_meta_model

            shapes = {tensor.name: tensor.shape for tensor in self.tensors}
            model = checked_meta_model(model_class, self.config, shapes, name=self.name)
        except InspectorError:
            return {}
        from inspector.models.naming import find_places

        parameters = dict(model.named_parameters(remove_duplicate=False)).keys()
        filled = find_places(model, names).filled
        return {name: name for name, places in filled.items() if not parameters.isdisjoint(places)}

    @cached_property
    def tensors(self) -> Tensors:
        """The headers of the file, a weight that is stored as codes as what it stands for, and of zeros."""
        return with_zeros(self._layout.tensors, self.manifest.translated.zeros)

    @cached_property
    def _layout(self) -> WeightLayout:
        return find_layout(self.manifest)

    @cached_property
    def reader(self) -> Reader:
        """What reads the numbers of `tensors`."""
        with libraries():
            from inspector.models.tensors import StoredReader, ZerosReader
        reader: Reader = StoredReader(self.manifest)
        if self.changed:
            from inspector.models.quantized.codes import CodedReader

            reader = CodedReader(reader, self._layout)
        zeros = self.manifest.translated.zeros
        return ZerosReader(reader, zeros) if zeros else reader

    @cached_property
    def heads(self) -> dict[str, str]:
        """Which heads the file holds: head -> "present" or "absent", in results.HEADS order."""
        if self.manifest.config is None:
            return dict.fromkeys(HEADS, "absent")
        names = [*self.tensors.names, *self.manifest.aliases, *self.unread.codes.values()]
        if self.family:
            return heads_present(self.manifest.config, names, self.family)
        try:  # a family without a row in the table: ask its classes
            with libraries():
                from inspector.models.heads import heads_by_building
            return heads_by_building(self.config, map(modern, names))
        except (CheckpointError, MissingLibraryError):  # no class is known, or there: nothing of it can be run
            return dict.fromkeys(HEADS, "absent")

    @property
    def language_heads(self) -> list[str]:
        """The language models among the heads that the file holds, the masked one first."""
        return [head for head in LANGUAGE_HEADS if self.heads[head] == "present"]

    @cached_property
    def tokens(self) -> Tokens | None:
        """The tokenizer; None where the checkpoint brings none."""
        from inspector.models.tokens import Tokens
        from inspector.models.vocabulary.tokenizer_files import has_tokenizer

        return Tokens(self.manifest) if has_tokenizer(self.manifest) else None

    def require_tokens(self) -> Tokens:
        """The tokenizer.

        Raises:
            NotInCheckpointError: If the checkpoint brings none.
        """
        from inspector.models.tokens import Tokens

        if self.tokens is None:
            self.refuse_adapter()
        return self.tokens or Tokens(self.manifest)  # the second says what is missing

    @cached_property
    def state(self) -> dict[str, torch.Tensor]:
        """Every tensor of the file, (name -> tensor): mapped, and codes as what they stand for.

        Raises:
            CheckpointError: If the file holds codes that cannot be read as numbers, or that stand
                for more of them than main memory may hold.
        """
        from inspector.models.placing.placement import main_memory

        self._refuse_what_no_model_has()
        summed = sum(self.manifest.by_name[each].nbytes for each in self.manifest.summed)
        refuse_many_numbers(self.name, self.quantized, main_memory(self.settings), summed=summed)
        return self.read(self.tensors.names)

    @cached_property
    def stored_twice(self) -> Fault | None:
        """The weights that the files hold both plainly and as codes: which are meant, nothing says."""
        if not self.quantized:
            return None
        from inspector.models.incomplete import codes_and_numbers

        codes = {name: each.parts["codes"].name for name, each in self.quantized.items()}
        return codes_and_numbers(self.name, codes, self.manifest.tensors.numbers)

    def _refuse_what_no_model_has(self) -> None:
        """Refuse codes that cannot be read, and weights that are there twice.

        Raises:
            CheckpointError: If there are any.
        """
        refuse_codes(self.name, self.unread)
        if self.stored_twice:
            raise CheckpointError(self.stored_twice.sentence)

    @cached_property
    @collector_paused()
    def outlines(self) -> dict[str, torch.Tensor]:
        """What `state` holds, on the meta device: shapes, dtypes and storages, at any size.

        Raises:
            CheckpointError: If the file holds codes that cannot be read as numbers.
        """
        self._refuse_what_no_model_has()
        return {name: _computable(tensor) for name, tensor in self.reader.outline(self.tensors.names).items()}

    def meta_model(self, model_class: type[PreTrainedModel]) -> PreTrainedModel:
        """A class as its config makes it, on the meta device; nothing of the file is in it.

        Raises:
            CheckpointError: If config.json asks for what the file cannot fill.
        """
        from inspector.models.build import checked_meta_model

        codes = self.unread.codes  # which may stand for a number a bit
        shapes = {each.name: (8 * each.nbytes,) if each.name in codes else each.shape for each in self.tensors}
        return checked_meta_model(model_class, self.config, shapes, name=self.name)

    def merged(self, model_class: type[PreTrainedModel]) -> dict[str, torch.Tensor] | None:
        """What a class loads in the place of `outlines`: a tensor for all experts of a layer, not one for each."""
        from inspector.models.naming import merge

        if model_class not in self._merges:
            model = self.meta_model(model_class)
            self._merges[model_class] = merge(model, self.places(model), self.outlines)
        return self._merges[model_class]

    def numbers(self, name: str, *, count: int) -> Iterator[torch.Tensor]:
        """Read one tensor's numbers in the order of the file, a number of them at a time."""
        import torch

        from inspector.store.copies import is_packed, read_pieces

        stored = self.manifest.by_name.get(name)
        if stored is None or name in self.changed or self.reader.stored(name) != (stored,) or not is_packed(stored):
            yield from self.read([name])[name].reshape(-1).split(count)
            return
        for piece in read_pieces(self.manifest, stored, count=count):
            yield torch.frombuffer(piece, dtype=getattr(torch, stored.dtype))

    def read(self, names: Sequence[str]) -> dict[str, torch.Tensor]:
        """Tensors of the file (name -> tensor): mapped, and codes as what they stand for.

        Raises:
            CheckpointError: If one is codes that cannot be read as numbers.
        """
        refuse_codes(self.name, self.unread, names)
        return {name: _computable(tensor) for name, tensor in self.reader.read(names).items()}

    @cached_property
    def embedding(self) -> TensorInfo:
        """The header of the matrix that the class of config.json looks tokens up in, (vocab, d_model).

        Raises:
            NotInCheckpointError: As `find_input_matrix`.
        """
        return find_input_matrix(self)

    @cached_property
    def embedding_shape(self) -> tuple[int, ...]:
        """Its shape, (vocab, d_model), by names alone where they tell it.

        Raises:
            NotInCheckpointError: As `find_input_matrix`.
        """
        return find_input_shape(self)

    @cached_property
    def zeroed_rows(self) -> tuple[int, ...]:
        """Rows of the input embedding that the class of config.json sets to zero after it has loaded the file."""
        from inspector.models.weightless.outline import build_outline
        from inspector.models.weightless.zeroed import Zeroing

        zeroing = Zeroing()
        try:
            model, _ = build_outline(self, self.own_class, compare=False, initialize=zeroing.initialize)
        except InspectorError:  # nothing is loaded
            return ()
        return zeroing.rows(model)

    @cached_property
    def structure(self) -> tuple[PreTrainedModel, Places] | None:
        """The class that config.json names, without memory, and where it puts the tensors.

        None where it cannot be built; names alone tell, then.
        """
        try:
            model = self.meta_model(self.own_class)
        except InspectorError:
            return None
        return model, self.places(model)

    @cached_property
    def outlined(self) -> tuple[PreTrainedModel, frozenset[str]]:
        """The class that config.json names as `build_outline` builds it; nobody changes it.

        Raises:
            CheckpointError: As `build_outline`.
        """
        from inspector.models.weightless.outline import build_outline

        return build_outline(self, self.own_class)

    def places(self, model: PreTrainedModel) -> Places:
        """Where a class, in whichever form, puts the tensors of the file."""
        from inspector.models.naming import find_places

        if type(model) not in self._places:
            self._places[type(model)] = find_places(model, (tensor.name for tensor in self.tensors))
        return self._places[type(model)]

    def beside(self, fingerprint: str, place: int, option: str) -> StagedCheckpoint:
        """Another checkpoint that a question names, read from the store.

        Args:
            fingerprint: Its own.
            place: Of it among all that the question names, this one first.
            option: Of the request.

        Raises:
            RequestError: If it is no longer there.
        """
        from inspector.errors import RequestError
        from inspector.store.keeping.holding import load_held

        try:
            manifest = load_held(fingerprint, settings=self.settings)
        except CheckpointError as error:
            raise RequestError(f"The {option} checkpoint cannot be read. {error}", option=option) from error
        other = StagedCheckpoint(manifest, settings=self.settings)
        other.called = self.called[place : place + 1]
        return other

    def refuse_adapter(self) -> None:
        """Refuse to look for a model in an adapter's weights.

        Raises:
            NotInCheckpointError: If the checkpoint is an adapter alone.
        """
        if self.manifest.adapter:
            raise NotInCheckpointError(self.manifest.adapter)

    def prediction(self, model: PreTrainedModel) -> MultiTokenTensors | None:
        """The tensors that a class leaves out because they predict several tokens ahead; None where there are none."""
        from inspector.models.prediction import find_prediction

        return find_prediction(model, self.places(model).unused, self.tensors.names, self.config_values)

    def left_over(self, model: PreTrainedModel) -> list[str]:
        """The tensors that a class has no place for and is not known to leave out, sorted."""
        from inspector.models.names import unexpected_keys

        ahead = self.prediction(model)
        known = {*(ahead.names if ahead else ()), *self.unread.beside, *self.tensors.tables}
        return [name for name in unexpected_keys(model, self.places(model).unused) if name not in known]

    def embedding_matrix(self) -> torch.Tensor:
        """The input embedding matrix as stored, (vocab, d_model).

        Raises:
            CheckpointError: If it is stored as codes that cannot be read as numbers.
        """
        name = self.embedding.name
        return self.read([name])[name]

    def check_ids(self, ids: tuple[int, ...], type_ids: Sequence[int] = (), *, decoder: bool = False) -> None:
        """Refuse ids and lengths that the model has no rows for.

        Args:
            ids: Of the text.
            type_ids: Segment of each position; a model with one segment or none is not given them.
            decoder: Whether the decoder of two reads them.

        Raises:
            CheckpointError: If the tokenizer gives an id past the embedding matrix, or a segment that
                the model does not have.
            RequestError: If the text is longer than the model's positions.
        """
        from inspector.errors import RequestError

        rows = self.embedding.shape[0]
        if max(ids) >= rows:
            raise CheckpointError(
                f"The tokenizer of {self.name} gives id {max(ids)}, but the embedding matrix has "
                f"{rows:,} rows: compare the tokenizer's files with their source."
            )
        segments = self.setting("type_vocab_size").value
        if type(segments) is int and 1 < segments <= max(type_ids, default=0):
            raise CheckpointError(
                f"The tokenizer of {self.name} gives segment {max(type_ids)} (token_type_ids), but according to "
                f"config.json the model has {segments:,} (type_vocab_size), counted from 0: compare both with their "
                "source."
            )
        allowed = self.decoder_positions if decoder else self.positions
        if allowed is not None and len(ids) > allowed:
            raise RequestError(
                f"The text has {len(ids):,} tokens, but {self.name} takes at most {allowed:,}: shorten it."
            )

    @cached_property
    def positions(self) -> int | None:
        """Longest text in tokens that its class reads, the encoder of two; None where nothing bounds it."""
        return self._longest(decoder=False)

    @cached_property
    def decoder_positions(self) -> int | None:
        """Likewise, of what the decoder of two has written."""
        return self._longest(decoder=True)

    @property
    def stated_positions(self) -> int | None:
        """What config.json says of it: a size of a table in some classes, and in others of no effect."""
        said = read_setting(self.config_values, "max_position_embeddings", "n_positions").value
        return said if isinstance(said, int) and said > 0 else None

    def length_notes(self, tokens: int) -> tuple[str, ...]:
        """What is to be said of a text that its class reads although config.json states fewer positions."""
        stated = self.stated_positions
        if stated is None or tokens <= stated or (self.positions is not None and tokens > self.positions):
            return ()
        return (
            f"The text has {tokens:,} tokens, more than the {stated:,} positions that config.json names: the model "
            "reads it all the same, but may not have been trained on such long texts.",
        )

    def _longest(self, *, decoder: bool) -> int | None:
        with suppress(LookupError):
            return longest_text(self.config_values, self.family)
        try:
            model_class = self.own_class
            from inspector.models.weightless.lengths import longest_run

            return longest_run(lambda: self.meta_model(model_class), decoder=decoder)
        except MissingLibraryError:
            raise
        except (InspectorError, LookupError):
            return self.stated_positions


def _computable(tensor: torch.Tensor) -> torch.Tensor:
    """A float of 8 bits without a scale as bfloat16, which is exact: torch cannot compute in it."""
    import torch

    plain = str(tensor.dtype).removeprefix("torch.") not in FLOAT8
    return tensor if plain else tensor.to(torch.bfloat16)
