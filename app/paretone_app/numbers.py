"""Number formats of the window, with the user's decimal sign; files, copied tables and reports keep the point."""

import re

from paretone import wording

_POINT = re.compile(r"[^\s<>]*[/\\][^\s<>]*|(?<![\w.])(?<!\w-)(?!\d{4}\.\d{5})(?P<whole>\d+)\.(?P<part>\d+)(?!\.?\d)")
"""The point of a number; not of a version (1.2.3), a paper id (2509.09748), a name (w-0.67), a path or a link."""
_NUMBER = re.compile("[+−]?\\d[\\d.,\u202f]*")
_NARROW_SPACE, _DIGIT_SPACE, _POINT_SPACE = "\u202f", "\u2007", "\u2008"
_sign = "."


def use_sign(sign: str) -> None:
    """Use this decimal sign, and matching digit grouping, from now on."""
    global _sign
    _sign = sign
    # A grouping comma would read as a decimal sign; use a narrow space.
    wording.use_separator("," if sign == "." else _NARROW_SPACE)


def localised(text: str) -> str:
    """Replace the decimal points in a text by the decimal sign."""
    return text if _sign == "." else _POINT.sub(_with_sign, text)


def _with_sign(found: re.Match[str]) -> str:
    return found[0] if found["whole"] is None else f"{found['whole']}{_sign}{found['part']}"


def fixed(value: float, places: int) -> str:
    return displayed(f"{value:.{places}f}")


def significant(value: float, places: int = 9) -> str:
    """See :func:`paretone.wording.significant`."""
    return displayed(wording.significant(value, places))


def times(ratio: float) -> str:
    return displayed(wording.times(ratio))


def aligned(text: str, places: int) -> str:
    """``text``, with room after its number for ``places`` decimals: right-aligned, points are below each other."""
    number = _NUMBER.match(text) if places else None
    if number is None:
        return text
    there = decimals(number[0])
    room = ("" if there else _POINT_SPACE) + _DIGIT_SPACE * (places - there)
    return f"{number[0]}{room}{text[number.end() :]}"


def decimals(text: str) -> int:
    """How many decimals the number at the beginning of ``text`` has."""
    number = _NUMBER.match(text)
    return 0 if number is None else len(number[0].partition(_sign)[2])


def displayed(text: str) -> str:
    """With the decimal sign, and a true minus sign."""
    return localised(text).replace("-", "−")


def with_sign(value: float, plus: str = "", digits: int = 1) -> str:
    """A number with a minus sign, or ``plus`` before positive ones; never a negative zero."""
    rounded = round(value, digits) + 0.0
    return f"{'−' if rounded < 0 else plus if rounded > 0 else ''}{fixed(abs(rounded), digits)}"


def percent(share: float, places: int = 0) -> str:
    """``share`` of 1 in percent, see :mod:`paretone.wording`."""
    return localised(wording.percent(share, places))


def general(value: float, digits: int = 6) -> str:
    """With up to ``digits`` significant digits; larger whole numbers in full."""
    if 10**digits <= abs(value) < 1e15:
        return grouped(value)
    return displayed(f"{value:.{digits}g}")


grouped, counted = wording.grouped, wording.counted


def rough_duration(seconds: float, tenths: bool = True) -> str:
    """A duration at the precision of estimates; ``tenths`` below 10 s: off for countdowns, where they flicker."""
    if tenths and seconds < 10.0:
        return f"{fixed(seconds, 1)} s"
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 120 * 60 else f"{fixed(seconds / 3600, 1)} h"
