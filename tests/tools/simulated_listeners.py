"""ABX on simulated listeners: how often those who guess pass, and those who hear something.
``python -m tests.tools.simulated_listeners`` prints the table of ``resources/docs/listening-tests.md``.

Each listener goes through the session that people go through; only chance comes from a seed. Free of Qt and of torch.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paretone.listening import statistics
from paretone.listening.trials import ABX, ConditionRecord, ItemRecord, TrialConditions
from paretone_app.listening.abx import AbxSession, X
from paretone_app.listening.stimuli import PreparedItem, Stimulus

LISTENERS = 10_000
TRIALS = (5, 8, 10, 12, 16, 20, 25, 40)
RATES = (0.5, 0.75, 0.9)
"""Shares of right answers; the first is guessing."""


@dataclass(frozen=True)
class Simulated:
    """Shares of passed tests of one length."""

    trials: int
    computed: tuple[float, ...]
    """By rate, exact."""
    passed: tuple[float, ...]
    """By rate, of the simulated listeners."""


def simulate(trials: int, listeners: int = LISTENERS, seed: int = 0) -> Simulated:
    """Let ``listeners`` of each of :data:`RATES` go through a session of ``trials``."""
    passed = tuple(
        sum(_passes(trials, rate, random.Random(f"{seed}-{trials}-{rate}-{one}")) for one in range(listeners))
        / listeners
        for rate in RATES
    )
    return Simulated(trials, tuple(statistics.power(trials, rate) for rate in RATES), passed)


def _passes(trials: int, rate: float, chance: random.Random) -> bool:
    """Whether a listener who is right at ``rate`` passes a session of ``trials`` at the 5 % level."""
    session = AbxSession(_ITEMS, "simulated", ABX, trials, chance, "simulated")
    while not session.finished:
        session.hear(X)
        x = session.trial.order[X]
        session.answer(x if chance.random() < rate else 1 - x, _CALM)
    hits = sum(one.answer["said"] == one.order[X] for one in session.records)
    return statistics.at_least(hits, trials) <= statistics.LEVEL


def table(found: Sequence[Simulated]) -> str:
    """``found`` as the lines of a table."""
    lines = [
        "| n | needed, p ≤ .05 (exact p) | p ≤ .01 | who guess: passed | power at 75 % | passed | at 90 % | passed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        hits, strict = statistics.needed(one.trials), statistics.needed(one.trials, 0.01)
        cells = (
            str(one.trials),
            f"{hits} ({statistics.at_least(hits, one.trials):.3f})",
            "–" if strict is None else str(strict),
            f"{100 * one.passed[0]:.2f} %",
            *(f"{value:.3f}" for place in (1, 2) for value in (one.computed[place], one.passed[place])),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--listeners", type=int, default=LISTENERS, help="for each row and rate (default: %(default)s)")
    listeners = parser.parse_args().listeners
    print(table([simulate(trials, listeners) for trials in TRIALS]))


def _item(number: int) -> PreparedItem:
    conditions = (
        ConditionRecord(name, name, accelerated, "", {}, "", 0.0, -23.0)
        for name, accelerated in (("baseline", False), ("accelerated", True))
    )
    stimuli = tuple(Stimulus(one, np.zeros(0, np.float32)) for one in conditions)
    return PreparedItem(ItemRecord(f"Sentence {number}.", "", 0), stimuli, 48000, True, -23.0, True)


_ITEMS = tuple(map(_item, range(5)))
_CALM = TrialConditions()

if __name__ == "__main__":
    main()
