"""Filling masks: one request, and 32 people at once, beside transformers' fill-mask pipeline.

Random checkpoints of BERT-base's and MiniLM's size with a tokenizer of 30,522 entries, sentences of
12 tokens, no sentence twice. One request: the pipeline, our `predict` in the same process, and the
whole way through the engine (another process, a pipe), in turn. 32 people: a thread each, let go at
once, against the pipeline that the threads share and against our engine. Times are medians on the
clock, and means on the processor, the worker's included, which other work on the machine disturbs
less. Every answer of ours is compared with the pipeline's, asked one by one: the same tokens, the
same probabilities. The engine's worker lets its threads spin for a moment only, and so does this
process.
"""

from __future__ import annotations

import os

os.environ.setdefault("GOMP_SPINCOUNT", "20000")  # before torch reads it

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from inspector.analyses.masked_lm.compute import predict
from inspector.analyses.masked_lm.result import Prediction
from inspector.models.checkpoint import StagedCheckpoint
from inspector.serving.engine.local import LocalEngine
from inspector.settings import Device, Settings, read_settings
from inspector.store.manifests.manifest import Manifest
from inspector.store.opening import open_checkpoint
from inspector.store.reference import CheckpointRef

SIZES: dict[str, dict[str, Any]] = {
    "BERT-base": {},
    "MiniLM": {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536},
}
ENTRIES, WORDS, K = 30_522, 9, 5  # 12 tokens with the mask, [CLS] and [SEP]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
REQUESTS, PEOPLE, ROUNDS = 9, 32, 3

Answer = list[tuple[int, float]]  # token ids and probabilities, most likely first
Ask = Callable[[str], Answer]


@dataclass
class TimedWay:
    """One way to ask, and how long it took."""

    ask: Ask
    processor: Callable[[], float]  # seconds used so far by all processes that it takes
    wall_seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    found: dict[str, Answer] = field(default_factory=dict)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time what is done inside."""
        begin, used = time.perf_counter(), self.processor()
        yield
        self.wall_seconds.append(time.perf_counter() - begin)
        self.processor_seconds.append(self.processor() - used)

    def take(self) -> tuple[float, float, dict[str, Answer]]:
        """Median on the clock, mean on the processor, and the answers; begin anew."""
        taken = statistics.median(self.wall_seconds), statistics.mean(self.processor_seconds)
        found, self.found = self.found, {}
        self.wall_seconds.clear()
        self.processor_seconds.clear()
        return *taken, found


def build(folder: Path, size: dict[str, Any]) -> None:
    """Save a random checkpoint with a masked-LM head."""
    torch.manual_seed(0)
    model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=ENTRIES, **size))
    with torch.no_grad():  # rows as long as a trained model's, or every token is as likely
        model.bert.embeddings.word_embeddings.weight.mul_(4)
    model.save_pretrained(folder)
    vocabulary = [*SPECIAL, *(f"w{number}" for number in range(ENTRIES - len(SPECIAL)))]
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    roles = {f"{token[1:-1].lower()}_token": token for token in SPECIAL}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)
    fast.save_pretrained(folder)


def sentences(seed: int) -> Iterator[str]:
    """Different sentences with one mask, for ever."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        numbers = torch.randint(0, ENTRIES - len(SPECIAL), (WORDS,), generator=generator).tolist()
        words = [f"w{number}" for number in numbers]
        words.insert(numbers[0] % (WORDS + 1), "[MASK]")
        yield " ".join(words)


def opened(folder: Path, settings: Settings) -> Manifest:
    """Stage the checkpoint as the app does."""
    manifest, _ = open_checkpoint(
        CheckpointRef("path", str(folder)), settings=settings, progress=lambda *_: None, restrict_paths=False
    )
    return manifest


def answer(prediction: Prediction) -> Answer:
    """The one mask's tokens."""
    found = prediction.masks[0].predictions
    return list(zip(found["token_id"].tolist(), found["probability"].tolist(), strict=True))


@contextmanager
def ways(folder: Path, home: Path, device: Device = "cpu") -> Iterator[tuple[dict[str, TimedWay], list[Prediction]]]:
    """The ways to ask, all warm, and what came through the engine."""
    settings = read_settings({"INSPECTOR_HOME": str(home)})
    manifest = opened(folder, settings)
    checkpoint = StagedCheckpoint(manifest, settings=settings)
    pipeline = transformers.pipeline("fill-mask", str(folder), device=device)
    engine = LocalEngine(settings, restrict_paths=False, spare=False)
    received: list[Prediction] = []

    def by_pipeline(text: str) -> Answer:
        return [(each["token"], each["score"]) for each in pipeline(text, top_k=K)]

    def by_predict(text: str) -> Answer:
        return answer(predict(checkpoint, progress=lambda *_: None, text=text, k=K, device=device))

    def by_engine(text: str) -> Answer:
        job = engine.run(manifest.fingerprint, "predict", text=text, k=K, device=device)
        received.append(job.result())
        return answer(received[-1])

    def processor_with_worker() -> float:
        (worker,) = engine.workers()
        times = psutil.Process(worker.pid).cpu_times()
        return time.process_time() + times.user + times.system

    try:
        texts = sentences(0)
        for ask in (by_pipeline, by_predict, by_engine) * 2:
            ask(next(texts))
        received.clear()
        yield (
            {
                "pipeline": TimedWay(by_pipeline, time.process_time),
                "predict": TimedWay(by_predict, time.process_time),
                "engine": TimedWay(by_engine, processor_with_worker),
            },
            received,
        )
    finally:
        engine.close()


def measure_one(way: TimedWay, texts: Iterator[str]) -> None:
    """Time one request."""
    text = next(texts)
    with way.timed():
        way.found[text] = way.ask(text)


def measure_many(way: TimedWay, texts: Iterator[str]) -> None:
    """Time from letting a thread for each person go until all have their answers."""
    gate = threading.Barrier(PEOPLE + 1)

    def person(text: str) -> None:
        gate.wait()
        way.found[text] = way.ask(text)

    threads = [threading.Thread(target=person, args=(next(texts),)) for _ in range(PEOPLE)]
    for thread in threads:
        thread.start()
    with way.timed():
        gate.wait()
        for thread in threads:
            thread.join()


def compare(found: dict[str, Answer], oracle: Ask) -> None:
    """Stop unless every text has the oracle's answer."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # quicker on a busy machine, and nothing is timed here
    for text, given in found.items():
        wanted = oracle(text)
        if [index for index, _ in given] != [index for index, _ in wanted]:
            raise SystemExit(f"Other tokens for {text!r}: {given}, {wanted}")
        scores = (torch.tensor([score for _, score in each]) for each in (given, wanted))
        torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-5)
    torch.set_num_threads(threads)


def print_rows(title: str, ways: dict[str, TimedWay]) -> None:
    """Print each way's times, and how many times as fast as the pipeline it is."""
    base: tuple[float, float] | None = None
    oracle = ways["pipeline"].ask
    for name, way in ways.items():
        *taken, found = way.take()
        base = base or (taken[0], taken[1])
        if way.ask is not oracle:
            compare(found, oracle)
        cells = "".join(f"{1000 * each:14.1f}{one / each:7.2f}" for one, each in zip(base, taken, strict=True))
        print(f"{title:26}{name:12}{cells}", flush=True)


def main(device: Device = "cpu") -> None:
    """Print the table of one device."""
    transformers.utils.logging.disable_progress_bar()
    load = os.getloadavg()[0]
    print(f"\n{os.cpu_count()} processors, load {load:.1f} at start; milliseconds")
    print(f"{'':26}{'way':12}{'clock':>14}{'ratio':>7}{'processor':>14}{'ratio':>7}")
    for name, size in SIZES.items():
        with tempfile.TemporaryDirectory() as scratch:
            folder, home = Path(scratch, "model"), Path(scratch, "home")
            build(folder, size)
            texts = sentences(1)
            with ways(folder, home, device) as (found, received):
                for way in [*found.values()] * REQUESTS:
                    measure_one(way, texts)
                print_rows(f"{name}, one request", found)
                received.clear()
                del found["predict"]  # one process answers one at a time
                for way in [*found.values()] * ROUNDS:
                    measure_many(way, texts)
                batches = sum(1 / prediction.batch for prediction in received)
                largest = max(prediction.batch for prediction in received)
                print_rows(f"{name}, {PEOPLE} at once", found)
                print(f"{'':26}{len(received)} requests in {batches:.0f} batches, the largest of {largest}")


if __name__ == "__main__":
    main()
