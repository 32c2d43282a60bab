"""Gains of techniques: in pairs of takes that differ in nothing else, and in studies, on this machine only."""

from dataclasses import replace

import pytest

from paretone.measure.estimates import Estimate
from paretone.models import catalogue
from paretone.setting.knobs import Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements
from paretone.studies.gains import Place, PublishedPoint, best_known, of_study, of_takes, published
from paretone.studies.results import Results, SettingResult
from paretone.techniques import technique, techniques

MACHINE = "Processor, 2 cores, 8 GiB; Linux 6.1; Python 3.11.2, torch 2.9, paretone 0.9"
NEWER = MACHINE.replace("6.1", "6.9").replace("2.9", "2.10")
PLACE = Place("f5-mini", "a" * 64, "CPU: 2 cores", "cpu", NEWER)
PLAIN = Setting("f5-mini", catalogue.entry("f5-mini").options_with(), (), 7)
SEVEN = PLAIN.with_technique(UsedTechnique("steps", Values(steps=7)))
EIGHT = PLAIN.with_technique(UsedTechnique("steps", Values(steps=8)))
HALF = UsedTechnique("precision", Values(precision="bfloat16"))


def take(setting: Setting, seconds: float, minute: int = 0, **changes: object) -> TakeSummary:
    measured = Measurements(seconds=seconds, audio_seconds=2.0, first_audio_seconds=seconds / 2, device="CPU: 2 cores")
    created = f"2026-11-21T10:{minute:02d}:00.000+00:00"
    made = TakeSummary(f"{minute:032x}", created, "A text.", "anna", setting, 24000, 48000, measurements=measured)
    return replace(made, **{"machine": MACHINE, "checkpoint": "a" * 64, **changes})


def test_a_pair_differs_in_one_technique_only() -> None:
    (gain,) = of_takes([take(SEVEN, 0.5, 1), take(PLAIN, 2.0)], PLACE)
    assert (gain.entry.technique, gain.ratio, gain.pairs, gain.others) == ("steps", 4.0, 1, ())
    assert gain.entry.knobs["steps"] == 7 and gain.entry.knobs["spacing"] == "epss", "with all its knobs"
    together = of_takes([take(SEVEN.with_technique(HALF), 0.25, 2), take(SEVEN, 0.5, 1), take(PLAIN, 2.0)], PLACE)
    gains = {(one.entry.technique, one.ratio, one.others) for one in together}
    assert gains == {("steps", 4.0, ()), ("precision", 2.0, ("steps",))}


@pytest.mark.parametrize(
    "change",
    [
        {"text": "Another text."},
        {"voice": "ben"},
        {"checkpoint": "b" * 64},
        {"checkpoint": ""},
        {"machine": MACHINE.replace("2 cores", "4 cores")},
        {"setting": replace(PLAIN, options=PLAIN.options.replace(steps=11))},
        {"measurements": Measurements(seconds=2.0, audio_seconds=2.0, device="NVIDIA H200")},
        {"measurements": Measurements(device="CPU: 2 cores")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_nothing_else_may_differ(change: dict[str, object]) -> None:
    assert of_takes([take(SEVEN, 0.5, 1), replace(take(PLAIN, 2.0), **change)], PLACE) == ()


def test_takes_of_another_model_device_or_machine_count_for_nothing() -> None:
    takes = [take(SEVEN, 0.5, 1), take(PLAIN, 2.0)]
    others = {"model": "omni-mini", "checkpoint": "b" * 64, "device": "NVIDIA H200", "machine": "Another; Linux; x"}
    for name, value in others.items():
        assert of_takes(takes, replace(PLACE, **{name: value})) == ()


def test_each_take_is_compared_with_the_one_made_next_to_it() -> None:
    """A machine is faster at one time than at another. The gain is the median."""
    takes = [take(PLAIN, 2.0, 0), take(SEVEN, 0.5, 1), take(PLAIN, 4.0, 10), take(SEVEN, 2.0, 11), take(SEVEN, 1.0, 12)]
    (gain,) = of_takes(takes, PLACE)
    assert (gain.ratio, gain.pairs, gain.created) == (4.0, 3, takes[-1].created)


def test_seeds_and_artefacts_may_differ_and_what_is_not_installed_is_passed_over() -> None:
    table = PLAIN.with_technique(UsedTechnique("steps", Values(steps=7), "f" * 16))
    (gain,) = of_takes([take(replace(table, seed=1), 0.5, 1), take(PLAIN, 1.0)], PLACE)
    assert gain.ratio == 2.0
    gone = PLAIN.with_technique(UsedTechnique("gone"))
    other = PLAIN.with_technique(UsedTechnique("steps", Values(stairs=7)))
    assert of_takes([take(gone, 0.5, 1), take(other, 0.5, 2), take(PLAIN, 1.0)], PLACE) == ()


def test_a_technique_for_earlier_audio_is_measured_by_that() -> None:
    place = replace(PLACE, model="omni-mini")
    plain = Setting("omni-mini", catalogue.entry("omni-mini").options_with())
    early = plain.with_technique(UsedTechnique("blockwise"))
    assert technique("blockwise").improves == "first_audio_seconds"
    soon = replace(take(early, 4.0, 1).measurements, first_audio_seconds=0.25)
    (gain,) = of_takes([take(early, 4.0, 1, measurements=soon), take(plain, 2.0)], place)
    assert gain.ratio == 4.0


def test_the_selected_knobs_come_first_then_the_technique_alone_then_the_newest() -> None:
    later = [take(EIGHT.with_technique(HALF), 0.1, 9), take(PLAIN.with_technique(HALF), 1.0, 8), take(EIGHT, 1.0, 3)]
    gains = of_takes([*later, take(SEVEN, 0.5, 1), take(PLAIN, 2.0)], PLACE)
    of_steps = [one for one in gains if one.entry.technique == "steps"]
    knobs = {one.entry.knobs["steps"]: one.entry for one in of_steps}
    assert best_known(gains, knobs[7]).ratio == 4.0
    assert best_known(gains, knobs[8]).ratio == 2.0, "alone, though it was measured on top of another one since"
    other = UsedTechnique("steps", knobs[8].knobs.replace(steps=5))
    assert best_known(gains, other).ratio == 2.0, "the newest of those without others"
    assert best_known(gains, UsedTechnique("graphs")) is None


def result(key: str, setting: Setting, **figures: Estimate) -> SettingResult:
    return SettingResult(key, "", "baseline" if key == "plain" else "list", setting, "plain", figures, finished=6)


def study(*settings: SettingResult, **changes: object) -> Results:
    found = Results("", "Savings", "f5-mini", "a" * 64, "2026-11-21T10:00:00+00:00", "", {}, settings)
    return replace(found, machines=(MACHINE,), clocks=("CPU seconds of the process",), **changes)


SPED = Estimate(3.9, 3.7, 4.1, 6, 3)
TWO = result("plain", PLAIN), result("seven", SEVEN, speed_up=SPED)


def test_the_speed_up_of_one_technique_comes_with_its_interval() -> None:
    both = result("both", SEVEN.with_technique(UsedTechnique("precision")), speed_up=replace(SPED, value=5.0))
    (gain,) = of_study(study(*TWO, both), PLACE)
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
    assert of_study(replace(study(*TWO), **change), PLACE) == ()


def point(paper: str, model: str, label: str) -> PublishedPoint:
    (found,) = (one for one in published() if (one.paper, one.model, one.label) == (paper, model, label))
    return found


def test_ratios_are_those_that_the_papers_speak_of() -> None:
    # "a 1.6× improvement in RTF" is F5-TTS at its largest threshold.
    assert point("DiTReducio", "F5-TTS", "T6").ratios["speed_up"] == pytest.approx(1.59, abs=0.005)
    assert point("DiTReducio", "F5-TTS", "T4 (recommended)").ratios["speed_up"] == pytest.approx(1.38, abs=0.005)
    assert point("DiTReducio", "MegaTTS 3", "T6").ratios["ops_ratio"] == pytest.approx(0.2752)
    assert point("CFG-free", "F5-TTS", "CFG-free, 7 steps").ratios["speed_up"] == pytest.approx(7.75)
    # "1.4× faster synthesis"
    assert 1 / point("SSD", "CosyVoice 2", "β = 0.4").ratios["backbone_time_factor"] == pytest.approx(1.4)
    # "accelerates inference by 42.6 %", "improves RTF by 45.9 %", and LLaSA by 29.3 %
    spade = [one for one in published() if one.series.startswith("spade-table-1") and not one.baseline]
    saved = [1 - one.ratios["real_time_factor"] for one in spade]
    assert saved == pytest.approx([0.426, 0.459, 0.426, 0.459, 0.293, 0.293], abs=5e-4), "for two sets of sentences"
    assert point("OmniVoice roofline", "OmniVoice", "block by block").ratios == {"first_audio_p90": 120 / 780}


def test_every_point_says_where_it_is_from() -> None:
    names = {one.name for one in techniques()} | {""}
    assert len({one.paper for one in published()}) == 5
    for one in published():
        assert one.source and one.hardware and one.data and one.model
        assert one.technique in names
        assert one.values and (not one.baseline or all(ratio == 1.0 for ratio in one.ratios.values()))
