"""Estimated time of a study before it begins. Torch-free."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from paretone.setting.setting import Setting
from paretone.setting.take import Measurements
from paretone.studies.study import Study


def pace(model: str, takes: Iterable[tuple[Setting, str, Measurements]]) -> float | None:
    """Seconds of synthesis for each character of text that ``model`` took without techniques, as the median of
    ``takes`` (setting, text, measurements); ``None`` if it has made none."""
    found = [
        measured.seconds / len(text)
        for setting, text, measured in takes
        if setting.model == model and not setting.techniques and text and measured.seconds > 0
    ]
    return median(found) if found else None


def seconds(study: Study, pace: float | None) -> float | None:
    """Seconds of all takes of ``study`` at ``pace``, as if without techniques, calibration and judging."""
    if pace is None:
        return None
    characters = sum(len(one.text) for one in study.utterances)
    return pace * characters * study.takes / len(study.utterances)
