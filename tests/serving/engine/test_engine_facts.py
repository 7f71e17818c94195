"""What the server knows of a checkpoint from its headers: no answer may say otherwise."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inspector.analyses.embeddings.result import Embeddings, RowNorms
from inspector.analyses.ladder.result import Climb
from inspector.analyses.lens.result import Lens
from inspector.analyses.masked_lm.result import Mask
from inspector.analyses.overview.result import ListedTensor, Overview, OverviewFile
from inspector.analyses.overview.result_tensors import StoredTensors
from inspector.analyses.padding.result import PaddingRow
from inspector.analyses.plausibility.result import Plausibility
from inspector.analyses.sharing.result import SharedMember
from inspector.analyses.snapshots.result import Vitals
from inspector.catalog import CATALOG
from inspector.errors import WorkerError
from inspector.serving.engine.local import LocalEngine
from inspector.serving.engine.manifest_check import (
    COLUMNS,
    FIELDS,
    OBJECTS,
    Known,
    check_against_manifest,
    lies,
    load_known,
)
from inspector.serving.engine.wire import RunRequest, WorkerFunctions
from inspector.settings import Settings, read_settings
from inspector.store.manifests.columns import TensorInfo, Tensors
from inspector.store.manifests.manifest import FileInfo, Manifest
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef
from tests.conftest import silent
from tests.serving.engine.engine_harness import WAIT
from tests.serving.engine.engine_lies import overview_but

ROWS, COLUMNS_OF_ROWS, LAYERS = 60, 32, 2
WEIGHT = "bert.embeddings.word_embeddings.weight"
FILE = "model.safetensors"
ALL = ("0" * 64, "1" * 64)


def tensor(name: str, *shape: int, dtype: str = "float32", begin: int = 0) -> TensorInfo:
    nbytes = int(np.prod(shape)) * (8 if dtype == "int64" else 4)
    return TensorInfo(name, dtype, shape, (), FILE, begin, nbytes, f"{begin}", nbytes)


# A matrix, a bias and a table of positions, which is no weight and has more numbers than the vocabulary.
TENSORS = (
    tensor(WEIGHT, ROWS, COLUMNS_OF_ROWS),
    tensor("cls.predictions.bias", ROWS, begin=1),
    tensor("bert.embeddings.position_ids", 1, 512, dtype="int64", begin=2),
)


@cache
def known() -> Known:
    files = (
        FileInfo("config.json", "json", 20, ALL[0], pathless := None),  # pyright: ignore[reportArgumentType]
        FileInfo(FILE, "safetensors", 20_000, None, pathless),  # pyright: ignore[reportArgumentType]
    )
    config = {"num_hidden_layers": LAYERS, "hidden_size": COLUMNS_OF_ROWS, "scale": float("nan")}
    return Known(Manifest(ALL[1], "tiny", "upload", None, files, Tensors.of(TENSORS), {}, config, ()))  # pyright: ignore[reportArgumentType]


def ids(*numbers: int, column: str = "token_id") -> pd.DataFrame:
    return pd.DataFrame({column: np.array(numbers, dtype="int64")})


NUMBERS = ROWS * COLUMNS_OF_ROWS + ROWS
NO_ROWS = ids()
NAMES = ("embeddings", *map(str, range(1, LAYERS + 1)))
OVERVIEW = Overview(
    name="tiny", fingerprint=ALL[1], model_type="bert", architecture=None,
    files=(OverviewFile("config.json", "json", 20, ALL[0]), OverviewFile(FILE, "safetensors", 20_000, ALL[1])),
    dtypes={"float32": NUMBERS}, listed_parameters=NUMBERS + 1, unique_parameters=NUMBERS,
    nbytes_on_disk=20_020, nbytes_in_memory=4 * NUMBERS, vocab_rows=ROWS, d_model=COLUMNS_OF_ROWS, layers=LAYERS,
    heads={}, tokenizer=None, warnings=(),
    stored=StoredTensors.of(Tensors.of(TENSORS)),
    config={"hidden_size": COLUMNS_OF_ROWS, "num_hidden_layers": LAYERS, "scale": float("nan")}, quantized={},
)  # fmt: skip
LISTED = ListedTensor(WEIGHT, (ROWS, COLUMNS_OF_ROWS), "float32", 1920, 7680, FILE, ())
MEMBER = SharedMember("a", "parameter", "float32", (ROWS,), 240, 0, 0, (1,), WEIGHT, FILE)
EMBEDDINGS = Embeddings(
    ROWS, COLUMNS_OF_ROWS, RowNorms(0, 0, 0), NO_ROWS, NO_ROWS, NO_ROWS, (), None,  # pyright: ignore[reportArgumentType]
    query_id=ROWS - 1, pad_id=0, tensor=WEIGHT,
)  # fmt: skip
VITALS = Vitals(
    "tiny", ALL[1], WEIGHT, ROWS, COLUMNS_OF_ROWS, "", RowNorms(0, 0, 0), None, 0, None, NO_ROWS,
    np.zeros(1), 0, np.zeros(1), np.zeros(1), (),
)  # fmt: skip
PADDING = PaddingRow("[PAD]", 0, 0.0, 0.0, True, ids(ROWS - 1), NO_ROWS)
CLIMB = Climb(0, 0, "a", (), 0.0, NO_ROWS, NO_ROWS, (), NAMES, {})
LENS = Lens((), (), ids(0, ROWS - 1), None, (), NO_ROWS, None, False, {}, ids(LAYERS, column="layer"), NAMES)
MASK = Mask(1, ids(0, ROWS - 1))
TOO_DEEP = tuple(map(str, range(99)))
PLAUSIBILITY = Plausibility("", "token", "cpu", "float32", 0.0, ids(0, column="best_id"), 0, None, None, "masked",
                            None, None, NO_ROWS, ())  # fmt: skip
LIES: dict[str, list[Any]] = {  # what is refused -> answers that say it
    "Overview": [replace(OVERVIEW, unique_parameters=NUMBERS + 2), replace(OVERVIEW, unique_parameters=-1),
                 replace(OVERVIEW, listed_parameters=10**9, unique_parameters=10**9)],
    "Overview.files": [replace(OVERVIEW, files=OVERVIEW.files[:1]),
                       replace(OVERVIEW, files=(replace(OVERVIEW.files[0], sha256=ALL[1]), OVERVIEW.files[1])),
                       replace(OVERVIEW, files=(OVERVIEW.files[0], replace(OVERVIEW.files[1], nbytes=1)))],
    "Overview.stored": [
        replace(OVERVIEW, stored=StoredTensors.of(Tensors.of(tensors)))
        for tensors in (TENSORS[:1], TENSORS[::-1], (*TENSORS, TENSORS[0]), *(
            (TENSORS[0]._replace(**{field: value}), *TENSORS[1:])
            for field, value in (("name", "a"), ("shape", (61, 32)), ("dtype", "int32"), ("nbytes", 1), ("file", "b"))
        ))
    ],
    "Overview.config": [replace(OVERVIEW, config=OVERVIEW.config | {"num_hidden_layers": 3})],
    "Overview.dtypes": [replace(OVERVIEW, dtypes={"float16": NUMBERS}), replace(OVERVIEW, dtypes={"float32": 1})],
    "Overview.nbytes_on_disk": [replace(OVERVIEW, nbytes_on_disk=20_021)],
    "Overview.nbytes_in_memory": [replace(OVERVIEW, nbytes_in_memory=4 * NUMBERS - 4)],
    "Overview.vocab_rows": [replace(OVERVIEW, vocab_rows=61)],
    "Overview.d_model": [replace(OVERVIEW, d_model=33)],
    "Overview.layers": [replace(OVERVIEW, layers=len(TOO_DEEP))],
    "ListedTensor": [replace(OVERVIEW, listed_tensors=(LISTED, replace(LISTED, name="another"))),
                     replace(LISTED, shape=(32, 60)), replace(LISTED, parameters=1), replace(LISTED, dtype="int8")],
    "SharedMember": [replace(MEMBER, stored_as="another"), replace(MEMBER, file="../x"), replace(MEMBER, stored_as="")],
    "Embeddings": [replace(EMBEDDINGS, rows=61), replace(EMBEDDINGS, tensor="another")],
    "Embeddings.query_id": [replace(EMBEDDINGS, query_id=ROWS), replace(EMBEDDINGS, query_id=-1)],
    "Embeddings.pad_id": [replace(EMBEDDINGS, pad_id=ROWS)],
    "Vitals": [replace(VITALS, columns=33)],
    "Vitals.pad_id": [replace(VITALS, pad_id=10**9)],
    "PaddingRow.token_id": [replace(PADDING, token_id=ROWS)],
    "Climb.layers": [replace(CLIMB, layers=TOO_DEEP)],
    "Lens.layers": [replace(LENS, layers=TOO_DEEP)],
    "Lens.cells.token_id": [replace(LENS, cells=ids(0, ROWS)), replace(LENS, cells=ids(-2))],
    "Lens.states.layer": [replace(LENS, states=ids(99, column="layer"))],
    "Mask.predictions.token_id": [replace(MASK, predictions=ids(2**40)),
                                  replace(MASK, predictions=ids(2**40).astype("Int64")),
                                  replace(MASK, predictions=ids(0).astype(float) + np.inf)],
    "Mask.predictions.other_token_id": [replace(MASK, predictions=ids(ROWS, column="other_token_id"))],
    "Mask.predictions.prediction_id": [replace(MASK, predictions=ids(ROWS, column="prediction_id"))],
    "Plausibility.tokens.best_id": [replace(PLAUSIBILITY, tokens=ids(ROWS, column="best_id"))],
}  # fmt: skip
TRUE = (OVERVIEW, replace(OVERVIEW, listed_tensors=(LISTED,)), MEMBER, replace(MEMBER, stored_as="", file=""),
        EMBEDDINGS, replace(EMBEDDINGS, query_id=None), VITALS, PADDING, CLIMB, LENS, MASK, PLAUSIBILITY,
        replace(MASK, predictions=ids(-1)), replace(MASK, predictions=pd.DataFrame({"token_id": []})),
        replace(MASK, predictions=pd.DataFrame({"token_id": pd.array([None, 1], dtype="Int64")})))  # fmt: skip


@pytest.mark.parametrize("answer", TRUE, ids=lambda answer: type(answer).__name__)
def test_what_the_headers_say_is_believed(answer):
    assert list(lies(answer, known(), known())) == []


@pytest.mark.parametrize("place", LIES)
def test_what_contradicts_the_headers_is_found(place):
    for answer in LIES[place]:
        assert place in list(lies(answer, known(), known()))


def test_every_fact_is_tried():
    columns = {place.rpartition(".")[2] for place in LIES}
    assert {*OBJECTS, *FIELDS} <= LIES.keys()
    assert COLUMNS.keys() <= columns


def test_a_fact_is_about_a_field_that_there_is():
    classes = {type(answer).__name__: type(answer) for answer in TRUE}
    for place in FIELDS:
        name, _, field = place.partition(".")
        assert field in {each.name for each in dataclasses.fields(classes[name])}


def test_quantized_weights_stand_for_names_and_rows_that_no_header_has():
    manifest = known().manifest
    packed = tensor("lm_head.qweight", 4, ROWS // 2, dtype="int32")
    coded = Known(replace(manifest, tensors=Tensors.of((packed, *manifest.tensors))))
    assert list(lies(replace(EMBEDDINGS, tensor="lm_head.weight", rows=5), coded)) == []
    assert list(lies(replace(MASK, predictions=ids(100)), coded)) == []
    assert list(lies(replace(EMBEDDINGS, tensor="another.weight"), coded)) == ["Embeddings"]


def test_the_parameters_of_a_quantized_checkpoint_may_be_packed_down_to_a_bit():
    manifest = known().manifest
    packed = Known(replace(manifest, tensors=Tensors.of((tensor("w.qweight", 4, dtype="int32"),))))
    places = [
        "Overview" in lies(replace(OVERVIEW, listed_parameters=10**6, unique_parameters=count), packed)
        for count in (0, 8 * 4 * 4, 8 * 4 * 4 + 1)
    ]
    assert places == [False, False, True]
    assert "Overview" not in lies(replace(OVERVIEW, listed_parameters=100, unique_parameters=100), packed)
    assert "Overview" in lies(replace(OVERVIEW, listed_parameters=99, unique_parameters=100), packed)
    sizes = ["Overview.vocab_rows" in lies(replace(OVERVIEW, vocab_rows=rows), packed) for rows in (-1, 0, 128, 129)]
    assert sizes == [True, False, False, True]  # four int32 hold 128 rows of a bit each


@dataclasses.dataclass(frozen=True)
class Several:
    """An answer with parts."""

    parts: tuple[Any, ...]


@pytest.mark.parametrize(("column", "rows"), [("token_id", ROWS), ("other_token_id", 10)])
def test_a_second_checkpoint_has_rows_of_its_own(column: str, rows: int) -> None:
    smaller = Known(replace(known().manifest, tensors=Tensors.of((tensor(WEIGHT, 10, 4),))))
    last, beyond = (replace(MASK, predictions=ids(number, column=column)) for number in (rows - 1, rows))
    assert list(lies(Several((last, last)), known(), smaller)) == []
    assert list(lies(Several((last, beyond)), known(), smaller)) == [f"Mask.predictions.{column}"]


def test_the_second_checkpoint_of_a_question_is_looked_up(settings: Settings) -> None:
    opened = [
        open_checkpoint(CheckpointRef("demo", demo), settings=settings, progress=silent, restrict_paths=True)[0]
        for demo in ("demo-bert", "demo-gpt2")
    ]
    rows = [max(each.shape[0] for each in manifest.tensors) for manifest in opened]
    assert rows[0] != rows[1]
    for first, second, most in ((*opened, rows[1]), (*reversed(opened), rows[0])):
        asked = RunRequest(first.fingerprint, "", {"other": second.fingerprint})
        check_against_manifest(replace(MASK, predictions=ids(most - 1, column="other_token_id")), asked, settings)
        with pytest.raises(WorkerError, match=r"contradicts the headers .*\(Mask\.predictions\.other_token_id\)"):
            check_against_manifest(replace(MASK, predictions=ids(most, column="other_token_id")), asked, settings)


def test_nothing_is_known_of_what_was_deleted(settings: Settings) -> None:
    assert load_known(ALL[0], settings) is None
    check_against_manifest(replace(OVERVIEW, layers=3), RunRequest(ALL[0], "", {}), settings)


def test_without_a_count_of_layers_none_is_too_many():
    manifest = known().manifest
    assert list(lies(replace(LENS, layers=TOO_DEEP), Known(replace(manifest, config=None)))) == []


def test_a_worker_that_contradicts_the_headers_is_ended(tmp_path):
    function = f"{overview_but.__module__}:{overview_but.__name__}"
    lying = replace(CATALOG["overview"], verb="lying", function=function)
    settings = read_settings({"INSPECTOR_HOME": str(tmp_path / "home")})
    functions = WorkerFunctions(light=("pandas", "inspector.models.tokens", overview_but.__module__), warm_up=())
    engine = LocalEngine(settings, spare=False, catalog=(lying,), functions=functions)
    try:
        opened = engine.open(CheckpointRef("demo", "demo-bert")).result(WAIT)
        true = engine.run(opened.fingerprint, "lying").result(WAIT)
        assert true.fingerprint == opened.fingerprint
        job = engine.run(opened.fingerprint, "lying", changes={"nbytes_on_disk": true.nbytes_on_disk + 1})
        with pytest.raises(
            WorkerError, match=r"contradicts the headers of the checkpoint \(Overview\.nbytes_on_disk\)"
        ):
            job.result(WAIT)
        job = engine.run(opened.fingerprint, "lying", called=("mine",), changes={"name": "somebody else's"})
        with pytest.raises(WorkerError, match="invalid reply"):
            job.result(WAIT)
        assert len(engine.endings()) == 2
        assert engine.run(opened.fingerprint, "lying", called=("mine",)).result(WAIT).name == "mine"
    finally:
        engine.close()
