"""Small Ogg files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from paretone.audio.sound_file import KINDS, SOUND, ogg, readable, writable, write_sound
from paretone.errors import AudioError, PlainError
from paretone.measure.loudness import headroom

RATE = 24_000


def test_the_best_quality_that_fits_is_taken() -> None:
    noise = np.random.default_rng(0).standard_normal(3 * RATE).astype(np.float32)
    large, small = (ogg(0.5 * noise, RATE, most) for most in (200_000, 30_000))
    assert len(small) <= 30_000 < len(large)
    for content in (large, small):
        samples, rate = soundfile.read(io.BytesIO(content))
        assert rate == RATE and len(samples) == 3 * RATE and np.abs(samples).max() <= 1.5
    with pytest.raises(AudioError, match="choose a shorter text"):
        ogg(noise, RATE, 1_000)


@pytest.mark.parametrize("ending", [".wav", ".WAV", ".flac", ".ogg", ".mp3", ""])
def test_the_ending_names_the_format(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"speech{ending}"
    tone = 0.5 * np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE).astype(np.float32)
    assert write_sound(path, tone, RATE) == ()
    found = soundfile.info(path)
    assert (found.format, found.samplerate) == (ending.lower().lstrip(".").upper() or "WAV", RATE)
    read, _ = soundfile.read(path, dtype="float32")
    if ending in ("", ".wav", ".WAV"):
        assert np.array_equal(read, tone)
    else:
        spectrum = np.abs(np.fft.rfft(read[:RATE]))
        assert spectrum.argmax() == 440
        assert np.abs(read).max() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", ["speech.txt", "speech.m4a", "speech.wav.part"])
def test_another_ending_is_refused_with_those_that_can_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(PlainError, match=r"ends in none of \.wav, \.flac, \.ogg, \.mp3; choose one"):
        write_sound(tmp_path / name, np.zeros(10, np.float32), RATE)
    assert not any(tmp_path.iterdir())


def test_what_can_be_read_and_written_follows_libsndfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tone = 0.5 * np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE).astype(np.float32)
    for ending in writable():
        write_sound(tmp_path / f"a{ending}", tone, RATE)
        assert ending in readable() and soundfile.info(tmp_path / f"a{ending}").frames
    assert set(readable()) < SOUND and {".m4a", ".wma"} < SOUND - set(readable())
    for ending in set(readable()) & {".aiff", ".au", ".caf", ".w64", ".oga"}:
        soundfile.write(tmp_path / f"b{ending}", tone, RATE, format={".aiff": "AIFF", ".oga": "OGG"}.get(ending))
        assert soundfile.info(tmp_path / f"b{ending}").frames == RATE
    # As of libsndfile before 1.1.
    known, able = soundfile.available_formats(), soundfile.check_format
    monkeypatch.setattr(soundfile, "available_formats", lambda: {one: known[one] for one in known if one != "MP3"})
    monkeypatch.setattr(soundfile, "check_format", lambda form, *rest: form != "MP3" and able(form, *rest))
    assert writable() == tuple(one for one in KINDS if one != ".mp3") and ".mp3" not in readable()
    with pytest.raises(PlainError, match=r"ends in none of \.wav, \.flac, \.ogg; choose one"):
        write_sound(tmp_path / "speech.txt", tone, RATE)


def test_what_is_louder_than_a_format_holds_is_scaled_by_one_factor(tmp_path: Path) -> None:
    tone = 2 * np.sin(np.arange(RATE) * 2 * np.pi * 440 / RATE).astype(np.float32)
    (remark,) = write_sound(tmp_path / "loud.flac", tone, RATE)
    assert "6.0 dB quieter" in remark
    read, _ = soundfile.read(tmp_path / "loud.flac", dtype="float32")
    assert read == pytest.approx(tone * headroom(tone), abs=1e-5)
    assert write_sound(tmp_path / "little.flac", 0.502 * tone, RATE) == (), "0.0 dB less is not said"
    assert np.abs(soundfile.read(tmp_path / "little.flac")[0]).max() < 1
    assert write_sound(tmp_path / "loud.wav", tone, RATE) == ()
    assert np.array_equal(soundfile.read(tmp_path / "loud.wav", dtype="float32")[0], tone)


def test_speech_over_full_scale_is_turned_down_and_not_clipped() -> None:
    time = np.arange(RATE) / RATE
    loud = (2.0 * np.sin(2 * np.pi * 300 * time)).astype(np.float32)
    samples, _ = soundfile.read(io.BytesIO(ogg(loud, RATE, 200_000)))
    inner = samples[RATE // 4 : -RATE // 4]
    assert 0.9 < np.abs(inner).max() < 1.02
    # A tone that was clipped is flat at its tops: much of it lies close to its peak.
    assert np.mean(np.abs(inner) > 0.98 * np.abs(inner).max()) < 0.2
