"""Gains of techniques in studies: the paired speed-up of settings with one technique, on this machine only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paretone.measure.estimates import Estimate
from paretone.models import catalogue
from paretone.setting.knobs import Values
from paretone.setting.setting import Setting, UsedTechnique
from paretone.studies.gains import Place, of_study
from paretone.studies.results import Results, SettingResult
from tests.engine.measure.test_gains import MACHINE, PLACE, PLAIN, SEVEN

CLOCK = "CPU seconds of the process"


def result(key: str, setting: Setting, **figures: Estimate) -> SettingResult:
    return SettingResult(key, "", "baseline" if key == "plain" else "list", setting, "plain", figures, finished=6)


def study(*settings: SettingResult, **changes: object) -> Results:
    found = Results("", "Savings", "f5-mini", "a" * 64, "2026-11-21T10:00:00+00:00", "", {}, settings)
    return replace(found, machines=(MACHINE,), clocks=(CLOCK,), **changes)


SPED = Estimate(3.9, 3.7, 4.1, 6, 3)


def test_the_speed_up_of_one_technique_comes_with_its_interval() -> None:
    found = study(
        result("plain", PLAIN),
        result("seven", SEVEN, speed_up=SPED),
        result("both", SEVEN.with_technique(UsedTechnique("precision")), speed_up=replace(SPED, value=5.0)),
    )
    (gain,) = of_study(found, PLACE)
    assert (gain.entry.technique, gain.ratio, gain.interval, gain.pairs) == ("steps", 3.9, (3.7, 4.1), 6)
    assert gain.study == "Savings"


@pytest.mark.parametrize(
    "change",
    [
        {"machines": (MACHINE, "Another; Linux; x")},
        {"machines": ("Another; Linux; x",)},
        {"clocks": ("seconds between CUDA events",)},
        {"checkpoint": "b" * 64},
        {"model": "omni-mini"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_study_of_elsewhere_says_nothing_of_this_machine(change: dict[str, object]) -> None:
    assert (
        of_study(replace(study(result("plain", PLAIN), result("seven", SEVEN, speed_up=SPED)), **change), PLACE) == ()
    )


def test_first_audio_is_compared_with_the_baselines() -> None:
    plain = Setting("omni-mini", catalogue.entry("omni-mini").options_with())
    early = plain.with_technique(UsedTechnique("blockwise", Values(block=16)))
    half = [Estimate(value, value, value, 6, 3) for value in (2.0, 0.5)]
    found = study(
        result("plain", plain, first_audio_seconds=half[0]),
        result("early", early, first_audio_seconds=half[1], speed_up=SPED),
        model="omni-mini",
    )
    (gain,) = of_study(found, Place("omni-mini", "a" * 64, "CPU: 2 cores", "cpu", MACHINE))
    assert (gain.ratio, gain.interval) == (4.0, None)
