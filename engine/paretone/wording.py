"""Formats of figures, lists and tables for people: window, command line, reports and spreadsheets. Torch-free."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping

_separator = ","


def use_separator(sign: str) -> None:
    """Set the separator between groups of three digits."""
    global _separator
    _separator = sign


def grouped(number: float, places: int = 0) -> str:
    """Number with ``places`` decimals, in groups of three digits: ``23,457``."""
    return f"{number:,.{places}f}".replace(",", _separator)


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun ``one`` or ``many``, given as whole words."""
    return f"{grouped(number)} {one if number == 1 else many}"


def plain(value: object, digits: int = 6) -> str:
    """A knob's value: ``on`` or ``off``, a number without needless digits, or a text as it is."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def significant(value: float, places: int = 9) -> str:
    """A measured figure with three significant digits, zeros included, and at most ``places`` decimals; larger ones
    as whole numbers."""
    if not value or abs(value) >= 999.5:
        return grouped(value)
    text = f"{value:#.3g}".removesuffix(".")
    return text if len(text.partition(".")[2]) <= places else f"{value:.{places}f}"


def megabytes(done: float, total: float) -> str:
    """Of bytes: "1.5 of 20.0 MB"."""
    return f"{grouped(done / 1e6, 1)} of {grouped(total / 1e6, 1)} MB"


def times(ratio: float) -> str:
    """A ratio of speeds or the like: ``1.76×``."""
    return f"{significant(ratio, 2)}×"


class Share(float):
    """A figure that tables show in percent; programs get the share."""


def percent(share: float, places: int = 0) -> str:
    """``share`` as a percentage, with a space before the sign as before every unit: ``66.7 %``."""
    return f"{100 * share:.{places}f} %"


def per_one(unit: str) -> int:
    """What 1 is in a metric's ``unit``: shares are stated in percent; files and programs get the share."""
    return 100 if unit == "%" else 1


def in_unit(value: float, unit: str) -> str:
    return significant(per_one(unit) * value)


def part_of(share: float) -> str:
    """A learned share as a percentage; movement the other way is none: ``none (-25 %)``."""
    return percent(share) if share >= 0 else f"none ({percent(share)})"


def listed(names: Iterable[object], last: str = "and") -> str:
    """``a, b and c``, or ``none``; ``last``: the conjunction."""
    *before, end = [*map(str, names)] or ["none"]
    return f"{', '.join(before)} {last} {end}" if before else end


def beyond(seconds: float) -> str:
    """A length above a limit, rounded up to a tenth of a second so that it never reads as the limit: ``60.4 s``."""
    return f"{math.ceil(10 * round(seconds, 6)) / 10:g} s"


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Beginnings of cells that spreadsheets compute. Source: OWASP, "CSV Injection"."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?( ?%)?")
_INNER_FORMULA = re.compile(r"([,;\t])(?=[=+\-@])")


def comma_separated(
    rows: Iterable[Iterable[object]], delimiter: str = ",", end: str = "\n", for_people: bool = True
) -> str:
    """``rows`` as lines. ``None`` is an empty cell. ``for_people``: texts that a spreadsheet would compute, such as a
    foreign study's title, get a leading apostrophe, the spreadsheets' convention; numbers stay unchanged."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerows([_cell(one) if for_people else one for one in row] for row in rows)
    return text.getvalue()


def comments(values: Mapping[str, str]) -> str:
    """Header lines that begin with ``#``. They are not cells, but spreadsheets split them into some."""
    lines = (f"# {name}: {' '.join(value.split())}" for name, value in values.items())
    return "".join(_INNER_FORMULA.sub(r"\1 ", line) + "\n" for line in lines)


def _cell(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"
