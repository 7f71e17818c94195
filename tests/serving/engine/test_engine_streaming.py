"""A streamed pass under the engine, with a real worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.catalog import CATALOG
from inspector.errors import CancelledError
from inspector.serving.engine.local import LocalEngine
from inspector.settings import read_settings
from inspector.store.reference import CheckpointRef
from tests.families import random_model, save_checkpoint
from tests.serving.engine.engine_harness import WAIT, eventually, held
from tests.serving.engine.engine_held_lens import AT, FUNCTIONS, HELD

ASKED = {"text": "w1 w2 w3", "device": "stream"}


def test_rows_of_a_streamed_pass_come_and_canceling_ends_it_at_the_block_where_it_is(tmp_path):
    """The worker is stuck in a block, so nothing but its end frees its memory."""
    folder = save_checkpoint(random_model("LlamaForCausalLM", num_hidden_layers=4), tmp_path / "llama")
    engine = LocalEngine(
        read_settings({"INSPECTOR_HOME": str(tmp_path / "home")}),
        restrict_paths=False,
        spare=False,
        catalog=[*CATALOG.values(), HELD],
        functions=FUNCTIONS,
    )
    try:
        fingerprint = engine.open(CheckpointRef("path", str(folder))).result(WAIT).fingerprint
        job = engine.run(fingerprint, HELD.verb, **ASKED)
        eventually(lambda: job.progress.text.startswith(AT))
        assert job.progress.fraction == pytest.approx(3 / 4)
        rows = job.partial
        assert sorted(rows.cells["layer"].unique()) == [0, 1, 2, 3]
        pid = held(engine)[fingerprint].pid
        job.cancel()

        assert (job.status, job.partial) == ("cancelled", None)
        with pytest.raises(CancelledError):
            job.result(WAIT)
        eventually(lambda: not Path(f"/proc/{pid}").exists())
        found = engine.run(fingerprint, "lens", **ASKED).result(WAIT)
        assert sorted(found.cells["layer"].unique()) == [0, 1, 2, 3, 4]
        best = rows.cells.merge(found.cells, how="inner")  # by all columns
        assert len(best) == len(rows.cells) == 4 * len(found.tokens) * len(rows.rungs)
    finally:
        engine.close()
