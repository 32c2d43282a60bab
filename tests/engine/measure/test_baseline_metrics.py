"""Figures of a take against its baseline: the same for every caller, for models with a spectrogram or without."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from paretone.audio.spectrogram import log_mel
from paretone.commands import compare
from paretone.commands.figures import OF_ITS_OWN, figures
from paretone.errors import SettingError
from paretone.measure.baseline_metrics import with_baseline_metrics
from paretone.measure.fidelity import log_mel_distance
from paretone.measure.metrics import METRICS
from paretone.session.commands import LoadModel, ShutDown, Synthesise
from paretone.session.engine_thread import EngineThread
from paretone.session.events import JobFinished, TakeReady
from paretone.setting.setting import UsedTechnique
from paretone.setting.take import Metrics, Take, Trace
from paretone.speaking import synthesise
from tests.engine import small_speech
from tests.engine.recorder import PATIENCE_SECONDS, Recorder
from tests.engine.small_speech import VOICE, setting

TEXT = "One sentence."
PLAIN = setting(4)
FAST = PLAIN.with_technique(UsedTechnique("steps"))


def sounding(number: int, seconds: float = 1.0, shift: float = 0.0) -> Take:
    """A take of a model that draws no spectrogram: a tone with some noise."""
    rate = 24000
    generator = np.random.default_rng(number)
    times = np.arange(round(seconds * rate)) / rate
    samples = 0.3 * np.sin(2 * np.pi * (120 + shift) * times) + 0.01 * generator.standard_normal(len(times))
    chosen = PLAIN if number == 0 else PLAIN.with_technique(UsedTechnique("precision"))
    return Take(f"{number:032x}", "2026", TEXT, "anna", chosen, rate, samples.astype(np.float32))


def test_models_without_a_spectrogram_are_compared_by_that_of_their_sound() -> None:
    baseline, take = sounding(0), sounding(1, shift=4.0)
    found = with_baseline_metrics(baseline, take)
    expected = log_mel_distance(log_mel(baseline.samples, 24000), log_mel(take.samples, 24000))
    assert found.log_mel_distance == expected > 0
    assert found.metrics.mel_cepstral_distortion > 0
    assert found.metrics.pitch_error == pytest.approx(12 * np.log2(124 / 120), rel=0.02)
    assert found.fidelity_to == baseline.id
    drawn = replace(baseline, trace=Trace(mel=np.zeros((94, 100), np.float32)))
    assert with_baseline_metrics(drawn, take).log_mel_distance == expected, (
        "a spectrogram that one model drew is not compared with another's audio"
    )
    with pytest.raises(SettingError, match="frames"):
        with_baseline_metrics(baseline, sounding(1, seconds=1.5))


def test_the_application_and_paretone_compare_say_the_same() -> None:
    recorder = Recorder()
    engine = EngineThread(recorder.post, small_speech.load)
    engine.start()
    engine.submit(LoadModel(1, "small"))
    for job, chosen in ((2, PLAIN), (3, FAST)):
        engine.submit(Synthesise(job, TEXT, VOICE, chosen))
    assert [recorder.end_of(job) for job in (2, 3)] == [JobFinished(2), JobFinished(3)]
    takes = [recorder.wait_for_kind(TakeReady, job).take for job in (2, 3)]
    engine.submit(ShutDown(0))
    assert engine.join(PATIENCE_SECONDS)
    model = small_speech.load("small", "", "", "cpu", lambda text: None, lambda: None)
    spoken = [synthesise(model, TEXT, VOICE, one) for one in (PLAIN, FAST)]
    for take, synthesis in zip(takes, spoken, strict=True):
        row = figures(synthesis)
        assert {name: row[name] for name in OF_ITS_OWN} == {name: asdict(take.metrics)[name] for name in OF_ITS_OWN}
        assert row["ops_ratio"] == take.measurements.ops_ratio
        assert row["audio_seconds"] == take.measurements.audio_seconds
    distance, metrics, why_not = compare._distance(*spoken)
    compared = with_baseline_metrics(*takes)
    assert (compared.log_mel_distance, why_not) == (distance, "")
    assert {name: getattr(compared.metrics, name) for name in compare.DIFFERENCES} == {
        name: getattr(metrics, name) for name in compare.DIFFERENCES
    }
    assert compared.metrics != Metrics()
    shown = {one.name for one in METRICS if one.relative and one.of is not None}
    assert shown == {"log_mel_distance", *compare.DIFFERENCES}, "no figure is said by one of them only"
