"""What can be odd about a checkpoint's set of weight files, in a few words that never change."""

from __future__ import annotations

from dataclasses import dataclass

UNLISTED = "a shard that the index does not list"
ABSENT = "a shard that is not there"
UNREAD = "a weight file that is not read"
NO_SUCH_TENSOR = "a tensor of the index that no shard holds"
MISPLACED = "a tensor in another shard than the index says"
NOT_IN_INDEX = "a tensor that the index does not list"
COPIES = "a tensor in several shards"
COPIES_APART = "a tensor in several shards, of which loaders take different ones"
NO_METADATA = "an index without metadata"
TOTAL = "another total size in the index"
NO_MODEL = "a file of which no model is built"
PROBLEMS = (
    UNLISTED,
    ABSENT,
    UNREAD,
    NO_SUCH_TENSOR,
    MISPLACED,
    NOT_IN_INDEX,
    COPIES,
    COPIES_APART,
    NO_METADATA,
    TOTAL,
    NO_MODEL,
)
GAPS = (UNLISTED, ABSENT, UNREAD)  # what a count of them says is missing
MAX_FOUND = 1_000  # tensors that a finding names


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What is odd about a checkpoint's set of weight files."""

    subject: str  # a file's name
    problem: str  # one of PROBLEMS
    count: int  # tensors or files that it concerns
    detail: str  # one sentence
    names: tuple[str, ...] = ()  # the first of these tensors
