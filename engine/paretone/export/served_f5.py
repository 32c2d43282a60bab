"""What servers of F5-TTS have in common: their step grid and solver are their own. Torch-free."""

from __future__ import annotations

from paretone.export.accounts import OptionLedger
from paretone.sampling.schedules import EPSS, effective_spacing

SWAY = -1.0
"""The sway of all of them."""


def own_grid(ledger: OptionLedger) -> None:
    """The options that a server leaves no choice in: EPSS where there is a table, a sway of -1, the Euler solver."""
    options = ledger.options
    if effective_spacing(options["steps"], options["spacing"]) == "epss" or options["steps"] not in EPSS:
        ledger.honour("it has the same grid", "spacing")
    else:
        ledger.drop("it always takes EPSS where there is a table", "spacing")
    if options["sway"] == SWAY:
        ledger.honour("it has no other", "sway")
    else:
        ledger.drop(f"it always takes {SWAY:g}", "sway")
    if options["solver"] == "euler":
        ledger.honour("it has no other", "solver")
    else:
        ledger.drop("it has Euler only", "solver")
    ledger.drop("it cuts long texts in its own way, or not at all", "cross_fade", "quick_start")
