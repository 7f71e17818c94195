"""How many users a worker serves, and how many workers many users need.

INSPECTOR_ENGINE=local python -m tools.load.capacity                a demo and a BERT-base's size
INSPECTOR_ENGINE=ray RAY_ADDRESS=... python -m tools.load.capacity --workers 2
python -m tools.load.capacity --device cuda --write docs/capacity.md      where there is a GPU

On a cluster, the replicas must be allowed to open the large checkpoint, which is created in the
folder for temporary files: deploy them with INSPECTOR_ROOTS=/tmp.

First it measures the cost of a question on one worker: alone, and in the batches that form when
many users ask. A queueing model (`tools.load.queueing`) then predicts what crowds get, and a ramp
of sessions on the same engine checks the prediction. Finally the model computes what crowds beyond
the reach of the ramp would need.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from inspector.serving.engine.choice import start_engine
from inspector.serving.engine.protocol import Engine
from inspector.settings import settings
from inspector.store.reference import CheckpointRef
from tools.bench.masked_lm import build
from tools.load.asking import TEXTS, Asker, Crowd
from tools.load.queueing import MOST_PEOPLE, Served, Service, people_served, pooled, simulate, workers_needed

DEMO, BASE = "demo-bert", "BERT-base's size"
RAMP = (1, 5, 20, 50, 100, 200)
RAMP_THINK, RAMP_SECONDS = 4.0, 60.0
THINK, GOAL = 20.0, 1.0  # seconds between questions in a class; how late 95 % of the answers are
CLASSES = (50, 500, 5_000)
MODEL_SECONDS = 400.0
MODEL_RUNS = 40  # as long as a step of the ramp, which is too short to forget how it began
ABOUT = (
    "# How many users a worker serves\n\n`python -m tools.load.capacity --write docs/capacity.md`, once for each "
    "engine.\n\nEach simulated user waits for a while (exponentially distributed), asks about one checkpoint, waits "
    "for the answer and reads it. Four of five questions are masked predictions; one is a lens over all layers. Every "
    "question is new, so no answer comes from a cache. Every answer is compared with that of a single session "
    "(*wrong*). *Refused* counts questions that got an error instead. The *model* columns come from the queueing "
    "model (`tools/load/queueing.py`), given the cost of a question alone and in a batch. The other columns were "
    "measured. The first fifth of the time is left out, because nobody waits yet.\n"
)
RAMP_HEAD = (
    "| users | answers | a second | model | p50 s | model | p95 s | model | wrong | "
    "refused |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def main() -> int:
    """Measure, check and tell; the exit status is 0 where no answer was wrong or refused."""
    parser = argparse.ArgumentParser(prog="python -m tools.load.capacity")
    parser.add_argument("--people", nargs="*", type=int, default=RAMP)
    parser.add_argument("--seconds", type=float, default=RAMP_SECONDS, help="of each step")
    parser.add_argument("--workers", type=int, default=1, help="that answer for one checkpoint")
    parser.add_argument("--device", default="cpu", help="of the workers")
    parser.add_argument(
        "--gpus", type=float, help="that a worker takes; 0.25: four share one; 1 where the device is a GPU"
    )
    parser.add_argument("--write", type=Path, help="file for the tables")
    asked = parser.parse_args()
    gpus = asked.gpus if asked.gpus is not None else float(asked.device == "cuda")
    title = f"{settings().engine} engine, {asked.workers} worker{'s' * (asked.workers > 1)} "
    title += f"on {asked.device}"
    lines, bad = [machine()], False
    print(title, lines[0], sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        chosen = replace(settings(), device=asked.device)
        engine = start_engine(chosen, restrict_paths=False, spare=False)
        try:
            for name, reference in checkpoints(Path(scratch)).items():
                asker = open_asker(engine, reference)
                services = asker.services()
                told = [f"\n### {name}\n", costs(services), "", RAMP_HEAD]
                for people in asked.people:
                    crowd = asker.crowd(people, think=RAMP_THINK, seconds=asked.seconds)
                    model = pooled(
                        [
                            simulate(
                                services,
                                people=people,
                                workers=asked.workers,
                                think=RAMP_THINK,
                                seconds=asked.seconds,
                                seed=seed,
                            )
                            for seed in range(MODEL_RUNS)
                        ]
                    )
                    told.append(row(crowd, model))
                    print(told[-1], *crowd.wrong[:3], *crowd.refused[:3], sep="\n", flush=True)
                    bad |= bool(crowd.wrong or crowd.refused)
                told += ["", *needs(services, gpus)]
                print("\n".join(told), flush=True)
                lines += told
        finally:
            engine.close()
    if asked.write:
        before = asked.write.read_text(encoding="utf-8") if asked.write.exists() else ABOUT
        after = with_section(before, title, "\n".join(lines))
        asked.write.write_text(after, encoding="utf-8")
    return 1 if bad else 0


def machine() -> str:
    """What was measured on, and when."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{date.today().isoformat()}: {os.cpu_count()} processors, {memory:.0f} GB, load "
        f"{os.getloadavg()[0]:.1f} at start; the users run on the same machine."
    )


def with_section(page: str, title: str, text: str) -> str:
    """A page with this section in the place of the one that has its title, or at the end."""
    about, *sections = page.rstrip("\n").split("\n## ")
    kept = [each for each in sections if each.partition("\n")[0] != title]
    place = next((n for n, each in enumerate(sections) if each not in kept), len(kept))
    kept.insert(place, f"{title}\n\n{text}\n")
    return "\n## ".join([f"{about.rstrip()}\n", *(f"{each.rstrip()}\n" for each in kept)])


def checkpoints(folder: Path) -> dict[str, str]:
    """What is asked: a demo, and a random model as large as people bring."""
    build(folder / "base", {})
    return {DEMO: DEMO, BASE: f"path:{folder / 'base'}"}


def open_asker(engine: Engine, reference: str, *, texts: int = TEXTS) -> Asker:
    """Open a checkpoint, load its model and learn the right answers to some texts."""
    opened = engine.open(CheckpointRef.parse(reference)).result()
    overview = engine.run(opened.fingerprint, "overview").result()
    points = engine.run(opened.fingerprint, "project", method="pca").result().points
    words = points[points["kind"] == "word"]["token"].tolist()
    asker = Asker(engine, opened.fingerprint, mask=overview.tokenizer.mask_token, words=words, texts=texts)
    asker.learn()
    return asker


def costs(services: Mapping[str, Service]) -> str:
    """What a question costs, in words."""
    parts = []
    for verb, service in services.items():
        text = f"{verb} {1e3 * statistics.median(service.alone):.0f} ms alone"
        if service.more is not None:
            text += f", {1e3 * service.more:.1f} ms for one more in a batch"
        parts.append(text)
    return f"One worker: {'; '.join(parts)}."


def row(crowd: Crowd, model: Served) -> str:
    """One line of the ramp."""
    return (
        f"| {crowd.people} | {crowd.answers:,} | {crowd.per_second:.1f} | "
        f"{model.per_second:.1f} | {crowd.percentile(0.5):.3f} | {model.percentile(0.5):.3f} | "
        f"{crowd.percentile(0.95):.3f} | {model.percentile(0.95):.3f} | {len(crowd.wrong)} | "
        f"{len(crowd.refused)} |"
    )


def needs(services: Mapping[str, Service], gpus: float = 0.0, *, classes: Sequence[int] = CLASSES) -> list[str]:
    """What classes need, by the model; `gpus`: how much of one a worker takes."""
    terms = {"think": THINK, "goal": GOAL, "seconds": MODEL_SECONDS}
    lines = [
        f"By the model, if a user asks every {THINK:g} s and 95 % of the answers may take at most "
        f"{GOAL:g} s longer than for a lone user:",
        "",
        "| users on one checkpoint | workers | busy | GPUs |",
        "|---:|---:|---:|---:|",
    ]
    for people in classes:
        workers = workers_needed(services, people=people, **terms)
        found = simulate(services, people=people, workers=workers, think=THINK, seconds=MODEL_SECONDS)
        shared = math.floor(1 / gpus + 1e-9) if 0 < gpus < 1 else 1  # workers of one GPU
        cards = math.ceil(workers / shared) if gpus < 1 else round(workers * gpus)
        cards = cards if gpus else 0
        lines.append(f"| {people:,} | {workers:,} | {found.busy:.0%} | {cards:,} |")
    most = people_served(services, workers=1, **terms)
    more = " or more" * (most == MOST_PEOPLE)
    return [*lines, "", f"One worker serves {most:,} users{more}."]


if __name__ == "__main__":
    sys.exit(main())
