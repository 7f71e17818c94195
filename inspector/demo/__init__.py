"""The demo checkpoints that come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DemoInfo:
    """A bundled checkpoint and texts that it answers sensibly."""

    name: str
    folder: Path
    description: str  # one line
    examples: tuple[str, ...]  # sentences with [MASK], or beginnings to go on from

    @property
    def training_log(self) -> Path:
        """A table by step: loss, pad_norm (where there is a padding row), median_norm."""
        return self.folder / "training_log.csv"


HERE = Path(__file__).parent

DEMOS: dict[str, DemoInfo] = {
    demo.name: demo
    for demo in (
        DemoInfo(
            name="demo-bert",
            folder=HERE / "demo-bert",
            description="A small BERT with MLM and NSP heads, tied, trained on WordNet's glosses.",
            examples=(
                "the capital and largest city of [MASK].",
                "the [MASK] of england.",
                "he drank a glass of [MASK].",
                "the second month of the [MASK].",
                "a chemical [MASK] that is found in water.",
                "a member of the [MASK] party.",
            ),
        ),
        DemoInfo(
            name="demo-gpt2",
            folder=HERE / "demo-gpt2",
            description="A small GPT-2, tied, trained on WordNet's glosses and examples.",
            examples=("he was elected president of the United", "genus Salix: willows and", "family Rosaceae is a"),
        ),
    )
}

PLAIN = "the capital and largest city of {}."  # for checkpoints that bring no example


def examples_of(reference: str, mask: str | None) -> tuple[str, ...]:
    """Texts for a checkpoint: a demo's own, or one with a mask in it where it has a mask token."""
    return DEMOS[reference].examples if reference in DEMOS else (PLAIN.format(mask or "France"),)


RUN_STEPS = (0, 10, 30, 100, 200, 300, 400, 600, 800, 1000)

# Run -> reference of each snapshot -> the snapshot, in the order of training.
RUNS: dict[str, dict[str, DemoInfo]] = {
    "demo-run": {
        f"demo-run-checkpoint-{step}": DemoInfo(
            name=f"demo-run-checkpoint-{step}",
            folder=HERE / "demo-run" / f"checkpoint-{step}",
            description=f"Step {step:,} of a small BERT's training, for the page Snapshots.",
            examples=("the [MASK] of a function.", "the name of the [MASK]."),
        )
        for step in RUN_STEPS
    }
}
SNAPSHOTS: dict[str, DemoInfo] = {name: demo for run in RUNS.values() for name, demo in run.items()}

ADAPTERS: dict[str, DemoInfo] = {
    "demo-gpt2-adapter": DemoInfo(
        name="demo-gpt2-adapter",
        folder=HERE / "demo-gpt2-adapter",
        description="A LoRA of demo-gpt2, trained on Python's help topics.",
        examples=(),
    )
}
BUNDLED = DEMOS | SNAPSHOTS | ADAPTERS
