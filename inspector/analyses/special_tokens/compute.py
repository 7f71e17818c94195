"""List the special tokens with what each file says of them, and tell where a generated text ends."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from inspector.analyses.special_tokens import words
from inspector.analyses.special_tokens.result import SpecialTokens
from inspector.catalog import import_ahead, libraries
from inspector.errors import NotInCheckpointError
from inspector.models.checkpoint import Checkpoint
from inspector.models.tokens import Tokens
from inspector.models.vocabulary.library import SPECIAL_ROLES
from inspector.models.vocabulary.tokenizer_files import read_file
from inspector.progress import Progress
from inspector.store.names import GENERATION
from inspector.store.readers.levels import read_setting

CONFIG, SETTINGS, NAMED, ADDED, WHOLE = (
    "config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json",
)  # fmt: skip
TURN_END = "ends a turn"
IDS = ("bos", "eos", "pad")  # roles of which configurations give ids
NAMED_ONES = 3  # of many tokens with one fault


@dataclass(frozen=True, slots=True)
class _Files:
    """What the files say, role by role and token by token."""

    ids: Mapping[str, Mapping[str, tuple[int, ...]]]  # role -> file -> its ids
    roles: Mapping[str, Mapping[str, str]]  # role -> file -> its token
    numbers: Mapping[str, Mapping[str, int]]  # token -> file -> its id
    tokens: Mapping[str, frozenset[str]]  # file -> tokens that it names


@dataclass(frozen=True, slots=True)
class _Chat:
    """What the chat template says."""

    file: str = ""
    text: str = ""  # the template, and what it makes of the conversations
    turn_end: int | None = None
    problem: str = ""
    begins: tuple[int, ...] = ()  # ids that a rendered conversation begins with, once the tokenizer has added its own
    unlike: str = ""  # the other file, whose template differs


def tokens(checkpoint: Checkpoint, *, progress: Progress) -> SpecialTokens:
    """List every special or added token: its roles, its files, its embedding row, and whether a text ends there.

    The chat template is rendered in Jinja's sandbox on three fixed conversations; what follows the answer is tokenized,
    and the first special token of it ends a turn. generate() stops at the ids of generation_config.json, or else of
    config.json (transformers, `GenerationConfig.from_model_config`).

    Raises:
        NotInCheckpointError: If the checkpoint brings no tokenizer.
    """
    tokenizer = checkpoint.require_tokens()
    said = _read_files(checkpoint, tokenizer)
    progress(None, "Reading the chat template")
    with libraries():
        chat = _read_chat(checkpoint, tokenizer)
    stops_by = next((file for file, ids in said.ids["eos"].items() if ids), "")
    eos_ids = said.ids["eos"].get(stops_by, ())
    table, rows = _table(checkpoint, tokenizer, said, chat, progress)
    end = chat.turn_end
    return SpecialTokens(
        tokens=table,
        eos_ids=eos_ids,
        eos_from=stops_by,
        turn_end=None if end is None else tokenizer.visible(end),
        stops=None if end is None else end in eos_ids,
        disagreements=tuple(_disagreements(tokenizer, said, chat, stops_by, rows)),
        template=chat.file,
        template_problem=chat.problem,
    )


def _read_files(checkpoint: Checkpoint, tokenizer: Tokens) -> _Files:
    manifest = checkpoint.manifest
    settings, named, added = (read_file(manifest, name) for name in (SETTINGS, NAMED, ADDED))
    generation, config = read_file(manifest, GENERATION), manifest.config or {}
    ids: dict[str, dict[str, tuple[int, ...]]] = {}
    for role in IDS:
        key = f"{role}_token_id"
        read = {GENERATION: generation.get(key), manifest.says_all or CONFIG: read_setting(config, key).value}
        ids[role] = {file: found for file, value in read.items() if (found := _as_ids(value))}
    roles = {
        role: {
            file: text
            for file, said in ((SETTINGS, settings), (NAMED, named))
            if (text := _content(said.get(f"{role}_token"))) is not None
        }
        for role in SPECIAL_ROLES
    }
    numbers: dict[str, dict[str, int]] = defaultdict(dict)
    for number, token in (settings.get("added_tokens_decoder") or {}).items():
        numbers[token["content"]][SETTINGS] = int(number)
    for token, number in added.items():
        numbers[token][ADDED] = number
    whole = {each for index in tokenizer.added_ids if (each := tokenizer.raw(index)) is not None}
    if (manifest.folder / WHOLE).exists():
        for token in whole & numbers.keys():
            numbers[token][WHOLE] = next(index for index in tokenizer.added_ids if tokenizer.raw(index) == token)
    files = {
        WHOLE: frozenset(whole if (manifest.folder / WHOLE).exists() else ()),
        SETTINGS: frozenset(_texts(settings)) | {token for token, at in numbers.items() if SETTINGS in at},
        NAMED: frozenset(_texts(named)),
        ADDED: frozenset(added),
    }
    return _Files(ids, roles, numbers, files)


def _as_ids(value: Any) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if type(each) is int and each >= 0)


def _content(token: Any) -> str | None:
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _texts(settings: Mapping[str, Any]) -> Iterator[str]:
    """Tokens that a file of settings names, alone or in lists."""
    for key, value in settings.items():
        if key.endswith(("_token", "_tokens")):
            several = value.values() if isinstance(value, dict) and "content" not in value else value
            for each in several if isinstance(several, list) or several is not value else [value]:
                if (text := _content(each)) is not None:
                    yield text


def _read_chat(checkpoint: Checkpoint, tokenizer: Tokens) -> _Chat:
    """Render the chat template, if there is one."""
    from inspector.models.vocabulary.templates import find_templates, render

    templates = find_templates(checkpoint.manifest)
    if not templates:
        return _Chat()
    file, template = next(iter(templates.items()))
    unlike = next((name for name, text in templates.items() if text != template), "")
    special = {f"{role}_token": text for role in SPECIAL_ROLES if (text := tokenizer.role(role)[0]) is not None}
    rendered = render(template, special)
    if rendered.problem:
        return _Chat(file, template, problem=rendered.problem, unlike=unlike)
    ends = {_first_special(tokenizer, end) for end in rendered.ends}
    return _Chat(
        file,
        "\n".join((template, *rendered.texts)),
        turn_end=ends.pop() if len(ends) == 1 else None,
        begins=tuple(tokenizer.encoding(rendered.texts[0]).ids[:2]),
        unlike=unlike,
    )


def _first_special(tokenizer: Tokens, text: str) -> int | None:
    """The first token of a text that stands for no text."""
    marks = tokenizer.special_ids | tokenizer.added_ids
    return next((index for index in tokenizer.pieces(text) if index in marks), None) if text else None


def _table(
    checkpoint: Checkpoint, tokenizer: Tokens, said: _Files, chat: _Chat, progress: Progress
) -> tuple[pd.DataFrame, int | None]:
    """A row for each token, and how many rows the embedding matrix has."""
    roles: dict[int, list[str]] = defaultdict(list)
    files: dict[int, list[str]] = defaultdict(list)
    for role in SPECIAL_ROLES:
        if (index := tokenizer.role(role)[1]) is not None:
            roles[index].append(role)
        for file, ids in said.ids.get(role, {}).items():
            for each in ids:
                roles[each] += [role] * (role not in roles[each])
                files[each].append(file)
    if chat.turn_end is not None:
        roles[chat.turn_end].append(TURN_END)
    listed = sorted(tokenizer.special_ids | tokenizer.added_ids | roles.keys())
    rows = _lengths(checkpoint, progress)
    found = []
    for index in listed:
        raw = tokenizer.raw(index)
        pieces = () if raw is None else tokenizer.pieces(raw)
        named = [file for file, texts in said.tokens.items() if raw in texts]
        norm, percentile = rows[index] if rows and index < len(rows) else (math.nan, math.nan)
        found.append(
            {
                "token": tokenizer.visible(index),
                "token_id": index,
                "roles": roles[index],
                "files": [*named, *dict.fromkeys(files[index])],
                "norm": norm,
                "percentile": percentile,
                "in_template": raw is not None and raw in chat.text if chat.file else None,
                "reachable": index in pieces,
                "single": pieces == (index,),
            }
        )
    return pd.DataFrame(found, columns=_COLUMNS), None if rows is None else len(rows)


_COLUMNS = ["token", "token_id", "roles", "files", "norm", "percentile", "in_template", "reachable", "single"]


def _lengths(checkpoint: Checkpoint, progress: Progress) -> list[tuple[float, float]] | None:
    """Of each embedding row its norm, and the share of rows that are shorter, 0..100; None where there is no matrix."""
    from inspector.models.vocabulary.labels import measured_rows

    try:
        _, facts, _ = measured_rows(checkpoint, progress)
    except NotInCheckpointError:
        return None
    kept = facts.norms[facts.finite].sort().values
    shorter = 100 * torch.searchsorted(kept, facts.norms) / max(len(kept), 1)
    return list(zip(facts.norms.tolist(), shorter.masked_fill(~facts.finite, torch.nan).tolist(), strict=True))


def _disagreements(tokenizer: Tokens, said: _Files, chat: _Chat, stops_by: str, rows: int | None) -> Iterator[str]:
    yield from _of_files(said)
    yield from _of_ends(tokenizer, {*said.ids["eos"].get(stops_by, ())}, stops_by)
    yield from _of_chat(tokenizer, chat)
    if rows is not None:
        beyond = [
            index for index in sorted(tokenizer.special_ids) if index >= rows and tokenizer.raw(index) is not None
        ]
        yield from (words.no_row(tokenizer.visible(index), index, rows) for index in beyond[:NAMED_ONES])


def _of_files(said: _Files) -> Iterator[str]:
    """Two files that say two things of one setting or one token."""
    for role, known in said.ids.items():
        if len({frozenset(ids) for ids in known.values()}) > 1:
            yield words.other_id(f"{role}_token_id", GENERATION, known[GENERATION], CONFIG, known[CONFIG])
    for role, files in said.roles.items():
        if len({*files.values()}) > 1:
            yield words.other_token(role, SETTINGS, files[SETTINGS], NAMED, files[NAMED])
    moved = [(token, places) for token, places in said.numbers.items() if len({*places.values()}) > 1]
    yield from (words.moved(token, places) for token, places in moved[:NAMED_ONES])


def _of_ends(tokenizer: Tokens, stops: set[int], stops_by: str) -> Iterator[str]:
    """The tokenizer's end of a text, and its padding, against where generate() stops."""
    eos, pad = tokenizer.role("eos")[1], tokenizer.role("pad")[1]
    if stops and eos is not None and eos not in stops:
        yield words.eos_not_stopping(tokenizer.visible(eos), eos, stops_by)
    if pad is not None and pad in {*stops, eos}:
        yield words.padding_ends(tokenizer.visible(pad))


def _of_chat(tokenizer: Tokens, chat: _Chat) -> Iterator[str]:
    if chat.unlike:
        yield words.two_templates(chat.file, chat.unlike)
    bos = tokenizer.role("bos")[1]
    if bos is not None and chat.begins == (bos, bos):
        yield words.doubled(tokenizer.visible(bos))


import_ahead("inspector.models.vocabulary.labels")
