"""Write an answer's tables to files."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from inspector.errors import cannot_write
from inspector.text import as_csv

if TYPE_CHECKING:  # half a second of every verb
    import pandas as pd


def write_frame(frame: pd.DataFrame, path: Path, file: IO[bytes]) -> None:
    """Write a table as .csv or .parquet.

    Args:
        frame: The table.
        path: Its name, whose end decides.
        file: Where it is written; it is closed.

    Raises:
        RequestError: If the file cannot be written.
    """
    try:
        with file:
            if path.suffix == ".parquet":
                frame.to_parquet(file, index=False)
            else:
                file.write(as_csv(frame).encode())
    except OSError as error:
        raise cannot_write(path, error) from error
