"""Write into a file where it comes from, so that it can be asked when it lies alone."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pandas.api.types import is_bool_dtype, is_float_dtype, is_integer_dtype

from inspector.text import as_csv, escaped

if TYPE_CHECKING:
    import pandas as pd

PDF_DATE = re.compile(rb"(/(?:Creation|Mod)Date \(D:)\d{14}")

Facts = Mapping[str, str]


def label_pdf(data: bytes, *, made: str) -> bytes:
    """Give a PDF the date of its report.

    Args:
        made: As "2026-01-31 12:00 UTC".
    """
    digits = re.sub(r"\D", "", made).ljust(14, "0").encode()
    return PDF_DATE.sub(lambda found: found[1] + digits, data)


def csv_metadata(name: str, frame: pd.DataFrame, facts: Facts, *, title: str) -> str:
    """Describe a table beside its CSV ("CSV on the Web": Metadata Vocabulary for Tabular Data).

    Args:
        name: Of the CSV, in the same folder.
    """
    header = next(csv.reader(io.StringIO(as_csv(frame.head(0)))))
    described = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": name,
        "dc:title": title,
        "dc:source": readable(facts),
        "tableSchema": {
            "columns": [
                {"titles": column, "datatype": _datatype(frame.iloc[:, place])} for place, column in enumerate(header)
            ]
        },
    }
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def readable(facts: Facts) -> dict[str, str]:
    """Facts without characters that are not seen, or that XML cannot hold."""
    return {name: escaped(value) for name, value in facts.items()}


def _datatype(column: Any) -> Any:
    if is_bool_dtype(column):
        return {"base": "boolean", "format": "True|False"}
    if is_integer_dtype(column):
        return "integer"
    return "double" if is_float_dtype(column) else "string"
