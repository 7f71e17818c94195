"""Read a chat template without trusting it: rendered on fixed conversations, in Jinja's sandbox, for a limited time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from inspector.models.vocabulary.distrust import TEMPLATE as TIMER
from inspector.models.vocabulary.distrust import timed
from inspector.models.vocabulary.tokenizer_files import read_settings
from inspector.store.manifests.manifest import Manifest
from inspector.store.names import TEMPLATE

SECONDS = 2.0  # of processor time, for all conversations; real templates take milliseconds
MOST = 200_000  # characters that one conversation may become
ANSWER = "It is forty-two."
QUESTION = {"role": "user", "content": "What is six times seven?"}
ANSWERED = {"role": "assistant", "content": ANSWER}
CONVERSATIONS = (
    (QUESTION, ANSWERED),
    ({"role": "system", "content": "You are brief."}, QUESTION, ANSWERED),
    (QUESTION, {"role": "assistant", "content": "I think so."}, QUESTION, ANSWERED),
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a template makes of the conversations that it takes."""

    texts: tuple[str, ...]  # whole conversations, each ending with an answer
    ends: tuple[str, ...]  # of each, what follows the answer
    problem: str  # "" if any was taken: else why none was


def find_templates(manifest: Manifest) -> dict[str, str]:
    """The chat templates of a checkpoint: file -> text; the first is the one that transformers uses.

    A file of its own goes before the setting (`PreTrainedTokenizerBase.from_pretrained`), and of several in the
    setting the one called "default" counts.
    """
    found = {}
    if (manifest.folder / TEMPLATE).exists():
        found[manifest.says_all or TEMPLATE] = (manifest.folder / TEMPLATE).read_text("utf-8")
    said = read_settings(manifest).get("chat_template")
    if isinstance(said, list):
        named = {each["name"]: each["template"] for each in said}
        said = named.get("default", next(iter(named.values()), None))
    if isinstance(said, str):
        found["tokenizer_config.json"] = said
    return found


def render(template: str, special: Mapping[str, Any]) -> Rendered:
    """Render a template on the fixed conversations.

    Args:
        template: Of a stranger.
        special: The tokens that transformers gives a template, e.g. "eos_token".

    Returns:
        What became of those conversations that it took: some take no system message.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    texts, problem = [], ""
    with timed(*TIMER), _limited(SECONDS):
        for each in CONVERSATIONS:
            try:
                ((text,), _) = render_jinja_template([list(each)], chat_template=template, **special)
            except _TooLongError:
                problem = f"it does not end within {SECONDS:g} seconds"
                break
            except MemoryError:
                raise
            except Exception as error:  # of many kinds: filters of Jinja's raise what Python does
                problem = problem or f"Jinja refuses it ({_first_line(error)})"
            else:
                if len(text) > MOST:
                    problem = f"it makes {len(text):,} characters of a short conversation"
                elif ANSWER not in text:
                    problem = problem or "it leaves the answer out"
                else:
                    texts.append(text)
    return Rendered(tuple(texts), tuple(text.rpartition(ANSWER)[2] for text in texts), "" if texts else problem)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:120]


class _TooLongError(BaseException):
    """A template went on for too long; Jinja, which catches what its filters raise, lets this through."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `_TooLongError` in whatever Python runs in this thread once it has used so much processor time."""
    until = time.thread_time() + seconds

    def watch(frame: FrameType, event: str, arg: Any) -> Any:
        if time.thread_time() > until:
            raise _TooLongError
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(before)
