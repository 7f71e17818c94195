"""Facts from the files of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspector.analyses.overview.result_gguf import GgufFacts
from inspector.analyses.overview.result_tensors import StoredTensors
from inspector.results.checkpoint import TokenizerInfo
from inspector.results.plain import local

if TYPE_CHECKING:  # half a second of the first paint, and of every worker's start
    import pandas as pd


@dataclass(frozen=True, slots=True)
class OverviewFile:
    """One file, as the overview lists it."""

    name: str
    format: str  # "safetensors", "pytorch", "json", "text", "sentencepiece"
    nbytes: int
    sha256: str | None = None  # of the whole file; None: not requested
    linked_from: str | None = None  # where a link of this name led; None: it is no link


@dataclass(frozen=True, slots=True)
class ListedTensor:
    """One stored tensor, as its header describes it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    parameters: int
    nbytes: int
    file: str
    tied_to: tuple[str, ...]  # names that share its bytes in the file or after loading, sorted
    name_in_file: str | None = None  # None: the same


@dataclass(frozen=True, slots=True)
class Overview:
    """Facts from the headers of a checkpoint; no model is built."""

    name: str
    fingerprint: str
    model_type: str | None  # None: there is no config.json
    architecture: str | None
    files: tuple[OverviewFile, ...]
    dtypes: dict[str, int]  # torch dtype name -> parameters stored in it
    listed_parameters: int  # every name counted, including tied ones
    unique_parameters: int  # every number counted once; quantized weights count as dequantized
    nbytes_on_disk: int
    nbytes_in_memory: int  # weights loaded as stored, tied ones counted once
    vocab_rows: int | None
    d_model: int | None
    layers: int | None
    heads: dict[str, str]  # head -> "present" or "absent", in HEADS order
    tokenizer: TokenizerInfo | None
    warnings: tuple[str, ...]
    stored: StoredTensors = local()
    config: dict[str, Any] = local()
    quantized: dict[str, int] = local()  # quantization scheme -> number of weights
    # Names of one tensor, the stored one first: listed or declared for it, or on its bytes
    ties: tuple[tuple[str, ...], ...] = local(default=())
    # What the fingerprint is made of: "content", every byte; "samples", of weights parts alone
    identity: str = "content"
    listed_tensors: tuple[ListedTensor, ...] | None = None  # None: not requested
    adapter: bool = False  # the weights are an adapter's, which `adapter` describes
    gguf: GgufFacts | None = None  # what GGUF files say of themselves; None: there are none
    text_to_text: str = local(default="")  # as in `heads`, of an encoder-decoder; empty: it is none
    experts: bool = local(default=False)  # config.json names a number of experts, which `experts` measures
    pipeline: tuple[str, ...] = ()  # what sentence-transformers runs one after another; none without modules.json

    @property
    def mask_token(self) -> str | None:
        """The tokenizer's mask token."""
        return self.tokenizer.mask_token if self.tokenizer else None

    @property
    def all_heads(self) -> dict[str, str]:
        """The heads, and that of an encoder-decoder's language model: head -> "present" or "absent"."""
        return {**({"text_to_text": self.text_to_text} if self.text_to_text else {}), **self.heads}

    @property
    def is_causal(self) -> bool:
        """Whether the model predicts the next token, and no masked one."""
        return self.heads["masked_lm"] != "present" and self.heads["causal_lm"] == "present"

    @property
    def tensors(self) -> pd.DataFrame:
        """The stored tensors: name, shape (text), dtype, parameters, nbytes, file."""
        return self.stored.frame

    @property
    def table(self) -> pd.DataFrame:
        """What a data frame of the overview holds: the stored tensors."""
        return self.tensors
