"""What the analyses answer: frozen, plain values and data frames, never tensors.

Field names are those of the command line's JSON, which is `to_json(result)`. Token text is always
the visible form (a space is shown as "␣" at the front of a piece where the tokenizer marks it).
"""

from inspector.results.checkpoint import HEADS, Opened, Overview, OverviewFile, TokenizerInfo
from inspector.results.embeddings import KINDS, Embeddings, Norms, Projection
from inspector.results.lens import Lens
from inspector.results.plain import local, to_json
from inspector.results.prediction import Joint, Mask, Prediction
from inspector.results.sharing import ReusedModule, SharedGroup, Sharing

__all__ = [
    "HEADS",
    "KINDS",
    "Embeddings",
    "Joint",
    "Lens",
    "Mask",
    "Norms",
    "Opened",
    "Overview",
    "OverviewFile",
    "Prediction",
    "Projection",
    "ReusedModule",
    "SharedGroup",
    "Sharing",
    "TokenizerInfo",
    "local",
    "to_json",
]
