"""How figures and lists are written wherever people read them: the window, the command line and reports."""

from __future__ import annotations

import math
from collections.abc import Iterable

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
