"""Turn values into bytes and back across a trust boundary.

The bytes name no function and no class that is looked up: whoever decodes says which class it
expects, and every value must be what that class's annotations say. A header in JSON describes the
value; bytes, arrays and columns of frames follow it one after another, in the order in which the
header mentions them, so nothing larger than the message itself is ever allocated.

Why not MessagePack by msgspec: it admits one plain dataclass in a union, and the answer of a task
head is one of seven; it looks for pandas in modules that import it only for type checkers; and its
text cannot hold the lone surrogates that names in checkpoints have.
"""

from __future__ import annotations

from inspector.serving.encoding.parts import DecodeError
from inspector.serving.encoding.reading import decode
from inspector.serving.encoding.writing import encode

__all__ = ["DecodeError", "decode", "encode"]
