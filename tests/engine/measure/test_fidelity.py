"""Distances of takes from their baselines: log-mel, mel-cepstral, timbre, warped, and all of them together."""

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pytest

from paretone import models
from paretone.audio.spectrogram import log_mel
from paretone.commands import compare
from paretone.commands.speak import OF_ITS_OWN
from paretone.errors import SettingError
from paretone.measure.fidelity import (
    best_path,
    log_mel_distance,
    mel_cepstral_distortion,
    timbre_distance,
    warped_log_mel_distance,
    with_baseline_metrics,
)
from paretone.models import catalogue
from paretone.session.commands import LoadModel, Synthesise
from paretone.session.events import TakeReady
from paretone.setting.setting import Setting, UsedTechnique
from paretone.setting.take import Metrics, Take, Trace
from tests.engine import small_speech
from tests.engine.command_line import Console
from tests.engine.recorder import Recorder
from tests.engine.running import running


def test_a_constant_factor_is_its_logarithm() -> None:
    mel = np.random.default_rng(0).standard_normal((50, 100)).astype(np.float32)
    assert log_mel_distance(mel, mel) == 0.0
    assert log_mel_distance(mel, mel + np.float32(np.log(1.1))) == pytest.approx(np.log(1.1), rel=1e-5)


def test_one_frame_more_is_left_out() -> None:
    mel = np.ones((50, 100))
    assert log_mel_distance(mel, np.concatenate([mel, 9 * mel[:1]])) == 0.0


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ((50, 100), (52, 100), "50 and 52 frames"),
        ((50, 100), (50, 80), "cannot be compared"),
        ((0, 100), (0, 100), "0 and 0 frames"),
    ],
)
def test_what_cannot_be_compared_says_why(first: tuple[int, ...], second: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        log_mel_distance(np.zeros(first), np.zeros(second))


BANDS = 100


def ripple(degree: int, size: float) -> np.ndarray:
    return size * np.cos(np.pi * degree * (np.arange(BANDS) + 0.5) / BANDS)


@pytest.mark.parametrize("distance", [mel_cepstral_distortion, timbre_distance])
def test_an_envelope_that_is_off_by_a_ripple_is_off_by_its_root_mean_square_in_decibels(
    distance: Callable[[np.ndarray, np.ndarray], float],
) -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    moved = mel + ripple(3, 0.2) + ripple(7, 0.1)
    decibels = 20 / np.log(10) * np.sqrt(np.mean((ripple(3, 0.2) + ripple(7, 0.1)) ** 2))
    assert distance(mel, moved) == pytest.approx(decibels, rel=1e-9)
    assert distance(moved, mel) == pytest.approx(decibels, rel=1e-9)
    assert distance(mel, mel) == 0.0


def test_neither_level_nor_detail_counts() -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    assert mel_cepstral_distortion(mel, mel + 0.5) == pytest.approx(0.0, abs=1e-9)
    assert mel_cepstral_distortion(mel, mel + ripple(14, 1.0)) == pytest.approx(0.0, abs=1e-9)
    assert mel_cepstral_distortion(mel, mel + ripple(13, 1.0)) > 6


def test_neither_level_nor_order_nor_length_counts() -> None:
    mel = np.random.default_rng(0).standard_normal((30, BANDS))
    others = (mel + 0.5, mel[::-1], np.concatenate([mel, mel]), mel + ripple(14, 1.0))
    assert all(timbre_distance(mel, other) == pytest.approx(0.0, abs=1e-9) for other in others)


def _cheapest(costs: np.ndarray) -> float:
    """By trying every path."""
    rows, columns = costs.shape

    def rest(row: int, column: int) -> float:
        here = costs[row, column]
        if (row, column) == (rows - 1, columns - 1):
            return here
        steps = [(row + 1, column), (row, column + 1), (row + 1, column + 1)]
        return here + min(rest(*one) for one in steps if one[0] < rows and one[1] < columns)

    return rest(0, 0)


@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (5, 6)])
def test_the_path_is_the_cheapest_and_goes_forward_without_a_gap(rows: int, columns: int):
    costs = np.random.default_rng(rows * 10 + columns).random((rows, columns))
    path = best_path(costs)
    assert costs[path[:, 0], path[:, 1]].sum() == pytest.approx(_cheapest(costs))
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [rows - 1, columns - 1]
    steps = np.diff(path, axis=0)
    assert ((steps >= 0) & (steps <= 1)).all()
    assert (steps.sum(1) >= 1).all()


def test_the_same_words_said_slower_are_near_and_others_are_not():
    draw = np.random.default_rng(0)
    speech = np.repeat(draw.normal(0, 2, (12, 20)), 4, axis=0)
    slower = np.repeat(speech, 2, axis=0)
    other = np.repeat(draw.normal(0, 2, (12, 20)), 4, axis=0)
    assert warped_log_mel_distance(speech, slower) == 0
    assert warped_log_mel_distance(speech, slower + 0.1) == pytest.approx(0.1)
    assert warped_log_mel_distance(speech, other) > 1


TEXT = "One sentence."
PLAIN = Setting("f5-mini", catalogue.entry("f5-mini").options_with(steps=4))
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
    assert with_baseline_metrics(drawn, take).log_mel_distance == expected, "not a drawn one with another's audio"
    with pytest.raises(SettingError, match="frames"):
        with_baseline_metrics(baseline, sounding(1, seconds=1.5))


def test_the_application_and_paretone_compare_say_the_same(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    with running(recorder, small_speech.load, LoadModel(1, "f5-mini")) as engine:
        for job, chosen in ((2, PLAIN), (3, FAST)):
            recorder.finish(engine, Synthesise(job, TEXT, catalogue.voice(), chosen))
    takes = [recorder.wait_for_kind(TakeReady, job).take for job in (2, 3)]
    model = small_speech.load("f5-mini", "", "", "cpu", lambda text: None, lambda: None)
    monkeypatch.setattr(models, "load_model", lambda name, **more: model)
    said = console.data("compare", "steps=4", "steps=4,technique=steps", "--text", TEXT, "--repeats", 1, "--json")
    for take, row in zip(takes, (said["a"], said["b"]), strict=True):
        assert {name: row[name] for name in OF_ITS_OWN} == {name: asdict(take.metrics)[name] for name in OF_ITS_OWN}
        assert row["ops_ratio"] == take.measurements.ops_ratio
        assert row["audio_seconds"] == take.measurements.audio_seconds
    compared = with_baseline_metrics(*takes)
    assert compared.log_mel_distance == said["log_mel_distance"] > 0
    own = {one.name: getattr(compared.metrics, one.name) for one in compare.RELATIVE[1:]}
    assert own == {name: said[name] for name in own} and compared.metrics != Metrics()
