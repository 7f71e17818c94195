"""Read what every file says of where a text ends, and what of it disagrees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from inspector.catalog import libraries
from inspector.models.checkpoint import StagedCheckpoint
from inspector.models.tokens import Tokens
from inspector.models.vocabulary.library import SPECIAL_ROLES
from inspector.models.vocabulary.tokenizer_files import read_file
from inspector.progress import Progress
from inspector.store.names import GENERATION
from inspector.store.readers.levels import read_setting
from inspector.text import quoted

CONFIG, SETTINGS, NAMED, ADDED, WHOLE = (
    "config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.json",
)  # fmt: skip
IDS = ("bos", "eos", "pad")  # roles of which configurations give ids
NAMED_ONES = 3  # of many tokens with one fault
# Problems, in a few words.
GOES_ON, TWICE, TWO_IDS, TWO_TOKENS = "does not stop generate()", "added twice", "two ids", "two tokens"
TWO_TEMPLATES, PADDING_ENDS = "two chat templates", "padding ends a text"
SAYS_NOTHING = (
    "generation_config.json names no eos_token_id, and where that file is, generate() does not read the one of "
    "config.json: it stops at no token."
)


@dataclass(frozen=True, slots=True)
class Files:
    """What the files say, role by role and token by token."""

    ids: Mapping[str, Mapping[str, tuple[int, ...]]]  # role -> file -> its ids
    roles: Mapping[str, Mapping[str, str]]  # role -> file -> its token
    numbers: Mapping[str, Mapping[str, int]]  # token -> file -> its id
    tokens: Mapping[str, frozenset[str]]  # file -> tokens that it names
    generates: bool  # there is a generation_config.json, which transformers saves with what generates


@dataclass(frozen=True, slots=True)
class Chat:
    """What the chat template says."""

    file: str = ""
    text: str = ""  # the template, and what it makes of the conversations
    turn_end: int | None = None
    problem: str = ""
    begins: tuple[int, ...] = ()  # ids that a rendered conversation begins with, once the tokenizer has added its own
    unlike: str = ""  # the other file, whose template differs


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a text ends, by the files and by the chat template."""

    said: Files
    chat: Chat
    stops_by: str  # the file whose ids generate() stops at; "" where none has any
    eos_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two files, or two settings, that do not go together."""

    subject: str  # what it concerns: a token, a file, a setting
    problem: str  # a few words, the same ones for the same thing
    detail: str  # one sentence
    harmless: bool = False  # to generate(), which reads the right one


def read_ends(checkpoint: StagedCheckpoint, *, progress: Progress) -> Ends:
    """Read the files of a checkpoint with a tokenizer, and render its chat template; no numbers are read.

    The template is rendered in Jinja's sandbox on three fixed conversations; what follows the answer is tokenized, and
    the first special token of it ends a turn. generate() stops at the ids of generation_config.json, or of config.json
    where that file is missing (transformers, `GenerationMixin.adjust_generation_fn`).

    Raises:
        NotInCheckpointError: If the checkpoint brings no tokenizer.
    """
    tokenizer = checkpoint.require_tokens()
    said = _read_files(checkpoint, tokenizer)
    progress(None, "Reading the chat template")
    with libraries():
        chat = _read_chat(checkpoint, tokenizer)
    ids = {file: ids for file, ids in said.ids["eos"].items() if file == GENERATION or not said.generates}
    stops_by = next(iter(ids), "")
    return Ends(said, chat, stops_by, ids.get(stops_by, ()))


def faults(tokenizer: Tokens, ends: Ends) -> Iterator[Disagreement]:
    """What does not go together, in the order of what it costs."""
    yield from _of_ends(tokenizer, ends)
    yield from _of_chat(tokenizer, ends.chat)
    yield from _of_files(ends.said)


def _read_files(checkpoint: StagedCheckpoint, tokenizer: Tokens) -> Files:
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
    return Files(ids, roles, numbers, files, generates=(manifest.folder / GENERATION).exists())


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


def _read_chat(checkpoint: StagedCheckpoint, tokenizer: Tokens) -> Chat:
    """Render the chat template, if there is one."""
    from inspector.models.vocabulary.templates import find_templates, render

    templates = find_templates(checkpoint.manifest)
    if not templates:
        return Chat()
    file, template = next(iter(templates.items()))
    unlike = next((name for name, text in templates.items() if text != template), "")
    special = {f"{role}_token": text for role in SPECIAL_ROLES if (text := tokenizer.role(role)[0]) is not None}
    rendered = render(template, special)
    if rendered.problem:
        return Chat(file, template, problem=rendered.problem, unlike=unlike)
    ends = {_first_special(tokenizer, end) for end in rendered.ends}
    return Chat(
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


def _of_files(said: Files) -> Iterator[Disagreement]:
    """Two files that say two things of one setting or one token."""
    for role, known in said.ids.items():
        if len({frozenset(ids) for ids in known.values()}) > 1:
            setting = f"{role}_token_id"
            detail = (
                f"{setting} is {_listed(known[GENERATION])} in {GENERATION}, and {_listed(known[CONFIG])} in {CONFIG}."
            )
            yield Disagreement(setting, TWO_IDS, detail, harmless=True)
    for role, files in said.roles.items():
        if len({*files.values()}) > 1:
            setting = f"{role}_token"
            detail = f"{setting} is {files[SETTINGS]} in {SETTINGS}, and {files[NAMED]} in {NAMED}."
            yield Disagreement(setting, TWO_TOKENS, detail)
    moved = [(token, places) for token, places in said.numbers.items() if len({*places.values()}) > 1]
    for token, places in moved[:NAMED_ONES]:
        ids = ", and ".join(f"id {number} in {file}" for file, number in places.items())
        yield Disagreement(token, TWO_IDS, f"{quoted(token, 40)} has {ids}.")


def _of_ends(tokenizer: Tokens, ends: Ends) -> Iterator[Disagreement]:
    """The tokenizer's end of a text, and its padding, against where generate() stops."""
    stops, stops_by = {*ends.eos_ids}, ends.stops_by
    eos, pad = tokenizer.role("eos")[1], tokenizer.role("pad")[1]
    if ends.said.generates and not stops and ends.said.ids["eos"]:
        yield Disagreement(GENERATION, GOES_ON, SAYS_NOTHING)
    if stops and eos is not None and eos not in stops:
        token = tokenizer.visible(eos)
        never = not (ends.said.generates or ends.chat.file)  # as of CLIP's text encoder
        detail = (
            f"The tokenizer's eos_token is {token} (id {eos}), which is not among the ids that {stops_by} stops at."
        )
        yield Disagreement(token, GOES_ON, detail, harmless=never)
    if pad is not None and pad in {*stops, eos}:
        token = tokenizer.visible(pad)
        detail = (
            f"{token} is the padding token and ends a text, too: find padding by the attention mask, not by its id."
        )
        yield Disagreement(token, PADDING_ENDS, detail, harmless=True)


def _of_chat(tokenizer: Tokens, chat: Chat) -> Iterator[Disagreement]:
    if chat.unlike:
        detail = f"{chat.file} and {chat.unlike} hold different chat templates: transformers uses {chat.file}."
        yield Disagreement(chat.unlike, TWO_TEMPLATES, detail)
    bos = tokenizer.role("bos")[1]
    if bos is not None and chat.begins == (bos, bos):
        token = tokenizer.visible(bos)
        detail = (
            f"The chat template begins with {token}, and the tokenizer adds another one: tokenize a rendered "
            "conversation with add_special_tokens=False."
        )
        yield Disagreement(token, TWICE, detail)


def _listed(ids: Iterable[int]) -> str:
    """Ids, one after the other."""
    known = [str(each) for each in ids]
    return f"id {known[0]}" if len(known) == 1 else f"the ids {', '.join(known)}"


def turn_goes_on(token: str, token_id: int, file: str) -> str:
    """The chat template's end of an answer is not where generate() stops."""
    where = f"not among the ids that {file} stops at" if file else "not enough: no file names an id that ends a text"
    return f"The chat template ends an answer with {token} (id {token_id}), which is {where}."
