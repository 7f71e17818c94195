"""The question: was an adapter really merged into its base model?"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.request import Request, option

ROWS = ("64", "all")


@dataclass(frozen=True)
class VerifyMergeRequest(Request):
    """Options of `verify-merge`; the checkpoint that is asked is the base."""

    verb = "verify-merge"

    # The computation takes their fingerprints; an address and a command line, their names.
    adapter: str = option(help="Adapter, as PEFT saved it", flag="ADAPTER")
    merged: str = option(help="Model that the adapter is said to be merged into", label="Merged model", flag="MERGED")
    rows: str = option(
        "64", "Rows of each matrix to replay: 64 from all over it, or all", label="Rows of each matrix", choices=ROWS
    )
