"""`python -m tools.faults [NAME …]`: provoke all faults, or some, and print the table."""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tools.faults.cases import CASES, FaultOutcome
from tools.faults.servers import browsing, serving

TABLE = Path(__file__).parents[2] / "docs" / "faults.md"
HEAD = """# Faults

Written by `python -m tools.faults` on {date}, on a machine with 2 cores and 24 GB that was also
doing other work. Every fault is real: a dedicated server on loopback, a browser, real signals, a
full disk. "Store intact" means that every listed upload was read back byte for byte and that nothing
half-written was left. "Seconds" is the time from the fault to the message on the page.

No GPU was available, so the table does not include running out of GPU memory:
`tests/analyses/masked_lm/test_masked_lm.py` and `tests/models/test_masked_logits.py` raise torch's
own error instead.

| fault | what happened | seconds | what the page showed | store intact | next request |
|---|---|---|---|---|---|
"""


def main(names: list[str]) -> int:
    """Run the cases, and put the rows of those that ended as they must into the table.

    Returns:
        How many did not end as they must.
    """
    rows, failed = {}, 0
    with browsing() as browser:
        for name in names or CASES:
            with tempfile.TemporaryDirectory(prefix="faults-") as folder:
                try:
                    row = rows[_title(name)] = _row(name, CASES[name](browser, Path(folder), serving))
                except Exception as error:  # told, and the next fault is provoked all the same
                    failed += 1
                    row = f"| {name} | FAILED: {type(error).__name__}: {error} | | | | |"
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
    write_table(rows)
    return failed


def write_table(rows: dict[str, str]) -> None:
    """Put rows into the table, by their faults; those of other faults stay as they are."""
    known = TABLE.read_text("utf-8").splitlines() if TABLE.exists() else []
    kept = {line.split(" | ")[0].removeprefix("| "): line for line in known if line[:2] == "| "}
    all_rows = kept | rows
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    ordered = [all_rows[title] for title in map(_title, CASES) if title in all_rows]
    TABLE.write_text(HEAD.format(date=date) + "\n".join(ordered) + "\n", encoding="utf-8")


def _title(name: str) -> str:
    return (CASES[name].__doc__ or name).strip().rstrip(".")


def _row(name: str, outcome: FaultOutcome) -> str:
    cells = (_title(name), outcome.happened, f"{outcome.seconds:.1f}", outcome.said, outcome.whole, outcome.afterwards)
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in CASES]
    if unknown:
        sys.exit(f"There is no fault {unknown[0]!r}: pick from {', '.join(CASES)}.")
    sys.exit(main(sys.argv[1:]))
