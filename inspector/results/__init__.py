"""What the analyses answer: frozen, plain values and data frames, never tensors.

Field names are those of the command line's JSON, which is `to_json(result)`. Token text is always
the visible form (a space is shown as "␣" at the front of a piece where the tokenizer marks it).
"""

from inspector.results.checkpoint import HEADS, Opened, Overview, OverviewFile, TokenizerInfo
from inspector.results.checks import (
    SEVERITIES,
    STATUSES,
    Baseline,
    Change,
    Check,
    Checks,
    Evidence,
)
from inspector.results.classes import (
    AncestorClass,
    ExampleOutput,
    ModelClasses,
    ModuleRow,
    OutputField,
    SiblingClass,
    TreeLine,
    UsedClass,
)
from inspector.results.comparison import Alignment, Comparison, TieChange, VocabularyMatch
from inspector.results.embeddings import KINDS, Embeddings, Norms, Projection
from inspector.results.heads import HeadAnswer, Pretraining, Tokenization
from inspector.results.health import EqualRows, Finding, Health, Indicator
from inspector.results.lens import Climb, Lens
from inspector.results.padding import Padding, PaddingGradient, PaddingRow
from inspector.results.placement import Place, Placement
from inspector.results.plain import local, to_json
from inspector.results.plausibility import Contrast, Plausibility
from inspector.results.prediction import Joint, Mask, Prediction
from inspector.results.sharing import (
    FILE_RELATIONS,
    ReusedModule,
    SharedGroup,
    SharedMember,
    Sharing,
)
from inspector.results.training import (
    DecayExample,
    ParameterGroup,
    SharedParameter,
    TrainingPlan,
)
from inspector.results.vitals import Vitals

__all__ = [
    "FILE_RELATIONS",
    "HEADS",
    "KINDS",
    "SEVERITIES",
    "STATUSES",
    "Alignment",
    "AncestorClass",
    "Baseline",
    "Change",
    "Check",
    "Checks",
    "Climb",
    "Comparison",
    "Contrast",
    "DecayExample",
    "Embeddings",
    "EqualRows",
    "Evidence",
    "ExampleOutput",
    "Finding",
    "HeadAnswer",
    "Health",
    "Indicator",
    "Joint",
    "Lens",
    "Mask",
    "ModelClasses",
    "ModuleRow",
    "Norms",
    "Opened",
    "OutputField",
    "Overview",
    "OverviewFile",
    "Padding",
    "PaddingGradient",
    "PaddingRow",
    "ParameterGroup",
    "Place",
    "Placement",
    "Plausibility",
    "Prediction",
    "Pretraining",
    "Projection",
    "ReusedModule",
    "SharedGroup",
    "SharedMember",
    "SharedParameter",
    "Sharing",
    "SiblingClass",
    "TieChange",
    "Tokenization",
    "TokenizerInfo",
    "TrainingPlan",
    "TreeLine",
    "UsedClass",
    "Vitals",
    "VocabularyMatch",
    "local",
    "to_json",
]
