"""Trials as listeners of known abilities would answer them."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from paretone.listening import trials
from paretone.listening.statistics import pairs
from paretone.listening.trials import TrialRecord
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique

PLAIN = Setting("f5-mini")
REDUCED = PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "a" * 16))
BASELINE = trials.ConditionRecord("b" * 16, "baseline", False, "1" * 32, PLAIN.to_json(), "c" * 16, -1.5, -21.5)
FAST = trials.ConditionRecord("f" * 16, "DiTReducio δ = 0.2", True, "2" * 32, REDUCED.to_json(), "e" * 16, 0.0, -23.0)
LOW = trials.ConditionRecord("anchor35", "Anchor 3.5 kHz", False, "", {}, "", 0.4, -23.4)
MID = trials.ConditionRecord("anchor70", "Anchor 7 kHz", False, "", {}, "", 0.1, -23.1)
AROUND = trials.TrialConditions(4200, 0, "Speaker", 0.2, "sync")


def _trial(
    session: str, number: int, method: str, order: Sequence[int], answer: dict[str, Any], planned: int, **more: Any
) -> TrialRecord:
    """One trial; ``more`` may name its ``listener``, ``text`` and ``conditions``, and whether it is a ``repeat``."""
    item = trials.ItemRecord(more.pop("text", "A sentence."), "anna", 7)
    listener, row = more.pop("listener", "l1"), more.pop("conditions", (BASELINE, FAST))
    return TrialRecord(session, method, listener, number, planned, item, row, tuple(order), answer, 3, AROUND, **more)


def abx_trial(session: str, number: int, x: int = 0, said: int = 0, planned: int = 16, **more: Any) -> TrialRecord:
    """One trial of ABX."""
    return _trial(session, number, trials.ABX, (0, 1, x), {"said": said}, planned, **more)


def preference_trial(
    session: str, number: int, vote: int, order: Sequence[int] = (0, 1), planned: int = 10, **more: Any
) -> TrialRecord:
    """One comparison; ``vote`` says how much better the second was than the first."""
    return _trial(session, number, more.pop("method", trials.CCR), order, {"vote": vote}, planned, **more)


def mushra_trial(session: str, number: int, ratings: Sequence[int], planned: int = 1, **more: Any) -> TrialRecord:
    """One page of MUSHRA, with ratings in the order of ``conditions``."""
    more = {"conditions": (BASELINE, FAST, LOW, MID), **more}
    order = (0, *range(len(more["conditions"])))
    return _trial(session, number, trials.MUSHRA, order, {"ratings": list(ratings)}, planned, **more)


def staircase_trial(
    session: str, number: int, place: int, right: bool, scale: Sequence[float], planned: int = 45, listener: str = "l1"
) -> TrialRecord:
    """One trial at a ``place`` of the row, counted from 0."""
    row = (replace(FAST, key=f"{one:016x}", title=f"place {one + 1}") for one in range(len(scale)))
    order = (0, 0, place + 1) if number % 2 else (0, place + 1, 0)
    said = order.index(place + 1) - 1
    answer = {"said": said if right else 1 - said, "scale": list(scale)}
    more = {"conditions": (BASELINE, *row), "listener": listener}
    return _trial(session, number, trials.STAIRCASE, order, answer, planned, **more)


RECORDING = trials.ConditionRecord(trials.VOICE, "Voice", False, "", {}, "", 0.0, -23.0)


def mos_session(
    votes: Sequence[tuple[int, int]], similarity: bool = False, session: str = "m", listener: str = "l1"
) -> list[TrialRecord]:
    """Votes for the baseline and for the fast setting, by sentence."""
    row = (BASELINE, FAST, RECORDING) if similarity else (BASELINE, FAST)
    method, first = (trials.SIMILARITY, (2,)) if similarity else (trials.NATURALNESS, ())
    flat = [(number, place, vote) for number, pair in enumerate(votes) for place, vote in enumerate(pair)]
    made = []
    for count, (number, place, vote) in enumerate(flat, start=1):
        more = {"conditions": row, "listener": listener, "text": f"Sentence {number}."}
        made.append(_trial(session, count, method, (*first, place), {"vote": vote}, len(flat), **more))
    return made


def ranking_session(
    strengths: Sequence[float], rounds: int, session: str = "s", listener: str = "l1", seed: int = 3
) -> list[TrialRecord]:
    """All pairs of settings, ``rounds`` times, by a listener who prefers them with these log odds."""
    chance = random.Random(seed)
    row = tuple(replace(FAST, key=f"{one:016x}", title=f"place {one + 1}") for one in range(len(strengths)))
    orders = [order for at in range(rounds) for order in pairs(len(strengths), seed * 100 + at)]
    made = []
    for number, order in enumerate(orders, start=1):
        second = chance.random() < 1 / (1 + math.exp(8 * (strengths[order[0]] - strengths[order[1]])))
        vote, more = {"vote": 1 if second else -1}, {"conditions": row, "listener": listener}
        made.append(_trial(session, number, trials.RANKING, order, vote, len(orders), **more))
    return made
