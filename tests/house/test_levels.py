"""Settings of a language model are read by one function, which knows the level that they come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.reading import ROOT, SOURCES, parsed

LEVELS = ROOT / "inspector/store/readers/levels.py"
SETTINGS = frozenset(
    {
        "bos_token_id",
        "decoder_start_token_id",
        "eos_token_id",
        "hidden_size",
        "initializer_range",
        "max_position_embeddings",
        "n_embd",
        "n_positions",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "pad_token_id",
        "tie_word_embeddings",
        "torch_dtype",
        "type_vocab_size",
        "vocab_size",
    }
)


def read_alone(tree: ast.AST) -> Iterator[str]:
    """Settings that code takes from one level: `config.x`, `config["x"]`, `config.get("x")`, `getattr(config, "x")`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in SETTINGS:
            yield f"{node.lineno}: {node.attr}"
        taken: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            taken = [node.slice]
        elif isinstance(node, ast.Call) and _called(node.func) in {"get", "getattr", "pop", "setdefault"}:
            taken = node.args
        yield from (
            f"{each.lineno}: {each.value}"
            for each in taken
            if isinstance(each, ast.Constant) and each.value in SETTINGS
        )


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_no_other_module_reads_a_setting_from_one_level():
    sources = (path for path in SOURCES if path != LEVELS)
    assert {str(path): found for path in sources if (found := [*read_alone(parsed(path))])} == {}


@pytest.mark.parametrize(
    "code",
    [
        "config.pad_token_id",
        "config['vocab_size']",
        "(config or {}).get('tie_word_embeddings', True)",
        "getattr(model.config, 'eos_token_id', None)",
    ],
)
def test_each_way_to_read_one_is_seen(code):
    assert list(read_alone(ast.parse(code)))
    assert not list(read_alone(ast.parse("read_setting(config, 'pad_token_id').value; config.pad_token_id = 0")))
