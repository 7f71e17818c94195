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
            examples=(
                "he was elected president of the United",
                "genus Salix: willows and",
                "family Rosaceae is a",
            ),
        ),
    )
}
