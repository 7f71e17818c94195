"""What the server's own process holds after every page was visited."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from .looking import SLUGS, expect_page
from .server import Server

# A native library of each package that belongs into workers alone (umap brings llvmlite).
NATIVE = ("libtorch", "llvmlite", "tokenizers", "sentencepiece")


def test_the_server_loads_neither_torch_nor_transformers_nor_umap(
    page: Page, server: Server
) -> None:
    for slug in SLUGS:
        page.goto(f"{server.url}/{slug}")
        expect_page(page, slug, "demo-bert")
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "libpython" in maps or "python" in maps  # it is the process we think it is
    assert "pandas" in maps
    assert [name for name in NATIVE if name in maps] == []
