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

from inspector.engine.waiting import MAX_BATCH

WARM_SHARE = 0.2  # of the time, at its start, that is not counted
MOST_WORKERS, MOST_PEOPLE = 4_096, 20_000  # that are tried


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
    per_second: float  # answers
    busy: float  # share of the workers' time, 0..1

    def percentile(self, share: float) -> float:
        """Seconds that this share of the answers took at most; 0 without any answer."""
        return float(np.quantile(self.seconds, share)) if len(self.seconds) else 0.0


def simulate(
    services: Mapping[str, Service],
    *,
    people: int,
    workers: int,
    think: float,
    seconds: float,
    seed: int = 0,
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
    events: list[tuple[float, int, list[float] | None]] = [
        (when, number, None) for number, when in enumerate(random.exponential(think, people))
    ]
    heapq.heapify(events)
    counted, free, count, busy = WARM_SHARE * seconds, workers, people, 0.0
    taken: list[float] = []
    while events and events[0][0] < seconds:
        now, _, done = heapq.heappop(events)
        if done is None:
            line.append(
                (now, kinds[int(np.searchsorted(shares, random.random() * shares[-1], "right"))])
            )
        else:
            free += 1
            for asked in done:
                heapq.heappush(events, (now + random.exponential(think), count, None))
                count += 1
                if now >= counted:
                    taken.append(now - asked)
        while free and line:
            batch, lasts = _take(line, services, random)
            heapq.heappush(events, (now + lasts, count, batch))
            free, count = free - 1, count + 1
            busy += max(0.0, min(now + lasts, seconds) - max(now, counted))
    span = seconds - counted
    return Served(np.array(taken), len(taken) / span, busy / (span * workers))


def pooled(runs: Sequence[Served]) -> Served:
    """Several runs of the same length as one."""
    return Served(
        np.concatenate([run.seconds for run in runs]),
        float(np.mean([run.per_second for run in runs])),
        float(np.mean([run.busy for run in runs])),
    )


def workers_needed(
    services: Mapping[str, Service], *, people: int, think: float, goal: float, seconds: float
) -> int | None:
    """The fewest workers with which 95 % of the answers take at most `goal` seconds.

    Returns:
        None where no number of workers does: a question alone takes longer.
    """

    def served(workers: int) -> bool:
        found = simulate(services, people=people, workers=workers, think=think, seconds=seconds)
        return found.percentile(0.95) <= goal

    high = 1
    while not served(high):
        high *= 2
        if high > MOST_WORKERS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if served(middle) else (middle, high)
    return high


def people_served(
    services: Mapping[str, Service], *, workers: int, think: float, goal: float, seconds: float
) -> int:
    """The most people of whom 95 % of the answers take at most `goal` seconds.

    Returns:
        0: not even one is served; MOST_PEOPLE: these are, and more were not tried.
    """

    def served(people: int) -> bool:
        found = simulate(services, people=people, workers=workers, think=think, seconds=seconds)
        return found.percentile(0.95) <= goal

    low, high = 0, 1
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
) -> tuple[list[float], float]:
    """Take the first question and its company: when they were asked, and how long they take."""
    asked, kind = line.popleft()
    service = services[kind]
    lasts = service.alone[random.integers(len(service.alone))]
    if service.more is None:
        return [asked], lasts
    company = [each for each in line if each[1] == kind][: MAX_BATCH - 1]
    for each in company:
        line.remove(each)
    return [asked, *(when for when, _ in company)], lasts + service.more * len(company)
