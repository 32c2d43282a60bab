"""How figures are written wherever people read them: the window, the command line and reports."""

from __future__ import annotations

import math


def percent(share: float, places: int = 0) -> str:
    """``share`` of 1 in percent, with a space before the sign as before every unit: ``66.7 %``."""
    return f"{100 * share:.{places}f} %"


def beyond(seconds: float) -> str:
    """A length above a limit, rounded up to a tenth of a second so that it never reads as the limit: ``60.4 s``."""
    return f"{math.ceil(10 * round(seconds, 6)) / 10:g} s"
