"""The page Overview of a GGUF file: its portrait, and a tab with the types of its tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.gguf_files import random_blocks, write_gguf

Open = Callable[..., AppTest]


def test_the_types_of_a_gguf_file_are_a_tab(open_app: Open, roots: Path) -> None:
    name = "blk.0.ffn_up.weight"
    path = roots / "small.gguf"
    write_gguf(path, {name: random_blocks("Q4_K", 4, 256)}, blocks={name: "Q4_K"}, metadata={"llama.block_count": 1})
    app = open_app("overview", checkpoint=f"path:{path}", agreed=f"path:{path}", tab="Quantization")
    assert not app.exception
    assert not app.error, app.error[0].value
    specs = [chart.proto.spec for chart in app.get("plotly_chart")]
    assert any("How small.gguf stores its tensors" in spec for spec in specs), [spec[:200] for spec in specs]
