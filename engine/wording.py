"""How figures are written wherever people read them: the window, the command line and reports."""

from __future__ import annotations


def percent(share: float, places: int = 0) -> str:
    """``share`` of 1 in percent, with a space before the sign as before every unit: ``66.7 %``."""
    return f"{100 * share:.{places}f} %"
