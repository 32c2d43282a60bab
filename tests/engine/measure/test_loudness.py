"""Loudness by ITU-R BS.1770 and pitch, against signals whose values are known."""

import numpy as np
import pytest

from paretone.errors import SettingError
from paretone.measure import loudness, pitch
from paretone.measure.pitch import FEWEST, diversity, fundamental, log_pitch, mean_pitch, pitch_error, pitch_range
from paretone.setting.take import Metrics


def sine(frequency: float, seconds: float, rate: int, level: float = 1.0) -> np.ndarray:
    return level * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)


def bursts(rate: int) -> np.ndarray:
    """Noise whose level changes like that of speech, with silence in between."""
    random = np.random.default_rng(0)
    levels = np.repeat([0.0, 0.3, 0.05, 0.0, 0.2, 0.01, 0.15, 0.0], rate // 2)
    return levels * random.standard_normal(len(levels)) * 0.3


@pytest.mark.parametrize("rate", [16000, 24000, 44100])
def test_a_full_scale_sine_reads_what_the_standard_says(rate: int) -> None:
    # BS.1770-5, annex 1: a 0 dB full scale 997 Hz sine in one channel reads -3.01 LKFS.
    assert loudness.integrated_loudness(sine(997, 5, rate), rate).lufs == pytest.approx(-3.01, abs=0.005)


def test_both_gates() -> None:
    tone = sine(997, 4, 24000, 0.1)
    alone = loudness.integrated_loudness(tone, 24000).lufs
    # Silence falls to the absolute gate, a tone 20 dB lower to the relative one; one 6 dB lower counts.
    with_silence = loudness.integrated_loudness(np.concatenate([tone, np.zeros(24000 * 4)]), 24000).lufs
    with_quiet = loudness.integrated_loudness(np.concatenate([tone, tone * 0.1]), 24000).lufs
    with_softer = loudness.integrated_loudness(np.concatenate([tone, tone * 0.5]), 24000).lufs
    assert with_silence == pytest.approx(alone, abs=0.2)
    assert with_quiet == pytest.approx(alone, abs=0.2)
    assert with_softer == pytest.approx(alone + 10 * np.log10((1 + 0.25) / 2), abs=0.1)


def test_agrees_with_pyloudnorm_within_its_bias() -> None:
    import pyloudnorm  # Here, for it brings scipy.

    samples = bursts(48000)
    expected = pyloudnorm.Meter(48000).integrated_loudness(samples)
    assert loudness.integrated_loudness(samples, 48000).lufs == pytest.approx(expected, abs=0.06)


def test_a_short_clip_is_measured_whole_and_flagged() -> None:
    short = loudness.integrated_loudness(sine(997, 0.3, 24000), 24000)
    assert not short.gated
    assert short.lufs == pytest.approx(-3.01, abs=0.1)


@pytest.mark.parametrize("length", [0, 1, 100, 24000])
def test_silence_is_minus_infinity(length: int) -> None:
    assert loudness.integrated_loudness(np.zeros(length), 24000).lufs == -np.inf
    assert loudness.true_peak(np.zeros(length)) == -np.inf


@pytest.mark.parametrize("frequency", [1000.0, 6000.0, 9000.0])
def test_true_peak_finds_what_lies_between_samples(frequency: float) -> None:
    rate = 24000
    faded = sine(frequency, 1, rate, 0.5) * np.hanning(rate)
    shifted = np.sin(2 * np.pi * frequency * (np.arange(rate) + 0.31) / rate) * 0.5 * np.hanning(rate)
    assert loudness.true_peak(faded) == pytest.approx(-6.02, abs=0.25)
    assert loudness.true_peak(shifted) == pytest.approx(-6.02, abs=0.25)


def test_takes_are_matched_to_the_quietest() -> None:
    loud, quiet = bursts(24000), bursts(24000) * 0.2
    match = loudness.matching_gains([(loud, 24000), (quiet, 24000)])
    assert match.gains[1] == 0.0
    assert match.gains[0] == pytest.approx(20 * np.log10(0.2), abs=1e-6) and match.exact
    assert match.target == pytest.approx(loudness.integrated_loudness(quiet, 24000).lufs)


def test_a_peak_too_high_lowers_all_takes_alike() -> None:
    peaky = bursts(24000) * 0.02
    peaky[30000] = 1.5
    even = bursts(24000) * 0.5
    match = loudness.matching_gains([(peaky, 24000), (even, 24000)])
    matched = [samples * 10 ** (gain / 20) for samples, gain in zip((peaky, even), match.gains, strict=True)]
    levels = [loudness.integrated_loudness(samples, 24000).lufs for samples in matched]
    assert levels == pytest.approx([match.target] * 2, abs=0.3)
    assert max(loudness.true_peak(samples) for samples in matched) == pytest.approx(loudness.HIGHEST_PEAK, abs=1e-6)


def test_silent_and_short_takes() -> None:
    silent = (np.zeros(24000), 24000)
    assert loudness.matching_gains([silent, silent]).gains == (0.0, 0.0)
    assert loudness.matching_gains([]).gains == ()
    match = loudness.matching_gains([silent, (sine(997, 0.2, 24000, 0.5), 24000), (bursts(24000), 24000)])
    assert match.gains[0] == 0.0
    assert not match.exact


def test_one_factor_brings_the_true_peak_within_full_scale() -> None:
    assert loudness.headroom(sine(440.0, 1.0, 24000, 0.5)) == 1.0
    assert loudness.headroom(np.zeros(0)) == loudness.headroom(np.zeros(100)) == 1.0
    loud = sine(440.0, 1.0, 24000, 1.64)
    fitting = loud * loudness.headroom(loud)
    assert loudness.true_peak(fitting) == pytest.approx(20 * np.log10(loudness.FULL_SCALE), abs=1e-6)
    between = np.tile(np.array([1.0, 1.0, -1.0, -1.0]) * 0.99, 6000)
    assert np.abs(between).max() < 1 and loudness.headroom(between) < 0.75, "between the samples, too"


def test_a_take_over_full_scale_says_so() -> None:
    assert not any(map(loudness.too_loud, (None, -0.1, 0.0, 0.049))), "nothing reads 0.0 dB"
    assert loudness.too_loud(0.2).startswith("The true peak is 0.2 dB above full scale")
    assert loudness.too_loud(4.31).startswith("The true peak is 4.3 dB above full scale: for playback and in 16-bit")


RATE = 24_000


def tone(seconds: float, level: float = 0.5) -> np.ndarray:
    return (level * np.sin(2 * np.pi * 440 * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def test_clipping_is_the_share_of_samples_that_cannot_be_written_as_sixteen_bits() -> None:
    samples = np.zeros(1000, np.float32)
    samples[:3] = 1.0, -1.5, 32767 / 32768
    samples[3] = 32766 / 32768
    assert loudness.clipping(samples) == pytest.approx(0.003)
    assert loudness.clipping(np.zeros(0)) == 0.0


def test_silence_is_counted_in_frames_and_does_not_depend_on_the_level() -> None:
    half = np.concatenate([tone(1.0), np.zeros(RATE, np.float32)])
    assert loudness.silence(half, RATE) == pytest.approx(0.5, abs=0.02)
    assert loudness.silence(0.01 * half, RATE) == loudness.silence(half, RATE)
    assert loudness.silence(tone(1.0), RATE) == 0.0
    # 46 dB below the tone is silence, 34 dB is not.
    assert loudness.silence(np.concatenate([tone(1.0), tone(1.0, 0.0025)]), RATE) == pytest.approx(0.5, abs=0.02)
    assert loudness.silence(np.concatenate([tone(1.0), tone(1.0, 0.01)]), RATE) == 0.0


def test_nothing_at_all_is_silent() -> None:
    assert loudness.silence(np.zeros(RATE), RATE) == 1.0
    assert loudness.silence(np.zeros(5), RATE) == 1.0
    assert loudness.signal_metrics(np.zeros(RATE, np.float32), RATE) == Metrics(clipping=0.0, silence=1.0)


# --- Pitch ------------------------------------------------------------------------------------------------------------
def voiced(hertz: float | np.ndarray, seconds: float = 1.0, partials: int = 10) -> np.ndarray:
    """A tone with overtones, as a voice has."""
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(hertz, round(seconds * RATE))) / RATE
    return 0.1 * sum(np.sin(k * phase) / k for k in range(1, partials + 1))


@pytest.mark.parametrize("hertz", [70.0, 110.0, 196.0, 311.0, 466.0])
def test_steady_tones(hertz: float) -> None:
    found = fundamental(voiced(hertz), RATE)
    assert len(found) == pytest.approx(95, abs=2)
    assert np.allclose(found, hertz, rtol=1e-3)


def test_a_glide_is_followed() -> None:
    hertz = np.linspace(100, 200, RATE)
    found = fundamental(voiced(hertz), RATE)
    centres = hertz[(np.arange(len(found)) * 240 + 600).clip(max=RATE - 1)]
    assert np.abs(12 * np.log2(found / centres)).max() < 0.6


def test_noise_and_silence_are_unvoiced() -> None:
    assert not fundamental(0.1 * np.random.default_rng(0).standard_normal(RATE), RATE).any()
    assert not fundamental(np.zeros(RATE), RATE).any()
    assert not fundamental(np.concatenate([voiced(120), 1e-4 * voiced(50)]), RATE)[-80:].any()


def test_long_recordings_are_worked_on_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.concatenate([voiced(130), np.zeros(RATE), voiced(90)])
    whole = fundamental(samples, RATE)
    monkeypatch.setattr(pitch, "BLOCK", 7)
    assert np.allclose(fundamental(samples, RATE), whole)


def test_a_semitone_is_a_semitone() -> None:
    found = pitch_error(voiced(120), voiced(120 * 2 ** (1 / 12)), RATE)
    assert found.semitones == pytest.approx(1.0, abs=0.01)
    assert found.voicing == 0.0
    assert pitch_error(voiced(120), voiced(120), RATE).semitones == 0.0


def test_voicing_that_differs_is_counted_apart() -> None:
    found = pitch_error(voiced(120), np.concatenate([voiced(120, 0.5), np.zeros(RATE // 2)]), RATE)
    assert found.voicing == pytest.approx(0.5, abs=0.05)
    assert found.semitones == pytest.approx(0.0, abs=0.2)
    assert pitch_error(voiced(120), np.zeros(RATE), RATE).semitones is None


def test_what_cannot_be_compared_says_why() -> None:
    with pytest.raises(SettingError, match=r"1\.00 s and 0\.90 s"):
        pitch_error(voiced(120), voiced(120, 0.9), RATE)
    with pytest.raises(SettingError, match="measuring pitch needs"):
        fundamental(np.zeros(100), RATE)


def glide(low: float, high: float, seconds: float = 1.0) -> np.ndarray:
    return voiced(np.exp(np.linspace(np.log(low), np.log(high), round(seconds * RATE))), seconds)


def test_the_range_of_a_glide_is_that_of_even_steps_on_the_logarithm() -> None:
    assert pitch_range(log_pitch(glide(140, 200), RATE)) == pytest.approx(np.log(200 / 140) / np.sqrt(12), rel=0.05)
    assert pitch_range(log_pitch(glide(150, 150), RATE)) == pytest.approx(0.0, abs=1e-3)
    assert mean_pitch(log_pitch(glide(150, 150), RATE)) == pytest.approx(150, abs=0.5)
    assert np.isnan(mean_pitch(np.zeros(50))), "nothing is voiced"


def test_level_and_silence_around_change_no_range() -> None:
    samples = glide(140, 200)
    expected = pitch_range(log_pitch(samples, RATE))
    assert pitch_range(log_pitch(0.01 * samples, RATE)) == pytest.approx(expected, abs=1e-6)
    around = np.r_[np.zeros(RATE // 2), samples, np.zeros(RATE)]
    assert pitch_range(log_pitch(around, RATE)) == pytest.approx(expected, abs=0.006)


def test_octave_errors_do_not_count() -> None:
    assert pitch_range(log_pitch(voiced(np.r_[np.full(RATE, 150.0), np.full(RATE // 10, 75.0)], 1.1), RATE)) < 0.02


def test_noise_silence_and_single_periods_have_no_range() -> None:
    for samples in (np.random.default_rng(0).standard_normal(RATE), np.zeros(RATE), np.zeros(10), np.zeros(0)):
        assert pitch_range(log_pitch(samples, RATE)) is None


def test_diversity_is_the_deviation_over_the_takes() -> None:
    curve = log_pitch(glide(140, 200), RATE)
    assert diversity([curve, curve + 0.1]) == pytest.approx(0.1 / np.sqrt(2), abs=1e-9)
    unvoiced = curve.copy()
    unvoiced[::2] = 0.0
    assert diversity([unvoiced, curve + 0.1]) == pytest.approx(0.1 / np.sqrt(2), abs=1e-9)


def test_takes_of_other_length_are_brought_to_one() -> None:
    slow, quick = (log_pitch(glide(140, 200, seconds), RATE) for seconds in (1.5, 1.0))
    assert diversity([slow, np.r_[np.zeros(30), quick]]) < 0.01
    assert diversity([slow, slow[::-1]]) > 0.05


def test_diversity_takes_two_voiced_takes() -> None:
    curve = log_pitch(glide(140, 200), RATE)
    few = curve[: FEWEST - 5]
    for curves in ([], [curve], [curve, np.zeros(len(curve))], [curve, np.zeros(0)], [few, few]):
        assert diversity(curves) is None
