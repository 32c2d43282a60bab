"""Tables as CSV that spreadsheets open: every one that Paretone writes. Torch-free."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings of cells that spreadsheets compute. Source: OWASP, "CSV Injection"."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?( ?%)?")
_INNER_FORMULA = re.compile(r"([,;\t])(?=[=+\-@])")


def comma_separated(rows: Iterable[Iterable[object]], delimiter: str = ",", end: str = "\n") -> str:
    """``rows`` as lines. ``None`` is an empty cell. A text that a spreadsheet would compute, such as the title of
    somebody else's study, gets an apostrophe before it, as spreadsheets have it; numbers stay as they are."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows([_cell(one) for one in row] for row in rows)
    return text.getvalue()


def comments(values: Mapping[str, str]) -> str:
    """Lines that begin with ``#`` and say what a table is. They are no cells, but spreadsheets cut them into some."""
    lines = (f"# {name}: {' '.join(value.split())}" for name, value in values.items())
    return "".join(_INNER_FORMULA.sub(r"\1 ", line) + "\n" for line in lines)


def _cell(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"
