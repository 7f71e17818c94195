"""The queue of the capacity page, against closed forms."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from tools.load.queueing import Service, people_served, pooled, simulate, workers_needed

EXPONENTIAL = tuple(np.random.default_rng(1).exponential(1.0, 20_000).tolist())
DRAWN = sum(EXPONENTIAL) / len(EXPONENTIAL)


def repairman(people: int, workers: int, *, think: float, service: float) -> tuple[float, float]:
    """Mean seconds to an answer and answers a second of M/M/c//N, from its balance equations."""
    weights = []
    for n in range(people + 1):
        ways = factorial(people) / factorial(people - n) * (service / think) ** n
        queue = factorial(n) if n <= workers else factorial(workers) * workers ** (n - workers)
        weights.append(ways / queue)
    chances = [weight / sum(weights) for weight in weights]
    rate = sum(p * min(n, workers) for n, p in enumerate(chances)) / service
    return sum(n * p for n, p in enumerate(chances)) / rate, rate


@pytest.mark.parametrize(("people", "workers", "think"), [(1, 1, 3.0), (5, 1, 4.0), (12, 3, 2.0), (20, 2, 15.0)])
def test_without_batches_it_is_the_machine_repairman_queue(people: int, workers: int, think: float) -> None:
    services = {"lens": Service(1.0, EXPONENTIAL)}
    found = simulate(services, people=people, workers=workers, think=think, seconds=40_000)
    mean, rate = repairman(people, workers, think=think, service=DRAWN)
    assert found.seconds.mean() == pytest.approx(mean, rel=0.04)
    assert found.per_second == pytest.approx(rate, rel=0.04)
    assert found.busy == pytest.approx(rate * DRAWN / workers, rel=0.04)


def test_littles_law_holds_whatever_the_mix() -> None:
    services = {"predict": Service(0.8, (0.02, 0.03), more=0.002), "lens": Service(0.2, (0.2, 0.4))}
    for people in (3, 30, 300):
        found = simulate(services, people=people, workers=2, think=5.0, seconds=2_000)
        assert found.per_second * (found.seconds.mean() + 5.0) == pytest.approx(people, rel=0.03)


def test_a_saturated_worker_answers_in_whole_batches() -> None:
    services = {"predict": Service(1.0, (1.0,), more=0.1)}
    found = simulate(services, people=500, workers=1, think=1e-3, seconds=1_000)
    assert found.per_second == pytest.approx(64 / (1.0 + 63 * 0.1), rel=0.02)
    assert found.busy == pytest.approx(1.0, abs=0.01)
    alone = simulate({"predict": Service(1.0, (1.0,))}, people=500, workers=1, think=1e-3,
                     seconds=1_000)  # fmt: skip
    assert alone.per_second == pytest.approx(1.0, rel=0.02)


def test_one_person_never_waits_for_company() -> None:
    services = {"predict": Service(1.0, (0.25,), more=0.1)}
    found = simulate(services, people=1, workers=3, think=1.0, seconds=1_000)
    assert np.ptp(found.seconds) < 1e-9
    assert found.percentile(0.95) == pytest.approx(0.25)


def test_the_fewest_workers_and_the_most_people_meet() -> None:
    services = {"lens": Service(1.0, EXPONENTIAL)}
    terms = {"think": 20.0, "goal": 5.0, "seconds": 1_500}
    workers = workers_needed(services, people=100, **terms)
    assert people_served(services, workers=workers, **terms) >= 100
    assert people_served(services, workers=workers - 1, **terms) < 100
    slow = {"lens": Service(1.0, (9.0,))}  # longer than the goal, which is about being late
    assert workers_needed(slow, people=1, **terms) == 1
    assert people_served(slow, workers=1, **terms) < 10
    at_once = {"lens": Service(1.0, (9.0,))}
    assert workers_needed(at_once, people=4, think=1e-6, goal=1.0, seconds=500) == 4


def test_late_is_what_an_answer_takes_longer_than_alone() -> None:
    services = {"lens": Service(1.0, (2.0,))}
    found = simulate(services, people=3, workers=1, think=1e-6, seconds=1_000)
    assert found.seconds == pytest.approx(6.0, abs=1e-3)  # two are always before oneself
    assert found.late == pytest.approx(4.0, abs=1e-3)
    assert found.lateness(0.95) == pytest.approx(4.0, abs=1e-3)
    together = {"predict": Service(1.0, (2.0,), more=0.5)}
    found = simulate(together, people=1, workers=1, think=1.0, seconds=1_000)
    assert found.late == pytest.approx(0.0)


def test_short_runs_together_are_a_long_one() -> None:
    services = {"lens": Service(1.0, EXPONENTIAL)}
    runs = [simulate(services, people=12, workers=3, think=2.0, seconds=400, seed=seed) for seed in range(100)]
    mean, rate = repairman(12, 3, think=2.0, service=DRAWN)
    found = pooled(runs)
    assert len(found.seconds) == sum(len(run.seconds) for run in runs)
    assert found.seconds.mean() == pytest.approx(mean, rel=0.04)
    assert found.per_second == pytest.approx(rate, rel=0.04)
    assert found.busy == pytest.approx(rate * DRAWN / 3, rel=0.04)
