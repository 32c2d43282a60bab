"""Trials as listeners of known abilities would answer them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from paretone.listening import trials
from paretone.listening.statistics import pairs
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
    session: str,
    number: int,
    method: str,
    conditions: tuple[trials.ConditionRecord, ...],
    order: tuple[int, ...],
    answer: dict[str, Any],
    planned: int,
    listener: str = "l1",
    text: str = "A sentence.",
    **more: bool,
) -> trials.TrialRecord:
    item = trials.ItemRecord(text, "anna", 7)
    return trials.TrialRecord(
        session, method, listener, number, planned, item, conditions, order, answer, 3, AROUND, **more
    )


def abx_trial(
    session: str,
    number: int,
    x: int = 0,
    said: int = 0,
    planned: int = 16,
    conditions: tuple[trials.ConditionRecord, ...] = (BASELINE, FAST),
    **more: str,
) -> trials.TrialRecord:
    """One trial of ABX."""
    return _trial(session, number, trials.ABX, conditions, (0, 1, x), {"said": said}, planned, **more)


def preference_trial(
    session: str,
    number: int,
    vote: int,
    order: tuple[int, int] = (0, 1),
    planned: int = 10,
    method: str = trials.CCR,
    conditions: tuple[trials.ConditionRecord, ...] = (BASELINE, FAST),
    **more: Any,
) -> trials.TrialRecord:
    """One comparison; ``vote`` says how much better the second was than the first."""
    return _trial(session, number, method, conditions, order, {"vote": vote}, planned, **more)


def mushra_trial(
    session: str,
    number: int,
    ratings: tuple[int, ...],
    planned: int = 1,
    conditions: tuple[trials.ConditionRecord, ...] = (BASELINE, FAST, LOW, MID),
    **more: str,
) -> trials.TrialRecord:
    """One page of MUSHRA, with ratings in the order of ``conditions``."""
    order = (0, *range(len(conditions)))
    return _trial(session, number, trials.MUSHRA, conditions, order, {"ratings": list(ratings)}, planned, **more)


def staircase_trial(
    session: str, number: int, place: int, right: bool, scale: Sequence[float], planned: int = 45, listener: str = "l1"
) -> trials.TrialRecord:
    """One trial at a ``place`` of the row, counted from 0."""
    row = (replace(FAST, key=f"{one:016x}", title=f"place {one + 1}") for one in range(len(scale)))
    order = (0, 0, place + 1) if number % 2 else (0, place + 1, 0)
    said = order.index(place + 1) - 1
    answer = {"said": said if right else 1 - said, "scale": list(scale)}
    return _trial(session, number, trials.STAIRCASE, (BASELINE, *row), order, answer, planned, listener)


RECORDING = trials.ConditionRecord(trials.VOICE, "Voice", False, "", {}, "", 0.0, -23.0)


def mos_session(
    votes: Sequence[tuple[int, int]], similarity: bool = False, session: str = "m", listener: str = "l1"
) -> list[trials.TrialRecord]:
    """Votes for the baseline and for the fast setting, by sentence."""
    row = (BASELINE, FAST, RECORDING) if similarity else (BASELINE, FAST)
    method, first = (trials.SIMILARITY, (2,)) if similarity else (trials.NATURALNESS, ())
    flat = [(number, place, vote) for number, pair in enumerate(votes) for place, vote in enumerate(pair)]
    return [
        _trial(session, count, method, row, (*first, place), {"vote": vote}, len(flat), listener, f"Sentence {number}.")
        for count, (number, place, vote) in enumerate(flat, start=1)
    ]


def ranking_session(
    strengths: Sequence[float], rounds: int, session: str = "s", listener: str = "l1", seed: int = 3
) -> list[trials.TrialRecord]:
    """All pairs of settings, ``rounds`` times, by a listener who prefers them with these log odds."""
    chance = random.Random(seed)
    row = tuple(replace(FAST, key=f"{one:016x}", title=f"place {one + 1}") for one in range(len(strengths)))
    orders = [order for at in range(rounds) for order in pairs(len(strengths), seed * 100 + at)]
    made = []
    for number, order in enumerate(orders, start=1):
        second = chance.random() < 1 / (1 + math.exp(8 * (strengths[order[0]] - strengths[order[1]])))
        vote = {"vote": 1 if second else -1}
        made.append(_trial(session, number, trials.RANKING, row, order, vote, len(orders), listener))
    return made
