"""A closed queue: people who think, ask, wait and read, in front of workers.

Each person thinks for a time (exponential), asks one question, and waits for its answer. Questions
wait in one line. A free worker takes the first; where that can be answered together with others of
its kind, it takes all of those that wait, at most MAX_BATCH. This is the machine-repairman queue
M/G/c//N with batches; without batches and with exponential times it has an exact solution
(Kleinrock, Queueing Systems I, 1975, section 3.8), against which the tests hold the simulation.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inspector.serving.engine.waiting import MAX_BATCH

WARM_SHARE = 0.2  # of the time, at its start, that is not counted
MOST_PEOPLE = 20_000  # that are tried


@dataclass(frozen=True, slots=True)
class Service:
    """What one kind of question costs a worker."""

    share: float  # of all questions, 0..1
    alone: tuple[float, ...]  # seconds of questions that were answered alone, as measured
    more: float | None = None  # seconds that one more in a batch adds; None: answered one by one


@dataclass(frozen=True, slots=True)
class Served:
    """How people are served in the long run."""

    seconds: np.ndarray  # float64 (answers,): from question to answer
    late: np.ndarray  # float64 (answers,): of these, more than the same question takes alone
    per_second: float  # answers
    busy: float  # share of the workers' time, 0..1

    def percentile(self, share: float) -> float:
        """Seconds that this share of the answers took at most; 0 without any answer."""
        return float(np.quantile(self.seconds, share)) if len(self.seconds) else 0.0

    def lateness(self, share: float) -> float:
        """Seconds that this share of the answers came late at most; 0 without any answer."""
        return float(np.quantile(self.late, share)) if len(self.late) else 0.0


def simulate(
    services: Mapping[str, Service], *, people: int, workers: int, think: float, seconds: float, seed: int = 0
) -> Served:
    """Let people ask for a while.

    Args:
        services: By kind of question; their shares sum to 1.
        people: Who ask.
        workers: Who answer, from one line.
        think: Mean seconds between an answer and the next question.
        seconds: How long it lasts, in the model's time.
        seed: Of the random times.
    """
    random = np.random.default_rng(seed)
    kinds = list(services)
    shares = np.cumsum([service.share for service in services.values()])
    line: deque[tuple[float, str]] = deque()
    # What happens next: a person asks (None), or a worker has done these questions.
    events: list[tuple[float, int, tuple[list[float], float] | None]] = [
        (when, number, None) for number, when in enumerate(random.exponential(think, people))
    ]
    heapq.heapify(events)
    counted, free, count, busy = WARM_SHARE * seconds, workers, people, 0.0
    taken: list[float] = []
    late: list[float] = []
    while events and events[0][0] < seconds:
        now, _, done = heapq.heappop(events)
        if done is None:
            line.append((now, kinds[int(np.searchsorted(shares, random.random() * shares[-1], "right"))]))
        else:
            free += 1
            for asked in done[0]:
                heapq.heappush(events, (now + random.exponential(think), count, None))
                count += 1
                if now >= counted:
                    taken.append(now - asked)
                    late.append(now - asked - done[1])
        while free and line:
            batch, alone, lasts = _take(line, services, random)
            heapq.heappush(events, (now + lasts, count, (batch, alone)))
            free, count = free - 1, count + 1
            busy += max(0.0, min(now + lasts, seconds) - max(now, counted))
    span = seconds - counted
    return Served(np.array(taken), np.array(late), len(taken) / span, busy / (span * workers))


def pooled(runs: Sequence[Served]) -> Served:
    """Several runs of the same length as one."""
    return Served(
        np.concatenate([run.seconds for run in runs]),
        np.concatenate([run.late for run in runs]),
        float(np.mean([run.per_second for run in runs])),
        float(np.mean([run.busy for run in runs])),
    )


def workers_needed(services: Mapping[str, Service], *, people: int, think: float, goal: float, seconds: float) -> int:
    """The fewest workers with which 95 % of the answers come at most `goal` seconds late.

    Late is what an answer takes longer than the same question asked by somebody alone.
    """

    def served(workers: int) -> bool:
        found = simulate(services, people=people, workers=workers, think=think, seconds=seconds)
        return found.lateness(0.95) <= goal

    high = 1
    while not served(high):  # ends at a worker for each
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if served(middle) else (middle, high)
    return high


def people_served(services: Mapping[str, Service], *, workers: int, think: float, goal: float, seconds: float) -> int:
    """The most people who get 95 % of their answers at most `goal` seconds late.

    Returns:
        MOST_PEOPLE: these do, and more were not tried.
    """

    def served(people: int) -> bool:
        found = simulate(services, people=people, workers=workers, think=think, seconds=seconds)
        return found.lateness(0.95) <= goal

    low, high = 1, 2  # somebody alone is never late
    while served(high):
        if high == MOST_PEOPLE:
            return high
        low, high = high, min(2 * high, MOST_PEOPLE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if served(middle) else (low, middle)
    return low


def _take(
    line: deque[tuple[float, str]], services: Mapping[str, Service], random: np.random.Generator
) -> tuple[list[float], float, float]:
    """Take the first question and its company.

    Returns:
        When they were asked, the seconds that the first takes alone, and that all take together.
    """
    asked, kind = line.popleft()
    service = services[kind]
    alone = service.alone[random.integers(len(service.alone))]
    if service.more is None:
        return [asked], alone, alone
    company = [each for each in line if each[1] == kind][: MAX_BATCH - 1]
    for each in company:
        line.remove(each)
    together = alone + service.more * len(company)
    return [asked, *(when for when, _ in company)], alone, together
