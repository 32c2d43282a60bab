"""Stimuli: conditions and sentences are found among takes, and sounds are made equally loud."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import soundfile

from paretone.listening.trials import ABX, MUSHRA, SIMILARITY, RecordError
from paretone.measure.loudness import HIGHEST_PEAK, integrated_loudness, true_peak
from paretone.models.catalogue import voice
from paretone.setting.knobs import Values
from paretone.setting.library import TakeSummary
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Measurements
from paretone_app.listening import stimuli
from paretone_app.listening import stimuli as calibration
from paretone_app.listening.stimuli import TOLERANCE_DECIBELS, conditions, items, levelled, prepared, setting_key

PLAIN = Setting("f5-mini", Values({"steps": 32}), seed=7)
REDUCED = PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "a" * 16))
OTHER_TABLE = PLAIN.with_technique(UsedTechnique("ditreducio", Values({"threshold": 0.2}), "b" * 16))


def summary(take: str, setting: Setting, text: str = "One.", seed: int = 7, voice: str = "anna") -> TakeSummary:
    return TakeSummary(take, "2026", text, voice, replace(setting, seed=seed), 24000, 24000, Measurements())


def test_a_condition_is_a_setting_whatever_its_seed() -> None:
    assert setting_key(PLAIN) == setting_key(replace(PLAIN, seed=99)) != setting_key(REDUCED)
    found = conditions([PLAIN, replace(PLAIN, seed=3), REDUCED, OTHER_TABLE])
    assert [one.accelerated for one in found] == [False, True, True]
    assert len({one.title for one in found}) == 3, "titles tell them apart"
    assert "steps 5" in conditions([replace(PLAIN, options=Values({"steps": 5}))])[0].title, "not the model's default"
    lost = conditions([Setting("gone").with_technique(UsedTechnique("lost"))])[0].title
    assert lost == "lost · gone", "a model and a technique that are no longer known"


def test_items_are_what_all_of_them_spoke_from_one_seed() -> None:
    takes = [
        summary("newer", PLAIN),
        summary("older", PLAIN),
        summary("fast", REDUCED),
        summary("alone", PLAIN, "Two."),
        summary("p3", PLAIN, "Three.", seed=1),
        summary("f3", REDUCED, "Three.", seed=2),
        summary("p4", PLAIN, "Four.", voice="bella"),
        summary("f4", REDUCED, "Four.", voice="bella"),
    ]
    wanted = conditions([REDUCED, PLAIN])
    found = items(takes, wanted)
    assert [(one.text, one.takes) for one in found] == [("One.", ("fast", "newer")), ("Four.", ("f4", "p4"))]
    assert found[0].fingerprints == (REDUCED.fingerprint, PLAIN.fingerprint)


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    samples, _ = soundfile.read(voice().audio, dtype="float32")
    return samples


def _prepared(method: str, speech: np.ndarray, gains: tuple[float, ...] = (1.0, 0.3)) -> stimuli.PreparedItem:
    judged = conditions([PLAIN, REDUCED])
    item = items([summary("0", PLAIN), summary("1", REDUCED)], judged)[0]
    return prepared(item, judged, method, 48000, lambda take: (speech * np.float32(gains[int(take)]), 24000))


@pytest.mark.parametrize("method", [ABX, MUSHRA])
def test_everything_is_equally_loud_at_the_devices_rate(method: str, speech: np.ndarray) -> None:
    made = _prepared(method, speech)
    assert made.rate == 48000
    assert made.aligned
    levels = [integrated_loudness(one.amplified, 48000).lufs for one in made.stimuli]
    assert max(levels) - min(levels) <= TOLERANCE_DECIBELS
    assert levels[0] == pytest.approx(made.target, abs=TOLERANCE_DECIBELS)
    assert max(true_peak(one.amplified) for one in made.stimuli) <= HIGHEST_PEAK + 0.05
    loud, quiet = made.stimuli[0].record, made.stimuli[1].record
    assert quiet.gain - loud.gain == pytest.approx(-20 * np.log10(0.3), abs=TOLERANCE_DECIBELS)
    assert loud.lufs + loud.gain == pytest.approx(made.target, abs=1e-3)


def test_similarity_is_rated_against_the_voices_recording_at_the_same_loudness(speech: np.ndarray) -> None:
    asked: list[str] = []

    def load(take: str) -> tuple[np.ndarray, int]:
        asked.append(take)
        return speech[: len(speech) // 2] * np.float32(0.1 if take.startswith("voice:") else 1.0), 24000

    judged = conditions([PLAIN, REDUCED])
    item = items([summary("0", PLAIN), summary("1", REDUCED)], judged)[0]
    made = prepared(item, judged, SIMILARITY, 48000, load)
    assert asked[-1] == f"voice:{item.voice}" and made.stimuli[-1].record.key == "voice"
    levels = [integrated_loudness(one.amplified, 48000).lufs for one in made.stimuli]
    assert max(levels) - min(levels) <= TOLERANCE_DECIBELS


def test_one_volume_holds_for_a_whole_test(speech: np.ndarray) -> None:
    loud, quiet, silent = (_prepared(ABX, speech, gains) for gains in ((1.0, 0.9), (0.3, 0.5), (0.0, 0.0)))
    assert loud.target > quiet.target + 3
    made = levelled([loud, quiet, silent])
    assert made[0].target == made[1].target == quiet.target
    assert made[1] == quiet
    for one in (stimulus for item in made[:2] for stimulus in item.stimuli):
        assert integrated_loudness(one.amplified, 48000).lufs == pytest.approx(quiet.target, abs=TOLERANCE_DECIBELS)
    assert made[2] == silent
    assert levelled([silent]) == (silent,)


def test_the_anchors_come_from_the_reference(speech: np.ndarray) -> None:
    made = _prepared(MUSHRA, speech, (1.0, 1.0))
    assert [one.record.key for one in made.stimuli][2:] == ["anchor35", "anchor70"]
    assert [one.record.take for one in made.stimuli] == ["0", "1", "", ""]
    window = np.hanning(len(made.stimuli[0].samples))
    spectra = [np.abs(np.fft.rfft(one.samples * window)) ** 2 for one in made.stimuli]
    frequencies = np.fft.rfftfreq(len(made.stimuli[0].samples), 1 / 48000)
    for spectrum, cutoff in ((spectra[2], 3500), (spectra[3], 7000)):
        assert spectrum[frequencies > cutoff + 600].sum() < 1e-5 * spectra[0][frequencies > cutoff + 600].sum()
        np.testing.assert_allclose(
            spectrum[frequencies < cutoff - 200].sum(), spectra[0][frequencies < cutoff - 200].sum(), rtol=0.03
        )


def test_mushra_refuses_long_sentences() -> None:
    with pytest.raises(RecordError, match=r"lasts 12\.5 s; MUSHRA allows 12 s"):
        _prepared(MUSHRA, np.random.default_rng(0).standard_normal(300000).astype(np.float32) * np.float32(0.1))


RATE = 48000


@pytest.mark.parametrize("make", [calibration.noise, calibration.tone])
def test_they_are_as_loud_as_the_test(make) -> None:
    samples, target = make(RATE), -23.0
    heard = samples * np.float32(calibration.gain(samples, RATE, target))
    assert integrated_loudness(heard, RATE).lufs == pytest.approx(target, abs=0.05)
    assert true_peak(heard) < -1.0


@pytest.mark.parametrize("make", [calibration.noise, calibration.tone])
def test_they_repeat_without_a_seam(make) -> None:
    samples = make(44100)
    assert len(samples) == calibration.SECONDS * 44100
    steps = np.abs(np.diff(samples))
    assert abs(samples[0] - samples[-1]) <= steps.max()
    twice = np.abs(np.fft.rfft(np.tile(samples, 2)))
    assert twice[1::2].max() < 1e-3 * twice.max(), "two in a row hold no new frequencies"


def test_the_noise_is_pink_between_its_limits() -> None:
    power = np.abs(np.fft.rfft(calibration.noise(RATE))) ** 2
    octaves = [power[low * calibration.SECONDS : 2 * low * calibration.SECONDS].sum() for low in (125, 250, 1000, 4000)]
    assert max(octaves) / min(octaves) == pytest.approx(1.0, abs=0.05)
    assert power[: 99 * calibration.SECONDS].sum() < 1e-6 * power.sum()
    assert power[8001 * calibration.SECONDS :].sum() < 1e-6 * power.sum()
