"""How figures, lists and tables are written wherever people read them: the window, the command line, reports and
spreadsheets. Torch-free."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping

_separator = ","


def use_separator(sign: str) -> None:
    """From now on put this sign between groups of three digits."""
    global _separator
    _separator = sign


def grouped(number: float, places: int = 0) -> str:
    """With ``places`` decimals, in groups of three digits: ``23,457``."""
    return f"{number:,.{places}f}".replace(",", _separator)


def counted(number: int, one: str, many: str) -> str:
    """A number of things, which are called ``one`` or ``many``: whole words, as no language only adds a letter."""
    return f"{grouped(number)} {one if number == 1 else many}"


def percent(share: float, places: int = 0) -> str:
    """``share`` of 1 in percent, with a space before the sign as before every unit: ``66.7 %``."""
    return f"{100 * share:.{places}f} %"


def listed(names: Iterable[object], last: str = "and") -> str:
    """``a, b and c``, or ``none``; ``last`` is the word before the last."""
    *before, end = [*map(str, names)] or ["none"]
    return f"{', '.join(before)} {last} {end}" if before else end


def beyond(seconds: float) -> str:
    """A length above a limit, rounded up to a tenth of a second so that it never reads as the limit: ``60.4 s``."""
    return f"{math.ceil(10 * round(seconds, 6)) / 10:g} s"


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
