"""The keys of every page, and the list of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from string import ascii_lowercase

from streamlit.components.v2 import component

HTML = """
<button type="button" class="opener"><span>Keyboard</span> <kbd>?</kbd></button>
<dialog aria-label="Keyboard">
  <h2>Keyboard</h2>
  <table><tbody></tbody></table>
  <label><input type="checkbox"> Use single keys</label>
  <button type="button" class="close">Close</button>
</dialog>
"""
CSS = """
:host, .opener { font: 0.82rem var(--st-font, sans-serif); color: var(--st-text-color, inherit) }
.opener { display: flex; justify-content: space-between; width: 100%; padding: 0.2rem 0.5rem; cursor: pointer;
  background: none; border: 0; border-radius: 6px; opacity: 0.85 }
.opener:hover { opacity: 1 }
kbd { font: 0.76rem var(--st-code-font, monospace); padding: 0 0.35rem; border-radius: 4px;
  border: 1px solid var(--st-border-color, #8888) }
dialog { width: min(24rem, 88vw); max-height: 84vh; padding: 1.1rem 1.4rem; border-radius: 10px;
  border: 1px solid var(--st-border-color, #8888); color: var(--st-text-color, #1d2433);
  background: var(--st-background-color, #fff); font-size: 0.9rem }
dialog::backdrop { background: #0006 }
h2 { margin: 0 0 0.6rem; font: 600 1.2rem var(--st-heading-font, serif) }
td { padding: 0.14rem 1rem 0.14rem 0 }
label { display: block; margin: 0.8rem 0 }
.close { font: inherit; color: inherit; background: none; padding: 0.25rem 0.8rem; border-radius: 6px; cursor: pointer;
  border: 1px solid var(--st-border-color, #8888) }
:focus-visible { outline: 2px solid var(--st-primary-color, currentColor); outline-offset: 1px }
"""
SINGLE = {
    "/": "The text, or the first field",
    "?": "This list",
    "← ↑ ↓ →": "Move the map, or the chosen cell of the heat map, when it has the focus",
}
_mount = component("keys", html=HTML, css=CSS, js=(Path(__file__).parent / "keys.js").read_text(encoding="utf-8"))


def draw(pages: Iterable[tuple[str, str]]) -> None:
    """Listen to the keys, and offer the list of them.

    Args:
        pages: Slug and title of each, in their order.
    """
    pages = list(pages)
    letters = letters_of(title for _, title in pages)
    listed = [*SINGLE.items(), *((f"g {letter}", title) for letter, (_, title) in zip(letters, pages, strict=True))]
    slugs = {letter: slug for letter, (slug, _) in zip(letters, pages, strict=True)}
    _mount(key="keys", data={"pages": slugs, "keys": [list(line) for line in listed]})


def letters_of(titles: Iterable[str]) -> list[str]:
    """A letter for each title that no other one has: the first free one of its last word, of all of it, of all."""
    letters: list[str] = []
    for title in titles:
        *rest, last = title.lower().split()
        free = (letter for letter in last + "".join(rest) + ascii_lowercase if letter in ascii_lowercase)
        letters.append(next((letter for letter in free if letter not in letters), ""))
    return letters
