"""Sessions that ask an engine: what a question costs alone, in company, and in a crowd.

No browser stands between: what is measured is the engine and its workers. Every question is new to
the engine, so that nothing is answered from memory, and every answer is compared with the one that
a lone session got to the same text.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from inspector.analyses.lens.result import Lens
from inspector.analyses.masked_lm.result import Prediction
from inspector.errors import InspectorError
from inspector.plotting.frames import where
from inspector.serving.engine.protocol import Engine
from tools.load.queueing import WARM_SHARE, Service

SHARES = {"predict": 0.8, "lens": 0.2}  # of the questions: typing asks more often than reading
TEXTS = 48
BEST = 3  # tokens of an answer that are compared
ALONE = 12  # questions of a kind that are timed alone
COMPANY = (8, 24)  # others beside the first, in the batches that are timed
ROUNDS = 3
CLOSE = 1e-3  # of a probability, relative: other passes round otherwise
PATIENCE_SECONDS = 300.0

Told = list[tuple[int, float]]  # token ids and probabilities, most likely first


@dataclass(frozen=True, slots=True)
class LoadQuestion:
    """One question, unlike every other."""

    verb: str
    text: int  # its number
    k: int  # tokens that are asked for: what makes it new


@dataclass
class Crowd:
    """What the sessions saw."""

    people: int
    # From question to answer, of those that came once the crowd had settled and before the end.
    seconds: list[float] = field(default_factory=list)
    answers: int = 0  # of all, each compared
    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    lasted: float = 0.0  # seconds between settling and the end

    def percentile(self, share: float) -> float:
        """Seconds that this share of the answers took at most."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.lasted


class Asker:
    """Asks one checkpoint, and knows what the right answers are.

    Args:
        engine: Any.
        fingerprint: Of an opened checkpoint with a masked-LM head.
        mask: Its mask token.
        words: Tokens of its vocabulary, to make texts of.
        texts: How many.
    """

    def __init__(self, engine: Engine, fingerprint: str, *, mask: str, words: list[str], texts: int = TEXTS) -> None:
        self._engine, self._fingerprint, self._mask = engine, fingerprint, mask
        chosen = random.Random(0)
        self._texts = [" ".join([*chosen.choices(words, k=4), mask, *chosen.choices(words, k=4)]) for _ in range(texts)]
        self._fresh = {verb: itertools.count() for verb in SHARES}
        self.right: dict[tuple[str, int], Told] = {}  # by verb and number of the text

    def learn(self) -> None:
        """Ask everything once, one question after the other."""
        for verb, text in itertools.product(SHARES, range(len(self._texts))):
            self.right[verb, text] = self._ask(LoadQuestion(verb, text, BEST))

    def question(self, verb: str) -> LoadQuestion:
        """A question that was never asked before."""
        number = next(self._fresh[verb])
        return LoadQuestion(verb, number % len(self._texts), BEST + 1 + number // len(self._texts))

    def timed(self, question: LoadQuestion) -> tuple[float, str]:
        """Ask; seconds to the answer, and how it differs from the right one ("" if it does not)."""
        begin = time.perf_counter()
        told = self._ask(question)
        seconds = time.perf_counter() - begin
        right = self.right[question.verb, question.text]
        same = all(
            token == wanted and math.isclose(share, chance, rel_tol=CLOSE, abs_tol=1e-6)
            for (token, share), (wanted, chance) in zip(told, right, strict=True)
        )
        return seconds, "" if same else f"{question}: {told}, and alone {right}"

    def services(self) -> dict[str, Service]:
        """What each kind of question costs, measured alone and in company."""
        found = {}
        for verb, share in SHARES.items():
            alone = tuple(self.timed(self.question(verb))[0] for _ in range(ALONE))
            more = self._more(verb, statistics.median(alone)) if verb == "predict" else None
            found[verb] = Service(share, alone, more)
        return found

    def crowd(self, people: int, *, think: float, seconds: float) -> Crowd:
        """Let people think and ask for a while; they think for `think` seconds in the mean."""
        lead = WARM_SHARE * seconds  # nobody waits at first, as in the model
        seen = Crowd(people, lasted=seconds - lead)
        lock = threading.Lock()
        begin = time.perf_counter()
        end = begin + seconds

        def person(number: int) -> None:
            chance = random.Random(number)
            for verb in _kinds(chance):
                pause = chance.expovariate(1 / think)
                if time.perf_counter() + pause >= end:
                    return
                time.sleep(pause)
                try:
                    taken, wrong = self.timed(self.question(verb))
                except (InspectorError, TimeoutError) as error:
                    with lock:
                        seen.refused.append(str(error))
                    continue
                with lock:
                    seen.answers += 1
                    seen.seconds += [taken] if begin + lead <= time.perf_counter() < end else []
                    seen.wrong += [wrong] if wrong else []

        threads = [threading.Thread(target=person, args=(number,)) for number in range(people)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen

    def _more(self, verb: str, alone: float) -> float:
        """Seconds that one more in a batch adds: the slope over batches of several sizes."""
        found = []
        for others in COMPANY * ROUNDS:
            with ThreadPoolExecutor(others + 1) as people:
                begin = time.perf_counter()
                asked = [people.submit(self.timed, self.question(verb)) for _ in range(others + 1)]
                for each in asked:
                    each.result()
            # The first finds the worker idle and is answered alone, the others together.
            found.append((time.perf_counter() - begin - 2 * alone) / (others - 1))
        return max(0.0, statistics.median(found))

    def _ask(self, question: LoadQuestion) -> Told:
        job = self._engine.run(self._fingerprint, question.verb, text=self._texts[question.text], k=question.k)
        return TOLD[question.verb](job.result(PATIENCE_SECONDS), self._mask)


def _kinds(chance: random.Random) -> Iterator[str]:
    while True:
        yield chance.choices(list(SHARES), weights=list(SHARES.values()))[0]


def _predicted(result: Prediction, _: str) -> Told:
    best = result.masks[0].predictions.head(BEST)
    return list(zip(best["token_id"].tolist(), best["probability"].tolist(), strict=True))


def _read(result: Lens, mask: str) -> Told:
    """The last layer's best tokens at the mask, by the last rung."""
    cells = result.cells
    last = where(
        cells,
        (cells["rung"] == result.rungs[-1])
        & (cells["layer"] == cells["layer"].max())
        & (cells["position"] == result.tokens.index(mask))
        & (cells["rank"] < BEST),
    ).sort_values("rank")
    return list(zip(last["token_id"].tolist(), last["probability"].tolist(), strict=True))


TOLD: dict[str, Callable[[Any, str], Told]] = {"predict": _predicted, "lens": _read}
