"""The vocabulary lens of a model that is read a block at a time."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from inspector.demo import DEMOS
from inspector.serving.trial import Server
from tests.browser.looking import expect_calm
from tools.bench._sparse import SHAPES, Shape, write


def test_rows_of_a_streamed_lens_appear_while_it_runs(
    page: Page, start_server: Callable[..., Server], tmp_path: Path
) -> None:
    """Its worker is held as soon as there are rows, so that they do not go before they are looked at."""
    sizes = {"hidden_size": 1_024, "intermediate_size": 4_096, "num_hidden_layers": 24, "num_attention_heads": 16}
    write(tmp_path / "deep", Shape({**SHAPES["1.2B"].config, **sizes, "vocab_size": 50_257}, 1, 0, 0))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DEMOS["demo-gpt2"].folder / name, tmp_path / "deep" / name)
    server = start_server(INSPECTOR_ROOTS=str(tmp_path))
    page.goto(f"{server.url}/lens?checkpoint=path:deep&device=stream")
    page.get_by_role("button", name="Open these files").click()
    so_far = page.get_by_text(re.compile(r"^Layers? .* of 24 so far, by "))
    so_far.wait_for()  # at once, where `expect` would look again after a second
    with server.hold():
        expect(so_far).to_be_visible()
        expect(page.get_by_text("This link opens files")).to_have_count(0)  # answered, so gone meanwhile
        expect(page.get_by_test_id("stMain").get_by_test_id("stDataFrame")).to_be_visible()
        expect(page.get_by_role("progressbar").filter(visible=True)).to_be_visible()
        expect(page.get_by_text(re.compile("^A streamed pass takes "))).to_be_visible()
        expect(page.locator(".js-plotly-plot")).to_have_count(0)
    expect(page.get_by_role("heading", name=re.compile(r"^Layer \d+, position \d+"))).to_be_visible()
    expect_calm(page)
    expect(so_far).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)
