"""Comparing takes: in what two of them differ, and how far an accelerated one is from its baseline."""

from __future__ import annotations

from dataclasses import replace

from engine.errors import SettingError
from engine.knobs import Choice, Knob
from engine.library import TakeSummary
from engine.measure.fidelity import log_mel_distance
from engine.setting import Difference, Setting
from engine.take import Take
from engine.techniques import technique


def technique_text(setting: Setting) -> str:
    """The engaged techniques with their first knob, for example ``DiTReducio δ 0.1 + Step pruning: 7 steps``;
    ``baseline`` without any."""
    parts = []
    for one in setting.techniques:
        declared = technique(one.technique)
        knob = declared.knobs[0] if declared.knobs else None
        parts.append(declared.title + (_value(knob, one.knobs[knob.name]) if knob and knob.name in one.knobs else ""))
    return " + ".join(parts) or "baseline"


def _value(knob: Knob, value: object) -> str:
    if isinstance(knob, Choice):
        return f": {value}"
    if knob.symbol:
        return f" {knob.symbol} {value:g}"
    return f": {value:g} {knob.title.lower()}"


def differences(left: Take | TakeSummary, right: Take | TakeSummary) -> tuple[Difference, ...]:
    """Everything in which two takes differ by intent: text, voice and setting."""
    spoken = (
        Difference(what, getattr(left, what), getattr(right, what), False)
        for what in ("text", "voice")
        if getattr(left, what) != getattr(right, what)
    )
    return (*spoken, *left.setting.differences(right.setting))


def measured_against(take: Take, baseline: Take | None) -> Take:
    """``take`` with its log-mel distance to ``baseline``. Unchanged where the two do not speak the same words in the
    same time from the same noise."""
    if baseline is None or baseline.setting != take.setting.baseline:
        return take
    if (baseline.text, baseline.voice) != (take.text, take.voice):
        return take
    mine, theirs = take.trace.mel, baseline.trace.mel
    if mine is None or theirs is None:
        return take
    try:
        distance = log_mel_distance(theirs, mine)
    except SettingError:
        return take
    return replace(take, fidelity_to=baseline.id, log_mel_distance=distance)
